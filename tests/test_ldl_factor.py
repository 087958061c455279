"""Dense L D Lᴴ factors on disk: answers, inertia, exact forecasts, the same bits at every limit."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.definite import residual
from support.running import session
from support.sizes import examples

import outcore as oc
from outcore.errors import LinAlgError, MemoryLimitError, ShapeError


def symmetric(n: int, kind: str = "real", seed: int = 0) -> Any:
    """Real, Hermitian, or complex and symmetric."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(n, n)) + (0 if kind == "real" else 1j * random.normal(size=(n, n)))
    return x + (x.T if kind == "symmetric" else x.conj().T)


def signs(matrix: Any) -> tuple[int, int]:
    values = np.linalg.eigvalsh(matrix)
    return int((values > 0).sum()), int((values < 0).sum())


def check(matrix: Any, kind: str) -> Any:
    factor = oc.linalg.ldl_factor(matrix, hermitian=kind != "symmetric")
    b = np.random.default_rng(1).normal(size=(len(matrix), 2))
    assert residual(matrix, factor.solve(b), b) < 1e-13
    sign, logarithm = factor.slogdet()
    expected = np.linalg.slogdet(matrix)
    np.testing.assert_allclose(sign, expected[0], atol=1e-8)
    np.testing.assert_allclose(logarithm, expected[1], rtol=1e-10, atol=1e-10)
    if kind != "symmetric":
        assert (factor.inertia.positive, factor.inertia.negative) == signs(matrix)
    return factor


@settings(max_examples=examples(40), deadline=None)
@given(
    n=st.sampled_from([1, 2, 3, 17, 130, 511, 512, 513]),
    kind=st.sampled_from(["real", "hermitian", "symmetric"]),
    seed=st.integers(0, 99),
)
def test_small_matrices_of_every_kind(n: int, kind: str, seed: int) -> None:
    check(symmetric(n, kind, seed), kind)


@pytest.mark.parametrize("kind", ["real", "hermitian", "symmetric"])
def test_matrices_of_several_tiles(kind: str) -> None:
    matrix = symmetric(1300, kind)
    factor = check(matrix, kind)
    expected = 1.0 / np.linalg.cond(matrix, 1)
    assert expected * (1 - 1e-6) <= factor.rcond <= 4 * expected


@pytest.mark.parametrize("corner", ["zero", "definite"])
def test_blocks_of_zeros_have_pivots_in_another_order(corner: str) -> None:
    """No two of the first columns have a pivot between them."""
    half = symmetric(700)
    rest = np.zeros((700, 700)) if corner == "zero" else np.eye(700)
    matrix = np.block([[np.zeros((700, 700)), half], [half.T, rest]])
    factor = check(matrix, "real")
    assert factor.perturbed == 0


def test_a_matrix_larger_than_memory_has_the_same_bits(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", symmetric(2600))
    a, hashes = oc.open(tmp_path / "a.npy"), set()
    least = 1 << 20
    for _ in range(2):  # the scales are refused, then the factor
        with session(pool_limit=least), pytest.raises(MemoryLimitError) as refused:
            oc.linalg.ldl_factor(a)
        assert refused.value.smallest is not None
        least = refused.value.smallest
    assert least < 45 << 20
    for number, (limit, threads) in enumerate([(1 << 30, 2), (least, 1), (least + (16 << 20), 3)]):
        path = tmp_path / f"{number}.ocf"
        with session(tmp_path, pool_limit=limit, threads=threads):
            factor = oc.linalg.ldl_factor(a, path=path)
            solved = factor.solve(np.ones((2600, 2)))
        hashes.add(hashlib.sha256(path.read_bytes() + solved.tobytes()).digest())
    assert len(hashes) == 1
    with session(tmp_path):
        opened = oc.linalg.open_factor(tmp_path / "0.ocf", a)
        np.testing.assert_array_equal(opened.solve(np.ones((2600, 2))), solved)
        assert opened.nbytes < 0.6 * 8 * 2600**2


def test_a_small_factor_and_one_in_another_order_are_opened_and_gone_on_with(tmp_path: Path) -> None:
    small, half = symmetric(30), symmetric(300)
    turned = np.block([[np.zeros((300, 300)), half], [half, np.zeros((300, 300))]])
    for name, values in (("small", small), ("turned", turned)):
        np.save(tmp_path / f"{name}.npy", values)
        matrix = oc.open(tmp_path / f"{name}.npy")
        path, b = tmp_path / f"{name}.ocf", np.ones(len(values))
        solved = oc.linalg.ldl_factor(matrix, path=path, resume=True).solve(b)
        np.testing.assert_array_equal(oc.linalg.open_factor(path, matrix).solve(b), solved)
        before = path.stat().st_mtime_ns
        np.testing.assert_array_equal(oc.linalg.ldl_factor(matrix, path=path, resume=True).solve(b), solved)
        assert path.stat().st_mtime_ns == before


def test_refusals_name_what_is_wrong() -> None:
    with pytest.raises(ShapeError, match=r"ldl_factor: \(2, 3\) is no square matrix"):
        oc.linalg.ldl_factor(np.ones((2, 3)))
    with pytest.raises(LinAlgError, match="not symmetric"):
        oc.linalg.ldl_factor(np.asarray([[1.0, 2.0], [3.0, 1.0]])).solve(np.ones(2))
    with pytest.raises(LinAlgError, match="singular"):
        oc.linalg.ldl_factor(np.ones((4, 4))).solve([1.0, 0.0, 0.0, 0.0])
    with pytest.raises(LinAlgError, match="not finite"):
        oc.linalg.ldl_factor(np.full((2, 2), np.nan)).solve(np.ones(2))
    with pytest.raises(LinAlgError, match="no signs"):
        _ = oc.linalg.ldl_factor(np.eye(2) * 1j, hermitian=False).inertia
    singular = oc.linalg.ldl_factor(np.diag([1.0, 0.0, -2.0]))
    assert singular.slogdet() == (0.0, -np.inf)
    assert singular.inertia == oc.sparse.linalg.Inertia(1, 1, 1)
