"""Direct solvers of sparse positive definite systems: answers, refusals, forecasts, bits, and faults.

SciPy and NumPy give the answers. A factorization does as its forecast says, byte for byte, wherever it spills, and has
the same bits under every limit, number of threads and policy.
"""

from __future__ import annotations

import copy
import hashlib
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
import scipy.sparse.linalg
from conftest import LARGE
from hypothesis import given, settings
from support import definite
from support.definite import grid, residual
from support.running import POLICIES, assert_nothing_but_kept, files_below, session
from support.sizes import Sweep, examples, sized
from test_faults import FAULTS, clear

import outcore as oc
from outcore import _core
from outcore._session.session import current
from outcore.errors import (
    ArgumentError,
    DTypeError,
    FormatError,
    LinAlgError,
    MemoryLimitError,
    OutcoreError,
    ShapeError,
    SourceChangedError,
    TargetExistsError,
)
from outcore.sparse.linalg import Factorization, analyze, cholesky, factorized, spsolve

ORDERINGS = ("auto", "nd", "amd", "natural")
GOOD = 1e-12
MIB = 1 << 20


def stored(matrix: Any, path: Path, side: int | None = None) -> Any:
    return oc.sparse.from_scipy(matrix, path, **({} if side is None else {"side": side}), overwrite=True)


def hashed(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


# -- answers -----------------------------------------------------------------------------------------------------------


@settings(max_examples=examples(60), deadline=None)
@given(
    n=st.integers(0, 120),
    density=st.sampled_from([0, 1, 3, 20]),
    is_complex=st.booleans(),
    decades=st.sampled_from([0, 0, 3, 8]),
    ordering=st.sampled_from([*ORDERINGS, "given"]),
    side=st.sampled_from([None, 16, 64]),
    right=st.sampled_from([(), (1,), (7,), (0,)]),
    seed=st.integers(0, 1000),
)
def test_drawn_matrices_are_solved_as_numpy_does(
    shared: Path,
    n: int,
    density: int,
    is_complex: bool,
    decades: int,
    ordering: Any,
    side: int | None,
    right: tuple[int, ...],
    seed: int,
) -> None:
    random = np.random.default_rng(seed)
    plain = definite.drawn(n, density * n, random, is_complex)
    matrix = definite.scaled(plain, decades, random)
    b = random.normal(size=(n, *right))
    with session():
        A = stored(matrix, shared / "drawn.ocs", side)
        F = analyze(A, ordering=random.permutation(n) if ordering == "given" else ordering).factorize()
        assert np.array_equal(np.sort(F.order), np.arange(n))
        x = F.solve(b)
        assert x.shape == b.shape
        assert x.dtype == (np.complex128 if is_complex else np.float64)
        assert residual(matrix, x, b) <= GOOD
        sign, log = np.linalg.slogdet(matrix.toarray()) if n else (1.0, 0.0)
        assert sign == pytest.approx(1.0)
        assert F.logdet() == pytest.approx(log, rel=1e-9, abs=1e-9)
        if n and not decades:
            np.testing.assert_allclose(x, np.linalg.solve(matrix.toarray(), b), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("ordering", [*ORDERINGS, "given"])
@pytest.mark.parametrize("name", definite.SMALL | definite.LARGE_FRONTS)
def test_patterns_are_solved_in_every_order(name: str, ordering: Any) -> None:
    matrix = (definite.SMALL | definite.LARGE_FRONTS)[name]()
    random, n = np.random.default_rng(1), matrix.shape[0]
    if ordering == "given" and n > 2000:
        pytest.skip("a random order of so many rows fills the factor")
    if name == "full" and ordering in ("auto", "amd"):
        pytest.skip("all orders of a full matrix are alike")
    b = random.normal(size=(n, 3))
    with session():
        F = cholesky(matrix, ordering=random.permutation(n) if ordering == "given" else ordering)
        x = F.solve(b)
        assert residual(matrix, x, b) == pytest.approx(F.residual, rel=0.5)
        assert F.residual is not None
        assert F.residual <= 1e-14
        if n <= 1500:
            assert F.logdet() == pytest.approx(np.linalg.slogdet(matrix.toarray())[1], rel=1e-10)
        assert name != "full" or F.explain().largest_front > 1024
        assert (name, ordering) != ("cube", "natural") or F._analysis.counts[1] > 100


def test_the_ordering_that_was_taken_is_told(cube: Any, tmp_path: Path) -> None:
    fills = definite.drawn(3000, 60_000, np.random.default_rng(3))
    with session():
        for matrix, name in ((cube, "auto: amd"), (fills, "auto: nd")):
            F = analyze(matrix)
            assert F.explain().ordering == name
            assert f", {name}, " in repr(F)
            taken: Any = name.removeprefix("auto: ")
            assert np.array_equal(F.order, analyze(matrix, ordering=taken).order)
        path = tmp_path / "a.ocf"
        F = analyze(cube, ordering=analyze(cube).order).factorize(path)
        for one in (F, oc.sparse.linalg.open_factor(path, cube)):
            assert one.explain().ordering == "given"
        assert analyze(cube, ordering="natural").explain().ordering == "natural"


def test_the_order_cannot_be_changed(cube: Any) -> None:
    with session():
        F = analyze(cube)
        with pytest.raises(ValueError, match="read-only"):
            F.order[0] = 1


@pytest.mark.parametrize("is_complex", [False, True])
def test_fronts_in_tiles_of_complex_and_scaled_matrices(is_complex: bool) -> None:
    random = np.random.default_rng(3)
    matrix = definite.drawn(2400, 36_000, random, is_complex)
    by = 10.0 ** random.integers(-6, 7, 2400)
    matrix = scipy.sparse.csr_array(scipy.sparse.diags_array(by) @ matrix @ scipy.sparse.diags_array(by))
    b = matrix @ random.normal(size=(2400, 2))
    with session():
        F = cholesky(matrix)
        assert F.explain().largest_front > 1024
        assert residual(matrix, F.solve(b), b) <= GOOD


def test_a_long_path_is_solved_like_scipys_banded_one() -> None:
    n = 1_000_000 if LARGE else 100_000
    matrix, b = definite.path(n), np.random.default_rng(4).normal(size=n)
    with session():
        x = spsolve(matrix, b)
    bands = np.stack([np.full(n, -1.0), np.full(n, 2.001)])
    np.testing.assert_allclose(x, scipy.linalg.solveh_banded(bands, b), rtol=1e-8, atol=1e-10)


def test_duplicates_are_summed_and_explicit_zeros_are_entries(tmp_path: Path) -> None:
    whole = grid(5, 6).tocoo()
    rows, columns = (np.concatenate([part, part, [0, 29]]) for part in whole.coords)
    rows[-2:], columns[-2:] = [0, 29], [29, 0]
    values = np.concatenate([whole.data / 4, whole.data * 3 / 4, [0.0, 0.0]])
    b = np.arange(30.0)
    with session():
        A = oc.sparse.from_coo(rows, columns, values, (30, 30), tmp_path / "a.ocs", side=8)
        assert residual(whole, spsolve(A, b), b) <= GOOD


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint16", "float16", "float32", "complex64", "bool"])
def test_other_types_are_solved_in_double_precision(dtype: str, tmp_path: Path) -> None:
    matrix = scipy.sparse.csr_array(scipy.sparse.eye_array(6) if dtype in ("bool", "uint16") else 2 * grid(6))
    with session():
        A = oc.sparse.from_scipy(matrix).astype(dtype, path=tmp_path / "a.ocs")
        F = cholesky(A)
        assert F.dtype == np.float64
        assert F.solve(np.ones(6)).dtype == (np.complex128 if dtype == "complex64" else np.float64)
        np.testing.assert_allclose(F.solve(np.ones(6)), np.linalg.solve(matrix.toarray(), np.ones(6)), rtol=1e-14)


@pytest.mark.parametrize("n", [0, 1, 2])
def test_the_smallest_matrices(n: int, tmp_path: Path) -> None:
    matrix = 4.0 * scipy.sparse.eye_array(n, format="csr")
    with session():
        F = analyze(matrix)
        assert F.shape == (n, n)
        assert F.nbytes == 0
        assert F.factorize(tmp_path / "f.ocf") is F
        assert F.nbytes == (tmp_path / "f.ocf").stat().st_size
        np.testing.assert_array_equal(F.solve(np.ones(n)), np.full(n, 0.25))
        assert F.solve(np.ones((n, 3))).shape == (n, 3)
        assert F.logdet() == pytest.approx(n * np.log(4.0))
        assert F.explain().factor_entries == n


@pytest.fixture(scope="module")
def cube() -> Any:
    return grid(6, 7, 8)


def test_right_hand_sides_of_every_kind(cube: Any) -> None:
    n, random = cube.shape[0], np.random.default_rng(5)
    b = random.normal(size=(n, 5))
    kinds: dict[str, Any] = {
        "one": b[:, 0],
        "a column": b[:, :1],
        "many": random.normal(size=(n, 200)),
        "strides": np.repeat(b, 3, axis=0)[::3, ::2],
        "backwards": b[::-1, ::-1],
        "by columns": np.asfortranarray(b),
        "float32": b.astype(np.float32),
        "big endian": b.astype(">f8"),
        "integers": np.arange(n),
        "bool": np.arange(n) % 3 == 0,
        "a list": b[:, 0].tolist(),
        "complex": b[:, 0] + 1j * b[:, 1],
        "complex columns": b[:, :2] + 1j * b[:, 2:4],
        "nothing": np.zeros(n),
        "huge": b * 1e295,
        "tiny": b * 1e-295,
    }
    with session():
        F = cholesky(cube)
        for name, right in kinds.items():
            x = F.solve(right)
            assert isinstance(x, np.ndarray), name
            assert x.shape == np.shape(right), name
            assert residual(cube, x, right) <= GOOD, name
        lazy = F.solve(oc.asarray(b) * 2.0)
        assert isinstance(lazy, oc.Array)
        np.testing.assert_allclose(lazy.compute(), F.solve(2 * b), rtol=1e-12)
        assert F.solve(np.zeros((n, 0))).shape == (n, 0)
        again = F.solve(F.solve(oc.asarray(b)))
        assert residual(cube @ cube, again.compute(), b) <= GOOD


def test_the_residual_of_complex_sides_is_that_of_both_parts(cube: Any) -> None:
    n = cube.shape[0]
    with session():
        F = cholesky(cube)
        F.solve(np.ones(n) + 0j)
        assert F.residual is not None
        assert F.residual > 0  # of the real part, for the imaginary one is nothing


def test_functions_have_scipys_names(cube: Any, tmp_path: Path) -> None:
    b = np.random.default_rng(6).normal(size=cube.shape[0])
    with session():
        expected = scipy.sparse.linalg.spsolve(cube.tocsc(), b)
        for x in (spsolve(cube, b), factorized(cube)(b), spsolve(cube, scipy.sparse.csc_array(b[:, None]))[:, 0]):
            np.testing.assert_allclose(x, expected, rtol=1e-10)
        A = stored(cube, tmp_path / "a.ocs", 64)
        for lazy, matrix in (
            (A.T, cube),
            (A * 2, cube * 2),
            (A + A, cube + cube),
            (A @ A, cube @ cube),
            (A[:100, :100], cube[:100, :100]),
        ):
            assert residual(matrix, spsolve(lazy, b[: matrix.shape[0]]), b[: matrix.shape[0]]) <= GOOD


def test_another_matrix_of_the_same_pattern_takes_the_analysis(cube: Any) -> None:
    b = np.random.default_rng(7).normal(size=cube.shape[0])
    with session():
        F = cholesky(cube)
        log = F.logdet()
        assert F.refactorize(cube * 3.0) is F
        assert residual(cube * 3.0, F.solve(b), b) <= GOOD
        assert F.logdet() == pytest.approx(log + cube.shape[0] * np.log(3.0))
        F.refactorize(scipy.sparse.csr_array(scipy.sparse.eye_array(len(b))))
        np.testing.assert_array_equal(F.solve(b), b)
        F.refactorize(cube * (2 + 0j))
        assert F.solve(b).dtype == np.complex128
        assert residual(cube * 2.0, F.solve(b), b) <= GOOD


@pytest.mark.parametrize("name", ["cube", "wide"])
def test_after_a_refused_matrix_the_factorization_is_that_of_the_one_before(name: str, cube: Any) -> None:
    """Of matrices in one task, and of fronts in tiles: entries elsewhere are no part of the factor, nor left out."""
    matrix = cube if name == "cube" else grid(22, 22, 22)
    n, ordering = matrix.shape[0], "amd" if name == "cube" else "natural"
    b = np.random.default_rng(8).normal(size=n)
    with session():
        F = cholesky(matrix, ordering=ordering)
        x = F.solve(b)
        for row, column in ((0, n - 1), (n // 2, 3), (n - 1, n // 3)):
            elsewhere = scipy.sparse.csr_array(([0.01, 0.01], ([row, column], [column, row])), shape=(n, n))
            with pytest.raises(ArgumentError, match="the matrix of the analysis"):
                F.refactorize(matrix + elsewhere)
        with pytest.raises(LinAlgError, match="not positive definite"):
            F.refactorize(matrix * -1.0)
        with pytest.raises(ShapeError, match=r"\(4, 4\)"):
            F.refactorize(grid(4))
        np.testing.assert_array_equal(F.solve(b), x)


# -- refusals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ordering", ["amd", "nd", "natural"])
@pytest.mark.parametrize("n", [50, 1100])
def test_a_matrix_that_is_not_definite_names_the_row(n: int, ordering: Any) -> None:
    matrix = (definite.path(n) if n == 50 else definite.full(n, np.random.default_rng(9))).tolil()
    matrix[n // 2, n // 2] = -1.0
    with session(), pytest.raises(LinAlgError, match=f"not positive definite: the pivot of row {n // 2} "):
        cholesky(matrix.tocsr(), ordering=ordering)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [(7, 7), (7, 8), (8, 7)])
def test_entries_that_are_not_finite_are_refused(value: float, place: tuple[int, int]) -> None:
    matrix = definite.path(50).tolil()
    matrix[place] = value
    with session(), pytest.raises(LinAlgError):
        spsolve(matrix.tocsr(), np.ones(50))


def test_answers_that_are_none_are_refused(cube: Any) -> None:
    n = cube.shape[0]
    upper = cube.tolil()
    upper[3, 5] = 9.0
    with session():
        with pytest.raises(LinAlgError, match="scaled residual"):
            analyze(upper.tocsr(), "spd").solve(np.ones(n))
        with pytest.raises(LinAlgError, match="scaled residual"):
            analyze(scipy.sparse.csr_array(np.array([[4, 1j], [1j, 3]])), "spd").solve(np.ones(2))
        F = cholesky(cube)
        for value in (np.nan, np.inf):
            b = np.ones((n, 3))
            b[5, 1] = value
            with pytest.raises(LinAlgError, match="NaN or infinite"):
                F.solve(b)
        with pytest.raises(LinAlgError, match="too large for its type"):
            cholesky(cube * 1e-100).solve(np.full(n, 1e300))
        zero = definite.path(50).tolil()
        zero[7, :] = zero[:, 7] = 0.0
        with pytest.raises(LinAlgError, match="row 7 "):
            cholesky(zero.tocsr())


def test_arguments_that_are_wrong_are_told_by_both_sides(cube: Any, tmp_path: Path) -> None:
    n = cube.shape[0]
    with session():
        F = cholesky(cube)
        for shape in ((3,), (n, 2, 2), (), (1, n)):
            with pytest.raises(ShapeError, match="right-hand sides"):
                F.solve(np.ones(shape))
        for right in (np.array(["a"] * n), np.zeros(n, "M8[s]")):
            with pytest.raises(DTypeError, match="right-hand sides"):
                F.solve(right)
        with pytest.raises(ShapeError, match=r"\(3, 4\) is not square"):
            analyze(scipy.sparse.csr_array((3, 4)))
        for dense in (np.eye(3), oc.eye(3)):
            with pytest.raises(ArgumentError, match="no sparse matrix"):
                analyze(dense)
        with pytest.raises(ArgumentError, match="kind='qr'"):
            analyze(cube, "qr")  # type: ignore[arg-type]
        orders = (
            np.arange(n - 1),
            np.zeros(n, int),
            np.arange(n) * 1.0,
            np.arange(1, n + 1),
            -np.arange(n),
            "metis",
            3,
        )
        for order in orders:
            with pytest.raises(ArgumentError, match="order"):
                analyze(cube, ordering=order)  # type: ignore[arg-type]
        with pytest.raises(ArgumentError, match=r"does not end in \.ocf"):
            F.factorize(tmp_path / "f.npy")
        F.factorize(tmp_path / "f.ocf")
        with pytest.raises(TargetExistsError):
            F.factorize(tmp_path / "f.ocf")
        F.factorize(tmp_path / "f.ocf", overwrite=True)
        assert residual(cube, F.solve(np.ones(n)), np.ones(n)) <= GOOD
        with pytest.raises(OutcoreError, match="does not exist"):
            F.factorize(tmp_path / "nowhere" / "f.ocf")
        assert files_below(tmp_path) == ["f.ocf"]


def test_factorizations_are_copied_but_not_pickled(cube: Any, tmp_path: Path) -> None:
    b = np.ones(cube.shape[0])
    with session():
        for F in (cholesky(cube), analyze(stored(cube, tmp_path / "a.ocs")).factorize(tmp_path / "f.ocf")):
            np.testing.assert_array_equal(copy.copy(F).solve(b), F.solve(b))
            with pytest.raises(DTypeError, match="cannot be pickled"):
                pickle.dumps(F)


@pytest.mark.parametrize("what", ["replaced", "deleted"])
@pytest.mark.parametrize("when", ["factorize", "solve"])
def test_a_matrix_that_changes_is_told(what: str, when: str, cube: Any, tmp_path: Path) -> None:
    with session():
        F = analyze(stored(cube, tmp_path / "a.ocs"))
        if when == "solve":
            F.factorize()
        if what == "deleted":
            (tmp_path / "a.ocs").unlink()
        else:
            stored(cube * 2, tmp_path / "a.ocs")
        with pytest.raises(SourceChangedError, match=r"a\.ocs"):
            F.factorize().solve(np.ones(cube.shape[0])) if when == "factorize" else F.solve(np.ones(cube.shape[0]))


def with_factor(F: Factorization, path: Path) -> Factorization:
    F._factor = _core.open_factor_tiles(current()._core, str(path), False)
    return F


def test_a_damaged_factor_is_told_by_its_tile(cube: Any, tmp_path: Path) -> None:
    path, b = tmp_path / "f.ocf", np.ones(cube.shape[0])
    with session():
        F = analyze(cube).factorize(path)
        whole = path.read_bytes()
        places = [0, 8, 40, 4096, 5000, 4096 + F._analysis.entries * 8 - 1]
        for place in places:
            damaged = bytearray(whole)
            damaged[place] ^= 1
            path.write_bytes(damaged)
            with pytest.raises(SourceChangedError, match=r"f\.ocf"):
                F.solve(b)
            G = analyze(cube)
            with pytest.raises(FormatError, match=r"f\.ocf"):
                with_factor(G, path).solve(b)
        path.write_bytes(whole[: len(whole) // 2])
        with pytest.raises(FormatError, match=r"f\.ocf"):
            with_factor(G, path)
        path.write_bytes(whole)
        assert residual(cube, with_factor(analyze(cube), path).solve(b), b) <= GOOD


# -- forecasts and bits ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def spilling(shared: Path) -> Path:
    """A matrix whose contribution blocks and factor are far more than the smallest pool."""
    path = shared / "spilling.ocs"
    with session():
        stored(grid(*sized((26, 26, 26), (40, 40, 40))), path, 4096)
    return path


def smallest_pool(path: Path, ordering: str, scratch: Path) -> int:
    pool = 4 * MIB
    while True:
        with session(scratch, pool_limit=pool):
            try:
                analyze(oc.sparse.open(path), ordering=ordering).explain()  # type: ignore[arg-type]
            except MemoryLimitError as error:
                pool = max(pool + (1 << 16), error.smallest or 0)
                continue
        return pool


@pytest.mark.parametrize("ordering", ["nd", "natural"])
def test_a_factorization_does_what_was_forecast(ordering: Any, spilling: Path, scratch: Path) -> None:
    least, spilled = smallest_pool(spilling, ordering, scratch), []
    for pool in (least, least * 9 // 8, 2 * least, 1 << 30):
        with session(scratch, pool_limit=pool) as now:
            F = analyze(oc.sparse.open(spilling), ordering=ordering)
            said = F.explain().plan
            with oc.profile() as done:
                F.factorize()
            for name in ("bytes_read", "bytes_written", "bytes_spilled", "peak_bytes"):
                assert getattr(done, name) == getattr(said, name), (name, pool)
            assert said.exact
            assert said.peak_bytes <= pool
            spilled.append(said.bytes_spilled)
            b = oc.ones((F.shape[0], 2))
            expression = F._applied(F._tiles(), b)
            foreseen = oc.explain(expression)
            before = now.counters()
            expression.compute()
            after = now.counters()
            assert after["bytes_read"] - before["bytes_read"] == foreseen.bytes_read
            assert after["bytes_written"] - before["bytes_written"] == foreseen.bytes_written
    assert spilled[0] > 0 or ordering == "natural"  # whose fronts are one chain
    assert spilled[-1] == 0
    assert spilled == sorted(spilled, reverse=True)


def test_bits_are_one_under_every_limit_number_of_threads_and_policy(spilling: Path, out: Path, scratch: Path) -> None:
    least = smallest_pool(spilling, "nd", scratch)
    hashes = set()
    for number, policy in enumerate(POLICIES):
        with session(scratch, pool_limit=least << number, threads=1 + number % 4, policy=policy):
            F = analyze(oc.sparse.open(spilling), ordering="nd").factorize(out / "f.ocf", overwrite=True)
            b = np.random.default_rng(10).normal(size=(F.shape[0], 5))
            x = F.solve(b)
            hashes.add((hashed(out / "f.ocf"), hashlib.sha256(x.tobytes()).hexdigest(), F.logdet()))
            del F
    assert len(hashes) == 1
    assert files_below(scratch) == []


def test_many_right_hand_sides_are_solved_in_bands_under_a_small_limit(
    spilling: Path, scratch: Path, out: Path
) -> None:
    """Right-hand sides and solutions that are together larger than the pool."""
    with session(scratch, pool_limit=64 * MIB):
        F = analyze(oc.sparse.open(spilling), ordering="nd").factorize()
        columns = 48 * MIB // (8 * F.shape[0])
        b = oc.sin(oc.reshape(oc.arange(F.shape[0] * columns, dtype=oc.float64), (F.shape[0], columns)))
        oc.store({out / "x.npy": F.solve(b)})
        matrix = oc.sparse.open(spilling)
        worst = oc.max(abs(matrix @ oc.open(out / "x.npy") - b)).item()
    assert worst <= 1e-11


# -- faults ------------------------------------------------------------------------------------------------------------


def failure(call: Callable[[], Any]) -> OutcoreError | None:
    try:
        call()
    except OutcoreError as error:
        return error.with_traceback(None)  # whose frames hold arrays
    return None


@pytest.fixture(scope="module")
def faulty(shared: Path) -> Path:
    path = shared / "faulty.ocs"
    with session():
        stored(grid(13, 13, 13), path, 1024)
    return path


@pytest.mark.parametrize("fault", FAULTS)
def test_the_nth_call_of_factorize_and_solve_fails_for_every_n(
    fault: str, faulty: Path, out: Path, scratch: Path
) -> None:
    """Each time nothing is left under the factor's name, and the same session's next try succeeds."""
    code, cause = FAULTS[fault]
    matrix, b = grid(13, 13, 13), np.ones(13**3)

    def work() -> Any:
        F = analyze(oc.sparse.open(faulty), "spd", ordering="natural").factorize(out / "f.ocf", overwrite=True)
        return F.solve(b)

    sweep = Sweep(fault, 3000)
    for n in sweep:
        clear(out)
        with session(scratch, pool_limit=8 * MIB, faults=fault.format(n=n)) as now:
            error = failure(work)
            if error is None:
                continue
            sweep.failed()
            assert (error.code, cause in str(error)) == (code, True), error
            assert "\n" not in str(error)
            assert_nothing_but_kept(now)
            assert residual(matrix, work(), b) <= GOOD
        assert files_below(out) == ["f.ocf"]
    assert files_below(scratch) == []


def test_a_failed_factorization_leaves_nothing_under_its_name(faulty: Path, out: Path, scratch: Path) -> None:
    for fault in ("write:3", "write:3:enospc", "torn-write:3", "sync:1", "rename:1"):
        with session(scratch, faults=fault):
            F = analyze(oc.sparse.open(faulty), ordering="natural")
            with pytest.raises(OutcoreError):
                F.factorize(out / "f.ocf")
            assert files_below(out) == []
            assert F.nbytes == 0
            F.factorize(out / "f.ocf")
        clear(out)


# -- sessions ----------------------------------------------------------------------------------------------------------


def test_several_factorizations_live_beside_each_other(cube: Any, scratch: Path) -> None:
    with session(scratch):
        made: list[tuple[Factorization, Any]] = []
        for number in range(12):
            matrix = cube + scipy.sparse.eye_array(cube.shape[0]) * number
            made.append((cholesky(matrix), matrix))
        b = np.random.default_rng(11).normal(size=cube.shape[0])
        for _ in range(2):
            for F, matrix in made:
                assert residual(matrix, F.solve(b), b) <= GOOD
        assert len(files_below(scratch)) >= 12
        del made, F
    assert files_below(scratch) == []
