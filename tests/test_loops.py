"""Loop programs on tiles much smaller than their arrays: the elements of the plain function, within any limit."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from support.loop_fixed import FIXED, FixedCase
from support.loop_runs import ROOM, assert_close, assert_same, lazy, plain, run_within, stored
from support.loop_sources import drawn_program
from support.running import session
from support.sizes import alternating, sized

import outcore as oc


@pytest.mark.parametrize("kind", ["integers", "elements", "sums"])
@settings(
    max_examples=sized(5, 200),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)
@given(data=st.data())
def test_drawn_programs_come_to_the_elements_of_the_plain_function(kind: str, data: st.DataObject) -> None:
    drawn = drawn_program(lambda items: data.draw(st.sampled_from(items)), kind)
    note(drawn.source)
    note(repr(drawn.arrays))
    values = drawn.values(data.draw(st.integers(0, 9)))
    expected = plain(drawn.function, values)
    program = oc.loops(drawn.function)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        arguments = stored(folder, values, [of.tile for of in drawn.arrays])
        with session(folder, pool_limit=ROOM, threads=data.draw(st.sampled_from([1, 2, 3]))):
            first = tuple(result.compute() for result in lazy(program, arguments))
        (assert_same if drawn.is_exact else assert_close)(first, expected)
        least = run_within(folder, program, arguments, ".npy", pool_limit=64 << 10, threads=2)
        assert_same(least.results, first)
        more = run_within(folder, program, arguments, ".npy", pool_limit=least.pool_limit * 5 // 4, threads=3)
        assert_same(more.results, first)


TILES = {"flat": (2, 7), "square": (4, 4), "tall": (9, 3)}


@pytest.mark.parametrize(("name", "tile"), alternating(list(FIXED), list(TILES)))
def test_known_programs_come_to_the_elements_of_the_plain_function(name: str, tile: str, tmp_path: Path) -> None:
    case: FixedCase = FIXED[name]
    values = case.arguments(np.random.default_rng(7))
    expected = plain(case.function, values)
    cut: list[tuple[int, ...] | None] = []
    for value in values:
        lengths: Any = getattr(value, "shape", None)
        cut.append(None if lengths is None else tuple(map(min, lengths, (*TILES[tile], 3)[-len(lengths) :])))
    arguments = stored(tmp_path, values, cut)
    program = oc.loops(case.function)
    first = run_within(tmp_path, program, arguments, pool_limit=ROOM, threads=1)
    (assert_same if case.is_exact else assert_close)(first.results, expected)
    least = run_within(tmp_path, program, arguments, pool_limit=64 << 10, threads=3)
    assert_same(least.results, first.results)


@pytest.mark.parametrize("name", ["seidel", "alignment", "jacobi"])
def test_programs_whose_arrays_do_not_fit_come_to_the_same_bits(name: str, tmp_path: Path) -> None:
    case = FIXED[name]
    values = case.arguments(np.random.default_rng(8), 300)
    cut = [None if not hasattr(value, "shape") else tuple(31 for _ in value.shape) for value in values]
    arguments = stored(tmp_path, values, cut)
    program = oc.loops(case.function)
    least = run_within(tmp_path, program, arguments, pool_limit=64 << 10, threads=2)
    assert least.pool_limit < 4 * sum(result.nbytes for result in least.results)
    assert_same(least.results, plain(case.function, values))
    more = run_within(tmp_path, program, arguments, pool_limit=least.pool_limit * 3 // 2, threads=3)
    assert_same(more.results, least.results)
    assert more.figures["bytes_written"] <= least.figures["bytes_written"]
