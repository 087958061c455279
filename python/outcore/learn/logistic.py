"""`LogisticRegression`: one read of the data per value of the objective and its derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import optimize

import outcore as oc
from outcore._array import Array
from outcore.errors import ArgumentError
from outcore.learn._base import Classifier, Data, total, values, weighted

Numbers = npt.NDArray[Any]
_SOLVERS = ("lbfgs", "newton-cg", "newton-cholesky")


class _Objective:
    """f(W) = Σ w ℓ(x·W + b, y) / s + |W|² / (2Cs) with s = Σ w, and its derivatives, each value one read.

    One column of coefficients for two classes, ℓ = log(1 + e^z) − yz; else one for each, ℓ = log Σ e^z − z_y. Points
    are flat: coefficients (features, columns), then intercepts.
    """

    def __init__(self, x: Array, codes: Array, classes: int, weights: Array | None, penalty: float, bias: bool) -> None:
        self.x, self.weights, self.bias = x.astype(np.float64), weights, bias
        self.features, self.columns = x.shape[1], 1 if classes == 2 else classes
        places = oc.arange(1, 2) if classes == 2 else oc.arange(classes)
        self.goal = (codes[:, None] == places).astype(np.float64)
        self.scale = float(np.asarray(oc.asarray(total(weights, x.shape[0])).compute()))
        self.penalty = penalty / self.scale
        self.reads = 0

    @property
    def size(self) -> int:
        return (self.features + self.bias) * self.columns

    def split(self, point: Numbers) -> tuple[Numbers, Numbers]:
        """Coefficients (features, columns) and intercepts (columns)."""
        whole = point.reshape(-1, self.columns)
        return whole[: self.features], whole[self.features] if self.bias else np.zeros(self.columns)

    def _chances(self, point: Numbers) -> tuple[Array, Array]:
        """The probability of each column's class, and the loss of each row."""
        coefficients, intercepts = self.split(point)
        z = self.x @ oc.asarray(np.ascontiguousarray(coefficients)) + oc.asarray(intercepts)
        if self.columns == 1:
            small = oc.exp(-oc.abs(z))
            chances = oc.where(z >= 0, 1.0, small) / (small + 1.0)
            return chances, oc.maximum(z, 0.0) + oc.log1p(small) - self.goal * z
        top = oc.max(z, axis=1, keepdims=True)
        parts = oc.exp(z - top)
        norm = oc.sum(parts, axis=1, keepdims=True)
        return parts / norm, top + oc.log(norm) - oc.sum(self.goal * z, axis=1, keepdims=True)

    def _joined(self, along: Array, rest: Array) -> list[Array]:
        return [along, rest] if self.bias else [along]

    def _regularized(self, point: Numbers, parts: list[Numbers]) -> Numbers:
        """A gradient of the loss, or a product with its Hessian, with the penalty's part added."""
        rows = np.vstack([parts[0], *(part[None, :] for part in parts[1:])]) / self.scale
        rows[: self.features] += self.penalty * self.split(point)[0]
        return rows.ravel()

    def gradient(self, point: Numbers) -> tuple[float, Numbers]:
        """The value and the gradient Xᵀ(P − Y). One read."""
        chances, loss = self._chances(point)
        error = weighted(chances - self.goal, self.weights)
        found = values([oc.sum(weighted(loss, self.weights)), *self._joined(self.x.T @ error, oc.sum(error, axis=0))])
        self.reads += 1
        coefficients = self.split(point)[0]
        value = float(found[0]) / self.scale + 0.5 * self.penalty * float(np.sum(coefficients**2))
        return value, self._regularized(point, found[1:])

    def along(self, point: Numbers, direction: Numbers) -> Numbers:
        """The Hessian times a direction V: Xᵀ(P∘(XV − Σ_k P_k (XV)_k)). One read."""
        chances, _ = self._chances(point)
        coefficients, intercepts = self.split(direction)
        change = self.x @ oc.asarray(np.ascontiguousarray(coefficients)) + oc.asarray(intercepts)
        mean = chances * change if self.columns == 1 else oc.sum(chances * change, axis=1, keepdims=True)
        bent = weighted(chances * (change - mean), self.weights)
        found = values(self._joined(self.x.T @ bent, oc.sum(bent, axis=0)))
        self.reads += 1
        return self._regularized(direction, found)

    def hessian(self, point: Numbers) -> tuple[float, Numbers, Numbers]:
        """The value, the gradient and the Hessian, whose blocks are Xᵀ diag(P_j (δ_jk − P_k)) X. One read."""
        chances, loss = self._chances(point)
        error = weighted(chances - self.goal, self.weights)
        x = oc.concat([self.x, oc.ones((self.x.shape[0], 1))], axis=1) if self.bias else self.x
        pairs = [(j, k) for j in range(self.columns) for k in range(j + 1)]
        blocks = []
        for j, k in pairs:
            mine, other = chances[:, j : j + 1], chances[:, k : k + 1]
            blocks.append((x * weighted(mine * (1.0 - other) if j == k else mine * -other, self.weights)).T @ x)
        found = values([oc.sum(weighted(loss, self.weights)), x.T @ error, *blocks])
        self.reads += 1
        rows = self.features + self.bias
        whole = np.zeros((rows, self.columns, rows, self.columns))
        for (j, k), block in zip(pairs, found[2:], strict=True):
            whole[:, j, :, k] = whole[:, k, :, j] = block / self.scale
        matrix = whole.reshape(self.size, self.size)
        count = self.features * self.columns
        matrix[np.arange(count), np.arange(count)] += self.penalty
        value = float(found[0]) / self.scale + 0.5 * self.penalty * float(np.sum(self.split(point)[0] ** 2))
        return value, self._regularized(point, [found[1][: self.features], *found[1][self.features :]]), matrix


class LogisticRegression(Classifier):
    """Classes by the logistic (two) or softmax (more) function of x·β + b, with the penalty |β|² / 2C.

    `solver`: "lbfgs" (one read per value and gradient; Liu, Nocedal 1989), "newton-cg" (and one per product with the
    Hessian; Nocedal, Wright, ch. 7), "newton-cholesky" (one read per step gives the whole Hessian: the fewest reads for
    few features and classes). `C=np.inf` leaves the penalty out. It ends where no part of the gradient of the mean loss
    is above `tol`. `class_weight` "balanced" weighs classes by the inverse of their weight; a dict says each.

    Fitted: `coef_`, `intercept_`, `classes_`, `n_iter_`, `n_features_in_`. `verbose` prints the loss. I/O: `fit` as the
    solver says; predictions read X once.

    >>> import numpy as np
    >>> from outcore.learn import LogisticRegression
    >>> model = LogisticRegression().fit(np.asarray([[0.0], [1.0], [3.0], [4.0]]), np.asarray([0, 0, 1, 1]))
    >>> model.predict(np.asarray([[1.5], [2.5]]))
    array([0, 1])
    """

    coef_: Numbers
    intercept_: Numbers

    def __init__(
        self,
        *,
        C: float = 1.0,
        tol: float = 1e-4,
        fit_intercept: bool = True,
        class_weight: Any = None,
        solver: str = "lbfgs",
        max_iter: int = 100,
        verbose: int = 0,
        warm_start: bool = False,
    ) -> None:
        self.C = C
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.solver = solver
        self.max_iter = max_iter
        self.verbose = verbose
        self.warm_start = warm_start

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LogisticRegression:
        """The coefficients for the observations `X` (n, features) and classes `y` (n,)."""
        if self.solver not in _SOLVERS:
            raise ArgumentError(f"LogisticRegression: solver={self.solver!r} is none of {', '.join(_SOLVERS)}")
        if not self.C > 0:
            raise ArgumentError(f"LogisticRegression: C={self.C} is not above zero")
        data, y = self._read_pair(X, y)
        codes = self._codes(y)
        classes = len(self.classes_)
        if classes < 2:
            raise ArgumentError(
                f"LogisticRegression: needs samples of at least 2 classes, the data has one class: {self.classes_}"
            )
        weights = self._class_weights(codes, self._weights(sample_weight, data))
        objective = _Objective(data.x, codes, classes, weights, 1.0 / self.C, self.fit_intercept)
        start = np.zeros(objective.size)
        if self.warm_start and hasattr(self, "coef_") and self.coef_.shape == (objective.columns, objective.features):
            start = np.vstack([self.coef_.T, self.intercept_] if self.fit_intercept else [self.coef_.T]).ravel()
        point, rounds, converged = self._minimize(objective, start)
        self._finite(point)
        coefficients, intercepts = objective.split(point)
        self.coef_ = np.ascontiguousarray(coefficients.T).astype(data.x.dtype)
        self.intercept_ = intercepts.astype(data.x.dtype)
        self.n_iter_ = np.asarray([rounds], dtype=np.int32)
        if not converged:
            self._not_converged(self.max_iter)
        return self

    def _class_weights(self, codes: Array, weights: Array | None) -> Array | None:
        """The weights of observations times those of their classes."""
        if self.class_weight is None:
            return weights
        count = len(self.classes_)
        if self.class_weight == "balanced":
            member = (codes[:, None] == oc.arange(count)).astype(np.float64)
            sizes = oc.sum(weighted(member, weights), axis=0).compute()
            each = sizes.sum() / (count * sizes)
        else:
            each = np.asarray([self.class_weight.get(label, 1.0) for label in self.classes_.tolist()], dtype=np.float64)
        heavy = oc.take(oc.asarray(each), codes)
        return heavy if weights is None else heavy * weights

    def _minimize(self, objective: _Objective, start: Numbers) -> tuple[Numbers, int, bool]:
        """The point of least loss near `start`, the iterations, and whether the gradient is below `tol`."""
        if self.solver == "newton-cholesky":
            return self._newton(objective, start)

        def told(point: Numbers) -> tuple[float, Numbers]:
            value, gradient = objective.gradient(point)
            self._finite(value)
            if self.verbose:
                print(f"LogisticRegression: read {objective.reads}, loss {value:.8g}")
            return value, gradient

        if self.solver == "lbfgs":
            options = {"maxiter": self.max_iter, "gtol": self.tol, "ftol": 64 * np.finfo(float).eps, "maxls": 50}
            found = optimize.minimize(told, start, jac=True, method="L-BFGS-B", options=options)
            return found.x, int(found.nit), found.status != 1
        options = {"maxiter": self.max_iter, "xtol": self.tol * 1e-2}
        found = optimize.minimize(told, start, jac=True, hessp=objective.along, method="Newton-CG", options=options)
        return found.x, int(found.nit), found.status != 1

    def _newton(self, objective: _Objective, point: Numbers) -> tuple[Numbers, int, bool]:
        """Newton's steps, halved where the loss would rise. A step that is taken needs no read of its own."""
        value, gradient, matrix = objective.hessian(point)
        self._finite(value, matrix)
        for iteration in range(self.max_iter):
            if self.verbose:
                print(f"LogisticRegression: read {objective.reads}, loss {value:.8g}")
            if np.max(np.abs(gradient)) <= self.tol:
                return point, iteration, True
            step = np.linalg.lstsq(matrix, gradient, rcond=None)[0]
            for _ in range(20):
                new = objective.hessian(point - step)
                if new[0] <= value + 1e-14 * abs(value):
                    break
                step = step / 2
            else:
                return point, iteration, False
            point = point - step
            value, gradient, matrix = new
        return point, self.max_iter, bool(np.max(np.abs(gradient)) <= self.tol)

    def _scores(self, X: Any) -> tuple[Data, Array]:
        data = self._read_fitted(X)
        dtype = data.x.dtype
        return data, data.x @ oc.asarray(self.coef_.T.astype(dtype)) + oc.asarray(self.intercept_.astype(dtype))

    def decision_function(self, X: Any) -> Any:
        """x·β + b: one number for each row of two classes, else one for each class. I/O: one read of `X`."""
        data, z = self._scores(X)
        return data.answer(z[:, 0] if len(self.classes_) == 2 else z)

    def predict(self, X: Any) -> Any:
        """The likeliest class of each row. I/O: one read of `X`."""
        data, z = self._scores(X)
        two = len(self.classes_) == 2
        return self._labels(data, (z[:, 0] > 0).astype(np.int64) if two else oc.argmax(z, axis=1))

    def _log_chances(self, z: Array) -> Array:
        if len(self.classes_) == 2:
            return oc.concat([-oc.logaddexp(oc.zeros_like(z), z), -oc.logaddexp(oc.zeros_like(z), -z)], axis=1)
        top = oc.max(z, axis=1, keepdims=True)
        return z - top - oc.log(oc.sum(oc.exp(z - top), axis=1, keepdims=True))

    def predict_proba(self, X: Any) -> Any:
        """The probability of each class, (n, classes). I/O: one read of `X`."""
        data, z = self._scores(X)
        return data.answer(oc.exp(self._log_chances(z)))

    def predict_log_proba(self, X: Any) -> Any:
        """The logarithm of the probability of each class, (n, classes). I/O: one read of `X`."""
        data, z = self._scores(X)
        return data.answer(self._log_chances(z))


__all__ = ["LogisticRegression"]
