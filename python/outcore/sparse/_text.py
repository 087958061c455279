"""Lines of numbers as NumPy arrays, without Python per line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from outcore.errors import FormatError
from outcore.sparse._digits import DIGITS_MAX, integers, reals, signed

Columns = list[npt.NDArray[Any]]

_BLOCK = 1 << 18  # the temporary arrays of a block stay in the processor's cache
_NEWLINE, _SPACE = 10, 32


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
    empty ones are passed over. Of each line the columns `ids` are taken, which count from `base` and have `limits`, and
    those of `values`, as float64 or, if `whole`, int64; None is a third column where there is one. Raises FormatError
    that names `name` and the line.
    """

    def __init__(
        self,
        name: str,
        ids: tuple[int, int],
        values: tuple[int, ...] | None,
        *,
        separators: str,
        comments: str,
        base: int = 0,
        limits: tuple[int, int] | None = None,
        whole: bool = False,
    ) -> None:
        self._name = name
        self._ids = ids
        self._values = values
        self._base = base
        self._limits = limits
        self._read = signed if whole else reals
        self._line = 0
        self._width: int | None = None
        self._separators = np.frombuffer(separators.encode(), np.uint8)
        self._comments = np.frombuffer(comments.encode(), np.uint8)

    def skip(self, lines: int) -> None:
        """Counts lines that others have read."""
        self._line += lines

    def parse_behind(self, done: int, blocks: Iterable[bytes]) -> Iterator[Columns]:
        """The columns of each block but of so many that are done: of those only lines are counted, once one of them
        has told how many numbers these have."""
        for place, block in enumerate(blocks):
            if place >= done:
                yield self.parse(block)
            elif self._width is None:
                self.parse(block)
            else:
                self.skip(block.count(b"\n"))

    def parse(self, block: bytes) -> Columns:
        """The columns of a block of whole lines."""
        text = np.frombuffer(block, np.uint8)
        kept = self._without_comments(text)
        try:
            found = self._columns(kept)
        except ValueError:
            self._find(block)
            raise
        self._line += int(np.count_nonzero(text == _NEWLINE))
        return found

    def _within(self, text: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
        """Which characters are part of a number, or of what should be one."""
        found: npt.NDArray[np.bool_] = text > _SPACE
        for character in self._separators:
            found &= text != character
        return found

    def _without_comments(self, text: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        """The text without lines that begin with a comment's character."""
        if not any((text == character).any() for character in self._comments):
            return text
        ends = np.flatnonzero(text == _NEWLINE) + 1
        begins = np.concatenate([[0], ends[:-1]])
        used = np.flatnonzero(self._within(text))
        # Of a line without anything in it this is of a later one, and the line is empty.
        first = used[np.minimum(np.searchsorted(used, begins), max(len(used) - 1, 0))] if len(used) else begins
        spoken = np.isin(text[first], self._comments) & (first >= begins) & (first < ends)
        return text[np.repeat(~spoken, ends - begins)]

    def _columns(self, text: npt.NDArray[np.uint8]) -> Columns:
        """Raises ValueError where a line has not as many numbers as the first, or what is none."""
        padded = np.full(len(text) + DIGITS_MAX + 4, 32, np.uint8)
        padded[DIGITS_MAX + 4 :] = text
        within = self._within(padded)
        edges = np.flatnonzero(within[1:] != within[:-1]) + 1
        begins, ends = edges[0::2], edges[1::2]
        begins, ends = self._rows(padded, begins, ends)
        if self._values is None:
            self._values = (2,) if begins.shape[1] > 2 else ()
        found: Columns = []
        for place, column in enumerate(self._ids):
            # Columns of a table are strided, and are read several times.
            numbers = integers(padded, begins[:, column].copy(), ends[:, column].copy())
            if len(numbers):
                self._check(int(numbers.min()), int(numbers.max()), place)
            found.append(numbers - np.uint64(self._base) if self._base else numbers)
        found += [self._read(padded, begins[:, column], ends[:, column]) for column in self._values]
        return found

    def _check(self, low: int, high: int, place: int) -> None:
        """Raises ValueError for numbers that are none of a row or column."""
        if low < self._base:
            raise ValueError(f"{low}, and numbers begin with {self._base}")
        if self._limits is not None and high - self._base >= self._limits[place]:
            raise ValueError(f"{high}, and the matrix has {self._limits[place]} {('rows', 'columns')[place]}")

    def _rows(
        self, text: npt.NDArray[np.uint8], begins: npt.NDArray[np.intp], ends: npt.NDArray[np.intp]
    ) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """Where the numbers of each line begin and end, a line in a row."""
        newline = text == _NEWLINE
        if not len(begins):
            width = self._width or 2
            return begins.reshape(0, width), ends.reshape(0, width)
        if self._width is None:
            self._width = int(np.searchsorted(begins, begins[0] + np.argmax(newline[begins[0] :])))
        width = self._width
        if len(begins) % width or width < self._needed():
            raise ValueError
        begins, ends = begins.reshape(-1, width), ends.reshape(-1, width)
        # As a rule a line ends where its last number does, and there are no others.
        if newline[ends[:, -1]].all() and np.count_nonzero(newline) == len(ends):
            return begins, ends
        newlines = np.flatnonzero(newline)
        following = newlines[np.searchsorted(newlines, begins[:, 0])]
        if (following < ends[:, -1]).any() or (following[:-1] > begins[1:, 0]).any():
            raise ValueError
        return begins, ends

    def _needed(self) -> int:
        """The columns that a line has at least."""
        return max(*self._ids, *(self._values or ())) + 1

    def _find(self, block: bytes) -> None:
        """Raises FormatError for the first line of a block that is not as it should be."""
        for place, line in enumerate(block.split(b"\n")[:-1], self._line + 1):
            text = self._without_comments(np.frombuffer(line + b"\n", np.uint8))
            try:
                self._columns(text)
            except ValueError as error:
                shown = line[:60].decode(errors="replace").strip()
                within = self._within(np.frombuffer(b" " + line, np.uint8))
                words = int(np.count_nonzero(within[1:] & ~within[:-1]))
                wanted = max(self._width or 0, self._needed())
                told = str(error) or "not all of it is numbers"
                why = told if words == wanted else f"{words} numbers, not {wanted}"
                raise FormatError(f"{self._name}: line {place}: {shown!r}: {why}") from None


__all__ = ["Columns", "Lines", "blocks_of"]
