"""Joins by sorting, on disk (sort-merge: Blasgen, Eswaran 1977): rows of two tables whose keys are equal.

**Contract.** Keys of both sides become numbers of one type that compare as the keys do, exactly. Both sides are sorted
by them, each with all its columns, and held in scratch; each row of the left finds its first and last partner by a
search in the sorted keys of the right, and results are read from what is held. Rows of an inner or left join come in
the order of the keys, those of one key in the order of the left, then of the right. Missing keys (NaN, NaT, no label)
have no partners. Semi and anti joins are masks over the left, which keeps its order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import TypeAlias

import numpy as np

from outcore import _core
from outcore._groups.groups import groupby
from outcore._lazy.array import Array
from outcore._lazy.node import node
from outcore._run import masks
from outcore._run.run import compute
from outcore._standard.creation import arange
from outcore._standard.indexing import take
from outcore._standard.manipulation import broadcast_to
from outcore._standard.searching import searchsorted, where
from outcore._standard.sets import isin
from outcore._standard.sorting import sort_by
from outcore._standard.statistical import cumulative_sum, max, sum
from outcore._tables.columns import (
    Deferred,
    TableColumn,
    joined,
    kind_of,
    missing,
    numbers_of,
    of_numbers,
    with_missing,
)
from outcore.elementwise import clip, floor, isfinite

Keys: TypeAlias = "tuple[Sequence[TableColumn], Sequence[TableColumn]]"  # of the left, and of the right
_WIDE_BYTES, _LOW_BITS = 8, 32
_NONE = Array(node(np.int64(0)))


def _numbers(left: Sequence[TableColumn], right: Sequence[TableColumn]) -> tuple[Array, Array]:
    """The keys of both sides as one row of numbers each, equal where all keys are."""
    rows = left[0].shape[0]
    together = [joined(pair) for pair in _halved(left, right)]
    if len(together) == 1:
        numbers = numbers_of(together[0])
        if len(numbers) > 1:  # text longer than a number holds
            numbers = [together[0].categories().codes]
        return numbers[0][:rows], numbers[0][rows:]
    codes = groupby(together)._labels
    return codes[:rows], codes[rows:]


def _halved(left: Sequence[TableColumn], right: Sequence[TableColumn]) -> Iterator[tuple[TableColumn, TableColumn]]:
    """Pairs of keys, each of which one type holds exactly.

    Integers of 64 bits beside floating numbers, or beside those of the other sign, are a multiple of 2³² and a
    remainder each: float64, the common type, holds both, and not every one of the integers.
    """
    for pair in zip(left, right, strict=True):
        ours, theirs = pair
        if not isinstance(ours, Array) or not isinstance(theirs, Array):
            yield pair
            continue
        is_wide = any(key.dtype.kind in "iu" and key.dtype.itemsize == _WIDE_BYTES for key in (ours, theirs))
        if not is_wide or np.result_type(ours.dtype, theirs.dtype) != np.float64:
            yield pair
            continue
        halves = [_halves(key) for key in (ours, theirs)]
        yield halves[0][0], halves[1][0]
        yield halves[0][1], halves[1][1]


def _halves(key: Array) -> tuple[Array, Array]:
    if key.dtype.kind in "iu":
        key = key.astype(np.int64 if key.dtype.kind == "i" else np.uint64)
        return (key >> _LOW_BITS).astype(np.float64), (key & (2**_LOW_BITS - 1)).astype(np.float64)
    number = key.astype(np.float64)
    high = floor(number / 2.0**_LOW_BITS)
    return high, where(isfinite(number), number - high * 2.0**_LOW_BITS, 0.0)


def _absent(keys: Sequence[TableColumn]) -> Array | None:
    """Where a key is missing."""
    absent: Array | None = None
    for key in keys:
        flags = missing(key)
        if flags is not None:
            absent = flags if absent is None else absent | flags
    return absent


def partnered(left: Sequence[TableColumn], right: Sequence[TableColumn]) -> Array:
    """For each row of the left whether its keys are those of a row of the right. I/O: a sort of the right's keys, and
    searches in it."""
    first, second = _numbers(left, right)
    flags = isin(first, second)
    absent = _absent(left)
    return flags if absent is None else flags & ~absent


class _Merged:
    """Both sides in the order of their keys, in scratch, with the partners of each row of the left."""

    def __init__(self, keys: Keys, left: Sequence[Array], right: Sequence[Array], keeps_left: bool) -> None:
        first, second = _numbers(*keys)
        absent = _absent(keys[0])
        beside = list(left) if absent is None else [*left, absent]
        rows = [*sort_by(first, *beside), *sort_by(second, *right)]
        held = [Array(part) for part in masks.hold(*(row._expr for row in rows))]
        ours, theirs = held[0], held[1 + len(beside)]
        self.left, self.right = held[1 : 1 + len(left)], held[2 + len(beside) :]
        begin = searchsorted(theirs, ours)
        counts = searchsorted(theirs, ours, side="right") - begin
        if absent is not None:
            counts = where(held[len(beside)], _NONE, counts)
        self._begin, self._counts = (Array(part) for part in masks.hold(begin._expr, counts._expr))
        self._repeats = where(self._counts > 0, self._counts, _NONE + 1) if keeps_left else self._counts
        self.rows = self._most = 0
        if ours.shape[0]:
            self.rows, self._most = (int(part) for part in compute(sum(self._repeats), max(self._counts)))
        self._ends = cumulative_sum(self._repeats)
        row = searchsorted(self._ends, arange(self.rows), side="right")
        self._row = Array(masks.hold(row._expr)[0])

    def from_left(self, number: Array) -> Array:
        """A row of numbers of the left, at the rows of the result."""
        return Array(_core.take_ascending(number._expr, self._row._expr))

    def absent(self) -> Array:
        """Where the left has no partner."""
        return self.from_left(self._counts) == 0

    def from_right(self, number: Array) -> Array:
        """The same of the right; any number where there is no partner."""
        if number.shape[0] == 0:
            return broadcast_to(Array(node(number.dtype.type(0))), (self.rows,))
        place = self.from_left(self._begin)
        if self._most > 1:  # the place among the partners of one row
            place = place + (arange(self.rows) - self.from_left(self._ends - self._repeats))
        place = clip(place, 0, number.shape[0] - 1)
        if self._most > 1:
            return take(number, place)
        return Array(_core.take_ascending(number._expr, place._expr))


class _Side:
    """The columns of one side, and where the numbers of each lie among those of all."""

    def __init__(self, columns: Mapping[str, TableColumn]) -> None:
        self.columns = columns
        self.numbers: list[Array] = []
        self._places: dict[str, slice] = {}
        for name, column in columns.items():
            rows = numbers_of(column)
            self._places[name] = slice(len(self.numbers), len(self.numbers) + len(rows))
            self.numbers += rows

    def column(self, name: str, numbers: Sequence[Array], change: Callable[[Array], Array]) -> TableColumn:
        """A column of numbers that were moved, each changed."""
        return of_numbers(self.columns[name], [change(number) for number in numbers[self._places[name]]])


def merged(
    keys: Keys, left: Mapping[str, TableColumn], right: Mapping[str, TableColumn], keeps_left: bool
) -> tuple[dict[str, TableColumn | Deferred], Callable[[], int]]:
    """The columns of both sides in an inner join, or a left one, and the number of its rows; all made when needed.

    I/O then: a sort of each side with all its columns, held in scratch, two searches, a take for each column.
    """
    ours, theirs = _Side(left), _Side(right)
    merge = cache(lambda: _Merged(keys, ours.numbers, theirs.numbers, keeps_left))

    def of_left(name: str) -> TableColumn:
        return ours.column(name, merge().left, merge().from_left)

    def of_right(name: str) -> TableColumn:
        column = theirs.column(name, merge().right, merge().from_right)
        return with_missing(column, merge().absent()) if keeps_left else column

    columns: dict[str, TableColumn | Deferred] = {}
    columns |= {name: Deferred(partial(of_left, name), kind_of(column)) for name, column in left.items()}
    columns |= {name: Deferred(partial(of_right, name)) for name in right}
    return columns, lambda: merge().rows


__all__ = ["merged", "partnered"]
