"""Bytes that loop programs move: as written with an LRU buffer, with placement, and in the order that was found.

    python -m benchmarks.loops [--scale 1024] [--pool 64MiB] [--only sar,hf] [--run seidel-2d]

Forecasts are exact, so nothing is read or written but with --run, which runs programs and holds their counters against
them. Arrays are files without data.
"""

from __future__ import annotations

import argparse
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np

import outcore as oc
from benchmarks import common
from benchmarks.loop_patterns import LoopCase, cases

WRITTEN = "rows"  # as explain calls the order of the text


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--scale", type=int, default=1024, help="MiB of a large array")
    parser.add_argument("--pool", type=common.parse_size, default=64 * common.MIB)
    parser.add_argument("--only", default="")
    parser.add_argument("--run", default="")
    parser.add_argument("--folder", type=Path, default=Path("data/bench/loops"))
    return parser.parse_args()


def made(case: LoopCase, folder: Path) -> list[Any]:
    """The arrays of a case, as files without data."""
    arrays = []
    for number, (shape, kind) in enumerate(case.arrays):
        if kind == "new":
            arrays.append(oc.zeros(shape))
        else:
            path = folder / f"{number}.npy"
            np.lib.format.open_memmap(path, mode="w+", dtype=kind, shape=shape).flush()
            arrays.append(oc.open(path))
    return arrays


def planned(case: LoopCase, folder: Path, pool: int, policy: str) -> dict[str, Any]:
    with oc.Session(pool_limit=pool, memory_limit="16GiB", policy=policy, scratch=[str(folder)], progress=False):
        arrays = made(case, folder)
        begun = time.perf_counter()
        results = case.program(*arrays, *case.others)
        results = results if isinstance(results, tuple) else (results,)
        targets = {folder / f"out{number}.npy": result for number, result in enumerate(results)}
        said = oc.explain(targets, overwrite=True)
        seconds = time.perf_counter() - begun
        tried = {order["order"]: order["bytes_read"] + order["bytes_written"] for order in said.candidates}
        read = sum(int(np.prod(shape)) * np.dtype(kind).itemsize for shape, kind in case.arrays if kind != "new")
        return {
            "tasks": said.tasks,
            "order": said.order,
            "moved": said.bytes_read + said.bytes_written,
            "written": tried.get(WRITTEN, said.bytes_read + said.bytes_written),
            "inputs": read,
            "results": sum(result.nbytes for result in results),
            "seconds": seconds,
        }


def ran(case: LoopCase, folder: Path, pool: int) -> str:
    with oc.Session(pool_limit=pool, memory_limit="16GiB", scratch=[str(folder)], progress=False):
        results = case.program(*made(case, folder), *case.others)
        results = results if isinstance(results, tuple) else (results,)
        targets = {folder / f"out{number}.npy": result for number, result in enumerate(results)}
        said = oc.explain(targets, overwrite=True)
        begun = time.perf_counter()
        outcome = oc.store(targets, overwrite=True)
        seconds = time.perf_counter() - begun
        is_exact = (said.bytes_read, said.bytes_written) == (outcome.bytes_read, outcome.bytes_written)
        return f"{seconds:.1f} s, {'as forecast' if is_exact else 'NOT as forecast'}"


def main() -> None:
    options = arguments()
    chosen = cases(options.scale)
    names = [name for name in chosen if not options.only or name in options.only.split(",")]
    rows, figures = [], {}
    for name in names:
        shutil.rmtree(options.folder, ignore_errors=True)
        options.folder.mkdir(parents=True)
        base = planned(chosen[name], options.folder, options.pool, "lru")
        found = planned(chosen[name], options.folder, options.pool, "next-use")
        least = found["inputs"] + found["results"]
        figures[name] = {"lru": base, "next-use": found}
        run = ran(chosen[name], options.folder, options.pool) if name in options.run.split(",") else ""
        moved = [base["written"], found["written"], found["moved"]]
        cells = [f"{common.show_bytes(part)} ({part / least:.2f})" for part in moved]
        saved = f"{100 - 100 * found['moved'] / base['written']:.0f} %"
        rows.append([name, common.show_bytes(least), found["tasks"], *cells, saved, found["order"], run])
        rows[-1].append(f"{found['seconds']:.1f}")
        print(rows[-1], flush=True)
    shutil.rmtree(options.folder, ignore_errors=True)
    columns = ["program", "inputs and results", "tasks", "as written, LRU", "as written, placed", "found", "less"]
    sections = [
        f"Arrays of about {options.scale} MiB, {common.show_bytes(options.pool)} for tiles. Bytes moved, and how many "
        "times inputs and results together; scratch counts. All are exact forecasts; seconds are planning's.",
        common.table([*columns, "order", "run", "planned in s"], rows),
        "The first seven are reconstructions after names and descriptions: Kandemir, Son and Karakoy print no code.",
    ]
    common.write_record("loops", "Loops over disks", options.folder.parent, sections, figures)


if __name__ == "__main__":
    main()
