"""Places of entries: one number each, in whose order they are stored."""

from __future__ import annotations

import os
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from outcore._array import Array
from outcore.errors import ArgumentError, ShapeError

Indices = TypeVar("Indices", Array, npt.NDArray[Any])
PathLike = str | os.PathLike[str]
# The largest side of a tile: places within it have 15 bits each.
SIDE_MAX = 32768
# Tiles beside each other: their numbers are 32 bits.
TILES_MAX = (1 << 32) - 1


def bits_of(shape: tuple[int, int], side: int) -> tuple[int, int, int]:
    """Bits of a place: of the tile row, the column of tiles, and a row or column within a tile."""
    if side < 1 or side & (side - 1):
        raise ArgumentError(f"sparse: tiles of {side} rows; a power of two up to {SIDE_MAX} is right")
    if min(shape) < 0:
        raise ShapeError(f"sparse: shape {shape}: lengths cannot be negative")
    if -(-shape[1] // side) > TILES_MAX:
        raise ArgumentError(
            f"sparse: {shape[1]} columns are more than {TILES_MAX} tiles of {side}; larger tiles may do"
        )
    within = side.bit_length() - 1
    rows, columns = (max(-(-length // side) - 1, 0).bit_length() for length in shape)
    if rows + columns + 2 * within > 64:
        raise ArgumentError(f"sparse: places in {shape} need {rows + columns + 2 * within} bits, of 64")
    return rows, columns, within


def places_of(rows: Indices, columns: Indices, shape: tuple[int, int], side: int) -> Indices:
    """Numbers in whose order entries are stored: tile row, column of tiles, row and column within the tile.

    Lazy where rows and columns are.
    """
    _, blocks, within = bits_of(shape, side)
    r, c, mask = rows.astype(np.uint64), columns.astype(np.uint64), np.uint64(side - 1)
    s = np.uint64(within)
    tile = ((r >> s) << np.uint64(blocks)) | (c >> s)
    places: Indices = (tile << np.uint64(2 * within)) | ((r & mask) << s) | (c & mask)
    return places


__all__ = ["PathLike", "bits_of", "places_of"]
