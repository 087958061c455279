"""Conditions on elements that only the run can hold against them: it ends where one does not keep to its bounds."""

from __future__ import annotations

from outcore import _core
from outcore._lazy.array import Array

_LARGEST = (1 << 63) - 1


def within(array: Array, least: int, most: int, text: str) -> Array:
    """Integers from `least` to `most`; another one, in place of {}, ends the run by IndexingError of `text`."""
    return Array(_core.check(array._expr, (least, min(most, _LARGEST)), text, True))


def places(name: str, array: Array, axis: int, length: int) -> Array:
    """Positions along an axis, counted from the front or, below zero, from the end; others end the run."""
    text = f"{name}: index {{}} is out of bounds for axis {axis} with length {length}"
    return within(array, -length, length - 1, text)


def finite(array: Array, text: str) -> Array:
    """Numbers that are finite. Another one ends the run: ArgumentError of `text`, the number in place of {}."""
    return Array(_core.check(array._expr, None, text, False))


__all__ = ["finite", "places", "within"]
