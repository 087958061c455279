"""Entries sorted by their places on disk and written: the one sort of all that makes stored matrices."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from outcore import _core
from outcore._base.files import load, reading, same_bytes
from outcore._base.types import DType, JSONObject
from outcore._lazy.array import Array
from outcore._lazy.node import expr_dtype
from outcore._opening.opening import open
from outcore._run.run import compute, store
from outcore._run.running import plan_and_run
from outcore._session.progress import of_program
from outcore._session.session import current
from outcore._standard.manipulation import concat
from outcore._standard.searching import where
from outcore._standard.sorting import sort, sort_by
from outcore.errors import ArgumentError, OutcoreError, TargetExistsError
from outcore.sparse._places import is_wide, keys_of
from outcore.sparse._spool import Work
from outcore.sparse._writer import Writer

# The first key of what is not stored: behind all others.
_LEFT_OUT = np.uint64(2**64 - 1)
# Bytes of the head of a stored matrix.
_HEAD_BYTES = 4096


@dataclass(frozen=True)
class Keyed:
    """The matrix to make of entries with so many keys each, and their values behind these."""

    shape: tuple[int, int]
    dtype: DType | None
    side: int
    duplicates: str
    overwrite: bool
    keys: int


@dataclass(frozen=True)
class Tiling:
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

    def numbered(self, rows: Array, columns: Array) -> Tiling:
        """The same entries at other places."""
        return replace(self, rows=rows, columns=columns)

    def transposed(self) -> Tiling:
        """The entries of the transpose."""
        return replace(self, rows=self.columns, columns=self.rows, shape=(self.shape[1], self.shape[0]))


def check_target(target: Path, overwrite: bool, work: Work, name: str) -> None:
    """Raises where a file is in the way that is not this ingest's own, before anything is read."""
    began = any(work.noted(f"{name}-{step}") is not None for step in ("began", "written"))
    if target.exists() and not overwrite and not began:
        raise in_the_way(target)


def in_the_way(target: Path) -> TargetExistsError:
    """The error for a name that another's file has."""
    return TargetExistsError(f"{target}: is there already; overwrite=True replaces it", {"path": str(target)})


def _mark(path: Path) -> list[int] | None:
    """The size of a stored matrix and the checksum of its head, which has that of its directory; None for no file."""
    try:
        with reading(path) as file:
            return [os.stat(path).st_size, zlib.crc32(file.read(_HEAD_BYTES))]
    except OSError:
        return None


def is_matrix(path: Path) -> bool:
    """Whether a matrix of scratch can be opened: its header and directory agree with their checksums, as tiles are
    held against theirs when they are read."""
    try:
        _core.open_sparse(current()._core, path)
    except OutcoreError:
        return False
    return True


class KeyedEntries(NamedTuple):
    """Entries that are to be sorted: keys, the most significant first, then values, if any."""

    columns: Sequence[Array]
    # Arrays that the first keys are put together of.
    pieces: Sequence[Array]
    # Numbers found in the same sweep, and how many entries they say that there are, or what they refuse.
    facts: Sequence[Array]
    counted: Callable[[Sequence[int]], int]


def write_sorted(tiling: Tiling, target: Path, work: Work, name: str) -> None:
    """Writes the matrix of entries. `name` tells the files of this one in `work`."""
    written = work.noted(f"{name}-written")
    if written is not None and written == _mark(target):
        return
    if written is not None and target.exists() and not tiling.overwrite:
        raise in_the_way(target)
    keys = 1 + is_wide(tiling.shape, tiling.side, int(tiling.drop_loops or tiling.mirror))
    dtype = None if tiling.values is None else tiling.values.dtype
    keyed = Keyed(tiling.shape, dtype, tiling.side, tiling.duplicates, tiling.overwrite, keys)
    write_keyed(keyed, lambda: _keyed_entries(tiling, keys), tiling.rows.shape[0], target, work, name)
    if work.resumes:
        work.note(f"{name}-written", _mark(target))
    work.clear(name, f"{name}-began", f"{name}-written")


def write_keyed(
    keyed: Keyed, entries: Callable[[], KeyedEntries], length: int, target: Path, work: Work, name: str
) -> int:
    """Writes the matrix of so many entries by their keys, and gives how many these are. `entries` is asked only where
    they are not stored already."""
    if not length:
        _write(keyed, None, target, work, name)
        return 0
    if keyed.keys == 1 and _noted_sorted(work, f"{name}-sorted") is None:
        parts = _parted(keyed, entries, work, name)
        if _write(keyed, parts, target, work, name):
            return int(parts["count"])
    ordered = _sorted(0, keyed, entries, work, name)
    _write(keyed, ordered, target, work, name)
    return int(ordered["count"])


def _keyed_entries(tiling: Tiling, keys: int) -> KeyedEntries:
    """The keys of entries, and of their mirror images behind all of them; their numbers are checked on the way."""
    rows, columns, of = tiling.rows, tiling.columns, (tiling.shape, tiling.side, keys > 1)
    key_parts = keys_of(rows, columns, *of)
    loops = rows.astype(np.uint64) == columns.astype(np.uint64)
    if tiling.drop_loops:
        key_parts = (where(loops, _LEFT_OUT, key_parts[0]), *key_parts[1:])
    pieces = [key_parts[0]]
    if tiling.mirror:
        first, *others = keys_of(columns, rows, *of)
        images = (where(loops, _LEFT_OUT, first), *others)
        pieces.append(images[0])
        key_parts = tuple(concat([key, image]) for key, image in zip(key_parts, images, strict=True))

    def counted(facts: Sequence[int]) -> int:
        low_row, high_row, low_column, high_column, on_diagonal = facts
        for axis, low, high, length in (
            ("rows", low_row, high_row, tiling.shape[0]),
            ("columns", low_column, high_column, tiling.shape[1]),
        ):
            if low < 0 or high >= length:
                raise ArgumentError(f"sparse: {axis} has {low if low < 0 else high}, the matrix {length}")
        left_out = on_diagonal * (tiling.drop_loops + tiling.mirror)
        return int(rows.shape[0]) * (1 + tiling.mirror) - left_out

    facts = [rows.min(), rows.max(), columns.min(), columns.max(), loops.sum()]
    return KeyedEntries([*key_parts, *([] if tiling.values is None else [tiling.values])], pieces, facts, counted)


def _parted(keyed: Keyed, entries: Callable[[], KeyedEntries], work: Work, name: str) -> JSONObject:
    """Stores the entries in runs whose keys are cut into buckets, where memory does not hold all of them.

    Says how many count, in which files they are, the elements of a run and the splitters of the buckets.
    """
    step = f"{name}-parts"
    note: JSONObject | None = work.noted(step)
    if note is not None:
        counts = [f"{name}-counts.npy"] if note["splitters"] else []
        note = work.noted(step, *note["files"], *counts)
    if note is None:
        note = _part(keyed, entries(), work, name)
        work.note(step, note)
    return note


def _part(keyed: Keyed, entries: KeyedEntries, work: Work, name: str) -> JSONObject:
    columns, keys = list(entries.columns), None
    cuts = work.noted(f"{name}-cuts")
    if cuts is None:
        cuts = {"run": columns[0].shape[0], "splitters": []}
        nodes = [column._expr for column in columns]
        parting = _core.parting(current()._core, nodes[0], nodes[1:]) if keyed.keys == 1 else None
        if parting is not None and parting[1]:
            if not all(_core.is_made_of_stored(piece._expr) for piece in entries.pieces):
                # To look at some of them would be to compute all.
                keys, columns = _stored(columns[:1], entries.facts, [f"{name}-keys.npy"], work), columns[1:]
                columns.insert(0, open(work.path(f"{name}-keys.npy")))
                entries = entries._replace(pieces=columns[:1], facts=[])
            cuts = {"run": parting[0], "splitters": _splitters(entries.pieces, parting[1])}
        if work.resumes:
            work.note(f"{name}-cuts", cuts)
    files = [f"{name}-part-{place}.npy" for place in range(len(columns))]
    if cuts["splitters"]:
        splitters = np.asarray(cuts["splitters"], np.uint64)
        nodes = [column._expr for column in columns]
        parts = map(Array, _core.part(nodes[0], nodes[1:], splitters.view(np.uint8), cuts["run"]))
        facts = _stored(list(parts), entries.facts, [*files, f"{name}-counts.npy"], work)
    else:
        facts = _stored(columns, entries.facts, files, work)
    try:
        count = entries.counted(facts if keys is None else keys)
    except ArgumentError:
        work.drop(*files)
        raise
    work.drop(f"{name}-keys.npy")
    return {"count": count, "files": files, **cuts}


def _stored(columns: Sequence[Array], facts: Sequence[Array], files: Sequence[str], work: Work) -> list[int]:
    """Stores columns, and finds facts in the same sweep."""
    targets: list[_core.Target | None] = [
        {"path": str(work.path(file)), "overwrite": True, "chunks": None, "resume": work.resumes} for file in files
    ]
    nodes = [part._expr for part in (*columns, *facts)]
    results, _ = plan_and_run(nodes, [*targets, *[None] * len(facts)])
    return [int(fact) for fact in results[len(files) :]]  # type: ignore[arg-type]  # numbers


def _splitters(pieces: Sequence[Array], count: int) -> list[int]:
    """Keys that cut all of them about evenly, by looking at some."""
    sampled = [_core.sample_keys(piece._expr) for piece in pieces]
    # Fewer than a page are looked at whole.
    pages = [piece if few is None else Array(few) for piece, few in zip(pieces, sampled, strict=True)]
    sample = np.sort(np.concatenate([compute(page).ravel() for page in pages]))
    cuts = np.arange(1, count + 1) * len(sample) // (count + 1)
    return [int(key) for key in np.unique(sample[cuts])]


def _sorted(key: int, keyed: Keyed, entries: Callable[[], KeyedEntries], work: Work, name: str) -> JSONObject:
    """Stored columns sorted by their keys from one of a number on. The sort is stable: the least significant is the
    first to be sorted by. The columns sorted before are asked for only where they are needed: their files are gone
    else."""
    if key == keyed.keys:
        return _parted(keyed, entries, work, name)
    step = f"{name}-sorted" if not key else f"{name}-sorted-by-{key}"
    note = _noted_sorted(work, step)
    if note is None:
        before = _sorted(key + 1, keyed, entries, work, name)
        columns = [open(work.path(file)) for file in before["files"]]
        by, others_of = columns[key], columns[:key] + columns[key + 1 :]
        ordered, *others = sort_by(by, *others_of) if others_of else (sort(by),)
        others.insert(key, ordered)
        made = [f"{step}-{place}.npy" for place in range(len(others))]
        store(dict(zip(map(str, map(work.path, made)), others, strict=True)), overwrite=True, resume=work.resumes)
        note = {"count": before["count"], "files": made}
        work.note(step, note)
        del columns, by, others_of, ordered, others
        work.drop(*before["files"])
    return note


def _noted_sorted(work: Work, step: str) -> JSONObject | None:
    """The note of sorted columns whose files are as they were written."""
    note = work.noted(step)
    sorted_note: JSONObject | None = None if note is None else work.noted(step, *note["files"])
    return sorted_note


def _write(keyed: Keyed, parts: JSONObject | None, target: Path, work: Work, name: str) -> bool:
    """Writes stored entries, in order or in runs of buckets, as a matrix; whether there was memory for each bucket."""
    session = current()
    began = f"{name}-began"
    # A process that was killed may have given the file its name: it is the same then, or another's and in the way.
    is_there = work.noted(began) is not None and target.exists() and not keyed.overwrite
    path = work.path(f"{name}.ocs") if is_there else target
    if work.resumes:
        work.note(began, True)
    duplicates = "last" if keyed.duplicates == "any" else keyed.duplicates
    overwrite = keyed.overwrite or is_there
    if parts is None:
        with Writer(path, keyed.shape, keyed.dtype, keyed.side, duplicates, overwrite) as writer:
            writer.finish()
    else:
        count, runs = int(parts["count"]), _runs(parts, work, name)
        columns = [open(work.path(file))._expr for file in parts["files"]]
        item = sum(expr_dtype(column).itemsize for column in columns)
        kind = "pattern" if keyed.dtype is None else keyed.dtype.name
        with of_program(session.options) as progress:
            if progress is not None:
                progress.say("writing tiles")

            def report(done: int) -> None:
                if progress is not None:
                    progress.report(done * item, count * item, done, count, done / max(count, 1), None)

            made = _core.assemble_sparse(
                session._core,
                str(path),
                keyed.shape,
                kind,
                keyed.side,
                duplicates,
                overwrite,
                columns,
                keyed.keys,
                count,
                runs,
                None if progress is None else report,
            )
        if made is None:
            return False
    if is_there and not same_bytes(path, target):
        raise in_the_way(target)
    return True


def _runs(parts: JSONObject, work: Work, name: str) -> tuple[int, int, npt.NDArray[np.uint8]] | None:
    """How stored entries lie in runs of buckets; nothing where they are in order."""
    if "run" not in parts:
        return None
    file = work.path(f"{name}-counts.npy")
    counts = load(file) if parts["splitters"] else np.asarray([parts["run"], 0], np.int64)
    return parts["run"], len(parts["splitters"]), counts.ravel().view(np.uint8)


__all__ = ["Keyed", "KeyedEntries", "Tiling", "check_target", "in_the_way", "is_matrix", "write_keyed", "write_sorted"]
