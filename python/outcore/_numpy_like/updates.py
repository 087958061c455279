"""`x[key] = value` as a new value behind the name: nothing that was made of the old one changes."""

from __future__ import annotations

import numpy as np

from outcore._lazy.array import Array
from outcore._lazy.indexing import Index, expanded, find_positions, position_of, split_mask
from outcore._lazy.node import Operand, node, put_as
from outcore._numpy_like.arranging import pad
from outcore._run.masks import check_leading
from outcore._standard.creation import arange
from outcore._standard.indexing import take
from outcore._standard.manipulation import broadcast_to, concat, flip, part_along, reshape
from outcore._standard.repeating import repeat
from outcore._standard.searching import count_nonzero, where
from outcore._standard.statistical import cumulative_sum
from outcore.elementwise import clip
from outcore.errors import IndexingError, ShapeError


def updated(x: Array, key: Index, value: Operand) -> Array:
    """The array with the elements that `key` names replaced by `value`, broadcast to them and cast to their type.

    Raises RangeError, ArgumentError or DTypeError for numbers that the type does not hold (see `put_as`).
    """
    put = Array(put_as(value, x.dtype))
    mask, indices = split_mask(key)
    if mask is not None:
        if indices:
            raise IndexingError("assignment: a mask stands alone in the index; put the others into it with &")
        return _chosen(x, Array(node(mask)), put)
    if find_positions(key, x.ndim):
        raise IndexingError("assignment to an array of positions is not supported; use a mask, a slice, or where()")
    return _sliced(x, key, put)


def _chosen(x: Array, mask: Array, put: Array) -> Array:
    check_leading(mask.shape, x.shape)
    others = x.shape[mask.ndim :]
    flags = broadcast_to(reshape(mask, mask.shape + (1,) * len(others)), x.shape)
    if put.ndim == len(others) + 1 and put.shape[0] != 1:
        count = int(count_nonzero(mask))
        if put.shape[0] != count:
            raise ShapeError(f"assignment: {put.shape[0]} values for the {count} that the mask chooses")
        if count == 0:
            return x
        flat = reshape(mask, (mask.size,))
        place = clip(cumulative_sum(flat.astype(np.int64)) - 1, 0, count - 1)
        return where(flags, reshape(take(broadcast_to(put, (count, *others)), place, axis=0), x.shape), x)
    return where(flags, broadcast_to(_of_axes(put, len(others)), x.shape), x)


def _of_axes(put: Array, count: int) -> Array:
    """The values without leading axes of length 1 beyond so many, which NumPy lets values have."""
    beyond = max(0, put.ndim - count)
    return reshape(put, put.shape[beyond:]) if all(length == 1 for length in put.shape[:beyond]) else put


def _sliced(x: Array, key: Index, put: Array) -> Array:
    parts = expanded(key, x.ndim)
    if any(part is None for part in parts):
        raise IndexingError("assignment: an index with None has no place for a value")
    ranges, shape = [], []
    for axis, part in enumerate(parts):
        length = x.shape[axis]
        if isinstance(part, slice):
            ranges.append(range(length)[part])
            shape.append(len(ranges[-1]))
        else:
            at = position_of(part, axis, length)
            ranges.append(range(at, at + 1))
    put = _of_axes(put, len(shape))
    try:
        put = broadcast_to(put, tuple(shape))
    except ShapeError:
        raise ShapeError(f"assignment: values of shape {put.shape} for a selection of shape {tuple(shape)}") from None
    put = reshape(put, tuple(len(chosen) for chosen in ranges))
    if not put.size:
        return x
    for axis, chosen in enumerate(ranges):
        if chosen.step < 0:
            put, ranges[axis] = flip(put, axis=axis), chosen[::-1]
    cut = [axis for axis, chosen in enumerate(ranges) if len(chosen) < x.shape[axis]]
    if not cut:
        return put
    if len(cut) == 1 and ranges[cut[0]].step == 1:
        return _joined(x, cut[0], ranges[cut[0]], put)
    flags: Array | None = None
    for axis in cut:
        put, inside = _spread(put, axis, ranges[axis], x)
        flags = inside if flags is None else flags & inside
    assert flags is not None
    return where(broadcast_to(flags, x.shape), put, x)


def _joined(x: Array, axis: int, chosen: range, put: Array) -> Array:
    """The elements before, the values, and the elements behind."""
    before, behind = part_along(x, axis, 0, chosen.start), part_along(x, axis, chosen.stop, None)
    return concat([part for part in (before, put, behind) if part.shape[axis]], axis=axis)


def _spread(put: Array, axis: int, chosen: range, x: Array) -> tuple[Array, Array]:
    """The values where they belong along an axis of `x`, with anything between them, and which places those are."""
    length, step = x.shape[axis], chosen.step
    if step > 1:
        put = part_along(repeat(put, step, axis=axis), axis, 0, length - chosen.start)
    widths = [(0, 0)] * put.ndim
    widths[axis] = (chosen.start, length - chosen.start - put.shape[axis])
    places = arange(length)
    inside = (places >= chosen.start) & (places <= chosen[-1])
    if step > 1:
        inside = inside & ((places - chosen.start) % step == 0)
    return pad(put, widths), reshape(inside, (1,) * axis + (length,) + (1,) * (x.ndim - axis - 1))


__all__ = ["updated"]
