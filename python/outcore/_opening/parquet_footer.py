"""Footers of Parquet files: pyarrow's metadata, and facts of columns' chunks as numbers.

Of these pyarrow makes objects one by one, and ends the process over some that are damaged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from outcore import _core
from outcore._base.types import NDArray
from outcore._opening.arrow_files import DirectFile, ObjectFile
from outcore.errors import FormatError

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

# Columns of `ParquetFooter.chunks`.
PHYSICAL, CODEC, START, STORED_BYTES, PLAIN_BYTES, ELEMENTS, MISSING, IS_ELSEWHERE = range(8)
TYPES = ("BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")
# LZ4 is the one without frames, LZ4_RAW to the format.
CODECS = ("UNCOMPRESSED", "SNAPPY", "GZIP", "LZO", "BROTLI", "LZ4_HADOOP", "ZSTD", "LZ4")
_TAIL_BYTES, _END_BYTES = 64 << 10, 8
_MAGIC = b"PAR1"


class ParquetFooter(NamedTuple):
    """Rows of row groups, and for each of them and each column that is stored the facts of a chunk: its count of
    missing elements is -1 where the footer does not say it."""

    metadata: pq.FileMetaData
    schema: pa.Schema
    rows: NDArray
    chunks: NDArray

    def leaf(self, name: str) -> int | None:
        """The place of a plain column among those that are stored: others may have parts whose paths are its name."""
        place = self.schema.get_field_index(name)
        if place < 0:
            return None
        leaf = sum(_leaves(field.type) for field in list(self.schema)[:place])
        is_plain = _leaves(self.schema.field(place).type) == 1 and leaf < self.metadata.num_columns
        return leaf if is_plain and self.metadata.schema.column(leaf).path == name else None


def _leaves(of: pa.DataType) -> int:
    """How many columns a type is stored as."""
    return sum(_leaves(of.field(place).type) for place in range(of.num_fields)) if of.num_fields else 1


def read_footer(path: str, file: DirectFile | ObjectFile) -> ParquetFooter:
    """The footer of a file, in one read unless it is large. Raises FormatError for what is none, OSError."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        tail = _tail(file)
        metadata = pq.read_metadata(file if tail is None else pa.BufferReader(_MAGIC + tail))
        schema = metadata.schema.to_arrow_schema()
        rows, facts = _core.parquet_chunks(b"" if tail is None else tail[:-_END_BYTES])
        if len(rows) != metadata.num_row_groups or len(facts) != 8 * len(rows) * metadata.num_columns:
            raise ValueError("its row groups have not all columns")
        chunks = facts.reshape(len(rows), metadata.num_columns, 8)
    except (pa.ArrowException, ValueError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise FormatError(f"{path}: is no whole Parquet file: {error}", {"path": path}) from None
    kinds = np.array([TYPES.index(metadata.schema.column(leaf).physical_type) for leaf in range(metadata.num_columns)])
    is_known = (chunks[..., CODEC] >= 0) & (chunks[..., CODEC] < len(CODECS)) & (chunks[..., PHYSICAL] == kinds)
    if not is_known.all():
        number, leaf = np.argwhere(~is_known)[0]
        name = metadata.schema.column(int(leaf)).path
        raise FormatError(f"{path}: column {name!r}, row group {number}: its type or its codec is damaged")
    return ParquetFooter(metadata, schema, rows, chunks)


def _tail(file: DirectFile | ObjectFile) -> bytes | None:
    """The footer, its length and the letters at the end; None for a file without."""
    size = file.size()
    count = min(size, _TAIL_BYTES)
    file.seek(size - count)
    tail: bytes = file.read(count).to_pybytes()
    length = int.from_bytes(tail[-_END_BYTES : -len(_MAGIC)], "little") + _END_BYTES
    if len(tail) < _END_BYTES or not tail.endswith(_MAGIC) or length + len(_MAGIC) > size:
        return None
    if length > len(tail):
        file.seek(size - length)
        tail = file.read(length).to_pybytes()
    return tail[-length:]


__all__ = [
    "CODEC",
    "CODECS",
    "ELEMENTS",
    "IS_ELSEWHERE",
    "MISSING",
    "PHYSICAL",
    "PLAIN_BYTES",
    "START",
    "STORED_BYTES",
    "ParquetFooter",
    "read_footer",
]
