"""The tree of a loop program, its encoding as words, and the call of the core."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias

from outcore import _core
from outcore._lazy.array import Array
from outcore._loops.affine import Affine
from outcore._loops.compiling import Compile


class Update(IntEnum):
    """The way in which a value goes into an element; the numbers are those of the core."""

    STORE = 0
    ADD = 1
    MULTIPLY = 2
    MINIMUM = 3
    MAXIMUM = 4


@dataclass(frozen=True)
class ElementLeaf:
    """An element that a value reads."""

    array: int
    subscripts: tuple[Affine, ...]


@dataclass(frozen=True)
class IndexLeaf:
    """An affine integer as a number, of int64."""

    value: Affine


@dataclass(frozen=True)
class RegisterLeaf:
    """A register of the block, which an assignment before has set."""

    number: int


Leaf: TypeAlias = ElementLeaf | IndexLeaf | RegisterLeaf


@dataclass(frozen=True)
class RegisterTarget:
    """A register of the block, which the assignment sets."""

    number: int


@dataclass(frozen=True)
class ElementTarget:
    """An element that the assignment stores to or updates."""

    array: int
    update: Update
    subscripts: tuple[Affine, ...]


@dataclass(frozen=True)
class Assignment:
    """One statement: a target, and a value over stand-ins of its leaves."""

    target: RegisterTarget | ElementTarget
    value: Array
    leaves: tuple[Leaf, ...]
    stand_ins: tuple[Array, ...]


@dataclass(frozen=True)
class GuardedBlock:
    """Assignments that run in their order in each iteration at which all guards are >= 0."""

    guards: tuple[Affine, ...]
    registers: int
    assignments: tuple[Assignment, ...]


@dataclass(frozen=True)
class CountedLoop:
    """A loop: the counter runs 0, 1, ..., extent // divisor, and not at all where the extent is below 0.

    With the shift added it is the loop's variable, or that variable negated, so that the core cuts nests of triangles
    where it cuts those of squares.
    """

    shift: Affine
    extent: Affine
    divisor: int
    items: tuple[ProgramItem, ...]


ProgramItem: TypeAlias = "CountedLoop | GuardedBlock"


@dataclass(frozen=True)
class LoopProgram:
    """A program: arrays with their values when it begins, and loops and blocks in their order."""

    arrays: tuple[Array, ...]
    items: tuple[ProgramItem, ...]

    def assignments(self) -> Iterator[Assignment]:
        """Assignments in the order of the source."""
        return _assignments(self.items)

    def written(self) -> list[int]:
        """The arrays that are written, ascending."""
        return sorted({part.target.array for part in self.assignments() if isinstance(part.target, ElementTarget)})

    def used(self) -> list[int]:
        """The arrays that are read or written, ascending."""
        read = {leaf.array for part in self.assignments() for leaf in part.leaves if isinstance(leaf, ElementLeaf)}
        return sorted(read | set(self.written()))


def _assignments(items: Sequence[ProgramItem]) -> Iterator[Assignment]:
    for item in items:
        if isinstance(item, CountedLoop):
            yield from _assignments(item.items)
        else:
            yield from item.assignments


class _Encoder:
    """Words and nodes of a program; arrays that are not used are left out."""

    def __init__(self, program: LoopProgram) -> None:
        self._number = {array: place for place, array in enumerate(program.used())}
        self.words = [len(self._number)]
        self.nodes: list[_core.Expr] = []
        self._items(program.items)

    def _items(self, items: Sequence[ProgramItem]) -> None:
        self.words.append(len(items))
        for item in items:
            if isinstance(item, CountedLoop):
                self.words.append(0)
                self._affine(item.shift)
                self._affine(item.extent)
                self.words.append(item.divisor)
                self._items(item.items)
            else:
                self.words.append(1)
                self._affines(item.guards)
                self.words += [item.registers, len(item.assignments)]
                for assignment in item.assignments:
                    self._assignment(assignment)

    def _assignment(self, assignment: Assignment) -> None:
        target = assignment.target
        if isinstance(target, RegisterTarget):
            self.words += [0, target.number]
        else:
            self.words += [1, self._number[target.array], int(target.update)]
            self._affines(target.subscripts)
        self.words.append(len(assignment.leaves))
        for leaf in assignment.leaves:
            if isinstance(leaf, ElementLeaf):
                self.words += [0, self._number[leaf.array]]
                self._affines(leaf.subscripts)
            elif isinstance(leaf, IndexLeaf):
                self.words.append(1)
                self._affine(leaf.value)
            else:
                self.words += [2, leaf.number]
        self.nodes += [assignment.value._expr, *(stand_in._expr for stand_in in assignment.stand_ins)]

    def _affines(self, parts: Sequence[Affine]) -> None:
        self.words.append(len(parts))
        for part in parts:
            self._affine(part)

    def _affine(self, value: Affine) -> None:
        self.words += [value.constant, len(value.terms)]
        for depth, coefficient in value.terms:
            self.words += [depth, coefficient]


def encoded(program: LoopProgram) -> tuple[list[_core.Expr], list[int], list[_core.Expr]]:
    """Inputs, words and nodes, as the core takes them."""
    encoder = _Encoder(program)
    return [program.arrays[number]._expr for number in program.used()], encoder.words, encoder.nodes


def results_of(program: LoopProgram, compile_block: Compile | None) -> dict[int, Array]:
    """The arrays that the program writes, by their numbers, with their values when it has ended."""
    written = program.written()
    if not written:
        return {}
    return dict(zip(written, map(Array, _core.loop_nest(*encoded(program), compile_block)), strict=True))


__all__ = [
    "Assignment",
    "CountedLoop",
    "ElementLeaf",
    "ElementTarget",
    "GuardedBlock",
    "IndexLeaf",
    "Leaf",
    "LoopProgram",
    "ProgramItem",
    "RegisterLeaf",
    "RegisterTarget",
    "Update",
    "encoded",
    "results_of",
]
