"""`Explanation`: the forecast of a program, as text, HTML or a dictionary."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Protocol, TypeAlias

from outcore._base.shortened import printable_text
from outcore._base.sizes import format_size
from outcore._base.times import format_time
from outcore._base.types import JSONObject
from outcore._show.markup import Markup, element, joined
from outcore._show.names import short_names
from outcore._show.style import STYLE
from outcore._show.sweep import LimitSweep
from outcore._show.tables import table

#: The least and the most seconds, and the number of runs that they are by.
TimeBand: TypeAlias = tuple[float, float, int]
_HANDED_ON = re.compile(r".*#\d+|array in memory", re.DOTALL)

_SUMS = ("bytes_read", "bytes_written", "bytes_spilled", "tasks")
_ORDERS_SHOWN = 10
_MOST = ("peak_bytes", "bytes_scratch", "fixed_bytes")


class Planned(Protocol):
    """A program that says what it will do."""

    def explain(self) -> str: ...
    def time(self) -> TimeBand | None: ...


@dataclass(frozen=True)
class Stage:
    """One program of a computation in stages. Stages that are not `exact` wait for facts of earlier ones."""

    label: str
    exact: bool
    #: The facts that the stages after it wait for.
    awaits: str | None
    forecast: Explanation

    @classmethod
    def of(cls, content: JSONObject) -> Stage:
        return cls(content["label"], content["exact"], content["awaits"], Explanation(_program(content)))


def _program(stage: JSONObject) -> JSONObject:
    program = {**stage["program"], "exact": stage["exact"]}
    if not stage["exact"]:
        # Which tiles are kept follows from what is found: all that is sure is that they stay within the budget.
        program["peak_bytes"] = program["budget_bytes"]
        # Where memory is short, tiles of other sizes may be spilled where these are not.
        for name in ("bytes_written", "bytes_spilled", "bytes_scratch"):
            program[name] += stage.get("beyond_spilled", 0)
        program["bytes_read"] += stage.get("beyond_read", 0)
    return program


def _joined(stages: Sequence[JSONObject]) -> JSONObject:
    """The numbers of several stages together: sums, and the most of what is held at once."""
    programs = [_program(stage) for stage in stages]
    content = dict(programs[-1])
    content |= {name: sum(program[name] for program in programs) for name in _SUMS}
    content |= {name: max(program[name] for program in programs) for name in _MOST}
    content["bytes_read"] += sum(stage["lookup_bytes"] for stage in stages)
    content["exact"] = all(stage["exact"] for stage in stages)
    passes = [part for program in programs for part in program["passes"]]
    content["outputs"] = [output for program in programs for output in program.get("outputs", ())]
    content["passes"] = [{**part, "index": index} for index, part in enumerate(passes)]
    content["rewrites"] = [rewrite for program in programs for rewrite in program["rewrites"]]
    content["advice"] = sorted({text for program in programs for text in program["advice"]})
    content["candidates"] = []
    content["least_bytes"] = None
    content["stages"] = list(stages)
    return content


@dataclass(frozen=True)
class Pass:
    """One sweep over tiles with everything fused into it."""

    index: int
    label: str
    domain: tuple[tuple[int, int], ...]
    tasks: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    bytes_read: int
    bytes_written: int
    flops: float

    @classmethod
    def of(cls, content: JSONObject) -> Pass:
        return cls(
            index=content["index"],
            label=content["label"],
            domain=tuple((length, tile) for length, tile in content["domain"]),
            tasks=content["tasks"],
            inputs=tuple(content["inputs"]),
            outputs=tuple(content["outputs"]),
            bytes_read=content["bytes_read"],
            bytes_written=content["bytes_written"],
            flops=content.get("flops", 0),
        )


class Explanation:
    """The forecast of a program. When `exact`, the run's counters equal it to the byte; else the figures are bounds.

    `memory_limit` = `overhead_bytes` (the process without tiles) + `budget_bytes` (all the ledger may hand out);
    `peak_bytes` is the most the program reserves at once (where stages wait for others, the most they may reserve),
    `bytes_scratch` the most it takes of the scratch directories. `seconds` is a band of time by the rates of the
    session's last runs, of their operations and their bytes.
    `kept`, `known` and `remembered` are numbers with bytes: tiles of stored arrays in memory from earlier runs, values
    that were computed before and stand for their expressions, values that will stay in memory after the run.
    `least_bytes` is what any order reads and writes in such memory, by the theory of nests of loops and of products:
    each file once, and 2 m n k / √S elements of a product; None where elements are used once or no bound is known.
    `refusals` are plans that did not fit before the one that is told: what of, in which part of the memory (n for 1/n),
    bytes that were needed.

    >>> import outcore as oc
    >>> said = oc.explain(oc.arange(4).sum())
    >>> said.exact, said.bytes_read
    (True, 0)
    """

    def __init__(self, content: JSONObject, time: TimeBand | None = None, sweep: LimitSweep | None = None) -> None:
        self._content = dict(content)
        self._band = time
        #: The same under other memory limits, where `explain` was asked for it.
        self.sweep = sweep
        self.memory_limit: int = content["memory_limit"]
        self.overhead_bytes: int = content["overhead_bytes"]
        self.budget_bytes: int = content["budget_bytes"]
        self.fixed_bytes: int = content["fixed_bytes"]
        self.peak_bytes: int = content["peak_bytes"]
        self.bytes_read: int = content["bytes_read"]
        self.bytes_written: int = content["bytes_written"]
        self.bytes_spilled: int = content["bytes_spilled"]
        self.bytes_scratch: int = content["bytes_scratch"]
        self.tasks: int = content["tasks"]
        self.window: int = content["window"]
        self.policy: str = content["policy"]
        self.order: str = content["order"]
        self.exact: bool = content["exact"]
        # Bytes that any order moves at least in this memory, where nests of loops or products tell them.
        self.least_bytes: int | None = content.get("least_bytes")
        self.passes: tuple[Pass, ...] = tuple(Pass.of(part) for part in content["passes"])
        self.candidates: tuple[JSONObject, ...] = tuple(content.get("candidates", ()))
        self.rewrites: tuple[str, ...] = tuple(content.get("rewrites", ()))
        # Plans that did not fit before this one did: the operator, the part of the memory that it had, bytes it needs.
        refused = content.get("refusals", ())
        self.refusals: tuple[tuple[str, int, int], ...] = tuple((r["of"], r["parts"], r["need"]) for r in refused)
        # Advice to users who compute such things often.
        self.advice: tuple[str, ...] = (*content.get("advice", ()), *self._unrolled())
        self.stages: tuple[Stage, ...] = tuple(Stage.of(part) for part in content.get("stages", ()))
        # How many and their bytes: tiles found in memory, values computed before, values remembered from now on.
        self.kept: tuple[int, int] = _pair(content, "kept")
        self.known: tuple[int, int] = _pair(content, "known")
        self.remembered: tuple[int, int] = _pair(content, "remembered")

    @classmethod
    def of(cls, program: Planned) -> Explanation:
        """The forecast of a program, with the time by the rates of its session."""
        text = program.explain()
        content = json.loads(text)
        refusals = {"refusals": content["refusals"]}
        content = _joined(content["stages"]) | refusals if "stages" in content else content
        return cls(content, program.time())

    @classmethod
    def from_stages(cls, stages: Sequence[JSONObject]) -> Explanation:
        """The forecast of what runs in these stages, each as the planner writes it."""
        return cls(_joined(stages))

    def with_sweep(self, sweep: LimitSweep | None) -> Explanation:
        """The same beside what other memory limits would do."""
        return Explanation(self._content, self._band, sweep)

    @property
    def outputs(self) -> tuple[JSONObject, ...]:
        """Files and folders that are written: path, grid (`tile`) and bytes of their tiles."""
        return tuple(self._content.get("outputs", ()))

    def followed_by(self, label: str, outputs: Sequence[str], moved: int, names: Mapping[str, str]) -> Explanation:
        """The same with a pass at the end that reads so many bytes and writes those again; outputs that passes before
        write have other names, where the mapping has one.
        """
        content, band = dict(self._content), self._band
        if moved:
            if band is not None and (before := self.bytes_read + self.bytes_written):
                times = 1 + 2 * moved / before
                band = (band[0] * times, band[1] * times, band[2])
            sums = {"tasks": 0, "flops": 0, "bytes_read": moved, "bytes_written": moved}
            last = {"index": len(self.passes), "label": label, "domain": [], "inputs": [], "outputs": [*outputs]}
            content["passes"] = [*content["passes"], last | sums]
            content |= {name: content[name] + moved for name in ("bytes_read", "bytes_written")}
            moves = ("bytes_read", "bytes_written")
            content["candidates"] = [one | {name: one[name] + moved for name in moves} for one in self.candidates]
        content["passes"] = [
            part | {"outputs": [names.get(name, name) for name in part["outputs"]]} for part in content["passes"]
        ]
        content["outputs"] = [one | {"path": names.get(one["path"], one["path"])} for one in self.outputs]
        return Explanation(content, band, self.sweep)

    @property
    def seconds(self) -> tuple[float, float] | None:
        """The least and the most time that it takes by the rates of earlier runs; None where there were none."""
        return None if self._band is None else self._band[:2]

    @property
    def flops(self) -> float:
        """Floating-point operations of all passes."""
        return sum(part.flops for part in self.passes)

    def _unrolled(self) -> list[str]:
        """Advice for a loop that was written out in an expression and whose states do not fit the memory together."""
        results = max(self.bytes_written - self.bytes_spilled, 1 << 20)
        if self.bytes_spilled < _SPILLED * results:
            return []
        rounds = max((times for _, times, _ in _repeats([_kind(part) for part in self.passes])), default=1)
        if rounds < _ROUNDS:
            return []
        return [
            f"passes repeat {rounds:,} times and spill {format_size(self.bytes_spilled)}: oc.iterate(step, start, "
            f"max_iter={rounds}) computes one step at a time and holds one state"
        ]

    def to_dict(self) -> JSONObject:
        """Everything the planner said, for JSON."""
        return dict(self._content)

    def _totals(self) -> list[tuple[str, str]]:
        label = "exact" if self.exact else "bound"
        reserved = f"{_both(self.peak_bytes)} of {format_size(self.budget_bytes)}"
        totals = [
            (f"bytes read ({label})", _both(self.bytes_read)),
            (f"bytes written ({label})", _both(self.bytes_written)),
            ("  of these spilled", f"{_both(self.bytes_spilled)}, {format_size(self.bytes_scratch)} at once"),
            *self._least(),
            (f"peak reserved ({label})", reserved),
            ("memory limit", f"{_both(self.memory_limit)}, {format_size(self.overhead_bytes)} of it not for tiles"),
            *self._time(),
            ("tasks", f"{self.tasks:,}, {self.window} in flight"),
            ("policy, order", f"{self.policy}, {self.order}"),
        ]
        parts = [_counted(self.kept, "tile"), _counted(self.known, "value")]
        if any(parts):
            totals.append(("in memory already", ", ".join(part for part in parts if part)))
        if self.remembered[0]:
            totals.append(("remembered", _counted(self.remembered, "value")))
        return totals

    def _least(self) -> list[tuple[str, str]]:
        """The least that is moved in this memory, and how near to that the plan is."""
        if not self.least_bytes:
            return []
        times = (self.bytes_read + self.bytes_written) / self.least_bytes
        return [("  at least", f"{_both(self.least_bytes)} in any order; {times:.2f} times that here")]

    def _time(self) -> list[tuple[str, str]]:
        """The band of time, where runs before it tell one."""
        if self._band is None:
            return []
        least, most, count = self._band
        runs = f"the last {count} runs" if count > 1 else "the last run"
        least_time, most_time = format_time(least), format_time(most)
        band = least_time if least_time == most_time else f"{least_time} to {most_time}"
        return [("time", f"{band} by the rates of {runs}")]

    def _rows(self) -> list[tuple[str, ...]]:
        """One line per pass; those that repeat are one, with how often, and the tasks and bytes of all of them."""
        header = ("pass", "what", "over", "tasks", "read", "written", "files")
        files = short_names(sorted({name for part in self.passes for name in _files(part)}))
        rows = []
        for index, times, alike in folded(self.passes):
            part = alike[0]
            rows.append(
                (
                    str(index) if times == 1 else f"{index} × {times}",
                    _joined_label(part.label),
                    " × ".join(f"{length}/{tile}" for length, tile in part.domain) or "once",
                    f"{sum(one.tasks for one in alike):,}",
                    format_size(sum(one.bytes_read for one in alike)),
                    format_size(sum(one.bytes_written for one in alike)),
                    _flow(part, files),
                )
            )
        return [header, *rows]

    def __str__(self) -> str:
        lines = self._stage_lines() if self.stages else self._program_lines()
        if self.sweep is not None:
            lines += ["", *str(self.sweep).split("\n")]
        return "\n".join(map(printable_text, (*lines, f"{'legend':<21}  {_LEGEND}")))

    def _refused(self) -> list[str]:
        """The rungs of the ladder before the plan, in words."""
        parts = [(of, "all" if part == 1 else f"1/{part}", need) for of, part, need in self.refusals]
        return [f"{of} in {part} of the memory: needs {format_size(need)}" for of, part, need in parts]

    def _program_lines(self) -> list[str]:
        lines = [*_table(self._rows(), right=(0, 3, 4, 5)), ""]
        totals = self._totals()
        width = max(len(name) for name, _ in totals)
        lines += [f"{name:<{width}}  {value}" for name, value in totals]
        for rewrite in self.rewrites:
            lines.append(f"{'rewrite':<{width}}  {rewrite}")
        for text in self.advice:
            lines.append(f"{'advice':<{width}}  {text}")
        lines += [f"{'did not fit':<{width}}  {text}" for text in self._refused()]
        shown = self._orders_shown()
        for candidate in shown:
            lines.append(
                f"{'order tried':<{width}}  {candidate['order']}: {format_size(candidate['bytes_read'])} read, "
                f"{format_size(candidate['bytes_written'])} written{', chosen' if candidate.get('chosen') else ''}"
            )
        if len(shown) < len(self.candidates):
            lines.append(f"{'order tried':<{width}}  {len(self.candidates) - len(shown)} others, of more bytes")
        return lines

    def _orders_shown(self) -> list[JSONObject]:
        """The first order, the chosen one, and those of fewest bytes, as they were tried; `candidates` has all."""

        def rank(candidate: JSONObject) -> tuple[bool, int]:
            is_kept = bool(candidate.get("chosen")) or candidate is self.candidates[0]
            return not is_kept, candidate["bytes_read"] + candidate["bytes_written"]

        shown = {id(candidate) for candidate in sorted(self.candidates, key=rank)[:_ORDERS_SHOWN]}
        return [candidate for candidate in self.candidates if id(candidate) in shown]

    def __repr__(self) -> str:
        kind = "" if self.exact else "at most "
        stages = f"{len(self.stages)} stages, " if len(self.stages) > 1 else ""
        passes = f"{len(self.passes):,} pass{'' if len(self.passes) == 1 else 'es'}"
        return (
            f"Explanation({stages}{passes}, {kind}{format_size(self.bytes_read)} read, "
            f"{format_size(self.bytes_written)} written, peak {format_size(self.peak_bytes)}; print it for the passes)"
        )

    def _stage_lines(self) -> list[str]:
        lines = []
        for title, stage in _titled(self.stages):
            lines.append(title)
            lines += [f"  {line}".rstrip() for line in stage.forecast._program_lines()]
            if stage.awaits:
                lines.append(f"  what follows waits for: {stage.awaits}")
            lines.append("")
        lines += [f"{name:<22}  {value}" for name, value in [*self._totals()[:4], *self._time()]]
        lines += [f"{'did not fit':<22}  {text}" for text in self._refused()]
        return lines

    def _repr_html_(self) -> str:
        parts = [element("style", Markup(STYLE))]
        stages = self.stages or (Stage("", self.exact, None, self),)
        for number, (title, stage) in enumerate(_titled(stages), 1):
            head, *body = stage.forecast._rows()
            if len(stages) > 1:
                parts.append(element("h3", title))
            parts.append(table(head, body, name=f"Passes of stage {number}", text=("what", "over", "files")))
        totals = [[name.strip(), value] for name, value in self._totals()]
        parts.append(table(["forecast", "value"], totals, name="Forecast", text=("forecast", "value")))
        parts += [element("p", f"Advice: {text}") for text in self.advice]
        if self.sweep is not None:
            parts.append(Markup(self.sweep._repr_html_()))
        return element("div", joined(parts), class_="outcore")


def _titled(stages: Sequence[Stage]) -> list[tuple[str, Stage]]:
    """Stages with their titles; of successive ones that are alike the first."""

    def likeness(stage: Stage) -> tuple[object, ...]:
        plan = stage.forecast
        kinds = [_kind(part) for part in plan.passes]
        return stage.label, stage.exact, stage.awaits, kinds, plan.bytes_read, plan.bytes_written, plan.peak_bytes

    titled, first = [], 1
    for _, alike in groupby(stages, likeness):
        stage, *others = alike
        last = first + len(others)
        numbers = f"stages {first} to {last} of {len(stages)}, each" if others else f"stage {first} of {len(stages)}"
        titled.append((f"{numbers}: {stage.label} ({'exact' if stage.exact else 'bounds'})", stage))
        first = last + 1
    return titled


#: Rounds of a loop, and spilled bytes per byte of results, from which `iterate` is named.
_ROUNDS, _SPILLED = 16, 8

#: Characters of a cell; longer text is cut, so that a line fits a terminal.
_CELL = 48

_LEGEND = "over: length/tile of each axis; 3 × 39: 39 such passes from 3 on, their sums"


def renamed(forecast: Explanation, names: Mapping[str, str]) -> Explanation:
    """The same, with arrays by the names that the user's variables give them."""
    if not names:
        return forecast
    content = forecast.to_dict()

    def of(program: JSONObject) -> JSONObject:
        passes = [
            part | {key: [names.get(name, name) for name in part[key]] for key in ("inputs", "outputs")}
            for part in program["passes"]
        ]
        return program | {"passes": passes}

    content = of(content)
    if "stages" in content:
        content["stages"] = [stage | {"program": of(stage["program"])} for stage in content["stages"]]
    return Explanation(content, forecast._band, forecast.sweep)


def folded(passes: Sequence[Pass]) -> list[tuple[int, int, Sequence[Pass]]]:
    """Passes in rows: the index of the first, how often it repeats, and all that the row stands for."""
    rows = []
    for first, times, period in _repeats([_kind(part) for part in passes]):
        for place in range(first, first + period):
            rows.append((passes[place].index, times, passes[place : place + times * period : period]))
    return rows


def pass_label(part: Pass) -> str:
    """The operators of a pass, in a cell of a table."""
    return _joined_label(part.label)


def _joined_label(label: str) -> str:
    """Operators of a pass, runs of one as their number: `a, a, a, b` as `3 × a, b`. Of long rows the first."""
    runs = [(name, len(list(alike))) for name, alike in groupby(label.split(", "))]
    parts = [name if times == 1 else f"{times} × {name}" for name, times in runs]
    if len(", ".join(parts)) <= _CELL:
        return ", ".join(parts)
    shown = 1
    while len(", ".join(parts[: shown + 1])) <= _CELL - len(" … and 1,000 more"):
        shown += 1
    more = sum(times for _, times in runs[shown:])
    return ", ".join(parts[:shown]) + (f" … and {more:,} more" if more else "")


def _pair(content: JSONObject, name: str) -> tuple[int, int]:
    count, size = content.get(name, (0, 0))
    return count, size


def _counted(held: tuple[int, int], what: str) -> str:
    count, size = held
    return f"{count:,} {what}{'s' if count > 1 else ''} ({format_size(size)})" if count else ""


def _files(part: Pass) -> tuple[str, ...]:
    """The files and other libraries' arrays of a pass; what passes hand on carries the number of its node."""
    return tuple(
        name for name in (*part.inputs, *part.outputs) if os.path.isabs(name) or not _HANDED_ON.fullmatch(name)
    )


def _kind(part: Pass) -> tuple[object, ...]:
    """The properties in common of passes that are shown as one."""
    return part.label, part.domain, part.tasks, _files(part)


def _flow(part: Pass, files: Mapping[str, str]) -> str:
    """The files a pass reads, and those it writes."""
    read = ", ".join(files[name] for name in part.inputs if name in files)
    written = ", ".join(files[name] for name in part.outputs if name in files)
    return " ".join(text for text in (read, f"→ {written}" if written else "") if text)


def _repeats(kinds: Sequence[object]) -> list[tuple[int, int, int]]:
    """Runs of equal periods, from the front: first place, how often, length of the period (at most 64)."""
    runs = []
    first = 0
    while first < len(kinds):
        times, period = 1, 1
        for length in range(1, min(64, (len(kinds) - first) // 2) + 1):
            same = first
            while same + length < len(kinds) and kinds[same] == kinds[same + length]:
                same += 1
            count = (same - first) // length + 1
            if (count - 1) * length > (times - 1) * period:
                times, period = count, length
        runs.append((first, times, period))
        first += times * period
    return runs


def _both(size: int) -> str:
    return f"{size:,} B ({format_size(size)})" if size >= 1024 else f"{size} B"


def _table(rows: Sequence[Sequence[str]], right: Sequence[int]) -> list[str]:
    """Rows of one width per column; long labels are cut so that a line fits a terminal."""
    shown = [[cell if len(cell) <= _CELL else f"{cell[: _CELL - 1]}…" for cell in row] for row in rows]
    widths = [max(len(row[place]) for row in shown) for place in range(len(shown[0]))]
    lines = []
    for row in shown:
        cells = (
            f"{cell:>{width}}" if place in right else f"{cell:<{width}}"
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        lines.append("  ".join(cells).rstrip())
    lines.insert(1, "  ".join("─" * width for width in widths))
    return lines
