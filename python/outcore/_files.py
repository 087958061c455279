"""Files that may lie in a volume, where Python itself removes, moves or reads them: others stand below their names."""

from __future__ import annotations

import io
import math
import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from outcore import _core
from outcore._system_errors import refusing
from outcore.errors import OutcoreError

PathLike = str | os.PathLike[str]
_BLOCK = 4 << 20
_HEADER_MAX = 1 << 20


class Header(NamedTuple):
    """What a `.npy` file says of itself, and where its elements begin."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
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


def replace(source: PathLike, target: PathLike) -> None:
    """Gives a file another name, and replaces what has it. Into a volume or out of it the file is copied."""
    _core.replace(os.fspath(source), os.fspath(target))


def in_blocks(path: PathLike, begin: int = 0) -> Iterator[bytes]:
    """The bytes of a file, some MiB at a time."""
    if _core.is_in_volume(os.fspath(path)):
        while block := _core.read_bytes(os.fspath(path), begin, _BLOCK):
            begin += len(block)
            yield block
        return
    with open(path, "rb") as file:
        file.seek(begin)
        while block := file.read(_BLOCK):
            yield block


def same_bytes(path: PathLike, other: PathLike) -> bool:
    """Whether two files have the same content."""
    return all(mine == its for mine, its in zip_longest(in_blocks(path), in_blocks(other)))


def load(path: PathLike) -> npt.NDArray[Any]:
    """A `.npy` file in memory."""
    if _core.is_in_volume(os.fspath(path)):
        found: npt.NDArray[Any] = np.load(io.BytesIO(b"".join(in_blocks(path))))
    else:
        found = np.load(path)
    return found


def npy_header(path: PathLike) -> Header:
    """The header of a `.npy` file. Raises ValueError where it is none, or shorter than it says."""
    if not _core.is_in_volume(os.fspath(path)):
        mapped: Any = np.lib.format.open_memmap(path, mode="r")  # nothing is read through the mapping
        fortran = mapped.ndim > 1 and not mapped.flags.c_contiguous
        return Header(mapped.shape, mapped.dtype, fortran, mapped.offset)
    file = io.BytesIO(_core.read_bytes(os.fspath(path), 0, _HEADER_MAX))
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = read(file)
    if os.stat(path).st_size < file.tell() + math.prod(shape) * dtype.itemsize:
        raise ValueError(f"shorter than {shape} of {dtype}")
    return Header(shape, dtype, fortran and len(shape) > 1, file.tell())


__all__ = ["Header", "discard", "in_blocks", "load", "npy_header", "remove", "replace", "same_bytes"]
