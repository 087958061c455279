"""Rows, columns and leading axes repeated over blocks of many strips, in all element sizes: NumPy's values exactly."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.running import session
from support.sizes import examples

import outcore as oc

SHAPES = [(5000,), (700, 3), (3, 2500), (40, 33), (4, 90, 31), (2, 3, 2048), (3, 1, 1500), (6, 500, 1)]


@pytest.mark.parametrize("dtype", ["bool", "int16", "float32", "float64", "complex128"])
@settings(max_examples=examples(25), deadline=None)
@given(shape=st.sampled_from(SHAPES), data=st.data())
def test_operands_repeated_along_any_axes(dtype: str, shape: tuple[int, ...], data: st.DataObject) -> None:
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    thin = [tuple(data.draw(st.sampled_from([1, length])) for length in shape) for _ in range(2)]
    x, y, z = ((random.normal(size=part) * 9).astype(dtype) for part in (shape, *thin))
    tile = tuple(data.draw(st.sampled_from([length, -(-length // 2)])) for length in shape)
    with session():
        lazy = oc.rechunk(oc.asarray(x), tile)
        if dtype == "bool":
            found, expected = (lazy ^ y) | z, (x ^ y) | z
        else:
            found, expected = (lazy + y) * z - y, (x + y) * z - y
        np.testing.assert_array_equal(found.compute(), expected)
        np.testing.assert_array_equal((oc.asarray(y) + oc.asarray(z)).compute(), y + z)
