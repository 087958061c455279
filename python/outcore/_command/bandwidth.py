"""Measurements of the machine as it is now: sequential reads of a file, and matrix products."""

from __future__ import annotations

import itertools
import mmap
import os
import threading
import time
from pathlib import Path

import numpy as np

_BLOCK = 4 << 20
_HUGE_PAGE = 2 << 20


def _buffer() -> memoryview:
    """A touched block in private huge pages: in 4 KiB pages a device gets a large read as many small ones."""
    memory = mmap.mmap(-1, _BLOCK + _HUGE_PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        memory.madvise(mmap.MADV_HUGEPAGE)
    whole = np.frombuffer(memory, np.uint8)
    skip = -whole.ctypes.data % _HUGE_PAGE
    block = whole[skip : skip + _BLOCK]
    block[:] = 0
    return block.data


def read_rate(path: str | os.PathLike[str], *, threads: int = 2, seconds: float = 5.0) -> tuple[float, bool]:
    """Bytes per second of sequential 4 MiB reads of a file, past the page cache; and whether that was possible.

    Stops at the end of the file or after `seconds`. Where the file system refuses direct reads they go through the
    page cache, after it was asked to forget the file.
    """
    size = Path(path).stat().st_size
    try:
        file, direct = os.open(path, os.O_RDONLY | os.O_DIRECT), True
    except OSError:
        file, direct = os.open(path, os.O_RDONLY), False
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    buffers = [_buffer() for _ in range(threads)]
    blocks = itertools.count()
    done = [0] * threads
    start = time.perf_counter()

    def work(number: int) -> None:
        for block in blocks:
            if block * _BLOCK >= size or time.perf_counter() - start > seconds:
                return
            done[number] += os.preadv(file, [buffers[number]], block * _BLOCK)

    try:
        workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    finally:
        os.close(file)
    return sum(done) / max(time.perf_counter() - start, 1e-9), direct


def product_rate(size: int = 1024, rounds: int = 5) -> float:
    """Floating-point operations per second of NumPy's float64 matrix product, the best of some rounds."""
    a = np.ones((size, size))
    best = 0.0
    for _ in range(rounds):
        start = time.perf_counter()
        a @ a
        best = max(best, 2 * size**3 / (time.perf_counter() - start))
    return best
