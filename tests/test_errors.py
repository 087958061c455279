"""Errors keep their facts across the border: path, offset, cause, errno, need and free, and Python's own attributes."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from support import workloads
from support.running import run, session

import outcore as oc
from outcore import errors


@contextmanager
def without_privileges() -> Iterator[None]:
    """As nobody, where the tests run as root, who may do everything."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.parametrize("name", ["none.npy", "none.zarr", "none"])
def test_a_missing_file_is_named_as_python_names_it(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    with pytest.raises(errors.MissingFileError, match=name) as raised:
        oc.open(path)
    assert isinstance(raised.value, FileNotFoundError)
    assert raised.value.filename == str(path)
    assert raised.value.errno == errno.ENOENT
    assert raised.value.strerror == os.strerror(errno.ENOENT)
    assert raised.value.details["path"] == str(path)
    assert raised.value.details["action"] == "open"


@pytest.mark.parametrize("name", ["x.npy", "x.zarr"])
def test_a_file_one_may_not_read_is_a_permission_error(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    with session():
        oc.store({path: oc.zeros((3,))})
    path.chmod(0)
    with without_privileges(), pytest.raises(PermissionError, match=name) as raised:
        oc.open(path)
    assert isinstance(raised.value, errors.PermissionDeniedError)
    assert raised.value.code == "permission"
    assert raised.value.errno == errno.EACCES
    assert raised.value.filename.startswith(str(path))


def test_a_folder_one_may_not_write_to_is_a_permission_error(tmp_path: Path) -> None:
    # Not below tmp_path, which nobody but its owner may enter.
    folder = Path(tempfile.mkdtemp(prefix="locked"))
    folder.chmod(0o555)
    try:
        with session(tmp_path), without_privileges(), pytest.raises(PermissionError, match="locked") as raised:
            oc.store({folder / "y.npy": oc.zeros((3,))})
    finally:
        folder.rmdir()
    assert isinstance(raised.value, errors.PermissionDeniedError)
    assert raised.value.errno == errno.EACCES
    assert raised.value.filename.startswith(str(folder))


def test_a_failed_read_says_where_and_why(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros(100_000))
    with session(faults="read:1"), pytest.raises(errors.StorageError) as raised:
        oc.compute(oc.open(tmp_path / "x.npy").sum())
    error = raised.value
    assert (error.errno, error.filename) == (errno.EIO, str(tmp_path / "x.npy"))
    assert error.strerror == os.strerror(errno.EIO)
    assert error.details["action"] == "read"
    assert error.details["offset"] % 4096 == 0
    assert "Input/output error" in error.details["cause"]
    assert str(tmp_path / "x.npy") in str(error)


def test_a_full_disk_met_while_writing_is_one(tmp_path: Path) -> None:
    with session(faults="write:1:enospc"), pytest.raises(errors.DiskFullError) as raised:
        oc.store({tmp_path / "y.npy": oc.ones((100_000,))})
    assert raised.value.errno == errno.ENOSPC
    assert raised.value.filename.startswith(str(tmp_path))
    assert raised.value.details["action"] == "write"


def test_a_disk_too_small_is_told_by_its_numbers(tmp_path: Path) -> None:
    with session(), pytest.raises(errors.DiskFullError) as raised:
        oc.store({tmp_path / "y.npy": oc.ones((1 << 36,))})
    assert raised.value.details["need"] >= 8 << 36
    assert 0 < raised.value.details["free"] < 8 << 36
    assert raised.value.errno == errno.ENOSPC


def test_a_quota_is_told_by_its_numbers(data: Path, out: Path, scratch: Path) -> None:
    work = workloads.nmf(data, 32)
    options = {"rewrites": {"all": False}, "policy": "clean-first-lru", "pool_limit": 12 << 20}
    with session(scratch, scratch_quota=4096, **options), pytest.raises(errors.ScratchQuotaError) as raised:
        run(work.targets(out))
    assert raised.value.details["quota"] == 4096
    assert raised.value.details["need"] > 4096
    assert raised.value.details["used"] == 0


def test_an_existing_target_is_named(tmp_path: Path) -> None:
    path = tmp_path / "y.npy"
    with session():
        oc.store({path: oc.zeros((3,))})
        with pytest.raises(FileExistsError) as raised:
            oc.store({path: oc.zeros((3,))})
    assert (raised.value.filename, raised.value.errno) == (str(path), errno.EEXIST)


def test_a_changed_source_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.zeros(10))
    x = oc.open(path)
    np.save(path, np.ones(11))
    with session(), pytest.raises(errors.SourceChangedError) as raised:
        oc.compute(x)
    assert raised.value.filename == str(path)
    assert raised.value.details["cause"]


def test_a_file_of_another_kind_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("1 2 3\n")
    with pytest.raises(errors.FormatError) as raised:
        oc.open(tmp_path / "x.txt")
    assert raised.value.details["path"] == str(tmp_path / "x.txt")
    assert raised.value.details["cause"]


def test_facts_survive_pickling_as_pythons_do() -> None:
    import pickle

    error = errors.from_code("permission", "x: cannot open", {"path": "x", "errno": errno.EPERM})
    again = pickle.loads(pickle.dumps(error))
    assert (again.errno, again.filename, again.strerror) == (errno.EPERM, "x", os.strerror(errno.EPERM))


def test_a_bug_of_ours_is_no_error_of_the_callers() -> None:
    error = errors.from_code("internal", "a worker stopped")
    assert isinstance(error, errors.InternalError)
    assert not isinstance(error, errors.PlanError)
