"""Padding, turning, joining and splitting: NumPy's functions of those names. No I/O of their own."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from outcore._base.element_types import DTypeLike
from outcore._base.types import NDArray
from outcore._lazy.array import Array
from outcore._lazy.node import Operand, axis_of, integers, node, put_as
from outcore._standard.creation import arange
from outcore._standard.manipulation import broadcast_to, concat, expand_dims, flip, part_along, permute_dims, reshape
from outcore._standard.searching import where
from outcore.elementwise import multiply
from outcore.errors import ArgumentError, DTypeError, ShapeError

PadMode = Literal["constant", "edge", "reflect", "symmetric", "wrap"]
_PAD_MODES = ("constant", "edge", "reflect", "symmetric", "wrap")


def _pairs(name: str, value: npt.ArrayLike, axes: int) -> NDArray:
    """One value, a pair, or a pair for each axis, as a pair for each."""
    try:
        return np.broadcast_to(np.asarray(value), (axes, 2))
    except ValueError:
        raise ShapeError(f"pad: {name}={value!r} is not a pair for each of {axes} axes") from None


def pad(
    x: Operand, pad_width: npt.ArrayLike, /, mode: PadMode = "constant", *, constant_values: npt.ArrayLike = 0
) -> Array:
    """The array with elements put before and behind along its axes, as `pad_width` says: a number, a pair, or pairs.

    `mode`: "constant" (`constant_values`), "edge" (the outermost element), "reflect" (mirrored at it), "symmetric"
    (mirrored beyond it), "wrap" (from the other end). One mirroring or wrapping must suffice: ShapeError else.
    Type of `x`. No I/O of its own.

    >>> import numpy as np, outcore as oc
    >>> oc.pad(np.asarray([1, 2, 3]), (1, 2), "reflect").compute()
    array([2, 1, 2, 3, 2, 1])
    """
    array = Array(node(x))
    if mode not in _PAD_MODES:
        raise ArgumentError(f"pad: mode {mode!r} is none of {', '.join(_PAD_MODES)}")
    widths = _pairs("pad_width", pad_width, array.ndim)
    if widths.dtype.kind not in "iu" or (widths.size and widths.min() < 0):
        raise ArgumentError(f"pad: pad_width={pad_width!r} is not of whole numbers from 0 on")
    values = _pairs("constant_values", constant_values, array.ndim)
    for axis, (before, behind) in enumerate(widths.tolist()):
        if before or behind:
            fill = (values[axis, 0].item(), values[axis, 1].item())
            if array.dtype.kind != "c" and any(isinstance(value, complex) for value in fill):
                raise DTypeError(f"pad: constant_values={constant_values!r} for an array of {array.dtype}")
            array = _padded(array, axis, (before, behind), mode, fill)
    return array


def _padded(array: Array, axis: int, width: tuple[int, int], mode: str, fill: tuple[Operand, Operand]) -> Array:
    length = array.shape[axis]
    most = {"reflect": length - 1, "symmetric": length, "wrap": length}.get(mode)
    if most is not None and max(width) > most:
        raise ShapeError(f"pad: {max(width)} elements along axis {axis} of {array.shape}; mode {mode!r} has {most}")
    if mode == "edge" and length == 0:
        raise ShapeError(f"pad: axis {axis} of {array.shape} has no edge")

    def part(start: int, stop: int) -> Array:
        return part_along(array, axis, start, stop)

    def beside(count: int, first: bool) -> Array:
        if mode == "constant":
            shape = (*array.shape[:axis], count, *array.shape[axis + 1 :])
            return broadcast_to(Array(put_as(fill[0 if first else 1], array.dtype)), shape)
        if mode == "edge":
            outermost = part(0, 1) if first else part(length - 1, length)
            return broadcast_to(outermost, (*array.shape[:axis], count, *array.shape[axis + 1 :]))
        if mode == "wrap":
            return part(length - count, length) if first else part(0, count)
        skipped = 1 if mode == "reflect" else 0
        end = length - skipped
        mirrored = part(skipped, skipped + count) if first else part(end - count, end)
        return flip(mirrored, axis=axis)

    before, behind = width
    parts = [beside(before, True)] * bool(before) + [array] + [beside(behind, False)] * bool(behind)
    return concat(parts, axis=axis)


def rot90(x: Operand, /, k: int = 1, *, axes: tuple[int, int] = (0, 1)) -> Array:
    """The array turned by k quarters from the first of `axes` towards the second.

    Raises ShapeError where both axes are one. No I/O of its own.

    >>> import numpy as np, outcore as oc
    >>> oc.rot90(np.asarray([[1, 2], [3, 4]])).compute()
    array([[2, 4],
           [1, 3]])
    """
    array = Array(node(x))
    first, second = (axis_of("rot90", axis, array) for axis in axes)
    if first == second:
        raise ShapeError(f"rot90: axes {axes} are one axis of {array.shape}")
    turns = k % 4
    if turns == 0:
        return array
    if turns == 2:
        return flip(array, axis=(first, second))
    swapped = swapaxes(flip(array, axis=second), first, second) if turns == 1 else swapaxes(array, first, second)
    return swapped if turns == 1 else flip(swapped, axis=second)


def swapaxes(x: Operand, axis1: int, axis2: int, /) -> Array:
    """The array with two axes exchanged.

    Raises AxisError for an axis that `x` has not. No I/O of its own: folded into reads.

    >>> import numpy as np, outcore as oc
    >>> oc.swapaxes(np.zeros((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    array = Array(node(x))
    order = list(range(array.ndim))
    first, second = axis_of("swapaxes", axis1, array), axis_of("swapaxes", axis2, array)
    order[first], order[second] = order[second], order[first]
    return permute_dims(array, tuple(order))


def flipud(x: Operand, /) -> Array:
    """The array with its rows in reverse order: `flip` along the first axis, with its errors. No I/O of its own.

    >>> import outcore as oc
    >>> oc.flipud(oc.asarray([[1, 2], [3, 4]])).compute()
    array([[3, 4],
           [1, 2]])
    """
    return flip(x, axis=0)


def fliplr(x: Operand, /) -> Array:
    """The array with its columns in reverse order: `flip` along the second axis, with its errors. No I/O of its own.

    >>> import outcore as oc
    >>> oc.fliplr(oc.asarray([[1, 2], [3, 4]])).compute()
    array([[2, 1],
           [4, 3]])
    """
    return flip(x, axis=1)


def atleast_1d(x: Operand, /) -> Array:
    """The array; a number as a row of one. No I/O of its own.

    >>> import outcore as oc
    >>> oc.atleast_1d(5).shape
    (1,)
    """
    array = Array(node(x))
    return array if array.ndim else reshape(array, (1,))


def atleast_2d(x: Operand, /) -> Array:
    """The array with axes of length 1 before its own, until there are two. No I/O of its own.

    >>> import outcore as oc
    >>> oc.atleast_2d(oc.zeros(3)).shape
    (1, 3)
    """
    array = atleast_1d(x)
    return array if array.ndim > 1 else expand_dims(array, axis=0)


def atleast_3d(x: Operand, /) -> Array:
    """The array with three axes at least, as NumPy adds them: one on each side of a row, one behind a matrix.

    No I/O of its own.

    >>> import outcore as oc
    >>> oc.atleast_3d(oc.zeros(3)).shape
    (1, 3, 1)
    """
    array = atleast_1d(x)
    if array.ndim == 1:
        return expand_dims(array, axis=(0, 2))
    return array if array.ndim > 2 else expand_dims(array, axis=2)


def hstack(arrays: Sequence[Operand], /) -> Array:
    """Arrays side by side: along the second axis, rows along their first.

    Types and errors as `concat`. No I/O of its own.

    >>> import numpy as np, outcore as oc
    >>> oc.hstack([np.asarray([1]), np.asarray([2, 3])]).compute()
    array([1, 2, 3])
    """
    parts = [atleast_1d(part) for part in arrays]
    return concat(parts, axis=0 if parts and parts[0].ndim == 1 else 1)


def vstack(arrays: Sequence[Operand], /) -> Array:
    """Arrays one below the other; rows become matrices of one row.

    Types and errors as `concat`. No I/O of its own.

    >>> import numpy as np, outcore as oc
    >>> oc.vstack([np.asarray([1, 2]), np.asarray([3, 4])]).shape
    (2, 2)
    """
    return concat([atleast_2d(part) for part in arrays], axis=0)


def dstack(arrays: Sequence[Operand], /) -> Array:
    """Arrays one behind the other, along the third axis. Types and errors as `concat`. No I/O of its own.

    >>> import outcore as oc
    >>> oc.dstack([oc.asarray([1, 2]), oc.asarray([3, 4])]).compute()
    array([[[1, 3],
            [2, 4]]])
    """
    return concat([atleast_3d(part) for part in arrays], axis=2)


def column_stack(arrays: Sequence[Operand], /) -> Array:
    """Rows as the columns of a matrix, beside matrices.

    Types and errors as `concat`. No I/O of its own.

    >>> import numpy as np, outcore as oc
    >>> oc.column_stack([np.asarray([1, 2]), np.asarray([3, 4])]).compute()
    array([[1, 3],
           [2, 4]])
    """
    parts = [Array(node(part)) for part in arrays]
    return concat([reshape(part, (-1, 1)) if part.ndim < 2 else part for part in parts], axis=1)


def array_split(x: Operand, parts: int | Iterable[int], /, *, axis: int | str = 0) -> list[Array]:
    """The array in so many parts along an axis, the first ones longer by one where need be, or cut at the given places.

    Raises ArgumentError for less than one part. No I/O of its own.

    >>> import numpy as np, outcore as oc
    >>> [part.shape for part in oc.array_split(np.zeros(7), 3)]
    [(3,), (2,), (2,)]
    """
    array = Array(node(x))
    place = axis_of("array_split", axis, array)
    length = array.shape[place]
    if isinstance(parts, Iterable):
        ends = [0, *(end + length if end < 0 else end for end in integers(parts)), length]
    else:
        count = integers(parts)[0]
        if count < 1:
            raise ArgumentError(f"array_split: {count} parts")
        sizes = [length // count + (part < length % count) for part in range(count)]
        ends = [0, *np.cumsum(sizes).tolist()]
    return [part_along(array, place, start, max(start, end)) for start, end in itertools.pairwise(ends)]


def split(x: Operand, parts: int | Iterable[int], /, *, axis: int | str = 0) -> list[Array]:
    """As `array_split`; raises ShapeError where the parts would differ in length. No I/O of its own.

    >>> import outcore as oc
    >>> [part.compute().tolist() for part in oc.split(oc.arange(4), 2)]
    [[0, 1], [2, 3]]
    """
    array = Array(node(x))
    length = array.shape[axis_of("split", axis, array)]
    if not isinstance(parts, Iterable) and length % integers(parts)[0]:
        raise ShapeError(f"split: axis {axis} of {array.shape} is not {parts} equal parts")
    return array_split(array, parts, axis=axis)


def select(conditions: Sequence[Operand], choices: Sequence[Operand], /, default: Operand = 0) -> Array:
    """For each element what is chosen by the first condition that holds for it, else `default`.

    All broadcast together, types promote together. Raises ArgumentError where conditions and choices differ in number.
    I/O: one read of each, in one pass.

    >>> import numpy as np, outcore as oc
    >>> x = oc.asarray([1, 5, 9])
    >>> oc.select([x < 3, x < 7], [x, 10 * x]).compute()
    array([ 1, 50,  0])
    """
    if len(conditions) != len(choices) or not conditions:
        raise ArgumentError(f"select: {len(conditions)} conditions and {len(choices)} choices")
    chosen: Operand = default
    for condition, choice in zip(reversed(conditions), reversed(choices), strict=True):
        chosen = where(condition, choice, chosen)
    return Array(node(chosen))


def piecewise(
    x: Operand, conditions: Sequence[Operand], functions: Sequence[object], /, *args: object, **options: object
) -> Array:
    """The array with each element given to the function (or replaced by the value) of the last condition that holds.

    One more function than conditions is for all other elements, which are zero else. Functions are called once, with
    the whole lazy array, and must be made of array functions. The result has the type of `x`. Raises ArgumentError
    where functions and conditions do not go together. I/O: one read of each, in one pass.

    >>> import numpy as np, outcore as oc
    >>> x = oc.asarray([-2.0, 3.0])
    >>> oc.piecewise(x, [x < 0, x >= 0], [lambda v: -v, 10.0]).compute()
    array([ 2., 10.])
    """
    array = Array(node(x))
    if len(functions) not in (len(conditions), len(conditions) + 1):
        raise ArgumentError(f"piecewise: {len(conditions)} conditions and {len(functions)} functions")

    def value(function: object) -> Array:
        piece = function(array, *args, **options) if callable(function) else function
        return Array(node(piece)).astype(array.dtype)

    chosen = value(functions[-1] if len(functions) > len(conditions) else 0)
    for condition, function in zip(conditions, functions, strict=False):
        chosen = where(condition, value(function), chosen)
    return broadcast_to(chosen, array.shape)


def kron(x1: Operand, x2: Operand, /) -> Array:
    """Kronecker's product: each element of `x1` times the whole of `x2`, in the place of that element.

    Shape: the products of the lengths; types promote together. I/O: one read of each, fused with what comes before and
    after.

    >>> import numpy as np, outcore as oc
    >>> oc.kron(np.asarray([1, 10]), np.asarray([1, 2])).compute()
    array([ 1,  2, 10, 20])
    """
    a, b = Array(node(x1)), Array(node(x2))
    ndim = max(a.ndim, b.ndim)
    left = reshape(a, (1,) * (ndim - a.ndim) + a.shape)
    right = reshape(b, (1,) * (ndim - b.ndim) + b.shape)
    wide = reshape(left, tuple(length for axis in left.shape for length in (axis, 1)))
    inner = reshape(right, tuple(length for axis in right.shape for length in (1, axis)))
    return reshape(multiply(wide, inner), tuple(p * q for p, q in zip(left.shape, right.shape, strict=True)))


def fromfunction(function: Callable[..., object], shape: int | Sequence[int], /, *, dtype: DTypeLike = float) -> Array:
    """The values of a function of the coordinates: it is called once, with a lazy array of them for each axis.

    Coordinates are float64 unless told. No I/O of its own.

    >>> import outcore as oc
    >>> oc.fromfunction(lambda i, j: i + j, (2, 2)).compute()
    array([[0., 1.],
           [1., 2.]])
    """
    lengths = integers(shape)
    axes = []
    for axis, length in enumerate(lengths):
        thin = (1,) * axis + (length,) + (1,) * (len(lengths) - axis - 1)
        axes.append(broadcast_to(reshape(arange(length, dtype=dtype), thin), lengths))
    return Array(node(function(*axes)))


__all__ = [
    "array_split",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "column_stack",
    "dstack",
    "fliplr",
    "flipud",
    "fromfunction",
    "hstack",
    "kron",
    "pad",
    "piecewise",
    "rot90",
    "select",
    "split",
    "swapaxes",
    "vstack",
]
