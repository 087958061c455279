"""Measures and parts that networkx asks for: what it gives itself, or what is as good where it draws."""

from __future__ import annotations

import random
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from support.dispatched import MADE, SMALL, agree, near, outcomes, pair, pairs, plain, same
from support.running import session
from support.sizes import covering

from outcore.graph._networkx import backend_interface, can_run

EITHER = ["isolates", "number_of_isolates", "is_empty", "is_regular", "is_tree", "is_forest", "is_eulerian"]
DIRECTED = ["number_attracting_components", "is_attracting_component", "is_branching", "is_arborescence"]


@pytest.mark.parametrize(("kind", "directed", "made"), covering(list(SMALL), [False, True], MADE))
def test_parts_and_degrees(kind: str, directed: bool, made: str, out: Path) -> None:
    with session(out):
        graph, G = pair(kind, directed, made, out)
        for name in [*EITHER, *(DIRECTED if directed else [])]:
            same(name, graph, G)
        for node in [*list(graph)[:3], "none"]:
            same("is_isolate", graph, G, node)
        if directed:
            for name in ("attracting_components", "kosaraju_strongly_connected_components"):
                agree(getattr(backend_interface, name)(G), plain(getattr(nx, name)(graph)))
        else:
            for k in range(5):
                same("is_k_regular", graph, G, k)


@pytest.mark.parametrize(("kind", "directed", "made"), covering(list(SMALL), [False, True], MADE))
def test_betweenness_from_the_nodes_that_networkx_draws(kind: str, directed: bool, made: str, out: Path) -> None:
    with session(out):
        graph, G = pair(kind, directed, made, out)
        for k in (None, 1, 2, len(graph), len(graph) + 1):
            for normalized in (False, True):
                for endpoints in (False, True):
                    given = {"k": k, "normalized": normalized, "endpoints": endpoints}
                    if can_run("betweenness_centrality", (G,), given) is True:
                        near("betweenness_centrality", graph, G, seed=7, **given)


@pytest.mark.parametrize("kind", SMALL)
def test_the_longest_path_without_circles(kind: str, out: Path) -> None:
    with session(out):
        for graph, G in pairs(kind, True, out):
            same("dag_longest_path_length", graph, G)
            found, wanted = outcomes("dag_longest_path", graph, G)
            if wanted is not None:
                assert len(found) == len(wanted)
                assert not found or nx.is_path(graph, found)


@pytest.mark.parametrize(("kind", "directed", "weight", "made"), covering(list(SMALL), [False, True], [None, 4], MADE))
def test_modularity(kind: str, directed: bool, weight: int | None, made: str, out: Path) -> None:
    with session(out):
        graph, G = pair(kind, directed, made, out, weight)
        nodes = list(graph)
        wholes = [set(nodes)] if nodes else []
        for communities in ([nodes[::2], nodes[1::2]], wholes, [{node} for node in nodes], [nodes[:1]], [["none"]]):
            same("is_partition", graph, G, communities)
            for name in (None, "weight"):
                for resolution in (1, 0.5):
                    if name is not None or weight is None or "v0" not in graph:
                        near("modularity", graph, G, communities, name, resolution)


@pytest.mark.parametrize("kind", SMALL)
def test_labels_that_spread(kind: str, out: Path) -> None:
    """Each node ends with a label that most of its neighbours have."""
    with session(out):
        for graph, G in pairs(kind, False, out):
            for parts in (
                list(backend_interface.asyn_lpa_communities(G, seed=random.Random(1))),
                list(backend_interface.label_propagation_communities(G)),
            ):
                assert sorted(node for part in parts for node in part) == sorted(graph)
                of = {node: number for number, part in enumerate(parts) for node in part}
                for node in graph:
                    labels = [of[neighbour] for neighbour in graph[node] if neighbour != node]
                    counts = [labels.count(label) for label in set(labels)]
                    assert not labels or labels.count(of[node]) == max(counts)


@pytest.mark.parametrize("kind", SMALL)
def test_independent_sets_around_nodes(kind: str, out: Path) -> None:
    with session(out):
        for graph, G in pairs(kind, False, out):
            for nodes in (list(graph)[:1], list(graph)[::3], list(graph)[-2:], ["none"]):
                if not nodes:
                    continue
                found, wanted = outcomes("maximal_independent_set", graph, G, nodes, seed=1)
                if wanted is None:
                    continue
                assert set(nodes) <= set(found)
                assert len(set(found)) == len(found)
                taken = set(found)
                for node in graph:
                    has = any(neighbour in taken for neighbour in graph[node] if neighbour != node)
                    assert (node in taken) != has


def test_sampled_sources_agree_with_all_on_the_average(out: Path) -> None:
    with session(out):
        graph, G = pairs("dense", False, out)[0]
        ours = backend_interface.betweenness_centrality
        drawn = [list(ours(G, 10, seed=random.Random(seed)).values()) for seed in range(40)]
        assert np.abs(np.mean(drawn, axis=0) - list(nx.betweenness_centrality(graph).values())).max() < 0.02
