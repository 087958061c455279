"""Tables of FlatBuffers as columns: a field of many tables is one array of NumPy's.

After "FlatBuffers Internals" (flatbuffers.dev): a table begins with its distance from a vtable, which has the place of
each field in the table, or 0 for one that is absent. No byte is trusted: every place is held against the length of the
buffer before it is read, and against the alignment of its kind.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from outcore.errors import FormatError

Places: TypeAlias = npt.NDArray[np.int64]  # of bytes in a buffer
Flags: TypeAlias = npt.NDArray[np.bool_]
_WORD = 8
_STEP = 1 << 16  # rows that are gathered at once
_VTABLE_HEAD = 4  # the lengths of the vtable and of its tables


class FlatBuffer:
    """The bytes of one buffer, in memory, and the file that errors name."""

    def __init__(self, path: str, parts: Iterable[bytes]) -> None:
        known = list(parts)
        self.path, self.size = path, sum(map(len, known))
        self.content = b"".join((*known, bytes(-self.size % _WORD)))
        self._numbers = {width: np.frombuffer(self.content, f"<u{width}") for width in (1, 2, 4, 8)}

    def refusal(self, place: int, reason: str) -> FormatError:
        """The error of damage at a byte."""
        details = {"path": self.path, "offset": place}
        return FormatError(f"{self.path}: byte {place} of its content: {reason}", details)

    def check(self, is_damaged: Flags, places: Places, reason: str) -> None:
        """Raises FormatError with the first place that is damaged."""
        if is_damaged.any():
            raise self.refusal(int(places[np.argmax(is_damaged)]), reason)

    def check_sum(self, counts: Places, width: int, places: Places) -> None:
        """Raises FormatError for vectors that share bytes: more elements in all than the content has room for."""
        if counts.sum() * width > self.size:
            raise self.refusal(int(places[0]), "vectors that overlap")

    def read(self, places: Places, width: int) -> Places:
        """Unsigned integers of so many bytes; of eight bytes those below 2⁶³. Raises FormatError."""
        is_damaged = (places < 0) | (places > self.size - width) | (places % width != 0)
        self.check(is_damaged, places, f"no {width} bytes of a number are there")
        numbers = self._numbers[width][places // width].astype(np.int64)
        if width == _WORD:
            self.check(numbers < 0, places, "a number of more than 63 bits")
        return numbers

    def gather(self, places: Places, count: int) -> npt.NDArray[np.uint8]:
        """So many bytes from each place on. Raises FormatError."""
        self.check((places < 0) | (places > self.size - count), places, f"no {count} bytes are there")
        gathered = np.empty((len(places), count), np.uint8)
        for begin in range(0, len(places), _STEP):
            part = slice(begin, begin + _STEP)
            gathered[part] = self._numbers[1][places[part, None] + np.arange(count)]
        return gathered

    def root(self) -> Tables:
        """The table from which all others are reached."""
        start = np.zeros(1, np.int64)
        return Tables(self, start + self.read(start, 4))

    def tables(self, start: int, count: int) -> Tables:
        """The tables of a vector, which `Tables.vectors` has checked."""
        places = start + 4 * np.arange(count)
        return Tables(self, places + self.read(places, 4))

    def text(self, start: int, count: int) -> str:
        """Text of a vector of bytes. Raises FormatError for other than UTF-8."""
        try:
            return self.content[start : start + count].decode()
        except UnicodeDecodeError:
            raise self.refusal(start, "no text in UTF-8") from None


class Tables:
    """Tables of one kind, of each a row.

    Invariants: a vtable and a table lie in the buffer with all their bytes, and so do the fields that `places` gives.
    """

    def __init__(self, buffer: FlatBuffer, places: Places) -> None:
        self.buffer, self.starts = buffer, places
        distances = buffer.read(places, 4)
        self._vtables = places - np.where(distances < 1 << 31, distances, distances - (1 << 32))
        self._vtable_bytes = buffer.read(self._vtables, 2)
        self._table_bytes = buffer.read(self._vtables + 2, 2)
        for starts, lengths in ((self._vtables, self._vtable_bytes), (places, self._table_bytes)):
            is_damaged = (lengths < _VTABLE_HEAD) | (starts + lengths > buffer.size)
            buffer.check(is_damaged, starts, "a table that the content does not hold")

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, rows: Flags | slice) -> Tables:
        part = object.__new__(Tables)
        part.buffer, part.starts, part._vtables = self.buffer, self.starts[rows], self._vtables[rows]
        part._vtable_bytes, part._table_bytes = self._vtable_bytes[rows], self._table_bytes[rows]
        return part

    def places(self, field: int, width: int, *, required: bool = False) -> Places:
        """The place of a field of so many bytes in each table; 0 where it is absent."""
        slot = _VTABLE_HEAD + 2 * field
        is_there = self._vtable_bytes >= slot + 2
        offsets = np.zeros(len(self), np.int64)
        offsets[is_there] = self.buffer.read(self._vtables[is_there] + slot, 2)
        is_present = offsets > 0
        is_damaged = is_present & ((offsets < _VTABLE_HEAD) | (offsets + width > self._table_bytes))
        self.buffer.check(is_damaged, self.starts, f"field {field} lies outside of its table")
        if required:
            self.buffer.check(~is_present, self.starts, f"field {field} of a table is missing")
        return np.where(is_present, self.starts + offsets, 0)

    def numbers(self, field: int, width: int) -> Places:
        """Numbers of a field; 0, which is the default of all, where it is absent."""
        places = self.places(field, width)
        numbers = np.zeros(len(self), np.int64)
        numbers[places > 0] = self.buffer.read(places[places > 0], width)
        return numbers

    def structs(self, field: int, count: int) -> npt.NDArray[np.uint8]:
        """The bytes of a field that no table may lack."""
        return self.buffer.gather(self.places(field, count, required=True), count)

    def vectors(
        self, field: int, width: int, *, align: int | None = None, required: bool = False
    ) -> tuple[Places, Places]:
        """The first byte and the count of elements of so many bytes; 0 and 0 where the field is absent."""
        places = self.places(field, 4, required=required)
        starts, counts = np.zeros(len(self), np.int64), np.zeros(len(self), np.int64)
        places, is_there = places[places > 0], places > 0
        firsts = places + self.buffer.read(places, 4)
        lengths = self.buffer.read(firsts, 4)
        firsts += 4
        is_damaged = (firsts + lengths * width > self.buffer.size) | (firsts % (align or width) != 0)
        self.buffer.check(is_damaged, firsts, "a vector that the content does not hold")
        starts[is_there], counts[is_there] = firsts, lengths
        return starts, counts

    def children(self, field: int) -> Tables:
        """The table of a field that no table may lack."""
        places = self.places(field, 4, required=True)
        return Tables(self.buffer, places + self.buffer.read(places, 4))

    def members(self, field: int) -> Tables:
        """The tables of a vector of the only table."""
        starts, counts = self.vectors(field, 4)
        return self.buffer.tables(int(starts[0]), int(counts[0]))


__all__ = ["Flags", "FlatBuffer", "Places", "Tables"]
