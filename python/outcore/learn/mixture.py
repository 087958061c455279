"""`GaussianMixture`: expectation maximization, one read of the data per iteration."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import DensityMixin
from sklearn.utils import check_random_state

from outcore import _api as oc
from outcore._base.types import NDArray, RandomState
from outcore._lazy.array import Array
from outcore._lazy.node import ArrayLike, Operand
from outcore.errors import ArgumentError, ShapeError
from outcore.learn import _densities, _starts
from outcore.learn._base import Answer, Data, Estimator
from outcore.learn._fit import Fit, clear_room, fitting, foresee, values
from outcore.learn._moments import column_moments
from outcore.learn.cluster import KMeans

_FAR = 100.0  # deviations
_ROOM = 6  # matrices as large as the covariances, in memory at once


class GaussianMixture(DensityMixin, Estimator):  # type: ignore[misc]
    """A mixture of normal distributions, Σ π_k N(μ_k, Σ_k), by expectation maximization (Dempster, Laird, Rubin 1977).

    One sweep per iteration: log-densities are products of the data with Cholesky factors of the precisions,
    responsibilities r their softmax, and Σ r, Σ r x, Σ r x xᵀ products of r with the data. Data whose mean is many
    deviations from zero is shifted by it, so that second moments cancel little; components that lie thousands of
    deviations apart lose digits.

    `covariance_type`: "full", "tied", "diag" or "spherical". It starts from `means_init`, `weights_init` and
    `precisions_init` where they are given, else from memberships by "kmeans", in rows by "k-means++", "k-means||" or
    "random_from_data". It ends where the mean log-likelihood gains less than `tol`; the best of `n_init` starts stays.
    `checkpoint`: see `outcore.learn`.

    Fitted: `weights_`, `means_`, `covariances_`, `precisions_`, `precisions_cholesky_`, `converged_`, `n_iter_`,
    `lower_bound_`, `lower_bounds_`, `history_` (those as "log_likelihood"), `n_features_in_`. I/O: those of the start,
    and one read per iteration.

    >>> import numpy as np
    >>> from outcore.learn import GaussianMixture
    >>> model = GaussianMixture(2, random_state=0).fit(np.asarray([[0.0], [1.0], [9.0], [10.0]]))
    >>> np.sort(model.means_.ravel()).round(6)
    array([0.5, 9.5])
    """

    def __init__(
        self,
        n_components: int = 1,
        *,
        covariance_type: str = "full",
        tol: float = 1e-3,
        reg_covar: float = 1e-6,
        max_iter: int = 100,
        n_init: int = 1,
        init_params: str = "kmeans",
        weights_init: ArrayLike | None = None,
        means_init: ArrayLike | None = None,
        precisions_init: ArrayLike | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
        checkpoint: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.tol = tol
        self.reg_covar = reg_covar
        self.max_iter = max_iter
        self.n_init = n_init
        self.init_params = init_params
        self.weights_init = weights_init
        self.means_init = means_init
        self.precisions_init = precisions_init
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> GaussianMixture:
        """The parameters of greatest likelihood near the starts."""
        data = self._read(X, reset=True, rows_min=2)
        self._check(data.x)
        matrices = {"full": self.n_components, "tied": 1}.get(self.covariance_type, 0)
        self._check_room(_ROOM * matrices * data.x.shape[1] ** 2)
        with fitting(self, X) as fit:
            foresee(self._foreseen(data.x.astype(np.float64)))
            random = fit.random(self.random_state)
            moments = column_moments(data.x)
            center = self._origin(*moments)
            x = data.x.astype(np.float64)
            x = x - oc.asarray(center) if center.any() else x
            best = -np.inf
            for _ in range(self.n_init):
                state, bounds, converged = self._maximize(x, self._begin(x, center, moments, random), fit)
                if bounds[-1] > best:
                    best = bounds[-1]
                    self._keep(state, center, bounds, converged)
            fit.history = {"log_likelihood": self.lower_bounds_}
        if not self.converged_:
            self._not_converged(self.max_iter)
        return self

    def _origin(self, count: NDArray, mean: NDArray, scatter: NDArray) -> NDArray:
        """The mean of the data where second moments about zero would lose more than four digits, else zero."""
        far = np.any(mean**2 * count > _FAR**2 * scatter)
        return mean if far else np.zeros_like(mean)

    def _check(self, x: Array) -> None:
        if self.covariance_type not in _densities.FORMS:
            raise ArgumentError(
                f"GaussianMixture: covariance_type={self.covariance_type!r} is none of {', '.join(_densities.FORMS)}"
            )
        if not 1 <= self.n_components <= x.shape[0]:
            raise ShapeError(
                f"GaussianMixture: n_samples={x.shape[0]} should be >= n_components={self.n_components}, and that >= 1"
            )
        if self.max_iter < 1 or self.n_init < 1:
            raise ArgumentError(
                f"GaussianMixture: max_iter={self.max_iter} and n_init={self.n_init} must each be at least 1"
            )

    def _begin(
        self, x: Array, center: NDArray, moments: Any, random: np.random.RandomState
    ) -> tuple[NDArray, NDArray, NDArray]:
        """Weights, means (of shifted data) and factors of the precisions to start from. Few reads."""
        count, form = self.n_components, self.covariance_type
        initial = (self.weights_init, self.means_init, self.precisions_init)
        if all(part is not None for part in initial):
            return np.asarray(initial[0], dtype=np.float64), np.asarray(initial[1]) - center, self._initial_factors()
        if self.init_params == "kmeans":
            weight, mean, scatter = moments
            known = weight, mean - center, scatter
            nearest = KMeans(count, n_init=1, random_state=random).fit_known(x, known)
        elif self.init_params in ("k-means++", "k-means||", "random_from_data"):
            name = "random" if self.init_params == "random_from_data" else self.init_params
            rows = _starts.STARTS[name](x, None, count, 1, random)[0]
            nearest = oc.argmin(_starts.nearness(x, rows), axis=1)
        else:
            raise ArgumentError(
                f"GaussianMixture: init_params={self.init_params!r} is none of kmeans, k-means++, k-means||, "
                f"random_from_data"
            )
        shares = (nearest[:, None] == oc.arange(count)).astype(np.float64)
        weights, means, factors = self._estimate(values(_densities.sums(x, shares, form)), x.shape[0])
        if self.weights_init is not None:
            weights = np.asarray(self.weights_init, dtype=np.float64)
        if self.means_init is not None:
            means = np.asarray(self.means_init) - center
        return weights, means, factors if self.precisions_init is None else self._initial_factors()

    def _initial_factors(self) -> NDArray:
        precisions = np.asarray(self.precisions_init, dtype=np.float64)
        if self.covariance_type in ("diag", "spherical"):
            return np.sqrt(precisions)
        return np.linalg.cholesky(precisions)

    def _estimate(self, sums: list[NDArray], rows: int) -> tuple[NDArray, NDArray, NDArray]:
        """The M step: weights, means and factors of the precisions from sums over the rows."""
        clear_room(_ROOM * sum(part.size for part in sums[2:]))
        sums[0] = sums[0] + 10 * np.finfo(np.float64).eps
        means = sums[1] / sums[0][:, None]
        self._covariances = _densities.covariances(sums, means, self.covariance_type, self.reg_covar)
        return sums[0] / sums[0].sum(), means, _densities.factors(self._covariances, self.covariance_type)

    def _maximize(self, x: Array, state: tuple[NDArray, NDArray, NDArray], fit: Fit) -> tuple[Any, list[float], bool]:
        """EM from one start: the state, the mean log-likelihood before each step, whether it converged."""
        bounds: list[float] = []
        fit.step = 0
        for iteration in range(1, self.max_iter + 1):
            likelihood, *sums = values(self._step(x, *state))
            bounds.append(float(likelihood))
            state = self._estimate(sums, x.shape[0])
            fit.tell(self.max_iter, log_likelihood=bounds[-1])
            if iteration > 1 and abs(bounds[-1] - bounds[-2]) < self.tol:
                return (*state, self._covariances), bounds, True
        return (*state, self._covariances), bounds, False

    def _step(self, x: Array, weights: NDArray, means: NDArray, factors: NDArray) -> list[Operand]:
        """The mean log-likelihood, and the sums that the next state is made of."""
        joint = self._joint(x, weights, means, factors)
        top = oc.max(joint, axis=1, keepdims=True)
        parts = oc.exp(joint - top)
        norm = oc.sum(parts, axis=1, keepdims=True)
        return [oc.mean(top + oc.log(norm)), *_densities.sums(x, parts / norm, self.covariance_type)]

    def _foreseen(self, x: Array) -> list[Operand]:
        """A step of numbers that it will not have, of data that is shifted."""
        count, features = self.n_components, x.shape[1]
        shape = {"full": (count, features, features), "tied": (features, features), "diag": (count, features)}
        factors = np.ones(shape.get(self.covariance_type, (count,)))
        return self._step(x - oc.asarray(np.ones(features)), np.ones(count), np.ones((count, features)), factors)

    def _joint(self, x: Array, weights: NDArray, means: NDArray, factors: NDArray) -> Array:
        """log π_k + log N(x | μ_k, Σ_k)."""
        with np.errstate(divide="ignore"):
            return _densities.log_densities(x, means, factors, self.covariance_type) + oc.asarray(np.log(weights))

    def _keep(self, state: tuple[NDArray, ...], center: NDArray, bounds: list[float], converged: bool) -> None:
        self.weights_, means, self.precisions_cholesky_, self.covariances_ = state
        self.means_ = means + center
        self.precisions_ = _densities.precisions(self.precisions_cholesky_, self.covariance_type)
        self.lower_bound_, self.lower_bounds_ = bounds[-1], bounds
        self.n_iter_, self.converged_ = len(bounds), converged

    def _fitted(self, X: ArrayLike) -> tuple[Data, Array, Array]:
        """The data, log π_k N(x | k), and the logarithm of their sum as a column."""
        data = self._read_fitted(X)
        center = self.means_.mean(axis=0)
        joint = self._joint(data.x - oc.asarray(center), self.weights_, self.means_ - center, self.precisions_cholesky_)
        top = oc.max(joint, axis=1, keepdims=True)
        return data, joint, top + oc.log(oc.sum(oc.exp(joint - top), axis=1, keepdims=True))

    def predict(self, X: ArrayLike) -> Answer:
        """The likeliest component of each row, int64. I/O: one read of `X`."""
        data, joint, _ = self._fitted(X)
        return data.answer(oc.argmax(joint, axis=1))

    def fit_predict(self, X: ArrayLike, y: ArrayLike | None = None) -> Answer:
        """`fit(X).predict(X)`."""
        return self.fit(X, y).predict(X)

    def predict_proba(self, X: ArrayLike) -> Answer:
        """The share of each component in each row, (n, components). I/O: one read of `X`."""
        data, joint, whole = self._fitted(X)
        return data.answer(oc.exp(joint - whole))

    def score_samples(self, X: ArrayLike) -> Answer:
        """The log-likelihood of each row. I/O: one read of `X`."""
        data, _, whole = self._fitted(X)
        return data.answer(oc.squeeze(whole, axis=1))

    def score(self, X: ArrayLike, y: ArrayLike | None = None) -> float:
        """The mean log-likelihood of the rows. I/O: one read of `X`."""
        return float(oc.mean(self._fitted(X)[2]).compute())

    def _parameters(self) -> int:
        components, features = self.means_.shape
        covariance = {
            "full": components * features * (features + 1) / 2,
            "diag": components * features,
            "tied": features * (features + 1) / 2,
            "spherical": components,
        }[self.covariance_type]
        return int(covariance + components * features + components - 1)

    def bic(self, X: ArrayLike) -> float:
        """Schwarz's information criterion for `X`; lower is better. I/O: one read of `X`."""
        rows = self._read_fitted(X).x.shape[0]
        return -2 * self.score(X) * rows + self._parameters() * float(np.log(rows))

    def aic(self, X: ArrayLike) -> float:
        """Akaike's information criterion for `X`; lower is better. I/O: one read of `X`."""
        return -2 * self.score(X) * self._read_fitted(X).x.shape[0] + 2 * self._parameters()

    def sample(self, n_samples: int = 1) -> tuple[NDArray, NDArray]:
        """Rows drawn from the mixture, as NumPy arrays, and the component of each."""
        random = check_random_state(self.random_state)
        counts = random.multinomial(n_samples, self.weights_)
        labels = np.repeat(np.arange(len(counts)), counts)
        noise = random.normal(size=(n_samples, self.means_.shape[1]))
        factors = self.precisions_cholesky_
        if self.covariance_type in ("diag", "spherical"):
            scaled = noise / (factors[labels] if factors.ndim == 2 else factors[labels, None])
        else:
            inverse = np.linalg.inv(factors)
            scaled = noise @ inverse if inverse.ndim == 2 else np.einsum("ni,nij->nj", noise, inverse[labels])
        return self.means_[labels] + scaled, labels


__all__ = ["GaussianMixture"]
