"""Rows put aside for tests: `train_test_split` and `KFold`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from outcore import _api as oc
from outcore._base.shortened import call_text
from outcore._base.types import RandomState
from outcore._lazy.array import Array
from outcore._lazy.node import ArrayLike, Operand
from outcore.errors import ArgumentError, ShapeError


def _rows(name: str, arrays: tuple[Any, ...]) -> int:
    lengths = [part.shape[0] if hasattr(part, "shape") else len(part) for part in arrays]
    if not lengths or len(set(lengths)) > 1:
        raise ShapeError(f"{name}: arrays must have one number of rows, not {lengths}")
    return int(lengths[0])


def _random(state: RandomState) -> np.random.RandomState:
    """The generator that `random_state` means, as scikit-learn has it; that package need not be loaded for it."""
    if isinstance(state, np.random.RandomState):
        return state
    generator: np.random.RandomState = np.random.mtrand._rand if state is None else np.random.RandomState(state)
    return generator


def _keys(rows: int, random_state: RandomState) -> Array:
    """A number for each row; their order is a seeded permutation of the rows, which is stored nowhere."""
    return oc.random.uniform(rows, seed=int(_random(random_state).randint(np.iinfo(np.int32).max)))


def _bound(keys: Array, count: int) -> Array:
    """The key that has `count` keys below it."""
    rows = keys.shape[0]
    if count >= rows:
        return oc.asarray(np.asarray(2.0))
    return oc.quantile(keys, count / max(rows - 1, 1), method="nearest")


def _chosen(part: Any, mask: Array) -> Any:
    if isinstance(part, Array):
        return part[mask]
    flags = mask.compute()
    if isinstance(part, list):
        return [value for value, flag in zip(part, flags, strict=True) if flag]
    return part[flags]


def _sizes(rows: int, test_size: float | None, train_size: float | None) -> tuple[int, int]:
    """Rows for training and for the test; a float is a part of all."""

    def count(size: float, up: bool) -> int:
        if isinstance(size, (int, np.integer)):
            return int(size)
        return int(np.ceil(size * rows) if up else np.floor(size * rows))

    if test_size is None:
        test_size = 0.25 if train_size is None else rows - count(train_size, up=False)
    test = count(test_size, up=True)
    train = rows - test if train_size is None else count(train_size, up=False)
    if test < 1 or train < 1 or test + train > rows:
        raise ArgumentError(
            f"train_test_split: train_size and test_size, {train} and {test} rows, must each be at least 1 and at most "
            f"{rows} together"
        )
    return train, test


def train_test_split(
    *arrays: Any,
    test_size: float | None = None,
    train_size: float | None = None,
    random_state: RandomState = None,
    shuffle: bool = True,
) -> list[Operand]:
    """Each array as rows to train and rows to test, one after the other: lazy for lazy arrays.

    Which rows go where is a seeded permutation's choice, the same for all arrays, memory limits and kinds of array; the
    rows of a part keep their order, so that a part is one read and nothing is moved (scikit-learn moves them too).
    Without `shuffle` the last rows are the test. Sizes: numbers of rows or parts of all; a quarter is the test unless
    told. Raises ShapeError for different lengths, ArgumentError for sizes that do not fit.

    I/O: none; a part is one read of its array when it is needed.

    >>> import numpy as np, outcore as oc
    >>> from outcore.learn import train_test_split
    >>> train, test = train_test_split(oc.arange(8), random_state=0)
    >>> train.shape, test.shape
    ((6,), (2,))
    """
    rows = _rows("train_test_split", arrays)
    train, test = _sizes(rows, test_size, train_size)
    if not shuffle:
        return [part[begin:end] for part in arrays for begin, end in ((0, train), (train, train + test))]
    keys = _keys(rows, random_state)
    tested = keys < _bound(keys, test)
    trained = ~tested if train + test == rows else ~tested & (keys < _bound(keys, test + train))
    return [_chosen(part, mask) for part in arrays for mask in (trained, tested)]


class KFold:
    """Each of `n_splits` parts of the rows once as the test, the others to train.

    `split(X)` gives pairs (train, test): masks to index lazy data by, which take no memory, and for other data
    positions as scikit-learn gives them. Parts are neighbouring rows, or with `shuffle` a seeded permutation's choice.
    I/O: none; a mask is made where it is used.

    >>> import numpy as np
    >>> from outcore.learn import KFold
    >>> [test.tolist() for _, test in KFold(2).split(np.zeros((5, 1)))]
    [[0, 1, 2], [3, 4]]
    """

    def __init__(self, n_splits: int = 5, *, shuffle: bool = False, random_state: RandomState = None) -> None:
        if n_splits < 2:
            raise ArgumentError(f"KFold: n_splits must be at least 2, not {n_splits}")
        self.n_splits = n_splits
        self.shuffle = shuffle
        self.random_state = random_state

    def __repr__(self) -> str:
        return call_text("KFold", [f"{name}={getattr(self, name)}" for name in ("n_splits", "shuffle", "random_state")])

    def get_n_splits(
        self, X: ArrayLike | None = None, y: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> int:
        """The number of parts."""
        return self.n_splits

    def split(
        self, X: ArrayLike, y: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> Iterator[tuple[Any, Any]]:
        """Pairs (train, test) of masks or positions."""
        rows = _rows("KFold", (X,))
        if rows < self.n_splits:
            raise ArgumentError(f"KFold: n_splits={self.n_splits} must be at most the number of rows, {rows}")
        share, more = divmod(rows, self.n_splits)
        ends = np.cumsum([0, *(share + (place < more) for place in range(self.n_splits))])
        keys = _keys(rows, self.random_state) if self.shuffle else oc.arange(rows)
        for begin, end in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
            low, high = (_bound(keys, begin), _bound(keys, end)) if self.shuffle else (begin, end)
            test = (keys >= low) & (keys < high)
            if isinstance(X, Array):
                yield ~test, test
            else:
                flags = test.compute()
                yield np.flatnonzero(~flags), np.flatnonzero(flags)


__all__ = ["KFold", "train_test_split"]
