"""Counts, means and scatter matrices of observations: one read of the data, and sums that do not cancel."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from outcore import _api as oc
from outcore._base.types import NDArray
from outcore._lazy.array import Array
from outcore._lazy.node import Operand
from outcore.errors import ArgumentError
from outcore.learn._base import total, weighted
from outcore.learn._fit import clear_room, sweep, values
from outcore.learn._flaws import first_flaw, refuse_flaws
from outcore.learn._shift import far, shift


class Moments(NamedTuple):
    """Weight, mean and scatter Σ w (x−m)(y−m)ᵀ of observations x, y; both are the same where only one is given."""

    weight: float
    mean_x: NDArray
    mean_y: NDArray
    scatter: NDArray
    cross: NDArray

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


def moments(x: Array, y: Array | None = None, weights: Array | None = None) -> Moments:
    """Moments of the rows of `x`, and of `x` with `y`, by Σ w (x−c)(y−c)ᵀ − (Σ w (x−c)) (Σ w (y−c))ᵀ / Σ w.

    The shift c is the mean of the first rows (Chan, Golub, LeVeque 1983); where that was far from the mean, the mean.
    Raises ArgumentError naming an element that is not finite. I/O: one read of the arguments, or two.
    """
    parts = [part for part in (x, y) if part is not None]
    result, is_far = _moments_about([shift(part, weights) for part in parts], x, y, weights)
    if is_far:
        means = [result.mean_x] if y is None else [result.mean_x, result.mean_y]
        result, _ = _moments_about([oc.asarray(mean[None, :]) for mean in means], x, y, weights)
    return result


def _check_weight(weight: float) -> None:
    if not weight > 0:
        raise ArgumentError(f"the sum of sample_weight must be above 0, not {weight}")


def _moments_about(centers: list[Array], x: Array, y: Array | None, weights: Array | None) -> tuple[Moments, bool]:
    """Moments from sums of distances from `centers`, and whether those were too far away."""
    apart = x - centers[0]
    heavy = weighted(apart, weights)
    terms: list[Operand] = [total(weights, x.shape[0]), centers[0], oc.sum(heavy, axis=0), heavy.T @ apart]
    beside = None if y is None else y - centers[1]
    if beside is not None:
        heavy_y = weighted(beside, weights)
        terms += [centers[1], oc.sum(heavy_y, axis=0), heavy.T @ beside, oc.sum(heavy_y * beside, axis=0)]
    *results, row = sweep([*terms, first_flaw(apart, beside, weights)])
    refuse_flaws(results, row, X=x, y=y, sample_weight=weights)
    weight, sums = float(results[0]), results[2]
    _check_weight(weight)
    clear_room(3 * results[3].size)
    scatter = results[3] - np.outer(sums, sums) / weight
    mean = results[1][0] + sums / weight
    is_far = far(results[0], sums / weight, np.diag(scatter), mean)
    if y is None:
        return Moments(weight, mean, mean, scatter, scatter), is_far
    sums_y = results[5]
    mean_y = results[4][0] + sums_y / weight
    is_far = is_far or far(results[0], sums_y / weight, results[7] - sums_y**2 / weight, mean_y)
    return Moments(weight, mean, mean_y, scatter, results[6] - np.outer(sums, sums_y) / weight), is_far


def products(x: Array, y: Array, weights: Array | None = None) -> Moments:
    """As `moments` about the origin instead of the means. I/O: one read of the arguments."""
    heavy = weighted(x.astype(np.float64), weights)
    *results, row = values([total(weights, x.shape[0]), heavy.T @ x, heavy.T @ y, first_flaw(x, y, weights)])
    refuse_flaws(results, row, X=x, y=y, sample_weight=weights)
    weight, scatter, cross = results
    _check_weight(float(weight))
    return Moments(float(weight), np.zeros(x.shape[1]), np.zeros(y.shape[1]), scatter, cross)


class ColumnMoments:
    """Weight, mean and Σ w (x−m)² of each column from one sweep; NaN is passed over, or refused.

    `terms` is what the sweep is to find, `settle` makes the moments of it. Where all rows weigh alike the engine's own
    variance needs no shift; else distances are from `center`, or from the mean of the first rows.
    """

    def __init__(
        self, x: Array, weights: Array | None = None, *, pass_nan: bool = False, center: NDArray | None = None
    ) -> None:
        self._x, self._weights, self._pass_nan = x, weights, pass_nan
        self._center = center
        self._is_plain = weights is None and not pass_nan
        self.terms: list[Operand] = self._plain() if self._is_plain else self._sums()

    def _plain(self) -> list[Operand]:
        x = self._x.astype(np.float64)
        return [oc.mean(x, axis=0), oc.var(x, axis=0), first_flaw(x)]

    def _sums(self) -> list[Operand]:
        x, weights = self._x, self._weights
        start = shift(x, weights) if self._center is None else oc.asarray(self._center[None, :])
        if not self._pass_nan:
            apart, counted = x - start, oc.zeros((x.shape[1],)) + total(weights, x.shape[0])
        else:
            distance = x - start  # the shift is finite; what is made of x itself would be a sweep of its own
            missing = oc.isnan(distance)
            apart = oc.where(missing, 0.0, distance)
            counted = oc.sum(weighted(oc.astype(~missing, np.float64), weights), axis=0)
        heavy = weighted(apart, weights)
        return [counted, start, oc.sum(heavy, axis=0), oc.sum(heavy * apart, axis=0), first_flaw(apart, weights)]

    def settle(self, results: list[NDArray]) -> tuple[NDArray, NDArray, NDArray]:
        """Raises ArgumentError naming an element that is not finite. I/O: one read where the shift was too far away."""
        *sums, row = results
        refuse_flaws(sums, row, pass_nan=self._pass_nan, X=self._x, sample_weight=self._weights)
        if self._is_plain:
            rows = float(self._x.shape[0])
            return np.full(self._x.shape[1], rows), sums[0], sums[1] * rows
        count, start, moved, squares = sums
        safe = np.where(count > 0, count, 1.0)
        mean, squares = start[0] + moved / safe, np.maximum(squares - moved * moved / safe, 0)
        if far(count, moved / safe, squares, mean) and not np.array_equal(start[0], mean):
            return column_moments(self._x, self._weights, pass_nan=self._pass_nan, center=mean)
        return count, mean, squares


def column_moments(
    x: Array, weights: Array | None = None, *, pass_nan: bool = False, center: NDArray | None = None
) -> tuple[NDArray, NDArray, NDArray]:
    """`ColumnMoments` from a sweep of their own, of distances from `center` if it is given. I/O: as `moments`."""
    of = ColumnMoments(x, weights, pass_nan=pass_nan, center=center)
    return of.settle(values(of.terms))


__all__ = ["ColumnMoments", "Moments", "column_moments", "moments", "products"]
