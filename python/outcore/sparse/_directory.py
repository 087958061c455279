"""Entries of each tile of a stored matrix, from the directory and the heads of its tile rows: no entry is read."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from outcore._base.types import NDArray
from outcore._session.whole import whole_run
from outcore.errors import ArgumentError, FormatError, SourceChangedError
from outcore.io import CachedFile, cached
from outcore.sparse._stored import StoredMatrix

# Where the header has the number of tile rows and the place of the directory; see docs/sparse.md.
_TILE_ROWS, _RECORD = 40, 5
_HEAD, _TILE = 24, 4
_HEADS_MAX = 1 << 20  # tiles whose heads are held at once


class TileEntries(NamedTuple):
    """Tiles that have entries: their places in the grid of all tiles, and how many they have. int64."""

    tile_rows: NDArray
    tile_columns: NDArray
    entries: NDArray


def tile_entries(a: StoredMatrix) -> TileEntries:
    """The entries of each tile, in the order of the file. A matrix that is not made yet is made for it.

    Raises ArgumentError for a matrix that is not stored in tiles, SourceChangedError, FormatError. I/O: the directory,
    40 bytes for each tile row, and a page or so for the head of each; no entry.
    """
    core = a._core
    if not core.is_tiled:
        raise ArgumentError(f"{core.path}: is not stored in tiles, and has no directory of them; A.copy(path=...) has")
    with whole_run("scan of the directory of a sparse matrix"):
        rows, columns, entries = _read(cached(core.path), core.file_bytes, a._content.shape[1], core.side)
    return TileEntries(*((columns, rows) if a._transposed else (rows, columns)), entries)


def _read(file: CachedFile, file_bytes: int, columns: int, side: int) -> tuple[NDArray, NDArray, NDArray]:
    path = file.path
    if len(file) != file_bytes:
        raise SourceChangedError(
            f"{path}: changed since it was opened ({file_bytes} bytes then, {len(file)} now); open it again",
            {"path": str(path)},
        )
    number, begin = (int(part) for part in file.read_at([_TILE_ROWS], 2, np.uint64)[0])
    if begin + 8 * _RECORD * number > file_bytes:
        raise FormatError(f"{path}: a directory of {number} tile rows from byte {begin} of {file_bytes}")
    records = file.read_at(begin + 8 * _RECORD * np.arange(number), _RECORD, np.uint64).astype(np.int64)
    numbers, begins, held = records[:, 0], records[:, 1], records[:, 3]
    tiles = file.read_at(begins, 1, np.uint32)[:, 0].astype(np.int64)
    if (tiles > -(-columns // side)).any() or (begins + _HEAD + 4 * _TILE * tiles > begin).any():
        raise FormatError(f"{path}: heads of tile rows name more tiles than there are")
    found_columns, found_entries = [], []
    ends = np.cumsum(tiles)
    first = 0
    while first < number:
        last = max(first + 1, int(np.searchsorted(ends, (ends[first - 1] if first else 0) + _HEADS_MAX)))
        part = slice(first, last)
        within = (
            np.arange(tiles[part].sum())
            - np.repeat(ends[part] - tiles[part], tiles[part])
            + ends[part][0]
            - tiles[first]
        )
        heads = file.read_at(np.repeat(begins[part], tiles[part]) + _HEAD + 4 * _TILE * within, _TILE, np.uint32)
        found_columns.append(heads[:, 0].astype(np.int64))
        found_entries.append(heads[:, 1].astype(np.int64))
        first = last
    tile_columns, entries = (np.concatenate([np.zeros(0, np.int64), *part]) for part in (found_columns, found_entries))
    tile_rows = np.repeat(np.arange(number), tiles)
    sums = np.bincount(tile_rows, entries, minlength=number)
    if (sums != held).any() or (tile_columns >= -(-columns // side)).any():
        raise FormatError(f"{path}: entries of tiles are not those of their tile rows")
    return numbers[tile_rows], tile_columns, entries


__all__ = ["TileEntries", "tile_entries"]
