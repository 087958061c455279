"""Loop programs whose reads and writes fail, and that are killed: no half results, and the same bits in the end."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import KILLS
from support.killing import PATHS
from support.loop_fixed import FIXED
from support.loop_runs import assert_same, lazy, plain, run_within, stored
from support.running import assert_nothing_but_kept, files_below, load, run, session, tree_hash
from support.sizes import Sweep, alternating, sized

import outcore as oc
from outcore.errors import OutcoreError

CALLS_MAX = 3000
FAULTS = {
    "read:{n}": ("io", "Input/output error"),
    "write:{n}": ("io", "Input/output error"),
    "write:{n}:enospc": ("space", "No space left on device"),
    "torn-write:{n}": ("io", "Input/output error"),
    "sync:{n}": ("io", "Input/output error"),
    "rename:{n}": ("io", "Input/output error"),
}


def refused(call: Callable[[], None]) -> OutcoreError | None:
    try:
        call()
    except OutcoreError as error:
        return error
    return None


@pytest.mark.parametrize(("fault", "name"), alternating(list(FAULTS), ["seidel", "jacobi"]))
def test_the_nth_call_fails_for_every_n(name: str, fault: str, data: Path, out: Path, scratch: Path) -> None:
    case = FIXED[name]
    values = case.arguments(np.random.default_rng(3), 110)
    expected = plain(case.function, values)
    arguments = stored(data, values, [(37, 56) if isinstance(value, np.ndarray) else None for value in values])
    program = oc.loops(case.function)
    (out / "first").mkdir()
    limit = run_within(out / "first", program, arguments, pool_limit=64 << 10, threads=2).pool_limit
    shutil.rmtree(out / "first")
    code, cause = FAULTS[fault]
    paths = [out / f"{number}.zarr" for number in range(len(expected))]

    def store() -> None:
        run({str(path): result for path, result in zip(paths, lazy(program, arguments), strict=True)})

    sweep = Sweep(fault, CALLS_MAX)
    for n in sweep:
        with session(scratch, pool_limit=limit, faults=fault.format(n=n)) as current:
            failed = refused(store)
            if failed is not None:
                sweep.failed()
                assert failed.code == code, str(failed)
                assert cause in str(failed)
                assert any(str(folder) in str(failed) for folder in (data, out, scratch)), str(failed)
                assert_nothing_but_kept(current)
                # Each array has its name when it is whole.
                there = [place for place, path in enumerate(paths) if path.exists()]
                assert_same([load(paths[place]) for place in there], [expected[place] for place in there])
                store()
            assert_same([load(path) for path in paths], expected)
        shutil.rmtree(out)
        out.mkdir()
    assert files_below(scratch) == []


CHILD = """
import sys, outcore as oc
from support.loop_fixed import FIXED
name, out, data, scratch, pool, threads, steps = sys.argv[1:]
options = {"memory_limit": 8 << 30, "pool_limit": int(pool) << 10, "threads": int(threads), "progress": False}
with oc.Session(scratch=[scratch], **options):
    arrays = (oc.rechunk(oc.open(f"{data}/{number}.npy"), (64, 97)) for number in range(2))
    results = oc.loops(FIXED[name].function)(*arrays, int(steps))
    results = results if isinstance(results, tuple) else (results,)
    oc.store({f"{out}/{number}.zarr": result for number, result in enumerate(results)}, resume=True)
"""


def child(name: str, out: Path, data: Path, scratch: Path, pool: int, threads: int) -> subprocess.Popen[str]:
    command: list[Any] = [sys.executable, "-W", "error", "-c", CHILD, name, out, data, scratch, pool, threads, STEPS]
    return subprocess.Popen(
        [str(part) for part in command],
        env=os.environ | {"PYTHONPATH": PATHS},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


# Of an array that is swept in place so many times; and the memory it has, in KiB.
SIDE, STEPS, POOLS = sized((700, 6, [5000, 6500, 20_000]), (3000, 8, [60_000, 80_000, 200_000]))


@pytest.mark.parametrize("name", ["seidel", "jacobi"])
def test_killed_programs_go_on_to_the_same_bits(name: str, data: Path, out: Path, scratch: Path) -> None:
    values = np.random.default_rng(5).random((2, SIDE, SIDE))
    for number, array in enumerate(values):
        np.save(data / f"{number}.npy", array)
    started = time.monotonic()
    whole = child(name, out, data, scratch, POOLS[1], 2)
    text, _ = whole.communicate()
    assert whole.returncode == 0, text
    seconds = time.monotonic() - started
    expected = tree_hash(out)
    chance = random.Random(4)
    for _ in range(sized(max(1, KILLS // 8), KILLS // 4)):
        shutil.rmtree(out)
        out.mkdir()
        kills = 3
        while True:
            attempt = child(name, out, data, scratch, chance.choice(POOLS), chance.choice([1, 2, 3]))
            try:
                text, _ = attempt.communicate(timeout=chance.uniform(0.3, 1) * seconds if kills else None)
            except subprocess.TimeoutExpired:
                kills -= 1
                attempt.kill()
                attempt.communicate()
                continue
            assert attempt.returncode == 0, text
            break
        assert tree_hash(out) == expected
        assert files_below(scratch) == []
