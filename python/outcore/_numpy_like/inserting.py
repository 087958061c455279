"""Elements put in, taken out, repeated or cut off along an axis: NumPy's functions of those names."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from outcore import _core
from outcore._base.types import NDArray
from outcore._lazy.array import Array
from outcore._lazy.node import Axis, Operand, axes_of, axis_of, node, put_as, shape_of
from outcore._run import masks
from outcore._run.run import compute
from outcore._standard.creation import arange, zeros
from outcore._standard.indexing import take
from outcore._standard.manipulation import broadcast_to, concat, moveaxis, part_along, reshape, tile
from outcore._standard.searching import compress, where
from outcore._standard.sets import isin
from outcore._standard.sorting import argsort
from outcore._standard.statistical import max, min
from outcore.errors import ArgumentError, IndexingError, ShapeError

# So many pieces are joined one by one; more of them are positions, sorted or looked up.
_PIECES_MAX = 64


def _places(name: str, obj: object, length: int, last: int) -> NDArray:
    """The places that an integer, several, a slice or a mask names, counted from the front; 0-d for one integer."""
    if isinstance(obj, slice):
        return np.arange(*obj.indices(length))
    if isinstance(obj, Array):
        obj = obj.compute()
    positions = np.asarray(obj)
    if positions.dtype.kind == "b":
        if positions.shape != (length,):
            raise IndexingError(f"{name}: a mask of shape {positions.shape} for an axis of length {length}")
        return np.flatnonzero(positions)
    if positions.size == 0:
        return np.zeros(0, dtype=np.int64)
    if positions.dtype.kind not in "iu" or positions.ndim > 1:
        raise IndexingError(f"{name}: places are integers in a row, not {positions.dtype} of shape {positions.shape}")
    outside = positions[(positions < -length) | (positions >= last)]
    if outside.size:
        raise IndexingError(f"{name}: place {outside.flat[0]} is out of bounds for an axis of length {length}")
    return np.where(positions < 0, positions + length, positions)


def delete(x: Operand, obj: int | slice | npt.ArrayLike, /, *, axis: int | str | None = None) -> Array:
    """The array without the elements at one place of an axis, several, those of a slice or of a mask; axis None: a row.

    Places are held in memory. Raises IndexingError for those out of bounds. I/O: none of its own for up to 64 places in
    a row; else one read of `x`, and a count.

    >>> import numpy as np, outcore as oc
    >>> oc.delete(np.asarray([10, 20, 30, 40]), [1, -1]).compute()
    array([10, 30])
    """
    array = Array(node(x)).ravel() if axis is None else Array(node(x))
    place = axis_of("delete", axis or 0, array)
    length = array.shape[place]
    gone = np.unique(_places("delete", obj, length, length))
    if gone.size > _PIECES_MAX and gone[-1] - gone[0] + 1 != gone.size:
        return compress(isin(arange(length), gone, invert=True), array, axis=place)
    if gone.size > 1 and gone[-1] - gone[0] + 1 == gone.size:
        parts = [part_along(array, place, 0, int(gone[0])), part_along(array, place, int(gone[-1]) + 1, None)]
    else:
        ends = [-1, *gone.tolist(), length]
        parts = [part_along(array, place, low + 1, high) for low, high in itertools.pairwise(ends)]
    return concat([part for part in parts if part.shape[place]] or parts[:1], axis=place)


def insert(x: Operand, obj: int | slice | npt.ArrayLike, values: Operand, /, *, axis: int | str | None = None) -> Array:
    """The array with values put before the given places of an axis, which are those in `x`; axis None: of one row.

    `obj` is an integer, several, a slice or a mask; values broadcast to what is put in and are cast to the type of `x`.
    Of equal places the values keep their order. Raises IndexingError for places out of bounds.
    I/O: none of its own for up to 64 places; else as `take` of all elements.

    >>> import numpy as np, outcore as oc
    >>> oc.insert(np.asarray([1, 2, 3]), [1, 3], np.asarray([10, 20])).compute()
    array([ 1, 10,  2,  3, 20])
    """
    array = Array(node(x)).ravel() if axis is None else Array(node(x))
    at = axis_of("insert", axis or 0, array)
    length = array.shape[at]
    places = _places("insert", obj, length, length + 1)
    put = Array(put_as(values, array.dtype))
    put = reshape(put, (1,) * (array.ndim - put.ndim) + put.shape)
    if places.ndim == 0:
        # A single place takes as many as there are along the first axis of the values, as in NumPy.
        put = moveaxis(put, 0, at)
    count = put.shape[at] if places.size == 1 else places.size
    shape = (*array.shape[:at], count, *array.shape[at + 1 :])
    try:
        put = broadcast_to(put, shape)
    except ShapeError:
        raise ShapeError(f"insert: values of shape {put.shape} for a gap of shape {shape}") from None
    where_to = np.broadcast_to(places, (count,))
    if count > _PIECES_MAX and places.size > 1:
        # A place of `x` is an odd number, a gap before it the even one below: sorted, they tell where each belongs.
        order = argsort(concat([2 * arange(length) + 1, 2 * where_to]))
        return take(concat([array, put], axis=at), order, axis=at)
    return _joined(array, put, where_to, at)


def _joined(array: Array, put: Array, places: NDArray, at: int) -> Array:
    parts, begin = [], 0
    order = np.argsort(places, kind="stable")
    for place, ours in itertools.groupby(order.tolist(), key=lambda number: int(places[number])):
        numbers = list(ours)
        parts.append(part_along(array, at, begin, place))
        if numbers == list(range(numbers[0], numbers[-1] + 1)):
            parts.append(part_along(put, at, numbers[0], numbers[-1] + 1))
        else:
            parts += [part_along(put, at, number, number + 1) for number in numbers]
        begin = place
    parts.append(part_along(array, at, begin, None))
    return concat([part for part in parts if part.shape[at]] or parts[:1], axis=at)


def resize(x: Operand, shape: int | Iterable[int], /) -> Array:
    """The elements in C order, over and over, in another shape; zeros where there are none. No I/O of its own.

    >>> import numpy as np, outcore as oc
    >>> oc.resize(np.asarray([1, 2, 3]), (2, 4)).compute()
    array([[1, 2, 3, 1],
           [2, 3, 1, 2]])
    """
    array, lengths = Array(node(x)).ravel(), shape_of(shape)
    size = math.prod(lengths)
    if not array.size:
        return zeros(lengths, dtype=array.dtype)
    times = -(-size // array.size)
    return reshape((tile(array, times) if times > 1 else array)[:size], lengths)


def trim_zeros(x: Operand, /, *, trim: str = "fb", axis: Axis = None) -> Array:
    """The array without what is zero throughout at the front ("f") and at the back ("b") of axes (None: all of them).

    How much remains is found by one read of `x` when something needs to know, once. I/O: that, and what reads it.

    >>> import numpy as np, outcore as oc
    >>> oc.trim_zeros(np.asarray([0, 0, 3, 0, 5, 0])).compute()
    array([3, 0, 5])
    """
    array = Array(node(x))
    ends = trim.lower()
    if ends not in ("f", "b", "fb", "bf"):
        raise ArgumentError(f"trim_zeros: trim={trim!r} is none of 'f', 'b', 'fb'")
    axes = axes_of("trim_zeros", axis, array)

    def make() -> _core.Expr:
        if not array.size:
            return array._expr
        flags = array != 0
        bounds = []
        for place in axes:
            thin = (1,) * place + (array.shape[place],) + (1,) * (array.ndim - place - 1)
            at = reshape(arange(array.shape[place]), thin)
            bounds += [min(where(flags, at, array.shape[place])), max(where(flags, at, -1))]
        measured = [int(bound) for bound in compute(*bounds)]
        key = [slice(None)] * array.ndim
        for place, first, last in zip(axes, measured[::2], measured[1::2], strict=True):
            start = first if "f" in ends else 0
            stop = last + 1 if "b" in ends else array.shape[place]
            key[place] = slice(start, stop) if last >= 0 else slice(0, 0)
        return array[tuple(key)]._expr

    return masks.Chosen(make)


__all__ = ["delete", "insert", "resize", "trim_zeros"]
