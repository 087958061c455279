"""Indexing functions of the array API standard: `take`, for indices that are known when the expression is written."""

from __future__ import annotations

from typing import Any

import numpy as np

from outcore._array import Array
from outcore._node import Operand, axis_of, node
from outcore.errors import IndexingError
from outcore.manipulation import concat

_RUNS_MAX = 4096


def _runs(indices: list[int]) -> list[slice]:
    """The indices as few slices of constant step."""
    runs: list[slice] = []
    start = 0
    while start < len(indices):
        end = start + 1
        step = indices[end] - indices[start] if end < len(indices) else 1
        while end < len(indices) and step != 0 and indices[end] - indices[end - 1] == step:
            end += 1
        last = indices[start] + (end - start) * (step or 1)
        runs.append(slice(indices[start], last if last >= 0 else None, step or 1))
        start = end
    return runs


def take(x: Operand, indices: Any, /, *, axis: int | None = None) -> Array:
    """The elements at the given positions of an axis. `indices`: a 1-D sequence or NumPy array of integers.

    Indices become slices wherever they run evenly, at most 4096 of them. Raises IndexingError for a position out of
    bounds. I/O: the tiles the positions fall in, or the positions' own pages where those are fewer bytes.
    """
    array = Array(node(x))
    if isinstance(indices, Array):
        raise IndexingError("take: indices must be known when the expression is written; pass indices.compute()")
    positions = np.asarray(indices)
    if positions.ndim != 1 or (positions.size and positions.dtype.kind not in "iu"):
        raise IndexingError(
            f"take: indices must be a 1-D sequence of integers, not {positions.ndim}-D {positions.dtype}"
        )
    if axis is None and array.ndim != 1:
        raise IndexingError(f"take: an array of {array.ndim} dimensions needs axis=")
    place = axis_of("take", axis or 0, array.ndim)
    length = array.shape[place]
    outside = positions[(positions < -length) | (positions >= length)]
    if outside.size:
        raise IndexingError(f"take: index {outside[0]} is out of bounds for axis {place} with length {length}")
    before = (slice(None),) * place
    runs = _runs([int(position) % length for position in positions])
    if len(runs) > _RUNS_MAX:
        raise IndexingError(f"take: {len(runs)} separate runs of indices; at most {_RUNS_MAX} are supported")
    if not runs:
        return array[(*before, slice(0))]
    return concat([array[(*before, run)] for run in runs], axis=place)


__all__ = ["take"]
