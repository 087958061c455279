"""How far a run came, for records of runs that an error ends."""

from __future__ import annotations

import time
from collections.abc import Callable

from outcore._session.caller import Call
from outcore._session.record import Failure

Report = Callable[[int, int, int, int, float, float | None], None]
# Characters of a message that are kept.
_MESSAGE_MAX = 400


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
        message = str(error)
        message = message if len(message) <= _MESSAGE_MAX else f"{message[: _MESSAGE_MAX - 1]}…"
        seconds = time.perf_counter() - self._begun
        return Failure(str(self._call), type(error).__name__, message, seconds, *self._last)


__all__ = ["Reached"]
