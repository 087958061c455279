"""Text of numbers, dates and labels (CSV, TSV) as tables whose columns are stored.

**Contract.** A file is read once, from its beginning, in blocks that end where a record ends: behind the last line feed
before which all quotes are closed. Blocks are parsed by pyarrow in as many threads as the session has, and appended to
the columns in their order; so many blocks and two more are in memory, with four times their bytes each. Types are those
of the first block unless `dtypes` names them, and hold for all others: an element that is not of its column's type is
refused with the number of its line, as a record with more or fewer fields is.
"""

from __future__ import annotations

import csv
import os
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from typing import IO, TYPE_CHECKING, NamedTuple

import numpy as np

from outcore._base import files
from outcore._base.system_errors import refusing
from outcore._base.threads import thread_pool
from outcore._base.types import PathLike
from outcore._base.urls import refuse_url
from outcore._opening.several import parts_of
from outcore._session.session import current
from outcore._tables.arrow import ColumnTypes, Field, Nulls, arrow, check_nulls
from outcore._tables.ingest import Ingest
from outcore._tables.quotes import check_quotes, end_of_records
from outcore._tables.stored import storing
from outcore._tables.table import Table
from outcore.errors import ArgumentError, DTypeError, FormatError, IndexingError

if TYPE_CHECKING:
    from concurrent.futures import Future

    import pyarrow as pa

_BLOCK_BYTES, _BLOCK_BYTES_MIN = 1 << 20, 64 << 10
_BLOCKS_MORE = 2  # in memory beside those that are parsed
_COPIES = 4  # of a block: its text, Arrow's elements, NumPy's
_RECORD_BYTES_MAX = 64 << 20
_MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None")
_COMPRESSED = {".gz": "gzip", ".zst": "zstd"}


class _Block(NamedTuple):
    """Whole records, and the number of the line in which the first begins."""

    text: bytes
    line: int


class _Text:
    """A file of records, as blocks."""

    def __init__(self, path: str, block_bytes: int, delimiter: str) -> None:
        self.path = path
        self._bytes, self._delimiter = block_bytes, delimiter

    def _opened(self) -> IO[bytes]:
        import pyarrow as pa

        with refusing(self.path, "open"):
            codec = _COMPRESSED.get(os.path.splitext(self.path)[1].lower())
            if codec is None:
                return files.reading(self.path)
            files.refuse_stub(self.path, "pyarrow")
            stream: IO[bytes] = pa.input_stream(self.path, compression=codec)
            return stream

    def blocks(self) -> Iterator[_Block]:
        """Blocks of whole records. Raises FormatError for compressed data that is cut off, and for endless records."""
        line, remainder = 1, b""
        with closing(self._opened()) as file:
            while True:
                try:
                    with refusing(self.path, "read"):
                        read = file.read(self._bytes)
                except (OSError, EOFError) as error:
                    if getattr(error, "errno", None) is not None:
                        raise
                    raise FormatError(f"{self.path}: line {line}: {error}", {"path": self.path}) from None
                text = remainder + read if remainder else read
                end = len(text) if not read else end_of_records(text, self._delimiter)
                if end:
                    yield _Block(text[:end], line)
                    line += text.count(b"\n", 0, end)
                if not read:
                    return
                remainder = text[end:]
                if len(remainder) > _RECORD_BYTES_MAX:
                    raise FormatError(
                        f"{self.path}: line {line}: a record of more than {_RECORD_BYTES_MAX >> 20} MiB; is a quote "
                        f"never closed?",
                        {"path": self.path, "line": line},
                    )


def _line_of(block: _Block, row: int) -> int:
    """The line in which a record of a block begins; empty lines are none."""
    line, quotes, rows, is_new = block.line, 0, 0, True
    for part in block.text.split(b"\n"):
        if is_new and part.strip(b"\r"):
            rows += 1
            if rows == row:
                return line
        quotes += part.count(b'"')
        is_new = quotes % 2 == 0
        line += 1
    return line


class _Parser:
    """Blocks as Arrow's tables, by names, types and a separator."""

    def __init__(self, names: Sequence[str], delimiter: str, wishes: ColumnTypes) -> None:
        self.names = list(names)
        self._delimiter = delimiter
        self._types = {name: _arrow_type(name, wish) for name, wish in wishes.items()}

    def fix(self, first: pa.Table) -> None:
        """Has the types of the first block hold for all."""
        import pyarrow as pa

        for field in first.schema:
            of = field.type
            if pa.types.is_null(of):
                of = pa.float64()
            elif pa.types.is_string(of):
                of = pa.dictionary(pa.int32(), pa.string())
            elif pa.types.is_binary(of):
                raise DTypeError(f"column {field.name!r} is no text in UTF-8")
            self._types.setdefault(field.name, of)

    def prefer(self, name: str, of: pa.DataType, path: str, block: _Block) -> None:
        """Has a column without a type be of one that all elements of a block are of."""
        if name in self._types:
            return
        self._types[name] = of
        try:
            self.parsed(path, block, [name])
        except FormatError:
            del self._types[name]

    def schema(self) -> pa.Schema:
        """All columns, with their types."""
        import pyarrow as pa

        return pa.schema([(name, self._types[name]) for name in self.names])

    def parsed(self, path: str, block: _Block, columns: Sequence[str] | None = None) -> pa.Table:
        """The records of a block. Raises FormatError, with the line."""
        import pyarrow as pa
        from pyarrow import csv as reader

        check_quotes(path, block.text, block.line, self._delimiter)
        try:
            return reader.read_csv(
                pa.BufferReader(block.text),
                reader.ReadOptions(use_threads=False, column_names=self.names, block_size=len(block.text) + 1),
                reader.ParseOptions(delimiter=self._delimiter),
                reader.ConvertOptions(
                    column_types=self._types, null_values=_MISSING, include_columns=list(columns or ())
                ),
            )
        except pa.ArrowInvalid as error:
            raise self._refusal(path, block, str(error)) from None

    def _refusal(self, path: str, block: _Block, text: str) -> FormatError:
        row = re.search(r"Row #(\d+): ", text)
        line = block.line if row is None else _line_of(block, int(row[1]))
        text = text if row is None else text.replace(row[0], "")
        column = re.search(r"In CSV column #(\d+): ", text)
        if column is not None:
            name = self.names[int(column[1])]
            text = f"column {name!r}: {text.replace(column[0], '')}; dtypes={{{name!r}: …}} names another type"
        text = text.replace("CSV parse error: ", "").replace("CSV conversion error ", "no conversion ")
        return FormatError(f"{path}: line {line}: {text}", {"path": path, "line": line})


def _arrow_type(name: str, wish: str) -> pa.DataType:
    import pyarrow as pa

    if wish == "category":
        return pa.dictionary(pa.int32(), pa.string())
    try:
        kind = np.dtype(wish)
    except TypeError as error:
        raise DTypeError(f"read_csv: dtypes[{name!r}]={wish!r}: {error}") from None
    if kind.kind in "SU":
        return pa.string()
    if kind.kind == "M":
        unit = np.datetime_data(kind)[0]
        if unit in ("D", "s", "ms", "us", "ns"):
            return pa.date32() if unit == "D" else pa.timestamp(unit)
    if kind.kind in "biuf" and kind.itemsize > (2 if kind.kind == "f" else 0):
        return pa.from_numpy_dtype(kind)
    raise DTypeError(f"read_csv: dtypes[{name!r}]={wish!r} is no type that text is read as")


def _header(path: str, block: _Block, delimiter: str) -> tuple[list[str], _Block]:
    """The names in the first line, and the records behind it. Raises FormatError for a name that is there twice."""
    first, _, remainder = block.text.removeprefix(b"\xef\xbb\xbf").partition(b"\n")
    try:
        names = next(csv.reader([first.decode().rstrip("\r")], delimiter=delimiter, strict=True), [])
    except UnicodeDecodeError as error:
        way = "; use outcore.read_parquet" if block.text.startswith(b"PAR1") else ""
        raise FormatError(f"{path}: line 1: is no text in UTF-8: {error}{way}", {"path": path, "line": 1}) from None
    except csv.Error as error:
        raise FormatError(f"{path}: line 1: {error}", {"path": path, "line": 1}) from None
    twice = {name for name in names if names.count(name) > 1}
    if not names or twice:
        said = f"{min(twice)!r} is there twice" if twice else "no names"
        raise FormatError(f"{path}: line 1: {said}; pass names=", {"path": path, "line": 1})
    return names, _Block(remainder, block.line + 1)


class _Reading:
    """All files of one call, as blocks behind their headers."""

    def __init__(self, paths: Sequence[str], names: Sequence[str] | None, delimiter: str, block_bytes: int) -> None:
        self._paths, self._delimiter, self._bytes = paths, delimiter, block_bytes
        self._has_header = names is None
        self.names = None if names is None else list(names)

    def blocks(self) -> Iterator[tuple[str, _Block]]:
        """Blocks of all files. Raises FormatError for files with different names of columns, and for empty ones."""
        for path in self._paths:
            is_first = self._has_header
            for block in _Text(path, self._bytes, self._delimiter).blocks():
                if is_first:
                    names, block = _header(path, block, self._delimiter)
                    if self.names not in (None, names):
                        raise FormatError(
                            f"{path}: line 1: columns {', '.join(names)}; in {self._paths[0]} they are "
                            f"{', '.join(self.names or ())}",
                            {"path": path, "line": 1},
                        )
                    self.names, is_first = names, False
                if block.text.strip():
                    yield path, block
            if is_first:
                raise FormatError(f"{path}: line 1: is empty, and has no names of columns", {"path": path, "line": 1})


def read_csv(
    path: PathLike | Sequence[PathLike],
    *,
    columns: Iterable[str] | None = None,
    dtypes: ColumnTypes | None = None,
    names: Sequence[str] | None = None,
    delimiter: str | None = None,
    nulls: Nulls = "nan",
    folder: PathLike | None = None,
) -> Table:
    """The table in a file of text, or in several (a list, or a name with wildcards), parsed once and stored.

    Names that end in `.gz` or `.zst` are decompressed on the way; of `.tsv` (`.tsv.gz`) the separator is a tab, else a
    comma unless `delimiter` says so. The first line names the columns, unless `names` does. Numbers, truths, dates and
    times of ISO 8601 are recognized by the first block (1 MiB), integers beyond int64 as uint64, all else becomes
    labels (`Categorical`); `dtypes` says it otherwise: a type of NumPy's, "category", or the length of text, such as
    "U12". `columns` chooses some. Empty fields, `NA`, `NaN`, `null` and the like are missing among numbers and dates,
    empty ones among labels: see `nulls` in `from_arrow`. `folder` keeps the columns in a new folder, which `open_table`
    opens; scratch goes with the table.

    Raises MissingFileError, FormatError with the number of the line for records with more or fewer fields, for quotes
    that are never closed, or within a field that has further lines, and for elements that are not of the type of their
    column, IndexingError for a name that is no column, DTypeError,
    TargetExistsError, MemoryLimitError, ImportError without pyarrow. I/O: one read of the file, one write of the
    columns; one read and one write more of integers among which an element is missing, and of labels.

    >>> import outcore as oc, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "t.csv"
    >>> _ = path.write_text("day,price,city\\n2024-02-28,1.5,oslo\\n2024-03-01,,rome\\n")
    >>> t = oc.read_csv(path)
    >>> t["price"].compute(), t.dtypes["day"], t.filter(t["city"] == "rome")["day"].compute()
    (array([1.5, nan]), 'datetime64[D]', array(['2024-03-01'], dtype='datetime64[D]'))
    """
    arrow("read_csv")
    check_nulls("read_csv", nulls)
    paths = parts_of(path) or [os.fsdecode(path)]  # type: ignore[arg-type]
    for path in paths:
        refuse_url(path, "read_csv reads files, not objects")
    if delimiter is None:
        plain = paths[0].lower().removesuffix(".gz").removesuffix(".zst")
        delimiter = "\t" if plain.endswith((".tsv", ".tab")) else ","
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n':
        raise ArgumentError(f"read_csv: delimiter={delimiter!r} is no single character")
    threads = int(current().options["threads"] or len(os.sched_getaffinity(0)))
    parts = threads + _BLOCKS_MORE
    room = current().counters()["budget_bytes"] // (2 * _COPIES * parts)
    block_bytes = min(max(room, _BLOCK_BYTES_MIN), _BLOCK_BYTES)
    reading = _Reading(paths, names, delimiter, block_bytes)
    blocks = reading.blocks()
    first = next(blocks, None)
    wishes = dict(dtypes or {})
    known = reading.names or []
    chosen = known if columns is None else list(columns)
    for name in [*chosen, *wishes]:
        if name not in known:
            raise IndexingError(f"{paths[0]}: no column {name!r}; columns are {', '.join(known)}")
    parser = _Parser(known, delimiter, wishes)
    parser.fix(_first(parser, first))
    schema = parser.schema()
    fields = [Field(schema.field(name), nulls, wishes.get(name)) for name in chosen]
    with storing(fields, folder, "read_csv", block_bytes * _COPIES * parts) as table:
        ingest = Ingest(table, paths[0], empty_is_missing=True)
        for parsed in _parsed(parser, chosen, first, blocks, threads):
            for batch in parsed.to_batches():
                ingest.add(batch.columns)
        return ingest.end()


def _first(parser: _Parser, first: tuple[str, _Block] | None) -> pa.Table:
    """The records that types are known by."""
    import pyarrow as pa

    if first is None:
        return pa.table({name: pa.nulls(0) for name in parser.names})
    records = parser.parsed(*first)
    for field in records.schema:
        if pa.types.is_float64(field.type) and _largest(records[field.name]) >= 2.0**63:
            parser.prefer(field.name, pa.uint64(), *first)
    return records


def _largest(column: pa.ChunkedArray) -> float:
    import pyarrow.compute as pc

    largest = pc.max(column).as_py()
    return 0.0 if largest is None else float(largest)


def _parsed(
    parser: _Parser,
    columns: Sequence[str],
    first: tuple[str, _Block] | None,
    blocks: Iterator[tuple[str, _Block]],
    threads: int,
) -> Iterator[pa.Table]:
    """The blocks in their order, parsed in threads."""
    due: deque[Future[pa.Table]] = deque()
    with thread_pool(threads) as pool:
        try:
            if first is not None:
                due.append(pool.submit(parser.parsed, *first, columns))
            for path, block in blocks:
                due.append(pool.submit(parser.parsed, path, block, columns))
                while len(due) > threads:
                    yield due.popleft().result()
            while due:
                yield due.popleft().result()
        finally:
            for future in due:
                future.cancel()


__all__ = ["read_csv"]
