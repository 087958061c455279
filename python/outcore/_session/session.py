"""Sessions: the options of a run, and the tiles and values that stay in memory between runs."""

from __future__ import annotations

import atexit
import json
import os
import sys
import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from functools import partial
from types import TracebackType
from typing import ClassVar, NamedTuple

from outcore import _core, config
from outcore._base.shortened import call_text
from outcore._base.sizes import format_size
from outcore._base.types import JSONObject, NDArray
from outcore._session import record as _record
from outcore._session import replaced
from outcore._session.accounts import ByteAccount, Moved
from outcore._session.caller import Call, calling
from outcore._session.progress import Progress
from outcore._session.reached import Reached
from outcore._session.record import Outcome
from outcore._session.slices import slices
from outcore._session.trace import Run, SweepPoint, compared
from outcore.errors import MemoryLimitError

# Sessions made from configuration, by their options. Only the one used last keeps tiles: nobody who changed the
# configuration waits for those of the old one.
_IMPLICIT_MAX = 4
_MEBIBYTE = 1 << 20
_implicit: OrderedDict[str, Session] = OrderedDict()
_lock = threading.RLock()
_entered: ContextVar[tuple[Session, ...]] = ContextVar("outcore_session", default=())  # innermost last


class KeptArray(NamedTuple):
    """The memory of a stored array's tiles, so many, or of a value, which is named by its operator and shape."""

    name: str
    tiles: int | None
    bytes: int


class Session:
    """Options of runs and the tiles kept between them; a context manager that makes it the one in use in its thread.

    Options are the keys of `config.set`; those not given come from the configuration when the session is made.
    Raises ConfigError for unknown keys. Closing it drops its tiles and its scratch files; computing in it raises
    SessionError from then on. Arrays belong to no session: those opened under one can be computed under any other.

    `memory_limit` bounds the process, not the session. Programs of one process therefore run one after the other, first
    come, first served, whichever threads and sessions they come from; one that waits looks for signals. When a program
    runs, the other sessions give up tiles and frames they only keep, as far as it needs their room. Results that are
    still referenced count against every session's limit until they are freed; a refusal says how much they take.

    A session does not survive a fork: the child makes its own. Without an explicit one this goes by itself.

    >>> import outcore as oc
    >>> with oc.Session(memory_limit="4GiB", threads=2):
    ...     oc.arange(4).sum().item()
    6
    """

    _drawn: ClassVar[Callable[[Session], str]]  # the card that notebooks show, which is drawn above this room

    def __init__(self, **options: object) -> None:
        self.options = config.snapshot(**options)
        core_options = {key: value for key, value in self.options.items() if key != "progress"}
        self._core = _core.Session(core_options)
        self.account = ByteAccount(partial(_moved, self._core))
        _record.joined(self)
        self._entries = 0
        # Bytes per second that large runs moved, the last of them.
        # Of masks, by digest: what was held of each in scratch, if anything, and how much of it is true.
        self.counted_masks: OrderedDict[str, tuple[_core.Expr | None, list[int]]] = OrderedDict()

    def __repr__(self) -> str:
        limit = format_size(self.options["memory_limit"])
        counted = self.counters()
        kept, working = counted["kept_bytes"], counted["reserved_bytes"] - counted["kept_bytes"]
        held = [f"{format_size(kept)} kept", *([f"{format_size(working)} in use"] if working else [])]
        budget = f"budget={format_size(counted['budget_bytes'])}"
        parts = [f"memory_limit={limit}", budget, f"policy={self.options['policy']}", *held]
        return call_text("outcore.Session", parts)

    def _repr_html_(self) -> str:
        return type(self)._drawn(self)

    def __enter__(self) -> Session:
        _entered.set((*_entered.get(), self))
        with _lock:
            self._entries += 1
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        outwards = list(reversed(_entered.get()))
        # Generators are left in any order, and not always in the thread that entered them.
        if self in outwards:
            outwards.remove(self)
            _entered.set(tuple(reversed(outwards)))
        with _lock:
            self._entries -= 1
            is_idle = self._entries == 0
        if is_idle:
            self.close()

    def plan(
        self, outputs: Sequence[_core.Expr], targets: Sequence[_core.Target | None], progress: Progress | None = None
    ) -> _core.Program:
        """The placed program of some outputs. Raises MemoryLimitError when it cannot fit. No I/O.

        `progress` says so where that takes longer than a second.
        """
        say = None if progress is None else progress.say
        return self._core.plan(replaced.read_back(outputs), list(targets), say)

    def run(self, program: _core.Program, progress: Progress | None = None) -> tuple[list[NDArray | None], Outcome]:
        """Plays a program, with its progress: results of outputs without a target, and what the run did."""
        recorder = _record.recorder()
        call: Call | None = None
        detail: str | None = None
        sweep: tuple[SweepPoint, ...] = ()
        if recorder is not None:
            call, detail = calling(), recorder.detail
            sweep = compared(program, recorder.limits(program, call, self.options))
        report, say = (None, None) if progress is None else (progress.report, progress.say)
        reached = None if call is None else Reached(call, report)
        try:
            with self.account.program(_record.share()) as count:
                counters = program.run(report if reached is None else reached.report, detail, say)
                count(Moved(counters["bytes_read"], counters["bytes_written"]))
        except BaseException as error:
            if recorder is not None and reached is not None:
                recorder.fail(reached.failure(error))
            raise
        finally:
            del program  # see `plan_and_run`
        self.warn()
        outcome = Outcome.of(counters)
        _record.record(outcome, None if call is None else Run.of(call, self.options, counters, sweep, slices()))
        return list(counters["results"]), outcome

    def counters(self) -> JSONObject:
        """Everything the session counted since it was made."""
        return dict(self._core.counters())

    def kept(self) -> list[KeptArray]:
        """The arrays of which tiles stay in memory between programs, and the values that do, the most bytes first.

        They give way to what programs need; `clear` drops them. No I/O.

        >>> import outcore as oc, numpy as np, os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder, oc.Session(memory_limit="1GiB") as session:
        ...     np.save(f"{folder}/x.npy", np.zeros(4096))
        ...     _ = oc.open(f"{folder}/x.npy").sum().compute()
        ...     [(os.path.basename(array.name), array.tiles, array.bytes) for array in session.kept()]
        [('x.npy', 1, 36864)]
        """
        return [KeptArray(*array) for array in self._core.kept()]

    def warn(self) -> None:
        """Warns of disks of volumes that were found elsewhere than written down, once each."""
        for note in self._core.notes():
            warnings.warn(note, stacklevel=3)

    def clear(self) -> None:
        """Drops the tiles, values and pages kept from earlier runs."""
        self.counted_masks.clear()
        self._core.clear()

    def close(self) -> None:
        """Ends the session: its tiles, threads and scratch files go, and nothing can be computed in it any more."""
        self.warn()
        self.counted_masks.clear()
        self._core.close()


def _moved(core: _core.Session) -> Moved:
    counted = core.counters()
    return Moved(counted["bytes_read"], counted["bytes_written"])


def current() -> Session:
    """The session in use: the innermost entered one, else the one that belongs to the configuration in force."""
    for session in reversed(_entered.get()):
        if session._entries:  # else another thread left it for this one
            return session
    return configured()


def configured() -> Session:
    """The session that belongs to the configuration in force, whichever is entered."""
    options = config.snapshot()
    key = json.dumps({name: value for name, value in options.items() if name != "progress"}, sort_keys=True)
    with _lock:
        last = next(reversed(_implicit), None)
        if last is not None and last != key:
            _implicit[last].clear()
        if key not in _implicit:
            _implicit[key] = Session()
            if len(_implicit) > _IMPLICIT_MAX:
                # Another thread may be about to use it, so it is not closed; it ends with its last reference.
                _implicit.popitem(last=False)[1].clear()
        _implicit.move_to_end(key)
        session = _implicit[key]
        session.options["progress"] = options["progress"]
        return session


def clear() -> None:
    """Drops the tiles the sessions made from configuration keep between runs.

    No I/O: what is needed again is read again.

    >>> import outcore as oc
    >>> oc.clear()
    """
    with _lock:
        for session in _implicit.values():
            session.clear()


def leave_room(bytes: int, *, unless: str | None = None) -> None:
    """Has kept tiles give way to what the process takes next beside arrays of its sessions.

    Nothing is done where that is a package of which the module `unless` is loaded already.
    """
    if unless in sys.modules:
        return
    with _lock:
        sessions = {id(session): session for session in (*_implicit.values(), *_entered.get())}
    for session in sessions.values():
        session._core.leave_room(bytes)


def check_room(operator: str, bytes: int) -> None:
    """Raises MemoryLimitError where so many bytes beside arrays of the session would not fit the memory limit."""
    session = current()
    counted = session.counters()
    if session.options["pool_limit"] is not None:
        return  # a bound for arrays alone
    available = counted["budget_bytes"] - (counted["reserved_bytes"] - counted["kept_bytes"])
    if bytes <= available:
        return
    limit = session.options["memory_limit"]
    smallest = -(-session._core.limit_that_leaves(bytes) // _MEBIBYTE) * _MEBIBYTE
    raise MemoryLimitError(
        f"{operator} needs {format_size(bytes)} of memory at once, and the limit of {format_size(limit)} leaves "
        f"{format_size(max(available, 0))}; the smallest limit that works is {smallest // _MEBIBYTE} MiB",
        {"operator": operator, "need": bytes, "limit": max(available, 0), "smallest": smallest},
    )


def _forget_inherited() -> None:
    """In a forked child: the parent's sessions have threads and locks that did not come along."""
    global _lock
    _lock = threading.RLock()
    _implicit.clear()


def _end() -> None:
    """At the end of the process: scratch of sessions made from configuration goes while threads are there for it."""
    with _lock:
        sessions = list(_implicit.values())
        _implicit.clear()
    for session in sessions:
        session._core.close()


os.register_at_fork(after_in_child=_forget_inherited)
atexit.register(_end)

__all__ = ["KeptArray", "Outcome", "Session", "check_room", "clear", "configured", "current", "leave_room"]
