"""Stored matrices as other packages' files, a few tile rows in memory at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from outcore._base import files
from outcore._base.element_types import DTypeLike
from outcore._base.types import DType, NDArray, PathLike
from outcore._session.whole import whole_run
from outcore.errors import ArgumentError, DTypeError, TargetExistsError, UnsupportedFormatError
from outcore.sparse._matrix import SparseMatrix

if TYPE_CHECKING:
    from zipfile import ZipFile

_PIECE = 1 << 16  # entries that become text at once
_FIELDS = {"b": "integer", "i": "integer", "u": "integer", "f": "real", "c": "complex"}


@contextmanager
def _published(path: PathLike, overwrite: bool) -> Iterator[Path]:
    """A path beside `path`, which takes its name when all went well, and is gone else."""
    target = Path(path).absolute()
    if target.exists() and not overwrite:
        raise TargetExistsError(f"{target}: is there already; overwrite=True replaces it", {"path": str(target)})
    beside = target.with_name(f".{target.name}.{os.getpid()}.new")
    try:
        yield beside
        files.publish(beside, target)
    finally:
        beside.unlink(missing_ok=True)


def to_edges(
    matrix: SparseMatrix,
    path: PathLike,
    *,
    binary: bool = False,
    ids: DTypeLike = np.uint32,
    separator: str = "\t",
    base: int = 0,
    overwrite: bool = False,
) -> Path:
    """Writes a line for each entry, or with `binary` a record: row and column of the type `ids`, and the value if any.

    Entries come in the order of the tiles. Rows and columns count from `base`; floats are written so that they are read
    back the same. Raises TargetExistsError without `overwrite`, DTypeError where the numbers exceed `ids`.

    I/O: one read of the matrix, one write.

    >>> import outcore as oc, scipy.sparse, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> A = oc.sparse.from_scipy(scipy.sparse.eye(2), folder / "a.ocs")
    >>> oc.sparse.to_edges(A, folder / "a.txt").read_text().split()
    ['0', '0', '1.0', '1', '1', '1.0']
    """
    kind = np.dtype(ids)
    if binary and (kind.kind not in "iu" or max(matrix.shape) + base - 1 > np.iinfo(kind).max):
        raise DTypeError(f"to_edges: numbers of a matrix {matrix.shape} are not all numbers of {kind}")
    write = _records(matrix, kind, base) if binary else _lines(separator, base, matrix.is_pattern)
    with _published(path, overwrite) as beside, beside.open("wb") as file:
        for part in matrix.blocks():
            write(file, *part)
    return Path(path)


Write = Callable[[IO[bytes], npt.NDArray[np.uint64], npt.NDArray[np.uint64], NDArray], None]


def _records(matrix: SparseMatrix, kind: DType, base: int) -> Write:
    fields = [("row", kind), ("column", kind)] + ([] if matrix.is_pattern else [("value", matrix.dtype)])

    def write(file: IO[bytes], rows: NDArray, columns: NDArray, values: NDArray) -> None:
        made = np.empty(len(rows), np.dtype(fields))
        made["row"], made["column"] = rows + np.uint64(base), columns + np.uint64(base)
        if not matrix.is_pattern:
            made["value"] = values
        file.write(made.data)

    return write


def _lines(separator: str, base: int, pattern: bool) -> Write:
    between = np.frombuffer(separator.encode(), np.uint8)

    def write(file: IO[bytes], rows: NDArray, columns: NDArray, values: NDArray) -> None:
        for begin in range(0, len(rows), _PIECE):
            piece = slice(begin, begin + _PIECE)
            parts = [_letters(rows[piece] + np.uint64(base)), _letters(columns[piece] + np.uint64(base))]
            parts += [] if pattern else [_letters(part) for part in _numbers(values[piece])]
            joined: list[npt.NDArray[np.uint8]] = []
            for part in parts:
                joined += [part, np.broadcast_to(between, (len(part), len(between)))]
            joined[-1] = np.full((len(parts[0]), 1), ord("\n"), np.uint8)
            lines = np.concatenate(joined, axis=1)
            file.write(lines[lines != 0].data)  # numbers are as long as they are, line by line

    return write


def _letters(numbers: NDArray) -> npt.NDArray[np.uint8]:
    """Numbers as the shortest text that is read back the same: a row of letters each, and zeros behind."""
    if numbers.dtype.kind == "u" and numbers.size:
        numbers = numbers.astype(np.min_scalar_type(numbers.max()))  # text is as wide as its type may ask for
    text = np.ascontiguousarray(numbers).astype("S")
    return text.view(np.uint8).reshape(len(text), text.itemsize)


def _numbers(values: NDArray) -> list[NDArray]:
    """Complex values as two columns, bools as 0 and 1."""
    if values.dtype.kind == "c":
        return [values.real, values.imag]
    return [values.astype(np.uint8) if values.dtype.kind == "b" else values]


def to_mtx(matrix: SparseMatrix, path: PathLike, *, overwrite: bool = False) -> Path:
    """Writes a Matrix Market file of coordinates, general, with the field that the values have; bool as integers.

    Values of uint64 have the field "unsigned-integer", which readers of int64 do not take for another number.

    I/O: one read of the matrix, one write.

    >>> import outcore as oc, scipy.sparse, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> A = oc.sparse.from_scipy(scipy.sparse.eye(2), folder / "a.ocs")
    >>> oc.sparse.to_mtx(A, folder / "a.mtx").read_text().splitlines()[0]
    '%%MatrixMarket matrix coordinate real general'
    """
    field = "pattern" if matrix.is_pattern else _FIELDS[matrix.dtype.kind]
    if matrix.dtype == np.uint64 and not matrix.is_pattern:
        field = "unsigned-integer"
    head = f"%%MatrixMarket matrix coordinate {field} general\n{matrix.shape[0]} {matrix.shape[1]} {matrix.nnz}\n"
    write = _lines(" ", 1, matrix.is_pattern)
    with _published(path, overwrite) as beside, beside.open("wb") as file:
        file.write(head.encode())
        for part in matrix.blocks():
            write(file, *part)
    return Path(path)


def to_npz(matrix: SparseMatrix, path: PathLike, *, compressed: bool = False, overwrite: bool = False) -> Path:
    """Writes a file that `scipy.sparse.load_npz` reads: coordinates in the order of the tiles.

    A pattern's values are true. Raises ArgumentError for a path that does not end in .npz, UnsupportedFormatError for
    numbers beyond int64. I/O: three reads of the matrix, one for each array, and one write.

    >>> import outcore as oc, scipy.sparse, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> A = oc.sparse.from_scipy(scipy.sparse.eye(2), folder / "a.ocs")
    >>> scipy.sparse.load_npz(oc.sparse.to_npz(A, folder / "a.npz")).nnz
    2
    """
    if Path(path).suffix != ".npz":
        raise ArgumentError(f"to_npz: {path} does not end in .npz")
    if max(matrix.shape) > 2**63:
        raise UnsupportedFormatError(f"to_npz: numbers of a matrix {matrix.shape} are not all int64")
    kind = np.dtype(np.int32 if max(matrix.shape) <= 2**31 else np.int64)
    from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

    packing = ZIP_DEFLATED if compressed else ZIP_STORED
    with (
        whole_run("export of a sparse matrix"),
        _published(path, overwrite) as beside,
        ZipFile(beside, "w", packing) as archive,
    ):
        for name, value in (("format", np.asarray(b"coo")), ("shape", np.asarray(matrix.shape, np.int64))):
            _member(archive, name, value.shape, value.dtype, iter([value]))
        for place, (name, dtype) in enumerate((("row", kind), ("col", kind), ("data", matrix.dtype))):
            _member(archive, name, (matrix.nnz,), dtype, (part[place] for part in matrix.blocks()))
    return Path(path)


def _member(
    archive: ZipFile,
    name: str,
    shape: tuple[int, ...],
    dtype: DType,
    parts: Iterator[NDArray],
) -> None:
    with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
        header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        for part in parts:
            file.write(np.asarray(part, dtype).tobytes())


__all__ = ["to_edges", "to_mtx", "to_npz"]
