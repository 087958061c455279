"""Where an ingest keeps what it is at: files in scratch, which a killed one finds again; entries from an iterator."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from outcore import _core, _files
from outcore._array import Array
from outcore._node import dtype_of
from outcore._system_errors import refusing
from outcore.errors import ArgumentError, DTypeError, FormatError, ShapeError

# Errors that the same call meets again: it leaves nothing to go on with.
_LASTING = (ArgumentError, DTypeError, FormatError, ShapeError)
Chunk = Sequence[npt.NDArray[Any]]
# Chunks after which those before are noted: some 64 MiB of text.
_CHUNKS_NOTED = 64


def stamp_of(path: str | os.PathLike[str]) -> str:
    """What a file is, as far as can be told without reading it: by it a killed ingest is known."""
    found = os.stat(path)
    return f"{os.path.abspath(path)}:{found.st_size}:{found.st_mtime_ns}"


def npy_header(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and type of a `.npy` array, whose elements begin where the file stands then. Raises ValueError."""
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    return shape, dtype


class Work:
    """The folder of an ingest. With a `key` it is found by that again, unless it ends or cannot succeed;
    else it is gone with the ingest, or with its process."""

    def __init__(self, key: str | None, target: Path) -> None:
        from outcore._session import current

        core = current()._core
        self.resumes = key is not None
        self._held: _core.StagesFolder | None = None
        if key is None:
            self.folder = Path(core.unused_path())
            self.folder.mkdir()
        else:
            name = blake2b(key.encode(), digest_size=16).hexdigest()
            self._held = core.stages_folder(name, str(target))
            self.folder = Path(self._held.path)
        self._notes = self.folder / "notes"
        self._notes.mkdir(exist_ok=True)

    def __enter__(self) -> Work:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Given back at once: the traceback of an error keeps frames that know this.
        held, self._held = self._held, None
        if held is None:
            _files.discard(self.folder)
        elif kind is None or issubclass(kind, _LASTING):
            # All notes at once: one killed while files go would be taken for one that still has them.
            gone = self.folder / "no notes"
            _files.discard(gone)
            self._notes.rename(gone)
            held.remove()

    def path(self, name: str) -> Path:
        """The path of a file of this ingest."""
        return self.folder / name

    def noted(self, step: str) -> Any:
        """What `note` said of a step that is done; None where it is not."""
        try:
            return json.loads((self._notes / f"{step}.json").read_text())
        except (OSError, ValueError):
            return None

    def note(self, step: str, content: Any) -> None:
        """Says durably that a step is done, whose files are durable."""
        new = self._notes / f"{step}.new"
        with refusing(new, "write"):
            with new.open("w") as file:
                json.dump(content, file)
                file.flush()
                os.fsync(file.fileno())
            new.replace(self._notes / f"{step}.json")

    def drop(self, *names: str) -> None:
        """Removes files that no later step reads."""
        for name in names:
            _files.remove(self.path(name))

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


def spooled(source: Source, work: Work, kinds: Sequence[np.dtype[Any]]) -> tuple[Array, ...]:
    """The columns of all chunks, as lazy arrays of files. `kinds` are the types where there are no chunks.

    What is written is noted now and then, and not asked for again. I/O: one write.
    """
    from outcore._session import current

    note = work.noted("spool")
    if note is None:
        note = _spool(source, work, kinds)
        work.note("spool", note)
    count, names = note["count"], note["kinds"]
    if not count:
        return tuple(Array(_core.full([0], 0, kind)) for kind in names)
    core = current()._core
    paths = [str(work.path(f"spool-{place}")) for place in range(len(names))]
    opened = [_core.open_raw(core, path, 0, [count], kind, False) for path, kind in zip(paths, names, strict=True)]
    return tuple(map(Array, opened))


def _spool(source: Source, work: Work, kinds: Sequence[np.dtype[Any]]) -> dict[str, Any]:
    before = work.noted("spooling") or {"count": 0, "chunks": 0, "kinds": None}
    done = Done(before["chunks"], before["count"])
    kinds = [np.dtype(kind) for kind in before["kinds"]] if done.chunks else kinds
    files: list[IO[bytes]] = []

    def said() -> dict[str, Any]:
        for file in files:
            os.fsync(file.fileno())
        return {"count": done.entries, "chunks": done.chunks, "kinds": [kind.name for kind in kinds]}

    with ExitStack() as stack, source(done) as chunks:
        for chunk in chunks:
            with refusing(work.folder, "write"):
                if not files:
                    kinds = [column.dtype for column in chunk]
                    files = [stack.enter_context(_opened(work, *at, done)) for at in enumerate(kinds)]
                for file, column in zip(files, chunk, strict=True):
                    _write(file, np.ascontiguousarray(column).view(np.uint8).data)
                done = Done(done.chunks + 1, done.entries + len(chunk[0]))
                if work.resumes and done.chunks % _CHUNKS_NOTED == 0:
                    work.note("spooling", said())
        with refusing(work.folder, "write"):
            return said()


def _opened(work: Work, place: int, kind: np.dtype[Any], done: Done) -> IO[bytes]:
    """A column's file, as long as what is done of it. Chunks are large: nothing is kept back to be written later."""
    file = work.path(f"spool-{place}").open("r+b" if done.chunks else "wb", buffering=0)
    file.truncate(done.entries * kind.itemsize)
    file.seek(0, os.SEEK_END)
    return file


def _write(file: IO[bytes], data: memoryview) -> None:
    """All of it: a call may write less, and tells what is in the way when it is called again."""
    while len(data):
        data = data[file.write(data) :]


def checked(chunks: Iterable[Chunk], ids: np.dtype[Any]) -> Iterator[Chunk]:
    """Rows, columns and values, if any, of all chunks: numbers in the type `ids`, values in that of the first ones."""
    kinds: list[np.dtype[Any]] | None = None
    for chunk in chunks:
        columns = [np.asarray(column) for column in chunk]
        _check(columns, kinds, ids)
        kinds = kinds or [ids, ids, *(dtype_of(values.dtype) for values in columns[2:])]
        yield [column.astype(kind, copy=False) for column, kind in zip(columns, kinds, strict=True)]


def _check(columns: list[npt.NDArray[Any]], kinds: list[np.dtype[Any]] | None, ids: np.dtype[Any]) -> None:
    """Raises where a chunk is none, or not like the first."""
    if len(columns) not in (2, 3) or (kinds is not None and len(columns) != len(kinds)):
        wanted = "2 or 3" if kinds is None else str(len(kinds))
        raise ShapeError(f"sparse: a chunk of {len(columns)} arrays; (rows, columns[, values]) are {wanted}")
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


__all__ = ["Chunk", "Done", "Source", "Work", "checked", "npy_header", "spooled", "stamp_of"]
