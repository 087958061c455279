"""Numbers as the CF conventions have them in files: packed by scale and offset, with fill values, times since a date.

After the CF Metadata Conventions 1.11, sections 2.5.1 (missing data), 4.4 (time) and 8.1 (packed data); types of
results are those that xarray chooses.
"""

from __future__ import annotations

import re

import numpy as np

from outcore import _core
from outcore._base.types import DType
from outcore._lazy.annotated import Annotation, Annotations, fill_from
from outcore._lazy.array import Array, oc
from outcore._lazy.typed import Typed
from outcore._typed.calendar import NAT
from outcore.dates import Dates

_FILLS = ("_FillValue", "missing_value")
_PACKING = ("scale_factor", "add_offset")
_CALENDARS = ("standard", "gregorian", "proleptic_gregorian")
_SECONDS = {"day": 86_400, "hour": 3_600, "minute": 60, "second": 1}
_FRACTIONS = {"millisecond": "ms", "microsecond": "us", "nanosecond": "ns"}
_SHORT = {
    "d": "day",
    "h": "hour",
    "hr": "hour",
    "min": "minute",
    "s": "second",
    "sec": "second",
    "ms": "millisecond",
    "msec": "millisecond",
    "us": "microsecond",
    "ns": "nanosecond",
}
# Dates before the Gregorian calendar are others in the standard one than NumPy's.
_GREGORIAN = np.datetime64("1582-10-15", "s")
_SINCE = re.compile(r"\s*(\w+)\s+since\s+(.+?)\s*$", re.IGNORECASE)
_DURATIONS = {
    "days": "D",
    "hours": "h",
    "minutes": "m",
    "seconds": "s",
    "milliseconds": "ms",
    "microseconds": "us",
    "nanoseconds": "ns",
}
_MOMENT = re.compile(r"(\d{1,4})-(\d{1,2})-(\d{1,2})(?:[T ]+(\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.0*)?)?)?)?")
_NANOSECONDS_FROM, _NANOSECONDS_TO = np.datetime64("1678-01-01", "s"), np.datetime64("2262-01-01", "s")
_LARGEST = np.iinfo(np.int64).max


def decoded(array: Array) -> Array | Typed:
    """The array that stored numbers stand for, by their attributes: floats, dates, truths, or the numbers as they are.

    Fill values are NaN or NaT; attributes that were applied are gone. Fused with what reads it: no I/O of its own.
    """
    attrs = array.attrs
    if not attrs or array.dtype.kind not in "iuf":
        return array
    kept = {name: value for name, value in attrs.items() if not _is_applied(name, value)}
    if _text(attrs, "dtype") == "bool" and array.dtype.itemsize == 1:
        del kept["dtype"]
        return array.astype(bool).annotate(attrs=kept)
    unsigned = _text(attrs, "_Unsigned").lower()
    if array.dtype.kind in "iu" and unsigned in ("true", "false"):
        kind = np.dtype(f"{'u' if unsigned == 'true' else 'i'}{array.dtype.itemsize}")
        array, attrs = array.astype(kind), {**attrs, **_as_kind(attrs, kind)}
    fills = _fills(attrs, array.dtype)
    unit = _DURATIONS.get(_text(attrs, "units"))
    if array.dtype.kind == "i" and unit is not None and _text(attrs, "dtype").startswith("timedelta64["):
        missing, integers = _missing(array, fills), array.astype(np.int64)
        integers = integers if missing is None else oc.where(missing, NAT, integers)
        plain = {name: value for name, value in kept.items() if name not in ("units", "dtype")}
        return Dates(integers, f"timedelta64[{unit}]").annotate(attrs=plain)
    time = _time(attrs, array.dtype)
    if time is not None and not any(name in attrs for name in _PACKING):
        for name in ("units", "calendar"):
            kept.pop(name, None)
        return _dates(array, fills, *time).annotate(attrs=kept)
    if len(kept) == len(attrs):
        return array
    return _unpacked(array, attrs, fills).annotate(attrs=kept)


def _text(attrs: Annotations, name: str) -> str:
    value = attrs.get(name)
    return value if isinstance(value, str) else ""


def _is_applied(name: str, value: Annotation) -> bool:
    """Whether an attribute says how numbers are stored, in a way that these conventions know."""
    if name in _FILLS:
        number = fill_from(value) if isinstance(value, str) else value
        return number is not None and np.asarray(number).dtype.kind in "iuf"
    return name == "_Unsigned" or (name in _PACKING and _one_number(value) is not None)


def _as_kind(attrs: Annotations, kind: DType) -> Annotations:
    """Fill values of integers whose sign the file has otherwise."""
    return {name: np.asarray(attrs[name]).astype(kind) for name in _FILLS if name in attrs}


def _fills(attrs: Annotations, dtype: DType) -> list[np.generic]:
    """Values that stand for nothing, in the type of the stored numbers; those that the type does not hold are none."""
    fills: list[np.generic] = []
    for name in _FILLS:
        value = attrs.get(name)
        if isinstance(value, str):
            value = fill_from(value)
        if value is None:
            continue
        numbers = np.asarray(value)
        if numbers.dtype.kind not in "iuf":
            continue
        for number in numbers.ravel():
            with np.errstate(all="ignore"):
                one = number.astype(dtype)
            if (one == number or dtype.kind == "f") and one == one and one not in fills:
                fills.append(one)
    return fills


def _missing(array: Array, fills: list[np.generic]) -> Array | None:
    masks = [array == fill for fill in fills]
    if not masks:
        return None
    missing: Array = masks[0]
    for mask in masks[1:]:
        missing = missing | mask
    return missing


def _unpacked(array: Array, attrs: Annotations, fills: list[np.generic]) -> Array:
    packing = {name: _one_number(attrs[name]) for name in _PACKING if name in attrs}
    packing = {name: number for name, number in packing.items() if number is not None}
    if not packing and not fills:
        return array
    kind = _float_type(array.dtype, packing)
    values = array.astype(kind)
    missing = _missing(array, fills)
    if missing is not None:
        values = oc.where(missing, np.asarray(np.nan, kind)[()], values)
    if "scale_factor" in packing:
        values = values * np.asarray(packing["scale_factor"]).astype(kind)[()]
    if "add_offset" in packing:
        values = values + np.asarray(packing["add_offset"]).astype(kind)[()]
    return values


def _one_number(value: Annotation) -> np.generic | None:
    array = np.asarray(value)
    return array.ravel()[0] if array.size == 1 and array.dtype.kind in "iuf" else None


def _float_type(dtype: DType, packing: Annotations) -> DType:
    """The type of unpacked numbers."""
    single, double = np.dtype(np.float32), np.dtype(np.float64)
    scale, offset = packing.get("scale_factor"), packing.get("add_offset")
    kinds = [np.asarray(number).dtype for number in (scale, offset) if number is not None]
    if len(kinds) == 2 and kinds[0] == kinds[1] and kinds[0] in (single, double):
        return double if dtype.itemsize == 4 and dtype.kind in "iu" else kinds[0]
    if offset is not None:
        return double
    if kinds:
        return kinds[0] if kinds[0].kind == "f" else double
    if dtype.kind == "f":
        return single if dtype.itemsize <= 4 else double
    return single if dtype.itemsize <= 2 else double


def _time(attrs: Annotations, dtype: DType) -> tuple[str, np.datetime64] | None:
    """The unit in which times count, and the date from which; None for numbers that are no times of our calendar."""
    calendar = attrs.get("calendar", "standard")
    parts = _SINCE.match(_text(attrs, "units"))
    if parts is None or not isinstance(calendar, str) or calendar.lower() not in _CALENDARS:
        return None
    word = parts[1].lower()
    singular = word.removesuffix("s")
    word = _SHORT.get(word) or _SHORT.get(singular, singular)
    reference = _reference(parts[2])
    if reference is None or word not in (*_SECONDS, *_FRACTIONS):
        return None
    if _unit_of(word, dtype)[0] == "ns" and not _NANOSECONDS_FROM < reference < _NANOSECONDS_TO:
        return None
    return (word, reference) if calendar.lower() == "proleptic_gregorian" or reference >= _GREGORIAN else None


def _reference(text: str) -> np.datetime64 | None:
    """The date in a unit of time: ISO 8601, with fewer digits than that has as well, and UTC or nothing for a zone."""
    text = re.sub(r"\s*(UTC|GMT|Z|[+-]00:?00)$", "", text.strip(), flags=re.IGNORECASE)
    match = _MOMENT.fullmatch(text)
    if match is None:
        return None
    year, month, day, *clock = (int(part or 0) for part in match.groups())
    hour, minute, second = clock
    try:
        return np.datetime64(f"{year:04d}-{month:02d}-{day:02d}T{hour:02d}:{minute:02d}:{second:02d}", "s")
    except ValueError:
        return None


def _unit_of(word: str, dtype: DType) -> tuple[str, int]:
    """The unit of dates, and how many of that are one of the file's: whole numbers stay what they are, and fractions
    are kept to the microsecond, in which all years of people have room."""
    if dtype.kind in "iu":
        return (_FRACTIONS[word], 1) if word in _FRACTIONS else ("s", _SECONDS[word])
    if word in _SECONDS:
        return "us", _SECONDS[word] * 1_000_000
    return {"millisecond": ("us", 1_000), "microsecond": ("ns", 1_000), "nanosecond": ("ns", 1)}[word]


def _dates(array: Array, fills: list[np.generic], word: str, reference: np.datetime64) -> Dates:
    if array.dtype == np.int64:
        fills = [*fills, np.int64(NAT)]  # as xarray writes it, with no word on that
    missing = _missing(array, fills)
    unit, per = _unit_of(word, array.dtype)
    first = int(reference.astype(f"datetime64[{unit}]").astype(np.int64))
    most = (_LARGEST - abs(first)) // per - 1
    if array.dtype.kind == "f":
        absent = array != array
        missing = absent if missing is None else missing | absent
        numbers = oc.where(missing, 0.0, array.astype(np.float64))
        whole = oc.floor(numbers)  # products of whole parts are exact
        parts = oc.round((numbers - whole) * float(per)).astype(np.int64)
        integers = _within(whole, most) * per + parts + first
    else:
        numbers = array if missing is None else oc.where(missing, np.zeros((), array.dtype)[()], array)
        integers = _within(numbers, most) * per + first
    if missing is not None:
        integers = oc.where(missing, NAT, integers)
    return Dates(integers, f"datetime64[{unit}]")


def _within(numbers: Array, most: int) -> Array:
    """Whole numbers as int64. One too large for a date ends the run: ArgumentError."""
    if numbers.dtype.itemsize < 8:
        return numbers.astype(np.int64)
    most = min(most, 1 << 62) if numbers.dtype.kind == "f" else most  # as a float no more than that
    least = 0 if numbers.dtype.kind == "u" else -most
    ends = [np.asarray(end).astype(numbers.dtype)[()] for end in (least, most)]
    is_within = (numbers >= ends[0]) & (numbers <= ends[1])
    whole = oc.where(is_within, numbers, np.zeros((), numbers.dtype)[()]).astype(np.int64)
    text = "open: a time is too large for a date; decode=False gives the numbers"
    zeros = Array(_core.check(oc.where(is_within, 0.0, np.nan)._expr, None, text, False))
    return whole + zeros.astype(np.int64)


__all__ = ["decoded"]
