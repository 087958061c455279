"""Folds over functions of two, named and one's own, against NumPy's, however tiles are cut."""

from __future__ import annotations

from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.running import session
from support.sizes import examples

import outcore as oc
from outcore.errors import ArgumentError, DTypeError, ShapeError

FLOATS = ("add", "multiply", "minimum", "maximum", "logaddexp", "hypot")
INTEGERS = ("add", "minimum", "maximum", "bitwise_and", "bitwise_or", "bitwise_xor")
FLAGS = ("logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_xor", "minimum", "maximum")
OF_KIND = {"float64": FLOATS, "float32": FLOATS, "int32": INTEGERS, "uint8": INTEGERS, "bool": FLAGS}


@st.composite
def folds(draw: st.DrawFn) -> Any:
    """An array, the tile it is cut by, axes, and the name of a function."""
    dtype = draw(st.sampled_from(sorted(OF_KIND)))
    shape = tuple(draw(st.lists(st.sampled_from([1, 2, 5, 16, 17, 40, 300]), min_size=1, max_size=3)))
    if np.prod(shape) > 20_000:
        shape = shape[:1]
    axes = draw(st.sampled_from([None, *range(len(shape))]))
    random = np.random.default_rng(draw(st.integers(0, 9999)))
    x = (random.normal(size=shape) * 3).astype(dtype)
    return x, tuple(draw(st.integers(1, length)) for length in shape), axes, draw(st.sampled_from(OF_KIND[dtype]))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@settings(max_examples=examples(150), deadline=None)
@given(fold=folds(), keepdims=st.booleans())
def test_named_functions_are_numpys_reductions(fold: Any, keepdims: bool) -> None:
    x, tile, axis, name = fold
    axes = tuple(range(x.ndim)) if axis is None else (axis,)
    expected = x
    for place in axes:  # numpy.hypot and others refuse several axes
        expected = getattr(np, name).reduce(expected, axis=place, keepdims=True)
    with session():
        found = oc.aggregate(oc.rechunk(oc.asarray(x), tile), name, axis=axis, keepdims=keepdims)
        assert found.dtype == expected.dtype
        expected = expected if keepdims else expected.squeeze(axes)
        np.testing.assert_allclose(found.compute(), expected, rtol=1e-3 if x.dtype == np.float32 else 1e-9)


@settings(max_examples=examples(80), deadline=None)
@given(fold=folds())
def test_functions_of_ones_own_are_folded(fold: Any) -> None:
    x, tile, axis, _ = fold
    x = (x.astype(np.int64) % 7 + 1).astype(np.float64)

    def meet(a: Any, b: Any) -> Any:
        return a * b / (a + b)  # 1/(1/a + 1/b), as resistors in parallel

    with session():
        found = oc.aggregate(oc.rechunk(oc.asarray(x), tile), meet, axis=axis, identity=np.inf).compute()
    np.testing.assert_allclose(found, 1 / (1 / x).sum(axis=axis), rtol=1e-9)


@settings(max_examples=examples(60), deadline=None)
@given(fold=folds())
def test_a_pair_gathers_and_combines(fold: Any) -> None:
    x, tile, axis, _ = fold
    with session():
        lazy = oc.rechunk(oc.asarray(x), tile)
        counted = oc.aggregate(lazy, lambda count, value: count + (value > 0), "add", axis=axis, identity=0)
        np.testing.assert_array_equal(counted.compute(), np.count_nonzero(x > 0, axis=axis))
        rows = oc.aggregate(lazy, lambda count, _: count + 1, lambda a, b: a + b, axis=axis, identity=0)
        np.testing.assert_array_equal(rows.compute(), np.ones(x.shape).sum(axis=axis))
        squares = oc.aggregate(lazy.astype("f8"), lambda total, v: total + v * v, "add", axis=axis, identity=0.0)
        np.testing.assert_allclose(squares.compute(), (x.astype("f8") ** 2).sum(axis=axis), rtol=1e-9)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_special_values() -> None:
    inf, nan = np.inf, np.nan
    rows = np.asarray([[-inf, -inf], [inf, 1.0], [nan, 1.0], [800.0, 800.0], [-inf, 3.0]])
    with session():
        found = oc.aggregate(oc.asarray(rows), "logaddexp", axis=1).compute()
        np.testing.assert_allclose(found, np.logaddexp.reduce(rows, axis=1), rtol=1e-15)
        long = np.asarray([[3e200, 4e200], [3e-200, 4e-200], [0.0, -0.0], [inf, 1.0]])
        np.testing.assert_allclose(oc.aggregate(oc.asarray(long), "hypot", axis=1).compute(), [5e200, 5e-200, 0, inf])


def test_axes_without_elements_give_the_identity() -> None:
    none = oc.zeros((3, 0))
    with session():
        np.testing.assert_array_equal(oc.aggregate(none, "add", axis=1).compute(), np.zeros(3))
        np.testing.assert_array_equal(oc.aggregate(none, "logaddexp", axis=1).compute(), np.full(3, -np.inf))
        own = oc.aggregate(none, lambda a, b: a + b, axis=1, identity=0.0, keepdims=True)
        np.testing.assert_array_equal(own.compute(), np.zeros((3, 1)))
        assert oc.aggregate(none, lambda a, b: a + b, axis=0, identity=0.0).shape == (0,)
        np.testing.assert_array_equal(oc.aggregate(none, "minimum", axis=1, identity=9.0).compute(), np.full(3, 9.0))
        full = np.bitwise_and.reduce(np.zeros(0, np.uint8))
        assert oc.aggregate(oc.zeros(0, dtype=oc.uint8), "bitwise_and").item() == full
        with pytest.raises(ShapeError, match="min of nothing is undefined"):
            oc.aggregate(none, "minimum", axis=1)


def test_one_read_in_little_memory(tmp_path: Path, scratch: Path) -> None:
    x = np.random.default_rng(3).normal(size=12_000_000) / 1e4
    np.save(tmp_path / "x.npy", x)
    bits = []
    for pool, threads in [(24 << 20, 1), (256 << 20, 3)]:
        with session(scratch, pool_limit=pool, threads=threads):
            found = oc.aggregate(oc.open(tmp_path / "x.npy"), lambda p, q: p + q - p * q, identity=0)
            said = oc.explain(found)
            assert said.exact
            assert said.bytes_read <= 1.08 * x.nbytes
            assert said.bytes_written <= x.nbytes / 14
            bits.append(found.compute())
    assert bits[0].tobytes() == bits[1].tobytes()
    np.testing.assert_allclose(bits[0], 1 - np.exp(np.log1p(-x).sum()), rtol=1e-6)


def test_order_of_meetings_is_that_of_any_grouping() -> None:
    """A function that is associative and commutative, but no reduction of the engine: the one nearest to 30."""
    x = np.random.default_rng(4).integers(1, 9, 5000) * 6

    def closer(a: Any, b: Any) -> Any:
        return np.where(abs(a - 30) <= abs(b - 30), np.where(abs(a - 30) == abs(b - 30), np.minimum(a, b), a), b)

    with session():
        found = oc.aggregate(oc.asarray(x), closer, identity=1 << 40).item()
    assert found == reduce(lambda a, b: int(closer(a, b)), x)


def test_what_cannot_be_folded_is_refused() -> None:
    x = oc.arange(4)
    with session():
        with pytest.raises(ArgumentError, match="function='subtract' is not one of add"):
            oc.aggregate(x, "subtract")
        with pytest.raises(ArgumentError, match="combine='subtract' is not one of add"):
            oc.aggregate(x, "add", "subtract", identity=0)
        with pytest.raises(ArgumentError, match="function='nothing' is not the name of an element-wise"):
            oc.aggregate(x, "nothing", "add", identity=0)
        with pytest.raises(ArgumentError, match="need identity="):
            oc.aggregate(x, lambda a, b: a + b)
        with pytest.raises(ShapeError, match=r"gives shape \(1,\) of shape \(4,\)"):
            oc.aggregate(x, lambda a, b: a[:1], identity=0)
        with pytest.raises(DTypeError, match="bitwise_xor"):
            oc.aggregate(oc.ones(3), "bitwise_xor")
        with pytest.raises(DTypeError, match="complex128 has no order"):
            oc.aggregate(oc.ones(3, dtype=oc.complex128), "hypot")
