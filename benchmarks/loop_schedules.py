"""The versions of Kandemir, Son and Karakoy (FAST 2008) as orders of the tasks of a loop program.

`as-written`: the order of the text.

`clo`: conventional locality optimization, without disks or capacities. Each nest takes the order of tasks, among that
of the text and those sorted by the tiles of one array (loop interchange over tiles), whose successive tasks share most
bytes, if dependences allow. Successive nests that share tiles are fused where both have as many tasks and the k-th
task of the second waits for none of the first behind its k-th (fusion without alignment). Tiling is there already:
tasks are tiles of iterations.

`disk-maps-nest` (DRO-L) and `disk-maps` (DRO-WP): tasks of one disk map are a locality set, cut into independent sets;
the locality set graph is scheduled by least Hamming distance, the oldest set first among equals. Within a nest, or
over the program.

Independent sets: the level of a task is that of the tasks that it waits for, one more where their maps differ; a set
are the tasks of one map and level that dependences connect. All dependences between two sets go one way, as section 3
asks, and the graph of sets has no cycle: levels do not fall along it. So nothing remains for node splitting; to cut a
locality set at a level is a split whose arrows come into the lower part, go out of the upper part, and go one way
between the two.

`threads_order`: figure 14 with p threads. A thread owns a contiguous part of each nest. A thread that ends a set takes
its ready set that is nearest to its own last map ("individual"), or by the map of the disks that all threads use now:
the largest set within that map, else the nearest ("collective"). A task lasts as long as its bytes.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from benchmarks.loop_tasks import ROUND_ROBIN, Layout, LoopProgram, dependences, task_maps

VERSIONS = ("as-written", "clo", "disk-maps-nest", "disk-maps")
Before = Sequence[Sequence[int]]


@dataclass(frozen=True)
class LocalitySets:
    """The locality set graph: tasks, map and owner of each independent set, and the sets that it waits for."""

    tasks: list[list[int]]
    maps: list[int]
    owners: list[int]
    before: list[set[int]]


def order_of(program: LoopProgram, version: str, layout: Layout = ROUND_ROBIN) -> list[int]:
    """The order of a version."""
    if version == "as-written":
        return list(range(len(program.tasks)))
    whole, parts = program.units()
    before = dependences(whole)
    if version == "clo":
        ordered = _conventional(whole, before)
    elif version == "disk-maps":
        ordered = nearest_first(locality_sets(range(len(whole.tasks)), before, task_maps(whole, layout)))
    else:
        ordered = _nest_by_nest(whole, before, task_maps(whole, layout))
    return [task for unit in ordered for task in parts[unit]]


def _nest_by_nest(program: LoopProgram, before: Before, maps: Sequence[int]) -> list[int]:
    ordered: list[int] = []
    for nest in program.nests():
        current = maps[ordered[-1]] if ordered else 0
        ordered += nearest_first(locality_sets(nest, before, maps), current)
    return ordered


def locality_sets(
    tasks: Sequence[int], before: Before, maps: Sequence[int], owner: Callable[[int], int] = lambda _: 0
) -> LocalitySets:
    """The independent sets of some tasks, which are in the order of the text."""
    inside = set(tasks)
    level: dict[int, int] = {}
    for task in tasks:
        same = (owner(task), maps[task])
        waits = [other for other in before[task] if other in inside]
        level[task] = max((level[other] + ((owner(other), maps[other]) != same) for other in waits), default=0)
    labels: dict[int, Hashable] = {task: (owner(task), maps[task], level[task]) for task in tasks}
    roots = _connected(tasks, before, labels)
    numbers = {root: number for number, root in enumerate(dict.fromkeys(roots[task] for task in tasks))}
    sets = LocalitySets([[] for _ in numbers], [0] * len(numbers), [0] * len(numbers), [set() for _ in numbers])
    for task in tasks:
        number = numbers[roots[task]]
        sets.tasks[number].append(task)
        sets.maps[number], sets.owners[number] = maps[task], owner(task)
        sets.before[number] |= {numbers[roots[other]] for other in before[task] if other in inside} - {number}
    return sets


def _connected(tasks: Sequence[int], before: Before, labels: dict[int, Hashable]) -> dict[int, int]:
    """The first task of the component of each, among tasks of equal labels."""
    parent = {task: task for task in tasks}

    def root(task: int) -> int:
        while parent[task] != task:
            parent[task] = parent[parent[task]]
            task = parent[task]
        return task

    for task in tasks:
        for other in before[task]:
            if labels.get(other) == labels[task]:
                here, there = sorted((root(task), root(other)))
                parent[there] = here
    return {task: root(task) for task in tasks}


class _Ready:
    """Sets whose predecessors have run, by map."""

    def __init__(self, sets: LocalitySets) -> None:
        self.sets = sets
        self.missing = [len(before) for before in sets.before]
        self.later: list[list[int]] = [[] for _ in sets.tasks]
        for number, before in enumerate(sets.before):
            for other in before:
                self.later[other].append(number)
        self.by_map: list[dict[int, list[int]]] = [{} for _ in range(max(sets.owners, default=0) + 1)]
        for number, count in enumerate(self.missing):
            if not count:
                self._add(number)

    def _add(self, number: int) -> None:
        found = self.by_map[self.sets.owners[number]].setdefault(self.sets.maps[number], [])
        heapq.heappush(found, number)

    def done(self, number: int) -> None:
        for other in self.later[number]:
            self.missing[other] -= 1
            if not self.missing[other]:
                self._add(other)

    def take(self, owner: int, cost: Callable[[int], tuple[int, ...]]) -> int | None:
        """The oldest set of the map of least cost."""
        waiting = self.by_map[owner]
        if not waiting:
            return None
        chosen = min(waiting, key=lambda mask: (cost(mask), waiting[mask][0]))
        number = heapq.heappop(waiting[chosen])
        if not waiting[chosen]:
            del waiting[chosen]
        return number


def nearest_first(sets: LocalitySets, current: int = 0) -> list[int]:
    """Tasks of all sets, each time those of the ready set whose map is nearest to the one before."""
    ready = _Ready(sets)
    ordered: list[int] = []
    while (number := ready.take(0, _nearest(current))) is not None:
        ordered += sets.tasks[number]
        current = sets.maps[number]
        ready.done(number)
    return ordered


def _nearest(current: int) -> Callable[[int], tuple[int, ...]]:
    return lambda mask: ((mask ^ current).bit_count(),)


def _within(current: int) -> Callable[[int], tuple[int, ...]]:
    """Figure 14: maps within the one in use come first, the largest of them first, then the nearest."""

    def cost(mask: int) -> tuple[int, ...]:
        is_within = mask & ~current == 0
        return (0, -mask.bit_count()) if is_within else (1, (mask ^ current).bit_count())

    return cost


def threads_order(
    program: LoopProgram, threads: int, *, is_collective: bool, layout: Layout = ROUND_ROBIN
) -> list[int]:
    """The tasks of all threads by the time at which each begins."""
    whole, parts = program.units()
    shares = {task: at * threads // len(nest) for nest in whole.nests() for at, task in enumerate(nest)}
    maps = task_maps(whole, layout)
    sets = locality_sets(range(len(whole.tasks)), dependences(whole), maps, lambda task: shares[task])
    return [task for unit in _played(whole, sets, threads, is_collective) for task in parts[unit]]


def _played(program: LoopProgram, sets: LocalitySets, threads: int, is_collective: bool) -> list[int]:
    ready = _Ready(sets)
    last = [0] * threads
    running: list[tuple[int, int, int]] = []  # when a set ends, its thread, the set
    idle = list(range(threads))
    begun: list[tuple[int, int, int]] = []
    now = 0
    while idle:
        for thread in list(idle):
            used = last[thread]
            if is_collective and running:
                used = _used(sets, running)
            number = None
            if thread < len(ready.by_map):
                number = ready.take(thread, _within(used) if is_collective else _nearest(used))
            if number is None:
                continue
            idle.remove(thread)
            last[thread] = sets.maps[number]
            end = now
            for task in sets.tasks[number]:
                begun.append((end, thread, task))
                end += max(program.weight(task), 1)
            heapq.heappush(running, (end, thread, number))
        if not running:
            break
        now, thread, number = heapq.heappop(running)
        idle.append(thread)
        ready.done(number)
    return [task for _, _, task in sorted(begun)]


def _used(sets: LocalitySets, running: list[tuple[int, int, int]]) -> int:
    used = 0
    for _, _, number in running:
        used |= sets.maps[number]
    return used


def _conventional(program: LoopProgram, before: Before) -> list[int]:
    """Nests in their best order each, fused where that is legal without alignment."""
    fused: list[list[list[int]]] = []  # groups of nests: the tasks of each k
    for nest in program.nests():
        steps = [[task] for task in _interchanged(program, nest, before)]
        if fused and _can_fuse(program, fused[-1], steps, before):
            fused[-1] = [mine + other for mine, other in zip(fused[-1], steps, strict=True)]
        else:
            fused.append(steps)
    return [task for group in fused for step in group for task in step]


def _interchanged(program: LoopProgram, nest: list[int], before: Before) -> list[int]:
    arrays = {program.tiles[tile].array for task in nest for tile in program.tasks[task].touched}
    best, most = nest, _shared(program, nest)
    for array in sorted(arrays):
        ordered = sorted(nest, key=lambda task: _place(program, task, array))
        shared = _shared(program, ordered)
        if shared > most and _is_legal(ordered, before):
            best, most = ordered, shared
    return best


def _place(program: LoopProgram, task: int, array: int) -> int:
    """The first tile of an array that a task touches."""
    touched = program.tasks[task].touched
    return min((tile for tile in touched if program.tiles[tile].array == array), default=-1)


def _shared(program: LoopProgram, order: list[int]) -> int:
    """Bytes of tiles that successive tasks share."""
    touched = [set(program.tasks[task].touched) for task in order]
    pairs = itertools.pairwise(touched)
    return sum(program.tiles[tile].frame for mine, other in pairs for tile in mine & other)


def _is_legal(order: list[int], before: Before) -> bool:
    place = {task: at for at, task in enumerate(order)}
    return all(place[other] < place[task] for task in order for other in before[task] if other in place)


def _can_fuse(program: LoopProgram, group: list[list[int]], steps: list[list[int]], before: Before) -> bool:
    if len(group) != len(steps):
        return False
    touched = {tile for step in group for task in step for tile in program.tasks[task].touched}
    if not any(tile in touched for step in steps for task in step for tile in program.tasks[task].touched):
        return False
    place = {task: at for at, step in enumerate(group) for task in step}
    return all(place.get(other, -1) <= at for at, step in enumerate(steps) for task in step for other in before[task])
