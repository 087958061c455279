"""Loop programs from their source: wrong ones are refused with line and reason, right ones become the tree they say."""

from __future__ import annotations

import importlib.util
import math
import pickle
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from support.loop_tree import interpreted, loop_leaf
from support.running import session

import outcore as oc
from outcore import _core
from outcore._loops.affine import Affine
from outcore._loops.program import (
    CountedLoop,
    ElementLeaf,
    ElementTarget,
    GuardedBlock,
    IndexLeaf,
    RegisterLeaf,
    RegisterTarget,
    Update,
    encoded,
)
from outcore.errors import ArgumentError

HEAD = """
import math
import numpy as np
import outcore as oc
OUTSIDE = np.zeros(4)
LENGTH = 4

"""


class Wrong(NamedTuple):
    """A body with its parameters; the line that ends with a comment is the one that is refused."""

    parameters: str
    body: str
    reason: str
    arguments: tuple[Any, ...] | None = None  # of the call that is refused; None where decoration is


A4, B45 = np.zeros(4), np.zeros((4, 5))
WRONG = {
    "product of variables": Wrong(
        "a",
        """
        for i in range(4):
            for j in range(4):
                a[i * j] = 1.0  #
        return a
        """,
        "`i * j` is not affine, and a subscript must be: a product of loop variables",
    ),
    "subscript by data": Wrong(
        "a, b",
        """
        for i in range(4):
            a[b[i]] = 1.0  #
        return a
        """,
        "`b[i]` depends on data, and a subscript must follow from loop variables and integers alone",
    ),
    "subscript by a local number": Wrong(
        "a, b",
        """
        for i in range(4):
            t = b[i]
            a[t + 1] = 1.0  #
        return a
        """,
        "`t` is a local number that depends on data or is not affine",
    ),
    "quotient in a subscript": Wrong(
        "a",
        """
        for i in range(4):
            a[i] = a[i // 2 + 1]  #
        return a
        """,
        "`i // 2` is not affine, and a subscript must be: a floor division of a loop variable",
    ),
    "bound by data": Wrong(
        "a",
        """
        for i in range(int(a[0])):  #
            a[i] = 1.0
        return a
        """,
        "`a[0]` depends on data, and a bound of a loop must follow from loop variables and integers alone",
    ),
    "step by a variable": Wrong(
        "a",
        """
        for i in range(1, 4):
            for j in range(0, 4, i):  #
                a[j] = 1.0
        return a
        """,
        "the step `i` depends on a loop variable",
    ),
    "if on data": Wrong(
        "a",
        """
        for i in range(4):
            if a[i] > 0.0:  #
                a[i] = 0.0
        return a
        """,
        "write a conditional expression: x if c else y",
    ),
    "remainder in a condition": Wrong(
        "a",
        """
        for i in range(4):
            if i % 2 == 0:  #
                a[i] = 0.0
        return a
        """,
        "`i % 2` is not affine, and the condition of an `if` must be: a remainder of a loop variable",
    ),
    "while": Wrong("a", "while a[0] > 0:  #\n    a[0] -= 1\nreturn a", "`while` is not taken"),
    "break": Wrong("a", "for i in range(4):\n    break  #\nreturn a", "`break` is not taken"),
    "continue": Wrong("a", "for i in range(4):\n    continue  #\nreturn a", "write an `if` around the statements"),
    "try": Wrong("a", "try:  #\n    a[0] = 1\nfinally:\n    pass\nreturn a", "`try` is not taken"),
    "with": Wrong("a", "with open('a'):  #\n    a[0] = 1\nreturn a", "`with` is not taken"),
    "nested function": Wrong("a", "def f():  #\n    pass\nreturn a", "functions inside of a loop program"),
    "lambda": Wrong("a", "f = lambda x: x  #\nreturn a", "lambdas are not taken"),
    "comprehension": Wrong("a", "a[0] = max([x for x in range(3)])  #\nreturn a", "comprehensions are not taken"),
    "generator expression": Wrong("a", "a[0] = max(x for x in range(3))  #\nreturn a", "generators are not taken"),
    "generator": Wrong("a", "yield a  #\nreturn a", "generators are not taken"),
    "global": Wrong("a", "global b  #\nreturn a", "`global` is not taken"),
    "import": Wrong("a", "import os  #\nreturn a", "`import` is not taken: import above the function"),
    "slice": Wrong("a, b", "for i in range(4):\n    a[i, :] = b[i]  #\nreturn a", "lanes are not supported yet"),
    "whole array": Wrong("a", "for i in range(4):\n    a[i] = a * 2  #\nreturn a", "stands without subscripts"),
    "rebound array": Wrong("a", "a = 3  #\nreturn a", "the array `a` is rebound"),
    "second name of an array": Wrong("a", "b = a  #\nb[0] = 1\nreturn a", "`a` is an array, and has one name"),
    "unknown name": Wrong("a", "for i in range(4):\n    a[i] = missing + 1  #\nreturn a", "`missing` is not known"),
    "unknown function": Wrong("a", "for i in range(4):\n    a[i] = np.sum(a[i])  #\nreturn a", "the function `np.sum`"),
    "function that is missing": Wrong("a", "a[0] = np.sqroot(a[0])  #\nreturn a", "`np` has no `sqroot`"),
    "method": Wrong("a", "a[0] = a.sum()  #\nreturn a", "the function `a.sum` is not taken"),
    "array from outside": Wrong("a", "a[0] = OUTSIDE  #\nreturn a", "make it a parameter"),
    "element of an array from outside": Wrong("a", "a[0] = OUTSIDE[1]  #\nreturn a", "make it a parameter"),
    "no return": Wrong("a", "a[0] = 1", "has no `return` at its end"),
    "return of a number": Wrong("a", "n = 3\nreturn n  #", "the names of arrays are returned"),
    "return in a loop": Wrong("a", "for i in range(4):\n    return a  #\nreturn a", "at the end of the function alone"),
    "statement without effect": Wrong("a", "a[0] + 1  #\nreturn a", "has no effect"),
    "number carried": Wrong(
        "a",
        """
        s = 0.0
        for i in range(4):
            s += a[i]  #
        return a
        """,
        "`s` is carried from iteration to iteration: keep it in an element of the result, or in an array of length one",
    ),
    "number beyond a loop": Wrong(
        "a",
        """
        for i in range(4):
            t = a[i]
            a[i] = t
        a[0] = t  #
        return a
        """,
        "`t` is assigned in a loop or a branch and used beyond it",
    ),
    "number in an inner loop": Wrong(
        "b",
        """
        for i in range(4):
            t = b[i, 0]
            for j in range(4):
                b[i, j] = t  #
        return b
        """,
        "used beyond a loop or in another branch: keep it in an element of the result, or in an array of length one",
    ),
    "variable beyond its loop": Wrong("a", "for i in range(4):\n    a[i] = i\na[i] = 0  #\nreturn a", "used beyond it"),
    "variable assigned": Wrong("a", "for i in range(4):\n    i = 2  #\nreturn a", "`i` is the variable of a loop"),
    "variable of a loop around": Wrong(
        "a",
        "for i in range(4):\n    for i in range(4):  #\n        a[i] = 1\nreturn a",
        "the variable of a loop around",
    ),
    "loop over an array": Wrong("a", "for x in a:  #\n    a[0] = 1\nreturn a", "loops are over `range(...)`"),
    "else of a loop": Wrong("a", "for i in range(4):\n    a[i] = 1\nelse:\n    a[0] = 1  #\nreturn a", "`else` of"),
    "array in a loop": Wrong(
        "a", "for i in range(4):\n    b = oc.zeros(3)  #\n    a[i] = b[0]\nreturn a", "inside of a loop or a branch"
    ),
    "shape by data": Wrong("a", "b = oc.zeros(int(a[0]))  #\nreturn b", "must be known before loops"),
    "product of matrices": Wrong("a", "a[0] = a[1] @ a[2]  #\nreturn a", "a product of matrices is three loops"),
    "two targets": Wrong("a", "a[0] = a[1] = 1  #\nreturn a", "several `=` in one statement"),
    "unlisted parameters": Wrong("a, *b", "return a", "`b`: parameters are listed by name"),
    "deep nest": Wrong(
        "a",
        "\n".join(f"{'    ' * depth}for i{depth} in range(2):{'  #' * (depth == 8)}" for depth in range(9))
        + f"\n{'    ' * 9}a[0] = 1\nreturn a",
        "nested more than 8 deep",
    ),
    "write out of bounds": Wrong(
        "a",
        "for i in range(a.shape[0]):\n    a[i + 1] = 1.0  #\nreturn a",
        "subscript `i + 1` of `a` goes from 1 to 4, and axis 0 has length 4",
        (A4,),
    ),
    "read out of bounds": Wrong(
        "b",
        "for i in range(4):\n    for j in range(i + 1, 5):\n        b[i, j] = b[j, i]  #\nreturn b",
        "subscript `j` of `b` goes from 1 to 4, and axis 0 has length 4",
        (B45,),
    ),
    "negative subscripts": Wrong(
        "a",
        "for i in range(4):\n    a[i - 4] = 1.0  #\nreturn a",
        "goes from -4 to -1, and axis 0 has length 4; a subscript that varies counts from the front: add 4",
        (A4,),
    ),
    "partly negative subscripts": Wrong(
        "a",
        "for i in range(4):\n    a[i] = a[i - 1]  #\nreturn a",
        "goes from -1 to 2, and axis 0 has length 4; a subscript that varies does not count from the end",
        (A4,),
    ),
    "constant out of bounds": Wrong("a", "a[4] = 1.0  #\nreturn a", "is 4, and axis 0 has length 4", (A4,)),
    "wrong number of subscripts": Wrong(
        "b", "b[0] = 1.0  #\nreturn b", "`b[0]` has 1 subscripts, and `b` has 2 axes", (B45,)
    ),
    "float bound": Wrong(
        "a, n", "for i in range(n):  #\n    a[i] = 1\nreturn a", "`n` is 2.5, and a bound of a loop", (A4, 2.5)
    ),
    "step of zero": Wrong("a, n", "for i in range(0, 4, n):  #\n    a[i] = 1\nreturn a", "the step `n` is 0", (A4, 0)),
    "width of indices": Wrong(
        "a, n",
        "for i in range(4):\n    if i * n > n:  #\n        a[i] = 1\nreturn a",
        "index arithmetic goes beyond 63 bits",
        (A4, 1 << 62),
    ),
    "one array twice": Wrong(
        "a, b", "for i in range(4):\n    a[i] = b[3 - i]\nreturn a", "are the same array, and one is written", (A4, A4)
    ),
    "overlapping views": Wrong(
        "a, b",
        "for i in range(4):\n    a[i] = b[i]\nreturn a",
        "`a` and `b` are the same array",
        (np.zeros(9)[:5], np.zeros(9)),
    ),
    "number as an array": Wrong("a", "a[0] = 1\nreturn a", "the argument `a` is a number", (3.0,)),
    "array as a number": Wrong("a, n", "a[0] = n  #\nreturn a", "`n` stands without subscripts", (A4, A4 + 1)),
    "complex into float": Wrong("a", "a[0] = a[1] * 1j  #\nreturn a", "take .real or .imag", (A4,)),
    "complex number into float": Wrong("a", "a[0] = 1j  #\nreturn a", "the complex number 1j", (A4,)),
    "number beyond the type": Wrong("a", "a[0] = 300  #\nreturn a", "out of bounds", (np.zeros(4, "i1"),)),
    "index beyond the type": Wrong(
        "a",
        "for i in range(4):\n    a[i] = 100 * i  #\nreturn a",
        "integers from 0 to 300 are out of bounds for int8",
        (np.zeros(4, "i1"),),
    ),
    "operator that types lack": Wrong("a", "a[0] = a[1] & 1  #\nreturn a", "`a[1] & 1`", (A4,)),
    "division by zero": Wrong("a, n", "h = 1 / n  #\na[0] = h\nreturn a", "division by zero", (A4, 0)),
    "negative length": Wrong("a, n", "b = np.zeros(n)  #\nreturn b", "cannot be negative", (A4, -1)),
}
VIEW = np.zeros(9)
WRONG["overlapping views"] = WRONG["overlapping views"]._replace(arguments=(VIEW[:5], VIEW[3:]))


@pytest.fixture(autouse=True)
def by_the_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trees are held here, and their elements by the core's own tests."""
    interpreted(monkeypatch)


def written(folder: Path, wrong: Wrong) -> tuple[Path, int, Callable[..., Any]]:
    """A file with the program, the line that is refused (that of `def` where none is marked), and the function."""
    body = textwrap.indent(textwrap.dedent(wrong.body).strip("\n"), "    ")
    text = f"{HEAD}def program({wrong.parameters}):\n{body}\n"
    path = folder / "wrong.py"
    path.write_text(text)
    definition = HEAD.count("\n") + 1
    marked = next((n for n, line in enumerate(text.splitlines(), 1) if line.endswith("#")), definition)
    spec = importlib.util.spec_from_file_location("wrong", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return path, marked, module.program


@pytest.mark.parametrize("name", WRONG)
def test_wrong_programs_are_refused_with_line_and_reason(name: str, tmp_path: Path) -> None:
    wrong = WRONG[name]
    path, line, function = written(tmp_path, wrong)
    if wrong.arguments is None:
        with pytest.raises(ArgumentError) as caught:
            oc.loops(function)
    else:
        program = oc.loops(function)
        with session(), pytest.raises(ArgumentError) as caught:
            program(*wrong.arguments)
    assert str(caught.value).startswith(f"loops: {path}:{line}:"), str(caught.value)
    assert wrong.reason in str(caught.value)
    assert caught.value.details["line"] == line
    assert caught.value.details["column"] >= 1


def test_functions_without_source_are_refused() -> None:
    space: dict[str, Any] = {}
    exec("def program(a):\n    return a\n", space)
    with pytest.raises(ArgumentError, match=r"^loops: <string>:1:1: the source is not available"):
        oc.loops(space["program"])
    with pytest.raises(ArgumentError, match=r"test_loops_syntax.py:\d+:1: a lambda has no loops"):
        oc.loops(lambda a: a)
    with pytest.raises(ArgumentError, match="loops: sqrt is no plain Python function"):
        oc.loops(math.sqrt)

    async def later(a: Any) -> Any:
        return a

    with pytest.raises(ArgumentError, match="`async` functions are not taken"):
        oc.loops(later)


def test_wrong_arguments_are_refused_as_by_the_function() -> None:
    with pytest.raises(TypeError, match="missing a required argument: 'b'"):
        sum_of_rows(np.zeros((2, 3)))


# -- right programs --------------------------------------------------------------------------------------------


@oc.loops
def sum_of_rows(a: Any, b: Any) -> Any:
    rows, columns = a.shape
    for i in range(rows):
        for j in range(columns):
            b[i] += a[i, j]
    return b


@oc.loops
def triangle(a: Any) -> Any:
    n = len(a)
    for i in range(n - 1, 0, -2):
        for j in range(i, n):
            a[i, j] = a[j - 1, i] * i
    return a


@oc.loops
def guarded(a: Any) -> Any:
    for i in range(10):
        if i < 3 or i == 5:
            a[i] = 1.0
        elif not i <= 7:
            a[i] = 2.0
        else:
            a[i] = 3.0
    return a


@oc.loops
def local(a: Any, h: Any) -> Any:
    scale = 0.5 / h
    for i in range(len(a)):
        k = len(a) - 1 - i
        t = a[i] * scale
        t += a[k]
        a[i] = t * t
    return a


@oc.loops
def extremes(d: Any, e: Any) -> Any:
    for i in range(1, 4):
        d[i] = min(d[i], d[i - 1] + 1)
        e[i] = np.maximum(2, e[i])
        e[0] = max(d[i], e[0])
        d[i] = min(d[i], d[i] * 2)
    return d, e


@oc.loops
def typed(a: Any, b: Any) -> Any:
    for i in range(4):
        a[i] += b[i]
        b[i] -= a[i]
        b[i] *= 2
        b[i] /= 2
    return a, b


@oc.loops
def made(a: Any, kind: Any = "f4") -> Any:
    """New arrays of NumPy's and outcore's functions."""
    b = np.empty(a.shape, dtype=kind)
    c = oc.full_like(a, 7)
    d = np.zeros((len(a), 2), np.int16)
    e = oc.ones(3)
    for i in range(3):
        b[i] = c[i] + e[i] + d[i, 1]
    return b, c, d


@pytest.fixture
def leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_core, "loop_leaf", loop_leaf, raising=False)


def counter(depth: int) -> Affine:
    return Affine.counter(depth)


def only(items: tuple[Any, ...]) -> Any:
    (item,) = items
    return item


def test_a_reduction_is_a_nest_with_an_update() -> None:
    tree = sum_of_rows.tree(np.ones((2, 3)), np.zeros(2))
    rows = only(tree.items)
    assert (rows.extent, rows.divisor) == (Affine(1), 1)
    columns = only(rows.items)
    assert (columns.extent, columns.divisor) == (Affine(2), 1)
    block = only(columns.items)
    assert (block.guards, block.registers) == ((), 0)
    step = only(block.assignments)
    assert step.target == ElementTarget(1, Update.ADD, (counter(0),))
    assert step.leaves == (ElementLeaf(0, (counter(0), counter(1))),)
    assert step.value.dtype == np.float64
    inputs, words, nodes = encoded(tree)
    assert [tuple(part.shape) for part in inputs] == [(2, 3), (2,)]
    loops = [0, 0, 0, 1, 0, 1, 1, 0, 0, 0, 2, 0, 1, 1]  # two loops from 0, one item each
    target, leaf = [1, 1, 1, 1, 0, 1, 0, 1], [0, 0, 2, 0, 1, 0, 1, 0, 1, 1, 1]
    assert words == [2, 1, *loops, 1, 0, 0, 1, *target, 1, *leaf]
    assert len(nodes) == 2


def test_ranges_are_normalized_and_variables_substituted() -> None:
    tree = triangle.tree(np.ones((6, 6)))
    outer = only(tree.items)
    assert (outer.extent, outer.divisor) == (Affine(4), 2)  # 5, 3, 1
    inner = only(outer.items)
    assert inner == CountedLoop(5 - 2 * counter(0), 2 * counter(0), 1, inner.items)
    step = only(only(inner.items).assignments)
    i = 5 - 2 * counter(0)
    assert step.target == ElementTarget(0, Update.STORE, (i, i + counter(1)))
    assert step.leaves == (ElementLeaf(0, (i + counter(1) - 1, i)), IndexLeaf(i))


def test_branches_are_disjoint_conjunctions() -> None:
    blocks = only(guarded.tree(np.zeros(10)).items).items
    assert all(isinstance(block, GuardedBlock) for block in blocks)
    for i in range(10):
        runs = [block for block in blocks if all(guard.range_over([(i, i)])[0] >= 0 for guard in block.guards)]
        value = only(only(tuple(runs)).assignments).value.compute()
        assert value == (1.0 if i < 3 or i == 5 else 2.0 if i > 7 else 3.0), i
    assert [len(block.assignments) for block in blocks] == [1] * len(blocks)


def test_local_numbers_are_registers_and_integers_are_not() -> None:
    block = only(only(local.tree(np.ones(4), 2).items).items)
    assert block.registers == 2
    first, second, store = block.assignments
    assert (first.target, second.target) == (RegisterTarget(0), RegisterTarget(1))
    assert first.leaves == (ElementLeaf(0, (counter(0),)),)
    assert second.leaves == (RegisterLeaf(0), ElementLeaf(0, (3 - counter(0),)))
    assert store.leaves == (RegisterLeaf(1),)
    assert store.target == ElementTarget(0, Update.STORE, (counter(0),))


def test_minima_and_maxima_of_the_target_are_updates() -> None:
    below, above, across, itself = only(only(extremes.tree(np.ones(4), np.ones(4)).items).items).assignments
    at = (counter(0) + 1,)
    assert below.target == ElementTarget(0, Update.MINIMUM, at)
    assert below.leaves == (ElementLeaf(0, (counter(0),)),)
    assert above.target == ElementTarget(1, Update.MAXIMUM, at)
    assert above.leaves == ()
    assert across.target == ElementTarget(1, Update.MAXIMUM, (Affine(0),))
    # A value that reads the element it would update is stored.
    assert itself.target == ElementTarget(0, Update.STORE, at)


def test_updates_in_a_wider_type_read_their_target() -> None:
    narrow, wide = np.ones(4, np.float32), np.ones(4)
    first, second, third, fourth = only(only(typed.tree(narrow, wide).items).items).assignments
    assert first.target == ElementTarget(0, Update.STORE, (counter(0),))
    assert {leaf.array for leaf in first.leaves} == {0, 1}
    assert first.value.dtype == np.float32
    assert second.target == ElementTarget(1, Update.ADD, (counter(0),))
    assert second.value.dtype == np.float64
    assert third.target == ElementTarget(1, Update.MULTIPLY, (counter(0),))
    assert fourth.target == ElementTarget(1, Update.STORE, (counter(0),))
    # Sums of integers wrap around alike in every width.
    first, *_ = only(only(typed.tree(narrow.astype("i2"), wide.astype("i8")).items).items).assignments
    assert first.target == ElementTarget(0, Update.ADD, (counter(0),))
    assert first.value.dtype == np.int16


def test_new_arrays_have_the_shapes_and_types_of_their_calls() -> None:
    tree = made.tree(np.ones(3, np.float32))
    assert [(array.shape, array.dtype.name) for array in tree.arrays] == [
        *(((3,), "float32"), ((3,), "float32"), ((3,), "float32"), ((3, 2), "int16"), ((3,), "float64")),
    ]
    assert [array.compute().max() for array in tree.arrays] == [1, 0, 7, 0, 1]
    inputs, words, _ = encoded(tree)
    assert len(inputs) == words[0] == 4  # `a` is neither read nor written
    assert made.tree(np.ones(3), kind="i8").arrays[1].dtype == np.int64


def test_equal_leaves_of_a_statement_are_one() -> None:
    @oc.loops
    def squares(a: Any) -> Any:
        for i in range(3):
            a[i] = a[i] * a[i] + i * (i + 0 + a[i])
        return a

    step = only(only(only(squares.tree(np.ones(3)).items).items).assignments)
    assert step.leaves == (ElementLeaf(0, (counter(0),)), IndexLeaf(counter(0)))
    assert len(step.stand_ins) == 2


def test_loops_and_branches_that_never_run_are_left_out() -> None:
    @oc.loops
    def nothing(a: Any, n: Any, flag: Any) -> Any:
        for i in range(n):
            a[i] = 1.0
        for i in range(len(a)):
            if i > len(a):
                a[i + 100] = 1.0
        if flag:
            a[0] = 1.0
        return a

    assert nothing.tree(np.ones(3), -2, False).items == ()
    with session():
        np.testing.assert_array_equal(nothing(np.ones(3), 0, 0).compute(), np.ones(3))
    assert len(nothing.tree(np.ones(3), 2, True).items) == 2


def test_bounds_count_triangles_steps_and_guards() -> None:
    @oc.loops
    def narrow(a: Any, b: Any, n: Any) -> Any:
        for i in range(n):
            for j in range(i, 4):
                a[i] += b[j - i]
        for i in range(0, 6, 2):
            b[i] = 1.0
        for i in range(n):
            if 1 <= i < 5:
                b[i] = a[i - 1]
        for i in range(4):
            for j in range(1, 4, 2):
                if i >= j:
                    a[i - j] = 1.0
        for i in range(5, 1, -2):
            for j in range(i, 5):
                a[i + j - 4] = 1.0
        return a, b

    assert len(narrow.tree(np.zeros(4), np.zeros(5), 9).items) == 5


def test_equal_lazy_arrays_are_two_values() -> None:
    with session():
        first, second = oc.zeros(2), oc.zeros(2)
        rows = oc.ones((2, 3))
        np.testing.assert_array_equal(sum_of_rows(rows, first).compute(), [3.0, 3.0])

        @oc.loops
        def both(a: Any, b: Any) -> Any:
            for i in range(2):
                a[i] = b[i] + 1.0
            return a, b

        results = both(first, second)
        assert [list(part.compute()) for part in results] == [[1.0, 1.0], [0.0, 0.0]]
        with pytest.raises(ArgumentError, match="are the same array"):
            both(first, first)


def test_programs_are_named_and_pickled_as_functions_are() -> None:
    assert (made.__name__, made.__doc__) == ("made", "New arrays of NumPy's and outcore's functions.")
    assert pickle.loads(pickle.dumps(made)) is made
    assert sys.modules[__name__].made is made
    np.testing.assert_array_equal(guarded.plain(np.zeros(10))[:4], [1.0, 1.0, 1.0, 3.0])
