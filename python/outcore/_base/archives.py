"""`.npy` arrays in zip files: where one lies that is stored as it is, and errors that name the file."""

from __future__ import annotations

import contextlib
import errno
import math
import struct
import tokenize
import zlib
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING

from outcore._base.files import Header, npy_header_of, reading
from outcore.errors import FormatError, OutcoreError

if TYPE_CHECKING:
    from zipfile import ZipFile, ZipInfo

# Errors that zipfile and NumPy raise of bytes that are no file of theirs, beside their own.
_DAMAGED = (
    zlib.error,
    tokenize.TokenError,
    struct.error,
    EOFError,
    IndexError,
    KeyError,
    NotImplementedError,
    OverflowError,
    RuntimeError,  # packed under a password
    SyntaxError,
    TypeError,
    UnicodeError,
    ValueError,
)
# Bytes of a member of a zip file before its name, and the first of them.
# The mark of a member that is not packed.
STORED = 0
_LOCAL_HEADER, _LOCAL_MAGIC = 30, b"PK\x03\x04"


def unzipped(file: IO[bytes]) -> ZipFile:
    """The archive that a file holds, to be read."""
    from zipfile import ZipFile  # and with it all compressors, which imports of outcore do without

    return ZipFile(file)


def _damaged() -> tuple[type[Exception], ...]:
    from lzma import LZMAError
    from zipfile import BadZipFile

    return *_DAMAGED, BadZipFile, LZMAError


@contextlib.contextmanager
def reading_members(name: str) -> Iterator[None]:
    """Bytes that are no member of a zip file, or no array, are a FormatError that names them."""
    try:
        yield
    except OutcoreError:
        raise
    except _damaged() as error:
        raise FormatError(f"{name}: cannot be read: {error}", {"path": name}) from None
    except OSError as error:
        # zipfile seeks to where the file says.
        if error.errno not in (None, errno.EINVAL):
            raise
        raise FormatError(f"{name}: cannot be read: {error}", {"path": name}) from None


def lying_in(archive: str, about: ZipInfo) -> Header:
    """The header of a `.npy` member that is stored as it is; the place of its elements is that in the archive.

    Raises FormatError for a member that is not where the archive says, or shorter than its header says.
    """
    name = f"{archive}: {about.filename}"
    with reading_members(name), reading(archive) as file:
        file.seek(about.header_offset)
        head = file.read(_LOCAL_HEADER)
        if len(head) < _LOCAL_HEADER or not head.startswith(_LOCAL_MAGIC):
            raise FormatError(f"{name}: no member begins at byte {about.header_offset}", {"path": archive})
        names = int.from_bytes(head[26:28], "little") + int.from_bytes(head[28:30], "little")
        begin = about.header_offset + _LOCAL_HEADER + names
        file.seek(begin)
        header = npy_header_of(file)
    need = header.offset - begin + math.prod(header.shape) * header.dtype.itemsize
    if need > about.file_size:
        raise FormatError(
            f"{name}: shape {header.shape} of {header.dtype} needs {need} bytes, the member has {about.file_size}",
            {"path": archive},
        )
    return header


__all__ = ["STORED", "lying_in", "reading_members", "unzipped"]
