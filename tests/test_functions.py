"""What a function over tiles raises reaches the caller: its type, its text and where it happened."""

from __future__ import annotations

import traceback
from typing import Any

import numpy as np
import pytest
from support.running import assert_nothing_but_kept, session

import outcore as oc
from outcore.errors import FunctionError, OutcoreError


class UnhappyError(Exception):
    def __init__(self, number: int) -> None:
        super().__init__(f"unhappy with {number}")
        self.number = number


def picky(block: Any) -> Any:
    raise UnhappyError(7)


def raising(error: BaseException) -> Any:
    def function(block: Any) -> Any:
        raise error

    return oc.map_blocks(function, oc.ones((100,)), dtype="float64")


def test_the_cause_is_the_exception_itself_with_its_traceback() -> None:
    lazy = oc.map_blocks(picky, oc.ones((100,)), dtype="float64")
    with session(), pytest.raises(FunctionError, match=r"picky: .*unhappy with 7") as failed:
        oc.compute(lazy)
    cause = failed.value.__cause__
    assert isinstance(cause, UnhappyError)
    assert cause.number == 7
    assert traceback.extract_tb(cause.__traceback__)[-1].name == "picky"
    assert failed.value.code == "function"
    assert isinstance(failed.value, RuntimeError)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_what_stops_a_program_is_not_wrapped(kind: type[BaseException]) -> None:
    error = kind("enough")
    with session(), pytest.raises(kind) as stopped:
        oc.compute(raising(error))
    assert stopped.value is error


def test_errors_of_outcore_are_causes_too() -> None:
    with session(), pytest.raises(OutcoreError) as failed:
        oc.compute(raising(oc.errors.ShapeError("no such shape")))
    assert isinstance(failed.value.__cause__, oc.errors.ShapeError)


def test_a_wrong_shape_names_both() -> None:
    lazy = oc.map_blocks(lambda block: block[:1], oc.ones((100,)), dtype="float64")
    with session(), pytest.raises(FunctionError, match=r"\[1\] for a block of shape \[100\]") as failed:
        oc.compute(lazy)
    assert isinstance(failed.value.__cause__, ValueError)


def test_the_session_goes_on_after_a_function_failed() -> None:
    with session() as current:
        with pytest.raises(FunctionError):
            oc.compute(raising(ValueError("once")))
        assert_nothing_but_kept(current)
        np.testing.assert_array_equal(oc.compute(oc.ones((3,)) + 1), [2, 2, 2])
