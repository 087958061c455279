"""Weights in programs: read with the lists where a program names them, else when somebody looks at them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.running import session

import outcore as oc
from outcore.graph import VertexProgram, state

N, EDGES, TIMES = 2000, 30_000, 3
Held = dict[tuple[int, int], float]


def _made(folder: Path, directed: bool) -> tuple[Any, Held]:
    numbers = np.random.default_rng(3)
    pairs = np.unique(numbers.integers(0, N, (EDGES, 2)), axis=0)
    if not directed:
        pairs = pairs[pairs[:, 0] <= pairs[:, 1]]
    weights = numbers.random(len(pairs))
    G = oc.graph.from_arrays(*pairs.T, folder / "g.ocg", weights=weights, vertices=N, directed=directed)
    held = {(int(first), int(second)): float(weight) for (first, second), weight in zip(pairs, weights, strict=True)}
    return G, held if directed else held | {(second, first): weight for (first, second), weight in held.items()}


def _look(e: Any) -> Any:
    return e.weights


class Asking(VertexProgram):
    """Asks for lists some times."""

    def __init__(self, direction: str = "out") -> None:
        self.direction = direction
        self.found: list[Any] = []

    def run(self, v: Any) -> None:
        self.request(v.ids, self.direction)
        if self.iteration + 1 < TIMES:
            self.activate(v.ids)


class Naming(Asking):
    def on_edges(self, e: Any) -> None:
        self.found.append((e.ids, e.neighbours, e.weights))


class Looking(Asking):
    def on_edges(self, e: Any) -> None:
        self.found.append((e.ids, e.neighbours, _look(e)))


class LookingLater(Asking):
    """Not in the first iteration."""

    def on_edges(self, e: Any) -> None:
        self.found.append((e.ids, e.neighbours, _look(e) if self.iteration else None))


class PartsLooking(Looking):
    takes_parts = True


class Degrees(VertexProgram):
    degree = state("int64")

    def on_edges(self, e: Any) -> None:
        self.degree[e.vertices] += np.diff(e.begins)


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("direction", ["out", "in", "both"])
@pytest.mark.parametrize("kind", [Naming, Looking, LookingLater])
def test_weights_are_right_however_they_are_looked_at(
    tmp_path: Path, kind: type[Asking], direction: str, directed: bool
) -> None:
    with session(tmp_path):
        G, held = _made(tmp_path, directed)
        turned = {(second, first): weight for (first, second), weight in held.items()}
        wanted = {"out": [held], "in": [turned if directed else held], "both": [held, turned]}[direction]
        seen = 0
        for ids, neighbours, weights in G.run(kind(direction)).found:
            seen += len(ids)
            for place, edge in enumerate(zip(ids.tolist(), neighbours.tolist(), strict=True)):
                right = [weights_of[edge] for weights_of in wanted if edge in weights_of]
                assert right
                assert weights is None or weights[place] in right
        assert seen == TIMES * len(held) * (2 if directed and direction == "both" else 1)


def test_parts_of_a_long_list_have_their_own_weights(tmp_path: Path) -> None:
    entries = 1 << 20
    hub, leaves = 5, 2 * np.arange(entries) + 1
    with session(tmp_path):
        G = oc.graph.from_arrays(np.full(entries, hub), leaves, tmp_path / "star.ocg", weights=leaves / 2)
        found = G.run(PartsLooking(), active=[hub]).found
        assert len(found) > TIMES, "it came in parts"
        for ids, neighbours, weights in found:
            assert np.array_equal(weights, neighbours / 2)
            assert set(ids) == {hub}


def test_a_program_that_names_no_weights_reads_none(tmp_path: Path) -> None:
    with session(tmp_path) as current:
        G, held = _made(tmp_path, True)
        read = []
        for program in (Degrees(), Naming()):
            before = current.counters()["bytes_read"]
            G.run(program, iterations=1)
            read.append(current.counters()["bytes_read"] - before)
        weights = 8 * len(held)
        assert read[0] < weights / 2
        assert read[1] > weights
