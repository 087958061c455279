"""Chunk shapes as `store` takes them: by path, each with the axes of its array."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from outcore._lazy.node import integers
from outcore.errors import DTypeError, ShapeError

_CHUNK_LENGTH_MAX = (1 << 63) - 1
ChunkShapes: TypeAlias = "Mapping[Any, Sequence[int]]"  # by path; mappings are invariant in their keys


def shapes_by_path(chunks: ChunkShapes | None) -> dict[str, Sequence[int]]:
    """Chunk shapes by names of paths. Raises ShapeError for what is no mapping of paths."""
    if not isinstance(chunks, Mapping | None):
        raise ShapeError(f"store: chunks is a mapping of paths to shapes, {{'y.zarr': {chunks!r}}}, not {chunks!r}")
    shapes: dict[str, Sequence[int]] = {}
    for path, shape in (chunks or {}).items():
        if not isinstance(path, (str, bytes, os.PathLike)):
            raise ShapeError(f"store: chunks name {path!r}, which is no path; regions keep the chunks of their array")
        shapes[os.fsdecode(path)] = shape
    return shapes


def chunk_lengths(name: str, chunks: Sequence[int], shape: tuple[int, ...]) -> list[int]:
    """The lengths of the chunks of an output. Raises ShapeError for those that do not go with its shape."""
    try:
        lengths = integers(chunks)
    except DTypeError:
        raise ShapeError(f"store: chunks {chunks!r} for {name} are not integers") from None
    if name.endswith(".npy"):
        raise ShapeError(f"store: chunks {lengths} for {name}, and a .npy file has none; store to a .zarr path")
    if len(lengths) != len(shape):
        raise ShapeError(f"store: chunks {lengths} for {name} do not have the dimensions of {shape}")
    if any(not 1 <= length <= _CHUNK_LENGTH_MAX for length in lengths):
        raise ShapeError(f"store: chunks {lengths} for {name} of shape {shape}: lengths run from 1 to 2⁶³ − 1")
    return list(lengths)


__all__ = ["ChunkShapes", "chunk_lengths", "shapes_by_path"]
