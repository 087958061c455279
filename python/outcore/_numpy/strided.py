"""`numpy.lib` as far as libraries over several kinds of arrays ask a namespace for it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from types import SimpleNamespace

from outcore._lazy.array import Array
from outcore._lazy.node import Operand, axes_of, integers, node
from outcore._standard.manipulation import part_along, stack
from outcore.errors import ArgumentError, ShapeError

# Each place in a window is a slice of its own.
_PLACES_MAX = 1 << 10


def sliding_window_view(
    x: Operand, window_shape: int | Iterable[int], axis: int | Iterable[int] | None = None
) -> Array:
    """The windows of an array, along axes that come last: NumPy's function of that name, without shared memory.

    Raises ShapeError for windows longer than their axis, ArgumentError for those of more than 1,024 places. I/O: fused
    into what reads it; `rolling_mean` and its like read long windows with less work.
    """
    array, lengths = Array(node(x)), integers(window_shape)
    axes = axes_of("sliding_window_view", axis, array)
    if len(axes) != len(lengths):
        raise ShapeError(f"sliding_window_view: windows of shape {lengths} along {len(axes)} axes")
    if any(not 0 < length <= array.shape[at] for at, length in zip(axes, lengths, strict=True)):
        raise ShapeError(f"sliding_window_view: windows of shape {lengths} in an array of shape {array.shape}")
    if math.prod(lengths) > _PLACES_MAX:
        raise ArgumentError(
            f"sliding_window_view: windows of shape {lengths} have more than {_PLACES_MAX} places; use rolling_mean"
        )
    parts = []
    for places in itertools.product(*map(range, lengths)):
        part = array
        for at, place, length in zip(axes, places, lengths, strict=True):
            part = part_along(part, at, place, array.shape[at] - length + 1 + place)
        parts.append(part)
    stacked = stack(parts, axis=-1)
    return stacked.reshape(*stacked.shape[:-1], *lengths)


lib = SimpleNamespace(stride_tricks=SimpleNamespace(sliding_window_view=sliding_window_view))

__all__ = ["lib", "sliding_window_view"]
