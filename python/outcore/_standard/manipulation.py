"""Manipulation functions of the array API standard. They rename positions and cost no I/O of their own."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from functools import reduce as fold

import numpy as np

from outcore import _core
from outcore._lazy.array import Array
from outcore._lazy.node import Axis, AxisName, Operand, axes_of, axis_of, integers, node, ordered_axes, shape_of
from outcore.errors import ArgumentError, ShapeError


def broadcast_to(x: Operand, /, shape: int | Iterable[int]) -> Array:
    """The array repeated along missing axes and those of length 1, in its type. Raises ShapeError naming both shapes.

    No I/O of its own: a view.

    >>> import outcore as oc
    >>> oc.broadcast_to(oc.asarray([1, 2]), (2, 2)).compute()
    array([[1, 2],
           [1, 2]])
    """
    expr, target = node(x), shape_of(shape)
    return Array(expr if tuple(expr.shape) == target else _core.broadcast_to(expr, list(target)))


def broadcast_shapes(*shapes: int | Sequence[int]) -> tuple[int, ...]:
    """The shape several shapes broadcast to. Raises ShapeError, naming them, where they do not.

    >>> import outcore as oc
    >>> oc.broadcast_shapes((3, 1), (4,))
    (3, 4)
    """
    lengths = [integers(shape) for shape in shapes]
    try:
        return np.broadcast_shapes(*lengths)
    except ValueError:
        raise ShapeError(f"shapes {' and '.join(map(str, lengths))} do not broadcast together") from None


def broadcast_arrays(*arrays: Operand) -> tuple[Array, ...]:
    """The arrays, each broadcast to their common shape, in its own type. Raises ShapeError where there is none.

    No I/O of its own: they are views.

    >>> import outcore as oc
    >>> [part.shape for part in oc.broadcast_arrays(oc.zeros((3, 1)), oc.zeros(4))]
    [(3, 4), (3, 4)]
    """
    exprs = [node(array) for array in arrays]
    shape = broadcast_shapes(*(expr.shape for expr in exprs))
    return tuple(broadcast_to(Array(expr), shape) for expr in exprs)


def each_of(arrays: Sequence[Operand] | Operand) -> list[Array]:
    """The arrays of a sequence, or the parts of one array along its first axis."""
    if isinstance(arrays, (list, tuple)):
        return [Array(node(part)) for part in arrays]
    return list(unstack(arrays))  # type: ignore[arg-type]  # other sequences are refused there


def part_along(array: Array, axis: int, start: int | None, stop: int | None) -> Array:
    """The elements from `start` to `stop` along one axis, counted from the front."""
    return array[(*(slice(None),) * axis, slice(start, stop))]


def concat(arrays: Sequence[Operand], /, *, axis: int | str | None = 0) -> Array:
    """Arrays joined along an axis; along one axis after flattening when it is None. Types promote together.

    Raises ShapeError where the other axes differ. No I/O of its own: each part is read where it lies.

    >>> import outcore as oc
    >>> oc.concat([oc.asarray([1, 2]), oc.asarray([3])]).compute()
    array([1, 2, 3])
    """
    parts = [Array(node(array)) for array in arrays]
    if not parts:
        raise ShapeError("concat: no arrays given")
    if axis is None:
        parts, axis = [part.ravel() for part in parts], 0
    place = axis_of("concat", axis, parts[0])
    for part in parts[1:]:
        outlines = [(s[:place] + s[place + 1 :], len(s)) for s in (parts[0].shape, part.shape)]
        if outlines[0] != outlines[1]:
            raise ShapeError(f"concat: shapes {parts[0].shape} and {part.shape} differ beside axis {place}")
    dtype = np.result_type(*(part.dtype for part in parts))
    if len(parts) == 1:
        return parts[0]
    return Array(_core.concat([part.astype(dtype)._expr for part in parts], place))


def stack(arrays: Sequence[Operand], /, *, axis: int | str = 0) -> Array:
    """Arrays of one shape joined along a new axis; types promote together. Raises ShapeError where shapes differ.

    Text for `axis` is the name of the new axis, which comes first; ArgumentError where an array has one of that name.
    No I/O of its own.

    >>> import outcore as oc
    >>> oc.stack([oc.asarray([1, 2]), oc.asarray([3, 4])], axis=1).compute()
    array([[1, 3],
           [2, 4]])
    """
    parts = [Array(node(array)) for array in arrays]
    for part in parts[1:]:
        if part.shape != parts[0].shape:
            raise ShapeError(f"stack: shapes {parts[0].shape} and {part.shape} differ")
    if isinstance(axis, str):
        if any(axis in part.dims for part in parts):
            raise ArgumentError(f"stack: an axis is called {axis!r} already; concat joins along it")
        result = stack(parts, axis=0)
        return result.annotate(dims=(axis, *result.dims[1:]))
    return concat([expand_dims(part, axis=axis) for part in parts], axis=axis)


def unstack(x: Operand, /, *, axis: int | str = 0) -> tuple[Array, ...]:
    """The slices along an axis, one array each, without that axis. Raises AxisError for an axis that `x` has not.

    No I/O of its own.

    >>> import outcore as oc
    >>> [row.compute().tolist() for row in oc.unstack(oc.asarray([[1, 2], [3, 4]]))]
    [[1, 2], [3, 4]]
    """
    array = Array(node(x))
    place = axis_of("unstack", axis, array)
    before = (slice(None),) * place
    return tuple(array[(*before, position)] for position in range(array.shape[place]))


def expand_dims(x: Operand, /, axis: int | tuple[int, ...] = 0) -> Array:
    """The array with axes of length 1 added at the given places of the result. Raises AxisError for places beyond it.

    No I/O of its own.

    >>> import outcore as oc
    >>> oc.expand_dims(oc.zeros(3), axis=1).shape
    (3, 1)
    """
    expr = node(x)
    places = integers(axis)
    axes = axes_of("expand_dims", places, len(expr.shape) + len(places))
    return Array(_core.expand_dims(expr, axes) if axes else expr)


def squeeze(x: Operand, /, axis: AxisName) -> Array:
    """The array without the given axes. Raises ShapeError for an axis whose length is not 1. No I/O of its own.

    >>> import outcore as oc
    >>> oc.squeeze(oc.zeros((1, 3, 1)), axis=(0, 2)).shape
    (3,)
    """
    expr = node(x)
    axes = axes_of("squeeze", axis, expr)
    for place in axes:
        if expr.shape[place] != 1:
            raise ShapeError(
                f"squeeze: axis {place} of shape {tuple(expr.shape)} has length {expr.shape[place]}, not 1"
            )
    return Array(_core.squeeze(expr, axes) if axes else expr)


def permute_dims(x: Operand, /, axes: Iterable[int | str]) -> Array:
    """The array with its axes in the given order. Raises ShapeError where that is not an order of all of them.

    No I/O of its own: transposes are folded into reads.

    >>> import outcore as oc
    >>> oc.permute_dims(oc.zeros((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    expr = node(x)
    ndim = len(expr.shape)
    axes = tuple(axes)
    order = ordered_axes("permute_dims", axes, expr)
    if sorted(order) != list(range(ndim)):
        raise ShapeError(f"permute_dims: {tuple(axes)} is not an order of the {ndim} axes of {tuple(expr.shape)}")
    return Array(expr if order == list(range(ndim)) else _core.permute_dims(expr, order))


def moveaxis(x: Operand, source: AxisName, destination: AxisName, /) -> Array:
    """The array with some axes moved to new places, the others in their old order: to numbers, or where axes of those
    names are.

    Raises ShapeError for places that are fewer, more or twice the same. No I/O of its own.

    >>> import outcore as oc
    >>> oc.moveaxis(oc.zeros((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    array = Array(node(x))
    here, destinations = (ordered_axes("moveaxis", axes, array) for axes in (source, destination))
    if len(here) != len(destinations) or len(set(here)) != len(here) or len(set(destinations)) != len(destinations):
        raise ShapeError(f"moveaxis: {source} cannot move to {destination}")
    order = [axis for axis in range(array.ndim) if axis not in here]
    for place, axis in sorted(zip(destinations, here, strict=True)):
        order.insert(place, axis)
    return permute_dims(array, tuple(order))


def reshape(x: Operand, /, shape: int | tuple[int, ...], *, copy: bool | None = None) -> Array:
    """The elements in another shape, in C order; one length may be -1. Raises ShapeError when the sizes differ.

    No I/O of its own: each tile of the result reads the elements that it is made of.

    >>> import outcore as oc
    >>> oc.reshape(oc.arange(6), (2, -1)).compute()
    array([[0, 1, 2],
           [3, 4, 5]])
    """
    array = Array(node(x))
    lengths = list(asked := integers(shape))
    if lengths.count(-1) > 1 or any(length < -1 for length in lengths):
        raise ShapeError(f"reshape: {tuple(lengths)} is not a shape; only one length may be -1")
    known = fold(operator.mul, (length for length in lengths if length != -1), 1)
    if -1 in lengths and known and array.size % known == 0:
        lengths[lengths.index(-1)] = array.size // known
        known = array.size
    if -1 in lengths or known != array.size:
        raise ShapeError(f"reshape: {array.shape} has {array.size} elements, {asked} does not")
    return array if tuple(lengths) == array.shape else Array(_core.reshape(array._expr, lengths))


def flip(x: Operand, /, *, axis: Axis = None) -> Array:
    """The elements in reverse order along the given axes; along all when none are given. Shape and type of `x`.

    Raises AxisError for an axis that `x` has not. No I/O of its own.

    >>> import outcore as oc
    >>> oc.flip(oc.asarray([[1, 2], [3, 4]]), axis=1).compute()
    array([[2, 1],
           [4, 3]])
    """
    array = Array(node(x))
    axes = axes_of("flip", axis, array)
    return array[tuple(slice(None, None, -1) if place in axes else slice(None) for place in range(array.ndim))]


def roll(x: Operand, /, shift: int | tuple[int, ...], *, axis: Axis = None) -> Array:
    """The elements moved along axes, those that leave at one end entering at the other; flattened for axis None.

    Shape and type of `x`. Raises ShapeError where shifts and axes do not go together. I/O: one read of `x`, and one
    more of tiles that are cut where they are not kept meanwhile.

    >>> import outcore as oc
    >>> oc.roll(oc.asarray([1, 2, 3, 4]), 1).compute()
    array([4, 1, 2, 3])
    """
    array = Array(node(x))
    shifts = integers(shift)
    if axis is None:
        if len(shifts) != 1:
            raise ShapeError("roll: several shifts need as many axes")
        return reshape(roll(array.ravel(), shifts, axis=0), array.shape)
    axes = ordered_axes("roll", axis, array)
    if len(shifts) == 1:
        shifts *= len(axes)
    if len(shifts) != len(axes):
        raise ShapeError(f"roll: {len(shifts)} shifts for {len(axes)} axes")
    for distance, place in zip(shifts, axes, strict=True):
        length = array.shape[place]
        cut = -distance % length if length else 0
        if cut:
            before = (slice(None),) * place
            array = concat([array[(*before, slice(cut, None))], array[(*before, slice(cut))]], axis=place)
    return array


def transpose(x: Operand, /, axes: Iterable[int | str] | None = None) -> Array:
    """The array with its axes in another order, reversed unless `axes` says which: NumPy's name of `permute_dims`.

    Raises AxisError for axes that are no order of all. I/O: none of its own.

    >>> import numpy as np, outcore as oc
    >>> oc.transpose(np.zeros((2, 3, 4))).shape
    (4, 3, 2)
    """
    array = Array(node(x))
    return permute_dims(array, tuple(range(array.ndim))[::-1] if axes is None else tuple(axes))


def rechunk(x: Operand, chunks: int | Iterable[int], /) -> Array:
    """The same array cut into tiles of another shape, where it is held tile by tile. Lazy.

    `chunks` has a length for each axis, -1 for the whole of it. Raises ShapeError for other numbers of them, or lengths
    below 1. I/O: none of its own where it fits the pass that reads it; else each tile of `x` is read for every tile of
    the result that it lies in and that is not made meanwhile.

    >>> import numpy as np, outcore as oc
    >>> oc.rechunk(np.zeros((6, 4)), (2, -1)).tile
    (2, 4)
    """
    expr, tile = node(x), integers(chunks)
    shape = tuple(expr.shape)
    if len(tile) != len(shape) or any(length < 1 and length != -1 for length in tile):
        raise ShapeError(f"rechunk: chunks {tile} for an array of shape {shape}")
    lengths = (
        max(whole, 1) if length == -1 else min(length, max(whole, 1)) for length, whole in zip(tile, shape, strict=True)
    )
    return Array(_core.copy_tiled(expr, list(lengths)))


def tile(x: Operand, repetitions: int | tuple[int, ...], /) -> Array:
    """The array laid beside itself, `repetitions` times along each axis. A view: nothing is copied or held for it.

    Type of `x`. Raises ShapeError for repetitions below 0. No I/O of its own.

    >>> import outcore as oc
    >>> oc.tile(oc.asarray([1, 2]), 3).compute()
    array([1, 2, 1, 2, 1, 2])
    """
    array, repeats = Array(node(x)), integers(repetitions)
    counts = shape_of((1,) * (array.ndim - len(repeats)) + repeats)
    shape = (1,) * (len(counts) - array.ndim) + array.shape
    if all(count == 1 for count in counts):
        return reshape(array, shape)
    # Each axis repeats behind one that counts the repetitions; the two read as one are the result's.
    apart = reshape(array, tuple(length for part in shape for length in (1, part)))
    laid = broadcast_to(apart, tuple(length for pair in zip(counts, shape, strict=True) for length in pair))
    return reshape(laid, tuple(count * length for count, length in zip(counts, shape, strict=True)))


__all__ = [
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "concat",
    "expand_dims",
    "flip",
    "moveaxis",
    "permute_dims",
    "rechunk",
    "reshape",
    "roll",
    "squeeze",
    "stack",
    "tile",
    "transpose",
    "unstack",
]
