"""Dates and times: what NumPy gives of its own datetime64 and timedelta64, lazy arrays of them give, in every unit."""

from __future__ import annotations

import copy
import datetime
import operator
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.dates import same
from support.running import session
from support.sizes import examples

import outcore as oc
from outcore.errors import (
    ArgumentError,
    DTypeError,
    RangeError,
    ShapeError,
)

UNITS = ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "25s", "3M", "2D", "7h")
# About the years 1600 to 2400: leap centuries on both sides of 1970, and within what nanoseconds hold.
DAYS = 130_000
FINE = {"ns": 100_000}  # nanoseconds hold 292 years only


@st.composite
def moments(draw: st.DrawFn, kind: str = "M", unit: str | None = None, ndim: int = 1, least: int = 1) -> Any:
    """Small arrays of dates or durations with some NaT, and the tile they are cut by."""
    unit = draw(st.sampled_from(UNITS)) if unit is None else unit
    shape = tuple(draw(st.integers(least, 9)) for _ in range(ndim))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    seconds = random.integers(-DAYS * 86_400, DAYS * 86_400, shape)
    if unit == "ns":
        seconds = seconds * 3 // 4
    seconds[random.random(shape) < 0.3] //= 86_400 * 365
    values = seconds.astype("M8[s]").astype(f"M8[{unit}]")
    if kind == "m":
        values = (values.view(np.int64) % random.choice([5, 1000, 10**6]) - 2).astype(f"m8[{unit}]")
    values[random.random(shape) < draw(st.sampled_from([0, 0.3]))] = "NaT"
    return values, tuple(draw(st.integers(1, length)) for length in shape)


def lazy_of(x: Any, tile: tuple[int, ...]) -> Any:
    made: Any = oc.asarray(x)
    assert isinstance(made, oc.Dates)
    return oc.dates.view(oc.rechunk(made.integers, tile), x.dtype)


def outcome(call: Callable[..., Any], *args: Any) -> Any:
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return call(*args)
    except (TypeError, OverflowError, ValueError) as error:
        return error


def check(call: Callable[..., Any], x: Any, tile: tuple[int, ...], *others: Any) -> None:
    """The same of a lazy array as of NumPy's own; both refuse, or neither."""
    with session():
        same(outcome(call, lazy_of(x, tile), *others), outcome(call, x, *others))


# -- units and the calendar -------------------------------------------------------------------------------------------


@settings(max_examples=examples(300), deadline=None)
@given(made=moments(), to=st.sampled_from(UNITS))
def test_dates_change_their_unit_as_numpys(made: Any, to: str) -> None:
    check(lambda t: t.astype(f"M8[{to}]"), *made)


@settings(max_examples=examples(200), deadline=None)
@given(made=moments(kind="m"), to=st.sampled_from(UNITS))
def test_durations_change_their_unit_as_numpys(made: Any, to: str) -> None:
    x, tile = made
    x[~np.isnat(x)] = (x[~np.isnat(x)].view(np.int64) % 97 - 48).view(x.dtype)  # NumPy too wraps round what is more
    with session():
        found = lazy_of(x, tile).astype(f"m8[{to}]")
        if np.datetime_data(x.dtype)[0] in "YM" and to in ("ms", "us", "ns"):
            x = x.astype(
                "m8[s]"
            )  # in one step NumPy's product overflows before it is divided; a month is whole seconds
        same(found, x.astype(f"m8[{to}]"))


def test_every_day_of_eight_centuries_lies_in_its_month() -> None:
    days = np.arange("1570-01-01", "2430-01-01", dtype="M8[D]")
    with session():
        lazy: Any = oc.asarray(days)
        for unit in ("M", "Y"):
            np.testing.assert_array_equal(lazy.astype(f"M8[{unit}]").compute(), days.astype(f"M8[{unit}]"))
        months = np.arange("-4800-01", "4800-01", dtype="M8[M]")
        first: Any = oc.asarray(months)
        np.testing.assert_array_equal(first.astype("M8[D]").compute(), months.astype("M8[D]"))


@pytest.mark.parametrize("text", ["-0001-12-31", "0000-02-29", "1600-02-29", "1900-02-28", "1969-12-31", "12000-02-29"])
def test_leap_days_and_far_years(text: str) -> None:
    day = np.asarray([text], dtype="M8[D]")
    for unit in ("Y", "M", "W", "s"):
        check(lambda t, unit=unit: t.astype(f"M8[{unit}]").astype("M8[D]"), day, (1,))


def test_units_too_far_apart_are_refused() -> None:
    with session(), pytest.raises(RangeError, match="64 bits"):
        oc.asarray(np.asarray([1], dtype="m8[W]")).astype("m8[as]")


# -- arithmetic and comparisons ---------------------------------------------------------------------------------------

OPERATORS = (
    *(operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod),
    *(operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne),
)
SCALARS: tuple[Any, ...] = (
    *(np.datetime64("2024-02-29"), np.datetime64("1955-06-30T12:00", "m"), np.datetime64("NaT")),
    *(np.timedelta64(36, "h"), np.timedelta64(-3, "M"), np.timedelta64(7), np.timedelta64("NaT", "s")),
    *(3, -2, 0, 2.5, 0.0, np.int32(5), np.float64("nan"), np.uint8(2)),
)


def is_comparison(operate: Any) -> bool:
    return operate.__name__ in ("lt", "le", "gt", "ge", "eq", "ne")


def both_orders(operate: Any, x: Any, tile: tuple[int, ...], scalar: Any) -> None:
    expected = outcome(operate, x, scalar)
    if isinstance(expected, bool) or (is_comparison(operate) and np.asarray(scalar).dtype.kind in "iufO"):
        return  # NumPy's answer to what does not compare: one False for all; ours is a refusal, tested below
    if (
        is_comparison(operate)
        and outcome(np.equal.resolve_dtypes, (x.dtype, np.asarray(scalar).dtype, None)).__class__ is not tuple
    ):
        return
    with session():
        same(outcome(operate, lazy_of(x, tile), scalar), expected)
        same(outcome(operate, scalar, lazy_of(x, tile)), outcome(operate, scalar, x))


@settings(max_examples=examples(400), deadline=None)
@given(
    made=st.one_of(moments(), moments(kind="m")),
    operate=st.sampled_from(OPERATORS),
    scalar=st.integers(0, len(SCALARS) - 1),
)
def test_operators_with_scalars(made: Any, operate: Any, scalar: int) -> None:
    both_orders(operate, *made, SCALARS[scalar])


@settings(max_examples=examples(400), deadline=None)
@given(
    kinds=st.tuples(st.sampled_from("Mm"), st.sampled_from("Mm")), operate=st.sampled_from(OPERATORS), data=st.data()
)
def test_operators_with_arrays(kinds: tuple[str, str], operate: Any, data: st.DataObject) -> None:
    x, tile = data.draw(moments(kind=kinds[0]))
    y, other = data.draw(moments(kind=kinds[1]))
    length = min(len(x), len(y))
    x, y = x[:length], y[:length]
    expected = outcome(operate, x, y)
    if is_comparison(operate) and isinstance(outcome(np.equal.resolve_dtypes, (x.dtype, y.dtype, None)), Exception):
        return
    with session():
        first, second = lazy_of(x, tile), lazy_of(y, other)
        same(outcome(operate, first, second), expected)
        same(outcome(operate, x, second), expected)
        same(outcome(operate, first, y), expected)


UNARY = (np.isnat, np.isnan, np.isfinite, np.negative, np.positive, np.absolute, np.sign)
BINARY = (np.minimum, np.maximum, np.fmin, np.fmax)


@settings(max_examples=examples(150), deadline=None)
@given(made=st.one_of(moments(), moments(kind="m")), function=st.sampled_from(UNARY))
def test_ufuncs_of_one(made: Any, function: Any) -> None:
    check(function, *made)


@settings(max_examples=examples(100), deadline=None)
@given(data=st.data(), kind=st.sampled_from("Mm"), function=st.sampled_from(BINARY))
def test_the_smaller_and_larger_of_two(data: st.DataObject, kind: str, function: Any) -> None:
    x, tile = data.draw(moments(kind=kind, unit="h"))
    y, _ = data.draw(moments(kind=kind, unit="s"))
    length = min(len(x), len(y))
    check(lambda t: function(t, y[:length]), x[:length], (min(tile[0], length),))


@settings(max_examples=examples(60), deadline=None)
@given(made=moments(kind="m"), number=st.sampled_from([np.int64(-3), np.float64(1.75), np.float32(0.5)]))
def test_numbers_of_durations(made: Any, number: Any) -> None:
    x, tile = made
    numbers = (np.arange(len(x)) - 2) * number
    with session():
        for operate in (operator.mul, operator.truediv, operator.floordiv):
            same(outcome(operate, lazy_of(x, tile), oc.asarray(numbers)), outcome(operate, x, numbers))
        same(oc.asarray(numbers) * lazy_of(x, tile), numbers * x)


def test_pythons_dates_are_numpys() -> None:
    days = np.asarray(["2024-02-28", "2024-03-01", "NaT"], dtype="M8[D]")
    with session():
        lazy: Any = oc.asarray(days)
        same(lazy - datetime.date(2024, 2, 1), days - np.datetime64("2024-02-01"))
        same(datetime.datetime(2024, 2, 1, 6) - lazy, np.datetime64("2024-02-01T06", "us") - days)
        same(lazy + datetime.timedelta(hours=30), days + np.timedelta64(30 * 3600 * 10**6, "us"))
        same(lazy > datetime.date(2024, 2, 28), days > np.datetime64("2024-02-28"))


def test_comparisons_with_text() -> None:
    days = np.asarray(["2024-02-28", "2024-03-01", "NaT", "1955-01-01"], dtype="M8[D]")
    with session():
        lazy: Any = oc.asarray(days)
        for operate in OPERATORS[6:]:
            for text in ("2024-03", "2024-02-28T12:30", "NaT"):
                same(operate(lazy, text), operate(days, np.datetime64(text)))
        assert lazy[lazy >= "2024-01-01"].compute().tolist() == days[:2].tolist()
        with pytest.raises(DTypeError, match="March"):
            lazy < "in March"  # noqa: B015


@pytest.mark.parametrize(
    "call",
    [
        lambda t, d: t + t,
        lambda t, d: t * 2,
        lambda t, d: -t,
        lambda t, d: t + np.timedelta64(1, "M"),
        lambda t, d: t == 3,
        lambda t, d: t < d,
        lambda t, d: d + 0.5,
        lambda t, d: d * d,
        lambda t, d: d + np.timedelta64(1, "Y"),
        lambda t, d: t + np.asarray(["text"]),
        lambda t, d: np.add(t, d, out=np.zeros(2, "M8[D]")),
        lambda t, d: np.add.reduce(d),
        lambda t, d: np.exp(d),
        lambda t, d: np.linalg.norm(d),
        lambda t, d: t.astype("m8[D]"),
        lambda t, d: t.astype("U10"),
        lambda t, d: t.sum(),
        lambda t, d: t.mean(),
        lambda t, d: t.cumsum(),
        lambda t, d: np.concatenate([t, d]),
        lambda t, d: np.where(t == t, t, d),
        lambda t, d: oc.sum(d),
        lambda t, d: oc.asarray([1, 2]) * t,
        lambda t, d: oc.dates.view(oc.asarray([1.5]), "M8[D]"),
        lambda t, d: oc.dates.view(oc.asarray([1]), "M8"),
        lambda t, d: oc.dates.view(oc.asarray([1]), "f8"),
        lambda t, d: oc.Dates(oc.asarray([1.5]), "M8[D]"),
        lambda t, d: oc.asarray(t, dtype="f8"),
        lambda t, d: np.sort(t, order="x"),
    ],
)
def test_what_numpy_refuses_is_refused(call: Callable[[Any, Any], Any]) -> None:
    with session():
        dates: Any = oc.asarray(np.asarray(["2024-02-28", "2024-03-01"], dtype="M8[D]"))
        with pytest.raises(DTypeError):
            call(dates, dates - np.datetime64("2024-01-01"))


def test_strangers_are_left_to_answer() -> None:
    class Stranger:
        def __radd__(self, other: Any) -> str:
            return "theirs"

    with session():
        dates: Any = oc.asarray(np.zeros(2, "M8[D]"))
        assert dates + Stranger() == "theirs"
        with pytest.raises(TypeError):
            dates - object()
        assert (dates == object()) is False
        with pytest.raises(TypeError):
            hash(dates)


# -- order, reductions, functions -------------------------------------------------------------------------------------


@settings(max_examples=examples(100), deadline=None)
@given(made=st.one_of(moments(ndim=2), moments(kind="m", ndim=2)), axis=st.sampled_from([None, 0, 1]))
def test_extremes_and_sorts(made: Any, axis: int | None) -> None:
    for function in (np.min, np.max, np.argmin, np.argmax, np.ptp):
        check(lambda t, function=function: function(t, axis=axis), *made)
    for function in (np.sort, np.argsort):
        check(lambda t, function=function: function(t, axis=axis, kind="stable"), *made)
    check(lambda t: t.min(axis=axis, keepdims=True), *made)
    check(lambda t: t.max(axis=axis, keepdims=True), *made)


@settings(max_examples=examples(100), deadline=None)
@given(made=moments(kind="m", ndim=2), axis=st.sampled_from([None, 0, 1]))
def test_sums_and_means_of_durations(made: Any, axis: int | None) -> None:
    for function in (np.sum, np.mean, np.cumsum):
        check(lambda t, function=function: function(t, axis=axis), *made)


def test_the_mean_of_no_durations() -> None:
    check(lambda t: t.mean(), np.zeros(0, "m8[s]"), (1,))


@settings(max_examples=examples(60), deadline=None)
@given(made=st.one_of(moments(), moments(kind="m")), data=st.data())
def test_unique_and_places(made: Any, data: st.DataObject) -> None:
    x, tile = made
    check(np.unique, x, tile)
    with session():
        values, counts = np.unique(lazy_of(x, tile), return_counts=True)
        same(values, np.unique(x, return_counts=True)[0])
        same(counts, np.unique(x, return_counts=True)[1])
    row = np.sort(x)
    wanted = np.concatenate([x[::-1], x[:1] + np.timedelta64(1)])
    for side in ("left", "right"):
        check(lambda t, side=side: np.searchsorted(t, wanted, side=side), row, tile)
    check(lambda t: np.isin(t, wanted[::2]), x, tile)


@settings(max_examples=examples(80), deadline=None)
@given(made=st.one_of(moments(ndim=2, least=3), moments(kind="m", ndim=2, least=3)), seed=st.integers(0, 99))
def test_differences_joins_and_choices(made: Any, seed: int) -> None:
    x, tile = made
    mask = np.random.default_rng(seed).random(x.shape) < 0.5
    check(np.diff, x, tile)
    check(lambda t: np.diff(t, n=2, axis=0), x, tile)
    check(lambda t: np.where(mask, t, x.dtype.type("NaT", "D")), x, tile) if x.dtype != "m8[Y]" else None
    check(lambda t: np.where(mask, x[::-1], t), x, tile)
    check(lambda t: np.concatenate([t, x], axis=1), x, tile)
    check(lambda t: np.stack([t, x]), x, tile)


MOVES: tuple[Callable[[Any], Any], ...] = (
    *(lambda t: t.T, lambda t: t[1], lambda t: t[::-2, 1:], lambda t: t[..., 0], lambda t: t[[0, 2]], np.ravel),
    *(lambda t: t.reshape(-1), lambda t: t[t == t], lambda t: t[0, 0], np.flip, np.transpose, lambda t: t[None]),
    *(lambda t: np.roll(t, 2, axis=0), lambda t: np.repeat(t, 2, axis=1), lambda t: np.take(t, [1, 0], axis=1)),
    *(lambda t: np.expand_dims(t, 0), lambda t: np.broadcast_to(t, (2, *t.shape)), np.copy),
)


@settings(max_examples=examples(30), deadline=None)
@given(made=moments(ndim=2, least=3))
def test_parts_and_forms(made: Any) -> None:
    for move in MOVES:
        check(move, *made)


def test_assignment_makes_a_new_value_behind_the_name() -> None:
    days = np.arange("2024-01-01", "2024-01-09", dtype="M8[D]")
    with session():
        lazy: Any = oc.asarray(days)
        before, held = lazy.copy(), lazy.integers
        lazy[2] = np.datetime64("NaT")
        lazy[lazy > "2024-01-06"] = "2030-12-31"
        lazy[:2] = days[:2] + np.timedelta64(36, "h")
        expected = days.copy()
        expected[2] = "NaT"
        expected[expected > np.datetime64("2024-01-06")] = "2030-12-31"
        expected[:2] = days[:2] + np.timedelta64(36, "h")
        np.testing.assert_array_equal(lazy.compute(), expected)
        np.testing.assert_array_equal(before.compute(), days)
        np.testing.assert_array_equal(held.compute(), days.view(np.int64))


def test_what_dates_say_of_themselves() -> None:
    days = np.asarray([["2024-02-28", "NaT"]], dtype="M8[2D]")
    with session():
        lazy: Any = oc.asarray(days)
        assert (lazy.shape, lazy.ndim, lazy.size, len(lazy), lazy.nbytes) == ((1, 2), 2, 2, 1, 16)
        assert (lazy.unit, lazy.dtype) == ("2D", np.dtype("M8[2D]"))
        assert repr(lazy) == "outcore.Dates(shape=(1, 2), dtype=datetime64[2D], 16 B, in memory)"
        assert list(lazy[0]) == list(days[0]) or np.isnat(list(lazy[0])[1])
        assert lazy[0, 0].item() == days[0, 0].item()
        assert lazy.tolist() == days.tolist()
        for twin in (copy.copy(lazy), copy.deepcopy(lazy), pickle.loads(pickle.dumps(lazy)), lazy.persist()):
            np.testing.assert_array_equal(twin.compute(), days)
        np.testing.assert_array_equal(np.asarray(lazy), days)
        with pytest.raises(ShapeError):
            lazy.item()
        with pytest.raises(ShapeError, match="ambiguous"):
            bool(lazy)
        assert bool(lazy[0, 0]) == bool(days[0, 0])
        with pytest.raises(ShapeError):
            len(lazy[0, 0])
        with pytest.raises(ArgumentError):
            lazy.diff(-1)


def test_asarray_of_dates_of_any_kind() -> None:
    days = np.asarray(["2024-02-28", "NaT"], dtype="M8[D]")
    with session():
        for value, expected in (
            (days.astype(">M8[s]"), days.astype("M8[s]")),
            (days[::-1], days[::-1]),
            (days[0], np.asarray(days[0])),
            (list(days), days),
            ([datetime.date(2024, 2, 28)], days[:1]),
            (datetime.timedelta(hours=2), np.asarray(datetime.timedelta(hours=2), dtype="m8[us]")),
        ):
            same(oc.asarray(value), expected)
        same(oc.asarray(days, dtype="M8[s]"), days.astype("M8[s]"))
        same(oc.asarray(["2024-02-28", "NaT"], dtype="M8[D]"), days)
        same(oc.asarray(oc.asarray([0, 1]), dtype="m8[h]"), np.asarray([0, 1], dtype="m8[h]"))
        same(oc.asarray(np.asarray([0, 1]), dtype="m8[h]"), np.asarray([0, 1], dtype="m8[h]"))
        same(oc.asarray(oc.asarray(days), dtype="M8[M]"), days.astype("M8[M]"))
        copied = oc.asarray(days, copy=True)
        days[0] = "1999-01-01"
        assert copied.compute()[0] == np.datetime64("2024-02-28")


# -- groups -----------------------------------------------------------------------------------------------------------


@settings(max_examples=examples(40), deadline=None)
@given(made=moments(unit="D"))
def test_groups_by_month(made: Any) -> None:
    days, tile = made
    values = np.arange(len(days)) ** 1.5
    months = days.astype("M8[M]")
    expected, places = np.unique(months, return_inverse=True)
    with session():
        groups = oc.groupby(lazy_of(days, tile).astype("M8[M]"))
        same(groups.keys, expected)
        sums = np.bincount(places, weights=values, minlength=len(expected))
        np.testing.assert_allclose(groups.sum(values).compute(), sums)
        np.testing.assert_allclose(groups.mean(values).compute(), sums / np.bincount(places))


def test_groups_of_dates_are_not_numbered() -> None:
    with session(), pytest.raises(ArgumentError, match="datetime64"):
        oc.groupby(oc.asarray(np.zeros(2, "M8[D]")), groups=3)
