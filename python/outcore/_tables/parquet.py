"""Parquet and Arrow IPC files as tables.

**Contract.** A file's footer is read when it is opened, and nothing else. Columns that the engine decodes are those of
`pages.py`. Each other column is a source of blocks whose tiles are row groups: a block of a whole row group is decoded
by pyarrow in the thread of the engine that needs it, so columns and row groups are decoded side by side. A block that
is part of a large row group is decoded batch by batch, from a cursor that stays where the last block ended. Bytes are
read past the page cache, those of a whole column chunk by one transfer. A file that changed after it was opened is
refused. The forecast counts the bytes of the elements; what pyarrow reads for them, compressed, is its own, and takes
about as much memory as they do, which the workspace of a block has room for. Freed memory that its pool keeps is given
back after each block where the limit is below 1 GiB when the table is opened.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from outcore import _core
from outcore._base.arrow_numbers import numbers_of
from outcore._base.system_errors import refusing
from outcore._base.threads import thread_pool
from outcore._base.types import NDArray, PathLike
from outcore._lazy.array import Array
from outcore._opening.arrow_files import StampedFile, StorageOptions
from outcore._opening.parquet_footer import MISSING, read_footer
from outcore._opening.several import places_of
from outcore._session.session import current
from outcore._standard.manipulation import concat
from outcore._tables.arrow import ColumnTypes, Field, LabelCount, Nulls, arrow, check_nulls
from outcore._tables.columns import Deferred, TableColumn
from outcore._tables.pages import PAGES_BYTES_MAX, column_of_pages
from outcore._tables.table import Table
from outcore.errors import DTypeError, FormatError, IndexingError, OutcoreError

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_OPENING_THREADS = 8
_BUFFER_BYTES = 1 << 20
_CURSORS_MAX = 4
_SMALL_BYTES = 2 << 20  # row groups of no more are decoded whole, though a part is needed
_TIGHT_BYTES = 1 << 30
_BATCH_ROWS = 1 << 16  # rows that are decoded together where a row group is not
_TILE_BYTES = PAGES_BYTES_MAX  # row groups of more are cut, for all memory limits alike


class _RowGroup(NamedTuple):
    """Where rows of a table lie: a file, the number of the row group in it, and its rows."""

    file: ParquetPart
    number: int
    rows: int


class ParquetPart:
    """One file: its footer, and its identity when that was read."""

    def __init__(self, path: str) -> None:
        self.path = path
        with refusing(path, "open"):
            self._file = StampedFile(path)
            self.footer = read_footer(path, self._file.opened())

    @property
    def schema(self) -> pa.Schema:
        return self.footer.schema

    def opened(self, name: str, as_labels: bool, in_batches: bool) -> pq.ParquetFile:
        """The file for one column, its pages read one after the other where batches are.

        Raises SourceChangedError for a file that is another by now.
        """
        import pyarrow.parquet as pq

        with refusing(self.path, "read"):
            return pq.ParquetFile(
                self._file.opened(),
                metadata=self.footer.metadata,
                read_dictionary=[name] if as_labels else None,
                buffer_size=_BUFFER_BYTES if in_batches else 0,
                pre_buffer=False,
            )

    def nulls_of(self, name: str) -> bool | None:
        """Whether elements of a column are missing, as its statistics say; None where they do not."""
        place = self.schema.get_field_index(name)
        if not self.schema.field(place).nullable:
            return False
        leaf = self.footer.leaf(name)
        missing = None if leaf is None else self.footer.chunks[self.footer.rows > 0, leaf, MISSING]
        return None if missing is None or (missing < 0).any() else bool(missing.any())

    def pages_of(self, field: Field) -> Array | None:
        """The numbers of a column where the engine decodes them. Raises SourceChangedError."""
        try:
            array = column_of_pages(self.path, self.footer, field)
        except FormatError:
            self._file.check()  # chunks of another file lie elsewhere
            raise
        if array is not None:
            self._file.check()
        return array


class _Cursor:
    """A place in a row group from which batches go on."""

    def __init__(self, place: int, batches: Iterator[pa.RecordBatch]) -> None:
        self.place = place
        self._batches = batches
        self._part: pa.Array | None = None
        self.row = 0  # of the first element that is left

    def take(self, start: int, stop: int) -> list[pa.Array]:
        """The elements of some rows, at or behind the place."""
        parts = []
        while self.row < stop:
            if self._part is None or not len(self._part):
                self._part = next(self._batches).column(0)
            skipped = min(max(start - self.row, 0), len(self._part))
            taken = self._part[skipped : skipped + max(stop - max(start, self.row), 0)]
            if len(taken):
                parts.append(taken)
            self._part = self._part[skipped + len(taken) :]
            self.row += skipped + len(taken)
        return parts


class ParquetColumn:
    """The blocks of one column."""

    def __init__(self, groups: Sequence[_RowGroup], field: Field) -> None:
        self._groups = groups
        self.field = field
        self._starts = [0]
        for group in groups:
            self._starts.append(self._starts[-1] + group.rows)
        self._cursors: list[_Cursor] = []
        self._is_tight = int(current().options["memory_limit"]) < _TIGHT_BYTES
        self._lock = Lock()

    def array(self) -> Array:
        """The numbers that carry the column, lazy."""
        rows, letters = self._starts[-1], self.field.letters
        shape = (rows,) if letters is None else (rows, letters)
        if not rows:
            return Array(_core.full(shape, 0, self.field.dtype.name))
        most = max(_TILE_BYTES // (self.field.dtype.itemsize * (letters or 1)), 1)
        pages = self._of_pages()
        if pages is not None:
            return pages
        length = _tile_rows([group.rows for group in self._groups], most)
        chunks = [length] if letters is None else [length, letters]
        name = f"{self._groups[0].file.path}: {self.field.name}"
        return Array(_core.from_blocks(self.read, shape, self.field.dtype.name, chunks, name))

    def _of_pages(self) -> Array | None:
        """The column, if the engine decodes that of each file."""
        parts = list(dict.fromkeys(group.file for group in self._groups))
        arrays = []
        for part in parts:
            array = part.pages_of(self.field)
            if array is None:
                return None
            arrays.append(array)
        return arrays[0] if len(arrays) == 1 else concat(arrays)

    def read(self, block: tuple[slice, ...]) -> NDArray:
        """The numbers of a block."""
        import pyarrow as pa

        start, stop = block[0].start, block[0].stop
        parts = []
        while start < stop:
            place = bisect_right(self._starts, start) - 1
            count, group = self._whole(place, start, stop), self._groups[place]
            begin, end = self._starts[place], min(stop, self._starts[place + max(count, 1)])
            try:
                if count:
                    decoded = self._decoded(place, count, start - begin, end - begin)
                else:
                    decoded = self._in_batches(place, start - begin, end - begin)
                parts += [self.field.numbers(part, group.file.path) for part in decoded]
            except OutcoreError:
                raise
            except (pa.ArrowException, OSError) as error:
                raise FormatError(
                    f"{group.file.path}: column {self.field.name!r}, row group {group.number}: {error}",
                    {"path": group.file.path},
                ) from None
            start = end
        if self._is_tight:
            pa.default_memory_pool().release_unused()
        numbers = parts[0] if len(parts) == 1 else np.concatenate(parts)
        return numbers[:, block[1]] if len(block) > 1 else numbers

    def _whole(self, place: int, start: int, stop: int) -> int:
        """How many row groups from one on are decoded whole, together: of one file, and small or needed whole."""
        small = _SMALL_BYTES // (self.field.dtype.itemsize * (self.field.letters or 1))
        count, first = 0, self._groups[place]
        for group in self._groups[place:]:
            begin = self._starts[place + count]
            is_needed = start <= begin and begin + group.rows <= stop
            if begin >= stop or group.file is not first.file or not (is_needed or group.rows <= small):
                break
            count += 1
        return count

    def _decoded(self, place: int, count: int, start: int, stop: int) -> list[pa.Array]:
        """Rows of some row groups, counted from the first of these."""
        groups = self._groups[place : place + count]
        file = groups[0].file.opened(self.field.name, self.field.is_category, in_batches=False)
        numbers = [group.number for group in groups]
        column = file.read_row_groups(numbers, columns=[self.field.name], use_threads=False).column(0)
        return list(column.slice(start, stop - start).chunks)

    def _in_batches(self, place: int, start: int, stop: int) -> list[pa.Array]:
        """Rows of a row group, by a cursor."""
        cursor = self._cursor(place, start)
        parts = cursor.take(start, stop)
        if cursor.row < self._groups[place].rows:
            with self._lock:
                self._cursors.append(cursor)
                del self._cursors[:-_CURSORS_MAX]
        return parts

    def _cursor(self, place: int, start: int) -> _Cursor:
        """The cursor that is nearest before a row, no one else's meanwhile; a new one where there is none."""
        with self._lock:
            before = [cursor for cursor in self._cursors if cursor.place == place and cursor.row <= start]
            if before:
                nearest = max(before, key=lambda cursor: cursor.row)
                self._cursors.remove(nearest)
                return nearest
        group = self._groups[place]
        file = group.file.opened(self.field.name, self.field.is_category, in_batches=True)
        batches = file.iter_batches(
            _BATCH_ROWS, row_groups=[group.number], columns=[self.field.name], use_threads=False
        )
        return _Cursor(place, batches)

    def column(self) -> TableColumn:
        """The column; labels are read from all row groups first."""
        self.field.check(self._groups[0].file.path if self._groups else "read_parquet")
        if self.field.is_category:
            self.field.labels = self._labels()
        return self.field.column(self.array())

    def _labels(self) -> tuple[str, ...]:
        labels = LabelCount(self.field.name, "read_parquet")
        for group in self._groups:
            file = group.file.opened(self.field.name, as_labels=True, in_batches=True)
            for batch in file.iter_batches(
                _BATCH_ROWS, row_groups=[group.number], columns=[self.field.name], use_threads=False
            ):
                labels.add(batch.column(0))
        return labels.labels


def _tile_rows(lengths: Sequence[int], most: int) -> int:
    """Rows of a tile: a row group, or an even part of one of more than `most` rows; where row groups are of different
    lengths, as many of them as have so many rows, so that few are read for two tiles."""
    counted = Counter(lengths)
    length, count = counted.most_common(1)[0]
    if length > most:
        return -(-length // -(-length // most))
    return length if count + 2 >= len(lengths) else most // length * length


def _opened(path: PathLike | Sequence[PathLike], options: StorageOptions | None) -> list[ParquetPart]:
    names = places_of(path, options, "read_parquet")
    with thread_pool(_OPENING_THREADS) as threads:
        parts = list(threads.map(ParquetPart, names))
    first = parts[0]
    for part in parts[1:]:
        for field in first.schema:
            place = part.schema.get_field_index(field.name)
            other = None if place < 0 else part.schema.field(place).type
            if other != field.type:
                said = "not there" if other is None else f"of {other}"
                raise DTypeError(f"{first.path}: column {field.name!r} is of {field.type}; in {part.path} it is {said}")
    return parts


def read_parquet(
    path: PathLike | Sequence[PathLike],
    *,
    columns: Iterable[str] | None = None,
    dtypes: ColumnTypes | None = None,
    nulls: Nulls = "nan",
    storage_options: StorageOptions | None = None,
) -> Table:
    """The table in a Parquet file, or in several: a list of paths, or a name with wildcards, one behind the other.

    Columns are lazy: integers, floats, truths, dates and times (`Dates`), dictionaries of strings (`Categorical`),
    binaries of fixed size (`Text`). `dtypes` says of columns of strings how they are read: "category" where few are
    distinct, or a length, such as "U12" or "S8"; of others the type of numbers. Text that `to_parquet` wrote has its
    length with it. A column that has no place here is refused when its name is used, and stands in `dtypes` of the
    table with its type. `columns` chooses some.

    Missing elements: with `nulls="nan"` NaN, for which integers and truths become float64 where the statistics of the
    file do not rule them out; with "mask" 0 in the type of the column, beside a further column `x.isnull` of bool for
    each column `x` that may have some; with "error" refused. Dates have NaT, labels none.

    Files may be objects of stores (`s3://`, `gs://`, `https://`), a list of URLs several; `storage_options` are as for
    `open`. Each read is a request: row groups of a column that lie close together are one.

    Raises MissingFileError, FormatError for files that are cut off or no Parquet, DTypeError for files whose columns
    differ, IndexingError for a name that is no column, ImportError without pyarrow (`outcore[arrow]`). When values are
    read: FormatError, SourceChangedError, StorageError; of columns that pyarrow decodes (labels, text, integers of
    which some are missing, types that `dtypes` names, row groups above 8 MiB a column) FunctionError, whose cause is
    one of these, a DTypeError or a RangeError. I/O: the footers; then each column that a result needs, row group by row
    group: the bytes that are stored, which the forecast has, or of pyarrow's columns those of the elements. Using the
    name of a column of labels reads that column for them, once.

    >>> import numpy as np, outcore as oc, tempfile
    >>> path = f"{tempfile.mkdtemp()}/t.parquet"
    >>> oc.to_parquet(oc.table(price=[1.5, 2.5], id=[7, 8]), path)
    >>> t = oc.read_parquet(path)
    >>> t["price"].sum().compute(), t.dtypes
    (array(4.), {'price': 'float64', 'id': 'int64'})
    """
    arrow("read_parquet")
    check_nulls("read_parquet", nulls)
    parts = _opened(path, storage_options)
    schema = parts[0].schema
    names, wishes = list(schema.names) if columns is None else list(columns), dict(dtypes or {})
    for name in [*names, *wishes]:
        if name not in schema.names:
            raise IndexingError(f"{parts[0].path}: no column {name!r}; columns are {', '.join(schema.names)}")
    groups = [
        _RowGroup(part, number, rows) for part in parts for number, rows in enumerate(part.footer.rows.tolist()) if rows
    ]
    made: dict[str, TableColumn | Deferred] = {}
    for name in names:
        has_nulls = _together(part.nulls_of(name) for part in parts)
        field = Field(schema.field(name), nulls, wishes.get(name), has_nulls)
        made[name] = Deferred(ParquetColumn(groups, field).column, field.word)
        if nulls == "mask" and has_nulls is not False and not field.is_category and field.refusal is None:
            made[f"{name}.isnull"] = Deferred(partial(_is_null, groups, field), "bool")
    return Table._of(made, sum(group.rows for group in groups))


def _together(parts: Iterable[bool | None]) -> bool | None:
    flags = list(parts)
    return True if True in flags else None if None in flags else False


class _NullField(Field):
    """Where elements of a column are missing."""

    def __init__(self, of: Field) -> None:
        self.__dict__.update(of.__dict__)
        self.is_natural = False
        self.kind = self.dtype = np.dtype(bool)

    def numbers(self, part: pa.Array, what: str) -> NDArray:
        return numbers_of(part.is_null())


def _is_null(groups: Sequence[_RowGroup], field: Field) -> Array:
    return ParquetColumn(groups, _NullField(field)).array()


__all__ = ["read_parquet"]
