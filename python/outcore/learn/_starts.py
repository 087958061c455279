"""Centers that k-means starts from. Rows are drawn in one sweep each time, without a list of all their chances.

Of exponential clocks with rates p_i the first to ring is i with probability p_i / Σ p: the largest of p_i / −log(u_i)
is a draw in proportion to p, and a sweep finds it like any other maximum.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from outcore import _api as oc
from outcore._base.types import NDArray
from outcore._lazy.array import Array
from outcore._lazy.node import Operand
from outcore.learn._fit import preparing, sweep, values

_ROUNDS = 5  # of k-means||: Bahmani et al. find that five are enough
_OVERSAMPLING = 2


def nearness(x: Array, centers: NDArray) -> Array:
    """|x − c|² less |x − o|², the same for all centers, with o their mean: (rows, centers), by one product.

    −2x·(c−o) + |c−o|² + 2o·(c−o), so that data far from zero costs no digits and is not shifted itself.
    """
    origin = centers.mean(axis=0)
    apart = centers - origin
    constant = np.einsum("ij,ij->i", apart, apart) + 2.0 * (apart @ origin)
    return x @ oc.asarray(np.ascontiguousarray(apart.T * -2.0)) + oc.asarray(constant)


def squared_distances(x: Array, centers: NDArray) -> Array:
    """|x − c|² of each row to each center, (rows, centers); not below zero."""
    apart = x - oc.asarray(centers.mean(axis=0))
    return oc.clip(nearness(x, centers) + oc.sum(apart * apart, axis=1, keepdims=True), 0.0, None)


def least_distance(x: Array, centers: NDArray) -> Array:
    """The least of `squared_distances`, as a column."""
    apart = x - oc.asarray(centers.mean(axis=0))
    return oc.min(nearness(x, centers), axis=1, keepdims=True) + oc.sum(apart * apart, axis=1, keepdims=True)


def rows(x: Array, places: npt.ArrayLike) -> NDArray:
    """The rows at some places, in their order, read once each."""
    distinct, back = np.unique(np.asarray(places), return_inverse=True)
    taken: NDArray = values([oc.take(x, distinct, axis=0)])[0]
    return taken[back]


def _draws(chances: Array, count: int, random: np.random.RandomState) -> list[Array]:
    """Places of rows drawn in proportion to each column of `chances`: as many arrays as draws, one place per column.

    The clocks of all draws come of one uniform number for each row, moved round the unit interval from draw to draw:
    each draw has its distribution, and no row is likely to be drawn twice.
    """
    even = oc.random.uniform((chances.shape[0], 1), seed=_seed(random))
    draws = []
    for draw in range(count):
        moved = even + draw / count
        haste = -1.0 / oc.log(oc.where(moved > 1.0, moved - 1.0, moved))
        draws.append(oc.argmax(chances * haste, axis=0))
    return draws


def _seed(random: np.random.RandomState) -> int:
    return int(random.randint(np.iinfo(np.int32).max))


def _column(weights: Array | None) -> Operand:
    return 1.0 if weights is None else oc.reshape(weights, (-1, 1))


def _first(x: Array, weights: Array | None, starts: int, random: np.random.RandomState) -> NDArray:
    """One row for each start."""
    if weights is None:
        return rows(x, random.randint(x.shape[0], size=starts))
    return rows(x, np.concatenate(values(_draws(oc.reshape(weights, (-1, 1)), starts, random))))


def plus_plus(
    x: Array, weights: Array | None, clusters: int, starts: int, random: np.random.RandomState
) -> list[NDArray]:
    """Each center a row drawn in proportion to its squared distance to those before (Arthur, Vassilvitskii 2007).

    Greedy as in the paper's section 5: of 2 + ⌊log k⌋ rows drawn the one that leaves the least inertia. A sweep tells
    the inertia of each, and draws for each the rows to come next. I/O: one read for each center, for all starts.
    """
    trials = _trials(clusters)
    chosen = [row[None, :] for row in _first(x, weights, starts, random)]
    offered: list[NDArray | None] = [None] * starts
    for count in range(1, clusters + (clusters > 1)):
        preparing(count, clusters, "center")
        terms: list[Array] = []
        for centers, candidates in zip(chosen, offered, strict=True):
            terms += _offers(x, weights, centers, candidates, trials if count < clusters else 0, random)
        results = sweep(terms)
        each = len(results) // starts
        for start in range(starts):
            inertia, *draws = results[start * each : (start + 1) * each]
            best = int(np.argmin(inertia))
            candidates = offered[start]
            if candidates is not None:
                chosen[start] = np.vstack([chosen[start], candidates[best]])
            if draws:
                offered[start] = rows(x, [draw[best] for draw in draws])
    return chosen


def _trials(clusters: int) -> int:
    return 2 + int(math.log(clusters))


def _offers(
    x: Array,
    weights: Array | None,
    centers: NDArray,
    candidates: NDArray | None,
    trials: int,
    random: np.random.RandomState,
) -> list[Array]:
    """The inertia that each candidate leaves, and for each so many rows to come next."""
    chances = _left(x, centers, candidates) * _column(weights)
    return [oc.sum(chances, axis=0), *_draws(chances, trials, random)]


def _left(x: Array, centers: NDArray, candidates: NDArray | None) -> Array:
    """Squared distances to the nearest center if a candidate were one, (rows, candidates), by one product."""
    if candidates is None:
        return least_distance(x, centers)
    every = np.vstack([centers, candidates])
    apart = x - oc.asarray(every.mean(axis=0))
    near = nearness(x, every)
    count = len(centers)
    least = oc.minimum(oc.min(near[:, :count], axis=1, keepdims=True), near[:, count:])
    return least + oc.sum(apart * apart, axis=1, keepdims=True)


def parallel(
    x: Array, weights: Array | None, clusters: int, starts: int, random: np.random.RandomState
) -> list[NDArray]:
    """k-means||: rounds of 2k rows each, drawn in proportion to squared distances, then k-means++ of those few.

    The rows drawn are weighed by the rows nearest to them (Bahmani, Moseley, Vattani, Kumar, Vassilvitskii 2012,
    algorithm 2, with so many rows exactly in every round). I/O: six reads, for all starts.
    """
    drawn = [row[None, :] for row in _first(x, weights, starts, random)]
    for number in range(_ROUNDS):
        preparing(number + 1, _ROUNDS, "round of starts")
        terms = []
        for centers in drawn:
            terms += _round(x, weights, centers, clusters, random)
        places = np.asarray(sweep(terms)).reshape(starts, -1)
        drawn = [np.unique(np.vstack([c, rows(x, p)]), axis=0) for c, p in zip(drawn, places, strict=True)]
    counts = [_followers(x, weights, centers) for centers in drawn]
    results = values(counts)
    return [
        plus_plus(oc.asarray(c), oc.asarray(w), clusters, 1, random)[0] for c, w in zip(drawn, results, strict=True)
    ]


def _round(
    x: Array, weights: Array | None, centers: NDArray, clusters: int, random: np.random.RandomState
) -> list[Array]:
    return _draws(least_distance(x, centers) * _column(weights), _OVERSAMPLING * clusters, random)


def _followers(x: Array, weights: Array | None, centers: NDArray) -> Array:
    """The weight of the rows nearest to each center."""
    nearest = oc.argmin(nearness(x, centers), axis=1)
    member = (nearest[:, None] == oc.arange(len(centers))).astype(np.float64)
    return oc.sum(member * _column(weights), axis=0)


def at_random(
    x: Array, weights: Array | None, clusters: int, starts: int, random: np.random.RandomState
) -> list[NDArray]:
    """Rows drawn evenly, each at most once; in proportion to the weights where there are some. I/O: those rows."""
    if weights is not None:
        return [np.vstack([_first(x, weights, 1, random) for _ in range(clusters)]) for _ in range(starts)]
    return [rows(x, random.choice(x.shape[0], clusters, replace=False)) for _ in range(starts)]


def foreseen(name: str, x: Array, weights: Array | None, clusters: int, starts: int) -> list[list[Array]]:
    """The sweeps of a kind of start that need most memory, for other numbers than it will have."""
    random = np.random.RandomState(0)

    def some(count: int, start: int) -> NDArray:
        return np.full((count, x.shape[1]), float(start))

    if name == "k-means++" and clusters > 1:
        trials = _trials(clusters)
        programs = [[part for s in range(starts) for part in _offers(x, weights, some(1, s), None, trials, random)]]
        for count in _fullest(x, clusters - 1 + trials):
            if count > trials + 1:
                offers = (
                    _offers(x, weights, some(count - trials, s), some(trials, s), trials, random) for s in range(starts)
                )
                programs.append([part for offer in offers for part in offer])
        return programs
    if name == "k-means||":
        drawn = _OVERSAMPLING * clusters
        programs = [[_followers(x, weights, some(1 + _ROUNDS * drawn, s)) for s in range(starts)]]
        for past in range(_ROUNDS):
            draws = (_round(x, weights, some(1 + past * drawn, s), clusters, random) for s in range(starts))
            programs.append([part for draw in draws for part in draw])
        return programs
    return []


def _fullest(x: Array, most: int) -> list[int]:
    """The numbers of centers up to `most` for which tiles of distances are fuller than for one more, and `most`."""
    tiles = [nearness(x, np.zeros((count, x.shape[1]))).tile for count in range(1, most + 1)]
    return [count for count in range(1, most) if tiles[count][0] < tiles[count - 1][0]] + [most]


STARTS = {"k-means++": plus_plus, "k-means||": parallel, "random": at_random}

__all__ = [
    "STARTS",
    "at_random",
    "foreseen",
    "parallel",
    "plus_plus",
    "least_distance",
    "nearness",
    "rows",
    "squared_distances",
]
