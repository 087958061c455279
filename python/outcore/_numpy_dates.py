"""NumPy's functions of dates: `np.sort(t)`, `np.unique(t)`, `np.where(mask, t, np.datetime64("NaT"))` build nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import outcore as oc
from outcore._numpy_arguments import check_arguments
from outcore.dates import Dates, as_dates, meet
from outcore.errors import DTypeError

# They move elements, whatever these are.
_MOVES = (
    *("reshape", "ravel", "transpose", "squeeze", "expand_dims", "moveaxis", "swapaxes", "broadcast_to"),
    *("flip", "flipud", "fliplr", "roll", "rot90", "repeat", "tile", "take", "atleast_1d", "atleast_2d"),
)


def _moved(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(a: Any, *args: Any, **options: Any) -> Any:
        return a._like(function(a.integers, *args, **options))

    return call


def _method(name: str) -> Callable[..., Any]:
    def call(a: Any, axis: Any = None, **options: Any) -> Any:
        given = {key: value for key, value in options.items() if value is not None and value is not np._NoValue}
        method = getattr(a, name)
        check_arguments(name, method, (axis,), given)
        return method(axis, **given)

    return call


def _along_last(name: str) -> Callable[..., Any]:
    """A sort along the last axis unless told; of all elements for None."""

    def call(a: Any, axis: int | None = -1, kind: str | None = None, *, stable: bool | None = None) -> Any:
        del kind, stable
        return getattr(a.reshape(-1) if axis is None else a, name)(-1 if axis is None else axis)

    return call


def _joined(name: str) -> Callable[..., Any]:
    def call(arrays: Any, axis: int | None = 0) -> Any:
        kind = next(part.dtype.kind for part in arrays if isinstance(part, Dates))
        parts = meet(*(as_dates(part, kind) for part in arrays))
        return parts[0]._like(getattr(oc, name)([part.integers for part in parts], axis=axis))

    return call


def _where(condition: Any, x: Any, y: Any) -> Any:
    kind = next(part.dtype.kind for part in (x, y) if isinstance(part, Dates))
    first, second = meet(as_dates(x, kind), as_dates(y, kind))
    return first._like(oc.where(condition, first.integers, second.integers))


def _dates_as(value: Any, other: Any) -> Dates:
    """An argument as dates, beside another that are."""
    return value if isinstance(value, Dates) else as_dates(value, other.dtype.kind)


def _unique(ar: Any, *, return_counts: bool = False) -> Any:
    return tuple(ar.unique_counts()) if return_counts else ar.unique()


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    **{getattr(np, name): _moved(getattr(np, name)) for name in _MOVES},
    **{getattr(np, name): _method(name) for name in ("min", "max", "argmin", "argmax", "ptp", "sum", "mean", "cumsum")},
    **{getattr(np, name): _along_last(name) for name in ("sort", "argsort")},
    np.concatenate: _joined("concat"),
    np.stack: _joined("stack"),
    np.where: _where,
    np.unique: _unique,
    np.diff: lambda a, n=1, axis=-1: a.diff(n, axis),
    np.searchsorted: lambda a, v, side="left": _dates_as(a, v).searchsorted(v, side),
    np.isin: lambda element, test_elements: _dates_as(element, test_elements).isin(test_elements),
    np.shape: lambda a: a.shape,
    np.ndim: lambda a: a.ndim,
    np.size: lambda a: a.size,
    np.copy: lambda a: a.copy(),
}


def apply_function(function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """`__array_function__` of `Dates`. Raises DTypeError for a function that is not in the table."""
    ours = _FUNCTIONS.get(function)
    if ours is None:
        raise DTypeError(f"numpy.{function.__name__} of outcore's dates is not supported; give it .integers")
    check_arguments(function.__name__, ours, args, options)
    return ours(*args, **options)


__all__ = ["apply_function"]
