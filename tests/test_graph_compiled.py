"""Vertex programs whose bodies numba compiles: they find what the algorithms find."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.graphs import KINDS, directed_of, write
from support.running import session

import outcore as oc
from outcore.graph import VertexProgram, state

numba = pytest.importorskip("numba", reason="numba, the optional extra outcore[jit], is not installed")


@numba.njit
def reach(neighbours: Any, level: Any, now: Any, met: Any) -> Any:
    """Levels of the neighbours that have none; those are put into `met`."""
    count = 0
    for vertex in neighbours:
        if level[vertex] < 0:
            level[vertex] = now
            met[count] = vertex
            count += 1
    return met[:count]


@numba.njit
def tell(vertices: Any, begins: Any, neighbours: Any, label: Any, told: Any) -> None:
    """The lowest label around each vertex, for it and for all around; and what it was at first."""
    for place in range(len(vertices)):
        vertex, lists = vertices[place], neighbours[begins[place] : begins[place + 1]]
        lowest = label[vertex]
        for neighbour in lists:
            lowest = min(lowest, label[neighbour])
        for neighbour in lists:
            if label[neighbour] > lowest:
                label[neighbour] = lowest
        label[vertex] = lowest
        told[vertex] = max(told[vertex], lowest)


class Search(VertexProgram):
    level = state("int32", fill=-1)

    def run(self, v: Any) -> None:
        if self.iteration == 0:
            self.level[v.ids] = 0
        self.request(v.ids)

    def on_edges(self, e: Any) -> None:
        self.activate(reach(e.neighbours, self.level, self.iteration + 1, np.empty_like(e.neighbours)))


class Components(VertexProgram):
    label = state("uint32")
    told = state("uint32")

    def run(self, v: Any) -> None:
        if self.iteration == 0:
            self.label[v.ids] = v.ids
        self.told[v.ids] = 0
        self.request(v.ids, "both")

    def on_edges(self, e: Any) -> None:
        tell(e.vertices, e.begins, e.neighbours, self.label, self.told)

    def on_iteration_end(self) -> None:
        self.activate(np.flatnonzero(self.label < self.told))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("directed", [False, True])
def test_compiled_programs_find_what_algorithms_find(kind: str, directed: bool, out: Path) -> None:
    graph = directed_of(KINDS[kind]()) if directed else KINDS[kind]()
    with session(out):
        G = write(graph, out)
        for source in range(min(len(graph), 2)):
            assert np.array_equal(G.run(Search(), active=[source]).level, oc.graph.bfs(G, source))
        assert np.array_equal(G.run(Components()).label, oc.graph.connected_components(G))
