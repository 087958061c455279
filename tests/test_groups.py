"""Groups of rows by labels, against a loop over the groups: few, many, absent, of all types, cut anywhere."""

from __future__ import annotations

import subprocess
import sys
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

FOLDS = ("sum", "prod", "min", "max", "mean", "var", "std")
LABELS = ("int64", "uint8", "int32", "bool", "float64", "uint64")


def by_hand(name: str, x: Any, labels: Any, keys: Any) -> Any:
    with np.errstate(all="ignore"):
        return np.stack([getattr(np, name)(x[labels == key], axis=0) for key in keys])


@st.composite
def tables(draw: st.DrawFn) -> Any:
    """Labels, a row of values for each, and the tiles they are cut by."""
    count = draw(st.integers(1, 40))
    random = np.random.default_rng(draw(st.integers(0, 9999)))
    kind = draw(st.sampled_from(LABELS))
    labels = random.integers(0, draw(st.sampled_from([1, 3, 200])), count)
    labels = labels - draw(st.sampled_from([0, 7, 100])) if kind in ("int64", "int32", "float64") else labels
    labels = labels.astype(np.uint64) + np.uint64(1 << 63) if kind == "uint64" and draw(st.booleans()) else labels
    shape = (count, *draw(st.sampled_from([(), (3,), (2, 2)])))
    dtype = draw(st.sampled_from(["float64", "float32", "int64", "int16", "bool"]))
    values = (random.normal(size=shape) * 3).astype(dtype)
    if dtype.startswith("f"):
        values[random.random(shape) < 0.1] = np.nan
    tiles = [tuple(draw(st.integers(1, length)) for length in array) for array in ((count,), shape)]
    return labels.astype(kind), values, tiles


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("table_bytes", [4 << 20, 0])
@settings(max_examples=examples(60), deadline=None)
@given(table=tables(), name=st.sampled_from(FOLDS))
def test_every_fold_is_that_of_each_group(table_bytes: int, table: Any, name: str) -> None:
    """By tables, and by sorting, to which they give way where they are large."""
    labels, values, tiles = table
    kept, chapter._TABLE_BYTES = chapter._TABLE_BYTES, table_bytes
    try:
        with session():
            grouped = oc.groupby(oc.rechunk(oc.asarray(labels), tiles[0]))
            found = getattr(grouped, name)(oc.rechunk(oc.asarray(values), tiles[1]))
            keys = np.unique(labels)
            expected = by_hand(name, values, labels, keys)
            np.testing.assert_array_equal(grouped.keys.compute(), keys)
            assert grouped.keys.dtype == keys.dtype
            assert found.dtype == getattr(oc, name)(oc.asarray(values), axis=0).dtype
            is_single = values.dtype == np.float32
            np.testing.assert_allclose(
                found.compute(), expected, rtol=1e-4 if is_single else 1e-10, atol=1e-4 if is_single else 1e-9
            )
            np.testing.assert_array_equal(grouped.count().compute(), np.unique(labels, return_counts=True)[1])
    finally:
        chapter._TABLE_BYTES = kept


@pytest.mark.parametrize("table_bytes", [4 << 20, 0])
def test_numbered_groups_have_rows_also_where_nobody_is(table_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chapter, "_TABLE_BYTES", table_bytes)
    labels, values = np.asarray([4, 1, -1, 4, 9, 1]), np.asarray([1.0, 2.0, 3.0, 5.0, 7.0, 8.0])
    with session():
        grouped = oc.groupby(oc.asarray(labels), groups=6)
        np.testing.assert_array_equal(grouped.keys.compute(), np.arange(6))
        np.testing.assert_array_equal(grouped.count().compute(), [0, 2, 0, 0, 2, 0])
        np.testing.assert_array_equal(grouped.sum(oc.asarray(values)).compute(), [0, 10, 0, 0, 6, 0])
        nan = np.nan
        np.testing.assert_array_equal(grouped.mean(oc.asarray(values)).compute(), [nan, 5, nan, nan, 3, nan])
        np.testing.assert_array_equal(grouped.max(oc.asarray(values)).compute(), [nan, 8, nan, nan, 5, nan])
        np.testing.assert_array_equal(grouped.var(oc.asarray(values)).compute()[[1, 4]], [9, 4])
        least = np.iinfo(np.int32).max
        whole = oc.asarray(values.astype(np.int32))
        np.testing.assert_array_equal(grouped.min(whole).compute(), [least, 2, least, least, 1, least])
        none = oc.groupby(oc.zeros((0,), dtype=oc.int64), groups=2)
        np.testing.assert_array_equal(none.sum(oc.zeros((0, 3))).compute(), np.zeros((2, 3)))


def test_labels_of_any_order_and_none() -> None:
    with session():
        labels = np.asarray([2.5, -1.0, np.inf, 2.5, -0.0, 0.0])
        grouped = oc.groupby(oc.asarray(labels))
        np.testing.assert_array_equal(grouped.keys.compute(), [-1, 0, 2.5, np.inf])
        np.testing.assert_array_equal(grouped.sum(oc.arange(6)).compute(), [1, 9, 3, 2])
        empty = oc.groupby(oc.zeros((0,)))
        assert empty.sum(oc.zeros((0,))).shape == (0,)
        assert empty.count().compute().shape == (0,)
        assert grouped.sum(oc.zeros((6, 0))).compute().shape == (4, 0)
        assert oc.groupby(oc.arange(6) * 0.5).mean(oc.zeros((6, 0))).compute().shape == (6, 0)
        assert oc.groupby(oc.arange(6)).mean(oc.zeros((6, 2, 0))).compute().shape == (6, 2, 0)
        low, high = grouped.aggregate(oc.arange(6), ["min", "max"])
        assert (low.compute()[2], high.compute()[2]) == (0, 3)


def test_a_table_is_filled_in_one_read(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    rows = 200_000
    values, labels = random.normal(size=(rows, 16)), random.integers(0, 50, rows)
    np.save(tmp_path / "x.npy", values)
    np.save(tmp_path / "labels.npy", labels)
    with session(pool_limit=24 << 20):
        x, given_labels = oc.open(tmp_path / "x.npy"), oc.open(tmp_path / "labels.npy")
        means = oc.groupby(given_labels, groups=50).mean(x)
        said = oc.explain(means)
        assert said.exact
        assert said.bytes_read < 1.02 * (values.nbytes + 2 * labels.nbytes)
        np.testing.assert_allclose(means.compute(), by_hand("mean", values, labels, range(50)), rtol=1e-10)


def test_many_groups_are_the_same_at_every_limit(tmp_path: Path, scratch: Path) -> None:
    random = np.random.default_rng(2)
    rows = 3_000_000
    labels, values = random.integers(0, 1 << 40, rows) // (1 << 19), random.normal(size=rows)
    np.save(tmp_path / "x.npy", values)
    np.save(tmp_path / "labels.npy", labels)
    keys, inverse = np.unique(labels, return_inverse=True)
    found = []
    for pool, threads in [(72 << 20, 1), (256 << 20, 3)]:
        with session(scratch, pool_limit=pool, threads=threads):
            grouped = oc.groupby(oc.open(tmp_path / "labels.npy"))
            found.append(oc.compute(grouped.keys, grouped.sum(oc.open(tmp_path / "x.npy")), grouped.count()))
    np.testing.assert_array_equal(found[0][0], keys)
    np.testing.assert_allclose(found[0][1], np.bincount(inverse, weights=values), atol=1e-12)
    np.testing.assert_array_equal(found[0][2], np.bincount(inverse))
    for few, many in zip(*found, strict=True):
        np.testing.assert_array_equal(few, many)


def test_what_cannot_be_grouped_is_refused() -> None:
    with session():
        with pytest.raises(ShapeError, match=r"labels of shape \(2, 2\) are not one row"):
            oc.groupby(oc.ones((2, 2)))
        with pytest.raises(ShapeError, match=r"sum: \(3,\) has no row for each of 2 labels"):
            oc.groupby(oc.arange(2)).sum(oc.ones(3))
        with pytest.raises(ArgumentError, match=r"groups=3 for labels of float64"):
            oc.groupby(oc.ones(2), groups=3)
        with pytest.raises(DTypeError, match="values of complex128"):
            oc.groupby(oc.arange(2)).sum(oc.ones(2, dtype=oc.complex128))
        with pytest.raises(ArgumentError, match="'mode' is not one of sum"):
            oc.groupby(oc.arange(2)).aggregate(oc.ones(2), ["mode"])


@pytest.mark.parametrize("labels", [np.asarray([0, 0, 1, 2]), np.asarray([0.5, 0.5, 9, 10])])
def test_a_variance_of_too_few_numbers_is_nan(labels: Any) -> None:
    x = np.asarray([np.nan, np.nan, 4.0, np.nan])
    with session():
        for lazy in (labels, oc.asarray(labels)):
            groups = oc.groupby(lazy)
            for ddof in (0, 1, 3):
                expected = [np.nan, np.nan if ddof else 0.0, np.nan]
                np.testing.assert_array_equal(groups.var(x, ddof=ddof, skipna=True).compute(), expected)
                np.testing.assert_array_equal(groups.std(x, ddof=ddof, skipna=True).compute(), expected)
        empty = oc.groupby(np.asarray([0, 2, 2]), groups=4).var(np.asarray([1.0, 2, 4]), ddof=1)
        np.testing.assert_array_equal(empty.compute(), [np.nan, np.nan, 2, np.nan])


def test_building_loads_no_modules() -> None:
    """What an expression costs to build is the first call's too: numpy.ma alone takes 30 ms to load."""
    program = (
        "import sys, numpy as np, outcore as oc; x = oc.ones((4, 2)); before = set(sys.modules);"
        "oc.groupby(np.asarray([1, 1, 0, 1])).mean(x), oc.median(np.ones(3)), oc.sort(np.ones(3));"
        "print(sorted(name for name in set(sys.modules) - before if name.startswith('numpy.')))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
