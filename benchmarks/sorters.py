"""One sort of a file of keys to another file, as outcore and others do it. Each runs in a child under the limit, times
itself after its imports, writes into `out` and returns {"seconds": …}.

DuckDB and Polars get the keys in Parquet, their own ground, and leave Parquet; all others go from .npy to .npy.
"""

from __future__ import annotations

import itertools
import mmap
import os
import shutil
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.lib import format as npy

MIB = 1 << 20
# What an interpreter with NumPy takes before it sorts anything.
INTERPRETER_BYTES = 64 * MIB
FIGURES = ("bytes_read", "bytes_written", "bytes_spilled", "peak_bytes")


def outcore(path: str, out: str, session: Mapping[str, Any] | None = None) -> dict[str, Any]:
    import outcore as oc

    with oc.Session(progress=False, **(session or {})):
        started = time.perf_counter()
        targets = {f"{out}/sorted.npy": oc.sort(oc.open(path))}
        told = oc.explain(targets, overwrite=True)
        done = oc.store(targets, overwrite=True)
        seconds = time.perf_counter() - started
    forecast = {name: getattr(told, name) for name in (*FIGURES, "bytes_scratch", "exact")}
    return {"seconds": seconds, "forecast": forecast} | {name: getattr(done, name) for name in FIGURES}


def memmap(path: str, out: str) -> dict[str, Any]:
    """In place, as `np.memmap.sort` does it, on a copy whose making is not timed."""
    target = shutil.copyfile(path, f"{out}/sorted.npy")
    descriptor = os.open(target, os.O_RDONLY)
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)
    started = time.perf_counter()
    keys = np.load(target, mmap_mode="r+")
    keys.sort()
    keys.flush()
    return {"seconds": time.perf_counter() - started}


def duckdb(path: str, out: str, limit: int, threads: int = 2) -> dict[str, Any]:
    """Its memory limit is set well below the group's: it does not count everything that it takes."""
    import duckdb

    started = time.perf_counter()
    base = duckdb.connect(config={"memory_limit": f"{limit * 6 // 10 // MIB}MiB", "threads": threads})
    base.execute(f"SET temp_directory = '{out}/duckdb.tmp'")
    base.execute("SET preserve_insertion_order = false")
    base.execute(f"COPY (SELECT x FROM '{path}' ORDER BY x) TO '{out}/sorted.parquet' (COMPRESSION uncompressed)")
    base.close()
    _sync(f"{out}/sorted.parquet")
    return {"seconds": time.perf_counter() - started}


def polars(path: str, out: str, limit: int, threads: int = 2) -> dict[str, Any]:
    """The streaming engine, from file to file. It is told what memory there is, as it would otherwise ask the machine,
    and keeps what it spills beside the output.
    """
    os.environ |= {
        "POLARS_MAX_THREADS": str(threads),
        "POLARS_OVERRIDE_TOTAL_MEMORY_MB": str(limit // 10**6),
        "POLARS_OOC_MEMORY_BUDGET_MB": str(limit * 4 // 10 // 10**6),
        "POLARS_OOC_SPILL_DIR": f"{out}/polars.tmp",
        "POLARS_TEMP_DIR": f"{out}/polars.tmp",
    }
    import polars as pl

    started = time.perf_counter()
    target = f"{out}/sorted.parquet"
    pl.scan_parquet(path).sort("x").sink_parquet(target, compression="uncompressed", engine="streaming")
    _sync(target)
    return {"seconds": time.perf_counter() - started}


def expert(path: str, out: str, limit: int, threads: int = 2, piece_bytes: int = 16 * MIB) -> dict[str, Any]:
    """What an expert writes in NumPy: runs as long as memory allows, sorted in place, then pieces of the output, each
    made of a slice of every run. Slices are cut by rank among equal keys, so that pieces stay even whatever the skew.
    """
    started = time.perf_counter()
    keys = np.load(path, mmap_mode="r")
    kind, count, start = keys.dtype, keys.size, keys.offset
    length = int((limit * 0.85 - INTERPRETER_BYTES) / threads) // kind.itemsize
    source, scratch, target = (
        os.open(name, flags, 0o644)
        for name, flags in (
            (path, os.O_RDONLY),
            (f"{out}/runs.bin", os.O_RDWR | os.O_CREAT),
            (f"{out}/sorted.npy", os.O_RDWR | os.O_CREAT),
        )
    )
    bounds = [*range(0, count, length), count]
    step = max(1, piece_bytes // kind.itemsize // 64)
    buffers = [np.empty(min(length, count), kind) for _ in range(threads)]

    def make_run(number: int) -> Any:
        buffer = buffers.pop()
        run = buffer[: bounds[number + 1] - bounds[number]]
        _read(source, run, start + bounds[number] * kind.itemsize)
        run.sort()
        _write(scratch, run, bounds[number] * kind.itemsize)
        sample = run[::step].copy()
        buffers.append(buffer)
        return sample

    with ThreadPoolExecutor(threads) as pool:
        samples = np.sort(np.concatenate(list(pool.map(make_run, range(len(bounds) - 1)))))
        buffers.clear()
        mapped = mmap.mmap(scratch, 0, prot=mmap.PROT_READ)
        mapped.madvise(mmap.MADV_RANDOM)  # a search reads pages, not what surrounds them; nor does a slice
        os.posix_fadvise(scratch, 0, 0, os.POSIX_FADV_RANDOM)
        scratched = np.frombuffer(mapped, kind)
        runs = [scratched[low:high] for low, high in itertools.pairwise(bounds)]
        cuts = [_cut(runs, samples[rank // step], rank) for rank in range(0, count, piece_bytes // kind.itemsize)]
        cuts = np.array([*cuts, [run.size for run in runs]])
        with open(target, "wb", closefd=False) as file:
            npy.write_array_header_1_0(file, {"descr": kind.str, "fortran_order": False, "shape": (count,)})
            head = file.tell()
        places = head + cuts.sum(axis=1) * kind.itemsize

        def merge(number: int) -> None:
            low, high = cuts[number], cuts[number + 1]
            piece, filled = np.empty(int((high - low).sum()), kind), 0
            for run, first, last in zip(bounds, low, high, strict=False):
                _read(scratch, piece[filled : filled + last - first], (run + int(first)) * kind.itemsize)
                filled += last - first
            piece.sort()  # with AVX-512 or AVX2 this is faster than "stable", which would merge the slices
            _write(target, piece, int(places[number]))

        list(pool.map(merge, range(len(cuts) - 1)))
    os.fsync(target)
    os.unlink(f"{out}/runs.bin")
    largest = int(np.diff(cuts.sum(axis=1)).max())
    seconds = time.perf_counter() - started
    return {"seconds": seconds, "runs": len(runs), "pieces": len(cuts) - 1, "largest_piece": largest}


def _cut(runs: list[Any], key: Any, rank: int) -> Any:
    """Where to cut every run so that about `rank` keys are before: all smaller than `key`, and of its equals as many
    as that needs, from the first runs on.
    """
    low = np.array([np.searchsorted(run, key, "left") for run in runs])
    equal = np.array([np.searchsorted(run, key, "right") for run in runs]) - low
    before = np.cumsum(equal) - equal
    return low + np.clip(rank - low.sum() - before, 0, equal)


def _read(descriptor: int, into: Any, offset: int) -> None:
    view = memoryview(into).cast("B") if into.size else memoryview(b"")
    done = 0
    while done < len(view):
        got = os.preadv(descriptor, [view[done : done + (1 << 30)]], offset + done)
        if not got:
            raise OSError(f"short read at {offset + done}")
        done += got


def _write(descriptor: int, values: Any, offset: int) -> None:
    view = memoryview(values).cast("B") if values.size else memoryview(b"")
    done = 0
    while done < len(view):
        done += os.pwrite(descriptor, view[done : done + (1 << 30)], offset + done)


def _sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def to_parquet(path: str, target: str) -> dict[str, Any]:
    """The keys in one column x, plain."""
    import polars as pl

    frame = pl.DataFrame({"x": np.load(path, mmap_mode="r")})
    frame.write_parquet(target, compression="uncompressed", row_group_size=1 << 20)
    return {"rows": frame.height}


def in_memory(path: str, count: int, threads: int = 2, repeats: int = 2) -> dict[str, Any]:
    """Seconds to sort the first `count` keys in memory on all cores, best of some: parted at equal ranks, then every
    part sorted in place by a thread. Faster here than sorting parts and merging them.
    """
    keys = np.load(path, mmap_mode="r")[:count]
    bounds = [count * number // threads for number in range(threads + 1)]
    best = float("inf")
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(repeats):
            given = np.array(keys)
            started = time.perf_counter()
            given.partition(bounds[1:-1])
            list(pool.map(np.ndarray.sort, np.split(given, bounds[1:-1])))
            best = min(best, time.perf_counter() - started)
    if not np.array_equal(given, np.sort(keys), equal_nan=given.dtype.kind == "f"):
        raise AssertionError("parts were not cut where they are sorted")
    return {"seconds": best, "count": count}
