"""Traces of runs: what the threads did over time, and which arrays were in memory, as the engine tells them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from outcore import _core
from outcore._base.sizes import format_size
from outcore._base.types import JSONObject
from outcore._session.caller import Call
from outcore.errors import OutcoreError


class SweepPoint(NamedTuple):
    """The forecast of a computation under a memory limit. Bytes are None where it does not fit: it needs `need` bytes
    beside the process then."""

    memory_limit: int
    bytes_read: int | None
    bytes_written: int | None
    bytes_spilled: int | None
    peak_bytes: int | None
    exact: bool
    need: int

    @property
    def moved(self) -> int | None:
        """Bytes read and written."""
        return None if self.bytes_read is None else self.bytes_read + (self.bytes_written or 0)

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """Bytes read, written, spilled, and most at once; 0 where it does not fit."""
        return self.bytes_read or 0, self.bytes_written or 0, self.bytes_spilled or 0, self.peak_bytes or 0


def points(rows: Sequence[tuple[int, tuple[int, int, int, int, bool] | None, int]]) -> tuple[SweepPoint, ...]:
    """The points of a sweep, as the planner gives them."""
    return tuple(_point(*row) for row in rows)


def _point(limit: int, figures: tuple[int, int, int, int, bool] | None, need: int) -> SweepPoint:
    if figures is None:
        return SweepPoint(limit, None, None, None, None, False, need)
    read, written, spilled, peak, exact = figures
    return SweepPoint(limit, read, written, spilled, peak, exact, need)


def compared(program: _core.Program, limits: list[int]) -> tuple[SweepPoint, ...]:
    """The same program under other limits; nothing where there are none, or where it cannot be planned once more: the
    run itself says why."""
    try:
        return points(program.sweep(limits)) if limits else ()
    except OutcoreError:
        return ()


class ArrayStrip(NamedTuple):
    """An array over the instructions of a program: bytes, and by column its share in memory and what happens to it."""

    names: tuple[str, ...]
    role: str
    shape: tuple[int, ...]
    dtype: str
    tile: tuple[int, ...]
    tiles: int
    bytes: int
    read: int
    read_again: int
    tiles_again: int
    written: int
    spilled: int
    peak: int
    #: By column: percent of its bytes that are resident, and bits of `READ`, `READ_AGAIN`, `SPILLED`, `WRITTEN`.
    resident: tuple[int, ...]
    happens: tuple[int, ...]
    number: int

    @classmethod
    def of(cls, content: JSONObject) -> ArrayStrip:
        values = (content["array" if name == "number" else name] for name in cls._fields)
        return cls._make(tuple(value) if isinstance(value, list) else value for value in values)


#: Bits of `ArrayStrip.happens`.
READ, READ_AGAIN, SPILLED, WRITTEN, CREATED = 1, 2, 4, 8, 16


@dataclass(frozen=True)
class Occupancy:
    """Memory over the instructions of a program, in columns: by use, and by array."""

    columns: int
    #: By column, where it is fullest: bytes of kept tiles, of tiles that tasks use, of partial results.
    memory: tuple[tuple[int, int, int], ...]
    #: By pass: its first column and the one after its last; None where it has no task.
    passes: tuple[tuple[int, int] | None, ...]
    arrays: tuple[ArrayStrip, ...]
    #: Pass, number of an array, bytes of its tiles that tasks take, and that they make.
    flows: tuple[tuple[int, int, int, int], ...]
    arrays_left_out: int
    results_bytes: int
    unseen_bytes: int

    @classmethod
    def of(cls, content: JSONObject) -> Occupancy:
        return cls(
            columns=content["columns"],
            memory=tuple((kept, passing, partial) for kept, passing, partial in content["memory"]),
            passes=tuple(None if span is None else (span[0], span[1]) for span in content["passes"]),
            arrays=tuple(map(ArrayStrip.of, content["arrays"])),
            flows=tuple((number, array, taken, made) for number, array, taken, made in content["flows"]),
            arrays_left_out=content["arrays_left_out"],
            results_bytes=content["results_bytes"],
            unseen_bytes=content["unseen_bytes"],
        )


class SlowWork(NamedTuple):
    """A task or a transfer of a program: when it began, in seconds after the program; the thread of its kind, from 0;
    the place of the task among those of its pass, or of the first tile of a transfer among those of its array."""

    kind: str
    subject: int
    name: str
    start: float
    seconds: float
    lane: int
    at: Sequence[int]


@dataclass(frozen=True)
class ProgramTrace:
    """One program that ran, as the engine told it. `begin` and `seconds` count from the beginning of its run."""

    label: str
    begin: float
    seconds: float
    text: str = field(repr=False)

    def forget(self) -> None:
        """Lets go of all but the text, which has it all."""
        for name in ("_content", "occupancy"):
            self.__dict__.pop(name, None)

    @cached_property
    def _content(self) -> JSONObject:
        content: JSONObject = json.loads(self.text)
        return content

    @property
    def forecast(self) -> JSONObject:
        """The forecast of the program, for `Explanation`."""
        program: JSONObject = self._content["program"]
        return program

    @cached_property
    def occupancy(self) -> Occupancy | None:
        content = self._content["occupancy"]
        return None if content is None else Occupancy.of(content)

    def strip(self, number: int) -> ArrayStrip | None:
        """The array of a number, where the trace has it."""
        arrays = () if self.occupancy is None else self.occupancy.arrays
        return next((strip for strip in arrays if strip.number == number), None)

    @property
    def bin_seconds(self) -> float:
        return float(self._content["bin_seconds"])

    def lanes(self, kind: str) -> list[list[int]]:
        """Of each thread that did such work, percent of each bin in which it did."""
        lanes: list[list[int]] = self._content["lanes"][kind]
        return lanes

    @property
    def transfer_seconds(self) -> float:
        """Time in which some byte was on its way from or to a disk."""
        return float(self._content["transfer_seconds"])

    @property
    def compute_seconds(self) -> float:
        """Time in which some task was computed."""
        return float(self._content["compute_seconds"])

    @property
    def both_seconds(self) -> float:
        return float(self._content["both_seconds"])

    @property
    def touch_seconds(self) -> float:
        """Time in which memory was touched first and nothing else went on."""
        return float(self._content["touch_seconds"])

    @property
    def pass_seconds(self) -> list[float]:
        """Time of all tasks of each pass together, in all threads."""
        seconds: list[float] = self._content["pass_seconds"]
        return seconds

    @property
    def issued(self) -> list[float]:
        """When the first instruction of each column was issued."""
        issued: list[float] = self._content["issued"]
        return issued

    @property
    def samples(self) -> list[tuple[float, int]]:
        """Seconds, and resident bytes of the process."""
        return [(at, size) for at, size in self._content["samples"]]

    @property
    def slowest(self) -> list[SlowWork]:
        return [SlowWork(*row) for row in self._content["slowest"]]

    def counted_read(self) -> dict[int, int]:
        """Bytes that were counted while arrays were read, by number of the array."""
        return dict(self._content["read"])

    def counted_written(self) -> dict[str, int]:
        """Bytes that were counted while outputs were written, by their names."""
        return dict(self._content["written"])

    @property
    def computing(self) -> float:
        """Time of all tasks together, in all threads."""
        return sum(self.pass_seconds)


@dataclass(frozen=True)
class Run:
    """The programs of one call, with its traces, and its forecast under other limits where that was asked for."""

    call: Call
    memory_limit: int
    #: Most bytes that the session may hand out, where that is set.
    pool_limit: int | None
    threads: int
    traces: tuple[ProgramTrace, ...]
    sweep: tuple[SweepPoint, ...] = ()
    #: By path, bytes of the slices of files that are not used whole.
    sliced: Mapping[str, int] = field(default_factory=dict)
    #: Events of all programs, in Chrome's trace format; empty where they were not kept.
    events: str = ""

    @classmethod
    def of(
        cls,
        call: Call,
        options: Mapping[str, object],
        counters: JSONObject,
        sweep: Sequence[SweepPoint],
        sliced: Mapping[str, int],
    ) -> Run:
        limit, pool, threads = options["memory_limit"], options.get("pool_limit"), options.get("threads")
        return cls(
            call=call,
            memory_limit=limit if isinstance(limit, int) else 0,
            pool_limit=pool if isinstance(pool, int) else None,
            threads=threads if isinstance(threads, int) else len(os.sched_getaffinity(0)),
            traces=tuple(ProgramTrace(*row) for row in counters.get("traces", ())),
            sweep=tuple(sweep),
            sliced=sliced,
            events=counters.get("events", "").removeprefix("[]"),
        )

    @property
    def ceiling(self) -> int:
        """Most bytes that the process may take by the limit that binds: its own, or the session's beside it."""
        if self.pool_limit is None or not self.traces:
            return self.memory_limit
        forecast = self.traces[0].forecast
        return min(self.memory_limit, int(forecast["overhead_bytes"]) + self.pool_limit)

    @property
    def limit_name(self) -> str:
        """The limit that binds, in words."""
        if self.pool_limit is not None and self.ceiling < self.memory_limit:
            return f"pool limit of {format_size(self.pool_limit)}"
        return f"limit of {format_size(self.memory_limit)}"

    @property
    def bytes(self) -> int:
        """Memory that its text takes."""
        return sum(len(trace.text) for trace in self.traces) + len(self.events)


__all__ = [
    "CREATED",
    "READ",
    "READ_AGAIN",
    "SPILLED",
    "WRITTEN",
    "ArrayStrip",
    "Occupancy",
    "ProgramTrace",
    "Run",
    "SlowWork",
    "SweepPoint",
    "compared",
    "points",
]
