"""A crowded machine, a careless writer, a crafted file: nothing is lost, nothing is wrong, all is said early."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from support.running import files_below, session, tree_hash

import outcore as oc


def test_a_group_is_not_replaced_by_an_array(tmp_path: Path) -> None:
    group = zarr.open_group(tmp_path / "g.zarr", mode="w")
    group.create_array("x", data=np.ones(3))
    before = tree_hash(tmp_path)
    with pytest.raises(oc.errors.FormatError, match="group"):
        oc.store({tmp_path / "g.zarr": oc.ones(3)}, overwrite=True)
    assert tree_hash(tmp_path) == before


def test_a_file_rewritten_at_once_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    for value in range(20):
        np.save(path, np.full(1000, float(value)))
        assert oc.compute(oc.open(path).max()) == value


def test_a_file_rewritten_with_its_old_time_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.ones(1000))
    before = path.stat()
    total = oc.open(path).sum()
    assert oc.compute(total) == 1000
    with path.open("r+b") as file:
        file.seek(128)
        file.write(np.float64(2).tobytes())
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert oc.compute(oc.open(path).sum()) == 1001
    with pytest.raises(oc.errors.SourceChangedError):
        oc.compute(total)


def test_a_file_rewritten_under_way_gives_no_result(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.ones((400, 4096)))
    x = oc.open(path)

    def disturb(block: Any) -> Any:
        with path.open("r+b") as file:
            file.seek(-8, os.SEEK_END)
            file.write(np.float64(5).tobytes())
        return block + 1

    out = tmp_path / "y.npy"
    with pytest.raises(oc.errors.SourceChangedError):
        oc.store({out: oc.map_blocks(disturb, x, dtype=x.dtype)})
    assert files_below(tmp_path) == ["x.npy"]


@pytest.mark.parametrize("suffix", ["npy", "zarr"])
def test_a_backup_under_way_costs_no_result(tmp_path: Path, suffix: str) -> None:
    """A link to a file, as backups make them, changes its status and not its bytes."""
    path = tmp_path / f"x.{suffix}"
    oc.store({path: oc.ones((400, 4096))})
    x = oc.open(path)
    file = path if suffix == "npy" else next(part for part in path.rglob("c/**/*") if part.is_file())

    def back_up(block: Any) -> Any:
        link = tmp_path / "backup"
        if not link.exists():
            link.hardlink_to(file)
        return block + 1

    # In one thread: two would meet at the link.
    with oc.Session(threads=1, progress=False):
        oc.store({tmp_path / "y.npy": oc.map_blocks(back_up, x, dtype=x.dtype)})
    assert np.load(tmp_path / "y.npy").min() == 2


def test_buffers_for_encoded_chunks_are_counted_where_the_chunks_are(tmp_path: Path) -> None:
    """All chunks at the edges are missing, as in a masked map; the largest lies inside."""
    side, chunk = 1500, 500
    made = zarr.create_array(tmp_path / "x.zarr", shape=(side, side), chunks=(chunk, chunk), dtype="f8", fill_value=0)
    inside = np.random.default_rng(0).random((chunk, chunk))
    made[chunk : 2 * chunk, chunk : 2 * chunk] = inside
    x = oc.open(tmp_path / "x.zarr")
    with oc.Session(io_threads=2, threads=1, progress=False):
        told = oc.explain(x.sum())
        # Two threads that read, each with a chunk decoded and about as much encoded.
        assert told.fixed_bytes > 2 * 1.5 * inside.nbytes
        assert oc.compute(x.sum()) == pytest.approx(inside.sum(), rel=1e-12)


@pytest.mark.parametrize("codecs", [["gzip"], ["gzip", "gzip"], ["zstd", "gzip"]])
@pytest.mark.parametrize("io_threads", [4, 8])
def test_chunks_of_an_absurd_size_are_refused(tmp_path: Path, codecs: list[str], io_threads: int) -> None:
    path = tmp_path / "x.zarr"
    zarr.create_array(path, shape=(100,), chunks=(100,), dtype="u1", compressors=None)[:] = 7
    document = json.loads((path / "zarr.json").read_text())
    settings = {"gzip": {"level": 1}, "zstd": {"level": 1, "checksum": False}}
    encoders = [{"name": name, "configuration": settings[name]} for name in codecs]
    for chunk in (2**61 - 1, 2_049_638_230_412_172_401, 2**50):
        document["chunk_grid"]["configuration"]["chunk_shape"] = [chunk]
        document["codecs"] = [{"name": "bytes"}, *encoders]
        (path / "zarr.json").write_text(json.dumps(document))
        with pytest.raises((oc.errors.FormatError, oc.errors.MemoryLimitError)), oc.Session(io_threads=io_threads):
            oc.compute(oc.open(path).sum())


def spilling(tmp_path: Path, sweeps: int) -> Any:
    """A program that spills again and again: each product waits for sums over the one before."""
    path = tmp_path / "a.npy"
    if not path.exists():
        np.save(path, np.random.default_rng(0).random((1600, 1600)))
    value = a = oc.open(path)
    for _ in range(sweeps):
        product = value @ a
        value = product / oc.max(product)
    return value


SPILLING = {"pool_limit": 40 << 20, "threads": 1}


def test_scratch_is_used_again_and_given_back(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with session(scratch, **SPILLING):
        told = oc.explain(spilling(tmp_path, 6))
        assert 0 < told.bytes_scratch < told.bytes_spilled
        with oc.profile() as seen:
            oc.compute(spilling(tmp_path, 6))
        assert seen.bytes_spilled == told.bytes_spilled
        assert sum(path.stat().st_size for path in scratch.rglob("*") if path.is_file()) == 0


def test_spills_beyond_the_quota_are_refused_before_anything_runs(tmp_path: Path) -> None:
    with session(tmp_path, **SPILLING):
        need = oc.explain(spilling(tmp_path, 6)).bytes_scratch
    with session(tmp_path, **SPILLING, scratch_quota=need - 1), pytest.raises(oc.errors.OutcoreError, match="quota"):
        oc.explain(spilling(tmp_path, 6))
    with session(tmp_path, **SPILLING, scratch_quota=need):
        oc.compute(spilling(tmp_path, 6))


def test_an_interrupted_plan_ends_and_does_not_stand_in_the_way() -> None:
    x = oc.random.uniform((10**5, 10**5), seed=1)
    previous = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        with pytest.raises(KeyboardInterrupt):
            oc.explain(*[((x + shift) @ x.T).sum(axis=0) for shift in range(20)])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    begin = time.perf_counter()
    assert oc.compute(oc.ones(3).sum()) == 3
    assert time.perf_counter() - begin < 10


def test_a_forked_child_may_leave_its_parents_session(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.ones(100_000))
    with oc.Session(progress=False) as parent:
        assert oc.compute(oc.open(path).sum()) == 100_000
        child = os.fork()
        if child == 0:
            try:
                parent.__exit__(None, None, None)
            except BaseException:
                os._exit(1)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert oc.compute(oc.open(path).sum()) == 100_000


def test_empty_products_of_large_matrices() -> None:
    for shape_a, shape_b in (((0, 5000), (5000, 2000)), ((1025, 1500), (1500, 0)), ((0, 4100), (4100, 1025))):
        found = oc.compute(oc.zeros(shape_a) @ oc.zeros(shape_b))
        assert found.shape == (shape_a[0], shape_b[1])


def test_a_constant_is_rounded_to_its_type() -> None:
    assert oc.compute(oc.asarray(0.1, dtype="f4") * oc.asarray(np.ones(2)))[0] == np.float32(0.1)
    assert oc.compute(oc.asarray(16777217).astype("f4").astype("i8")) == 16777216
    assert oc.compute(oc.full((), 1e300, dtype="f4").astype("f8")) == np.inf
    assert oc.compute(oc.full((), 0.1 + 0.3j, dtype="c8").astype("c16")) == np.complex64(0.1 + 0.3j)
