"""What every tile algorithm promises, stamped on each.

NumPy's answer, the same bits at every limit, number of threads and policy, bytes as forecast stage by stage, memory
within the limit, a clear end whichever call fails, and from there on the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.algorithms import MAKERS
from support.running import POLICIES, files_below, load, run, session, tree_hash
from support.sizes import Sweep, sized
from test_faults import CALLS_MAX, FAULTS, clear, makers_and_faults

import outcore as oc
from outcore.errors import MemoryLimitError, OutcoreError

stamped = pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)


def smallest_pool(work: Any, out: Path) -> int:
    """A pool near the smallest: first refused, then a quarter more until it fits."""
    pool = 4 << 20
    while True:
        with session(out, pool_limit=pool):
            try:
                oc.explain(work.targets(out), overwrite=True)
            except MemoryLimitError:
                pool = pool * 5 // 4
                continue
        return pool


@pytest.fixture(scope="module")
def made(shared: Path) -> Callable[..., tuple[Any, int]]:
    """A program of a size, whose inputs are written once, and a pool near its smallest."""

    @cache
    def of(make: Any, *mebibytes: float) -> tuple[Any, int]:
        folder = shared / "-".join([make.__name__, *map(str, mebibytes)])
        folder.mkdir()
        work = make(folder, *mebibytes)
        return work, smallest_pool(work, folder)

    return of


@stamped
def test_the_answer_is_numpys_and_the_bits_are_one(make: Any, made: Any, out: Path, scratch: Path) -> None:
    work, pool = made(make)
    hashes = None
    for threads, limit, policy in [
        (2, 1 << 30, "next-use"),
        *((1 + n % 3, pool << n, name) for n, name in enumerate(POLICIES)),
    ]:
        clear(out)
        with session(scratch, pool_limit=limit, threads=threads, policy=policy):
            run(work.targets(out))
        if hashes is None:
            for name, value in work.expected().items():
                found = load(out / name)
                assert found.dtype == value.dtype
                # What only moves elements keeps their bits.
                if name in work.near:
                    np.testing.assert_allclose(found, value, rtol=1e-9)
                else:
                    assert np.array_equal(found.view(np.uint8), np.ascontiguousarray(value).view(np.uint8)), name
            hashes = tree_hash(out)
        assert tree_hash(out) == hashes, f"{threads} threads, {limit} bytes, {policy}"
    assert files_below(scratch) == []


@stamped
@pytest.mark.parametrize("factor", sized([1, 40], [1, 1.6, 3, 40]))
def test_every_stage_does_what_was_forecast(make: Any, factor: float, made: Any, out: Path, scratch: Path) -> None:
    work, smallest = made(make)
    pool = int(smallest * factor)
    with session(scratch, pool_limit=pool) as current:
        targets = work.targets(out)
        for array in targets.values():
            _ = array.shape  # what is counted first is a run of its own
        current.clear()
        said = oc.explain(targets, overwrite=True)
        outcome = oc.store(targets, overwrite=True)
    stages = outcome.other["stages"]
    for forecast, counted in stages:
        assert list(forecast) == list(counted)
    if said.exact:
        assert len(stages) == 1
    else:
        assert len(stages) == len(said.stages)
        assert [stage.exact for stage in said.stages] == [True] + [False] * (len(stages) - 1)
        first = said.stages[0].forecast
        assert stages[0][1] == [first.bytes_read, first.bytes_written, first.peak_bytes]
    assert outcome.bytes_read <= said.bytes_read
    assert outcome.bytes_written <= said.bytes_written
    assert outcome.peak_bytes <= said.peak_bytes <= pool


def failure(work: Any, out: Path) -> tuple[str, str] | None:
    """Code and text of the error, not itself: its traceback holds the plan, and that the values it starts from."""
    try:
        run(work.targets(out))
    except OutcoreError as error:
        return error.code, str(error)
    return None


@pytest.mark.parametrize(
    ("make", "fault"), makers_and_faults(MAKERS), ids=lambda value: getattr(value, "__name__", value)
)
def test_the_nth_call_fails_for_every_n(make: Any, fault: str, made: Any, out: Path, scratch: Path) -> None:
    work, pool = made(make, 3)
    code, cause = FAULTS[fault]
    sweep = Sweep(fault, CALLS_MAX)
    for n in sweep:
        clear(out)
        with session(scratch, pool_limit=pool, faults=fault.format(n=n)) as current:
            found = failure(work, out)
            if found is None:
                continue
            sweep.failed()
            assert (found[0], cause in found[1]) == (code, True), found
            assert files_below(out) == []
            current.clear()
            assert current.counters()["reserved_bytes"] == 0
            run(work.targets(out))
    for name, value in work.expected().items():
        np.testing.assert_allclose(load(out / name), value, rtol=1e-9)
    assert files_below(scratch) == []


def fail_and_go_on(work: Any, pool: int, out: Path, scratch: Path, n: int) -> None:
    clear(out)
    with session(scratch, pool_limit=pool, faults=f"write:{n}"), pytest.raises(OutcoreError, match="output error"):
        oc.store(work.targets(out), resume=True)
    with session(scratch, pool_limit=2 * pool, threads=3):
        oc.store(work.targets(out), resume=True)


@stamped
@pytest.mark.filterwarnings("ignore::outcore.errors.ResumeWarning")
def test_what_a_failed_run_left_is_gone_on_with(make: Any, made: Any, out: Path, scratch: Path) -> None:
    work, pool = made(make, 3)
    with session(scratch, pool_limit=pool):
        run(work.targets(out))
    hashes = tree_hash(out)
    fail_and_go_on(work, pool, out, scratch, 4)
    assert tree_hash(out) == hashes


@stamped
@pytest.mark.filterwarnings("ignore::outcore.errors.ResumeWarning")
def test_nothing_is_left_of_what_was_gone_on_with(make: Any, made: Any, out: Path, scratch: Path) -> None:
    fail_and_go_on(*made(make, 3), out, scratch, 2)
    assert files_below(scratch) == []
