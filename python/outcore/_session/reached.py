"""How far a run came, for records of runs that an error ends, or that are refused before they begin."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from outcore._session import record
from outcore._session.caller import Call, calling
from outcore._session.record import Failure
from outcore.errors import MemoryLimitError, OutcoreError

Report = Callable[[int, int, int, int, float, float | None], None]
# Characters of a message that are kept.
_MESSAGE_MAX = 400
_tentative: ContextVar[bool] = ContextVar("outcore_tentative", default=False)


class Reached:
    """The last report of a run, which is passed on."""

    def __init__(self, call: Call, report: Report | None) -> None:
        self._call, self._report = call, report
        self._begun = time.perf_counter()
        self._last = (0, 0, 0, 0)

    def report(
        self,
        bytes_done: int,
        bytes_total: int,
        tasks_done: int,
        tasks_total: int,
        fraction: float,
        seconds_left: float | None,
    ) -> None:
        """Takes a report of the engine."""
        if tasks_total:
            self._last = (bytes_done, bytes_total, tasks_done, tasks_total)
        if self._report is not None:
            self._report(bytes_done, bytes_total, tasks_done, tasks_total, fraction, seconds_left)

    def failure(self, error: BaseException) -> Failure:
        """The record of a run that an error has ended now."""
        seconds = time.perf_counter() - self._begun
        return Failure(str(self._call), type(error).__name__, _message(error), seconds, *self._last)


def refused(error: OutcoreError) -> None:
    """Tells the recorder, if there is one, of a plan that was refused."""
    recorder = record.recorder()
    if recorder is not None and not (_tentative.get() and isinstance(error, MemoryLimitError)):
        call = str(calling())
        recorder.fail(Failure(call, type(error).__name__, _message(error), 0.0, is_refused=True))


@contextmanager
def tentative() -> Iterator[None]:
    """No recorder is told of a plan in the block that does not fit the memory: whoever is around it makes another, or
    tells of the refusal."""
    token = _tentative.set(True)
    try:
        yield
    finally:
        _tentative.reset(token)


def _message(error: BaseException) -> str:
    message = str(error)
    return message if len(message) <= _MESSAGE_MAX else f"{message[: _MESSAGE_MAX - 1]}…"


__all__ = ["Reached", "refused", "tentative"]
