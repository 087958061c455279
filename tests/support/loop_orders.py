"""The tasks of planned programs with the tiles that they touch, and the least bytes that any legal order of them moves.

A search (A*) finds it over tasks that are done, tiles in memory, and those of them of which memory holds the only copy,
by the rules of placement (docs/placement.md) for one task at work at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from heapq import heappop, heappush
from itertools import count
from typing import Any, NamedTuple

from outcore._run.run import _planned_targets


class TileFacts(NamedTuple):
    array: int
    frame_bytes: int
    read_bytes: int
    result_bytes: int
    is_there: bool


class TaskTiles(NamedTuple):
    producer: int
    number: int
    nest: int | None
    sweep: int | None
    read: list[int]
    created: list[int]
    updated: list[int]

    @property
    def written(self) -> list[int]:
        return self.created + self.updated


class Planned(NamedTuple):
    """A program: memory for tiles, its tiles, and its tasks in the order in which they run."""

    memory: int
    tiles: list[TileFacts]
    tasks: list[TaskTiles]

    def in_text_order(self) -> list[TaskTiles]:
        return sorted(self.tasks, key=lambda task: (task.producer, task.number))


def planned(targets: Mapping[str, Any]) -> Planned:
    """The only program of results that are to be stored."""
    with _planned_targets((dict(targets),), True) as (program, _):
        [(memory, tiles, tasks)] = program.accesses()
    return Planned(memory, [TileFacts(*tile) for tile in tiles], [TaskTiles(*task) for task in tasks])


def conflicts(tasks: Sequence[TaskTiles]) -> Iterator[tuple[int, int, int]]:
    """Pairs of tasks, by their places, that touch one tile which one of them writes; and that tile."""
    for later, task in enumerate(tasks):
        for earlier, before in enumerate(tasks[:later]):
            yield from ((earlier, later, tile) for tile in {*before.written} & {*task.read, *task.written})
            yield from ((earlier, later, tile) for tile in {*before.read} & {*task.written})


class Traffic(NamedTuple):
    """Bytes of reads and spills, and the places of the tasks in an order that moves no more."""

    bytes: int
    order: list[int]
    states: int


def _mask(numbers: Sequence[int]) -> int:
    return sum(1 << number for number in {*numbers})


def _members(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


class _Tasks:
    """Tasks as masks of tiles, with the earlier tasks that each waits for."""

    def __init__(self, program: Planned, tasks: Sequence[TaskTiles], waits: Sequence[int]) -> None:
        self.memory, self.tiles, self.waits = program.memory, program.tiles, waits
        self.touched = [_mask(task.read + task.written) for task in tasks]
        self.written = [_mask(task.written) for task in tasks]
        self.there = _mask([tile for tile, facts in enumerate(self.tiles) if facts.is_there])
        self.all = (1 << len(tasks)) - 1
        self.frames = cache(lambda mask: sum(self.tiles[tile].frame_bytes for tile in _members(mask)))
        self.reads = cache(lambda mask: sum(self.tiles[tile].read_bytes for tile in _members(mask)))
        self.live = cache(self._live)
        self.made = cache(self._made)
        self.ready = cache(self._ready)

    def _live(self, done: int) -> int:
        live = 0
        for task in _members(self.all & ~done):
            live |= self.touched[task]
        return live

    def _made(self, done: int) -> int:
        """Tiles that exist: those of zeros exist from the first task that touches them."""
        made = self.there
        for task in _members(done):
            made |= self.touched[task]
        return made

    def _ready(self, done: int) -> list[int]:
        return [task for task in _members(self.all & ~done) if not self.waits[task] & ~done]

    def least_ahead(self, done: int, resident: int) -> int:
        """Every tile that exists, is needed again and is not in memory is read once at least."""
        return self.reads(self.live(done) & self.made(done) & ~resident)

    def victims(self, candidates: int, bytes: int) -> Iterator[int]:
        """Sets of tiles that make so much room, none of which does without one of its tiles."""
        if bytes <= 0:
            yield 0
            return
        listed = sorted(_members(candidates), key=lambda tile: self.tiles[tile].frame_bytes, reverse=True)
        sizes = [self.tiles[tile].frame_bytes for tile in listed]

        def extend(at: int, taken: int, missing: int) -> Iterator[int]:
            # Largest first: whoever fills what is missing is the smallest, so nobody else is superfluous.
            if missing <= 0:
                yield taken
            elif sum(sizes[at:]) >= missing:
                if sizes[at]:
                    yield from extend(at + 1, taken | 1 << listed[at], missing - sizes[at])
                yield from extend(at + 1, taken, missing)

        yield from extend(0, 0, bytes)

    def is_free(self, task: int, resident: int, dirty: int) -> bool:
        """Whether nobody loses where a ready task runs at once: no frame is taken, and no copy becomes stale."""
        return not self.touched[task] & ~resident and not self.written[task] & ~dirty


State = tuple[int, int, int]


def _steps(tasks: _Tasks, state: State) -> Iterator[tuple[int, int, State]]:
    """What may come next: bytes moved, the task, and the state behind it."""
    done, resident, dirty = state
    ready = tasks.ready(done)
    free = next((task for task in ready if tasks.is_free(task, resident, dirty)), None)
    for task in ready if free is None else [free]:
        touched, written, behind = tasks.touched[task], tasks.written[task], done | 1 << task
        made = tasks.made(done)
        brought = tasks.reads(touched & ~resident & made)
        excess = tasks.frames(resident | touched) - tasks.memory
        live = tasks.live(behind)
        for victims in tasks.victims(resident & ~touched, excess):
            kept = (resident & ~victims | touched) & live
            yield (
                brought + tasks.frames(victims & dirty),
                task,
                (behind, kept, (dirty | written | touched & ~made) & kept),
            )


def _search(tasks: _Tasks, most: int, states_max: int) -> Traffic | None:
    start: State = (0, 0, 0)
    ties = count()
    reached: dict[State, tuple[int, int, State]] = {start: (0, -1, start)}
    queue = [(tasks.least_ahead(0, 0), 0, next(ties), start)]
    settled: set[State] = set()
    while queue:
        _, _, _, state = heappop(queue)
        if state in settled:
            continue
        settled.add(state)
        moved = reached[state][0]
        if state[0] == tasks.all:
            order = []
            while state != start:
                _, task, state = reached[state]
                order.append(task)
            return Traffic(moved, order[::-1], len(settled))
        if len(settled) > states_max:
            raise TimeoutError(f"more than {states_max} states")
        for bytes, task, behind in _steps(tasks, state):
            total = moved + bytes
            estimate = total + tasks.least_ahead(behind[0], behind[1])
            if estimate <= most and (behind not in reached or total < reached[behind][0]):
                reached[behind] = (total, task, state)
                heappush(queue, (estimate, -behind[0].bit_count(), next(ties), behind))
    return None


def least_traffic(program: Planned, most: int, states_max: int = 2_000_000) -> Traffic | None:
    """Bytes of reads and spills of the best of all orders that keep conflicts, if there is one that moves no more than
    `most`. The order is of places in the order of the text, without tasks that only make tiles as zeros: each of those
    comes just before the first task that touches its tile, since earlier would only take memory."""
    text = program.in_text_order()
    needed = [place for place, task in enumerate(text) if task.read or task.updated]
    made = {place: at for at, place in enumerate(needed)}
    waits = [0] * len(needed)
    for earlier, later, _ in conflicts(text):
        if earlier in made and later in made:
            waits[made[later]] |= 1 << made[earlier]
    found = _search(_Tasks(program, [text[place] for place in needed], waits), most, states_max)
    return found and found._replace(order=[needed[at] for at in found.order])


def traffic_in_order(program: Planned, order: Sequence[TaskTiles], states_max: int = 2_000_000) -> int:
    """Bytes of reads and spills of an order where the best tiles leave."""
    waits = [(1 << place) - 1 for place in range(len(order))]
    found = _search(_Tasks(program, order, waits), 1 << 62, states_max)
    assert found is not None
    return found.bytes
