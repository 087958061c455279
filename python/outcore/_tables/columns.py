"""Columns: what a table holds under a name, and what every column can do whatever its elements are.

A column is a row of numbers (`Array`), of dates (`Dates`), of text of a fixed length (`Text`) or of labels
(`Categorical`). **Contract.** Nothing here runs a program, but where a length is asked for that depends on data: a
column that a mask chose is `pending` until its mask has been counted. A column that a table makes only when its name is
used is `Deferred`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, cast

import numpy as np

from outcore._base.types import DType, NDArray
from outcore._lazy.array import Array
from outcore._lazy.node import node
from outcore._lazy.typed import Typed, carried
from outcore._numpy_like.arranging import pad
from outcore._run.masks import Chosen
from outcore._standard.creation import asarray
from outcore._standard.indexing import take
from outcore._standard.manipulation import concat
from outcore._standard.searching import where
from outcore._standard.sorting import sort_by
from outcore._tables.categorical import Categorical
from outcore.dates import Dates, meet
from outcore.elementwise import isnan
from outcore.errors import DTypeError, ShapeError
from outcore.text import Text

TableColumn: TypeAlias = "Array | Typed"


class Deferred:
    """A column that is made when its name is used first; `kind` says its type before."""

    __slots__ = ("_column", "_make", "kind")

    def __init__(self, make: Callable[[], TableColumn], kind: str = "") -> None:
        self._make = make
        self._column: TableColumn | None = None
        self.kind = kind

    def get(self) -> TableColumn:
        """The column. I/O: none, unless what makes it says so."""
        if self._column is None:
            self._column = self._make()  # threads may make it twice, alike
        return self._column


def column_of(name: str, value: object) -> TableColumn:
    """A value as a column. Raises ShapeError for what is not one row, DTypeError for elements without kernels."""
    if isinstance(value, (Array, Typed)) and is_pending(value):
        return value
    column: TableColumn = value if isinstance(value, (Array, Typed)) else asarray(value)
    if column.ndim != 1:
        raise ShapeError(f"table: column {name!r} of shape {column.shape} is not one row")
    return column


def is_pending(column: TableColumn) -> bool:
    """Whether the length of a column is not known yet: the mask that chose its elements has not been counted."""
    carrier = carried(column)
    return isinstance(carrier, Chosen) and carrier._node is None


def is_unknown(column: TableColumn | Deferred) -> bool:
    """Whether a column has not been made yet, or its length is not known."""
    return isinstance(column, Deferred) or is_pending(column)


def kind_of(column: TableColumn) -> str:
    """The type of the elements, in a word; empty where only a run can tell."""
    if isinstance(column, Categorical):
        return f"category[{len(column.labels)}]"
    if isinstance(column, Array) and is_pending(column):
        return ""
    return column.dtype.str.lstrip("|<") if isinstance(column, Text) else str(column.dtype)


def chosen(column: TableColumn, mask: Array) -> TableColumn:
    """The elements for which a mask is true; counted when something needs their number."""
    if isinstance(column, Typed):
        typed: Typed = column
        return typed._later(lambda: typed[mask])
    return column[mask]


def missing(column: TableColumn) -> Array | None:
    """Where elements are NaN, NaT or missing labels; None for types that have neither."""
    if isinstance(column, Typed):
        return column._missing(column._columns())
    return isnan(column) if column.dtype.kind in "fc" else None


def numbers_of(column: TableColumn) -> list[Array]:
    """The rows of numbers that a column goes through sorts as."""
    return column._columns() if isinstance(column, Typed) else [column]


def of_numbers(like: TableColumn, numbers: list[Array]) -> TableColumn:
    """The inverse of `numbers_of`."""
    return like._of_columns(numbers) if isinstance(like, Typed) else numbers[0]


def ordered(columns: Sequence[TableColumn], keys: Sequence[tuple[int, bool]]) -> list[TableColumn]:
    """All columns in the order of some of them, by place; True for descending. Stable; missing elements are last.

    I/O: one sort of all columns for each number of each key (`sort_by`).
    """
    rows = list(columns)
    for place, descending in reversed(keys):
        steps = len(rows[place]._columns()) if isinstance(rows[place], Typed) else 1
        for step in reversed(range(steps)):
            rows = _ordered_by(rows, place, step, descending)
    return rows


def _ordered_by(columns: list[TableColumn], place: int, step: int, descending: bool) -> list[TableColumn]:
    of = columns[place]
    key = of._columns(descending)[step] if isinstance(of, Typed) else of
    beside = [numbers_of(column) for column in columns]
    is_number = not isinstance(of, Typed)
    if is_number:
        beside[place] = []
    first, *others = sort_by(key, *(row for rows in beside for row in rows), descending=descending and is_number)
    results = []
    for column, rows in zip(columns, beside, strict=True):
        moved, others = others[: len(rows)], others[len(rows) :]
        results.append(of_numbers(column, moved) if rows else first)
    return results


def joined(columns: Sequence[TableColumn]) -> TableColumn:
    """Columns one behind the other: units of dates meet, text is as long as the longest, labels are united, and text
    beside labels becomes labels.

    Raises DTypeError for columns that do not go together. No I/O of its own, but for text beside labels: as
    `Text.categories`.
    """
    if {type(column) for column in columns} == {Categorical, Text}:
        columns = [_labelled(column) if isinstance(column, Text) else column for column in columns]
    first = columns[0]
    if all(type(column) is type(first) for column in columns) or not any(isinstance(part, Typed) for part in columns):
        if isinstance(first, Dates):
            dates = meet(*cast("Sequence[Dates]", columns))
            return Dates(concat([part.integers for part in dates]), dates[0].dtype)
        if isinstance(first, Text):
            return _joined_text(cast("Sequence[Text]", columns))
        if isinstance(first, Categorical):
            united = _united(cast("Sequence[Categorical]", columns))
            return Categorical(concat([part.codes for part in united]), united[0].labels)
        return concat(cast("Sequence[Array]", columns))
    raise DTypeError(f"{' and '.join(dict.fromkeys(map(kind_of, columns)))} do not go together in one column")


def _labelled(column: Text) -> Categorical:
    """Text as labels, the distinct strings of it."""
    codes, names = column.categories()
    labels = [name.decode() if isinstance(name, bytes) else str(name) for name in names.compute()]
    return Categorical(codes.astype(np.int32), labels)


def _united(columns: Sequence[Categorical]) -> list[Categorical]:
    labels = sorted({label for column in columns for label in column.labels})
    return [column if list(column.labels) == labels else column.with_labels(labels) for column in columns]


def _joined_text(columns: Sequence[Text]) -> Text:
    if len({column.dtype.kind for column in columns}) > 1:
        raise DTypeError(f"{' and '.join(str(column.dtype) for column in columns)} do not go together; encode one")
    longest = max(columns, key=lambda column: column.codes.shape[-1])
    length = longest.codes.shape[-1]
    rows = [pad(column.codes, ((0, 0), (0, length - column.codes.shape[-1]))) for column in columns]
    return Text(concat(rows), longest.dtype)


def picked(column: TableColumn, places: NDArray) -> TableColumn:
    """The elements at some places. I/O: as `oc.take`."""
    if isinstance(column, Text):
        return Text(take(column.codes, places, axis=0), column.dtype)
    if isinstance(column, Typed):
        return column._like(take(carried(column), places))
    return take(column, places)


def with_missing(column: TableColumn, absent: Array) -> TableColumn:
    """The column with missing elements where a flag is: NaN (integers and truths become float64), NaT, no label, or
    the empty string."""
    if isinstance(column, Dates):
        return Dates(where(absent, Array(node(np.int64(np.iinfo(np.int64).min))), column.integers), column.dtype)
    if isinstance(column, Categorical):
        return column._like(where(absent, Array(node(np.int32(-1))), column.codes))
    if isinstance(column, Text):
        letters = column.codes
        nothing = Array(node(letters.dtype.type(0)))
        return Text(where(absent[:, None], nothing, letters), column.dtype)
    assert isinstance(column, Array)
    dtype: DType = column.dtype if column.dtype.kind in "fc" else np.dtype(np.float64)
    return where(absent, Array(node(dtype.type(np.nan))), column.astype(dtype))


__all__ = [
    "TableColumn",
    "Deferred",
    "chosen",
    "column_of",
    "is_pending",
    "is_unknown",
    "joined",
    "kind_of",
    "missing",
    "numbers_of",
    "of_numbers",
    "ordered",
    "picked",
    "with_missing",
]
