"""A list schedule over the tiles of a loop program: of the ready tasks the one that brings in the fewest bytes.

Tiles take the place of disks, and a ready task is judged by what it brings in, then by how much memory it leaves taken
(tiles of which no task is left go), then by what it shares. Zeros and copies run right before the task that first uses
them, never on their own.
"""

from __future__ import annotations

from collections import OrderedDict
from itertools import islice

from benchmarks.loop_tasks import LoopProgram, dependences

COMPARED = 200  # ready tasks that are compared, at least
COMPARED_OF_TILE = 16
SHARES = (0.3, 0.5, 0.7, 0.9)  # of memory that the schedule counts on


def list_orders(program: LoopProgram) -> dict[str, list[int]]:
    """The schedules for several shares of memory."""
    whole, parts = program.units()
    orders = {}
    for share in SHARES:
        units = _Schedule(whole, int(share * program.memory)).run()
        orders[f"list, {100 * share:.0f} % of memory"] = [task for unit in units for task in parts[unit]]
    return orders


class _Schedule:
    def __init__(self, program: LoopProgram, memory: int) -> None:
        self.program = program
        self.memory = memory
        before = dependences(program)
        self.missing = [len(waits) for waits in before]
        self.later: list[list[int]] = [[] for _ in before]
        for task, waits in enumerate(before):
            for other in waits:
                self.later[other].append(task)
        self.left = [0] * len(program.tiles)  # tasks that will use a tile
        for of in program.tasks:
            for tile in of.touched:
                self.left[tile] += 1
        self.resident: OrderedDict[int, None] = OrderedDict()
        self.held = 0
        self.ready: set[int] = set()
        self.ready_of: list[set[int]] = [set() for _ in program.tiles]

    def run(self) -> list[int]:
        order: list[int] = []
        for task, count in enumerate(self.missing):
            if not count:
                self._add(task)
        while self.ready:
            task = min(self._candidates(), key=self._cost, default=None)
            order.append(min(self.ready) if task is None else task)
            self._take(order[-1])
        return order

    def _add(self, task: int) -> None:
        self.ready.add(task)
        for tile in self.program.tasks[task].touched:
            self.ready_of[tile].add(task)

    def _candidates(self) -> list[int]:
        """Ready tasks of tiles at hand, those used last first."""
        found: list[int] = []
        for tile in reversed(self.resident):
            found += islice(sorted(self.ready_of[tile]), COMPARED_OF_TILE)
            if len(found) > COMPARED:
                break
        return found

    def _cost(self, task: int) -> tuple[int, int, int, int]:
        brought = taken = shared = 0
        of = self.program.tasks[task]
        for tile in of.touched:
            frame = self.program.tiles[tile].frame
            is_here = tile in self.resident
            shared += frame * is_here
            brought += frame * (not is_here and tile not in of.created)
            taken += frame * (not is_here) - frame * (self.left[tile] == 1)
        return brought, taken, -shared, task

    def _take(self, task: int) -> None:
        self.ready.discard(task)
        for tile in self.program.tasks[task].touched:
            self.ready_of[tile].discard(task)
            self.left[tile] -= 1
            self._touch(tile)
        while self.held > self.memory:
            self._drop(next(iter(self.resident)))
        for other in self.later[task]:
            self.missing[other] -= 1
            if not self.missing[other]:
                self._add(other)

    def _touch(self, tile: int) -> None:
        if tile not in self.resident:
            self.resident[tile] = None
            self.held += self.program.tiles[tile].frame
        self.resident.move_to_end(tile)
        if not self.left[tile]:
            self._drop(tile)

    def _drop(self, tile: int) -> None:
        del self.resident[tile]
        self.held -= self.program.tiles[tile].frame
