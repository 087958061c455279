"""Rows taken together by their labels: sums, means, extremes and more of every group (FlashMatrix's `groupby`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, overload

import numpy as np

from outcore import _core
from outcore._base.types import DType, NDArray, Scalar
from outcore._groups.order import GroupOrder
from outcore._groups.rows import when_needed
from outcore._groups.sorted import Fold, Order, Sorted, upright
from outcore._lazy.array import Array
from outcore._lazy.node import Operand, node
from outcore._lazy.reduction import sum_dtype
from outcore._lazy.typed import Typed, typed_of
from outcore._run import masks
from outcore._run.foresight import is_foreseeing
from outcore._run.run import compute
from outcore._standard.creation import arange, asarray
from outcore._standard.indexing import take
from outcore._standard.manipulation import broadcast_to
from outcore._standard.searching import where
from outcore._standard.sets import unique_inverse
from outcore._standard.statistical import max, min
from outcore.elementwise import isnan, sqrt
from outcore.errors import ArgumentError, DTypeError, ShapeError

# A table of more bytes than this is not held: labels are sorted instead. Nothing of the machine may enter here, for the
# order of additions follows from it.
_TABLE_BYTES = 4 << 20
# Of rows so long the table may have more: it is cut into bands of columns.
_WIDE_BYTES, _WIDE_TABLE_BYTES = 32 << 10, 32 << 20
# Integer labels that span so many numbers are counted one by one to find which there are.
_SPAN_MAX = 1 << 19
# NumPy's labels up to so many are looked at where they are.
_FEW_LABELS = 1 << 20


# Methods that can pass NaN over, and all that `aggregate` and `transform` know by name.
_SKIPPING = ("sum", "prod", "min", "max", "mean", "var", "std", "median", "first", "last")
_RESULTS = (*_SKIPPING, "count", "argmin", "argmax")
# Methods of values that are added up or compared in wider types.
_ADDED_UP = ("sum", "prod", "min", "max", "mean", "var", "std", "argmin", "argmax")


def plain_result(asker: str, name: str) -> str:
    """The name of a result, without the prefix of those that pass NaN over. Raises ArgumentError for no such name."""
    plain = name.removeprefix("nan") if name.removeprefix("nan") in _SKIPPING else name
    if plain not in _RESULTS:
        names = [*_RESULTS, *(f"nan{name}" for name in _SKIPPING)]
        raise ArgumentError(f"{asker}: {name!r} is not one of {', '.join(names)}")
    return plain


class GroupBy(GroupOrder):
    """Groups of rows by labels; its methods take the values. Made by `groupby`, which says what they cost.

    >>> import numpy as np, outcore as oc
    >>> groups = oc.groupby(np.asarray([3, 1, 3]))
    >>> groups.keys.compute(), groups.sum(np.asarray([1.0, 2.0, 4.0])).compute()
    (array([1, 3]), array([2., 5.]))
    """

    def __init__(
        self,
        labels: Array,
        groups: int | None,
        axis: int,
        like: Typed | _Numbered | None = None,
        few: NDArray | None = None,
        keys: _Keys | None = None,
        dim: str | None = None,
    ) -> None:
        self._labels = labels
        self._length = labels.shape[0] if keys is None else keys.length
        self._axis = axis
        self._dim = dim
        self._like = like  # what the labels are keys of, where they are dates or text
        self._is_numbered = groups is not None
        # Rows of a table for the labels from `_least` on; None where there are too many, or labels are no integers.
        self._rows: int | None = groups
        self._least = 0
        self._present: Array | None = None  # those that are labels, where some may be none
        self._is_whole = False  # whether all are, of labels that are not numbered by the caller
        self._is_known = groups is not None
        self._order: Order | None = None
        self._sorted: dict[str, Sorted] = {}
        self._few = few
        self._of_several = keys  # what the labels stand for, where they are pairs of keys

    def _knows_rows(self) -> bool:
        if self._few is not None:
            self._look()
        return self._is_known and self._rows is not None

    def __getattr__(self, name: str) -> NoReturn:
        plain = name.removeprefix("nan")
        hint = f"; use {plain}(x, skipna=True)" if plain != name and plain in _SKIPPING else ""
        raise AttributeError(f"groupby has no attribute {name!r}{hint}")

    def _check(self, name: str, x: Operand) -> None:
        if name in _ADDED_UP:
            self._values(name, x)
        else:
            self._facing(name, x)

    def _look(self) -> None:
        """Finds whether labels are integers so close together that each can have a row of a table: two reads."""
        if self._is_known or (self._few is None and is_foreseeing()):
            return
        if self._few is not None:
            self._look_at_few(self._few)
        elif self._labels.dtype.kind in "biu" and self._labels.shape[0]:
            self._look_at_bounds(self._labels)
        self._is_known = True

    def _look_at_bounds(self, labels: Array) -> None:
        """The same of labels that are read for it."""
        labels = labels.astype(np.uint8) if labels.dtype.kind == "b" else labels
        least, most = (int(bound) for bound in compute(min(labels), max(labels)))
        if most - least < _SPAN_MAX:
            self._least, self._rows = least, most - least + 1
            self._present = masks.positions((self._table("count", None) > 0)._expr)

    def _look_at_few(self, labels: NDArray) -> None:
        """The same of labels in memory, at once."""
        if labels.dtype.kind not in "biu" or labels.size == 0:
            return
        least, most = int(labels.min()), int(labels.max())
        if most - least < _SPAN_MAX:
            self._least, self._rows = least, most - least + 1
            present = np.zeros(self._rows, dtype=bool)
            present[(labels.astype(np.uint64) - np.uint64(least % (1 << 64))).astype(np.int64)] = True
            self._present = None if present.all() else asarray(np.flatnonzero(present))
            self._is_whole = self._present is None

    @property
    def keys(self) -> Array:
        """The label of each group, ascending; results have their rows in this order. Labels of dates are `Dates`.

        Of several keys a tuple of their parts.
        """
        known = self._knows_rows()
        labels = self._numeric_keys() if known else masks.Chosen(lambda: self._numeric_keys()._expr, "keys")
        if self._of_several is not None:
            return self._of_several.of(labels)  # type: ignore[return-value]
        return labels if self._like is None else self._like._of_keys(labels)  # type: ignore[return-value]

    def _numeric_keys(self) -> Array:
        self._look()
        if self._present is not None or self._is_whole:
            places = arange(self._rows or 0) if self._present is None else self._present
            labels = places.astype(np.uint64) + np.uint64(self._least % (1 << 64))  # modulo 2⁶⁴ for both signs
            return labels.astype(self._labels.dtype)
        return arange(self._rows) if self._rows is not None else self._by_sorting(None).keys()

    def _numbers(self) -> Array:
        """The row of each label in a table."""
        labels = self._labels
        if labels.dtype == np.uint64:  # they fit when they are shifted
            return (labels - np.uint64(self._least)).astype(np.int64)
        return labels.astype(np.int64) - self._least if self._least else labels.astype(np.int64)

    def _table(self, fold: str, values: Array | None, dtype: str = "int64", centers: Array | None = None) -> Array:
        """A row for every number from `_least` on; with centers a sum of squared distances from them, or the least row
        in which values equal them."""
        assert self._rows is not None
        beside, middle = (None if array is None else array._expr for array in (values, centers))
        return Array(_core.tally(fold, self._numbers()._expr, beside, middle, self._rows, dtype))

    def _fits(self, values: Array) -> bool:
        self._look()
        if self._rows is None:
            return False
        row = math.prod(values.shape[1:]) * 8
        if self._rows * row <= _TABLE_BYTES:
            return True
        least = _core.least_table_bytes(values._expr, self._rows)
        return least <= (_WIDE_TABLE_BYTES if row >= _WIDE_BYTES else _TABLE_BYTES)

    def _by_sorting(self, values: Array | None, dtype: str = "int64") -> Sorted:
        if self._order is None:
            labels = self._labels
            if self._is_numbered and self._rows is not None:  # all others are one label behind them
                numbers = self._numbers()
                labels = where((numbers >= 0) & (numbers < self._rows), numbers, self._rows)
            self._order = Order(labels)
        key = "" if values is None else f"{values._expr.digest} {dtype}"
        if key not in self._sorted:
            self._sorted[key] = Sorted(self._order, values, dtype)
        return self._sorted[key]

    def _folded(self, fold: Fold, values: Array, dtype: str | None = None) -> Array:
        """One row for each group, in float64 or int64: by default as the values are."""
        dtype = dtype or _wide(values.dtype)
        if self._fits(values):
            return self._of_present(self._table(fold, values, dtype))
        return self._placed(self._by_sorting(values, dtype).folded(fold), fold)

    def _of_present(self, table: Array) -> Array:
        """The rows of a table that belong to labels."""
        return table if self._present is None else take(table, self._present, axis=0)

    def _placed(self, folded: Array, fold: Fold) -> Array:
        """Rows of the labels there are; where all are numbered, among rows of those that are none."""
        if not self._is_numbered:
            return folded
        is_label = self._table("count", None) > 0
        empty = 1 if fold == "prod" else 0  # extremes of nothing are said in their own type
        filling = Array(node(folded.dtype.type(empty)))
        if self._labels.shape[0] == 0:
            return broadcast_to(filling, (is_label.shape[0], *folded.shape[1:]))
        places = Array(_core.scan("sum", is_label.astype(np.int64)._expr, 0, None)) - 1
        rows = take(folded, where(is_label, places, 0), axis=0)
        return where(upright(is_label, rows.ndim), rows, filling)

    def _values(self, name: str, x: Operand) -> tuple[Array, DType]:
        values = self._facing(name, x)
        if values.dtype == np.uint64:
            raise DTypeError(f"groupby.{name}: values of {values.dtype} are not supported")
        return values, values.dtype

    def count(self) -> Array:
        """How many rows each group has: (groups,), int64. I/O: one read of the labels, or a sort of them.

        >>> import numpy as np, outcore as oc
        >>> oc.groupby(np.asarray([3, 1, 3])).count().compute()
        array([1, 2])
        """
        return self._counts() if self._knows_rows() else masks.Chosen(lambda: self._counts()._expr, "count")

    def _counts(self) -> Array:
        self._look()
        if self._rows is None:
            return self._by_sorting(None).counts()
        return self._of_present(self._table("count", None))

    @when_needed
    def sum(self, x: Operand, *, skipna: bool = False) -> Array:
        """The sum of every group: (n, …) → (groups, …), in the types of `oc.sum`. I/O: as `groupby`.

        `skipna` passes NaN over, as if its rows were not there, here and in the other results that take it.

        >>> import numpy as np, outcore as oc
        >>> oc.groupby(np.asarray([3, 1, 3])).sum(np.asarray([1.0, 2.0, 4.0])).compute()
        array([2., 5.])
        """
        values, dtype = self._values("sum", x)
        return self._turned(self._folded("sum", _without_nan(values, 0, skipna)).astype(sum_dtype(dtype)))

    @when_needed
    def prod(self, x: Operand, *, skipna: bool = False) -> Array:
        """The product of every group, in the types of `oc.prod`. I/O: as `groupby`.

        >>> import numpy as np, outcore as oc
        >>> oc.groupby(np.asarray([3, 1, 3])).prod(np.asarray([3, 2, 4])).compute()
        array([ 2, 12])
        """
        values, dtype = self._values("prod", x)
        return self._turned(self._folded("prod", _without_nan(values, 1, skipna)).astype(sum_dtype(dtype)))

    @when_needed
    def min(self, x: Operand, *, skipna: bool = False) -> Array:
        """The smallest value of every group, in the type of `x`; NaN where there is one. I/O: as `groupby`.

        A group without rows, which only `groups=` can make, has NaN, or the largest number of an integer type.

        >>> import numpy as np, outcore as oc
        >>> oc.groupby(np.asarray([3, 1, 3])).min(np.asarray([3, 2, 4])).compute()
        array([2, 3])
        """
        return self._extreme("min", x, skipna)

    @when_needed
    def max(self, x: Operand, *, skipna: bool = False) -> Array:
        """The largest value of every group, in the type of `x`; NaN where there is one. I/O: as `groupby`.

        A group without rows, which only `groups=` can make, has NaN, or the smallest number of an integer type.

        >>> import numpy as np, outcore as oc
        >>> oc.groupby(np.asarray([3, 1, 3])).max(np.asarray([3, 2, 4])).compute()
        array([2, 4])
        """
        return self._extreme("max", x, skipna)

    def _extreme(self, fold: Fold, x: Operand, skipna: bool) -> Array:
        values, dtype = self._values(fold, x)
        extreme = self._folded(fold, _without_nan(values, np.inf if fold == "min" else -np.inf, skipna))
        if skipna and dtype.kind == "f":
            extreme = where(self._known(values) > 0, extreme, np.nan)
        if self._is_numbered:
            is_label = upright(self._table("count", None) > 0, extreme.ndim)
            extreme = where(is_label, extreme, Array(node(extreme.dtype.type(_nothing(fold, dtype)))))
        return self._turned(extreme.astype(dtype))

    def _known(self, values: Array) -> Array:
        """How many values of each group are not NaN, in each column."""
        return self._folded("sum", ~isnan(values))

    @when_needed
    def mean(self, x: Operand, *, skipna: bool = False) -> Array:
        """The mean of every group, floating point; NaN for groups without rows. I/O: as `groupby`.

        >>> import numpy as np, outcore as oc
        >>> oc.groupby(np.asarray([3, 1, 3])).mean(np.asarray([1.0, 2.0, 4.0])).compute()
        array([2. , 2.5])
        """
        values, dtype = self._values("mean", x)
        # Sums of integers of 64 bits may be beyond them.
        kind = "float64" if dtype.itemsize == 8 else None
        sums = self._folded("sum", _without_nan(values, 0, skipna), kind).astype(np.float64)
        skips = skipna and dtype.kind == "f"
        means = sums / (self._known(values) if skips else upright(self.count(), sums.ndim))
        return self._turned(means.astype(dtype if dtype.kind == "f" else np.float64))

    @when_needed
    def var(self, x: Operand, *, ddof: float = 0.0, skipna: bool = False) -> Array:
        """The variance of every group with divisor count − ddof, floating point; NaN where that is not positive.

        Distances are taken from the mean of the own group, so nothing cancels. I/O: twice that of `groupby`.

        >>> import numpy as np, outcore as oc
        >>> oc.groupby(np.asarray([3, 1, 3])).var(np.asarray([1.0, 2.0, 4.0])).compute()
        array([0.  , 2.25])
        """
        values, dtype = self._values("var", x)
        skips = skipna and dtype.kind == "f"
        counts = self._known(values) if skips else upright(self.count(), values.ndim)
        if self._fits(values):
            sums = self._table("sum", _without_nan(values, 0, skips), "float64")
            known = self._table("sum", ~isnan(values)) if skips else upright(self._table("count", None), sums.ndim)
            squares = self._of_present(self._table("sum", values, "float64", sums / known))
        else:
            squares = self._placed(self._by_sorting(values, "float64").squares(skips), "sum")
        divisor = counts - ddof
        variances = where(divisor > 0, squares / where(divisor > 0, divisor, 1), np.nan)
        return self._turned(variances.astype(dtype if dtype.kind == "f" else np.float64))

    def _places(self, fold: Fold, values: Array) -> Array:
        """For each group the row of its extreme in each column; beyond all rows where it has none."""
        if self._fits(values):
            extremes = self._table(fold, values, _wide(values.dtype))
            return self._of_present(self._table("min", values, "int64", extremes))
        return super()._places(fold, values)

    def _known_ends(self, name: str, fold: Fold, values: Array) -> Array:
        if self._fits(values):
            return self._of_present(self._table(name, values, "float64")).astype(values.dtype)
        return super()._known_ends(name, fold, values)

    def _inside(self) -> Array:
        """The row of each label in the table; of labels beyond it, the first: what is there is left out."""
        numbers, last = self._numbers(), (self._rows or 1) - 1
        return where((numbers >= 0) & (numbers <= last), numbers, 0)

    @when_needed
    def std(self, x: Operand, *, ddof: float = 0.0, skipna: bool = False) -> Array:
        """The standard deviation of every group: the root of `var`. I/O: as `var`.

        >>> import numpy as np, outcore as oc
        >>> oc.groupby(np.asarray([3, 1, 3])).std(np.asarray([1.0, 2.0, 4.0])).compute()
        array([0. , 1.5])
        """
        return sqrt(self.var(x, ddof=ddof, skipna=skipna))

    def aggregate(self, x: Operand, functions: Sequence[str]) -> tuple[Array, ...]:
        """Several of this class's results of the same values; computed together they share one read.

        By the names of its methods; "nansum", "nanmean" and so on are those with `skipna=True`. Raises ArgumentError
        for other names. I/O: as the results.

        >>> import numpy as np, outcore as oc
        >>> low, high = oc.groupby(np.asarray([3, 1, 3])).aggregate(np.asarray([3, 2, 4]), ["min", "max"])
        >>> high.compute()
        array([2, 4])
        """
        return self._results(x, functions)

    @overload
    def agg(self, x: Operand, function: str, /) -> Array: ...
    @overload
    def agg(self, x: Operand, function: list[str] | tuple[str, ...], /) -> tuple[Array, ...]: ...
    @overload
    def agg(self, x: Operand, function: Mapping[str, str] | None = None, /, **named: str) -> dict[str, Array]: ...
    def agg(
        self, x: Operand, function: str | list[str] | tuple[str, ...] | Mapping[str, str] | None = None, /, **named: str
    ) -> Array | tuple[Array, ...] | dict[str, Array]:
        """One result by its name, several as a tuple, or several under names of one's own as a dictionary.

        Functions as in `aggregate`; names are the keys of a mapping, or keywords. I/O: as the results; computed
        together they share one read.

        >>> import numpy as np, outcore as oc
        >>> groups = oc.groupby(np.asarray([3, 1, 3]))
        >>> oc.compute(groups.agg(np.asarray([1.0, 2.0, 4.0]), "mean"))
        array([2. , 2.5])
        >>> groups.agg(np.asarray([3, 2, 4]), low="min", middle="median")["low"].compute()
        array([2, 3])
        """
        if isinstance(function, str) and not named:
            return self._results(x, [function])[0]
        if not named and function is not None and not isinstance(function, Mapping):
            return self._results(x, function)
        if function is not None and not isinstance(function, Mapping):
            raise ArgumentError(f"groupby.agg: {function!r} has no name beside those of {', '.join(named)}")
        functions = {**(function or {}), **named}
        if not functions:
            raise ArgumentError('groupby.agg: no function is named; use "mean", ["min", "max"] or {"name": "mean"}')
        return dict(zip(functions, self._results(x, list(functions.values())), strict=True))

    def _results(self, x: Operand, functions: Sequence[str]) -> tuple[Array, ...]:
        return tuple(self._result(x, name) for name in functions)

    def _check_result(self, name: str, x: Operand) -> None:
        plain = plain_result("groupby.aggregate", name)
        if plain != "count":
            self._check(plain, x)

    def _result(self, x: Operand, name: str) -> Array:
        self._check_result(name, x)
        if name == "count":
            return self.count()
        if name in _RESULTS:
            result: Array = getattr(self, name)(x)
        else:
            result = getattr(self, name.removeprefix("nan"))(x, skipna=True)
        return result

    def _codes(self) -> Array:
        self._look()
        if self._rows is None or self._labels.shape[0] == 0:
            return unique_inverse(self._labels).inverse_indices
        numbers = self._numbers()
        if self._is_numbered:
            return where((numbers >= 0) & (numbers < self._rows), numbers, -1)
        if self._is_whole:
            return numbers
        is_there = self._table("count", None) > 0
        places = Array(_core.scan("sum", is_there.astype(np.int64)._expr, 0, None)) - 1
        return take(places, self._inside(), axis=0)


def _wide(dtype: DType) -> str:
    """The type in which values are added up."""
    return "float64" if dtype.kind == "f" else "int64"


def _without_nan(values: Array, instead: float, skipna: bool) -> Array:
    """Values with what changes nothing in the place of NaN."""
    return where(isnan(values), instead, values) if skipna and values.dtype.kind == "f" else values


def _nothing(fold: str, dtype: DType) -> Scalar:
    """The extreme of no numbers, by definition."""
    if dtype.kind == "f":
        return np.nan
    if dtype.kind == "b":
        return fold == "min"
    return np.iinfo(dtype).max if fold == "min" else np.iinfo(dtype).min


class _Numbered:
    """Keys of groups by their numbers, where the keys themselves are no single numbers."""

    def __init__(self, keys: Typed) -> None:
        self._all = keys

    def _of_keys(self, numbers: Array) -> Typed:
        columns = [take(column, numbers, axis=0) for column in self._all._columns()]
        return self._all._of_columns(columns)

    def _later(self, make: Callable[[], Typed]) -> Typed:
        return self._all._later(make)


class _Keys:
    """Several rows of labels as one: the place of each pair among all pairs, in the order of the first."""

    def __init__(self, keys: Sequence[Operand | Typed], axis: int) -> None:
        self._each = [groupby(key, axis=axis) for key in keys]
        lengths = [groups._length for groups in self._each]
        if len(set(lengths)) != 1:
            raise ShapeError(f"groupby: keys of lengths {', '.join(map(str, lengths))}; each row has one of every key")
        self.length = lengths[0]

    def _counts(self) -> list[int]:
        counts = [groups._numeric_keys().shape[0] for groups in self._each]
        if math.prod(counts) >= 1 << 63:
            raise ArgumentError(f"groupby: {len(counts)} keys have more pairs than int64 can number")
        return counts

    def codes(self) -> Array:
        """The number of the pair in each row; found when something needs it, where a key is looked at for it."""

        def make() -> Array:
            codes = self._each[0]._codes()
            for groups, count in zip(self._each[1:], self._counts()[1:], strict=True):
                codes = codes * count + groups._codes()
            return codes

        if all(groups._knows_rows() for groups in self._each):
            return make()
        return masks.Chosen(lambda: make()._expr, "groupby")

    def of(self, codes: Array) -> tuple[Array | Typed, ...]:
        """The keys that a row of numbers stands for."""
        return tuple(self._part(place, codes) for place in range(len(self._each)))

    def _part(self, place: int, codes: Array) -> Any:
        groups = self._each[place]

        def make() -> Any:
            counts = [count or 1 for count in self._counts()]
            numbers = codes // math.prod(counts[place + 1 :]) % counts[place]
            kept = take(groups._numeric_keys(), numbers, axis=0)
            return kept if groups._like is None else groups._like._of_keys(kept)

        if type(codes) is Array and groups._knows_rows():
            return make()
        return masks.Chosen(lambda: make()._expr, "keys") if groups._like is None else groups._like._later(make)


def _are_keys(labels: object) -> bool:
    """Whether labels are several rows: a tuple or list of arrays."""
    kinds = (np.ndarray, Array, Typed)
    return isinstance(labels, (tuple, list)) and bool(labels) and all(isinstance(key, kinds) for key in labels)


def groupby(
    labels: Operand | Typed | Sequence[Operand | Typed], /, *, groups: int | None = None, axis: int | None = None
) -> GroupBy:
    """Rows taken together by their labels, one for each: `groupby(labels).mean(values)` has a row for each distinct
    label.

    Labels are a row of integers or anything that can be sorted; each NaN is a group of its own. Of dates and times NaT
    is one group, the last; text of more than 8 bytes (3 letters of `U`) goes by its `categories`. `groups` says that
    labels are the numbers 0 … groups − 1: then every number has a row in the results, and other labels are left out.
    Several keys, a tuple or list of rows, make a group of each combination that there is; `keys` is then a tuple of
    their parts. Values are real, with a row for each label; sums of float32 are formed in double precision. With
    `axis=1` columns are grouped, and results have a column for each group; so along any axis. Labels whose axis has a
    name, as `ds["time"].month`, go along the values' axis of that name; each method takes `axis=`, a name or a number.

    I/O: integer labels close together go by one read of labels and values, and two of the labels to find which there
    are, unless these are in memory or `groups` says so. The results must take 4 MiB at most; of rows of 32 KiB and more
    32 MiB for a band of columns that can be read by itself: few groups of rows of any width. Five times the results of
    a band must fit the memory, and twice those of more than 4 MiB. All others are sorted: the values of a row with
    their labels, in two reads and writes, and read once more; wider ones are brought into the order of the sorted
    labels, in bands of columns, by one read where all rows of a band fit a third of the memory. Results have the same
    bits at every memory limit.

    >>> import numpy as np, outcore as oc
    >>> by_month = oc.groupby(np.asarray([2, 1, 2, 3]))
    >>> by_month.keys.compute(), by_month.mean(np.asarray([1.0, 5.0, 3.0, 8.0])).compute()
    (array([1, 2, 3]), array([5., 2., 8.]))
    >>> pairs = oc.groupby((np.asarray([2, 1, 2]), np.asarray([0, 0, 7])))
    >>> oc.compute(*pairs.keys, pairs.count())
    (array([1, 2, 2]), array([0, 0, 7]), array([1, 1, 1]))
    """
    dim = None
    if axis is None:
        axis = 0
        named = labels[0] if _are_keys(labels) else labels  # type: ignore[index]
        dim = named.dims[0] if isinstance(named, (Array, Typed)) and named.ndim else None
    if isinstance(axis, str):
        raise ArgumentError(f"groupby: axis={axis!r} is a name, which methods take: groups.mean(x, axis={axis!r})")
    if axis < 0:
        raise ArgumentError(f"groupby: axis={axis} is counted from the front, for values of any number of axes")
    if _are_keys(labels):
        if groups is not None:
            raise ArgumentError(f"groupby: groups={groups} for several keys; it numbers one row of integer labels")
        several = _Keys(labels, axis)  # type: ignore[arg-type]
        return GroupBy(several.codes(), None, axis, keys=several, dim=dim)
    like = typed_of(labels)
    if like is not None and groups is None and like.ndim == 1 and len(like._columns()) > 1:
        codes, categories = like.categories()
        return GroupBy(codes, None, axis, _Numbered(categories), dim=dim)
    row = Array(node(labels if like is None else like._columns()[0]))
    if row.ndim != 1:
        raise ShapeError(f"groupby: labels of shape {row.shape} are not one row")
    if row.dtype.kind == "c":
        raise DTypeError(f"groupby: labels of {row.dtype} have no order")
    if groups is not None and (groups < 0 or like is not None or row.dtype.kind not in "biu"):
        kind = row.dtype if like is None else like.dtype
        raise ArgumentError(f"groupby: groups={groups} for labels of {kind}; it numbers integer labels from 0 on")
    few = labels if isinstance(labels, np.ndarray) and labels.size <= _FEW_LABELS else None
    return GroupBy(row, groups, axis, like, few, dim=dim)


__all__ = ["GroupBy", "groupby"]
