"""Rows of lazy arrays in blocks that memory holds, for methods that learn a few rows at a time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from outcore import _api as oc
from outcore._base.types import NDArray
from outcore._lazy.array import Array
from outcore.learn._flaws import refuse_row

# A block is one program: large beside what that costs, small beside any memory limit.
_BLOCK_BYTES = 4 << 20


def _length(arrays: list[Array]) -> int:
    """Rows of a block."""
    width = sum(array.nbytes for array in arrays) // max(arrays[0].shape[0], 1)
    # Whole tiles, so that none is read for two blocks.
    tile = max(arrays[0].tile[0], 1)
    return tile * max(1, _BLOCK_BYTES // max(width * tile, 1))


def block_program(arrays: list[Array]) -> list[Array]:
    """The numbers that a block is read by."""
    length = _length(arrays)
    return [array[:length] for array in arrays]


def blocks(named: dict[str, Array], random: np.random.RandomState | None) -> Iterator[list[NDArray]]:
    """Neighbouring rows of all arrays as NumPy arrays: with `random`, blocks in random order and their rows shuffled.

    Raises ArgumentError naming an element that is not finite. I/O: one read of each array, a block at a time.
    """
    arrays = list(named.values())
    rows = arrays[0].shape[0]
    length = _length(arrays)
    starts = np.arange(0, rows, length)
    for start in starts if random is None else random.permutation(starts):
        # Rows, not sums: they are no results of a fit, which a journal would keep.
        ranges = [
            np.asarray(part) for part in oc.compute(*(array[int(start) : int(start) + length] for array in arrays))
        ]
        for name, part in zip(named, ranges, strict=True):
            refuse_row(name, part, np.arange(start, start + len(part)))
        if random is None:
            yield ranges
        else:
            order = random.permutation(len(ranges[0]))
            shuffled = [part[order] for part in ranges]
            del ranges, part  # memory of the session, which the next block needs
            yield shuffled


def batches(named: dict[str, Array], size: int, random: np.random.RandomState | None) -> Iterator[list[NDArray]]:
    """`blocks` cut into at most `size` rows each."""
    for block in blocks(named, random):
        for start in range(0, len(block[0]), size):
            yield [part[start : start + size] for part in block]


__all__ = ["batches", "block_program", "blocks"]
