"""Arrays whose tiles a function can have whole along some axes: brought into such tiles where they are not."""

from __future__ import annotations

import math
from collections.abc import Sequence

from outcore import _core
from outcore._lazy.array import Array
from outcore._run.running import plan_and_run
from outcore._session.session import current

_SHARE = 8  # of the budget, for all tiles that lie along the whole axes
_CHUNK_BYTES = 1 << 15  # from which tiles of a file are read at the speed of the disk


def in_lanes(array: Array, whole: Sequence[int]) -> Array:
    """The array itself where its tiles, along the whole axes from end to end, fit a share of the memory; else a copy in
    scratch with narrower tiles, made at once: one read and one write.
    """
    room = max(current().counters()["budget_bytes"] // _SHARE // array.dtype.itemsize, 1)
    tile = list(array.tile)
    length = math.prod(array.shape[axis] for axis in whole)
    others = [axis for axis in range(array.ndim) if axis not in whole]
    if not array.size or length * math.prod(tile[axis] for axis in others) <= room:
        return array
    while length * math.prod(tile[axis] for axis in others) > room and any(tile[axis] > 1 for axis in others):
        widest = max(others, key=lambda axis: tile[axis])
        tile[widest] = -(-tile[widest] // 2)
    for axis in whole:
        lacking = _CHUNK_BYTES // max(math.prod(tile) * array.dtype.itemsize, 1)
        tile[axis] = min(tile[axis] * max(lacking, 1), array.shape[axis])
    core = current()._core
    target: _core.Target = {"path": core.unused_path(), "overwrite": False, "chunks": tile}
    plan_and_run([array._expr], [target])
    return Array(core.hold(str(target["path"])))


__all__ = ["in_lanes"]
