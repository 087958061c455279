"""Statistics and learning on a table larger than memory, beside an expert's streaming NumPy on as many threads.

    python -m benchmarks.learning [--size 4GiB] [--limit 1GiB] [--only summary,gmm] [--repeats 5]

Ours and the expert's run in children under a cgroup limit, in turns, on the same file, past the page cache; results are
held against each other. The bound of a program is the larger of its sweeps at the disk's rate and its products at the
rate of products in memory, both measured in every round.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import cgroup, common, data, probes

COLUMNS = 32
CLUSTERS = 10
COMPONENTS = 4
SEED = 20
BLOCK_ROWS = 1 << 14
# Sweeps over the table, and multiply-adds of products for each row and sweep.
SWEEPS = {"summary": 1, "correlation": 1, "svd": 1, "kmeans": 7, "gmm": 4}
PRODUCTS = {
    "summary": 0,
    "correlation": COLUMNS * COLUMNS,
    "svd": COLUMNS * COLUMNS,
    "kmeans": 2 * CLUSTERS * COLUMNS,
    "gmm": 2 * COMPONENTS * COLUMNS * COLUMNS,
}

Numbers = Any


def begin() -> tuple[Numbers, Numbers]:
    """Centers to start from, and those of the mixture."""
    random = np.random.default_rng(SEED)
    return random.random((CLUSTERS, COLUMNS)), random.random((COMPONENTS, COLUMNS))


# -- ours: each gives a mapping of small results ----------------------------------------------------------------------


def ours_summary(oc: Any, x: Any) -> dict[str, Numbers]:
    names = ("min", "max", "mean", "l1", "l2", "variance", "nonzeros", "skewness", "kurtosis", "missing")
    found = oc.stats.summary(x)
    return dict(zip(names, oc.compute(*(getattr(found, name) for name in names)), strict=True))


def ours_correlation(oc: Any, x: Any) -> dict[str, Numbers]:
    return {"correlation": oc.corrcoef(x, rowvar=False).compute()}


def ours_svd(oc: Any, x: Any) -> dict[str, Numbers]:
    from outcore.learn import TruncatedSVD

    return {"values": TruncatedSVD(10, algorithm="gram").fit(x).singular_values_}


def ours_kmeans(oc: Any, x: Any) -> dict[str, Numbers]:
    from outcore.learn import KMeans

    return {"centers": KMeans(CLUSTERS, init=begin()[0], max_iter=5, tol=0.0).fit(x).cluster_centers_}


def ours_gmm(oc: Any, x: Any) -> dict[str, Numbers]:
    from outcore.learn import GaussianMixture

    eye = np.broadcast_to(np.eye(COLUMNS) * 12.0, (COMPONENTS, COLUMNS, COLUMNS))
    weights = np.full(COMPONENTS, 1 / COMPONENTS)
    starts = {"weights_init": weights, "means_init": begin()[1], "precisions_init": eye}
    return {"means": GaussianMixture(COMPONENTS, max_iter=3, tol=0.0, **starts).fit(x).means_}


OURS: dict[str, Callable[[Any, Any], dict[str, Numbers]]] = {
    "summary": ours_summary,
    "correlation": ours_correlation,
    "svd": ours_svd,
    "kmeans": ours_kmeans,
    "gmm": ours_gmm,
}


def run_ours(program: str, path: str, session: Mapping[str, Any]) -> dict[str, Any]:
    """In the child: "seconds" covers opening, planning and running, not the import of scikit-learn."""
    import warnings

    import outcore as oc
    import outcore.learn

    warnings.simplefilter("ignore")
    with oc.Session(progress=False, **session) as current:
        started = time.perf_counter()
        found = OURS[program](oc, oc.open(path))
        seconds = time.perf_counter() - started
        counted = current.counters()
    return {
        "seconds": seconds,
        "bytes_read": counted["bytes_read"],
        "results": {name: value.tolist() for name, value in found.items()},
    }


# -- the expert's: blocks of rows on as many threads, BLAS on one each ------------------------------------------------


def sweep(path: str, threads: int, work: Callable[[Numbers], Any], combine: Callable[[Any, Any], Any]) -> Any:
    """`work` on every block of rows, what it gives combined; each thread reads and computes its own blocks."""
    table = np.load(path, mmap_mode="r")
    rows, start = len(table), table.offset
    del table

    def every(first: int) -> Any:
        total = None
        with open(path, "rb", buffering=0) as file:
            for begins in range(first * BLOCK_ROWS, rows, threads * BLOCK_ROWS):
                count = min(BLOCK_ROWS, rows - begins)
                file.seek(start + begins * COLUMNS * 8)
                block = np.fromfile(file, np.float64, count * COLUMNS).reshape(count, COLUMNS)
                part = work(block)
                total = part if total is None else combine(total, part)
        return total

    with ThreadPoolExecutor(threads) as pool:
        parts = [part for part in pool.map(every, range(threads)) if part is not None]
    total = parts[0]
    for part in parts[1:]:
        total = combine(total, part)
    return total


def added(a: Any, b: Any) -> Any:
    return tuple(x + y for x, y in zip(a, b, strict=True))


def expert_summary(path: str, threads: int) -> dict[str, Numbers]:
    shift = np.load(path, mmap_mode="r")[:16].mean(axis=0)

    def work(block: Numbers) -> Any:
        apart = block - shift
        square = apart * apart
        sums = [part.sum(axis=0) for part in (apart, square, square * apart, square * square)]
        sums += [np.abs(block).sum(axis=0), (block * block).sum(axis=0)]
        counts = [np.count_nonzero(block, axis=0), np.isnan(block).sum(axis=0), np.asarray(len(block))]
        return block.min(axis=0), block.max(axis=0), sums, counts

    def combine(a: Any, b: Any) -> Any:
        return np.minimum(a[0], b[0]), np.maximum(a[1], b[1]), added(a[2], b[2]), added(a[3], b[3])

    least, most, sums, counts = sweep(path, threads, work, combine)
    n = counts[2]
    m1, m2, m3, m4 = (part / n for part in sums[:4])
    second = m2 - m1**2
    third, fourth = m3 - 3 * m1 * m2 + 2 * m1**3, m4 - 4 * m1 * m3 + 6 * m1**2 * m2 - 3 * m1**4
    return {
        "min": least,
        "max": most,
        "mean": shift + m1,
        "l1": sums[4],
        "l2": np.sqrt(sums[5]),
        "variance": second * n / (n - 1),
        "nonzeros": counts[0],
        "skewness": third / second**1.5,
        "kurtosis": fourth / second**2 - 3,
        "missing": counts[1],
    }


def expert_correlation(path: str, threads: int) -> dict[str, Numbers]:
    shift = np.load(path, mmap_mode="r")[:16].mean(axis=0)

    def work(block: Numbers) -> Any:
        apart = block - shift
        return apart.T @ apart, apart.sum(axis=0), np.asarray(len(block))

    products, sums, count = sweep(path, threads, work, added)
    covariance = products - np.outer(sums, sums) / count
    deviation = np.sqrt(np.diag(covariance))
    return {"correlation": covariance / np.outer(deviation, deviation)}


def expert_svd(path: str, threads: int) -> dict[str, Numbers]:
    (gram,) = sweep(path, threads, lambda block: (block.T @ block,), added)
    return {"values": np.sqrt(np.linalg.eigvalsh(gram)[::-1][:10])}


def expert_kmeans(path: str, threads: int) -> dict[str, Numbers]:
    centers = begin()[0]
    for _ in range(5):
        lengths = (centers**2).sum(axis=1)

        def work(block: Numbers, centers: Numbers = centers, lengths: Numbers = lengths) -> Any:
            nearest = (lengths - 2 * (block @ centers.T)).argmin(axis=1)
            member = np.zeros((len(block), CLUSTERS))
            member[np.arange(len(block)), nearest] = 1
            return member.T @ block, member.sum(axis=0)

        sums, counts = sweep(path, threads, work, added)
        centers = sums / counts[:, None]
    return {"centers": centers}


def expert_gmm(path: str, threads: int) -> dict[str, Numbers]:
    means = begin()[1]
    factors = np.broadcast_to(np.eye(COLUMNS) * np.sqrt(12.0), (COMPONENTS, COLUMNS, COLUMNS))
    weights = np.full(COMPONENTS, 1 / COMPONENTS)
    for _ in range(3):
        constant = np.log(weights) + np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)

        def work(
            block: Numbers, means: Numbers = means, factors: Numbers = factors, constant: Numbers = constant
        ) -> Any:
            joint = np.empty((len(block), COMPONENTS))
            for k in range(COMPONENTS):
                white = block @ factors[k] - means[k] @ factors[k]
                joint[:, k] = constant[k] - 0.5 * np.einsum("ij,ij->i", white, white)
            parts = np.exp(joint - joint.max(axis=1, keepdims=True))
            shares = parts / parts.sum(axis=1, keepdims=True)
            scatter = np.stack([(block * shares[:, k : k + 1]).T @ block for k in range(COMPONENTS)])
            return shares.sum(axis=0), shares.T @ block, scatter

        heavy, sums, scatter = sweep(path, threads, work, added)
        weights, means = heavy / heavy.sum(), sums / heavy[:, None]
        spread = scatter / heavy[:, None, None] - means[:, :, None] * means[:, None, :] + 1e-6 * np.eye(COLUMNS)
        factors = np.linalg.inv(np.linalg.cholesky(spread)).transpose(0, 2, 1)
    return {"means": means}


EXPERTS = {
    "summary": expert_summary,
    "correlation": expert_correlation,
    "svd": expert_svd,
    "kmeans": expert_kmeans,
    "gmm": expert_gmm,
}


def run_expert(program: str, path: str, threads: int) -> dict[str, Any]:
    """In the child, whose BLAS has one thread."""
    started = time.perf_counter()
    found = EXPERTS[program](path, threads)
    seconds = time.perf_counter() - started
    return {"seconds": seconds, "results": {name: np.asarray(value).tolist() for name, value in found.items()}}


# -- bounds and records ------------------------------------------------------------------------------------------------


def run_products(threads: int) -> dict[str, float]:
    """In a child whose BLAS has one thread: the rate of products of tall blocks with narrow ones, on many threads."""
    block = np.random.default_rng(0).random((BLOCK_ROWS, COLUMNS))

    def work(_: int) -> None:
        for _ in range(40):
            block.T @ block

    with ThreadPoolExecutor(threads) as pool:
        started = time.perf_counter()
        list(pool.map(work, range(threads)))
    seconds = time.perf_counter() - started
    return {"seconds": seconds, "per_second": 40 * threads * block.size * COLUMNS / seconds}


def case(target: str, arguments: Mapping[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    cgroup.drop_page_cache(options.folder)
    outcome = cgroup.run_limited(f"benchmarks.learning:{target}", dict(arguments), options.limit, options.timeout)
    if outcome.reason:
        return {"failed": outcome.reason}
    return outcome.value | {"peak_rss_bytes": outcome.peak_rss_bytes, "device_read_bytes": outcome.io["read_bytes"]}


def compared(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> str | None:
    for name, value in theirs["results"].items():
        if not np.allclose(ours["results"][name], value, rtol=1e-6, atol=1e-8):
            return f"{name} differs from the expert's"
    return None


def cases(name: str, path: Path, options: argparse.Namespace) -> dict[str, Callable[[], dict[str, Any]]]:
    session = {"memory_limit": options.limit, "threads": options.threads, "scratch": [str(options.folder)]}
    return {
        f"{name} ours": lambda: case("run_ours", {"program": name, "path": str(path), "session": session}, options),
        f"{name} expert": lambda: case(
            "run_expert", {"program": name, "path": str(path), "threads": options.threads}, options
        ),
    }


def row(name: str, results: Mapping[str, Any], size: int) -> list[str]:
    ours, theirs = results[f"{name} ours"], results[f"{name} expert"]
    if ours.get("failed") or theirs.get("failed"):
        return [name, str(ours.get("failed")), str(theirs.get("failed")), *[""] * (len(HEADER) - 3)]
    bandwidth, rate = results["disk"]["bytes_per_second"], results["products"]["per_second"]
    products = SWEEPS[name] * PRODUCTS[name] * size / (8 * COLUMNS)
    bound = max(ours["bytes_read"] / bandwidth, products / rate)
    return [
        name,
        f"{ours['seconds']:.2f} ({ours['seconds_min']:.2f}–{ours['seconds_max']:.2f})",
        f"{theirs['seconds']:.2f} ({theirs['seconds_min']:.2f}–{theirs['seconds_max']:.2f})",
        f"{theirs['seconds'] / ours['seconds']:.2f} ×",
        f"{ours['seconds'] / bound:.2f} × {bound:.2f} s",
        f"{ours['bytes_read'] / size:.3f}",
        common.show_bytes(ours["peak_rss_bytes"]),
        compared(ours, theirs) or "the same",
    ]


HEADER = ["program", "ours, s", "expert, s", "faster by", "time over bound", "sweeps read", "RSS", "results"]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--size", type=common.parse_size, default=4 * common.GIB)
    parser.add_argument("--limit", type=common.parse_size, default=common.GIB)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--timeout", type=float, default=900)
    parser.add_argument("--only", default=",".join(OURS), help="programs by comma")
    parser.add_argument("--keep", action="store_true", help="keep the table for the next time")
    parser.add_argument("--folder", type=Path, default=Path("data/bench"))
    options = parser.parse_args()
    options.folder = options.folder.resolve()
    options.folder.mkdir(parents=True, exist_ok=True)
    names = [name for name in options.only.split(",") if name]
    if set(names) - set(OURS):
        parser.error(f"--only {options.only}: the programs are {', '.join(OURS)}")
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # of the children: each of their threads computes by itself
    path = options.folder / f"rows-{options.size}.npy"
    if not path.exists():
        data.write_npy(path, (options.size // (8 * COLUMNS), COLUMNS), SEED)

    def disk() -> dict[str, Any]:
        cgroup.drop_page_cache(options.folder)
        return dict(probes.read_disk(str(path), options.threads))

    def products() -> dict[str, Any]:
        return case("run_products", {"threads": options.threads}, options)

    all_cases: dict[str, Callable[[], dict[str, Any]]] = {"disk": disk, "products": products}
    for name in names:
        all_cases |= cases(name, path, options)
    results = common.alternating(all_cases, options.repeats)
    shutil.rmtree(options.folder / "out", ignore_errors=True)
    if not options.keep:
        path.unlink(missing_ok=True)
    about = (
        f"{common.show_bytes(options.size)} of float64 in {COLUMNS} columns, limit {common.show_bytes(options.limit)}, "
        f"{options.threads} threads each; k-means of {CLUSTERS} clusters, 5 iterations, mixture of {COMPONENTS} full "
        "components, 3 iterations, both from given starts. Ours checks its data in a sweep of its own before both. The "
        "disk "
        f"read {results['disk']['bytes_per_second'] / 1e9:.2f} GB/s, products ran at "
        f"{results['products']['per_second'] / 1e9:.1f}·10⁹ multiply-adds per second."
    )
    rows = [row(name, results, options.size) for name in names]
    common.write_record(
        "learning", "Statistics and learning", options.folder, [about, common.table(HEADER, rows)], results
    )
    if any(result.get("failed") for result in results.values()):
        sys.exit(1)


if __name__ == "__main__":
    main()
