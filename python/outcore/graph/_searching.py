"""Distances: breadth-first search, weighted paths, the diameter."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from outcore._base.arguments import real, whole
from outcore.errors import ArgumentError, IndexingError
from outcore.graph._graph import Graph, ids_of, stored
from outcore.graph._live import Live, live, work
from outcore.graph._stored import directions

_FARTHEST = 2**32 - 1  # no path is longer


@live
def bfs(
    G: Graph, source: npt.ArrayLike, *, direction: str = "out", cutoff: float | None = None
) -> Live[npt.NDArray[np.int32]]:
    """The distance of each vertex from the nearest `source`, in edges: int32 (n,), -1 where no path leads.

    `source` is a vertex or several. Edges are followed "out", "in" or "both" ways, no more than `cutoff` of them: what
    is farther away is -1 too. Memory: 5 bytes a vertex. Raises IndexingError for what is no vertex, ArgumentError for a
    cutoff below 0, or that is no number. I/O: the lists of the vertices that are met and nearer than `cutoff`, each
    once in each direction.

    >>> import outcore as oc, tempfile, pathlib
    >>> G = oc.graph.from_arrays([0, 1, 3], [1, 2, 3], pathlib.Path(tempfile.mkdtemp()) / "g.ocg")
    >>> oc.graph.bfs(G, 0)
    array([ 0,  1,  2, -1], dtype=int32)
    >>> oc.graph.bfs(G, 0, cutoff=1)
    array([ 0,  1, -1, -1], dtype=int32)
    """
    sources = ids_of("bfs", G, source)
    directions("bfs", G, direction)
    farthest = _FARTHEST if cutoff is None else cutoff
    real("bfs", "a number from 0 on, or None,", cutoff=farthest)
    if farthest < 0:
        raise ArgumentError(f"bfs: cutoff must be at least 0, not {cutoff}")
    return work("bfs", G._core.levels(sources, direction, int(min(farthest, _FARTHEST))))


@live
def shortest_paths(
    G: Graph, source: npt.ArrayLike, *, step: float | None = None, direction: str = "out"
) -> Live[npt.NDArray[np.float64]]:
    """The distance of each vertex from the nearest `source` along weighted edges: float64 (n,), infinity where no path
    leads.

    Distances within `step` of each other are worked on together (Δ-stepping, Meyer and Sanders 2003); it changes the
    time, not the result; None is eight times what some of the weights are on average. Without weights every edge is 1
    long. Memory: 14 bytes a vertex. Raises ArgumentError for a step that is no positive number, and where a weight is
    met that is negative or not a number. I/O: lists and weights of the vertices that are met, again where they come
    nearer; 64 pages for a step of None.

    >>> import outcore as oc, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "g.ocg"
    >>> G = oc.graph.from_arrays([0, 1, 0], [1, 2, 2], path, weights=[1.0, 2.0, 5.0])
    >>> oc.graph.shortest_paths(G, 0)
    array([0., 1., 3.])
    """
    sources = ids_of("shortest_paths", G, source)
    directions("shortest_paths", G, direction)
    if step is not None:
        real("shortest_paths", "a positive number, or None,", step=step)
        if step <= 0:
            raise ArgumentError(f"shortest_paths: step must be above 0, not {step}")
    if G.dtype is None:
        return work("bfs", G._core.levels(sources, direction, _FARTHEST)).then(
            lambda levels: np.where(levels < 0, np.inf, levels)
        )
    return work("shortest_paths", G._core.distances(sources, step, direction)).then(_checked)


def _checked(reached: tuple[npt.NDArray[np.float64], float | None]) -> npt.NDArray[np.float64]:
    """Distances, if no weight was wrong."""
    distances, wrong = reached
    if wrong is None:
        return distances
    if np.isnan(wrong):
        raise ArgumentError("shortest_paths: weights must be at least 0; one is NaN")
    raise ArgumentError(f"shortest_paths: weights must be at least 0; one is {wrong}")


@live
def diameter(G: Graph, *, sweeps: int = 4, source: int | None = None) -> Live[int]:
    """A lower bound of the longest of all shortest paths, in edges, and mostly the length itself.

    From the vertex with the most neighbours, or `source`, it goes to the farthest, from there to the farthest, and on,
    `sweeps` times at most (Magnien, Latapy, Habib 2009). Directions do not count. 0 for a graph without vertices.
    Raises IndexingError for a source that is no vertex, ArgumentError for sweeps below 1. I/O: that of as many
    searches.

    >>> import outcore as oc, tempfile, pathlib
    >>> G = oc.graph.from_arrays([0, 1, 2], [1, 2, 3], pathlib.Path(tempfile.mkdtemp()) / "g.ocg", directed=False)
    >>> oc.graph.diameter(G)
    3
    """
    stored("diameter", G)
    whole("diameter", 2**63 - 1, sweeps=sweeps)
    if sweeps < 1:
        raise ArgumentError(f"diameter: sweeps must be at least 1, not {sweeps}")
    start = None if source is None else ids_of("diameter", G, source)
    if start is not None and len(start) != 1:
        raise IndexingError(f"diameter: source must be 1 vertex, not {len(start)}")
    if G.number_of_vertices == 0:
        return Live(None, lambda: 0)
    searches = G._core.levels([0], "both", _FARTHEST, sweeps)
    return Live(searches, lambda: _longest(G, sweeps, start))


def _longest(G: Graph, sweeps: int, start: list[int] | None) -> int:
    """The longest path that searches find, each from the end of the one before."""
    at = int(G.degrees().argmax()) if start is None else start[0]
    longest = -1
    for _ in range(sweeps):
        levels = bfs(G, at, direction="both")
        farthest = int(levels.max())
        if farthest <= longest:
            break
        longest, at = farthest, int(levels.argmax())
    return longest


__all__ = ["bfs", "diameter", "shortest_paths"]
