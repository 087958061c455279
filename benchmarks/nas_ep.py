"""NAS EP: sums and counts of Gaussian pairs by the polar method. One fused pass of outcore, the two scans of TPIE's
paper (Vengroff and Vitter, 4.1.1), and what an expert writes in NumPy.

Pair j is (x₂ⱼ, x₂ⱼ₊₁) of the sequence that `lcg` gives; both are scaled to (−1, 1). Where t = x² + y² ≤ 1 it yields
X = x·√(−2 ln t / t) and Y alike; the benchmark asks for ΣX, ΣY and how many pairs have ⌊max(|X|, |Y|)⌋ = 0 … 9.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import lcg

SEED = 271828183
BATCH_BITS = 16
ANNULI = 10
TOLERANCE = 1e-8
LOG2_PAIRS = {"S": 24, "W": 25, "A": 28, "B": 30, "C": 32}
SUMS = {
    "S": (-3.247834652034740e3, -6.958407078382297e3),
    "W": (-2.863319731645753e3, -6.320053679109499e3),
    "A": (-4.295875165629892e3, -1.580732573678431e4),
    "B": (4.033815542441498e4, -2.660669192809235e4),
    "C": (4.764367927995374e4, -8.084072988043731e4),
}


def error(size_class: str, sums: tuple[float, float]) -> float:
    """The larger relative difference of the two sums from the published ones."""
    wanted = np.array(SUMS[size_class])
    return float(np.max(np.abs((np.array(sums) - wanted) / wanted)))  # NaN where either sum is


def verified(size_class: str, value: Mapping[str, Any]) -> bool:
    """NPB's test of the sums, and that every accepted pair is in one annulus."""
    return error(size_class, value["sums"]) <= TOLERANCE and sum(value["counts"]) == value["accepted"]


# -- outcore ------------------------------------------------------------------------------------------------------


def statistics(x: Any, y: Any) -> list[Any]:
    """Lazy ΣX, ΣY, the accepted pairs, and how many of these reach 1, 2 … 9, from uniforms in (−1, 1)."""
    import outcore as oc

    t = x * x + y * y
    accepted = t <= 1.0
    # Outside the circle ln t is positive and the root NaN, which `where` drops.
    factor = oc.where(accepted, oc.sqrt(-2.0 * oc.log(t) / t), 0.0)
    gauss_x, gauss_y = x * factor, y * factor
    reach = oc.maximum(oc.abs(gauss_x), oc.abs(gauss_y))
    beyond = [oc.count_nonzero(reach >= bound) for bound in range(1, ANNULI)]
    return [oc.sum(gauss_x), oc.sum(gauss_y), oc.count_nonzero(accepted), *beyond]


def result(values: Any) -> dict[str, Any]:
    """The values of `statistics` as the benchmark states them."""
    sums = (float(values[0]), float(values[1]))
    beyond = [int(value) for value in values[2:]] + [0]
    counts = [more - fewer for more, fewer in itertools.pairwise(beyond)]
    return {"sums": sums, "accepted": beyond[0], "counts": counts}


def scaled(numbers: Any) -> Any:
    """46-bit states as uniforms in (−1, 1); every step is exact in float64."""
    import outcore as oc

    return oc.astype(numbers & lcg.MASK, oc.float64) * 2.0**-45 - 1.0


def outer(rows: Any, columns: Any) -> Any:
    import outcore as oc

    return oc.asarray(rows)[:, None] * oc.asarray(columns)[None, :]


def fused(size_class: str, session: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Generator, polar method and all twelve reductions in one pass over nothing that is stored."""
    import outcore as oc

    rows, columns = 1 << (LOG2_PAIRS[size_class] - BATCH_BITS), 1 << BATCH_BITS
    with oc.Session(progress=False, **(session or {})) as current:
        started = time.perf_counter()
        first = outer(*lcg.tables(SEED, rows, columns, stride=2))
        lazy = statistics(scaled(first), scaled(first * lcg.MULTIPLIER))
        told = oc.explain(*lazy)
        values = oc.compute(*lazy)
        seconds = time.perf_counter() - started
        counted = current.counters()
    return result(values) | {"seconds": seconds} | compared([told], counted)


def two_scans(size_class: str, out: str, session: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """One scan writes the uniforms in the order of the sequence, the other reads them."""
    import outcore as oc

    rows, columns = 1 << (LOG2_PAIRS[size_class] - BATCH_BITS), 2 << BATCH_BITS
    path = f"{out}/uniforms.npy"
    with oc.Session(progress=False, **(session or {})) as current:
        started = time.perf_counter()
        target = {path: scaled(outer(*lcg.tables(SEED, rows, columns)))}
        written = oc.explain(target, overwrite=True)
        oc.store(target, overwrite=True)
        uniforms = oc.open(path)
        lazy = statistics(uniforms[:, 0::2], uniforms[:, 1::2])
        told = oc.explain(*lazy)
        values = oc.compute(*lazy)
        seconds = time.perf_counter() - started
        counted = current.counters()
    Path(path).unlink()
    return result(values) | {"seconds": seconds} | compared([written, told], counted)


def compared(told: list[Any], counted: Mapping[str, int]) -> dict[str, Any]:
    """Bytes and peak as counted, and whether the forecasts of the programs, run in turn, said just that."""
    forecast = {name: sum(getattr(one, name) for one in told) for name in ("bytes_read", "bytes_written")}
    forecast["peak_bytes"] = max(one.peak_bytes for one in told)
    actual = {name: counted[name] for name in forecast}
    return actual | {"passes": sum(len(one.passes) for one in told), "as_forecast": forecast == actual}


# -- NumPy --------------------------------------------------------------------------------------------------------


def expert(size_class: str, threads: int = 2, block: int = 1 << 15) -> dict[str, Any]:
    """Blocks that stay in the cache, buffers reused, logarithms of accepted pairs only, a block row per thread at a
    time (NumPy lets go of the interpreter inside each call).
    """
    started = time.perf_counter()
    rows, columns = lcg.tables(SEED, (1 << LOG2_PAIRS[size_class]) // block, block, stride=2)
    with ThreadPoolExecutor(threads) as pool:
        parts = list(pool.map(lambda part: _expert_rows(part, columns), np.array_split(rows, threads)))
    total_x, total_y = (sum(part[place] for part in parts) for place in (0, 1))
    counts = np.sum([part[2] for part in parts], axis=0)
    return {
        "sums": (float(total_x), float(total_y)),
        "accepted": int(counts.sum()),
        "counts": counts.tolist(),
        "seconds": time.perf_counter() - started,
    }


def _expert_rows(rows: Any, columns: Any) -> tuple[float, float, Any]:
    state = np.empty(columns.size, np.uint64)
    x, y, t, square = (np.empty(columns.size) for _ in range(4))
    total_x = total_y = 0.0
    counts = np.zeros(ANNULI, np.int64)
    for row in rows:
        np.multiply(columns, row, out=state)
        _uniforms(state, x)
        np.multiply(state, np.uint64(lcg.MULTIPLIER), out=state)
        _uniforms(state, y)
        np.multiply(x, x, out=t)
        np.multiply(y, y, out=square)
        np.add(t, square, out=t)
        places = np.flatnonzero(t <= 1.0)
        near, gauss_x, gauss_y = t[places], x[places], y[places]
        factor = np.log(near)
        factor *= -2.0
        factor /= near
        np.sqrt(factor, out=factor)
        gauss_x *= factor
        gauss_y *= factor
        total_x += gauss_x.sum()
        total_y += gauss_y.sum()
        reach = np.maximum(np.abs(gauss_x), np.abs(gauss_y))
        counts += np.bincount(reach.astype(np.intp), minlength=ANNULI)
    return total_x, total_y, counts


def _uniforms(state: Any, into: Any) -> None:
    np.bitwise_and(state, np.uint64(lcg.MASK), out=state)
    np.multiply(state, 2.0**-45, out=into)
    np.subtract(into, 1.0, out=into)
