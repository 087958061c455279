"""What networkx dispatches to graphs on disk: `networkx.pagerank(G)` for a `Graph`, or `backend="outcore"` for its own.

networkx itself is imported where it calls: whoever has a graph of its own, or an error to raise, has it loaded.
"""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable, Hashable, Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from outcore import _files
from outcore.errors import ArgumentError
from outcore.graph import _centrality, _communities, _components, _counts, _searching
from outcore.graph._graph import Graph, _session
from outcore.graph._making import from_networkx

Nodes = Iterable[Hashable] | Hashable | None


class Converted(Graph):
    """A graph of networkx's, stored in scratch while this lives; its nodes have names."""

    def __init__(self, graph: Any, weight: str | None) -> None:
        path = Path(_session().unused_path())
        super().__init__(from_networkx(graph, path, weight=weight)._core)
        self.names = list(graph)
        self.numbers = {name: number for number, name in enumerate(self.names)}
        weakref.finalize(self, _files.discard, path)

    def __reduce__(self) -> Any:
        raise ArgumentError("graph: what was stored in scratch for networkx goes with this process; use from_networkx")


# -- names and numbers ------------------------------------------------------------------------------------------------


def _found(G: Graph, node: Any) -> int | None:
    """The number of a node; None for what is none."""
    if isinstance(G, Converted):
        return G.numbers.get(node) if isinstance(node, Hashable) else None
    return int(node) if isinstance(node, (int, np.integer)) and 0 <= node < G.number_of_vertices else None


def _number(G: Graph, node: Any) -> int:
    """The number of a node. Raises networkx's NodeNotFound."""
    import networkx as nx

    number = _found(G, node)
    if number is None:
        raise nx.NodeNotFound(f"Node {node} is not in the graph")
    return number


def _names(G: Graph, numbers: npt.NDArray[Any]) -> list[Any]:
    found = numbers.tolist()
    return [G.names[number] for number in found] if isinstance(G, Converted) else found


def _by_node(G: Graph, values: npt.NDArray[Any]) -> dict[Any, Any]:
    names = G.names if isinstance(G, Converted) else range(G.number_of_vertices)
    return dict(zip(names, values.tolist(), strict=True))


def _of_nodes(G: Graph, values: npt.NDArray[Any], nodes: Nodes) -> Any:
    """Of a node its value; of several, or all, a dictionary. As networkx does, what is no node is left out. Raises
    networkx's NetworkXError for what is neither a node nor several."""
    import networkx as nx

    if nodes is None:
        return _by_node(G, values)
    number = _found(G, nodes)
    if number is not None:
        return values[number].item()
    if not isinstance(nodes, Iterable):
        raise nx.NetworkXError(f"Node {nodes} is not in the graph.")
    numbers = ((node, _found(G, node)) for node in nodes)
    return {node: values[number].item() for node, number in numbers if number is not None}


def _groups(G: Graph, labels: npt.NDArray[Any]) -> Iterator[set[Any]]:
    """Nodes of equal labels, by the lowest of each group."""
    order = np.argsort(labels, kind="stable")
    begins = np.flatnonzero(np.diff(labels[order])) + 1
    parts = [part for part in np.split(order, begins) if len(part)]
    for part in sorted(parts, key=lambda part: int(part[0])):
        yield set(_names(G, part))


def _reached(G: Graph, distances: npt.NDArray[Any], cutoff: float | None) -> dict[Any, Any]:
    """The nearest first, as far as there is a way; a source always."""
    far = np.inf if cutoff is None else max(cutoff, 0)
    met = np.flatnonzero((distances >= 0) & (distances <= far) & (distances < np.inf))
    met = met[np.argsort(distances[met], kind="stable")]
    return dict(zip(_names(G, met), distances[met].tolist(), strict=True))


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


# -- what networkx calls, with its own arguments ----------------------------------------------------------------------


def pagerank(
    G: Graph,
    alpha: float = 0.85,
    personalization: Any = None,
    max_iter: int = 100,
    tol: float = 1.0e-6,
    nstart: Any = None,
    weight: str | None = "weight",
    dangling: Any = None,
) -> dict[Any, float]:
    import networkx as nx

    ranks, done = _centrality.pagerank(G, alpha, tol=tol, iterations=max_iter, full_output=True)
    if done is None:
        raise nx.PowerIterationFailedConvergence(max_iter)
    return _by_node(G, ranks)


def betweenness_centrality(
    G: Graph,
    k: int | None = None,
    normalized: bool = True,
    weight: str | None = None,
    endpoints: bool = False,
    seed: Any = None,
) -> dict[Any, float]:
    return _by_node(G, _centrality.betweenness_centrality(G, normalized=normalized))


def connected_components(G: Graph) -> Iterator[set[Any]]:
    yield from _groups(G, _labels(G))


def number_connected_components(G: Graph) -> int:
    return len(np.unique(_labels(G)))


def is_connected(G: Graph) -> bool:
    return _is_one(G)


def strongly_connected_components(G: Graph) -> Iterator[set[Any]]:
    yield from _groups(G, _labels(G, strong=True))


def number_strongly_connected_components(G: Graph) -> int:
    return len(np.unique(_labels(G, strong=True)))


def is_strongly_connected(G: Graph) -> bool:
    return _is_one(G, strong=True)


def core_number(G: Graph) -> dict[Any, int]:
    import networkx as nx

    if G.number_of_loops:
        raise nx.NetworkXNotImplemented("Input graph has self loops which is not permitted.")
    return _by_node(G, _components.core_number(G))


def triangles(G: Graph, nodes: Nodes = None) -> Any:
    return _of_nodes(G, np.asarray(_counts.triangles(G, each=True)), nodes)


def clustering(G: Graph, nodes: Nodes = None, weight: str | None = None) -> Any:
    return _of_nodes(G, _counts.clustering(G), nodes)


def transitivity(G: Graph) -> float:
    degrees = _counts._simple_degrees(G)
    pairs = int((degrees * (degrees - 1)).sum())
    found = int(_counts.triangles(G))
    return 6 * found / pairs if found else 0


def average_clustering(G: Graph, nodes: Nodes = None, weight: str | None = None, count_zeros: bool = True) -> float:
    found: dict[Any, float] = _of_nodes(G, _counts.clustering(G), nodes)
    values = [value for value in found.values() if count_zeros or value > 0]
    return sum(values) / len(values)


def single_source_shortest_path_length(G: Graph, source: Any, cutoff: int | None = None) -> dict[Any, int]:
    levels = _searching.bfs(G, _number(G, source), cutoff=None if cutoff is None else max(cutoff, 0))
    return _reached(G, levels, cutoff)


def multi_source_dijkstra_path_length(
    G: Graph, sources: Any, cutoff: float | None = None, weight: str = "weight"
) -> dict[Any, float]:
    if not sources:
        raise ValueError("sources must not be empty")
    numbers = [_number(G, source) for source in sources]
    if cutoff is not None and cutoff < 0:
        return dict.fromkeys(sources, 0.0)
    return _reached(G, _searching.shortest_paths(G, numbers), cutoff)


def single_source_dijkstra_path_length(
    G: Graph, source: Any, cutoff: float | None = None, weight: str = "weight"
) -> dict[Any, float]:
    return multi_source_dijkstra_path_length(G, [source], cutoff)


def _length(found: npt.NDArray[Any], G: Graph, source: Any, target: Any) -> Any:
    """The length of a path, of those from a source."""
    import networkx as nx

    number = _found(G, target)
    length = -1 if number is None else found[number].item()
    if not 0 <= length < np.inf:
        raise nx.NetworkXNoPath(f"Node {target} not reachable from {source}")
    return length


def dijkstra_path_length(G: Graph, source: Any, target: Any, weight: str = "weight") -> float:
    found: float = _length(_searching.shortest_paths(G, _number(G, source)), G, source, target)
    return found


def shortest_path_length(
    G: Graph, source: Any = None, target: Any = None, weight: str | None = None, method: str = "dijkstra"
) -> Any:
    if target is not None and weight is None:
        _number(G, target)
    lengths: Any = _searching.bfs if weight is None else _searching.shortest_paths
    found = lengths(G, _number(G, source))
    return _reached(G, found, None) if target is None else _length(found, G, source, target)


def has_path(G: Graph, source: Any, target: Any) -> bool:
    return bool(_searching.bfs(G, _number(G, source))[_number(G, target)] >= 0)


def node_connected_component(G: Graph, n: Any) -> set[Any]:
    return set(_names(G, np.flatnonzero(_searching.bfs(G, _number(G, n)) >= 0)))


def approximate_diameter(G: Graph, seed: Any = None) -> int:
    import networkx as nx

    if G.number_of_vertices == 0:
        raise nx.NetworkXError("Expected non-empty NetworkX graph!")
    if (_searching.bfs(G, 0) < 0).any():
        raise nx.NetworkXError("Graph not connected.")
    return _searching.diameter(G)


def _beyond(G: Graph, source: Any, direction: str) -> set[Any]:
    levels = _searching.bfs(G, _number(G, source), direction=direction)
    return set(_names(G, np.flatnonzero(levels > 0)))


def descendants(G: Graph, source: Any) -> set[Any]:
    return _beyond(G, source, "out")


def ancestors(G: Graph, source: Any) -> set[Any]:
    return _beyond(G, source, "in")


def is_directed_acyclic_graph(G: Graph) -> bool:
    return G.directed and bool((_components.generations_of(G) >= 0).all())


def topological_generations(G: Graph) -> Iterator[list[Any]]:
    import networkx as nx

    if not G.directed:
        raise nx.NetworkXError("Topological sort not defined on undirected graphs.")
    generations = _components.generations_of(G)
    if (generations < 0).any():
        raise nx.NetworkXUnfeasible("Graph contains a cycle.")
    order = np.argsort(generations, kind="stable")
    for part in np.split(order, np.flatnonzero(np.diff(generations[order])) + 1):
        if len(part):
            yield _names(G, part)


def topological_sort(G: Graph) -> Iterator[Any]:
    for generation in topological_generations(G):
        yield from generation


def louvain_communities(
    G: Graph,
    weight: str | None = "weight",
    resolution: float = 1,
    threshold: float = 0.0000001,
    max_level: int | None = None,
    seed: Any = None,
) -> list[set[Any]]:
    bits = seed.getrandbits(64)
    labels, _ = _communities.louvain_communities(G, resolution=resolution, threshold=threshold, seed=bits)
    return list(_groups(G, labels))


def fast_label_propagation_communities(G: Graph, *, weight: str | None = None, seed: Any = None) -> Iterator[set[Any]]:
    yield from _groups(G, _communities.label_propagation(G, seed=seed.getrandbits(64)))


def maximal_independent_set(G: Graph, nodes: Any = None, seed: Any = None) -> list[Any]:
    # networkx makes a generator of whatever it was given.
    return _names(G, _communities.maximal_independent_set(G, seed=seed.getrandbits(64)))


def number_of_selfloops(G: Graph) -> int:
    return G.number_of_loops


def _centrality_by(G: Graph, direction: str) -> dict[Any, float]:
    degrees = G.degrees(direction)
    if not G.directed:
        # A loop counts twice here.
        degrees = 2 * degrees - _counts._simple_degrees(G)
    if len(degrees) <= 1:
        return dict.fromkeys(_names(G, np.arange(len(degrees))), 1)
    return _by_node(G, degrees * (1.0 / (len(degrees) - 1.0)))


def degree_centrality(G: Graph) -> dict[Any, float]:
    return _centrality_by(G, "both")


def in_degree_centrality(G: Graph) -> dict[Any, float]:
    return _centrality_by(G, "in")


def out_degree_centrality(G: Graph) -> dict[Any, float]:
    return _centrality_by(G, "out")


# -- what networkx asks -----------------------------------------------------------------------------------------------

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        ancestors,
        approximate_diameter,
        average_clustering,
        betweenness_centrality,
        clustering,
        connected_components,
        core_number,
        degree_centrality,
        descendants,
        dijkstra_path_length,
        fast_label_propagation_communities,
        has_path,
        in_degree_centrality,
        is_connected,
        is_directed_acyclic_graph,
        is_strongly_connected,
        louvain_communities,
        maximal_independent_set,
        multi_source_dijkstra_path_length,
        node_connected_component,
        number_connected_components,
        number_of_selfloops,
        number_strongly_connected_components,
        out_degree_centrality,
        pagerank,
        shortest_path_length,
        single_source_dijkstra_path_length,
        single_source_shortest_path_length,
        strongly_connected_components,
        topological_generations,
        topological_sort,
        transitivity,
        triangles,
    )
} | {
    "weakly_connected_components": connected_components,
    "number_weakly_connected_components": number_connected_components,
    "is_weakly_connected": is_connected,
}
# Arguments that must be what they are unless given.
_FIXED = {
    "pagerank": ("personalization", "nstart", "dangling"),
    "betweenness_centrality": ("k", "weight", "endpoints"),
    "clustering": ("weight",),
    "average_clustering": ("weight",),
    "louvain_communities": ("max_level",),
    "fast_label_propagation_communities": ("weight",),
    "maximal_independent_set": ("nodes",),
}
_UNDIRECTED = (
    "approximate_diameter",
    "average_clustering",
    "clustering",
    "fast_label_propagation_communities",
    "louvain_communities",
    "transitivity",
)
_ALONG_WEIGHTS = (
    "dijkstra_path_length",
    "multi_source_dijkstra_path_length",
    "shortest_path_length",
    "single_source_dijkstra_path_length",
)


def _has(graph: Any, weight: str) -> bool:
    """Whether an edge has a weight."""
    if isinstance(graph, Graph):
        return graph.dtype is not None
    return any(weight in data for *_, data in graph.edges(data=True))


def _reason(name: str, given: dict[str, Any], defaults: dict[str, Any]) -> str | None:
    """Why a call cannot be run here."""
    G = given["G"]
    for argument in _FIXED.get(name, ()):
        if given[argument] is not defaults[argument] and given[argument] != defaults[argument]:
            return f"{argument}={given[argument]!r} is not supported"
    if name in _UNDIRECTED and G.is_directed():
        return "of undirected graphs only"
    if G.is_multigraph():
        return "edges that are there again would be one"
    weight = given.get("weight")
    if name == "pagerank" and weight is not None and _has(G, weight):
        return "weights do not count; weight=None is right"
    if name == "louvain_communities" and weight != "weight" and type(G) is Graph and G.dtype is not None:
        return 'the weights of a stored graph are called "weight", and count'
    if name == "shortest_path_length":
        if given["source"] is None:
            return "of all pairs, or to a target from everywhere"
        if weight is None:
            return None
    if name in _ALONG_WEIGHTS:
        if not isinstance(weight, str):
            return "weight is the name of an attribute"
        if isinstance(G, Graph) and weight != "weight" and not isinstance(G, Converted):
            return 'the weights of a stored graph are called "weight"'
    return None


def can_run(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool | str:
    """Whether a call means what networkx means by it; else why not."""
    signature = inspect.signature(_FUNCTIONS[name])
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        return str(error)
    bound.apply_defaults()
    defaults = {name: parameter.default for name, parameter in signature.parameters.items()}
    return _reason(name, bound.arguments, defaults) or True


def convert_from_nx(graph: Any, *, edge_attrs: dict[str, Any] | None = None, name: str = "", **_: Any) -> Graph:
    """Stores a graph of networkx's in scratch."""
    if graph.is_multigraph() or (edge_attrs is not None and set(edge_attrs.values()) - {1, None}):
        raise NotImplementedError("outcore: multigraphs, and edges that weigh something but 1 unless they say so")
    attributes = [] if edge_attrs is None else [attribute for attribute in edge_attrs if _has(graph, attribute)]
    if len(attributes) > 1:
        raise NotImplementedError(f"outcore: {len(attributes)} attributes of edges; there is room for one")
    return Converted(graph, attributes[0] if attributes else None)


def convert_to_nx(found: Any, **_: Any) -> Any:
    """A stored graph as networkx has it, in memory; other results are what they are."""
    import networkx as nx

    if not isinstance(found, Graph):
        return found
    graph = nx.DiGraph() if found.directed else nx.Graph()
    graph.add_nodes_from(found.names if isinstance(found, Converted) else range(found.number_of_vertices))
    for ids, begins, neighbours, weights in found._parts("out"):
        ends = _names(found, np.repeat(ids, np.diff(begins))), _names(found, neighbours)
        if found.dtype is None:
            graph.add_edges_from(zip(*ends, strict=True))
        else:
            graph.add_weighted_edges_from(zip(*ends, weights.astype(found.dtype).tolist(), strict=True))
    return graph


def get_info() -> dict[str, Any]:
    """What networkx tells of this backend in its documentation."""
    return {
        "backend_name": "outcore",
        "project": "outcore",
        "package": "outcore",
        "short_summary": "Graphs on disk, larger than memory.",
        "functions": {name: {} for name in _FUNCTIONS},
    }


backend_interface = SimpleNamespace(
    **_FUNCTIONS, can_run=can_run, convert_from_nx=convert_from_nx, convert_to_nx=convert_to_nx
)

__all__ = ["Converted", "backend_interface", "can_run", "convert_from_nx", "convert_to_nx", "get_info"]
