"""The figures of progress: the work under way, the part of it that is done, the time that the rest takes. It has no
clock and no terminal."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from outcore._base.types import Scalar

_RATE_SECONDS = 5.0
#: The words of the engine for outputs that are made durable, all of whose tasks are done.
FINISHING = "making outputs durable"
# Steps by whose pace the others are judged.
_STEPS = 32


@dataclass
class LoopFigures:
    """A loop: its step, of at most so many, and the last of its named values.

    Steps are judged by the pace of those that are complete. The first one reads tiles that others find in memory, and
    may have begun with work that comes once: it does not count as soon as another one tells, if only by its program.
    """

    name: str
    began: float
    most: int | None = None
    unit: str = "step"
    step: int = 0
    values: dict[str, Scalar] = field(default_factory=dict)
    #: Steps of another unit that come after these, as long as these for all that is known.
    further: int = 0
    #: Whether it may end before `most`.
    is_bound: bool = False
    #: Steps complete, and when they were.
    _marks: deque[tuple[int, float]] = field(default_factory=deque)
    _is_first_gone: bool = False

    def resume(self, step: int, now: float) -> None:
        """The loop goes on behind a step of an earlier process."""
        self.step = step
        self._marks = deque([(step, now)])

    def show(self, step: int, complete: int, now: float) -> None:
        """The step that is shown, and how many are complete; fewer than before where steps of another unit begin."""
        self.step = step
        if complete < self.complete:
            self.resume(complete, now)
            self._is_first_gone = False
        if not self._marks:
            self._marks.append((0, now) if not complete else (complete - 1, self.began))
        if complete > self._marks[-1][0]:
            self._marks.append((complete, now))
            if len(self._marks) > _STEPS + 1:
                self._marks.popleft()
                self._is_first_gone = True

    @property
    def complete(self) -> int:
        """Steps complete."""
        return self._marks[-1][0] if self._marks else 0

    @property
    def is_steady(self) -> bool:
        """Whether its own pace tells the rest, and not the work within its step."""
        return len(self._marks) > 2

    @property
    def step_seconds(self) -> float | None:
        """Seconds of a step; nothing before the first is complete."""
        marks = list(self._marks)
        if self.is_steady and not self._is_first_gone:
            marks = marks[1:]
        if len(marks) < 2:
            return None
        return (marks[-1][1] - marks[0][1]) / (marks[-1][0] - marks[0][0])

    def seconds_left(self, within: float | None, now: float) -> float | None:
        """The rest of the loop, with the rest of the step under way where something within tells it."""
        if self.most is None:
            return within
        begun = self._marks[-1][1] if self._marks else self.began
        each = self.step_seconds
        if within is not None and not self.is_steady:
            each = now - begun + within
        if each is None:
            return None
        further = max(self.most - self.complete - 1, 0) + self.further
        past = now - begun
        of_this = each - past if past < each else within or 0.0
        return (of_this if self.complete < self.most else 0.0) + further * each


@dataclass
class Figures:
    """The figures of one call: loops from the outermost to the innermost, and the program that is under way."""

    call: str = "outcore"
    began: float = 0.0
    #: Whether the call is one program; of several, none tells how much of the call is done.
    is_one_program: bool = True
    loops: list[LoopFigures] = field(default_factory=list)
    #: Stage or other part of the program, in words.
    stage: str = ""
    bytes_done: int = 0
    bytes_total: int = 0
    tasks_done: int = 0
    tasks_total: int = 0
    #: Of the program's time; its seconds left, and when they were said.
    fraction: float = 0.0
    program_left: float | None = None
    reported: float = 0.0
    #: In words the iteration of a traversal, or the tasks behind which a program goes on.
    activity: str = ""
    #: Bytes of the programs before this one.
    bytes_before: int = 0
    memory: int | None = None
    memory_limit: int | None = None
    memory_peak: int = 0
    #: The loop that was over last, of the outermost ones with steps.
    ended: LoopFigures | None = None
    #: The largest share that was told.
    _share: float = 0.0
    _moved: deque[tuple[float, int]] = field(default_factory=deque)

    def end_loop(self, loop: LoopFigures) -> None:
        """A loop is over."""
        outer = self.loops[: self.loops.index(loop)]
        if loop.step and not any(each.step for each in outer):
            self.ended = loop
        self.loops.remove(loop)

    def begin_program(self, now: float) -> None:
        """A program begins; the bytes of the one before stay in the sum."""
        self.bytes_before += self.bytes_done
        self.bytes_done = self.bytes_total = self.tasks_done = self.tasks_total = 0
        self.fraction, self.program_left = 0.0, None
        self.stage = self.activity = ""

    def end_program(self) -> None:
        """No program is under way."""
        self.stage, self.activity, self.program_left = "", "", None

    def report(self, bytes_done: int, bytes_total: int, fraction: float, left: float | None, now: float) -> None:
        """How far the program is."""
        self.bytes_done, self.bytes_total = bytes_done, bytes_total
        self.fraction, self.program_left, self.reported = fraction, left, now
        self.sample(now)

    def sample(self, now: float) -> None:
        """Keeps the sum of bytes at a time, for the rate."""
        self._moved.append((now, self.bytes_moved))
        while len(self._moved) > 2 and self._moved[1][0] <= now - _RATE_SECONDS:
            self._moved.popleft()

    @property
    def bytes_moved(self) -> int:
        """Bytes read and written, of all programs."""
        return self.bytes_before + self.bytes_done

    def rate(self) -> float | None:
        """Bytes per second, over the last seconds; nothing where too little time tells."""
        if len(self._moved) < 2:
            return None
        (first, before), (last, after) = self._moved[0], self._moved[-1]
        return (after - before) / (last - first) if last - first > 0.1 else None

    def _program_left(self, now: float) -> float | None:
        """The rest of the program."""
        if self.program_left is None or FINISHING in self.stage:  # which takes as long as the file system does
            return None
        return max(self.program_left - (now - self.reported), 0.0)

    def seconds_left(self, now: float) -> float | None:
        """The rest of the call: of its outermost loop where it has one, else of its program."""
        left = self._program_left(now)
        for loop in reversed(self.loops):
            left = loop.seconds_left(left, now)
        return left

    def share(self, now: float) -> float | None:
        """The share of the call's time that is done; it stays where the rest turns out longer than it seemed."""
        if self.is_program_alone:
            return self.fraction if self.is_one_program and self.tasks_total else None
        left, past = self.seconds_left(now), now - self.began
        if left is None or past + left <= 0:
            return None
        self._share = max(self._share, past / (past + left))
        return self._share

    @property
    def is_program_alone(self) -> bool:
        """Whether share and rest are those of the program, since no loop says how many steps it has."""
        return all(loop.most is None for loop in self.loops)

    @property
    def is_bound(self) -> bool:
        """Whether the rest is a bound, since a loop may end before its last step."""
        for loop in self.loops:
            if loop.most is not None and (loop.is_bound or loop.is_steady):
                return loop.is_bound
        return False


def named(values: Mapping[str, Scalar]) -> str:
    """Named values, in words."""
    return ", ".join(f"{key.replace('_', ' ')} {value:.6g}" for key, value in values.items())


__all__ = ["FINISHING", "Figures", "LoopFigures", "named"]
