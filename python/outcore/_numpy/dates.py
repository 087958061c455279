"""NumPy's functions of dates: `np.sort(t)`, `np.unique(t)`, `np.where(mask, t, np.datetime64("NaT"))` build nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from outcore import _api as oc
from outcore._numpy import typed
from outcore._numpy.typed import called, method
from outcore.dates import Dates, as_dates, meet

# They move elements, whatever these are.
_MOVES = (
    *("reshape", "ravel", "transpose", "squeeze", "expand_dims", "moveaxis", "swapaxes", "broadcast_to"),
    *("flip", "flipud", "fliplr", "roll", "rot90", "repeat", "tile", "take", "atleast_1d", "atleast_2d"),
)


def _moved(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(a: Any, *args: Any, **options: Any) -> Any:
        return a._like(function(a.integers, *args, **options))

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


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    **{getattr(np, name): _moved(getattr(np, name)) for name in _MOVES},
    **{getattr(np, name): method(name) for name in ("argmin", "argmax", "ptp", "sum", "mean", "cumsum")},
    **typed.FUNCTIONS,
    np.concatenate: _joined("concat"),
    np.stack: _joined("stack"),
    np.where: _where,
    np.diff: lambda a, n=1, axis=-1: a.diff(n, axis),
    np.searchsorted: lambda a, v, side="left": _dates_as(a, v).searchsorted(v, side),
    np.isin: lambda element, test_elements: oc.isin(_dates_as(element, test_elements), test_elements),
}


def apply_to_dates(function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """`__array_function__` of `Dates`. Raises DTypeError for a function that is not in the table."""
    return called(_FUNCTIONS, "dates is not supported; give it .integers", function, args, options)


__all__ = ["apply_to_dates"]
