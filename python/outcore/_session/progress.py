"""The progress bar: the share of the run's time that is done, bytes, tasks, the stage, and the time left, where someone
sees it."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

from outcore._base.sizes import format_size


def _watched() -> bool:
    """Whether stderr is a terminal, or the caller a notebook."""
    shell = sys.modules.get("IPython")
    kernel = shell.get_ipython() if shell is not None else None
    if type(kernel).__name__ == "ZMQInteractiveShell":
        return True
    return sys.stderr is not None and sys.stderr.isatty()


@contextmanager
def live(shown: bool | None) -> Iterator[Bar | None]:
    """A bar for one run or several, whose label names them; None where nobody watches. The first report opens it."""
    if not (_watched() if shown is None else shown):
        yield None
        return
    bar = Bar()
    try:
        yield bar
    finally:
        bar.close()


# The bar of the loop that is under way, which is None where it shows none; empty outside of loops.
_loop: ContextVar[tuple[Bar | None, ...]] = ContextVar("outcore_loop", default=())


@contextmanager
def of_loop(shown: bool | None) -> Iterator[Bar | None]:
    """The bar of a loop, which its programs and the loops within it share."""
    outer = _loop.get()
    with nullcontext(outer[0]) if outer else live(shown) as bar:
        token = _loop.set((bar,))
        try:
            yield bar
        finally:
            _loop.reset(token)


def of_program(shown: bool | None) -> AbstractContextManager[Bar | None]:
    """The bar of one program: that of the loop which it belongs to, else one of its own."""
    loop = _loop.get()
    return nullcontext(loop[0]) if loop else live(shown)


class Bar:
    """A rich progress bar, made at the first report so that short runs show none."""

    label = "outcore"

    def __init__(self) -> None:
        self._bar: Any = None
        self._task: Any = None
        self.doing = ""

    def say(self, doing: str) -> None:
        """The part of the run that is under way, in words; none where all of it is one program."""
        self.doing = doing
        if self._bar is None:
            self._open()
        self._bar.update(self._task, description=self._described())

    def report(
        self,
        bytes_done: int,
        bytes_total: int,
        tasks_done: int,
        tasks_total: int,
        fraction: float,
        seconds_left: float | None,
    ) -> None:
        if self._bar is None:
            self._open()
        if not tasks_total:  # nothing is known yet: the run waits for its turn, or the next stage is planned
            amount = "" if self.doing else "planning"
            self._bar.update(self._task, amount=amount, description=self._described(), left="")
            return
        amount = f"{format_size(bytes_done)} of {format_size(bytes_total)}, " if bytes_total else ""
        self._bar.update(
            self._task,
            completed=fraction,
            amount=f"{amount}{tasks_done:,} of {tasks_total:,} tasks",
            description=self._described(),
            left="" if seconds_left is None else f"{_clock(seconds_left)} left",
        )

    def iteration(self, number: int, active: int, lists: int, bytes_read: int, hits: int) -> None:
        """Of runs whose end nobody knows: the iteration that is under way, and what was done before."""
        if self._bar is None:
            self._open()
        self._bar.update(
            self._task,
            total=None,
            amount=f"iteration {number:,}, {active:,} active; {lists:,} lists, {format_size(bytes_read)} read, "
            f"{hits:,} pages from the cache",
            description=self.label,
            left="",
        )

    def _described(self) -> str:
        return f"{self.label}, {self.doing}" if self.doing else self.label

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[amount]}"),
            TextColumn("{task.fields[left]}"),
            console=Console(stderr=True),
            transient=False,
        )
        self._bar.start()
        self._task = self._bar.add_task(self._described(), total=1.0, amount="", left="")

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()


def _clock(seconds: float) -> str:
    """Hours, minutes and seconds, as a clock shows them."""
    minutes, second = divmod(math.ceil(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"
