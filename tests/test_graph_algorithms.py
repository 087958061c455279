"""Algorithms on stored graphs against networkx, SciPy and plain loops: path, star, R-MAT, drawn graphs, and none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse.csgraph
from hypothesis import HealthCheck, given, settings
from support.graphs import KINDS, directed_of, graphs, weighted, write
from support.running import assert_nothing_but_kept, session
from support.sizes import examples

import outcore as oc
from outcore.errors import ArgumentError, IndexingError
from outcore.graph import Graph

DRAWN = settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
ALL = [(kind, directed) for kind in KINDS for directed in (False, True)]
UNDIRECTED = list(KINDS)


def made(kind: str, directed: bool = False) -> Any:
    graph = KINDS[kind]()
    return weighted(directed_of(graph) if directed else graph)


def partition(labels: Any) -> set[frozenset[int]]:
    return {frozenset(np.flatnonzero(labels == label).tolist()) for label in np.unique(labels)}


def parts(found: Any) -> set[frozenset[int]]:
    return {frozenset(part) for part in found}


def levels(graph: Any, sources: list[int], direction: str) -> Any:
    """Distances by networkx."""
    graph = {"out": lambda: graph, "in": lambda: graph.reverse() if graph.is_directed() else graph}.get(
        direction, graph.to_undirected
    )()
    found = np.full(len(graph), -1)
    for vertex, far in nx.multi_source_dijkstra_path_length(graph, set(sources), weight=None).items():
        found[vertex] = far
    return found


def check_searching(graph: Any, G: Graph) -> None:
    n = len(graph)
    random = np.random.default_rng(n)
    for direction in ("out", "in", "both"):
        if not n:
            assert oc.graph.bfs(G, [], direction=direction).shape == (0,)
            continue
        for sources in ([int(random.integers(n))], random.integers(0, n, 4).tolist()):
            found = oc.graph.bfs(G, sources, direction=direction)
            assert found.dtype == np.int32
            assert np.array_equal(found, levels(graph, sources, direction))


def check_paths(graph: Any, G: Graph) -> None:
    n = len(graph)
    if not n:
        assert oc.graph.shortest_paths(G, []).shape == (0,)
        return
    sources = np.random.default_rng(n).integers(0, n, 2).tolist()
    expected = np.full(n, np.inf)
    for vertex, far in nx.multi_source_dijkstra_path_length(graph, set(sources)).items():
        expected[vertex] = far
    for step in (None, 0.3, 2, 1e300):
        assert np.array_equal(oc.graph.shortest_paths(G, sources, step=step), expected)


def check_parts(graph: Any, G: Graph) -> None:
    whole = graph.to_undirected()
    found = oc.graph.connected_components(G)
    assert found.dtype == np.uint32
    assert partition(found) == parts(nx.connected_components(whole))
    assert all(found[label] == label for label in found), "each is named by its lowest vertex"
    assert (found <= np.arange(len(graph))).all()
    if graph.is_directed():
        strong = oc.graph.strongly_connected_components(G)
        assert partition(strong) == parts(nx.strongly_connected_components(graph))
        assert all(strong[label] == label for label in strong), "each is named by one of its own"


def check_cores(graph: Any, G: Graph) -> None:
    found = oc.graph.core_number(G)
    plain = graph.copy()
    plain.remove_edges_from(list(nx.selfloop_edges(graph)))
    if plain.number_of_edges() == graph.number_of_edges():
        assert found.tolist() == [nx.core_number(graph)[vertex] for vertex in range(len(graph))]
        return
    # A loop counts as one neighbour, of a directed graph as one each way: peeled by a plain loop.
    loops = 1 + graph.is_directed()
    degree = {v: plain.degree(v) + loops * graph.has_edge(v, v) for v in graph}
    core, left = 0, set(graph)
    while left:
        vertex = min(left, key=degree.__getitem__)
        core = max(core, degree[vertex])
        assert found[vertex] == core
        left.remove(vertex)
        for other in nx.all_neighbors(plain, vertex):
            degree[other] -= 1


def check_ranks(graph: Any, G: Graph) -> None:
    n = len(graph)
    found, iterations = oc.graph.pagerank(G, tol=1e-13, iterations=200, full_output=True)
    if not n:
        assert (found.shape, iterations) == ((0,), 0)
        return
    assert iterations is not None
    assert abs(found.sum() - 1) < 1e-12
    expected = nx.pagerank(graph, tol=1e-13, max_iter=500, weight=None)
    np.testing.assert_allclose(found, [expected[vertex] for vertex in range(n)], atol=1e-8, rtol=0)
    # Five steps by NumPy.
    matrix = nx.to_numpy_array(graph, weight=None)
    degrees = matrix.sum(axis=1)
    ranks = np.full(n, 1 / n)
    for _ in range(5):
        shares = np.divide(ranks, degrees, out=np.zeros(n), where=degrees > 0)
        ranks = 0.7 * (matrix.T @ shares) + (0.7 * ranks[degrees == 0].sum() + 0.3) / n
    five, done = oc.graph.pagerank(G, 0.7, tol=0, iterations=5, full_output=True)
    assert done is None
    np.testing.assert_allclose(five, ranks, rtol=1e-12)


def check_ranks_given(graph: Any, G: Graph) -> None:
    """By weights, from and to what is given, and by what changes."""
    n = len(graph)
    if not n:
        assert oc.graph.pagerank(G, threshold=0.1).shape == (0,)
        return
    p, q, r = (1.0 + (np.arange(n) + shift) % 3 for shift in range(3))
    given = {name: dict(enumerate(of)) for name, of in (("personalization", p), ("dangling", q), ("nstart", r))}
    for weight in (None, "weight"):
        by = {"weighted": weight is not None, "tol": 1e-14, "iterations": 400}
        expected = nx.pagerank(graph, tol=1e-14, max_iter=500, weight=weight, **given)
        found = oc.graph.pagerank(G, personalization=p, dangling=q, start=r, **by)
        np.testing.assert_allclose(found, [expected[vertex] for vertex in range(n)], atol=1e-11, rtol=0)
        expected = nx.pagerank(graph, tol=1e-14, max_iter=500, weight=weight, personalization=given["personalization"])
        for threshold in (1e-6, 1e-13):
            found, done = oc.graph.pagerank(G, personalization=p, threshold=threshold, full_output=True, **by)
            assert done is not None
            assert abs(found.sum() - 1) < 1e-12
            # Twice: ranks are divided by their sum, which is as wrong.
            apart = np.abs(found - [expected[vertex] for vertex in range(n)]).sum()
            assert apart <= 2 * n * threshold * 0.85 / 0.15 + 1e-11


def check_degrees(graph: Any, G: Graph) -> None:
    n = len(graph)
    loops = [graph.has_edge(v, v) for v in range(n)]
    if graph.is_directed():
        expected = {"out": graph.out_degree, "in": graph.in_degree, "both": graph.degree}
        wanted = {name: [of[v] for v in range(n)] for name, of in expected.items()}
    else:
        wanted = {name: [graph.degree[v] - loops[v] for v in range(n)] for name in ("out", "in", "both")}
    for direction, degrees in wanted.items():
        assert G.degrees(direction).tolist() == degrees
        assert oc.graph.degree_histogram(G, direction).tolist() == np.bincount(np.array(degrees, int)).tolist()
    assert (G.number_of_vertices, G.number_of_edges) == (n, graph.number_of_edges())
    assert G.number_of_loops == sum(loops)


def check_between(graph: Any, G: Graph) -> None:
    for normalized in (False, True):
        expected = nx.betweenness_centrality(graph, normalized=normalized)
        found = oc.graph.betweenness_centrality(G, normalized=normalized)
        np.testing.assert_allclose(found, [expected[v] for v in range(len(graph))], rtol=1e-9, atol=1e-12)


def check_order(graph: Any, G: Graph) -> None:
    """Of the graph without what leads back; and a graph with a circle has none."""
    if not nx.is_directed_acyclic_graph(graph):
        with pytest.raises(ArgumentError, match="circle"):
            oc.graph.topological_sort(G)
        return
    place = np.empty(len(graph), int)
    order = oc.graph.topological_sort(G)
    place[order] = np.arange(len(graph))
    assert sorted(order) == list(range(len(graph)))
    assert all(place[u] < place[v] for u, v in graph.edges())


def check_triangles(graph: Any, G: Graph) -> None:
    n = len(graph)
    plain = graph.copy()
    plain.remove_edges_from(list(nx.selfloop_edges(graph)))
    each = nx.triangles(plain)
    found = oc.graph.triangles(G, each=True)
    assert found.tolist() == [each[v] for v in range(n)]
    assert oc.graph.triangles(G) == sum(each.values()) // 3
    clustering = nx.clustering(plain)
    np.testing.assert_allclose(oc.graph.clustering(G), [clustering[v] for v in range(n)], rtol=1e-14)
    np.testing.assert_allclose(oc.graph.average_clustering(G), np.mean([*clustering.values(), 0][: n or 1]), rtol=1e-12)
    if not n:
        with pytest.raises(ArgumentError, match="at least 1 vertex"):
            oc.graph.scan_statistics(G)
        return
    edges = [plain.subgraph([v, *plain[v]]).number_of_edges() for v in range(n)]
    assert oc.graph.scan_statistics(G) == (int(np.argmax(edges)), max(edges))


def check_communities(graph: Any, G: Graph) -> None:
    chosen = set(oc.graph.maximal_independent_set(G, seed=3).tolist())
    for vertex in graph:
        others = set(graph[vertex]) - {vertex}
        assert bool(others & chosen) == (vertex not in chosen)
    labels = oc.graph.label_propagation(G, iterations=1000, seed=4)
    for vertex in graph:
        around = labels[list(graph[vertex])]
        assert len(around) == 0 or (around == labels[vertex]).sum() == np.bincount(around).max()
        assert nx.has_path(graph, vertex, int(labels[vertex]))


def check_diameter(graph: Any, G: Graph) -> None:
    whole = graph.to_undirected()
    longest = max((max(lengths.values()) for _, lengths in nx.all_pairs_shortest_path_length(whole)), default=0)
    found = oc.graph.diameter(G)
    assert found <= longest
    if len(graph) and nx.is_tree(whole):
        assert found == longest


EITHER = [check_searching, check_parts, check_cores, check_ranks, check_degrees, check_diameter]


@pytest.mark.parametrize(("kind", "directed"), ALL)
def test_of_either_kind(kind: str, directed: bool, out: Path) -> None:
    graph = made(kind, directed)
    with session(out) as current:
        G = write(graph, out)
        for check in EITHER:
            check(graph, G)
        W = write(graph, out, "float64", "w.ocg")
        check_paths(graph, W)
        check_ranks_given(graph, W)
        if len(graph) < 200:
            check_between(graph, G)
        assert_nothing_but_kept(current)


@pytest.mark.parametrize("kind", UNDIRECTED)
def test_of_undirected_graphs(kind: str, out: Path) -> None:
    graph = made(kind)
    with session(out):
        G = write(graph, out)
        check_triangles(graph, G)
        check_communities(graph, G)


@pytest.mark.parametrize("kind", UNDIRECTED)
def test_of_directed_graphs(kind: str, out: Path) -> None:
    graph = made(kind, True)
    forward = nx.DiGraph([(int(u), int(v)) for u, v in graph.edges() if u < v])
    forward.add_nodes_from(graph)
    with session(out):
        check_order(graph, write(graph, out))
        check_order(forward, write(forward, out, name="f.ocg"))


def test_of_vertices_without_edges_but_loops_the_first_has_the_most(out: Path) -> None:
    graph = nx.Graph([(1, 1), (2, 2)])
    graph.add_nodes_from(range(4))
    with session(out):
        assert oc.graph.scan_statistics(write(graph, out)) == (0, 0)


@DRAWN
@given(graph=graphs())
def test_drawn_graphs(graph: Any, out: Path) -> None:
    with session(out):
        G = write(graph, out)
        for check in EITHER:
            check(graph, G)
        W = write(graph, out, "float32", "w.ocg")
        check_paths(graph, W)
        check_ranks_given(graph, W)
        for check in [check_order] if graph.is_directed() else [check_triangles, check_communities]:
            check(graph, G)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "uint64", "float32", "float64", "bool"])
@pytest.mark.parametrize("directed", [False, True])
def test_paths_along_weights_of_every_type(dtype: str, directed: bool, out: Path) -> None:
    graph = made("rmat", directed)
    # SciPy takes what is 0 for no edge.
    for *_, data in graph.edges(data=True):
        data["weight"] = 1 if dtype == "bool" else 1 + data["weight"]
    with session(out):
        G = write(graph, out, dtype)
        assert G.dtype == np.dtype(dtype)
        check_paths(graph, G)
        vertices = np.arange(len(graph))
        matrix = nx.to_scipy_sparse_array(graph, dtype="float64", nodelist=vertices)
        begins, neighbours, weights = G.lists(vertices)
        assert np.array_equal(begins, matrix.indptr)
        assert np.array_equal(neighbours, matrix.indices)
        assert weights is not None
        assert np.array_equal(weights, matrix.data)
        for direction, of in (("in", matrix.T), ("both", matrix.minimum(matrix.T) if not directed else None)):
            if of is not None:
                expected = scipy.sparse.csgraph.dijkstra(of, indices=5)
                assert np.array_equal(oc.graph.shortest_paths(G, 5, direction=direction), expected)


def test_betweenness_from_some_sources(out: Path) -> None:
    graph = made("rmat", True)
    with session(out):
        G = write(graph, out)
        sources = [1, 5, 9, 300]
        expected = nx.betweenness_centrality_subset(graph, sources, list(graph))
        found = oc.graph.betweenness_centrality(G, sources, normalized=False)
        np.testing.assert_allclose(found * 4 / len(graph), [expected[v] for v in range(len(graph))], rtol=1e-9)
        often = oc.graph.betweenness_centrality(G, sources * 200, normalized=False)
        np.testing.assert_allclose(often, found, rtol=1e-9)
        drawn = [oc.graph.betweenness_centrality(G, 20, seed=seed).tobytes() for seed in (1, 1, 2)]
        assert drawn[0] == drawn[1] != drawn[2]
        for wrong in (0, 513, -1):
            with pytest.raises(ArgumentError, match=f"sources must be from 1 to the 512 vertices, not {wrong}"):
                oc.graph.betweenness_centrality(G, wrong)
        with pytest.raises(IndexingError, match="512 is no vertex"):
            oc.graph.betweenness_centrality(G, [512])


def test_betweenness_holds_with_more_paths_than_float64_counts(out: Path) -> None:
    """2^1500 shortest paths lead through a chain of 1,500 diamonds, half of them through each side of each."""
    diamonds = 1500
    tips = 3 * np.arange(diamonds)
    sources, targets = np.r_[tips, tips, tips + 1, tips + 2], np.r_[tips + 1, tips + 2, tips + 3, tips + 3]
    with session(out):
        G = oc.graph.from_arrays(sources, targets, out / "chain.ocg")
        found = oc.graph.betweenness_centrality(G, [0], normalized=False)
    wanted = np.zeros(3 * diamonds + 1)
    wanted[tips] = 3 * (diamonds - np.arange(diamonds))
    wanted[tips + 1] = wanted[tips + 2] = (wanted[tips] - 2) / 2
    wanted[0] = 0
    np.testing.assert_allclose(found, wanted * len(wanted), rtol=1e-9)
