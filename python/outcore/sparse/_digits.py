"""Numbers read from text as NumPy arrays: the digits of a number are added up eight at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

# A text has this many characters, and four more, before its first number.
DIGITS_MAX = 20
# Eight characters as one little-endian word, and what is said of all of them at once.
_ZEROS = np.uint64(0x3030303030303030)
_TO_HIGH = np.uint64(0x7676767676767676)  # added to a byte above 9, sets its highest bit
_HIGH = 0x8080808080808080
_WORD_DIGITS = 8
# What is kept of a word whose last so many characters are a number's, for none to eight of them and more.
_KEPT = np.asarray([2**64 - 2 ** (64 - 8 * length) for length in range(_WORD_DIGITS + 1)], np.uint64)
_EXACT_DIGITS, _EXACT_POWER = 15, 22  # of these the quotient of two floats is the nearest one (Clinger 1990)


def _words(text: npt.NDArray[np.uint8], ends: npt.NDArray[np.intp]) -> npt.NDArray[np.uint64]:
    """The eight characters before each of `ends`, as a word whose highest byte is the last of them."""
    overlapping: npt.NDArray[Any] = np.ndarray((len(text) - 7,), "<u8", text.data, strides=(1,))
    found: npt.NDArray[np.uint64] = overlapping[ends - _WORD_DIGITS]
    return found


def _add_up(words: npt.NDArray[np.uint64], lengths: npt.NDArray[np.intp]) -> npt.NDArray[np.uint64]:
    """The number that the last `lengths` of eight characters are. Raises ValueError for one that is no digit.

    Neighbours are added in pairs, then pairs, then fours, within the word (Lemire, "Quickly parsing eight digits").
    """
    # Digits become 0 to 9 and other characters more; of those before the number nothing is left.
    found = (words ^ _ZEROS) & _KEPT.take(lengths, mode="clip")
    if int(np.bitwise_or.reduce((found + _TO_HIGH) | found)) & _HIGH:
        raise ValueError
    found = found * np.uint64(10) + (found >> np.uint64(8))
    low = (found & np.uint64(0x000000FF000000FF)) * np.uint64(0x000F424000000064)
    high = ((found >> np.uint64(16)) & np.uint64(0x000000FF000000FF)) * np.uint64(0x0000271000000001)
    low += high
    low >>= np.uint64(32)
    return low


def integers(
    text: npt.NDArray[np.uint8], begins: npt.NDArray[np.intp], ends: npt.NDArray[np.intp]
) -> npt.NDArray[np.uint64]:
    """The numbers of up to 19 digits between places of a text. Raises ValueError for others."""
    lengths = ends - begins
    if not len(lengths):
        return np.zeros(0, np.uint64)
    longest = int(lengths.max())
    if longest >= DIGITS_MAX:
        raise ValueError
    found = _add_up(_words(text, ends), lengths)
    for done in range(_WORD_DIGITS, longest, _WORD_DIGITS):
        more = np.flatnonzero(lengths > done)
        found[more] += _add_up(_words(text, ends[more] - done), lengths[more] - done) * np.uint64(10**done)
    return found


def signed(
    text: npt.NDArray[np.uint8], begins: npt.NDArray[np.intp], ends: npt.NDArray[np.intp]
) -> npt.NDArray[np.int64]:
    """As `integers`, with a sign or none in front of each."""
    first = text[begins]
    minus = first == ord("-")
    found = integers(text, begins + (minus | (first == ord("+"))), ends)
    if (ends - begins <= (minus | (first == ord("+")))).any() or (found > np.uint64(2**63 - 1)).any():
        raise ValueError
    numbers = found.astype(np.int64)
    return np.where(minus, -numbers, numbers)


def reals(
    text: npt.NDArray[np.uint8], begins: npt.NDArray[np.intp], ends: npt.NDArray[np.intp]
) -> npt.NDArray[np.float64]:
    """The numbers between places of a text, each the nearest float64. Raises ValueError where there is none."""
    lengths = ends - begins
    if not len(lengths):
        return np.zeros(0, np.float64)
    points = _points(text, begins, ends)
    after = ends - np.minimum(points + 1, ends)  # digits behind the point
    digits = lengths - (points < ends)
    first = text[begins]
    negated = (first == ord("-")) | (first == ord("+"))
    short = (digits - negated <= _EXACT_DIGITS) & (digits - negated > 0) & (after <= _EXACT_POWER)
    plain = np.flatnonzero(short & ~_has_letters(text, begins, ends))
    found = np.empty(len(lengths))
    whole = integers(text, begins[plain] + negated[plain], points[plain])
    parts = integers(text, ends[plain] - after[plain], ends[plain])
    scale = 10.0 ** np.arange(_EXACT_DIGITS + 1)
    places = after[plain]
    numbers = (whole * scale[places].astype(np.uint64) + parts).astype(np.float64) / scale[places]
    found[plain] = np.where(first[plain] == ord("-"), -numbers, numbers)
    if len(plain) < len(found):
        rest = np.ones(len(found), dtype=bool)
        rest[plain] = False
        found[rest] = _spelled(text, begins[rest], lengths[rest])
    return found


def _points(
    text: npt.NDArray[np.uint8], begins: npt.NDArray[np.intp], ends: npt.NDArray[np.intp]
) -> npt.NDArray[np.intp]:
    """Where the decimal point of each number is; its end where it has none."""
    places = np.flatnonzero(text == ord("."))
    if not len(places):
        return ends
    first = places[np.minimum(np.searchsorted(places, begins), len(places) - 1)]
    return np.where((first >= begins) & (first < ends), first, ends)


def _has_letters(
    text: npt.NDArray[np.uint8], begins: npt.NDArray[np.intp], ends: npt.NDArray[np.intp]
) -> npt.NDArray[np.bool_]:
    """Which of the numbers have more to them than digits, a point and a sign in front: an exponent, "nan", "inf"."""
    places = np.flatnonzero(text >= ord("A"))
    return np.searchsorted(places, begins) != np.searchsorted(places, ends) if len(places) else begins > ends


def _spelled(
    text: npt.NDArray[np.uint8], begins: npt.NDArray[np.intp], lengths: npt.NDArray[np.intp]
) -> npt.NDArray[np.float64]:
    """Numbers of any form, by NumPy's reading of strings."""
    width = -(-int(lengths.max()) // _WORD_DIGITS) * _WORD_DIGITS
    ended = np.concatenate([text, np.zeros(width, np.uint8)])
    letters = np.empty((len(begins), width // _WORD_DIGITS), "<u8")
    for place in range(letters.shape[1]):
        done = place * _WORD_DIGITS
        extra = 8 * (_WORD_DIGITS - np.clip(lengths - done, 0, _WORD_DIGITS)).astype(np.uint64)
        half = extra >> np.uint64(1)
        words = _words(ended, begins + done + _WORD_DIGITS)
        letters[:, place] = words & (np.uint64(2**64 - 1) >> half >> (extra - half))
    return letters.view(f"S{width}")[:, 0].astype(np.float64)


__all__ = ["DIGITS_MAX", "integers", "reals", "signed"]
