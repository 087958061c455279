"""`KMeans`: Lloyd's iterations, of several starts at once, in one read of the data per iteration."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.base import ClusterMixin, TransformerMixin

import outcore as oc
from outcore._array import Array
from outcore.errors import ArgumentError, ShapeError
from outcore.learn import _starts
from outcore.learn._base import Data, Estimator, weighted
from outcore.learn._course import Course, course, values
from outcore.learn._moments import column_moments
from outcore.learn._starts import least_distance, nearness, squared_distances

Numbers = npt.NDArray[Any]


class Step:
    """One sweep of Lloyd's iteration for one start: the sum of each cluster's rows, and its weight."""

    def __init__(self, x: Array, weights: Array | None, centers: Numbers) -> None:
        self.labels = oc.argmin(nearness(x, centers), axis=1)
        member = (self.labels[:, None] == oc.arange(len(centers))).astype(np.float64)
        heavy = weighted(member, weights)
        self.wanted = (heavy.T @ x, oc.sum(heavy, axis=0))


@dataclass(eq=False, repr=False)
class _Parameters:
    """What both kinds are made with; scikit-learn reads the names from the `__init__` that this makes."""

    n_clusters: int = 8
    _: KW_ONLY
    init: Any = "k-means++"
    n_init: Any = "auto"
    max_iter: int = 300
    verbose: int = 0
    random_state: Any = None
    checkpoint: int | None = None


class _Clusters(_Parameters, ClusterMixin, TransformerMixin, Estimator):  # type: ignore[misc]
    """Centers that rows belong to, the nearest each."""

    cluster_centers_: Numbers

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _data(self, X: Any) -> Data:
        data = self._read(X, reset=True)
        if not 1 <= self.n_clusters <= data.x.shape[0]:
            raise ShapeError(
                f"{type(self).__name__}: n_samples={data.x.shape[0]} should be >= n_clusters={self.n_clusters}, "
                f"and that at least 1"
            )
        return data

    def _begin(self, x: Array, weights: Array | None, random: Any) -> list[Numbers]:
        """The centers to start from, one array for each start."""
        given = None if isinstance(self.init, str) or callable(self.init) else np.asarray(self.init, dtype=np.float64)
        if given is not None and given.shape != (self.n_clusters, x.shape[1]):
            raise ShapeError(
                f"{type(self).__name__}: init of shape {given.shape} for {self.n_clusters} clusters of {x.shape[1]} "
                f"features"
            )
        if isinstance(self.init, str) and self.init not in _starts.STARTS:
            raise ArgumentError(f"{type(self).__name__}: init={self.init!r} is none of {', '.join(_starts.STARTS)}")
        starts = self.n_init
        if starts == "auto":
            starts = 10 if isinstance(self.init, str) and self.init == "random" else 1
        if given is not None:
            return [given]
        return _starts.STARTS[self.init](x, weights, self.n_clusters, int(starts), random)

    def predict(self, X: Any) -> Any:
        """The nearest center of each row, int64 (int32 of NumPy arrays, as in scikit-learn). I/O: one read of `X`."""
        data = self._read_fitted(X)
        found = Step(data.x, None, self.cluster_centers_).labels
        return found if data.lazy else found.compute().astype(np.int32)

    def transform(self, X: Any) -> Any:
        """The distance of each row to each center, (n, clusters). I/O: one read of `X`."""
        data = self._read_fitted(X)
        centers = self.cluster_centers_
        x = data.x.astype(np.float64)
        found = oc.sqrt(squared_distances(x, centers))
        return data.answer(found.astype(data.x.dtype))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
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
    reads X for the start, once per iteration and twice beside; `predict`, `transform` and `score` once.

    >>> import numpy as np
    >>> from outcore.learn import KMeans
    >>> model = KMeans(n_clusters=2, random_state=0).fit(np.asarray([[0.0], [1.0], [9.0], [10.0]]))
    >>> np.sort(model.cluster_centers_.ravel())
    array([0.5, 9.5])
    """

    _: KW_ONLY
    tol: float = 1e-4

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> KMeans:
        """Centers for the rows of `X`. I/O: one read, those of the starts, one per iteration, and one."""
        data = self._data(X)
        weights = self._weights(sample_weight, data)
        x = data.x.astype(np.float64)
        with course(self, X, sample_weight) as going:
            heavy, mean, scatter = column_moments(x, weights)
            if not heavy[0] > 0:
                raise ArgumentError(f"KMeans: the weights of all observations add up to {heavy[0]}")
            about = _Origin(mean, float(scatter.sum()), self.tol * float(np.mean(scatter)) / float(heavy[0]))
            starts = self._begin(x, weights, going.random(self.random_state))
            centers, self.inertia_, self.n_iter_ = self._lloyd(x, weights, starts, about, going)
        self.cluster_centers_ = centers.astype(data.x.dtype)
        self.labels_ = self.predict(X) if data.lazy else Step(x, None, centers).labels.compute().astype(np.int32)
        return self

    def _lloyd(
        self, x: Array, weights: Array | None, starts: list[Numbers], about: _Origin, going: Course
    ) -> tuple[Numbers, float, int]:
        """The best of the starts after Lloyd's iterations: centers, inertia, iterations."""
        inertia, rounds = np.full(len(starts), np.inf), np.full(len(starts), self.max_iter)
        moving = list(range(len(starts)))
        passed: list[list[float]] = [[] for _ in starts]
        stale: set[int] = set()
        for iteration in range(1, self.max_iter + 1):
            advanced = _advanced(x, weights, [starts[at] for at in moving], about)
            for place, (new, value) in zip(moving, advanced, strict=True):
                step = float(np.sum((new - starts[place]) ** 2))
                starts[place], inertia[place] = new, value
                passed[place].append(value)
                # Where a center moved the inertia is that of the centers before.
                (stale.add if step > 0 else stale.discard)(place)
                if step <= about.tolerance:
                    rounds[place] = iteration
            going.tell(iteration, self.max_iter, inertia=inertia.min())
            moving = [place for place in moving if rounds[place] > iteration]
            if not moving:
                break
        due = sorted(stale)
        for place, (_, value) in zip(due, _advanced(x, weights, [starts[at] for at in due], about), strict=True):
            inertia[place] = value
        best = int(np.argmin(inertia))
        going.history = {"inertia": passed[best]}
        return starts[best], float(inertia[best]), int(rounds[best])


class _Origin(NamedTuple):
    """The weighted mean of the data, the sum of squared distances from it, and the least step that counts."""

    mean: Numbers
    scatter: float
    tolerance: float

    def inertia(self, sums: Numbers, counts: Numbers, centers: Numbers) -> float:
        """Σ w|x − c(x)|² = Σ w|x − m|² − Σ_k (2 s_k·(c_k − m) − n_k |c_k − m|²), with s_k the sums about the mean m."""
        apart = centers - self.mean
        explained = 2.0 * np.sum((sums - counts[:, None] * self.mean) * apart)
        return max(float(self.scatter - explained + counts @ np.einsum("ij,ij->i", apart, apart)), 0.0)


def _advanced(x: Array, weights: Array | None, starts: list[Numbers], about: _Origin) -> list[tuple[Numbers, float]]:
    """The centers that follow each of some starts, and the inertia of those given. One read for all."""
    wanted = [part for centers in starts for part in Step(x, weights, centers).wanted]
    found = values(wanted)
    result = []
    for place, old in enumerate(starts):
        sums, counts = found[2 * place : 2 * place + 2]
        value = about.inertia(sums, counts, old)
        if np.any(counts == 0):
            sums, counts = _refilled(x, weights, old, sums, counts)
        new = np.where(counts[:, None] > 0, sums / np.where(counts > 0, counts, 1)[:, None], old)
        result.append((new, value))
    return result


def _refilled(
    x: Array, weights: Array | None, centers: Numbers, sums: Numbers, counts: Numbers
) -> tuple[Numbers, Numbers]:
    """Sums and weights where each cluster without rows took the row farthest from all centers out of its cluster.

    I/O: one read for each such cluster; they are few, and rare.
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
        numbers, heavy, own = values([row, weight, oc.argmin(apart[place], axis=0)])
        if counts[own] <= heavy:
            break  # a cluster of one row would be empty in its turn
        sums[own] -= heavy * numbers
        counts[own] -= heavy
        sums[empty], counts[empty] = heavy * numbers, heavy
        taken.append(place)
    return sums, counts


__all__ = ["KMeans", "Step"]
