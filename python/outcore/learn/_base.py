"""The common part of estimators: reading data, answers of the kind of the data, and the kinds of estimator.

They inherit scikit-learn's `BaseEstimator` and mixins: tags, cloning, parameters, routing, feature names, output
containers are its contract, checked by `check_estimator`, and change with it. So scikit-learn is needed here, as the
extra `learn`, and nowhere else in the package.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from outcore import _api as oc
from outcore._base.types import NDArray
from outcore._lazy.array import Array
from outcore._lazy.node import ArrayLike, Operand, node
from outcore._lazy.preview import unread
from outcore._session.session import check_room
from outcore.errors import ArgumentError, DTypeError, MemoryLimitError, ShapeError
from outcore.learn import metrics
from outcore.learn._fit import refusal_of, values
from outcore.learn._shown import estimator_card, fitted_lines, short_line

Answer: TypeAlias = "Array | NDArray"  # lazy for lazy data, else NumPy's
FLOATS = (np.float64, np.float32)
_LITTLE = 8 << 20  # within fixed allowances


class Data(NamedTuple):
    """Observations as rows of a lazy floating array, and whether they were given as one."""

    x: Array
    lazy: bool

    def answer(self, result: Array) -> Answer:
        """The result as the data came: lazy, or as a NumPy array."""
        return result if self.lazy else result.compute()


def _naming_itself(fit: Callable[..., Any]) -> Callable[..., Any]:
    """A method whose refusals name it: users called that, and none of the operators that it is made of."""

    def named(self: object, *arguments: object, **options: object) -> Any:
        try:
            return fit(self, *arguments, **options)
        except MemoryLimitError as error:
            method = f"{type(self).__name__}.{fit.__name__}"
            if error.operator is not None and error.operator.endswith(f".{fit.__name__}"):
                raise
            raise refusal_of(method, error) from error

    named.__code__ = named.__code__.replace(co_name=fit.__name__)  # by which nodes that it makes are named
    return wraps(fit)(named)


class Estimator(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """An estimator that takes lazy arrays beside what scikit-learn takes.

    With lazy input results are lazy; with any other they are NumPy arrays. Fitted attributes are NumPy arrays.
    """

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        for name in ("fit", "partial_fit"):
            if name in vars(cls):
                setattr(cls, name, _naming_itself(vars(cls)[name]))

    def __getstate__(self) -> Any:
        """The state to pickle: without lazy arrays, which refer to this process. `predict` makes such labels again."""
        state = super().__getstate__()
        return {name: value for name, value in state.items() if not isinstance(value, Array)}

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        with unread():  # scikit-learn asks for the text of each parameter more than once
            lines = [short_line(line) for line in super().__repr__(N_CHAR_MAX).split("\n")]
        return "\n".join([*lines, *fitted_lines(self)])

    @property
    def _repr_html_(self) -> Callable[[], str]:
        """The card, where scikit-learn's `display` asks for pictures."""
        if get_config()["display"] != "diagram":
            raise AttributeError("_repr_html_ is there where scikit-learn's option display is 'diagram'")
        return lambda: estimator_card(self)

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        bundle = {"text/plain": repr(self)}
        if get_config()["display"] == "diagram":
            bundle["text/html"] = estimator_card(self)
        return bundle

    def _read(self, x: ArrayLike, *, reset: bool, rows_min: int = 1, **checks: object) -> Data:
        """The data as it is worked with. Lazy arrays are checked by shape and type, all others by scikit-learn."""
        if isinstance(x, Array):
            x = self._lazy(x, reset, rows_min)
            return Data(x if x.dtype.type in FLOATS else x.astype(np.float64), True)
        checks.setdefault("dtype", FLOATS)
        return Data(oc.asarray(validate_data(self, x, reset=reset, ensure_min_samples=rows_min, **checks)), False)

    def _lazy(self, x: Array, reset: bool, rows_min: int) -> Array:
        """Lazy data as it is, where its shape and type are right."""
        name = type(self).__name__
        if x.ndim != 2:
            raise ShapeError(
                f"{name}: X must be 2-D, observations as rows and features as columns, not of shape {x.shape}"
            )
        if x.dtype.kind not in "biuf":
            raise DTypeError(f"{name}: X must be real numbers, not {x.dtype}; use X.astype('float64')")
        if x.shape[0] < rows_min or x.shape[1] < 1:
            raise ShapeError(f"{name}: X must have at least {rows_min} rows and 1 column, not shape {x.shape}")
        if reset:
            self.n_features_in_ = x.shape[1]
        elif x.shape[1] != self.n_features_in_:
            raise ShapeError(f"{name}: X has {x.shape[1]} features, and the fit was of {self.n_features_in_} features")
        return x

    def _read_fitted(self, x: ArrayLike, **checks: Any) -> Data:
        """Data for an estimator that is fitted already. Raises NotFittedError where it is not."""
        check_is_fitted(self)
        return self._read(x, reset=False, **checks)

    def _read_pair(self, x: ArrayLike, y: ArrayLike, *, reset: bool = True, **checks: object) -> tuple[Data, Any]:
        """Data and targets of as many rows; targets are lazy where they came so, else NumPy arrays."""
        if y is None:
            raise ValueError(f"{type(self).__name__}: requires y to be passed, but the target y is None")
        if not isinstance(x, Array) and not isinstance(y, Array):
            checks.setdefault("dtype", FLOATS)
            x, y = validate_data(self, x, y, reset=reset, **checks)
            return Data(oc.asarray(x), False), y
        data = self._read(x, reset=reset)
        target = y if isinstance(y, Array) else np.asarray(y)
        if target.ndim == 0 or target.shape[0] != data.x.shape[0]:
            raise ShapeError(
                f"{type(self).__name__}: X has {data.x.shape[0]} rows and y has shape {target.shape}; both need as "
                "many rows"
            )
        return data, target

    def _weights(self, weights: ArrayLike | None, data: Data) -> Array | None:
        """Weights of observations as a lazy row of float64; None where all weigh alike."""
        if weights is None:
            return None
        if not isinstance(weights, Array):
            weights = _check_sample_weight(weights, np.empty((data.x.shape[0], 0)), dtype=np.float64)
        row = Array(node(weights)).astype(np.float64)
        if row.shape != data.x.shape[:1]:
            raise ShapeError(
                f"{type(self).__name__}: sample_weight must have shape {data.x.shape[:1]}, not {row.shape}"
            )
        return row

    def _check_room(self, numbers: int) -> None:
        """Refuses a fit whose float64 numbers beside the data would not fit the memory, before any read."""
        if 8 * numbers > _LITTLE:
            check_room(f"{type(self).__name__}.fit", 8 * numbers)

    def _not_converged(self, rounds: int) -> None:
        warnings.warn(
            f"{type(self).__name__} did not converge within max_iter={rounds}; increase max_iter or tol",
            ConvergenceWarning,
            stacklevel=3,
        )


class Regressor(RegressorMixin, Estimator):  # type: ignore[misc]
    """An estimator of numbers."""

    def _targets(self, y: ArrayLike) -> Array:
        """Targets as float64, one row per observation."""
        target = Array(node(y))
        if target.dtype.kind not in "biuf":
            raise DTypeError(
                f"{type(self).__name__}: targets must be real numbers, not {target.dtype}; use y.astype('float64')"
            )
        return target.astype(np.float64)

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """The coefficient of determination R² of the predictions for `X`. I/O: one read of `X` and `y`."""
        return float(metrics.r2_score(y, self.predict(X), sample_weight=sample_weight))


class Classifier(ClassifierMixin, Estimator):  # type: ignore[misc]
    """An estimator of classes; `classes_` holds them in order."""

    classes_: NDArray

    def _codes(self, y: Any, classes: Any = None) -> Array:
        """For each observation the place of its class in `classes_`, int64; finds the classes unless they are given."""
        if not isinstance(y, Array):
            y = column_or_1d(y, warn=True)
            check_classification_targets(y)
            if classes is None:
                self.classes_, codes = np.unique(y, return_inverse=True)
            else:
                self.classes_ = np.unique(classes)
                codes = np.searchsorted(self.classes_, y)
            if not np.array_equal(self.classes_[np.minimum(codes, len(self.classes_) - 1)], y):
                raise ArgumentError(f"{type(self).__name__}: y has labels that are not among classes={self.classes_}")
            return oc.asarray(codes)
        y = self._label_row(y)
        if classes is None:
            self.classes_ = values([oc.unique_values(y)])[0]
        else:
            self.classes_ = np.unique(classes)
            if not values([oc.all(oc.isin(y, oc.asarray(self.classes_)))])[0]:
                raise ArgumentError(f"{type(self).__name__}: y has labels that are not among classes={self.classes_}")
        return oc.searchsorted(oc.asarray(self.classes_), y)

    def _label_row(self, y: Array) -> Array:
        """Lazy labels, which are integers or floats of whole numbers. I/O: one read of `y` where they are floats."""
        name = type(self).__name__
        if y.ndim != 1:
            raise ShapeError(f"{name}: labels of shape {y.shape} must be 1-D; use y[:, 0] or oc.ravel(y)")
        if y.dtype.kind not in "biuf":
            raise DTypeError(f"{name}: labels must be 1-D integers, not {y.dtype}; use y.astype('int64')")
        if y.dtype.kind == "f" and not values([oc.all(oc.isfinite(y) & (y == oc.floor(y)))])[0]:
            raise ArgumentError(f"{name}: labels must be whole numbers; the targets of y are continuous")
        return y

    def _labels(self, data: Data, codes: Array) -> Answer:
        """The classes at the given places, lazy or not as the data."""
        if not data.lazy:
            return self.classes_[codes.compute()]
        if self.classes_.dtype.kind not in "biuf":
            raise DTypeError(
                f"{type(self).__name__}: classes of {self.classes_.dtype} have no lazy array; fit with the integers "
                f"that LabelEncoder makes of them"
            )
        return oc.take(oc.asarray(self.classes_), codes)

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """The part of the predictions for `X` that is right. I/O: one read of `X` and `y`."""
        return metrics.accuracy_score(y, self.predict(X), sample_weight=sample_weight)


def weighted(x: Array, weights: Array | None) -> Array:
    """Rows times their weights."""
    if weights is None:
        return x
    return x * (oc.reshape(weights, (-1, *(1,) * (x.ndim - 1))))


def total(weights: Array | None, rows: int) -> Operand:
    """The sum of the weights; the number of rows where all weigh 1."""
    return oc.sum(weights) if weights is not None else float(rows)


__all__ = ["Classifier", "Data", "Estimator", "Regressor", "total", "weighted"]
