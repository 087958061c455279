"""Functions that xarray calls row by row, as functions of many rows at once."""

from __future__ import annotations

from functools import partial

import numpy as np
from xarray.core import missing

from outcore._base.types import NDArray
from outcore._xarray.foreign import Foreign, Function

# Private to xarray: a version that has none of them leaves its functions to `numpy.vectorize`.
_ROW = getattr(missing, "func_interpolate_na", None)
_LINEAR = getattr(missing, "NumpyInterpolator", None)


def vectorized(function: Function, signature: str, otypes: list[Foreign] | None) -> Function:
    """A function of one row as one of many, as `numpy.vectorize`; linear `interpolate_na` by all rows at once.

    Results have the same bits.
    """
    if (
        isinstance(function, partial)
        and (function.func, *function.args) == (_ROW, _LINEAR)
        and dict(function.keywords) == {"method": "linear"}
    ):
        return interpolated
    return np.vectorize(function, signature=signature, otypes=otypes)


def interpolated(values: NDArray, places: NDArray) -> NDArray:
    """NaN between two numbers of a row as `numpy.interp` has them; places ascend. Other NaN stay.

    Time: one look at each element, and one search for each NaN.
    """
    length = values.shape[-1]
    flat = values.reshape(-1)
    gaps = np.isnan(flat)
    known, lacking = np.flatnonzero(~gaps), np.flatnonzero(gaps)
    if not known.size or not lacking.size:
        return values
    after = np.searchsorted(known, lacking)
    inside = (after > 0) & (after < known.size)
    lacking, after = lacking[inside], after[inside]
    low, high = known[after - 1], known[after]
    row = lacking // length
    inside = (low // length == row) & (high // length == row)
    lacking, low, high = lacking[inside], low[inside], high[inside]
    x, begin, end = (places[part % length].astype(np.float64) for part in (lacking, low, high))
    first, last = (flat[part].astype(np.float64) for part in (low, high))
    with np.errstate(all="ignore"):  # as in numpy.interp
        slope = (last - first) / (end - begin)
        between = slope * (x - begin) + first
        between = np.where(np.isnan(between), slope * (x - end) + last, between)
    filled = flat.copy()
    filled[lacking] = np.where(np.isnan(between) & (first == last), first, between)
    return filled.reshape(values.shape)


__all__ = ["interpolated", "vectorized"]
