"""How much vertices matter."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from outcore._arguments import whole
from outcore.errors import ArgumentError
from outcore.graph._activity import running
from outcore.graph._graph import Graph, ids_of, stored


def pagerank(
    G: Graph, damping: float = 0.85, *, tol: float = 1e-6, iterations: int = 100, full_output: bool = False
) -> Any:
    """PageRank of each vertex (Page, Brin, Motwani, Winograd 1999): float64 (n,), with sum 1; weights do not count.

    The rank of vertices without edges is spread over all. It ends where ranks change by less than n `tol` together, as
    networkx does, or after `iterations`; with `full_output` the number of iterations comes as well, None where they
    were not enough. Memory: 18 bytes a vertex. The result has the same bits at every number of threads. Raises
    ArgumentError for a damping outside 0 to 1. I/O: an iteration reads the lists of those that edges come from once.
    `sparse.pagerank` takes weights and personalization.

    >>> import outcore as oc, tempfile, pathlib
    >>> G = oc.graph.from_arrays([0, 1, 2], [2, 2, 0], pathlib.Path(tempfile.mkdtemp()) / "g.ocg")
    >>> oc.graph.pagerank(G, tol=1e-12).round(3)
    array([0.464, 0.05 , 0.486])
    """
    stored("pagerank", G)
    if not 0 <= damping <= 1 or iterations < 1 or not tol >= 0:
        raise ArgumentError(
            f"pagerank: damping={damping}, iterations={iterations}, tol={tol}: 0 to 1, at least 1, from 0"
        )
    whole("pagerank", 2**32 - 1, iterations=iterations)
    if G.number_of_vertices == 0:
        return (np.zeros(0), 0) if full_output else np.zeros(0)
    with running("pagerank") as run:
        ranks, done = G._core.ranks(run, damping, tol, iterations)
    return (ranks, done) if full_output else ranks


def betweenness_centrality(
    G: Graph, sources: Any = None, *, normalized: bool = True, seed: int = 0
) -> npt.NDArray[np.float64]:
    """The part of all shortest paths between other vertices that lead through each: float64 (n,); weights do not count.

    `sources` are vertices, or how many to draw (with `seed`); all unless given. From those alone paths are counted, and
    the sums are scaled to all (Brandes 2001; Brandes and Pich 2007). As in networkx, without `normalized` each pair
    counts 1, of undirected graphs once. Memory: 37 bytes a vertex. I/O: for each source, what it reaches is read twice.

    >>> import outcore as oc, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "g.ocg"
    >>> G = oc.graph.from_arrays([0, 1], [1, 2], path, directed=False)
    >>> oc.graph.betweenness_centrality(G)
    array([0., 1., 0.])
    """
    stored("betweenness_centrality", G)
    whole("betweenness_centrality", 2**64 - 1, seed=seed)
    n = G.number_of_vertices
    if sources is None:
        chosen = list(range(n))
    elif isinstance(sources, (int, np.integer)) and not isinstance(sources, bool):
        if not 0 < sources <= n:
            raise ArgumentError(f"betweenness_centrality: {sources} sources of {n} vertices")
        chosen = np.sort(np.random.default_rng(seed).choice(n, int(sources), replace=False)).tolist()
    else:
        chosen = ids_of("betweenness_centrality", G, sources)
    with running("betweenness_centrality") as run:
        sums = G._core.betweenness(run, chosen)
    # A pair of an undirected graph is met from both of its ends.
    scale = 1.0 if G.directed else 0.5
    if normalized:
        scale = 1 / ((n - 1) * (n - 2)) if n > 2 else 1.0
    return np.multiply(sums, scale * n / max(len(chosen), 1) if len(chosen) != n else scale)


def degree_histogram(G: Graph, direction: str = "both") -> npt.NDArray[np.int64]:
    """How many vertices have each number of neighbours: int64, from 0 to the most. I/O: about a byte a vertex.

    >>> import outcore as oc, tempfile, pathlib
    >>> G = oc.graph.from_arrays([0, 0], [1, 2], pathlib.Path(tempfile.mkdtemp()) / "g.ocg")
    >>> oc.graph.degree_histogram(G, "out")
    array([2, 0, 1])
    """
    stored("degree_histogram", G)
    return np.bincount(G.degrees(direction))


__all__ = ["betweenness_centrality", "degree_histogram", "pagerank"]
