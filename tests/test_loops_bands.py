"""Minima and maxima in bounds: bands, tiles by hand and cut triangles come to the elements of the plain function."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from support.loop_bands import BANDS, cholesky_of_band, drawn_bands
from support.loop_runs import ROOM, assert_close, assert_same, lazy, plain, run_within, stored
from support.loop_sources import DrawnProgram, function_of
from support.running import session
from support.sizes import covering, sized

import outcore as oc
from outcore._loops import compiling
from outcore._loops.program import CountedLoop, GuardedBlock, ProgramItem
from outcore.errors import ArgumentError


def held_against_the_plain_function(drawn: DrawnProgram, values: Sequence[Any], threads: int) -> None:
    program = oc.loops(drawn.function)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        arguments = stored(folder, values, [of.tile for of in drawn.arrays])
        with session(folder, pool_limit=ROOM, threads=threads):
            first = tuple(result.compute() for result in lazy(program, arguments))
        (assert_same if drawn.is_exact else assert_close)(first, plain(drawn.function, values))
        least = run_within(folder, program, arguments, ".npy", pool_limit=64 << 10, threads=2)
        assert_same(least.results, first)


@pytest.mark.parametrize("kind", ["integers", "elements", "sums"])
@settings(
    max_examples=sized(8, 200),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)
@given(data=st.data())
def test_drawn_bands_come_to_the_elements_of_the_plain_function(kind: str, data: st.DataObject) -> None:
    drawn = drawn_bands(lambda items: data.draw(st.sampled_from(items)), kind)
    note(drawn.source)
    note(repr(drawn.arrays))
    values = drawn.values(data.draw(st.integers(0, 9)))
    held_against_the_plain_function(drawn, values, data.draw(st.sampled_from([1, 2, 3])))


@settings(
    max_examples=sized(3, 20),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)
@given(data=st.data())
def test_drawn_bands_that_are_compiled_come_to_the_same_elements(data: st.DataObject) -> None:
    pytest.importorskip("numba", reason="numba, the optional extra outcore[jit], is not installed")
    drawn = drawn_bands(lambda items: data.draw(st.sampled_from(items)), "integers")
    note(drawn.source)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiling, "EFFORT_MIN", 0)
        held_against_the_plain_function(drawn, drawn.values(data.draw(st.integers(0, 9))), 2)


TILES = {"flat": (2, 7), "square": (4, 4), "tall": (9, 3)}


@pytest.mark.parametrize(("name", "tile", "compiled"), covering(list(BANDS), list(TILES), [False, True]))
def test_known_bands_come_to_the_bits_of_the_plain_function(
    name: str, tile: str, compiled: bool, tmp_path: Path
) -> None:
    if compiled:
        pytest.importorskip("numba", reason="numba, the optional extra outcore[jit], is not installed")
    case = BANDS[name]
    values = case.arguments(np.random.default_rng(7))
    shapes: list[Any] = [getattr(value, "shape", None) for value in values]
    cut = [None if shape is None else tuple(map(min, shape, TILES[tile][-len(shape) :])) for shape in shapes]
    arguments = stored(tmp_path, values, [None if part is None else tuple(max(n, 1) for n in part) for part in cut])
    program = oc.loops(compiled=compiled)(case.function)
    first = run_within(tmp_path, program, arguments, pool_limit=ROOM, threads=1)
    assert_same(first.results, plain(case.function, values))
    least = run_within(tmp_path, program, arguments, pool_limit=8 << 10, threads=3)
    assert_same(least.results, first.results)


def iterations(items: Sequence[ProgramItem], counters: tuple[int, ...] = ()) -> Iterator[bool]:
    """Iterations of the innermost loops: whether all guards hold."""
    box = [(counter, counter) for counter in counters]
    for item in items:
        if isinstance(item, GuardedBlock):
            yield all(guard.range_over(box)[0] >= 0 for guard in item.guards)
        else:
            assert isinstance(item, CountedLoop)
            for counter in range(item.extent.range_over(box)[0] // item.divisor + 1):
                yield from iterations(item.items, (*counters, counter))


# Bounds of a loop within one over 0..99, the iterations of both that are in the program, and those that run.
EXTENTS = {
    "max(0, i - 7), min(100, i + 8)": (100 * 15, 100 * 15 - 7 * 8),
    "min(99, i + 7), max(-1, i - 8), -1": (100 * 15, 100 * 15 - 7 * 8),
    "max(0, i - 90), min(100, i + 91)": (100 * 100, 100 * 100 - 9 * 10),
    "max(i, 50), 100": (50 * 100, 50 * 50 + 50 * 51 // 2),
    "max(i, 3), 100": (100 * 101 // 2, 97 * 3 + 97 * 98 // 2),
    "i, min(100, i + 7)": (700, 700 - 6 * 7 // 2),
    "max(0, i, i - 4), min(100, i + 200)": (100 * 101 // 2, 100 * 101 // 2),
    "min(i, 200), max(100, i)": (100 * 101 // 2, 100 * 101 // 2),
    "max(i, min(3, i + 5)), min(100, max(i, 5))": (5 * 6 // 2, 3 * 2 + 3),
    "0, min(100, max(i - 5, 0))": (94 * 95 // 2, 94 * 95 // 2),
    "-max(-i, -100), 100 - max(i, 0) + min(i, 100)": (100 * 101 // 2, 100 * 101 // 2),
}


@pytest.mark.parametrize("bounds", EXTENTS)
def test_loops_have_few_iterations_besides_those_that_run(bounds: str) -> None:
    function = function_of(
        f"def drawn(a):\n    for i in range(100):\n        for j in range({bounds}):\n            a[i, j] = i + j\n"
        "    return a\n"
    )
    tree = oc.loops(function).tree(np.zeros((100, 100)))
    runs = list(iterations(tree.items))
    assert (len(runs), sum(runs)) == EXTENTS[bounds]
    with session():
        assert_same([oc.loops(function)(np.zeros((100, 100))).compute()], plain(function, [np.zeros((100, 100))]))


def test_bounds_that_arguments_decide_have_no_guards() -> None:
    @oc.loops
    def clipped(a: Any, first: Any, last: Any) -> Any:
        for i in range(max(0, first), min(len(a), last)):
            for j in range(max(i, 0), min(i + 2, 2 * len(a))):
                a[i] = a[i] + j
        return a

    (outer,) = clipped.tree(np.zeros(9), np.int64(-3), 40).items
    assert isinstance(outer, CountedLoop)
    (inner,) = outer.items
    assert isinstance(inner, CountedLoop)
    (block,) = inner.items
    assert isinstance(block, GuardedBlock)
    assert (outer.extent.constant, inner.extent.constant, block.guards) == (8, 1, ())
    assert clipped.tree(np.zeros(9), 5, 4).items == ()


def test_minima_are_numbers_of_bodies_too() -> None:
    def distances(a: Any, b: Any, k: Any) -> Any:
        for i in range(len(a)):
            begin = max(0, i - k)
            end = min(len(a), i + k + 1)
            begin, count = begin + 1, end - begin
            for j in range(begin, end):
                a[j] = a[j] + count * b[j] - begin
            count += 1
            b[i] = min(i, k) + max(begin, count) / 2
        return a, b

    values = [np.random.default_rng(1).random(20).astype("f4") for _ in range(2)]
    with session():
        results = [result.compute() for result in oc.loops(distances)(*values, 4)]
    assert_same(results, plain(distances, [*values, 4]))


def test_numbers_are_used_after_bands_that_are_never_empty() -> None:
    def last(a: Any, r: Any, k: Any, m: Any) -> Any:
        for i in range(len(a)):
            for j in range(max(0, i - k), min(m, i + 1)):
                t = 2 * a[j]
            r[i] = t
        return r

    values = [np.arange(8.0), np.zeros(8), 1, 8]
    with session():
        assert_same([oc.loops(last)(*values).compute()], plain(last, values))
        for k, m in ((1, 5), (-1, 8)):
            with pytest.raises(ArgumentError, match="`t` may be used before it has a value"):
                oc.loops(last)(*values[:2], k, m)


def test_conditions_around_decide_bounds() -> None:
    def steps(a: Any, k: Any) -> Any:
        for i in range(len(a)):
            if i >= k:
                for j in range(max(0, i - k), len(a), 2):
                    a[i, j] = i + j
            else:
                for j in range(min(0, i - k) + k, -1, -2):
                    a[i, j] = i - j
        return a

    values = [np.zeros((9, 9)), 4]
    with session():
        assert_same([oc.loops(steps)(*values).compute()], plain(steps, values))


def test_arrays_of_small_types_hold_indices_of_a_band() -> None:
    def columns(a: Any, k: Any) -> Any:
        for i in range(len(a)):
            for j in range(max(0, i - k), min(len(a), i + k + 1)):
                a[i, j] = 2 * j
        return a

    values = [np.zeros((120, 120), np.uint8), 70]
    with session():
        assert_same([oc.loops(columns)(*values).compute()], plain(columns, values))


def product_of_matrix(a: Any, x: Any, y: Any, k: Any) -> Any:
    for i in range(len(y)):
        for j in range(max(0, i - k), min(len(x), i + k + 1)):
            y[i] += a[i, j] * x[j]
    return y


def test_tiles_off_the_band_are_not_read(tmp_path: Path) -> None:
    n, tile, k = 4000, 200, 150
    with session(tmp_path, pool_limit=64 << 20):
        oc.store({tmp_path / "a.zarr": oc.rechunk(oc.ones((n, n)), (tile, tile))})
        a = oc.open(tmp_path / "a.zarr")
        result = oc.loops(product_of_matrix)(a, np.ones(n), np.zeros(n), k)
        said = oc.explain({tmp_path / "y.npy": result})
        assert result[k : k + 3].compute().tolist() == [2 * k + 1] * 3
        factor = oc.explain({tmp_path / "l.zarr": oc.loops(cholesky_of_band)(a, k)})
    # A task is of several tiles, and reads those of its box.
    assert said.bytes_read < 0.5 * n**2 * 8
    # Tiles off the band are copied, and no more.
    assert factor.bytes_read < 1.3 * n**2 * 8


REFUSED = {
    "max(0, i - 3), 8, 2": "`max(0, i - 3)` is one number or another by loop variables, and steps of 2 go on from it",
    "min(7, i + 3), -1, -3": "`min(7, i + 3)` is one number or another by loop variables, and steps of -3 go on",
    "min(i, 3), 8": "`range(min(i, 3), 8)`: bounds by loop variables are the largest of several lower ones",
    "0, max(i, 3)": "`range(0, max(i, 3))`: bounds by loop variables are the largest of several lower ones",
    "8, min(i, 3), -1": "are the largest of several lower ones and the smallest of several upper ones",
    "max(i, min(3, 8 - i)), 8": "are the largest of several lower ones and the smallest of several upper ones",
    "0, min(i * i, 8)": "`i * i` is not affine, and a bound of a loop must be: a product of loop variables",
    "0, i * min(i, 8)": "`i * min(i, 8)` is not affine, and a bound of a loop must be: a product of loop variables",
    "0, min(a[i], 8)": "`a[i]` depends on data, and a bound of a loop must follow from loop variables",
    "0, abs(i)": "a function; the smaller or larger of two bounds is said by `min` and `max`, of integers",
    "0, min(i, 7.5)": "a function; the smaller or larger of two bounds is said by `min` and `max`, of integers",
    "0, 8, max(i, 1)": "`max(i, 1)` is not affine, and the step of a loop must be",
    "max(0, i - 3), i + 1 + max(0, 9 - i)": "subscript `j` of `a` goes from 0 to 9, and axis 0 has length 8",
}


@pytest.mark.parametrize("bounds", REFUSED)
def test_other_bounds_are_refused_with_line_and_reason(bounds: str) -> None:
    loops = f"    for i in range(8):\n        for j in range({bounds}):\n            a[j] = i\n"
    source = f"def drawn(a):\n{loops}    return a\n"
    with session(), pytest.raises(ArgumentError) as caught:
        oc.loops(function_of(source))(np.zeros(8))
    assert REFUSED[bounds] in str(caught.value)
    assert caught.value.details["line"] == (4 if "subscript" in REFUSED[bounds] else 3)


def test_bounds_of_too_many_functions_are_refused() -> None:
    sums = " + ".join(f"max(i, {of} * k)" for of in "ijmn")
    source = f"""
def drawn(a):
    for i in range(4):
        for j in range(4):
            for m in range(4):
                for n in range(4):
                    for k in range(4):
                        for p in range({sums.replace(" * k", " + k")} + max(j, m) , 4):
                            a[p] = i
    return a
"""
    with session(), pytest.raises(ArgumentError, match="minima and maxima come to more than 16 affine functions"):
        oc.loops(function_of(source))(np.zeros(99))


@pytest.mark.parametrize("statement", ["a[min(i, 3)] = 1.0", "a[i] = a[max(i - 1, 0)]"])
def test_minima_are_no_subscripts(statement: str) -> None:
    source = f"def drawn(a):\n    for i in range(len(a)):\n        {statement}\n    return a\n"
    with pytest.raises(ArgumentError, match=r":3:.*is not affine, and a subscript must be: a function; write an `if`"):
        oc.loops(function_of(source))


def test_minima_are_no_conditions_and_count_no_exchanges() -> None:
    source = "def drawn(a, b):\n    for i in range(4):\n        if i < min(i, 3):\n            a[i] = 1\n    return a\n"
    with pytest.raises(ArgumentError, match=r":3:.*`min\(i, 3\)` is not affine, and the condition of an `if` must be"):
        oc.loops(function_of(source))
    source = (
        "def drawn(a, b):\n    for i in range(8):\n        for j in range(i, min(i + 3, 8)):\n"
        "            a[j] = b[j]\n            a, b = b, a\n    return a, b\n"
    )
    with session(), pytest.raises(ArgumentError, match=r":3:.*exchanged in the loop over `j`, whose number of iter"):
        oc.loops(function_of(source))(np.zeros(8), np.ones(8))
