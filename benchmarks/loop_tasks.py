"""Tasks and tiles of a planned loop program, their dependences, and an independent replay of an order.

Tasks stand in the order of the text. Zeros of a new array, and the copy of an argument that is written, come with the
first task that uses their tile: the paper's programs have no loops for them, and write arguments in place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from outcore._run.run import _planned_targets

Order = Sequence[int]


@dataclass(frozen=True)
class Tile:
    """A tile: its array, the place in it, and bytes in memory, of a read, and of the write as a result."""

    array: int
    place: int
    offset: int
    frame: int
    read: int
    result: int
    is_there: bool

    @property
    def write(self) -> int:
        return self.result or self.frame


@dataclass(frozen=True)
class Task:
    """A task by the nest that holds it, and the tiles that it reads, creates and updates."""

    nest: int
    read: tuple[int, ...]
    created: tuple[int, ...]
    updated: tuple[int, ...]

    @property
    def touched(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys((*self.read, *self.updated, *self.created)))

    @property
    def written(self) -> tuple[int, ...]:
        return (*self.created, *self.updated)


@dataclass(frozen=True)
class LoopProgram:
    """A program in the order of its text, and the order that the plan chose, by the same numbers."""

    memory: int
    tiles: list[Tile]
    tasks: list[Task]
    chosen: list[int]

    def nests(self) -> list[list[int]]:
        """Numbers of tasks, nest by nest."""
        nests: dict[int, list[int]] = {}
        for number, task in enumerate(self.tasks):
            nests.setdefault(task.nest, []).append(number)
        return list(nests.values())

    def units(self) -> tuple[LoopProgram, list[list[int]]]:
        """The program with tasks that create tiles as part of the task that follows, and the tasks of each unit."""
        units: list[list[int]] = []
        waiting: list[int] = []
        for number, task in enumerate(self.tasks):
            waiting.append(number)
            if not task.created:
                units.append(waiting)
                waiting = []
        units += [[number] for number in waiting]
        return LoopProgram(self.memory, self.tiles, [self._unit(unit) for unit in units], []), units

    def _unit(self, unit: list[int]) -> Task:
        parts = [self.tasks[number] for number in unit]
        created = tuple(tile for part in parts for tile in part.created)
        updated = (tile for part in parts for tile in part.updated)
        read = tuple(tile for part in parts for tile in part.read if tile not in created)
        return Task(parts[-1].nest, read, created, tuple(tile for tile in updated if tile not in created))

    def weight(self, task: int) -> int:
        """Bytes of memory that a task touches."""
        return sum(self.tiles[tile].frame for tile in self.tasks[task].touched)


def loop_program(targets: Mapping[str, Any], *, zeros_first: bool = False) -> LoopProgram:
    """The tasks of a program that is one plan of loops."""
    with _planned_targets((targets,), True) as (program, _):
        (stage,) = program.accesses()
    memory, rows, tasks = stage
    tiles = _tiles(rows)
    text = sorted(range(len(tasks)), key=lambda at: tasks[at][:2])
    placed = text if zeros_first else _at_first_use(text, tasks)
    nests = _nests(placed, tasks, tiles)
    numbers = {at: number for number, at in enumerate(placed)}
    return LoopProgram(
        memory,
        tiles,
        [Task(nests[number], *(tuple(part) for part in tasks[at][4:])) for number, at in enumerate(placed)],
        [numbers[at] for at in range(len(tasks))],
    )


def _tiles(rows: Iterable[tuple[int, int, int, int, bool]]) -> list[Tile]:
    tiles: list[Tile] = []
    ends: dict[int, tuple[int, int]] = {}
    for array, frame, read, result, is_there in rows:
        place, offset = ends.get(array, (0, 0))
        # Reads of neighbours go together and share the blocks at their edges.
        tiles.append(Tile(array, place, offset, frame, min(read or frame, frame), result, is_there))
        ends[array] = (place + 1, offset + (read or frame))
    return tiles


def _at_first_use(text: list[int], tasks: Sequence[Any]) -> list[int]:
    """The order of the text with tasks that create tiles before the first other task that touches those."""
    maker = {tile: at for at in text for tile in tasks[at][5]}
    placed: dict[int, None] = {}
    for at in text:
        if tasks[at][5]:
            continue
        for tile in (*tasks[at][4], *tasks[at][6]):
            if tile in maker:
                placed.setdefault(maker[tile])
        placed.setdefault(at)
    for at in text:
        placed.setdefault(at)
    return list(placed)


def _nests(placed: list[int], tasks: Sequence[Any], tiles: list[Tile]) -> list[int]:
    """The nest of each task: of equal sweep where there is one, else of equal arrays that are written."""
    nests: list[int] = []
    before: Any = None
    waiting = 0  # tasks that create belong to the one that follows
    for at in placed:
        _, _, _, sweep, _, created, updated = tasks[at]
        if created:
            waiting += 1
            continue
        label = ("sweep", sweep) if sweep is not None else ("arrays", *sorted({tiles[tile].array for tile in updated}))
        nest = nests[-1] + (label != before) if nests else 0
        nests += [nest] * (waiting + 1)
        waiting, before = 0, label
    return nests + [nests[-1] if nests else 0] * waiting


def dependences(program: LoopProgram) -> list[list[int]]:
    """Tasks that each one waits for: read after write, write after read and write after write of a tile."""
    writer: dict[int, int] = {}
    readers: dict[int, list[int]] = {}
    before: list[list[int]] = []
    for number, task in enumerate(program.tasks):
        waits = {writer[tile] for tile in task.touched if tile in writer}
        for tile in task.written:
            waits.update(readers.pop(tile, ()))
            writer[tile] = number
        for tile in task.read:
            readers.setdefault(tile, []).append(number)
        before.append(sorted(waits - {number}))
    return before


def replay(program: LoopProgram, order: Order) -> bool:
    """Whether each task runs once, and each tile comes through the same versions as in the text.

    Nothing of the graph is used: versions are counted, and each read has to find the one that the text gives.
    """
    if sorted(order) != list(range(len(program.tasks))):
        return False
    return _versions(program, order) == _versions(program, range(len(program.tasks)))


def _versions(program: LoopProgram, order: Order) -> dict[tuple[int, int], int]:
    versions: dict[int, int] = {}
    found: dict[tuple[int, int], int] = {}
    for number in order:
        task = program.tasks[number]
        for tile in task.touched:
            found[number, tile] = versions.get(tile, 0)
        for tile in set(task.written):
            versions[tile] = versions.get(tile, 0) + 1
    return found


@dataclass(frozen=True)
class Layout:
    """Where tiles lie: whole tiles in turn, a contiguous part of each array on each disk, or stripes in turn.

    `by` is "tiles", "bands" (figure 3 of the paper), or the bytes of a stripe. Each array begins on the first disk.
    """

    disks: int = 8  # table 1 of the paper
    by: str | int = "tiles"

    def maps(self, program: LoopProgram) -> list[int]:
        """The disks of each tile, a bit each."""
        lengths: dict[int, int] = {}
        for tile in program.tiles:
            lengths[tile.array] = max(lengths.get(tile.array, 0), tile.place + 1)
        return [self._map(tile, lengths[tile.array]) for tile in program.tiles]

    def _map(self, tile: Tile, length: int) -> int:
        if self.by == "tiles":
            return 1 << tile.place % self.disks
        if self.by == "bands":
            return 1 << tile.place * self.disks // max(length, self.disks)
        stripe = int(self.by)
        first, last = tile.offset // stripe, (tile.offset + max(tile.frame, 1) - 1) // stripe
        mask = 0
        for block in range(first, min(last, first + self.disks - 1) + 1):
            mask |= 1 << block % self.disks
        return mask


ROUND_ROBIN = Layout()


def task_maps(program: LoopProgram, layout: Layout = ROUND_ROBIN) -> list[int]:
    """The disk map of each task (section 3 of the paper)."""
    disks = layout.maps(program)
    maps = []
    for task in program.tasks:
        mask = 0
        for tile in task.touched:
            mask |= disks[tile]
        maps.append(mask)
    return maps
