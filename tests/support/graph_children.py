"""Work on graphs for processes of their own: under a real limit, or ended by a kill."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import outcore as oc
from outcore.graph import Graph, VertexProgram, state
from outcore.graph._activity import running
from outcore.sparse._spool import Work
from support.running import files_below

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


# All that there is of a graph, around a vertex of very many neighbours: HUB, of a star, or with edges of one way.
HUB = 7
AROUND: dict[str, Callable[[Graph], Any]] = {
    "bfs": lambda G: oc.graph.bfs(G, 0),
    "diameter": lambda G: oc.graph.diameter(G, source=0),
    "paths": lambda G: oc.graph.shortest_paths(G, HUB, step=10),
    "components": oc.graph.connected_components,
    "cores": oc.graph.core_number,
    "ranks": lambda G: oc.graph.pagerank(G, tol=0, iterations=3),
    "between": lambda G: oc.graph.betweenness_centrality(G, [0]),
    "triangles": oc.graph.triangles,
    "triangles of each": lambda G: oc.graph.triangles(G, each=True),
    "clustering": oc.graph.clustering,
    "scan": oc.graph.scan_statistics,
    "labels": lambda G: oc.graph.label_propagation(G, iterations=3),
    "communities": lambda G: oc.graph.louvain_communities(G)[0],
    "independent": oc.graph.maximal_independent_set,
    "edges": lambda G: G.number_of_edges,
}
ONE_WAY: dict[str, Callable[[Graph], Any]] = {
    "strong": oc.graph.strongly_connected_components,
    "order": oc.graph.topological_sort,
}


def search(path: str, out: str, memory_limit: int) -> list[str]:
    """Runs all searches, and stores what they find."""
    return stored({path: SEARCHES}, out, memory_limit)


def around(star: str, way: str, out: str, memory_limit: int) -> list[str]:
    """The same around a vertex of very many neighbours."""
    return stored({star: AROUND, way: ONE_WAY}, out, memory_limit)


def stored(calls: dict[str, dict[str, Callable[[Graph], Any]]], out: str, memory_limit: int) -> list[str]:
    with oc.Session(memory_limit=memory_limit, threads=2, progress=False, scratch=[out]):
        for path, of in calls.items():
            G = oc.graph.open(path)
            for name, call in of.items():
                np.save(f"{out}/{name}.npy", call(G))
    return [name for of in calls.values() for name in of]


# -- programs of users ------------------------------------------------------------------------------------------------


class Spread(VertexProgram):
    """What comes along edges, by their weights: messages that are combined, and a state of two numbers."""

    amount = state("float64", fill=1.0)
    next = state("float64")
    combine = "sum"

    def run(self, v: Any) -> None:
        self.request(v.ids)
        self.activate(v.ids)

    def on_edges(self, e: Any) -> None:
        self.send(e.neighbours, self.amount[e.ids] * e.weights)

    def on_message(self, m: Any) -> None:
        self.next[m.ids] = m.values

    def on_iteration_end(self) -> None:
        self.amount[:] = self.next / max(self.next.max(), 1.0)
        self.next[:] = 0


class Heard(VertexProgram):
    """How often each vertex is told of, and the last one that told it: of one vertex in sixteen, message by message."""

    times = state("uint32")
    last = state("uint32")

    def run(self, v: Any) -> None:
        self.request(v.ids[v.ids % 16 == 3], "both")

    def on_edges(self, e: Any) -> None:
        self.send(e.neighbours, e.ids)

    def on_message(self, m: Any) -> None:
        np.add.at(self.times, m.ids, np.uint32(1))
        self.last[m.ids] = m.values  # of several the last one


class Beyond(VertexProgram):
    """Asks for the lists of others: those of the neighbours of each vertex of a few, and then of their neighbours."""

    around = state("uint32")
    calls = state("uint32")

    def run(self, v: Any) -> None:
        if self.iteration == 0:
            self.request(v.ids)
        self.activate(v.ids)

    def on_edges(self, e: Any) -> None:
        self.around[e.vertices] = np.diff(e.begins)
        self.calls[e.vertices] += 1
        self.request(e.neighbours)


FEW = list(range(1000, 9000, 400))
PROGRAMS: dict[str, Callable[[Graph], Any]] = {
    "spread": lambda G: G.run(Spread(), iterations=3).amount,
    "heard": lambda G: np.stack([(ran := G.run(Heard())).times, ran.last]),
    "beyond": lambda G: np.stack([(ran := G.run(Beyond(), FEW, iterations=3)).around, ran.calls]),
}


def programs(path: str, out: str, memory_limit: int) -> list[str]:
    """Runs all programs of users, and stores what they find."""
    return stored({path: PROGRAMS}, out, memory_limit)


def make(bits: int, edges: int, path: str, scratch: str, memory_limit: int) -> int:
    """Stores an R-MAT graph with weights, from lazy arrays."""
    with oc.Session(memory_limit=memory_limit, threads=2, progress=False, scratch=[scratch]):
        rows, columns = oc.sparse.rmat_edges(1 << bits, edges, seed=1)
        weights = oc.random.uniform((edges,), seed=2)
        G = oc.graph.from_arrays(rows, columns, path, weights=weights, vertices=1 << bits, side=2048)
        return G.number_of_edges


RESERVED: dict[str, Callable[[Any], Any]] = {
    "bfs": lambda core: core.levels([0], "out", 9),
    "components": lambda core: core.components(False),
    "strong": lambda core: core.components(True),
    "ranks": lambda core: core.ranks(0.85, 0.0, 2, False, None, [None, None, None]),
    "cores": lambda core: core.cores(),
    "order": lambda core: core.generations(),
}


def resident(field: str) -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.split(field)[1].split()[0]) * 1024


def grown(name: str, path: str, scratch: str) -> list[int]:
    """How much the process grows by a call in the least memory, and what is reserved for it beside the index."""
    least = 1 << 20
    while True:
        with oc.Session(memory_limit=8 << 30, pool_limit=least, threads=2, progress=False, scratch=[scratch]):
            G = oc.graph.open(path)
            Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
            before = resident("VmRSS:")
            try:
                with running(name) as run:
                    found = RESERVED[name](G._core).run(run)
            except oc.errors.MemoryLimitError as error:
                least = max(error.smallest, least) + 1
                continue
            assert found is not None
            return [resident("VmHWM:") - before, run.reserved_bytes - G.index_bytes]


# -- graphs that are made, and gone on with ----------------------------------------------------------------------------


def of_networkx(source: str) -> Any:
    import networkx as nx

    return nx.read_weighted_edgelist(source, nodetype=int)


# From a file of lines or a matrix, by what is made of it, and whether it is to go on where it was killed.
MAKERS: dict[str, Callable[[str, Path, bool], Graph]] = {
    "text": lambda source, target, resume: oc.graph.from_edges(
        source, target, directed=False, weights=True, resume=resume
    ),
    "matrix": lambda source, target, resume: oc.graph.from_sparse(oc.sparse.open(source), target, resume=resume),
    "view": lambda source, target, resume: oc.graph.from_sparse(oc.sparse.open(source).T, target, resume=resume),
    "both ways": lambda source, target, resume: oc.graph.from_sparse(
        oc.sparse.open(source), target, directed=False, resume=resume
    ),
    "networkx": lambda source, target, resume: oc.graph.from_networkx(
        of_networkx(source), target, weight="weight", resume=resume
    ),
}


def noting(after: Callable[[str], object]) -> Callable[[Work, str, Any], None]:
    """`Work.note`, which tells of each step that is noted for the first time."""
    real = Work.note

    def note(self: Work, step: str, content: Any) -> None:
        is_new = self.noted(step) is None
        real(self, step, content)
        if is_new:
            after(step)

    return note


def die(step: str) -> None:
    print(json.dumps(step), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)


def make_on(name: str, source: str, target: str, scratch: str) -> None:
    """Makes a graph, to go on where that was killed."""
    with oc.Session(memory_limit=8 << 30, threads=2, progress=False, scratch=[scratch]):
        MAKERS[name](source, Path(target), True)


def make_step_by_step(name: str, source: str, target: str, scratch: str) -> None:
    """The same in processes one after the other, each killed when it has done a step that was not done before.

    Forks, since imports take longer than steps. Lines before each: the names beside the target; after each its step, if
    it was killed, and how it ended.
    """
    if name == "networkx":
        import networkx  # noqa: F401
    status: int | None = None
    while status != 0:
        print(json.dumps(files_below(Path(target).parent)), flush=True)
        child = os.fork()
        if child == 0:
            Work.note = noting(die)  # type: ignore[method-assign]
            make_on(name, source, target, scratch)
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(json.dumps(status), flush=True)
        if status > 0:
            sys.exit(status)


if __name__ == "__main__":
    {"make": make_on, "steps": make_step_by_step}[sys.argv[1]](*sys.argv[2:])
