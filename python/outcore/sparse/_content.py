"""The entries of a matrix: in a file, changed by a formula as they pass by, or made when they are first asked for."""

from __future__ import annotations

import os
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np

from outcore import _core
from outcore._base.types import DType, PathLike
from outcore._lazy.array import Array
from outcore._lazy.pickled import Step, rebuilt, steps_of
from outcore._run.running import plan_and_run
from outcore._session.session import Session, current
from outcore._session.whole import whole_run
from outcore.errors import DTypeError, FormatError, SourceChangedError

_NOT_MADE = "a product of two sparse matrices cannot be pickled before it is made: A.copy(path=...) stores it"

# Rows, columns and values of entries, as nodes, to values and whether an entry is kept; None leaves either as it is.
Change = Callable[[Array, Array, Array], tuple[Array | None, Array | None]]


# The value of an entry, and whether it is kept, as they are pickled.
Changes = list[list[Step] | None]


class EntryNodes(NamedTuple):
    """An entry of a file as it passes by: its value, and whether it is kept; and the type that it is stored in."""

    value: Array
    kept: Array | None
    stored: DType | None


def entry(name: str, dtype: DType | None = None) -> Array:
    """The node that stands for a field of an entry: "row", "column", or "value" or "other" of a type."""
    return Array(_core.entry_field(name, None if dtype is None else dtype.name))


def named(dtype: DType | None) -> str:
    """A type as the core names it; that of a pattern is None."""
    return "pattern" if dtype is None else dtype.name


def stored_at(node: _core.Expr, path: PathLike, overwrite: bool) -> _core.Sparse:
    """Stores a matrix and opens what was stored."""
    target: _core.Target = {"path": os.fsdecode(path), "overwrite": overwrite, "chunks": None, "resume": False}
    plan_and_run([node], [target])
    return opened(path)


def opened(path: PathLike) -> _core.Sparse:
    """The matrix of a file."""
    with whole_run("opening of a sparse matrix"):
        return _core.open_sparse(current()._core, os.fsdecode(path))


class Content(ABC):
    """Entries of a matrix. Files that are made of them are in scratch, and go with their last reader."""

    def __init__(self, shape: tuple[int, int], side: int, dtype: DType | None) -> None:
        self.shape, self.side, self.dtype = shape, side, dtype
        self._made: tuple[weakref.ref[Session], _core.Sparse] | None = None

    @property
    @abstractmethod
    def is_plain(self) -> bool:
        """Whether the entries are those of a file as they are stored."""

    @abstractmethod
    def passing(self) -> _core.Sparse:
        """The matrix as operators take it, which make it where it is not made yet."""

    @abstractmethod
    def node(self) -> _core.Expr:
        """The matrix as a result that is stored."""

    @abstractmethod
    def count(self) -> int | None:
        """The number of entries, where it is known."""

    @abstractmethod
    def counted(self, count: int) -> int:
        """Keeps the number of entries."""

    @abstractmethod
    def changed(self, change: Change, dtype: DType | None, *, is_turned: bool = False) -> Content:
        """The entries changed; a `change` that is turned takes columns for rows."""

    def streamed(self) -> _core.Sparse:
        """The matrix as streams of entries read it: in a file, and changed as it passes by."""
        return self.passing()

    def plain(self) -> _core.Sparse:
        """The matrix in a file: one in scratch, made when it is first asked for in a session."""
        session = current()
        if self._made is None or self._made[0]() is not session:
            self._made = weakref.ref(session), self._stored(session)
        return self._made[1]

    def _stored(self, session: Session) -> _core.Sparse:
        return held_of(self.node(), session)

    def places(self) -> Content:
        """The entries without their values."""
        return self.changed(lambda rows, columns, value: (None, None), None)


def held_of(node: _core.Expr, session: Session) -> _core.Sparse:
    """Stores a matrix in scratch, from where it goes with its last reader."""
    return stored_at(node, Path(session._core.unused_path()).with_suffix(".ocs"), False).hold(session._core)


class PassingEntries(Content):
    """Entries of a file, or of the result of an operator, as they are stored or changed by a formula whenever they pass
    by."""

    def __init__(self, core: _core.Sparse, nodes: EntryNodes | None = None) -> None:
        super().__init__(core.shape, core.side, None if core.dtype == "pattern" else np.dtype(core.dtype))
        self._core = core
        self._nodes = nodes
        self._count: int | None = None

    @property
    def is_plain(self) -> bool:
        return self._core.is_plain

    def __reduce__(self) -> tuple[Callable[..., PassingEntries], tuple[Any, ...]]:
        core, nodes = self._core, self._nodes
        if not core.is_result and (core.is_held or not _is_stored(core.path, core.tiles_node.digest)):
            raise DTypeError(
                f"{core.path}: a matrix in scratch, or in a file of others, is known to this process only and cannot "
                f"be pickled: A.copy(path=...) stores it"
            )
        formula = () if nodes is None else (nodes.value, nodes.kept)
        changes = [None if node is None else steps_of(node._expr) for node in formula]
        if not core.is_result:
            return _restored, (str(core.path), core.tiles_node.digest, changes, named(self.dtype))
        base = named(nodes.stored if nodes else self.dtype)
        return _restored_result, (steps_of(core.result_node), self.shape, self.side, base, changes, named(self.dtype))

    def passing(self) -> _core.Sparse:
        return self._core

    def streamed(self) -> _core.Sparse:
        if not self._core.is_made:
            self._core.made_in(held_of(self._core.result_node, current()))
        return self._core

    def _stored(self, session: Session) -> _core.Sparse:
        return held_of(self.node(), session) if self._nodes else self.streamed()

    def plain(self) -> _core.Sparse:
        return self._core if self.is_plain else super().plain()

    def node(self) -> _core.Expr:
        return self._core.stored()

    def count(self) -> int | None:
        return self._core.entries if self._count is None else self._count

    def counted(self, count: int) -> int:
        self._count = count
        return count

    def fields(self) -> tuple[Array, Array, Array]:
        """The row, the column and the value of an entry, as nodes."""
        rows = entry("row")
        value = self._nodes.value if self._nodes else entry("value", self.dtype or np.dtype(bool))
        return rows, entry("column"), rows >= 0 if self.dtype is None else value

    def changed(self, change: Change, dtype: DType | None, *, is_turned: bool = False) -> Content:
        rows, columns = entry("row"), entry("column")
        before = self._nodes or EntryNodes(entry("value", self.dtype or np.dtype(bool)), None, self.dtype)
        value, kept = before.value, before.kept
        new, keeps = change(columns, rows, value) if is_turned else change(rows, columns, value)
        value = value if new is None else new
        # All entries of a pattern are true, whatever values the file has.
        value = rows >= 0 if dtype is None else value.astype(dtype)
        kept = kept if keeps is None else keeps if kept is None else kept & keeps
        return _changed(self._core, EntryNodes(value, kept, before.stored), dtype)


def _changed(core: _core.Sparse, nodes: EntryNodes, dtype: DType | None) -> PassingEntries:
    value = None if dtype is None else nodes.value._expr
    kept = None if nodes.kept is None else nodes.kept._expr
    return PassingEntries(core.changed(value, kept, named(dtype)), nodes)


def _is_stored(path: PathLike, digest: str) -> bool:
    """Whether a file has such tiles, as they are."""
    try:
        return opened(path).tiles_node.digest == digest
    except FormatError:
        return False


def _restored(path: str, digest: str, changes: Changes, dtype: str) -> PassingEntries:
    """The entries of a file as they were pickled."""
    core = opened(path)
    if core.tiles_node.digest != digest:
        raise SourceChangedError(f"{path}: it is not the file that the pickled matrix was of", {"path": path})
    return _with_changes(core, changes, dtype)


def _restored_result(
    steps: list[Step], shape: tuple[int, int], side: int, base: str, changes: Changes, dtype: str
) -> PassingEntries:
    """The entries of the result of an operator as they were pickled."""
    return _with_changes(_core.sparse_result(rebuilt(steps)._expr, shape, side, base), changes, dtype)


def _with_changes(core: _core.Sparse, changes: Changes, dtype: str) -> PassingEntries:
    if not changes:
        return PassingEntries(core)
    value, kept = (None if steps is None else rebuilt(steps) for steps in changes[:2])
    stored = None if core.dtype == "pattern" else np.dtype(core.dtype)
    assert value is not None  # as it was pickled
    return _changed(core, EntryNodes(value, kept, stored), None if dtype == "pattern" else np.dtype(dtype))


class Pending(Content):
    """Entries of a matrix that no program makes, but a call: it is made in scratch when it is first read."""

    def __init__(
        self, make: Callable[[], _core.Sparse], shape: tuple[int, int], side: int, dtype: DType | None
    ) -> None:
        super().__init__(shape, side, dtype)
        self._make = make

    @property
    def is_plain(self) -> bool:
        return False

    def passing(self) -> _core.Sparse:
        return self.plain()

    def _stored(self, session: Session) -> _core.Sparse:
        return self._make()

    def node(self) -> _core.Expr:
        return self.plain().stored()

    def __reduce__(self) -> NoReturn:
        raise DTypeError(_NOT_MADE)

    def count(self) -> int | None:
        return self.plain().entries

    def counted(self, count: int) -> int:
        return count

    def changed(self, change: Change, dtype: DType | None, *, is_turned: bool = False) -> Content:
        return Later(self, lambda: PassingEntries(self.plain()).changed(change, dtype, is_turned=is_turned), dtype)


class Later(Content):
    """Entries of a matrix that is not made yet, changed by a formula as they will pass by."""

    def __init__(self, base: Content, make: Callable[[], Content], dtype: DType | None) -> None:
        super().__init__(base.shape, base.side, dtype)
        self._make = make
        self._count: int | None = None

    def __reduce__(self) -> NoReturn:
        raise DTypeError(_NOT_MADE)

    @property
    def is_plain(self) -> bool:
        return False

    def passing(self) -> _core.Sparse:
        return self._make().passing()

    def streamed(self) -> _core.Sparse:
        return self._make().streamed()

    def node(self) -> _core.Expr:
        return self._make().node()

    def count(self) -> int | None:
        return self._make().count() if self._count is None else self._count

    def counted(self, count: int) -> int:
        self._count = count
        return count

    def changed(self, change: Change, dtype: DType | None, *, is_turned: bool = False) -> Content:
        return Later(self, lambda: self._make().changed(change, dtype, is_turned=is_turned), dtype)


__all__ = [
    "Change",
    "Content",
    "PassingEntries",
    "EntryNodes",
    "Later",
    "Pending",
    "entry",
    "named",
    "opened",
    "stored_at",
]
