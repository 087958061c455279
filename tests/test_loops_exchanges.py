"""Arrays that are exchanged from step to step: the loops that come of it, and the arrays that names have after them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.loop_exchanges import exchanges_within, heat, waves
from support.loop_runs import as_tuple, assert_same, plain
from support.loop_sources import function_of
from support.running import session

import outcore as oc
from outcore._loops.affine import Affine
from outcore._loops.program import CountedLoop, ElementTarget, GuardedBlock
from outcore.errors import ArgumentError


def targets(items: Any) -> list[int]:
    """Arrays that are assigned, in the order of the source."""
    blocks: list[int] = []
    for item in items:
        if isinstance(item, CountedLoop):
            blocks += targets(item.items)
        else:
            assert isinstance(item, GuardedBlock)
            elements = (assignment.target for assignment in item.assignments)
            blocks += [element.array for element in elements if isinstance(element, ElementTarget)]
    return blocks


def test_steps_go_by_groups_and_those_that_are_left() -> None:
    u = np.zeros((5, 6))
    groups, *left = oc.loops(heat).tree(u, u.copy(), 7).items
    assert (groups.extent, groups.divisor) == (Affine(2), 1)
    assert targets(groups.items) == [1, 0]
    assert targets(left) == [1]
    groups, *left = oc.loops(waves).tree(u, u.copy(), u.copy(), 7).items
    assert groups.extent == Affine(1)
    assert sorted(targets(groups.items)) == [0, 1, 3]
    assert targets(left) == targets(groups.items)[:1]


def test_steps_are_those_that_are_written_out() -> None:
    """Plans know nothing of exchanges."""
    pairs = function_of(
        "def drawn(u, v, steps):\n    n = len(u)\n    for t in range(0, steps, 2):\n"
        "        for i in range(1, n - 1):\n            v[i] = u[i - 1] + u[i + 1]\n"
        "        for i in range(1, n - 1):\n            u[i] = v[i - 1] + v[i + 1]\n    return u\n"
    )
    turns = function_of(
        "def drawn(u, v, steps):\n    n = len(u)\n    for t in range(steps):\n        for i in range(1, n - 1):\n"
        "            v[i] = u[i - 1] + u[i + 1]\n        u, v = v, u\n    return u\n"
    )
    u = np.arange(9.0)
    with session():
        written_out, exchanged = (oc.explain(oc.loops(of)(u, u[::-1].copy(), 6)) for of in (pairs, turns))
        assert (written_out.tasks, written_out.bytes_read) == (exchanged.tasks, exchanged.bytes_read)


@pytest.mark.parametrize("steps", range(8))
def test_names_are_those_of_the_arrays_that_python_leaves_them(steps: int) -> None:
    """Each array has a number of its own at an element that no step writes."""
    random = np.random.default_rng(steps)
    for function, count in ((heat, 2), (waves, 3), (exchanges_within, 2)):
        values: list[Any] = list(random.random((count, 7, 6)))
        if function is exchanges_within:
            values = [part[:, 0].copy() for part in values] + [steps % 3 + 1]
        values.append(steps)
        with session():
            found = [part.compute() for part in as_tuple(oc.loops(function)(*values))]
        assert_same(found, plain(function, values))


@pytest.mark.parametrize("bounds", ["t + 2, t + 9", "max(0, t - 3), min(len(u), t + 4)", "t, len(u)"])
def test_steps_of_other_bounds_carry_numbers(bounds: str) -> None:
    """Each step that is repeated has the loop within by itself, from another begin or of another length."""
    function = function_of(
        f"def drawn(u, v, steps):\n    for t in range(steps):\n        for i in range({bounds}):\n            s = 0.0\n"
        "            for j in range(u.shape[1]):\n                s = 0.5 * s + u[i, j]\n            v[i, 0] = s + t\n"
        "        u, v = v, u\n    return u, v\n"
    )
    for steps in (1, 2, 5, 12):
        values = [*np.random.default_rng(steps).random((2, 20, 3)), steps]
        with session():
            assert_same([part.compute() for part in oc.loops(function)(*values)], plain(function, values))


ALIASES = {
    "before loops": "u, v = v, u\nfor i in range(len(u)):\n    u[i] = 2 * v[i]\nreturn u, v",
    "second name": "w = u\nfor i in range(1, len(u)):\n    w[i] = u[i - 1] + v[i]\nreturn w, u",
    "second name within": "for i in range(3):\n    w = u\n    w[i] = v[i] + i\nreturn u",
    "there and back": "for t in range(5):\n    u, v = v, u\n    u[t] = v[t] + 1\n    u, v = v, u\nreturn u, v",
    "branches beside": "for t in range(5):\n    if t > 2:\n        u[t] = 2 * v[t]\n    else:\n"
    "        v[t] = u[t] + 1\n    u, v = v, u\nreturn u, v",
    "numbers beside": "s = 0.0\nfor t in range(5):\n    old = s\n    s = u[t] - old\n    v[t] = s\n    u, v = v, u\n"
    "return u, v, s",
    "unlike shapes": "n, m = len(u), len(v)\nfor t in range(3):\n    for i in range(min(n, m)):\n"
    "        v[i] = u[len(u) - 1 - i] + len(v)\n    u, v = v, u\nreturn u, v",
}


@pytest.mark.parametrize("name", ALIASES)
def test_names_take_arrays_of_others(name: str) -> None:
    body = "\n".join(f"    {line}" for line in ALIASES[name].splitlines())
    function = function_of(f"def drawn(u, v):\n{body}\n")
    values = np.arange(7.0), np.arange(9.0, 0.0, -1.0) if name == "unlike shapes" else np.arange(8.0, 1.0, -1.0)
    with session():
        found = [part.compute() for part in as_tuple(oc.loops(function)(*values))]
    assert_same(found, [np.asarray(part) for part in plain(function, values)])


@pytest.mark.parametrize("copy", ["u.copy()", "np.copy(u)"])
def test_steps_begin_with_a_copy(copy: str) -> None:
    body = f"v = {copy}\nfor t in range(3):\n    for i in range(1, len(u) - 1):\n        v[i] = u[i - 1] - u[i + 1]\n"
    body += "    u, v = v, u\nreturn u"
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    function = function_of(f"def drawn(u):\n{lines}\n")
    values = [np.random.default_rng(0).random(9)]
    with session():
        assert_same([oc.loops(function)(*values).compute()], plain(function, values))


def test_an_array_is_not_copied_after_it_is_assigned() -> None:
    function = function_of("def drawn(u):\n    u[0] = 1\n    v = u.copy()\n    v[0] = 2\n    return u, v\n")
    with pytest.raises(ArgumentError, match=r"`u.copy\(\)`: elements of `u` are assigned before"):
        oc.loops(function)(np.zeros(3))


def test_exchanges_in_many_loops_are_refused_before_they_fill_the_memory() -> None:
    """Groups of steps of five loops within each other took 24 GiB."""
    lines, depth = ["def drawn(a, b, c, d, e):"], 5
    lines += ["    " * (at + 1) + f"for t{at} in range(25):" for at in range(depth)]
    lines.append("    " * (depth + 1) + "a[0] = b[1] + c[2]")
    lines += ["    " * at + "a, b, c, d, e = b, a, d, e, c" for at in range(depth + 1, 1, -1)]
    function = function_of("\n".join([*lines, "    return a, b, c, d, e", ""]))
    with pytest.raises(ArgumentError, match="more than 4096 statements"):
        oc.loops(function)(*(np.zeros(3) for _ in range(5)))
