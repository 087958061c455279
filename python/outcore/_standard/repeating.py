"""`repeat` of the array API standard: a row of counts is summed to find what comes where."""

from __future__ import annotations

import numpy as np

from outcore import _core
from outcore._lazy.array import Array
from outcore._lazy.node import Operand, axis_of, integers, node
from outcore._run import masks
from outcore._run.foresight import is_foreseeing
from outcore._run.run import compute
from outcore._standard.creation import arange
from outcore._standard.indexing import take
from outcore._standard.manipulation import broadcast_to, expand_dims, reshape
from outcore._standard.searching import searchsorted
from outcore._standard.statistical import cumulative_sum, min, sum
from outcore.errors import ArgumentError, DTypeError, RangeError, ShapeError

# Times that a place is repeated, on the average, as far as limits are named before the sum of the counts is known.
_REPEATS_FORESEEN = 4


def repeat(x: Operand, repeats: int | Operand, /, *, axis: int | str | None = None) -> Array:
    """Every element `repeats` times in a row along an axis; flattened for axis None.

    `repeats` is one count, or a row of counts, one for each place along the axis. How long the result is then is found
    by one read of the counts when something needs to know; which element comes where, by their running sums.
    Raises ShapeError for counts of another length, ArgumentError for counts below zero.
    I/O: none of its own for one count; else as `searchsorted` among the counts, and `take`.

    >>> import numpy as np, outcore as oc
    >>> oc.repeat(np.asarray([7, 8, 9]), oc.asarray([2, 0, 1])).compute()
    array([7, 7, 9])
    """
    array = Array(node(x)).ravel() if axis is None else Array(node(x))
    place = axis_of("repeat", axis or 0, array)
    shape = array.shape
    if getattr(repeats, "ndim", 0) or isinstance(repeats, (list, tuple)):
        return _repeat_each(array, Array(node(repeats)), place)
    counts = integers(repeats)  # type: ignore[arg-type]  # anything else is refused there
    if len(counts) != 1 or counts[0] < 0:
        raise ShapeError(f"repeat: {repeats!r} is not a count")
    wide = broadcast_to(expand_dims(array, axis=place + 1), (*shape[: place + 1], *counts, *shape[place + 1 :]))
    return reshape(wide, (*shape[:place], shape[place] * counts[0], *shape[place + 1 :]))


def _repeat_each(array: Array, counts: Array, place: int) -> Array:
    if counts.dtype.kind not in "iu":
        raise DTypeError(f"repeat: counts are integers, not {counts.dtype}")
    if counts.ndim == 1 and counts.shape[0] == 1:
        counts = broadcast_to(counts, (array.shape[place],))
    if counts.shape != (array.shape[place],):
        raise ShapeError(f"repeat: counts of shape {counts.shape} for {array.shape[place]} places along axis {place}")

    def make() -> _core.Expr:
        total = _REPEATS_FORESEEN * counts.shape[0]
        if total and not is_foreseeing():
            # The sum in floating point tells whether that of integers, which wraps, is right.
            rough = sum(counts.astype(np.float64))
            least, total, about = (value.item() for value in compute(min(counts), sum(counts), rough))
            if least < 0:
                raise ArgumentError(f"repeat: a count is {least}")
            if about > 2.0**62:
                raise RangeError(f"repeat: {about:.3g} elements are more than an array can have")
        ends = cumulative_sum(counts.astype(np.int64))
        return take(array, searchsorted(ends, arange(total), side="right"), axis=place)._expr

    return masks.Chosen(make)


__all__ = ["repeat"]
