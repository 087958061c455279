"""The NAS kernels give the published answers: EP as one pass that writes nothing, IS by sorting, in 256 MiB."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks import cgroup, lcg, nas_ep, nas_is
from support.running import session
from support.sizes import sized

import outcore as oc

LIMIT = 256 << 20
CLASSES = sized(["S", "W"], ["S", "W", "A"])
TIMEOUT_SECONDS = 180
NEEDS_CGROUP = "no memory cgroup can be made here (it needs root), and no other limit counts resident memory"


def sequence(seed: int, count: int) -> list[int]:
    """The generator as it is defined, one number after the other."""
    states, state = [], seed
    for _ in range(count):
        state = lcg.MULTIPLIER * state % (1 << lcg.BITS)
        states.append(state)
    return states


# -- the generator ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rows", "columns"), [(1, 60), (60, 1), (4, 15), (7, 8)])
@pytest.mark.parametrize("stride", [1, 2, 4])
def test_the_outer_product_is_the_sequence(rows: int, columns: int, stride: int) -> None:
    down, across = lcg.tables(nas_ep.SEED, rows, columns, stride)
    got = (down[:, None] * across[None, :] & np.uint64(lcg.MASK)).ravel()
    assert got.tolist() == sequence(nas_ep.SEED, rows * columns * stride)[::stride]


def test_uniforms_of_outcore_are_exact_and_in_order() -> None:
    with session():
        down, across = lcg.tables(nas_ep.SEED, 8, 64)
        got = oc.compute(nas_ep.scaled(nas_ep.outer(down, across))).ravel()
    assert got.tolist() == [2 * (state * 2.0**-46) - 1 for state in sequence(nas_ep.SEED, 512)]


# -- EP -----------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not cgroup.is_real(), reason=NEEDS_CGROUP)
@pytest.mark.parametrize("size_class", CLASSES)
def test_ep_is_one_pass_that_writes_nothing(size_class: str) -> None:
    given = {"size_class": size_class, "session": {"memory_limit": LIMIT, "threads": 2}}
    outcome = cgroup.run_limited("benchmarks.nas_ep:fused", given, LIMIT, TIMEOUT_SECONDS)
    assert outcome.reason is None, outcome.stderr
    value: dict[str, Any] = outcome.value
    assert nas_ep.verified(size_class, value)
    assert (value["passes"], value["bytes_read"], value["bytes_written"]) == (1, 0, 0)
    assert value["as_forecast"]
    assert outcome.peak_rss_bytes is not None
    assert outcome.peak_rss_bytes <= LIMIT


def test_ep_in_two_scans_and_in_numpy_gives_the_same_counts(out: Path) -> None:
    scans = nas_ep.two_scans("S", str(out), {"memory_limit": 8 << 30, "threads": 2})
    numpy = nas_ep.expert("S")
    assert nas_ep.verified("S", scans)
    assert nas_ep.verified("S", numpy)
    assert scans["counts"] == numpy["counts"]
    assert scans["as_forecast"]
    assert scans["bytes_written"] >= 16 << nas_ep.LOG2_PAIRS["S"]


def test_ep_sums_a_little_off_are_not_verified() -> None:
    x, y = nas_ep.SUMS["S"]
    right = {"sums": (x, y), "counts": [2, 1], "accepted": 3}
    assert nas_ep.verified("S", right)
    assert not nas_ep.verified("S", right | {"sums": (x, y * (1 + 2e-8))})
    assert not nas_ep.verified("S", right | {"sums": (float("nan"), y)})
    assert not nas_ep.verified("S", right | {"sums": (x, float("nan"))})
    assert not nas_ep.verified("S", right | {"counts": [2, 2]})


# -- IS -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size_class", CLASSES)
def test_ranks_by_counting_pass_every_check(size_class: str) -> None:
    value = nas_is.counted(size_class)
    assert value["partial"] == nas_is.ITERATIONS
    assert value["full"]


def test_wrong_ranks_pass_no_check() -> None:
    keys = np.concatenate(list(nas_is.key_blocks("S")))
    order = np.argsort(keys, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(keys.size)
    assert nas_is.fully_verified(keys, rank)
    swapped = rank.copy()
    swapped[[order[0], order[-1]]] = rank[[order[-1], order[0]]]
    assert not nas_is.fully_verified(keys, swapped)
    twice = rank.copy()
    twice[order[0]] = rank[order[1]]
    assert not nas_is.fully_verified(keys, twice)
    assert not nas_is.fully_verified(keys, rank + 1)
    smaller, equal = np.array(nas_is.expected("S", 3)), np.ones(5, int)
    assert nas_is.partially_verified("S", 3, smaller, equal, smaller)
    assert not nas_is.partially_verified("S", 4, smaller, equal, smaller)
    assert not nas_is.partially_verified("S", 3, smaller, equal, smaller + 1)


@pytest.mark.parametrize("size_class", ["S", "W"])
def test_keys_of_outcore_are_the_keys(size_class: str, out: Path) -> None:
    with session():
        nas_is.make_keys(size_class, str(out / "keys.npy"))
    assert np.array_equal(np.load(out / "keys.npy"), np.concatenate(list(nas_is.key_blocks(size_class))))


@pytest.mark.skipif(not cgroup.is_real(), reason=NEEDS_CGROUP)
@pytest.mark.parametrize(
    ("size_class", "method"),
    [("S", "argsort"), ("S", "columns"), ("W", "records"), ("W", "columns"), *sized([], [("A", "records")])],
)
def test_is_ranks_keys_ten_times(size_class: str, method: str, out: Path) -> None:
    given = {"size_class": size_class, "out": str(out), "method": method}
    given["session"] = {"memory_limit": LIMIT, "threads": 2}
    outcome = cgroup.run_limited("benchmarks.nas_is:ranked", given, LIMIT, TIMEOUT_SECONDS)
    assert outcome.reason is None, outcome.stderr
    assert outcome.value["partial"] == nas_is.ITERATIONS
    assert nas_is.check(str(out))
