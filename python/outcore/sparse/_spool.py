"""The working folder of an ingest, from which a killed one goes on: files in scratch, and entries of an iterator."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from contextvars import ContextVar
from pathlib import Path
from types import TracebackType
from typing import IO, Any, NamedTuple

import numpy as np

from outcore import _core
from outcore._base import files as _files
from outcore._base.digests import digest
from outcore._base.element_types import dtype_of
from outcore._base.system_errors import refusing
from outcore._base.types import DType, JSONObject, NDArray
from outcore._lazy.array import Array
from outcore._run.kept import NamedOutput, of_ingest
from outcore._session.progress import of_loop
from outcore._session.session import current
from outcore._session.whole import under_way, whole_run
from outcore.errors import ArgumentError, DTypeError, FormatError, ShapeError

# Errors that the same call meets again: it leaves nothing to go on with.
_LASTING = (ArgumentError, DTypeError, FormatError, ShapeError)
Chunk = Sequence[NDArray]
# Chunks after which those before are noted: some 64 MiB of text.
_CHUNKS_NOTED = 64
# Bytes of a file that are looked at together.
_BLOCK = 4 << 20


# Whether an ingest is under way.
_is_under_way: ContextVar[bool] = ContextVar("outcore_ingest", default=False)
# The name of the run.
INGEST = "ingest of a sparse matrix"
# The note that all is done.
_DONE = "done"


def _identity(path: Path) -> list[int] | None:
    """The identity of a file under its name; None where there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return [status.st_ino, status.st_size, status.st_mtime_ns]


def stamp_of(path: str | os.PathLike[str]) -> str:
    """The identity of a file as far as it is known without reading: a killed ingest is found by it."""
    status = os.stat(path)
    return f"{os.path.abspath(path)}:{status.st_size}:{status.st_mtime_ns}"


class Work:
    """The folder of an ingest. With a `key` it is found by that again, unless it ends or cannot succeed;
    else it is gone with the ingest, or with its process.

    Invariant: nothing of an earlier process is believed but under its checksum: notes have one, arrays have those of
    their tiles beside them, columns those in their note, and matrices in themselves.
    """

    def __init__(self, key: str | None, target: Path, *, can_resume: bool = True, name: str = INGEST) -> None:
        core = current()._core
        self._name = name  # of the run
        self.resumes, self._can_resume = key is not None, can_resume
        self._output = NamedOutput(target)
        # Of outputs in scratch, and of those that a larger ingest makes, nobody knows.
        self._is_within = _is_under_way.get()
        self._is_asked = not self._is_within and target.parent != Path(core.unused_path()).parent
        self._held: _core.StagesFolder | None = None
        if key is None:
            self.folder = Path(core.unused_path())
            self.folder.mkdir()
        else:
            name = digest(key.encode(), size=16).hexdigest()
            self._held = core.stages_folder(name, str(target))
            self.folder = Path(self._held.path)
        self._notes = self.folder / "notes"
        self._notes.mkdir(exist_ok=True)
        # Steps of this process, and arrays of another that were looked at.
        self._steps: set[str] = set()
        self._believed: set[str] = set()
        self._shown = ExitStack()  # the run that all its programs are, and their progress line

    def __enter__(self) -> Work:
        self._token = _is_under_way.set(True)
        self._shown.enter_context(whole_run(self._name))
        progress = self._shown.enter_context(of_loop(current().options))
        if progress is not None and not progress.figures.loops:
            self._shown.enter_context(progress.loop(""))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _is_under_way.reset(self._token)
        self._shown.__exit__(kind, error, trace)
        if isinstance(error, KeyboardInterrupt) and self._is_asked:
            error.add_note(of_ingest(self._output, resumes=self.resumes, can_resume=self._can_resume))
        # Given back at once: the traceback of an error keeps frames that know this.
        held, self._held = self._held, None
        if held is None:
            _files.discard(self.folder)
        elif kind is None:
            # The note that it is done goes last: an ingest killed before that is resumed.
            self._empty(self.folder, "target", self._notes.name)
            self._empty(self._notes, f"{_DONE}.json")
            held.remove()
        elif issubclass(kind, _LASTING):
            self._forget()
            held.remove()

    @staticmethod
    def _empty(folder: Path, *kept: str) -> None:
        for path in folder.iterdir():
            if path.name not in kept:
                _files.discard(path)

    def _forget(self) -> None:
        """Drops all notes at once: one killed while files go would be taken for one that still has them."""
        gone = self.folder / "no notes"
        _files.discard(gone)
        self._notes.rename(gone)
        self._notes.mkdir()
        _files.discard(gone)

    def done(self, *targets: Path) -> None:
        """Says that all is made, and under its names."""
        run = None if self._is_within else under_way()
        if run is not None:
            run.made(sum(path.stat().st_size for path in targets))
        if self.resumes:
            self.note(_DONE, [_identity(path) for path in targets])

    def is_done(self, *targets: Path) -> bool:
        """Whether a process made all, and was killed before it said so to who had called."""
        said = self.noted(_DONE)
        if said is None:
            return False
        if said == [_identity(path) for path in targets]:
            return True
        self._forget()  # files are gone by now, of which notes may tell
        return False

    def path(self, name: str) -> Path:
        """The path of a file of this ingest."""
        return self.folder / name

    def noted(self, step: str, *arrays: str) -> Any:
        """The note of a step that is done; None where it is not, and where one of its files is not what it was.

        I/O: one read of the arrays that another process has made.
        """
        try:
            said, content = (self._notes / f"{step}.json").read_bytes().split(b" ", 1)
            if int(said, 16) != zlib.crc32(content):
                return None
            note = json.loads(content)
        except (OSError, ValueError):
            return None
        return note if step in self._steps or all(map(self._agrees, arrays)) else None

    def _agrees(self, name: str) -> bool:
        """Whether an array is what was written; one that is not is removed."""
        if self.resumes and name not in self._believed:
            if not _core.agrees(current()._core, self.path(name)):
                return False
            self._believed.add(name)
        return True

    def note(self, step: str, content: object) -> None:
        """Says durably that a step is done, whose files are durable."""
        path, text = self._notes / f"{step}.json", json.dumps(content).encode()
        with refusing(path, "write"):
            _files.write_durably(path, b"%08x " % zlib.crc32(text) + text)
        self._steps.add(step)

    def is_done_here(self, step: str) -> bool:
        """Whether this process did a step."""
        return step in self._steps

    def drop(self, *names: str) -> None:
        """Removes files that no later step reads."""
        for name in names:
            _files.remove(self.path(name))
            _files.discard(self.path(f"{name}.sums"))

    def clear(self, name: str, *kept: str) -> None:
        """Removes the files whose names begin with `name` and a dash, and before them the notes but those `kept`."""
        for note in self._notes.glob(f"{name}-*.json"):
            if note.stem not in kept:
                _files.remove(note)
        self.drop(*(path.name for path in self.folder.glob(f"{name}-*")))


class Done(NamedTuple):
    """How far a killed ingest was: chunks, and entries in them."""

    chunks: int = 0
    entries: int = 0


# The chunks behind those that are done, and what is open while they are read.
Source = Callable[[Done], AbstractContextManager[Iterable[Chunk]]]


def spooled(source: Source, work: Work, kinds: Sequence[DType]) -> tuple[Array, ...]:
    """The columns of all chunks, as lazy arrays of files. `kinds` are the types where there are no chunks.

    Chunks written are noted now and then, and not asked for again. I/O: one write.
    """
    note = work.noted("spool")
    if note is None or not _are_columns(work, note, "spool"):
        note = _spool(source, work, kinds)
        work.note("spool", note)
    count, names = note["count"], note["kinds"]
    if not count:
        return tuple(Array(_core.full([0], 0, kind)) for kind in names)
    core = current()._core
    paths = [str(work.path(f"spool-{place}")) for place in range(len(names))]
    opened = [_core.open_raw(core, path, 0, [count], kind, False) for path, kind in zip(paths, names, strict=True)]
    return tuple(map(Array, opened))


def _spool(source: Source, work: Work, kinds: Sequence[DType]) -> JSONObject:
    before = work.noted("spooling")
    if before is None or not _are_columns(work, before, "spooling"):
        before = {"count": 0, "chunks": 0, "kinds": None, "sums": []}
    done = Done(before["chunks"], before["count"])
    kinds = [np.dtype(kind) for kind in before["kinds"]] if done.chunks else kinds
    files: list[IO[bytes]] = []
    sums: list[int] = before["sums"]

    def said() -> JSONObject:
        for file in files:
            os.fsync(file.fileno())
        return {"count": done.entries, "chunks": done.chunks, "kinds": [kind.name for kind in kinds], "sums": sums}

    with ExitStack() as stack, source(done) as chunks:
        for chunk in chunks:
            with refusing(work.folder, "write"):
                if not files:
                    kinds = [column.dtype for column in chunk]
                    files = [stack.enter_context(_opened(work, *at, done)) for at in enumerate(kinds)]
                    sums = sums or [0] * len(files)
                for place, (file, column) in enumerate(zip(files, chunk, strict=True)):
                    data = np.ascontiguousarray(column).view(np.uint8)
                    _write(file, data.data)
                    if work.resumes:
                        sums[place] = _core.checksum(data, sums[place])
                done = Done(done.chunks + 1, done.entries + len(chunk[0]))
                if work.resumes and done.chunks % _CHUNKS_NOTED == 0:
                    work.note("spooling", said())
        with refusing(work.folder, "write"):
            return said()


def _are_columns(work: Work, note: JSONObject, step: str) -> bool:
    """Whether the columns of an earlier process are what its note says. I/O: one read of them."""
    if not work.resumes or work.is_done_here(step):
        return True
    lengths = [note["count"] * np.dtype(kind).itemsize for kind in note["kinds"]] if note["count"] else []
    checksums = [_checksum(work.path(f"spool-{place}"), length) for place, length in enumerate(lengths)]
    return bool(checksums == note["sums"][: len(lengths)])


def _checksum(path: Path, length: int) -> int | None:
    """The checksum of so many bytes that a file begins with; None where there are fewer."""
    block, checksum = np.empty(min(_BLOCK, max(length, 1)), np.uint8), 0
    try:
        with path.open("rb", buffering=0) as file:
            while length:
                read = file.readinto(block[: min(length, len(block))].data)
                if not read:
                    return None
                checksum, length = _core.checksum(block[:read], checksum), length - read
    except OSError:
        return None
    return checksum


def _opened(work: Work, place: int, kind: DType, done: Done) -> IO[bytes]:
    """A column's file, as long as what is done of it. Chunks are large: nothing is kept back to be written later."""
    file = work.path(f"spool-{place}").open("r+b" if done.chunks else "wb", buffering=0)
    file.truncate(done.entries * kind.itemsize)
    file.seek(0, os.SEEK_END)
    return file


def _write(file: IO[bytes], data: memoryview) -> None:
    """All of it: a call may write less, and tells what is in the way when it is called again."""
    while len(data):
        data = data[file.write(data) :]


def checked(chunks: Iterable[Chunk], ids: DType) -> Iterator[Chunk]:
    """Rows, columns and values, if any, of all chunks: numbers in the type `ids`, values in that of the first ones."""
    kinds: list[DType] | None = None
    for chunk in chunks:
        columns = [np.asarray(column) for column in chunk]
        _check(columns, kinds, ids)
        kinds = kinds or [ids, ids, *(dtype_of(values.dtype) for values in columns[2:])]
        yield [column.astype(kind, copy=False) for column, kind in zip(columns, kinds, strict=True)]


def _check(columns: list[NDArray], kinds: list[DType] | None, ids: DType) -> None:
    """Raises where a chunk is none, or not like the first."""
    if len(columns) not in (2, 3) or (kinds is not None and len(columns) != len(kinds)):
        expected = "2 or 3" if kinds is None else str(len(kinds))
        raise ShapeError(f"sparse: a chunk of {len(columns)} arrays; (rows, columns[, values]) are {expected}")
    if any(column.ndim != 1 or column.shape != columns[0].shape for column in columns):
        raise ShapeError(f"sparse: arrays of a chunk have shapes {', '.join(str(part.shape) for part in columns)}")
    for name, column in zip(("rows", "columns"), columns, strict=False):
        if column.size and column.dtype.kind not in "iu":
            raise DTypeError(f"sparse: {name} of {column.dtype} are no integers")
        if not column.size:
            continue
        low, high = int(column.min()), int(column.max())
        if low < 0 or high > np.iinfo(ids).max:
            raise ArgumentError(f"sparse: {name} has {low if low < 0 else high}, outside of the matrix")
    if kinds is not None and len(kinds) == 3 and not np.can_cast(columns[2].dtype, kinds[2]):
        raise DTypeError(f"sparse: values of {columns[2].dtype} after values of {kinds[2]}")


__all__ = ["INGEST", "Chunk", "Done", "Source", "Work", "checked", "spooled", "stamp_of"]
