"""Features brought to one scale: `StandardScaler`, `MinMaxScaler`, `RobustScaler`."""

from __future__ import annotations

import numpy as np
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from outcore import _api as oc
from outcore._base.types import NDArray
from outcore._lazy.array import Array
from outcore._lazy.node import ArrayLike
from outcore.errors import ArgumentError
from outcore.learn._base import Answer, Data, Estimator
from outcore.learn._fit import values
from outcore.learn._flaws import first_flaw, refuse_flaws
from outcore.learn._moments import column_moments


class _Scaler(OneToOneFeatureMixin, TransformerMixin, Estimator):  # type: ignore[misc]
    """Features are moved and scaled one by one. NaN is passed over in `fit` and stays in `transform`."""

    def __sklearn_tags__(self) -> object:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _features(self, X: ArrayLike, *, reset: bool = True) -> Data:
        if not reset:
            check_is_fitted(self)
        return self._read(X, reset=reset, ensure_all_finite="allow-nan")

    def _scaled(self, x: Array, scale: NDArray | None, shift: NDArray | None, back: bool = False) -> Array:
        """(x − shift) / scale, or its inverse, in the type of `x`."""
        if back:
            x = x if scale is None else x * oc.asarray(scale.astype(x.dtype))
            return x if shift is None else x + oc.asarray(shift.astype(x.dtype))
        x = x if shift is None else x - oc.asarray(shift.astype(x.dtype))
        return x if scale is None else x / oc.asarray(scale.astype(x.dtype))


def _nonzero(scale: NDArray) -> NDArray:
    """The scale with 1 for features that are constant."""
    return np.where(scale == 0, 1.0, scale)


def _refuse_infinite(x: Array, *bounds: NDArray) -> None:
    """Raises ArgumentError naming an infinite element where one is a bound. I/O: none where none is, else one read."""
    if any(np.isinf(bound).any() for bound in bounds):
        row = values([first_flaw(oc.where(oc.isnan(x), 0.0, x))])[0]
        refuse_flaws([np.inf], row, pass_nan=True, X=x)


class StandardScaler(_Scaler):
    """Features less their mean, over their standard deviation: z = (x − mean_) / scale_, with the divisor n.

    Means and variances are formed of distances from the mean of the first rows, and again, of distances from the mean,
    where that lies far from it. Moments of further data are merged with them, so `partial_fit` gives what `fit` of all
    would (Chan, Golub, LeVeque 1983). Features whose deviation is nothing but rounding keep their scale.

    Fitted: `mean_`, `var_`, `scale_`, `n_samples_seen_`, `n_features_in_`. I/O: `fit`, `partial_fit` and `transform`
    read X once; twice where the first rows are missing, weigh nothing or lie far away.

    >>> import numpy as np
    >>> from outcore.learn import StandardScaler
    >>> StandardScaler().fit_transform(np.asarray([[1.0], [3.0]]))
    array([[-1.],
           [ 1.]])
    """

    n_samples_seen_: int | NDArray
    _mean: NDArray
    _squares: NDArray

    def __init__(self, *, with_mean: bool = True, with_std: bool = True) -> None:
        self.with_mean = with_mean
        self.with_std = with_std

    def fit(self, X: ArrayLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> StandardScaler:
        """Means and deviations of the features of `X`, from nothing."""
        self.__dict__.pop("n_samples_seen_", None)
        return self.partial_fit(X, y, sample_weight)

    def partial_fit(
        self, X: ArrayLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> StandardScaler:
        """As `fit` of all data so far and `X`."""
        first = not hasattr(self, "n_samples_seen_")
        data = self._features(X, reset=first)
        weights = self._weights(sample_weight, data)
        count, mean, squares = column_moments(data.x, weights, pass_nan=True)
        if not first:
            old = np.broadcast_to(np.asarray(self.n_samples_seen_, dtype=np.float64), count.shape)
            both = np.where(old + count > 0, old + count, 1.0)
            apart = np.where(count > 0, mean, 0) - self._mean
            squares = squares + self._squares + apart * apart * old * count / both
            mean, count = self._mean + apart * count / both, old + count
        self._mean, self._squares = mean, squares
        whole = count[0] if np.all(count == count[0]) else count
        self.n_samples_seen_ = whole if weights is not None else np.asarray(whole).astype(np.int64)[()]
        self.mean_ = np.where(count > 0, mean, np.nan) if self.with_mean or self.with_std else None
        self.var_ = self.scale_ = None
        if self.with_std:
            self.var_ = squares / np.where(count > 0, count, np.nan)
            # The sum of n rounded squares is not below this even where all are equal (scikit-learn's bound).
            epsilon = np.finfo(np.float64).eps
            constant = self.var_ <= count * epsilon * self.var_ + (count * mean * epsilon) ** 2
            self.scale_ = _nonzero(np.where(constant, 0.0, np.sqrt(self.var_)))
        return self

    def transform(self, X: ArrayLike) -> Answer:
        """The features of `X`, scaled."""
        data = self._features(X, reset=False)
        return data.answer(self._scaled(data.x, self.scale_, self.mean_ if self.with_mean else None))

    def inverse_transform(self, X: ArrayLike) -> Answer:
        """Scaled features as they were."""
        data = self._features(X, reset=False)
        return data.answer(self._scaled(data.x, self.scale_, self.mean_ if self.with_mean else None, back=True))


class MinMaxScaler(_Scaler):
    """Features brought into a range, (low, high) = `feature_range`: their least value to low, their largest to high.

    x·scale_ + min_ with scale_ = (high − low) / (data_max_ − data_min_) and min_ = low − data_min_·scale_. `clip` holds
    other data within the range.

    Fitted: `data_min_`, `data_max_`, `data_range_`, `scale_`, `min_`, `n_samples_seen_`, `n_features_in_`. I/O: `fit`,
    `partial_fit` and `transform` read X once.

    >>> import numpy as np
    >>> from outcore.learn import MinMaxScaler
    >>> MinMaxScaler().fit_transform(np.asarray([[1.0], [3.0], [2.0]]))
    array([[0. ],
           [1. ],
           [0.5]])
    """

    n_samples_seen_: int
    data_min_: NDArray
    data_max_: NDArray

    def __init__(self, feature_range: tuple[float, float] = (0, 1), *, clip: bool = False) -> None:
        self.feature_range = feature_range
        self.clip = clip

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> MinMaxScaler:
        """The bounds of the features of `X`, from nothing."""
        self.__dict__.pop("n_samples_seen_", None)
        return self.partial_fit(X, y)

    def partial_fit(self, X: ArrayLike, y: ArrayLike | None = None) -> MinMaxScaler:
        """As `fit` of all data so far and `X`."""
        low, high = self.feature_range
        if not low < high:
            raise ArgumentError(
                "MinMaxScaler: feature_range must rise from its first number to its second, not be "
                f"{self.feature_range}"
            )
        first = not hasattr(self, "n_samples_seen_")
        data = self._features(X, reset=first)
        least, most = oc.compute(oc.nanmin(data.x, axis=0), oc.nanmax(data.x, axis=0))
        _refuse_infinite(data.x, least, most)
        if not first:
            least, most = np.fmin(least, self.data_min_), np.fmax(most, self.data_max_)
        self.n_samples_seen_ = data.x.shape[0] + (0 if first else self.n_samples_seen_)
        self.data_min_, self.data_max_, self.data_range_ = least, most, most - least
        self.scale_ = (high - low) / _nonzero(self.data_range_)
        self.min_ = low - least * self.scale_
        return self

    def transform(self, X: ArrayLike) -> Answer:
        """The features of `X`, in the range."""
        data = self._features(X, reset=False)
        scaled = self._scaled(data.x, self.scale_, self.min_, back=True)
        return data.answer(oc.clip(scaled, *self.feature_range) if self.clip else scaled)

    def inverse_transform(self, X: ArrayLike) -> Answer:
        """Features in the range as they were."""
        data = self._features(X, reset=False)
        return data.answer(self._scaled(data.x, self.scale_, self.min_))


class RobustScaler(_Scaler):
    """Features less their median, over the distance of two quantiles (in percent), which outliers do not move.

    `unit_variance` scales so that normal data has variance 1.

    Fitted: `center_`, `scale_`, `n_features_in_`. I/O: `fit` reads X twice (`oc.quantile`), `transform` once.

    >>> import numpy as np
    >>> from outcore.learn import RobustScaler
    >>> RobustScaler().fit_transform(np.asarray([[1.0], [2.0], [3.0], [4.0], [1000.0]])).ravel()
    array([ -1. ,  -0.5,   0. ,   0.5, 498.5])
    """

    def __init__(
        self,
        *,
        with_centering: bool = True,
        with_scaling: bool = True,
        quantile_range: tuple[float, float] = (25.0, 75.0),
        unit_variance: bool = False,
    ) -> None:
        self.with_centering = with_centering
        self.with_scaling = with_scaling
        self.quantile_range = quantile_range
        self.unit_variance = unit_variance

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> RobustScaler:
        """Medians and quantiles of the features of `X`."""
        low, high = self.quantile_range
        if not 0 <= low <= high <= 100:
            raise ArgumentError(
                f"RobustScaler: quantile_range must be two rising percentages from 0 to 100, not {self.quantile_range}"
            )
        data = self._features(X)
        below, middle, above = oc.nanquantile(data.x, [low / 100, 0.5, high / 100], axis=0).compute()
        _refuse_infinite(data.x, below, middle, above)
        self.center_ = middle if self.with_centering else None
        self.scale_ = None
        if self.with_scaling:
            self.scale_ = _nonzero(above - below)
            if self.unit_variance:
                from scipy.stats import norm

                self.scale_ = self.scale_ / (norm.ppf(high / 100) - norm.ppf(low / 100))
        return self

    def transform(self, X: ArrayLike) -> Answer:
        """The features of `X`, scaled."""
        data = self._features(X, reset=False)
        return data.answer(self._scaled(data.x, self.scale_, self.center_))

    def inverse_transform(self, X: ArrayLike) -> Answer:
        """Scaled features as they were."""
        data = self._features(X, reset=False)
        return data.answer(self._scaled(data.x, self.scale_, self.center_, back=True))


__all__ = ["MinMaxScaler", "RobustScaler", "StandardScaler"]
