"""Counts: bincount, histogram, mode."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.running import session

import outcore as oc
from outcore.errors import ArgumentError

POOL = 32 << 20


def saved(folder: Path, name: str, values: np.ndarray[Any, Any]) -> oc.Array:
    np.save(folder / f"{name}.npy", values)
    return oc.open(folder / f"{name}.npy")


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "int64"])
@pytest.mark.parametrize("length", [0, 1, 5000])
@pytest.mark.parametrize("minlength", [0, 300])
def test_bincount_is_numpys(dtype: str, length: int, minlength: int) -> None:
    numbers = np.random.default_rng(1)
    x = numbers.integers(0, 100, length).astype(dtype)
    plain = x.astype(np.int64)
    counted = oc.bincount(x, minlength=minlength).compute()
    assert counted.dtype == np.int64
    np.testing.assert_array_equal(counted, np.bincount(plain, minlength=minlength))
    weights = numbers.integers(-9, 9, length)
    weighted = oc.bincount(x, weights=weights, minlength=minlength).compute()
    np.testing.assert_array_equal(weighted, np.bincount(plain, weights, minlength=minlength))


def test_bincount_of_more_than_memory(data: Path) -> None:
    x = np.random.default_rng(2).integers(0, 70_000, 12_000_000)
    with session(pool_limit=POOL):
        counts = oc.bincount(saved(data, "x", x))
        assert counts.shape == (x.max() + 1,)
        done = oc.store({data / "out.npy": counts})
    np.testing.assert_array_equal(np.load(data / "out.npy"), np.bincount(x))
    assert done.bytes_read <= 1.01 * x.nbytes


def test_counts_refuse_what_they_cannot_do() -> None:
    with pytest.raises(oc.errors.ArgumentError, match="-3"):
        oc.bincount(np.asarray([1, -3])).compute()
    with pytest.raises(oc.errors.DTypeError, match="float64"):
        oc.bincount(np.zeros(3))
    with pytest.raises(oc.errors.ShapeError, match=r"\(2,\).*\(3,\)"):
        oc.bincount(np.zeros(3, int), weights=np.zeros(2))
    with pytest.raises(oc.errors.ArgumentError, match="bins=0"):
        oc.histogram(np.zeros(3), 0)
    with pytest.raises(oc.errors.ArgumentError, match="falls"):
        oc.histogram(np.zeros(3), [3.0, 1.0])
    with pytest.raises(oc.errors.ArgumentError, match="range"):
        oc.histogram(np.zeros(3), 3, range=(2, 1))


@pytest.mark.parametrize("dtype", ["uint8", "int64", "float32", "float64"])
@pytest.mark.parametrize("bins", [1, 7, [0, 3, 3.5, 90], [5.0, 5.0]])
@pytest.mark.parametrize("bounds", [None, (10, 60.5), (4, 4)])
def test_histogram_is_numpys(dtype: str, bins: Any, bounds: Any) -> None:
    x = np.random.default_rng(4).integers(0, 100, (30, 40)).astype(dtype)
    for options in ({}, {"weights": x.astype(float) + 1}):
        expected, edges = np.histogram(x, bins, range=bounds, **options)
        found = oc.histogram(x, bins, range=bounds, **options)
        np.testing.assert_allclose(found.edges.compute(), edges, rtol=1e-15)
        np.testing.assert_array_equal(found.counts.compute(), expected)
        assert found.counts.dtype == expected.dtype


def test_histogram_of_special_values() -> None:
    x = np.asarray([np.nan, -0.0, 0.0, 1.0, 1.0, 2.0, 3.5, np.inf, -np.inf])
    expected, _ = np.histogram(x, [0.0, 1.0, 2.0])
    np.testing.assert_array_equal(oc.histogram(x, [0.0, 1.0, 2.0]).counts.compute(), expected)
    assert oc.histogram(np.full(5, 3.0), 4).counts.compute().tolist() == [0, 0, 5, 0]
    assert oc.histogram(np.zeros(0), 4).counts.compute().tolist() == [0, 0, 0, 0]
    density = oc.histogram(x[1:7], 3, density=True).counts.compute()
    np.testing.assert_allclose(density, np.histogram(x[1:7], 3, density=True)[0])


def test_histogram_reads_twice_without_a_range_and_once_with_one(data: Path) -> None:
    x = np.random.default_rng(5).normal(size=12_000_000)
    with session(pool_limit=POOL):
        stored = saved(data, "x", x)
        for bounds, reads in ((None, 2), ((-1, 1), 1)):
            counts = oc.histogram(stored, 100, range=bounds).counts
            done = oc.store({data / "out.npy": counts}, overwrite=True)
            np.testing.assert_array_equal(np.load(data / "out.npy"), np.histogram(x, 100, range=bounds)[0])
            assert done.bytes_read <= 1.01 * reads * x.nbytes


def test_mode_is_the_smallest_of_the_most_frequent() -> None:
    assert oc.mode(np.asarray([5, 2, 2, 9, 5])).item() == 2
    assert oc.mode(np.asarray([[1.5], [1.5], [0.0]])).item() == 1.5
    with pytest.raises(oc.errors.ShapeError, match="no elements"):
        oc.mode(np.zeros(0))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_range_that_its_type_does_not_hold_is_refused_as_in_numpy(dtype: str) -> None:
    most = np.finfo(dtype).max
    x = np.asarray([most, -most, 0], dtype=dtype)
    calls = {
        "histogram": lambda: oc.histogram(x, 3).counts,
        "histogram_bin_edges": lambda: oc.histogram_bin_edges(x, 3),
    }
    if dtype == "float64":  # in which it works
        calls["histogramdd"] = lambda: oc.histogram2d(x, x, 3)[0]
    for name, call in calls.items():
        with session(), pytest.raises(ArgumentError, match=f"^{name}: the width of the range"):
            call().compute()
    with session():
        assert oc.histogram(x, 2, range=(-1, 1)).counts.compute().tolist() == [0, 1]
