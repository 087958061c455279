"""A chart of memory over the time of a run, by what holds it, against the limit."""

from __future__ import annotations

from collections.abc import Sequence

from outcore._base.sizes import format_size
from outcore._session.trace import ProgramTrace, Run
from outcore._show.markup import Markup, drawing, element
from outcore._show.time_axis import ALL, LEFT, WIDTH, TimeAxis

_HEIGHT, _TOP, _FOOT = 150, 12, 26
#: Uses of memory, the lowest in the chart first, and their names.
USES = {
    "process": "the process itself",
    "results": "results, workspaces and buffers",
    "partial": "partial results and workspaces of tasks",
    "passing": "tiles that tasks use",
    "kept": "tiles kept for later tasks",
}


def most_bytes(run: Run) -> int:
    """The end of the axis of a chart: the limit, or the largest size that was sampled."""
    return max([run.ceiling, *(size for trace in run.traces for _, size in trace.samples)])


def memory(run: Run, axis: TimeAxis, most: int) -> Markup:
    """The chart. Heights are exact where a column is fullest; the line is the size of the process as sampled."""
    base = _TOP + _HEIGHT
    scale = _HEIGHT / (most * 1.04)
    parts = list(_grid(most, scale, base))
    parts += axis.ticks(_TOP, base)
    for trace in run.traces:
        parts += _areas(trace, axis, scale, base)
    line = base - run.ceiling * scale
    parts.append(element("line", x1=LEFT, x2=LEFT + WIDTH, y1=line, y2=line, class_="line limit"))
    parts.append(element("text", f"limit {format_size(run.ceiling)}", x=LEFT + WIDTH + 8, y=line + 4))
    points = [
        f"{axis.x(trace.begin + at):.1f},{base - size * scale:.1f}"
        for trace in run.traces
        for at, size in trace.samples
    ]
    if len(points) > 1:
        sampled = element("polyline", element("title", "resident size of the process"), points=" ".join(points))
        parts.append(Markup(sampled.replace("<polyline", '<polyline class="line process" stroke-dasharray="3 2"', 1)))
    size = f"0 0 {ALL} {base + _FOOT}"
    return drawing(*parts, viewBox=size, role="img", aria_label=_said(run))


def _areas(trace: ProgramTrace, axis: TimeAxis, scale: float, base: float) -> list[Markup]:
    occupancy, forecast = trace.occupancy, trace.forecast
    if occupancy is None:
        return []
    fixed = int(forecast["fixed_bytes"])
    process = int(forecast["overhead_bytes"])
    paths: dict[str, list[str]] = {name: [] for name in USES}
    for column in axis.columns(trace):
        kept, passing, partial = max((occupancy.memory[at] for at in column.columns), key=sum)
        below = 0
        sizes = (process, fixed, partial, passing, kept)
        for name, size in zip(USES, sizes, strict=True):
            if size:
                top = base - (below + size) * scale
                paths[name].append(
                    f"M{column.left:.1f} {top:.1f}h{column.width:.1f}v{size * scale:.1f}h-{column.width:.1f}z"
                )
            below += size
    return [
        element("path", element("title", USES[name]), d="".join(pieces), class_=f"ink {name}")
        for name, pieces in paths.items()
        if pieces
    ]


def _grid(most: int, scale: float, base: float) -> list[Markup]:
    step = 1
    while most / step > 4:
        step *= 2
    parts = []
    for number in range(int(most // step) + 1):
        y = base - number * step * scale
        parts.append(element("line", x1=LEFT, x2=LEFT + WIDTH, y1=y, y2=y, class_="base" if number == 0 else "grid"))
        parts.append(element("text", format_size(number * step), x=LEFT - 8, y=y + 4, class_="value"))
    return parts


def _said(run: Run) -> str:
    peaks = [int(trace.forecast["peak_bytes"]) for trace in run.traces]
    peak = format_size(max(peaks, default=0))
    return f"Memory over time: at most {peak} reserved, under a {run.limit_name}"


def key(names: Sequence[tuple[str, str]]) -> Markup:
    """A list of colours by role, and what they stand for."""
    items = (element("li", element("span", class_=role), name) for role, name in names)
    return element("ul", *items, class_="key")


__all__ = ["USES", "key", "memory", "most_bytes"]
