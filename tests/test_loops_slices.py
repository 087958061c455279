"""Assignments to slices: loops over their elements, as NumPy computes them, or refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.loop_runs import as_tuple, assert_same, plain
from support.loop_sources import function_of
from support.running import session

import outcore as oc
from outcore.errors import ArgumentError


def average(u: Any, v: Any, steps: int) -> Any:
    for _ in range(steps):
        v[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
        u, v = v, u
    return u


def eliminated(a: Any) -> Any:
    """Rows are other rows than those that are read, and columns behind the pivot's."""
    for k in range(a.shape[0]):
        for i in range(k + 1, a.shape[0]):
            a[i, k] = a[i, k] / a[k, k]
            a[i, k + 1 :] -= a[i, k] * a[k, k + 1 :]
    return a


def filtered(y: Any, x: Any, w: Any) -> Any:
    for t in range(1, x.shape[0]):
        y[t, :] = w[:] * y[t - 1, :] + (1 - w[:]) * x[t, :]
    return y


def by_steps(y: Any, x: Any, w: Any) -> Any:
    y[:, 1:] = np.where(x[:, 1:] > w[1:], x[:, :-1], 2 * w[:-1])
    for t in range(x.shape[0]):
        y[t, ::2] += x[t, 1::2] + w[::2] * t
        y[t, 1::2] = np.sqrt(y[t, 1::2]) if t > 2 else x[t, 3]
    return y


def within_a_band(y: Any, x: Any, k: int) -> Any:
    """Ends that are the smaller of two, and some that are at least 0 by a condition or by `max` alone."""
    n = y.shape[1]
    for t in range(len(y)):
        y[t, t : min(t + k, n)] = 2 * x[t, t : min(t + k, n)]
        y[t, : max(min(t - 2, n), 0)] += 1.0
        if t >= k:
            y[t, : t - k] -= x[0, : t - k]
    return y


@pytest.mark.parametrize("compiled", [None, False])
@pytest.mark.parametrize("function", [average, eliminated, filtered, by_steps, within_a_band])
def test_slices_are_assigned_as_numpy_has_it(function: Any, compiled: bool | None) -> None:
    random = np.random.default_rng(3).random
    values: list[Any] = {
        "average": [random((9, 8)), random((9, 8)), 5],
        "eliminated": [random((7, 7)) + 7 * np.eye(7)],
        "filtered": [random((6, 5)), random((6, 5)), random(5)],
        "by_steps": [random((6, 6)), random((6, 6)), random(6)],
        "within_a_band": [random((6, 7)), random((6, 7)), 3],
    }[function.__name__]
    tiled = [oc.rechunk(oc.asarray(part), 3) if np.ndim(part) == 1 else part for part in values]
    with session():
        found = oc.loops(compiled=compiled)(function)(*tiled)
        assert_same([found.compute()], plain(function, values))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_drawn_slices_are_numpys_or_refused(data: st.DataObject) -> None:
    n = data.draw(st.integers(3, 7))

    def drawn() -> str:
        ends = st.sampled_from(["", "0", "1", "2", "-1", "-2", "n - 1", "n // 2"])
        step = data.draw(st.sampled_from(["", "", ":2", ":3"]))
        return f"{data.draw(ends)}:{data.draw(ends)}{step}"

    arrays = data.draw(st.sampled_from(["uv", "vv", "uu"]))
    target, operator = drawn(), data.draw(st.sampled_from(["=", "+="]))
    reads = [target if data.draw(st.booleans()) else drawn() for _ in range(2)]
    value = f"{arrays[0]}[i, {reads[0]}] - 2 * {arrays[1]}[{data.draw(st.sampled_from(['i', '0']))}, {reads[1]}]"
    body = f"n = u.shape[1]\n    for i in range(u.shape[0]):\n        u[i, {target}] {operator} {value}\n    return u"
    function = function_of(f"def drawn(u, v):\n    {body}\n")
    values = [np.random.default_rng(number).random((3, n)) for number in (0, 1)]
    try:
        expected = plain(function, values)
    except ValueError:
        expected = ()  # of unlike lengths
    with session():
        try:
            found = [part.compute() for part in as_tuple(oc.loops(function)(*values))]
        except ArgumentError:
            # What NumPy broadcasts or reads before may be refused; else nothing is.
            is_plain = "u" not in arrays and len({len(range(n)[_slice(part, n)]) for part in (target, *reads)}) == 1
            assert not (is_plain and expected)
            return
    assert expected
    assert_same(found, expected)


def _slice(text: str, n: int) -> slice:
    found: slice = eval(f"np.s_[{text}]", {"np": np, "n": n})
    return found


REFUSED = {
    "overlap": ("u[1:] = u[:-1] + 1", "slices of `u` are assigned while other elements of `u` are read"),
    "overlap of a pivot": ("u[:] = u[:] / u[0]", "slices of `u` are assigned while other elements of `u` are read"),
    "overlap by another name": ("w = u\n    w[1:] = u[:-1]", "slices of `u` are assigned while other elements"),
    "lengths": ("u[1:] = v[2:]", r"`v\[2:\]` has another number of elements"),
    "more axes": ("u[1] = v[1:]", "slices stand on both sides"),
    "backwards": ("u[::-1] = v[:]", "slices stand on both sides"),
    "one truth": ("u[:] = 1.0 if v[:] > 0 else 0.0", "one truth of whole slices: write np.where"),
    "least": ("u[:] = min(u[:], v[:])", "one truth of whole slices: write np.minimum"),
    "beyond": ("u[0:100] = v[0:100]", "goes from 0 to 99, and axis 0 has length 5"),
    "end below 0": ("for i in range(5):\n        u[: i - 3] = 1.0", "`i - 3` ends a slice and may be below 0"),
    "end of another": ("for i in range(5):\n        u[1:i] = v[: i - 1]", "`i - 1` ends a slice and may be below 0"),
    "least end": ("for i in range(5):\n        u[: min(i - 3, 4)] = 1.0", "may be below 0, which NumPy counts from"),
    "largest begin": ("for i in range(5):\n        u[max(i - 3, 0) : i] = 1.0", "not affine, and a subscript must be"),
    "known end below 0": ("m = 3 - len(u)\n    u[1:m] = v[:2]", "`m` ends a slice and may be below 0"),
    "sum": ("t = np.sum(v[:])", "`np.sum` is not taken"),
    "types": ("u[1:] = u[1:] << v[1:]", r"^loops: .*: `u\[1:\] << v\[1:\]`: "),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_slices_are_refused(name: str) -> None:
    body, said = REFUSED[name]
    function = function_of(f"import numpy as np\ndef drawn(u, v):\n    {body}\n    return u\n")
    with pytest.raises(ArgumentError, match=said):
        oc.loops(function)(np.zeros(5), np.zeros(5))
