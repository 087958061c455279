"""Vertex programs in Python: batches of vertices, never one by one."""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from outcore import _core
from outcore._base.arguments import whole
from outcore._base.types import DType, NDArray
from outcore.errors import ArgumentError, DTypeError, IndexingError, ShapeError
from outcore.graph._activity import running, silent_run
from outcore.graph._stored import StoredLists, directions

# Vertices that `run` is called with, and neighbours that `on_edges` is called with, at most; a list is never cut.
_VERTICES = 1 << 20
_NEIGHBOURS = 1 << 20
_ID = 4  # bytes of a vertex
_Ids = npt.NDArray[np.uint32]


class _State(NamedTuple):
    dtype: DType
    fill: Any


def state(dtype: npt.DTypeLike, fill: object = 0) -> Any:
    """A number that a vertex program keeps of each vertex: in the program, an array of NumPy's with `fill` for every
    vertex.

    Raises DTypeError for objects of Python's, whose memory is not known. I/O: none, it is in memory.

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
    kind = np.dtype(dtype)
    if kind.hasobject:
        raise DTypeError(f"state: {kind} holds objects of Python's")
    return _State(kind, fill)


class Vertices(NamedTuple):
    """Active vertices, ascending."""

    ids: npt.NDArray[np.uint32]


class Edges:
    """The lists of some vertices: `ids[k]` → `neighbours[k]`, with `weights[k]` if the graph has any, else None.

    The lists of `vertices` stand one behind the other; that of `vertices[i]` begins at `begins[i]`. Weights are read
    with the lists where a method of the program names them; else when they are first looked at, and from the next
    iteration on with the lists.
    """

    def __init__(
        self,
        vertices: npt.NDArray[np.uint32],
        begins: npt.NDArray[np.int64],
        neighbours: npt.NDArray[np.uint32],
        weights: npt.NDArray[np.float64] | Callable[[], npt.NDArray[np.float64]] | None,
    ) -> None:
        self.vertices, self.begins, self.neighbours, self._weights = vertices, begins, neighbours, weights

    @property
    def weights(self) -> npt.NDArray[np.float64] | None:
        """One for each neighbour, if the graph has any."""
        if callable(self._weights):
            self._weights = self._weights()
        return self._weights

    @property
    def ids(self) -> npt.NDArray[np.uint32]:
        """The vertex that each neighbour is one of."""
        if not hasattr(self, "_ids"):
            self._ids = np.repeat(self.vertices, np.diff(self.begins))
        return self._ids


class Messages(NamedTuple):
    """Messages to some vertices: `values[k]` to `ids[k]`, by the order of those who sent it; by ascending `ids`, of
    which each is there once, where the program says how messages are combined."""

    ids: npt.NDArray[np.uint32]
    values: NDArray


class VertexProgram:
    """A program of one's own over the vertices of a graph, which gets them in batches (FlashGraph, Zheng 2015, 3.3).

    An iteration calls `run` with the active vertices, `on_edges` with the lists that were asked for by `request`,
    `on_message` with what was sent by `send`, then `on_iteration_end`. The next one begins with the vertices that
    `activate` named; it ends where there are none. The state of vertices is in arrays that `state` declares.
    `self.iteration` is the number of the iteration, from 0, `self.graph` the graph.

    With `combine` "min", "max" or "sum", messages to one vertex are made one as they come, in the order in which they
    are sent: `on_message` then gets each vertex once, and messages take one value a vertex, however many there are.
    Values are numbers then, all of the type of the first.

    With `takes_parts`, a list of more than a mebibyte comes in several calls of `on_edges`, one after the other, each
    with the next of its neighbours, and takes no memory of its own; without it all of it is in one call. (Weights are
    read with their parts where the program's own code names `weights`; where others look at them for it, the whole list
    is read for each part.)

    With `stages`, an iteration goes through `run`, `on_edges` and `on_message` so many times, each time with the active
    vertices that `stage` puts there: what earlier ones found may spare later ones their lists.

    I/O: the pages of the lists that are asked for. Memory: states, some bits a vertex, four bytes for each that is
    active (and four more in stages), then for each that is asked for, messages twice until they are delivered, some
    megabytes to read with. Raises MemoryLimitError where those do not fit, ArgumentError for a program that runs
    already, and for what is asked for, sent or activated while it does not.

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

    graph: StoredLists
    iteration: int = 0
    combine: ClassVar[Literal["min", "max", "sum"] | None] = None
    takes_parts: ClassVar[bool] = False
    stages: ClassVar[int] = 1
    # The type of messages that are combined, and what combines them.
    _combining: tuple[DType, _core.Mail] | None = None

    def run(self, v: Vertices) -> None:
        """At active vertices: asks for their lists unless it is written anew."""
        self.request(v.ids)

    def stage(self, v: Vertices) -> object:
        """In which stage of the iteration, from 0, each of some active vertices runs: whole numbers, or one for all.
        Asked before each stage but the last, of those that have not run: who is in one that is over runs at once."""
        return 0

    def on_edges(self, e: Edges) -> None:
        """With lists that were asked for."""

    def on_message(self, m: Messages) -> None:
        """With what was sent in the iteration, all of it at once; in asynchronous mode with what an `on_edges` sent."""

    def on_iteration_end(self) -> None:
        """Behind an iteration."""

    def request(self, ids: npt.ArrayLike, direction: str = "out") -> None:
        """Asks for the lists of vertices: in `run` those of this iteration, else of the next, if there is one; "out",
        "in", or "both", one after the other."""
        vertices = np.ascontiguousarray(self._checked("request", ids))
        for name in directions("request", self.graph, direction):
            if name not in self._asked:
                self._asked[name] = _core.Frontier(self.graph.number_of_vertices)
            self._requested[name] = self._asked[name]
            self._asked[name].extend(vertices)

    def activate(self, ids: npt.ArrayLike) -> None:
        """Makes vertices active in the next iteration."""
        vertices = self._checked("activate", ids, True)  # that the program runs comes first
        self._next.extend(np.ascontiguousarray(vertices))

    def send(self, ids: npt.ArrayLike, values: npt.ArrayLike) -> None:
        """Sends a value to each vertex: in `run` and `on_edges` for this iteration's `on_message`, later for that of
        the next, if there is one. Arrays are copied."""
        ids = self._checked("send", ids)
        values = np.asarray(values)
        is_one = values.ndim == 0
        if is_one:
            values = np.broadcast_to(values.copy(), ids.shape)
        if values.shape[:1] != ids.shape:
            raise ShapeError(f"send: {len(ids)} vertices, values of shape {values.shape}")
        if self.combine is None:
            self._sent_bytes += ids.nbytes + values.nbytes
            self._keep(0)
            self._sent.append((ids.copy(), values if is_one else values.copy()))
        else:
            self._mail("send", values).send(np.ascontiguousarray(ids), np.ascontiguousarray(values))

    def multicast(self, e: Edges, values: npt.ArrayLike) -> None:
        """Sends a value to all neighbours of each vertex of `e`: `values[i]` to those of `e.vertices[i]`."""
        values = np.asarray(values)
        if values.shape[:1] != e.vertices.shape:
            raise ShapeError(f"multicast: {len(e.vertices)} vertices, values of shape {values.shape}")
        if self.combine is None:
            self.send(e.neighbours, np.repeat(values, np.diff(e.begins), axis=0))
        else:
            self._mail("multicast", values).multicast(e.begins, e.neighbours, np.ascontiguousarray(values))

    def _mail(self, name: str, values: NDArray) -> _core.Mail:
        """The mail that combines messages of such values."""
        self._runs(name)
        if values.ndim != 1:
            raise ShapeError(
                f"{name}: values that are combined are numbers, one for a vertex; not of shape {values.shape}"
            )
        dtype, mail = self._combining or (values.dtype, None)
        if mail is None:
            mail = _core.Mail(self._seen, self.graph.number_of_vertices, str(self.combine), str(dtype))
            self._combining = dtype, mail
        if values.dtype != dtype:
            raise DTypeError(f"{name}: values of {values.dtype}, but those before were of {dtype}")
        return mail

    def _runs(self, name: str) -> None:
        if not hasattr(self, "_seen"):
            raise ArgumentError(f"{name}: the program does not run")

    def _checked(self, name: str, vertices: npt.ArrayLike, is_checked_again: bool = False) -> npt.NDArray[np.uint32]:
        """Vertices; with `is_checked_again`, whoever takes those of the right type looks whether there are so many."""
        self._runs(name)
        ids: NDArray = np.asarray(vertices)
        if ids.ndim != 1 or (ids.size and not np.issubdtype(ids.dtype, np.integer)):
            raise IndexingError(f"{name}: vertices must be 1-D integers, not {ids.dtype} of shape {ids.shape}")
        if ids.size and not (is_checked_again and ids.dtype == np.uint32):
            for outermost in (int(ids.min()), int(ids.max())):
                if not 0 <= outermost < self.graph.number_of_vertices:
                    raise IndexingError(f"{name}: {outermost} is no vertex; there are {self.graph.number_of_vertices}")
        return ids.astype(np.uint32, copy=False)

    def _begin(self, graph: StoredLists, seen: _core.LiveRun) -> None:
        self.graph, self._seen = graph, seen
        n = graph.number_of_vertices
        members = ((name, getattr(type(self), name)) for name in dir(type(self)))
        states = {name: declared for name, declared in members if isinstance(declared, _State)}
        taken = [name for name in states if name == "graph" or hasattr(VertexProgram, name)]
        if taken:
            raise ArgumentError(f"run: {taken[0]} is no name for a state, programs have something of that name")
        seen.hold_states(n, sum(declared.dtype.itemsize for declared in states.values()))
        for name, declared in states.items():
            setattr(self, name, np.full(n, declared.fill, declared.dtype))
        self._next = _core.Frontier(n)
        # Who is asked for by direction, at all and in this iteration.
        self._asked: dict[str, _core.Frontier] = {}
        self._requested: dict[str, _core.Frontier] = {}
        self._sent: list[tuple[npt.NDArray[np.uint32], NDArray]] = []
        self._combining = None
        # Whether weights are read with the lists.
        attributes = (
            member for kind in type(self).__mro__ for member in vars(kind).values() if kind is not VertexProgram
        )
        codes = (getattr(member, "__code__", None) for member in attributes)
        self._weighted = graph.dtype is not None and any(_names(code, "weights") for code in codes if code)
        # Bytes of vertices that are listed, and of what was sent.
        self._listed = self._sent_bytes = 0

    def _keep(self, more: int) -> None:
        """Has memory for so many bytes beside the vertices that are listed, and what was sent."""
        # Messages are put together in the end.
        self._seen.hold_meanwhile(self._listed + 2 * self._sent_bytes + more)

    def _end(self) -> None:
        """Lets go of what the run had."""
        for name in ("_seen", "_next", "_asked", "_requested", "_sent", "_combining"):
            self.__dict__.pop(name, None)


def run(
    G: StoredLists, program: VertexProgram, active: npt.ArrayLike | None, iterations: int | None, mode: str
) -> VertexProgram:
    """See `Graph.run`."""
    if not isinstance(program, VertexProgram):
        raise ArgumentError(f"run: program must be a VertexProgram, not {type(program).__name__}")
    if mode not in ("synchronous", "asynchronous"):
        raise ArgumentError(f"run: mode must be 'synchronous' or 'asynchronous', not {mode!r}")
    if program.combine not in (None, "min", "max", "sum"):
        raise ArgumentError(f"run: combine must be 'min', 'max' or 'sum', not {program.combine!r}")
    whole("run", 2**31 - 1, stages=program.stages)
    if program.stages < 1:
        raise ArgumentError(f"run: stages must be at least 1, not {program.stages}")
    if iterations is not None:
        whole("run", 2**63 - 1, iterations=iterations)
    if hasattr(program, "_seen"):
        raise ArgumentError("run: the program runs already")
    at_once = mode == "asynchronous"
    with running(type(program).__name__) as seen:
        try:
            program._begin(G, seen)
            _iterate(G, program, active, iterations, at_once)
        finally:
            seen.end()
            program._end()
    return program


def _iterate(
    G: StoredLists, program: VertexProgram, active: npt.ArrayLike | None, iterations: int | None, at_once: bool
) -> None:
    if active is None:
        program._keep(_ID * G.number_of_vertices)
        now = np.arange(G.number_of_vertices, dtype=np.uint32)
    else:
        now = np.unique(program._checked("run", np.atleast_1d(np.asarray(active))))
    program.iteration = 0
    while len(now) and (iterations is None or program.iteration < iterations):
        program._seen.begin(len(now))
        for number in range(program.stages):
            chosen, now = _staged(program, number, now)
            program._listed = chosen.nbytes + now.nbytes
            for begin in range(0, len(chosen), _VERTICES):
                program.run(Vertices(chosen[begin : begin + _VERTICES]))
            del chosen  # those that are asked for have its room
            program._listed = now.nbytes
            _edges(G, program, at_once)
            program._listed = now.nbytes
            _messages(program)
        program.on_iteration_end()
        program._keep(_ID * len(program._next))
        now = program._next.take()
        program.iteration += 1


def _staged(program: VertexProgram, number: int, ids: _Ids) -> tuple[_Ids, _Ids]:
    """The active vertices that run in a stage, and the others."""
    if number == program.stages - 1:
        return ids, ids[:0]
    program._keep(_ID * len(ids))
    is_now = np.empty(len(ids), np.bool_)
    for begin in range(0, len(ids), _VERTICES):
        part = ids[begin : begin + _VERTICES]
        stages = np.asarray(program.stage(Vertices(part)))
        if stages.dtype.kind not in "iu" or stages.shape not in ((), part.shape):
            raise ArgumentError(f"stage: {stages.dtype} of shape {stages.shape} for {len(part)} vertices")
        is_now[begin : begin + len(part)] = stages <= number
    return ids[is_now], ids[~is_now]


def _edges(G: StoredLists, program: VertexProgram, at_once: bool) -> None:
    """Has the program work on lists that were asked for, while the next are read."""
    requested, program._requested = program._requested, {}
    program._keep(_ID * sum(map(len, requested.values())))
    listed = {direction: asked.take() for direction, asked in requested.items()}
    program._listed += sum(ids.nbytes for ids in listed.values())
    for direction, ids in listed.items():
        if len(ids):
            work = _working(G, program, ids, direction, at_once)
            weighted = program._weighted
            G._core.each_lists(program._seen, ids, direction, _NEIGHBOURS, program.takes_parts, weighted, work)


def _working(
    G: StoredLists, program: VertexProgram, ids: npt.NDArray[np.uint32], direction: str, at_once: bool
) -> Callable[..., None]:
    """The function that is called with lists of `ids`; it delivers messages behind them where `at_once`."""
    is_weighted, is_read = G.dtype is not None, program._weighted
    part = (-1, 0)  # of the list of which vertex a part was there last, and where it ended

    def work(first: int, end: int, begins: NDArray, neighbours: NDArray, weights: NDArray) -> None:
        nonlocal part
        begin = part[1] if part[0] == first else 0
        part = first, begin + len(neighbours)

        def read() -> Any:
            program._weighted = True
            return G._core.lists(silent_run(), ids[first:end], direction)[2][begin : begin + len(neighbours)]

        lengths = (weights if is_read else read) if is_weighted else None
        program.on_edges(Edges(ids[first:end], begins, neighbours, lengths))
        if at_once:
            _messages(program)

    return work


def _names(code: CodeType, name: str) -> bool:
    """Whether a function, or one within it, names something so."""
    inner = (const for const in code.co_consts if isinstance(const, CodeType))
    return name in code.co_names or any(_names(each, name) for each in inner)


def _messages(program: VertexProgram) -> None:
    if program._combining is not None:
        dtype, mail = program._combining
        program._keep(len(mail) * (_ID + dtype.itemsize))
        ids, values = mail.take()
        if len(ids):
            program.on_message(Messages(ids, values))
    elif program._sent:
        sent, program._sent, program._sent_bytes = program._sent, [], 0
        program.on_message(Messages(*(np.concatenate(parts) for parts in zip(*sent, strict=True))))


__all__ = ["Edges", "Messages", "Vertices", "VertexProgram", "run", "state"]
