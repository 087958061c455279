"""Loop programs from their source: wrong ones are refused with line and reason, right ones become the tree they say."""

from __future__ import annotations

import math
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.loop_tree import interpreted, loop_leaf
from support.loop_wrong import WRONG, written
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


@pytest.fixture(autouse=True)
def by_the_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trees are held here, and their elements by the core's own tests."""
    interpreted(monkeypatch)


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
    inputs, words, nodes, _ = encoded(tree)
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
    inputs, words, _, _ = encoded(tree)
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
