"""NumPy's protocols: `np.exp(x)`, `np.sum(x, axis=0)`, `np.matmul(a, x)` build nodes instead of computing.

A function without an entry here raises TypeError, as the protocols ask; nothing is computed behind the user's back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from outcore import _api as oc
from outcore._base.element_types import DTypeLike, dtype_of
from outcore._base.types import DType, Keywords
from outcore._lazy.array import Array
from outcore._lazy.node import Axis, Operand, axes_of, axis_of, integers, is_weak
from outcore._lazy.typed import Typed
from outcore._numpy import functions
from outcore._numpy import linalg as _numpy_linalg
from outcore._numpy.absent import full_name, other_library, ours_alone, refuse
from outcore._numpy.arguments import adapted, check_arguments
from outcore._numpy.dates import apply_to_dates
from outcore._numpy.typed import apply_to_text
from outcore._numpy_like import missing
from outcore.errors import DTypeError, ShapeError

# NumPy's names where they differ from the standard's; all other names are the same.
_UFUNC_NAMES = {
    "absolute": "abs",
    "fabs": "abs",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctan2": "atan2",
    "arctanh": "atanh",
    "conjugate": "conj",
    "invert": "bitwise_invert",
    "left_shift": "bitwise_left_shift",
    "power": "pow",
    "right_shift": "bitwise_right_shift",
    "rint": "round",
    "true_divide": "divide",
    "mod": "remainder",
}
_UFUNC_REDUCTIONS = {
    "add": "sum",
    "multiply": "prod",
    "minimum": "min",
    "maximum": "max",
    "logical_and": "all",
    "logical_or": "any",
}
_UFUNC_SCANS = {
    "add": "cumulative_sum",
    "multiply": "cumulative_prod",
    "maximum": "cummax",
    "minimum": "cummin",
}
# Always of floating-point numbers in NumPy, while the standard's function keeps integers as they are.
_FLOATING_UFUNCS = frozenset({"fabs", "rint"})
_UFUNCS = frozenset(oc.elementwise.__all__) - {"clip"} | {"matmul", "vecdot"}


def apply_ufunc(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], options: Keywords) -> object:
    """`__array_ufunc__`: calls and reductions of ufuncs that have a node."""
    name = ufunc.__name__
    if any(isinstance(part, Typed) for part in inputs):
        return NotImplemented  # theirs to answer
    targets = options.pop("out", None)
    if targets is not None and any(part is not None for part in targets):
        return _fill(name, targets, apply_ufunc(ufunc, method, inputs, options))
    if method == "reduce" and name in _UFUNC_REDUCTIONS:
        keywords = {key: value for key, value in options.items() if value is not None}
        keywords.setdefault("axis", 0 if "axis" not in options else None)
        return getattr(oc, _UFUNC_REDUCTIONS[name])(*inputs, **keywords)
    if method == "__call__" and name in functions.UFUNCS and not options:
        return functions.UFUNCS[name](*inputs)
    if method == "accumulate" and name in _UFUNC_SCANS:
        return _along(_UFUNC_SCANS[name], *inputs, **options)
    standard = _UFUNC_NAMES.get(name, name)
    if method == "outer" and len(inputs) == 2:
        inputs, method = _spread(*inputs), "__call__"
    if method != "__call__" or standard not in _UFUNCS:
        if any(map(other_library, inputs)):
            return NotImplemented
        refuse(f"numpy.{name}" if method == "__call__" else f"numpy.{name}.{method}", inputs)
    dtype = options.pop("dtype", None)
    if options:
        raise DTypeError(f"numpy.{name}: {', '.join(options)}= is not supported for outcore arrays")
    if dtype is not None or name in _FLOATING_UFUNCS:
        inputs = _cast_to_loop(ufunc, inputs, dtype)
    return getattr(oc, standard)(*inputs)


def _along(name: str, x: Operand, axis: int = 0, dtype: DTypeLike = None) -> object:
    """A scan as a ufunc gives it: in the type of the array, where the function of sums would take 64 bits."""
    array = oc.asarray(x, dtype=dtype)
    if name in ("cummax", "cummin"):
        return getattr(oc, name)(array, axis=axis)
    wide = array.dtype if dtype is not None else None
    return getattr(oc, name)(array, axis=axis, dtype=wide)


def _spread(x1: Operand, x2: Operand) -> tuple[Array, Array]:
    """Two arrays so that each element of one meets each of the other."""
    first, second = oc.asarray(x1), oc.asarray(x2)
    return oc.reshape(first, first.shape + (1,) * second.ndim), second


def _fill(name: str, targets: tuple[Any, ...], result: Any) -> object:
    """`b += x` with a NumPy array on the left: it is filled with the result, which is computed."""
    if result is NotImplemented or len(targets) != 1:
        return NotImplemented
    target = targets[0]
    if not isinstance(target, np.ndarray):
        raise DTypeError(f"numpy.{name}: outcore arrays are immutable and fill no out=; store() writes results")
    if result.shape != target.shape:
        raise ShapeError(f"numpy.{name}: a result of shape {result.shape} for an out= of shape {target.shape}")
    if not np.can_cast(result.dtype, target.dtype, "same_kind"):
        raise DTypeError(f"numpy.{name}: a result of {result.dtype} does not go into an out= of {target.dtype}")
    np.copyto(target, result.compute(), casting="same_kind")
    return target


def _loop_input(part: object) -> type | DType:
    """The argument of `ufunc.resolve_dtypes` for an input: an element type, or a Python scalar's kind."""
    if is_weak(part) and not isinstance(part, bool):
        return next(kind for kind in (int, float, complex) if isinstance(part, kind))
    return oc.asarray(part).dtype


def _cast_to_loop(ufunc: np.ufunc, inputs: tuple[object, ...], dtype: DTypeLike) -> tuple[Any, ...]:
    """The inputs in the types NumPy computes in, where `dtype` is the result's if given; Python scalars stay weak."""
    result = None if dtype is None else dtype_of(dtype)
    try:
        loop = ufunc.resolve_dtypes((*map(_loop_input, inputs), None), signature=(*(None,) * ufunc.nin, result))
    except TypeError as error:
        raise DTypeError(f"numpy.{ufunc.__name__}: {error}") from None
    casts = zip(inputs, loop[: ufunc.nin], strict=True)
    return tuple(part if is_weak(part) else oc.asarray(part, dtype=kind) for part, kind in casts)


def _reduced_where(name: str, a: Operand, mask: object, axis: Axis, keywords: Keywords) -> object:
    """A reduction over the elements that a mask chooses."""
    if name in ("sum", "prod", "mean", "var", "std"):
        return getattr(missing, f"{name}_where")(a, mask, axis=axis, **keywords)
    array = oc.asarray(a)
    if name in ("all", "any"):
        flags = array != 0
        kept = flags | ~oc.asarray(mask) if name == "all" else flags & oc.asarray(mask)
        return getattr(oc, name)(kept, axis=axis, **keywords)
    raise DTypeError(f"numpy.{name}: where= is not supported for outcore arrays")


def _reduction(name: str, rename: Mapping[str, str]) -> Callable[..., object]:
    def call(a: Operand, axis: Axis = None, *args: object, **options: Any) -> object:
        if args:
            raise DTypeError(f"numpy.{name}: pass arguments after axis by name for outcore arrays")
        keywords = {rename.get(key, key): value for key, value in options.items() if value is not None}
        dtype = keywords.pop("dtype", None) if name not in ("sum", "prod", "nansum", "nanprod") else None
        if dtype is not None:
            if dtype_of(dtype).kind in "biu":
                raise DTypeError(f"numpy.{name}: gives floating-point numbers, not {dtype_of(dtype)}; cast the result")
            a = oc.astype(a, dtype)
        mask = keywords.pop("where", True)
        check_arguments(name, getattr(oc, name), (a,), {"axis": axis, **keywords})
        if mask is not True:
            return _reduced_where(name, a, mask, axis, keywords)
        return getattr(oc, name)(a, axis=axis, **keywords)

    return call


def _concatenate(arrays: Sequence[Operand], axis: int | str | None = 0) -> Array:
    return oc.concat(arrays, axis=axis)


def _stack(arrays: Sequence[Operand], axis: int = 0) -> Array:
    return oc.stack(arrays, axis=axis)


def _transpose(a: Operand, axes: Any = None) -> Array:
    return oc.asarray(a).transpose(*([] if axes is None else [tuple(axes)]))


def _clip(
    a: Operand,
    a_min: Operand | None = None,
    a_max: Operand | None = None,
    *,
    min: Operand | None = None,
    max: Operand | None = None,
) -> Array:
    return oc.clip(a, a_min if min is None else min, a_max if max is None else max)


def _dot(a: Operand, b: Operand) -> Array:
    left, right = oc.asarray(a), oc.asarray(b)
    if not left.ndim or not right.ndim:
        return left * right
    return left @ right if right.ndim <= 2 else oc.tensordot(left, right, axes=([-1], [-2]))


def _norm(x: Operand, ord: Any = None, axis: Axis = None, keepdims: bool = False) -> Array:
    """A vector's norm over one axis (or all, without `ord`), a matrix's over two: rows first, wherever they lie."""
    array = oc.asarray(x)
    if ord is None and axis is None:
        return oc.linalg.vector_norm(array, keepdims=keepdims)
    if axis is None or isinstance(axis, (int, np.integer, str)):
        axes = tuple(axes_of("numpy.linalg.norm", axis, array))
    else:
        axes = tuple(axis_of("numpy.linalg.norm", one, array) for one in axis)
    if len(axes) == 1 and not isinstance(ord, str):
        return oc.linalg.vector_norm(array, ord=2 if ord is None else ord, axis=axes, keepdims=keepdims)
    if len(axes) != 2:
        raise ShapeError(f"numpy.linalg.norm: order {ord!r} is not defined over {len(axes)} axes of {array.shape}")
    matrices = oc.moveaxis(array, axes, (-2, -1))
    norms = oc.linalg.matrix_norm(matrices, ord="fro" if ord in (None, "f") else ord, keepdims=keepdims)
    return oc.moveaxis(norms, (-2, -1), axes) if keepdims else norms


def _trace(a: Operand, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: DTypeLike = None) -> Array:
    return oc.linalg.trace(oc.moveaxis(a, (axis1, axis2), (-2, -1)), offset=offset, dtype=dtype)


def _tensordot(a: Operand, b: Operand, axes: Any = 2) -> Array:
    if not isinstance(axes, (int, np.integer)):
        axes = tuple(integers(part) for part in axes)
    return oc.tensordot(a, b, axes=axes)


def _where(condition: Operand, x: Any = None, y: Any = None) -> object:
    return oc.where(condition) if x is None and y is None else oc.where(condition, x, y)


def _along_all(name: str) -> Callable[..., object]:
    """NumPy's scans go over all elements where no axis is given."""

    def call(a: Operand, axis: int | str | None = None, dtype: DTypeLike = None) -> object:
        array = oc.asarray(a)
        return getattr(oc, name)(array.ravel() if axis is None else array, axis=axis or 0, dtype=dtype)

    return call


def _sorting(name: str) -> Callable[..., object]:
    """Every kind of sort is stable here; no axis is all elements in one."""

    def call(a: Operand, axis: int | str | None = -1, kind: str | None = None, *, stable: bool | None = None) -> object:
        del kind, stable
        array = oc.asarray(a)
        return getattr(oc, name)(array.ravel() if axis is None else array, axis=-1 if axis is None else axis)

    return call


def _reshape(a: Operand, shape: int | tuple[int, ...], order: str = "C", *, copy: bool | None = None) -> Array:
    if order != "C":
        raise DTypeError(f"numpy.reshape, numpy.ravel: order {order!r} is not supported for outcore arrays, only 'C'")
    return oc.reshape(a, shape, copy=copy)


def _round(a: Operand, decimals: int = 0) -> Array:
    """Scaled, rounded and scaled back, as NumPy does it. Integers stay as they are: they have no decimals."""
    return oc.asarray(a).round(decimals)


def _diff(a: Operand, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Array:
    """A 0-d edge is repeated along the other axes; the standard's function takes whole ones only."""
    array = oc.asarray(a)
    place = axis_of("diff", axis, array)
    thin = (*array.shape[:place], 1, *array.shape[place + 1 :])
    first, last = (edge if edge is None or np.ndim(edge) else oc.broadcast_to(edge, thin) for edge in (prepend, append))
    return oc.diff(array, axis=place, n=n, prepend=first, append=last)


def _pad(array: Operand, pad_width: Any, mode: Any = "constant", *, constant_values: Any = 0) -> Array:
    return oc.pad(array, pad_width, mode, constant_values=constant_values)


# Functions that take NumPy's arguments as they are.
_SAME = (
    *("allclose", "array_equal", "array_equiv", "array_split", "atleast_1d", "atleast_2d", "atleast_3d"),
    *("append", "apply_along_axis", "apply_over_axes", "choose", "delete", "diag_indices_from", "geomspace"),
    *("histogram2d", "histogram_bin_edges", "histogramdd", "i0", "insert", "ix_", "lexsort", "logspace", "packbits"),
    *("ravel_multi_index", "resize", "sort_complex", "tril_indices_from", "trim_zeros", "triu_indices_from"),
    *("unpackbits", "unravel_index", "unwrap"),
    *("column_stack", "convolve", "corrcoef", "correlate", "cov", "digitize", "dstack", "fliplr", "flipud"),
    *("gradient", "hstack"),
    *("interp", "isclose", "kron", "nan_to_num"),
    *("piecewise", "rot90", "select", "split", "swapaxes", "trapezoid", "vstack"),
)


def _same(name: str) -> Callable[..., object]:
    return adapted(name, getattr(oc, name), getattr(np, name))


_FUNCTIONS: dict[Callable[..., object], Callable[..., object]] = {
    **{
        getattr(np, name): _reduction(name, {"ddof": "correction"})
        for name in ("sum", "prod", "mean", "var", "std", "min", "max", "any", "all", "argmin", "argmax")
    },
    np.amin: _reduction("min", {}),
    np.amax: _reduction("max", {}),
    np.count_nonzero: _reduction("count_nonzero", {}),
    np.where: _where,
    np.concatenate: _concatenate,
    np.stack: _stack,
    np.transpose: _transpose,
    np.clip: _clip,
    np.dot: _dot,
    np.outer: lambda a, b: oc.linalg.outer(oc.asarray(a).ravel(), oc.asarray(b).ravel()),
    np.trace: _trace,
    np.linalg.norm: _norm,
    np.tensordot: _tensordot,
    np.reshape: _reshape,
    np.ravel: lambda a, order="C": _reshape(a, -1, order),
    np.squeeze: lambda a, axis=None: oc.asarray(a).squeeze(axis),
    np.expand_dims: lambda a, axis: oc.expand_dims(a, axis=axis),
    np.moveaxis: lambda a, source, destination: oc.moveaxis(a, source, destination),
    np.broadcast_to: lambda array, shape: oc.broadcast_to(array, shape),
    np.flip: lambda m, axis=None: oc.flip(m, axis=axis),
    np.roll: lambda a, shift, axis=None: oc.roll(a, shift, axis=axis),
    np.repeat: lambda a, repeats, axis=None: oc.repeat(a, repeats, axis=axis),
    np.tile: lambda A, reps: oc.tile(A, reps),  # noqa: N803 - NumPy's name
    np.take: lambda a, indices, axis=None: oc.take(a, indices, axis=axis),
    np.diff: _diff,
    np.cumsum: _along_all("cumulative_sum"),
    np.cumprod: _along_all("cumulative_prod"),
    np.sort: _sorting("sort"),
    np.argsort: _sorting("argsort"),
    np.nonzero: lambda a: oc.nonzero(a),
    np.argwhere: lambda a: oc.argwhere(a),
    np.compress: lambda condition, a, axis=None: oc.compress(condition, a, axis=axis),
    np.median: lambda a, axis=None: oc.median(a, axis=axis),
    np.quantile: lambda a, q, axis=None: oc.quantile(a, q, axis=axis),
    np.nanquantile: lambda a, q, axis=None: oc.nanquantile(a, q, axis=axis),
    np.searchsorted: lambda a, v, side="left": oc.searchsorted(a, v, side=side),
    np.isin: lambda element, test_elements: oc.isin(element, test_elements),
    np.tril: lambda m, k=0: oc.tril(m, k=k),
    np.triu: lambda m, k=0: oc.triu(m, k=k),
    np.round: _round,
    np.around: _round,
    np.real: lambda val: oc.asarray(val).real,
    np.imag: lambda val: oc.asarray(val).imag,
    np.zeros_like: lambda a, dtype=None: oc.zeros_like(a, dtype=dtype),
    np.ones_like: lambda a, dtype=None: oc.ones_like(a, dtype=dtype),
    np.full_like: lambda a, fill_value, dtype=None: oc.full_like(a, fill_value, dtype=dtype),
    np.shape: lambda a: a.shape,
    np.ndim: lambda a: a.ndim,
    np.size: lambda a: a.size,
    np.result_type: oc.result_type,
    **{getattr(np, name): _same(name) for name in _SAME},
    **{
        getattr(np, name): _reduction(name, {"ddof": "correction"})
        for name in ("nansum", "nanprod", "nanmean", "nanvar", "nanstd", "nanmin", "nanmax", "nanargmin", "nanargmax")
    },
    **{getattr(np, name): _reduction(name, {}) for name in ("nanmedian", "average", "ptp")},
    **{getattr(np, name): _along_all(name) for name in ("nancumsum", "nancumprod")},
    np.percentile: lambda a, q, axis=None: oc.percentile(a, q, axis=axis),
    np.nanpercentile: lambda a, q, axis=None: oc.nanpercentile(a, q, axis=axis),
    np.pad: _pad,
    **functions.FUNCTIONS,
    **_numpy_linalg.FUNCTIONS,
}


def apply_function(
    function: Callable[..., object], types: Iterable[type], args: tuple[object, ...], options: dict[str, object]
) -> object:
    """`__array_function__`: NumPy functions that have a counterpart here."""
    if any(issubclass(kind, Typed) for kind in types):
        return NotImplemented  # theirs to answer
    ours = _FUNCTIONS.get(function)
    if ours is None:
        if not ours_alone(types):
            return NotImplemented
        refuse(full_name(function), [*args, *options.values()])
    if options.pop("out", None) is not None:
        raise DTypeError(f"numpy.{function.__name__}: outcore arrays are immutable and fill no out=")
    check_arguments(function.__name__, ours, args, options)
    return ours(*args, **options)


def is_taken(function: object) -> bool:
    """Whether a function of NumPy takes lazy arrays."""
    return function in _FUNCTIONS


def ufunc_of(name: str) -> str | None:
    """Outcore's name of a universal function of NumPy, where that is another."""
    return _UFUNC_NAMES.get(name)


__all__ = ["apply_function", "apply_to_dates", "apply_to_text", "apply_ufunc", "is_taken", "ufunc_of"]
