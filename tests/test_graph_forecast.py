"""What `oc.graph.explain` tells of a run before it: what is reserved, and bounds of what is read, which hold."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from support.graphs import KINDS, circulant, directed_of, opened, rmat, weighted, write
from support.running import session

import outcore as oc
from outcore.errors import ArgumentError, IndexingError, MemoryLimitError
from outcore.graph import Graph

Case = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]
EITHER: list[Case] = [
    (oc.graph.bfs, (0,), {}),
    (oc.graph.bfs, ([0, 1],), {"direction": "both"}),
    (oc.graph.shortest_paths, (0,), {}),
    (oc.graph.diameter, (), {}),
    (oc.graph.connected_components, (), {}),
    (oc.graph.core_number, (), {}),
    (oc.graph.pagerank, (), {"tol": 0, "iterations": 5}),
    (oc.graph.pagerank, (), {"weighted": True, "iterations": 5}),
    (oc.graph.pagerank, (), {"threshold": 1e-7}),
    (oc.graph.betweenness_centrality, ([0, 1],), {}),
]
ONE_WAY: list[Case] = [(oc.graph.strongly_connected_components, (), {}), (oc.graph.topological_sort, (), {})]
BOTH_WAYS: list[Case] = [
    (oc.graph.triangles, (), {}),
    (oc.graph.clustering, (), {}),
    (oc.graph.average_clustering, (), {}),
    (oc.graph.scan_statistics, (), {}),
    (oc.graph.label_propagation, (), {"iterations": 6}),
    (oc.graph.louvain_communities, (), {}),
    (oc.graph.maximal_independent_set, (), {}),
]


def cases(G: Graph) -> list[Case]:
    return EITHER + (ONE_WAY if G.directed else BOTH_WAYS)


def check(path: Path, case: Case, **options: Any) -> bool:
    """Runs what was told; whether it could."""
    function, args, kwargs = case
    with session(path.parent, **options) as current:
        G = oc.graph.open(path)
        before = current.counters()["bytes_read"]
        told = oc.graph.explain(function, G, *args, **kwargs)
        looked_up = current.counters()["bytes_read"] - before
        try:
            with oc.profile() as seen:
                function(G, *args, **kwargs)
        except (MemoryLimitError, ArgumentError):
            # Of a circle, which has no order, it was told what it would take to find out.
            return False
        read = current.counters()["bytes_read"] - before - looked_up
        assert told.fits
        search = next(outcome for outcome in seen.outcomes if "graph" in outcome.other)
        assert search.peak_bytes == told.known_bytes + told.reading_bytes
        assert told.bytes_read is None or read <= told.bytes_read, (function.__name__, read, told.bytes_read)
        assert not told.exact or read == told.bytes_read, (function.__name__, read, told.bytes_read)
        return True


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_told_holds(kind: str, directed: bool, out: Path) -> None:
    graph = KINDS[kind]()
    if not len(graph):
        return
    with session(out):
        G = write(weighted(directed_of(graph) if directed else graph), out, "float64")
        known = [case for case in cases(G) if len(graph) > 1 or case[1] != ([0, 1],)]
        path = G.path
    ran = [check(path, case) for case in known]
    assert len(ran) - sum(ran) <= 1, "all but an order, perhaps"


@pytest.mark.parametrize("directed", [False, True])
def test_it_holds_where_no_page_is_kept(directed: bool, out: Path) -> None:
    """A graph of many pages, in so little memory that there is no cache, and in a bit more."""
    with session(out):
        graph = weighted(directed_of(rmat(13, 120_000)) if directed else rmat(13, 120_000))
        G = write(graph, out, "float32")
        path, some = G.path, cases(G)
    for case in some:
        function, args, kwargs = case
        with session(out, memory_limit=8 << 30, pool_limit=1 << 20):
            told = oc.graph.explain(function, oc.graph.open(path), *args, **kwargs)
        least = told.known_bytes + told.reading_bytes
        ran = [check(path, case, memory_limit=8 << 30, pool_limit=least + more) for more in (1 << 20, 12 << 20)]
        # Communities take a part of what there is for graphs of their own, and a circle has no order.
        assert any(ran) or function in (oc.graph.louvain_communities, oc.graph.topological_sort)


def test_what_does_not_fit_is_told(out: Path) -> None:
    with session(out, memory_limit=8 << 30, pool_limit=2 << 20):
        G = opened(out / "c.ocg", circulant(300_000, [1, 7]))
        told = oc.graph.explain(oc.graph.betweenness_centrality, G, [0])
        assert not told.fits
        assert "does not fit" in str(told)
        with pytest.raises(MemoryLimitError):
            oc.graph.betweenness_centrality(G, [0])


@pytest.fixture(scope="module")
def long(shared: Path) -> dict[bool, Path]:
    """Graphs of many pages: one whose edges have both directions, and one whose edges have one."""
    with session(shared):
        graph = rmat(14, 300_000)
        graphs = {False: graph, True: directed_of(graph)}
        return {directed: write(each, shared, name=f"{directed}.ocg").path for directed, each in graphs.items()}


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize(("function", "named"), [("connected_components", {}), ("pagerank", {"iterations": 7})])
def test_sweeps_in_order_are_told_exactly(
    function: str, named: dict[str, Any], directed: bool, long: dict[bool, Path], out: Path
) -> None:
    path = long[directed]
    with session(out) as current:
        G, run = oc.graph.open(path), getattr(oc.graph, function)
        told = oc.graph.explain(run, G, **named)
        assert told.exact
        assert "bytes read (exact)" in str(told)
        before = current.counters()["bytes_read"]
        run(G, **named)
        assert current.counters()["bytes_read"] - before == told.bytes_read > 10 * 4096
        assert not oc.graph.explain(run, G, **named).exact, "pages are there by now"
    with session(out, memory_limit=8 << 30, pool_limit=2 << 20):
        assert not oc.graph.explain(run, oc.graph.open(path), **named).exact


def test_it_says_what_is_a_bound(out: Path) -> None:
    with session(out):
        G = write(nx.path_graph(5), out)
        (out / "directed").mkdir()
        directed = write(nx.path_graph(5, create_using=nx.DiGraph), out / "directed")
        told = oc.graph.explain(oc.graph.strongly_connected_components, directed)
        assert not told.exact
        assert told.bytes_once == 8192
        text = str(told)
        assert text.startswith("strongly_connected_components of ")
        assert text.splitlines()[0].endswith(str(directed.path)[-20:])
        assert "bytes read (bound)" in text
        assert "peak reserved (bound)" in text
        assert "not bounded" in str(oc.graph.explain(oc.graph.triangles, G))
        before = G._core
        assert np.array_equal(oc.graph.bfs(G, 0), [0, 1, 2, 3, 4]), "runs go on as ever"
        assert G._core is before


def test_it_refuses_what_the_function_does(out: Path) -> None:
    with session(out):
        G = write(nx.path_graph(5), out)
        with pytest.raises(IndexingError, match="9 is no vertex"):
            oc.graph.explain(oc.graph.bfs, G, 9)
        with pytest.raises(ArgumentError, match="degree_histogram is none of average_clustering, betweenness"):
            oc.graph.explain(oc.graph.degree_histogram, G)
        with pytest.raises(ArgumentError, match=r"G must be a stored graph, not networkx.classes.graph.Graph"):
            oc.graph.explain(oc.graph.bfs, nx.path_graph(3), 0)  # type: ignore[arg-type]
        with pytest.raises(ArgumentError, match=r"a graph is no expression; outcore.graph.explain"):
            oc.explain(G)
