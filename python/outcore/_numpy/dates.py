"""NumPy's functions of dates: `np.sort(t)`, `np.unique(t)`, `np.where(mask, t, np.datetime64("NaT"))` build nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from outcore import _api as oc
from outcore._lazy.array import Array
from outcore._lazy.node import Operand
from outcore._numpy import typed
from outcore._numpy.typed import called, method
from outcore.dates import Dates, as_dates, meet

# They move elements, whatever these are.
_MOVES = (
    *("reshape", "ravel", "transpose", "squeeze", "expand_dims", "moveaxis", "swapaxes", "broadcast_to"),
    *("flip", "flipud", "fliplr", "roll", "rot90", "repeat", "tile", "take", "atleast_1d", "atleast_2d"),
)


def _moved(function: Callable[..., Array]) -> Callable[..., object]:
    def call(a: Dates, *args: object, **options: object) -> object:
        return a._like(function(a.integers, *args, **options))

    return call


def _joined(name: str) -> Callable[..., object]:
    def call(arrays: Sequence[Operand | Dates], axis: int | str | None = 0) -> object:
        kind = next(part.dtype.kind for part in arrays if isinstance(part, Dates))
        parts = meet(*(as_dates(part, kind) for part in arrays))
        return parts[0]._like(getattr(oc, name)([part.integers for part in parts], axis=axis))

    return call


def _where(condition: Operand, x: Operand | Dates, y: Operand | Dates) -> object:
    kind = next(part.dtype.kind for part in (x, y) if isinstance(part, Dates))
    first, second = meet(as_dates(x, kind), as_dates(y, kind))
    return first._like(oc.where(condition, first.integers, second.integers))


def _dates_as(value: object, other: Dates) -> Dates:
    """An argument as dates, beside another that are."""
    return value if isinstance(value, Dates) else as_dates(value, other.dtype.kind)


_FUNCTIONS: dict[Callable[..., object], Callable[..., object]] = {
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


def apply_to_dates(function: Callable[..., object], args: tuple[object, ...], options: dict[str, object]) -> object:
    """`__array_function__` of `Dates`. Raises DTypeError for a function that is not in the table."""
    return called(_FUNCTIONS, "dates is not supported; give it .integers", function, args, options)


__all__ = ["apply_to_dates"]
