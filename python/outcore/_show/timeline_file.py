"""Timelines in Chrome's trace format, on disk as they grow."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from outcore._base.types import JSONObject
from outcore._session.record import Outcome
from outcore._session.trace import Run

_PART = 1 << 20  # letters that are copied at a time


class Timeline:
    """The events of runs, in a file without a name beside the one that they are written to in the end."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._started = time.perf_counter()
        self._spool: IO[str] | None = None
        self._count = 0
        #: The error of the disk, which is raised at the end of the profile and not by a run.
        self._error: OSError | None = None

    def add(self, number: int, outcome: Outcome, run: Run | None) -> None:
        """Takes the events of a run that has just ended, as a process of its own."""
        began = (time.perf_counter() - self._started - outcome.seconds) * 1e6
        try:
            for event in _iterations(outcome):
                self._put({**event, "pid": number, "ts": event["ts"] + began})
            if run is not None and run.events:
                self._put({"name": "process_name", "ph": "M", "pid": number, "args": {"name": str(run.call)}})
                for event in _each(run.events):
                    self._put({**event, "pid": number, "ts": event["ts"] + began})
        except OSError as error:
            self._error = error

    def _put(self, event: JSONObject) -> None:
        if self._spool is None:
            import tempfile  # and with it all compressors, which imports of outcore do without

            folder = self._path.absolute().parent
            self._spool = tempfile.TemporaryFile("w+", encoding="utf-8", dir=folder)  # noqa: SIM115
        self._spool.write((",\n" if self._count else "") + json.dumps(event))
        self._count += 1

    def write(self) -> None:
        """The whole timeline, under its name."""
        spool, self._spool = self._spool, None
        with contextlib.ExitStack() as files:
            if spool is not None:
                files.enter_context(spool)
            if self._error is not None:
                raise self._error
            file = files.enter_context(self._path.open("w", encoding="utf-8"))
            file.write('{"traceEvents": [')
            if spool is not None:
                spool.seek(0)
                while part := spool.read(_PART):
                    file.write(part)
            file.write('], "displayTimeUnit": "ms"}')


def _each(text: str) -> Iterator[JSONObject]:
    """The events of a list, one by one: the engine has each in a line."""
    begin = 1
    while begin < len(text) - 1:
        end = text.find(",\n", begin)
        end = len(text) - 1 if end < 0 else end
        yield json.loads(text[begin:end])
        begin = end + 2


def _iterations(outcome: Outcome) -> Iterator[JSONObject]:
    """Of a run over a graph: a bar for each row of its table, and lines of what it did."""
    at = 0.0
    for row in outcome.other.get("iterations", ()) if "graph" in outcome.other else ():
        place = {"tid": 0, "ts": at * 1e6}
        figures = {"active": row.active, "lists": row.lists, "bytes read": row.bytes_read, "cached": row.cache_hits}
        name = f"{outcome.other['graph']} {row.first}"
        yield {"name": name, "ph": "X", "dur": row.seconds * 1e6, "args": figures, **place}
        for what, value in figures.items():
            yield {"name": what, "ph": "C", "args": {what: value / row.number}, **place}
        at += row.seconds


__all__ = ["Timeline"]
