"""Systems with dense triangular matrices and Cholesky factors as arrays: SciPy's, at every limit."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from support.running import session
from support.sizes import covering

import outcore as oc
from outcore.errors import ArgumentError, DTypeError, LinAlgError, MemoryLimitError, ShapeError


def matrix(n: int, columns: int, dtype: str = "float64", seed: int = 0) -> Any:
    random = np.random.default_rng(seed)
    x = random.normal(size=(n, columns))
    if dtype.startswith("c"):
        x = x + 1j * random.normal(size=(n, columns))
    return x.astype(dtype)


def definite(n: int, dtype: str = "float64", seed: int = 0) -> Any:
    x = matrix(n, n, dtype, seed)
    return x @ x.conj().T / n + np.eye(n)


@pytest.mark.parametrize(
    ("dtype", "n", "trans"),
    covering(["float64", "complex128", "float32"], [1, 7, 512, 513, 1300], [0, 1, 2, "N", "T", "C"]),
)
def test_solutions_are_scipys(dtype: str, n: int, trans: Any) -> None:
    a, b = matrix(n, n, dtype) / np.sqrt(n) + 3 * np.eye(n), matrix(n, 300, dtype, 1)
    a = a.astype(dtype)
    for lower in (False, True):
        for unit in (False, True):
            x = oc.linalg.solve_triangular(a, b, trans=trans, lower=lower, unit_diagonal=unit)
            expected = scipy.linalg.solve_triangular(a, b, trans=trans, lower=lower, unit_diagonal=unit)
            assert (x.shape, x.dtype) == (expected.shape, expected.dtype)
            scale = np.abs(expected).max() * (1e-12 if a.real.dtype == np.float64 else 1e-4)
            np.testing.assert_allclose(x.compute(), expected, rtol=0, atol=scale)
    one = oc.linalg.solve_triangular(a, b[:, 0], trans=trans)
    np.testing.assert_array_equal(one.compute(), oc.linalg.solve_triangular(a, b[:, :1], trans=trans).compute()[:, 0])


def test_what_is_not_looked_at_may_be_anything() -> None:
    a = np.tril(matrix(700, 700)) + 30 * np.eye(700)
    x = oc.linalg.solve_triangular(np.where(np.tri(700) > 0, a, np.nan), np.ones(700), lower=True).compute()
    np.testing.assert_allclose(a @ x, 1.0)
    unit = np.where(np.tri(700, k=-1) > 0, a / 100, np.nan)
    x = oc.linalg.solve_triangular(unit, np.ones(700), lower=True, unit_diagonal=True).compute()
    np.testing.assert_allclose((np.tril(a / 100, -1) + np.eye(700)) @ x, 1.0, rtol=1e-9)


def test_refusals() -> None:
    a = np.triu(matrix(900, 900))
    a[640, 640] = 0.0
    with pytest.raises(LinAlgError, match="element 640 of its diagonal is 0"):
        oc.linalg.solve_triangular(a, np.ones(900)).compute()
    with pytest.raises(ShapeError, match="not square"):
        oc.linalg.solve_triangular(np.ones((3, 4)), np.ones(3))
    for b in (np.ones(4), np.ones((3, 1, 1)), 1.0):
        with pytest.raises(ShapeError, match="do not go together"):
            oc.linalg.solve_triangular(np.eye(3), b)
    with pytest.raises(ArgumentError, match="trans='X'"):
        oc.linalg.solve_triangular(np.eye(3), np.ones(3), trans="X")  # type: ignore[arg-type]
    with pytest.raises(DTypeError):
        oc.linalg.solve_triangular(np.eye(3), np.asarray(["a", "b", "c"]))
    assert oc.linalg.solve_triangular(np.eye(3), np.ones((3, 0))).shape == (3, 0)


def test_a_stored_triangle_larger_than_memory_has_the_same_bits(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", matrix(2600, 2600) / 60 + 3 * np.eye(2600))
    np.save(tmp_path / "b.npy", matrix(2600, 900, seed=1))
    a, b = oc.open(tmp_path / "a.npy"), oc.open(tmp_path / "b.npy")
    first: dict[Any, Any] = {}
    for limit, threads in [("14MiB", 1), ("24MiB", 3), ("1GiB", 2)]:
        for trans in (0, 1):
            with session(pool_limit=limit, threads=threads):
                x = oc.linalg.solve_triangular(a, b, trans=trans)
                path = tmp_path / f"x-{limit}-{trans}.npy"
                said, ran = oc.explain({path: x}), oc.store({path: x})
            assert said.exact
            assert (said.bytes_read, said.bytes_written) == (ran.bytes_read, ran.bytes_written)
            own = np.load(path)
            np.testing.assert_array_equal(own, first.setdefault(trans, own))


@pytest.mark.parametrize(("dtype", "upper"), [("float64", False), ("complex128", True), ("float32", False)])
def test_cholesky_of_large_matrices_goes_by_tiles(dtype: str, upper: bool) -> None:
    a = definite(2100, dtype).astype(dtype)
    seen = np.triu(a) if upper else np.tril(a)
    factor = oc.linalg.cholesky(seen, upper=upper)
    assert factor.dtype == a.dtype
    own = factor.compute()
    assert not (np.tril(own, -1) if upper else np.triu(own, 1)).any()
    expected = scipy.linalg.cholesky(a, lower=not upper)
    atol = 1e-12 if a.real.dtype == np.float64 else 1e-4
    np.testing.assert_allclose(own, expected, rtol=0, atol=atol)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(factor)).compute(), own)


def test_cholesky_larger_than_memory(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", definite(2600))
    a = oc.open(tmp_path / "a.npy")
    stored = []
    for limit in ("16MiB", "1GiB"):
        with session(pool_limit=limit):
            targets = {tmp_path / f"l-{limit}.npy": oc.linalg.cholesky(a)}
            said, ran = oc.explain(targets), oc.store(targets)
        assert (said.bytes_read, said.bytes_written) == (ran.bytes_read, ran.bytes_written)
        stored.append(np.load(tmp_path / f"l-{limit}.npy"))
    np.testing.assert_array_equal(*stored)
    with session(pool_limit="1MiB"), pytest.raises(MemoryLimitError):
        oc.linalg.cholesky(a).compute()
    indefinite = np.load(tmp_path / "a.npy")
    indefinite[2077, 2077] = -1.0
    with pytest.raises(LinAlgError, match="row 2077"):
        oc.linalg.cholesky(indefinite).compute()


@pytest.mark.parametrize(("n", "dtype"), [(40, "complex128"), (2100, "float64")])
def test_eigenvalues_of_a_pair(n: int, dtype: str) -> None:
    a, b = matrix(n, n, dtype), definite(n, dtype, 1)
    a = a + a.conj().T
    result = oc.linalg.eigh(np.tril(a), b=np.tril(b))
    values, vectors = oc.compute(*result)
    residual = a @ vectors - b @ vectors * values
    assert np.abs(residual).max() < 1e-12 * np.abs(values).max() * np.sqrt(n)
    assert np.abs(vectors.conj().T @ b @ vectors - np.eye(n)).max() < 1e-12
    np.testing.assert_array_equal(oc.linalg.eigvalsh(a, b=b, subset_by_index=(3, 9)).compute(), values[3:10])
    assert oc.linalg.eigh(a, b=b, subset_by_index=(3, 9)).eigenvectors.shape == (n, 7)
    with pytest.raises(ShapeError, match="matrices of shapes"):
        oc.linalg.eigh(a, b=b[:3, :3])
    with pytest.raises(LinAlgError, match="not positive definite"):
        oc.linalg.eigvalsh(a, b=-b).compute()
