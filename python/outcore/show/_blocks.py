"""Blocks of matrices in one read: sums and extremes of all rows and columns of a cell.

The matrix is cut into bands of columns, each as wide as the tiles of its file allow, and padded to whole blocks. The
sum over the rows and columns of a block then is that of a reshaped band, and works on one tile after the other. Blocks
that two bands have in common are joined in the end, which is why cells are sums and extremes, and no means.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from outcore._base.element_types import DTypeLike
from outcore._base.types import NDArray
from outcore._lazy.array import Array
from outcore._numpy_like.arranging import pad
from outcore._run.run import compute, explain
from outcore._standard.manipulation import permute_dims, reshape
from outcore._standard.statistical import max, min, sum
from outcore.errors import MemoryLimitError

# Arrays that are made of a part of the data, and computed together.
PartArrays = Sequence[Array]
BlockReduction = Literal["sum", "max", "min"]

# The rows of a tile, as long as a band is wide, are of so many bytes, or of one tile; nothing of the machine may enter
# here, for the order of additions follows from it.
_BAND_BYTES, _BANDS_MAX = 4 << 20, 128
# Bytes of pages at the ends of pieces beside those of the data, for which no other way is looked for.
_ROUNDING = 1.02


def upright(x: Array) -> Array:
    """The array with its axes in the order in which tiles reach along them, the last ones from end to end if any do."""
    parts = [tile / (length or 1) for tile, length in zip(x.tile, x.shape, strict=True)]
    order = sorted(range(x.ndim), key=parts.__getitem__)
    return x if order == list(range(x.ndim)) else permute_dims(x, tuple(order))


def bands(x: Array) -> list[slice]:
    """Intervals of the last axis that together are all of it; each begins with a tile."""
    *others, tile = x.tile
    length, thick = x.shape[-1], x.dtype.itemsize
    for other in others:
        thick *= other
    wide = tile * np.maximum(1, _BAND_BYTES // (thick * tile))
    wide = int(np.maximum(wide, tile * -(-length // (tile * _BANDS_MAX))))
    return [slice(begin, int(np.minimum(begin + wide, length))) for begin in range(0, length, wide)]


def computed(*ways: Sequence[PartArrays], least: PartArrays) -> list[tuple[NDArray, ...]]:
    """The values of the parts of the data, in the way that reads and writes least: the parts of a way are computed in
    one program, or in one after the other. `least` reads the data once, and no way takes less.

    All ways come to the same bits, so that the machine may enter here."""
    options: list[list[Sequence[PartArrays]]] = []
    for parts in ways:
        options += [[parts], [[part] for part in parts]]
    best, chosen, refused = np.inf, options[0], list[MemoryLimitError]()
    try:
        bound = _taken([least]) * _ROUNDING
    except MemoryLimitError:  # by which the ways may do with less
        bound = 0.0
    for programs in options:
        try:
            taken = float(np.sum([_taken(program) for program in programs]))
        except MemoryLimitError as error:
            refused.append(error)
            continue
        if taken < best:
            best, chosen = taken, programs
        if best <= bound:
            break
    if best == np.inf:
        raise sorted(refused, key=lambda error: error.smallest or np.inf)[0]
    return [values for program in chosen for values in _values(program)]


def _values(program: Sequence[PartArrays]) -> list[tuple[NDArray, ...]]:
    arrays = [array for part in program for array in part]
    values = compute(*arrays) if len(arrays) > 1 else (compute(*arrays),)
    each = len(program[0])
    return [tuple(values[place : place + each]) for place in range(0, len(values), each)]


def _taken(program: Sequence[PartArrays]) -> float:
    """Bytes that a program would read and write. Raises MemoryLimitError."""
    forecast = explain(*(array for part in program for array in part))
    return forecast.bytes_read + forecast.bytes_written


def block_arrays(
    x: Array, lengths: tuple[int, int], reduction: BlockReduction, dtype: DTypeLike | None = None
) -> list[Array]:
    """The blocks of each band of a matrix that is upright, lazily; sums are formed in `dtype`. Blocks have `lengths`
    rows and columns."""
    (tall, wide), rows = lengths, -(-x.shape[0] // lengths[0])
    mode: Literal["constant", "edge"] = "constant" if reduction == "sum" else "edge"
    arrays = []
    for band in bands(x):
        before = band.start % wide
        number = -(-(before + band.stop - band.start) // wide)
        behind = number * wide - before - (band.stop - band.start)
        whole = pad(x[:, band], [(0, rows * tall - x.shape[0]), (before, behind)], mode)
        parts, axes = reshape(whole, (rows, tall, number, wide)), (1, 3)
        if reduction == "sum":
            arrays.append(sum(parts, axis=axes, dtype=dtype))
        else:
            arrays.append((max if reduction == "max" else min)(parts, axis=axes))
    return arrays


def blocks(x: Array, lengths: tuple[int, int], reduction: BlockReduction, dtype: DTypeLike | None = None) -> NDArray:
    """Sums, in `dtype`, or extremes of blocks of a matrix with `lengths` rows and columns; the last ones have those
    that remain."""
    turned = upright(x)
    if turned is not x:
        lengths = lengths[::-1]
    shape = tuple(-(-length // block) for length, block in zip(turned.shape, lengths, strict=True))
    arrays = block_arrays(turned, lengths, reduction, dtype)
    values = computed([[array] for array in arrays], least=[max(turned)])
    join = {"sum": np.add, "max": np.maximum, "min": np.minimum}[reduction]
    cells: NDArray | None = None
    for band, (part,) in zip(bands(turned), values, strict=True):
        if cells is None:
            cells = np.zeros(shape, part.dtype)
        first = band.start // lengths[1]
        begin = 0
        if band.start % lengths[1]:  # the block that the band before began
            cells[:, first] = join(cells[:, first], part[:, 0])
            begin = 1
        cells[:, first + begin : first + part.shape[1]] = part[:, begin:]
    assert cells is not None  # a matrix with elements has a band
    return cells if turned is x else cells.T


__all__ = ["bands", "block_arrays", "blocks", "computed", "upright"]
