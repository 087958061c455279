"""Loops in a real memory group: data many times the group, `memory_limit` below it, and nothing is killed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from benchmarks import cgroup
from conftest import LARGE
from support.loop_group import CASES, is_right, made

MIB = 1 << 20
GROUP, LIMIT, SIZE = 256 * MIB, 192 * MIB, 4096 * MIB
POOL_OF_SOME, SIZE_OF_SOME = 32 * MIB, 96 * MIB
REFUSED = 16 * MIB
TIMEOUT_SECONDS = 1800
NEEDS_CGROUP = "no memory cgroup can be made here (it needs root), and no other limit counts resident memory"

pytestmark = pytest.mark.skipif(not cgroup.is_real(), reason=NEEDS_CGROUP)


def child(function: str, group_bytes: int | None, name: str, inputs: list[str], out: Path, **options: Any) -> Any:
    given = {"name": name, "inputs": inputs, "out": str(out), "options": {"threads": 2} | options}
    return cgroup.run_limited(f"support.loop_group:{function}", given, group_bytes, TIMEOUT_SECONDS)


def assert_within(outcome: Any, limit: int) -> None:
    """The process stays within its memory limit, nothing is killed, and counters are those of the forecast."""
    print(f"{outcome.value}, peak {(outcome.peak_rss_bytes or 0) / MIB:.1f} MiB resident,", end=" ")
    print(f"{(outcome.cgroup_peak_bytes or 0) / MIB:.1f} MiB of the group, refused {outcome.failcnt} times")
    assert outcome.reason is None, outcome.stderr
    assert outcome.oom_kills == 0
    assert outcome.value["counters"] == outcome.value["forecast"]
    assert outcome.peak_rss_bytes <= limit


@pytest.mark.parametrize("name", CASES)
def test_loops_over_some_data_run_in_a_group_of_the_smallest_limit_named(name: str, data: Path, out: Path) -> None:
    inputs = made(name, data, SIZE_OF_SOME)
    named = child("smallest_limit", None, name, inputs, out, memory_limit=REFUSED, pool_limit=POOL_OF_SOME)
    assert named.reason is None, named.stderr
    smallest = named.value["smallest"]
    outcome = child("run_in_group", smallest, name, inputs, out, memory_limit=smallest, pool_limit=POOL_OF_SOME)
    assert_within(outcome, smallest)
    assert is_right(name, inputs, out)


@pytest.mark.skipif(not LARGE, reason="12 GiB of disk and some minutes")
@pytest.mark.parametrize("name", CASES)
def test_loops_over_sixteen_times_the_memory_of_a_group_run_in_it(name: str, data: Path, out: Path) -> None:
    inputs = made(name, data, SIZE)
    outcome = child("run_in_group", GROUP, name, inputs, out, memory_limit=LIMIT)
    assert_within(outcome, LIMIT)
    assert is_right(name, inputs, out)
