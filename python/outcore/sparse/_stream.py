"""Sparse matrices made of others as these pass by: entries in, entries out, one tile row held at a time."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from outcore import _core
from outcore._base import files
from outcore._base.types import DType, NDArray, PathLike
from outcore._lazy.array import Array
from outcore._lazy.hooks import above
from outcore._session.session import current
from outcore.sparse._content import Change, Content, PassingEntries, entry, named, opened, stored_at
from outcore.sparse._places import is_wide, keys_of
from outcore.sparse._spool import Done, Work, spooled
from outcore.sparse._stored import Matrix, StoredMatrix
from outcore.sparse._tiles import Keyed, KeyedEntries, write_keyed

Indices = npt.NDArray[np.uint64]
Values = NDArray


class Part(NamedTuple):
    """Some entries of a matrix; no later ones lie in rows below `until`."""

    rows: Indices
    columns: Indices
    values: Values
    until: int


class _Held:
    """A file in scratch, which goes with this object."""

    def __init__(self, path: Path) -> None:
        weakref.finalize(self, _remove, path)


def _remove(path: Path) -> None:
    files.discard(path)  # the session may have taken it along


class File:
    """Where a matrix or graph that is made goes: to a path, or to scratch, from where it goes with its last reader."""

    def __init__(self, path: PathLike | None, suffix: str = ".ocs") -> None:
        self._is_temporary = path is None
        unused = current()._core.unused_path
        self.path = Path(unused()).with_suffix(suffix) if path is None else Path(path).absolute()

    def holder(self) -> object:
        """An object with which a file in scratch goes; None for one at a path."""
        return _Held(self.path) if self._is_temporary else None

    def opened(self, core: _core.Sparse | None = None) -> Any:
        """The matrix, once it is there; `core` is it where it is open."""
        session = current()._core
        core = core or opened(self.path)
        return above.SparseMatrix(PassingEntries(core.hold(session) if self._is_temporary else core))


def parts(a: StoredMatrix, bytes_each: int) -> Iterator[Part]:
    """The entries as the file has them, whichever way the matrix is read; in memory of so many bytes an entry."""
    side = a._content.side

    def of(block: tuple[Indices, Indices, Values]) -> Part:
        return Part(*block, (int(block[0].max()) // side + 1) * side)

    # No block stays while the next one is read.
    plain = a.T if a._transposed else a
    return map(of, plain._blocks_within(0, bytes_each))


def kind_of(a: StoredMatrix) -> DType | None:
    """The type of the values; nothing of a pattern."""
    return None if a.is_pattern else a.dtype


def changed(
    a: Matrix, change: Change, dtype: DType | None, path: PathLike | None = None, overwrite: bool = False
) -> Matrix:
    """A matrix of the same shape whose entries are some of those of `a`, with other values. `change` sees rows and
    columns as the user does. Lazy without a path."""
    return at(a, a._content.changed(change, dtype, is_turned=a._transposed), path, overwrite)


def at(a: Matrix, content: Content, path: PathLike | None, overwrite: bool) -> Matrix:
    """A matrix that is read as `a` is: of entries as they pass by, or stored at a path."""
    if path is not None:
        content = PassingEntries(stored_at(content.node(), Path(path).absolute(), overwrite))
    return type(a)(content, a._transposed)


# Of the row and the column of an entry to those that it comes to.
Move = Callable[[Array, Array], tuple[Array, Array]]


def moved(a: Matrix, to: Move, shape: tuple[int, int], side: int | None = None) -> Matrix:
    """A matrix whose entries are those of `a` at other places, no two at one. `to` sees and gives the user's rows and
    columns, as nodes. Lazy.

    I/O when it is made: two reads of `a`, a sort of 8 bytes (16 where places are wide) and the value of each entry
    (`oc.sort_by`), a write.
    """
    side = side or a._content.side
    rows, columns = entry("row"), entry("column")
    keys = keys_of(*(to(columns, rows) if a._transposed else to(rows, columns)), shape, side)
    core = a._content.passing().rearranged([key._expr for key in keys], shape, side)
    return type(a)(PassingEntries(core))


def columns_of(a: StoredMatrix) -> tuple[Array, Array, Array]:
    """The user's rows and columns, int64, and the values of all entries, as lazy arrays in the order of the file.

    A matrix that is no file, and one of which a formula keeps some entries, is made by this call."""
    content = a._content
    if not isinstance(content, PassingEntries) or content.count() is None:
        content = PassingEntries(content.plain())
    rows, columns, values = map(Array, content.streamed().columns([node._expr for node in content.fields()]))
    return (columns, rows, values) if a._transposed else (rows, columns, values)


def as_read(a: Matrix, side: int | None = None) -> Matrix:
    """The same matrix as one whose file has the order in which it is read: of a transpose, by its rows. Lazy."""
    return moved(a, lambda rows, columns: (rows, columns), a.shape, side)


def sorted_as_read(a: Matrix, path: PathLike, key: str) -> Matrix:
    """As `as_read`, stored at a path. A call that was killed is found again by its `key`, and goes on.

    I/O: a read of `a`, a write of 8 bytes (16 where places are wide) and the value of each entry, a sort of that, a
    read, a write.
    """
    file, side, dtype = File(path), a._content.side, kind_of(a)
    keys = 1 + is_wide(a.shape, side)

    def entries(done: Done) -> Iterator[tuple[NDArray, ...]]:
        for rows, columns, values in a._blocks_from(done.chunks):
            yield *keys_of(rows, columns, a.shape, side), *([] if dtype is None else [values])

    with Work(key, file.path, can_resume=False) as work:
        kinds = [np.dtype(np.uint64)] * keys + ([] if dtype is None else [dtype])
        keyed = Keyed(a.shape, dtype, side, "refuse", True, keys)

        def keyed_entries() -> KeyedEntries:
            columns = spooled(lambda done: nullcontext(entries(done)), work, kinds)
            return KeyedEntries(columns, columns[:1], [], lambda _: a.nnz)

        write_keyed(keyed, keyed_entries, a.nnz, file.path, work, "rows")
        made: Matrix = file.opened()
        return made


def combined(
    a: Matrix,
    b: Matrix,
    combine: Callable[[Array, Array], Array],
    dtype: DType | None,
    path: PathLike | None = None,
    overwrite: bool = False,
) -> Matrix:
    """The results of `combine` over two matrices of one shape, place by place, without zeros. Lazy without a path.

    It is given the values of both, 0 where there is none. A `b` that is read the other way than `a`, or has tiles of
    another side, is sorted first.
    """
    side = a._content.side
    if a._transposed != b._transposed or b._content.side != side:
        b = as_read(b.T, side).T if a._transposed else as_read(b, side)
    value = combine(entry("value", a.dtype), entry("other", b.dtype))
    # Zeros, and places at which a comparison is false, are no entries.
    kept = (value != 0)._expr
    values = None if dtype is None else value.astype(dtype)._expr
    core = a._content.passing().combined(b._content.passing(), values, kept, named(dtype))
    return at(a, PassingEntries(core), path, overwrite)


__all__ = [
    "File",
    "Part",
    "as_read",
    "at",
    "changed",
    "columns_of",
    "combined",
    "kind_of",
    "moved",
    "parts",
    "sorted_as_read",
]
