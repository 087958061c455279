"""Functions that networkx dispatches to graphs on disk: `networkx.pagerank(G)` for a `Graph`, or `backend="outcore"`
for its own.

Functions that networkx has a name for are in the modules that are imported here, with networkx's own arguments; here is
which of these they take. networkx itself is imported where it calls: whoever has a graph of its own, or an error to
raise, has it loaded.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from outcore._base.types import Keywords
from outcore.errors import ArgumentError
from outcore.graph import _networkx_measures, _networkx_parts, _networkx_paths, _networkx_reach
from outcore.graph._graph import Graph
from outcore.graph._networkx_names import Converted, names_of


class _RefusedError(ArgumentError, NotImplementedError):
    """An argument that is refused here. networkx, which may take it, runs the call itself where it is allowed to."""


def _dispatched(function: Callable[..., object]) -> Callable[..., object]:
    """A function whose refused arguments go to networkx where `fallback_to_nx` is set: networkx does not fall
    back itself from a backend that is named in the call."""

    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> object:
        import networkx as nx

        try:
            return function(*args, **kwargs)
        except ArgumentError as error:
            if not nx.config.fallback_to_nx:
                raise _RefusedError(error.message) from error
        graph, *others = args if args else (kwargs.pop("G"),)
        name = function.__name__
        theirs = getattr(nx, name, None) or getattr(nx.community, name)
        return theirs(convert_to_nx(graph), *others, **kwargs, backend="networkx")

    return call


def _functions(module: ModuleType) -> dict[str, Callable[..., object]]:
    return {name: _dispatched(getattr(module, name)) for name in module.__all__}


_FUNCTIONS = {
    name: function
    for module in (_networkx_measures, _networkx_parts, _networkx_paths, _networkx_reach)
    for name, function in _functions(module).items()
} | {
    "weakly_connected_components": _dispatched(_networkx_parts.connected_components),
    "number_weakly_connected_components": _dispatched(_networkx_parts.number_connected_components),
    "is_weakly_connected": _dispatched(_networkx_parts.is_connected),
}
# Arguments that must be what they are unless given.
_FIXED = {
    "betweenness_centrality": ("weight",),
    "clustering": ("weight",),
    "average_clustering": ("weight",),
    "louvain_communities": ("max_level",),
    "fast_label_propagation_communities": ("weight",),
    "asyn_lpa_communities": ("weight",),
    "kosaraju_strongly_connected_components": ("source",),
    "dag_longest_path": ("default_weight", "topo_order"),
    "dag_longest_path_length": ("default_weight",),
    "eccentricity": ("sp",),
    **dict.fromkeys(("center", "diameter", "periphery", "radius"), ("e",)),
    **dict.fromkeys(("bfs_edges", "bfs_predecessors", "bfs_successors", "bfs_tree"), ("sort_neighbors",)),
}
_UNDIRECTED = (
    "approximate_diameter",
    "asyn_lpa_communities",
    "average_clustering",
    "clustering",
    "fast_label_propagation_communities",
    "louvain_communities",
    "transitivity",
)
_IN_ORDER = ("bfs_edges", "bfs_predecessors", "bfs_successors", "bfs_tree")
# Functions that do not take weights into account, though networkx does.
_WITHOUT_WEIGHTS = ("dag_longest_path", "dag_longest_path_length")
# Functions of paths along weights, and of paths along weights if one is named, by the argument that names it.
_DIJKSTRA = (
    "all_pairs_dijkstra",
    "all_pairs_dijkstra_path",
    "all_pairs_dijkstra_path_length",
    "bidirectional_dijkstra",
    "dijkstra_path",
    "dijkstra_path_length",
    "multi_source_dijkstra",
    "multi_source_dijkstra_path",
    "multi_source_dijkstra_path_length",
    "single_source_dijkstra",
    "single_source_dijkstra_path",
    "single_source_dijkstra_path_length",
)
_PERHAPS_WEIGHTED = {
    "all_shortest_paths": "weight",
    "average_shortest_path_length": "weight",
    "center": "weight",
    "closeness_centrality": "distance",
    "diameter": "weight",
    "eccentricity": "weight",
    "harmonic_centrality": "distance",
    "periphery": "weight",
    "radius": "weight",
    "shortest_path": "weight",
    "shortest_path_length": "weight",
    "single_source_all_shortest_paths": "weight",
    "wiener_index": "weight",
}


# Methods that read nodes and edges. A class that overrides one may give something else than networkx keeps.
_READ = (
    "__contains__",
    "__getitem__",
    "__iter__",
    "__len__",
    "adj",
    "adjacency",
    "degree",
    "edges",
    "has_edge",
    "has_node",
    "in_degree",
    "in_edges",
    "is_directed",
    "is_multigraph",
    "neighbors",
    "nodes",
    "number_of_edges",
    "number_of_nodes",
    "order",
    "out_degree",
    "out_edges",
    "pred",
    "predecessors",
    "size",
    "succ",
    "successors",
)
# Nodes and edges of a graph of networkx's below which networkx takes less time than storing and working on the graph.
# Measured on 2 busy cores, networkx 3.6, random graphs; milliseconds of networkx, and here with storing:
#
#   nodes, edges       pagerank    core_number  average_clustering  betweenness_centrality(k=10)
#   3,000, 3,000       19, 110     6, 94        28, 125             101, 91
#   3,000, 15,000      83, 169     42, 164      253, 161            425, 199
#   10,000, 50,000     363, 262    147, 256     579, 185            1468, 387
#   30,000, 150,000    1820, 730   1002, 1008   2967, 659           10368, 1164
_SMALL = 60_000
_SMALL_OF = {"betweenness_centrality": 6_000}
# One search of a graph in memory takes networkx less time than storing the graph, at every size: 772 and 2913 ms for
# connected_components, 1196 and 2476 for lengths of paths, of 100,000 nodes and 500,000 edges.
_ONE_SEARCH = ("connected_components", "single_source_shortest_path_length")


def _reason_of_class(graph: object) -> str | None:
    """Why the edges of a graph are not known from what networkx keeps of it."""
    if isinstance(graph, Graph):
        return None
    import networkx as nx

    if not isinstance(graph, nx.Graph):
        return f"{type(graph).__name__} is not a graph"
    kind = type(graph)
    bases = (nx.MultiDiGraph, nx.MultiGraph, nx.DiGraph, nx.Graph)
    known = next(base for base in bases if issubclass(kind, base))
    for name in _READ:
        if inspect.getattr_static(kind, name, None) is not inspect.getattr_static(known, name, None):
            return f"{kind.__name__} has {name} of its own; edges of {known.__name__} only are stored"
    return None


def _has(graph: Any, weight: str) -> bool:
    """Whether an edge has a weight."""
    if isinstance(graph, Graph):
        return graph.dtype is not None
    return any(weight in data for *_, data in graph.edges(data=True))


def _reason(name: str, arguments: Keywords, defaults: Keywords) -> str | None:
    """Why a call cannot be run here."""
    G = arguments["G"]
    if (reason := _reason_of_class(G)) is not None:
        return reason
    for argument in _FIXED.get(name, ()):
        if arguments[argument] is not defaults[argument] and arguments[argument] != defaults[argument]:
            return f"{argument}={arguments[argument]!r} is not supported"
    if name in _UNDIRECTED and G.is_directed():
        return "of undirected graphs only"
    if G.is_multigraph():
        return "edges that are there again would be one"
    if name in _IN_ORDER and type(G) is not Graph:
        return "neighbours are in ascending order here, not in the order of their edges"
    if name == "betweenness_centrality" and arguments["k"] is not None and _is_before_3_5():
        return f"k={arguments['k']!r}: sums are scaled as networkx 3.5 does"
    return _reason_of_weight(name, G, arguments)


def _reason_of_weight(name: str, G: object, arguments: Keywords) -> str | None:
    weight = arguments.get(_PERHAPS_WEIGHTED.get(name, "weight"))
    if name in _WITHOUT_WEIGHTS:
        return "weights do not count; weight=None is right" if weight is not None and _has(G, weight) else None
    named = 'the weights of a stored graph are called "weight"'
    if name == "louvain_communities" and weight != "weight" and type(G) is Graph and G.dtype is not None:
        return f"{named}, and count"
    if name in ("modularity", "pagerank") and weight not in (None, "weight") and type(G) is Graph:
        return named
    if name in _DIJKSTRA or (name in _PERHAPS_WEIGHTED and weight is not None):
        if arguments.get("method") not in (None, "dijkstra"):
            return f"method={arguments['method']!r}: along weights by Dijkstra's distances only"
        if not isinstance(weight, str):
            return "weight is the name of an attribute"
        if type(G) is Graph and weight != "weight":
            return named
    return None


def _is_before_3_5() -> bool:
    import networkx as nx

    return tuple(map(int, nx.__version__.split(".")[:2])) < (3, 5)


def can_run(name: str, args: tuple[object, ...], kwargs: Keywords) -> bool | str:
    """Whether a call means what networkx means by it; else why not."""
    signature = inspect.signature(_FUNCTIONS[name])
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        return str(error)
    bound.apply_defaults()
    defaults = {name: parameter.default for name, parameter in signature.parameters.items()}
    return _reason(name, bound.arguments, defaults) or True


def should_run(name: str, args: tuple[object, ...], kwargs: Keywords) -> bool | str:
    """Whether a call that was not asked of this backend by name pays here; else why not."""
    graph: Any = args[0] if args else kwargs.get("G")
    if isinstance(graph, Graph) or graph is None:
        return True
    if name in _ONE_SEARCH:
        return "one search of a graph in memory takes networkx less time than storing the graph"
    least = _SMALL_OF.get(name, _SMALL)
    if len(graph) >= least or len(graph) + graph.number_of_edges() >= least:
        return True
    return f"a graph of fewer than {least} nodes and edges is stored in more time than networkx takes"


def convert_from_nx(graph: Any, *, edge_attrs: Keywords | None = None, name: str = "", **_: Any) -> Graph:
    """Stores a graph of networkx's in scratch. Raises NotImplementedError for one that cannot be stored as it is."""
    if (reason := _reason_of_class(graph)) is not None:
        raise NotImplementedError(f"outcore: {reason}")
    if graph.is_multigraph() or (edge_attrs is not None and set(edge_attrs.values()) - {1, None}):
        raise NotImplementedError("outcore: multigraphs, and edges that weigh something but 1 unless they say so")
    attributes = [] if edge_attrs is None else [attribute for attribute in edge_attrs if _has(graph, attribute)]
    if len(attributes) > 1:
        raise NotImplementedError(f"outcore: {len(attributes)} attributes of edges; there is room for one")
    try:
        return Converted(graph, attributes[0] if attributes else None)
    except ArgumentError as error:
        raise _RefusedError(error.message) from error


def convert_to_nx(result: object, **_: object) -> object:
    """A stored graph as networkx has it, in memory; other results are what they are."""
    import networkx as nx

    if not isinstance(result, Graph):
        return result
    graph = nx.DiGraph() if result.directed else nx.Graph()
    graph.add_nodes_from(result.names if isinstance(result, Converted) else range(result.number_of_vertices))
    for ids, begins, neighbours, weights in result._parts("out"):
        ends = names_of(result, np.repeat(ids, np.diff(begins))), names_of(result, neighbours)
        if result.dtype is None:
            graph.add_edges_from(zip(*ends, strict=True))
        else:
            graph.add_weighted_edges_from(zip(*ends, weights.astype(result.dtype).tolist(), strict=True))
    return graph


def get_info() -> Keywords:
    """The description of this backend for networkx's documentation."""
    return {
        "backend_name": "outcore",
        "project": "outcore",
        "package": "outcore",
        "short_summary": "Graphs on disk, larger than memory.",
        "functions": {name: {} for name in _FUNCTIONS},
    }


backend_interface = SimpleNamespace(
    **_FUNCTIONS, can_run=can_run, should_run=should_run, convert_from_nx=convert_from_nx, convert_to_nx=convert_to_nx
)

__all__ = ["Converted", "backend_interface", "can_run", "convert_from_nx", "convert_to_nx", "get_info", "should_run"]
