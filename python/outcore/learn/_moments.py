"""Counts, means and scatter matrices of observations: one read of the data, and sums that do not cancel."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import outcore as oc
from outcore._array import Array
from outcore.learn._base import total, weighted
from outcore.learn._course import values
from outcore.learn._flaws import SHIFT_BY, first_flaw, refuse_flaws

Numbers = npt.NDArray[Any]


class Moments(NamedTuple):
    """Weight, mean and scatter Σ w (x−m)(y−m)ᵀ of observations x, y; both are the same where only one is given."""

    weight: float
    mean_x: Numbers
    mean_y: Numbers
    scatter: Numbers
    cross: Numbers

    def merge(self, other: Moments) -> Moments:
        """The moments of both sets of observations together (Chan, Golub, LeVeque 1983)."""
        weight = self.weight + other.weight
        share, part = other.weight / weight, self.weight * other.weight / weight
        far_x, far_y = other.mean_x - self.mean_x, other.mean_y - self.mean_y
        return Moments(
            weight,
            self.mean_x + far_x * share,
            self.mean_y + far_y * share,
            self.scatter + other.scatter + part * np.outer(far_x, far_x),
            self.cross + other.cross + part * np.outer(far_x, far_y),
        )


def shift(x: Array) -> Array:
    """The mean of the first rows, float64, as one row."""
    return oc.mean(x[:SHIFT_BY].astype(np.float64), axis=0, keepdims=True)


def moments(x: Array, y: Array | None = None, weights: Array | None = None) -> Moments:
    """Moments of the rows of `x`, and of `x` with `y`, by Σ w (x−c)(y−c)ᵀ − (Σ w (x−c)) (Σ w (y−c))ᵀ / Σ w.

    The shift c is the mean of the first rows (Chan, Golub, LeVeque 1983). Raises ArgumentError naming an element that
    is not finite. I/O: one read of the arguments.
    """
    centers = [shift(x)] if y is None else [shift(x), shift(y)]
    apart = x - centers[0]
    heavy = weighted(apart, weights)
    wanted: list[Any] = [total(weights, x.shape[0]), centers[0], oc.sum(heavy, axis=0), heavy.T @ apart]
    beside = None if y is None else y - centers[1]
    if beside is not None:
        wanted += [centers[1], oc.sum(weighted(beside, weights), axis=0), heavy.T @ beside]
    *found, row = values([*wanted, first_flaw(apart, beside, weights)])
    refuse_flaws(found, row, X=x, y=y, sample_weight=weights)
    weight = float(found[0])
    mean, sums = found[1][0] + found[2] / weight, found[2]
    scatter = found[3] - np.outer(sums, sums) / weight
    if y is None:
        return Moments(weight, mean, mean, scatter, scatter)
    return Moments(weight, mean, found[4][0] + found[5] / weight, scatter, found[6] - np.outer(sums, found[5]) / weight)


def products(x: Array, y: Array, weights: Array | None = None) -> Moments:
    """As `moments` about the origin instead of the means. I/O: one read of the arguments."""
    heavy = weighted(x.astype(np.float64), weights)
    *found, row = values([total(weights, x.shape[0]), heavy.T @ x, heavy.T @ y, first_flaw(x, y, weights)])
    refuse_flaws(found, row, X=x, y=y, sample_weight=weights)
    weight, scatter, cross = found
    return Moments(float(weight), np.zeros(x.shape[1]), np.zeros(y.shape[1]), scatter, cross)


def column_moments(
    x: Array, weights: Array | None = None, *, pass_nan: bool = False
) -> tuple[Numbers, Numbers, Numbers]:
    """Weight, mean and Σ w (x−m)² of each column; NaN is passed over, or refused. I/O: one read."""
    center = shift(x)
    if not pass_nan:
        apart, counted = x - center, oc.zeros((x.shape[1],)) + total(weights, x.shape[0])
    else:
        center = oc.nan_to_num(center, nan=0.0)
        missing = oc.isnan(x)
        apart = oc.where(missing, 0.0, x - center)
        counted = oc.sum(weighted(oc.astype(~missing, np.float64), weights), axis=0)
    heavy = weighted(apart, weights)
    wanted: list[Any] = [center, counted, oc.sum(heavy, axis=0), oc.sum(heavy * apart, axis=0)]
    if pass_nan:
        found = values(wanted)
    else:
        *found, row = values([*wanted, first_flaw(apart, weights)])
        refuse_flaws(found, row, X=x, sample_weight=weights)
    start, count, sums, squares = found
    safe = np.where(count > 0, count, 1.0)
    return count, start[0] + sums / safe, np.maximum(squares - sums * sums / safe, 0)


__all__ = ["Moments", "column_moments", "moments", "products", "shift"]
