"""Streams of Arrow's batches as tables whose columns are stored."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from outcore._base.arrow_numbers import indices_of
from outcore._base.types import NDArray, PathLike
from outcore._tables.arrow import ColumnTypes, Field, Nulls, arrow, check_nulls
from outcore._tables.stored import StoredColumn, StoredTable, columns_of, storing
from outcore._tables.table import Table
from outcore.errors import ArgumentError, DTypeError, IndexingError, RangeError

if TYPE_CHECKING:
    import pyarrow as pa

# Memory for the parts that are on their way: a batch of others' is as large as they make it, and cut.
_STREAM_BYTES = 16 << 20
_PART_BYTES = 2 << 20
_LABELS_MAX = 1 << 20


class ArrowStream(Protocol):
    """Anything that speaks Arrow's C stream interface: frames of Polars and pandas, relations of DuckDB, tables and
    readers of pyarrow."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


def fields_of(
    schema: pa.Schema, columns: Iterable[str] | None, dtypes: ColumnTypes | None, nulls: Nulls, what: str
) -> list[Field]:
    """Columns of a schema that are asked for; strings are labels unless a dtype says else. Raises IndexingError."""
    names = list(schema.names) if columns is None else list(columns)
    wishes = dict(dtypes or {})
    for name in [*names, *wishes]:
        if name not in schema.names:
            raise IndexingError(f"{what}: no column {name!r}; columns are {', '.join(schema.names) or 'none'}")
    made = []
    for name in names:
        field = schema.field(name)
        made.append(Field(field, nulls, wishes.get(name)))
        if made[-1].refusal is not None and name not in wishes:
            as_labels = Field(field, nulls, "category")
            made[-1] = made[-1] if as_labels.refusal is not None else as_labels
    return made


class Ingest:
    """The parts of columns on their way into files. **Invariant.** Codes are numbers of labels in the order in which
    these came, until `end` has all in order."""

    def __init__(self, table: StoredTable, what: str, empty_is_missing: bool = False) -> None:
        self._table, self._what = table, what
        self._empty_is_missing = empty_is_missing  # among labels
        for column in table.columns:
            column.field.check(what)
            if column.field.kind.kind in "iub" and not column.field.is_category:
                column.field.has_nulls = False
                column.field.dtype = column.field.kind

    def add(self, parts: Iterable[pa.Array]) -> None:
        """Takes the next rows."""
        for column, part in zip(self._table.columns, parts, strict=True):
            column.append(self._numbers(column, part))

    def _numbers(self, column: StoredColumn, part: pa.Array) -> NDArray:
        field = column.field
        if field.is_category:
            return self._codes(column, part)
        if part.null_count and field.nulls == "nan" and field.has_nulls is False and field.kind.kind in "iub":
            field.has_nulls = True
            column.rewrite(self._widened(field), np.dtype(np.float64))
        return field.numbers(part, self._what)

    def _widened(self, field: Field) -> Callable[[NDArray], NDArray]:
        def change(numbers: NDArray) -> NDArray:
            floats = numbers.astype(np.float64)
            if numbers.dtype.itemsize == 8 and bool((np.abs(floats) > 2.0**53).any()):
                raise RangeError(
                    f"{self._what}: column {field.name!r} has missing elements, and integers that float64 does not "
                    f"hold exactly; nulls='mask' keeps them integers"
                )
            return floats

        return change

    def _codes(self, column: StoredColumn, part: pa.Array) -> NDArray:
        import pyarrow as pa

        if column.field.nulls == "error" and part.null_count:
            raise DTypeError(f"{self._what}: {part.null_count} missing elements in column {column.field.name!r}")
        if not pa.types.is_dictionary(part.type):
            part = part.dictionary_encode()
        known, table = column.codes, np.full(len(part.dictionary) + 1, -1, dtype=np.int32)
        for place, label in enumerate(part.dictionary.to_pylist()):
            if label is not None and (label or not self._empty_is_missing):
                table[place] = known.setdefault(label, len(known))
        if len(known) > _LABELS_MAX:
            raise DTypeError(
                f"{self._what}: column {column.field.name!r} has more than {_LABELS_MAX} distinct strings; "
                f"dtypes={{{column.field.name!r}: 'U12'}} has it as text of a length"
            )
        return table[indices_of(part, len(table) - 1)]

    def end(self) -> Table:
        """The table of all rows."""
        for column in self._table.columns:
            if column.field.is_category:
                labels = sorted(column.codes)
                column.field.labels = tuple(labels)
                if list(column.codes) != labels:
                    order = np.full(len(labels) + 1, -1, dtype=np.int32)
                    order[[column.codes[label] for label in labels]] = np.arange(len(labels))
                    column.rewrite(order.__getitem__, np.dtype(np.int32))
        return Table(self._table.end())


def from_arrow(
    source: ArrowStream,
    /,
    *,
    path: PathLike | None = None,
    columns: Iterable[str] | None = None,
    dtypes: ColumnTypes | None = None,
    nulls: Nulls = "nan",
) -> Table:
    """A table of what any library hands over as Arrow's C stream: stored batch by batch, in scratch or a new folder.

    `source` has `__arrow_c_stream__`, as frames of Polars and pandas, relations of DuckDB and readers of pyarrow do.
    `path` names a folder for the columns, which `open_table` opens again; scratch goes with the table. `columns`
    chooses some. Types as in `read_parquet`, but that strings become labels unless `dtypes` names a length for them,
    and that integers are float64 only if an element is missing (`nulls`).

    Raises ArgumentError for a source without a stream, IndexingError for a name that is no column, DTypeError for a
    column that has no place here, RangeError, TargetExistsError for a folder that is there, MemoryLimitError, and
    ImportError without pyarrow. I/O: one write of the columns; one read and one more write of integers among which an
    element is missing, and of labels that do not come in order. The batch that is on its way is the other library's.

    >>> import outcore as oc, pyarrow as pa
    >>> t = oc.from_arrow(pa.table({"id": [1, None, 3], "city": ["rome", "oslo", "rome"]}))
    >>> t.compute()
    {'id': array([ 1., nan,  3.]), 'city': array(['rome', 'oslo', 'rome'], dtype=object)}
    """
    arrow("from_arrow")
    import pyarrow as pa

    check_nulls("from_arrow", nulls)
    if not hasattr(source, "__arrow_c_stream__"):
        raise ArgumentError(f"from_arrow: {type(source).__name__} has no __arrow_c_stream__")
    reader = pa.RecordBatchReader.from_stream(source)
    return ingested("from_arrow", reader, fields_of(reader.schema, columns, dtypes, nulls, "from_arrow"), path)


def ingested(what: str, reader: pa.RecordBatchReader, fields: Sequence[Field], path: PathLike | None) -> Table:
    """The table of fields of a stream, whose columns are stored at `path` or in scratch."""
    places = [reader.schema.get_field_index(field.name) for field in fields]
    with storing(fields, path, what, _STREAM_BYTES) as table:
        ingest = Ingest(table, what)
        for batch in reader:
            rows = max(_PART_BYTES * batch.num_rows // max(batch.nbytes, 1), 1) if batch.num_rows else 1
            for start in range(0, batch.num_rows, rows):
                part = batch.slice(start, rows)
                ingest.add(part.column(place) for place in places)
        return ingest.end()


def open_table(path: PathLike) -> Table:
    """The table in a folder that `from_arrow` or `read_csv` has stored columns in.

    Each column is a `.npy` file there, of NumPy's own types (labels: int32 codes). Raises MissingFileError,
    FormatError. I/O: headers only.

    >>> import outcore as oc, pyarrow as pa, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> _ = oc.from_arrow(pa.table({"id": [1, 2]}), path=f"{folder}/t")
    >>> oc.open_table(f"{folder}/t")["id"].compute()
    array([1, 2])
    """
    return Table(columns_of(path))


__all__ = ["ArrowStream", "from_arrow", "open_table"]
