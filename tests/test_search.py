"""Searches and orders: searchsorted, isin, top_k, sorts along axes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.running import session
from support.sizes import sized

import outcore as oc

POOL = 32 << 20


def saved(folder: Path, name: str, values: np.ndarray[Any, Any]) -> oc.Array:
    np.save(folder / f"{name}.npy", values)
    return oc.open(folder / f"{name}.npy")


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("dtype", ["bool", "int16", "uint64", "float32", "float64"])
@pytest.mark.parametrize("sizes", [(0, 5), (5, 0), (1, 9), (300, 1000), (200_000, 5000)])
def test_searchsorted_is_numpys(side: Any, dtype: str, sizes: tuple[int, int]) -> None:
    numbers = np.random.default_rng(1)
    row, values = (numbers.integers(0, 200, size).astype(dtype) for size in sizes)
    if dtype[0] == "f":
        values[::7] = np.nan
        row[::9] = np.nan
        values[1::5] = -0.0
    row.sort()
    found = oc.searchsorted(oc.asarray(row), oc.asarray(values), side=side)
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found.compute(), np.searchsorted(row, values, side=side))


@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted_where_neither_side_fits(side: Any, data: Path) -> None:
    numbers = np.random.default_rng(2)
    row, values = (numbers.integers(0, 1 << 20, size) for size in (3_400_000, 3_600_000))
    row.sort()
    with session(pool_limit=25 << 20):
        found = oc.searchsorted(saved(data, "row", row), saved(data, "values", values), side=side)
        oc.store({data / "out.npy": found})
    np.testing.assert_array_equal(np.load(data / "out.npy"), np.searchsorted(row, values, side=side))


def test_a_held_row_is_read_once(data: Path) -> None:
    numbers = np.random.default_rng(3)
    row, values = np.sort(numbers.normal(size=1_000_000)), numbers.normal(size=(sized(6, 10), 1_000_000))
    with session(pool_limit=POOL):
        found = oc.searchsorted(saved(data, "row", row), saved(data, "values", values))
        done = oc.store({data / "out.npy": found})
    np.testing.assert_array_equal(np.load(data / "out.npy"), np.searchsorted(row, values))
    assert done.bytes_read <= 1.01 * (row.nbytes + values.nbytes)


def test_searchsorted_takes_a_sorter_and_refuses_nonsense() -> None:
    x, order = np.asarray([30, 10, 20]), np.asarray([1, 2, 0])
    assert oc.searchsorted(x, np.asarray([25]), sorter=order).compute().tolist() == [2]
    assert oc.searchsorted(x[order], 20).item() == 1
    with pytest.raises(oc.errors.ShapeError, match=r"\(2, 2\)"):
        oc.searchsorted(np.zeros((2, 2)), np.zeros(2))
    with pytest.raises(oc.errors.ArgumentError, match="middle"):
        oc.searchsorted(x, x, side="middle")  # type: ignore[arg-type]
    with pytest.raises(oc.errors.DTypeError, match="complex128"):
        oc.searchsorted(x, x.astype(complex))


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float64"])
@pytest.mark.parametrize("tests", [0, 1, 500])
def test_isin_is_numpys(dtype: str, tests: int) -> None:
    numbers = np.random.default_rng(4)
    x, among = (numbers.integers(0, 100, size).astype(dtype) for size in ((30, 40), tests))
    if dtype == "float64":
        x[0], among[::3] = np.nan, np.nan
        x[1] = -0.0
    np.testing.assert_array_equal(oc.isin(x, among).compute(), np.isin(x, among))
    np.testing.assert_array_equal(oc.isin(x, among, invert=True).compute(), np.isin(x, among, invert=True))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "float16", "float64"])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_sorts_along_any_axis(dtype: str, descending: bool, axis: int) -> None:
    numbers = np.random.default_rng(5)
    x = numbers.integers(-50, 50, (13, 40, 11)).astype(dtype)
    if dtype[0] == "f":
        x[numbers.random(x.shape) < 0.1] = np.nan
        x[numbers.random(x.shape) < 0.1] = -0.0
    keys = -x.astype(float) if descending else x
    expected = np.argsort(keys, axis=axis, kind="stable")
    places = oc.argsort(x, axis=axis, descending=descending)
    np.testing.assert_array_equal(places.compute(), expected)
    ordered = oc.sort(x, axis=axis, descending=descending).compute()
    np.testing.assert_array_equal(ordered, np.take_along_axis(x, expected, axis=axis))


def test_sorts_of_lanes_read_once_and_are_one_node(data: Path) -> None:
    x = np.random.default_rng(6).normal(size=(4000, 2000))
    with session(pool_limit=4 * POOL):
        rows = saved(data, "x", x)
        assert oc.sort(rows, axis=1)._expr.id == oc.sort(rows, axis=1)._expr.id
        assert oc.sort(rows, axis=1)._expr.id != oc.sort(rows, axis=1, descending=True)._expr.id
        for axis in (0, 1):
            done = oc.store({data / "out.npy": oc.sort(rows, axis=axis)}, overwrite=True)
            np.testing.assert_array_equal(np.load(data / "out.npy"), np.sort(x, axis=axis))
            assert done.bytes_read <= 1.01 * x.nbytes


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1, 1)])
def test_sorts_of_nothing(shape: tuple[int, int]) -> None:
    for axis in (0, 1):
        assert oc.sort(np.zeros(shape), axis=axis).compute().shape == shape
        assert oc.argsort(np.zeros(shape), axis=axis).compute().shape == shape


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("k", [0, 1, 10, 1000])
def test_top_k_gives_the_first_of_equal_ones(largest: bool, k: int) -> None:
    x = np.random.default_rng(7).integers(0, 500, 1000).astype(float)
    x[::50] = np.nan
    order = np.argsort(-x if largest else x, kind="stable")[:k]
    found = oc.top_k(x, k, largest=largest)
    np.testing.assert_array_equal(found.indices.compute(), order)
    np.testing.assert_array_equal(found.values.compute(), x[order])


def test_top_k_of_more_than_memory(data: Path) -> None:
    x = np.random.default_rng(8).integers(0, 1 << 20, 5_000_000)
    order = np.argsort(-x, kind="stable")[:100]
    with session(pool_limit=POOL):
        values, places = oc.top_k(saved(data, "x", x), 100)
        np.testing.assert_array_equal(places.compute(), order)
        np.testing.assert_array_equal(values.compute(), x[order])


def test_orders_refuse_what_they_cannot_do() -> None:
    with pytest.raises(oc.errors.ShapeError, match="k=5"):
        oc.top_k(np.zeros(3), 5)
    with pytest.raises(oc.errors.IndexingError, match=r"kth=3.*length 3"):
        oc.partition(np.zeros(3), 3)
    assert oc.partition(np.asarray([3, 1, 2]), 1).compute()[1] == 2
    assert oc.ediff1d(np.asarray([[1, 4], [9, 16]]), to_begin=[0, 0], to_end=7).compute().tolist() == [0, 0, 3, 5, 7, 7]
