"""Times in seconds, as people read them."""

from __future__ import annotations

# Seconds from which a time is in a unit and the next smaller one, the number of these that it has, and their names.
_PAIRS = ((48 * 3600, 24, 3600, "d", "h"), (2 * 3600, 60, 60, "h", "min"), (100, 60, 1, "min", "s"))


def format_time(seconds: float) -> str:
    """A time for people: `"3 d 4 h"`, `"13 min 50 s"`, and with three figures `"1.5 s"`, `"20 ms"`, `"< 1 µs"`."""
    for least, number, part, unit, smaller in _PAIRS:
        if seconds >= least:
            whole, beyond = divmod(round(seconds / part), number)
            return f"{whole} {unit} {beyond} {smaller}"
    if seconds >= 0.1 or not seconds:
        return f"{seconds:.3g} s"
    if seconds >= 1e-4:
        return f"{seconds * 1e3:.3g} ms"
    return f"{seconds * 1e6:.3g} µs" if seconds >= 1e-6 else "< 1 µs"
