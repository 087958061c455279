"""Records of runs: bytes and seconds of each, for whoever records them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, fields
from typing import ClassVar, NamedTuple, Protocol
from weakref import WeakSet

from outcore import _core
from outcore._base.sizes import format_size
from outcore._base.times import format_time
from outcore._base.types import JSONObject
from outcore._session.accounts import ByteAccount, Share
from outcore._session.caller import Call
from outcore._session.trace import Run


@dataclass(frozen=True)
class Outcome:
    """The counters of one run: bytes and seconds as counted, to hold against the forecast of `explain`.

    >>> import outcore as oc, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     oc.store({f"{folder}/x.npy": oc.arange(3)}).bytes_spilled
    0
    """

    bytes_read: int = 0
    bytes_written: int = 0
    bytes_spilled: int = 0
    peak_bytes: int = 0
    seconds: float = 0.0
    read_seconds: float = 0.0
    compute_seconds: float = 0.0
    other: JSONObject = field(default_factory=dict)
    _drawn: ClassVar[Callable[[Outcome], str]]  # the card that notebooks show, which is drawn above this room

    def __repr__(self) -> str:
        spilled = f" ({format_size(self.bytes_spilled)} of them spilled)" if self.bytes_spilled else ""
        return (
            f"Outcome({format_size(self.bytes_read)} read, {format_size(self.bytes_written)} written{spilled}, "
            f"peak {format_size(self.peak_bytes)}, {format_time(self.seconds)})"
        )

    def _repr_html_(self) -> str:
        return type(self)._drawn(self)

    @classmethod
    def of(cls, counters: JSONObject) -> Outcome:
        named = {part.name for part in fields(cls)} - {"other"}
        other = {key: value for key, value in counters.items() if key not in named | _UNCOUNTED}
        return cls(**{key: counters[key] for key in named if key in counters}, other=other)


class Iterations(NamedTuple):
    """The counters of an iteration over a graph, or of several that follow each other: `number` of them from `first`
    on."""

    first: int
    number: int
    active: int
    lists: int
    bytes_read: int
    cache_hits: int
    seconds: float


#: Contents of a run's record that are no counters.
_UNCOUNTED = {"results", "traces", "events"}


class Failure(NamedTuple):
    """A run that an error ended: its call, the error, seconds until then, and bytes and tasks of the program that ran
    last, done and planned; 0 where nothing had begun. Where `is_refused`, no plan was made that could run."""

    call: str
    error: str
    message: str
    seconds: float
    bytes_done: int = 0
    bytes_total: int = 0
    tasks_done: int = 0
    tasks_total: int = 0
    is_refused: bool = False


class RecordedSession(Protocol):
    """A session, as far as records go."""

    _core: _core.Session
    account: ByteAccount


class Recorder(Protocol):
    """Takes the runs of a block."""

    #: How much of each run is traced: "bins" of busy time, each of its "events" as well, or nothing.
    detail: str | None

    @property
    def share(self) -> Share | None:
        """The run that all runs of the block are parts of; none where each stands by itself."""

    def draw(self, outcome: Outcome, run: Run) -> None:
        """Draws the events of a run that is a part of another in the timeline, if there is one."""

    def add(self, outcome: Outcome, run: Run | None) -> None:
        """A run that has ended, with its trace, where it is one of programs."""

    def fail(self, failure: Failure) -> None:
        """A run that an error ended."""

    def limits(self, program: _core.Program, call: Call, options: Mapping[str, object]) -> list[int]:
        """Memory limits to compare a program by before it runs; none where that costs more than it tells."""

    def join(self, session: RecordedSession) -> None:
        """A session that has been made inside the block."""


# The blocks that runs are within, the innermost last.
_recorders: ContextVar[tuple[Recorder, ...]] = ContextVar("outcore_recorders", default=())
_sessions: WeakSet[RecordedSession] = WeakSet()


def sessions() -> list[RecordedSession]:
    """All sessions that there are."""
    return list(_sessions)


@contextmanager
def recorded_by(recorder: Recorder) -> Iterator[None]:
    """Has the runs of the block be told to a recorder, and not to the one around it."""
    _recorders.set((*_recorders.get(), recorder))
    try:
        yield
    finally:
        # Generators are left in any order, and in any context.
        _recorders.set(tuple(other for other in _recorders.get() if other is not recorder))


@contextmanager
def unrecorded() -> Iterator[None]:
    """Has the block be told to nobody: nothing runs in it."""
    token = _recorders.set(())
    try:
        yield
    finally:
        _recorders.reset(token)


def recorder() -> Recorder | None:
    """The recorder of the block, if there is one."""
    recorders = _recorders.get()
    return recorders[-1] if recorders else None


def recorders() -> tuple[Recorder, ...]:
    """The recorders of the blocks around, the innermost last."""
    return _recorders.get()


def share() -> Share | None:
    """The run that a program which runs now is a part of, if there is one."""
    innermost = recorder()
    return None if innermost is None else innermost.share


def joined(session: RecordedSession) -> None:
    """Tells the recorder that a session has been made."""
    _sessions.add(session)
    for recorder in _recorders.get()[-1:]:
        recorder.join(session)


def record(outcome: Outcome, run: Run | None = None) -> None:
    """Tells the recorder, if there is one, of a run."""
    for recorder in _recorders.get()[-1:]:
        recorder.add(outcome, run)


__all__ = [
    "Failure",
    "Iterations",
    "Outcome",
    "RecordedSession",
    "Recorder",
    "joined",
    "record",
    "recorded_by",
    "recorder",
    "recorders",
    "sessions",
    "share",
    "unrecorded",
]
