"""Communities of high modularity: as good as networkx's, the same at every number of threads and in any memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from support.running import files_below, session
from support.sizes import alternating, sized

import outcore as oc
from outcore.errors import ArgumentError, MemoryLimitError
from outcore.graph import Graph


def rmat(bits: int, edges: int) -> nx.Graph:
    rows, columns = oc.sparse.rmat_edges(1 << bits, edges, seed=3)
    graph = nx.empty_graph(1 << bits)
    graph.add_edges_from(zip(np.asarray(rows.compute()).tolist(), np.asarray(columns.compute()).tolist(), strict=True))
    return graph


def with_weights(graph: nx.Graph) -> nx.Graph:
    for number, (_, _, data) in enumerate(graph.edges(data=True)):
        data["weight"] = 0.1 + number % 7
    return graph


def with_loops(graph: nx.Graph) -> nx.Graph:
    graph.add_edges_from((node, node) for node in list(graph)[::3])
    return graph


def with_holes(graph: nx.Graph) -> nx.Graph:
    """Vertices without edges, and with edges that weigh nothing, among the others."""
    spread = nx.empty_graph(7 * len(graph))
    spread.add_weighted_edges_from((7 * a, 7 * b, 1.5) for a, b in graph.edges)
    spread.add_weighted_edges_from((7 * a, 7 * a + 1 + a % 2, 0.0) for a in graph)
    return spread


GRAPHS: dict[str, Callable[[], nx.Graph]] = {
    "karate": nx.karate_club_graph,
    "caveman": lambda: nx.connected_caveman_graph(40, 8),
    "relaxed caveman": lambda: nx.relaxed_caveman_graph(60, 12, 0.2, seed=1),
    "random partition": lambda: nx.random_partition_graph([40, 60, 80, 20, 50], 0.3, 0.02, seed=2),
    "weights and loops": lambda: with_weights(with_loops(nx.random_partition_graph([30] * 10, 0.4, 0.02, seed=5))),
    "holes": lambda: with_holes(nx.random_partition_graph([30] * 8, 0.4, 0.02, seed=6)),
    "R-MAT": lambda: rmat(*sized((11, 12_000), (12, 30_000))),
    "path": lambda: nx.path_graph(sized(400, 1000)),
    "no edges": lambda: nx.empty_graph(5),
}


def groups(labels: Any) -> list[set[int]]:
    return [set(np.flatnonzero(labels == label).tolist()) for label in np.unique(labels)]


def made(graph: nx.Graph, path: Path) -> Graph:
    weight = "weight" if nx.is_weighted(graph) else None
    return oc.graph.from_networkx(graph, path, weight=weight)


@pytest.mark.parametrize(("name", "resolution"), alternating(list(GRAPHS), [1.0, 0.3, 2.5]))
def test_the_modularity_is_that_of_networkx(name: str, resolution: float, out: Path) -> None:
    with session(out):
        graph = GRAPHS[name]()
        labels, modularity = oc.graph.louvain_communities(made(graph, out / "g.ocg"), resolution=resolution)
    found = groups(labels)
    assert all(min(part) == labels[min(part)] for part in found), "each is called by its lowest vertex"
    if not graph.number_of_edges():
        assert (labels.tolist(), modularity) == (list(range(5)), 0.0)
        return
    names = np.array(graph)

    def of(parts: Any) -> float:
        return float(nx.community.modularity(graph, parts, resolution=resolution))

    assert modularity == pytest.approx(of([set(names[list(part)].tolist()) for part in found]), abs=1e-9)
    theirs = [of(nx.community.louvain_communities(graph, resolution=resolution, seed=seed)) for seed in range(5)]
    assert modularity >= 0.98 * np.mean(theirs)


def narrow(path: Any, out: Path, limit: int) -> tuple[Any, float] | None:
    """Communities within a limit; nothing where it is too low."""
    with session(out, pool_limit=limit):
        try:
            return oc.graph.louvain_communities(oc.graph.open(path), seed=7)
        except MemoryLimitError:
            return None


def test_threads_and_memory_change_no_bit(out: Path) -> None:
    n, count = 1 << 16, 400_000
    with session(out):
        weights = 0.1 + np.arange(count) % 7
        edges = oc.sparse.rmat_edges(n, count, seed=3)
        path = oc.graph.from_arrays(*edges, out / "g.ocg", weights=weights, vertices=n, directed=False).path
    found = []
    for threads in (1, 2, 8):
        with session(out, threads=threads):
            found.append(oc.graph.louvain_communities(oc.graph.open(path), seed=7))
    found.append(next(filter(None, (narrow(path, out, limit << 20) for limit in range(32, 256, 4)))))
    for labels, modularity in found[1:]:
        assert np.array_equal(labels, found[0][0])
        assert modularity == found[0][1]


def test_a_seed_gives_one_result_and_nothing_stays_in_scratch(out: Path) -> None:
    with session(out):
        G = made(rmat(11, 8000), out / "g.ocg")
        before = files_below(out)
        first, again, other = (oc.graph.louvain_communities(G, seed=seed) for seed in (1, 1, 2))
        assert files_below(out) == before
    assert np.array_equal(first[0], again[0])
    assert first[1] == again[1]
    assert other[1] > 0.9 * first[1]


def test_what_has_no_communities_is_refused(out: Path) -> None:
    with session(out):
        way = oc.graph.from_arrays([0], [1], out / "way.ocg")
        below = oc.graph.from_arrays([0], [1], out / "below.ocg", weights=[-1.0], directed=False)
        endless = oc.graph.from_arrays([0], [1], out / "endless.ocg", weights=[np.inf], directed=False)
        for G, said in ((way, "must be undirected"), (below, "weights from -1.0 on"), (endless, "and finite")):
            with pytest.raises(ArgumentError, match=said):
                oc.graph.louvain_communities(G)
        both = oc.graph.from_arrays([0], [1], out / "both.ocg", directed=False)
        for wrong in ({"resolution": -1.0}, {"threshold": float("nan")}, {"seed": -1}, {"resolution": float("inf")}):
            with pytest.raises(ArgumentError):
                oc.graph.louvain_communities(both, **wrong)


def test_networkx_calls_it(out: Path) -> None:
    graph = nx.connected_caveman_graph(6, 5)
    with session(out):
        found = nx.community.louvain_communities(graph, seed=1, backend="outcore")
        G = made(graph, out / "g.ocg")
        assert sorted(map(sorted, nx.community.louvain_communities(G, seed=1))) == sorted(map(sorted, found))
        W = oc.graph.from_arrays([0], [1], out / "w.ocg", weights=[2.0], directed=False)
        with pytest.raises(NotImplementedError):
            nx.community.louvain_communities(W, weight=None)
        with pytest.raises(NotImplementedError):
            nx.community.louvain_communities(G, max_level=1)
    assert nx.community.modularity(graph, found) == pytest.approx(
        nx.community.modularity(graph, nx.community.louvain_communities(graph, seed=1)), rel=0.02
    )
