"""Indices larger than memory: take, integer arrays as an index, permutations, lanes."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from support.running import session
from support.sizes import sized

import outcore as oc

POOL = 32 << 20


@pytest.fixture
def numbers() -> np.random.Generator:
    return np.random.default_rng(5)


def saved(folder: Path, name: str, values: np.ndarray[Any, Any]) -> oc.Array:
    np.save(folder / f"{name}.npy", values)
    return oc.open(folder / f"{name}.npy")


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "float32", "float64", "complex128"])
@pytest.mark.parametrize("kind", ["int64", "int16", "uint64"])
def test_a_lazy_index_takes_what_numpy_takes(dtype: str, kind: str, numbers: np.random.Generator, data: Path) -> None:
    x = numbers.integers(0, 100, 3000).astype(dtype)
    index = numbers.integers(0 if kind[0] == "u" else -3000, 3000, (40, 50)).astype(kind)
    with session(pool_limit=POOL):
        result = oc.take(saved(data, "x", x), oc.asarray(index))
        assert result.shape == (40, 50)
        np.testing.assert_array_equal(result.compute(), x[index])


@pytest.mark.parametrize("length", [0, 1, 7_000])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_rows_along_any_axis(length: int, axis: int, numbers: np.random.Generator) -> None:
    x = numbers.normal(size=(30, 5, 7))
    index = numbers.integers(0, x.shape[axis], length)
    with session(pool_limit=POOL):
        taken = oc.take(oc.asarray(x), oc.asarray(index), axis=axis).compute()
    np.testing.assert_array_equal(taken, np.take(x, index, axis=axis))


@pytest.mark.parametrize("columns", [None, 1, 3, 20])
def test_neither_side_fits_the_memory(columns: int | None, numbers: np.random.Generator, data: Path) -> None:
    count = sized(5_400_000, 9_000_000)
    shape = (count,) if columns is None else (count // columns, columns)
    x = numbers.normal(size=shape)
    index = numbers.integers(-shape[0], shape[0], sized(4_500_000, 6_000_000) // (columns or 1))
    with session(pool_limit=POOL):
        rows = saved(data, "x", x)
        result = oc.take(rows, saved(data, "index", index), axis=0)
        told = oc.explain({data / "out.npy": result})
        done = oc.store({data / "out.npy": result})
        np.testing.assert_array_equal(np.load(data / "out.npy"), x[index])
    assert done.bytes_read <= told.bytes_read
    assert done.peak_bytes <= POOL


@pytest.mark.parametrize("kind", ["spread", "all one row", "two rows in turn"])
def test_bounds_hold_whichever_rows_are_named(kind: str, numbers: np.random.Generator, data: Path) -> None:
    x = numbers.normal(size=(294_912, 8))
    index = numbers.integers(0, len(x), len(x) // 2)
    if kind != "spread":
        index[:] = len(x) // 3
    if kind == "two rows in turn":
        index[::2] = 7
    with session(pool_limit=24_000_000):
        result = oc.take(saved(data, "x", x), saved(data, "index", index), axis=0)
        told = oc.explain({data / "out.npy": result})
        done = oc.store({data / "out.npy": result})
    np.testing.assert_array_equal(np.load(data / "out.npy"), x[index])
    assert not told.exact
    assert done.bytes_read <= told.bytes_read
    assert done.bytes_written <= told.bytes_written


def test_held_rows_are_read_once(numbers: np.random.Generator, data: Path) -> None:
    x = numbers.normal(size=1_000_000)
    index = numbers.integers(0, 1_000_000, 10_000_000)
    with session(pool_limit=POOL):
        result = oc.take(saved(data, "x", x), saved(data, "index", index))
        done = oc.store({data / "out.npy": result})
        np.testing.assert_array_equal(np.load(data / "out.npy"), x[index])
    assert done.bytes_read <= 1.01 * (x.nbytes + index.nbytes)
    assert done.bytes_written <= 1.01 * index.nbytes


@pytest.mark.parametrize("wrong", [10, -11, 2**62])
@pytest.mark.parametrize("length", [10, 9_000_000])
def test_a_position_outside_is_refused_by_name(wrong: int, length: int, data: Path) -> None:
    if length > 10 and wrong > 0:
        wrong = max(wrong, length)
    if length > 10 and wrong < 0:
        wrong = -length - 1
    index = np.zeros(5_000_000 if length > 10 else 20, np.int64)
    index[7] = wrong
    with session(pool_limit=POOL):
        result = oc.take(saved(data, "x", np.arange(length)), saved(data, "index", index))
        with pytest.raises(oc.errors.IndexingError, match=f"index {wrong} .*length {length}"):
            oc.store({data / "out.npy": result})
    assert not (data / "out.npy").exists()


def test_wrong_indices_are_refused() -> None:
    x = oc.asarray(np.arange(6.0).reshape(2, 3))
    with pytest.raises(oc.errors.IndexingError, match="float64"):
        oc.take(x, oc.asarray([0.5]), axis=0)
    with pytest.raises(oc.errors.IndexingError, match="axis="):
        oc.take(x, oc.asarray([0]))
    with pytest.raises(oc.errors.IndexingError, match="length 0"):
        oc.take(oc.asarray(np.zeros(0)), oc.asarray([0]))
    with pytest.raises(oc.errors.ShapeError, match=r"\(3,\).*\(2, 3\)"):
        oc.permute(x, oc.asarray([0, 1, 2]))
    with pytest.raises(oc.errors.ShapeError, match="take_along_axis"):
        oc.take_along_axis(x, oc.asarray([0]))


def test_integer_arrays_index(numbers: np.random.Generator) -> None:
    values = numbers.normal(size=(20, 30, 4))
    x, index = oc.asarray(values), numbers.integers(-20, 20, (3, 5))
    for key in (index, oc.asarray(index), [3, 1, 1]):
        plain = index if isinstance(key, oc.Array) else key
        np.testing.assert_array_equal(x[key].compute(), values[plain])
        np.testing.assert_array_equal(x[:, key].compute(), values[:, plain])
        np.testing.assert_array_equal(x[..., 1:3][key, 2:5].compute(), values[..., 1:3][plain, 2:5])
        np.testing.assert_array_equal(x[key, 3].compute(), values[plain, 3])
    with pytest.raises(oc.errors.IndexingError, match="None"):
        x[index, None]


def test_lanes_take_their_own(numbers: np.random.Generator) -> None:
    x = numbers.normal(size=(6, 40, 3))
    for axis in range(3):
        index = numbers.integers(-x.shape[axis], x.shape[axis], (6, 40, 3))
        taken = oc.take_along_axis(oc.asarray(x), oc.asarray(index), axis=axis)
        np.testing.assert_array_equal(taken.compute(), np.take_along_axis(x, index, axis=axis))
    with pytest.raises(oc.errors.IndexingError):
        oc.take_along_axis(oc.asarray(x), oc.asarray(np.full((6, 40, 1), 3)), axis=2).compute()


@pytest.mark.parametrize("shape", [(1000,), (1000, 3), (6_000_000,)])
def test_permutations_and_back(shape: tuple[int, ...], numbers: np.random.Generator, data: Path) -> None:
    x, index = numbers.normal(size=shape), numbers.permutation(shape[0])
    moved = np.empty_like(x)
    moved[index] = x
    with session(pool_limit=POOL):
        rows, order = saved(data, "x", x), saved(data, "index", index)
        oc.store({data / "moved.npy": oc.permute(rows, order)})
        np.testing.assert_array_equal(np.load(data / "moved.npy"), moved)
        oc.store({data / "back.npy": oc.permute_inverse(oc.open(data / "moved.npy"), order)})
        np.testing.assert_array_equal(np.load(data / "back.npy"), x)


def test_every_element_its_own_number_of_times(numbers: np.random.Generator) -> None:
    x, counts = numbers.normal(size=(50, 3)), numbers.integers(0, 4, 50)
    repeated = oc.repeat(oc.asarray(x), oc.asarray(counts), axis=0)
    np.testing.assert_array_equal(repeated.compute(), np.repeat(x, counts, axis=0))
    assert oc.repeat(oc.asarray(x[:, 0]), [0] * 50).shape == (0,)
    with pytest.raises(oc.errors.ShapeError, match=r"\(2,\).*50"):
        oc.repeat(oc.asarray(x), [1, 2], axis=0)
    with pytest.raises(oc.errors.ArgumentError, match="-1"):
        oc.repeat(oc.asarray(x), counts - 1, axis=0).compute()


def test_rechunk_cuts_anew(numbers: np.random.Generator, data: Path) -> None:
    x = numbers.normal(size=(3000, 1000))
    cut = oc.rechunk(saved(data, "x", x), (-1, 100))
    assert cut.tile == (3000, 100)
    np.testing.assert_array_equal(cut.compute(), x)
    with pytest.raises(oc.errors.ShapeError, match=r"\(3,\).*\(3000, 1000\)"):
        oc.rechunk(cut, 3)


@pytest.mark.parametrize("kind", ["npy", "fortran", "zarr", "compressed"])
def test_few_elements_read_their_pages(kind: str, numbers: np.random.Generator, data: Path) -> None:
    x = numbers.normal(size=(2000, 3000))
    rows, columns = numbers.integers(-2000, 2000, (2, 200)), numbers.integers(-3000, 3000, 200)
    with session():
        if kind in ("npy", "fortran"):
            stored = saved(data, "x", x if kind == "npy" else np.asfortranarray(x))
        else:
            chosen: Any = {} if kind == "compressed" else {"compressors": None}
            zarr.create_array(data / "x.zarr", shape=x.shape, chunks=(300, 500), dtype="f8", **chosen)[:] = x
            stored = oc.open(data / "x.zarr")
        picked = stored[rows, columns]
        told = oc.explain({data / "out.npy": picked})
        done = oc.store({data / "out.npy": picked})
        assert told.exact
        assert (told.bytes_read, told.bytes_written) == (done.bytes_read, done.bytes_written)
        np.testing.assert_array_equal(np.load(data / "out.npy"), x[rows, columns])
        if kind == "npy":
            pages = np.unique((128 + 8 * ((rows % 2000) * 3000 + columns % 3000)) // 4096)
            assert done.bytes_read == np.minimum(4096, 128 + x.nbytes - 4096 * pages).sum()
        flat = stored.reshape(-1)
        places = numbers.integers(0, x.size, 500)
        np.testing.assert_array_equal(flat[places].compute(), x.reshape(-1)[places])
        np.testing.assert_array_equal(stored[rows, columns[:1]].compute(), x[rows, columns[:1]])
        with pytest.raises(oc.errors.IndexingError, match="2000 is out of bounds for a length of 2000"):
            stored[np.array([2000]), np.array([0])]


def test_single_elements_of_a_row_are_read_by_page_and_many_by_tile(numbers: np.random.Generator, data: Path) -> None:
    x = numbers.normal(size=4_000_000)
    with session():
        stored = saved(data, "x", x)
        for count, most in ((1000, 4096 * 1000), (500_000, 1.01 * x.nbytes)):
            index = numbers.integers(0, x.size, count)
            done = oc.store({data / "out.npy": stored[index]}, overwrite=True)
            np.testing.assert_array_equal(np.load(data / "out.npy"), x[index])
            assert done.bytes_read <= most


@pytest.mark.parametrize("count", [1, 2, 17, 5000, 300_000])
def test_positions_in_runs_are_numpys_and_take_no_more_memory_than_themselves(count: int) -> None:
    random = np.random.default_rng(12)
    x = np.arange(400_000.0)
    for positions in (
        random.integers(-len(x), len(x), count),
        np.arange(count) - count // 2,
        np.arange(count)[::-1],
        np.repeat(np.arange(count // 3 + 1), 3)[:count],
        np.concatenate([np.arange(count // 2), np.arange(count - count // 2) * 1 - 9]),
        np.arange(count, dtype=np.uint32),
    ):
        tracemalloc.start()
        taken = oc.take(oc.asarray(x), positions)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak <= 32 * count + (4 << 20)
        np.testing.assert_array_equal(taken.compute(), x[positions])


def test_indices_that_can_be_written_are_copied_and_others_are_not() -> None:
    x, first = np.arange(500.0), np.random.default_rng(0).permutation(500) - 250
    fixed, indices = first.copy(), first.copy()
    fixed.flags.writeable = False
    view = indices.view()
    view.flags.writeable = False
    taken = [oc.take(x, given) for given in (indices, fixed, view, fixed.reshape(-1))]
    indices[:] = 0
    for one in taken:
        np.testing.assert_array_equal(one.compute(), x[first])
    np.testing.assert_array_equal(fixed, first)


def test_read_only_indices_take_no_memory_of_their_own() -> None:
    order = np.random.default_rng(0).permutation(1 << 20)
    rows = np.arange(float(1 << 20))
    order.flags.writeable = False
    tracemalloc.start()
    lazy = oc.take(rows, order)
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert held < order.nbytes / 8
    np.testing.assert_array_equal(lazy[:100].compute(), rows[order[:100]])
