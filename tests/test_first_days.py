"""First days with files of others: what was stored opens elsewhere, and a refusal says what to do instead."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import pytest
import xarray as xr
from click.testing import CliRunner
from scipy.sparse import csr_array
from support.running import session

import outcore as oc
from outcore._command.cli import main
from outcore.errors import ArgumentError, DTypeError, FormatError, UnsupportedFormatError

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
    with pytest.raises(FormatError, match=r"rec: elements are records; .*drop_variables='rec'"):
        xr.open_dataset(records, engine="outcore")
    assert list(xr.open_dataset(records, engine="outcore", drop_variables="rec")) == ["x"]


@pytest.fixture
def records(tmp_path: Path) -> Path:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"], file["rec"] = np.arange(3.0), np.zeros(3, dtype=[("a", "f8"), ("b", "i4")])
    return tmp_path / "a.h5"


def test_refusals_of_hdf5_say_why_and_what_reads_it(records: Path) -> None:
    with h5py.File(records, "r+") as file:
        file["words"] = ["any", "length"]
    shown = repr(oc.open(records))
    assert "rec: not read: elements are records; name one of their fields: a, b" in shown
    assert 'words: not read: "words" has elements of 16 bytes, text of any length' in shown
    with pytest.raises(UnsupportedFormatError, match=r"h5py.File\('.*a.h5'\)\['words'\]$"):
        oc.open(records / "words")
    with pytest.raises(DTypeError, match=r"field and view are for records, .npy files"):
        oc.open(records / "x", field="a")


T = oc.table(key=np.asarray(["a", "b", "a"]), x=np.asarray([1.0, 2.0, 4.0]))


def test_labels_join_with_text_on_both_sides() -> None:
    labels = oc.Categorical(oc.asarray(np.asarray([1, 0, 1, -1], dtype="int32")), ["a", "b"])
    marked = oc.table(key=labels, n=np.arange(4))
    with session():
        assert marked.join(oc.table(key=["b", "c"], y=[5, 6]), "key").compute()["n"].tolist() == [0, 2]
        assert T.join(marked, "key").compute()["n"].tolist() == [1, 1, 0, 2]
        assert marked.concat(oc.table(key=["c"], n=[9]))["key"].compute().tolist() == ["b", "a", "b", None, "c"]


def test_results_of_groups_by_a_mapping_keep_the_names_of_columns() -> None:
    with session():
        totals = T.groupby("key").agg({"x": "sum"}, most=("x", "max")).compute()
    assert {name: list(values) for name, values in totals.items()} == {
        "key": ["a", "b"],
        "x": [5.0, 2.0],
        "most": [4.0, 2.0],
    }


def test_dates_go_into_a_group_that_is_there(tmp_path: Path) -> None:
    days = np.arange("2001-01-01", "2001-01-04", dtype="datetime64[D]")
    with session():
        oc.store({tmp_path / "a.zarr": oc.group(x=oc.arange(3))})
        oc.store({tmp_path / "a.zarr/day": oc.asarray(days)})
        assert oc.open(tmp_path / "a.zarr/day").compute().tolist() == days.astype("datetime64[s]").tolist()


def test_a_pyramid_is_compressed_by_store(tmp_path: Path) -> None:
    with session():
        oc.store({tmp_path / "p.zarr": oc.pyramid(oc.zeros((64, 64)), 2)}, compression="zstd")
        assert sum(part.stat().st_size for part in (tmp_path / "p.zarr").rglob("c/*/*")) < 1000
        assert oc.open(tmp_path / "p.zarr/1").sum().item() == 0


def test_files_are_joined_on_the_command_line(tmp_path: Path) -> None:
    for year in range(2):
        STATIONS[["t"]].drop_vars("station").to_netcdf(tmp_path / f"a_{year}.nc")
    done = CliRunner().invoke(main, ["convert", f"{tmp_path}/a_*.nc", f"{tmp_path}/all.zarr", "--axis", "time"])
    assert done.exit_code == 0, done.output
    assert oc.open(tmp_path / "all.zarr/t").shape == (2, 6)


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "no format": (lambda: oc.open(__file__), "none of the formats .* dtype="),
    "a URL of a local file": (lambda: oc.open("file:///a.nc"), "a local file by its path"),
    "a table of text in a bucket": (lambda: oc.read_csv("s3://b/a.csv"), "read_csv reads files, not objects"),
    "a table as an array": (lambda: oc.store({"t.npy": T}), "a table is no array"),
    "rows of tables": (lambda: oc.concat([T, T]), "t.concat"),
    "a column as an attribute": (lambda: T.x, r"t\['x'\]"),
    "a method of data frames": (lambda: T.to_parquet, "oc.to_parquet"),
    "a mean of groups": (lambda: T.groupby("key").mean(), "agg"),
    "a mean without NaN": (lambda: oc.groupby(np.arange(3)).nanmean, "skipna=True"),
    "a data frame": (lambda: oc.table(pa.table({"a": [1]})), "outcore.from_arrow"),
    "a sparse matrix": (lambda: oc.asarray(csr_array((2, 2))), "outcore.sparse.from_scipy"),
    "an order of arguments": (lambda: oc.random.integers(0, 10, (5,)), "shape comes first"),  # type: ignore[arg-type]
    "selection by label": (lambda: oc.zeros(3).sel, "x\\[place\\]"),
    "an ending": (lambda: oc.store({"a.parquet": oc.zeros(3)}), "a.h5/x, and outcore.to_parquet"),
    "a codec for .npy": (lambda: oc.store({"a.npy": oc.zeros(3)}, compression="gzip"), "has no codecs"),
    "chunks of a member": (
        lambda: oc.store({"a.zarr": oc.group(x=oc.zeros(3))}, chunks={"x": (1,)}),
        "named as 'a.zarr/x'",
    ),
    "more whole axes": (lambda: oc.map_blocks(np.sort, oc.zeros((64, 64)), whole=(0,)), r"whole=\(0, 1\)"),
    "text in a bucket": (lambda: oc.read_csv("s3://b/a.csv"), "read_csv reads files, not objects"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_say_what_to_do(case: str) -> None:
    call, message = REFUSED[case]
    with session(), pytest.raises((ValueError, TypeError, AttributeError), match=message):
        call()


def test_store_names_its_mapping_where_arrays_stand_beside_paths(tmp_path: Path) -> None:
    misplaced: Any = oc.arange(3)
    with pytest.raises(
        ArgumentError, match=r"one mapping of paths to arrays, store\(\{'y\.zarr': y\}\), not str and A"
    ):
        oc.store(str(tmp_path / "x.npy"), misplaced)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("name", "module"), [("a.h5ad", "h5py"), ("a.zarr", "zarr")])
def test_matrices_of_anndata_name_the_library_that_is_missing(
    name: str, module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.h5ad").write_bytes(b"")
    (tmp_path / "a.zarr").mkdir()
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf"{name}: matrices in .* need {module}: pip install {module}"):
        oc.sparse.from_anndata(tmp_path / name)


@pytest.mark.parametrize("suffix", ["zarr", "nc"])
def test_missing_times_of_xarrays_are_not_a_time(tmp_path: Path, suffix: str) -> None:
    """xarray writes NaT as the least integer, with no word on that; and durations of classic files have 32 bits."""
    xarray = pytest.importorskip("xarray")
    times = np.array(["2001-01-01", "NaT", "1969-01-02"], "M8[ns]")
    data = xarray.Dataset({"t": ("y", times), "span": ("y", np.array([1, 3, 5], "m8[s]"))})
    if suffix == "zarr":
        data.to_zarr(tmp_path / "x.zarr")
    else:
        data.to_netcdf(tmp_path / "x.nc")
    data[["span"]].to_netcdf(tmp_path / "old.nc", format="NETCDF3_64BIT", engine="scipy")
    with session():
        found = oc.open(tmp_path / f"x.{suffix}")["t"].compute()
        np.testing.assert_array_equal(found.astype("M8[ns]"), times)
        assert oc.open(tmp_path / "old.nc")["span"].compute().tolist() == data["span"].values.astype("m8[s]").tolist()
