"""Matrices that are made: random graphs, grids, bands and that of NAS."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from support.entries import SLOW, dense
from support.running import session

import outcore as oc
from outcore.errors import (
    ArgumentError,
)


def test_rmat_is_the_same_everywhere(out: Path, scratch: Path) -> None:
    found = []
    for threads, pool in ((1, 64 << 20), (2, 16 << 20)):
        with session(scratch, pool_limit=pool, threads=threads):
            path = out / f"{threads}.ocs"
            made = oc.sparse.rmat(1 << 14, 200_000, path, seed=3)
            rows, columns = oc.compute(*oc.sparse.rmat_edges(1 << 14, 200_000, seed=3))
            expected = sp.coo_array((np.ones(len(rows), bool), (rows.astype(int), columns.astype(int))), made.shape)
            assert (made.to_scipy() != expected.tocsr()).nnz == 0
            found.append(path.read_bytes())
    assert found[0] == found[1]
    quadrants = np.bincount((rows >> 13).astype(int) * 2 + (columns >> 13).astype(int)) / len(rows)
    np.testing.assert_allclose(quadrants, [0.57, 0.19, 0.19, 0.05], atol=0.005)
    assert not np.array_equal(oc.sparse.rmat_edges(1 << 14, 1000, seed=4)[0].compute(), rows[:1000])
    with pytest.raises(ArgumentError, match="1000 vertices"):
        oc.sparse.rmat(1000, 5, out / "b.ocs")


def test_threads_go_where_a_tile_row_wants_their_memory(out: Path, scratch: Path) -> None:
    found, count = [], 4_000_000
    for threads, pool in ((4, 48 << 20), (1, 1 << 30)):
        with session(scratch, pool_limit=pool, threads=threads) as current:
            path = out / f"{threads}.ocs"
            rows, columns = (oc.random.integers(count, 0, n, seed=n, dtype="uint32") for n in (100, 1 << 20))
            values = oc.random.uniform((count,), seed=5)
            oc.sparse.from_entries((rows, columns, values), path, shape=(100, 1 << 20), duplicates="last")
            found.append(path.read_bytes())
            assert current.counters()["peak_bytes"] <= pool
    assert found[0] == found[1]


@pytest.mark.parametrize("points", [7, 27])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_grids(points: Any, n: int, tmp_path: Path) -> None:
    line = sp.diags_array([1.0, 1.0, 1.0], offsets=[-1, 0, 1], shape=(n, n))
    eye = sp.eye_array(n)
    whole = sp.kron(sp.kron(line, line), line)
    if points == 7:
        steps = [sp.kron(sp.kron(line, eye), eye), sp.kron(sp.kron(eye, line), eye), sp.kron(sp.kron(eye, eye), line)]
        whole = (steps[0] + steps[1] + steps[2]) > 0
    expected = np.where(whole.toarray() != 0, -1.0, 0.0)
    np.fill_diagonal(expected, points - 1)
    assert np.array_equal(dense(oc.sparse.grid3d(n, tmp_path / "a.ocs", points=points, side=8)), expected)


def test_a_grid_whose_tile_rows_do_not_fit(out: Path, scratch: Path) -> None:
    with session(scratch, pool_limit=16 << 20):
        small = oc.sparse.grid3d(20, out / "a.ocs")
    with session(scratch):
        assert oc.sparse.grid3d(20, out / "b.ocs").nnz == small.nnz
    assert (out / "a.ocs").read_bytes() == (out / "b.ocs").read_bytes()


@SLOW
@given(n=st.integers(0, 60), offsets=st.sets(st.integers(-70, 70), min_size=1, max_size=5))
def test_bands(n: int, offsets: set[int], tmp_path: Path) -> None:
    diagonals = {offset: float(offset + 100) for offset in offsets}
    made = oc.sparse.banded(n, diagonals, tmp_path / "a.ocs", side=16, overwrite=True)
    expected = np.zeros((n, n))
    for offset, value in diagonals.items():
        expected += value * np.eye(n, k=offset)
    assert np.array_equal(dense(made), expected)


@pytest.mark.parametrize("name", ["S", "W"])
def test_the_nas_matrix_gives_the_published_zeta(name: Any, tmp_path: Path) -> None:
    from outcore.sparse._nas import NAS_CLASSES

    kind = NAS_CLASSES[name]
    matrix = oc.sparse.nas_cg(name, tmp_path / "a.ocs").to_scipy()
    x = np.ones(kind.n)
    for _ in range(kind.iterations):
        z, r = np.zeros(kind.n), x.copy()
        p, rho = r.copy(), r @ r
        for _ in range(25):
            q = matrix @ p
            alpha = rho / (p @ q)
            z, r, old = z + alpha * p, r - alpha * q, rho
            rho = r @ r
            p = r + rho / old * p
        zeta = kind.shift + 1 / (x @ z)
        x = z / np.linalg.norm(z)
    assert abs(zeta - kind.zeta) < 1e-10
