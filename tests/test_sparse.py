"""Products of stored sparse matrices: what SciPy gives, in every type and shape, and the same bits however they run."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from support.running import assert_nothing_but_kept, session
from support.sizes import alternating, examples
from support.sparse import DTYPES, INTEGERS, by_loop, matrices, pattern, random_matrix, whole, write

import outcore as oc
from outcore.errors import ArgumentError, DTypeError, MemoryLimitError, ShapeError

ORDERED = ("int8", "int64", "uint32", "float32", "float64")
SEMIRINGS = (
    *("plus_times", "plus_pair", "plus_first", "plus_second", "min_plus", "max_plus", "min_times", "max_times"),
    *("min_first", "min_second", "max_first", "max_second", "any_pair", "lor_land"),
)


@pytest.fixture(scope="module")
def folder(shared: Path) -> Path:
    return shared


def drawn(matrix: Any, width: int | None, dtype: str, seed: int) -> tuple[Any, Any]:
    """What stands right of a matrix, and what stands left of it."""
    random = np.random.default_rng(seed)
    right, left = ((length,) if width is None else (length, width) for length in matrix.shape[::-1])
    return whole(random, right, dtype), whole(random, left[::-1], dtype)


def check(found: oc.Array, expected: Any) -> None:
    value = found.compute()
    assert value.shape == expected.shape
    np.testing.assert_array_equal(value, expected)


@settings(max_examples=examples(150), deadline=None)
@given(
    drawn_matrix=matrices(),
    width=st.sampled_from([None, 0, 1, 2, 3, 4, 8, 9, 16, 33]),
    dtype=st.sampled_from(DTYPES),
    seed=st.integers(0, 999),
    cut=st.booleans(),
)
def test_products_are_scipys(folder: Path, drawn_matrix: Any, width: Any, dtype: str, seed: int, cut: bool) -> None:
    matrix, side = drawn_matrix
    x, y = drawn(matrix, width, dtype, seed)
    dense = matrix.toarray()
    if dense.dtype == bool and dtype == "bool":  # counted, not joined
        dense = dense.astype(np.int64)
    with session():
        a = write(matrix, folder, side)
        lazy_x, lazy_y = oc.asarray(x), oc.asarray(y)
        if cut and x.size:
            lazy_x = oc.rechunk(lazy_x, tuple(max(1, length // 3) for length in x.shape))
            lazy_y = oc.rechunk(lazy_y, tuple(max(1, length // 2) for length in y.shape))
        check(a @ lazy_x, dense @ x)
        check(lazy_y @ a, y @ dense)
        check(a.T @ lazy_y.T, dense.T @ y.T)
        check(lazy_x.T @ a.T, x.T @ dense.T)
        expected = np.result_type(dense.dtype, dtype)
        assert (a @ lazy_x).dtype == (np.int64 if expected.kind == "b" else expected)


@settings(max_examples=examples(40), deadline=None)
@given(drawn_matrix=matrices(), width=st.sampled_from([1, 4, 5]), dtype=st.sampled_from(DTYPES))
def test_a_pattern_is_a_matrix_of_ones(folder: Path, drawn_matrix: Any, width: int, dtype: str) -> None:
    matrix, side = drawn_matrix
    ones = scipy.sparse.coo_array((np.ones(matrix.nnz, np.int8), matrix.coords), shape=matrix.shape)
    x, y = drawn(matrix, width, dtype, 5)
    with session():
        p = pattern(matrix, folder, side)
        assert (p.is_pattern, p.dtype, p.nnz) == (True, bool, matrix.nnz)
        kind = np.int64 if dtype == "bool" else dtype
        check(p @ x, (ones.toarray().astype(kind) @ x).astype(kind))
        check(p.T @ y.T, (ones.toarray().T.astype(kind) @ y.T).astype(kind))
        assert np.array_equal(p.to_scipy().toarray(), ones.toarray() != 0)


@pytest.mark.parametrize("is_pattern", [False, True], ids=["values", "pattern"])
@pytest.mark.parametrize("semiring", SEMIRINGS)
@settings(max_examples=examples(20), deadline=None)
@given(drawn_matrix=matrices(ORDERED, longest=20), width=st.sampled_from([1, 2, 5]), dtype=st.sampled_from(ORDERED))
def test_semirings_are_plain_loops(
    folder: Path, semiring: str, is_pattern: bool, drawn_matrix: Any, width: int, dtype: str
) -> None:
    matrix, side = drawn_matrix
    x, y = drawn(matrix, width, dtype, 3)
    with session():
        a = pattern(matrix, folder, side) if is_pattern else write(matrix, folder, side)
        loop = (
            scipy.sparse.coo_array((np.ones_like(matrix.data), matrix.coords), matrix.shape) if is_pattern else matrix
        )
        found = a.product(x, semiring)
        check(found, by_loop(loop, x, semiring, found.dtype))
        found = a.T.product(y.T, semiring)
        check(found, by_loop(loop.T, y.T, semiring, found.dtype))


@settings(max_examples=examples(30), deadline=None)
@given(drawn_matrix=matrices(), width=st.sampled_from([None, 1, 3]))
def test_what_a_matrix_says_of_itself(folder: Path, drawn_matrix: Any, width: Any) -> None:
    matrix, side = drawn_matrix
    with session():
        a = write(matrix, folder, side)
        assert (a.shape, a.T.shape, a.nnz, a.dtype) == (matrix.shape, matrix.shape[::-1], matrix.nnz, matrix.dtype)
        assert np.array_equal(a.to_scipy().toarray(), matrix.toarray())
        assert np.array_equal(a.T.to_scipy().toarray(), matrix.toarray().T)
        for axis in (None, 0, 1):
            expected = matrix.toarray().sum(axis=axis)
            check(a.sum(axis=axis), np.asarray(expected))
            assert a.sum(axis=axis).dtype == expected.dtype
        parts = list(a.blocks())
        assert sum(len(rows) for rows, _, _ in parts) == matrix.nnz


def test_sums_of_rounded_numbers_are_near_scipys(tmp_path: Path) -> None:
    for dtype in ("float32", "float64"):
        matrix = random_matrix(3000, 2000, 60_000, dtype=dtype)
        x = np.random.default_rng(1).normal(size=(2000, 7)).astype(dtype)
        with session():
            a = write(matrix, tmp_path, 256)
            scale = abs(matrix) @ abs(x)
            for found, expected in ((a @ x, matrix @ x), (x.T @ a.T, x.T @ matrix.T)):
                error = np.abs(found.compute() - expected)
                assert (error <= 100 * np.finfo(dtype).eps * (scale if error.shape == scale.shape else scale.T)).all()


LONG = (2 << 20, 3)


@pytest.mark.parametrize("side", [16, 1024, 16384])
@pytest.mark.parametrize("shape", [LONG, LONG[::-1], (1, 2 << 20), (2 << 20, 1)])
def test_a_few_entries_in_very_many_rows(tmp_path: Path, shape: tuple[int, int], side: int) -> None:
    random = np.random.default_rng(9)
    rows, columns = (random.integers(0, length, 5) for length in shape)
    matrix = scipy.sparse.coo_array((np.arange(1.0, 6.0), (rows, columns)), shape=shape).tocsr()
    x, y = whole(random, shape[1], "float64"), whole(random, (shape[0], 2), "float64")
    with session():
        a = write(matrix, tmp_path, side)
        assert a.nbytes < 64 << 10, "rows without entries take nothing"
        check(a @ x, matrix @ x)
        check(a.T @ y, matrix.T @ y)


@pytest.mark.parametrize("way", ["row", "column"])
def test_one_full_row_or_column(tmp_path: Path, way: str) -> None:
    length = 200_000
    dense = scipy.sparse.coo_array((np.ones(length), (np.zeros(length, np.int64), np.arange(length))), (5, length))
    matrix = (dense if way == "row" else dense.T).tocsr()
    x = whole(np.random.default_rng(2), (matrix.shape[1], 3), "float64")
    with session():
        for side in (16, 32768):
            a = write(matrix, tmp_path, side)
            check(a @ x, matrix @ x)
            check(a.T @ np.ones(matrix.shape[0]), matrix.T @ np.ones(matrix.shape[0]))


def test_places_up_to_two_to_the_forty(tmp_path: Path) -> None:
    rows, columns = np.asarray([2**40 - 1, 5, 2**39]), np.asarray([2**20, 3, 0])
    with session():
        a = oc.sparse.from_coo(rows, columns, [1.0, 2.0, 4.0], (2**40, 2**21), tmp_path / "a.ocs")
        found = {(int(r), int(c)): float(v) for rs, cs, vs in a.blocks() for r, c, v in zip(rs, cs, vs, strict=True)}
    assert found == {(5, 3): 2.0, (2**39, 0): 4.0, (2**40 - 1, 2**20): 1.0}


# Rows, columns, entries and columns of X: wide enough that X is larger than the pools below.
BANDED = (30_000, 40_000, 200_000, 24)


def pools_of(make: Any, most: int) -> list[int]:
    """Pools from the smallest that works up to one that holds all."""
    with session(pool_limit=1 << 16), pytest.raises(MemoryLimitError) as refused:
        oc.explain(make())
    smallest = refused.value.smallest
    assert smallest is not None
    return [smallest, *(int(smallest + (most - smallest) * share) for share in (0.05, 0.15, 0.3, 0.6, 1.0))]


@pytest.mark.parametrize(("kind", "transposed"), alternating(["stored", "lazy", "in memory"], [False, True]))
def test_x_larger_than_memory_takes_as_many_bands_as_forecast(tmp_path: Path, transposed: bool, kind: str) -> None:
    rows, columns, entries, width = BANDED
    matrix = random_matrix(rows, columns, entries)
    with session():
        a = write(matrix, tmp_path, 1024)
    x = np.random.default_rng(1).normal(size=(rows if transposed else columns, width))
    np.save(tmp_path / "x.npy", x)

    def make() -> oc.Array:
        given = {"stored": lambda: oc.open(tmp_path / "x.npy"), "lazy": lambda: oc.open(tmp_path / "x.npy") * 1.0}
        dense = given[kind]() if kind in given else oc.asarray(x)
        return (a.T if transposed else a) @ dense

    moved, bits = [], set()
    for pool in pools_of(lambda: {tmp_path / "y.npy": make()}, 6 * x.nbytes):
        with session(pool_limit=pool) as current:
            targets = {tmp_path / "y.npy": make()}
            said = oc.explain(targets, overwrite=True)
            done = oc.store(targets, overwrite=True)
            assert (said.bytes_read, said.bytes_written) == (done.bytes_read, done.bytes_written), pool
            assert said.peak_bytes == done.peak_bytes <= pool
            assert_nothing_but_kept(current)
        moved.append(done.bytes_read + done.bytes_written)
        bits.add(np.load(tmp_path / "y.npy").tobytes())
    assert len(bits) == 1
    assert moved[-1] == min(moved) < moved[0], "there were bands"
    expected = (matrix.T if transposed else matrix) @ x
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("transposed", [False, True], ids=["", "transposed"])
def test_more_memory_moves_no_more_bytes(tmp_path: Path, transposed: bool) -> None:
    rows, columns, entries, width = BANDED
    matrix = random_matrix(rows, columns, entries)
    np.save(tmp_path / "x.npy", np.ones((rows if transposed else columns, width)))
    with session():
        a = write(matrix, tmp_path, 1024)
    product = (a.T if transposed else a) @ oc.open(tmp_path / "x.npy")
    moved = []
    for pool in pools_of(lambda: {tmp_path / "y.npy": product}, 48 << 20):
        with session(pool_limit=pool):
            said = oc.explain({tmp_path / "y.npy": product})
        moved.append(said.bytes_read + said.bytes_written)
    assert moved == sorted(moved, reverse=True)


@pytest.mark.parametrize("transposed", [False, True], ids=["", "transposed"])
@pytest.mark.parametrize("dtype", ["float32", "complex128", "int64"])
def test_threads_and_memory_change_no_bit(tmp_path: Path, transposed: bool, dtype: str) -> None:
    matrix = random_matrix(20_000, 20_000, 100_000)
    matrix = (matrix * 100).astype(dtype) if dtype == "int64" else matrix.astype(dtype)
    with session():
        a = write(matrix, tmp_path, 512)
    x = (np.random.default_rng(1).normal(size=(20_000, 5)) * 100).astype(dtype)
    given = a.T if transposed else a
    bits = set()
    for pool in (None, *pools_of(lambda: given @ x, 4 * x.nbytes)[::2]):
        for threads in (1, 2, 3, 4):
            options = {} if pool is None else {"pool_limit": pool}
            try:
                with session(threads=threads, **options):
                    bits.add((given @ x).compute().tobytes())
            except MemoryLimitError as error:  # more threads may need more
                with session(threads=threads, pool_limit=error.smallest):
                    bits.add((given @ x).compute().tobytes())
    assert len(bits) == 1


@pytest.mark.parametrize("transposed", [False, True], ids=["", "transposed"])
def test_with_memory_several_tiles_are_worked_on_together(tmp_path: Path, transposed: bool) -> None:
    matrix = random_matrix(30_000, 20_000, 2_000_000)
    x = np.random.default_rng(1).normal(size=(30_000 if transposed else 20_000, 1))
    with session():
        a = write(matrix, tmp_path, 16)
    given = a.T if transposed else a
    tasks, bits = [], set()
    for pool in (pools_of(lambda: given @ x, 1)[0], 1 << 30):
        with session(pool_limit=pool):
            said = oc.explain(given @ x)
            tasks.append(said.tasks)
            found = oc.compute(given @ x)
        bits.add(found.tobytes())
        assert said.peak_bytes <= pool
    assert tasks[1] < tasks[0] / 2, "pieces of several tiles"
    assert len(bits) == 1
    np.testing.assert_allclose(found, (matrix.T if transposed else matrix) @ x, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("transposed", [False, True])
def test_bands_wider_than_a_square_tile_are_filled_whole(tmp_path: Path, transposed: bool) -> None:
    """Tiles of the dense matrix are as wide as a band, whatever its width."""
    rows, columns = 1024, 14_000
    path = tmp_path / "identity.ocs"
    A = oc.sparse.from_coo(np.arange(rows), np.arange(rows), np.ones(rows), (rows, rows), path)
    with session(pool_limit=150 << 20):
        x = oc.reshape(oc.arange(rows * columns, dtype=oc.float64), (rows, columns))
        product = (A.T if transposed else A) @ x
        assert oc.max(oc.abs(product - x)).compute() == 0


def test_a_matrix_larger_than_the_pool(tmp_path: Path) -> None:
    matrix = random_matrix(200_000, 100_000, 2_000_000)
    x = np.random.default_rng(1).normal(size=100_000)
    with session():
        a = write(matrix, tmp_path)
    pool = pools_of(lambda: a @ x, 1)[0]
    assert pool < a.nbytes / 2
    with session(pool_limit=pool):
        said = oc.explain(a @ x)
        found = oc.compute(a @ x)
    np.testing.assert_allclose(found, matrix @ x, rtol=1e-9, atol=1e-9)
    assert said.peak_bytes <= pool
    # What does not stay of the result comes back once.
    assert said.bytes_read <= 1.01 * a.nbytes + said.bytes_spilled, "the matrix passes by once"
    assert said.bytes_spilled <= 1.2 * found.nbytes


def test_a_matrix_that_fits_is_read_once_in_several_products(tmp_path: Path) -> None:
    matrix = random_matrix(20_000, 20_000, 200_000)
    with session() as current:
        a = write(matrix, tmp_path)
        x = oc.asarray(np.ones(20_000))
        before = current.counters()["bytes_read"]
        for _ in range(3):
            (a @ x).compute()
        (a.T @ x).compute()
        assert current.counters()["bytes_read"] - before < 1.1 * a.nbytes


def test_what_follows_a_product_is_forecast_too(tmp_path: Path) -> None:
    matrix = random_matrix(30_000, 30_000, 300_000)
    x = np.random.default_rng(1).normal(size=30_000)
    with session():
        a = write(matrix, tmp_path, 4096)
        y = a @ (a.T @ oc.asarray(x)) + 1
        targets = {tmp_path / "y.npy": y, tmp_path / "s.npy": (y * y).sum()}
        said = oc.explain(targets)
        done = oc.store(targets)
    assert (said.bytes_read, said.bytes_written, said.peak_bytes) == (
        done.bytes_read,
        done.bytes_written,
        done.peak_bytes,
    )
    expected = matrix @ (matrix.T @ x) + 1
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(np.load(tmp_path / "s.npy"), (expected**2).sum(), rtol=1e-9)


@pytest.mark.parametrize("transposed", [False, True], ids=["", "transposed"])
def test_a_refusal_names_a_pool_that_works(tmp_path: Path, transposed: bool) -> None:
    matrix = random_matrix(50_000, 50_000, 100_000)
    with session():
        a = write(matrix, tmp_path, 2048)
    product = (a.T if transposed else a) @ oc.asarray(np.ones((50_000, 3)))
    for threads in (1, 2, 4):
        with session(threads=threads, pool_limit=1 << 16), pytest.raises(MemoryLimitError) as refused:
            product.compute()
        error = refused.value
        named = float(re.search(r"the smallest limit that works is ([0-9.]+) MiB", str(error))[1])
        assert error.smallest <= named * (1 << 20) < error.smallest + (16 << 10)
        with session(threads=threads, pool_limit=error.smallest):
            found = product.compute()
        np.testing.assert_allclose(found[:, 0], (matrix.T if transposed else matrix).sum(axis=1), atol=1e-9)


def test_what_goes_not_together_is_refused(tmp_path: Path) -> None:
    with session():
        a = write(scipy.sparse.eye_array(3, 4), tmp_path)
        for wrong in (np.ones(3), np.ones((3, 2)), np.ones((4, 2, 2)), 3.0):
            with pytest.raises(ShapeError, match=r"\(3, 4\)"):
                a @ wrong
        with pytest.raises(ArgumentError, match="no semiring is called nonsense"):
            a.product(np.ones(4), "nonsense")
        with pytest.raises(DTypeError, match="complex128 does not make the semiring min_plus"):
            a.product(np.ones(4) * 1j, "min_plus")
        with pytest.raises(ArgumentError, match="axis 2"):
            a.sum(axis=2)
        with session(pool_limit=1 << 16):
            big = oc.sparse.from_coo(np.arange(10_000), np.arange(10_000), None, (10_000,) * 2, tmp_path / "b.ocs")
            with pytest.raises(MemoryLimitError, match="to_scipy"):
                big.to_scipy()


def test_what_can_be_no_matrix_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.ocs"
    with session():
        for rows, columns, values, kind in (
            ([0, 1], [0], None, ShapeError),
            ([0], [0], [1.0, 2.0], ShapeError),
            ([3], [0], None, ArgumentError),
            ([-1], [0], None, ArgumentError),
            ([0], [2], None, ArgumentError),
            ([0.5], [0], None, ArgumentError),
        ):
            with pytest.raises(kind):
                oc.sparse.from_coo(rows, columns, values, (3, 2), path)
        for side in (0, 3, -16, 65536):
            with pytest.raises(ArgumentError, match="a power of two up to 32768"):
                oc.sparse.from_coo([0], [0], [1.0], (3, 2), path, side=side)
        with pytest.raises(ShapeError, match=r"\(3,\)"):
            oc.sparse.from_scipy(scipy.sparse.coo_array(np.ones(3)), path)
        with pytest.raises(ArgumentError, match="larger tiles"):
            oc.sparse.from_coo([0], [2**37], [1.0], (5, 2**40), path, side=16)
        with pytest.raises(ShapeError, match="negative"):
            oc.sparse.from_coo([], [], [], (-1, 2), path)
    assert not path.exists()


@settings(max_examples=examples(30), deadline=None)
@given(
    entries=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(-5, 5)), max_size=40),
    dtype=st.sampled_from([*INTEGERS[:4], "float64", "complex128", ">f8", ">i4"]),
    side=st.sampled_from([1, 2, 4, 16384]),
)
def test_entries_at_one_place(entries: list[tuple[int, int, int]], dtype: str, side: int) -> None:
    rows, columns, numbers = (np.asarray([entry[which] for entry in entries], dtype=np.int64) for which in range(3))
    values = numbers.astype(dtype)
    with session(), tempfile.TemporaryDirectory() as folder:

        def make(duplicates: Any) -> Any:
            path = Path(folder) / f"{duplicates}.ocs"
            return oc.sparse.from_coo(rows, columns, values, (6, 6), path, duplicates=duplicates, side=side).to_scipy()

        total, last = np.zeros((6, 6), dtype), np.zeros((6, 6), dtype)
        for row, column, value in zip(rows, columns, values, strict=True):
            total[row, column] += value
            last[row, column] = value
        assert np.array_equal(make("sum").toarray(), total)
        assert np.array_equal(make("last").toarray(), last)
        if len({(row, column) for row, column, _ in entries}) < len(entries):
            with pytest.raises(ArgumentError, match="is there twice"):
                make("refuse")
            assert not (Path(folder) / "refuse.ocs").exists()
        else:
            assert np.array_equal(make("refuse").toarray(), total)
