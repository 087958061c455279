"""NumPy's functions that pass over NaN, and reductions over the elements that a mask chooses.

A reduction of what is there is two fused in one sweep: of the elements, with what does not count replaced, and of the
mask. Results have the bits that the tile grid gives them, whatever the threads and the memory.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence

import numpy as np

from outcore._base.element_types import DTypeLike
from outcore._lazy.array import Array
from outcore._lazy.node import Axis, Operand, node
from outcore._lazy.reduction import correction_of, mean_dtype, wide_dtype
from outcore._numpy_like.order import nanquantile
from outcore._standard.manipulation import broadcast_to
from outcore._standard.searching import argmax, where
from outcore._standard.statistical import cumulative_prod, cumulative_sum, max, min, prod, sum
from outcore.elementwise import isfinite, isnan, logical_not, sqrt
from outcore.errors import ArgumentError, DTypeError


def _with_mask(name: str, x: Operand, mask: Operand) -> tuple[Array, Array]:
    array, chosen = Array(node(x)), Array(node(mask))
    if chosen.dtype.kind != "b":
        raise DTypeError(f"{name}: where= is of {chosen.dtype}, not bool")
    return array, broadcast_to(chosen, array.shape)


def sum_where(
    x: Operand, mask: Operand, /, *, axis: Axis = None, dtype: DTypeLike = None, keepdims: bool = False
) -> Array:
    """As `sum` of the elements where `mask` is True. I/O: one read of `x` and of the mask."""
    array, chosen = _with_mask("sum", x, mask)
    return sum(where(chosen, array, 0), axis=axis, dtype=dtype, keepdims=keepdims)


def prod_where(
    x: Operand, mask: Operand, /, *, axis: Axis = None, dtype: DTypeLike = None, keepdims: bool = False
) -> Array:
    """As `prod` of the elements where `mask` is True. I/O: one read of `x` and of the mask."""
    array, chosen = _with_mask("prod", x, mask)
    return prod(where(chosen, array, 1), axis=axis, dtype=dtype, keepdims=keepdims)


def mean_where(x: Operand, mask: Operand, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """As `mean` of the elements where `mask` is True; NaN where there are none. I/O: one read of both."""
    array, chosen = _with_mask("mean", x, mask)
    dtype = wide_dtype(array.dtype)
    total = sum(where(chosen, array.astype(dtype), 0), axis=axis, keepdims=keepdims)
    count = sum(chosen, axis=axis, keepdims=keepdims)
    means = where(count > 0, total / where(count > 0, count, 1).astype(dtype), np.nan)
    return means.astype(mean_dtype(array.dtype))


def var_where(
    x: Operand, mask: Operand, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False
) -> Array:
    """As `var` of the elements where `mask` is True; NaN where no more than `correction` are.

    I/O: two reads of `x` and of the mask, the first for the mean.
    """
    array, chosen = _with_mask("var", x, mask)
    dtype = mean_dtype(array.dtype)
    array = array.astype(wide_dtype(array.dtype))
    distance = array - mean_where(array, chosen, axis=axis, keepdims=True)
    squares = distance * distance
    if array.dtype.kind == "c":
        squares = distance.real * distance.real + distance.imag * distance.imag
    divisor = sum(chosen, axis=axis, keepdims=keepdims).astype(np.float64) - correction
    total = sum(where(chosen, squares, 0), axis=axis, keepdims=keepdims)
    variances = where(divisor > 0, total / where(divisor > 0, divisor, 1).astype(squares.dtype), np.nan)
    return variances.astype(dtype) if dtype == np.float16 else variances


def std_where(
    x: Operand, mask: Operand, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False
) -> Array:
    """The square root of `var_where`."""
    return sqrt(var_where(x, mask, axis=axis, correction=correction, keepdims=keepdims))


def _numbers(x: Operand) -> tuple[Array, Array]:
    """The array, and where it is a number: everywhere where its type has nothing else."""
    array = Array(node(x))
    return array, logical_not(isnan(array)) if array.dtype.kind in "fc" else broadcast_to(True, array.shape)


def _filled(x: Operand, value: int) -> Array:
    """The array with NaN replaced."""
    array = Array(node(x))
    return where(isnan(array), value, array) if array.dtype.kind in "fc" else array


def nansum(x: Operand, /, *, axis: Axis = None, dtype: DTypeLike = None, keepdims: bool = False) -> Array:
    """As `sum` with NaN as zero. I/O: one read of `x`.

    >>> import numpy as np, outcore as oc
    >>> oc.nansum(np.asarray([1.0, np.nan, 3.0])).item()
    4.0
    """
    return sum(_filled(x, 0), axis=axis, dtype=dtype, keepdims=keepdims)


def nanprod(x: Operand, /, *, axis: Axis = None, dtype: DTypeLike = None, keepdims: bool = False) -> Array:
    """As `prod` with NaN as one. I/O: one read of `x`.

    >>> import numpy as np, outcore as oc
    >>> oc.nanprod(np.asarray([2.0, np.nan, 3.0])).item()
    6.0
    """
    return prod(_filled(x, 1), axis=axis, dtype=dtype, keepdims=keepdims)


def nanmean(x: Operand, /, *, axis: Axis = None, dtype: DTypeLike = None, keepdims: bool = False) -> Array:
    """As `mean` of the elements that are not NaN; NaN where there are none. I/O: one read of `x`.

    >>> import numpy as np, outcore as oc
    >>> oc.nanmean(np.asarray([[1.0, np.nan], [3.0, np.nan]]), axis=0).compute()
    array([ 2., nan])
    """
    array, present = _numbers(_in_type(x, dtype))
    return mean_where(array, present, axis=axis, keepdims=keepdims)


def _in_type(x: Operand, dtype: DTypeLike) -> Array:
    """The array, in the type that a mean is asked to be formed in."""
    return Array(node(x)) if dtype is None else Array(node(x)).astype(dtype)


def nanvar(
    x: Operand,
    /,
    *,
    axis: Axis = None,
    dtype: DTypeLike = None,
    correction: float = 0.0,
    ddof: float | None = None,
    keepdims: bool = False,
) -> Array:
    """As `var` of the elements that are not NaN; NaN where no more than `correction` (or `ddof`) are.

    `dtype` is the type in which it is formed. I/O: two reads of `x`.

    >>> import numpy as np, outcore as oc
    >>> oc.nanvar(np.asarray([1.0, np.nan, 3.0])).item()
    1.0
    """
    array, present = _numbers(_in_type(x, dtype))
    divisor = correction_of("nanvar", correction, ddof)
    return var_where(array, present, axis=axis, correction=divisor, keepdims=keepdims)


def nanstd(
    x: Operand,
    /,
    *,
    axis: Axis = None,
    dtype: DTypeLike = None,
    correction: float = 0.0,
    ddof: float | None = None,
    keepdims: bool = False,
) -> Array:
    """The square root of `nanvar`. I/O: two reads of `x`.

    >>> import numpy as np, outcore as oc
    >>> oc.nanstd(np.asarray([1.0, np.nan, 3.0])).item()
    1.0
    """
    array, present = _numbers(_in_type(x, dtype))
    divisor = correction_of("nanstd", correction, ddof)
    return std_where(array, present, axis=axis, correction=divisor, keepdims=keepdims)


def _extreme(name: str, x: Operand, axis: Axis, keepdims: bool) -> Array:
    array, present = _numbers(x)
    if array.dtype.kind == "c":
        raise DTypeError(f"nan{name}: {array.dtype} has no order")
    reduce = {"min": min, "max": max}[name]
    if array.dtype.kind != "f":
        return reduce(array, axis=axis, keepdims=keepdims)
    farthest = np.inf if name == "min" else -np.inf
    extreme = reduce(where(present, array, farthest), axis=axis, keepdims=keepdims)
    count = sum(present, axis=axis, keepdims=keepdims)
    return where(count > 0, extreme, np.nan)


def nanmin(x: Operand, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """As `min` of the elements that are not NaN; NaN where there are none. I/O: one read of `x`.

    >>> import numpy as np, outcore as oc
    >>> oc.nanmin(np.asarray([2.0, np.nan, 1.0])).item()
    1.0
    """
    return _extreme("min", x, axis, keepdims)


def nanmax(x: Operand, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """As `max` of the elements that are not NaN; NaN where there are none. I/O: one read of `x`.

    >>> import numpy as np, outcore as oc
    >>> oc.nanmax(np.asarray([2.0, np.nan, 1.0])).item()
    2.0
    """
    return _extreme("max", x, axis, keepdims)


def _extreme_place(name: str, x: Operand, axis: int | str | None, keepdims: bool) -> Array:
    array = Array(node(x))
    extreme = _extreme(name, array, axis, keepdims=True)
    return argmax(array == extreme, axis=axis, keepdims=keepdims)


def nanargmin(x: Operand, /, *, axis: int | str | None = None, keepdims: bool = False) -> Array:
    """As `argmin` of the elements that are not NaN; 0 where there are none. I/O: two reads of `x`.

    >>> import numpy as np, outcore as oc
    >>> oc.nanargmin(np.asarray([np.nan, 2.0, 1.0])).item()
    2
    """
    return _extreme_place("min", x, axis, keepdims)


def nanargmax(x: Operand, /, *, axis: int | str | None = None, keepdims: bool = False) -> Array:
    """As `argmax` of the elements that are not NaN; 0 where there are none. I/O: two reads of `x`.

    >>> import numpy as np, outcore as oc
    >>> oc.nanargmax(np.asarray([np.nan, 2.0, 1.0])).item()
    1
    """
    return _extreme_place("max", x, axis, keepdims)


def nancumsum(x: Operand, /, *, axis: int | str | None = None, dtype: DTypeLike = None) -> Array:
    """As `cumulative_sum` with NaN as zero. I/O: one read of `x`, one write of the result.

    >>> import numpy as np, outcore as oc
    >>> oc.nancumsum(np.asarray([1.0, np.nan, 3.0])).compute()
    array([1., 1., 4.])
    """
    return cumulative_sum(_filled(x, 0), axis=axis, dtype=dtype)


def nancumprod(x: Operand, /, *, axis: int | str | None = None, dtype: DTypeLike = None) -> Array:
    """As `cumulative_prod` with NaN as one. I/O: one read of `x`, one write of the result.

    >>> import numpy as np, outcore as oc
    >>> oc.nancumprod(np.asarray([2.0, np.nan, 3.0])).compute()
    array([2., 2., 6.])
    """
    return cumulative_prod(_filled(x, 1), axis=axis, dtype=dtype)


def nanpercentile(x: Operand, q: Operand | Sequence[float], /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """`nanquantile` of hundredths. I/O: as `quantile`.

    >>> import numpy as np, outcore as oc
    >>> oc.nanpercentile(np.asarray([1.0, np.nan, 3.0]), 50).item()
    2.0
    """
    return nanquantile(x, np.asarray(q, dtype=np.float64) / 100, axis=axis, keepdims=keepdims)


def nan_to_num(x: Operand, /, *, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Array:
    """The array with NaN and infinities replaced: by `nan`, and by the largest and smallest number of its type.

    Integers stay as they are; of complex numbers each part is replaced. I/O: fused into what reads it.

    >>> import numpy as np, outcore as oc
    >>> oc.nan_to_num(np.asarray([np.nan, np.inf]), posinf=9.0).compute()
    array([0., 9.])
    """
    array = Array(node(x))
    if array.dtype.kind == "c":
        if not np.isfinite([value for value in (nan, posinf, neginf) if value is not None]).all():
            raise ArgumentError("nan_to_num: of complex numbers nan, posinf and neginf are replaced by finite numbers")
        parts = [nan_to_num(part, nan=nan, posinf=posinf, neginf=neginf) for part in (array.real, array.imag)]
        return where(isfinite(array), array, parts[0] + 1j * parts[1])
    if array.dtype.kind != "f":
        return array
    bounds = np.finfo(array.dtype)
    high = float(bounds.max) if posinf is None else posinf
    low = float(bounds.min) if neginf is None else neginf
    for name, value in (("nan", nan), ("posinf", high), ("neginf", low)):
        if isinstance(value, builtins.complex):
            raise ArgumentError(f"nan_to_num: {name}={value} is not a real number")
    ends = where(array > 0, Array(node(array.dtype.type(high))), Array(node(array.dtype.type(low))))
    finite = where(isfinite(array), array, ends)
    return where(isnan(array), Array(node(array.dtype.type(nan))), finite)


__all__ = [
    "nan_to_num",
    "nanargmax",
    "nanargmin",
    "nancumprod",
    "nancumsum",
    "nanmax",
    "nanmean",
    "nanmin",
    "nanpercentile",
    "nanprod",
    "nanstd",
    "nansum",
    "nanvar",
]
