"""Sorting a file larger than memory: outcore beside np.memmap, DuckDB, Polars and an expert's NumPy, all confined.

    python -m benchmarks.sort [--size 4GiB] [--limit 1GiB] [--patterns random,zipf] [--repeats 3] [--cases outcore]
    python -m benchmarks.sort --size 8GiB --limit 512MiB          the larger case
    python -m benchmarks.sort --size 512MiB --limit 192MiB        minutes, not an hour

Every case runs in a child of its own under the same cgroup limit, page cache dropped before it, and its output is
checked in blocks: sorted, and the same multiset of values. The floor of a sort is
max(2 reads and 2 writes of the data at the disk's bandwidth, the time the same cores take to sort it in memory).
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from benchmarks import cgroup, common, keys, probes

OURS = "outcore"
ITEM_BYTES = 8
WANTED_FLOOR, WANTED_BYTES, WANTED_SCRATCH, WANTED_SKEW, WANTED_AHEAD = 1.3, 1.01, 1.02, 1.3, 3.0
POLL_SECONDS = 0.05


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--size", type=common.parse_size, default=4 * common.GIB, help="bytes of the keys")
    parser.add_argument("--limit", type=common.parse_size, default=common.GIB, help="memory limit of every case")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--timeout", type=float, default=900, help="seconds after which a case is given up")
    parser.add_argument("--patterns", default=",".join(keys.PATTERNS), help="by comma")
    parser.add_argument("--rivals-on", default="random", help="patterns that rivals sort too, by comma")
    parser.add_argument("--rival-repeats", type=int, default=1)
    parser.add_argument("--cases", default="", help="run only the cases whose name holds one of these, by comma")
    parser.add_argument(
        "--memory-size", type=common.parse_size, default=common.GIB, help="bytes to sort in memory, scaled from there"
    )
    parser.add_argument("--keep", action="store_true", help="keep the keys for the next time")
    parser.add_argument("--folder", type=Path, default=Path("data/bench"))
    options = parser.parse_args()
    options.folder = options.folder.resolve()
    options.patterns, options.rivals_on = (_listed(text) for text in (options.patterns, options.rivals_on))
    unknown = (set(options.patterns) | set(options.rivals_on)) - set(keys.PATTERNS)
    if unknown:
        parser.error(f"no pattern is called {', '.join(sorted(unknown))}; there are {', '.join(keys.PATTERNS)}")
    return options


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


# -- one run ------------------------------------------------------------------------------------------------------


@contextmanager
def watched(folder: Path) -> Iterator[dict[str, int]]:
    """The most bytes that files below `folder` have on disk at once, looked at every now and then."""
    seen, done = {"most": 0}, threading.Event()

    def look() -> None:
        while True:
            seen["most"] = max(seen["most"], _disk_bytes(folder))
            if done.wait(POLL_SECONDS):
                return

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield seen
    finally:
        done.set()
        watcher.join()


def _disk_bytes(folder: Path) -> int:
    total = 0
    for root, _, names in os.walk(folder):  # passes over folders that are gone since they were listed
        for name in names:
            with suppress(OSError):
                total += os.stat(os.path.join(root, name)).st_blocks * 512
    return total


def run(
    target: str, given: dict[str, Any], source: Path, options: argparse.Namespace, wanted: dict[str, int]
) -> dict[str, Any]:
    """One sort in a child under the limit, and the check of what it left."""
    out = options.folder / "out"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    cgroup.drop_page_cache(options.folder)
    arguments = {"path": str(source), "out": str(out)} | given
    with watched(out) as seen:
        outcome = cgroup.run_limited(f"benchmarks.sorters:{target}", arguments, options.limit, options.timeout)
    if outcome.reason:
        shutil.rmtree(out, ignore_errors=True)
        return {"failed": outcome.reason, "limited_by": outcome.limited_by, "wall_seconds": outcome.wall_seconds}
    result = outcome.value | {
        "limited_by": outcome.limited_by,
        "wall_seconds": outcome.wall_seconds,
        "peak_rss_bytes": outcome.peak_rss_bytes,
        "device_read_bytes": outcome.io["read_bytes"],
        "device_written_bytes": outcome.io["write_bytes"],
        "disk_bytes_most": seen["most"],
    }
    made = out / "sorted.npy"
    blocks = keys.npy_blocks(made) if made.exists() else keys.parquet_blocks(out / "sorted.parquet")
    wrong = keys.wrong(blocks, wanted)
    shutil.rmtree(out, ignore_errors=True)
    return result | ({"failed": f"**wrong: {wrong}**"} if wrong else {})


def cases(
    pattern: str, files: dict[str, Path], options: argparse.Namespace, digest: dict[str, int]
) -> dict[str, Callable[[], dict[str, Any]]]:
    """Name → a run; rivals only where they are asked for."""
    out = options.folder / "out"
    session = {"memory_limit": options.limit, "threads": options.threads, "scratch": [str(out)]}
    confined = {"limit": options.limit, "threads": options.threads}
    listed: dict[str, tuple[str, dict[str, Any], str]] = {OURS: ("outcore", {"session": session}, "npy")}
    if pattern in options.rivals_on:
        listed |= {
            "expert's NumPy": ("expert", confined, "npy"),
            "np.memmap.sort": ("memmap", {}, "npy"),
            "DuckDB": ("duckdb", confined, "parquet"),
            "Polars": ("polars", confined, "parquet"),
        }
    wanted = _listed(options.cases)
    return {
        name: lambda target=target, given=given, kind=kind: run(target, given, files[kind], options, digest)
        for name, (target, given, kind) in listed.items()
        if not wanted or any(part in name for part in wanted)
    }


def measure(path: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Disk and cores beside the runs: the floor of this sort. The time in memory is scaled as n·log n from a part."""
    cgroup.drop_page_cache(options.folder)
    count = options.size // ITEM_BYTES
    part = min(count, options.memory_size // ITEM_BYTES)
    given = {"path": str(path), "count": part, "threads": options.threads}
    outcome = cgroup.run_limited("benchmarks.sorters:in_memory", given)
    if outcome.reason:
        raise RuntimeError(f"sorting in memory: {outcome.reason}")
    read, write = probes.read_bandwidth(path), probes.write_bandwidth(options.folder)
    memory = outcome.value["seconds"] * (count * math.log2(count)) / (part * math.log2(part))
    disk = 2 * options.size / read + 2 * options.size / write
    return {
        "read_bandwidth": read,
        "write_bandwidth": write,
        "part_seconds": outcome.value["seconds"],
        "part_bytes": part * ITEM_BYTES,
        "memory_seconds": memory,
        "disk_seconds": disk,
        "floor_seconds": max(memory, disk),
    }


# -- the record ---------------------------------------------------------------------------------------------------

COLUMNS = [
    *("case", "seconds", "spread", "× floor", "× outcore", "device read", "device written", "most on disk", "RSS"),
    "result",
]


def rows(results: dict[str, dict[str, Any]], floor: float, size: int) -> list[list[str]]:
    ours = None if results.get(OURS, {}).get("failed") else results.get(OURS, {}).get("seconds")
    lines = []
    for name, result in results.items():
        if result.get("failed"):
            lines.append([name, result["failed"], *[""] * 7, f"after {result['wall_seconds']:.0f} s"])
            continue
        moved = [f"{result[key] / size:.3f} ×" for key in ("device_read_bytes", "device_written_bytes")]
        lines.append(
            [
                name,
                f"{result['seconds']:.2f}",
                f"{result['seconds_min']:.2f}–{result['seconds_max']:.2f} (n={result['n']})",
                f"{result['seconds'] / floor:.2f}",
                f"{result['seconds'] / ours:.2f}" if ours else "–",
                *moved,
                f"{result['disk_bytes_most'] / size:.3f} ×",
                common.show_bytes(result["peak_rss_bytes"]),
                "verified",
            ]
        )
    return lines


def verdicts(figures: dict[str, dict[str, Any]], size: int) -> str:
    """What was wanted of outcore beside what was found."""
    found: list[tuple[str, str, str, bool]] = []
    reference = figures.get("random", {}).get("cases", {}).get(OURS, {})
    random = None if reference.get("failed") else reference.get("seconds")
    for pattern, figure in figures.items():
        ours = figure["cases"].get(OURS, {})
        if ours.get("failed"):
            found.append((f"outcore sorts {pattern}", "yes", ours["failed"], False))
        if "seconds" not in ours or ours.get("failed"):
            continue
        seconds, floor = ours["seconds"], figure["machine"]["floor_seconds"]
        if pattern == "random":
            moved = (ours["bytes_read"] + ours["bytes_written"]) / (4 * size)
            forecast = ours["forecast"]
            told = [(ours[name], forecast[name]) for name in ("bytes_read", "bytes_written")]
            holds = all(got == said if forecast["exact"] else got <= said for got, said in told)
            bound = f"{sum(said for _, said in told) / (4 * size):.4f} {'exact' if forecast['exact'] else 'at most'}"
            scratch = (ours["disk_bytes_most"] - size) / size
            found += [
                ("seconds ÷ floor", f"≤ {WANTED_FLOOR}", f"{seconds / floor:.2f}", seconds <= WANTED_FLOOR * floor),
                ("bytes ÷ (2 reads + 2 writes)", f"≤ {WANTED_BYTES}", f"{moved:.4f}", moved <= WANTED_BYTES),
                (
                    "most on disk beside the output ÷ data",
                    f"≤ {WANTED_SCRATCH}",
                    f"{scratch:.3f}",
                    scratch <= WANTED_SCRATCH,
                ),
                ("`explain` before the run, bytes ÷ (2 reads + 2 writes)", "holds", bound, holds),
            ]
        elif random:
            ratio = seconds / random
            found.append((f"{pattern} ÷ random", f"≤ {WANTED_SKEW}", f"{ratio:.2f}", ratio <= WANTED_SKEW))
        for name, rival in figure["cases"].items():
            if name == OURS:
                continue
            label = f"{name} ÷ outcore, {pattern}"
            if rival.get("failed"):
                found.append((label, f"≥ {WANTED_AHEAD}", rival["failed"], True))
            else:
                ahead = rival["seconds"] / seconds
                found.append((label, f"≥ {WANTED_AHEAD}", f"{ahead:.2f}", ahead >= WANTED_AHEAD))
    if not found:
        return "outcore took no part."
    lines = [[what, wanted, got, "yes" if holds else "**NO**"] for what, wanted, got, holds in found]
    return common.table(["what", "wanted", "found", "holds"], lines)


def section(pattern: str, options: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    """Runs all cases of a pattern: its part of the record, and the figures."""
    stem = options.folder / f"keys-{pattern}-{options.size}"
    files = {kind: stem.with_suffix(f".{kind}") for kind in ("npy", "parquet")}
    known = stem.with_suffix(".json")
    if not (known.exists() and files["npy"].exists()):
        known.write_text(json.dumps(keys.write(files["npy"], pattern, options.size // ITEM_BYTES)))
    digest = json.loads(known.read_text())
    runs = cases(pattern, files, options, digest)
    if {"DuckDB", "Polars"} & set(runs) and not files["parquet"].exists():
        made = cgroup.run_limited(
            "benchmarks.sorters:to_parquet", {"path": str(files["npy"]), "target": str(files["parquet"])}
        )
        if made.reason:
            raise RuntimeError(f"keys to Parquet: {made.reason}")
    before = measure(files["npy"], options)
    results: dict[str, dict[str, Any]] = {}
    for rival, repeats in ((False, options.repeats), (True, options.rival_repeats)):
        part = {name: case for name, case in runs.items() if (name != OURS) == rival}
        results |= common.alternating(part, repeats)
    after = measure(files["npy"], options)
    # The best of two: a floor that a run could beat would be no floor.
    machine = min(before, after, key=lambda one: one["floor_seconds"])
    if not options.keep:
        for path in (*files.values(), known):
            path.unlink(missing_ok=True)
    head = (
        f"## {pattern}: {keys.MEANING[pattern]}\n\nDisk {machine['read_bandwidth'] / 1e9:.2f} GB/s read, "
        f"{machine['write_bandwidth'] / 1e9:.2f} GB/s written: 2 reads and 2 writes take {machine['disk_seconds']:.2f} "
        f"s. In memory, {options.threads} threads: {machine['memory_seconds']:.2f} s, scaled as n·log n from "
        f"{machine['part_seconds']:.2f} s for {common.show_bytes(machine['part_bytes'])}. "
        f"Floor {machine['floor_seconds']:.2f} s."
    )
    text = head + "\n\n" + common.table(COLUMNS, rows(results, machine["floor_seconds"], options.size))
    return text, {"machine": machine, "machine_before": before, "machine_after": after, "cases": results}


def main() -> None:
    options = arguments()
    options.folder.mkdir(parents=True, exist_ok=True)
    sections, figures = [], {}
    started = time.perf_counter()
    for pattern in options.patterns:
        print(f"{pattern}:", flush=True)
        text, figures[pattern] = section(pattern, options)
        sections.append(text)
    limiters = {case["limited_by"] for one in figures.values() for case in one["cases"].values()}
    minutes = (time.perf_counter() - started) / 60
    about = (
        f"{options.size // ITEM_BYTES:,} keys of {ITEM_BYTES} bytes, {common.show_bytes(options.size)}, limit "
        f"{common.show_bytes(options.limit)} set by {', '.join(sorted(limiters))}; {options.threads} threads. Bytes "
        "are multiples of the data as the kernel counted them at the device; most on disk is what a case had in files "
        "at once, its output with them. np.memmap sorts a copy whose making is not timed but counted in its bytes. "
        f"DuckDB and Polars read and write Parquet. The whole took {minutes:.0f} minutes."
    )
    common.write_record(
        f"sort-{options.size // common.MIB}MiB-under-{options.limit // common.MIB}MiB",
        "Sorting a file larger than memory",
        options.folder,
        [about, verdicts(figures, options.size), *sections],
        figures,
        ("duckdb", "polars"),
    )
    if any(one["cases"].get(OURS, {}).get("failed") for one in figures.values()):
        sys.exit(1)


if __name__ == "__main__":
    main()
