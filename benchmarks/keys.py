"""Keys to sort, written block by block, and the checks of a sorted file: its order and its multiset of values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

BLOCK = 1 << 22
SEED = 9
HOT_VALUES = 100


def _random(random: Any, start: int, stop: int, count: int) -> Any:
    return random.integers(-(1 << 63), 1 << 63, stop - start, np.int64, endpoint=False)


def _presorted(random: Any, start: int, stop: int, count: int) -> Any:
    return np.arange(start, stop, dtype=np.int64) * 3 - count


def _reversed(random: Any, start: int, stop: int, count: int) -> Any:
    return -_presorted(random, start, stop, count)


def _equal(random: Any, start: int, stop: int, count: int) -> Any:
    return np.full(stop - start, 42, np.int64)


def _duplicates(random: Any, start: int, stop: int, count: int) -> Any:
    """Nine keys of ten are one of a hundred values that lie far apart, the tenth is any."""
    keys = _random(random, start, stop, count)
    hot = (random.integers(0, HOT_VALUES, keys.size) - HOT_VALUES // 2) << 56
    return np.where(random.random(keys.size) < 0.9, hot, keys)


def _zipf(random: Any, start: int, stop: int, count: int) -> Any:
    """P(key ≥ k) = k^(−1/2), a power law of exponent 3/2 by inversion: nearly a third of the keys is 1."""
    return np.minimum((1.0 - random.random(stop - start)) ** -2.0, 2.0**62).astype(np.int64)


def _nan(random: Any, start: int, stop: int, count: int) -> Any:
    """Normal deviates as float64, one in twenty NaN."""
    keys = random.standard_normal(stop - start)
    keys[random.random(keys.size) < 0.05] = np.nan
    return keys


PATTERNS: dict[str, Callable[[Any, int, int, int], Any]] = {
    "random": _random,
    "presorted": _presorted,
    "reversed": _reversed,
    "equal": _equal,
    "duplicates": _duplicates,
    "zipf": _zipf,
    "nan": _nan,
}


MEANING = {
    "random": "int64 of all 64 bits",
    "presorted": "int64, ascending and distinct",
    "reversed": "int64, descending and distinct",
    "equal": "int64, all the same",
    "duplicates": "int64, nine in ten one of a hundred values",
    "zipf": "int64, a power law of exponent 3/2",
    "nan": "float64, normal, 5 % NaN",
}


@dataclass
class Digest:
    """What sorting must keep: how many values, and the sum and exclusive or of their hashes."""

    count: int = 0
    total: int = 0
    mixed: int = 0

    def add(self, block: Any) -> None:
        hashes = _hashes(block)
        self.count += block.size
        self.total = (self.total + int(hashes.sum(dtype=np.uint64))) % (1 << 64)
        self.mixed ^= int(np.bitwise_xor.reduce(hashes))


def _hashes(block: Any) -> Any:
    """The finalizer of SplitMix64 over the bits of each value. Every NaN counts as the same, and −0 as 0."""
    if block.dtype.kind == "f":
        block = np.where(np.isnan(block), np.nan, block + 0.0)
    bits = np.ascontiguousarray(block).view(np.uint64).copy()
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        bits ^= bits >> np.uint64(shift)
        bits *= np.uint64(factor)
    bits ^= bits >> np.uint64(31)
    return bits


def write(path: Path, pattern: str, count: int) -> dict[str, int]:
    """A .npy of `count` keys; its digest."""
    random = np.random.default_rng(SEED)
    digest = Digest()
    with path.open("wb") as file:
        for start in range(0, count, BLOCK):
            block = PATTERNS[pattern](random, start, min(count, start + BLOCK), count)
            if start == 0:
                header = {"descr": block.dtype.str, "fortran_order": False, "shape": (count,)}
                npy.write_array_header_1_0(file, header)
            digest.add(block)
            block.tofile(file)
    return asdict(digest)


def wrong(blocks: Iterable[Any], wanted: dict[str, int]) -> str | None:
    """What is wrong with a sorted sequence that comes in blocks; None when it is sorted and lost nothing."""
    digest, last = Digest(), None
    for block in blocks:
        if not block.size:
            continue
        joined = block if last is None else np.concatenate([last, block])
        if not _in_order(joined):
            return f"not sorted between {digest.count} and {digest.count + block.size}"
        last = block[-1:].copy()
        digest.add(block)
    return None if asdict(digest) == wanted else f"other values: {asdict(digest)}, wanted {wanted}"


def _in_order(block: Any) -> bool:
    """Ascending, NaN last."""
    if block.dtype.kind == "f":
        numbers = block.size - int(np.isnan(block).sum())
        if not np.isnan(block[numbers:]).all():
            return False
        block = block[:numbers]
    return bool((block[1:] >= block[:-1]).all())


def npy_blocks(path: Path) -> Iterator[Any]:
    """Read, not mapped, so that checking leaves no mapping behind."""
    with path.open("rb") as file:
        version = npy.read_magic(file)
        assert version == (1, 0)
        (count,), _, dtype = npy.read_array_header_1_0(file)
        for start in range(0, count, BLOCK):
            yield np.fromfile(file, dtype, min(BLOCK, count - start))


def parquet_blocks(path: Path) -> Iterator[Any]:
    import polars as pl

    frame = pl.scan_parquet(path)
    count = frame.select(pl.len()).collect().item()
    for start in range(0, count, BLOCK):
        yield frame.slice(start, BLOCK).collect()["x"].to_numpy()
