"""Nodes of networkx's graphs, their numbers on disk, and what is known of vertices in the shapes networkx gives."""

from __future__ import annotations

import weakref
from collections.abc import Generator, Hashable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from outcore._base import files
from outcore._base.types import NDArray
from outcore._session.whole import whole_scan
from outcore.errors import ArgumentError
from outcore.graph._activity import silent_run
from outcore.graph._graph import Graph
from outcore.graph._making import from_arrays, from_networkx
from outcore.graph._stored import is_vertex, session

Node = Hashable
Nodes = Iterable[Node] | Node | None
ListsPart = tuple[NDArray, NDArray, NDArray, NDArray | None]


class Converted(Graph):
    """A graph of networkx's, stored in scratch while this lives; its nodes have names."""

    def __init__(self, graph: Any, weight: str | None) -> None:
        path = Path(session().unused_path())
        super().__init__(from_networkx(graph, path, weight=weight)._core)
        self.names = list(graph)
        self.numbers = {name: number for number, name in enumerate(self.names)}
        weakref.finalize(self, files.discard, path)

    def __reduce__(self) -> NoReturn:
        raise ArgumentError("graph: what was stored in scratch for networkx goes with this process; use from_networkx")


def number_or_none(G: Graph, node: Any) -> int | None:
    """The number of a node; None for what is none."""
    if isinstance(G, Converted):
        try:
            return G.numbers.get(node)
        except TypeError:  # nothing that has no hash is a node
            return None
    return int(node) if is_vertex(G, node) else None


def number_of(G: Graph, node: Node, missing: str = "Node {} not found in graph") -> int:
    """The number of a node. Raises networkx's NodeNotFound with the text of the function, in which {} is the node."""
    import networkx as nx

    number = number_or_none(G, node)
    if number is None:
        raise nx.NodeNotFound(missing.format(node))
    return number


def name_of(G: Graph, number: int) -> object:
    return G.names[number] if isinstance(G, Converted) else number


def names_of(G: Graph, numbers: NDArray) -> list[Node]:
    listed = numbers.tolist()
    return [G.names[number] for number in listed] if isinstance(G, Converted) else listed


def by_node(G: Graph, values: NDArray) -> dict[Node, float]:
    names = G.names if isinstance(G, Converted) else range(G.number_of_vertices)
    return dict(zip(names, values.tolist(), strict=True))


def chosen(G: Graph, nodes: object) -> tuple[list[tuple[Node, int]], bool]:
    """Nodes with their numbers, all unless given, and whether one was given instead of several. Other objects are left
    out, as networkx does. Raises networkx's NetworkXError for an argument that is neither a node nor several."""
    import networkx as nx

    if nodes is None:
        numbers = range(G.number_of_vertices)
        return list(zip(G.names if isinstance(G, Converted) else numbers, numbers, strict=True)), False
    number = number_or_none(G, nodes)
    if number is not None:
        return [(nodes, number)], True
    if not isinstance(nodes, Iterable):
        raise nx.NetworkXError(f"Node {nodes} is not in the graph.")
    pairs = []
    for node in nodes:
        try:
            hash(node)
        except TypeError as error:
            raise nx.NetworkXError(f"Node {node} in sequence nbunch is not a valid node.") from error
        pairs.append((node, number_or_none(G, node)))
    return [(node, number) for node, number in pairs if number is not None], False


def of_nodes(G: Graph, values: NDArray, nodes: Nodes) -> object:
    """Of a node its value; of several, or all, a dictionary."""
    if nodes is None:
        return by_node(G, values)
    pairs, is_one = chosen(G, nodes)
    return values[pairs[0][1]].item() if is_one else {node: values[number].item() for node, number in pairs}


def parts_of_equal(labels: NDArray) -> list[npt.NDArray[np.int64]]:
    """The places of equal labels, by the lowest of each part."""
    order = np.argsort(labels, kind="stable")
    begins = np.flatnonzero(np.diff(labels[order])) + 1
    parts = [part for part in np.split(order, begins) if len(part)]
    return sorted(parts, key=lambda part: int(part[0]))


def groups(G: Graph, labels: NDArray) -> Iterator[set[Node]]:
    """Nodes of equal labels, by the lowest of each group."""
    for part in parts_of_equal(labels):
        yield set(names_of(G, part))


def nearest_first(distances: NDArray, cutoff: float | None) -> npt.NDArray[np.int64]:
    """The vertices to which there is a way as long as that at most, the nearest first; a source always. -1 is no
    distance."""
    far = np.inf if cutoff is None else max(cutoff, 0)
    met = np.flatnonzero((distances >= 0) & (distances <= far))
    return met[np.argsort(distances[met], kind="stable")]


def reached(G: Graph, distances: NDArray, cutoff: float | None) -> dict[Node, float]:
    met = nearest_first(distances, cutoff)
    return dict(zip(names_of(G, met), distances[met].tolist(), strict=True))


def parts_of(G: Graph, ids: NDArray, direction: str, step: int = 2 << 20) -> Iterator[ListsPart]:
    """The lists of some vertices, ascending, some megabytes of the file at a time: vertices, the place of its vertex in
    these for each neighbour, neighbours, weights (None where there are none)."""
    return whole_scan("scan of a graph", _read_parts_of(G, ids, direction, step))


def _read_parts_of(G: Graph, ids: NDArray, direction: str, step: int) -> Generator[ListsPart, None, None]:
    begin = 0
    while begin < len(ids):
        after = max(G._core.vertex_after(int(ids[begin]), step, direction), int(ids[begin]) + 1)
        end = min(int(np.searchsorted(ids, after)), begin + step)
        part = ids[begin:end].astype(np.uint32)
        begins, neighbours, weights = G.lists(part, direction)
        yield part, np.repeat(np.arange(len(part)), np.diff(begins)), neighbours, weights
        begin = end


@contextmanager
def without_weights(G: Graph) -> Iterator[Graph]:
    """The graph without its weights. networkx keeps what it has converted, and hands it to calls that want fewer
    attributes: a graph that has weights then was one of networkx's, and its edges are in memory anyway."""
    if G.dtype is None:
        yield G
        return
    parts = [(np.repeat(ids, np.diff(begins)), neighbours) for ids, begins, neighbours, _ in G._parts("out")]
    sources, targets = (np.concatenate(ends) for ends in zip(*parts, strict=True))
    path = Path(session().unused_path())
    try:
        yield from_arrays(sources, targets, path, vertices=G.number_of_vertices, directed=G.directed)
    finally:
        files.discard(path)


@contextmanager
def reserved(bytes: int) -> Iterator[None]:
    """Holds memory for what is beside a result. Raises MemoryLimitError where there is none."""
    run = silent_run()
    run.hold(bytes)
    try:
        yield
    finally:
        run.release()


__all__ = [
    "Converted",
    "Node",
    "Nodes",
    "by_node",
    "chosen",
    "groups",
    "name_of",
    "names_of",
    "nearest_first",
    "number_of",
    "number_or_none",
    "of_nodes",
    "parts_of",
    "parts_of_equal",
    "reached",
    "reserved",
    "without_weights",
]
