"""The commands `info` and `convert`: groups, arrays and tables, refusals before work starts, forecasts held."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import outcore as oc
from outcore._command.cli import main
from outcore._command.described import FILTERS

h5py = pytest.importorskip("h5py")
ROOT = Path(__file__).parent.parent
DATES = np.asarray(["2024-02-28", "2024-03-01"], "datetime64[s]")


@pytest.fixture(autouse=True)
def _inside(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def weather():
    """A file as NetCDF-4 has it: packed numbers with names of axes, times, a group, and members that are not read."""
    with h5py.File("weather.nc", "w") as file:
        file.attrs["title"] = "two days"
        time = file.create_dataset("time", data=np.asarray([58, 60], "i4"))
        time.attrs["units"] = "days since 2024-01-01"
        time.make_scale("time")
        packed = np.arange(2 * 30 * 40, dtype="i2").reshape(2, 30, 40)
        t2m = file.create_dataset("t2m", data=packed, chunks=(1, 30, 20), compression="gzip", shuffle=True)
        t2m.attrs.update({"scale_factor": 0.5, "_FillValue": np.int16(7), "units": "K"})
        t2m.dims[0].attach_scale(time)
        file.create_dataset("deep/er/levels", data=np.arange(3.0))
    return packed


@pytest.fixture
def mixed(weather):
    with h5py.File("weather.nc", "a") as file:
        file["station"] = ["oslo", "rome"]
        file.create_dataset("deep/record", data=np.zeros(2, [("a", "i4"), ("b", "f8")]))
    return weather


def invoke(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def content_of(*arguments):
    result = invoke(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_info_of_hdf5_lists_groups_axes_attributes_filters_and_refusals(mixed):
    content = content_of("info", "weather.nc")
    assert (content["kind"], content["format"], content["attrs"]) == ("group", "hdf5", {"title": "two days"})
    t2m = content["members"]["t2m"]
    assert (t2m["dtype"], t2m["shape"], t2m["chunks"]) == ("int16", [2, 30, 40], [1, 30, 20])
    assert t2m["dims"][0] == "time"
    assert t2m["attrs"]["scale_factor"] == 0.5
    assert [codec["name"] for codec in t2m["codecs"]] == ["shuffle", "deflate"]
    with h5py.File("weather.nc") as file:
        assert t2m["stored_bytes"] == file["t2m"].id.get_storage_size() < t2m["nbytes"] == 4800
    assert content["members"]["deep"]["members"]["er"]["members"]["levels"]["shape"] == [3]
    assert "text" in content["members"]["station"]["reason"]
    text = invoke("info", "weather.nc").output
    assert "t2m (time: 2, 30, 40) int16, 4.69 KiB, chunks 1 × 30 × 20, shuffle, deflate, stored" in text
    assert "@units: days since 2024-01-01" in text
    assert re.search(r"record: not read: elements are records", text)


def test_info_says_how_much_it_leaves_out(weather):
    content = content_of("info", "weather.nc", "--members", 1, "--depth", 1)
    assert (list(content["members"]), content["members_omitted"]) == (["deep"], 2)
    assert content["members"]["deep"]["members_omitted"] == 1
    text = invoke("info", "weather.nc", "--members", 1, "--depth", 1).output
    assert "… left out: 1 of 1 members; --depth" in text
    assert "… left out: 2 of 3 members; --depth" in text


@pytest.mark.parametrize("version", [2, 3])
def test_info_of_zarr_has_its_codecs_and_the_bytes_of_its_chunks(version):
    zarr = pytest.importorskip("zarr")
    values = np.tile(np.arange(10, dtype="i4"), (20, 1))
    group = zarr.create_group("a.zarr", zarr_format=version, attributes={"x": 1})
    group.create_array("plain", data=values, chunks=(7, 10))
    content = content_of("info", "a.zarr")
    plain = content["members"]["plain"]
    chunks = [path for path in Path("a.zarr/plain").rglob("*") if path.is_file() and path.name[0] not in ".z"]
    assert (content["format"], content["attrs"], plain["chunk_files"]) == ("zarr", {"x": 1}, len(chunks))
    assert plain["stored_bytes"] == sum(path.stat().st_size for path in chunks)
    assert [codec["name"] for codec in plain["codecs"]] == (["blosc"] if version == 2 else ["bytes", "zstd"])
    if version == 3:
        group.create_array("sharded", data=values, chunks=(5, 5), shards=(10, 10))
        text = invoke("info", "a.zarr/sharded").output
        assert re.search(r"codecs +shards of chunks with bytes, zstd\n", text)
        assert re.search(r"chunks +5 × 5\n", text)
        assert re.search(r"shards +10 × 10\n", text)


def test_info_of_parquet_has_row_groups_columns_and_codecs():
    pytest.importorskip("pyarrow")
    oc.to_parquet({"x": np.arange(10), "y": np.ones(10)}, "t.parquet", row_group_rows=4)
    content = content_of("info", "t.parquet")
    assert (content["rows"], content["row_groups"], content["row_group_rows"]) == (10, 3, [2, 4])
    assert content["stored_bytes"] == os.path.getsize("t.parquet")
    assert content["columns"]["y"]["dtype"] == "double"
    assert content["columns"]["x"]["codecs"] == ["ZSTD"]
    assert "… left out: 1 of 2 columns" in invoke("info", "t.parquet", "--members", 1).output


def test_info_of_sparse_matrices_and_dates():
    oc.sparse.from_coo([0, 2], [1, 1], [1.0, 2.0], (3, 2), "m.ocs")
    content = content_of("info", "m.ocs")
    assert (content["kind"], content["shape"], content["entries"]) == ("sparse matrix", [3, 2], 2)
    np.save("d.npy", DATES)
    assert content_of("info", "d.npy")["dtype"] == "datetime64[s]"


def test_groups_go_to_zarr_with_names_attributes_and_dates(weather):
    content = content_of("convert", "weather.nc", "w.zarr")
    assert content["arrays"] == 3
    forecast = content["forecast"]
    assert forecast["exact"]
    for key in ("bytes_read", "peak_bytes"):
        assert content[key] == forecast[key]
    group = oc.open("w.zarr")
    assert group.attrs == {"title": "two days"}
    assert group["t2m"].dims[0] == "time"
    assert group["t2m"].attrs == {"units": "K"}
    expected = np.where(weather == 7, np.nan, weather * 0.5)
    np.testing.assert_array_equal(group["t2m"].compute(), expected)
    np.testing.assert_array_equal(group["time"].compute(), DATES)
    np.testing.assert_array_equal(group["deep/er/levels"].compute(), np.arange(3.0))


def test_without_decoding_numbers_stay_as_stored(weather):
    assert invoke("convert", "weather.nc", "w.zarr", "--no-decode", "--chunks", "t2m=2,10,40").exit_code == 0
    stored = oc.open("w.zarr", decode=False)["t2m"]
    assert stored.dtype == np.int16
    assert content_of("info", "w.zarr/t2m")["chunks"] == [2, 10, 40]
    assert stored.attrs["scale_factor"] == 0.5
    np.testing.assert_array_equal(stored.compute(), weather)
    assert oc.open("w.zarr")["t2m"].dtype.kind == "f"


def test_members_that_are_not_read_are_all_named_before_work_starts(mixed):
    result = invoke("convert", "weather.nc", "w.zarr")
    assert result.exit_code == 1
    assert "members that are not read" in result.output
    assert "station" in result.output
    assert "deep/record" in result.output
    assert os.listdir() == ["weather.nc"]
    result = invoke("convert", "weather.nc", "w.zarr", "--skip")
    assert result.exit_code == 0
    assert re.search(r"station is left out: .*text", result.stderr)
    assert "deep/record is left out" in result.stderr
    assert "left out" not in result.stdout
    assert list(oc.open("w.zarr")) == ["deep", "t2m", "time"]
    assert list(oc.open("w.zarr/deep")) == ["er"]


def test_a_dataset_goes_to_npy_and_forecast_is_outcome(weather):
    content = content_of("convert", "weather.nc/deep/er/levels", "x.npy")
    assert content["forecast"]["exact"]
    assert content["bytes_read"] == content["forecast"]["bytes_read"]
    assert content["bytes_written"] == content["forecast"]["bytes_written"]
    np.testing.assert_array_equal(np.load("x.npy"), np.arange(3.0))
    text = invoke("convert", "weather.nc/t2m", "y.npy").output.splitlines()
    assert text[0].startswith("forecast: ")
    assert text[1].startswith("y.npy: 2 × 30 × 40 float")
    assert invoke("convert", "weather.nc/deep/er/levels", "z.npy", "--resume").exit_code == 0
    assert invoke("convert", "weather.nc/deep/er/levels", "z.npy", "--resume").exit_code == 0
    assert invoke("convert", "weather.nc/time", "t.npy").exit_code == 0
    np.testing.assert_array_equal(np.load("t.npy"), DATES)


def test_tables_go_to_folders_and_parquet_and_back():
    pytest.importorskip("pyarrow")
    Path("t.csv").write_text("day,price,city\n2024-02-28,1.5,oslo\n2024-03-01,,rome\n")
    assert "forecast: 52 B of text" in invoke("convert", "t.csv", "t.parquet").output
    assert content_of("convert", "t.parquet", "columns")["rows"] == 2
    assert content_of("info", "columns")["columns"]["day"]["dtype"] == "datetime64[D]"
    assert content_of("convert", "t.csv", "direct")["columns"] == ["day", "price", "city"]
    assert invoke("convert", "columns", "again.parquet").exit_code == 0
    for table in (oc.open_table("columns"), oc.open_table("direct"), oc.read_parquet("again.parquet")):
        np.testing.assert_array_equal(table["price"].compute(), [1.5, np.nan])
        np.testing.assert_array_equal(table["day"].compute(), DATES.astype("datetime64[D]"))


def test_columns_that_are_not_read_are_named_or_skipped():
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table({"x": [1, 2], "lists": [[1], [2, 3]]}), "t.parquet")
    result = invoke("convert", "t.parquet", "columns")
    assert result.exit_code == 1
    assert "columns that are not read" in result.output
    assert "lists" in result.output
    assert not Path("columns").exists()
    result = invoke("convert", "t.parquet", "columns", "--skip")
    assert result.exit_code == 0
    assert "lists is left out" in result.stderr
    assert oc.open_table("columns").columns == ["x"]


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (("weather.nc", "w.zarr", "--resume"), 1, "--resume is not supported for groups"),
        (("weather.nc", "w.zarr", "--dtype", "float32"), 1, "--dtype is not supported for groups"),
        (("weather.nc", "w.npy"), 1, "its name ends in .zarr"),
        (("weather.nc", "w.zarr", "--chunks", "none=1"), 2, "arrays are"),
        (("weather.nc/t2m", "w.zarr", "--chunks", "t2m=1,1,1"), 2, "without a name"),
        (("weather.nc", "there.zarr"), 1, "pass --overwrite"),
        (("t.csv", "t.npy"), 1, "to a folder of columns"),
        (("t.csv", "t.parquet", "--resume", "--no-decode"), 1, "--no-decode, --resume is not supported for tables"),
        (("t.csv", "there.zarr/"), 1, "to a folder of columns"),
        (("t.csv", "there", "--overwrite"), 1, "not replaced"),
        (("t.csv", "there"), 1, "pass --overwrite"),
    ],
)
def test_refusals_leave_everything_as_it_was(weather, arguments, status, said):
    for folder in ("there", "there.zarr"):
        Path(folder).mkdir()
    Path("t.csv").write_text("a\n1\n")
    before = sorted(os.listdir())
    result = invoke("convert", *arguments)
    assert result.exit_code == status
    assert said in result.output
    assert sorted(os.listdir()) == before


def page():
    return (ROOT / "docs/formats.md").read_text()


def test_the_page_on_formats_names_the_filters_of_hdf5_that_are_read():
    rows = re.findall(r"^\| (\w+) \| (\d+) \| (read|refused)", page(), re.MULTILINE)
    assert {int(number): name for name, number, _ in rows} == FILTERS
    source = (ROOT / "crates/store/src/formats/hdf5/types.rs").read_text()
    stages = {int(number) for number in re.findall(r"^ +(\d+) => CodecStage::", source, re.MULTILINE)}
    assert {int(number) for _, number, how in rows if how == "read"} == stages


def codecs_of_the_page():
    table = page().partition("Codecs of Zarr that are read")[2].partition("## Tables")[0]
    cells = re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
    return [name for cell in cells for name in re.findall(r"`([\w.]+)`", cell)]


def test_the_page_on_formats_names_the_codecs_of_zarr_that_are_read():
    source = (ROOT / "crates/store/src/formats/zarr/codec.rs").read_text()
    arms = source.partition("match codec.name.as_str()")[2].partition("other => return")[0]
    names = set(re.findall(r'^ +((?:"[\w.]+"(?: \| )?)+).*=>', arms, re.MULTILINE))
    read = {name for part in names for name in re.findall(r'"([\w.]+)"', part)}
    assert read - {"outcore.parquet"} == set(codecs_of_the_page())  # which columns of Parquet are listed with


@pytest.mark.parametrize("name", [*codecs_of_the_page(), "bz2", "optional"])
def test_arrays_with_codecs_of_the_page_are_opened_and_others_refused(name):
    plain = {"name": "bytes", "configuration": {"endian": "little"}}
    settings = {
        "transpose": {"order": [1, 0]},
        "sharding_indexed": {"chunk_shape": [2, 2], "codecs": [plain], "index_codecs": [plain]},
        "numcodecs.fixedscaleoffset": {"scale": 10, "offset": 0, "dtype": "<f8", "astype": "<i4"},
        "cast_value": {"data_type": "int8"},
    }
    codec = {"name": name, "configuration": settings.get(name, {})}
    filters = ("numcodecs.packbits", "numcodecs.fixedscaleoffset", "scale_offset", "cast_value")
    before = name in ("transpose", *filters)
    alone = name in ("bytes", "sharding_indexed")
    is_truth = name == "numcodecs.packbits"
    is_integer = name in ("numcodecs.delta", "outcore.differences")
    document = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [4, 4],
        "data_type": "bool" if is_truth else "int64" if is_integer else "float64",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4, 4]}},
        "chunk_key_encoding": {"name": "default"},
        "fill_value": is_truth or (2 if is_integer else 2.0),
        "codecs": [codec] if alone else [codec, plain] if before else [plain, codec],
    }
    Path("x.zarr").mkdir()
    Path("x.zarr/zarr.json").write_text(json.dumps(document))
    if name in codecs_of_the_page():
        assert oc.open("x.zarr").compute().sum() == (16 if is_truth else 32)
        assert [codec["name"] for codec in content_of("info", "x.zarr")["codecs"]][0 if before or alone else 1] == name
    else:
        with pytest.raises(oc.errors.FormatError, match=f'codec "{name}" is not supported'):
            oc.open("x.zarr")


def test_the_page_on_formats_names_options_that_commands_have():
    for name in ("info", "convert"):
        options = {option for parameter in main.commands[name].params for option in parameter.opts}
        lines = re.findall(rf"(?:\$ |`)outcore {name} ([^`\n]*)", page())
        assert set(re.findall(r"--[a-z-]+", " ".join(lines))) <= options
        assert lines


def test_targets_are_compressed(weather):
    assert invoke("convert", "weather.nc", "w.zarr", "--compression", "zstd:9").exit_code == 0
    codecs = json.loads(Path("w.zarr/t2m/zarr.json").read_text())["codecs"]
    assert codecs[1] == {"name": "zstd", "configuration": {"level": 9, "checksum": False}}
    result = content_of("convert", "w.zarr", "again.nc", "--compression", "shuffle,gzip:4")
    assert not result["forecast"]["exact"]
    with h5py.File("again.nc") as file:
        assert file["t2m"].shuffle
        assert (file["t2m"].compression, file["t2m"].compression_opts) == ("gzip", 4)
    expected = np.where(weather == 7, np.nan, weather * 0.5)
    np.testing.assert_array_equal(oc.open("again.nc/t2m").compute(), expected)
    np.testing.assert_array_equal(oc.open("again.nc/time").compute(), DATES)
    for wrong in ("zip", "zstd:fast"):
        assert invoke("convert", "weather.nc", "x.zarr", "--compression", wrong).exit_code in (1, 2)
    assert not Path("x.zarr").exists()
