"""Files of an Icechunk repository, in a folder or below a URL: headers, Zstandard, names."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from outcore import _core
from outcore._base.files import reading
from outcore._base.system_errors import refusing
from outcore._base.urls import is_url, url_of
from outcore._objects.asking import asking, content_of
from outcore._objects.mounting import transport_of
from outcore._opening.flatbuffer import FlatBuffer
from outcore._session.session import check_room, leave_room
from outcore.errors import (
    FormatError,
    MissingFileError,
    OutcoreError,
    PermissionDeniedError,
    UnsupportedFormatError,
)

_MAGIC = b"ICE\xf0\x9f\xa7\x8aCHUNK"
# The program that wrote a file follows the magic, then version, type of file and compression, a byte each.
_VERSION, _TYPE, _COMPRESSION, _HEADER_BYTES = 36, 37, 38, 39
_VERSIONS, _COMPRESSIONS = (1, 2), (0, 1)  # uncompressed, Zstandard
_FILE_BYTES_MAX = 2 << 30  # of FlatBuffers, packed or not
_PACKED_STEP, _LARGE_BYTES, _COPIES = 1 << 18, 16 << 20, 5
_ALPHABET = np.frombuffer(b"0123456789ABCDEFGHJKMNPQRSTVWXYZ", np.uint8)  # Crockford's
_ID_LETTERS, _LETTER_BITS, _STEP = 20, 5, 1 << 16


class IceFiles:
    """The files of a repository, by their names below its root."""

    def __init__(self, root: str) -> None:
        self.root = root

    def is_repository(self) -> bool:
        """Whether the root is that of a repository: by names, and by the first bytes of a file."""
        if self._content_or_none("repo", len(_MAGIC)) == _MAGIC:
            return True
        if is_url(self.root):
            return self.exists("refs/branch.main/ref.json")
        return all(os.path.isdir(os.path.join(self.root, name)) for name in ("refs", "snapshots"))

    def exists(self, name: str) -> bool:
        """Whether there is a file of that name."""
        return self._content_or_none(name, 1) is not None

    def content(self, name: str) -> bytes:
        """All of a file. Raises MissingFileError, StorageError, FormatError for one of more than 2 GiB."""
        path = f"{self.root}/{name}"
        if is_url(self.root):
            return content_of(path, _FILE_BYTES_MAX)
        with refusing(path, "read"):
            if os.stat(path).st_size > _FILE_BYTES_MAX:
                raise FormatError(f"{path}: has more than {_FILE_BYTES_MAX} bytes", {"path": path})
            with reading(path) as file:
                return file.read()

    def buffer(self, name: str, kind: int) -> FlatBuffer:
        """The FlatBuffer in a file of a type. Raises FormatError for another type, UnsupportedFormatError for versions
        that are not read."""
        path, packed = f"{self.root}/{name}", self.content(name)
        if len(packed) < _HEADER_BYTES or not packed.startswith(_MAGIC) or packed[_TYPE] != kind:
            raise FormatError(f"{path}: has no header of Icechunk's for such a file", {"path": path})
        if packed[_VERSION] not in _VERSIONS or packed[_COMPRESSION] not in _COMPRESSIONS:
            raise UnsupportedFormatError(
                f"{path}: version {packed[_VERSION]} of Icechunk's format, compression {packed[_COMPRESSION]}, which "
                f"are not read",
                {"path": path},
            )
        if packed[_COMPRESSION]:
            return FlatBuffer(path, _unpacked(path, packed))
        return FlatBuffer(path, [packed[_HEADER_BYTES:]])

    def _content_or_none(self, name: str, count: int) -> bytes | None:
        """The first bytes of a file; None where there is no file of that name. Raises StorageError for a store that
        does not answer."""
        path = f"{self.root}/{name}"
        try:
            if is_url(self.root):
                with asking(path, "read"):
                    _, parts = transport_of(path).read(url_of(path).key, 0, count)
                    return b"".join(part.tobytes() for part in parts)[:count]
            with reading(path) as file:
                return file.read(count)
        except (MissingFileError, PermissionDeniedError):  # buckets that may not be listed answer so, too
            return None
        except (OSError, ValueError, OutcoreError):
            if is_url(self.root):
                raise
            return None


def _unpacked(path: str, packed: bytes) -> Iterator[bytes]:
    """The content of a file in parts. Raises FormatError, and MemoryLimitError for more than there is memory for."""
    frames, count, until = _core.Unzstd(path), 0, _LARGE_BYTES
    for begin in range(_HEADER_BYTES, len(packed), _PACKED_STEP):
        step = packed[begin : begin + _PACKED_STEP]
        while step:
            read, part = frames.unpack(step)
            step = step[read:]
            yield part
            count += len(part)
            if count > until:
                until = 2 * count
                _check_room(path, count)
            if count > _FILE_BYTES_MAX:
                raise FormatError(f"{path}: unpacks to more than {_FILE_BYTES_MAX} bytes", {"path": path})
    while not frames.is_between:
        _, part = frames.unpack(b"")
        if not part:
            raise FormatError(f"{path}: cannot be unpacked: the file ends before its content does", {"path": path})
        yield part
    if count > _LARGE_BYTES:
        _check_room(path, count)


def _check_room(path: str, content_bytes: int) -> None:
    """Raises MemoryLimitError where a content does not fit: in parts, whole, and as columns of its tables."""
    bytes = _COPIES * content_bytes
    leave_room(bytes)
    check_room(f"open of {path}", bytes)


def ids_of(rows: npt.NDArray[np.uint8]) -> list[str]:
    """The names of objects by their numbers of twelve bytes: in base 32, five bits a letter, from the first on."""
    letters = np.empty((len(rows), _ID_LETTERS), np.uint8)
    for begin in range(0, len(rows), _STEP):
        part = slice(begin, begin + _STEP)
        bits = np.zeros((len(rows[part]), _ID_LETTERS * _LETTER_BITS), np.uint8)
        bits[:, : 8 * rows.shape[1]] = np.unpackbits(rows[part], axis=1)
        weights = 1 << np.arange(_LETTER_BITS - 1, -1, -1, dtype=np.uint8)
        letters[part] = _ALPHABET[bits.reshape(-1, _ID_LETTERS, _LETTER_BITS) @ weights]
    return [str(id) for id in letters.view(f"S{_ID_LETTERS}").ravel().astype(str).tolist()]


__all__ = ["IceFiles", "ids_of"]
