"""Groups of vertices that belong together, and vertices that are apart."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from outcore import _core
from outcore._base.arguments import real, whole
from outcore.errors import ArgumentError
from outcore.graph._activity import running, scanning
from outcore.graph._graph import Graph, undirected
from outcore.graph._live import Live, live, work

# A weight and a sum of weights between which products of two of them are numbers of usual size.
_USUAL = (1e-150, 1e150)


@live
def label_propagation(G: Graph, *, iterations: int = 100, seed: int = 0) -> Live[npt.NDArray[np.uint32]]:
    """Communities by labels that spread: each vertex has the label that most of its neighbours have (Raghavan, Albert,
    Kumara 2007): uint32 (n,).

    In an iteration one half of the vertices, drawn with `seed`, looks at its neighbours; it ends where nothing changes.
    The same seed gives the same labels. Memory: 10 bytes a vertex, 15 where a list is longer than a mebibyte. Raises
    ArgumentError for a directed graph, or a number that is below 0. I/O: a read of the lists an iteration at most.

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
    return work("label_propagation", G._core.spread(iterations, seed)).then(lambda labelled: labelled[0])


@live
def louvain_communities(
    G: Graph, *, resolution: float = 1.0, seed: int = 0, threshold: float = 1e-7
) -> Live[tuple[npt.NDArray[np.uint32], float]]:
    """Communities of high modularity by the method of Louvain: the lowest vertex of the community of each, uint32 (n,),
    and the modularity (Blondel, Guillaume, Lambiotte, Lefebvre 2008).

    Vertices move to the community where they add most to Q = Σ (W_c / m - `resolution` (K_c / 2m)²), by the weights of
    edges if there are any; then communities are the vertices of a smaller graph, until no more than `threshold` is
    added. A loop counts as networkx counts it. They move in the order of their numbers; `seed` says which of several
    communities that are as good they go to. A vertex without edges is a community. The same bits at every number of
    threads.

    Memory: 33 bytes a vertex, 35 with weights, and a part of what there is for lists for the smaller graphs, which are
    stored in scratch where they do not fit; a community with more neighbours than have room is refused with
    MemoryLimitError. Raises ArgumentError for a directed graph, weights that are negative or infinite, a resolution or
    threshold below 0. I/O: mostly some ten reads of the lists, the later ones of vertices that may move.

    >>> import outcore as oc, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "g.ocg"
    >>> ends = [0, 1, 2, 3, 4, 5, 2], [1, 2, 0, 4, 5, 3, 3]
    >>> labels, modularity = oc.graph.louvain_communities(oc.graph.from_arrays(*ends, path, directed=False))
    >>> labels.tolist(), round(modularity, 3)
    ([0, 0, 0, 3, 3, 3], 0.357)
    """
    undirected("louvain_communities", G)
    whole("louvain_communities", 2**64 - 1, seed=seed)
    real("louvain_communities", "a number from 0 on", resolution=resolution, threshold=threshold)
    if not (0 <= resolution < np.inf and threshold >= 0):
        raise ArgumentError(f"louvain_communities: resolution={resolution}, threshold={threshold}; from 0, and finite")

    def moves(exponent: int) -> _core.LiveOperator[tuple[npt.NDArray[np.uint32], float]]:
        return G._core.louvain(resolution, seed, threshold, exponent)

    def communities() -> tuple[npt.NDArray[np.uint32], float]:
        with running("louvain_communities") as run:
            return moves(0 if G.dtype is None else _exponent_of_weights(G)).run(run)

    return Live(moves(0), communities)


def _exponent_of_weights(G: Graph) -> int:
    """The power of two by which weights are multiplied, so that their sum is a number; looked up once. Raises
    ArgumentError for a weight that is negative, infinite or no number."""
    if not hasattr(G, "_weights"):
        with scanning("scan of the weights of a graph") as run:
            lowest, highest, total, is_nan = G._core.weights().run(run)
        if lowest < 0 or highest == np.inf or is_nan:
            if is_nan and lowest >= 0:
                raise ArgumentError("louvain_communities: a weight is not a number; all must be at least 0 and finite")
            raise ArgumentError(
                f"louvain_communities: weights from {lowest} on, up to {highest}; they must be at least 0 and finite"
            )
        is_usual = highest <= 0 or (_USUAL[0] < highest and total < _USUAL[1])
        G._weights = 0 if is_usual else -int(np.frexp(highest)[1])  # type: ignore[attr-defined]
    return G._weights  # type: ignore[attr-defined, no-any-return]


@live
def maximal_independent_set(G: Graph, *, seed: int = 0) -> Live[npt.NDArray[np.uint32]]:
    """Vertices no two of which are neighbours, and to which none can be added, ascending: uint32 (Luby 1986).

    A loop does not count. The same seed gives the same set. Memory: 9 bytes a vertex. Raises ArgumentError for a
    directed graph. I/O: some reads, each of the vertices that are left.

    >>> import outcore as oc, tempfile, pathlib
    >>> G = oc.graph.from_arrays([0, 0, 0], [1, 2, 3], pathlib.Path(tempfile.mkdtemp()) / "g.ocg", directed=False)
    >>> oc.graph.maximal_independent_set(G).tolist() in ([0], [1, 2, 3])
    True
    """
    undirected("maximal_independent_set", G)
    whole("maximal_independent_set", 2**64 - 1, seed=seed)
    return work("maximal_independent_set", G._core.independent(seed))


__all__ = ["label_propagation", "louvain_communities", "maximal_independent_set"]
