"""The same programs as others would run them: an expert's hand-blocked NumPy loop, plain formulas on np.memmap, Dask.

Every function runs in a child process under the benchmark's limit, times itself after its imports, writes its result
to `out`, and returns {"seconds": …}.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import programs
from benchmarks.probes import PAGE, direct_buffer, open_direct


class RowBlocks:
    """Row blocks of a .npy file in order, read ahead by threads with O_DIRECT; the first blocks may stay in memory.

    This is what an expert writes when the matrix does not fit: no page cache in the way, reading under computing,
    and whatever memory is left over saves reading the head of the file again in every sweep.
    """

    def __init__(
        self, path: str, block_bytes: int = 8 << 20, readers: int = 2, keep_bytes: int = 0, direct: bool = True
    ) -> None:
        view = np.load(path, mmap_mode="r")
        self.shape, self.row_bytes, self.start = view.shape, view.itemsize * view.shape[1], view.offset
        self.rows = max(1, block_bytes // self.row_bytes)
        self.descriptor = open_direct(Path(path), os.O_RDONLY) if direct else os.open(path, os.O_RDONLY)
        self.end = os.fstat(self.descriptor).st_size
        self.pool = ThreadPoolExecutor(readers)
        self.ring = [self._buffer() for _ in range(readers + 2)]
        self.keep = keep_bytes // (self.rows * self.row_bytes)
        self.kept: dict[int, Any] = {}
        self.bytes_read = 0

    def _buffer(self) -> Any:
        return direct_buffer(self.rows * self.row_bytes + 2 * PAGE)

    def __iter__(self) -> Iterator[tuple[int, int, Any]]:
        count = -(-self.shape[0] // self.rows)
        ahead: dict[int, Any] = {}
        for number in range(count):
            for following in range(number, min(count, number + len(self.ring) - 1)):
                if following not in ahead and following not in self.kept:
                    ahead[following] = self.pool.submit(self._read, following)
            if number in self.kept:
                block = self.kept[number]
            else:
                block = ahead.pop(number).result()
                self.bytes_read += block.nbytes
            if number < self.keep:
                self.kept[number] = block
            low = number * self.rows
            yield low, low + block.shape[0], block

    def _read(self, number: int) -> Any:
        low = number * self.rows
        rows = min(self.rows, self.shape[0] - low)
        begin = self.start + low * self.row_bytes
        aligned = begin // PAGE * PAGE
        buffer = self._buffer() if number < self.keep else self.ring[number % len(self.ring)]
        want = -(-(begin + rows * self.row_bytes - aligned) // PAGE) * PAGE
        got = os.preadv(self.descriptor, [memoryview(buffer)[:want]], aligned)
        if got < min(want, self.end - aligned):
            raise OSError(f"short read at {aligned}: {got} of {want} bytes")
        return np.frombuffer(buffer, "<f8", rows * self.shape[1], begin - aligned).reshape(rows, self.shape[1])


def nmf_expert(X: str, W0: str, H0: str, out: str, iterations: int, **reading: Any) -> dict[str, Any]:
    """One sweep over X per iteration: W's rows need only their own rows of X, and W.T @ X adds up along the way."""
    started = time.perf_counter()
    w, h = np.load(W0), np.load(H0)
    blocks = RowBlocks(X, **reading)
    numerator, denominator = (np.empty((blocks.rows, h.shape[0])) for _ in range(2))
    for _ in range(iterations):
        hht, wtx, wtw = h @ h.T, np.zeros_like(h), np.zeros((h.shape[0],) * 2)
        for low, high, x in blocks:
            part, top, bottom = w[low:high], numerator[: high - low], denominator[: high - low]
            np.matmul(x, h.T, out=top)
            np.matmul(part, hht, out=bottom)
            part *= top
            part /= bottom
            wtx += part.T @ x
            wtw += part.T @ part
        h = h * wtx / (wtw @ h)
    _save(out, W=w, H=h)
    return {"seconds": time.perf_counter() - started, "bytes_read": blocks.bytes_read}


def logistic_expert(X: str, y: str, out: str, iterations: int, **reading: Any) -> dict[str, Any]:
    """One sweep over X per iteration; the gradient adds up along the way."""
    started = time.perf_counter()
    labels = np.load(y)
    blocks = RowBlocks(X, **reading)
    w = np.zeros((blocks.shape[1], 1))
    for _ in range(iterations):
        gradient = np.zeros_like(w)
        for low, high, x in blocks:
            z = x @ w
            np.negative(z, out=z)
            np.exp(z, out=z)
            z += 1
            np.reciprocal(z, out=z)
            z -= labels[low:high]
            gradient += x.T @ z
        w = w - programs.STEP * gradient
    _save(out, w=w)
    return {"seconds": time.perf_counter() - started, "bytes_read": blocks.bytes_read}


def nmf_memmap(X: str, W0: str, H0: str, out: str, iterations: int, parenthesized: bool = False) -> dict[str, Any]:
    """The formulas as they stand, every array with N rows in a memory map (in memory they would not fit).

    `parenthesized` writes W @ (H @ H.T) and so spares the N×100 temporary that W @ H makes.
    """
    started = time.perf_counter()
    x, h = np.load(X, mmap_mode="r"), np.load(H0)
    w, top, bottom = (_map(out, name, (x.shape[0], h.shape[0])) for name in ("W", "top", "bottom"))
    w[:] = np.load(W0, mmap_mode="r")
    wide = None if parenthesized else _map(out, "WH", x.shape)
    for _ in range(iterations):
        np.matmul(x, h.T, out=top)
        if wide is None:
            np.matmul(w, h @ h.T, out=bottom)
        else:
            np.matmul(w, h, out=wide)
            np.matmul(wide, h.T, out=bottom)
        np.multiply(w, top, out=w)
        np.divide(w, bottom, out=w)
        h = h * (w.T @ x) / (w.T @ w @ h)
    _save(out, H=h)
    w.flush()
    return {"seconds": time.perf_counter() - started}


def logistic_memmap(X: str, y: str, out: str, iterations: int) -> dict[str, Any]:
    started = time.perf_counter()
    x, labels = np.load(X, mmap_mode="r"), np.load(y, mmap_mode="r")
    w = programs.logistic(np, x, labels, np.zeros((x.shape[1], 1)), iterations)
    _save(out, w=w)
    return {"seconds": time.perf_counter() - started}


def nmf_dask(X: str, W0: str, H0: str, out: str, iterations: int, **reading: Any) -> dict[str, Any]:
    import dask.array as da

    started = time.perf_counter()
    x = _DaskSource(X, **reading)
    w = da.from_array(np.load(W0, mmap_mode="r"), chunks=(x().chunks[0], -1))
    h = da.from_array(np.load(H0), chunks=-1)
    for _ in range(iterations):
        w = w * (x() @ h.T) / (w @ h @ h.T)
        h = h * (w.T @ x()) / (w.T @ w @ h)
    _dask_store(out, W=w, H=h)
    return {"seconds": time.perf_counter() - started}


def logistic_dask(X: str, y: str, out: str, iterations: int, **reading: Any) -> dict[str, Any]:
    import dask.array as da

    started = time.perf_counter()
    x = _DaskSource(X, **reading)
    labels = da.from_array(np.load(y, mmap_mode="r"), chunks=(x().chunks[0], 1))
    w = da.zeros((x().shape[1], 1), chunks=-1)
    for _ in range(iterations):
        w = w - programs.STEP * (x().T @ (1 / (1 + da.exp(-(x() @ w))) - labels))
    _dask_store(out, w=w)
    return {"seconds": time.perf_counter() - started}


class _DaskSource:
    """X as a Dask array. With `anew` every use is an array of its own, so that the graph does not hold X's chunks
    from their first use to their last: Dask would otherwise keep all of X in memory, and be killed.
    """

    def __init__(self, path: str, chunk_bytes: int = 32 << 20, anew: bool = False) -> None:
        self.path, self.chunk_bytes, self.anew = path, chunk_bytes, anew
        self.shared = self._open()

    def __call__(self) -> Any:
        return self._open() if self.anew else self.shared

    def _open(self) -> Any:
        import dask.array as da

        if self.path.endswith(".zarr"):
            import zarr

            x: Any = zarr.open_array(self.path, mode="r")
            rows = max(x.chunks[0], self.chunk_bytes // (x.shape[1] * 8) // x.chunks[0] * x.chunks[0])
        else:
            x = np.load(self.path, mmap_mode="r")
            rows = self.chunk_bytes // (x.shape[1] * 8)
        return da.from_array(x, chunks=(rows, x.shape[1]), name=False)


def _dask_store(out: str, threads: int = 2, **arrays: Any) -> None:
    import dask
    import dask.array as da

    with dask.config.set(scheduler="threads", num_workers=threads):
        targets = [_map(out, name, array.shape) for name, array in arrays.items()]
        da.store(list(arrays.values()), targets, lock=False)
    for target in targets:
        target.flush()


def _map(folder: str, name: str, shape: tuple[int, ...]) -> Any:
    Path(folder).mkdir(exist_ok=True)
    return np.lib.format.open_memmap(Path(folder) / f"{name}.npy", "w+", "<f8", shape)


def _save(folder: str, **arrays: Any) -> None:
    Path(folder).mkdir(exist_ok=True)
    for name, array in arrays.items():
        np.save(Path(folder) / f"{name}.npy", array)
