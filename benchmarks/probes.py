"""What the machine can do at best, measured beside each run: disk bandwidth and the rate of dense products."""

from __future__ import annotations

import mmap
import os
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

BLOCK_BYTES = 4 << 20
HUGE_PAGE = 2 << 20
PAGE = 4096


def direct_buffer(size_bytes: int) -> Any:
    """A touched buffer in private huge pages, aligned to them.

    A device takes a bounded number of memory segments per request; in 4 KiB pages that cuts large reads into small
    ones (measured here: 1.2 GB/s, against 2.9 GB/s in huge pages). `mmap.mmap(-1, n)` alone is shared memory, which
    MADV_HUGEPAGE does not reach.
    """
    memory = mmap.mmap(-1, size_bytes + HUGE_PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_HUGEPAGE)
    whole = np.frombuffer(memory, np.uint8)
    skip = -whole.ctypes.data % HUGE_PAGE
    aligned = whole[skip : skip + size_bytes]
    aligned[::PAGE] = 1
    return aligned


def open_direct(path: Path, flags: int) -> int:
    """A descriptor past the page cache where the file system allows it."""
    try:
        return os.open(path, flags | os.O_DIRECT, 0o644)
    except OSError:
        return os.open(path, flags, 0o644)


def sweep(descriptor: int, size_bytes: int, threads: int, call: Callable[[int, list[Any], int], int]) -> float:
    """Seconds for `threads` threads to visit every block of the file once, block by block in turn."""

    def work(first: int) -> None:
        buffer = buffers[first]
        for offset in range(first * BLOCK_BYTES, size_bytes - BLOCK_BYTES + 1, threads * BLOCK_BYTES):
            call(descriptor, [buffer], offset)

    buffers = [direct_buffer(BLOCK_BYTES) for _ in range(threads)]
    workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    started = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return time.perf_counter() - started


def read_bandwidth(path: Path, most_bytes: int = 4 << 30) -> float:
    """Bytes per second of the best of one to four threads reading `path` in 4 MiB blocks, O_DIRECT."""
    size = min(path.stat().st_size, most_bytes) // BLOCK_BYTES * BLOCK_BYTES
    descriptor = open_direct(path, os.O_RDONLY)
    try:
        return max(size / sweep(descriptor, size, threads, os.preadv) for threads in (1, 2, 3, 4))
    finally:
        os.close(descriptor)


def read_disk(path: str, threads: int, most_bytes: int = 4 << 30) -> dict[str, float]:
    """One sweep as a case among others: the disk's rate changes by the minute, so it is measured in every round."""
    size = min(Path(path).stat().st_size, most_bytes) // BLOCK_BYTES * BLOCK_BYTES
    descriptor = open_direct(Path(path), os.O_RDONLY)
    try:
        seconds = sweep(descriptor, size, threads, os.preadv)
    finally:
        os.close(descriptor)
    return {"seconds": seconds, "bytes_read": size, "bytes_per_second": size / seconds}


def first_touch(size_bytes: int, threads: int = 2) -> dict[str, float]:
    """Seconds in which `threads` threads touch fresh huge pages for the first time, for a process of its own.

    The kernel clears them then, and on a virtual machine the host may have to find them first.
    """

    def touch(memory: Any) -> None:
        memory[::PAGE] = 1

    memory = mmap.mmap(-1, size_bytes + HUGE_PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_HUGEPAGE)
    whole = np.frombuffer(memory, np.uint8)
    workers = [threading.Thread(target=touch, args=(part,)) for part in np.array_split(whole, threads)]
    started = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return {"seconds": time.perf_counter() - started, "bytes_touched": size_bytes}


def write_bandwidth(folder: Path, size_bytes: int = 1 << 30, threads: Sequence[int] = (1, 2, 4)) -> float:
    """Bytes per second of the best thread count writing a new file in 4 MiB blocks, O_DIRECT, synced."""
    return max(size_bytes / _write_once(folder, size_bytes, count) for count in threads)


def _write_once(folder: Path, size_bytes: int, threads: int) -> float:
    path = folder / f"probe-{os.getpid()}.bin"
    descriptor = open_direct(path, os.O_CREAT | os.O_WRONLY)
    try:
        seconds = sweep(descriptor, size_bytes, threads, os.pwritev)
        started = time.perf_counter()
        os.fsync(descriptor)
        return seconds + time.perf_counter() - started
    finally:
        os.close(descriptor)
        path.unlink()


def gemm_peak(side: int = 3000, repeats: int = 5) -> float:
    """Flops per second of NumPy's own product of two float64 matrices in memory, best of `repeats`."""
    random = np.random.default_rng(0)
    a, b = random.random((side, side)), random.random((side, side))
    result = np.empty((side, side))
    best = float("inf")
    for _ in range(repeats):
        started = time.perf_counter()
        np.matmul(a, b, out=result)
        best = min(best, time.perf_counter() - started)
    return 2 * side**3 / best


def skinny_gemm_peak(rows: int = 400_000, columns: int = 100, factors: int = 10, repeats: int = 5) -> float:
    """Flops per second of X @ H.T for a tall X: the shape that factorizations actually meet."""
    random = np.random.default_rng(0)
    x, h = random.random((rows, columns)), random.random((factors, columns))
    result = np.empty((rows, factors))
    best = float("inf")
    for _ in range(repeats):
        started = time.perf_counter()
        np.matmul(x, h.T, out=result)
        best = min(best, time.perf_counter() - started)
    return 2 * rows * columns * factors / best
