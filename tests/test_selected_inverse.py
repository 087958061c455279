"""Elements of the inverse at places of a factor: NumPy's, exact forecasts, the same bits at every limit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from support.definite import arrow, drawn, grid, path
from support.running import session
from support.sizes import examples
from test_solve_direct import failure

import outcore as oc
from outcore.errors import ArgumentError, LinAlgError, MemoryLimitError, ShapeError
from outcore.sparse.linalg import analyze, cholesky


def check(matrix: Any, factor: Any) -> None:
    """Its diagonal and the elements at its entries are those of NumPy's inverse."""
    inverse = np.linalg.inv(matrix.toarray())
    most = np.abs(inverse).max(initial=0.0) * np.linalg.cond(matrix.toarray()) * 1e-15 + 1e-15
    entries = matrix.tocoo()
    diagonal = factor.inverse_diagonal().compute()
    assert diagonal.dtype == np.float64
    assert np.abs(diagonal - np.diag(inverse).real).max(initial=0.0) <= most
    elements = factor.inverse_entries(entries.row, entries.col).compute()
    assert elements.dtype == factor.dtype
    assert np.abs(elements - inverse[entries.row, entries.col]).max(initial=0.0) <= most


@pytest.mark.parametrize("ordering", ["nd", "amd", "natural"])
@pytest.mark.parametrize(
    "matrix",
    [grid(28, 28), grid(9, 9, 9), path(500), arrow(300), arrow(300, True), scipy.sparse.eye_array(5, format="csr")],
    ids=["plane", "space", "path", "arrow", "arrow first", "identity"],
)
def test_elements_are_numpys(matrix: Any, ordering: Any) -> None:
    check(matrix, analyze(matrix, "spd", ordering=ordering).factorize())


@settings(max_examples=examples(40), deadline=None)
@given(n=st.integers(1, 60), share=st.floats(0.0, 0.4), seed=st.integers(0, 99), is_complex=st.booleans())
def test_matrices_of_every_kind(n: int, share: float, seed: int, is_complex: bool) -> None:
    matrix = drawn(n, int(share * n * n), np.random.default_rng(seed), is_complex)
    check(matrix, cholesky(matrix))


@pytest.mark.parametrize("is_complex", [False, True])
def test_fronts_of_several_tiles(is_complex: bool) -> None:
    """A full matrix is one front; beside a grid its parent has blocks of columns that children lack."""
    random = np.random.default_rng(0)
    x = random.normal(size=(1300, 1300)) + (1j * random.normal(size=(1300, 1300)) if is_complex else 0)
    dense = x @ x.conj().T / 1300 + 2 * np.eye(1300)
    factor, inverse = oc.linalg.cho_factor(dense), np.linalg.inv(dense)
    rows, columns = random.integers(0, 1300, (2, 400))
    np.testing.assert_allclose(factor.inverse_diagonal().compute(), np.diag(inverse).real, atol=1e-13)
    some = factor.inverse_entries(rows, columns)
    np.testing.assert_allclose(some.compute(), inverse[rows, columns], atol=1e-13)
    np.testing.assert_array_equal(factor.inverse_entries(rows - 1300, columns).compute(), some.compute())


def test_a_factor_larger_than_memory_has_the_same_bits(tmp_path: Path) -> None:
    """Fronts in tiles below fronts in tiles, under limits that spill and limits that do not."""
    matrix, first = grid(34, 34, 34), None
    n = matrix.shape[0]
    with session(tmp_path):
        factor = analyze(matrix, "spd", ordering="nd").factorize(tmp_path / "a.ocf")
        chosen = np.asarray([0, n // 2, n - 7])
        ones = np.zeros((n, 3))
        ones[chosen, range(3)] = 1.0
        expected = factor.solve(ones)[chosen, range(3)]
    for limit, threads in [("1GiB", 2), ("40MiB", 1), ("28MiB", 3)]:
        with session(tmp_path, pool_limit=limit, threads=threads):
            opened = oc.sparse.linalg.open_factor(tmp_path / "a.ocf", matrix)
            diagonal = opened.inverse_diagonal()
            forecast = oc.explain(diagonal)
            with oc.profile() as ran:
                values = diagonal.compute()
        assert forecast.exact
        done = ran.bytes_read, ran.bytes_written, ran.peak_bytes
        assert (forecast.bytes_read, forecast.bytes_written, forecast.peak_bytes) == done
        first = values if first is None else first
        np.testing.assert_array_equal(values, first)
    np.testing.assert_allclose(first[chosen], expected, rtol=1e-12)


def test_parts_of_the_tree_that_no_place_needs_are_left_out(tmp_path: Path) -> None:
    matrix = grid(30, 30, 30)
    with session(tmp_path):
        factor = analyze(matrix, "spd", ordering="nd").factorize(tmp_path / "a.ocf")
        last = factor.order[-1]
        one = oc.explain(factor.inverse_entries([last], [last]))
        every = oc.explain(factor.inverse_diagonal())
    assert one.bytes_read < every.bytes_read / 2


def test_refusals_name_what_is_wrong() -> None:
    matrix = grid(12, 12)
    factor = cholesky(matrix)
    with pytest.raises(ArgumentError, match=r"no element at \((0, 143|143, 0)\), nor at"):
        factor.inverse_entries([0, 0], [1, 143])
    with pytest.raises(ArgumentError, match=r"rows from 0 to 144, the matrix has 144"):
        factor.inverse_entries([0, 144], [0, 0])
    with pytest.raises(ArgumentError, match="18446744073709551615"):
        factor.inverse_entries(np.asarray([2**64 - 1], dtype=np.uint64), [0])
    many = np.zeros(2_000_000, dtype=np.int64)
    with session(pool_limit="20MiB"), pytest.raises(MemoryLimitError, match="inverse_entries"):
        factor.inverse_entries(many, many)
    with pytest.raises(ArgumentError, match="integers"):
        factor.inverse_entries([0.5], [0])
    with pytest.raises(ShapeError, match=r"\(2,\) and columns of shape \(1,\)"):
        factor.inverse_entries([0, 1], [0])
    assert factor.inverse_entries([], []).compute().shape == (0,)
    with pytest.raises(LinAlgError, match="of kind \"spd\", and this is 'sym'"):
        analyze(matrix, "sym").inverse_diagonal()
    with pytest.raises(LinAlgError, match="approximate"):
        analyze(matrix, "spd", precision="mixed").inverse_diagonal()
    turned = matrix.tolil()
    turned[3, 4] = -0.5
    with pytest.raises(LinAlgError, match="not symmetric"):
        analyze(turned.tocsr(), "spd").inverse_diagonal()
    large = oc.linalg.cho_factor(oc.eye(1500) * 2.0).inverse_diagonal()
    with session(pool_limit="3MiB"), pytest.raises(MemoryLimitError, match="elements of the inverse"):
        large.compute()


@pytest.fixture(scope="module")
def inverted(shared: Path) -> Any:
    """The diagonal of the inverse of a matrix, whose factor is stored beside it."""
    matrix = oc.sparse.from_scipy(grid(30, 30, 30), shared / "a.ocs")
    with session(shared):
        factor = analyze(matrix, "spd", ordering="nd").factorize(shared / "a.ocf")
        return factor.inverse_diagonal().compute()


@pytest.mark.parametrize("fault", ["read:{n}", "write:{n}", "write:{n}:enospc"])
def test_what_fails_says_so_and_the_next_try_is_right(fault: str, inverted: Any, shared: Path, tmp_path: Path) -> None:
    failed = []

    def work() -> Any:
        opened = oc.sparse.linalg.open_factor(shared / "a.ocf", oc.sparse.open(shared / "a.ocs"))
        return opened.inverse_diagonal().compute()

    for n in (1, 9, 40):
        with session(tmp_path, pool_limit="20MiB", faults=fault.format(n=n)):
            failed.append(failure(work))
        with session(tmp_path, pool_limit="20MiB"):
            np.testing.assert_array_equal(work(), inverted)
    assert any(failed)
    assert all("\n" not in str(error) for error in failed)
