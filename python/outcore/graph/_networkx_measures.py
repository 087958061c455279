"""networkx's functions of how much vertices matter, of degrees and triangles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from outcore.graph import _centrality, _components, _counts, _searching
from outcore.graph._graph import Graph
from outcore.graph._networkx_names import Node, Nodes, by_node, chosen, names_of, number_or_none, of_nodes


def pagerank(
    G: Graph,
    alpha: float = 0.85,
    personalization: Mapping[Node, float] | None = None,
    max_iter: int = 100,
    tol: float = 1.0e-6,
    nstart: Mapping[Node, float] | None = None,
    weight: str | None = "weight",
    dangling: Mapping[Node, float] | None = None,
) -> dict[Node, float]:
    import networkx as nx

    weighted = weight is not None and G.dtype is not None
    parts = [_parts(G, weights) for weights in (personalization, dangling, nstart)]
    if parts[0] is not None and parts[0].sum() == 0:
        raise ZeroDivisionError("personalization adds up to 0")
    if G.number_of_vertices == 0:
        return {}
    if max_iter < 1 or any(part is not None and part.sum() == 0 for part in parts):
        # networkx divides by 0 there, and what is no number does not converge.
        raise nx.PowerIterationFailedConvergence(max_iter)
    ranks, done = _centrality.pagerank(
        G,
        alpha,
        weighted=weighted,
        personalization=parts[0],
        dangling=parts[1],
        start=parts[2],
        tol=tol,
        iterations=max_iter,
        full_output=True,
    )
    if done is None:
        raise nx.PowerIterationFailedConvergence(max_iter)
    return by_node(G, ranks)


def _parts(G: Graph, weights: Mapping[Node, float] | None) -> npt.NDArray[np.float64] | None:
    """Numbers by nodes as networkx takes them; nodes that are not named have 0."""
    if weights is None:
        return None
    parts = np.zeros(G.number_of_vertices)
    for node, part in weights.items():
        number = number_or_none(G, node)
        if number is not None:
            parts[number] = part
    return parts


def betweenness_centrality(
    G: Graph,
    k: int | None = None,
    normalized: bool = True,
    weight: str | None = None,
    endpoints: bool = False,
    seed: Any = None,
) -> dict[Node, float]:
    n = G.number_of_vertices
    if k == 0 and n > (1 if endpoints else 2):
        raise ZeroDivisionError("k=0: sums over no sources have no scale")
    if k is None or k == n:
        if not endpoints:
            return by_node(G, _centrality.betweenness_centrality(G, normalized=normalized))
        sources = list(range(n))
    else:
        # As networkx draws, from its own generator: the same nodes.
        sources = seed.sample(range(n), k)
    # Unscaled, each source counts as it is met: of undirected graphs that is half.
    sums = _centrality.betweenness_centrality(G, sources, normalized=False)
    sums *= (1 if G.directed else 2) * (len(sources) / n if sources else 1)
    if endpoints:
        for source in sources:
            ends = _searching.bfs(G, source) > 0
            sums += ends
            sums[source] += np.count_nonzero(ends)
    return by_node(G, _scaled(sums, sources, normalized, endpoints, G.directed))


def _scaled(
    sums: npt.NDArray[np.float64], sources: list[int], normalized: bool, endpoints: bool, directed: bool
) -> npt.NDArray[np.float64]:
    """As networkx scales sums over sources to all: without endpoints a source is not between itself and others, so that
    it is met from one source less than the others are."""
    n, k = len(sums), len(sources)
    most = n if endpoints else n - 1
    if most < 2:
        return sums
    met_from = np.full(n, float(most if k == n else k))
    if k < n and not endpoints:
        met_from[sources] -= 1
    pairs = 1 / (most - 1) if normalized else most / (1 if directed else 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        # Of one source nothing is known of itself: networkx has NaN there.
        sums *= np.where(met_from > 0, pairs / met_from, np.nan)
    return sums


def core_number(G: Graph) -> dict[Node, float]:
    import networkx as nx

    if G.number_of_loops:
        raise nx.NetworkXNotImplemented("Input graph has self loops which is not permitted.")
    return by_node(G, _components.core_number(G))


def triangles(G: Graph, nodes: Nodes = None) -> object:
    return of_nodes(G, np.asarray(_counts.triangles(G, each=True)), nodes)


def clustering(G: Graph, nodes: Nodes = None, weight: str | None = None) -> object:
    return of_nodes(G, _counts.clustering(G), nodes)


def transitivity(G: Graph) -> float:
    degrees = _counts._simple_degrees(G)
    pairs = int((degrees * (degrees - 1)).sum())
    closed = int(_counts.triangles(G))
    return 6 * closed / pairs if closed else 0


def average_clustering(G: Graph, nodes: Nodes = None, weight: str | None = None, count_zeros: bool = True) -> float:
    coefficients: Any = of_nodes(G, _counts.clustering(G), nodes)
    values: list[float] = [value for value in coefficients.values() if count_zeros or value > 0]
    return sum(values) / len(values)


def number_of_selfloops(G: Graph) -> int:
    return G.number_of_loops


def degrees_of(G: Graph, direction: str = "both") -> npt.NDArray[np.int64]:
    """As networkx counts: a loop of an undirected graph twice."""
    degrees = G.degrees(direction)
    if not G.directed:
        np.add.at(degrees, G._loops(), 1)
    return degrees


def isolates(G: Graph) -> Iterator[Node]:
    yield from names_of(G, np.flatnonzero(G.degrees("both") == 0))


def number_of_isolates(G: Graph) -> int:
    return int(np.count_nonzero(G.degrees("both") == 0))


def is_isolate(G: Graph, n: Node) -> bool:
    # Of several nodes networkx compares what it knows of them with 0.
    nodes, is_one = chosen(G, n)
    return is_one and not len(G.neighbors(nodes[0][1], "both"))


def is_empty(G: Graph) -> bool:
    return G.number_of_entries == 0


def is_regular(G: Graph) -> bool:
    import networkx as nx

    if G.number_of_vertices == 0:
        raise nx.NetworkXPointlessConcept("Graph has no nodes.")
    directions = ("in", "out") if G.directed else ("both",)
    return all(bool((degrees == degrees[0]).all()) for degrees in (degrees_of(G, each) for each in directions))


def is_k_regular(G: Graph, k: int) -> bool:
    return bool((degrees_of(G) == k).all())


def _centrality_by(G: Graph, direction: str) -> dict[Node, float]:
    degrees = degrees_of(G, direction)
    if len(degrees) <= 1:
        return dict.fromkeys(names_of(G, np.arange(len(degrees))), 1)
    return by_node(G, degrees * (1.0 / (len(degrees) - 1.0)))


def degree_centrality(G: Graph) -> dict[Node, float]:
    return _centrality_by(G, "both")


def in_degree_centrality(G: Graph) -> dict[Node, float]:
    return _centrality_by(G, "in")


def out_degree_centrality(G: Graph) -> dict[Node, float]:
    return _centrality_by(G, "out")


__all__ = [
    "average_clustering",
    "betweenness_centrality",
    "clustering",
    "core_number",
    "degree_centrality",
    "in_degree_centrality",
    "is_empty",
    "is_isolate",
    "is_k_regular",
    "is_regular",
    "isolates",
    "number_of_isolates",
    "number_of_selfloops",
    "out_degree_centrality",
    "pagerank",
    "transitivity",
    "triangles",
]
