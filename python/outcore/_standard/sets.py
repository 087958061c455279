"""Set functions of the array API standard, by sorting; of numbers, dates and text.

Elements that compare unequal are distinct: each NaN is one of its own unless a function says otherwise, and -0 is +0.
Results are lazy; how many values there are is found with the sort itself, once, when something needs to know.
"""

from __future__ import annotations

import math
import operator
from functools import reduce
from typing import Any, Literal, NamedTuple, overload

import numpy as np

from outcore import _core
from outcore._base.shortened import record_text
from outcore._lazy.array import Array, Categories
from outcore._lazy.node import ArrayLike, Operand, node
from outcore._lazy.typed import Typed, typed_of
from outcore._run import masks
from outcore._run.foresight import is_foreseeing
from outcore._standard.elements import elements, in_order
from outcore._standard.manipulation import concat, reshape
from outcore._standard.searching import common, searchsorted
from outcore._standard.sorting import sort, sort_by

_FEW = 16  # test elements that comparisons one by one take less than searches for


class UniqueAll(NamedTuple):
    """The result of `unique_all`."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array

    def __repr__(self) -> str:
        return record_text(self, self._fields)


class UniqueCounts(NamedTuple):
    """The result of `unique_counts`."""

    values: Array
    counts: Array

    def __repr__(self) -> str:
        return record_text(self, self._fields)


class UniqueInverse(NamedTuple):
    """The result of `unique_inverse`."""

    values: Array
    inverse_indices: Array

    def __repr__(self) -> str:
        return record_text(self, self._fields)


class _Groups:
    """Sorted elements, with the first of equal ones marked; sorted when something needs it, once."""

    def __init__(self, x: Operand | Typed, with_positions: bool, equal_nan: bool = False) -> None:
        self._of = elements(x)
        self._with_positions = with_positions
        self._equal_nan = equal_nan
        self._held: list[_core.Expr] | None = None

    def _sorted(self) -> list[_core.Expr]:
        if self._held is not None:
            return self._held
        length = self._of.columns[0].shape[0]
        positions = [Array(_core.arange(0, 1, length, "int64"))] if self._with_positions else []
        columns = [array._expr for array in in_order(self._of, *positions)]
        held = masks.hold_counted(columns, self._first_of)
        self._held = None if is_foreseeing() else held
        return held

    def _first_of(self, ordered: list[_core.Expr]) -> _core.Expr:
        columns = [Array(column) for column in ordered[: len(self._of.columns)]]
        if columns[0].shape[0] == 0:
            return _core.full([0], False, "bool")
        before = [column[:-1] for column in columns]
        differ = self._of.differ(before, [column[1:] for column in columns])
        missing = self._of.missing(before) if self._equal_nan else None
        if missing is not None:  # they are last: what is behind one is one too
            differ = differ & ~missing
        return concat([Array(_core.full([1], True, "bool")), differ])._expr

    def first(self) -> _core.Expr:
        return self._first_of(self._sorted())

    def values(self) -> Any:
        def make() -> list[Array]:
            held, first = self._sorted(), self.first()
            return [masks.choose(column, first) for column in held[: len(self._of.columns)]]

        return self._of.made(make)

    def indices(self) -> Array:
        return masks.Chosen(lambda: masks.choose(self._sorted()[-1], self.first())._expr)

    def counts(self) -> Array:
        def make() -> _core.Expr:
            first = self.first()
            begins = masks.positions(first)
            end = Array(_core.full([1], first.shape[0], "int64"))
            return (concat([begins[1:], end]) - begins)._expr

        return masks.Chosen(make)

    def inverse(self) -> Array:
        def make() -> _core.Expr:
            number = Array(_core.scan("sum", _core.astype(self.first(), "int64"), 0, None)) - 1
            back = sort_by(Array(self._sorted()[-1]), number)[1]
            return reshape(back, self._of.shape)._expr

        return masks.Chosen(make)


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


def unique_values(x: Operand | Typed, /) -> Array:
    """The distinct elements, in order: complex numbers by their real, then their imaginary part.

    Dates and text are taken too, here and in the functions beside this one, and come back as such. NaN, and NaT, come
    last, each one of its own; `unique` has them once.
    I/O: a sort of all elements, whose result is held in scratch, and one read of it; text of more than 8 bytes or 3
    letters is sorted once more for each number of 64 bits that it takes, complex numbers three times.

    >>> import numpy as np, outcore as oc
    >>> oc.unique_values(np.asarray([3, 1, 3])).compute()
    array([1, 3])
    """
    distinct: Array = _Groups(x, with_positions=False).values()
    return distinct


def unique_counts(x: Operand | Typed, /) -> UniqueCounts:
    """The distinct elements, in order, and how often each is there (int64): two rows of one length.

    I/O: as `unique_values`, and one read more.

    >>> import outcore as oc
    >>> oc.unique_counts(oc.asarray([3, 1, 3])).counts.compute()
    array([1, 2])
    """
    groups = _Groups(x, with_positions=False)
    return UniqueCounts(groups.values(), groups.counts())


def unique_inverse(x: Operand | Typed, /) -> UniqueInverse:
    """The distinct elements, in order, and for each element of `x` the place of its value among them (int64).

    The places have the shape of `x`. I/O: two sorts with a column of positions each; more of complex numbers and of
    text, as in `unique_values`.

    >>> import outcore as oc
    >>> oc.unique_inverse(oc.asarray([30, 10, 30])).inverse_indices.compute()
    array([1, 0, 1])
    """
    groups = _Groups(x, with_positions=True)
    return UniqueInverse(groups.values(), groups.inverse())


def unique_all(x: Operand | Typed, /) -> UniqueAll:
    """The distinct elements, in order; where each is first (in C order), the inverse, and the counts.

    Rows of one length, and the inverse with the shape of `x`; all int64 but the elements. I/O: as `unique_inverse`.

    >>> import outcore as oc
    >>> oc.unique_all(oc.asarray([30, 10, 30])).indices.compute()
    array([1, 0])
    """
    groups = _Groups(x, with_positions=True)
    return UniqueAll(groups.values(), groups.indices(), groups.inverse(), groups.counts())


def categories(x: Operand | Typed, /) -> Categories:
    """Elements as codes: for each its place among the distinct elements (int64, the shape of `x`), and these in order.

    Of numbers, dates and text. The groups of `groupby(codes)` are the categories, in their order. NaN, and NaT, is one
    category, the last. I/O: as `unique_inverse`.

    >>> import numpy as np, outcore as oc
    >>> codes, cities = oc.categories(np.asarray(["Rome", "Oslo", "Rome"]))
    >>> cities.tolist(), oc.groupby(codes).mean(np.asarray([20.0, 5.0, 30.0])).tolist()
    (['Oslo', 'Rome'], [5.0, 25.0])
    """
    groups = _Groups(x, with_positions=True, equal_nan=True)
    return Categories(groups.inverse(), groups.values())


def setxor1d(x1: Operand, x2: Operand, /) -> Array:
    """The elements that are in one of two arrays and not in the other, in order, each once, NaN of each. I/O: 3 sorts.

    >>> import numpy as np, outcore as oc
    >>> oc.setxor1d(np.asarray([1, 2, 2]), np.asarray([2, 3])).compute()
    array([1, 3])
    """

    def make() -> _core.Expr:
        # A distinct element of either is there once or twice in both together.
        counted = unique_counts(concat([unique(x1), unique(x2)]))
        return counted.values[counted.counts == 1]._expr

    return masks.Chosen(make)


@overload
def unique(
    x: Operand,
    /,
    return_index: Literal[False] = False,
    return_inverse: Literal[False] = False,
    return_counts: Literal[False] = False,
    *,
    equal_nan: bool = True,
) -> Array: ...
@overload
def unique(
    x: Operand | Typed,
    /,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    *,
    equal_nan: bool = True,
) -> Any: ...
def unique(
    x: Operand | Typed,
    /,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    *,
    equal_nan: bool = True,
) -> Any:
    """The distinct elements, in order, NaN and NaT once unless `equal_nan=False`: NumPy's function of this name.

    One axis, type of `x`. With a flag a tuple: behind the elements, where each is first (in C order), the inverse and
    the counts, as far as asked for and in this order. I/O: as `unique_values`, and as `unique_all` with positions.

    >>> import numpy as np, outcore as oc
    >>> oc.unique(np.asarray([3.0, np.nan, 1.0, np.nan])).compute()
    array([ 1.,  3., nan])
    >>> [part.tolist() for part in oc.unique(oc.asarray([3, 1, 3]), return_counts=True)]
    [[1, 3], [1, 2]]
    """
    groups = _Groups(x, return_index or return_inverse, equal_nan)
    asked = ((return_index, groups.indices), (return_inverse, groups.inverse), (return_counts, groups.counts))
    parts = (groups.values(), *(make() for is_asked, make in asked if is_asked))
    return parts if len(parts) > 1 else parts[0]


def isin(x: Operand | Typed, test_elements: ArrayLike | Typed, /, *, invert: bool = False) -> Array:
    """Whether each element of `x` is among the test elements, also of dates and text. NaN, and NaT, is in nothing.

    I/O: one read for up to 16 numbers in memory. Of others, or lazy ones, a sort, and two searches in them: see
    `searchsorted`. Complex numbers are sorted with them.

    >>> import numpy as np, outcore as oc
    >>> oc.isin(np.asarray([1, 2, 3]), np.asarray([3, 1])).compute()
    array([ True, False,  True])
    """
    typed = typed_of(x)
    if typed is not None:
        chosen = typed.isin(test_elements)
        return ~chosen if invert else chosen
    numbers = [Array(node(part)) for part in (x, test_elements)]
    if any(part.dtype.kind == "c" for part in numbers):
        flags = _in_complex(*numbers)
        return ~flags if invert else flags
    if {part.dtype.kind for part in numbers} == {"i", "u"} and any(part.dtype == np.uint64 for part in numbers):
        flags = _in_other_signs(*numbers)
        return ~flags if invert else flags
    array, tests = common("isin", *numbers)
    if not isinstance(test_elements, Array) and 0 < math.prod(tests.shape) <= _FEW:
        values = np.asarray(test_elements).astype(tests.dtype).ravel()
        hits: Array = reduce(operator.or_, [array == value for value in values])
        return ~hits if invert else hits
    row = sort(reshape(tests, (math.prod(tests.shape),)))
    flags = searchsorted(row, array, side="right") > searchsorted(row, array, side="left")
    if array.dtype.kind == "f":
        flags = flags & (array == array)
    return ~flags if invert else flags


def _in_other_signs(array: Array, tests: Array) -> Array:
    """Membership of signed integers among those of uint64, or the reverse: of such as both types hold."""
    if array.dtype.kind == "i":
        return isin(array.astype(np.uint64), tests.astype(np.uint64)) & (array >= 0)
    return isin(array.astype(np.int64), tests.astype(np.int64)) & (array <= np.iinfo(np.int64).max)


def _in_complex(array: Array, tests: Array) -> Array:
    """Membership of complex numbers, by sorting both together."""
    row, others = (reshape(part, (math.prod(part.shape),)) for part in (array, tests))
    codes = categories(concat([row, others])).codes
    length = row.shape[0]
    return reshape(isin(codes[:length], codes[length:]), array.shape) & (array == array)


__all__ = [
    "Categories",
    "categories",
    "setxor1d",
    "unique",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "isin",
]
