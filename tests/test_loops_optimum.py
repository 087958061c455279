"""Nests of few tasks in little memory: the order chosen moves hardly more bytes than the best of all legal ones does.

The best order is that with the best tiles leaving, and holds the tiles of one task at a time. Sessions come as near to
that as they can, with one thread and a window of one task. Memory is a number of tiles and some room for workspaces.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from itertools import count, islice
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import pytest
from support.loop_nests import TILE_BYTES, DrawnNests, chunked, drawn_nests
from support.loop_orders import (
    Planned,
    TaskTiles,
    TileFacts,
    Traffic,
    conflicts,
    least_traffic,
    planned,
    traffic_in_order,
)
from support.running import session
from support.sizes import sized

import outcore as oc
from outcore.errors import ArgumentError, MemoryLimitError

TASKS_MAX = 12
MEAN_MOST, MOST = 1.05, 1.25
# Room beside whole tiles, and what a program takes besides.
ROOM, BESIDE = 0.3, 16 << 10


class Judged(NamedTuple):
    """A program with the bytes that it moves, and those of the best order; `fixed` are those of all orders."""

    nests: DrawnNests
    program: Planned
    pool_tiles: int
    moved: int
    fixed: int
    least: Traffic

    @property
    def ratio(self) -> float:
        return (self.moved + self.fixed) / (self.least.bytes + self.fixed)

    @property
    def ratio_of_order(self) -> float:
        """As `ratio`, where the best tiles leave in the order chosen too, and no window holds tiles."""
        return (traffic_in_order(self.program, self.program.tasks) + self.fixed) / (self.least.bytes + self.fixed)

    def __str__(self) -> str:
        text = self.program.in_text_order()
        best = [str(text[at].number) for at in self.least.order]
        chosen = [str(task.number) for task in self.program.tasks]
        return (
            f"{self.ratio:.3f} of the least ({self.ratio_of_order:.3f} by its order) in {self.pool_tiles} tiles\n"
            f"{self.nests.source}chosen: {', '.join(chosen)}\nbest: {', '.join(best)}\n"
        )


def judge(folder: Path, nests: DrawnNests, pool_tiles: int) -> Judged | None:
    """A program in the least memory from so many tiles on; None where everything fits, or there is too much to do."""
    try:
        function = oc.loops(nests.function)
    except ArgumentError:
        return None  # such as one that reads nothing of its arguments
    for tiles in range(pool_tiles, pool_tiles + 6):
        limit = int((tiles + ROOM) * TILE_BYTES / 0.95) + BESIDE
        with session(folder, pool_limit=limit, threads=1, window=1):
            arguments = [oc.open(chunked(folder, of, number)) for number, of in enumerate(nests.tiles)]
            results = function(*arguments)
            targets = {str(folder / f"out{number}.zarr"): result for number, result in enumerate(results)}
            try:
                said, program = oc.explain(targets), planned(targets)
            except MemoryLimitError:
                continue
        touched = {tile for task in program.tasks for tile in task.read + task.written}
        tasks = sum(bool(task.read or task.updated) for task in program.tasks)
        is_short = sum(program.tiles[tile].frame_bytes for tile in touched) > program.memory
        reads = any(program.tiles[tile].is_there for tile in touched)
        if not (reads and is_short and 3 <= tasks <= TASKS_MAX):
            return None
        moved = said.bytes_read + said.bytes_spilled
        least = least_traffic(program, moved)
        assert least is not None, f"less is moved than is possible:\n{nests.source}"
        return Judged(nests, program, tiles, moved, said.bytes_written - said.bytes_spilled, least)
    return None


def _judged(folder: Path) -> Iterator[Judged]:
    for seed in count():
        pick = random.Random(seed).choice
        judged = judge(folder, drawn_nests(pick), pick([2, 2, 3, 3, 4, 5, 6]))
        if judged is not None:
            yield judged


@pytest.fixture(scope="module")
def all_judged(shared: Path) -> list[Judged]:
    return list(islice(_judged(shared), sized(40, 500)))


def test_orders_of_few_tasks_move_hardly_more_than_the_best_of_all(all_judged: list[Judged]) -> None:
    worst = sorted(all_judged, key=lambda judged: judged.ratio, reverse=True)
    mean = fmean(judged.ratio for judged in all_judged)
    by_order = fmean(judged.ratio_of_order for judged in all_judged)
    print(f"{mean:.4f} of the least in the mean, {by_order:.4f} by the order alone; the worst:", *worst[:5], sep="\n")
    assert mean <= MEAN_MOST
    assert worst[0].ratio <= MOST, str(worst[0])


def test_no_order_is_worth_less_than_the_tiles_that_leave_make_of_it(all_judged: list[Judged]) -> None:
    """A replay of the order chosen moves no more than is forecast, and no less than the best order."""
    for judged in all_judged:
        replayed = traffic_in_order(judged.program, judged.program.tasks)
        assert judged.least.bytes <= replayed <= judged.moved, str(judged)


# The judge itself: on tasks and tiles that are drawn, beside every order and every choice of tiles.


def _drawn_tasks(seed: int) -> Planned:
    draw = random.Random(seed)
    sizes = draw.choice([[4], [4], [4, 8], [3, 4, 8]])
    frames = [draw.choice(sizes) for _ in range(draw.choice([4, 5, 6]))]
    there = [draw.random() < 0.5 for _ in frames]
    tiles = [TileFacts(0, frame, frame, 0, is_there) for frame, is_there in zip(frames, there, strict=True)]
    tasks, made = [], set()
    for number in range(draw.choice([3, 4, 5])):
        touched = draw.sample(range(len(tiles)), draw.choice([1, 2, 2, 3]))
        written = [tile for tile in touched[:1] if not there[tile]]
        read = [tile for tile in touched if tile not in written and (there[tile] or tile in made)]
        fresh = [tile for tile in written if tile not in made]
        made.update(written)
        tasks.append(TaskTiles(0, number, None, None, read, fresh, [tile for tile in written if tile not in fresh]))
    least = max(sum(frames[tile] for tile in task.read + task.written) for task in tasks)
    return Planned(least + draw.choice([0, 0, 3, 4]), tiles, tasks)


def _least_by_trial(program: Planned) -> int:
    """Every order, and before each task every set of tiles leaves that makes room."""
    tasks, tiles = program.tasks, program.tiles
    before: list[set[int]] = [set() for _ in tasks]
    for earlier, later, _ in conflicts(tasks):
        before[later].add(earlier)

    def bytes_of(some: frozenset[int]) -> int:
        return sum(tiles[tile].frame_bytes for tile in some)

    @cache
    def least(done: frozenset[int], resident: frozenset[int], dirty: frozenset[int]) -> float:
        found = 0.0 if len(done) == len(tasks) else float("inf")
        made = {tile for task in done for tile in tasks[task].written}
        for task in {*range(len(tasks))} - done:
            touched = frozenset(tasks[task].read + tasks[task].written)
            if before[task] - done:
                continue
            others = sorted(resident - touched)
            for choice in range(1 << len(others)):
                leaves = frozenset(tile for at, tile in enumerate(others) if choice >> at & 1)
                if bytes_of(resident - leaves | touched) > program.memory:
                    continue
                behind = done | {task}
                needed = {tile for at in {*range(len(tasks))} - behind for tile in tasks[at].read + tasks[at].written}
                brought = frozenset(tile for tile in touched - resident if tiles[tile].is_there or tile in made)
                moved = bytes_of(brought) + bytes_of(leaves & dirty)
                kept = (resident - leaves | touched) & needed
                found = min(found, moved + least(behind, kept, (dirty | {*tasks[task].written}) & kept))
        return found

    return int(least(frozenset(), frozenset(), frozenset()))


def test_the_least_is_that_of_all_orders_and_choices_tried() -> None:
    for seed in range(sized(300, 3000)):
        program = _drawn_tasks(seed)
        least = least_traffic(program, 1 << 40)
        assert least is not None
        assert least.bytes == _least_by_trial(program), program
        order = [program.in_text_order()[at] for at in least.order]
        rest = [task for task in program.tasks if task not in order]
        assert all(not task.read and not task.updated for task in rest)
        assert traffic_in_order(program, program.tasks) >= least.bytes


def test_a_tile_that_is_written_and_leaves_is_moved_twice() -> None:
    """One frame for two tiles, and two tasks for each: in turn both leave and come back, else none."""
    tiles = [TileFacts(0, 4, 4, 0, False)] * 2
    tasks = [
        TaskTiles(0, 0, None, None, [], [0], []),
        TaskTiles(0, 1, None, None, [], [], [0]),
        TaskTiles(0, 2, None, None, [], [1], []),
        TaskTiles(0, 3, None, None, [], [], [1]),
    ]
    program = Planned(4, tiles, [tasks[0], tasks[2], tasks[1], tasks[3]])
    assert traffic_in_order(program, program.tasks) == 16
    least = least_traffic(program, 99)
    assert least is not None
    assert (least.bytes, sorted(least.order)) == (0, [1, 3])
