"""Files read at random through a page cache give what they hold, and no more than is read is read."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from support.running import session

import outcore as oc
from outcore.errors import ArgumentError, IndexingError, MemoryLimitError, MissingFileError, OutcoreError

POLICIES = ("lru", "lfu", "clock", "gclock")


@pytest.fixture
def path(data: Path) -> Path:
    """Some five megabytes that end within a page."""
    made = data / "a.bin"
    np.random.default_rng(0).integers(0, 256, 5_000_123, dtype=np.uint8).tofile(made)
    return made


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("memory", ["2MiB", "32MiB"])
def test_any_bytes_are_those_of_the_file(policy: str, memory: str, path: Path) -> None:
    held = np.fromfile(path, np.uint8)
    random = np.random.default_rng(1)
    with session():
        file = oc.io.cached(path, memory=memory, policy=policy)
        assert len(file) == len(held)
        for size in (1, 8, 4096, 10_000):
            offsets = random.integers(0, len(held) - size + 1, 300)
            found = file.read_at(offsets, size)
            np.testing.assert_array_equal(found, held[offsets[:, None] + np.arange(size)])
        assert file.read_at([len(held) - 3], 3).tolist() == [held[-3:].tolist()]
        assert file.read_at([], 7).shape == (0, 7)


def test_a_page_is_read_once_while_there_is_room(path: Path) -> None:
    with session() as current:
        file = oc.io.cached(path, memory="16MiB")
        before = current.counters()["bytes_read"]
        offsets = np.random.default_rng(2).integers(0, len(file) - 8, 5000)
        file.read_at(offsets, 8)
        read = file.counters.bytes_read
        pages = np.unique(np.concatenate([offsets // 4096, (offsets + 7) // 4096]))
        assert current.counters()["bytes_read"] - before == read
        assert (len(pages) - 1) * 4096 < read <= len(pages) * 4096
        file.read_at(offsets[::-1], 8)
        assert file.counters.bytes_read == read
        assert file.counters.hits > 0


def test_threads_share_a_cache(path: Path) -> None:
    held = np.fromfile(path, np.uint8)
    with session():
        file = oc.io.cached(path, memory="2MiB")

        def read(seed: int) -> bool:
            offsets = np.random.default_rng(seed).integers(0, len(held) - 100, 2000)
            return bool((file.read_at(offsets, 100) == held[offsets[:, None] + np.arange(100)]).all())

        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(read, range(16)))


def test_numbers_of_any_type(data: Path) -> None:
    values = np.random.default_rng(3).normal(size=10_000)
    values.tofile(data / "b.bin")
    with session():
        found = oc.io.cached(data / "b.bin").read_at(np.array([8, 800]), 3, dtype="float64")
    np.testing.assert_array_equal(found, [values[1:4], values[100:103]])


def test_what_is_refused(path: Path, data: Path) -> None:
    with session(pool_limit=64 << 20):
        file = oc.io.cached(path)
        for offsets in ([-1], [len(file)], [0, len(file) - 3]):
            with pytest.raises(IndexingError, match="4 bytes at"):
                file.read_at(offsets, 4)
        with pytest.raises(IndexingError, match="whole numbers"):
            file.read_at([0.5])
        with pytest.raises(MissingFileError):
            oc.io.cached(data / "none")
        with pytest.raises(ArgumentError, match="lru, lfu"):
            oc.io.cached(path, policy="fifo")
        with pytest.raises(ArgumentError, match="power of two"):
            oc.io.cached(path, page_bytes=1000)
        for sized in (lambda: oc.io.cached(path, page_bytes=4096.0), lambda: file.read_at(0, 1.5)):  # type: ignore[arg-type]
            with pytest.raises(ArgumentError, match="a whole number from 0"):
                sized()
        for kind in ("O", "(3,)f4"):
            with pytest.raises(ArgumentError, match="read_at: elements of "):
                file.read_at(0, dtype=kind)
        assert repr(file) == f"CachedFile({str(path)!r}, {len(file)} bytes)"
        with pytest.raises((MemoryLimitError, OutcoreError)):
            oc.io.cached(path, memory="1GiB")
