"""Statistical functions of the array API standard.

Each reads every tile of its operand once, fused into the pass that makes it, and combines tiles in a fixed tree: the
bits of the result do not depend on threads or memory. Axes: an integer, several, or None for all.
"""

from __future__ import annotations

import builtins

from outcore._array import Array
from outcore._node import DTypeLike, Operand, node
from outcore._reduction import Axis, mean_dtype, reduced, sum_dtype
from outcore.errors import DTypeError


def sum(x: Operand, /, *, axis: Axis = None, dtype: DTypeLike = None, keepdims: builtins.bool = False) -> Array:
    """Sum, formed in `dtype`: by default 64 bits for integers, the array's own type otherwise."""
    array = Array(node(x))
    return reduced("sum", array.astype(dtype or sum_dtype(array.dtype))._expr, axis, keepdims)


def prod(x: Operand, /, *, axis: Axis = None, dtype: DTypeLike = None, keepdims: builtins.bool = False) -> Array:
    """Product, formed in `dtype` as for `sum`."""
    array = Array(node(x))
    return reduced("prod", array.astype(dtype or sum_dtype(array.dtype))._expr, axis, keepdims)


def mean(x: Operand, /, *, axis: Axis = None, keepdims: builtins.bool = False) -> Array:
    """Arithmetic mean; float64 for integers. NaN where there are no elements."""
    array = Array(node(x))
    return reduced("mean", array.astype(mean_dtype(array.dtype))._expr, axis, keepdims)


def var(x: Operand, /, *, axis: Axis = None, correction: float = 0.0, keepdims: builtins.bool = False) -> Array:
    """Variance with divisor n − correction; float64 for integers."""
    array = Array(node(x))
    return reduced("var", array.astype(mean_dtype(array.dtype))._expr, axis, keepdims, float(correction))


def std(x: Operand, /, *, axis: Axis = None, correction: float = 0.0, keepdims: builtins.bool = False) -> Array:
    """Standard deviation: the square root of the variance with divisor n − correction."""
    array = Array(node(x))
    return reduced("std", array.astype(mean_dtype(array.dtype))._expr, axis, keepdims, float(correction))


def _ordered(name: str, x: Operand) -> Array:
    array = Array(node(x))
    if array.dtype.kind == "c":
        raise DTypeError(f"{name}: {array.dtype} has no order")
    return array


def min(x: Operand, /, *, axis: Axis = None, keepdims: builtins.bool = False) -> Array:
    """Smallest element; NaN if there is one. Raises ShapeError where there are no elements."""
    return reduced("min", _ordered("min", x)._expr, axis, keepdims, needs_elements=True)


def max(x: Operand, /, *, axis: Axis = None, keepdims: builtins.bool = False) -> Array:
    """Largest element; NaN if there is one. Raises ShapeError where there are no elements."""
    return reduced("max", _ordered("max", x)._expr, axis, keepdims, needs_elements=True)


__all__ = ["max", "mean", "min", "prod", "std", "sum", "var"]
