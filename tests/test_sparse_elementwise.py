"""What is made of sparse matrices entry by entry, and what they tell of rows, columns and diagonals: as SciPy does."""

from __future__ import annotations

import gc
import operator
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg
from hypothesis import given, settings
from hypothesis import strategies as st
from support.running import files_below, session
from support.sizes import Sweep, examples
from support.sparse import matrices, pattern, random_matrix, whole, write

import outcore as oc
from outcore.errors import ArgumentError, DTypeError, IndexingError, MemoryLimitError, OutcoreError, ShapeError

NUMBERS = ("int8", "int32", "int64", "uint8", "float32", "float64", "complex128")
REAL = ("int8", "int32", "int64", "uint8", "float32", "float64")


@pytest.fixture(scope="module")
def folder(shared: Path) -> Path:
    return shared


def same(found: oc.sparse.SparseMatrix, expected: Any, dtype: Any = None) -> None:
    """A matrix of ours, and what it is when dense."""
    value = found.toarray()
    assert found.shape == expected.shape
    assert value.dtype == (expected.dtype if dtype is None else dtype)
    np.testing.assert_array_equal(value, expected)


def both_ways(matrix: Any, folder: Path, side: int, name: str = "a.ocs") -> list[tuple[Any, Any]]:
    """The matrix as it is stored and as the transpose of another, each with itself as SciPy has it."""
    stored, turned = write(matrix, folder, side, name), write(matrix.T, folder, side, f"t{name}")
    return [(stored, matrix.tocsr()), (turned.T, matrix.tocsr())]


def second(matrix: Any, seed: int, dtype: str) -> Any:
    random = np.random.default_rng(seed)
    mask = random.random(matrix.shape) < 0.2
    return scipy.sparse.coo_array(np.where(mask, whole(random, matrix.shape, dtype), np.zeros(1, dtype)))


BINARY: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    "add": (lambda a, b: a + b, operator.add),
    "subtract": (lambda a, b: a - b, operator.sub),
    "multiply": (lambda a, b: a.multiply(b), operator.mul),
    "maximum": (lambda a, b: a.maximum(b), np.maximum),
    "minimum": (lambda a, b: a.minimum(b), np.minimum),
}


@pytest.mark.parametrize("name", BINARY)
@settings(max_examples=12, deadline=None)
@given(
    drawn=matrices(NUMBERS), seed=st.integers(0, 99), dtype=st.sampled_from(NUMBERS), side=st.sampled_from([1, 8, 64])
)
def test_two_matrices(folder: Path, name: str, drawn: Any, seed: int, dtype: str, side: int) -> None:
    matrix, own = drawn
    other = second(matrix, seed, dtype)
    ours, numpys = BINARY[name]
    expected = numpys(matrix.toarray(), other.toarray())
    with session():
        for a, _ in both_ways(matrix, folder, own):
            for b, _ in both_ways(other, folder, side, "b.ocs"):
                found = ours(a, b)
                same(found, expected)
                assert found.nnz == np.count_nonzero(expected)


@pytest.mark.parametrize("how", ["<", "<=", ">", ">=", "!=", "=="])
@settings(max_examples=12, deadline=None)
@given(drawn=matrices(REAL), number=st.integers(-2, 4), seed=st.integers(0, 99))
def test_comparisons(folder: Path, how: Any, drawn: Any, number: int, seed: int) -> None:
    matrix, side = drawn
    holds = {
        "<": operator.lt,
        "<=": operator.le,
        ">": operator.gt,
        ">=": operator.ge,
        "!=": operator.ne,
        "==": operator.eq,
    }
    other = second(matrix, seed, str(matrix.dtype))
    if matrix.dtype.kind == "u":
        number = abs(number)
    with session():
        b = write(other, folder, 16, "b.ocs")
        for a, _ in both_ways(matrix, folder, side):
            if holds[how](0, number):
                with pytest.raises(ArgumentError, match="wherever nothing is stored"):
                    a.compare(how, number)
            else:
                found = a.compare(how, number)
                assert found.is_pattern
                same(found, holds[how](matrix.toarray(), number))
            if holds[how](0, 0):
                with pytest.raises(ArgumentError, match="wherever nothing is stored"):
                    a.compare(how, b)
            else:
                same(a.compare(how, b), holds[how](matrix.toarray(), other.toarray()))


@settings(max_examples=12, deadline=None)
@given(drawn=matrices(NUMBERS), seed=st.integers(0, 99), k=st.integers(-5, 5), lazy=st.booleans())
def test_one_matrix(folder: Path, drawn: Any, seed: int, k: int, lazy: bool) -> None:
    matrix, side = drawn
    dense = matrix.toarray()
    random = np.random.default_rng(seed)
    row, column = whole(random, (1, dense.shape[1]), "float64"), whole(random, (dense.shape[0], 1), "float32")
    with session():
        give = oc.asarray if lazy else np.asarray
        for a, _ in both_ways(matrix, folder, side):
            same(a * 2, dense * 2)
            same(2.5 * a, dense * 2.5)
            same(a / 4, dense * (1 / 4.0))
            same(a.multiply(give(row)), dense * row)
            same(a.multiply(give(row[0])), dense * row[0])
            same(a.multiply(give(column)), dense * column)
            if not lazy:
                same(a.multiply(dense), dense * dense)
            same(a.power(2), dense**2)
            same(a**2, dense**2)
            same(a.map(lambda value: value * 3 - value), dense * 3 - dense)
            same(a.astype(np.complex64), dense.astype(np.complex64))
            if matrix.dtype.kind == "c":
                # NumPy's own sizes of complex numbers are one off here and there: abs(3+3j) is.
                np.testing.assert_array_max_ulp(abs(a).toarray(), np.abs(dense), 1)
            else:
                same(abs(a), np.abs(dense))
            same(a.conj(), dense.conj())
            same(a.tril(k), np.tril(dense, k))
            same(a.triu(k), np.triu(dense, k))
            same(a.copy(), dense)
            assert not a.copy()._transposed
            if dense.dtype.kind != "u":
                same(-a, -dense)
            zeros = a.eliminate_zeros()
            same(zeros, dense)
            assert zeros.nnz == np.count_nonzero(dense)


@settings(max_examples=examples(25), deadline=None)
@given(drawn=matrices(("float64", "bool")), data=st.data(), is_pattern=st.booleans())
def test_slices_and_orders(folder: Path, drawn: Any, data: st.DataObject, is_pattern: bool) -> None:
    matrix, side = drawn
    dense = matrix.toarray()
    bound = st.one_of(st.none(), st.integers(-45, 45))
    keys = tuple(
        slice(data.draw(bound), data.draw(bound), data.draw(st.sampled_from([None, 1, 2, 7]))) for _ in range(2)
    )
    orders = [np.random.default_rng(3).permutation(length) for length in dense.shape]
    with session():
        for a, _ in both_ways(matrix, folder, side):
            if is_pattern:
                a, dense = (
                    pattern(matrix, folder, side),
                    scipy.sparse.coo_array((np.ones(matrix.nnz, bool), matrix.coords), matrix.shape).toarray(),
                )
            same(a[keys], dense[keys])
            same(a[keys[0]], dense[keys[0]])
            same(a.permute(orders[0], oc.asarray(orders[1])), dense[orders[0]][:, orders[1]])
            same(a.permute(columns=orders[1]), dense[:, orders[1]])
            for wrong in (3, (slice(None, None, -1),), [1]):
                with pytest.raises(IndexingError):
                    a[wrong]


@settings(max_examples=examples(25), deadline=None)
@given(left=matrices(NUMBERS, longest=20), right=matrices(NUMBERS, longest=9))
def test_kronecker_products(folder: Path, left: Any, right: Any) -> None:
    (matrix, side), (other, own) = left, right
    expected = np.kron(matrix.toarray(), other.toarray())
    with session():
        for a, _ in both_ways(matrix, folder, side):
            for b, _ in both_ways(other, folder, own, "b.ocs"):
                same(oc.sparse.kron(a, b), expected)


@settings(max_examples=examples(25), deadline=None)
@given(drawn=matrices(REAL), k=st.integers(-50, 50))
def test_what_rows_columns_and_diagonals_come_to(folder: Path, drawn: Any, k: int) -> None:
    matrix, side = drawn
    dense = matrix.toarray()
    with session():
        for a, csr in both_ways(matrix, folder, side):
            assert np.array_equal(a.diagonal(k), np.diagonal(dense, k) if -len(dense) < k < dense.shape[1] else [])
            assert a.trace() == np.trace(dense)
            assert a.norm() == pytest.approx(np.sqrt((dense.astype(float) ** 2).sum()))
            assert a.norm(1) == np.abs(dense.astype(float)).sum(axis=0).max(initial=0)
            assert a.norm(np.inf) == np.abs(dense.astype(float)).sum(axis=1).max(initial=0)
            assert a.getnnz().compute() == a.nnz
            assert a.count_nonzero() == np.count_nonzero(dense)
            for axis in (0, 1):
                assert np.array_equal(
                    a.getnnz(axis).compute(), np.bincount(csr.tocoo().coords[1 - axis], minlength=dense.shape[1 - axis])
                )
                assert np.array_equal(a.count_nonzero(axis), np.count_nonzero(dense, axis=axis))
                for name in ("max", "min", "argmax", "argmin"):
                    if dense.shape[axis] == 0:
                        with pytest.raises(ShapeError, match=r"no elements along"):
                            getattr(a, name)(axis)
                        continue
                    found = getattr(a, name)(axis)
                    value = found.compute() if isinstance(found, oc.Array) else found
                    assert np.array_equal(value, getattr(dense, name)(axis)), (name, axis)
            if dense.size:
                assert (a.max().compute(), a.min().compute()) == (dense.max(), dense.min())


def test_nan_and_infinities(tmp_path: Path) -> None:
    dense = np.asarray([[np.nan, 1.0, 0.0], [np.inf, -np.inf, -1.0], [np.nan, np.nan, np.nan], [-2.0, -np.inf, 0.0]])
    with session():
        a = write(scipy.sparse.coo_array(dense), tmp_path)
        for axis in (0, 1):
            assert np.array_equal(a.argmax(axis), dense.argmax(axis))
            assert np.array_equal(a.argmin(axis), dense.argmin(axis))
        assert np.array_equal(a.max(axis=0).compute(), np.nanmax(dense, axis=0))
        assert np.array_equal(a.min(axis=0).compute(), np.nanmin(dense, axis=0))
        same(a + a, dense + dense)


def test_tile_rows_pass_by_one_at_a_time(tmp_path: Path) -> None:
    """Matrices of several reads each, of different tiles, cut and merged across them."""
    left, right = random_matrix(400_000, 300_000, 1_200_000), random_matrix(400_000, 300_000, 600_000, 1)
    with session():
        a, b = write(left, tmp_path, 4096), write(right, tmp_path, 16384, "b.ocs")
        assert min(a._core.tiles, b._core.tiles) > 2
        total = a + b.multiply(0.5)
        np.testing.assert_allclose((total @ np.ones(300_000)).compute(), (left + right * 0.5).sum(axis=1), atol=1e-9)
        part = a[1000:399_000:3, 5:]
        assert (part.to_scipy() != left[1000:399_000:3, 5:]).nnz == 0
        order = np.random.default_rng(0).permutation(400_000)
        assert (a.permute(order).to_scipy() != left[order]).nnz == 0
        assert (a.T.copy().to_scipy() != left.T.tocsr()).nnz == 0


def test_files_are_where_they_were_asked_for(tmp_path: Path, scratch: Path) -> None:
    matrix = random_matrix(300, 200, 900)
    with session(scratch) as current:
        a = write(matrix, tmp_path, 64)
        a.tril(path=tmp_path / "l.ocs")
        with pytest.raises(FileExistsError):
            a.tril(path=tmp_path / "l.ocs")
        a.triu(path=tmp_path / "l.ocs", overwrite=True)
        assert (oc.sparse.open(tmp_path / "l.ocs").to_scipy() != scipy.sparse.triu(matrix)).nnz == 0
        assert sorted(path.name for path in tmp_path.glob("*.ocs")) == ["a.ocs", "l.ocs"]
        turned = (a * 2).T
        assert np.array_equal((turned.T @ np.ones(200)).compute(), (matrix * 2) @ np.ones(200))
        assert files_below(scratch) == [], "a number is applied while entries pass by"
        both = a + turned.T
        assert files_below(scratch) == [], "nothing is made before it is read"
        assert both.nnz == matrix.nnz
        gc.collect()
        assert len(files_below(scratch)) == 1
        lazy = (both * 3) @ np.ones(200)
        del both
        gc.collect()
        assert len(files_below(scratch)) == 1
        np.testing.assert_allclose(lazy.compute(), (matrix * 9) @ np.ones(200))
        longer = lazy.sum() + 1
        del lazy
        gc.collect()
        assert len(files_below(scratch)) == 1
        np.testing.assert_allclose(longer.compute(), (matrix * 9).sum() + 1)
        del longer
        gc.collect()
        current.clear()  # of small results it remembers what they were made of
        assert files_below(scratch) == [], "it goes with the last array that reads it"
        failed = pytest.raises(ArgumentError)
        with failed:
            a.permute(np.zeros(300, int))
    assert files_below(scratch) == []


@pytest.mark.parametrize("dtype", ["bool", "int32", "float32", "complex128"])
def test_products_of_what_is_in_scratch_are_forecast_and_reread_nothing(tmp_path: Path, dtype: str) -> None:
    matrix = random_matrix(20_000, 10_000, 100_000)
    x = np.arange(10_000).astype(dtype)
    with session() as current:
        a = (write(matrix, tmp_path) > 0).astype(dtype)
        said = oc.explain({tmp_path / "y.npy": a @ x})
        done = oc.store({tmp_path / "y.npy": a @ x})
        assert (said.bytes_read, said.bytes_written) == (done.bytes_read, done.bytes_written)
        expected = (matrix > 0).astype(np.int64 if dtype == "bool" else dtype) @ x
        np.testing.assert_allclose(np.load(tmp_path / "y.npy"), expected, rtol=1e-5)
        assert (a @ x).dtype == expected.dtype
        before = current.counters()["bytes_read"]
        (a @ (x + x)).compute()
        assert current.counters()["bytes_read"] - before < 4096


def test_functions_of_entries(tmp_path: Path) -> None:
    matrix = abs(random_matrix(300, 200, 900))
    with session():
        a = write(matrix, tmp_path, 64)
        X = np.ones((200, 2))
        for f in (np.log1p, np.sqrt, np.tanh, np.rint):
            np.testing.assert_allclose(a.map(f).toarray(), f(matrix.toarray()), rtol=1e-14)
        np.testing.assert_allclose((a.map(np.log1p).tril() @ X).compute(), np.tril(np.log1p(matrix.toarray())) @ X)
        for f, why in (
            (np.cos, "cos of 0 is not 0"),
            (lambda value: value.sum(), "gives no lazy array"),
            (lambda value: 3, "gives no lazy array"),
            (lambda value: value - value.mean(), "not of one element alone"),
            (lambda value: oc.sort(value), "not of one element alone"),
        ):
            with pytest.raises(ArgumentError, match=why):
                a.map(f)


def test_what_would_be_dense_or_does_not_fit_is_refused(tmp_path: Path) -> None:
    with session():
        a = write(random_matrix(300, 200, 900), tmp_path, 64)
        for call in (lambda: a + 1, lambda: a + np.ones(200), lambda: a.power(0), lambda: a.power(-1), lambda: a / a):
            with pytest.raises(ArgumentError):
                call()
        for call in (lambda: a + a.T, lambda: a * np.ones(300), lambda: a.multiply(np.ones((300, 7)))):
            with pytest.raises(ShapeError):
                call()
        with pytest.raises(ArgumentError, match="nuc"):
            a.norm("nuc")
        with pytest.raises(DTypeError):
            (a * 1j).max()
        with pytest.raises(ArgumentError, match="axis 2"):
            a.getnnz(2)
    with session(pool_limit=1 << 16):
        for call in (a.toarray, lambda: write(scipy.sparse.eye_array(9000), tmp_path, name="b.ocs").diagonal()):
            with pytest.raises(MemoryLimitError):
                call()


@pytest.mark.parametrize("fault", ["read:{n}", "write:{n}", "sync:{n}", "rename:{n}"])
def test_a_result_that_fails_leaves_nothing(fault: str, tmp_path: Path, scratch: Path) -> None:
    matrix = random_matrix(3000, 3000, 9000)
    with session():
        path = write(matrix, tmp_path, 64).path
    sweep = Sweep(fault, 100)
    for n in sweep:
        with session(scratch, faults=fault.format(n=n)):
            try:
                a = oc.sparse.open(path)
                (a + a.T).tril(path=tmp_path / "l.ocs")
            except OutcoreError as error:
                sweep.failed()
                assert error.code == "io", str(error)  # noqa: PT017 - every n is another
        if (tmp_path / "l.ocs").exists():  # it is complete, though it may be that it could not be opened
            check_sum_below(tmp_path / "l.ocs", matrix)
            (tmp_path / "l.ocs").unlink()
        assert sorted(part.name for part in tmp_path.iterdir()) == ["a.ocs", "scratch"]
        assert files_below(scratch) == []


def check_sum_below(path: Path, matrix: Any) -> None:
    with session():
        assert (oc.sparse.open(path).to_scipy() != scipy.sparse.tril(matrix + matrix.T)).nnz == 0


# An operation under the limit that its own refusals name, and what the process took.
CONFINED = """
import sys
import outcore as oc

path, name, limit = sys.argv[1], sys.argv[2], int(sys.argv[3])
calls = {
    "multiply": lambda A: (A * 2.0).copy(),
    "add": lambda A: A.add(A).copy(),
    "tril": lambda A: A.tril().copy(),
    "slice": lambda A: A[:20_000].copy(),
    "transpose": lambda A: A.T.copy(),
}
refused = 0
while True:
    with oc.Session(memory_limit=limit, threads=2, progress=False):
        try:
            calls[name](oc.sparse.open(path))
            break
        except oc.errors.MemoryLimitError as error:
            refused, limit = refused + 1, error.smallest + (1 << 20)
with open("/proc/self/status") as status:
    peak = next(int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM"))
print(refused, limit, peak)
"""


@pytest.mark.parametrize("name", ["multiply", "add", "tril", "slice", "transpose"])
def test_operations_keep_to_the_limit_that_their_refusal_names(name: str, shared: Path) -> None:
    path = shared / "one-tile-row.ocs"
    if not path.exists():
        random, entries = np.random.default_rng(0), 3_000_000
        places = random.integers(0, 30_000, entries), random.integers(0, 3_000_000, entries)
        oc.sparse.from_coo(*places, random.random(entries), (30_000, 3_000_000), path)
    command = [sys.executable, "-c", CONFINED, str(path), name, str(128 << 20)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    refused, limit, peak = map(int, done.stdout.split())
    assert refused > 0
    assert peak <= limit
