"""Quantiles: exact, NaN kept or left out, along any axes, in two reads."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.running import session
from support.sizes import sized

import outcore as oc
from outcore.errors import DTypeError, ShapeError

POOL = 48 << 20
METHODS = ("linear", "lower", "higher", "nearest", "midpoint")
MANY = [0.0, 0.01, 0.25, 0.5, 0.77, 1.0]


def saved(folder: Path, name: str, values: np.ndarray[Any, Any]) -> oc.Array:
    np.save(folder / f"{name}.npy", values)
    return oc.open(folder / f"{name}.npy")


def made(dtype: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    numbers = np.random.default_rng(1)
    if dtype[0] == "f":
        x = numbers.normal(size=shape).astype(dtype)
        x[numbers.random(shape) < 0.1] = -0.0
        x[numbers.random(shape) < 0.1] = 0.0
        return x
    return numbers.integers(0, 120, shape).astype(dtype)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", ["int8", "uint64", "int64", "float32", "float64"])
@pytest.mark.parametrize("axis", [None, 0, 1, -1, (0, 2)])
def test_quantiles_are_numpys(dtype: str, method: Any, axis: Any) -> None:
    x = made(dtype, (9, 40, 6))
    for q in (0.3, MANY, [[0.1, 0.9]]):
        given = np.asarray(q)
        expected = np.quantile(x.astype(np.float64), given, axis=axis, method=method)
        found = oc.quantile(x, q, axis=axis, method=method)
        assert found.shape == expected.shape
        tolerance = 1e-6 if dtype == "float32" else 1e-13
        np.testing.assert_allclose(found.compute(), expected, rtol=tolerance, atol=tolerance)
    kept = oc.quantile(x, MANY, axis=axis, keepdims=True).compute()
    assert kept.shape == np.quantile(x, MANY, axis=axis, keepdims=True).shape


def beside_infinities(function: Any, x: Any, axis: Any) -> Any:
    """NumPy's quantiles, and where it multiplies an infinity by zero the limit: that of the neighbours weighed."""
    low, high = (function(x, MANY, axis=axis, method=method) for method in ("lower", "higher"))
    found = function(x, MANY, axis=axis)
    return np.where(np.isnan(found), np.where(low == high, low, low + high), found)


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_nan_is_kept_or_left_out(axis: Any) -> None:
    x = made("float64", (50, 7))
    x[3, 2] = x[4, 2] = x[0, 6] = np.nan
    x[:, 5] = np.nan
    x[7, 1] = np.inf
    x[8, 1] = -np.inf
    with np.errstate(all="ignore"), pytest.warns(RuntimeWarning) if axis == 0 else _silence():
        expected = beside_infinities(np.nanquantile, x, axis)
    np.testing.assert_allclose(oc.nanquantile(x, MANY, axis=axis).compute(), expected, rtol=1e-13)
    plain = oc.quantile(x, MANY, axis=axis).compute()
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(plain, beside_infinities(np.quantile, x, axis), rtol=1e-13)
    np.testing.assert_allclose(oc.nanmedian(x[:, :5]).item(), np.nanmedian(x[:, :5]))


def _silence() -> Any:
    import warnings

    return warnings.catch_warnings()


@pytest.mark.parametrize("kind", ["random", "sorted", "equal", "two values", "skewed", "reversed"])
def test_a_row_larger_than_memory_takes_two_reads(kind: str, data: Path) -> None:
    numbers = np.random.default_rng(2)
    x = numbers.normal(size=sized(12_000_000, 20_000_000))
    if kind == "sorted":
        x.sort()
    elif kind == "reversed":
        x = np.sort(x)[::-1].copy()
    elif kind == "equal":
        x[:] = 3.0
    elif kind == "two values":
        x = np.where(x > 0, 1.0, 2.0)
    elif kind == "skewed":
        x = np.exp(30 * x)
        x[::2] = 0.0
    with session(pool_limit=POOL):
        found = oc.quantile(saved(data, "x", x), MANY)
        told = oc.explain({data / "out.npy": found})
        done = oc.store({data / "out.npy": found})
    np.testing.assert_allclose(np.load(data / "out.npy"), np.quantile(x, MANY), rtol=1e-13)
    assert done.bytes_read <= 2.02 * x.nbytes
    assert told.bytes_read <= 2.02 * x.nbytes
    assert done.peak_bytes <= POOL


def test_columns_larger_than_memory_take_two_reads(data: Path) -> None:
    x = np.random.default_rng(3).normal(size=(600_000, 32))
    x[:, 3] = 1.0
    x[5, 9] = np.nan
    with session(pool_limit=POOL):
        found = oc.quantile(saved(data, "x", x), [0.01, 0.5, 0.99], axis=0)
        done = oc.store({data / "out.npy": found})
    np.testing.assert_allclose(np.load(data / "out.npy"), np.quantile(x, [0.01, 0.5, 0.99], axis=0), rtol=1e-13)
    assert done.bytes_read <= 2.02 * x.nbytes


def test_many_short_columns() -> None:
    x = made("float64", (11, 6000))
    x[2, 5] = np.nan
    np.testing.assert_allclose(oc.quantile(x, MANY, axis=0).compute(), np.quantile(x, MANY, axis=0), rtol=1e-13)


def test_nonsense_is_refused() -> None:
    with pytest.raises(oc.errors.ArgumentError, match=r"1\.5"):
        oc.quantile(np.zeros(3), 1.5)
    with pytest.raises(oc.errors.ArgumentError, match="cubic"):
        oc.quantile(np.zeros(3), 0.5, method="cubic")  # type: ignore[arg-type]
    with pytest.raises(oc.errors.DTypeError, match="complex128"):
        oc.median(np.zeros(3, complex))
    with pytest.raises(oc.errors.ShapeError, match=r"\(0, 3\)"):
        oc.quantile(np.zeros((0, 3)), 0.5, axis=0)
    assert oc.quantile(np.zeros((0, 3)), [0.5], axis=1).shape == (1, 0)


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("dtype", ["float32", "int16"])
def test_of_nothing_the_middle_is_nan(dtype: str, axis: int | None, keepdims: bool) -> None:
    with session(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for shape in ((0, 3), (4, 0), (0, 0)):
            x = np.zeros(shape, dtype=dtype)
            for name in ("median", "nanmedian"):
                expected = getattr(np, name)(x, axis=axis, keepdims=keepdims)
                found = getattr(oc, name)(x, axis=axis, keepdims=keepdims).compute()
                np.testing.assert_array_equal(found, expected)
        assert np.isnan(oc.nanquantile(np.zeros(0, dtype=dtype), [0.2, 0.3]).compute()).all()
        with pytest.raises(ShapeError, match="no elements along axes"):
            oc.quantile(np.zeros(0, dtype=dtype), 0.5)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("axis", [None, 0, 1, (0, 2)])
def test_no_quantiles_and_no_columns_keep_their_axes(axis: Any, method: Any) -> None:
    with session():
        for shape in ((5, 3, 4), (5, 3, 0), (5, 0, 3)):
            x = np.ones(shape, dtype=np.float32)
            for q in ([], 0.5, [0.1, 0.9]):
                lengths = [1 if axis is None or place in np.atleast_1d(axis) else x.shape[place] for place in range(3)]
                if any(shape[place] == 0 and lengths[place] == 1 for place in range(3)):
                    continue
                found = oc.quantile(x, q, axis=axis, method=method, keepdims=True)
                assert found.shape == (*np.shape(q), *lengths)
                assert found.compute().shape == found.shape


def test_bool_has_a_middle_and_elements_but_no_differences() -> None:
    x = np.random.default_rng(0).random((7, 4)) < 0.5
    with session():
        np.testing.assert_array_equal(oc.median(x, axis=0), np.median(x, axis=0))
        np.testing.assert_array_equal(oc.nanmedian(x), np.nanmedian(x))
        for method in ("lower", "higher", "nearest"):
            found = oc.quantile(x, [0.2, 0.7], axis=1, method=method).compute()
            assert found.dtype == np.bool_
            np.testing.assert_array_equal(found, np.quantile(x, [0.2, 0.7], axis=1, method=method))
        with pytest.raises(DTypeError, match="differences of bool"):
            oc.quantile(x, 0.5)
