"""Columns of Parquet that the engine decodes: chunks of a column are listed, as those of every chunked file are.

**Contract.** Numbers, truths and dates of plain columns, in row groups of at most 8 MiB a column, and of a 48th of the
memory limit, for pages and dictionaries take room beside what they decode to; others are pyarrow's.
Bytes of the column's chunks are the forecast's, and threads decode row groups side by side. The footer says where
chunks lie, and whether elements are missing; a file that is another by now is refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from outcore._base.types import DType
from outcore._lazy.array import Array
from outcore._opening.chunk_lists import JSON, ChunkList, listed
from outcore._opening.places import FilePlace
from outcore._session.session import current
from outcore._standard.manipulation import concat

if TYPE_CHECKING:
    import pyarrow.parquet as pq

    from outcore._tables.arrow import Field

PAGES_BYTES_MAX = 8 << 20  # of a row group's elements
_SHARES = 48  # of the memory limit: what is decoded, and stored, and a page, and a dictionary, for all threads
_RUNS_MAX = 256  # arrays that a file of uneven row groups is joined from
# Names of pyarrow's: LZ4 is that without frames, LZ4_RAW to the format.
_CODECS = ("UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD", "LZ4")
_WORDS = {"milliseconds": "ms", "microseconds": "us", "nanoseconds": "ns"}
_CHUNK_BYTES_MAX = 1 << 32  # as its place in a list has 32 bits for them


class RowGroupChunk(NamedTuple):
    """A column's chunk of a row group: its elements, where it lies, and how its pages are compressed."""

    elements: int
    start: int
    length: int
    codec: str


def column_of_pages(path: str, metadata: pq.FileMetaData, leaf: int | None, field: Field) -> Array | None:
    """The numbers that carry a column of one file; None where pyarrow is to decode it."""
    stored = None if leaf is None else _stored(metadata, leaf, field)
    if leaf is None or stored is None:
        return None
    chunks, most = [], min(PAGES_BYTES_MAX, int(current().options["memory_limit"]) // _SHARES)
    for number in range(metadata.num_row_groups):
        chunk = _chunk(metadata, number, leaf)
        if chunk is None or chunk.elements * field.dtype.itemsize > most:
            return None
        chunks += [chunk] if chunk.elements else []
    runs = list(_runs(chunks))
    if not runs or len(runs) > _RUNS_MAX:
        return None
    arrays = [_listed(path, run, field, stored) for run in runs]
    return arrays[0] if len(arrays) == 1 else concat(arrays)


def _stored(metadata: pq.FileMetaData, leaf: int, field: Field) -> dict[str, JSON] | None:
    """How elements are stored, as the codec has it; None where they are not what the column has."""
    column = metadata.schema.column(leaf)
    if not field.is_natural or column.max_repetition_level or column.max_definition_level > 1:
        return None
    physical, missing = _physical(field, column), _missing(field)
    if physical != column.physical_type or missing is None:
        return None
    return {"physical": physical, "optional": column.max_definition_level == 1, "missing": missing}


def _physical(field: Field, column: Any) -> str | None:
    """The type that a column of this kind is stored as."""
    kind: DType = field.kind
    if kind.kind in "mM":
        return _physical_time(field, column)
    if kind.kind == "b":
        return "BOOLEAN"
    if kind.kind == "f":
        return {4: "FLOAT", 8: "DOUBLE"}.get(kind.itemsize)
    return "INT64" if kind.itemsize == 8 else "INT32"


def _physical_time(field: Field, column: Any) -> str | None:
    """The same of dates and times; None for units that are stored as others."""
    import pyarrow as pa

    if pa.types.is_date32(field.type):
        return "INT32"
    if pa.types.is_duration(field.type):
        return "INT64"
    logical = json.loads(column.logical_type.to_json())
    if _WORDS.get(logical.get("timeUnit")) != np.datetime_data(field.kind)[0]:
        return None
    return "INT32" if pa.types.is_time32(field.type) else "INT64"


def _missing(field: Field) -> str | None:
    """The number for missing elements; None where pyarrow is to judge them."""
    if field.is_widened:
        return None
    if field.has_nulls is False:
        return "refused"
    if field.nulls == "error":
        return None
    return {"f": "nan", "m": "nat", "M": "nat"}.get(field.kind.kind, "zero")


def _chunk(metadata: pq.FileMetaData, number: int, leaf: int) -> RowGroupChunk | None:
    group = metadata.row_group(number)
    column = group.column(leaf)
    codec, start, dictionary = column.compression, column.data_page_offset, column.dictionary_page_offset
    if column.has_dictionary_page and dictionary and 0 < dictionary < start:
        start = dictionary
    length = column.total_compressed_size
    is_known = codec in _CODECS and not column.file_path and start > 0 and 0 < length < _CHUNK_BYTES_MAX
    return RowGroupChunk(group.num_rows, start, length, codec) if is_known else None


def _runs(chunks: Sequence[RowGroupChunk]) -> Iterator[Sequence[RowGroupChunk]]:
    """Chunks of one length, but for the last, which may be shorter, and compressed in one way."""
    begin = 0
    for at in range(1, len(chunks) + 1):
        is_end = at == len(chunks)
        if not is_end:
            first, before, this = chunks[begin], chunks[at - 1], chunks[at]
            is_end = before.elements != first.elements or this.elements > first.elements or this.codec != first.codec
        if is_end:
            yield chunks[begin:at]
            begin = at


def _listed(path: str, run: Sequence[RowGroupChunk], field: Field, stored: dict[str, JSON]) -> Array:
    rows = [(number, 0, chunk.start, chunk.length, 0) for number, chunk in enumerate(run)]
    codec = {"name": "outcore.parquet", "configuration": {**stored, "compression": run[0].codec}}
    document = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [sum(chunk.elements for chunk in run)],
        "data_type": field.dtype.name,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [run[0].elements]}},
        "chunk_key_encoding": {"name": "default"},
        "fill_value": False if field.dtype.kind == "b" else 0,
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, codec],
    }
    return listed(FilePlace(path, field.name), ChunkList(document, [path], np.array(rows, np.uint64), cut=True))


__all__ = ["PAGES_BYTES_MAX", "column_of_pages"]
