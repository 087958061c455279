"""Arguments of `asarray` beside numbers: dates, durations and strings."""

from __future__ import annotations

import datetime

import numpy as np

from outcore import dates, text
from outcore._base.element_types import DTypeLike
from outcore._lazy.array import Array
from outcore._lazy.foreign import check_room, is_stored
from outcore._lazy.typed import Typed
from outcore.errors import DTypeError

_DATES = ("m", "M")
_PYTHONS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    ((datetime.date, np.datetime64), "M8"),
    ((datetime.timedelta, np.timedelta64), "m8"),
    (str, "U"),
    (bytes, "S"),
)


def as_typed(value: object, dtype: DTypeLike, copy: bool | None) -> Typed | None:
    """The value as dates or text if it is of them, or `dtype` is; None for numbers."""
    kind = _kind_of(dtype)
    if dtype is not None and not kind:
        return None  # numbers are asked for, and what is none is refused as such
    if isinstance(value, Typed):
        if dtype is None or np.dtype(dtype) == value.dtype:
            return value
        if isinstance(value, dates.Dates) and kind in _DATES:
            typed: Typed = value.astype(dtype)
            return typed
        raise DTypeError(f"asarray: {value.dtype} is not {np.dtype(dtype)}")
    if isinstance(value, Array):
        return dates.view(value, dtype) if kind in _DATES else None
    if is_stored(value):
        stored = dates.of_stored(value)
        return stored if stored is None or not kind else stored.astype(dtype)
    if not isinstance(value, (np.ndarray, np.generic)):
        implied = dtype if kind else _implied(value)
        value = value if implied is None else np.asarray(value, dtype=implied)
    if not isinstance(value, (np.ndarray, np.generic)):
        return None
    # numpy.ma takes longer to load than an expression to build.
    if isinstance(value, np.ndarray) and type(value) is not np.ndarray and isinstance(value, np.ma.MaskedArray):
        return None
    if kind in _DATES and value.dtype.kind != kind:
        value = value.astype(dtype)
    if value.dtype.kind not in "mMSU":
        return None
    if copy:
        check_room("asarray with copy=True", value.nbytes, "without it nothing is loaded")
        value = value.copy()
    if value.dtype.kind in "SU":
        return text.of_numpy(np.asarray(value))
    made = dates.of_numpy(value)
    return made if not kind else made.astype(dtype)


def _kind_of(dtype: DTypeLike) -> str:
    """The kind of a type of dates or strings; nothing for all others."""
    if dtype is None:
        return ""
    try:
        kind = np.dtype(dtype).kind
    except TypeError:
        return ""
    return kind if kind in "mMSU" else ""


def _implied(value: object) -> str | None:
    """NumPy's type, without unit or length, of a date, a duration or a string, or of the first of all in a list."""
    while isinstance(value, (list, tuple)) and value:
        value = value[0]
    for kinds, dtype in _PYTHONS:
        if isinstance(value, kinds):
            return dtype
    return None


__all__ = ["as_typed"]
