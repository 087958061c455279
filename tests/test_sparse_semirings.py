"""Masks and semirings of the user's own, against plain loops."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from support.running import files_below, session
from support.sizes import examples
from support.sparse import by_loop, matrices, nothing, pattern, random_matrix, whole, write

import outcore as oc
from outcore.errors import ArgumentError, DTypeError, ShapeError

ORDERED = ("int8", "int64", "uint32", "float32", "float64")
OWN = ("bool", "int8", "int32", "uint64", "float32", "float64", "complex128")
NOTHING = {"plus": 0, "times": 1, "any": 0, "lor": False, "land": True}
TOGETHER: dict[str, Any] = {
    "plus": lambda a, b: a + b,
    "times": lambda a, b: a * b,
    "min": np.minimum,
    "max": np.maximum,
    "any": lambda a, b: b,
    "lor": np.logical_or,
    "land": np.logical_and,
}
FUNCTIONS: dict[str, Any] = {
    "a formula": lambda value, x: value * x + value,
    "a condition": lambda value, x: oc.where(x == 0, value, x),
    "multiply": "multiply",
    "not_equal": "not_equal",
}
# The same of NumPy's numbers.
PLAIN: dict[str, Any] = {
    "a formula": lambda value, x: value * x + value,
    "a condition": lambda value, x: value if x == 0 else x,
    "multiply": np.multiply,
    "not_equal": np.not_equal,
}


@pytest.fixture(scope="module")
def folder(shared: Path) -> Path:
    return shared


def bound(add: str, dtype: np.dtype[Any]) -> Any:
    if add in NOTHING:
        return NOTHING[add]
    return add == "min" if dtype.kind == "b" else nothing(add, dtype)


def looped(matrix: Any, x: Any, add: str, function: str, dtype: np.dtype[Any]) -> Any:
    """The product, entry by entry; each term in the type that NumPy gives it, sums in that of the result."""
    wide = x if x.ndim == 2 else x[:, None]
    result = np.full((matrix.shape[0], wide.shape[1]), bound(add, dtype), dtype=dtype)
    found = matrix.tocoo()
    common = np.result_type(found.dtype, x.dtype)
    for row, column, value in zip(*found.coords, found.data, strict=True):
        for lane in range(wide.shape[1]):
            term = PLAIN[function](value, wide[column, lane])
            term = np.asarray(common.type(term) if function == "a condition" else term).astype(dtype)
            result[row, lane] = TOGETHER[add](result[row, lane], term)
    return result if x.ndim == 2 else result[:, 0]


@settings(max_examples=examples(150), deadline=None)
@given(
    drawn=matrices(OWN, longest=20),
    width=st.sampled_from([None, 0, 1, 3]),
    dtype=st.sampled_from(OWN),
    add=st.sampled_from(sorted(TOGETHER)),
    function=st.sampled_from(sorted(FUNCTIONS)),
    transposed=st.booleans(),
)
def test_semirings_of_ones_own_are_plain_loops(
    folder: Path, drawn: Any, width: Any, dtype: str, add: str, function: str, transposed: bool
) -> None:
    matrix, side = drawn
    loop = (matrix.T if transposed else matrix).tocsr()
    loop.sort_indices()
    x = whole(np.random.default_rng(4), (loop.shape[1],) if width is None else (loop.shape[1], width), dtype)
    with session(), np.errstate(all="ignore"):
        a = write(matrix, folder, side)
        a = a.T if transposed else a
        if add in ("min", "max") and function != "not_equal" and np.result_type(a.dtype, dtype).kind == "c":
            with pytest.raises(DTypeError, match="complex128 has no m"):
                a.product(x, (add, FUNCTIONS[function]))
            return
        found = a.product(x, (add, FUNCTIONS[function]))
        value = found.compute()
        assert value.dtype == found.dtype
        np.testing.assert_array_equal(value, looped(loop, x, add, function, found.dtype))


@pytest.mark.parametrize("name", ["plus_times", "min_plus", "max_plus", "max_times"])
def test_ones_own_are_those_that_have_names(folder: Path, name: str) -> None:
    matrix = random_matrix(5000, 3000, 20_000)
    add, multiply = name.split("_")
    function = {"plus": lambda value, x: value + x, "times": lambda value, x: value * x}[multiply]
    x = np.random.default_rng(0).normal(size=(3000, 2))
    with session():
        a = write(matrix, folder, 1024)
        p = pattern(matrix, folder, 256)
        for given_matrix, right in ((a, x), (a.T, x[:, 0].repeat(5)[:5000]), (p, x)):
            theirs = given_matrix.product(right, (add, function)).compute()
            np.testing.assert_allclose(theirs, given_matrix.product(right, name).compute(), rtol=1e-12)


def test_entries_are_stored_by_rows_once_and_go_with_the_matrix(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    matrix = random_matrix(20_000, 20_000, 300_000)
    with session(scratch) as current:
        a = write(matrix, tmp_path, 1024)
        x = np.random.default_rng(0).normal(size=20_000)
        before = current.counters()["bytes_written"]
        a.product(x, ("min", "add"))
        once = current.counters()["bytes_read"]
        own = (a.nnz + a.shape[0]) * (8 + 4 + 2)
        assert sum((scratch / name).stat().st_size for name in files_below(scratch)) < own + 4096
        second = a.product(x, ("max", lambda value, x: value - x))
        assert current.counters()["bytes_read"] == once
        assert current.counters()["bytes_written"] == before, "nothing is computed yet"
        said, found = oc.explain(second), second.compute()
        assert said.exact
        np.testing.assert_array_equal(found, looped_rows(matrix, x))
        del a, second
        assert files_below(scratch) == []


def looped_rows(matrix: Any, x: Any) -> Any:
    terms = matrix.data - x[matrix.indices]
    ends = zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True)
    return np.asarray([terms[begin:end].max(initial=-np.inf) for begin, end in ends])


def test_they_stay_within_the_limit_as_forecast(tmp_path: Path) -> None:
    matrix = random_matrix(200_000, 100_000, 2_000_000)
    x = np.random.default_rng(0).normal(size=100_000)
    with session(tmp_path, pool_limit=40 << 20):
        a = write(matrix, tmp_path)
        product = a.product(x, ("min", lambda value, x: value + x))
        said = oc.explain({tmp_path / "y.npy": product})
        done = oc.store({tmp_path / "y.npy": product})
        assert (said.bytes_read, said.bytes_written, said.peak_bytes) == (
            done.bytes_read,
            done.bytes_written,
            done.peak_bytes,
        )
        entries = (a.nnz + a.shape[0]) * (8 + 4 + 2)
        assert done.bytes_read < 1.1 * (entries + x.nbytes + 8 * (a.nnz + a.shape[0]))
        expected = a.product(x, "min_plus").compute()
    assert np.array_equal(np.load(tmp_path / "y.npy"), expected)


def test_what_makes_no_semiring_is_refused(tmp_path: Path) -> None:
    with session():
        a = write(scipy.sparse.eye_array(3, 4), tmp_path)
        with pytest.raises(ArgumentError, match="add='mean' is none of plus"):
            a.product(np.ones(4), ("mean", "add"))
        with pytest.raises(ArgumentError, match="multiply='nonsense' is not the name"):
            a.product(np.ones(4), ("plus", "nonsense"))
        with pytest.raises(ShapeError, match="it must pair elements"):
            a.product(np.ones(4), ("plus", lambda value, x: oc.stack([x, x], axis=1)))
        with pytest.raises(DTypeError, match="branching"):
            a.product(np.ones(4), ("plus", lambda value, x: x if x > 0 else value))


@settings(max_examples=examples(120), deadline=None)
@given(
    drawn=matrices(ORDERED, longest=20),
    width=st.sampled_from([None, 0, 1, 3]),
    dtype=st.sampled_from(ORDERED),
    semiring=st.sampled_from(["plus_times", "min_plus", "max_times", "any_pair", "lor_land", "own"]),
    complement=st.booleans(),
    kind=st.sampled_from(["NumPy", "lazy", "sparse"]),
    seed=st.integers(0, 99),
)
def test_masks_leave_the_sum_of_nothing(
    folder: Path, drawn: Any, width: Any, dtype: str, semiring: Any, complement: bool, kind: str, seed: int
) -> None:
    matrix, side = drawn
    random = np.random.default_rng(seed)
    x = whole(random, (matrix.shape[1],) if width is None else (matrix.shape[1], width), dtype)
    wanted = random.random((matrix.shape[0], *x.shape[1:])) < 0.5
    with session():
        a = write(matrix, folder, side)
        own = ("times", lambda value, x: value - x)
        if semiring == "own":
            free = a.product(x, own)
            expected, left_out = free.compute(), 1
        else:
            wide = x if x.ndim == 2 else x[:, None]
            free = a.product(x, semiring)
            expected = by_loop(matrix, wide, semiring, free.dtype)
            expected = expected if x.ndim == 2 else expected[:, 0]
            left_out = nothing(semiring, free.dtype)
        mask: Any = oc.asarray(wanted) if kind == "lazy" else wanted
        if kind == "sparse" and x.ndim == 2:  # a stored 0 counts: structure, not values
            places = scipy.sparse.coo_array(wanted)
            stored = scipy.sparse.coo_array((np.arange(places.nnz) % 2, places.coords), shape=wanted.shape)
            mask = write(stored, folder, side, "m.ocs")
        found = a.product(x, own if semiring == "own" else semiring, mask=mask, complement=complement)
        assert found.dtype == free.dtype
        np.testing.assert_array_equal(found.compute(), np.where(wanted != complement, expected, left_out))


def test_a_mask_is_read_with_the_result(tmp_path: Path) -> None:
    matrix = random_matrix(30_000, 30_000, 300_000)
    np.save(tmp_path / "m.npy", np.arange(30_000) % 3 == 0)
    with session():
        a = write(matrix, tmp_path, 4096)
        free = oc.explain({tmp_path / "y.npy": a @ np.ones(30_000)})
        targets = {tmp_path / "y.npy": a.product(np.ones(30_000), mask=oc.open(tmp_path / "m.npy"))}
        said = oc.explain(targets)
        done = oc.store(targets)
    assert (said.bytes_read, said.bytes_written) == (done.bytes_read, done.bytes_written)
    assert said.bytes_read <= free.bytes_read + 30_000 + 4096
    expected = np.where(np.arange(30_000) % 3 == 0, matrix @ np.ones(30_000), 0)
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), expected, rtol=1e-9, atol=1e-9)


def test_what_is_no_mask_is_refused(tmp_path: Path) -> None:
    with session():
        a = write(scipy.sparse.eye_array(3, 4), tmp_path)
        with pytest.raises(ShapeError, match=r"a mask of shape \(4,\) for a result of shape \(3,\)"):
            a.product(np.ones(4), mask=np.ones(4, dtype=bool))
        with pytest.raises(ShapeError, match=r"a mask of shape \(3, 4\) for a result of shape \(3,\)"):
            a.product(np.ones(4), mask=a)
        with pytest.raises(DTypeError, match="a mask is bool, not float64"):
            a.product(np.ones(4), mask=np.ones(3))
        with pytest.raises(ArgumentError, match="there is no mask"):
            a.product(np.ones(4), complement=True)


def test_extremes_of_the_largest_integers_are_refused(tmp_path: Path) -> None:
    """They are compared as int64, where those from 2^63 on are negative; sums wrap around as NumPy's."""
    large = np.asarray([2**64 - 1, 2**63, 5], dtype=np.uint64)
    with session():
        a = oc.sparse.from_coo([0, 0, 1], [0, 1, 2], large, (2, 3), tmp_path / "a.ocs")
        for semiring in ("min_plus", "max_first", "min_second"):
            with pytest.raises(DTypeError, match=f"uint64 does not make the semiring {semiring}"):
                a.product(np.ones(3, dtype=np.uint64), semiring)
        assert a.product(large, ("max", lambda value, x: value)).compute().tolist() == [2**64 - 1, 5]
        assert (a @ large).compute().tolist() == [(1 + 2**126) % 2**64, 25]


def test_bools_are_counted_and_joined_by_lor_land(tmp_path: Path) -> None:
    both = np.asarray([[True, True], [False, True]])
    with session():
        a = oc.sparse.from_scipy(scipy.sparse.csr_array(both), tmp_path / "a.ocs")
        counts = (a @ np.ones(2, dtype=bool)).compute()
        assert (counts.dtype, counts.tolist()) == (np.int64, [2, 1])
        joined = a.product(np.ones(2, dtype=bool), "lor_land").compute()
        assert (joined.dtype, joined.tolist()) == (bool, [True, True])
