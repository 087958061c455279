"""What users of networkx read of a stored graph, its plain functions among them: as of a graph of networkx's."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from support.dispatched import SMALL, pairs
from support.graphs import KINDS, graphs, write
from support.running import session
from support.sizes import covering, sized

import outcore as oc
from outcore.errors import ArgumentError, IndexingError
from outcore.graph._views import ABSENT


def check_reading(graph: Any, G: Any) -> None:
    assert len(G) == len(graph) == G.order() == G.number_of_nodes()
    assert list(G) == list(graph) == list(G.nodes) == list(G.nodes())
    assert G.nodes == set(graph.nodes)
    assert list(G.nodes(data=True)) == list(graph.nodes(data=True))
    assert G.size() == graph.size() == G.number_of_edges == G.number_of_edges() == len(G.edges)
    assert {frozenset(edge) for edge in G.edges} == {frozenset(edge) for edge in graph.edges}
    assert len(list(G.edges)) == len(G.edges()) == graph.number_of_edges()
    for name in ("degree", "in_degree", "out_degree")[: 1 + 2 * graph.is_directed()]:
        ours, theirs = getattr(G, name), getattr(graph, name)
        assert list(ours) == list(theirs)
        assert [ours[v] for v in graph] == [ours(v) for v in graph] == [theirs[v] for v in graph]
        assert list(ours([0, 2, 1, 10**6])) == list(theirs([0, 2, 1, 10**6]))
    for v in graph:
        assert G[v] == G.adj[v] == dict(graph[v])
        assert set(G.neighbors(v)) == set(graph.neighbors(v))
        if graph.is_directed():
            assert G.pred[v] == dict(graph.pred[v])
            assert list(G.predecessors(v)) == sorted(graph.predecessors(v))
            assert list(G.successors(v)) == sorted(graph.successors(v))
    assert dict(G.adjacency()) == {v: dict(neighbours) for v, neighbours in graph.adjacency()}


@pytest.mark.parametrize(("kind", "directed", "weight"), covering(list(SMALL), [False, True], [None, 5]))
def test_it_reads_as_a_graph_of_networkx(kind: str, directed: bool, weight: int | None, out: Path) -> None:
    with session(out):
        graph, G = pairs(kind, directed, out, weight)[0]
        check_reading(graph, G)
        for name in ("density", "number_of_nodes", "number_of_edges", "degree_histogram"):
            assert getattr(nx, name)(G) == getattr(nx, name)(graph)
        for name in ("selfloop_edges", "nodes_with_selfloops", "non_edges"):
            assert list(getattr(nx, name)(G)) == list(getattr(nx, name)(graph))
        if weight is not None:
            assert set(G.edges(data="weight")) == set(graph.edges(data="weight"))
            ours = [(u, v, data["weight"]) for u, v, data in G.edges(data=True)]
            assert ours == list(G.edges(data="weight", default=1))
        for some in ([], [0, 3, 1, 99], 0):
            if some != 0 or 0 in graph:
                wanted = list(graph.edges(some))
                assert sorted(map(sorted, G.edges(some))) == sorted(map(sorted, wanted))
        # Of all of it in memory one is made where that is asked for.
        assert nx.utils.graphs_equal(type(graph)(G), graph)


@settings(max_examples=sized(6, 15), deadline=None)
@given(graph=graphs())
def test_drawn_graphs_read_so(graph: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    for _, _, data in graph.edges(data=True):
        data.clear()
    out = tmp_path_factory.mktemp("drawn")
    with session(out):
        check_reading(graph, write(graph, out))


def test_what_is_in_it(out: Path) -> None:
    with session(out):
        G = write(nx.DiGraph([(0, 1), (1, 2), (2, 2)]), out)
        for vertex, is_there in (
            (0, True),
            (2, True),
            (np.int64(1), True),
            (3, False),
            (-1, False),
            ("a", False),
            ([], False),
        ):
            assert (vertex in G, vertex in G.nodes, vertex in G.adj, G.has_node(vertex)) == (is_there,) * 4
        for edge, is_there in (((0, 1), True), ((1, 0), False), ((2, 2), True), ((0, 9), False), (("a", 0), False)):
            assert (G.has_edge(*edge), edge in G.edges) == (is_there, is_there)
        assert (G.has_edge(0, 1), bool(G), len(G.adj), len(G.degree)) == (True, True, 3, 3)
        assert {1, 9} - G.nodes == {9}
        for read in (lambda: G[3], lambda: G.degree[-1], lambda: G.adj["a"], lambda: next(G.successors(7))):
            with pytest.raises(IndexingError):
                read()
        assert not write(nx.empty_graph(0), out, name="empty.ocg")


def test_it_is_still_what_it_was(out: Path) -> None:
    with session(out):
        G = write(KINDS["path"](), out)
        assert isinstance(G.number_of_edges, int)
        assert pickle.loads(pickle.dumps(G.number_of_edges)) == 69
        for same in (copy.copy(G), copy.deepcopy(G), pickle.loads(pickle.dumps(G))):
            assert list(same.edges) == list(G.edges)
        with pytest.raises(TypeError, match="to_sparse"):
            np.asarray(G)
        with pytest.raises(TypeError, match="to_sparse"):
            oc.asarray(G)
        with pytest.raises(ArgumentError, match="one of networkx's"):
            oc.graph.from_networkx(G, out / "again.ocg")


def test_what_is_absent_says_what_is_nearest(out: Path) -> None:
    with session(out):
        G = write(nx.path_graph(3), out)
        for name, nearest in ABSENT.items():
            assert not hasattr(G, name)
            with pytest.raises(AttributeError, match=name) as raised:
                getattr(G, name)
            assert str(raised.value).endswith(nearest)
        # Of what a graph of networkx's has, everything is there, or said something of.
        for name in (name for name in dir(nx.DiGraph) if not name.startswith("_")):
            assert hasattr(G, name) or name in ABSENT or name.endswith(("factory", "class")), name
        with pytest.raises(AttributeError, match="no attribute 'vertex_count'"):
            G.vertex_count  # noqa: B018
        for wrong in (lambda: G.size("weight"), lambda: G.degree(weight="weight")):
            with pytest.raises(ArgumentError, match="to_sparse"):
                wrong()
