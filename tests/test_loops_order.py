"""The orders in which tasks of loop programs run: every task once, and of tasks that touch one tile those of which one
writes in the order of the text."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from support.loop_fixed import FIXED
from support.loop_orders import Planned, conflicts, planned
from support.loop_runs import ROOM, lazy, stored
from support.loop_sources import drawn_program
from support.running import session
from support.sizes import sized

import outcore as oc
from outcore.errors import MemoryLimitError


def assert_keeps_the_text(program: Planned) -> None:
    text = program.in_text_order()
    place = {(task.producer, task.number): at for at, task in enumerate(program.tasks)}
    assert len(place) == len(program.tasks), "a task runs twice"
    for producer in {task.producer for task in text}:
        numbers = [task.number for task in text if task.producer == producer]
        assert numbers == list(range(len(numbers))), "a task is left out"
    at_of = [place[task.producer, task.number] for task in text]
    for earlier, later, tile in conflicts(text):
        assert at_of[earlier] < at_of[later], f"{text[later]} comes before {text[earlier]}, and both touch {tile}"
    made = {tile for tile, facts in enumerate(program.tiles) if facts.is_there}
    for task in program.tasks:
        # Two arrays that are only read may be one.
        assert len({*task.written} - {*task.read}) == len(task.written), f"{task} names a tile twice"
        assert made.issuperset(task.read + task.updated), f"{task} takes a tile that nothing has made"
        assert made.isdisjoint(task.created), f"{task} makes a tile that is there"
        made.update(task.created)
    results = {tile for tile, facts in enumerate(program.tiles) if facts.result_bytes}
    assert made >= results, "a result is not made"


def planned_within(folder: Path, function: Any, arguments: list[Any], limits: list[int]) -> list[Planned]:
    """The programs of a call within several limits, or the least above each that works."""
    programs = []
    for limit in limits:
        pool_limit = limit
        while len(programs) < limits.index(limit) + 1:
            with session(folder, pool_limit=pool_limit):
                results = lazy(oc.loops(function), arguments)
                try:
                    programs.append(planned({str(folder / f"{at}.zarr"): of for at, of in enumerate(results)}))
                except MemoryLimitError as error:
                    pool_limit = max(pool_limit + 1, error.smallest or 0)
    return programs


LIMITS = [64 << 10, 320 << 10, ROOM]


@pytest.mark.parametrize("kind", ["integers", "sums"])
@settings(
    max_examples=sized(8, 200),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)
@given(data=st.data())
def test_orders_of_drawn_programs_keep_the_text(kind: str, data: st.DataObject) -> None:
    drawn = drawn_program(lambda items: data.draw(st.sampled_from(items)), kind)
    note(drawn.source)
    note(repr(drawn.arrays))
    with tempfile.TemporaryDirectory() as name:
        arguments = stored(Path(name), drawn.values(0), [of.tile for of in drawn.arrays])
        for program in planned_within(Path(name), drawn.function, arguments, LIMITS):
            assert_keeps_the_text(program)


@pytest.mark.parametrize("name", FIXED)
def test_orders_of_known_programs_keep_the_text(name: str, tmp_path: Path) -> None:
    case = FIXED[name]
    values = case.arguments(np.random.default_rng(7))
    shapes = [getattr(value, "shape", None) for value in values]
    cut = [None if shape is None else tuple(min(length, 3) for length in shape) for shape in shapes]
    for program in planned_within(tmp_path, case.function, stored(tmp_path, values, cut), LIMITS):
        assert_keeps_the_text(program)
