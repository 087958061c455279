"""Views of a graph for users of networkx: vertices, degrees, neighbours, edges. No more of them is in memory
than is looked at."""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, Mapping, Set
from typing import Any, NoReturn, TypeAlias

from outcore._base.shortened import short_path
from outcore._base.types import NDArray
from outcore.errors import ArgumentError
from outcore.graph._stored import StoredLists, is_vertex

_FIXED = "a stored graph does not change; from_arrays and from_edges store another one"
Attributes: TypeAlias = dict[str, float]  # of an edge: its weight, if it has one
_WHOLE = "nx.Graph(G), or nx.DiGraph(G), has all of the graph in memory, and that"
_LISTS = "G.lists(vertices) reads the lists of several vertices"

# Why a method of networkx's graphs is absent, and what is nearest.
ABSENT = {
    **dict.fromkeys(
        (
            "add_edge",
            "add_edges_from",
            "add_node",
            "add_nodes_from",
            "add_weighted_edges_from",
            "clear",
            "clear_edges",
            "remove_edge",
            "remove_edges_from",
            "remove_node",
            "remove_nodes_from",
            "update",
        ),
        _FIXED,
    ),
    **dict.fromkeys(("copy", "to_directed", "to_undirected"), _WHOLE),
    "reverse": '"in" as a direction goes against the edges: G.neighbors(v, "in"), bfs(G, v, direction="in")',
    "subgraph": _LISTS,
    "edge_subgraph": _LISTS,
    "nbunch_iter": "vertices are 0 to n - 1: v in G",
    "get_edge_data": "G[u].get(v)",
    "has_predecessor": "G.has_edge(v, u)",
    "has_successor": "G.has_edge(u, v)",
    "name": "G.path",
    "in_edges": '(u, v) for u in G.neighbors(v, "in")',
    "out_edges": "G.edges",
}


class Count(int):
    """A number that gives itself when it is called, as the methods do that networkx has for it."""

    def __call__(self) -> int:
        return int(self)


def absent(name: str) -> NoReturn:
    """Raises AttributeError, which says what is nearest."""
    reason = f": {ABSENT[name]}" if name in ABSENT else ""
    raise AttributeError(f"a stored graph has no attribute {name!r}{reason}")


def no_weight(name: str, weight: str | None) -> None:
    if weight is not None:
        raise ArgumentError(f"{name}: weight={weight!r}; weights do not count here, to_sparse(G) has sums of them")


class _OfVertices:
    """A view with the vertices, 0 to n - 1, as its members or keys."""

    _graph: StoredLists

    def __len__(self) -> int:
        return self._graph.number_of_vertices

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self)))

    def __contains__(self, vertex: object) -> bool:
        return is_vertex(self._graph, vertex)


class NodeView(_OfVertices, Set[int]):
    """The vertices, 0 to n - 1."""

    def __init__(self, graph: StoredLists) -> None:
        self._graph = graph

    @classmethod
    def _from_iterable(cls, it: Iterable[object]) -> set[Any]:
        return set(it)

    def __getitem__(self, vertex: int) -> Attributes:
        """The attributes of a vertex: a stored graph has none. Raises KeyError for no vertex."""
        if not is_vertex(self._graph, vertex):
            raise KeyError(vertex)
        return {}

    def __call__(self, data: bool | str = False, default: object = None) -> Iterable[Any]:
        """The vertices; with `data` pairs of these and their attributes, or the default of one that is named."""
        if data is False:
            return self
        return self.items() if data is True else ((vertex, default) for vertex in self)

    def data(self, data: bool | str = True, default: object = None) -> Iterable[Any]:
        """As a call, with attributes unless told."""
        return self(data, default)

    def items(self) -> Iterator[tuple[int, Attributes]]:
        """Vertices with what is known of them: nothing."""
        return ((vertex, {}) for vertex in self)

    def __repr__(self) -> str:
        return f"Nodes({len(self)})"


class DegreeView:
    """The number of edges at each vertex, as networkx counts: a loop of an undirected graph counts twice."""

    def __init__(self, graph: StoredLists, direction: str) -> None:
        self._graph, self._direction = graph, direction

    def __getitem__(self, vertex: int) -> int:
        G, directions = self._graph, ("out", "in") if self._direction == "both" else (self._direction,)
        lists = [G.lists([vertex], direction)[1] for direction in directions[: 1 + G.directed]]
        return sum(map(len, lists)) + (not G.directed and vertex in lists[0])

    def __len__(self) -> int:
        return self._graph.number_of_vertices

    def __iter__(self) -> Iterator[tuple[int, int]]:
        G, degrees = self._graph, self._graph.degrees(self._direction)
        if not G.directed:
            degrees[G._loops()] += 1
        for begin in range(0, len(degrees), 1 << 16):
            yield from enumerate(degrees[begin : begin + (1 << 16)].tolist(), begin)

    def __call__(self, nbunch: int | Iterable[int] | None = None, weight: str | None = None) -> Any:
        no_weight("degree", weight)
        if nbunch is None:
            return self
        if not isinstance(nbunch, Iterable):
            return self[nbunch]
        return ((vertex, self[vertex]) for vertex in nbunch if is_vertex(self._graph, vertex))

    def __repr__(self) -> str:
        return f"Degrees({self._direction!r})"


class AdjacencyView(_OfVertices, Mapping[int, dict[int, Attributes]]):
    """The neighbours of each vertex and their weights, each list read when it is asked for."""

    def __init__(self, graph: StoredLists, direction: str) -> None:
        self._graph, self._direction = graph, direction

    def __getitem__(self, vertex: int) -> dict[int, Attributes]:
        _, neighbours, weights = self._graph.lists([vertex], self._direction)
        return self._of(neighbours, weights)

    def _of(self, neighbours: NDArray, weights: Any) -> dict[int, Attributes]:
        dtype = self._graph.dtype
        if dtype is None:
            return {neighbour: {} for neighbour in neighbours.tolist()}
        weighted = zip(neighbours.tolist(), weights.astype(dtype).tolist(), strict=True)
        return {neighbour: {"weight": weight} for neighbour, weight in weighted}

    def items(self) -> ItemsView[int, dict[int, Attributes]]:
        return _Lists(self)

    def __repr__(self) -> str:
        return f"Adjacency({self._direction!r})"


class _Lists(ItemsView[int, dict[int, Attributes]]):
    """Every vertex with its neighbours, from one read of the lists in order."""

    _mapping: AdjacencyView

    def __iter__(self) -> Iterator[tuple[int, dict[int, Attributes]]]:
        adjacency = self._mapping
        for ids, begins, neighbours, weights in adjacency._graph._parts(adjacency._direction):
            for at, vertex in enumerate(ids.tolist()):
                part = slice(begins[at], begins[at + 1])
                yield vertex, adjacency._of(neighbours[part], weights[part])


class EdgeView:
    """The edges: pairs of vertices, an undirected one once, from its lower end."""

    def __init__(self, graph: StoredLists) -> None:
        self._graph = graph

    def __len__(self) -> int:
        return self._graph._count_edges()

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return self._each(None, False, None)

    def __contains__(self, edge: Any) -> bool:
        return self._graph.has_edge(*edge[:2])

    def __call__(
        self, nbunch: int | Iterable[int] | None = None, data: bool | str = False, default: object = None
    ) -> Iterable[tuple[Any, ...]]:
        """The edges from vertices of `nbunch`, all unless given; with `data` their attributes, or one of these."""
        return self if nbunch is None and data is False else self._each(nbunch, data, default)

    def _each(self, nbunch: int | Iterable[int] | None, data: bool | str, default: object) -> Iterator[Any]:
        G = self._graph
        vertices = None if nbunch is None else nbunch if isinstance(nbunch, Iterable) else [nbunch]
        adjacency = AdjacencyView(G, "out")
        rows = (
            adjacency.items()
            if vertices is None
            else ((vertex, adjacency[vertex]) for vertex in vertices if vertex in G)
        )
        # An undirected edge between two of those that are given comes once: from the one that is first.
        done: set[int] = set()
        for vertex, neighbours in rows:
            for neighbour, attributes in neighbours.items():
                if not G.directed and (neighbour < vertex if vertices is None else neighbour in done):
                    continue
                if data is False:
                    yield vertex, neighbour
                else:
                    yield vertex, neighbour, attributes if data is True else attributes.get(data, default)
            if vertices is not None:
                done.add(vertex)

    def __repr__(self) -> str:
        return f"Edges({short_path(str(self._graph.path), 80)!r})"


__all__ = [
    "ABSENT",
    "AdjacencyView",
    "Attributes",
    "Count",
    "DegreeView",
    "EdgeView",
    "NodeView",
    "absent",
    "no_weight",
]
