"""networkx's functions of what a search meets, in which order, and of how far all vertices are from each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from outcore._base.types import NDArray
from outcore.graph import _searching
from outcore.graph._graph import Graph
from outcore.graph._networkx_names import (
    Node,
    Nodes,
    chosen,
    names_of,
    nearest_first,
    number_of,
    number_or_none,
    reserved,
)
from outcore.graph._networkx_paths import distances_from

_LISTED = 512  # vertices whose lists a search in order reads together


# -- in the order of a search -----------------------------------------------------------------------------------------


def _number_of(G: Graph, node: Node) -> int:
    """The number of a node. Raises networkx's NetworkXError, as its searches do."""
    import networkx as nx

    number = number_or_none(G, node)
    if number is None:
        raise nx.NetworkXError(f"The node {node} is not in the graph.")
    return number


def _sources(G: Graph, sources: Any) -> list[int]:
    number = number_or_none(G, sources)
    if number is None:
        sources = list(sources)
        set(sources)  # TypeError for a node without a hash, as networkx
    return [_number_of(G, node) for node in sources] if number is None else [number]


def bfs_layers(G: Graph, sources: object) -> Iterator[list[Node]]:
    numbers = _sources(G, sources)
    if not numbers:
        return
    levels = _searching.bfs(G, numbers)
    order = nearest_first(levels, None)
    for part in np.split(order, np.flatnonzero(np.diff(levels[order])) + 1):
        yield names_of(G, part)


def descendants_at_distance(G: Graph, source: Node, distance: int) -> set[Node]:
    number = _number_of(G, source)
    if distance < 0 or distance != int(distance):
        return set()
    return set(names_of(G, np.flatnonzero(_searching.bfs(G, number, cutoff=int(distance)) == distance)))


def _beyond(G: Graph, source: Node, direction: str) -> set[Node]:
    hash(source)  # TypeError where it has none, as networkx
    levels = _searching.bfs(G, _number_of(G, source), direction=direction)
    return set(names_of(G, np.flatnonzero(levels > 0)))


def descendants(G: Graph, source: Node) -> set[Node]:
    return _beyond(G, source, "out")


def ancestors(G: Graph, source: Node) -> set[Node]:
    return _beyond(G, source, "in")


def bfs_edges(
    G: Graph, source: Node, reverse: bool = False, depth_limit: int | None = None, sort_neighbors: object = None
) -> Iterator[tuple[Node, Node]]:
    """As networkx goes: neighbours in the order of their list, which is ascending in a stored graph."""
    front = np.array(_sources(G, source if number_or_none(G, source) is not None else [source]))
    direction = "in" if reverse and G.directed else "out"
    with reserved(G.number_of_vertices):
        seen = np.zeros(G.number_of_vertices, bool)
        seen[front] = True
        depth = 0
        while len(front) and (depth_limit is None or depth < depth_limit):
            behind = []
            for begin in range(0, len(front), _LISTED):
                parents = front[begin : begin + _LISTED]
                begins, neighbours, _ = G.lists(parents, direction)
                fresh = np.flatnonzero(~seen[neighbours])
                children, first = np.unique(neighbours[fresh], return_index=True)
                order = np.argsort(first)
                children, places = children[order].astype(np.int64), fresh[first[order]]
                seen[children] = True
                behind.append(children)
                rows = np.searchsorted(begins, places, side="right") - 1
                yield from zip(names_of(G, parents[rows]), names_of(G, children), strict=True)
            front = np.concatenate(behind)
            depth += 1


def bfs_tree(
    G: Graph, source: Node, reverse: bool = False, depth_limit: int | None = None, sort_neighbors: object = None
) -> object:
    import networkx as nx

    tree = nx.DiGraph()
    tree.add_node(source)
    tree.add_edges_from(bfs_edges(G, source, reverse, depth_limit))
    return tree


def bfs_predecessors(
    G: Graph, source: Node, depth_limit: int | None = None, sort_neighbors: object = None
) -> Iterator[tuple[Node, Node]]:
    for parent, child in bfs_edges(G, source, False, depth_limit):
        yield child, parent


def bfs_successors(
    G: Graph, source: Node, depth_limit: int | None = None, sort_neighbors: object = None
) -> Iterator[tuple[Node, list[Node]]]:
    before: Any = source
    children: list[Node] = []
    for parent, child in bfs_edges(G, source, False, depth_limit):
        if parent != before:
            yield before, children
            before, children = parent, []
        children.append(child)
    yield before, children


# -- how far all are --------------------------------------------------------------------------------------------------


def eccentricity(G: Graph, v: object = None, sp: object = None, weight: str | None = None) -> object:
    pairs, is_one = chosen(G, v)
    farthest = _farthest(G, pairs, weight)
    return farthest[v] if is_one else farthest


def _eccentricities(G: Graph, weight: str | None) -> dict[Node, float]:
    """By node the largest distance from it."""
    return _farthest(G, chosen(G, None)[0], weight)


def _farthest(G: Graph, pairs: list[tuple[Node, int]], weight: str | None) -> dict[Node, float]:
    """The largest distance from each of some nodes. Raises NetworkXError where a node is not reached."""
    import networkx as nx

    farthest = {}
    for node, number in pairs:
        lengths = distances_from(G, [number], weight is not None)
        if len(nearest_first(lengths, None)) < len(lengths):
            kind = "digraph is not strongly" if G.directed else "graph is not"
            raise nx.NetworkXError(f"Found infinite path length because the {kind} connected")
        farthest[node] = lengths.max().item()
    return farthest


def diameter(G: Graph, e: object = None, usebounds: bool = False, weight: str | None = None) -> float:
    return max(_eccentricities(G, weight).values())


def radius(G: Graph, e: object = None, usebounds: bool = False, weight: str | None = None) -> float:
    return min(_eccentricities(G, weight).values())


def periphery(G: Graph, e: object = None, usebounds: bool = False, weight: str | None = None) -> list[Node]:
    farthest = _eccentricities(G, weight)
    most = max(farthest.values())
    return [node for node, distance in farthest.items() if distance == most]


def center(G: Graph, e: object = None, usebounds: bool = False, weight: str | None = None) -> list[Node]:
    import networkx as nx

    if G.number_of_vertices == 0 and not G.directed and weight is None:
        raise nx.NetworkXPointlessConcept("G has no nodes.")
    farthest = _eccentricities(G, weight)
    least = min(farthest.values())
    return [node for node, distance in farthest.items() if distance == least]


def approximate_diameter(G: Graph, seed: object = None) -> int:
    import networkx as nx

    if G.number_of_vertices == 0:
        raise nx.NetworkXError("Expected non-empty NetworkX graph!")
    if (_searching.bfs(G, 0) < 0).any():
        raise nx.NetworkXError("Graph not connected.")
    return _searching.diameter(G)


def _lengths(G: Graph, weighted: bool, direction: str = "out") -> Iterator[tuple[Node, NDArray]]:
    """The distances of those that each node reaches, itself included."""
    for node, number in chosen(G, None)[0]:
        distances = distances_from(G, [number], weighted, direction)
        yield node, distances[distances >= 0]


def closeness_centrality(
    G: Graph, u: Node | None = None, distance: str | None = None, wf_improved: bool = True
) -> object:
    n, weighted = G.number_of_vertices, distance is not None

    def of(lengths: NDArray) -> float:
        total = lengths.sum().item()
        if not total > 0:
            return 0.0
        near: float = (len(lengths) - 1.0) / total
        return near * ((len(lengths) - 1.0) / (n - 1)) if wf_improved else near

    if u is None:
        return {node: of(lengths) for node, lengths in _lengths(G, weighted, "in")}
    distances = distances_from(G, [number_of(G, u)], weighted, "in")
    return of(distances[distances >= 0])


def harmonic_centrality(
    G: Graph, nbunch: Nodes = None, distance: str | None = None, sources: Nodes = None
) -> dict[Node, float]:
    targets, begins = (list(dict(chosen(G, nodes)[0]).items()) for nodes in (nbunch, sources))
    weighted, from_targets = distance is not None, len(targets) < len(begins)
    with reserved(8 * G.number_of_vertices):
        sums = np.zeros(G.number_of_vertices)
        ends = np.array([number for _, number in (begins if from_targets else targets)], np.int64)
        for _, number in targets if from_targets else begins:
            distances = distances_from(G, [number], weighted, "in" if from_targets else "out")[ends]
            is_near = distances > 0
            near = 1 / distances[is_near]
            if from_targets:
                sums[number] = near.sum()
            else:
                sums[ends[is_near]] += near
        return {node: sums[number].item() for node, number in targets}


def average_shortest_path_length(G: Graph, weight: str | None = None, method: str | None = None) -> float:
    import networkx as nx

    n, total = G.number_of_vertices, 0
    if n == 0:
        raise nx.NetworkXPointlessConcept("the null graph has no paths, thus there is no average shortest path length")
    if n == 1:
        return 0
    for _, lengths in _lengths(G, weight is not None and method != "unweighted"):
        if len(lengths) < n:
            raise nx.NetworkXError(f"Graph is not {'strongly ' if G.directed else ''}connected.")
        total += lengths.sum().item()
    return total / (n * (n - 1))


def wiener_index(G: Graph, weight: str | None = None) -> float:
    import networkx as nx

    n, total = G.number_of_vertices, 0
    if n == 0:
        raise nx.NetworkXPointlessConcept("Connectivity is undefined for the null graph.")
    for _, lengths in _lengths(G, weight is not None):
        if len(lengths) < n:
            return float("inf")
        total += lengths.sum().item()
    return total if G.directed else total / 2


def global_efficiency(G: Graph) -> float:
    n = G.number_of_vertices
    if n < 2:
        return 0
    near = sum((1 / lengths[lengths > 0]).sum().item() for _, lengths in _lengths(G, False))
    efficiency: float = near / (n * (n - 1))
    return efficiency


__all__ = [
    "ancestors",
    "approximate_diameter",
    "average_shortest_path_length",
    "bfs_edges",
    "bfs_layers",
    "bfs_predecessors",
    "bfs_successors",
    "bfs_tree",
    "center",
    "closeness_centrality",
    "descendants",
    "descendants_at_distance",
    "diameter",
    "eccentricity",
    "global_efficiency",
    "harmonic_centrality",
    "periphery",
    "radius",
    "wiener_index",
]
