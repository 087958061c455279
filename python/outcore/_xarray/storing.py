"""Lazy arrays into xarray's targets: arrays of other libraries that take `target[region] = block`."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from outcore import _api as oc
from outcore._lazy.array import Array
from outcore._lazy.hooks import above
from outcore._session.session import current
from outcore._xarray.foreign import Foreign

Corner: TypeAlias = "tuple[slice, ...]"
_SHARE = 12  # of the budget, for a block that is computed and not yet written, its copies, and its codes


def store_into(sources: Sequence[Foreign], targets: Sequence[Foreign], regions: Sequence[Foreign]) -> None:
    """Writes each source to its target, all of it or the region that is named: blocks of the target's whole chunks.

    Small sources are computed by one program. A large one that takes several stages is held in scratch first. I/O: one
    read of what the sources are made of, and what is held.
    """
    room = _room()
    triples = list(zip(sources, targets, regions, strict=True))
    small = [triple for triple in triples if not isinstance(triple[0], Array) or triple[0].nbytes <= room]
    while small:
        taken: list[tuple[Foreign, ...]] = []
        size = 0
        while small and (not taken or size + small[0][0].nbytes <= room):
            size += small[0][0].nbytes
            taken.append(small.pop(0))
        for values, (_, target, region) in zip(_computed([source for source, *_ in taken]), taken, strict=True):
            target[_whole(values.ndim) if region is None else region] = values
    for source, target, region in triples:
        if isinstance(source, Array) and source.nbytes > room:
            _store_blocks(source, target, region, room)


def _room() -> int:
    return max(int(current().counters()["budget_bytes"]) // _SHARE, 1)


def _whole(ndim: int) -> Corner | Foreign:
    return (slice(None),) * ndim if ndim else ...


def _computed(sources: Sequence[Foreign]) -> list[Foreign]:
    lazy = [source for source in sources if isinstance(source, Array)]
    values = iter(oc.compute(*lazy) if len(lazy) > 1 else [array.compute() for array in lazy])
    return [next(values) if isinstance(source, Array) else source for source in sources]


def _store_blocks(source: Array, target: Foreign, region: Foreign, room: int) -> None:
    # As into a file, which is not made: a result in memory would be refused for its size.
    if len(oc.explain({f"{current()._core.unused_path()}.npy": source}).stages) > 1:
        source = Array(above.hold(source._expr)[0])  # else each block would run all stages again
    bounds = _bounds(target, region, source.shape)
    chunk = _chunk(target, source, room)
    for block in blocks_of(source.shape, [start for start, _ in bounds], chunk, room // source.dtype.itemsize):
        place = [
            slice(start + step * part.start, start + step * (part.stop - 1) + 1, step)
            for part, (start, step) in zip(block, bounds, strict=True)
        ]
        target[tuple(place)] = source[block].compute()


def _bounds(target: Foreign, region: Foreign, shape: tuple[int, ...]) -> list[tuple[int, int]]:
    """Start and step along each axis of what is written."""
    if region is None:
        return [(0, 1)] * len(shape)
    parts = region if isinstance(region, tuple) else (region,)
    lengths = getattr(target, "shape", shape)
    return [part.indices(length)[::2] for part, length in zip(parts, lengths, strict=True)]


def _chunk(target: Foreign, source: Array, room: int) -> tuple[int, ...]:
    """Lengths of the target's chunks, else of the source's tiles; single elements where these have no room."""
    for holder in (target, getattr(target, "array", None)):
        chunks = getattr(holder, "shards", None) or getattr(holder, "chunks", None)
        if isinstance(chunks, (tuple, list)) and len(chunks) == source.ndim:
            return tuple(max(int(max(part) if isinstance(part, (tuple, list)) else part), 1) for part in chunks)
    if math.prod(source.tile) * source.dtype.itemsize > room:
        return (1,) * source.ndim
    return tuple(max(length, 1) for length in source.tile)


def blocks_of(shape: Sequence[int], starts: Sequence[int], chunk: Sequence[int], room: int) -> Iterator[Corner]:
    """Parts of at most `room` elements, or one chunk, that end where chunks end; `starts` is where the first begins."""
    counts = [1] * len(shape)
    for axis in reversed(range(len(shape))):  # whole rows of chunks first
        inner = math.prod(min(count * part, length) for count, part, length in zip(counts, chunk, shape, strict=True))
        others = max(inner // min(chunk[axis], max(shape[axis], 1)), 1)
        counts[axis] = max(min(room // (others * chunk[axis]), -(-shape[axis] // chunk[axis]) + 1), 1)
    cuts = []
    for axis, length in enumerate(shape):
        step = counts[axis] * chunk[axis]
        ends = [min(end - starts[axis], length) for end in range(step, starts[axis] + length + step, step)]
        ends = sorted({end for end in ends if end > 0})
        cuts.append([slice(begin, end) for begin, end in itertools.pairwise([0, *ends])])
    return itertools.product(*cuts)


__all__ = ["blocks_of", "store_into"]
