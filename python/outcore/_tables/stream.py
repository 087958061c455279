"""Columns as a stream of batches: for Arrow's C stream and for files that are written row group by row group.

**Contract.** A batch is one program, of whole tiles, and takes 16 MiB or 1/32 of the memory at most. Columns that are
more than stored arrays, element by element, are computed once, all together, and held in scratch while the stream is
read. Each batch is given back before the next is computed, if its reader lets go of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextvars import copy_context
from typing import TYPE_CHECKING

from outcore import _core
from outcore._base.types import NDArray
from outcore._lazy.array import Array
from outcore._lazy.typed import Typed, carried
from outcore._run import masks
from outcore._run.run import compute
from outcore._session.session import current
from outcore._tables.arrow import arrow, as_arrow, field_of
from outcore._tables.categorical import Categorical
from outcore._tables.columns import TableColumn

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH_BYTES = 16 << 20
_SHARE = 32  # of the memory, for a batch


def held(columns: Mapping[str, TableColumn]) -> dict[str, TableColumn]:
    """The same columns, those that are more than stored arrays held in scratch; all from one program."""
    carriers = {name: carried(column) for name, column in columns.items()}
    costly = [name for name, array in carriers.items() if array.shape[0] and not _core.is_made_of_stored(array._expr)]
    numbers = dict(zip(costly, masks.hold(*(carriers[name]._expr for name in costly)), strict=True)) if costly else {}
    made: dict[str, TableColumn] = {}
    for name, column in columns.items():
        if name not in numbers:
            made[name] = column
        else:
            array = Array(numbers[name])
            made[name] = column._like(array) if isinstance(column, Typed) else array
    return made


def width(columns: Mapping[str, TableColumn]) -> int:
    """Bytes of a row."""
    arrays = [carried(column) for column in columns.values()]
    bytes: int = sum(array.nbytes // max(array.shape[0], 1) for array in arrays)
    return max(bytes, 1)


def rows_of_batch(columns: Mapping[str, TableColumn]) -> int:
    """Rows of a batch: whole tiles where those fit."""
    arrays = [carried(column) for column in columns.values()]
    room: int = min(current().counters()["budget_bytes"] // _SHARE, _BATCH_BYTES)
    rows: int = max(room // width(columns), 1)
    tile: int = max((array.tile[0] for array in arrays), default=1)
    whole: int = rows // tile * tile
    return whole or rows


def batches(columns: Mapping[str, TableColumn], rows: int) -> Iterator[list[NDArray]]:
    """The values of neighbouring rows, a batch at a time. I/O: one read of the columns."""
    # Labels go as their codes.
    arrays = [column.codes if isinstance(column, Categorical) else column for column in columns.values()]
    length = len(arrays[0]) if arrays else 0
    for start in range(0, length, rows):
        values = compute(*(array[start : start + rows] for array in arrays))
        yield list(values) if len(arrays) > 1 else [values]
        del values  # memory of the session, which the next batch needs


def record_batches(columns: Mapping[str, TableColumn]) -> pa.RecordBatchReader:
    """Arrow's reader of the rows; columns are held at once where they must be."""
    arrow("Table.__arrow_c_stream__")
    import pyarrow as pa

    schema = pa.schema([field_of(name, column) for name, column in columns.items()])
    # Readers ask from threads of theirs, where the session of this one would not be in use.
    context, ready = copy_context(), held(columns)

    def make() -> Iterator[pa.RecordBatch]:
        parts = batches(ready, context.run(rows_of_batch, ready))
        while True:
            values = context.run(next, parts, None)
            if values is None:
                return
            fields = zip(schema, ready.values(), values, strict=True)
            yield pa.record_batch([as_arrow(*part) for part in fields], schema=schema)

    return pa.RecordBatchReader.from_batches(schema, make())


def capsule(columns: Mapping[str, TableColumn], requested_schema: object) -> object:
    """The reader as Arrow's C interface has it."""
    return record_batches(columns).__arrow_c_stream__(requested_schema)


__all__ = ["batches", "capsule", "held", "record_batches", "rows_of_batch", "width"]
