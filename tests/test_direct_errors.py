"""Errors of direct solvers of sparse matrices: each names its cause, and leaves the factor as it was."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import outcore as oc
from outcore._session.session import current
from outcore.errors import ArgumentError, DTypeError, LinAlgError, ShapeError

linalg = oc.sparse.linalg


@pytest.fixture
def A():
    return sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(20, 20), format="csr")


def test_an_error_of_refactorize_leaves_matrix_and_factor(A):
    F, b = linalg.cholesky(A), np.arange(20.0)
    with pytest.raises(LinAlgError, match="pivot of row"):
        F.refactorize(-A)
    np.testing.assert_allclose(A @ F.solve(b), b, atol=1e-12)
    with pytest.raises(ShapeError, match="refactorize"):
        F.refactorize(sp.eye(3, format="csr"))
    np.testing.assert_allclose(A @ F.solve(b), b, atol=1e-12)
    np.testing.assert_allclose(2 * A @ F.refactorize(2 * A).solve(b), b, atol=1e-12)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_right_hand_sides_that_are_not_finite_are_named(A, value):
    with pytest.raises(LinAlgError, match="right-hand sides have NaN or infinite"):
        linalg.spsolve(A, np.full(20, value))


@pytest.mark.parametrize(
    "part", [sp.tril, sp.triu, lambda A: A + 0.4j * sp.eye(20, k=1) + 0.4j * sp.eye(20, k=-1) + sp.eye(20)]
)
def test_a_matrix_that_is_not_hermitian_is_called_so(A, part):
    F = linalg.cholesky(sp.csr_array(part(A)))
    with pytest.raises(LinAlgError, match=r"not symmetric \(Hermitian\).*triangles"):
        F.solve(np.arange(20.0))
    with pytest.raises(LinAlgError, match="not symmetric"):
        F.logdet()


def test_a_matrix_that_is_nearly_symmetric_is_solved_and_has_no_logdet():
    matrix = sp.csr_array([[2.0, 1.0 + 1e-6], [1.0, 2.0]])
    F = linalg.cholesky(matrix)
    np.testing.assert_allclose(matrix @ F.solve([1.0, 3.0]), [1.0, 3.0], atol=1e-12)
    with pytest.raises(LinAlgError, match="not symmetric"):
        F.logdet()


@pytest.mark.parametrize("kind", ["spd", "sym"])
def test_large_rows_do_not_hide_that_a_matrix_is_not_symmetric(kind):
    matrix = sp.csr_array([[1e16, 0.0, 0.0], [0.0, 2.0, 0.5], [0.0, -0.5, 2.0]])
    with pytest.raises(LinAlgError, match="not symmetric"):
        linalg.analyze(matrix, kind).solve(np.ones(3))
    for factor in (oc.linalg.cho_factor, oc.linalg.ldl_factor):
        with pytest.raises(LinAlgError, match="not symmetric"):
            factor(matrix.toarray()).solve(np.ones(3))


def test_a_symmetric_matrix_is_looked_at_once(A, monkeypatch):
    F = linalg.cholesky(A)
    F.solve(np.ones(20))
    monkeypatch.delattr("outcore.linalg._factor.is_symmetric")
    assert abs(F.logdet() - np.log(21.0)) < 1e-12


def test_a_hermitian_matrix_near_a_singular_one_is_not_called_unsymmetric(A):
    F = linalg.cholesky(A)
    assert F._unfit() is None
    assert linalg.cholesky(sp.csr_array([[2, 1j], [-1j, 2]]))._unfit() is None
    assert "singular" in F._cause(oc.ones((20, 1)), 1.0)


def test_shapes_of_right_hand_sides_are_named(A):
    F = linalg.analyze(A)
    with pytest.raises(ShapeError, match=r"\(20, 2, 2\); \(n,\) or \(n, k\) with n = 20"):
        F.solve(np.ones((20, 2, 2)))
    with pytest.raises(ShapeError, match="20 and 5 rows differ"):
        F.solve(np.ones(5))
    for b in (np.full(20, "a"), np.full(20, "2020-01-01", "M8[D]")):
        with pytest.raises(DTypeError, match=r"right-hand sides of .* are no numbers"):
            F.solve(b)


def test_lazy_solutions_lie_in_scratch_where_they_do_not_fit(A, monkeypatch):
    b = np.arange(20.0 * 1000).reshape(20, 1000)
    F = linalg.cholesky(A)
    monkeypatch.setattr("outcore._run.holding._SHARE", 1 << 60)
    x = F.solve(oc.asarray(b))
    before = current().counters()["bytes_read"]
    np.testing.assert_array_equal(x.compute(), F.solve(b))
    assert current().counters()["bytes_read"] - before >= b.nbytes


def test_the_residual_of_complex_right_hand_sides_is_that_of_both_parts(A):
    F = linalg.cholesky(A)
    b = np.arange(20.0) + 1j
    np.testing.assert_allclose(A @ F.solve(b), b, atol=1e-12)
    parts = []
    for part in (b.real, b.imag):
        F.solve(part)
        parts.append(F.residual)
    F.solve(b)
    assert F.residual == max(parts)


def test_what_is_no_sparse_matrix_is_told_the_way(A):
    with pytest.raises(ArgumentError, match=r"outcore\.linalg\.solve"):
        linalg.analyze(A.toarray())
    with pytest.raises(ArgumentError, match=r"outcore\.sparse\.open"):
        linalg.analyze("K.ocs")
    with pytest.raises(ShapeError, match="lsmr"):
        linalg.analyze(sp.eye(3, 4, format="csr"))
    with pytest.raises(ArgumentError, match="none of 'auto', 'spd', 'her', 'sym', 'lu'"):
        linalg.analyze(A, kind="qr")


def test_names_of_scikit_sparse_work_or_say_what_is_nearest(A):
    F, b = linalg.cholesky(A), np.ones(20)
    np.testing.assert_array_equal(F(b), F.solve(b))
    for name, nearest in (("solve_A", "solve"), ("P", "order"), ("L", "factorize"), ("det", "logdet")):
        with pytest.raises(AttributeError, match=nearest):
            getattr(F, name)
    with pytest.raises(AttributeError, match=r"'nothing'$"):
        F.nothing  # noqa: B018 - it is not there
    with pytest.raises(DTypeError, match="cannot be pickled"):
        pickle.dumps(F)


def test_a_factor_is_the_inverse_that_other_solvers_take(A):
    F = linalg.cholesky(A)
    values, _ = linalg.eigsh(A, k=3, sigma=0.0, OPinv=F)
    np.testing.assert_allclose(np.sort(values), np.linalg.eigvalsh(A.toarray())[:3], rtol=1e-8)
    x, info = linalg.cg(A, np.ones(20), M=F, maxiter=2, rtol=1e-12)
    assert info == 0
    np.testing.assert_allclose(A @ x.compute(), np.ones(20), rtol=1e-10)


def test_a_factor_with_a_long_record_is_opened(tmp_path):
    """The record takes more memory than what is set aside without a turn."""
    n = 300_000
    matrix = sp.diags_array([-1.0, 2.001, -1.0], offsets=[-1, 0, 1], shape=(n, n), format="csr")
    x = linalg.cholesky(matrix).factorize(tmp_path / "f.ocf").solve(np.ones(n))
    np.testing.assert_array_equal(linalg.open_factor(tmp_path / "f.ocf", matrix).solve(np.ones(n)), x)


def test_a_pattern_counts_as_ones(tmp_path):
    A = oc.sparse.from_coo(np.arange(5), np.arange(5), None, (5, 5), tmp_path / "p.ocs")
    assert A.is_pattern
    for kind in ("auto", "spd", "sym", "lu"):
        np.testing.assert_array_equal(linalg.analyze(A, kind).solve(np.arange(5.0)), np.arange(5.0))


@pytest.mark.parametrize("big", [1e6, 1e8, 1e10, 1e12])
def test_a_large_row_coupled_to_all_hides_nothing(big):
    n = 300
    A = 2.5 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)
    A[0, :] = A[:, 0] = big
    A[0, 0] = 100 * big * big * n
    b = np.ones(n)
    right = oc.linalg.cho_factor(A).solve(b)
    assert np.abs(b - A @ right)[1:].max() < 1e-10
    A[3, 4] = 0.0
    with pytest.raises(LinAlgError):
        oc.linalg.ldl_factor(A).solve(b)
    for solve in (
        oc.linalg.cho_factor(A).solve,
        linalg.analyze(sp.csr_array(A), "spd").solve,
        linalg.analyze(sp.csr_array(A), "sym").solve,
    ):
        with pytest.raises(LinAlgError, match="not symmetric"):
            solve(b)


def test_scales_of_rows_and_columns_hide_nothing():
    n = 200
    by = np.logspace(-8, 8, n)
    A = 2.5 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)
    b = np.random.default_rng(0).normal(size=n)
    for is_whole in (True, False):
        A[3, 4] = -1.0 if is_whole else 0.0
        scaled = by[:, None] * A * by
        for factor in (oc.linalg.cho_factor(scaled), linalg.analyze(sp.csr_array(scaled), "sym")):
            if is_whole:
                np.testing.assert_allclose(by * factor.solve(b * by), np.linalg.solve(A, b), rtol=1e-8)
            else:
                with pytest.raises(LinAlgError, match="not symmetric"):
                    factor.solve(b * by)
