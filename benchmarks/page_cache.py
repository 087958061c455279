"""Pages of a file read at random through our page cache, beside buffered `pread` and `mmap` in the same memory group.

    python -m benchmarks.page_cache [--size 4GiB] [--seconds 2] [--repeats 5] [--limit 384MiB] [--folder data/bench]
    python -m benchmarks.page_cache --size 512MiB --seconds 0.3 --repeats 1      seconds, to see that it works

At 0, 50, 95 and 100 hits of a hundred; the others are pages that are met for the first time. Each way has the number
of threads that suits it best, and who has a page looks at all of it; at 100 % also at its two ends only. A cache's time
per read is linear in the hit rate where it is the mean, by that rate, of its times without a hit and with hits alone.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import cgroup, common
from benchmarks.raw_io import write_file

THREADS = {"cache": (1, 2), "pread": (1, 2, 32), "mmap": (1, 2, 32)}
NAMES = {"cache": "outcore", "pread": "pread", "mmap": "mmap"}
# Hits of a hundred, and what is looked at of a page.
CASES = [(0, "whole"), (50, "whole"), (95, "whole"), (100, "whole"), (100, "ends")]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--size", type=common.parse_size, default=4 * common.GIB, help="bytes of the file")
    parser.add_argument("--seconds", type=float, default=2, help="of one measurement")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--limit", type=common.parse_size, default=384 * common.MIB, help="of the group")
    parser.add_argument("--folder", type=Path, default=Path("data/bench"))
    return parser.parse_args()


def read(command: list[str]) -> dict[str, Any]:
    """What a child does, within its group: the program that reads."""
    done: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return done


def run(program: Path, file: Path, way: str, threads: int, case: tuple[int, str], options: argparse.Namespace) -> Any:
    hits, use = case
    # A third of the group stays for Python, and for what the kernel counts beside pages.
    command = [program, file, way, hits, threads, options.seconds, options.limit * 2 // 3, use]
    cgroup.drop_page_cache(file.parent)
    cgroup.touch_memory(options.limit)
    given = {"command": [str(part) for part in command]}
    outcome = cgroup.run_limited("benchmarks.page_cache:read", given, options.limit, 600)
    if outcome.reason:
        return {"failed": outcome.reason}
    found = outcome.value
    return {
        "seconds": found["seconds"] / found["reads"] * 1e6,  # of a million reads
        "reads_a_second": found["reads"] / found["seconds"],
        "hit_percent": found["hit_percent"],
        "limited_by": outcome.limited_by,
    }


def label(way: str, threads: int, case: tuple[int, str]) -> str:
    return f"{case[0]} %, {case[1]}: {NAMES[way]}, {threads} threads"


def best(results: dict[str, dict[str, Any]], way: str, case: tuple[int, str]) -> tuple[int, float]:
    """Threads with which a way reads most, and how much a second."""
    rates = {threads: 1e6 / results[label(way, threads, case)]["seconds"] for threads in THREADS[way]}
    most = max(rates, key=lambda threads: rates[threads])
    return most, rates[most]


def linearity(results: dict[str, dict[str, Any]], case: tuple[int, str]) -> float:
    """Our time for a read over the mean, by the hit rate, of that without hits and with hits alone."""
    seconds = {hits: 1 / best(results, "cache", (hits, "whole"))[1] for hits in (0, case[0], 100)}
    share = case[0] / 100
    return seconds[case[0]] / ((1 - share) * seconds[0] + share * seconds[100])


def rows(results: dict[str, dict[str, Any]]) -> list[list[str]]:
    lines = []
    for case in CASES:
        (ours_threads, ours), others = best(results, "cache", case), {}
        cells = [f"{case[0]} %", "all" if case[1] == "whole" else "its ends", f"{ours:,.0f} ({ours_threads})"]
        for way in ("pread", "mmap"):
            threads, rate = best(results, way, case)
            others[way] = ours / rate
            cells += [f"{rate:,.0f} ({threads})", f"{ours / rate:.2f}"]
        cells.append(f"{linearity(results, case):.2f}" if case[1] == "whole" else "–")
        lines.append([*cells, "yes" if min(others.values()) >= 1 else "**NO**"])
    return lines


def main() -> None:
    options = arguments()
    program = common.built("page_cache")
    options.folder.mkdir(parents=True, exist_ok=True)
    file = (options.folder / "page-cache.bin").resolve()
    results = {}
    try:
        write_file(file, options.size)
        for case in CASES:
            runs = {
                label(way, threads, case): partial(run, program, file, way, threads, case, options)
                for way in THREADS
                for threads in THREADS[way]
            }
            results |= common.alternating(runs, options.repeats)
    finally:
        file.unlink(missing_ok=True)
    if failed := [name for name, result in results.items() if result.get("failed")]:
        sys.exit("\n".join(f"{name}: {results[name]['failed']}" for name in failed))
    columns = ["hits", "of a page", "outcore, reads a second (threads)", "pread", "outcore ÷ pread", "mmap",
               "outcore ÷ mmap", "time ÷ linear in the hit rate", "ahead of both"]  # fmt: skip
    common.write_record(
        "page-cache",
        "Pages at random: the page cache beside pread and mmap",
        options.folder,
        [
            f"One file of {common.show_bytes(options.size)}, pages of 4 KiB, a group of "
            f"{common.show_bytes(options.limit)} ({next(iter(results.values()))['limited_by']}), 64 MiB asked for "
            f"again and again; medians of {options.repeats} rounds in turn, {options.seconds:g} s each, each way with "
            "the threads that suit it best.",
            common.table(columns, rows(results)),
        ],
        {"cases": results},
    )


if __name__ == "__main__":
    main()
