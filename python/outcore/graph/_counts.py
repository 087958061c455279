"""Triangles, and what follows from them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from outcore.errors import ArgumentError
from outcore.graph._graph import Graph, undirected
from outcore.graph._live import Live, live, work


@live
def triangles(G: Graph, *, each: bool = False) -> Live[int | npt.NDArray[np.uint64]]:
    """The number of triangles; with `each` those that every vertex is in: uint64 (n,). Loops do not count.

    Lists of as many vertices as there is memory for are kept while the others pass by. Memory: 11 bytes a vertex, 23
    with `each`, one more for every eight threads, and what there is for lists. Raises ArgumentError for a directed
    graph. I/O: one read of the lists, and one for each part of them that fits into memory.

    >>> import outcore as oc, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "g.ocg"
    >>> G = oc.graph.from_arrays([0, 1, 2, 0], [1, 2, 0, 3], path, directed=False)
    >>> oc.graph.triangles(G), oc.graph.triangles(G, each=True).tolist()
    (1, [1, 1, 1, 0])
    """
    undirected("triangles", G)
    return work("triangles", G._core.triangles(bool(each))).then(lambda counts: counts[1] if each else counts[0])


def _simple_degrees(G: Graph) -> npt.NDArray[np.int64]:
    """Neighbours of each vertex but itself."""
    degrees = G.degrees()
    np.subtract.at(degrees, G._loops(), 1)
    return degrees


@live
def clustering(G: Graph) -> Live[npt.NDArray[np.float64]]:
    """Of the pairs of neighbours of each vertex, the part that are neighbours of each other: float64 (n,), 0 for fewer
    than two (Watts, Strogatz 1998). Raises ArgumentError for a directed graph. Memory and I/O: those of `triangles`
    with `each`.

    >>> import outcore as oc, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "g.ocg"
    >>> G = oc.graph.from_arrays([0, 1, 2, 0], [1, 2, 0, 3], path, directed=False)
    >>> oc.graph.clustering(G).round(2)
    array([0.33, 1.  , 1.  , 0.  ])
    """
    undirected("clustering", G)
    return work("clustering", G._core.clustering())


@live
def average_clustering(G: Graph) -> Live[float]:
    """The mean of `clustering`; 0 for a graph without vertices. I/O: that of `triangles`.

    >>> import outcore as oc, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "g.ocg"
    >>> G = oc.graph.from_arrays([0, 1, 2], [1, 2, 0], path, directed=False)
    >>> oc.graph.average_clustering(G)
    1.0
    """
    undirected("clustering", G)
    coefficients = work("clustering", G._core.clustering())
    return coefficients.then(lambda each: float(each.mean()) if len(each) else 0.0)


@live
def scan_statistics(G: Graph) -> Live[tuple[int, int]]:
    """The vertex around which there are the most edges, and how many: its own and those between its neighbours (Priebe,
    Conroy, Marchette, Park 2005). Of several the lowest; loops do not count.

    Vertices of the highest degrees are looked at first, 64 at a time, until there cannot be more around the others.
    Memory: 19 bytes a vertex. Raises ArgumentError for a directed graph or one without vertices. I/O: the lists of the
    neighbours of those that are looked at, and one read of those whose degree does not tell that there are fewer.

    >>> import outcore as oc, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "g.ocg"
    >>> G = oc.graph.from_arrays([0, 1, 2, 0], [1, 2, 0, 3], path, directed=False)
    >>> oc.graph.scan_statistics(G)
    (0, 4)
    """
    undirected("scan_statistics", G)
    return work("scan_statistics", G._core.scan()).then(_densest)


def _densest(statistics: tuple[int, int, int] | None) -> tuple[int, int]:
    """The vertex and its edges, if there is a vertex."""
    if statistics is None:
        raise ArgumentError("scan_statistics: the graph must have at least 1 vertex")
    return statistics[0], statistics[1]


__all__ = ["average_clustering", "clustering", "scan_statistics", "triangles"]
