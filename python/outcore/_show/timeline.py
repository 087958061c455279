"""Charts of what threads did over the time of a run, and of passes and arrays: when they ran, and were in memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from outcore._base.sizes import format_size
from outcore._base.times import format_time
from outcore._session.trace import ArrayStrip, ProgramTrace, Run
from outcore._show.markup import Markup, drawing, element
from outcore._show.names import scratch_names, shown
from outcore._show.strips import drawn_strip
from outcore._show.time_axis import ALL, LEFT, WIDTH, TimeAxis, figure, label

_ROW, _GAP, _FOOT = 14, 4, 26
# Threads of one kind that have rows to themselves; more are one row.
_LANES_MAX = 8
# Rows of passes and of arrays at most: those of most bytes and time.
_PASSES_MAX, _ARRAYS_MAX = 16, 28
# Busy shares are drawn in so many shades.
_SHADES = 4
#: Kinds of work: name of the kind, its colour, and a thread of it.
KINDS = {
    "read": ("read", "reading"),
    "touch": ("touch", "first touches"),
    "compute": ("compute", "computing"),
    "write": ("write", "writing"),
    "spill": ("spill", "spilling"),
}


def threads(run: Run, axis: TimeAxis, seconds: float) -> Markup:
    """A row for each thread by kind of work: the darker, the larger the share of the time in which it worked."""
    rows = list(_lane_rows(run))
    parts: list[Markup] = []
    bottom = len(rows) * (_ROW + _GAP)
    parts += axis.ticks(0, bottom)
    for place, (kind, name, lanes, busy) in enumerate(rows):
        y = place * (_ROW + _GAP)
        parts.append(element("rect", x=LEFT, y=y, width=WIDTH, height=_ROW, class_="back"))
        parts.append(label(name, y + 11))
        parts.append(figure(f"{100 * busy / seconds:.0f} %", y + 11))
        parts += _shaded(axis, lanes, y, KINDS[kind][0])
    said = "Threads over time: " + ", ".join(f"{name} {100 * busy / seconds:.0f} %" for _, name, _, busy in rows)
    return drawing(*parts, viewBox=f"0 0 {ALL} {bottom + _FOOT}", role="img", aria_label=said)


_LaneRow = tuple[str, str, list[tuple[ProgramTrace, list[float]]], float]


def _lane_rows(run: Run) -> Iterator[_LaneRow]:
    """Kind, name, bins by program in percent, and busy seconds of each row."""
    for kind, (_, name) in KINDS.items():
        lanes = [(trace, trace.lanes(kind)) for trace in run.traces]
        count = max((len(of_trace) for _, of_trace in lanes), default=0)
        if not count:
            continue
        busy = sum(trace.bin_seconds * sum(map(sum, of_trace)) / 100 for trace, of_trace in lanes)
        if count > _LANES_MAX:
            joined = [(trace, _mean(of_trace, count)) for trace, of_trace in lanes]
            yield kind, f"{name}, {count} threads", joined, busy / count
            continue
        for number in range(count):
            busy_bins = [
                (trace, [float(p) for p in of_trace[number]]) for trace, of_trace in lanes if number < len(of_trace)
            ]
            busy = sum(trace.bin_seconds * sum(bins) / 100 for trace, bins in busy_bins)
            yield kind, name if count == 1 else f"{name} {number + 1}", busy_bins, busy


def _mean(lanes: Sequence[Sequence[int]], count: int) -> list[float]:
    length = max(map(len, lanes), default=0)
    return [sum(lane[at] for lane in lanes if at < len(lane)) / count for at in range(length)]


def _shaded(axis: TimeAxis, lanes: Sequence[tuple[ProgramTrace, list[float]]], y: float, color: str) -> list[Markup]:
    paths: dict[int, list[str]] = defaultdict(list)
    for trace, bins in lanes:
        for left, width, share in axis.bins(trace, bins):
            if share > 0.01:
                shade = min(int(share * _SHADES) + 1, _SHADES)
                paths[shade].append(f"M{left:.1f} {y}h{width:.1f}v{_ROW}h-{width:.1f}z")
    return [
        element(
            "path", d="".join(pieces), class_=f"ink {color}", fill_opacity=0.25 + 0.75 * (shade - 1) / (_SHADES - 1)
        )
        for shade, pieces in sorted(paths.items())
    ]


def passes(run: Run, axis: TimeAxis) -> Markup | None:
    """A row for each stage, or for each pass of a single program: from its first task to its last."""
    rows = _stage_rows(run, axis) if len(run.traces) > 1 else _pass_rows(run.traces[0], axis) if run.traces else []
    if len(rows) < 2:
        return None
    bottom = len(rows) * (_ROW + _GAP)
    parts = axis.ticks(0, bottom)
    for place, (name, left, right, of) in enumerate(rows):
        y = place * (_ROW + _GAP)
        width = max(right - left, 1.0)
        parts.append(label(name, y + 11))
        parts.append(
            element("rect", element("title", name), x=left, y=y, width=width, height=_ROW, class_="ink compute")
        )
        parts.append(figure(of, y + 11))
    said = "Stages over time" if len(run.traces) > 1 else "Passes over time"
    return drawing(*parts, viewBox=f"0 0 {ALL} {bottom + _FOOT}", role="img", aria_label=said)


_BarRow = tuple[str, float, float, str]


def _stage_rows(run: Run, axis: TimeAxis) -> list[_BarRow]:
    return [
        (
            trace.label or f"stage {number}",
            axis.x(trace.begin),
            axis.x(trace.begin + trace.seconds),
            f"{format_size(_moved(trace))}, {_waiting(trace)}",
        )
        for number, trace in enumerate(run.traces, 1)
    ]


def _moved(trace: ProgramTrace) -> int:
    return int(trace.forecast["bytes_read"]) + int(trace.forecast["bytes_written"])


def _waiting(trace: ProgramTrace) -> str:
    """The cause a stage waited for most: the disk, or tasks."""
    return "disk" if trace.transfer_seconds > trace.compute_seconds else "tasks"


def _pass_rows(trace: ProgramTrace, axis: TimeAxis) -> list[_BarRow]:
    occupancy = trace.occupancy
    if occupancy is None:
        return []
    lefts = {at: column.left for column in axis.columns(trace) for at in column.columns}
    rights = {at: column.left + column.width for column in axis.columns(trace) for at in column.columns}
    spent, rows = trace.pass_seconds, []
    order = sorted(range(len(spent)), key=lambda number: -spent[number])[:_PASSES_MAX]
    for number in sorted(order):
        span = occupancy.passes[number] if number < len(occupancy.passes) else None
        if span is None or span[0] not in lefts:
            continue
        content = trace.forecast["passes"][number]
        right = rights.get(span[1] - 1, max(rights.values()))
        rows.append((f"{number}: {content['label']}", lefts[span[0]], right, f"{format_time(spent[number])} of tasks"))
    return rows


def arrays(run: Run, axis: TimeAxis) -> Markup | None:
    """A strip for each array: how much of it is in memory, and below when it is read, read again, spilled, written."""
    strips: dict[str, list[tuple[ProgramTrace, ArrayStrip]]] = defaultdict(list)
    for trace in run.traces:
        for strip in () if trace.occupancy is None else trace.occupancy.arrays:
            strips[strip.names[0] if strip.names else ""].append((trace, strip))

    def weight(name: str) -> int:
        return sum(strip.read + strip.written + strip.spilled + strip.peak for _, strip in strips[name])

    drawn = sorted(strips, key=weight, reverse=True)[:_ARRAYS_MAX]
    if not drawn:
        return None
    height = _ROW + 6
    bottom = len(drawn) * (height + _GAP)
    parts = axis.ticks(0, bottom)
    names = scratch_names(run.traces)
    for place, name in enumerate(name for name in strips if name in drawn):
        y = place * (height + _GAP)
        parts.append(element("rect", x=LEFT, y=y, width=WIDTH, height=height, class_="back"))
        parts.append(label(shown(name, names), y + 13, _hint(names.get(name, name), strips[name])))
        parts.append(figure(_read(strips[name]), y + 13))
        for trace, strip in strips[name]:
            parts += drawn_strip(strip, axis.columns(trace), y, _ROW)
    said = "Arrays in memory over time: " + "; ".join(f"{shown(name, names)} {_read(strips[name])}" for name in drawn)
    return drawing(*parts, viewBox=f"0 0 {ALL} {bottom + _FOOT}", role="img", aria_label=said)


def _read(strips: Sequence[tuple[ProgramTrace, ArrayStrip]]) -> str:
    """Bytes of an array that were read, how often, or that were spilled or written."""
    read = sum(strip.read for _, strip in strips)
    again = sum(strip.read_again for _, strip in strips)
    spilled = sum(strip.spilled for _, strip in strips)
    written = sum(strip.written for _, strip in strips)
    if spilled:
        return f"{format_size(spilled)} spilled"
    if read:
        once = read - again
        return f"{format_size(read)}, {read / once:.1f} ×" if again and once else format_size(read)
    return f"{format_size(written)} written" if written else "not on disk"


def _hint(name: str, strips: Sequence[tuple[ProgramTrace, ArrayStrip]]) -> str:
    _, strip = strips[0]
    shape = " × ".join(f"{length:,}" for length in strip.shape) or "one number"
    return f"{name}: {shape} {strip.dtype}, {strip.tiles:,} tiles, at most {format_size(strip.peak)} in memory"


__all__ = ["KINDS", "arrays", "passes", "threads"]
