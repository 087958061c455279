"""Vertex programs in Python: batches of vertices, never one by one."""

from __future__ import annotations

import contextvars
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from outcore import _core
from outcore.errors import ArgumentError, IndexingError, ShapeError
from outcore.graph._activity import running
from outcore.graph._graph import Graph, directions

# Vertices that `run` is called with, and bytes of lists that `on_edges` is called with, at most; a list is never cut.
_VERTICES = 1 << 20
_LIST_BYTES = 2 << 20


class _State(NamedTuple):
    dtype: np.dtype[Any]
    fill: Any


def state(dtype: Any, fill: Any = 0) -> Any:
    """What a vertex program knows of each vertex: in the program, an array of NumPy's with `fill` for every vertex.

    I/O: none, it is in memory.

    >>> import outcore as oc
    >>> class Degrees(oc.graph.VertexProgram):
    ...     degree = oc.graph.state("int64")
    ...     def on_edges(self, e):
    ...         self.degree[e.vertices] = np.diff(e.begins)
    >>> import numpy as np, tempfile, pathlib
    >>> G = oc.graph.from_arrays([0, 0], [1, 2], pathlib.Path(tempfile.mkdtemp()) / "g.ocg")
    >>> G.run(Degrees()).degree
    array([2, 0, 0])
    """
    return _State(np.dtype(dtype), fill)


class Vertices(NamedTuple):
    """Active vertices, ascending."""

    ids: npt.NDArray[np.uint32]


class Edges:
    """The lists of some vertices: `ids[k]` → `neighbours[k]`, with `weights[k]` if the graph has any.

    The lists of `vertices` stand one behind the other; that of `vertices[i]` begins at `begins[i]`.
    """

    def __init__(
        self,
        vertices: npt.NDArray[np.uint32],
        begins: npt.NDArray[np.int64],
        neighbours: npt.NDArray[np.uint32],
        weights: npt.NDArray[np.float64] | None,
    ) -> None:
        self.vertices, self.begins, self.neighbours, self.weights = vertices, begins, neighbours, weights

    @property
    def ids(self) -> npt.NDArray[np.uint32]:
        """The vertex that each neighbour is one of."""
        if not hasattr(self, "_ids"):
            self._ids = np.repeat(self.vertices, np.diff(self.begins))
        return self._ids


class Messages(NamedTuple):
    """What was sent: `values[k]` to `ids[k]`, by the order of those who sent it."""

    ids: npt.NDArray[np.uint32]
    values: npt.NDArray[Any]


class VertexProgram:
    """A program of one's own over the vertices of a graph, which gets them in batches (FlashGraph, Zheng 2015, 3.3).

    An iteration calls `run` with the active vertices, `on_edges` with the lists that were asked for by `request`,
    `on_message` with what was sent by `send`, then `on_iteration_end`. The next one begins with the vertices that
    `activate` named; it ends where there are none. What is known of vertices are arrays that `state` declares.
    `self.iteration` is the number of the iteration, from 0, `self.graph` the graph.

    I/O: the pages of the lists that are asked for. Memory: states, a byte and a bit a vertex, messages, some megabytes.

    >>> import outcore as oc, tempfile, pathlib
    >>> class Levels(oc.graph.VertexProgram):
    ...     level = oc.graph.state("int32", fill=-1)
    ...     def run(self, v):
    ...         new = v.ids[self.level[v.ids] < 0]
    ...         self.level[new] = self.iteration
    ...         self.request(new)
    ...     def on_edges(self, e):
    ...         self.activate(e.neighbours)
    >>> G = oc.graph.from_arrays([0, 1, 3], [1, 2, 3], pathlib.Path(tempfile.mkdtemp()) / "g.ocg")
    >>> G.run(Levels(), active=[0]).level
    array([ 0,  1,  2, -1], dtype=int32)
    """

    graph: Graph
    iteration: int = 0

    def run(self, v: Vertices) -> None:
        """At active vertices: asks for their lists unless it is written anew."""
        self.request(v.ids)

    def on_edges(self, e: Edges) -> None:
        """With lists that were asked for."""

    def on_message(self, m: Messages) -> None:
        """With what was sent in the iteration, all of it at once."""

    def on_iteration_end(self) -> None:
        """Behind an iteration."""

    def request(self, ids: Any, direction: str = "out") -> None:
        """Asks for the lists of vertices: in `run` those of this iteration; "out", "in", or one after the other."""
        found = self._checked("request", ids)
        for name in directions("request", self.graph, direction):
            self._requested.setdefault(name, []).append(found)

    def activate(self, ids: Any) -> None:
        """Makes vertices active in the next iteration."""
        self._next[self._checked("activate", ids)] = True

    def send(self, ids: Any, values: Any) -> None:
        """Sends a value to each vertex: in `on_edges` for this iteration's `on_message`."""
        ids = self._checked("send", ids)
        values = np.asarray(values)
        if values.shape[:1] != ids.shape:
            values = np.broadcast_to(values, ids.shape) if values.ndim == 0 else values
        if values.shape[:1] != ids.shape:
            raise ShapeError(f"send: {len(ids)} vertices, values of shape {values.shape}")
        self._sent.append((ids, values))

    def _checked(self, name: str, given: Any) -> npt.NDArray[np.uint32]:
        ids: npt.NDArray[Any] = np.asarray(given)
        if ids.dtype == np.uint32:
            highest = int(ids.max()) if ids.size else -1
            if highest < self.graph.number_of_vertices and ids.ndim == 1:
                return ids
        if ids.ndim != 1 or (ids.size and not np.issubdtype(ids.dtype, np.integer)):
            raise IndexingError(f"{name}: vertices are whole numbers in a row, not {ids.dtype} of shape {ids.shape}")
        outside = ids[(ids < 0) | (ids >= self.graph.number_of_vertices)]
        if outside.size:
            raise IndexingError(f"{name}: {outside[0]} is no vertex; there are {self.graph.number_of_vertices}")
        return ids.astype(np.uint32)

    def _begin(self, graph: Graph) -> None:
        self.graph = graph
        n = graph.number_of_vertices
        for name in dir(type(self)):
            declared = getattr(type(self), name)
            if isinstance(declared, _State):
                setattr(self, name, np.full(n, declared.fill, declared.dtype))
        self._next = np.zeros(n, dtype=bool)
        self._requested: dict[str, list[npt.NDArray[np.uint32]]] = {}
        self._sent: list[tuple[npt.NDArray[np.uint32], npt.NDArray[Any]]] = []


def run(G: Graph, program: VertexProgram, active: Any, iterations: int | None, mode: str) -> VertexProgram:
    """See `Graph.run`."""
    if not isinstance(program, VertexProgram):
        raise ArgumentError(f"run: {type(program).__name__} is no VertexProgram")
    if mode not in ("synchronous", "asynchronous"):
        raise ArgumentError(f"run: mode={mode!r}; synchronous and asynchronous are right")
    at_once = mode == "asynchronous"
    program._begin(G)
    if active is None:
        now = np.arange(G.number_of_vertices, dtype=np.uint32)
    else:
        now = np.unique(program._checked("run", np.atleast_1d(np.asarray(active))))
    program.iteration = 0
    with ThreadPoolExecutor(1) as ahead, running(type(program).__name__) as seen:
        while len(now) and (iterations is None or program.iteration < iterations):
            seen.begin(len(now))
            for begin in range(0, len(now), _VERTICES):
                program.run(Vertices(now[begin : begin + _VERTICES]))
            _edges(G, program, ahead, seen, at_once)
            _messages(program)
            program.on_iteration_end()
            now = np.flatnonzero(program._next).astype(np.uint32)
            program._next[now] = False
            program.iteration += 1
        seen.end()
    return program


def _edges(G: Graph, program: VertexProgram, ahead: ThreadPoolExecutor, seen: _core.GraphRun, at_once: bool) -> None:
    """Reads what was asked for, the next part while one is worked on; delivers messages behind each where `at_once`."""
    core = G._core

    def read(part: npt.NDArray[np.uint32], direction: str) -> Edges:
        begins, neighbours, weights = core.lists(seen, part, direction)
        return Edges(part, begins, neighbours, None if G.dtype is None else weights)

    def work(part: Edges) -> None:
        program.on_edges(part)
        if at_once:
            _messages(program)

    requested, program._requested = program._requested, {}
    for direction, parts in requested.items():
        ids = np.unique(np.concatenate(parts))
        following = None
        for part in _parts(G, ids, direction):
            new = ahead.submit(contextvars.copy_context().run, read, part, direction)
            if following is not None:
                work(following.result())
            following = new
        if following is not None:
            work(following.result())


def _parts(G: Graph, ids: npt.NDArray[np.uint32], direction: str) -> Iterator[npt.NDArray[np.uint32]]:
    """Vertices whose lists lie within some megabytes, or one."""
    begin = 0
    while begin < len(ids):
        last = G._core.vertex_after(int(ids[begin]), _LIST_BYTES, direction)
        end = max(int(np.searchsorted(ids, last)), begin + 1)
        yield ids[begin:end]
        begin = end


def _messages(program: VertexProgram) -> None:
    if program._sent:
        sent, program._sent = program._sent, []
        program.on_message(Messages(*(np.concatenate(parts) for parts in zip(*sent, strict=True))))


__all__ = ["Edges", "Messages", "Vertices", "VertexProgram", "run", "state"]
