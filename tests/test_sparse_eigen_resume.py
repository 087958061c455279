"""Eigenvalues that are gone on with after a kill: the same bits, little done twice, nobody else's state."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from support.eigenproblems import SOLVERS, digest, solve, symmetric
from support.killing import ROOT
from support.running import files_below, session
from support.sizes import sized

import outcore as oc
from outcore.errors import ArgumentError
from outcore.sparse import linalg
from outcore.sparse.linalg._krylov import Krylov

KILLS = sized(2, 10)
BASIS = 40  # vectors at most, of any problem here
MIB = 1 << 20


class StopError(Exception):
    """Ends a computation on its way."""


@contextmanager
def counting(most: int | None = None) -> Iterator[list[int]]:
    """Counts products with the matrix; stops at one more than `most`."""
    expand, count = Krylov.expand, [0]

    def counted(space: Krylov) -> None:
        if count[0] == most:
            raise StopError
        count[0] += 1
        expand(space)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Krylov, "expand", counted)
        yield count


def stored(order: int, folder: Path, seed: int = 0) -> Path:
    oc.sparse.from_scipy(symmetric(order, seed), folder / "a.ocs", overwrite=True)
    return folder / "a.ocs"


def products(run: Callable[[], Any], most: int | None = None) -> tuple[int, Any]:
    """How many products it took, and what was found; nothing where it was stopped."""
    found = None
    with counting(most) as count, suppress(StopError):
        found = run()
    assert (found is None) == (most is not None)
    return count[0], found


@pytest.mark.parametrize("name", ["eigsh", "eigs", "svds"])
def test_killed_at_random_moments_it_comes_to_the_same_bits(name: str, data: Path, scratch: Path) -> None:
    paths = os.pathsep.join([str(ROOT), str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "support.eigenproblems", name, stored(2000, data), scratch, KILLS]
    ended = subprocess.run(
        [str(part) for part in command], env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
    found, killed = json.loads(ended.stdout)
    assert killed >= KILLS
    assert len(found) >= 2
    assert len(set(found)) == 1
    assert files_below(scratch) == []


@pytest.mark.parametrize("name", SOLVERS)
def test_it_goes_on_where_it_was(name: str, data: Path, scratch: Path) -> None:
    matrix = stored(1000, data)
    whole, expected = products(lambda: solve(name, matrix, scratch, None))
    half = whole // 2
    products(lambda: solve(name, matrix, scratch, 1), half)
    again, found = products(lambda: solve(name, matrix, scratch, 1))
    assert found == expected
    assert whole - half <= again < min(whole, whole - half + BASIS)
    assert files_below(scratch) == []


def test_vectors_on_disk_go_on_in_other_memory(data: Path, scratch: Path) -> None:
    path = stored(9000, data)

    def run(pool: int, threads: int, checkpoint: int | None = 2) -> str:
        with session(scratch, pool_limit=pool, threads=threads):
            a = oc.sparse.open(path)
            return digest(linalg.eigsh(a, k=2, which="LA", tol=1e-3, checkpoint=checkpoint))

    whole, expected = products(lambda: run(100 * MIB, 2, None))
    products(lambda: run(8 * MIB, 2), whole // 3)
    products(lambda: run(100 * MIB, 1), whole // 3)
    again, found = products(lambda: run(8 * MIB, 2))
    assert found == expected
    assert again < whole // 2 + BASIS
    assert files_below(scratch) == []


def test_a_state_that_is_damaged_does_not_count(data: Path, scratch: Path) -> None:
    matrix = stored(1000, data)
    whole, expected = products(lambda: solve("eigs", matrix, scratch, None))
    products(lambda: solve("eigs", matrix, scratch, 1), whole // 2)
    (state,) = scratch.rglob("state-*-0.npy")
    values = state.read_bytes()
    state.write_bytes(values[:-1] + bytes([values[-1] ^ 1]))
    assert products(lambda: solve("eigs", matrix, scratch, 1)) == (whole, expected)


def test_a_changed_file_begins_anew(data: Path, scratch: Path) -> None:
    matrix = stored(1000, data)
    products(lambda: solve("eigs", matrix, scratch, 1), 60)
    stored(1000, data, seed=1)
    expected = products(lambda: solve("eigs", matrix, scratch, None))
    assert products(lambda: solve("eigs", matrix, scratch, 1)) == expected


def test_other_arguments_have_states_of_their_own(data: Path, scratch: Path) -> None:
    given = {"k": 4, "which": "LA", "ncv": 20, "block_size": 1, "seed": 0, "tol": 1e-6, "sigma": None, "v0": None}
    sigma = {"which": "LM", "sigma": 10.0}
    changes: list[dict[str, Any]] = [{"k": 3}, {"which": "SA"}, {"which": "LM"}, {"ncv": 21}, {"block_size": 2}]
    changes += [{"seed": 1}, {"tol": 1e-7}, sigma, sigma | {"sigma": 10.5}, {"v0": np.ones(300)}]
    changes += [{"v0": np.arange(300.0)}]
    with session(scratch):
        a = oc.sparse.open(stored(300, data))
        calls: list[Callable[[], Any]] = [
            lambda more=given | change: linalg.eigsh(a, **more, checkpoint=1) for change in [{}, *changes]
        ]
        calls.append(lambda: linalg.eigsh(a, **given | sigma | {"OPinv": a}, checkpoint=1))
        calls.append(lambda: linalg.eigs(a, k=4, ncv=20, tol=1e-6, checkpoint=1))
        calls.append(lambda: linalg.svds(a, k=4, ncv=20, tol=1e-6, checkpoint=1))
        for call in [*calls, *calls]:
            products(call, 0)
        assert len(list(scratch.glob("outcore-resume-*"))) == len(calls)


def test_what_is_in_memory_is_told_by_its_values(scratch: Path) -> None:
    matrix = symmetric(300)
    other = matrix + 1e-9 * scipy.sparse.eye_array(300)
    with session(scratch):

        def search(a: Any) -> Callable[[], Any]:
            return lambda: digest(linalg.eigsh(a, k=4, which="LA", checkpoint=1))

        whole, expected = products(lambda: digest(linalg.eigsh(matrix, k=4, which="LA")))
        products(search(matrix), whole // 2)
        anew, _ = products(search(other))
        assert anew >= whole - 1
        count, found = products(search(matrix.copy()))
        assert found == expected
        assert count < whole


def test_values_that_did_not_converge_leave_nothing(data: Path, scratch: Path) -> None:
    with session(scratch):
        a = oc.sparse.open(stored(300, data))
        with pytest.raises(linalg.NotConvergedError, match="in 3 restarts"):
            linalg.eigsh(a, which="SA", maxiter=3, checkpoint=1)
    assert files_below(scratch) == []


@pytest.mark.parametrize("order", [20, 300])
@pytest.mark.parametrize("solver", [linalg.eigsh, linalg.eigs, linalg.svds])
def test_an_interval_below_one_is_refused(solver: Any, order: int) -> None:
    with session(), pytest.raises(ArgumentError, match="checkpoint=0"):
        solver(symmetric(order), k=2, checkpoint=0)
