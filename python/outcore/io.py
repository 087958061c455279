"""Files read at random, at the speed of the disk and within the memory limit."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from outcore import _core
from outcore._arguments import whole
from outcore._sizes import parse_size
from outcore.errors import ArgumentError, IndexingError


class CacheCounters(NamedTuple):
    """What a page cache has done: pages that were there, that were read, that another was reading; pages that gave way;
    bytes read."""

    hits: int
    misses: int
    joins: int
    evictions: int
    bytes_read: int


class CachedFile:
    """A file behind a page cache, as `cached` gives it.

    >>> import outcore as oc, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.bin"
    >>> _ = path.write_bytes(bytes(range(256)) * 64)
    >>> file = oc.io.cached(path)
    >>> file.read_at([3, 260], 2).tolist()
    [[3, 4], [4, 5]]
    """

    def __init__(self, core: _core.CachedFile, path: Path) -> None:
        self._core = core
        self.path = path

    def __len__(self) -> int:
        return self._core.length

    def __repr__(self) -> str:
        return f"CachedFile({str(self.path)!r}, {len(self)} bytes)"

    @property
    def counters(self) -> CacheCounters:
        """What the cache has done so far."""
        return CacheCounters(*self._core.counters)

    def read_at(self, offsets: Any, size: int = 1, dtype: Any = np.uint8) -> npt.NDArray[Any]:
        """`size` elements at each of the byte `offsets`: an array of shape (k, size) in `dtype`.

        Offsets may come in any order and more than once; those of a page are read once, neighbours together. Raises
        IndexingError for what lies outside of the file, ArgumentError for a size or a type that cannot be read,
        MemoryLimitError where the result does not fit. I/O: the pages that are not in the cache.
        """
        places = np.atleast_1d(np.asarray(offsets))
        kind = np.dtype(dtype)
        if places.ndim != 1 or (places.size and not np.issubdtype(places.dtype, np.integer)):
            raise IndexingError(f"read_at: offsets are whole numbers in a row, not {places.dtype} of {places.shape}")
        whole("read_at", 2**63 - 1, size=size)
        if kind.hasobject or kind.subdtype is not None:
            raise ArgumentError(f"read_at: elements of {kind}")
        count = size * kind.itemsize
        outside = places[(places < 0) | (places > len(self) - count)]
        if outside.size:
            raise IndexingError(f"{self.path}: {count} bytes at {outside[0]} of {len(self)}")
        if not count:
            return np.zeros((places.size, size), kind)
        found: npt.NDArray[Any] = self._core.read(places.astype(np.uint64), count).view(kind)
        return found.reshape(places.size, size)


def cached(
    path: str | os.PathLike[str], *, memory: int | str | None = None, page_bytes: int = 4096, policy: str = "gclock"
) -> CachedFile:
    """A file that is read at random through a page cache of its own, past the system's (SAFS: Zheng 2013).

    `memory` is what the cache takes of the session's, an eighth unless given, some 1.1 MB at least; `policy` says which
    page gives way: "lru", "lfu", "clock" or "gclock". The file must not change meanwhile. Raises MissingFileError,
    MemoryLimitError, ArgumentError. I/O: none before `read_at`.

    >>> import numpy as np, outcore as oc, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.bin"
    >>> np.arange(100_000.0).tofile(path)
    >>> oc.io.cached(path).read_at([8 * 70_000, 8 * 5], dtype="float64").ravel()
    array([7.e+04, 5.e+00])
    """
    from outcore._session import current

    session = current()
    room = session.counters()["budget_bytes"] // 8 if memory is None else parse_size(memory)
    whole("cached", 2**63 - 1, page_bytes=page_bytes)
    if page_bytes < 512 or page_bytes & (page_bytes - 1):
        raise ArgumentError(f"cached: page_bytes={page_bytes} is no power of two from 512 on")
    found = Path(path).absolute()
    return CachedFile(_core.CachedFile(session._core, str(found), room, page_bytes, policy), found)


__all__ = ["CacheCounters", "CachedFile", "cached"]
