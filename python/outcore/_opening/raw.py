"""Arrays in files without a header, by what the caller says of them."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Sequence

import numpy as np

from outcore._base.element_types import DTypeLike
from outcore._base.files import Header
from outcore._base.system_errors import refusing
from outcore._base.types import DType
from outcore.errors import ArgumentError, DTypeError, FormatError, ShapeError

_LENGTH_MAX = 1 << 63


def raw_header(path: str, dtype: DTypeLike, shape: int | Sequence[int] | None, offset: int, order: str) -> Header:
    """The header that a file lacks. One length may be -1, as many as the file holds; None asks for that alone.

    Raises ArgumentError, DTypeError and ShapeError for what no array has, FormatError, with both lengths, for a file
    that is too short.
    """
    try:
        kind: DType = np.dtype(dtype)
    except (TypeError, ValueError) as error:
        raise DTypeError(f"open: {dtype!r} is not an element type: {error}") from None
    if kind.itemsize == 0:
        raise DTypeError(f"{path}: elements of {kind} have no bytes")
    if order not in ("C", "F"):
        raise ArgumentError(f'open: order is "C" or "F", not {order!r}')
    lengths = _lengths(shape)
    start = operator.index(offset)
    if not 0 <= start < _LENGTH_MAX:
        raise ArgumentError(f"open: an array begins at byte 0 of a file or behind it, not at {start}")
    with refusing(path, "open"):
        if os.path.isdir(path):
            raise FormatError(f"{path}: a folder; dtype= and shape= are for one file", {"path": path})
        bytes_in_file = os.stat(path).st_size
    if -1 in lengths:
        lengths = _with_the_rest(path, lengths, kind, start, bytes_in_file)
    need = start + math.prod(lengths) * kind.itemsize
    if need > bytes_in_file:
        raise FormatError(
            f"{path}: shape {lengths} of {kind} from byte {start} on needs {need} bytes, the file has {bytes_in_file}",
            {"path": path, "need": need, "bytes": bytes_in_file},
        )
    return Header(lengths, kind, order == "F" and len(lengths) > 1, start)


def _lengths(shape: int | Sequence[int] | None) -> tuple[int, ...]:
    if shape is None:
        return (-1,)
    try:
        lengths = tuple(operator.index(length) for length in (shape if isinstance(shape, Sequence) else [shape]))
    except TypeError:
        raise ShapeError(f"open: {shape!r} is no shape: lengths are integers") from None
    if any(not -1 <= length < _LENGTH_MAX for length in lengths) or lengths.count(-1) > 1:
        raise ShapeError(f"open: {lengths} is no shape: lengths are not negative, but for one that may be -1")
    return lengths


def _with_the_rest(path: str, lengths: tuple[int, ...], kind: DType, start: int, bytes_in_file: int) -> tuple[int, ...]:
    """The lengths with the one that follows from the file's."""
    each = math.prod(length for length in lengths if length != -1) * kind.itemsize
    if each == 0:
        raise ShapeError(f"open: in shape {lengths} any length may stand for -1")
    if start > bytes_in_file:
        raise FormatError(f"{path}: has {bytes_in_file} bytes, none from byte {start} on", {"path": path})
    count, remainder = divmod(bytes_in_file - start, each)
    if remainder:
        raise FormatError(
            f"{path}: {bytes_in_file - start} bytes from byte {start} on are no whole number of {each} bytes, which "
            f"shape {lengths} of {kind} has for each",
            {"path": path, "bytes": bytes_in_file},
        )
    return tuple(count if length == -1 else length for length in lengths)


__all__ = ["raw_header"]
