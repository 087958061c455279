"""Files that pyarrow reads past the page cache, as the engine reads its own, and objects of stores."""

from __future__ import annotations

import errno
import os
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from outcore._base.files import refuse_stub
from outcore._base.urls import is_url, url_of
from outcore._objects.asking import asking, facts_of
from outcore._objects.mounting import StorageOptions, transport_of
from outcore._session.session import current
from outcore.errors import SourceChangedError

if TYPE_CHECKING:
    import pyarrow as pa

    from outcore._objects.transport import ObjectFacts

_ALIGNMENT = 4096  # of offsets, lengths and addresses of direct reads


class _Seekable(ABC):
    """A file as pyarrow has files of Python's: a length, a place, and reads from there."""

    closed = False

    def __init__(self, length: int) -> None:
        self._bytes, self._place = length, 0

    def close(self) -> None:
        self.closed = True

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return True

    def size(self) -> int:
        return self._bytes

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._place = {os.SEEK_SET: 0, os.SEEK_CUR: self._place, os.SEEK_END: self._bytes}[whence] + offset
        return self._place

    def read(self, count: int = -1) -> pa.Buffer:
        """The next bytes: as many as asked for, or as there are. Raises OSError."""
        most = max(self._bytes - self._place, 0)
        part = self._read(self._place, most if count < 0 else min(count, most))
        self._place += part.size
        return part

    def read_buffer(self, count: int = -1) -> pa.Buffer:
        return self.read(count)

    @abstractmethod
    def _read(self, place: int, count: int) -> pa.Buffer:
        """So many bytes from a place on. Raises OSError."""


class ObjectFile(_Seekable):
    """An object of a store: each read is one request. Raises SourceChangedError for one that was replaced meanwhile."""

    def __init__(self, url: str, facts: ObjectFacts) -> None:
        super().__init__(facts[0])
        self._url, self._facts = url, facts

    def _read(self, place: int, count: int) -> pa.Buffer:
        import pyarrow as pa

        buffer = pa.allocate_buffer(count)
        if not count:
            return buffer
        content, filled = np.frombuffer(buffer, np.uint8), 0
        with asking(self._url, "read"):
            facts, parts = transport_of(self._url).read(url_of(self._url).key, place, place + count)
            for part in parts if facts == self._facts else ():
                content[filled : filled + len(part)] = part
                filled += len(part)
        if facts != self._facts:
            raise _changed(self._url)
        return buffer.slice(0, filled)


class DirectFile(_Seekable):
    """A file, opened for reading: each read is one transfer into a buffer of pyarrow's pool, with no copy in the page
    cache. A file system without direct reads (tmpfs) serves them through that cache."""

    def __init__(self, path: str, is_direct: bool) -> None:
        self._handle = self._opened(path, is_direct)
        super().__init__(os.fstat(self._handle).st_size)

    @staticmethod
    def _opened(path: str, is_direct: bool) -> int:
        # A FIFO without a writer would be waited for.
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
        if is_direct and hasattr(os, "O_DIRECT"):
            try:
                return os.open(path, flags | os.O_DIRECT)
            except OSError as error:
                if error.errno != errno.EINVAL:
                    raise
        return os.open(path, flags)

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Closes the file, once."""
        if not self.closed and hasattr(self, "_handle"):
            self.closed = True
            os.close(self._handle)

    def _read(self, place: int, count: int) -> pa.Buffer:
        import pyarrow as pa

        begin = place // _ALIGNMENT * _ALIGNMENT
        length = -(-(place + count) // _ALIGNMENT) * _ALIGNMENT - begin
        buffer = pa.allocate_buffer(length + _ALIGNMENT)
        shift = -buffer.address % _ALIGNMENT
        memory, filled = memoryview(buffer)[shift : shift + length], 0
        while filled < length and filled % _ALIGNMENT == 0:  # a part of a block is the end of the file
            step = os.preadv(self._handle, [memory[filled:]], begin + filled)
            if not step:
                break
            filled += step
        skipped = place - begin
        return buffer.slice(shift + skipped, max(min(count, filled - skipped), 0))


class StampedFile:
    """A file or an object as it was when this was made, opened as often as pyarrow reads it.

    Raises MissingFileError, PermissionDeniedError, StorageError; UnsupportedFormatError for a file of a volume.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._facts = facts_of(path) if is_url(path) else None
        self._stamp = None if is_url(path) else _stamp_of(path)
        if self._facts is None:
            refuse_stub(path, "pyarrow")

    def check(self) -> None:
        """Raises SourceChangedError for another file, or another object, by now."""
        now = _stamp_of(self._path) if self._facts is None else facts_of(self._path)
        if now != (self._stamp if self._facts is None else self._facts):
            raise _changed(self._path)

    def opened(self) -> DirectFile | ObjectFile:
        """The file. Raises SourceChangedError for another one by now; that of an object, when it is read."""
        if self._facts is not None:
            return ObjectFile(self._path, self._facts)
        self.check()
        return DirectFile(self._path, bool(current().options["direct_io"]))


def _stamp_of(path: str) -> tuple[int, int, int]:
    status = os.stat(path)
    return status.st_ino, status.st_size, status.st_mtime_ns


def _changed(path: str) -> SourceChangedError:
    return SourceChangedError(f"{path}: changed since it was opened; open it again", {"path": path})


__all__ = ["DirectFile", "StampedFile", "StorageOptions"]
