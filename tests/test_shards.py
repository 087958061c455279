"""Zarr outputs in shards: read by zarr-python, forecast to the byte, all or nothing, within the memory limit."""

from __future__ import annotations

import json
from operator import mul
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from support.running import FIGURES, failures, files_below, load, session, tree_hash

import outcore as oc
from outcore.errors import MemoryLimitError, OutcoreError, ShapeError

PLAIN = {"name": "bytes", "configuration": {"endian": "little"}}
WAYS: list[Any] = [None, "zstd", ["shuffle", "gzip"], "crc32c"]


def values(shape: tuple[int, ...], dtype: str = "float64") -> Any:
    return (np.arange(np.prod(shape)) % 1000 // 3).reshape(shape).astype(dtype)


@pytest.mark.filterwarnings("ignore:Numcodecs codecs")
@settings(max_examples=25, deadline=None)
@given(
    way=st.sampled_from(WAYS),
    axes=st.lists(st.tuples(st.integers(0, 9), st.integers(1, 4), st.integers(1, 3)), max_size=3),
    dtype=st.sampled_from(["bool", "int16", "float32", "complex128"]),
)
def test_zarr_reads_what_is_sharded(
    way: Any, axes: list[tuple[int, int, int]], dtype: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("zarr") / "x.zarr"
    shape, chunks, counts = (tuple(axis[at] for axis in axes) for at in range(3))
    shards = tuple(map(mul, chunks, counts))
    x = values(shape, dtype)
    with session():
        targets: Any = {path: oc.asarray(x)}
        layout: Any = {"chunks": {path: chunks}, "shards": {path: shards}, "compression": way}
        told, did = oc.explain(targets, **layout), oc.store(targets, **layout)
        np.testing.assert_array_equal(oc.open(path).compute(), x)
    opened: Any = zarr.open_array(path, mode="r")
    np.testing.assert_array_equal(opened[...], x)
    assert (opened.chunks, opened.shards) == (chunks, shards)
    assert told.exact == (way is None)
    if told.exact:
        assert [getattr(told, name) for name in FIGURES] == [getattr(did, name) for name in FIGURES]
    else:
        assert did.bytes_written <= told.bytes_written


@pytest.mark.parametrize("location", ["start", "end"])
@pytest.mark.parametrize("endian", ["little", "big"])
@pytest.mark.parametrize("has_checksum", [True, False])
@pytest.mark.parametrize("way", [[], [{"name": "zstd", "configuration": {"level": 1, "checksum": False}}]])
def test_indices_of_others_are_kept(location: str, endian: str, has_checksum: bool, way: list[Any], out: Path) -> None:
    path, x = out / "x.zarr", values((11, 7), "int32")
    order = {"name": "bytes", "configuration": {"endian": endian}}
    sharding = {
        "chunk_shape": [2, 3],
        "codecs": [PLAIN, *way],
        "index_codecs": [order, *([{"name": "crc32c"}] if has_checksum else [])],
        "index_location": location,
    }
    zarr.create_array(path, shape=(9, 7), chunks=(2, 3), shards=(6, 6), dtype="int32", fill_value=7)
    document = json.loads((path / "zarr.json").read_text())
    document["codecs"] = [{"name": "sharding_indexed", "configuration": sharding}]
    (path / "zarr.json").write_text(json.dumps(document))
    zarr.open_array(path)[:5] = x[:5]
    with session():
        oc.store({oc.region(path, np.s_[5:9]): oc.asarray(x[5:9])})
        oc.append(path, oc.asarray(x[9:]), axis=0)
        np.testing.assert_array_equal(oc.open(path).compute(), x)
    np.testing.assert_array_equal(load(path), x)


def test_shards_of_many_strips_are_written_exactly(out: Path, scratch: Path) -> None:
    path, x = out / "x.zarr", values((900, 700))
    with session(scratch):
        targets: Any = {path: oc.asarray(x) + 0}
        # Lengths of chunks are no whole pages, and of the last shards a part is there.
        layout: Any = {"chunks": {path: (7, 101)}, "shards": {path: (700, 404)}}
        told, did = oc.explain(targets, **layout), oc.store(targets, **layout)
    assert told.exact
    assert told.bytes_written == did.bytes_written
    assert did.peak_bytes <= told.peak_bytes
    np.testing.assert_array_equal(load(path), x)
    assert len(files_below(path)) == 1 + 2 * 2
    count = 1 + len(range(0, 700, 7)) * 4
    assert (path / "c/0/0").stat().st_size == (count - 1) * 7 * 101 * 8 + 16 * (count - 1) + 4


def test_chunks_of_shards_are_chosen_and_shards_stay_as_they_are_named(out: Path) -> None:
    path, group = out / "x.zarr", out / "g.zarr"
    with session():
        oc.store({path: oc.zeros((3, 512))}, shards={str(path): (4096, 512)})
        oc.store(
            {group: oc.group(a=oc.arange(5), b=oc.arange(5))}, shards={group / "a": (4,)}, chunks={group / "a": (2,)}
        )
        oc.append(path, oc.ones((2, 512)), axis=0)
    opened: Any = zarr.open_array(path, mode="r")
    assert (opened.shards, opened.chunks) == ((4096, 512), (256, 512))
    assert [file for file in files_below(path) if file != "zarr.json"] == ["c/0/0"]
    assert opened[...].sum() == 2 * 512
    members: Any = zarr.open_group(group, mode="r")
    assert [members[name].shards for name in "ab"] == [(4,), None]


def test_shards_that_do_not_go_with_an_output_are_refused(out: Path) -> None:
    x = oc.zeros((10, 4))
    cases: list[tuple[str, dict[str, Any], str]] = [
        ("x.zarr", {"shards": (4,)}, r"shards \(4,\) for .*x.zarr do not have the dimensions of \(10, 4\)"),
        ("x.zarr", {"shards": (4, 0)}, "lengths run from 1"),
        ("x.zarr", {"shards": (4, "a")}, "shards .* are not integers"),
        ("x.zarr", {"shards": (4, 4), "chunks": (3, 4)}, r"shards \[4, 4\] for .* are no whole chunks \[3, 4\]"),
        ("x.npy", {"shards": (4, 4)}, "a .npy file has none"),
        ("x.h5/x", {"shards": (4, 4)}, "HDF5 has none"),
    ]
    with session():
        for name, layout, match in cases:
            with pytest.raises(ShapeError, match=match):
                oc.store({out / name: x}, **{key: {out / name: shape} for key, shape in layout.items()})
        with pytest.raises(ShapeError, match=r"shards name .*, which is no path"):
            oc.store({out / "x.zarr": x}, shards={(out / "x.zarr", 0): (1, 1)})
        with pytest.raises(OutcoreError, match=r"overflow|have too large an index"):
            oc.store({out / "x.zarr": x}, shards={out / "x.zarr": (1 << 62, 4)}, chunks={out / "x.zarr": (1, 1)})
    assert files_below(out) == []


def test_a_shard_that_does_not_fit_is_refused_before_anything_is_made(out: Path, scratch: Path) -> None:
    x, path = oc.zeros((4096, 4096)), out / "x.zarr"
    with session(scratch, pool_limit=48 << 20):
        for layout in ({"shards": {path: (4096, 4096)}}, {"shards": {path: (4096, 2048)}, "compression": "zstd"}):
            with pytest.raises(MemoryLimitError, match=r"MiB; shards \[4096, (4096|2048)\] are written in one go"):
                oc.store({path: x}, **layout)
        assert files_below(out) == []
        did = oc.store({path: x}, shards={path: (1024, 1024)})
    assert did.peak_bytes <= 48 << 20
    assert load(path).sum() == 0


@pytest.mark.parametrize("fault", ["write:{n}", "torn-write:{n}", "sync:{n}"])
def test_faults_leave_the_old_array(fault: str, out: Path, scratch: Path) -> None:
    path, x = out / "x.zarr", values((60, 50))
    with session(scratch):
        oc.store({path: oc.asarray(x)}, shards={path: (40, 50)}, chunks={path: (10, 25)})
    before = tree_hash(path)

    def work() -> None:
        oc.append(path, oc.asarray(x), axis=0)

    for _ in failures(fault, scratch, work):
        assert tree_hash(path) == before
    np.testing.assert_array_equal(load(path), np.concatenate([x, x]))


@pytest.mark.parametrize("way", [None, "zstd"])
def test_a_run_that_failed_goes_on_to_the_same_bytes(way: Any, out: Path, data: Path, scratch: Path) -> None:
    x = values((1024, 512))
    np.save(data / "x.npy", x)
    path, plain = out / "x.zarr", out / "plain.zarr"

    def stored(path: Path, faults: str | None = None, resume: bool = False) -> Any:
        with session(scratch, faults=faults, threads=1, pool_limit=64 << 20):
            targets = {path: oc.sqrt(oc.open(data / "x.npy")) + 1}
            layout: Any = {"chunks": {path: (16, 512)}, "shards": {path: (64, 512)}}
            return oc.store(targets, compression=way, resume=resume, **layout)

    whole = stored(plain)
    with pytest.raises(OutcoreError):
        stored(path, "write:12", True)
    assert not path.exists()
    assert stored(path, None, True).bytes_written < whole.bytes_written
    assert tree_hash(path) == tree_hash(plain)


@pytest.mark.parametrize("at", [0, 8, 12, -1])
def test_a_damaged_index_is_an_error_with_its_path(at: int, out: Path) -> None:
    path = out / "x.zarr"
    with session():
        oc.store({path: oc.asarray(values((8, 8)))}, shards={path: (8, 8)}, chunks={path: (4, 4)})
        shard = path / "c/0/0"
        content = bytearray(shard.read_bytes())
        content[len(content) - 68 + at if at >= 0 else -1] ^= 0x10
        shard.write_bytes(content)
        with pytest.raises(OutcoreError, match=r"x\.zarr/c/0/0.*shard index: crc32c"):
            oc.open(path).compute()
        # The region's shard has other elements, which are read for it.
        with pytest.raises(OutcoreError, match=r"x\.zarr/c/0/0"):
            oc.store({oc.region(path, np.s_[0]): 1.0})
    assert shard.read_bytes() == content
