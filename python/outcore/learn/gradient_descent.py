"""Linear models by stochastic gradient descent over blocks of rows: `SGDClassifier`, `SGDRegressor`."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from outcore import _api as oc
from outcore._base.element_types import DTypeLike
from outcore._base.types import NDArray, RandomState
from outcore._lazy.array import Array
from outcore._lazy.node import ArrayLike
from outcore.errors import ArgumentError
from outcore.learn._base import Answer, Classifier, Data, Estimator, Regressor
from outcore.learn._blocks import batches, block_program
from outcore.learn._fit import Fit, fitting, foresee, restored
from outcore.learn._losses import CLASS_LOSSES, Loss, regression_losses

_RATES = ("optimal", "invscaling", "constant")
_PENALTIES = ("l2", "l1", "elasticnet", None)
_STEEPEST = 1e12  # as in scikit-learn: a derivative is never taken for more


@dataclass(eq=False, repr=False)
class _DescentParameters:
    """The parameters of both kinds; scikit-learn reads the names from the `__init__` that this makes."""

    loss: str = "hinge"
    _: KW_ONLY
    penalty: str | None = "l2"
    alpha: float = 1e-4
    l1_ratio: float = 0.15
    fit_intercept: bool = True
    max_iter: int = 1000
    tol: float | None = 1e-3
    batch_size: int = 32
    learning_rate: str = "optimal"
    eta0: float = 0.01
    power_t: float = 0.5
    n_iter_no_change: int = 5
    random_state: RandomState = None
    verbose: int = 0
    checkpoint: int | None = None


class _Descent(_DescentParameters, Estimator):
    """Steps W ← S((1 − ηα(1−r)) W − η mean of ∂ℓ over a batch), b ← b − η mean of ∂ℓ, over batches of shuffled rows.

    S moves each coefficient by ηαr towards zero, and no further: the proximal step of αr|W|₁ (Duchi, Singer 2009), with
    r = 0 for the penalty "l2", 1 for "l1" and `l1_ratio` for "elasticnet".
    η: "optimal" 1 / (α (t₀ + t)) (Bottou 2012), "invscaling" η₀ / t^power_t, "constant" η₀; t counts batches.
    """

    t_: float
    _point: NDArray
    _bias: NDArray
    _first_rate: float
    coef_: NDArray
    intercept_: NDArray

    def _check(self, losses: Any) -> None:
        if self.loss not in losses:
            raise ArgumentError(f"{type(self).__name__}: loss={self.loss!r} is none of {', '.join(losses)}")
        if self.penalty not in _PENALTIES:
            raise ArgumentError(
                f"{type(self).__name__}: penalty={self.penalty!r} is none of {', '.join(map(str, _PENALTIES))}"
            )
        if not 0 <= self.l1_ratio <= 1:
            raise ArgumentError(f"{type(self).__name__}: l1_ratio must be between 0 and 1, not {self.l1_ratio}")
        if self.learning_rate not in _RATES:
            raise ArgumentError(f"{type(self).__name__}: learning_rate={self.learning_rate!r} is none of {_RATES}")
        if self.batch_size < 1 or self.max_iter < 1 or not self.alpha > 0 or not self.eta0 > 0:
            raise ArgumentError(f"{type(self).__name__}: batch_size, max_iter, alpha and eta0 must each be above 0")

    def _rate(self) -> float:
        if self.learning_rate == "optimal":
            return 1.0 / (1.0 / self._first_rate + self.alpha * (self.t_ - 1))
        return self.eta0 / (self.t_**self.power_t) if self.learning_rate == "invscaling" else self.eta0

    def _shrink(self, rate: float) -> tuple[float, float]:
        """The factor of a step on coefficients, and its move of them towards zero."""
        if self.penalty is None:
            return 1.0, 0.0
        share = {"l2": 0.0, "l1": 1.0, "elasticnet": self.l1_ratio}[self.penalty]
        return max(0.0, 1.0 - rate * self.alpha * (1 - share)), rate * self.alpha * share

    def _epoch(self, named: dict[str, Array], loss: Loss, random: np.random.RandomState) -> float:
        """One read of the arrays: a step per batch. The mean loss on the way."""
        lost = weight = 0.0
        for x, goal, heavy in batches(named, self.batch_size, random):
            value, slope = loss(x @ self._point + self._bias, goal)
            slope = np.clip(slope, -_STEEPEST, _STEEPEST) * heavy[:, None] / len(x)
            rate = self._rate()
            factor, towards = self._shrink(rate)
            self._point *= factor
            self._point -= rate * (x.T @ slope)
            if towards:
                self._point = np.sign(self._point) * np.maximum(np.abs(self._point) - towards, 0)
            if self.fit_intercept:
                self._bias -= rate * slope.sum(axis=0)
            lost += float(np.sum(value * heavy[:, None]))
            weight += float(heavy.sum())
            self.t_ += 1
        if not (np.isfinite(lost) and np.all(np.isfinite(self._point))):
            raise ArgumentError(
                f"{type(self).__name__}: coefficients grew beyond all bounds: eta0={self.eta0} is too large for this "
                f"data; scale its columns, or decrease it"
            )
        return lost / weight if weight > 0 else 0.0

    def _descend(self, data: Data, goal: Array, weights: Array | None, loss: Loss, fit: Fit, fresh: bool) -> None:
        """Epochs until the loss gains less than `tol` in `n_iter_no_change` of them; one epoch unless `fresh`."""
        # The step that a prediction of typical size √(1/√α) on the wrong side bears (Bottou 2012, section 5.2).
        typical = float(np.sqrt(1.0 / np.sqrt(self.alpha)))
        slope = loss(np.full((1, 1), -typical), np.ones((1, 1)))[1]
        self._first_rate = typical / max(1.0, abs(float(slope[0, 0])))
        heavy = oc.ones((data.x.shape[0],)) if weights is None else weights
        named = {"X": data.x.astype(np.float64), "y": goal.astype(np.float64), "sample_weight": heavy}
        random, best, since = self._begin(data.x.shape[1], goal.shape[1], fit, fresh)
        patience = np.inf if self.tol is None else self.n_iter_no_change
        most = self.max_iter if fresh else 1
        while fit.step < most and since < patience:
            lost = self._epoch(named, loss, random)
            since = since + 1 if self.tol is not None and lost > best - self.tol else 0
            best = min(best, lost)
            fit.tell(most, "epoch", loss=lost)
            _, *generator = random.get_state()
            fit.save([], [self._point, self._bias, [self.t_, since, best], *generator])
        self.n_iter_ = fit.step
        if fresh and most > 1 and self.tol is not None and since < patience:
            self._not_converged(self.max_iter)
        self._show(data.x.dtype)

    def _begin(self, features: int, columns: int, fit: Fit, fresh: bool) -> tuple[np.random.RandomState, float, int]:
        """The generator, the least loss and the epochs since, where the fit begins or goes on."""
        last = fit.restore()
        if last is not None:
            self._point, self._bias, counted, *state = last.values
            self.t_, since, best = counted.tolist()
            return restored(state), best, int(since)
        if fresh or not hasattr(self, "t_"):
            self._point, self._bias, self.t_ = np.zeros((features, columns)), np.zeros(columns), 1.0
        return fit.random(self.random_state), np.inf, 0

    def _show(self, dtype: DTypeLike) -> None:
        """The fitted attributes."""
        self.coef_, self.intercept_ = self._point.T.astype(dtype), self._bias.astype(dtype)

    def _scores(self, X: ArrayLike) -> tuple[Data, Array]:
        data = self._read_fitted(X)
        dtype = data.x.dtype
        return data, data.x @ oc.asarray(self._point.astype(dtype)) + oc.asarray(self._bias.astype(dtype))


class SGDClassifier(_Descent, Classifier):
    """Linear classes by stochastic gradient descent: every batch of `batch_size` shuffled rows is a step.

    `loss`: "hinge" (a linear SVM), "log_loss" (logistic), "modified_huber", "squared_hinge", "perceptron"; of more than
    two classes each against the others. Blocks of rows come in random order and their rows are shuffled, so an epoch is
    one read of X. It ends where the loss gains less than `tol` in `n_iter_no_change` epochs. `penalty`: "l2" α|β|²/2,
    "l1" α|β|₁, "elasticnet" of both by `l1_ratio`, or None. `checkpoint`: see `outcore.learn`.

    Fitted: `coef_`, `intercept_`, `classes_`, `n_iter_`, `history_` ("loss", the mean while an epoch was under way),
    `t_`, `n_features_in_`. I/O: `fit` reads X and y once per
    epoch; `partial_fit` and predictions once.

    >>> import numpy as np
    >>> from outcore.learn import SGDClassifier
    >>> x = np.asarray([[-2.0], [-1.0], [1.0], [2.0]])
    >>> SGDClassifier(random_state=0).fit(x, np.asarray([0, 0, 1, 1])).predict(x)
    array([0, 0, 1, 1])
    """

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> SGDClassifier:
        """The coefficients for the observations `X` and classes `y`. I/O: one read of both per epoch."""
        return self._learn(X, y, None, sample_weight, True)

    def partial_fit(
        self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> SGDClassifier:
        """One epoch more, over `X`; the first call takes all `classes`. I/O: one read of both."""
        first = not hasattr(self, "classes_")
        if first and classes is None:
            raise ValueError("SGDClassifier: classes must be passed on the first call to partial_fit")
        if first:
            self.__dict__.pop("t_", None)
        return self._learn(X, y, self.classes_ if classes is None else classes, sample_weight, False)

    def _learn(
        self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None, weights: ArrayLike | None, fresh: bool
    ) -> SGDClassifier:
        self._check(CLASS_LOSSES)
        data, y = self._read_pair(X, y, reset=fresh or not hasattr(self, "classes_"))
        if isinstance(y, Array) and y.ndim == 1 and y.dtype.kind in "biuf":
            # The classes are found in a read of y; blocks have to fit the memory behind it.
            rows = [data.x.astype(np.float64), y.astype(np.float64)[:, None], y.astype(np.float64)]
            foresee(block_program(rows))
        codes = self._codes(y, classes)
        count = len(self.classes_)
        if count < 2:
            raise ArgumentError(f"SGDClassifier: needs at least 2 classes, the data has one class: {self.classes_}")
        places = oc.arange(1, 2) if count == 2 else oc.arange(count)
        goal = oc.where(codes[:, None] == places, 1.0, -1.0)
        with fitting(self, X, y, weights, durable=fresh) as fit:
            self._descend(data, goal, self._weights(weights, data), CLASS_LOSSES[self.loss], fit, fresh)
        return self

    def decision_function(self, X: ArrayLike) -> Answer:
        """x·β + b: one number for each row of two classes, else one for each class. I/O: one read of `X`."""
        data, z = self._scores(X)
        return data.answer(z[:, 0] if z.shape[1] == 1 else z)

    def predict(self, X: ArrayLike) -> Answer:
        """The class of each row. I/O: one read of `X`."""
        data, z = self._scores(X)
        return self._labels(data, (z[:, 0] > 0).astype(np.int64) if z.shape[1] == 1 else oc.argmax(z, axis=1))


@dataclass(eq=False, repr=False)
class SGDRegressor(_Descent, Regressor):
    """Linear regression by stochastic gradient descent: every batch of `batch_size` shuffled rows is a step.

    `loss`: "squared_error", "huber" (linear beyond `epsilon`) or "epsilon_insensitive". Columns should be scaled. As
    for `SGDClassifier`, an epoch is one read of X; `penalty` and `checkpoint` are as there.

    Fitted: `coef_`, `intercept_`, `n_iter_`, `history_`, `t_`, `n_features_in_`. I/O: `fit` reads X and y once per
    epoch; `partial_fit` and predictions once.

    >>> import numpy as np
    >>> from outcore.learn import SGDRegressor
    >>> x = np.linspace(-1, 1, 50)[:, None]
    >>> model = SGDRegressor(random_state=0, eta0=0.1, tol=1e-6).fit(x, 3 * x[:, 0])
    >>> round(float(model.coef_[0]), 1)
    3.0
    """

    loss: str = "squared_error"
    _: KW_ONLY
    epsilon: float = 0.1
    learning_rate: str = "invscaling"
    power_t: float = 0.25

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> SGDRegressor:
        """The coefficients for the observations `X` and targets `y` (n,). I/O: one read of both per epoch."""
        return self._learn(X, y, sample_weight, True)

    def partial_fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> SGDRegressor:
        """One epoch more, over `X`. I/O: one read of both."""
        return self._learn(X, y, sample_weight, False)

    def _learn(self, X: ArrayLike, y: ArrayLike, weights: ArrayLike | None, fresh: bool) -> SGDRegressor:
        losses = regression_losses(self.epsilon)
        self._check(losses)
        data, y = self._read_pair(X, y, reset=fresh or not hasattr(self, "t_"), y_numeric=True)
        goal = self._targets(y)
        if goal.ndim != 1:
            raise ArgumentError(
                f"SGDRegressor: targets must be 1-D, not of shape {goal.shape}; use y[:, 0] or oc.ravel(y)"
            )
        columns = oc.expand_dims(goal, axis=1)
        with fitting(self, X, y, weights, durable=fresh) as fit:
            self._descend(data, columns, self._weights(weights, data), losses[self.loss], fit, fresh)
        return self

    def _show(self, dtype: DTypeLike) -> None:
        self.coef_, self.intercept_ = self._point[:, 0].astype(dtype), self._bias.astype(dtype)

    def predict(self, X: ArrayLike) -> Answer:
        """x·β + b of each row. I/O: one read of `X`."""
        data, z = self._scores(X)
        return data.answer(z[:, 0])


__all__ = ["SGDClassifier", "SGDRegressor"]
