"""Fields in chunks along time, packed or not, in pools that hold few of their tiles: what is read, and how often."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
import zarr
from support.running import load, session

import outcore as oc
from outcore._xarray.generalized import apply_gufunc
from outcore._xarray.interpolating import vectorized

missing = pytest.importorskip("xarray.core.missing")

SHAPE, CHUNKS = (400, 32, 128), (20, 32, 128)
GAP = -32768
POOL, WIDE_POOL = 24 << 20, 60 << 20
POLICY_BYTES = 64 << 10  # of metadata and small results


@pytest.fixture(scope="module")
def store(shared: Path) -> Path:
    random = np.random.default_rng(0)
    group = zarr.open_group(shared / "fields.zarr")
    packed = random.integers(-300, 300, size=SHAPE).astype("i2")
    packed[random.random(SHAPE) < 0.01] = GAP
    values = np.where(random.random(SHAPE) < 0.02, np.nan, random.normal(size=SHAPE))
    values[:30, 3] = np.nan
    for name, array in (("packed", packed), ("values", values)):
        group.create_array(name, data=array, chunks=CHUNKS, compressors=None)
    return shared / "fields.zarr"


def unpacked(packed: Any) -> Any:
    """As xarray decodes it: scale, offset and fill value."""
    values = packed.astype("f8")
    return (oc if isinstance(packed, oc.Array) else np).where(values == GAP, np.nan, values) * 0.5 + 1.25


def stored(targets: dict[str, Any]) -> Any:
    """The outcome of a program, which is as it was forecast."""
    said = oc.explain(targets, overwrite=True)
    done = oc.store(targets, overwrite=True)
    assert said.exact
    assert (said.bytes_read, said.bytes_written) == (done.bytes_read, done.bytes_written)
    return done


@pytest.mark.parametrize("key", [np.s_[:, :, :, :2], np.s_[1:, -30:], np.s_[::-1, 5:300:7, 3], np.s_[0, ::-2, ..., 9]])
def test_a_part_of_joined_fields_is_a_part_of_each(store: Path, out: Path, key: Any) -> None:
    packed, values = oc.open(store / "packed"), oc.open(store / "values")
    with session(pool_limit=POOL // 2):
        both = oc.stack([values, unpacked(packed)])
        done = stored({str(out / "part.npy"): both[key]})
    assert done.bytes_written <= load(out / "part.npy").nbytes + POLICY_BYTES
    expected = np.stack([load(store / "values"), unpacked(load(store / "packed"))])
    np.testing.assert_array_equal(load(out / "part.npy"), expected[key])


def test_a_part_of_joined_arrays_reads_those_that_have_some_of_it(store: Path) -> None:
    parts = [oc.open(store / name) for name in ("values", "packed", "values")]
    with session(pool_limit=POOL):
        part = oc.concat(parts, axis=0)[405:395:-1]
        said = oc.explain(part)
        assert said.bytes_read <= 2 * parts[0].nbytes // 20 + POLICY_BYTES
        whole = np.concatenate([load(store / name) for name in ("values", "packed", "values")])
        np.testing.assert_array_equal(part.compute(), whole[405:395:-1])


def test_many_groups_of_wide_rows_are_read_once(store: Path, out: Path) -> None:
    """Their table is larger than 4 MiB: there is one, beside the result, and not four."""
    values = oc.open(store / "values")
    labels = np.arange(SHAPE[0]) % 150
    table = 150 * values.nbytes // SHAPE[0]
    assert table > 4 << 20
    with session(pool_limit=4 * table):
        sums = oc.groupby(labels, groups=150).sum(values, skipna=True)
        done = stored({str(out / "sums.npy"): sums})
    assert done.bytes_read <= values.nbytes + POLICY_BYTES
    assert done.bytes_written <= table + POLICY_BYTES
    expected = np.zeros((150, *SHAPE[1:]))
    np.add.at(expected, labels, np.nan_to_num(load(store / "values")))
    np.testing.assert_allclose(load(out / "sums.npy"), expected)


@pytest.mark.parametrize("name", ["first", "last"])
@pytest.mark.parametrize("kind", ["f8", "f4"])
def test_ends_of_groups_pass_over_gaps_in_one_read(store: Path, out: Path, name: str, kind: str) -> None:
    labels = np.arange(SHAPE[0]) // 20
    array = unpacked(oc.open(store / "packed")).astype(kind)
    with session(pool_limit=POOL):
        ends = getattr(oc.groupby(labels), name)(array, skipna=True)
        done = stored({str(out / "ends.npy"): ends})
    assert done.bytes_read <= SHAPE[0] * SHAPE[1] * SHAPE[2] * 2 + POLICY_BYTES
    frame = pandas.DataFrame(unpacked(load(store / "packed")).astype(kind).reshape(SHAPE[0], -1))
    expected = getattr(frame.groupby(labels), name)().to_numpy().reshape(-1, *SHAPE[1:])
    np.testing.assert_array_equal(load(out / "ends.npy"), expected)


def test_ends_of_groups_that_are_sorted_pass_over_gaps_too() -> None:
    random = np.random.default_rng(1)
    values = np.where(random.random((900, 3)) < 0.6, np.nan, random.normal(size=(900, 3)))
    labels = random.integers(0, 200, 900) * (1 << 40)  # too far apart for a table
    frame = pandas.DataFrame(values)
    for name in ("first", "last"):
        expected = getattr(frame.groupby(labels), name)().to_numpy()
        (found,) = oc.groupby(labels).aggregate(values, [f"nan{name}"])
        np.testing.assert_array_equal(found.compute(), expected)


def test_whole_axes_are_cut_anew_by_one_read_and_write(store: Path, out: Path) -> None:
    shapes = set()

    def least(rows: Any) -> Any:
        shapes.add(rows.shape[-1])
        return np.sort(rows, axis=-1)[..., :2]

    values = oc.open(store / "values")
    with session(pool_limit=WIDE_POOL):
        moved = oc.moveaxis(values, 0, -1)
        found = apply_gufunc(least, "(t)->(k)", moved, output_dtypes="f8", output_sizes={"k": 2})
        done = stored({str(out / "least.npy"): found})
    assert shapes == {SHAPE[0]}
    assert done.bytes_read <= 2 * values.nbytes + POLICY_BYTES
    assert done.bytes_written <= values.nbytes + found.nbytes + POLICY_BYTES
    np.testing.assert_array_equal(load(out / "least.npy"), least(np.moveaxis(load(store / "values"), 0, -1)))


def test_two_whole_axes_are_cut_anew(store: Path, out: Path) -> None:
    with session(pool_limit=WIDE_POOL):
        moved = oc.moveaxis(oc.open(store / "values"), 1, 0)
        sums = apply_gufunc(lambda tile: np.nansum(tile, axis=(-2, -1)), "(t,x)->()", moved, output_dtypes="f8")
        stored({str(out / "sums.npy"): sums})
    np.testing.assert_allclose(load(out / "sums.npy"), np.nansum(load(store / "values"), axis=(0, 2)))


@pytest.mark.parametrize("kind", ["f8", "f4"])
@pytest.mark.parametrize("share", [0, 0.01, 0.5, 0.97, 1])
def test_gaps_of_many_rows_are_filled_as_those_of_each(kind: str, share: float) -> None:
    random = np.random.default_rng(2)
    rows = random.normal(size=(3, 20, 70)).astype(kind)
    rows[random.random(rows.shape) < share] = np.nan
    rows[0, 0], rows[0, 1, 5:], rows[0, 2, 7], rows[0, 2, 9:12] = np.nan, np.nan, np.inf, np.nan
    places = np.cumsum(random.random(70) + 0.1)
    one = partial(missing.func_interpolate_na, missing.NumpyInterpolator, method="linear")
    signature = "(i),(i)->(i)"
    many = vectorized(one, signature, [kind])
    assert not isinstance(many, np.vectorize)
    expected = np.vectorize(one, signature=signature, otypes=[kind])(rows, places)
    np.testing.assert_array_equal(many(rows, places), expected, strict=True)
    assert isinstance(vectorized(np.median, "(i)->()", [kind]), np.vectorize)
