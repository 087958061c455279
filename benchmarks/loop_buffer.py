"""A buffer over tiles, simulated exactly: tiles that an order of tasks brings in and writes back, and disks at work.

Two policies. "lru" is the paper's: the tile used longest ago goes, and is written if it is dirty, dead or not; at the
end dirty tiles of results are written. "farthest" knows the order: the tile with the farthest next use goes, and
tiles that nothing uses again leave at once, written only if they are results.
"""

from __future__ import annotations

import heapq
import itertools
from collections import OrderedDict
from dataclasses import dataclass, field

from benchmarks.loop_tasks import ROUND_ROBIN, Layout, LoopProgram, Order, task_maps

NEVER = 1 << 60


@dataclass
class Traffic:
    """What a buffer moved: tiles brought in, bytes, and how the disks worked."""

    read: int = 0
    written: int = 0
    entered: int = 0  # times that a tile came into the buffer, read or new
    tiles: int = 0
    disks: list[float] = field(default_factory=list)
    switches: int = 0
    busiest: float = 0  # bytes of the busiest disk, summed over tasks

    @property
    def moved(self) -> int:
        return self.read + self.written

    @property
    def visits(self) -> float:
        """Mean times that a tile came into the buffer (figure 17)."""
        return self.entered / max(self.tiles, 1)

    @property
    def idle(self) -> float:
        """The share of disks' time without work, if a task waits for its busiest disk."""
        return 1 - sum(self.disks) / (len(self.disks) * self.busiest) if self.busiest else 0.0


class _Meter:
    """Counts transfers by disk, task by task."""

    def __init__(self, program: LoopProgram, layout: Layout) -> None:
        self.traffic = Traffic(disks=[0.0] * layout.disks)
        self.maps = layout.maps(program)
        self.now: dict[int, float] = {}
        self.busy = 0

    def count(self, tile: int, transferred: int) -> None:
        mask = self.maps[tile]
        share = transferred / mask.bit_count()
        while mask:
            disk = (mask & -mask).bit_length() - 1
            self.now[disk] = self.now.get(disk, 0.0) + share
            mask &= mask - 1

    def end_task(self) -> None:
        if not self.now:
            return
        busy = sum(1 << disk for disk in self.now)
        self.traffic.switches += (busy ^ self.busy).bit_count()
        self.traffic.busiest += max(self.now.values())
        self.busy = busy
        for disk, count in self.now.items():
            self.traffic.disks[disk] += count
        self.now = {}


class Buffer:
    """Tiles in memory. A policy says which one goes."""

    def __init__(self, program: LoopProgram, memory: int, layout: Layout) -> None:
        self.tiles = program.tiles
        self.memory = memory
        self.meter = _Meter(program, layout)
        self.traffic = self.meter.traffic
        self.resident: OrderedDict[int, None] = OrderedDict()
        self.held = 0
        self.dirty: set[int] = set()
        self.seen: set[int] = set()

    def write(self, tile: int) -> None:
        self.dirty.discard(tile)
        self.traffic.written += self.tiles[tile].write
        self.meter.count(tile, self.tiles[tile].write)

    def drop(self, tile: int) -> None:
        del self.resident[tile]
        self.held -= self.tiles[tile].frame

    def enter(self, tile: int, is_new: bool) -> None:
        self.resident[tile] = None
        self.held += self.tiles[tile].frame
        self.traffic.entered += 1
        self.seen.add(tile)
        if not is_new:
            self.traffic.read += self.tiles[tile].read
            self.meter.count(tile, self.tiles[tile].read)

    def finish(self) -> Traffic:
        for tile in sorted(self.dirty):
            if self.tiles[tile].result:
                self.write(tile)
                self.meter.end_task()
        self.traffic.tiles = len(self.seen)
        return self.traffic


def lru(program: LoopProgram, order: Order, memory: int | None = None, layout: Layout = ROUND_ROBIN) -> Traffic:
    """What an order moves through a buffer that lets the least recently used tile go."""
    buffer = Buffer(program, memory or program.memory, layout)
    for number in order:
        task = program.tasks[number]
        touched, new = task.touched, set(task.created)
        for tile in touched:
            if tile in buffer.resident:
                buffer.resident.move_to_end(tile)
        for tile in touched:
            if tile in buffer.resident:
                continue
            _make_room(buffer, tile, set(touched))
            buffer.enter(tile, tile in new)
        buffer.dirty.update(task.written)
        buffer.meter.end_task()
    return buffer.finish()


def _make_room(buffer: Buffer, tile: int, pinned: set[int]) -> None:
    while buffer.held + buffer.tiles[tile].frame > buffer.memory:
        victim = next((other for other in buffer.resident if other not in pinned), None)
        if victim is None:
            raise MemoryError("a task needs more than the buffer holds")
        if victim in buffer.dirty:
            buffer.write(victim)
        buffer.drop(victim)


def farthest(program: LoopProgram, order: Order, memory: int | None = None, layout: Layout = ROUND_ROBIN) -> Traffic:
    """What an order moves through a buffer that lets the tile with the farthest next use go."""
    buffer = Buffer(program, memory or program.memory, layout)
    uses = next_uses(program, order)
    due: dict[int, int] = {}
    heap: list[tuple[int, int]] = []
    for number in order:
        task = program.tasks[number]
        touched, new = task.touched, set(task.created)
        for tile in touched:
            due[tile] = uses[tile].pop()
        for tile in touched:
            if tile not in buffer.resident:
                _let_farthest_go(buffer, tile, set(touched), heap, due)
                buffer.enter(tile, tile in new)
        buffer.dirty.update(task.written)
        for tile in touched:
            if due[tile] == NEVER:
                _retire(buffer, tile)
            else:
                heapq.heappush(heap, (-due[tile], tile))
        buffer.meter.end_task()
    return buffer.finish()


def next_uses(program: LoopProgram, order: Order) -> dict[int, list[int]]:
    """The next uses of each tile, those of the first use last in the list."""
    uses: dict[int, list[int]] = {}
    for position in range(len(order) - 1, -1, -1):
        for tile in program.tasks[order[position]].touched:
            uses.setdefault(tile, [NEVER]).append(position)
    for later in uses.values():
        later.pop()  # the first use itself
    return uses


def _let_farthest_go(
    buffer: Buffer, tile: int, pinned: set[int], heap: list[tuple[int, int]], due: dict[int, int]
) -> None:
    while buffer.held + buffer.tiles[tile].frame > buffer.memory:
        if not heap:
            raise MemoryError("a task needs more than the buffer holds")
        when, victim = heapq.heappop(heap)
        if victim in buffer.resident and victim not in pinned and -when == due[victim]:
            if victim in buffer.dirty:
                buffer.write(victim)
            buffer.drop(victim)


def _retire(buffer: Buffer, tile: int) -> None:
    if tile in buffer.dirty:
        if buffer.tiles[tile].result:
            buffer.write(tile)
        buffer.dirty.discard(tile)
    buffer.drop(tile)


def hamming(program: LoopProgram, order: Order, layout: Layout = ROUND_ROBIN) -> int:
    """The sum of distances between maps of successive tasks (figure 6), those that only create left out."""
    maps = task_maps(program, layout)
    used = [maps[task] for task in order if not program.tasks[task].created]
    return sum((here ^ there).bit_count() for here, there in itertools.pairwise(used))
