"""Eigenvalues and singular values that are there several times come as often, and what cannot be told is said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from support.running import session

import outcore as oc
from outcore.errors import LinAlgError
from outcore.sparse import linalg

ORDER = 120  # more rows than are solved whole


@pytest.fixture(autouse=True)
def _session(scratch: Path) -> Any:
    with session(scratch) as made:
        yield made


def ring(order: int) -> Any:
    """The Laplacian of a ring, of which all eigenvalues but two are there twice."""
    places = np.arange(order)
    ends = (np.r_[places, (places + 1) % order], np.r_[(places + 1) % order, places])
    neighbours = scipy.sparse.coo_array((np.ones(2 * order), ends), shape=(order, order))
    return scipy.sparse.csr_array(2 * scipy.sparse.eye_array(order) - neighbours)


def torus(side: int) -> Any:
    one = scipy.sparse.eye_array(side)
    return scipy.sparse.csr_array(scipy.sparse.kron(ring(side), one) + scipy.sparse.kron(one, ring(side)))


def diagonal(*values: Any) -> Any:
    return scipy.sparse.csr_array(scipy.sparse.diags_array(np.concatenate([np.ravel(part) for part in values])))


MATRICES: dict[str, Callable[[], Any]] = {
    "ring": lambda: ring(97),
    "torus": lambda: torus(12),
    "two components": lambda: scipy.sparse.csr_array(scipy.sparse.block_diag([ring(60), ring(60)])),
    "complete graph": lambda: scipy.sparse.csr_array(ORDER * np.eye(ORDER) - 1),
    "identity": lambda: diagonal(np.ones(ORDER)),
    "nothing": lambda: scipy.sparse.csr_array((ORDER, ORDER)),
    "blocks": lambda: scipy.sparse.csr_array(scipy.sparse.block_diag([np.array([[2.0, 1], [1, 3]])] * 60)),
    "clusters": lambda: diagonal(np.repeat(np.arange(24.0), 5)),
    "near ones": lambda: diagonal(np.linspace(0, 1, ORDER - 4), [2, 2, 2 + 1e-6, 3]),
    "both signs": lambda: diagonal(np.repeat([5.0, -5, 4, -4], 3), np.linspace(-1, 1, ORDER - 12)),
}


def wanted(values: Any, k: int, which: str) -> Any:
    """The k eigenvalues that are asked for, by size where their signs may be any."""
    up = np.sort(values)
    found = {"SA": up[:k], "LA": up[-k:], "BE": np.r_[up[: k // 2], up[len(up) - (k - k // 2) :]]}
    return np.sort(found[which]) if which != "LM" else np.sort(np.abs(up))[-k:]


def assert_found(matrix: Any, found: tuple[Any, Any], k: int, which: str, tol: float = 1e-8) -> None:
    values, vectors = found[0], np.asarray(found[1])
    own = np.sort(np.abs(values)) if which == "LM" else values
    np.testing.assert_allclose(own, wanted(np.linalg.eigvalsh(matrix.toarray()), k, which), atol=tol)
    assert np.linalg.norm(matrix @ vectors - vectors * values) <= 10 * tol
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(k), atol=10 * tol)


@pytest.mark.parametrize("which", ["SA", "LM"])
@pytest.mark.parametrize("name", MATRICES)
def test_eigenvalues_come_as_often_as_they_are_there(name: str, which: str, data: Path) -> None:
    matrix = MATRICES[name]()
    stored = oc.sparse.from_scipy(matrix, data / "a.ocs")
    assert_found(matrix, linalg.eigsh(stored, k=3, which=which), 3, which)


@settings(max_examples=12, deadline=None)
@given(
    times=st.lists(st.integers(1, 4), min_size=2, max_size=4),
    k=st.integers(1, 6),
    which=st.sampled_from(["SA", "LA", "LM", "BE"]),
    width=st.sampled_from([1, 1, 2]),
    seed=st.integers(0, 1 << 30),
)
def test_eigenvalues_of_any_multiplicities(times: list[int], k: int, which: str, width: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    ends = np.repeat(draw.choice([-7.0, -6, -5, 5, 6, 7, 8], len(times), replace=False), times)
    values = np.concatenate([ends, np.sort(draw.uniform(-3, 3, ORDER - len(ends)))])
    turns = scipy.sparse.csr_array(np.linalg.qr(draw.normal(size=(8, 8)))[0])
    whole = scipy.sparse.block_diag([turns] * (ORDER // 8) + [np.eye(ORDER % 8)], format="csr")
    order = draw.permutation(ORDER)
    matrix = scipy.sparse.csr_array(whole @ diagonal(values[order]) @ whole.T)
    with session():
        assert_found(matrix, linalg.eigsh(matrix, k=k, which=which, block_size=width, seed=seed), k, which)


def test_a_shift_finds_all_copies_next_to_it() -> None:
    values, _ = linalg.eigsh(ring(ORDER), k=4, sigma=2.001)
    near = np.linalg.eigvalsh(ring(ORDER).toarray())
    np.testing.assert_allclose(values, np.sort(near[np.argsort(abs(near - 2.001))[:4]]), atol=1e-9)


def test_loose_tolerances_find_copies_too() -> None:
    values = linalg.eigsh(MATRICES["both signs"](), k=5, which="LA", tol=1e-3, return_eigenvectors=False)
    np.testing.assert_allclose(values, [4, 4, 5, 5, 5], rtol=2e-3)


def test_a_first_vector_that_lacks_a_copy_does_not_hide_it() -> None:
    first = np.zeros(ORDER)
    first[[0, 3, *range(12, ORDER)]] = 1
    values = linalg.eigsh(MATRICES["both signs"](), k=4, which="LM", v0=first, return_eigenvectors=False)
    np.testing.assert_allclose(np.abs(values), [5.0] * 4, atol=1e-9)


def test_copies_are_found_in_single_precision_and_complex_numbers() -> None:
    matrix = MATRICES["both signs"]()
    single = linalg.eigsh(matrix.astype(np.float32), k=4, which="LA", return_eigenvectors=False)
    np.testing.assert_allclose(single, [4, 5, 5, 5], atol=1e-4)
    turns = np.exp(1j * np.arange(ORDER))
    turned = scipy.sparse.csr_array(diagonal(turns) @ ring(ORDER) @ diagonal(turns.conj()))
    found = linalg.eigsh(turned, k=3, which="SA", return_eigenvectors=False)
    np.testing.assert_allclose(found, np.linalg.eigvalsh(ring(ORDER).toarray())[:3], atol=1e-9)


def test_eigs_finds_copies_of_general_matrices() -> None:
    draw = np.random.default_rng(2)
    turns = np.eye(ORDER) + 0.3 * draw.normal(size=(ORDER, ORDER)) / np.sqrt(ORDER)
    values = np.concatenate([[5.0, 5, 5, 4], np.linspace(-1, 1, ORDER - 4)])
    matrix = turns @ np.diag(values) @ np.linalg.inv(turns)
    found, vectors = linalg.eigs(matrix, k=4, which="LR")
    np.testing.assert_allclose(np.sort(found.real), [4, 5, 5, 5], atol=1e-8)
    v = vectors.compute()
    assert np.linalg.norm(matrix @ v - v * found) <= 1e-8
    assert np.linalg.matrix_rank(v, tol=1e-6) == 4


@settings(max_examples=6, deadline=None)
@given(repeats=st.integers(1, 3), which=st.sampled_from(["LM", "SM"]), wide=st.booleans(), seed=st.integers(0, 1 << 30))
def test_singular_values_come_as_often_as_they_are_there(repeats: int, which: str, wide: bool, seed: int) -> None:
    draw = np.random.default_rng(seed)
    ends = np.repeat([9.0 if which == "LM" else 0.5], repeats)
    sizes = np.concatenate([ends, draw.uniform(2, 5, ORDER - repeats)])
    left = np.linalg.qr(draw.normal(size=(ORDER + 20, ORDER)))[0]
    right = np.linalg.qr(draw.normal(size=(ORDER, ORDER)))[0]
    matrix = left @ np.diag(sizes) @ right.T
    matrix = matrix.T if wide else matrix
    with session():
        s = linalg.svds(matrix, k=4, which=which, return_singular_vectors=False)
    np.testing.assert_allclose(s, np.sort(sizes)[-4:] if which == "LM" else np.sort(sizes)[:4], atol=1e-7)


def test_a_search_for_copies_goes_on_after_a_stop(data: Path, scratch: Path) -> None:
    """Stopped at each of its products in turn, it comes to the same bits."""
    from outcore.sparse.linalg._krylov import Krylov

    stored = oc.sparse.from_scipy(MATRICES["both signs"](), data / "a.ocs")

    def run(most: int | None, checkpoint: int | None) -> Any:
        expand, count = Krylov.expand, [0]

        def counted(space: Krylov) -> None:
            if count[0] == most:
                raise KeyboardInterrupt
            count[0] += 1
            expand(space)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Krylov, "expand", counted)
            try:
                values, vectors = linalg.eigsh(stored, k=5, which="LM", checkpoint=checkpoint)
            except KeyboardInterrupt:
                return None
        return values.tobytes(), vectors.compute().tobytes(), count[0]

    whole = run(None, None)
    for most in range(15, whole[2], 23):
        run(most, 1)
        assert run(None, 1)[:2] == whole[:2]


@pytest.mark.parametrize("order", [30, 200])
def test_a_shift_that_is_an_eigenvalue_is_named(order: int) -> None:
    with pytest.raises(LinAlgError, match=r"eigsh: A - sigma I is singular: sigma=0 is an eigenvalue"):
        linalg.eigsh(ring(order), k=2, sigma=0)


@pytest.mark.parametrize("size", [1.0, 1e-3])
def test_a_matrix_that_is_not_hermitian_ends_soon(size: float) -> None:
    noise = np.random.default_rng(0).normal(size=(ORDER, ORDER))
    with pytest.raises(LinAlgError, match="is not Hermitian"):
        linalg.eigsh(size * noise + np.diag(np.arange(ORDER) * 10.0), k=2, which="LA")


@pytest.mark.parametrize("order", [20, ORDER])
@pytest.mark.parametrize("solver", [linalg.eigsh, linalg.eigs, linalg.svds])
def test_eigenproblems_of_numbers_that_are_none_end(solver: Any, order: int) -> None:
    for value in (np.nan, np.inf, 1e200):
        matrix = np.diag(np.arange(1.0, order + 1))
        matrix[3, 3] = value
        if value == 1e200 and order == 20 and solver is not linalg.svds:
            continue  # LAPACK does
        with pytest.raises(LinAlgError, match=rf"{solver.__name__}: products with the matrix are not finite"):
            solver(matrix, k=2)


def test_eigenproblems_whose_squares_are_lost_say_so() -> None:
    with pytest.raises(LinAlgError, match="scale it"):
        linalg.eigsh(1e-200 * ring(ORDER), k=2, which="LA")
