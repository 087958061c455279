"""`KMeans`: Lloyd's iterations, of several starts at once, in one read of the data per iteration."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import ClusterMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning

from outcore import _api as oc
from outcore._base.types import NDArray, RandomState
from outcore._lazy.array import Array
from outcore._lazy.node import ArrayLike, Operand
from outcore.errors import ArgumentError, ShapeError
from outcore.learn import _starts
from outcore.learn._base import Answer, Data, Estimator, weighted
from outcore.learn._fit import Beside, Fit, fitting, foresee, sweep, values
from outcore.learn._moments import ColumnMoments
from outcore.learn._shift import shift
from outcore.learn._starts import least_distance, nearness, squared_distances

_ROUNDING = 1024 * np.finfo(np.float64).eps  # of the mean of many equal rows, beside their elements


class LloydStep:
    """One sweep of Lloyd's iteration for one start: the sum of each cluster's rows, and its weight."""

    def __init__(self, x: Array, weights: Array | None, centers: NDArray) -> None:
        self.labels = oc.argmin(nearness(x, centers), axis=1)
        member = (self.labels[:, None] == oc.arange(len(centers))).astype(np.float64)
        heavy = weighted(member, weights)
        self.terms = (heavy.T @ x, oc.sum(heavy, axis=0))


@dataclass(eq=False, repr=False)
class _ClusterParameters:
    """The parameters of both kinds; scikit-learn reads the names from the `__init__` that this makes."""

    n_clusters: int = 8
    _: KW_ONLY
    init: Any = "k-means++"
    n_init: int | str = "auto"
    max_iter: int = 300
    verbose: int = 0
    random_state: RandomState = None
    checkpoint: int | None = None


class _Clusters(_ClusterParameters, ClusterMixin, TransformerMixin, Estimator):  # type: ignore[misc]
    """Centers that rows belong to, the nearest each."""

    cluster_centers_: NDArray

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    def __sklearn_tags__(self) -> object:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _data(self, X: ArrayLike) -> Data:
        data = self._read(X, reset=True)
        if not 1 <= self.n_clusters <= data.x.shape[0]:
            raise ShapeError(
                f"{type(self).__name__}: n_samples={data.x.shape[0]} should be >= n_clusters={self.n_clusters}, "
                f"and that at least 1"
            )
        return data

    def _begin(self, x: Array, weights: Array | None, random: np.random.RandomState) -> list[NDArray]:
        """The centers to start from, one array for each start."""
        initial = None if isinstance(self.init, str) or callable(self.init) else np.asarray(self.init, dtype=np.float64)
        if initial is not None and initial.shape != (self.n_clusters, x.shape[1]):
            raise ShapeError(
                f"{type(self).__name__}: init of shape {initial.shape} for {self.n_clusters} clusters of {x.shape[1]} "
                f"features"
            )
        if isinstance(self.init, str) and self.init not in _starts.STARTS:
            raise ArgumentError(f"{type(self).__name__}: init={self.init!r} is none of {', '.join(_starts.STARTS)}")
        if initial is not None:
            return [initial]
        return _starts.STARTS[self.init](x, weights, self.n_clusters, self._starts(), random)

    def _starts(self) -> int:
        """How many starts there are."""
        if not isinstance(self.init, str):
            return 1
        if self.n_init == "auto":
            return 10 if self.init == "random" else 1
        return int(self.n_init)

    def predict(self, X: ArrayLike) -> Answer:
        """The nearest center of each row, int64 (int32 of NumPy arrays, as in scikit-learn). I/O: one read of `X`."""
        data = self._read_fitted(X)
        labels = LloydStep(data.x, None, self.cluster_centers_).labels
        return labels if data.lazy else labels.compute().astype(np.int32)

    def transform(self, X: ArrayLike) -> Answer:
        """The distance of each row to each center, (n, clusters). I/O: one read of `X`."""
        data = self._read_fitted(X)
        centers = self.cluster_centers_
        x = data.x.astype(np.float64)
        distances = oc.sqrt(squared_distances(x, centers))
        return data.answer(distances.astype(data.x.dtype))

    def score(self, X: ArrayLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> float:
        """Minus the sum of squared distances to the nearest centers. I/O: one read of `X`."""
        data = self._read_fitted(X)
        apart = oc.clip(least_distance(data.x.astype(np.float64), self.cluster_centers_), 0.0, None)
        return -float(oc.sum(weighted(apart, self._weights(sample_weight, data))).compute())


@dataclass(eq=False, repr=False)
class KMeans(_Clusters):
    """Clusters of least inertia Σ w |x − c(x)|², by Lloyd's iteration: every row to its nearest center, every center to
    the mean of its rows (Lloyd 1982).

    Distances are |c|² − 2x·c through one product, sums of clusters the product of memberships with the data; the
    inertia follows from these sums and the scatter of the data. The starts (`n_init`) advance together, one read of X
    for an iteration of all. A cluster without rows moves to a row far from its center. It ends where labels stay, or
    centers move by less than `tol` times the mean variance.

    `init`: "k-means++" (Arthur, Vassilvitskii 2007; greedy; a read per center), "k-means||" (Bahmani et al. 2012; five
    reads), "random" (rows), or an array of centers. `checkpoint`: see `outcore.learn`.

    Fitted: `cluster_centers_`, `labels_` (lazy for lazy data), `inertia_`, `n_iter_`, `history_` ("inertia" before each
    iteration, of the start that was best), `n_features_in_`. I/O: `fit`
    reads X for the start, once per iteration and once beside; `predict`, `transform` and `score` once.

    >>> import numpy as np
    >>> from outcore.learn import KMeans
    >>> model = KMeans(n_clusters=2, random_state=0).fit(np.asarray([[0.0], [1.0], [9.0], [10.0]]))
    >>> np.sort(model.cluster_centers_.ravel())
    array([0.5, 9.5])
    """

    _: KW_ONLY
    tol: float = 1e-4

    def fit(self, X: ArrayLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> KMeans:
        """Centers for the rows of `X`. I/O: the reads of the starts, one per iteration, and one.

        Raises MemoryLimitError before any read where a sweep does not fit. Warns (ConvergenceWarning) where there are
        fewer distinct rows than clusters.
        """
        data = self._data(X)
        weights = self._weights(sample_weight, data)
        x = data.x.astype(np.float64)
        with fitting(self, X, sample_weight) as fit:
            centers, few = self._learn(x, weights, None, fit)
        if few:
            self._warn_of_few(few)
        self.cluster_centers_ = centers.astype(data.x.dtype)
        self.labels_ = self.predict(X) if data.lazy else LloydStep(x, None, centers).labels.compute().astype(np.int32)
        return self

    def fit_known(self, x: Array, moments: tuple[NDArray, NDArray, NDArray]) -> Array:
        """Labels of data whose weight, mean and squared distances from it by column are known, after a fit to it."""
        with fitting(self, x) as fit:
            self.cluster_centers_, few = self._learn(x, None, moments, fit)
        if few:
            self._warn_of_few(few)
        return LloydStep(x, None, self.cluster_centers_).labels

    def _learn(
        self, x: Array, weights: Array | None, known: tuple[NDArray, NDArray, NDArray] | None, fit: Fit
    ) -> tuple[NDArray, int]:
        """As `_lloyd` from the starts. The moments of the columns come from the first sweep unless they are known."""
        # Beside products of x, sums of what is less an unknown row would be a sweep of their own.
        center = None if weights is None else values([shift(x, weights)])[0][0]
        of = ColumnMoments(x, weights, center=center)
        foresee(*self._foreseen(x, weights, of))
        origin = fit.along(of.terms, lambda results: self._origin(*of.settle(results)))
        if known is not None:
            origin.settled(self._origin(*known))
        starts = self._begin(x, weights, fit.random(self.random_state))
        return self._lloyd(x, weights, starts, origin, fit)

    def _warn_of_few(self, rows: int) -> None:
        warnings.warn(
            f"KMeans: {rows} distinct row{'s' * (rows > 1)}, {self.n_clusters} clusters; "
            f"decrease n_clusters to at most {rows}",
            ConvergenceWarning,
            stacklevel=3,
        )

    def _origin(self, weight: NDArray, mean: NDArray, squares: NDArray) -> _Origin:
        if not weight[0] > 0:
            raise ArgumentError(f"KMeans: the sum of sample_weight must be above 0, not {weight[0]}")
        return _Origin(mean, float(squares.sum()), self.tol * float(np.mean(squares)) / float(weight[0]))

    def _foreseen(self, x: Array, weights: Array | None, of: ColumnMoments) -> list[list[Operand]]:
        """The sweeps that need most memory: of the start, and of an iteration."""
        starts = self._starts()
        begins = _starts.foreseen(self.init, x, weights, self.n_clusters, starts) if isinstance(self.init, str) else []
        some = [np.full((self.n_clusters, x.shape[1]), float(start)) for start in range(starts)]
        step = [part for centers in some for part in LloydStep(x, weights, centers).terms]
        return [[*program, *of.terms] for program in (*begins, step)]

    def _lloyd(
        self, x: Array, weights: Array | None, starts: list[NDArray], about: Beside, fit: Fit
    ) -> tuple[NDArray, int]:
        """The best of the starts after Lloyd's iterations, and the distinct rows if they are fewer than its centers."""
        inertia, rounds = np.full(len(starts), np.inf), np.full(len(starts), self.max_iter)
        moving, few = list(range(len(starts))), np.zeros(len(starts), dtype=np.int64)
        passed: list[list[float]] = [[] for _ in starts]
        stale: set[int] = set()
        fit.show(self.max_iter, "iteration")
        for iteration in range(1, self.max_iter + 1):
            advanced = _advanced(x, weights, [starts[at] for at in moving], about)
            for place, (new, value, few[place]) in zip(moving, advanced, strict=True):
                step = float(np.sum((new - starts[place]) ** 2))
                least = float(np.sum((_ROUNDING * new) ** 2))
                starts[place], inertia[place] = new, value
                passed[place].append(value)
                # Where a center moved the inertia is that of the centers before.
                (stale.add if step > least else stale.discard)(place)
                if step <= max(about.value().tolerance, least):
                    rounds[place] = iteration
            fit.tell(self.max_iter, inertia=inertia.min())
            moving = [place for place in moving if rounds[place] > iteration]
            if not moving:
                break
        due = sorted(stale)
        for place, (_, value, _) in zip(due, _advanced(x, weights, [starts[at] for at in due], about), strict=True):
            inertia[place] = value
        best = int(np.argmin(inertia))
        fit.history = {"inertia": passed[best]}
        self.inertia_, self.n_iter_ = float(inertia[best]), int(rounds[best])
        return starts[best], int(few[best])


class _Origin(NamedTuple):
    """The weighted mean of the data, the sum of squared distances from it, and the least step that counts."""

    mean: NDArray
    scatter: float
    tolerance: float

    def inertia(self, sums: NDArray, counts: NDArray, centers: NDArray) -> float:
        """Σ w|x − c(x)|² = Σ w|x − m|² − Σ_k (2 s_k·(c_k − m) − n_k |c_k − m|²), with s_k the sums about the mean m."""
        apart = centers - self.mean
        explained = 2.0 * np.sum((sums - counts[:, None] * self.mean) * apart)
        return max(float(self.scatter - explained + counts @ np.einsum("ij,ij->i", apart, apart)), 0.0)


def _advanced(
    x: Array, weights: Array | None, starts: list[NDArray], about: Beside
) -> list[tuple[NDArray, float, int]]:
    """The centers that follow each of some starts, the inertia of those given, and the number of distinct rows where
    those are fewer than the centers, else 0. One read for all."""
    terms = [part for centers in starts for part in LloydStep(x, weights, centers).terms]
    results = sweep(terms) if terms else []
    result = []
    for place, old in enumerate(starts):
        sums, counts = results[2 * place : 2 * place + 2]
        value, few = about.value().inertia(sums, counts, old), 0
        if np.any(counts == 0):
            sums, counts, few = _refilled(x, weights, old, sums, counts)
        new = np.where(counts[:, None] > 0, sums / np.where(counts > 0, counts, 1)[:, None], old)
        result.append((new, value, few))
    return result


def _refilled(
    x: Array, weights: Array | None, centers: NDArray, sums: NDArray, counts: NDArray
) -> tuple[NDArray, NDArray, int]:
    """Sums and weights where each cluster without rows took the row farthest from all centers out of its cluster.

    Where no row is away from its center there are as many distinct rows as clusters that have some, which is the last
    result, and nothing is taken. I/O: one read for each such cluster; they are few, and rare.
    """
    sums, counts = sums.copy(), counts.copy()
    apart = squared_distances(x, centers)
    far = oc.min(apart, axis=1)
    far = far if weights is None else oc.where(weights > 0, far, -1.0)
    taken: list[int] = []
    for empty in np.flatnonzero(counts == 0)[: x.shape[0]]:
        for place in taken[-1:]:
            far = oc.where(oc.arange(x.shape[0]) == place, -1.0, far)
        place = int(values([oc.argmax(far)])[0])
        row = x[place]
        weight = oc.ones(()) if weights is None else weights[place]
        numbers, heavy, nearest = values([row, weight, oc.argmin(apart[place], axis=0)])
        if np.all(np.abs(numbers - centers[nearest]) <= _ROUNDING * np.abs(numbers)) and not taken:
            return sums, counts, int(np.count_nonzero(counts))
        if counts[nearest] <= heavy:
            break  # a cluster of one row would be empty in its turn
        sums[nearest] -= heavy * numbers
        counts[nearest] -= heavy
        sums[empty], counts[empty] = heavy * numbers, heavy
        taken.append(place)
    return sums, counts, 0


__all__ = ["KMeans", "LloydStep"]
