"""Sentences about a run: what bound it, what was read twice and why, and what the memory limit cost."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from outcore._base.sizes import format_size
from outcore._base.times import format_time
from outcore._session.record import Outcome
from outcore._session.trace import ArrayStrip, ProgramTrace, Run, SweepPoint
from outcore._show.names import scratch_names, short, shown

# Shares of the time from which one thing is said to bind a run.
_BINDING, _LEADING = 0.8, 0.5
# Shares of the time in which anything was under way from which the disk and computing are said to bind a run together,
# and the most by which they differ then.
_TOGETHER, _CLOSE = 0.7, 0.15
# Share of the time from which first touches of memory are told beside what bound a run.
_TOLD_TOUCHES = 0.1
_MOVED = ("bytes_read", "bytes_written")
# Shorter runs are bound by their start, whatever their parts.
_SHORT_SECONDS = 0.02
# Savings from which another limit is named.
_SAVING = 0.1
# Share of their time that threads waited, up to which more memory hardly helps a run that computes.
_WAITED = 0.1
# Reads beyond slices that are told: bytes more, and times as many.
_BEYOND_MIN, _BEYOND_TIMES = 1 << 20, 1.5
# Sentences on files and intermediate values, at most.
_SENTENCES_MAX = 6


@dataclass(frozen=True)
class Busy:
    """Parts of the time of a run, in seconds, by what was under way in any thread."""

    total: float
    transfer: float
    compute: float
    both: float
    #: Time of all tasks together, in all threads.
    tasks: float
    threads: int
    moved: int
    #: Time in which memory was touched first and nothing else went on.
    touched: float = 0.0

    @classmethod
    def of(cls, outcome: Outcome, run: Run) -> Busy:
        """Of a run; where not all of its programs have traces, of those that have."""
        total, moved = outcome.seconds, outcome.bytes_read + outcome.bytes_written
        if len(run.traces) < len(outcome.other.get("stages", ())):
            total = sum(trace.seconds for trace in run.traces)
            moved = sum(sum(int(trace.forecast[name]) for name in _MOVED) for trace in run.traces)
        lanes = max((len(trace.lanes("compute")) for trace in run.traces), default=1)
        return cls(
            total=max(total, 1e-9),
            transfer=sum(trace.transfer_seconds for trace in run.traces),
            compute=sum(trace.compute_seconds for trace in run.traces),
            both=sum(trace.both_seconds for trace in run.traces),
            tasks=sum(trace.computing for trace in run.traces),
            threads=max(run.threads, lanes),
            moved=moved,
            touched=sum(trace.touch_seconds for trace in run.traces),
        )

    @property
    def idle(self) -> float:
        """Time in which nothing was transferred and nothing computed."""
        return max(self.total - (self.transfer + self.compute - self.both), 0.0)

    @property
    def waited(self) -> float:
        """The part of this in which memory was not touched first either."""
        return max(self.idle - self.touched, 0.0)

    @property
    def rate(self) -> float:
        """Bytes per second while any were under way."""
        return self.moved / self.transfer if self.transfer else 0.0

    @property
    def binding(self) -> str:
        """The name of what bound the run: "start", "touching", "disk", "computing", "both", "turns" or "waiting"."""
        if self.total < _SHORT_SECONDS:
            return "start"
        disk, tasks = self.transfer / self.total, self.tasks / (self.total * self.threads)
        if self.touched > max(self.transfer, self.compute, self.waited):
            return "touching"
        if self.waited > max(self.transfer, self.compute):
            return "waiting"
        if disk >= _BINDING and disk > tasks:
            return "disk"
        if self.compute / self.total >= _BINDING and tasks >= _LEADING:
            return "computing"
        return self._larger

    @property
    def _larger(self) -> str:
        """The larger part of the time in which anything was under way: "disk" or "computing"; where they are close,
        "both" if each went on most of that time, else "turns"."""
        busy = max(self.total - self.idle, 1e-9)
        disk, computing = self.transfer / busy, self.compute / busy
        if abs(disk - computing) > _CLOSE:
            return "disk" if disk > computing else "computing"
        return "both" if min(disk, computing) >= _TOGETHER else "turns"


def bound(outcome: Outcome, run: Run) -> str:
    """The cause that bound the run, in a sentence or two; of an ingest or a scan what it moved, and its programs."""
    if "work" in outcome.other:
        return _of_work(outcome)
    if not run.traces:
        return f"The run took {format_time(outcome.seconds)}, too short to be looked at: its start and end weigh most."
    busy = Busy.of(outcome, run)
    disk = f"reads and writes were under way {_share(busy.transfer, busy.total)} of the time"
    rate = f" at {format_size(round(busy.rate))}/s" if busy.moved else ""
    threads = busy.tasks / busy.total
    tasks = f"tasks ran in {threads:.1f} of {busy.threads} threads on average"
    if busy.touched / busy.total >= _TOLD_TOUCHES:
        tasks += f"; first touches of memory, with nothing else under way, took {_share(busy.touched, busy.total)}"
    if busy.binding == "start":
        return f"The run took {format_time(busy.total)}: its start and end weigh most."
    if busy.binding == "touching":
        return (
            f"First touches of memory bound it, {_share(busy.touched, busy.total)} of the time with nothing else under "
            f"way: the system clears pages that a process takes for the first time, and later runs of the session find "
            f"them; {disk}{rate}."
        )
    if busy.binding == "disk":
        source = _foreign(run)
        if source:
            return f"Reading {source}, an array of another library, bound it: {disk}{rate}; {tasks}."
        times = busy.total / busy.transfer
        return f"The disk bound it: {disk}{rate}; {tasks}. The run took {times:.2f} × the time of these alone."
    if busy.binding == "computing":
        return f"Computing bound it: {tasks}; {disk}{rate}."
    if busy.binding == "waiting":
        return (
            f"Neither the disk nor computing bound it: {format_time(busy.waited)} of {format_time(busy.total)} passed "
            f"in planning, between programs, or while outputs were made durable; {disk}{rate}; {tasks}."
        )
    if busy.binding == "turns":
        computed = f"computing {_share(busy.compute, busy.total)}"
        return f"Neither the disk nor computing bound it alone, they took turns: {disk}{rate}, {computed}; {tasks}."
    return f"Disk and computing bound it together: {disk}{rate}; {tasks}."


def _of_work(outcome: Outcome) -> str:
    """An ingest or a scan in a sentence."""
    other, spilled = outcome.other, ""
    if outcome.bytes_spilled:
        spilled = f" ({format_size(outcome.bytes_spilled)} of them to scratch)"
    moved = f"{format_size(outcome.bytes_read)} read, {format_size(outcome.bytes_written)} written{spilled}"
    parts = [f"The {other['work']} took {format_time(outcome.seconds)}: {moved}"]
    if other["programs"]:
        programs = "1 program" if other["programs"] == 1 else f"{other['programs']:,} programs"
        parts.append(f"{programs} inside took {format_time(other['program_seconds'])} of the time")
    if "error" in other:
        parts.append(f"{other['error']} ended it")
    return f"{'; '.join(parts)}."


def _foreign(run: Run) -> str:
    """The array of another library that most of the bytes were read from; empty where these come from files."""
    stored = [use for use in uses(run.traces) if use.role == "stored" and use.read]
    most = max(stored, key=lambda use: use.read, default=None)
    if most is None or os.sep in most.name or most.name == "sorted runs":
        return ""
    return most.name


@dataclass
class FileUse:
    """Bytes of one file or temporary in one run or several."""

    name: str
    role: str
    #: Bytes that reading each tile once in each program transfers.
    once: int = 0
    #: The same of the program that reads most.
    once_most: int = 0
    read: int = 0
    tiles_again: int = 0
    spilled: int = 0
    written: int = 0
    whole: int = 0

    @property
    def read_again(self) -> int:
        return self.read - self.once

    @property
    def times(self) -> float:
        """How often its tiles were read; those that were there before count as read once."""
        return self.read / max(self.once, self.whole, 1)

    def add(self, strip: ArrayStrip) -> None:
        once = strip.read - strip.read_again
        self.once += once
        self.once_most = max(self.once_most, once)
        self.read += strip.read
        self.tiles_again += strip.tiles_again
        self.spilled += strip.spilled
        self.written += strip.written
        self.whole = max(self.whole, strip.bytes)


def uses(traces: Iterable[ProgramTrace]) -> list[FileUse]:
    """The files and temporaries of programs, in their order."""
    files: dict[str, FileUse] = {}
    for trace in traces:
        for strip in () if trace.occupancy is None else trace.occupancy.arrays:
            name = strip.names[0] if strip.names else ""
            files.setdefault(name, FileUse(name, strip.role)).add(strip)
    return list(files.values())


def searched(outcome: Outcome) -> list[str]:
    """Sentences about a run over a graph: what bound it, and what the cache of pages saved."""
    rows = outcome.other["iterations"]
    read, hits = outcome.bytes_read, sum(row.cache_hits for row in rows)
    rate = f", {format_size(round(read / max(outcome.seconds, 1e-9)))} a second" if read else ""
    sentences = [f"{format_size(read)} read in {format_time(outcome.seconds)}{rate}."]
    if not read:
        sentences.append("The disk did not bind it: all pages were in memory already.")
    if hits:
        sentences.append(f"{hits:,} pages came from the cache and were not read again.")
    return sentences


def read_twice(run: Run) -> list[str]:
    """A sentence for each file that was read more than once, and for temporaries that were spilled."""
    sentences = []
    room = format_size(max(map(_room, run.traces), default=0))
    names = scratch_names(run.traces)
    ordered = sorted(uses(run.traces), key=lambda use: -max(use.read_again, use.spilled))
    for use in ordered:
        if use.role == "stored" and use.read_again and not _is_between(run, use.name):
            sentences.append(
                f"{_read_times(shown(use.name, names), use)}, of which {format_size(use.read_again)} again, since "
                f"tiles left memory {'once' if use.tiles_again == 1 else f'{use.tiles_again:,} times'} before their "
                "next use. "
                f"Keeping all of it takes {format_size(use.whole)}; the plan had {room} for tiles."
            )
        elif use.spilled:
            sentences.append(
                f"{shown(use.name, names)}, {format_size(use.whole)} of intermediate values, did not stay in memory: "
                f"{format_size(use.spilled)} spilled to scratch, {format_size(use.read)} read back."
            )
    if len(sentences) > _SENTENCES_MAX:
        more = f"{len(sentences) - _SENTENCES_MAX:,} arrays more were read again or spilled."
        sentences = [*sentences[:_SENTENCES_MAX], more]
    handed = _handed_on(run)
    if handed:
        sentences.append(f"Stages handed on {format_size(handed)} through scratch, which later ones read.")
    return sentences


def _read_times(name: str, use: FileUse) -> str:
    """How often a file was read, in words; a part of it may have been in memory before."""
    if use.times < 1:
        return f"Of {name}, a part of which was in memory, {format_size(use.read)} were read"
    return f"{name} was read {use.times:.1f} times: {format_size(use.read)}"


def beyond_slices(run: Run) -> list[str]:
    """A sentence for each file of which much more is read than the slices of it that are used."""
    sentences = []
    for use in uses(run.traces):
        needed = run.sliced.get(use.name, 0)
        if needed and use.once - needed >= _BEYOND_MIN and use.once >= _BEYOND_TIMES * needed:
            sentences.append(
                f"{short(use.name)} is read in whole rows or chunks, which hold {use.once / needed:.1f} × what its "
                f"slices need: {format_size(use.once)} for {format_size(needed)}. A copy in chunks of the shape of the "
                "slices would be read less."
            )
    return sentences[:_SENTENCES_MAX]


def _handed_on(run: Run) -> int:
    """Bytes that stages wrote for later ones."""
    return sum(int(trace.forecast["bytes_written"]) for trace in run.traces[:-1])


def _is_between(run: Run, name: str) -> bool:
    """Whether an array is what an earlier stage of the same run has made."""
    made = (path for trace in run.traces[:-1] for path in trace.counted_written())
    return name in made or name == "sorted runs"


def _room(trace: ProgramTrace) -> int:
    """Bytes for tiles that a program had: what the ledger may hand out without its fixed parts."""
    return int(trace.forecast["budget_bytes"]) - int(trace.forecast["fixed_bytes"])


def limit_cost(outcome: Outcome, run: Run) -> list[str]:
    """The cost of the memory limit in bytes, and limits that would cost less; nothing of an ingest or a scan, which is
    not planned."""
    if not run.traces or "work" in outcome.other:
        return []
    moved = outcome.bytes_read + outcome.bytes_written
    again = sum(use.read_again if use.role == "stored" else use.spilled + use.read for use in uses(run.traces))
    handed = _handed_on(run)
    busy = Busy.of(outcome, run)
    if not again and not handed:
        if busy.binding == "computing":
            return [
                "Nothing was read twice and nothing spilled, and computing bound it: more memory would hardly help."
            ]
        return ["Nothing was read twice and nothing spilled within a run: a larger limit would save nothing there."]
    better = [
        point
        for point in run.sweep
        if point.moved is not None and point.exact and run.memory_limit < point.memory_limit
    ]
    if not better:
        share = _share(again + 2 * handed, max(moved, 1))
        return [
            f"Up to {format_size(again + 2 * handed)}, {share} of the run's bytes, are for want of memory under the "
            f"{run.limit_name}; oc.explain(…, sweep=True) tells what other limits move.",
            *_hardly_helps(busy),
        ]
    least = min(point.moved or 0 for point in better)
    lost = max(moved - least, 0)
    if busy.binding == "disk" and busy.rate:
        time = f", {format_time(lost / busy.rate)} at this run's rate"
    elif busy.binding == "computing":
        time = ", most of it while tasks were computed"
    else:
        time = ""
    sentences = [f"The {run.limit_name} cost {format_size(lost)} of {format_size(moved)} moved{time}."]
    named = _named_limits(moved, least, better)
    sentences += [
        f"A limit of {format_size(point.memory_limit)} would move {format_size(point.moved or 0)}, "
        f"{_share(moved - (point.moved or 0), moved)} less."
        for point in named
    ]
    return sentences + _hardly_helps(busy)


def _hardly_helps(busy: Busy) -> list[str]:
    """A sentence for runs that computing bound, whose threads hardly ever waited."""
    waited = max(busy.total * busy.threads - busy.tasks, 0.0)
    if busy.binding != "computing" or waited > _WAITED * busy.total * busy.threads:
        return []
    return [f"More memory would hardly help: threads waited {_share(waited, busy.total * busy.threads)} of their time."]


def _named_limits(moved: int, least: int, better: Sequence[SweepPoint]) -> list[SweepPoint]:
    """The smallest limit that saves much, and the smallest that saves nearly all there is to save."""
    sized = sorted(better, key=lambda point: point.memory_limit)
    saving = [point for point in sized if (point.moved or 0) <= (1 - _SAVING) * moved]
    enough = [point for point in saving if (point.moved or 0) <= 1.02 * least]
    return list(dict.fromkeys((*saving[:1], *enough[:1])))


def forecast_held(outcome: Outcome) -> str:
    """How the forecast compares with the counters, in a sentence."""
    stages = outcome.other.get("stages", ())
    if not stages:
        return ""
    names = ("bytes read", "bytes written", "peak of memory")
    for number, (forecast, counted) in enumerate(stages, 1):
        for name, planned, seen in zip(names, forecast, counted, strict=True):
            if planned != seen:
                stage = f"stage {number}: " if len(stages) > 1 else ""
                return f"Forecast and outcome differ, {stage}{name} {planned:,} forecast, {seen:,} counted."
    return "Bytes read, bytes written and peak of memory were as forecast, to the byte."


def _share(part: float, whole: float) -> str:
    return f"{100 * part / max(whole, 1e-12):.0f} %"


__all__ = [
    "Busy",
    "FileUse",
    "beyond_slices",
    "bound",
    "forecast_held",
    "limit_cost",
    "read_twice",
    "searched",
    "uses",
]
