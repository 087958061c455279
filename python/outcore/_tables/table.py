"""`Table`: named columns of equal length, a thin layer over arrays.

**Contract.** A table holds columns and no data. Each method gives a new table whose columns are lazy arrays made of
these; a program runs only where a number of rows must be known that depends on data (`len` of a filtered table), and
where `compute`, `store`, `to_parquet` or a stream asks for values. So the cost of every method is that of the functions
of arrays that it names.

A table has no index, no strings of variable length, no nested types, no window functions, no pivots, no expressions of
its own and no query planner: `t["x"]` is an array, and everything arrays can do is said with it. For more a table goes
to a data frame library as a stream, in batches (`pl.DataFrame(t)`, DuckDB's replacement scans,
`pa.RecordBatchReader.from_stream(t)`), and what comes back from there is stored by `from_arrow`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Literal, NoReturn, overload

import numpy as np

from outcore import stats
from outcore._base.arguments import whole
from outcore._base.shortened import COLUMNS, short_text, short_values
from outcore._base.types import NDArray
from outcore._lazy.array import Array
from outcore._lazy.carded import Carded
from outcore._lazy.node import Operand
from outcore._lazy.preview import first_rows
from outcore._lazy.typed import Typed, carried, decoded
from outcore._run.run import compute
from outcore._standard.creation import asarray
from outcore._standard.sets import unique
from outcore._tables.columns import (
    Deferred,
    TableColumn,
    chosen,
    column_of,
    is_pending,
    is_unknown,
    joined,
    kind_of,
    ordered,
    picked,
)
from outcore._tables.grouping import TableGroups
from outcore._tables.joining import merged, partnered
from outcore._tables.stream import capsule
from outcore.errors import ArgumentError, DTypeError, IndexingError, ShapeError

JoinKind = Literal["inner", "left", "semi", "anti"]
_HEAD_ROWS = 5
_COLUMNS_SHOWN = 40
_NAME, _HEAD, _HEAD_MIN = 40, 60, 12  # characters of a name, and of first values
# Names that data frames have, and the nearest that a table has.
_NEAREST = {
    "to_parquet": "oc.to_parquet(t, path)",
    "write_parquet": "oc.to_parquet(t, path)",
    "to_pandas": "pandas.DataFrame(t.compute()), or pyarrow.table(t).to_pandas()",
    "to_arrow": "pyarrow.table(t), or pyarrow.RecordBatchReader.from_stream(t)",
    "to_polars": "polars.DataFrame(t)",
    "to_csv": "polars.DataFrame(t).write_csv(path), or pyarrow.csv of a stream",
    "to_numpy": "t.compute(), a dict of arrays",
    "values": "t.compute(), a dict of arrays",
    "query": 't.filter(t["x"] > 1)',
    "drop": "t.select(*names) with the names that stay",
    "assign": "t.with_columns(y=...)",
    "merge": 't.join(other, "key")',
    "sort_values": 't.sort_by("x")',
    "sort": 't.sort_by("x")',
    "group_by": 't.groupby("x")',
    "agg": 't.groupby("x").agg(...), and oc.mean(t["x"]) of all rows',
    "iloc": "t[2:5]",
    "loc": "t[mask]",
    "tail": "t[-5:]",
    "shape": "(len(t), len(t.columns))",
    "dropna": 't.filter(~oc.isnan(t["x"]))',
    "append": "t.concat(other)",
    "vstack": "t.concat(other)",
}
_STATISTICS = ("count", "missing", "mean", "std", "min", "max")


class Table(Carded):
    """Named columns of equal length: arrays of numbers, `Dates`, `Text` or `Categorical`. Made by `oc.table`, and by
    the functions that read tables.

    `t["x"]` is the column itself, `t[["x", "y"]]` and `t[mask]` are tables. Raises ShapeError for columns of different
    lengths, IndexingError for a name that is no column.

    >>> import numpy as np, outcore as oc
    >>> t = oc.table(price=np.asarray([2.0, 1.0, 4.0]), city=np.asarray([b"oslo", b"rome", b"oslo"]))
    >>> t.filter(t["price"] > 1.5).groupby("city").agg(total=("price", "sum")).compute()["total"]
    array([6.])
    """

    __slots__ = ("_columns", "_count")

    def __init__(self, columns: Mapping[str, object]) -> None:
        made = {str(name): column_of(str(name), value) for name, value in columns.items()}
        _check({name: len(column) for name, column in made.items() if not is_pending(column)})
        self._columns: dict[str, TableColumn | Deferred] = dict(made)
        self._count: Callable[[], int] | int | None = None

    @classmethod
    def _of(cls, columns: Mapping[str, TableColumn | Deferred], count: Callable[[], int] | int | None = None) -> Table:
        """A table of columns that have one length, known or not."""
        made = object.__new__(cls)
        made._columns, made._count = dict(columns), count
        return made

    # -- what it is ---------------------------------------------------------------------------------------------

    @property
    def columns(self) -> list[str]:
        """The names, in order. No I/O."""
        return list(self._columns)

    @property
    def dtypes(self) -> dict[str, str]:
        """By name the type of the elements; empty where only a run can tell. No I/O."""
        return {
            name: column.kind if isinstance(column, Deferred) else kind_of(column)
            for name, column in self._columns.items()
        }

    def __len__(self) -> int:
        """The number of rows. I/O: none, but where a mask or a join must be counted first."""
        count = self._count
        if callable(count):
            count = self._count = count()
        if count is None:
            count = self._count = len(self[self.columns[0]]) if self._columns else 0
        return count

    def _knows_rows(self) -> bool:
        if isinstance(self._count, int):
            return True
        if self._count is not None:
            return False
        return not all(map(is_unknown, self._columns.values()))

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def _named(self, name: object) -> TableColumn:
        column = self._columns.get(name) if isinstance(name, str) else None
        if isinstance(name, (list, tuple)):
            names = ", ".join(map(repr, name))
            raise IndexingError(f"table: {name!r} is no name of a column; several are arguments of their own: {names}")
        if column is None:
            raise IndexingError(f"table: no column {name!r}; columns are {', '.join(self._columns) or 'none'}")
        return column.get() if isinstance(column, Deferred) else column

    @overload
    def __getitem__(self, key: str) -> Array: ...
    @overload
    def __getitem__(self, key: list[str] | tuple[str, ...] | Array | slice) -> Table: ...
    def __getitem__(self, key: str | list[str] | tuple[str, ...] | Array | slice) -> TableColumn | Table:
        """A column by its name; a table of some columns, of the rows of a mask, or of a slice of rows.

        Raises IndexingError for a name that is no column. No I/O, but by columns of labels whose labels must be read,
        and slices of rows whose number depends on data.
        """
        if isinstance(key, str):
            return self._named(key)
        if isinstance(key, slice):
            return self._each(lambda column: column[key])
        if isinstance(key, (list, tuple)):
            return self.select(*key)
        return self.filter(key)

    def _each(
        self, change: Callable[[TableColumn], TableColumn], count: Callable[[], int] | int | None = None
    ) -> Table:
        def changed(name: str) -> TableColumn:
            return change(self._named(name))

        kinds = self.dtypes
        return self._of({name: Deferred(partial(changed, name), kinds[name]) for name in self._columns}, count)

    def __repr__(self) -> str:
        lines = [self._card_title()]
        for name, kind in self._card_facts():
            line = f"{short_text(name, _NAME)}: {kind}"
            lines.append(line if len(line) <= COLUMNS - 2 else f"{line[: COLUMNS - 3]}…")
        return "\n  ".join(lines)

    def _card_title(self) -> str:
        rows = f"{self._rows_seen():,}" if self._knows_rows() else "?"
        return f"outcore.Table: {rows} rows"

    def _card_facts(self) -> list[tuple[str, str]]:
        """Types of the columns, and first values of those in memory. No column is made or read for it."""
        dtypes = self.dtypes
        facts = [(name, self._said_of(name, str(dtypes[name] or "?"))) for name in list(dtypes)[:_COLUMNS_SHOWN]]
        more = len(dtypes) - len(facts)
        return [*facts, ("…", f"{more:,} more columns")] if more else facts

    def _rows_seen(self) -> int:
        """The number of rows, where it is known without a column being made."""
        if isinstance(self._count, int):
            return self._count
        return next(
            len(column)
            for column in self._columns.values()
            if not isinstance(column, Deferred) and not is_pending(column)
        )

    def _said_of(self, name: str, kind: str) -> str:
        """The type of a column, and as many of its first values as a line has room for."""
        room = min(_HEAD, COLUMNS - len("  : ") - len(short_text(name, _NAME)) - len(f"{kind}  "))
        return kind + (self._head_of(name, room) if room >= _HEAD_MIN else "")

    def _head_of(self, name: str, width: int) -> str:
        column = self._columns[name]
        if is_unknown(column):
            return ""
        first = first_rows(carried(column)._expr, _HEAD_ROWS)
        if first is None:
            return ""
        return f"  {short_values(decoded(column, first.values), first.is_all, width)}"

    # -- columns ------------------------------------------------------------------------------------------------

    def select(self, *names: str) -> Table:
        """A table of some columns, in this order. Raises IndexingError for a name that is no column. No I/O.

        >>> import outcore as oc
        >>> oc.table(a=[1, 2], b=[3, 4]).select("b").columns
        ['b']
        """
        for name in names:
            if name not in self._columns:
                self._named(name)
        return self._of({name: self._columns[name] for name in names}, self._rows_or_none())

    def _rows_or_none(self) -> Callable[[], int] | int | None:
        return self._count if isinstance(self._count, int) else lambda: len(self)

    def with_columns(self, columns: Mapping[str, object] | None = None, /, **named: object) -> Table:
        """A table with more columns, or others in the place of those of the same names; strings rename nothing.

        Raises ShapeError for a column of another length, where both are known. No I/O.

        >>> import outcore as oc
        >>> t = oc.table(a=[1, 2])
        >>> t.with_columns(b=t["a"] * 10)["b"].compute()
        array([10, 20])
        """
        changed = {str(name): column_of(str(name), value) for name, value in {**(columns or {}), **named}.items()}
        kept = {name: column for name, column in self._columns.items() if name not in changed}
        known = {name: len(column) for name, column in changed.items() if not is_pending(column)}
        if kept and self._knows_rows():
            known |= {next(iter(kept)): len(self)}
        _check(known)
        order = {name: changed.get(name, column) for name, column in self._columns.items()} | changed
        return self._of(order, self._rows_or_none() if kept else None)

    def rename(self, names: Mapping[str, str]) -> Table:
        """A table with other names for some columns. Raises IndexingError for a name that is no column, ArgumentError
        for two columns of one name. No I/O."""
        for name in names:
            if name not in self._columns:
                self._named(name)
        made = {names.get(name, name): column for name, column in self._columns.items()}
        if len(made) < len(self._columns):
            raise ArgumentError(f"rename: {dict(names)} gives two columns one name")
        return self._of(made, self._rows_or_none())

    # -- rows ---------------------------------------------------------------------------------------------------

    def filter(self, mask: Operand) -> Table:
        """The rows for which a mask is true, in their order; how many is counted once, when something needs it.

        `mask` is a row of bool with an element for each row: ShapeError and IndexingError otherwise. I/O: one read of
        the mask to count, and one of mask and columns for values.

        >>> import outcore as oc
        >>> t = oc.table(a=[3, 1, 2])
        >>> t.filter(t["a"] >= 2)["a"].compute()
        array([3, 2])
        """
        flags = mask if isinstance(mask, Array) else asarray(mask)
        if not is_pending(flags):
            if flags.dtype != np.dtype(bool) or flags.ndim != 1:
                raise IndexingError(f"filter: a mask is one row of bool, not {flags.dtype} of shape {flags.shape}")
            if self._knows_rows() and flags.shape[0] != len(self):
                raise ShapeError(f"filter: a mask of {flags.shape[0]} rows for a table of {len(self)}")
        made = self._each(lambda column: chosen(column, flags))
        if not made._columns:
            made._count = 0
        return made

    def head(self, n: int = _HEAD_ROWS) -> Table:
        """The first rows. I/O: that of their values, where they are computed.

        >>> import outcore as oc
        >>> oc.table(a=[3, 1, 2]).head(2)["a"].compute()
        array([3, 1])
        """
        whole("head", 2**63 - 1, n=n)
        return self._each(lambda column: column[:n], lambda: min(n, len(self)))

    def sample(self, n: int, *, seed: int = 0) -> Table:
        """`n` rows chosen at random without replacement, in their order; the same for the same seed.

        Their positions must fit the memory. Raises ArgumentError for more rows than there are. I/O: a `take` of each
        column.

        >>> import outcore as oc
        >>> len(oc.table(a=oc.arange(1000)).sample(3, seed=1))
        3
        """
        whole("sample", 2**63 - 1, n=n, seed=seed)
        if n > len(self):
            raise ArgumentError(f"sample: n={n} of {len(self)} rows")
        places = np.sort(np.random.default_rng(seed).choice(len(self), n, replace=False))
        return self._each(lambda column: picked(column, places), n)

    def sort_by(self, *names: str, descending: bool | Sequence[bool] = False) -> Table:
        """The rows in the order of some columns, the first deciding; stable, missing elements last.

        `descending` holds for all, or says it for each. Raises IndexingError for a name that is no column,
        ArgumentError for no name or another number of directions. I/O: one sort with all columns for each key
        (`oc.sort_by`); text of more than 8 bytes is several. Select the columns that are needed first.

        >>> import outcore as oc
        >>> t = oc.table(a=[2, 1, 2], b=[1, 5, 3])
        >>> t.sort_by("a", "b", descending=[False, True])["b"].compute()
        array([5, 3, 1])
        """
        directions = [descending] * len(names) if isinstance(descending, bool) else [bool(part) for part in descending]
        if not names or len(directions) != len(names):
            raise ArgumentError(f"sort_by: {len(names)} names and {len(directions)} directions")
        keys = list(zip((self._place(name) for name in names), directions, strict=True))
        rows = cache(lambda: ordered([self._named(name) for name in self._columns], keys))
        return self._made_together(lambda place: rows()[place])

    def _place(self, name: str) -> int:
        if not isinstance(name, str) or name not in self._columns:
            self._named(name)
        return self.columns.index(name)

    def _made_together(self, make: Callable[[int], TableColumn]) -> Table:
        kinds = self.dtypes
        made = {name: Deferred(partial(make, place), kinds[name]) for place, name in enumerate(self._columns)}
        return self._of(made, self._rows_or_none())

    # -- several tables -------------------------------------------------------------------------------------------

    def concat(self, *others: Table) -> Table:
        """The rows of this table and of others behind them, which have the same columns in any order.

        Units of dates meet, text becomes as long as the longest, labels are united, numbers promote. Raises
        IndexingError for a table without one of the columns, ShapeError for one with more, DTypeError for columns that
        do not go together. No I/O of its own.

        >>> import outcore as oc
        >>> oc.table(a=[1]).concat(oc.table(a=[2.5]))["a"].compute()
        array([1. , 2.5])
        """
        tables = (self, *others)
        for table in others:
            more = [name for name in table.columns if name not in self._columns]
            if more:
                raise ShapeError(f"concat: columns {', '.join(more)} are in one table only")
            for name in self._columns:
                table._place(name)

        def together(name: str) -> TableColumn:
            return joined([table._named(name) for table in tables])

        made = {name: Deferred(partial(together, name)) for name in self._columns}
        return self._of(made, lambda: sum(len(part) for part in tables))

    def join(
        self,
        other: Table,
        on: str | Sequence[str] | Mapping[str, str],
        *,
        how: JoinKind = "inner",
        suffix: str = "_right",
    ) -> Table:
        """Rows of two tables whose keys are equal, by sorting both (see `outcore/_tables/joining.py`). Text is equal to
        labels that say the same.

        `on` names the keys, or maps those of this table to those of the other. "inner" and "left" give a row for each
        pair, in the order of the keys, with the keys once and the other columns of both; names of the other's that this
        one has get `suffix`. "left" has missing elements where there is no partner: NaN, for which integers and truths
        become float64, NaT, no label, the empty string. "semi" and "anti" are the rows of this table with, and without,
        partners, in their order. Missing keys have no partners.

        Raises IndexingError for a name that is no column, DTypeError for keys that do not go together, ArgumentError
        for another `how`. I/O: a sort of each side with all its columns, held in scratch, two searches in the sorted
        keys and a take for each column; several keys, or text of more than 8 bytes, are numbered by a sort of both
        sides first. Semi and anti joins sort the keys of the other table alone.

        >>> import outcore as oc
        >>> trades = oc.table(id=[2, 1, 2], price=[5.0, 6.0, 7.0])
        >>> trades.join(oc.table(id=[1, 2], name=["A", "B"]), "id")["name"].compute()
        array(['A', 'B', 'B'], dtype='<U1')
        """
        if how not in ("inner", "left", "semi", "anti"):
            raise ArgumentError(f"join: how={how!r}; inner, left, semi and anti are right")
        names = [on] if isinstance(on, str) else on
        pairs = list(names.items()) if isinstance(names, Mapping) else [(name, name) for name in names]
        if not pairs:
            raise ArgumentError("join: on= names no column")
        for mine, its in pairs:
            self._place(mine)
            other._place(its)
        if how in ("semi", "anti"):
            flags = partnered([self._named(mine) for mine, _ in pairs], [other._named(its) for _, its in pairs])
            return self.filter(flags if how == "semi" else ~flags)
        keys = [self._named(mine) for mine, _ in pairs], [other._named(its) for _, its in pairs]
        left = {name: self._named(name) for name in self._columns}
        right: dict[str, TableColumn] = {}
        for name in other.columns:
            if name in [its for _, its in pairs]:
                continue
            new = f"{name}{suffix}" if name in left else name
            if new in left or new in right:
                raise ArgumentError(f"join: two columns would be named {new!r}; pass another suffix")
            right[new] = other._named(name)
        return self._of(*merged(keys, left, right, how == "left"))

    # -- summaries ------------------------------------------------------------------------------------------------

    def groupby(self, *names: str) -> TableGroups[Table]:
        """Rows taken together by the values of some columns; `agg` of the result gives a table.

        Raises IndexingError for a name that is no column, ArgumentError for none. I/O: as `oc.groupby`.

        >>> import outcore as oc
        >>> t = oc.table(day=[2, 1, 2], price=[1.0, 5.0, 3.0])
        >>> t.groupby("day").agg(mean=("price", "mean"), rows=("price", "count")).compute()["mean"]
        array([5., 2.])
        """
        if not names:
            raise ArgumentError("groupby: no column is named")
        keys = {name: self._named(name) for name in names}
        return TableGroups(keys, self._named, self._of)

    def value_counts(self, name: str) -> Table:
        """The distinct values of a column and how often each is there, the most frequent first; NaN once.

        Raises IndexingError for a name that is no column or is "count". I/O: as `oc.unique` with counts, and a sort of
        the distinct values.

        >>> import outcore as oc
        >>> oc.table(a=[3, 1, 3]).value_counts("a").compute()
        {'a': array([3, 1]), 'count': array([2, 1])}
        """
        if name == "count":
            raise IndexingError("value_counts: a column named 'count' stands beside the counts; rename it")
        column = self._named(name)
        both = cache(lambda: ordered(unique(column, return_counts=True), [(1, True)]))
        kinds = (self.dtypes[name], "int64")
        made = {
            new: Deferred(partial(lambda place: both()[place], place), kind)
            for place, (new, kind) in enumerate(zip((name, "count"), kinds, strict=True))
        }
        return self._of(made)

    def describe(self) -> dict[str, dict[str, float]]:
        """Of each column of numbers how many elements are there and missing, mean, standard deviation, least, greatest.

        By column and by the name of the figure; missing elements are passed over, the deviation has the divisor n − 1.
        Dates, text, labels, truths and complex numbers are left out. I/O: one read of all columns.

        >>> import outcore as oc
        >>> oc.table(a=[3.0, 1.0])
        outcore.Table: 2 rows
          a: float64  [3. 1.]
        >>> oc.table(a=[3.0, 1.0]).describe()["a"]["mean"]
        2.0
        """
        columns = {name: self._named(name) for name in self._columns}
        numbers = {name: column for name, column in columns.items() if type(column) is not Typed and _is_real(column)}
        if not numbers or len(self) == 0:
            return {name: dict.fromkeys(_STATISTICS, np.nan) | {"count": 0, "missing": 0} for name in numbers}
        facts = [stats.summary(column) for column in numbers.values()]  # type: ignore[arg-type]
        asked = [part for of in facts for part in (of.missing, of.mean, of.variance, of.min, of.max)]
        values = iter([value.item() for value in compute(*asked)])
        rows, described = len(self), {}
        for name in numbers:
            absent, mean, variance, least, greatest = (next(values) for _ in range(5))
            figures = (rows - absent, absent, mean, variance**0.5, least, greatest)
            described[name] = dict(zip(_STATISTICS, figures, strict=True))
        return described

    # -- values ---------------------------------------------------------------------------------------------------

    def compute(self) -> dict[str, NDArray]:
        """All columns as NumPy arrays, by name, from one program; they must fit the memory limit.

        Raises MemoryLimitError before anything starts where they do not: `head`, `sample` and `to_parquet` do then.
        I/O: one read of what the columns are made of.

        >>> import outcore as oc
        >>> oc.table(a=[1, 2]).compute()
        {'a': array([1, 2])}
        """
        columns = {name: self._named(name) for name in self._columns}
        values = compute(*columns.values())
        return dict(zip(columns, values if len(columns) > 1 else (values,), strict=True)) if columns else {}

    def __array__(self, dtype: object = None, copy: bool | None = None) -> NDArray:
        """Raises DTypeError: a table is no array, its columns are."""
        raise DTypeError(
            'a table is no array: t["x"] is one of its columns, t.compute() has all in memory, oc.to_parquet(t, path) '
            "stores it, t.concat(other) adds rows"
        )

    def __getattr__(self, name: str) -> NoReturn:
        hint = _NEAREST.get(name)
        if not name.startswith("_") and name in self._columns:
            hint = f"t[{name!r}] for the column"
        raise AttributeError(f"outcore.Table has no attribute {name!r}" + (f"; use {hint}" if hint else ""))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Arrow's C stream of the rows in batches of 1/32 of the memory at most: Polars, DuckDB, pandas and pyarrow
        read it. NaT and missing labels are nulls, NaN stays a number.

        Raises ImportError without pyarrow, DTypeError for complex numbers. I/O: columns that are more than stored
        arrays, element by element, are held in scratch first; then one read, a batch at a time.
        """
        return capsule({name: self._named(name) for name in self._columns}, requested_schema)


def _check(lengths: dict[str, int]) -> None:
    if len(set(lengths.values())) > 1:
        said = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise ShapeError(f"table: columns have different lengths: {said}")


def _is_real(column: TableColumn) -> bool:
    return not isinstance(column, Typed) and column.dtype.kind in "iuf"


def table(columns: Mapping[str, object] | None = None, /, **named: object) -> Table:
    """A table of columns by name: rows of one length, of anything that `oc.asarray` takes. No I/O.

    Raises ShapeError for columns of different lengths or of several axes, DTypeError for elements without kernels,
    ArgumentError where no column is given.

    >>> import outcore as oc
    >>> t = oc.table({"id": [1, 2, 3]}, price=[1.5, 2.5, 0.5])
    >>> t.columns, len(t)
    (['id', 'price'], 3)
    """
    if columns is not None and not isinstance(columns, Mapping):
        instead = "; outcore.from_arrow takes it" if hasattr(columns, "__arrow_c_stream__") else ""
        raise ArgumentError(f"table: columns come as a mapping of names to rows, not {type(columns).__name__}{instead}")
    together = {**(columns or {}), **named}
    if not together:
        raise ArgumentError("table: no column is named")
    return Table(together)


__all__ = ["Table", "table"]
