"""The tables of TilePACK (S. Kim 2023) at 1/16 of their size: its policies beside ours.

    python -m benchmarks.tilepack [--scale 16] [--forecast-only] [--only nmf-4] [--folder data/bench]

The thesis ran X of 8 to 64 GB with a pool of 28 GB, and X of 8 GB with pools of 7 to 28 GB. `clean-first-lru` and
`consumer-count` run its plan: no rewriting, so W @ H is an N×100 temporary and every product sweeps X by itself. With
--forecast-only nothing runs but the planner, on sparse files: the forecast is exact, so the bytes are the same.

Thesis programs start from matrices in memory and leave W and H there; ours read W from disk and write W and H to it.
Reads and writes below are without these (`W, H` column), so that they can stand beside the thesis's.
"""

from __future__ import annotations

import argparse
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import cgroup, common, data

TOLERANCE = 0.25
HOUSEKEEPING = 512 * common.MIB  # interpreter, libraries and plan: not the pool's
PROGRAMS = {"nmf-4": ("nmf", 4), "nmf-7": ("nmf", 7), "logistic-10": ("logistic", 10)}
THESIS_X_GB = (8, 16, 32, 64)
THESIS_POOLS_GB = (7, 14, 28)
THESIS_POOL_GB = 28
# GB at full scale for X of 8, 16, 32 and 64 GB with the pool of 28 GB: (read, written).
THESIS = {
    ("nmf-4", "clean-first-lru"): ((43, 130, 323, 770), (15, 66, 150, 331)),
    ("nmf-4", "consumer-count"): ((8, 46, 322, 742), (0, 0, 60, 203)),
    ("nmf-7", "clean-first-lru"): ((90, 227, 566, 1347), (49, 129, 285, 600)),
    ("nmf-7", "consumer-count"): ((8, 88, 565, 1300), (0, 0, 110, 363)),
    ("logistic-10", "clean-first-lru"): ((8, 16, 640, 1280), (0, 0, 0, 0)),
    ("logistic-10", "consumer-count"): ((8, 16, 640, 1280), (0, 0, 0, 0)),
}
# Why the cells farthest off differ.
EXPLAINED = """\
**The cells farthest off.** The writes of `consumer-count` at X = 32 (0.71 to 0.75): the temporary W @ H does not fit
the pool of 28, and its overflow is written once per iteration. Here that overflow is about 11, since once the clean
tiles of X have left, all of the pool beside the tiles at work holds W @ H. The thesis writes 15, as if about 4 more
of its pool were held by something else while W @ H is made; what that is, the thesis does not say. Its reads differ
by 4 % in the same direction. At X = 64, where the overflow is most of the temporary, the two agree within 3 %."""
# What outcore's default may read and write together, GB-equivalents, without initial W and final W and H.
WANTED = {"nmf-4": (8, 17, 62, 210), "logistic-10": (8, 16, 85, 415)}
ROWS: dict[str, dict[str, Any] | None] = {
    "clean-first-lru": {"policy": "clean-first-lru", "rewrites": {"all": False}},
    "consumer-count": {"policy": "consumer-count", "rewrites": {"all": False}},
    "outcore": {},
    "np.memmap": None,
}


@dataclass(frozen=True)
class Setting:
    """One column group: a program at one size and one pool, in the thesis's GB."""

    program: str
    x_gb: int
    pool_gb: int
    scale: int

    @property
    def x_bytes(self) -> int:
        return self.x_gb * common.GIB // self.scale

    @property
    def pool_bytes(self) -> int:
        return self.pool_gb * common.GIB // self.scale

    def thesis(self, row: str) -> tuple[int, int] | None:
        known = THESIS.get((self.program, row))
        if known is None or self.pool_gb != THESIS_POOL_GB:
            return None
        place = THESIS_X_GB.index(self.x_gb)
        return known[0][place], known[1][place]

    def wanted(self) -> int | None:
        if self.program not in WANTED or self.pool_gb != THESIS_POOL_GB:
            return None
        return WANTED[self.program][THESIS_X_GB.index(self.x_gb)]

    def scaled(self, count: float) -> float:
        return count / common.GIB * self.scale

    def ends(self) -> tuple[int, int]:
        """Bytes of initial W, H or labels read, and of final results written."""
        rows = self.x_bytes // (8 * data.COLUMNS)
        if self.program.startswith("nmf"):
            both = 8 * data.FACTORS * (rows + data.COLUMNS)
            return both, both
        return 8 * rows, 8 * data.COLUMNS


def settings(scale: int, only: str | None) -> list[Setting]:
    programs = [only] if only else list(PROGRAMS)
    by_size = [Setting(program, x, THESIS_POOL_GB, scale) for program in programs for x in THESIS_X_GB]
    by_pool = [Setting(program, THESIS_X_GB[0], pool, scale) for program in programs for pool in THESIS_POOLS_GB[:-1]]
    return by_size + by_pool


def measure(setting: Setting, row: str, options: argparse.Namespace) -> dict[str, Any]:
    program, iterations = PROGRAMS[setting.program]
    files = data.factorization(options.folder, setting.x_bytes, sparse=options.forecast_only)
    inputs = {name: files[name] for name in (("X", "W0", "H0") if program == "nmf" else ("X", "y"))}
    out = options.folder / "out"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    choice = ROWS[row]
    if choice is None:
        return (
            {"failed": "not run"}
            if options.forecast_only
            else measure_memmap(setting, program, inputs, out, iterations, options.timeout)
        )
    limits = {"memory_limit": setting.pool_bytes + HOUSEKEEPING, "pool_limit": setting.pool_bytes, "threads": 2}
    given = {"program": program, "inputs": inputs, "out": str(out), "iterations": iterations}
    given["session"] = limits | choice
    told = cgroup.run_limited("benchmarks.ours:forecast", given)
    if told.reason:
        return {"failed": told.reason}
    kept = ("bytes_read", "bytes_written", "bytes_spilled", "bytes_temporary", "bytes_discarded", "peak_bytes", "tasks")
    found = {name: told.value.get(name) for name in kept}
    if options.forecast_only:
        return found
    cgroup.drop_page_cache(options.folder)
    outcome = cgroup.run_limited("benchmarks.ours:run", given, setting.pool_bytes + HOUSEKEEPING)
    if outcome.reason:
        return found | {"failed": outcome.reason}
    same = all(outcome.value[name] == found[name] for name in ("bytes_read", "bytes_written", "peak_bytes"))
    return found | {"seconds": outcome.value["seconds"], "as_forecast": same}


def measure_memmap(
    setting: Setting, program: str, inputs: dict[str, str], out: Path, iterations: int, timeout: float
) -> dict[str, Any]:
    """The formulas on memory maps in a cgroup of the pool's size; the kernel's page cache is the pool."""
    cgroup.drop_page_cache(out.parent)
    given = inputs | {"out": str(out), "iterations": iterations}
    outcome = cgroup.run_limited(f"benchmarks.rivals:{program}_memmap", given, setting.pool_bytes, timeout)
    if outcome.reason:
        return {"failed": outcome.reason}
    moved = {"bytes_read": outcome.io["read_bytes"], "bytes_written": outcome.io["write_bytes"]}
    return moved | {"seconds": outcome.value["seconds"], "limited_by": outcome.limited_by}


def beside(setting: Setting, found: float, told: int | None) -> str:
    """A scaled figure, the thesis's, and their ratio, marked where it is more than a quarter off."""
    here = setting.scaled(max(found, 0))
    if told is None:
        return f"{here:.1f}"
    if told == 0:
        return f"{here:.1f} / 0" + (" ⚑" if here >= 0.5 else "")
    ratio = here / told
    return f"{here:.1f} / {told} = {ratio:.2f}" + (" ⚑" if abs(ratio - 1) > TOLERANCE else "")


def line(setting: Setting, row: str, found: dict[str, Any]) -> list[str]:
    head = [f"{setting.x_gb}", f"{setting.pool_gb}", row]
    if found.get("failed"):
        return [*head, found["failed"], "", "", "", "", ""]
    read_ends, written_ends = setting.ends()
    read, written = found["bytes_read"] - read_ends, found["bytes_written"] - written_ends
    thesis = setting.thesis(row)
    total = ""
    if row == "outcore" and (wanted := setting.wanted()) is not None:
        moved = setting.scaled(read + written)
        total = f"{moved:.1f} ≤ {wanted}" + (" ⚑" if round(moved) > wanted else "")
    known = [
        f"{setting.scaled(found[name]):.1f}" if found.get(name) is not None else "–"
        for name in ("bytes_temporary", "bytes_discarded")
    ]
    seconds = f"{found['seconds']:.1f}" if "seconds" in found else "–"
    reads = beside(setting, read, thesis[0] if thesis else None)
    writes = beside(setting, written, thesis[1] if thesis else None)
    return [
        *head,
        *known,
        reads,
        writes,
        total,
        seconds + (" ⚑ not as forecast" if not found.get("as_forecast", True) else ""),
    ]


def section(program: str, results: list[tuple[Setting, str, dict[str, Any]]]) -> str:
    columns = ["X", "pool", "case", "temporary", "discarded", "read / thesis", "written / thesis", "wanted", "seconds"]
    lines = [line(setting, row, found) for setting, row, found in results if setting.program == program]
    return f"## {program}\n\n" + common.table(columns, lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--scale", type=int, default=16, help="16, or 8 for twice the size")
    parser.add_argument("--forecast-only", action="store_true", help="plan only, on sparse files; takes seconds")
    parser.add_argument("--only", choices=PROGRAMS, default=None)
    parser.add_argument("--rows", default="", help="only these rows, by comma")
    parser.add_argument("--timeout", type=float, default=1800, help="seconds after which np.memmap is given up")
    parser.add_argument("--folder", type=Path, default=Path("data/bench"))
    options = parser.parse_args()
    options.folder = options.folder.resolve()
    options.folder.mkdir(parents=True, exist_ok=True)
    rows = [row for row in ROWS if not options.rows or row in options.rows.split(",")]
    results = []
    for setting in settings(options.scale, options.only):
        for row in rows:
            found = measure(setting, row, options)
            results.append((setting, row, found))
            print("  ".join(line(setting, row, found)), flush=True)
    head = (
        f"Scale 1/{options.scale}; every size in the thesis's GB (bytes / GiB × {options.scale}), without initial and "
        f"final W and H. Left the figure here, right the thesis's; ⚑ marks what is more than {TOLERANCE:.0%} off or "
        "over the mark." + (" Forecast only: no run, no times." if options.forecast_only else "")
    )
    programs = [options.only] if options.only else list(PROGRAMS)
    figures = [
        {"program": setting.program, "x_gb": setting.x_gb, "pool_gb": setting.pool_gb, "case": row} | found
        for setting, row, found in results
    ]
    shutil.rmtree(options.folder / "out", ignore_errors=True)
    name = f"tilepack-{options.scale}" + ("-forecast" if options.forecast_only else "")
    sections = [head, *(section(program, results) for program in programs), EXPLAINED]
    common.write_record(name, "The thesis's tables, scaled", options.folder, sections, {"cells": figures})


if __name__ == "__main__":
    main()
