"""Histograms of several coordinates, and the edges of bins: NumPy's functions of those names."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from outcore._lazy.array import Array
from outcore._lazy.node import Operand, node
from outcore._numpy_like.counting import bin_edges, row_of
from outcore._standard.manipulation import reshape, unstack
from outcore._standard.searching import searchsorted, where
from outcore._standard.statistical import counted, sum
from outcore.elementwise import divide
from outcore.errors import ArgumentError, ShapeError

Range = tuple[float, float]


class HistogramDD(NamedTuple):
    """The result of `histogramdd`."""

    counts: Array
    edges: tuple[Array, ...]


class Histogram2D(NamedTuple):
    """The result of `histogram2d`."""

    counts: Array
    x_edges: Array
    y_edges: Array


def histogram_bin_edges(
    x: Operand, /, bins: int | Sequence[float] | Operand = 10, *, range: Range | None = None
) -> Array:
    """The edges that `histogram` counts between. I/O: one read of `x` where neither edges nor a range are given.

    >>> import numpy as np, outcore as oc
    >>> oc.histogram_bin_edges(np.asarray([0.0, 4.0]), 2).compute()
    array([0., 2., 4.])
    """
    return bin_edges("histogram_bin_edges", row_of(x), bins, range)


def histogramdd(
    sample: Operand | Sequence[Operand],
    /,
    bins: int | Sequence[Any] = 10,
    *,
    range: Sequence[Range | None] | None = None,
    density: bool = False,
    weights: Operand | None = None,
) -> HistogramDD:
    """How many points lie in each cell of a grid (float64), and the edges of the grid along each axis.

    `sample` is a matrix with a point in each row, or one row of coordinates for each axis. `bins` is a number, or for
    each axis a number or its edges; `range` for each axis its bounds or None. `weights` are added up in place of
    points; `density` divides by all of it and by the cells. Points outside and those with a NaN are left out.

    I/O: one read of the sample and the weights, and one before it for bounds that are not given. Five times the counts
    must fit the memory.

    >>> import numpy as np, outcore as oc
    >>> points = np.asarray([[0.0, 0.0], [1.0, 3.0], [2.0, 4.0]])
    >>> oc.histogramdd(points, (2, 2)).counts.compute()
    array([[1., 0.],
           [0., 2.]])
    """
    axes = [row_of(part).astype(np.float64) for part in _coordinates(sample)]
    several = list(bins) if isinstance(bins, (list, tuple)) else [bins] * len(axes)
    ranges = [None] * len(axes) if range is None else list(range)
    if len(several) != len(axes) or len(ranges) != len(axes):
        raise ArgumentError(f"histogramdd: {len(several)} bins and {len(ranges)} ranges for {len(axes)} coordinates")
    edges = tuple(
        bin_edges("histogramdd", values, of, within) for values, of, within in zip(axes, several, ranges, strict=True)
    )
    shape = tuple(edge.shape[0] - 1 for edge in edges)
    cell, inside = Array(node(0)), Array(node(True))
    for values, edge, length in zip(axes, edges, shape, strict=True):
        place = searchsorted(edge, values, side="right") - 1
        place = where(values == edge[-1], length - 1, place)
        inside = inside & (place >= 0) & (place < length)
        cell = cell * length + place
    beside = None if weights is None else row_of(weights)
    if beside is not None and beside.shape != axes[0].shape:
        raise ShapeError(f"histogramdd: weights of shape {beside.shape} for {axes[0].shape[0]} points")
    counts = reshape(counted(where(inside, cell, -1), beside, math.prod(shape)), shape).astype(np.float64)
    if density:
        counts = divide(counts, sum(counts))
        for axis, edge in enumerate(edges):
            thin = (1,) * axis + (-1,) + (1,) * (len(shape) - axis - 1)
            counts = counts / reshape(edge[1:] - edge[:-1], thin)
    return HistogramDD(counts, edges)


def _coordinates(sample: Operand | Sequence[Operand]) -> list[Array]:
    """One row for each axis."""
    if isinstance(sample, (list, tuple)):
        rows = [Array(node(part)) for part in sample]
    else:
        points = Array(node(sample))
        if points.ndim != 2:
            raise ShapeError(f"histogramdd: points of shape {points.shape} are not the rows of a matrix")
        rows = list(unstack(points, axis=1))
    shapes = {row.shape for row in rows}
    if len(shapes) != 1 or rows[0].ndim != 1:
        raise ShapeError(f"histogramdd: coordinates of shapes {', '.join(map(str, sorted(shapes)))}")
    return rows


def histogram2d(
    x: Operand,
    y: Operand,
    /,
    bins: Any = 10,
    *,
    range: Sequence[Range | None] | None = None,
    density: bool = False,
    weights: Operand | None = None,
) -> Histogram2D:
    """`histogramdd` of two coordinates; `bins` may be one row of edges for both. I/O: as there.

    >>> import numpy as np, outcore as oc
    >>> oc.histogram2d(np.asarray([0.0, 2.0]), np.asarray([0.0, 4.0]), 2).counts.compute()
    array([[1., 0.],
           [0., 1.]])
    """
    if hasattr(bins, "__len__") and len(bins) not in (1, 2):
        bins = [bins, bins]
    result = histogramdd([x, y], bins, range=range, density=density, weights=weights)
    return Histogram2D(result.counts, *result.edges)


__all__ = ["Histogram2D", "HistogramDD", "histogram2d", "histogram_bin_edges", "histogramdd"]
