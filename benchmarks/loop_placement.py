"""Placement of an order in memory with a window of tasks: the steps that a run plays, for both policies.

The walk is that of `crates/engine/src/place/simulate.rs` (docs/placement.md, "Simulation"), task by task: tiles of the
tasks that may be at work stay; where nothing else is left to go, the walk waits for the oldest of those tasks. A tile
that nothing used since its task was done leaves at that place, and a write before the frame is needed stands there too.
With a window of 0 the bytes are those of `benchmarks/loop_buffer.py`.
"""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from benchmarks.loop_buffer import NEVER, next_uses
from benchmarks.loop_tasks import LoopProgram, Order

DEAD, CLEAN, DIRTY = range(3)
WEIGHTS = (1e-3, 1.0, 2.0)  # cost of leaving, as in crates/engine/src/place/policy.rs
GOLDEN = 0x9E3779B9  # the golden ratio, of 32 bits
SAMPLE_COST = 1.02  # as in crates/engine/src/place/mod.rs
PASSING = 4  # a quarter of memory at most is for tiles that pass through (docs/placement.md, rule 10)


class Action(Enum):
    READ = "read"
    ALLOCATE = "allocate"
    RUN = "run"
    WRITE = "write"
    FREE = "free"


class Step(NamedTuple):
    """An action and its tile, or the task of `RUN`."""

    action: Action
    number: int


class Rule(NamedTuple):
    """How a buffer works: its policy, tasks at work or read ahead for beside the one issued, and how many always."""

    knows_uses: bool  # the farthest next use leaves, else the least recently used tile
    window: int = 0
    always: int = 0  # tasks at work whatever they take
    is_patient: bool = False
    samples: bool = False  # of the tiles that are needed again an even sample stays, not those needed soonest


@dataclass
class Placed:
    """Steps in the order of issue, the oldest place in the order that may be at work by place, and bytes."""

    steps: list[Step] = field(default_factory=list)
    oldest: list[int] = field(default_factory=list)
    read: int = 0
    written: int = 0

    @property
    def moved(self) -> int:
        return self.read + self.written


def placed(program: LoopProgram, order: Order, rule: Rule, memory: int | None = None) -> Placed:
    """The steps of an order in memory."""
    return _Walk(program, order, rule, memory or program.memory).run()


def placed_by_default(program: LoopProgram, order: Order, rule: Rule) -> Placed:
    """The steps as the core has them: with an even sample where that costs next to nothing, since it hides reads."""
    exact = placed(program, order, rule)
    sample = placed(program, order, rule._replace(samples=True))
    return sample if sample.moved <= SAMPLE_COST * exact.moved else exact


def reach(program: LoopProgram, order: Order, rule: Rule, memory: int) -> list[int]:
    """By place in the order, the oldest place that may be at work: the window in tasks and in bytes passing through."""
    oldest: list[int] = []
    largest: list[int] = []
    before: set[int] = set()
    first = held = 0
    for place, number in enumerate(order):
        while place - first > rule.window or (place - first > rule.always and held > memory // PASSING):
            held -= largest[first]
            first += 1
        oldest.append(first)
        touched = set(program.tasks[number].touched)
        largest.append(max((program.tiles[tile].frame for tile in touched - before), default=0))
        held += largest[-1]
        before = touched
    return oldest


class _Walk:
    """Invariant: `used` is the bytes of `resident` tiles, at most `memory`."""

    def __init__(self, program: LoopProgram, order: Order, rule: Rule, memory: int) -> None:
        self.program, self.order, self.rule, self.memory = program, order, rule, memory
        self.uses = next_uses(program, order)
        self.last_writes = {tile: place for place, task in enumerate(order) for tile in program.tasks[task].written}
        self.due: dict[int, int] = {}
        self.last: dict[int, int] = {}
        self.touches: dict[int, int] = {}  # tiles by their last use, counted over all uses
        self.touched = 0
        self.resident: set[int] = set()
        self.dirty: set[int] = set()
        self.stored = {number for number, tile in enumerate(program.tiles) if tile.is_there}
        self.used = 0
        self.window: deque[tuple[int, int]] = deque()  # place and tile of each use by tasks that may be at work
        self.leaving: deque[tuple[int, int]] = deque()  # results whose writes have time: when they go, and the tile
        self.victims: list[list[tuple[int, int]]] = [[], [], []]
        self.idle_since: dict[int, int] = {}  # tiles outside of the window, by how many steps there were
        self.earlier: list[tuple[int, int]] = []  # where a step may stand, and where it stands
        self.placed = Placed(oldest=reach(program, order, rule, memory))

    def run(self) -> Placed:
        for place, oldest in enumerate(self.placed.oldest):
            while self.window and self.window[0][0] < oldest:
                self._pass()
            while self.leaving and self.leaving[0][0] <= place:
                self._free(self.leaving.popleft()[1])
            self._issue(place)
        for tile in sorted(self.dirty):
            if self.program.tiles[tile].result:
                self._write(tile)
        self._move_earlier()
        return self.placed

    def _issue(self, place: int) -> None:
        task = self.program.tasks[self.order[place]]
        for tile in task.touched:
            self.due[tile] = self.uses[tile].pop()
            self.last[tile] = place
            self.idle_since.pop(tile, None)
            self.window.append((place, tile))
        absent = [tile for tile in task.touched if tile not in self.resident]
        for tile in sorted(task.touched, key=lambda tile: tile not in self.resident):
            self.touched += 1
            self.touches[tile] = self.touched
        frames = sum(self.program.tiles[tile].frame for tile in absent)
        self._make_room(frames, place)
        self.used += frames
        for tile in absent:
            self.resident.add(tile)
            if tile in self.stored:
                self.placed.read += self.program.tiles[tile].read
            self._step(Action.READ if tile in self.stored else Action.ALLOCATE, tile)
        self.dirty.update(task.written)
        self._step(Action.RUN, self.order[place])
        if self.rule.knows_uses:
            for tile in dict.fromkeys(task.written):
                if self.last_writes[tile] == place and self.program.tiles[tile].result:
                    self._write(tile)

    def _pass(self) -> None:
        """The oldest use of the window is over."""
        place, tile = self.window.popleft()
        if self.last[tile] != place or tile not in self.resident or tile in self.idle_since:
            return
        is_computed = not self.program.tiles[tile].is_there
        if self.rule.knows_uses and self.due[tile] == NEVER and is_computed:
            self.dirty.discard(tile)
            if self.program.tiles[tile].result:
                around = place - self.placed.oldest[place]
                self.leaving.append((place + 2 * around + 1, tile))
            else:
                self._free(tile)
            return
        self.idle_since[tile] = len(self.placed.steps)
        heapq.heappush(self.victims[self._cost(tile)], (self._key(tile), tile))

    def _cost(self, tile: int) -> int:
        if not self.rule.knows_uses:
            return CLEAN
        if self.due[tile] == NEVER:
            return DEAD
        return DIRTY if tile in self.dirty else CLEAN

    def _key(self, tile: int) -> int:
        """Least for the tile that goes first: the farthest next use, or the last use longest ago."""
        if not self.rule.knows_uses:
            return self.touches[tile]
        if self.rule.samples and self.due[tile] != NEVER:
            return -(tile * GOLDEN % (1 << 32))
        return -self.due[tile]

    def _make_room(self, frames: int, place: int) -> None:
        patient = self.rule.is_patient
        while not self._has_room(frames, place, (DEAD,) if patient else (DEAD, CLEAN, DIRTY)):
            if self.leaving:
                self._free(self.leaving.popleft()[1])
            elif self.window and self.window[0][0] < place:
                self._pass()
            elif patient and self._has_room(frames, place, (DEAD, CLEAN, DIRTY)):
                return
            else:
                raise MemoryError("a task needs more than the buffer holds")

    def _has_room(self, frames: int, place: int, costs: tuple[int, ...]) -> bool:
        while self.used + frames > self.memory:
            tile = self._victim(place, costs)
            if tile is None:
                return False
            self._evict(tile)
        return True

    def _victim(self, place: int, costs: tuple[int, ...]) -> int | None:
        best: tuple[float, int] | None = None
        for cost in costs:
            heap = self.victims[cost]
            while heap and (heap[0][1] not in self.idle_since or self._key(heap[0][1]) != heap[0][0]):
                heapq.heappop(heap)
            if heap:
                score = float(-cost) if self.rule.samples else (-heap[0][0] - place) / WEIGHTS[cost]
                best = max(best, (score, cost)) if best else (score, cost)
        return heapq.heappop(self.victims[best[1]])[1] if best else None

    def _evict(self, tile: int) -> None:
        self.earlier.append((self.idle_since[tile], len(self.placed.steps)))
        if tile in self.dirty:
            self._write(tile)
        self._free(tile)

    def _write(self, tile: int) -> None:
        self.dirty.discard(tile)
        self.stored.add(tile)
        self.placed.written += self.program.tiles[tile].write
        self._step(Action.WRITE, tile)

    def _free(self, tile: int) -> None:
        self.resident.discard(tile)
        self.idle_since.pop(tile, None)
        self.used -= self.program.tiles[tile].frame
        self._step(Action.FREE, tile)

    def _step(self, action: Action, number: int) -> None:
        self.placed.steps.append(Step(action, number))

    def _move_earlier(self) -> None:
        old = self.placed.steps
        moved = {stands for _, stands in self.earlier}
        waiting = deque(sorted(self.earlier))
        steps: list[Step] = []
        for position, step in enumerate(old):
            while waiting and waiting[0][0] <= position:
                steps.append(old[waiting.popleft()[1]])
            if position not in moved:
                steps.append(step)
        self.placed.steps = steps
