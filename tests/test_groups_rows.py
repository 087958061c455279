"""What groups give for each row, and which rows they choose, against pandas: by tables and by sorting."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.running import session
from support.sizes import examples

import outcore as oc
from outcore._groups import groups as chapter
from outcore.errors import ArgumentError, DTypeError, ShapeError

pandas = pytest.importorskip("pandas", reason="pandas, against whose groups these are held, is not installed")

RUNNING = ("cumsum", "cumprod", "cummin", "cummax")
CHOSEN = ("median", "first", "last", "argmin", "argmax")


@contextmanager
def tables_of(size: int) -> Iterator[None]:
    """Results beyond so many bytes are found by sorting."""
    kept, chapter._TABLE_BYTES = chapter._TABLE_BYTES, size
    try:
        yield
    finally:
        chapter._TABLE_BYTES = kept


@st.composite
def frames(draw: st.DrawFn) -> Any:
    """Labels, values without NaN beside them, and the tiles both are cut by."""
    count = draw(st.integers(1, 40))
    random = np.random.default_rng(draw(st.integers(0, 9999)))
    labels = random.integers(-3, draw(st.sampled_from([1, 9, 900])), count)
    labels = labels.astype(draw(st.sampled_from(["int64", "float64"])))
    shape = (count, *draw(st.sampled_from([(), (3,)])))
    values = (random.normal(size=shape) * 3).astype(draw(st.sampled_from(["int64", "float64", "int16"])))
    tiles = [tuple(draw(st.integers(1, length)) for length in array) for array in ((count,), shape)]
    return labels, values, tiles, draw(st.sampled_from([4 << 20, 0]))


def lazy(frame: Any) -> tuple[Any, Any]:
    labels, values, tiles, _ = frame
    return oc.groupby(oc.rechunk(oc.asarray(labels), tiles[0])), oc.rechunk(oc.asarray(values), tiles[1])


def by_pandas(frame: Any) -> Any:
    labels, values, _, _ = frame
    return pandas.DataFrame(values.reshape(len(labels), -1)).groupby(labels)


@settings(max_examples=examples(80), deadline=None)
@given(frame=frames(), name=st.sampled_from(RUNNING))
def test_running_folds_stay_within_their_group(frame: Any, name: str) -> None:
    expected = getattr(by_pandas(frame), name)().to_numpy().reshape(frame[1].shape)
    with session(), tables_of(frame[3]):
        grouped, values = lazy(frame)
        found = getattr(grouped, name)(values)
        np.testing.assert_allclose(found.compute(), expected, rtol=1e-9)
        np.testing.assert_array_equal(grouped.cumcount().compute(), by_pandas(frame).cumcount())


@settings(max_examples=examples(80), deadline=None)
@given(frame=frames(), method=st.sampled_from(["average", "min", "max", "dense", "first"]))
def test_ranks_are_those_within_the_group(frame: Any, method: Any) -> None:
    frame = (frame[0], np.round(frame[1]), *frame[2:])
    if frame[1].dtype.kind == "f":
        frame[1][0] = np.nan
    expected = by_pandas(frame).rank(method=method).to_numpy().reshape(frame[1].shape)
    with session():
        grouped, values = lazy(frame)
        np.testing.assert_array_equal(grouped.rank(values, method=method).compute(), expected)


@settings(max_examples=examples(80), deadline=None)
@given(frame=frames(), name=st.sampled_from(["sum", "min", "mean", "var", "median", "first"]))
def test_each_row_may_have_what_its_group_comes_to(frame: Any, name: str) -> None:
    options = {"ddof": 0} if name == "var" else {}
    expected = by_pandas(frame).transform(name, **options).to_numpy().reshape(frame[1].shape)
    with session(), tables_of(frame[3]):
        grouped, values = lazy(frame)
        np.testing.assert_allclose(grouped.transform(values, name).compute(), expected, rtol=1e-9, atol=1e-12)
        counts = by_pandas(frame)[0].transform("size")
        np.testing.assert_array_equal(grouped.transform(values, "count").compute(), counts)


@settings(max_examples=examples(80), deadline=None)
@given(frame=frames(), name=st.sampled_from(CHOSEN))
def test_rows_that_groups_choose(frame: Any, name: str) -> None:
    theirs = {"argmin": "idxmin", "argmax": "idxmax"}.get(name, name)
    expected = getattr(by_pandas(frame), theirs)().to_numpy().reshape(-1, *frame[1].shape[1:])
    with session(), tables_of(frame[3]):
        grouped, values = lazy(frame)
        np.testing.assert_array_equal(getattr(grouped, name)(values).compute(), expected)


@pytest.mark.parametrize("table_bytes", [4 << 20, 0])
def test_nan_is_met_as_numpy_meets_it(table_bytes: int) -> None:
    labels, nan = np.asarray([1, 0, 1, 0, 1]), np.nan
    values = np.asarray([4.0, 7.0, nan, 2.0, nan])
    with session(), tables_of(table_bytes):
        grouped = oc.groupby(oc.asarray(labels))
        np.testing.assert_array_equal(grouped.argmin(values).compute(), [3, 2])
        np.testing.assert_array_equal(grouped.argmax(values).compute(), [1, 2])
        np.testing.assert_array_equal(grouped.median(values).compute(), [4.5, nan])
        np.testing.assert_array_equal(grouped.cummax(values).compute(), [4, 7, nan, 7, nan])


@pytest.mark.parametrize("table_bytes", [4 << 20, 0])
def test_numbered_groups_without_rows_and_labels_left_out(table_bytes: int) -> None:
    labels, values = np.asarray([2, 9, 2, -1, 0]), np.asarray([1, 2, 3, 4, 5])
    nan = np.nan
    with session(), tables_of(table_bytes):
        grouped = oc.groupby(oc.asarray(labels), groups=4)
        np.testing.assert_array_equal(grouped.median(values).compute(), [5, nan, 2, nan])
        np.testing.assert_array_equal(grouped.first(values).compute(), [5, 0, 1, 0])
        np.testing.assert_array_equal(grouped.last(values * 1.0).compute(), [5, nan, 3, nan])
        np.testing.assert_array_equal(grouped.argmax(values).compute(), [4, -1, 2, -1])
        np.testing.assert_array_equal(grouped.transform(values, "sum").compute(), [4, 0, 4, 0, 5])
        np.testing.assert_array_equal(grouped.transform(values, "mean").compute(), [2, nan, 2, nan, 5])
        assert oc.groupby(oc.asarray(labels), groups=0).transform(values, "sum").compute().tolist() == [0] * 5


def test_no_rows_at_all() -> None:
    with session():
        for groups in (None, 3):
            grouped, rows = oc.groupby(oc.zeros(0, dtype=oc.int64), groups=groups), groups or 0
            for name in CHOSEN:
                assert getattr(grouped, name)(oc.zeros((0, 2))).compute().shape == (rows, 2), name
            for name in (*RUNNING, "rank"):
                assert getattr(grouped, name)(oc.zeros((0, 2))).compute().shape == (0, 2), name
            assert grouped.transform(oc.zeros((0, 2)), "mean").compute().shape == (0, 2)
            assert grouped.cumcount().compute().shape == (0,)


def test_columns_are_grouped_along_axis_1() -> None:
    random = np.random.default_rng(5)
    x, labels = random.normal(size=(6, 40)), random.integers(0, 4, 40)
    by_row, by_column = oc.groupby(labels), oc.groupby(labels, axis=1)
    with session():
        names = (*("sum", "prod", "min", "max", "mean", "var", "std"), *CHOSEN, *RUNNING, "rank")
        for name in names:
            found = getattr(by_column, name)(oc.asarray(x)).compute()
            np.testing.assert_allclose(found, getattr(by_row, name)(x.T).compute().T, rtol=1e-12)
        np.testing.assert_array_equal(
            by_column.transform(x, "max").compute(), np.stack([x[:, labels == k].max(1) for k in labels], axis=1)
        )
        with pytest.raises(ShapeError, match=r"sum: \(40, 6\) has no place along axis 1 for each of 40 labels"):
            by_column.sum(x.T)


def test_millions_of_rows_in_little_memory(tmp_path: Path, scratch: Path) -> None:
    random = np.random.default_rng(6)
    rows = 2_000_000
    labels, values = random.integers(0, 300_000, rows) * 7_000_003, random.integers(-9, 9, rows)
    np.save(tmp_path / "labels.npy", labels)
    np.save(tmp_path / "x.npy", values)
    expected = pandas.Series(values).groupby(labels)
    with session(scratch, pool_limit=96 << 20):
        grouped, x = oc.groupby(oc.open(tmp_path / "labels.npy")), oc.open(tmp_path / "x.npy")
        np.testing.assert_array_equal(grouped.cumsum(x).compute(), expected.cumsum())
        np.testing.assert_array_equal(grouped.median(x).compute(), expected.median())
        np.testing.assert_array_equal(grouped.transform(x, "max").compute(), expected.transform("max"))
        np.testing.assert_array_equal(grouped.rank(x).compute(), expected.rank())


def test_what_groups_do_not_know_is_refused() -> None:
    grouped = oc.groupby(oc.arange(2))
    with session():
        with pytest.raises(ArgumentError, match="method='mean' is none of average, min"):
            grouped.rank(oc.ones(2), method="mean")  # type: ignore[arg-type]
        with pytest.raises(ArgumentError, match="'mode' is not one of sum"):
            grouped.transform(oc.ones(2), "mode")
        with pytest.raises(ShapeError, match=r"cumsum: \(3,\) has no row for each of 2 labels"):
            grouped.cumsum(oc.ones(3))
        with pytest.raises(DTypeError, match="median: values of complex128"):
            grouped.median(oc.ones(2, dtype=oc.complex128))
        with pytest.raises(ArgumentError, match="axis=-1 is counted from the front"):
            oc.groupby(oc.arange(2), axis=-1)


def test_building_runs_nothing_where_labels_are_stored(tmp_path: Path) -> None:
    random = np.random.default_rng(4)
    first, second, x = random.integers(0, 9, 500), random.integers(0, 3, 500) * 10**9, random.random((500, 3))
    for name, values in (("first", first), ("second", second), ("x", x)):
        np.save(tmp_path / f"{name}.npy", values)
    with session() as s:
        keys = [oc.open(tmp_path / f"{name}.npy") for name in ("first", "second")]
        values = oc.open(tmp_path / "x.npy")
        before = s.counters()["bytes_read"]
        pairs = oc.groupby(keys)
        centered = oc.groupby(keys[0]).transform(values, "mean")
        made = [pairs.mean(values), pairs.cumsum(values), pairs.rank(values), pairs.cumcount(), *pairs.keys]
        with pytest.raises(ArgumentError, match="'mode' is not one of sum"):
            pairs.transform(values, "mode")
        with pytest.raises(ShapeError, match=r"groupby.transform: \(3,\) has no row for each of 500"):
            pairs.transform(np.ones(3), "mean")
        assert s.counters()["bytes_read"] == before
        codes = first * 3 + second // 10**9
        present, inverse = np.unique(codes, return_inverse=True)
        means = np.stack([x[codes == code].mean(axis=0) for code in present])
        np.testing.assert_allclose(made[0].compute(), means)
        np.testing.assert_allclose(pairs.transform(values, "mean").compute(), means[inverse])
        np.testing.assert_array_equal(made[-2].compute(), present // 3)
        np.testing.assert_array_equal(made[-1].compute(), present % 3 * 10**9)
        own = np.stack([x[first == code].mean(axis=0) for code in range(9)])
        np.testing.assert_allclose(centered.compute(), own[first])
        counts = [np.count_nonzero(codes[:row] == codes[row]) for row in range(500)]
        np.testing.assert_array_equal(made[3].compute(), counts)
