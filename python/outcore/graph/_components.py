"""Parts of graphs: components, cores, topological order."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from outcore.errors import ArgumentError
from outcore.graph._graph import Graph, directed, stored
from outcore.graph._live import Live, live, work


@live
def connected_components(G: Graph) -> Live[npt.NDArray[np.uint32]]:
    """The lowest vertex that each vertex is connected with: uint32 (n,). Directions of edges do not count.

    Two vertices are in one component where the numbers are equal; there are as many components as vertices that have
    their own. Memory: 8 bytes a vertex. I/O: one read of the lists, in order.

    >>> import outcore as oc, tempfile, pathlib
    >>> G = oc.graph.from_arrays([0, 3], [1, 2], pathlib.Path(tempfile.mkdtemp()) / "g.ocg")
    >>> oc.graph.connected_components(G)
    array([0, 0, 2, 2], dtype=uint32)
    """
    stored("connected_components", G)
    return work("connected_components", G._core.components(False))


@live
def strongly_connected_components(G: Graph) -> Live[npt.NDArray[np.uint32]]:
    """The lowest vertex of the component of each, within which paths lead from each to every other: uint32 (n,).

    Memory: 13 bytes a vertex. Raises ArgumentError for an undirected graph. I/O: some reads of both directions, most of
    which take few lists.

    >>> import outcore as oc, tempfile, pathlib
    >>> G = oc.graph.from_arrays([0, 1, 1], [1, 0, 2], pathlib.Path(tempfile.mkdtemp()) / "g.ocg")
    >>> oc.graph.strongly_connected_components(G)
    array([0, 0, 2], dtype=uint32)
    """
    directed("strongly_connected_components", G)
    return work("strongly_connected_components", G._core.components(True))


@live
def core_number(G: Graph) -> Live[npt.NDArray[np.uint32]]:
    """Core numbers: the largest k such that the vertex is in a subgraph of minimum degree k, uint32 (n,).

    Edges of directed graphs count both ways. A loop counts as one neighbour. Memory: 15 bytes a vertex, 17 of a
    directed graph. I/O: each list once, in some thousand steps that take few lists each.

    >>> import outcore as oc, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "g.ocg"
    >>> G = oc.graph.from_arrays([0, 1, 2, 0], [1, 2, 0, 3], path, directed=False)
    >>> oc.graph.core_number(G)
    array([2, 2, 2, 1], dtype=uint32)
    """
    stored("core_number", G)
    return work("core_number", G._core.cores())


def generations_of(G: Graph) -> npt.NDArray[np.int64]:
    """The longest way to each vertex, in edges; -1 for those on or behind a circle."""
    return work("topological_sort", G._core.generations()).result()


@live
def topological_sort(G: Graph) -> Live[npt.NDArray[np.int64]]:
    """The vertices in an order in which every edge leads forward: int64 (n,), by generations, then numbers.

    Memory: 23 bytes a vertex. Raises ArgumentError for an undirected graph, or one with a circle. I/O: each list once.

    >>> import outcore as oc, tempfile, pathlib
    >>> G = oc.graph.from_arrays([2, 0], [0, 1], pathlib.Path(tempfile.mkdtemp()) / "g.ocg")
    >>> oc.graph.topological_sort(G)
    array([2, 0, 1])
    """
    directed("topological_sort", G)
    return work("topological_sort", G._core.generations()).then(_in_order)


def _in_order(generations: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Vertices by generations, if there is no circle."""
    on_circles = np.flatnonzero(generations < 0)
    if len(on_circles):
        raise ArgumentError(
            f"topological_sort: {len(on_circles)} vertices lie on or behind a circle, {on_circles[0]} first"
        )
    return np.argsort(generations, kind="stable")


__all__ = ["connected_components", "core_number", "strongly_connected_components", "topological_sort"]
