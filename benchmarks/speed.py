"""Factorization and logistic regression at the speed of the disk: outcore beside an expert's loop, np.memmap and Dask.

    python -m benchmarks.speed [--size 4GiB] [--limit 2GiB] [--repeats 5] [--only nmf] [--folder data/bench]

Every case runs in a child of its own under the same cgroup limit, on the same files, page cache dropped before it.
The physical limit is max(bytes / bandwidth, flops / gemm peak) with the bytes that outcore itself moved.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import cgroup, common, data, probes, programs

ITERATIONS = {"nmf": 4, "logistic": 10}
PROBE = "disk alone"
TOUCH = "memory touched for the first time"
AT_HAND = ", memory at hand"
CHECKED = {"nmf": "H", "logistic": "w"}
BLAS = {"OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--size", type=common.parse_size, default=4 * common.GIB, help="bytes of X")
    parser.add_argument("--limit", type=common.parse_size, default=2 * common.GIB, help="memory limit of every case")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--rival-repeats", type=int, default=None, help="rounds in which rivals take part (slow ones)")
    parser.add_argument("--iterations", type=int, default=None)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", choices=ITERATIONS, default=None)
    parser.add_argument("--cases", default="", help="run only the cases whose name holds one of these, by comma")
    parser.add_argument("--timeout", type=float, default=1800, help="seconds after which a rival is given up")
    parser.add_argument("--folder", type=Path, default=Path("data/bench"))
    return parser.parse_args()


def cases(program: str, options: argparse.Namespace, files: dict[str, str]) -> dict[str, tuple[str, dict[str, Any]]]:
    """Name → (child function, its arguments)."""
    iterations = {"iterations": options.iterations or ITERATIONS[program]}
    names = ("X", "W0", "H0") if program == "nmf" else ("X", "y")
    npy = {name: files[name] for name in names}
    zarr = npy | {"X": files["X.zarr"]}
    session = {"memory_limit": options.limit, "threads": options.threads}
    ours = {"program": program, "session": session} | iterations
    # The expert gives X what W, its buffers and the interpreter leave over, with a margin of a sixteenth.
    wide = Path(files["W0"]).stat().st_size if program == "nmf" else Path(files["y"]).stat().st_size
    keep = max(0, options.limit - options.limit // 16 - wide - 256 * common.MIB)
    found = {
        "outcore (.npy)": ("benchmarks.ours:run", ours | {"inputs": npy}),
        "outcore (Zarr)": ("benchmarks.ours:run", ours | {"inputs": zarr}),
        # Not in its first computation, so that the host has handed out the memory already.
        f"outcore (.npy){AT_HAND}": ("benchmarks.ours:run", ours | {"inputs": npy, "before": files["X.zarr"]}),
        f"outcore (Zarr){AT_HAND}": ("benchmarks.ours:run", ours | {"inputs": zarr, "before": files["X"]}),
        "expert loop, streaming": (f"benchmarks.rivals:{program}_expert", npy | iterations),
        "expert loop, 4 MiB blocks, one reader": (
            f"benchmarks.rivals:{program}_expert",
            npy | iterations | {"block_bytes": 4 * common.MIB, "readers": 1},
        ),
        "expert loop, keeping a part": (f"benchmarks.rivals:{program}_expert", npy | iterations | {"keep_bytes": keep}),
        "np.memmap": (f"benchmarks.rivals:{program}_memmap", npy | iterations),
    }
    if program == "nmf":
        found["np.memmap, W @ (H @ H.T)"] = ("benchmarks.rivals:nmf_memmap", npy | iterations | {"parenthesized": True})
    for kind, inputs in ((".npy", npy), ("Zarr", zarr)):
        dask = f"benchmarks.rivals:{program}_dask"
        found[f"Dask ({kind})"] = (dask, inputs | iterations)
        found[f"Dask ({kind}, X opened anew per use)"] = (dask, inputs | iterations | {"anew": True})
    wanted = [part for part in options.cases.split(",") if part]
    return {name: case for name, case in found.items() if not wanted or any(part in name for part in wanted)}


def child(
    program: str, target: str, given: dict[str, Any], options: argparse.Namespace, answers: dict[str, Any]
) -> dict[str, Any]:
    """One run: clean output folder, cold cache, a child under the limit, and its answer against the first one's."""
    out = options.folder / "out"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    cgroup.drop_page_cache(options.folder)
    outcome = cgroup.run_limited(target, given | {"out": str(out)}, options.limit, options.timeout, BLAS)
    if outcome.reason:
        return {"failed": outcome.reason, "limited_by": outcome.limited_by, "wall_seconds": outcome.wall_seconds}
    answer = np.load(out / f"{CHECKED[program]}.npy")
    reference = answers.setdefault(program, answer)
    return outcome.value | {
        "limited_by": outcome.limited_by,
        "wall_seconds": outcome.wall_seconds,
        "peak_rss_bytes": outcome.peak_rss_bytes,
        "device_read_bytes": outcome.io["read_bytes"],
        "device_written_bytes": outcome.io["write_bytes"],
        "difference": float(np.max(np.abs(answer - reference) / np.maximum(np.abs(reference), 1e-300))),
    }


def physical_limit(
    program: str, options: argparse.Namespace, moved: dict[str, Any], machine: dict[str, float]
) -> dict[str, float]:
    rows = options.size // (8 * data.COLUMNS)
    iterations = options.iterations or ITERATIONS[program]
    flops = (
        programs.nmf_flops(rows, data.COLUMNS, data.FACTORS, iterations)
        if program == "nmf"
        else programs.logistic_flops(rows, data.COLUMNS, iterations)
    )
    disk = moved["bytes_read"] / machine["read_bandwidth"] + moved["bytes_written"] / machine["write_bandwidth"]
    return {
        "disk_seconds": disk,
        "flop_seconds": flops / machine["gemm_peak"],
        "seconds": max(disk, flops / machine["gemm_peak"]),
    }


def measure_machine(files: dict[str, str], folder: Path) -> dict[str, float]:
    cgroup.drop_page_cache(folder)
    return {
        "read_bandwidth": probes.read_bandwidth(Path(files["X"])),
        "write_bandwidth": probes.write_bandwidth(folder),
        "gemm_peak": probes.gemm_peak(),
    }


def of_its_round(result: dict[str, Any], limits: list[float]) -> float:
    """The median over rounds of the time against the physical limit at the rate that the disk had in that round."""
    return statistics.median(
        seconds / limit for seconds, limit in zip(result["seconds_by_round"], limits, strict=False)
    )


def rows(
    results: dict[str, dict[str, Any]], limit: dict[str, float] | None, limits_by_round: list[float]
) -> list[list[str]]:
    cold = {name: result for name, result in results.items() if not name.endswith(AT_HAND)}
    ours = [result["seconds"] for name, result in cold.items() if name.startswith("outcore") and "seconds" in result]
    shown = []
    for name, result in results.items():
        if result.get("failed"):
            shown.append([name, result["failed"], *[""] * 7])
            continue
        seconds = result["seconds"]
        shown.append(
            [
                name,
                f"{seconds:.2f}",
                f"{result['seconds_min']:.2f}–{result['seconds_max']:.2f} (n={result['n']})",
                f"{seconds / limit['seconds']:.2f}" if limit else "–",
                f"{of_its_round(result, limits_by_round):.2f}" if limit else "–",
                f"{seconds / min(ours):.2f}" if ours else "–",
                # What was read to have memory at hand is not the program's.
                common.show_bytes(result["device_read_bytes"] if name in cold else result["bytes_read"]),
                common.show_bytes(result["device_written_bytes"]),
                common.show_bytes(result["peak_rss_bytes"]),
            ]
        )
    return shown


def section(program: str, options: argparse.Namespace, files: dict[str, str]) -> tuple[str, dict[str, Any]]:
    answers: dict[str, Any] = {}
    before = measure_machine(files, options.folder)
    runs: dict[str, Callable[[], dict[str, Any]]] = {
        name: (lambda target=target, given=given: child(program, target, given, options, answers))
        for name, (target, given) in cases(program, options, files).items()
    }
    disk: list[dict[str, float]] = []

    def probe() -> dict[str, Any]:
        cgroup.drop_page_cache(options.folder)
        swept = max(
            (probes.read_disk(files["X"], count) for count in (1, 2, 4)), key=lambda one: one["bytes_per_second"]
        )
        disk.append(swept)
        return dict(swept)

    def touch() -> dict[str, Any]:
        size = options.limit - 256 * common.MIB
        return dict(cgroup.run_limited("benchmarks.probes:first_touch", {"size_bytes": size}).value)

    runs = {PROBE: probe, TOUCH: touch} | runs
    if options.rival_repeats is not None:
        slow = ("np.memmap", "Dask")
        results = common.alternating({n: r for n, r in runs.items() if not n.startswith(slow)}, options.repeats)
        results |= common.alternating({n: r for n, r in runs.items() if n.startswith(slow)}, options.rival_repeats)
    else:
        results = common.alternating(runs, options.repeats)
    results.pop(PROBE)
    touched = results.pop(TOUCH)
    after = measure_machine(files, options.folder)
    machine = {name: max(before[name], after[name]) for name in before}
    # The best rate seen in any round: a limit that a run beats was no limit.
    machine["read_bandwidth"] = max(machine["read_bandwidth"], *(one["bytes_per_second"] for one in disk))
    slowest = min(one["bytes_per_second"] for one in disk)
    moved = next((r for n, r in results.items() if n.startswith("outcore") and "bytes_read" in r), None)
    limit = physical_limit(program, options, moved, machine) if moved else None
    head = (
        f"## {program}, {options.iterations or ITERATIONS[program]} iterations, X {common.show_bytes(options.size)}, "
        f"limit {common.show_bytes(options.limit)}\n\n"
        f"Disk {machine['read_bandwidth'] / 1e9:.2f} GB/s read, {machine['write_bandwidth'] / 1e9:.2f} GB/s written; "
        f"gemm {machine['gemm_peak'] / 1e9:.0f} Gflop/s (best of all "
        f"rounds; the disk's slowest round read {slowest / 1e9:.2f} GB/s)."
    )
    times = f"{touched['seconds']:.2f} s ({touched['seconds_min']:.2f}–{touched['seconds_max']:.2f})"
    head += (
        f" Touching {common.show_bytes(touched['bytes_touched'])} of fresh memory with two threads, as a case does "
        f"that fills the limit, takes {times}; that is not part of the limit below."
    )
    if limit:
        parts = f"disk {limit['disk_seconds']:.2f} s, flops {limit['flop_seconds']:.2f} s"
        head += f" Physical limit {limit['seconds']:.2f} s: {parts}."
        if any(result.get("seconds", limit["seconds"]) < limit["seconds"] for result in results.values()):
            head += " **A case beat this limit, so the disk was measured too slow: the × limit column is not valid.**"
    columns = ["case", "seconds", "spread", "× limit", "× its round's", "× outcore", "read", "written", "peak RSS"]
    limits_by_round = [
        physical_limit(program, options, moved, machine | {"read_bandwidth": one["bytes_per_second"]})["seconds"]
        for one in disk
        if moved
    ]
    text = head + "\n\n" + common.table(columns, rows(results, limit, limits_by_round))
    text += (
        "\n\nThe column × limit takes the best rate that the disk had in any round, × its round's the rate measured in "
        "the same round as the case (median over rounds). A session with memory at hand has read another array before, "
        "which is not timed: the host has handed out its memory then, and none of what it keeps is of use."
    )
    return text, {
        "first_touch": touched,
        "machine_before": before,
        "machine_after": after,
        "disk_rounds": disk,
        "physical_limit": limit,
        "cases": results,
    }


def main() -> None:
    options = arguments()
    options.folder = options.folder.resolve()
    files = data.factorization(options.folder, options.size, zarr=True)
    sections, figures = [], {}
    for program in [options.only] if options.only else ITERATIONS:
        print(f"{program}:", flush=True)
        text, figures[program] = section(program, options, files)
        sections.append(text)
    shutil.rmtree(options.folder / "out", ignore_errors=True)
    common.write_record(
        "speed", "Speed against the disk and against others", options.folder, sections, figures, ("dask", "zarr")
    )


if __name__ == "__main__":
    main()
