"""Remainders and quotients of loop variables in subscripts, bounds and conditions: as plain Python has them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.loop_runs import assert_same, plain, random_values, run_within, stored
from support.loop_sources import function_of
from support.running import forecast, session

import outcore as oc
from outcore.errors import ArgumentError


def red_black(u: Any, steps: int) -> Any:
    for _ in range(steps):
        for color in range(2):
            for i in range(1, u.shape[0] - 1):
                for j in range(1 + (i + color) % 2, u.shape[1] - 1, 2):
                    u[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
    return u


def rolling(u: Any, x: Any) -> Any:
    for t in range(x.shape[0]):
        now, before = t % 3, (t + 2) % 3
        for i in range(1, x.shape[1] - 1):
            u[now, i] = u[before, i - 1] * 0.5 + x[t, i]
    return u


def binned(a: Any, b: Any, c: Any) -> Any:
    for i in range(len(a)):
        b[i // 4] += a[i]
        c[i // 3, i % 3] = a[i]
    return b, c


def photographed(u: Any, taken: Any, steps: int) -> Any:
    for t in range(steps):
        for i in range(1, len(u)):
            u[i] = u[i] * 0.5 + u[i - 1]
        if t % 5 == 2:
            for i in range(len(u)):
                taken[t // 5, i] = u[i]
    return u, taken


def triangles(a: Any) -> Any:
    for i in range(a.shape[0]):
        for j in range(i // 2, a.shape[1] - (i % 3)):
            if (i + j) % 2 == 1:
                a[i, j] += i * 10
            else:
                a[i, j] = a[i, j] - j
    return a


def backwards(a: Any) -> Any:
    for i in range(len(a) - 1, -1, -1):
        a[i] = a[len(a) - 1 - i] * 2 + i % 2
        if i % 4 < 2:
            a[i] += i // 1000 + (i % 100) * 0.25
    return a


def exchanged(u: Any, v: Any, steps: int) -> Any:
    for t in range(steps):
        for i in range(1, len(u) - 1):
            v[i] = u[i - 1] + (u[i + 1] if t % 3 == 0 else u[i])
        if t % 3 == 1:
            v[0] = t
        u, v = v, u
    return u


PROGRAMS: dict[str, tuple[Any, list[Any], list[tuple[int, ...] | None]]] = {
    "red_black": (red_black, [random_values(9, 11), 3], [(4, 3), None]),
    "rolling": (rolling, [np.zeros((3, 8)), random_values(10, 8)], [(2, 5), (3, 3)]),
    "binned": (binned, [random_values(22), np.zeros(6), np.zeros((8, 3))], [(5,), (2,), (3, 2)]),
    "photographed": (photographed, [random_values(6), np.zeros((4, 6)), 18], [(4,), (2, 4), None]),
    "triangles": (triangles, [random_values(11, 13)], [(4, 5)]),
    "backwards": (backwards, [random_values(11)], [(3,)]),
    "exchanged": (exchanged, [random_values(9), random_values(9), 8], [(4,), (4,), None]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_remainders_and_quotients_are_those_of_python(name: str, tmp_path: Path) -> None:
    function, values, tiles = PROGRAMS[name]
    expected, arguments = plain(function, values), stored(tmp_path, values, tiles)
    for limit, compiled in ((1, False), (1 << 20, None)):
        program = oc.loops(compiled=compiled)(function)
        assert_same(run_within(tmp_path, program, arguments, pool_limit=limit).results, expected)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_drawn_periods_are_those_of_python(data: st.DataObject) -> None:
    def number(names: str, least: int) -> str:
        value = data.draw(
            st.sampled_from([*names, *(f"{name} + 1" for name in names), *(f"2 * {name}" for name in names)])
        )
        operator, by = data.draw(st.sampled_from(["%", "//"])), data.draw(st.integers(least, 4))
        return f"({value}) {operator} {by}"

    begin, end = number("i", 2), number("i", 2)
    condition = f"{number('ij', 2)} {data.draw(st.sampled_from(['<', '==', '>=']))} {number('ij', 2)}"
    read = f"u[{number('j', 2)}, {number('i', 2)}]"
    step = data.draw(st.sampled_from(["1", "2", "3"]))
    header = data.draw(st.sampled_from(["range(7)", "range(6, -1, -1)", "range(1, 7, 2)"]))
    source = (
        f"def drawn(u):\n    for i in {header}:\n        for j in range({begin}, 9 - {end}, {step}):\n"
        f"            if {condition}:\n                u[i, j] = {read} + {number('ij', 2)}\n"
        f"            u[i, {number('j', 2)}] -= 1\n    return u\n"
    )
    function = function_of(source)
    values = [np.arange(15 * 16).reshape(15, 16)]
    lazy = oc.rechunk(oc.asarray(values[0]), (4, 6))
    with session():
        try:
            found = oc.loops(function)(lazy).compute()
        except ArgumentError as error:
            if "repeated" not in str(error):
                raise
            return
    assert_same([found], plain(function, values))


REFUSED = {
    "many": ("a[i % 40] = 1.0", "repeated 40 times for remainders by 40, and 32 times at most"),
    "many together": ("a[i % 7] = a[i % 5]", "repeated 35 times for remainders by 35"),
    "by a variable": ("a[5 % (i + 1)] = 1.0", "not affine"),
    "of a product": ("a[(i * i) % 2] = 1.0", "not affine"),
    "by a float": ("a[i % 2.0] = 1.0", "not affine"),
    "by below 0": ("a[i % -2] = 1.0", "not affine"),
    "of the largest": ("a[max(i, 2) % 2] = 1.0", "must be affine|not affine"),
    "beyond": ("a[i // 2 + 5] = 1.0", "goes from 5 to 9, and axis 0 has length 6"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_remainders_are_refused(name: str) -> None:
    body, said = REFUSED[name]
    function = function_of(f"def drawn(a):\n    for i in range(10):\n        {body}\n    return a\n")
    with pytest.raises(ArgumentError, match=said):
        oc.loops(function)(np.zeros(6))


def test_steps_of_red_and_black_go_over_the_array_together(tmp_path: Path) -> None:
    """Ten steps of two colors read and write a file once, in memory for a quarter of it."""
    values = np.lib.format.open_memmap(tmp_path / "u.npy", mode="w+", dtype="f8", shape=(8000, 8000))
    with session(pool_limit=128 << 20):
        said = forecast({str(tmp_path / "out.npy"): oc.loops(red_black)(oc.open(tmp_path / "u.npy"), 10)})
    assert said["bytes_read"] + said["bytes_written"] <= 1.01 * 2 * values.nbytes
