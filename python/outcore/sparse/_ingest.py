"""Entries in any order, more than fit into memory, sorted into tiles on disk within the memory limit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypedDict, Unpack, cast

import numpy as np

from outcore import _core
from outcore._base.element_types import DTypeLike, dtype_of
from outcore._base.types import PathLike
from outcore._lazy.array import Array
from outcore._lazy.node import Operand, expr_dtype, node
from outcore._run.run import compute
from outcore._standard.creation import full
from outcore._standard.manipulation import concat
from outcore.elementwise import conj
from outcore.errors import ArgumentError, DTypeError, ShapeError
from outcore.sparse._convert import SIDE
from outcore.sparse._matrix import SparseMatrix
from outcore.sparse._places import bits_of
from outcore.sparse._relabel import labels_of, relabelled
from outcore.sparse._spool import Chunk, Done, Source, Work, checked, spooled
from outcore.sparse._stream import File
from outcore.sparse._tiles import Tiling, check_target, write_sorted

Symmetry = Literal[False, True, "skew", "hermitian"]
Entries: TypeAlias = "tuple[Operand | Sequence[float], ...] | Iterable[Chunk]"


class Settings(TypedDict, total=False):
    """The options of every function that stores entries; `from_entries` says what each of them does."""

    dtype: DTypeLike
    duplicates: Literal["sum", "last", "any", "refuse"]
    symmetrize: Symmetry
    drop_loops: bool
    relabel: Literal["degree"] | Operand | None
    transpose: PathLike | None
    side: int
    overwrite: bool
    resume: bool


class Options(Settings, total=False):
    """As `Settings`, where the shape is not told by what is read."""

    shape: tuple[int, int] | None


_NAMES = ("shape", *Settings.__annotations__)


def from_entries(entries: Entries, path: PathLike | None = None, **options: Unpack[Options]) -> SparseMatrix:
    """Stores entries that come in any order, sorted into tiles within the memory limit, and opens what was stored.

    Parameters
    ----------
    entries
        A tuple of one-dimensional arrays `(rows, columns)` or `(rows, columns, values)`, lazy or NumPy's, or an
        iterator of such tuples of NumPy arrays, which are a matrix together. Without values only places are stored.
    path
        Where to: a name that ends in `.ocs`; unless given, scratch, from where the matrix goes with its last reader.
    shape
        Rows and columns; unless given, as many as the largest numbers ask for.
    dtype
        The type of the values: theirs, unless given. "pattern" leaves them away; a type where there are no values
        gives each entry a 1.
    duplicates
        What becomes of entries at one place: their "sum", the "last" of them, "any", or "refuse". Sums are formed in
        wider numbers than small types have, and rounded once; they keep the type of the values, and a sum of integers
        that has no room in it is refused: `dtype` says a wider one.
    symmetrize
        Also stores each entry's mirror image, those on the diagonal once; with its value negated ("skew") or conjugated
        ("hermitian"). Mirror images come after all entries.
    drop_loops
        Leaves away the entries on the diagonal.
    relabel
        New numbers for the rows and columns of a square matrix: an array whose element `i` is the new number of `i`, or
        "degree" for the most entries first, which stores that array beside, as `<path>.labels.npy`.
    transpose
        Also stores the transpose, at this path.
    side
        Rows and columns of a tile, a power of two up to 32 Ki.
    overwrite
        Replace what is at `path`.
    resume
        Go on where the same call was killed: entries read, places stored and sorted are found again in scratch, held
        against their checksums (one read of them) and made again where they are not what was written. The same call is
        one over the same files, so arrays in memory and iterators cannot be gone on with.

    Raises
    ------
    ShapeError, DTypeError
        Arrays that differ in length, numbers that are no integers, "skew" of values without negatives.
    ArgumentError
        Numbers outside `shape`, a call that cannot be resumed, a transpose at `path` itself, `resume` or "degree"
        without a path.
    MemoryLimitError, StorageError, TargetExistsError
        As `outcore.store`.

    Notes
    -----
    I/O: one read of the entries (another where `shape` or `relabel` has to be found; an iterator's are stored in
    scratch first), a write and a read of 8 bytes and the value of each: places, cut into buckets by a sample of them
    and sorted bucket by bucket (Vengroff, Vitter: TPIE, 4.2); one write of the matrix. Relabelled places and those that
    are computed are stored once more before. Memory holds at least the entries of the largest tile. Where the sample
    has misled it so far that a bucket exceeds memory, and for places of shapes that need more than 64 bits (16 bytes),
    what is stored is sorted as by `sort_by` (the latter twice).

    Examples
    --------
    >>> import outcore as oc, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.ocs"
    >>> A = oc.sparse.from_entries(([0, 2, 0], [1, 1, 1], [5.0, 7.0, 1.0]), path, shape=(3, 2))
    >>> A.to_scipy().toarray()
    array([[0., 6.],
           [0., 0.],
           [0., 7.]])
    """
    return stored(entries, path, None, options)


def stored(
    entries: Entries | Source, path: PathLike | None, source: str | None, options: Options, *, square: bool = False
) -> SparseMatrix:
    """As `from_entries`; `source` names what the entries of an iterator are read from, so that it can be resumed. Where
    `entries` gives the chunks behind some of them, those are not read again.

    `square` makes a matrix whose shape is not given as wide as long.
    """
    unknown = set(options) - set(_NAMES)
    if unknown:
        raise ArgumentError(f"sparse: there is no option {', '.join(sorted(unknown))}, but {', '.join(_NAMES)}")
    named_only("sparse", path, resume=options.get("resume"), relabel=options.get("relabel"))
    file, transpose = File(path), options.get("transpose")
    target = file.path
    named = {"rows": target} | ({} if transpose is None else {"columns": Path(transpose).absolute()})
    if named.get("columns") == target:
        raise ArgumentError(f"sparse: {target} is to be the matrix and its transpose")
    lengths = _lengths(options.get("shape"))
    if lengths is not None:
        bits_of(lengths, options.get("side", SIDE))
    columns = tuple(_column(part) for part in entries) if isinstance(entries, tuple) else None
    key = f"{target}\n{_key(columns, source, options)}" if options.get("resume") else None
    with Work(key, target) as work:
        if work.is_done(*named.values()):
            return cast(SparseMatrix, file.opened())
        for name, place in named.items():
            check_target(place, options.get("overwrite", False), work, name)
        if columns is None:
            # The numbers of most matrices take half the bytes.
            ids = np.dtype(np.uint32 if lengths is not None and max(lengths) <= 1 << 32 else np.uint64)

            @contextmanager
            def chunks(done: Done) -> Iterator[Iterator[Chunk]]:
                behind: Any = entries(done) if callable(entries) else nullcontext(islice(entries, done.chunks, None))
                with behind as source_chunks:
                    yield checked(source_chunks, ids)

            columns = spooled(chunks, work, [ids, ids])
        rows, cols, values = _checked(columns, options.get("dtype"))
        if lengths is None:
            symmetric = square or bool(options.get("symmetrize")) or options.get("relabel") is not None
            lengths = _shape_of_entries(work, rows, cols, symmetric)
        tiling = _tiling(rows, cols, values, lengths, options)
        if options.get("relabel") is not None:
            labels = labels_of(options["relabel"], rows, cols, lengths, work, target)
            tiling = tiling.numbered(*relabelled(labels, rows, cols, lengths, work))
        write_sorted(tiling, target, work, "rows")
        if "columns" in named:
            write_sorted(tiling.transposed(), named["columns"], work, "columns")
        work.done(*named.values())
        return cast(SparseMatrix, file.opened())


def named_only(name: str, path: PathLike | None, *, resume: object = False, relabel: object = None) -> None:
    """Refuses without a path that which is found again by it, or stored beside it."""
    if path is None and (resume or isinstance(relabel, str)):
        asked = "resume=True" if resume else f"relabel={relabel!r}"
        raise ArgumentError(
            f"{name}: {asked} needs a path; without one all is in scratch, and goes with its last reader"
        )


def _column(part: object) -> Array:
    if isinstance(part, (list, tuple)) and not part:
        part = np.zeros(0, np.int64)
    return Array(node(part))


def _lengths(shape: Sequence[int] | None) -> tuple[int, int] | None:
    if shape is None:
        return None
    if len(shape) != 2 or any(int(length) < 0 for length in shape):
        raise ShapeError(f"sparse: shape {shape} is none of a matrix")
    return int(shape[0]), int(shape[1])


def _key(columns: tuple[Array, ...] | None, source: str | None, options: Options) -> str:
    """The identity of a call: calls with one key make the same matrix."""
    relabel = options.get("relabel")
    labels = [] if relabel is None or isinstance(relabel, str) else [_column(relabel)]
    if not of_files([*(columns or ()), *labels]):
        raise ArgumentError(
            "sparse: resume=True, and entries or labels are in memory or read by another library, which no other "
            "process can tell: open them from files"
        )
    if columns is None and source is None:
        raise ArgumentError("sparse: resume=True, and entries come from an iterator, which cannot be gone on with")
    parts = [source or "", *(array._expr.digest for array in (*(columns or ()), *labels))]
    named_options = {name: value for name, value in options.items() if name not in ("overwrite", "resume")}
    if labels:
        named_options["relabel"] = "given"
    return "\n".join([*parts, *(f"{name}={named_options[name]}" for name in sorted(named_options))])


def of_files(arrays: Sequence[Array]) -> bool:
    """Whether another process makes the same arrays by the same call: of files and formulas alone."""
    sources, functions = _core.process_own([array._expr for array in arrays])
    return not sources and not functions


def _checked(columns: tuple[Array, ...], dtype: DTypeLike) -> tuple[Array, Array, Array | None]:
    """Rows, columns and values, if any are to be stored, in their type."""
    if len(columns) not in (2, 3):
        raise ShapeError(f"sparse: entries are (rows, columns) or (rows, columns, values), not {len(columns)} arrays")
    if any(column.ndim != 1 or column.shape != columns[0].shape for column in columns):
        raise ShapeError(f"sparse: entries of shapes {', '.join(str(column.shape) for column in columns)}")
    for name, column in zip(("rows", "columns"), columns, strict=False):
        if expr_dtype(column._expr).kind not in "iu":
            raise DTypeError(f"sparse: {name} of {column.dtype} are no integers")
    values: Array | None = columns[2] if len(columns) == 3 else None
    if isinstance(dtype, str) and dtype == "pattern":
        values = None
    elif dtype is not None:
        kind = dtype_of(dtype)
        values = full(columns[0].shape, 1, dtype=kind) if values is None else values.astype(kind)
    return columns[0], columns[1], values


def _shape_of_entries(work: Work, rows: Array, columns: Array, square: bool) -> tuple[int, int]:
    """The least shape that holds all entries."""
    note = work.noted("shape")
    if note is None:
        note = [0, 0]
        if rows.shape[0]:
            note = [int(length) + 1 for length in compute(rows.max(), columns.max())]
        work.note("shape", note)
    return (max(note), max(note)) if square else (int(note[0]), int(note[1]))


def _tiling(rows: Array, columns: Array, values: Array | None, shape: tuple[int, int], options: Options) -> Tiling:
    duplicates = options.get("duplicates", "sum")
    if duplicates not in ("sum", "last", "any", "refuse"):
        raise ArgumentError(f"sparse: duplicates={duplicates!r} is none of sum, last, any, refuse")
    side, symmetry = options.get("side", SIDE), options.get("symmetrize", False)
    if symmetry not in (False, True, "skew", "hermitian"):
        raise ArgumentError(f"sparse: symmetrize={symmetry!r} is none of False, True, skew, hermitian")
    loops = options.get("drop_loops", False)
    bits_of(shape, side)
    if (symmetry or loops) and shape[0] != shape[1]:
        raise ShapeError(
            f"sparse: {'symmetrize' if symmetry else 'drop_loops'} of a matrix {shape}, which is not square"
        )
    if symmetry == "skew" and values is not None and values.dtype.kind in "bu":
        raise DTypeError(f"sparse: symmetrize='skew' negates values, and those of {values.dtype} have no negatives")
    mirrored = values
    if values is not None and symmetry in ("skew", "hermitian"):
        mirrored = -values if symmetry == "skew" else conj(values) if values.dtype.kind == "c" else values
    if values is not None and mirrored is not None and symmetry:
        values = concat([values, mirrored])
    return Tiling(
        rows, columns, values, shape, side, duplicates, bool(symmetry), loops, options.get("overwrite", False)
    )


__all__ = ["Options", "Settings", "from_entries", "stored"]
