"""Factorizations that were killed or failed are gone on with to the same bits, from subtrees that are durable."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from support.definite import grid
from support.killing import PATHS
from support.running import files_below, session
from support.solving_child import DENSE, LARGE, LARGE_POOL, POOL, SPARSE, factor, make_inputs, right_of

import outcore as oc
from outcore.errors import ArgumentError, OutcoreError, ResumeWarning, StorageError, TargetExistsError

HEADER, RECORD = 64, 16  # bytes of a journal, and of what it says of a tile
BEGUN = Path(".outcore-resume-f.ocf")


def tiles_in(journal: Path) -> int:
    try:
        return (journal.stat().st_size - HEADER) // RECORD
    except FileNotFoundError:
        return 0


def kill_factorization(kind: str, data: Path, out: Path, scratch: Path, tiles: int) -> None:
    """Has a child make a factor, and kills it when so many tiles of it are durable."""
    command = [sys.executable, "-m", "support.solving_child", kind, str(data), str(out), str(scratch), "resume"]
    child = subprocess.Popen(command, env=os.environ | {"PYTHONPATH": PATHS}, stdout=subprocess.PIPE, text=True)
    end = time.monotonic() + 120
    while tiles_in(out / BEGUN / "journal") < tiles:
        assert child.poll() is None, "the child ended before it was killed"
        assert time.monotonic() < end
        time.sleep(0.001)
    child.kill()
    child.communicate()
    assert not (out / "f.ocf").exists()


def fail_factorization(kind: str, data: Path, out: Path, scratch: Path, write: int) -> None:
    """Has a factorization fail at some write of it, with what was written before durable."""
    with session(scratch, pool_limit=LARGE_POOL, faults=f"write:{write}:enospc"), pytest.raises(StorageError):
        factor(kind, data, out / "f.ocf", resume=True)
    assert not (out / "f.ocf").exists()


@pytest.fixture(scope="module")
def definite(shared: Path) -> Path:
    """A folder of the large definite matrix, and of its factor."""
    make_inputs("spd", shared, is_large=True)
    with session(shared, pool_limit=LARGE_POOL):
        factor("spd", shared, shared / "whole.ocf")
    return shared


@pytest.mark.parametrize("kind", [*SPARSE, *DENSE])
def test_killed_factorizations_go_on_to_the_same_bits(kind: str, data: Path, out: Path, scratch: Path) -> None:
    make_inputs(kind, data, is_large=True)
    with session(scratch, pool_limit=LARGE_POOL):
        with oc.profile() as whole:
            factor(kind, data, out / "whole.ocf", resume=True)
        factor(kind, data, out / "plain.ocf")
    expected = (out / "whole.ocf").read_bytes()
    assert (out / "plain.ocf").read_bytes() == expected
    for tiles in (1, 12):
        kill_factorization(kind, data, out, scratch, tiles)
    with session(scratch, pool_limit=LARGE_POOL * 2):
        with oc.profile() as rest:
            made = factor(kind, data, out / "f.ocf", resume=True)
        assert made.solve(right_of(made)).shape == (made.shape[1], 3)
    assert (out / "f.ocf").read_bytes() == expected
    assert set(files_below(out)) == {"f.ocf", "whole.ocf", "plain.ocf"}
    assert not any("beside" in path for path in files_below(scratch))
    # Tiles that are durable are not written again; what is spilled meanwhile, so as to read less, is the plan's choice.
    assert rest.bytes_written - rest.bytes_spilled < whole.bytes_written - whole.bytes_spilled
    assert rest.bytes_read + rest.bytes_written < whole.bytes_read + whole.bytes_written
    for seen in (whole, rest):
        # The copy in the order of elimination, before it, has bounds.
        forecast, counted = seen.outcomes[-1].other["stages"][-1]
        if kind == "low rank":
            assert all(seen <= most for seen, most in zip(counted[:2], forecast[:2], strict=True))
        else:
            assert forecast[:2] == counted[:2]
        assert counted[2] <= forecast[2]


def test_contributions_that_are_durable_spare_what_is_below_them(definite: Path, out: Path, scratch: Path) -> None:
    fail_factorization("spd", definite, out, scratch, write=200)
    assert any("beside" in path for path in files_below(scratch))
    # Contributions that are kept belong to the path of their factor.
    alone = out.parent / "alone"
    shutil.copytree(out, alone)
    (alone / BEGUN / "target").write_bytes(os.fsencode(alone / "f.ocf"))
    written = []
    for folder in (out, alone):
        with session(scratch, pool_limit=LARGE_POOL), oc.profile() as rest:
            factor("spd", definite, folder / "f.ocf", resume=True)
        assert (folder / "f.ocf").read_bytes() == (definite / "whole.ocf").read_bytes()
        written.append(rest.bytes_written)
    assert written[0] < written[1]


@pytest.mark.parametrize("what", ["journal", "new", "beside"])
def test_a_flipped_byte_is_not_believed(what: str, definite: Path, out: Path, scratch: Path) -> None:
    fail_factorization("spd", definite, out, scratch, write=200)
    beside = [scratch / path for path in files_below(scratch) if "beside" in path and path.endswith("new")]
    for path in beside if what == "beside" else [out / BEGUN / what]:
        size = path.stat().st_size
        with path.open("r+b") as file:
            for place in range(70, size, max(1, size // 40)):
                file.seek(place)
                byte = file.read(1)
                file.seek(place)
                file.write(bytes([byte[0] ^ 16]))
    with session(scratch, pool_limit=LARGE_POOL):
        factor("spd", definite, out / "f.ocf", resume=True)
    assert (out / "f.ocf").read_bytes() == (definite / "whole.ocf").read_bytes()


def test_what_fails_is_gone_on_with(data: Path, out: Path, scratch: Path) -> None:
    make_inputs("sym", data)
    with session(scratch, pool_limit=POOL):
        factor("sym", data, out / "whole.ocf")
    failed = 0
    for fault in ("write:{n}:enospc", "read:{n}", "sync:{n}", "torn-write:{n}", "rename:{n}"):
        for n in (1, 2, 5, 12, 30, 70):
            with session(scratch, pool_limit=POOL, faults=fault.format(n=n)):
                try:
                    factor("sym", data, out / "f.ocf", resume=True)
                except OutcoreError:
                    failed += 1
            with session(scratch, pool_limit=POOL), oc.profile() as rest:
                factor("sym", data, out / "f.ocf", resume=True)
            forecast, counted = rest.outcomes[-1].other["stages"][-1]
            assert forecast[:2] == counted[:2], (fault, n)
            assert (out / "f.ocf").read_bytes() == (out / "whole.ocf").read_bytes(), (fault, n)
            (out / "f.ocf").unlink()
            assert set(files_below(out)) == {"whole.ocf"}
    assert failed >= 12


def test_contributions_that_a_killed_process_left_behind_a_complete_factor_are_removed(
    definite: Path, out: Path, scratch: Path
) -> None:
    """As if a process had died between giving the factor its name and removing what is beside it."""
    fail_factorization("spd", definite, out, scratch, write=200)
    left = next(path for path in scratch.iterdir() if "resume" in path.name)
    saved = shutil.copytree(left, out.parent / "saved")
    with session(scratch, pool_limit=LARGE_POOL):
        factor("spd", definite, out / "f.ocf", resume=True)
    assert not left.exists()
    shutil.copytree(saved, left)
    left.chmod(0o700)
    with session(scratch, pool_limit=LARGE_POOL):
        factor("spd", definite, out / "f.ocf", resume=True)
    assert not left.exists()


def test_an_empty_matrix_is_gone_on_with(out: Path, scratch: Path) -> None:
    empty = sp.csr_array((0, 0))
    with session(scratch, faults="write:2:enospc"), pytest.raises(StorageError):
        oc.sparse.linalg.analyze(empty, "spd").factorize(out / "f.ocf", resume=True)
    with session(scratch):
        F = oc.sparse.linalg.analyze(empty, "spd").factorize(out / "f.ocf", resume=True)
        assert F.solve(np.ones(0)).shape == (0,)


def test_other_values_begin_anew_and_say_so(definite: Path, out: Path, scratch: Path) -> None:
    fail_factorization("spd", definite, out, scratch, write=130)
    other = LARGE["spd"]() * 2.0
    with session(scratch, pool_limit=LARGE_POOL):
        F = oc.sparse.linalg.analyze(other, "spd", ordering="nd")
        with pytest.warns(ResumeWarning, match=r"f\.ocf begins anew"):
            F.factorize(out / "f.ocf", resume=True)
        x = F.solve(np.ones(F.shape[0]))
    np.testing.assert_allclose(other @ x, 1.0, atol=1e-10)


def test_a_complete_factor_is_the_result_and_another_is_in_the_way(out: Path) -> None:
    matrix = grid(8, 8, 8)
    F = oc.sparse.linalg.analyze(matrix, "spd").factorize(out / "f.ocf", resume=True)
    x, stamp = F.solve(np.ones(512)), (out / "f.ocf").stat().st_mtime_ns
    again = oc.sparse.linalg.analyze(matrix, "spd").factorize(out / "f.ocf", resume=True)
    assert (out / "f.ocf").stat().st_mtime_ns == stamp
    np.testing.assert_array_equal(again.solve(np.ones(512)), x)
    with pytest.raises(TargetExistsError):
        oc.sparse.linalg.analyze(matrix * 3.0, "spd").factorize(out / "f.ocf", resume=True)
    with pytest.raises(ArgumentError, match="resume=True goes on with a file"):
        F.factorize(resume=True)


def test_a_guess_that_was_wrong_is_not_made_again(out: Path, scratch: Path) -> None:
    """A diagonal that is positive, of a matrix that is not definite: what was begun is the other factor."""
    matrix = sp.csr_array(sp.diags([3.0, 1.0, 3.0], offsets=[-1, 0, 1], shape=(900, 900)))
    with session(scratch):
        first = oc.sparse.linalg.analyze(matrix).factorize(out / "f.ocf", resume=True)
        assert set(files_below(out)) == {"f.ocf"}
        with oc.profile() as again:
            second = oc.sparse.linalg.analyze(matrix).factorize(out / "f.ocf", resume=True)
        assert (first.kind, second.kind) == ("sym", "sym")
        assert second.inertia == first.inertia
    assert again.bytes_written < (out / "f.ocf").stat().st_size
