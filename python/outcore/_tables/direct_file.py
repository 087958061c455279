"""Files that pyarrow reads past the page cache, as the engine reads its own."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

_ALIGNMENT = 4096  # of offsets, lengths and addresses of direct reads


class DirectFile:
    """A file, opened for reading, as pyarrow has files of Python's.

    Each read is one transfer into a buffer of pyarrow's pool, with no copy in the page cache. A file system without
    direct reads (tmpfs) goes through that cache.
    """

    closed = False

    def __init__(self, path: str, is_direct: bool) -> None:
        self._handle = self._opened(path, is_direct)
        self._bytes = os.fstat(self._handle).st_size
        self._place = 0

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
        import pyarrow as pa

        count = self._bytes - self._place if count < 0 else count
        begin = self._place // _ALIGNMENT * _ALIGNMENT
        length = -(-(self._place + count) // _ALIGNMENT) * _ALIGNMENT - begin
        buffer = pa.allocate_buffer(length + _ALIGNMENT)
        shift = -buffer.address % _ALIGNMENT
        memory, filled = memoryview(buffer)[shift : shift + length], 0
        while filled < length and filled % _ALIGNMENT == 0:  # a part of a block is the end of the file
            step = os.preadv(self._handle, [memory[filled:]], begin + filled)
            if not step:
                break
            filled += step
        skipped = self._place - begin
        part = buffer.slice(shift + skipped, max(min(count, filled - skipped), 0))
        self._place += part.size
        return part

    read_buffer = read


__all__ = ["DirectFile"]
