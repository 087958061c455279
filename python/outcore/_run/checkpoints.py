"""States of a loop that are durable, so that the same loop can be gone on with by another process."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, SupportsIndex

import numpy as np

from outcore import _core
from outcore._base import files as _files
from outcore._base.arguments import count
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
    count(name, 1, checkpoint=every)
    return every.__index__()


def content(array: Array) -> str:
    """The identity of an array: by its files and formulas where every process sees the same, else by its values.

    I/O: values that do not fit into a small part of memory are written to scratch once and read.
    """
    sources, functions = _core.process_own([array._expr])
    return _of_values(array) if sources or functions else array._expr.digest


def identity(name: str, arrays: Sequence[Array]) -> list[str]:
    """The identities of what a step gives: by files and formulas, and by the values of arrays that only this process
    has, as those in memory and those that another library reads.

    Raises ArgumentError where functions of Python take part that no other process can tell from others: what is stored
    could never be gone on with. I/O: reads arrays of other libraries once.
    """
    exprs = [array._expr for array in arrays]
    sources, functions = _core.process_own(exprs)
    if functions:
        raise ArgumentError(
            f"{name}: checkpoint needs steps that another process can recognize, and {functions[0]} is a function of "
            "this process alone; leave checkpoint out, or use functions of outcore or of oc.jit"
        )
    return _core.digests_given(exprs, {source.id: _of_values(Array(source)) for source in sources})


def _stand_in(array: Array, text: str) -> _core.Expr:
    """A formula of an array's shape and type, which a text tells from others."""
    seed = int.from_bytes(blake2b(text.encode(), digest_size=7).digest(), "big")
    return _core.astype(_core.random("uniform", array.shape, seed, 0.0, 1.0, "float64"), array.dtype.name)


def _of_values(array: Array) -> str:
    """The identity of values, with their type and shape. I/O: one read; a write beside where they do not fit into a
    small part of memory."""
    session = current()
    digest = blake2b(f"{array.dtype.str} {array.shape} ".encode())
    if array.nbytes <= session.counters()["budget_bytes"] // _SHARE:
        digest.update(np.ascontiguousarray(array.compute()).data)
        return digest.hexdigest()
    path = Path(session._core.unused_path())
    store({path: array})
    try:
        for block in _files.in_blocks(path, _files.npy_header(path).offset):
            digest.update(block)
        return digest.hexdigest()
    finally:
        _files.remove(path)


def _plain(value: object) -> object:
    """A complex number as JSON has it. Raises ArgumentError for what is no number."""
    if isinstance(value, complex):
        return {"complex": [value.real, value.imag]}
    raise ArgumentError(f"iterate: checkpoint stores histories of numbers, and {value!r} is none")


def _number(value: dict[str, Any]) -> Any:
    return complex(*value["complex"]) if value.keys() == {"complex"} else value


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
        cls, every: SupportsIndex, state: tuple[Array, ...], first: tuple[tuple[Array, ...], Mapping[str, object]]
    ) -> Checkpoints:
        """The checkpoints of a loop, known by the state it begins with and by what its step gives first."""
        steps = interval("iterate", every)
        new, scalars = first
        lazy = {name: value for name, value in scalars.items() if isinstance(value, Array)}
        values = [content(array) for array in state]
        # By its values, a state is known whatever made it.
        instead = {array._expr.digest: _stand_in(array, text) for array, text in zip(state, values, strict=True)}
        exprs = _core.substituted([array._expr for array in (*new, *lazy.values())], instead)
        digests = identity("iterate", list(map(Array, exprs)))
        by_name = dict(zip(lazy, digests[len(new) :], strict=True))
        parts = digests[: len(new)]
        parts += [f"{name}:{by_name.get(name, '')}" for name in scalars]
        parts += values
        return cls.known_by(steps, "a loop", parts)

    def _notes(self) -> list[Path]:
        return sorted(self._path.glob("state-*.json"), reverse=True)

    def _whole(self) -> Iterator[Saved]:
        """The states that are whole, the last one first."""
        for path in self._notes():
            try:
                note = json.loads(path.read_text(), object_hook=_number)
                files = [(self._path / name, checksum) for name, checksum in note["files"]]
                if any(_checksum(file) != checksum for file, checksum in files):
                    continue
                arrays = tuple(_opened(file) for file, _ in files)
                saved = (
                    int(note["iteration"]),
                    arrays,
                    {name: list(values) for name, values in note["history"].items()},
                )
            except (OSError, ValueError, KeyError, TypeError, OutcoreError):
                continue
            yield saved

    def last(self) -> Saved | None:
        """The last state that is whole."""
        return next(self._whole(), None)

    def restore(self, state: tuple[Array, ...], most: int) -> Saved:
        """The last state that is whole, has the shapes and types of the given one and at most so many steps behind it,
        else that."""
        kinds = [(array.shape, array.dtype) for array in state]
        for saved in self._whole():
            if saved[0] <= most and [(array.shape, array.dtype) for array in saved[1]] == kinds:
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
        _files.write_durably(path, json.dumps(note, default=_plain).encode())
        for before in old:
            before.unlink(missing_ok=True)
            for file_before in self._path.glob(f"{before.stem}-*.npy"):
                _files.remove(file_before)

    def finish(self) -> None:
        """Removes the folder: the loop has ended."""
        self._folder.remove()
