"""Functions compiled by numba: on lazy arrays, NumPy's and numbers, in products and folds, for other processes."""

from __future__ import annotations

import pickle
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.running import session
from support.sizes import examples

import outcore as oc
from outcore.errors import ArgumentError, DTypeError

pytest.importorskip("numba", reason="numba, the optional extra outcore[jit], is not installed")

ADDS = {"sum": np.sum, "prod": np.prod, "min": np.min, "max": np.max, "any": np.any, "all": np.all}


@oc.jit
def steps_to_one(n: Any) -> Any:
    """Collatz: a loop whose length depends on the value."""
    steps = 0
    while n > 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


@oc.jit
def squared(a: Any, b: Any) -> Any:
    return (a - b) * (a - b)


@oc.jit
def parallel(a: Any, b: Any) -> Any:
    return a if b == np.inf else b if a == np.inf else a * b / (a + b)


def test_branches_and_loops_run_on_any_array() -> None:
    expected = np.asarray([[0, 1, 7], [2, 5, 8]])
    numbers = np.arange(1, 7).reshape(2, 3)
    with session():
        found = steps_to_one(oc.rechunk(oc.asarray(numbers), (1, 2)))
        assert isinstance(found, oc.Array)
        assert found.dtype == np.int64
        np.testing.assert_array_equal(found.compute(), expected)
    np.testing.assert_array_equal(steps_to_one(numbers), expected)
    assert steps_to_one(27) == 111
    assert (steps_to_one.__name__, steps_to_one.__doc__[:8]) == ("steps_to_one", "Collatz:")


def test_operands_broadcast_and_numbers_are_weak() -> None:
    a, b = np.arange(3, dtype=np.float32)[:, None], np.arange(4, dtype=np.float32)
    with session():
        found = squared(oc.asarray(a), b)
        assert (found.shape, found.dtype) == ((3, 4), np.float32)
        np.testing.assert_array_equal(found.compute(), (a - b) ** 2)
        assert squared(oc.asarray(a), 0.5).dtype == np.float32
        assert squared(2, oc.asarray(a)).dtype == np.float32
        assert squared(oc.asarray(a), oc.arange(4)).dtype == np.float64


@settings(max_examples=examples(40), deadline=None)
@given(
    shape=st.tuples(st.integers(1, 9), st.integers(1, 11), st.integers(1, 9)),
    add=st.sampled_from(sorted(ADDS)),
    whole=st.booleans(),
    seed=st.integers(0, 99),
    tile=st.integers(1, 9),
)
def test_products_of_compiled_pairs(shape: Any, add: str, whole: bool, seed: int, tile: int) -> None:
    m, k, n = shape
    random = np.random.default_rng(seed)
    a, b = (random.integers(-2, 3, lengths).astype(np.int32 if whole else float) for lengths in ((m, k), (k, n)))
    expected = ADDS[add]((a[:, :, None] - b[None]) ** 2, axis=1)
    with session():
        lazy = oc.rechunk(oc.asarray(a), (min(tile, m), min(tile, k)))
        found = oc.inner(lazy, oc.asarray(b), squared, add)  # type: ignore[arg-type]
        np.testing.assert_array_equal(found.compute(), expected)
        assert whole or found.dtype == expected.dtype  # numba multiplies int32 in 64 bits


def test_products_with_many_columns_nan_and_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from outcore._functions import compiled

    monkeypatch.setattr(compiled, "_HELD_BYTES", 200)
    random = np.random.default_rng(1)
    a, b = random.normal(size=(700, 6)), random.normal(size=(6, 50))
    a[3, 2] = np.nan
    with session():
        found = oc.inner(oc.asarray(a), oc.asarray(b), squared, "min").compute()
        np.testing.assert_array_equal(found, ((a[:, :, None] - b[None]) ** 2).min(axis=1))
        nothing = oc.inner(oc.ones((2, 0)), oc.ones((0, 3)), squared)
        np.testing.assert_array_equal(nothing.compute(), np.zeros((2, 3)))


@settings(max_examples=examples(40), deadline=None)
@given(
    shape=st.lists(st.sampled_from([1, 2, 5, 17, 40, 300]), min_size=1, max_size=2),
    axis=st.sampled_from([None, 0, -1]),
    seed=st.integers(0, 99),
    tile=st.integers(1, 64),
)
def test_folds_of_compiled_functions(shape: list[int], axis: int | None, seed: int, tile: int) -> None:
    x = np.random.default_rng(seed).uniform(1, 2, tuple(shape))
    with session():
        lazy = oc.rechunk(oc.asarray(x), tuple(min(tile, length) for length in shape))
        found = oc.aggregate(lazy, parallel, axis=axis, identity=np.inf)
        np.testing.assert_allclose(found.compute(), 1 / (1 / x).sum(axis=axis), rtol=1e-12)


def test_long_folds_and_pairs() -> None:
    x = np.random.default_rng(2).uniform(1, 2, 1_000_003)
    more = oc.jit(lambda total, value: total + value if value > 1.5 else total)
    with session():
        lazy = oc.asarray(x)
        found = oc.aggregate(lazy, parallel, identity=np.inf)
        np.testing.assert_allclose(found.compute(), 1 / (1 / x).sum(), rtol=1e-12)
        gathered = oc.aggregate(lazy, more, "add", identity=0.0)
        np.testing.assert_allclose(gathered.compute(), x[x > 1.5].sum(), rtol=1e-12)


def test_what_does_not_compile_is_refused_at_once() -> None:
    with session():
        with pytest.raises(DTypeError, match=r"jit: squared does not compile for \(float16, float16\)"):
            squared(oc.ones(3, dtype=oc.float16), oc.ones(3, dtype=oc.float16))
        with pytest.raises(DTypeError, match=r"jit: asks does not compile for \(float64\)"):
            oc.jit(asks)(oc.ones(3))
        with pytest.raises(ArgumentError, match="squared takes 2 operands, not 1"):
            squared(oc.ones(3))


def asks(x: Any) -> Any:
    return open(x).read()


def plain(x: Any) -> Any:
    return x + 1


def test_compiled_functions_go_to_other_processes() -> None:
    assert pickle.loads(pickle.dumps(squared)) is squared
    assert pickle.loads(pickle.dumps(oc.jit(plain, fastmath=True)))(np.asarray([1, 2])).tolist() == [2, 3]
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(oc.jit(lambda x: x))


def test_options_may_come_before_the_function() -> None:
    @oc.jit(fastmath=True)
    def twice(x: Any) -> Any:
        return 2 * x

    with session():
        np.testing.assert_array_equal(twice(oc.arange(3)).compute(), [0, 2, 4])


def test_without_numba_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    with pytest.raises(ImportError, match=r"pip install outcore\[jit\]"):
        oc.jit(plain)
