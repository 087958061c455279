"""Searching functions of the array API standard."""

from __future__ import annotations

import math
from typing import Literal, overload

import numpy as np

from outcore import _core
from outcore._lazy.array import Array
from outcore._lazy.node import Axis, Operand, axis_of, expr_dtype, node, pair
from outcore._lazy.reduction import reduced
from outcore._lazy.typed import Typed, typed_of
from outcore._run import masks
from outcore._standard.dtypes import bool as bool_dtype
from outcore._standard.indexing import take
from outcore._standard.manipulation import moveaxis, reshape, stack
from outcore.errors import ArgumentError, DTypeError, ShapeError


@overload
def where(condition: Operand, /) -> tuple[Array, ...]: ...
@overload
def where(condition: Operand, x1: Operand, x2: Operand, /) -> Array: ...
def where(condition: Operand, x1: Operand | None = None, x2: Operand | None = None, /) -> Array | tuple[Array, ...]:
    """`x1` where the condition is not zero, else `x2`. Shape: all three broadcast together. Types promote together.

    With the condition alone: `nonzero(condition)`. Raises ArgumentError where only one of `x1` and `x2` is given,
    ShapeError for shapes that do not broadcast. I/O: one read of each, fused with what comes before and after.

    >>> import outcore as oc
    >>> x = oc.asarray([1, -2, 3])
    >>> oc.where(x > 0, x, 0).compute()
    array([1, 0, 3])
    """
    if x1 is None and x2 is None:
        return nonzero(condition)
    if x1 is None or x2 is None:
        raise ArgumentError("where: takes a condition alone, or with both x1 and x2")
    chosen = Array(node(condition)).astype(bool_dtype)
    return Array(_core.where(chosen._expr, *pair(x1, x2)))


def _position(name: str, x: Operand, axis: int | str | None, keepdims: bool) -> Array:
    expr = node(x)
    if expr_dtype(expr).kind == "c":
        raise DTypeError(f"{name}: {expr_dtype(expr)} has no order")
    axes = None if axis is None else axis_of(name, axis, expr)
    return reduced(name, expr, axes, keepdims, needs_elements=True)


def argmax(x: Operand, /, *, axis: int | str | None = None, keepdims: bool = False) -> Array:
    """Index of the first largest element (the first NaN counts as largest), int64; in C order for axis None.

    Shape as `sum`. Raises ShapeError where there are no elements, DTypeError for complex numbers. I/O: one read of `x`.

    >>> import outcore as oc
    >>> oc.argmax(oc.asarray([3, 9, 1])).item()
    1
    """
    return _position("argmax", x, axis, keepdims)


def argmin(x: Operand, /, *, axis: int | str | None = None, keepdims: bool = False) -> Array:
    """Index of the first smallest element (the first NaN counts as smallest), int64; in C order for axis None.

    Shape as `sum`. Raises ShapeError where there are no elements, DTypeError for complex numbers. I/O: one read of `x`.

    >>> import outcore as oc
    >>> oc.argmin(oc.asarray([3, 9, 1])).item()
    2
    """
    return _position("argmin", x, axis, keepdims)


def count_nonzero(x: Operand, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """Number of elements that are not zero, int64. Shape and errors as `sum`. I/O: one read of `x`.

    >>> import outcore as oc
    >>> oc.count_nonzero(oc.asarray([0, 5, 0, 7])).item()
    2
    """
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
    flat = masks.positions(masks.flatten(_flags(x)))
    return (flat,) if len(shape) == 1 else tuple(_along(flat, shape, axis) for axis in range(len(shape)))


def _along(flat: Array, shape: tuple[int, ...], axis: int) -> Array:
    """Positions along one axis of positions in C order."""
    inner = math.prod(shape[axis + 1 :])

    def make() -> _core.Expr:
        within = flat // inner if inner > 1 else flat
        return (within % shape[axis] if axis else within)._expr

    return masks.Chosen(make)


def argwhere(x: Operand, /) -> Array:
    """Where the elements are not zero: one row of positions for each, int64 of shape (how many, axes).

    Raises ShapeError for a number. I/O: as `nonzero`.

    >>> import outcore as oc
    >>> oc.argwhere(oc.asarray([[0, 5], [7, 0]])).compute()
    array([[0, 1],
           [1, 0]])
    """
    expr = node(x)
    if not tuple(expr.shape):
        raise ShapeError("argwhere: a number has no axes")
    places = nonzero(x)

    def make() -> _core.Expr:
        return stack(list(places), axis=1)._expr

    return masks.Chosen(make)


def compress(condition: Operand, x: Operand, /, *, axis: int | str | None = None) -> Array:
    """The parts of `x` along an axis for which the condition is not zero; of its elements in C order for axis None.

    The condition may be shorter than the axis: what lies beyond it is left out. Raises ShapeError for a condition that
    is no row, or longer than the axis. I/O: as `x[mask]`.

    >>> import outcore as oc
    >>> oc.compress(oc.asarray([True, False, True]), oc.asarray([10, 20, 30])).compute()
    array([10, 30])
    """
    flags, expr = _flags(condition), node(x)
    if len(flags.shape) != 1:
        raise ShapeError(f"compress: a condition of shape {tuple(flags.shape)} is not one-dimensional")
    if axis is None:
        expr, place = masks.flatten(expr), 0
    else:
        place = axis_of("compress", axis, expr)
    array = moveaxis(Array(expr), place, 0)
    length = flags.shape[0]
    if length > array.shape[0]:
        raise ShapeError(f"compress: a condition of {length} elements for {array.shape[0]} along axis {place}")
    chosen = masks.choose(array[:length]._expr, flags)
    if place == 0:
        return chosen
    return masks.Chosen(lambda: moveaxis(chosen, 0, place)._expr)


def common(name: str, *arrays: Array) -> list[Array]:
    """Arrays in one type that has an order."""
    dtype = np.result_type(*(array.dtype for array in arrays))
    if dtype.kind == "c":
        raise DTypeError(f"{name}: {dtype} has no order")
    return [array.astype(dtype) for array in arrays]


def searchsorted(
    x1: Operand | Typed,
    x2: Operand | Typed,
    /,
    *,
    side: Literal["left", "right"] = "left",
    sorter: Operand | None = None,
) -> Array:
    """Where each element of `x2` belongs in the sorted row `x1`, int64: before equal elements (left), or behind them.

    With `sorter`, `x1[sorter]` is what is sorted. Dates and text are taken too. NaN belongs behind all numbers.
    Raises ShapeError for an `x1` of several axes, ArgumentError for another side.

    I/O: one read of each while `x1` fits a third of the memory; else two sorts of both together, with positions.

    >>> import numpy as np, outcore as oc
    >>> oc.searchsorted(np.asarray([1, 3, 3]), np.asarray([3, 0]), side="right").compute()
    array([3, 0])
    """
    if side not in ("left", "right"):
        raise ArgumentError(f"searchsorted: side {side!r} is neither 'left' nor 'right'")
    typed = typed_of(x1)
    if typed is not None:
        if sorter is not None:
            raise ArgumentError(f"searchsorted: sorter= for {typed.dtype}; sort x1 first")
        return typed.searchsorted(x2, side)
    row, values = Array(node(x1)), Array(node(x2))
    if row.ndim != 1:
        raise ShapeError(f"searchsorted: x1 of shape {row.shape} is not one-dimensional")
    if sorter is not None:
        row = take(row, sorter)
    row, flat = common("searchsorted", row, reshape(values, (math.prod(values.shape),)))
    return reshape(Array(_core.searchsorted(row._expr, flat._expr, side == "right")), values.shape)


__all__ = [
    "argmax",
    "argmin",
    "argwhere",
    "compress",
    "count_nonzero",
    "nonzero",
    "searchsorted",
    "where",
]
