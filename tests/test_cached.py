"""Files read at random through a page cache give what they hold, and no more than is read is read."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from benchmarks import cgroup
from support.running import session, takes_direct_io

import outcore as oc
from outcore.errors import (
    ArgumentError,
    IndexingError,
    MemoryLimitError,
    MissingFileError,
    OutcoreError,
    ShapeError,
    StorageError,
    UnsupportedFormatError,
)

POLICIES = ("lru", "lfu", "clock", "gclock")
TIMEOUT_SECONDS = 120


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
        assert repr(file).startswith("CachedFile(")
        assert repr(file).endswith(f"{path.name}', {len(file)} bytes)")
        with pytest.raises((MemoryLimitError, OutcoreError)):
            oc.io.cached(path, memory="1GiB")


@pytest.mark.parametrize("page_bytes", [512, 4096, 16384])
@pytest.mark.parametrize("policy", ["lru", "gclock"])
def test_writes_at_random_are_those_of_memory(out: Path, page_bytes: int, policy: str) -> None:
    numbers = np.random.default_rng(page_bytes)
    path = out / "w.bin"
    held = numbers.integers(0, 256, 3_000_001, dtype=np.uint8)
    held.tofile(path)
    with session(out):
        with oc.io.cached(path, mode="r+", memory="1.5MiB", page_bytes=page_bytes, policy=policy) as file:
            for size in (1, 8, 300, 5000, 40_000):
                offsets = numbers.integers(0, held.size - size, 200)
                rows = numbers.integers(0, 256, (200, size), dtype=np.uint8)
                file.write_at(offsets, rows)
                for offset, row in zip(offsets.tolist(), rows, strict=True):  # the later of two wins
                    held[offset : offset + size] = row
                some = numbers.integers(0, held.size - size, 50)
                assert np.array_equal(file.read_at(some, size), held[some[:, None] + np.arange(size)])
            assert file.counters.bytes_written > 0, "dirty pages gave way"
            file.flush()
            assert np.array_equal(np.fromfile(path, np.uint8), held)
            file.write_at([held.size + 10_000], np.array([7], np.uint8))
            assert len(file) == held.size + 10_001
        grown = np.concatenate([held, np.zeros(10_000, np.uint8), [np.uint8(7)]])
        assert np.array_equal(np.fromfile(path, np.uint8), grown)


def test_places_larger_than_a_request_are_read_and_written(out: Path) -> None:
    path = out / "l.bin"
    held = np.random.default_rng(4).integers(0, 256, 7_000_003, dtype=np.uint8)
    held.tofile(path)
    size, offsets = 3_000_001, np.array([4_000_002, 17, 0])
    with session(out), oc.io.cached(path, mode="r+", memory="2MiB") as file:
        assert np.array_equal(file.read_at(offsets, size), held[offsets[:, None] + np.arange(size)])
        assert np.array_equal(file.read_at(0, held.size)[0], held)
        file.write_at([offsets[1]], held[None, :size][:, ::-1])
        held[offsets[1] : offsets[1] + size] = held[:size][::-1].copy()
        assert np.array_equal(file.read_at(0, held.size)[0], held)
    assert np.array_equal(np.fromfile(path, np.uint8), held)


def test_small_pages_read_sectors(out: Path) -> None:
    if not takes_direct_io(out):
        pytest.skip("the file system has no direct I/O")
    path = out / "s.bin"
    np.arange(1 << 18).tofile(path)
    with session(out):
        read = {}
        for page_bytes in (512, 4096):
            try:
                file = oc.io.cached(path, page_bytes=page_bytes)
            except UnsupportedFormatError as refused:
                assert "units of 4096 bytes" in str(refused)  # noqa: PT017
                pytest.skip("sectors of the disk are larger")
            places = np.arange(0, 1 << 21, 1 << 15)
            assert np.array_equal(file.read_at(places, dtype="int64").ravel(), places // 8)
            read[page_bytes] = file.counters.bytes_read / places.size
        assert read == {512: 512, 4096: 4096}


def test_writes_that_cannot_be(out: Path) -> None:
    path = out / "r.bin"
    path.write_bytes(bytes(range(256)) * 64)
    with session(out):
        reading, file = oc.io.cached(path), oc.io.cached(path, mode="r+")
        with pytest.raises(ArgumentError, match="opened for reading"):
            reading.write_at([0], [1])
        with pytest.raises(ArgumentError, match="mode='w'"):
            oc.io.cached(path, mode="w")  # type: ignore[arg-type]
        with pytest.raises(ShapeError, match=r"2 offsets, values of shape \(3,\)"):
            file.write_at([0, 1], np.zeros(3))
        with pytest.raises(IndexingError, match="-1"):
            file.write_at([5, -1], np.zeros(2))
        with pytest.raises(ArgumentError, match="object"):
            file.write_at([0], np.array([None]))
        with pytest.raises(IndexingError, match="whole numbers"):
            file.write_at([0.5], np.zeros(1))
        with pytest.raises(UnsupportedFormatError, match="behind all pages"):
            file.write_at([2**63], np.zeros(1))
        file.write_at(np.zeros(0, int), np.zeros((0, 5)))
        file.flush()
    assert path.read_bytes() == bytes(range(256)) * 64


@pytest.mark.parametrize("fault", ["write:1", "sync:1"])
def test_a_write_that_fails_is_told_of_and_tried_again(out: Path, fault: str) -> None:
    path = out / "f.bin"
    np.zeros(1 << 16, np.uint8).tofile(path)
    with session(out, faults=fault):
        file = oc.io.cached(path, mode="r+")
        file.write_at([100, 40_000], np.array([1, 2], np.uint8))
        with pytest.raises(StorageError, match=r"f\.bin"):
            file.flush()
        file.flush()
        assert np.flatnonzero(np.fromfile(path, np.uint8)).tolist() == [100, 40_000]


@pytest.mark.skipif(not cgroup.is_real(), reason="no memory cgroup can be made here (it needs root)")
def test_a_file_in_a_group_smaller_than_it(out: Path) -> None:
    limit, length, count = 160 << 20, 40_000_000, 30_000
    np.arange(length).tofile(out / "n.bin")
    assert (out / "n.bin").stat().st_size > limit
    given = {"path": str(out / "n.bin"), "count": count, "memory_limit": limit}
    outcome = cgroup.run_limited("support.children:cached_file", given, limit, TIMEOUT_SECONDS)
    assert outcome.reason is None, outcome.stderr
    assert outcome.oom_kills == 0
    assert outcome.peak_rss_bytes is not None
    assert outcome.peak_rss_bytes <= limit
    assert outcome.value["right"]
    assert outcome.value["evictions"] > 0
    assert outcome.value["bytes_written"] >= count * 4096 * 0.9
    found = np.fromfile(out / "n.bin", np.int64)
    changed = np.flatnonzero(found != np.arange(length))
    assert len(changed) == count
    assert changed.sum() == outcome.value["written"]
    assert np.array_equal(found[changed], -1 - changed)


def test_pages_that_are_written_whole_are_the_cache_s_own(data: Path) -> None:
    """And not the process's, whose memory is no session's."""
    path = data / "a.bin"
    np.zeros(48 << 20, np.uint8).tofile(path)
    with session(memory_limit=8 << 30) as current:
        rows = np.ones((12 << 10, 4096), np.uint8)
        before = current.counters()["budget_bytes"]
        with oc.io.cached(path, memory="64MiB", mode="r+") as file:
            file.write_at(np.arange(len(rows)) * 4096, rows)
            file.flush()
            assert current.counters()["budget_bytes"] > before - (24 << 20)


def test_tiles_that_are_kept_make_room(data: Path) -> None:
    np.save(data / "x.npy", np.ones(16 << 20))
    with session(memory_limit=8 << 30, pool_limit=200 << 20) as current:
        x = oc.open(data / "x.npy")
        oc.compute(x.sum(), (x * x).sum())
        assert current.counters()["kept_bytes"] > 100 << 20
        with oc.io.cached(data / "x.npy", memory="20MiB") as file:
            assert file.read_at([0] * 5, size=30_000_000).shape == (5, 30_000_000)
        oc.compute((x + 1).sum())
        with oc.io.cached(data / "x.npy", memory="150MiB") as file:
            assert file.read_at([], size=1000, dtype="float64").shape == (0, 1000)
            with pytest.raises(ArgumentError, match="no file has so many bytes"):
                file.read_at([], size=2**62, dtype="float64")
