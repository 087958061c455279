"""A sweep of memory limits: bytes under each, as a table, a chart in text, and a picture, with the knee marked."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from outcore._base.sizes import format_size
from outcore._session.trace import SweepPoint
from outcore._show.markup import Markup, drawing, element, joined
from outcore._show.style import INLINE, STYLE
from outcore._show.tables import table, wide

# The knee is the smallest limit that moves at most so many times the least.
_KNEE = 1.05
_MEBIBYTE = 1 << 20
# Of the search for the smallest limit: rounds, and limits that each plans under.
_ROUNDS, _BETWEEN = 3, 4
_BAR = 24
# Points of the picture, which a narrow page shows whole. Labels of marked limits are in two rows above the chart.
_LEFT, _WIDTH, _RIGHT, _TOP, _HEIGHT, _FOOT = 72, 352, 36, 40, 190, 48
_ALL = _LEFT + _WIDTH + _RIGHT
_SIZE = "min-width:330px;max-width:560px"
_ROW, _LETTER, _BESIDE = 16, 6.6, 6
# Numbers of limits that there is room for.
_NUMBERS = 5


class LimitSweep:
    """Forecasts of one computation under several memory limits. Made by `explain(…, sweep=True)`.

    `points` has a `SweepPoint` for each limit, in bytes, from the smallest: `memory_limit`, `bytes_read`,
    `bytes_written`, `bytes_spilled`, `peak_bytes` (None where it does not fit), `exact` (else bounds), `need`. `knee`
    is the smallest of these limits under which at most 5 % more than the least is moved. `smallest` is the smallest
    limit that works, to within a few MiB. `pool_limit` is that of the session, which holds under every limit;
    `pool_binds_from` is the memory limit from which no larger one changes anything for it.

    >>> import outcore as oc
    >>> seen = oc.explain(oc.arange(1000).sum(), sweep=["1GiB", "2GiB"]).sweep
    >>> [point.bytes_read for point in seen.points], seen.knee == 1 << 30
    ([0, 0], True)
    """

    def __init__(
        self,
        points: Sequence[SweepPoint],
        memory_limit: int,
        smallest: int | None = None,
        pool: tuple[int, int] | None = None,
    ) -> None:
        self.points = tuple(sorted(points, key=lambda point: point.memory_limit))
        #: The limit in force.
        self.memory_limit = memory_limit
        self.smallest = smallest
        self.pool_limit: int | None = None
        self.pool_binds_from: int | None = None
        if pool is not None:
            self.pool_limit, self.pool_binds_from = pool

    @property
    def _fitting(self) -> list[tuple[int, int]]:
        """Limits under which it fits, and the bytes that are moved."""
        return [(point.memory_limit, point.moved) for point in self.points if point.moved is not None]

    @property
    def knee(self) -> int | None:
        """The smallest limit that moves nearly as little as any; None where it fits under none."""
        least = min((moved for _, moved in self._fitting), default=0)
        return next((limit for limit, moved in self._fitting if moved <= _KNEE * least), None)

    def __repr__(self) -> str:
        knee = "fits under none" if self.knee is None else f"knee at {format_size(self.knee)}"
        return f"LimitSweep({len(self.points)} limits, {knee}; print it for the table)"

    def __str__(self) -> str:
        most = max((moved for _, moved in self._fitting), default=1) or 1
        head = "  ".join(f"{name:>10}" for name in ("limit", "read", "written", "spilled", "peak"))
        lines = [head, "  ".join(["─" * 10] * 5)]
        for point in self.points:
            limit = format_size(point.memory_limit)
            if point.moved is None:
                lines.append(f"{limit:>10}  does not fit: needs {format_size(point.need)} beside the process")
                continue
            figures = "  ".join(f"{format_size(size):>10}" for size in point.sizes)
            bar = "█" * max(round(_BAR * point.moved / most), 1)
            lines.append(f"{limit:>10}  {figures}  {bar}{self._mark(point)}")
        return "\n".join([*lines, *self._notes()])

    def _notes(self) -> list[str]:
        """Sentences below the table: the smallest limit, and the limit of the session's pool."""
        notes = []
        if self.smallest is not None:
            notes.append(f"The smallest limit that works is {format_size(self.smallest)}.")
        if self.pool_limit is not None and self.pool_binds_from is not None:
            notes.append(
                f"The session's pool limit of {format_size(self.pool_limit)} binds from a memory limit of "
                f"{format_size(self.pool_binds_from)} on: larger ones change nothing."
            )
        return notes

    def _mark(self, point: SweepPoint) -> str:
        marks = []
        if point.memory_limit == self.knee:
            marks.append("knee")
        if point.memory_limit == self.memory_limit:
            marks.append("limit in force")
        if point.moved is not None and not point.exact:
            marks.append("at most")
        return f" ← {', '.join(marks)}" if marks else ""

    def svg(self) -> str:
        """The picture: bytes moved over the limit, which is drawn by its logarithm."""
        fitting = self._fitting
        if not fitting:
            return drawing(element("text", "fits under none of the limits", x=8, y=20), viewBox="0 0 400 30")
        low, high = self.points[0].memory_limit, max(self.points[-1].memory_limit, self.points[0].memory_limit + 1)
        most = max(moved for _, moved in fitting) or 1

        def x(limit: float) -> float:
            return _LEFT + _WIDTH * math.log(limit / low) / math.log(high / low)

        def y(moved: float) -> float:
            return _TOP + _HEIGHT * (1 - moved / most)

        parts = [element("style", Markup(INLINE)), *_grid(most, y), *_limits(low, high, x)]
        line = " ".join(f"{x(limit):.1f},{y(moved):.1f}" for limit, moved in fitting)
        parts.append(element("polyline", points=line, class_="line read"))
        for limit, moved in fitting:
            hint = element("title", f"{format_size(limit)}: {format_size(moved)} moved")
            parts.append(element("circle", hint, cx=x(limit), cy=y(moved), r=4, class_="ink read"))
        parts += _marks([(x(limit), name, color) for limit, name, color in self._marked()])
        size: dict[str, str | float] = {
            "viewBox": f"0 0 {_ALL} {_TOP + _HEIGHT + _FOOT}",
            "width": _ALL,
            "style": _SIZE,
        }
        said = f"Bytes moved over the memory limit; {self!r}"
        return drawing(*parts, **size, font_family="system-ui, sans-serif", font_size=12, role="img", aria_label=said)

    def _marked(self) -> list[tuple[int, str, str]]:
        marks = [] if self.knee is None else [(self.knee, f"knee, {format_size(self.knee)}", "write")]
        if self.points[0].memory_limit <= self.memory_limit <= self.points[-1].memory_limit:
            marks.append((self.memory_limit, f"limit in force, {format_size(self.memory_limit)}", "limit"))
        return sorted(marks)

    def _repr_html_(self) -> str:
        parts = [element("style", Markup(STYLE)), wide(Markup(self.svg()), "Bytes by memory limit"), self._table()]
        parts += [element("p", note) for note in self._notes()]
        return element("div", joined(parts), class_="outcore")

    def _table(self) -> Markup:
        return limit_table([(point.memory_limit, point_cells(point, self._mark(point)[3:])) for point in self.points])

    def to_dict(self) -> dict[str, object]:
        """The points, the knee and the limit in force, for JSON."""
        points = [point._asdict() for point in self.points]
        limits = {"memory_limit": self.memory_limit, "pool_limit": self.pool_limit, "smallest": self.smallest}
        return {**limits, "knee": self.knee, "points": points}


def limit_table(rows: Sequence[tuple[int, Sequence[str]]]) -> Markup:
    """A table of memory limits, from the smallest, with the figures under each."""
    head = ["memory limit", "read", "written", "spilled", "peak", "note"]
    ordered = sorted(rows, key=lambda row: row[0])
    return table(head, [[format_size(limit), *cells] for limit, cells in ordered], name="Memory limits", text=("note",))


def point_cells(point: SweepPoint, note: str) -> list[str]:
    """Bytes under a limit and a note; where it does not fit, the need alone."""
    if point.bytes_read is None:
        return ["", "", "", "", f"does not fit: needs {format_size(point.need)} beside the process"]
    return [*map(format_size, point.sizes), note]


def smallest_limit(points: Sequence[SweepPoint], least: int, plan: Callable[[list[int]], Sequence[SweepPoint]]) -> int:
    """The smallest limit that works, by planning under limits between one that does not and the next that does:
    `least` is too small. 0 where none of the points works."""
    low = least
    high = next((point.memory_limit for point in points if point.moved is not None), 0)
    low = max([low, *(point.memory_limit for point in points if point.moved is None and point.memory_limit < high)])
    for _ in range(_ROUNDS):
        step = (high - low) / (_BETWEEN + 1)
        if high - low <= _MEBIBYTE:
            break
        between = plan([round(low + step * number) for number in range(1, _BETWEEN + 1)])
        high = next((point.memory_limit for point in between if point.moved is not None), high)
        low = max([low, *(point.memory_limit for point in between if point.memory_limit < high)])
    return high


def _grid(most: int, y: object) -> list[Markup]:
    place = y if callable(y) else float
    step = 1
    while most / step > 5:
        step *= 2
    parts = []
    for number in range(int(most // step) + 1):
        at = place(number * step)
        kind = "base" if number == 0 else "grid"
        parts.append(element("line", x1=_LEFT, x2=_LEFT + _WIDTH, y1=at, y2=at, class_=kind))
        parts.append(element("text", format_size(number * step), x=_LEFT - 8, y=at + 4, class_="value"))
    return parts


def _marks(marks: Sequence[tuple[float, str, str]]) -> list[Markup]:
    """A line for each of at most two marked limits, from the left, and its label above the chart: no label is cut off
    or crossed by the line of the other."""
    widths = [_LETTER * len(name) + _BESIDE for _, name, _ in marks]
    fits_right = all(x + width <= _ALL for (x, _, _), width in zip(marks, widths, strict=True))
    fits_left = all(x >= width for (x, _, _), width in zip(marks, widths, strict=True))
    # On the left of their lines the label of the right one is above, else below; far from each other on both sides.
    sides, rows = ([1, -1], [0, 1]) if not fits_left else ([-1, -1], [1, 0])
    if fits_right:
        sides, rows = [1, 1], [0, 1]
    elif len(marks) == 1:
        sides = [-1]
    parts = []
    for (x, name, color), side, row in zip(marks, sides, rows, strict=False):
        parts.append(element("line", x1=x, x2=x, y1=_ROW * row + 2, y2=_TOP + _HEIGHT, class_=f"line {color}"))
        kind = {"class_": "value"} if side < 0 else {}
        parts.append(element("text", name, x=x + side * _BESIDE, y=_ROW * row + 12, **kind))
    return parts


def _limits(low: int, high: int, x: object) -> list[Markup]:
    """Numbers of limits below: powers of two, as many as there is room for, or both ends where there are not two."""
    place = x if callable(x) else float
    first, last = math.ceil(math.log2(low)), math.floor(math.log2(high))
    step = max(math.ceil((last - first + 1) / _NUMBERS), 1)
    at = _TOP + _HEIGHT + 18
    sizes = [2**power for power in range(first, last + 1, step)] if first < last else [low, high]
    numbers = [element("text", format_size(size), x=place(size), y=at, class_="number") for size in sizes]
    name = element("text", "memory limit", x=_LEFT + _WIDTH / 2, y=at + 20, class_="number")
    return [*numbers, name]


def default_limits(least: int, enough: int, in_force: int, number: int = 16) -> list[int]:
    """Limits from the least that may do to what keeps everything, in even ratios, with the one in force."""
    low = min(least, in_force)
    high = max(enough, in_force, low + number)
    for count in (number - 1, number):
        ratio = (high / low) ** (1 / (count - 1))
        limits = {*(round(low * ratio**step) for step in range(count - 1)), high, in_force}
        if len(limits) == number:
            break
    return sorted(limits)


__all__ = ["LimitSweep", "default_limits", "limit_table", "point_cells", "smallest_limit"]
