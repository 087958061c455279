"""The progress bar: bytes done of bytes known, rate and time left, where someone is there to see it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

Report: TypeAlias = Callable[[int, int, int, int], None]


def _watched() -> bool:
    """Whether stderr is a terminal, or the caller a notebook."""
    shell = sys.modules.get("IPython")
    kernel = shell.get_ipython() if shell is not None else None
    if type(kernel).__name__ == "ZMQInteractiveShell":
        return True
    return sys.stderr is not None and sys.stderr.isatty()


@contextmanager
def watch(shown: bool | None) -> Iterator[Report | None]:
    """A report function for a run, or None where nobody watches. The bar appears with the first report."""
    if not (_watched() if shown is None else shown):
        yield None
        return
    bar = _Bar()
    try:
        yield bar.report
    finally:
        bar.close()


class _Bar:
    """A rich progress bar, made at the first report so that short runs show none."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._task: Any = None

    def report(self, bytes_done: int, bytes_total: int, tasks_done: int, tasks_total: int) -> None:
        # Programs without I/O are measured in tasks instead.
        done, total = (bytes_done, bytes_total) if bytes_total else (tasks_done, tasks_total)
        if self._bar is None:
            self._open(in_bytes=bool(bytes_total))
        self._bar.update(self._task, completed=done, total=total, tasks=f"{tasks_done:,}/{tasks_total:,} tasks")

    def _open(self, *, in_bytes: bool) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )

        amount = [DownloadColumn(binary_units=True), TransferSpeedColumn()] if in_bytes else [MofNCompleteColumn()]
        self._bar = Progress(
            TextColumn("outcore"),
            BarColumn(),
            *amount,
            TextColumn("{task.fields[tasks]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=False,
        )
        self._bar.start()
        self._task = self._bar.add_task("run", total=None, tasks="")

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()
