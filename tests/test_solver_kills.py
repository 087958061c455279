"""kill -9 at random moments of factorizations and solutions: inputs untouched, no half factor, scratch cleaned.

OUTCORE_TEST_KILLS says how many in all (8 unless told, or 40 with OUTCORE_LARGE).
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from conftest import KILLS
from support.killing import PATHS, wait
from support.running import files_below, session, tree_hash
from support.solving_child import DENSE, POOL, SPARSE, factor, make_inputs, opened, right_of


def started(kind: str, data: Path, out: Path, scratch: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "support.solving_child", kind, str(data), str(out), str(scratch)]
    child = subprocess.Popen(
        command, env=os.environ | {"PYTHONPATH": PATHS}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n", child.communicate()[1]
    return child


@pytest.mark.parametrize("kind", [*SPARSE, *DENSE])
def test_killed_at_random_moments(kind: str, data: Path, out: Path, scratch: Path) -> None:
    make_inputs(kind, data)
    inputs = tree_hash(data)
    began = time.perf_counter()
    child = started(kind, data, out, scratch)
    assert wait(child, 120), "the undisturbed run does not end"
    assert child.returncode == 0, child.communicate()[1]
    child.communicate()
    whole = time.perf_counter() - began
    expected, factored = np.load(out / "x.npy"), (out / "f.ocf").read_bytes()
    moments = random.Random(kind)
    for _ in range(max(1, KILLS // 5)):
        for name in ("x.npy", "f.ocf"):
            (out / name).unlink(missing_ok=True)
        child = started(kind, data, out, scratch)
        if not wait(child, moments.uniform(0, whole)):
            child.kill()
        child.communicate()
        assert tree_hash(data) == inputs
        with session(scratch, pool_limit=POOL):
            assert files_below(scratch) == [], "the next session leaves a dead process's scratch"
            if (out / "f.ocf").exists():
                assert (out / "f.ocf").read_bytes() == factored, "a factor looks done and is not"
                found = opened(kind, data, out / "f.ocf")
                np.testing.assert_array_equal(found.solve(right_of(found)), expected)
            if (out / "x.npy").exists():
                np.testing.assert_array_equal(np.load(out / "x.npy"), expected)
    with session(scratch, pool_limit=POOL):
        made = factor(kind, data, out / "f.ocf")
        np.testing.assert_array_equal(made.solve(right_of(made)), expected)
        del made
    assert (out / "f.ocf").read_bytes() == factored
    assert set(files_below(out)) <= {"f.ocf", "x.npy"}, "half-done factors are left beside"
