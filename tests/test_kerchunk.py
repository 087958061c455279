"""References of kerchunk, JSON and Parquet: as the files themselves are read, and refusals by name."""

from __future__ import annotations

import base64
import json
import pickle
import tempfile
import zlib
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import xarray as xr
from fsspec.implementations.reference import LazyReferenceMapper
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kerchunk.combine import MultiZarrToZarr
from kerchunk.hdf import SingleHdf5ToZarr
from support.running import forecast, run, session
from support.web import serving

import outcore as oc
from outcore.errors import (
    ArgumentError,
    DTypeError,
    FormatError,
    MissingFileError,
    OutcoreError,
    SourceChangedError,
    StorageError,
    UnsupportedFormatError,
)

RNG = np.random.default_rng(6)
QUIET = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck), database=None)


def write_days(folder: Path, count: int) -> list[dict[str, Any]]:
    """NetCDF-4 files of a few days each, and references to each."""
    references = []
    for at in range(count):
        path = folder / f"{at}.nc"
        values = {
            "t2m": (("time", "y", "x"), RNG.random((4, 30, 40)).astype("f4"), {"units": "K"}),
            "height": (("y", "x"), np.arange(1200, dtype="i2").reshape(30, 40), {"scale_factor": 0.5}),
        }
        days = xr.Dataset(values, {"time": np.arange(4 * at, 4 * at + 4), "x": np.arange(40.0)}, {"title": "days"})
        encoding = {
            "t2m": {"zlib": True, "shuffle": True, "chunksizes": (2, 16, 16)},
            "height": {"chunksizes": (9, 40)},
        }
        days.to_netcdf(path, engine="h5netcdf", encoding=encoding)
        references.append(SingleHdf5ToZarr(str(path), inline_threshold=0).translate())
    return references


def document(values: np.ndarray, chunks: tuple[int, ...], **more: Any) -> dict[str, Any]:
    """`.zarray` of an array."""
    plain = {"zarr_format": 2, "order": "C", "fill_value": None, "filters": None, "compressor": None}
    return {"shape": values.shape, "chunks": chunks, "dtype": values.dtype.str, **plain, **more}


def write(path: Path, references: dict[str, Any]) -> Path:
    texts = {key: json.dumps(entry) if isinstance(entry, dict) else entry for key, entry in references.items()}
    path.write_text(json.dumps(texts))
    return path


def test_references_to_one_file_are_that_file(tmp_path: Path) -> None:
    [references] = write_days(tmp_path, 1)
    (tmp_path / "refs.json").write_text(json.dumps(references))
    group, stored = oc.open(tmp_path / "refs.json"), oc.open(tmp_path / "0.nc")
    assert list(group) == list(stored)
    assert group.attrs["title"] == "days"
    for name in stored:
        array = group[name]
        assert (array.dims, array.attrs) == (stored[name].dims, stored[name].attrs)
        np.testing.assert_array_equal(array.compute(), stored[name].compute())
    assert oc.open(tmp_path / "refs.json/height", decode=False).dtype == np.int16


def test_references_to_several_files_are_joined(tmp_path: Path) -> None:
    joined = MultiZarrToZarr(
        write_days(tmp_path, 3), concat_dims=["time"], identical_dims=["x", "height"], inline_threshold=0
    ).translate()
    (tmp_path / "refs.json").write_text(json.dumps(joined))
    expected = np.concatenate([oc.open(tmp_path / f"{at}.nc/t2m").compute() for at in range(3)])
    with session():
        t2m = oc.open(tmp_path / "refs.json/t2m")
        np.testing.assert_array_equal(t2m.compute(), expected)
        targets = {tmp_path / "part.npy": t2m[3:9, 10:] * 2, tmp_path / "mean.npy": t2m.mean(axis="time")}
        assert forecast(targets) == run(targets)
    np.testing.assert_array_equal(np.load(tmp_path / "part.npy"), expected[3:9, 10:] * 2)
    np.testing.assert_array_equal(oc.open(tmp_path / "refs.json/time").compute(), np.arange(12))


def test_references_in_parquet_are_read(tmp_path: Path) -> None:
    [references] = write_days(tmp_path, 1)
    mapper = LazyReferenceMapper.create(str(tmp_path / "refs.parq"), record_size=7, engine="pyarrow")
    for key, entry in sorted(references["refs"].items(), key=lambda of: "/.z" not in of[0]):
        mapper[key] = entry.encode() if isinstance(entry, str) else entry
    mapper.flush()
    group, stored = oc.open(tmp_path / "refs.parq"), oc.open(tmp_path / "0.nc")
    assert set(group) == set(stored)
    for name in stored:
        np.testing.assert_array_equal(group[name].compute(), stored[name].compute())
    assert oc.open(tmp_path / "refs.parq/t2m").dims == ("time", "y", "x")
    with pytest.raises(FormatError, match="no array 'none'"):
        oc.open(tmp_path / "refs.parq/none")


@st.composite
def grids(draw: Any) -> tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]:
    shape = tuple(draw(st.lists(st.integers(1, 9), max_size=3)))
    chunks = tuple(draw(st.integers(1, length)) for length in shape)
    return (
        shape,
        chunks,
        {
            "compressor": draw(st.sampled_from((None, {"id": "zlib", "level": 1}))),
            "filters": draw(st.sampled_from((None, [{"id": "delta", "dtype": "<i4"}]))),
            "dimension_separator": draw(st.sampled_from("./")),
            "fill_value": 7,
        },
    )


@given(grids(), st.integers(1, 3), st.sampled_from(("files", "inline")), st.randoms(use_true_random=False))
@QUIET
def test_chunks_anywhere_in_any_order_are_one_array(
    grid: tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]], count: int, where: str, random: Any
) -> None:
    shape, chunks, settings = grid
    values = RNG.integers(-99, 99, shape).astype("<i4")
    expected = values.copy()
    references: dict[str, Any] = {"x/.zarray": document(values, chunks, **settings)}
    counts = [-(-length // chunk) for length, chunk in zip(shape, chunks, strict=True)]
    with tempfile.TemporaryDirectory() as name:
        folder, contents = Path(name), [bytearray(b"head") for _ in range(count)]
        places = list(np.ndindex(*counts))
        random.shuffle(places)
        for place in places:
            at = tuple(slice(one * by, (one + 1) * by) for one, by in zip(place, chunks, strict=True))
            if random.random() < 0.2:
                expected[at] = 7
                continue
            whole = np.full(chunks, 3, "<i4")
            part = values[at]
            whole[tuple(slice(length) for length in part.shape)] = part
            if settings["filters"]:
                whole = np.diff(whole.ravel(), prepend=np.int32(0))
            encoded = whole.tobytes()
            encoded = zlib.compress(encoded) if settings["compressor"] else encoded
            key = "x/" + (settings["dimension_separator"].join(map(str, place)) or "0")
            if where == "inline":
                references[key] = "base64:" + base64.b64encode(encoded).decode()
                continue
            file = random.randrange(count)
            references[key] = [f"{file}.bin", len(contents[file]), len(encoded)]
            contents[file] += encoded
        for file, content in enumerate(contents):
            (folder / f"{file}.bin").write_bytes(content)
        x = oc.open(write(folder / "refs.json", references) / "x")
        np.testing.assert_array_equal(x.compute(), expected)


def test_an_array_eight_times_the_pool_is_read_within_it(tmp_path: Path) -> None:
    plane = np.arange(1 << 18, dtype="u2").reshape(512, 512)
    encoded = zlib.compress(plane.tobytes(), 1)
    (tmp_path / "a.bin").write_bytes(encoded)
    (tmp_path / "b.bin").write_bytes(b"x" + encoded)
    values = np.broadcast_to(plane, (384, 512, 512))
    references = {f"x/{at}.0.0": [["a.bin"], ["b.bin", 1, len(encoded)]][at % 2] for at in range(384)}
    references["x/.zarray"] = document(values, (1, 512, 512), compressor={"id": "zlib"})
    with session(pool_limit=24 << 20):
        x = oc.open(write(tmp_path / "refs.json", references) / "x")
        assert x.nbytes == 8 * (24 << 20)
        targets = {tmp_path / "most.npy": x.max(axis=2)}
        assert forecast(targets) == run(targets)
    assert (np.load(tmp_path / "most.npy") == plane.max(axis=1)).all()


def test_templates_and_versions_of_zarr_are_read(tmp_path: Path) -> None:
    values = np.arange(6.0).reshape(2, 3)
    values.tofile(tmp_path / "x.bin")
    metadata = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [2, 3],
        "data_type": "float64",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1, 3]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 0,
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        "dimension_names": ["y", "x"],
        "attributes": {"units": "m"},
    }
    path = tmp_path / "refs.json"
    references = {
        "g/x/zarr.json": metadata,
        "g/x/c/0/0": ["{{u}}/x.bin", 0, 24],
        "g/x/c/1/0": ["{{ u }}/x.bin", 24, 24],
    }
    path.write_text(json.dumps({"version": 1, "templates": {"u": f"file://{tmp_path}"}, "refs": references}))
    x = oc.open(path)["g/x"]
    assert (x.dims, x.attrs) == (("y", "x"), {"units": "m"})
    np.testing.assert_array_equal(x.compute(), values)


def test_what_is_not_read_is_refused_by_name(tmp_path: Path) -> None:
    values, path = np.arange(8, dtype="<i4"), tmp_path / "refs.json"
    values.tofile(tmp_path / "x.bin")
    metadata = document(values, (4,))
    cases: list[tuple[type[OutcoreError], str, dict[str, Any]]] = [
        (UnsupportedFormatError, "refers to ftp://host/x.bin", {"x/0": ["ftp://host/x.bin", 0, 16]}),
        (MissingFileError, r"none\.bin", {"x/0": ["none.bin", 0, 16]}),
        (
            FormatError,
            r"x\.bin: byte 20: chunk 1 of .*x has 16 bytes there, the file has 32",
            {"x/1": ["x.bin", 20, 16]},
        ),
        (FormatError, "x/2 is no chunk of a grid", {"x/2": ["x.bin", 0, 16]}),
        (FormatError, "no file, first byte and length", {"x/0": ["x.bin", -1, 16]}),
        (FormatError, "no file, first byte and length", {"x/0": 5}),
        (FormatError, "no file, first byte and length", {"x/0": ["x.bin", True, 16]}),
        (FormatError, "no path of a file", {"x/0": ["x\0.bin"]}),
        (FormatError, "9 is no chunk of a grid", {f"x/{'9' * 5000}": ["x.bin", 0, 16]}),
        (FormatError, "separated by ''", {"x/.zarray": metadata | {"dimension_separator": ""}}),
        (FormatError, "x/.zattrs is no object", {"x/.zattrs": [1]}),
        (FormatError, "chunk 0 of 'x': .*12 bytes, not 16", {"x/0": "base64:AAAAAAAAAAAAAAAA"}),
        (FormatError, "chunk 0 of 'x': not valid base64", {"x/0": "base64:***"}),
        (FormatError, "does not describe an array", {"x/.zarray": {"zarr_format": 2}}),
        (FormatError, "not valid JSON", {"x/.zarray": "{"}),
        (
            FormatError,
            'imagecodecs_jpeg" is not',
            {"x/.zarray": {**metadata, "compressor": {"id": "imagecodecs_jpeg"}}},
        ),
    ]
    for kind, match, more in cases:
        write(path, {"x/.zarray": metadata, **more})
        with pytest.raises(kind, match=match):
            oc.open(path / "x").compute()
    path.write_text(json.dumps({"version": 1, "gen": [{"key": "x"}], "refs": {".zgroup": "{}"}}))
    with pytest.raises(UnsupportedFormatError, match="generated"):
        oc.open(path)
    path.write_text('{"a": 1}')
    with pytest.raises(FormatError, match=r"JSON, which outcore\.open does not read"):
        oc.open(path)


def test_chunks_may_be_in_files_and_in_the_document(tmp_path: Path) -> None:
    values = np.arange(10, dtype="<i4")
    values.tofile(tmp_path / "x.bin")
    values[4:8].tofile(tmp_path / "whole.bin")
    inline = "base64:" + base64.b64encode(np.array([8, 9, 0, 0], "<i4").tobytes()).decode()
    references = {"x/.zarray": document(values, (4,)), "x/0": ["x.bin", 0, 16], "x/1": ["whole.bin"], "x/2": inline}
    write(tmp_path / "refs.json", references)
    with session():
        x = oc.open(tmp_path / "refs.json/x")
        assert forecast({tmp_path / "x.npy": x}) == run({tmp_path / "x.npy": x})
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), values)
    with pytest.raises(DTypeError, match="known to this process only, and cannot be pickled"):
        pickle.dumps(x)
    write(tmp_path / "refs.json", references | {"x/2": "base64:AAAAAAAAAAAAAAAA"})
    with pytest.raises(FormatError, match=r"refs\.json: a chunk of 12 bytes where 16 are expected"):
        oc.open(tmp_path / "refs.json/x").compute()


def test_references_and_their_files_may_be_at_urls(tmp_path: Path) -> None:
    [references] = write_days(tmp_path, 1)

    def referring(name: str) -> dict[str, Any]:
        """The references, their file by another name."""
        entries = references["refs"].items()
        return {key: [name, *entry[1:]] if isinstance(entry, list) else entry for key, entry in entries}

    mapper = LazyReferenceMapper.create(str(tmp_path / "refs.parq"), record_size=7, engine="pyarrow")
    for key, entry in sorted(referring("0.nc").items(), key=lambda of: "/.z" not in of[0]):
        mapper[key] = entry.encode() if isinstance(entry, str) else entry
    mapper.flush()
    stored = oc.open(tmp_path / "0.nc")
    with serving(tmp_path) as web:
        for name, file in {"url": f"{web.url}/0.nc", "beside": "0.nc", "local": f"file://{tmp_path}/0.nc"}.items():
            (tmp_path / f"{name}.json").write_text(json.dumps({"version": 1, "refs": referring(file)}))
        for place in (tmp_path / "url.json", f"{web.url}/url.json", f"{web.url}/beside.json", f"{web.url}/refs.parq"):
            with session():
                group = oc.open(place)
                assert set(group) == set(stored)
                t2m = oc.open(f"{place}/t2m")
                assert t2m.dims == stored["t2m"].dims
                targets = {tmp_path / "t2m.npy": t2m}
                assert forecast(targets) == run(targets)
            np.testing.assert_array_equal(np.load(tmp_path / "t2m.npy"), stored["t2m"].compute())
        opened = oc.open(tmp_path / "url.json/t2m", storage_options={"retry_config": {"max_retries": 0}})
        web.failures += ["503"] * 9
        with pytest.raises(StorageError, match=r"0\.nc: cannot read"):
            opened.compute()
        web.failures.clear()
        with pytest.raises(UnsupportedFormatError, match="references at a URL lead to no files of this machine"):
            oc.open(f"{web.url}/local.json/t2m")
        with pytest.raises(MissingFileError):
            oc.open(f"{web.url}/none.json")
    with pytest.raises(ArgumentError, match="storage_options are for URLs, and for references"):
        oc.open(tmp_path / "0.nc", storage_options={})


def test_replaced_files_are_refused(tmp_path: Path) -> None:
    values = np.arange(8, dtype="<i4")
    values.tofile(tmp_path / "x.bin")
    values.tofile(tmp_path / "y.bin")
    references = {"x/.zarray": document(values, (4,)), "x/0": ["x.bin", 0, 16], "x/1": ["y.bin", 16, 16]}
    x = oc.open(write(tmp_path / "refs.json", references) / "x")
    (values + 1).tofile(tmp_path / "y.bin")
    with pytest.raises(SourceChangedError, match=r"y\.bin"):
        x.compute()


def test_damaged_documents_are_read_or_refused(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x", data=np.arange(64).reshape(8, 8), chunks=(3, 4), compression="gzip")
    text = json.dumps(SingleHdf5ToZarr(str(tmp_path / "x.h5"), inline_threshold=0).translate()).encode()
    path = tmp_path / "refs.json"
    for at in range(0, len(text), 11):
        path.write_bytes(text[:at] + b"7" + text[at + 1 :])
        try:
            array = oc.open(path)["x"]
            if array.nbytes < 1 << 20:
                array.compute()
        except (OutcoreError, KeyError):
            pass
