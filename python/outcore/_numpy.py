"""NumPy's protocols: `np.exp(x)`, `np.sum(x, axis=0)`, `np.matmul(a, x)` build nodes instead of computing.

What has no entry here raises TypeError, as the protocols ask; nothing is computed behind the user's back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import outcore as oc
from outcore.errors import DTypeError

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
_UFUNCS = frozenset(oc.elementwise.__all__) - {"clip"} | {"matmul", "vecdot"}


def apply_ufunc(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """`__array_ufunc__`: calls and reductions of ufuncs that have a node."""
    name = ufunc.__name__
    if options.get("out") is not None and any(part is not None for part in options["out"]):
        raise DTypeError(f"numpy.{name}: outcore arrays are immutable and fill no out=; store() writes results")
    if method == "reduce" and name in _UFUNC_REDUCTIONS:
        given = {key: value for key, value in options.items() if value is not None and key != "out"}
        given.setdefault("axis", 0 if "axis" not in options else None)
        return getattr(oc, _UFUNC_REDUCTIONS[name])(*inputs, **given)
    standard = _UFUNC_NAMES.get(name, name)
    if method != "__call__" or standard not in _UFUNCS:
        return NotImplemented
    dtype = options.pop("dtype", None)
    options.pop("out", None)
    if options:
        raise DTypeError(f"numpy.{name}: {', '.join(options)}= is not supported for outcore arrays")
    result = getattr(oc, standard)(*inputs)
    return result if dtype is None else result.astype(dtype)


def _reduction(name: str, rename: Mapping[str, str]) -> Callable[..., Any]:
    def call(a: Any, axis: Any = None, *args: Any, **options: Any) -> Any:
        if args:
            raise DTypeError(f"numpy.{name}: pass arguments after axis by name for outcore arrays")
        given = {rename.get(key, key): value for key, value in options.items() if value is not None}
        dtype = given.pop("dtype", None) if name not in ("sum", "prod") else None
        if dtype is not None:
            a = oc.astype(a, dtype)
        return getattr(oc, name)(a, axis=axis, **given)

    return call


def _concatenate(arrays: Any, axis: int | None = 0) -> Any:
    return oc.concat(arrays, axis=axis)


def _stack(arrays: Any, axis: int = 0) -> Any:
    return oc.stack(arrays, axis=axis)


def _transpose(a: Any, axes: Any = None) -> Any:
    return oc.asarray(a).transpose(*([] if axes is None else [tuple(axes)]))


def _clip(a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Any:
    return oc.clip(a, a_min if min is None else min, a_max if max is None else max)


def _dot(a: Any, b: Any) -> Any:
    left, right = oc.asarray(a), oc.asarray(b)
    if not left.ndim or not right.ndim:
        return left * right
    return left @ right if right.ndim <= 2 else oc.tensordot(left, right, axes=([-1], [-2]))


def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    if ord is None:
        return oc.linalg.vector_norm(x, axis=axis, keepdims=keepdims)
    array = oc.asarray(x)
    if array.ndim == 2 and axis is None:
        return oc.linalg.matrix_norm(array, ord=ord, keepdims=keepdims)
    return oc.linalg.vector_norm(array, ord=ord, axis=axis, keepdims=keepdims)


def _swapaxes(a: Any, axis1: int, axis2: int) -> Any:
    order = list(range(oc.asarray(a).ndim))
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return oc.permute_dims(a, tuple(order))


def _tile(A: Any, reps: Any) -> Any:  # noqa: N803 - NumPy's name
    return oc.tile(A, (reps,) if isinstance(reps, int) else reps)


def _tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    if not isinstance(axes, int):
        axes = tuple([part] if isinstance(part, int) else part for part in axes)
    return oc.tensordot(a, b, axes=axes)


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    **{
        getattr(np, name): _reduction(name, {"ddof": "correction"})
        for name in ("sum", "prod", "mean", "var", "std", "min", "max", "any", "all", "argmin", "argmax")
    },
    np.amin: _reduction("min", {}),
    np.amax: _reduction("max", {}),
    np.count_nonzero: _reduction("count_nonzero", {}),
    np.where: lambda condition, x, y: oc.where(condition, x, y),
    np.concatenate: _concatenate,
    np.stack: _stack,
    np.transpose: _transpose,
    np.clip: _clip,
    np.dot: _dot,
    np.outer: lambda a, b: oc.linalg.outer(oc.asarray(a).ravel(), oc.asarray(b).ravel()),
    np.trace: lambda a, offset=0: oc.linalg.trace(a, offset=offset),
    np.linalg.norm: _norm,
    np.swapaxes: _swapaxes,
    np.tensordot: _tensordot,
    np.reshape: lambda a, shape: oc.reshape(a, shape),
    np.ravel: lambda a: oc.asarray(a).ravel(),
    np.squeeze: lambda a, axis=None: oc.asarray(a).squeeze(axis),
    np.expand_dims: lambda a, axis: oc.expand_dims(a, axis=axis),
    np.moveaxis: lambda a, source, destination: oc.moveaxis(a, source, destination),
    np.broadcast_to: lambda array, shape: oc.broadcast_to(array, shape),
    np.flip: lambda m, axis=None: oc.flip(m, axis=axis),
    np.roll: lambda a, shift, axis=None: oc.roll(a, shift, axis=axis),
    np.repeat: lambda a, repeats, axis=None: oc.repeat(a, repeats, axis=axis),
    np.tile: _tile,
    np.take: lambda a, indices, axis=None: oc.take(a, indices, axis=axis),
    np.diff: lambda a, n=1, axis=-1: oc.diff(a, axis=axis, n=n),
    np.tril: lambda m, k=0: oc.tril(m, k=k),
    np.triu: lambda m, k=0: oc.triu(m, k=k),
    np.round: lambda a: oc.round(a),
    np.real: lambda val: oc.asarray(val).real,
    np.imag: lambda val: oc.asarray(val).imag,
    np.zeros_like: lambda a, dtype=None: oc.zeros_like(a, dtype=dtype),
    np.ones_like: lambda a, dtype=None: oc.ones_like(a, dtype=dtype),
    np.full_like: lambda a, fill_value, dtype=None: oc.full_like(a, fill_value, dtype=dtype),
    np.shape: lambda a: a.shape,
    np.ndim: lambda a: a.ndim,
    np.size: lambda a: a.size,
    np.result_type: oc.result_type,
}


def apply_function(function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """`__array_function__`: NumPy functions that have a counterpart here."""
    ours = _FUNCTIONS.get(function)
    if ours is None:
        return NotImplemented
    if options.pop("out", None) is not None:
        raise DTypeError(f"numpy.{function.__name__}: outcore arrays are immutable and fill no out=")
    return ours(*args, **options)
