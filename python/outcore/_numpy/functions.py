"""NumPy's functions that are a line of ours: its names and its order of arguments."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from outcore import _api as oc
from outcore._base.element_types import DTypeLike
from outcore._lazy.array import Array
from outcore._lazy.node import Axis, Operand, axis_of
from outcore._lazy.reduction import floating
from outcore._numpy_like.spacing import linspace_between
from outcore._run import masks
from outcore.errors import ArgumentError, DTypeError, ShapeError


def _diagonal(a: Operand, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    return oc.linalg.diagonal(oc.moveaxis(a, (axis1, axis2), (-2, -1)), offset=offset)


def _diag(v: Operand, k: int = 0) -> Array:
    array = oc.asarray(v)
    if array.ndim == 2:
        return _diagonal(array, k)
    if array.ndim != 1:
        raise ShapeError(f"numpy.diag: an array of shape {array.shape} is neither a row nor a matrix")
    side = array.shape[0] + abs(k)
    across = oc.pad(array, (max(k, 0), max(-k, 0)))
    return oc.where(oc.eye(side, k=k, dtype=np.bool_), across, 0).astype(array.dtype)


def _linspace(
    start: Operand,
    stop: Operand,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike = None,
    axis: int = 0,
) -> object:
    points = linspace_between(start, stop, num, endpoint=endpoint, dtype=dtype, axis=axis)
    return (points, (oc.asarray(stop) - start) / max(num - endpoint, 1)) if retstep else points


def _argpartition(a: Operand, kth: Any, axis: int | str | None = -1) -> Array:
    array = oc.asarray(a).ravel() if axis is None else oc.asarray(a)
    place = -1 if axis is None else axis
    return oc.argsort(array, axis=place) if np.ndim(kth) else oc.argpartition(array, int(kth), axis=place)


def _real_if_close(a: Operand, tol: float = 100) -> Array:
    """Whether it is real depends on the data: one read finds out when something needs to know."""
    array = oc.asarray(a)
    if array.dtype.kind != "c":
        return array
    near = tol * np.finfo(array.dtype).eps if tol > 1 else tol
    return masks.Chosen(lambda: (array.real if oc.all(oc.abs(array.imag) < near).item() else array)._expr)


def _vander(x: Operand, N: int | None = None, increasing: bool = False) -> Array:  # noqa: N803 - NumPy's name
    array = oc.asarray(x)
    if array.ndim != 1:
        raise ShapeError(f"numpy.vander: an array of shape {array.shape} is not a row")
    powers = oc.arange(array.shape[0] if N is None else N)
    kind = np.result_type(array.dtype, np.int64)
    return oc.astype(array, kind)[:, None] ** (powers if increasing else oc.flip(powers))


def _without_values(a: Operand) -> object:
    """An array of the same shape and type that takes no memory."""
    array = oc.asarray(a)
    return np.broadcast_to(np.zeros((), dtype=array.dtype), array.shape)


def _einsum_path(*operands: Any, optimize: Any = "greedy") -> object:
    """It looks at shapes only, so NumPy itself may."""
    shapes: list[Any] = [_without_values(part) if isinstance(part, oc.Array) else part for part in operands]
    return np.einsum_path(*shapes, optimize=optimize)


def _inner(a: Operand, b: Operand) -> Array:
    left, right = oc.asarray(a), oc.asarray(b)
    return oc.tensordot(left, right, axes=([-1], [-1])) if left.ndim and right.ndim else left * right


def _extract(condition: Operand, arr: Operand) -> Array:
    return oc.compress(oc.asarray(condition).ravel(), oc.asarray(arr).ravel())


def _sinc(x: Operand) -> Array:
    array = floating(x)
    angle = array * math.pi
    safe = oc.where(array == 0, 1.0, angle)
    return oc.where(array == 0, 1.0, oc.sin(safe) / safe)


def _angle(z: Operand, deg: bool = False) -> Array:
    array = floating(z)
    angle = oc.atan2(array.imag, array.real)
    return angle * (180 / math.pi) if deg else angle


def _polyval(p: Operand, x: Operand) -> Array:
    """Horner's scheme; the coefficients are few, highest power first."""
    coefficients = oc.asarray(p).compute()
    if coefficients.ndim != 1:
        raise ShapeError(f"numpy.polyval: coefficients of shape {coefficients.shape} are not one-dimensional")
    value = oc.zeros_like(oc.asarray(x)) * 0.0 if coefficients.dtype.kind == "f" else oc.zeros_like(oc.asarray(x))
    for coefficient in coefficients:
        value = value * x + coefficient
    return value


def _infinite(sign: int) -> Callable[[Operand], Array]:
    return lambda x: oc.isinf(x) & (oc.signbit(x) if sign < 0 else ~oc.signbit(x))


def _is_real(x: Operand) -> Array:
    return oc.asarray(x).imag == 0


def _split_along(name: str, axis: int) -> Callable[[Operand, int | Sequence[int]], list[Array]]:
    def call(ary: Operand, indices_or_sections: int | Sequence[int]) -> list[Array]:
        array = oc.asarray(ary)
        place = 0 if name == "hsplit" and array.ndim == 1 else axis
        return oc.split(array, indices_or_sections, axis=place)

    return call


def _partition(a: Operand, kth: Any, axis: int = -1) -> Array:
    return oc.sort(a, axis=axis) if np.ndim(kth) else oc.partition(a, int(kth), axis=axis)


def _meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: Any = "xy") -> object:
    del copy
    if sparse:
        raise ArgumentError(
            "numpy.meshgrid: sparse=True is not supported for outcore arrays; broadcasting does the same"
        )
    return oc.meshgrid(*xi, indexing=indexing)


def _histogram(
    a: Operand, bins: Any = 10, range: Any = None, density: Any = None, weights: Operand | None = None
) -> object:
    return tuple(oc.histogram(a, bins, range=range, density=bool(density), weights=weights))


def _of_first(invert: bool) -> Callable[..., object]:
    """The values of the first array that are in the second, or are not."""

    def call(ar1: Operand, ar2: Operand, assume_unique: bool = False) -> Array:
        del assume_unique
        first = oc.unique(oc.asarray(ar1).ravel())
        return first[oc.isin(first, ar2, invert=invert)]

    return call


def _unique(
    ar: Operand,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Axis = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
) -> object:
    del sorted  # it always is
    if axis is not None and not (axis in (0, -1) and oc.asarray(ar).ndim == 1):
        raise ArgumentError(f"numpy.unique: axis={axis} of outcore arrays is not supported, only elements: axis=None")
    return oc.unique(ar, return_index, return_inverse, return_counts, equal_nan=equal_nan)


def _block(arrays: Sequence[Operand]) -> Array:
    def depth(part: object) -> int:
        return 1 + depth(part[0]) if isinstance(part, list) else 0

    levels = depth(arrays)

    def joined(part: object, level: int) -> Array:
        if not isinstance(part, list):
            array = oc.asarray(part)
            return array if array.ndim >= levels else oc.reshape(array, (1,) * (levels - array.ndim) + array.shape)
        return oc.concat([joined(inner, level - 1) for inner in part], axis=-level)

    return joined(arrays, levels)


def _rollaxis(a: Operand, axis: int, start: int = 0) -> Array:
    ndim = oc.asarray(a).ndim
    place = axis_of("rollaxis", axis, ndim)
    to = start + ndim if start < 0 else start
    return oc.moveaxis(a, place, to - 1 if place < to else to)


def _cross(a: Operand, b: Operand, axis: int = -1) -> Array:
    return oc.linalg.cross(a, b, axis=axis)


def _vdot(a: Operand, b: Operand) -> Array:
    return oc.vecdot(oc.asarray(a).ravel(), oc.asarray(b).ravel())


def _bincount(x: Operand, weights: Operand | None = None, minlength: int = 0) -> Array:
    return oc.bincount(x, weights=weights, minlength=minlength)


def _einsum(*operands: Any, optimize: Any = True) -> Array:
    del optimize  # the order is chosen by cost
    if not isinstance(operands[0], str):
        raise ArgumentError("numpy.einsum: of outcore arrays it takes subscripts as text")
    return oc.einsum(*operands)


def _empty_like(prototype: Operand, dtype: DTypeLike = None) -> Array:
    return oc.empty_like(prototype, dtype=dtype)


def _copy(a: Operand, order: str = "K") -> Array:
    del order
    return oc.asarray(a).copy()


FUNCTIONS: dict[Callable[..., object], Callable[..., object]] = {
    np.diagonal: _diagonal,
    np.diag: _diag,
    np.diagflat: lambda v, k=0: _diag(oc.asarray(v).ravel(), k),
    np.linspace: _linspace,
    np.argpartition: _argpartition,
    np.real_if_close: _real_if_close,
    np.vander: _vander,
    np.einsum_path: _einsum_path,
    np.setxor1d: lambda ar1, ar2, assume_unique=False: oc.setxor1d(ar1, ar2),
    np.can_cast: lambda from_, to: oc.can_cast(from_, to),
    np.common_type: lambda *arrays: np.common_type(*map(_without_values, arrays)),
    np.min_scalar_type: lambda a: oc.asarray(a).dtype,
    # Lazy arrays have no memory that anything could share.
    np.may_share_memory: lambda a, b, max_work=None: False,
    np.shares_memory: lambda a, b, max_work=None: False,
    np.inner: _inner,
    np.vdot: _vdot,
    np.cross: _cross,
    np.extract: _extract,
    np.flatnonzero: lambda a: oc.nonzero(oc.asarray(a).ravel())[0],
    np.sinc: _sinc,
    np.angle: _angle,
    np.fix: lambda x: oc.trunc(x),
    np.polyval: _polyval,
    np.isposinf: _infinite(1),
    np.isneginf: _infinite(-1),
    np.isreal: _is_real,
    np.iscomplex: lambda x: ~_is_real(x),
    np.isrealobj: lambda x: oc.asarray(x).dtype.kind != "c",
    np.iscomplexobj: lambda x: oc.asarray(x).dtype.kind == "c",
    np.hsplit: _split_along("hsplit", 1),
    np.vsplit: _split_along("vsplit", 0),
    np.dsplit: _split_along("dsplit", 2),
    np.partition: _partition,
    np.meshgrid: _meshgrid,
    np.histogram: _histogram,
    np.bincount: _bincount,
    np.union1d: lambda ar1, ar2: oc.unique(oc.concat([ar1, ar2], axis=None)),
    np.intersect1d: _of_first(invert=False),
    np.setdiff1d: _of_first(invert=True),
    np.unique: _unique,
    np.unique_all: lambda x: oc.unique_all(x),
    np.unique_counts: lambda x: oc.unique_counts(x),
    np.unique_inverse: lambda x: oc.unique_inverse(x),
    np.unique_values: lambda x: oc.unique_values(x),
    np.block: _block,
    np.rollaxis: _rollaxis,
    np.einsum: _einsum,
    np.broadcast_arrays: lambda *args: oc.broadcast_arrays(*args),
    np.unstack: lambda x, *, axis=0: oc.unstack(x, axis=axis),
    np.matrix_transpose: lambda x: oc.matrix_transpose(x),
    np.astype: lambda x, dtype, *, copy=True: oc.astype(x, dtype, copy=copy),
    np.copy: _copy,
    np.empty_like: _empty_like,
    np.ediff1d: lambda ary, to_end=None, to_begin=None: oc.ediff1d(ary, to_end=to_end, to_begin=to_begin),
    np.take_along_axis: lambda arr, indices, axis=-1: oc.take_along_axis(arr, indices, axis=axis),
    np.cumulative_sum: lambda x, *, axis=None, dtype=None, include_initial=False: oc.cumulative_sum(
        x, axis=axis, dtype=dtype, include_initial=include_initial
    ),
    np.cumulative_prod: lambda x, *, axis=None, dtype=None, include_initial=False: oc.cumulative_prod(
        x, axis=axis, dtype=dtype, include_initial=include_initial
    ),
}


def _radians(x: Operand) -> Array:
    return oc.asarray(x) * (math.pi / 180)


def _degrees(x: Operand) -> Array:
    return oc.asarray(x) * (180 / math.pi)


def _number_of(choose: Callable[[Operand, Operand], Array]) -> Callable[[Operand, Operand], Array]:
    """The extreme of two that passes over NaN."""

    def call(x1: Operand, x2: Operand) -> Array:
        a, b = oc.asarray(x1), oc.asarray(x2)
        if a.dtype.kind not in "f" and b.dtype.kind not in "f":
            return choose(x1, x2)
        first, second = (part if part.dtype.kind == "f" else part.astype(np.float64) for part in (a, b))
        return oc.where(oc.isnan(first), second, oc.where(oc.isnan(second), first, choose(first, second)))

    return call


def _float_power(x1: Operand, x2: Operand) -> Array:
    kinds = [np.result_type(oc.asarray(part).dtype, np.float64) for part in (x1, x2)]
    return oc.pow(*(oc.astype(oc.asarray(part), kind) for part, kind in zip((x1, x2), kinds, strict=True)))


def _fmod(x1: Operand, x2: Operand) -> Array:
    a, b = oc.asarray(x1), oc.asarray(x2)
    if a.dtype.kind == "c" or b.dtype.kind == "c":
        raise DTypeError("numpy.fmod: complex numbers have no remainder")
    remainder = oc.remainder(a, b)
    # The remainder has the sign of the divisor; fmod's that of the dividend.
    return oc.where((remainder != 0) & ((a < 0) != (b < 0)), remainder - b, remainder)


def _heaviside(x1: Operand, x2: Operand) -> Array:
    x = oc.asarray(x1)
    steps = oc.where(x < 0, 0.0, oc.where(x > 0, 1.0, x2))
    return oc.where(oc.isnan(x), np.nan, steps) if x.dtype.kind == "f" else steps


def _modf(x: Operand) -> tuple[Array, Array]:
    array = oc.asarray(x)
    array = array if array.dtype.kind == "f" else array.astype(np.float64)
    whole = oc.trunc(array)
    part = oc.where(oc.isinf(array), 0.0, array - whole)
    return oc.copysign(part, array), whole


def _divmod(x1: Operand, x2: Operand) -> tuple[Array, Array]:
    return oc.floor_divide(x1, x2), oc.remainder(x1, x2)


UFUNCS: dict[str, Callable[..., object]] = {
    "deg2rad": _radians,
    "radians": _radians,
    "rad2deg": _degrees,
    "degrees": _degrees,
    "fmax": _number_of(lambda a, b: oc.maximum(a, b)),
    "fmin": _number_of(lambda a, b: oc.minimum(a, b)),
    "float_power": _float_power,
    "fmod": _fmod,
    "heaviside": _heaviside,
    "modf": _modf,
    "divmod": _divmod,
}

__all__: Sequence[str] = ["FUNCTIONS", "UFUNCS"]
