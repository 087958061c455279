"""Reshapes and tilings are views: files are read in the shape asked for, once per sweep."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.running import load, session

import outcore as oc

YEARS, DAYS, LATITUDES, LONGITUDES = 8, 73, 37, 90
Field = tuple[oc.Array, Any]


@pytest.fixture(params=["npy", "zarr"])
def field(request: pytest.FixtureRequest, tmp_path: Path) -> Field:
    """A daily field of several years, as climate stores have them, 15 MB."""
    values = np.random.default_rng(0).random((YEARS * DAYS, LATITUDES, LONGITUDES))
    path = tmp_path / f"x.{request.param}"
    if request.param == "npy":
        np.save(path, values)
    else:
        oc.store({path: oc.asarray(values)}, chunks={path: (10, LATITUDES, LONGITUDES)})
    return oc.open(path), values


def anomaly(x: oc.Array, how: str) -> oc.Array:
    """Every day less the mean of that day over the years."""
    parts = [x[DAYS * year : DAYS * (year + 1)] for year in range(YEARS)]
    if how == "slices":
        mean = sum(parts[1:], parts[0]) / YEARS
        return oc.concat([part - mean for part in parts], axis=0)
    mean = x.reshape(YEARS, DAYS, LATITUDES, LONGITUDES).mean(axis=0)
    if how == "reshape":
        return (x.reshape(YEARS, DAYS, LATITUDES, LONGITUDES) - mean).reshape(x.shape)
    if how == "tile":
        return x - oc.tile(mean, (YEARS, 1, 1))
    return x - oc.take(mean, np.arange(YEARS * DAYS) % DAYS, axis=0)


@pytest.mark.parametrize("how", ["reshape", "tile", "take", "slices"])
@pytest.mark.parametrize("pool_mebibytes", [1024, 96])
def test_the_anomaly_reads_its_file_at_most_twice(field: Field, how: str, pool_mebibytes: int, out: Path) -> None:
    x, values = field
    with session(pool_limit=pool_mebibytes << 20, io_threads=1):
        outcome = oc.store({out / "a.zarr": anomaly(x, how)})
    days = values.reshape(YEARS, DAYS, LATITUDES, LONGITUDES)
    np.testing.assert_allclose(load(out / "a.zarr"), (days - days.mean(axis=0)).reshape(values.shape), atol=1e-12)
    assert outcome.bytes_read <= 2.05 * x.nbytes


def test_the_climatology_reads_its_file_once(field: Field, out: Path) -> None:
    x, values = field
    with session(pool_limit=64 << 20, io_threads=1):
        outcome = oc.store({out / "c.npy": x.reshape(YEARS, DAYS, LATITUDES, LONGITUDES).mean(axis=0)})
    expected = values.reshape(YEARS, DAYS, LATITUDES, LONGITUDES).mean(axis=0)
    np.testing.assert_allclose(np.load(out / "c.npy"), expected, rtol=1e-12)
    assert outcome.bytes_read <= 1.05 * x.nbytes


def plan_of(array: oc.Array) -> tuple[int, int, list[Any]]:
    with session():
        told = oc.explain({"unwritten.zarr": array})
    return told.bytes_read, told.bytes_written, [(part.domain, part.tasks) for part in told.passes]


def test_a_file_in_another_shape_is_planned_as_if_it_were_written_so(tmp_path: Path) -> None:
    """So it costs the same: the transpose of a reshape was up to 130 times slower."""
    values = np.random.default_rng(1).random((2000, 1500))
    np.save(tmp_path / "square.npy", values)
    np.save(tmp_path / "flat.npy", values.ravel())
    square, flat = oc.open(tmp_path / "square.npy"), oc.open(tmp_path / "flat.npy")
    assert plan_of(flat.reshape(2000, 1500).T) == plan_of(square.T)
    assert plan_of((flat * 2 + 1).reshape(2000, 1500).T) == plan_of((square * 2 + 1).T)
    np.testing.assert_array_equal((flat * 2 + 1).reshape(2000, 1500).T.compute(), (values * 2 + 1).T)


def test_a_run_of_rows_in_another_shape_is_read_so(tmp_path: Path) -> None:
    values = np.random.default_rng(2).random((3000, 70))
    np.save(tmp_path / "x.npy", values)
    part = oc.open(tmp_path / "x.npy")[17:2917].reshape(29, 100, 70)
    with session():
        assert oc.explain(part.sum(axis=1)).bytes_read <= part.nbytes + 2 * 4096
        np.testing.assert_allclose(part.sum(axis=1).compute(), values[17:2917].reshape(29, 100, 70).sum(axis=1))


def test_one_read_serves_an_array_and_its_rows_flattened(tmp_path: Path) -> None:
    values = np.random.default_rng(3).random((9000, 8, 16))
    np.save(tmp_path / "x.npy", values)
    x = oc.open(tmp_path / "x.npy")
    both = x.max(axis=(0, 1)), x.reshape(9000, 128).sum(axis=0)
    with session():
        assert oc.explain(*both).bytes_read <= 1.01 * x.nbytes
        most, total = oc.compute(*both)
    np.testing.assert_array_equal(most, values.max(axis=(0, 1)))
    np.testing.assert_allclose(total, values.reshape(9000, 128).sum(axis=0))


VIEWS = [
    lambda x: x.reshape(6, 50, 80).T,
    lambda x: x.reshape(6, 50, 80)[::-1, ::3, 5:60:7],
    lambda x: x.reshape(150, 160).T[::-2],
    lambda x: x.reshape(24_000)[::-1],
    lambda x: x.reshape(15, 20, 4, 20).transpose(2, 0, 3, 1),
    lambda x: x.T.reshape(160, 150).T,
    lambda x: x.reshape(1, 300, 1, 80, 1)[0, 3:200:2].transpose(1, 2, 0, 3)[..., 0],
]


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("kind", ["memory", "npy", "zarr", "computed"])
def test_reshapes_under_any_view_have_numpys_values(view: Any, kind: str, tmp_path: Path) -> None:
    values = np.random.default_rng(4).random((300, 80))
    lazy = oc.asarray(values)
    if kind == "npy":
        np.save(tmp_path / "x.npy", values)
        lazy = oc.open(tmp_path / "x.npy")
    elif kind == "zarr":
        oc.store({tmp_path / "x.zarr": lazy}, chunks={tmp_path / "x.zarr": (7, 33)})
        lazy = oc.open(tmp_path / "x.zarr")
    elif kind == "computed":
        lazy, values = lazy @ oc.asarray(np.eye(80) * 2), values * 2
    np.testing.assert_array_equal(view(lazy).compute(), view(values))


@pytest.mark.parametrize("kind", ["generated", "memory", "npy"])
def test_a_reshape_that_is_repeated_fills_every_place(kind: str, tmp_path: Path) -> None:
    values = np.arange(12)
    np.save(tmp_path / "x.npy", values)
    made = {"generated": oc.arange(12), "memory": oc.asarray(values), "npy": oc.open(tmp_path / "x.npy")}[kind]
    wide = oc.broadcast_to(made.reshape(1, 4, 1, 3), (5, 4, 2, 3))
    np.testing.assert_array_equal(wide.compute(), np.broadcast_to(values.reshape(1, 4, 1, 3), (5, 4, 2, 3)))


@pytest.mark.parametrize("shape", [(), (3,), (2, 5), (3, 1, 4)])
@pytest.mark.parametrize("counts", [1, 3, (3,), (2, 1), (2, 2, 3), (1, 1, 2, 2), 0, (0, 2)])
def test_tiles_are_numpys(shape: tuple[int, ...], counts: Any) -> None:
    values = np.random.default_rng(5).random(shape)
    np.testing.assert_array_equal(oc.tile(oc.asarray(values), counts).compute(), np.tile(values, counts))


def test_a_thousand_tiles_are_planned_as_one() -> None:
    with session():
        assert len(oc.explain(oc.tile(oc.arange(7), 100_000).sum()).passes) == 1


@pytest.mark.parametrize("rows", [slice(0, 2), slice(0, 3000, 1500), slice(2999, None, -1000), slice(17, 18)])
@pytest.mark.parametrize("order", [np.r_[24:60, 0:24], np.argsort(np.arange(60) % 40, kind="stable")])
def test_few_rows_of_what_was_taken_of_computed_values_are_few(tmp_path: Path, rows: slice, order: Any) -> None:
    """As of a packed field that xarray sorts by longitude, and of which some days are looked at."""
    packed = np.random.default_rng(1).integers(-99, 99, (3000, 7, 60), np.int16)
    path, values = tmp_path / "x.zarr", packed * 0.5 + 3
    oc.store({path: packed}, chunks={path: (50, 7, 12)})
    x = oc.open(path).astype("f8") * 0.5 + 3
    whole = oc.take(x, order, axis=2)
    with session():
        assert oc.explain(whole[rows]).bytes_read <= packed.nbytes / 5
        np.testing.assert_array_equal(whole[rows].compute(), values[..., order][rows])
        np.testing.assert_array_equal(oc.compute(whole[rows], oc.sum(whole))[0], values[..., order][rows])
        part = np.s_[rows, ::-1, 40:3:-3]
        np.testing.assert_array_equal(whole[part].compute(), values[..., order][part])
