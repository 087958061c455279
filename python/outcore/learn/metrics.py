"""Scores of predictions: scikit-learn's functions of those names, of arrays larger than memory.

Each gives a number or a small NumPy array, by one program that reads what it is given once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

import outcore as oc
from outcore._array import Array
from outcore._node import Operand, node
from outcore.errors import ArgumentError, ShapeError

Numbers = npt.NDArray[Any]


def _pair(name: str, first: Any, second: Any) -> tuple[Array, Array]:
    """Two lazy arrays of one shape. Labels that are text become numbers, in order."""
    if not isinstance(first, Array) and not isinstance(second, Array):
        a, b = np.asarray(first), np.asarray(second)
        if a.dtype.kind in "OUS" or b.dtype.kind in "OUS":
            _, codes = np.unique(np.concatenate([a.ravel(), b.ravel()]), return_inverse=True)
            first, second = codes[: a.size].reshape(a.shape), codes[a.size :].reshape(b.shape)
    one, other = (Array(node(part if isinstance(part, Array) else np.asarray(part))) for part in (first, second))
    if one.shape != other.shape and {one.ndim, other.ndim} == {1, 2}:
        one, other = (part[:, 0] if part.ndim == 2 and part.shape[1] == 1 else part for part in (one, other))
    if one.shape != other.shape:
        raise ShapeError(f"{name}: shapes {one.shape} and {other.shape} differ")
    return one, other


def _mean(name: str, values: Array, weights: Any) -> Array:
    """The mean over observations, which `weights` may weigh."""
    if weights is None:
        return oc.mean(values, axis=0)
    row = Array(node(weights)).astype(np.float64)
    if row.shape != values.shape[:1]:
        raise ShapeError(f"{name}: sample_weight of shape {row.shape} for {values.shape[0]} observations")
    heavy = oc.reshape(row, (-1, *(1,) * (values.ndim - 1)))
    return oc.sum(values.astype(np.float64) * heavy, axis=0) / oc.sum(row)


def accuracy_score(y_true: Operand, y_pred: Operand, *, normalize: bool = True, sample_weight: Any = None) -> float:
    """The part of the labels that is predicted right; their number (the weight of them) if not `normalize`.

    I/O: one read of both.

    >>> from outcore.learn import metrics
    >>> metrics.accuracy_score([0, 1, 1, 0], [0, 1, 0, 0])
    0.75
    """
    true, found = _pair("accuracy_score", y_true, y_pred)
    right = true == found
    right = right if right.ndim == 1 else oc.all(right, axis=1)
    if normalize:
        return float(_mean("accuracy_score", right.astype(np.float64), sample_weight).compute())
    heavy = 1.0 if sample_weight is None else Array(node(sample_weight))
    return float(oc.sum(right * heavy).compute())


def _outputs(value: Array, average: bool) -> Any:
    """One number, or one for each output."""
    found = value.compute()
    return float(np.mean(found)) if average else found


def mean_squared_error(
    y_true: Operand, y_pred: Operand, *, sample_weight: Any = None, multioutput: str = "uniform_average"
) -> Any:
    """The mean of (true − predicted)²; of several outputs their mean, or each one's for `multioutput="raw_values"`.

    I/O: one read of both.

    >>> from outcore.learn import metrics
    >>> metrics.mean_squared_error([1.0, 2.0], [1.0, 4.0])
    2.0
    """
    true, found = _pair("mean_squared_error", y_true, y_pred)
    error = true.astype(np.float64) - found
    value = _mean("mean_squared_error", error * error, sample_weight)
    return _outputs(value, multioutput == "uniform_average")


def root_mean_squared_error(y_true: Operand, y_pred: Operand, *, sample_weight: Any = None) -> float:
    """The square root of `mean_squared_error`, of each output before their mean. I/O: one read of both.

    >>> from outcore.learn import metrics
    >>> metrics.root_mean_squared_error([1.0, 2.0], [3.0, 4.0])
    2.0
    """
    each = mean_squared_error(y_true, y_pred, sample_weight=sample_weight, multioutput="raw_values")
    return float(np.mean(np.sqrt(each)))


def mean_absolute_error(
    y_true: Operand, y_pred: Operand, *, sample_weight: Any = None, multioutput: str = "uniform_average"
) -> Any:
    """The mean of |true − predicted|; several outputs as in `mean_squared_error`. I/O: one read of both.

    >>> from outcore.learn import metrics
    >>> metrics.mean_absolute_error([1.0, 2.0], [1.0, 4.0])
    1.0
    """
    true, found = _pair("mean_absolute_error", y_true, y_pred)
    value = _mean("mean_absolute_error", oc.abs(true.astype(np.float64) - found), sample_weight)
    return _outputs(value, multioutput == "uniform_average")


def r2_score(
    y_true: Operand, y_pred: Operand, *, sample_weight: Any = None, multioutput: str = "uniform_average"
) -> Any:
    """1 − Σ (true − predicted)² / Σ (true − mean)²; where all are equal 1 for right predictions, else 0.

    Several outputs as in `mean_squared_error`. NaN for fewer than two observations.
    I/O: one read of both; squares are of distances from the first observation's target, so that they do not cancel.

    >>> from outcore.learn import metrics
    >>> metrics.r2_score([1.0, 2.0, 3.0], [1.0, 2.0, 4.0])
    0.5
    """
    true, found = _pair("r2_score", y_true, y_pred)
    if true.shape[0] < 2:
        return float("nan")
    apart, error = true.astype(np.float64) - true[:1], true.astype(np.float64) - found
    parts = (error * error, apart, apart * apart)
    left, mean, squares = oc.compute(*(_mean("r2_score", part, sample_weight) for part in parts))
    spread = squares - mean * mean
    with np.errstate(divide="ignore", invalid="ignore"):
        score = np.where(spread > 0, 1 - left / spread, np.where(left > 0, 0.0, 1.0))
    return float(np.mean(score)) if multioutput == "uniform_average" else score


def confusion_matrix(y_true: Operand, y_pred: Operand, *, labels: Any = None, sample_weight: Any = None) -> Numbers:
    """How often class i (row) is predicted as class j (column); classes are `labels`, else all that occur, in order.

    int64, or float64 with weights. I/O: one read of both, and a sort of both for the classes.

    >>> from outcore.learn import metrics
    >>> metrics.confusion_matrix([0, 1, 1], [0, 1, 0])
    array([[1, 0],
           [1, 1]])
    """
    true, found = _pair("confusion_matrix", y_true, y_pred)
    both = oc.concat([true, found])
    classes = oc.unique_values(both).compute() if labels is None else np.sort(np.asarray(labels))
    count = len(classes)
    row = oc.asarray(classes)
    places = [oc.searchsorted(row, part) for part in (true, found)]
    inside = oc.isin(true, row) & oc.isin(found, row)
    pairs = oc.where(inside, places[0] * count + places[1], count * count)
    counts = oc.bincount(pairs, weights=sample_weight, minlength=count * count + 1).compute()
    matrix = counts[: count * count].reshape(count, count)
    if labels is None:
        return matrix
    order = np.searchsorted(classes, np.asarray(labels))
    return matrix[np.ix_(order, order)]


def log_loss(
    y_true: Operand, y_pred: Operand, *, normalize: bool = True, sample_weight: Any = None, labels: Any = None
) -> float:
    """The mean of −log P(true class), natural logarithm; probabilities are columns, or a row of the second class's.

    Probabilities are held away from 0 and 1 by the type's epsilon. I/O: one read of both; the classes are found by a
    sort of `y_true` unless `labels` gives them.

    >>> from outcore.learn import metrics
    >>> round(metrics.log_loss([0, 1], [0.5, 0.5]), 6)
    0.693147
    """
    chances = Array(node(y_pred))
    chances = chances if chances.dtype.kind == "f" else chances.astype(np.float64)
    if isinstance(y_true, Array):
        classes = oc.unique_values(y_true).compute() if labels is None else np.unique(labels)
        true = oc.searchsorted(oc.asarray(classes), y_true)
    else:
        classes = np.unique(np.asarray(y_true) if labels is None else labels)
        true = oc.asarray(np.searchsorted(classes, np.asarray(y_true)))
    if chances.ndim == 1:
        chances = oc.stack([1 - chances, chances], axis=1)
    if chances.shape != (true.shape[0], len(classes)):
        raise ShapeError(
            f"log_loss: probabilities of shape {chances.shape} for {true.shape[0]} of {len(classes)} classes"
        )
    epsilon = float(np.finfo(chances.dtype).eps)
    held = oc.clip(chances, epsilon, 1 - epsilon)
    chosen = oc.where(oc.expand_dims(true, axis=1) == oc.arange(len(classes)), held, 0)
    loss = -oc.log(oc.sum(chosen, axis=1))
    if not normalize:
        if sample_weight is not None:
            raise ArgumentError("log_loss: sample_weight with normalize=False is not defined here")
        return float(oc.sum(loss).compute())
    return float(_mean("log_loss", loss, sample_weight).compute())


__all__ = [
    "accuracy_score",
    "confusion_matrix",
    "log_loss",
    "mean_absolute_error",
    "mean_squared_error",
    "r2_score",
    "root_mean_squared_error",
]
