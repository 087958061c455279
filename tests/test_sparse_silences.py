"""Sparse matrices and their solvers give no answer for what they did not compute: right values, or an error."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg
from hypothesis import given, settings
from hypothesis import strategies as st
from support.running import session
from support.sizes import examples

import outcore as oc
from outcore.errors import ArgumentError, DTypeError, LinAlgError, MemoryLimitError, ShapeError
from outcore.sparse import linalg

SOLVERS = (linalg.cg, linalg.minres, linalg.bicgstab, linalg.gmres)


@pytest.fixture(autouse=True)
def _session(scratch: Path) -> Any:
    with session(scratch) as made:
        yield made


def stored(matrix: Any, data: Path, name: str = "a.ocs") -> Any:
    return oc.sparse.from_scipy(scipy.sparse.csr_array(matrix), data / name)


# -- sums -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.complex64, np.int8, np.uint8, np.float64, bool])
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_sums_of_long_rows_lose_nothing(kind: Any, axis: int | None, data: Path) -> None:
    count = 60_000
    values = np.full(count, 0.1).astype(kind) if np.dtype(kind).kind in "fc" else np.ones(count, dtype=kind)
    a = oc.sparse.from_coo(np.zeros(count, int), np.arange(count), values, (1, count), data / "a.ocs")
    for matrix, other in ((a, axis), (a.T, None if axis is None else 1 - axis % 2)):
        found = matrix.sum(other).compute()
        dense = np.asarray(values)[None, :]
        wanted = dense.sum(axis, dtype=np.result_type(kind, np.float64) if np.dtype(kind).kind in "fc" else None)
        np.testing.assert_allclose(found, wanted.astype(found.dtype), rtol=2 * np.finfo(np.float32).eps)
    mean = a.mean(axis).compute()
    np.testing.assert_allclose(mean, dense.mean(axis, dtype=np.result_type(kind, np.float64)), rtol=1e-3)
    assert mean.dtype == (np.dtype(kind) if np.dtype(kind).kind in "fc" else np.float64)


def test_traces_lose_nothing(data: Path) -> None:
    count = 300_000
    places = np.arange(count)
    a = oc.sparse.from_coo(places, places, np.full(count, 0.1, np.float32), (count, count), data / "a.ocs")
    trace = a.trace()
    assert trace.dtype == np.float32
    np.testing.assert_allclose(trace, count * np.float64(np.float32(0.1)), rtol=1e-7)


def test_numpys_functions_give_what_the_methods_give(data: Path) -> None:
    matrix = scipy.sparse.random_array((30, 20), density=0.3, rng=np.random.default_rng(0))
    a, dense = stored(matrix, data), matrix.toarray()
    for function in (np.sum, np.mean, np.max, np.min):
        for axis in (None, 0, 1):
            np.testing.assert_allclose(np.asarray(function(a, axis=axis)), function(dense, axis=axis))
    np.testing.assert_allclose(np.asarray(np.sum(a, dtype=np.float32)), dense.sum(dtype=np.float32), rtol=1e-6)
    with pytest.raises(ArgumentError, match="out= is not taken"):
        np.sum(a, out=np.zeros(()))


# -- what a matrix is not ---------------------------------------------------------------------------------------------


def test_a_matrix_is_no_sequence_no_truth_and_no_array(data: Path) -> None:
    a = stored(np.asarray([[1.0, 2], [3, 4]]), data)
    calls: dict[str, Any] = {
        "not iterated": lambda: list(a),
        "A.sum": lambda: sum(a),
        "counts such entries": lambda: 3.0 in a,
        "neither true nor false": lambda: bool(a),
        "A.nnz": lambda: len(a),
        "toarray": lambda: np.asarray(a),
        "A.toarray": lambda: np.dot(a, np.ones(2)),
        "from_scipy": lambda: scipy.sparse.csr_array(np.eye(2)) @ a,
    }
    for said, call in calls.items():
        with pytest.raises(TypeError, match=said):
            call()


def test_matrices_of_scipys_are_told_from_scipy(data: Path) -> None:
    a, b = stored(np.eye(2), data), scipy.sparse.csr_array(np.eye(2))
    for call in (lambda: a @ b, lambda: a.dot(b), lambda: a.product(b), lambda: a + b, lambda: a.multiply(b)):
        with pytest.raises(DTypeError, match=r"from_scipy\(B\)"):
            call()
    for call in (lambda: a == b, lambda: a != b, lambda: a - b, lambda: a.maximum(b), lambda: a < b):
        with pytest.raises(DTypeError, match=r"from_scipy\(B\)"):
            call()
    assert (a.dot(a) != a).nnz == 0
    np.testing.assert_array_equal((a @ np.matrix([[1.0, 2], [3, 4]])).compute(), [[1, 2], [3, 4]])


@settings(max_examples=examples(20), deadline=None)
@given(
    values=st.lists(st.sampled_from([0.0, 1.0, -1.0, 2.0, np.nan, np.inf]), min_size=4, max_size=4),
    number=st.sampled_from([0, 1, -1.0, 2, np.nan, np.inf, np.float32(2)]),
    how=st.sampled_from(["__eq__", "__ne__", "__lt__", "__gt__", "__le__", "__ge__"]),
)
def test_comparisons_are_numpys_or_refused(tmp_path_factory: Any, values: list[float], number: Any, how: str) -> None:
    dense = np.reshape(values, (2, 2))
    with session():
        a = stored(dense, tmp_path_factory.mktemp("a"))
        if getattr(np.float64(0), how)(number):
            with pytest.raises(ArgumentError, match="wherever nothing is stored"):
                getattr(a, how)(number)
        else:
            np.testing.assert_array_equal(getattr(a, how)(number).toarray(), getattr(dense, how)(number))


def test_matrices_are_compared_where_few_elements_differ(data: Path) -> None:
    a, b = stored([[1.0, 2], [0, 4]], data), stored([[1.0, 3], [5, 4]], data, "b.ocs")
    assert (a != b).toarray().tolist() == [[False, True], [True, False]]
    with pytest.raises(ArgumentError, match=r"\(A != B\)\.nnz == 0"):
        _ = a == b
    with pytest.raises(ShapeError):
        _ = a != stored(np.ones((3, 2)), data, "c.ocs")
    assert (a == None) is False  # noqa: E711
    assert (a != "text") is True
    assert {a: 1}[a] == 1


# -- solvers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS)
@settings(max_examples=12, deadline=None)
@given(
    power=st.sampled_from([-1070, -1040, -600, -500, 0, 500, 520, 600, 1000, 1020]),
    start=st.booleans(),
    seed=st.integers(0, 1 << 30),
)
def test_right_sides_of_any_size_are_solved(solver: Any, power: int, start: bool, seed: int) -> None:
    draw = np.random.default_rng(seed)
    matrix = np.diag(draw.uniform(2, 5, 12)) + 0.1
    b = np.ldexp(draw.integers(1, 9, 12).astype(float), power)
    seen: list[Any] = []
    options = {"callback_type": "x"} if solver is linalg.gmres else {}
    with session():
        x0 = b / 3 if start else None
        x, info = solver(matrix, b, x0=x0, rtol=1e-9, callback=seen.append, **options)
        found, last = x.compute(), np.asarray(seen[-1])
    assert info == 0
    exact = np.ldexp(np.linalg.solve(matrix, np.ldexp(b, -power)), power)
    scale = np.abs(exact).max()
    assert np.abs(found - exact).max() <= 1e-7 * scale + 5e-324
    assert np.abs(last - exact).max() <= 1e-7 * scale + 5e-324


@pytest.mark.parametrize("power", [-1040, -600, 0, 520, 1000])
@pytest.mark.parametrize("solver", ["lsmr", "float32"])
def test_least_squares_of_any_size_are_solved(solver: str, power: int) -> None:
    draw = np.random.default_rng(1)
    matrix, b = draw.normal(size=(30, 6)), draw.normal(size=30)
    kind: Any = np.float64 if solver == "lsmr" else np.float32
    power = power if solver == "lsmr" else power // 10
    right = np.ldexp(b, power).astype(kind)
    found = linalg.lsmr(matrix.astype(kind), right, atol=1e-10 if solver == "lsmr" else 1e-5)
    exact = np.linalg.lstsq(matrix, np.ldexp(right.astype(float), -power), rcond=None)[0]
    assert found.istop == 2
    np.testing.assert_allclose(np.ldexp(found.x.compute().astype(float), -power), exact, rtol=1e-3)


def test_what_no_number_holds_is_said() -> None:
    with pytest.raises(LinAlgError, match="beyond the range of float64"):
        linalg.cg(np.eye(3) * 1e-10, np.full(3, 1e300))


@pytest.mark.parametrize("solver", [*SOLVERS, linalg.lsmr])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_numbers_that_are_none_end_solvers(solver: Any, value: float) -> None:
    matrix, b = np.diag(np.arange(1.0, 9)), np.ones(8)
    spoilt, wrong = matrix.copy(), b.copy()
    spoilt[2, 2] = wrong[3] = value
    with pytest.raises(LinAlgError, match="not finite"):
        solver(spoilt, b)
    with pytest.raises(ArgumentError, match="b has NaN or infinity"):
        solver(matrix, wrong)
    with pytest.raises(ArgumentError, match="x0 has NaN or infinity"):
        solver(matrix, b, x0=wrong)


@settings(max_examples=15, deadline=None)
@given(
    damp=st.sampled_from([0.0, 0.5, 5.0, 1e3]),
    tall=st.booleans(),
    is_complex=st.booleans(),
    seed=st.integers(0, 1 << 30),
)
def test_lsmr_solves_its_problem_from_any_start(damp: float, tall: bool, is_complex: bool, seed: int) -> None:
    draw = np.random.default_rng(seed)
    shape = (40, 15) if tall else (15, 40)
    matrix, b, start = draw.normal(size=shape), draw.normal(size=shape[0]), draw.normal(size=shape[1])
    if is_complex:
        matrix = matrix + 1j * draw.normal(size=shape)
    with session():
        found = linalg.lsmr(matrix, b, damp=damp, x0=start, atol=1e-11, btol=1e-11, maxiter=400)
        x = found.x.compute()
    gradient = matrix.conj().T @ (b - matrix @ x) - damp**2 * x
    residual = np.hypot(np.linalg.norm(b - matrix @ x), damp * np.linalg.norm(x))
    assert found.istop in (1, 2)
    np.testing.assert_allclose([found.normr, found.normar], [residual, np.linalg.norm(gradient)], atol=1e-9)
    assert np.linalg.norm(gradient) <= 1e-6 * max(damp, 1) * np.linalg.norm(b)


def test_lobpcg_warns_of_what_did_not_converge() -> None:
    matrix, first = np.diag(np.arange(1.0, 51)), np.random.default_rng(0).normal(size=(50, 2))
    with pytest.warns(UserWarning, match="larger maxiter"):
        linalg.lobpcg(matrix, first, tol=1e-12, maxiter=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        linalg.lobpcg(matrix, first, tol=1e-6, maxiter=200)


@settings(max_examples=10, deadline=None)
@given(fall=st.sampled_from([0.0, 0.1, 1.0]), k=st.integers(1, 6), seed=st.integers(0, 1 << 20))
def test_randomized_svd_is_no_worse_than_nothing(fall: float, k: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    left, right = (np.linalg.qr(draw.normal(size=(size, 40)))[0] for size in (60, 50))
    sizes = np.exp(-fall * np.arange(40))
    matrix = left @ np.diag(sizes) @ right.T
    with session():
        u, s, vh = linalg.randomized_svd(matrix, k=k, seed=seed)
        error = np.linalg.norm(matrix - (u @ np.diag(s) @ vh).compute())
    assert (s <= 1 + 1e-12).all()
    assert error <= np.linalg.norm(sizes)
    assert error <= 1.5 * np.linalg.norm(sizes[k:]) + 1e-12


# -- algorithms over entries ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [-5.0, np.nan, -1e-300])
def test_nmf_and_pagerank_refuse_entries_below_0(value: float, data: Path) -> None:
    a = stored([[value, 1.0, 0], [1, 9, 1], [0, 1, 1]], data)
    for call in (lambda: oc.sparse.nmf(a, 2), lambda: oc.sparse.pagerank(a)):
        with pytest.raises(ArgumentError, match="negative or NaN"):
            call()


@pytest.mark.parametrize("wrong", [[2.0, -1, 0], [np.nan, 1, 1], [np.inf, 1, 1], [0, 0, 0]])
def test_pagerank_refuses_such_personalization(wrong: list[float], data: Path) -> None:
    a = oc.sparse.from_coo([0, 0, 1], [1, 2, 0], None, (3, 3), data / "a.ocs")
    with pytest.raises(ArgumentError, match="personalization"):
        oc.sparse.pagerank(a, personalization=np.asarray(wrong))


# -- limits -----------------------------------------------------------------------------------------------------------


def first_refusal(call: Any, scratch: Path, limit: int) -> int | None:
    """The limit that is named, with which the same call is not refused again."""
    with session(scratch, pool_limit=limit):
        try:
            call()
            return None
        except MemoryLimitError as refused:
            named = refused.smallest
    assert named is not None
    assert named > limit
    with session(scratch, pool_limit=named):
        call()
    return named


@settings(max_examples=12, deadline=None)
@given(
    shape=st.tuples(st.integers(50, 1500), st.integers(50, 1500), st.integers(50, 1500)),
    entries=st.integers(100, 60_000),
    kind=st.sampled_from([np.float64, np.float32, np.int8, None]),
    limit=st.sampled_from([1 << 21, 3 << 20, 5 << 20, 8 << 20]),
    masked=st.sampled_from([None, False, True]),
    side=st.sampled_from([256, 1024, None]),
    seed=st.integers(0, 1 << 30),
)
def test_the_limit_that_spgemm_names_works(
    tmp_path_factory: Any, shape: Any, entries: int, kind: Any, limit: int, masked: Any, side: Any, seed: int
) -> None:
    draw, folder = np.random.default_rng(seed), tmp_path_factory.mktemp("spgemm")
    options: dict[str, Any] = {"duplicates": "last"} | ({} if side is None else {"side": side})

    def made(rows: int, columns: int, name: str) -> Any:
        r, c = draw.integers(0, rows, entries), np.minimum(draw.geometric(8 / columns, entries) - 1, columns - 1)
        values = None if kind is None else draw.integers(1, 9, entries).astype(kind)
        return oc.sparse.from_coo(r, c, values, (rows, columns), folder / name, **options)

    with session():
        a, b = made(shape[0], shape[1], "a.ocs"), made(shape[1], shape[2], "b.ocs")
        mask = None if masked is None else made(shape[0], shape[2], "m.ocs")
    given_mask = {} if mask is None else {"mask": mask, "complement": bool(masked)}
    first_refusal(lambda: oc.sparse.spgemm(a, b, path=folder / "c.ocs", overwrite=True, **given_mask), folder, limit)


def test_matrices_that_do_not_fit_name_a_limit(data: Path, scratch: Path) -> None:
    count = 200_000
    places = np.arange(count)
    a = oc.sparse.from_coo(places, places, np.ones(count), (count, count), data / "a.ocs")
    for call in (a.to_scipy, a.diagonal, lambda: a.argmax(0), lambda: a.norm(1), lambda: a.count_nonzero(1)):
        assert first_refusal(call, scratch, 1 << 20) is not None
    small = oc.sparse.from_coo([0, 900], [0, 900], [1.0, 2.0], (1000, 1000), data / "b.ocs")
    for call in (small.toarray, lambda: linalg.block_jacobi(small + scipy_eye(data), 300)):
        assert first_refusal(call, scratch, 1 << 20) is not None


def scipy_eye(data: Path) -> Any:
    return oc.sparse.from_scipy(scipy.sparse.eye_array(1000), data / "eye.ocs", overwrite=True)
