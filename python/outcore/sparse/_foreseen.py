"""The memory that a file of edges will take, foreseen by some of its lines: a limit that is too small is told before a
long text is read."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from outcore import _core
from outcore._base.files import reading
from outcore._base.system_errors import refusing
from outcore._base.types import PathLike
from outcore._session.session import current
from outcore.errors import FormatError
from outcore.sparse._along import check_room
from outcore.sparse._convert import SIDE
from outcore.sparse._packed import unpacked

# Bytes that are looked at in a place of the file, and the places. Shorter files are read before it matters.
_LOOKED = 128 << 10
_PLACES = 3
_MEBIBYTE = 1 << 20
# A call is refused where there is less than this part of an estimate.
_SURE = 3 / 4


class Lines(NamedTuple):
    """About how many lines with edges a file has, and one more than the largest number that was seen."""

    entries: int
    order: int


def looked_at(source: PathLike, begin: Callable[[], _core.TextLines]) -> Lines | None:
    """Numbers and ends in some lines of a text; nothing of a short text, a packed one, and one with lines that are
    not as they should be: reading says which. I/O: some pages."""
    size, session, lines = os.stat(source).st_size, current()._core, begin()
    if size < _PLACES * _LOOKED:
        return None
    seen, entries, order = 0, 0, 0
    with refusing(source, "open"), reading(Path(source)) as file:
        if unpacked(source, file) is not file:
            return None
        for place in range(_PLACES):
            file.seek((size - _LOOKED) * place // (_PLACES - 1))
            block = file.read(_LOOKED)
            block = block[block.find(b"\n") + 1 if place else 0 : block.rfind(b"\n") + 1]
            try:
                columns = lines.parse(session, block)
            except FormatError:
                return None
            if lines.is_begun and len(columns[0]):
                order = max(order, *(int(column.max()) + 1 for column in columns[:2]))
                entries += len(columns[0])
            seen += len(block)
    return Lines(entries * size // max(seen, 1), order)


def _sorting_bytes(entries: int, has_values: bool) -> int:
    """The least seconds of sorting entries into tiles, in small memory; as measured."""
    each, base = (72, 16) if has_values else (56, 9)
    return min(each * entries, base * _MEBIBYTE + 4 * entries, 32 * _MEBIBYTE)


def _check_room(name: str, need: int, taking: str) -> None:
    """Raises MemoryLimitError, with a limit that works, where the memory is clearly too small."""
    if current().counters()["budget_bytes"] < need * _SURE:
        check_room(name, need, taking)


def check_matrix(name: str, lines: Lines | None, has_values: bool) -> None:
    """Raises MemoryLimitError where the matrix of a text will have no room."""
    if lines is not None:
        need = _sorting_bytes(lines.entries, has_values)
        _check_room(name, need, f"sorting about {lines.entries} entries")


def check_graph(name: str, lines: Lines | None, vertices: int | None, directed: bool, has_values: bool) -> None:
    """Raises MemoryLimitError where the graph of a text will have no room: buffers of 16 MiB, the index of the
    vertices, and the entries of a tile row; as measured."""
    if lines is None:
        return
    order = max(lines.order, vertices or 0)
    entries = lines.entries * (2 - directed)
    row = max(
        each * entries * SIDE // max(order, SIDE) + min(64 * entries, base * _MEBIBYTE)
        for each, base in (((50, 9), (32, 15)) if has_values else ((20, 10),))
    )
    need = max(16 * _MEBIBYTE + 9 * order // 4 + row, _sorting_bytes(entries, has_values))
    _check_room(name, need, f"the lists of about {lines.entries} edges of {order} vertices")


__all__ = ["Lines", "check_graph", "check_matrix", "looked_at"]
