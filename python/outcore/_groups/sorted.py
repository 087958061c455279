"""Groups of rows by sorted labels, for any number of groups and of columns: all columns at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from outcore import _core
from outcore._lazy.array import Array
from outcore._run import masks
from outcore._run.foresight import is_foreseeing
from outcore._standard.creation import arange, zeros
from outcore._standard.manipulation import concat, reshape
from outcore._standard.searching import where
from outcore._standard.sets import first_of_equal, last_of_equal
from outcore._standard.sorting import sort_by
from outcore.elementwise import isnan

Fold = Literal["sum", "prod", "min", "max"]


def upright(row: Array, ndim: int) -> Array:
    """A row of one number for each group, as a column beside rows of further axes."""
    return reshape(row, (row.shape[0], *(1,) * (ndim - 1))) if ndim > 1 else row


def rows_in_order(labels: Array, order: Array, values: Array) -> Array:
    """Rows of values, or single ones, as their labels are sorted; `order` says where each was."""
    if values.ndim == 1:
        return sort_by(labels, values)[1]
    return Array(_core.rows_by(labels._expr, order._expr, values._expr)) if values.size else values


def codes_of(labels: Array) -> Array:
    """For each label its place among the distinct ones, int64; lazy, by two sorts. Each NaN is one of its own."""
    ordered, positions = sort_by(labels, arange(labels.shape[0]))
    number = Array(_core.scan("sum", _core.astype(first_of_equal(ordered._expr), "int64"), 0, None)) - 1
    return sort_by(positions, number)[1]


class Order:
    """Labels in order and where each was, held in scratch; sorted when something needs it, once."""

    def __init__(self, labels: Array) -> None:
        self.labels = labels
        self._held: list[_core.Expr] | None = None

    def held(self) -> list[_core.Expr]:
        if self._held is not None:
            return self._held
        ordered = [array._expr for array in sort_by(self.labels, arange(self.labels.shape[0]))]
        held = masks.hold_counted(ordered, lambda held: last_of_equal(held[0]))
        self._held = None if is_foreseeing() else held
        return held


class Sorted:
    """Values in the order of their labels: single ones held with these, rows brought into order where they are used."""

    def __init__(self, order: Order, values: Array | None, dtype: str = "int64") -> None:
        self._order = order
        self._values = values
        self._dtype = dtype  # in which values are added up
        self._held: list[_core.Expr] | None = None

    def _columns(self) -> list[_core.Expr]:
        """The labels in order, and the values if there are any."""
        if self._held is not None:
            return self._held
        if self._values is None:
            held = self._order.held()[:1]
        elif self._values.ndim == 1:
            ordered = [array._expr for array in sort_by(self._order.labels, self._values.astype(self._dtype))]
            held = masks.hold_counted(ordered, lambda held: last_of_equal(held[0]))
        else:
            labels, positions = self._order.held()
            rows = rows_in_order(self._order.labels, Array(positions), self._values)
            held = [labels, rows.astype(self._dtype)._expr]
        self._held = None if is_foreseeing() else held
        return held

    def keys(self) -> Array:
        return masks.Chosen(lambda: masks.choose(self._columns()[0], last_of_equal(self._columns()[0]))._expr)

    def counts(self) -> Array:
        def make() -> _core.Expr:
            ends = masks.positions(last_of_equal(self._columns()[0])) + 1
            if ends.shape[0] == 0:
                return ends._expr
            return (ends - concat([Array(_core.full([1], 0, "int64")), ends[:-1]]))._expr

        return masks.Chosen(make)

    def _each(self, fold: Fold, prepare: Callable[[Array], Array]) -> Array:
        """A fold over every group of every column: accumulated from each first row on, of which the last is taken."""

        def make() -> _core.Expr:
            assert self._values is not None
            if self._values.size == 0:
                return zeros((self.counts().shape[0], *self._values.shape[1:]), dtype=self._dtype)._expr
            labels, values = self._columns()
            sums = _core.scan(fold, prepare(Array(values))._expr, 0, first_of_equal(labels))
            return masks.choose(sums, last_of_equal(labels))._expr

        return masks.Chosen(make)

    def folded(self, fold: Fold) -> Array:
        return self._each(fold, lambda values: values)

    def squares(self, skipna: bool) -> Array:
        """Sums of squared distances from the mean of the own group."""
        assert self._values is not None
        if skipna:
            sums = self._each("sum", lambda values: where(isnan(values), 0.0, values))
            means = sums / self._each("sum", lambda values: (~isnan(values)).astype(np.int64))
        else:
            means = self.folded("sum") / upright(self.counts(), self._values.ndim)

        def apart(values: Array) -> Array:
            first = first_of_equal(self._columns()[0])
            number = Array(_core.scan("sum", _core.astype(first, "int64"), 0, None)) - 1
            distance = values - Array(_core.take_ascending(means._expr, number._expr))
            squared = distance * distance
            return where(isnan(values), 0.0, squared) if skipna else squared

        return self._each("sum", apart)


__all__ = ["Fold", "Order", "Sorted", "codes_of", "rows_in_order", "upright"]
