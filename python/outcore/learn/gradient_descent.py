"""Linear models by stochastic gradient descent over blocks of rows: `SGDClassifier`, `SGDRegressor`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

import outcore as oc
from outcore._array import Array
from outcore.errors import ArgumentError
from outcore.learn._base import Classifier, Data, Estimator, Regressor
from outcore.learn._blocks import batches
from outcore.learn._losses import CLASS_LOSSES, Loss, regression_losses

Numbers = npt.NDArray[Any]
_RATES = ("optimal", "invscaling", "constant")
_STEEPEST = 1e12  # as in scikit-learn: a derivative is never taken for more


class _Descent(Estimator):
    """Steps W ← W − η (mean of ∂ℓ over a batch + αW), b ← b − η mean of ∂ℓ, over batches of shuffled rows.

    η: "optimal" 1 / (α (t₀ + t)) (Bottou 2012), "invscaling" η₀ / t^power_t, "constant" η₀; t counts batches.
    """

    loss: str
    penalty: str | None
    alpha: float
    fit_intercept: bool
    max_iter: int
    tol: float | None
    batch_size: int
    learning_rate: str
    eta0: float
    power_t: float
    n_iter_no_change: int
    random_state: Any
    verbose: int
    t_: float
    _first_rate: float
    coef_: Numbers
    intercept_: Numbers

    def _check(self, losses: Any) -> None:
        if self.loss not in losses:
            raise ArgumentError(f"{type(self).__name__}: loss={self.loss!r} is none of {', '.join(losses)}")
        if self.penalty not in ("l2", None):
            raise ArgumentError(f"{type(self).__name__}: penalty={self.penalty!r} is neither 'l2' nor None")
        if self.learning_rate not in _RATES:
            raise ArgumentError(f"{type(self).__name__}: learning_rate={self.learning_rate!r} is none of {_RATES}")
        if self.batch_size < 1 or self.max_iter < 1 or not self.alpha > 0 or not self.eta0 > 0:
            raise ArgumentError(f"{type(self).__name__}: batch_size, max_iter, alpha and eta0 have to be above zero")

    def _rate(self) -> float:
        if self.learning_rate == "optimal":
            return 1.0 / (1.0 / self._first_rate + self.alpha * (self.t_ - 1))
        return self.eta0 / (self.t_**self.power_t) if self.learning_rate == "invscaling" else self.eta0

    def _epoch(self, arrays: list[Array], loss: Loss, random: Any) -> float:
        """One read of the arrays, x, targets and weights: a step per batch. The mean loss on the way."""
        lost = weight = 0.0
        for x, goal, heavy in batches(arrays, self.batch_size, random):
            value, slope = loss(x @ self._point + self._bias, goal)
            slope = np.clip(slope, -_STEEPEST, _STEEPEST) * heavy[:, None] / len(x)
            rate = self._rate()
            if self.penalty == "l2":
                self._point *= max(0.0, 1.0 - rate * self.alpha)
            self._point -= rate * (x.T @ slope)
            if self.fit_intercept:
                self._bias -= rate * slope.sum(axis=0)
            lost += float(np.sum(value * heavy[:, None]))
            weight += float(heavy.sum())
            self.t_ += 1
        return lost / weight if weight > 0 else 0.0

    def _descend(self, data: Data, goal: Array, weights: Array | None, loss: Loss, epochs: int, fresh: bool) -> None:
        """Epochs until the loss gains less than `tol` in `n_iter_no_change` of them."""
        columns = goal.shape[1]
        if fresh or not hasattr(self, "t_"):
            self._point, self._bias, self.t_ = np.zeros((data.x.shape[1], columns)), np.zeros(columns), 1.0
        # What a prediction of typical size √(1/√α) on the wrong side bears as a step (Bottou 2012, section 5.2).
        typical = float(np.sqrt(1.0 / np.sqrt(self.alpha)))
        slope = loss(np.full((1, 1), -typical), np.ones((1, 1)))[1]
        self._first_rate = typical / max(1.0, abs(float(slope[0, 0])))
        heavy = oc.ones((data.x.shape[0],)) if weights is None else weights
        arrays = [data.x.astype(np.float64), goal.astype(np.float64), heavy]
        random = check_random_state(self.random_state)
        best, since, converged = np.inf, 0, False
        for epoch in range(1, epochs + 1):
            lost = self._epoch(arrays, loss, random)
            self._finite(lost, self._point)
            if self.verbose:
                print(f"{type(self).__name__}: epoch {epoch}, loss {lost:.6g}")
            since = since + 1 if self.tol is not None and lost > best - self.tol else 0
            best = min(best, lost)
            self.n_iter_ = epoch
            if since >= self.n_iter_no_change:
                converged = True
                break
        if epochs > 1 and self.tol is not None and not converged:
            self._not_converged(self.max_iter)
        self._show(data.x.dtype)

    def _show(self, dtype: Any) -> None:
        """The fitted attributes."""
        self.coef_, self.intercept_ = self._point.T.astype(dtype), self._bias.astype(dtype)

    def _scores(self, X: Any) -> tuple[Data, Array]:
        data = self._read_fitted(X)
        dtype = data.x.dtype
        return data, data.x @ oc.asarray(self._point.astype(dtype)) + oc.asarray(self._bias.astype(dtype))


class SGDClassifier(_Descent, Classifier):
    """Linear classes by stochastic gradient descent: every batch of `batch_size` shuffled rows is a step.

    `loss`: "hinge" (a linear SVM), "log_loss" (logistic), "modified_huber", "squared_hinge", "perceptron"; of more than
    two classes each against the others. Blocks of rows come in random order and their rows are shuffled, so an epoch is
    one read of X. It ends where the loss gains less than `tol` in `n_iter_no_change` epochs.

    Fitted: `coef_`, `intercept_`, `classes_`, `n_iter_`, `t_`, `n_features_in_`. I/O: `fit` reads X and y once per
    epoch; `partial_fit` and predictions once.

    >>> import numpy as np
    >>> from outcore.learn import SGDClassifier
    >>> x = np.asarray([[-2.0], [-1.0], [1.0], [2.0]])
    >>> SGDClassifier(random_state=0).fit(x, np.asarray([0, 0, 1, 1])).predict(x)
    array([0, 0, 1, 1])
    """

    def __init__(
        self,
        loss: str = "hinge",
        *,
        penalty: str | None = "l2",
        alpha: float = 1e-4,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: float | None = 1e-3,
        batch_size: int = 32,
        learning_rate: str = "optimal",
        eta0: float = 0.01,
        power_t: float = 0.5,
        n_iter_no_change: int = 5,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.penalty = penalty
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.eta0 = eta0
        self.power_t = power_t
        self.n_iter_no_change = n_iter_no_change
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SGDClassifier:
        """The coefficients for the observations `X` and classes `y`. I/O: one read of both per epoch."""
        return self._learn(X, y, None, sample_weight, self.max_iter, True)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> SGDClassifier:
        """One epoch more, over `X`; the first call takes all `classes`. I/O: one read of both."""
        first = not hasattr(self, "classes_")
        if first and classes is None:
            raise ValueError("SGDClassifier: classes must be passed on the first call to partial_fit")
        return self._learn(X, y, self.classes_ if classes is None else classes, sample_weight, 1, first)

    def _learn(self, X: Any, y: Any, classes: Any, weights: Any, epochs: int, fresh: bool) -> SGDClassifier:
        self._check(CLASS_LOSSES)
        data, y = self._read_pair(X, y, reset=fresh)
        codes = self._codes(y, classes)
        count = len(self.classes_)
        if count < 2:
            raise ArgumentError(f"SGDClassifier: needs at least 2 classes, the data has one class: {self.classes_}")
        places = oc.arange(1, 2) if count == 2 else oc.arange(count)
        goal = oc.where(codes[:, None] == places, 1.0, -1.0)
        self._descend(data, goal, self._weights(weights, data), CLASS_LOSSES[self.loss], epochs, fresh)
        return self

    def decision_function(self, X: Any) -> Any:
        """x·β + b: one number for each row of two classes, else one for each class. I/O: one read of `X`."""
        data, z = self._scores(X)
        return data.answer(z[:, 0] if z.shape[1] == 1 else z)

    def predict(self, X: Any) -> Any:
        """The class of each row. I/O: one read of `X`."""
        data, z = self._scores(X)
        return self._labels(data, (z[:, 0] > 0).astype(np.int64) if z.shape[1] == 1 else oc.argmax(z, axis=1))


class SGDRegressor(_Descent, Regressor):
    """Linear regression by stochastic gradient descent: every batch of `batch_size` shuffled rows is a step.

    `loss`: "squared_error", "huber" (linear beyond `epsilon`) or "epsilon_insensitive". Columns should be scaled. As
    for `SGDClassifier`, an epoch is one read of X.

    Fitted: `coef_`, `intercept_`, `n_iter_`, `t_`, `n_features_in_`. I/O: `fit` reads X and y once per epoch;
    `partial_fit` and predictions once.

    >>> import numpy as np
    >>> from outcore.learn import SGDRegressor
    >>> x = np.linspace(-1, 1, 50)[:, None]
    >>> model = SGDRegressor(random_state=0, eta0=0.1, tol=1e-6).fit(x, 3 * x[:, 0])
    >>> round(float(model.coef_[0]), 1)
    3.0
    """

    def __init__(
        self,
        loss: str = "squared_error",
        *,
        penalty: str | None = "l2",
        alpha: float = 1e-4,
        epsilon: float = 0.1,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: float | None = 1e-3,
        batch_size: int = 32,
        learning_rate: str = "invscaling",
        eta0: float = 0.01,
        power_t: float = 0.25,
        n_iter_no_change: int = 5,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.penalty = penalty
        self.alpha = alpha
        self.epsilon = epsilon
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.eta0 = eta0
        self.power_t = power_t
        self.n_iter_no_change = n_iter_no_change
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SGDRegressor:
        """The coefficients for the observations `X` and targets `y` (n,). I/O: one read of both per epoch."""
        return self._learn(X, y, sample_weight, self.max_iter, True)

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> SGDRegressor:
        """One epoch more, over `X`. I/O: one read of both."""
        return self._learn(X, y, sample_weight, 1, not hasattr(self, "t_"))

    def _learn(self, X: Any, y: Any, weights: Any, epochs: int, fresh: bool) -> SGDRegressor:
        losses = regression_losses(self.epsilon)
        self._check(losses)
        data, y = self._read_pair(X, y, reset=fresh, y_numeric=True)
        goal = self._targets(y)
        if goal.ndim != 1:
            raise ArgumentError(f"SGDRegressor: targets of shape {goal.shape} are not a row")
        columns = oc.expand_dims(goal, axis=1)
        self._descend(data, columns, self._weights(weights, data), losses[self.loss], epochs, fresh)
        return self

    def _show(self, dtype: Any) -> None:
        self.coef_, self.intercept_ = self._point[:, 0].astype(dtype), self._bias.astype(dtype)

    def predict(self, X: Any) -> Any:
        """x·β + b of each row. I/O: one read of `X`."""
        data, z = self._scores(X)
        return data.answer(z[:, 0])


__all__ = ["SGDClassifier", "SGDRegressor"]
