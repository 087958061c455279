"""Files of dates and text keep their type, and are complete or absent."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.dates import same
from support.running import session

import outcore as oc
from outcore.errors import (
    ArgumentError,
    MissingFileError,
    ShapeError,
    StorageError,
    TargetExistsError,
    UnsupportedFormatError,
)


@pytest.mark.parametrize("dtype", ["<M8[ns]", "<m8[s]", ">M8[ms]", "<M8[25s]", "<M8[M]"])
@pytest.mark.parametrize("shape", [(0,), (7,), (30, 40), ()])
def test_files_keep_their_unit(dtype: str, shape: tuple[int, ...], tmp_path: Path) -> None:
    x = np.random.default_rng(3).integers(-(2**40), 2**40, shape).astype(dtype)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "f.npy", np.asfortranarray(x) if x.ndim else x)
    native = x.astype(x.dtype.newbyteorder("="))
    with session():
        same(oc.open(tmp_path / "x.npy"), native)
        same(oc.open(tmp_path / "f.npy"), native)
        same(oc.asarray(np.load(tmp_path / "x.npy", mmap_mode="r")), native)
        assert isinstance(oc.open(tmp_path / "x.npy", view="int64"), oc.Array)


def test_a_view_gives_integers_a_unit(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(5))
    oc.store({tmp_path / "x.zarr": oc.arange(5)})
    with session():
        for lazy in (oc.open(tmp_path / "x.npy", view="M8[h]"), oc.dates.view(oc.open(tmp_path / "x.zarr"), "M8[h]")):
            same(lazy, np.arange(5).astype("M8[h]"))


def test_a_file_larger_than_the_pool_is_read_once(data: Path) -> None:
    when = np.datetime64("1950-01-01", "s") + np.arange(3_000_000) * np.timedelta64(701, "s")
    np.save(data / "t.npy", when)
    with session(pool_limit=12 << 20, threads=1):
        months: Any = oc.open(data / "t.npy").astype("M8[M]")
        late = (months >= "1990-06").sum()
        assert oc.explain(late).bytes_read <= 1.01 * when.nbytes
        assert late.item() == (when.astype("M8[M]") >= np.datetime64("1990-06")).sum()
        assert oc.explain(months.max()).bytes_read <= 1.01 * when.nbytes


@example(seed=0)
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 99))
def test_zarr_pythons_dates_are_read_through_it(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    zarr = pytest.importorskip("zarr")
    folder = tmp_path_factory.mktemp("zarr")
    x = np.random.default_rng(seed).integers(-(2**40), 2**40, (20, 30)).astype("M8[ms]")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the type is an extension of the format
        made: Any = zarr.create_array(str(folder / "x.zarr"), shape=x.shape, dtype=x.dtype, chunks=(8, 8))
        made[...] = x
        with session():
            same(oc.asarray(made), x)
            same(oc.asarray(made, dtype="M8[s]")[3:9].max(axis=0), x.astype("M8[s]")[3:9].max(axis=0))


@pytest.mark.parametrize("dtype", ["M8[ns]", "m8[25s]", "M8[M]", "S3", "U5"])
@pytest.mark.parametrize("shape", [(7,), (30, 40), (), (0,)])
def test_what_is_stored_keeps_its_type(dtype: str, shape: tuple[int, ...], tmp_path: Path) -> None:
    x = np.random.default_rng(3).integers(0, 100, shape).astype(dtype)
    with session():
        oc.store({tmp_path / "x.npy": oc.asarray(x), tmp_path / "y.npy": oc.arange(4)})
        found = np.load(tmp_path / "x.npy")
        np.testing.assert_array_equal(found, x, strict=True)
        np.testing.assert_array_equal(oc.open(tmp_path / "x.npy").compute(), x)
        np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), np.arange(4))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.npy", "y.npy"]


def test_a_stored_output_replaces_or_refuses(tmp_path: Path) -> None:
    days = np.arange(5).astype("M8[D]")
    np.save(tmp_path / "x.npy", np.zeros(3))
    (tmp_path / "x.npy").chmod(0o640)
    (tmp_path / "link.npy").symlink_to("x.npy")
    (tmp_path / "folder.npy").mkdir()
    with session():
        lazy: Any = oc.asarray(days)
        for name in ("x.npy", "link.npy", "folder.npy"):
            with pytest.raises(TargetExistsError, match=name):
                oc.store({tmp_path / name: lazy})
        with pytest.raises(TargetExistsError):
            oc.store({tmp_path / "folder.npy": lazy}, overwrite=True)
        oc.store({tmp_path / "link.npy": lazy}, overwrite=True)
        assert (tmp_path / "link.npy").is_symlink()
        np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), days)
        assert (tmp_path / "x.npy").stat().st_mode & 0o777 == 0o640
        again: Any = oc.open(tmp_path / "x.npy")
        oc.store({tmp_path / "x.npy": again + np.timedelta64(1, "h")}, overwrite=True)
        assert np.load(tmp_path / "x.npy").dtype == "M8[h]"
        assert oc.explain({tmp_path / "z.npy": lazy}).bytes_written > 0
        for refusal, text, call in (
            (
                UnsupportedFormatError,
                r"only \.npy",
                lambda: oc.store({tmp_path / "z.zarr": oc.asarray(np.array(["a"]))}),
            ),
            (UnsupportedFormatError, "beside", lambda: oc.store({tmp_path / "z.npy": lazy, "z.zarr": oc.arange(3)})),
            (ArgumentError, "resume", lambda: oc.store({tmp_path / "z.npy": lazy}, resume=True)),
            (ShapeError, "chunks", lambda: oc.store({tmp_path / "z.npy": lazy}, chunks={"z.npy": (2,)})),
            (MissingFileError, "gone", lambda: oc.store({tmp_path / "gone" / "z.npy": lazy})),
            (
                ArgumentError,
                "twice",
                lambda: oc.store({tmp_path / "x.npy": lazy, tmp_path / "link.npy": lazy}, overwrite=True),
            ),
        ):
            with pytest.raises(refusal, match=text):
                call()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder.npy", "link.npy", "x.npy"]


def test_outputs_appear_together_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.save(tmp_path / "a.npy", np.ones(3))
    link = os.link

    def failing(source: Any, target: Any) -> None:
        if str(target).endswith("c.npy"):
            raise OSError(errno.EIO, "the disk is tired")
        link(source, target)

    monkeypatch.setattr(os, "link", failing)
    lazy: Any = oc.asarray(np.arange(5).astype("M8[D]"))
    with session(), pytest.raises(StorageError, match=r"c\.npy.*Input/output error") as raised:
        oc.store({tmp_path / f"{name}.npy": lazy for name in "abc"}, overwrite=True)
    assert raised.value.errno == errno.EIO
    assert [path.name for path in tmp_path.iterdir()] == ["a.npy"]
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), np.ones(3))


KILLED = """
import os, sys, numpy as np, outcore as oc
from outcore._run import typed_files
def die(*_): os.kill(os.getpid(), 9)
setattr(typed_files if sys.argv[1] == "_write_header" else typed_files.os, sys.argv[1], die)
oc.store({"x.npy": oc.asarray(np.arange(5).astype("M8[D]"))}, overwrite=True)
"""


@pytest.mark.parametrize("moment", ["_write_header", "chmod", "replace"])
def test_a_killed_run_leaves_what_was_there(moment: str, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones(3))
    done = subprocess.run([sys.executable, "-c", KILLED, moment], cwd=tmp_path, capture_output=True)
    assert done.returncode == -9, done.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), np.ones(3))
    with session():
        oc.store({tmp_path / "x.npy": oc.asarray(np.arange(5).astype("M8[D]"))}, overwrite=True)
    subprocess.run([sys.executable, "-m", "outcore", "clean", str(tmp_path)], check=True, capture_output=True)
    assert [path.name for path in tmp_path.iterdir()] == ["x.npy"]
    assert np.load(tmp_path / "x.npy").dtype == "M8[D]"


def test_persist_keeps_the_unit(tmp_path: Path) -> None:
    days = np.arange(5).astype("M8[D]")
    with session():
        both = oc.persist(oc.asarray(days), oc.arange(3), directory=tmp_path)
        same(both[0], days)
        same(oc.persist(oc.asarray(days)), days)
        first, second = oc.compute(oc.asarray(days), oc.arange(3))
        np.testing.assert_array_equal(first, days, strict=True)
        np.testing.assert_array_equal(second, np.arange(3), strict=True)
