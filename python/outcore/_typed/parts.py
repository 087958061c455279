"""Parts of dates: the year, the month, the day and so on, as integers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from outcore._lazy.array import Array
from outcore._standard.searching import where
from outcore._typed.calendar import NAT, converted
from outcore.errors import DTypeError

_THURSDAY = 3  # 1970-01-01, where Monday is 0
MISSING = -1  # the part of NaT


def part_of(integers: Array, dtype: np.dtype[np.datetime64], name: str) -> Array:
    """The part of that name of each date, int64; -1 of NaT. Raises DTypeError for durations."""
    if dtype.kind != "M":
        raise DTypeError(f"{name}: {dtype} are durations, which have no {name}; dates have one")

    def counted(unit: str) -> Array:
        return converted(integers, dtype, np.dtype(f"datetime64[{unit}]"))

    def within(unit: str, larger: str) -> Array:
        begin = converted(counted(larger), np.dtype(f"datetime64[{larger}]"), np.dtype(f"datetime64[{unit}]"))
        return counted(unit) - begin

    parts: dict[str, Callable[[], Array]] = {
        "year": lambda: counted("Y") + 1970,
        "month": lambda: counted("M") % 12 + 1,
        "season": lambda: (counted("M") + 1) % 12 // 3,
        "day": lambda: within("D", "M") + 1,
        "dayofyear": lambda: within("D", "Y") + 1,
        "weekday": lambda: (counted("D") + _THURSDAY) % 7,
        "hour": lambda: within("h", "D"),
        "minute": lambda: within("m", "h"),
        "second": lambda: within("s", "m"),
    }
    return where(integers == NAT, MISSING, parts[name]())


__all__ = ["MISSING", "part_of"]
