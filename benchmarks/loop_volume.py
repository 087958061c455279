"""Loop programs on a volume of eight directories, really run: counters beside forecasts, and bytes by directory.

The directories are on one disk, so seconds say nothing of eight disks; bytes and their shares do.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import outcore as oc
from benchmarks import cgroup, common
from benchmarks.loop_patterns import LoopCase, cases
from benchmarks.loop_time import Machine

ORDERS: dict[str, dict[str, bool]] = {"default": {}, "of the text": {"all": False}}


def made_volume(folder: Path, disks: int = 8) -> Path:
    """A new volume, with the layout and blocks that volumes have by default."""
    shutil.rmtree(folder, ignore_errors=True)
    members = [folder / f"disk{number}" for number in range(disks)]
    for member in members:
        member.mkdir(parents=True)
    home = folder / "home"
    command = [sys.executable, "-m", "outcore", "volume", "create", home, *members]
    subprocess.run([str(part) for part in command], check=True, capture_output=True)
    return home


def on_volume(case: LoopCase, folder: Path, pool: int, rewrites: dict[str, bool]) -> dict[str, Any]:
    """A run with inputs, results and scratch on a volume: bytes forecast and counted, and bytes of each directory."""
    home = made_volume(folder)
    settings: dict[str, Any] = {"threads": Machine().threads, "scratch": [str(home)], "progress": False}
    with oc.Session(pool_limit=pool, memory_limit="16GiB", rewrites=rewrites, **settings):
        paths = [home / f"{number}.npy" for number in range(len(case.arrays))]
        oc.store({path: oc.ones(shape, dtype=kind) for path, (shape, kind) in zip(paths, case.arrays, strict=True)})
        oc.clear()
        results = case.program(*map(oc.open, paths), *case.others)
        results = results if isinstance(results, tuple) else (results,)
        targets = {home / f"out{number}.npy": result for number, result in enumerate(results)}
        said = oc.explain(targets, overwrite=True)
        cgroup.drop_page_cache(folder)
        begun = time.perf_counter()
        with oc.profile() as seen:
            outcome = oc.store(targets, overwrite=True)
        seconds = time.perf_counter() - begun
    shutil.rmtree(folder)
    return {
        "order": said.order,
        "forecast": [said.bytes_read, said.bytes_written],
        "counted": [outcome.bytes_read, outcome.bytes_written],
        "seconds": seconds,
        "disks": [disk["bytes_read"] + disk["bytes_written"] for disk in seen.disks],
    }


def is_exact(run: dict[str, Any]) -> bool:
    return bool(run["forecast"] == run["counted"])


def runs(names: tuple[str, ...], scale: int, pool: int, folder: Path) -> dict[str, dict[str, Any]]:
    """All programs, in the default order and in that of the text."""
    return {
        name: {order: on_volume(cases(scale)[name], folder, pool, flags) for order, flags in ORDERS.items()}
        for name in names
    }


def counted(all_runs: dict[str, dict[str, Any]]) -> str:
    """The table of the runs."""
    rows = []
    for name, by_order in all_runs.items():
        for title, run in by_order.items():
            moved = common.show_bytes(sum(run["counted"]))
            shares = [disk / (sum(run["disks"]) or 1) for disk in run["disks"]]
            spread = f"{100 * min(shares):.1f} – {100 * max(shares):.1f} %"
            exact = "as forecast" if is_exact(run) else f"NOT as forecast, {run['forecast']}"
            rows.append([name, f"{title} ({run['order']})", moved, exact, spread, f"{run['seconds']:.1f}"])
    return common.table(["program", "order", "moved", "counters", "share of a directory", "seconds, one disk"], rows)
