"""Defects found by trying to break things; each stays as the smallest program that showed it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.running import session

import outcore as oc
from outcore.errors import ArgumentError, DTypeError, MemoryLimitError, OutcoreError, ShapeError

INT8 = np.array([-128, -100, 0, 7, 100, 127], np.int8)


def agree(lazy: Any, expected: Any) -> None:
    """One value, of one type and shape, by NumPy and by us."""
    with session():
        found = oc.compute(lazy)
    assert (found.dtype, found.shape) == (np.asarray(expected).dtype, np.shape(expected))
    if found.dtype.kind in "fc":
        np.testing.assert_allclose(found, expected, rtol=8 * np.finfo(found.dtype).eps)
    else:
        np.testing.assert_array_equal(found, expected)


def smallest_pool(array: oc.Array) -> int:
    with session(pool_limit=1, threads=3), pytest.raises(MemoryLimitError) as refused:
        oc.compute(array)
    assert refused.value.smallest is not None
    return refused.value.smallest


def test_a_tree_is_complete_before_its_result_may_leave() -> None:
    """Arrays in memory give the issuer nothing to wait for, so it runs far ahead of the workers."""
    values = np.random.default_rng(0).standard_normal((3, 900, 700)).astype("c16")
    x = oc.asarray(values)
    centred = x - x.sum(axis=0, keepdims=True)
    expected = values - values.sum(axis=0, keepdims=True)
    pool = smallest_pool(centred)
    for _ in range(25):
        with session(pool_limit=pool, threads=3):
            np.testing.assert_allclose(oc.compute(centred), expected, rtol=1e-12, atol=1e-12)


def test_a_result_computed_in_place_stays_until_its_last_use(tmp_path: Path) -> None:
    values = np.random.default_rng(1).random((257, 93, 64)).astype(np.complex64)
    np.save(tmp_path / "x.npy", values)
    x = oc.open(tmp_path / "x.npy")
    y = x * x
    with session(pool_limit=28 << 20):
        square, flat = oc.compute(y, y.reshape(-1, 3))
    np.testing.assert_allclose(square, values * values, rtol=1e-6)
    np.testing.assert_array_equal(flat, square.reshape(-1, 3))


def test_slots_serve_elements_of_any_width() -> None:
    x, few, ones = np.ones((778, 257), "u1"), np.ones((1, 257), bool), np.ones((257, 1))
    lazy = (oc.stack([oc.asarray(x), oc.asarray(x)], axis=0) <= oc.asarray(few)).sum(axis=1, keepdims=True)
    counted = (np.stack([x, x]) <= few).sum(axis=1, keepdims=True)
    np.testing.assert_array_equal(oc.compute(lazy @ oc.asarray(ones)), counted @ ones)


def test_a_run_inside_a_run_is_refused_at_once() -> None:
    inner = oc.ones((10,))
    lazy = oc.map_blocks(lambda block: block + float(inner.sum()), oc.ones((100,)), dtype="float64")
    with session(), pytest.raises(OutcoreError, match="inside a running one"):
        oc.compute(lazy)


def test_nested_joins_do_not_multiply() -> None:
    values = np.arange(20_000.0).reshape(-1, 2)
    lazy = oc.asarray(values)
    for _ in range(40):
        lazy = oc.roll(lazy, 1, axis=0)
    with session():
        result = oc.compute(lazy)  # two to the fortieth pieces would never end
    np.testing.assert_array_equal(result, np.roll(values, 40, axis=0))


@pytest.mark.parametrize(
    "options", [{}, {"offset": 1}, {"offset": -1, "axis1": 2, "axis2": 0}, {"axis1": -2, "axis2": -1, "dtype": "f4"}]
)
def test_numpys_trace_takes_the_first_two_axes_unless_told(options: dict[str, Any]) -> None:
    x = np.arange(60, dtype=np.int16).reshape(3, 4, 5)
    agree(np.trace(oc.asarray(x), **options), np.trace(x, **options))
    agree(oc.linalg.trace(oc.asarray(x)), np.linalg.trace(x))


@pytest.mark.parametrize("order", [None, "fro", "f", 1, -1, np.inf, -np.inf])
@pytest.mark.parametrize("axis", [(0, 1), (1, 0), (2, 0), (-1, 1)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_numpys_norm_over_two_axes_is_the_matrix_norm(order: Any, axis: tuple[int, int], keepdims: bool) -> None:
    x = np.random.default_rng(2).normal(size=(3, 4, 5))
    expected = np.linalg.norm(x, order, axis, keepdims)
    agree(np.linalg.norm(oc.asarray(x), order, axis, keepdims), expected)


@pytest.mark.parametrize(
    ("order", "axis", "words"),
    [
        (7, (0, 1), "no order 7"),
        (1, None, "3 axes"),
        ("fro", 0, "1 axes"),
        (1, (1, 1), "moveaxis"),
    ],
)
def test_norms_that_are_not_defined_are_refused(order: Any, axis: Any, words: str) -> None:
    with pytest.raises(ShapeError, match=words):
        np.linalg.norm(oc.ones((3, 3, 3)), order, axis)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int64"])
@pytest.mark.parametrize("order", [2, 1, 0, 3, np.inf, -np.inf])
def test_norms_of_integers_are_formed_in_floating_point(dtype: str, order: float) -> None:
    x = INT8.astype(dtype)
    agree(oc.linalg.vector_norm(oc.asarray(x), ord=order), np.linalg.vector_norm(x, ord=order))
    agree(np.linalg.norm(oc.asarray(x), order), np.linalg.norm(x, order))


@pytest.mark.parametrize("order", ["fro", 1, -np.inf])
def test_matrix_norms_of_integers_are_formed_in_floating_point(order: Any) -> None:
    x = INT8.reshape(2, 3)
    agree(oc.linalg.matrix_norm(oc.asarray(x), ord=order), np.linalg.matrix_norm(x, ord=order))


def test_a_ufunc_computes_in_the_type_asked_for() -> None:
    x, fraction = oc.asarray(INT8), np.array([0.1, 1 / 3])
    agree(np.multiply(x, x, dtype="i4"), np.multiply(INT8, INT8, dtype="i4"))
    agree(np.add(x, 300, dtype=np.int32), np.add(INT8, 300, dtype=np.int32))
    agree(np.exp(x, dtype="f8"), np.exp(INT8, dtype="f8"))
    agree(np.add(oc.asarray(fraction), fraction, dtype="f4"), np.add(fraction, fraction, dtype="f4"))
    agree(np.matmul(x, INT8, dtype="f8"), np.matmul(INT8, INT8, dtype="f8"))
    agree(np.less(x, 300, dtype=bool), np.less(INT8, 300, dtype=bool))
    with pytest.raises(DTypeError, match=r"float64.*int8"):
        np.add(oc.asarray(fraction), 1, dtype="i1")


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int32", "uint64", "float16", "float32"])
@pytest.mark.parametrize("ufunc", [np.fabs, np.rint, np.floor, np.ceil, np.trunc])
def test_rounding_and_sizes_have_numpys_types(ufunc: np.ufunc, dtype: str) -> None:
    x = abs(INT8.astype("f8")).astype(dtype) if dtype[0] in "uf" else INT8.astype(dtype)
    agree(ufunc(oc.asarray(x)), ufunc(x))


def test_fabs_takes_no_complex_numbers() -> None:
    with pytest.raises(DTypeError, match="fabs"):
        np.fabs(oc.asarray(np.ones(3, complex)))


@pytest.mark.parametrize(
    ("low", "high", "dtype", "words"),
    [
        (0, 257, "u1", "257 is not within uint8, 0 ≤ x ≤ 255"),
        (-1, 5, "u8", "-1 .* uint64"),
        (-129, 0, "i1", "-129 .* int8"),
        (0, 2**64 + 1, "u8", "not within uint64"),
        (0, 2**64, "u8", "above 9223372036854775807"),
        (0, 2**63, "i8", "above 9223372036854775807"),
    ],
)
def test_random_integers_outside_their_type_are_refused(low: int, high: int, dtype: str, words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        oc.random.integers((3,), low, high, dtype=dtype)


def test_random_integers_reach_the_ends_of_their_type() -> None:
    with session():
        found = oc.compute(oc.random.integers((10_000,), -128, 128, seed=1, dtype="i1"))
        wide = oc.compute(oc.random.integers((10_000,), -(2**63), 2**63 - 1, seed=1))
    assert (found.min(), found.max()) == (-128, 127)
    assert wide.min() < -(2**62) < 2**62 < wide.max()


@pytest.mark.parametrize("bounds", [(0, 1, 7), (-1, 1, 4), (2.5, -2.5, 6)])
@pytest.mark.parametrize("dtype", ["i1", "i8", "f4", "?"])
def test_linspace_of_integers_rounds_down(bounds: tuple[float, float, int], dtype: str) -> None:
    agree(oc.linspace(*bounds, dtype=dtype), np.linspace(*bounds, dtype=dtype))


@pytest.mark.parametrize("function", [np.mean, np.var, np.std])
def test_means_in_an_integer_type_are_refused(function: Any) -> None:
    x = np.array([1, 2, 4])
    agree(function(oc.asarray(x), dtype="f4"), function(x, dtype="f4"))
    with pytest.raises(DTypeError, match="int64"):
        function(oc.asarray(x), dtype=np.int64)


@pytest.mark.parametrize("part", [np.s_[:], np.s_[::-2], np.s_[:0], np.s_[:4:2]])
def test_bool_views_of_other_bytes_are_taken_as_0_and_1(part: slice) -> None:
    x = np.array([0, 1, 2, 255, 0, 128], np.uint8)[part].view(bool)
    truth = x.view(np.uint8) != 0
    lazy = oc.asarray(x)
    agree(lazy, truth)
    agree(lazy.astype("i4"), truth.astype("i4"))
    agree(oc.sum(lazy), truth.sum())
    agree(lazy == np.ones_like(truth), truth)


def test_bool_arrays_of_zeros_and_ones_are_borrowed_still() -> None:
    x = np.zeros(5, bool)
    lazy = oc.asarray(x)
    x[2] = True  # against the rules, and so visible only where nothing was copied
    agree(lazy, x)


def test_negative_powers_of_integers_are_refused_as_by_numpy() -> None:
    """Of data by the run that meets one; they were cut to integers."""
    for base, power in ((0, -1), (1, -2), (-1, -3), (2, -1)):
        with pytest.raises(ValueError, match="negative"):
            oc.pow(np.array([base, 5]), np.array([power, 1])).compute()


def test_floats_beyond_an_integer_type_saturate() -> None:
    """NumPy's result depends on the machine; see `astype`."""
    x = oc.asarray(np.array([-1.5, 300.7, np.inf, np.nan]))
    agree(x.astype("u1"), np.array([0, 255, 255, 0], np.uint8))
    agree(x.astype("i1"), np.array([-1, 127, 127, 0], np.int8))
