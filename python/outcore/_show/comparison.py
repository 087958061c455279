"""`ProfileComparison`: two profiles side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from outcore._base.shortened import printable_text
from outcore._base.sizes import format_size
from outcore._base.times import format_time
from outcore._session.record import Outcome
from outcore._session.trace import Run
from outcore._show.markup import Markup, element, joined
from outcore._show.page import RunGroup, Runs
from outcore._show.run import ChartScale, details
from outcore._show.style import FOOT, HEAD, STYLE
from outcore._show.tables import table
from outcore._show.verdict import bound, limit_cost

# Runs that have charts beside each other: those of most time.
_CHARTS_MAX = 4


class ProfileComparison:
    """Two profiles side by side: `before` and `after`. Made by `profile.compare`; printed as a table, shown by
    notebooks with charts. Runs are matched by the text of the user's line, else by what was called. No I/O."""

    def __init__(self, before: Runs, after: Runs) -> None:
        self.before, self.after = before, after

    def __repr__(self) -> str:
        was, now = self.before, self.after
        return (
            f"ProfileComparison({format_size(was.bytes_read)} → {format_size(now.bytes_read)} read, "
            f"{format_size(was.bytes_written)} → {format_size(now.bytes_written)} written, "
            f"{format_time(was.seconds)} → {format_time(now.seconds)})"
        )

    def __str__(self) -> str:
        rows = [("run", "", "before", "after", "after / before"), *self._rows()]
        cells = [printable_text(row[0]) for row in rows]
        names = [cell if len(cell) <= 44 else f"{cell[:43]}…" for cell in cells]
        widths = [max(map(len, names)), *(max(len(row[at]) for row in rows) for at in range(1, 5))]
        lines = []
        for name, row in zip(names, rows, strict=True):
            figures = (f"{cell:>{width}}" for cell, width in zip(row[2:], widths[2:], strict=True))
            lines.append("  ".join((f"{name:<{widths[0]}}", f"{row[1]:<{widths[1]}}", *figures)).rstrip())
        return "\n".join(lines)

    def _rows(self) -> Iterator[tuple[str, str, str, str, str]]:
        pairs = self._pairs()
        if any(len(profile.outcomes) != 1 for profile in (self.before, self.after)) or None in pairs[0]:
            yield from _compared("all runs", self.before, self.after)
        for was, now in pairs:
            if was is not None and now is not None:
                yield from _compared(now.name, was, now)
                yield from _limits(now.name, was, now)
            elif now is not None:
                yield now.name, "run", "", "there", ""
            elif was is not None:
                yield was.name, "run", "there", "", ""

    def _pairs(self) -> list[tuple[RunGroup | None, RunGroup | None]]:
        """Runs of the same line of text, or else of the same call, in the order of the first profile."""
        left = list(self.after.groups)
        pairs: list[tuple[RunGroup | None, RunGroup | None]] = []
        for was in self.before.groups:
            alike = [now for now in left if now.text == was.text and was.text] or [
                now for now in left if now.name.split(" (")[0] == was.name.split(" (")[0]
            ]
            if alike:
                left.remove(alike[0])
            pairs.append((was, alike[0] if alike else None))
        return [*pairs, *((None, now) for now in left)]

    def page(self) -> str:
        """The comparison as the text of an HTML file that needs nothing else."""
        return f"{HEAD.format(title='Two profiles')}{self._content()}{FOOT}"

    def _repr_html_(self) -> str:
        return self._content()

    def _content(self) -> Markup:
        head = ["run", "figure", "before", "after", "after / before"]
        rows = [list(row) for row in self._rows()]
        parts = [element("style", Markup(STYLE)), table(head, rows, name="Figures", text=("run", "figure"))]
        both = [(was, now) for was, now in self._pairs() if was is not None and now is not None]
        both.sort(key=lambda pair: -max(pair[0].longest.seconds, pair[1].longest.seconds))
        for was, now in both[:_CHARTS_MAX]:
            if was.run is None or now.run is None:
                continue
            parts.append(element("h2", now.name))
            scale = ChartScale.of([(was.longest, was.run), (now.longest, now.run)])
            sides = (_side("before", was.longest, was.run, scale), _side("after", now.longest, now.run, scale))
            parts.append(element("div", *sides, class_="pair"))
        return element("div", joined(parts), class_="outcore")


def _side(name: str, outcome: Outcome, run: Run, scale: ChartScale) -> Markup:
    sentences = [bound(outcome, run), *limit_cost(outcome, run)]
    said = [element("h3", name), *(element("p", sentence) for sentence in sentences)]
    return element("div", *said, *details(outcome, run, scale))


def _limits(name: str, was: RunGroup, now: RunGroup) -> Iterator[tuple[str, str, str, str, str]]:
    """The memory limits of two runs, where these are known."""
    if was.run is None or now.run is None or not was.run.ceiling:
        return
    before, after = was.run.ceiling, now.run.ceiling
    yield name, "memory limit", format_size(before), format_size(after), f"{after / before:.2f}"


_FIGURES: tuple[tuple[str, Callable[[Runs | RunGroup], float], Callable[[float], str]], ...] = (
    ("read", lambda runs: runs.bytes_read, lambda size: format_size(int(size))),
    ("written", lambda runs: runs.bytes_written, lambda size: format_size(int(size))),
    ("spilled", lambda runs: runs.bytes_spilled, lambda size: format_size(int(size))),
    ("peak reserved", lambda runs: runs.peak_bytes, lambda size: format_size(int(size))),
    ("time", lambda runs: runs.seconds, format_time),
)


def _compared(name: str, was: Runs | RunGroup, now: Runs | RunGroup) -> Iterator[tuple[str, str, str, str, str]]:
    for figure, value, text in _FIGURES:
        before, after = value(was), value(now)
        if before or after:
            yield name, figure, text(before), text(after), f"{after / before:.2f}" if before else ""


__all__ = ["ProfileComparison"]
