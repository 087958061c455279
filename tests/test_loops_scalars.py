"""Numbers that loops carry: the places where they are held, their types, and results of one number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.loop_runs import assert_same, lazy, plain, stored
from support.loop_scalars import SCALARS
from support.loop_sources import function_of
from support.running import session

import outcore as oc
from outcore._loops.program import ElementTarget, RegisterTarget, Update
from outcore.errors import ArgumentError


def program(body: str, parameters: str = "x, y") -> Any:
    lines = "\n".join(f"    {line}" for line in body.strip("\n").splitlines())
    return oc.loops(function_of(f"def drawn({parameters}):\n{lines}\n"))


def held(tree: Any, arguments: int = 2) -> list[tuple[tuple[int, ...], str]]:
    """Shapes and types of the arrays that the program makes for itself."""
    return [(array.shape, array.dtype.name) for array in tree.arrays[arguments:]]


SUMS = """
for i in range(1, x.shape[0]):
    s = 0.0
    for j in range(x.shape[1]):
        s += x[i, j]
    y[i] = s
return y
"""


def test_loops_that_assign_before_they_use_have_an_axis() -> None:
    tree = program(SUMS).tree(np.zeros((4, 5)), np.zeros(4))
    assert held(tree) == [((4,), "float64")]
    first, update, last = tree.assignments()
    assert first.target == ElementTarget(2, Update.STORE, update.target.subscripts)
    assert update.target.update is Update.ADD
    assert last.leaves[0].array == 2
    # Where the loop around carries the number, one element holds it.
    carried = SUMS.replace("    s = 0.0\n", "").replace("for i", "s = 0.0\nfor i", 1)
    assert held(program(carried).tree(np.zeros((4, 5)), np.zeros(4))) == [((1,), "float64")]


def test_axes_are_as_long_as_loops_have_values() -> None:
    body = SUMS.replace("range(1, x.shape[0])", "range(n, n + 4)").replace("y[i]", "y[i - n]").replace("x[i", "x[i - n")
    tree = program(body, "x, y, n").tree(np.zeros((4, 5)), np.zeros(4), 1000)
    assert held(tree) == [((4,), "float64")]
    tree = program(body, "x, y, n").tree(np.zeros((4, 5)), np.zeros(4), -3)
    assert held(tree) == [((4,), "float64")]


def test_loops_that_store_to_the_same_elements_have_no_axis() -> None:
    """Steps through time are in order without it, and an axis of theirs would be as long as they are many."""
    function = SCALARS["weighted"].function
    tree = oc.loops(function).tree(np.zeros((16, 15)), np.zeros(3), 1000)
    assert held(tree) == [((7, 15), "float64")] or held(tree) == [((7, 14), "float64")]


def test_tiles_are_those_of_the_arrays_beside() -> None:
    """One tile of many rows would have their tasks wait for each other."""
    wide, narrow = oc.rechunk(oc.zeros((40, 5)), (8, 5)), oc.rechunk(oc.zeros(40), (10,))
    with session():
        assert program(SUMS).tree(wide, narrow).arrays[2]._expr.tile == (10,)
        assert program(SUMS).tree(wide, np.zeros(40)).arrays[2]._expr.tile == (8,)


def test_numbers_of_the_statements_beside_stay_registers() -> None:
    body = "for i in range(4):\n    t = x[i] * 2\n    t += y[i]\n    y[i] = t\nreturn y"
    tree = program(body).tree(np.zeros(4), np.zeros(4))
    assert held(tree) == []
    # One that is carried as well is read from the register by the statements beside.
    body = "s = 0.0\nfor i in range(4):\n    s = 0.5 * s + x[i]\n    y[i] = s\nreturn y"
    *_, register, kept, last = program(body).tree(np.zeros(4), np.zeros(4)).assignments()
    assert isinstance(register.target, RegisterTarget)
    assert kept.target.array == 2
    assert last.leaves == kept.leaves


def test_a_name_that_serves_twice_is_two_numbers() -> None:
    tree = oc.loops(SCALARS["last ones"].function).tree(np.zeros((12, 9), "f4"), np.zeros(12))
    assert held(tree) == [((12,), "float32"), ((1,), "int64")]


@pytest.mark.parametrize("first", ["0", "0.0", "False", "np.float32(0)", "x[0]"])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i2", "i4", "i8", "c8"])
@pytest.mark.parametrize("update", ["s += x[i]", "s = s + x[i] * 2", "s -= x[i]", "s = 3 * s - x[i]"])
def test_types_are_those_of_the_plain_function(first: str, dtype: str, update: str) -> None:
    run = program(f"s = {first}\nfor i in range(len(x)):\n    {update}\n    y[i] = s\nreturn y, s")
    values = np.arange(9).astype(dtype), np.zeros(9, dtype if np.dtype(dtype).kind == "c" else "f8")
    with session():
        assert_same([part.compute() for part in run(*values)], [np.asarray(part) for part in plain(run.plain, values)])


RESULTS = {
    "sum": "s = 0.0\nfor i in range(len(x)):\n    s += x[i]\nreturn s",
    "largest and its count": "m, c = x[0], 0\nfor i in range(len(x)):\n    m = max(m, x[i])\n"
    "for i in range(len(x)):\n    c += x[i] == m\nreturn m, c",
    "element": "t = x[3] * 2\nreturn t, x",
    "argument": "for i in range(len(x)):\n    y = y * x[i]\nx[0] = y\nreturn x",
    "number of a shape": "n, m = x.shape[0], 2\nfor i in range(len(x)):\n    m = m + n\n    x[i] = m\nreturn m, x",
    "array made after": "t = x[1] * 2\nz = np.zeros(3)\nfor i in range(3):\n    z[i] = t + i\nreturn z",
    "multiple of an index": "for i in range(3):\n    t = i * 0.5\n    for j in range(2):\n"
    "        x[i] = x[i] * t\nreturn x",
    "truth": "f = False\nfor i in range(len(x)):\n    f = f or x[i] > 7\nreturn f",
    "choice": "s = 1.0\nif y > 2:\n    s = 2.0\nfor i in range(len(x)):\n    s = s * x[i]\nreturn s",
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_of_one_number_have_no_axes(name: str, tmp_path: Path) -> None:
    run, values = program(RESULTS[name]), (np.arange(1.0, 9.0), 3.0)
    right = [np.asarray(part) for part in plain(run.plain, values)]
    with session(tmp_path):
        results = lazy(run, stored(tmp_path, values, [(3,), None]))
        assert_same([result.compute() for result in results], right)
        oc.store({tmp_path / f"{number}.npy": result for number, result in enumerate(results)})
    assert_same([np.load(tmp_path / f"{number}.npy") for number in range(len(right))], right)


def test_differences_that_types_make_are_refused_where_they_come_to_be() -> None:
    """A number that no iteration of another type sees is none."""
    body = "s = 0.3\nfor i in range(n):\n    s = s * 0.7 + x[i]\nreturn s"
    x = np.ones(4, np.float32)
    with session():
        with pytest.raises(ArgumentError, match=r"`s` is Python's 0\.3 and float32 by turns"):
            program(body, "x, n")(x, 4)
        run = program(body.replace("0.3", "0.25"), "x, n")
        assert_same([run(x, 4).compute()], [np.asarray(run.plain(x, 4))])


def test_numbers_of_numbers_that_are_carried_may_be_carried_too() -> None:
    body = "now = 0.0\nfor i in range(len(x)):\n    before = now\n    now = x[i]\n    y[i] = now - before\nreturn y"
    for dtype in ("f4", "f8"):
        run, values = program(body), (np.arange(9.0).astype(dtype) ** 2, np.zeros(9))
        with session():
            assert_same([run(*values).compute()], plain(run.plain, values))
