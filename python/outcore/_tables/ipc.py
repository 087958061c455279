"""Files of Arrow's own format (IPC: `.arrow`, `.feather` of version 2, streams) as tables whose columns are stored."""

from __future__ import annotations

import mmap
import os
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from outcore._base import files
from outcore._base.system_errors import refusing
from outcore._base.types import PathLike
from outcore._base.urls import refuse_url
from outcore._opening.several import parts_of
from outcore._tables.arrow import ColumnTypes, Nulls, arrow, check_nulls
from outcore._tables.ingest import fields_of, ingested
from outcore._tables.table import Table
from outcore.errors import FormatError

if TYPE_CHECKING:
    import pyarrow as pa

_PART_BYTES = 8 << 20


def read_arrow(
    path: PathLike | Sequence[PathLike],
    *,
    columns: Iterable[str] | None = None,
    dtypes: ColumnTypes | None = None,
    nulls: Nulls = "nan",
    folder: PathLike | None = None,
) -> Table:
    """The table in a file of Arrow's own format, or in several (a list, or a name with wildcards), read and stored.

    Files (`.arrow`, `.feather` of version 2) and streams are told apart by their first bytes. `columns` chooses some.
    Types, labels and `nulls` are those of `from_arrow`. `folder` keeps the columns in a new folder, which `open_table`
    opens; scratch goes with the table. A batch of a compressed file is in memory whole, with all its columns, as large
    as it was written; others are mapped, and go through memory in parts.

    Raises MissingFileError, FormatError for other files, those cut off, and files with different columns, IndexingError
    for a name that is no column, DTypeError, RangeError, TargetExistsError, MemoryLimitError, ImportError without
    pyarrow. I/O: one read of the columns, one write; one read and one write more as in `from_arrow`.

    >>> import outcore as oc, pyarrow as pa, pyarrow.feather, tempfile
    >>> path = f"{tempfile.mkdtemp()}/t.feather"
    >>> pyarrow.feather.write_feather(pa.table({"id": [1, 2], "city": ["rome", "oslo"]}), path)
    >>> oc.read_arrow(path).compute()
    {'id': array([1, 2]), 'city': array(['rome', 'oslo'], dtype=object)}
    """
    arrow("read_arrow")
    import pyarrow as pa

    check_nulls("read_arrow", nulls)
    paths = parts_of(path) or [os.fsdecode(path)]  # type: ignore[arg-type]
    for path in paths:
        refuse_url(path, "read_arrow reads files, not objects")
    with _opened(paths[0]) as (schema, _):
        fields = fields_of(schema, columns, dtypes, nulls, paths[0])
    names = [field.name for field in fields]
    chosen = pa.schema([schema.field(name) for name in schema.names if name in names])
    with closing(_batches(paths, chosen, schema)) as batches:
        return ingested(paths[0], pa.RecordBatchReader.from_batches(chosen, batches), fields, folder)


def _batches(paths: Sequence[str], chosen: pa.Schema, schema: pa.Schema) -> Generator[pa.RecordBatch]:
    for path in paths:
        with _opened(path) as (part, batches):
            if not part.equals(schema):
                here, first = (", ".join(f"{field.name}: {field.type}" for field in of) for of in (part, schema))
                raise FormatError(f"{path}: columns {here}; in {paths[0]} they are {first}", {"path": path})
            yield from (batch.select(chosen.names) for batch in batches)


@contextmanager
def _opened(path: str) -> Iterator[tuple[pa.Schema, Iterator[pa.RecordBatch]]]:
    """The columns of a file, and its batches. Raises FormatError for errors of pyarrow's within."""
    import pyarrow as pa
    from pyarrow import ipc

    with refusing(path, "open"):
        files.refuse_stub(path, "pyarrow")
        with open(path, "rb") as file:
            is_empty = os.fstat(file.fileno()).st_size == 0
            mapped = None if is_empty else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    try:
        if mapped is None:
            raise EOFError("it is empty")
        content = pa.py_buffer(mapped)  # batches are views of it; pyarrow copies those of which it reads some columns
        if mapped[:6] == b"ARROW1":
            reader = ipc.open_file(content)
            yield reader.schema, _parts(mapped, (reader.get_batch(at) for at in range(reader.num_record_batches)))
        else:
            stream = ipc.open_stream(content)
            yield stream.schema, _parts(mapped, stream)
    except (pa.ArrowInvalid, EOFError, OSError) as error:
        if getattr(error, "errno", None) is not None:
            raise
        text = " ".join(str(error).split())
        raise FormatError(f"{path}: no file of Arrow's format, or cut off: {text}", {"path": path}) from None


def _parts(mapped: mmap.mmap, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Parts of batches; pages of the file, which count as memory of the process, are let go of behind each."""
    for batch in batches:
        rows = max(_PART_BYTES * batch.num_rows // max(batch.nbytes, 1), 1)
        for start in range(0, batch.num_rows, rows):
            yield batch.slice(start, rows)
            mapped.madvise(mmap.MADV_DONTNEED)


__all__ = ["read_arrow"]
