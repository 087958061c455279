"""Forecasts of algorithms of graphs before they run: memory, and bounds of the bytes to read."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from outcore import _core
from outcore._base.sizes import format_size
from outcore.errors import ArgumentError
from outcore.graph import _centrality, _communities, _components, _counts, _searching
from outcore.graph._activity import forecasting
from outcore.graph._graph import Graph, stored
from outcore.graph._stored import directions

Arguments = Mapping[str, Any]  # of the function whose I/O is asked for
_PAGE = 4096


@dataclass(frozen=True)
class GraphForecast:
    """The forecast of a function of a graph. Its reads depend on the graph: bounds, not exact numbers.

    >>> import outcore as oc, tempfile, pathlib
    >>> G = oc.graph.from_arrays([0, 1, 2], [2, 2, 0], pathlib.Path(tempfile.mkdtemp()) / "g.ocg")
    >>> oc.graph.explain(oc.graph.connected_components, G).exact
    False
    """

    function: str
    path: str
    vertices: int
    entries: int
    #: Bytes of the lists of a direction.
    list_bytes: int
    #: Bytes for what is known of vertices, and for what is read and sent, which are reserved; that the page cache takes
    #: at most, if they are there; that the session has.
    known_bytes: int
    reading_bytes: int
    cache_bytes: int
    budget_bytes: int
    #: The most that is read, if no page is met in the cache; None where it is not bounded beforehand.
    bytes_read: int | None
    #: Bytes read where the page cache keeps all pages, so that no page is read twice. No bound: a cache may let pages
    #: go.
    bytes_once: int
    #: How that comes about.
    because: str
    bytes_written: int = 0
    exact: bool = False

    @property
    def peak_bytes(self) -> int:
        """The most that is reserved."""
        return self.known_bytes + self.reading_bytes + self.cache_bytes

    @property
    def fits(self) -> bool:
        """Whether there is memory for what is known of vertices, read and sent: without a page cache it runs too."""
        return self.known_bytes + self.reading_bytes <= self.budget_bytes

    def __str__(self) -> str:
        read = "not bounded" if self.bytes_read is None else f"{format_size(self.bytes_read)} at most"
        fits = "" if self.fits else ": does not fit"
        rows = [
            (
                "graph",
                f"{self.vertices:,} vertices, {self.entries:,} neighbours in lists of {format_size(self.list_bytes)}",
            ),
            ("bytes read (bound)", f"{read}: {self.because}"),
            ("each page once", f"{format_size(self.bytes_once)}, where the page cache keeps what is read"),
            ("known of vertices", format_size(self.known_bytes)),
            ("reading and sending", format_size(self.reading_bytes)),
            ("page cache (bound)", f"{format_size(self.cache_bytes)} at most"),
            ("peak reserved (bound)", f"{format_size(self.peak_bytes)} of {format_size(self.budget_bytes)}{fits}"),
        ]
        width = max(len(name) for name, _ in rows)
        return "\n".join([f"{self.function} of {self.path}", *(f"{name:<{width}}  {text}" for name, text in rows)])


@dataclass(frozen=True)
class _Reads:
    """Bounds of reads of a graph, page by page, where no page is met in the cache."""

    G: Graph

    def pages(self, direction: str, weighted: bool) -> int:
        lists, weights = self.G._core.part_bytes(direction)
        return (lists + (weights if weighted and self.G.dtype is not None else 0)) // _PAGE

    def sweep(self, direction: str, weighted: bool = False) -> int:
        """All or some lists, in order: batches meet in a page, parts of long lists in some, and pages are bridged."""
        return (self.pages(direction, weighted) * 5 // 4 + 8) * _PAGE

    def each(self, direction: str, weighted: bool = False) -> int:
        """Each list once, in whatever order: each in pages of its own."""
        parts = 2 if weighted and self.G.dtype is not None else 1
        pages = self.pages(direction, weighted) + parts * self.G.number_of_vertices
        return (pages * 5 // 4 + 8) * _PAGE

    def degrees(self) -> int:
        """The numbers of neighbours, and weights that are sampled."""
        return 2 * (self.G.number_of_vertices + self.G.number_of_entries // 16 + 2 * _PAGE) + 64 * _PAGE


@dataclass(frozen=True)
class _Bound:
    """The most that is read, if that is bounded; the directions whose lists are read, and whether weights are; why."""

    most: int | None
    names: list[str]
    because: str
    weighted: bool = False


_Bounds = Callable[[_Reads, Arguments], _Bound]


def _bfs(reads: _Reads, arguments: Arguments) -> _Bound:
    names = directions("bfs", reads.G, arguments["direction"])
    # Where a search turns round it reads less than twice of what it would have read.
    most = 2 * sum(map(reads.each, names))
    return _Bound(most, directions("bfs", reads.G, "both"), "each list, or less than twice as much of those not met")


def _paths(reads: _Reads, arguments: Arguments) -> _Bound:
    names = directions("shortest_paths", reads.G, arguments["direction"])
    if reads.G.dtype is None:
        return _bfs(reads, arguments)
    return _Bound(None, names, "lists and weights of what is reached, again where a path is shorter", weighted=True)


def _pagerank(reads: _Reads, arguments: Arguments) -> _Bound:
    weighted, names = arguments["weighted"], ["in"]
    once, text = reads.sweep("in", weighted), "the lists that lead to each vertex"
    if arguments["threshold"] is not None:
        once, text = max(once, reads.each("out", weighted)), "these, or the lists of those that gained"
    if weighted or arguments["threshold"] is not None:
        names = directions("pagerank", reads.G, "both")
    strengths = reads.sweep("out", True) if weighted else 0
    text = f"{text}, in each of {arguments['iterations']} iterations at most"
    return _Bound(arguments["iterations"] * once + strengths, names, text, weighted)


def _betweenness(reads: _Reads, arguments: Arguments) -> _Bound:
    sources = arguments["sources"]
    every: Any = reads.G.number_of_vertices if sources is None else sources
    count = int(every) if np.ndim(every) == 0 else len(every)
    most = 2 * count * reads.each("out")
    return _Bound(most, ["out"], f"the lists of what is reached, twice for each of {count:,} sources")


def _sweep(reads: _Reads, _: Arguments) -> _Bound:
    return _Bound(reads.sweep("out"), ["out"], "each list once, in order")


def _both(reads: _Reads, _: Arguments) -> _Bound:
    names = directions("", reads.G, "both")
    return _Bound(sum(map(reads.each, names)), names, "each list once")


def _labels(reads: _Reads, arguments: Arguments) -> _Bound:
    rounds = arguments["iterations"]
    text = f"the lists of half of the vertices, in each of {rounds} iterations at most"
    return _Bound(rounds * reads.sweep("out"), ["out"], text)


def _diameter(reads: _Reads, arguments: Arguments) -> _Bound:
    one = _bfs(reads, {"direction": "both"})
    assert one.most is not None
    return _Bound(arguments["sweeps"] * one.most, one.names, f"{arguments['sweeps']} searches at most")


def _unbounded(because: str, direction: str = "out") -> _Bounds:
    return lambda reads, _: _Bound(None, directions("", reads.G, direction), because)


_BLOCKS = _unbounded("one read of the lists, and one for each part of them that memory holds")
_BOUNDS: dict[Callable[..., object], _Bounds] = {
    _searching.bfs: _bfs,
    _searching.diameter: _diameter,
    _searching.shortest_paths: _paths,
    _centrality.pagerank: _pagerank,
    _centrality.betweenness_centrality: _betweenness,
    _components.connected_components: _sweep,
    _components.strongly_connected_components: _unbounded("lists of what is left over, each time", "both"),
    _components.core_number: _both,
    _components.topological_sort: _both,
    _counts.triangles: _BLOCKS,
    _counts.clustering: _BLOCKS,
    _counts.average_clustering: _BLOCKS,
    _counts.scan_statistics: _unbounded("the lists around those whose degree leaves it open who has the most"),
    _communities.label_propagation: _labels,
    _communities.louvain_communities: _unbounded(
        "a read of the lists an iteration, and of smaller graphs made of them"
    ),
    _communities.maximal_independent_set: _unbounded("the lists of those that are left, each round"),
}


def explain(function: Callable[..., object], G: Graph, *args: object, **kwargs: object) -> GraphForecast:
    """The forecast of `function(G, *args, **kwargs)`, for the functions of `outcore.graph`: memory and bytes to read.

    Memory is what will be reserved, and what a page cache takes beside it at most. Which lists are read depends on what
    is found, so that bytes are a bound, labelled so: the run's counters do not exceed it; what is in memory already, or
    is met in the page cache, is not read. Raises what the function raises for its arguments, ArgumentError for another
    function. A call that does not fit is reported, not raised. I/O: numbers that the function looks up first, as
    degrees.

    >>> import outcore as oc, tempfile, pathlib
    >>> G = oc.graph.from_arrays([0, 1, 2], [2, 2, 0], pathlib.Path(tempfile.mkdtemp()) / "g.ocg")
    >>> print(str(oc.graph.explain(oc.graph.bfs, G, 0)).splitlines()[1])
    graph                  3 vertices, 3 neighbours in lists of 4.00 KiB
    """
    bound = _BOUNDS.get(function)
    if bound is None:
        names = ", ".join(sorted(each.__name__ for each in _BOUNDS))
        name = getattr(function, "__name__", repr(function))
        raise ArgumentError(f"explain: {name} is none of {names}")
    stored("explain", G)
    call = inspect.signature(function).bind(G, *args, **kwargs)
    call.apply_defaults()
    with forecasting() as runs, contextlib.suppress(_core.OnlyForecast):
        function(G, *args, **kwargs)
    reads = _Reads(G)
    forecast = runs[0].forecast if runs else None
    known, reading, cache, budget = forecast or (0, 0, 0, 0)  # nothing runs on a graph without vertices
    of = bound(reads, call.arguments) if forecast else _Bound(0, [], "there are no vertices")
    once = sum(reads.pages(name, of.weighted) for name in of.names) * _PAGE
    return GraphForecast(
        function=function.__name__,
        path=str(G.path),
        vertices=G.number_of_vertices,
        entries=G.number_of_entries,
        list_bytes=G._core.part_bytes("out")[0],
        known_bytes=known,
        reading_bytes=reading,
        cache_bytes=min(cache, max(0, budget - known - reading)),
        budget_bytes=budget,
        bytes_read=None if of.most is None else of.most + reads.degrees(),
        bytes_once=once,
        because=of.because,
    )


__all__ = ["GraphForecast", "explain"]
