"""Datasets of HDF5 files: as h5py reads them, with exact forecasts, and refusals that say what there is."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.running import forecast, run, session

import outcore as oc
from outcore.errors import (
    DTypeError,
    FormatError,
    MissingFileError,
    SourceChangedError,
    StorageError,
    UnsupportedFormatError,
)

VERSIONS: tuple[Any, ...] = ("earliest", ("earliest", "v108"), ("v110", "v110"), "latest")
DTYPES = ("?", "i1", "u1", "<i2", ">i4", "<i8", ">u8", "<f2", "<f4", ">f8", "<c8", ">c16")
SHAPE = (61, 47)
LAYOUTS: dict[str, dict[str, Any]] = {
    "contiguous": {},
    "chunks": {"chunks": (16, 10)},
    "gzip": {"chunks": (16, 10), "compression": "gzip"},
    "shuffle, gzip": {"chunks": (16, 10), "compression": "gzip", "shuffle": True},
    "shuffle, lzf, fletcher32": {"chunks": (16, 10), "compression": "lzf", "shuffle": True, "fletcher32": True},
    "fletcher32": {"chunks": (16, 10), "fletcher32": True},
    "one chunk": {"chunks": SHAPE, "compression": "gzip"},
    "growing": {"chunks": (16, 10), "maxshape": (None, SHAPE[1]), "compression": "gzip"},
    "growing both ways": {"chunks": (16, 10), "maxshape": (None, None), "shuffle": True},
}


def sample(dtype: str, shape: tuple[int, ...] = SHAPE) -> np.ndarray:
    values = np.random.default_rng(1).random(shape) * 100 - 20
    return values.astype(dtype) if np.dtype(dtype).kind != "u" else (values + 20).astype(dtype)


def same(found: Any, expected: np.ndarray) -> None:
    assert found.dtype == expected.dtype.newbyteorder("=")
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("version", VERSIONS, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_datasets_are_read_as_h5py_reads_them(dtype: str, version: Any, tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    with h5py.File(path, "w", libver=version) as file:
        for name, options in LAYOUTS.items():
            file.create_dataset(f"group/{name}", data=sample(dtype), **options)
        file["scalar"] = sample(dtype)[3, 4]
        file.create_dataset("empty", shape=(0, 5), dtype=dtype, chunks=(1, 5), maxshape=(None, 5))
        holes = {"chunks": (16, 10), "fillvalue": np.ones((), dtype)[()], "compression": "gzip"}
        file.create_dataset("holes", shape=SHAPE, dtype=dtype, **holes)[20:30] = sample(dtype)[20:30]
        file.create_dataset("never written", shape=SHAPE, dtype=dtype, fillvalue=np.ones((), dtype)[()])
    with h5py.File(path) as file, session():
        for name in (*(f"group/{layout}" for layout in LAYOUTS), "scalar", "empty", "holes", "never written"):
            opened, expected = oc.open(path / name), file[name][()]
            same(opened.compute(), np.asarray(expected))
            if name.startswith("group"):
                same(opened[5:50:3, 7:].T.compute(), expected[5:50:3, 7:].T)


def test_bytes_read_are_those_of_the_forecast(tmp_path: Path) -> None:
    path, x = tmp_path / "x.h5", sample("f4", (900, 700))
    with h5py.File(path, "w") as file:
        file.create_dataset("plain", data=x, chunks=(128, 100))
        file.create_dataset("gzip", data=x, chunks=(128, 100), compression="gzip", shuffle=True)
        file.create_dataset("bands", data=x, chunks=(16, 700))
        file.create_dataset("packed bands", data=x, chunks=(16, 700), compression="gzip", shuffle=True)
        file.create_dataset("contiguous", data=x)
    for name in ("plain", "gzip", "bands", "packed bands", "contiguous"):
        with session(pool_limit=24 << 20):
            opened = oc.open(path / name)
            targets = {str(tmp_path / f"{name}.npy"): opened * 2, str(tmp_path / "sum.npy"): opened.sum(0)}
            told = forecast(targets)
            assert run(targets) == told
            np.testing.assert_array_equal(np.load(tmp_path / f"{name}.npy"), x * 2)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_parts_of_drawn_datasets(data: st.DataObject, tmp_path: Path) -> None:
    axes = data.draw(st.integers(1, 4))
    shape = tuple(data.draw(st.lists(st.integers(1, 20), min_size=axes, max_size=axes)))
    chunks = tuple(data.draw(st.integers(1, length)) for length in shape)
    filters = {
        "compression": data.draw(st.sampled_from([None, "gzip", "lzf"])),
        "shuffle": data.draw(st.booleans()),
        "fletcher32": data.draw(st.booleans()),
    }
    x = sample(data.draw(st.sampled_from(DTYPES)), shape)
    path = tmp_path / "drawn.h5"
    with h5py.File(path, "w", libver=data.draw(st.sampled_from(VERSIONS))) as file:
        file.create_dataset("x", data=x, chunks=chunks, **filters)
    part = tuple(slice(data.draw(st.integers(0, length)), data.draw(st.integers(0, length))) for length in shape)
    with session():
        same(oc.open(path / "x")[part].compute(), x[part])


def test_an_array_that_was_never_written_may_be_larger_than_memory(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x", shape=(1 << 20, 1 << 16), dtype="f8", fillvalue=2.0)
    with session(pool_limit=64 << 20):
        x = oc.open(tmp_path / "x.h5" / "x")
        assert x.nbytes == 1 << 39
        assert x[123456:123466, ::1000].sum().compute() == 2 * 10 * 66


def test_a_file_says_what_is_in_it(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file["a/deep/one"], file["two"], file["text"] = np.arange(3), np.arange(4), "text"
        file["soft"] = h5py.SoftLink("/two")
        file["elsewhere"] = h5py.ExternalLink("other.h5", "/x")
        file.create_group("empty")
        file.create_dataset("records", data=np.zeros(3, [("x", "f4"), ("y", "i4")]))
    with session():
        for name in ("a/none", "three"):
            with pytest.raises(FormatError, match=r"datasets .*a/deep/one.*two.*oc\.open\("):
                oc.open(path / name)
        assert list(oc.open(path)) == ["a", "elsewhere", "empty", "records", "soft", "text", "two"]
        assert list(oc.open(path / "a/deep")) == ["one"]
        assert oc.open(path / "soft").compute().tolist() == [0, 1, 2, 3]
        with pytest.raises(FormatError, match="elements are records; name one of their fields: x, y"):
            oc.open(path / "records")
        for name, reason in (("text", "text of any length"), ("elsewhere", "external")):
            with pytest.raises(UnsupportedFormatError, match=reason):
                oc.open(path / name)
        with pytest.raises(MissingFileError):
            oc.open(tmp_path / "none.h5" / "x")
        (tmp_path / "x.npy").write_bytes(b"")
        with pytest.raises(StorageError):
            oc.open(tmp_path / "x.npy" / "x")


RECORD = np.dtype(
    [("price", "<f8"), ("size", ">i4"), ("flag", "?"), ("symbol", "S5"), ("vector", "<f4", (2, 3)), ("z", "<c16")]
)


def records() -> np.ndarray:
    made = np.zeros((60, 50), RECORD)
    for place, name in enumerate(("price", "size", "flag", "z")):
        made[name] = np.random.default_rng(place).integers(0, 100 if name != "flag" else 2, made.shape)
    made["vector"] = np.random.default_rng(9).random((60, 50, 2, 3))
    made["symbol"] = np.char.add("s", (np.arange(3000) % 77).astype(str)).reshape(60, 50)
    return made


def test_fields_of_records_are_read_as_h5py_reads_them(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    chunked: dict[str, Any] = {"chunks": (7, 11), "compression": "gzip", "shuffle": True, "fletcher32": True}
    with h5py.File(path, "w") as file:
        file["plain"] = records()
        file.create_dataset("chunked", data=records(), **chunked)
        file.create_dataset("absent", shape=(60, 50), dtype=RECORD, chunks=(7, 11))
        compact = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        compact.set_layout(h5py.h5d.COMPACT)
        space = h5py.h5s.create_simple((2, 3))
        h5py.h5d.create(file.id, b"compact", h5py.h5t.py_create(RECORD), space, compact).write(
            space, space, records()[:2, :3].copy()
        )
        file["text"] = records()["symbol"]
        file.create_dataset("filled", (3,), RECORD, fillvalue=records()[3, 4])
    with h5py.File(path) as file, session(tmp_path):
        for name in ("plain", "chunked", "absent", "compact"):
            for field in RECORD.names or ():
                opened, expected = oc.open(path / name, field=field), file[name][field]
                if field == "symbol":
                    np.testing.assert_array_equal(opened.compute(), expected)
                    continue
                same(opened.compute(), expected)
                same(opened[1:2, 1:3].compute(), expected[1:2, 1:3])
            same(oc.open(path / name, field="vector")[..., 1, 1:].compute(), file[name]["vector"][..., 1, 1:])
        same(oc.open(path / "plain", field="price", view="i8").compute(), records()["price"].view("i8"))
        np.testing.assert_array_equal(oc.open(path / "text").compute(), records()["symbol"])
        with pytest.raises(DTypeError, match="no field 'cost'; elements have price, size"):
            oc.open(path / "plain", field="cost")
        with pytest.raises(UnsupportedFormatError, match="fill value"):
            oc.open(path / "filled", field="price")


def test_fields_of_records_have_exact_forecasts(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file["plain"] = np.tile(records(), (100, 1))
        file.create_dataset("chunked", data=file["plain"][()], chunks=(100, 20), compression="gzip")
        sizes = {name: file[name].id.get_storage_size() for name in file}
    for name in ("plain", "chunked"):
        with session(tmp_path, pool_limit=14 << 20):
            targets: dict[str, Any] = {f"{tmp_path}/{name}.npy": oc.open(path / name, field="vector").sum(axis=0)}
            told = forecast(targets)
            assert run(targets) == told
            assert told["bytes_read"] <= 1.1 * sizes[name]  # one read
        expected = np.tile(records(), (100, 1))["vector"].sum(axis=0, dtype=np.float64)
        np.testing.assert_allclose(np.load(f"{tmp_path}/{name}.npy"), expected, rtol=1e-5)


def test_names_with_wildcards_and_a_user_block(tmp_path: Path) -> None:
    path = tmp_path / "x.mat"
    with h5py.File(path, "w", userblock_size=512) as file:
        file["what?/[x]*"] = np.arange(5)
    with path.open("r+b") as raw:
        raw.write(b"MATLAB 7.3 MAT-file")
    with session():
        assert oc.open(path / "what?/[x]*").sum().compute() == 10


def test_filters_that_are_not_read_are_named(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        creation.set_chunk((10,))
        creation.set_filter(5, h5py.h5z.FLAG_OPTIONAL, (8,) * 8)
        space = h5py.h5s.create_simple((100,))
        h5py.h5d.create(file.id, b"x", h5py.h5t.NATIVE_INT32, space, creation)
    with session(), pytest.raises(UnsupportedFormatError, match=r"filter 5 \(nbit\)"):
        oc.open(path / "x")


def test_filters_of_plugins_are_read(tmp_path: Path) -> None:
    # As hdf5plugin 7.1.0 wrote them, in chunks of 31 × 11.
    path = Path(__file__).parent.parent / "crates/store/tests/fixtures/plugin_filters.h5"
    expected = np.arange(31 * 23).reshape(31, 23) ** 2 % 1000
    names = ("lz4", "lz4 blocks", "bitshuffle", "bitshuffle lz4", "bitshuffle zstd", "zstd", "blosc")
    with session():
        for name, dtype in ((name, dtype) for name in names for dtype in ("i2", "f8")):
            opened = oc.open(path / f"{name} {dtype}")
            same(opened.compute(), expected.astype(dtype))
            same(opened[3:29, 10:20].compute(), expected.astype(dtype)[3:29, 10:20])


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_numbers_in_few_bits_are_those_of_h5py(data: st.DataObject, tmp_path: Path) -> None:
    dtype = np.dtype(data.draw(st.sampled_from(("i1", "u1", "<i2", ">u2", ">i4", "<u4", "<i8", ">u8", "<f4", ">f8"))))
    shape = tuple(data.draw(st.lists(st.integers(1, 30), min_size=1, max_size=3)))
    chunks = tuple(data.draw(st.integers(1, length)) for length in shape)
    bits = (
        st.integers(0, 5) if dtype.kind == "f" else st.sampled_from((0, 3, 8 * dtype.itemsize - 1, 8 * dtype.itemsize))
    )
    scale = data.draw(st.sampled_from((0.01, 1, 1000)))
    x = (sample("f8", shape) * scale).astype("u8" if dtype.kind == "u" else "f8").astype(dtype)
    options: dict[str, Any] = {"compression": data.draw(st.sampled_from((None, "gzip")))}
    if data.draw(st.booleans()):
        options["fillvalue"] = x.flat[0]
    path = tmp_path / "drawn.h5"
    with h5py.File(path, "w") as file:
        stored = file.create_dataset(
            "x", shape=shape, dtype=dtype, chunks=chunks, scaleoffset=data.draw(bits), **options
        )
        rows = data.draw(st.integers(0, shape[0]))
        stored[:rows] = x[:rows]
    with h5py.File(path) as file, session():
        same(oc.open(path / "x").compute(), file["x"][()])


def test_a_dataset_is_opened_again_by_other_processes(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("g/chunks", data=np.arange(1000), chunks=(100,), compression="gzip")
        file["g/whole"] = np.arange(1000)
    with session():
        for name in ("chunks", "whole"):
            x = oc.open(path / "g" / name) * 2
            assert pickle.loads(pickle.dumps(x)).sum().compute() == 999000


@pytest.mark.parametrize("compression", [None, "gzip"])
def test_a_changed_file_is_an_error(compression: Any, tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=np.arange(100000.0), chunks=(1000,), compression=compression)
    with session():
        x = oc.open(path / "x").sum()
        with h5py.File(path, "a") as file:
            file["x"][:] = 0
            file["y"] = 1
        with pytest.raises(SourceChangedError):
            x.compute()


@pytest.mark.parametrize("compression", [None, "gzip"])
def test_damaged_files_give_errors_and_no_crash(compression: Any, tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=np.arange(3000.0), chunks=(500,), compression=compression, fletcher32=True)
    whole, random = path.read_bytes(), np.random.default_rng(5)
    refused = 0
    for _ in range(150):
        damaged = bytearray(whole)
        for at in random.integers(0, len(whole), 8):
            damaged[at] = random.integers(0, 256)
        path.write_bytes(damaged[: random.integers(1, len(whole) + 1)] if random.random() < 0.3 else damaged)
        with session():
            try:
                oc.open(path / "x").compute()
            except (StorageError, FormatError, UnsupportedFormatError):
                refused += 1
    assert refused > 50
