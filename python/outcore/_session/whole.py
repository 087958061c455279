"""Runs that are more than a program: ingests and scans, each with the programs inside of it as one run."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import islice
from typing import TypeVar

from outcore import _core
from outcore._base.types import JSONObject
from outcore._session.accounts import Share
from outcore._session.caller import Call, calling
from outcore._session.record import Failure, Outcome, RecordedSession, Recorder, recorded_by, recorder, recorders, share
from outcore._session.session import Session, current
from outcore._session.trace import ProgramTrace, Run

# Text of the traces of its programs that a run keeps; those of the longest programs stay.
_TRACES_BYTES_MAX = 8 << 20
_T = TypeVar("_T")


class WholeRun(Share):
    """A run that a profile has once, whatever programs are inside: the recorder of these. The bytes of the run are
    theirs, and those that the session moved between them.

    The run may pause, as a scan does while the caller works on the entries that were read.
    """

    def __init__(self, name: str, session: Session, outer: Recorder) -> None:
        super().__init__()
        self.detail = outer.detail
        self._name, self._session, self._outer = name, session, outer
        self._call = calling()
        self._lock = threading.Lock()
        #: Seconds before the last pause, and when that was over.
        self._seconds, self._began = 0.0, 0.0
        self._programs, self._program_seconds = 0, 0.0
        self._peak_bytes, self._spilled_bytes = 0, 0
        self._made_bytes: int | None = None
        self._error = ""
        self._traces: list[ProgramTrace] = []
        self._sliced: dict[str, int] = {}

    @property
    def share(self) -> Share | None:
        """This run, of which the programs inside are parts; after its end what the recorder around says."""
        return self._outer.share if self.is_over else self

    def is_of(self, session: Session) -> bool:
        """Whether the run has the bytes of a session."""
        return self._session is session

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """A stretch of the run, before a pause or the end. Another run around that is not told of this one has none of
        its bytes."""
        account, around = self._session.account, self._around()
        before, self._began = self._session.counters()["peak_bytes"], time.perf_counter()
        is_around = around is not None and account.close(around)
        account.open(self)
        try:
            with recorded_by(self):
                yield
        except BaseException as error:
            self._error = type(error).__name__
            raise
        finally:
            account.close(self)
            if around is not None and is_around:
                account.open(around)
            self._seconds += time.perf_counter() - self._began
            after = self._session.counters()
            # The counter is of more than this run where it has not changed.
            peak = after["peak_bytes"] if after["peak_bytes"] != before else after["reserved_bytes"]
            self._peak_bytes = max(self._peak_bytes, peak)

    def _around(self) -> WholeRun | None:
        """The innermost run around in the same session."""
        runs = (each for each in reversed(recorders()) if isinstance(each, WholeRun) and each is not self)
        return next((each for each in runs if each.is_of(self._session)), None)

    def end(self) -> None:
        """No stretch follows."""
        self._session.account.end(self)

    def made(self, bytes: int) -> None:
        """So many bytes of those written are the result; all others went to scratch."""
        self._made_bytes = (self._made_bytes or 0) + bytes

    def add(self, outcome: Outcome, run: Run | None) -> None:
        """Takes a program inside that has ended."""
        if self.is_over:
            self._outer.add(outcome, run)
            return
        if run is not None:
            self.draw(outcome, run)
        with self._lock:
            self._programs += 1
            self._program_seconds += outcome.seconds
            self._peak_bytes = max(self._peak_bytes, outcome.peak_bytes)
            self._spilled_bytes += outcome.bytes_spilled
            if run is not None:
                self._add_traces(outcome, run)

    def _add_traces(self, outcome: Outcome, run: Run) -> None:
        begin = max(self._seconds + time.perf_counter() - self._began - outcome.seconds, 0.0)
        self._traces += [replace(trace, begin=trace.begin + begin) for trace in run.traces]
        self._sliced |= run.sliced
        while sum(len(trace.text) for trace in self._traces) > _TRACES_BYTES_MAX and len(self._traces) > 1:
            self._traces.remove(min(self._traces, key=lambda trace: trace.seconds))

    def draw(self, outcome: Outcome, run: Run) -> None:
        """Draws a program in the timeline of the recorder around."""
        self._outer.draw(outcome, run)

    def fail(self, failure: Failure) -> None:
        """Leaves out a program that an error ended: the error is that of the run, or the run went on without it."""
        if self.is_over:
            self._outer.fail(failure)

    def limits(self, program: _core.Program, call: Call, options: Mapping[str, object]) -> list[int]:
        """None: a part of a run is not compared."""
        return []

    def join(self, session: RecordedSession) -> None:
        """A session that has been made inside."""
        self._outer.join(session)

    def complete(self) -> None:
        """Tells the recorder around."""
        written = self.moved.written
        spilled = self._spilled_bytes if self._made_bytes is None else max(written - self._made_bytes, 0)
        other: JSONObject = {"work": self._name, "programs": self._programs, "program_seconds": self._program_seconds}
        if self._error:
            other["error"] = self._error
        outcome = Outcome(
            bytes_read=self.moved.read,
            bytes_written=written,
            bytes_spilled=min(spilled, written),
            peak_bytes=self._peak_bytes,
            seconds=self._seconds,
            other=other,
        )
        run = Run.of(self._call, self._session.options, {}, (), self._sliced)
        around = self._outer.share
        if around is not None:  # of another session, which counts for itself
            around.take(self.moved)
        self._outer.add(outcome, replace(run, traces=tuple(self._traces)))


def under_way() -> WholeRun | None:
    """The run that the call is a part of, if there is one."""
    around = share()
    return around if isinstance(around, WholeRun) else None


@contextmanager
def whole_run(name: str) -> Iterator[None]:
    """All that the session reads and writes in the block is one run of a profile, of that name, and the programs inside
    are parts of it. Within such a run of the same session the block is a part of that."""
    run = _paused_run(name)
    if run is None:
        yield
        return
    try:
        with run.going_on():
            yield
    finally:
        run.end()


def whole_scan(name: str, parts: Generator[_T, None, None]) -> Iterator[_T]:
    """As `whole_run`, over the parts that a scan reads: the run pauses while the caller works on one of them."""
    with closing(parts):
        run = _paused_run(name)
        if run is None:
            yield from parts
            return
        try:
            while True:
                with run.going_on():
                    part = list(islice(parts, 1))
                if not part:
                    return
                yield part.pop()  # to the caller alone, who may let go of it
        finally:
            run.end()


def _paused_run(name: str) -> WholeRun | None:
    """A run that has yet to go on; None where nobody records, or where it is a part of one."""
    outer, session, around = recorder(), current(), under_way()
    if outer is None or (around is not None and around.is_of(session)):
        return None
    return WholeRun(name, session, outer)


__all__ = ["WholeRun", "under_way", "whole_run", "whole_scan"]
