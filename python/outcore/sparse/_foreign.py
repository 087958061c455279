"""Matrices that others stored by rows or columns, opened where they lie: SciPy's, AnnData's and Binsparse's."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from types import EllipsisType
from typing import IO, TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from outcore import _core
from outcore._base.archives import STORED, lying_in, reading_members, unzipped
from outcore._base.element_types import DTypeLike
from outcore._base.files import npy_header_of, reading, refuse_stub
from outcore._base.system_errors import refusing
from outcore._base.types import NDArray
from outcore._lazy.array import Array
from outcore._lazy.foreign import lying
from outcore._lazy.node import node
from outcore._session.session import current
from outcore._standard.creation import asarray
from outcore.errors import ArgumentError, FormatError, SourceChangedError, UnsupportedFormatError
from outcore.sparse._content import PassingEntries
from outcore.sparse._matrix import SparseMatrix
from outcore.sparse._rowwise import Column
from outcore.sparse._spool import Chunk, stamp_of

if TYPE_CHECKING:
    from zipfile import ZipFile

Layout = Literal["csr", "csc"]
# The arrays of a group, as AnnData and as Binsparse names them.
_ANNDATA = ("indptr", "indices", "data")
_BINSPARSE = ("pointers_to_1", "indices_1", "values")
_COORDINATES = ("indices_0", "indices_1", "values")
# Of Binsparse's formats: whether rows come one after the other, or columns, and whether as coordinates.
_FORMATS: dict[str, tuple[Layout, bool]] = {
    "CSR": ("csr", False),
    "CSC": ("csc", False),
    "COO": ("csr", True),
    "COOR": ("csr", True),
    "COOC": ("csc", True),
}
# Entries that are looked at together, and rows for each entry of which row pointers are written.
_PIECE = 1 << 18
_ROWS_MAX = 64


class Compressed(NamedTuple):
    """A matrix of compressed rows ("csr") or columns ("csc"): its three arrays, lazy or such that can be."""

    layout: Layout
    shape: tuple[int, int]
    indptr: Array
    indices: Array
    data: Array | None

    def opened(self, name: str, side: int) -> SparseMatrix:
        """The matrix, whose row pointers are read once."""
        parts = [None if part is None else _stored(part) for part in (self.indptr, self.indices, self.data)]
        by_rows = self.shape if self.layout == "csr" else self.shape[::-1]
        indptr, indices, data = parts
        if indptr is None or indices is None:
            raise FormatError(f"{name}: there is no indptr, or there are no indices")
        core = _core.open_rows(current()._core, name, indptr, indices, data, by_rows, side)
        return SparseMatrix(PassingEntries(core), transposed=self.layout == "csc")


class Coordinates(NamedTuple):
    """A matrix of coordinates: numbers of rows ("csr") or columns ("csc"), which should ascend, and of the others."""

    layout: Layout
    shape: tuple[int, int]
    major: Array
    minor: Array
    data: Array | None

    def opened(self, name: str, side: int) -> SparseMatrix:
        """The matrix. Its rows are read once, and pointers to them written to scratch."""
        lengths = {tuple(part.shape) for part in (self.major, self.minor, self.data) if part is not None}
        if lengths != {(self.major.size,)} or self.major.dtype.kind not in "iu":
            raise FormatError(f"{name}: coordinates of shapes {sorted(lengths)} and type {self.major.dtype}")
        lines = self.shape[0 if self.layout == "csr" else 1]
        if lines > _ROWS_MAX * max(self.major.size, _PIECE):
            raise UnsupportedFormatError(
                f"{name}: {self.major.size} entries in {lines} rows, pointers to which would take more than they; "
                "convert it by outcore.sparse.from_binsparse"
            )
        with contextlib.ExitStack() as stack:
            column = Column(stack, np.dtype(np.int64), lines + 1)
            for part in self._pointers(name, lines):
                column.append(part)
            stack.close()
            indptr = Array(column.held())
        return Compressed(self.layout, self.shape, indptr, self.minor, self.data).opened(name, side)

    def _pointers(self, name: str, lines: int) -> Iterator[npt.NDArray[np.int64]]:
        """Where each row begins, and the last ends. Raises where rows do not ascend, or leave the matrix."""
        next_row, last = 0, 0
        for begin in range(0, self.major.size, _PIECE):
            majors = np.asarray(self.major[begin : begin + _PIECE].compute())
            if int(majors[0]) < last or (majors[1:] < majors[:-1]).any():
                lines_of = "rows" if self.layout == "csr" else "columns"
                raise UnsupportedFormatError(
                    f"{name}: its entries are not sorted by {lines_of}; convert it by outcore.sparse.from_binsparse"
                )
            last = int(majors[-1])
            if last >= lines or int(majors[0]) < 0:
                raise FormatError(f"{name}: has {'row' if self.layout == 'csr' else 'column'} {last} of {lines}")
            # Rows up to the last one here begin here, or where nothing lay before.
            for row in range(next_row, last + 1, _PIECE):
                rows = np.arange(row, min(row + _PIECE, last + 1), dtype=majors.dtype)
                yield begin + np.searchsorted(majors, rows)
            next_row = max(next_row, last + 1)
        for row in range(next_row, lines + 1, _PIECE):
            yield np.full(min(_PIECE, lines + 1 - row), self.major.size)

    def chunks(self) -> Iterator[Chunk]:
        """Rows, columns and values, some at a time."""
        places = [self.major, self.minor] if self.layout == "csr" else [self.minor, self.major]
        parts = places if self.data is None else [*places, self.data]
        for begin in range(0, self.major.size, _PIECE):
            yield [np.asarray(part[begin : begin + _PIECE].compute()) for part in parts]


def _stored(array: object) -> _core.Expr:
    return array._expr if isinstance(array, Array) else node(array)


def is_foreign(path: Path) -> bool:
    """Whether a path is that of another format than outcore's, by its name."""
    return path.suffix in (".npz", ".h5ad", ".h5", ".hdf5", ".bsp") or path.is_dir()


def open_foreign(path: Path, group: str | None, side: int) -> SparseMatrix:
    """A matrix in a file of `scipy.sparse.save_npz`, or in a group of an HDF5 file or Zarr folder."""
    with refusing(path, "open"):
        path.stat()
    if path.suffix == ".npz":
        if group is not None:
            raise ArgumentError(f"{path}: has no groups, and group={group!r} is given")
        return npz(path).opened(str(path), side)
    with group_of(path) as root:
        name = group if group is not None else "X" if _has(root, "X") else ""
        stored_matrix = of_group(root, str(path), name)
    return stored_matrix.opened(f"{path}/{name}" if name else str(path), side)


@contextlib.contextmanager
def group_of(path: Path) -> Iterator[Any]:
    """The group that an HDF5 file or a Zarr folder is. Raises FormatError for one that is damaged."""
    if path.is_dir():
        try:
            import zarr
        except ImportError:
            raise ImportError(f"{path}: matrices in Zarr folders need zarr: pip install zarr") from None
        try:
            root = zarr.open_group(str(path), mode="r")
        except Exception as error:
            raise FormatError(f"{path}: {error}") from None
        with reading_members(str(path)):
            yield root
        return
    try:
        import h5py
    except ImportError:
        raise ImportError(f"{path}: matrices in HDF5 files need h5py: pip install h5py") from None
    refuse_stub(path, "HDF5's library")
    with refusing(path, "open"), reading_members(str(path)), h5py.File(path, "r") as file:
        yield file


def _has(root: Any, name: str) -> bool:
    return name in root and hasattr(root[name], "keys")


def of_group(root: Any, source: str, name: str) -> Compressed | Coordinates:
    """The matrix of a group of AnnData's or Binsparse's."""
    if name and not _has(root, name):
        raise UnsupportedFormatError(f"{source}: there is no group {name!r}")
    member = root[name] if name else root
    description = member.attrs.get("binsparse")
    if description is not None:
        return _binsparse(member, f"{source}: {name!r}" if name else source, description)
    kind = str(member.attrs.get("encoding-type", member.attrs.get("h5sparse_format", "")))
    shape = member.attrs.get("shape", member.attrs.get("h5sparse_shape"))
    if kind.removesuffix("_matrix") not in ("csr", "csc") or shape is None:
        raise UnsupportedFormatError(f"{source}: {name!r} is {kind or 'no'} matrix; csr_matrix and csc_matrix are read")
    layout: Layout = "csr" if kind.startswith("csr") else "csc"
    return Compressed(layout, (int(shape[0]), int(shape[1])), *_members_of(member, _ANNDATA, f"{source}: {name!r}"))


def _members_of(group: Any, names: tuple[str, str, str], source: str) -> tuple[Array, Array, Array]:
    missing = [name for name in names if name not in group]
    if missing:
        raise FormatError(f"{source}: there is no array {missing[0]!r}")
    first, second, third = (_array(group[name]) for name in names)
    return first, second, third


def _array(array: object) -> Array:
    """As an array of outcore where it is one of HDF5 or Zarr."""
    if type(array).__module__.partition(".")[0] != "h5py":
        return asarray(array)
    expr = lying(array, np.dtype(array.dtype))  # type: ignore[attr-defined]
    return asarray(_Reopened(array)) if expr is None else Array(expr)


class _Reopened:
    """A dataset of HDF5 whose file is open while it is read: so it can be written again when nothing reads it."""

    def __init__(self, dataset: Any) -> None:
        self._path, self.name = str(dataset.file.filename), dataset.name
        self.shape, self.dtype, self.chunks = dataset.shape, dataset.dtype, dataset.chunks
        self._stamp = stamp_of(self._path)

    def __getitem__(self, block: tuple[slice, ...] | EllipsisType) -> NDArray:
        import h5py

        if stamp_of(self._path) != self._stamp:
            raise SourceChangedError(f"{self._path}: has changed since it was opened; open it again")
        with refusing(self._path, "read"), reading_members(self._path), h5py.File(self._path, "r") as file:
            block_values: NDArray = file[self.name][block]
        return block_values

    def __array__(self, dtype: DTypeLike = None, copy: bool | None = None) -> NDArray:
        return np.asarray(self[...], dtype)


def _binsparse(group: Any, source: str, description: Any) -> Compressed | Coordinates:
    """A matrix by the description that Binsparse puts beside its arrays (version 0.1). Values "bint8" stay uint8."""
    try:
        content = json.loads(description) if isinstance(description, (str, bytes)) else dict(description)
        content = content.get("binsparse", content)
        kind, (rows, columns) = str(content["format"]).upper(), content["shape"]
        types = dict(content["data_types"])
    except (ValueError, KeyError, TypeError) as error:
        raise FormatError(f"{source}: is described as no matrix of Binsparse: {error!r}") from None
    if kind not in _FORMATS:
        raise UnsupportedFormatError(f"{source}: format {content['format']!r}; {', '.join(_FORMATS)} are read")
    if content.get("structure"):
        raise UnsupportedFormatError(f"{source}: structure {content['structure']!r}; general matrices are read")
    if content.get("fill") and ("fill_value" not in group or np.any(group["fill_value"][...])):
        raise UnsupportedFormatError(f"{source}: has another number than 0 where no entry is")
    layout, by_coordinates = _FORMATS[kind]
    values: Array | None
    first, second, values = _members_of(group, _COORDINATES if by_coordinates else _BINSPARSE, source)
    kind_of_values = str(types.get("values", ""))
    if kind_of_values.startswith("complex["):
        raise UnsupportedFormatError(f"{source}: values of {kind_of_values}")
    if kind_of_values.startswith("iso["):
        values = _of_all(values, first.size if by_coordinates else second.size, source)
    made = Coordinates if by_coordinates else Compressed
    return made(layout, (int(rows), int(columns)), first, second, values)


class _Repeated:
    """One value, as often as there are entries: read as a stored array is."""

    def __init__(self, value: NDArray, length: int) -> None:
        self._value, self.shape, self.dtype = value, (length,), value.dtype

    def __getitem__(self, block: tuple[slice, ...] | EllipsisType) -> NDArray:
        block_values: NDArray = np.broadcast_to(self._value, self.shape)[block]
        return block_values

    def __array__(self, dtype: DTypeLike = None, copy: bool | None = None) -> NDArray:
        return np.asarray(self[...], dtype)


def _of_all(values: Array, entries: int, source: str) -> Array | None:
    """The one value that all entries have, for each of them; None where it is 1, which a pattern says."""
    value = np.asarray(values[:1].compute())
    if len(value) != 1:
        raise FormatError(f"{source}: all entries have one value, and there is none")
    return None if value[0] == 1 else asarray(_Repeated(value, entries))


class Member:
    """A `.npy` array within a zip file: where it lies, or what is read of it from its beginning on."""

    def __init__(self, archive: ZipFile, name: str) -> None:
        self._file: IO[bytes] = archive.open(name)
        self._archive, self._about = str(archive.filename), archive.getinfo(name)
        self._name = f"{archive.filename}: {name}"
        with reading_members(self._name):
            self.shape, self.dtype, _, _ = npy_header_of(self._file)
        if self.dtype.hasobject:
            raise UnsupportedFormatError(f"{self._name}: holds Python objects")
        self._place = 0
        self._last = np.zeros(0, self.dtype)

    def __call__(self, begin: int, end: int) -> NDArray:
        """Elements; the first of them may be the last of those before."""
        again = self._last if begin == self._place - 1 else self._last[:0]
        size = (end - begin - len(again)) * self.dtype.itemsize
        with reading_members(self._name):
            raw = self._file.read(size)
        if len(raw) != size:
            raise FormatError(f"{self._name}: ends {size - len(raw)} bytes too early")
        elements = np.concatenate([again, np.frombuffer(raw, self.dtype)])
        self._place, self._last = end, elements[-1:]
        return elements

    def whole(self) -> NDArray:
        """All of a short array."""
        return self(0, int(np.prod(self.shape))).reshape(self.shape)

    def lying(self) -> Array:
        """The array as it lies in the zip file, lazily."""
        if self._about.compress_type != STORED:
            raise UnsupportedFormatError(
                f"{self._name}: is packed, and can only be read from its beginning on; save it by "
                "scipy.sparse.save_npz(..., compressed=False), or convert it by outcore.sparse.from_npz"
            )
        begin = lying_in(self._archive, self._about).offset
        swapped = self.dtype.byteorder == ">"
        kind, length = self.dtype.newbyteorder("="), int(np.prod(self.shape))
        core = current()._core
        return Array(_core.open_raw(core, str(Path(self._archive).absolute()), begin, [length], kind.name, swapped))


def described_by_npz(archive: ZipFile) -> tuple[str, tuple[int, int]]:
    """Layout and shape of a matrix of `scipy.sparse.save_npz`."""
    name = Member(archive, "format.npy").whole().item()
    rows, columns = (int(length) for length in Member(archive, "shape.npy").whole())
    if not (0 <= rows < 1 << 63 and 0 <= columns < 1 << 63):
        raise FormatError(f"{archive.filename}: shape ({rows}, {columns}) is no matrix's")
    return name.decode() if isinstance(name, bytes) else str(name), (rows, columns)


def npz(path: Path) -> Compressed:
    """The matrix of a file of `scipy.sparse.save_npz`, not packed."""
    name = f"{path}: as a file of scipy.sparse.save_npz"
    with reading(path) as file, reading_members(name), unzipped(file) as archive:
        layout, shape = described_by_npz(archive)
        if layout not in ("csr", "csc"):
            raise UnsupportedFormatError(f"{path}: layout {layout!r}; csr and csc are opened as they are")
        parts = [Member(archive, f"{name}.npy").lying() for name in _ANNDATA]
    return Compressed("csr" if layout == "csr" else "csc", shape, *parts)


__all__ = [
    "Compressed",
    "Coordinates",
    "Layout",
    "Member",
    "is_foreign",
    "npz",
    "of_group",
    "open_foreign",
    "described_by_npz",
]
