"""What graphs on disk refuse: vertices that are none, edges of the wrong kind, weights without paths, names taken."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from support.graphs import write
from support.running import files_below, session, tree_hash

import outcore as oc
from outcore.errors import (
    ArgumentError,
    DTypeError,
    IndexingError,
    MemoryLimitError,
    OutcoreError,
    ShapeError,
    TargetExistsError,
)
from outcore.graph import Graph

DIRECTION = "direction must be 'out', 'in' or 'both', not"
WRONG: dict[str, tuple[Callable[[Graph], Any], type[OutcoreError], str]] = {
    "source": (lambda G: oc.graph.bfs(G, 5), IndexingError, "5 is no vertex; there are 5"),
    "below": (lambda G: oc.graph.shortest_paths(G, [0, -1]), IndexingError, "-1 is no vertex"),
    "float": (lambda G: oc.graph.bfs(G, 0.0), IndexingError, "not float64"),
    "bool": (lambda G: oc.graph.bfs(G, True), IndexingError, "not bool"),
    "table": (lambda G: oc.graph.bfs(G, [[0, 1]]), IndexingError, r"shape \(1, 2\)"),
    "rows": (lambda G: oc.graph.bfs(G, [[0], [1, 2]]), IndexingError, "1-D integers, not list"),
    "name": (lambda G: oc.graph.bfs(G, "a"), IndexingError, "1-D integers, not <U1"),
    "neighbors": (lambda G: G.neighbors(5), IndexingError, "5 is no vertex"),
    "list": (lambda G: G.lists([2**40]), IndexingError, "is no vertex"),
    "lists of floats": (lambda G: G.lists([1.5]), IndexingError, "not float64"),
    "lists both ways": (lambda G: G.lists([1], "both"), ArgumentError, "direction must be 'out' or 'in', not 'both'"),
    "cutoff": (lambda G: oc.graph.bfs(G, 0, cutoff=-1), ArgumentError, "cutoff must be at least 0, not -1"),
    "infinite cutoff": (
        lambda G: oc.graph.bfs(G, 0, cutoff=-np.inf),
        ArgumentError,
        "cutoff must be at least 0, not -inf",
    ),
    "way": (lambda G: oc.graph.bfs(G, 0, direction="up"), ArgumentError, f"bfs: {DIRECTION} 'up'"),
    "no way": (lambda G: oc.graph.bfs(G, 0, direction=3), ArgumentError, f"bfs: {DIRECTION} 3"),
    "ways": (lambda G: oc.graph.bfs(G, 0, direction=np.array(["in", "out"])), ArgumentError, DIRECTION),  # type: ignore[arg-type]
    "no way of paths": (
        lambda G: oc.graph.shortest_paths(G, 0, direction=None),
        ArgumentError,
        f"shortest_paths: {DIRECTION} None",
    ),
    "way of neighbors": (lambda G: G.neighbors(0, "up"), ArgumentError, f"{DIRECTION} 'up'"),
    "way of degrees": (lambda G: G.degrees("up"), ArgumentError, f"{DIRECTION} 'up'"),
    "way of a histogram": (lambda G: oc.graph.degree_histogram(G, "up"), ArgumentError, f"{DIRECTION} 'up'"),
    "step": (lambda G: oc.graph.shortest_paths(G, 0, step=0), ArgumentError, "step must be above 0, not 0"),
    "no step": (lambda G: oc.graph.shortest_paths(G, 0, step=float("nan")), ArgumentError, "step=nan"),
    "damping": (lambda G: oc.graph.pagerank(G, 1.5), ArgumentError, "damping must be from 0 to 1.*1.5, 100 and"),
    "no damping": (lambda G: oc.graph.pagerank(G, float("nan")), ArgumentError, "damping=nan"),
    "tolerance": (lambda G: oc.graph.pagerank(G, tol=-1), ArgumentError, "tol at least 0; they are 0.85, 100 and -1"),
    "ranks": (lambda G: oc.graph.pagerank(G, iterations=0), ArgumentError, "iterations at least 1.* 0.85, 0 and"),
    "many ranks": (lambda G: oc.graph.pagerank(G, iterations=2**32), ArgumentError, "iterations=4294967296"),
    "short ranks": (
        lambda G: oc.graph.pagerank(G, start=[1.0]),
        ShapeError,
        r"start must have shape \(5,\), not \(1,\)",
    ),
    "no ranks": (
        lambda G: oc.graph.pagerank(G, dangling=[0.0] * 5),
        ArgumentError,
        "dangling must be at least 0, its sum above 0; .*sum 0.0",
    ),
    "below 0": (
        lambda G: oc.graph.pagerank(G, personalization=[2, -1, 0, 0, 0]),
        ArgumentError,
        "the least is -1.0",
    ),
    "no threshold": (
        lambda G: oc.graph.pagerank(G, threshold=0),
        ArgumentError,
        "threshold must be above 0 and damping below 1, not 0",
    ),
    "all along edges": (
        lambda G: oc.graph.pagerank(G, 1, threshold=0.1),
        ArgumentError,
        "damping below 1, not 0.1 and 1",
    ),
    "from ranks": (
        lambda G: oc.graph.pagerank(G, threshold=0.1, start=[1] * 5),
        ArgumentError,
        "start cannot be given with a threshold",
    ),
    "sweeps": (lambda G: oc.graph.diameter(G, sweeps=0), ArgumentError, "sweeps must be at least 1, not 0"),
    "from where": (lambda G: oc.graph.diameter(G, source=5), IndexingError, "5 is no vertex"),
    "from nowhere": (lambda G: oc.graph.diameter(G, source=[]), IndexingError, "source must be 1 vertex, not 0"),  # type: ignore[arg-type]
    "from two": (lambda G: oc.graph.diameter(G, source=[0, 1]), IndexingError, "source must be 1 vertex, not 2"),  # type: ignore[arg-type]
    "half a sweep": (lambda G: oc.graph.diameter(G, sweeps=1.5), ArgumentError, r"sweeps=1\.5; a whole number"),  # type: ignore[arg-type]
    "drawn": (lambda G: oc.graph.betweenness_centrality(G, 2, seed=-1), ArgumentError, "seed=-1; a whole number"),
    "between": (lambda G: oc.graph.betweenness_centrality(G, [0, 5]), IndexingError, "5 is no vertex"),
}
#: Numbers that functions take, by what is right; None where that is one of the things that are right.
NUMBERS: dict[str, tuple[Callable[[Graph, Any], Any], str]] = {
    "cutoff": (lambda G, value: oc.graph.bfs(G, 0, cutoff=value), "a number from 0 on, or None, is right"),
    "step": (lambda G, value: oc.graph.shortest_paths(G, 0, step=value), "a positive number, or None, is right"),
    "damping": (lambda G, value: oc.graph.pagerank(G, value), "a number is right"),
    "tol": (lambda G, value: oc.graph.pagerank(G, tol=value), "a number is right"),
    "threshold": (lambda G, value: oc.graph.pagerank(G, threshold=value), "a positive number, or None, is right"),
    "resolution": (lambda G, value: oc.graph.louvain_communities(G, resolution=value), "a number from 0 on is right"),
    "threshold of louvain": (
        lambda G, value: oc.graph.louvain_communities(G, threshold=value),
        "a number from 0 on is right",
    ),
}
#: Whole ones.
COUNTS: dict[str, Callable[[Graph, Any], Any]] = {
    "sweeps": lambda G, value: oc.graph.diameter(G, sweeps=value),
    "iterations": lambda G, value: oc.graph.pagerank(G, iterations=value),
    "iterations of labels": lambda G, value: oc.graph.label_propagation(G, iterations=value),
    "seed of labels": lambda G, value: oc.graph.label_propagation(G, seed=value),
    "seed of louvain": lambda G, value: oc.graph.louvain_communities(G, seed=value),
    "seed of sets": lambda G, value: oc.graph.maximal_independent_set(G, seed=value),
    "seed of sources": lambda G, value: oc.graph.betweenness_centrality(G, 2, seed=value),
}
NO_NUMBERS: list[Any] = ["3", float("nan"), None, True, 1j, [1.0]]

ONE_WAY: dict[str, tuple[Callable[[Graph], Any], str]] = {
    "strong": (oc.graph.strongly_connected_components, "the graph must be directed"),
    "order": (oc.graph.topological_sort, "the graph must be directed"),
}
BOTH_WAYS: dict[str, tuple[Callable[[Graph], Any], str]] = {
    "triangles": (oc.graph.triangles, "the graph must be undirected"),
    "clustering": (oc.graph.clustering, "the graph must be undirected"),
    "average": (oc.graph.average_clustering, "the graph must be undirected"),
    "scan": (oc.graph.scan_statistics, "the graph must be undirected"),
    "labels": (oc.graph.label_propagation, "the graph must be undirected"),
    "set": (oc.graph.maximal_independent_set, "the graph must be undirected"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_refused(wrong: str, out: Path) -> None:
    call, error, text = WRONG[wrong]
    with session(out):
        for graph in (nx.path_graph(5), nx.path_graph(5, create_using=nx.DiGraph)):
            with pytest.raises(error, match=text):
                call(write(graph, out))


@pytest.mark.parametrize("name", NUMBERS)
def test_what_is_no_number_is_refused_with_what_is_right(name: str, out: Path) -> None:
    call, right = NUMBERS[name]
    with session(out):
        G = write(nx.path_graph(5), out)
        for value in NO_NUMBERS:
            if value is None and "or None" in right:
                call(G, value)
                continue
            with pytest.raises(ArgumentError) as told:
                call(G, value)
            assert str(told.value).endswith(f" {name.split()[0]}={value!r}; {right}")
        for value in (1, np.float32(0.5), np.int8(1), Fraction(1, 2)):
            call(G, value)


@pytest.mark.parametrize("name", COUNTS)
def test_what_is_no_whole_number_is_refused_with_what_is_right(name: str, out: Path) -> None:
    with session(out):
        G = write(nx.path_graph(5), out)
        for value in (*NO_NUMBERS, 1.0, 2**64, -1):
            with pytest.raises(ArgumentError, match=f" {name.split()[0]}=.*; a whole number from 0 to "):
                COUNTS[name](G, value)
        COUNTS[name](G, np.int8(1))


@pytest.mark.parametrize("given", [["1"] * 5, "ranks", [1j] * 5, [[1.0], [1.0, 2.0]], {0: 1.0}])
def test_ranks_that_are_no_numbers_are_refused(given: Any, out: Path) -> None:
    with session(out):
        G = write(nx.path_graph(5), out)
        for name in ("personalization", "dangling", "start"):
            with pytest.raises(ArgumentError, match=f"pagerank: {name} must be an array of a number for each vertex"):
                oc.graph.pagerank(G, **{name: given})


def test_what_edges_of_one_way_or_both_have_not(out: Path) -> None:
    with session(out):
        one = write(nx.path_graph(5, create_using=nx.DiGraph), out)
        both = write(nx.path_graph(5), out, name="b.ogc")
        for wrong, G in ((ONE_WAY, both), (BOTH_WAYS, one)):
            for name, (call, text) in wrong.items():
                with pytest.raises(ArgumentError, match=f"{text}.*directed=False" if wrong is BOTH_WAYS else text):
                    call(G)
                assert name
        for call in (
            lambda: oc.graph.label_propagation(both, iterations=-1),
            lambda: oc.graph.label_propagation(both, seed=-1),
            lambda: oc.graph.maximal_independent_set(both, seed=2**64),
        ):
            with pytest.raises(ArgumentError, match="a whole number from 0 to"):
                call()


# What takes something else than a stored graph or matrix.
OTHERS = {"Graph", "GraphForecast", "VertexProgram", "explain", "from_edges", "from_networkx", "open", "state"}


@pytest.mark.parametrize("name", sorted(set(oc.graph.__all__) - OTHERS))
def test_what_is_no_stored_graph_is_refused(name: str, out: Path) -> None:
    given: dict[str, tuple[Any, ...]] = {
        "from_arrays": (0, 1, out / "g.ocg"),
        "from_sparse": (np.eye(3), out / "g.ocg"),
        "to_sparse": (nx.path_graph(3), out / "a.ocs"),
        "bfs": (nx.path_graph(3), 0),
        "shortest_paths": (str(out), 0),
    }
    with session(out), pytest.raises(ArgumentError, match=r"must be a stored|must be a 1-D array"):
        getattr(oc.graph, name)(*given.get(name, (nx.path_graph(3),)))
    assert files_below(out) == []


def test_weights_that_have_no_shortest_paths(out: Path) -> None:
    with session(out):
        G = oc.graph.from_arrays([0, 1], [1, 2], out / "g.ocg", weights=[1.0, -0.5])
        with pytest.raises(ArgumentError, match=r"at least 0; one is -0\.5"):
            oc.graph.shortest_paths(G, 0)
        G = oc.graph.from_arrays([0, 1], [1, 2], out / "h.ocg", weights=[1.0, np.nan])
        with pytest.raises(ArgumentError, match="at least 0; one is NaN"):
            oc.graph.shortest_paths(G, 0)
        # A circle on which paths get shorter and shorter; and one that no path from the source leads to.
        G = oc.graph.from_arrays([0, 1, 2, 3], [1, 2, 0, 0], out / "h.ocg", weights=[1, 1, -3, -9], overwrite=True)
        with pytest.raises(ArgumentError, match=r"at least 0; one is -3\.0"):
            oc.graph.shortest_paths(G, 0)
        assert oc.graph.shortest_paths(G, 3, direction="in").tolist() == [np.inf, np.inf, np.inf, 0]
        for weights in ([1.0, np.inf], [1e308, 1e308], [0.0, 0.0], [5e-324, 5e-324]):
            G = oc.graph.from_arrays([0, 1], [1, 2], out / "i.ocg", weights=weights, overwrite=True)
            assert oc.graph.shortest_paths(G, 0).tolist() == [0.0, weights[0], sum(weights)]
        with pytest.raises(DTypeError, match="weights must be real, not complex128"):
            oc.graph.from_arrays([0, 1], [1, 2], out / "j.ocg", weights=[1j, 2])
    assert files_below(out) == ["g.ocg", "h.ocg", "i.ocg"]


def test_edges_that_cannot_be(out: Path) -> None:
    path = out / "g.ocg"
    makes: list[tuple[Callable[[], Any], type[OutcoreError], str]] = [
        (lambda: oc.graph.from_arrays([0, -1], [1, 1], path), ArgumentError, "rows has -1"),
        (lambda: oc.graph.from_arrays([0, 5], [1, 1], path, vertices=3), ArgumentError, "rows has 5, the matrix 3"),
        (lambda: oc.graph.from_arrays([0.5], [1.0], path), DTypeError, "float64"),
        (lambda: oc.graph.from_arrays([0, 1], [1], path), ShapeError, r"\(2,\), \(1,\)"),
        (lambda: oc.graph.from_arrays([0], [1], path, weights=[1.0, 2.0]), ShapeError, r"\(2,\)"),
        (lambda: oc.graph.from_arrays([0], [1], path, vertices=2**32 - 2), MemoryLimitError, "needs"),
        (lambda: oc.graph.from_arrays([0], [1], path, vertices=2**32 - 1), ArgumentError, "from 0 to 4294967294"),
        (lambda: oc.graph.from_arrays([0], [1], path, vertices=-1), ArgumentError, "vertices=-1"),
        (lambda: oc.graph.from_arrays([0], [1], path, vertices=2.5), ArgumentError, r"vertices=2\.5"),  # type: ignore[arg-type]
    ]
    with session(out, memory_limit=2 << 30):
        for call, error, text in makes:
            with pytest.raises(error, match=text):
                call()
    assert files_below(out) == []


def test_what_is_there_is_not_replaced_unless_it_may_be(out: Path, data: Path) -> None:
    (data / "e.txt").write_text("0 1\n")
    with session(out):
        G = oc.graph.from_arrays([0, 1], [1, 2], out / "g.ocg")
        A = oc.sparse.from_coo([0], [1], None, (4, 4), data / "a.ocs")
        before = tree_hash(out)
        makes: list[Callable[..., Graph]] = [
            lambda **more: oc.graph.from_arrays([0], [0], out / "g.ocg", **more),
            lambda **more: oc.graph.from_edges(data / "e.txt", out / "g.ocg", **more),
            lambda **more: oc.graph.from_sparse(A, out / "g.ocg", **more),
            lambda **more: oc.graph.from_networkx(nx.path_graph(2), out / "g.ocg", **more),
        ]
        for make in makes:
            with pytest.raises(TargetExistsError, match=r"g\.ocg"):
                make()
        assert tree_hash(out) == before
        assert G.number_of_vertices == 3
        assert [make(overwrite=True).number_of_vertices for make in makes] == [1, 2, 4, 2]
    assert files_below(out) == ["g.ocg"]


@pytest.mark.parametrize("ask", [lambda G: G.neighbors(0), lambda G: oc.graph.bfs(G, 0)])
def test_a_function_over_tiles_that_asks_a_graph_is_refused_at_once(ask: Callable[[Graph], Any], out: Path) -> None:
    with session(out):
        G = oc.graph.from_arrays([0, 1], [1, 2], out / "g.ocg")
        lazy = oc.map_blocks(lambda block: block + len(ask(G)), oc.ones((100,)), dtype="float64")
        with pytest.raises(OutcoreError, match="inside a running computation"):
            lazy.compute()
