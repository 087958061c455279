"""kill -9 at random moments: inputs untouched, nothing false under a final name, scratch cleaned by the next session.

OUTCORE_TEST_KILLS says how many (8 unless told, or 40 with OUTCORE_LARGE; the full check is 200).
"""

from __future__ import annotations

import random
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import KILLS
from support import workloads
from support.killing import start, wait
from support.running import files_below, load, run, session, tree_hash

# Without rewriting, temporaries spill at this pool, so that there is scratch to leave behind.
SPILLING: dict[str, Any] = {"rewrites": {"all": False}, "policy": "clean-first-lru", "pool_limit": 12 << 20}
CASES: dict[str, tuple[workloads.Maker, dict[str, Any]]] = {
    "nmf, spilling": (workloads.nmf, SPILLING),
    "transpose": (workloads.transpose, {"pool_limit": 24 << 20}),
}


@pytest.mark.parametrize("case", CASES)
def test_killed_at_random_moments(case: str, data: Path, out: Path, scratch: Path) -> None:
    make, options = CASES[case]
    work = make(data, 16)
    inputs = tree_hash(data)
    child = start(work, out, scratch, **options)
    began = time.perf_counter()
    assert wait(child, 60), "the undisturbed run does not end"
    assert child.returncode == 0, child.communicate()[1]
    whole = time.perf_counter() - began
    expected = {path.name: load(path) for path in sorted(out.iterdir())}
    moments = random.Random(20231)
    for _ in range(max(1, KILLS // len(CASES))):
        clear(out)
        kill_once(start(work, out, scratch, **options), moments.uniform(0, 1.1 * whole))
        assert tree_hash(data) == inputs
        for name, value in expected.items():
            if (out / name).exists():
                assert np.array_equal(load(out / name), value), f"{name} looks done and is not"
        with session(scratch):
            pass
        assert files_below(scratch) == [], "the next session leaves a dead process's scratch"
    with session(scratch, **options):
        run(work.targets(out))
    assert sorted(path.name for path in out.iterdir()) == sorted(expected), "half-done outputs are left beside"
    for name, value in expected.items():
        assert np.array_equal(load(out / name), value)


def kill_once(child: subprocess.Popen[str], after_seconds: float) -> None:
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
    child = start(work, out, scratch, faults="delay-read:3:1500", **SPILLING)
    with session(scratch):
        pass
    assert wait(child, 60)
    assert child.returncode == 0, child.communicate()[1]
