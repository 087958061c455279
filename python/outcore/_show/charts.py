"""Charts of what the iterations of a run did, one below the other over the same axis."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from outcore._base.sizes import format_size
from outcore._session.record import Iterations
from outcore._show.axes import round_step
from outcore._show.markup import Markup, drawing, element

# Points: labels stand left of the charts, titles above them, numbers of iterations below the last.
_LEFT, _WIDTH, _RIGHT = 104, 640, 16
_TITLE, _HEIGHT, _FOOT = 28, 84, 40
# Columns that can be told apart in this width; rows that are more are drawn together.
_COLUMNS_MAX = 256
_BAR_MAX, _BAR_GAP = 24.0, 2.0
# Values marked above 0, and iterations marked beside the first, at most.
_TICKS, _NUMBERS = 3, 8


class _Column(NamedTuple):
    """Iterations that are drawn as one bar, and where: all that is between `left` and `right` stands for them."""

    first: int
    number: int
    active: float
    lists: float
    bytes_read: float
    cache_hits: float
    left: float
    right: float


class _Panel(NamedTuple):
    """One chart: what it shows of a column, and how its axis is divided and labelled."""

    title: str
    value: Callable[[_Column], float]
    step: Callable[[float], float]
    label: Callable[[float], str]


def activity(name: str, rows: Sequence[Iterations]) -> Markup:
    """Active vertices, bytes read and pages from the cache over the iterations of a run, of which there is one at
    least. Where a column stands for several iterations, it has what one of them did in the mean."""
    columns = _columns(rows)
    parts = [part for place, panel in enumerate(_PANELS) for part in _panel(panel, columns, _top(place))]
    parts += _axis(columns)
    foot = _top(len(_PANELS))
    parts += [
        element("rect", element("title", _hint(column)), **_across(column), y=0, height=foot, class_="over")
        for column in columns
    ]
    size = f"0 0 {_LEFT + _WIDTH + _RIGHT} {foot + _FOOT}"
    said = f"{name}: active vertices, bytes read and pages from the cache by iteration"
    return drawing(*parts, viewBox=size, role="img", aria_label=said)


def _top(place: int) -> int:
    return place * (_TITLE + _HEIGHT)


def _columns(rows: Sequence[Iterations]) -> list[_Column]:
    """The counters of an iteration, in the mean of several that are drawn together, and the place of their column."""
    begin, end = rows[0].first, rows[-1].first + rows[-1].number
    together = -(-len(rows) // _COLUMNS_MAX)
    columns = []
    for at in range(0, len(rows), together):
        group = rows[at : at + together]
        number = sum(row.number for row in group)
        sums = zip(*((row.active, row.lists, row.bytes_read, row.cache_hits) for row in group), strict=True)
        active, lists, read, hits = (sum(values) / number for values in sums)
        left, right = (
            _LEFT + _WIDTH * (bound - begin) / (end - begin) for bound in (group[0].first, group[0].first + number)
        )
        columns.append(_Column(group[0].first, number, active, lists, read, hits, left, right))
    return columns


def _panel(panel: _Panel, columns: Sequence[_Column], top: int) -> list[Markup]:
    """The title, lines at round values with their labels, and a bar for each column."""
    base, most = top + _TITLE + _HEIGHT, max(map(panel.value, columns))
    step = panel.step(most / _TICKS)
    steps = max(math.ceil(most / step), 1)
    parts = [element("text", panel.title, x=_LEFT, y=top + 18, class_="title")]
    for tick in range(steps + 1):
        y = base - _HEIGHT * tick / steps
        parts.append(element("line", x1=_LEFT, x2=_LEFT + _WIDTH, y1=y, y2=y, class_="base" if tick == 0 else "grid"))
        parts.append(element("text", panel.label(tick * step), x=_LEFT - 8, y=y + 4, class_="value"))
    bars = "".join(_bar(column, base, _HEIGHT * panel.value(column) / (step * steps)) for column in columns)
    return [*parts, element("path", d=bars, class_="bar")]


def _bar(column: _Column, base: float, height: float) -> str:
    """Numbers above 0 show. Bars of many columns touch: gaps would be all that is seen of them."""
    if not height:
        return ""
    room = column.right - column.left
    width = min(room - _BAR_GAP, _BAR_MAX) if room > 3 * _BAR_GAP else room
    x = (column.left + column.right - width) / 2
    return f"M{x:.1f} {base}v{-max(height, 1.0):.1f}h{width:.1f}v{max(height, 1.0):.1f}z"


def _axis(columns: Sequence[_Column]) -> list[Markup]:
    """Numbers of iterations below the last chart, each under the middle of its iteration."""
    begin, end = columns[0].first, columns[-1].first + columns[-1].number
    step, y = int(_decimal((end - begin) / _NUMBERS)), _top(len(_PANELS))
    ticks = range(-(-begin // step) * step, end, step)
    numbers = [
        element("text", f"{number:,}", x=_LEFT + _WIDTH * (number + 0.5 - begin) / (end - begin), y=y + 16)
        for number in ticks
    ]
    several = columns[0].number
    what = "iteration" if several == 1 else f"iteration (a bar is the mean of {several:,})"
    return [element("g", *numbers, element("text", what, x=_LEFT + _WIDTH / 2, y=y + 33), class_="number")]


def _across(column: _Column) -> dict[str, float]:
    return {"x": column.left, "width": column.right - column.left}


def _hint(column: _Column) -> str:
    """The text of a column that the pointer is on."""
    last = column.first + column.number - 1
    several = last > column.first
    lines = [
        f"iterations {column.first:,} to {last:,}, each in the mean:" if several else f"iteration {last:,}:",
        f"{_count(column.active)} active vertices",
        f"{_count(column.lists)} lists asked for",
        f"{format_size(column.bytes_read)} read",
        f"{_count(column.cache_hits)} pages from the cache",
    ]
    return "\n".join(lines)


def _count(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) or value >= 100 else f"{value:,.1f}"


def _size(value: float) -> str:
    """A round size of an axis, without digits that say nothing."""
    number, unit = format_size(value).split()
    return f"{float(number):g} {unit}"


def _decimal(least: float) -> float:
    """The least of 1, 2, 5, 10, 20, … that is not below."""
    return round_step(max(least, 1.0))


def _binary(least: float) -> float:
    """The least power of two that is not below."""
    return float(2 ** math.ceil(math.log2(max(least, 1.0))))


_PANELS = (
    _Panel("active vertices", lambda column: column.active, _decimal, _count),
    _Panel("bytes read", lambda column: column.bytes_read, _binary, _size),
    _Panel("pages from the cache", lambda column: column.cache_hits, _decimal, _count),
)


__all__ = ["activity"]
