"""Files that may lie in a volume, where Python itself removes, moves or reads them: others stand below their names."""

from __future__ import annotations

import errno
import fcntl
import io
import math
import os
import re
import stat
import warnings
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import zip_longest
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from outcore import _core
from outcore._base.system_errors import refusing
from outcore._base.types import DType, NDArray, PathLike
from outcore.errors import OutcoreError, UnsupportedFormatError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_BLOCK = 4 << 20
_HEADER_MAX = 1 << 20
# How the name of a file of a volume begins, whose bytes are elsewhere.
_STUB = b"\x93OUTCORE-VOLUME\n"
_BUFFER = 1 << 20
# Names of files that are being written: the process, and a number by chance.
_UNFINISHED = re.compile(r"outcore-\d+-[0-9a-f]{8}\.new")


class Header(NamedTuple):
    """The header of a `.npy` file, and the place where its elements begin."""

    shape: tuple[int, ...]
    dtype: DType
    fortran: bool
    offset: int


def remove(path: PathLike) -> None:
    """Removes a file or a folder, if it is there. Raises what `store` raises for such a path."""
    with refusing(path, "remove"):
        if os.path.lexists(path):
            _core.remove(os.fspath(path))


def discard(path: PathLike) -> None:
    """As `remove`; what cannot be removed stays."""
    with suppress(OSError, OutcoreError):
        remove(path)


def is_unfinished(path: PathLike) -> bool:
    """Whether a journal of an output lies beside it, from which a call can go on."""
    target = os.path.realpath(path)
    with suppress(OSError, OutcoreError):
        unfinished = _core.unfinished(os.path.dirname(target))
        return any(os.path.realpath(other) == target for _, other, *_ in unfinished)
    return False


def replace(source: PathLike, target: PathLike) -> None:
    """Gives a file another name, and replaces what has it. Into a volume or out of it the file is copied."""
    _core.replace(os.fspath(source), os.fspath(target))


class _OfVolume(io.RawIOBase):
    """A file whose bytes are on the disks of a volume."""

    def __init__(self, path: str) -> None:
        self.name = path
        self._bytes = os.stat(path).st_size
        self._place = 0
        self.read(1)  # what was moved out of its volume is refused
        self._place = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        place = {os.SEEK_SET: 0, os.SEEK_CUR: self._place, os.SEEK_END: self._bytes}[whence] + offset
        if place < 0:
            raise ValueError(f"{self.name}: there is no byte {place}")
        self._place = place
        return place

    def readinto(self, buffer: WriteableBuffer) -> int:
        target = memoryview(buffer).cast("B")
        data = _core.read_bytes(self.name, self._place, len(target))
        target[: len(data)] = data
        self._place += len(data)
        return len(data)


def is_stub(path: PathLike) -> bool:
    """Whether what stands below a name is no content, but tells of disks that have it."""
    with open(path, "rb") as file:
        return file.read(len(_STUB)) == _STUB


def reading(path: PathLike) -> IO[bytes]:
    """A file opened for reading, also one of a volume. Raises StorageError for one that was moved out of it."""
    if is_stub(path):
        return cast(IO[bytes], io.BufferedReader(_OfVolume(os.fspath(path)), _BUFFER))
    return open(path, "rb")


def refuse_stub(path: PathLike, reader: str) -> None:
    """Raises UnsupportedFormatError for a file of a volume that another library would read by its name."""
    if is_stub(path):
        raise UnsupportedFormatError(f"{path}: is a file of a volume, and {reader} reads plain files only")


def in_blocks(path: PathLike, begin: int = 0) -> Iterator[bytes]:
    """The bytes of a file, some MiB at a time."""
    with reading(path) as file:
        file.seek(begin)
        while block := file.read(_BLOCK):
            yield block


def publish(new: PathLike, target: PathLike) -> None:
    """Gives a finished file its name: the content is durable before the name is, and the name when this returns."""
    sync(new)
    replace(new, target)
    sync_name(target)


def sync(path: PathLike) -> None:
    """Makes the content of a plain file durable."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())


def sync_name(path: PathLike) -> None:
    """Makes the name of a file durable."""
    folder = os.open(os.path.dirname(os.path.abspath(path)), os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def write_durably(path: Path, content: bytes) -> None:
    """Writes a small file, whole or not at all; a plain one, also in a volume."""
    new = path.with_name(f"{path.name}.new")
    with new.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    sync_name(path)


def check_writable(path: Path) -> None:
    """Raises OSError, which names the file, where `write_whole` could not write it: nothing is written."""
    reason = _unwritable(path)
    if reason:
        raise OSError(reason, os.strerror(reason), str(path))


def _unwritable(path: Path) -> int:
    """The number of the system's error for a file that is to be written there; 0 where there is none."""
    if "\0" in str(path):
        return errno.EINVAL
    try:
        is_folder = stat.S_ISDIR(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        folder = path.resolve().parent  # a link may lead to a file that is not there yet
        if not folder.is_dir():
            return errno.ENOTDIR if folder.exists() else errno.ENOENT
        return 0 if os.access(folder, os.W_OK | os.X_OK) else errno.EACCES
    except OSError as error:  # as of names that are too long, and of links in a circle
        return error.errno or errno.EIO
    if is_folder:
        return errno.EISDIR
    return 0 if os.access(path, os.W_OK) else errno.EACCES


def write_whole(path: Path, content: Iterable[bytes]) -> None:
    """Writes a file for users in blocks, whole or not at all; devices and pipes as they are. OSError names the file."""
    is_there, folder = path.exists(), path.resolve().parent
    try:
        if is_there and not (path.is_file() and os.access(path, os.W_OK) and os.access(folder, os.W_OK)):
            _write_blocks(path, content)
        else:
            _exchange(path.resolve(), content)
    except OSError as error:
        error.filename, error.filename2 = str(path), None
        raise


def _exchange(path: Path, content: Iterable[bytes]) -> None:
    """Writes a plain file under another name first, which is locked while its process lives."""
    _clear_unfinished(path.parent)
    new, held = _locked_file(path.parent)
    try:
        _write_blocks(new, content)
        if path.exists():
            new.chmod(path.stat().st_mode & 0o7777)
        new.replace(path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
    finally:
        os.close(held)


def _locked_file(folder: Path) -> tuple[Path, int]:
    """A new file, and the lock on it. Until it is locked it looks as if its process were dead, and may be cleared."""
    while True:
        new = folder / f"outcore-{os.getpid()}-{os.urandom(4).hex()}.new"
        held = os.open(new, os.O_RDONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        with suppress(OSError):  # file systems without locks clear nothing
            fcntl.flock(held, fcntl.LOCK_SH)
        if os.fstat(held).st_nlink:
            return new, held
        os.close(held)


def _clear_unfinished(folder: Path) -> None:
    """Removes files that killed processes were writing: those that no process has locked."""
    with suppress(OSError), os.scandir(folder) as entries:
        for name in [entry.name for entry in entries if _UNFINISHED.fullmatch(entry.name)]:
            _clear_unlocked(folder / name)


def _clear_unlocked(path: Path) -> None:
    with suppress(OSError):
        file = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if stat.S_ISREG(os.fstat(file).st_mode):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()
        finally:
            os.close(file)


def _write_blocks(path: Path, content: Iterable[bytes]) -> None:
    with path.open("wb") as file:
        file.writelines(content)


def same_bytes(path: PathLike, other: PathLike) -> bool:
    """Whether two files have the same content."""
    return all(mine == its for mine, its in zip_longest(in_blocks(path), in_blocks(other)))


def load(path: PathLike) -> NDArray:
    """A `.npy` file in memory."""
    if is_stub(path):
        array: NDArray = np.load(io.BytesIO(b"".join(in_blocks(path))))
    else:
        array = np.load(path)
    return array


def npy_header(path: PathLike) -> Header:
    """The header of a `.npy` file. Raises ValueError where it is none, or shorter than it says."""
    if not is_stub(path):
        with warnings.catch_warnings():  # of Python 2's headers, which are read as well
            warnings.simplefilter("ignore", UserWarning)
            mapped: Any = np.lib.format.open_memmap(path, mode="r")  # nothing is read through the mapping
        fortran = mapped.ndim > 1 and not mapped.flags.c_contiguous
        return Header(mapped.shape, mapped.dtype, fortran, mapped.offset)
    header = npy_header_of(io.BytesIO(_core.read_bytes(os.fspath(path), 0, _HEADER_MAX)))
    if os.stat(path).st_size < header.offset + math.prod(header.shape) * header.dtype.itemsize:
        raise ValueError(f"shorter than {header.shape} of {header.dtype}")
    return header


def npy_header_of(file: IO[bytes]) -> Header:
    """The header of a `.npy` array, whose elements begin where the file stands then. Raises ValueError."""
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = read(file)
    if version == (3, 0) and dtype.names is not None:  # read as Latin-1, which UTF-8 is not
        dtype.names = tuple(name.encode("latin-1").decode() for name in dtype.names)
    if not all(0 <= length < 1 << 63 for length in shape):
        raise ValueError(f"{shape} is no shape")
    return Header(shape, dtype, fortran and len(shape) > 1, file.tell())


__all__ = [
    "Header",
    "check_writable",
    "discard",
    "in_blocks",
    "is_unfinished",
    "load",
    "npy_header",
    "npy_header_of",
    "publish",
    "reading",
    "refuse_stub",
    "remove",
    "replace",
    "same_bytes",
    "sync",
    "sync_name",
    "write_durably",
    "write_whole",
]
