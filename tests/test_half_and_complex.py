"""Averages and integrals of float16, and functions of complex numbers, against NumPy's."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from support.running import session
from support.sizes import examples

import outcore as oc
from outcore.errors import ArgumentError, OutcoreError, RangeError

PARTS = (0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan)
COMPLEX = arrays.arrays(
    st.sampled_from([np.complex64, np.complex128]),
    arrays.array_shapes(max_dims=2, max_side=4),
    elements=st.sampled_from([complex(x, y) for x in PARTS for y in PARTS]),
)


@settings(max_examples=examples(20), deadline=None)
@given(
    x=arrays.arrays(np.float16, st.integers(2, 50), elements=st.sampled_from([np.float16(x) for x in (60000, 1, 30)])),
    weights=st.sampled_from([None, "float16", "float32", "int64", "uint8", "bool"]),
)
def test_averages_of_half_numbers_are_summed_wider(x: Any, weights: str | None) -> None:
    heavy = None if weights is None else np.ones(x.shape, dtype=weights) * np.asarray(1, dtype=weights)
    if heavy is not None and weights != "bool":
        heavy[::2] += 2
    with session():
        found = oc.average(x, weights=heavy).compute()
        along = oc.average(x[None], axis=1, weights=heavy).compute()
    wide = np.average(x.astype(np.float64), weights=None if heavy is None else heavy.astype(np.float64))
    ones = np.ones(2, np.float16)
    assert found.dtype == along.dtype == np.average(ones, weights=None if heavy is None else heavy[:2]).dtype
    np.testing.assert_allclose([found, along[0]], wide, rtol=2e-3)


def test_integrals_of_half_numbers_are_summed_wider() -> None:
    y = np.full(100, 60000, np.float16)
    ends = np.asarray([-60000, 60000], np.float16)
    with session():
        for step in (0.01, np.float16(0.01), np.float64(0.01)):
            found = oc.trapezoid(y, dx=step).compute()
            np.testing.assert_allclose(found, 59400, rtol=2e-3)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                assert found.dtype == np.trapezoid(y, dx=step).dtype
        np.testing.assert_allclose(oc.trapezoid(ends * 0 + np.float16(0.25), ends).item(), 30000, rtol=2e-3)
        # Steps of short integers that fall or are beyond them.
        assert oc.trapezoid(np.ones(3), np.asarray([250, 5, 0], np.uint8)).item() == -250
        assert oc.trapezoid(np.ones(2), np.asarray([-100, 100], np.int8)).item() == 200


@settings(max_examples=examples(25), deadline=None)
@given(x=COMPLEX, told=st.sampled_from([{}, {"nan": 1.0}, {"posinf": 3.0, "neginf": -4.0}]))
def test_nan_to_num_replaces_both_parts(x: Any, told: dict[str, float]) -> None:
    with session():
        for found in (oc.nan_to_num(x, **told), np.nan_to_num(oc.asarray(x), **told)):
            wanted = np.nan_to_num(x, **told)
            assert found.dtype == wanted.dtype
            np.testing.assert_array_equal(found.compute(), wanted)


@settings(max_examples=examples(25), deadline=None)
@given(
    x=COMPLEX, mode=st.sampled_from(["constant", "edge", "symmetric", "wrap"]), fill=st.sampled_from([0, 2.5, 1 - 2j])
)
def test_pad_of_complex_numbers(x: Any, mode: Any, fill: Any) -> None:
    options = {"constant_values": fill} if mode == "constant" else {}
    with session():
        np.testing.assert_array_equal(oc.pad(x, 1, mode, **options).compute(), np.pad(x, 1, mode, **options))


def test_what_is_refused() -> None:
    with session():
        with pytest.raises(ArgumentError, match="finite"):
            oc.nan_to_num(np.asarray([1j]), posinf=np.inf)
        with pytest.raises(RangeError):
            oc.pad(np.asarray([1, 2], np.uint8), 1, constant_values=300)
        for fill in (np.nan, 1j):
            with pytest.raises(OutcoreError):
                oc.pad(np.asarray([1, 2]), 1, constant_values=fill)
