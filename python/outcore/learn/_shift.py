"""The origin of data whose squares are summed, chosen so that sums of squares cancel little."""

from __future__ import annotations

import numpy as np

from outcore import _api as oc
from outcore._base.types import NDArray
from outcore._lazy.array import Array
from outcore.learn._flaws import SHIFT_BY

_FAR = 100.0  # deviations


def shift(x: Array, weights: Array | None = None) -> Array:
    """The mean of the first rows, float64, as one row: of their elements that are finite and have weight.

    It is 0 where there are none.
    """
    first = x[:SHIFT_BY].astype(np.float64)
    known = oc.isfinite(first)
    if weights is not None:
        known = known & oc.reshape(weights[:SHIFT_BY] > 0, (-1, 1))
    count = oc.sum(known, axis=0, keepdims=True)
    return oc.sum(oc.where(known, first / oc.where(count > 0, count, 1), 0.0), axis=0, keepdims=True)


def far(weight: NDArray, distance: NDArray, squares: NDArray, mean: NDArray) -> bool:
    """Whether a shift lies so far from some column's mean that its squared distances lost more than four digits.

    It does where the first rows weigh nothing, are missing, or are none like the others. A rounding error of the
    mean of equal elements is no distance.
    """
    counts = np.abs(distance) > 64 * np.finfo(np.float64).eps * np.abs(mean)
    return bool(np.any(counts & (weight * distance**2 > _FAR**2 * squares)))


__all__ = ["far", "shift"]
