"""Systems on which other solvers failed, as their public issues tell: the same structures, small.

Each has the answer, or an error that says the reason before work begins.
"""

from __future__ import annotations

import gc
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg
from support import definite, indefinite
from support.definite import grid, residual
from support.running import files_below, refusals, session
from support.sizes import sized

import outcore as oc
from outcore.errors import LinAlgError, MemoryLimitError, StorageError
from outcore.sparse.linalg import Inertia, analyze, cholesky, eigsh, factorized, open_factor, splu, spsolve

GOOD = 1e-12
MIB = 1 << 20
WITHIN_SECONDS = 1.0
# Each step takes longer, on any machine.
MOMENTS = (0.005, 0.02)


def coupled(rows: int, columns: int, width: int, random: np.random.Generator) -> Any:
    """A wide matrix of full rank, whose rows have entries next to their own place."""
    own = np.arange(rows) * columns // rows
    places = (np.repeat(own, 3) + random.integers(0, width, 3 * rows)) % columns
    values = np.concatenate([random.normal(size=3 * rows), np.full(rows, 9.0)])
    at = np.repeat(np.arange(rows), 3), places
    return scipy.sparse.csr_array(
        (values, (np.concatenate([at[0], np.arange(rows)]), np.concatenate([at[1], own]))), shape=(rows, columns)
    )


def line(n: int, low: float, middle: float, high: float) -> Any:
    return scipy.sparse.diags_array([low, middle, high], offsets=[-1, 0, 1], shape=(n, n))


# -- fill, and its forecast --------------------------------------------------------------------------------------------


def test_a_factor_that_is_full_is_made_in_a_small_part_of_its_size(scratch: Path) -> None:
    """Random entries, 200 a row, whose factor is full (SciPy issue 15688)."""
    n, random = 1800, np.random.default_rng(0)
    rows, columns = random.integers(0, n, (2, 40 * n))
    matrix = scipy.sparse.csr_array((random.normal(size=40 * n), (rows, columns)), shape=(n, n))
    matrix = scipy.sparse.csr_array(matrix + 3.0 * scipy.sparse.eye_array(n))
    b = random.normal(size=n)
    found = []
    for pool in (24 * MIB, 1 << 30):
        with session(scratch, pool_limit=pool):
            F = analyze(matrix)
            said = F.explain()
            assert said.factor_bytes > 1.5 * n * n * 8 / 2
            x = F.solve(b)
            assert residual(matrix, x, b) <= GOOD
            found.append((said.plan.bytes_spilled > 0, x.tobytes()))
            del F
    assert [spills for spills, _ in found] == [True, False]
    assert found[0][1] == found[1][1]


def test_entries_beyond_two_thousand_millions_are_counted_and_priced() -> None:
    """A grid in its natural order, whose factor has more than 2³¹ entries (SciPy pull request 20338)."""
    matrix = grid(75, 75, 75)
    with session():
        said = analyze(matrix, "spd", ordering="natural").explain()
        assert said.factor_entries > 1 << 31
        assert said.factor_bytes == 8 * said.factor_entries
        assert said.plan.exact
        assert said.plan.bytes_written >= said.factor_bytes
        assert said.operations > 1e13


def test_a_banded_order_is_priced_beside_a_better_one() -> None:
    """A precision matrix of a field on a grid, kept in its natural order (scikit-sparse issue 44)."""
    matrix = scipy.sparse.csr_array(grid(18, 18, 18) + 0.01 * scipy.sparse.eye_array(18**3))
    b = np.random.default_rng(1).normal(size=18**3)
    with session():
        natural, best = (analyze(matrix, "spd", ordering=name) for name in ("natural", "auto"))  # type: ignore[arg-type]
        assert natural.explain().factor_entries > 1.5 * best.explain().factor_entries
        assert natural.logdet() == pytest.approx(best.logdet(), rel=1e-12)
        np.testing.assert_allclose(natural.solve(b), best.solve(b), rtol=1e-10)


def test_a_nearly_full_hermitian_matrix_is_solved_as_a_full_one() -> None:
    """Hermitian, and a twentieth of the entries there (SuperLU issue 50)."""
    n, random = 900, np.random.default_rng(3)
    half = scipy.sparse.random_array((n, n), density=0.025, rng=random)
    turned = scipy.sparse.csr_array(half * (1 + 2j))
    matrix = scipy.sparse.csr_array(turned + turned.conj().T)
    b = random.normal(size=n) + 1j * random.normal(size=n)
    with session():
        F = analyze(matrix)
        assert residual(matrix, F.solve(b), b) <= GOOD
        assert F.kind == "her"
        # The orders of a matrix that fills so much are all alike.
        assert F.explain().factor_entries > n * n / 4
        negative = int((np.linalg.eigvalsh(matrix.toarray()) < 0).sum())
        assert F.inertia == Inertia(n - negative, negative, 0)


def test_constraints_at_random_places_are_priced_and_refused_before_work(scratch: Path) -> None:
    """A KKT system of random constraints, whose factor is nearly full (OSQP issues 739 and 761, QDLDL issue 24)."""
    n, random = 3000, np.random.default_rng(4)
    places = np.repeat(np.arange(n), 6), random.integers(0, n, 6 * n)
    A = scipy.sparse.csr_array((random.normal(size=6 * n), places), shape=(n, n))
    eye = scipy.sparse.eye_array(n)
    matrix = scipy.sparse.csr_array(scipy.sparse.block_array([[1e-6 * eye, A.T], [A, -10.0 * eye]]))
    with session(scratch) as current:
        stored = oc.sparse.from_scipy(matrix, scratch / "kkt.ocs")
        said = analyze(stored, "sym").explain()
        assert said.factor_entries > 50 * matrix.nnz
        assert said.operations > 1e9
        assert current.counters()["bytes_written"] < 20 * matrix.nnz * 12
    with session(scratch, pool_limit=5 * MIB) as current:
        F = analyze(oc.sparse.open(scratch / "kkt.ocs"), "sym")
        with pytest.raises(MemoryLimitError, match="smallest limit that works") as refused:
            F.factorize()
        assert refused.value.smallest is not None
        assert current.counters()["bytes_written"] < said.factor_bytes
        assert F.nbytes == 0


@pytest.mark.parametrize("kind", ["spd", "sym", "lu"])
def test_limits_that_refusals_name_lead_to_the_solution(kind: Any, data: Path, scratch: Path) -> None:
    """No guess of workspace: two refusals at most, one of the analysis and one of the factor (OpenSees issue 288)."""
    made = {"spd": grid(20, 20, 20), "sym": indefinite.shifted(16, 1.7), "lu": indefinite.convection(16, 0.7)}
    matrix, path = made[kind], data / "a.ocs"
    b = np.ones(matrix.shape[0])
    with session():
        oc.sparse.from_scipy(matrix, path)

    def work() -> None:
        x = analyze(oc.sparse.open(path), kind, ordering="nd").solve(b)
        assert residual(matrix, x, b) <= GOOD

    # `refusals` ends where the named limit is enough; three in a row would be two too small.
    assert len(refusals(work, scratch)) < 3


# -- out of core -------------------------------------------------------------------------------------------------------


def test_solutions_by_spilled_factors_are_finite_and_checked(scratch: Path) -> None:
    """A positive definite matrix whose out-of-core solution was NaN elsewhere (MINGW-packages issue 22599)."""
    matrix, b = grid(24, 24, 24), np.random.default_rng(5).normal(size=24**3)
    found = set()
    for pool in (16 * MIB, 24 * MIB, 1 << 30):
        with session(scratch, pool_limit=pool):
            F = cholesky(matrix, ordering="nd")
            x = F.solve(b)
            assert np.isfinite(x).all()
            assert F.residual == pytest.approx(residual(matrix, x, b), rel=0.5)
            assert F.residual is not None
            assert F.residual <= GOOD
            found.add(x.tobytes())
            del F
    assert len(found) == 1


def test_factors_on_disk_of_both_kinds_are_solved_in_turn(out: Path, scratch: Path) -> None:
    """A dozen factors alive at once, opened and solved by turns (Pardiso.jl issue 125)."""
    b = np.random.default_rng(6).normal(size=512)
    with session(scratch, pool_limit=64 * MIB):
        made = []
        for number in range(12):
            matrix = indefinite.shifted(8, 0.3 + 0.1 * number) if number % 2 else indefinite.convection(8, 0.1 * number)
            path = out / f"{number}.ocf"
            analyze(matrix).factorize(path)
            made.append((open_factor(path, matrix), matrix))
        for turn in range(2):
            for F, matrix in made[:: 1 - 2 * turn]:
                assert residual(matrix, F.solve(b), b) <= GOOD


def test_a_folder_of_scratch_that_is_none_is_named(out: Path, data: Path) -> None:
    """Scratch at a place that is a file (MFEM issue 3623, whose solver said -90)."""
    (data / "taken").write_bytes(b"here")
    with pytest.raises(StorageError, match="taken"), session(data / "taken"):
        cholesky(grid(12, 12, 12)).solve(np.ones(12**3))
    with session(), pytest.raises(StorageError, match="taken"):
        analyze(grid(12, 12, 12)).factorize(data / "taken" / "f.ocf")
    assert files_below(data) == ["taken"]
    assert files_below(out) == []


# -- pivots ------------------------------------------------------------------------------------------------------------


def test_eigenvalues_of_a_bipartite_graph_go_by_an_indefinite_factor() -> None:
    """Blocks [[0, B], [Bᵀ, 0]] shifted into their spectrum (SciPy issues 7075 and 18148)."""
    random = np.random.default_rng(7)
    B = coupled(300, 406, 8, random)
    matrix = scipy.sparse.csr_array(scipy.sparse.block_array([[None, B], [B.T, None]]))
    sizes = np.linalg.svd(B.toarray(), compute_uv=False)
    sigma = float(sizes[150:152].mean())
    near = np.sort(sizes[np.argsort(abs(sizes - sigma))[:6]])
    with session():
        F = analyze(scipy.sparse.csr_array(matrix - sigma * scipy.sparse.eye_array(706))).factorize()
        assert F.inertia.positive == int((sizes > sigma).sum())
        found, vectors = eigsh(oc.sparse.from_scipy(matrix), k=6, sigma=sigma, OPinv=F)
        np.testing.assert_allclose(np.sort(found), near, rtol=1e-10)
        v = np.asarray(vectors)
        assert abs(matrix @ v - v * found).max() < 1e-9
        inverse = scipy.sparse.linalg.LinearOperator(matrix.shape, F.solve, dtype=float)
        others = scipy.sparse.linalg.eigsh(matrix, k=6, sigma=sigma, OPinv=inverse, return_eigenvectors=False)
        np.testing.assert_allclose(np.sort(others), near, rtol=1e-10)


@pytest.mark.parametrize("ordering", ["auto", "nd", "amd", "natural"])
def test_a_block_of_zeros_leaves_the_inertia_exact(ordering: Any) -> None:
    """Multipliers with a small diagonal beside some with none (feral issue 54)."""
    n, second, third = 1345, 800, 520
    random = np.random.default_rng(8)
    B = coupled(second + third, n, 12, random)
    H, small = line(n, 0.3, 2.0, 0.3), -1e-8 * scipy.sparse.eye_array(second)
    blocks = [[H, B[:second].T, B[second:].T], [B[:second], small, None], [B[second:], None, None]]
    matrix = scipy.sparse.csr_array(scipy.sparse.block_array(blocks))
    b = random.normal(size=matrix.shape[0])
    with session():
        F = analyze(matrix, ordering=ordering)
        assert F.inertia == Inertia(n, second + third, 0)
        assert F.perturbed == 0
        assert residual(matrix, F.solve(b), b) <= GOOD


def test_positive_eigenvalues_only_become_more_with_a_shift() -> None:
    """A + δI for rising δ (feral issue 5)."""
    edge = np.linalg.eigvalsh(grid(9).toarray())
    values = (edge[:, None, None] + edge[:, None] + edge).ravel()
    matrix = indefinite.shifted(9, 3.1)
    with session():
        for delta in (0.0, 1e-6, 0.01, 0.3, 1.0, 2.0, 4.0):
            own = analyze(scipy.sparse.csr_array(matrix + delta * scipy.sparse.eye_array(729)), "sym").inertia
            assert own == Inertia(int((values > 3.1 - delta).sum()), int((values < 3.1 - delta).sum()), 0)


def test_collocation_constraints_hand_on_few_columns() -> None:
    """Constraints from interval to interval, few parameters in all, and hardly any objective (feral issue 46)."""
    intervals, states, parameters = 600, 5, 5
    random = np.random.default_rng(9)
    rows = (intervals - 1) * states
    step = scipy.sparse.eye_array(rows, intervals * states + parameters, k=states) - scipy.sparse.eye_array(
        rows, intervals * states + parameters
    )
    small = scipy.sparse.csr_array(1e-3 * random.normal(size=(rows, parameters)))
    columns = scipy.sparse.hstack([scipy.sparse.csr_array((rows, intervals * states)), small])
    blocks = scipy.sparse.block_diag([1e-3 * random.normal(size=(states, states)) for _ in range(intervals - 1)])
    inner = scipy.sparse.hstack([blocks, scipy.sparse.csr_array((rows, states + parameters))])
    B = scipy.sparse.csr_array(step + columns + inner)
    objective = np.full(B.shape[1], 1e-8)
    objective[:-parameters:40] = 2.0
    matrix = scipy.sparse.csr_array(scipy.sparse.block_array([[scipy.sparse.diags_array(objective), B.T], [B, None]]))
    b = matrix @ random.normal(size=matrix.shape[0])
    with session():
        F = analyze(matrix, "sym")
        assert residual(matrix, F.solve(b), b) <= GOOD
        assert F.inertia == Inertia(B.shape[1], rows, 0)
        assert F.delayed < matrix.shape[0] / 20
        assert F.explain().factor_entries < 20 * matrix.nnz


@pytest.mark.parametrize("density", [0.05, 0.2, 1.0])
def test_unsymmetric_matrices_without_large_diagonals_have_numpys_answers(density: float) -> None:
    """n = 100 at random, with an empty diagonal (nvmath-python issue 56, CUDSS.jl issue 52)."""
    with session():
        for seed in range(4):
            random = np.random.default_rng(seed)
            dense = random.normal(size=(100, 100)) * (random.random((100, 100)) < density)
            np.fill_diagonal(dense, 0.0)
            if np.linalg.matrix_rank(dense) < 100:
                continue
            b = random.normal(size=100)
            F = splu(scipy.sparse.csr_array(dense))
            expected = np.linalg.solve(dense, b)
            assert abs(F.solve(b) - expected).max() <= 1e-13 * np.linalg.cond(dense) * abs(expected).max()
            assert F.perturbed == 0


def test_singular_matrices_are_refused_in_every_format() -> None:
    """An isolated row, an empty one and one that is there twice, by rows and by columns (PyPardiso issue 7)."""
    empty, twice, isolated = (indefinite.convection(6, 0.5).tolil() for _ in range(3))
    empty[100, :] = 0.0
    twice[100, :] = twice[101, :]
    isolated[100, :] = isolated[:, 100] = 0.0
    b = np.random.default_rng(10).normal(size=216)
    with session():
        for matrix in (empty, twice, isolated):
            said = set()
            for stored in (matrix.tocsr(), matrix.tocsc(), matrix.tocoo()):
                for solved in (spsolve, lambda A, b: splu(A).solve(b)):
                    with pytest.raises(LinAlgError, match="1 of its pivots is 0") as refused:
                        solved(stored, b)
                    said.add(str(refused.value))
            assert len(said) == 1


# -- patterns ----------------------------------------------------------------------------------------------------------


def patterns() -> dict[str, Any]:
    """Matrices that make orderings slow, or factors full."""
    random = np.random.default_rng(11)

    def unsymmetric(matrix: Any) -> Any:
        entries = matrix.tocoo()
        values = entries.data * random.uniform(0.5, 1.0, len(entries.data))
        return scipy.sparse.csr_array((values, entries.coords), shape=matrix.shape)

    pairs = np.zeros(19_999)
    pairs[::2] = -1.0
    zeros = grid(40, 40).tocoo()
    far = np.arange(1600), (np.arange(1600) + 700) % 1600
    coords = tuple(
        np.concatenate([own, one, other]) for own, one, other in zip(zeros.coords, far, far[::-1], strict=True)
    )
    return {
        "path": definite.path(100_000),
        "star": definite.arrow(20_000, first=True),
        "star, unsymmetric": unsymmetric(definite.arrow(20_000, first=True)),
        "arrow, unsymmetric": unsymmetric(definite.arrow(20_000)),
        "pairs": scipy.sparse.csr_array(scipy.sparse.diags_array([pairs, np.zeros(20_000), pairs], offsets=[-1, 0, 1])),
        "diagonal": scipy.sparse.csr_array(scipy.sparse.diags_array(random.uniform(1.0, 2.0, 20_000))),
        "negative diagonal": scipy.sparse.csr_array(scipy.sparse.diags_array(random.uniform(-2.0, -1.0, 5000))),
        "explicit zeros": scipy.sparse.coo_array(
            (np.concatenate([zeros.data, np.zeros(3200)]), coords), shape=(1600, 1600)
        ),
        "one": scipy.sparse.csr_array([[-3.0]]),
    }


@pytest.mark.parametrize("name", list(patterns()))
def test_extreme_patterns_are_solved_with_little_fill(name: str) -> None:
    """Paths, stars, arrows and very many components (METIS issue 42)."""
    matrix = patterns()[name]
    b = np.random.default_rng(12).normal(size=matrix.shape[0])
    with session():
        F = analyze(matrix)
        x = F.solve(b)
        assert residual(matrix, x, b) <= GOOD
        if name != "explicit zeros":
            # Supernodes store some zeros, and with pivoting there are both triangles.
            assert F.explain().factor_entries <= 12 * matrix.nnz


def triangulation(n: int) -> Any:
    """The Laplacian of a triangulation of points at random."""
    from scipy.spatial import Delaunay

    corners = Delaunay(np.random.default_rng(13).random((n, 2))).simplices
    rows, columns = (
        np.concatenate([corners[:, i], corners[:, j], corners[:, k]]) for i, j, k in ((0, 1, 2), (1, 2, 0))
    )
    both = scipy.sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=(n, n))
    both = scipy.sparse.csr_array((both + both.T > 0).astype(float))
    return scipy.sparse.csr_array(scipy.sparse.diags_array(both.sum(axis=1) + 1e-6) - both)


def test_a_meshs_laplacian_is_solved() -> None:
    """Irregular triangles, nearly singular by constants (cholespy issue 33)."""
    matrix, b = triangulation(20_000), np.random.default_rng(14).normal(size=20_000)
    with session():
        F = cholesky(matrix)
        assert residual(matrix, F.solve(b - b.mean()), b - b.mean()) <= GOOD
        assert F.explain().factor_entries < 12 * matrix.nnz


def test_three_fields_of_very_different_sizes_are_solved() -> None:
    """Displacements, pressures and fluxes, ten decades apart (GEOS issue 3062)."""
    side, random = 8, np.random.default_rng(15)
    h, eye, one = grid(side, side, side), scipy.sparse.eye_array(side**3), scipy.sparse.eye_array(side)
    slope = line(side, -0.5, 0.0, 0.5)
    slopes = [
        scipy.sparse.kron(scipy.sparse.kron(a, b), c)
        for a, b, c in ((slope, one, one), (one, slope, one), (one, one, slope))
    ]
    stiff = scipy.sparse.block_array(
        [[1e6 * (h + 0.2 * eye) if i == j else 1e5 * slopes[i].T @ slopes[j] for j in range(3)] for i in range(3)]
    )
    lift, flow = scipy.sparse.vstack(slopes), 1e-3 * (slopes[0] + slopes[1])
    blocks = [[stiff, lift, None], [lift.T, -1e-4 * eye, flow], [None, flow.T + 1e-5 * eye, 1e-4 * (eye + h)]]
    matrix = scipy.sparse.csr_array(scipy.sparse.block_array(blocks))
    b = random.normal(size=matrix.shape[0])
    with session():
        F = analyze(matrix)
        x = F.solve(b)
        assert F.kind == "lu"
        assert residual(matrix, x, b) <= GOOD
        assert residual(matrix.T, F.solve(b, "T"), b) <= GOOD
        assert F.perturbed == 0


# -- silence and interrupts --------------------------------------------------------------------------------------------


def test_solvers_print_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    """Neither successes nor refusals write to stdout or stderr (SciPy issue 20993)."""
    matrix, b = grid(12, 12), np.ones(144)
    dense = matrix.toarray()
    with oc.Session(memory_limit="2GiB", threads=2):
        for solved in (spsolve, lambda A, b: factorized(A)(b), lambda A, b: splu(A).solve(b)):
            assert residual(matrix, solved(matrix, b), b) <= GOOD
        assert analyze(scipy.sparse.csr_array(matrix - 3 * scipy.sparse.eye_array(144))).inertia.zero == 0
        assert oc.linalg.cho_factor(dense).solve(b).shape == oc.linalg.lu_factor(dense).solve(b).shape
        assert str(analyze(matrix).explain())
        for kind in ("spd", "sym", "lu"):
            with pytest.raises(LinAlgError):
                analyze(scipy.sparse.csr_array((50, 50)), kind).solve(np.ones(50))  # type: ignore[arg-type]
        with pytest.raises(LinAlgError):
            oc.linalg.lu_factor(np.zeros((50, 50)))
    said = capfd.readouterr()
    assert (said.out, said.err) == ("", "")


# -- many small fronts, wide right-hand sides, singular and nearly singular ones ---------------------------------------


def test_minimum_degree_is_linear_in_millions_of_rows() -> None:
    """A diagonal matrix of 3 M rows is ordered within a few times of one of 1 M (the marks of the method)."""
    seconds = []
    for rows in (1_000_000, 3_000_000):
        matrix = oc.sparse.from_scipy(scipy.sparse.csr_array(2.0 * scipy.sparse.eye_array(rows)))
        start = time.perf_counter()
        analyze(matrix, "spd", ordering="amd")
        seconds.append(time.perf_counter() - start)
    assert seconds[1] < 6 * seconds[0] + 0.5, seconds


@pytest.mark.parametrize("matrix", [definite.path(250_000), grid(10, 25_000)], ids=["path", "strip"])
def test_chains_of_small_fronts_are_dissected(matrix: Any) -> None:
    """Trees that minimum degree makes chains of have a task for each few rows (METIS issue 42)."""
    F = analyze(matrix)
    assert "nd" in repr(F)
    b = np.ones(matrix.shape[0])
    assert residual(matrix, F.solve(b), b) <= GOOD


def test_right_hand_sides_are_larger_than_memory(scratch: Path) -> None:
    """More right-hand sides than memory holds, as products of the residual have too (SciPy issue 14984)."""
    matrix, width = grid(60, 60), sized(2600, 5000)
    B = oc.random.uniform((3600, width), seed=1)
    with session(scratch, pool_limit=64 * MIB):
        F = cholesky(matrix)
        x = F.solve(B)
        assert F.residual is not None
        assert F.residual <= GOOD
        part = slice(width - 3, width)
        np.testing.assert_allclose(matrix @ x[:, part].compute(), B[:, part].compute(), atol=1e-9)


@pytest.mark.parametrize("kind", ["auto", "sym", "lu"])
def test_a_row_without_entries_is_named(kind: Any) -> None:
    """An isolated bus of a power grid (pandapower issue 392)."""
    matrix = grid(20, 20).tolil()
    matrix[137, :] = 0
    matrix[:, 137] = 0
    with pytest.raises(LinAlgError, match=r"0 or nearly so, first that of row 137$"):
        analyze(scipy.sparse.csr_array(matrix.tocsr()), kind).solve(np.ones(400))


def test_signs_of_pivots_that_rounding_makes_are_not_told() -> None:
    """A matrix of condition 1e29, of which each ordering would tell other signs (feral issue 76)."""
    random = np.random.default_rng(0)
    q = np.linalg.qr(random.normal(size=(60, 60)))[0]
    matrix = q @ np.diag(np.where(np.arange(60) % 2, 1, -1) * 10.0 ** np.linspace(-14.5, 14.5, 60)) @ q.T
    F = analyze(scipy.sparse.csr_array((matrix + matrix.T) / 2), "sym")
    with pytest.raises(LinAlgError, match="not determined"):
        F.inertia  # noqa: B018 - it is what fails


@pytest.mark.parametrize("factor", [oc.linalg.lu_factor, oc.linalg.qr_factor])
def test_a_dense_matrix_singular_to_working_precision_has_no_solution(factor: Any) -> None:
    """Two equal rows, whose difference is rounding: a backward stable solution is as wrong as 0."""
    matrix = indefinite.convection(7, 0.5).toarray()
    matrix[100] = matrix[101]
    F = factor(matrix)
    with pytest.raises(LinAlgError, match=r"singular to working precision|depend on each other"):
        F.solve(np.random.default_rng(0).normal(size=343))


def test_rows_of_very_different_sizes_are_no_singular_matrix() -> None:
    """What rows of a dense matrix are scaled by does not change its solution, nor whether there is one."""
    for rows in ([[1.0, 1.0], [1e17, -1e17]], [[1.0, 3.0], [3e17, 7e17]]):
        np.testing.assert_allclose(
            oc.linalg.lu_factor(np.asarray(rows)).solve(np.ones(2)), np.linalg.solve(rows, np.ones(2))
        )
    random = np.random.default_rng(0).normal(size=(40, 40))
    for scale in (1e15, 1e18):
        matrix = random * np.geomspace(1, scale, 40)[:, None]
        x = oc.linalg.lu_factor(matrix).solve(np.ones(40))
        np.testing.assert_allclose(x, np.linalg.solve(matrix, np.ones(40)), rtol=1e-9)


def test_complex_matrices_that_are_real_have_a_real_factor(out: Path) -> None:
    """Half of the bytes, a quarter of the work (scikit-sparse issue 128)."""
    matrix, path = grid(30, 30).astype(np.complex128), out / "f.ocf"
    F = analyze(matrix).factorize(path)
    assert F.dtype == np.float64
    for b in (np.ones(900), 1j * np.ones(900)):
        for factor in (F, open_factor(path, matrix)):
            x = factor.solve(b)
            assert x.dtype == np.complex128
            assert residual(matrix, x, b) <= GOOD
    assert F.refactorize(matrix * 2.0).dtype == np.float64
    indefinite_one = scipy.sparse.csr_array(np.array([[1.0, 5.0], [5.0, 2.0]])).astype(np.complex128)
    assert analyze(indefinite_one).solve(np.ones(2)).dtype == np.complex128
    assert analyze(matrix * 1j).dtype == np.complex128


def interrupted(work: Callable[[], Any], after: float) -> float:
    """Seconds from an alarm, as Ctrl-C would come, to the end of the work; 0 where the work ended first."""
    gc.disable()  # An interrupt in a callback of the collector, such as hypothesis has, is lost.
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    start = time.perf_counter()
    signal.setitimer(signal.ITIMER_REAL, after)
    try:
        work()
    except KeyboardInterrupt:
        return time.perf_counter() - start - after
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        gc.enable()
    return 0.0


@pytest.mark.parametrize("kind", ["spd", "sym", "lu"])
def test_interrupts_end_analysis_factor_and_solution(kind: Any, data: Path, out: Path, scratch: Path) -> None:
    """Ctrl-C in each of the steps, after which the session goes on (SciPy issue 18397, feral issue 194)."""
    makers = {"spd": lambda: grid(36, 36, 36), "sym": lambda: indefinite.shifted(30, 1.7)}
    matrix = makers.get(kind, lambda: indefinite.convection(26, 0.7))()
    n, path = matrix.shape[0], data / "a.ocs"
    b = np.ones(n)
    with session(scratch, threads=1):
        oc.sparse.from_scipy(matrix, path)
        A = oc.sparse.open(path)
        late = [interrupted(lambda: analyze(A, kind, ordering="nd"), after) for after in MOMENTS]
        F = analyze(A, kind, ordering="nd")
        F.explain()
        late += [interrupted(partial(F.factorize, out / "f.ocf"), after) for after in MOMENTS]
        assert files_below(out) == []
        assert F.nbytes == 0
        F.factorize(out / "f.ocf")
        late += [interrupted(partial(F.solve, oc.random.uniform((n, 64), seed=1)), after) for after in MOMENTS]
        assert residual(matrix, F.solve(b), b) <= GOOD
        del F
    assert min(late) > 0, late
    assert max(late) <= WITHIN_SECONDS, late
    assert files_below(scratch) == []
