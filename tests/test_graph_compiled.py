"""Vertex programs whose bodies numba compiles: they find what the algorithms find."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from benchmarks.graph_programs import compiled
from support.graphs import KINDS, directed_of, write
from support.running import session

import outcore as oc
from outcore.graph import VertexProgram

pytest.importorskip("numba", reason="numba, the optional extra outcore[jit], is not installed")


@pytest.fixture(scope="module")
def programs() -> tuple[type[VertexProgram], type[VertexProgram]]:
    return compiled()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("directed", [False, True])
def test_compiled_programs_find_what_algorithms_find(
    programs: tuple[type[VertexProgram], type[VertexProgram]], kind: str, directed: bool, out: Path
) -> None:
    search, components = programs
    graph = directed_of(KINDS[kind]()) if directed else KINDS[kind]()
    with session(out):
        G = write(graph, out)
        for source in range(min(len(graph), 2)):
            assert np.array_equal(G.run(search(), active=[source]).level, oc.graph.bfs(G, source))
        assert np.array_equal(G.run(components()).label, oc.graph.connected_components(G))
