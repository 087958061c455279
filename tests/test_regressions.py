"""Defects found by trying to break things; each stays as the smallest program that showed it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.running import session

import outcore as oc
from outcore.errors import MemoryLimitError, OutcoreError


def smallest_pool(array: oc.Array) -> int:
    with session(pool_limit=1, threads=3), pytest.raises(MemoryLimitError) as refused:
        oc.compute(array)
    assert refused.value.smallest is not None
    return refused.value.smallest


def test_a_tree_is_complete_before_its_result_may_leave() -> None:
    """Arrays in memory give the issuer nothing to wait for, so it runs far ahead of the workers."""
    values = np.random.default_rng(0).standard_normal((3, 900, 700)).astype("c16")
    x = oc.asarray(values)
    centred = x - x.sum(axis=0, keepdims=True)
    expected = values - values.sum(axis=0, keepdims=True)
    pool = smallest_pool(centred)
    for _ in range(25):
        with session(pool_limit=pool, threads=3):
            np.testing.assert_allclose(oc.compute(centred), expected, rtol=1e-12, atol=1e-12)


def test_a_result_computed_in_place_stays_until_its_last_use(tmp_path: Path) -> None:
    values = np.random.default_rng(1).random((257, 93, 64)).astype(np.complex64)
    np.save(tmp_path / "x.npy", values)
    x = oc.open(tmp_path / "x.npy")
    y = x * x
    with session(pool_limit=28 << 20):
        square, flat = oc.compute(y, y.reshape(-1, 3))
    np.testing.assert_allclose(square, values * values, rtol=1e-6)
    np.testing.assert_array_equal(flat, square.reshape(-1, 3))


def test_slots_serve_elements_of_any_width() -> None:
    x, few, ones = np.ones((778, 257), "u1"), np.ones((1, 257), bool), np.ones((257, 1))
    lazy = (oc.stack([oc.asarray(x), oc.asarray(x)], axis=0) <= oc.asarray(few)).sum(axis=1, keepdims=True)
    counted = (np.stack([x, x]) <= few).sum(axis=1, keepdims=True)
    np.testing.assert_array_equal(oc.compute(lazy @ oc.asarray(ones)), counted @ ones)


def test_a_run_inside_a_run_is_refused_at_once() -> None:
    inner = oc.ones((10,))
    lazy = oc.map_blocks(lambda block: block + float(inner.sum()), oc.ones((100,)), dtype="float64")
    with session(), pytest.raises(OutcoreError, match="inside a running one"):
        oc.compute(lazy)


def test_nested_joins_do_not_multiply() -> None:
    values = np.arange(20_000.0).reshape(-1, 2)
    lazy = oc.asarray(values)
    for _ in range(40):
        lazy = oc.roll(lazy, 1, axis=0)
    with session():
        result = oc.compute(lazy)  # two to the fortieth pieces would never end
    np.testing.assert_array_equal(result, np.roll(values, 40, axis=0))
