"""Sparse matrices where memory is short, files fail and processes die: the same bits, or a clear error."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from benchmarks import cgroup
from support.running import assert_nothing_but_kept, files_below, session
from support.sparse import write

import outcore as oc
from outcore.errors import FormatError, MemoryLimitError, OutcoreError
from outcore.sparse import linalg

TIMEOUT_SECONDS = 120
NEEDS_CGROUP = "no memory cgroup can be made here (it needs root), and no other limit counts resident memory"
ORDER, SIDE = 9_000, 1024
ROOT = Path(__file__).parent.parent


def definite(order: int = ORDER, entries: int = 60_000) -> Any:
    """Symmetric, positive definite, without negative entries; eigenvalues near 1000, 999, … are well apart."""
    random = np.random.default_rng(4)
    rows, columns = random.integers(0, order, (2, entries))
    found = scipy.sparse.coo_array((random.random(entries), (rows, columns)), shape=(order, order)).tocsr()
    diagonal = np.full(order, 40.0) + random.random(order)
    diagonal[:20] = np.linspace(1000.0, 500.0, 20)
    return (found + found.T + scipy.sparse.diags_array(diagonal)).tocsr()


@pytest.fixture(scope="module")
def matrix() -> Any:
    return definite()


@pytest.fixture(scope="module")
def path(matrix: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The matrix, and a vector beside it."""
    folder = tmp_path_factory.mktemp("matrix")
    np.save(folder / "b.npy", matrix @ np.random.default_rng(1).normal(size=ORDER))
    with session():
        return write(matrix, folder, SIDE).path


# -- a real limit -----------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not cgroup.is_real(), reason=NEEDS_CGROUP)
def test_products_and_pagerank_in_a_group_smaller_than_their_matrix(data: Path, out: Path) -> None:
    limit, order, columns = 136 << 20, 1 << 17, 92
    with session():
        graph = oc.sparse.rmat(order, 5 << 20, data / "p.ocs", seed=2)
        weights = 0.5 + np.random.default_rng(0).random(order)
        a = graph.multiply(weights[:, None], path=data / "a.ocs")
        expected = a.to_scipy()
    x = np.random.default_rng(1).random((order, columns))
    np.save(data / "x.npy", x)
    assert a.nbytes + x.nbytes > limit
    given = {"matrix": str(a.path), "x": str(data / "x.npy"), "out": str(out), "memory_limit": limit}
    outcome = cgroup.run_limited("support.sparse_children:products", given, limit, TIMEOUT_SECONDS)
    assert outcome.reason is None, outcome.stderr
    assert outcome.oom_kills == 0
    assert outcome.peak_rss_bytes is not None
    assert outcome.peak_rss_bytes <= limit
    for name in ("forward", "transposed"):
        said_read, read, said_written, written = outcome.value[name]
        assert (said_read, said_written) == (read, written)
    some = slice(0, columns, 11)
    np.testing.assert_allclose(np.load(out / "forward.npy")[:, some], expected @ x[:, some], rtol=1e-11)
    np.testing.assert_allclose(np.load(out / "transposed.npy")[:, some], expected.T @ x[:, some], rtol=1e-11)
    np.testing.assert_allclose(np.load(out / "ranks.npy"), ranked(expected, 5), rtol=1e-12)
    assert max(outcome.value["ranks"]) <= 1.02 * a.nbytes + 8 * order * 4, "a step reads the matrix once"


def ranked(matrix: Any, iterations: int) -> Any:
    """PageRank by SciPy."""
    order = matrix.shape[0]
    sums = matrix @ np.ones(order)
    ranks = np.full(order, 1 / order)
    for _ in range(iterations):
        shares = np.divide(ranks, sums, out=np.zeros(order), where=sums > 0)
        ranks = 0.85 * (matrix.T @ shares) + (0.85 * ranks[sums == 0].sum() + 0.15) / order
    return ranks


# -- faults -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("transposed", [False, True], ids=["", "transposed"])
def test_a_flipped_bit_stops_a_product_and_the_next_is_right(
    transposed: bool, matrix: Any, path: Path, tmp_path: Path, scratch: Path
) -> None:
    copy = tmp_path / "a.ocs"
    copy.write_bytes(path.read_bytes())
    x = np.random.default_rng(2).normal(size=ORDER)
    expected = (matrix.T if transposed else matrix) @ x

    def product() -> oc.Array:
        a = oc.sparse.open(copy)
        return (a.T if transposed else a) @ x

    # Too little memory to keep the matrix from one product to the next.
    with session(scratch, pool_limit=3 << 19) as current:
        for place in (4096 + 200, copy.stat().st_size // 2):
            whole = damaged(copy, place)
            with pytest.raises(FormatError, match=r"a\.ocs"):
                product().compute()
            assert_nothing_but_kept(current)
            copy.write_bytes(whole)
            np.testing.assert_allclose(product().compute(), expected, rtol=1e-10, atol=1e-9)


def damaged(path: Path, place: int) -> bytes:
    """Flips a bit; gives what was there."""
    found = path.read_bytes()
    with path.open("r+b") as file:
        file.seek(place)
        file.write(bytes([found[place] ^ 16]))
    return found


def ranks(path: Path) -> tuple[Any, OutcoreError | None]:
    try:
        return oc.sparse.pagerank(oc.sparse.open(path), iterations=4, tol=0.0).compute(), None
    except OutcoreError as error:
        return None, error.with_traceback(None)  # whose frames hold arrays


@pytest.mark.parametrize("fault", ["read:{n}", "short-read:{n}", "reserve:{n}"])
def test_an_iteration_that_fails_can_be_run_again(fault: str, matrix: Any, path: Path, scratch: Path) -> None:
    expected = ranked(matrix, 4)
    failed = 0
    for n in (1, 2, 3, 5, 8, 13, 21, 34):
        with session(scratch, pool_limit=2 << 20, faults=fault.format(n=n)) as current:
            found, error = ranks(path)
            if error is not None:
                assert error.code in ("io", "memory")
                assert "\n" not in str(error)
                assert_nothing_but_kept(current)
                failed += 1
                found, error = ranks(path)
            assert error is None
            np.testing.assert_allclose(found, expected, rtol=1e-12)
        assert files_below(scratch) == []
    assert failed == 0 if fault.startswith("short") else failed > 0


# -- kills ------------------------------------------------------------------------------------------------------------

STEPS = 14


def child(name: str, path: Path, out: Path, scratch: Path, after: int, pool: int = 4 << 20, threads: int = 2) -> int:
    given = [name, path, path.parent / "b.npy", out / "x.npy", scratch, pool, threads, after]
    command = [sys.executable, "-W", "error", "-m", "support.sparse_children", *(str(part) for part in given)]
    paths = os.pathsep.join([str(ROOT), str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")])
    ended = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True, timeout=TIMEOUT_SECONDS
    )
    assert ended.returncode == (-signal.SIGKILL if after else 0), ended.stderr
    return ended.returncode


@pytest.mark.parametrize("name", ["pagerank", "nmf", "cg", "lsmr"])
def test_a_killed_iteration_goes_on_to_the_same_bits(name: str, path: Path, out: Path, scratch: Path) -> None:
    child(name, path, out, scratch, 0)
    expected = np.load(out / "x.npy")
    whole = steps_of(out)
    (out / "x.npy").unlink()
    # Killed in the eighth step, when the sixth was stored; with other memory and threads from there.
    child(name, path, out, scratch, 8 if name != "cg" else 7)
    assert not (out / "x.npy").exists()
    child(name, path, out, scratch, 0, pool=16 << 20, threads=1)
    assert np.load(out / "x.npy").tobytes() == expected.tobytes()
    if whole is not None:
        assert steps_of(out) == whole - 6
    assert files_below(scratch) == []


def steps_of(out: Path) -> int | None:
    """Steps that the last child ran, where it counts them."""
    file = out / "x.ran"
    return int(file.read_text()) if file.exists() else None


# -- the same bits ----------------------------------------------------------------------------------------------------


def _labels() -> Any:
    labels = np.full(ORDER, -1)
    labels[::500] = np.arange(len(labels[::500])) % 3
    return labels


def _pair(found: Any) -> list[Any]:
    return [np.asarray(part.compute() if isinstance(part, oc.Array) else part) for part in found]


SOLVERS: dict[str, Callable[[Any, Any], Any]] = {
    "pagerank": lambda a, b: [oc.sparse.pagerank(a, iterations=6, tol=0.0)],
    "hits": lambda a, b: oc.sparse.hits(a, iterations=5, tol=0.0),
    "nmf": lambda a, b: oc.sparse.nmf(a, 4, iterations=4, tol=0.0),
    "als": lambda a, b: oc.sparse.als(a, 3, iterations=2),
    "label_propagation": lambda a, b: oc.sparse.label_propagation(a, _labels(), iterations=5),
    "spectral_embedding": lambda a, b: [oc.sparse.spectral_embedding(a, 2, tol=1e-2)],
    "cg": lambda a, b: [linalg.cg(a, b, rtol=1e-8)[0]],
    "minres": lambda a, b: [linalg.minres(a, b, rtol=1e-8)[0]],
    "bicgstab": lambda a, b: [linalg.bicgstab(a, b, rtol=1e-8)[0]],
    "gmres": lambda a, b: [linalg.gmres(a, b, rtol=1e-8)[0]],
    "lsmr": lambda a, b: [linalg.lsmr(a, b).x],
    "lobpcg": lambda a, b: linalg.lobpcg(a, np.eye(ORDER, 3), maxiter=6),
    "eigsh": lambda a, b: linalg.eigsh(a, k=3, which="LA", tol=1e-6),
    "eigs": lambda a, b: linalg.eigs(a, k=2, tol=1e-6),
    "svds": lambda a, b: linalg.svds(a, k=3, tol=1e-6),
    "randomized_svd": lambda a, b: linalg.randomized_svd(a, k=3),
}


def solved(name: str, path: Path, scratch: Path, threads: int, options: dict[str, Any]) -> list[bytes]:
    """A solver's results as bytes; with the memory that a refusal asks for."""
    for _ in range(8):
        try:
            with session(scratch, threads=threads, **options):
                found = _pair(SOLVERS[name](oc.sparse.open(path), oc.open(path.parent / "b.npy")))
                return [part.tobytes() for part in found]
        except MemoryLimitError as refused:
            # A basis that has grown needs more than the first one that was refused.
            options = {"pool_limit": max(refused.smallest or 0, options["pool_limit"] * 3 // 2)}
    raise AssertionError(f"{name} is refused with {options}")


@pytest.mark.parametrize("name", SOLVERS)
def test_threads_and_limits_change_no_bit(name: str, path: Path, scratch: Path) -> None:
    bits = {}
    for threads, pool in ((1, None), (2, 24 << 20), (3, 3 << 20)):
        options = {} if pool is None else {"pool_limit": pool}
        bits[threads, pool] = solved(name, path, scratch, threads, options)
    first = bits[1, None]
    assert [key for key, found in bits.items() if found != first] == []


def test_a_basis_in_scratch_gives_the_same_values(path: Path, scratch: Path) -> None:
    found = []
    for pool in (None, 8 << 20):
        options = {} if pool is None else {"pool_limit": pool}
        with session(scratch, **options) as current:
            values, vectors = linalg.eigsh(oc.sparse.open(path), k=4, which="LA")
            found.append((values, vectors.compute()))
            written = current.counters()["bytes_written"]
            # A vector takes 70 KiB, and the basis and its next one 40 of them.
            assert (written > 20 * 8 * ORDER) == (pool is not None)
            a = oc.sparse.open(path)
            rest = oc.linalg.vector_norm(a @ vectors - vectors * values, axis=0).compute()
            assert (rest <= 1e-8 * values).all()
            del vectors
    assert np.array_equal(found[0][0], found[1][0])
    assert np.array_equal(found[0][1], found[1][1])
    assert files_below(scratch) == []
