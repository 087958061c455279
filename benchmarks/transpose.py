"""A transpose to Zarr against one read and one write of the same bytes, measured in the same run.

python -m benchmarks.transpose [--side 20000] [--limit 512MiB] [--repeats 5]
"""

from __future__ import annotations

import argparse
import os
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import cgroup, common, data, probes


def one_read_one_write(path: Path, folder: Path) -> dict[str, Any]:
    """Seconds to read the file once and to write as many bytes once and sync them, 4 MiB blocks, O_DIRECT."""
    size = path.stat().st_size // probes.BLOCK_BYTES * probes.BLOCK_BYTES
    descriptor = probes.open_direct(path, os.O_RDONLY)
    try:
        read = min(probes.sweep(descriptor, size, threads, os.preadv) for threads in (1, 2))
    finally:
        os.close(descriptor)
    write = size / probes.write_bandwidth(folder, size, threads=(1, 2))
    return {"seconds": read + write, "read_seconds": read, "write_seconds": write}


def ours(path: Path, out: Path, limit: int) -> dict[str, Any]:
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    cgroup.drop_page_cache(out.parent)
    given = {"program": "transpose", "inputs": {"A": str(path)}, "out": str(out)}
    session = {"memory_limit": limit, "threads": 2}
    outcome = cgroup.run_limited("benchmarks.ours:run", given | {"session": session}, limit)
    if outcome.reason:
        return {"failed": outcome.reason}
    return outcome.value | {"peak_rss_bytes": outcome.peak_rss_bytes, "limited_by": outcome.limited_by}


def numpy_tiles(path: Path, out: Path, tile: int = 2048) -> dict[str, Any]:
    """The plain way: square tiles of one memory map copied into another."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    cgroup.drop_page_cache(out.parent)
    outcome = cgroup.run_limited("benchmarks.transpose:copy_tiles", {"path": str(path), "out": str(out), "tile": tile})
    return {"failed": outcome.reason} if outcome.reason else outcome.value


def copy_tiles(path: str, out: str, tile: int) -> dict[str, Any]:
    a = np.load(path, mmap_mode="r")
    started = time.perf_counter()
    target = np.lib.format.open_memmap(Path(out) / "T.npy", "w+", a.dtype, a.shape[::-1])
    for row in range(0, a.shape[0], tile):
        for column in range(0, a.shape[1], tile):
            target[column : column + tile, row : row + tile] = a[row : row + tile, column : column + tile].T
    target.flush()
    return {"seconds": time.perf_counter() - started}


def spot_check(path: Path, out: Path) -> bool:
    import zarr

    a, side = np.load(path, mmap_mode="r"), np.load(path, mmap_mode="r").shape[0]
    stored: Any = zarr.open_array(str(out / "T.zarr"), mode="r")
    return all(np.array_equal(stored[:, place], a[place]) for place in (0, side // 2, side - 1))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--side", type=int, default=20000)
    parser.add_argument("--limit", type=common.parse_size, default=512 * common.MIB)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=Path("data/bench"))
    options = parser.parse_args()
    folder = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    path, out = folder / f"square-{options.side}.npy", folder / "out"
    if not path.exists():
        data.write_npy(path, (options.side, options.side), 7)
    # outcore goes last in a round, so that its output is still there for the check.
    results = common.alternating(
        {
            "one read + one write": lambda: one_read_one_write(path, folder),
            "NumPy, tiles of memory maps, no limit": lambda: numpy_tiles(path, out),
            "outcore": lambda: ours(path, out, options.limit),
        },
        options.repeats,
    )
    floor = results["one read + one write"]["seconds"]
    rows = [
        [name, result["failed"], "", "", ""]
        if result.get("failed")
        else [
            name,
            f"{result['seconds']:.2f}",
            f"{result['seconds'] / floor:.2f}",
            common.show_bytes(result.get("bytes_read")),
            common.show_bytes(result.get("bytes_written")),
        ]
        for name, result in results.items()
    ]
    text = f"{options.side}² float64 to Zarr, limit {common.show_bytes(options.limit)}; wanted: ≤ 1.30 × the floor.\n\n"
    text += common.table(["case", "seconds", "× floor", "read", "written"], rows)
    if "failed" not in results["outcore"]:
        text += f"\n\nThree columns equal the source's rows: {'yes' if spot_check(path, out) else 'NO'}."
    shutil.rmtree(out, ignore_errors=True)
    common.write_record("transpose", "A transpose larger than memory", folder, [text], results, ("zarr",))


if __name__ == "__main__":
    main()
