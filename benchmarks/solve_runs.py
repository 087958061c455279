"""The rivals' side of a process: each solver takes a saved system through analysis, factorization and solution.

`run` is called in a child of its own (`solve_rivals.run_rival`). The matrix is in memory in the solver's own form
before anything is measured; what SciPy or NumPy need besides is what `resident_before_bytes` tells.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import child
from benchmarks.solve_systems import GENERAL, SPD, SYMMETRIC

Numbers = Any
Report = dict[str, Any]
ENTRIES = 1 << 22  # of A that the residual reads at once
MKL_LIBRARY = "libmkl_rt.so*"
METIS_LIBRARY = "libmetis.so.5"
MUMPS_ORDERINGS = {"amd": 0, "scotch": 3, "pord": 4, "metis": 5, "qamd": 6, "auto": 7}
MUMPS_GIVEN = 1
CHOLMOD_ORDERINGS = {"auto": -1, "amd": 2, "metis": 3}
CHOLMOD_NAMES = {value: name for name, value in CHOLMOD_ORDERINGS.items()}
PARDISO_ORDERINGS = {"amd": 0, "metis": 2, "metis-parallel": 3}
SUPERLU_THRESHOLD = 0.1
PARDISO_CORE_BYTES = 2 * 10**9  # MKL_PARDISO_OOC_MAX_CORE_SIZE's default
PARDISO_ERRORS = {
    -1: "input inconsistent",
    -2: "not enough memory",
    -3: "reordering",
    -4: "zero pivot, numerical factorization or refinement",
    -7: "diagonal matrix is singular",
    -8: "32-bit integer overflow",
    -9: "not enough memory for out of core",
    -10: "cannot open the files out of core",
    -11: "read or write of the files out of core",
    -12: "pardiso_64 called from a 32-bit library",
}


class SolverError(Exception):
    """What a solver said instead of solving."""


class Phases:
    """Seconds, and bytes of files, of each phase."""

    def __init__(self) -> None:
        Path("/proc/self/clear_refs").write_text("5")  # VmHWM begins anew
        self.report: Report = {"seconds": 0.0, "resident_before_bytes": child.status_bytes("VmRSS")}
        self.began = child.io_counters()

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        before, started = child.io_counters(), time.perf_counter()
        yield
        seconds, after = time.perf_counter() - started, child.io_counters()
        self.report["seconds"] += seconds
        self.report[f"{name}_seconds"] = seconds
        self.report[f"{name}_peak_bytes"] = child.peak_rss_bytes()
        for key in ("rchar", "wchar", "read_bytes", "write_bytes"):
            self.report[f"{name}_{key}"] = after[key] - before[key]

    def end(self) -> Report:
        """rchar and wchar went through system calls, of them read_bytes and write_bytes to or from the device."""
        after = child.io_counters()
        io = {key: after[key] - self.began[key] for key in ("rchar", "wchar", "read_bytes", "write_bytes")}
        return self.report | io | {"peak_rss_bytes": child.peak_rss_bytes()}


def run(solver: str, folder: str, kind: str, options: dict[str, Any]) -> Report:
    """One rival's whole run: what it measured, what the solver said, and the scaled residual."""
    path = Path(folder)
    solve = {"mumps": mumps, "pardiso": pardiso, "cholmod": cholmod, "superlu": superlu, "lapack": lapack}[solver]
    x, report = solve(path, kind, **options)
    return report | {"residual": residual(path, x)}


def residual(path: Path, x: Numbers) -> float:
    """|b - A x| / (|A| |x| + |b|), in the largest norm."""
    b = np.load(path / "b.npy")
    worst, largest = 0.0, 0.0
    if (path / "a.npy").exists():
        a, left = np.load(path / "a.npy", mmap_mode="r"), b.copy()
        sums, width = np.zeros(len(b)), max(1, ENTRIES // len(b))
        for low in range(0, len(b), width):
            part = np.asarray(a[:, low : low + width])
            left -= part @ x[low : low + width]
            sums += np.abs(part).sum(axis=1)
        worst, largest = np.abs(left).max(), sums.max()
    else:
        indptr, indices, data = csr(path, "full", mmap_mode="r")
        for low, high in blocks(indptr):
            begin, end = indptr[low], indptr[high]
            rows = np.repeat(np.arange(high - low), np.diff(indptr[low : high + 1]))
            values = data[begin:end]
            products = np.bincount(rows, values * x[indices[begin:end]], minlength=high - low)
            worst = max(worst, np.abs(b[low:high] - products).max())
            largest = max(largest, np.bincount(rows, np.abs(values), minlength=high - low).max())
    return float(worst / (largest * np.abs(x).max() + np.abs(b).max()))


def blocks(indptr: Numbers) -> Iterator[tuple[int, int]]:
    """Ranges of rows with about ENTRIES entries each."""
    low, n = 0, len(indptr) - 1
    while low < n:
        high = min(n, max(low + 1, int(np.searchsorted(indptr, indptr[low] + ENTRIES, "right")) - 1))
        yield low, high
        low = high


def csr(path: Path, name: str, mmap_mode: Any = None) -> tuple[Numbers, Numbers, Numbers]:
    indptr, indices, data = (
        np.load(path / f"{name}-{part}.npy", mmap_mode=mmap_mode) for part in ("indptr", "indices", "data")
    )
    return indptr, indices, data


def pointer(array: Numbers) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


# -- MUMPS ------------------------------------------------------------------------------------------------------------


def mumps(
    path: Path, kind: str, library: str, ordering: str, scratch: str | None, relax: int = 20
) -> tuple[Numbers, Report]:
    """Out of core with `scratch`. Debian's MUMPS has no METIS: the ordering "metis" is METIS_NodeND's, given to it."""
    driver = ctypes.CDLL(library)
    driver.mumps_new.restype = driver.mumps_version.restype = ctypes.c_void_p
    driver.mumps_infog.restype = driver.mumps_icntl.restype = ctypes.POINTER(ctypes.c_int)
    driver.mumps_rinfog.restype = ctypes.POINTER(ctypes.c_double)
    indptr, columns, values = csr(path, "full" if kind == GENERAL else "half")
    n, entries = len(indptr) - 1, len(values)
    rows = np.repeat(np.arange(1, n + 1, dtype=np.int32), np.diff(indptr))
    del indptr
    columns += 1
    x = np.load(path / "b.npy")
    places = np.zeros(n, np.int32)
    symmetric = {GENERAL: 0, SPD: 1, SYMMETRIC: 2}[kind]
    matrix = (ctypes.c_int64(entries), pointer(rows), pointer(columns), pointer(values))
    state = ctypes.c_void_p(driver.mumps_new(symmetric, n, *matrix, (scratch or "").encode()))
    icntl, infog, rinfog = (getattr(driver, f"mumps_{name}")(state) for name in ("icntl", "infog", "rinfog"))
    icntl[6] = MUMPS_GIVEN if ordering == "metis" else MUMPS_ORDERINGS[ordering]
    icntl[13], icntl[21] = relax, int(scratch is not None)

    def job(number: int) -> None:
        driver.mumps_run(state, number, pointer(x))
        if infog[0] < 0:
            raise SolverError(f"MUMPS: INFOG(1) = {infog[0]}, INFOG(2) = {infog[1]}")

    phases = Phases()
    with phases.phase("analysis"):
        if ordering == "metis":
            places[:] = nested_dissection(*csr(path, "full", mmap_mode="r")[:2]) + 1
            driver.mumps_order(state, pointer(places))
        job(1)
    phases.report |= {"told_incore_bytes": infog[25] * 10**6, "told_outofcore_bytes": infog[26] * 10**6}
    with phases.phase("factor"):
        job(2)
    with phases.phase("solve"):
        job(3)
    phases.report |= {
        "version": ctypes.string_at(driver.mumps_version()).decode(),
        "ordering": {0: "amd", 1: "metis", 2: "amf", 3: "scotch", 4: "pord", 6: "qamd"}.get(infog[6], infog[6]),
        "factor_entries": infog[28] if infog[28] >= 0 else -infog[28] * 10**6,
        "flops": rinfog[2],
        "delayed_pivots": infog[12],
        "negative_pivots": infog[11],
    }
    report = phases.end()
    driver.mumps_run(state, -2, None)
    return x, report


def nested_dissection(indptr: Numbers, indices: Numbers) -> Numbers:
    """Where METIS_NodeND, with its defaults, puts each row of a pattern, which A + Aᵀ makes symmetric if need be."""
    metis = ctypes.CDLL(METIS_LIBRARY)
    n = len(indptr) - 1
    rows = np.repeat(np.arange(n, dtype=np.int32), np.diff(indptr))
    rows, columns = rows[rows != indices], np.asarray(indices)[rows != indices]
    begins = np.zeros(n + 1, np.int32)
    if not _same_transposed(rows, columns, n):
        pairs = np.unique(np.concatenate([rows.astype(np.int64) * n + columns, columns.astype(np.int64) * n + rows]))
        rows, columns = (pairs // n).astype(np.int32), (pairs % n).astype(np.int32)
    np.cumsum(np.bincount(rows, minlength=n), out=begins[1:])
    del rows
    order, places = np.empty(n, np.int32), np.empty(n, np.int32)
    count = ctypes.c_int(n)
    code = metis.METIS_NodeND(
        ctypes.byref(count), pointer(begins), pointer(columns), None, None, pointer(order), pointer(places)
    )
    if code != 1:
        raise SolverError(f"METIS_NodeND gave {code}")
    return places


def _same_transposed(rows: Numbers, columns: Numbers, n: int) -> bool:
    """Whether a sorted pattern is symmetric, by sums of a random function of each entry."""
    left, right = np.random.default_rng(0).standard_normal((2, n))
    one, other = (np.bincount(a, right[b] * left[b], minlength=n) for a, b in ((rows, columns), (columns, rows)))
    return bool(np.allclose(one, other, atol=1e-9))


# -- MKL PARDISO ------------------------------------------------------------------------------------------------------


def pardiso(
    path: Path,
    kind: str,
    ordering: str,
    scratch: str | None,
    limit_bytes: int | None = None,
    core_bytes: int | None = None,
) -> tuple[Numbers, Report]:
    """Out of core with `scratch`; then it may take `core_bytes` for factors, else what the analysis leaves of the limit
    (its own estimate of the least, iparm[62], is a third of what it takes without an error), else its default.

    Indices of 32 bits, as its users have them. Pivots are not searched for beyond a supernode: small ones are perturbed
    and the solution refined, twice at most, as by default; matchings and scalings are on where A is not definite.
    """
    mkl = ctypes.CDLL(str(sorted(Path(sys.prefix, "lib").glob(MKL_LIBRARY))[0]))
    indptr, indices, values = csr(path, "full" if kind == GENERAL else "half")
    b = np.load(path / "b.npy")
    x, n = np.zeros_like(b), len(b)
    memory, iparm, given = np.zeros(64, np.int64), np.zeros(64, np.int32), np.zeros(n, np.int32)
    iparm[[0, 1, 17, 18, 34]] = 1, PARDISO_ORDERINGS[ordering], -1, -1, 1
    if kind != SPD:
        iparm[[9, 10, 12]] = 13 if kind == GENERAL else 8, 1, 1
    if scratch is not None:
        iparm[59] = 2
        os.environ["MKL_PARDISO_OOC_PATH"] = scratch  # a folder
        os.environ["MKL_PARDISO_OOC_MAX_SWAP_SIZE"] = "0"
        os.environ["MKL_PARDISO_OOC_KEEP_FILE"] = "1"
    mtype = {GENERAL: 11, SPD: 2, SYMMETRIC: -2}[kind]

    def job(phase: int) -> None:
        error = ctypes.c_int(0)
        one, order, messages = ctypes.c_int(1), ctypes.c_int(n), ctypes.c_int(0)
        mkl.pardiso(
            *(pointer(memory), ctypes.byref(one), ctypes.byref(one), ctypes.byref(ctypes.c_int(mtype))),
            *(ctypes.byref(ctypes.c_int(phase)), ctypes.byref(order), pointer(values), pointer(indptr)),
            *(pointer(indices), pointer(given), ctypes.byref(one), pointer(iparm), ctypes.byref(messages)),
            *(pointer(b), pointer(x), ctypes.byref(error)),
        )
        if error.value and phase > 0:
            raise SolverError(f"PARDISO, phase {phase}: {error.value} ({PARDISO_ERRORS.get(error.value, 'unknown')})")

    phases = Phases()
    with phases.phase("analysis"):
        job(11)
    told = iparm.astype(np.int64) * 1024
    phases.report |= {"told_incore_bytes": int(max(told[14], told[15] + told[16]))}
    phases.report |= {"told_outofcore_bytes": int(told[62])}
    if scratch is not None:  # read when the factorization begins
        if core_bytes is None:
            core_bytes = PARDISO_CORE_BYTES if limit_bytes is None else _core(limit_bytes)
        os.environ["MKL_PARDISO_OOC_MAX_CORE_SIZE"] = str(core_bytes // 10**6)
    with phases.phase("factor"):
        job(22)
    with phases.phase("solve"):
        job(33)
    phases.report |= {
        "ordering": ordering,
        "factor_entries": int(iparm[17]) % (1 << 32),
        "flops": int(iparm[18]) % (1 << 32) * 1e6,
        "perturbed_pivots": int(iparm[13]),
        "refinements": int(iparm[6]),
        "negative_pivots": int(iparm[22]),
        "core_bytes": core_bytes,
    }
    report = phases.end()
    job(-1)
    return x, report


def _core(limit_bytes: int) -> int:
    return max(0, int(0.9 * (limit_bytes - child.status_bytes("VmRSS"))))


# -- CHOLMOD ----------------------------------------------------------------------------------------------------------


def cholmod(path: Path, kind: str, library: str, ordering: str) -> tuple[Numbers, Report]:
    """Supernodal L Lᵀ in memory."""
    if kind != SPD:
        raise SolverError("CHOLMOD: A must be positive definite")
    driver = ctypes.CDLL(library)
    driver.cholmod_new.restype = ctypes.c_void_p
    indptr, indices, values = csr(path, "half")
    indptr, indices = indptr.astype(np.int64), indices.astype(np.int64)
    x = np.load(path / "b.npy")
    matrix = (ctypes.c_int64(len(x)), pointer(indptr), pointer(indices), pointer(values))
    state = ctypes.c_void_p(driver.cholmod_new(*matrix, CHOLMOD_ORDERINGS[ordering]))

    def job(number: int) -> None:
        status = driver.cholmod_run(state, number, pointer(x))
        if status:
            raise SolverError(f"CHOLMOD: status {status}")

    phases = Phases()
    for number, name in enumerate(("analysis", "factor", "solve"), 1):
        with phases.phase(name):
            job(number)
    said, version = np.zeros(4), np.zeros(3, np.int32)
    driver.cholmod_said(state, pointer(said))
    driver.cholmod_numbers(pointer(version))
    phases.report |= {"factor_entries": int(said[0]), "flops": said[1]}
    phases.report |= {"ordering": CHOLMOD_NAMES.get(int(said[2]), "other"), "told_incore_bytes": int(said[3])}
    phases.report |= {"version": ".".join(map(str, version))}
    return x, phases.end()


# -- SciPy ------------------------------------------------------------------------------------------------------------


def superlu(path: Path, kind: str) -> tuple[Numbers, Report]:
    """SciPy's `splu`, which knows no symmetry: analysis and factorization are one call. The least fill here: minimum
    degree of A + Aᵀ with pivots near the diagonal, and COLAMD with partial pivoting where A has zeros on it."""
    import scipy.sparse
    from scipy.sparse.linalg import splu

    indptr, indices, values = csr(path, "full")
    matrix: Any = scipy.sparse.csr_matrix((values, indices, indptr), shape=(len(indptr) - 1,) * 2)
    matrix = matrix.tocsc() if kind == GENERAL else matrix.T
    b = np.load(path / "b.npy")
    del indptr, indices, values
    options: dict[str, Any] = {"permc_spec": "COLAMD"}
    if kind != SYMMETRIC:
        threshold = 0.0 if kind == SPD else SUPERLU_THRESHOLD
        options = {"permc_spec": "MMD_AT_PLUS_A", "diag_pivot_thresh": threshold, "options": {"SymmetricMode": True}}
    phases = Phases()
    phases.report["analysis_seconds"] = None
    try:
        with phases.phase("factor"):
            factor = splu(matrix, **options)
    except (MemoryError, RuntimeError) as error:
        raise SolverError(f"SuperLU: {error or type(error).__name__}") from error
    with phases.phase("solve"):
        x = factor.solve(b)
    phases.report |= {"factor_entries": int(factor.nnz), "flops": None, "ordering": options["permc_spec"]}
    return x, phases.end()


def lapack(path: Path, kind: str, factorization: str) -> tuple[Numbers, Report]:
    """Cholesky and LU as SciPy's users call them, QR by `geqrf` itself; all in A's own memory."""
    from scipy import linalg

    a, b = np.load(path / "a.npy"), np.load(path / "b.npy")
    n = len(b)
    phases = Phases()
    phases.report["analysis_seconds"] = None
    with phases.phase("factor"):
        if factorization == "cholesky":
            factors = linalg.cho_factor(a, lower=True, overwrite_a=True, check_finite=False)
        elif factorization == "lu":
            factors = linalg.lu_factor(a, overwrite_a=True, check_finite=False)
        else:
            length = int(linalg.lapack.dgeqrf_lwork(n, n)[0])
            factors = linalg.lapack.dgeqrf(a, lwork=length, overwrite_a=1)[:2]
    with phases.phase("solve"):
        if factorization == "qr":
            length = int(linalg.lapack.dormqr("L", "T", *factors, b[:, None], -1)[1][0])
            turned = linalg.lapack.dormqr("L", "T", *factors, b[:, None], length)[0]
            x = linalg.lapack.dtrtrs(factors[0], turned)[0][:, 0]
        else:
            solve = linalg.cho_solve if factorization == "cholesky" else linalg.lu_solve
            x = solve(factors, b, check_finite=False)
    share = {"cholesky": 1 / 3, "lu": 2 / 3, "qr": 4 / 3}[factorization]
    entries = n * (n + 1) // 2 if factorization == "cholesky" else n * n
    phases.report |= {"factor_entries": entries, "flops": share * n**3, "ordering": None}
    return x, phases.end()
