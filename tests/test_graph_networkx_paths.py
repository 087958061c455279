"""Paths and distances that networkx asks for: as long as its own, between the same nodes, and with its exceptions."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from support.dispatched import MADE, SMALL, length, near, outcomes, pair, pairs, same, same_path, same_sets
from support.graphs import weighted, write
from support.running import session
from support.sizes import covering, sized

import outcore as oc
from outcore.graph import _networkx_paths, _networkx_reach
from outcore.graph._networkx import backend_interface, can_run, convert_from_nx
from outcore.graph._networkx_names import reserved


def some(graph: Any) -> list[Any]:
    """The first, one from the middle and the last node, and what is none."""
    nodes = list(graph)
    return [*dict.fromkeys([*nodes[:1], *nodes[len(nodes) // 2 :][:1], *nodes[-1:]]), "none", 99]


@pytest.mark.parametrize(("kind", "directed", "made"), covering(list(SMALL), [False, True], MADE))
def test_paths_along_edges(kind: str, directed: bool, made: str, out: Path) -> None:
    with session(out):
        graph, G = pair(kind, directed, made, out)
        for node in some(graph):
            for cutoff in (None, -1, 0, 2, 1.5):
                for name in ("single_source_shortest_path", "single_target_shortest_path"):
                    same_path(name, graph, G, None, node, cutoff=cutoff)
                same("single_source_shortest_path_length", graph, G, node, cutoff)
                found, wanted = outcomes("single_target_shortest_path_length", graph, G, node, cutoff)
                assert wanted is None or dict(found) == dict(wanted)  # of networkx 3.4 both are pairs
            same_path("shortest_path", graph, G, None, node)
            same_path("shortest_path", graph, G, None, target=node)
            same("shortest_path_length", graph, G, target=node)
            for other in some(graph):
                same_path("shortest_path", graph, G, None, node, other)
                same_path("bidirectional_shortest_path", graph, G, None, node, other)
                same("has_path", graph, G, node, other)
                same_sets("all_shortest_paths", graph, G, node, other)
        same("shortest_path_length", graph, G)
        check_all_paths(graph, G, None)
        for cutoff in (None, 2):
            same("all_pairs_shortest_path_length", graph, G, cutoff)
            found, wanted = outcomes("all_pairs_shortest_path", graph, G, cutoff)
            assert [lengths_of(*each) for each in found] == [lengths_of(*each) for each in wanted]


def lengths_of(node: Any, paths: dict[Any, list[Any]]) -> tuple[Any, dict[Any, int]]:
    assert all((path[0], path[-1]) == (node, end) for end, path in paths.items())
    return node, {end: len(path) for end, path in paths.items()}


@pytest.mark.parametrize(
    ("kind", "directed", "highest", "made"),
    covering(
        ["empty", "one", "loop", "path", "circles", "sparse", "dense"], [False, True], sized([0, 3], [0, 1, 3, 9]), MADE
    ),
)
def test_paths_along_weights(kind: str, directed: bool, highest: int, made: str, out: Path) -> None:
    """With edges that are 0 long among them: no path goes round in circles of them."""
    with session(out):
        graph, G = pair(kind, directed, made, out, highest)
        same("shortest_path_length", graph, G, weight="weight")
        check_all_paths(graph, G, "weight")
        for node in some(graph):
            for cutoff in (None, -1, 0, 4):
                same_path("single_source_dijkstra_path", graph, G, "weight", node, cutoff)
                same("single_source_dijkstra_path_length", graph, G, node, cutoff)
                check_both(graph, G, [node], cutoff)
            same_path("shortest_path", graph, G, "weight", node, weight="weight")
            same_path("shortest_path", graph, G, "weight", target=node, weight="weight")
            same("shortest_path_length", graph, G, target=node, weight="weight")
            for other in some(graph):
                same_path("shortest_path", graph, G, "weight", node, other, "weight")
                same_path("dijkstra_path", graph, G, "weight", node, other)
                same("dijkstra_path_length", graph, G, node, other)
                if highest:  # between all others there are too many
                    same_sets("all_shortest_paths", graph, G, node, other, "weight")
                for name in ("bidirectional_dijkstra", "single_source_dijkstra"):
                    check_length(name, graph, G, node, other)
        nodes = list(graph)
        for sources in ([], nodes[:1], nodes[:3], set(nodes[-2:]), ["none"]):
            check_both(graph, G, sources, None)
            same("multi_source_dijkstra_path_length", graph, G, sources)
            for target in some(graph):
                check_length("multi_source_dijkstra", graph, G, sources, target)
                check_length("multi_source_dijkstra", graph, G, sources, target, 3)
        same("all_pairs_dijkstra_path_length", graph, G, 5)
        found, wanted = outcomes("all_pairs_dijkstra", graph, G)
        assert [(node, each[0], set(each[1])) for node, each in found] == [
            (node, each[0], set(each[1])) for node, each in wanted
        ]
        found, wanted = outcomes("all_pairs_dijkstra_path", graph, G, 4)
        assert [(node, set(each)) for node, each in found] == [(node, set(each)) for node, each in wanted]


def check_length(name: str, graph: Any, G: Any, *args: Any) -> None:
    """The length of a path, and one that is as long."""
    found, wanted = outcomes(name, graph, G, *args)
    if wanted is not None:
        assert found[0] == wanted[0] == length(graph, found[1], "weight"), (name, args)
        assert found[1][-1] == wanted[1][-1]


def check_both(graph: Any, G: Any, sources: Any, cutoff: float | None) -> None:
    """Distances, and a path for each that is as long."""
    found, wanted = outcomes("multi_source_dijkstra", graph, G, sources, cutoff=cutoff)
    if wanted is not None:
        assert found[0] == wanted[0]
        assert set(found[1]) == set(wanted[1])
        for node, path in found[1].items():
            assert path[0] in sources
            assert path[-1] == node
            assert length(graph, path, "weight") == wanted[0][node]


def check_all_paths(graph: Any, G: Any, weight: str | None) -> None:
    """Of all pairs paths that are as long, vertex by vertex or in a dictionary as networkx has it."""
    found, wanted = outcomes("shortest_path", graph, G, weight=weight)
    assert type(found) is type(wanted)
    found, wanted = list(dict(found).items()), list(dict(wanted).items())
    assert [node for node, _ in found] == [node for node, _ in wanted]
    for (_, paths), (_, others) in zip(found, wanted, strict=True):
        assert set(paths) == set(others)
        for node, path in paths.items():
            assert (path[0], path[-1]) == (others[node][0], node)
            assert length(graph, path, weight) == length(graph, others[node], weight)


def test_of_all_pairs_a_search_is_done_when_it_is_asked_for(out: Path) -> None:
    with session(out):
        G = write(weighted(nx.path_graph(5)), out, "float64")
        for name in ("shortest_path", "shortest_path_length"):
            for weight, search in ((None, "bfs"), ("weight", "shortest_paths")):
                with oc.profile() as seen:
                    pairs = getattr(backend_interface, name)(G, weight=weight)
                    if not isinstance(pairs, dict):  # as networkx 3.4 has paths
                        assert [next(pairs)[0], next(pairs)[0]] == [0, 1]
                        names = [outcome.other.get("graph") for outcome in seen.outcomes]
                        assert [name for name in names if name] == [search] * 2


def test_of_equally_short_paths_the_lowest_is_given(out: Path) -> None:
    graph = nx.DiGraph([(0, 1), (0, 2), (1, 3), (2, 3), (3, 4)])
    with session(out):
        G = write(graph, out)
        assert backend_interface.shortest_path(G, 0, 4) == [0, 1, 3, 4]
        assert backend_interface.single_source_shortest_path(G, 0)[4] == [0, 1, 3, 4]
        assert list(backend_interface.single_source_all_shortest_paths(G, 0))[3] == (3, [[0, 1, 3], [0, 2, 3]])


def test_a_long_way_of_edges_that_are_0_long(out: Path) -> None:
    """A step of each kind is one look at a list, and none is looked at twice."""
    graph = nx.DiGraph()
    order = np.random.default_rng(0).permutation(300).tolist()
    graph.add_weighted_edges_from((u, v, 0) for u, v in pairwise(order))
    graph.add_weighted_edges_from((v, u, 0) for u, v in pairwise(order))
    with session(out):
        G = write(nx.relabel_nodes(graph, int), out, "float64")
        assert backend_interface.dijkstra_path(G, order[0], order[-1]) == order
        assert backend_interface.single_source_dijkstra_path(G, order[0])[order[-1]] == order


@pytest.mark.parametrize("dtype", ["float64", "float32", "uint8", "int64"])
@pytest.mark.parametrize("directed", [False, True])
def test_weights_of_every_type(dtype: str, directed: bool, out: Path) -> None:
    """Each edge of a path adds what the distances have: sums are rounded alike."""
    graph = nx.gnp_random_graph(200, 0.05, seed=1, directed=directed)
    random = np.random.default_rng(0)
    for *_, data in graph.edges(data=True):
        data["weight"] = np.dtype(dtype).type(random.exponential(20)).item()
    with session(out):
        G = write(graph, out, dtype)
        same_path("dijkstra_path", graph, G, "weight", 0, 150)
        lengths, paths = backend_interface.single_source_dijkstra(G, 0)
        assert len(paths) == len(lengths) == len(nx.descendants(graph, 0)) + 1
        for node, path in paths.items():
            assert length(graph, path, "weight") == lengths[node]


def test_what_is_beside_a_result_is_reserved(out: Path) -> None:
    with session(out):
        held = []
        for name, args in (("single_source_shortest_path", (0,)), ("bfs_tree", (0,))):
            with pytest.MonkeyPatch.context() as patch:
                for module in (_networkx_paths, _networkx_reach):
                    patch.setattr(module, "reserved", lambda bytes: held.append(bytes) or reserved(1 << 50))
                with pytest.raises(oc.errors.MemoryLimitError):
                    getattr(backend_interface, name)(write(nx.path_graph(9), out), *args)
        assert held == [9 * 9 + 16 * 9, 9]


def test_methods_are_checked(out: Path) -> None:
    with session(out):
        G = write(nx.path_graph(3), out)
        for name in ("shortest_path", "shortest_path_length", "all_shortest_paths"):
            with pytest.raises(ValueError, match="method not supported: dantzig"):
                getattr(backend_interface, name)(G, 0, 2, method="dantzig")
        assert can_run("shortest_path", (G, 0, 2), {"method": "bellman-ford"}) is True


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("kind", SMALL)
def test_searches_in_order(kind: str, directed: bool, out: Path) -> None:
    with session(out):
        stored, named = pairs(kind, directed, out)
        graph, G = stored
        for node in some(graph):
            for limit in (None, 0, 2):
                for reverse in (False, True):
                    same("bfs_edges", graph, G, node, reverse, limit)
                    found, wanted = outcomes("bfs_tree", graph, G, node, reverse, limit)
                    assert wanted is None or (list(found), list(found.edges)) == (list(wanted), list(wanted.edges))
                same("bfs_predecessors", graph, G, node, limit)
                same("bfs_successors", graph, G, node, limit)
            for each, H in (stored, named):
                for distance in (0, 1, 3, 1.5, -1):
                    same("descendants_at_distance", each, H, node, distance)
        for each, H in (stored, named):
            nodes = list(each)
            for sources in (*some(each)[:-1], nodes[:1], nodes[:3], [], ["none"]):
                found, wanted = outcomes("bfs_layers", each, H, sources)
                if wanted is not None:
                    assert list(map(set, found)) == list(map(set, wanted))
                    assert list(map(len, found)) == list(map(len, wanted))
        assert "ascending" in str(can_run("bfs_edges", (graph, 0), {}))


@pytest.mark.parametrize(("kind", "directed", "weight", "made"), covering(list(SMALL), [False, True], [None, 5], MADE))
def test_how_far_all_are(kind: str, directed: bool, weight: int | None, made: str, out: Path) -> None:
    name = None if weight is None else "weight"
    with session(out):
        graph, G = pair(kind, directed, made, out, weight)
        near("average_shortest_path_length", graph, G, weight=name)
        near("wiener_index", graph, G, weight=name)
        near("harmonic_centrality", graph, G, distance=name)
        nodes = list(graph)
        for nbunch in (nodes[:2], nodes[-1:]):
            near("harmonic_centrality", graph, G, nbunch, distance=name)
            near("harmonic_centrality", graph, G, distance=name, sources=nbunch)
        for improved in (False, True):
            near("closeness_centrality", graph, G, distance=name, wf_improved=improved)
        for node in some(graph):
            near("closeness_centrality", graph, G, node, distance=name)
            same("eccentricity", graph, G, node, weight=name)
        same("eccentricity", graph, G, weight=name)
        same("eccentricity", graph, G, [*nodes[:2], "no"], weight=name)
        for each in ("diameter", "radius", "periphery"):
            same(each, graph, G, weight=name)
        found, wanted = outcomes("center", graph, G, weight=name) if nodes else (None, None)
        assert wanted is None or set(found) == set(wanted)
        if not directed and weight is None:
            near("global_efficiency", graph, G)


@pytest.mark.parametrize("directed", [False, True])
def test_ways_along_infinite_weights_are_ways(directed: bool, out: Path) -> None:
    inf = float("inf")
    edges = [(0, 1, inf), (1, 2, 1), (2, 3, 0), (3, 4, inf), (5, 6, inf), (2, 1, 0)]
    graph = (nx.DiGraph if directed else nx.Graph)()
    graph.add_nodes_from(range(8))
    graph.add_weighted_edges_from(edges)
    with session(out):
        stored = oc.graph.from_networkx(graph, out / "g.ocg", weight="weight")
        for G in (stored, convert_from_nx(graph, edge_attrs={"weight": 1})):
            for node in graph:
                same("single_source_dijkstra_path_length", graph, G, node)
                same("single_source_dijkstra_path_length", graph, G, node, cutoff=5)
                same("shortest_path_length", graph, G, target=node, weight="weight")
                same_path("single_source_dijkstra_path", graph, G, "weight", node)
                for other in graph:
                    same("dijkstra_path_length", graph, G, node, other)
            near("closeness_centrality", graph, G, distance="weight")
            near("harmonic_centrality", graph, G, distance="weight")
