"""Time of a placed order, by simulation of discrete events: disks that serve one request at a time, and threads.

Nothing is read, written or measured here. Steps are issued in their order; a task's steps wait until the window holds
the task, a tile that comes in until there is memory for its frame. A frame is free again when the tasks that use it are
done and its write has ended. A request goes to each disk of the tile's map, for an equal part of the bytes, and waits
for those that were issued before it. A task runs on the first free thread once its tiles are there and the tasks that
it depends on are done; the oldest runs first.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field

from benchmarks.loop_placement import Action, Placed, Step
from benchmarks.loop_tasks import ROUND_ROBIN, Layout, LoopProgram, Order, dependences

HALF_TURN = 60 / 10_000 / 2  # seconds, at the 10,000 turns a minute of table 1 of the paper, which gives no seek time
SATA_SSD = 1e-4  # seconds
SEEK_AND_TURN = 7.4e-3 + 4.16e-3  # mean read seek and half a turn at 7,200 a minute, manual of the Ultrastar DC HC310


@dataclass(frozen=True)
class Machine:
    """Disks and threads: bytes a second of a disk, seconds before each request, bytes of tiles a second of a thread.

    A thread goes through 1 GB of its tiles a second, 125 million float64: docs/loops.md has 100 to 200 million elements
    a second for compiled recurrences.
    """

    disks: int = 8
    disk_rate: float = 200e6
    latency: float = HALF_TURN
    threads: int = 2
    compute_rate: float = 1e9


@dataclass(frozen=True)
class Power:
    """A disk's watts at work, idle and in standby, joules to spin up, and seconds to spin up and down.

    Figures of the Barracuda 7200.7 (Serial ATA product manual, table 4): operating, idle, standby, and a peak of 2.8 A
    at 12 V to spin up, taken for all of the 10 s that the manual of the 7200.8 (section 2.7) has for that, beside 12 s
    to stop. So the energy to spin up is an upper bound.
    """

    active: float = 12.0
    idle: float = 7.5
    standby: float = 1.0
    spin_up: float = 2.8 * 12 * 10
    up_seconds: float = 10.0
    down_seconds: float = 12.0

    def asleep(self, seconds: float) -> float:
        """Joules of an idle time whose end is known before, with standby where that is less."""
        still = seconds - self.up_seconds - self.down_seconds
        if still < 0:
            return self.idle * seconds
        return min(self.idle * seconds, self.spin_up + self.idle * self.down_seconds + self.standby * still)


@dataclass
class DiskTime:
    """A disk: seconds at work, and those of each time without work."""

    busy: float = 0.0
    gaps: list[float] = field(default_factory=list)
    switches: int = 0  # from idle to busy
    free_at: float = 0.0

    def serve(self, now: float, seconds: float) -> float:
        """When a request that is issued now ends."""
        if now > self.free_at:
            self.gaps.append(now - self.free_at)
        if now > self.free_at or not self.switches:
            self.switches += 1
        self.busy += seconds
        self.free_at = max(now, self.free_at) + seconds
        return self.free_at


@dataclass
class Timing:
    """Seconds of a run, of its threads at work, and its disks."""

    seconds: float
    computing: float
    disks: list[DiskTime]

    @property
    def busy(self) -> float:
        """The mean share of a disk's time at work."""
        return sum(disk.busy for disk in self.disks) / (len(self.disks) * self.seconds)

    @property
    def switches(self) -> float:
        """Switches from idle to busy, in the mean over disks."""
        return sum(disk.switches for disk in self.disks) / len(self.disks)

    @property
    def longest_gap(self) -> float:
        return max((gap for disk in self.disks for gap in disk.gaps), default=0.0)

    def joules(self, power: Power, *, sleeps: bool = False) -> float:
        """Energy of all disks."""
        total = 0.0
        for disk in self.disks:
            total += power.active * disk.busy
            total += sum(power.asleep(gap) if sleeps else power.idle * gap for gap in disk.gaps)
        return total


def timed(program: LoopProgram, order: Order, steps: Placed, machine: Machine, layout: Layout = ROUND_ROBIN) -> Timing:
    """The time that an order takes as it is placed."""
    return _Run(program, order, steps, machine, layout).run()


@dataclass
class _Frame:
    """A tile in memory: tasks that use it and are not done, and what is to happen when it is there or used no more."""

    tile: int
    is_there: bool = False
    users: int = 0
    writes_wanted: int = 0
    writes: int = 0
    is_given_up: bool = False
    waiting: list[int] = field(default_factory=list)


class _Run:
    """Invariant: `used` is the bytes of frames that are not free yet, at most the program's memory."""

    def __init__(self, program: LoopProgram, order: Order, steps: Placed, machine: Machine, layout: Layout) -> None:
        self.program, self.order, self.machine = program, order, machine
        self.steps, self.oldest = steps.steps, steps.oldest
        self.maps = layout.maps(program)
        self.disks = [DiskTime() for _ in range(layout.disks)]
        self.before = dependences(program)
        self.later: list[list[int]] = [[] for _ in self.before]
        for task, waits in enumerate(self.before):
            for other in waits:
                self.later[other].append(task)
        self.place = {task: at for at, task in enumerate(order)}
        self.missing = [len(waits) + 1 for waits in self.before]  # one more until the task is issued
        self.frames: dict[int, _Frame] = {}
        self.frames_of: dict[int, list[_Frame]] = {}
        self.done = [False] * len(order)
        self.complete = 0  # all tasks at places before this one are done
        self.issued = self.tasks_issued = self.used = 0
        self.idle_threads = machine.threads
        self.ready: list[int] = []
        self.events: list[tuple[float, int, Callable[[], None]]] = []
        self.numbered = 0
        self.now = self.computing = 0.0

    def run(self) -> Timing:
        self._go_on()
        while self.events:
            self.now, _, happens = heapq.heappop(self.events)
            happens()
            self._go_on()
        if self.issued < len(self.steps) or self.complete < len(self.order):
            raise AssertionError("a run that waits for itself")
        for disk in self.disks:
            disk.gaps.append(self.now - disk.free_at)
        return Timing(self.now, self.computing, self.disks)

    def _go_on(self) -> None:
        while self.issued < len(self.steps) and self._issue(self.steps[self.issued]):
            self.issued += 1
        while self.idle_threads and self.ready:
            task = self.order[heapq.heappop(self.ready)]
            self.idle_threads -= 1
            seconds = self.program.weight(task) / self.machine.compute_rate
            self.computing += seconds
            self._at(self.now + seconds, lambda task=task: self._end(task))

    def _at(self, when: float, happens: Callable[[], None]) -> None:
        self.numbered += 1
        heapq.heappush(self.events, (when, self.numbered, happens))

    def _issue(self, step: Step) -> bool:
        """Whether a step could be issued."""
        action, number = step
        if action in (Action.READ, Action.ALLOCATE, Action.RUN) and self.complete < self.oldest[self.tasks_issued]:
            return False
        if action is Action.RUN:
            self._expect(number)
        elif action is Action.WRITE:
            frame = self.frames[number]
            frame.writes_wanted += 1
            self._settle(frame)
        elif action is Action.FREE:
            frame = self.frames[number]
            frame.is_given_up = True
            self._settle(frame)
        else:
            return self._bring(number, is_read=action is Action.READ)
        return True

    def _bring(self, tile: int, *, is_read: bool) -> bool:
        size = self.program.tiles[tile]
        if tile in self.frames or self.used + size.frame > self.program.memory:
            return False
        self.used += size.frame
        self.frames[tile] = frame = _Frame(tile, is_there=not is_read)
        if is_read:
            self._at(self._transfer(tile, size.read), lambda: self._arrive(frame))
        return True

    def _transfer(self, tile: int, transferred: int) -> float:
        """When the requests end that move a tile."""
        mask = self.maps[tile]
        seconds = self.machine.latency + transferred / mask.bit_count() / self.machine.disk_rate
        return max(disk.serve(self.now, seconds) for at, disk in enumerate(self.disks) if mask >> at & 1)

    def _expect(self, task: int) -> None:
        self.tasks_issued += 1
        self.frames_of[task] = frames = [self.frames[tile] for tile in self.program.tasks[task].touched]
        for frame in frames:
            frame.users += 1
            if not frame.is_there:
                frame.waiting.append(task)
                self.missing[task] += 1
        self._count_down(task)

    def _count_down(self, task: int) -> None:
        self.missing[task] -= 1
        if not self.missing[task]:
            heapq.heappush(self.ready, self.place[task])

    def _arrive(self, frame: _Frame) -> None:
        frame.is_there = True
        for task in frame.waiting:
            self._count_down(task)

    def _end(self, task: int) -> None:
        self.idle_threads += 1
        self.done[self.place[task]] = True
        while self.complete < len(self.done) and self.done[self.complete]:
            self.complete += 1
        for other in self.later[task]:
            self._count_down(other)
        for frame in self.frames_of.pop(task):
            frame.users -= 1
            self._settle(frame)

    def _settle(self, frame: _Frame) -> None:
        """A frame that no task uses is written, and is free behind its writes."""
        if frame.users or not frame.is_there:
            return
        for _ in range(frame.writes_wanted):
            frame.writes += 1
            written = self.program.tiles[frame.tile].write
            self._at(self._transfer(frame.tile, written), lambda: self._end_write(frame))
        frame.writes_wanted = 0
        if frame.is_given_up and not frame.writes:
            del self.frames[frame.tile]
            self.used -= self.program.tiles[frame.tile].frame

    def _end_write(self, frame: _Frame) -> None:
        frame.writes -= 1
        self._settle(frame)
