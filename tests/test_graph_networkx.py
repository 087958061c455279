"""What networkx dispatches to graphs on disk: the same answers in the same shapes, and refusals of what means more."""

from __future__ import annotations

import inspect
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from support.dispatched import MADE, both, failing
from support.graphs import KINDS, directed_of, weighted, write
from support.running import files_below, session
from support.sizes import covering

import outcore as oc
from outcore.graph import Graph
from outcore.graph._networkx import backend_interface, can_run, convert_from_nx, convert_to_nx, get_info

ROOT = Path(__file__).parent.parent
EITHER = [
    "betweenness_centrality",
    "degree_centrality",
    "is_directed_acyclic_graph",
    "number_of_selfloops",
    "pagerank",
]
UNDIRECTED = [
    "clustering",
    "connected_components",
    "is_connected",
    "number_connected_components",
    "transitivity",
    "triangles",
]
DIRECTED = [
    "in_degree_centrality",
    "out_degree_centrality",
    "weakly_connected_components",
    "number_weakly_connected_components",
    "is_weakly_connected",
    "strongly_connected_components",
    "number_strongly_connected_components",
    "is_strongly_connected",
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("directed", [False, True])
def test_functions_give_what_networkx_gives(kind: str, directed: bool, out: Path) -> None:
    graph = directed_of(KINDS[kind]()) if directed else KINDS[kind]()
    named = nx.relabel_nodes(graph, {vertex: f"v{vertex}" for vertex in graph})
    with session(out):
        stored, converted = write(graph, out), convert_from_nx(named)
        for each, G, node in ((graph, stored, lambda v: v), (named, converted, lambda v: f"v{v}")):
            assert G.is_directed() == each.is_directed()
            for name in [*EITHER, *(DIRECTED if directed else UNDIRECTED)]:
                if name != "betweenness_centrality" or len(graph) < 90:
                    both(name, each, G)
            if not directed:
                both("average_clustering", each, G)
                both("average_clustering", each, G, count_zeros=False)
            both("core_number", each, G)
            for vertex in (0, len(graph) // 2, len(graph)):
                for name in ("single_source_shortest_path_length", "descendants", "ancestors"):
                    check_source(name, each, G, node(vertex))


def check_source(name: str, graph: Any, G: Graph, source: Any) -> None:
    ours = getattr(backend_interface, name)
    if source not in graph:
        with pytest.raises(nx.NetworkXException) as told:
            getattr(nx, name)(graph, source)
        with pytest.raises(told.type):
            ours(G, source)
        return
    wanted = getattr(nx, name)(graph, source)
    found = ours(G, source)
    assert found == wanted
    if isinstance(found, dict):
        assert list(found.values()) == sorted(found.values())
        for cutoff in (-1, 0, 2):
            assert ours(G, source, cutoff=cutoff) == getattr(nx, name)(graph, source, cutoff=cutoff)


@pytest.mark.parametrize("directed", [False, True])
def test_ranks_by_weights_and_what_is_given(directed: bool, out: Path) -> None:
    graph = KINDS["isolated"]()
    graph = weighted(directed_of(graph) if directed else graph)
    some = list(graph)[::3]
    given = {"personalization": dict.fromkeys(some, 2), "nstart": dict.fromkeys(some[:2], 1), "dangling": {some[1]: 3}}
    with session(out):
        for G in (write(graph, out, "float64"), convert_from_nx(graph, edge_attrs={"weight": 1})):
            for kwargs in ({}, {"weight": None}, given, given | {"weight": None, "alpha": 0.6}):
                wanted = nx.pagerank(graph, tol=1e-13, max_iter=1000, **kwargs)
                found = backend_interface.pagerank(G, tol=1e-13, max_iter=1000, **kwargs)
                assert list(found) == list(wanted)
                np.testing.assert_allclose(list(found.values()), list(wanted.values()), atol=1e-10, rtol=0)
            with pytest.raises(ZeroDivisionError):
                backend_interface.pagerank(G, personalization={some[0]: 0})
            for without_end in ({"tol": 0, "max_iter": 3}, {"nstart": {some[0]: 0}}, {"dangling": {some[0]: 0}}):
                with pytest.raises(nx.PowerIterationFailedConvergence):
                    backend_interface.pagerank(G, **without_end)


def test_weighted_paths(out: Path) -> None:
    graph = weighted(directed_of(KINDS["rmat"]()))
    with session(out):
        for G in (write(graph, out, "float64"), convert_from_nx(graph, edge_attrs={"weight": 1})):
            for cutoff in (None, 6, 0, -1):
                found = backend_interface.single_source_dijkstra_path_length(G, 3, cutoff)
                assert found == nx.single_source_dijkstra_path_length(graph, 3, cutoff)
                assert list(found.values()) == sorted(found.values())


def test_lengths_of_paths(out: Path) -> None:
    graph = weighted(directed_of(KINDS["isolated"]()))
    plain_graph = directed_of(KINDS["isolated"]())
    source, *others = graph
    with session(out):
        G, P = write(graph, out, "float64"), write(plain_graph, out, name="p.ocg")
        for target in (*others[:20], len(graph)):
            both("dijkstra_path_length", graph, G, source, target)
            both("shortest_path_length", graph, G, source, target, "weight")
            both("shortest_path_length", plain_graph, P, source, target)
            if target in graph:
                both("has_path", plain_graph, P, source, target)
        assert backend_interface.dijkstra_path_length(G, source, source) == 0
        for sources in ([], [source], [source, others[3]], [len(graph)]):
            for cutoff in (None, 3, 0, -1):
                both("multi_source_dijkstra_path_length", graph, G, sources, cutoff)
        both("shortest_path_length", plain_graph, P, source)
        assert backend_interface.single_source_shortest_path_length(P, source, -1) == {source: 0}


def test_estimates_and_labels(out: Path) -> None:
    graph = nx.path_graph(9)
    graph.add_edge(20, 21)
    with session(out):
        G = convert_from_nx(graph)
        for node in (0, 20):
            both("node_connected_component", graph, G, node)
        with pytest.raises(nx.NetworkXError, match="not connected"):
            backend_interface.approximate_diameter(G)
        assert backend_interface.approximate_diameter(convert_from_nx(nx.path_graph(9))) == 8
        parts = list(backend_interface.fast_label_propagation_communities(G, seed=random.Random(1)))
        assert sorted(node for part in parts for node in part) == list(graph)
        assert all(any(part <= whole for whole in nx.connected_components(graph)) for part in parts)


def test_topological_order(out: Path) -> None:
    graph = nx.DiGraph([(int(u), int(v)) for u, v in KINDS["rmat"]().edges() if u != v])
    graph.add_nodes_from(range(512))
    with session(out):
        G = write(graph, out)
        assert [sorted(part) for part in nx.topological_generations(graph)] == list(
            backend_interface.topological_generations(G)
        )
        place = {node: at for at, node in enumerate(backend_interface.topological_sort(G))}
        assert all(place[u] < place[v] for u, v in graph.edges())
        circle = write(nx.cycle_graph(3, create_using=nx.DiGraph), out, name="c.ocg")
        with pytest.raises(nx.NetworkXUnfeasible):
            list(backend_interface.topological_sort(circle))


def test_some_nodes_only(out: Path) -> None:
    graph = nx.relabel_nodes(KINDS["complete"](), str)
    graph.remove_edge("1", "2")
    with session(out):
        G = convert_from_nx(graph)
        for name in ("triangles", "clustering"):
            for nodes in ("1", ["2", "5"], [], ["none", "7"]):
                both(name, graph, G, nodes)
            both(name, graph, G, 99)
        both("average_clustering", graph, G, ["1", "2", "3"])


def test_what_is_converted_lives_as_long_as_it_is_wanted(out: Path) -> None:
    graph = weighted(nx.relabel_nodes(directed_of(KINDS["isolated"]()), str))
    with session(out):
        G = convert_from_nx(graph, edge_attrs={"weight": 1})
        assert len(files_below(out)) == 1
        back = convert_to_nx(G)
        assert nx.utils.graphs_equal(back, graph)
        assert list(back) == list(graph)
        assert convert_to_nx(5) == 5
        del G
        assert files_below(out) == []
        for wrong in (
            lambda: convert_from_nx(nx.MultiGraph()),
            lambda: convert_from_nx(graph, edge_attrs={"weight": 7}),
            lambda: convert_from_nx(nx.Graph([(0, 1, {"a": 1, "b": 2})]), edge_attrs={"a": 1, "b": 1}),
        ):
            with pytest.raises(NotImplementedError, match="outcore: "):
                wrong()


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("shortest_path_length", {"source": 0, "weight": "length"}, 'called "weight"'),
    ("pagerank", {"weight": "length"}, 'called "weight"'),
    ("betweenness_centrality", {"weight": "weight"}, "weight"),
    ("clustering", {"weight": "weight"}, "weight"),
    ("louvain_communities", {"max_level": 1}, "max_level"),
    ("modularity", {"communities": [range(5)], "weight": "length"}, 'called "weight"'),
    ("shortest_path", {"source": 0, "weight": "weight", "method": "bellman-ford"}, "method"),
    ("all_shortest_paths", {"source": 0, "target": 1, "weight": len}, "name of an attribute"),
    ("dijkstra_path", {"source": 0, "target": 1, "weight": "length"}, 'called "weight"'),
    ("closeness_centrality", {"distance": "length"}, 'called "weight"'),
    ("eccentricity", {"sp": {}}, "sp="),
    ("diameter", {"e": {0: 1}}, "e="),
    ("bfs_edges", {"source": 0, "sort_neighbors": sorted}, "sort_neighbors"),
    ("kosaraju_strongly_connected_components", {"source": 0}, "source=0"),
    ("dag_longest_path", {}, "weights do not count"),
    ("dag_longest_path", {"weight": None, "topo_order": [0]}, "topo_order"),
    ("dag_longest_path_length", {"weight": None, "default_weight": 2}, "default_weight"),
    ("asyn_lpa_communities", {"weight": "weight"}, "weight="),
    ("single_source_dijkstra_path_length", {"source": 0, "weight": len}, "name of an attribute"),
    ("single_source_dijkstra_path_length", {"source": 0, "weight": "length"}, 'called "weight"'),
    ("single_source_shortest_path_length", {"source": 0, "target": 0}, "unexpected"),
    ("triangles", {"source": 0}, "unexpected"),
]


@pytest.mark.parametrize("refused", range(len(REFUSED)))
def test_what_means_more_than_is_there_is_not_run(refused: int, out: Path) -> None:
    name, kwargs, text = REFUSED[refused]
    with session(out):
        G = write(weighted(nx.path_graph(5)), out, "float64")
        said = can_run(name, (G,), kwargs)
        assert isinstance(said, str)
        assert text in said


def test_what_can_be_run(out: Path) -> None:
    graph = nx.path_graph(5)
    with session(out):
        for G in (graph, write(graph, out)):
            assert can_run("pagerank", (G, 0.9), {"tol": 1e-3}) is True
            assert can_run("betweenness_centrality", (), {"G": G, "normalized": False}) is True
        assert "undirected" in str(can_run("clustering", (nx.DiGraph(),), {}))
        assert "again" in str(can_run("pagerank", (nx.MultiGraph(),), {}))
        assert can_run("pagerank", (weighted(nx.path_graph(5)),), {}) is True
    assert set(get_info()["functions"]) == set(vars(backend_interface)) - {
        "can_run",
        "convert_from_nx",
        "convert_to_nx",
        "should_run",  # which networkx adds when it first calls a backend
    }


# Arguments that are nodes: those that are there, and with some that are none.
A_NODE: tuple[Any, ...] = (0, 99, "none", -1)
SOME_NODES: tuple[Any, ...] = ([0, 1], [0, 99], [99], 99)
BY_NODE: tuple[Any, ...] = ({0: 1}, {99: 1}, {99: 1, 0: 1})
NODES: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("source", "target", "n", "u"), A_NODE),
    **dict.fromkeys(("sources", "nodes", "nbunch"), SOME_NODES),
    **dict.fromkeys(("personalization", "nstart", "dangling"), BY_NODE),
    "v": (*A_NODE, *SOME_NODES[:3]),
    "communities": ([{0, 1, 2}, {3, 4}], [{0, 1, 2}, {3, 4, 99}], [{0, 1, 2}, {3, 99}], [{99}]),
}


def arguments_of(name: str) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(getattr(backend_interface, name)).parameters)


OF_NODES = sorted(name for name in get_info()["functions"] if NODES.keys() & arguments_of(name).keys())


def calls_of(name: str) -> Iterator[dict[str, Any]]:
    """Every combination of nodes that are there, are none, or are not given."""
    parameters = arguments_of(name)
    nodes = [each for each in parameters if each in NODES]
    optional = [parameters[each].default is not inspect.Parameter.empty for each in nodes]
    values = [
        ((),) * is_optional + tuple((v,) for v in NODES[each])
        for each, is_optional in zip(nodes, optional, strict=True)
    ]
    for chosen in product(*values):
        given = {node: value[0] for node, value in zip(nodes, chosen, strict=True) if value}
        given |= {"distance": 1} if name == "descendants_at_distance" else {}
        yield given
        if "weight" in parameters:
            yield given | {"weight": None if parameters["weight"].default else "weight"}


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
@pytest.mark.parametrize(("name", "directed", "made"), covering(OF_NODES, [False, True], MADE))
def test_what_is_no_node_raises_what_networkx_raises(name: str, directed: bool, made: str, out: Path) -> None:
    ours, theirs = getattr(backend_interface, name), getattr(nx, name, getattr(nx.community, name, None))
    graph = weighted(directed_of(nx.path_graph(5)) if directed else nx.path_graph(5))
    with session(out):
        G = write(graph, out, "float64") if made == "stored" else convert_from_nx(graph, edge_attrs={"weight": 1})
        for given in calls_of(name):
            seeds: list[dict[str, Any]] = [{}, {}]
            if "seed" in arguments_of(name):
                seeds = [{"seed": random.Random(1)}, {"seed": 1}]
            wanted = failing(lambda given=given, seeds=seeds: theirs(graph, **given, **seeds[1]))
            if isinstance(wanted, nx.NetworkXNotImplemented) or can_run(name, (G,), given | seeds[0]) is not True:
                continue  # networkx does not ask for it then
            found = failing(lambda given=given, seeds=seeds: ours(G, **given, **seeds[0]))
            raised = [type(each) if isinstance(each, Exception) else None for each in (found, wanted)]
            assert raised[0] is raised[1], (name, given, found, wanted)


# -- as networkx does it ----------------------------------------------------------------------------------------------

DISPATCHED = """
import sys
import networkx as nx, outcore as oc
from outcore.graph._networkx import backend_interface

assert "outcore" in nx.utils.backends.backends
OURS = ("can_run", "should_run", "convert_from_nx", "convert_to_nx")
for name in vars(backend_interface):
    assert name in nx.utils.backends._registered_algorithms or name in OURS, name
graph = nx.relabel_nodes(nx.karate_club_graph(), lambda node: f"member {node}")
with oc.Session(memory_limit=8 << 30, threads=2, progress=False, scratch=[sys.argv[1]]):
    G = oc.graph.from_networkx(graph, sys.argv[1] + "/g.ocg")
    # A stored graph goes to its own functions.
    ranks = nx.pagerank(G)
    wanted = nx.pagerank(graph, weight=None)
    assert all(abs(ranks[number] - wanted[node]) < 1e-6 for number, node in enumerate(graph))
    assert nx.is_connected(G) and nx.number_connected_components(G) == 1
    assert nx.triangles(G, 0) == nx.triangles(graph, "member 0")
    assert nx.average_clustering(G) == nx.average_clustering(graph)
    assert [len(part) for part in nx.connected_components(G)] == [34]
    assert set(nx.betweenness_centrality(G)) == set(range(34))
    chosen = set(nx.maximal_independent_set(G, seed=1))
    assert all((v in chosen) != any(u in chosen for u in G.neighbors(v)) for v in range(34))
    assert nx.betweenness_centrality(G, k=5, seed=3)[33] == nx.betweenness_centrality(graph, k=5, seed=3)["member 33"]
    assert dict(nx.shortest_path_length(G))[0] == nx.shortest_path_length(G, 0) and len(dict(nx.shortest_path(G))) == 34
    path = nx.shortest_path(G, 14, 16)
    assert len(path) == len(nx.shortest_path(graph, "member 14", "member 16")) == 5 + 1 and nx.is_path(G, path)
    assert sorted(nx.bfs_tree(G, 0)) == list(G) and len(nx.community.label_propagation_communities(G)) < 34
    parts = nx.community.louvain_communities(G, seed=1)
    named = [{f"member {number}" for number in part} for part in parts]
    assert abs(nx.community.modularity(G, parts) - nx.community.modularity(graph, named, weight=None)) < 1e-9
    # What networkx does not dispatch reads the graph itself.
    assert nx.density(G) == nx.density(graph) and nx.degree_histogram(G) == nx.degree_histogram(graph)
    for call in (
        lambda: nx.betweenness_centrality(G, weight="weight"),
        lambda: nx.eigenvector_centrality(G),
        lambda: nx.bfs_tree(graph, "member 0", backend="outcore"),
    ):
        try:
            call()
        except NotImplementedError:
            pass
        else:
            raise AssertionError("networkx has run it")
    try:
        nx.strongly_connected_components(G)
        raise AssertionError("of directed graphs only")
    except nx.NetworkXNotImplemented:
        pass
    # Where the user allows it what is missing is done in memory.
    with nx.config(fallback_to_nx=True):
        assert len(nx.eigenvector_centrality(G)) == 34
        assert len(nx.betweenness_centrality(G, weight="weight")) == 34
        assert len(nx.k_core(G, 4)) == 10
    # Graphs of networkx's are stored in scratch.
    assert nx.single_source_shortest_path_length(graph, "member 3", backend="outcore") == dict(
        nx.single_source_shortest_path_length(graph, "member 3")
    )
    for source in ("member 3", "no member"):
        try:
            found = nx.shortest_path(graph, source, "member 16", weight="weight", backend="outcore")
        except nx.NodeNotFound:
            assert source == "no member"
        else:
            assert nx.path_weight(graph, found, "weight") == nx.dijkstra_path_length(graph, source, "member 16")
    far = nx.single_source_dijkstra_path_length(graph, "member 3", backend="outcore")
    assert far == nx.single_source_dijkstra_path_length(graph, "member 3")
    wanted = nx.pagerank(graph)
    assert all(abs(rank - wanted[node]) < 1e-9 for node, rank in nx.pagerank(graph, backend="outcore").items())
    with nx.config.backend_priority(algos=["outcore"]):
        assert nx.core_number(graph) == nx.core_number(graph, backend="networkx")
    # What networkx keeps of a conversion has weights though a call wants none.
    two = nx.disjoint_union(nx.complete_graph(6), nx.complete_graph(6))
    nx.set_edge_attributes(two, 0.001, "weight")
    two.add_weighted_edges_from((v, v + 6, 50) for v in range(4))
    halves = [set(range(6)), set(range(6, 12))]
    assert nx.community.louvain_communities(two, seed=1, backend="outcore") != halves
    assert nx.community.louvain_communities(two, weight=None, seed=1, backend="outcore") == halves
    assert nx.community.modularity(two, halves, weight=None, backend="outcore") == nx.community.modularity(
        two, halves, weight=None
    )
print("right")
"""


def test_networkx_finds_the_backend(tmp_path: Path, scratch: Path) -> None:
    """By the entry points, which an installed package has: here they lie in a folder of their own."""
    points = "".join(
        f"[{group}]\noutcore = outcore.graph._networkx:{name}\n"
        for group, name in (("networkx.backends", "backend_interface"), ("networkx.backend_info", "get_info"))
    )
    text = (ROOT / "pyproject.toml").read_text()
    assert all(line in text for line in ('outcore = "outcore.graph._networkx:backend_interface"', "_networkx:get_info"))
    paths = [str(Path(oc.__file__).parent.parent)]
    from importlib.metadata import entry_points

    if not [point for point in entry_points(group="networkx.backends") if point.name == "outcore"]:
        info = tmp_path / "points" / "points-0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: points\nVersion: 0\n")
        (info / "entry_points.txt").write_text(points)
        paths.append(str(info.parent))
    ran = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", "-c", DISPATCHED, str(scratch)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stdout == "right\n", ran.stderr


def test_networkx_is_not_imported(tmp_path: Path) -> None:
    code = "import outcore, outcore.graph, sys; print('networkx' in sys.modules)"
    given = os.environ | {"PYTHONPATH": str(Path(oc.__file__).parent.parent)}
    assert subprocess.check_output([sys.executable, "-c", code], env=given, text=True) == "False\n"


class _Reversed(nx.DiGraph):
    """A graph whose edges are not those that networkx keeps of it."""

    def __getitem__(self, node: Any) -> Any:
        return self._pred[node]


@pytest.mark.parametrize("kind", [_Reversed, nx.PlanarEmbedding, nx.approximation.kcomponents._AntiGraph])
def test_a_class_with_edges_of_its_own_is_left_to_networkx(kind: Any) -> None:
    graph = kind()
    graph.add_nodes_from(range(3))
    assert "of its own" in str(can_run("pagerank", (graph,), {}))
    with pytest.raises(NotImplementedError, match="of its own"):
        convert_from_nx(graph)


def test_k_components_and_views_of_nodes_are_as_without_the_backend(out: Path) -> None:
    graph = nx.karate_club_graph()
    wanted = nx.approximation.k_components(graph, backend="networkx")
    with session(out), nx.config.backend_priority(algos=["outcore"]):
        assert nx.approximation.k_components(graph) == wanted
        assert nx.community.is_partition(graph.nodes, [set(graph)])
        stored = oc.graph.from_networkx(graph, out / "club.ocg")
        assert nx.community.is_partition(stored.nodes, [set(graph)])


def test_arguments_that_are_refused_go_to_networkx_where_it_may_fall_back(out: Path) -> None:
    graph = nx.DiGraph([(0, 1, {"weight": -1}), (1, 2, {"weight": 3})])
    wanted = nx.pagerank(graph, backend="networkx")
    with session(out):
        stored = oc.graph.from_networkx(graph, out / "g.ocg", weight="weight")
        with nx.config(fallback_to_nx=True):
            assert nx.pagerank(graph, backend="outcore") == wanted
            assert nx.pagerank(stored) == wanted
        with pytest.raises(NotImplementedError):
            nx.pagerank(graph, backend="outcore")
        with pytest.raises(oc.errors.ArgumentError):
            backend_interface.pagerank(stored)


def test_no_iterations_and_no_sources_end_as_in_networkx(out: Path) -> None:
    with session(out):
        for graph in (nx.empty_graph(0), nx.path_graph(5)):
            both("pagerank", graph, convert_from_nx(graph), max_iter=0)
        for vertices, endpoints in product((1, 2, 5), (False, True)):
            graph = nx.path_graph(vertices)
            both("betweenness_centrality", graph, convert_from_nx(graph), 0, endpoints=endpoints, seed=random.Random(1))


@pytest.mark.parametrize(
    ("name", "args"),
    [
        *product(
            ["ancestors", "descendants", "node_connected_component", "single_source_dijkstra_path_length"], [([0],)]
        ),
        *product(["dijkstra_path", "dijkstra_path_length", "has_path", "shortest_path"], [(0, [0]), ([0], 0)]),
        ("bfs_layers", ([[0]],)),
        ("harmonic_centrality", ([[0]],)),
        ("triangles", ([[0]],)),
    ],
)
def test_nodes_without_a_hash_raise_networkx_types(name: str, args: tuple[Any, ...], out: Path) -> None:
    graph = nx.path_graph(3)
    with session(out):
        G = convert_from_nx(graph)
        found = failing(lambda: getattr(backend_interface, name)(G, *args))
        assert type(found) is type(failing(lambda: getattr(nx, name)(graph, *args)))


def test_small_graphs_of_networkx_stay_there_unless_asked(out: Path) -> None:
    small, medium, large = nx.path_graph(10), nx.path_graph(3_001), nx.path_graph(30_001)
    assert "60000 nodes and edges" in str(backend_interface.should_run("pagerank", (medium,), {}))
    assert "6000 nodes and edges" in str(backend_interface.should_run("betweenness_centrality", (small,), {}))
    assert backend_interface.should_run("betweenness_centrality", (medium,), {"k": 10}) is True
    assert "one search" in str(backend_interface.should_run("connected_components", (large,), {}))
    assert "stored" in str(backend_interface.should_run("pagerank", (small,), {}))
    assert backend_interface.should_run("pagerank", (), {"G": large}) is True
    with session(out):
        assert backend_interface.should_run("pagerank", (write(small, out),), {}) is True


def test_nodes_give_their_attributes(out: Path) -> None:
    with session(out):
        nodes = write(nx.path_graph(3), out).nodes
        assert nodes[0] == {}
        assert list(nodes.data("name", 5)) == [(0, 5), (1, 5), (2, 5)]
        with pytest.raises(KeyError):
            nodes[3]
