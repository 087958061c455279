"""How an array is cut, in the form that Dask has for it: the lengths of the parts along each axis."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias

Lengths: TypeAlias = "tuple[int, ...]"


class Chunks(tuple[Lengths, ...]):
    """Lengths of parts along each axis. A type of its own, by which `_xarray` tells that no part is written alone."""

    __slots__ = ()


@lru_cache(maxsize=256)
def lengths_of(shape: tuple[int, ...], tile: tuple[int, ...]) -> Chunks:
    """Lengths along each axis of the tiles of a shape; the last of an axis is what remains."""
    return Chunks(_along(length, part) for length, part in zip(shape, tile, strict=True))


def _along(length: int, part: int) -> tuple[int, ...]:
    if part <= 0 or length <= part:
        return (length,)
    whole, remainder = divmod(length, part)
    return (part,) * whole + ((remainder,) if remainder else ())


def tile_of(chunks: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """The longest part along each axis."""
    return tuple(max(lengths, default=0) for lengths in chunks)


__all__ = ["Chunks", "Lengths", "lengths_of", "tile_of"]
