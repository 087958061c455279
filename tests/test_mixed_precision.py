"""Cholesky factors of single precision: solutions of double precision, half of the bytes, the same bits."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from support.definite import drawn, grid, residual
from support.running import session

import outcore as oc
from outcore.errors import ArgumentError, LinAlgError
from outcore.sparse.linalg import analyze, open_factor


def mixed(matrix: Any, **options: Any) -> Any:
    return analyze(matrix, "spd", precision="mixed", **options)


@pytest.mark.parametrize("is_complex", [False, True])
def test_solutions_have_double_precision(is_complex: bool) -> None:
    random = np.random.default_rng(0)
    for matrix in (grid(60, 60), grid(12, 12, 12), drawn(200, 2000, random)):
        hermitian = matrix
        if is_complex:
            hermitian = scipy.sparse.csr_array(
                matrix + 1e-3j * (scipy.sparse.triu(matrix, 1) - scipy.sparse.tril(matrix, -1))
            )
            hermitian = hermitian + 0.1 * scipy.sparse.eye_array(matrix.shape[0])
        b = random.normal(size=(matrix.shape[0], 3))
        factor, wide = mixed(hermitian), analyze(hermitian, "spd")
        x = factor.solve(b)
        assert x.dtype == factor.dtype == wide.dtype
        assert residual(hermitian, x, b) < 1e-14
        np.testing.assert_allclose(x, wide.solve(b), rtol=1e-9, atol=1e-9 * np.abs(x).max())
        assert factor.explain().factor_bytes * 2 == wide.explain().factor_bytes
        assert np.array_equal(factor.solve(oc.asarray(b)).compute(), x)


def test_rows_of_very_different_sizes_have_all_their_digits() -> None:
    """No element leaves the range of single precision, and small rows are as right as large ones."""
    random = np.random.default_rng(1)
    matrix = grid(50, 50)
    scales = 2.0 ** random.integers(-200, 200, matrix.shape[0])
    by = scipy.sparse.diags_array(scales)
    expected = random.normal(size=matrix.shape[0])
    x = mixed((by @ matrix @ by).tocsr()).solve(scales * (matrix @ expected))
    np.testing.assert_allclose(x * scales, expected, rtol=1e-10)
    zero = mixed(matrix).solve(np.zeros(matrix.shape[0]))
    assert not zero.any()
    for size in (1e-200, 1e200):
        np.testing.assert_allclose(mixed(matrix).solve(size * (matrix @ expected)) / size, expected, rtol=1e-10)


def test_large_rows_hide_no_small_ones() -> None:
    """Penalties beside other rows: the residual of the whole is small long before that of each element is."""
    n = 2000
    line = grid(n).tolil()
    line[0, 0] = line[-1, -1] = 1e20
    hilbert = 1.0 / (np.arange(6)[:, None] + np.arange(6) + 1.0)
    beside = scipy.sparse.block_diag([scipy.sparse.csr_array([[1e14]]), hilbert])
    for matrix, most in ((line.tocsr(), 1e-6), (beside.tocsr(), 1e-6)):
        x = mixed(matrix).solve(matrix @ np.ones(matrix.shape[0]))
        np.testing.assert_allclose(x, 1.0, rtol=most)
    np.testing.assert_allclose(mixed(scipy.sparse.diags_array([1.0, 1e100]).tocsr()).solve([1.0, 1.0]), [1.0, 1e-100])
    np.testing.assert_allclose(
        mixed(3.0 * scipy.sparse.eye_array(2, format="csr")).solve([1e50, 1.0]), [1e50 / 3, 1 / 3]
    )
    dense = np.zeros((101, 101))
    dense[0, 0], dense[1:, 1:] = 1e14, 1.0 + 1e-6 * np.eye(100)
    solved = oc.linalg.cho_factor(dense, precision="mixed").solve(dense @ np.ones(101))
    np.testing.assert_allclose(solved, 1.0, rtol=1e-5)


def test_many_right_hand_sides_have_the_same_bits(tmp_path: Path) -> None:
    matrix = grid(14, 14, 14)
    b = np.random.default_rng(0).normal(size=(14**3, 1100))
    solved = []
    for limit in ("1GiB", "60MiB"):
        with session(tmp_path, pool_limit=limit):
            solved.append(mixed(matrix, ordering="nd").solve(b))
    np.testing.assert_array_equal(*solved)


def test_a_matrix_of_large_condition_is_solved_or_refused() -> None:
    """Beams of more and more elements: conditions of 5e5, 2e7, 8e8."""
    for n in (60, 150, 400):
        beam = scipy.sparse.diags_array(
            [np.full(n - abs(k), v) for k, v in ((-2, 1.0), (-1, -4.0), (0, 6.0), (1, -4.0), (2, 1.0))],
            offsets=[-2, -1, 0, 1, 2],
        ).tocsr()
        b = np.random.default_rng(n).normal(size=n)
        if n < 400:
            assert residual(beam, mixed(beam).solve(b), b) < 1e-14
        else:
            with pytest.raises(LinAlgError, match=r'single precision: the pivot of row .*precision="double"'):
                mixed(beam).solve(b)


def test_a_factor_in_a_file_is_opened_refactorized_and_gone_on_with(tmp_path: Path) -> None:
    matrix, b = grid(14, 14, 14), np.arange(14.0**3)
    factor = mixed(matrix).factorize(tmp_path / "a.ocf", resume=True)
    wide = analyze(matrix, "spd").factorize(tmp_path / "wide.ocf")
    assert factor.nbytes < 0.6 * wide.nbytes
    assert "mixed precision" in repr(factor)
    x = factor.solve(b)
    opened = open_factor(tmp_path / "a.ocf", matrix)
    np.testing.assert_array_equal(opened.solve(b), x)
    np.testing.assert_array_equal(mixed(matrix).factorize(tmp_path / "a.ocf", resume=True).solve(b), x)
    other = factor.refactorize(matrix * 2.0**300)
    np.testing.assert_allclose(other.solve(b) * 2.0**300, x, rtol=1e-12)
    with pytest.raises(LinAlgError, match="approximate"):
        factor.logdet()


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_dense_matrices(tmp_path: Path, dtype: str) -> None:
    random = np.random.default_rng(2)
    x = random.normal(size=(1100, 1100)).astype(dtype)
    if dtype == "complex128":
        x = x + 1j * random.normal(size=x.shape)
    dense = (x @ x.conj().T + 1100 * np.eye(1100)) * 1e60
    b = random.normal(size=(1100, 2))
    factor = oc.linalg.cho_factor(dense, path=tmp_path / "a.ocf", precision="mixed")
    solved = factor.solve(b)
    assert factor.residual < 1e-14
    np.testing.assert_allclose(solved, np.linalg.solve(dense, b), rtol=1e-8, atol=1e-10 * np.abs(solved).max())
    assert factor.nbytes < 0.6 * oc.linalg.cho_factor(dense).nbytes
    np.testing.assert_array_equal(oc.linalg.open_factor(tmp_path / "a.ocf", dense).solve(b), solved)


def test_a_factor_larger_than_memory_has_the_same_bits(tmp_path: Path) -> None:
    matrix, hashes = grid(30, 30, 30), set()
    for limit, threads in [("1GiB", 2), ("24MiB", 1), ("18MiB", 3)]:
        with session(tmp_path, pool_limit=limit, threads=threads):
            factor = mixed(matrix, ordering="nd")
            plan = factor.explain().plan
            with oc.profile() as ran:
                factor.factorize(tmp_path / f"{limit}.ocf")
            solved = factor.solve(np.ones(matrix.shape[0]))
        assert plan.exact
        assert (plan.bytes_read, plan.peak_bytes) == (ran.bytes_read, ran.peak_bytes)
        hashes.add(hashlib.sha256((tmp_path / f"{limit}.ocf").read_bytes() + solved.tobytes()).digest())
    assert len(hashes) == 1


def test_refusals_name_what_is_wrong() -> None:
    matrix = grid(8, 8)
    with pytest.raises(ArgumentError, match="precision='single' is none of 'double', 'mixed'"):
        analyze(matrix, precision="single")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="kind=\"spd\", and kind='lu'"):
        analyze(matrix, "lu", precision="mixed")
    with pytest.raises(ArgumentError, match="with a positive diagonal"):
        analyze(matrix - 9.0 * scipy.sparse.eye_array(64), precision="mixed")
    with pytest.raises(ArgumentError, match="precision='half'"):
        oc.linalg.cho_factor(np.eye(2), precision="half")  # type: ignore[arg-type]
    indefinite = grid(8, 8) + scipy.sparse.diags_array([np.full(63, 5.0)] * 2, offsets=[-1, 1])
    with pytest.raises(LinAlgError, match="to single precision"):
        analyze(indefinite.tocsr(), precision="mixed").factorize()
