"""Where an ingest keeps what it is at: files in scratch, which a killed one finds again; entries from an iterator."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from outcore import _core
from outcore._array import Array
from outcore._node import dtype_of
from outcore.errors import ArgumentError, DTypeError, FormatError, ShapeError

# Errors that the same call meets again: it leaves nothing to go on with.
_LASTING = (ArgumentError, DTypeError, FormatError, ShapeError)
Chunk = Sequence[npt.NDArray[Any]]


def stamp_of(path: str | os.PathLike[str]) -> str:
    """What a file is, as far as can be told without reading it: by it a killed ingest is known."""
    found = os.stat(path)
    return f"{os.path.abspath(path)}:{found.st_size}:{found.st_mtime_ns}"


class Work:
    """The folder of an ingest. With a `key` it is found by that again, unless it ends or cannot succeed;
    else it is gone with the ingest, or with its process."""

    def __init__(self, key: str | None, target: Path) -> None:
        from outcore._session import current

        core = current()._core
        self.resumes = key is not None
        self._held: _core.StagesFolder | None = None
        if key is None:
            self._folder = Path(core.unused_path())
            self._folder.mkdir()
        else:
            name = blake2b(key.encode(), digest_size=16).hexdigest()
            self._held = core.stages_folder(name, str(target))
            self._folder = Path(self._held.path)

    def __enter__(self) -> Work:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._held is None:
            shutil.rmtree(self._folder, ignore_errors=True)
        elif kind is None or issubclass(kind, _LASTING):
            self._held.remove()

    def path(self, name: str) -> Path:
        """The path of a file of this ingest."""
        return self._folder / name

    def noted(self, step: str) -> Any:
        """What `note` said of a step that is done; None where it is not."""
        try:
            return json.loads(self.path(f"{step}.json").read_text())
        except (OSError, ValueError):
            return None

    def note(self, step: str, content: Any) -> None:
        """Says durably that a step is done, whose files are durable."""
        new = self.path(f"{step}.new")
        with new.open("w") as file:
            json.dump(content, file)
            file.flush()
            os.fsync(file.fileno())
        new.replace(self.path(f"{step}.json"))

    def drop(self, *names: str) -> None:
        """Removes files that no later step reads."""
        for name in names:
            self.path(name).unlink(missing_ok=True)


def spooled(chunks: Iterable[Chunk], work: Work, lengths: tuple[int, int] | None) -> tuple[Array, ...]:
    """Rows, columns and values of all chunks, as lazy arrays of files. Without values in the chunks, two arrays.

    I/O: one write of 8 bytes an entry and its value, 16 where numbers of 2³² and more may come.
    """
    from outcore._session import current

    note = work.noted("spool")
    if note is None:
        short = lengths is not None and max(lengths) <= 1 << 32
        note = _spool(chunks, work, np.dtype(np.uint32 if short else np.uint64))
        work.note("spool", note)
    count, kinds = note["count"], note["kinds"]
    if not count:
        return tuple(Array(_core.full([0], 0, kind)) for kind in kinds)
    core = current()._core
    paths = [str(work.path(f"spool-{place}")) for place in range(len(kinds))]
    opened = [_core.open_raw(core, path, 0, [count], kind, False) for path, kind in zip(paths, kinds, strict=True)]
    return tuple(map(Array, opened))


def _spool(chunks: Iterable[Chunk], work: Work, ids: np.dtype[Any]) -> dict[str, Any]:
    count, kinds = 0, [ids, ids]
    files: list[IO[bytes]] = []
    try:
        for chunk in chunks:
            columns = [np.asarray(column) for column in chunk]
            _check(columns, kinds if files else None, ids)
            if not files:
                kinds += [dtype_of(values.dtype) for values in columns[2:]]
                files = [work.path(f"spool-{place}").open("wb") for place in range(len(kinds))]
            for file, column, kind in zip(files, columns, kinds, strict=True):
                file.write(np.ascontiguousarray(column, kind).data)
            count += len(columns[0])
        for file in files:
            file.flush()
            os.fsync(file.fileno())
    finally:
        for file in files:
            file.close()
    return {"count": count, "kinds": [kind.name for kind in kinds]}


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


__all__ = ["Chunk", "Work", "spooled", "stamp_of"]
