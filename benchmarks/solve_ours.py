"""The solver benchmark's systems through outcore, in a child under the limit."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import probes
from benchmarks.solve_runs import csr

SIDE = 4096  # of the product whose rate is the machine's
COUNTED = ("bytes_read", "bytes_written")


def store(folder: str) -> None:
    """Leaves `matrix.ocs` beside the arrays that the rivals read."""
    import scipy.sparse

    import outcore as oc

    path = Path(folder)
    indptr, indices, data = csr(path, "full")
    rows = len(indptr) - 1
    oc.sparse.from_scipy(scipy.sparse.csr_matrix((data, indices, indptr), shape=(rows, rows)), path / "matrix.ocs")


def run(
    folder: str,
    out: str,
    kind: Any = "spd",
    ordering: Any = "auto",
    low_rank: float | None = None,
    session: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Seconds of each phase, the forecast of the factorization beside what was counted, and the scaled residual.

    The copy of the matrix in the order of elimination is made by `explain`; the forecast is of what follows it.
    """
    import outcore as oc

    path, seconds = Path(folder), {}

    @contextmanager
    def phase(name: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        seconds[f"{name}_seconds"] = time.perf_counter() - started

    with oc.Session(progress=False, **(session or {})) as current:
        matrix, b = oc.sparse.open(path / "matrix.ocs"), np.load(path / "b.npy")
        with phase("analysis"):
            factorization = oc.sparse.linalg.analyze(matrix, kind, ordering=ordering, low_rank=low_rank)
        with phase("copy"):
            said = factorization.explain()
        with phase("factor"), oc.profile() as seen:
            factorization.factorize(f"{out}/factor.ocf")
        before = current.counters()
        with phase("solve"):
            factorization.solve(b)
        after = current.counters()
    forecast = {f"forecast_{name}": getattr(said.plan, name) for name in COUNTED}
    counted = {name: getattr(seen, name) for name in COUNTED}
    solved = {f"solve_{name}": after[name] - before[name] for name in COUNTED}
    told = {
        "seconds": sum(seconds.values()),
        "bytes_spilled": said.plan.bytes_spilled,
        "peak_reserved_bytes": said.plan.peak_bytes,
        "factor_entries": said.factor_entries,
        "factor_bytes": factorization.nbytes,
        "has_bounds": not said.plan.exact,
        "flops": said.operations,
        "largest_front": said.largest_front,
        "residual": factorization.residual,
        "delayed": factorization.delayed,
        "perturbed": factorization.perturbed,
    }
    return seconds | told | forecast | counted | solved


def product_rates(session: Mapping[str, Any] | None = None) -> dict[str, float]:
    """Flops per second of a product in memory: NumPy's, and outcore's."""
    import outcore as oc

    random = np.random.default_rng(0)
    times = []
    with oc.Session(progress=False, **(session or {})):
        for _ in range(3):  # other numbers each time: a product that was computed is kept
            a, b = oc.asarray(random.random((SIDE, SIDE))), oc.asarray(random.random((SIDE, SIDE)))
            started = time.perf_counter()
            oc.compute(a @ b)
            times.append(time.perf_counter() - started)
    return {"outcore": 2 * SIDE**3 / min(times), "numpy": probes.gemm_peak(SIDE, 3)}
