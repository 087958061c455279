"""Sparse direct solvers: outcore under several memory limits, beside MUMPS, MKL PARDISO and CHOLMOD.

    python -m benchmarks.solve [--systems 7pt:50@200MB,7pt:50,27pt:30@200MB] [--rivals mumps-ooc,pardiso-ooc,cholmod] \
        [--low-rank 1e-8,1e-5] [--rival-limit 1GiB] [--rounds 3] [--folder data/bench] [--note "what else ran"]

A system is name:size@limit, without a limit where nothing bounds it; names are the sparse ones of `solve_systems`, and
each is factorized by its kind, definite ones also with each tolerance of low rank that is given. Each run is a child
of its own, outcore's under a memory cgroup of its limit, with the page cache dropped before. Rivals run without a
limit unless one is given, for most of them end where it is below what they need. Runs alternate; figures are of the
round with the median time. Rivals that cannot be had here are left out and say so (`solve_rivals`).

The rate is that of a product of two 4096² matrices in memory, NumPy's or outcore's, whichever was faster; the physical
limit of a factorization is max(bytes read / rate of the disk + bytes written / its rate, operations / that rate).
"""

from __future__ import annotations

import argparse
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import cgroup, common, probes, solve_rivals, solve_systems

THREADS = 2
KINDS = {solve_systems.SPD: "spd", solve_systems.SYMMETRIC: "sym", solve_systems.GENERAL: "lu"}
PROBE_BYTES = 1 << 30
SYSTEMS = "7pt:50@200MB,7pt:50,27pt:30@200MB,5pt:500@200MB,elasticity:20@200MB"
RIVALS = "mumps-ooc,mumps,pardiso-ooc,cholmod"
COLUMNS = (
    *("solver", "seconds", "spread", "analysis", "copy", "factorization", "solve", "peak RSS", "read", "written"),
    *("as forecast", "entries of L", "Gflop", "Gflop/s", "÷ product's", "× limit", "residual"),
)
Report = dict[str, Any]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--systems", default=SYSTEMS, help="name:size@limit by comma")
    parser.add_argument("--rivals", default=RIVALS, help=f"by comma, of {', '.join(solve_rivals.RIVALS[:6])}; none")
    parser.add_argument("--rival-limit", type=common.parse_size, default=None, help="of each rival's memory")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ordering", default="auto", choices=("auto", "nd", "amd"), help="outcore's")
    parser.add_argument("--low-rank", default="", help="tolerances by comma, of definite systems")
    parser.add_argument("--timeout", type=float, default=3600)
    parser.add_argument("--folder", type=Path, default=solve_rivals.FOLDER)
    parser.add_argument("--note", default="", help="a sentence for the record")
    parser.add_argument("--name", default="solve", help="of the record")
    options = parser.parse_args()
    options.systems = [parsed(text) for text in options.systems.split(",")]
    options.rivals = [] if options.rivals == "none" else options.rivals.split(",")
    options.low_rank = [float(tolerance) for tolerance in options.low_rank.split(",") if tolerance]
    unknown = {name for name, _, _ in options.systems if name not in solve_systems.KINDS}
    unknown |= {name for name in options.rivals if name.partition("@")[0] not in solve_rivals.RIVALS}
    if unknown or any(name.startswith("dense") for name, _, _ in options.systems):
        parser.error(f"not a sparse system, or not a rival: {', '.join(sorted(unknown))}")
    return options


def parsed(text: str) -> tuple[str, int, int | None]:
    system, _, limit = text.partition("@")
    name, _, size = system.partition(":")
    return name, int(size), common.parse_size(limit) if limit else None


def session(limit: int | None) -> Report:
    return {"threads": THREADS} | ({} if limit is None else {"memory_limit": limit})


def ours(path: Path, limit: int | None, low_rank: float | None, options: argparse.Namespace) -> Report:
    """One run of outcore, and what the kernel saw of its process."""
    out = options.folder / "out"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    cgroup.drop_page_cache(options.folder)
    cgroup.touch_memory()
    kind = KINDS[solve_systems.KINDS[path.name.rpartition("-")[0]]]
    given = {"folder": str(path), "out": str(out), "ordering": options.ordering, "session": session(limit)}
    given |= {"kind": kind, "low_rank": low_rank}
    outcome = cgroup.run_limited("benchmarks.solve_ours:run", given, limit, options.timeout)
    shutil.rmtree(out, ignore_errors=True)
    seen = {"limited_by": outcome.limited_by, "limit_bytes": limit, "peak_rss_bytes": outcome.peak_rss_bytes}
    if outcome.reason:
        return {"failed": outcome.reason} | seen
    return outcome.value | seen


def disk_rates(folder: Path) -> dict[str, float]:
    path = folder / f"probe-{os.getpid()}.bin"
    block = os.urandom(probes.BLOCK_BYTES)
    try:
        with path.open("wb") as file:
            for _ in range(PROBE_BYTES // len(block)):
                file.write(block)
        cgroup.drop_page_cache(path)
        return {"read": probes.read_bandwidth(path), "written": probes.write_bandwidth(folder)}
    finally:
        path.unlink(missing_ok=True)


def machine_rates(folder: Path) -> dict[str, float]:
    blas = {f"{name}_NUM_THREADS": str(THREADS) for name in ("OPENBLAS", "MKL", "OMP")}
    found = cgroup.run_limited("benchmarks.solve_ours:product_rates", {"session": session(None)}, None, 600, blas)
    return disk_rates(folder) | {f"product_{name}": rate for name, rate in found.value.items()}


def best(rates: list[dict[str, float]]) -> dict[str, float]:
    most = {name: max(one[name] for one in rates) for name in rates[0]}
    return most | {"product": max(most["product_outcore"], most["product_numpy"])}


def machine_sentence(most: dict[str, float], count: int) -> str:
    """The best of so many measurements of the disk and of products."""
    return (
        f"Disk {most['read'] / 1e9:.2f} GB/s read, {most['written'] / 1e9:.2f} GB/s written; product of 4096² in "
        f"memory {most['product_numpy'] / 1e9:.0f} Gflop/s (NumPy), {most['product_outcore'] / 1e9:.0f} (outcore), "
        f"the best of {count} measurements"
    )


def physical_limit(result: Report, rates: dict[str, float]) -> float:
    disk = result["bytes_read"] / rates["read"] + result["bytes_written"] / rates["written"]
    return max(disk, result["flops"] / rates["product"])


def row(name: str, result: Report, rates: dict[str, float]) -> list[str]:
    """A line of `COLUMNS`; of outcore the bytes of the factorization, of rivals those of the whole run."""
    if result.get("failed"):
        return [name, str(result["failed"]), *[""] * (len(COLUMNS) - 2)]
    is_ours = "copy_seconds" in result
    read, written = ("bytes_read", "bytes_written") if is_ours else ("rchar", "wchar")
    seconds = [result.get(f"{part}_seconds") for part in ("analysis", "copy", "factor", "solve")]
    cells = [name, f"{result['seconds']:.2f}", f"{result['seconds_min']:.2f}–{result['seconds_max']:.2f}"]
    cells += ["–" if part is None else f"{part:.2f}" for part in seconds]
    cells += [common.show_bytes(result[part]) for part in ("peak_rss_bytes", read, written)]
    cells += [as_forecast(result), f"{result['factor_entries'] / 1e6:.1f} · 10⁶"]
    if result["flops"] is None:
        return [*cells, "–", "–", "–", "–", f"{result['residual']:.1e}"]
    rate = result["flops"] / result["factor_seconds"]
    cells += [f"{result['flops'] / 1e9:.1f}", f"{rate / 1e9:.1f}", f"{rate / rates['product']:.2f}"]
    limit = f"{result['factor_seconds'] / physical_limit(result, rates):.2f}" if is_ours else "–"
    return [*cells, limit, f"{result['residual']:.1e}"]


def as_forecast(result: Report) -> str:
    if "copy_seconds" not in result:
        return "–"
    pairs = [(result[name], result[f"forecast_{name}"]) for name in ("bytes_read", "bytes_written")]
    if all(seen == forecast for seen, forecast in pairs):
        return "exactly"
    said = " and ".join(common.show_bytes(forecast) for _, forecast in pairs)
    is_bound = result["has_bounds"] and all(seen <= forecast for seen, forecast in pairs)
    return f"at most {said}" if is_bound else f"NO: {said}"


def section(name: str, size: int, limits: list[int | None], options: argparse.Namespace) -> tuple[str, Report]:
    path = solve_systems.save(name, size, options.folder / "solve")
    if not (path / "matrix.ocs").exists():
        stored = cgroup.run_limited("benchmarks.solve_ours:store", {"folder": str(path)})
        if stored.reason:
            raise RuntimeError(stored.reason)
    rates, load = [machine_rates(options.folder)], [os.getloadavg()]

    def case(limit: int | None, low_rank: float | None) -> Callable[[], Report]:
        return lambda: ours(path, limit, low_rank, options)

    def title(limit: int | None, low_rank: float | None) -> str:
        memory = common.show_bytes(limit) if limit else "no limit"
        return f"outcore, {memory}" + (f", low rank {low_rank:g}" if low_rank else "")

    def rival(of: str) -> Callable[[], Report]:
        given: Report = {"folder": options.folder, "timeout_seconds": options.timeout}
        return lambda: solve_rivals.run_rival(of, name, size, options.rival_limit, **given)

    def probe() -> Report:
        load.append(os.getloadavg())
        rates.append(machine_rates(options.folder))
        return {"seconds": 0.0}

    tolerances = [None, *(options.low_rank if solve_systems.KINDS[name] == solve_systems.SPD else [])]
    mine = {title(limit, low_rank): case(limit, low_rank) for limit in limits for low_rank in tolerances}
    theirs = {of: rival(of) for of in options.rivals}
    results = common.alternating({"machine": probe} | mine | theirs, options.rounds)
    results.pop("machine")
    load.append(os.getloadavg())
    most = best(rates)
    head = (
        f"## {name} {size}\n\n"
        f"{machine_sentence(most, len(rates))}; load average over a minute before each, and at the end: "
        f"{', '.join(f'{one[0]:.1f}' for one in load)}."
    )
    text = head + "\n\n" + common.table(COLUMNS, [row(of, result, most) for of, result in results.items()])
    return text, {"rates": rates, "load": load, "cases": results}


def main() -> None:
    options = arguments()
    options.folder = options.folder.resolve()
    options.folder.mkdir(parents=True, exist_ok=True)
    limits: dict[tuple[str, int], list[int | None]] = {}
    for name, size, limit in options.systems:
        limits.setdefault((name, size), []).append(limit)
    sections, figures = [options.note] if options.note else [], {}
    for (name, size), of in limits.items():
        print(f"{name} {size}:", flush=True)
        text, figures[f"{name}:{size}"] = section(name, size, of, options)
        sections.append(text)
    sections.append(
        "Seconds of outcore are those of all four phases; the copy is the matrix in the order of elimination, made "
        "with the forecast. Bytes of outcore are the factorization's, whose factor is written to a file; bytes of "
        "rivals all that went through system calls. Peak RSS is of the whole process, of rivals from the analysis on, "
        "with their copy of the matrix."
    )
    common.write_record(options.name, "Sparse direct solvers", options.folder, sections, figures, ("scipy", "mkl"))


if __name__ == "__main__":
    main()
