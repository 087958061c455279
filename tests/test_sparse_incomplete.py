"""IC(0) and ILU(0) against elimination by a plain loop, and as preconditioners."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from support.running import session
from support.sizes import examples
from support.sparse import SIDES

import outcore as oc
from outcore.errors import LinAlgError, MemoryLimitError, ShapeError
from outcore.sparse import linalg


@pytest.fixture(scope="module")
def folder(shared: Path) -> Path:
    return shared


def eliminated(dense: Any, there: Any) -> Any:
    """ILU(0), row by row (Saad 2003, algorithm 10.4): L below the diagonal, U on it and above."""
    a = dense.copy()
    for i in range(1, len(a)):
        for k in range(i):
            if there[i, k]:
                a[i, k] /= a[k, k]
                for j in range(k + 1, len(a)):
                    if there[i, j]:
                        a[i, j] -= a[i, k] * a[k, j]
    return a


def product_of(found: Any, hermitian: bool) -> Any:
    """The matrix whose inverse a preconditioner is."""
    lower = np.tril(found, -1) + np.eye(len(found))
    return lower @ np.diag(np.diag(found)) @ lower.conj().T if hermitian else lower @ np.triu(found)


@st.composite
def dominant(draw: st.DrawFn, symmetric: bool) -> Any:
    """A matrix with a heavy diagonal, dense or all but empty, and where it has entries."""
    order = draw(st.sampled_from((1, 2, 5, 17, 30)))
    random = np.random.default_rng(draw(st.integers(0, 999)))
    there = random.random((order, order)) < draw(st.sampled_from((0.0, 0.1, 0.3, 1.0)))
    there = (there | there.T if symmetric else there) | np.eye(order, dtype=bool)
    values = random.normal(size=(order, order)) + (
        1j * random.normal(size=(order, order)) if draw(st.booleans()) else 0
    )
    values = (values + values.conj().T if symmetric else values) * there
    heavy = 2 * np.diag(abs(values).sum(axis=1) + 1)
    return values - np.diag(np.diag(values)) + heavy, there


def stored(dense: Any, there: Any, folder: Path, side: int = 4) -> oc.sparse.SparseMatrix:
    rows, columns = np.nonzero(there)
    return oc.sparse.from_coo(rows, columns, dense[there], dense.shape, folder / "a.ocs", side=side, overwrite=True)


@pytest.mark.parametrize("hermitian", [False, True], ids=["ilu0", "ic0"])
@settings(max_examples=examples(60), deadline=None)
@given(data=st.data(), side=st.sampled_from(SIDES), columns=st.sampled_from([None, 1, 3]))
def test_factors_are_those_of_a_plain_loop(folder: Path, hermitian: bool, data: Any, side: int, columns: Any) -> None:
    dense, there = data.draw(dominant(hermitian))
    x = np.random.default_rng(1).normal(size=(len(dense),) if columns is None else (len(dense), columns))
    inner = product_of(eliminated(dense, there), hermitian)
    with session():
        a = stored(dense, there, folder, side)
        m = linalg.ic0(a) if hermitian else linalg.ilu0(a)
        assert m.dtype == dense.dtype
        np.testing.assert_allclose((m @ x).compute(), np.linalg.solve(inner, x), rtol=1e-10, atol=1e-12)
        adjoint = m.adjoint(oc.asarray(x)).compute()
        np.testing.assert_allclose(adjoint, np.linalg.solve(inner.conj().T, x), rtol=1e-10, atol=1e-12)
        if not hermitian:
            turned = linalg.ilu0(a.T)
            inner = product_of(eliminated(dense.T, there.T), False)
            np.testing.assert_allclose((turned @ x).compute(), np.linalg.solve(inner, x), rtol=1e-10, atol=1e-12)


def test_factors_are_exact_where_nothing_falls_beside_the_entries(tmp_path: Path) -> None:
    """A tridiagonal matrix, with a level for each row, and a star, with two levels."""
    order = 400
    chain = scipy.sparse.diags_array(
        [np.full(order - 1, -1.0), np.full(order, 2.5), np.full(order - 1, -1.0)], offsets=[-1, 0, 1]
    )
    star = np.eye(order) * (2.0 * order)
    star[-1] = star[:, -1] = 1
    star[-1, -1] = 2 * order
    b = np.random.default_rng(0).normal(size=order)
    with session():
        for matrix in (chain.tocsr(), scipy.sparse.csr_array(star)):
            a = oc.sparse.from_scipy(matrix, tmp_path / "a.ocs", overwrite=True)
            for m in (linalg.ic0(a), linalg.ilu0(a)):
                np.testing.assert_allclose(matrix @ (m @ b).compute(), b, atol=1e-10)


def test_integers_and_patterns_are_factored_as_floats(tmp_path: Path) -> None:
    with session():
        ones = oc.sparse.from_coo([0, 1, 1], [0, 0, 1], None, (2, 2), tmp_path / "p.ocs")
        assert (linalg.ilu0(ones) @ np.asarray([2, 3])).compute().tolist() == [2.0, 1.0]
        single = oc.sparse.from_scipy(scipy.sparse.eye_array(3, dtype=np.float32) * 4, tmp_path / "f.ocs")
        m = linalg.ic0(single)
        assert (m.dtype, (m @ np.ones(3, np.float32)).compute().tolist()) == (np.float32, [0.25] * 3)
        nothing = oc.sparse.from_coo([], [], [], (0, 0), tmp_path / "n.ocs")
        assert (linalg.ilu0(nothing) @ np.zeros(0)).compute().shape == (0,)


def steps(solver: Any, a: Any, b: Any, m: Any) -> int:
    seen: list[Any] = []
    x, info = solver(a, b, M=m, rtol=1e-8, callback=seen.append)
    assert info == 0
    assert np.linalg.norm((b - a @ x).compute()) <= 1e-8 * np.linalg.norm(b)
    return len(seen)


@pytest.mark.parametrize("points", [7, 27])
def test_grids_take_fewer_steps(tmp_path: Path, points: Any) -> None:
    with session():
        a = oc.sparse.grid3d(16, tmp_path / "a.ocs", points=points)
        b = np.random.default_rng(0).normal(size=a.shape[0])
        plain, with_cholesky, with_lu = (steps(linalg.cg, a, b, m) for m in (None, linalg.ic0(a), linalg.ilu0(a)))
        assert with_cholesky == with_lu < plain / 2


@pytest.mark.parametrize("solver", [linalg.gmres, linalg.bicgstab])
def test_convection_and_diffusion_take_fewer_steps(tmp_path: Path, solver: Any) -> None:
    """-Δu + c·∂u/∂x on a square, by upwind differences."""
    n, speed = 24, 30.0
    one = scipy.sparse.eye_array(n)
    second = scipy.sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))
    first = scipy.sparse.diags_array([-1.0, 1.0], offsets=[-1, 0], shape=(n, n)) * (speed / n)
    matrix = scipy.sparse.kron(one, second + first) + scipy.sparse.kron(second, one)
    with session():
        a = oc.sparse.from_scipy(matrix, tmp_path / "a.ocs")
        b = np.random.default_rng(0).normal(size=n * n)
        plain, better = (steps(solver, a, b, m) for m in (None, linalg.ilu0(a)))
        assert better < plain / 2


def test_pivots_that_are_none_name_their_row(tmp_path: Path) -> None:
    def made(dense: Any) -> oc.sparse.SparseMatrix:
        matrix = scipy.sparse.csr_array(np.asarray(dense, dtype=float))
        return oc.sparse.from_scipy(matrix, tmp_path / "a.ocs", overwrite=True)

    with session():
        with pytest.raises(LinAlgError, match="ilu0: row 1 has no entry on the diagonal"):
            linalg.ilu0(made([[1, 2], [2, 0]]))
        with pytest.raises(LinAlgError, match=r"ilu0: the pivot of row 2 is 0.0; it must be another number than 0"):
            linalg.ilu0(made([[1, 0, 0], [0, 1, 2], [0, 2, 4]]))
        indefinite = made([[1, 0, 0], [0, 1, 2], [0, 2, 1]])
        with pytest.raises(LinAlgError, match=r"ic0: the pivot of row 2 is -3.0; it must be positive; a shift"):
            linalg.ic0(indefinite)
        shifted = linalg.ic0(indefinite, shift=2.0)
        np.testing.assert_allclose((shifted @ np.asarray([3.0, 5, 5])).compute(), [1, 1, 1])
        with pytest.raises(LinAlgError, match="row 0"):
            linalg.ilu0(made([[np.nan]]))
        with pytest.raises(ShapeError, match=r"\(2, 3\)"):
            linalg.ilu0(made([[1, 2, 3], [0, 1, 1]]))


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    with session():
        a = oc.sparse.grid3d(12, tmp_path / "a.ocs", points=7)
    with session(pool_limit=1 << 19):
        for make in (linalg.ic0, linalg.ilu0):
            with pytest.raises(
                MemoryLimitError, match=r"while they are made, take [0-9.]+ [KM]iB in memory, the limit leaves"
            ):
                make(a)
