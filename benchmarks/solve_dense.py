"""Dense factorizations larger than memory beside LAPACK in memory.

    python -m benchmarks.solve_dense [--cases cholesky:12000@512MiB,lu:12000@512MiB,qr:12000@512MiB,eigh:6000@256MiB] \
        [--rivals lapack|none] [--rounds 3] [--folder data/bench] [--note "what else ran"]

Each run is a child of its own, outcore's under a memory cgroup of its limit, with the page cache dropped before; LAPACK
is SciPy's, which reads the matrix into memory without a limit and overwrites it. Runs alternate; figures are of the
round with the median time. The bound is the least that a method with so much memory reads beyond one pass of input and
output, as `docs/solvers.md` states it: n³ ÷ (3 √S) elements by squares, n⁴ ÷ (3 S) by slabs.
"""

from __future__ import annotations

import argparse
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import cgroup, common, solve, solve_rivals

CASES = "cholesky:12000@512MiB,lu:12000@512MiB,qr:12000@512MiB,eigh:6000@256MiB"
COLUMNS = (
    *("solver", "seconds", "spread", "peak RSS", "read", "written", "as forecast", "beyond one pass", "÷ bound"),
    *("Gflop/s", "÷ product's", "residual"),
)
ITEM = 8
Report = dict[str, Any]


def flops(kind: str, n: int) -> float:
    """Operations of a method that has no more than it needs; of eigh those of the reduction and of the vectors."""
    return {"cholesky": 1 / 3, "lu": 2 / 3, "qr": 4 / 3, "eigh": 4 / 3 + 8 / 3 + 4}[kind] * float(n) ** 3


def bound(kind: str, n: int, limit: int) -> float | None:
    """Bytes that are read beyond one pass of input and output."""
    elements = limit / ITEM
    if kind == "eigh":
        return None
    if kind == "lu":
        return ITEM * n**4 / (3 * elements)
    return ITEM * n**3 / (3 * elements**0.5) * (1 if kind == "cholesky" else 4)


def one_pass(kind: str, n: int) -> float:
    """Bytes of a read of the input: of Cholesky's, tiles of the lower triangle."""
    return ITEM * n * n * (0.5 if kind == "cholesky" else 1.0)


def make(path: str, kind: str, n: int) -> None:
    """A random matrix; for Cholesky and eigenvalues symmetric, with a large diagonal for the first."""
    import outcore as oc

    x = oc.random.normal((n, n), seed=1)
    if kind in ("cholesky", "eigh"):
        x = (x + x.T) / 2
    if kind == "cholesky":
        x = x + oc.eye(n) * (4.0 * n**0.5)
    oc.store({path: x}, overwrite=True)


def ours(path: str, out: str, kind: str, session: Mapping[str, Any] | None = None) -> Report:
    """Seconds of the factorization into a file, its bytes beside their forecast, and the residual of a solution."""
    import outcore as oc

    with oc.Session(progress=False, **(session or {})):
        a = oc.open(path)
        n = a.shape[0]
        if kind == "eigh":
            values, vectors = oc.linalg.eigh(a)
            targets = {f"{out}/w.npy": values, f"{out}/v.npy": vectors}
            said = oc.explain(targets)
            started = time.perf_counter()
            seen = oc.store(targets)
            seconds = time.perf_counter() - started
            all_values, vector = oc.open(f"{out}/w.npy").compute(), oc.open(f"{out}/v.npy")[:, n // 2].compute()
            difference = (a @ vector).compute() - all_values[n // 2] * vector
            residual = np.abs(difference).max() / np.abs(all_values).max()
            forecast = (said.bytes_read, said.bytes_written)
            exact = forecast == (seen.bytes_read, seen.bytes_written)
        else:
            make_factor: Mapping[str, Callable[..., Any]] = {
                "cholesky": oc.linalg.cho_factor,
                "lu": oc.linalg.lu_factor,
                "qr": oc.linalg.qr_factor,
            }
            started = time.perf_counter()
            with oc.profile() as seen:
                factor = make_factor[kind](a, path=f"{out}/a.ocf")
            seconds = time.perf_counter() - started
            factor.solve(np.ones(n))
            residual, exact = factor.residual, None
    return {
        "seconds": seconds,
        "bytes_read": seen.bytes_read,
        "bytes_written": seen.bytes_written,
        "is_exact": exact,
        "residual": residual,
    }


def lapack(path: str, kind: str) -> Report:
    """SciPy's, on the matrix in memory: seconds of reading and of the factorization."""
    import scipy.linalg

    started = time.perf_counter()
    a = np.asfortranarray(np.load(path))
    read = time.perf_counter() - started
    if kind == "cholesky":
        scipy.linalg.cho_factor(a, lower=True, overwrite_a=True, check_finite=False)
    elif kind == "lu":
        scipy.linalg.lu_factor(a, overwrite_a=True, check_finite=False)
    elif kind == "qr":
        scipy.linalg.qr(a, mode="raw", overwrite_a=True, check_finite=False)
    else:
        scipy.linalg.eigh(a, overwrite_a=True, check_finite=False, driver="evd")
    return {"seconds": time.perf_counter() - started, "read_seconds": read}


def measured(target: str, given: Report, limit: int | None, options: argparse.Namespace) -> Report:
    out = options.folder / "out"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    cgroup.drop_page_cache(options.folder)
    cgroup.touch_memory()
    blas = {f"{name}_NUM_THREADS": str(solve.THREADS) for name in ("OPENBLAS", "MKL", "OMP")}
    outcome = cgroup.run_limited(f"benchmarks.solve_dense:{target}", given, limit, options.timeout, blas)
    shutil.rmtree(out, ignore_errors=True)
    seen = {"limit_bytes": limit, "limited_by": outcome.limited_by, "peak_rss_bytes": outcome.peak_rss_bytes}
    return ({"failed": outcome.reason} if outcome.reason else outcome.value) | seen


def row(name: str, kind: str, n: int, result: Report, rates: dict[str, float]) -> list[str]:
    if result.get("failed"):
        return [name, str(result["failed"]), *[""] * (len(COLUMNS) - 2)]
    rate = flops(kind, n) / result["seconds"]
    cells = [name, f"{result['seconds']:.1f}", f"{result['seconds_min']:.1f}–{result['seconds_max']:.1f}"]
    cells.append(common.show_bytes(result["peak_rss_bytes"]))
    if "bytes_read" in result:
        beyond = result["bytes_read"] - one_pass(kind, n)
        least = bound(kind, n, result["limit_bytes"])
        cells += [common.show_bytes(result["bytes_read"]), common.show_bytes(result["bytes_written"])]
        cells.append({None: "–", True: "exactly", False: "NO"}[result["is_exact"]])
        cells += [common.show_bytes(beyond), "–" if least is None else f"{beyond / least:.2f}"]
    else:
        cells += ["–"] * 5
    residual = f"{result['residual']:.1e}" if "residual" in result else "–"
    return [*cells, f"{rate / 1e9:.1f}", f"{rate / rates['product']:.2f}", residual]


def section(kind: str, n: int, limits: list[int], options: argparse.Namespace) -> tuple[str, Report]:
    path = options.folder / f"dense-{kind}-{n}.npy"
    if not path.exists():
        made = cgroup.run_limited("benchmarks.solve_dense:make", {"path": str(path), "kind": kind, "n": n})
        if made.reason:
            raise RuntimeError(made.reason)
    rates = [solve.machine_rates(options.folder)]

    def case(limit: int) -> Callable[[], Report]:
        given = {"path": str(path), "out": str(options.folder / "out"), "kind": kind, "session": solve.session(limit)}
        return lambda: measured("ours", given, limit, options)

    def probe() -> Report:
        rates.append(solve.machine_rates(options.folder))
        return {"seconds": 0.0}

    cases: dict[str, Callable[[], Report]] = {"machine": probe}
    cases |= {f"outcore, {common.show_bytes(limit)}": case(limit) for limit in limits}
    if options.rivals != "none":
        cases["LAPACK in memory"] = lambda: measured("lapack", {"path": str(path), "kind": kind}, None, options)
    results = common.alternating(cases, options.rounds)
    results.pop("machine")
    path.unlink()
    most = solve.best(rates)
    head = f"## {kind} of {n}²\n\n{solve.machine_sentence(most, len(rates))}."
    rows = [row(name, kind, n, result, most) for name, result in results.items()]
    return head + "\n\n" + common.table(COLUMNS, rows), {"rates": rates, "cases": results}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cases", default=CASES, help="kind:rows@limit by comma; cholesky, lu, qr, eigh")
    parser.add_argument("--rivals", default="lapack", choices=("lapack", "none"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--timeout", type=float, default=3600)
    parser.add_argument("--folder", type=Path, default=solve_rivals.FOLDER)
    parser.add_argument("--note", default="", help="a sentence for the record")
    parser.add_argument("--name", default="solve-dense", help="of the record")
    options = parser.parse_args()
    options.folder = options.folder.resolve()
    options.folder.mkdir(parents=True, exist_ok=True)
    limits: dict[tuple[str, int], list[int]] = {}
    for text in options.cases.split(","):
        kind, n, limit = solve.parsed(text)
        if kind not in ("cholesky", "lu", "qr", "eigh") or limit is None:
            parser.error(f"{text!r} is no kind:rows@limit")
        limits.setdefault((kind, n), []).append(limit)
    sections, figures = [options.note] if options.note else [], {}
    for (kind, n), of in limits.items():
        print(f"{kind} {n}:", flush=True)
        text, figures[f"{kind}:{n}"] = section(kind, n, of, options)
        sections.append(text)
    sections.append(
        "Seconds of outcore are those of the factorization into a file (of eigh, values and vectors), whose forecast "
        "is exact where one is asked for; LAPACK's are those of reading the matrix and of the factorization in memory."
    )
    common.write_record(options.name, "Dense factorizations", options.folder, sections, figures, ("scipy",))


if __name__ == "__main__":
    main()
