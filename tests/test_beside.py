"""The counters of a run are its own, whatever other threads of the process read and write meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from support.running import forecast, run, session

import outcore as oc

ROWS, COLUMNS = 1 << 12, 512


@contextmanager
def beside(work: Callable[[], object]) -> Iterator[list[int]]:
    """Another thread that works over and over; how often it did."""
    over, turns, failed = threading.Event(), [0], []

    def go() -> None:
        try:
            while not over.is_set():
                work()
                turns[0] += 1
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=go)
    thread.start()
    try:
        yield turns
    finally:
        over.set()
        thread.join()
    assert not failed, failed


@pytest.fixture
def x(data: Path) -> Path:
    path = data / "x.npy"
    np.save(path, np.random.default_rng(0).random((ROWS, COLUMNS)))
    return path


@pytest.mark.parametrize(("pool", "memory"), [(64, "4MiB"), (36, "16MiB")])
def test_a_run_does_not_count_what_others_read(pool: int, memory: str, x: Path, data: Path, out: Path) -> None:
    """Nor does it lack the memory of a cache that gave way to it: a smaller cache grows when the run is over."""
    other = data / "other.bin"
    np.random.default_rng(1).integers(0, 256, 24 << 20, dtype=np.uint8).tofile(other)
    random = np.random.default_rng(2)
    with session(pool_limit=pool << 20) as current:
        file = oc.io.cached(other, memory=memory)
        offsets = random.integers(0, len(file) - 4096, 256)
        before, cached_before = current.counters()["bytes_read"], file.counters.bytes_read
        programs = 0
        with beside(lambda: file.read_at(offsets, 4096)) as turns:
            for attempt in range(200):
                told = forecast({out / "y.npy": oc.open(x) + attempt, out / "s.npy": oc.open(x).sum(axis=0)})
                done = run({out / "y.npy": oc.open(x) + attempt, out / "s.npy": oc.open(x).sum(axis=0)})
                # Memory that others give back meanwhile lowers the peak.
                assert done.pop("peak_bytes") <= told.pop("peak_bytes")
                assert done == told, f"attempt {attempt}, the other thread read {turns[0]} times"
                programs += done["bytes_read"]
                current.clear()
                if attempt >= 20 and turns[0] > 100:
                    break
        assert turns[0] > 0
        cached = file.counters.bytes_read - cached_before
        # The session counts all of it.
        assert cached > 0
        assert current.counters()["bytes_read"] - before == programs + cached
