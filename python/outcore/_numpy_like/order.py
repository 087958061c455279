"""Order statistics: median, quantile and nanquantile, exact, of arrays larger than memory."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Literal

import numpy as np

from outcore import _core
from outcore._lazy.array import Array
from outcore._lazy.node import Axis, Operand, axes_of, node
from outcore._standard.creation import full
from outcore._standard.manipulation import expand_dims, permute_dims, reshape, stack
from outcore._standard.searching import where
from outcore.elementwise import isfinite, isinf
from outcore.errors import ArgumentError, DTypeError, ShapeError

QuantileMethod = Literal["linear", "lower", "higher", "nearest", "midpoint"]
_METHODS = ("linear", "lower", "higher", "nearest", "midpoint")
# Methods that give an element, of whatever type.
_PICKING = ("lower", "higher", "nearest")
# More columns than these are sorted whole, band by band: a few keys of each would be too many.
_COLUMNS_MAX = 1 << 12
# Columns of up to so many bytes are so where those behind several axes would have to be brought into a matrix.
_COLUMN_BYTES_MAX = 8 << 20


def _columns(name: str, x: Operand, axis: Axis) -> tuple[Array, list[int], tuple[int, ...]]:
    """The array with columns along its first axis, which are what is reduced; the axes, and the shape of the others."""
    array = Array(node(x))
    if array.dtype.kind not in "biuf":
        raise DTypeError(f"{name}: {array.dtype} has no order")
    axes = axes_of(name, axis, array)
    others = [place for place in range(array.ndim) if place not in axes]
    kept = tuple(array.shape[place] for place in others)
    order = (*axes, *others)
    moved = array if order == tuple(range(array.ndim)) else permute_dims(array, order)
    rows = math.prod(array.shape[place] for place in axes)
    return moved if len(axes) == 1 else reshape(moved, (rows, *kept)), axes, kept


def _statistics(array: Array, fractions: list[float]) -> list[Array]:
    """The elements on both sides of each place, how far between them it is, and how many elements are not NaN."""
    rows, *widths = array.shape
    columns = math.prod(widths)
    is_short = len(widths) > 1 and rows * array.dtype.itemsize <= _COLUMN_BYTES_MAX
    if columns > _COLUMNS_MAX or is_short:
        return [Array(expr) for expr in _core.column_statistics(array._expr, fractions)]
    statistics = _core.order_statistics(reshape(array, (rows, columns))._expr, fractions)
    shapes = [(len(fractions), *widths)] * 3 + [tuple(widths)]
    return [reshape(Array(expr), shape) for expr, shape in zip(statistics, shapes, strict=True)]


def _between(low: Array, high: Array, part: Array, method: str) -> Array:
    """The value between two neighbours; as NumPy computes it, so that the ends are met exactly."""
    if method == "lower":
        return low
    if method == "higher":
        return where(part > 0, high, low)
    floats = low.dtype if low.dtype.kind == "f" else np.dtype(np.float64)
    low, high = low.astype(floats), high.astype(floats)
    if method == "midpoint":
        part = where(part > 0, 0.5, part)
    part = part.astype(floats)
    distance = high - low
    inside = where(part >= 0.5, high - distance * (1 - part), low + distance * part)
    # Between finite numbers too far apart, or beside an infinity, both are weighed by themselves.
    inside = where(isfinite(distance), inside, low * (1 - part) + high * part)
    return where((part == 0) | (low == high), low, inside)


def middle_of(low: Array, high: Array) -> Array:
    """The mean of two neighbours in order, however large they are."""
    middle = (low + high) / 2
    return where(isinf(middle) & isfinite(low) & isfinite(high), low / 2 + high / 2, middle)


def _nearest(low: Array, high: Array, part: Array, counts: Array, fractions: list[float]) -> Array:
    """The nearer neighbour; of two as near, the one at an even place."""
    place = stack([where(counts > 0, counts - 1, 0).astype(np.float64) * fraction for fraction in fractions])
    odd = place.astype(np.int64) % 2 == 1
    return where((part > 0.5) | ((part == 0.5) & odd), high, low)


def _quantiles(
    name: str, x: Operand, q: Operand | Sequence[float], axis: Axis, method: str, keepdims: bool, omit: bool
) -> Array:
    if method not in _METHODS:
        raise ArgumentError(f"{name}: method {method!r} is none of {', '.join(_METHODS)}")
    levels = np.asarray(q, dtype=np.float64)
    fractions = [float(fraction) for fraction in levels.ravel()]
    outside = [fraction for fraction in fractions if not 0 <= fraction <= 1]
    if outside:
        raise ArgumentError(f"{name}: q={outside[0]} is not between 0 and 1")
    columns, axes, kept = _columns(name, x, axis)
    picks = method in _PICKING
    is_bool = columns.dtype.kind == "b"
    if is_bool and not picks:
        raise DTypeError(f"{name}: differences of bool are not defined; cast the array first")
    columns = columns.astype(np.uint8) if is_bool else columns
    shape = tuple(1 if place in axes else length for place, length in enumerate(node(x).shape)) if keepdims else kept
    shape = (*levels.shape, *shape)
    floats = columns.dtype if columns.dtype.kind == "f" else np.dtype(np.float64)
    if not fractions or 0 in kept:
        dtype = np.dtype(np.bool_) if is_bool else columns.dtype
        return full(shape, 0, dtype=dtype if picks else floats)
    if columns.shape[0] == 0:
        if name == "quantile":
            raise ShapeError(f"{name}: shape {tuple(node(x).shape)} has no elements along axes {tuple(axes)}")
        return full(shape, np.nan, dtype=floats)
    low, high, part, counts = _statistics(columns, fractions)
    nearest = method == "nearest"
    values = _nearest(low, high, part, counts, fractions) if nearest else _between(low, high, part, method)
    if columns.dtype.kind == "f":
        # Both zeros are one place in the order, and which of them is met there depends on the memory: +0 for either.
        values = values + 0.0
        least = 1 if omit else columns.shape[0]
        values = where(expand_dims(counts, axis=0) < least, np.nan, values)
    return _named_as(reshape(values.astype(np.bool_) if is_bool else values, shape), x, axes, levels.ndim, keepdims)


def _named_as(result: Array, x: Operand, axes: Collection[int], levels: int, keepdims: bool) -> Array:
    """Quantiles with the names of the other axes of `x`, its attributes and name, as reductions have them."""
    source = Array(node(x))
    if source.name is None and not source.attrs and not any(source.dims):
        return result
    others = [None if place in axes else dim for place, dim in enumerate(source.dims) if keepdims or place not in axes]
    return result.annotate(dims=[None] * levels + others, attrs=source.attrs, name=source.name)


def quantile(
    x: Operand,
    /,
    q: Operand | Sequence[float],
    *,
    axis: Axis = None,
    method: QuantileMethod = "linear",
    keepdims: bool = False,
) -> Array:
    """The `q`-quantiles along axes (None: of all elements), exact; `q` is a number from 0 to 1 or several.

    The result has the shape of `q`, then that of the other axes. `method` as in NumPy: "linear", "lower", "higher",
    "nearest", "midpoint". NaN where there is a NaN. Floats keep their type, integers give float64 (but for "lower",
    "higher" and "nearest", which give an element). Raises ArgumentError for a `q` outside 0 to 1, ShapeError where
    there are no elements.

    I/O: two reads of `x`, for any number of quantiles: runs of each column are sorted and a few of their keys noted,
    which bounds where the quantiles lie (Munro and Paterson 1980); what lies between is kept in the second. More than
    4096 columns, and those of up to 8 MiB behind several axes, are held whole, in bands of as many as fit: one read, or
    one read and write more where chunks cannot be read in such bands.

    >>> import numpy as np, outcore as oc
    >>> oc.quantile(np.asarray([4.0, 1.0, 3.0, 2.0]), [0, 0.5]).compute()
    array([1. , 2.5])
    """
    return _quantiles("quantile", x, q, axis, method, keepdims, omit=False)


def nanquantile(
    x: Operand,
    /,
    q: Operand | Sequence[float],
    *,
    axis: Axis = None,
    method: QuantileMethod = "linear",
    keepdims: bool = False,
) -> Array:
    """As `quantile` of the elements that are not NaN; NaN where there are none, also along axes of length 0.

    Other errors and I/O as there.

    >>> import numpy as np, outcore as oc
    >>> oc.nanquantile(np.asarray([4.0, np.nan, 3.0, 2.0]), 0.5).item()
    3.0
    """
    return _quantiles("nanquantile", x, q, axis, method, keepdims, omit=True)


def _zeros_and_ones(x: Operand) -> Array:
    """The array, of bool as numbers."""
    array = Array(node(x))
    return array.astype(np.uint8) if array.dtype.kind == "b" else array


def median(x: Operand, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """The middle element along axes, or the mean of the two in the middle; NaN where there is a NaN, or nothing.

    Of bool it is that of zeros and ones, as NumPy has it.

    I/O: as `quantile`.

    >>> import numpy as np, outcore as oc
    >>> oc.median(np.asarray([[1, 5, 2], [4, 4, 4]]), axis=1).compute()
    array([2., 4.])
    """
    return _quantiles("median", _zeros_and_ones(x), 0.5, axis, "linear", keepdims, omit=False)


def nanmedian(x: Operand, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """As `median` of the elements that are not NaN; NaN where there are none. I/O: as `quantile`.

    >>> import numpy as np, outcore as oc
    >>> oc.nanmedian(np.asarray([1.0, np.nan, 3.0])).item()
    2.0
    """
    return _quantiles("nanmedian", _zeros_and_ones(x), 0.5, axis, "linear", keepdims, omit=True)


__all__ = ["median", "nanmedian", "nanquantile", "quantile"]
