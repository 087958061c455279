"""Factorizations: what they promise of their factors, against NumPy: batched, tall, wide, empty, in little memory."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.running import session
from support.sizes import examples

import outcore as oc
from outcore.errors import LinAlgError, MemoryLimitError, ShapeError

DTYPES = ("float32", "float64", "complex64", "complex128", "int64", "bool")
SMALL = [(1, 1), (2, 2), (5, 3), (3, 5), (30, 30)]


def matrices(shape: tuple[int, ...], dtype: str, seed: int) -> Any:
    random = np.random.default_rng(seed)
    values = random.normal(size=shape) * 3
    if dtype.startswith("c"):
        values = values + 1j * random.normal(size=shape)
    return (values > 0) if dtype == "bool" else values.astype(dtype)


def tolerance(dtype: Any) -> float:
    return 2e-4 if np.dtype(dtype).name in ("float32", "complex64") else 1e-9


@st.composite
def problems(draw: st.DrawFn, square: bool = False) -> Any:
    """Matrices, the tile they are cut by, and NumPy's types of what is made of them."""
    m, n = draw(st.sampled_from(SMALL))
    batch = draw(st.sampled_from([(), (3,), (2, 2), (0,)]))
    dtype = draw(st.sampled_from(DTYPES))
    x = matrices((*batch, m, m if square else n), dtype, draw(st.integers(0, 999)))
    return x, tuple(draw(st.integers(1, max(length, 1))) for length in x.shape)


def lazy(x: Any, tile: tuple[int, ...]) -> oc.Array:
    return oc.rechunk(oc.asarray(x), tile) if x.size else oc.asarray(x)


def wide(x: Any) -> Any:
    return x.astype(np.float64) if x.dtype.kind in "biu" else x


def close(found: Any, expected: Any, dtype: Any) -> None:
    expected = np.asarray(expected)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=tolerance(dtype), atol=tolerance(dtype) * 30)


@settings(max_examples=examples(60), deadline=None)
@given(problem=problems(), complete=st.booleans())
def test_orthogonal_and_singular_factors(problem: Any, complete: bool) -> None:
    x, tile = problem
    with session():
        q, r = (part.compute() for part in np.linalg.qr(lazy(x, tile), mode="complete" if complete else "reduced"))
        theirs = np.linalg.qr(wide(x), mode="complete" if complete else "reduced")
        assert (q.shape, r.shape, q.dtype, r.dtype) == (
            *(part.shape for part in theirs),
            theirs.Q.dtype,
            theirs.R.dtype,
        )
        close(q @ r, wide(x), q.dtype)
        close(
            np.conj(np.swapaxes(q, -1, -2)) @ q,
            np.broadcast_to(np.eye(q.shape[-1]), (*q.shape[:-2], *[q.shape[-1]] * 2)),
            q.dtype,
        )
        u, s, vh = (part.compute() for part in np.linalg.svd(lazy(x, tile), full_matrices=complete))
        theirs = np.linalg.svd(wide(x), full_matrices=complete)
        assert [part.shape for part in (u, s, vh)] == [part.shape for part in theirs]
        assert [part.dtype for part in (u, s, vh)] == [part.dtype for part in theirs]
        k = s.shape[-1]
        close((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], wide(x), u.dtype)
        close(s, theirs.S, u.dtype)
        close(oc.linalg.svdvals(lazy(x, tile)).compute(), theirs.S, u.dtype)


@settings(max_examples=examples(60), deadline=None)
@given(problem=problems(square=True), upper=st.booleans())
def test_hermitian_and_positive_definite_matrices(problem: Any, upper: bool) -> None:
    x, tile = problem
    x = wide(x)
    n = x.shape[-1]
    hermitian = x + np.conj(np.swapaxes(x, -1, -2))
    with session():
        values, vectors = (part.compute() for part in np.linalg.eigh(lazy(hermitian, tile), UPLO="U" if upper else "L"))
        theirs = np.linalg.eigh(hermitian)
        assert (values.dtype, vectors.dtype) == (theirs.eigenvalues.dtype, theirs.eigenvectors.dtype)
        close(values, theirs.eigenvalues, vectors.dtype)
        close(hermitian @ vectors, vectors * values[..., None, :], vectors.dtype)
        close(np.linalg.eigvalsh(lazy(hermitian, tile)).compute(), theirs.eigenvalues, vectors.dtype)
        positive = (hermitian @ hermitian + np.eye(n)).astype(x.dtype)
        lower = np.linalg.cholesky(lazy(positive, tile), upper=upper).compute()
        assert lower.dtype == np.linalg.cholesky(positive).dtype
        np.testing.assert_allclose(lower, np.linalg.cholesky(positive, upper=upper), rtol=1e-2, atol=2e-2)


@settings(max_examples=examples(60), deadline=None)
@given(problem=problems(square=True), right=st.sampled_from([(), (1,), (4,)]))
def test_square_matrices(problem: Any, right: tuple[int, ...]) -> None:
    x, tile = problem
    n = x.shape[-1]
    x = (wide(x) + 20 * np.eye(n)).astype(wide(x).dtype)
    random = np.random.default_rng(3)
    b = random.normal(size=(n, *right)).astype(np.float32)
    with session():
        array = lazy(x, tile)
        close(np.linalg.inv(array).compute(), np.linalg.inv(x), x.dtype)
        solved = np.linalg.solve(array, oc.asarray(b))
        expected = np.linalg.solve(x, b)
        assert solved.dtype == expected.dtype
        close(solved.compute(), expected, x.dtype)
        ratio = np.linalg.det(array / 20).compute() / np.linalg.det((x / x.dtype.type(20)).astype(np.complex128))
        np.testing.assert_allclose(ratio, np.ones_like(ratio), rtol=1e-3)
        sign, logarithm = (part.compute() for part in np.linalg.slogdet(array))
        close(sign, np.linalg.slogdet(x).sign, np.float32)
        close(logarithm, np.linalg.slogdet(x).logabsdet, np.float32)
        values, vectors = (part.compute() for part in np.linalg.eig(array))
        np.testing.assert_allclose(x @ vectors, vectors * values[..., None, :], rtol=1e-3, atol=2e-2)
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=-2), np.ones(x.shape[:-1]), rtol=1e-4)
        close(np.sort_complex(np.linalg.eigvals(array).compute()), np.sort_complex(values), np.float32)
        close(
            np.linalg.matrix_power(array / 20, -2).compute(),
            np.linalg.matrix_power(x / x.dtype.type(20), -2),
            np.float32,
        )


@settings(max_examples=examples(40), deadline=None)
@given(problem=problems(), rank=st.integers(1, 3))
def test_what_follows_from_singular_values(problem: Any, rank: int) -> None:
    x, tile = problem
    x = wide(x)
    if x.size == 0:
        return
    m, n = x.shape[-2:]
    rank = min(rank, m, n)
    x = (x[..., :rank] @ x[..., :rank, :]).astype(x.dtype)
    with session():
        array = lazy(x, tile)
        share = 1e-4
        np.testing.assert_array_equal(
            np.linalg.matrix_rank(array, rtol=share).compute(), np.linalg.matrix_rank(x, rtol=share)
        )
        expected = np.linalg.pinv(x, rtol=share)
        np.testing.assert_allclose(np.linalg.pinv(array, rtol=share).compute(), expected, rtol=2e-2, atol=2e-2)
        for order in (2, -2, "nuc", "fro"):
            theirs = np.linalg.matrix_norm(x, ord=order)
            np.testing.assert_allclose(np.linalg.matrix_norm(array, ord=order).compute(), theirs, rtol=1e-3, atol=1e-3)
        for offset in (-2, 0, 1):
            theirs = np.linalg.diagonal(x, offset=offset)
            np.testing.assert_array_equal(np.linalg.diagonal(array, offset=offset).compute(), theirs)


@pytest.mark.parametrize("shape", [(7, 3), (3, 7), (4, 4)])
@pytest.mark.parametrize("columns", [None, 2])
@pytest.mark.parametrize("deficient", [False, True])
def test_least_squares(shape: tuple[int, int], columns: int | None, deficient: bool) -> None:
    random = np.random.default_rng(1)
    a = random.normal(size=shape)
    if deficient:
        a[:, -1] = a[:, 0]
    b = random.normal(size=shape[0] if columns is None else (shape[0], columns))
    with session():
        found = oc.linalg.lstsq(oc.asarray(a), oc.asarray(b))
        x, _, rank, values = np.linalg.lstsq(a, b)
        np.testing.assert_allclose(found.x.compute(), x, rtol=1e-8, atol=1e-10)
        assert found.rank.item() == rank
        np.testing.assert_allclose(found.singular_values.compute(), values, atol=1e-12)
        if shape[0] > shape[1]:
            expected = np.sum((a @ x - b) ** 2, axis=0, keepdims=b.ndim == 1)
            np.testing.assert_allclose(found.residuals.compute(), np.atleast_1d(expected), rtol=1e-8)


def test_matrices_without_factors_fail_when_computed() -> None:
    with session():
        with pytest.raises(np.linalg.LinAlgError, match="inv: the matrix is singular"):
            oc.linalg.inv(oc.zeros((3, 3))).compute()
        batch = np.stack([np.eye(2), -np.eye(2)])
        with pytest.raises(LinAlgError, match=r"cholesky: the matrix is not positive definite \(matrix 1 of the block"):
            oc.linalg.cholesky(oc.asarray(batch)).compute()
        with pytest.raises(LinAlgError, match=r"svd.*: the matrix has elements that are not finite"):
            oc.linalg.svd(oc.full((2, 2), np.nan)).S.compute()
        with pytest.raises(ShapeError, match=r"inv: \(2, 3\) is not square"):
            oc.linalg.inv(oc.ones((2, 3)))
        with pytest.raises(ShapeError, match=r"solve: \(2, 2\) and \(3,\) do not go together"):
            oc.linalg.solve(oc.eye(2), oc.ones(3))
        with pytest.raises(ShapeError, match=r"solve: \(2, 3, 3\) and \(4, 3, 1\): leading axes do not broadcast"):
            oc.linalg.solve(oc.ones((2, 3, 3)), oc.ones((4, 3, 1)))


ROWS, COLUMNS = 60_000, 24  # three tiles of 4 MiB
LIMIT = 64 << 20


@pytest.fixture
def tall(tmp_path: Path) -> tuple[Path, Any]:
    values = np.random.default_rng(5).normal(size=(ROWS, COLUMNS)) * np.geomspace(1, 1e6, COLUMNS)
    np.save(tmp_path / "tall.npy", values)
    return tmp_path / "tall.npy", values


def test_tall_matrices_go_by_tiles_in_two_reads_and_one_write(tall: tuple[Path, Any], out: Path) -> None:
    path, values = tall
    with session(pool_limit=LIMIT, threads=2):
        x = oc.open(path)
        q, r = oc.linalg.qr(x)
        plan = oc.explain({out / "q.npy": q, out / "r.npy": r})
        outcome = oc.store({out / "q.npy": q, out / "r.npy": r})
        assert (plan.bytes_read, plan.bytes_written) == (outcome.bytes_read, outcome.bytes_written)
        assert outcome.bytes_written < 1.02 * values.nbytes
        assert outcome.bytes_read < 2.02 * values.nbytes
        basis, triangle = np.load(out / "q.npy"), np.load(out / "r.npy")
        np.testing.assert_allclose(basis.T @ basis, np.eye(COLUMNS), atol=1e-12)
        np.testing.assert_allclose(basis @ triangle, values, rtol=1e-10, atol=1e-8)
        np.testing.assert_array_equal(np.triu(triangle), triangle)


def test_singular_values_and_least_squares_of_tall_matrices_take_one_read(tall: tuple[Path, Any]) -> None:
    path, values = tall
    right = values @ np.arange(COLUMNS) + 1.0
    with session(pool_limit=LIMIT, threads=2):
        x = oc.open(path)
        found = oc.linalg.lstsq(x, oc.asarray(right))
        assert oc.explain(*found).bytes_read < 1.01 * values.nbytes
        np.testing.assert_allclose(found.x.compute(), np.linalg.lstsq(values, right)[0], rtol=1e-7, atol=1e-9)
        singular = np.linalg.svd(values, compute_uv=False)
        np.testing.assert_allclose(oc.linalg.svdvals(x).compute(), singular, rtol=1e-10)
        np.testing.assert_allclose(oc.linalg.svdvals(x.T).compute(), singular, rtol=1e-10)
        u, s, vh = oc.linalg.svd(x, full_matrices=False)
        np.testing.assert_allclose(((u * s) @ vh).compute(), values, rtol=1e-9, atol=1e-7)
        wide_v = oc.linalg.svd(x.T, full_matrices=False)
        np.testing.assert_allclose(wide_v.S.compute(), singular, rtol=1e-10)
        assert (wide_v.U.shape, wide_v.Vh.shape) == ((COLUMNS, COLUMNS), (COLUMNS, ROWS))


def test_tall_factors_have_the_same_bits_at_every_limit(tall: tuple[Path, Any]) -> None:
    path, _ = tall
    found = []
    for limit, threads in [(LIMIT, 1), (LIMIT, 2), (512 << 20, 4)]:
        with session(pool_limit=limit, threads=threads):
            found.append(oc.compute(*oc.linalg.qr(oc.open(path)[:, :20])))
    for q, r in found[1:]:
        np.testing.assert_array_equal(q, found[0][0])
        np.testing.assert_array_equal(r, found[0][1])


def test_what_does_not_fit_is_refused_with_the_number() -> None:
    with session(pool_limit="256MiB"), pytest.raises(MemoryLimitError, match=r"needs [0-9.]+ GiB of memory at once"):
        oc.explain(oc.linalg.eig(oc.random.normal((20_000, 20_000), seed=1)).eigenvalues)


@pytest.mark.parametrize(("narrow", "wide"), [("float32", "float64"), ("complex64", "complex128")])
def test_products_of_single_precision_take_no_longer(narrow: str, wide: str) -> None:
    rng = np.random.default_rng(0)
    seconds: dict[str, list[float]] = {narrow: [], wide: []}
    with oc.Session(memory_limit="1GiB", threads=1, progress=False) as session:
        for _ in range(3):
            for name, took in seconds.items():
                a, b = (oc.asarray(rng.random((768, 768)).astype(name)) for _ in range(2))
                began = time.perf_counter()
                (a @ b).compute()
                took.append(time.perf_counter() - began)
                session.clear()
    # Half as long, on a machine without neighbours.
    assert min(seconds[narrow]) < 2 * min(seconds[wide])
