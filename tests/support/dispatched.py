"""What networkx's functions give, and what the backend gives in their place."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

from outcore.graph import Graph
from outcore.graph._networkx import backend_interface, convert_from_nx
from support.graphs import directed_of, isolated, weighted, write


def _sparse() -> Any:
    """Some ways between most nodes, loops, and nodes without edges."""
    return isolated(nx.gnp_random_graph(12, 0.3, seed=2))


SMALL: dict[str, Callable[[], Any]] = {
    "empty": lambda: nx.empty_graph(0),
    "one": lambda: nx.empty_graph(1),
    "loop": lambda: nx.Graph([(0, 0)]),
    "edgeless": lambda: nx.empty_graph(3),
    "edge": lambda: nx.path_graph(2),
    "path": lambda: nx.path_graph(6),
    "star": lambda: nx.star_graph(5),
    "complete": lambda: nx.complete_graph(5),
    "circles": lambda: nx.disjoint_union(nx.cycle_graph(6), nx.cycle_graph(3)),
    "tree": lambda: nx.balanced_tree(2, 3),
    "sparse": _sparse,
    "dense": lambda: nx.gnp_random_graph(20, 0.3, seed=3),
}


def pairs(kind: str, directed: bool, out: Path, weight: int | None = None) -> list[tuple[Any, Graph]]:
    """A graph of networkx's and the same on disk: stored with numbers, and converted with names. Weights are whole,
    from 0 to `weight`."""
    graph = directed_of(SMALL[kind]()) if directed else SMALL[kind]()
    if weight is not None:
        weighted(graph, highest=weight)
    # Neighbours are in ascending order, as in a stored graph.
    ordered = type(graph)()
    ordered.add_nodes_from(range(len(graph)))
    ordered.add_edges_from(sorted(graph.edges(data=True), key=lambda edge: edge[:2]))
    named = nx.relabel_nodes(ordered, {vertex: f"v{vertex}" for vertex in ordered})
    stored = write(ordered, out, "" if weight is None else "float64")
    return [(ordered, stored), (named, convert_from_nx(named, edge_attrs=None if weight is None else {"weight": 1}))]


MADE = ["stored", "named"]


def pair(kind: str, directed: bool, made: str, out: Path, weight: int | None = None) -> tuple[Any, Graph]:
    """One of `pairs`."""
    return pairs(kind, directed, out, weight)[MADE.index(made)]


def plain(found: Any) -> Any:
    """What a generator gives, in a list."""
    return list(found) if hasattr(found, "__next__") else found


def agree(found: Any, wanted: Any) -> None:
    found, wanted = plain(found), plain(wanted)
    if isinstance(wanted, dict):
        assert list(found) == list(wanted)
        assert {type(value) for value in found.values()} <= {int, float}
        np.testing.assert_allclose(list(found.values()), list(wanted.values()), rtol=1e-5, atol=1e-9)
    elif isinstance(wanted, list) and wanted and isinstance(wanted[0], set):
        assert {frozenset(part) for part in found} == {frozenset(part) for part in wanted}
        assert len(found) == len(wanted)
    else:
        assert type(found) is type(wanted)
        assert found == pytest.approx(wanted) if isinstance(wanted, float) else found == wanted


def both(name: str, graph: Any, G: Graph, *args: Any, **kwargs: Any) -> None:
    """Calls both; networkx's errors are those of the backend."""
    ours = getattr(backend_interface, name)
    # Beyond what is dispatched: so no other backend and no cache comes between.
    theirs = getattr(nx, name)
    try:
        wanted = plain(theirs(graph, *args, **kwargs))
    except (nx.NetworkXException, ZeroDivisionError, ValueError) as error:
        with pytest.raises(type(error)):
            plain(ours(G, *args, **kwargs))
        return
    agree(ours(G, *args, **kwargs), wanted)


def failing(call: Callable[[], Any]) -> Any:
    """What a call gives, or the exception it raises."""
    try:
        return plain(call())
    except Exception as error:
        return error


def outcomes(name: str, graph: Any, G: Graph, *args: Any, seed: int | None = None, **kwargs: Any) -> tuple[Any, Any]:
    """What both give; None for both where they raise the same. A seed comes to a backend as the generator it begins."""
    ours, theirs = getattr(backend_interface, name), getattr(nx, name, getattr(nx.community, name, None))
    seeds: list[dict[str, Any]] = [{}, {}] if seed is None else [{"seed": random.Random(seed)}, {"seed": seed}]
    found = failing(lambda: ours(G, *args, **kwargs, **seeds[0]))
    wanted = failing(lambda: theirs(graph, *args, **kwargs, **seeds[1]))
    if isinstance(wanted, Exception):
        assert isinstance(found, type(wanted)), (name, args, kwargs, found, wanted)
        return None, None
    assert not isinstance(found, Exception), (name, args, kwargs, found, wanted)
    return found, wanted


def same(name: str, graph: Any, G: Graph, *args: Any, **kwargs: Any) -> None:
    """Both give the same, or raise the same exception."""
    found, wanted = outcomes(name, graph, G, *args, **kwargs)
    assert found == wanted, (name, args, kwargs)


def near(name: str, graph: Any, G: Graph, *args: Any, **kwargs: Any) -> None:
    """Both give the same numbers but for rounding, or raise the same exception."""
    found, wanted = outcomes(name, graph, G, *args, **kwargs)
    if wanted is not None:
        assert found == pytest.approx(wanted, rel=1e-9, abs=1e-12, nan_ok=True), (name, args, kwargs)


def same_sets(name: str, graph: Any, G: Graph, *args: Any, **kwargs: Any) -> None:
    """Both give the same lists in whatever order, ours each once, or raise the same exception."""
    found, wanted = outcomes(name, graph, G, *args, **kwargs)
    if wanted is not None:
        assert sorted(map(tuple, found)) == sorted(set(map(tuple, wanted))), (name, args, kwargs)


def length(graph: Any, path: list[Any], weight: str | None) -> float:
    """The length of a path, every edge of which there is, and which meets no node twice."""
    ends = list(pairwise(path))
    assert all(graph.has_edge(u, v) for u, v in ends)
    assert len(set(path)) == len(path)
    return sum(1 if weight is None else graph.edges[end][weight] for end in ends)


def same_path(name: str, graph: Any, G: Graph, along: str | None, *args: Any, **kwargs: Any) -> None:
    """Both give a path between the same nodes and as long, or a dictionary of such; or raise the same exception."""
    found, wanted = outcomes(name, graph, G, *args, **kwargs)
    if wanted is None:
        return
    assert type(found) is type(wanted), (name, args, kwargs)
    if isinstance(wanted, list):
        found, wanted = {0: found}, {0: wanted}
    assert set(found) == set(wanted), (name, args, kwargs)
    for node, path in wanted.items():
        assert (found[node][0], found[node][-1]) == (path[0], path[-1]), (name, args, kwargs)
        assert length(graph, found[node], along) == length(graph, path, along), (name, args, kwargs)
