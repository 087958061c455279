"""Arrays by lists of their chunks, in files that others wrote or in memory, and by documents as Zarr has them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from outcore import _core
from outcore._lazy.array import Array
from outcore._opening.places import FilePlace
from outcore._session.session import current
from outcore.errors import FormatError, UnsupportedFormatError

JSON: TypeAlias = Any  # a value in a document
ChunkRows = npt.NDArray[np.uint64]
GridLengths: TypeAlias = "tuple[int, ...]"
_INLINE_BYTES_MAX = 256 << 20


class ChunkList(NamedTuple):
    """An array by its chunks, in files that others wrote.

    `document` is what `zarr.json` would say of it; a row has the number of a chunk, in C order of their grid, that of
    its file, its first byte, its bytes, and the codecs that it goes without. With `cut` chunks end where the array
    does.
    """

    document: Mapping[str, JSON]
    files: Sequence[str]
    rows: ChunkRows
    cut: bool = False


def grid_of(path: str, name: str, document: Mapping[str, JSON]) -> tuple[tuple[int, ...], tuple[int, ...], str, str]:
    """GridLengths of an array and of its chunks; text between and before the numbers in keys of chunks.

    Raises FormatError for a document, of that name, that does not say them.
    """
    try:
        if name.endswith(".zarray"):
            shape, lengths = document["shape"], document["chunks"]
            separator, prefix = document.get("dimension_separator", "."), ""
        else:
            shape = document["shape"]
            lengths = document["chunk_grid"]["configuration"]["chunk_shape"]
            encoding = document["chunk_key_encoding"]
            is_default = encoding["name"] == "default"
            separator = (encoding.get("configuration") or {}).get("separator", "/" if is_default else ".")
            prefix = f"c{separator}" if is_default and shape else "c" if is_default else ""
        if len(shape) != len(lengths) or not all(isinstance(one, int) for one in (*shape, *lengths)):
            raise ValueError("shape and chunks are not of one length")
        if separator not in (".", "/"):
            raise ValueError(f"numbers of chunks are separated by {separator!r}")
        if min(lengths, default=1) < 1 or min(shape, default=0) < 0:
            raise ValueError(f"chunks {lengths} of shape {shape}")
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise FormatError(f"{path}: {name} does not describe an array: {error}", {"path": path}) from None
    return tuple(shape), tuple(lengths), str(separator), prefix


def names_of(dims: JSON, ndim: int) -> list[str | None] | None:
    """Names of so many axes; None for other than these, each at most once."""
    if not isinstance(dims, list) or len(dims) != ndim:
        return None
    names = [dim for dim in dims if dim is not None]
    return dims if all(isinstance(name, str) for name in names) and len(set(names)) == len(names) else None


def listed(place: FilePlace, chunks: ChunkList) -> Array:
    """The array of a list of chunks. Raises FormatError for chunks that their files do not hold, with the place."""
    rows = np.ascontiguousarray(chunks.rows, np.uint64)
    files, document = list(chunks.files), json.dumps(chunks.document)
    return Array(_core.open_listing(current()._core, (place.path, place.member), document, files, rows, chunks.cut))


def in_memory(
    place: FilePlace,
    document: Mapping[str, JSON],
    grid: tuple[GridLengths, GridLengths],
    chunks: Iterable[tuple[int, bytes]],
) -> Array:
    """An array whose chunks are all in memory, by their numbers; the grid is its lengths in chunks, and theirs.

    Raises FormatError for a chunk that does not decode, UnsupportedFormatError for an array of more than 256 MiB.
    """
    path, member = place
    counts, lengths = grid
    empty = listed(place, ChunkList(document, [], np.zeros((0, 5), np.uint64)))
    if empty.size * empty.dtype.itemsize > _INLINE_BYTES_MAX:
        raise UnsupportedFormatError(f"{path}: {member!r} of shape {empty.shape} is inline, and too large for that")
    values = np.array(empty.compute())
    text = json.dumps(document)
    for number, encoded in chunks:
        try:
            elements = _core.decode_listed_chunk(text, encoded)
        except ValueError as error:
            raise FormatError(f"{path}: chunk {number} of {member!r}: {error}", {"path": path}) from None
        at = np.unravel_index(number, counts) if counts else ()
        chunk = np.frombuffer(elements, values.dtype).reshape(lengths)
        part = tuple(slice(one * by, one * by + by) for one, by in zip(at, lengths, strict=True))
        within = tuple(slice(length) for length in values[part].shape)
        values[part] = chunk[within]
    return Array(_core.from_numpy(values))


__all__ = ["JSON", "ChunkList", "ChunkRows", "GridLengths", "grid_of", "in_memory", "listed", "names_of"]
