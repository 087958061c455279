"""`MiniBatchKMeans`: centers that move with every few rows."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from outcore import _api as oc
from outcore._base.element_types import DTypeLike
from outcore._base.types import NDArray
from outcore._lazy.array import Array
from outcore._lazy.node import ArrayLike
from outcore.learn import _starts
from outcore.learn._blocks import batches
from outcore.learn._fit import Fit, fitting, restored, values
from outcore.learn._flaws import refuse_row
from outcore.learn.cluster import _Clusters


@dataclass(eq=False, repr=False)
class MiniBatchKMeans(_Clusters):
    """Clusters by mini-batches (Sculley 2010): each moves the centers of its rows to the mean of all they had.

    Blocks of rows come in random order and their rows are shuffled, so an epoch is one read of X; a few epochs, or part
    of one, do for data that is large. It ends where the smoothed inertia of batches has not fallen in
    `max_no_improvement` of them, or after `max_iter` epochs. Centers start from `init_size` rows drawn at random
    (3 · batch_size unless told), by `init` as in `KMeans`. `checkpoint`: see `outcore.learn`.

    Fitted: `cluster_centers_`, `labels_` (lazy for lazy data), `inertia_`, `n_iter_` (epochs), `n_steps_` (batches),
    `counts_`, `history_` ("inertia" of a row, smoothed, after each epoch), `n_features_in_`. I/O: `fit` reads X once
    per epoch, and once for the inertia; `predict`, `transform` and `score` once.

    >>> import numpy as np
    >>> from outcore.learn import MiniBatchKMeans
    >>> model = MiniBatchKMeans(2, random_state=0).fit(np.asarray([[0.0], [1.0], [9.0], [10.0]]))
    >>> np.sort(model.cluster_centers_.ravel()).round(1)
    array([0.5, 9.5])
    """

    _: KW_ONLY
    max_iter: int = 100
    batch_size: int = 1024
    init_size: int | None = None
    max_no_improvement: int | None = 10

    def fit(self, X: ArrayLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> MiniBatchKMeans:
        """Centers for the rows of `X`. I/O: one read of `X` per epoch, and one for the inertia."""
        data = self._data(X)
        weights = self._weights(sample_weight, data)
        with fitting(self, X, sample_weight) as fit:
            self._epochs(data.x, weights, fit)
        self._show(data.x.dtype)
        self.labels_ = self.predict(X)
        self.inertia_ = -self.score(X, sample_weight=sample_weight)
        return self

    def _epochs(self, x: Array, weights: Array | None, fit: Fit) -> None:
        """Epochs until the smoothed inertia of batches falls no more."""
        patience = np.inf if self.max_no_improvement is None else self.max_no_improvement
        share = min(1.0, 2.0 * self.batch_size / (x.shape[0] + 1))
        smooth, best, since = np.inf, np.inf, 0
        last = fit.restore()
        if last is None:
            random = fit.random(self.random_state)
            self._start(x, weights, random)
            self.n_steps_ = 0
        else:
            self._centers, self._counts, counted, (smooth, best), *state = last.values
            self.n_steps_, since = (int(number) for number in counted)
            random = restored(state)
        while fit.step < self.max_iter and since < patience:
            for value in self._sweep(x, weights, random):
                smooth = value if np.isinf(smooth) else smooth * (1 - share) + value * share
                since = 0 if smooth < best else since + 1
                best = min(best, smooth)
                if since >= patience:
                    break
            fit.tell(self.max_iter, "epoch", inertia=smooth)
            _, *generator = random.get_state()
            fit.save([], [self._centers, self._counts, [self.n_steps_, since], [smooth, best], *generator])
        self.n_iter_ = fit.step

    def partial_fit(
        self, X: ArrayLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> MiniBatchKMeans:
        """One epoch more, over `X`; the first call finds the centers to start from in it. I/O: one read of `X`."""
        first = not hasattr(self, "_centers")
        data = self._data(X) if first else self._read(X, reset=False)
        weights = self._weights(sample_weight, data)
        with fitting(self, X, sample_weight, durable=False) as fit:
            random = fit.random(self.random_state)
            if first:
                self._start(data.x, weights, random)
                self.n_steps_ = 0
            lost = list(self._sweep(data.x, weights, random))
            fit.tell(1, "epoch", inertia=np.mean(lost))
        self._show(data.x.dtype)
        self.labels_ = self.predict(X)
        return self

    def _start(self, x: Array, weights: Array | None, random: np.random.RandomState) -> None:
        """Centers from rows drawn at random."""
        size = self.init_size or 3 * self.batch_size
        size = min(max(size, 3 * self.n_clusters), x.shape[0])
        places = np.sort(random.choice(x.shape[0], size, replace=False)) if size < x.shape[0] else np.arange(size)
        drawn = _starts.rows(x.astype(np.float64), places)
        refuse_row("X", drawn, places)
        few = oc.asarray(drawn)
        heavy = None if weights is None else oc.asarray(values([oc.take(weights, places)])[0])
        starts = self._begin(few, heavy, random)
        lost = values([oc.sum(_starts.least_distance(few, start)) for start in starts])
        self._centers = np.array(starts[int(np.argmin(lost))], dtype=np.float64)
        self._counts = np.zeros(self.n_clusters)

    def _sweep(self, x: Array, weights: Array | None, random: np.random.RandomState) -> Any:
        """One epoch; gives the mean squared distance of each batch to the centers before it moves them."""
        heavy = oc.ones((x.shape[0],)) if weights is None else weights
        named = {"X": x.astype(np.float64), "sample_weight": heavy}
        for rows, weight in batches(named, self.batch_size, random):
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

    def _revive(self, rows: NDArray, random: np.random.RandomState) -> None:
        """Centers that no row has come to yet, after ten batches, go to rows of this one."""
        lonely = np.flatnonzero(self._counts == 0)
        if len(lonely) and self.n_steps_ >= 10:
            chosen = random.choice(len(rows), min(len(lonely), len(rows)), replace=False)
            self._centers[lonely[: len(chosen)]] = rows[chosen]

    def _show(self, dtype: DTypeLike) -> None:
        self.cluster_centers_ = self._centers.astype(dtype)
        self.counts_ = self._counts.copy()


__all__ = ["MiniBatchKMeans"]
