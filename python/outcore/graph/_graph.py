"""A stored graph."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import numpy.typing as npt

from outcore import _core
from outcore._base.shortened import call_text, short_path
from outcore._base.sizes import format_size
from outcore._base.types import PathLike
from outcore._base.urls import refuse_url
from outcore._lazy.carded import Carded, NamedFact
from outcore._session.whole import whole_run
from outcore.errors import ArgumentError, SourceChangedError
from outcore.graph._program import VertexProgram, run
from outcore.graph._stored import StoredLists, checked_ids, session
from outcore.graph._views import AdjacencyView, Attributes, Count, DegreeView, EdgeView, NodeView, absent, no_weight

_PATH = 80  # characters of a path in a terminal


class Graph(StoredLists, Carded):
    """A graph in a file: vertices 0 to n - 1, their lists of neighbours, and weights if there are any.

    Of the file, an index of about 1.125 bytes a vertex and direction is in memory; lists are read when they are wanted.
    Use `open`, or what stores a graph: `from_edges`, `from_sparse`, `from_networkx`, `from_arrays`. It reads as a graph
    of networkx's does: `v in G`, `G[v]`, `G.nodes`, `G.edges`, `G.degree`, of which no more is in memory than is asked
    for.

    >>> import outcore as oc, tempfile, pathlib
    >>> G = oc.graph.from_arrays([0, 0], [1, 2], pathlib.Path(tempfile.mkdtemp()) / "g.ocg")
    >>> G.neighbors(0)
    array([1, 2])
    >>> len(G), G.has_edge(0, 2), list(G.edges)
    (3, True, [(0, 1), (0, 2)])
    """

    # By this networkx knows whose functions are called: `networkx.pagerank(G)`.
    __networkx_backend__ = "outcore"

    @property
    def number_of_edges(self) -> int:
        """Edges: of an undirected graph those with two ends count once, as those from a vertex to itself. I/O: of an
        undirected graph one read of the lists the first time."""
        return Count(self._count_edges())  # networkx calls it

    def is_directed(self) -> bool:
        """As `directed`: what networkx asks. No I/O."""
        return self.directed

    def is_multigraph(self) -> bool:
        """False: edges that are there again are one. networkx asks for it. No I/O."""
        return False

    def run(
        self,
        program: VertexProgram,
        active: npt.ArrayLike | None = None,
        *,
        iterations: int | None = None,
        mode: Literal["synchronous", "asynchronous"] = "synchronous",
    ) -> VertexProgram:
        """Runs a program of one's own from the `active` vertices (all unless given) on until none is, or for so many
        iterations. Gives the program, whose states tell what was found. See `VertexProgram`.

        In "asynchronous" mode `on_message` is called behind every `on_edges` with what that sent, so that later lists
        of the same iteration meet the new states: programs that go to one fixed point whatever the order (least labels,
        shortest distances) take fewer iterations, others may find something else. Raises ArgumentError for another
        mode. I/O: the lists it asks for.
        """
        return run(self, program, active, iterations, mode)

    # -- what users of networkx read --------------------------------------------------------------------------------

    def __len__(self) -> int:
        return self.number_of_vertices

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.number_of_vertices))

    def __getitem__(self, vertex: int) -> dict[int, Attributes]:
        """The neighbours that edges lead to, each with its weight if there is one. I/O: the pages that hold them."""
        return self.adj[vertex]

    def __array__(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("a stored graph is no array; to_sparse makes a sparse matrix of it")

    if not TYPE_CHECKING:  # what checks types takes every name for there otherwise

        def __getattr__(self, name: str) -> Any:
            absent(name)

    @property
    def nodes(self) -> NodeView:
        """The vertices, as a set that takes no memory. No I/O."""
        return NodeView(self)

    @property
    def edges(self) -> EdgeView:
        """The edges: `for u, v in G.edges`, `(u, v) in G.edges`, `G.edges(data="weight")`. I/O: one read of the lists
        for all."""
        return EdgeView(self)

    @property
    def adj(self) -> AdjacencyView:
        """By vertex the neighbours that edges lead to, each with its weight if there is one. I/O: the pages of each
        list that is asked for."""
        return AdjacencyView(self, "out")

    # Names by which networkx's own functions read neighbours.
    succ = _adj = _succ = adj

    @property
    def pred(self) -> AdjacencyView:
        """By vertex the neighbours that edges come from. I/O: as that of `adj`."""
        return AdjacencyView(self, "in")

    _pred = pred

    @property
    def degree(self) -> DegreeView:
        """The number of edges at a vertex, a loop of an undirected graph twice: `G.degree[v]`; `for v, d in G.degree`.
        I/O: a list for a vertex; about a byte a vertex for all, which take 8 bytes of memory each, as `degrees`."""
        return DegreeView(self, "both")

    @property
    def in_degree(self) -> DegreeView:
        """As `degree`, of edges that lead to a vertex."""
        return DegreeView(self, "in")

    @property
    def out_degree(self) -> DegreeView:
        """As `degree`, of edges that lead from a vertex."""
        return DegreeView(self, "out")

    @property
    def graph(self) -> dict[str, object]:
        """Attributes of the graph: there are none."""
        return {}

    def number_of_nodes(self) -> int:
        """As `number_of_vertices`. No I/O."""
        return self.number_of_vertices

    def order(self) -> int:
        """As `number_of_vertices`. No I/O."""
        return self.number_of_vertices

    def size(self, weight: str | None = None) -> int:
        """As `number_of_edges`. Raises ArgumentError for a weight: `to_sparse` has sums of them."""
        no_weight("size", weight)
        return int(self.number_of_edges)

    def has_node(self, n: object) -> bool:
        """Whether `n` is a vertex. No I/O."""
        return n in self

    def successors(self, n: int) -> Iterator[int]:
        """The neighbours that edges lead to. Raises IndexingError for what is no vertex. I/O: the pages that hold
        them."""
        return iter(self.lists([n])[1].tolist())

    def predecessors(self, n: int) -> Iterator[int]:
        """The neighbours that edges come from. Raises IndexingError for what is no vertex. I/O: the pages that hold
        them."""
        return iter(self.lists([n], "in")[1].tolist())

    def adjacency(self) -> Iterator[tuple[int, dict[int, Attributes]]]:
        """Every vertex with its neighbours. I/O: one read of the lists."""
        return iter(self.adj.items())

    def __reduce__(self) -> tuple[Any, ...]:
        """By path: whoever loads it opens the file, which must be what it is now.

        Raises ArgumentError for a graph in scratch, which goes with its last reader here.
        """
        if self._held is not None:
            raise ArgumentError(
                f"{self.path}: a graph in scratch is no other process's; give it a path when it is made"
            )
        return _reopened, (str(self.path), self._core.identity)

    def __repr__(self) -> str:
        kind = "directed" if self.directed else "undirected"
        weights = [] if self.dtype is None else [f"weights {self.dtype}"]
        n, entries = self._core.shape
        path = repr(short_path(str(self.path), _PATH))
        return call_text("Graph", [path, f"{n} vertices", f"{entries} entries", kind, *weights])

    def _card_title(self) -> str:
        return "outcore.graph.Graph"

    def _card_facts(self) -> list[NamedFact]:
        n, entries = self._core.shape
        # Edges of an undirected graph are counted by a read, once: entries are known without.
        is_counted = self.directed or self._loop_ids is not None
        edges = [("edges", f"{self._count_edges():,}")] if is_counted else []
        lists = f"{entries:,} neighbours" + (f", {entries / n:.3g} a vertex" if n else "")
        return [
            ("kind", "directed" if self.directed else "undirected: an edge is in the lists of both ends"),
            ("vertices", f"{n:,}"),
            *edges,
            ("lists", lists),
            ("weights", "none" if self.dtype is None else str(self.dtype)),
            ("bytes", f"{format_size(self.file_bytes)}, {format_size(self.index_bytes)} of memory for the index"),
            ("file", self.path),
        ]

    def _card_degrees(self) -> tuple[list[int], str] | None:
        by = {"both": "neighbours", "out": "neighbours that edges lead to", "in": "neighbours that edges come from"}
        known = [direction for direction in by if direction in self._degree_counts]
        return (self._degree_counts[known[0]], by[known[0]]) if known else None


def open(path: PathLike) -> Graph:
    """Opens a stored graph (`.ocg`).

    Raises MissingFileError, or FormatError for a file that is none. I/O: the indexes are read, about a byte a vertex
    and direction, no list.

    >>> import outcore as oc, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "g.ocg"
    >>> _ = oc.graph.from_arrays([0, 1], [1, 2], path)
    >>> oc.graph.open(path).number_of_vertices
    3
    """
    refuse_url(path, "graphs are read from files")
    with whole_run("opening of a graph"):
        return Graph(_core.open_graph(session(), str(Path(path).absolute())))


def _reopened(path: str, identity: str) -> Graph:
    """The graph of a path as it was pickled. Raises SourceChangedError where the file is another by now."""
    graph = open(path)
    if graph._core.identity != identity:
        raise SourceChangedError(f"{path}: it is not what it was when the graph was pickled")
    return graph


def stored(name: str, G: Graph) -> None:
    """Raises ArgumentError unless `G` is a stored graph: graphs of networkx's are none."""
    if not isinstance(G, Graph):
        kind = f"{type(G).__module__}.{type(G).__qualname__}"
        raise ArgumentError(f"{name}: G must be a stored graph, not {kind}; from_networkx stores one, open opens one")


def ids_of(name: str, G: Graph, vertices: npt.ArrayLike) -> list[int]:
    """Vertices that an algorithm begins with. Raises IndexingError, and ArgumentError for what is no graph."""
    stored(name, G)
    return [int(vertex) for vertex in checked_ids(name, G, vertices)]


def undirected(name: str, G: Graph) -> None:
    """Raises ArgumentError for a graph whose edges lead one way."""
    stored(name, G)
    if G.directed:
        raise ArgumentError(f"{name}: the graph must be undirected; store it with directed=False")


def directed(name: str, G: Graph) -> None:
    """Raises ArgumentError for a graph whose edges lead both ways."""
    stored(name, G)
    if not G.directed:
        raise ArgumentError(f"{name}: the graph must be directed; store it without directed=False")


__all__ = ["Graph", "directed", "ids_of", "open", "stored", "undirected"]
