"""Files go both ways: NumPy and zarr-python read what we write, we read what they write, whatever its layout."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from support.running import session
from support.sizes import covering
from zarr import codecs
from zarr.codecs import numcodecs

import outcore as oc

DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
)
SHAPES: tuple[tuple[int, ...], ...] = ((), (0,), (1,), (7,), (0, 3), (5, 1), (64, 33), (3, 4, 5, 2))
COMPRESSORS: dict[str, Any] = {
    "none": None,
    "gzip": codecs.GzipCodec(level=1),
    "zstd": codecs.ZstdCodec(level=1),
    "zstd, checksum": codecs.ZstdCodec(level=3, checksum=True),
    "blosc lz4": codecs.BloscCodec(cname="lz4", shuffle="shuffle", typesize=8),
    "blosc zstd, bit shuffle": codecs.BloscCodec(cname="zstd", shuffle="bitshuffle", typesize=8),
    "crc32c": codecs.Crc32cCodec(),
    "gzip, crc32c": [codecs.GzipCodec(level=1), codecs.Crc32cCodec()],
    "crc32c, gzip": [codecs.Crc32cCodec(), codecs.GzipCodec(level=1)],
    "zlib of numcodecs": numcodecs.Zlib(level=1),
    "shuffle, zlib of numcodecs": [numcodecs.Shuffle(elementsize=8), numcodecs.Zlib(level=4)],
    "zlib, fletcher32 of numcodecs": [numcodecs.Zlib(level=4), numcodecs.Fletcher32()],
    "shuffle, fletcher32, gzip of numcodecs": [
        numcodecs.Shuffle(elementsize=4),
        numcodecs.Fletcher32(),
        numcodecs.GZip(level=1),
    ],
    "zstd of numcodecs": numcodecs.Zstd(level=1),
    "blosc of numcodecs": numcodecs.Blosc(cname="lz4"),
    "shuffle, lz4 of numcodecs": [numcodecs.Shuffle(elementsize=8), numcodecs.LZ4()],
}
FILTERS: dict[str, tuple[str, Any]] = {
    "truths in bits": ("bool", numcodecs.PackBits()),
    "float64 as int32": ("float64", numcodecs.FixedScaleOffset(offset=10, scale=100, dtype="f8", astype="i4")),
    "float32 as int16": ("float32", numcodecs.FixedScaleOffset(offset=1.5, scale=10, dtype="<f4", astype="<i2")),
    "float64 as float32": ("float64", numcodecs.FixedScaleOffset(offset=10, scale=100, dtype="float64", astype="f4")),
    "int32 as uint8": ("int32", numcodecs.FixedScaleOffset(offset=-7, scale=1, dtype="i4", astype="u1")),
}


def sample(shape: tuple[int, ...], dtype: str) -> Any:
    random = np.random.default_rng(1)
    kind = np.dtype(dtype)
    if kind.kind == "c":
        return (random.standard_normal(shape) + 1j * random.standard_normal(shape)).astype(kind)
    if kind.kind == "f":
        return np.asarray(random.standard_normal(shape)).astype(kind)
    return np.asarray(random.integers(0, 2 if kind.kind == "b" else 100, shape)).astype(kind)


def same(found: Any, expected: Any) -> None:
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype.newbyteorder("=")
    np.testing.assert_array_equal(found, expected)


# -- theirs reads ours ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_zarr_python_reads_what_we_write(dtype: str, tmp_path: Path) -> None:
    with session():
        for number, shape in enumerate(SHAPES):
            expected = sample(shape, dtype)
            path = tmp_path / f"{number}.zarr"
            oc.store({path: oc.asarray(expected)})
            stored: Any = zarr.open_array(str(path), mode="r")
            assert stored.metadata.zarr_format == 3
            same(np.asarray(stored[...]), expected)
            same(oc.compute(oc.open(path)), expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_numpy_maps_what_we_write(dtype: str, tmp_path: Path) -> None:
    with session():
        for number, shape in enumerate(SHAPES):
            expected = sample(shape, dtype)
            path = tmp_path / f"{number}.npy"
            oc.store({path: oc.asarray(expected)})
            # An empty file cannot be mapped; NumPy reads it.
            same(np.asarray(np.load(path, mmap_mode="r" if expected.size else None)), expected)
            same(oc.compute(oc.open(path)), expected)


def test_asked_chunks_are_written(tmp_path: Path) -> None:
    expected = sample((64, 33), "float32")
    with session():
        oc.store({tmp_path / "x.zarr": oc.asarray(expected)}, chunks={tmp_path / "x.zarr": (10, 7)})
    stored: Any = zarr.open_array(str(tmp_path / "x.zarr"), mode="r")
    assert stored.chunks == (10, 7)
    same(np.asarray(stored[...]), expected)


# -- ours reads theirs ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FILTERS)
def test_filters_of_numcodecs(name: str, tmp_path: Path) -> None:
    dtype, codec = FILTERS[name]
    values = sample((61, 47), dtype)
    with session():
        for compressor in ("none", "gzip", "zstd"):
            path = tmp_path / compressor
            options: dict[str, Any] = {"chunks": (8, 6), "filters": [codec], "compressors": COMPRESSORS[compressor]}
            stored: Any = zarr.create_array(str(path), shape=values.shape, dtype=values.dtype, **options)
            stored[...] = values
            expected = np.asarray(zarr.open_array(str(path), mode="r")[...])
            same(oc.compute(oc.open(path)), expected)
            same(oc.compute(oc.open(path)[5:50:3, 7:]), expected[5:50:3, 7:])


@pytest.mark.parametrize("compressor", COMPRESSORS)
@pytest.mark.parametrize("sharded", [False, True])
def test_codecs_and_shards(compressor: str, sharded: bool, tmp_path: Path) -> None:
    expected = sample((61, 47), "float64")
    options: dict[str, Any] = {"chunks": (8, 6), "compressors": COMPRESSORS[compressor]}
    if sharded:
        options["shards"] = (24, 24)
    stored: Any = zarr.create_array(str(tmp_path / "x"), shape=expected.shape, dtype=expected.dtype, **options)
    stored[...] = expected
    with session():
        same(oc.compute(oc.open(tmp_path / "x")), expected)
        same(oc.compute(oc.open(tmp_path / "x")[5:50:3, ::-1].T), expected[5:50:3, ::-1].T)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("endian", ["little", "big"])
def test_byte_orders_of_zarr(dtype: str, endian: Any, tmp_path: Path) -> None:
    expected = sample((20, 9), dtype)
    serializer: Any = codecs.BytesCodec(endian=endian if expected.dtype.itemsize > 1 else None)
    stored: Any = zarr.create_array(
        str(tmp_path / "x"), shape=(20, 9), dtype=expected.dtype, chunks=(7, 4), serializer=serializer, compressors=None
    )
    stored[...] = expected
    with session():
        same(oc.compute(oc.open(tmp_path / "x")), expected)


@pytest.mark.parametrize("order", [(1, 0, 2), (2, 1, 0)])
def test_transposed_chunks(order: tuple[int, ...], tmp_path: Path) -> None:
    expected = sample((6, 7, 8), "int32")
    stored: Any = zarr.create_array(
        str(tmp_path / "x"),
        shape=(6, 7, 8),
        dtype="int32",
        chunks=(4, 3, 5),
        filters=codecs.TransposeCodec(order=order),
    )
    stored[...] = expected
    with session():
        same(oc.compute(oc.open(tmp_path / "x")), expected)


FILLS: tuple[tuple[str, Any], ...] = (
    *(("float64", 1.5), ("float64", np.nan), ("float32", np.inf), ("float32", -np.inf), ("float16", -0.0)),
    *(("int16", -7), ("uint64", 2**64 - 1), ("int64", -(2**63)), ("bool", True), ("complex128", 1 - 2j)),
)


@pytest.mark.parametrize(("dtype", "fill"), FILLS)
@pytest.mark.parametrize("sharded", [False, True])
def test_missing_chunks_hold_the_fill_value(dtype: str, fill: Any, sharded: bool, tmp_path: Path) -> None:
    options: dict[str, Any] = {"shards": (20, 8)} if sharded else {}
    stored: Any = zarr.create_array(
        str(tmp_path / "x"), shape=(50, 11), dtype=dtype, chunks=(10, 4), fill_value=fill, **options
    )
    stored[0:10, 0:4] = sample((10, 4), dtype)
    expected = np.asarray(stored[...])
    with session():
        same(oc.compute(oc.open(tmp_path / "x")), expected)
        lone = oc.compute(oc.open(tmp_path / "x")[49, 10])
    np.testing.assert_array_equal(lone, expected[49, 10])
    assert np.signbit(np.real(lone)) == np.signbit(np.real(expected[49, 10]))


def test_an_array_without_a_single_chunk(tmp_path: Path) -> None:
    zarr.create_array(str(tmp_path / "x"), shape=(1000, 1000), dtype="float64", chunks=(100, 100), fill_value=2.0)
    with session():
        told = oc.explain(oc.open(tmp_path / "x").sum())
        assert oc.compute(oc.open(tmp_path / "x").sum()) == 2e6
    assert told.bytes_read == 0


def test_other_chunk_keys(tmp_path: Path) -> None:
    expected = sample((12, 10), "float64")
    stored: Any = zarr.create_array(
        str(tmp_path / "x"),
        shape=(12, 10),
        dtype="float64",
        chunks=(5, 4),
        chunk_key_encoding={"name": "default", "separator": "."},
    )
    stored[...] = expected
    with session():
        same(oc.compute(oc.open(tmp_path / "x")), expected)


def test_attributes_and_dimension_names_do_no_harm(tmp_path: Path) -> None:
    expected = sample((12, 10), "float64")
    stored: Any = zarr.create_array(
        str(tmp_path / "x"), shape=(12, 10), dtype="float64", chunks=(5, 4), dimension_names=("time", "place")
    )
    stored.attrs["units"] = {"length": "m"}
    stored[...] = expected
    assert "dimension_names" in json.loads((tmp_path / "x" / "zarr.json").read_text())
    with session():
        same(oc.compute(oc.open(tmp_path / "x")), expected)


@pytest.mark.parametrize(("version", "order", "byteorder"), covering([(1, 0), (2, 0), (3, 0)], ["C", "F"], ["<", ">"]))
def test_every_npy(version: tuple[int, int], order: Any, byteorder: Any, tmp_path: Path) -> None:
    with session():
        for number, (dtype, shape) in enumerate((d, s) for d in DTYPES for s in SHAPES):
            expected = np.asarray(sample(shape, dtype), order=order)
            expected = expected.astype(expected.dtype.newbyteorder(byteorder), order=order)
            path = tmp_path / f"{number}.npy"
            with path.open("wb") as file:
                np.lib.format.write_array(file, expected, version=version)
            same(oc.compute(oc.open(path)), expected)


def test_fortran_order_larger_than_the_pool(tmp_path: Path) -> None:
    expected = np.asfortranarray(sample((2300, 1700), "float64"))
    np.save(tmp_path / "x.npy", expected)
    with session(pool_limit=16 << 20):
        x = oc.open(tmp_path / "x.npy")
        oc.store({tmp_path / "y.npy": x + 1, tmp_path / "z.zarr": x.T})
    same(np.load(tmp_path / "y.npy"), expected + 1)
    same(np.asarray(zarr.open_array(str(tmp_path / "z.zarr"), mode="r")[...]), expected.T)
