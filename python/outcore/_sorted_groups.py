"""Groups of rows by sorted labels: any number of groups, in two reads and writes and one read more."""

from __future__ import annotations

import math
from typing import Any, Literal

from outcore import _core, _masks
from outcore._array import Array
from outcore.creation import zeros
from outcore.indexing import take
from outcore.manipulation import concat, reshape, stack
from outcore.sets import first_of_equal, last_of_equal
from outcore.sorting import sort_by

Fold = Literal["sum", "prod", "min", "max"]


def upright(row: Array, ndim: int) -> Array:
    """A row of one number for each group, as a column beside rows of further axes."""
    return reshape(row, (row.shape[0], *(1,) * (ndim - 1))) if ndim > 1 else row


class Sorted:
    """Labels in order, held in scratch with the columns of the values; sorted when something needs it, once."""

    def __init__(self, labels: Array, values: Array | None) -> None:
        self._labels = labels
        self._values = values
        self._held: list[_core.Expr] | None = None

    def _columns(self) -> list[_core.Expr]:
        if self._held is None:
            columns = []
            if self._values is not None:
                flat = reshape(self._values, (self._values.shape[0], math.prod(self._values.shape[1:])))
                columns = [flat[:, place] for place in range(flat.shape[1])]
            ordered = [array._expr for array in sort_by(self._labels, *columns)]
            self._held = _masks.hold_counted(ordered, lambda held: last_of_equal(held[0]))
        return self._held

    def keys(self) -> Array:
        return _masks.Chosen(lambda: _masks.choose(self._columns()[0], last_of_equal(self._columns()[0]))._expr)

    def counts(self) -> Array:
        def make() -> _core.Expr:
            ends = _masks.positions(last_of_equal(self._columns()[0])) + 1
            if ends.shape[0] == 0:
                return ends._expr
            return (ends - concat([Array(_core.full([1], 0, "int64")), ends[:-1]]))._expr

        return _masks.Chosen(make)

    def _each(self, fold: Fold, prepare: Any) -> Array:
        """A fold over every group of every column: accumulated from each first row on, of which the last is taken."""
        shape = () if self._values is None else self._values.shape[1:]

        def make() -> _core.Expr:
            labels, *columns = self._columns()
            if not columns:
                return zeros((self.counts().shape[0], *shape))._expr
            first, last = first_of_equal(labels), last_of_equal(labels)
            chosen = []
            for column in columns:
                sums = Array(_core.scan(fold, prepare(Array(column))._expr, 0, first))
                chosen.append(_masks.choose(sums._expr, last))
            groups = chosen[0].shape[0]
            return reshape(stack(chosen, axis=1), (groups, *shape))._expr

        return _masks.Chosen(make)

    def folded(self, fold: Fold) -> Array:
        return self._each(fold, lambda column: column)

    def squares(self) -> Array:
        """Sums of squared distances from the mean of the own group."""
        means = self.folded("sum") / upright(self.counts(), 1 if self._values is None else self._values.ndim)
        flat = reshape(means, (means.shape[0], -1))
        labels = self._columns()[0]
        number = Array(_core.scan("sum", _core.astype(first_of_equal(labels), "int64"), 0, None)) - 1
        place = iter(range(flat.shape[1]))

        def prepare(column: Array) -> Array:
            apart = column - take(flat[:, next(place)], number)
            return apart * apart

        return self._each("sum", prepare)


__all__ = ["Fold", "Sorted", "upright"]
