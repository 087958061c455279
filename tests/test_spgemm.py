"""Products of two sparse matrices: what SciPy and a plain loop give, the same bits in any memory, and no leavings."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from benchmarks import cgroup
from conftest import KILLS
from hypothesis import given, settings
from hypothesis import strategies as st
from support.running import files_below, session, tree_hash
from support.sizes import examples, sized
from support.sparse import ADD, DTYPES, MULTIPLY, SIDES, pattern, random_matrix, whole, write

import outcore as oc
from outcore.errors import ArgumentError, DTypeError, MemoryLimitError, OutcoreError, ShapeError

ROOT = Path(__file__).parent.parent
MIB = 1 << 20
LENGTHS = (0, 1, 5, 17, 40)
ORDERED = (
    *("plus_times", "plus_pair", "plus_first", "plus_second", "min_plus", "max_plus", "min_times", "max_times"),
    *("min_first", "min_second", "max_first", "max_second"),
)


@pytest.fixture(scope="module")
def folder(shared: Path) -> Path:
    return shared


def drawn(random: np.random.Generator, shape: tuple[int, int], density: float, dtype: str) -> Any:
    mask = random.random(shape) < density
    if min(shape) and random.random() < 0.3:
        mask[random.integers(shape[0])] = True
    found = scipy.sparse.coo_array(mask)
    return scipy.sparse.coo_array((whole(random, found.nnz, dtype), found.coords), shape=shape)


@st.composite
def pairs(draw: st.DrawFn, dtypes: tuple[str, ...] = DTYPES) -> Any:
    """Two matrices that go together, a mask of their product, and the sides of their tiles."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    m, k, n = (draw(st.sampled_from(LENGTHS)) for _ in range(3))
    density = draw(st.sampled_from((0.02, 0.2, 0.9)))
    made = [drawn(random, shape, density, draw(st.sampled_from(dtypes))) for shape in ((m, k), (k, n))]
    mask = drawn(random, (m, n), draw(st.sampled_from((0.0, 0.3, 1.0))), "bool")
    return (*made, mask, draw(st.sampled_from(SIDES)), draw(st.sampled_from(SIDES)))


def by_loop(a: Any, b: Any, add: Callable[[Any, Any], Any], multiply: Callable[[Any, Any], Any]) -> dict[Any, Any]:
    """The entries of a product, term by term in the order of the columns of the first."""
    rows: dict[int, list[Any]] = {}
    for row, column, value in zip(*b.tocoo().coords, b.tocoo().data, strict=True):
        rows.setdefault(int(row), []).append((int(column), value))
    found: dict[Any, Any] = {}
    terms = sorted(zip(*map(np.ndarray.tolist, a.tocoo().coords), a.tocoo().data, strict=True), key=lambda t: t[:2])
    for row, inner, left in terms:
        for column, right in rows.get(inner, []):
            term, at = multiply(left, right), (row, column)
            found[at] = add(found[at], term) if at in found else term
    return found


def entries(matrix: oc.sparse.SparseMatrix) -> dict[Any, Any]:
    return {
        (row, column): value
        for rows, columns, values in matrix.blocks()
        for row, column, value in zip(rows.tolist(), columns.tolist(), values, strict=True)
    }


@settings(max_examples=examples(120), deadline=None)
@given(given_pair=pairs(), flip=st.tuples(st.booleans(), st.booleans()))
def test_products_are_scipys(folder: Path, given_pair: Any, flip: tuple[bool, bool]) -> None:
    first, second, _, side, other = given_pair
    expected = first.toarray() @ second.toarray()
    with session():
        a = write(first.T if flip[0] else first, folder, side)
        b = write(second.T if flip[1] else second, folder, other, "b.ocs")
        a, b = (a.T if flip[0] else a), (b.T if flip[1] else b)
        found = a @ b
        assert isinstance(found, oc.sparse.SparseMatrix)
        if found.dtype == np.int64 and expected.dtype == bool:  # counted, not joined
            expected = first.toarray().astype(np.int64) @ second.toarray().astype(np.int64)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found.to_scipy().toarray(), expected)


@settings(max_examples=examples(120), deadline=None)
@given(
    given_pair=pairs(("int64", "float64")),
    semiring=st.sampled_from(ORDERED),
    masked=st.sampled_from([None, False, True]),
    places=st.tuples(st.booleans(), st.booleans()),
)
def test_semirings_and_masks_are_a_plain_loops(
    folder: Path, given_pair: Any, semiring: str, masked: bool | None, places: tuple[bool, bool]
) -> None:
    first, second, mask, side, other = given_pair
    add, multiply = semiring.split("_")
    kinds = (bool if is_pattern else m.dtype for m, is_pattern in zip((first, second), places, strict=True))
    dtype = np.result_type(*kinds)
    dtype = np.dtype(np.int64) if dtype.kind == "b" else dtype
    values = [
        scipy.sparse.coo_array((np.ones(m.nnz, dtype) if is_pattern else m.data.astype(dtype), m.coords), m.shape)
        for m, is_pattern in zip((first, second), places, strict=True)
    ]
    expected = by_loop(*values, ADD[add], lambda a, b: MULTIPLY[multiply](dtype.type(a), dtype.type(b)))
    with session():
        a, b = (
            pattern(m, path, tile) if is_pattern else write(m, path, tile)
            for m, is_pattern, path, tile in zip(
                (first, second), places, (made(folder, "a"), made(folder, "b")), (side, other), strict=True
            )
        )
        wanted = None
        if masked is not None:
            wanted = write(mask, folder, side, "m.ocs")
            inside = set(zip(*map(np.ndarray.tolist, mask.tocoo().coords), strict=True))
            expected = {at: value for at, value in expected.items() if (at in inside) != masked}
        found = oc.sparse.spgemm(a, b, semiring, mask=wanted, complement=bool(masked))
        assert found.dtype == dtype
        assert entries(found) == expected


def made(folder: Path, name: str) -> Path:
    (folder / name).mkdir(exist_ok=True)
    return folder / name


@settings(max_examples=examples(40), deadline=None)
@given(given_pair=pairs(("bool", "float64")), semiring=st.sampled_from(["any_pair", "lor_land"]))
def test_truth_is_a_plain_loops(folder: Path, given_pair: Any, semiring: str) -> None:
    first, second, _, side, other = given_pair
    if semiring == "any_pair":
        expected = dict.fromkeys(by_loop(first, second, lambda a, b: a, lambda a, b: True), True)
    else:
        expected = by_loop(first, second, lambda a, b: a | b, lambda a, b: bool(a) & bool(b))
    with session():
        found = oc.sparse.spgemm(write(first, folder, side), write(second, folder, other, "b.ocs"), semiring)
        assert found.is_pattern == (semiring == "any_pair")
        assert entries(found) == expected


def test_bits_do_not_depend_on_memory_and_threads(tmp_path: Path) -> None:
    """Memory for all of the second matrix, and for a twentieth of it: tile rows in groups, batches in their order."""
    first = scipy.sparse.random_array((9000, 60_000), density=4e-4, rng=np.random.default_rng(1), format="csr")
    second = random_matrix(60_000, 50_000, 900_000, 2)
    expected = first @ second
    made = {}
    for name, pool, threads in (("all", 1024 * MIB, 2), ("one", 1024 * MIB, 1), ("little", 64 * MIB, 2)):
        with session(pool_limit=pool, threads=threads) as current:
            a, b = write(first, tmp_path, 128), write(second, tmp_path, 512, "b.ocs")
            before = current.counters()
            oc.sparse.spgemm(a, b, path=tmp_path / f"{name}.ocs")
            assert current.counters()["reserved_bytes"] == before["reserved_bytes"]
            assert current.counters()["peak_bytes"] <= pool
        made[name] = (tmp_path / f"{name}.ocs").read_bytes()
    assert made["all"] == made["one"] == made["little"]
    with session():
        got = oc.sparse.open(tmp_path / "all.ocs").to_scipy()
    assert got.nnz == expected.nnz
    np.testing.assert_allclose((got - expected).data, 0, atol=1e-12)


def test_heavy_rows_go_range_by_range(tmp_path: Path) -> None:
    """A row of more terms than a table has places, over more columns than it has."""
    random = np.random.default_rng(3)
    columns = 900_000
    first = scipy.sparse.csr_array(np.vstack([np.ones(300), random.normal(size=300) * (np.arange(300) % 7 == 0)]))
    second = random_matrix(300, columns, 1_500_000, 4)
    mask = random_matrix(2, columns, 40_000, 5)
    expected = (first @ second).tocsr()
    with session():
        a, b, m = write(first, tmp_path), write(second, tmp_path, name="b.ocs"), write(mask, tmp_path, name="m.ocs")
        found = (a @ b).to_scipy()
        np.testing.assert_allclose((found - expected).data, 0, atol=1e-12)
        for complement in (False, True):
            got = oc.sparse.spgemm(a, b, mask=m, complement=complement).to_scipy()
            inside = expected.multiply(mask != 0)
            np.testing.assert_allclose((got - (expected - inside if complement else inside)).data, 0, atol=1e-12)


def test_numbers_up_to_two_to_the_forty(tmp_path: Path) -> None:
    random = np.random.default_rng(6)
    m, k, n = (np.unique(random.integers(0, 1 << 40, 50)) for _ in range(3))
    first = [m[random.integers(0, len(m), 200)], k[random.integers(0, len(k), 200)]]
    second = [k[random.integers(0, len(k), 200)], n[random.integers(0, len(n), 200)]]
    shape = (1 << 40, 1 << 40)
    with session():
        a, b = (
            oc.sparse.from_coo(*places, np.ones(200), shape, tmp_path / f"{name}.ocs", duplicates="sum")
            for name, places in (("a", first), ("b", second))
        )
        found = entries(a @ b)
    left, right = (
        scipy.sparse.coo_array(
            (np.ones(200), (np.searchsorted(x, p[0]), np.searchsorted(y, p[1]))), shape=(len(x), len(y))
        )
        for p, x, y in ((first, m, k), (second, k, n))
    )
    expected = (left @ right).tocoo()
    rows, columns = expected.coords
    wanted = zip(m[rows].tolist(), n[columns].tolist(), strict=True)
    assert found == dict(zip(wanted, expected.data, strict=True))


def test_what_does_not_go_together_is_refused(tmp_path: Path) -> None:
    with session():
        a = write(random_matrix(30, 20, 50), tmp_path)
        b = write(random_matrix(20, 10, 50), tmp_path, name="b.ocs")
        target = tmp_path / "c.ocs"
        with pytest.raises(ShapeError, match=r"30, 20.*30, 20.*20 and 30"):
            oc.sparse.spgemm(a, a, path=target)
        with pytest.raises(ShapeError, match=r"mask of shape \(30, 20\).*\(30, 10\)"):
            oc.sparse.spgemm(a, b, mask=a, path=target)
        with pytest.raises(ArgumentError, match="complement"):
            oc.sparse.spgemm(a, b, complement=True, path=target)
        with pytest.raises(ArgumentError, match="no semiring is called plus_plus"):
            oc.sparse.spgemm(a, b, "plus_plus", path=target)
        complex_a = write(random_matrix(30, 20, 50, dtype="complex128"), tmp_path, name="z.ocs")
        with pytest.raises(DTypeError, match=r"complex128.*min_plus"):
            oc.sparse.spgemm(complex_a, b, "min_plus", path=target)
        mask = write(random_matrix(30, 10, 50), tmp_path, 64, "m.ocs")
        with pytest.raises(ArgumentError, match=r"tiles of 64.*tiles of 16384"):
            oc.sparse.spgemm(a, b, mask=mask, path=target)
        oc.sparse.spgemm(a, b, path=target)
        with pytest.raises(OutcoreError, match="exists"):
            oc.sparse.spgemm(a, b, path=target)
        oc.sparse.spgemm(a, b, path=target, overwrite=True)


def test_a_tile_row_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    with session():
        write(scipy.sparse.csr_array(np.ones((2000, 2))), tmp_path)
        write(scipy.sparse.csr_array(np.ones((2, 2000))), tmp_path, name="b.ocs")
    with session(pool_limit=48 * MIB):
        a, b = oc.sparse.open(tmp_path / "a.ocs"), oc.sparse.open(tmp_path / "b.ocs")
        with pytest.raises(MemoryLimitError, match="tile row 0 of the product"):
            oc.sparse.spgemm(a, b, path=tmp_path / "c.ocs")
        assert files_below(tmp_path) == ["a.ocs", "b.ocs"]


@pytest.mark.parametrize("fault", ["read", "write", "sync", "rename", "reserve"])
def test_every_failure_leaves_nothing_and_the_next_is_right(fault: str, tmp_path: Path) -> None:
    with session():
        a, b = (write(random_matrix(3000, 3000, 12_000, seed), tmp_path, 256, f"{seed}.ocs") for seed in (1, 2))
        oc.sparse.spgemm(a, b, path=tmp_path / "right.ocs")
    expected = (tmp_path / "right.ocs").read_bytes()
    failed = 0
    for nth in range(1, 40):
        with session(faults=f"{fault}:{nth}"):
            try:
                a, b = (oc.sparse.open(tmp_path / f"{seed}.ocs") for seed in (1, 2))
                oc.sparse.spgemm(a, b, path=tmp_path / "c.ocs")
            except OutcoreError:
                failed += 1
                if (tmp_path / "c.ocs").exists():  # it was written, and could not be opened
                    assert (tmp_path / "c.ocs").read_bytes() == expected
                    (tmp_path / "c.ocs").unlink()
                a, b = (oc.sparse.open(tmp_path / f"{seed}.ocs") for seed in (1, 2))
                oc.sparse.spgemm(a, b, path=tmp_path / "c.ocs")
        assert (tmp_path / "c.ocs").read_bytes() == expected
        (tmp_path / "c.ocs").unlink()
        assert files_below(tmp_path) == ["1.ocs", "2.ocs", "right.ocs"]
    assert failed


CHILD = (
    "import json, sys; from support.children import multiply_sparse as f; f(*sys.argv[1:4], json.loads(sys.argv[4]))"
)


def test_killed_it_leaves_no_result_and_the_next_is_right(tmp_path: Path) -> None:
    with session():
        names = [str(tmp_path / f"{seed}.ocs") for seed in (1, 2)]
        a, b = (write(random_matrix(40_000, 40_000, 500_000, seed), tmp_path, 1024, f"{seed}.ocs") for seed in (1, 2))
        began = time.monotonic()
        oc.sparse.spgemm(a, b, path=tmp_path / "right.ocs")
        seconds = time.monotonic() - began
    expected = tree_hash(tmp_path)
    chance = random.Random(7)
    paths = os.pathsep.join([str(ROOT), str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")])
    for _ in range(max(3, KILLS // 5)):
        given = [*names, str(tmp_path / "c.ocs"), json.dumps({"pool_limit": 256 * MIB})]
        with subprocess.Popen(
            [sys.executable, "-c", CHILD, *given], env=os.environ | {"PYTHONPATH": paths}, stdout=subprocess.PIPE
        ) as child:
            assert child.stdout is not None
            assert child.stdout.readline() == b"ready\n"
            time.sleep(chance.uniform(0, seconds))
            child.kill()
        (tmp_path / "c.ocs").unlink(missing_ok=True)  # where it was done before
        assert {name: tree for name, tree in tree_hash(tmp_path).items() if name in expected} == expected
    with session(pool_limit=256 * MIB):
        oc.sparse.spgemm(*map(oc.sparse.open, names), path=tmp_path / "c.ocs")
    assert (tmp_path / "c.ocs").read_bytes() == (tmp_path / "right.ocs").read_bytes()
    assert files_below(tmp_path) == ["1.ocs", "2.ocs", "c.ocs", "right.ocs"]


DYING = """
import os, signal, sys
import outcore as oc
from outcore import _core
first, second, target, scratch, after, kind = sys.argv[1:]
left, name = int(after), {"part": "spgemm", "join": "join_sparse"}[kind]
real = getattr(_core, name)

def counted(*given):
    global left
    left -= 1
    if not left and kind == "part":
        os.kill(os.getpid(), signal.SIGKILL)
    found = real(*given)
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
    print("made", flush=True)
    return found

setattr(_core, name, counted)
with oc.Session(pool_limit=64 << 20, memory_limit=8 << 30, scratch=[scratch], progress=False):
    oc.sparse.spgemm(oc.sparse.open(first), oc.sparse.open(second), path=target, resume=True)
print("done")
"""


def test_what_was_killed_goes_on_with_the_parts_that_are_there(tmp_path: Path, scratch: Path) -> None:
    with session():
        names = [str(tmp_path / f"{seed}.ocs") for seed in (1, 2)]
        a, b = (write(random_matrix(40_000, 40_000, 200_000, seed), tmp_path, 1024, f"{seed}.ocs") for seed in (1, 2))
        oc.sparse.spgemm(a, b, path=tmp_path / "right.ocs")
        parts = len(range(0, a._core.tiles, -(-a._core.tiles // 16)))
    expected = (tmp_path / "right.ocs").read_bytes()

    def run(after: int, kind: str = "part") -> tuple[int, str]:
        given = [sys.executable, "-c", DYING, *names, str(tmp_path / "c.ocs"), str(scratch), str(after), kind]
        done = subprocess.run(given, capture_output=True, text=True, timeout=100)
        return done.stdout.count("made"), done.stdout + done.stderr

    assert parts > 4
    assert run(3)[0] == 2
    assert not (tmp_path / "c.ocs").exists()
    assert run(2)[0] == 1
    # What was made is not made again. Killed when the file has its name, the next call finds that it is done.
    run(1, "join")
    assert (tmp_path / "c.ocs").read_bytes() == expected
    made, text = run(99)
    assert (made, text.endswith("done\n")) == (0, True), text
    assert (tmp_path / "c.ocs").read_bytes() == expected
    assert files_below(scratch) == []
    made, text = run(99)
    assert made == 0
    assert "already" in text
    (tmp_path / "c.ocs").unlink()
    made, text = run(99)
    assert made == parts, text
    assert (tmp_path / "c.ocs").read_bytes() == expected


def test_what_cannot_be_gone_on_with_is_refused(tmp_path: Path) -> None:
    with session():
        a = write(random_matrix(300, 300, 900), tmp_path, 64)
        for given in ((a.T, a, tmp_path / "c.ocs"), (a, a, None), (a @ a, a, tmp_path / "c.ocs")):
            with pytest.raises(ArgumentError, match="resume=True needs"):
                oc.sparse.spgemm(*given[:2], path=given[2], resume=True)
        empty = oc.sparse.from_coo([], [], [], (300, 300), tmp_path / "e.ocs")
        assert oc.sparse.spgemm(empty, a, path=tmp_path / "d.ocs", resume=True).nnz == 0


@pytest.mark.skipif(not cgroup.is_real(), reason="no memory cgroup can be made here (it needs root)")
def test_more_than_the_memory_there_is(tmp_path: Path) -> None:
    """A banded matrix whose square takes 100 MiB, within a real group of 176 MiB of which the process takes half."""
    limit, n = 176 * MIB, 400_000
    with session():
        a = oc.sparse.banded(n, {k: 1.0 + k / 8 for k in range(-6, 7)}, tmp_path / "a.ocs", side=4096)
        x = np.random.default_rng(0).random(n)
        twice = (a @ (a @ x)).compute()
    given = {"first": str(a.path), "second": str(a.path), "target": str(tmp_path / "c.ocs")}
    outcome = cgroup.run_limited(
        "support.children:multiply_sparse", given | {"options": {"memory_limit": limit}}, limit, 100
    )
    assert outcome.reason is None, outcome.stderr
    assert outcome.oom_kills == 0
    assert outcome.peak_rss_bytes is not None
    assert outcome.peak_rss_bytes <= limit
    with session():
        made = oc.sparse.open(tmp_path / "c.ocs")
        assert made.nnz == outcome.value["entries"]
        np.testing.assert_allclose((made @ x).compute(), twice, rtol=1e-12)


def test_two_products_at_once_wait_for_each_other(folder: Path) -> None:
    """The second takes its memory when it has the turn, not of what the first leaves."""
    random = np.random.default_rng(7)
    matrix = scipy.sparse.random_array((4000, 4000), density=0.004, rng=random, format="csr")
    with session():
        write(matrix, folder, 512, "turns.ocs")
    expected = (matrix @ matrix).tocsr()
    expected.sort_indices()
    with session(pool_limit=80 * MIB):
        a = oc.sparse.open(folder / "turns.ocs")
        with ThreadPoolExecutor(4) as pool:
            products = list(pool.map(lambda _: oc.sparse.spgemm(a, a).to_scipy(), range(sized(4, 8))))
    for product in products:
        found = product.tocsr()
        found.sort_indices()
        np.testing.assert_array_equal(found.indptr, expected.indptr)
        np.testing.assert_array_equal(found.indices, expected.indices)
        np.testing.assert_allclose(found.data, expected.data)


def test_tables_of_threads_need_no_more_than_a_quarter_of_the_memory(folder: Path) -> None:
    with session(threads=4, pool_limit=32 * MIB):
        a = write(scipy.sparse.eye_array(7, format="csr") * 2.0, folder, 8, "tables.ocs")
        np.testing.assert_array_equal(oc.sparse.spgemm(a, a).to_scipy().toarray(), np.eye(7) * 4)


def test_the_limit_of_a_refusal_counts_sums_that_are_there_already(folder: Path) -> None:
    """Batches of the second matrix add to sums of those before, which are there beside the new ones."""
    random = np.random.default_rng(8)
    a = scipy.sparse.random_array((6000, 6000), density=0.01, rng=random, format="csr")
    with session():
        first, second = write(a, folder, 512, "sums.ocs"), write(a.T.tocsr(), folder, 512, "sums-t.ocs")
        paths = first.path, second.path
    limit = 24 * MIB
    with session(pool_limit=limit), pytest.raises(MemoryLimitError) as refused:
        _ = oc.sparse.spgemm(*map(oc.sparse.open, paths)).nnz
    with session(pool_limit=refused.value.smallest):
        assert oc.sparse.spgemm(*map(oc.sparse.open, paths)).nnz > 0


def test_a_product_that_waits_for_its_turn_hears_signals(folder: Path) -> None:
    begun, heard = threading.Event(), threading.Event()

    def sleeping(block: Any) -> Any:
        begun.set()
        heard.wait(4)
        return block

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with session(threads=1, pool_limit=256 * MIB) as one:

        def compute() -> Any:
            with one:
                return oc.map_blocks(sleeping, oc.ones(3), dtype="float64").compute()

        a = write(scipy.sparse.eye_array(7, format="csr"), folder, 8, "turn.ocs")
        with ThreadPoolExecutor(1) as pool:
            other = pool.submit(compute)
            begun.wait()
            before, start = signal.signal(signal.SIGALRM, interrupt), time.monotonic()
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            try:
                with pytest.raises(KeyboardInterrupt):
                    _ = oc.sparse.spgemm(a, a).nnz
                assert time.monotonic() - start < 3
            finally:
                signal.signal(signal.SIGALRM, before)
                heard.set()
            np.testing.assert_array_equal(other.result(), np.ones(3))
