"""Entries as places: one number each, in whose order tiles are stored. Computed, sorted and written."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from outcore import _core
from outcore._array import Array
from outcore._progress import live
from outcore._run import compute, open, plan_and_run, store
from outcore.errors import ArgumentError
from outcore.manipulation import concat
from outcore.searching import where
from outcore.sorting import sort, sort_by
from outcore.sparse._places import bits_of, places_of
from outcore.sparse._spool import Work

# The place of what is not stored: behind all others.
_LEFT_OUT = np.uint64(2**64 - 1)
# Entries that are handed to the writer at once: the most, and the part of the budget that they may take.
_SLICE_MAX = 1 << 20
_SLICE_SHARE = 8


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


def write_sorted(wanted: Wanted, target: Path, work: Work, name: str) -> None:
    """Stores places and values, sorts them, writes the matrix. `name` tells the files of this one in `work`."""
    if work.noted(f"{name}-written") is not None and target.exists():
        return
    count = _store_places(wanted, work, name) if wanted.rows.shape[0] else 0
    if count:
        _sort(wanted, work, name)
    _write(wanted, target, work, name, count)
    if work.resumes:
        work.note(f"{name}-written", count)


def _store_places(wanted: Wanted, work: Work, name: str) -> int:
    """Stores the places: a sort of stored keys is a distribution, which took 0.7 of the time of merging computed ones.

    Gives how many of them count. The numbers are checked in the same sweep.
    """
    note = work.noted(f"{name}-places")
    if note is not None:
        return int(note)
    rows, columns = wanted.rows, wanted.columns
    places = places_of(rows, columns, wanted.shape, wanted.side)
    loops = rows.astype(np.uint64) == columns.astype(np.uint64)
    if wanted.drop_loops or wanted.mirror:
        _check_last(wanted)
    kept = where(loops, _LEFT_OUT, places) if wanted.drop_loops else places
    if wanted.mirror:
        mirrored = where(loops, _LEFT_OUT, places_of(columns, rows, wanted.shape, wanted.side))
        kept = concat([kept, mirrored])
    facts = [rows.min(), rows.max(), columns.min(), columns.max(), loops.sum()]
    path = str(work.path(f"{name}-places.npy"))
    target: _core.Target = {"path": path, "overwrite": True, "chunks": None, "resume": work.resumes}
    found, _ = plan_and_run([kept._expr, *(fact._expr for fact in facts)], [target, *[None] * len(facts)])
    low_row, high_row, low_column, high_column, on_diagonal = (int(fact) for fact in found[1:])  # type: ignore[arg-type]  # numbers
    for axis, low, high, length in (
        ("rows", low_row, high_row, wanted.shape[0]),
        ("columns", low_column, high_column, wanted.shape[1]),
    ):
        if low < 0 or high >= length:
            work.drop(f"{name}-places.npy")
            raise ArgumentError(f"sparse: {axis} has {low if low < 0 else high}, the matrix {length}")
    left_out = on_diagonal * (wanted.drop_loops + wanted.mirror)
    count = rows.shape[0] * (1 + wanted.mirror) - left_out
    work.note(f"{name}-places", count)
    return int(count)


def _check_last(wanted: Wanted) -> None:
    """Raises where the last place of a matrix is that of what is left out."""
    if sum(bits_of(wanted.shape, wanted.side)[:2]) + 2 * bits_of(wanted.shape, wanted.side)[2] == 64:
        raise ArgumentError(f"sparse: places in {wanted.shape} take all 64 bits; symmetrize and drop_loops need 63")


def _sort(wanted: Wanted, work: Work, name: str) -> None:
    if work.noted(f"{name}-sorted") is not None:
        return
    places = open(work.path(f"{name}-places.npy"))
    targets: dict[str, Any] = {}
    if wanted.values is None:
        targets[str(work.path(f"{name}-sorted.npy"))] = sort(places)
    else:
        ordered, values = sort_by(places, wanted.values)
        targets[str(work.path(f"{name}-sorted.npy"))] = ordered
        targets[str(work.path(f"{name}-values.npy"))] = values
    store(targets, overwrite=True, resume=work.resumes)
    work.note(f"{name}-sorted", True)
    del places, targets
    work.drop(f"{name}-places.npy")


def _write(wanted: Wanted, target: Path, work: Work, name: str, count: int) -> None:
    """Hands the sorted entries to the writer, some at a time."""
    from outcore._session import current

    session = current()
    kind = "pattern" if wanted.values is None else wanted.values.dtype.name
    duplicates = "last" if wanted.duplicates == "any" else wanted.duplicates
    writer = _core.SparseWriter(
        session._core, str(target), wanted.shape, kind, wanted.side, duplicates, wanted.overwrite
    )
    item = 0 if wanted.values is None else wanted.values.dtype.itemsize
    step = min(session.counters()["budget_bytes"] // _SLICE_SHARE // (8 + item), _SLICE_MAX)
    files = [f"{name}-sorted.npy"] + ([f"{name}-values.npy"] if item else [])
    arrays = [open(work.path(file)) for file in files] if count else []
    with live(session.options["progress"]) as bar:
        for begin in range(0, count, step):
            end = min(begin + step, count)
            part = compute(*(array[begin:end] for array in arrays))
            places, values = part if item else (part, np.zeros(0, np.uint8))
            writer.add(places, np.ascontiguousarray(values).view(np.uint8))
            if bar is not None:
                bar.label = "writing tiles"
                bar.report(end * (8 + item), count * (8 + item), end, count, end / count, None)
    writer.finish()
    if not work.resumes:
        work.drop(*files)


__all__ = ["Wanted", "write_sorted"]
