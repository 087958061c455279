"""NumPy's elements of Arrow's arrays, and Arrow's arrays of NumPy's elements, by their buffers.

pyarrow's functions for this load pandas where that is installed: 40 MB of the process, after memory has been planned.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from outcore._base.types import NDArray

if TYPE_CHECKING:
    import pyarrow as pa


def numbers_of(part: pa.Array) -> NDArray:
    """Numbers or truths as NumPy's: numbers are borrowed. Missing elements are any numbers."""
    import pyarrow as pa

    content, count, begin = part.buffers()[1], len(part), part.offset
    dtype = np.dtype(part.type.to_pandas_dtype())
    if content is None or not count:
        return np.zeros(count, dtype)
    if pa.types.is_boolean(part.type):
        bits = np.frombuffer(content, np.uint8)[begin // 8 : -(-(begin + count) // 8)]
        return np.unpackbits(bits, bitorder="little")[begin % 8 :][:count].view(np.bool_)
    return np.frombuffer(content, dtype, count, begin * dtype.itemsize)


def filled(part: pa.Array, value: float) -> NDArray:
    """As `numbers_of`; missing elements are `value`."""
    numbers = numbers_of(part)
    if part.null_count:
        numbers = numbers.copy()
        numbers[numbers_of(part.is_null())] = value
    return numbers


def indices_of(part: pa.DictionaryArray, missing: int) -> NDArray:
    """The places of elements in their dictionary; missing ones have the place `missing`, of any size."""
    import pyarrow as pa

    return filled(part.indices.cast(pa.int64()) if part.null_count else part.indices, missing)


def array_of(values: NDArray, of: pa.DataType, missing: NDArray | None = None) -> pa.Array:
    """Arrow's array of numbers or truths, borrowed, in a type of their width; those that `missing` marks are null."""
    import pyarrow as pa

    values = np.ascontiguousarray(values)
    content = np.packbits(values, bitorder="little") if values.dtype == np.bool_ else values
    bits = None if missing is None or not missing.any() else pa.py_buffer(np.packbits(~missing, bitorder="little"))
    return pa.Array.from_buffers(of, len(values), [bits, pa.py_buffer(content)])


def strings_of(texts: Iterable[str]) -> pa.Array:
    """Arrow's array of texts."""
    import pyarrow as pa

    encoded = [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    content = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.string(), len(encoded), content)


__all__ = ["array_of", "filled", "indices_of", "numbers_of", "strings_of"]
