"""NumPy's functions of dates and durations as formulas of their integers.

NumPy itself says which types go together and in which unit they meet (`ufunc.resolve_dtypes`); what is here computes
in it. Of a result the missing value, NaT, is kept apart: it is the least integer and would count as one.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from outcore._lazy.array import Array
from outcore._standard.searching import where
from outcore._typed.calendar import NAT
from outcore.elementwise import abs, isfinite, logical_not, maximum, minimum, sign

Formula = Callable[..., Array]
_HAS_SIGN_OF_NAT = np.sign(np.timedelta64("NaT", "s")).dtype.kind == "f"  # which is NaN then


def is_nat(integers: Array) -> Array:
    """Where integers stand for NaT."""
    return integers == NAT


def last_is_nat(integers: Array) -> Array:
    """Integers in the same order but for NaT, which is behind all: 1 less, modulo 2⁶⁴. Adding 1 takes them back."""
    return integers - 1


def _either(first: Array, second: Array) -> Array:
    return is_nat(first) | is_nat(second)


def _with_nat(formula: Formula) -> Formula:
    """Of two operands that both may be NaT."""
    return lambda first, second: where(_either(first, second), NAT, formula(first, second))


def _compared(formula: Formula) -> Formula:
    """Nothing is before, behind or equal to NaT, not even NaT."""
    return lambda first, second: formula(first, second) & logical_not(_either(first, second))


def _decimal(numbers: Array, missing: Array) -> Array:
    """Floating-point counts cut to whole ones; what is no number is NaT."""
    counts = logical_not(missing) & isfinite(numbers)
    return where(counts, where(counts, numbers, 0.0).astype(np.int64), NAT)


def _times(duration: Array, number: Array) -> Array:
    if number.dtype.kind == "f":
        return _decimal(duration.astype(np.float64) * number, is_nat(duration))
    return where(is_nat(duration), NAT, duration * number)


def _parts(duration: Array, number: Array) -> Array:
    """A duration cut into so many parts, towards zero; into none it is NaT."""
    if number.dtype.kind == "f":
        return _decimal(duration.astype(np.float64) / number, is_nat(duration))
    divisor = where(number == 0, 1, number)
    below = duration // divisor
    upward = (below * divisor != duration) & ((duration < 0) != (divisor < 0))
    return where(is_nat(duration) | (number == 0), NAT, below + upward.astype(np.int64))


def _ratio(first: Array, second: Array) -> Array:
    return where(_either(first, second), np.nan, first.astype(np.float64) / second.astype(np.float64))


def _often(first: Array, second: Array) -> Array:
    """How often a duration goes into another; 0 where there is no answer, as NumPy has it."""
    none = _either(first, second) | (second == 0)
    return where(none, 0, first // where(none, 1, second))


def _remainder(first: Array, second: Array) -> Array:
    none = _either(first, second) | (second == 0)
    return where(none, NAT, first % where(none, 1, second))


def _same(integers: Array) -> Array:
    return integers


def _sign(integers: Array) -> Array:
    """As the installed NumPy: before 2.5 NaT has the sign of the negative number it is held as."""
    signs = sign(integers)
    return where(is_nat(integers), np.nan, signs.astype(np.float64)) if _HAS_SIGN_OF_NAT else signs


# By the ufunc's name and the kinds of its operands: M a date, m a duration, i and f numbers.
FORMULAS: dict[tuple[str, str], Formula] = {
    **{("add", kinds): _with_nat(lambda first, second: first + second) for kinds in ("Mm", "mM", "mm")},
    **{("subtract", kinds): _with_nat(lambda first, second: first - second) for kinds in ("Mm", "MM", "mm")},
    **{("multiply", kinds): _times for kinds in ("mi", "mf")},
    **{("multiply", kinds): lambda number, duration: _times(duration, number) for kinds in ("im", "fm")},
    **{(name, kinds): _parts for name in ("divide", "floor_divide") for kinds in ("mi", "mf")},
    ("divide", "mm"): _ratio,
    ("floor_divide", "mm"): _often,
    ("remainder", "mm"): _remainder,
    ("negative", "m"): lambda integers: where(is_nat(integers), NAT, -integers),
    ("positive", "m"): _same,
    ("absolute", "m"): lambda integers: where(is_nat(integers), NAT, abs(integers)),
    ("sign", "m"): _sign,
}
for _kind in "Mm":
    FORMULAS |= {
        ("isnat", _kind): is_nat,
        ("isnan", _kind): is_nat,
        ("isfinite", _kind): lambda integers: logical_not(is_nat(integers)),
        ("less", _kind * 2): _compared(lambda first, second: first < second),
        ("less_equal", _kind * 2): _compared(lambda first, second: first <= second),
        ("greater", _kind * 2): _compared(lambda first, second: first > second),
        ("greater_equal", _kind * 2): _compared(lambda first, second: first >= second),
        ("equal", _kind * 2): _compared(lambda first, second: first == second),
        ("not_equal", _kind * 2): lambda first, second: (first != second) | _either(first, second),
        # NaT is the least integer, so it wins of two as it is, or loses once it is put behind all.
        ("minimum", _kind * 2): minimum,
        ("fmax", _kind * 2): maximum,
        ("maximum", _kind * 2): lambda first, second: maximum(last_is_nat(first), last_is_nat(second)) + 1,
        ("fmin", _kind * 2): lambda first, second: minimum(last_is_nat(first), last_is_nat(second)) + 1,
    }
COMPARISONS = frozenset({"less", "less_equal", "greater", "greater_equal", "equal", "not_equal"})

__all__ = ["COMPARISONS", "FORMULAS", "is_nat", "last_is_nat"]
