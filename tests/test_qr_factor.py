"""Dense QR factors on disk: A again, orthonormal columns, exact forecasts, the same bits at every limit."""

from __future__ import annotations

import hashlib
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from support.running import session
from support.sizes import Sweep, alternating, examples

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


def matrix(shape: tuple[int, int], dtype: str = "float64", seed: int = 0) -> Any:
    random = np.random.default_rng(seed)
    x = random.normal(size=shape)
    if dtype.startswith("c"):
        x = x + 1j * random.normal(size=shape)
    return x.astype(dtype)


def check(a: Any, factor: Any) -> None:
    """Q R is A, R a triangle, and columns of Q are orthonormal; of Q and its adjoint products too."""
    m, n = a.shape
    k, norm = min(m, n), np.linalg.norm(a)
    q, r = factor.Q.compute(), factor.R.compute()
    assert (q.shape, r.shape) == ((m, k), (k, n))
    assert not np.tril(r, -1).any()
    assert np.linalg.norm(q @ r - a) <= 1e-14 * norm * np.sqrt(k)
    assert np.abs(q.conj().T @ q - np.eye(k)).max() < 1e-13
    x = matrix((m, 3), a.dtype.name, 7)
    turned = factor.q_multiply(x, adjoint=True).compute()
    np.testing.assert_allclose(turned[:k], q.conj().T @ x, atol=1e-12)
    np.testing.assert_allclose(factor.q_multiply(turned).compute(), x, atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(turned, axis=0), np.linalg.norm(x, axis=0))


@settings(max_examples=examples(40), deadline=None)
@given(
    shape=st.tuples(*[st.sampled_from([1, 2, 17, 63, 64, 65, 300, 511, 512, 513])] * 2),
    dtype=st.sampled_from(["float32", "float64", "complex64", "complex128"]),
    tile=st.tuples(st.integers(30, 600), st.integers(30, 600)),
    dependent=st.booleans(),
    seed=st.integers(0, 99),
)
def test_factors_make_the_matrix_again(
    shape: tuple[int, int], dtype: str, tile: tuple[int, int], dependent: bool, seed: int
) -> None:
    a = matrix(shape, dtype, seed)
    if dependent:
        a[:, 1::3] = 0.0
        a[:, 2::3] = a[:, :1]
    factor = oc.linalg.qr_factor(oc.rechunk(oc.asarray(a), tuple(map(min, shape, tile))))
    check(a.astype(np.complex128 if dtype.startswith("c") else np.float64), factor)


@pytest.mark.parametrize(
    ("shape", "dtype"),
    alternating([(1500, 1100), (1100, 1500), (2600, 600), (600, 1300), (1536, 1536)], ["float64", "complex128"]),
)
def test_matrices_of_several_tiles(shape: tuple[int, int], dtype: str) -> None:
    a = matrix(shape, dtype)
    factor = oc.linalg.qr_factor(a)
    check(a, factor)
    x = matrix((shape[0], 600), dtype, 1)
    product = factor.q_multiply(oc.asarray(x), adjoint=True).compute()
    for part in (slice(0, 3), slice(250, 260), slice(597, 600)):
        np.testing.assert_allclose(product[:, part], factor.q_multiply(x[:, part], adjoint=True).compute(), atol=1e-11)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("shape", [(40, 40), (900, 40), (1300, 600), (600, 600)])
def test_least_squares_are_scipys(shape: tuple[int, int], dtype: str) -> None:
    a, b = matrix(shape, dtype), matrix((shape[0], 3), dtype, 1)
    factor, condition = oc.linalg.qr_factor(a), np.linalg.cond(a)
    for right in (b, b[:, 0]):
        x = factor.solve(right)
        expected = scipy.linalg.lstsq(a, right)[0]
        assert x.shape == expected.shape
        np.testing.assert_allclose(x, expected, rtol=0, atol=1e-13 * condition * np.abs(expected).max())
        assert factor.residual < 1e-14
    assert np.array_equal(factor.solve(oc.asarray(b)).compute(), factor.solve(b))
    assert factor.solve(b[:, :0]).shape == (shape[1], 0)


def test_complex_right_hand_sides_of_a_real_matrix() -> None:
    a, b = matrix((60, 40)), matrix((60, 2), "complex128", 1)
    np.testing.assert_allclose(oc.linalg.qr_factor(a).solve(b), np.linalg.lstsq(a, b, rcond=None)[0], atol=1e-12)


def test_columns_that_depend_on_each_other_are_an_error_of_solve() -> None:
    a = matrix((700, 30))
    a[:, 17] = 0.0
    with pytest.raises(LinAlgError, match="depend on each other"):
        oc.linalg.qr_factor(a).solve(np.ones(700))
    with pytest.raises(LinAlgError, match="depend on each other: of column 5 a share"):
        oc.linalg.qr_factor(np.hstack([a[:, :5], a[:, :1]])).solve(np.ones(700))
    powers = oc.linalg.qr_factor(np.vander(np.linspace(0, 1, 700), 30))
    with pytest.raises(LinAlgError, match="singular to working precision"):
        powers.solve(np.random.default_rng(0).normal(size=700))
    with pytest.raises(LinAlgError, match="too large for its type"):
        oc.linalg.qr_factor(np.asarray([[1e-200], [1e-200]])).solve([1e200, 1e200])
    with pytest.raises(LinAlgError, match="NaN or infinite"):
        oc.linalg.qr_factor(matrix((5, 3))).solve([1.0, 2.0, np.nan, 4.0, 5.0])
    a[3, 4] = np.inf
    with pytest.raises(LinAlgError, match="not finite"):
        oc.linalg.qr_factor(a).solve(np.ones(700))


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e150])
def test_matrices_of_any_scale(scale: float) -> None:
    a = matrix((700, 60))
    x = oc.linalg.qr_factor(a * scale).solve(np.ones(700))
    np.testing.assert_allclose(x * scale, np.linalg.lstsq(a, np.ones(700), rcond=None)[0], rtol=1e-9)


def test_a_stored_matrix_larger_than_memory_has_the_same_bits(tmp_path: Path) -> None:
    shape = 3000, 2400
    oc.store({tmp_path / "a.npy": oc.random.normal(shape, seed=1)})
    a, b = oc.open(tmp_path / "a.npy"), np.ones((shape[0], 2))
    factors, results = [], []
    with session(pool_limit="1MiB"), pytest.raises(MemoryLimitError) as refused:
        oc.linalg.qr_factor(a)
    least = refused.value.smallest
    assert least is not None
    assert least < 30 << 20
    for name, (limit, threads) in enumerate([(2 << 30, 2), (least, 1), (least + (25 << 20), 8)]):
        path = tmp_path / f"{name}.ocf"
        with session(pool_limit=limit, threads=threads), oc.profile() as ran:
            factor = oc.linalg.qr_factor(a, path=path)
            assert ran.bytes_read >= 8 * a.size
            assert ran.bytes_written >= 8 * a.size
            results.append([factor.solve(b), factor.q_multiply(b).compute(), factor.Q[:, 100:103].compute()])
            assert factor.nbytes == path.stat().st_size
        factors.append(hashlib.sha256(path.read_bytes()).digest())
    assert all(factor == factors[0] for factor in factors)
    for ours in results[1:]:
        assert all(np.array_equal(one, other) for one, other in zip(results[0], ours, strict=True))
    values = np.load(tmp_path / "a.npy")
    assert np.abs(values.T @ (values @ results[0][0] - b)).max() < 1e-9


def test_the_forecast_is_the_run(tmp_path: Path) -> None:
    n = 2400
    oc.store({tmp_path / "a.npy": oc.random.normal((n, n), seed=3)})
    with session(memory_limit="8GiB", pool_limit="40MiB"):
        q, r = oc.linalg.qr(oc.open(tmp_path / "a.npy"))
        targets = {tmp_path / "q.npy": q, tmp_path / "r.npy": r}
        said = oc.explain(targets)
        ran = oc.store(targets)
        assert said.exact
        assert (said.bytes_read, said.bytes_written, said.peak_bytes) == (
            ran.bytes_read,
            ran.bytes_written,
            ran.peak_bytes,
        )
        assert ran.bytes_spilled > 0
    a, q, r = (np.load(tmp_path / f"{name}.npy") for name in "aqr")
    assert np.linalg.norm(q @ r - a) < 1e-13 * np.linalg.norm(a)
    assert np.abs(q.T @ q - np.eye(n)).max() < 1e-13


@pytest.mark.parametrize("dtype", ["float32", "complex64", "float64"])
def test_qr_of_large_matrices_goes_by_tiles(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("outcore.linalg._whole.WHOLE_ROWS", 1200)
    m, n = 1500, 1300
    a = matrix((m, n), dtype)
    q, r = (part.compute() for part in oc.linalg.qr(a))
    assert (q.dtype, r.dtype) == (a.dtype, a.dtype)
    eps = np.finfo(dtype).eps
    assert np.linalg.norm(q @ r - a) < 10 * eps * np.linalg.norm(a)
    if dtype == "float64":
        np.testing.assert_array_equal(oc.linalg.qr(a, mode="r").compute(), r)
    whole, tall = (part.compute() for part in oc.linalg.qr(a, mode="complete"))
    assert (whole.shape, tall.shape) == ((m, m), (m, n))
    assert np.abs(whole.conj().T @ whole - np.eye(m)).max() < 100 * eps
    assert np.linalg.norm(whole @ tall - a) < 10 * eps * np.linalg.norm(a)
    np.testing.assert_array_equal(whole[:, :n], q)
    assert not tall[n:].any()


def test_lazy_factors_pickle_with_their_matrix(tmp_path: Path) -> None:
    oc.store({tmp_path / "a.npy": oc.random.normal((2200, 2100), seed=3)})
    a = oc.open(tmp_path / "a.npy")
    q, r = oc.linalg.qr(a)
    for lazy in (q, r):
        again = pickle.loads(pickle.dumps(lazy))
        assert np.array_equal(again.compute(), lazy.compute())


def test_files_are_opened_again_and_refused_where_they_are_others(tmp_path: Path) -> None:
    a, path = matrix((300, 200)), tmp_path / "a.ocf"
    factor = oc.linalg.qr_factor(a, path=path)
    again = oc.linalg.open_factor(path, a)
    assert isinstance(again, oc.linalg.QRFactor)
    solution = factor.solve(np.ones(300))
    assert np.array_equal(again.solve(np.ones(300)), solution)
    with pytest.raises(TargetExistsError):
        oc.linalg.qr_factor(a, path=path)
    oc.linalg.qr_factor(a, path=path, overwrite=True)
    with pytest.raises(ShapeError, match="is of"):
        oc.linalg.open_factor(path, a.T)
    with pytest.raises(DTypeError, match="has float64"):
        oc.linalg.open_factor(path, a + 1j)
    with pytest.raises(FormatError, match=r"linalg\.open_factor opens it"):
        oc.sparse.linalg.open_factor(path, scipy.sparse.eye_array(300, format="csr"))
    damaged = bytearray(path.read_bytes())
    for place in np.random.default_rng(0).integers(0, len(damaged), 40):
        one = damaged.copy()
        one[place] ^= 0xFF
        path.write_bytes(bytes(one))
        try:
            # Between tiles are bytes that nothing reads.
            x = oc.linalg.open_factor(path, a).solve(np.ones(300))
        except (FormatError, ShapeError, DTypeError, LinAlgError):
            continue
        assert np.array_equal(x, solution)


def test_files_of_other_factors_are_opened_or_name_who_opens_them(tmp_path: Path) -> None:
    path, definite = tmp_path / "c.ocf", matrix((600, 600)) @ matrix((600, 600)).T + np.eye(600)
    made = oc.linalg.cho_factor(definite, path=path)
    again = oc.linalg.open_factor(path, definite)
    assert isinstance(again, oc.linalg.CholeskyFactor)
    assert np.array_equal(again.solve(np.ones(600)), made.solve(np.ones(600)))
    with pytest.raises(ShapeError, match=r"is of \(600, 600\)"):
        oc.linalg.open_factor(path, np.eye(5))
    with pytest.raises(LinAlgError, match="is not the one that the factor was made of"):
        oc.linalg.open_factor(path, np.diag(np.arange(1.0, 601.0))).solve(np.ones(600))
    sparse = scipy.sparse.diags_array([-1.0, 2.5, -1.0], offsets=[-1, 0, 1], shape=(40, 40), format="csr")
    oc.sparse.linalg.analyze(sparse, "spd").factorize(tmp_path / "s.ocf")
    with pytest.raises(FormatError, match=r"sparse\.linalg\.open_factor opens it"):
        oc.linalg.open_factor(tmp_path / "s.ocf", sparse.toarray())
    with pytest.raises(FileNotFoundError):
        oc.linalg.open_factor(tmp_path / "none.ocf", np.eye(4))


def test_refusals() -> None:
    with pytest.raises(ArgumentError, match="is a path"):
        oc.linalg.qr_factor("a.npy")
    with pytest.raises(ArgumentError, match="is sparse"):
        oc.linalg.qr_factor(scipy.sparse.eye_array(3))
    with pytest.raises(DTypeError, match="cannot be pickled"):
        pickle.dumps(oc.linalg.qr_factor(np.eye(3)))
    with pytest.raises(ArgumentError, match="takes the LUFactor"):
        oc.linalg.lu_solve(scipy.linalg.lu_factor(np.eye(3)), np.ones(3))  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match="is no matrix with elements"):
        oc.linalg.qr_factor(np.zeros((0, 3)))
    with pytest.raises(ShapeError, match="is no matrix"):
        oc.linalg.qr_factor(np.zeros((2, 3, 3)))
    with pytest.raises(DTypeError, match="is not supported"):
        oc.linalg.qr_factor(np.zeros((3, 3), dtype="datetime64[s]"))
    with pytest.raises(ArgumentError, match=r"does not end in \.ocf"):
        oc.linalg.qr_factor(np.eye(3), path=os.devnull)
    wide = oc.linalg.qr_factor(matrix((3, 5)))
    with pytest.raises(ShapeError, match="more columns than rows"):
        wide.solve(np.ones(3))
    with pytest.raises(ShapeError, match=r"\(3, 5\) and columns of shape \(4,\)"):
        wide.q_multiply(np.ones(4))
    with pytest.raises(DTypeError, match="columns of complex128"):
        wide.q_multiply(np.ones(3) * 1j)
    with pytest.raises(ShapeError, match="3 and 4 rows differ"):
        oc.linalg.qr_factor(np.eye(3)).solve(np.ones(4))


@pytest.mark.parametrize("fault", ["read:{n}", "write:{n}:enospc", "torn-write:{n}", "sync:{n}", "rename:{n}"])
def test_the_nth_call_fails_for_every_n(fault: str, tmp_path: Path) -> None:
    """No half factor is left under its name, and the same session's next try succeeds."""
    oc.store({tmp_path / "a.npy": oc.random.normal((1100, 1100), seed=1)})
    a, path, sweep = oc.open(tmp_path / "a.npy"), tmp_path / "f.ocf", Sweep(fault, 200)
    for n in sweep:
        with session(tmp_path / "scratch", pool_limit="17MiB", faults=fault.format(n=n)):
            try:
                oc.linalg.qr_factor(a, path=path, overwrite=True)
                continue
            except oc.errors.OutcoreError:
                sweep.failed()
            if path.exists():
                # The factor was made, and what failed was its opening.
                assert isinstance(oc.linalg.open_factor(path, a).solve(np.ones(1100)), np.ndarray)
            factor = oc.linalg.qr_factor(a, path=path, overwrite=True)
            assert factor.solve(np.ones(1100)).shape == (1100,)
        path.unlink()
