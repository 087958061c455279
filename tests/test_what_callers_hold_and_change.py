"""Results that callers hold, files that change under an expression, and long calls that a signal ends."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import numpy as np
import pytest
from support.running import session

import outcore as oc
from outcore.errors import MemoryLimitError, SourceChangedError


def in_memory() -> Path:
    """A path on a file system that is memory, where stores through a map move no times."""
    if not os.access("/dev/shm", os.W_OK):
        pytest.skip("no /dev/shm")
    return Path("/dev/shm") / f"outcore-test-{os.getpid()}.npy"


@pytest.mark.parametrize("anew", [True, False])
def test_stores_through_a_map_of_a_file_in_memory_are_seen(anew: bool) -> None:
    path = in_memory()
    try:
        np.save(path, np.zeros(1000))
        mapped = np.load(path, mmap_mode="r+")
        mapped[7] = -1  # the first store into a page moves the time
        array, found = oc.open(path), []
        for value in range(4):
            mapped[7] = value
            mapped.flush()
            array = oc.open(path) if anew else array
            found.append((array.sum().item(), (array * 2.0)[7].item()))
        assert found == [(value, 2.0 * value) for value in range(4)]
    finally:
        path.unlink(missing_ok=True)


def test_a_refusal_names_the_results_that_are_held(tmp_path: Path) -> None:
    with session(tmp_path, pool_limit=32 << 20):
        held = oc.ones((1500, 2000)).compute()
        small = oc.arange(10).compute()
        with pytest.raises(MemoryLimitError) as refused:
            oc.ones(2_000_000).compute()
        assert "results held by the caller: 22.9 MiB, the largest float64 (1500, 2000); delete them" in str(
            refused.value
        )
        assert refused.value.details["held"] >= held.nbytes + small.nbytes
        # A view holds what it is a part of.
        view = held[:1, :1]
        del held
        with pytest.raises(MemoryLimitError, match="results held by the caller"):
            oc.ones(2_000_000).compute()
        del view
        assert len(oc.ones(2_000_000).compute()) == 2_000_000


def test_a_refusal_of_what_never_fits_speaks_of_no_small_result(tmp_path: Path) -> None:
    with session(tmp_path, pool_limit=32 << 20):
        held = oc.arange(10).compute()
        with pytest.raises(MemoryLimitError) as refused:
            oc.ones(20_000_000).compute()
        assert "held by the caller" not in str(refused.value), held


def test_an_overwritten_source_tells_to_open_it_again(tmp_path: Path) -> None:
    path = tmp_path / "data.npy"
    np.save(path, np.arange(10.0))
    array = oc.open(path)
    oc.store({path: array + 1}, overwrite=True)
    with pytest.raises(SourceChangedError, match=r"data\.npy: changed since it was opened .*; open it again"):
        (array * 2).compute()
    assert oc.open(path).sum().item() == 55


@pytest.mark.parametrize("write", [False, True])
def test_a_signal_ends_many_reads_and_writes(tmp_path: Path, write: bool) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.zeros(2_000_000))
    offsets = np.random.default_rng(0).integers(128, 15_900_000, 4_000_000 if not write else 1_000_000)
    cached = oc.io.cached(path, memory="2MiB", mode="r+" if write else "r")
    zeros = np.zeros((len(offsets), 8), dtype=np.uint8)
    before = cached.counters.misses

    def stop_it() -> None:
        while cached.counters.misses == before:
            pass
        os.kill(os.getpid(), signal.SIGINT)

    stopper = threading.Thread(target=stop_it, daemon=True)
    stopper.start()
    with pytest.raises(KeyboardInterrupt):
        _ = cached.write_at(offsets, zeros) if write else cached.read_at(offsets, 8)
    stopper.join()
    counted = cached.counters
    assert counted.misses + counted.hits + counted.joins < len(offsets)


def test_parts_of_many_reads_are_as_one(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.arange(100_000))
    cached = oc.io.cached(path, memory="2MiB")
    places = np.random.default_rng(1).integers(0, 100_000, 40_001)
    assert (cached.read_at(128 + 8 * places, 8).view(np.int64).ravel() == places).all()
