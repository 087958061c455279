"""Zarr's `scale_offset` and `cast_value`: read, written by appends and regions, and refused by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from support.running import load, session, tree_hash

import outcore as oc
from outcore.errors import FormatError, OutcoreError


def scale(**settings: Any) -> dict[str, Any]:
    return {"name": "scale_offset", "configuration": settings}


def cast(data_type: str, **settings: Any) -> dict[str, Any]:
    return {"name": "cast_value", "configuration": {"data_type": data_type, **settings}}


def redocument(path: Path, **members: Any) -> None:
    """Gives an array other members of its document."""
    document = json.loads((path / "zarr.json").read_text())
    (path / "zarr.json").write_text(json.dumps(document | members))


def coded(path: Path, stored: Any, dtype: str, before: list[Any], fill: Any = 0, **options: Any) -> None:
    """An array of `dtype` whose chunks hold the numbers `stored`, with codecs before those of zarr-python."""
    layout = {"chunks": tuple(max(-(-length // 2), 1) for length in stored.shape), "fill_value": 0} | options
    array = zarr.create_array(path, shape=stored.shape, dtype=stored.dtype, **layout)
    array[...] = stored
    codecs = json.loads((path / "zarr.json").read_text())["codecs"]
    inner = codecs[0]["configuration"]["codecs"] if codecs[0]["name"] == "sharding_indexed" else codecs
    inner[:0] = before
    redocument(path, data_type=dtype, fill_value=fill, codecs=codecs)


def stored_in(path: Path, dtype: str, filters: int) -> Any:
    """The numbers that are stored, for zarr-python that has no such filters."""
    kept = (path / "zarr.json").read_text()
    document = json.loads(kept)
    redocument(path, data_type=dtype, fill_value=0, codecs=document["codecs"][filters:])
    numbers = load(path)
    (path / "zarr.json").write_text(kept)
    return numbers


@settings(max_examples=30, deadline=None)
@given(
    shape=st.lists(st.integers(0, 6), min_size=1, max_size=3).map(tuple),
    stored=st.sampled_from(["int8", "uint16", "int32", "float32"]),
    dtype=st.sampled_from(["float16", "float32", "float64"]),
    scaling=st.sampled_from([(1, 0), (0.25, 5), (-10, 0.1), ("0x40000000", 1)]),
    options=st.sampled_from(
        [
            {"compressors": None},
            {"compressors": zarr.codecs.ZstdCodec(level=1)},
            {"serializer": zarr.codecs.BytesCodec(endian="big")},
            {"shards": True},
            {"filters": "transpose"},
        ]
    ),
    seed=st.integers(0, 99),
)
def test_scaled_numbers_are_those_of_numpy(
    shape: tuple[int, ...],
    stored: str,
    dtype: str,
    scaling: tuple[Any, Any],
    options: dict[str, Any],
    seed: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    path = tmp_path_factory.mktemp("zarr") / "x.zarr"
    factor, offset = scaling
    if factor == "0x40000000":
        factor = 2 if dtype != "float32" else factor
    numbers = np.random.default_rng(seed).integers(0, 100, shape).astype(stored)
    options = dict(options)
    if options.get("shards"):
        chunks = tuple(max(-(-length // 2), 1) for length in shape)
        options["shards"] = tuple(2 * length for length in chunks)
    if options.get("filters"):
        options["filters"] = [zarr.codecs.TransposeCodec(order=tuple(reversed(range(len(shape)))))]
    coded(path, numbers, dtype, [scale(scale=factor, offset=offset), cast(stored)], **options)
    number = np.dtype(dtype).type
    expected = numbers.astype(dtype) / number(2 if isinstance(factor, str) else factor) + number(offset)
    with session():
        x = oc.open(path)
        told = oc.explain(x)
        np.testing.assert_array_equal(x.compute(), expected)
        assert x.dtype == dtype
        assert told.exact


def test_casts_round_clamp_wrap_and_map(tmp_path: Path) -> None:
    nan = float("nan")
    halves = np.array([0.5, 1.5, -0.5, -2.5])
    beyond = np.array([300.0, -5.0, 1e30])
    cases: list[tuple[Any, str, dict[str, Any], Any]] = [
        (halves, "int8", {}, [0, 2, 0, -2]),
        (halves, "int8", {"rounding": "nearest-away"}, [1, 2, -1, -3]),
        (halves, "int8", {"rounding": "towards-zero"}, [0, 1, 0, -2]),
        (halves, "int8", {"rounding": "towards-positive"}, [1, 2, 0, -2]),
        (halves, "int8", {"rounding": "towards-negative"}, [0, 1, -1, -3]),
        (beyond, "uint8", {"out_of_range": "clamp"}, [255, 0, 255]),
        (np.array([70000.0]), "float16", {"out_of_range": "clamp"}, [np.inf]),
        (np.array([2**53 + 1]), "float64", {"rounding": "towards-positive"}, [2**53 + 2]),
        (np.array([300, -5], "int16"), "uint8", {"out_of_range": "wrap"}, [44, 251]),
        (np.array([255, 3], "uint8"), "float32", {"scalar_map": {"decode": [[255, "NaN"]]}}, [nan, 3]),
        (np.array([nan, 3]), "int16", {"scalar_map": {"decode": [["NaN", -1]], "encode": [[-1, "NaN"]]}}, [-1, 3]),
    ]
    with session():
        for number, (stored, dtype, settings, expected) in enumerate(cases):
            path = tmp_path / f"{number}.zarr"
            coded(path, stored, dtype, [cast(stored.dtype.name, **settings)])
            np.testing.assert_array_equal(
                oc.open(path).compute(), np.array(expected, dtype), err_msg=str(cases[number])
            )


def test_appends_and_regions_are_encoded(out: Path) -> None:
    path, stored = out / "x.zarr", np.arange(12, dtype="int16").reshape(6, 2)
    missing = {"encode": [["NaN", -32768]], "decode": [[-32768, "NaN"]]}
    filters = [scale(scale=10, offset=20), cast("int16", scalar_map=missing)]
    coded(path, stored, "float64", filters, fill="NaN", compressors=zarr.codecs.ZstdCodec(level=1))
    with session():
        oc.append(path, np.array([[20.5, np.nan]]), axis=0)
        oc.store({oc.region(path, np.s_[0]): 19.96})
        read = oc.open(path).compute()
    np.testing.assert_array_equal(stored_in(path, "int16", 2)[[0, 1, 6]], [[0, 0], [2, 3], [5, -32768]])
    np.testing.assert_array_equal(read[6], [20.5, np.nan])
    before = tree_hash(path)
    with (
        session(),
        pytest.raises(OutcoreError, match=r"cast_value: 3\.\d+ is out of the range of int16|cast_value: \d+ is out"),
    ):
        oc.append(path, np.array([[1e6, 0]]), axis=0)
    assert tree_hash(path) == before


def test_numbers_that_a_type_does_not_have_are_errors_with_their_path(tmp_path: Path) -> None:
    cases: list[tuple[Any, str, list[Any], str]] = [
        (np.array([300, 1], "int16"), "uint8", [cast("int16")], "cast_value: 300 is out of the range of uint8"),
        (np.array([np.nan]), "int16", [cast("float64", out_of_range="clamp")], "cast_value: NaN is out of the range"),
        (np.array([3], "int32"), "int32", [scale(scale=2)], "scale_offset: an element is no int32"),
        (np.array([250], "uint8"), "uint8", [scale(offset=10)], "scale_offset: an element is no uint8"),
    ]
    with session():
        for number, (stored, dtype, filters, match) in enumerate(cases):
            path = tmp_path / f"{number}.zarr"
            coded(path, stored, dtype, filters)
            with pytest.raises(FormatError, match=rf"{number}\.zarr/c/0.*{match}"):
                oc.open(path).compute()


def test_what_cannot_be_represented_is_refused_by_name(tmp_path: Path) -> None:
    cases: list[tuple[str, list[Any], str]] = [
        ("bool", [scale(offset=0)], "scale_offset of bool is not supported"),
        ("complex64", [cast("float32")], "cast_value of complex64 is not supported"),
        ("float64", [cast("bool")], "cast_value of bool is not supported"),
        ("float64", [cast("int4")], 'cast_value to "int4" is not supported'),
        ("float64", [{"name": "cast_value"}], "cast_value has no valid data_type"),
        ("float64", [cast("int8", rounding="up")], "no valid rounding"),
        ("float64", [cast("int8", out_of_range="zero")], "no valid out_of_range"),
        ("float64", [cast("float32", out_of_range="wrap")], 'out_of_range "wrap" for float32'),
        ("float64", [cast("int8", scalar_map={"decode": [[300, 0]]})], "scalar_map: decode: 300 is no int8"),
        ("float64", [cast("int8", scalar_map={"encode": [["x", 0]]})], 'encode: "x" is no float64'),
        ("float64", [cast("int8", scalar_map={"encode": [1]})], "an entry that is no pair"),
        ("float64", [cast("int8", scalar_map={"other": []})], 'no side "other"'),
        ("float64", [cast("int8", more=1)], "cast_value has other settings"),
        ("int16", [scale(scale=0)], "the scale is zero"),
        ("int16", [scale(scale=0.5)], "scale 0.5 is no int16"),
        ("uint8", [scale(offset=-1)], "offset -1 is no uint8"),
    ]
    path = tmp_path / "x.zarr"
    zarr.create_array(path, shape=(4,), dtype="int8", chunks=(2,), compressors=None)
    plain = {"name": "bytes", "configuration": {"endian": "little"}}
    with session():
        for dtype, filters, match in cases:
            fill: Any = {"bool": False, "complex64": [0, 0]}.get(dtype, 0)
            redocument(path, data_type=dtype, fill_value=fill, codecs=[*filters, plain])
            with pytest.raises(FormatError, match=match):
                oc.open(path)
        redocument(path, data_type="int8", codecs=[plain, cast("int8")])
        with pytest.raises(FormatError, match="in the wrong place"):
            oc.open(path)


@pytest.mark.parametrize("endian", ["little", "big"])
@pytest.mark.parametrize("dtype", ["<i4", "<i2", "<u8"])
def test_differences_before_the_bytes_are_read(tmp_path: Path, dtype: str, endian: str) -> None:
    """As zarr-python writes `numcodecs.delta` in v3."""
    values = (np.arange(1000, 1020) ** 2 % 30_000).astype(dtype)
    codecs = zarr.codecs
    array = zarr.create_array(
        tmp_path / "x.zarr",
        shape=values.shape,
        chunks=(7,),
        dtype=dtype,
        filters=[codecs.numcodecs.Delta(dtype=dtype)],
        serializer=codecs.BytesCodec(endian=endian),
    )
    array[:] = values
    with session():
        np.testing.assert_array_equal(oc.open(tmp_path / "x.zarr").compute(), values)


def test_filters_of_elements_in_zarr_v2_are_read(tmp_path: Path) -> None:
    import numcodecs

    random = np.random.default_rng(0)
    truths, numbers = random.random(37) < 0.5, np.round(random.random((6, 5)), 2)
    filters = {"truths": numcodecs.PackBits(), "numbers": numcodecs.FixedScaleOffset(0, 100, "<f8", "<i4")}
    for name, values in (("truths", truths), ("numbers", numbers)):
        options = {"chunks": tuple(-(-length // 2) for length in values.shape), "dtype": values.dtype}
        array = zarr.open_array(
            tmp_path / name, mode="w", shape=values.shape, filters=[filters[name]], zarr_format=2, **options
        )
        array[...] = values
        with session():
            np.testing.assert_array_equal(oc.open(tmp_path / name).compute(), values)
