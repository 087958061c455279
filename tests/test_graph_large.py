"""Graphs of megabytes of lists: the same bits at every number of threads and in the least memory, and two ways that
agree."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from scipy.sparse import csgraph
from support.running import ROOMY, assert_nothing_but_kept, refusals, session
from support.sizes import sized

import outcore as oc
from outcore.graph import Graph

BITS, EDGES = 17, 2 << 20
LONG = 2_500_000


def drawn(bits: int, edges: int) -> Any:
    rows, columns = oc.sparse.rmat_edges(1 << bits, edges, seed=1)
    return np.asarray(rows.compute()).astype(np.int64), np.asarray(columns.compute()).astype(np.int64)


@pytest.fixture(scope="module")
def edges() -> Any:
    """Ends and weights of an R-MAT graph."""
    with session():
        rows, columns = drawn(BITS, EDGES)
    return rows, columns, np.random.default_rng(0).integers(1, 200, len(rows)).astype(np.uint32)


@pytest.fixture(scope="module")
def matrix(edges: Any) -> Any:
    rows, columns, weights = edges
    return scipy.sparse.coo_array((weights, (rows, columns)), (1 << BITS, 1 << BITS)).tocsr().astype(np.float64)


@pytest.fixture(scope="module")
def folder(edges: Any, shared: Path) -> Path:
    """R-MAT both ways, one way and without circles, and a long row of triangles."""
    rows, columns, weights = edges
    with session(shared):
        oc.graph.from_arrays(rows, columns, shared / "way.ocg", vertices=1 << BITS, weights=weights)
        oc.graph.from_arrays(rows, columns, shared / "both.ocg", vertices=1 << BITS, directed=False)
        apart = rows != columns
        forward = np.minimum(rows, columns)[apart], np.maximum(rows, columns)[apart]
        oc.graph.from_arrays(*forward, shared / "order.ocg", vertices=1 << BITS)
        first = np.arange(LONG - 2)
        ends = np.concatenate([first, first[::2]]), np.concatenate([first + 1, first[::2] + 2])
        oc.graph.from_arrays(*ends, shared / "long.ocg", vertices=LONG, directed=False)
    return shared


CASES: dict[str, tuple[str, Callable[[Graph], Any]]] = {
    "bfs": ("way", lambda G: oc.graph.bfs(G, [3, 4], direction="both")),
    "paths": ("way", lambda G: oc.graph.shortest_paths(G, 3)),
    "components": ("long", oc.graph.connected_components),
    "strong": ("way", oc.graph.strongly_connected_components),
    "cores": ("both", oc.graph.core_number),
    "ranks": ("way", lambda G: oc.graph.pagerank(G, tol=0, iterations=4)),
    "between": ("way", lambda G: oc.graph.betweenness_centrality(G, [1, 2])),
    "triangles": ("long", lambda G: oc.graph.triangles(G, each=True)),
    "clustering": ("long", oc.graph.clustering),
    "scan": ("both", oc.graph.scan_statistics),
    "diameter": ("both", oc.graph.diameter),
    "order": ("order", oc.graph.topological_sort),
    "labels": ("both", lambda G: oc.graph.label_propagation(G, iterations=4, seed=1)),
    "louvain": ("both", lambda G: np.append(*oc.graph.louvain_communities(G, seed=1))),
    "independent": ("both", lambda G: oc.graph.maximal_independent_set(G, seed=1)),
    "lists": ("way", lambda G: G.lists(np.arange(1 << BITS), "in")[1]),
}


def expected(name: str, matrix: Any, found: Any) -> Any:
    """The same by SciPy, or a formula."""
    n = 1 << BITS
    if name == "bfs":
        both = (matrix + matrix.T).tocsr()
        both.data[:] = 1
        far = csgraph.dijkstra(both, indices=[3, 4], unweighted=True, min_only=True)
        return np.where(np.isinf(far), -1, far)
    if name == "paths":
        return csgraph.dijkstra(matrix, indices=3)
    if name == "components":
        return np.where(np.arange(LONG) < LONG - 1, 0, LONG - 1)
    if name == "strong":
        # Of equal components the lowest vertices of theirs are equal.
        labels = csgraph.connected_components(matrix, connection="strong")[1]
        lowest, ours = np.full(n, n), np.full(n, n)
        np.minimum.at(lowest, labels, np.arange(n))
        np.minimum.at(ours, found, np.arange(n))
        return np.where(lowest[labels] == ours[found], found, -1)
    if name == "triangles":
        each = np.zeros(LONG, np.uint64)
        for corner in range(3):
            each[corner : LONG - 2 + corner : 2] += 1
        return each
    if name == "lists":
        return matrix.T.tocsr().indices
    return None


@pytest.mark.parametrize("name", CASES)
def test_threads_and_the_least_memory_change_no_bit(name: str, folder: Path, matrix: Any) -> None:
    file, call = CASES[name]
    path = folder / f"{file}.ocg"
    refused = refusals(lambda: call(oc.graph.open(path)), folder)
    for error in refused:
        assert re.match(r"graph: .* needs [0-9.]+ [KMG]?i?B", str(error))
        assert error.details["operator"].startswith("graph")
        assert error.details["need"] > error.details["limit"]
    least = refused[-1].smallest + 1
    # Rounds, blocks and batches are as small as they get.
    found = []
    # A thread takes a bit a vertex for triangles: eight need more than the two that were refused.
    for threads, pool in ((2, ROOMY), (8, least + 6 * LONG), (1, least)):
        with session(folder, threads=threads, pool_limit=pool) as current:
            found.append(np.asarray(call(oc.graph.open(path))))
            assert_nothing_but_kept(current)
    assert len({each.tobytes() for each in found}) == 1
    wanted = expected(name, matrix, found[0])
    assert wanted is None or np.array_equal(found[0], wanted)


# -- two ways ---------------------------------------------------------------------------------------------------------


def test_products_of_sparse_matrices_agree(tmp_path: Path) -> None:
    n = 1 << 14
    with session(tmp_path):
        A = oc.sparse.rmat(n, 100_000, tmp_path / "a.ocs", seed=5)
        W = oc.graph.from_sparse(A, tmp_path / "way.ocg")
        assert (W.number_of_vertices, W.number_of_edges, W.directed) == (n, A.nnz, True)
        ranks = oc.sparse.pagerank(A, tol=0, iterations=30).compute()
        np.testing.assert_allclose(oc.graph.pagerank(W, tol=0, iterations=30), ranks, rtol=1e-12)
        # The neighbours of those that were met, by the semiring of or and and.
        levels = np.where(np.arange(n) == 0, 0, -1)
        met = levels == 0
        for level in range(n):
            new = np.asarray(A.T.product(met, "lor_land").compute()).astype(bool) & (levels < 0)
            if not new.any():
                break
            levels[new], met = level + 1, new
        assert np.array_equal(oc.graph.bfs(W, 0), levels)
        # The lowest label around, by that of min and second.
        U = oc.graph.from_sparse(A, tmp_path / "both.ocg", directed=False)
        S = A.maximum(A.T, path=tmp_path / "s.ocs")
        labels = np.arange(n)
        while True:
            lower = np.minimum(labels, np.asarray(S.product(labels, "min_second").compute()))
            if np.array_equal(lower, labels):
                break
            labels = lower
        assert np.array_equal(oc.graph.connected_components(U), labels)
        assert np.array_equal(oc.graph.connected_components(W), labels)
        # Ways of two edges that a third one closes: six for each triangle.
        plain = S.tril(-1, path=tmp_path / "l.ocs")
        plain = plain.maximum(plain.T, path=tmp_path / "p.ocs")
        closed = oc.sparse.spgemm(plain, plain, "plus_pair", mask=plain)
        each = np.asarray(closed.sum(axis=1).compute()).ravel() // 2
        assert np.array_equal(oc.graph.triangles(U, each=True), each)
        assert oc.graph.triangles(U) * 3 == each.sum()


RING = sized(250_000, 1_000_000)


@pytest.fixture(scope="module")
def ring(shared: Path) -> Path:
    """A ring one way, and a path that leads from 0 to the last vertex."""
    first = np.arange(RING)
    with session(shared):
        oc.graph.from_arrays(first, (first + 1) % RING, shared / "ring.ocg", weights=np.ones(RING))
        oc.graph.from_arrays(first[:-1], first[1:], shared / "path.ocg")
    return shared


def test_iterations_cost_what_is_active(ring: Path) -> None:
    """Each with one vertex: where every iteration looked at all vertices, this took minutes."""
    with session(ring):
        around, path = (oc.graph.open(ring / f"{name}.ocg") for name in ("ring", "path"))
        expected = np.arange(RING)
        assert np.array_equal(oc.graph.bfs(around, 0), expected)
        assert np.array_equal(oc.graph.shortest_paths(around, 0), expected)
        assert not oc.graph.strongly_connected_components(around).any()
        assert np.array_equal(oc.graph.topological_sort(path), expected)
        assert (oc.graph.core_number(path) == 1).all()
