"""Set functions of the array API standard, by sorting.

Elements that compare unequal are distinct: each NaN is one of its own, and -0 is +0. Results are lazy; how many values
there are is found with the sort itself, once, when something needs to know.
"""

from __future__ import annotations

from typing import NamedTuple

from outcore import _core, _masks
from outcore._array import Array
from outcore._foresight import is_foreseeing
from outcore._node import Operand, expr_dtype, node
from outcore.errors import DTypeError
from outcore.manipulation import concat, reshape
from outcore.sorting import sort_by


class UniqueAll(NamedTuple):
    """What `unique_all` gives."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCounts(NamedTuple):
    """What `unique_counts` gives."""

    values: Array
    counts: Array


class UniqueInverse(NamedTuple):
    """What `unique_inverse` gives."""

    values: Array
    inverse_indices: Array


class _Groups:
    """Sorted elements, with the first of equal ones marked; sorted when something needs it, once."""

    def __init__(self, name: str, x: Operand, with_positions: bool) -> None:
        self._x = node(x)
        if expr_dtype(self._x).kind == "c":
            raise DTypeError(f"{name}: {expr_dtype(self._x)} has no order")
        self._with_positions = with_positions
        self._held: list[_core.Expr] | None = None

    def _sorted(self) -> list[_core.Expr]:
        if self._held is not None:
            return self._held
        flat = _masks.flatten(self._x)
        columns = [_core.arange(0, 1, flat.shape[0], "int64")] if self._with_positions else []
        sorted_columns = [array._expr for array in sort_by(Array(flat), *map(Array, columns))]
        held = _masks.hold_counted(sorted_columns, lambda held: first_of_equal(held[0]))
        self._held = None if is_foreseeing() else held
        return held

    def first(self) -> _core.Expr:
        return first_of_equal(self._sorted()[0])

    def chosen(self, column: int) -> Array:
        def make() -> _core.Expr:
            held = self._sorted()[column]
            return _masks.choose(held, self.first())._expr

        return _masks.Chosen(make)

    def counts(self) -> Array:
        def make() -> _core.Expr:
            first = self.first()
            begins = _masks.positions(first)
            end = Array(_core.full([1], first.shape[0], "int64"))
            return (concat([begins[1:], end]) - begins)._expr

        return _masks.Chosen(make)

    def inverse(self) -> Array:
        def make() -> _core.Expr:
            number = Array(_core.scan("sum", _core.astype(self.first(), "int64"), 0, None)) - 1
            back = sort_by(Array(self._sorted()[1]), number)[1]
            return reshape(back, tuple(self._x.shape))._expr

        return _masks.Chosen(make)


def first_of_equal(ordered: _core.Expr) -> _core.Expr:
    """Which elements of a sorted row differ from the one before them."""
    return _edges(ordered, at_end=False)


def last_of_equal(ordered: _core.Expr) -> _core.Expr:
    """Which elements of a sorted row differ from the one behind them."""
    return _edges(ordered, at_end=True)


def _edges(ordered: _core.Expr, at_end: bool) -> _core.Expr:
    values = Array(ordered)
    if values.shape[0] == 0:
        return _core.full([0], False, "bool")
    differ = values[1:] != values[:-1]
    edge = Array(_core.full([1], True, "bool"))
    return concat([differ, edge] if at_end else [edge, differ])._expr


def unique_values(x: Operand, /) -> Array:
    """The distinct elements, in order.

    I/O: a sort of all elements, whose result is held in scratch, and one read of it.

    >>> import numpy as np, outcore as oc
    >>> oc.unique_values(np.asarray([3, 1, 3])).compute()
    array([1, 3])
    """
    return _Groups("unique_values", x, with_positions=False).chosen(0)


def unique_counts(x: Operand, /) -> UniqueCounts:
    """The distinct elements, in order, and how often each is there (int64): two rows of one length.

    Raises DTypeError for complex numbers. I/O: as `unique_values`, and one read more.

    >>> import outcore as oc
    >>> oc.unique_counts(oc.asarray([3, 1, 3])).counts.compute()
    array([1, 2])
    """
    groups = _Groups("unique_counts", x, with_positions=False)
    return UniqueCounts(groups.chosen(0), groups.counts())


def unique_inverse(x: Operand, /) -> UniqueInverse:
    """The distinct elements, in order, and for each element of `x` the place of its value among them (int64).

    The places have the shape of `x`. Raises DTypeError for complex numbers. I/O: two sorts with a column of positions
    each.

    >>> import outcore as oc
    >>> oc.unique_inverse(oc.asarray([30, 10, 30])).inverse_indices.compute()
    array([1, 0, 1])
    """
    groups = _Groups("unique_inverse", x, with_positions=True)
    return UniqueInverse(groups.chosen(0), groups.inverse())


def unique_all(x: Operand, /) -> UniqueAll:
    """The distinct elements, in order; where each is first (in C order), the inverse, and the counts.

    Rows of one length, and the inverse with the shape of `x`; all int64 but the elements. Raises DTypeError for complex
    numbers. I/O: two sorts with a column of positions each.

    >>> import outcore as oc
    >>> oc.unique_all(oc.asarray([30, 10, 30])).indices.compute()
    array([1, 0])
    """
    groups = _Groups("unique_all", x, with_positions=True)
    return UniqueAll(groups.chosen(0), groups.chosen(1), groups.inverse(), groups.counts())


def setxor1d(x1: Operand, x2: Operand, /) -> Array:
    """The elements that are in one of two arrays and not in the other, in order, each once. I/O: three sorts.

    >>> import numpy as np, outcore as oc
    >>> oc.setxor1d(np.asarray([1, 2, 2]), np.asarray([2, 3])).compute()
    array([1, 3])
    """
    # What is distinct in each is there once or twice in both together.
    found = unique_counts(concat([unique_values(x1), unique_values(x2)]))

    def make() -> _core.Expr:
        return found.values[found.counts == 1]._expr

    return _masks.Chosen(make)


def unique(x: Operand, /) -> Array:
    """The distinct elements, in order: `unique_values` under NumPy's name. Each NaN is one of its own.

    One axis, type of `x`. Raises DTypeError for complex numbers. I/O: as there.

    >>> import outcore as oc
    >>> oc.unique(oc.asarray([3, 1, 3])).compute()
    array([1, 3])
    """
    return unique_values(x)


__all__ = ["setxor1d", "unique", "unique_all", "unique_counts", "unique_inverse", "unique_values"]
