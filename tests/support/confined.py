"""Calls of `field_calls.py` in processes of their own, each in a memory group of its limit.

One process imports the package and forks for each call, which begins in a process that has done nothing else.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks import cgroup
from benchmarks.child import describe, peak_rss_bytes

import outcore as oc
from outcore._session.record import Outcome, recorded_by
from outcore._session.session import Session
from outcore._show.explanation import Explanation
from outcore.errors import MemoryLimitError
from support import field_calls
from support.killing import PATHS, ROOT
from support.namespace import targets_of

FIGURES = ("bytes_read", "bytes_written", "peak_bytes")
HANG_SECONDS = 900
CACHE_BYTES = 3 << 19


class Records:
    """The outcomes of the runs of a block."""

    def __init__(self) -> None:
        self.outcomes: list[Outcome] = []

    detail = None
    share = None

    def add(self, outcome: Outcome, run: object = None) -> None:
        self.outcomes.append(outcome)

    def draw(self, outcome: Outcome, run: object) -> None:
        pass

    def fail(self, failure: object) -> None:
        pass

    def limits(self, program: object, call: object, options: object) -> list[int]:
        return []

    def join(self, session: object) -> None:
        pass


@contextmanager
def programs() -> Iterator[list[dict[str, Any]]]:
    """Each program that is run, in whatever thread: its forecast and its outcome.

    A program whose kept tiles another thread took is planned anew when it runs: its forecast is then of that plan.
    """
    run: Any = Session.run
    pairs: list[dict[str, Any]] = []

    def recorded(self: Session, program: Any, bar: Any = None) -> Any:
        forecast = Explanation.of(program)
        ran = run(self, program, bar)
        stages = ran[1].other["stages"]
        foreseen = stages[0][0] if len(stages) == 1 else [getattr(forecast, name) for name in FIGURES]
        figures = {name: [said, getattr(ran[1], name)] for name, said in zip(FIGURES, foreseen, strict=True)}
        pairs.append({"exact": forecast.exact} | figures)
        return ran

    Session.run = recorded  # type: ignore[method-assign]
    try:
        yield pairs
    finally:
        Session.run = run  # type: ignore[method-assign]


@contextmanager
def working_beside(session: Session, folder: Path) -> Iterator[None]:
    """Another thread that computes and reads through a cache over and over, as far as there is memory."""
    over, failed = threading.Event(), []
    file = oc.io.cached(folder / "x.npy", memory=CACHE_BYTES)
    places = np.random.default_rng(3).integers(0, len(file) - 4096, 200)

    def work() -> None:
        turns = 0
        try:
            with session:
                while not over.is_set():
                    file.read_at(places, 4096)
                    with suppress(MemoryLimitError):
                        oc.sum(oc.open(folder / "v.npy") * turns).compute()
                    turns += 1
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    if failed:
        raise failed[0]


def call(name: str, folder: Path, out: Path, limit: int, beside: bool) -> dict[str, Any]:
    """A call under a limit, with all that it gives stored: its programs, its runs, its forecast."""
    inputs, records = field_calls.Inputs(folder, out), Records()
    inputs.hold(field_calls.HOLDS.get(name, ()))
    with ExitStack() as stack:
        session = stack.enter_context(oc.Session(memory_limit=limit, threads=2, progress=False, scratch=[str(out)]))
        pairs = stack.enter_context(programs())
        if beside:
            stack.enter_context(working_beside(session, folder))
        with recorded_by(records):
            made = field_calls.CALLS[name](inputs)
            moved = zip(field_calls.moved(), inputs.moved, strict=True)
            bytes_read, bytes_written = (now - before for now, before in moved)
            targets = targets_of(made, out)
            if targets:
                oc.store(targets)
        del made, targets
    # Runs over graphs count their own reads; of other calls the session does, whoever moved the bytes.
    if runs := [run for run in records.outcomes if "graph" in run.other]:
        bytes_read, bytes_written = sum(run.bytes_read for run in runs), 0
    forecast = inputs.forecast
    return {
        "programs": pairs,
        "bytes_read": bytes_read,
        "bytes_written": bytes_written,
        "has_own_counters": bool(runs),
        "forecast": None if forecast is None else {name: getattr(forecast, name) for name in FIGURES},
    }


def attempt(name: str, folder: Path, out: Path, limit: int, beside: bool) -> dict[str, Any]:
    """The call in a fork of this process, in a group of the limit where that is above what the process takes."""
    report = out / "report.json"
    report.unlink(missing_ok=True)
    with cgroup.group(limit if limit > peak_rss_bytes() else None) as group:
        child = os.fork()
        if child == 0:
            _end(lambda: _reported(group, report, lambda: call(name, folder, out, limit, beside)))
        _, status = os.waitpid(child, 0)
        said: dict[str, Any] = json.loads(report.read_text()) if report.exists() else {}
        signal_number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
        return said | {"limit": limit, "signal": signal_number, **group.counters()}


def _end(work: Callable[[], None]) -> None:
    """The rest of a forked process."""
    try:
        work()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(0)


def _reported(group: cgroup.Group, report: Path, work: Callable[[], dict[str, Any]]) -> None:
    signal.alarm(HANG_SECONDS)
    group.admit(os.getpid())
    said: dict[str, Any] = {"begun_bytes": peak_rss_bytes()}
    try:
        said["value"] = work()
    except Exception as error:
        said["error"] = describe(error)
        if not isinstance(error, MemoryLimitError):
            said["error"]["trace"] = traceback.format_exc()[-3000:]
    said["peak_rss_bytes"] = peak_rss_bytes()
    report.write_text(json.dumps(said, default=str))


def serve(folder: str) -> None:
    """Attempts that come as lines, until there are no more."""
    for line in sys.stdin:
        name, out, limit, beside = json.loads(line)
        print(json.dumps(attempt(name, Path(folder), Path(out), limit, beside)), flush=True)


class Confined:
    """The process that forks, which has imported `modules`."""

    def __init__(self, folder: Path, modules: str) -> None:
        command = [sys.executable, "-m", "support.confined", str(folder), modules]
        self._process = subprocess.Popen(
            command,
            env=os.environ | {"PYTHONPATH": PATHS},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )

    def attempt(self, name: str, out: Path, limit: int, beside: bool = False) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps([name, str(out), limit, beside]), file=self._process.stdin, flush=True)
        return dict(json.loads(self._process.stdout.readline()))

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


if __name__ == "__main__":
    for module in sys.argv[2].split():
        __import__(module)
    serve(sys.argv[1])
