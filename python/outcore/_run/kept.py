"""Notes on a KeyboardInterrupt: which outputs and loops can be gone on with, and which are gone."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from outcore import _core
from outcore.errors import OutcoreError

_PACKAGE = __name__.partition(".")[0]


@contextmanager
def noting(describe: Callable[[], Iterable[str]]) -> Iterator[None]:
    """Has a KeyboardInterrupt of the block say what it leaves, where the function around it was called by the user."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        if _is_called_by_user():
            for text in describe():
                interrupt.add_note(text)
        raise


def _is_called_by_user() -> bool:
    """Whether the function around a `noting` was called from outside of the package, or by its command line."""
    frame, name = sys._getframe(1), __name__
    while name in (__name__, "contextlib"):
        frame = frame.f_back  # type: ignore[assignment]
        name = str(frame.f_globals.get("__name__", ""))
    caller = "" if frame.f_back is None else str(frame.f_back.f_globals.get("__name__", ""))
    return caller.split(".")[0] != _PACKAGE or caller.split(".")[:2] == [_PACKAGE, "_command"]


class InterruptedOutputs:
    """The outputs of an interrupted call, and their fate as the disk has it."""

    def __init__(self, paths: Iterable[str], *, resumes: bool, can_resume: bool) -> None:
        self._paths, self._resumes, self._can_resume = list(paths), resumes, can_resume
        self._began_ns = time.time_ns()

    @classmethod
    def of(cls, targets: object, *, resumes: bool) -> InterruptedOutputs:
        """The outputs of a call of `store`, but regions of arrays that are there."""
        keys = list(targets) if isinstance(targets, Mapping) else []
        paths = [os.fsdecode(key) for key in keys if isinstance(key, (str, bytes, os.PathLike))]
        is_plain = len(paths) == len(keys) and not any(path.endswith(".ocs") for path in paths)
        return cls(paths, resumes=resumes, can_resume=is_plain)

    def __call__(self) -> Iterator[str]:
        """A line per output."""
        for path in map(Path, self._paths):
            yield f"{path}: {self._fate(path)}"

    def _fate(self, path: Path) -> str:
        before = ""
        with suppress(OSError):
            if path.stat().st_ctime_ns >= self._began_ns:
                return "complete"
            before = "; what had the name before is as it was"
        if self._resumes and _is_resumable(path):
            return f"kept: its complete tiles, for the same call to go on from{before}"
        how = "; with resume=True a call can be gone on with" if self._can_resume and not self._resumes else ""
        return f"gone: nothing of it is kept{before}{how}"


def _is_resumable(path: Path) -> bool:
    """Whether a journal of the output lies beside it."""
    target = os.path.realpath(path)
    with suppress(OSError, OutcoreError):
        unfinished = _core.unfinished(os.path.dirname(target))
        return any(os.path.realpath(other) == target for _, other, *_ in unfinished)
    return False


def of_loop(name: str, step: int, unit: str) -> str:
    """The note of an interrupted loop without checkpoints."""
    return f"{name}: gone: it ended {_at(unit, step)}, and nothing of it is kept"


def _at(unit: str, step: int) -> str:
    return f"at {unit} {step}" if step else f"before its first {unit}"


def of_checkpoints(name: str, step: int, unit: str, state: int, *, has_results: bool) -> str:
    """The note of an interrupted loop with checkpoints: a state after a step, results since."""
    if not state and not has_results:
        return f"{name}: gone: it ended {_at(unit, step)}, and no checkpoint is stored yet"
    kept = [f"the state after {unit} {state}"] if state else []
    kept += ["the results of complete programs since"[: None if state else -6]] if has_results else []
    lost = f"; gone: the {unit}s after it, of which {step} was the last" if step > state and not has_results else ""
    return f"{name}: kept: {' and '.join(kept)}, for the same call to go on from{lost}"


__all__ = ["InterruptedOutputs", "noting", "of_checkpoints", "of_loop"]
