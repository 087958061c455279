"""Cholesky factors of low rank: fewer bytes, solutions of double precision, the same bits at every limit."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from support.definite import grid, residual
from support.running import session
from support.sizes import alternating

import outcore as oc
from outcore.errors import ArgumentError, FormatError, LinAlgError, OutcoreError
from outcore.sparse.linalg import analyze, open_factor

CUBE = grid(30, 30, 30)


def low(matrix: Any, tolerance: float = 1e-6, **options: Any) -> Any:
    return analyze(matrix, "spd", ordering="nd", low_rank=tolerance, **options)


@pytest.fixture(scope="module")
def full_bytes() -> int:
    return int(analyze(CUBE, "spd", ordering="nd").factorize().nbytes)


@pytest.mark.parametrize(("is_complex", "precision"), alternating([False, True], ["double", "mixed"]))
def test_solutions_have_double_precision(is_complex: bool, precision: Any, full_bytes: int) -> None:
    matrix: Any = CUBE
    if is_complex:
        matrix = matrix + 0.3j * (scipy.sparse.triu(matrix, 1) - scipy.sparse.tril(matrix, -1))
        matrix = matrix + 0.4 * scipy.sparse.eye_array(matrix.shape[0])
    b = np.random.default_rng(0).normal(size=(matrix.shape[0], 3))
    factor = low(matrix.tocsr(), precision=precision).factorize()
    x = factor.solve(b)
    assert x.dtype == factor.dtype
    assert residual(matrix, x, b) < 1e-14
    assert f"of low rank to {'1e-05' if precision == 'mixed' else '1e-06'}" in repr(factor)
    assert ("mixed" in repr(factor)) == (precision == "mixed")
    width = (2 if is_complex else 1) / (2 if precision == "mixed" else 1)
    assert factor.nbytes < 0.95 * width * full_bytes
    assert np.array_equal(factor.solve(oc.asarray(b)).compute(), x)
    assert residual(matrix, low(matrix.tocsr(), precision=precision).solve(b[:, 0]), b[:, 0]) < 1e-14


def test_fewer_digits_take_fewer_bytes_and_its_forecast_is_a_bound(full_bytes: int) -> None:
    sizes = []
    for tolerance in (1e-8, 1e-6, 1e-3):
        factor = low(CUBE, tolerance)
        plan = factor.explain().plan
        with oc.profile() as ran:
            factor.factorize()
        assert not plan.exact
        assert "at most" in str(factor.explain())
        assert plan.peak_bytes >= ran.peak_bytes
        assert plan.bytes_written >= ran.bytes_written > factor.nbytes - 8192
        sizes.append(factor.nbytes)
        solution = factor._applied(factor._tiles(), oc.ones((CUBE.shape[0], 1)))
        forecast = oc.explain(solution)
        with oc.profile() as solved:
            solution.compute()
        assert forecast.exact
        assert forecast.bytes_read == solved.bytes_read > 0
    assert full_bytes >= sizes[0] > sizes[1] > sizes[2]


def test_numbers_of_points_and_their_units_do_not_matter() -> None:
    """Columns of separators are ordered by where they are, and rows scaled."""
    random = np.random.default_rng(1)
    order = random.permutation(CUBE.shape[0])
    by = scipy.sparse.diags_array(2.0 ** random.integers(-100, 100, CUBE.shape[0]))
    plain, shuffled, scaled = (low(matrix).factorize() for matrix in (CUBE, CUBE[order][:, order], by @ CUBE @ by))
    assert abs(shuffled.nbytes / plain.nbytes - 1) < 0.1
    assert abs(scaled.nbytes / plain.nbytes - 1) < 0.02
    b = random.normal(size=CUBE.shape[0])
    np.testing.assert_allclose(by @ scaled.solve(by @ b), plain.solve(b), rtol=1e-9)


def test_the_same_bits_come_at_every_limit(tmp_path: Path) -> None:
    hashes = set()
    for limit, threads in [("1GiB", 2), ("40MiB", 1), ("32MiB", 3)]:
        with session(tmp_path, pool_limit=limit, threads=threads):
            factor = low(CUBE).factorize(tmp_path / f"{limit}.ocf")
            solved = factor.solve(np.ones(CUBE.shape[0]))
        hashes.add(hashlib.sha256((tmp_path / f"{limit}.ocf").read_bytes() + solved.tobytes()).digest())
    assert len(hashes) == 1
    file = (tmp_path / "1GiB.ocf").stat()
    assert file.st_blocks * 512 < factor.nbytes + 65536 < file.st_size


def test_a_factor_in_a_file_is_opened_and_refactorized(tmp_path: Path) -> None:
    b = np.arange(float(CUBE.shape[0]))
    factor = low(CUBE).factorize(tmp_path / "a.ocf", resume=True)
    x = factor.solve(b)
    opened = open_factor(tmp_path / "a.ocf", CUBE)
    assert repr(opened).count("of low rank to 1e-06") == 1
    np.testing.assert_array_equal(opened.solve(b), x)
    np.testing.assert_array_equal(low(CUBE).factorize(tmp_path / "a.ocf", resume=True).solve(b), x)
    np.testing.assert_allclose(factor.refactorize(CUBE * 2.0**300).solve(b) * 2.0**300, x, rtol=1e-12)
    mixed = low(CUBE, precision="mixed").factorize(tmp_path / "b.ocf").solve(b)
    np.testing.assert_array_equal(open_factor(tmp_path / "b.ocf", CUBE).solve(b), mixed)
    with open(tmp_path / "a.ocf", "r+b") as file:
        file.seek(4096 + 64)
        file.write(os.urandom(64))
    with pytest.raises(FormatError, match="checksum"):
        open_factor(tmp_path / "a.ocf", CUBE).solve(b)


def test_a_tolerance_that_is_too_large_is_an_error() -> None:
    """A matrix of condition 1e7 whose factor keeps one digit, or two."""
    cube = grid(22, 22, 22)
    n = cube.shape[0]
    stiff = (cube @ cube + 1e-6 * scipy.sparse.eye_array(n)).tocsr()
    for tolerance in (0.3, 0.01):
        with pytest.raises(LinAlgError, match="smaller low_rank has more digits"):
            low(stiff, tolerance).solve(np.ones(n))
    b = np.ones(n)
    assert residual(stiff, low(stiff, 1e-4).solve(b), b) < 1e-14


@pytest.mark.parametrize(("precision", "tolerance"), [("double", 1e-7), ("mixed", 1e-4)])
def test_kernels_of_points_have_small_factors(tmp_path: Path, precision: Any, tolerance: float) -> None:
    points = np.linspace(0.0, 1.0, 2200)[:, None]
    kernel = oc.exp(-oc.abs(oc.asarray(points) - points.T)) + 1e-3 * oc.eye(2200)
    b = np.random.default_rng(0).normal(size=2200)
    full = oc.linalg.cho_factor(kernel, precision=precision)
    factor = oc.linalg.cho_factor(kernel, path=tmp_path / "a.ocf", precision=precision, low_rank=tolerance)
    assert factor.nbytes < 0.5 * full.nbytes
    assert f"of low rank to {tolerance:g}" in repr(factor)
    x = factor.solve(b)
    np.testing.assert_allclose(x, full.solve(b), rtol=1e-8, atol=1e-8 * np.abs(x).max())
    opened = oc.linalg.open_factor(tmp_path / "a.ocf", kernel)
    np.testing.assert_array_equal(opened.solve(b), x)
    with pytest.raises(LinAlgError, match="approximate"):
        factor.logdet()
    with pytest.raises(ArgumentError, match="cho_factor: low_rank=2"):
        oc.linalg.cho_factor(np.eye(2), low_rank=2)


@pytest.mark.parametrize("options", [{"precision": "mixed"}, {"low_rank": 1e-6}])
def test_dense_factors_are_known_again(tmp_path: Path, options: Any) -> None:
    """Scales enter by what they are, not by where they lie in memory."""
    x = oc.random.normal((1100, 1100), seed=0)
    oc.store({tmp_path / "k.npy": x @ x.T + 1100.0 * oc.eye(1100)})
    for _ in range(2):
        oc.linalg.cho_factor(oc.open(tmp_path / "k.npy"), path=tmp_path / "a.ocf", resume=True, **options)
    with pytest.raises(OutcoreError):
        oc.linalg.cho_factor(oc.open(tmp_path / "k.npy"), path=tmp_path / "a.ocf", resume=True)


def test_a_factor_is_applied_once_as_a_preconditioner() -> None:
    matrix = (CUBE + scipy.sparse.diags_array(np.linspace(0.0, 0.5, CUBE.shape[0]))).tocsr()
    steps: list[Any] = []
    factor = low(CUBE, 1e-2).factorize()
    before = factor.residual
    x, info = oc.sparse.linalg.cg(matrix, np.ones(CUBE.shape[0]), M=factor, rtol=1e-10, callback=steps.append)
    assert (info, factor.residual) == (0, before)
    assert len(steps) < 40
    assert residual(matrix, np.asarray(x), np.ones(CUBE.shape[0])) < 1e-10


def test_refusals_name_what_is_wrong() -> None:
    matrix = grid(8, 8)
    for tolerance in (0, -1e-8, 1.0, np.nan, np.inf, True, "1e-8", [1e-8]):
        with pytest.raises(ArgumentError, match=r"low_rank=.* a number between 0 and 1"):
            analyze(matrix, low_rank=tolerance)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"low_rank=1e-08 is for positive definite .*kind='lu'"):
        analyze(matrix, "lu", low_rank=1e-8)
    with pytest.raises(ArgumentError, match=r"low_rank=1e-08 .*with a positive diagonal"):
        analyze(matrix - 9.0 * scipy.sparse.eye_array(64), low_rank=1e-8)
    factor = low(matrix)
    for refused in (factor.logdet, factor.slogdet, factor.inverse_diagonal, lambda: factor.rcond):
        with pytest.raises(LinAlgError, match="approximate"):
            refused()
