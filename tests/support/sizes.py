"""How much of its work a test does: some in `make test`, all in `make test-large`, which sets OUTCORE_LARGE."""

from __future__ import annotations

import itertools
from collections.abc import Generator, Iterator, Sequence
from typing import Any, TypeVar

from conftest import LARGE

T = TypeVar("T")

# Of a sweep's calls: so many of the first and of the last each fail, and each of those between is twice the one before.
FIRST, LAST = 4, 2


def sized(some: T, full: T) -> T:
    return full if LARGE else some


def examples(full: int) -> int:
    """The number of examples that hypothesis draws: some of many, all of few."""
    return sized(min(full, 8 + full // 12), full)


def spread(items: Sequence[T], count: int) -> Sequence[T]:
    """All items at full size; otherwise at most `count` of them, evenly spaced, the first and the last among them."""
    if LARGE or len(items) <= count:
        return items
    return [items[place * (len(items) - 1) // (count - 1)] for place in range(count)]


def covering(*choices: Sequence[Any]) -> list[tuple[Any, ...]]:
    """All combinations at full size; otherwise some, in which each two choices of different kinds meet."""
    combinations = list(itertools.product(*choices))
    if LARGE:
        return combinations
    kinds = list(itertools.combinations(range(len(choices)), 2))
    places = list(itertools.product(*(range(len(items)) for items in choices)))
    missing = {(a, b, place[a], place[b]) for place in places for a, b in kinds}
    chosen = set()
    while missing:
        met = [{(a, b, place[a], place[b]) for a, b in kinds} & missing for place in places]
        best = max(range(len(places)), key=lambda number: len(met[number]))
        missing -= met[best]
        chosen.add(best)
    return [combinations[number] for number in sorted(chosen)]


def alternating(items: Sequence[T], choices: Sequence[Any]) -> list[tuple[T, Any]]:
    """All pairs at full size; otherwise each item with one choice and each choice with one item, in turn."""
    if LARGE:
        return list(itertools.product(items, choices))
    return [
        (items[number % len(items)], choices[number % len(choices)]) for number in range(max(len(items), len(choices)))
    ]


class Sweep:
    """The numbers of the calls that are made to fail, one after another, until calls fail no more.

    At full size each number. Otherwise each of the first, ever fewer of those behind, and each of the last: both ends
    of a program are varied, and the calls of a long middle are alike.

    `failed` says that the call of the current number failed. A sweep ends when `quiet` calls in a row did not: threads
    make one call more or less, and some failures are without consequence. A sweep in which nothing fails, or which does
    not end before `calls_max`, is an error.
    """

    def __init__(self, fault: str, calls_max: int, quiet: int = 1) -> None:
        self.fault, self.calls_max, self.quiet = fault, calls_max, quiet
        self.last = self.count = self._current = 0

    def failed(self) -> None:
        self.last = max(self.last, self._current)
        self.count += 1

    def _fails(self, n: int) -> Generator[int, None, bool]:
        """Yields a number, and returns whether its call failed."""
        before, self._current = self.count, n
        yield n
        return self.count > before

    def __iter__(self) -> Iterator[int]:
        n, missed, first_missed = 1, 0, 1
        tried = set()
        while missed < self.quiet:
            assert n < self.calls_max, f"{self.fault} still fires at call {n}"
            tried.add(n)
            if (yield from self._fails(n)):
                missed = 0
                n = n + 1 if LARGE or n < FIRST else max(n + 1, min(2 * n, self.calls_max - self.quiet))
                first_missed = n
            else:
                missed += 1
                n += 1
        assert self.last > 0, f"{self.fault} never fired"
        if LARGE:
            return
        low, high = self.last, first_missed
        while high - low > 1:
            middle = (low + high) // 2
            tried.add(middle)
            if (yield from self._fails(middle)):
                low = middle
            else:
                high = middle
        for n in range(max(1, low - LAST + 1), low):
            if n not in tried:
                yield from self._fails(n)
