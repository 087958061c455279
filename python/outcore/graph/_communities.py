"""Groups of vertices that belong together, and vertices that are apart."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from outcore.graph._activity import running
from outcore.graph._graph import Graph, undirected, whole


def label_propagation(G: Graph, *, iterations: int = 100, seed: int = 0) -> npt.NDArray[np.uint32]:
    """Communities by labels that spread: each vertex has the label that most of its neighbours have (Raghavan, Albert,
    Kumara 2007): uint32 (n,).

    In an iteration one half of the vertices, drawn with `seed`, looks at its neighbours; it ends where nothing changes.
    The same seed gives the same labels. Memory: 21 bytes a vertex. Raises ArgumentError for a directed graph, or a
    number that is below 0. I/O: a read of the lists an iteration at most.

    >>> import outcore as oc, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "g.ocg"
    >>> G = oc.graph.from_arrays([0, 1, 2, 3, 4, 5], [1, 2, 0, 4, 5, 3], path, directed=False)
    >>> labels = oc.graph.label_propagation(G)
    >>> len(set(labels[:3])), len(set(labels[3:]))
    (1, 1)
    """
    undirected("label_propagation", G)
    whole("label_propagation", 2**32 - 1, iterations=iterations)
    whole("label_propagation", 2**64 - 1, seed=seed)
    with running("label_propagation") as run:
        return G._core.spread(run, iterations, seed)[0]


def maximal_independent_set(G: Graph, *, seed: int = 0) -> npt.NDArray[np.uint32]:
    """Vertices no two of which are neighbours, and to which none can be added, ascending: uint32 (Luby 1986).

    A loop does not count. The same seed gives the same set. Memory: 21 bytes a vertex. Raises ArgumentError for a
    directed graph. I/O: some reads, each of the vertices that are left.

    >>> import outcore as oc, tempfile, pathlib
    >>> G = oc.graph.from_arrays([0, 0, 0], [1, 2, 3], pathlib.Path(tempfile.mkdtemp()) / "g.ocg", directed=False)
    >>> oc.graph.maximal_independent_set(G).tolist() in ([0], [1, 2, 3])
    True
    """
    undirected("maximal_independent_set", G)
    whole("maximal_independent_set", 2**64 - 1, seed=seed)
    with running("maximal_independent_set") as run:
        return G._core.independent(run, seed)


__all__ = ["label_propagation", "maximal_independent_set"]
