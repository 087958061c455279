"""Matrices that others hold by rows or columns (CSR, CSC): SciPy's files, AnnData's groups, and columns of tables."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from outcore._base.archives import reading_members, unzipped
from outcore._base.arrow_numbers import numbers_of
from outcore._base.files import reading
from outcore._base.system_errors import refusing
from outcore._base.types import NDArray, PathLike
from outcore._lazy.array import Array
from outcore._session.whole import whole_run
from outcore.errors import ArgumentError, FormatError, OutcoreError, ShapeError, UnsupportedFormatError
from outcore.sparse._foreign import Coordinates, Layout, Member, described_by_npz, group_of, of_group
from outcore.sparse._ingest import Options, Settings, stored
from outcore.sparse._matrix import SparseMatrix
from outcore.sparse._readers import opened
from outcore.sparse._spool import INGEST, Chunk, stamp_of

if TYPE_CHECKING:
    from zipfile import ZipFile

# How elements from one place of a row up to another are read; places ascend.
Read = Callable[[int, int], NDArray]
_PIECE = 1 << 18
_ARROW_ROWS, _ARROW_BUFFER = 1 << 16, 1 << 20


def _reader(array: Any) -> Read:
    """Of a lazy array, one of NumPy, h5py or zarr-python."""
    if isinstance(array, Array):
        return lambda begin, end: np.asarray(array[begin:end].compute())
    return lambda begin, end: np.asarray(array[begin:end])


def entries_of(lines: int, indptr: Read, indices: Read, data: Read | None, layout: Layout) -> Iterator[Chunk]:
    """Entries, some at a time, of a matrix with so many rows ("csr") or columns ("csc")."""
    for first in range(0, lines, _PIECE):
        last = min(first + _PIECE, lines)
        bounds = indptr(first, last + 1).astype(np.int64)
        if (np.diff(bounds) < 0).any() or (first == 0 and bounds[0] != 0):
            raise FormatError(f"sparse: indptr falls between {first} and {last}, or does not begin with 0")
        for begin in range(int(bounds[0]), int(bounds[-1]), _PIECE):
            end = min(begin + _PIECE, int(bounds[-1]))
            cut = np.clip(bounds, begin, end)
            counts = cut[1:] - cut[:-1]
            major = np.repeat(np.arange(first, last, dtype=np.uint64), counts)
            minor = indices(begin, end)
            places = [major, minor] if layout == "csr" else [minor, major]
            yield places if data is None else [*places, data(begin, end)]


def from_csr(
    indptr: Any,
    indices: Any,
    data: Any,
    shape: tuple[int, int],
    path: PathLike | None = None,
    *,
    layout: Layout = "csr",
    **options: Unpack[Settings],
) -> SparseMatrix:
    """Stores a matrix of compressed rows ("csr") or columns ("csc"): three arrays, lazy, NumPy's, h5py's or zarr's.

    `data` may be None: places only. `path` and `options` are those of `from_entries`. Raises ShapeError for arrays
    whose lengths do not go together, FormatError for an `indptr` that falls. I/O: one read of the arrays, one write of
    8 to 16 bytes an entry and its value, then as `from_entries`.

    >>> import outcore as oc, scipy.sparse, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.ocs"
    >>> m = scipy.sparse.eye(3).tocsr()
    >>> oc.sparse.from_csr(m.indptr, m.indices, m.data, m.shape, path).nnz
    3
    """
    if layout not in ("csr", "csc"):
        raise ArgumentError(f"from_csr: layout={layout!r} is neither 'csr' nor 'csc'")
    lines = int(shape[0] if layout == "csr" else shape[1])
    if tuple(indptr.shape) != (lines + 1,) or (data is not None and tuple(data.shape) != tuple(indices.shape)):
        data_shape = None if data is None else tuple(data.shape)
        raise ShapeError(
            f"from_csr: indptr {tuple(indptr.shape)}, indices {tuple(indices.shape)}, data {data_shape}, shape {shape}"
        )
    with whole_run(INGEST):
        count = int(_reader(indptr)(lines, lines + 1)[0])
        if count != indices.shape[0]:
            raise ShapeError(f"from_csr: indptr ends with {count}, and there are {indices.shape[0]} indices")
        read = None if data is None else _reader(data)
        chunks = entries_of(lines, _reader(indptr), _reader(indices), read, layout)
        size = (int(shape[0]), int(shape[1]))
        return stored(chunks, path, None, Options(**options, shape=size))


def from_anndata(
    source: PathLike, path: PathLike | None = None, *, group: str = "X", **options: Unpack[Settings]
) -> SparseMatrix:
    """Stores a sparse matrix of AnnData's: a group `X`, `layers/counts`, … of an `.h5ad` file or a `.zarr` folder.

    The same layout under other names of files is read as well: groups of `data`, `indices` and `indptr` with the
    attributes `shape` and `encoding-type`. Needs h5py, or zarr for folders. `path` and `options` are those of
    `from_entries`. Raises UnsupportedFormatError for a group that is none. I/O: as `from_csr`.

    >>> import h5py, numpy as np, outcore as oc, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> with h5py.File(folder / "a.h5ad", "w") as file:
    ...     group = file.create_group("X")
    ...     group.attrs.update({"encoding-type": "csr_matrix", "shape": (2, 3)})
    ...     group["indptr"], group["indices"], group["data"] = [0, 1, 2], [2, 0], np.ones(2)
    >>> oc.sparse.from_anndata(folder / "a.h5ad", folder / "a.ocs").shape
    (2, 3)
    """
    with refusing(source, "open"):
        Path(source).stat()
    with group_of(Path(source)) as root:
        compressed = of_group(root, str(source), group)
    if isinstance(compressed, Coordinates):
        return stored(compressed.chunks(), path, None, Options(**options, shape=compressed.shape))
    return from_csr(
        compressed.indptr,
        compressed.indices,
        compressed.data,
        compressed.shape,
        path,
        layout=compressed.layout,
        **options,
    )


def from_binsparse(
    source: PathLike, path: PathLike | None = None, *, group: str = "", **options: Unpack[Settings]
) -> SparseMatrix:
    """Stores a matrix of Binsparse's, in an HDF5 file or Zarr folder: CSR, CSC, or coordinates, in whatever order.

    `group` is where its description and its arrays are, the whole file unless it is given. Needs h5py, or zarr for
    folders. `path` and `options` are those of `from_entries`. Raises UnsupportedFormatError for other formats,
    FormatError for what is none. I/O: as `from_csr`.

    Source: Binsparse specification 0.1.

    >>> import h5py, json, numpy as np, outcore as oc, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> told = {"version": "0.1", "format": "COO", "shape": [2, 3], "data_types": {"values": "float64"}}
    >>> with h5py.File(folder / "a.h5", "w") as file:
    ...     file.attrs["binsparse"] = json.dumps({"binsparse": told})
    ...     file["indices_0"], file["indices_1"], file["values"] = [1, 0], [2, 0], np.ones(2)
    >>> oc.sparse.from_binsparse(folder / "a.h5", folder / "a.ocs").nnz
    2
    """
    return from_anndata(source, path, group=group, **options)


def from_npz(source: PathLike, path: PathLike | None = None, **options: Unpack[Settings]) -> SparseMatrix:
    """Stores the matrix of a file of `scipy.sparse.save_npz`: of compressed rows or columns, or coordinates.

    `path` and `options` are those of `from_entries`. Raises UnsupportedFormatError for other layouts, FormatError for a
    file that is none or was cut off. I/O: as `from_csr`; packed arrays are unpacked on the way.

    >>> import outcore as oc, scipy.sparse, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> scipy.sparse.save_npz(folder / "a.npz", scipy.sparse.eye(3).tocsr())
    >>> oc.sparse.from_npz(folder / "a.npz", folder / "a.ocs").nnz
    3
    """
    opened(source).close()
    with contextlib.ExitStack() as stack:
        with reading_members(str(source)):
            archive = stack.enter_context(unzipped(stack.enter_context(reading(source))))
            shape, chunks = _members(archive, source)
        return stored(chunks, path, stamp_of(source), Options(**options, shape=shape))


def _members(archive: ZipFile, source: PathLike) -> tuple[tuple[int, int], Iterator[Chunk]]:
    try:
        layout, (rows, columns) = described_by_npz(archive)
        data = Member(archive, "data.npy")
        if layout in ("csr", "csc"):
            lines = rows if layout == "csr" else columns
            indptr, indices = Member(archive, "indptr.npy"), Member(archive, "indices.npy")
            by: Layout = "csr" if layout == "csr" else "csc"
            return (rows, columns), entries_of(lines, indptr, indices, data, by)
        if layout == "coo":
            parts = [Member(archive, name) for name in ("row.npy", "col.npy")] + [data]
            return (rows, columns), _pieces(parts, data.shape[0])
    except (KeyError, ValueError) as error:
        if isinstance(error, OutcoreError):
            raise
        raise FormatError(f"{source}: is no file of scipy.sparse.save_npz: {error}") from None
    raise UnsupportedFormatError(f"{source}: layout {layout!r}; csr, csc and coo are read")


def _pieces(parts: list[Member], count: int) -> Iterator[Chunk]:
    for begin in range(0, count, _PIECE):
        yield [part(begin, min(begin + _PIECE, count)) for part in parts]


def from_table(
    source: Any,
    path: PathLike | None = None,
    *,
    rows: str,
    columns: str,
    values: str | None = None,
    **options: Unpack[Options],
) -> SparseMatrix:
    """Stores the matrix whose rows, columns and values are columns of a Parquet file or of tables.

    `source` is a path (which needs pyarrow), a `pyarrow.Table`, or an iterable of tables whose columns go by name:
    Arrow's record batches, data frames, dicts of arrays. Without a `shape` the matrix is square. `path` and `options`
    are those of `from_entries`. Raises ArgumentError for a column that is not there, FormatError for one with nulls.

    I/O: one read of these columns, one write of 8 to 16 bytes an entry and its value, then as `from_entries`.

    >>> import outcore as oc, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.ocs"
    >>> tables = [{"from": [0, 2], "to": [1, 1]}, {"from": [1], "to": [2]}]
    >>> oc.sparse.from_table(tables, path, rows="from", columns="to").nnz
    3
    """
    names = [rows, columns] + ([] if values is None else [values])
    if isinstance(source, (str, Path)):
        opened(source).close()
        description = f"{stamp_of(source)} {json.dumps(names)}"
        return stored(_table_entries(_batches(source, names), names), path, description, options, square=True)
    tables = source.to_batches() if hasattr(source, "to_batches") else source
    return stored(_table_entries(tables, names), path, None, options, square=True)


def _batches(source: PathLike, names: list[str]) -> Iterator[Any]:
    """Rows of a Parquet file, some at a time. Arrow would read row groups whole, in threads, and keep what it frees:
    none of that counts against the limit."""
    import pyarrow as pa
    from pyarrow import parquet

    with reading(source) as opened_file:
        file = parquet.ParquetFile(opened_file, buffer_size=_ARROW_BUFFER, pre_buffer=False)
        for batch in file.iter_batches(batch_size=_ARROW_ROWS, columns=names, use_threads=False):
            yield {name: numbers_of(batch[name]) if _is_whole(batch[name]) else batch[name] for name in names}
        del file
    pa.default_memory_pool().release_unused()


def _is_whole(column: Any) -> bool:
    """Whether all elements of a column of Arrow's are there, as numbers."""
    import pyarrow as pa

    return not column.null_count and (pa.types.is_integer(column.type) or pa.types.is_floating(column.type))


def _table_entries(tables: Iterable[Any], names: list[str]) -> Iterator[Chunk]:
    for table in tables:
        try:
            columns = [table[name] for name in names]
        except KeyError as error:
            raise ArgumentError(f"from_table: there is no column {error}") from None
        for name, column in zip(names, columns, strict=True):
            nulls = getattr(column, "null_count", 0)
            nulls = nulls() if callable(nulls) else nulls
            if nulls:
                raise FormatError(f"from_table: column {name!r} has {nulls} nulls")
        yield [np.asarray(column) for column in columns]


__all__ = ["from_anndata", "from_binsparse", "from_csr", "from_npz", "from_table"]
