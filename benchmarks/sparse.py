"""Sparse matrices on disk: products beside the same in memory, SciPy, GraphBLAS and MKL; algorithms under real limits.

    python -m benchmarks.sparse [--scale 24] [--edges 256] [--rounds 3] [--only semi,sizes] [--folder data/bench]
    python -m benchmarks.sparse --scale 17 --edges 4              a minute or two

Graphs are R-MAT of 2^scale vertices; those of the folder are used again. Every run has a process of its own. Cases:
semi (read from disk for every product), resident (in memory, beside rivals), dense-on-disk (X larger than memory),
pagerank, eigsh (with svds and nmf), sizes (bytes per entry).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import cgroup, common, data, probes, sparse_solvers
from benchmarks.sort import watched
from benchmarks.sparse_solvers import Graphs, child, failed, times_of

WIDTHS = (1, 4, 8, 16)
ON_DISK, HELD = 32, (1, 4, 8, 32)
WANTED_SEMI = {1: 0.65, 4: 0.65, 8: 0.95, 16: 0.95}
WANTED_HELD = {1: 0.25, 4: 0.5, 8: 0.7, 32: 0.8}
WANTED_SCIPY = {1: 2.0, 4: 2.0, 8: 3.0, 16: 3.0}
GRID, BAND, WRITE_BYTES = 1 << 7, 1 << 22, 1 << 30
Section = tuple[str, dict[str, Any]]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--scale", type=int, default=24, help="log2 of the vertices")
    parser.add_argument("--edges", type=float, default=256, help="edges, in Mi (2^20)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--products", type=int, default=3, help="products that a round takes the median of")
    parser.add_argument("--memory", type=common.parse_size, default=12 * common.GIB, help="where all is in memory")
    parser.add_argument("--timeout", type=float, default=7200)
    parser.add_argument("--only", default="", help=f"cases by comma, of {', '.join(CASES)}")
    parser.add_argument("--keep", action="store_true", help="keep graphs that only one case reads, too")
    parser.add_argument("--folder", type=Path, default=Path("data/bench"))
    options = parser.parse_args()
    options.folder = options.folder.resolve()
    options.edges = int(options.edges * (1 << 20))
    options.only = [name for name in options.only.split(",") if name] or list(CASES)
    if set(options.only) - set(CASES):
        parser.error(f"--only: the cases are {', '.join(CASES)}")
    if options.scale < 12:
        parser.error("--scale: 12 at least, for the smaller graphs are made from it")
    return options


def session(options: argparse.Namespace, threads: int | None = None) -> dict[str, Any]:
    """Memory enough for everything."""
    return {"memory_limit": options.memory, "threads": threads or options.threads, "scratch": [str(options.folder)]}


def disk_of(path: Path, options: argparse.Namespace) -> Callable[[], dict[str, Any]]:
    def disk() -> dict[str, Any]:
        cgroup.drop_page_cache(options.folder)
        return dict(probes.read_disk(str(path), options.threads))

    return disk


def writes_of(options: argparse.Namespace) -> dict[str, Any]:
    found = probes.write_bandwidth(options.folder, WRITE_BYTES)
    return {"bytes_per_second": found, "seconds": WRITE_BYTES / found}


# -- products ---------------------------------------------------------------------------------------------------------


def semi(graphs: Graphs, options: argparse.Namespace) -> Section:
    """The matrix read from disk for every product, against the same matrix in memory."""
    path, expected = graphs.values(), graphs.reference()
    cases: dict[str, Callable[[], dict[str, Any]]] = {"disk": disk_of(path, options)}
    for width in WIDTHS:
        for kind in ("semi", "resident"):
            given = {"path": str(path), "columns": width, "expected": str(expected), "times": options.products}
            given |= {"resident": kind == "resident", "session": session(options)}
            cases[f"{width} {kind}"] = lambda given=given: child("product", given, None, options)
    results = common.alternating(cases, options.rounds)
    bandwidth = results["disk"]["bytes_per_second"]
    columns = [*("columns", "from disk, s", "spread", "resident, s", "ns per entry", "GB/s read", "÷ disk")]
    columns += ["matrix read", "resident ÷ from disk", "wanted", "holds"]
    lines = []
    for width in WIDTHS:
        ours, best = results[f"{width} semi"], results[f"{width} resident"]
        if ours.get("failed") or best.get("failed"):
            lines.append(failed([width], ours if ours.get("failed") else best, len(columns)))
            continue
        rate, ratio = ours["bytes_read"] / ours["seconds"], best["seconds"] / ours["seconds"]
        holds = ratio >= WANTED_SEMI[width] or rate >= 0.95 * bandwidth
        lines.append(
            [
                width,
                f"{ours['seconds']:.3f}",
                times_of(ours),
                f"{best['seconds']:.3f}",
                f"{ours['seconds'] / ours['entries'] * 1e9:.2f} / {best['seconds'] / best['entries'] * 1e9:.2f}",
                f"{rate / 1e9:.2f}",
                f"{rate / bandwidth:.2f}",
                f"{ours['bytes_read'] / ours['bytes']:.3f} / {best['bytes_read'] / best['bytes']:.3f}",
                f"{ratio:.2f}",
                f"≥ {WANTED_SEMI[width]} or the disk's rate",
                "yes" if holds else "**NO**",
            ]
        )
    said = (
        f"{graphs.said}, float64 values, {options.threads} threads, X in memory. From disk: a session with memory for "
        "X, the result and tiles under way, past the page cache. Pairs are from disk / resident; each is the median of "
        f"{options.products} products after a first one. The disk read {bandwidth / 1e9:.2f} GB/s."
    )
    return f"## Semi-external products\n\n{said}\n\n{common.table(columns, lines)}", results


def resident(graphs: Graphs, options: argparse.Namespace) -> Section:
    """In memory, beside others in memory."""
    path, expected, csr = graphs.values(), graphs.reference(), graphs.csr()
    common_part = {"expected": str(expected), "times": options.products}
    cases: dict[str, Callable[[], dict[str, Any]]] = {}
    missing = {}
    for rival in ("graphblas", "MKL"):
        outcome = cgroup.run_limited("benchmarks.sparse_rivals:absent", {"rival": rival})
        reason = outcome.reason or outcome.value
        if reason:
            missing[rival] = reason
            print(f"  {rival} is left out: {reason}", flush=True)
    threads_of = sorted({1, options.threads})
    for width in WIDTHS:
        for threads in threads_of:
            given = {"path": str(path), "columns": width, "resident": True, "session": session(options, threads)}
            given |= common_part
            cases[f"{width} outcore {threads}"] = lambda given=given: child("product", given, None, options)
            for rival in ("SciPy", "graphblas", "MKL"):
                if rival in missing or (rival == "SciPy" and threads > 1):
                    continue
                theirs = {"rival": rival, "folder": str(csr), "columns": width, "threads": threads} | common_part
                count = {name: str(threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
                cases[f"{width} {rival} {threads}"] = lambda theirs=theirs, count=count: child(
                    "sparse_rivals:product", theirs, None, options, count
                )
    results = common.alternating(cases, options.rounds)
    entries = next((found["entries"] for found in results.values() if "entries" in found), 1)
    lines = []
    for name, found in results.items():
        width, who, threads = name.split()
        if found.get("failed"):
            lines.append(failed([width, who, threads], found, 8))
            continue
        ours = results[f"{width} outcore {threads}"]
        ratio = found["seconds"] / ours["seconds"] if "seconds" in ours else float("nan")
        wanted = WANTED_SCIPY[int(width)] if who == "SciPy" else 1.0 if int(threads) > 1 else None
        held = who == "outcore" or wanted is None
        verdict = ["–", "–"] if held else [f"≥ {wanted}", "yes" if ratio >= (wanted or 0) else "**NO**"]
        per_entry = f"{found['seconds'] / entries * 1e9:.2f}"
        lines.append([width, who, threads, f"{found['seconds']:.3f}", times_of(found), per_entry, f"{ratio:.2f}"])
        lines[-1] += verdict
    columns = ["columns", "case", "threads", "seconds", "spread", "ns per entry", "÷ outcore", "wanted", "holds"]
    left = "".join(f" {rival} is left out: {reason}." for rival, reason in missing.items())
    said = f"{graphs.said}, float64 values; each the median of {options.products} products after a first one.{left}"
    return f"## Products in memory\n\n{said}\n\n{common.table(columns, lines)}", results


def dense_on_disk(graphs: Graphs, options: argparse.Namespace) -> Section:
    """X of 32 columns in a file, and memory for some of them."""
    small = graphs.smaller()
    path, order = small.values(), 1 << small.scale
    x, out = options.folder / f"x-{small.scale}.npy", options.folder / "y.npy"
    if not x.exists():
        data.write_npy(x, (order, ON_DISK), small.scale)
    given = {"path": str(path), "x": str(x)}
    best = {"session": session(options)} | given
    cases: dict[str, Callable[[], dict[str, Any]]] = {
        "disk": disk_of(x, options),
        "writes": lambda: writes_of(options),
        "resident": lambda: child("dense_resident", best, None, options),
    }
    told = {"threads": options.threads, "scratch": [str(options.folder)], "memory_limit": options.memory}
    for held in HELD:
        part = given | {"out": str(out), "held": held, "session": told}
        cases[str(held)] = lambda part=part: child("dense_on_disk", part, None, options)
    results = common.alternating(cases, options.rounds)
    for left in (x, out):
        left.unlink(missing_ok=True)
    columns = [*("columns in memory", "bands", "pool", "seconds", "spread", "read", "written", "as forecast", "GB/s")]
    columns += ["÷ disk", "resident ÷ this", "wanted", "bits", "holds"]
    reads, writes = (results[name]["bytes_per_second"] for name in ("disk", "writes"))
    lines, moved, resident_run = [], None, results["resident"]
    for held in HELD:
        found = results[str(held)]
        if found.get("failed") or resident_run.get("failed"):
            lines.append(failed([held], found if found.get("failed") else resident_run, len(columns)))
            continue
        total = found["bytes_read"] + found["bytes_written"]
        exact = all(found[name] == value for name, value in found["forecast"].items())
        ratio = resident_run["seconds"] / found["seconds"]
        same, falls = found["digest"] == resident_run["digest"], moved is None or total <= moved
        moved = total
        shown = [
            held,
            found["bands"],
            common.show_bytes(found["pool_bytes"]),
            f"{found['seconds']:.2f}",
            times_of(found),
        ]
        shown += [common.show_bytes(found[name]) for name in ("bytes_read", "bytes_written")]
        bound = found["bytes_read"] / reads + found["bytes_written"] / writes
        shown += ["yes" if exact else "**NO**", f"{total / found['seconds'] / 1e9:.2f}"]
        shown += [f"{found['seconds'] / bound:.2f}", f"{ratio:.2f}"]
        shown += [f"≥ {WANTED_HELD[held]}", "same" if same else "**differ**"]
        lines.append([*shown, "yes" if exact and same and falls and ratio >= WANTED_HELD[held] else "**NO**"])
    best_seconds = resident_run.get("seconds", float("nan"))
    said = (
        f"{small.said}, float64, times X of {ON_DISK} columns from .npy to .npy; the pool is the least that takes as "
        f"few bands as the columns in memory ask for. Resident: {best_seconds:.2f} s; of both the product after a "
        f"first one. The disk read {reads / 1e9:.2f} GB/s and wrote {writes / 1e9:.2f}; ÷ disk is what a product took "
        "over what its bytes take one after the other. Bytes must not grow from row to row."
    )
    return f"## X on disk\n\n{said}\n\n{common.table(columns, lines)}", results


def sizes(graphs: Graphs, options: argparse.Namespace) -> Section:
    """Bytes per entry beside CSR and DCSC."""
    side = min(GRID, 1 << (options.scale // 3))
    given = {"folder": str(options.folder), "grid": side, "band": min(BAND, 1 << options.scale)}
    made = child("stencils", given, None, options, plain=True)
    paths = [str(graphs.smaller().pattern()), *made["value"]]
    results = {Path(path).stem: child("sizes", {"path": path}, None, options, plain=True)["value"] for path in paths}
    for path in paths[1:]:
        Path(path).unlink(missing_ok=True)
    columns = ["matrix", "entries", "bytes per entry", "without values", "CSR", "DCSC", "places ÷ DCSC's", "wanted"]
    lines = []
    for name, found in results.items():
        count, item = found["entries"], found["item"]
        places, dcsc = found["bytes"] - item * count, found["dcsc_bytes"] - item * count
        wanted = "≤ 2.6 and ≤ 0.65" if name.startswith("rmat") else "–"
        shown = (found["bytes"] / count, places / count, found["csr_bytes"] / count, found["dcsc_bytes"] / count)
        lines.append([name, f"{count:,}", *(f"{size:.3f}" for size in shown), f"{places / dcsc:.3f}", wanted])
    return f"## Bytes per entry\n\n{common.table(columns, lines)}", results


CASES: dict[str, Callable[[Graphs, argparse.Namespace], Section]] = {
    "eigsh": sparse_solvers.eigsh,
    "semi": semi,
    "resident": resident,
    "dense-on-disk": dense_on_disk,
    "pagerank": sparse_solvers.pagerank,
    "sizes": sizes,
}


def main() -> None:
    options = arguments()
    options.folder.mkdir(parents=True, exist_ok=True)
    graphs = Graphs(options, options.scale, options.edges)
    sections, figures = [], {}
    with watched(options.folder) as seen:
        for name in options.only:
            print(f"{name}:", flush=True)
            text, figures[name] = CASES[name](graphs, options)
            print(f"\n{text}\n", flush=True)
            sections.append(text)
    sections.append(f"Files took at most {common.show_bytes(seen['most'])} at once.")
    stem = "sparse" if options.only == list(CASES) else f"sparse-{'-'.join(options.only)}"
    title = f"Sparse matrices on disk: R-MAT of 2^{options.scale} vertices, {options.edges >> 20} Mi edges"
    packages = ("scipy", "python-graphblas", "sparse_dot_mkl", "mkl")
    common.write_record(f"{stem}-{options.scale}", title, options.folder, sections, figures, packages)
    failed_runs = any(run.get("failed") for case in figures.values() for run in case.values())
    if failed_runs or "**" in "".join(sections).replace("**NO**", ""):
        sys.exit(1)


if __name__ == "__main__":
    main()
