"""Distinct elements, orders and categories of numbers, complex numbers, dates and text, against NumPy's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.running import session
from support.sizes import examples

import outcore as oc
from outcore.errors import ArgumentError, DTypeError, ShapeError

SPECIAL = (0.0, -0.0, 1.0, -2.5, 5e-324, np.inf, -np.inf, np.nan)
POOLS: dict[str, list[Any]] = {
    "f4": [np.float32(x) for x in SPECIAL],
    "f8": list(SPECIAL),
    "c8": [complex(x, y) for x in (0, 1, np.inf, np.nan) for y in (-1, 2, np.nan)],
    "c16": [complex(x, y) for x in SPECIAL[2:] for y in (0, 3, -np.inf, np.nan)],
    "M8[D]": [0, 19000, -5, "NaT", 2**40, -(2**40)],
    "m8[ms]": [0, 1, -1, "NaT", 2**62, -(2**63) + 1],
    "S3": [b"", b"a", b"ab", b"\xff"],
    "S20": [b"", b"a long name", b"a long nam", b"a long name, longer", b"\xff" * 20],
    "U2": ["", "a", "é", "\U0001f600"],
    "U9": ["", "Amsterdam", "Amsterda", "Rome", "R\U0001f600me"],
    "i1": [-128, 127, 0],
    "u8": [0, 2**64 - 1, 2**63],
}


@st.composite
def elements(draw: st.DrawFn, kinds: Any = tuple(POOLS), ndim: int = 1) -> Any:
    kind = draw(st.sampled_from(kinds))
    shape = tuple(draw(st.lists(st.integers(1, 5) if ndim > 1 else st.integers(0, 12), min_size=ndim, max_size=ndim)))
    count = int(np.prod(shape))
    drawn = draw(st.lists(st.sampled_from(POOLS[kind]), min_size=count, max_size=count))
    if kind[0] in "mM":
        return np.asarray([np.array(x, kind) for x in drawn], dtype=kind).reshape(shape)
    return np.asarray(drawn, dtype=kind).reshape(shape)


def same(found: Any, wanted: Any) -> None:
    value = np.asarray(found)
    np.testing.assert_array_equal(value, wanted)
    assert value.dtype == wanted.dtype


@settings(max_examples=examples(25), deadline=None)
@given(x=st.one_of(elements(), elements(ndim=2)), equal_nan=st.booleans(), flags=st.tuples(*[st.booleans()] * 3))
def test_unique_with_what_is_asked_for(x: Any, equal_nan: bool, flags: tuple[bool, ...]) -> None:
    names = [name for name, asked in zip(("index", "inverse", "counts"), flags, strict=True) if asked]
    options = {f"return_{name}": True for name in names}
    # Without flags NumPy counts NaT as equal to itself whatever it is told; without places its sort is not stable.
    every = np.unique(x, return_index=True, return_inverse=True, return_counts=True, equal_nan=equal_nan)
    wanted = [part for part, asked in zip(every, (True, *flags), strict=True) if asked]
    with session():
        for found in (
            np.unique(oc.asarray(x), equal_nan=equal_nan, **options),
            oc.unique(x, *flags, equal_nan=equal_nan),
        ):
            for part, other in zip(found if names else (found,), wanted, strict=True):
                same(part, other)


@settings(max_examples=15, deadline=None)
@given(x=elements())
def test_the_standards_functions(x: Any) -> None:
    wanted = np.unique(x, return_index=True, return_inverse=True, return_counts=True, equal_nan=False)
    with session():
        lazy = oc.asarray(x)
        for found in (oc.unique_all(lazy), np.unique_all(lazy), oc.unique_all(x)):
            for part, other in zip(found, wanted, strict=True):
                same(part, other)
        same(oc.unique_values(lazy), wanted[0])
        for found, other in zip(oc.unique_counts(lazy), (wanted[0], wanted[3]), strict=True):
            same(found, other)
        for found, other in zip(oc.unique_inverse(lazy), (wanted[0], wanted[2]), strict=True):
            same(found, other)


@settings(max_examples=examples(20), deadline=None)
@given(x=st.one_of(elements(), elements(ndim=2)), data=st.data())
def test_sorts_along_each_axis(x: Any, data: st.DataObject) -> None:
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    if x.dtype.kind == "c":
        return
    with session():
        for given_as in (x, oc.asarray(x)):
            same(oc.sort(given_as, axis=axis), np.sort(x, axis=axis))
            same(oc.argsort(given_as, axis=axis), np.argsort(x, axis=axis, kind="stable"))
            down = oc.argsort(given_as, axis=axis, descending=True)
            same(oc.sort(given_as, axis=axis, descending=True), np.take_along_axis(x, down.compute(), axis=axis))
        if x.dtype.kind in "SU":
            _, codes = np.unique(x, return_inverse=True)
            same(down, np.argsort(-codes, axis=axis, kind="stable"))


@settings(max_examples=15, deadline=None)
@given(data=st.data(), descending=st.booleans())
def test_sort_by_carries_columns_of_any_type(data: st.DataObject, descending: bool) -> None:
    kinds = [kind for kind in POOLS if kind[0] != "c"]
    drawn = [data.draw(elements(kinds)) for _ in range(3)]
    length = min(len(column) for column in drawn)
    keys, *columns = (column[:length] for column in drawn)
    with session():
        order = oc.argsort(keys, descending=descending).compute()
        found = oc.sort_by(oc.asarray(keys), *columns, descending=descending)
        for part, column in zip(found, (keys, *columns), strict=True):
            same(part, column[order])


@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_lexsort_of_mixed_keys(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 8))
    keys = [data.draw(elements())[:count] for _ in range(data.draw(st.integers(1, 3)))]
    length = min(len(key) for key in keys)
    keys = [key[:length] for key in keys]
    with session():
        lazy = tuple(oc.asarray(key) for key in keys)
        wanted = np.lexsort(tuple(keys))
        same(oc.lexsort(lazy), wanted)
        same(oc.lexsort(keys), wanted)
        same(np.lexsort(lazy), wanted)


@settings(max_examples=15, deadline=None)
@given(x=st.one_of(elements(), elements(ndim=2)))
def test_categories_number_the_elements(x: Any) -> None:
    wanted, codes = np.unique(x, return_inverse=True)
    values = np.arange(x.size, dtype=float)
    with session():
        for found in (oc.asarray(x).categories(), oc.categories(x)):
            same(found.codes, codes)
            same(found.categories, wanted)
        if x.ndim == 1 and x.size:
            same(oc.groupby(found.codes).sum(values), np.bincount(codes, values))


@settings(max_examples=12, deadline=None)
@given(x=elements(kinds=("S3", "S20", "U2", "U9", "M8[D]", "m8[ms]")), data=st.data())
def test_groups_by_text_and_dates(x: Any, data: st.DataObject) -> None:
    if not x.size:
        return
    beside = np.asarray(data.draw(st.lists(st.integers(0, 2), min_size=x.size, max_size=x.size)))
    values = np.arange(x.size, dtype=float)
    wanted, codes = np.unique(x, return_inverse=True)
    with session():
        groups = oc.groupby(oc.asarray(x))
        same(groups.keys, wanted)
        same(groups.count(), np.bincount(codes))
        same(groups.max(values), np.asarray([values[codes == code].max() for code in range(len(wanted))]))
        pairs = oc.groupby((x, beside))
        both = np.unique(codes * 3 + beside)
        same(pairs.keys[0], wanted[both // 3])  # type: ignore[index]
        same(pairs.keys[1], both % 3)  # type: ignore[index]


@settings(max_examples=12, deadline=None)
@given(x=elements(kinds=("S3", "S20", "U2", "U9"), ndim=2), axis=st.sampled_from([None, 0, 1]), keepdims=st.booleans())
def test_extremes_of_text(x: Any, axis: int | None, keepdims: bool) -> None:
    with session():
        for name, place in (("min", 0), ("max", -1)):
            found = getattr(np, name)(oc.asarray(x), axis=axis, keepdims=keepdims)
            wanted = np.take(np.sort(x, axis=axis), [place], axis=axis)
            axes = (0, 1) if axis is None else axis
            wanted = wanted.reshape((1, 1)) if axis is None else wanted
            same(found, wanted if keepdims else np.squeeze(wanted, axes))


@settings(max_examples=6, deadline=None)
@given(x=elements(kinds=("S3", "S20", "U2", "U9", "M8[D]"), ndim=2), data=st.data())
def test_membership(x: Any, data: st.DataObject) -> None:
    kind = x.dtype.str.lstrip("<|")
    tests = data.draw(elements(kinds=(kind,)))
    many = np.concatenate([tests, *[np.asarray([f"{n}" for n in range(40)]).astype(x.dtype)] * (x.dtype.kind in "SU")])
    with session():
        for values in (tests, oc.asarray(many)):
            wanted = np.isin(x, np.asarray(values))
            same(oc.isin(x, values), wanted)
            same(oc.isin(oc.asarray(x), values, invert=True), ~wanted)
            same(np.isin(oc.asarray(x), values), wanted)


@settings(max_examples=8, deadline=None)
@given(x=elements(kinds=("f8", "c16")), data=st.data())
def test_sets_of_numbers(x: Any, data: st.DataObject) -> None:
    y = data.draw(elements(kinds=(x.dtype.str[1:],)))
    with session():
        lazy = oc.asarray(x)
        for function in (np.union1d, np.intersect1d, np.setdiff1d, np.setxor1d, np.isin):
            same(function(lazy, y), function(x, y))


def test_membership_of_words_given_as_a_list() -> None:
    cities = np.asarray(["Rome", "Oslo", "Amsterdam"])
    with session():
        same(oc.isin(oc.asarray(cities), ["Oslo", "Rome"]), np.asarray([True, True, False]))
        same(oc.asarray(cities.astype("S9")).isin("Oslo"), np.asarray([False, True, False]))
        same(oc.searchsorted(np.asarray(["2020", "2021"], "M8[Y]"), np.datetime64("2020-06", "M")), np.asarray(1))
        with pytest.raises(DTypeError, match="isin"):
            oc.isin(oc.asarray(cities), [1, 2])
        with pytest.raises(DTypeError, match="searchsorted"):
            oc.searchsorted(cities, [1, 2])
        same(oc.searchsorted(np.sort(cities), "Oslo"), np.asarray(1))


def test_distinct_text_is_sorted_when_it_is_needed() -> None:
    with session() as made:
        values, counts = oc.unique_counts(np.asarray(["Rome", "Oslo", "Rome"]))
        codes, _ = oc.categories(np.asarray(["Rome", "Oslo", "Rome"]))
        assert made.counters()["bytes_read"] == made.counters()["bytes_written"] == 0
        assert (values.dtype, values.tolist(), counts.tolist()) == (np.dtype("U4"), ["Oslo", "Rome"], [1, 2])
        assert codes.tolist() == [1, 0, 1]


def test_what_is_refused() -> None:
    with session():
        x = oc.asarray(np.asarray([["a", "b"]]))
        with pytest.raises(ArgumentError, match="axis=0"):
            np.unique(x, axis=0)
        with pytest.raises(ShapeError, match="lexsort: 2 keys of shapes"):
            oc.lexsort((np.asarray(["a"]), np.asarray([1, 2])))
        with pytest.raises(ShapeError, match="labels of shape"):
            oc.groupby(oc.asarray(np.asarray([["a long name"]])))
        with pytest.raises(DTypeError, match="complex128 has no order"):
            oc.sort_by(np.asarray([1j]))


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("kind", ["U", "S"])
@pytest.mark.parametrize("length", [1, 3, 9, 20])
def test_text_is_searched_for_as_numpy_does(length: int, kind: str, side: Any) -> None:
    random = np.random.default_rng(length)

    def words(count: int, most: int) -> Any:
        drawn = ["".join(random.choice(list("abc"), random.integers(0, most + 1))) for _ in range(count)]
        return np.asarray(drawn, dtype=f"{kind}{most}")

    row, tests = np.sort(words(60, length)), words(20, length + 1).reshape(4, 5)
    with session():
        np.testing.assert_array_equal(oc.searchsorted(row, tests, side=side), np.searchsorted(row, tests, side=side))
        lazy = oc.asarray(row)
        np.testing.assert_array_equal(np.searchsorted(lazy, tests, side), np.searchsorted(row, tests, side))
        assert int(oc.searchsorted(row[:0], row[:1], side=side)[0]) == 0


def test_arrays_of_dates_and_text_are_compared_whole() -> None:
    days = np.asarray(["2001-01-01", "NaT", "2003-02-01"], dtype="M8[D]")
    words = np.asarray(["a", "bc"])
    with session():
        for a, b in [
            (days, days),
            (days[[0, 2]], days[[0, 2]].astype("M8[s]")),
            (days[[0, 2]], days[[0, 0]]),
            (days, days[:2]),
            (days[:1], days[:1] - days[:1]),
            (days[:1], np.arange(1)),
            (words, words.astype("U7")),
            (words, words[::-1]),
            (words, words.astype("S")),
            (words, np.arange(2)),
        ]:
            assert bool(oc.array_equal(a, b)) == np.array_equal(a, b)
            assert bool(np.array_equal(oc.asarray(a), b)) == np.array_equal(a, b)
            assert bool(oc.array_equiv(a, b)) == np.array_equiv(a, b)
        assert bool(oc.array_equal(days, days, equal_nan=True))


def test_membership_of_integers_of_other_signs_is_exact() -> None:
    """In float64, which both promote to, the largest of one is that of the other."""
    signed = np.asarray([-(2**63), 2**63 - 1, 0, 5, -5])
    unsigned = np.asarray([2**64 - 1, 0, 1, 2**63, 2**64 - 5], dtype=np.uint64)
    with session():
        assert oc.isin(signed, unsigned).compute().tolist() == [False, False, True, False, False]
        assert oc.isin(unsigned, signed).compute().tolist() == [False, True, False, False, False]
        assert oc.isin(unsigned, np.asarray([-1, 1], dtype=np.int8)).compute().tolist() == [False, False, True] + 2 * [
            False
        ]
