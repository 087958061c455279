"""The sparse benchmark's graphs, and its algorithms: PageRank, eigenvalues, singular values, factors without signs."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import cgroup, common, probes
from benchmarks.sort import watched

PAGERANK_LIMIT, EIGSH_LIMIT, MAKING_LIMIT = 512 * common.MIB, 768 * common.MIB, 2 * common.GIB
LONG, COLD, NEAR = 30, 10, 1e-12
WANTED_COLD, WANTED_RESIDUAL = 1.3, 1e-8
VALUES, FACTORS, FACTORS_HELD, STEPS = 8, 16, 4, 3
SCIPY_SCALE, DEGREE = 18, 16
Section = tuple[str, dict[str, Any]]


def child(
    target: str,
    given: Mapping[str, Any],
    limit: int | None,
    options: argparse.Namespace,
    environment: Mapping[str, str] | None = None,
    *,
    plain: bool = False,
) -> dict[str, Any]:
    """One run in a process of its own, without page cache; `plain` gives {"value": …} and raises if it failed."""
    cgroup.drop_page_cache(options.folder)
    cgroup.touch_memory()
    name = target if ":" in target else f"sparse_cases:{target}"
    outcome = cgroup.run_limited(f"benchmarks.{name}", dict(given), limit, options.timeout, environment)
    if plain:
        if outcome.reason:
            raise RuntimeError(f"{target}: {outcome.reason}")
        return {"value": outcome.value}
    if outcome.reason:
        return {"failed": outcome.reason, "limited_by": outcome.limited_by}
    seen = {"limited_by": outcome.limited_by, "peak_rss_bytes": outcome.peak_rss_bytes}
    return outcome.value | seen | {"device_read_bytes": outcome.io["read_bytes"]}


def times_of(result: Mapping[str, Any]) -> str:
    return f"{result['seconds_min']:.3f}–{result['seconds_max']:.3f} (n={result['n']})"


class Graphs:
    """R-MAT graphs of one size and what belongs to them: made when they are asked for, and used again."""

    def __init__(self, options: argparse.Namespace, scale: int, edges: int) -> None:
        self.options, self.scale, self.edges = options, scale, edges
        self.stem = options.folder / f"rmat-{scale}-{edges >> 10}"

    @property
    def said(self) -> str:
        return f"R-MAT, 2^{self.scale} vertices, {self.edges / (1 << 20):g} Mi edges"

    def smaller(self) -> Graphs:
        return Graphs(self.options, self.scale - 2, self.edges // 4)

    def for_scipy(self) -> Graphs:
        scale = min(SCIPY_SCALE, self.scale)
        return Graphs(self.options, scale, DEGREE << scale)

    def _made(self, kind: str, pattern: Path | None = None) -> Path:
        path = Path(f"{self.stem}-{kind}.ocs")
        if path.exists():
            return path
        scratch = [str(self.options.folder)]
        given = {"kind": kind, "path": str(path), "scale": self.scale, "edges": self.edges, "pattern": str(pattern)}
        given["session"] = {"memory_limit": MAKING_LIMIT, "threads": self.options.threads, "scratch": scratch}
        with watched(self.options.folder) as seen:
            made = child("make", given, MAKING_LIMIT, self.options, plain=True)["value"]
        rate, most = self.edges / made["seconds"] / 1e6, common.show_bytes(seen["most"])
        size = f"{made['entries']:,} entries, {made['bytes'] / made['entries']:.3f} bytes each"
        print(f"  made {path.name}: {made['seconds']:.1f} s ({rate:.1f} M edges/s), {size}, {most} on disk", flush=True)
        return path

    def pattern(self) -> Path:
        return self._made("pattern")

    def undirected(self) -> Path:
        return self._made("undirected")

    def values(self) -> Path:
        return self._made("values", self.pattern())

    def reference(self) -> Path:
        path = Path(f"{self.stem}-reference.npy")
        if not path.exists():
            given = {"path": str(self.values()), "out": str(path)}
            seconds = child("reference", given, None, self.options, plain=True)["value"]["seconds"]
            print(f"  a product by NumPy: {seconds:.1f} s", flush=True)
        return path

    def ranks(self, iterations: int) -> Path:
        path = Path(f"{self.stem}-ranks-{iterations}.npy")
        if not path.exists():
            given = {"path": str(self.pattern()), "iterations": iterations, "out": str(path)}
            made = child("sparse_rivals:pagerank", given, None, self.options, plain=True)["value"]
            print(f"  {iterations} iterations of PageRank by NumPy: {made['seconds']:.1f} s", flush=True)
        return path

    def csr(self) -> Path:
        folder = Path(f"{self.stem}-csr")
        if not (folder / "data.npy").exists():
            folder.mkdir(exist_ok=True)
            child(
                "sparse_rivals:to_csr",
                {"path": str(self.values()), "folder": str(folder)},
                None,
                self.options,
                plain=True,
            )
        return folder


# -- PageRank ---------------------------------------------------------------------------------------------------------


def pagerank(graphs: Graphs, options: argparse.Namespace) -> Section:
    """30 iterations of the graph and 10 cold ones of a smaller, in a real group."""
    out, small = options.folder / "ranks.npy", graphs.smaller()
    told = {"memory_limit": PAGERANK_LIMIT, "threads": options.threads, "scratch": [str(options.folder)]}
    runs = [
        ("places", graphs, graphs.pattern(), LONG),
        ("places", small, small.pattern(), COLD),
        ("float64", small, small.values(), COLD),
    ]
    expected = {(graph.scale, steps): graph.ranks(steps) for kind, graph, _, steps in runs if kind == "places"}

    def run(kind: str, graph: Graphs, path: Path, steps: int) -> dict[str, Any]:
        given = {"path": str(path), "iterations": steps, "out": str(out), "session": told}
        found = child("pagerank", given, PAGERANK_LIMIT, options)
        if "failed" in found or kind != "places":
            return found
        ours, theirs = np.load(out), np.load(expected[graph.scale, steps])
        return found | {"error": float((np.abs(ours - theirs) / theirs).max())}

    def disk() -> dict[str, Any]:
        cgroup.drop_page_cache(options.folder)
        return dict(probes.read_disk(str(graphs.pattern()), options.threads))

    cases: dict[str, Callable[[], dict[str, Any]]] = {"disk": disk}
    for part in runs:
        cases[f"{part[1].scale} {part[0]} {part[3]}"] = lambda part=part: run(*part)
    results = common.alternating(cases, options.rounds)
    out.unlink(missing_ok=True)
    bandwidth = results["disk"]["bytes_per_second"]
    columns = [*("graph", "matrix", "steps", "seconds", "spread", "read of matrix and vectors per step")]
    columns += ["vectors read per step", "÷ (reads of the matrix at the disk's rate)", "error", "RSS", "limit by"]
    lines = []
    for kind, graph, _, steps in runs:
        found = results[f"{graph.scale} {kind} {steps}"]
        label = [graph.said, kind, steps]
        if found.get("failed"):
            lines.append(failed(label, found, len(columns)))
            continue
        most = max(found["read_by_step"])
        beside = max(0.0, most - found["bytes"]) / (8 * found["order"])
        floor = steps * found["bytes"] / bandwidth
        error = found.get("error")
        told_error = "–" if error is None else f"{error:.1e}" if error <= NEAR else f"**{error:.1e}**"
        lines.append(
            [
                *label,
                f"{found['seconds']:.2f}",
                times_of(found),
                f"{most / found['bytes']:.3f} × matrix at most",
                f"{beside:.2f} at most",
                f"{found['seconds'] / floor:.2f}" + (f" (wanted ≤ {WANTED_COLD})" if steps == COLD else ""),
                told_error,
                common.show_bytes(found["peak_rss_bytes"]),
                found["limited_by"],
            ]
        )
    said = (
        f"Under {common.show_bytes(PAGERANK_LIMIT)}, cold. Error: the largest relative difference to a NumPy loop over "
        f"the same edges. Vectors read per step are what is read beyond one read of the matrix. The disk read "
        f"{bandwidth / 1e9:.2f} GB/s."
    )
    return f"## PageRank\n\n{said}\n\n{common.table(columns, lines)}", results


def failed(label: list[Any], result: Mapping[str, Any], width: int) -> list[Any]:
    return [*label, result["failed"], *[""] * (width - len(label) - 1)]


# -- eigenvalues and factors ------------------------------------------------------------------------------------------


def eigsh(graphs: Graphs, options: argparse.Namespace) -> Section:
    """Eigenvalues of the undirected graph in a real group, with singular values and NMF; SciPy on a smaller one."""
    folder = [str(options.folder)]
    limited = {"memory_limit": EIGSH_LIMIT, "threads": options.threads, "scratch": folder}
    roomy = limited | {"memory_limit": options.memory}
    whole, small, few = graphs.undirected(), graphs.smaller(), graphs.for_scipy()
    eigen = {"k": VALUES, "width": 1}
    factors = {"path": str(small.pattern()), "k": FACTORS, "iterations": STEPS}
    both = {"path": str(few.undirected()), "k": VALUES}
    directed = {"path": str(few.values()), "k": VALUES}
    cases: dict[str, Callable[[], dict[str, Any]]] = {
        "eigsh": lambda: child("eigsh", {"path": str(whole), "session": limited} | eigen, EIGSH_LIMIT, options),
        "eigsh, small": lambda: child("eigsh", both | {"width": 1, "session": limited}, EIGSH_LIMIT, options),
        "eigsh, small, SciPy": lambda: child("sparse_rivals:solver", both | {"name": "eigsh"}, None, options),
        "svds, small": lambda: child("svds", directed | {"session": limited}, EIGSH_LIMIT, options),
        "svds, small, SciPy": lambda: child("sparse_rivals:solver", directed | {"name": "svds"}, None, options),
        "nmf": lambda: child("nmf", factors | {"held": FACTORS_HELD, "session": roomy}, None, options),
        "nmf, in memory": lambda: child("nmf", factors | {"held": 0, "session": roomy}, None, options),
    }
    results = common.alternating(cases, options.rounds)
    if not options.keep:
        whole.unlink(missing_ok=True)
    columns = [*("case", "graph", "seconds", "spread", "matrix reads", "read", "RSS", "limit", "check")]
    lines = []
    for name, found in results.items():
        graph = few if "small" in name else small if "nmf" in name else graphs
        if found.get("failed"):
            lines.append(failed([name, graph.said], found, len(columns)))
            continue
        read = found.get("bytes_read")
        reads = f"{read / found['bytes']:.1f}" if read is not None and "bytes" in found else "–"
        shown = [name, graph.said, f"{found['seconds']:.2f}", times_of(found), reads, common.show_bytes(read)]
        shown += [common.show_bytes(found["peak_rss_bytes"]), found["limited_by"], checked(name, results)]
        lines.append(shown)
    said = (
        f"eigsh: the {VALUES} largest of the graph with edges both ways and without loops, and svds the {VALUES} "
        f"largest, under {common.show_bytes(EIGSH_LIMIT)}; SciPy in memory without a limit. NMF: {STEPS} steps of "
        f"{FACTORS} columns, with memory for {FACTORS_HELD} of them, and for all. Residuals are |Ax − λx| / λ."
    )
    return f"## Eigenvalues, singular values, factors\n\n{said}\n\n{common.table(columns, lines)}", results


def checked(name: str, results: Mapping[str, dict[str, Any]]) -> str:
    """What speaks for a result: its residuals, another's values, or the other's numbers."""
    found = results[name]
    if name == "nmf":
        other = results["nmf, in memory"]
        if other.get("failed"):
            return "–"
        same = found["gain"] == other["gain"] and found["marks"] == other["marks"]
        near = np.allclose(found["gain"], other["gain"], rtol=1e-10)
        return "the same numbers" if same else "near" if near else "**differs**"
    if "residuals" not in found:
        return "–"
    worst = max(found["residuals"])
    said = f"residuals ≤ {worst:.1e}" + ("" if worst <= WANTED_RESIDUAL else " **too large**")
    other = results.get(f"{name}, SciPy")
    if other and not other.get("failed"):
        apart = float(np.max(np.abs(np.subtract(found["values"], other["values"])) / np.abs(other["values"])))
        said += f", values within {apart:.1e} of SciPy's" + ("" if apart <= WANTED_RESIDUAL else " **too far**")
    return said


__all__ = ["Graphs", "child", "eigsh", "failed", "pagerank", "times_of"]
