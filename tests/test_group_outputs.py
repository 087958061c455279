"""Groups that replace others: the old one or the new one is there, whenever the work ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import outcore as oc


@pytest.mark.parametrize(
    ("function", "calls_max", "exchange"),
    [("rename", 2, "call"), ("rename", 4, "lambda *paths: False"), ("fsync", 4, "call")],
)
def test_a_group_whose_writing_ends_is_as_it_was(tmp_path: Path, function: str, calls_max: int, exchange: str) -> None:
    """Whatever call of the system is the last, the old group or the new one is there, or is put back by the next.

    Where names can be exchanged, the path leads to a group at every moment.
    """
    path = tmp_path / "out.zarr"
    code = f"""
import os, sys
import outcore as oc
from outcore import _core
call = _core.exchange
_core.exchange = {exchange}
left = int(sys.argv[2])
def ending(*args, call=os.{function}):
    global left
    left -= 1
    if left < 0:
        os._exit(9)
    return call(*args)
oc.store({{sys.argv[1]: oc.group(x=oc.arange(3))}}, overwrite=True)
os.{function} = ending
oc.store({{sys.argv[1]: oc.group(x=oc.arange(4), y=oc.arange(2))}}, overwrite=True)
"""
    for calls in range(calls_max):
        assert subprocess.run([sys.executable, "-c", code, path, str(calls)], check=False).returncode == 9
        if exchange == "call":
            assert oc.open(path)["x"].shape == (3,)
        oc.store({tmp_path / "other.zarr": oc.arange(2)}, overwrite=True)  # cleans up
        assert oc.open(path)["x"].shape == (3,)
        assert sorted(os.listdir(tmp_path)) == ["other.zarr", "out.zarr"]


def test_what_killed_processes_left_beside_an_output_is_cleared_away(tmp_path: Path) -> None:
    target = str(tmp_path / "g.zarr")
    program = f"""
import os
from outcore._run.typed_files import partial_folder
with partial_folder({target!r}, {target!r}) as folder:
    os.mkdir(folder + "/new")
    os.kill(os.getpid(), 9)
"""
    assert subprocess.run([sys.executable, "-c", program], timeout=60).returncode == -signal.SIGKILL
    assert len(list(tmp_path.glob(".outcore-partial-*"))) == 1
    oc.store({target: oc.group(x=oc.arange(3))})
    assert os.listdir(tmp_path) == ["g.zarr"]
