"""Loop programs over cold files beside the disk and beside the same kernels in memory, all in the same rounds.

    python -m benchmarks.loop_disk [--size 2GiB] [--limit 1GiB] [--runs 5] [--only jacobi]

A round measures the disk (O_DIRECT, the best of several numbers of threads, reads and writes by themselves), the
kernel over arrays in memory (ours on two threads and numba's on one, whichever is faster), an array expression that
reads the file and writes as much, then the program over files, with the page cache dropped, both in a process of their
own. The limit of a round is the larger of bytes read and written at the disk's rates, one after the other, and
elements at the kernel's; wanted are at most 1.2 times that. Planning counts; compilation and the first touch of
memory, which a virtual machine may have to get from its host, do not.
"""

from __future__ import annotations

import argparse
import multiprocessing
import shutil
import statistics
import time
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np

import outcore as oc
from benchmarks import cgroup, child, common, data, probes
from benchmarks.loop_speed import recurrence

WANTED = 1.2
STEPS = 8
OTHER = "other.npy"
IN_MEMORY = 256 * common.MIB
PARTS = ("read_seconds", "compute_seconds", "write_seconds")


def jacobi(u: Any, v: Any) -> Any:
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            v[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
    return v


def seidel(u: Any, steps: Any) -> Any:
    for _t in range(steps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
    return u


class DiskCase(NamedTuple):
    function: Callable[..., Any]
    axes: int
    steps: tuple[int, ...] = ()
    suffix: str = ".npy"

    def others(self, size: int, zeros: Callable[[tuple[int, ...]], Any]) -> tuple[Any, ...]:
        """The steps, or a new array."""
        return self.steps or (zeros(self.shape(size)),)

    def shape(self, size: int) -> tuple[int, ...]:
        return (int((size // 8) ** (1 / self.axes)),) * self.axes

    def updates(self, size: int) -> float:
        return float(np.prod(self.shape(size))) * (self.steps or (1,))[0]


CASES = {
    "jacobi": DiskCase(jacobi, 2),
    "jacobi, to Zarr": DiskCase(jacobi, 2, suffix=".zarr"),
    f"seidel, {STEPS} steps": DiskCase(seidel, 2, (STEPS,)),
    "recurrence": DiskCase(recurrence, 1),
}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--size", type=common.parse_size, default=2 * common.GIB, help="bytes of a file")
    parser.add_argument(
        "--limit", type=common.parse_size, default=common.GIB, help="memory limit; numba asks for 1 GiB"
    )
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", default="")
    parser.add_argument("--folder", type=Path, default=Path("data/bench/loop_disk"))
    return parser.parse_args()


def over_files(name: str, is_program: bool, options: argparse.Namespace) -> dict[str, Any]:
    """One run over a cold file in a session of its own, which read another file before: its memory is at hand."""
    case = CASES[name]
    out, path = options.folder / f"out{case.suffix}", options.folder / f"{case.axes}.npy"

    def build() -> Any:
        if not is_program:
            return oc.open(path) * 2.0
        return oc.loops(case.function)(oc.open(path), *case.others(options.size, oc.zeros))

    chosen = {"memory_limit": options.limit, "threads": 2, "scratch": [str(options.folder)], "progress": False}
    with oc.Session(**chosen):
        oc.compute(oc.max(oc.open(options.folder / OTHER)))
        targets = {out: build()}
        said = oc.explain(targets, overwrite=True)  # what is compiled is compiled here
        cgroup.drop_page_cache(options.folder)
        before, begun = child.io_counters(), time.perf_counter()
        outcome = oc.store(targets, overwrite=True)
        seconds, after = time.perf_counter() - begun, child.io_counters()
    parts = {part: getattr(outcome, part, outcome.other.get(part)) for part in PARTS}
    moved = (said.bytes_read, said.bytes_written)
    exact = moved == (outcome.bytes_read, outcome.bytes_written)
    found = {"seconds": seconds, "read": moved[0], "written": moved[1], "exact": exact, "order": said.order}
    return found | parts | {"writes": after["syscw"] - before["syscw"]}


def in_memory(case: DiskCase) -> dict[str, Callable[[], float]]:
    """Updates a second over arrays in memory, ours and numba's, with what is compiled compiled already."""
    values = np.random.default_rng(0).random(case.shape(IN_MEMORY))
    ours, theirs = oc.loops(case.function), numba.njit(case.function)
    written = case.others(IN_MEMORY, np.zeros)
    calls = {
        "outcore": lambda: ours(values, *case.others(IN_MEMORY, oc.zeros)).compute(),
        # Programs in place write their argument: a copy is part of what ours does too.
        "njit": lambda: theirs(values.copy() if case.steps else values, *written),
    }

    def rate(call: Callable[[], Any]) -> float:
        begun = time.perf_counter()
        call()
        return case.updates(IN_MEMORY) / (time.perf_counter() - begun)

    for call in calls.values():
        call()
    return {name: (lambda call=call: rate(call)) for name, call in calls.items()}


def disk(path: Path, folder: Path) -> tuple[float, float]:
    """Bytes a second, read and written."""
    cgroup.drop_page_cache(folder)
    read = max(probes.read_disk(str(path), threads)["bytes_per_second"] for threads in (1, 2, 4))
    return read, probes.write_bandwidth(folder, threads=(1, 2))


def rounds(name: str, path: Path, options: argparse.Namespace, files: Executor) -> list[dict[str, Any]]:
    case, found = CASES[name], []
    kernels = in_memory(case)
    for number in range(options.runs):
        read, write = disk(path, options.folder)
        cgroup.touch_memory()
        rates = {name: rate() for name, rate in kernels.items()}
        plain, ran = (files.submit(over_files, name, is_program, options).result() for is_program in (False, True))
        disk_seconds = ran["read"] / read + ran["written"] / write
        kernel_seconds = case.updates(options.size) / max(rates.values())
        limit = max(disk_seconds, kernel_seconds)
        found.append(
            ran
            | {"disk_seconds": disk_seconds, "kernel_seconds": kernel_seconds, "ratio": ran["seconds"] / limit}
            | {"read_rate": read, "write_rate": write, "rates": rates, "array_seconds": plain["seconds"]}
        )
        print(f"  round {number + 1}: {ran['seconds']:.2f} s, {found[-1]['ratio']:.2f} of the limit", flush=True)
    return found


def row(name: str, found: list[dict[str, Any]]) -> list[str]:
    def middle(part: str) -> float:
        return statistics.median(one[part] for one in found)

    moved = [common.show_bytes(found[0][part]) for part in ("read", "written")]
    disk_rates = [f"{middle(part) / 1e9:.2f}" for part in ("read_rate", "write_rate")]
    kernels = [f"{statistics.median(one['rates'][part] for one in found) / 1e6:.0f}" for part in ("outcore", "njit")]
    seconds = [f"{middle(part):.2f}" for part in ("disk_seconds", "kernel_seconds", "array_seconds", "seconds")]
    ratios = [one["ratio"] for one in found]
    spread = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} – {max(ratios):.2f})"
    inside = " / ".join(f"{middle(part):.2f}" for part in PARTS)
    exact = "yes" if all(one["exact"] for one in found) else "NO"
    return [
        name,
        *moved,
        *disk_rates,
        *kernels,
        *seconds,
        spread,
        inside,
        str(found[0]["writes"]),
        found[0]["order"],
        exact,
    ]


COLUMNS = ["program", "read", "written", "disk, GB/s read", "GB/s written", "in memory, 10⁶ updates/s", "njit"]
RUN_COLUMNS = [
    "disk, s",
    "kernel, s",
    "array expression, s",
    "loops, s",
    "× limit",
    "threads' read / compute / write, s",
    "calls of write",
    "order",
    "exact",
]


def main() -> None:
    options = arguments()
    options.folder = options.folder.resolve()
    shutil.rmtree(options.folder, ignore_errors=True)
    options.folder.mkdir(parents=True)
    data.write_npy(options.folder / OTHER, (options.limit // 8,), 0)
    figures, rows = {}, []
    for name, case in CASES.items():
        if options.only and name.split(",")[0] not in options.only.split(","):
            continue
        print(name, flush=True)
        path = options.folder / f"{case.axes}.npy"
        if not path.exists():
            data.write_npy(path, case.shape(options.size), case.axes)
        # Arrays and kernels in memory are this process's, and count in no limit of the runs over files.
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as files:
            figures[name] = rounds(name, path, options, files)
        rows.append(row(name, figures[name]))
        print(rows[-1], flush=True)
    shutil.rmtree(options.folder)
    limits = f"Files of {common.show_bytes(options.size)}, a memory limit of {common.show_bytes(options.limit)}, two"
    text = f"{limits} threads; medians of {options.runs} rounds. {MEANING}"
    sections = [text.replace("\n", " "), common.table([*COLUMNS, *RUN_COLUMNS], rows)]
    title = "Loops over cold files beside disk and kernel"
    common.write_record("loop-disk", title, options.folder.parent, sections, figures, ["numba"])


MEANING = f"""Wanted are at most {WANTED} times the larger of the disk's seconds (bytes at the rates of the same round,
reads and writes one after the other) and the kernel's (updates at the faster rate in memory: ours on two threads,
numba's on one). The array expression is 2 x of the same file to the same format. Seconds of threads add up over
threads, and reads run beside the rest. The page cache is dropped before each run; planning counts, compilation and the
first touch of memory do not."""


if __name__ == "__main__":
    main()
