"""States of a loop that are durable, so that the same loop can be gone on with by another process."""

from __future__ import annotations

import io
import json
import os
import struct
import warnings
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, SupportsIndex

import numpy as np
import numpy.typing as npt

from outcore import _core
from outcore._base import files as _files
from outcore._base.arguments import count
from outcore._base.digests import digest
from outcore._base.types import NDArray
from outcore._lazy.array import Array
from outcore._run.run import store
from outcore._session.session import current
from outcore.errors import ArgumentError, OutcoreError, ResumeWarning

History = dict[str, list[Any]]  # numbers of each step, by name
_SHARE = 8  # part of the budget up to which the values of a state are held to be told by
_FORMAT = b"outcore checkpoints 2\n"
_HEAD = struct.Struct("<QI")  # bytes of an entry, and their CRC-32


class State(NamedTuple):
    """A state that is stored whole: arrays in files, small values, and the history until its step."""

    step: int
    arrays: tuple[Array, ...]
    values: list[NDArray]
    history: History


def _checksum(path: Path) -> int:
    """CRC-32 of a file's bytes."""
    checksum = 0
    for block in _files.in_blocks(path):
        checksum = zlib.crc32(block, checksum)
    return checksum


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
    seed = int.from_bytes(digest(text.encode(), size=7).digest(), "big")
    return _core.astype(_core.random("uniform", array.shape, seed, 0.0, 1.0, "float64"), array.dtype.name)


def _of_values(array: Array) -> str:
    """The identity of values, with their type and shape. I/O: one read; a write beside where they do not fit into a
    small part of memory."""
    session = current()
    known = digest(f"{array.dtype.str} {array.shape} ".encode())
    matrix = _core.sparse_file(array._expr)
    if matrix is not None:  # the tiles of a sparse matrix in scratch
        for block in _files.in_blocks(Path(matrix)):
            known.update(block)
        return known.hexdigest()
    if array.nbytes <= session.counters()["budget_bytes"] // _SHARE:
        known.update(np.ascontiguousarray(array.compute()).data)
        return known.hexdigest()
    path = Path(session._core.unused_path())
    store({path: array})
    try:
        for block in _files.in_blocks(path, _files.npy_header(path).offset):
            known.update(block)
        return known.hexdigest()
    finally:
        _files.remove(path)


def _packed(values: Sequence[npt.ArrayLike]) -> bytes:
    """An entry: values as `.npy` arrays one after the other, below their length and checksum."""
    body = io.BytesIO()
    for value in values:
        np.lib.format.write_array(body, np.asarray(value), allow_pickle=False)
    return _HEAD.pack(len(body.getvalue()), zlib.crc32(body.getvalue())) + body.getvalue()


def _unpacked(file: BinaryIO) -> list[NDArray] | None:
    """The values of the next entry of a file; None at the end, and where it is torn."""
    head = file.read(_HEAD.size)
    if len(head) < _HEAD.size:
        return None
    length, checksum = _HEAD.unpack(head)
    body = file.read(length)
    if len(body) < length or zlib.crc32(body) != checksum:
        return None
    part, values = io.BytesIO(body), []
    while part.tell() < length:
        values.append(np.lib.format.read_array(part, allow_pickle=False))
    return values


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
    """The folder of a loop, from which the same loop goes on after its process has ended.

    1. `format` names the format of all else. A folder of another format is emptied, with a ResumeWarning.
    2. A state is files of arrays, and a note with their checksums, small values and the history, which is an entry that
       is written last and renamed into place. A state without a whole note, or whose files are not what it says, does
       not count, and the one before it does.
    3. `results` has an entry with the step of a state, 0 before the first, and one for each result that was recorded
       since. An entry that is torn ends it; results of another state than the last do not count.
    4. Of states, contents are durable before names, and names when `save` returns; results are after every so many.
    """

    def __init__(self, every: int, folder: _core.StagesFolder, work: str) -> None:
        self._every, self._folder, self._path = every, folder, Path(folder.path)
        self._results: BinaryIO | None = None
        self.follow(0)
        self._begin(work)

    @classmethod
    def known_by(cls, every: SupportsIndex, work: str, parts: Iterable[str]) -> Checkpoints:
        """The checkpoints of work that is the same where all parts of what tells it are."""
        key = digest("\n".join(parts).encode(), size=16).hexdigest()
        return cls(every.__index__(), current()._core.stages_folder(key, work), work)

    @classmethod
    def hold(
        cls, every: SupportsIndex, state: tuple[Array, ...], first: tuple[tuple[Array, ...], Mapping[str, object]]
    ) -> Checkpoints:
        """The checkpoints of a loop, known by the state it begins with and by what its step gives first."""
        count("iterate", 1, checkpoint=every)
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
        return cls.known_by(every, "a loop", parts)

    def _begin(self, work: str) -> None:
        """Names the format of a new folder, and of one of another format, which is emptied."""
        note = self._path / "format"
        if note.exists() and note.read_bytes() == _FORMAT:
            return
        if older := self._contents():
            said = "has checkpoints of another version of outcore, which are removed: it begins anew"
            warnings.warn(f"{work} ({self._path}) {said}", ResumeWarning, stacklevel=2)
        for path in older:
            _files.remove(path)
        _files.write_durably(note, _FORMAT)
        _files.sync_name(self._path)

    def _contents(self) -> list[Path]:
        """States and results, and all else that is there."""
        return [path for path in self._path.iterdir() if path.name not in ("target", "format", "format.new")]

    def states(self) -> Iterator[State]:
        """The states that are whole, the last one first."""
        for path in sorted(self._path.glob("state-*.note"), reverse=True):
            with suppress(OSError, ValueError, KeyError, TypeError, OutcoreError):
                with path.open("rb") as file:
                    text, *values = _unpacked(file) or []
                note = json.loads(text.tobytes(), object_hook=_number)
                files = [(self._path / name, checksum) for name, checksum in note["files"]]
                if all(_checksum(file) == checksum for file, checksum in files):
                    arrays = tuple(_opened(file) for file, _ in files)
                    yield State(int(note["step"]), arrays, values, note["history"])

    def save(self, step: int, arrays: Sequence[Array], values: Sequence[npt.ArrayLike], history: History) -> None:
        """Stores the state of a step that is a multiple of the interval; those before and recorded results go."""
        if step % self._every:
            return
        stem = f"state-{step:09d}"
        names = [f"{stem}-{place}.npy" for place in range(len(arrays))]
        if names:
            store({str(self._path / name): array for name, array in zip(names, arrays, strict=True)}, overwrite=True)
        files = [(name, _checksum(self._path / name)) for name in names]
        text = json.dumps({"step": step, "files": files, "history": history}, default=_plain).encode()
        entry = _packed([np.frombuffer(text, np.uint8), *values])
        _files.write_durably(self._path / f"{stem}.note", entry)
        for path in sorted(self._path.glob("state-*"), reverse=True):
            if not path.name.startswith(stem):
                _files.remove(path)
        (self._path / "results").unlink(missing_ok=True)
        self.follow(step)

    def follow(self, step: int) -> None:
        """Has results be those that come after the state of this step."""
        if self._results is not None:
            self._results.close()
        self._results, self._step, self._unsynced = None, step, 0

    def _opened_results(self) -> BinaryIO:
        """The file of results behind the entry of their state; emptied where that is another one."""
        if self._results is None:
            path = self._path / "results"
            self._results = path.open("a+b")
            self._results.seek(0)
            first = _unpacked(self._results)
            if first is None or int(first[0]) != self._step:
                self._results.truncate(0)
                self._results.write(_packed([self._step]))
            _files.sync_name(path)
        return self._results

    def recall(self) -> list[NDArray] | None:
        """The next recorded result; None where there is no more."""
        file = self._opened_results()
        place = file.tell()
        entry = _unpacked(file)
        if entry is None:
            file.truncate(place)
            file.seek(place)
        return entry

    def record(self, results: Sequence[NDArray]) -> None:
        """Adds a result; it is durable with every so many."""
        file = self._opened_results()
        file.write(_packed(results))
        self._unsynced = (self._unsynced + 1) % self._every
        if not self._unsynced:
            file.flush()
            os.fsync(file.fileno())

    def kept(self) -> tuple[int, bool]:
        """The step of the last state that is stored, 0 for none, and whether results since are."""
        file = self._results
        return self._step, file is not None and file.tell() > len(_packed([self._step]))

    def close(self, *, is_over: bool) -> None:
        """Leaves the folder to be gone on with, or removes it where the loop is over."""
        if self._results is not None:
            self._results.close()
        if is_over:
            # Before the format: a process that is killed in between leaves nothing that would be of another.
            for path in self._contents():
                _files.discard(path)
            self._folder.remove()
        # With its lock: a traceback that somebody holds, as notebooks do, would keep the same call from going on.
        del self._folder
