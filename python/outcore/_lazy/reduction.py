"""The common part of all reductions: axes, lengths 0, and axes kept at length 1."""

from __future__ import annotations

import numpy as np

from outcore import _core
from outcore._base.types import DType
from outcore._lazy.array import Array
from outcore._lazy.node import Axis, Operand, axes_of, node
from outcore.errors import ArgumentError, ShapeError


def reduced(
    name: str, expr: _core.Expr, axis: Axis, keepdims: bool, correction: float = 0.0, *, needs_elements: bool = False
) -> Array:
    """One reduction node over normalized axes; `needs_elements` refuses an axis of length 0 (min, argmax, …)."""
    shape = tuple(expr.shape)
    axes = axes_of(name, axis, expr)
    if needs_elements and any(shape[place] == 0 for place in axes):
        raise ShapeError(
            f"{name}: shape {shape} has no elements along axes {tuple(axes)}, and {name} of nothing is undefined"
        )
    # Reducing no axes still applies the operation to each element alone, so give it an axis of length 1.
    result = (
        _core.reduce(name, expr, axes, correction)
        if axes
        else _core.reduce(name, _core.expand_dims(expr, [0]), [0], correction)
    )
    return Array(_core.expand_dims(result, axes) if keepdims and axes else result)


def sum_dtype(dtype: DType) -> DType:
    """The type sums and products are formed in: 64 bits for integers and bool, the type itself otherwise."""
    if dtype.kind in "bi":
        return np.dtype(np.int64)
    return np.dtype(np.uint64) if dtype.kind == "u" else dtype


def mean_dtype(dtype: DType) -> DType:
    """The type means and variances are formed in: float64 for integers and bool, the type itself otherwise."""
    return np.dtype(np.float64) if dtype.kind in "biu" else dtype


def wide_dtype(dtype: DType) -> DType:
    """The type in which sums of means are formed: float32 for float16, which ends at 65,504; else `mean_dtype`."""
    return np.dtype(np.float32) if dtype == np.float16 else mean_dtype(dtype)


def correction_of(name: str, correction: float, ddof: float | None) -> float:
    """The number that is taken off the number of elements: `correction` is the standard's word for it, `ddof`
    NumPy's."""
    if ddof is not None and correction:
        raise ArgumentError(f"{name}: correction={correction} and ddof={ddof} are two words for one number")
    return float(correction if ddof is None else ddof)


def floating(x: Operand) -> Array:
    """The array with integers and bool as float64, where NumPy computes so: squares of integers would overflow."""
    array = Array(node(x))
    return array.astype(mean_dtype(array.dtype))
