"""`profile()`: what every run inside a block did, as numbers, as a page and as a timeline (Chrome trace JSON)."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from outcore import _core
from outcore._base.files import check_writable, write_whole
from outcore._base.sizes import format_size
from outcore._base.types import JSONObject
from outcore._session.caller import Call, calling
from outcore._session.record import Failure, Iterations, Outcome, RecordedSession, recorded_by, sessions
from outcore._session.trace import Run
from outcore._show.comparison import ProfileComparison
from outcore._show.events import EventFile, parsed
from outcore._show.explanation import Explanation
from outcore._show.page import FileReads, RunGroup, content, page, run_over_graph
from outcore._show.verdict import uses
from outcore.errors import ArgumentError

# Seconds of work from which a disk of a volume is judged by.
_BUSY_MIN = 0.05
# Bytes moved by a run from which its files are added up, and text of all traces that are kept.
_FILES_MIN, _TRACES_BYTES_MAX = 1 << 20, 8 << 20
# Programs that are planned under other limits: bytes moved beyond what every order moves, tasks, lines of the user's,
# and bytes and operations a second, by which the run's time is judged that planning is held against.
_BEYOND_MIN, _TASKS_MAX, _COMPARED_MAX, _RATE_MAX, _FLOPS_MAX = 64 << 20, 20_000, 8, 1e9, 1e11
_FACTORS = (1.5, 2.0, 3.0, 4.0, 8.0, 64.0)
# Held while a run is added: several threads may run within one block.
_adding = threading.RLock()
Disks = dict[tuple[str, str], dict[str, float]]


def _renew_lock() -> None:
    """In a child of a fork, which may have come while another thread held it."""
    global _adding
    _adding = threading.RLock()


os.register_at_fork(after_in_child=_renew_lock)


def _worked(session: RecordedSession) -> Disks:
    """The counters of the disks of volumes in a session, by volume and disk."""
    rows = session._core.disks()
    return {(row["volume"], row["disk"]): {name: row[name] for name in _COUNTED} for row in rows}


_COUNTED = ("requests", "bytes_read", "bytes_written", "busy_seconds", "errors")


_BAR = 40
_LINE = "{:>9} {:>8} {:>10} {:>10} {:>8} {:>8}  {}"


class Profile:
    """The runs of one block: `outcomes` one per run, and their sums. Made by `profile`.

    Of a run over a graph, `other["iterations"]` has `Iterations`, and `other["bytes_beside_iterations"]` the part of
    its `bytes_read` that was read beside them, as degrees are. A run over a graph that raised is one of the runs, with
    the name of the exception as `other["error"]`. One over arrays that raised is one of `failed`: its call, the error,
    the seconds until then, and the bytes and tasks that were done; so is one whose plan was refused (`is_refused`).

    An ingest of a sparse matrix or a graph is one run, and so is a scan of one: `other["work"]` is its name, as "ingest
    of a graph", `other["programs"]` how many programs it ran, which are no runs beside it, and `other["error"]` the
    name of the exception that ended it, if one did. Its bytes are those that the session counted meanwhile but those of
    runs of other threads; scans that several threads make at a time in one session share what it counted.

    >>> import outcore as oc
    >>> with oc.profile() as seen:
    ...     total = oc.arange(10).sum().item()
    >>> seen.to_dict()["runs"]
    1
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        # Of the process that entered the block: a forked child that leaves it writes nothing.
        self._owner = os.getpid()
        self.outcomes: list[Outcome] = []
        self.started = time.perf_counter()
        self._events = None if path is None or self._is_page else EventFile(path)
        self.detail: str | None = "bins" if self._events is None else "events"
        self._groups: dict[str, RunGroup] = {}
        self._files: dict[str, FileReads] = {}
        self._compared: set[str] = set()
        #: Runs over arrays that raised, the last hundred of these.
        self.failed: list[Failure] = []
        self._traced_bytes = 0
        # Programs that are parts of runs, each of which has a process of its own in the timeline.
        self._parts_drawn = 0
        # Sessions of the block, and what their disks had done before it.
        self._before: list[tuple[RecordedSession, Disks]] = [(session, _worked(session)) for session in sessions()]
        self._disks: Disks | None = None

    @property
    def share(self) -> None:
        """None: each run stands by itself."""

    @property
    def disks(self) -> list[JSONObject]:
        """The counters of each disk of a volume: requests, bytes, seconds at work, errors.

        It is `slow` where it moved less than half as many bytes a second as the median of the others of its volume.
        """
        rates = self._since() if self._disks is None else self._disks
        speeds: dict[tuple[str, str], float] = {
            key: (row["bytes_read"] + row["bytes_written"]) / row["busy_seconds"]
            for key, row in rates.items()
            if row["busy_seconds"] >= _BUSY_MIN
        }
        rows = []
        for key in sorted(rates):
            others = [speed for other, speed in speeds.items() if other[0] == key[0] and other != key]
            slow = key in speeds and bool(others) and speeds[key] < float(np.median(others)) / 2
            rows.append({"volume": key[0], "disk": key[1], **rates[key], "slow": slow})
        return rows

    @property
    def slow_disks(self) -> list[str]:
        """Directories of volumes whose disks are slow."""
        return [row["disk"] for row in self.disks if row["slow"]]

    def _since(self) -> Disks:
        total: Disks = {}
        for session, before in self._before:
            for key, row in _worked(session).items():
                first = before.get(key, dict.fromkeys(_COUNTED, 0))
                sums = total.setdefault(key, dict.fromkeys(_COUNTED, 0))
                for name in _COUNTED:
                    sums[name] += row[name] - first[name]
        return {key: row for key, row in total.items() if row["requests"] or row["errors"]}

    def _end(self) -> None:
        self._disks = self._since()
        self._before = []

    @property
    def bytes_read(self) -> int:
        """Bytes read from sources and scratch by all runs."""
        return sum(outcome.bytes_read for outcome in self.outcomes)

    @property
    def bytes_written(self) -> int:
        """Bytes written to targets and scratch by all runs."""
        return sum(outcome.bytes_written for outcome in self.outcomes)

    @property
    def bytes_spilled(self) -> int:
        """The part of `bytes_written` that went to scratch."""
        return sum(outcome.bytes_spilled for outcome in self.outcomes)

    @property
    def peak_bytes(self) -> int:
        """The most any run had reserved at once."""
        return max((outcome.peak_bytes for outcome in self.outcomes), default=0)

    @property
    def seconds(self) -> float:
        """Wall time of all runs."""
        return sum(outcome.seconds for outcome in self.outcomes)

    def to_dict(self) -> JSONObject:
        """The sums, for JSON."""
        names = ("bytes_read", "bytes_written", "bytes_spilled", "peak_bytes", "seconds")
        sums = {"runs": len(self.outcomes), **{name: getattr(self, name) for name in names}}
        return {**sums, "disks": self.disks} if self.disks else sums

    def iterations(self) -> str:
        """A table of what the iterations of every run over a graph did: active vertices with a bar, lists that were
        asked for, bytes read, pages that were in the cache. Of long runs a row is several iterations. A run that raised
        is there with what it did until then, and says by what it was ended. No I/O.

        >>> import outcore as oc, tempfile, pathlib
        >>> G = oc.graph.from_arrays([0, 1], [1, 2], pathlib.Path(tempfile.mkdtemp()) / "g.ocg")
        >>> with oc.profile() as seen:
        ...     levels = oc.graph.bfs(G, 0)
        >>> print("\\n".join(line[:18] for line in seen.iterations().splitlines()))
        bfs: 3 iterations
        iteration   active
                0        1
                1        1
                2        1
        """
        return "\n".join(_table(outcome) for outcome in self.outcomes if "graph" in outcome.other)

    def page(self) -> str:
        """The counters of the runs, as the text of an HTML file that needs nothing else: sums, a row for each run,
        charts over the iterations of every run over a graph, disks of volumes. Notebooks show the same. No I/O.

        >>> import outcore as oc
        >>> with oc.profile() as seen:
        ...     total = oc.arange(10).sum().item()
        >>> seen.page().startswith("<!DOCTYPE html>")
        True
        """
        return page(self)

    def _repr_html_(self) -> str:
        return content(self)

    @property
    def _is_page(self) -> bool:
        """Whether a page is to be written, for which no timeline is kept."""
        return self.path is not None and self.path.name.lower().endswith(".html")

    def _write(self) -> None:
        """The file that the path names, if there is one, by the process that entered the block."""
        if self.path is None or os.getpid() != self._owner:
            return
        if self._events is None:
            # Names of files need not be text.
            write_whole(self.path, (self.page().encode("utf-8", errors="replace"),))
            return
        try:
            write_whole(self.path, self._events.text())
        finally:
            self._events.close()

    def __repr__(self) -> str:
        return f"Profile({', '.join(f'{name}={value}' for name, value in self.to_dict().items())})"

    def fail(self, failure: Failure) -> None:
        """Notes a run that an error ended."""
        with _adding:
            self.failed = [*self.failed[-99:], failure]

    def limits(self, program: _core.Program, call: Call, options: Mapping[str, object]) -> list[int]:
        """Memory limits to plan a program under before it runs: once for each line, of programs that move much more
        than any order must, where planning is little beside that."""
        limit, pool = options["memory_limit"], options["pool_limit"]
        if pool is not None or not isinstance(limit, int):
            return []  # another limit of the process would change nothing
        if call.place in self._compared or len(self._compared) >= _COMPARED_MAX:
            return []
        beyond, tasks, seconds = program.beyond_once()
        if beyond < _BEYOND_MIN or tasks > _TASKS_MAX:
            return []
        expected = max(beyond / _RATE_MAX, Explanation.of(program).flops / _FLOPS_MAX)
        if seconds * len(_FACTORS) > expected:
            return []
        self._compared.add(call.place)
        return [int(limit * factor) for factor in _FACTORS]

    @property
    def groups(self) -> list[RunGroup]:
        """Runs by the line of the user's that they come from, in the order in which these were first met."""
        return list(self._groups.values())

    @property
    def files(self) -> Mapping[str, FileReads]:
        """Reads of each file by all runs, where these moved 1 MiB and more."""
        with _adding:
            return dict(self._files)

    def add(self, outcome: Outcome, run: Run | None = None) -> None:
        """Takes a run that has ended, in any thread."""
        with _adding:
            self._add(outcome, run)

    def draw(self, outcome: Outcome, run: Run) -> None:
        """Draws a program that is a part of a run in the timeline, in any thread."""
        if run.events:
            with _adding:
                self._add_events(outcome, run)
                self._parts_drawn += 1

    def _process(self) -> int:
        """The number of the next process in the timeline."""
        return len(self.outcomes) + self._parts_drawn + 1

    def _add(self, outcome: Outcome, run: Run | None) -> None:
        self._add_iterations(outcome)
        self._add_work(outcome, run)
        if run is not None and run.events:
            self._add_events(outcome, run)
        self.outcomes.append(outcome)
        self._group(outcome, run)
        moved = outcome.bytes_read + outcome.bytes_written
        for use in () if run is None or moved < _FILES_MIN else uses(run.traces):
            if use.role == "stored" and use.read:
                read, runs, once = self._files.get(use.name, FileReads(0, 0, 0))
                whole = max(once, use.once_most, min(use.whole, use.read))
                self._files[use.name] = FileReads(read + use.read, runs + 1, whole)
        for trace in () if run is None else run.traces:
            trace.forget()

    def _group(self, outcome: Outcome, run: Run | None) -> None:
        """Adds a run to those of its line; the longest of these keeps its trace, and of all lines the longest."""
        name, text = _run_name(outcome, run)
        group = self._groups.get(name)
        if group is None:
            self._groups[name] = group = RunGroup(name, text, 0, 0, 0, 0, 0, 0.0, outcome, None)
        is_longest = group.number == 0 or outcome.seconds > group.longest.seconds
        kept = _kept(run) if is_longest else group.run
        self._groups[name] = RunGroup(
            *(name, text or group.text, group.number + 1),
            *(group.bytes_read + outcome.bytes_read, group.bytes_written + outcome.bytes_written),
            group.bytes_spilled + outcome.bytes_spilled,
            *(max(group.peak_bytes, outcome.peak_bytes), group.seconds + outcome.seconds),
            *(outcome if is_longest else group.longest, kept),
        )
        if is_longest:
            self._traced_bytes += _bytes(kept) - _bytes(group.run)
            self._bound_traces()

    def _bound_traces(self) -> None:
        """Lets go of the traces of the shortest runs, where all together are too large."""
        while self._traced_bytes > _TRACES_BYTES_MAX:
            traced = [group for group in self._groups.values() if _bytes(group.run)]
            if len(traced) < 2:
                return
            least = min(traced, key=lambda group: group.longest.seconds)
            self._groups[least.name] = least._replace(run=None)
            self._traced_bytes -= _bytes(least.run)

    def _add_events(self, outcome: Outcome, run: Run) -> None:
        """The events of a run, as a process of its own in the timeline."""
        if self._events is None:
            return
        offset = (time.perf_counter() - self.started - outcome.seconds) * 1e6
        number = self._process()
        self._events.add([{"name": "process_name", "ph": "M", "pid": number, "args": {"name": str(run.call)}}])
        self._events.add({**event, "pid": number, "ts": event["ts"] + offset} for event in parsed(run.events))

    def _add_work(self, outcome: Outcome, run: Run | None) -> None:
        """An ingest or a scan as a bar in the timeline."""
        if self._events is None or run is None or "work" not in outcome.other:
            return
        number, name = self._process(), outcome.other["work"]
        at = (time.perf_counter() - self.started - outcome.seconds) * 1e6
        figures = {"bytes read": outcome.bytes_read, "bytes written": outcome.bytes_written}
        bar = {"name": name, "ph": "X", "pid": number, "tid": 0, "ts": at, "dur": outcome.seconds * 1e6}
        title = {"name": "process_name", "ph": "M", "pid": number, "args": {"name": str(run.call)}}
        self._events.add([title, {**bar, "args": figures}])

    def join(self, session: RecordedSession) -> None:
        """Takes a session that has been made: what its disks do is counted."""
        self._before.append((session, {}))

    def _add_iterations(self, outcome: Outcome) -> None:
        """Of a run over a graph that has just ended: a bar for each row, and lines of what it did."""
        if self._events is None or "graph" not in outcome.other:
            return
        run = self._process()
        at = time.perf_counter() - self.started - outcome.seconds
        events = list[JSONObject]()
        for row in outcome.other["iterations"]:
            place = {"pid": run, "tid": 0, "ts": at * 1e6}
            figures = {"active": row.active, "lists": row.lists, "bytes read": row.bytes_read, "cached": row.cache_hits}
            name = f"{outcome.other['graph']} {row.first}"
            events.append({"name": name, "ph": "X", "dur": row.seconds * 1e6, "args": figures, **place})
            for what, value in figures.items():
                events.append({"name": what, "ph": "C", "args": {what: value / row.number}, **place})
            at += row.seconds
        self._events.add(events)


def _bytes(run: Run | None) -> int:
    return 0 if run is None else run.bytes


def _kept(run: Run | None) -> Run | None:
    """A run without its events, which are in the timeline."""
    return None if run is None else replace(run, events="")


def _run_name(outcome: Outcome, run: Run | None) -> tuple[str, str]:
    """The call of a run with its place, and the line of text there."""
    if run is not None:
        call = run.call
        name = outcome.other.get("work", call.function)
        return str(call._replace(function=name)), call.text
    call = calling()
    name = outcome.other.get("graph", call.function)
    return (f"{name} ({call.place})" if call.place else str(name)), call.text


def _table(outcome: Outcome) -> str:
    """Of a run."""
    rows: list[Iterations] = outcome.other["iterations"]
    most = max((row.active / row.number for row in rows), default=0.0)
    lines = [
        run_over_graph(outcome),
        _LINE.format("iteration", "active", "lists", "read", "cached", "seconds", ""),
    ]
    for row in rows:
        bar = "█" * math.ceil(_BAR * row.active / row.number / max(most, 1.0))
        number = str(row.first) if row.number == 1 else f"{row.first}-{row.first + row.number - 1}"
        read, seconds = format_size(row.bytes_read), f"{row.seconds:.3f}"
        active, lists, hits = (f"{value:,}" for value in (row.active, row.lists, row.cache_hits))
        lines.append(_LINE.format(number, active, lists, read, hits, seconds, bar).rstrip())
    return "\n".join(lines)


def _checked(path: Path) -> Path:
    """The path, where a file can be written there. Raises OSError."""
    try:
        check_writable(path)
    except OSError as error:
        error.strerror = f"profile: {error.strerror}"
        raise
    return path


class Profiler:
    """Counts what every run in the block does; with a path, also writes it there when the block ends, or raises.

    `with oc.profile("run.html")` writes the page (see `Profile.page`): what bound each run, what was read twice and
    why, what the memory limit cost, memory and threads over time, and when which array was in memory. Any other path
    gets the timeline of the runs as Chrome trace JSON, of each program its first 262,144 tasks and transfers: open that
    in `chrome://tracing` or ui.perfetto.dev, where each run is a process of its own. `oc.profile.compare(a, b)` sets
    two profiles side by side. I/O: none of its own but that file. Raises OSError before the block runs where the file
    could not be written: FileNotFoundError without its folder, IsADirectoryError, PermissionError; after the block
    where its disk is full, say. An error of the block stays, with a note of that.

    A program that moves much more than any order must is planned under six larger limits before it runs, once for each
    line of the block, so that the page can say what another limit would do.

    >>> import outcore as oc
    >>> with oc.profile() as seen:
    ...     total = oc.arange(10).sum().item()
    >>> len(seen.outcomes), seen.bytes_read
    (1, 0)
    """

    @contextmanager
    def __call__(self, path: str | os.PathLike[str] | None = None) -> Iterator[Profile]:
        """The block; see the class."""
        profile = Profile(None if path is None else _checked(Path(path)))
        try:
            with recorded_by(profile):
                yield profile
        except BaseException as error:
            profile._end()
            try:
                profile._write()
            except Exception as unwritten:
                error.add_note(f"profile: {profile.path} could not be written: {unwritten}")
            raise
        else:
            profile._end()
            profile._write()

    def compare(self, before: Profile, after: Profile) -> ProfileComparison:
        """Two profiles side by side, as a table, and in notebooks and on its `page()` with charts. No I/O.

        >>> import outcore as oc
        >>> with oc.profile() as first:
        ...     total = oc.arange(10).sum().item()
        >>> with oc.profile() as second:
        ...     total = oc.arange(10).sum().item()
        >>> oc.profile.compare(first, second).after.bytes_read
        0
        """
        for profile in (before, after):
            if not isinstance(profile, Profile):
                raise ArgumentError(f"profile.compare: takes two profiles, not {type(profile).__name__}")
        return ProfileComparison(before, after)

    def __repr__(self) -> str:
        return "outcore.profile"


profile = Profiler()
