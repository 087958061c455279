"""Least squares from one read of the data: `LinearRegression`, `Ridge`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from outcore import _api as oc
from outcore._base.element_types import DTypeLike
from outcore._base.types import NDArray
from outcore._lazy.array import Array
from outcore._lazy.node import ArrayLike
from outcore.errors import ArgumentError
from outcore.learn._base import Answer, Data, Regressor
from outcore.learn._fit import clear_room
from outcore.learn._moments import Moments, moments, products

_ROOM = 8  # matrices as large as the scatter matrix, in memory at once


class _Linear(Regressor):
    """y ≈ X·coef_ᵀ + intercept_, where the coefficients follow from second moments."""

    fit_intercept: bool

    def __sklearn_tags__(self) -> object:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _moments(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None) -> tuple[Data, Moments, bool]:
        """The data, its moments, and whether the target is a single row."""
        data, target = self._read_pair(X, y, y_numeric=True, multi_output=True)
        goal = self._targets(target)
        single = goal.ndim == 1
        columns = oc.expand_dims(goal, axis=1) if single else goal
        weights = self._weights(sample_weight, data)
        self._check_room(_ROOM * data.x.shape[1] ** 2)
        result = (moments if self.fit_intercept else products)(data.x, columns, weights)
        return data, result, single

    def _keep(self, moments: Moments, coefficients: NDArray, single: bool, dtype: DTypeLike) -> None:
        """`coef_` and `intercept_` = mean(y) − mean(x)·coef_ᵀ from coefficients of shape (features, targets)."""
        intercept = moments.mean_y - moments.mean_x @ coefficients
        self.coef_ = np.ascontiguousarray(coefficients.T[0] if single else coefficients.T).astype(dtype)
        self.intercept_: float | NDArray = 0.0
        if self.fit_intercept:
            self.intercept_ = intercept[0].astype(dtype) if single else intercept.astype(dtype)

    def predict(self, X: ArrayLike) -> Answer:
        """X·coef_ᵀ + intercept_. I/O: one read of `X`."""
        data = self._read_fitted(X)
        return data.answer(data.x @ oc.asarray(self.coef_.T.astype(data.x.dtype)) + self._offset(data.x.dtype))

    def _offset(self, dtype: DTypeLike) -> Array:
        return oc.asarray(np.asarray(self.intercept_, dtype=dtype))


class LinearRegression(_Linear):
    """Ordinary least squares: the coefficients that minimize Σ w (y − x·β − b)², from the normal equations.

    One read gives the scatter matrices S = Σ w (x−x̄)(x−x̄)ᵀ and C = Σ w (x−x̄)(y−ȳ)ᵀ, and β = S⁻¹C; with columns scaled
    to unit scatter (van der Sluis 1969), and the least of all solutions where columns depend on each other. The normal
    equations square the condition of the data: digits are lost to twice its number.

    Fitted: `coef_`, `intercept_`, `rank_`, `singular_` (of the data less its means, or of the data), `n_features_in_`.
    I/O: `fit` and each `partial_fit` read X and y once. Source: Björck, Numerical Methods for Least Squares, ch. 2.

    >>> import numpy as np
    >>> from outcore.learn import LinearRegression
    >>> model = LinearRegression().fit(np.asarray([[0.0], [1.0], [2.0]]), np.asarray([1.0, 3.0, 5.0]))
    >>> model.coef_.round(12), round(float(model.intercept_), 12)
    (array([2.]), 1.0)
    """

    def __init__(self, *, fit_intercept: bool = True) -> None:
        self.fit_intercept = fit_intercept

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> LinearRegression:
        """The coefficients for the observations `X` (n, features) and targets `y` (n,) or (n, targets)."""
        data, moments, single = self._moments(X, y, sample_weight)
        coefficients, values = _least_squares(moments.scatter, moments.cross)
        self.singular_ = np.sqrt(np.maximum(values, 0))[: min(data.x.shape)]
        self.rank_ = int(np.sum(values > _cutoff(values)))
        self._keep(moments, coefficients, single, data.x.dtype)
        return self


def _cutoff(values: NDArray) -> float:
    return float(values.max(initial=0.0) * len(values) * np.finfo(np.float64).eps * 4)


def _least_squares(scatter: NDArray, cross: NDArray) -> tuple[NDArray, NDArray]:
    """The solution of S·β = C, the shortest where there are several, and the eigenvalues of S, largest first."""
    clear_room(_ROOM * scatter.size)
    values, vectors = np.linalg.eigh(scatter)
    scale = np.sqrt(np.diag(scatter))
    if np.all(scale > 0):
        scaled = scatter / np.outer(scale, scale)
        eigenvalues = np.linalg.eigvalsh(scaled)
        if eigenvalues[0] > _cutoff(eigenvalues):
            return np.linalg.solve(scaled, cross / scale[:, None]) / scale[:, None], values[::-1]
    kept = values > _cutoff(values)
    inverse = np.where(kept, 1 / np.where(kept, values, 1), 0)
    return vectors @ (inverse[:, None] * (vectors.T @ cross)), values[::-1]


class Ridge(_Linear):
    """Least squares with a penalty: minimizes Σ w (y − x·β − b)² + α·|β|²; the intercept goes free.

    β = (S + αI)⁻¹C with the scatter matrices of one read, as in `LinearRegression`. `alpha` is one number, or one for
    each target. Source: Hoerl, Kennard 1970.

    Fitted: `coef_`, `intercept_`, `n_features_in_`. I/O: `fit` reads X and y once.

    >>> import numpy as np
    >>> from outcore.learn import Ridge
    >>> model = Ridge(alpha=2.0).fit(np.asarray([[0.0], [1.0], [2.0]]), np.asarray([1.0, 3.0, 5.0]))
    >>> model.coef_.round(12), round(float(model.intercept_), 12)
    (array([1.]), 2.0)
    """

    def __init__(self, alpha: float | NDArray | Sequence[float] = 1.0, *, fit_intercept: bool = True) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Ridge:
        """The coefficients for the observations `X` (n, features) and targets `y` (n,) or (n, targets)."""
        data, moments, single = self._moments(X, y, sample_weight)
        penalties = np.asarray(self.alpha, dtype=np.float64)
        if penalties.ndim > 1 or penalties.size not in (1, moments.cross.shape[1]) or np.any(penalties < 0):
            raise ArgumentError(
                f"Ridge: alpha must be one number of at least 0, or one for each of {moments.cross.shape[1]} targets, "
                f"not {self.alpha}"
            )
        columns = moments.cross.T
        each = np.broadcast_to(penalties.ravel(), (len(columns),))
        eye = np.eye(len(moments.scatter))
        solved = [
            _least_squares(moments.scatter + each_alpha * eye, column[:, None])[0]
            for each_alpha, column in zip(each, columns, strict=True)
        ]
        self._keep(moments, np.hstack(solved), single, data.x.dtype)
        return self


__all__ = ["LinearRegression", "Ridge"]
