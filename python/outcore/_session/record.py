"""Records of runs: bytes and seconds of each, for whoever records them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field, fields
from typing import ClassVar, NamedTuple, Protocol
from weakref import WeakSet

from outcore import _core
from outcore._base.sizes import format_size
from outcore._base.types import JSONObject


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
            f"peak {format_size(self.peak_bytes)}, {self.seconds:.3g} s)"
        )

    def _repr_html_(self) -> str:
        return type(self)._drawn(self)

    @classmethod
    def of(cls, counters: JSONObject) -> Outcome:
        named = {part.name for part in fields(cls)} - {"other"}
        other = {key: value for key, value in counters.items() if key not in named and key != "results"}
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


class RecordedSession(Protocol):
    """A session, as far as records go."""

    _core: _core.Session


class Recorder(Protocol):
    """Takes the runs of a block."""

    def add(self, outcome: Outcome) -> None:
        """A run that has ended."""

    def join(self, session: RecordedSession) -> None:
        """A session that has been made inside the block."""

    def tracing(self) -> AbstractContextManager[str | None]:
        """The path that a run is to write its trace to, if it is to."""


_recorder: ContextVar[Recorder | None] = ContextVar("outcore_recorder", default=None)
_sessions: WeakSet[RecordedSession] = WeakSet()


def sessions() -> list[RecordedSession]:
    """All sessions that there are."""
    return list(_sessions)


@contextmanager
def recorded_by(recorder: Recorder) -> Iterator[None]:
    """Has the runs of the block be told to a recorder, and not to the one around it."""
    token = _recorder.set(recorder)
    try:
        yield
    finally:
        _recorder.reset(token)


def tracing() -> AbstractContextManager[str | None]:
    """The path that a run is to write its trace to, if its recorder wants one."""
    recorder = _recorder.get()
    return nullcontext() if recorder is None else recorder.tracing()


def joined(session: RecordedSession) -> None:
    """Tells the recorder that a session has been made."""
    _sessions.add(session)
    recorder = _recorder.get()
    if recorder is not None:
        recorder.join(session)


def record(outcome: Outcome) -> None:
    """Tells the recorder, if there is one, of a run."""
    recorder = _recorder.get()
    if recorder is not None:
        recorder.add(outcome)


__all__ = [
    "Iterations",
    "Outcome",
    "RecordedSession",
    "Recorder",
    "joined",
    "record",
    "recorded_by",
    "sessions",
    "tracing",
]
