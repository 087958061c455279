"""Numbers with their places along an axis, packed into integers whose order is that of the places.

The last number before a NaN is then a running maximum, and the first number of a group its least: one read each.
"""

from __future__ import annotations

import numpy as np

from outcore import _api as oc
from outcore._base.types import DType, NDArray
from outcore._lazy.array import Array

_BITS = 32
_LOW = (1 << _BITS) - 1
NOTHING_LAST, NOTHING_FIRST = -1, np.iinfo(np.int64).max  # what a NaN is where the largest, or the least, is asked for


def _upper(tile: NDArray) -> NDArray:
    return (tile.view(np.uint64) >> np.uint64(_BITS)).astype(np.int64)


def _lower(tile: NDArray) -> NDArray:
    return (tile.view(np.uint64) & np.uint64(_LOW)).astype(np.int64)


def _single(tile: NDArray) -> NDArray:
    return tile.view(np.uint32).astype(np.int64)


def keys_of(array: Array, axis: int, nothing: int) -> list[Array]:
    """Place · 2³² + bits of each number, `nothing` for NaN: one array of int64, two for numbers of 64 bits.

    I/O: none of its own.
    """
    wide = array.dtype.itemsize == 8
    array = array if wide else array.astype(np.float32)
    places = np.arange(array.shape[axis], dtype=np.int64).reshape(-1, *(1,) * (array.ndim - axis - 1)) << _BITS
    missing = oc.isnan(array)
    halves = (_upper, _lower) if wide else (_single,)
    return [oc.where(missing, nothing, oc.map_blocks(half, array, dtype=np.int64) + places) for half in halves]


def _joined(*keys: NDArray) -> NDArray:
    bits = [(key & _LOW).astype(np.uint64) for key in keys]
    if len(bits) == 2:
        numbers = ((bits[0] << np.uint64(_BITS)) | bits[1]).view(np.float64)
    else:
        numbers = bits[0].astype(np.uint32).view(np.float32)
    return np.where((keys[0] < 0) | (keys[0] == NOTHING_FIRST), np.nan, numbers).astype(numbers.dtype)


def numbers_of(keys: list[Array], dtype: DType) -> Array:
    """The numbers that keys were made of; NaN where there is none."""
    kind = np.float64 if len(keys) == 2 else np.float32
    return oc.map_blocks(_joined, *keys, dtype=kind).astype(dtype)


def forward_filled(array: Array, limit: int | None = None, axis: int = -1) -> Array:
    """Each NaN as the last number before it along an axis, `limit` places away at most. I/O: one read."""
    place = axis % array.ndim
    if array.dtype.kind != "f" or array.shape[place] == 0:
        return array
    last = [oc.cummax(key, axis=place) for key in keys_of(array, place, NOTHING_LAST)]
    filled = numbers_of(last, array.dtype)
    if limit is None:
        return filled
    places = np.arange(array.shape[place], dtype=np.int64).reshape(-1, *(1,) * (array.ndim - place - 1))
    return oc.where(places - (last[0] >> _BITS) <= limit, filled, np.nan).astype(array.dtype)


def extreme_number(array: Array, axis: int, is_last: bool) -> Array:
    """The first or last number along an axis that is not NaN; NaN where all are. I/O: one read."""
    nothing, reduce = (NOTHING_LAST, oc.max) if is_last else (NOTHING_FIRST, oc.min)
    return numbers_of([reduce(key, axis=axis) for key in keys_of(array, axis, nothing)], array.dtype)


__all__ = ["NOTHING_FIRST", "NOTHING_LAST", "extreme_number", "forward_filled", "keys_of", "numbers_of"]
