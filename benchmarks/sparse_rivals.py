"""What the sparse benchmark is held against: SciPy, python-graphblas, MKL, and PageRank as a plain NumPy loop.

Each function is called in a child of its own. Matrices come as the three arrays of CSR, in NumPy files.
"""

from __future__ import annotations

import importlib
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.sparse_cases import dense, wrong

Numbers = Any
_CHUNK = 1 << 22  # edges of the NumPy loop that are added up at once
PARTS = ("indptr", "indices", "data")
MODULES = {"SciPy": "scipy", "graphblas": "graphblas", "MKL": "sparse_dot_mkl"}


def absent(rival: str) -> str | None:
    """Why a rival cannot be imported here, for the record; None if it can. For a process of its own."""
    try:
        _import(MODULES[rival])
    except Exception as error:  # a missing library is no ImportError everywhere
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return None


def _import(name: str) -> Any:
    if name == "sparse_dot_mkl":
        import os

        # It looks where the linker does; pip puts the library beside the interpreter.
        found = sorted(Path(sys.prefix, "lib").glob("libmkl_rt.so*"))
        if found:
            os.environ.setdefault("MKL_RT", str(found[0]))
    return importlib.import_module(name)


def to_csr(path: str, folder: str) -> dict[str, Any]:
    """Stores a matrix as CSR, which takes its three arrays in memory and two reads of it."""
    import outcore as oc

    with oc.Session(progress=False):
        a = oc.sparse.open(path)
        begins = np.zeros(a.shape[0] + 1, np.int64)
        for rows, _, _ in a.blocks():
            begins[1:] += np.bincount(rows.astype(np.int64), minlength=a.shape[0])
        np.cumsum(begins, out=begins)
        due = begins[:-1].copy()
        indices, data = np.empty(a.nnz, np.int32), np.empty(a.nnz)
        for rows, columns, values in a.blocks():
            order = np.argsort(rows, kind="stable")
            rows = rows[order].astype(np.int64)
            firsts = np.flatnonzero(np.concatenate([[True], rows[1:] != rows[:-1]]))
            counts = np.diff(firsts, append=len(rows))
            places = due[rows] + np.arange(len(rows)) - np.repeat(firsts, counts)
            indices[places], data[places] = columns[order], values[order]
            due[rows[firsts]] += counts
    small = begins.astype(np.int32) if a.nnz < 1 << 31 else begins
    for name, part in zip(PARTS, (small, indices, data), strict=True):
        np.save(Path(folder) / f"{name}.npy", part)
    return {"seconds": 0.0, "bytes": small.nbytes + indices.nbytes + data.nbytes}


def _csr(folder: str) -> tuple[Numbers, Numbers, Numbers]:
    indptr, indices, data = (np.load(Path(folder) / f"{name}.npy") for name in PARTS)
    return indptr, indices, data


def _timed(call: Callable[[], Any], times: int, value: Callable[[Any], Numbers], expected: str) -> dict[str, Any]:
    """The median of some calls, after a first one whose result is checked."""
    seconds = []
    for number in range(times + 1):
        started = time.perf_counter()
        found = call()
        if number:
            seconds.append(time.perf_counter() - started)
        failed = None if number else wrong(value(found), expected)
        if failed:
            return {"failed": failed}
        del found
    return {"seconds": statistics.median(seconds)}


def product(rival: str, folder: str, columns: int, expected: str, times: int, threads: int) -> dict[str, Any]:
    """A @ X in memory by a rival, as its users write it."""
    module = _import(MODULES[rival])
    indptr, indices, data = _csr(folder)
    order = len(indptr) - 1
    x = dense(order, columns)
    if rival == "graphblas":
        matrix = module.Matrix.from_csr(indptr, indices, data, ncols=order)
        del indptr, indices, data
        if columns == 1:
            other = module.Vector.from_dense(x)
            return _timed(lambda: _waited(matrix.mxv(other, "plus_times")), times, _plain, expected)
        other = module.Matrix.from_dense(x)
        return _timed(lambda: _waited(matrix.mxm(other, "plus_times")), times, _plain, expected)
    import scipy.sparse

    matrix = scipy.sparse.csr_array((data, indices, indptr), shape=(order, order))
    if rival == "MKL":
        module.mkl_set_num_threads(threads)
        return _timed(lambda: module.dot_product_mkl(matrix, x), times, np.asarray, expected)
    return _timed(lambda: matrix @ x, times, np.asarray, expected)


def _waited(expression: Any) -> Any:
    """GraphBLAS computes when it is asked to."""
    found = expression.new()
    found.wait()
    return found


def _plain(found: Any) -> Numbers:
    return found.to_dense(0.0)


def pagerank(path: str, iterations: int, out: str) -> dict[str, Any]:
    """PageRank over edges in memory, by NumPy's `bincount`."""
    import outcore as oc

    with oc.Session(progress=False):
        a = oc.sparse.open(path)
        order, size = a.shape[0], 0
        tails, heads = np.empty(a.nnz, np.uint32), np.empty(a.nnz, np.uint32)
        for rows, columns, _ in a.blocks():
            tails[size : size + len(rows)], heads[size : size + len(rows)] = rows, columns
            size += len(rows)
    started = time.perf_counter()
    chunks = [slice(begin, begin + _CHUNK) for begin in range(0, size, _CHUNK)]
    degrees = np.zeros(order)
    for chunk in chunks:
        degrees += np.bincount(tails[chunk], minlength=order)
    ranks = np.full(order, 1 / order)
    for _ in range(iterations):
        shares = np.divide(ranks, degrees, out=np.zeros(order), where=degrees > 0)
        found = np.zeros(order)
        for chunk in chunks:
            found += np.bincount(heads[chunk], shares[tails[chunk]], minlength=order)
        ranks = 0.85 * found + (0.85 * ranks[degrees == 0].sum() + 0.15) / order
    np.save(out, ranks)
    return {"seconds": time.perf_counter() - started}


def solver(name: str, path: str, k: int) -> dict[str, Any]:
    """SciPy's `eigsh` or `svds` of a matrix in memory."""
    import scipy.sparse.linalg

    import outcore as oc

    with oc.Session(progress=False):
        matrix = oc.sparse.open(path).to_scipy().astype(np.float64)
    started = time.perf_counter()
    if name == "eigsh":
        values, _ = scipy.sparse.linalg.eigsh(matrix, k=k, which="LA")
    else:
        _, values, _ = scipy.sparse.linalg.svds(matrix, k=k)
    return {"seconds": time.perf_counter() - started, "values": np.sort(values).tolist()}
