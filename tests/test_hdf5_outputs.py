"""HDF5 and NetCDF-4 outputs: read by h5py, xarray and netCDF4, with all they keep, whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from support.running import assert_nothing_but_kept, failures, files_below, killed_at, session, tree_hash

import outcore as oc
from outcore.errors import (
    ArgumentError,
    DTypeError,
    OutcoreError,
    ShapeError,
    TargetExistsError,
    UnsupportedFormatError,
)

WORDS = {"name": "numcodecs.shuffle", "configuration": {"elementsize": 4}}
UNKEPT: list[dict[str, Any]] = [
    {"a": {"b": 1}},
    {"a": np.arange(1 << 16)},
    {"": 1},
    {"CLASS": "DIMENSION_SCALE"},
    {"_FillValue": np.nan},
    {"_FillValue": "none"},
]


def values(shape: tuple[int, ...], dtype: str = "float64") -> Any:
    return (np.arange(np.prod(shape)) % 1000 // 3).reshape(shape).astype(dtype)


@settings(max_examples=25, deadline=None)
@given(
    shapes=st.lists(st.lists(st.integers(0, 9), max_size=3).map(tuple), min_size=1, max_size=4),
    way=st.sampled_from([None, {"name": "gzip"}, ("gzip", 9), {"name": "numcodecs.shuffle"}, ["shuffle", "gzip"]]),
    chunk=st.none() | st.integers(1, 5),
    dtype=st.sampled_from(["int8", "bool", "uint16", "float16", "float32", "int64", "complex128"]),
)
def test_h5py_reads_what_is_stored(
    shapes: list[tuple[int, ...]], way: Any, chunk: int | None, dtype: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("h5") / "x.h5"
    arrays = {f"{path}/g/x{at}": values(shape, dtype) for at, shape in enumerate(shapes)}
    chunks = None if chunk is None else {name: (chunk,) * x.ndim for name, x in arrays.items()}
    with session():
        oc.store({name: oc.asarray(x) for name, x in arrays.items()}, compression=way, chunks=chunks)
        with h5py.File(path) as file:
            for name, x in arrays.items():
                member = file[name.removeprefix(f"{path}/")]
                assert member.dtype == x.dtype
                np.testing.assert_array_equal(member[...], x)
                np.testing.assert_array_equal(oc.open(name).compute(), x)
                if x.size and x.ndim and (way is not None or chunk is not None):
                    assert member.chunks is not None
                    assert member.compression == (None if way in (None, {"name": "numcodecs.shuffle"}) else "gzip")


def test_elements_in_one_piece_are_written_once_and_as_forecast(out: Path, scratch: Path) -> None:
    path, x = out / "x.h5", values((1001, 513))
    targets = {path / "a": oc.asarray(x) + 0, path / "b": oc.asarray(x).T + 1, path / "c": oc.arange(3)}
    with session(scratch) as current:
        said = oc.explain(targets)
        outcome = oc.store(targets)
        assert_nothing_but_kept(current)
    assert said.exact
    assert outcome.bytes_written == said.bytes_written == 2 * x.nbytes + 3 * 8
    with h5py.File(path) as file:
        assert [file[name].chunks for name in "abc"] == [None] * 3
        for name, expected in {"a": x, "b": x.T + 1, "c": np.arange(3)}.items():
            np.testing.assert_array_equal(file[name][...], expected)


@pytest.mark.parametrize("way", [None, "gzip"])
def test_chunks_are_put_together_as_forecast_and_plans_leave_nothing(out: Path, scratch: Path, way: Any) -> None:
    path, x = out / "x.h5", values((1001, 513))
    group = oc.group(x=oc.asarray(x) + 0, y=oc.asarray(x).T)
    options: dict[str, Any] = {"chunks": {path / "x": (100, 200), path / "y": (600, 50)}, "compression": way}
    with session(scratch):
        said = oc.explain({path: group}, **options)
        oc.visualize({path: group})
        oc.explain({out / "x.zarr": group})
        assert list(out.iterdir()) == []
        outcome = oc.store({path: group}, **options)
    assert said.exact == (way is None)
    assert {name for part in said.passes for name in part.outputs} == {str(path / "x"), str(path / "y")}
    assert outcome.peak_bytes <= said.peak_bytes
    if way is None:
        assert (said.bytes_read, said.bytes_written) == (outcome.bytes_read, outcome.bytes_written)
    else:
        assert outcome.bytes_read < said.bytes_read
        assert outcome.bytes_written < said.bytes_written


@pytest.mark.parametrize("way", [None, ["shuffle", "gzip"]])
def test_xarray_reads_groups_as_they_were(out: Path, way: Any) -> None:
    path, x = out / "era.nc", values((4, 5))
    days = np.arange("2001-01-28", "2001-02-01", dtype="datetime64[D]")
    t2m = oc.asarray(x).annotate(dims=("time", "lon"), attrs={"units": "K", "levels": [1, 2], "kinds": ["a", "b"]})
    below = oc.group(c=oc.asarray(x[:, 0]).annotate(dims=("time",)))
    group = oc.group(
        {
            "t2m": t2m,
            "mask": oc.asarray(x > 3).astype("int8").annotate(dims=("time", "bare")),
            "time": oc.asarray(days).annotate(dims=("time",)),
            "lon": oc.asarray(np.linspace(0, 1, 5)).annotate(dims=("lon",)),
            "sub": below,
        },
        attrs={"title": "made", "version": 3},
    )
    with session():
        oc.store({path: group}, compression=way)
        again = oc.open(path)
        assert again["t2m"].dims == ("time", "lon")
        assert again["mask"].dims == ("time", "bare")
        assert again["sub/c"].dims == ("time",)
    expected = xr.Dataset(
        {"t2m": (("time", "lon"), x), "mask": (("time", "bare"), (x > 3).astype("int8"))},
        {"time": days.astype("datetime64[ns]"), "lon": np.linspace(0, 1, 5)},
        {"title": "made", "version": 3},
    )
    for engine in ("h5netcdf", "netcdf4"):
        with xr.open_dataset(path, engine=engine) as opened:
            xr.testing.assert_equal(opened.load(), expected)
            assert opened.attrs == expected.attrs
            assert opened["t2m"].attrs["units"] == "K"
            assert list(opened["t2m"].attrs["kinds"]) == ["a", "b"]
        with xr.open_dataset(path, engine=engine, group="sub") as opened:
            np.testing.assert_array_equal(opened["c"], x[:, 0])


def test_what_hdf5_cannot_have_is_refused(out: Path) -> None:
    x, path = oc.arange(6), out / "x.h5"
    large = oc.zeros(1 << 33, dtype="int8")
    (out / "folder.h5").mkdir()
    with session():
        oc.store({out / "old.h5": oc.group(x=x)})
        before = tree_hash(out)
        cases: list[tuple[Any, dict[str, Any], type[Exception], str]] = [
            ({path: x}, {}, UnsupportedFormatError, "is a file of named arrays; store to .*x.h5/x"),
            ({path / "x": x, out / "y.npy": x}, {}, UnsupportedFormatError, "beside HDF5 files"),
            ({path / "x": x, path / "x/y": x}, {}, ArgumentError, "as an array and as a group"),
            ({path / "x": x}, {"resume": True}, ArgumentError, "resume=True"),
            ({path / "x": x, path / "../y": x}, {}, UnsupportedFormatError, "none in HDF5"),
            ({path / "x": x}, {"compression": "zstd"}, ArgumentError, "compressed by 'gzip'"),
            ({path / "x": x}, {"compression": ("gzip", 10)}, UnsupportedFormatError, "^[^:]*/x.h5/x: .*from 0 to 9"),
            ({path / "x": x}, {"compression": WORDS}, ArgumentError, "elements of 8 bytes"),
            ({path / "x": x}, {"chunks": {path / "x": (1, 1)}}, ShapeError, "do not have the dimensions"),
            ({path / "x": x}, {"chunks": {path / "x": (1 << 70,)}}, ShapeError, "lengths run from 1"),
            ({path / "x": x}, {"chunks": {path / "y": (1,)}}, ShapeError, "nothing is stored to"),
            ({path / "x": x}, {"chunks": (1,)}, ShapeError, "mapping of paths"),
            ({path / "x": large}, {"chunks": {path / "x": large.shape}}, ShapeError, "4 GiB or more"),
            ({path / "x": oc.asarray(np.array(["a"]))}, {}, DTypeError, "text"),
            *(({path / "x": x.annotate(attrs=attrs)}, {}, DTypeError, "nothing that HDF5 keeps") for attrs in UNKEPT),
            ({out / "old.h5": oc.group(y=x)}, {}, TargetExistsError, "overwrite=True"),
            ({out / "old.h5/y": x}, {"overwrite": True}, UnsupportedFormatError, "HDF5 files are written whole"),
            ({out / "none" / "x.h5/x": x}, {}, OutcoreError, "none"),
        ]
        for targets, options, kind, match in cases:
            with pytest.raises(kind, match=match):
                oc.store(targets, **options)
        assert tree_hash(out) == before
        oc.store({out / "folder.h5" / "x.npy": x})
        oc.store({out / "old.h5": oc.group(y=x + 1)}, overwrite=True)
    with h5py.File(out / "old.h5") as file:
        assert list(file) == ["y"]


@pytest.mark.parametrize("fault", ["write:{n}", "write:{n}:enospc", "sync:{n}"])
@pytest.mark.parametrize("way", [None, "gzip"])
def test_faults_leave_the_old_file(fault: str, way: Any, out: Path, scratch: Path) -> None:
    path, x = out / "x.h5", values((64, 512))
    with session():
        oc.store({path: oc.group(x=oc.zeros(3))})
    old = tree_hash(out)
    chunks = {path / "x": (16, 512)} if way else None

    def work() -> None:
        group = oc.group(x=oc.asarray(x), y=oc.asarray(x) + 1)
        oc.store({path: group}, overwrite=True, compression=way, chunks=chunks)

    for _ in failures(fault, scratch, work):
        assert tree_hash(out) == old
    with h5py.File(path) as file:
        np.testing.assert_array_equal(file["y"][...], x + 1)


def test_a_killed_process_leaves_no_file(out: Path, data: Path, scratch: Path) -> None:
    np.save(data / "x.npy", values((4096, 1024)))
    path = out / "x.h5"
    program = (
        "import sys, outcore as oc\nprint('begins', flush=True)\n"
        "oc.store({sys.argv[1] + '/x': oc.open(sys.argv[2])}, compression=('gzip', 9), progress=False)"
    )
    killed_at(out, ".outcore-*/*.zarr", program, path, data / "x.npy")
    x = np.load(data / "x.npy")
    if path.exists():  # the file was complete before the process ended
        np.testing.assert_array_equal(oc.open(path / "x").compute(), x)
    with session(scratch):
        oc.store({path: oc.group(x=oc.asarray(x))}, overwrite=True)
    assert files_below(out) == ["x.h5"]
