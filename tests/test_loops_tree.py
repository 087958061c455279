"""Trees of loop programs come to the elements of the plain functions, one iteration after the other."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from support.loop_programs import CASES, expected
from support.loop_tree import interpreted
from support.running import session

import outcore as oc


@pytest.mark.parametrize("name", CASES)
def test_trees_come_to_the_elements_of_the_plain_function(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    interpreted(monkeypatch)
    case = CASES[name]
    with session(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # integers that wrap around do so on both sides
        results = oc.loops(case.function)(*case.arguments())
        results = results if isinstance(results, tuple) else (results,)
        right = expected(case)
        assert len(results) == len(right)
        for result, values in zip(results, right, strict=True):
            assert result.dtype == values.dtype
            np.testing.assert_array_equal(result.compute(), values)
