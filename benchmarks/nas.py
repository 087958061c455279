"""NAS EP, IS and CG, and SMOOTH, under a real memory limit, verified against the published answers, beside NumPy.

    python -m benchmarks.nas [--classes SWAB] [--limit 256MiB] [--repeats 3] [--only ep]

EP runs as one fused pass that writes nothing and as the two scans of TPIE's paper; IS by sorting, ranking and sorting
back, ten times; CG and SMOOTH with a sparse matrix on disk. NumPy's versions hold what they need and run without a
limit.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import cgroup, common, nas_ep, nas_is, nas_sparse

# What is verified, and what counts for M/s.
SAID = {
    "ep": "Verified: both sums within 1e-8 of the published ones, and the annuli add up to the accepted pairs. "
    "M/s: million pairs. The forecast of bytes and peak memory was made before the run and compared after it.",
    "is": f"Verified: five published ranks in each of {nas_is.ITERATIONS} iterations, and the order at the end. "
    "M/s: million keys ranked. Seconds are those of all iterations, without making the keys.",
    "cg": f"Verified: zeta within {nas_sparse.NEAR:g} of the published one. M/s: million floating-point operations, as "
    "the benchmark counts them. Seconds are those of all iterations, without making the matrix.",
    "smooth": f"Two products with the matrix of a grid of 27 points around each, {nas_sparse.ITERATIONS} times. "
    f"Verified: all numbers within {nas_sparse.NEAR:g} of sums over slices. M/s: million entries gone through.",
}
FUSED, SCANS, NUMPY = "outcore, one pass", "outcore, two scans", "NumPy, blocks"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--classes", default="SWAB", help="any of S W A B C")
    parser.add_argument("--limit", type=common.parse_size, default=256 * common.MIB)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--timeout", type=float, default=1800)
    parser.add_argument("--only", choices=tuple(SAID), default=None)
    parser.add_argument(
        "--scans-to", type=common.parse_size, default=8 * common.GIB, help="most bytes of uniforms that two scans write"
    )
    parser.add_argument("--method", choices=nas_is.METHODS, default="records", help="how IS sorts and sorts back")
    parser.add_argument("--folder", type=Path, default=Path("data/bench"))
    return parser.parse_args()


def child(target: str, given: dict[str, Any], limit: int | None, options: argparse.Namespace) -> dict[str, Any]:
    """One run in a process of its own, with the bytes that the kernel saw it write."""
    cgroup.drop_page_cache(options.folder)
    outcome = cgroup.run_limited(target, given, limit, options.timeout)
    if outcome.reason:
        return {"failed": outcome.reason, "limited_by": outcome.limited_by}
    return outcome.value | {
        "limited_by": outcome.limited_by,
        "peak_rss_bytes": outcome.peak_rss_bytes,
        "device_written_bytes": outcome.io["write_bytes"],
    }


def ep_cases(size_class: str, options: argparse.Namespace) -> dict[str, Callable[[], dict[str, Any]]]:
    out = options.folder / "out"
    given = {"size_class": size_class, "session": {"memory_limit": options.limit, "threads": options.threads}}

    def run(name: str, given: dict[str, Any], limit: int | None) -> dict[str, Any]:
        result = child(f"benchmarks.nas_ep:{name}", given, limit, options)
        if "failed" not in result:
            result["error"] = nas_ep.error(size_class, result["sums"])
            result["verified"] = nas_ep.verified(size_class, result)
        return result

    cases = {FUSED: lambda: run("fused", given, options.limit)}
    if 16 << nas_ep.LOG2_PAIRS[size_class] <= options.scans_to:
        cases[SCANS] = lambda: run("two_scans", given | {"out": str(out)}, options.limit)
    cases[NUMPY] = lambda: run("expert", {"size_class": size_class, "threads": options.threads}, None)
    return cases


def is_cases(size_class: str, options: argparse.Namespace) -> dict[str, Callable[[], dict[str, Any]]]:
    out = options.folder / "out"
    session = {"memory_limit": options.limit, "threads": options.threads}
    given = {"size_class": size_class, "out": str(out), "method": options.method, "session": session}

    def ours() -> dict[str, Any]:
        result = child("benchmarks.nas_is:ranked", given, options.limit, options)
        return result if "failed" in result else result | {"full": nas_is.check(str(out))}

    def numpy() -> dict[str, Any]:
        return child("benchmarks.nas_is:counted", {"size_class": size_class}, None, options)

    def verified(run: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        result = run()
        if "failed" in result:
            return result
        return result | {"verified": result["full"] and result["partial"] == nas_is.ITERATIONS}

    return {f"outcore, {options.method}": lambda: verified(ours), "NumPy, counting in memory": lambda: verified(numpy)}


def sparse_cases(
    benchmark: str, size_class: str, options: argparse.Namespace
) -> dict[str, Callable[[], dict[str, Any]]]:
    """CG or SMOOTH, of a matrix that is made once, under the limit."""
    out = options.folder / "out"
    path = out / f"{benchmark}-{size_class}.ocs"
    session = {"memory_limit": options.limit, "threads": options.threads, "scratch": [str(out)]}
    given = {"size_class": size_class, "path": str(path)} | ({"out": str(out)} if benchmark == "smooth" else {})
    made = {"size_class": size_class, "path": str(path), "session": session}
    found = child(f"benchmarks.nas_sparse:make_{benchmark}", made, options.limit, options)
    if "failed" not in found:
        size = f"{found['entries']:,} entries, {common.show_bytes(found['bytes'])}"
        print(f"  made {path.name}: {found['seconds']:.1f} s, {size}", flush=True)

    def run(name: str, more: dict[str, Any], limit: int | None) -> dict[str, Any]:
        result = child(f"benchmarks.nas_sparse:{name}", given | more, limit, options)
        if "failed" in result:
            return result
        if benchmark == "cg":
            error = nas_sparse.zeta_error(size_class, result["zeta"])
        else:
            error = nas_sparse.smooth_error(size_class, result["result"])
        return result | {"error": error, "verified": error <= nas_sparse.NEAR}

    return {
        "outcore, matrix on disk": lambda: run(benchmark, {"session": session}, options.limit),
        "SciPy, in memory": lambda: run(f"{benchmark}_in_memory", {}, None),
    }


def cg_cases(size_class: str, options: argparse.Namespace) -> dict[str, Callable[[], dict[str, Any]]]:
    return sparse_cases("cg", size_class, options)


def smooth_cases(size_class: str, options: argparse.Namespace) -> dict[str, Callable[[], dict[str, Any]]]:
    return sparse_cases("smooth", size_class, options)


CASES = {"ep": ep_cases, "is": is_cases, "cg": cg_cases, "smooth": smooth_cases}
# What the timed part of a class goes through.
ITEMS: dict[str, Callable[[str], float]] = {
    "ep": lambda size_class: 1 << nas_ep.LOG2_PAIRS[size_class],
    "is": lambda size_class: nas_is.ITERATIONS << nas_is.LOG2_KEYS[size_class],
    "cg": nas_sparse.operations,
    "smooth": nas_sparse.products,
}


def rows(size_class: str, items: int, results: dict[str, dict[str, Any]]) -> list[list[str]]:
    """A line per case; `items` are what `ITEMS` says."""
    lines = []
    for name, result in results.items():
        if result.get("failed"):
            lines.append([size_class, name, result["failed"], *[""] * 8])
            continue
        as_forecast = {True: "yes", False: "NO", None: "–"}[result.get("as_forecast")]
        moved = (result.get(key) for key in ("bytes_read", "bytes_written", "device_written_bytes", "peak_rss_bytes"))
        lines.append(
            [
                size_class,
                name,
                f"{result['seconds']:.2f}",
                f"{result['seconds_min']:.2f}–{result['seconds_max']:.2f} (n={result['n']})",
                f"{items / result['seconds'] / 1e6:.1f}",
                "yes" if result["verified"] else "**NO**",
                as_forecast,
                *map(common.show_bytes, moved),
            ]
        )
    return lines


COLUMNS = ["class", "case", "seconds", "spread", "M/s", "verified", "as forecast", "read", "written", "device", "RSS"]


def section(benchmark: str, options: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    """Runs a benchmark's classes: its part of the record, and the figures."""
    figures: dict[str, Any] = {}
    lines: list[list[str]] = []
    for size_class in options.classes:
        print(f"{benchmark.upper()} {size_class}:", flush=True)
        cases = CASES[benchmark](size_class, options)
        figures[size_class] = common.alternating(cases, options.repeats)
        lines += rows(size_class, int(ITEMS[benchmark](size_class)), figures[size_class])
    limit = f"outcore under {common.show_bytes(options.limit)}"
    return f"## NAS {benchmark.upper()}, {limit}\n\n{SAID[benchmark]}\n\n{common.table(COLUMNS, lines)}", figures


def main() -> None:
    options = arguments()
    options.folder = options.folder.resolve()
    (options.folder / "out").mkdir(parents=True, exist_ok=True)
    sections, figures = [], {}
    for benchmark in [options.only] if options.only else SAID:
        text, figures[benchmark] = section(benchmark, options)
        sections.append(text)
    shutil.rmtree(options.folder / "out", ignore_errors=True)
    ours = [
        result
        for classes in figures.values()
        for cases in classes.values()
        for name, result in cases.items()
        if name.startswith("outcore")
    ]
    limiters = {result["limited_by"] for result in ours}
    sections.append(f"outcore's limit was set by {', '.join(sorted(limiters))}.")
    name = f"nas-{options.only}" if options.only else "nas"
    common.write_record(name, "NAS EP, IS and CG, and SMOOTH", options.folder, sections, figures)
    if not all(result.get("verified") for result in ours):
        sys.exit(1)


if __name__ == "__main__":
    main()
