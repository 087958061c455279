"""Tables as Parquet and Arrow IPC files.

**Contract.** The file is written beside its name, one row group at a time, synced and renamed: it is there whole, or
what was there before is. Columns that are more than stored arrays are computed once and held in scratch before the
first row group is written; each row group is one program. Memory: a row group's elements, and three times
their bytes for what pyarrow makes of them, which is reserved.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from outcore._base import files
from outcore._base.arguments import whole
from outcore._base.system_errors import refusing
from outcore._base.types import PathLike
from outcore._run.typed_files import output, publish
from outcore._tables.arrow import arrow, as_arrow, field_of
from outcore._tables.categorical import Categorical
from outcore._tables.columns import TableColumn
from outcore._tables.memory import working
from outcore._tables.stream import batches, held, rows_of_batch, width
from outcore._tables.table import Table, table
from outcore.errors import ArgumentError
from outcore.text import Text

if TYPE_CHECKING:
    import pyarrow as pa

_CODECS = ("zstd", "snappy", "gzip", "lz4", "brotli", "none")
# Of a row group: Arrow's elements, encoded ones, compressed ones; and what pyarrow has beside them.
_COPIES, _LEAST_BYTES = 3, 32 << 20


def _written(
    what: str,
    columns: Mapping[str, TableColumn],
    rows: int | None,
    write: Callable[[pa.Schema, Iterator[pa.RecordBatch]], None],
) -> None:
    import pyarrow as pa

    schema = pa.schema([field_of(name, column) for name, column in columns.items()])
    ready = held(columns)
    rows = rows or rows_of_batch(ready)

    def make() -> Iterator[pa.RecordBatch]:
        for values in batches(ready, rows):
            yield pa.record_batch(
                [as_arrow(*part) for part in zip(schema, ready.values(), values, strict=True)], schema
            )

    with working(what, _LEAST_BYTES + _COPIES * rows * width(ready)):
        write(schema, make())


def _columns(what: str, source: Table | Mapping[str, object]) -> dict[str, TableColumn]:
    arrow(what)
    of = source if isinstance(source, Table) else table(source)
    if not of.columns:
        raise ArgumentError(f"{what}: the table has no columns")
    return {name: of[name] for name in of.columns}


def to_parquet(
    source: Table | Mapping[str, object],
    path: PathLike,
    *,
    compression: str = "zstd",
    row_group_rows: int | None = None,
    overwrite: bool = False,
) -> None:
    """Writes a table, or arrays by name, to a Parquet file, one row group at a time, all or nothing.

    `compression` is pyarrow's: "zstd", "snappy", "gzip", "lz4", "brotli", "none". Row groups are whole tiles of 16 MiB,
    or 1/32 of the memory, at most, unless `row_group_rows` says how many rows they have. NaT and missing
    labels are nulls, NaN stays a number. Text is written as strings, and says its length in the schema.

    Raises TargetExistsError without `overwrite`, DTypeError for complex numbers, ArgumentError, ShapeError for arrays
    of different lengths, MemoryLimitError, StorageError, ImportError without pyarrow. I/O: columns that are more than
    stored arrays are held in scratch first; then one read of all columns, and one write.

    >>> import numpy as np, outcore as oc, pyarrow.parquet, tempfile
    >>> path = f"{tempfile.mkdtemp()}/t.parquet"
    >>> oc.to_parquet({"x": oc.arange(5)}, path)
    >>> pyarrow.parquet.read_table(path)["x"].to_pylist()
    [0, 1, 2, 3, 4]
    """
    columns = _columns("to_parquet", source)
    import pyarrow.parquet as pq

    if row_group_rows is not None:
        whole("to_parquet", 2**63 - 1, row_group_rows=row_group_rows)
    if row_group_rows == 0:
        raise ArgumentError("to_parquet: row_group_rows=0, and a row group has one row at least")
    if compression not in _CODECS:
        raise ArgumentError(f"to_parquet: compression={compression!r} is none of {', '.join(_CODECS)}")
    # A dictionary of numbers takes more memory than the row group has.
    strings = [name for name, column in columns.items() if isinstance(column, (Categorical, Text))]
    with output(os.fspath(path), overwrite) as place:

        def write(schema: pa.Schema, parts: Iterator[pa.RecordBatch]) -> None:
            with pq.ParquetWriter(place.new, schema, compression=compression, use_dictionary=strings) as writer:
                for part in parts:
                    writer.write_batch(part, row_group_size=max(part.num_rows, 1))

        with refusing(place.path, "write"):
            _written("to_parquet", columns, row_group_rows, write)
            files.sync(place.new)
        publish([place])


__all__ = ["to_parquet"]
