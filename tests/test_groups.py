"""Groups, names of axes and attributes: of files that other libraries wrote, and through what is computed of them."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import xarray as xr
import zarr

import outcore as oc
from outcore.errors import (
    ArgumentError,
    DTypeError,
    FormatError,
    OutcoreError,
    ShapeError,
    SourceChangedError,
    TargetExistsError,
    UnsupportedFormatError,
)

SHAPE = (6, 4, 5)
DIMS = ("time", "lat", "lon")


def dataset() -> xr.Dataset:
    """What people have: a packed field, a float with gaps, times, names and attributes."""
    random = np.random.default_rng(3)
    field = xr.DataArray(270 + random.standard_normal(SHAPE), dims=DIMS, attrs={"units": "K", "levels": [1, 2]})
    gaps = field.where(field > 270).astype(np.float32)
    when = xr.DataArray(
        np.arange("2001-01-28", "2001-02-03", dtype="datetime64[D]").astype("datetime64[ns]"), dims="time"
    )
    return xr.Dataset(
        {"t2m": field, "gaps": gaps, "count": (("lat",), np.arange(4, dtype=np.int16))},
        {"time": when, "lat": np.linspace(-60, 60, 4), "lon": np.arange(5.0)},
        {"title": "made here", "version": 3},
    )


PACKED: dict[str, Any] = {
    "t2m": {"dtype": "int16", "scale_factor": 0.01, "add_offset": 270.0, "_FillValue": -32768},
    "gaps": {"_FillValue": np.float32(-999)},
    "time": {"units": "hours since 2001-01-01 06:00", "dtype": "int32"},
}


@pytest.mark.parametrize("engine", ["h5netcdf", "netcdf4"])
def test_netcdf_is_read_as_xarray_reads_it(tmp_path: Path, engine: str) -> None:
    path = tmp_path / "era.nc"
    dataset().to_netcdf(path, engine=engine, encoding=PACKED)
    check_as_xarray(path, xr.open_dataset(path, engine=engine))


@pytest.mark.parametrize(("version", "consolidated"), [(2, True), (3, False), (3, True)])
@pytest.mark.filterwarnings("ignore:Consolidated metadata", "ignore:Failed to open Zarr store")
def test_zarr_groups_are_read_as_xarray_reads_them(tmp_path: Path, version: int, consolidated: bool) -> None:
    path = tmp_path / "era.zarr"
    dataset().to_zarr(path, zarr_format=version, consolidated=consolidated, encoding=PACKED)
    check_as_xarray(path, xr.open_zarr(path))


def check_as_xarray(path: Path, theirs: xr.Dataset) -> None:
    ours = oc.open(path)
    assert set(ours) == set(theirs.variables)
    assert ours.attrs["title"] == "made here"
    assert ours.attrs["version"] == 3
    for name, variable in theirs.variables.items():
        array = ours[name]
        assert array.dims == variable.dims
        assert array.name == name
        if variable.dtype.kind == "M":
            np.testing.assert_array_equal(array.compute(), variable.values)
            continue
        assert array.dtype == variable.dtype
        np.testing.assert_array_equal(array.compute(), variable.values)
        assert array.attrs.keys() == variable.attrs.keys()
    assert ours["t2m"].attrs["units"] == "K"
    assert list(ours["t2m"].attrs["levels"]) == [1, 2]
    mean = ours["t2m"].mean(axis="time")
    assert mean.dims == ("lat", "lon")
    np.testing.assert_allclose(mean.compute(), theirs["t2m"].mean("time").values, rtol=1e-6)
    np.testing.assert_array_equal((ours["time"].astype("datetime64[M]").integers % 12 + 1).compute(), [1] * 4 + [2] * 2)
    raw = oc.open(path / "t2m", decode=False)
    assert raw.dtype == np.int16
    assert float(np.asarray(raw.attrs["scale_factor"])) == 0.01


def test_groups_within_groups_are_opened_by_their_paths(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.attrs["who"] = "we"
        file["x"] = np.arange(3)
        inner = file.create_group("one/two")
        inner.attrs["depth"] = 2
        inner["y"] = np.arange(4.0)
        file["text"] = "no numbers"
        file["link"] = h5py.SoftLink("/one/two")
        file["nowhere"] = h5py.SoftLink("/three")
    root = zarr.open_group(tmp_path / "a.zarr", mode="w", attributes={"who": "we"})
    root.create_array("x", data=np.arange(3))
    root.create_group("one/two", attributes={"depth": 2}).create_array("y", data=np.arange(4.0))
    (tmp_path / "a.zarr" / "notes").mkdir()
    for name in ("a.h5", "a.zarr"):
        group = oc.open(tmp_path / name)
        assert group.attrs == {"who": "we"}
        assert group["one"]["two"].attrs == {"depth": 2}
        np.testing.assert_array_equal(group["one/two/y"].compute(), np.arange(4.0))
        np.testing.assert_array_equal(oc.open(tmp_path / name / "one/two")["y"].compute(), np.arange(4.0))
        assert group["x"] is group["x"]
        with pytest.raises(KeyError, match=r"has no 'z'; it has .*one.*x"):
            group["z"]
    assert oc.open(tmp_path / "a.zarr").groups == ("one",)
    group = oc.open(tmp_path / "a.h5")
    assert (group.groups, group.arrays) == (("link", "one"), ("nowhere", "text", "x"))
    np.testing.assert_array_equal(group["link"]["y"].compute(), np.arange(4.0))
    assert "one/" in repr(group)
    assert "attributes: who" in repr(group)
    for name in ("text", "nowhere"):
        with pytest.raises(OutcoreError, match=name):
            group[name]


def test_scales_of_hdf5_name_axes_and_are_members(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["lat"] = np.arange(3.0)
        file["lat"].make_scale("latitude")
        file["x"] = np.ones((3, 4), np.float32)
        file["x"].dims[0].attach_scale(file["lat"])
        file["x"].attrs["weights"] = np.array([1.5, 2], np.float32)
        file["x"].attrs["names"] = ["a", "b"]
        file["x"].attrs["valid"] = True
    x = oc.open(path)["x"]
    assert x.dims == ("lat", None)
    assert x.attrs["names"] == ["a", "b"]
    assert x.attrs["weights"].dtype == np.float32
    assert x.attrs["valid"] == np.True_
    assert oc.open(path)["lat"].attrs == {}


@pytest.mark.parametrize(
    ("stored", "attrs", "right"),
    [
        (np.array([0, 1, 2], np.int16), {"units": "days since 1999-12-31"}, ["1999-12-31", "2000-01-01", "2000-01-02"]),
        (
            np.array([0, 90], np.int64),
            {"units": "seconds since 2000-1-1 0:0:0 UTC"},
            ["2000-01-01T00:00", "2000-01-01T00:01:30"],
        ),
        (np.array([0.5, np.nan]), {"units": "days since 2000-01-01"}, ["2000-01-01T12", "NaT"]),
        (
            np.array([5, -1], np.int32),
            {"units": "minutes since 2000-01-01", "_FillValue": np.int32(-1)},
            ["2000-01-01T00:05", "NaT"],
        ),
        (np.array([1500]), {"units": "milliseconds since 1970-01-01"}, ["1970-01-01T00:00:01.5"]),
        (np.array([1.5]), {"units": "hrs since 1970-01-01"}, ["1970-01-01T01:30"]),
        (np.array([0.0, 150_000.25]), {"units": "days since 1600-01-01"}, ["1600-01-01", "2010-09-08T06"]),
        (np.array([200_000.25]), {"units": "days since 1850-01-01"}, ["2397-08-01T06"]),
        (np.array([-(2**63), 1]), {"units": "days since 2000-01-01", "_FillValue": -(2**63)}, ["NaT", "2000-01-02"]),
    ],
)
def test_times_are_dates(tmp_path: Path, stored: Any, attrs: dict[str, Any], right: list[str]) -> None:
    found = opened_with(tmp_path, stored, attrs)
    assert isinstance(found, oc.dates.Dates)
    np.testing.assert_array_equal(found.compute(), np.array(right, "datetime64[us]"))


@pytest.mark.parametrize(
    "stored",
    [np.array([0, 2**62]), np.array([2**64 - 1], np.uint64), np.array([0.0, np.inf]), np.array([-1e36], np.float32)],
)
def test_times_that_dates_have_no_room_for_end_the_run(tmp_path: Path, stored: Any) -> None:
    found = opened_with(tmp_path, stored, {"units": "days since 2000-01-01"})
    with pytest.raises(ArgumentError, match="decode=False gives the numbers"):
        found.compute()


@pytest.mark.parametrize(
    "attrs",
    [
        {"scale_factor": [0.1, 0.2]},
        {"scale_factor": "0.1"},
        {"_FillValue": "nothing"},
        {"dtype": [1, 2]},
        {"units": ["a", "b"], "dtype": "timedelta64[s]"},
        {"units": "days since 1-1-1", "calendar": "gregorian"},
        {"units": "days since 1-1-1", "calendar": "Standard"},
        {"units": "nanoseconds since 1600-01-01"},
    ],
)
def test_attributes_that_are_not_applied_stay(tmp_path: Path, attrs: dict[str, Any]) -> None:
    found = opened_with(tmp_path, np.arange(3), attrs)
    np.testing.assert_array_equal(found.compute(), np.arange(3))
    assert set(found.attrs) == set(attrs)


@pytest.mark.parametrize(
    "attrs",
    [
        {"units": "days since 0001-01-01"},
        {"units": "days since 2000-01-01", "calendar": "noleap"},
        {"units": "months since 2000-01-01"},
        {"units": "days since 2000-13-01"},
        {"units": "days"},
        {"units": "K", "valid_range": np.array([0, 5])},
        {"_FillValue": "nothing"},
        {"scale_factor": "two"},
    ],
)
def test_numbers_that_are_no_times_of_ours_stay(tmp_path: Path, attrs: dict[str, Any]) -> None:
    found = opened_with(tmp_path, np.arange(3), attrs)
    np.testing.assert_array_equal(found.compute(), np.arange(3))


@pytest.mark.parametrize(
    ("stored", "attrs", "right"),
    [
        (np.array([1, 2, 9], np.uint8), {"_FillValue": np.uint8(9)}, np.array([1, 2, np.nan], np.float32)),
        (np.array([1, 2, 9]), {"missing_value": np.array([2, 9])}, np.array([1, np.nan, np.nan])),
        (
            np.array([-1, 2], np.int8),
            {"_Unsigned": "true", "_FillValue": np.int8(-1)},
            np.array([np.nan, 2], np.float32),
        ),
        (np.array([-1, 2], np.int8), {"_Unsigned": "true"}, np.array([255, 2], np.uint8)),
        (np.array([1, 2], np.int16), {"scale_factor": np.float32(0.5)}, np.array([0.5, 1], np.float32)),
        (np.array([1, 2], np.int32), {"add_offset": 1.0}, np.array([2.0, 3])),
        (np.array([1, 0], np.int8), {"dtype": "bool"}, np.array([True, False])),
        (np.array([1.5, -9], np.float32), {"_FillValue": np.float32(-9)}, np.array([1.5, np.nan], np.float32)),
    ],
)
def test_packed_numbers_are_unpacked(tmp_path: Path, stored: Any, attrs: dict[str, Any], right: Any) -> None:
    found = opened_with(tmp_path, stored, attrs)
    assert found.dtype == right.dtype
    np.testing.assert_array_equal(found.compute(), right)
    assert found.attrs == {}


def opened_with(tmp_path: Path, stored: Any, attrs: dict[str, Any]) -> Any:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = stored
        file["x"].attrs.update(attrs)
    return oc.open(tmp_path / "a.h5/x")


def named() -> oc.Array:
    x = oc.asarray(np.arange(120.0).reshape(SHAPE))
    return x.annotate(dims=DIMS, attrs={"units": "K", "code": np.int16(5)}, name="t2m")


def test_names_follow_the_axes() -> None:
    x = named()
    assert x[0].dims == x[0, ...].dims == ("lat", "lon")
    assert x[:, None, 1].dims == ("time", None, "lon")
    assert x[::2, 1:3].dims == oc.sort(x, axis="lat").dims == DIMS
    assert x.T.dims == ("lon", "lat", "time")
    assert oc.permute_dims(x, ("lat", "time", "lon")).dims == ("lat", "time", "lon")
    assert x.sum(axis=("time", "lon")).dims == ("lat",)
    assert x.mean(axis="lat", keepdims=True).dims == ("time", None, "lon")
    assert oc.cumulative_sum(x, axis="time").dims == DIMS
    assert (x - x.mean(axis="time")).dims == oc.where(x > 3, x, 0).dims == (2 * x).dims == DIMS
    assert x.reshape(6, 20).dims == ("time", None)
    assert x.reshape(6, 1, 4, 5).dims == ("time", None, "lat", "lon")
    assert (x[0] @ x[0].T).dims == ("lat", "lat")
    assert oc.concat([x, x], axis="time").dims == DIMS
    assert x.astype(np.float32).attrs == {"units": "K", "code": 5}
    assert (x[0].annotate(dims=("a", None)) + x[1]).dims == (None, "lon")
    assert (x * x.annotate(attrs={"units": "m", "code": np.int16(5)})).attrs == {"code": 5}
    assert x.annotate(name="u").T.name == "u"
    assert x.T.annotate(dims=("a", "b", "c")).T.dims == ("c", "b", "a")
    assert x.T.annotate(dims=("a", "b", "c"))[1:].dims == ("a", "b", "c")


@pytest.mark.parametrize("method", ["sum", "min", "max", "mean", "var", "prod"])
def test_folds_of_groups_of_arrays_with_names_are_those_of_arrays_without(method: str, tmp_path: Path) -> None:
    """One node has names and the other has none: the numbers of both are the same, stored, kept and computed with."""
    plain, codes = np.random.default_rng(0).normal(size=(600, 90)), np.arange(600) % 3
    np.save(tmp_path / "x.npy", plain)
    x = oc.open(tmp_path / "x.npy")
    groups = oc.groupby(codes, groups=3, axis=0)
    expected = getattr(groups, method)(plain).compute()
    folded = getattr(groups, method)(x.annotate(dims=("time", "lat"), attrs={"units": "K"}))
    bare = getattr(groups, method)(x)
    assert folded.dims == (None, "lat")
    oc.store({tmp_path / "folded.npy": folded})
    np.testing.assert_array_equal(np.load(tmp_path / "folded.npy"), expected)
    oc.clear()
    total, both, one = oc.compute(folded.sum(), bare + folded, folded + 1)
    np.testing.assert_allclose(total, expected.sum())
    np.testing.assert_array_equal(both, 2 * expected)
    np.testing.assert_array_equal(one, expected + 1)


def test_quantiles_have_the_names_of_the_other_axes() -> None:
    x = named()
    assert oc.median(x, axis="lat").dims == ("time", "lon")
    assert oc.percentile(x, [25, 50, 75], axis="lat").dims == (None, "time", "lon")
    assert oc.quantile(x, 0.5, axis="time", keepdims=True).dims == (None, "lat", "lon")
    assert oc.nanmedian(x, axis="time").attrs == {"units": "K", "code": 5}
    same = oc.asarray(np.zeros((3, 3, 3))).annotate(dims=DIMS)
    assert oc.quantile(same, [0.1, 0.2, 0.3], axis="lat").dims == (None, "time", "lon")


def test_names_change_no_values_and_no_plans(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(1 << 18, dtype=np.float64).reshape(512, 512))
    x = oc.open(tmp_path / "x.npy")
    y = x.annotate(dims=("a", "b"), attrs={"units": "m"})
    assert x.dims == (None, None)
    assert oc.explain(y.sum()).bytes_read == oc.explain(x.sum()).bytes_read
    both = oc.explain((x + 1).sum() + (y + 1).annotate(dims=("c", "d")).sum())
    assert both.bytes_read == oc.explain(x.sum()).bytes_read
    first, second = oc.compute((x + 1).sum(), (y + 1).sum())
    assert first == second
    back = pickle.loads(pickle.dumps(y[3:]))
    assert (back.dims, back.attrs) == (("a", "b"), {"units": "m"})


def test_names_that_are_wrong_are_refused() -> None:
    x = named()
    with pytest.raises(ArgumentError, match=r"mean: no axis is called 'level'; the axes are 'time', 'lat', 'lon'"):
        x.mean(axis="level")
    with pytest.raises(ShapeError, match="2 names for an array of 3 axes"):
        x.annotate(dims=("a", "b"))
    with pytest.raises(ArgumentError, match="two axes are called 'a'"):
        x.annotate(dims=("a", "b", "a"))
    with pytest.raises(OutcoreError, match="'f' of function"):
        x.annotate(attrs={"f": named})
    with pytest.raises(ArgumentError, match="no name of a member"):
        oc.group({"a/b": x})


def test_many_files_are_one_group(tmp_path: Path) -> None:
    for part in range(12):
        with h5py.File(tmp_path / f"t2m_{part}.nc", "w") as file:
            file["time"] = np.arange(part * 3, part * 3 + 3)
            file["time"].attrs["units"] = "days since 2001-01-01"
            file["lat"] = np.arange(4.0)
            file["t2m"] = np.full((3, 4), part, np.float32)
            for name in ("time", "lat"):
                file[name].make_scale(name)
            file["t2m"].dims[0].attach_scale(file["time"])
            file["t2m"].dims[1].attach_scale(file["lat"])
    many = oc.open(tmp_path / "t2m_*.nc", axis="time")
    assert (many["t2m"].dims, many["t2m"].shape, many["lat"].shape) == (("time", "lat"), (36, 4), (4,))
    np.testing.assert_array_equal(many["t2m"][:, 0].compute(), np.repeat(np.arange(12.0), 3))
    assert many["time"][-1].item() == np.datetime64("2001-02-05").astype("datetime64[s]").item()
    one = oc.open(tmp_path / "t2m_*.nc", axis="lat")["t2m"]
    assert one.shape == (3, 48)
    with pytest.raises(ArgumentError, match="by its name, as axis='time'"):
        oc.open(tmp_path / "t2m_*.nc")
    with h5py.File(tmp_path / "t2m_7.nc", "a") as file:
        del file["lat"]
    with pytest.raises(ShapeError, match=r"t2m_0\.nc and .*t2m_7\.nc do not have .*: only .*t2m_0\.nc has lat"):
        oc.open(tmp_path / "t2m_*.nc", axis="time")
    with pytest.raises(ShapeError, match=r"is a group, .* an array"):
        oc.open([tmp_path / "t2m_0.nc", tmp_path / "t2m_0.nc/t2m"])


def test_damaged_documents_are_refused(tmp_path: Path) -> None:
    root = zarr.open_group(tmp_path / "a.zarr", mode="w")
    root.create_array("x", data=np.arange(3))
    (tmp_path / "a.zarr/x/zarr.json").write_text("{")
    group = oc.open(tmp_path / "a.zarr")
    assert group.arrays == ("x",)
    with pytest.raises(FormatError, match="not valid JSON"):
        group["x"]
    (tmp_path / "a.zarr/zarr.json").write_text("[]")
    with pytest.raises(OutcoreError, match=r"a\.zarr"):
        oc.open(tmp_path / "a.zarr")


def described() -> oc.Group:
    when = oc.asarray(np.array(["2001-01-28T06", "NaT", "2001-02-02"], "datetime64[h]")).annotate(dims=("time",))
    t2m = named()[:3].astype(np.float32)
    steps = oc.asarray(np.array([1, 2, "NaT"], "timedelta64[m]")).annotate(dims=("time",))
    lat = oc.asarray(np.linspace(-60, 60, 4)).annotate(dims=("lat",), attrs={"bounds": [[1, 2], [3, 4]]})
    inner = oc.group(mask=oc.asarray(np.array([True, False])), attrs={"scale": np.float32(0.1)})
    return oc.group(
        {"inner": inner}, t2m=t2m, time=when, lat=lat, steps=steps, attrs={"title": "made", "n": np.int16(3)}
    )


@pytest.mark.filterwarnings("ignore:Consolidated metadata")
def test_groups_are_written_and_read_by_others(tmp_path: Path) -> None:
    path = tmp_path / "out.zarr"
    plan = oc.explain({path: described()})
    outcome = oc.store({path: described()})
    assert (plan.bytes_read, plan.bytes_written) == (outcome.bytes_read, outcome.bytes_written)
    assert os.listdir(tmp_path) == ["out.zarr"]
    theirs = xr.open_zarr(path, decode_timedelta=True)
    group = described()
    assert theirs.attrs == {"title": "made", "n": 3}
    assert theirs["t2m"].dims == DIMS
    assert theirs["t2m"].attrs == {"units": "K", "code": 5}
    for name in ("t2m", "time", "lat", "steps"):
        right = group[name].compute()
        np.testing.assert_array_equal(theirs[name].values, right)
        again = oc.open(path)[name]
        assert again.dtype == right.dtype or again.dtype.kind in "mM"
        np.testing.assert_array_equal(again.compute(), right)
        assert again.dims == group[name].dims
    assert oc.open(path)["inner"].attrs == {"scale": pytest.approx(0.1)}
    assert zarr.open(path, mode="r")["inner/mask"][:].tolist() == [True, False]
    again = tmp_path / "again.zarr"
    theirs.drop_vars("steps").to_zarr(again, zarr_format=3)
    xr.testing.assert_identical(xr.open_zarr(again), theirs.drop_vars("steps"))
    oc.store({tmp_path / "third.zarr": oc.open(again)})
    xr.testing.assert_identical(xr.open_zarr(tmp_path / "third.zarr"), xr.open_zarr(again))


def test_a_group_is_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "out.zarr"
    oc.store({path: described()})
    with pytest.raises(TargetExistsError):
        oc.store({path: oc.group(x=oc.arange(3))})
    oc.store({path: oc.group(x=oc.arange(3), y=oc.arange(2.0))}, overwrite=True, chunks={f"{path}/x": (2,)})
    assert list(oc.open(path)) == ["x", "y"]
    assert json.loads((path / "x/zarr.json").read_text())["chunk_grid"]["configuration"]["chunk_shape"] == [2]
    oc.store({path / "z": oc.arange(4).annotate(dims=("k",))})
    assert oc.open(path)["z"].dims == ("k",)
    assert os.listdir(tmp_path) == ["out.zarr"]
    (tmp_path / "plain.zarr").mkdir()
    with pytest.raises(TargetExistsError, match="no Zarr group"):
        oc.store({tmp_path / "plain.zarr": oc.group(x=oc.arange(3))}, overwrite=True)


def test_groups_that_cannot_be_written_leave_nothing(tmp_path: Path) -> None:
    x = oc.arange(3)
    for group, error in (
        (oc.group(x=x, text=oc.asarray(np.array(["a"]))), DTypeError),
        (oc.group({"x.npy": x}), UnsupportedFormatError),
        (oc.group(x=x, attrs={"f": named}), DTypeError),
    ):
        with pytest.raises(error):
            oc.store({tmp_path / "out.zarr": group})
    with pytest.raises(UnsupportedFormatError, match="beside groups"):
        oc.store({tmp_path / "out.zarr": oc.group(x=x), tmp_path / "x.npy": x})
    with pytest.raises(UnsupportedFormatError, match="ends in"):
        oc.store({tmp_path / "out.npz": oc.group(x=x)})
    with pytest.raises(ArgumentError, match="resume"):
        oc.store({tmp_path / "out.zarr": oc.group(x=x)}, resume=True)
    with pytest.raises(ShapeError, match="chunks name"):
        oc.store({tmp_path / "out.zarr": oc.group(x=x)}, chunks={"z": (1,)})
    assert os.listdir(tmp_path) == []


def test_dates_are_stored_in_zarr_by_themselves(tmp_path: Path) -> None:
    when = np.array(["2001-01-28", "NaT", "2001-02-02"], "datetime64[M]")
    oc.store({tmp_path / "when.zarr": oc.asarray(when)})
    found = oc.open(tmp_path / "when.zarr")
    assert found.dtype == np.dtype("datetime64[s]")
    np.testing.assert_array_equal(found.compute(), when)


def test_attributes_of_outputs_that_are_gone_on_with_count(tmp_path: Path) -> None:
    path = tmp_path / "x.zarr"
    x = oc.arange(10)
    oc.store({path: x.annotate(dims=("a",), attrs={"units": "m"})}, resume=True)
    oc.store({path: x.annotate(dims=("a",), attrs={"units": "m"})}, resume=True)
    with pytest.raises(TargetExistsError):
        oc.store({path: x.annotate(dims=("b",), attrs={"units": "m"})}, resume=True)


@pytest.mark.parametrize("axis", [None, "time", 1])
def test_climatologies_go_along_the_axis_of_their_labels(axis: Any) -> None:
    when = np.arange("2001-01-20", "2001-03-10", dtype="datetime64[D]")
    values = np.random.default_rng(3).standard_normal((3, when.size, 2))
    theirs = xr.DataArray(values, dims=("a", "time", "b"), coords={"time": when.astype("datetime64[ns]")})
    x = oc.asarray(values).annotate(dims=("a", "time", "b"), attrs={"units": "K"})
    time = oc.asarray(when).annotate(dims=("time",))
    months = oc.groupby(time.month)
    options = {} if axis is None else {"axis": axis}
    mean = months.mean(x, **options)
    right = theirs.groupby("time.month").mean().transpose("a", "month", "b")
    np.testing.assert_allclose(mean.compute(), right.values, rtol=1e-12)
    assert (mean.dims, mean.attrs) == (("a", None, "b"), {"units": "K"})
    sums = months.cumsum(x, **options)
    assert sums.dims == ("a", "time", "b")
    assert sums[0, -1, 0].item() == pytest.approx(values[0, when >= np.datetime64("2001-03-01"), 0].sum())
    with pytest.raises(ArgumentError, match=r"groupby\.mean: no axis is called 'lat'"):
        months.mean(x, axis="lat")


def test_parts_of_dates_are_those_of_pandas() -> None:
    import pandas as pd

    seconds = np.random.default_rng(5).integers(-4_000_000_000, 6_000_000_000, 500)
    when = seconds.astype("datetime64[s]")
    when[7] = np.datetime64("NaT")
    dates, theirs = oc.asarray(when), pd.Series(when).dt
    for name in ("year", "month", "day", "dayofyear", "weekday", "hour", "minute", "second"):
        theirs_name = {"dayofyear": "day_of_year", "weekday": "day_of_week"}.get(name, name)
        right = getattr(theirs, theirs_name).fillna(-1).to_numpy().astype(np.int64)
        np.testing.assert_array_equal(getattr(dates, name).compute(), right, name)
    np.testing.assert_array_equal(dates.season.compute()[:7], theirs.month.to_numpy()[:7] % 12 // 3)
    with pytest.raises(DTypeError, match="durations"):
        _ = (dates - dates).month


def test_an_unknown_axis_of_joined_groups_is_refused_with_the_axes_there_are(tmp_path: Path) -> None:
    for part in range(2):
        dataset().isel(time=slice(3 * part, 3 * part + 3)).to_netcdf(tmp_path / f"{part}.nc")
    with pytest.raises(ArgumentError, match=r"no array of .*0\.nc has an axis called 'tme'; the axes are .*'time'"):
        oc.open(tmp_path / "*.nc", axis="tme")
    shown = repr(oc.open(tmp_path / "*.nc", axis="time"))
    assert "0.nc and 1 more" in shown
    assert "t2m (time: 6, lat: 4, lon: 5) float64" in shown


def test_groups_tell_why_a_member_is_not_read_and_how_members_are_reached(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["label"] = np.asarray(["a", "b"], dtype=h5py.string_dtype())
        file["x"] = np.arange(3)
    group = oc.open(tmp_path / "x.h5")
    assert 'label: not read: "label" has elements of 16 bytes, text of any length' in repr(group)
    with pytest.raises(AttributeError, match=r"no attribute 'x'; the member is group\['x'\]"):
        _ = group.x


def test_masks_and_positions_keep_names_and_attributes() -> None:
    values = np.arange(120.0).reshape(SHAPE)
    x = oc.asarray(values).annotate(dims=DIMS, attrs={"units": "K"})
    mask = np.asarray([True, False, True, True, False, False])
    assert (x[mask].dims, x[mask].attrs) == (DIMS, {"units": "K"})
    np.testing.assert_array_equal(x[mask].mean(axis="time").compute(), values[mask].mean(axis=0))
    assert x[mask, 0].dims == ("time", "lon")
    assert x[np.ones(SHAPE[:2], bool)].dims == (None, "lon")
    assert x[:, [2, 0], 1:].dims == DIMS
    months = oc.asarray(np.zeros(9, np.int64)).annotate(dims=("month",))
    assert x[months].dims == ("month", "lat", "lon")
    assert x[np.zeros((2, 2), int)].dims == (None, None, "lat", "lon")
    assert x[:, [1, 2], 0].shape == (6, 2)


def test_members_have_any_name_but_those_of_documents(tmp_path: Path) -> None:
    x = oc.arange(3)
    names = ["t.2m", "x.h5", "X.NPY", "p.parquet", "é", "[ab]*", "z" * 250]
    path = str(tmp_path / "a.zarr")
    oc.store({path: oc.group(deep=oc.group(dict.fromkeys(names, x)))}, chunks={f"{path}/deep/t.2m": (2,)})
    assert set(oc.open(path)["deep"]) == set(names)
    assert zarr.open_group(path)["deep/t.2m"].chunks == (2,)
    for name in names:
        np.testing.assert_array_equal(oc.open(path)["deep"][name].compute(), np.arange(3))
    with h5py.File(tmp_path / "odd.h5", "w") as file:
        file[".."] = np.arange(2)
    for odd in (oc.group({"zarr.json": x}), oc.open(tmp_path / "odd.h5")):
        with pytest.raises(UnsupportedFormatError, match=r"b\.zarr/(zarr\.json|\.\.): arrays of a group"):
            oc.store({str(tmp_path / "b.zarr"): odd})
    with pytest.raises(ArgumentError, match="name one folder twice"):
        oc.store({path: oc.group(x=x), str(tmp_path / "." / "b" / ".." / "a.zarr"): oc.group(x=x)}, overwrite=True)
    with pytest.raises(ArgumentError, match="no name of a member"):
        oc.group({"a\0b": x})


def test_arrays_stored_into_a_group_are_those_that_others_read(tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    x = oc.asarray(np.arange(6.0)).annotate(dims=("k",))
    oc.store({path: oc.group(x=x, y=x, deep=oc.group(z=x), attrs={"title": "kept"})})
    z = oc.asarray(np.arange(4, dtype=np.int16)).annotate(dims=("z",))
    oc.store({path / "x": z, path / "deep/z": z, path / "new": x}, overwrite=True)
    oc.store({path / "more.zarr": oc.group(w=z)})
    theirs = xr.open_zarr(path)
    assert set(theirs) == {"x", "y", "new"}
    assert theirs.attrs == {"title": "kept"}
    np.testing.assert_array_equal(theirs["x"], np.arange(4))
    root = zarr.open_group(path, use_consolidated=True)
    for name in ("deep/z", "more.zarr/w"):
        np.testing.assert_array_equal(root[name][:], np.arange(4))
    assert sorted(os.listdir(path)) == ["deep", "more.zarr", "new", "x", "y", "zarr.json"]


def test_members_of_a_group_that_was_replaced_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    oc.store({path: oc.group(x=oc.arange(3), y=oc.arange(3), deep=oc.group(z=oc.arange(3)))})
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = file["y"] = np.arange(3)
    group, deep, file_group = oc.open(path), oc.open(path)["deep"], oc.open(tmp_path / "a.h5")
    oc.store({path / "x": oc.arange(4)}, overwrite=True)  # an array alone is another array of the same group
    assert group["x"].shape == (4,)
    oc.store({path: oc.group(x=oc.arange(5), y=oc.arange(5), deep=oc.group(z=oc.arange(5)))}, overwrite=True)
    with h5py.File(tmp_path / "a.h5", "a") as file:
        file["more"] = np.zeros(1000)
    for replaced, name in ((group, "y"), (deep, "z"), (file_group, "x")):
        with pytest.raises(SourceChangedError, match="open it again"):
            replaced[name]
