"""Notes on a KeyboardInterrupt: which outputs and loops can be gone on with, and which are gone."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from outcore._base.files import is_unfinished
from outcore._base.types import PathLike
from outcore._base.urls import is_url, url_of
from outcore._lazy.typed import Typed
from outcore._run.group_files import is_group
from outcore._run.hdf5_files import hdf5_place

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


class NamedOutput:
    """The output of a call, and the identity of the file or folder that has its name before."""

    def __init__(self, path: PathLike) -> None:
        self.path = Path(os.fsdecode(path))
        self._before = _identity(self.path)

    @property
    def is_complete(self) -> bool:
        """Whether the output has its name by now."""
        now = _identity(self.path)
        return now is not None and now != self._before

    def note(self, kept: str = "", way: str = "") -> str:
        """The fate of it: the parts that are `kept`, and the `way` to keep some where none are."""
        if self.is_complete:
            return f"{self.path}: complete"
        before = "; what had the name before is as it was" if self.path.exists() else ""
        if kept:
            return f"{self.path}: kept: {kept}, for the same call to go on from{before}"
        return f"{self.path}: gone: nothing of it is kept{before}{way}"

    def updated_note(self) -> str:
        """The same of an array that is there, of which a part is written, or which grows."""
        is_new = "complete" if self.is_complete else "as it was: nothing of the new values is kept"
        return f"{self.path}: {is_new}"


def _identity(path: Path) -> tuple[int, int] | None:
    with suppress(OSError, ValueError):
        status = path.stat()
        return status.st_dev, status.st_ino
    return None


class InterruptedOutputs:
    """The outputs of a call of `store`, and what is left of them where it is interrupted."""

    def __init__(self, targets: object, *, resumes: bool) -> None:
        named = dict(targets) if isinstance(targets, Mapping) else {}
        self._resumes = resumes
        self._updated, self._files, kinds = dict[str, NamedOutput](), dict[str, NamedOutput](), set[str]()
        #: By URL whether its objects are under way, or all there.
        self.uploads: dict[str, str] = {}
        for key, value in named.items():
            is_region = isinstance(key, tuple)
            path = key[0] if is_region and key else key
            if not isinstance(path, (str, bytes, os.PathLike)):
                continue
            kind, name = ("region", os.fsdecode(path)) if is_region else _kind_of(path, value)
            kinds.add(kind)
            if kind == "URL":
                self.uploads[name] = ""
            else:
                (self._updated if is_region else self._files).setdefault(name, NamedOutput(name))
        first = next((kind for kind in _RESUMABLE if kind in kinds), "")
        self._way = "" if resumes or kinds & {"region", "sparse matrix"} or not first else f"{_WAY}{_RESUMABLE[first]}"

    def __call__(self) -> Iterator[str]:
        """A line per output."""
        for output in self._files.values():
            is_kept = self._resumes and is_unfinished(output.path)
            yield output.note("its complete tiles" if is_kept else "", self._way)
        for output in self._updated.values():
            yield output.updated_note()
        for url, state in self.uploads.items():
            yield f"{url}: {_UPLOADS[state]}" + ("" if state else self._way)


_WAY = "; with resume=True a call can be gone on with"
# By the outputs of a call, those that rule out others first: how a call differs that can be gone on with.
_RESUMABLE = {
    "URL": " that stores to files",
    "HDF5": " that stores to .zarr",
    "group": " that stores arrays, not groups",
    "typed": " that stores numbers: x.integers",
    "array": "",
}
_UPLOADS = {
    "": "gone: nothing of it is kept; what was there before is as it was",
    "under way": "gone: objects of it, and of what was there before, may be left, which nothing reads; the same call "
    "with overwrite=True replaces them",
    "complete": "complete",
}


def _kind_of(path: PathLike | bytes, value: object) -> tuple[str, str]:
    """The kind of an output, and the name of its file, its folder, or its URL."""
    if is_url(path):
        return "URL", url_of(os.fsdecode(path)).text
    place = hdf5_place(path)
    if place is not None:
        return "HDF5", place.file
    name = os.fsdecode(path)
    if is_group(value):
        return "group", name
    if name.endswith(".ocs"):
        return "sparse matrix", name
    return "typed" if isinstance(value, Typed) and not name.endswith(".zarr") else "array", name


def of_ingest(output: NamedOutput, *, resumes: bool, can_resume: bool) -> str:
    """The note of interrupted work on entries or edges."""
    way = f"{_WAY} that reads files" if can_resume else ""
    return output.note("what was read and sorted of it" if resumes else "", way)


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


__all__ = ["InterruptedOutputs", "NamedOutput", "noting", "of_checkpoints", "of_ingest", "of_loop"]
