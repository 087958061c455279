"""Graphs on disk: algorithms with lists on disk, under a real limit, beside the same in memory and its rivals.

    python -m benchmarks.graph [--scale 22] [--edges 64Mi] [--rounds 3] [--limit 512MiB] [--only bfs,pagerank]

The graph is R-MAT of 2^scale vertices, directed and undirected; files of the folder are used again. Every run has a
process of its own; in memory, what is timed is the second call of a session, with room for all, on a file in the memory
file system. Results are compared.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import cgroup, common, probes

MEMORY = Path("/dev/shm/outcore-bench")  # a file system in memory
# What of the resident speed is wanted, and which of the two graphs it is for.
CASES = {
    "bfs": (0.7, "directed"),
    "shortest_paths": (0.7, "directed"),
    "connected_components": (0.7, "directed"),
    "betweenness_centrality": (0.7, "directed"),
    "pagerank": (0.8, "directed"),
    "scan_statistics": (0.8, "undirected"),
    "triangles": (0.6, "undirected"),
}
# Of the rivals' time; triangles may take half as long again.
WANTED_RIVALS = {"bfs": 1.0, "connected_components": 1.0, "pagerank": 1.0, "triangles": 1.5}
RIVALS = {"networkit": "networkit", "graphblas": "python-graphblas"}


def edges_of(text: str) -> int:
    """Edges of "64Mi", or of 64, which is as many."""
    return int(float(text.removesuffix("Mi")) * (1 << 20))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--scale", type=int, default=22, help="log2 of the vertices")
    parser.add_argument("--edges", type=edges_of, default="64Mi", help="edges, in Mi (2^20)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit", type=common.parse_size, default=512 << 20)
    parser.add_argument("--timeout", type=float, default=1800)
    parser.add_argument("--only", default=",".join(CASES))
    parser.add_argument("--rivals", default=",".join(RIVALS), help="nobody: none")
    parser.add_argument("--folder", type=Path, default=Path("data/bench"))
    options = parser.parse_args()
    options.folder = options.folder.resolve()
    options.rivals = [name for name in options.rivals.split(",") if name in RIVALS]
    options.only = options.only.split(",")
    if unknown := set(options.only) - set(CASES):
        parser.error(f"no case is called {', '.join(sorted(unknown))}; there are {', '.join(CASES)}")
    return options


def make(path: str, scale: int, edges: int, directed: bool, weights: bool) -> dict[str, Any]:
    """Stores an R-MAT graph."""
    import outcore as oc

    began = time.perf_counter()
    with oc.Session(progress=False, memory_limit=8 << 30, scratch=[str(Path(path).parent)]):
        sources, targets = oc.sparse.rmat_edges(1 << scale, edges)
        # Weights follow from the ends, so that both ways of an edge have one.
        values = ((sources + targets) % 97 + 1).astype("float32") if weights else None
        oc.graph.from_arrays(
            sources, targets, path, weights=values, vertices=1 << scale, directed=directed, overwrite=True
        )
    return {"seconds": time.perf_counter() - began}


def run(path: str, case: str, session: dict[str, Any], keep: str | None = None) -> dict[str, Any]:
    """One algorithm: what a child does. With `keep`, it is called once before, and what was found is stored there."""
    import numpy as np

    import outcore as oc

    with oc.Session(progress=False, **session) as current:
        G = oc.graph.open(path)
        source = int(G.degrees().argmax())
        calls: dict[str, Callable[[], Any]] = {
            "bfs": lambda: oc.graph.bfs(G, source),
            "shortest_paths": lambda: oc.graph.shortest_paths(G, source),
            "connected_components": lambda: oc.graph.connected_components(G),
            "betweenness_centrality": lambda: oc.graph.betweenness_centrality(G, [source]),
            "pagerank": lambda: oc.graph.pagerank(G, tol=0, iterations=10),
            "scan_statistics": lambda: oc.graph.scan_statistics(G),
            "triangles": lambda: oc.graph.triangles(G),
        }
        if keep is not None:
            calls[case]()
        earlier_peak = cgroup.touch_own_memory(session["memory_limit"]) if keep is None else 0
        before, began = current.counters(), time.perf_counter()
        found = calls[case]()
        seconds = time.perf_counter() - began
        counted = current.counters()["bytes_read"] - before["bytes_read"]
        if keep is not None:
            np.save(keep, found)
        bits = hashlib.blake2b(np.asarray(found).tobytes(), digest_size=8).hexdigest()
        return {"seconds": seconds, "bytes_read": counted, "bits": bits, "file_bytes": G.file_bytes,
                "earlier_peak_bytes": earlier_peak}  # fmt: skip


def child(function: str, options: argparse.Namespace, limit: int | None, **given: Any) -> dict[str, Any]:
    cgroup.drop_page_cache(options.folder)
    cgroup.touch_memory(2 << 30)
    outcome = cgroup.run_limited(f"benchmarks.{function}", given, limit, options.timeout)
    if outcome.reason:
        return {"failed": f"{outcome.reason}: {outcome.stderr.splitlines()[-1] if outcome.stderr else ''}"}
    peak = max(outcome.peak_rss_bytes or 0, outcome.value.pop("earlier_peak_bytes", 0))
    seen = {"limited_by": outcome.limited_by, "peak_rss_bytes": peak}
    return outcome.value | seen


@contextmanager
def in_memory(path: Path) -> Iterator[Path]:
    """A copy of a file in memory, while it lasts."""
    shutil.rmtree(MEMORY, ignore_errors=True)
    MEMORY.mkdir()
    try:
        yield Path(shutil.copy(path, MEMORY))
    finally:
        shutil.rmtree(MEMORY)


def ways(case: str, path: Path, resident: Path, options: argparse.Namespace) -> dict[str, Callable[[], dict[str, Any]]]:
    """What is run round by round."""
    keep = str(options.folder / f"rmat-{options.scale}-{case}.npy")
    session = {"memory_limit": options.limit, "threads": options.threads, "scratch": [str(options.folder)]}
    roomy = session | {"memory_limit": 8 << 30}
    found: dict[str, Callable[[], dict[str, Any]]] = {
        "disk": lambda: child("graph:run", options, options.limit, path=str(path), case=case, session=session),
        "memory": lambda: child("graph:run", options, None, path=str(resident), case=case, session=roomy, keep=keep),
    }
    given = {"path": str(path), "case": case, "threads": options.threads, "expected": keep}
    for rival in options.rivals if case in WANTED_RIVALS else ():
        found[rival] = partial(child, f"graph_rivals:{rival}", options, None, **given)
    return found


def main() -> None:
    options = arguments()
    options.folder.mkdir(parents=True, exist_ok=True)
    graphs = {}
    for kind in ("directed", "undirected"):
        path = options.folder / f"rmat-{options.scale}-{options.edges >> 20}-{kind}.ocg"
        wanted = {CASES[case][1] for case in options.only}
        if kind in wanted and not path.exists():
            made = child("graph:make", options, None, path=str(path), scale=options.scale, edges=options.edges,
                         directed=kind == "directed", weights=kind == "directed")  # fmt: skip
            print(f"{path.name}: {made.get('failed') or round(made['seconds'], 1)}", flush=True)
        graphs[kind] = path
    disk = probes.read_bandwidth(graphs[CASES[options.only[0]][1]])
    rows, figures = [], {}
    for case in options.only:
        wanted, kind = CASES[case]
        print(f"{case}:", flush=True)
        with in_memory(graphs[kind]) as resident:
            figures[case] = common.alternating(ways(case, graphs[kind], resident, options), options.rounds)
        rows.append(row(case, wanted, figures[case], disk, options.rivals))
    columns = ["case", "on disk", "in memory", "memory ÷ disk", "wanted", "read", "÷ the disk's time", "bits", "RSS",
               *(f"{rival}{part}" for rival in options.rivals for part in ("", " ÷ memory")),
               "wanted", "holds"]  # fmt: skip
    told = (
        f"R-MAT, 2^{options.scale} vertices, {options.edges >> 20} Mi edges, {options.threads} threads; on disk under "
        f"{common.show_bytes(options.limit)}, cold. Shortest paths and betweenness from one vertex, PageRank of 10 "
        f"iterations. networkit and GraphBLAS without loading; networkit's triangles are local clustering "
        f"coefficients, GraphBLAS runs LAGraph's algorithms, and found what we did. The disk read "
        f"{disk / 1e9:.2f} GB/s."
    )
    common.write_record(
        f"graph-{options.scale}",
        f"Graphs on disk: R-MAT of 2^{options.scale} vertices, {options.edges >> 20} Mi edges",
        options.folder,
        [told, common.table(columns, rows)],
        figures,
        [RIVALS[rival] for rival in options.rivals],
    )


def row(case: str, wanted: float, found: dict[str, dict[str, Any]], disk: float, rivals: list[str]) -> list[str]:
    """A line of the table."""
    ours, memory = found["disk"], found["memory"]
    if ours.get("failed") or memory.get("failed"):
        return [case, str(ours.get("failed")), str(memory.get("failed")), *[""] * (8 + 2 * len(rivals))]
    part, bound = memory["seconds"] / ours["seconds"], ours["bytes_read"] / disk
    holds = part >= wanted or ours["seconds"] <= 1.1 * bound
    cells = []
    for rival in rivals:
        its = found.get(rival)
        if its is None or its.get("failed"):
            cells += ["–" if its is None else str(its["failed"]), "–"]
            continue
        holds = holds and memory["seconds"] <= WANTED_RIVALS[case] * its["seconds"]
        cells += [f"{its['seconds']:.2f} s", f"{its['seconds'] / memory['seconds']:.2f}"]
    cells.append(f"≥ {1 / WANTED_RIVALS[case]:.2f}" if case in WANTED_RIVALS else "–")
    return [
        case, f"{ours['seconds']:.2f} s", f"{memory['seconds']:.2f} s", f"{part:.2f}", f"≥ {wanted}",
        common.show_bytes(ours["bytes_read"]), f"{ours['seconds'] / bound:.1f}",
        "same" if ours["bits"] == memory["bits"] else "**different**",
        common.show_bytes(ours["peak_rss_bytes"]), *cells, "yes" if holds else "**NO**",
    ]  # fmt: skip


if __name__ == "__main__":
    main()
