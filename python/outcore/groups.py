"""Rows taken together by their labels: sums, means, extremes and more of every group (FlashMatrix's `groupby`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from outcore import _core, _masks
from outcore._array import Array
from outcore._group_order import GroupOrder
from outcore._node import Operand, node
from outcore._reduction import sum_dtype
from outcore._run import compute
from outcore._sorted_groups import Fold, Sorted, upright
from outcore._typed import Typed
from outcore.creation import arange
from outcore.elementwise import sqrt
from outcore.errors import ArgumentError, DTypeError, ShapeError
from outcore.indexing import take
from outcore.manipulation import broadcast_to, reshape
from outcore.searching import where
from outcore.sets import unique_inverse
from outcore.statistical import max, min

# A table of more bytes than this is not held: labels are sorted instead. Nothing of the machine may enter here, for the
# order of additions follows from it.
_TABLE_BYTES = 4 << 20
# Integer labels that span so many numbers are counted one by one to find which there are.
_SPAN_MAX = 1 << 19


# What `aggregate` and `transform` know by name.
_RESULTS = (
    *("sum", "prod", "min", "max", "mean", "var", "std", "count"),
    *("median", "first", "last", "argmin", "argmax"),
)


class GroupBy(GroupOrder):
    """Groups of rows by labels; its methods take the values. Made by `groupby`, which says what they cost.

    >>> import numpy as np, outcore as oc
    >>> groups = oc.groupby(np.asarray([3, 1, 3]))
    >>> groups.keys.compute(), groups.sum(np.asarray([1.0, 2.0, 4.0])).compute()
    (array([1, 3]), array([2., 5.]))
    """

    def __init__(self, labels: Array, groups: int | None, axis: int, like: Typed | None = None) -> None:
        self._labels = labels
        self._axis = axis
        self._like = like  # what the labels are keys of, where they are dates or text
        self._is_numbered = groups is not None
        # Rows of a table for the labels from `_least` on; None where there are too many, or labels are no integers.
        self._rows: int | None = groups
        self._least = 0
        self._present: Array | None = None  # those that are labels, where some may be none
        self._is_known = groups is not None
        self._sorted: dict[str, Sorted] = {}

    def _look(self) -> None:
        """Finds whether labels are integers so close together that each can have a row of a table: one read."""
        if self._is_known:
            return
        self._is_known = True
        labels = self._labels
        if labels.dtype.kind not in "biu" or labels.shape[0] == 0:
            return
        labels = labels.astype(np.uint8) if labels.dtype.kind == "b" else labels
        least, most = (int(bound) for bound in compute(min(labels), max(labels)))
        if most - least < _SPAN_MAX:
            self._least, self._rows = least, most - least + 1
            self._present = _masks.positions((self._table("count", None) > 0)._expr)

    @property
    def keys(self) -> Array:
        """The label of each group, ascending; results have their rows in this order. Labels of dates are `Dates`."""
        found: Any = self._numeric_keys()
        return found if self._like is None else self._like._of_keys(found)  # type: ignore[return-value]

    def _numeric_keys(self) -> Array:
        self._look()
        if self._present is not None:
            labels = self._present.astype(np.uint64) + np.uint64(self._least % (1 << 64))  # modulo 2⁶⁴ for both signs
            return labels.astype(self._labels.dtype)
        return arange(self._rows) if self._rows is not None else self._by_sorting(None).keys()

    def _numbers(self) -> Array:
        """The row of each label in a table."""
        labels = self._labels
        if labels.dtype == np.uint64:  # they fit when they are shifted
            return (labels - np.uint64(self._least)).astype(np.int64)
        return labels.astype(np.int64) - self._least if self._least else labels.astype(np.int64)

    def _table(self, fold: str, values: Array | None) -> Array:
        """A row for every number from `_least` on. Values have one axis or two."""
        assert self._rows is not None
        return Array(_core.tally(fold, self._numbers()._expr, None if values is None else values._expr, self._rows))

    def _fits(self, values: Array) -> bool:
        self._look()
        return self._rows is not None and self._rows * math.prod(values.shape[1:]) * 8 <= _TABLE_BYTES

    def _by_sorting(self, values: Array | None) -> Sorted:
        key = "" if values is None else values._expr.digest
        if key not in self._sorted:
            labels = self._labels
            if self._is_numbered and self._rows is not None:  # all others are one label behind them
                numbers = self._numbers()
                labels = where((numbers >= 0) & (numbers < self._rows), numbers, self._rows)
            self._sorted[key] = Sorted(labels, values)
        return self._sorted[key]

    def _folded(self, fold: Fold, values: Array) -> Array:
        """One row for each group, of float64 or int64 values."""
        if self._fits(values):
            return self._of_present(self._wide_table(fold, values))
        return self._placed(self._by_sorting(values).folded(fold), fold)

    def _wide_table(self, fold: Fold, values: Array) -> Array:
        """`_table` of values of any number of axes."""
        if values.ndim <= 2:
            return self._table(fold, values)
        table = self._table(fold, reshape(values, (values.shape[0], math.prod(values.shape[1:]))))
        return reshape(table, (table.shape[0], *values.shape[1:]))

    def _of_present(self, table: Array) -> Array:
        """The rows of a table that belong to labels."""
        return table if self._present is None else take(table, self._present, axis=0)

    def _placed(self, found: Array, fold: Fold) -> Array:
        """Rows of the labels there are; where all are numbered, among rows of those that are none."""
        if not self._is_numbered:
            return found
        is_label = self._table("count", None) > 0
        empty = 1 if fold == "prod" else 0  # extremes of nothing are said in their own type
        filling = Array(node(found.dtype.type(empty)))
        if self._labels.shape[0] == 0:
            return broadcast_to(filling, (is_label.shape[0], *found.shape[1:]))
        places = Array(_core.scan("sum", is_label.astype(np.int64)._expr, 0, None)) - 1
        rows = take(found, where(is_label, places, 0), axis=0)
        return where(upright(is_label, rows.ndim), rows, filling)

    def _values(self, name: str, x: Operand) -> tuple[Array, np.dtype[Any]]:
        values = self._facing(name, x)
        if values.dtype == np.uint64:
            raise DTypeError(f"groupby.{name}: values of {values.dtype} are not supported")
        return values.astype(np.float64 if values.dtype.kind == "f" else np.int64), values.dtype

    def count(self) -> Array:
        """How many rows each group has: (groups,), int64. I/O: one read of the labels, or a sort of them.

        >>> import numpy as np, outcore as oc
        >>> oc.groupby(np.asarray([3, 1, 3])).count().compute()
        array([1, 2])
        """
        self._look()
        if self._rows is None:
            return self._by_sorting(None).counts()
        return self._of_present(self._table("count", None))

    def sum(self, x: Operand) -> Array:
        """The sum of every group: (n, …) → (groups, …), in the types of `oc.sum`. I/O: as `groupby`.

        >>> import numpy as np, outcore as oc
        >>> oc.groupby(np.asarray([3, 1, 3])).sum(np.asarray([1.0, 2.0, 4.0])).compute()
        array([2., 5.])
        """
        values, own = self._values("sum", x)
        return self._turned(self._folded("sum", values).astype(sum_dtype(own)))

    def prod(self, x: Operand) -> Array:
        """The product of every group, in the types of `oc.prod`. I/O: as `groupby`.

        >>> import numpy as np, outcore as oc
        >>> oc.groupby(np.asarray([3, 1, 3])).prod(np.asarray([3, 2, 4])).compute()
        array([ 2, 12])
        """
        values, own = self._values("prod", x)
        return self._turned(self._folded("prod", values).astype(sum_dtype(own)))

    def min(self, x: Operand) -> Array:
        """The smallest value of every group, in the type of `x`; NaN where there is one. I/O: as `groupby`.

        A group without rows, which only `groups=` can make, has NaN, or the largest number of an integer type.

        >>> import numpy as np, outcore as oc
        >>> oc.groupby(np.asarray([3, 1, 3])).min(np.asarray([3, 2, 4])).compute()
        array([2, 3])
        """
        return self._extreme("min", x)

    def max(self, x: Operand) -> Array:
        """The largest value of every group, in the type of `x`; NaN where there is one. I/O: as `groupby`.

        A group without rows, which only `groups=` can make, has NaN, or the smallest number of an integer type.

        >>> import numpy as np, outcore as oc
        >>> oc.groupby(np.asarray([3, 1, 3])).max(np.asarray([3, 2, 4])).compute()
        array([2, 4])
        """
        return self._extreme("max", x)

    def _extreme(self, fold: Fold, x: Operand) -> Array:
        values, own = self._values(fold, x)
        found = self._folded(fold, values)
        if self._is_numbered:
            is_label = upright(self._table("count", None) > 0, found.ndim)
            found = where(is_label, found, Array(node(found.dtype.type(_nothing(fold, own)))))
        return self._turned(found.astype(own))

    def mean(self, x: Operand) -> Array:
        """The mean of every group, floating point; NaN for groups without rows. I/O: as `groupby`.

        >>> import numpy as np, outcore as oc
        >>> oc.groupby(np.asarray([3, 1, 3])).mean(np.asarray([1.0, 2.0, 4.0])).compute()
        array([2. , 2.5])
        """
        values, own = self._values("mean", x)
        found = self._folded("sum", values).astype(np.float64)
        means = found / upright(self.count(), found.ndim)
        return self._turned(means.astype(own if own.kind == "f" else np.float64))

    def var(self, x: Operand, *, ddof: float = 0.0) -> Array:
        """The variance of every group with divisor count − ddof, floating point.

        Distances are taken from the mean of the own group, so nothing cancels. I/O: twice that of `groupby`.

        >>> import numpy as np, outcore as oc
        >>> oc.groupby(np.asarray([3, 1, 3])).var(np.asarray([1.0, 2.0, 4.0])).compute()
        array([0.  , 2.25])
        """
        values, own = self._values("var", x)
        values = values.astype(np.float64)
        counts = upright(self.count(), values.ndim)
        if self._fits(values):
            sums = self._wide_table("sum", values)
            table = sums / upright(self._table("count", None), sums.ndim)
            apart = values - take(table, self._inside(), axis=0)
            squares = self._of_present(self._wide_table("sum", apart * apart))
        else:
            squares = self._placed(self._by_sorting(values).squares(), "sum")
        return self._turned((squares / (counts - ddof)).astype(own if own.kind == "f" else np.float64))

    def _inside(self) -> Array:
        """The row of each label in the table; of labels beyond it, the first: what is there is left out."""
        numbers, last = self._numbers(), (self._rows or 1) - 1
        return where((numbers >= 0) & (numbers <= last), numbers, 0)

    def std(self, x: Operand, *, ddof: float = 0.0) -> Array:
        """The standard deviation of every group: the root of `var`. I/O: as `var`.

        >>> import numpy as np, outcore as oc
        >>> oc.groupby(np.asarray([3, 1, 3])).std(np.asarray([1.0, 2.0, 4.0])).compute()
        array([0. , 1.5])
        """
        return sqrt(self.var(x, ddof=ddof))

    def aggregate(self, x: Operand, functions: Sequence[str]) -> tuple[Array, ...]:
        """Several of this class's results of the same values; computed together they share one read.

        >>> import numpy as np, outcore as oc
        >>> low, high = oc.groupby(np.asarray([3, 1, 3])).aggregate(np.asarray([3, 2, 4]), ["min", "max"])
        >>> high.compute()
        array([2, 4])
        """
        return self._results(x, functions)

    def _results(self, x: Operand, functions: Sequence[str]) -> tuple[Array, ...]:
        for name in functions:
            if name not in _RESULTS:
                raise ArgumentError(f"groupby.aggregate: {name!r} is not one of {', '.join(_RESULTS)}")
        return tuple(self.count() if name == "count" else getattr(self, name)(x) for name in functions)

    def _codes(self) -> Array:
        self._look()
        if self._rows is None or self._labels.shape[0] == 0:
            return unique_inverse(self._labels).inverse_indices
        numbers, is_there = self._numbers(), self._table("count", None) > 0
        if self._is_numbered:
            return where((numbers >= 0) & (numbers < self._rows), numbers, -1)
        places = Array(_core.scan("sum", is_there.astype(np.int64)._expr, 0, None)) - 1
        return take(places, self._inside(), axis=0)


def _nothing(fold: str, dtype: np.dtype[Any]) -> Any:
    """What the extreme of no numbers is said to be."""
    if dtype.kind == "f":
        return np.nan
    if dtype.kind == "b":
        return fold == "min"
    return np.iinfo(dtype).max if fold == "min" else np.iinfo(dtype).min


def groupby(labels: Operand | Typed, /, *, groups: int | None = None, axis: int = 0) -> GroupBy:
    """Rows taken together by their labels, one for each: `groupby(labels).mean(values)` has a row for each distinct
    label.

    Labels are a row of integers or anything that can be sorted; each NaN is a group of its own. Of dates and times NaT
    is one group, the last; text has up to 8 bytes (3 letters of `U`). `groups` says that labels are the numbers
    0 … groups − 1: then every number has a row in the results, and other labels are left out.
    Values are real, with a row for each label; sums of float32 are formed in double precision. With `axis=1` columns
    are grouped, and results have a column for each group; so along any axis.

    I/O: integer labels close together, of which the results take 4 MiB at most, go by one read of labels and values
    (and one of the labels to find which there are, unless `groups` says so); five times the results must fit the
    memory. All others are sorted with their values, in two reads and writes, and read once more; any number of groups
    will do. Results have the same bits at every memory limit.

    >>> import numpy as np, outcore as oc
    >>> by_month = oc.groupby(np.asarray([2, 1, 2, 3]))
    >>> by_month.keys.compute(), by_month.mean(np.asarray([1.0, 5.0, 3.0, 8.0])).compute()
    (array([1, 2, 3]), array([5., 2., 8.]))
    """
    like = labels if isinstance(labels, Typed) else None
    row = Array(node(labels if like is None else like._keys()))
    if row.ndim != 1:
        raise ShapeError(f"groupby: labels of shape {row.shape} are not one row")
    if row.dtype.kind == "c":
        raise DTypeError(f"groupby: labels of {row.dtype} have no order")
    if groups is not None and (groups < 0 or like is not None or row.dtype.kind not in "biu"):
        kind = row.dtype if like is None else like.dtype
        raise ArgumentError(f"groupby: groups={groups} for labels of {kind}; it numbers integer labels from 0 on")
    if axis < 0:
        raise ArgumentError(f"groupby: axis={axis} is counted from the front, for values of any number of axes")
    return GroupBy(row, groups, axis, like)


__all__ = ["GroupBy", "groupby"]
