"""Runs over graphs: seen live, and counted for the profile in force."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from outcore import _core
from outcore._base.types import JSONObject
from outcore._session import record as _record
from outcore._session.accounts import Moved
from outcore._session.caller import loops
from outcore._session.progress import of_loop
from outcore._session.record import Outcome
from outcore._session.session import Session, current
from outcore._session.whole import whole_run

#: The run that is under way, which counts what silent runs read.
_under_way: ContextVar[_core.LiveRun | None] = ContextVar("outcore_live_run", default=None)


@contextmanager
def running(name: str) -> Iterator[_core.LiveRun]:
    """A run of a function of that name: a line tells of its iterations, a profile has them as a row each.

    Where the function raises, the profile has the iterations until then, and the name of the error.
    """
    session = current()
    began, outer = time.perf_counter(), _under_way.get()
    other: JSONObject = {"graph": name}
    with of_loop(session.options, name=name) as progress:
        if progress is not None:
            progress.begin_program()
        run = _core.LiveRun(session._core, None if progress is None else progress.iteration)
        token = _under_way.set(run)
        try:
            with _counting(session, run):
                yield run
        except BaseException as error:
            other["error"] = type(error).__name__
            if isinstance(error, KeyboardInterrupt) and outer is None and not loops.get():
                iteration = sum(row[1] for row in run.rows())
                at = f"at iteration {iteration}" if iteration else "before its first iteration"
                error.add_note(f"{name}: gone: it ended {at}; the same call begins anew")
            raise
        finally:
            _under_way.reset(token)
            run.release()
            if progress is not None:
                progress.end_program()
            rows = other["iterations"] = [_record.Iterations(*row) for row in run.rows()]
            # Degrees, and what a program asks for by itself.
            beside = run.bytes_read - sum(row.bytes_read for row in rows)
            if beside > 0:
                other["bytes_beside_iterations"] = beside
            outcome = Outcome(
                bytes_read=run.bytes_read,
                peak_bytes=run.reserved_bytes,
                seconds=time.perf_counter() - began,
                other=other,
            )
            _record.record(outcome)


def silent_run() -> _core.LiveRun:
    """A run that nobody is told of: what it reads counts for the run that is under way."""
    return _core.LiveRun(current()._core, None, _under_way.get())


@contextmanager
def scanning(name: str) -> Iterator[_core.LiveRun]:
    """A scan of lists or degrees: a part of the run that is under way, else one of its own, of that name."""
    run = silent_run()
    if _under_way.get() is not None:
        yield run
        return
    with whole_run(name), _counting(current(), run):
        yield run


@contextmanager
def _counting(session: Session, run: _core.LiveRun) -> Iterator[None]:
    """Has a session know the bytes that a run counts."""
    with session.account.program(_record.share()) as count:
        try:
            yield
        finally:
            count(Moved(run.bytes_read))


__all__ = ["running", "scanning", "silent_run"]
