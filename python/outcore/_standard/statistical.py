"""Statistical functions of the array API standard.

Each reads every tile of its operand once, fused into the pass that makes it, and combines tiles in a fixed tree: the
bits of the result do not depend on threads or memory. Axes: an integer, several, or None for all.
"""

from __future__ import annotations

import builtins

import numpy as np

from outcore import _core
from outcore._base.element_types import DTypeLike
from outcore._lazy.array import Array
from outcore._lazy.node import Axis, Operand, axis_of, node
from outcore._lazy.reduction import correction_of, mean_dtype, reduced, sum_dtype
from outcore._standard.creation import ones, zeros
from outcore._standard.manipulation import broadcast_to, concat
from outcore.errors import DTypeError, ShapeError


def sum(x: Operand, /, *, axis: Axis = None, dtype: DTypeLike = None, keepdims: builtins.bool = False) -> Array:
    """Sum, formed in `dtype`: by default 64 bits for integers, the array's own type otherwise.

    Shape: `x` without the axes, which `keepdims` keeps at length 1. Raises AxisError for an axis that `x` has not.
    I/O: one read of `x`.

    >>> import outcore as oc
    >>> oc.sum(oc.asarray([[1, 2], [3, 4]]), axis=0).compute()
    array([4, 6])
    """
    array = Array(node(x))
    return reduced("sum", array.astype(dtype or sum_dtype(array.dtype))._expr, axis, keepdims)


def prod(x: Operand, /, *, axis: Axis = None, dtype: DTypeLike = None, keepdims: builtins.bool = False) -> Array:
    """Product, formed in `dtype` as for `sum`. Shape and errors as there. I/O: one read of `x`.

    >>> import outcore as oc
    >>> oc.prod(oc.asarray([[1, 2], [3, 4]]), axis=1).compute()
    array([ 2, 12])
    """
    array = Array(node(x))
    return reduced("prod", array.astype(dtype or sum_dtype(array.dtype))._expr, axis, keepdims)


def mean(x: Operand, /, *, axis: Axis = None, keepdims: builtins.bool = False) -> Array:
    """Arithmetic mean; float64 for integers. NaN where there are no elements.

    Shape and errors as `sum`. I/O: one read of `x`.

    >>> import outcore as oc
    >>> oc.mean(oc.asarray([1, 2, 6])).item()
    3.0
    """
    array = Array(node(x))
    return reduced("mean", array.astype(mean_dtype(array.dtype))._expr, axis, keepdims)


def var(
    x: Operand,
    /,
    *,
    axis: Axis = None,
    correction: float = 0.0,
    ddof: float | None = None,
    keepdims: builtins.bool = False,
) -> Array:
    """Variance with divisor n − correction (NumPy's ddof); float64 for integers.

    Shape and errors as `sum`. I/O: one read of `x`.

    >>> import outcore as oc
    >>> oc.var(oc.asarray([1.0, 2.0, 6.0]), correction=1).item()
    7.0
    """
    return _spread("var", x, axis, keepdims, correction_of("var", correction, ddof))


def std(
    x: Operand,
    /,
    *,
    axis: Axis = None,
    correction: float = 0.0,
    ddof: float | None = None,
    keepdims: builtins.bool = False,
) -> Array:
    """Standard deviation: the square root of the variance with divisor n − correction (ddof); float64 for integers.

    Shape and errors as `sum`. I/O: one read of `x`.

    >>> import outcore as oc
    >>> oc.std(oc.asarray([[1, 3], [2, 6]]), axis=1).compute()
    array([1., 2.])
    """
    return _spread("std", x, axis, keepdims, correction_of("std", correction, ddof))


def _spread(name: str, x: Operand, axis: Axis, keepdims: builtins.bool, correction: float) -> Array:
    array = Array(node(x))
    return reduced(name, array.astype(mean_dtype(array.dtype))._expr, axis, keepdims, correction)


def _ordered(name: str, x: Operand) -> Array:
    array = Array(node(x))
    if array.dtype.kind == "c":
        raise DTypeError(f"{name}: {array.dtype} has no order")
    return array


def min(x: Operand, /, *, axis: Axis = None, keepdims: builtins.bool = False) -> Array:
    """Smallest element; NaN if there is one. Shape as `sum`, type of `x`.

    Raises ShapeError where there are no elements, DTypeError for complex numbers. I/O: one read of `x`.

    >>> import outcore as oc
    >>> oc.min(oc.asarray([[3, 1], [2, 5]]), axis=0).compute()
    array([2, 1])
    """
    return reduced("min", _ordered("min", x)._expr, axis, keepdims, needs_elements=True)


def max(x: Operand, /, *, axis: Axis = None, keepdims: builtins.bool = False) -> Array:
    """Largest element; NaN if there is one. Shape as `sum`, type of `x`.

    Raises ShapeError where there are no elements, DTypeError for complex numbers. I/O: one read of `x`.

    >>> import outcore as oc
    >>> oc.max(oc.asarray([[3, 1], [2, 5]]), axis=0).compute()
    array([3, 5])
    """
    return reduced("max", _ordered("max", x)._expr, axis, keepdims, needs_elements=True)


def _scanned(name: str, expr: _core.Expr, axis: int | str | None, initial: Array | None) -> Array:
    shape = tuple(expr.shape)
    called = f"cumulative_{name}" if name in ("sum", "prod") else f"cum{name}"
    if not shape:
        raise ShapeError(f"{called}: a number has no axis to go along")
    if axis is None:
        if len(shape) > 1:
            raise ShapeError(f"{called}: an array of shape {shape} needs an axis")
        axis = 0
    place = axis_of(called, axis, expr)
    result = Array(_core.scan(name, expr, place, None))
    if initial is None:
        return result
    first = broadcast_to(initial, (*shape[:place], 1, *shape[place + 1 :]))
    return concat([first, result], axis=place)


def cumulative_sum(
    x: Operand, /, *, axis: int | str | None = None, dtype: DTypeLike = None, include_initial: builtins.bool = False
) -> Array:
    """Running sums along an axis, formed in `dtype` as for `sum`; `include_initial` puts a zero before them.

    Strictly from the first element on, so its bits are those of NumPy's `cumsum`. Same shape, but one longer along the
    axis with `include_initial`. Raises ShapeError where there are several axes and none is named. I/O: one read of `x`,
    one write of the result; each tile hands its last sums to the next (TPIE, section 4.1).

    >>> import numpy as np, outcore as oc
    >>> oc.cumulative_sum(np.asarray([1, 2, 3])).compute()
    array([1, 3, 6])
    """
    array = Array(node(x))
    array = array.astype(dtype or sum_dtype(array.dtype))
    initial = zeros((), dtype=array.dtype) if include_initial else None
    return _scanned("sum", array._expr, axis, initial)


def cumulative_prod(
    x: Operand, /, *, axis: int | str | None = None, dtype: DTypeLike = None, include_initial: builtins.bool = False
) -> Array:
    """Running products along an axis, formed in `dtype` as for `prod`; `include_initial` puts a one before them.

    Shape, errors and I/O as `cumulative_sum`.

    >>> import outcore as oc
    >>> oc.cumulative_prod(oc.asarray([1, 2, 3, 4])).compute()
    array([ 1,  2,  6, 24])
    """
    array = Array(node(x))
    array = array.astype(dtype or sum_dtype(array.dtype))
    initial = ones((), dtype=array.dtype) if include_initial else None
    return _scanned("prod", array._expr, axis, initial)


def cummax(x: Operand, /, *, axis: int | str | None = None) -> Array:
    """The largest element so far along an axis (`numpy.maximum.accumulate`); NaN from the first NaN on.

    Shape and type of `x`. Raises DTypeError for complex numbers, ShapeError as `cumulative_sum`. I/O: as there.

    >>> import outcore as oc
    >>> oc.cummax(oc.asarray([3, 1, 4, 1])).compute()
    array([3, 3, 4, 4])
    """
    return _scanned("max", _ordered("cummax", x)._expr, axis, None)


def cummin(x: Operand, /, *, axis: int | str | None = None) -> Array:
    """The smallest element so far along an axis (`numpy.minimum.accumulate`); NaN from the first NaN on.

    Shape and type of `x`. Raises DTypeError for complex numbers, ShapeError as `cumulative_sum`. I/O: as there.

    >>> import outcore as oc
    >>> oc.cummin(oc.asarray([3, 1, 4, 1])).compute()
    array([3, 1, 1, 1])
    """
    return _scanned("min", _ordered("cummin", x)._expr, axis, None)


def counted(numbers: Array, weights: Array | None, bins: int) -> Array:
    """How often each number below `bins` occurs, or the sums of its weights; all others are left out."""
    places = numbers.astype(np.int64)._expr
    if weights is None:
        return Array(_core.tally("count", places, None, None, bins, "int64"))
    return Array(_core.tally("sum", places, weights.astype(np.float64)._expr, None, bins, "float64"))


def cumsum(x: Operand, /, *, axis: int | str | None = None, dtype: DTypeLike = None) -> Array:
    """As `cumulative_sum`, by NumPy's name: of all elements in C order where no axis is named.

    I/O as there.

    >>> import numpy as np, outcore as oc
    >>> oc.cumsum(np.asarray([[1, 2], [3, 4]])).compute()
    array([ 1,  3,  6, 10])
    """
    return Array(node(x)).cumsum(axis, dtype)


def cumprod(x: Operand, /, *, axis: int | str | None = None, dtype: DTypeLike = None) -> Array:
    """As `cumulative_prod`, by NumPy's name: of all elements in C order where no axis is named.

    I/O as there.

    >>> import numpy as np, outcore as oc
    >>> oc.cumprod(np.asarray([[1, 2], [3, 4]])).compute()
    array([ 1,  2,  6, 24])
    """
    return Array(node(x)).cumprod(axis, dtype)


__all__ = [
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "cumulative_prod",
    "cumulative_sum",
    "max",
    "mean",
    "min",
    "prod",
    "std",
    "sum",
    "var",
]
