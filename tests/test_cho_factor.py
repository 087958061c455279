"""Dense Cholesky factors on disk: NumPy's answers, exact forecasts, the same bits at every limit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.running import session
from support.sizes import examples

import outcore as oc
from outcore.errors import ArgumentError, DTypeError, LinAlgError, MemoryLimitError, ShapeError, TargetExistsError


def positive(n: int, dtype: str = "float64", seed: int = 0) -> Any:
    """A well-conditioned Hermitian positive definite matrix."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(n, n))
    if dtype.startswith("c"):
        x = x + 1j * random.normal(size=(n, n))
    return (x @ x.conj().T / n + 2 * np.eye(n)).astype(dtype)


@settings(max_examples=examples(40), deadline=None)
@given(
    n=st.sampled_from([1, 2, 17, 200, 513]),
    dtype=st.sampled_from(["float32", "float64", "complex64", "complex128"]),
    width=st.sampled_from([None, 0, 1, 5]),
    tile=st.tuples(st.integers(30, 600), st.integers(30, 600)),
    seed=st.integers(0, 99),
)
def test_solutions_and_determinants_are_numpys(
    n: int, dtype: str, width: int | None, tile: tuple[int, int], seed: int
) -> None:
    a = positive(n, dtype, seed)
    b = np.random.default_rng(seed + 1).normal(size=(n,) if width is None else (n, width))
    factor = oc.linalg.cho_factor(oc.rechunk(oc.asarray(a), tuple(min(n, side) for side in tile)))
    x = oc.linalg.cho_solve(factor, b)
    wide = a.astype(np.complex128 if dtype.startswith("c") else np.float64)
    assert x.shape == b.shape
    assert x.dtype == wide.dtype
    np.testing.assert_allclose(x, np.linalg.solve(wide, b), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(factor.logdet(), np.linalg.slogdet(wide)[1], rtol=1e-10, atol=1e-10)


def test_a_stored_matrix_spills_and_has_the_same_bits(tmp_path: Path) -> None:
    n = 4000
    oc.store({tmp_path / "a.npy": oc.random.normal((n, n), seed=1) / n + 2 * oc.eye(n)})
    a, b = oc.open(tmp_path / "a.npy"), np.ones(n)
    factors, solutions = [], []
    for name, (beyond, threads) in enumerate([(2 << 30, 2), (0, 1), (25 << 20, 3)]):
        path = tmp_path / f"{name}.ocf"
        with session(memory_limit="80MiB"), pytest.raises(MemoryLimitError) as refused:
            oc.linalg.cho_factor(a)
        assert refused.value.smallest is not None
        with session(memory_limit=refused.value.smallest + beyond, threads=threads), oc.profile() as ran:
            factor = oc.linalg.cho_factor(a, path=path)
            assert ran.bytes_read >= 8 * n * n // 2
            assert ran.bytes_written >= 4 * n * n
            assert (ran.bytes_spilled > 0) == (name > 0)
            applied = oc.linalg.CholeskyFactor._applied(factor, factor._tiles(), oc.asarray(b)[:, None])
            solutions.append(applied.compute())
        factors.append(path.read_bytes())
    # The lower triangle alone counts, so the symmetric matrix is another one.
    symmetric = oc.tril(a) + oc.tril(a, k=-1).T
    assert oc.max(oc.abs(symmetric @ oc.asarray(solutions[0]) - b[:, None])).compute() < 1e-12
    assert factors[0] == factors[1] == factors[2]
    assert np.array_equal(solutions[0], solutions[1])
    assert np.array_equal(solutions[0], solutions[2])


def test_a_matrix_that_is_not_positive_definite_names_its_row() -> None:
    a = positive(700)
    a[613, 613] = -1.0
    with pytest.raises(LinAlgError, match="row 613"):
        oc.linalg.cho_factor(a)
    a[613, 613] = np.nan
    with pytest.raises(LinAlgError, match="positive definite"):
        oc.linalg.cho_factor(a)


def test_an_unsymmetric_matrix_is_an_error_of_the_residual() -> None:
    with pytest.raises(LinAlgError, match="not symmetric"):
        oc.linalg.cho_factor(positive(50) + np.triu(np.ones((50, 50)), 1)).solve(np.ones(50))


def test_what_has_no_factor_is_refused(tmp_path: Path) -> None:
    for shape in [(3, 4), (0, 0), (2, 3, 3), (4,)]:
        with pytest.raises(ShapeError, match="cho_factor"):
            oc.linalg.cho_factor(np.ones(shape))
    with pytest.raises(DTypeError):
        oc.linalg.cho_factor(np.zeros((2, 2), dtype="datetime64[s]"))
    with pytest.raises(ArgumentError, match=r"\.ocf"):
        oc.linalg.cho_factor(np.eye(2), path=tmp_path / "a.npy")
    oc.linalg.cho_factor(np.eye(2), path=tmp_path / "a.ocf")
    with pytest.raises(TargetExistsError):
        oc.linalg.cho_factor(np.eye(2), path=tmp_path / "a.ocf")
    factor = oc.linalg.cho_factor(np.eye(2), path=tmp_path / "a.ocf", overwrite=True)
    with pytest.raises(ShapeError, match="3 rows differ"):
        factor.solve(np.ones(3))


def test_too_little_memory_names_a_limit_that_works() -> None:
    a = oc.random.normal((3000, 3000), seed=3) / 3000 + 2 * oc.eye(3000)
    with session(memory_limit="80MiB"), pytest.raises(MemoryLimitError) as refused:
        oc.linalg.cho_factor(a)
    with session(memory_limit=refused.value.smallest):
        oc.linalg.cho_factor(a)
