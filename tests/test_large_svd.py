"""Singular values and vectors by the eigenvalues of [0 Aᴴ; A 0], held against LAPACK's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.running import session
from support.sizes import alternating

import outcore as oc
from outcore.linalg._singular import large_svd, large_svdvals


def drawn(kind: str, m: int, n: int) -> Any:
    random = np.random.default_rng(0)
    if kind == "random":
        return random.standard_normal((m, n))
    if kind == "complex":
        return random.standard_normal((m, n)) + 1j * random.standard_normal((m, n))
    if kind == "rank 7":
        return random.standard_normal((m, 7)) @ random.standard_normal((7, n))
    if kind == "graded":
        left, right = (np.linalg.qr(random.standard_normal((side, n)))[0] for side in (m, n))
        return (left * np.logspace(0, -20, n)) @ right
    if kind == "one column":
        return np.outer(random.standard_normal(m), np.arange(n) == n // 2)
    return {"zeros": np.zeros((m, n)), "identity": np.eye(m, n), "tiny": np.eye(m, n) * 1e-200}[kind]


KINDS = ["random", "complex", "rank 7", "graded", "one column", "zeros", "identity", "tiny"]


@pytest.mark.parametrize(("kind", "shape"), alternating(KINDS, [(560, 560), (701, 440)]))
def test_factors_are_those_of_the_matrix(kind: str, shape: tuple[int, int]) -> None:
    a = drawn(kind, *shape)
    left, values, right = oc.compute(*large_svd(oc.asarray(a)))
    n, size = shape[1], np.linalg.norm(a, 2)
    assert np.linalg.norm(left.conj().T @ left - np.eye(n), 2) < 1e-13
    assert np.linalg.norm(right @ right.conj().T - np.eye(n), 2) < 1e-13
    assert np.linalg.norm(a - (left * values) @ right, 2) <= 2e-12 * size
    expected = np.linalg.svd(a, compute_uv=False)
    assert np.abs(values - expected).max() <= 1e-13 * size
    assert (np.diff(values) <= 0).all()
    assert (values >= 0).all()
    np.testing.assert_allclose(large_svdvals(oc.asarray(a)).compute(), values, rtol=0, atol=1e-13 * size)


def test_bits_are_the_same_at_every_limit_and_the_forecast_is_what_happens(tmp_path: Path) -> None:
    oc.store({tmp_path / "a.npy": oc.random.normal((1100, 700), seed=3)})
    results = []
    for pool in ("60MiB", "1GiB"):
        with session(tmp_path / "scratch", pool_limit=pool):
            factors = large_svd(oc.open(tmp_path / "a.npy"))
            targets = {tmp_path / f"{number}.npy": factor for number, factor in enumerate(factors)}
            said = oc.explain(targets, overwrite=True)
            outcome = oc.store(targets, overwrite=True)
        assert (outcome.bytes_read, outcome.bytes_written) == (said.bytes_read, said.bytes_written)
        results.append([np.load(path) for path in targets])
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("shape", [(4200, 4100), (4100, 9000)])
def test_large_matrices_go_by_them_in_less_memory_than_they_have(shape: tuple[int, int], tmp_path: Path) -> None:
    x = oc.random.normal(shape, seed=1)
    with session(tmp_path, pool_limit="100MiB"):
        factors = oc.linalg.svd(x, full_matrices=False)
        said = oc.explain({tmp_path / f"{number}.npy": factor for number, factor in enumerate(factors)})
        assert said.peak_bytes < 100 << 20
        assert oc.explain({tmp_path / "s.npy": oc.linalg.svdvals(x)}).peak_bytes < 100 << 20


def test_missing_vectors_are_completed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("outcore.linalg._singular._LARGE", 500)
    a = np.random.default_rng(0).standard_normal((700, 520))
    for matrix in (a, a.T):
        left, values, right = oc.compute(*oc.linalg.svd(matrix))
        assert (left.shape, right.shape) == ((matrix.shape[0],) * 2, (matrix.shape[1],) * 2)
        for square in (left, right):
            np.testing.assert_allclose(square @ square.T, np.eye(len(square)), atol=1e-12)
        k = len(values)
        np.testing.assert_allclose((left[:, :k] * values) @ right[:k], matrix, atol=1e-10)
