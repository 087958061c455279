"""Scores of predictions: scikit-learn's functions of those names, of arrays larger than memory.

Each gives a number or a small NumPy array, by one program that reads what it is given once.
"""

from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt

from outcore import _api as oc
from outcore._base.types import NDArray
from outcore._lazy.array import Array
from outcore._lazy.node import ArrayLike, Operand, node
from outcore.errors import ArgumentError, ShapeError
from outcore.learn._shift import far, shift


def _pair(name: str, first: ArrayLike | None, second: ArrayLike | None) -> tuple[Array, Array]:
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
        raise ShapeError(f"{name}: both arrays must have one shape, not {one.shape} and {other.shape}")
    return one, other


def _mean(name: str, values: Array, weights: ArrayLike | None) -> Array:
    """The mean over observations, which `weights` may weigh."""
    if weights is None:
        return oc.mean(values, axis=0)
    row = _weights(name, weights, values.shape[0])
    heavy = oc.reshape(row, (-1, *(1,) * (values.ndim - 1)))
    return oc.sum(values.astype(np.float64) * heavy, axis=0) / oc.sum(row)


def _weights(name: str, weights: ArrayLike | None, count: int) -> Array:
    """Weights of observations as a row of float64."""
    row = Array(node(weights if isinstance(weights, Array) else np.asarray(weights))).astype(np.float64)
    if row.shape != (count,):
        raise ShapeError(f"{name}: sample_weight must have shape {(count,)}, not {row.shape}")
    return row


def accuracy_score(
    y_true: ArrayLike, y_pred: ArrayLike, *, normalize: bool = True, sample_weight: ArrayLike | None = None
) -> float:
    """The part of the labels that is predicted right; their number (the weight of them) if not `normalize`.

    I/O: one read of both.

    >>> from outcore.learn import metrics
    >>> metrics.accuracy_score([0, 1, 1, 0], [0, 1, 0, 0])
    0.75
    """
    true, predicted = _pair("accuracy_score", y_true, y_pred)
    right = true == predicted
    right = right if right.ndim == 1 else oc.all(right, axis=1)
    if normalize:
        return float(_mean("accuracy_score", right.astype(np.float64), sample_weight).compute())
    heavy = 1.0 if sample_weight is None else Array(node(sample_weight))
    return float(oc.sum(right * heavy).compute())


def _outputs(value: Array, average: bool) -> float | NDArray:
    """One number, or one for each output."""
    outputs = value.compute()
    return float(np.mean(outputs)) if average else outputs


def mean_squared_error(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    multioutput: str = "uniform_average",
) -> float | NDArray:
    """The mean of (true − predicted)²; of several outputs their mean, or each one's for `multioutput="raw_values"`.

    I/O: one read of both.

    >>> from outcore.learn import metrics
    >>> metrics.mean_squared_error([1.0, 2.0], [1.0, 4.0])
    2.0
    """
    true, predicted = _pair("mean_squared_error", y_true, y_pred)
    error = true.astype(np.float64) - predicted
    value = _mean("mean_squared_error", error * error, sample_weight)
    return _outputs(value, multioutput == "uniform_average")


def root_mean_squared_error(y_true: ArrayLike, y_pred: ArrayLike, *, sample_weight: ArrayLike | None = None) -> float:
    """The square root of `mean_squared_error`, of each output before their mean. I/O: one read of both.

    >>> from outcore.learn import metrics
    >>> metrics.root_mean_squared_error([1.0, 2.0], [3.0, 4.0])
    2.0
    """
    each = mean_squared_error(y_true, y_pred, sample_weight=sample_weight, multioutput="raw_values")
    return float(np.mean(np.sqrt(each)))


def mean_absolute_error(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    multioutput: str = "uniform_average",
) -> float | NDArray:
    """The mean of |true − predicted|; several outputs as in `mean_squared_error`. I/O: one read of both.

    >>> from outcore.learn import metrics
    >>> metrics.mean_absolute_error([1.0, 2.0], [1.0, 4.0])
    1.0
    """
    true, predicted = _pair("mean_absolute_error", y_true, y_pred)
    value = _mean("mean_absolute_error", oc.abs(true.astype(np.float64) - predicted), sample_weight)
    return _outputs(value, multioutput == "uniform_average")


def r2_score(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    multioutput: str = "uniform_average",
) -> float | NDArray:
    """1 − Σ (true − predicted)² / Σ (true − mean)²; where all are equal 1 for right predictions, else 0.

    Several outputs as in `mean_squared_error`. NaN for fewer than two observations.
    I/O: one read of both, squares being of distances from the mean of the first targets; one more of the true ones
    where that lies far from the mean of all.

    >>> from outcore.learn import metrics
    >>> metrics.r2_score([1.0, 2.0, 3.0], [1.0, 2.0, 4.0])
    0.5
    """
    true, predicted = _pair("r2_score", y_true, y_pred)
    if true.shape[0] < 2:
        return float("nan")
    true, error = true.astype(np.float64), true.astype(np.float64) - predicted
    weights = None if sample_weight is None else Array(node(sample_weight))
    wide = true if true.ndim == 2 else oc.expand_dims(true, axis=1)
    center: Array = shift(wide, weights)[0] if true.ndim == 2 else shift(wide, weights)[0, 0]

    def spread(center: Array) -> list[Array]:
        apart = true - center
        return [center, *(_mean("r2_score", part, sample_weight) for part in (apart, apart * apart))]

    residual, start, mean, squares = oc.compute(_mean("r2_score", error * error, sample_weight), *spread(center))
    if far(np.asarray(1.0), mean, squares - mean * mean, start + mean):
        start, mean, squares = oc.compute(*spread(oc.asarray(np.asarray(start + mean))))
    spread_of = squares - mean * mean
    with np.errstate(divide="ignore", invalid="ignore"):
        score = np.where(spread_of > 0, 1 - residual / spread_of, np.where(residual > 0, 0.0, 1.0))
    return float(np.mean(score)) if multioutput == "uniform_average" else score


def confusion_matrix(
    y_true: ArrayLike, y_pred: ArrayLike, *, labels: npt.ArrayLike | None = None, sample_weight: Operand | None = None
) -> NDArray:
    """How often class i (row) is predicted as class j (column); classes are `labels`, else all that occur, in order.

    int64, or float64 with weights. I/O: one read of both, and a sort of both for the classes.

    >>> from outcore.learn import metrics
    >>> metrics.confusion_matrix([0, 1, 1], [0, 1, 0])
    array([[1, 0],
           [1, 1]])
    """
    true, predicted = _pair("confusion_matrix", y_true, y_pred)
    both = oc.concat([true, predicted])
    classes = oc.unique_values(both).compute() if labels is None else np.sort(np.asarray(labels))
    count = len(classes)
    row = oc.asarray(classes)
    places = [oc.searchsorted(row, part) for part in (true, predicted)]
    inside = oc.isin(true, row) & oc.isin(predicted, row)
    pairs = oc.where(inside, places[0] * count + places[1], count * count)
    counts = oc.bincount(pairs, weights=sample_weight, minlength=count * count + 1).compute()
    matrix = counts[: count * count].reshape(count, count)
    if labels is None:
        return matrix
    order = np.searchsorted(classes, np.asarray(labels))
    return matrix[np.ix_(order, order)]


def log_loss(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    normalize: bool = True,
    sample_weight: ArrayLike | None = None,
    labels: npt.ArrayLike | None = None,
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
            f"log_loss: probabilities must have shape {(true.shape[0], len(classes))}, a column for each class, not "
            f"{chances.shape}"
        )
    epsilon = float(np.finfo(chances.dtype).eps)
    held = oc.clip(chances, epsilon, 1 - epsilon)
    chosen = oc.where(oc.expand_dims(true, axis=1) == oc.arange(len(classes)), held, 0)
    loss = -oc.log(oc.sum(chosen, axis=1))
    if not normalize:
        if sample_weight is not None:
            raise ArgumentError("log_loss: sample_weight needs normalize=True")
        return float(oc.sum(loss).compute())
    return float(_mean("log_loss", loss, sample_weight).compute())


def roc_auc_score(y_true: ArrayLike, y_score: ArrayLike, *, sample_weight: ArrayLike | None = None) -> float:
    """The area under the ROC curve of two classes: how likely a member of the second has the higher score.

    A positive score counts what negatives lie below it, and half of those equal to it, by weight: Σ w⁺ (W⁻(< s) + ½
    W⁻(= s)) / (W⁺ W⁻) (Hanley, McNeil 1982), which is exact with ties. The second class is the larger label. NaN, and a
    warning, where one of the classes has no weight. Raises ArgumentError for more than two classes, and for scores that
    are not finite.

    I/O: a read of the labels for the classes, then a sort of the negatives' scores, and a search in them.

    >>> from outcore.learn import metrics
    >>> metrics.roc_auc_score([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    0.75
    """
    if not isinstance(y_true, Array):
        y_true = np.unique(np.asarray(y_true), return_inverse=True)[1]
    true, scores = _pair("roc_auc_score", y_true, y_score)
    if true.ndim != 1 or not true.shape[0]:
        raise ShapeError(f"roc_auc_score: labels and scores must be 1-D and not empty, not of shape {true.shape}")
    low, high, finite = oc.compute(oc.min(true), oc.max(true), oc.all(oc.isfinite(scores)))
    if not finite:
        raise ArgumentError("roc_auc_score: y_score contains NaN or infinity")
    positive, negative = true == high, true == low
    weights = None if sample_weight is None else _weights("roc_auc_score", sample_weight, true.shape[0])
    parts = [part.astype(np.float64) if weights is None else part * weights for part in (positive, negative)]
    *sums, is_binary = oc.compute(*(oc.sum(part) for part in parts), oc.all(positive | negative))
    if not is_binary:
        raise ArgumentError("roc_auc_score: y_true has more than two classes; compare one with the others, y_true == c")
    if low == high or not sums[0] * sums[1] > 0:
        from sklearn.exceptions import UndefinedMetricWarning

        said = "roc_auc_score: the labels have one class; the area under the curve is not defined"
        warnings.warn(said, UndefinedMetricWarning, stacklevel=2)
        return float("nan")
    mine, theirs = scores[positive], scores[negative]
    if weights is None:
        ordered = oc.sort(theirs)
        below, up_to = (oc.searchsorted(ordered, mine, side=side).astype(np.float64) for side in ("left", "right"))
        won = oc.sum(below + up_to)
    else:
        order = oc.argsort(theirs)
        ordered = oc.take(theirs, order)
        running = oc.concat([oc.zeros((1,)), oc.cumulative_sum(oc.take(weights[negative], order))])
        places = (oc.searchsorted(ordered, mine, side=side) for side in ("left", "right"))
        below, up_to = (oc.take(running, place) for place in places)
        won = oc.sum((below + up_to) * weights[positive])
    return float(won.compute()) / 2 / float(sums[0]) / float(sums[1])


__all__ = [
    "accuracy_score",
    "confusion_matrix",
    "log_loss",
    "mean_absolute_error",
    "mean_squared_error",
    "r2_score",
    "roc_auc_score",
    "root_mean_squared_error",
]
