"""Results of groups that are elements of theirs, or lie between two: first, last, places of extremes, medians."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from outcore._array import Array
from outcore._group_rows import GroupRows
from outcore._node import Operand, node
from outcore._sorted_groups import Fold, upright
from outcore.creation import arange
from outcore.elementwise import clip, isnan
from outcore.indexing import take
from outcore.manipulation import broadcast_to, reshape, stack
from outcore.searching import where
from outcore.statistical import cumulative_sum, sum


class GroupOrder(GroupRows):
    """Further methods of `GroupBy`."""

    _is_numbered: bool

    @abstractmethod
    def count(self) -> Array:
        """How many rows each group has."""

    @abstractmethod
    def _folded(self, fold: Fold, values: Array) -> Array:
        """One row for each group, of float64 or int64 values that face the labels."""

    def _filled(self, found: Array, nothing: float) -> Array:
        """Results with `nothing` where a group has no rows, which only numbered ones can be without."""
        if not self._is_numbered:
            return found
        return where(upright(self.count() == 0, found.ndim), Array(node(found.dtype.type(nothing))), found)

    def first(self, x: Operand) -> Array:
        """The first row of every group, in the type of `x`; of groups without rows NaN, or 0 in integer types.

        I/O: as `groupby` of positions, and a `take` of those rows.

        >>> import numpy as np, outcore as oc
        >>> oc.groupby(np.asarray([3, 1, 3])).first(np.asarray([7, 2, 4])).compute()
        array([2, 7])
        """
        return self._at_end("first", "min", x)

    def last(self, x: Operand) -> Array:
        """The last row of every group; else as `first`. I/O: as there.

        >>> import numpy as np, outcore as oc
        >>> oc.groupby(np.asarray([3, 1, 3])).last(np.asarray([7, 2, 4])).compute()
        array([2, 4])
        """
        return self._at_end("last", "max", x)

    def _at_end(self, name: str, fold: Fold, x: Operand) -> Array:
        values = self._facing(name, x)
        rows = values.shape[0]
        nothing = np.nan if values.dtype.kind == "f" else 0
        places = self._folded(fold, arange(rows))
        if rows == 0:
            empty = Array(node(values.dtype.type(nothing)))
            return self._turned(broadcast_to(empty, (places.shape[0], *values.shape[1:])))
        return self._turned(self._filled(take(values, clip(places, 0, rows - 1), axis=0), nothing))

    def argmin(self, x: Operand) -> Array:
        """The row of `x` in which the smallest value of every group is first, int64; the first NaN where there is one.

        Groups without rows, which only `groups=` can make, have -1. I/O: that of `transform` and that of `groupby`.

        >>> import numpy as np, outcore as oc
        >>> oc.groupby(np.asarray([3, 1, 3])).argmin(np.asarray([7, 2, 4])).compute()
        array([1, 2])
        """
        return self._place("argmin", "min", x)

    def argmax(self, x: Operand) -> Array:
        """The row of `x` in which the largest value of every group is first; else as `argmin`. I/O: as there.

        >>> import numpy as np, outcore as oc
        >>> oc.groupby(np.asarray([3, 1, 3])).argmax(np.asarray([7, 2, 4])).compute()
        array([1, 0])
        """
        return self._place("argmax", "max", x)

    def _place(self, name: str, fold: Fold, x: Operand) -> Array:
        values = self._facing(name, x)
        rows = values.shape[0]
        extreme = values == self._of_own_group(x, fold)
        if values.dtype.kind == "f":
            extreme = extreme | isnan(values)  # where there is one, no value equals the extreme
        places = where(extreme, upright(arange(rows), values.ndim), rows)
        return self._turned(self._filled(self._folded("min", places), -1))

    def median(self, x: Operand) -> Array:
        """The middle value of every group, or the mean of the two in the middle; NaN where there is one, or no row.

        Floating point: integers as float64. I/O: for each column a sort by value and one by label, and a `take` of the
        values in the middle.

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
        # Labels that are left out come before all groups.
        labels = self._codes() if self._is_numbered else self._labels
        begins = cumulative_sum(counts) - counts + (rows - sum(counts))

        def middle(column: Array) -> Array:
            ordered = self._in_order(column, labels)[1]

            def at(place: Array) -> Array:
                return take(ordered, clip(place, 0, rows - 1))

            low, high = at(begins + (counts - 1) // 2), at(begins + counts // 2)
            last = at(begins + counts - 1)  # NaN, where there is one
            return where(isnan(last) | (counts == 0), np.nan, (low + high) / 2)

        flat = reshape(values, (rows, -1))
        found = stack([middle(flat[:, place]) for place in range(flat.shape[1])], axis=1)
        return self._turned(reshape(found, shape))


__all__ = ["GroupOrder"]
