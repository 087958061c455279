"""Bytes that a session counts, shared out to the runs that move them: each byte to one run."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple


class Moved(NamedTuple):
    """Bytes read and written."""

    read: int = 0
    written: int = 0


class Share(ABC):
    """The bytes of a run whose programs and other reads and writes are one."""

    def __init__(self) -> None:
        self.moved = Moved()
        self.is_over = False

    def take(self, moved: Moved) -> None:
        """Adds bytes."""
        self.moved = Moved(self.moved.read + moved.read, self.moved.written + moved.written)

    @abstractmethod
    def complete(self) -> None:
        """The run is over, and all of its bytes are known."""


class ByteAccount:
    """The counters of a session, shared out to the runs that are under way.

    A program counts its own bytes, and says them when it ends. Bytes of no program belong to the shares that are open
    while the session counts them: to one share, or in equal parts to those of several threads. A share that is closed
    while a program runs waits for the end of the program, before which nobody knows the bytes of either.

    Invariant: `_shared` are the counters up to which each byte has its run. Nothing is shared out while a program is
    under way.
    """

    def __init__(self, counters: Callable[[], Moved]) -> None:
        self._counters = counters
        self._shared = counters()
        self._lock = threading.Lock()
        self._open: list[Share] = []
        self._waiting: list[Share] = []
        self._programs = 0

    def open(self, share: Share) -> None:
        """The session begins to count for a share, unless that is over."""
        with self._lock:
            self._share_out()
            if not share.is_over:
                self._open.append(share)

    def close(self, share: Share) -> bool:
        """The session stops to count for a share, which may be opened again; whether the share was open."""
        with self._lock:
            self._share_out()
            if share not in self._open:
                return False
            self._open.remove(share)
            if self._programs and share not in self._waiting:
                self._waiting.append(share)
            return True

    def end(self, share: Share) -> None:
        """A share is not opened again: complete now, or when the programs of other threads have ended."""
        with self._lock:
            share.is_over = True
            is_complete = share not in self._waiting
        if is_complete:
            share.complete()

    @contextmanager
    def program(self, share: Share | None) -> Iterator[Callable[[Moved], None]]:
        """A program runs, which counts its own bytes: for a share, or for itself. A program that raises before leaves
        its bytes to the shares that are open."""
        moved = Moved()

        def count(bytes: Moved) -> None:
            nonlocal moved
            moved = bytes

        with self._lock:
            self._share_out()
            self._programs += 1
        try:
            yield count
        finally:
            with self._lock:
                complete = self._end_program(moved, share)
            for each in complete:
                each.complete()

    def _end_program(self, moved: Moved, share: Share | None) -> list[Share]:
        """Takes the bytes of a program; the shares that are complete with it."""
        self._programs -= 1
        self._shared = Moved(self._shared.read + moved.read, self._shared.written + moved.written)
        if share is not None:
            share.take(moved)
        if self._programs:
            return []
        self._share_out()
        waiting, self._waiting = self._waiting, []
        return [each for each in waiting if each.is_over]

    def _share_out(self) -> None:
        """Gives bytes that were counted since the last time to the shares."""
        if self._programs:
            return
        now, before = self._counters(), self._shared
        self._shared = now
        shares = list(dict.fromkeys((*self._waiting, *self._open)))
        for number, share in enumerate(shares):
            parts = (max(new - old, 0) for new, old in zip(now, before, strict=True))
            share.take(Moved(*(part // len(shares) + (number < part % len(shares)) for part in parts)))


__all__ = ["ByteAccount", "Moved", "Share"]
