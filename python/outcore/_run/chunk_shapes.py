"""Shapes of chunks and shards as `store` takes them: by path, each with the axes of its array."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

from outcore._base.types import JSONObject
from outcore._lazy.node import integers
from outcore.errors import DTypeError, MemoryLimitError, ShapeError

_CHUNK_LENGTH_MAX = (1 << 63) - 1
# Bytes of a chunk in a shard at most, where chunks are not chosen, as zarr-python has them.
_INNER_CHUNK_BYTES = 1 << 20


ChunkShapes: TypeAlias = "Mapping[Any, Sequence[int]]"  # by path; mappings are invariant in their keys


class ShardShape(tuple[int, ...]):
    """The shape of the shards of an output, and of the chunks in them where these are chosen."""

    chunks: Sequence[int] | None


def shapes_by_path(chunks: ChunkShapes | None, word: str = "chunks") -> dict[str, Sequence[int]]:
    """Shapes of chunks or shards by names of paths. Raises ShapeError for what is no mapping of paths."""
    if not isinstance(chunks, Mapping | None):
        raise ShapeError(f"store: {word} is a mapping of paths to shapes, {{'y.zarr': {chunks!r}}}, not {chunks!r}")
    shapes: dict[str, Sequence[int]] = {}
    for path, shape in (chunks or {}).items():
        if not isinstance(path, (str, bytes, os.PathLike)):
            raise ShapeError(f"store: {word} name {path!r}, which is no path; regions keep the {word} of their array")
        shapes[os.fsdecode(path)] = shape
    return shapes


def with_shards(chunks: ChunkShapes | None, shards: ChunkShapes | None) -> ChunkShapes | None:
    """Chunk shapes in which paths with shards have both. Raises ShapeError for what is no mapping of paths."""
    if shards is None:
        return chunks
    inner = shapes_by_path(chunks)
    sharded = shapes_by_path(shards, "shards")
    return {**inner, **{path: _shard_shape(path, shape, inner.get(path)) for path, shape in sharded.items()}}


@contextmanager
def naming_shards(chunks: ChunkShapes | None) -> Iterator[None]:
    """A refusal of memory names the shards of outputs, which are written in one go."""
    try:
        yield
    except MemoryLimitError as error:
        shards = [str(list(shape)) for shape in (chunks or {}).values() if isinstance(shape, ShardShape)]
        if not shards:
            raise
        raise MemoryLimitError(f"{error}; shards {', '.join(shards)} are written in one go", error.details) from None


def _shard_shape(name: str, shards: Sequence[int], chunks: Sequence[int] | None) -> ShardShape:
    shape = ShardShape(_integers(name, shards, "shards"))
    shape.chunks = chunks
    return shape


def _integers(name: str, lengths: Sequence[int], word: str) -> tuple[int, ...]:
    try:
        return tuple(integers(lengths))
    except DTypeError:
        raise ShapeError(f"store: {word} {lengths!r} for {name} are not integers") from None


def chunk_lengths(name: str, chunks: Sequence[int], shape: tuple[int, ...], word: str = "chunks") -> list[int]:
    """The lengths of the chunks of an output. Raises ShapeError for those that do not go with its shape."""
    lengths = _integers(name, chunks, word)
    if name.endswith(".npy"):
        raise ShapeError(f"store: {word} {lengths} for {name}, and a .npy file has none; store to a .zarr path")
    if len(lengths) != len(shape):
        raise ShapeError(f"store: {word} {lengths} for {name} do not have the dimensions of {shape}")
    if any(not 1 <= length <= _CHUNK_LENGTH_MAX for length in lengths):
        raise ShapeError(f"store: {word} {lengths} for {name} of shape {shape}: lengths run from 1 to 2⁶³ − 1")
    return list(lengths)


def shard_layout(
    name: str, layout: ShardShape, shape: tuple[int, ...], itemsize: int, codecs: Sequence[JSONObject]
) -> tuple[list[int], str]:
    """The lengths of the shards of an output, and how the engine takes the chunks in them: as a document of Zarr v3.

    Raises ShapeError for shards that have no whole chunks, and for those that do not go with the array.
    """
    lengths = chunk_lengths(name, layout, shape, "shards")
    chunks = layout.chunks
    inner = _inner_chunks(lengths, itemsize) if chunks is None else chunk_lengths(name, chunks, shape)
    if any(length % chunk for length, chunk in zip(lengths, inner, strict=True)):
        raise ShapeError(f"store: shards {lengths} for {name} are no whole chunks {inner}")
    plain = {"name": "bytes", "configuration": {"endian": "little"}}
    sharding = {
        "chunk_shape": inner,
        "codecs": [plain, *codecs],
        "index_codecs": [plain, {"name": "crc32c"}],
        "index_location": "end",
    }
    grid = {"name": "regular", "configuration": {"chunk_shape": lengths}}
    document = {"chunk_grid": grid, "codecs": [{"name": "sharding_indexed", "configuration": sharding}]}
    return lengths, json.dumps(document)


def _inner_chunks(shards: Sequence[int], itemsize: int) -> list[int]:
    """Chunks of a shard: parts of the first axes that have few enough bytes."""
    inner = list(shards)
    for axis in range(len(inner)):
        while inner[axis] > 1 and math.prod(inner) * itemsize > _INNER_CHUNK_BYTES:
            inner[axis] //= _least_factor(inner[axis])
    return inner


def _least_factor(number: int) -> int:
    """The least prime factor, as far as factors are small; the number itself else."""
    factors = (factor for factor in range(2, min(math.isqrt(number), 1 << 16) + 1) if number % factor == 0)
    return next(factors, number)


__all__ = [
    "ChunkShapes",
    "ShardShape",
    "chunk_lengths",
    "naming_shards",
    "shapes_by_path",
    "shard_layout",
    "with_shards",
]
