"""Our ring beside fio on one file, past the page cache: long transfers in order, short ones at random places.

    python -m benchmarks.raw_io [--size 2GiB] [--seconds 4] [--repeats 5] [--folder data/bench]
    python -m benchmarks.raw_io --size 256MiB --seconds 1 --repeats 1         seconds, to see that it works

Both take turns, round by round, with the same file, transfer length and number under way, one job each (fio: io_uring,
direct, without times of each transfer). Processor time is that of the whole process while it transfers.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import common

OURS, FIO = "outcore", "fio"
PROCESSOR_RATIO_MAX = 1.2


class Case(NamedTuple):
    """A pattern by fio's name, how long a transfer is, how many are under way, and the share of fio's rate wanted."""

    way: str
    transfer_bytes: int
    depth: int
    wanted: float


CASES = {
    "read 4 MiB in order": Case("read", 4 * common.MIB, 8, 0.97),
    "write 4 MiB in order": Case("write", 4 * common.MIB, 8, 0.97),
    "read 4 KiB at random": Case("randread", 4 * common.KIB, 64, 0.95),
    "write 4 KiB at random": Case("randwrite", 4 * common.KIB, 64, 0.90),
}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--size", type=common.parse_size, default=2 * common.GIB, help="bytes of the file")
    parser.add_argument("--seconds", type=float, default=4, help="of one measurement")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--depth", type=int, default=None, help="transfers under way; 8 long ones, 64 short ones")
    parser.add_argument("--folder", type=Path, default=Path("data/bench"))
    return parser.parse_args()


def write_file(path: Path, size_bytes: int) -> None:
    """Bytes that no disk can leave out, all of them written: no block is met for the first time."""
    block = os.urandom(4 * common.MIB)
    with path.open("wb") as file:
        for number in range(size_bytes // len(block)):
            file.write(number.to_bytes(8, "little") + block[8:])
        file.flush()
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def figures(transfers: int, seconds: float, processor_seconds: float, case: Case) -> dict[str, Any]:
    return {
        "seconds": seconds * common.GIB / (transfers * case.transfer_bytes),  # of a GiB: medians are taken by it
        "transfers": transfers,
        "processor_us": processor_seconds * 1e6 / transfers,
    }


def ours(program: Path, file: Path, case: Case, seconds: float) -> dict[str, Any]:
    command = [program, file, case.way, str(case.transfer_bytes), str(case.depth), str(seconds)]
    done = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return figures(done["transfers"], done["seconds"], done["processor_seconds"], case)


def fio(file: Path, case: Case, seconds: float) -> dict[str, Any]:
    options = {
        "name": case.way,
        "filename": file,
        "rw": case.way,
        "bs": case.transfer_bytes,
        "iodepth": case.depth,
        "ioengine": "io_uring",
        "direct": 1,
        "numjobs": 1,
        "size": file.stat().st_size,
        "time_based": 1,
        "runtime": f"{round(seconds * 1000)}ms",
        "norandommap": 1,
        "randrepeat": 0,
        "gtod_reduce": 1,
        "output-format": "json",
    }
    command = ["fio", *(f"--{name}={value}" for name, value in options.items())]
    done = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    job = json.loads(done[done.index("{") :])["jobs"][0]
    counted = job["write" if case.way.endswith("write") else "read"]
    ran = counted["runtime"] / 1e3
    return figures(counted["total_ios"], ran, (job["usr_cpu"] + job["sys_cpu"]) / 100 * job["job_runtime"] / 1e3, case)


def ratios(results: dict[str, dict[str, Any]], name: str) -> dict[str, float]:
    """Ours over fio's: by the medians, and the median of the rounds' own."""
    mine, theirs = results[f"{name}: {OURS}"], results[f"{name}: {FIO}"]
    rounds = zip(mine["seconds_by_round"], theirs["seconds_by_round"], strict=True)
    return {
        "rate": theirs["seconds"] / mine["seconds"],
        "rate_by_rounds": statistics.median(fio_s / our_s for our_s, fio_s in rounds),
        "processor": mine["processor_us"] / theirs["processor_us"],
    }


def rows(results: dict[str, dict[str, Any]], cases: dict[str, Case]) -> list[list[str]]:
    lines = []
    for name, case in cases.items():
        found = ratios(results, name)
        holds = found["rate"] >= case.wanted and found["processor"] <= PROCESSOR_RATIO_MAX
        for who in (OURS, FIO):
            result = results[f"{name}: {who}"]
            rate = common.GIB / case.transfer_bytes / result["seconds"]
            lines.append(
                [
                    name,
                    str(case.depth),
                    who,
                    f"{rate:,.0f}",
                    f"{rate * case.transfer_bytes / 1e9:.3f}",
                    f"{result['processor_us']:.2f}",
                    f"{found['rate']:.3f} (wanted {case.wanted})" if who == OURS else "",
                    f"{found['processor']:.2f} (at most {PROCESSOR_RATIO_MAX})" if who == OURS else "",
                    ("yes" if holds else "**NO**") if who == OURS else "",
                ]
            )
    return lines


def main() -> None:
    options = arguments()
    if shutil.which("fio") is None:
        sys.exit("fio is not installed")
    program = common.built("raw_io")
    options.folder.mkdir(parents=True, exist_ok=True)
    file = (options.folder / "raw-io.bin").resolve()
    cases = {name: case._replace(depth=options.depth or case.depth) for name, case in CASES.items()}
    try:
        write_file(file, options.size)
        runs = {}
        for name, case in cases.items():
            runs[f"{name}: {OURS}"] = lambda case=case: ours(program, file, case, options.seconds)
            runs[f"{name}: {FIO}"] = lambda case=case: fio(file, case, options.seconds)
        results = common.alternating(runs, options.repeats)
    finally:
        file.unlink(missing_ok=True)
    version = subprocess.run(["fio", "--version"], check=True, capture_output=True, text=True).stdout.strip()
    columns = [
        "",
        "under way",
        "",
        "a second",
        "GB/s",
        "processor µs each",
        "rate ÷ fio's",
        "processor ÷ fio's",
        "holds",
    ]
    common.write_record(
        "raw-io",
        "Reads and writes by our ring beside fio",
        options.folder,
        [
            f"One file of {common.show_bytes(options.size)}; medians of {options.repeats} rounds in turn, "
            f"{options.seconds:g} s each. {version}, io_uring, direct, one job.",
            common.table(columns, rows(results, cases)),
        ],
        {"fio": version, "cases": results, "ratios": {name: ratios(results, name) for name in cases}},
    )


if __name__ == "__main__":
    main()
