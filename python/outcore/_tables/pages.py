"""Columns of Parquet that the engine decodes: chunks of a column are listed, as those of every chunked file are.

**Contract.** Numbers, truths and dates of plain columns, in row groups of at most 8 MiB a column, and of a 48th of the
memory limit, for pages and dictionaries take room beside what they decode to; others are pyarrow's. Bytes of the
column's chunks are the forecast's, and threads decode row groups side by side. The footer says where chunks lie, and
whether elements are missing; a file that is another by now is refused.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore._base.types import DType, NDArray
from outcore._lazy.array import Array
from outcore._opening.chunk_lists import JSON, ChunkList, listed
from outcore._opening.parquet_footer import (
    CODEC,
    CODECS,
    ELEMENTS,
    IS_ELSEWHERE,
    START,
    STORED_BYTES,
    ParquetFooter,
)
from outcore._opening.places import FilePlace
from outcore._session.session import current
from outcore._standard.manipulation import concat

if TYPE_CHECKING:
    from outcore._tables.arrow import Field

PAGES_BYTES_MAX = 8 << 20  # of a row group's elements
_SHARES = 48  # of the memory limit: what is decoded, and stored, and a page, and a dictionary, for all threads
_RUNS_MAX = 256  # arrays that a file of uneven row groups is joined from
_CODECS = [CODECS.index(name) for name in ("UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD", "LZ4")]
_WORDS = {"milliseconds": "ms", "microseconds": "us", "nanoseconds": "ns"}
_CHUNK_BYTES_MAX = 1 << 32  # as its place in a list has 32 bits for them


def column_of_pages(path: str, footer: ParquetFooter, field: Field) -> Array | None:
    """The numbers that carry a column of one file; None where pyarrow is to decode it."""
    leaf = footer.leaf(field.name)
    stored = None if leaf is None else _stored(footer, leaf, field)
    if leaf is None or stored is None:
        return None
    is_full = footer.rows > 0
    rows, chunks = footer.rows[is_full], footer.chunks[is_full, leaf]
    most = min(PAGES_BYTES_MAX, int(current().options["memory_limit"]) // _SHARES)
    starts, lengths = chunks[:, START], chunks[:, STORED_BYTES]
    is_ours = (rows <= most // field.dtype.itemsize) & np.isin(chunks[:, CODEC], _CODECS)
    is_ours &= (chunks[:, IS_ELSEWHERE] == 0) & (chunks[:, ELEMENTS] == rows)
    is_ours &= (starts > 0) & (starts < 1 << 62) & (lengths > 0) & (lengths < _CHUNK_BYTES_MAX)
    if not is_ours.all():
        return None
    runs = _runs(rows, chunks[:, CODEC])
    if not runs or len(runs) > _RUNS_MAX:
        return None
    arrays = [_listed(path, rows[run], chunks[run], field, stored) for run in runs]
    return arrays[0] if len(arrays) == 1 else concat(arrays)


def _stored(footer: ParquetFooter, leaf: int, field: Field) -> dict[str, JSON] | None:
    """How elements are stored, as the codec has it; None where they are not what the column has."""
    column = footer.metadata.schema.column(leaf)
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


def _runs(rows: NDArray, codecs: NDArray) -> list[slice]:
    """Chunks of one length but for a shorter last, compressed in one way; not all where runs are too many."""
    runs: list[slice] = []
    begin = 0
    while begin < len(rows) and len(runs) <= _RUNS_MAX:
        is_other = (rows[begin:] != rows[begin]) | (codecs[begin:] != codecs[begin])
        end = begin + int(is_other.argmax()) if is_other.any() else len(rows)
        is_shorter = end < len(rows) and rows[end] < rows[begin] and codecs[end] == codecs[begin]
        runs.append(slice(begin, end + is_shorter))
        begin = end + is_shorter
    return runs


def _listed(path: str, rows: NDArray, chunks: NDArray, field: Field, stored: dict[str, JSON]) -> Array:
    zeros = np.zeros(len(rows), np.int64)
    places = np.stack([np.arange(len(rows)), zeros, chunks[:, START], chunks[:, STORED_BYTES], zeros], axis=1)
    settings = {**stored, "compression": CODECS[chunks[0, CODEC]]}
    codec = {"name": "outcore.parquet", "configuration": settings}
    document = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [int(rows.sum())],
        "data_type": field.dtype.name,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [int(rows[0])]}},
        "chunk_key_encoding": {"name": "default"},
        "fill_value": False if field.dtype.kind == "b" else 0,
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, codec],
    }
    return listed(FilePlace(path, field.name), ChunkList(document, [path], places.astype(np.uint64), cut=True))


__all__ = ["PAGES_BYTES_MAX", "column_of_pages"]
