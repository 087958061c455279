"""Work on graphs for processes of their own: under a real limit, or ended by a kill."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import outcore as oc
from outcore.graph import Graph

SEARCHES: dict[str, Callable[[Graph], Any]] = {
    "bfs": lambda G: oc.graph.bfs(G, 0),
    "components": oc.graph.connected_components,
    "ranks": lambda G: oc.graph.pagerank(G, tol=0, iterations=3),
    "paths": lambda G: oc.graph.shortest_paths(G, 0, step=20_000),
    "triangles": lambda G: oc.graph.triangles(G, each=True),
    "cores": oc.graph.core_number,
    "independent": lambda G: oc.graph.maximal_independent_set(G, seed=1),
    "lists": lambda G: sum(int(neighbours.sum()) for _, _, neighbours, _ in G._parts("out")),
}


def search(path: str, out: str, memory_limit: int) -> list[str]:
    """Runs all of them, and stores what they find."""
    with oc.Session(memory_limit=memory_limit, threads=2, progress=False, scratch=[out]):
        G = oc.graph.open(path)
        for name, call in SEARCHES.items():
            np.save(f"{out}/{name}.npy", call(G))
    return list(SEARCHES)


def make(bits: int, edges: int, path: str, scratch: str, memory_limit: int) -> int:
    """Stores an R-MAT graph with weights, from lazy arrays."""
    with oc.Session(memory_limit=memory_limit, threads=2, progress=False, scratch=[scratch]):
        rows, columns = oc.sparse.rmat_edges(1 << bits, edges, seed=1)
        weights = oc.random.uniform((edges,), seed=2)
        G = oc.graph.from_arrays(rows, columns, path, weights=weights, vertices=1 << bits, side=2048)
        return G.number_of_edges


def read(source: str, target: str, scratch: str) -> None:
    """Stores a graph of text, to go on where it was killed."""
    with oc.Session(memory_limit=8 << 30, threads=2, progress=False, scratch=[scratch]):
        oc.graph.from_edges(source, target, directed=False, weights=True, resume=True)


if __name__ == "__main__":
    read(*sys.argv[1:])
