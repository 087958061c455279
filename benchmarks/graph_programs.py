"""Vertex programs in Python beside the built-in functions that find the same: with NumPy, and compiled by numba.

    python -m benchmarks.graph_programs [--scale 22] [--edges 64] [--rounds 5] [--threads 2]

Breadth-first search and weakly connected components of a directed R-MAT graph, as docs/graph-tutorial.md builds them.
The file is in the memory file system, so that what is compared is work; all run in one process, in turn, and what they
find is equal.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import common
from benchmarks.graph import in_memory, make
from outcore import graph

# Times the built-in function's that a program may take.
WANTED = {"NumPy": 10.0, "numba": 3.0}


class Search(graph.VertexProgram):
    level = graph.state("int32", fill=-1)

    def run(self, v: Any) -> None:
        new = v.ids[self.level[v.ids] < 0]
        self.level[new] = self.iteration
        self.request(new)

    def on_edges(self, e: Any) -> None:
        self.activate(e.neighbours)


class Components(graph.VertexProgram):
    label = graph.state("uint32")
    combine = "min"

    def run(self, v: Any) -> None:
        if self.iteration == 0:
            self.label[v.ids] = v.ids
        self.request(v.ids, "both")

    def on_edges(self, e: Any) -> None:
        self.multicast(e, self.label[e.vertices])

    def on_message(self, m: Any) -> None:
        lower = m.values < self.label[m.ids]
        self.label[m.ids[lower]] = m.values[lower]
        self.activate(m.ids[lower])


def compiled() -> tuple[type[graph.VertexProgram], type[graph.VertexProgram]]:
    """The same with bodies that numba compiles."""
    import numba

    @numba.njit
    def reach(ids: Any, level: Any, now: Any) -> Any:
        new, count = np.empty_like(ids), 0
        for vertex in ids:
            if level[vertex] < 0:
                level[vertex] = now
                new[count] = vertex
                count += 1
        return new[:count]

    @numba.njit
    def tell(vertices: Any, begins: Any, neighbours: Any, label: Any, told: Any) -> None:
        """The lowest label around each vertex, for it and for all around; and the highest that each was told."""
        for place in range(len(vertices)):
            vertex, lists = vertices[place], neighbours[begins[place] : begins[place + 1]]
            lowest = label[vertex]
            if lowest > 0:  # none is lower than 0
                for neighbour in lists:
                    lowest = min(lowest, label[neighbour])
            for neighbour in lists:
                if label[neighbour] > lowest:
                    label[neighbour] = lowest
                if lowest > 0:
                    told[neighbour] = max(told[neighbour], lowest)
            label[vertex] = lowest
            told[vertex] = max(told[vertex], lowest)

    class CompiledSearch(graph.VertexProgram):
        level = graph.state("int32", fill=-1)

        def run(self, v: Any) -> None:
            self.request(reach(v.ids, self.level, self.iteration))

        def on_edges(self, e: Any) -> None:
            self.activate(e.neighbours)

    class CompiledComponents(graph.VertexProgram):
        label = graph.state("uint32")
        told = graph.state("uint32")

        def run(self, v: Any) -> None:
            if self.iteration == 0:
                self.label[v.ids] = v.ids
            self.told[v.ids] = 0
            self.request(v.ids, "both" if self.iteration else "out")

        def on_edges(self, e: Any) -> None:
            tell(e.vertices, e.begins, e.neighbours, self.label, self.told)

        def on_iteration_end(self) -> None:
            self.activate(np.flatnonzero(self.label < self.told))

    return CompiledSearch, CompiledComponents


def measure(path: Path, threads: int, rounds: int) -> dict[str, dict[str, list[float]]]:
    """Seconds of every round, by case and way. What is found is compared."""
    import outcore as oc

    compiled_search, compiled_components = compiled()
    with oc.Session(progress=False, memory_limit=8 << 30, threads=threads):
        G = oc.graph.open(path)
        source = int(G.degrees().argmax())
        cases: dict[str, dict[str, Callable[[], Any]]] = {
            "bfs": {
                "built in": lambda: oc.graph.bfs(G, source),
                "NumPy": lambda: G.run(Search(), active=[source]).level,  # type: ignore[attr-defined]
                "numba": lambda: G.run(compiled_search(), active=[source]).level,  # type: ignore[attr-defined]
            },
            "connected_components": {
                "built in": lambda: oc.graph.connected_components(G),
                "NumPy": lambda: G.run(Components()).label,  # type: ignore[attr-defined]
                "numba": lambda: G.run(compiled_components()).label,  # type: ignore[attr-defined]
            },
        }
        seconds: dict[str, dict[str, list[float]]] = {}
        for case, ways in cases.items():
            seconds[case] = {way: [] for way in ways}
            wanted = [call() for call in ways.values()]  # numba compiles here
            assert all(np.array_equal(found, wanted[0]) for found in wanted)
            for _ in range(rounds):
                for way, call in ways.items():
                    began = time.perf_counter()
                    call()
                    seconds[case][way].append(time.perf_counter() - began)
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--scale", type=int, default=22, help="log2 of the vertices")
    parser.add_argument("--edges", type=float, default=64, help="edges, in Mi (2^20)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=Path("data/bench"))
    options = parser.parse_args()
    folder, edges = options.folder.resolve(), int(options.edges * (1 << 20))
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"rmat-{options.scale}-{edges >> 20}-directed.ocg"
    if not path.exists():
        make(str(path), options.scale, edges, directed=True, weights=False)
    with in_memory(path) as resident:
        seconds = measure(resident, options.threads, options.rounds)
    rows, figures = [], {}
    for case, ways in seconds.items():
        middle = {way: statistics.median(times) for way, times in ways.items()}
        figures[case] = {"median_seconds": middle, "seconds": ways}
        for way, most in WANTED.items():
            times = middle[way] / middle["built in"]
            row = [case, way, f"{middle['built in']:.3f} s", f"{middle[way]:.3f} s", f"{times:.1f}", f"≤ {most:.0f}"]
            rows.append([*row, "yes" if times <= most else "**NO**"])
            print(*rows[-1], sep="  ", flush=True)
    told = (
        f"R-MAT, 2^{options.scale} vertices, {edges >> 20} Mi edges, directed, in memory; {options.threads} threads, "
        f"the median of {options.rounds} rounds in turn. What is found is equal."
    )
    columns = ["case", "program", "built in", "program takes", "times", "wanted", "holds"]
    title = f"Vertex programs in Python: R-MAT of 2^{options.scale} vertices, {edges >> 20} Mi edges"
    common.write_record(
        f"graph-programs-{options.scale}", title, folder, [told, common.table(columns, rows)], figures, ["numba"]
    )


if __name__ == "__main__":
    main()
