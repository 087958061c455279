"""`solve` with what is known of the matrix, held against SciPy's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from support.running import session

import outcore as oc
from outcore.errors import ArgumentError, LinAlgError, ShapeError

KINDS = ["gen", "sym", "her", "pos", "lower triangular", "upper triangular", "diagonal", "tridiagonal", "banded"]
LONG = {"gen": "general", "sym": "symmetric", "her": "hermitian", "pos": "positive definite"}


def drawn(n: int, kind: str, dtype: str, batch: tuple[int, ...] = ()) -> Any:
    """A matrix whose parts that the kind does not look at are of another one."""
    random = np.random.default_rng(n)
    a = random.standard_normal((*batch, n, n))
    if dtype.startswith("c"):
        a = a + 1j * random.standard_normal((*batch, n, n))
    if kind in ("her", "pos", "sym"):
        a = a + (a.swapaxes(-1, -2) if kind == "sym" else a.conj().swapaxes(-1, -2))
    if kind in ("tridiagonal", "banded"):
        a = np.triu(np.tril(a, 1), -1)
    return (a + (4 * n if kind == "pos" else 4) * np.eye(n)).astype(dtype)


@pytest.mark.parametrize("dtype", ["f8", "c16", "f4"])
@pytest.mark.parametrize("kind", KINDS)
def test_solutions_are_scipys(kind: str, dtype: str) -> None:
    a, b = drawn(90, kind, dtype), drawn(90, "gen", dtype)[:, :3]
    tolerance = 1e-3 if dtype == "f4" else 1e-10
    for lower in (False, True):
        given = (np.tril(a) if lower else np.triu(a)) if kind in ("sym", "her", "pos") else a
        expected = scipy.linalg.solve(given, b, assume_a=kind, lower=lower)
        for name in {kind, LONG.get(kind, kind)}:
            x = oc.linalg.solve(given, b, assume_a=name, lower=lower)
            assert x.dtype == np.dtype(dtype)
            np.testing.assert_allclose(x.compute(), expected, rtol=tolerance, atol=tolerance)
        vector = oc.linalg.solve(given, b[:, 0], assume_a=kind, lower=lower).compute()
        np.testing.assert_allclose(vector, expected[:, 0], rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("kind", KINDS)
def test_leading_axes_are_matrices_of_their_own(kind: str) -> None:
    a, b = drawn(12, kind, "f8", (2, 1)), drawn(12, "gen", "f8")[:, :2]
    x = oc.linalg.solve(a, b, assume_a=kind).compute()
    assert x.shape == (2, 1, 12, 2)
    for place in range(2):
        expected = scipy.linalg.solve(a[place, 0], b, assume_a=kind)
        np.testing.assert_allclose(x[place, 0], expected, rtol=1e-10, atol=1e-10)


def test_a_definite_matrix_larger_than_memory_takes_half_of_the_bytes(tmp_path: Path) -> None:
    n = 2400
    noise = oc.random.normal((n, n), seed=1)
    oc.store(
        {tmp_path / "a.npy": noise + noise.T + 4 * n * oc.eye(n), tmp_path / "b.npy": oc.random.normal((n, 2), seed=2)}
    )
    a, b = oc.open(tmp_path / "a.npy"), oc.open(tmp_path / "b.npy")
    written = []
    with session(tmp_path / "scratch", pool_limit="30MiB"):
        for kind in ("pos", "gen"):
            said = oc.explain({tmp_path / "x.npy": oc.linalg.solve(a, b, assume_a=kind)}, overwrite=True)
            outcome = oc.store({tmp_path / "x.npy": oc.linalg.solve(a, b, assume_a=kind)}, overwrite=True)
            assert (outcome.bytes_read, outcome.bytes_written) == (said.bytes_read, said.bytes_written)
            x = np.load(tmp_path / "x.npy")
            np.testing.assert_allclose(np.load(tmp_path / "a.npy") @ x, np.load(tmp_path / "b.npy"), atol=1e-10)
            written.append(outcome.bytes_written)
    assert written[0] < 0.7 * written[1]


def test_what_is_not_as_assumed_is_told() -> None:
    with pytest.raises(ArgumentError, match=r"assume_a='spd' is none of 'gen', 'general'"):
        oc.linalg.solve(np.eye(3), np.ones(3), assume_a="spd")
    with pytest.raises(LinAlgError, match="not positive definite: the pivot of row 1"):
        oc.linalg.solve(np.diag([1.0, -1.0]), np.ones(2), assume_a="pos").compute()
    with pytest.raises(LinAlgError):
        oc.linalg.solve(np.diag([[[1.0, -1.0]]][0][0]) + np.zeros((2, 2, 2)), np.ones((2, 1)), assume_a="pos").compute()
    for kind in ("diagonal", "lower triangular", "sym"):
        with pytest.raises(LinAlgError):
            oc.linalg.solve(np.diag([1.0, 0.0]), np.ones(2), assume_a=kind).compute()
    with pytest.raises(ShapeError, match=r"\(3, 3\) and \(4,\) do not go together"):
        oc.linalg.solve(np.eye(3), np.ones(4), assume_a="pos")
