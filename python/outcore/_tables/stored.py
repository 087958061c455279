"""Columns that are stored part by part, while nobody knows yet how many rows there will be.

**Contract.** Each column is a `.npy` file, whose header is put right at the end: dates and text keep their type, labels
are int32 codes. In scratch a file goes with the last array that reads it. In a folder of the caller's the columns
stand beside `table.json`, which has their names, in order, and labels: the folder is written in a locked one beside it,
synced, and renamed when all is there, so it is there whole or not at all. Between two parts nothing but the number of
rows is in memory.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO
from urllib.parse import quote

import numpy as np

from outcore._base import files
from outcore._base.system_errors import refusing
from outcore._base.types import DType, NDArray, PathLike
from outcore._lazy.array import Array
from outcore._opening.opening import open as opened
from outcore._run.typed_files import partial_folder
from outcore._session.session import current
from outcore._tables.arrow import Field
from outcore._tables.categorical import Categorical
from outcore._tables.columns import TableColumn
from outcore._tables.memory import working
from outcore.errors import FormatError, TargetExistsError

_HEADER_BYTES = 128
_REWRITE_BYTES = 4 << 20
_NOTE = "table.json"
_NEW = "new"  # in the locked folder


class StoredColumn:
    """A column while it is written: rows of numbers, appended. Integers become float64 when the first element is
    missing, and labels get their codes when all are known: both rewrite the file, once."""

    def __init__(self, field: Field, path: str) -> None:
        self.field = field
        self.path = path
        self.rows = 0
        self.codes: dict[str, int] = {}
        self._file: IO[bytes] = open(path, "wb")  # noqa: SIM115  # closed by `end`
        self._file.write(bytes(_HEADER_BYTES))

    def append(self, numbers: NDArray) -> None:
        """Writes the next rows behind those before."""
        self._file.write(np.ascontiguousarray(numbers).data)
        self.rows += len(numbers)

    def rewrite(self, change: Callable[[NDArray], NDArray], dtype: DType) -> None:
        """Puts changed numbers in the place of all so far. I/O: one read and one write of them."""
        self._file.close()
        new = f"{self.path}.new"
        with open(self.path, "rb") as old, open(new, "wb") as file:
            old.seek(_HEADER_BYTES)
            file.write(bytes(_HEADER_BYTES))
            while block := old.read(_REWRITE_BYTES):
                file.write(np.ascontiguousarray(change(np.frombuffer(block, self.field.dtype))).data)
        os.replace(new, self.path)
        self.field.dtype = dtype
        self._file = open(self.path, "ab")  # noqa: SIM115

    def end(self, dtype: DType) -> None:
        """Writes the header, and closes the file."""
        self._file.close()
        letters = self.field.letters
        shape = (self.rows,) if letters is None or dtype.kind in "SU" else (self.rows, letters)
        said = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
        text = repr(said).encode("latin-1").ljust(_HEADER_BYTES - 11) + b"\n"
        with open(self.path, "r+b") as file:
            file.write(b"\x93NUMPY\x01\x00" + (_HEADER_BYTES - 10).to_bytes(2, "little") + text)

    def close(self) -> None:
        """Closes the file as it is."""
        self._file.close()


class StoredTable:
    """All columns of a table while they are written, in scratch or in a folder."""

    def __init__(self, fields: Sequence[Field], folder: str | None, work: str | None) -> None:
        core = current()._core
        self._folder, self._work = folder, work
        self.columns = [
            StoredColumn(field, core.unused_path() if work is None else os.path.join(work, file_of(field.name)))
            for field in fields
        ]

    def end(self) -> dict[str, TableColumn]:
        """The columns, by name, read from where they are from now on."""
        if self._work is None or self._folder is None:
            return self._in_scratch()
        for column in self.columns:
            is_number = column.field.is_category or column.field.kind.kind not in "mMSU"
            column.end(column.field.dtype if is_number else column.field.kind)
            files.sync(column.path)
        note = [{"name": column.field.name, "labels": column.field.labels} for column in self.columns]
        files.write_durably(Path(self._work) / _NOTE, json.dumps({"columns": note}).encode())
        os.rename(self._work, self._folder)
        files.sync_name(self._folder)
        return columns_of(self._folder)

    def _in_scratch(self) -> dict[str, TableColumn]:
        core = current()._core
        made: dict[str, TableColumn] = {}
        for column in self.columns:
            column.end(column.field.dtype)
            made[column.field.name] = column.field.column(Array(core.hold(column.path)))
        return made

    def discard(self) -> None:
        """Removes what was written."""
        for column in self.columns:
            column.close()
            files.discard(column.path)


@contextmanager
def storing(fields: Sequence[Field], path: PathLike | None, what: str, memory_bytes: int) -> Iterator[StoredTable]:
    """A place for columns, with so much memory for the work on parts; on failure nothing of it stays.

    Raises TargetExistsError for a folder that is there, MemoryLimitError, StorageError.
    """
    with ExitStack() as stack:
        stack.enter_context(working(what, memory_bytes))
        folder = work = None
        if path is not None:
            folder = os.path.abspath(path)
            if os.path.lexists(folder):
                raise TargetExistsError(f"{path} exists; columns are stored in a new folder", {"path": str(path)})
            work = os.path.join(stack.enter_context(partial_folder(str(path), folder)), _NEW)
        stack.enter_context(refusing(path or "scratch", "store columns in"))
        if work is not None:
            os.mkdir(work)
        table = StoredTable(fields, folder, work)
        try:
            yield table
        except BaseException:
            table.discard()
            raise


def file_of(name: str) -> str:
    """The file of a column: its name, with the characters that names of files have not as per cent."""
    return f"{quote(name, safe=' +,;=@()[]{}')}.npy"


def columns_of(folder: PathLike) -> dict[str, TableColumn]:
    """The columns in a folder. Raises FormatError where there are none, and what `oc.open` raises. I/O: headers."""
    note = os.path.join(folder, _NOTE)
    with refusing(note, "read"):
        try:
            content = json.loads(Path(note).read_bytes())
            said = [(str(part["name"]), part["labels"]) for part in content["columns"]]
        except (ValueError, KeyError, TypeError) as error:
            raise FormatError(f"{note}: is no list of columns: {error!r}", {"path": note}) from None
    made: dict[str, TableColumn] = {}
    for name, labels in said:
        column = opened(os.path.join(folder, file_of(name)))
        made[name] = column if labels is None else Categorical(column, labels)
    return made


__all__ = ["StoredColumn", "StoredTable", "columns_of", "file_of", "storing"]
