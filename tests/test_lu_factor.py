"""Dense LU factors on disk: SciPy's answers, exact forecasts, the same bits at every limit."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st
from support.running import session
from support.sizes import examples

import outcore as oc
from outcore.errors import (
    ArgumentError,
    DTypeError,
    FormatError,
    LinAlgError,
    MemoryLimitError,
    ShapeError,
    TargetExistsError,
)


def matrix(n: int, dtype: str = "float64", seed: int = 0) -> Any:
    random = np.random.default_rng(seed)
    x = random.normal(size=(n, n))
    if dtype.startswith("c"):
        x = x + 1j * random.normal(size=(n, n))
    return x.astype(dtype)


def turned(a: Any, trans: int) -> Any:
    return [a, a.T, a.conj().T][trans]


def check(a: Any, b: Any, factor: Any, trans: int) -> None:
    """Solutions are as near as SciPy's."""
    check_near(b, factor, trans, scipy.linalg.lu_factor(a), np.linalg.cond(a))


def check_near(b: Any, factor: Any, trans: int, scipys: Any, condition: float) -> None:
    x = oc.linalg.lu_solve(factor, b, trans)
    expected = scipy.linalg.lu_solve(scipys, b, trans)
    assert x.shape == b.shape
    assert factor.residual < 1e-14
    assert np.abs(x - expected).max() <= 1e-14 * condition * np.abs(expected).max()


@settings(max_examples=examples(40), deadline=None)
@given(
    n=st.sampled_from([1, 2, 17, 255, 256, 257, 511, 512, 513]),
    dtype=st.sampled_from(["float32", "float64", "complex64", "complex128"]),
    width=st.sampled_from([None, 0, 1, 5]),
    trans=st.sampled_from([0, 1, 2]),
    tile=st.tuples(st.integers(30, 600), st.integers(30, 600)),
    seed=st.integers(0, 99),
)
def test_solutions_pivots_and_determinants_are_scipys(
    n: int, dtype: str, width: int | None, trans: int, tile: tuple[int, int], seed: int
) -> None:
    a = matrix(n, dtype, seed)
    b = np.random.default_rng(seed + 1).normal(size=(n,) if width is None else (n, width))
    factor = oc.linalg.lu_factor(oc.rechunk(oc.asarray(a), tuple(min(n, side) for side in tile)))
    wide = a.astype(np.complex128 if dtype.startswith("c") else np.float64)
    lu, pivots = scipy.linalg.lu_factor(wide)
    assert np.array_equal(factor.pivots, pivots)
    np.testing.assert_allclose(factor.growth, np.abs(np.triu(lu)).max() / np.abs(wide).max(), rtol=1e-9)
    sign, logarithm = factor.slogdet()
    expected = np.linalg.slogdet(wide)
    np.testing.assert_allclose([sign, logarithm], [expected[0], expected[1]], rtol=1e-9, atol=1e-9)
    if width == 0:
        assert factor.solve(b, trans).shape == b.shape
    else:
        check(wide, b, factor, trans)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_a_matrix_of_several_tiles_and_right_hand_sides_of_several_bands(dtype: str) -> None:
    n = 1500 if dtype == "float64" else 1100
    a, b = matrix(n, dtype), matrix(n, dtype, 1)[:, :300]
    factor, scipys, condition = oc.linalg.lu_factor(a), scipy.linalg.lu_factor(a), np.linalg.cond(a)
    assert np.array_equal(factor.pivots, scipys[1])
    for trans in (0, 1, 2):
        check_near(b, factor, trans, scipys, condition)
        assert np.array_equal(factor.solve(oc.asarray(b), trans).compute(), factor.solve(b, trans))


def test_complex_right_hand_sides_of_a_real_matrix() -> None:
    a, b = matrix(40), matrix(40, "complex128", 1)
    for trans in range(3):
        x = oc.linalg.lu_factor(a).solve(b, trans)
        np.testing.assert_allclose(turned(a, trans) @ x, b, atol=1e-10)


def test_permutations_have_exact_solutions() -> None:
    n = 1300
    order = np.random.default_rng(2).permutation(n)
    a = np.eye(n)[order]
    factor = oc.linalg.lu_factor(a)
    b = np.arange(n, dtype=np.float64)
    assert np.array_equal(factor.solve(b), a.T @ b)
    assert np.array_equal(factor.solve(b, 1), a @ b)
    sign, logarithm = factor.slogdet()
    assert (sign, logarithm) == (np.linalg.slogdet(a)[0], 0.0)
    assert factor.growth == 1.0


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e160, 1e300])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_matrices_of_any_scale(scale: float, dtype: str) -> None:
    a = matrix(60, dtype)
    factor = oc.linalg.lu_factor(a * scale)
    x = factor.solve(np.ones(60))
    np.testing.assert_allclose(x * scale, np.linalg.solve(a, np.ones(60)), rtol=1e-9)
    np.testing.assert_allclose(factor.slogdet()[1], np.linalg.slogdet(a)[1] + 60 * np.log(scale), rtol=1e-12)


def test_rows_that_are_scaled_very_differently() -> None:
    a = matrix(300) * 10.0 ** np.linspace(-12, 12, 300)[:, None]
    factor = oc.linalg.lu_factor(a)
    _, pivots = scipy.linalg.lu_factor(a)
    assert np.array_equal(factor.pivots, pivots)
    x = np.ones(300)
    np.testing.assert_allclose(factor.solve(a @ x), x, rtol=1e-6)


@pytest.mark.parametrize("n", [20, 700])
def test_singular_matrices_name_the_column(n: int) -> None:
    a = matrix(n)
    a[:, 17] = 0.0
    with pytest.raises(LinAlgError, match="the matrix is singular: the pivot of column 17 is 0"):
        oc.linalg.lu_factor(a)
    ones = np.ones((n, n))
    with pytest.raises(LinAlgError, match="column 1 is 0"):
        oc.linalg.lu_factor(ones)
    with pytest.raises(LinAlgError, match="column 0 is 0"):
        oc.linalg.lu_factor(np.zeros((n, n)))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_elements_that_are_not_finite_are_errors(value: float) -> None:
    for place in [(0, 0), (300, 17), (17, 300), (399, 399)]:
        a = matrix(400)
        a[place] = value
        with pytest.raises(LinAlgError, match="not finite"):
            oc.linalg.lu_factor(a)
    with pytest.raises(LinAlgError, match="NaN or infinite"):
        oc.linalg.lu_factor(matrix(5)).solve([1.0, 2.0, value, 4.0, 5.0])


def test_a_matrix_near_a_singular_one_is_an_error_of_the_residual_or_has_a_small_one() -> None:
    hilbert = scipy.linalg.hilbert(14)
    factor = oc.linalg.lu_factor(hilbert)
    factor.solve(np.ones(14))
    assert factor.residual is not None
    assert factor.residual < 1e-14


def test_growth_tells_of_lost_digits() -> None:
    n = 40
    a = np.eye(n) - np.tril(np.ones((n, n)), -1)
    a[:, -1] = 1.0
    assert oc.linalg.lu_factor(a).growth == 2.0 ** (n - 1)


def test_a_stored_matrix_larger_than_memory_has_the_same_bits(tmp_path: Path) -> None:
    n = 3000
    oc.store({tmp_path / "a.npy": oc.random.normal((n, n), seed=1)})
    a, b = oc.open(tmp_path / "a.npy"), np.ones((n, 2))
    factors, solutions = [], []
    with session(pool_limit="1MiB"), pytest.raises(MemoryLimitError) as refused:
        oc.linalg.lu_factor(a)
    least = refused.value.smallest
    assert least is not None
    assert least < 30 << 20
    for name, (limit, threads) in enumerate([(2 << 30, 2), (least, 1), (least + (25 << 20), 8)]):
        path = tmp_path / f"{name}.ocf"
        with session(pool_limit=limit, threads=threads), oc.profile() as ran:
            factor = oc.linalg.lu_factor(a, path=path)
            assert ran.bytes_read >= 8 * n * n
            assert ran.bytes_written >= 8 * n * n
            solutions.append([factor.solve(b, trans) for trans in range(3)])
            assert factor.nbytes == path.stat().st_size
        factors.append(path.read_bytes())
    assert factors[0] == factors[1] == factors[2]
    for ours in solutions[1:]:
        assert all(np.array_equal(one, other) for one, other in zip(solutions[0], ours, strict=True))
    values = np.load(tmp_path / "a.npy")
    for trans in range(3):
        assert np.abs(turned(values, trans) @ solutions[0][trans] - b).max() < 1e-9


def test_the_forecast_is_the_run(tmp_path: Path) -> None:
    n = 3000
    oc.store({tmp_path / "a.npy": oc.random.normal((n, n), seed=3)})
    with session(memory_limit="8GiB", pool_limit="40MiB"):
        x = oc.linalg.solve(oc.open(tmp_path / "a.npy"), oc.random.normal((n, 600), seed=4))
        said = oc.explain({tmp_path / "x.npy": x})
        ran = oc.store({tmp_path / "x.npy": x})
        assert said.exact
        assert (said.bytes_read, said.bytes_written, said.peak_bytes) == (
            ran.bytes_read,
            ran.bytes_written,
            ran.peak_bytes,
        )
        assert ran.bytes_spilled > 0


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_large_systems_inverses_and_determinants_go_by_slabs(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("outcore.linalg.factorizations.WHOLE_ROWS", 1200)
    n = 1300
    a, b = matrix(n, dtype) / np.sqrt(n), np.ones(n, dtype=dtype)
    wide = a.astype(np.complex128 if dtype.startswith("c") else np.float64)
    lazy = oc.asarray(a)
    tolerance = 1e-3 if dtype == "float32" else 1e-8
    x = oc.linalg.solve(lazy, b).compute()
    assert x.dtype == a.dtype
    np.testing.assert_allclose(x, np.linalg.solve(wide, b), rtol=tolerance, atol=tolerance)
    assert np.abs(oc.linalg.inv(lazy).compute() @ wide - np.eye(n)).max() < tolerance
    sign, logarithm = oc.linalg.slogdet(lazy)
    expected = np.linalg.slogdet(wide)
    np.testing.assert_allclose(sign.item(), expected[0], rtol=1e-5)
    np.testing.assert_allclose(logarithm.item(), expected[1], rtol=1e-6)
    if dtype != "float32":
        scaled = a * np.exp(-expected[1] / n)
        np.testing.assert_allclose(oc.linalg.det(scaled).item(), np.linalg.det(scaled), rtol=1e-9)
        assert oc.linalg.det(a * 1e-3).item() == 0.0
        assert np.isinf(abs(oc.linalg.det(a * 1e3).item()))


def test_large_systems_and_determinants_are_pickled() -> None:
    a = oc.random.normal((2100, 2100), seed=5)
    for made in (oc.linalg.solve(a, oc.ones(2100)), oc.linalg.slogdet(a).logabsdet, oc.linalg.det(1j * a / 30)):
        again = pickle.loads(pickle.dumps(made))
        assert np.array_equal(again.compute(), made.compute())


def test_determinants_of_large_singular_matrices_are_zero() -> None:
    a = matrix(2100)
    a[:, 900] = 0.0
    assert oc.linalg.det(a).item() == 0.0
    sign, logarithm = oc.linalg.slogdet(a)
    assert (sign.item(), logarithm.item()) == (0.0, -np.inf)
    with pytest.raises(LinAlgError, match="column 900"):
        oc.linalg.solve(a, np.ones(2100)).compute()
    a[3, 3] = np.nan
    assert np.isnan(oc.linalg.det(a).item())


def test_a_factor_is_opened_again(tmp_path: Path) -> None:
    a, b = matrix(600), np.ones(600)
    made = oc.linalg.lu_factor(a, path=tmp_path / "a.ocf")
    opened = oc.linalg.open_factor(tmp_path / "a.ocf", a)
    assert np.array_equal(opened.solve(b, 1), made.solve(b, 1))
    assert opened.slogdet() == made.slogdet()
    assert repr(opened) == repr(made)
    with pytest.raises(ShapeError, match=r"is of \(600, 600\), the matrix of \(5, 5\)"):
        oc.linalg.open_factor(tmp_path / "a.ocf", a[:5, :5])
    with pytest.raises(DTypeError, match="float64"):
        oc.linalg.open_factor(tmp_path / "a.ocf", a * 1j)


def test_files_of_other_factors_and_damaged_ones_are_refused(tmp_path: Path) -> None:
    a = np.eye(600) * 2.0
    oc.linalg.lu_factor(a, path=tmp_path / "lu.ocf")
    oc.linalg.cho_factor(a, path=tmp_path / "cholesky.ocf")
    assert isinstance(oc.linalg.open_factor(tmp_path / "cholesky.ocf", a), oc.linalg.CholeskyFactor)
    with pytest.raises(FormatError, match="a dense LU or QR factor"):
        oc.sparse.linalg.open_factor(tmp_path / "lu.ocf", oc.sparse.from_scipy(scipy.sparse.csr_array(a)))
    whole = (tmp_path / "lu.ocf").read_bytes()
    for cut in [0, 50, 4096, len(whole) // 2, len(whole) - 5000]:
        (tmp_path / "cut.ocf").write_bytes(whole[:cut])
        with pytest.raises(FormatError):
            oc.linalg.open_factor(tmp_path / "cut.ocf", a)
    spoilt = bytearray(whole)
    spoilt[5000] ^= 1
    (tmp_path / "spoilt.ocf").write_bytes(spoilt)
    with pytest.raises(FormatError, match="checksum"):
        oc.linalg.open_factor(tmp_path / "spoilt.ocf", a).solve(np.ones(600))


def test_what_has_no_factor_is_refused(tmp_path: Path) -> None:
    for shape in [(3, 4), (0, 0), (2, 3, 3), (4,)]:
        with pytest.raises(ShapeError, match="lu_factor"):
            oc.linalg.lu_factor(np.ones(shape))
    with pytest.raises(DTypeError):
        oc.linalg.lu_factor(np.zeros((2, 2), dtype="datetime64[s]"))
    with pytest.raises(ArgumentError, match=r"\.ocf"):
        oc.linalg.lu_factor(np.eye(2), path=tmp_path / "a.npy")
    oc.linalg.lu_factor(np.eye(2, dtype=np.int64), path=tmp_path / "a.ocf")
    with pytest.raises(TargetExistsError):
        oc.linalg.lu_factor(np.eye(2), path=tmp_path / "a.ocf")
    factor = oc.linalg.lu_factor(np.eye(2), path=tmp_path / "a.ocf", overwrite=True)
    with pytest.raises(ShapeError, match="3 rows differ"):
        factor.solve(np.ones(3))
    with pytest.raises(ArgumentError, match="trans=3"):
        factor.solve(np.ones(2), 3)  # type: ignore[arg-type]
    with pytest.raises(DTypeError, match="no numbers"):
        factor.solve(np.zeros(2, dtype="datetime64[s]"))


def test_no_half_factor_is_left(tmp_path: Path) -> None:
    a = matrix(700)
    a[:, 600] = 0.0
    with pytest.raises(LinAlgError):
        oc.linalg.lu_factor(a, path=tmp_path / "a.ocf")
    assert os.listdir(tmp_path) == []


def test_too_little_memory_names_a_limit_that_works() -> None:
    a = oc.random.normal((3000, 3000), seed=3)
    with session(pool_limit="1MiB"), pytest.raises(MemoryLimitError) as refused:
        oc.linalg.lu_factor(a)
    with session(pool_limit=refused.value.smallest):
        oc.linalg.lu_factor(a)
