"""`LogisticRegression`: one read of the data per value of the objective and its derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import optimize

from outcore import _api as oc
from outcore._base.types import Keywords, NDArray
from outcore._lazy.array import Array
from outcore._lazy.node import ArrayLike, Operand
from outcore.errors import ArgumentError
from outcore.learn import _quasi_newton
from outcore.learn._base import Answer, Classifier, Data, weighted
from outcore.learn._fit import Fit, fitting, foresee, values
from outcore.learn._logistic_loss import HESSIAN_ROOM, Objective

_SOLVERS = ("lbfgs", "newton-cg", "newton-cholesky")


class LogisticRegression(Classifier):
    """Classes by the logistic (two) or softmax (more) function of x·β + b; penalty ((1−r) |β|²/2 + r |β|₁) / C.

    `l1_ratio` is r: 0 for squares, 1 for absolute values, which make coefficients zero. `solver`: "lbfgs" (one read per
    value and gradient; Liu, Nocedal 1989), "newton-cg" (and one per product with the Hessian; Nocedal, Wright, ch. 7),
    "newton-cholesky" (one read per step gives the whole Hessian: the fewest reads for few features and classes). With
    `l1_ratio` above 0 "lbfgs" takes proximal quasi-Newton steps (Lee, Sun, Saunders 2014; a read each), and the others
    are refused. `C=np.inf` leaves the penalty out. It ends where no part of the gradient of the mean loss is
    above `tol`. `class_weight` "balanced" weighs classes by the inverse of their weight; a dict says each.
    `checkpoint`: see `outcore.learn`.

    Fitted: `coef_`, `intercept_`, `classes_`, `n_iter_`, `history_` ("loss", mean and penalty, after each iteration),
    `n_features_in_`. I/O: `fit` as the solver says; predictions read X once.

    >>> import numpy as np
    >>> from outcore.learn import LogisticRegression
    >>> model = LogisticRegression().fit(np.asarray([[0.0], [1.0], [3.0], [4.0]]), np.asarray([0, 0, 1, 1]))
    >>> model.predict(np.asarray([[1.5], [2.5]]))
    array([0, 1])
    """

    coef_: NDArray
    intercept_: NDArray

    def __init__(
        self,
        *,
        C: float = 1.0,
        l1_ratio: float = 0.0,
        tol: float = 1e-4,
        fit_intercept: bool = True,
        class_weight: Any = None,
        solver: str = "lbfgs",
        max_iter: int = 100,
        verbose: int = 0,
        warm_start: bool = False,
        checkpoint: int | None = None,
    ) -> None:
        self.C = C
        self.l1_ratio = l1_ratio
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.solver = solver
        self.max_iter = max_iter
        self.verbose = verbose
        self.warm_start = warm_start
        self.checkpoint = checkpoint

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> LogisticRegression:
        """The coefficients for the observations `X` (n, features) and classes `y` (n,)."""
        self._check()
        data, y = self._read_pair(X, y)
        fitted = (self.coef_, self.intercept_) if self.warm_start and hasattr(self, "coef_") else None
        with fitting(self, X, y, sample_weight, fitted) as fit:
            rounds, converged = self._learn(data, y, self._weights(sample_weight, data), fit)
        self.n_iter_ = np.asarray([rounds], dtype=np.int32)
        if not converged:
            self._not_converged(self.max_iter)
        return self

    def _check(self) -> None:
        if self.solver not in _SOLVERS:
            raise ArgumentError(f"LogisticRegression: solver={self.solver!r} is none of {', '.join(_SOLVERS)}")
        if not self.C > 0:
            raise ArgumentError(f"LogisticRegression: C must be above 0, not {self.C}")
        if not 0 <= self.l1_ratio <= 1:
            raise ArgumentError(f"LogisticRegression: l1_ratio must be between 0 and 1, not {self.l1_ratio}")
        if self.l1_ratio > 0 and self.solver != "lbfgs":
            raise ArgumentError(
                f"LogisticRegression: solver={self.solver!r} has no penalty by absolute values "
                f"(l1_ratio={self.l1_ratio}); "
                f"use solver='lbfgs'"
            )

    def _learn(self, data: Data, y: ArrayLike, weights: Array | None, fit: Fit) -> tuple[int, bool]:
        """Finds the coefficients: the iterations that took, and whether the gradient is below `tol`."""
        if isinstance(y, Array) and y.ndim == 1 and y.dtype.kind in "biuf":
            foresee(self._foreseen(data.x, y, weights))
        codes = self._codes(y)
        classes = len(self.classes_)
        if classes < 2:
            raise ArgumentError(
                f"LogisticRegression: needs samples of at least 2 classes, the data has one class: {self.classes_}"
            )
        weights = self._class_weights(codes, weights)
        squares = (1.0 - self.l1_ratio) / self.C
        objective = Objective(data.x, codes, classes, weights, squares, self.fit_intercept)
        if self.solver == "newton-cholesky":
            self._check_room(HESSIAN_ROOM * objective.size**2)
        start = np.zeros(objective.size)
        if self.warm_start and hasattr(self, "coef_") and self.coef_.shape == (objective.columns, objective.features):
            start = np.vstack([self.coef_.T, self.intercept_] if self.fit_intercept else [self.coef_.T]).ravel()
        point, rounds, converged = self._minimize(objective, start, fit)
        coefficients, intercepts = objective.split(point)
        self.coef_ = np.ascontiguousarray(coefficients.T).astype(data.x.dtype)
        self.intercept_ = intercepts.astype(data.x.dtype)
        return rounds, converged

    def _foreseen(self, x: Array, y: Array, weights: Array | None) -> list[Operand]:
        """The sweep of a step for two classes, of which there are no fewer; the labels need not be known for it."""
        objective = Objective(x, (y != 0).astype(np.int64), 2, weights, 1.0, self.fit_intercept, scale=1.0)
        point = np.full(objective.size, 0.5)
        if self.solver == "newton-cholesky":
            self._check_room(HESSIAN_ROOM * objective.size**2)
            return objective.hessian_sums(point)[0]
        return objective.gradient_sums(point)[0]

    def _class_weights(self, codes: Array, weights: Array | None) -> Array | None:
        """The weights of observations times those of their classes."""
        if self.class_weight is None:
            return weights
        count = len(self.classes_)
        if self.class_weight == "balanced":
            member = (codes[:, None] == oc.arange(count)).astype(np.float64)
            sizes = values([oc.sum(weighted(member, weights), axis=0)])[0]
            each = sizes.sum() / (count * sizes)
        else:
            each = np.asarray([self.class_weight.get(label, 1.0) for label in self.classes_.tolist()], dtype=np.float64)
        heavy = oc.take(oc.asarray(each), codes)
        return heavy if weights is None else heavy * weights

    def _minimize(self, objective: Objective, start: NDArray, fit: Fit) -> tuple[NDArray, int, bool]:
        """The point of least loss near `start`, the iterations, and whether the gradient is below `tol`."""
        if self.solver == "newton-cholesky":
            return self._newton(objective, start, fit)

        def report(value: float) -> None:
            fit.tell(self.max_iter, loss=value)

        if self.l1_ratio > 0:
            heavy = np.zeros(objective.size)
            heavy[: objective.features * objective.columns] = self.l1_ratio / self.C / objective.scale
            ends: Keywords = {"tol": self.tol, "max_iter": self.max_iter, "tell": report}
            return _quasi_newton.minimize(objective.gradient, start, heavy, **ends)

        def callback(intermediate_result: optimize.OptimizeResult) -> None:
            report(float(intermediate_result.fun))

        scipy_options: Keywords = {"jac": True, "callback": callback}
        if self.solver == "lbfgs":
            options = {"maxiter": self.max_iter, "gtol": self.tol, "ftol": 64 * np.finfo(float).eps, "maxls": 50}
            scipy_options |= {"method": "L-BFGS-B", "options": options}
        else:
            options = {"maxiter": self.max_iter, "xtol": self.tol * 1e-2}
            scipy_options |= {"method": "Newton-CG", "hessp": objective.along, "options": options}
        solution = optimize.minimize(objective.gradient, start, **scipy_options)
        return solution.x, int(solution.nit), solution.status != 1

    def _newton(self, objective: Objective, point: NDArray, fit: Fit) -> tuple[NDArray, int, bool]:
        """Newton's steps, halved where the loss would rise. A step that is taken needs no read of its own."""
        value, gradient, matrix = objective.hessian(point)
        for iteration in range(self.max_iter):
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
            fit.tell(self.max_iter, loss=value)
        return point, self.max_iter, bool(np.max(np.abs(gradient)) <= self.tol)

    def _scores(self, X: ArrayLike) -> tuple[Data, Array]:
        data = self._read_fitted(X)
        dtype = data.x.dtype
        return data, data.x @ oc.asarray(self.coef_.T.astype(dtype)) + oc.asarray(self.intercept_.astype(dtype))

    def decision_function(self, X: ArrayLike) -> Answer:
        """x·β + b: one number for each row of two classes, else one for each class. I/O: one read of `X`."""
        data, z = self._scores(X)
        return data.answer(z[:, 0] if len(self.classes_) == 2 else z)

    def predict(self, X: ArrayLike) -> Answer:
        """The likeliest class of each row. I/O: one read of `X`."""
        data, z = self._scores(X)
        two = len(self.classes_) == 2
        return self._labels(data, (z[:, 0] > 0).astype(np.int64) if two else oc.argmax(z, axis=1))

    def _log_chances(self, z: Array) -> Array:
        if len(self.classes_) == 2:
            return oc.concat([-oc.logaddexp(oc.zeros_like(z), z), -oc.logaddexp(oc.zeros_like(z), -z)], axis=1)
        top = oc.max(z, axis=1, keepdims=True)
        return z - top - oc.log(oc.sum(oc.exp(z - top), axis=1, keepdims=True))

    def predict_proba(self, X: ArrayLike) -> Answer:
        """The probability of each class, (n, classes). I/O: one read of `X`."""
        data, z = self._scores(X)
        return data.answer(oc.exp(self._log_chances(z)))

    def predict_log_proba(self, X: ArrayLike) -> Answer:
        """The logarithm of the probability of each class, (n, classes). I/O: one read of `X`."""
        data, z = self._scores(X)
        return data.answer(self._log_chances(z))


__all__ = ["LogisticRegression"]
