"""NAS CG, and SMOOTH of TPIE's paper (4.3): products with a sparse matrix on disk, and SciPy's with it in memory.

CG: inverse power iterations, each of 25 steps of conjugate gradients; zeta = shift + 1 / x·z must be the published one.
SMOOTH: the matrix of a grid whose points touch 27, themselves included, times a vector, and times the result, ten
times over. No answer is published: the result is held against sums of slices of an array in memory, without a matrix.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

Numbers = Any
STEPS, NEAR = 25, 1e-10
# Points along an edge: 27 entries each, of a matrix of that many rows cubed.
GRID = {"S": 16, "W": 32, "A": 64, "B": 102, "C": 161}
ITERATIONS, NEIGHBOUR = 10, -1.0 / 27


def session_of(given: Mapping[str, Any] | None) -> Any:
    import outcore as oc

    return oc.Session(progress=False, **(given or {}))


def counted(current: Any, before: Mapping[str, Any]) -> dict[str, Any]:
    now = current.counters()
    moved = {name: now[name] - before[name] for name in ("bytes_read", "bytes_written")}
    return moved | {"peak_bytes": now["peak_bytes"]}


# -- CG ---------------------------------------------------------------------------------------------------------------


def operations(size_class: str) -> float:
    """Floating-point operations as the benchmark counts them."""
    from outcore.sparse._nas import NAS_CLASSES

    kind = NAS_CLASSES[size_class]
    row = kind.nonzer * (kind.nonzer + 1)
    return 2.0 * kind.iterations * kind.n * (3 + row + STEPS * (5 + row) + 3)


def zeta_error(size_class: str, zeta: float) -> float:
    from outcore.sparse._nas import NAS_CLASSES

    return abs(zeta - NAS_CLASSES[size_class].zeta)


def make_cg(size_class: str, path: str, session: Mapping[str, Any] | None = None) -> dict[str, Any]:
    import outcore as oc

    with session_of(session):
        started = time.perf_counter()
        made = oc.sparse.nas_cg(size_class, path, overwrite=True)  # type: ignore[arg-type]  # one of the classes
    return {"seconds": time.perf_counter() - started, "entries": made.nnz, "bytes": made.nbytes}


def cg(size_class: str, path: str, session: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """By `linalg.cg`, from the matrix on disk; making it is not timed."""
    import outcore as oc
    from outcore.sparse._nas import NAS_CLASSES

    kind = NAS_CLASSES[size_class]
    with session_of(session) as current:
        before = current.counters()
        started = time.perf_counter()
        a, x, zeta = oc.sparse.open(path), oc.ones(kind.n), 0.0
        for _ in range(kind.iterations):
            z, _ = oc.sparse.linalg.cg(a, x, rtol=0.0, maxiter=STEPS)
            along, square = oc.compute(oc.sum(x * z), oc.sum(z * z))
            zeta = kind.shift + 1.0 / float(along)
            x = oc.persist(z * (1.0 / float(np.sqrt(square))))
        seconds = time.perf_counter() - started
        return {"seconds": seconds, "zeta": zeta} | counted(current, before)


def cg_in_memory(size_class: str, path: str) -> dict[str, Any]:
    """The benchmark's own loop over SciPy's CSR."""
    import outcore as oc
    from outcore.sparse._nas import NAS_CLASSES

    kind = NAS_CLASSES[size_class]
    with session_of(None):
        matrix = oc.sparse.open(path).to_scipy()
    started = time.perf_counter()
    x, zeta = np.ones(kind.n), 0.0
    for _ in range(kind.iterations):
        z, rest = np.zeros(kind.n), x.copy()
        along, size = rest.copy(), float(rest @ rest)
        for _ in range(STEPS):
            image = matrix @ along
            step = size / float(along @ image)
            z += step * along
            rest -= step * image
            size, old = float(rest @ rest), size
            along = rest + (size / old) * along
        zeta = kind.shift + 1.0 / float(x @ z)
        x = z / np.linalg.norm(z)
    return {"seconds": time.perf_counter() - started, "zeta": zeta}


# -- SMOOTH -----------------------------------------------------------------------------------------------------------


def entries(size_class: str) -> int:
    """Of the matrix: a point has as many neighbours along each axis as the faces leave."""
    return (3 * GRID[size_class] - 2) ** 3


def products(size_class: str) -> int:
    """Multiply-adds of all iterations."""
    return 2 * ITERATIONS * entries(size_class)


def start(size_class: str) -> Numbers:
    return np.random.default_rng(27).random(GRID[size_class] ** 3)


def make_smooth(size_class: str, path: str, session: Mapping[str, Any] | None = None) -> dict[str, Any]:
    import outcore as oc

    with session_of(session):
        started = time.perf_counter()
        made = oc.sparse.grid3d(GRID[size_class], path, center=1.0, neighbour=NEIGHBOUR, overwrite=True)
    return {"seconds": time.perf_counter() - started, "entries": made.nnz, "bytes": made.nbytes}


def smooth(size_class: str, path: str, out: str, session: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """x ← A(Ax), ten times, from and to files; the forecast of each iteration is compared with its outcome."""
    import outcore as oc

    folder = Path(out)
    files = [folder / "smooth-0.npy", folder / "smooth-1.npy"]
    np.save(files[0], start(size_class))
    with session_of(session) as current:
        before, as_forecast = current.counters(), True
        started = time.perf_counter()
        a = oc.sparse.open(path)
        for number in range(ITERATIONS):
            source, target = files[number % 2], files[1 - number % 2]
            targets = {str(target): a @ (a @ oc.open(source))}
            said = oc.explain(targets, overwrite=True)
            done = oc.store(targets, overwrite=True)
            same = all(getattr(said, name) == getattr(done, name) for name in ("bytes_read", "bytes_written"))
            as_forecast = as_forecast and same
        seconds = time.perf_counter() - started
        found = counted(current, before)
    return {"seconds": seconds, "as_forecast": as_forecast, "result": str(files[ITERATIONS % 2])} | found


def smooth_in_memory(size_class: str, path: str, out: str) -> dict[str, Any]:
    """The same over SciPy's CSR."""
    import outcore as oc

    with session_of(None):
        matrix = oc.sparse.open(path).to_scipy()
    x = start(size_class)
    started = time.perf_counter()
    for _ in range(ITERATIONS):
        x = matrix @ (matrix @ x)
    seconds = time.perf_counter() - started
    np.save(Path(out) / "smooth-scipy.npy", x)
    return {"seconds": seconds, "result": str(Path(out) / "smooth-scipy.npy")}


def smoothed(size_class: str) -> Numbers:
    """The answer without a matrix: sums over the neighbours of each point, axis by axis, by slices."""
    side = GRID[size_class]
    x = start(size_class).reshape(side, side, side)
    for _ in range(2 * ITERATIONS):
        around = x
        for axis in range(3):
            padded = np.pad(around, [(int(other == axis),) * 2 for other in range(3)])
            low, middle, high = (padded.take(range(begin, begin + side), axis=axis) for begin in range(3))
            around = low + middle + high
        x = x + NEIGHBOUR * (around - x)
    return x.ravel()


def smooth_error(size_class: str, result: str) -> float:
    """The largest difference, relative to the largest number."""
    expected = smoothed(size_class)
    return float(np.abs(np.load(result) - expected).max() / np.abs(expected).max())
