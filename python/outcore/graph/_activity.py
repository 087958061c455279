"""Runs over graphs: seen live, and counted for the profile in force."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from outcore import _core
from outcore._base.types import JSONObject
from outcore._session import record as _record
from outcore._session.progress import live
from outcore._session.record import Outcome
from outcore._session.session import current

#: The runs that only tell what they would begin with, where that is what is asked for.
_forecasts: ContextVar[list[_core.GraphRun] | None] = ContextVar("outcore_forecasts", default=None)


@contextmanager
def forecasting() -> Iterator[list[_core.GraphRun]]:
    """Runs within it end before they begin; gives them."""
    runs: list[_core.GraphRun] = []
    token = _forecasts.set(runs)
    try:
        yield runs
    finally:
        _forecasts.reset(token)


@contextmanager
def running(name: str) -> Iterator[_core.GraphRun]:
    """A run of a function of that name: a bar tells of its iterations, a profile has them as a row each.

    Reads beside its iterations count as far as no other run of the session was under way meanwhile. Where the function
    raises, the profile has the iterations until then, and the name of the error.
    """
    session = current()
    if (activity := _forecasts.get()) is not None:
        activity.append(_core.GraphRun(session._core, None, True))
        yield activity[-1]
        return
    began = time.perf_counter()
    other: JSONObject = {"graph": name}
    before = session.counters()["bytes_read"]
    with session.working() as is_alone, live(session.options["progress"]) as bar:
        if bar is not None:
            bar.label = name
        run = _core.GraphRun(session._core, None if bar is None else bar.iteration)
        try:
            yield run
        except BaseException as error:
            other["error"] = type(error).__name__
            raise
        finally:
            run.release()
            rows = other["iterations"] = [_record.Iterations(*row) for row in run.rows()]
            bytes_read = sum(row.bytes_read for row in rows)
            # The session counts degrees as well, and what a program asks for by itself; but those of all runs.
            beside = session.counters()["bytes_read"] - before - bytes_read
            if beside > 0 and is_alone():
                other["bytes_beside_iterations"] = beside
                bytes_read += beside
            outcome = Outcome(
                bytes_read=bytes_read,
                peak_bytes=run.reserved_bytes,
                seconds=time.perf_counter() - began,
                other=other,
            )
            _record.record(outcome)


def silent_run() -> _core.GraphRun:
    """A run that nobody is told of."""
    return _core.GraphRun(current()._core)


__all__ = ["forecasting", "running", "silent_run"]
