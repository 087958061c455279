"""Results of groups that are elements of theirs, or lie between two: first, last, places of extremes, medians."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from outcore import _core
from outcore._base.types import DType
from outcore._groups.rows import GroupRows, when_needed
from outcore._groups.sorted import Fold, upright
from outcore._lazy.array import Array
from outcore._lazy.node import Operand, node
from outcore._numpy_like.order import middle_of
from outcore._standard.creation import arange
from outcore._standard.indexing import take, take_along_axis
from outcore._standard.manipulation import broadcast_to, reshape
from outcore._standard.searching import where
from outcore._standard.statistical import cumulative_sum, sum
from outcore.elementwise import clip, isnan

# Columns up to so many bytes are held whole by a task.
_COLUMN_BYTES_MAX = 8 << 20


class GroupOrder(GroupRows):
    """Further methods of `GroupBy`."""

    _is_numbered: bool

    @abstractmethod
    def count(self) -> Array:
        """How many rows each group has."""

    @abstractmethod
    def _folded(self, fold: Fold, values: Array, dtype: str | None = None) -> Array:
        """One row for each group, of values that face the labels, in float64 or int64."""

    @abstractmethod
    def _values(self, name: str, x: Operand) -> tuple[Array, DType]:
        """The values with the axis of the labels in front, and their type, where they can be added up."""

    def _filled(self, values: Array, nothing: float) -> Array:
        """Results with `nothing` where a group has no rows, which only numbered ones can be without."""
        if not self._is_numbered:
            return values
        return where(upright(self.count() == 0, values.ndim), Array(node(values.dtype.type(nothing))), values)

    @when_needed
    def first(self, x: Operand, *, skipna: bool = False) -> Array:
        """The first row of every group, in the type of `x`; of groups without rows NaN, or 0 in integer types.

        `skipna` passes NaN over: each column has its own first number. I/O: as `groupby` of positions, and a `take` of
        those rows; with `skipna` as `groupby`, in two reads where the labels are sorted.

        >>> import numpy as np, outcore as oc
        >>> oc.groupby(np.asarray([3, 1, 3])).first(np.asarray([7, 2, 4])).compute()
        array([2, 7])
        """
        return self._at_end("first", "min", x, skipna)

    @when_needed
    def last(self, x: Operand, *, skipna: bool = False) -> Array:
        """The last row of every group; else as `first`. I/O: as there.

        >>> import numpy as np, outcore as oc
        >>> oc.groupby(np.asarray([3, 1, 3])).last(np.asarray([7.0, 2.0, np.nan]), skipna=True).compute()
        array([2., 7.])
        """
        return self._at_end("last", "max", x, skipna)

    def _at_end(self, name: str, fold: Fold, x: Operand, skipna: bool) -> Array:
        values = self._facing(name, x)
        rows = values.shape[0]
        if skipna and values.dtype.kind == "f" and rows:
            return self._turned(self._filled(self._known_ends(name, fold, values), np.nan))
        nothing = np.nan if values.dtype.kind == "f" else 0
        places = self._folded(fold, arange(rows))
        if rows == 0:
            empty = Array(node(values.dtype.type(nothing)))
            return self._turned(broadcast_to(empty, (places.shape[0], *values.shape[1:])))
        return self._turned(self._filled(take(values, clip(places, 0, rows - 1), axis=0), nothing))

    def _known_ends(self, name: str, fold: Fold, values: Array) -> Array:
        """The first or last value of every group that is not NaN, column by column; NaN where there is none."""
        rows = values.shape[0]
        beyond = rows if fold == "min" else -1
        places = self._folded(fold, where(isnan(values), beyond, upright(arange(rows), values.ndim)))
        ends = take_along_axis(values, clip(places, 0, rows - 1), axis=0)
        return where(places == beyond, Array(node(values.dtype.type(np.nan))), ends)

    @when_needed
    def argmin(self, x: Operand) -> Array:
        """The row of `x` in which the smallest value of every group is first, int64; the first NaN where there is one.

        Groups without rows, which only `groups=` can make, have -1. I/O: twice that of `groupby`.

        >>> import numpy as np, outcore as oc
        >>> oc.groupby(np.asarray([3, 1, 3])).argmin(np.asarray([7, 2, 4])).compute()
        array([1, 2])
        """
        return self._place("argmin", "min", x)

    @when_needed
    def argmax(self, x: Operand) -> Array:
        """The row of `x` in which the largest value of every group is first; else as `argmin`. I/O: as there.

        >>> import numpy as np, outcore as oc
        >>> oc.groupby(np.asarray([3, 1, 3])).argmax(np.asarray([7, 2, 4])).compute()
        array([1, 0])
        """
        return self._place("argmax", "max", x)

    def _place(self, name: str, fold: Fold, x: Operand) -> Array:
        values = self._values(name, x)[0]
        return self._turned(self._filled(self._places(fold, values), -1))

    def _places(self, fold: Fold, values: Array) -> Array:
        """For each group the row of its extreme in each column; beyond all rows where it has none."""
        rows = values.shape[0]
        extreme = values == self._spread(self._folded(fold, values))
        if values.dtype.kind == "f":
            extreme = extreme | isnan(values)  # where there is one, no value equals the extreme
        return self._folded("min", where(extreme, upright(arange(rows), values.ndim), rows))

    @when_needed
    def median(self, x: Operand, *, skipna: bool = False) -> Array:
        """The middle value of every group, or the mean of the two in the middle; NaN where there is one, or no row.

        Floating point: integers as float64. I/O: columns of up to 8 MiB are held whole, in bands of as many as fit: one
        read of the labels and one of the values, or one read and write more where their chunks cannot be read in such
        bands. Longer ones are sorted as one row by value, then by label, and the values in the middle are taken.

        >>> import numpy as np, outcore as oc
        >>> oc.groupby(np.asarray([3, 1, 3])).median(np.asarray([7, 2, 4])).compute()
        array([2. , 5.5])
        """
        values = self._facing("median", x)
        values = values if values.dtype.kind == "f" else values.astype(np.float64)
        counts, rows = self.count(), values.shape[0]
        shape = (counts.shape[0], *values.shape[1:])
        if values.size == 0:
            return self._turned(broadcast_to(Array(node(values.dtype.type(np.nan))), shape))
        groups = counts.shape[0]
        if rows * values.dtype.itemsize <= _COLUMN_BYTES_MAX:
            sides = _core.group_middles(values._expr, self._codes()._expr, groups, skipna)
            return self._turned(middle_of(*map(Array, sides)))
        return self._turned(reshape(self._middles_by_sorting(values, counts, skipna), shape))

    def _middles_by_sorting(self, values: Array, counts: Array, skipna: bool) -> Array:
        """Medians of columns too long to be held: all elements sorted by value, then by group and column."""
        # Labels that are left out come before all groups.
        is_row = values.ndim == 1
        labels = self._codes() if self._is_numbered or not is_row else self._labels
        size, columns = values.size, values.size // values.shape[0]
        ordered = self._in_order(*((values, labels) if is_row else self._as_row(values, labels)))[1]
        before = cumulative_sum(counts) - counts + (values.shape[0] - sum(counts))
        counts = upright(counts, 2)
        begins = upright(before, 2) * columns + counts * reshape(arange(columns), (1, columns))
        counts = broadcast_to(counts, begins.shape)
        if skipna:
            counts = reshape(self._folded("sum", ~isnan(values)), begins.shape)
        begins, counts = reshape(begins, (-1,)), reshape(counts, (-1,))

        def at(place: Array) -> Array:
            return take(ordered, clip(place, 0, size - 1))

        low, high = at(begins + (counts - 1) // 2), at(begins + counts // 2)
        last = at(begins + counts - 1)  # NaN, where there is one
        return where(isnan(last) | (counts == 0), np.nan, middle_of(low, high))


__all__ = ["GroupOrder"]
