"""The demonstration: two array programs over a file larger than their memory limit, forecast, run and checked.

`make demo` or `outcore demo`. Non-negative matrix factorization (4 iterations) and logistic
regression (10 steps of gradient descent) run in child processes whose memory limit the kernel enforces; forecast and
outcome are printed side by side, results are held against plain NumPy streamed over the same file.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

import outcore as oc
from outcore import _core
from outcore._base.sizes import format_size, parse_size
from outcore._base.types import JSONObject
from outcore._command import bandwidth, confine
from outcore._lazy.array import Array
from outcore.errors import OutcoreError

COLUMNS, RANK = 100, 10
NMF_ITERATIONS, STEPS, STEP = 4, 10, 1e-6
BLOCK_ROWS = 1 << 15
# Both sides sum the same numbers in different orders; this is what is left of 16 digits after the iterations.
TOLERANCE = 1e-10

Real = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Spec:
    """The programs that the children run, and their folder."""

    folder: str
    rows: int
    memory_limit: int

    def path(self, name: str) -> str:
        return str(Path(self.folder) / name)


# -- the two programs, as a user writes them --------------------------------------------------------------------


def nmf(X: Array, W: Array, H: Array, iterations: int = NMF_ITERATIONS) -> tuple[Array, Array]:
    """Multiplicative updates (Lee and Seung 2001): W ← W ∘ X Hᵀ / W H Hᵀ, H ← H ∘ Wᵀ X / Wᵀ W H."""
    for _ in range(iterations):
        W = W * (X @ H.T) / (W @ H @ H.T)
        H = H * (W.T @ X) / (W.T @ W @ H)
    return W, H


def logistic(X: Array, y: Array, w: Array, steps: int = STEPS, step: float = STEP) -> Array:
    """Batch gradient descent on the logistic loss: w ← w − step · Xᵀ (σ(X w) − y)."""
    for _ in range(steps):
        w = w - step * (X.T @ (1 / (1 + oc.exp(-(X @ w))) - y))
    return w


# -- the same in plain NumPy, one pass over X per iteration -----------------------------------------------------


def _row_blocks(rows: int) -> Iterator[slice]:
    for start in range(0, rows, BLOCK_ROWS):
        yield slice(start, min(start + BLOCK_ROWS, rows))


def nmf_reference(X: Real, W: Real, H: Real, iterations: int = NMF_ITERATIONS) -> tuple[Real, Real]:
    """Row i of the new W needs only row i of X, so one pass serves both products with X."""
    W = W.copy()
    for _ in range(iterations):
        gram_h, numerator, gram_w = H @ H.T, np.zeros_like(H), np.zeros((H.shape[0], H.shape[0]))
        for rows in _row_blocks(X.shape[0]):
            block = np.ascontiguousarray(X[rows])
            W[rows] = W[rows] * (block @ H.T) / (W[rows] @ gram_h)
            numerator += W[rows].T @ block
            gram_w += W[rows].T @ W[rows]
        H = H * numerator / (gram_w @ H)
    return W, H


def logistic_reference(X: Real, y: Real, steps: int = STEPS, step: float = STEP) -> Real:
    w = np.zeros(X.shape[1])
    for _ in range(steps):
        gradient = np.zeros_like(w)
        for rows in _row_blocks(X.shape[0]):
            block = np.ascontiguousarray(X[rows])
            gradient += block.T @ (1 / (1 + np.exp(-(block @ w))) - y[rows])
        w = w - step * gradient
    return w


# -- the child: one program under the limit ----------------------------------------------------------------------


def _nmf_targets(spec: Spec) -> dict[str, oc.Array]:
    X, W, H = (oc.open(spec.path(name)) for name in ("X.npy", "W0.npy", "H0.npy"))
    W, H = nmf(X, W, H)
    return {spec.path("W.zarr"): W, spec.path("H.npy"): H}


def _logistic_targets(spec: Spec) -> dict[str, oc.Array]:
    w = logistic(oc.open(spec.path("X.npy")), oc.open(spec.path("y.npy")), oc.zeros(COLUMNS))
    return {spec.path("w.npy"): w}


PROGRAMS: dict[str, Callable[[Spec], dict[str, oc.Array]]] = {"nmf": _nmf_targets, "logistic": _logistic_targets}


def child(program: str, spec_path: str, result_path: str) -> None:
    """Explains, runs and reports one program; the parent started this process under the limit."""
    spec = Spec(**json.loads(Path(spec_path).read_text()))
    with oc.Session(memory_limit=spec.memory_limit):
        targets = PROGRAMS[program](spec)
        start = time.perf_counter()
        forecast = oc.explain(targets)
        planned = time.perf_counter() - start
        outcome = oc.store(targets)
    result = {
        "forecast": forecast.to_dict(),
        "flops": forecast.flops,
        "table": str(forecast),
        "plan_seconds": planned,
        "outcome": {**asdict(outcome), "other": {}},
        "peak_resident_bytes": confine.peak_resident(),
    }
    Path(result_path).write_text(json.dumps(result))


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
    """One program in a child under the limit: its report, and what the kernel says about its memory."""
    _forget(spec.path("X.npy"))
    spec_path, result_path = spec.path("spec.json"), spec.path(f"{program}.json")
    Path(spec_path).write_text(json.dumps(asdict(spec)))
    command = [sys.executable, "-m", "outcore._command.demo", program, spec_path, result_path]
    # NumPy's BLAS only ever sees single elements here; its thread pools would take memory for nothing.
    confined = confine.run(command, spec.memory_limit, {**os.environ, "OPENBLAS_NUM_THREADS": "1"})
    if confined.returncode != 0:
        cause = "the kernel killed it for memory" if confined.killed else f"it ended with status {confined.returncode}"
        raise DemoError(f"{program} under {format_size(spec.memory_limit)} ({confined.how}): {cause}")
    report: JSONObject = json.loads(Path(result_path).read_text())
    report |= {"how": confined.how, "group_peak_bytes": confined.peak_bytes, "killed": confined.killed}
    return report


def _difference(ours: Real, reference: Real) -> float:
    """The largest relative difference of any element."""
    return float(np.max(np.abs(ours - reference) / np.maximum(np.abs(reference), np.finfo(float).tiny), initial=0.0))


def check_nmf(spec: Spec) -> float:
    """The largest relative difference of W and H to streamed NumPy, over all their elements."""
    X = np.load(spec.path("X.npy"), mmap_mode="r")
    W, H = nmf_reference(X, np.load(spec.path("W0.npy")), np.load(spec.path("H0.npy")))
    ours = oc.open(spec.path("W.zarr"))
    worst = _difference(np.load(spec.path("H.npy")), H)
    step = BLOCK_ROWS * 16
    for start in range(0, spec.rows, step):
        worst = max(worst, _difference(ours[start : start + step].compute(), W[start : start + step]))
    return worst


def check_logistic(spec: Spec) -> float:
    """The largest relative difference of w to streamed NumPy."""
    X = np.load(spec.path("X.npy"), mmap_mode="r")
    return _difference(np.load(spec.path("w.npy")), logistic_reference(X, np.load(spec.path("y.npy"))))


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


def _print_report(title: str, spec: Spec, report: JSONObject, difference: float, pace: dict[str, float]) -> None:
    forecast, outcome = report["forecast"], report["outcome"]
    label = "exact" if forecast["exact"] else "bound"
    print(f"\n{title}, memory limit {format_size(spec.memory_limit)} ({report['how']})\n")
    print(report["table"])
    print(f"\n{'':<16}{f'forecast ({label})':>24}{'outcome':>24}")
    names = {"bytes_read": "bytes read", "bytes_written": "bytes written", "peak_bytes": "peak reserved"}
    for name, words in names.items():
        print(f"{words:<16}{forecast[name]:>24,}{outcome[name]:>24,}{'' if forecast[name] == outcome[name] else '  ≠'}")
    print(f"{'peak resident':<16}{f'≤ {spec.memory_limit:,}':>24}{report['peak_resident_bytes']:>24,}")
    if report["group_peak_bytes"] is not None:
        print(f"{'peak of group':<16}{f'≤ {spec.memory_limit:,}':>24}{report['group_peak_bytes']:>24,}")
    bound = "disk" if pace["disk_seconds"] >= pace["processor_seconds"] else "processor"
    print(
        f"\nplanned in {report['plan_seconds']:.2f} s, ran in {pace['seconds']:.2f} s; the disk alone needs "
        f"{pace['disk_seconds']:.2f} s, the products alone {pace['processor_seconds']:.2f} s: "
        f"{pace['ratio']:.2f} × the {bound}'s time"
    )
    print(f"largest relative difference to NumPy: {difference:.1e}")


def _run_all(spec: Spec, quiet: bool) -> JSONObject:
    # Only while nothing else is resident here: the check below maps all of X into this process.
    with oc.config.set(memory_limit=spec.memory_limit):
        made = make_data(spec)
    size = spec.rows * COLUMNS * 8
    say = (lambda *words: None) if quiet else print
    say(f"X: {spec.rows:,} × {COLUMNS} float64, {format_size(size)}, made with factors and labels in {made:.1f} s")
    summary: JSONObject = {"rows": spec.rows, "bytes": size, "memory_limit": spec.memory_limit, "faults": []}
    titles = {
        "nmf": ("Non-negative matrix factorization, 4 iterations", check_nmf),
        "logistic": ("Logistic regression, 10 steps of gradient descent", check_logistic),
    }
    for program, (title, check) in titles.items():
        report = run_confined(program, spec)
        rate, direct = bandwidth.read_rate(spec.path("X.npy"))
        pace = _pace(report, rate, bandwidth.product_rate())
        start = time.perf_counter()
        difference = check(spec)
        checked = time.perf_counter() - start
        if not quiet:
            _print_report(title, spec, report, difference, pace)
            way = (
                "direct reads, 4 MiB, 2 threads" if direct else "buffered reads: this file system takes no direct ones"
            )
            print(f"the disk reads {rate / 1e9:.2f} GB/s right now ({way}); NumPy's check took {checked:.1f} s")
        summary["faults"] += _judge(program, spec, report, difference)
        summary[program] = {key: value for key, value in report.items() if key != "table"} | {
            "difference": difference, "disk_bytes_per_second": rate, "disk_direct": direct, "pace": pace,
        }  # fmt: skip
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
