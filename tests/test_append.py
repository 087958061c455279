"""Arrays that grow and are written in parts: against NumPy and zarr-python, all or nothing, with readers beside."""

from __future__ import annotations

import fcntl
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from operator import mul
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from conftest import LARGE
from hypothesis import given, settings
from hypothesis import strategies as st
from support import updates, volumes
from support.killing import PATHS
from support.running import FIGURES, files_below, load, session, tree_hash

import outcore as oc
from outcore._run.parts import append_update
from outcore._session.session import current
from outcore.errors import (
    ArgumentError,
    AxisError,
    DTypeError,
    IndexingError,
    MissingFileError,
    PlanError,
    ShapeError,
    SourceChangedError,
    StorageError,
    UnsupportedFormatError,
)

KILLS = 200 if LARGE else 8
KEYS = [
    {"name": "default", "separator": "/"},
    {"name": "default", "separator": "."},
    {"name": "v2", "separator": "."},
    {"name": "v2", "separator": "/"},
]
COMPRESSORS = [
    None,
    zarr.codecs.ZstdCodec(level=1, checksum=True),
    zarr.codecs.BloscCodec(cname="lz4", shuffle="bitshuffle"),
    [zarr.codecs.GzipCodec(level=6), zarr.codecs.Crc32cCodec()],
]


def made(path: Path, values: Any, chunks: tuple[int, ...], **options: Any) -> Any:
    options = {"compressors": None, "filters": None, "fill_value": 0} | options
    array = zarr.create_array(store=path, shape=values.shape, chunks=chunks, dtype=values.dtype, **options)
    array[...] = values
    return array


def grid(path: Path, shape: tuple[int, ...] = (6, 4), chunks: tuple[int, ...] = (2, 3)) -> Any:
    values = np.arange(np.prod(shape), dtype="float64").reshape(shape)
    made(path, values, chunks)
    return values


def document(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((path / "zarr.json").read_text())
    return content


@st.composite
def updates_of_arrays(draw: st.DrawFn) -> dict[str, Any]:
    shape = tuple(draw(st.lists(st.integers(0, 7), max_size=3)))
    regions = []
    for length in shape:
        start = draw(st.integers(0, length))
        stop = draw(st.integers(start, length))
        plain = st.just(slice(start, stop))
        regions.append(draw(plain | st.just(start - length) if start < length else plain))
    return {
        "shape": shape,
        "chunks": tuple(draw(st.integers(1, 4)) for _ in shape),
        "per_shard": draw(st.none() | st.tuples(*(st.integers(1, 3) for _ in shape))) if shape else None,
        "dtype": draw(st.sampled_from(["float32", "int16", "bool", "complex128"])),
        "keys": draw(st.sampled_from(KEYS)),
        "compressors": draw(st.sampled_from(COMPRESSORS)),
        "is_filled": draw(st.booleans()),
        "has_holes": draw(st.booleans()),
        "region": tuple(regions),
        "is_broadcast": draw(st.booleans()),
        "axis": draw(st.integers(0, len(shape) - 1)) if shape else None,
        "growth": draw(st.integers(0, 6)),
        "seed": draw(st.integers(0, 99)),
    }


@settings(max_examples=400 if LARGE else 25, deadline=None)
@given(case=updates_of_arrays())
def test_updates_are_those_of_numpy(case: dict[str, Any]) -> None:
    random_ = np.random.default_rng(case["seed"])

    def some(shape: tuple[int, ...]) -> Any:
        return np.asarray(random_.integers(0, 2, shape)).astype(case["dtype"])

    with tempfile.TemporaryDirectory() as folder, session():
        path = Path(folder) / "x.zarr"
        fill: Any = np.ones((), case["dtype"])[()] if case["is_filled"] else 0
        dims = [f"d{axis}" for axis in range(len(case["shape"]))]
        kept = {"dimension_names": dims, "attributes": {"units": "K"}, "chunk_key_encoding": case["keys"]}
        kept["compressors"] = case["compressors"]
        if case["per_shard"] is not None:
            kept["shards"] = tuple(map(mul, case["chunks"], case["per_shard"]))
        values = np.full(case["shape"], fill, case["dtype"]) if case["has_holes"] else some(case["shape"])
        made(path, values, case["chunks"], fill_value=fill, **kept)
        before = document(path)
        part = some(values[case["region"]].shape)
        part = part[:1] if case["is_broadcast"] and part.ndim else part
        values[case["region"]] = part
        targets = {oc.region(path, case["region"]): oc.asarray(part)}
        told, did = oc.explain(targets), oc.store(targets)
        assert [getattr(told, name) for name in FIGURES] == [getattr(did, name) for name in FIGURES]
        assert document(path) == before
        assert np.array_equal(load(path), values)
        if case["axis"] is None:
            return
        axis = case["axis"]
        new = some((*values.shape[:axis], case["growth"], *values.shape[axis + 1 :]))
        update = append_update(str(path), oc.asarray(new), axis)
        told_json = json.loads(current().plan([update.expr], [update.target]).explain())
        did = oc.append(path, new, axis=random_.choice([axis, axis - values.ndim]).item())
        values = np.concatenate([values, new], axis)
        assert (told_json["bytes_read"], told_json["bytes_written"]) == (did.bytes_read, did.bytes_written)
        assert document(path) == before | {"shape": list(values.shape)}
        assert np.array_equal(load(path), values)
        assert np.array_equal(oc.open(path).compute(), values)
        # Elements that other libraries let the array grow by are fill value.
        larger = tuple(length + 1 for length in values.shape)
        zarr.open_array(path).resize(larger)
        assert (load(path)[tuple(slice(length, None) for length in values.shape)] == fill).all()


def test_files_that_stay_are_shared(out: Path) -> None:
    path = out / "x.zarr"
    values = grid(path, (9, 3), (2, 3))
    (path / "notes.txt").write_text("kept")
    os.chmod(path / "zarr.json", 0o600)
    files = {name: (path / name).stat().st_ino for name in files_below(path)}
    with session():
        did = oc.append(path, values[:2], axis=0)
    assert did.bytes_written == 2 * 4096 + len((path / "zarr.json").read_text())
    now = {name: (path / name).stat().st_ino for name in files_below(path)}
    assert {name for name in now if now[name] != files.get(name)} == {"zarr.json", "c/4/0", "c/5/0"}
    assert (path / "zarr.json").stat().st_mode & 0o777 == 0o600
    assert all((path / name).stat().st_nlink == 1 for name in now)
    assert [entry.name for entry in out.iterdir()] == ["x.zarr"]


def test_axes_have_names(out: Path) -> None:
    path = out / "group.zarr" / "t2m"
    zarr.create_group(out / "group.zarr")
    made(path, np.zeros((2, 3), "int32"), (1, 2), dimension_names=["time", "place"])
    with session():
        oc.append(path, oc.ones((2, 1), dtype="int16"), axis="place")
        with pytest.raises(ArgumentError, match=r"no axis is called 'day'; the axes are 'time', 'place'"):
            oc.append(path, oc.ones((2, 1), dtype="int16"), axis="day")
        assert oc.open(path).dims == ("time", "place")
    assert load(path).tolist() == [[0, 0, 0, 1]] * 2
    zarr.consolidate_metadata(str(out / "group.zarr"))
    with session():
        oc.append(path, oc.ones((2, 1), dtype="int16"), axis=1)
    assert zarr.open_group(out / "group.zarr", use_consolidated=True)["t2m"].shape == (2, 5)


def test_outputs_and_updates_appear_together(out: Path) -> None:
    paths = [out / f"{name}.zarr" for name in "xy"]
    values = [grid(path) for path in paths]
    x, y = (oc.open(path) for path in paths)
    targets = {
        oc.region(paths[0], np.s_[1:3]): y[1:3] + 1,
        oc.region(paths[1], np.s_[..., 0]): x[:, 1],
        out / "z.npy": x + y,
    }
    with session():
        told, did = oc.explain(targets), oc.store(targets)
    assert [getattr(told, name) for name in FIGURES] == [getattr(did, name) for name in FIGURES]
    new = [value.copy() for value in values]
    new[0][1:3] = values[1][1:3] + 1
    new[1][..., 0] = values[0][:, 1]
    for path, value in zip([*paths, out / "z.npy"], [*new, sum(values)], strict=True):
        assert np.array_equal(load(path), value)
    with session(), pytest.raises(SourceChangedError):
        x.compute()
    before = tree_hash(out)
    with session(), pytest.raises(PlanError, match="one place"):
        oc.store({(paths[0], np.s_[0]): 1.0, (f"{out}/./x.zarr", np.s_[1]): 2.0})

    def fails(block: Any) -> Any:
        raise ValueError

    changed = [path.stat().st_ctime_ns for path in sorted(out.rglob("*")) if path.is_file()]
    with session(), pytest.raises(oc.errors.FunctionError):
        oc.store({(paths[0], np.s_[0]): 1.0, (paths[1], np.s_[0]): oc.map_blocks(fails, oc.ones(4), dtype="float64")})
    assert tree_hash(out) == before
    assert [path.stat().st_ctime_ns for path in sorted(out.rglob("*")) if path.is_file()] == changed


@pytest.mark.parametrize("fault", ["write:{}", "torn-write:{}", "sync:{}", "rename:{}", "write:{}:enospc"])
def test_failures_leave_the_array(out: Path, fault: str) -> None:
    path = out / "x.zarr"
    values = grid(path)
    before, failures = tree_hash(path), 0
    for n in range(1, 20):
        with session(faults=fault.format(n)):
            try:
                oc.store({oc.region(path, np.s_[1:4]): oc.asarray(values[1:4]) + 1})
                break
            except StorageError:
                failures += 1
        assert tree_hash(path) == before
        assert [entry.name for entry in out.iterdir()] == ["x.zarr"]
    values[1:4] += 1
    assert 1 <= failures < 19
    assert np.array_equal(load(path), values)


def test_a_pair_is_a_region(out: Path) -> None:
    values = grid(out / "x.zarr")
    with session():
        oc.store({(out / "x.zarr", 2): np.arange(4)})
    values[2] = np.arange(4)
    assert np.array_equal(load(out / "x.zarr"), values)


def test_one_update_at_a_time(out: Path) -> None:
    path = out / "x.zarr"
    values = grid(path)
    held = os.open(path, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    with session(), pytest.raises(StorageError, match="another update of this array is under way"):
        oc.append(path, values, axis=0)
    os.close(held)
    refused = []

    def second(block: Any) -> Any:
        held = os.open(path, os.O_RDONLY)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            refused.append(error)
        os.close(held)
        return block

    with session():
        oc.append(path, oc.map_blocks(second, oc.asarray(values), dtype="float64"), axis=0)
    assert refused
    assert np.array_equal(load(path), np.concatenate([values, values]))


@pytest.mark.parametrize("name", ["zarr.json", "c/0/0", "c/2/1", "c/9/9", "replaced"])
def test_an_array_that_changes_meanwhile_is_left(out: Path, name: str) -> None:
    path = out / "x.zarr"
    values = grid(path, (5, 4))
    after: dict[str, str] = {}

    def other(block: Any) -> Any:
        if not after:
            if name == "replaced":
                shutil.copytree(path, out / "copy.zarr")
                path.rename(out / "old.zarr")
                (out / "copy.zarr").rename(path)
            else:
                (path / name).parent.mkdir(exist_ok=True)
                (path / name).write_bytes((path / name).read_bytes() if (path / name).exists() else b"")
            after.update(tree_hash(path))
        return block

    with session(), pytest.raises((SourceChangedError, StorageError)):
        oc.append(path, oc.map_blocks(other, oc.asarray(values), dtype="float64"), axis=0)
    assert tree_hash(path) == after
    assert not list(out.glob(".outcore*"))


def refusals(out: Path) -> list[tuple[Any, type[Exception], str]]:
    x = grid(out / "x.zarr")
    grid(out / "link.zarr")
    (out / "link.zarr" / "more").symlink_to(out)
    made(out / "turned.zarr", x, (2, 3), filters=[zarr.codecs.TransposeCodec(order=(1, 0))])
    made(out / "big.zarr", x, (2, 3), serializer=zarr.codecs.BytesCodec(endian="big"))
    made(out / "shards.zarr", x, (1, 3), shards=(2, 3), filters=[zarr.codecs.TransposeCodec(order=(1, 0))])
    zarr.create_array(store=out / "v2.zarr", shape=(6, 4), dtype="f8", zarr_format=2)
    np.save(out / "x.npy", x)
    (out / "x.h5").write_bytes(b"\x89HDF\r\n\x1a\n")
    (out / "other").mkdir()

    def grow(name: str, array: Any = x, axis: Any = 0) -> Any:
        return lambda: oc.append(out / name, array, axis=axis)

    def put(key: Any, part: Any = 1.0, **options: Any) -> Any:
        return lambda: oc.store({oc.region(out / "x.zarr", key): part}, **options)

    return [
        (grow("link.zarr"), UnsupportedFormatError, "more: is neither a file nor a folder"),
        (grow("turned.zarr"), UnsupportedFormatError, "encoded by transpose, bytes .*, and not written"),
        (grow("big.zarr"), UnsupportedFormatError, r"bytes \(big-endian\)"),
        (grow("shards.zarr"), UnsupportedFormatError, r"sharding_indexed \(codec \"transpose\" is read"),
        (grow("v2.zarr"), UnsupportedFormatError, "Zarr v2"),
        (grow("x.npy"), UnsupportedFormatError, "npy file"),
        (grow("x.h5/x"), UnsupportedFormatError, "HDF5"),
        (grow("other"), UnsupportedFormatError, "folder of another kind"),
        (grow("none.zarr"), MissingFileError, "none.zarr"),
        (grow("x.zarr", x[:, :3]), ShapeError, r"\(6, 3\) does not go to .*x.zarr, of shape \(6, 4\), along axis 0"),
        (grow("x.zarr", x[0]), ShapeError, r"\(4,\)"),
        (grow("x.zarr", x, 2), AxisError, "axis 2"),
        (grow("x.zarr", x, None), ArgumentError, "say by `axis`"),
        (grow("x.zarr", x + 1j), DTypeError, "complex128 does not go to .*x.zarr, which is float64"),
        (put(np.s_[7:]), IndexingError, r"axis 0 lies outside of .*x.zarr, of shape \(6, 4\)"),
        (put(np.s_[:, 0:5]), IndexingError, "axis 1 lies outside"),
        (put(np.s_[6]), IndexingError, "out of bounds for axis 0"),
        (put(np.s_[::2]), IndexingError, "slices of step 1"),
        (put([1, 2]), IndexingError, "slices of step 1 and integers"),
        (put(np.s_[1:3], np.ones((3, 4))), ShapeError, r"\(3, 4\) for a region of shape \(2, 4\) of .*x.zarr"),
        (put(np.s_[0], resume=True), ArgumentError, "resume=True"),
        (put(np.s_[0], compression="zstd"), ArgumentError, "has its codecs already"),
        (put(np.s_[0], chunks={out / "x.zarr": (1, 1)}), ShapeError, "nothing is stored to"),
        (put(np.s_[0], oc.asarray(np.ones(4, "datetime64[s]"))), UnsupportedFormatError, "dates or text"),
        (lambda: oc.store({(out / "x.zarr",): 1.0}), ArgumentError, "a path and an index"),
    ]


def test_refusals_change_nothing(out: Path) -> None:
    cases = refusals(out)
    before = tree_hash(out)
    with session():
        for call, kind, match in cases:
            with pytest.raises(kind, match=match):
                call()
    assert tree_hash(out) == before
    assert not list(out.glob(".outcore*"))


def test_volumes_are_refused(out: Path) -> None:
    path = volumes.made(out, 1, 1).home / "x.zarr"
    with session():
        oc.store({path: np.ones((4, 2))})
        with pytest.raises(UnsupportedFormatError, match="lies in the volume"):
            oc.append(path, np.ones((4, 2)), axis=0)


@pytest.mark.parametrize("compression", [None, "zstd"])
def test_kills_leave_the_old_or_the_new_array(out: Path, tmp_path: Path, compression: str | None) -> None:
    path, end = out / "x.zarr", tmp_path / "end"
    moments = random.Random(34)

    def child(*words: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "support.updates", *words]
        environment = os.environ | {"PYTHONPATH": PATHS}
        return subprocess.Popen(command, env=environment, stdin=-1, stdout=-1, stderr=-1, text=True)

    with session():
        updates.make(path, compression)
    mother, reader = child("fork_updates", str(path)), child("watch", str(path), str(end))
    assert mother.stdin
    assert mother.stdout
    assert reader.stdout
    assert reader.stdout.readline() == "ready\n"
    first, count = 0, 0
    for _ in range(KILLS // 2):
        mother.stdin.write("\n")
        mother.stdin.flush()
        while not (said := mother.stdout.readline()).startswith("process"):
            assert said == "done\n"
        process = int(said.split()[1])
        for _ in range(moments.randint(1, 4)):
            began = time.perf_counter()
            assert mother.stdout.readline() == "done\n"
            count += 1
        time.sleep(moments.uniform(0, 1.2) * (time.perf_counter() - began))
        os.kill(process, signal.SIGKILL)
        array = load(path)
        assert updates.flaw(array) is None
        last = int(array[1, 0]) + (len(array) - updates.START) // updates.GROWTH
        assert last >= first + 1
        first = last
    end.touch()
    mother.stdin.close()
    assert mother.wait(60) == 0
    said, wrong = reader.communicate(timeout=60)
    assert said.strip().isdigit(), (said, wrong)
    assert int(said) > 0
    assert last >= count
    with session():
        oc.append(path, np.zeros((0, updates.WIDTH), "int32"), axis=0)
    assert [entry.name for entry in out.iterdir()] == ["x.zarr"]


def test_members_of_groups_grow_and_groups_know(tmp_path: Path) -> None:
    path = tmp_path / "g.zarr"
    x = oc.asarray(np.arange(6.0).reshape(3, 2)).annotate(dims=("time", "k"))
    oc.store({path: oc.group(deep=oc.group(x=x), attrs={"title": "kept"})}, chunks={f"{path}/deep/x": (2, 2)})
    oc.append(path / "deep/x", np.ones((2, 2)), axis="time")
    for group in (zarr.open_group(path, use_consolidated=True), zarr.open_group(path, use_consolidated=False)):
        np.testing.assert_array_equal(group["deep/x"][:], np.concatenate([x.compute(), np.ones((2, 2))]))
        assert group.attrs["title"] == "kept"
    with pytest.raises(ShapeError):
        oc.append(path / "deep/x", np.ones((2, 3)), axis="time")
    assert zarr.open_group(path, use_consolidated=True)["deep/x"].shape == (5, 2)
