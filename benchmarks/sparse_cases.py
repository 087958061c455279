"""The sparse benchmark's programs run by outcore, each in a child of its own, and the graphs that all of them read."""

from __future__ import annotations

import hashlib
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

SEED = 11
NEAR = 1e-12
_STEPS_MAX = 200
_READ = 1.02  # bytes read for a byte of a matrix: tile rows are read by whole pages
_UNDER_WAY = 8  # part of a matrix that there is memory for where it is read for every product
_FACTORS_BYTES = 32 << 20  # tiles of factors that a step of NMF has under way
_NO_POOL = 1 << 16  # bytes, with which every product is refused, and the refusal names what would do
Numbers = Any


# -- graphs -----------------------------------------------------------------------------------------------------------


def make(kind: str, path: str, scale: int, edges: int, session: Mapping[str, Any], pattern: str = "") -> dict[str, Any]:
    """An R-MAT graph: a "pattern", the same "undirected" without loops, or with "values" of each row's own."""
    import outcore as oc

    order = 1 << scale
    with oc.Session(progress=False, **session):
        started = time.perf_counter()
        if kind == "values":
            made = oc.sparse.open(pattern).multiply(vector(order)[:, None], path=path, overwrite=True)
        else:
            both = kind == "undirected"
            made = oc.sparse.rmat(order, edges, path, seed=SEED, symmetrize=both, drop_loops=both, overwrite=True)
        return {"seconds": time.perf_counter() - started, "entries": made.nnz, "bytes": made.nbytes}


def vector(order: int) -> Numbers:
    """Numbers from ½ to 1: sums of their products lose nothing."""
    return 0.5 + np.random.default_rng(SEED).random(order) / 2


def powers(columns: int) -> Numbers:
    return 2.0 ** (np.arange(columns) % 8)


def dense(order: int, columns: int) -> Numbers:
    """`vector` times a power of two in each column, so that one column of a product tells all others."""
    found = vector(order)
    return found if columns == 1 else np.multiply.outer(found, powers(columns))


def reference(path: str, out: str) -> dict[str, Any]:
    """The product with `vector` by NumPy, entry by entry, stored."""
    import outcore as oc

    with oc.Session(progress=False):
        a = oc.sparse.open(path)
        x, found = vector(a.shape[1]), np.zeros(a.shape[0])
        started = time.perf_counter()
        for rows, columns, values in a.blocks():
            first = int(rows.min())
            part = np.bincount((rows - np.uint64(first)).astype(np.int64), values * x[columns])
            found[first : first + len(part)] += part
    np.save(out, found)
    return {"seconds": time.perf_counter() - started}


def wrong(found: Numbers, expected: str) -> str | None:
    """What is wrong with a product with `dense`, if anything."""
    reference = np.load(expected)
    wide = found.reshape(len(reference), -1)
    scales = powers(wide.shape[1])
    worst = max(float(np.abs(wide[:, k] / scales[k] - reference).max()) for k in range(len(scales)))
    return None if worst <= NEAR * float(np.abs(reference).max()) else f"**off by {worst:.1e}**"


# -- products ---------------------------------------------------------------------------------------------------------


def pool_for(product: Callable[[], Any], threads: int, most_read: float, step: int) -> int:
    """The least memory, in steps, with which a product reads no more than so many bytes."""
    import outcore as oc

    def read(pool: int) -> int:
        with oc.Session(progress=False, pool_limit=pool, threads=threads):
            return int(oc.explain(product(), overwrite=True).bytes_read)

    pool = _NO_POOL
    for _ in range(_STEPS_MAX):
        try:
            if read(pool) <= most_read:
                return pool
            pool += step
        except oc.errors.MemoryLimitError as refused:
            pool = max(pool + (1 << 12), int(refused.smallest or 0))
    raise RuntimeError(f"no pool up to {pool} bytes reads {most_read:.0f} bytes only")


def product(
    path: str, columns: int, expected: str, times: int, resident: bool, session: Mapping[str, Any]
) -> dict[str, Any]:
    """A @ X with X in memory, some times in one session: with the matrix in memory too, or memory for X alone.

    The first product is not counted: it loads the matrix, or touches its memory for the first time.
    """
    import outcore as oc

    a = oc.sparse.open(path)
    x = dense(a.shape[1], columns)
    told = dict(session)
    if not resident:
        least = pool_for(lambda: a @ x, told["threads"], _READ * a.nbytes, a.shape[1] * 8)
        told["pool_limit"] = least + a.nbytes // _UNDER_WAY
    seconds, read = [], 0
    with oc.Session(progress=False, **told) as current:
        for number in range(times + 1):
            before = current.counters()["bytes_read"]
            started = time.perf_counter()
            found = oc.compute(a @ x)
            if number:
                seconds.append(time.perf_counter() - started)
            read = current.counters()["bytes_read"] - before
            failed = wrong(found, expected) if number == 0 else None
            if failed:
                return {"failed": failed}
            del found
    return {"seconds": statistics.median(seconds), "entries": a.nnz, "bytes": a.nbytes, "bytes_read": read}


def digest(values: Numbers) -> str:
    made = hashlib.sha256()
    for begin in range(0, len(values), 1 << 16):
        made.update(np.ascontiguousarray(values[begin : begin + (1 << 16)]).data)
    return made.hexdigest()


def dense_resident(path: str, x: str, session: Mapping[str, Any]) -> dict[str, Any]:
    """A @ X with both in memory; the first column is held against NumPy's."""
    import outcore as oc

    a, wide = oc.sparse.open(path), np.load(x)
    with oc.Session(progress=False, **session):
        oc.compute(a @ wide)
        started = time.perf_counter()
        found = oc.compute(a @ wide)
        seconds = time.perf_counter() - started
        own = np.zeros(a.shape[0])
        for rows, columns, values in a.blocks():
            first = int(rows.min())
            part = np.bincount((rows - np.uint64(first)).astype(np.int64), values * wide[columns, 0])
            own[first : first + len(part)] += part
    worst = float(np.abs(found[:, 0] - own).max())
    if worst > NEAR * float(np.abs(own).max()):
        return {"failed": f"**off by {worst:.1e}**"}
    return {"seconds": seconds, "entries": a.nnz, "bytes": a.nbytes, "digest": digest(found)}


def dense_on_disk(path: str, x: str, out: str, held: int, session: Mapping[str, Any]) -> dict[str, Any]:
    """A @ X from one file to another with memory for some columns of X, and its forecast.

    The first product is not counted: it touches its memory for the first time, as that of `dense_resident` does.
    """
    import outcore as oc

    a, wide = oc.sparse.open(path), oc.open(x)
    bands = -(-wide.shape[1] // held)
    # With several bands X is laid out anew, and the result put together, on disk.
    most = _READ * bands * a.nbytes + (wide.nbytes if bands == 1 else 2 * wide.nbytes + 8 * a.shape[0] * wide.shape[1])
    pool = pool_for(lambda: {out: a @ wide}, session["threads"], most, a.shape[1] * 4)
    with oc.Session(progress=False, pool_limit=pool, **session):
        targets = {out: a @ wide}
        for _ in range(2):
            said = oc.explain(targets, overwrite=True)
            started = time.perf_counter()
            done = oc.store(targets, overwrite=True)
            seconds = time.perf_counter() - started
    names = ("bytes_read", "bytes_written", "peak_bytes")
    return {
        "seconds": seconds,
        "bands": bands,
        "pool_bytes": pool,
        "forecast": {name: getattr(said, name) for name in names},
        "digest": digest(np.load(out, mmap_mode="r")),
    } | {name: getattr(done, name) for name in names}


# -- algorithms -------------------------------------------------------------------------------------------------------


def pagerank(path: str, iterations: int, out: str, session: Mapping[str, Any]) -> dict[str, Any]:
    """PageRank without an early end; the ranks are stored after the clock has stopped."""
    import outcore as oc

    with oc.Session(progress=False, **session):
        started = time.perf_counter()
        a = oc.sparse.open(path)
        ranks, loop = oc.sparse.pagerank(a, iterations=iterations, tol=0.0, full_output=True)
        seconds = time.perf_counter() - started
        oc.store({out: ranks}, overwrite=True)
    return {
        "seconds": seconds,
        "order": a.shape[0],
        "entries": a.nnz,
        "bytes": a.nbytes,
        "read_by_step": [outcome.bytes_read for outcome in loop.outcomes],
        "seconds_by_step": [outcome.seconds for outcome in loop.outcomes],
        "plan_seconds": loop.plan_seconds,
    }


def eigsh(path: str, k: int, width: int, session: Mapping[str, Any]) -> dict[str, Any]:
    """The k largest eigenvalues, and the residuals of their vectors."""
    import outcore as oc

    with oc.Session(progress=False, **session) as current:
        started = time.perf_counter()
        a = oc.sparse.open(path)
        values, vectors = oc.sparse.linalg.eigsh(a, k=k, which="LA", block_size=width)
        seconds = time.perf_counter() - started
        moved = current.counters()
        rest = oc.linalg.vector_norm(a @ vectors - vectors * values, axis=0).compute()
    return {
        "seconds": seconds,
        "values": values.tolist(),
        "residuals": (rest / np.abs(values)).tolist(),
        "entries": a.nnz,
        "bytes": a.nbytes,
        "bytes_read": moved["bytes_read"],
        "bytes_written": moved["bytes_written"],
    }


def svds(path: str, k: int, session: Mapping[str, Any]) -> dict[str, Any]:
    """The k largest singular values, and |A v − σ u| of their vectors."""
    import outcore as oc

    with oc.Session(progress=False, **session) as current:
        started = time.perf_counter()
        a = oc.sparse.open(path)
        u, values, vt = oc.sparse.linalg.svds(a, k=k)
        seconds = time.perf_counter() - started
        moved = current.counters()
        rest = oc.linalg.vector_norm(a @ oc.asarray(vt).T - oc.asarray(u) * values, axis=0).compute()
    found = {"seconds": seconds, "values": np.sort(values).tolist(), "residuals": (rest / values).tolist()}
    return found | {"entries": a.nnz, "bytes": a.nbytes, "bytes_read": moved["bytes_read"]}


def nmf(path: str, k: int, iterations: int, held: int, session: Mapping[str, Any]) -> dict[str, Any]:
    """Steps of NMF with memory for `held` columns of a factor (0: for all), and what they come to."""
    import outcore as oc

    a, told = oc.sparse.open(path), dict(session)
    if held:
        x = vector(a.shape[1])
        one = pool_for(lambda: a @ x, told["threads"], _READ * a.nbytes, x.nbytes)
        told["pool_limit"] = one + (held - 1) * x.nbytes + _FACTORS_BYTES
    with oc.Session(progress=False, **told) as current:
        started = time.perf_counter()
        w, h, loop = oc.sparse.nmf(a, k, iterations=iterations, tol=0.0, full_output=True)
        seconds = time.perf_counter() - started
        moved = current.counters()
        gain = loop.history["gain"].tolist()
        marks = [float(value) for value in oc.compute(oc.sum(w), oc.sum(h), oc.max(w), oc.max(h))]
    found = {"seconds": seconds, "gain": gain, "marks": marks}
    return found | {name: moved[name] for name in ("bytes_read", "bytes_written", "peak_bytes")}


def sizes(path: str) -> dict[str, Any]:
    """Bytes of a stored matrix beside CSR and DCSC."""
    import outcore as oc

    with oc.Session(progress=False):
        found = oc.sparse.layout(oc.sparse.open(path))
    item = 0 if found["values"] == "pattern" else np.dtype(found["values"]).itemsize
    return found | {"path": Path(path).name, "item": item}


def stencils(folder: str, grid: int, band: int) -> list[str]:
    """A grid with 27 points around each and a matrix of seven bands, as places only."""
    import outcore as oc

    with oc.Session(progress=False):
        made = oc.sparse.grid3d(grid, Path(folder) / "grid.ocs", overwrite=True)
        bands = dict.fromkeys((-1024, -32, -1, 0, 1, 32, 1024), 1.0)
        other = oc.sparse.banded(band, bands, Path(folder) / "banded.ocs", overwrite=True)
    return [str(made.path), str(other.path)]
