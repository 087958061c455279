"""Solvers and eigensolvers of sparse matrices on disk against NumPy's and SciPy's answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg
from support.running import session
from support.sizes import covering

import outcore as oc
from outcore.sparse import linalg

ORDER = 300
SOLVERS = (linalg.cg, linalg.minres, linalg.bicgstab, linalg.gmres)


@pytest.fixture(autouse=True)
def _session(scratch: Path) -> Any:
    with session(scratch) as made:
        yield made


def random(rows: int, columns: int, seed: int = 0) -> Any:
    return scipy.sparse.random_array((rows, columns), density=0.03, format="csr", rng=np.random.default_rng(seed))


def definite(kind: Any = float) -> Any:
    """A Hermitian positive definite matrix with a diagonal from 5 to 500."""
    found = random(ORDER, ORDER)
    if kind is complex:
        found = found + 1j * random(ORDER, ORDER, 1)
    return (found + found.conj().T + scipy.sparse.diags_array(np.linspace(5, 500, ORDER))).tocsr()


def right(matrix: Any) -> Any:
    return matrix @ np.random.default_rng(3).normal(size=matrix.shape[1])


def residual(matrix: Any, x: Any, b: Any) -> float:
    return float(np.linalg.norm(b - matrix @ np.asarray(x)) / np.linalg.norm(b))


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("kind", [float, complex])
def test_solvers_reach_the_true_residual_asked_for(solver: Any, kind: Any, data: Path) -> None:
    matrix = definite(kind)
    b = right(matrix)
    x, info = solver(oc.sparse.from_scipy(matrix, data / "a.ocs"), b, rtol=1e-10)
    assert info == 0
    assert residual(matrix, x, b) <= 1e-10


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("form", ["sparse", "dense", "lazy", "scipy", "operator", "ours"])
def test_what_multiplies_can_be_solved_with(solver: Any, form: str, data: Path) -> None:
    matrix = definite()
    stored = oc.sparse.from_scipy(matrix, data / "a.ocs")
    forms = {
        "sparse": stored,
        "dense": matrix.toarray(),
        "lazy": oc.asarray(matrix.toarray()),
        "scipy": matrix,
        "operator": scipy.sparse.linalg.aslinearoperator(matrix),
        "ours": linalg.aslinearoperator(stored),
    }
    b = right(matrix)
    x, info = solver(forms[form], b[:, None], x0=np.ones(ORDER))
    assert (info, x.shape) == (0, (ORDER, 1))
    assert residual(matrix, x[:, 0], b) <= 1e-5


@pytest.mark.parametrize("solver", SOLVERS)
def test_preconditioners_save_steps(solver: Any, data: Path) -> None:
    matrix = definite()
    stored, b = oc.sparse.from_scipy(matrix, data / "a.ocs"), right(matrix)
    steps = []
    for m in (None, linalg.jacobi(stored), linalg.block_jacobi(stored, 7), linalg.incomplete_lu(stored, 0.01)):
        seen: list[Any] = []
        x, info = solver(stored, b, M=m, rtol=1e-9, callback=seen.append)
        assert info == 0
        assert residual(matrix, x, b) <= 1e-9
        steps.append(len(seen))
    assert all(better < steps[0] for better in steps[1:])


@pytest.mark.parametrize("solver", SOLVERS)
def test_what_did_not_converge_says_after_how_many_steps(solver: Any, data: Path) -> None:
    stored = oc.sparse.from_scipy(definite(), data / "a.ocs")
    options = {"restart": 3} if solver is linalg.gmres else {}
    _, info = solver(stored, np.ones(ORDER), rtol=1e-12, maxiter=2, **options)
    assert info > 0


@pytest.mark.parametrize("solver", SOLVERS)
def test_nothing_is_the_solution_for_nothing(solver: Any) -> None:
    x, info = solver(np.eye(4), np.zeros(4))
    assert (x.compute().tolist(), info) == ([0.0] * 4, 0)


def test_singular_systems_are_solved_where_they_can_be(data: Path) -> None:
    """The Laplacian of a path: its right sides add up to 0."""
    matrix = scipy.sparse.csgraph.laplacian(scipy.sparse.diags_array([np.ones(49)] * 2, offsets=[-1, 1]).tocsr())
    stored = oc.sparse.from_scipy(matrix, data / "a.ocs")
    b = right(matrix)
    for solver in (linalg.cg, linalg.minres):
        x, info = solver(stored, b, rtol=1e-8)
        assert info == 0
        assert residual(matrix, x, b) <= 1e-8
        assert solver(stored, b + 1, rtol=1e-8, maxiter=200)[1] > 0


def test_callbacks_see_each_iterate(data: Path) -> None:
    matrix = definite()
    b, ours, theirs = right(matrix), [], []
    linalg.cg(oc.sparse.from_scipy(matrix, data / "a.ocs"), b, maxiter=5, rtol=0, callback=ours.append)
    scipy.sparse.linalg.cg(matrix, b, maxiter=5, rtol=0, callback=lambda x: theirs.append(x.copy()))
    np.testing.assert_allclose([x.compute() for x in ours], theirs, rtol=1e-9, atol=1e-12)


def test_minres_solves_shifted_and_indefinite_systems(data: Path) -> None:
    matrix = definite()
    x, info = linalg.minres(oc.sparse.from_scipy(matrix, data / "a.ocs"), np.ones(ORDER), shift=101.3, rtol=1e-9)
    assert info == 0
    assert residual(matrix - 101.3 * scipy.sparse.eye_array(ORDER), x, np.ones(ORDER)) <= 1e-9


@pytest.mark.parametrize("damp", [0.0, 2.0])
def test_lsmr_takes_the_steps_of_scipys(damp: float, data: Path) -> None:
    matrix = random(ORDER, 40)
    b = np.random.default_rng(5).normal(size=ORDER)
    ours = linalg.lsmr(oc.sparse.from_scipy(matrix, data / "a.ocs"), b, damp=damp, atol=1e-10, btol=1e-10)
    theirs = scipy.sparse.linalg.lsmr(matrix, b, damp=damp, atol=1e-10, btol=1e-10)
    assert ours[1:3] == theirs[1:3]
    np.testing.assert_allclose(ours.x.compute(), theirs[0], rtol=1e-8)
    np.testing.assert_allclose(ours.normr, theirs[3])


@pytest.mark.parametrize(("which", "kind", "width"), covering(["LA", "SA", "LM", "BE"], [float, complex], [1, 3]))
def test_eigsh_finds_the_ends_of_the_spectrum(which: str, kind: Any, width: int, data: Path) -> None:
    matrix = definite(kind)
    every = np.linalg.eigvalsh(matrix.toarray())
    wanted = {"LA": every[-4:], "LM": every[-4:], "SA": every[:4], "BE": every[[0, 1, -2, -1]]}[which]
    stored = oc.sparse.from_scipy(matrix, data / "a.ocs")
    values, vectors = linalg.eigsh(stored, k=4, which=which, block_size=width)
    np.testing.assert_allclose(values, wanted, atol=1e-10)
    v = vectors.compute()
    assert np.linalg.norm(matrix @ v - v * values, axis=0).max() <= 1e-8
    np.testing.assert_allclose(v.conj().T @ v, np.eye(4), atol=1e-11)


def test_eigsh_finds_what_is_next_to_a_number(data: Path) -> None:
    matrix = definite()
    every = np.linalg.eigvalsh(matrix.toarray())
    stored = oc.sparse.from_scipy(matrix, data / "a.ocs")
    near = np.sort(every[np.argsort(abs(every - 200.2))[:3]])
    np.testing.assert_allclose(linalg.eigsh(stored, k=3, sigma=200.2)[0], near)
    shifted = scipy.sparse.linalg.splu((matrix - 200.2 * scipy.sparse.eye_array(ORDER)).tocsc())
    inverse = scipy.sparse.linalg.LinearOperator(matrix.shape, matvec=shifted.solve, dtype=float)
    found = linalg.eigsh(stored, k=3, sigma=200.2, OPinv=inverse, return_eigenvectors=False)
    np.testing.assert_allclose(found, near)


def test_blocks_find_values_that_are_there_several_times(data: Path) -> None:
    matrix = scipy.sparse.diags_array(np.repeat(np.arange(1.0, 101), 3))
    stored = oc.sparse.from_scipy(matrix, data / "a.ocs")
    assert linalg.eigsh(stored, k=6, which="LA", block_size=3)[0].round(8).tolist() == [99.0] * 3 + [100.0] * 3


def test_invariant_spaces_are_left(data: Path) -> None:
    """A star has three eigenvalues, and a Krylov space of three vectors."""
    leaves = np.arange(1, ORDER)
    star = scipy.sparse.coo_array((np.ones(ORDER - 1), (0 * leaves, leaves)), shape=(ORDER, ORDER))
    stored = oc.sparse.from_scipy(star + star.T, data / "a.ocs")
    root = np.sqrt(ORDER - 1)
    np.testing.assert_allclose(linalg.eigsh(stored, k=3, which="LA")[0], [0, 0, root], atol=1e-10)


def test_eigsh_says_what_did_not_converge(data: Path) -> None:
    stored = oc.sparse.from_scipy(definite(), data / "a.ocs")
    with pytest.raises(linalg.NotConvergedError, match="of 6 eigenvalues converged in 1 restarts") as caught:
        linalg.eigsh(stored, k=6, which="SA", maxiter=1)
    assert len(caught.value.eigenvalues) < 6


@pytest.mark.parametrize("which", ["LM", "LR", "LI"])
def test_eigs_of_a_general_matrix(which: str, data: Path) -> None:
    matrix = random(ORDER, ORDER) + scipy.sparse.diags_array(np.linspace(0, 3, ORDER))
    every = np.linalg.eigvals(matrix.toarray())
    measure = {"LM": np.abs, "LR": np.real, "LI": lambda x: abs(x.imag)}[which]
    values, vectors = linalg.eigs(oc.sparse.from_scipy(matrix, data / "a.ocs"), k=4, which=which)
    np.testing.assert_allclose(np.sort(measure(values)), np.sort(measure(every))[-4:], atol=1e-8)
    v = vectors.compute()
    assert np.linalg.norm(matrix @ v - v * values, axis=0).max() <= 1e-8


@pytest.mark.parametrize("shape", [(ORDER, 150), (150, ORDER)])
@pytest.mark.parametrize("which", ["LM", "SM"])
def test_svds_of_tall_and_wide_matrices(shape: tuple[int, int], which: str, data: Path) -> None:
    matrix = random(*shape)
    every = np.sort(np.linalg.svd(matrix.toarray(), compute_uv=False))
    u, s, vh = linalg.svds(oc.sparse.from_scipy(matrix, data / "a.ocs"), k=3, which=which)
    np.testing.assert_allclose(s, every[-3:] if which == "LM" else every[:3], atol=1e-9)
    u, vh = u.compute(), vh.compute()
    np.testing.assert_allclose(matrix @ vh.T, u * s, atol=1e-7)
    np.testing.assert_allclose(matrix.T @ u, vh.T * s, atol=1e-7)


def test_randomized_svd_is_exact_for_low_rank(data: Path) -> None:
    draw = np.random.default_rng(0)
    matrix = draw.normal(size=(120, 4)) @ draw.normal(size=(4, 80))
    u, s, vh = linalg.randomized_svd(oc.sparse.from_scipy(scipy.sparse.csr_array(matrix), data / "a.ocs"), k=4)
    np.testing.assert_allclose((u @ np.diag(s) @ vh).compute(), matrix, atol=1e-9)
    np.testing.assert_allclose(np.sort(s)[::-1], np.linalg.svd(matrix, compute_uv=False)[:4])


@pytest.mark.parametrize("largest", [True, False])
def test_lobpcg_finds_both_ends(largest: bool, data: Path) -> None:
    matrix = definite()
    every = np.linalg.eigvalsh(matrix.toarray())
    stored = oc.sparse.from_scipy(matrix, data / "a.ocs")
    first = np.random.default_rng(1).normal(size=(ORDER, 4))
    m = None if largest else linalg.jacobi(stored)
    values, vectors = linalg.lobpcg(stored, first, M=m, tol=1e-6, maxiter=150, largest=largest)
    np.testing.assert_allclose(values, every[::-1][:4] if largest else every[:4], rtol=1e-8)
    v = vectors.compute()
    assert np.linalg.norm(matrix @ v - v * values, axis=0).max() <= 1.1e-6


def test_a_conjugate_gradient_step_reads_the_matrix_once(data: Path) -> None:
    """Of a matrix that has no room in memory; what is kept of it from step to step is not read."""
    order = 1 << 17
    pairs = np.random.default_rng(0).integers(0, order, size=(2, 4_000_000))
    ones = np.full(pairs.shape[1], 1.0)
    matrix = scipy.sparse.coo_array((ones, tuple(pairs)), shape=(order, order)).tocsr()
    matrix = matrix + matrix.T + scipy.sparse.diags_array(np.full(order, 200.0))
    stored = oc.sparse.from_scipy(matrix, data / "a.ocs")
    del matrix
    with session(pool_limit="40MiB") as made:
        before = made.counters()["bytes_read"]
        linalg.cg(stored, np.ones(order), rtol=0, maxiter=4)
        read = made.counters()["bytes_read"] - before
    assert stored.nbytes > 40 << 20
    # Four steps and one true residual; what is more are vectors that had no room beside the matrix.
    assert stored.nbytes < read <= 5.1 * stored.nbytes
