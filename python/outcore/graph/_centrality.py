"""How much vertices matter."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from outcore._base.arguments import real, whole
from outcore._lazy.node import ArrayLike
from outcore.errors import ArgumentError, ShapeError
from outcore.graph._graph import Graph, ids_of, stored
from outcore.graph._live import Live, live, work


@live
def pagerank(
    G: Graph,
    damping: float = 0.85,
    *,
    weighted: bool = False,
    personalization: ArrayLike | None = None,
    dangling: ArrayLike | None = None,
    start: ArrayLike | None = None,
    threshold: float | None = None,
    tol: float = 1e-6,
    iterations: int = 100,
    full_output: bool = False,
) -> Live[Any]:
    """PageRank of each vertex (Page, Brin, Motwani, Winograd 1999): float64 (n,), with sum 1.

    With d = `damping`, s the number of edges that leave a vertex (their weights, if `weighted`) and Z the vertices
    where that is 0:

        r_v ← d Σ_u→v w_uv r_u / s_u + d (Σ_Z r) q_v + (1 - d) p_v

    p is `personalization` and q `dangling`, (n,) from 0 on, whose sums are made 1: equal parts for p, and p for q,
    unless given; r begins with `start`, or equal. It ends where ranks change by less than n `tol` together, as networkx
    does, or after `iterations`; with `full_output` the number of iterations comes as well, None where they were not
    enough.

    With a `threshold` only vertices tell their neighbours whose rank has gained more than it since they last did: later
    iterations read the lists of few (Zhang et al. 2012; Zheng et al., FlashGraph, 2015). It ends, whatever `tol`, where
    nobody has; ranks, before they are made to sum to 1, are wrong by at most n threshold d / (1 - d) together then.
    `dangling` and `start` are not for it.

    Memory: 18 bytes a vertex, 27 with a `threshold`; 10 more if `weighted`, and 8 for each vector that is given. The
    result has the same bits at every number of threads. Raises ArgumentError for what is out of range and for weights
    that are negative or infinite, ShapeError for vectors of another length. I/O: an iteration reads the lists (and
    weights) of those that edges come from once, with a `threshold` at most; weights are read once more for their sums.

    >>> import outcore as oc, tempfile, pathlib
    >>> G = oc.graph.from_arrays([0, 1, 2], [2, 2, 0], pathlib.Path(tempfile.mkdtemp()) / "g.ocg")
    >>> oc.graph.pagerank(G, tol=1e-12).round(3)
    array([0.464, 0.05 , 0.486])
    >>> oc.graph.pagerank(G, threshold=1e-12).round(3)
    array([0.464, 0.05 , 0.486])
    """
    stored("pagerank", G)
    real("pagerank", "a number", damping=damping, tol=tol)
    whole("pagerank", 2**32 - 1, iterations=iterations)
    if not 0 <= damping <= 1 or iterations < 1 or tol < 0:
        raise ArgumentError(
            f"pagerank: damping must be from 0 to 1, iterations at least 1, tol at least 0; "
            f"they are {damping}, {iterations} and {tol}"
        )
    if weighted and G.dtype is None:
        raise ArgumentError("pagerank: the graph has no weights; store it with weights, or leave weighted=True out")
    if threshold is not None:
        real("pagerank", "a positive number, or None,", threshold=threshold)
        if not (threshold > 0 and damping < 1):
            raise ArgumentError(
                f"pagerank: threshold must be above 0 and damping below 1, not {threshold} and {damping}"
            )
        if dangling is not None or start is not None:
            raise ArgumentError(
                "pagerank: dangling and start cannot be given with a threshold; leave one or the other out"
            )
    parts = {"personalization": personalization, "dangling": dangling, "start": start}
    vectors = [_parts(G, name, vector) for name, vector in parts.items()]
    if G.number_of_vertices == 0:
        return Live(None, lambda: (np.zeros(0), 0) if full_output else np.zeros(0))
    walk = work("pagerank", G._core.ranks(damping, tol, iterations, weighted, threshold, vectors))
    return walk if full_output else walk.then(lambda ranked: ranked[0])


def _parts(G: Graph, name: str, weights: ArrayLike | None) -> npt.NDArray[np.float64] | None:
    """A number from 0 on for each vertex, with sum 1."""
    if weights is None:
        return None
    try:
        parts = np.array(weights, dtype=np.float64)
        is_text = np.asarray(weights).dtype.kind in "SU"
    except (TypeError, ValueError):
        is_text = True
    if is_text:
        raise ArgumentError(f"pagerank: {name} must be an array of a number for each vertex")
    if parts.shape != (G.number_of_vertices,):
        raise ShapeError(f"pagerank: {name} must have shape ({G.number_of_vertices},), not {parts.shape}")
    total = parts.sum()
    if not (np.isfinite(total) and total > 0 and parts.min() >= 0):
        raise ArgumentError(
            f"pagerank: {name} must be at least 0, its sum above 0; the least is {parts.min()}, the sum {total}"
        )
    parts /= total
    return parts


@live
def betweenness_centrality(
    G: Graph, sources: npt.ArrayLike | int | None = None, *, normalized: bool = True, seed: int = 0
) -> Live[npt.NDArray[np.float64]]:
    """The part of all shortest paths between other vertices that lead through each: float64 (n,); weights do not count.

    `sources` are vertices, or how many to draw (with `seed`); all unless given. From those alone paths are counted, and
    the sums are scaled to all (Brandes 2001; Brandes and Pich 2007). As in networkx, without `normalized` each pair
    counts 1, of undirected graphs once. Memory: 23 bytes a vertex, or 18 where there is no room for more; then a search
    of more than some fifty levels may end with MemoryLimitError. I/O: for each source,
    what it reaches is read twice.

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
            raise ArgumentError(f"betweenness_centrality: sources must be from 1 to the {n} vertices, not {sources}")
        chosen = np.sort(np.random.default_rng(seed).choice(n, int(sources), replace=False)).tolist()
    else:
        chosen = ids_of("betweenness_centrality", G, sources)
    # A pair of an undirected graph is met from both of its ends.
    scale = 1.0 if G.directed else 0.5
    if normalized:
        scale = 1 / ((n - 1) * (n - 2)) if n > 2 else 1.0
    if len(chosen) != n:
        scale = scale * n / max(len(chosen), 1)
    search = work("betweenness_centrality", G._core.betweenness(chosen))
    return search.then(lambda sums: np.multiply(sums, scale))


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
