"""Paths that lead to a file or into one, and arrays by lists of their chunks."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from outcore import _core
from outcore._base.files import reading
from outcore._lazy.array import Array
from outcore._session.session import current
from outcore.errors import OutcoreError

ChunkRows = npt.NDArray[np.uint64]


class FilePlace(NamedTuple):
    """A file of several arrays, and the path of an array or a folder in it; empty for all of it."""

    path: str
    member: str


class ChunkList(NamedTuple):
    """An array by its chunks, in files that others wrote.

    `document` is what `zarr.json` would say of it; a row has the number of a chunk, in C order of their grid, that of
    its file, its first byte, its bytes, and the codecs that it goes without. With `cut` chunks end where the array
    does.
    """

    document: Mapping[str, Any]
    files: Sequence[str]
    rows: ChunkRows
    cut: bool = False


def file_place(name: str) -> FilePlace | None:
    """The file that a path leads to or into; None where there is none."""
    inner = Path(os.path.abspath(name))
    path = next((above for above in (inner, *inner.parents) if os.path.isfile(above)), None)
    if path is None:
        return None
    return FilePlace(os.fspath(path), "" if path == inner else inner.relative_to(path).as_posix())


def head_of(path: str, count: int) -> bytes:
    """The first bytes of a file; none of one that cannot be read, of which the engine has said why."""
    try:
        with reading(path) as file:
            return file.read(count)
    except (OSError, OutcoreError):
        return b""


def listed(place: FilePlace, chunks: ChunkList) -> Array:
    """The array of a list of chunks. Raises FormatError for chunks that their files do not hold, with the place."""
    rows = np.ascontiguousarray(chunks.rows, np.uint64)
    files, document = list(chunks.files), json.dumps(chunks.document)
    return Array(_core.open_listing(current()._core, (place.path, place.member), document, files, rows, chunks.cut))


__all__ = ["ChunkList", "ChunkRows", "FilePlace", "file_place", "head_of", "listed"]
