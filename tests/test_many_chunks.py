"""Zarr arrays of very many tiny chunks: right within a real limit, with a forecast that is the outcome."""

from __future__ import annotations

import json
import os
import signal
import struct
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from benchmarks import cgroup
from conftest import LARGE
from support.running import session
from support.sizes import sized

import outcore as oc

LIMIT = 256 << 20
CHUNK = 8
"""Elements of a chunk: 64 bytes."""
CHUNKS = sized(8_000, 1_000_000)
TIMEOUT_SECONDS = sized(120, 1800)
SECONDS_MAX = 3.0
"""Times the plain read of the files by their names."""
NEEDS_CGROUP = "no memory cgroup can be made here (it needs root), and no other limit counts resident memory"
pytestmark = pytest.mark.skipif(not cgroup.is_real(), reason=NEEDS_CGROUP)


def document(shape: list[int], chunk: list[int], codecs: list[dict[str, Any]]) -> str:
    return json.dumps(
        {
            "zarr_format": 3,
            "node_type": "array",
            "shape": shape,
            "data_type": "float64",
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
            "chunk_key_encoding": {"name": "default"},
            "fill_value": 0.0,
            "codecs": codecs,
        }
    )


PLAIN: dict[str, Any] = {"name": "bytes", "configuration": {"endian": "little"}}


def value(chunk: int) -> float:
    return float(chunk % 1013)


def expected(chunks: int) -> float:
    return CHUNK * sum(map(value, range(chunks)))


def make_files(path: Path, chunks: int) -> Path:
    """A file for each chunk, all in one folder."""
    (path / "c").mkdir(parents=True)
    (path / "zarr.json").write_text(document([chunks * CHUNK], [CHUNK], [PLAIN]))
    folder = os.open(path / "c", os.O_RDONLY)
    for chunk in range(chunks):
        file = os.open(str(chunk), os.O_WRONLY | os.O_CREAT, 0o644, dir_fd=folder)
        os.write(file, struct.pack("<d", value(chunk)) * CHUNK)
        os.close(file)
    os.close(folder)
    return path


def make_shards(path: Path, chunks: int, shards: int, seed: int | None = None) -> Path:
    """Inner chunks in shards, in order or shuffled."""
    path.mkdir()
    (path / "c").mkdir()
    inner = chunks // shards
    sharding = {"chunk_shape": [CHUNK], "codecs": [PLAIN], "index_codecs": [PLAIN, {"name": "crc32c"}]}
    codecs = [{"name": "sharding_indexed", "configuration": sharding}]
    (path / "zarr.json").write_text(document([chunks * CHUNK], [inner * CHUNK], codecs))
    import google_crc32c

    for shard in range(shards):
        places = np.arange(inner, dtype="u8")
        if seed is not None:
            np.random.default_rng(seed).shuffle(places)
        values = np.empty((inner, CHUNK))
        values[places] = (np.arange(shard * inner, (shard + 1) * inner) % 1013)[:, None]
        index = np.stack([places * 64, np.full(inner, 64, "u8")], axis=1).tobytes()
        checksum = google_crc32c.value(index).to_bytes(4, "little")
        (path / "c" / str(shard)).write_bytes(values.tobytes() + index + checksum)
    return path


def plain_read(path: str, chunks: int) -> float:
    """Seconds for reading every chunk's file by its name."""
    begin = time.perf_counter()
    for chunk in range(chunks):
        file = os.open(f"{path}/c/{chunk}", os.O_RDONLY)
        assert len(os.read(file, 4096)) == 64
        os.close(file)
    return time.perf_counter() - begin


def sums(path: str, out: str, memory_limit: int) -> dict[str, Any]:
    """A sum with its forecast, twice: the second time from kept tiles as far as they fit."""
    seconds = []

    def lap(begin: float) -> float:
        seconds.append(time.perf_counter() - begin)
        return time.perf_counter()

    with oc.Session(memory_limit=memory_limit, threads=2, progress=False):
        begin = time.perf_counter()
        x = oc.open(path)
        begin = lap(begin)
        totals, forecasts = [], []
        for at in range(2):
            targets = {f"{out}/{at}.npy": x.sum()}
            told = oc.explain(targets)
            begin = lap(begin)
            done = oc.store(targets)
            begin = lap(begin)
            assert (told.bytes_read, told.peak_bytes) == (done.bytes_read, done.peak_bytes)
            totals.append(float(np.load(f"{out}/{at}.npy")))
            forecasts.append((told.bytes_read, told.peak_bytes))
        return {"totals": totals, "forecasts": forecasts, "seconds": seconds}


def limited(path: Path, out: Path, limit: int = LIMIT) -> cgroup.Outcome:
    cgroup.drop_page_cache(path)
    given = {"path": str(path), "out": str(out), "memory_limit": limit}
    outcome = cgroup.run_limited("test_many_chunks:sums", given, limit, TIMEOUT_SECONDS)
    assert outcome.reason is None, outcome.reason
    assert outcome.oom_kills == 0
    assert outcome.peak_rss_bytes is not None
    assert outcome.peak_rss_bytes <= limit
    assert outcome.value["totals"] == [expected(CHUNKS)] * 2
    print(f"\n{path.name}: {outcome.value}, peak resident {outcome.peak_rss_bytes:,}")
    return outcome


def test_a_million_files_within_the_limit(tmp_path: Path, out: Path) -> None:
    path = make_files(tmp_path / "files.zarr", CHUNKS)
    outcome = limited(path, out)
    if not LARGE:
        return
    cgroup.drop_page_cache(path)
    given = {"path": str(path), "chunks": CHUNKS}
    plain = cgroup.run_limited("test_many_chunks:plain_read", given, LIMIT, TIMEOUT_SECONDS)
    opened, explained, ran, *_ = outcome.value["seconds"]
    print(f"the plain read by names: {plain.value:.1f} s")
    # No test of speed, but of how often each file is touched: a third look at every one would not fit.
    assert opened + explained + ran <= SECONDS_MAX * plain.value


@pytest.mark.parametrize("shards", [1, 100])
@pytest.mark.parametrize("seed", [None, 5], ids=["in order", "shuffled"])
def test_a_million_inner_chunks_within_the_limit(tmp_path: Path, out: Path, shards: int, seed: int | None) -> None:
    outcome = limited(make_shards(tmp_path / "shards.zarr", CHUNKS, shards, seed), out, 160 << 20)
    bytes_read, _ = outcome.value["forecasts"][0]
    if seed is None:
        # What is not data are the pages at the ends of what is read in one go.
        assert bytes_read <= 64 * CHUNKS + 8192 * (shards + CHUNKS // 1000)


def opens(path: str, memory_limit: int) -> int:
    with oc.Session(memory_limit=memory_limit, threads=1, progress=False) as one:
        x = oc.open(path)
        held = one.counters()["reserved_bytes"]
        del x
        assert one.counters()["reserved_bytes"] == 0
        return int(held)


def test_the_record_of_chunks_is_part_of_the_limit(tmp_path: Path) -> None:
    """Very many chunks, which are names of a few files: what is recorded of each is counted as long as it is held."""
    chunks, links_max = 400_000, 60_000
    path = make_files(tmp_path / "links.zarr", chunks // links_max + 1)
    (path / "zarr.json").write_text(document([chunks * CHUNK], [CHUNK], [PLAIN]))
    folder = os.open(path / "c", os.O_RDONLY)
    for chunk in range(chunks // links_max + 1, chunks):
        os.link(str(chunk // links_max), str(chunk), src_dir_fd=folder, dst_dir_fd=folder)
    os.close(folder)
    held = opens(str(path), 1 << 30)
    assert 24 * chunks <= held <= 26 * chunks
    small = oc.Session(pool_limit=held // 2, progress=False)
    with small, pytest.raises(oc.errors.MemoryLimitError, match="the record of an array's chunks") as refused:
        oc.open(path)
    assert held // 2 < refused.value.smallest


def open_again_and_again(path: Path) -> None:
    for _ in range(100):
        oc.open(path)


def test_opening_can_be_interrupted(tmp_path: Path) -> None:
    path = make_files(tmp_path / "files.zarr", CHUNKS)
    previous = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.005)
        with pytest.raises(KeyboardInterrupt):
            open_again_and_again(path)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    assert oc.compute(oc.open(path).sum()) == expected(CHUNKS)


def test_a_chunk_added_or_rewritten_between_two_sums_is_noticed(tmp_path: Path) -> None:
    """Kept tiles are served only while their chunks are what they were."""
    path = tmp_path / "x.zarr"
    array = zarr.create_array(path, shape=(4096,), chunks=(8,), dtype="f8", fill_value=1, compressors=None)
    array[:2048] = 2
    for change in (lambda: array.__setitem__(slice(0, 8), 3), lambda: array.__setitem__(slice(4088, 4096), 3)):
        with session():
            total = oc.open(path).sum()
            before = np.asarray(array[...]).sum()
            assert oc.compute(total) == before
            assert oc.compute(total) == before
            change()
            with pytest.raises(oc.errors.SourceChangedError):
                oc.compute(total)
            assert oc.compute(oc.open(path).sum()) == np.asarray(array[...]).sum()


def test_a_chunk_rewritten_under_way_gives_no_result(tmp_path: Path) -> None:
    path = tmp_path / "x.zarr"
    array = zarr.create_array(path, shape=(64, 131072), chunks=(1, 131072), dtype="f8", fill_value=0, compressors=None)
    array[...] = 1
    x = oc.open(path)

    def disturb(block: Any) -> Any:
        array[63] = 5
        return block + 1

    with session(pool_limit=48 << 20, threads=1, io_threads=1, window=1), pytest.raises(oc.errors.SourceChangedError):
        oc.store({tmp_path / "y.npy": oc.map_blocks(disturb, x, dtype=x.dtype)})
    assert not (tmp_path / "y.npy").exists()
