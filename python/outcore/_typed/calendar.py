"""Dates and times from one unit to another, as lazy expressions of integers.

Years and months differ in length, so they are no multiple of a day: between them and days the calendar is followed,
by H. Hinnant's integer algorithms `days_from_civil` and `civil_from_days` ("chrono-Compatible Low-Level Date
Algorithms", 2021). Both count years from March on: then a leap day is the last of its year, and the days before each
month are ⌊(153 m + 2) / 5⌋. All other units are multiples of each other, and are divided towards the past.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from outcore._base.types import DType
from outcore._lazy.array import Array
from outcore._standard.searching import where
from outcore.elementwise import floor
from outcore.errors import DTypeError, RangeError

NAT = int(np.iinfo(np.int64).min)  # "not a time", NumPy's missing value
_MONTHS = {"Y": 12, "M": 1}
_DAY = 86_400
_SECONDS = {
    "W": Fraction(7 * _DAY),
    "D": Fraction(_DAY),
    "h": Fraction(3600),
    "m": Fraction(60),
    **{unit: Fraction(1, 1000**power) for power, unit in enumerate(("s", "ms", "us", "ns", "ps", "fs", "as"))},
}
# The Gregorian calendar repeats after 400 years: these have so many days.
_ERA_YEARS, _ERA_DAYS = 400, 146_097
_EPOCH_DAYS = 719_468  # from 0000-03-01 to 1970-01-01
_EPOCH_MONTHS = 1970 * 12 - 2  # from March of year 0 to January 1970


def days_of_months(months: Array) -> Array:
    """The day, since 1970-01-01, that a month since January 1970 begins with."""
    since = months + _EPOCH_MONTHS
    year, month = since // 12, since % 12
    days = year * 365 + year // 4 - year // 100 + year // _ERA_YEARS
    return days + (153 * month + 2) // 5 - _EPOCH_DAYS


def months_of_days(days: Array) -> Array:
    """The month, since January 1970, that a day since 1970-01-01 lies in."""
    since = days + _EPOCH_DAYS
    era = since // _ERA_DAYS
    day = (since - era * _ERA_DAYS).astype(np.float32)
    # Less the leap days before it, every year has 365.
    year = _whole(day - _whole(day, 1460) + _whole(day, 36_524) - _whole(day, _ERA_DAYS - 1), 365)
    day_of_year = day - (365 * year + _whole(year, 4) - _whole(year, 100))
    month = year * 12 + _whole(5 * day_of_year + 2, 153)
    return era * (_ERA_YEARS * 12) + month.astype(np.int64) - _EPOCH_MONTHS


def _whole(numbers: Array, divisor: int) -> Array:
    """⌊n / d⌋ of whole numbers below 2²⁴ in single precision, which processors divide many times faster than integers.

    It is exact: a quotient that is not whole lies 1 / d from the next number at least, and n / d · 2⁻²⁴ is less.
    """
    return floor(numbers / divisor)


def unit_of(dtype: DType) -> tuple[str, int]:
    """A type's unit and how many of it one step is; ("generic", 1) where it has none."""
    unit, count = np.datetime_data(dtype)
    return unit, int(count)


def converted(integers: Array, old: DType, new: DType) -> Array:
    """Counts of one type's unit as counts of another's, towards the past; NaT stays.

    Of durations a year has 365.2425 days, and a month a twelfth of them, as in NumPy. Counts beyond 64 bits wrap
    around. Raises RangeError for units of which one takes more than 2⁶³ of the other.
    """
    (unit, count), (to, every) = unit_of(old), unit_of(new)
    if (unit, count) == (to, every) or unit == "generic":
        return integers
    if to == "generic":
        raise DTypeError(f"{old} cannot become {new}: the unit would be lost")
    if old.kind == "M" and (unit in _MONTHS) != (to in _MONTHS):
        scaled = _by_calendar(integers, (unit, count), (to, every))
    else:
        scaled = _scaled(integers, _length(unit, to) * count / (_length(to, unit) * every), f"{old} to {new}")
    return where(integers == NAT, NAT, scaled)


def _length(unit: str, beside: str) -> Fraction:
    """How long a unit is: in months beside years and months, else in seconds."""
    if unit not in _MONTHS:
        return _SECONDS[unit]
    if beside in _MONTHS:
        return Fraction(_MONTHS[unit])
    return Fraction(_ERA_DAYS * _DAY * _MONTHS[unit], _ERA_YEARS * 12)


def _by_calendar(integers: Array, old: tuple[str, int], new: tuple[str, int]) -> Array:
    (unit, count), (to, every) = old, new
    if unit in _MONTHS:
        days = days_of_months(integers * (_MONTHS[unit] * count))
        return _scaled(days, _DAY / (_SECONDS[to] * every), f"days to {to}")
    days = _scaled(integers, _SECONDS[unit] * count / _DAY, f"{unit} to days")
    return months_of_days(days) // (_MONTHS[to] * every)


def _scaled(integers: Array, ratio: Fraction, what: str) -> Array:
    """Integers times a fraction, towards the past."""
    if max(ratio.numerator, ratio.denominator) > np.iinfo(np.int64).max:
        raise RangeError(f"{what}: a factor of {max(ratio, 1 / ratio)} does not fit 64 bits")
    scaled = integers * ratio.numerator if ratio.numerator != 1 else integers
    return scaled // ratio.denominator if ratio.denominator != 1 else scaled


__all__ = ["NAT", "converted", "unit_of"]
