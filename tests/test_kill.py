"""kill -9 at random moments: inputs untouched, nothing false under a final name, scratch cleaned by the next session.

OUTCORE_TEST_KILLS says how many (20 unless told; the full check is 200).
"""

from __future__ import annotations

import random
import shutil
import time
from pathlib import Path

import numpy as np
import pytest
from conftest import KILLS
from support import workloads
from support.killing import start, wait
from support.running import files_below, load, run, session, tree_hash

OPTIONS = {"rewrites": {"all": False}, "policy": "clean-first-lru", "pool_limit": 12 << 20}
MAKERS = (workloads.nmf, workloads.gram_of_sum)


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_killed_at_random_moments(make: workloads.Maker, data: Path, out: Path, scratch: Path) -> None:
    work = make(data, 16)
    inputs = tree_hash(data)
    child = start(work, out, scratch, **OPTIONS)
    began = time.perf_counter()
    assert wait(child, 60), "the undisturbed run does not end"
    assert child.returncode == 0, child.communicate()[1]
    whole = time.perf_counter() - began
    expected = {path.name: load(path) for path in sorted(out.iterdir())}
    moments = random.Random(20231)
    for _ in range(max(1, KILLS // len(MAKERS))):
        clear(out)
        kill_once(work, out, scratch, moments.uniform(0, 1.1 * whole))
        assert tree_hash(data) == inputs
        for name, value in expected.items():
            if (out / name).exists():
                assert np.array_equal(load(out / name), value), f"{name} looks done and is not"
        with session(scratch):
            assert files_below(scratch) == [], "the next session leaves a dead process's scratch"
    with session(scratch, **OPTIONS):
        run(work.targets(out))
    assert sorted(path.name for path in out.iterdir()) == sorted(expected), "half-done outputs are left beside"
    for name, value in expected.items():
        assert np.array_equal(load(out / name), value)


def kill_once(work: workloads.Workload, out: Path, scratch: Path, after_seconds: float) -> None:
    child = start(work, out, scratch, **OPTIONS)
    if not wait(child, after_seconds):
        child.kill()
    child.communicate()


def clear(folder: Path) -> None:
    """Removes finished outputs only: what a killed run left beside them is the next run's to clean."""
    for path in folder.iterdir():
        if path.name.endswith((".zarr", ".npy")) and not path.name.startswith("."):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def test_scratch_of_a_living_process_is_left_alone(data: Path, out: Path, scratch: Path) -> None:
    work = workloads.nmf(data, 16)
    child = start(work, out, scratch, faults="delay-read:3:1500", **OPTIONS)
    with session(scratch):
        pass
    assert wait(child, 60)
    assert child.returncode == 0, child.communicate()[1]
