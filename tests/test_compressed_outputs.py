"""Compressed Zarr outputs: read by zarr-python, all or nothing under faults, gone on with to the same bytes."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from support.running import assert_nothing_but_kept, failures, files_below, killed_at, load, session, tree_hash

import outcore as oc
from outcore.errors import ArgumentError, OutcoreError, UnsupportedFormatError

WAYS: list[Any] = [
    "zstd",
    ("zstd", -3),
    "gzip",
    ("gzip", 0),
    "blosc",
    ("blosc", 9),
    ["shuffle", "gzip"],
    ["zstd", "crc32c"],
    {"name": "blosc", "configuration": {"cname": "lz4hc", "clevel": 3, "shuffle": "bitshuffle"}},
    zarr.codecs.BloscCodec(cname="snappy"),
    zarr.codecs.ZstdCodec(level=12, checksum=True),
]


def values(shape: tuple[int, ...], dtype: str = "float64") -> Any:
    return (np.arange(np.prod(shape)) % 1000 // 3).reshape(shape).astype(dtype)


@pytest.mark.filterwarnings("ignore:Numcodecs codecs")
@settings(max_examples=25, deadline=None)
@given(
    way=st.sampled_from(WAYS),
    shape=st.lists(st.integers(0, 9), max_size=3).map(tuple),
    chunk=st.integers(1, 5),
    dtype=st.sampled_from(["int8", "bool", "uint16", "float32", "int64", "complex128"]),
)
def test_zarr_reads_what_is_compressed(
    way: Any, shape: tuple[int, ...], chunk: int, dtype: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path, x = tmp_path_factory.mktemp("zarr") / "x.zarr", values(shape, dtype)
    with session():
        oc.store({path: oc.asarray(x)}, compression=way, chunks={path: (chunk,) * len(shape)})
        np.testing.assert_array_equal(oc.open(path).compute(), x)
    opened: Any = zarr.open_array(path, mode="r")
    np.testing.assert_array_equal(opened[...], x)
    assert len(opened.compressors) == (len(way) if isinstance(way, list) else 1)


def test_forecasts_are_bounds_and_outcomes_count(out: Path, scratch: Path) -> None:
    path, x = out / "x.zarr", values((1000, 700))
    with session(scratch) as current:
        targets = {path: oc.asarray(x) + 0}
        said = oc.explain(targets, compression="zstd")
        outcome = oc.store(targets, compression="zstd")
        assert_nothing_but_kept(current)
    assert not said.exact
    assert outcome.bytes_written < x.nbytes / 4 < said.bytes_written
    assert outcome.peak_bytes <= said.peak_bytes
    stored = sum(file.stat().st_size for file in (path / "c").rglob("*") if file.is_file())
    assert stored <= outcome.bytes_written
    # Tables of zstd and two chunks beside.
    assert said.peak_bytes >= oc.explain(targets, overwrite=True).peak_bytes + (4 << 20)


def test_members_of_groups_have_their_own_compression(out: Path) -> None:
    path, x = out / "g.zarr", values((20, 30))
    array = oc.asarray(x).annotate(dims=("y", "x"), attrs={"units": "K"})
    group = oc.group({"a": array, "b": array, "sub": oc.group(c=oc.arange(5))}, attrs={"title": "made"})
    with session():
        oc.store({path: group}, compression={path: ("gzip", 2), path / "a": "blosc", path / "sub/c": None})
    opened: Any = zarr.open_group(path, mode="r")
    names = [[type(codec).__name__ for codec in opened[name].compressors] for name in ("a", "b", "sub/c")]
    assert names == [["BloscCodec"], ["GzipCodec"], []]
    read = xr.open_zarr(path, consolidated=True).load()
    expected = xr.DataArray(x, dims=("y", "x"), attrs={"units": "K"})
    xr.testing.assert_identical(read, xr.Dataset({"a": expected, "b": expected}, attrs={"title": "made"}))


def test_what_cannot_be_compressed_is_refused(out: Path) -> None:
    x = oc.arange(10)
    cases: list[tuple[Any, Any, type[Exception], str]] = [
        ("x.npy", "zstd", UnsupportedFormatError, "has no codecs; .zarr and HDF5 have"),
        ("x.zarr", "zip", ArgumentError, "'zip' is none of"),
        ("x.zarr", ("crc32c", 1), ArgumentError, "has no level"),
        ("x.zarr", ("zstd", "fast"), ArgumentError, "a level is an integer"),
        ("x.zarr", ("zstd", 99), UnsupportedFormatError, "level is a whole number from"),
        ("x.zarr", ("gzip", 10), UnsupportedFormatError, "level is a whole number from 0 to 9"),
        ("x.zarr", {"name": "transpose", "configuration": {"order": [0]}}, UnsupportedFormatError, "wrong place"),
        ("x.zarr", {"name": "numcodecs.lz4"}, UnsupportedFormatError, '"numcodecs.lz4" is read, and not written'),
        ("x.zarr", {str(out / "y.zarr"): "zstd"}, ArgumentError, "which nothing is stored to"),
    ]
    with session():
        for name, way, kind, match in cases:
            with pytest.raises(kind, match=match):
                oc.store({out / name: x}, compression=way)
    assert files_below(out) == []


@pytest.mark.parametrize("fault", ["write:{n}", "write:{n}:enospc", "torn-write:{n}", "sync:{n}", "rename:{n}"])
def test_faults_leave_nothing(fault: str, out: Path, scratch: Path) -> None:
    path, x = out / "x.zarr", values((60, 50))

    def work() -> None:
        oc.store({path: oc.asarray(x)}, compression="zstd", chunks={path: (30, 30)}, overwrite=True)

    for _ in failures(fault, scratch, work):
        assert files_below(out) == []
    np.testing.assert_array_equal(load(path), x)


def test_a_run_that_failed_goes_on_to_the_same_bytes(out: Path, data: Path, scratch: Path) -> None:
    x = values((4096, 512))
    np.save(data / "x.npy", x)
    path, plain = out / "x.zarr", out / "plain.zarr"

    def resumed(faults: str | None) -> Any:
        with session(scratch, faults=faults, threads=1, pool_limit=64 << 20):
            targets = {path: oc.sqrt(oc.open(data / "x.npy")) + 1}
            return oc.store(targets, compression="zstd", chunks={path: (64, 512)}, resume=True)

    with session(scratch):
        targets = {plain: oc.sqrt(oc.open(data / "x.npy")) + 1}
        whole = oc.store(targets, compression="zstd", chunks={plain: (64, 512)})
    with pytest.raises(OutcoreError):
        resumed("write:50")
    assert not path.exists()
    rest = resumed(None)
    assert rest.bytes_written < whole.bytes_written
    assert tree_hash(path) == tree_hash(plain)
    assert resumed(None).bytes_written == 0
    with session(scratch):
        # Another compression is another output.
        targets = {path: oc.sqrt(oc.open(data / "x.npy")) + 1}
        oc.store(targets, compression="gzip", chunks={path: (64, 512)}, resume=True, overwrite=True)
    document = json.loads((path / "zarr.json").read_text())
    assert [codec["name"] for codec in document["codecs"]] == ["bytes", "gzip"]


def test_a_killed_process_leaves_no_output(out: Path, data: Path, scratch: Path) -> None:
    np.save(data / "x.npy", values((4096, 2048)))
    path = out / "x.zarr"
    program = (
        "import sys, outcore as oc\nprint('begins', flush=True)\n"
        "oc.store({sys.argv[1]: oc.open(sys.argv[2])}, compression=('zstd', 19), progress=False)"
    )
    if killed_at(out, ".outcore-*", program, path, data / "x.npy") == -signal.SIGKILL:
        assert not path.exists()
    with session(scratch):
        oc.store({path: oc.open(data / "x.npy")}, compression="zstd", overwrite=True)
    assert [entry.name for entry in out.iterdir()] == ["x.zarr"]
