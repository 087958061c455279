"""Quotes in text of records: a field that begins with one ends with one, or else takes the records behind it in.

Quotes within a field that does not begin with one, as in `5" pipe`, are part of it, as the parser has it. A text whose
quotes all stand beside the ends of fields is seen through at once; only others are gone through quote by quote.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from outcore.errors import FormatError

_QUOTE, _LINE_ENDS = ord('"'), b"\r\n"


class _Open(NamedTuple):
    """A field in quotes that is not closed: where it begins, and the record that it belongs to."""

    field: int
    record: int


def end_of_records(text: bytes, delimiter: str) -> int:
    """The place behind the last line feed that ends a record; 0 where none does. `text` begins with a record."""
    end = text.rfind(b"\n") + 1
    unclosed = _unclosed(text[:end], delimiter, refusal=None)
    return end if unclosed is None else unclosed.record


def check_quotes(path: str, text: bytes, line: int, delimiter: str) -> None:
    """Raises FormatError, with the line where the field begins, for one that is not closed, and for one of several
    lines with more behind its last quote: both have swallowed records. `text` has whole records, the first in `line`.
    """

    def refusal(field: int, flaw: str) -> FormatError:
        begin = line + text.count(b"\n", 0, field)
        return FormatError(f"{path}: line {begin}: a field in quotes {flaw}", {"path": path, "line": begin})

    unclosed = _unclosed(text, delimiter, refusal)
    if unclosed is not None:
        raise refusal(unclosed.field, "is never closed")


def _unclosed(text: bytes, delimiter: str, refusal: Callable[[int, str], FormatError] | None) -> _Open | None:
    if b'"' not in text:
        return None
    bytes_ = np.frombuffer(text, np.uint8)
    places = np.flatnonzero(bytes_ == _QUOTE)
    ends = np.array([ord(delimiter), *_LINE_ENDS, _QUOTE], np.uint8)
    if places.size % 2 == 0:
        opening, closing = places[::2], places[1::2]
        before = bytes_[opening[opening > 0] - 1]
        behind = bytes_[closing[closing < bytes_.size - 1] + 1]
        if np.isin(before, ends).all() and np.isin(behind, ends).all():
            return None
    ends_of_fields, field, record, closed, escaped = ends[:-1].tobytes(), -1, 0, -1, -1
    for place in places.tolist():
        if place == escaped:
            continue
        if field < 0:
            if place == 0 or text[place - 1] in ends_of_fields:
                field = place
                record = max(record, text.rfind(b"\n", closed + 1, place) + 1)
        elif text[place + 1 : place + 2] == b'"':
            escaped = place + 1
        else:
            behind_it = text[place + 1 : place + 2]
            if refusal is not None and behind_it.strip(ends_of_fields) and b"\n" in text[field:place]:
                raise refusal(field, "ends in a later line, with more behind its quote")
            field, closed = -1, place
    return None if field < 0 else _Open(field, record)


__all__ = ["check_quotes", "end_of_records"]
