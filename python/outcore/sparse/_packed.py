"""Files of text that are packed: by gzip, Zstandard, bzip2 or xz, of one or several members, whole or refused."""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, cast

from outcore import _core
from outcore._base.system_errors import refusing
from outcore._base.types import PathLike
from outcore.errors import FormatError, OutcoreError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

# The first bytes of files.
_GZIP, _BZIP2, _XZ, _ZSTD = b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd"
# Of frames of Zstandard that are to be skipped, behind a byte from 0x50 to 0x5f.
_SKIPPED = b"\x2a\x4d\x18"
_BLOCK, _UNPACKED = 1 << 18, 1 << 20


def unpacked(path: PathLike, file: IO[bytes]) -> IO[bytes]:
    """The text of a file, whatever it is packed by; the file is closed with it."""
    head = file.read(len(_XZ))
    file.seek(0)
    if head.startswith(_GZIP):
        return _stream(file, _gzip_blocks(file))
    if head.startswith(_ZSTD) or (head[1:4] == _SKIPPED and 0x50 <= head[0] <= 0x5F):
        return _stream(file, _frames(path, file))
    for mark, member in ((_BZIP2, _bzip2), (_XZ, _xz)):
        if head.startswith(mark):
            return _stream(file, _members(path, file, mark, member))
    return file


# Modules of the compressors are imported by who unpacks, not by all who import outcore.
def _bzip2() -> Any:
    from bz2 import BZ2Decompressor

    return BZ2Decompressor()


def _xz() -> Any:
    from lzma import LZMADecompressor

    return LZMADecompressor()


def _gzip_blocks(file: IO[bytes]) -> Iterator[bytes]:
    from gzip import GzipFile

    with GzipFile(fileobj=file, mode="rb") as packed:
        while block := packed.read(_UNPACKED):
            yield block


def _failures() -> tuple[type[Exception], ...]:
    from lzma import LZMAError

    return EOFError, OSError, zlib.error, LZMAError


class _Packed(io.RawIOBase):
    """The unpacked content of a file, some at a time."""

    def __init__(self, file: IO[bytes], parts: Iterator[bytes]) -> None:
        self._file, self._parts, self._unread = file, parts, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        target = memoryview(buffer).cast("B")
        while not self._unread:
            part = next(self._parts, None)
            if part is None:
                return 0
            self._unread = part
        length = min(len(target), len(self._unread))
        target[:length] = self._unread[:length]
        self._unread = self._unread[length:]
        return length

    def close(self) -> None:
        super().close()
        self._file.close()


def _stream(file: IO[bytes], parts: Iterator[bytes]) -> IO[bytes]:
    return cast(IO[bytes], io.BufferedReader(_Packed(file, parts), _UNPACKED))


def _cut(path: PathLike) -> FormatError:
    return FormatError(f"{path}: cannot be unpacked: the file ends before what is packed in it does")


def _frames(path: PathLike, file: IO[bytes]) -> Iterator[bytes]:
    """The content of frames of Zstandard."""
    packed = _core.Unzstd(str(path))
    unread = b""
    while True:
        unread = unread or file.read(_BLOCK)
        if not unread and packed.is_between:
            return
        read, unpacked = packed.unpack(unread)
        if not unread and not unpacked:
            raise _cut(path)
        unread = unread[read:]
        yield unpacked


def _members(path: PathLike, file: IO[bytes], mark: bytes, member: Callable[[], Any]) -> Iterator[bytes]:
    """The content of the members of a file, one behind the other; zeros may stand between and behind those of xz."""
    unread = file.read(_BLOCK)
    while True:
        while mark == _XZ and unread[:1] == b"\x00":
            unread = unread.lstrip(b"\x00") or file.read(_BLOCK)
        if not unread:
            return
        packed = member()
        while not packed.eof:
            yield packed.decompress(unread, _UNPACKED)
            unread = file.read(_BLOCK) if packed.needs_input else b""
            if packed.needs_input and not unread:
                raise _cut(path)
        unread = packed.unused_data or file.read(_BLOCK)


@contextmanager
def unpacking(path: PathLike) -> Iterator[None]:
    """Failures of reading and of unpacking as outcore's errors."""
    try:
        with refusing(path, "read"):
            yield
    except _failures() as error:
        if isinstance(error, OutcoreError):
            raise
        raise FormatError(f"{path}: cannot be unpacked: {error}") from None


__all__ = ["unpacked", "unpacking"]
