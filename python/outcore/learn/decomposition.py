"""Principal components and truncated singular values: `PCA`, `IncrementalPCA`, `TruncatedSVD`."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from outcore import _api as oc
from outcore._base.element_types import DTypeLike
from outcore._base.types import Keywords, NDArray, RandomState
from outcore._lazy.node import ArrayLike
from outcore.errors import ArgumentError
from outcore.learn import _svd
from outcore.learn._base import Answer, Data, Estimator
from outcore.learn._fit import fitting
from outcore.learn._moments import Moments, moments

# A Gram matrix of so many columns is small, and quicker than several sweeps.
_GRAM_COLUMNS_MAX = 1000


class _Components(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):  # type: ignore[misc]
    """Rows expressed in a few directions, which are the rows of `components_`."""

    components_: NDArray

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def __sklearn_tags__(self) -> object:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _back(self, X: ArrayLike) -> Data:
        """Data in the directions of the components."""
        check_is_fitted(self)
        if isinstance(X, oc.Array):
            return Data(X, True)
        return Data(oc.asarray(np.asarray(X, dtype=self.components_.dtype)), False)


class _Principal(_Components):
    """The common part of PCA and IncrementalPCA: the components of data less its means."""

    whiten: bool
    mean_: NDArray
    explained_variance_: NDArray

    def _keep(self, singular: _svd.Singular, rows: int, count: Any, dtype: DTypeLike) -> None:
        """The fitted attributes from singular values of the data less its means."""
        variances = singular.values**2 / max(rows - 1, 1)
        whole = float(np.sum(singular.variances)) * rows / max(rows - 1, 1)
        ratios = variances / whole if whole > 0 else np.zeros_like(variances)
        if isinstance(count, float):
            count = int(np.searchsorted(np.cumsum(ratios), count, side="right")) + 1
            count = min(count, len(ratios))
        dropped = min(rows, len(singular.mean)) - count
        self.n_components_ = count
        self.components_ = singular.vectors[:count].astype(dtype)
        self.explained_variance_ = variances[:count].astype(dtype)
        self.explained_variance_ratio_ = ratios[:count].astype(dtype)
        self.singular_values_ = singular.values[:count].astype(dtype)
        self.mean_ = singular.mean.astype(dtype)
        self.noise_variance_ = max(whole - float(np.sum(variances[:count])), 0.0) / dropped if dropped > 0 else 0.0

    def _count(self, components: object, rows: int, columns: int) -> Any:
        """How many components: an int, or a float for a part of the variance."""
        most = min(rows, columns)
        if components is None:
            return most
        if isinstance(components, (float, np.floating)) and 0 < components < 1:
            return float(components)
        if not isinstance(components, (int, np.integer)) or not 1 <= components <= most:
            raise ArgumentError(
                f"{type(self).__name__}: n_components={components!r} must be between 1 and min(n_samples, n_features)="
                f"{most}, for data of shape {(rows, columns)}"
            )
        return int(components)

    def transform(self, X: ArrayLike) -> Answer:
        """(X − mean_)·components_ᵀ, over √explained_variance_ if `whiten`. I/O: one read of `X`."""
        data = self._read_fitted(X)
        dtype = data.x.dtype
        projected = (data.x - oc.asarray(self.mean_.astype(dtype))) @ oc.asarray(self._directions().T.astype(dtype))
        return data.answer(projected)

    def _directions(self) -> NDArray:
        if not self.whiten:
            return self.components_
        scale = np.sqrt(self.explained_variance_)[:, None]
        directions: NDArray = self.components_ / np.maximum(scale, np.finfo(scale.dtype).eps)
        return directions

    def inverse_transform(self, X: ArrayLike) -> Answer:
        """The rows that the components make of `X`, in the features of the data. I/O: one read of `X`."""
        data = self._back(X)
        scale = np.sqrt(self.explained_variance_)[:, None] if self.whiten else 1.0
        return data.answer(data.x @ oc.asarray(self.components_ * scale) + oc.asarray(self.mean_))


class PCA(_Principal):
    """Principal components: the directions in which data less its means varies most, X − x̄ = UΣVᵀ.

    `svd_solver`: "covariance_eigh" takes eigenvalues of the covariance (one read; values below √ε of the largest lose
    their digits), "randomized" a random range finder (Halko, Martinsson, Tropp 2011; `iterated_power` + 1 reads, and
    room for columns × components only), "auto" the first for up to 1000 columns. `n_components`: how many, the part of
    the variance to explain, or all. Signs: the largest entry of a component is positive. `checkpoint`: see
    `outcore.learn`.

    Fitted: `components_`, `explained_variance_`, `explained_variance_ratio_`, `singular_values_`, `mean_`,
    `n_components_`, `noise_variance_`, `n_samples_`, `history_` ("captured": of the variance, by the range after each
    iteration), `n_features_in_`. I/O: `fit` as the solver says; `transform` reads X once.

    >>> import numpy as np
    >>> from outcore.learn import PCA
    >>> model = PCA(1).fit(np.asarray([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]))
    >>> model.components_.round(6)
    array([[0.707107, 0.707107]])
    """

    def __init__(
        self,
        n_components: float | str | None = None,
        *,
        whiten: bool = False,
        svd_solver: str = "auto",
        n_oversamples: int = 10,
        iterated_power: Any = "auto",
        random_state: RandomState = None,
        checkpoint: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.whiten = whiten
        self.svd_solver = svd_solver
        self.n_oversamples = n_oversamples
        self.iterated_power = iterated_power
        self.random_state = random_state
        self.checkpoint = checkpoint

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> PCA:
        """The components of the rows of `X`."""
        data = self._read(X, reset=True, rows_min=2)
        rows, columns = data.x.shape
        count = self._count(self.n_components, rows, columns)
        is_randomized = self._randomized(columns, count)
        width = min(count + self.n_oversamples, columns) if is_randomized else columns
        self._check_room(width * columns * (_svd.RANGE_ROOM if is_randomized else _svd.GRAM_ROOM))
        with fitting(self, X) as fit:
            if is_randomized:
                power = self.iterated_power
                if power == "auto":
                    power = 7 if count < 0.1 * min(rows, columns) else 4
                options: Keywords = {"oversamples": self.n_oversamples, "random_state": self.random_state}
                singular = _svd.by_range(data.x, count, power=power, center=True, fit=fit, **options)
            else:
                singular = _svd.by_gram(data.x, center=True)
        self.n_samples_ = rows
        self._keep(singular, rows, count, data.x.dtype)
        return self

    def _randomized(self, columns: int, count: Any) -> bool:
        if self.svd_solver not in ("auto", "covariance_eigh", "randomized"):
            raise ArgumentError(f"PCA: svd_solver={self.svd_solver!r} is none of auto, covariance_eigh, randomized")
        if self.svd_solver == "auto":
            return columns > _GRAM_COLUMNS_MAX and not isinstance(count, float) and count < 0.8 * columns
        if self.svd_solver == "randomized" and isinstance(count, float):
            raise ArgumentError(
                f"PCA: n_components={count}, a part of the variance, needs svd_solver='covariance_eigh'"
            )
        return self.svd_solver == "randomized"


class IncrementalPCA(_Principal):
    """Principal components of data that comes in parts, with nothing lost between them.

    Each part's mean and scatter matrix are merged with those so far (Chan, Golub, LeVeque 1983), so the result is that
    of `PCA` of all rows, whatever the parts; what scikit-learn keeps is a truncated decomposition. Room: columns².

    Fitted: as `PCA`, with `var_` and `n_samples_seen_`. I/O: `fit` and each `partial_fit` read X once.

    >>> import numpy as np
    >>> from outcore.learn import IncrementalPCA
    >>> model = IncrementalPCA(1)
    >>> for part in np.asarray([[[0.0, 0.0], [1.0, 1.0]], [[2.0, 2.0], [5.0, 5.0]]]):
    ...     model = model.partial_fit(part)
    >>> model.mean_
    array([2., 2.])
    """

    _moments: Moments

    def __init__(self, n_components: float | str | None = None, *, whiten: bool = False) -> None:
        self.n_components = n_components
        self.whiten = whiten

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> IncrementalPCA:
        """The components of the rows of `X`, from nothing."""
        self.__dict__.pop("_moments", None)
        return self.partial_fit(X, y)

    def partial_fit(self, X: ArrayLike, y: ArrayLike | None = None) -> IncrementalPCA:
        """The components of all rows so far and those of `X`."""
        first = not hasattr(self, "_moments")
        data = self._read(X, reset=first)
        rows, columns = data.x.shape
        seen = rows if first else self.n_samples_seen_ + rows
        count = self._count(self.n_components, seen, columns)
        self._check_room(columns * columns * (_svd.GRAM_ROOM + 2))
        batch = moments(data.x)
        self._moments = batch if first else self._moments.merge(batch)
        self.n_samples_seen_: int = seen
        self.var_ = np.diag(self._moments.scatter) / seen
        self._keep(_svd.of_moments(self._moments, seen), seen, count, data.x.dtype)
        return self


class TruncatedSVD(_Components):
    """The leading singular values and vectors of the data as it is, X ≈ UΣVᵀ, not less its means.

    `algorithm`: "gram" takes eigenvalues of XᵀX (one read, room for columns²; values below √ε of the largest lose their
    digits), "randomized" a random range finder with `n_iter` power iterations (Halko, Martinsson, Tropp 2011; n_iter
    + 1 reads, room for columns × components), "auto" the first for up to 1000 columns. `checkpoint`: see
    `outcore.learn`.

    Fitted: `components_` (Vᵀ), `singular_values_`, `explained_variance_` (of the transformed columns),
    `explained_variance_ratio_`, `history_` ("captured", as in `PCA`), `n_features_in_`. U·Σ is `transform(X)`, lazy for
    lazy data. I/O: `fit` as the algorithm says; `transform` reads X once.

    >>> import numpy as np
    >>> from outcore.learn import TruncatedSVD
    >>> TruncatedSVD(1).fit(np.asarray([[3.0, 0.0], [0.0, 1.0]])).singular_values_
    array([3.])
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        algorithm: str = "auto",
        n_iter: int = 5,
        n_oversamples: int = 10,
        random_state: RandomState = None,
        checkpoint: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.algorithm = algorithm
        self.n_iter = n_iter
        self.n_oversamples = n_oversamples
        self.random_state = random_state
        self.checkpoint = checkpoint

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> TruncatedSVD:
        """The leading singular values of `X`."""
        data = self._read(X, reset=True, rows_min=2)
        rows, columns = data.x.shape
        if self.algorithm not in ("auto", "gram", "randomized"):
            raise ArgumentError(f"TruncatedSVD: algorithm={self.algorithm!r} is none of auto, gram, randomized")
        if not 1 <= self.n_components <= columns:
            raise ArgumentError(f"TruncatedSVD: n_components={self.n_components} must be <= n_features={columns}")
        count = min(self.n_components, rows)
        by_gram = self.algorithm == "gram" or (self.algorithm == "auto" and columns <= _GRAM_COLUMNS_MAX)
        width = columns if by_gram else min(count + self.n_oversamples, columns)
        self._check_room(width * columns * (_svd.GRAM_ROOM if by_gram else _svd.RANGE_ROOM))
        with fitting(self, X) as fit:
            if by_gram:
                singular = _svd.by_gram(data.x, center=False)
            else:
                options: Keywords = {"oversamples": self.n_oversamples, "random_state": self.random_state}
                singular = _svd.by_range(data.x, count, power=self.n_iter, center=False, fit=fit, **options)
        vectors, values = singular.vectors[:count], singular.values[:count]
        dtype = data.x.dtype
        self.components_ = vectors.astype(dtype)
        self.singular_values_ = values.astype(dtype)
        variances = np.maximum(values**2 / rows - (vectors @ singular.mean) ** 2, 0)
        self.explained_variance_ = variances.astype(dtype)
        whole = float(np.sum(singular.variances))
        self.explained_variance_ratio_ = (variances / whole if whole > 0 else 0 * variances).astype(dtype)
        return self

    def transform(self, X: ArrayLike) -> Answer:
        """X·V, which is U·Σ for the data of `fit`. I/O: one read of `X`."""
        data = self._read_fitted(X)
        return data.answer(data.x @ oc.asarray(self.components_.T.astype(data.x.dtype)))

    def inverse_transform(self, X: ArrayLike) -> Answer:
        """The rows that the components make of `X`, in the features of the data. I/O: one read of `X`."""
        data = self._back(X)
        return data.answer(data.x @ oc.asarray(self.components_))


__all__ = ["PCA", "IncrementalPCA", "TruncatedSVD"]
