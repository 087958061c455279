"""Entries in scratch, row after row, as columns that are lazy arrays."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from outcore import _core
from outcore._base.types import DType, NDArray
from outcore._lazy.array import Array
from outcore._run import masks
from outcore._session.session import current
from outcore._session.whole import whole_run
from outcore.sparse._stored import StoredMatrix
from outcore.sparse._stream import Part, as_read, parts

# Memory for an entry while those of a tile row are put in order, beside copies of its value.
_ENTRY_BYTES = 48
# Rows without entries that are written together.
_ROWS_MAX = 1 << 18
_Rows = tuple[npt.NDArray[np.uint64], Part]


class ByRow(NamedTuple):
    """Entries by rows and columns. Each row begins with one that is none, in column 0, which `first` marks."""

    columns: Array
    values: Array | None
    first: Array
    lasts: tuple[_core.Expr, list[int]]  # a mask of the last of each row, and its counts


def by_row(a: StoredMatrix) -> ByRow:
    """The entries of a matrix in files, which go when nothing reads them any more.

    I/O: a read of `a`; of a transpose the sort of `copy` before it. A write of the column (4 bytes, or 8 from 2³²
    columns on), the value and two flags of each entry and of one more for each row; a read of one flag.
    """
    with whole_run("entries of a sparse matrix by rows"):
        return _by_row(as_read(a) if a._transposed else a)


def _by_row(a: StoredMatrix) -> ByRow:
    length = a.nnz + a.shape[0]
    kinds = [np.dtype(np.uint32 if a.shape[1] < 1 << 32 else np.int64), np.dtype(bool), np.dtype(bool)]
    kinds += [] if a.is_pattern else [a.dtype]
    with contextlib.ExitStack() as stack:
        files = [Column(stack, kind, length) for kind in kinds]
        for begun, part in _with_all_rows(a):
            # Rows within a tile row are short numbers, which are sorted fast and take little memory.
            base = begun[0] if len(begun) else np.uint64(0)
            rows = np.concatenate([begun - base, part.rows - base]).astype(np.uint32)
            order = np.argsort(rows, kind="stable")
            rows = rows[order]
            new = np.ones(len(rows) + 1, dtype=bool)
            new[1:-1] = rows[1:] != rows[:-1]
            columns = np.concatenate([np.zeros(len(begun), kinds[0]), part.columns.astype(kinds[0])])[order]
            values = np.concatenate([np.zeros(len(begun), part.values.dtype), part.values])[order]
            del rows, order
            for file, data in zip(files, (columns, new[:-1], new[1:], values), strict=False):
                file.append(data)
        stack.close()
        arrays = [file.held() for file in files]
    columns_of, first, last, *values_of = arrays
    counts = masks.counts_of(last)[1]
    return ByRow(Array(columns_of), Array(values_of[0]) if values_of else None, Array(first), (last, counts))


def _with_all_rows(a: StoredMatrix) -> Iterator[_Rows]:
    """Entries with all the rows that they lie in, and rows in which none lie."""
    done, nothing = 0, np.zeros(0, dtype=np.uint64)
    none = Part(nothing, nothing, np.zeros(0, a.dtype), 0)
    side = a._content.side
    for part in itertools.chain(parts(a, _ENTRY_BYTES + 3 * a.dtype.itemsize), [none]):
        begin = a.shape[0] if part is none else int(part.rows.min()) // side * side
        for start in range(done, begin, _ROWS_MAX):
            yield np.arange(start, min(start + _ROWS_MAX, begin), dtype=np.uint64), none
        done = min(part.until, a.shape[0])
        if part is not none:
            yield np.arange(begin, done, dtype=np.uint64), part


class Column:
    """A `.npy` file in scratch, filled piece by piece."""

    def __init__(self, stack: contextlib.ExitStack, dtype: DType, length: int) -> None:
        self._core = current()._core
        self._path = self._core.unused_path()
        self._dtype = dtype
        self._file = stack.enter_context(open(self._path, "wb"))  # noqa: SIM115 - the stack closes it
        head = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": (length,)}
        np.lib.format.write_array_header_1_0(self._file, head)

    def append(self, values: NDArray) -> None:
        self._file.write(np.ascontiguousarray(values, dtype=self._dtype).view(np.uint8).data)

    def held(self) -> _core.Expr:
        """The array, whose file goes with its last reader."""
        return self._core.hold(self._path)


__all__ = ["ByRow", "Column", "by_row"]
