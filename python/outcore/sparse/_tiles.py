"""Entries sorted by their places on disk and written: the one sort of all that makes stored matrices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from outcore import _core
from outcore._array import Array
from outcore._files import npy_header, same_bytes
from outcore._progress import live
from outcore._run import compute, open, plan_and_run, store
from outcore._system_errors import refusing
from outcore.errors import ArgumentError, MemoryLimitError, TargetExistsError
from outcore.manipulation import concat
from outcore.searching import where
from outcore.sorting import sort, sort_by
from outcore.sparse._places import is_wide, keys_of
from outcore.sparse._spool import Work
from outcore.sparse._writer import Writer

# The first key of what is not stored: behind all others.
_LEFT_OUT = np.uint64(2**64 - 1)
# Entries that are handed to the writer at once: the most, and the part of the budget that they may take.
_SLICE_MAX = 1 << 20
_SLICE_SHARE = 8


@dataclass(frozen=True)
class Keyed:
    """What is made of entries with so many keys each, and their values behind these."""

    shape: tuple[int, int]
    dtype: np.dtype[Any] | None
    side: int
    duplicates: str
    overwrite: bool
    keys: int


@dataclass(frozen=True)
class Wanted:
    """Entries, and what is to become of them. Where `mirror`, `values` are those of the entries and of their images."""

    rows: Array
    columns: Array
    values: Array | None
    shape: tuple[int, int]
    side: int
    duplicates: str
    mirror: bool
    drop_loops: bool
    overwrite: bool

    def numbered(self, rows: Array, columns: Array) -> Wanted:
        """The same entries at other places."""
        return replace(self, rows=rows, columns=columns)

    def transposed(self) -> Wanted:
        """The entries of the transpose."""
        return replace(self, rows=self.columns, columns=self.rows, shape=(self.shape[1], self.shape[0]))


def check_target(target: Path, overwrite: bool, work: Work, name: str) -> None:
    """Raises where a file is in the way that is not this ingest's own, before anything is read."""
    began = any(work.noted(f"{name}-{step}") is not None for step in ("began", "written"))
    if target.exists() and not overwrite and not began:
        raise TargetExistsError(f"{target}: is there already; overwrite=True replaces it", {"path": str(target)})


def write_sorted(wanted: Wanted, target: Path, work: Work, name: str) -> None:
    """Stores the keys of entries, sorts them, writes the matrix. `name` tells the files of this one in `work`."""
    if work.noted(f"{name}-written") is not None and target.exists():
        return
    keys = 1 + is_wide(wanted.shape, wanted.side, int(wanted.drop_loops or wanted.mirror))
    files = [f"{name}-key{place}.npy" for place in range(keys)]
    count = _store_keys(wanted, files, work, name) if wanted.rows.shape[0] else 0
    dtype = None if wanted.values is None else wanted.values.dtype
    values = () if wanted.values is None else (wanted.values,)
    keyed = Keyed(wanted.shape, dtype, wanted.side, wanted.duplicates, wanted.overwrite, keys)
    write_keyed(keyed, lambda: [*(open(work.path(file)) for file in files), *values], count, target, work, name, files)
    if work.resumes:
        work.note(f"{name}-written", count)


def write_keyed(
    keyed: Keyed,
    columns: Callable[[], Sequence[Array]],
    count: int,
    target: Path,
    work: Work,
    name: str,
    files: Sequence[str] = (),
) -> None:
    """Sorts stored keys with their values and writes the matrix of the first `count` of them.

    `columns` gives the keys, the most significant first, and the values if any; it is asked only where they are not
    sorted already. `files` are those that nothing reads after the sort.
    """
    _write(keyed, _sort(keyed.keys, columns, work, name, files) if count else [], count, target, work, name)


def _store_keys(wanted: Wanted, files: list[str], work: Work, name: str) -> int:
    """Stores the keys: a sort of stored keys is a distribution, which took 0.7 of the time of merging computed ones.

    Gives how many of them count. The numbers are checked in the same sweep.
    """
    note = work.noted(f"{name}-places")
    if note is not None:
        return int(note)
    rows, columns, of = wanted.rows, wanted.columns, (wanted.shape, wanted.side, len(files) > 1)
    keys = keys_of(rows, columns, *of)
    loops = rows.astype(np.uint64) == columns.astype(np.uint64)
    if wanted.drop_loops:
        keys = (where(loops, _LEFT_OUT, keys[0]), *keys[1:])
    if wanted.mirror:
        first, *others = keys_of(columns, rows, *of)
        images = (where(loops, _LEFT_OUT, first), *others)
        keys = tuple(concat([key, image]) for key, image in zip(keys, images, strict=True))
    facts = [rows.min(), rows.max(), columns.min(), columns.max(), loops.sum()]
    targets: list[_core.Target | None] = [
        {"path": str(work.path(file)), "overwrite": True, "chunks": None, "resume": work.resumes} for file in files
    ]
    nodes = [part._expr for part in (*keys, *facts)]
    found, _ = plan_and_run(nodes, [*targets, *[None] * len(facts)])
    low_row, high_row, low_column, high_column, on_diagonal = (int(fact) for fact in found[len(files) :])  # type: ignore[arg-type]  # numbers
    for axis, low, high, length in (
        ("rows", low_row, high_row, wanted.shape[0]),
        ("columns", low_column, high_column, wanted.shape[1]),
    ):
        if low < 0 or high >= length:
            work.drop(*files)
            raise ArgumentError(f"sparse: {axis} has {low if low < 0 else high}, the matrix {length}")
    left_out = on_diagonal * (wanted.drop_loops + wanted.mirror)
    count = rows.shape[0] * (1 + wanted.mirror) - left_out
    work.note(f"{name}-places", count)
    return int(count)


def _sort(keys: int, columns: Callable[[], Sequence[Array]], work: Work, name: str, files: Sequence[str]) -> list[Path]:
    """The columns sorted by the first `keys` of them, in files. The sort is stable: the least significant is the first
    to be sorted by."""
    found: list[Array] = []
    for key in reversed(range(keys)):
        step = "sorted" if not key else f"sorted-by-{key}"
        if work.noted(step := f"{name}-{step}") is None:
            found = found or list(columns())
            by, rest = found[key], found[:key] + found[key + 1 :]
            ordered, *others = sort_by(by, *rest) if rest else (sort(by),)
            others.insert(key, ordered)
            made = [f"{step}-{place}.npy" for place in range(len(others))]
            store(dict(zip(map(str, map(work.path, made)), others, strict=True)), overwrite=True, resume=work.resumes)
            work.note(step, made)
            del found, by, rest, ordered, others
            work.drop(*files)
        files = work.noted(step)
        found = [open(work.path(file)) for file in files] if key else []
    return [work.path(file) for file in files]


def _write(keyed: Keyed, columns: list[Path], count: int, target: Path, work: Work, name: str) -> None:
    """Hands the sorted entries to the writer, some at a time."""
    from outcore._session import current

    session = current()
    began = f"{name}-began"
    # A process that was killed may have given the file its name: it is the same then, or another's and in the way.
    is_there = work.noted(began) is not None and target.exists() and not keyed.overwrite
    path = work.path(f"{name}.ocs") if is_there else target
    if work.resumes:
        work.note(began, True)
    duplicates = "last" if keyed.duplicates == "any" else keyed.duplicates
    item = 8 * keyed.keys + (0 if keyed.dtype is None else keyed.dtype.itemsize)
    step = max(1, min(session.counters()["budget_bytes"] // _SLICE_SHARE // item, _SLICE_MAX))
    overwrite = keyed.overwrite or is_there
    with (
        Writer(path, keyed.shape, keyed.dtype, keyed.side, duplicates, overwrite) as writer,
        live(session.options["progress"]) as bar,
    ):
        for end, parts in _slices(columns, count, step):
            writer.add(parts[: keyed.keys], parts[-1])
            del parts  # they are of the budget that the next ones need
            if bar is not None:
                bar.label = "writing tiles"
                bar.report(end * item, count * item, end, count, end / count, None)
        writer.finish()
    if is_there and not same_bytes(path, target):
        raise TargetExistsError(f"{target}: is there already; overwrite=True replaces it", {"path": str(target)})


def _slices(columns: list[Path], count: int, step: int) -> Iterator[tuple[int, tuple[npt.NDArray[Any], ...]]]:
    """Stored columns, `step` entries at a time, and where each part ends.

    The next one is read while one is worked on, if there is memory for both; else after it.
    """
    stored = [_Stored.of(column) for column in columns]

    def read(begin: int) -> tuple[npt.NDArray[Any], ...]:
        part = compute(*(column.part(begin, min(begin + step, count)) for column in stored))
        return part if isinstance(part, tuple) else (part,)

    if not count:
        return
    with ThreadPoolExecutor(1) as ahead:
        # The session in use is that of the context.
        following = ahead.submit(copy_context().run, read, 0)
        for begin in range(0, count, step):
            try:
                parts = following.result()
            except MemoryLimitError:
                # What it stood beside is gone now.
                parts = read(begin)
            if begin + step < count:
                following = ahead.submit(copy_context().run, read, begin + step)
            yield min(begin + step, count), parts
            del parts


class _Stored(NamedTuple):
    """A `.npy` file of one axis whose parts are read whole: tiles of the file would be cut, and take more memory."""

    path: Path
    begin: int
    dtype: np.dtype[Any]

    @classmethod
    def of(cls, path: Path) -> _Stored:
        """Looks at its header."""
        with refusing(path, "read"):
            header = npy_header(path)
        return cls(path, header.offset, header.dtype)

    def part(self, begin: int, end: int) -> Array:
        """Elements, lazily."""
        from outcore._session import current

        at = self.begin + begin * self.dtype.itemsize
        return Array(_core.open_raw(current()._core, str(self.path), at, [end - begin], self.dtype.name, False))


__all__ = ["Keyed", "Wanted", "check_target", "write_keyed", "write_sorted"]
