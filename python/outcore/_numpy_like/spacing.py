"""Numbers evenly spaced between arrays, or on a logarithmic scale: NumPy's functions of those names. No I/O."""

from __future__ import annotations

import numpy as np

from outcore._base.element_types import DTypeLike, dtype_of
from outcore._lazy.array import Array
from outcore._lazy.node import Operand, node, shape_of
from outcore._standard.creation import arange
from outcore._standard.manipulation import moveaxis, reshape
from outcore._standard.searching import where
from outcore.elementwise import floor, log10, pow, sign
from outcore.errors import ArgumentError, DTypeError


def _cast(values: Array, dtype: DTypeLike) -> Array:
    """In the type asked for; integers get the values rounded down."""
    if dtype is None:
        return values
    kind = dtype_of(dtype)
    return (floor(values) if kind.kind in "iu" else values).astype(kind)


def _bounds(name: str, start: Operand, stop: Operand) -> tuple[Array, Array]:
    first, last = Array(node(start)), Array(node(stop))
    if "c" in (first.dtype.kind, last.dtype.kind):
        raise DTypeError(f"{name}: complex bounds are not supported")
    dtype = np.result_type(first.dtype, last.dtype, np.float64)
    return first.astype(dtype), last.astype(dtype)


def linspace_between(
    start: Operand, stop: Operand, /, num: int = 50, *, endpoint: bool = True, dtype: DTypeLike = None, axis: int = 0
) -> Array:
    """As `linspace` between each element of one array and its partner in another, along a new axis of the result."""
    first, last = _bounds("linspace", start, stop)
    count = shape_of(num)[0]
    step = (last - first) / max(count - endpoint, 1)
    numbers = reshape(arange(count), (count,) + (1,) * step.ndim)
    values = numbers * step + first
    if endpoint and count > 1:
        values = where(numbers == count - 1, last, values)
    return _cast(moveaxis(values, 0, axis), dtype)


def logspace(
    start: Operand,
    stop: Operand,
    /,
    num: int = 50,
    *,
    endpoint: bool = True,
    base: Operand = 10.0,
    dtype: DTypeLike = None,
    axis: int = 0,
) -> Array:
    """`num` powers of `base` with evenly spaced exponents from `start` to `stop`, float64 unless told.

    Bounds may be arrays: then a new axis of the result goes from one to the other. Raises ShapeError for `num` below 0.
    I/O: none for numbers, else one read of the bounds.

    >>> import outcore as oc
    >>> oc.logspace(0, 2, 3).compute()
    array([  1.,  10., 100.])
    """
    exponents = linspace_between(start, stop, num, endpoint=endpoint)
    return _cast(moveaxis(pow(Array(node(base)).astype(np.float64), exponents), 0, axis), dtype)


def geomspace(
    start: Operand, stop: Operand, /, num: int = 50, *, endpoint: bool = True, dtype: DTypeLike = None, axis: int = 0
) -> Array:
    """`num` numbers from `start` to `stop`, each the one before times one factor; both ends are met exactly.

    NaN where bounds differ in sign, or are zero in a lazy array; raises ArgumentError for other bounds that are zero.
    The result is float64 unless told. I/O: none for numbers, else one read of the bounds.

    >>> import outcore as oc
    >>> oc.geomspace(1, 1000, 4).compute()
    array([   1.,   10.,  100., 1000.])
    """
    for bound in (start, stop):
        if _is_zero(bound):
            raise ArgumentError("geomspace: a bound is zero, and no factor leads from or to it")
    first, last = _bounds("geomspace", start, stop)
    count, of = shape_of(num)[0], sign(first)
    exponents = linspace_between(log10(first * of), log10(last * of), count, endpoint=endpoint)
    numbers = reshape(arange(count), (count,) + (1,) * (exponents.ndim - 1))
    values = pow(10.0, exponents) * of
    values = where(numbers == 0, first, values)
    if endpoint and count > 1:
        values = where(numbers == count - 1, last, values)
    return _cast(moveaxis(values, 0, axis), dtype)


def _is_zero(bound: object) -> bool:
    return not isinstance(bound, Array) and bool(np.any(np.asarray(bound) == 0))


__all__ = ["geomspace", "linspace_between", "logspace"]
