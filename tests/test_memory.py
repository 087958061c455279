"""The limit is the process's: a child in a memory cgroup at `memory_limit` itself finishes, or is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks import cgroup, data
from support import workloads
from support.running import load
from support.sizes import sized

LIMIT = 256 << 20
DATA_MEBIBYTES = 600
TIMEOUT_SECONDS = 180
NEEDS_CGROUP = "no memory cgroup can be made here (it needs root), and no other limit counts resident memory"


@pytest.fixture(scope="module")
def inputs(shared: Path) -> dict[str, str]:
    """X of 600 MiB with W0, H0 and y; two square matrices of 300 MiB each, and two with fewer columns to multiply."""
    made = data.factorization(shared, DATA_MEBIBYTES << 20)
    side = int((DATA_MEBIBYTES / 2 * (1 << 20) / 8) ** 0.5)
    for seed, name in enumerate("AB"):
        made[name] = str(data.write_npy(shared / f"{name}.npy", (side, side), seed))
        made[f"narrow {name}"] = str(
            data.write_npy(shared / f"narrow {name}.npy", (side, sized(side // 4, side)), seed)
        )
    return made


PROGRAMS: dict[str, tuple[tuple[str, ...], int]] = {
    "nmf": (("X", "W0", "H0"), 2),
    "logistic": (("X", "y"), 3),
    "product": (("A", "B"), 1),
    "transpose": (("A",), 1),
    "gram_of_sum": (("A", "B"), 1),
}


def files_of(program: str, inputs: dict[str, str]) -> dict[str, str]:
    names, _ = PROGRAMS[program]
    narrow = {"product": "B", "gram_of_sum": "AB"}.get(program, "")
    return {name: inputs[f"narrow {name}" if name in narrow else name] for name in names}


def child(program: str, inputs: dict[str, str], out: Path, memory_limit: int, cgroup_limit: int) -> cgroup.Outcome:
    given: dict[str, Any] = {"program": program, "inputs": files_of(program, inputs), "out": str(out)}
    given |= {"iterations": PROGRAMS[program][1], "session": {"memory_limit": memory_limit, "threads": 2}}
    return cgroup.run_limited("benchmarks.ours:run", given, cgroup_limit, TIMEOUT_SECONDS)


@pytest.mark.skipif(not cgroup.is_real(), reason=NEEDS_CGROUP)
@pytest.mark.parametrize("program", PROGRAMS)
def test_finishes_in_a_cgroup_of_the_limit_itself(program: str, inputs: dict[str, str], out: Path) -> None:
    outcome = child(program, inputs, out, LIMIT, LIMIT)
    assert outcome.reason is None, outcome.stderr
    assert outcome.oom_kills == 0
    assert outcome.peak_rss_bytes is not None
    assert outcome.peak_rss_bytes <= LIMIT
    assert outcome.value["peak_bytes"] < LIMIT
    assert spot_check(program, inputs, out)


def spot_check(program: str, inputs: dict[str, str], out: Path) -> bool:
    """A few rows against NumPy; whole results would need the memory that the test is about."""
    if program == "transpose":
        return np.array_equal(load(out / "T.zarr")[:, 5], np.load(inputs["A"], mmap_mode="r")[5])
    if program in ("product", "gram_of_sum"):
        a, b = (np.load(path, mmap_mode="r") for path in files_of(program, inputs).values())
        row = a[7] @ b if program == "product" else (a + b) @ (a[7] + b[7])
        return np.allclose(load(out / ("C.zarr" if program == "product" else "G.zarr"))[7], row, rtol=1e-12)
    name = "H.npy" if program == "nmf" else "w.npy"
    return bool(np.isfinite(np.load(out / name)).all())


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_limit_too_small_is_refused_before_it_starts(program: str, inputs: dict[str, str], out: Path) -> None:
    outcome = child(program, inputs, out, 48 << 20, LIMIT)
    error = outcome.error
    assert error is not None
    assert (error["type"], error["code"]) == ("MemoryLimitError", "memory")
    assert error["operator"]
    assert error["need"] > error["limit"]
    assert error["smallest"] > 48 << 20
    assert "\n" not in error["message"]
    assert list(out.iterdir()) == []


@pytest.mark.skipif(not cgroup.is_real(), reason=NEEDS_CGROUP)
def test_the_smallest_limit_named_does(inputs: dict[str, str], out: Path) -> None:
    refused = child("transpose", inputs, out, 48 << 20, LIMIT)
    assert refused.error is not None
    smallest = refused.error["smallest"]
    outcome = child("transpose", inputs, out, smallest, smallest)
    assert outcome.reason is None, outcome.stderr
    assert outcome.peak_rss_bytes is not None
    assert outcome.peak_rss_bytes <= smallest


def test_results_are_part_of_the_limit(tmp_path: Path) -> None:
    """`compute` must hold what it returns; a result as large as the limit is refused, not tried."""
    work = workloads.transpose(tmp_path, 24)
    outcome = cgroup.run_limited(
        "support.children:compute_transpose", {"path": str(work.paths["A"]), "pool_limit": 12 << 20}
    )
    assert outcome.error is not None
    assert outcome.error["code"] == "memory"


@pytest.mark.skipif(not cgroup.is_real(), reason=NEEDS_CGROUP)
def test_planning_takes_its_memory_from_kept_tiles(inputs: dict[str, str]) -> None:
    """A hundred thousand tasks planned while the limit is full of tiles: those give way."""
    given = {"x": inputs["X"], "y": inputs["y"], "iterations": 500, "memory_limit": LIMIT}
    outcome = cgroup.run_limited("support.children:long_plan_beside_tiles", given, LIMIT, TIMEOUT_SECONDS)
    assert outcome.reason is None, outcome.stderr
    assert outcome.value["tasks"] > 90_000
    assert outcome.peak_rss_bytes is not None
    assert outcome.peak_rss_bytes <= LIMIT


@pytest.mark.skipif(not cgroup.is_real(), reason=NEEDS_CGROUP)
def test_a_plan_too_large_for_the_limit_is_refused(inputs: dict[str, str]) -> None:
    given = {"x": inputs["X"], "y": inputs["y"], "iterations": 20_000, "memory_limit": LIMIT}
    outcome = cgroup.run_limited("support.children:long_plan_beside_tiles", given, LIMIT, TIMEOUT_SECONDS)
    assert outcome.error is not None, outcome.stderr
    assert (outcome.error["code"], outcome.error["operator"]) == ("memory", "planning")
    assert outcome.error["smallest"] > LIMIT


@pytest.mark.skipif(not cgroup.is_real(), reason=NEEDS_CGROUP)
def test_what_the_caller_allocates_between_computations_is_part_of_the_limit(inputs: dict[str, str]) -> None:
    given = {"x": inputs["X"], "own_bytes": 100 << 20, "memory_limit": LIMIT}
    outcome = cgroup.run_limited("support.children:data_of_its_own", given, LIMIT, TIMEOUT_SECONDS)
    assert outcome.reason is None, outcome.stderr
    before, during, after = outcome.value
    # Growth counts beyond the 12 MiB that the allowances bear: stacks and packing buffers of a first run are theirs.
    assert before - during >= (100 - 12) << 20
    assert before - after <= 16 << 20
    assert outcome.peak_rss_bytes is not None
    assert outcome.peak_rss_bytes <= LIMIT


def test_kept_tiles_give_way_to_the_caller_when_a_program_is_planned(inputs: dict[str, str]) -> None:
    given = {"x": inputs["X"], "own_bytes": 100 << 20, "memory_limit": LIMIT}
    outcome = cgroup.run_limited("support.children:data_beside_kept_tiles", given)
    assert outcome.reason is None, outcome.stderr
    full, beside, planned = outcome.value
    assert full <= LIMIT < beside
    assert planned <= LIMIT
