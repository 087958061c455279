"""Several loop programs at once through one buffer (figure 24 of Kandemir, Son and Karakoy, FAST 2008)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest

from benchmarks.loop_buffer import Traffic, lru
from benchmarks.loop_schedules import order_of, threads_order
from benchmarks.loop_tasks import LoopProgram, Order, Task, Tile

PROGRAMS_II = ("sar", "hf", "apsi", "astro")


def mixed(programs: Sequence[LoopProgram], orders: Sequence[Order]) -> Traffic:
    """What programs move that run a task each in turn, through the memory of the one that has most."""
    tiles: list[Tile] = []
    tasks: list[Task] = []
    numbered: list[list[int]] = []
    for program, order in zip(programs, orders, strict=True):
        arrays = max((tile.array for tile in tiles), default=-1) + 1
        numbered.append([len(tasks) + task for task in order])
        tasks += [_moved(task, len(tiles)) for task in program.tasks]
        tiles += [replace(tile, array=tile.array + arrays) for tile in program.tiles]
    rounds = zip_longest(*numbered)
    order = [task for turn in rounds for task in turn if task is not None]
    return lru(LoopProgram(max(program.memory for program in programs), tiles, tasks, []), order)


def _moved(task: Task, by: int) -> Task:
    return Task(task.nest, *(tuple(tile + by for tile in part) for part in (task.read, task.created, task.updated)))


def parallel_mix(program: LoopProgram, version: str) -> list[int]:
    """A version on two threads: collective for disk maps; otherwise threads take the tasks of one order in turn."""
    if version == "disk-maps":
        return threads_order(program, 2, is_collective=True)
    return order_of(program, version)
