"""networkx's functions of parts of graphs: components, orders, communities, independent sets."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np
import numpy.typing as npt

from outcore.graph import _communities, _components, _searching
from outcore.graph._graph import Graph
from outcore.graph._networkx_measures import degrees_of
from outcore.graph._networkx_names import (
    Node,
    groups,
    names_of,
    number_or_none,
    parts_of,
    parts_of_equal,
    reserved,
    without_weights,
)
from outcore.graph._networkx_paths import way_to

_NONE = 2**32 - 1  # no vertex has this number


def _not_empty(G: Graph) -> None:
    import networkx as nx

    if G.number_of_vertices == 0:
        raise nx.NetworkXPointlessConcept("Connectivity is undefined for the null graph.")


def _labels(G: Graph, strong: bool = False) -> npt.NDArray[np.uint32]:
    return _components.strongly_connected_components(G) if strong else _components.connected_components(G)


def _is_one(G: Graph, strong: bool = False) -> bool:
    _not_empty(G)
    labels = _labels(G, strong)
    return bool((labels == labels[0]).all())


def connected_components(G: Graph) -> Iterator[set[Node]]:
    yield from groups(G, _labels(G))


def number_connected_components(G: Graph) -> int:
    return len(np.unique(_labels(G)))


def is_connected(G: Graph) -> bool:
    return _is_one(G)


def strongly_connected_components(G: Graph) -> Iterator[set[Node]]:
    yield from groups(G, _labels(G, strong=True))


def number_strongly_connected_components(G: Graph) -> int:
    return len(np.unique(_labels(G, strong=True)))


def is_strongly_connected(G: Graph) -> bool:
    return _is_one(G, strong=True)


def kosaraju_strongly_connected_components(G: Graph, source: Node | None = None) -> Iterator[set[Node]]:
    yield from strongly_connected_components(G)


def _attracting(G: Graph) -> npt.NDArray[np.uint32]:
    """The lowest vertices of the components that no edge leaves."""
    labels = _labels(G, strong=True)
    with reserved(G.number_of_vertices):
        outside = labels != np.arange(len(labels), dtype=np.uint32)
        for ids, begins, neighbours, _ in G._parts("out"):
            rows = np.repeat(ids, np.diff(begins))
            outside[labels[rows[labels[rows] != labels[neighbours]]]] = True
        return np.where(outside[labels], np.uint32(_NONE), labels)


def attracting_components(G: Graph) -> Iterator[set[Node]]:
    labels = _attracting(G)
    inside = np.flatnonzero(labels != _NONE)
    for part in parts_of_equal(labels[inside]):
        yield set(names_of(G, inside[part]))


def number_attracting_components(G: Graph) -> int:
    labels = _attracting(G)
    return len(np.unique(labels[labels != _NONE]))


def is_attracting_component(G: Graph) -> bool:
    return G.number_of_vertices > 0 and _is_one(G, strong=True)


def _is_forest(G: Graph) -> bool:
    import networkx as nx

    if G.number_of_vertices == 0:
        raise nx.NetworkXPointlessConcept("G has no nodes.")
    # Of a component with n vertices there are n - 1 edges at least.
    return G.number_of_edges < G.number_of_vertices and (
        G.number_of_edges == G.number_of_vertices - number_connected_components(G)
    )


def is_forest(G: Graph) -> bool:
    return _is_forest(G)


def is_tree(G: Graph) -> bool:
    return _is_forest(G) and G.number_of_edges == G.number_of_vertices - 1


def is_branching(G: Graph) -> bool:
    return _is_forest(G) and bool(G.degrees("in").max() <= 1)


def is_arborescence(G: Graph) -> bool:
    return is_tree(G) and bool(G.degrees("in").max() <= 1)


def is_eulerian(G: Graph) -> bool:
    odd = G.degrees("in") - G.degrees("out") if G.directed else degrees_of(G) % 2
    return not odd.any() and _is_one(G, strong=G.directed)


def node_connected_component(G: Graph, n: Node) -> set[Node]:
    hash(n)  # TypeError where it has none, as networkx
    number = number_or_none(G, n)
    if number is None:
        raise KeyError(n)  # networkx looks up the neighbours of whatever it is given
    return set(names_of(G, np.flatnonzero(_searching.bfs(G, number) >= 0)))


def is_directed_acyclic_graph(G: Graph) -> bool:
    return G.directed and bool((_components.generations_of(G) >= 0).all())


def _acyclic(G: Graph) -> npt.NDArray[np.int64]:
    """The generations. Raises networkx's NetworkXUnfeasible for a graph that has a circle."""
    import networkx as nx

    generations = _components.generations_of(G)
    if (generations < 0).any():
        raise nx.NetworkXUnfeasible("Graph contains a cycle.")
    return generations


def topological_generations(G: Graph) -> Iterator[list[Node]]:
    import networkx as nx

    if not G.directed:
        raise nx.NetworkXError("Topological sort not defined on undirected graphs.")
    generations = _acyclic(G)
    order = np.argsort(generations, kind="stable")
    for part in np.split(order, np.flatnonzero(np.diff(generations[order])) + 1):
        if len(part):
            yield names_of(G, part)


def topological_sort(G: Graph) -> Iterator[Node]:
    for generation in topological_generations(G):
        yield from generation


def dag_longest_path(
    G: Graph, weight: str | None = "weight", default_weight: float = 1, topo_order: object = None
) -> list[Node]:
    generations = _acyclic(G)
    if not len(generations):
        return []
    way = way_to(G, generations, int(generations.argmax()), lambda vertex: bool(generations[vertex] == 0))
    return names_of(G, np.array(way))


def dag_longest_path_length(G: Graph, weight: str | None = "weight", default_weight: float = 1) -> int:
    generations = _acyclic(G)
    return int(generations.max()) if len(generations) else 0


def louvain_communities(
    G: Graph,
    weight: str | None = "weight",
    resolution: float = 1,
    threshold: float = 0.0000001,
    max_level: int | None = None,
    seed: Any = None,
) -> list[set[Node]]:
    bits = seed.getrandbits(64)
    with without_weights(G) if weight is None else nullcontext(G) as used:
        labels, _ = _communities.louvain_communities(used, resolution=resolution, threshold=threshold, seed=bits)
    return list(groups(G, labels))


def fast_label_propagation_communities(G: Graph, *, weight: str | None = None, seed: Any = None) -> Iterator[set[Node]]:
    yield from groups(G, _communities.label_propagation(G, seed=seed.getrandbits(64)))


def asyn_lpa_communities(G: Graph, weight: str | None = None, seed: Any = None) -> Iterator[set[Node]]:
    yield from groups(G, _communities.label_propagation(G, seed=seed.getrandbits(64)))


def label_propagation_communities(G: Graph) -> object:
    return dict(enumerate(groups(G, _communities.label_propagation(G)))).values()


def is_partition(G: Graph, communities: Collection[Collection[Node]]) -> bool:
    with reserved(4 * G.number_of_vertices):
        return _partition(G, list(communities)) is not None


def _partition(G: Graph, communities: list[Collection[Node]]) -> npt.NDArray[np.uint32] | None:
    """The number of the community of each vertex; None where not each is in one."""
    labels = np.full(G.number_of_vertices, _NONE, np.uint32)
    for label, community in enumerate(communities):
        numbers = (number_or_none(G, node) for node in community)
        labels[[number for number in numbers if number is not None]] = label
    is_one = sum(map(len, communities)) == len(labels) and not (labels == _NONE).any()
    return labels if is_one else None


def modularity(
    G: Graph, communities: Collection[Collection[Node]], weight: str | None = "weight", resolution: float = 1
) -> float:
    """Q = Σ (L_c / m - γ K⁺_c K⁻_c / m²); of undirected graphs m² is (2m)²."""
    from networkx.algorithms.community.quality import NotAPartition

    communities = communities if isinstance(communities, list) else list(communities)
    with reserved(4 * G.number_of_vertices + 40 * len(communities)):
        labels = _partition(G, communities)
        if labels is None:
            raise NotAPartition(G, communities)
        inside, begins, ends = (np.zeros(len(communities)) for _ in range(3))
        for ids, list_begins, neighbours, weights in G._parts("out"):
            rows = np.repeat(ids, np.diff(list_begins))
            lengths = weights if weight is not None and G.dtype is not None else np.ones(len(rows))
            for sums, vertices in ((begins, rows), (ends, neighbours)):
                sums += np.bincount(labels[vertices], lengths, len(communities))
            same = labels[rows] == labels[neighbours]
            inside += np.bincount(labels[rows[same]], lengths[same], len(communities))
            if not G.directed:
                # A loop stands once in its list, and has two ends.
                loops = rows == neighbours
                for sums in (inside, begins, ends):
                    sums += np.bincount(labels[rows[loops]], lengths[loops], len(communities))
        total = begins.sum().item()
        if total == 0:
            raise ZeroDivisionError("modularity: the weights of edges add up to 0")
        edges = total if G.directed else total / 2
        inner = inside if G.directed else inside / 2
        # The square of the total may be no number.
        quality: float = (inner / edges - resolution * (begins / total) * (ends / total)).sum().item()
        return quality


def maximal_independent_set(G: Graph, nodes: Iterable[Node] | None = None, seed: Any = None) -> list[Node]:
    # networkx makes a generator of whatever it was given.
    bits = seed.getrandbits(64)
    if not nodes:
        return names_of(G, _communities.maximal_independent_set(G, seed=bits))
    return names_of(G, _independent_with(G, _independent(G, nodes), bits))


def _independent(G: Graph, nodes: Iterable[Node]) -> npt.NDArray[np.uint32]:
    """Their numbers. Raises networkx's NetworkXUnfeasible where an edge leads from one of the nodes to one."""
    import networkx as nx

    numbers = [number_or_none(G, node) for node in set(nodes)]
    chosen_vertices = np.array(sorted(number for number in numbers if number is not None), np.uint32)
    if len(chosen_vertices) < len(numbers):
        raise nx.NetworkXUnfeasible(f"{set(nodes)} is not a subset of the nodes of G")
    for _, _, neighbours, _ in parts_of(G, chosen_vertices, "out"):
        if np.isin(neighbours, chosen_vertices).any():
            raise nx.NetworkXUnfeasible(f"{set(nodes)} is not an independent set of G")
    return chosen_vertices


def _independent_with(G: Graph, seeds: npt.NDArray[np.uint32], seed: int) -> npt.NDArray[np.uint32]:
    """A maximal set around the given vertices: what is left of any such set without their neighbours, and then what has
    lost its neighbours by that, which is near them."""
    members = _communities.maximal_independent_set(G, seed=seed)
    with reserved(G.number_of_vertices + 2 * members.nbytes):
        covered = np.zeros(G.number_of_vertices, bool)

        def cover(vertices: npt.NDArray[np.uint32]) -> None:
            covered[vertices] = True
            for _, _, neighbours, _ in parts_of(G, vertices, "out"):
                covered[neighbours] = True

        cover(seeds)
        members = members[~covered[members]]
        cover(members)
        more = []
        for vertex in np.flatnonzero(~covered).tolist():
            if not covered[vertex]:
                more.append(vertex)
                cover(np.array([vertex], np.uint32))
        return np.concatenate([seeds, members, np.array(more, np.uint32)])


__all__ = [
    "asyn_lpa_communities",
    "attracting_components",
    "connected_components",
    "dag_longest_path",
    "dag_longest_path_length",
    "fast_label_propagation_communities",
    "is_arborescence",
    "is_attracting_component",
    "is_branching",
    "is_connected",
    "is_directed_acyclic_graph",
    "is_eulerian",
    "is_forest",
    "is_partition",
    "is_strongly_connected",
    "is_tree",
    "kosaraju_strongly_connected_components",
    "label_propagation_communities",
    "louvain_communities",
    "maximal_independent_set",
    "modularity",
    "node_connected_component",
    "number_attracting_components",
    "number_connected_components",
    "number_strongly_connected_components",
    "strongly_connected_components",
    "topological_generations",
    "topological_sort",
]
