"""Paths that lead to a file or into one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from outcore._base.files import reading
from outcore.errors import OutcoreError

_HDF5, _HDF5_PLACES = b"\x89HDF\r\n\x1a\n", (0, 512, 1024, 2048)


class FilePlace(NamedTuple):
    """A file of several arrays, and the path of an array or a folder in it; empty for all of it."""

    path: str
    member: str


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


def is_hdf5(path: str) -> bool:
    """Whether a file begins as HDF5's do, at once or behind a user block."""
    head = head_of(path, _HDF5_PLACES[-1] + len(_HDF5))
    return any(head.startswith(_HDF5, place) for place in _HDF5_PLACES)


__all__ = ["FilePlace", "file_place", "head_of", "is_hdf5"]
