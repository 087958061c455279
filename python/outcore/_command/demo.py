"""The demonstration: two array programs over a file larger than their memory limit, forecast, run and checked.

`make demo` or `outcore demo`. Non-negative matrix factorization (4 iterations) and logistic
regression (10 steps of gradient descent) run in child processes whose memory limit the kernel enforces; forecast and
outcome are printed side by side. Plain NumPy checks every iteration of both from the one before it, in one pass over
the same file, block by block.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

import outcore as oc
from outcore import _core
from outcore._base.sizes import format_size, parse_size
from outcore._base.types import JSONObject
from outcore._command import bandwidth, confine
from outcore.errors import OutcoreError

COLUMNS, RANK = 100, 10
NMF_ITERATIONS, STEPS, STEP = 4, 10, 1e-6
BLOCK_ROWS = 1 << 14
# Both sides sum the same numbers in different orders; this is what is left of 16 digits after the iterations.
TOLERANCE = 1e-10

Real = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Spec:
    """The programs that children run, and the folder."""

    folder: str
    rows: int
    memory_limit: int

    def path(self, name: str) -> str:
        return str(Path(self.folder) / name)


# -- the two programs, as a user writes them --------------------------------------------------------------------


def nmf(X: oc.Array, W: oc.Array, H: oc.Array, iterations: int = NMF_ITERATIONS) -> tuple[oc.Array, list[oc.Array]]:
    """Multiplicative updates (Lee and Seung 2001): W ← W ∘ X Hᵀ / W H Hᵀ, H ← H ∘ Wᵀ X / Wᵀ W H.

    Returns the last W and every H.
    """
    factors = [H]
    for _ in range(iterations):
        W = W * (X @ H.T) / (W @ H @ H.T)
        H = H * (W.T @ X) / (W.T @ W @ H)
        factors.append(H)
    return W, factors


def logistic(X: oc.Array, y: oc.Array, w: oc.Array, steps: int = STEPS, step: float = STEP) -> list[oc.Array]:
    """Batch gradient descent on the logistic loss: w ← w − step · Xᵀ (σ(X w) − y). Every w."""
    weights = [w]
    for _ in range(steps):
        w = w - step * (X.T @ (1 / (1 + oc.exp(-(X @ w))) - y))
        weights.append(w)
    return weights


# -- the same in plain NumPy, of blocks of rows -------------------------------------------------------------------


def _difference(ours: Real, reference: Real) -> float:
    """The largest relative difference of any element."""
    return float(np.max(np.abs(ours - reference) / np.maximum(np.abs(reference), np.finfo(float).tiny), initial=0.0))


class NmfCheck:
    """Row i of every W needs only row i of X and the factors before, so one pass serves all products with X."""

    def __init__(self, factors: list[Real]) -> None:
        """Takes every H, the first one included."""
        self.factors = factors
        self.grams = [H @ H.T for H in factors[:-1]]
        self.numerators = [np.zeros_like(H) for H in factors[:-1]]
        self.denominators = [np.zeros_like(gram) for gram in self.grams]
        self.worst = 0.0

    def add(self, block: Real, W: Real, ours: Real) -> None:
        """Takes rows of X, of the first W and of the last one."""
        products = np.split(block @ np.concatenate(self.factors[:-1]).T, len(self.grams), axis=1)
        for k, product in enumerate(products):
            W = W * product / (W @ self.grams[k])
            self.numerators[k] += W.T @ block
            self.denominators[k] += W.T @ W
        self.worst = max(self.worst, _difference(ours, W))

    def difference(self) -> float:
        """The largest relative difference of the last W, and of each H to the one that follows from those before."""
        sums = zip(self.numerators, self.denominators, strict=True)
        for (H, after), (numerator, gram) in zip(pairwise(self.factors), sums, strict=True):
            self.worst = max(self.worst, _difference(after, H * numerator / (gram @ H)))
        return self.worst


class LogisticCheck:
    """The gradients at all weights, side by side."""

    def __init__(self, weights: list[Real], step: float = STEP) -> None:
        """Takes every w, the first one included."""
        self.weights, self.step = np.stack(weights, axis=1), step
        self.gradients = np.zeros_like(self.weights[:, :-1])

    def add(self, block: Real, y: Real) -> None:
        """Takes rows of X and their labels."""
        self.gradients += block.T @ (1 / (1 + np.exp(-(block @ self.weights[:, :-1]))) - y[:, None])

    def difference(self) -> float:
        """The largest relative difference of each w to the one that follows from the w before."""
        return _difference(self.weights[:, 1:], self.weights[:, :-1] - self.step * self.gradients)


def _rows(path: str, start: int, stop: int) -> Real:
    """Rows of an array in a file; the map of the file goes with the call, so that no more of it stays resident."""
    return np.array(np.load(path, mmap_mode="r")[start:stop])


def check(spec: Spec) -> dict[str, float]:
    """The largest relative difference of each program's results to NumPy; every block of X is read once."""
    nmf_check = NmfCheck([np.load(spec.path(f"H{k}.npy")) for k in range(NMF_ITERATIONS + 1)])
    logistic_check = LogisticCheck([np.zeros(COLUMNS)] + [np.load(spec.path(f"w{k + 1}.npy")) for k in range(STEPS)])
    ours = oc.open(spec.path("W.zarr"))
    for start in range(0, spec.rows, BLOCK_ROWS):
        stop = min(start + BLOCK_ROWS, spec.rows)
        block, W, y = (_rows(spec.path(name), start, stop) for name in ("X.npy", "W0.npy", "y.npy"))
        nmf_check.add(block, W, ours[start:stop].compute())
        logistic_check.add(block, y)
    return {"nmf": nmf_check.difference(), "logistic": logistic_check.difference()}


# -- the child: one program, or the check, under the limit --------------------------------------------------------


def _nmf_targets(spec: Spec) -> dict[str, oc.Array]:
    X, W, H = (oc.open(spec.path(name)) for name in ("X.npy", "W0.npy", "H0.npy"))
    W, factors = nmf(X, W, H)
    return {spec.path("W.zarr"): W} | {spec.path(f"H{k}.npy"): H for k, H in enumerate(factors) if k > 0}


def _logistic_targets(spec: Spec) -> dict[str, oc.Array]:
    weights = logistic(oc.open(spec.path("X.npy")), oc.open(spec.path("y.npy")), oc.zeros(COLUMNS))
    return {spec.path(f"w{k}.npy"): w for k, w in enumerate(weights) if k > 0}


PROGRAMS: dict[str, Callable[[Spec], dict[str, oc.Array]]] = {"nmf": _nmf_targets, "logistic": _logistic_targets}


def child(program: str, spec_path: str, result_path: str) -> None:
    """Explains, runs and reports one program, or checks both; the parent started this process under the limit."""
    spec = Spec(**json.loads(Path(spec_path).read_text()))
    with oc.Session(memory_limit=spec.memory_limit):
        if program == "check":
            result: JSONObject = {"differences": check(spec)}
        else:
            result = _report(PROGRAMS[program](spec))
    result["peak_resident_bytes"] = confine.peak_resident()
    Path(result_path).write_text(json.dumps(result))


def _report(targets: dict[str, oc.Array]) -> JSONObject:
    start = time.perf_counter()
    forecast = oc.explain(targets)
    planned = time.perf_counter() - start
    outcome = oc.store(targets)
    return {
        "forecast": forecast.to_dict(),
        "flops": forecast.flops,
        "table": str(forecast),
        "plan_seconds": planned,
        "outcome": {**asdict(outcome), "other": {}},
    }


# -- the parent ---------------------------------------------------------------------------------------------------


class DemoError(OutcoreError):
    """The demonstration could not run, or what came out is not what was promised."""

    code = "demo"


def _check_space(directory: Path, size: int) -> None:
    if _core.is_in_volume(str(directory)):
        raise DemoError(f"{directory} lies in a volume; what comes out is read by NumPy, which knows plain files only")
    # X, the first and last W (a tenth of X each), and labels; a twentieth on top for the file system.
    need = int(size * 1.3)
    free = shutil.disk_usage(directory).free
    if free < need:
        raise DemoError(f"{directory} has {format_size(free)} free; the demo needs {format_size(need)} (use --size)")


def make_data(spec: Spec) -> float:
    """X uniform in [0, 1), starting factors, and labels by a seeded rule, all written by outcore. Seconds taken."""
    start = time.perf_counter()
    X = oc.random.uniform((spec.rows, COLUMNS), seed=1)
    oc.store({spec.path("X.npy"): X})
    X = oc.open(spec.path("X.npy"))
    direction = np.random.default_rng(4).normal(size=COLUMNS)
    # The mean of X is ½ everywhere, so about half of the rows lie on each side.
    y = oc.astype(X @ direction > direction.sum() / 2, oc.float64)
    oc.store(
        {
            spec.path("W0.npy"): oc.random.uniform((spec.rows, RANK), seed=2),
            spec.path("H0.npy"): oc.random.uniform((RANK, COLUMNS), seed=3),
            spec.path("y.npy"): y,
        }
    )
    return time.perf_counter() - start


def _forget(path: str) -> None:
    """Asks the kernel to drop a file from the page cache, so that nothing is faster than the disk."""
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(file)


def run_confined(program: str, spec: Spec) -> JSONObject:
    """One program, or the check, in a child under the limit: its report, and what the kernel says about its memory."""
    spec_path, result_path = spec.path("spec.json"), spec.path(f"{program}.json")
    Path(spec_path).write_text(json.dumps(asdict(spec)))
    command = [sys.executable, "-m", "outcore._command.demo", program, spec_path, result_path]
    # NumPy's BLAS sees single elements or narrow blocks; its thread pools would take memory, and wait for each other.
    confined = confine.run(command, spec.memory_limit, {**os.environ, "OPENBLAS_NUM_THREADS": "1"})
    if confined.returncode != 0:
        cause = "the kernel killed it for memory" if confined.killed else f"it ended with status {confined.returncode}"
        raise DemoError(f"{program} under {format_size(spec.memory_limit)} ({confined.how}): {cause}")
    report: JSONObject = json.loads(Path(result_path).read_text())
    report |= {"how": confined.how, "group_peak_bytes": confined.peak_bytes, "killed": confined.killed}
    return report


def _judge(program: str, spec: Spec, report: JSONObject, difference: float) -> list[str]:
    """Promises that did not hold."""
    forecast, outcome = report["forecast"], report["outcome"]
    faults = [
        f"{program}: {name} forecast {forecast[name]}, counted {outcome[name]}"
        for name in ("bytes_read", "bytes_written", "peak_bytes")
        if forecast["exact"] and forecast[name] != outcome[name]
    ]
    if report["peak_resident_bytes"] > spec.memory_limit:
        faults.append(f"{program}: peak resident {report['peak_resident_bytes']} above the limit {spec.memory_limit}")
    if not difference <= TOLERANCE:
        faults.append(f"{program}: differs from NumPy by {difference:.2e}, more than {TOLERANCE:.0e}")
    return faults


def _pace(report: JSONObject, read_rate: float, product_rate: float) -> dict[str, float]:
    """Seconds the run took against the least the disk and the processor would allow."""
    outcome = report["outcome"]
    disk = (outcome["bytes_read"] + outcome["bytes_written"]) / read_rate
    processor = report["flops"] / product_rate
    return {"seconds": outcome["seconds"], "disk_seconds": disk, "processor_seconds": processor,
            "ratio": outcome["seconds"] / max(disk, processor, 1e-9)}  # fmt: skip


TITLES = {
    "nmf": f"Non-negative matrix factorization, {NMF_ITERATIONS} iterations",
    "logistic": f"Logistic regression, {STEPS} steps of gradient descent",
}


def _print_report(program: str, spec: Spec, report: JSONObject, difference: float) -> None:
    forecast, outcome = report["forecast"], report["outcome"]
    label = "exact" if forecast["exact"] else "bound"
    print(f"\n{TITLES[program]}, memory limit {format_size(spec.memory_limit)} ({report['how']})\n")
    print(report["table"])
    print(f"\n{'':<16}{f'forecast ({label})':>24}{'outcome':>24}")
    names = {"bytes_read": "bytes read", "bytes_written": "bytes written", "peak_bytes": "peak reserved"}
    for name, words in names.items():
        print(f"{words:<16}{forecast[name]:>24,}{outcome[name]:>24,}{'' if forecast[name] == outcome[name] else '  ≠'}")
    print(f"{'peak resident':<16}{f'≤ {spec.memory_limit:,}':>24}{report['peak_resident_bytes']:>24,}")
    if report["group_peak_bytes"] is not None:
        print(f"{'peak of group':<16}{f'≤ {spec.memory_limit:,}':>24}{report['group_peak_bytes']:>24,}")
    pace = report["pace"]
    bound = "disk" if pace["disk_seconds"] >= pace["processor_seconds"] else "processor"
    print(
        f"\nplanned in {report['plan_seconds']:.2f} s, ran in {pace['seconds']:.2f} s; the disk alone needs "
        f"{pace['disk_seconds']:.2f} s, the products alone {pace['processor_seconds']:.2f} s: "
        f"{pace['ratio']:.2f} × the {bound}'s time"
    )
    way = (
        "direct reads, 4 MiB, 2 threads"
        if report["disk_direct"]
        else "buffered reads: this file system takes no direct ones"
    )
    print(f"the disk reads {report['disk_bytes_per_second'] / 1e9:.2f} GB/s right now ({way})")
    print(f"largest relative difference to NumPy: {difference:.1e}")


def _run_all(spec: Spec, quiet: bool) -> JSONObject:
    with oc.config.set(memory_limit=spec.memory_limit):
        made = make_data(spec)
    size = spec.rows * COLUMNS * 8
    say = (lambda *words: None) if quiet else print
    say(f"X: {spec.rows:,} × {COLUMNS} float64, {format_size(size)}, made with factors and labels in {made:.1f} s")
    summary: JSONObject = {"rows": spec.rows, "bytes": size, "memory_limit": spec.memory_limit, "faults": []}
    reports = {}
    for program in PROGRAMS:
        _forget(spec.path("X.npy"))
        report = run_confined(program, spec)
        rate, direct = bandwidth.read_rate(spec.path("X.npy"))
        report |= {"disk_bytes_per_second": rate, "disk_direct": direct}
        reports[program] = report | {"pace": _pace(report, rate, bandwidth.product_rate())}
    start = time.perf_counter()
    differences = run_confined("check", spec)["differences"]
    checked = time.perf_counter() - start
    for program, report in reports.items():
        if not quiet:
            _print_report(program, spec, report, differences[program])
        summary["faults"] += _judge(program, spec, report, differences[program])
        summary[program] = {key: value for key, value in report.items() if key != "table"}
        summary[program]["difference"] = differences[program]
    say(f"\nNumPy's check of both took {checked:.1f} s")
    return summary


def demo(
    *,
    size: int | str = "2GiB",
    directory: str | os.PathLike[str] = "data",
    memory_limit: int | str = "512MiB",
    keep: bool = False,
    quiet: bool = False,
) -> JSONObject:
    """Runs the demonstration and returns its figures; `faults` lists the promises that did not hold.

    Makes a folder of its own inside `directory` and removes it unless `keep`. Raises DemoError when the disk is too
    small or a run fails.
    """
    total = parse_size(size)
    rows = max(1, total // (COLUMNS * 8))
    parent = Path(directory)
    existed = parent.is_dir()
    parent.mkdir(parents=True, exist_ok=True)
    try:
        _check_space(parent, total)
        folder = tempfile.mkdtemp(prefix="demo-", dir=parent)
        try:
            return _run_all(Spec(os.path.abspath(folder), rows, parse_size(memory_limit)), quiet)
        finally:
            if keep:
                print(f"kept {folder}", file=sys.stderr)
            else:
                shutil.rmtree(folder, ignore_errors=True)
    finally:
        if not existed and not any(parent.iterdir()):
            parent.rmdir()


if __name__ == "__main__":
    child(*sys.argv[1:])
