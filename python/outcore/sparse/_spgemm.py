"""The product of two sparse matrices, a sparse matrix on disk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from outcore import _core
from outcore._base.files import same_bytes
from outcore._base.types import DType, JSONObject, PathLike
from outcore._session.session import current
from outcore._session.whole import whole_run
from outcore._show.explanation import Explanation
from outcore.errors import ArgumentError, ShapeError
from outcore.sparse._content import Pending
from outcore.sparse._refused import refuse_foreign
from outcore.sparse._spool import Work
from outcore.sparse._stored import Matrix, StoredMatrix
from outcore.sparse._stream import File, as_read
from outcore.sparse._tiles import in_the_way, is_matrix

# Parts of a product that can be gone on with.
_PARTS = 16
_PRODUCT = "product of sparse matrices"


def spgemm(
    a: Matrix,
    b: Matrix,
    semiring: str = "plus_times",
    *,
    mask: Matrix | None = None,
    complement: bool = False,
    path: PathLike | None = None,
    overwrite: bool = False,
    resume: bool = False,
) -> Matrix:
    """The product of two sparse matrices (m, k) and (k, n): `a @ b` is that. Written to `path`; without one it is lazy,
    and made in scratch when its entries are first asked for, a product is built of it, or `explain` or `store` is given
    it, which copies it from there.

    `semiring` is one of those of `SparseMatrix.product`; of `mask`, a sparse matrix of the result's shape, only the
    places of entries count: the result has entries there alone, or with `complement` anywhere else. Values have the
    type of NumPy's promotion, and are none (a pattern) in "any_pair", and in "lor_land" of patterns. Entries that add
    up to 0 are stored, as by GraphBLAS; `eliminate_zeros` drops them. Sums have the same bits whatever the memory and
    the threads.

    Row by row (Gustavson 1978), some tile rows of `a` at a time. I/O: one read of `a` and of `mask`, one write of the
    result, and a read of the tile rows of `b` that are named for each group of tile rows of `a`: one read where `b`
    fits into three eighths of the memory (16 bytes an entry of float64). A file that is two of these is read once where
    it fits there, and `mask` with `a`. Tiles of `a` and `b` that cannot meet in a tile that `mask` lets through are not
    read, and no other sums are formed than it lets through. A transposed operand is sorted first, as by `copy`.
    `explain_spgemm` says it before. Memory: three quarters of the session's.

    With `resume` the same call goes on where one was killed: the result is made in up to 16 parts, which stay in
    scratch until all are there and are then put together, for one more write and read of it. It needs a `path`, and
    matrices that are in files of yours, none of them transposed.

    Raises ShapeError for shapes that do not go together, DTypeError for types that do not make the semiring,
    MemoryLimitError where one tile row of the result does not fit, ArgumentError for what cannot be resumed.

    >>> import numpy as np, outcore as oc, scipy.sparse, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> A = oc.sparse.from_scipy(scipy.sparse.csr_array([[0.0, 3.0], [1.0, 0.0]]), folder / "a.ocs")
    >>> oc.sparse.spgemm(A, A, path=folder / "square.ocs").to_scipy().toarray()
    array([[3., 0.],
           [0., 3.]])
    """
    _check(a, b, mask, complement)
    first, second = (as_read(m) if m._transposed else m for m in (a, b))
    third = as_read(mask) if mask is not None and mask._transposed else mask
    working, stored = _types(first, second, semiring)

    def multiply(target: Path, replace: bool, tiles: tuple[int, int] | None = None) -> _core.Sparse:
        core, masked = current()._core, None if third is None else third._core
        arguments = (first._core, second._core, masked, complement, semiring, working.name, stored)
        with whole_run(_PRODUCT):
            return _core.spgemm(core, *arguments, target, replace, tiles or (0, first._core.tiles))

    if path is None and not resume:
        make = partial(_held, multiply)
        shape, dtype = (a.shape[0], b.shape[1]), None if stored == "pattern" else np.dtype(stored)
        return type(a)(Pending(make, shape, first._content.side, dtype))
    file = File(path)
    if resume:
        operands = [matrix for matrix in (a, b, mask) if matrix is not None]
        description = f"{semiring} {complement} {mask is None}"
        key = _key(operands, description, path)
        with whole_run(_PRODUCT):
            _in_parts(multiply, key, first._core.tiles, file.path, overwrite)
            made: Matrix = file.opened()
    else:
        made = file.opened(multiply(file.path, overwrite))
    return made


def _held(multiply: Callable[[Path, bool], _core.Sparse]) -> _core.Sparse:
    """The product in scratch, from where it goes with its last reader."""
    core = current()._core
    return multiply(Path(core.unused_path()).with_suffix(".ocs"), False).hold(core)


def explain_spgemm(
    a: StoredMatrix,
    b: StoredMatrix,
    semiring: str = "plus_times",
    *,
    mask: StoredMatrix | None = None,
    complement: bool = False,
) -> Explanation:
    """The plan of `spgemm` of the same matrices in this session, before it runs: two stages, as `outcore.explain` has.

    The first is what is read. It is `exact` where sums have room whatever they come to: where `b` fits into three
    eighths of the memory, or the entries that `mask` names, or as many as there can be terms, take less than three
    eighths, three times over. Otherwise a group of tile rows of `a` may be begun again as two, and the bytes are a
    bound, as they are for matrices of others that are opened where they lie, whose tiles are not known before they are
    read. The second stage is what is written, a bound: no more entries than terms, places in the tile rows of `a`, and
    places that `mask` lets through. `peak_bytes` is what is held for it.

    I/O: some pages of each tile row of `a` and `mask`, and of `b` where the product reads them too; operands that are
    no files are made first. Raises what `spgemm` raises of shapes and types, ArgumentError for what is transposed,
    which would be sorted first.

    >>> import numpy as np, outcore as oc, scipy.sparse, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> A = oc.sparse.from_scipy(scipy.sparse.csr_array([[0.0, 3.0], [1.0, 0.0]]), folder / "a.ocs")
    >>> said = oc.sparse.explain_spgemm(A, A)
    >>> [(stage.label, stage.exact) for stage in said.stages]
    [('sparse product: what is read', True), ('sparse product: the result', False)]
    """
    _check(a, b, mask, complement)
    operands = [a, b] if mask is None else [a, b, mask]
    if any(matrix._transposed for matrix in operands):
        raise ArgumentError(
            "explain_spgemm: what is transposed is sorted before it is multiplied, and what that takes is not known; "
            "give its copy"
        )
    working, stored = _types(a, b, semiring)
    cores = (a._core, b._core, None if mask is None else mask._core)
    with whole_run("forecast of a product of sparse matrices"):
        said = _core.foresee_spgemm(current()._core, *cores, complement, semiring, working.name, stored)
    names = [str(matrix.path) for matrix in operands]
    return Explanation.from_stages(
        [
            _stage(said, "sparse product: what is read", said["exact"], (names, []), (sum(said["bytes_read"]), 0)),
            _stage(said, "sparse product: the result", False, ([], ["result"]), (0, said["bytes_written"])),
        ]
    )


def _stage(
    said: JSONObject, label: str, exact: bool, names: tuple[list[str], list[str]], moved: tuple[int, int]
) -> JSONObject:
    """A stage of the forecast, as the planner writes them: bytes that are read and written."""
    about = {name: said[name] for name in ("memory_limit", "overhead_bytes", "budget_bytes", "peak_bytes")}
    sums = {"bytes_read": moved[0], "bytes_written": moved[1], "tasks": said["groups"]}
    only = {"index": 0, "label": label, "domain": [], "inputs": names[0], "outputs": names[1], **sums}
    constants = {"fixed_bytes": 0, "bytes_spilled": 0, "bytes_scratch": 0, "window": 1}
    program = {**about, **sums, **constants, "policy": "groups of tile rows", "order": "by rows", "passes": [only]}
    program |= {"rewrites": [], "advice": []}
    awaits = "the sums" if moved[0] else None
    return {"label": label, "exact": exact, "awaits": awaits, "lookup_bytes": 0, "program": program}


def _check(a: StoredMatrix, b: StoredMatrix, mask: StoredMatrix | None, complement: bool) -> None:
    """Raises for what is no stored matrix, and for shapes that do not go together."""
    for operand in (a, b, mask):
        if operand is not None and not isinstance(operand, StoredMatrix):
            refuse_foreign("spgemm", operand)
            kind = type(operand).__name__
            raise ArgumentError(f"spgemm: {kind} is no sparse matrix on disk; open it, or store it with from_scipy")
    if a.shape[1] != b.shape[0]:
        raise ShapeError(f"spgemm: {a.shape} @ {b.shape}: inner dimensions {a.shape[1]} and {b.shape[0]} differ")
    if mask is not None and mask.shape != (a.shape[0], b.shape[1]):
        raise ShapeError(f"spgemm: a mask of shape {mask.shape} for a result of shape {(a.shape[0], b.shape[1])}")
    if complement and mask is None:
        raise ArgumentError("spgemm: complement=True, and there is no mask")


def _key(operands: Sequence[StoredMatrix], description: str, path: PathLike | None) -> str:
    """The identity of a call: calls with one key make the same matrix."""
    if path is None or any(matrix._transposed or not matrix._is_lasting for matrix in operands):
        raise ArgumentError("spgemm: resume=True needs a path, and matrices that are stored as they are multiplied")
    files = "\n".join(matrix._core.identity for matrix in operands)
    return f"spgemm {description}\n{Path(path).absolute()}\n{files}"


def _in_parts(
    multiply: Callable[[Path, bool, tuple[int, int]], _core.Sparse], key: str, tiles: int, target: Path, overwrite: bool
) -> None:
    """Multiplies some tiles of the first matrix at a time; parts that are there are not made again."""
    core, step = current()._core, max(1, -(-tiles // _PARTS))
    with Work(key, target) as work:
        if work.is_done(target):
            return
        # A call that was killed may have given the file its name: it is the same then, or another's and in the way.
        is_there = target.exists() and not overwrite
        if is_there and work.noted("joining") is None:
            raise in_the_way(target)
        parts = []
        for begin in range(0, max(tiles, 1), step):
            name = f"part-{begin}"
            if work.noted(name) is None or not is_matrix(work.path(f"{name}.ocs")):
                multiply(work.path(f"{name}.ocs"), True, (begin, begin + step))
                work.note(name, True)
            parts.append(_core.open_sparse(core, work.path(f"{name}.ocs")))
        work.note("joining", True)
        path = work.path("whole.ocs") if is_there else target
        _core.join_sparse(core, parts, path, overwrite or is_there)
        if is_there and not same_bytes(path, target):
            raise in_the_way(target)
        work.done(target)


def _types(a: StoredMatrix, b: StoredMatrix, semiring: str) -> tuple[DType, str]:
    """The type in which sums are formed, and the name of that in which they are stored."""
    _core.check_semiring(semiring)
    both = a.is_pattern and b.is_pattern
    if semiring == "lor_land":
        return np.dtype(bool), "pattern" if both else "bool"
    if semiring == "any_pair":
        return np.dtype(bool), "pattern"
    working, dtype = a._types(b.dtype, semiring)
    return working, dtype.name


__all__ = ["explain_spgemm", "spgemm"]
