"""Searching functions of the array API standard."""

from __future__ import annotations

import math
from typing import overload

from outcore import _core, _masks
from outcore._array import Array
from outcore._node import Operand, axis_of, expr_dtype, node, pair
from outcore._reduction import Axis, reduced
from outcore.dtypes import bool as bool_dtype
from outcore.errors import ArgumentError, DTypeError, ShapeError
from outcore.manipulation import moveaxis, stack


@overload
def where(condition: Operand, /) -> tuple[Array, ...]: ...
@overload
def where(condition: Operand, x1: Operand, x2: Operand, /) -> Array: ...
def where(condition: Operand, x1: Operand | None = None, x2: Operand | None = None, /) -> Array | tuple[Array, ...]:
    """`x1` where the condition is not zero, else `x2`. Shape: all three broadcast together. Types promote together.

    With the condition alone: `nonzero(condition)`.
    """
    if x1 is None and x2 is None:
        return nonzero(condition)
    if x1 is None or x2 is None:
        raise ArgumentError("where: takes a condition alone, or with both x1 and x2")
    chosen = Array(node(condition)).astype(bool_dtype)
    return Array(_core.where(chosen._expr, *pair(x1, x2)))


def _position(name: str, x: Operand, axis: int | None, keepdims: bool) -> Array:
    expr = node(x)
    if expr_dtype(expr).kind == "c":
        raise DTypeError(f"{name}: {expr_dtype(expr)} has no order")
    axes = None if axis is None else axis_of(name, axis, len(expr.shape))
    return reduced(name, expr, axes, keepdims, needs_elements=True)


def argmax(x: Operand, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """Index of the first largest element (the first NaN counts as largest), int64; in C order for axis None."""
    return _position("argmax", x, axis, keepdims)


def argmin(x: Operand, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """Index of the first smallest element (the first NaN counts as smallest), int64; in C order for axis None."""
    return _position("argmin", x, axis, keepdims)


def count_nonzero(x: Operand, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """Number of elements that are not zero, int64."""
    return reduced("count_nonzero", node(x), axis, keepdims)


def _flags(x: Operand) -> _core.Expr:
    return Array(node(x)).astype(bool_dtype)._expr


def nonzero(x: Operand, /) -> tuple[Array, ...]:
    """Where the elements are not zero, in C order: an int64 array of positions for each axis.

    Lazy: how many there are is counted in one pass over `x` when something needs to know, once. I/O: that pass, and one
    more over `x` for the positions.

    >>> import numpy as np, outcore as oc
    >>> oc.nonzero(np.asarray([0, 5, 0, 7]))[0].compute()
    array([1, 3])
    """
    expr = node(x)
    shape = tuple(expr.shape)
    if not shape:
        raise ShapeError("nonzero: a number has no axes")
    flat = _masks.positions(_masks.flatten(_flags(x)))
    return (flat,) if len(shape) == 1 else tuple(_along(flat, shape, axis) for axis in range(len(shape)))


def _along(flat: Array, shape: tuple[int, ...], axis: int) -> Array:
    """Positions along one axis of positions in C order."""
    inner = math.prod(shape[axis + 1 :])

    def make() -> _core.Expr:
        within = flat // inner if inner > 1 else flat
        return (within % shape[axis] if axis else within)._expr

    return _masks.Chosen(make)


def argwhere(x: Operand, /) -> Array:
    """Where the elements are not zero: one row of positions for each, int64 of shape (how many, axes). I/O: as `nonzero`."""
    expr = node(x)
    if not tuple(expr.shape):
        raise ShapeError("argwhere: a number has no axes")
    places = nonzero(x)

    def make() -> _core.Expr:
        return stack(list(places), axis=1)._expr

    return _masks.Chosen(make)


def compress(condition: Operand, x: Operand, /, *, axis: int | None = None) -> Array:
    """The parts of `x` along an axis for which the condition is not zero; of its elements in C order for axis None.

    The condition may be shorter than the axis: what lies beyond it is left out. I/O: as `x[mask]`.
    """
    flags, expr = _flags(condition), node(x)
    if len(flags.shape) != 1:
        raise ShapeError(f"compress: a condition of shape {tuple(flags.shape)} is not one-dimensional")
    if axis is None:
        expr, place = _masks.flatten(expr), 0
    else:
        place = axis_of("compress", axis, len(expr.shape))
    array = moveaxis(Array(expr), place, 0)
    length = flags.shape[0]
    if length > array.shape[0]:
        raise ShapeError(f"compress: a condition of {length} elements for {array.shape[0]} along axis {place}")
    chosen = _masks.choose(array[:length]._expr, flags)
    if place == 0:
        return chosen
    return _masks.Chosen(lambda: moveaxis(chosen, 0, place)._expr)


__all__ = ["argmax", "argmin", "argwhere", "compress", "count_nonzero", "nonzero", "where"]
