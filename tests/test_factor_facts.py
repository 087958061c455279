"""Conditions, null spaces and exponentials by factors and products: NumPy's and SciPy's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
import scipy.sparse.linalg
from hypothesis import given, settings
from hypothesis import strategies as st
from support.definite import drawn, grid
from support.running import session
from support.sizes import examples, sized

import outcore as oc
from outcore.errors import ArgumentError, DTypeError, LinAlgError, ShapeError
from outcore.sparse.linalg import analyze, expm_multiply


def reciprocal(matrix: Any) -> float:
    return 1.0 / float(np.linalg.cond(matrix.toarray() if hasattr(matrix, "toarray") else matrix, 1))


@settings(max_examples=examples(30), deadline=None)
@given(n=st.integers(1, 40), seed=st.integers(0, 99), is_complex=st.booleans())
def test_conditions_are_those_of_the_one_norm(n: int, seed: int, is_complex: bool) -> None:
    random = np.random.default_rng(seed)
    matrix = random.normal(size=(n, n)) + (1j * random.normal(size=(n, n)) if is_complex else 0)
    shifted = scipy.sparse.csr_array(matrix)
    symmetric, definite = shifted + shifted.T, drawn(n, 2 * n, random, is_complex)
    factors: list[tuple[Any, Any]] = [
        (oc.linalg.lu_factor(matrix), matrix),
        (oc.linalg.cho_factor(definite.toarray()), definite),
        (analyze(definite, "spd"), definite),
        (analyze(shifted, "lu"), shifted),
        (analyze(symmetric, "sym"), symmetric),
    ]
    for factor, of in factors:
        expected = reciprocal(of)
        assert expected * (1 - 1e-8) <= factor.rcond <= 10 * expected


def test_conditions_of_the_singular_and_the_huge() -> None:
    assert oc.linalg.lu_factor(np.diag([1.0, 1e-300])).rcond == 1e-300
    assert analyze(scipy.sparse.eye_array(3, format="csr") * 1e300, "spd").rcond == 1.0
    for singular in (np.ones((4, 4)), np.diag([1e-100, 0.0, 1e-100]), np.full((2, 2), -128, dtype=np.int8)):
        assert analyze(scipy.sparse.csr_array(singular), "sym").rcond == 0.0
    skew = scipy.sparse.csr_array([[2.0, 0.0], [100.0, 2.0]])
    for factor in (analyze(skew, "sym"), oc.linalg.cho_factor(np.asarray([[2.0, 5.0], [1.0, 2.0]]))):
        with pytest.raises(LinAlgError, match="not symmetric"):
            _ = factor.rcond
    with pytest.raises(LinAlgError, match="approximate"):
        _ = analyze(grid(5, 5), "spd", precision="mixed").rcond


def laplacian(n: int) -> Any:
    """Of a square with free edges: constants are its null space."""
    line = scipy.sparse.diags_array([np.full(n - 1, -1.0)] * 2, offsets=[-1, 1]) + scipy.sparse.diags_array(
        np.r_[1.0, np.full(n - 2, 2.0), 1.0]
    )
    one = scipy.sparse.eye_array(n)
    return scipy.sparse.csr_array(scipy.sparse.kron(line, one) + scipy.sparse.kron(one, line))


def singular(name: str) -> tuple[Any, str]:
    random = np.random.default_rng(0)
    if name == "blocks":
        return scipy.sparse.block_diag([laplacian(n) for n in (10, 12, 5)], format="csr"), "sym"
    if name == "columns":
        matrix = scipy.sparse.random_array((200, 200), density=0.05, rng=random).toarray()
        matrix[:, 7], matrix[:, 9] = matrix[:, 3], 0
        return scipy.sparse.csr_array(matrix), "lu"
    if name in ("full", "full complex", "many"):
        x = random.normal(size=(150, 150)) + (1j * random.normal(size=(150, 150)) if name == "full complex" else 0)
        values = random.normal(size=150)
        values[: 20 if name == "many" else 5] = 0
        basis = np.linalg.qr(x)[0]
        full = (basis * values) @ basis.conj().T
        return scipy.sparse.csr_array((full + full.conj().T) / 2), "her"
    return {
        "plane": (laplacian(30), "sym"),
        "plane as lu": (laplacian(20), "lu"),
        "zero": (scipy.sparse.csr_array((6, 6)), "sym"),
        "regular": (grid(9, 9), "sym"),
    }[name]


@pytest.mark.parametrize(
    "name", ["plane", "plane as lu", "blocks", "columns", "full", "full complex", "many", "zero", "regular"]
)
def test_null_spaces(name: str) -> None:
    matrix, kind = singular(name)
    vectors = analyze(matrix, kind).null_space().compute()  # type: ignore[arg-type]
    expected = scipy.linalg.null_space(matrix.toarray(), rcond=1e-12)
    assert vectors.shape == expected.shape
    assert np.abs(matrix @ vectors).max(initial=0.0) < 1e-13
    np.testing.assert_allclose(vectors.conj().T @ vectors, np.eye(vectors.shape[1]), atol=1e-13)
    within = expected @ (expected.conj().T @ vectors)
    np.testing.assert_allclose(within, vectors, atol=1e-9)


def test_null_spaces_are_of_their_scale() -> None:
    small = scipy.sparse.diags_array([1e-200, 0.0, 1e-200], format="csr")
    np.testing.assert_allclose(np.abs(analyze(small, "sym").null_space().compute()), [[0.0], [1.0], [0.0]], atol=1e-14)
    huge = analyze(laplacian(9) * 1e160, "sym").null_space().compute()
    np.testing.assert_allclose(np.abs(huge), np.full((81, 1), 1 / 9), rtol=1e-10)
    whole = scipy.sparse.csr_array(np.full((2, 2), -128, dtype=np.int8))
    assert analyze(whole, "lu").null_space().compute().shape == (2, 1)


def test_null_spaces_of_a_definite_factor_are_refused() -> None:
    with pytest.raises(LinAlgError, match='kind="sym"'):
        analyze(grid(4, 4), "spd").null_space()


def test_exponentials_are_scipys(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    sparse = scipy.sparse.random_array((300, 300), density=0.05, rng=random).tocsr()
    cases: list[tuple[Any, complex]] = [
        (sparse, sized(1.0, 3.0)),
        (-grid(400), sized(2.0, 20.0)),
        (random.normal(size=(200, 200)) / 3, 1.0),
        (random.normal(size=(50, 50)), 1j),
        (random.normal(size=(40, 40)) + 1j * np.eye(40), -0.5),
        (np.zeros((5, 5)), 1.0),
        (np.eye(5) * 700.0, 1.0),
    ]
    for matrix, t in cases:
        b = random.normal(size=(matrix.shape[0], 3))
        full = matrix.toarray() if hasattr(matrix, "toarray") else matrix
        expected = scipy.linalg.expm(full * t) @ b
        stored = oc.sparse.from_scipy(matrix) if hasattr(matrix, "toarray") else matrix
        for a in (stored, scipy.sparse.linalg.aslinearoperator(matrix)):
            own = expm_multiply(a, b, t=t)
            assert own.dtype == expected.dtype
            np.testing.assert_allclose(own.compute(), expected, atol=1e-12 * np.abs(expected).max(), rtol=0)
        np.testing.assert_array_equal(expm_multiply(stored, b[:, 0], t=t).shape, (matrix.shape[0],))
    b, t = random.normal(size=(400, 2000)), sized(0.1, 1.0)
    with session(tmp_path):
        free = expm_multiply(-grid(400), b, t=t).compute()
    with session(tmp_path, pool_limit="14MiB"):
        oc.store({tmp_path / "x.npy": expm_multiply(oc.sparse.from_scipy(-grid(400)), oc.asarray(b), t=t)})
    np.testing.assert_allclose(np.load(tmp_path / "x.npy"), free, rtol=1e-12, atol=1e-14)


def test_exponentials_of_graphs_that_are_known_by_products() -> None:
    """Isolated vertices, and sizes that no product with B tells."""
    star = np.zeros((8, 8))
    star[1, 2:] = star[2:, 1] = 1.0
    matrices = [star - np.diag(star.sum(axis=0))]
    for seed in range(sized(3, 8)):
        random = np.random.default_rng(seed)
        graph = scipy.sparse.random_array((80, 80), density=0.02, rng=random).toarray() > 0
        graph = (graph | graph.T).astype(float)
        matrices.append(graph - np.diag(graph.sum(axis=0)))
    for matrix in matrices:
        b = np.eye(len(matrix))[2]
        expected = scipy.linalg.expm(5.0 * matrix) @ b
        for a in (scipy.sparse.csr_array(matrix), scipy.sparse.linalg.aslinearoperator(matrix)):
            np.testing.assert_allclose(expm_multiply(a, b, t=5.0).compute(), expected, atol=1e-12)
    whole = np.asarray([[0, -128], [-128, 0]], dtype=np.int8)
    own = expm_multiply(whole, np.ones(2), t=0.25).compute()
    np.testing.assert_allclose(own, np.full(2, np.exp(-32.0)), atol=1e-12)
    twice = scipy.sparse.linalg.LinearOperator((2, 2), matvec=lambda v: 2 * v, dtype=np.float64)
    np.testing.assert_allclose(expm_multiply(twice, np.ones(2)).compute(), np.exp(2.0))


def test_exponentials_refuse_by_name() -> None:
    with pytest.raises(ShapeError, match=r"expm_multiply: \(2, 2\) and an array of shape \(3,\)"):
        expm_multiply(np.eye(2), np.ones(3))
    with pytest.raises(ShapeError, match="not square"):
        expm_multiply(np.ones((2, 3)), np.ones(2))
    with pytest.raises(ArgumentError, match="t=inf"):
        expm_multiply(np.eye(2), np.ones(2), t=np.inf)
    with pytest.raises(ArgumentError, match="not one finite number"):
        expm_multiply(np.eye(2), np.ones(2), t=np.ones(2))  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="products and more"):
        expm_multiply(np.diag([1e200, -1e200]), np.ones(2), t=1e200)
    with pytest.raises(DTypeError, match="not finite"):
        expm_multiply(np.full((2, 2), np.nan), np.ones(2))
    assert expm_multiply(np.eye(2), np.ones((2, 0))).shape == (2, 0)
