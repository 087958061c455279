"""Categories as numbers and as columns of ones: `LabelEncoder`, `OneHotEncoder`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils import column_or_1d
from sklearn.utils.validation import check_is_fitted, validate_data

from outcore import _api as oc
from outcore._base.element_types import DTypeLike
from outcore._base.types import NDArray
from outcore._lazy.array import Array
from outcore._lazy.node import ArrayLike
from outcore.errors import ArgumentError, DTypeError, ShapeError
from outcore.learn._base import Answer, Estimator


def _known(values: Array, categories: NDArray) -> bool:
    return bool(oc.all(oc.isin(values, oc.asarray(categories))).compute())


def _places(ones: Array, first: int) -> Array:
    """The place of the one in each row; 0 where there is none and the first column was left out."""
    if ones.shape[1] == 0:
        return oc.zeros((ones.shape[0],), dtype=np.int64)
    place = oc.argmax(ones, axis=1)
    return oc.where(oc.any(ones, axis=1), place + 1, 0) if first else place


def _distinct(column: Any) -> NDArray:
    if isinstance(column, Array):
        return oc.unique_values(column).compute()
    try:
        return np.unique(column)
    except TypeError as error:
        raise DTypeError(f"OneHotEncoder: categories: argument must be a string or a number ({error})") from None


class LabelEncoder(TransformerMixin, Estimator, auto_wrap_output_keys=None):  # type: ignore[misc]
    """Labels as their places among all labels in order, 0 to classes − 1.

    Lazy labels are numbers; text is for NumPy arrays. Fitted: `classes_`. I/O: `fit` sorts the labels
    (`oc.unique_values`); `transform` of lazy labels is lazy, after one read that looks for unknown ones.

    >>> import numpy as np
    >>> from outcore.learn import LabelEncoder
    >>> LabelEncoder().fit_transform(np.asarray(["b", "a", "b"]))
    array([1, 0, 1])
    """

    def __sklearn_tags__(self) -> object:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.target_tags.one_d_labels = True
        return tags

    @staticmethod
    def _row(y: ArrayLike) -> Any:
        if not isinstance(y, Array):
            return column_or_1d(y, warn=True)
        if y.ndim != 1:
            raise ShapeError(f"LabelEncoder: labels must be 1-D, not of shape {y.shape}; use y[:, 0] or oc.ravel(y)")
        return y

    def fit(self, y: ArrayLike) -> LabelEncoder:
        """The labels there are."""
        row = self._row(y)
        self.classes_ = oc.unique_values(row).compute() if isinstance(row, Array) else np.unique(row)
        return self

    def fit_transform(self, y: ArrayLike) -> Answer:
        """`fit(y).transform(y)`."""
        return self.fit(y).transform(y)

    def transform(self, y: ArrayLike) -> Answer:
        """The place of each label, int64. Raises ArgumentError for labels that `fit` has not seen."""
        check_is_fitted(self)
        row = self._row(y)
        if isinstance(row, Array):
            known, places = _known(row, self.classes_), oc.searchsorted(oc.asarray(self.classes_), row)
        else:
            known, places = bool(np.isin(row, self.classes_).all()), np.searchsorted(self.classes_, row)
        if not known:
            raise ArgumentError("LabelEncoder: y contains previously unseen labels")
        return places

    def inverse_transform(self, y: ArrayLike) -> Answer:
        """The labels at some places."""
        check_is_fitted(self)
        row = self._row(y)
        if isinstance(row, Array):
            return oc.take(oc.asarray(self.classes_), row)
        if np.setdiff1d(row, np.arange(len(self.classes_))).size:
            raise ArgumentError(
                f"LabelEncoder: y must be between 0 and {len(self.classes_) - 1}, the places of the "
                f"{len(self.classes_)} labels"
            )
        labels: NDArray = self.classes_[row]
        return labels


class OneHotEncoder(TransformerMixin, Estimator):  # type: ignore[misc]
    """Each column of categories as columns of 0 and 1, one for each category, in order; dense.

    `categories`: "auto", or a list of them for each column, in order. `drop="first"` leaves the first of each out.
    `handle_unknown`: "error" raises ArgumentError, "ignore" gives zeros. Lazy categories are numbers; text and objects
    are for NumPy arrays.

    Fitted: `categories_`, `n_features_in_`. I/O: `fit` sorts each column (`oc.unique_values`); `transform` is lazy and
    one read, after one more that looks for unknown categories where they are errors.

    >>> import numpy as np
    >>> from outcore.learn import OneHotEncoder
    >>> OneHotEncoder().fit_transform(np.asarray([[3], [7], [3]]))
    array([[1., 0.],
           [0., 1.],
           [1., 0.]])
    """

    def __init__(
        self,
        *,
        categories: str | Sequence[ArrayLike] = "auto",
        drop: str | None = None,
        dtype: DTypeLike = np.float64,
        handle_unknown: str = "error",
    ) -> None:
        self.categories = categories
        self.drop = drop
        self.dtype = dtype
        self.handle_unknown = handle_unknown

    def __sklearn_tags__(self) -> object:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    def _table(self, X: ArrayLike, reset: bool) -> Any:
        """Lazy data, or a NumPy array of any type."""
        if isinstance(X, Array):
            if X.dtype.kind not in "biuf":
                raise DTypeError(f"OneHotEncoder: lazy categories must be real numbers, not {X.dtype}")
            return self._lazy(X, reset, 1)
        return validate_data(self, X, reset=reset, dtype=None)

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> OneHotEncoder:
        """The categories of each column."""
        if self.drop not in (None, "first") or self.handle_unknown not in ("error", "ignore"):
            raise ArgumentError(
                f"OneHotEncoder: drop={self.drop!r}, handle_unknown={self.handle_unknown!r}; drop must be None or "
                "'first', handle_unknown 'error' or 'ignore'"
            )
        table = self._table(X, reset=True)
        columns = [table[:, place] for place in range(table.shape[1])]
        if isinstance(self.categories, str):
            self.categories_ = [_distinct(column) for column in columns]
        else:
            self.categories_ = [np.asarray(part) for part in self.categories]
            if len(self.categories_) != len(columns):
                raise ShapeError(
                    f"OneHotEncoder: categories has {len(self.categories_)} lists, and X {len(columns)} columns; pass "
                    "one for each"
                )
            self._refuse_unknown(columns)
        return self

    def _refuse_unknown(self, columns: list[Any]) -> None:
        if self.handle_unknown == "ignore":
            return
        for place, (column, known) in enumerate(zip(columns, self.categories_, strict=True)):
            if not (_known(column, known) if isinstance(column, Array) else np.isin(column, known).all()):
                raise ArgumentError(f"OneHotEncoder: unknown categories in column {place}; known are {known}")

    def transform(self, X: ArrayLike) -> Answer:
        """The columns of 0 and 1."""
        check_is_fitted(self)
        table = self._table(X, reset=False)
        columns = [table[:, place] for place in range(table.shape[1])]
        self._refuse_unknown(columns)
        first = 0 if self.drop is None else 1
        pairs = zip(columns, self.categories_, strict=True)
        if isinstance(table, Array):
            return oc.concat([c[:, None] == oc.asarray(k[first:]) for c, k in pairs], axis=1).astype(self.dtype)
        return np.hstack([c[:, None] == k[first:] for c, k in pairs]).astype(self.dtype)

    def inverse_transform(self, X: ArrayLike) -> Answer:
        """The categories of columns of 0 and 1; numbers for lazy data, which all columns' categories have to be."""
        check_is_fitted(self)
        first = 0 if self.drop is None else 1
        ends = np.cumsum([0, *(len(known) - first for known in self.categories_)])
        table = X if isinstance(X, Array) else np.asarray(X)
        if table.ndim != 2 or table.shape[1] != ends[-1]:
            raise ShapeError(
                f"OneHotEncoder: X must have {ends[-1]} columns, one for each category, not shape {table.shape}"
            )
        parts = [table[:, begin:end] for begin, end in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)]
        pairs = list(zip(parts, self.categories_, strict=True))
        if isinstance(table, Array):
            columns = [oc.take(oc.asarray(known), _places(oc.asarray(part), first)) for part, known in pairs]
            return oc.stack(columns, axis=1)
        labels = [known[_places(oc.asarray(part), first).compute()] for part, known in pairs]
        return np.stack(labels, axis=1)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray:
        """The names of the columns: feature and category, joined by an underscore."""
        from sklearn.utils.validation import _check_feature_names_in

        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        first = 0 if self.drop is None else 1
        pairs = zip(names, self.categories_, strict=True)
        return np.asarray([f"{name}_{value}" for name, known in pairs for value in known[first:]], dtype=object)


__all__ = ["LabelEncoder", "OneHotEncoder"]
