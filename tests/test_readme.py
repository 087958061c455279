"""The README from the top, as a new user pastes it: every block, and every line of its tables."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import outcore as oc
from outcore._command.cli import main

TEXT = (Path(__file__).parent.parent / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", TEXT, re.DOTALL)
CODE = re.compile(r"`([^`]+)`")


def table(heading):
    """The cells of the first table below a heading, as rows."""
    rows = TEXT.split(f"## {heading}\n")[1].split("\n## ")[0].splitlines()
    return [[cell.strip() for cell in row.strip("|").split(" | ")] for row in rows if row.startswith("| ")][2:]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with oc.config.set(progress=False):
        yield tmp_path


def test_the_page_has_at_most_150_lines_and_the_first_screen_opens_a_file():
    lines = TEXT.splitlines()
    assert len(lines) <= 150
    assert any("oc.open(" in line for line in lines[:30])


def test_every_block_runs_as_printed_and_prints_what_is_shown(folder):
    """In a process of its own, since its limit is the process's."""
    np.save("yours.npy", np.random.default_rng(0).normal(size=(20_000, 5)))
    assert len(BLOCKS) == 2
    pasted = "\nprint('---')\n".join(code for code, _ in BLOCKS)
    done = subprocess.run([sys.executable, "-c", pasted], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for printed, (_, shown) in zip(done.stdout.split("---\n"), BLOCKS, strict=True):
        assert printed
        assert not shown or printed == shown
    np.testing.assert_array_equal(np.load("sorted.npy"), np.sort(np.load("yours.npy"), axis=0))


def test_every_line_of_the_table_of_habits_runs(folder):
    names = habits(folder)
    for code in (code for row in table("You know, you type") for code in CODE.findall(row[1])):
        if code.startswith(("outcore ", "pip ")):
            continue
        if code.startswith(("from ", "A = ", "G = ")):
            exec(code, names)
        elif code in ("oc.jit", "oc.aggregate"):
            assert callable(eval(code, names))
        else:
            assert eval(code, names) is not None
    for command in ("info", "explain"):
        assert command in main.commands


def habits(folder):
    """Whatever the table takes for granted, in a size that takes no time."""
    import networkx as nx
    import scipy.io
    import scipy.sparse as sp
    import xarray as xr

    rng = np.random.default_rng(0)
    xr.Dataset({"t2m": (("time", "y", "x"), rng.normal(size=(6, 4, 3)))}).to_netcdf("era5.nc", engine="h5netcdf")
    scipy.io.mmwrite("a.mtx", sp.diags_array([[2.0] * 20, [-1.0] * 19, [-1.0] * 19], offsets=[0, 1, -1]).tocoo())
    (folder / "e.tsv").write_text("".join(f"{k}\t{(k * 7 + 1) % 50}\n" for k in range(50)))
    return {
        "oc": oc,
        "np": np,
        "xr": xr,
        "nx": nx,
        "X": oc.asarray(rng.normal(size=(200, 4))),
        "x": oc.asarray(rng.normal(size=(20, 4))),
        "b": np.ones(20),
        "labels": np.arange(20) % 3,
        "keys": np.arange(20)[::-1].copy(),
        "values": np.arange(20.0),
        "state": np.ones(3),
        "step": lambda state: state / 2,
        "converged": lambda old, new, iteration: oc.max(oc.abs(new)) < 1e-3,
        "f": lambda block: block + 1,
    }
