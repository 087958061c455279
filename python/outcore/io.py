"""Files read at random, at the speed of the disk and within the memory limit."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from outcore import _core
from outcore._base.arguments import whole
from outcore._base.element_types import DTypeLike
from outcore._base.shortened import call_text, record_text, short_path
from outcore._base.sizes import parse_size
from outcore._base.types import DType, NDArray
from outcore._session.session import check_room, current
from outcore.errors import ArgumentError, IndexingError, ShapeError

_WRITES = 1 << 14  # offsets that one call writes to


class CacheCounters(NamedTuple):
    """The counters of a page cache: pages that were there, that were read, that another was reading; pages that gave
    way; bytes read, bytes written."""

    hits: int
    misses: int
    joins: int
    evictions: int
    bytes_read: int
    bytes_written: int

    def __repr__(self) -> str:
        return record_text(self, self._fields)


class CachedFile:
    """A file behind a page cache, as `cached` gives it. As a context it is flushed in the end.

    >>> import outcore as oc, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.bin"
    >>> _ = path.write_bytes(bytes(range(256)) * 64)
    >>> file = oc.io.cached(path)
    >>> file.read_at([3, 260], 2).tolist()
    [[3, 4], [4, 5]]
    """

    def __init__(self, core: _core.CachedFile, path: Path, mode: str = "r") -> None:
        self._core = core
        self.path = path
        self.mode = mode

    def __len__(self) -> int:
        return self._core.length

    def __repr__(self) -> str:
        return call_text("CachedFile", [repr(short_path(str(self.path), 80)), f"{len(self)} bytes"])

    @property
    def counters(self) -> CacheCounters:
        """The counters of the cache so far."""
        return CacheCounters(*self._core.counters)

    def read_at(self, offsets: npt.ArrayLike, size: int = 1, dtype: DTypeLike = np.uint8) -> NDArray:
        """`size` elements at each of the byte `offsets`: an array of shape (k, size) in `dtype`.

        Offsets may come in any order and more than once; those of a page are read once, neighbours together. Raises
        IndexingError for what lies outside of the file, ArgumentError for a size or a type that cannot be read,
        MemoryLimitError where the result does not fit. I/O: the pages that are not in the cache.
        """
        kind = np.dtype(dtype)
        places = _places("read_at", offsets, kind)
        whole("read_at", 2**63 - 1, size=size)
        count = size * kind.itemsize
        outside = places[(places < 0) | (places > len(self) - count)]
        if outside.size:
            raise IndexingError(f"{self.path}: {count} bytes at {outside[0]} of {len(self)}")
        if count > 2**63 - 1:
            raise ArgumentError(f"read_at: size={size} of {kind}; no file has so many bytes")
        if not count * places.size:
            return np.zeros((places.size, size), kind)
        elements: NDArray = self._core.read(places.astype(np.uint64), count).view(kind)
        return elements.reshape(places.size, size)

    def write_at(self, offsets: npt.ArrayLike, values: npt.ArrayLike) -> None:
        """Writes `values[i]` at byte `offsets[i]`, one after the other: an array of shape (k,) or (k, size), whose
        elements are written as they are, whatever was at those bytes before.

        Whoever reads by this cache sees them at once; the file has them after `flush`. Writes beyond the end make the
        file longer, with zeros between. Raises ArgumentError for a file that was opened for reading and for values
        that cannot be written, ShapeError, IndexingError for an offset below 0, MemoryLimitError, and, once, why
        pages could not be written since the last call. I/O: pages that are written in part and are not there are read;
        dirty ones are written when there are many, or when others need their room, neighbours together.

        >>> import numpy as np, outcore as oc, tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.bin"
        >>> np.zeros(100_000).tofile(path)
        >>> with oc.io.cached(path, mode="r+") as file:
        ...     file.write_at([8 * 70_000, 8 * 5], np.array([1.5, 2.5]))
        >>> np.fromfile(path)[[70_000, 5]]
        array([1.5, 2.5])
        """
        if self.mode == "r":
            raise ArgumentError(f"write_at: {self.path} was opened for reading; mode='r+' writes")
        rows = np.ascontiguousarray(values)
        places = _places("write_at", offsets, rows.dtype)
        if rows.shape[:1] != places.shape or rows.ndim > 2:
            raise ShapeError(f"write_at: {places.size} offsets, values of shape {rows.shape}")
        below = places[places < 0]
        if below.size:
            raise IndexingError(f"write_at: byte {below[0]}")
        if rows.size:
            size, flat = rows.nbytes // places.size, rows.reshape(-1).view(np.uint8)
            # A signal is seen between two calls.
            for start in range(0, places.size, _WRITES):
                some = places[start : start + _WRITES]
                self._core.write(some.astype(np.uint64), flat[start * size : (start + some.size) * size], size)

    def flush(self) -> None:
        """Writes what the file has not yet, and makes it durable.

        Killed before, the file has some of the writes since, and is up to a page longer where it grew. Raises why a
        page could not be written; it is kept, and the next call tries again. I/O: the dirty pages, neighbours together.
        """
        self._core.flush()

    def __enter__(self) -> CachedFile:
        return self

    def __exit__(self, *_: object) -> None:
        if self.mode != "r":
            self.flush()


def _places(name: str, offsets: object, kind: DType) -> NDArray:
    places = np.atleast_1d(np.asarray(offsets))
    if places.ndim != 1 or (places.size and not np.issubdtype(places.dtype, np.integer)):
        raise IndexingError(f"{name}: offsets are whole numbers in a row, not {places.dtype} of {places.shape}")
    if kind.hasobject or kind.subdtype is not None:
        raise ArgumentError(f"{name}: elements of {kind}")
    return places


def cached(
    path: str | os.PathLike[str],
    *,
    mode: Literal["r", "r+"] = "r",
    memory: int | str | None = None,
    page_bytes: int = 4096,
    policy: str = "gclock",
) -> CachedFile:
    """A file that is read at random, and with `mode="r+"` written, through a page cache of its own, past the system's
    (SAFS: Zheng 2013).

    `memory` is what the cache takes of the session's, an eighth unless given, some 1.1 MB at least; `page_bytes` a
    power of two, from the disk's sectors on (512 at the least); `policy` says which page gives way: "lru", "lfu",
    "clock" or "gclock". Nobody else may change the file meanwhile. Raises MissingFileError, MemoryLimitError,
    ArgumentError. I/O: none before `read_at` and `write_at`.

    >>> import numpy as np, outcore as oc, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.bin"
    >>> np.arange(100_000.0).tofile(path)
    >>> oc.io.cached(path).read_at([8 * 70_000, 8 * 5], dtype="float64").ravel()
    array([7.e+04, 5.e+00])
    """
    session = current()
    whole("cached", 2**63 - 1, page_bytes=page_bytes)
    if page_bytes < 512 or page_bytes & (page_bytes - 1):
        raise ArgumentError(f"cached: page_bytes={page_bytes} is no power of two from 512 on")
    try:
        room = _core.cached_memory(session._core, page_bytes) if memory is None else parse_size(memory)
    except ValueError as error:
        raise ArgumentError(f"cached: memory={memory!r}: {error}") from None
    if mode not in ("r", "r+"):
        raise ArgumentError(f"cached: mode={mode!r}; r and r+ are right")
    check_room("cached", room)
    absolute = Path(path).absolute()
    core = _core.CachedFile(session._core, str(absolute), room, page_bytes, policy, mode == "r+")
    return CachedFile(core, absolute, mode)


__all__ = ["CacheCounters", "CachedFile", "cached"]
