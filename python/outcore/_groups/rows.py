"""Results of groups for each row, in the order of the rows: running folds, ranks, and the result of its group."""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from functools import wraps
from typing import Literal, Self, TypeVar, cast, get_args

import numpy as np

from outcore import _core
from outcore._base.shortened import short_text
from outcore._groups.sorted import Sorted, codes_of, rows_in_order, upright
from outcore._lazy.array import Array
from outcore._lazy.calling import called
from outcore._lazy.carded import Carded, NamedFact
from outcore._lazy.node import Operand, axis_of, node
from outcore._lazy.reduction import sum_dtype
from outcore._run.masks import Chosen
from outcore._standard.creation import arange, zeros
from outcore._standard.indexing import take
from outcore._standard.manipulation import broadcast_to, concat, flip, moveaxis, reshape
from outcore._standard.searching import where
from outcore._standard.sets import first_of_equal
from outcore._standard.sorting import sort_by
from outcore.elementwise import isnan
from outcore.errors import ArgumentError, DTypeError, ShapeError

RankMethod = Literal["average", "min", "max", "dense", "first"]


GroupMethod = TypeVar("GroupMethod", bound="Callable[..., Array]")


def when_needed(method: GroupMethod) -> GroupMethod:
    """Results that are made when something needs them, where labels are looked at first; values are checked at once."""
    return _made_later(method, lambda groups: groups._knows_rows(), for_rows=False)


def when_labelled(method: GroupMethod) -> GroupMethod:
    """Results that are made when something needs them, where the labels themselves are found by a run."""
    return _made_later(method, lambda groups: type(groups._labels) is Array, for_rows=True)


def _made_later(method: GroupMethod, is_known: Callable[[GroupRows], bool], *, for_rows: bool) -> GroupMethod:
    def made(groups: GroupRows, x: Operand, *, axis: int | str | None = None, **options: object) -> Array:
        groups = groups._along(method.__name__, x, axis)
        groups._check(method.__name__, x)
        if is_known(groups):
            return groups._annotated(x, method(groups, x, **options), for_rows)
        return Chosen(
            lambda: groups._annotated(x, method(groups, x, **options), for_rows)._expr, called(sys._getframe())
        )

    made.__code__ = made.__code__.replace(co_name=method.__name__)  # by which a refusal names it
    return cast(GroupMethod, wraps(method)(made))


class GroupRows(Carded, ABC):
    """The methods of `GroupBy` whose results have a row for each label, in their order.

    Rows are sorted by label, which keeps their order within a group; scans that begin anew with each group go along
    them (Blelloch 1990, segmented scans), and the results are sorted back by position.
    """

    _labels: Array
    _length: int  # of the labels
    _axis: int
    _dim: str | None  # the name of the labels' axis, where groups go along the axis of that name
    _sorted: dict[str, Sorted]

    def __repr__(self) -> str:
        along = f" along {short_text(self._dim, 40)!r}" if self._dim else ""
        return f"outcore.GroupBy of {self._length:,} labels{along}"

    def _card_facts(self) -> list[NamedFact]:
        along = repr(self._dim) if self._dim else f"axis {self._axis}"
        kind = str(self._labels.dtype) if type(self._labels) is Array else "not looked at yet"
        return [("labels", f"{self._length:,}, {kind}"), ("of values along", along)]

    @abstractmethod
    def _codes(self) -> Array:
        """The row of each label in the results; -1 for labels that are left out."""

    @abstractmethod
    def _results(self, x: Operand, functions: Sequence[str]) -> tuple[Array, ...]:
        """Results of groups, by names of methods."""

    @abstractmethod
    def _knows_rows(self) -> bool:
        """Whether the results' rows are known without a run."""

    def _check(self, name: str, x: Operand) -> None:
        """Refuses values that the method of that name does not take."""
        self._facing(name, x)

    @abstractmethod
    def _check_result(self, name: str, x: Operand) -> None:
        """Refuses a name that is none of a result, and values that it is not made of."""

    def _along(self, name: str, x: Operand, axis: int | str | None) -> Self:
        """The groups along an axis of these values: the one that is named, or has the name of the labels' axis."""
        values = Array(node(x))
        dims = values.dims
        if axis is None:
            place = dims.index(self._dim) if self._dim is not None and self._dim in dims else self._axis
        else:
            place = axis_of(f"groupby.{name}", axis, values)
        if place == self._axis:
            return self
        turned = copy(self)
        turned._axis, turned._sorted = place, {}
        return turned

    def _annotated(self, x: Operand, result: Array, for_rows: bool) -> Array:
        """A result with the values' names of axes and attributes; the axis of groups has none."""
        values = Array(node(x))
        if result.ndim != values.ndim or not (any(values.dims) or values.attrs):
            return result
        dims = list(values.dims)
        if not for_rows:
            dims[self._axis] = None
        return result.annotate(dims=dims, attrs=values.attrs, name=values.name)

    def _facing(self, name: str, x: Operand) -> Array:
        """The values with the axis of the labels in front."""
        values = Array(node(x))
        if values.ndim <= self._axis or values.shape[self._axis] != self._length:
            places = "row" if self._axis == 0 else f"place along axis {self._axis}"
            raise ShapeError(f"groupby.{name}: {values.shape} has no {places} for each of {self._length} labels")
        if values.dtype.kind == "c":
            raise DTypeError(f"groupby.{name}: values of {values.dtype} are not supported")
        return moveaxis(values, self._axis, 0) if self._axis else values

    def _turned(self, values: Array) -> Array:
        """Results with the axis of the groups, or rows, back in its place."""
        return moveaxis(values, 0, self._axis) if self._axis else values

    def _scanned(self, fold: str, values: Array) -> Array:
        """A running fold within the groups, of each column of the values."""
        if values.size == 0:
            return values
        rows = arange(values.shape[0])
        if values.ndim == 1:
            labels, positions, ordered = sort_by(self._labels, rows, values)
        else:
            labels, positions = sort_by(self._labels, rows)
            ordered = rows_in_order(self._labels, positions, values)
        scanned = Array(_core.scan(fold, ordered._expr, 0, first_of_equal(labels._expr)))
        if values.ndim == 1:
            return sort_by(positions, scanned)[1]
        return rows_in_order(positions, sort_by(positions, rows)[1], scanned)

    @when_labelled
    def cumsum(self, x: Operand) -> Array:
        """Running sums within each group: the shape of `x`, in the types of `oc.sum`.

        I/O: two sorts, of the labels with the values and of the results by position; one scan between. Rows that are
        held in bands of columns take one read and one write instead of each sort.

        >>> import numpy as np, outcore as oc
        >>> oc.groupby(np.asarray([3, 1, 3])).cumsum(np.asarray([1.0, 2.0, 4.0])).compute()
        array([1., 2., 5.])
        """
        values = self._facing("cumsum", x)
        return self._turned(self._scanned("sum", values.astype(sum_dtype(values.dtype))))

    @when_labelled
    def cumprod(self, x: Operand) -> Array:
        """Running products within each group, in the types of `oc.prod`. I/O: as `cumsum`.

        >>> import numpy as np, outcore as oc
        >>> oc.groupby(np.asarray([3, 1, 3])).cumprod(np.asarray([3, 2, 4])).compute()
        array([ 3,  2, 12])
        """
        values = self._facing("cumprod", x)
        return self._turned(self._scanned("prod", values.astype(sum_dtype(values.dtype))))

    @when_labelled
    def cummin(self, x: Operand) -> Array:
        """The smallest value so far within each group, in the type of `x`; NaN from the first NaN on. I/O: as `cumsum`.

        >>> import numpy as np, outcore as oc
        >>> oc.groupby(np.asarray([3, 1, 3])).cummin(np.asarray([3, 2, 4])).compute()
        array([3, 2, 3])
        """
        return self._turned(self._scanned("min", self._facing("cummin", x)))

    @when_labelled
    def cummax(self, x: Operand) -> Array:
        """The largest value so far within each group, in the type of `x`; NaN from the first NaN on. I/O: as `cumsum`.

        >>> import numpy as np, outcore as oc
        >>> oc.groupby(np.asarray([3, 1, 3])).cummax(np.asarray([3, 2, 4])).compute()
        array([3, 2, 4])
        """
        return self._turned(self._scanned("max", self._facing("cummax", x)))

    def cumcount(self) -> Array:
        """How many rows of the own group come before each row: (n,), int64. I/O: as `cumsum` of one column.

        >>> import numpy as np, outcore as oc
        >>> oc.groupby(np.asarray([3, 1, 3])).cumcount().compute()
        array([0, 0, 1])
        """

        def make() -> Array:
            return self._scanned("sum", zeros((self._length,), dtype=np.int64) + 1) - 1

        return make() if type(self._labels) is Array else Chosen(lambda: make()._expr, "cumcount")

    @when_labelled
    def rank(self, x: Operand, *, method: RankMethod = "average") -> Array:
        """The place of each value among those of its group in order, from 1 on: float64, the shape of `x`.

        Equal values share the mean of their places, or by `method` the least or the greatest ("min", "max"), or count
        as one ("dense"), or keep their order ("first"): pandas' ranks. NaN has rank NaN. Raises ArgumentError for
        another method. I/O: three sorts of all elements: by value, by group, and back by position.

        >>> import numpy as np, outcore as oc
        >>> oc.groupby(np.asarray([3, 1, 3, 3])).rank(np.asarray([5, 2, 4, 5])).compute()
        array([2.5, 1. , 1. , 2.5])
        """
        if method not in get_args(RankMethod):
            raise ArgumentError(f"groupby.rank: method={method!r} is none of {', '.join(get_args(RankMethod))}")
        values = self._facing("rank", x)
        ranks = self._ranked(values, method).astype(np.float64)
        return self._turned(where(isnan(values), np.nan, ranks) if values.dtype.kind == "f" else ranks)

    def _ranked(self, columns: Array, method: RankMethod) -> Array:
        if columns.size == 0:
            return columns
        is_row = columns.ndim == 1
        row = (columns, self._labels) if is_row else self._as_row(columns, codes_of(self._labels))
        labels, values, positions = self._in_order(*row)
        begins = first_of_equal(labels._expr)
        is_new = Array(begins) | Array(first_of_equal(values._expr))
        ones = zeros(labels.shape, dtype=np.int64) + 1

        def along(fold: str, numbers: Array, starts: _core.Expr) -> Array:
            return Array(_core.scan(fold, numbers._expr, 0, starts))

        place = along("sum", ones, begins)
        if method == "dense":
            ranks = along("sum", is_new.astype(np.int64), begins)
        elif method == "first":
            ranks = place
        else:
            # Among equal values the first place is their least, and the last one their greatest.
            least = along("max", where(is_new, place, 0), begins)
            if method == "min":
                ranks = least
            else:
                last = concat([is_new[1:], Array(_core.full([1], True, "bool"))])
                greatest = flip(along("max", flip(where(last, place, 0)), flip(last)._expr))
                ranks = greatest if method == "max" else (least + greatest) / 2
        return reshape(sort_by(positions, ranks)[1], columns.shape)

    def _as_row(self, values: Array, codes: Array) -> tuple[Array, Array]:
        """All elements in one row, and for each a number that is that of its group and its column."""
        columns = math.prod(values.shape[1:])
        places = upright(codes, 2) * columns + reshape(arange(columns), (1, columns))
        return reshape(values, (values.size,)), reshape(places, (values.size,))

    def _in_order(self, column: Array, labels: Array) -> tuple[Array, Array, Array]:
        """Labels, values and positions, in order of labels, and of values within each."""
        values, labels, positions = sort_by(column, labels, arange(column.shape[0]))
        ordered = sort_by(labels, values, positions)
        return ordered[0], ordered[1], ordered[2]

    def transform(self, x: Operand, function: str) -> Array:
        """The result of its group for each row: any of the results that `aggregate` knows, taken by label.

        The shape of `x`; rows with labels that are left out have NaN, or 0 in integer types. Distances from the group's
        mean are x − transform(x, "mean"). I/O: as the result itself, and a `take` by label; two sorts more where labels
        are sorted.

        >>> import numpy as np, outcore as oc
        >>> oc.groupby(np.asarray([3, 1, 3])).transform(np.asarray([1.0, 2.0, 4.0]), "sum").compute()
        array([5., 2., 5.])
        """
        self._facing("transform", x)
        self._check_result(function, x)
        if self._knows_rows():
            return self._turned(self._of_own_group(x, function))
        return Chosen(lambda: self._turned(self._of_own_group(x, function))._expr, called(sys._getframe()))

    def _of_own_group(self, x: Operand, function: str) -> Array:
        (result,) = self._results(x, [function])
        return self._spread(moveaxis(result, self._axis, 0) if function != "count" and self._axis else result)

    def _spread(self, results: Array) -> Array:
        """For each label the row of its group."""
        codes = self._codes()
        nothing = Array(node(results.dtype.type(np.nan if results.dtype.kind == "f" else 0)))
        if results.shape[0] == 0:
            return broadcast_to(nothing, (codes.shape[0], *results.shape[1:]))
        taken = take(results, where(codes < 0, 0, codes), axis=0)
        return where(upright(codes < 0, taken.ndim), nothing, taken)


__all__ = ["GroupRows", "RankMethod", "when_needed"]
