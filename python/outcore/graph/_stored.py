"""Lists of a stored graph: what algorithms, programs and views read of it."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from outcore import _core
from outcore._base.types import DType, NDArray
from outcore._session.session import current
from outcore._session.whole import whole_run, whole_scan
from outcore.errors import ArgumentError, IndexingError
from outcore.graph._activity import scanning

_PART = 1 << 20  # numbers that are counted at a time
_LISTS = "look-up of lists of a graph"


def _counts_of(degrees: npt.NDArray[np.int64]) -> list[int]:
    """How many have 0 neighbours, 1, 2 to 3, 4 to 7, and so on."""
    counts = np.zeros(65, dtype=np.int64)
    for begin in range(0, len(degrees), _PART):
        counts += np.bincount(np.frexp(degrees[begin : begin + _PART])[1], minlength=len(counts))
    return [int(count) for count in counts[: max(np.flatnonzero(counts), default=0) + 1]]


class StoredLists:
    """The lists of neighbours of a graph in a file, and weights if there are any: what every `Graph` is."""

    def __init__(self, core: _core.Graph, held: object = None) -> None:
        self._core = core
        self._held = held  # with which a file in scratch goes
        self._loop_ids: npt.NDArray[np.uint32] | None = None
        # By direction that was asked for: how many vertices have 0 neighbours, 1, 2 to 3, 4 to 7, and so on.
        self._degree_counts: dict[str, list[int]] = {}

    @property
    def number_of_vertices(self) -> int:
        """Vertices."""
        return self._core.shape[0]

    @property
    def number_of_entries(self) -> int:
        """Neighbours in all lists: an undirected edge with two ends is in two of them."""
        return self._core.shape[1]

    @property
    def number_of_loops(self) -> int:
        """Edges from a vertex to itself. I/O: one read of the lists the first time."""
        return len(self._loops())

    def _loops(self) -> npt.NDArray[np.uint32]:
        """The vertices of the loops, ascending; looked for once."""
        if self._loop_ids is None:
            with scanning("scan of the loops of a graph") as run:
                self._loop_ids = self._core.loops().run(run)
        return self._loop_ids

    @property
    def directed(self) -> bool:
        """Whether edges lead one way."""
        return self._core.directed

    def _count_edges(self) -> int:
        """Edges, as `Graph.number_of_edges`."""
        entries = self._core.shape[1]
        return entries if self.directed else (entries + self.number_of_loops) // 2

    @property
    def dtype(self) -> DType | None:
        """Of the weights; None where there are none."""
        name = self._core.dtype
        return None if name == "none" else np.dtype(name)

    @property
    def path(self) -> Path:
        """The file."""
        return Path(self._core.path)

    @property
    def file_bytes(self) -> int:
        """Bytes of the file."""
        return self._core.file_bytes

    @property
    def index_bytes(self) -> int:
        """Bytes of memory that the index and the checksums of pages take."""
        return self._core.memory_bytes

    def degrees(self, direction: str = "out") -> npt.NDArray[np.int64]:
        """The number of neighbours of each vertex: int64 (n,); "out", "in" or "both" of them.

        A loop of an undirected graph counts once here. Raises MemoryLimitError where they do not fit. I/O: one read of
        the degrees, about a byte a vertex.
        """
        names = directions("degrees", self, direction)
        with scanning("scan of the degrees of a graph") as run:
            counts, *others = (self._core.degrees(name).run(run).view(np.int64) for name in names)
        for other in others:
            counts += other
        self._degree_counts[direction] = _counts_of(counts)
        return counts

    def degree_counts(self, direction: str = "out") -> list[int]:
        """How many vertices have 0 neighbours, 1, 2 to 3, 4 to 7, and so on, in a direction as of `degrees`.

        Raises MemoryLimitError where the degrees do not fit. I/O: that of `degrees`; none where these were asked for.

        >>> import outcore as oc, tempfile, pathlib
        >>> G = oc.graph.from_arrays([0, 0, 0], [1, 2, 3], pathlib.Path(tempfile.mkdtemp()) / "g.ocg")
        >>> G.degree_counts()
        [3, 0, 1]
        """
        if direction not in self._degree_counts:
            self.degrees(direction)
        return list(self._degree_counts[direction])

    def neighbors(self, vertex: int, direction: str = "out") -> npt.NDArray[np.int64]:
        """The neighbours of a vertex, ascending: int64; those that edges lead to ("out"), come from ("in"), or "both".

        Raises IndexingError for what is no vertex. I/O: the pages that hold them.
        """
        names = directions("neighbors", self, direction)
        with whole_run(_LISTS):
            neighbours = [self.lists([vertex], name)[1] for name in names]
        return np.unique(np.concatenate(neighbours)).astype(np.int64)

    def lists(
        self, vertices: npt.ArrayLike, direction: str = "out"
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint32], npt.NDArray[np.float64] | None]:
        """The lists of several vertices, one behind the other: where each begins, neighbours, and weights if there are
        any.

        `begins` has one number more than there are vertices, as in a compressed row. Weights come as float64. Raises
        IndexingError for what is no vertex, ArgumentError for a direction but "out" and "in". I/O: the pages that hold
        the lists, each once; of a graph with weights the first time also the degrees, about a byte for each vertex.
        """
        if not isinstance(direction, str) or direction not in ("out", "in"):
            raise ArgumentError(f"lists: direction must be 'out' or 'in', not {direction!r}")
        ids = checked_ids("lists", self, vertices)
        distinct, back = np.unique(ids.astype(np.uint32), return_inverse=True)
        with scanning(_LISTS) as run:
            begins, neighbours, weights = self._core.lists(run, distinct, direction)
        if len(distinct) != len(ids) or (np.diff(back) < 0).any():
            lengths = np.diff(begins)[back]
            ends = np.cumsum(lengths)
            places = np.repeat(begins[:-1][back] - (ends - lengths), lengths) + np.arange(ends[-1] if len(ends) else 0)
            neighbours, weights = neighbours[places], weights[places] if self.dtype else weights
            begins = np.concatenate([[0], ends])
        return begins, neighbours, weights if self.dtype is not None else None

    def __contains__(self, vertex: object) -> bool:
        return is_vertex(self, vertex)

    def has_edge(self, u: Any, v: object) -> bool:
        """Whether an edge leads from `u` to `v`. I/O: the pages that hold the neighbours of `u`."""
        return u in self and v in self and bool((self.lists([u])[1] == v).any())

    def _parts(self, direction: str, step: int = 2 << 20) -> Iterator[tuple[NDArray, NDArray, NDArray, Any]]:
        """All lists, some megabytes at a time, of no more vertices than bytes: vertices, where each list begins,
        neighbours, weights."""
        return whole_scan("scan of a graph", self._read_parts(direction, step))

    def _read_parts(self, direction: str, step: int) -> Generator[tuple[NDArray, NDArray, NDArray, Any], None, None]:
        begin = 0
        while begin < self.number_of_vertices:
            end = max(self._core.vertex_after(begin, step, direction), begin + 1)
            end = min(end, begin + step, self.number_of_vertices)
            ids = np.arange(begin, end, dtype=np.uint32)
            with scanning(_LISTS) as run:
                part = [self._core.lists(run, ids, direction)]
            yield ids, *part.pop()
            begin = end


def session() -> _core.Session:
    return current()._core


def is_vertex(G: StoredLists, vertex: object) -> bool:
    """Whether it is one of the numbers that a graph has for its vertices."""
    return isinstance(vertex, (int, np.integer)) and 0 <= int(vertex) < G.number_of_vertices


def directions(name: str, G: StoredLists, direction: str) -> list[str]:
    """The directions of lists to read: one for an undirected graph. Raises ArgumentError."""
    if not isinstance(direction, str) or direction not in ("out", "in", "both"):
        raise ArgumentError(f"{name}: direction must be 'out', 'in' or 'both', not {direction!r}")
    if not G.directed:
        return ["out"]
    return ["out", "in"] if direction == "both" else [direction]


def checked_ids(name: str, G: StoredLists, vertices: npt.ArrayLike) -> NDArray:
    """Numbers of vertices as an array. Raises IndexingError."""
    try:
        ids = np.atleast_1d(np.asarray(vertices))
    except ValueError:  # rows of several lengths
        raise IndexingError(f"{name}: vertices must be 1-D integers, not {type(vertices).__name__}") from None
    if ids.ndim != 1 or (len(ids) and not np.issubdtype(ids.dtype, np.integer)):
        raise IndexingError(f"{name}: vertices must be 1-D integers, not {ids.dtype} of shape {ids.shape}")
    outside = ids[(ids < 0) | (ids >= G.number_of_vertices)]
    if len(outside):
        raise IndexingError(f"{name}: {outside[0]} is no vertex; there are {G.number_of_vertices}")
    return ids


__all__ = ["StoredLists", "checked_ids", "directions", "is_vertex", "session"]
