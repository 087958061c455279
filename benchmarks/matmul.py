"""A @ B with both sides larger than memory, against the rate of the same product in memory.

python -m benchmarks.matmul [--side 12000] [--limit 1GiB] [--repeats 5]
"""

from __future__ import annotations

import argparse
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import cgroup, common, data, probes

BLAS = {"OPENBLAS_NUM_THREADS": "2"}


def numpy_in_memory(side: int) -> dict[str, Any]:
    random = np.random.default_rng(0)
    a, b = random.random((side, side)), random.random((side, side))
    started = time.perf_counter()
    np.matmul(a, b)
    seconds = time.perf_counter() - started
    return {"seconds": seconds, "flops_per_second": 2 * side**3 / seconds}


def run_child(target: str, given: dict[str, Any], limit: int | None, folder: Path) -> dict[str, Any]:
    cgroup.drop_page_cache(folder)
    outcome = cgroup.run_limited(target, given, limit, environment=BLAS)
    if outcome.reason:
        return {"failed": outcome.reason}
    return {"peak_rss_bytes": outcome.peak_rss_bytes, "limited_by": outcome.limited_by} | outcome.value


def spot_check(folder: Path, side: int) -> float:
    """Largest relative difference of a few rows of C from NumPy's."""
    import zarr

    a, b = (np.load(folder / f"{name}-{side}.npy", mmap_mode="r") for name in "AB")
    stored: Any = zarr.open_array(str(folder / "out" / "C.zarr"), mode="r")
    picked = [0, side // 2, side - 1]
    expected = a[picked] @ b
    found = np.stack([stored[row] for row in picked])
    return float(np.max(np.abs(found - expected) / np.abs(expected)))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--side", type=int, default=12000)
    parser.add_argument("--limit", type=common.parse_size, default=common.GIB)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=Path("data/bench"))
    options = parser.parse_args()
    folder, side = options.folder.resolve(), options.side
    folder.mkdir(parents=True, exist_ok=True)
    inputs = {name: str(folder / f"{name}-{side}.npy") for name in "AB"}
    for seed, path in enumerate(map(Path, inputs.values())):
        if not path.exists():
            data.write_npy(path, (side, side), seed)
    out = folder / "out"
    out.mkdir(exist_ok=True)
    stored = {"program": "product", "inputs": inputs, "out": str(out)}
    stored["session"] = {"memory_limit": options.limit, "threads": 2}
    roomy = {"side": side, "session": {"memory_limit": 5 * 8 * side**2 + common.GIB, "threads": 2}}
    results = common.alternating(
        {
            "outcore, on disk": lambda: run_child("benchmarks.ours:run", stored, options.limit, folder),
            "outcore, in memory": lambda: run_child("benchmarks.ours:product_in_memory", roomy, None, folder),
            "NumPy, in memory": lambda: run_child("benchmarks.matmul:numpy_in_memory", {"side": side}, None, folder),
        },
        options.repeats,
    )
    memory = results["outcore, in memory"].get("seconds")
    rows = []
    for name, result in results.items():
        if result.get("failed"):
            rows.append([name, result["failed"], "", "", "", ""])
            continue
        rate = 2 * side**3 / result["seconds"] / 1e9
        share = f"{memory / result['seconds']:.2f}" if memory else "–"
        moved = [common.show_bytes(result.get(name)) for name in ("bytes_read", "bytes_written")]
        rows.append([name, f"{result['seconds']:.2f}", f"{rate:.1f}", share, *moved])
    text = f"{side}³ float64, limit {common.show_bytes(options.limit)}; wanted: on disk ≥ 0.80 of in memory.\n\n"
    text += common.table(["case", "seconds", "Gflop/s", "of in memory", "read", "written"], rows)
    if "failed" not in results["outcore, on disk"]:
        results["difference"] = {"rows": spot_check(folder, side)}
        text += f"\n\nThree rows of C differ from NumPy's by {results['difference']['rows']:.1e} relative."
    results["machine"] = {"read_bandwidth": probes.read_bandwidth(Path(inputs["A"])), "gemm_peak": probes.gemm_peak()}
    shutil.rmtree(out, ignore_errors=True)
    common.write_record("matmul", "A product larger than memory", folder, [text], results)


if __name__ == "__main__":
    main()
