"""SciPy's own functions with matrices that stay on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg as theirs
from support.running import session
from support.sparse import write

import outcore as oc
from outcore.errors import DTypeError

ORDER = 120
SOLVERS = ("cg", "cgs", "bicg", "bicgstab", "gmres", "lgmres", "qmr", "gcrotmk", "tfqmr", "lsqr")


def definite(kind: Any) -> Any:
    def part(seed: int) -> Any:
        return scipy.sparse.random_array((ORDER, ORDER), density=0.03, rng=np.random.default_rng(seed))

    found = part(0) + (1j * part(1) if kind is complex else 0 * part(1))
    return (found + found.conj().T + scipy.sparse.diags_array(np.linspace(5, 50, ORDER))).tocsr()


@pytest.fixture(params=[float, complex])
def pair(request: Any, tmp_path: Path) -> Any:
    """A matrix of SciPy's, and ours."""
    matrix = definite(request.param)
    with session():
        yield matrix, write(matrix, tmp_path, 32)


@pytest.mark.parametrize("name", SOLVERS)
def test_solvers_take_the_steps_they_take_with_scipys(name: str, pair: Any) -> None:
    matrix, a = pair
    b = matrix @ np.ones(ORDER)
    expected = getattr(theirs, name)(matrix, b)
    found = getattr(theirs, name)(a, b)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-8, atol=1e-8)
    assert found[1] == expected[1]


@pytest.mark.parametrize("name", ["minres", "lsmr"])
def test_solvers_of_real_systems(name: str, tmp_path: Path) -> None:
    matrix = definite(float)
    with session():
        found = getattr(theirs, name)(write(matrix, tmp_path, 32), np.ones(ORDER))[0]
    np.testing.assert_allclose(found, getattr(theirs, name)(matrix, np.ones(ORDER))[0], rtol=1e-8, atol=1e-8)


def test_eigenvalues_and_singular_values(pair: Any) -> None:
    matrix, a = pair
    for name in ("eigsh", "eigs"):
        find = getattr(theirs, name)
        v0 = np.ones(ORDER)
        found, expected = (find(of, k=3, v0=v0, return_eigenvectors=False) for of in (a, matrix))
        np.testing.assert_allclose(np.sort(found.real), np.sort(expected.real))
    v0 = np.ones(ORDER)
    found, expected = (theirs.svds(of, k=3, v0=v0, return_singular_vectors=False) for of in (a, matrix))
    np.testing.assert_allclose(found, expected)


def test_a_linear_operator_of_theirs(pair: Any) -> None:
    matrix, a = pair
    operator = theirs.aslinearoperator(a)
    assert (operator.shape, operator.dtype) == (matrix.shape, matrix.dtype)
    random = np.random.default_rng(0)
    for shape in ((ORDER,), (ORDER, 1), (ORDER, 3)):
        x = random.normal(size=shape) + 1j * random.normal(size=shape)
        np.testing.assert_allclose(operator @ x, matrix @ x)
        np.testing.assert_allclose(operator.H @ x, matrix.conj().T @ x)
    x = random.normal(size=(ORDER, 2))
    both = 2 * operator + operator @ operator
    np.testing.assert_allclose(both @ x, 2 * matrix @ x + matrix @ (matrix @ x))
    np.testing.assert_allclose(a.T.rmatmat(x), matrix.conj() @ x)


def test_what_multiplies_by_an_operator_of_ours(pair: Any) -> None:
    matrix, a = pair
    operator = oc.sparse.linalg.aslinearoperator(a)
    first = np.random.default_rng(0).normal(size=(ORDER, 3)).astype(matrix.dtype)
    found = theirs.lobpcg(operator, first, tol=1e-8, maxiter=200)[0]
    np.testing.assert_allclose(np.sort(found), np.linalg.eigvalsh(matrix.toarray())[-3:])


def test_nothing_is_made_dense_unasked(pair: Any) -> None:
    _, a = pair
    with pytest.raises(DTypeError, match="no dense array; use its methods"):
        oc.asarray(a)
