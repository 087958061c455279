"""Loops of a task parted between the statements in them: lines as long as all loops around, and the same bits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import pytest
from support.loop_runs import ROOM, assert_close, assert_same, plain, run_within, stored

import outcore as oc


def window(x: Any, y: Any) -> Any:
    """Parted: each element has a sum of its own."""
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            s = 0.0
            for a in range(3):
                for b in range(3):
                    s += x[i + a, j + b] * (1 + a + 2 * b)
            y[i, j] = s
    return y


def window_of_elements(x: Any, y: Any) -> Any:
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            for a in range(3):
                for b in range(3):
                    y[i, j] += x[i + a, j + b] * (1 + a + 2 * b)
    return y


def chained(x: Any, y: Any) -> Any:
    """Not parted: what stands before the inner loop needs what the loop made of the element before."""
    for i in range(y.shape[0]):
        for j in range(1, y.shape[1]):
            y[i, j] = y[i, j - 1] * 0.5
            for a in range(3):
                y[i, j] = y[i, j] + x[i, j + a] * y[i, j - 1]
    return y


def chained_behind(x: Any, y: Any) -> Any:
    """Parted along one loop, not along the other; the last statement needs the next iteration's first."""
    for i in range(1, y.shape[0]):
        for j in range(y.shape[1] - 1):
            y[i, j] = x[i, j] + y[i - 1, j + 1]
            for a in range(2):
                y[i, j + a] = y[i, j + a] * 0.5 + x[i - a, j]
            x[i, j] = y[i, j] - x[i - 1, j]
    return x, y


def between(x: Any, y: Any) -> Any:
    """Statements before, between and after two loops, one of which goes backwards and is guarded."""
    for i in range(y.shape[0]):
        y[i, 0] = x[i, 1]
        for j in range(1, y.shape[1]):
            y[i, j] = y[i, j - 1] + x[i, j]
        x[i, 0] = y[i, y.shape[1] - 1]
        for j in range(y.shape[1] - 1, 0, -1):
            if j > i:
                y[i, j] = y[i, j] - x[i, 0] * y[i, 0]
        x[i, 1] = y[i, 1] + x[i, 0]
    return x, y


@pytest.mark.parametrize("compiled", [None, False])
@pytest.mark.parametrize("function", [window, chained, chained_behind, between])
def test_parted_loops_come_to_the_bits_of_the_plain_function(
    function: Callable[..., Any], compiled: bool | None, tmp_path: Path
) -> None:
    values = [np.random.default_rng(number).random((17 - 2 * number, 14 - 2 * number)) for number in (0, 1)]
    arguments = stored(tmp_path, values, [(5, 4), (4, 6)])
    assert_results = assert_close if function is window else assert_same
    for pool_limit in (ROOM, 2 << 10):
        found = run_within(tmp_path, oc.loops(compiled=compiled)(function), arguments, pool_limit=pool_limit, threads=2)
        assert_results(found.results, plain(function, values))


def test_sums_by_a_name_over_short_loops_take_long_lines() -> None:
    """Lines were as long as the shortest loop, and fifty times slower than sums into elements."""
    x, y = np.random.default_rng(3).random((402, 402)), np.zeros((400, 400))
    programs = [oc.loops(compiled=False)(function) for function in (window, window_of_elements)]
    seconds: list[list[float]] = [[], []]
    for _ in range(5):
        for program, taken in zip(programs, seconds, strict=True):
            begin = perf_counter()
            program(x, y).compute()
            taken.append(perf_counter() - begin)
    assert median(seconds[0]) < 6 * median(seconds[1])
