"""Forecasts of algorithms of graphs before they run: memory, and bounds of the bytes to read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

from outcore._base.shortened import COLUMNS, record_text, short_path
from outcore._base.sizes import format_size
from outcore.errors import ArgumentError
from outcore.graph._graph import Graph, stored
from outcore.graph._live import works
from outcore.graph._stored import session


@dataclass(frozen=True)
class GraphForecast:
    """The forecast of a function of a graph. Reads follow from what is found: bounds. They are exact where lists are
    read in order, have room in the page cache, and none is there yet: of connected components and PageRank.

    >>> import outcore as oc, tempfile, pathlib
    >>> G = oc.graph.from_arrays([0, 1, 2], [2, 2, 0], pathlib.Path(tempfile.mkdtemp()) / "g.ocg")
    >>> [oc.graph.explain(f, G).exact for f in (oc.graph.connected_components, oc.graph.strongly_connected_components)]
    [True, False]
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
    #: Bytes that are read where `exact`, else the most if no page is met in the cache; None where it is not bounded.
    bytes_read: int | None
    #: Bytes read where the page cache keeps all pages, so that no page is read twice. No bound: a cache may let pages
    #: go.
    bytes_once: int
    #: How that comes about.
    because: str
    bytes_written: int = 0
    exact: bool = False

    def __repr__(self) -> str:
        return record_text(self, [field.name for field in fields(self)])

    @property
    def peak_bytes(self) -> int:
        """The most that is reserved."""
        return self.known_bytes + self.reading_bytes + self.cache_bytes

    @property
    def fits(self) -> bool:
        """Whether there is memory for what is known of vertices, read and sent: without a page cache it runs too."""
        return self.known_bytes + self.reading_bytes <= self.budget_bytes

    def __str__(self) -> str:
        most = "" if self.exact else " at most"
        read = "not bounded" if self.bytes_read is None else f"{format_size(self.bytes_read)}{most}"
        fits = "" if self.fits else ": does not fit"
        kind = "exact" if self.exact else "bound"
        rows = [
            (
                "graph",
                f"{self.vertices:,} vertices, {self.entries:,} neighbours in lists of {format_size(self.list_bytes)}",
            ),
            (f"bytes read ({kind})", f"{read}: {self.because}"),
            ("each page once", f"{format_size(self.bytes_once)}, where the page cache keeps what is read"),
            ("known of vertices", format_size(self.known_bytes)),
            ("reading and sending", format_size(self.reading_bytes)),
            ("page cache (bound)", f"{format_size(self.cache_bytes)} at most"),
            ("peak reserved (bound)", f"{format_size(self.peak_bytes)} of {format_size(self.budget_bytes)}{fits}"),
        ]
        from textwrap import wrap  # of who prints a forecast, not of all who import outcore

        width = max(len(name) for name, _ in rows)
        lines = [f"{self.function} of {short_path(self.path)}"]
        for name, text in rows:
            first, *others = wrap(text, COLUMNS - width - 2)
            lines += [f"{name:<{width}}  {first}", *(f"{'':<{width}}  {part}" for part in others)]
        return "\n".join(lines)


def explain(function: Callable[..., object], G: Graph, *args: object, **kwargs: object) -> GraphForecast:
    """The forecast of `function(G, *args, **kwargs)`, for the functions of `outcore.graph`: memory and bytes to read.

    Memory is what will be reserved, and what a page cache takes beside it at most. Which lists are read depends on what
    is found, so that bytes are a bound, labelled so, unless they are `exact`: the run's counters do not exceed it; what
    is in memory already, or is met in the page cache, is not read. Raises what the function raises for its arguments,
    ArgumentError for another function. A call that does not fit is reported, not raised. No I/O.

    >>> import outcore as oc, tempfile, pathlib
    >>> G = oc.graph.from_arrays([0, 1, 2], [2, 2, 0], pathlib.Path(tempfile.mkdtemp()) / "g.ocg")
    >>> print(str(oc.graph.explain(oc.graph.bfs, G, 0)).splitlines()[1])
    graph                  3 vertices, 3 neighbours in lists of 4.00 KiB
    """
    build = works.get(function)
    if build is None:
        names = ", ".join(sorted(each.__name__ for each in works))
        name = getattr(function, "__name__", repr(function))
        raise ArgumentError(f"explain: {name} is none of {names}")
    stored("explain", G)
    operator = build(G, *args, **kwargs).operator
    nothing = ([0, 0, 0, 0], 0, 0, 0, "there are no vertices")
    memory, most, once, exact, because = operator.forecast(session()) if operator else nothing
    known, reading, cache, budget = memory
    return GraphForecast(
        function=build.__name__,
        path=str(G.path),
        vertices=G.number_of_vertices,
        entries=G.number_of_entries,
        list_bytes=G._core.part_bytes("out")[0],
        known_bytes=known,
        reading_bytes=reading,
        cache_bytes=cache,
        budget_bytes=budget,
        bytes_read=most if exact is None else exact,
        bytes_once=once,
        because=because,
        exact=exact is not None,
    )


__all__ = ["GraphForecast", "explain"]
