"""First days with files of others: what was stored opens elsewhere, and a refusal says what to do instead."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import xarray as xr
from support.running import session

import outcore as oc
from outcore.errors import DTypeError, FormatError, UnsupportedFormatError

STATIONS = xr.Dataset(
    {
        "t": (("station", "time"), np.array([[1.5, np.nan, 2.5], [0.0, 3.0, 4.5]]), {"units": "K"}),
        "name": ("station", ["Oslo", "Rømme"]),
        "code": ("station", np.array([b"ab", b"cde"])),
    },
    {"station": ["a", "bb"]},
)


@pytest.mark.parametrize("engine", ["zarr", "outcore"])
def test_numbers_as_stored_go_to_zarr_and_back_with_fill_values_that_xarray_reads(engine: str, tmp_path: Path) -> None:
    numbers = STATIONS[["t"]].drop_vars("station")
    packed = {"t": {"dtype": "int16", "scale_factor": 0.5, "_FillValue": -1}}
    for name, encoding in (("floats", {"t": {"_FillValue": -9.0}}), ("nan", {}), ("packed", packed)):
        source, zarr, back = (tmp_path / f"{name}{end}" for end in (".nc", ".zarr", "-back.nc"))
        numbers.to_netcdf(source, encoding=encoding)
        with session():
            oc.store({zarr: oc.open(source, decode=False)})
            oc.store({back: oc.open(zarr, decode=False)})
            xr.testing.assert_identical(xr.open_dataset(zarr, engine=engine).load(), numbers)
        xr.testing.assert_identical(xr.open_dataset(back).load(), numbers)


def test_text_of_hdf5_is_read_beside_lazy_numbers_by_the_engine_of_xarray(tmp_path: Path) -> None:
    STATIONS.to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    opened = xr.open_dataset(tmp_path / "a.nc", engine="outcore", chunks={})
    assert isinstance(opened.t.data, oc.Array)
    with session():
        xr.testing.assert_identical(opened.load(), xr.open_dataset(tmp_path / "a.nc", engine="h5netcdf").load())


def test_variables_that_are_not_read_are_dropped_by_name(records: Path) -> None:
    with pytest.raises(FormatError, match=r"a record, which are not read; .*drop_variables='rec'"):
        xr.open_dataset(records, engine="outcore")
    assert list(xr.open_dataset(records, engine="outcore", drop_variables="rec")) == ["x"]


@pytest.fixture
def records(tmp_path: Path) -> Path:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"], file["rec"] = np.arange(3.0), np.zeros(3, dtype=[("a", "f8"), ("b", "i4")])
    return tmp_path / "a.h5"


def test_refusals_of_hdf5_say_why_and_what_reads_it(records: Path) -> None:
    assert 'rec: not read: "rec" has elements of 12 bytes, a record' in repr(oc.open(records))
    with pytest.raises(UnsupportedFormatError, match=r"h5py.File\('.*a.h5'\)\['rec'\]$"):
        oc.open(records / "rec")
    with pytest.raises(DTypeError, match=r"field and view are for .npy files"):
        oc.open(records / "rec", field="a")


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "no format": (lambda: oc.open(__file__), "none of the formats .* dtype="),
    "a URL of a local file": (lambda: oc.open("file:///a.nc"), "a local file by its path"),
    "a table in a bucket": (lambda: oc.read_parquet("s3://b/a.parquet"), "read_parquet reads files, not objects"),
    "text in a bucket": (lambda: oc.read_csv("s3://b/a.csv"), "read_csv reads files, not objects"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_say_what_to_do(case: str) -> None:
    call, message = REFUSED[case]
    with session(), pytest.raises((ValueError, TypeError, AttributeError), match=message):
        call()
