"""Sparse matrices opened, and made of what other packages hold in memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from outcore._base.element_types import dtype_of
from outcore._base.types import NDArray, PathLike
from outcore._base.urls import refuse_url
from outcore._session.session import check_room
from outcore._session.whole import whole_run
from outcore.errors import ArgumentError, ShapeError
from outcore.sparse._content import PassingEntries, opened
from outcore.sparse._foreign import is_foreign, open_foreign
from outcore.sparse._matrix import SparseMatrix
from outcore.sparse._places import is_wide, keys_of, order_of
from outcore.sparse._spool import INGEST
from outcore.sparse._stream import File
from outcore.sparse._writer import Writer

Duplicates = Literal["sum", "last", "refuse"]
# Rows and columns of a tile, unless told.
SIDE = 16384
# Entries whose places are computed, and which are written, at once.
_PIECE = 1 << 18
# For each entry: a key and its position, and while these are sorted half of the positions again.
_SORTING_BYTES = 20
# Rows of SciPy's own layouts as numbers of 32 or 64 bits, and for some of them columns.
_TRIPLET_BYTES = 16


def open(path: PathLike, *, group: str | None = None, side: int = SIDE) -> SparseMatrix:
    """Opens a sparse matrix: a file of outcore's (`.ocs`), or what others stored by rows or columns, where it lies.

    Others are files of `scipy.sparse.save_npz(..., compressed=False)`, and groups of an HDF5 file or a Zarr folder:
    AnnData's (`group`: "X", "layers/counts", …; "X" unless given) and Binsparse's (CSR, CSC, and coordinates sorted by
    rows or columns: COO, COOR, COOC; the whole file unless `group` is given). Products put their rows into tiles of
    `side` rows as these are read; `outcore.explain` says from how many products on a copy in tiles (`copy`, `from_npz`,
    `from_anndata`, `from_binsparse`) costs less. A matrix by columns is the transpose of one by rows. Needs h5py for
    HDF5, zarr for Zarr.

    I/O: the directory of an `.ocs`, the row pointers of others, of coordinates the sorted ones, and a write of 8 bytes
    a row to scratch; entries are read when products are computed.

    Raises MissingFileError; FormatError for a file that is none or was cut off, or whose row pointers fall;
    UnsupportedFormatError for other layouts, coordinates that are not sorted, and packed `.npz` files.

    Source: Binsparse specification 0.1; AnnData on-disk format 0.1.

    >>> import outcore as oc, scipy.sparse, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = oc.sparse.from_scipy(scipy.sparse.eye(3), folder / "a.ocs")
    >>> oc.sparse.open(folder / "a.ocs").shape
    (3, 3)
    >>> scipy.sparse.save_npz(folder / "a.npz", scipy.sparse.eye(3).tocsr(), compressed=False)
    >>> (oc.sparse.open(folder / "a.npz") @ [1.0, 2.0, 3.0]).compute()
    array([1., 2., 3.])
    """
    refuse_url(path, "sparse matrices are read from files")
    absolute = Path(path).absolute()
    if is_foreign(absolute):
        with whole_run("opening of a sparse matrix"):
            return open_foreign(absolute, group, side)
    if group is not None or side != SIDE:
        raise ArgumentError(f"{path}: group and side are of other formats than .ocs")
    return SparseMatrix(PassingEntries(opened(absolute)))


def check_indices(name: str, indices: NDArray, length: int) -> None:
    """Raises where indices are no integers from 0 to `length` - 1."""
    if indices.dtype.kind not in "iu":
        raise ArgumentError(f"sparse: {name} of {indices.dtype} are no integers")
    if indices.size and (int(indices.min()) < 0 or int(indices.max()) >= length):
        worst = int(indices.min()) if int(indices.min()) < 0 else int(indices.max())
        raise ArgumentError(f"sparse: {name} has {worst}, the matrix {length}")


def from_coo(
    rows: npt.ArrayLike,
    columns: npt.ArrayLike,
    values: npt.ArrayLike | None,
    shape: tuple[int, int],
    path: PathLike | None = None,
    *,
    duplicates: Duplicates = "sum",
    side: int = SIDE,
    overwrite: bool = False,
) -> SparseMatrix:
    """Stores entries that are in memory at `path`, or in scratch, and opens what was stored. Without `values` only
    places are stored.

    `duplicates` says what becomes of entries at one place, as by `from_entries`. Raises ShapeError for arrays that
    differ in length, ArgumentError for indices outside `shape` and sums that the type of the values does not hold,
    MemoryLimitError. Memory: 20 bytes an entry, 40 where places have more than 64 bits. I/O: one write.

    >>> import outcore as oc, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.ocs"
    >>> oc.sparse.from_coo([0, 2], [1, 1], [5.0, 7.0], (3, 2), path).nnz
    2
    """
    r, c = np.asarray(rows), np.asarray(columns)
    r, c = (index.astype(np.int64) if index.size == 0 else index for index in (r, c))
    v = None if values is None else np.asarray(values)
    v = None if v is None else v.astype(dtype_of(v.dtype), copy=False)  # the file is little-endian
    if r.ndim != 1 or r.shape != c.shape or (v is not None and v.shape != r.shape):
        raise ShapeError(f"sparse: rows {r.shape}, columns {c.shape}, values {None if v is None else v.shape}")
    check_indices("rows", r, shape[0])
    check_indices("columns", c, shape[1])
    check_room("from_coo", _sorting_bytes(len(r), shape, side))
    keys = tuple(np.empty(len(r), np.uint64) for _ in range(1 + is_wide(shape, side)))
    for some in _pieces(len(r)):
        for key, part in zip(keys, keys_of(r[some], c[some], shape, side), strict=True):
            key[some] = part
    order = order_of(keys)
    file = File(path)
    with whole_run(INGEST):
        with Writer(file.path, shape, None if v is None else v.dtype, side, duplicates, overwrite) as writer:
            for some in _pieces(len(r)):
                places = order[some]
                writer.add(tuple(key[places] for key in keys), places if v is None else v[places])
            writer.finish()
        made: SparseMatrix = file.opened()
    return made


def _sorting_bytes(entries: int, shape: tuple[int, int], side: int) -> int:
    return _SORTING_BYTES * entries * (1 + is_wide(shape, side))


def _pieces(length: int) -> Iterator[slice]:
    return (slice(start, start + _PIECE) for start in range(0, length, _PIECE))


def from_scipy(matrix: Any, path: PathLike | None = None, *, side: int = SIDE, overwrite: bool = False) -> SparseMatrix:
    """Stores a SciPy sparse matrix or array at `path`, or in scratch, and opens what was stored. Entries at one place
    are added up, as SciPy does; those that are 0 stay entries. Memory: up to 16 bytes an entry, and that of `from_coo`.
    I/O: one write.

    >>> import outcore as oc, scipy.sparse, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.ocs"
    >>> oc.sparse.from_scipy(scipy.sparse.eye(3), path).nnz
    3
    >>> (oc.sparse.from_scipy(scipy.sparse.eye(3)) @ [1.0, 2.0, 3.0]).compute()
    array([1., 2., 3.])
    """
    if not hasattr(matrix, "tocoo"):
        kind = type(matrix).__name__
        raise ArgumentError(f"from_scipy: {kind} is no sparse matrix of SciPy's; scipy.sparse.coo_array(x) makes one")
    if len(matrix.shape) != 2:
        raise ShapeError(f"from_scipy: shape {matrix.shape} is no matrix's")
    shape = (int(matrix.shape[0]), int(matrix.shape[1]))
    count = int(matrix.nnz)
    check_room("from_scipy", _TRIPLET_BYTES * count + _sorting_bytes(count, shape, side))
    triplets = matrix.tocoo(copy=False)
    return from_coo(triplets.row, triplets.col, triplets.data, shape, path, side=side, overwrite=overwrite)


__all__ = ["from_coo", "from_scipy", "open"]
