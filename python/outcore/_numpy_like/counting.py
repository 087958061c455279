"""How often values occur: counts of numbers, histograms, the most frequent value."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from outcore import _core
from outcore._base.shortened import record_text
from outcore._lazy.array import Array
from outcore._lazy.node import Operand, node
from outcore._run import masks
from outcore._run.checks import finite
from outcore._run.foresight import is_foreseeing
from outcore._run.run import compute
from outcore._standard.creation import arange, asarray
from outcore._standard.indexing import take
from outcore._standard.manipulation import concat, reshape
from outcore._standard.searching import argmax, searchsorted, where
from outcore._standard.sets import unique_counts
from outcore._standard.statistical import counted, max, min, sum
from outcore.errors import ArgumentError, DTypeError, ShapeError

_BINS_MAX = 1 << 32


def row_of(x: Operand) -> Array:
    """All elements in one row."""
    array = Array(node(x))
    return array if array.ndim == 1 else reshape(array, (math.prod(array.shape),))


def bincount(x: Operand, /, *, weights: Operand | None = None, minlength: int = 0) -> Array:
    """How often each of the numbers 0, 1, … occurs in a row of integers (int64), or the sum of its weights (float64).

    As long as the largest number and one more, at least `minlength`. That is found by one read of `x` when something
    needs to know, once; raises ArgumentError then where a number is below zero. Weights are added in a fixed order: the
    bits do not depend on threads or memory.

    I/O: that read, and one more of `x` and of the weights. Five times the counts must fit the memory.

    >>> import numpy as np, outcore as oc
    >>> oc.bincount(np.asarray([1, 3, 1])).compute()
    array([0, 2, 0, 1])
    """
    numbers = Array(node(x))
    beside = None if weights is None else Array(node(weights))
    if numbers.ndim != 1:
        raise ShapeError(f"bincount: an array of shape {numbers.shape} is not one-dimensional")
    if beside is not None and beside.shape != numbers.shape:
        raise ShapeError(f"bincount: weights of shape {beside.shape} for numbers of shape {numbers.shape}")
    if numbers.dtype.kind not in "biu":
        raise DTypeError(f"bincount: takes integers, not {numbers.dtype}")
    if beside is not None and beside.dtype.kind == "c":
        raise DTypeError(f"bincount: weights are real numbers, not {beside.dtype}")
    if minlength < 0:
        raise ArgumentError(f"bincount: minlength={minlength} is below zero")

    def make() -> _core.Expr:
        bins = minlength
        if is_foreseeing():  # what counts take for one bin at least
            bins = builtins.max(bins, 1)
        elif numbers.shape[0]:
            least, most = (int(bound) for bound in compute(min(numbers), max(numbers)))
            if least < 0:
                raise ArgumentError(f"bincount: {least} is below zero")
            if most >= _BINS_MAX:
                raise ArgumentError(f"bincount: {most} would need more counts than the {_BINS_MAX} that are possible")
            bins = builtins.max(bins, most + 1)
        return counted(numbers, beside, bins)._expr

    return masks.Chosen(make)


class Histogram(NamedTuple):
    """The result of `histogram`."""

    counts: Array
    edges: Array

    def __repr__(self) -> str:
        return record_text(self, self._fields)


def _even_edges(name: str, values: Array, bins: int, interval: tuple[float, float] | None) -> Array:
    """The edges of `bins` bins of one width, as `numpy.histogram_bin_edges` gives them."""
    if interval is not None:
        low, high = (float(bound) for bound in interval)
        if not (math.isfinite(low) and math.isfinite(high)) or low > high:
            raise ArgumentError(f"{name}: range ({low}, {high}) is not finite, or falls")
        if low == high:
            low, high = low - 0.5, high + 0.5
        return asarray(np.linspace(low, high, bins + 1))
    if values.shape[0] == 0:
        return asarray(np.linspace(0.0, 1.0, bins + 1))
    # Computed with the counts: both come of one program that reads the values twice.
    text = f"{name}: the range of the data is not finite: {{}}; give range=, or leave such elements out"
    wide = f"{name}: the width of the range of the data is not finite in {values.dtype}: {{}}; cast it, or give range="
    least, most = finite(min(values), text), finite(max(values), text)
    same = least == most
    first, last = where(same, least - 0.5, least), where(same, most + 0.5, most)
    steps = arange(bins, dtype=values.dtype) * (finite(last - first, wide) / bins) + first
    return concat([steps, reshape(last, (1,))])


def bin_edges(
    name: str, values: Array, bins: int | Sequence[float] | Operand, interval: tuple[float, float] | None
) -> Array:
    """The edges given, or those of so many bins of one width. Raises ArgumentError for edges that fall."""
    if isinstance(bins, str):
        raise ArgumentError(f"{name}: bins={bins!r}; outcore takes their number or their edges")
    if isinstance(bins, (int, np.integer)):
        if bins < 1:
            raise ArgumentError(f"{name}: bins={bins}; there must be one at least")
        floats = values if values.dtype.kind == "f" else values.astype(np.float64)
        return _even_edges(name, floats, int(bins), interval).astype(floats.dtype)
    edges = np.asarray(bins, dtype=np.float64)
    if edges.ndim != 1 or edges.size < 2 or np.any(edges[:-1] > edges[1:]):
        raise ArgumentError(f"{name}: edges of shape {edges.shape} are not a row of two or more that never falls")
    return asarray(edges)


def histogram(
    x: Operand,
    /,
    bins: int | Sequence[float] | Operand = 10,
    *,
    range: tuple[float, float] | None = None,
    density: bool = False,
    weights: Operand | None = None,
) -> Histogram:
    """How many elements lie in each bin (int64), and the edges of the bins; the last bin holds its right edge too.

    `bins` is a number of bins of one width, between the bounds in `range` or those of the data, or the edges
    themselves, which must not fall. `weights` are added up in place of elements (float64); `density` divides by all of
    it and by the width. Elements outside and NaN are left out. Bounds of the data must be finite.

    I/O: one read of `x` and of the weights, and one before it for the bounds of the data. Five times the counts must
    fit the memory.

    >>> import numpy as np, outcore as oc
    >>> oc.histogram(np.asarray([1.0, 2.0, 4.0]), 3, range=(1, 4)).counts.compute()
    array([1, 1, 1])
    """
    values = row_of(x)
    if values.dtype.kind == "c":
        raise DTypeError(f"histogram: {values.dtype} has no order")
    beside = None if weights is None else row_of(weights)
    if weights is not None and tuple(node(weights).shape) != tuple(node(x).shape):
        raise ShapeError(f"histogram: weights of shape {node(weights).shape} for values of shape {node(x).shape}")
    if values.dtype.kind != "f":
        values = values.astype(np.float64)
    edges = bin_edges("histogram", values, bins, range)
    count = edges.shape[0] - 1
    # Behind the last edge belongs no bin, but on it does the last.
    place = searchsorted(edges, values, side="right") - 1
    place = where(values == edges[-1], count - 1, place)
    counts = counted(place, beside, count)
    if density:
        counts = counts / (edges[1:] - edges[:-1]) / sum(counts.astype(np.float64))
    return Histogram(counts, edges)


def mode(x: Operand, /) -> Array:
    """The most frequent element (of equally frequent ones the smallest), found by sorting when it is needed.

    Raises ShapeError where there are no elements. I/O: as `unique_counts`.

    >>> import numpy as np, outcore as oc
    >>> oc.mode(np.asarray([2, 3, 3, 2, 1])).item()
    2
    """
    values = row_of(x)
    if values.shape[0] == 0:
        raise ShapeError(f"mode: an array of shape {tuple(node(x).shape)} has no elements")

    def make() -> _core.Expr:
        counted = unique_counts(values)
        return reshape(take(counted.values, reshape(argmax(counted.counts), (1,)), axis=0), ())._expr

    return masks.Chosen(make)


__all__ = ["Histogram", "bincount", "histogram", "mode"]
