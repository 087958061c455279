"""Lines of numbers as NumPy arrays, without Python per line: the digits of a number are added up eight at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from outcore.errors import FormatError

Columns = list[npt.NDArray[Any]]

_BLOCK = 1 << 20  # the temporary arrays of a block stay in the processor's cache
_NEWLINE, _ZERO = 10, ord("0")
# Eight characters as one little-endian word, and what is said of all of them at once.
_ZEROS = np.uint64(0x3030303030303030)
_TO_HIGH = np.uint64(0x4646464646464646)
_HIGH = np.uint64(0x8080808080808080)
_WORD_DIGITS = 8
_DIGITS_MAX = 20
_EXACT_DIGITS, _EXACT_POWER = 15, 22  # of these the quotient of two floats is the nearest one (Clinger 1990)


def blocks_of(file: IO[bytes]) -> Iterator[bytes]:
    """The file in whole lines, some at a time, each ending with a newline."""
    rest = b""
    while block := file.read(_BLOCK):
        cut = block.rfind(b"\n") + 1
        if not cut:
            rest += block
            continue
        yield rest + block[:cut]
        rest = block[cut:]
    if rest:
        yield rest + b"\n"


class Lines:
    """Reads columns of numbers from blocks of lines, and knows in which line what is wrong is.

    `separators` are the characters between numbers, beside white space. Lines that begin with one of `comments` and
    empty ones are passed over. Of each line the columns in `integers` are taken, and those in `reals`; with `reals`
    None a third column is taken where there is one. Raises FormatError that names `name` and the line.
    """

    def __init__(
        self, name: str, integers: tuple[int, ...], reals: tuple[int, ...] | None, separators: str, comments: str
    ) -> None:
        self._name = name
        self._integers = integers
        self._reals = reals
        self._line = 0
        self._width: int | None = None
        between = np.zeros(256, dtype=bool)
        between[[*range(33), *separators.encode()]] = True
        self._within = ~between
        self._comments = np.frombuffer(comments.encode(), np.uint8)

    def skip(self, lines: int) -> None:
        """Counts lines that others have read."""
        self._line += lines

    def parse(self, block: bytes) -> Columns:
        """The columns of a block of whole lines."""
        text = np.frombuffer(block, np.uint8)
        kept = self._without_comments(text)
        try:
            found = self._columns(kept)
        except ValueError:
            self._find(block)
            raise
        self._line += block.count(b"\n")
        return found

    def _without_comments(self, text: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        """The text without lines that begin with a comment's character."""
        if not any((text == character).any() for character in self._comments):
            return text
        ends = np.flatnonzero(text == _NEWLINE) + 1
        begins = np.concatenate([[0], ends[:-1]])
        used = np.flatnonzero(self._within[text])
        # Of a line without anything in it this is of a later one, and the line is empty.
        first = used[np.minimum(np.searchsorted(used, begins), max(len(used) - 1, 0))] if len(used) else begins
        spoken = np.isin(text[first], self._comments) & (first >= begins) & (first < ends)
        return text[np.repeat(~spoken, ends - begins)]

    def _columns(self, text: npt.NDArray[np.uint8]) -> Columns:
        """Raises ValueError where a line has not as many numbers as the first, or what is none."""
        padded = np.full(len(text) + _DIGITS_MAX + 4, 32, np.uint8)
        padded[_DIGITS_MAX + 4 :] = text
        within = self._within[padded]
        edges = np.flatnonzero(within[1:] != within[:-1]) + 1
        begins, ends = edges[0::2], edges[1::2]
        newlines = np.flatnonzero(padded == _NEWLINE)
        begins, ends = self._rows(begins, ends, newlines)
        if self._reals is None:
            self._reals = (2,) if begins.shape[1] > 2 else ()
        found: Columns = [integers(padded, begins[:, column], ends[:, column]) for column in self._integers]
        found += [reals(padded, begins[:, column], ends[:, column]) for column in self._reals]
        return found

    def _rows(
        self, begins: npt.NDArray[np.intp], ends: npt.NDArray[np.intp], newlines: npt.NDArray[np.intp]
    ) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """Where the numbers of each line begin and end, a line in a row."""
        if not len(begins):
            width = self._width or 2
            return begins.reshape(0, width), ends.reshape(0, width)
        if self._width is None:
            self._width = int(np.searchsorted(begins, newlines[np.searchsorted(newlines, begins[0])]))
        width = self._width
        needed = max(*self._integers, *(self._reals or ())) + 1
        if len(begins) % width or width < needed:
            raise ValueError
        begins, ends = begins.reshape(-1, width), ends.reshape(-1, width)
        if len(newlines) != len(begins):  # some lines are empty
            newlines = newlines[np.searchsorted(newlines, ends[:, -1])]
        if (newlines < ends[:, -1]).any() or (begins[1:, 0] < newlines[:-1]).any():
            raise ValueError
        if (begins[:, 0] > newlines).any():
            raise ValueError
        return begins, ends

    def _find(self, block: bytes) -> None:
        """Raises FormatError for the first line of a block that is not as it should be."""
        for place, line in enumerate(block.split(b"\n")[:-1], self._line + 1):
            text = self._without_comments(np.frombuffer(line + b"\n", np.uint8))
            try:
                self._columns(text)
            except ValueError:
                shown = line[:60].decode(errors="replace").strip()
                words = len("".join(chr(c) if self._within[c] else " " for c in line).split())
                wanted = max(self._width or 0, max(*self._integers, *(self._reals or ())) + 1)
                why = f"{words} numbers, not {wanted}" if words != wanted else "not all of it is numbers"
                raise FormatError(f"{self._name}: line {place}: {shown!r}: {why}") from None


def _words(text: npt.NDArray[np.uint8], ends: npt.NDArray[np.intp]) -> npt.NDArray[np.uint64]:
    """The eight characters before each of `ends`, as a word whose highest byte is the last of them."""
    overlapping = np.ndarray((len(text) - 7,), "<u8", text.data, strides=(1,))
    return overlapping[ends - _WORD_DIGITS]


def _add_up(words: npt.NDArray[np.uint64], lengths: npt.NDArray[np.intp]) -> npt.NDArray[np.uint64]:
    """The number that the last `lengths` of eight characters are. Raises ValueError for one that is no digit.

    Neighbours are added in pairs, then pairs, then fours, within the word (Lemire, "Quickly parsing eight digits").
    """
    missing = (np.uint64(8) * (_WORD_DIGITS - np.clip(lengths, 0, _WORD_DIGITS)).astype(np.uint64))
    # Characters before the number become zeros; a shift by all 64 bits is none of NumPy's, so it is made in two.
    half = missing >> np.uint64(1)
    keep = np.uint64(2**64 - 1) << half << (missing - half)
    found = (words & keep) | (_ZEROS & ~keep)
    if (((found + _TO_HIGH) | (found - _ZEROS)) & _HIGH).any():
        raise ValueError
    found -= _ZEROS
    found = found * np.uint64(10) + (found >> np.uint64(8))
    low = (found & np.uint64(0x000000FF000000FF)) * np.uint64(0x000F424000000064)
    high = ((found >> np.uint64(16)) & np.uint64(0x000000FF000000FF)) * np.uint64(0x0000271000000001)
    return (low + high) >> np.uint64(32)


def integers(
    text: npt.NDArray[np.uint8], begins: npt.NDArray[np.intp], ends: npt.NDArray[np.intp]
) -> npt.NDArray[np.uint64]:
    """The numbers of up to 19 digits between places of a text. Raises ValueError for others."""
    lengths = ends - begins
    if not len(lengths):
        return np.zeros(0, np.uint64)
    longest = int(lengths.max())
    if longest >= _DIGITS_MAX:
        raise ValueError
    found = _add_up(_words(text, ends), lengths)
    for done in range(_WORD_DIGITS, longest, _WORD_DIGITS):
        more = np.flatnonzero(lengths > done)
        found[more] += _add_up(_words(text, ends[more] - done), lengths[more] - done) * np.uint64(10**done)
    return found


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
    signed = np.isin(text[begins], (ord("-"), ord("+")))
    short = (digits - signed <= _EXACT_DIGITS) & (digits - signed > 0) & (after <= _EXACT_POWER)
    plain = np.flatnonzero(short & ~_has_letters(text, begins, ends))
    found = np.empty(len(lengths))
    whole = integers(text, begins[plain] + signed[plain], points[plain])
    parts = integers(text, ends[plain] - after[plain], ends[plain])
    scale = 10.0 ** np.arange(_EXACT_DIGITS + 1)
    places = after[plain]
    numbers = (whole * scale[places].astype(np.uint64) + parts).astype(np.float64) / scale[places]
    found[plain] = np.where(text[begins[plain]] == ord("-"), -numbers, numbers)
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
    letters = np.concatenate([[0], np.cumsum(text >= ord("A"), dtype=np.int64)])
    found: npt.NDArray[np.bool_] = letters[begins] != letters[ends]
    return found


def _spelled(
    text: npt.NDArray[np.uint8], begins: npt.NDArray[np.intp], lengths: npt.NDArray[np.intp]
) -> npt.NDArray[np.float64]:
    """Numbers of any form, by NumPy's reading of strings."""
    width = int(lengths.max())
    letters = np.zeros((len(begins), width), np.uint8)
    for place in range(width):
        there = lengths > place
        letters[there, place] = text[begins[there] + place]
    return letters.view(f"S{width}")[:, 0].astype(np.float64)


__all__ = ["Columns", "Lines", "blocks_of"]
