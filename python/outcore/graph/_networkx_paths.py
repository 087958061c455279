"""networkx's functions of paths and distances, by the searches here.

Where several shortest paths are equally short, networkx does not say which it gives; here it is that through the lowest
vertices, looked at from the end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator

import numpy as np
import numpy.typing as npt

from outcore._base.types import NDArray
from outcore.graph import _searching
from outcore.graph._graph import Graph
from outcore.graph._networkx_names import (
    Node,
    chosen,
    name_of,
    names_of,
    nearest_first,
    number_of,
    number_or_none,
    parts_of,
    reached,
    reserved,
)

_NONE = 2**32 - 1  # no vertex has this number


def distances_from(
    G: Graph, sources: list[int], weighted: bool, direction: str = "out", cutoff: float | None = None
) -> NDArray:
    """Along weights, or edges; these are not followed beyond `cutoff`. A vertex without a way has -1: a way along an
    infinite weight is one, of infinite length. I/O: where a distance is infinite, also that of a search along edges."""
    if weighted:
        distances = _searching.shortest_paths(G, sources, direction=direction)
        if np.isinf(distances).any():
            distances[_searching.bfs(G, sources, direction=direction) < 0] = -1
        return distances
    return _searching.bfs(G, sources, direction=direction, cutoff=cutoff)


def _whole(cutoff: float | None) -> float | None:
    """Edges that networkx follows: up to the first distance that is not below `cutoff`."""
    if cutoff is None or cutoff == np.inf:
        return None
    return float(np.ceil(cutoff)) if cutoff > 0 else 0


def _against(G: Graph, direction: str) -> str:
    return "in" if G.directed and direction == "out" else "out"


# -- the way back -----------------------------------------------------------------------------------------------------


def _tight(G: Graph, distances: NDArray, vertex: int, weighted: bool, direction: str) -> npt.NDArray[np.uint32]:
    """The neighbours from which an edge is the end of a shortest path to a vertex; `direction` leads back to them."""
    _, neighbours, weights = G.lists([vertex], direction)
    before = distances[neighbours]
    lengths = weights if weighted and weights is not None else 1
    is_tight: npt.NDArray[np.bool_] = (before >= 0) & (before + lengths == distances[vertex])
    return neighbours[is_tight]


def way_to(
    G: Graph,
    distances: NDArray,
    vertex: int,
    is_begin: Callable[[int], bool],
    weighted: bool = False,
    direction: str = "in",
) -> list[int]:
    """A shortest path to a vertex, by one list read a step. `direction` leads back to where it begins."""
    way = [vertex]
    while not is_begin(way[-1]):
        # Edges may be 0 long: so what is equally near is searched until something is nearer.
        here = way[-1]
        after: dict[int, int] = {here: here}
        level, nearer = deque([here]), None
        while nearer is None:
            at = level.popleft()
            for before in _tight(G, distances, at, weighted, direction).tolist():
                if distances[before] < distances[here] or is_begin(before):
                    nearer = before, at
                    break
                if before not in after:
                    after[before] = at
                    level.append(before)
        before, at = nearer
        between = []
        while at != here:
            between.append(at)
            at = after[at]
        way += [*reversed(between), before]
    return way[::-1]


def _parents(
    G: Graph,
    distances: NDArray,
    met: npt.NDArray[np.int64],
    sources: list[int],
    weighted: bool,
    direction: str,
) -> npt.NDArray[np.uint32]:
    """The vertex before each of those that were `met`, on a shortest path to it from the sources along `direction`.
    Reads their lists, and those of vertices as near as one behind an edge that is 0 long once more."""
    parents = np.full(G.number_of_vertices, _NONE, np.uint32)
    rooted = np.zeros(G.number_of_vertices, bool)
    rooted[sources] = True
    children = np.sort(met)
    for ids, rows, neighbours, weights in parts_of(G, children[~rooted[children]], _against(G, direction)):
        before, here = distances[neighbours], distances[ids][rows]
        lengths = weights if weighted and weights is not None else 1
        ends = np.flatnonzero((before >= 0) & (before + lengths == here) & (before < here))
        places, first = np.unique(rows[ends], return_index=True)
        parents[ids[places]] = neighbours[ends[first]]
        rooted[ids[places]] = True
    unreached = children[~rooted[children]]
    front = (
        children[rooted[children] & np.isin(distances[children], distances[unreached])] if len(unreached) else unreached
    )
    while len(front):
        behind = []
        for ids, rows, neighbours, weights in parts_of(G, front, direction):
            here = distances[ids][rows]
            lengths = weights if weighted and weights is not None else 1
            level = (here == distances[neighbours]) & (here + lengths == here) & ~rooted[neighbours]
            fresh, first = np.unique(neighbours[level], return_index=True)
            parents[fresh] = ids[rows[level][first]]
            rooted[fresh] = True
            behind.append(fresh)
        front = np.unique(np.concatenate(behind))
    return parents


def _paths(
    G: Graph,
    distances: NDArray,
    sources: list[int],
    weighted: bool = False,
    direction: str = "out",
    cutoff: float | None = None,
) -> dict[Node, list[Node]]:
    """By node a shortest path from the sources, or to them where `direction` is "in"; the nearest first."""
    met = nearest_first(distances, cutoff)
    with reserved(9 * G.number_of_vertices + 16 * len(met)):
        parents = _parents(G, distances, met, sources, weighted, direction)
        ways = {source: [name_of(G, source)] for source in sources}
        for vertex in met.tolist():
            behind = []
            while vertex not in ways:
                behind.append(vertex)
                vertex = int(parents[vertex])
            for at in reversed(behind):
                name, before = name_of(G, at), ways[int(parents[at])]
                ways[at] = [*before, name] if direction == "out" else [name, *before]
    return {name_of(G, vertex): way for vertex, way in ways.items()}


def _no_path(source: object, target: Node) -> Exception:
    import networkx as nx

    error: Exception = nx.NetworkXNoPath(f"No path between {source} and {target}.")
    return error


def _length(distances: NDArray, G: Graph, source: object, target: Node) -> float:
    """The length of a path, of those from a source."""
    hash(target)  # as networkx, which looks it up: TypeError where it has none
    number = number_or_none(G, target)
    length: float = -1 if number is None else distances[number].item()
    if length < 0:
        raise _no_path(source, target)
    return length


def _between(
    G: Graph, sources: Collection[Node], target: Node, weighted: bool, cutoff: float | None = None
) -> tuple[float, list[Node]]:
    """The length of a shortest path from the nearest source, and the path."""
    numbers = [number_of(G, source) for source in sources]
    if target in sources:
        return 0, [target]
    distances = distances_from(G, numbers, weighted)
    length = _length(distances, G, sources if len(numbers) > 1 else next(iter(sources)), target)
    if cutoff is not None and length > cutoff:
        raise _no_path(sources, target)
    starts = set(numbers)
    way = way_to(G, distances, number_of(G, target), starts.__contains__, weighted, _against(G, "out"))
    return length, names_of(G, np.array(way))


# The texts of networkx's errors for functions along edges: lengths and single paths, and all paths of a node.
_SOURCE, _TARGET = "Source {} is not in G", "Target {} is not in G"
_SOURCE_OF_ALL, _TARGET_OF_ALL = "Source {} not in G", "Target {} not in G"


# -- along edges ------------------------------------------------------------------------------------------------------


def single_source_shortest_path_length(G: Graph, source: Node, cutoff: float | None = None) -> dict[Node, float]:
    cutoff = _whole(cutoff)
    return reached(G, distances_from(G, [number_of(G, source, _SOURCE)], False, cutoff=cutoff), cutoff)


def single_target_shortest_path_length(G: Graph, target: Node, cutoff: float | None = None) -> object:
    import networkx as nx

    cutoff = _whole(cutoff)
    number = number_of(G, target, _TARGET)
    lengths = reached(G, distances_from(G, [number], False, "in", cutoff), cutoff)
    return iter(lengths.items()) if nx.__version__.startswith("3.4") else lengths


def single_source_shortest_path(G: Graph, source: Node, cutoff: float | None = None) -> dict[Node, list[Node]]:
    cutoff = _whole(cutoff)
    sources = [number_of(G, source, _SOURCE_OF_ALL)]
    return _paths(G, distances_from(G, sources, False, cutoff=cutoff), sources, cutoff=cutoff)


def single_target_shortest_path(G: Graph, target: Node, cutoff: float | None = None) -> dict[Node, list[Node]]:
    cutoff = _whole(cutoff)
    targets = [number_of(G, target, _TARGET_OF_ALL)]
    return _paths(G, distances_from(G, targets, False, "in", cutoff), targets, direction="in", cutoff=cutoff)


def all_pairs_shortest_path_length(G: Graph, cutoff: float | None = None) -> Iterator[tuple[Node, dict[Node, float]]]:
    for node, _ in chosen(G, None)[0]:
        yield node, single_source_shortest_path_length(G, node, cutoff)


def all_pairs_shortest_path(G: Graph, cutoff: float | None = None) -> Iterator[tuple[Node, dict[Node, list[Node]]]]:
    for node, _ in chosen(G, None)[0]:
        yield node, single_source_shortest_path(G, node, cutoff)


def _ends_in(G: Graph, source: Node, target: Node) -> None:
    """Raises networkx's NodeNotFound for what is no node, the source first."""
    number_of(G, source, _SOURCE)
    number_of(G, target, _TARGET)


def bidirectional_shortest_path(G: Graph, source: Node, target: Node) -> list[Node]:
    _ends_in(G, source, target)
    return _between(G, [source], target, False)[1]


def has_path(G: Graph, source: Node, target: Node) -> bool:
    _ends_in(G, source, target)
    return bool(_searching.bfs(G, number_of(G, source))[number_of(G, target)] >= 0)


# -- along weights ----------------------------------------------------------------------------------------------------


def multi_source_dijkstra_path_length(
    G: Graph, sources: Collection[Node], cutoff: float | None = None, weight: str = "weight"
) -> dict[Node, float]:
    if not sources:
        raise ValueError("sources must not be empty")
    numbers = [number_of(G, source) for source in sources]
    if cutoff is not None and cutoff < 0:
        return dict.fromkeys(sources, 0.0)
    return reached(G, distances_from(G, numbers, True), cutoff)


def single_source_dijkstra_path_length(
    G: Graph, source: Node, cutoff: float | None = None, weight: str = "weight"
) -> dict[Node, float]:
    return multi_source_dijkstra_path_length(G, {source}, cutoff)


def multi_source_dijkstra(
    G: Graph, sources: Collection[Node], target: Node | None = None, cutoff: float | None = None, weight: str = "weight"
) -> tuple[float, list[Node]] | tuple[dict[Node, float], dict[Node, list[Node]]]:
    if not sources:
        raise ValueError("sources must not be empty")
    if target is not None:
        return _between(G, sources, target, True, cutoff)
    return _from_all(G, sources, cutoff)


def _from_all(
    G: Graph, sources: Collection[Node], cutoff: float | None
) -> tuple[dict[Node, float], dict[Node, list[Node]]]:
    """Lengths of shortest paths from the nearest source, and the paths, by node. Raises ValueError for no source."""
    if not sources:
        raise ValueError("sources must not be empty")
    numbers = [number_of(G, source) for source in sources]
    if cutoff is not None and cutoff < 0:
        return dict.fromkeys(sources, 0.0), {source: [source] for source in sources}
    distances = distances_from(G, numbers, True)
    return reached(G, distances, cutoff), _paths(G, distances, numbers, True, cutoff=cutoff)


def multi_source_dijkstra_path(
    G: Graph, sources: Collection[Node], cutoff: float | None = None, weight: str = "weight"
) -> dict[Node, list[Node]]:
    return _from_all(G, sources, cutoff)[1]


def single_source_dijkstra(
    G: Graph, source: Node, target: Node | None = None, cutoff: float | None = None, weight: str = "weight"
) -> tuple[float, list[Node]] | tuple[dict[Node, float], dict[Node, list[Node]]]:
    return multi_source_dijkstra(G, {source}, target, cutoff)


def single_source_dijkstra_path(
    G: Graph, source: Node, cutoff: float | None = None, weight: str = "weight"
) -> dict[Node, list[Node]]:
    return multi_source_dijkstra_path(G, {source}, cutoff)


def dijkstra_path(G: Graph, source: Node, target: Node, weight: str = "weight") -> list[Node]:
    return _between(G, {source}, target, True)[1]


def dijkstra_path_length(G: Graph, source: Node, target: Node, weight: str = "weight") -> float:
    lengths = distances_from(G, [number_of(G, source)], True)
    return _length(lengths, G, source, target)


def bidirectional_dijkstra(G: Graph, source: Node, target: Node, weight: str = "weight") -> tuple[float, list[Node]]:
    _ends_in(G, source, target)
    return _between(G, [source], target, True)


def all_pairs_dijkstra(
    G: Graph, cutoff: float | None = None, weight: str = "weight"
) -> Iterator[tuple[Node, tuple[dict[Node, float], dict[Node, list[Node]]]]]:
    for node, _ in chosen(G, None)[0]:
        yield node, _from_all(G, [node], cutoff)


def all_pairs_dijkstra_path_length(
    G: Graph, cutoff: float | None = None, weight: str = "weight"
) -> Iterator[tuple[Node, dict[Node, float]]]:
    for node, _ in chosen(G, None)[0]:
        yield node, multi_source_dijkstra_path_length(G, [node], cutoff)


def all_pairs_dijkstra_path(
    G: Graph, cutoff: float | None = None, weight: str = "weight"
) -> Iterator[tuple[Node, dict[Node, list[Node]]]]:
    for node, _ in chosen(G, None)[0]:
        yield node, multi_source_dijkstra_path(G, [node], cutoff)


# -- along either -----------------------------------------------------------------------------------------------------


def _known(method: str) -> None:
    if method not in ("dijkstra", "bellman-ford"):
        raise ValueError(f"method not supported: {method}")


def shortest_path_length(
    G: Graph,
    source: Node | None = None,
    target: Node | None = None,
    weight: str | None = None,
    method: str = "dijkstra",
) -> object:
    _known(method)
    weighted = weight is not None
    if source is None and target is None:
        return all_pairs_dijkstra_path_length(G) if weighted else all_pairs_shortest_path_length(G)
    if source is None:
        number = number_of(G, target) if weighted else number_of(G, target, _TARGET)
        return reached(G, distances_from(G, [number], weighted, "in"), None)
    if target is not None and not weighted:
        _ends_in(G, source, target)
    number = number_of(G, source) if weighted else number_of(G, source, _SOURCE)
    lengths = distances_from(G, [number], weighted)
    return reached(G, lengths, None) if target is None else _length(lengths, G, source, target)


def shortest_path(
    G: Graph,
    source: Node | None = None,
    target: Node | None = None,
    weight: str | None = None,
    method: str = "dijkstra",
) -> object:
    import networkx as nx

    _known(method)
    weighted = weight is not None
    if source is None and target is None:
        paths = all_pairs_dijkstra_path(G) if weighted else all_pairs_shortest_path(G)
        return dict(paths) if nx.__version__.startswith("3.4") else paths
    if source is None:
        targets = [number_of(G, target) if weighted else number_of(G, target, _TARGET_OF_ALL)]
        return _paths(G, distances_from(G, targets, weighted, "in"), targets, weighted, "in")
    if target is not None:
        _ends_in(G, source, target)
        return _between(G, [source], target, weighted)[1]
    sources = [number_of(G, source) if weighted else number_of(G, source, _SOURCE_OF_ALL)]
    return _paths(G, distances_from(G, sources, weighted), sources, weighted)


def all_shortest_paths(
    G: Graph, source: Node, target: Node, weight: str | None = None, method: str = "dijkstra"
) -> Iterator[list[Node]]:
    _known(method)
    number = number_of(G, source)
    return _all_paths(G, distances_from(G, [number], weight is not None), number, source, target, weight is not None)


def single_source_all_shortest_paths(
    G: Graph, source: Node, weight: str | None = None, method: str = "dijkstra"
) -> Iterator[tuple[Node, list[list[Node]]]]:
    _known(method)
    number = number_of(G, source)
    lengths = distances_from(G, [number], weight is not None)
    for target in names_of(G, nearest_first(lengths, None)):
        yield target, list(_all_paths(G, lengths, number, source, target, weight is not None))


def _all_paths(
    G: Graph, lengths: NDArray, number: int, source: Node, target: Node, weighted: bool
) -> Iterator[list[Node]]:
    """Every shortest path between two nodes; in memory is one of them, and what is before each of its vertices."""
    _length(lengths, G, source, target)
    back = _against(G, "out")
    way = [number_of(G, target)]
    seen = set(way)
    befores: list[Iterator[int]] = []
    while way:
        if len(befores) < len(way):
            if way[-1] == number:
                # networkx gives a path again where edges that are 0 long lead back to the source.
                yield names_of(G, np.array(way[::-1]))
                befores.append(iter(()))
            else:
                befores.append(iter(_tight(G, lengths, way[-1], weighted, back).tolist()))
        for before in befores[-1]:
            if before not in seen:
                seen.add(before)
                way.append(before)
                break
        else:
            befores.pop()
            seen.discard(way.pop())


__all__ = [
    "all_pairs_dijkstra",
    "all_pairs_dijkstra_path",
    "all_pairs_dijkstra_path_length",
    "all_pairs_shortest_path",
    "all_pairs_shortest_path_length",
    "all_shortest_paths",
    "bidirectional_dijkstra",
    "bidirectional_shortest_path",
    "dijkstra_path",
    "dijkstra_path_length",
    "has_path",
    "multi_source_dijkstra",
    "multi_source_dijkstra_path",
    "multi_source_dijkstra_path_length",
    "shortest_path",
    "shortest_path_length",
    "single_source_all_shortest_paths",
    "single_source_dijkstra",
    "single_source_dijkstra_path",
    "single_source_dijkstra_path_length",
    "single_source_shortest_path",
    "single_source_shortest_path_length",
    "single_target_shortest_path",
    "single_target_shortest_path_length",
]
