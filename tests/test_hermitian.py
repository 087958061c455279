"""Eigenvalues and vectors of Hermitian matrices by tiles: LAPACK's, exact forecasts, the same bits at every limit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.running import session
from support.sizes import sized

import outcore as oc
from outcore.errors import ArgumentError, DTypeError, LinAlgError, MemoryLimitError, ShapeError

#: Three tiles a side, the last of 275 rows, where more than `WHOLE` go by tiles.
N, WHOLE = 1299, 1200
#: Four tiles a side, or five, the last of 52 rows.
LARGE_N = sized(1588, 2100)


@pytest.fixture(autouse=True)
def smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("outcore.linalg._whole.WHOLE_ROWS", WHOLE)


def hermitian(n: int = N, dtype: str = "float64", seed: int = 0) -> Any:
    random = np.random.default_rng(seed)
    x = random.normal(size=(n, n))
    if dtype.startswith("c"):
        x = x + 1j * random.normal(size=(n, n))
    return (x + x.conj().T).astype(dtype)


def check(a: Any, values: Any, vectors: Any, digits: float = 1.0) -> None:
    """Residuals of some vectors, and their products with all."""
    places = np.random.default_rng(3).choice(values.size, 90, replace=False)
    norm, some = np.abs(values).max(), vectors[:, places]
    assert np.abs(a @ some - some * values[places]).max() <= 2e-14 * norm * digits
    assert np.abs(vectors.conj().T @ some - np.eye(values.size)[:, places]).max() < 4e-13 * digits


@pytest.mark.parametrize(("dtype", "triangle"), [("float64", "U"), ("complex128", "L"), ("float32", "L")])
def test_values_and_vectors_are_lapacks(dtype: str, triangle: Any) -> None:
    a = hermitian(LARGE_N if dtype == "float64" else N, dtype)
    seen = np.tril(a) if triangle == "L" else np.triu(a)
    lazy = oc.linalg.eigh(seen, UPLO=triangle)
    values, vectors = oc.compute(*lazy)
    assert (vectors.dtype, values.dtype) == (a.dtype, a.real.dtype)
    digits = 1.0 if a.real.dtype == np.float64 else 1e9
    check(a, values, vectors, digits)
    expected = np.linalg.eigvalsh(a.astype("complex128" if a.dtype.kind == "c" else "float64"))
    np.testing.assert_allclose(values, expected, atol=5e-14 * digits * np.abs(expected).max(), rtol=0)
    if dtype == "float64":
        np.testing.assert_array_equal(oc.linalg.eigvalsh(seen, UPLO=triangle).compute(), values)


def test_parts_of_the_spectrum() -> None:
    a = hermitian()
    every = oc.linalg.eigh(a)
    values, vectors = oc.compute(*every)
    for first, last in [(1298, 1298), (400, 800)]:
        some = oc.linalg.eigh(a, subset_by_index=(first, last))
        np.testing.assert_array_equal(some.eigenvalues.compute(), values[first : last + 1])
        own = some.eigenvectors.compute()
        np.testing.assert_allclose(own, vectors[:, first : last + 1], atol=1e-12)
        np.testing.assert_array_equal(
            oc.linalg.eigvalsh(a, subset_by_index=(first, last)).compute(), values[first : last + 1]
        )
    small = oc.linalg.eigh(a[:50, :50], subset_by_index=(3, 7))
    np.testing.assert_array_equal(small.eigenvectors.compute(), oc.linalg.eigh(a[:50, :50])[1].compute()[:, 3:8])


@pytest.mark.parametrize("name", ["clusters", "glued", "graded", "huge", "tiny"])
def test_values_that_coincide_or_differ_widely(name: str) -> None:
    number = np.arange(N)
    if name == "clusters":
        q = np.linalg.qr(hermitian())[0]
        a = (q * np.repeat([1.0, 1.0 + 1e-14, 2.0], N // 3)) @ q.T
        a = (a + a.T) / 2
    elif name == "glued":
        # Wilkinson's matrices of 21 rows, joined by little.
        a = np.diag(np.abs(number % 21 - 10.0)) + np.eye(N, k=1) + np.eye(N, k=-1)
        for joint in range(20, N - 1, 21):
            a[joint, joint + 1] = a[joint + 1, joint] = 1e-10
    elif name == "graded":
        a = hermitian() * 10.0 ** -((number[:, None] + number) / 300)
    else:
        a = hermitian() * (1e290 if name == "huge" else 1e-290)
    values, vectors = oc.compute(*oc.linalg.eigh(a))
    scale = {"huge": 1e-290, "tiny": 1e290}.get(name, 1.0)
    check(a * scale, values * scale, vectors)


def test_a_stored_matrix_larger_than_memory_has_the_same_bits(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", hermitian(sized(1640, 1800)))
    a = oc.open(tmp_path / "a.npy")
    with session(pool_limit="1MiB"), pytest.raises(MemoryLimitError) as refused:
        oc.linalg.eigh(a)[1].compute()
    least = refused.value.smallest
    assert least < 60 << 20
    first: dict[str, Any] = {}
    for limit, threads in [("20MiB", 1), ("60MiB", 3), ("1GiB", 2)]:
        targets = {tmp_path / f"{limit}-w.npy": oc.linalg.eigh(a)[0], tmp_path / f"{limit}-v.npy": oc.linalg.eigh(a)[1]}
        with session(pool_limit=limit, threads=threads):
            forecast = oc.explain(targets)
            outcome = oc.store(targets)
        assert (forecast.bytes_read, forecast.bytes_written) == (outcome.bytes_read, outcome.bytes_written)
        assert forecast.exact
        assert forecast.peak_bytes == outcome.peak_bytes
        for path in targets:
            kind = path.name[-5]
            own = np.load(path)
            np.testing.assert_array_equal(own, first.setdefault(kind, own))


def test_elements_that_are_not_finite_and_other_matrices_are_refused() -> None:
    a = hermitian()
    for value in (np.nan, np.inf):
        a[1280, 7] = value
        with pytest.raises(LinAlgError, match=r"eigvalsh: .* not finite"):
            oc.linalg.eigvalsh(a).compute()
        # Only the lower triangle is looked at.
        assert np.isfinite(oc.linalg.eigvalsh(a.T, UPLO="L").compute()).all()
    with pytest.raises(ShapeError, match="not square"):
        oc.linalg.eigh(np.ones((N, N + 1)))
    for subset in [(3, 2), (-1, 2), (0, N)]:
        with pytest.raises(ArgumentError, match=f"of {N} eigenvalues"):
            oc.linalg.eigh(hermitian(), subset_by_index=subset)
    for pair in [3, (1, 2, 3), (1.5, 2)]:
        with pytest.raises(ArgumentError, match="no pair of numbers"):
            oc.linalg.eigvalsh(hermitian(3), subset_by_index=pair)  # type: ignore[arg-type]
    with pytest.raises(DTypeError, match="float16"):
        oc.linalg.eigh(np.ones((N, N), dtype=np.float16))
