"""Functions of rows along an axis, of numbers one by one, and orders by several keys: NumPy's of those names."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from outcore._base.element_types import DTypeLike, dtype_of
from outcore._base.types import Keywords, NDArray
from outcore._functions.blocks import map_blocks
from outcore._lazy.array import Array
from outcore._lazy.foreign import check_room
from outcore._lazy.hooks import above
from outcore._lazy.node import Operand, axes_of, axis_of, node
from outcore._lazy.reduction import floating
from outcore._lazy.typed import Typed, typed_of
from outcore._numpy_like.arranging import pad
from outcore._standard.creation import arange
from outcore._standard.elements import key_columns
from outcore._standard.indexing import take_along_axis
from outcore._standard.manipulation import concat, each_of, expand_dims, moveaxis, part_along, squeeze
from outcore._standard.searching import where
from outcore._standard.sorting import argsort, sort_by
from outcore._standard.statistical import cumulative_sum
from outcore._standard.utility import diff
from outcore.elementwise import abs, imag, real, remainder
from outcore.errors import ArgumentError, DTypeError, IndexingError, ShapeError


def apply_along_axis(
    func1d: Callable[..., object], axis: int, arr: Operand, /, *args: object, dtype: DTypeLike = None, **kwargs: object
) -> Array:
    """A function of a row applied to every row along an axis; what it gives (a number, or a row) takes the axis' place.

    A function of outcore or NumPy that has an axis itself, such as `np.median`, becomes nodes. Any other is called with
    NumPy rows, in Python, row by row, as in NumPy: the whole axis is then in memory with as many rows as a tile has
    (MemoryLimitError where it cannot be), and the function is called once on a row of ones to learn the shape and the
    type of its result. `dtype` says the type where that would mislead. Raises ShapeError for results of several axes.

    I/O: one read of `arr`, or as the function's own.

    >>> import numpy as np, outcore as oc
    >>> x = oc.asarray([[3, 1, 2], [6, 6, 4]])
    >>> oc.apply_along_axis(lambda row: np.bincount(row).argmax(), 1, x).compute()
    array([1, 6])
    """
    array = Array(node(arr))
    place = axis_of("apply_along_axis", axis, array)
    if _has_axis(func1d) and "axis" not in kwargs and dtype is None:
        return Array(node(func1d(array, *args, axis=place, **kwargs)))
    length = array.shape[place]
    sample = _on_ones(func1d, array, length, args, kwargs)
    kind = dtype_of(sample.dtype if dtype is None else dtype)
    room = max(length, sample.size, 1)
    rows = moveaxis(array, place, -1)
    if room > length:
        rows = pad(rows, [(0, 0)] * (rows.ndim - 1) + [(0, room - length)])

    def along(tile: NDArray) -> NDArray:
        made = np.zeros(tile.shape, dtype=kind)
        for row in np.ndindex(tile.shape[:-1]):
            made[row][: sample.size] = func1d(tile[row][:length], *args, **kwargs)
        return made

    results = part_along(map_blocks(along, rows, dtype=kind, whole=-1), rows.ndim - 1, 0, sample.size)
    return squeeze(results, -1) if sample.ndim == 0 else moveaxis(results, -1, place)


def _has_axis(function: Callable[..., object]) -> bool:
    """Whether a function is outcore's, or NumPy's that outcore has, and works along an axis."""
    module = getattr(function, "__module__", None) or ""
    if not above.is_numpys(function) and module.partition(".")[0] != "outcore":
        return False
    return "axis" in inspect.signature(function).parameters


def _on_ones(
    function: Callable[..., object], array: Array, length: int, args: tuple[object, ...], kwargs: Keywords
) -> NDArray:
    name = getattr(function, "__name__", "the function")
    check_room(f"apply_along_axis of {name}", length * array.dtype.itemsize, "a row must fit there")
    try:
        sample = np.asarray(function(np.ones(length, dtype=array.dtype), *args, **kwargs))
    except Exception as error:
        raise ArgumentError(f"apply_along_axis: {name} failed on a row of {length} ones ({error})") from error
    if sample.ndim > 1:
        raise ShapeError(f"apply_along_axis: {name} gives shape {sample.shape} of a row; at most one axis is supported")
    return sample


def apply_over_axes(func: Callable[..., object], a: Operand, axes: int | Iterable[int], /) -> Array:
    """`func(x, axis)` over several axes, one after the other; axes that it takes away are kept at length 1.

    Raises ShapeError where the function gives another number of axes. I/O: the function's own.

    >>> import numpy as np, outcore as oc
    >>> oc.apply_over_axes(np.sum, np.ones((2, 3)), (0, 1)).compute()
    array([[6.]])
    """
    array = Array(node(a))
    for axis in axes_of("apply_over_axes", axes, array):
        result = Array(node(func(array, axis=axis)))
        if result.ndim == array.ndim - 1:
            result = expand_dims(result, axis=axis)
        if result.ndim != array.ndim:
            raise ShapeError(f"apply_over_axes: the function gives shape {result.shape} of {array.shape} along {axis}")
        array = result
    return array


def vectorize(function: Callable[..., object], /, *, otypes: Any = None) -> Callable[..., Array]:
    """A function of numbers as a function of arrays, called for every element, in Python: as slow as in NumPy.

    `np.vectorize` cannot be told of lazy arrays: it computes them. This one gives lazy arrays. `otypes` is the type of
    the result; unless given, the function is called on ones to learn it. One result only. `map` is as fast as outcore
    itself for functions that can be written in array functions. I/O: fused into what reads it.

    >>> import outcore as oc
    >>> oc.vectorize(lambda a, b: a if a > b else b + 10)(oc.asarray([1, 5]), 3).compute()
    array([13,  5])
    """
    kinds = otypes if isinstance(otypes, (list, tuple)) else [otypes]
    if len(kinds) != 1:
        raise ArgumentError(f"vectorize: {len(kinds)} types of results; a function of one result is supported")
    kind = None if kinds[0] is None else dtype_of(kinds[0])

    def call(*arrays: Operand) -> Array:
        each = np.vectorize(function, otypes=None if kind is None else [kind])
        return map_blocks(each, *arrays, dtype=kind)

    call.__name__ = getattr(function, "__name__", "vectorized")
    call.__doc__ = function.__doc__
    return call


def argpartition(x: Operand, kth: int, /, *, axis: int | str = -1) -> Array:
    """Positions along an axis in whose order the element at `kth` is where a sort puts it: `argsort`. I/O: as there.

    Raises IndexingError for a place that the axis has not. Shape of `x`, int64.

    >>> import outcore as oc
    >>> oc.argpartition(oc.asarray([5, 1, 3]), 1).compute()
    array([1, 2, 0])
    """
    array = Array(node(x))
    place = axis_of("argpartition", axis, array)
    if not -array.shape[place] <= kth < array.shape[place]:
        raise IndexingError(f"argpartition: kth={kth} is out of bounds for axis {place} of {array.shape}")
    return argsort(array, axis=place)


def _parts(keys: Any) -> list[Any]:
    typed = typed_of(keys)
    return each_of(keys) if typed is None else list(typed)


def lexsort(keys: Sequence[Operand | Typed] | Operand | Typed, /, *, axis: int | str = -1) -> Array:
    """Positions that sort by the last key, among equals by the one before it, and so on; int64, stable, NaN last.

    Keys are arrays of one shape, or the parts of one array along its first axis: of numbers, complex ones by their real
    part first, of dates, NaT last, and of text.
    I/O: for rows a sort with all further keys as columns, for each key; else as `argsort` and two `take_along_axis`.

    >>> import numpy as np, outcore as oc
    >>> oc.lexsort((np.asarray([1, 0, 2]), np.asarray([5, 5, 3]))).compute()
    array([2, 1, 0])
    """
    parts = list(keys) if isinstance(keys, (list, tuple)) else _parts(keys)
    rows = [column for part in parts for column in key_columns(part)[::-1]]
    shapes = {row.shape for row in rows}
    if len(shapes) != 1 or rows[0].ndim == 0:
        raise ShapeError(f"lexsort: {len(rows)} keys of shapes {', '.join(map(str, sorted(shapes)))}")
    place = axis_of("lexsort", axis, rows[0])
    if rows[0].ndim == 1:
        columns = [*rows, arange(rows[0].shape[0])]
        while len(columns) > 1:
            columns = list(sort_by(*columns)[1:])
        return columns[0]
    order = argsort(rows[0], axis=place)
    for row in rows[1:]:
        beside = argsort(take_along_axis(row, order, axis=place), axis=place)
        order = take_along_axis(order, beside, axis=place)
    return order


def sort_complex(x: Operand, /) -> Array:
    """Numbers along the last axis in the order of their real parts, among equals of their imaginary parts; complex.

    NaN comes last. Integers of up to 16 bits become complex64, other real numbers complex128.
    I/O: as `lexsort` of two keys.

    >>> import numpy as np, outcore as oc
    >>> oc.sort_complex(np.asarray([2 + 1j, 1 + 5j, 2 - 1j])).compute()
    array([1.+5.j, 2.-1.j, 2.+1.j])
    """
    array = Array(node(x))
    if not array.ndim:
        raise ShapeError("sort_complex: a number has no axis to sort along")
    if array.dtype.kind != "c":
        narrow = array.dtype.kind in "iu" and array.dtype.itemsize <= 2
        array = array.astype(np.complex64 if narrow else np.complex128)
    if array.ndim == 1:
        # The numbers go with both sorts as a column, and need not be looked up behind them.
        _, by_imag = sort_by(imag(array), array)
        return sort_by(real(by_imag), by_imag)[1]
    return take_along_axis(array, lexsort((imag(array), real(array))), axis=-1)


def unwrap(x: Operand, /, *, discont: float | None = None, axis: int | str = -1, period: float = 2 * math.pi) -> Array:
    """Angles along an axis without jumps: steps beyond `discont` (half a period) become the nearest of their kind.

    Integers stay integers for a period that is one. I/O: one read of `x`, one write of the running sum.

    >>> import numpy as np, outcore as oc
    >>> oc.unwrap(np.asarray([0, 1, 2, -1, 0]), period=4).compute()
    array([0, 1, 2, 3, 4])
    """
    whole = Array(node(x)).dtype.kind in "iu" and isinstance(period, int)
    array = Array(node(x)).astype(np.result_type(Array(node(x)).dtype, np.int64)) if whole else floating(x)
    if array.dtype.kind == "c":
        raise DTypeError(f"unwrap: angles are real numbers, not {array.dtype}")
    place = axis_of("unwrap", axis, array)
    jump = period / 2 if discont is None else max(discont, period / 2)
    low = -(period // 2) if whole else -period / 2
    steps = diff(array, axis=place)
    near = remainder(steps - low, period) + low
    if not whole or period % 2 == 0:
        # Half a period upwards stays upwards.
        near = where((near == low) & (steps > 0), -low, near)
    correction = where(abs(steps) < jump, 0, near - steps)
    first = part_along(array, place, 0, 1)
    return concat([first, part_along(array, place, 1, None) + cumulative_sum(correction, axis=place)], axis=place)


__all__ = [
    "apply_along_axis",
    "apply_over_axes",
    "argpartition",
    "lexsort",
    "sort_complex",
    "unwrap",
    "vectorize",
]
