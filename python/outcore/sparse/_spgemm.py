"""The product of two sparse matrices, a sparse matrix on disk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from outcore import _core
from outcore.errors import ArgumentError, ShapeError
from outcore.sparse._places import PathLike
from outcore.sparse._stream import File

if TYPE_CHECKING:
    from outcore.sparse._matrix import SparseMatrix


def spgemm(
    a: SparseMatrix,
    b: SparseMatrix,
    semiring: str = "plus_times",
    *,
    mask: SparseMatrix | None = None,
    complement: bool = False,
    path: PathLike | None = None,
    overwrite: bool = False,
) -> SparseMatrix:
    """The product of two sparse matrices (m, k) and (k, n), written to `path`, or to scratch: `a @ b` is that.

    `semiring` is one of those of `SparseMatrix.product`; of `mask`, a sparse matrix of the result's shape, only the
    places of entries count: the result has entries there alone, or with `complement` anywhere else. Values have the
    type of NumPy's promotion, and are none (a pattern) in "any_pair", and in "lor_land" of patterns. Entries that add
    up to 0 are stored, as by GraphBLAS; `eliminate_zeros` drops them. Sums have the same bits whatever the memory and
    the threads.

    Row by row (Gustavson 1978), some tile rows of `a` at a time. I/O: one read of `a` and of `mask`, one write of the
    result, and a read of the tile rows of `b` that are named for each group of tile rows of `a`: one read where `b`
    fits into three eighths of the memory (16 bytes an entry of float64). What is transposed is sorted first, as by
    `copy`. The cost is not known before it runs, so there is no forecast. Memory: three quarters of the session's.
    Raises ShapeError for shapes that do not go together, DTypeError for types that do not make the semiring,
    MemoryLimitError where one tile row of the result does not fit.

    >>> import numpy as np, outcore as oc, scipy.sparse, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> A = oc.sparse.from_scipy(scipy.sparse.csr_array([[0.0, 3.0], [1.0, 0.0]]), folder / "a.ocs")
    >>> oc.sparse.spgemm(A, A, path=folder / "square.ocs").to_scipy().toarray()
    array([[3., 0.],
           [0., 3.]])
    """
    from outcore._session import current

    if a.shape[1] != b.shape[0]:
        raise ShapeError(f"spgemm: {a.shape} @ {b.shape}: inner dimensions {a.shape[1]} and {b.shape[0]} differ")
    if mask is not None and mask.shape != (a.shape[0], b.shape[1]):
        raise ShapeError(f"spgemm: a mask of shape {mask.shape} for a result of shape {(a.shape[0], b.shape[1])}")
    if complement and mask is None:
        raise ArgumentError("spgemm: complement=True, and there is no mask")
    first, second = (m.copy() if m._transposed else m for m in (a, b))
    third = mask.copy() if mask is not None and mask._transposed else mask
    working, stored = _types(first, second, semiring)
    file = File(path)
    _core.spgemm(
        current()._core,
        first._core,
        second._core,
        None if third is None else third._core,
        complement,
        semiring,
        working.name,
        stored,
        file.path,
        overwrite,
    )
    return file.opened()


def _types(a: SparseMatrix, b: SparseMatrix, semiring: str) -> tuple[np.dtype[Any], str]:
    """The type in which sums are formed, and the name of that in which they are stored."""
    both = a.is_pattern and b.is_pattern
    if semiring == "lor_land":
        return np.dtype(bool), "pattern" if both else "bool"
    if semiring == "any_pair":
        return np.dtype(bool), "pattern"
    working, dtype = a._types(b.dtype, semiring)
    return working, dtype.name


__all__ = ["spgemm"]
