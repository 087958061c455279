"""Charts and tables of one run: memory, threads, passes, arrays, files, slow tasks, other limits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from outcore._base.sizes import format_size
from outcore._base.times import format_time
from outcore._session.record import Outcome
from outcore._session.trace import ProgramTrace, Run
from outcore._show.explanation import Explanation, folded, pass_label
from outcore._show.markup import Markup, element
from outcore._show.memory import USES, key, memory, most_bytes
from outcore._show.names import scratch_names, shown
from outcore._show.strips import STRIP_KEY
from outcore._show.sweep import limit_table, point_cells
from outcore._show.tables import disclosure, table, wide
from outcore._show.time_axis import TimeAxis
from outcore._show.timeline import KINDS, arrays, passes, threads

# Rows of tables at most; passes of loops are folded before.
_ROWS_MAX = 200
_SLOWEST_MAX = 12

_LINES = "Red line: the limit. Dashed line: the resident size of the process, as sampled."
_STRIPS = "Above, the share of an array that is in memory; in the line below it, transfers."
_TOUCHES = "First touches: the system maps pages of memory that are used for the first time, and clears them."


class ChartScale(NamedTuple):
    """The ends of the axes of charts."""

    seconds: float
    bytes: int

    @classmethod
    def of(cls, runs: Sequence[tuple[Outcome, Run]]) -> ChartScale:
        """The scale on which all of some runs can be drawn."""
        return cls(
            max(max(outcome.seconds, 1e-6) for outcome, _ in runs),
            max(most_bytes(run) for _, run in runs),
        )


def details(outcome: Outcome, run: Run, scale: ChartScale | None = None) -> list[Markup]:
    """Charts, then tables behind a line each. Runs beside each other have a scale in common."""
    scale = ChartScale.of([(outcome, run)]) if scale is None else scale
    total = max(outcome.seconds, 1e-6)
    axis = TimeAxis(scale.seconds)
    parts = [element("h3", "Memory"), key([(role, name) for role, name in USES.items()])]
    parts.append(element("p", _LINES, class_="note"))
    parts.append(wide(memory(run, axis, scale.bytes), "Memory over time"))
    parts += [element("h3", "Threads"), key(list(KINDS.values()))]
    if any(trace.lanes("touch") for trace in run.traces):
        parts.append(element("p", _TOUCHES, class_="note"))
    parts.append(wide(threads(run, axis, total), "Threads over time"))
    rows = passes(run, axis)
    if rows is not None:
        parts += [element("h3", "Stages" if len(run.traces) > 1 else "Passes"), wide(rows, "Passes over time")]
    strips = arrays(run, axis)
    if strips is not None:
        parts += [
            element("h3", "Arrays"),
            key(STRIP_KEY),
            element("p", _STRIPS, class_="note"),
            wide(strips, "Arrays over time"),
        ]
    parts.append(disclosure("Files: forecast beside outcome", _files(run)))
    parts.append(disclosure("Passes: bytes and time", _passes(run)))
    parts.append(disclosure("Slowest tasks and transfers", _slowest(run)))
    if run.sweep:
        parts.append(disclosure("Other memory limits", _sweep_table(run, outcome)))
    return parts


def _files(run: Run) -> Markup:
    """Bytes of each file as planned and as counted."""
    planned: dict[str, list[int]] = {}
    for trace in run.traces:
        counted, written = trace.counted_read(), trace.counted_written()
        for strip in () if trace.occupancy is None else trace.occupancy.arrays:
            if strip.role != "stored" and not written.keys() & set(strip.names):
                continue
            for name in strip.names:
                sizes = planned.setdefault(name, [0, 0, 0, 0])
                share = strip.written // max(len(strip.names), 1)
                for place, size in enumerate((strip.read, counted.get(strip.number, 0), share, written.get(name, 0))):
                    sizes[place] += size
    head = ["file", "read, forecast", "read, counted", "written, forecast", "written, counted"]
    names = scratch_names(run.traces)
    rows = [
        [names.get(name, name), *(f"{size:,}" for size in sizes)] for name, sizes in list(planned.items())[:_ROWS_MAX]
    ]
    return table(head, rows, name="Files", text=("file",))


def _passes(run: Run) -> Markup:
    """Passes by program; those that repeat are one row, with their sums."""
    head = ["stage", "pass", "operators", "tasks", "read", "written", "time of tasks"]
    rows = []
    for number, trace in enumerate(run.traces, 1):
        forecast = Explanation(trace.forecast)
        spent = trace.pass_seconds
        for first, times, alike in folded(forecast.passes):
            rows.append(
                [
                    trace.label or str(number),
                    str(first) if times == 1 else f"{first} × {times:,}",
                    pass_label(alike[0]),
                    f"{sum(one.tasks for one in alike):,}",
                    format_size(sum(one.bytes_read for one in alike)),
                    format_size(sum(one.bytes_written for one in alike)),
                    format_time(sum(spent[one.index] for one in alike if one.index < len(spent))),
                ]
            )
    shown = rows[:_ROWS_MAX]
    if len(shown) < len(rows):
        shown.append([f"{len(rows) - len(shown):,} more", *[""] * (len(head) - 1)])
    return table(head, shown, name="Passes", text=("stage", "operators"))


def _slowest(run: Run) -> Markup:
    slow: list[tuple[ProgramTrace, int]] = [
        (trace, place) for trace in run.traces for place in range(len(trace.slowest))
    ]
    slow.sort(key=lambda item: -item[0].slowest[item[1]].seconds)
    rows, names = [], scratch_names(run.traces)
    for trace, place in slow[:_SLOWEST_MAX]:
        work = trace.slowest[place]
        is_task = work.kind == "compute"
        name = work.name if is_task else shown(work.name, names)
        strip = None if is_task else trace.strip(work.subject)
        part = "" if strip is None else f"{' × '.join(f'{length:,}' for length in strip.tile)} {strip.dtype}"
        stage = [trace.label] if len(run.traces) > 1 else []
        began = format_time(trace.begin + work.start)
        at = ", ".join(f"{place:,}" for place in work.at)
        where = f"{'task' if is_task else 'tile'} ({at})" if at else ""
        rows.append([*stage, f"{work.kind} {name}", where, part, f"{work.lane + 1}", began, format_time(work.seconds)])
    stages = ["stage"] if len(run.traces) > 1 else []
    head = [*stages, "work", "where, from 0", "tile, at most", "thread", "began after", "took"]
    text = ("stage", "work", "where, from 0", "tile, at most")
    return table(head, rows, name="Slowest tasks and transfers", text=text)


def _sweep_table(run: Run, outcome: Outcome) -> Markup:
    """Bytes under other limits, and under that of the run."""
    counted = (outcome.bytes_read, outcome.bytes_written, outcome.bytes_spilled, outcome.peak_bytes)
    rows = [(point.memory_limit, point_cells(point, "" if point.exact else "at most")) for point in run.sweep]
    return limit_table([*rows, (run.memory_limit, [*map(format_size, counted), "this run"])])


__all__ = ["ChartScale", "details"]
