"""Searching functions of the array API standard whose result's shape is known beforehand."""

from __future__ import annotations

from outcore import _core
from outcore._array import Array
from outcore._node import Operand, axis_of, expr_dtype, node, pair
from outcore._reduction import Axis, reduced
from outcore.dtypes import bool as bool_dtype
from outcore.errors import DTypeError


def where(condition: Operand, x1: Operand, x2: Operand, /) -> Array:
    """`x1` where the condition is not zero, else `x2`. Shape: all three broadcast together. Types promote together."""
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


__all__ = ["argmax", "argmin", "count_nonzero", "where"]
