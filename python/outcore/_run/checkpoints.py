"""States of a loop that are durable, so that the same loop can be gone on with by another process."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any, SupportsIndex

import numpy as np

from outcore import _core
from outcore._base import files as _files
from outcore._lazy.array import Array
from outcore._run.run import store
from outcore._session.session import current
from outcore.errors import ArgumentError, OutcoreError

Saved = tuple[int, tuple[Array, ...], dict[str, list[Any]]]  # a step, the state after it, and the scalars until then
_SHARE = 8  # part of the budget up to which the values of a state are held to be told by


def _checksum(path: Path) -> int:
    """CRC-32 of a file's bytes."""
    checksum = 0
    for block in _files.in_blocks(path):
        checksum = zlib.crc32(block, checksum)
    return checksum


def interval(name: str, every: SupportsIndex) -> int:
    """Every how many steps states are stored. Raises ArgumentError below 1."""
    steps = every.__index__()
    if steps < 1:
        raise ArgumentError(f"{name}: checkpoint is {steps}; states are stored every so many steps, at least 1")
    return steps


def content(array: Array) -> str:
    """The identity of an initial state: by its files and formulas where every process sees the same, else by its
    values.

    I/O: values that do not fit into a small part of memory are written to scratch once and read.
    """
    session = current()
    path = Path(session._core.unused_path())
    if _is_lasting(array._expr, path.parent):
        return array._expr.digest
    if array.nbytes <= session.counters()["budget_bytes"] // _SHARE:
        return blake2b(np.ascontiguousarray(array.compute()).data).hexdigest()
    store({path: array})
    try:
        digest = blake2b()
        for block in _files.in_blocks(path, _files.npy_header(path).offset):
            digest.update(block)
        return digest.hexdigest()
    finally:
        _files.remove(path)


def _is_lasting(expr: _core.Expr, scratch: Path) -> bool:
    """Whether another process makes the same array: of formulas, and of files that outlast this one."""
    seen, due = {expr.id}, [expr]
    while due:
        part = due.pop()
        name, arguments = part.recipe() or ("", ())
        if name == "memory" or (name == "source" and scratch in Path(arguments[0]).parents):
            return False
        due += [below for below in part.inputs if below.id not in seen]
        seen |= {below.id for below in part.inputs}
    return True


def _opened(path: Path) -> Array:
    """A stored array of a state: in memory where that takes little of it, else where it lies."""
    session = current()
    if path.stat().st_size > session.counters()["budget_bytes"] // 16:
        return Array(_core.open(session._core, str(path)))
    return Array(_core.from_numpy(_files.load(path)))


class Checkpoints:
    """The folder in which a loop's states are stored.

    Each state is files of its own, and a note with their checksums that is written last and renamed into place: a state
    without a whole note, or whose files are not what it says, does not count, and the one before it does.
    """

    def __init__(self, every: int, folder: _core.StagesFolder) -> None:
        self._every = every
        self._folder = folder
        self._path = Path(folder.path)

    @classmethod
    def known_by(cls, every: int, work: str, parts: Iterable[str]) -> Checkpoints:
        """The checkpoints of work that is the same where all parts of what tells it are."""
        key = blake2b("\n".join(parts).encode(), digest_size=16).hexdigest()
        return cls(every, current()._core.stages_folder(key, work))

    @classmethod
    def hold(
        cls, every: SupportsIndex, state: tuple[Array, ...], dry: tuple[tuple[Array, ...], Mapping[str, object]]
    ) -> Checkpoints:
        """The checkpoints of a loop, known by its first step over a state of zeros and by the state it begins with."""
        steps = interval("iterate", every)
        new, scalars = dry
        parts = [array._expr.digest for array in new]
        parts += [f"{name}:{value._expr.digest if isinstance(value, Array) else ''}" for name, value in scalars.items()]
        parts += [content(array) for array in state]
        return cls.known_by(steps, "a loop", parts)

    def _notes(self) -> list[Path]:
        return sorted(self._path.glob("state-*.json"), reverse=True)

    def _whole(self) -> Iterator[Saved]:
        """The states that are whole, the last one first."""
        for path in self._notes():
            try:
                note = json.loads(path.read_text())
                files = [(self._path / name, checksum) for name, checksum in note["files"]]
                if any(_checksum(file) != checksum for file, checksum in files):
                    continue
                arrays = tuple(_opened(file) for file, _ in files)
                saved = int(note["iteration"]), arrays, {name: list(values) for name, values in note["history"].items()}
            except (OSError, ValueError, KeyError, TypeError, OutcoreError):
                continue
            yield saved

    def last(self) -> Saved | None:
        """The last state that is whole."""
        return next(self._whole(), None)

    def restore(self, state: tuple[Array, ...]) -> Saved:
        """The last state that is whole and has the shapes and types of the given one, else that."""
        kinds = [(array.shape, array.dtype) for array in state]
        for saved in self._whole():
            if [(array.shape, array.dtype) for array in saved[1]] == kinds:
                return saved
        return 0, state, {}

    def save(self, iteration: int, state: tuple[Array, ...], history: dict[str, list[Any]], *, due: bool) -> None:
        """Stores the state of a step that is a multiple of the interval, and removes the one before."""
        if not due or iteration % self._every:
            return
        old = self._notes()
        names = [f"state-{iteration:09d}-{place}.npy" for place in range(len(state))]
        store({str(self._path / name): array for name, array in zip(names, state, strict=True)}, overwrite=True)
        note = {
            "iteration": iteration,
            "files": [(name, _checksum(self._path / name)) for name in names],
            "history": history,
        }
        path = self._path / f"state-{iteration:09d}.json"
        new = path.with_suffix(".new")
        with new.open("w") as file:
            json.dump(note, file)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
        for before in old:
            before.unlink(missing_ok=True)
            for file_before in self._path.glob(f"{before.stem}-*.npy"):
                _files.remove(file_before)

    def finish(self) -> None:
        """Removes the folder: the loop has ended."""
        self._folder.remove()
