"""Groups of a table's rows: `agg` gives a table with a row for each group."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Generic, NoReturn, TypeVar

from outcore._groups.groups import GroupBy, groupby, plain_result
from outcore._lazy.array import Array
from outcore._lazy.typed import Typed
from outcore._tables.columns import Deferred, TableColumn, kind_of
from outcore.dates import Dates
from outcore.errors import ArgumentError, DTypeError, IndexingError

ResultTable = TypeVar("ResultTable")  # the table of the results
# Functions whose results are elements of the column: dates, short text and labels have them as well.
_ELEMENTS = ("min", "max", "first", "last")
_FIGURES = ("sum", "prod", "mean", "var", "std", "count", "median", "argmin", "argmax")


class TableGroups(Generic[ResultTable]):
    """Groups of a table's rows by the values of some columns. ResultTable by `Table.groupby`."""

    def __init__(
        self,
        keys: Mapping[str, TableColumn],
        named: Callable[[str], TableColumn],
        made: Callable[[Mapping[str, TableColumn | Deferred]], ResultTable],
    ) -> None:
        self._keys = dict(keys)
        self._named = named
        self._made = made
        self._groups: GroupBy | None = None

    def _grouped(self) -> GroupBy:
        if self._groups is None:
            rows = tuple(self._keys.values())
            self._groups = groupby(rows if len(rows) > 1 else rows[0])
        return self._groups

    def _key(self, name: str) -> TableColumn:
        parts = self._grouped().keys
        if isinstance(parts, tuple):
            return parts[list(self._keys).index(name)]
        return parts

    def __getattr__(self, name: str) -> NoReturn:
        known = not name.startswith("_") and name.removeprefix("nan") in (*_ELEMENTS, *_FIGURES)
        hint = f"; use agg(name=('column', {name!r}))" if known else ""
        raise AttributeError(f"groups of a table have no attribute {name!r}{hint}")

    def agg(
        self, functions: Mapping[str, str | tuple[str, str]] | None = None, /, **named: tuple[str, str]
    ) -> ResultTable:
        """A table of the keys, ascending, and results by name: each of a column and a function of its groups. A mapping
        of columns to functions keeps their names: `agg({"price": "mean"})`.

        Functions are those of `oc.groupby(...).aggregate`: "sum", "prod", "min", "max", "mean", "var", "std", "count",
        "median", "first", "last", and "nansum", "nanmean" and so on, which pass NaN over. Dates, labels and text of up
        to 8 bytes have "count", "min", "max", "first" and "last". Groups of missing elements: NaN each one of its own,
        NaT and no label one, the last.

        Raises IndexingError for a name that is no column, or the name of a key, ArgumentError for an unknown function,
        DTypeError for one that the column does not have. I/O: as `oc.groupby`; results computed together share it.

        >>> import outcore as oc
        >>> t = oc.table(day=[2, 1, 2], price=[1.0, 5.0, 3.0])
        >>> t.groupby("day").agg(total=("price", "sum")).compute()
        {'day': array([1, 2]), 'total': array([5., 4.])}
        """
        made: dict[str, TableColumn | Deferred] = {
            name: Deferred(partial(self._key, name), kind_of(column)) for name, column in self._keys.items()
        }
        if functions is not None and not isinstance(functions, Mapping):
            raise ArgumentError(f"agg: {functions!r} is no mapping of columns to functions, as {{'price': 'mean'}}")
        columns = {
            name: (name, function) if isinstance(function, str) else function
            for name, function in (functions or {}).items()
        }
        for name, pair in {**columns, **named}.items():
            if not isinstance(pair, tuple) or len(pair) != 2:
                raise ArgumentError(
                    f"agg: {name}={pair!r} is no pair of a column and a function, as top=('price', 'max')"
                )
            if name in made:
                raise IndexingError(f"agg: {name!r} is the name of a key")
            if not isinstance(pair[1], str):
                raise ArgumentError(f"agg: {name}={pair!r}; a function is named by text")
            column, function = self._named(pair[0]), plain_result("agg", pair[1])
            if isinstance(column, Typed) and (pair[1] not in (*_ELEMENTS, "count") or _is_wide(column, function)):
                raise DTypeError(f"agg: {pair[1]!r} of {pair[0]}, {kind_of(column)}")
            made[name] = Deferred(partial(self._result, column, pair[1]))
        return self._made(made)

    def _result(self, column: TableColumn, function: str) -> TableColumn:
        groups = self._grouped()
        if function == "count":
            return groups.count()
        if not isinstance(column, Typed):
            return groups.aggregate(column, [function])[0]
        numbers = [column.integers] if isinstance(column, Dates) and function == "min" else column._columns()
        result: Array = groups.aggregate(numbers[0], [function])[0]
        if isinstance(column, Dates) and function == "min":  # NaT is the least integer, and makes the least NaT
            return Dates(result, column.dtype)
        return column._of_columns([result])


def _is_wide(column: Typed, function: str) -> bool:
    """Whether a result would be an element of more than one number: of text that is longer than one holds."""
    return function != "count" and not isinstance(column, Dates) and len(column._columns()) > 1


__all__ = ["TableGroups"]
