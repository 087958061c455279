"""`MiniBatchKMeans`: centers that move with every few rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

import outcore as oc
from outcore._array import Array
from outcore.learn import _starts
from outcore.learn._blocks import batches
from outcore.learn.cluster import _Clusters

Numbers = npt.NDArray[Any]


class MiniBatchKMeans(_Clusters):
    """Clusters by mini-batches (Sculley 2010): each moves the centers of its rows to the mean of all they had.

    Blocks of rows come in random order and their rows are shuffled, so an epoch is one read of X; a few epochs, or part
    of one, do for data that is large. It ends where the smoothed inertia of batches has not fallen in
    `max_no_improvement` of them, or after `max_iter` epochs. Centers start from `init_size` rows drawn at random
    (3 · batch_size unless told), by `init` as in `KMeans`.

    Fitted: `cluster_centers_`, `labels_` (lazy for lazy data), `inertia_`, `n_iter_` (epochs), `n_steps_` (batches),
    `counts_`, `n_features_in_`. I/O: `fit` reads X once per epoch, and once for the inertia; `predict`, `transform` and
    `score` once.

    >>> import numpy as np
    >>> from outcore.learn import MiniBatchKMeans
    >>> model = MiniBatchKMeans(2, random_state=0).fit(np.asarray([[0.0], [1.0], [9.0], [10.0]]))
    >>> np.sort(model.cluster_centers_.ravel()).round(1)
    array([0.5, 9.5])
    """

    _counts: Numbers
    _centers: Numbers

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: Any = "k-means++",
        n_init: Any = "auto",
        max_iter: int = 100,
        batch_size: int = 1024,
        init_size: int | None = None,
        max_no_improvement: int | None = 10,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.init_size = init_size
        self.max_no_improvement = max_no_improvement
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> MiniBatchKMeans:
        """Centers for the rows of `X`. I/O: one read of `X` per epoch, and one for the inertia."""
        data = self._data(X)
        weights = self._weights(sample_weight, data)
        random = check_random_state(self.random_state)
        self._start(data.x, weights, random)
        self.n_steps_, smooth, best, since = 0, np.inf, np.inf, 0
        share = min(1.0, 2.0 * self.batch_size / (data.x.shape[0] + 1))
        for epoch in range(1, self.max_iter + 1):
            self.n_iter_ = epoch
            for value in self._sweep(data.x, weights, random):
                smooth = value if np.isinf(smooth) else smooth * (1 - share) + value * share
                since = 0 if smooth < best else since + 1
                best = min(best, smooth)
                if self.max_no_improvement is not None and since >= self.max_no_improvement:
                    break
            if self.verbose:
                print(f"MiniBatchKMeans: epoch {epoch}, inertia of a row {smooth:.6g}")
            if self.max_no_improvement is not None and since >= self.max_no_improvement:
                break
        self._show(data.x.dtype)
        self.labels_ = self.predict(X)
        self.inertia_ = -self.score(X, sample_weight=sample_weight)
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> MiniBatchKMeans:
        """One epoch more, over `X`; the first call finds the centers to start from in it. I/O: one read of `X`."""
        first = not hasattr(self, "_centers")
        data = self._data(X) if first else self._read(X, reset=False)
        weights = self._weights(sample_weight, data)
        random = check_random_state(self.random_state)
        if first:
            self._start(data.x, weights, random)
            self.n_steps_ = 0
        for _ in self._sweep(data.x, weights, random):
            pass
        self._show(data.x.dtype)
        self.labels_ = self.predict(X)
        return self

    def _start(self, x: Array, weights: Array | None, random: Any) -> None:
        """Centers from rows drawn at random."""
        size = self.init_size or 3 * self.batch_size
        size = min(max(size, 3 * self.n_clusters), x.shape[0])
        places = np.sort(random.choice(x.shape[0], size, replace=False)) if size < x.shape[0] else np.arange(size)
        few = oc.asarray(_starts.rows(x.astype(np.float64), places))
        heavy = None if weights is None else oc.asarray(oc.take(weights, places).compute())
        starts = self._begin(few, heavy)
        lost = [float(oc.sum(_starts.least_distance(few, start)).compute()) for start in starts]
        self._centers = np.array(starts[int(np.argmin(lost))], dtype=np.float64)
        self._finite(self._centers)
        self._counts = np.zeros(self.n_clusters)

    def _sweep(self, x: Array, weights: Array | None, random: Any) -> Any:
        """One epoch; gives the mean squared distance of each batch to the centers before it moves them."""
        heavy = oc.ones((x.shape[0],)) if weights is None else weights
        for rows, weight in batches([x.astype(np.float64), heavy], self.batch_size, random):
            self._finite(rows)
            apart = rows - self._centers[0]
            centers = self._centers - self._centers[0]
            near = np.einsum("ij,ij->i", centers, centers) - 2 * (apart @ centers.T)
            labels = near.argmin(axis=1)
            lost = near[np.arange(len(rows)), labels] + np.einsum("ij,ij->i", apart, apart)
            member = np.zeros((len(rows), self.n_clusters))
            member[np.arange(len(rows)), labels] = weight
            count = member.sum(axis=0)
            self._counts += count
            pull = member.T @ apart - count[:, None] * centers
            self._centers += pull / np.where(self._counts > 0, self._counts, 1)[:, None]
            self._revive(rows, random)
            self.n_steps_ += 1
            yield float(np.maximum(lost, 0) @ weight / max(float(weight.sum()), np.finfo(float).tiny))

    def _revive(self, rows: Numbers, random: Any) -> None:
        """Centers that no row has come to yet, after ten batches, go to rows of this one."""
        lonely = np.flatnonzero(self._counts == 0)
        if len(lonely) and self.n_steps_ >= 10:
            chosen = random.choice(len(rows), min(len(lonely), len(rows)), replace=False)
            self._centers[lonely[: len(chosen)]] = rows[chosen]

    def _show(self, dtype: Any) -> None:
        self.cluster_centers_ = self._centers.astype(dtype)
        self.counts_ = self._counts.copy()


__all__ = ["MiniBatchKMeans"]
