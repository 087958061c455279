"""Places of entries: a number each, or two where 64 bits are too few, in whose order they are stored."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

from outcore._base.types import NDArray
from outcore._lazy.array import Array
from outcore.errors import ArgumentError, ShapeError

IndexArray = TypeVar("IndexArray", Array, NDArray)
# The largest side of a tile: places within it have 15 bits each.
SIDE_MAX = 32768
# Tiles beside each other: their numbers are 32 bits. With it a place within a tile row has at most 62 bits.
TILES_MAX = (1 << 32) - 1
# The longest axis: differences of rows and columns are numbers of 64 bits with a sign.
LENGTH_MAX = 1 << 63


def bits_of(shape: tuple[int, int], side: int) -> tuple[int, int, int]:
    """Bits of a place: of the tile row, of the column of tiles, and of a row or column within a tile."""
    if side < 1 or side > SIDE_MAX or side & (side - 1):
        raise ArgumentError(f"sparse: tiles of {side} rows; a power of two up to {SIDE_MAX} is right")
    if min(shape) < 0:
        raise ShapeError(f"sparse: shape {shape}: lengths cannot be negative")
    if max(shape) > LENGTH_MAX:
        raise ArgumentError(f"sparse: shape {shape}: numbers of rows and columns have 63 bits")
    if -(-shape[1] // side) > TILES_MAX:
        raise ArgumentError(
            f"sparse: {shape[1]} columns are more than {TILES_MAX} tiles of {side}; larger tiles may do"
        )
    within = side.bit_length() - 1
    rows, columns = (max(-(-length // side) - 1, 0).bit_length() for length in shape)
    return rows, columns, within


def is_wide(shape: tuple[int, int], side: int, spare: int = 0) -> bool:
    """Whether a place and `spare` bits beside it are more than 64."""
    rows, columns, within = bits_of(shape, side)
    return rows + columns + 2 * within + spare > 64


def keys_of(
    rows: IndexArray, columns: IndexArray, shape: tuple[int, int], side: int, wide: bool | None = None
) -> tuple[IndexArray, ...]:
    """The keys that entries are sorted by, the most significant first: places; where those are wide (unless told: where
    they must be) the numbers of tile rows, and places within these. Lazy where rows and columns are.
    """
    if is_wide(shape, side) if wide is None else wide:
        return rows.astype(np.uint64) >> np.uint64(bits_of(shape, side)[2]), _within(rows, columns, shape, side)
    return (places_of(rows, columns, shape, side),)


def places_of(rows: IndexArray, columns: IndexArray, shape: tuple[int, int], side: int) -> IndexArray:
    """Numbers in whose order entries are stored: tile row, column of tiles, row and column within the tile.

    Lazy where rows and columns are. Raises ArgumentError where 64 bits are too few; `keys_of` knows what to do then.
    """
    bits, blocks, within = bits_of(shape, side)
    if is_wide(shape, side):
        raise ArgumentError(f"sparse: places in {shape} need {bits + blocks + 2 * within} bits, of 64")
    tile_rows = rows.astype(np.uint64) >> np.uint64(within)
    places: IndexArray = _within(rows, columns, shape, side) | (tile_rows << np.uint64(blocks + 2 * within))
    return places


def _within(rows: IndexArray, columns: IndexArray, shape: tuple[int, int], side: int) -> IndexArray:
    """Places within a tile row."""
    _, _, within = bits_of(shape, side)
    r, c, mask, s = rows.astype(np.uint64), columns.astype(np.uint64), np.uint64(side - 1), np.uint64(within)
    places: IndexArray = ((c >> s) << np.uint64(2 * within)) | ((r & mask) << s) | (c & mask)
    return places


def order_of(keys: tuple[NDArray, ...]) -> npt.NDArray[np.intp]:
    """The order in which keys ascend, equal ones in theirs."""
    return np.argsort(keys[0], kind="stable") if len(keys) == 1 else np.lexsort(keys[::-1])


__all__ = ["bits_of", "is_wide", "keys_of", "order_of", "places_of"]
