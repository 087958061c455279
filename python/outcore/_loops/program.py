"""The tree of a loop program, its encoding as words, and the call of the core."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple, TypeAlias

from outcore import _core
from outcore._base.types import NDArray
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
class CalledBlock:
    """A call of a function of whole slices: the last `loops` of the loops around it go along slices, the others count.

    The function takes the shape of the target, then an array for each leaf, without axes for numbers; it gives what is
    assigned.
    """

    guards: tuple[Affine, ...]
    function: Callable[..., NDArray]
    loops: int
    target: ElementTarget
    leaves: tuple[ElementLeaf | IndexLeaf, ...]


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


ProgramItem: TypeAlias = "CountedLoop | GuardedBlock | CalledBlock"


@dataclass(frozen=True)
class LoopProgram:
    """A program: arrays with their values when it begins, and loops and blocks in their order."""

    arrays: tuple[Array, ...]
    items: tuple[ProgramItem, ...]

    def assignments(self) -> Iterator[Assignment]:
        """Assignments in the order of the source, without calls of functions of slices."""
        return (part for part in _steps(self.items) if isinstance(part, Assignment))

    def written(self) -> list[int]:
        """The arrays that are written, ascending."""
        return sorted({part.target.array for part in _steps(self.items) if isinstance(part.target, ElementTarget)})

    def used(self) -> list[int]:
        """The arrays that are read or written, ascending."""
        read = {leaf.array for part in _steps(self.items) for leaf in part.leaves if isinstance(leaf, ElementLeaf)}
        return sorted(read | set(self.written()))


def _steps(items: Sequence[ProgramItem]) -> Iterator[Assignment | CalledBlock]:
    for item in items:
        if isinstance(item, CountedLoop):
            yield from _steps(item.items)
        elif isinstance(item, CalledBlock):
            yield item
        else:
            yield from item.assignments


class _Encoder:
    """Words and nodes of a program; arrays that are not used are left out."""

    def __init__(self, program: LoopProgram) -> None:
        self._number = {array: place for place, array in enumerate(program.used())}
        self.words = [len(self._number)]
        self.nodes: list[_core.Expr] = []
        self.functions: list[Callable[..., NDArray]] = []
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
            elif isinstance(item, CalledBlock):
                self.words.append(2)
                self._affines(item.guards)
                self.words += [len(self.functions), item.loops, self._number[item.target.array]]
                self.functions.append(item.function)
                self._affines(item.target.subscripts)
                self._leaves(item.leaves)
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
        self._leaves(assignment.leaves)
        self.nodes += [assignment.value._expr, *(stand_in._expr for stand_in in assignment.stand_ins)]

    def _leaves(self, leaves: Sequence[Leaf]) -> None:
        self.words.append(len(leaves))
        for leaf in leaves:
            if isinstance(leaf, ElementLeaf):
                self.words += [0, self._number[leaf.array]]
                self._affines(leaf.subscripts)
            elif isinstance(leaf, IndexLeaf):
                self.words.append(1)
                self._affine(leaf.value)
            else:
                self.words += [2, leaf.number]

    def _affines(self, parts: Sequence[Affine]) -> None:
        self.words.append(len(parts))
        for part in parts:
            self._affine(part)

    def _affine(self, value: Affine) -> None:
        self.words += [value.constant, len(value.terms)]
        for depth, coefficient in value.terms:
            self.words += [depth, coefficient]


class Encoded(NamedTuple):
    """A program as the core takes it."""

    inputs: list[_core.Expr]
    words: list[int]
    nodes: list[_core.Expr]
    functions: list[Callable[..., NDArray]]


def encoded(program: LoopProgram) -> Encoded:
    """Inputs, words, nodes and functions, as the core takes them."""
    encoder = _Encoder(program)
    inputs = [program.arrays[number]._expr for number in program.used()]
    return Encoded(inputs, encoder.words, encoder.nodes, encoder.functions)


def results_of(program: LoopProgram, compile_block: Compile | None) -> dict[int, Array]:
    """The arrays that the program writes, by their numbers, with their values when it has ended."""
    written = program.written()
    if not written:
        return {}
    return dict(zip(written, map(Array, _core.loop_nest(*encoded(program), compile_block)), strict=True))


__all__ = [
    "Assignment",
    "CalledBlock",
    "CountedLoop",
    "ElementLeaf",
    "ElementTarget",
    "Encoded",
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
