"""Statistics of columns: NumPy's and SciPy's values, however tiles are cut, from one read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from support.running import session
from support.sizes import examples

import outcore as oc
from outcore.errors import ArgumentError, DTypeError, ShapeError

ROOM = 24 << 20  # less than the data, so that nothing is read for free


@st.composite
def matrices(draw: st.DrawFn) -> Any:
    """Matrices far from zero beside their spread, some with NaN, and the tile they are cut by."""
    shape = draw(st.integers(5, 40)), draw(st.integers(1, 4))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    dtype = draw(st.sampled_from(["float64", "float32", "int32"]))
    x = random.gamma(2.0, 3.0, size=shape) + draw(st.sampled_from([0, 1000]))
    x[random.random(shape) < 0.1] = 0
    return x.astype(dtype), tuple(draw(st.integers(1, length)) for length in shape)


@settings(max_examples=examples(25), deadline=None)
@given(matrices(), st.booleans())
def test_summary_is_what_numpy_and_scipy_say(made: Any, with_nan: bool) -> None:
    x, tile = made
    if with_nan and x.dtype.kind == "f":
        x[::4] = np.nan
    with session():
        found = oc.stats.Summary(*oc.compute(*oc.stats.summary(oc.rechunk(oc.asarray(x), tile))))
    y = x.astype(np.float64)
    expected = {
        "min": np.nanmin(y, axis=0),
        "max": np.nanmax(y, axis=0),
        "mean": np.nanmean(y, axis=0),
        "l1": np.nansum(np.abs(y), axis=0),
        "l2": np.sqrt(np.nansum(y * y, axis=0)),
        "variance": np.nanvar(y, axis=0, ddof=1),
        "nonzeros": np.sum((y != 0) & ~np.isnan(y), axis=0),
        "skewness": stats.skew(y, axis=0, nan_policy="omit"),
        "kurtosis": stats.kurtosis(y, axis=0, nan_policy="omit"),
        "missing": np.isnan(y).sum(axis=0),
    }
    for name, value in expected.items():
        np.testing.assert_allclose(getattr(found, name), value, rtol=1e-8, atol=1e-7, err_msg=name)


@settings(max_examples=15, deadline=None)
@given(matrices(), st.sampled_from([0, 1, -1]), st.booleans())
def test_functions_of_scipys_names_give_its_values(made: Any, axis: int, bias: bool) -> None:
    x, tile = made
    x = np.random.default_rng(0).normal(5, 2, size=(x.shape[0], 6)) + x[:, :1] / 1000
    lazy = oc.rechunk(oc.asarray(x), (tile[0], 3))
    pairs = {
        "skew": (oc.stats.skew(lazy, axis=axis, bias=bias), stats.skew(x, axis=axis, bias=bias)),
        "kurtosis": (
            oc.stats.kurtosis(lazy, axis=axis, bias=bias, fisher=False),
            stats.kurtosis(x, axis=axis, bias=bias, fisher=False),
        ),
        **{f"moment {n}": (oc.stats.moment(lazy, n, axis=axis), stats.moment(x, n, axis=axis)) for n in range(5)},
        "sem": (oc.stats.sem(lazy, axis=axis), stats.sem(x, axis=axis)),
        "variation": (oc.stats.variation(lazy, axis=axis, ddof=1), stats.variation(x, axis=axis, ddof=1)),
        "zscore": (oc.stats.zscore(lazy, axis=axis), stats.zscore(x, axis=axis)),
        "gmean": (oc.stats.gmean(oc.abs(lazy), axis=axis), stats.gmean(np.abs(x), axis=axis)),
        "hmean": (oc.stats.hmean(oc.abs(lazy) + 1, axis=axis), stats.hmean(np.abs(x) + 1, axis=axis)),
        "iqr": (oc.stats.iqr(lazy, axis=axis), stats.iqr(x, axis=axis)),
    }
    with session():
        for name, (found, expected) in pairs.items():
            np.testing.assert_allclose(found.compute(), expected, rtol=1e-9, atol=1e-9, err_msg=name)


def test_describe_is_scipys() -> None:
    x = np.random.default_rng(1).gamma(2.0, size=(50, 3))
    found, expected = oc.stats.describe(x, bias=False), stats.describe(x, bias=False)
    assert found.nobs == expected.nobs
    values = oc.compute(*found.minmax, *found[2:])
    for one, other in zip(values, (*expected.minmax, *expected[2:]), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_variables_are_columns() -> None:
    x = np.random.default_rng(2).normal(size=(30, 4))
    np.testing.assert_allclose(oc.stats.cov(x).compute(), np.cov(x, rowvar=False))
    np.testing.assert_allclose(oc.stats.corrcoef(x).compute(), np.corrcoef(x, rowvar=False))


def test_constant_and_missing_columns_have_no_shape() -> None:
    x = np.column_stack([np.full(20, 0.1), np.full(20, np.nan), np.arange(20.0)])
    found = oc.stats.Summary(*oc.compute(*oc.stats.summary(x)))
    np.testing.assert_array_equal(np.isnan(found.skewness), [True, True, False])
    np.testing.assert_array_equal(np.isnan(found.kurtosis), [True, True, False])
    np.testing.assert_array_equal(np.isnan(found.mean), [False, True, False])
    np.testing.assert_array_equal(np.isnan(found.min), [False, True, False])
    np.testing.assert_array_equal(found.missing, [0, 20, 0])
    assert np.isnan(oc.stats.zscore(np.full(7, 0.1)).compute()).all()


def test_large_values_do_not_cancel() -> None:
    x = np.random.default_rng(3).normal(size=(1000, 2))
    found = oc.stats.summary(x + 1e9)
    np.testing.assert_allclose(found.variance.compute(), x.var(axis=0, ddof=1), rtol=1e-6)
    np.testing.assert_allclose(found.skewness.compute(), stats.skew(x), atol=1e-6)


def test_a_summary_reads_once(tmp_path: Path) -> None:
    x = np.random.default_rng(4).normal(size=(200_000, 32))
    np.save(tmp_path / "x.npy", x)
    with session(pool_limit=ROOM):
        lazy = oc.open(tmp_path / "x.npy")
        for wanted in (tuple(oc.stats.summary(lazy)), (oc.stats.corrcoef(lazy),)):
            said = oc.explain(*wanted)
            # Beside the one sweep only the first rows are read, for the shift.
            assert x.nbytes <= said.bytes_read <= x.nbytes * 1.01


def test_refusals_name_what_is_wrong() -> None:
    with pytest.raises(ShapeError, match="axis 0"):
        oc.stats.summary(np.ones((0, 2)))
    with pytest.raises(DTypeError, match="complex128"):
        oc.stats.summary(np.ones(3, dtype=complex))
    with pytest.raises(ArgumentError, match="order must be 0, 1, 2, 3 or 4, not 5"):
        oc.stats.moment(np.ones(3), 5)


@settings(max_examples=examples(20), deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 1.7e9, 1e15]), st.integers(0, 90), st.sampled_from([0, 1]))
def test_digits_do_not_depend_on_what_the_first_rows_hold(seed: int, far: float, first: int, axis: int) -> None:
    """Missing, whichever the axis; whole numbers, so that those far from zero are exact."""
    near = np.random.default_rng(seed).integers(0, 100, size=(100, 2)).astype(np.float64)
    near[:first] = np.nan
    x = near + far
    with session():
        found = oc.stats.summary(oc.rechunk(oc.asarray(x if axis == 0 else x.T), (7, 2)), axis=axis).compute()
    np.testing.assert_allclose(found.mean, np.nanmean(near, axis=0) + far, rtol=1e-14)
    np.testing.assert_allclose(found.variance, np.nanvar(near, axis=0, ddof=1), rtol=1e-10)
    np.testing.assert_allclose(found.skewness, stats.skew(near, nan_policy="omit"), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(found.kurtosis, stats.kurtosis(near, nan_policy="omit"), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("value", [0.1, -1e300, 5e-324, 1e9 + 0.1])
def test_equal_elements_have_no_variance(value: float) -> None:
    with session():
        found = oc.stats.summary(np.full((1000, 3), value)).compute()
    assert found.variance.tolist() == [0.0] * 3
    assert found.mean.tolist() == [value] * 3


def test_an_infinity_stays_in_its_column() -> None:
    x = np.arange(600.0).reshape(200, 3)
    x[0, 1], x[150, 2] = np.inf, -np.inf
    with session():
        found = oc.stats.summary(x).compute()
        more = oc.stats.describe(x).compute()
    assert found.mean.tolist() == [298.5, np.inf, -np.inf]
    assert np.isnan(found.variance).tolist() == [False, True, True]
    np.testing.assert_array_equal(more.minmax[1], found.max)


def test_rows_beyond_a_thousand_take_the_mean_of_the_others_where_their_first_elements_are_missing() -> None:
    near = np.random.default_rng(0).normal(size=(200, 50))
    near[7, :20] = np.nan
    with session():
        found = oc.stats.summary(near + 1.7e9, axis=1).compute()
    np.testing.assert_allclose(found.variance, np.nanvar(near, axis=1, ddof=1), rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32"])
@pytest.mark.parametrize("first", [0, 5000])
def test_covariances_are_numpys_whatever_the_type_and_the_first_rows(dtype: str, first: int) -> None:
    x = np.random.default_rng(0).normal(size=(60_000, 3)) * 50
    x[:16] += first
    x = x.astype(dtype)
    with session():
        found, correlated = oc.compute(oc.cov(x, rowvar=False), oc.corrcoef(x, rowvar=False))
    assert found.dtype == np.cov(x, rowvar=False).dtype
    np.testing.assert_allclose(found, np.cov(x, rowvar=False), rtol=1e-9, atol=1e-7)
    np.testing.assert_allclose(correlated, np.corrcoef(x, rowvar=False), rtol=1e-9, atol=1e-9)


def test_values_of_a_summary_keep_its_names() -> None:
    x = np.arange(12.0).reshape(4, 3)
    with session():
        lazy = oc.stats.summary(x)
        for found in (lazy.compute(), oc.compute(lazy)):
            assert isinstance(found, oc.stats.Summary)
            assert all(isinstance(part, np.ndarray) for part in found)
            np.testing.assert_array_equal(found.max, x.max(axis=0))
        described = oc.compute(oc.stats.describe(x))
        assert isinstance(described, oc.stats.Description)
        assert (described.nobs, described.minmax[1].tolist()) == (4, [9.0, 10.0, 11.0])
        np.testing.assert_allclose(oc.compute(oc.linalg.svd(x)).S, np.linalg.svd(x)[1], atol=1e-12)


def test_the_covariance_of_one_variable_is_a_number() -> None:
    x = np.asarray([1.0, 2.0, 4.0])
    with session():
        for array, rowvar in ((x, True), (x[None], True), (x[:, None], False)):
            for name in ("cov", "corrcoef"):
                found = getattr(oc, name)(array, rowvar=rowvar).compute()
                assert found.shape == ()
                np.testing.assert_allclose(found, getattr(np, name)(array, rowvar=rowvar))
