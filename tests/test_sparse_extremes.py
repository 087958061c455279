"""Entries at the ends of their types: values as large or as small as numbers can be, and infinities."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

import outcore as oc
from outcore.errors import ArgumentError, DTypeError

EVEN = oc.sparse.from_coo([0, 0, 1], [1, 2, 2], None, (3, 3))


def triangle(*weights: float) -> oc.sparse.SparseMatrix:
    """The matrix of the edges 0 → 1, 0 → 2 and 1 → 2."""
    return oc.sparse.from_coo([0, 0, 1], [1, 2, 2], np.array(weights), (3, 3))


@pytest.mark.parametrize("weight", [5e-324, 1e-310, 1e200, 1.7e308])
def test_ranks_depend_on_ratios_of_weights_alone(weight: float) -> None:
    A = triangle(weight, weight, weight)
    np.testing.assert_allclose(oc.sparse.pagerank(A).compute(), oc.sparse.pagerank(EVEN).compute(), rtol=1e-12)
    for found, right in zip(oc.sparse.hits(A), oc.sparse.hits(EVEN), strict=True):
        np.testing.assert_allclose(found.compute(), right.compute(), rtol=1e-12)


def test_rows_of_any_size_are_ranked_beside_each_other() -> None:
    found = oc.sparse.pagerank(triangle(1e308, 1e308, 5e-324)).compute()
    np.testing.assert_allclose(found, oc.sparse.pagerank(EVEN).compute(), rtol=1e-12)


@pytest.mark.parametrize("weight", [5e-324, 1.7e308])
def test_labels_spread_by_ratios_of_weights(weight: float) -> None:
    A = triangle(weight, weight, weight)
    known = np.array([-1, 0, 1])
    found, right = (oc.sparse.label_propagation(of, known)[1].compute() for of in (A, EVEN))
    np.testing.assert_allclose(found, right)


@pytest.mark.parametrize("weight", [2.0**-1060, 2.0**1000])
def test_an_embedding_has_the_scale_of_its_weights(weight: float) -> None:
    path = sp.diags_array([np.ones(9), np.ones(9)], offsets=[-1, 1])
    right = oc.sparse.spectral_embedding(oc.sparse.from_scipy(path), 1).compute()
    found = oc.sparse.spectral_embedding(oc.sparse.from_scipy(path * weight), 1).compute()
    np.testing.assert_allclose(np.abs(found) * np.sqrt(weight), np.abs(right), rtol=1e-6)


@pytest.mark.parametrize("weight", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize(
    "ranked",
    [
        oc.sparse.pagerank,
        oc.sparse.hits,
        lambda A: oc.sparse.label_propagation(A, np.array([-1, 0, 1])),
        lambda A: oc.sparse.spectral_embedding(A, 1),
        lambda A: oc.sparse.als(A, 1),
        lambda A: oc.sparse.nmf(A, 1),
    ],
)
def test_weights_that_are_not_finite_are_refused(ranked: object, weight: float) -> None:
    with pytest.raises(ArgumentError, match=r"finite|negative or NaN|add up to inf"):
        ranked(triangle(1.0, weight, 1.0))  # type: ignore[operator]


def test_factors_of_entries_without_squares_are_refused() -> None:
    for factors in (oc.sparse.als, oc.sparse.nmf):
        with pytest.raises(ArgumentError, match="divide"):
            factors(triangle(1e308, 1.0, 5e-324), 1)


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
@pytest.mark.parametrize("ord", ["fro", 1, np.inf])
def test_the_least_integer_has_a_norm(dtype: type, ord: object) -> None:
    least = np.iinfo(dtype).min
    assert oc.sparse.from_coo([0], [1], np.array([least], dtype), (2, 3)).norm(ord) == -float(least)  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [1e300, 1e-300, 5e-324, 1.0])
def test_squares_of_a_norm_neither_overflow_nor_vanish(size: float) -> None:
    A = oc.sparse.from_coo([0, 0, 1, 1], [0, 1, 0, 1], size * np.array([2.0, 2.0, 2.0, 2.0]), (40, 40), side=1)
    assert A.norm() == 4 * size
    assert np.isnan(oc.sparse.from_coo([0, 1], [0, 1], [np.nan, size], (2, 2), side=1).norm())
    assert oc.sparse.from_coo([0, 1], [0, 1], [-np.inf, size], (2, 2), side=1).norm() == np.inf


@pytest.mark.parametrize("dtype", [np.uint8, np.uint64, np.int8, np.float32, np.complex128])
def test_negatives_are_those_of_numpy(dtype: type) -> None:
    values = np.array([1, 3], dtype)
    found = (-oc.sparse.from_coo([0, 1], [0, 1], values, (2, 2))).to_scipy()
    assert found.dtype == dtype
    assert found.diagonal().tolist() == (-values).tolist()


def test_negatives_of_infinities_are_infinities_also_in_the_complex() -> None:
    found = -oc.sparse.from_coo([0], [0], [complex(np.inf, 0)], (1, 1))
    assert found.to_scipy()[0, 0] == complex(-np.inf, 0)


def test_bools_have_neither_negatives_nor_differences() -> None:
    A = oc.sparse.from_coo([0, 1], [0, 1], np.ones(2, bool), (2, 2))
    with pytest.raises(DTypeError, match="negative"):
        _ = -A
    with pytest.raises(DTypeError, match="difference"):
        _ = A - A


@pytest.mark.parametrize("dtype", [np.int8, np.uint64, np.float32, np.float64, np.complex64])
@pytest.mark.parametrize("by", [3, 1e-310, 0.0, np.inf, np.float32(3), np.array([3.0, 0.0]), np.array([[7], [0]])])
def test_division_is_that_of_numpy(dtype: type, by: object) -> None:
    values = np.array([[7, 1], [5, 0]], dtype)
    A = oc.sparse.from_coo([0, 0, 1], [0, 1, 0], values[[0, 0, 1], [0, 1, 0]], (2, 2))
    with np.errstate(all="ignore"):
        right = np.true_divide(values, by)  # type: ignore[arg-type]
    found = (A / by).toarray()
    assert found.dtype == right.dtype
    stored = ([0, 0, 1], [0, 1, 0])
    np.testing.assert_array_equal(found[stored], right[stored])


@pytest.mark.filterwarnings("error")
def test_products_of_matrices_have_infinity_times_nothing() -> None:
    """As SciPy's; and no warnings."""
    A = sp.csr_array(np.array([[np.inf, 1.0], [np.nan, 1e308]]))
    B = sp.csr_array(np.array([[0.0, 2.0], [0.0, 1e308]]))
    found = oc.sparse.from_scipy(A).multiply(oc.sparse.from_scipy(B)).toarray()
    np.testing.assert_array_equal(found, A.multiply(B).toarray())


@pytest.mark.parametrize("solve", ["cg", "bicgstab", "gmres", "minres"])
def test_a_system_without_unknowns_is_solved(solve: str) -> None:
    x, info = getattr(oc.sparse.linalg, solve)(oc.sparse.from_coo([], [], np.zeros(0), (0, 0)), np.zeros(0))
    assert (x.shape, info) == ((0,), 0)


@pytest.mark.parametrize("told", [{"sigma": np.nan}, {"sigma": np.inf}, {"tol": np.nan}, {"tol": np.inf}])
@pytest.mark.parametrize("find", [oc.sparse.linalg.eigsh, oc.sparse.linalg.eigs])
def test_numbers_that_are_not_finite_are_no_shift_and_no_tolerance(find: object, told: dict[str, float]) -> None:
    with pytest.raises(ArgumentError, match="must be finite"):
        find(np.diag(np.arange(1.0, 9.0)), k=2, **told)  # type: ignore[operator]


@pytest.mark.parametrize("weight", [5e-324, 1e-310, 1.0, 1e200, 1.7e308])
def test_communities_depend_on_ratios_of_weights_alone(weight: float) -> None:
    ends = [0, 1, 2, 3, 4, 5, 2], [1, 2, 0, 4, 5, 3, 3]
    G = oc.graph.from_arrays(*ends, weights=np.full(7, weight), directed=False)
    labels, modularity = oc.graph.louvain_communities(G)
    assert labels.tolist() == [0, 0, 0, 3, 3, 3]
    np.testing.assert_allclose(modularity, 5 / 14, rtol=1e-12)


def test_weights_beside_much_larger_ones_do_not_count() -> None:
    G = oc.graph.from_arrays([0, 2, 1], [1, 3, 2], weights=np.array([1.7e308, 1.7e308, 5e-324]), directed=False)
    labels, modularity = oc.graph.louvain_communities(G)
    assert (labels.tolist(), modularity) == ([0, 0, 2, 2], 0.5)


@pytest.mark.parametrize("weight", [np.inf, np.nan, -1.0, -np.inf])
def test_weights_that_communities_cannot_have_are_refused(weight: float) -> None:
    G = oc.graph.from_arrays([0, 1], [1, 2], weights=np.array([1.0, weight]), directed=False)
    with pytest.raises(ArgumentError, match="at least 0 and finite"):
        oc.graph.louvain_communities(G)


@pytest.mark.parametrize("weight", [1e-200, 1e200])
def test_modularity_has_no_squares_of_the_total(weight: float) -> None:
    G = nx.Graph()
    G.add_weighted_edges_from([(0, 1, weight), (2, 3, weight)])
    found = nx.community.modularity(G, [{0, 1}, {2, 3}], backend="outcore")
    np.testing.assert_allclose(found, 0.5, rtol=1e-12)
