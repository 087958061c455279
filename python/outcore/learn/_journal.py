"""Results of the sweeps of a fit in a file: the same fit, started again, takes them from there, not from the data."""

from __future__ import annotations

import io
import os
import struct
import zlib
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO

import numpy as np
from joblib import hash as content_hash

from outcore import _api as oc
from outcore import _core
from outcore._base import files
from outcore._base.types import NDArray
from outcore._lazy.array import Array
from outcore._run.checkpoints import content
from outcore._session.session import current
from outcore.errors import ArgumentError

_HEAD = struct.Struct("<QI")  # bytes of an entry, and their CRC-32


def _packed(arrays: Sequence[NDArray]) -> bytes:
    body = io.BytesIO()
    for array in arrays:
        np.lib.format.write_array(body, np.asarray(array), allow_pickle=False)
    return _HEAD.pack(len(body.getvalue()), zlib.crc32(body.getvalue())) + body.getvalue()


def _unpacked(file: BinaryIO) -> list[NDArray] | None:
    """The arrays of the next entry; None at the end, and where it is torn."""
    head = file.read(_HEAD.size)
    if len(head) < _HEAD.size:
        return None
    length, checksum = _HEAD.unpack(head)
    body = file.read(length)
    if len(body) < length or zlib.crc32(body) != checksum:
        return None
    part, arrays = io.BytesIO(body), []
    while part.tell() < length:
        arrays.append(np.lib.format.read_array(part, allow_pickle=False))
    return arrays


def _identity(value: object) -> str:
    """The identity of data: lazy arrays by their files and formulas, others by their values."""
    return content(value) if isinstance(value, Array) else content_hash(value)


class Journal:
    """The results of a fit's programs in their order, each with its checksum, in a file that is appended to.

    A fit follows from its data, its parameters and these results. So a fit that is started again and is given those
    there are, one after the other, comes to the bits that it had come to, and sweeps the data from there on. The
    file is named by the parameters and the data; an entry that is torn ends it.
    """

    def __init__(self, every: int, name: str, parts: Sequence[object]) -> None:
        if every < 1:
            raise ArgumentError(f"{name}: checkpoint must be at least 1, not {every}")
        key = "\n".join([name, oc.__version__, *map(_identity, parts)])
        digest = blake2b(key.encode(), digest_size=16).hexdigest()
        self._folder: _core.StagesFolder = current()._core.stages_folder(digest, f"a fit of {name}")
        self._path = Path(self._folder.path)
        self.every = every
        self._file = (self._path / "results").open("a+b")
        self._file.seek(0)
        self._recalling, self._unsynced = True, 0

    def recall(self) -> list[NDArray] | None:
        """The next result of the run before; None where there is no more."""
        if not self._recalling:
            return None
        place = self._file.tell()
        entry = _unpacked(self._file)
        if entry is None:
            self._recalling = False
            self._file.truncate(place)
            self._file.seek(place)
        return entry

    def record(self, results: Sequence[NDArray]) -> None:
        """Adds a result; it is durable with the next sync."""
        self._file.write(_packed(results))
        self._unsynced += 1
        if self._unsynced >= self.every:
            self._sync(self._file)
            self._unsynced = 0

    def _sync(self, file: BinaryIO) -> None:
        file.flush()
        os.fsync(file.fileno())

    def keep(self, state: Sequence[NDArray]) -> None:
        """Keeps a state from which the fit goes on without any result before it; those go."""
        files.write_durably(self._path / "state", _packed(state))
        self._forget()

    def kept(self) -> list[NDArray] | None:
        """The state that was kept last, if it is whole."""
        try:
            with (self._path / "state").open("rb") as file:
                state = _unpacked(file)
        except FileNotFoundError:
            return None
        if state is not None:
            self._forget()
        return state

    def _forget(self) -> None:
        """Empties the file: a state may have been kept, and the process killed, before it was."""
        self._recalling, self._unsynced = False, 0
        self._file.truncate(0)
        self._file.seek(0)

    def close(self, *, ended: bool) -> None:
        """Leaves the file to be gone on with, or removes it where the fit has ended."""
        self._file.close()
        if ended:
            self._folder.remove()


__all__ = ["Journal"]
