"""Fixed-length strings in files and in memory, against NumPy's own."""

from __future__ import annotations

import operator
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.running import session
from support.sizes import examples

import outcore as oc
from outcore.errors import DTypeError, ShapeError

COMPARISONS = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)


@st.composite
def strings(draw: st.DrawFn, dtype: str, rows: int | None = None) -> Any:
    """Short strings of few letters, so that many are equal or begin alike, in NumPy's type."""
    kind, length = dtype[0], int(dtype[1:])
    letters = "ab\xff" if kind == "S" else "abé\U0001f600"
    size = st.integers(1, 9) if rows is None else st.just(rows)
    count = draw(size)
    words = draw(st.lists(st.text(letters, max_size=length), min_size=count, max_size=count))
    return np.asarray([word.encode("latin-1") if kind == "S" else word for word in words], dtype=dtype)


def lazy_of(x: Any, tile: int) -> Any:
    made: Any = oc.asarray(x)
    return oc.Text(oc.rechunk(made.codes, (min(tile, len(x)), 1)), x.dtype)


@settings(max_examples=examples(120), deadline=None)
@given(
    dtypes=st.sampled_from(["S3S3", "S2S9", "S20S1", "U1U1", "U3U2", "U7U4"]), tile=st.integers(1, 4), data=st.data()
)
def test_comparisons(dtypes: str, tile: int, data: st.DataObject) -> None:
    kind = dtypes[0]
    first, second = (kind + length for length in dtypes[1:].split(kind))
    x = data.draw(strings(first))
    y = data.draw(strings(second, rows=len(x)))
    with session():
        for compare in COMPARISONS:
            np.testing.assert_array_equal(compare(lazy_of(x, tile), lazy_of(y, 2)).compute(), compare(x, y))
            np.testing.assert_array_equal(compare(lazy_of(x, tile), y).compute(), compare(x, y))
            np.testing.assert_array_equal(compare(y, lazy_of(x, tile)).compute(), compare(y, x))
            np.testing.assert_array_equal(compare(lazy_of(x, tile), y[0].item()).compute(), compare(x, y[0]))


@settings(max_examples=examples(60), deadline=None)
@given(dtype=st.sampled_from(["S1", "S5", "S8", "S20", "U1", "U3", "U7"]), tile=st.integers(1, 4), data=st.data())
def test_order_and_groups(dtype: str, tile: int, data: st.DataObject) -> None:
    x = data.draw(strings(dtype))
    with session():
        lazy = lazy_of(x, tile)
        assert lazy.compute().dtype == x.dtype
        np.testing.assert_array_equal(lazy.compute(), x)
        np.testing.assert_array_equal(np.sort(lazy).compute(), np.sort(x))
        np.testing.assert_array_equal(np.argsort(lazy).compute(), np.argsort(x, kind="stable"))
        expected, places = np.unique(x, return_inverse=True)
        np.testing.assert_array_equal(np.unique(lazy).compute(), expected)
        assert (lazy.min().item(), lazy.max().item()) == (expected[0], expected[-1])
        groups = oc.groupby(lazy)
        np.testing.assert_array_equal(groups.keys.compute(), expected)
        np.testing.assert_array_equal(groups.sum(np.arange(len(x))).compute(), np.bincount(places, np.arange(len(x))))


@pytest.mark.parametrize("dtype", ["S4", "<U3", ">U3", "S13"])
@pytest.mark.parametrize("shape", [(0,), (5,), (3, 4), ()])
def test_files_of_text(dtype: str, shape: tuple[int, ...], tmp_path: Path) -> None:
    count = int(np.prod(shape))
    x = np.asarray([f"n{place}" for place in range(count)], dtype=dtype).reshape(shape)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "f.npy", np.asfortranarray(x) if x.ndim else x)
    with session():
        for name in ("x", "f"):
            lazy: Any = oc.open(tmp_path / f"{name}.npy")
            assert isinstance(lazy, oc.Text)
            assert (lazy.shape, lazy.dtype) == (shape, x.dtype.newbyteorder("="))
            np.testing.assert_array_equal(lazy.compute(), x)
            np.testing.assert_array_equal((lazy == "n1").compute(), x == np.asarray("n1", dtype=dtype))


def test_fields_of_records(tmp_path: Path) -> None:
    records = np.zeros(1000, dtype=[("city", "S3"), ("name", "U2"), ("when", "M8[D]"), ("price", "f8")])
    records["city"] = np.asarray([b"osl", b"ro", b""])[np.arange(1000) % 3]
    records["name"] = np.asarray(["a", "éé"])[np.arange(1000) % 2]
    records["when"] = np.arange(1000).astype("M8[D]")
    records["price"] = np.arange(1000)
    np.save(tmp_path / "x.npy", records)
    with session():
        city, name, when, price = (oc.open(tmp_path / "x.npy", field=field) for field in records.dtype.names or ())
        for lazy, field in ((city, "city"), (name, "name"), (when, "when")):
            np.testing.assert_array_equal(lazy.compute(), records[field])
        late = (when >= "1971-01-01") & (city == "osl")
        wanted = (records["when"] >= np.datetime64("1971-01-01")) & (records["city"] == b"osl")
        assert price[late].sum().item() == records["price"][wanted].sum()
        assert oc.groupby(city).keys.compute().tolist() == [b"", b"osl", b"ro"]


def test_parts_of_text() -> None:
    x = np.asarray([["ab", "c"], ["", "de"], ["f", "ab"]])
    with session():
        lazy: Any = oc.asarray(x)
        for key in (0, -1, slice(1, None), (slice(None), 1), (0, 1), (..., 0), None, (slice(None, None, -1), slice(1))):
            np.testing.assert_array_equal(lazy[key].compute(), x[key])
        np.testing.assert_array_equal(lazy[oc.asarray([True, False, True])].compute(), x[[0, 2]])
        np.testing.assert_array_equal(lazy[:, 1][lazy[:, 0] != ""].compute(), x[[0, 2], 1])
        np.testing.assert_array_equal(lazy.reshape(-1, 3).compute(), x.reshape(-1, 3))
        assert lazy.codes.shape == (3, 2, 2)
        assert repr(lazy) == "outcore.Text(shape=(3, 2), dtype=<U2, 48 B, in memory)"
        assert pickle.loads(pickle.dumps(lazy)).tolist() == x.tolist()
        assert [part.item() for part in lazy[0]] == ["ab", "c"]


def test_what_is_refused() -> None:
    with session():
        long: Any = oc.asarray(np.asarray([b"a long name", b"another"]))
        short: Any = oc.asarray(np.asarray(["ab", "c"]))
        with pytest.raises(DTypeError, match="compare"):
            long == short  # noqa: B015
        with pytest.raises(DTypeError, match=r"\.codes"):
            oc.sum(short)
        with pytest.raises(DTypeError, match="codes"):
            np.strings.upper(short)
        with pytest.raises(DTypeError, match="codes"):
            np.concatenate([short, short])
        with pytest.raises(DTypeError, match="last axis"):
            oc.Text(oc.asarray([1, 2]), "S2")
        with pytest.raises(ShapeError):
            short.item()
        with pytest.raises(oc.errors.IndexingError):
            short[0, 0]
        assert (short == 3) is False
        with pytest.raises(TypeError):
            short < 3  # noqa: B015
