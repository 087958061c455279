"""What the machinery itself costs: planning a million tile tasks, and an element-wise chain on arrays in memory.

    python -m benchmarks.overhead [--tasks 1000000] [--repeats 7] [--only planning]

The chain runs as NumPy (ten sweeps), as outcore, and as one fused C loop, on the same array, result newly allocated in
every case.
"""

from __future__ import annotations

import argparse
import ctypes
import functools
import itertools
import shutil
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import cgroup, common, data

ITERATIONS = {"product": 1, "logistic": 4, "nmf": 16}
SIZES = (10_000, 100_000, 1_000_000, 10_000_000, 50_000_000)
C_CHAIN = """
#include <math.h>
#include <stddef.h>
void chain(const double *x, double *y, size_t n) {
    for (size_t i = 0; i < n; i++) {
        double v = x[i];
        v = v * 1.5; v = v + 2.0; v = v - x[i]; v = v * v; v = v + 1.0;
        v = sqrt(v); v = fabs(v); v = v / 3.0; v = v - 0.5; v = v * 2.0;
        y[i] = v;
    }
}
"""


def chain(namespace: Any, x: Any) -> Any:
    """Ten element-wise operations; `C_CHAIN` is the same in one loop."""
    v = x * 1.5
    v = v + 2.0
    v = v - x
    v = v * v
    v = v + 1.0
    v = namespace.sqrt(v)
    v = abs(v)
    v = v / 3.0
    v = v - 0.5
    return v * 2.0


@functools.cache
def compiled_chain() -> Any:
    """The C loop as the compiler fuses and vectorizes it. Python's lock is free while it runs."""
    folder = Path(tempfile.mkdtemp())
    (folder / "chain.c").write_text(C_CHAIN)
    flags = ["-O3", "-march=native", "-fno-math-errno", "-shared", "-fPIC"]
    subprocess.run(["cc", *flags, str(folder / "chain.c"), "-o", str(folder / "chain.so"), "-lm"], check=True)
    function = ctypes.CDLL(str(folder / "chain.so")).chain
    function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
    function.restype = None
    shutil.rmtree(folder)
    return function


def fused_loop(x: Any, threads: int) -> Any:
    y = np.empty_like(x)
    bounds = [len(x) * part // threads for part in range(threads + 1)]

    def part(low: int, high: int) -> None:
        compiled_chain()(x.ctypes.data + 8 * low, y.ctypes.data + 8 * low, high - low)

    workers = [threading.Thread(target=part, args=pair) for pair in itertools.pairwise(bounds[1:])]
    for worker in workers:
        worker.start()
    part(0, bounds[1])
    for worker in workers:
        worker.join()
    return y


def time_once(run: Callable[[], Any], at_least_seconds: float = 0.05) -> float:
    """Seconds per call, over as many calls as make the clock's own error small."""
    calls, started = 0, time.perf_counter()
    while time.perf_counter() - started < at_least_seconds:
        run()
        calls += 1
    return (time.perf_counter() - started) / calls


def chain_times(size: int, repeats: int, threads: int, limit_bytes: int) -> dict[str, Any]:
    """Median seconds per case on one array in memory; the cases alternate."""
    x = np.random.default_rng(0).random(size)
    expected = chain(np, x)
    runs: dict[str, Callable[[], Any]] = {
        "NumPy": lambda: chain(np, x),
        "fused loop, 1 thread": lambda: fused_loop(x, 1),
        f"fused loop, {threads} threads": lambda: fused_loop(x, threads),
    }
    try:
        import outcore as oc
    except ImportError:
        return _medians(runs, expected, repeats)
    with oc.Session(memory_limit=limit_bytes, threads=threads, progress=False):
        held = oc.asarray(x)
        runs["outcore"] = lambda: oc.compute(chain(oc, held))
        return _medians(runs, expected, repeats)


def _medians(runs: dict[str, Callable[[], Any]], expected: Any, repeats: int) -> dict[str, Any]:
    for name, run in runs.items():
        np.testing.assert_allclose(run(), expected, rtol=1e-14, err_msg=name)
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repeats):
        for name, run in runs.items():
            times[name].append(time_once(run))
    return {name: statistics.median(found) for name, found in times.items()}


def plan_once(folder: Path, program: str, scale: float, limit_bytes: int) -> dict[str, Any]:
    """One plan over sparse files, which take no disk; `scale` stretches the work.

    Results do need disk, and are refused without: the product is deep and the factorization long, so theirs are small.
    """
    if program == "product":
        side = int(8192 * scale ** (1 / 3))
        shapes = {"A": (side, 8 * side), "B": (8 * side, side)}
        inputs = {name: str(data.write_npy(folder / f"{name}.npy", shape, None)) for name, shape in shapes.items()}
    else:
        inputs = data.factorization(folder / f"{program}-{scale:.3f}", int(common.GIB * scale), sparse=True)
        inputs = {name: inputs[name] for name in (("X", "y") if program == "logistic" else ("X", "W0", "H0"))}
    given = {"program": program, "inputs": inputs, "out": str(folder / "out"), "iterations": ITERATIONS[program]}
    given["session"] = {"memory_limit": limit_bytes, "threads": 2}
    outcome = cgroup.run_limited("benchmarks.ours:forecast", given)
    shutil.rmtree(folder / f"{program}-{scale:.3f}", ignore_errors=True)
    if outcome.reason:
        return {"failed": outcome.reason}
    kept = ("tasks", "plan_seconds", "program_bytes", "explain_seconds", "bytes_read")
    return {name: outcome.value.get(name) for name in kept} | {"peak_rss_bytes": outcome.peak_rss_bytes}


def planning(folder: Path, tasks: int, limit_bytes: int, repeats: int) -> dict[str, Any]:
    """Per program: a small plan says how many tasks a gigabyte makes, then plans of the wanted number are timed."""
    found: dict[str, Any] = {}
    for program in ("product", "logistic", "nmf"):
        first = plan_once(folder, program, 1.0, limit_bytes)
        if first.get("failed"):
            found[program] = first
            continue
        # W has N rows too, so a factorization's limit must grow with it: a tenth of X each for W and its terms.
        scale = tasks / first["tasks"]
        limit = limit_bytes if program != "nmf" else max(limit_bytes, int(scale * common.GIB * 0.5))
        runs = [plan_once(folder, program, scale, limit) for _ in range(repeats)]
        good = [run for run in runs if not run.get("failed")]
        found[program] = sorted(good, key=lambda run: run["plan_seconds"])[len(good) // 2] if good else runs[0]
    return found


def planning_section(found: dict[str, Any]) -> str:
    rows = []
    for program, result in found.items():
        if result.get("failed"):
            rows.append([program, result["failed"], "", "", ""])
            continue
        each = result["program_bytes"] / result["tasks"]
        million = result["plan_seconds"] / result["tasks"] * 1e6
        rows.append([program, f"{result['tasks']:,}", f"{result['plan_seconds']:.2f}", f"{million:.2f}", f"{each:.0f}"])
    columns = ["program", "tasks", "plan seconds", "seconds per 10⁶ tasks", "bytes per task"]
    return "## Planning and placing\n\nWanted: ≤ 2 s and ≤ 500 bytes per task at 10⁶.\n\n" + common.table(columns, rows)


def chain_section(found: dict[int, dict[str, float]]) -> str:
    columns = ["elements", *next(iter(found.values())), "outcore vs NumPy", "outcore vs fused"]
    rows = []
    for size, times in found.items():
        ours, fused = times.get("outcore"), min(value for name, value in times.items() if name.startswith("fused"))
        ratios = [f"{times['NumPy'] / ours:.1f} × faster", f"{ours / fused:.2f} ×"] if ours else ["–", "–"]
        rows.append([f"{size:,}", *(f"{value * 1e3:.3f} ms" for value in times.values()), *ratios])
    wanted = "Wanted on arrays of many tiles: ≥ 3 × faster than NumPy, ≤ 1.5 × the fused loop."
    return f"## Ten element-wise operations in memory\n\n{wanted}\n\n" + common.table(columns, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tasks", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--limit", type=common.parse_size, default=4 * common.GIB)
    parser.add_argument("--only", choices=("planning", "chain"), default=None)
    parser.add_argument("--folder", type=Path, default=Path("data/bench"))
    options = parser.parse_args()
    folder = options.folder.resolve()
    (folder / "sparse" / "out").mkdir(parents=True, exist_ok=True)
    sections, figures = [], {}
    if options.only != "chain":
        figures["planning"] = planning(folder / "sparse", options.tasks, options.limit, options.repeats)
        sections.append(planning_section(figures["planning"]))
    if options.only != "planning":
        times = {size: chain_times(size, options.repeats, options.threads, options.limit) for size in SIZES}
        figures["chain"] = times
        sections.append(chain_section(times))
    shutil.rmtree(folder / "sparse")
    common.write_record("overhead", "What the machinery costs", folder, sections, figures)


if __name__ == "__main__":
    main()
