"""The forecast is the outcome: bytes read and written and peak memory, to the byte, at every thread count and limit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.child import io_counters
from support import workloads
from support.running import ROOMY, forecast, load, run, session, takes_direct_io
from support.sizes import alternating

import outcore as oc
from outcore.errors import MemoryLimitError

THREADS = (1, 2, 4)
SHARES = (1 / 8, 1 / 4, 1 / 2, 2)
METADATA_BYTES = 256 << 10


def pool_that_works(work: workloads.Workload, out: Path, pool: int, threads: int) -> int:
    """The pool itself, or, when the planner refuses it, the smallest one it names."""
    refused = None
    with session(pool_limit=pool, threads=threads):
        try:
            forecast(work.targets(out))
        except MemoryLimitError as error:
            refused = error
    if refused is None:
        return pool
    assert refused.operator
    assert None not in (refused.need, refused.limit, refused.smallest)
    assert refused.need > refused.limit
    assert refused.smallest > pool
    return refused.smallest


@pytest.mark.parametrize("make", workloads.PROMISED, ids=lambda make: make.__name__)
def test_outcome_equals_forecast(make: Any, data: Path, out: Path) -> None:
    work = make(data)
    expected = work.expected()
    for threads, share in alternating(THREADS, SHARES):
        pool = pool_that_works(work, out, int(work.data_bytes * share), threads)
        with session(pool_limit=pool, threads=threads):
            told = forecast(work.targets(out))
            done = run(work.targets(out))
        assert done == told, f"{threads} threads, pool {pool}"
        assert told["peak_bytes"] <= pool
        assert told["bytes_read"] > 0
    for name, value in expected.items():
        np.testing.assert_allclose(load(out / name), value, rtol=1e-12, err_msg=name)


@pytest.mark.parametrize("make", workloads.PROMISED, ids=lambda make: make.__name__)
def test_less_memory_never_reads_less(make: Any, data: Path, out: Path) -> None:
    work = make(data)
    moved = []
    for share in SHARES:
        pool = pool_that_works(work, out, int(work.data_bytes * share), 2)
        with session(pool_limit=pool):
            told = forecast(work.targets(out))
        moved.append(told["bytes_read"] + told["bytes_written"])
    assert moved == sorted(moved, reverse=True)


@pytest.mark.parametrize("make", workloads.PROMISED, ids=lambda make: make.__name__)
def test_a_refused_pool_names_the_smallest_that_works(make: Any, data: Path, out: Path) -> None:
    work = make(data)
    with session(pool_limit=64 << 10), pytest.raises(MemoryLimitError) as refused:
        oc.explain(work.targets(out), overwrite=True)
    smallest = refused.value.smallest
    assert smallest is not None
    with session(pool_limit=smallest):
        told = forecast(work.targets(out))
        assert run(work.targets(out)) == told
    with session(pool_limit=smallest - smallest // 8), pytest.raises(MemoryLimitError):
        oc.explain(work.targets(out), overwrite=True)


@pytest.mark.parametrize("make", workloads.PROMISED, ids=lambda make: make.__name__)
def test_the_kernel_counts_the_same(make: Any, data: Path, out: Path) -> None:
    if not takes_direct_io(data):
        pytest.skip("the file system of the temporary folder refuses O_DIRECT, so reads may come from the page cache")
    work = make(data)
    pool = pool_that_works(work, out, work.data_bytes // 4, 2)
    with session(pool_limit=pool, direct_io=True) as current:
        first = out / "first"
        first.mkdir()
        run(work.targets(first))  # the pages of the code itself are read the first time
        current.clear()
        targets = work.targets(out)
        before = io_counters()
        done = run(targets)
        after = io_counters()
    read, written = (after[name] - before[name] for name in ("read_bytes", "write_bytes"))
    assert abs(read - done["bytes_read"]) <= done["bytes_read"] // 100 + METADATA_BYTES
    assert abs(written - done["bytes_written"]) <= done["bytes_written"] // 100 + METADATA_BYTES


def test_explain_runs_nothing(data: Path, out: Path) -> None:
    work = workloads.nmf(data)
    with session(pool_limit=ROOMY) as current:
        oc.explain(work.targets(out), overwrite=True)
        counted = current.counters()
    assert counted["bytes_read"] == counted["bytes_written"] == counted["reserved_bytes"] == 0
    assert list(out.iterdir()) == []


def test_tiles_that_stayed_are_not_read_again(data: Path, out: Path) -> None:
    work = workloads.logistic(data)
    with session(pool_limit=4 * work.data_bytes) as current:
        first = run(work.targets(out))
        told = forecast(work.targets(out))
        assert told["bytes_read"] < first["bytes_read"]
        assert run(work.targets(out)) == told
        current.clear()
        assert forecast(work.targets(out))["bytes_read"] == first["bytes_read"]


@pytest.mark.parametrize("side", [6000, 8000, 12000])
def test_a_product_of_large_files_moves_little_more_than_the_least(side: int, tmp_path: Path) -> None:
    """2mnk/√S elements are read at least (arXiv 1702.02017); blocks are whole, and runs of rows whole pages."""
    names = [tmp_path / "a.npy", tmp_path / "b.npy"]
    for name in names:
        np.lib.format.open_memmap(name, mode="w+", dtype="f8", shape=(side, side))
    pool = 340 << 20
    least = max(8 * 2 * side**3 / (pool / 8) ** 0.5, 2 * 8 * side**2)
    with session(pool_limit=pool, threads=2):
        a, b = map(oc.open, names)
        out = tmp_path / "c.npy"
        assert oc.explain({out: a @ b}).bytes_read <= 1.75 * least
        assert oc.explain({out: a.T @ b}).bytes_read <= 1.6 * least
        assert oc.explain({out: a @ b.T}).bytes_read <= 2.2 * least


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_sum_along_a_short_axis_of_one_tile_is_written_once(axis: int, out: Path) -> None:
    """Tiles of the result are finer than those of what is summed up."""
    x = np.random.default_rng(3).random((1700, 600)).astype("f4")
    stacked = oc.stack([oc.asarray(x), oc.asarray(x) * 2], axis=axis)
    targets = {str(out / "sum.npy"): stacked.sum(axis=axis), str(out / "max.npy"): stacked.max(axis=axis)}
    with session():
        told = forecast(targets)
        assert run(targets) == told
        assert told["bytes_written"] <= 2 * x.nbytes + (256 << 10)
    np.testing.assert_allclose(load(out / "sum.npy"), np.stack([x, 2 * x], axis).sum(axis), rtol=1e-6)
    np.testing.assert_array_equal(load(out / "max.npy"), 2 * x)
