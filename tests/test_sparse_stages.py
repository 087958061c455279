"""Sparse matrices that are made of others in stages: sums, parts, orders and what is made of them."""

from __future__ import annotations

import pickle
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from support.sizes import examples

import outcore as oc
from outcore.errors import ArgumentError, FormatError, MemoryLimitError

MIB = 1 << 20


def session(**options: Any) -> Any:
    return oc.Session(progress=False, **options)


def random_entries(shape: tuple[int, int], entries: int, seed: int = 0, dtype: Any = np.float64) -> Any:
    random = np.random.default_rng(seed)
    rows, columns = (random.integers(0, length, entries if min(shape) else 0) for length in shape)
    values = (100 * random.random(len(rows)) + 1).astype(dtype)
    matrix = scipy.sparse.coo_array((values, (rows, columns)), shape=shape).tocsr()
    matrix.data = matrix.data.astype(dtype)
    return matrix


def write(matrix: Any, path: Path, side: int = 64) -> Any:
    whole = matrix.tocoo()
    return oc.sparse.from_coo(whole.row, whole.col, whole.data, whole.shape, path, side=side, overwrite=True)


def check(made: Any, expected: Any) -> None:
    """The same entries, whatever their values."""
    found, expected = made.to_scipy(), scipy.sparse.csr_array(expected)
    expected.sort_indices()
    assert found.shape == expected.shape
    np.testing.assert_array_equal(found.indptr, expected.indptr)
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_allclose(found.data, expected.data, rtol=1e-12)


slices = st.tuples(st.integers(0, 150), st.integers(0, 150), st.integers(1, 9))


@settings(max_examples=examples(60), deadline=None)
@given(
    shape=st.tuples(st.integers(0, 150), st.integers(0, 150)),
    entries=st.integers(0, 900),
    side=st.sampled_from([4, 16, 64]),
    dtype=st.sampled_from(["float64", "int8", "complex64", "bool"]),
    rows=slices,
    columns=slices,
    turned=st.booleans(),
    seed=st.integers(0, 99),
)
def test_parts_and_orders_are_those_of_scipy(
    shared: Path,
    shape: tuple[int, int],
    entries: int,
    side: int,
    dtype: str,
    rows: tuple[int, int, int],
    columns: tuple[int, int, int],
    turned: bool,
    seed: int,
) -> None:
    random, whole = np.random.default_rng(seed), random_entries(shape, entries, seed, dtype)
    with session():
        matrix = write(whole, shared / "a.ocs", side)
        matrix, whole = (matrix.T, whole.T.tocsr()) if turned else (matrix, whole)
        keys = slice(*rows), slice(*columns)
        check(matrix[keys], whole[keys])
        orders = [random.permutation(length) for length in whole.shape]
        moved = matrix.permute(*orders)
        check(moved, whole[orders[0]][:, orders[1]])
        check(moved.T.permute(None, orders[0]), whole[orders[0]][:, orders[1]].T.tocsr()[:, orders[0]])
        if dtype != "bool":
            check((matrix + moved)[keys], (whole + whole[orders[0]][:, orders[1]]).tocsr()[keys])


@pytest.mark.parametrize("side", [256, 16384])
def test_what_is_rearranged_is_the_file_that_is_made_of_its_entries(tmp_path: Path, side: int) -> None:
    """Byte for byte, a tile row that is made in parts among them."""
    whole = random_entries((700, 2_000_000), 700_000)
    order = np.random.default_rng(1).permutation(700)
    with session():
        matrix = write(whole, tmp_path / "a.ocs", side)
        for name, made, expected in (
            ("order", matrix.permute(order), whole[order]),
            ("turned", matrix.T, whole.T),
            ("part", matrix[100:600, 7:1_500_000:3], whole[100:600, 7:1_500_000:3]),
            ("apart", matrix[::3, :], whole[::3]),
            ("sum", matrix.permute(order) + matrix, whole[order] + whole),
        ):
            there = write(scipy.sparse.csr_array(expected), tmp_path / f"{name}-expected.ocs", side)
            made.copy(path=tmp_path / f"{name}.ocs")
            assert (tmp_path / f"{name}.ocs").read_bytes() == there.path.read_bytes(), name


def test_kronecker_products_of_what_is_not_made_yet(tmp_path: Path) -> None:
    first, second = random_entries((70, 50), 300, 1), random_entries((9, 0), 0)
    with session():
        a, nothing = write(first, tmp_path / "a.ocs"), write(second, tmp_path / "b.ocs")
        check(oc.sparse.kron((a + a).tril(), a.T), scipy.sparse.kron(scipy.sparse.tril(first + first), first.T))
        check(oc.sparse.kron(a, nothing), scipy.sparse.kron(first, second))
        product = oc.sparse.kron(a, a[:3, :4])
        check(pickle.loads(pickle.dumps(oc.sparse.kron(a, a))), scipy.sparse.kron(first, first))
        expected = scipy.sparse.kron(first, first[:3, :4])
        np.testing.assert_allclose((product @ np.ones(200)).compute(), expected @ np.ones(200))


def test_matrices_whose_places_are_wide(tmp_path: Path) -> None:
    random = np.random.default_rng(2)
    shape = (1 << 45, 1 << 44)
    rows, columns = (np.unique(random.integers(0, length, 3000)) for length in shape)
    values = random.random(3000)
    with session():
        matrix = oc.sparse.from_coo(rows, columns, values, shape, tmp_path / "wide.ocs")
        turned = matrix.T.copy(path=tmp_path / "turned.ocs")
        found = [np.concatenate(parts) for parts in zip(*turned.blocks(), strict=True)]
        order = np.lexsort(found[1::-1])
        expected = np.lexsort((rows, columns))
        np.testing.assert_array_equal(found[0][order], columns[expected])
        np.testing.assert_array_equal(found[1][order], rows[expected])
        np.testing.assert_array_equal(found[2][order], values[expected])
        some = matrix[1 << 44 :, : 1 << 43]
        assert some.nnz == np.count_nonzero((rows >= 1 << 44) & (columns < 1 << 43))


def test_a_product_of_a_sum_makes_the_sum_once(tmp_path: Path) -> None:
    first, second = random_entries((30_000, 20_000), 200_000, 1), random_entries((30_000, 20_000), 200_000, 2)
    x = np.random.default_rng(3).random(20_000)
    with session() as current:
        a, b = write(first, tmp_path / "a.ocs", 4096), write(second, tmp_path / "b.ocs", 4096)
        built = current.counters()["bytes_read"]
        total = (a + b).tril()
        product = total @ x
        assert current.counters()["bytes_read"] == built  # nothing is made when it is built
        said = oc.explain(product)
        assert [stage.exact for stage in said.stages] == [False, False]
        before = current.counters()
        np.testing.assert_allclose(product.compute(), scipy.sparse.tril(first + second) @ x)
        after = current.counters()
        read, written = (after[name] - before[name] for name in ("bytes_read", "bytes_written"))
        assert 0 < read <= said.bytes_read
        assert 0 < written <= said.bytes_written
        assert read >= a.nbytes + b.nbytes - 8192
        # It is there for the next product.
        again = total @ (2 * x)
        known = oc.explain(again)
        before = current.counters()
        np.testing.assert_allclose(again.compute(), 2 * (scipy.sparse.tril(first + second) @ x))
        after = current.counters()
        assert after["bytes_written"] == before["bytes_written"]
        assert after["bytes_read"] - before["bytes_read"] == known.bytes_read < read


@pytest.mark.parametrize("name", ["sum", "part", "apart", "order", "turned", "product of a sum"])
def test_each_keeps_to_its_forecast_at_the_limit_that_its_refusal_names(tmp_path: Path, name: str) -> None:
    whole = random_entries((60_000, 50_000), 600_000, 1)
    order = np.random.default_rng(1).permutation(60_000)
    with session():
        write(whole, tmp_path / "a.ocs", 4096)
        write(random_entries((60_000, 50_000), 400_000, 2), tmp_path / "b.ocs", 4096)
    makers = {
        "sum": lambda a, b: a + b,
        "part": lambda a, b: a[1000:40_000, 5:],
        "apart": lambda a, b: a[::3],
        "order": lambda a, b: a.permute(order),
        "turned": lambda a, b: a.T,
        "product of a sum": lambda a, b: (a + b) @ np.ones((50_000, 4)),
    }

    def targets(current: Any) -> dict[str, Any]:
        opened = (oc.sparse.open(tmp_path / f"{each}.ocs") for each in "ab")
        suffix = "npy" if name.startswith("product") else "ocs"
        return {str(tmp_path / f"made.{suffix}"): makers[name](*opened)}

    limit = 4 * MIB
    for _ in range(6):
        with session(pool_limit=limit, threads=2) as current:
            asked = targets(current)
            try:
                said = oc.explain(asked)
            except MemoryLimitError as refused:
                limit = refused.smallest
                continue
            before = current.counters()
            oc.store(asked, overwrite=True)
            after = current.counters()
            assert after["bytes_read"] - before["bytes_read"] <= said.bytes_read
            assert after["bytes_written"] - before["bytes_written"] <= said.bytes_written
            return
    pytest.fail(f"refused again and again, lastly with {limit}")


def test_transposes_are_stored_and_results_are_pickled_before_they_are_made(tmp_path: Path) -> None:
    first, second = random_entries((300, 200), 3000, 1), random_entries((300, 200), 3000, 2)
    order = np.random.default_rng(4).permutation(300)
    with session():
        a, b = write(first, tmp_path / "a.ocs"), write(second, tmp_path / "b.ocs")
        oc.store({str(tmp_path / "t.ocs"): (a + b).T})
        check(oc.sparse.open(tmp_path / "t.ocs"), (first + second).T)
        makers = [
            (a + b, first + second),
            ((a + b).tril()[3:250] * 2.0, scipy.sparse.tril(first + second).tocsr()[3:250] * 2),
            (a.permute(order)[::7], first[order][::7]),
            (a.T, first.T),
        ]
        pickled = [pickle.dumps(made) for made, _ in makers]
        shown = pickle.dumps((a + b) @ np.ones(200))
    with session():
        for each, (_, expected) in zip(pickled, makers, strict=True):
            check(pickle.loads(each), expected)
        np.testing.assert_allclose(pickle.loads(shown).compute(), (first + second) @ np.ones(200))


def test_a_sum_outlives_its_session(tmp_path: Path) -> None:
    first = random_entries((300, 200), 3000, 1)
    with session():
        total = write(first, tmp_path / "a.ocs") + oc.sparse.open(tmp_path / "a.ocs")
        assert total.nnz == first.nnz
        path = total.path
    with session():
        check(total, first + first)
        np.testing.assert_allclose((total @ np.ones(200)).compute(), 2 * (first @ np.ones(200)))
    del total
    assert not path.exists()


def test_damaged_operands_are_named(tmp_path: Path) -> None:
    with session():
        a = write(random_entries((300, 200), 3000, 1), tmp_path / "a.ocs")
        b = write(random_entries((300, 200), 3000, 2), tmp_path / "b.ocs")
        data = bytearray(b.path.read_bytes())
        data[4096 + 100] ^= 1
        b.path.write_bytes(data)
    with session():
        a, b = oc.sparse.open(a.path), oc.sparse.open(b.path)
        for made in ((a + b) @ np.ones(200), (a + b)[3:] @ np.ones(200)):
            with pytest.raises(FormatError, match=r"b\.ocs"):
                made.compute()
        with pytest.raises(FormatError, match=r"b\.ocs"):
            _ = b.permute(np.arange(300)[::-1]).nnz
        assert a.nnz == oc.sparse.open(a.path).nnz


def test_keys_of_others_are_refused(tmp_path: Path) -> None:
    """Recipes come from anywhere: places that are none are errors, and no file is left."""
    with session() as current:
        a = write(random_entries((300, 200), 3000, 1), tmp_path / "a.ocs")
        from outcore.sparse._content import PassingEntries, entry

        row, column = (entry(name).astype(np.uint64) for name in ("row", "column"))
        core = a._content.passing()
        for key in (row * 0, column + (1 << 40), row << 63):
            made = oc.sparse.SparseMatrix(PassingEntries(core.rearranged([key._expr], (300, 200), 64)))
            with pytest.raises(ArgumentError, match="sparse: "):
                made.copy(path=tmp_path / "made.ocs")
        assert not (tmp_path / "made.ocs").exists()
        with pytest.raises(ArgumentError, match="keys are no places"):
            core.rearranged([row._expr, column._expr], (300, 200), 64)
        assert current.counters()["bytes_written"] >= 0


def test_numbers_that_keep_zeros_may_be_added_and_compared_with(tmp_path: Path) -> None:
    whole = random_entries((300, 200), 3000, 1)
    whole.data -= 50
    with session():
        a = write(whole, tmp_path / "a.ocs")
        check(sum([a, a]), whole + whole)
        check(a - 0, whole)
        np.testing.assert_allclose(a.maximum(0).toarray(), whole.maximum(0).toarray())
        np.testing.assert_allclose(a.minimum(0.5).toarray(), whole.toarray().clip(max=0.5))
        for refused in (lambda: a.maximum(3), lambda: a + 1, lambda: a - np.nan, lambda: a.maximum(1j)):
            with pytest.raises(ArgumentError, match="the result would be dense"):
                refused()


def test_checkpoints_know_matrices_in_scratch_by_their_entries(tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    whole = scipy.sparse.random(60, 60, density=0.1, random_state=1) + 60 * scipy.sparse.eye(60)
    right = random.random(60)
    with session():
        a = write(whole.tocsr(), tmp_path / "a.ocs")
        solved = oc.sparse.linalg.cg(a.T @ a, right, checkpoint=2)
        np.testing.assert_allclose((whole.T @ whole) @ solved[0], right, rtol=1e-4)


def test_names_and_keys_of_scipy_are_answered(tmp_path: Path) -> None:
    with session():
        a = write(random_entries((30, 20), 100, 1), tmp_path / "a.ocs")
        for ask, answer in (
            (lambda: a.tocsr(), r"A\.to_scipy\(\)"),
            (lambda: oc.sparse.hstack, r"from_entries of A\.blocks\(\)"),
            (lambda: oc.sparse.linalg.norm, r"A\.norm\(\)"),
            (lambda: a[3], r"A\[i : i \+ 1\] is one"),
            (lambda: oc.sparse.spgemm(a, a.T, "foo"), "no semiring is called foo; there are plus_times"),
            (lambda: oc.store({str(tmp_path / "a.npz"): a}), r"does not end in \.ocs"),
            (lambda: oc.sparse.from_scipy(np.eye(3)), "ndarray is no sparse matrix of SciPy's"),
        ):
            with pytest.raises((AttributeError, oc.errors.OutcoreError), match=answer):
                ask()
        assert not hasattr(a, "nothing")
        for wrong in (
            lambda: oc.sparse.kron(a, scipy.sparse.eye_array(2, format="csr")),
            lambda: oc.sparse.kron(np.eye(2), a),
            lambda: a.trace("x"),
            lambda: a.diagonal(1.5),
            lambda: a.product(np.ones(20), None),
            lambda: a.product(np.ones(20), ("min", "add", 1)),
        ):
            with pytest.raises(oc.errors.OutcoreError):
                wrong()
        np.testing.assert_array_equal((0 - a).toarray(), -a.toarray())


def test_forecasts_of_sums_count_tile_rows_apart(tmp_path: Path) -> None:
    """The tile rows of a matrix in other tiles are somewhere: at most none of them is the other's."""
    with session() as current:
        a = oc.sparse.from_coo([64], [1], [1.0], (65, 2), tmp_path / "a.ocs", side=1)
        b = oc.sparse.from_coo([0], [0], [1.0], (65, 2), tmp_path / "b.ocs", side=64)
        product = (a + b) @ np.ones(2)
        said = oc.explain(product)
        before = current.counters()["bytes_written"]
        product.compute()
        assert current.counters()["bytes_written"] - before <= said.bytes_written


def test_limits_that_methods_name_work(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    places = random.integers(19_000, 20_000, 300_000), random.integers(0, 20_000, 300_000)
    whole = scipy.sparse.coo_array((np.ones(300_000), places), shape=(20_000, 20_000)).tocsr()
    with session():
        path = write(whole, tmp_path / "c.ocs", 4096).path
    for call in (
        lambda a: a.count_nonzero(0),
        lambda a: a.norm(1),
        lambda a: a.diagonal(),
        lambda a: a.argmax(0),
        lambda a: a.to_scipy(),
    ):
        with session(pool_limit=1 << 20, threads=2), pytest.raises(MemoryLimitError) as refused:
            call(oc.sparse.open(path))
        with session(pool_limit=refused.value.smallest, threads=2):
            call(oc.sparse.open(path))


@pytest.mark.parametrize(("shape", "side"), [((257, 2048), 1024), ((20, 32768), 16384), ((300, 9000), 256)])
def test_no_entry_is_lost_where_columns_of_tiles_are_empty(tmp_path: Path, shape: tuple[int, int], side: int) -> None:
    """A bucket of many entries, and none behind it in its tile row."""
    place = np.arange(262_145)
    width = min(side, shape[1])
    rows, columns = place // width % shape[0], place % width
    whole = scipy.sparse.coo_array((np.ones(len(place)), (rows, columns)), shape=shape).tocsr()
    with session():
        matrix = write(whole, tmp_path / "a.ocs", side)
        check(matrix.permute(np.arange(shape[0])[::-1]), whole[::-1])
        check(matrix.T.copy(), whole.T)
        check(matrix[::2], whole[::2])
        assert (matrix != write(whole.T.tocsr(), tmp_path / "t.ocs", side).T).nnz == 0


def test_parts_without_columns_and_parts_of_many_tiles(tmp_path: Path) -> None:
    with session():
        a = write(random_entries((3, 5), 3), tmp_path / "a.ocs")
        np.testing.assert_array_equal((a[:, 5:5] @ np.ones(0)).compute(), np.zeros(3))
        np.testing.assert_array_equal((np.ones(0) @ a.T[5:5]).compute(), np.zeros(3))
        assert a[:, 5:5].nnz == a[3:].nnz == 0
        # A tile for each entry: a part takes as long as a sum, not as the square of the tiles.
        columns = np.arange(1, 40_001) * (1 << 24)
        wide = oc.sparse.from_coo(columns % 4, columns, np.ones(40_000), (4, 1 << 40), tmp_path / "wide.ocs")
        began = time.monotonic()
        assert wide[:, 1:].nnz == 40_000
        assert time.monotonic() - began < 10


@settings(max_examples=examples(40), deadline=None)
@given(
    rows=st.integers(1, 3000),
    columns=st.integers(1, 3000),
    entries=st.integers(0, 3000),
    side=st.sampled_from([1, 2, 64, 1024]),
    few=st.integers(1, 3000),
    name=st.sampled_from(["turned", "order", "sum", "both", "product", "apart"]),
    seed=st.integers(0, 99),
)
def test_forecasts_are_bounds_wherever_entries_are(
    shared: Path, rows: int, columns: int, entries: int, side: int, few: int, name: str, seed: int
) -> None:
    random = np.random.default_rng(seed)
    length = max(rows, columns) if name in ("both", "product") else rows
    shape = (length, length) if name in ("both", "product") else (rows, columns)
    places = random.integers(0, min(few, shape[0]), entries), random.integers(0, shape[1], entries)
    whole = scipy.sparse.coo_array((np.ones(entries), places), shape=shape).tocsr()
    with session() as current:
        a = write(whole, shared / "a.ocs", side)
        order = random.permutation(shape[0])
        make = {
            "turned": lambda: a.T,
            "order": lambda: a.permute(order),
            "sum": lambda: a + a,
            "both": lambda: a + a.T,
            "product": lambda: (a + a.T) @ np.ones(length),
            "apart": lambda: a[::3],
        }
        target = shared / ("made.npy" if name == "product" else "made.ocs")
        target.unlink(missing_ok=True)
        asked = {str(target): make[name]()}
        said = oc.explain(asked)
        before = current.counters()
        oc.store(asked, overwrite=True)
        after = current.counters()
        assert after["bytes_read"] - before["bytes_read"] <= said.bytes_read
        assert after["bytes_written"] - before["bytes_written"] <= said.bytes_written


def test_threads_that_wait_for_their_turn_make_a_matrix_once(tmp_path: Path) -> None:
    """Each is planned with a stage that makes it; when the second has its turn it is there."""
    first, begun, go_on = random_entries((3000, 3000), 30_000, 1), threading.Event(), threading.Event()

    def waiting(block: Any) -> Any:
        begun.set()
        go_on.wait(20)
        return block

    with session(threads=1) as current, ThreadPoolExecutor(5) as pool:

        def within(make: Any) -> Any:
            with current:
                return make()

        total = write(first, tmp_path / "a.ocs") + oc.sparse.open(tmp_path / "a.ocs").T
        other = pool.submit(within, lambda: oc.map_blocks(waiting, oc.ones(3), dtype="float64").compute())
        begun.wait(20)
        order = np.arange(3000)[::-1]
        makers = [
            lambda: (total @ np.ones(3000)).compute(),
            lambda: (total @ np.arange(3000.0)).compute(),
            lambda: (total.permute(order) @ np.ones(3000)).compute(),
            lambda: (total[5:] @ np.ones(3000)).compute(),
        ]
        results = [pool.submit(within, make) for make in makers]
        time.sleep(1)
        go_on.set()
        other.result()
        whole = first + first.T
        expected = [
            whole @ np.ones(3000),
            whole @ np.arange(3000.0),
            whole[order] @ np.ones(3000),
            whole[5:] @ np.ones(3000),
        ]
        for result, right in zip(results, expected, strict=True):
            np.testing.assert_allclose(result.result(), right)
