"""NetCDF-3, raw binary and `.npz`: as their libraries read them, with exact forecasts, and refusals by name."""

from __future__ import annotations

import pickle
import struct
import tempfile
import warnings
import zipfile
from pathlib import Path
from typing import Any

import netCDF4
import numpy as np
import pytest
import scipy.io
import xarray
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.running import forecast, run, session

import outcore as oc
from outcore.errors import (
    ArgumentError,
    DTypeError,
    FormatError,
    MissingFileError,
    ShapeError,
    SourceChangedError,
    UnsupportedFormatError,
)

RNG = np.random.default_rng(1)
KINDS = {
    "NETCDF3_CLASSIC": ("i1", "i2", "i4", "f4", "f8"),
    "NETCDF3_64BIT_OFFSET": ("i1", "i2", "i4", "f4", "f8"),
    "NETCDF3_64BIT_DATA": ("i1", "i2", "i4", "f4", "f8", "u1", "u2", "u4", "i8", "u8"),
}
QUIET = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck), database=None)
PLAIN = {"w": 3, "x": 5, "y": 1}


def numbers(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    return (RNG.random(shape) * 100).astype(dtype)


def same(values: Any, expected: Any) -> None:
    expected = np.asarray(expected)
    assert values.dtype == expected.dtype.newbyteorder("=")
    np.testing.assert_array_equal(values, expected)


@st.composite
def netcdfs(draw: Any) -> tuple[str, int, dict[str, tuple[str, tuple[str, ...]]]]:
    """The kind of a file, its records, and of each variable the type and dimensions."""
    kind = draw(st.sampled_from(sorted(KINDS)))
    inner = st.lists(st.sampled_from(sorted(PLAIN)), max_size=3, unique=True).map(tuple)
    dims = st.tuples(st.booleans(), inner).map(lambda of: (("time",) if of[0] else ()) + of[1])
    variables = draw(st.lists(st.tuples(st.sampled_from(KINDS[kind]), dims), min_size=1, max_size=5))
    return kind, draw(st.integers(0, 6)), {f"v{place}": of for place, of in enumerate(variables)}


def write(path: Path, kind: str, records: int, variables: dict[str, tuple[str, tuple[str, ...]]]) -> None:
    with netCDF4.Dataset(path, "w", format=kind) as file:
        file.title = "a title, é"
        file.createDimension("time", None)
        for name, length in PLAIN.items():
            file.createDimension(name, length)
        for name, (dtype, dims) in variables.items():
            file.createVariable(name, dtype, dims, fill_value=False).setncatts({"of": dtype, "three": [1.5, 2, 3]})
        for name, (dtype, dims) in variables.items():
            shape = tuple(records if dim == "time" else PLAIN[dim] for dim in dims)
            file[name][:] = numbers(shape, dtype)


@QUIET
@given(netcdfs(), st.data())
def test_variables_are_read_as_netcdf_reads_them(drawn: Any, data: Any) -> None:
    kind, records, variables = drawn
    with tempfile.TemporaryDirectory() as folder, session():
        path = Path(folder, "x.nc")
        write(path, kind, records, variables)
        group = oc.open(path, decode=False)
        assert list(group) == list(variables)
        assert group.attrs == {"title": "a title, é"}
        with netCDF4.Dataset(path) as file:
            file.set_auto_mask(False)
            for name, (dtype, dims) in variables.items():
                opened, expected = group[name], np.asarray(file[name][...])
                assert opened.dims == dims
                assert opened.attrs["of"] == dtype
                np.testing.assert_array_equal(opened.attrs["three"], [1.5, 2, 3])
                same(opened.compute(), expected)
                parts = [data.draw(st.slices(length)) for length in expected.shape]
                parts = [slice(part.start, part.stop, abs(part.step or 1)) for part in parts]
                same(oc.open(path / name, decode=False)[tuple(parts)].compute(), expected[tuple(parts)])
        if kind != "NETCDF3_64BIT_DATA":
            with scipy.io.netcdf_file(path, mmap=False) as file:
                for name in variables:
                    # SciPy takes single record variables of odd sizes for padded ones.
                    if len([1 for _, dims in variables.values() if dims[:1] == ("time",)]) != 1:
                        same(group[name].compute(), file.variables[name].data.reshape(group[name].shape))


def climate(path: Path, records: int = 40) -> dict[str, np.ndarray]:
    values = {
        "t2m": numbers((records, 60, 70), "f4"),
        "rain": numbers((records, 3), "i2"),
        "time": np.arange(records, dtype="f8"),
        "height": numbers((60, 70), "f8"),
    }
    dims = {"t2m": ("time", "lat", "lon"), "rain": ("time", "n"), "time": ("time",), "height": ("lat", "lon")}
    with netCDF4.Dataset(path, "w", format="NETCDF3_64BIT_OFFSET") as file:
        for name, length in (("time", None), ("lat", 60), ("lon", 70), ("n", 3)):
            file.createDimension(name, length)
        for name, value in values.items():
            file.createVariable(name, value.dtype, dims[name])[:] = value
        file["time"].units = "days since 2000-01-01"
        file.createDimension("letters", 4)
        file.createVariable("station", "S1", ("letters",))[:] = np.array(list("abcd"), "S1")
    return values


def test_bytes_read_are_those_of_the_forecast(tmp_path: Path) -> None:
    path = tmp_path / "x.nc"
    values = climate(path)
    np.savez(tmp_path / "a.npz", **values)
    values["t2m"].astype(">f8").tofile(tmp_path / "x.bin")
    raw = oc.open(tmp_path / "x.bin", dtype=">f8", shape=(-1, 60, 70))
    cases = [(raw, values["t2m"].astype("f8"))]
    for name, value in values.items():
        cases += [(oc.open(path / name, decode=False), value), (oc.open(tmp_path / f"a.npz/{name}"), value)]
    for opened, value in cases:
        part = tuple(slice(1, length // 2 + 2) for length in value.shape)
        for array, expected in ((opened, value), (opened[part], value[part])):
            with session(pool_limit=24 << 20):
                targets = {str(tmp_path / "o.npy"): array * 2, str(tmp_path / "sum.npy"): array.sum(0)}
                said = forecast(targets)
                assert run(targets) == said
            np.testing.assert_array_equal(np.load(tmp_path / "o.npy"), expected * 2)


def test_groups_have_dates_pickle_and_open_in_xarray(tmp_path: Path) -> None:
    path = tmp_path / "x.nc"
    values = climate(path)
    group = oc.open(path)
    assert group["time"].dtype == np.dtype("M8[us]")
    same(group["t2m"].mean(axis="time").compute(), oc.asarray(values["t2m"]).mean(axis=0).compute())
    same(pickle.loads(pickle.dumps(group["t2m"])).compute(), values["t2m"])
    same(pickle.loads(pickle.dumps(group["height"])).compute(), values["height"])
    with pytest.raises(UnsupportedFormatError, match='"station" has elements that are characters'):
        group["station"]
    with pytest.raises(FormatError, match=r'no variable "none".*t2m, rain, time, height'):
        oc.open(path / "none")
    with pytest.raises(ArgumentError, match="is a group; groups are joined"):
        oc.open([path, path])
    xarray.Dataset({"t": (("time", "x"), np.ones((3, 2)), {"units": "K"})}).to_netcdf(tmp_path / "y.nc", engine="scipy")
    opened = xarray.open_dataset(tmp_path / "y.nc", engine="outcore", chunks={})
    xarray.testing.assert_identical(opened.compute(), xarray.open_dataset(tmp_path / "y.nc", engine="scipy").compute())


def test_streams_have_the_records_that_lie_in_the_file(tmp_path: Path) -> None:
    for fields, count in (({"a": "i2"}, 7), ({"a": "i2", "b": "f8"}, 7), ({"a": "f4", "b": "i1"}, 1)):
        path = tmp_path / f"{'_'.join(fields)}{count}.nc"
        write(path, "NETCDF3_CLASSIC", count, {name: (dtype, ("time", "x")) for name, dtype in fields.items()})
        expected = {name: oc.open(path / name).compute() for name in fields}
        content = bytearray(path.read_bytes())
        assert struct.unpack(">i", content[4:8]) == (count,)
        content[4:8] = b"\xff" * 4
        path.write_bytes(content)
        for name, values in expected.items():
            same(oc.open(path / name).compute(), values)
        path.write_bytes(content[:-8])  # padding, and elements of the last record
        assert {oc.open(path / name).shape[0] for name in fields} == {count - 1}


def test_truncated_and_lying_headers_are_refused_with_both_lengths(tmp_path: Path) -> None:
    path = tmp_path / "x.nc"
    climate(path, 3)
    content = path.read_bytes()
    opened = oc.open(path / "height")
    for cut in (4, 10, 100, 200):
        path.write_bytes(content[:cut])
        with pytest.raises(FormatError, match=r"x\.nc: truncated: the header goes on behind the \d+ bytes"):
            oc.open(path)
    with pytest.raises(SourceChangedError):
        opened.compute()
    path.write_bytes(content[:-200])
    with pytest.raises(FormatError, match=r'truncated: "t2m" of shape \[3, 60, 70\].* needs \d+ bytes, the file has'):
        oc.open(path / "t2m")
    path.write_bytes(content[:4] + struct.pack(">i", 2**31 - 1) + content[8:])
    with pytest.raises(FormatError, match=r'truncated: "rain" of shape \[2147483647, 3\]'):
        oc.open(path / "rain")
    same(oc.open(path / "height").compute(), oc.open(path)["height"].compute())
    for at, word in ((8, 99), (12, 2**31 - 1), (16, 2**31 - 1)):
        path.write_bytes(content[:at] + struct.pack(">i", word) + content[at + 4 :])
        with pytest.raises(FormatError, match=r"x\.nc: (damaged|truncated)"):
            oc.open(path)


@QUIET
@given(
    st.sampled_from((">f4", "<i2", "u1", "<c16", "?", "M8[s]", "S3")),
    st.lists(st.integers(0, 5), max_size=3),
    st.integers(0, 9),
    st.sampled_from(("C", "F")),
)
def test_raw_files_are_read_as_memmap_reads_them(dtype: str, lengths: list[int], offset: int, order: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path, kind = Path(folder, "x.bin"), np.dtype(dtype)
        count = int(np.prod(lengths))
        length = offset + count * kind.itemsize + 3
        content = RNG.integers(0, 2 if kind.kind == "b" else 127, length, np.uint8).tobytes()
        path.write_bytes(content)
        expected = np.ndarray(lengths, kind, content, offset, order=order)
        opened = oc.open(path, dtype=dtype, shape=lengths, offset=offset, order=order)
        np.testing.assert_array_equal(opened.compute(), expected)
        path.write_bytes(content[:-3])
        if count:
            derived = oc.open(path, dtype=dtype, shape=[*lengths[:-1], -1], offset=offset, order=order)
            np.testing.assert_array_equal(derived.compute(), expected if lengths else expected[None])


def test_raw_files_are_refused_with_both_sides(tmp_path: Path) -> None:
    path = tmp_path / "x.bin"
    np.arange(20, dtype=">f4").tofile(path)
    records = np.array([(1, 2.5), (3, 4.5)], [("a", "i2"), ("b", "f8")])
    records.tofile(tmp_path / "records.bin")
    same(oc.open(tmp_path / "records.bin", dtype=records.dtype, field="b").compute(), records["b"])
    joint = oc.open([path, path], dtype=">f4", shape=(-1, 4))
    same(joint.compute(), np.tile(np.arange(20, dtype="f4").reshape(5, 4), (2, 1)))
    cases: tuple[tuple[dict[str, Any], type[Exception], str], ...] = (
        ({"dtype": ">f4", "shape": (5, 5)}, FormatError, r"shape \(5, 5\) of >f4 .* needs 100 bytes, the file has 80"),
        ({"dtype": "f8", "shape": (-1, 3)}, FormatError, "80 bytes .* no whole number of 24 bytes"),
        ({"dtype": "f4", "offset": 100}, FormatError, "80 bytes, none from byte 100"),
        ({"dtype": "f4", "offset": -1}, ArgumentError, "not at -1"),
        ({"dtype": "f4", "order": "Z"}, ArgumentError, "'Z'"),
        ({"shape": 3}, ArgumentError, "need its dtype"),
        ({"dtype": "f4", "shape": (-1, -1)}, ShapeError, r"\(-1, -1\)"),
        ({"dtype": "f4", "shape": 2.5}, ShapeError, "integers"),
        ({"dtype": "f4", "shape": (-1, 0)}, ShapeError, "any length"),
        ({"dtype": "O"}, DTypeError, "object"),
        ({"dtype": records.dtype, "shape": 2}, DTypeError, "one of their fields: a, b"),
    )
    for options, error, match in cases:
        with pytest.raises(error, match=match):
            oc.open(path, **options)
    with pytest.raises(MissingFileError, match=r"none\.bin"):
        oc.open(tmp_path / "none.bin", dtype="f4")
    with pytest.raises(FormatError, match="a folder"):
        oc.open(tmp_path, dtype="f4")


def test_members_of_archives_are_read_where_they_lie(tmp_path: Path) -> None:
    records = np.array([(1, 2.5), (3, 4.5)], [("a", "i2"), ("b", "f8")])
    members = {
        "x": numbers((7, 5), "f8"),
        "turned": np.asfortranarray(numbers((4, 3, 2), ">i4")),
        "days": np.array(["2020-01-01", "NaT"], "M8[D]"),
        "words": np.array(["a", "bcd"]),
        "number": np.float32(2.5),
        "empty": np.zeros((0, 3)),
        "folder/y": numbers((3,), "c16"),
        "folder/inner/z": numbers((3,), "?"),
    }
    path = tmp_path / "a.npz"
    np.savez(path, records=records, **members)
    group = oc.open(path)
    assert (group.arrays, group.groups) == (("records", *list(members)[:6]), ("folder",))
    for name, expected in members.items():
        np.testing.assert_array_equal(group[name].compute(), expected)
        np.testing.assert_array_equal(oc.open(path / name).compute(), expected)
    same(pickle.loads(pickle.dumps(group["x"])).compute(), members["x"])
    same(oc.open(path / "records", field="b").compute(), records["b"])
    with pytest.raises(DTypeError, match="a, b"):
        group["records"]
    with pytest.raises(FormatError, match="no array 'none'; its arrays are records, x"):
        oc.open(path / "none")
    other = path.rename(tmp_path / "by its bytes")
    same(oc.open(other / "x").compute(), members["x"])


def test_archives_that_cannot_be_read_say_why(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez_compressed(path, x=np.arange(99))
    assert list(oc.open(path)) == ["x"]
    with pytest.raises(UnsupportedFormatError, match=r"a\.npz: 'x' is packed.*numpy\.load"):
        oc.open(path)["x"]
    np.savez(path, x=np.arange(99), o=np.array([None]))
    with pytest.raises(UnsupportedFormatError, match=r"a\.npz: 'o' holds Python objects"):
        oc.open(path / "o")
    content = path.read_bytes()
    said = []
    for at in range(5, len(content), 19):  # any byte changed: the same array, another one, or an error with the path
        path.write_bytes(content[:at] + bytes([content[at] ^ 0xFF]) + content[at + 1 :])
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                oc.open(path / "x").compute()
        except (FormatError, DTypeError) as error:
            said.append(str(error))
    assert len(said) > 5
    assert all("a.npz" in reason for reason in said)
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(FormatError, match=r"a\.npz: cannot be read"):
        oc.open(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.npy", content[: len(content) // 4])
    with pytest.raises(FormatError, match=r"a\.npz: x\.npy"):
        oc.open(path / "x")
    content = bytearray(path.read_bytes())
    content[content.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(content)
    with pytest.raises(UnsupportedFormatError, match=r"a\.npz: 'x' is encrypted"):
        oc.open(path / "x")
    with zipfile.ZipFile(tmp_path / "notes.zip", "w") as archive:
        archive.writestr("notes.txt", "no array")
    with pytest.raises(FormatError, match=r"notes\.zip"):
        oc.open(tmp_path / "notes.zip")
