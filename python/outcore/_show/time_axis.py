"""An axis of seconds under charts of a run, and the columns of its programs along it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from outcore._session.trace import ProgramTrace
from outcore._show.markup import Markup, element

# Points: names stand left of the charts, figures right of them.
LEFT, WIDTH, RIGHT = 150, 560, 130
ALL = LEFT + WIDTH + RIGHT
_TICKS = 6
# Columns are drawn together where they are narrower.
_NARROWEST = 1.0


class TimeColumn(NamedTuple):
    """Columns of a program that are drawn as one, and where."""

    left: float
    width: float
    columns: range


class TimeAxis(NamedTuple):
    """Seconds of a run, from 0 on."""

    total: float

    def x(self, at: float) -> float:
        return LEFT + WIDTH * min(max(at, 0.0), self.total) / self.total

    def columns(self, trace: ProgramTrace) -> Iterator[TimeColumn]:
        """The columns of a program's instructions, from when the first of each was issued to the next."""
        issued = trace.issued
        count = 0 if trace.occupancy is None else trace.occupancy.columns
        if not issued or not count:
            return
        times = [trace.begin + at for at in issued[:count]] + [trace.begin + trace.seconds]
        first = 0
        while first < len(times) - 1:
            last = first + 1
            while last < len(times) - 1 and self.x(times[last]) - self.x(times[first]) < _NARROWEST:
                last += 1
            left, right = self.x(times[first]), self.x(times[last])
            yield TimeColumn(left, max(right - left, 0.3), range(first, last))
            first = last

    def bins(self, trace: ProgramTrace, lane: Sequence[float]) -> Iterator[tuple[float, float, float]]:
        """The bins of a thread: left, width, and the share of the time in which it worked."""
        width = WIDTH * trace.bin_seconds / self.total
        together = max(math.ceil(_NARROWEST / width), 1)
        for first in range(0, len(lane), together):
            group = lane[first : first + together]
            left = self.x(trace.begin + first * trace.bin_seconds)
            end = min((first + together) * trace.bin_seconds, trace.seconds)
            right = self.x(trace.begin + end)
            yield left, max(right - left, 0.3), sum(group) / (100 * together)

    def ticks(self, top: float, bottom: float) -> list[Markup]:
        """Lines at round times, and their numbers below."""
        step = _round(self.total / _TICKS)
        parts = []
        for number in range(math.floor(self.total / step + 1e-9) + 1):
            x = self.x(number * step)
            parts.append(element("line", x1=x, x2=x, y1=top, y2=bottom, class_="base" if number == 0 else "grid"))
            parts.append(element("text", _time(number * step, step), x=x, y=bottom + 16, class_="number"))
        return parts


def label(text: str, y: float, hint: str = "") -> Markup:
    """The name of a row, cut to the room that there is, with the whole of it where it is pointed at."""
    most = 22
    shown = text if len(text) <= most else f"{text[: most - 1]}…"
    inside = (element("title", hint or text), shown) if hint or shown != text else (shown,)
    return element("text", *inside, x=LEFT - 8, y=y, class_="value")


def figure(text: str, y: float) -> Markup:
    """A figure at the right end of a row."""
    return element("text", text, x=LEFT + WIDTH + 8, y=y)


def _round(least: float) -> float:
    """The least of 1, 2 and 5 times a power of ten that is not below."""
    power = 10.0 ** math.floor(math.log10(max(least, 1e-9)))
    return next(step for step in (power, 2 * power, 5 * power, 10 * power) if step >= least * (1 - 1e-9))


def _time(value: float, step: float) -> str:
    if step >= 60:
        return f"{value / 60:.3g} min"
    if step >= 0.1:
        return f"{value:.3g} s"
    return f"{value * 1e3:.3g} ms" if step >= 1e-4 else f"{value * 1e6:.3g} µs"


__all__ = ["ALL", "LEFT", "WIDTH", "TimeAxis", "TimeColumn", "figure", "label"]
