"""First values of arrays, where they cost a page at most: those in memory, and those of the first page of a `.npy`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple
from weakref import WeakValueDictionary

import numpy as np

from outcore import _core
from outcore._base.shortened import short_values
from outcore._base.types import DType, NDArray
from outcore._session.session import current

_COUNT = 6
_PAGE_BYTES = 4096
_is_unread: ContextVar[bool] = ContextVar("outcore_unread", default=False)
_MAGIC = b"\x93NUMPY"
# By node the array that it borrows, for as long as the node does.
_borrowed: WeakValueDictionary[int, NDArray] = WeakValueDictionary()


@contextmanager
def unread() -> Iterator[None]:
    """Has representations within the block read no file: those of one object that holds several arrays."""
    token = _is_unread.set(True)
    try:
        yield
    finally:
        _is_unread.reset(token)


class FirstValues(NamedTuple):
    """The first values of an array in C order, and whether they are all that there are."""

    values: NDArray
    is_all: bool

    def __str__(self) -> str:
        return short_values(self.values, self.is_all)


def borrowed(array: NDArray) -> _core.Expr:
    """The node of a NumPy array, whose first values representations show."""
    expr = _core.from_numpy(array)
    _borrowed[expr.id] = array
    return expr


def first_rows(expr: _core.Expr, count: int = _COUNT) -> FirstValues | None:
    """The first elements along the first axis, of an array in memory; None of others, and of rows beyond a page."""
    array = _borrowed.get(expr.id)
    if array is None or array.ndim == 0:
        return None
    row_bytes = math.prod(array.shape[1:]) * array.itemsize
    if count * row_bytes > _PAGE_BYTES:
        return None
    return FirstValues(array[:count], array.shape[0] <= count)


def first_values(expr: _core.Expr) -> FirstValues | None:
    """The first values of an array in memory, or of a file of which one page tells them; None of all others.

    I/O: a page of a `.npy` in C order that is what it was when it was opened, and its header; none of others.
    """
    shape = tuple(expr.shape)
    array = _borrowed.get(expr.id)
    if array is not None:
        row = array if array.ndim == 1 else array[(0,) * (array.ndim - 1)] if all(shape) else array.reshape(-1)
        row = row.reshape(1) if array.ndim == 0 else row[:_COUNT]
    else:
        page = _first_of_file(expr)
        if page is None:
            return None
        row = page[: min(_COUNT, shape[-1])] if shape else page[:1]
    return FirstValues(row, math.prod(shape) == row.size)


def _first_of_file(expr: _core.Expr) -> NDArray | None:
    path = expr.op
    if (
        _is_unread.get()
        or expr.inputs
        or not path.endswith(".npy")
        or [str(part) for part in _core.sources(expr)] != [path]
    ):
        return None
    try:
        # A file that changed since is another node. Who opens it reads the page that the values are in.
        if _core.open(current()._core, path).digest != expr.digest:
            return None
        with open(path, "rb", buffering=0) as file:
            page = file.read(_PAGE_BYTES)
    except Exception:  # whatever hinders a read: a representation says what is known without
        return None
    return _parsed(page, tuple(expr.shape), np.dtype(expr.dtype))


def _parsed(page: bytes, shape: tuple[int, ...], dtype: DType) -> NDArray | None:
    """The values behind the header of a `.npy`; None where the page has no such, or they are in another order."""
    if page[:6] != _MAGIC or len(page) < 12:
        return None
    start, width = (10, 2) if page[6] == 1 else (12, 4)
    end = start + int.from_bytes(page[8 : 8 + width], "little")
    header = page[start:end].replace(b" ", b"")
    is_c_order = b"'fortran_order':False" in header or len(shape) < 2
    if end >= len(page) or not is_c_order or f"'descr':'{dtype.str}'".encode() not in header:
        return None
    count = min(_COUNT, (len(page) - end) // dtype.itemsize)
    return np.frombuffer(page, dtype, count, end) if count else None


__all__ = ["FirstValues", "borrowed", "first_rows", "first_values", "unread"]
