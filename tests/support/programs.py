"""Vertex programs that find what algorithms of the package find."""

from __future__ import annotations

from typing import Any

import numpy as np

from outcore.graph import VertexProgram, state


class Levels(VertexProgram):
    level = state("int32", fill=-1)

    def __init__(self, direction: str = "out") -> None:
        self.direction = direction

    def run(self, v: Any) -> None:
        new = v.ids[self.level[v.ids] < 0]
        self.level[new] = self.iteration
        self.request(new, self.direction)

    def on_edges(self, e: Any) -> None:
        self.activate(e.neighbours)


class Labels(VertexProgram):
    """The lowest vertex of the component, sent along."""

    label = state("uint32")

    def run(self, v: Any) -> None:
        if self.iteration == 0:
            self.label[v.ids] = v.ids
        self.request(v.ids, "both")

    def on_edges(self, e: Any) -> None:
        self.send(e.neighbours, self.label[e.ids])

    def on_message(self, m: Any) -> None:
        before = self.label[m.ids]
        np.minimum.at(self.label, m.ids, m.values)
        self.activate(m.ids[self.label[m.ids] < before])


class Lowest(VertexProgram):
    """As `Labels`, of messages that are combined."""

    label = state("uint32")
    combine = "min"

    def run(self, v: Any) -> None:
        if self.iteration == 0:
            self.label[v.ids] = v.ids
        self.request(v.ids, "both")

    def on_edges(self, e: Any) -> None:
        self.multicast(e, self.label[e.vertices])

    def on_message(self, m: Any) -> None:
        assert (np.diff(m.ids.astype(int)) > 0).all()
        lower = m.values < self.label[m.ids]
        self.label[m.ids[lower]] = m.values[lower]
        self.activate(m.ids[lower])


class Ranks(VertexProgram):
    """PageRank, every vertex in every iteration."""

    rank = state("float64")
    next = state("float64")

    def run(self, v: Any) -> None:
        if self.iteration == 0:
            self.rank[v.ids] = 1 / self.graph.number_of_vertices
            self.degrees = self.graph.degrees()
        self.request(v.ids)
        self.activate(v.ids)

    def on_edges(self, e: Any) -> None:
        self.send(e.neighbours, self.rank[e.ids] / self.degrees[e.ids])

    def on_message(self, m: Any) -> None:
        np.add.at(self.next, m.ids, m.values)

    def on_iteration_end(self) -> None:
        lost = self.rank[self.degrees == 0].sum()
        self.rank[:] = 0.85 * (self.next + lost / len(self.rank)) + 0.15 / len(self.rank)
        self.next[:] = 0


class Shares(Ranks):
    """As `Ranks`, of messages that are combined."""

    combine = "sum"

    def on_edges(self, e: Any) -> None:
        self.multicast(e, self.rank[e.vertices] / np.maximum(self.degrees[e.vertices], 1))

    def on_message(self, m: Any) -> None:
        self.next[m.ids] = m.values


class Lightest(VertexProgram):
    """Degrees, and the least weight around, without a message."""

    degree = state("int64")
    least = state("float64", fill=np.inf)

    def on_edges(self, e: Any) -> None:
        assert np.array_equal(e.ids, np.repeat(e.vertices, np.diff(e.begins)))
        self.degree[e.vertices] = np.diff(e.begins)
        if e.weights is not None:
            np.minimum.at(self.least, e.ids, e.weights)
