"""Nests that need a row and a column of pivots as they go, as Floyd and Warshall's, cut over the loop of the pivots.

In `d[i, j] = f(d[i, j], d[i, k], d[k, j])` iterations of `k` read a row and a column that they change themselves, so
that no tile of `d` can go through several `k` before the others. Here the loop over `k` is cut in blocks as long as a
tile, and each row and column of pivots is copied as it is before and after its own iteration: with the copies, tiles of
`d` go through all iterations of a block one by one, to the same bits. First comes the tile of the pivots, then the
tiles of its row and column, then all others. In place, without copies, that needs values that pivots do not change
(Venkataraman, Sahni, Mukhopadhyaya, "A blocked all-pairs shortest-paths algorithm", 2003).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from outcore._lazy.array import Array
from outcore._loops.affine import Affine
from outcore._loops.program import (
    Assignment,
    CountedLoop,
    ElementLeaf,
    ElementTarget,
    GuardedBlock,
    IndexLeaf,
    Leaf,
    LoopProgram,
    ProgramItem,
    Update,
)
from outcore._loops.values import Leaves
from outcore._standard.creation import zeros
from outcore._standard.manipulation import rechunk

_TILE_BYTES = 4 << 20  # of tiles that are chosen here
_TILES_MIN, _SIDE_MIN = 4, 128  # tiles along an axis, unless they would have shorter sides
_BLOCK, _PIVOT, _FIRST = range(3)  # depths of the loops over blocks of pivots, over those of one, and below
_BEFORE, _AMONG, _AFTER = -1, 0, 1  # where rows or columns are, seen from a block of pivots


@dataclass(frozen=True)
class _Nest:
    """Three loops around blocks that read and write an array, and read lines of pivots of the same array."""

    loops: tuple[CountedLoop, ...]
    blocks: tuple[GuardedBlock, ...]
    array: int
    element: tuple[Affine, ...]  # the subscripts of the one that is written
    offsets: tuple[int, int]  # of a row and of a column of pivots from the counter of the outermost loop

    def pivot_axis(self, leaf: Leaf) -> int | None:
        """The axis along which a leaf is at a pivot: 0 in a row of pivots, 1 in a column."""
        if not isinstance(leaf, ElementLeaf) or leaf.array != self.array:
            return None
        return next((axis for axis in (0, 1) if leaf.subscripts[axis] != self.element[axis]), None)

    def axis_of(self, depth: int) -> int:
        """The axis that follows a loop."""
        return 0 if self.element[0].terms == Affine.counter(depth).terms else 1


def _nest(item: ProgramItem, arrays: Sequence[Array]) -> _Nest | None:
    """The nest that an item is, if it is one."""
    loops: list[CountedLoop] = []
    items: tuple[ProgramItem, ...] = (item,)
    while len(items) == 1 and isinstance(items[0], CountedLoop):
        loops.append(items[0])
        items = items[0].items
    blocks = tuple(part for part in items if isinstance(part, GuardedBlock))
    if len(loops) != 3 or len(blocks) != len(items):
        return None
    targets = {(target.array, target.subscripts) for target in _targets(blocks)}
    is_box = all(loop.extent.is_constant and loop.divisor == 1 for loop in loops)
    if not is_box or len(targets) != 1:
        return None
    [(array, element)] = targets
    if sorted(subscript.terms for subscript in element) != [Affine.counter(depth).terms for depth in (1, 2)]:
        return None
    offsets = _offsets(blocks, array, element)
    if offsets is None:
        return None
    ends = [(offset, offset + loops[0].extent.constant) for offset in offsets]
    # Guards may keep pivots and elements within the array; blocks have none for lines of pivots.
    ends += [(part.constant, part.constant + loops[part.terms[0][0]].extent.constant) for part in element]
    if any(low < 0 or high >= length for (low, high), length in zip(ends, arrays[array].shape * 2, strict=True)):
        return None
    return _Nest(tuple(loops), blocks, array, element, offsets)


def _targets(blocks: Sequence[GuardedBlock]) -> Iterator[ElementTarget]:
    targets = (part.target for block in blocks for part in block.assignments)
    return (target for target in targets if isinstance(target, ElementTarget))


def _offsets(blocks: Sequence[GuardedBlock], array: int, element: tuple[Affine, ...]) -> tuple[int, int] | None:
    """How far rows and columns of pivots are from the counter, where the array is read there and at its own element."""
    offsets: tuple[set[int], set[int]] = set(), set()
    for leaf in (leaf for block in blocks for part in block.assignments for leaf in part.leaves):
        if not isinstance(leaf, ElementLeaf) or leaf.array != array:
            continue
        others = [axis for axis in (0, 1) if leaf.subscripts[axis] != element[axis]]
        if len(others) > 1 or any(leaf.subscripts[axis].terms != Affine.counter(0).terms for axis in others):
            return None
        for axis in others:
            offsets[axis].add(leaf.subscripts[axis].constant)
    # Where pivots are in rows alone, or in columns alone, the other loop is cut without help.
    if any(len(constants) != 1 for constants in offsets):
        return None
    return offsets[0].pop(), offsets[1].pop()


def _side(array: Array) -> int:
    """The side of square tiles for an array: that of its own tiles, where they are cut along both axes."""
    shortest, longest = sorted(array.tile)
    is_cut = all(tile < length for tile, length in zip(array.tile, array.shape, strict=True))
    if is_cut and longest % shortest == 0 and longest**2 * array.dtype.itemsize <= 2 * _TILE_BYTES:
        return longest
    most = math.isqrt(_TILE_BYTES // array.dtype.itemsize)
    side = min(most, max(min(array.shape) // _TILES_MIN, _SIDE_MIN))
    return int(2 ** (side.bit_length() - 1))


class _Cut:
    """A nest in blocks of pivots, with new arrays for the lines of pivots."""

    def __init__(self, nest: _Nest, program: Sequence[Array], side: int) -> None:
        array = program[nest.array]
        self.nest, self.side, self.dtype = nest, side, array.dtype
        self.pivots = nest.loops[0].extent.constant + 1
        self.arrays: list[Array] = []
        self._numbers: dict[tuple[int, bool], int] = {}
        for axis in (0, 1):
            shape = (self.pivots, array.shape[1]) if axis == 0 else (array.shape[0], self.pivots)
            for is_after in (False, True):
                self._numbers[axis, is_after] = len(program) + len(self.arrays)
                self.arrays.append(rechunk(zeros(shape, dtype=array.dtype), (side, side)))

    @property
    def last(self) -> int:
        """The last block of pivots."""
        return (self.pivots - 1) // self.side

    def line(self, axis: int, is_after: bool, pivot: Affine, along: Affine) -> tuple[int, tuple[Affine, ...]]:
        """The number and the subscripts of what is kept of a line of pivots, before or after its own iteration."""
        return self._numbers[axis, is_after], _on_line(axis, pivot, along)

    def loop(self) -> CountedLoop:
        """The loop over blocks of pivots."""
        sides = (_AMONG, _BEFORE, _AFTER)
        places = sorted(((row, column) for row in sides for column in sides), key=lambda at: abs(at[0]) + abs(at[1]))
        return CountedLoop(Affine(0), Affine(self.last), 1, tuple(_Part(self, at).loop() for at in places))


class _Part:
    """The iterations of a block of pivots at rows and columns before, among or after those of the pivots."""

    def __init__(self, cut: _Cut, at: tuple[int, int]) -> None:
        self._cut, self._nest, self._at = cut, cut.nest, at
        self._pivot = cut.side * Affine.counter(_BLOCK) + Affine.counter(_PIVOT)

    def loop(self) -> CountedLoop:
        """The loop over the pivots of a block: copies of their lines, the nest's own loops, copies again."""
        among = [axis for axis in (0, 1) if self._at[axis] == _AMONG]
        before, after = (tuple(self._copy(axis, is_after) for axis in among) for is_after in (False, True))
        shift = self._cut.side * Affine.counter(_BLOCK) + self._nest.loops[0].shift
        return CountedLoop(shift, Affine(self._cut.side - 1), 1, (*before, self._body(), *after))

    def _body(self) -> ProgramItem:
        loops = [self._range(depth, self._nest.axis_of(depth), depth + 1) for depth in (1, 2)]
        starts = [start for start, _, _ in loops]
        counters = [self._pivot, *(start + Affine.counter(depth) for depth, start in enumerate(starts, _FIRST))]
        around = (*self._pivot_guards(), *(guard for _, _, guards in loops for guard in guards))
        items: tuple[ProgramItem, ...] = tuple(self._block(block, around, counters) for block in self._nest.blocks)
        for depth, (start, extent, _) in reversed(list(enumerate(loops, 1))):
            items = (CountedLoop(self._nest.loops[depth].shift + start, extent, 1, items),)
        return items[0]

    def _block(self, block: GuardedBlock, around: tuple[Affine, ...], counters: Sequence[Affine]) -> GuardedBlock:
        guards = (_substituted(guard, counters) for guard in block.guards)
        assignments = tuple(self._assignment(part, counters) for part in block.assignments)
        return GuardedBlock((*around, *guards), block.registers, assignments)

    def _copy(self, axis: int, is_after: bool) -> CountedLoop:
        """Keeps a row (axis 0) or a column of pivots, as far as the part reaches along the other axis."""
        other = 1 - axis
        depth = self._nest.element[other].terms[0][0]
        start, extent, guards = self._range(depth, other, _FIRST)
        along = start + Affine.counter(_FIRST) + self._nest.element[other].constant
        pivot = self._pivot + self._nest.offsets[axis]
        leaf = ElementLeaf(self._nest.array, _on_line(axis, pivot, along))
        leaves = Leaves()
        value = leaves.stand_in(leaf, self._cut.dtype)
        number, subscripts = self._cut.line(axis, is_after, self._pivot, along)
        target = ElementTarget(number, Update.STORE, subscripts)
        copy = Assignment(target, value, tuple(leaves.stand_ins), tuple(leaves.stand_ins.values()))
        block = GuardedBlock((*self._pivot_guards(), *guards), 0, (copy,))
        return CountedLoop(self._nest.loops[depth].shift + start, extent, 1, (block,))

    def _pivot_guards(self) -> tuple[Affine, ...]:
        """The last block may have fewer pivots."""
        is_even = self._cut.pivots % self._cut.side == 0
        return () if is_even else (self._cut.pivots - 1 - self._pivot,)

    def _range(self, depth: int, axis: int, new_depth: int) -> tuple[Affine, Affine, tuple[Affine, ...]]:
        """The first counter of a loop of the nest within the part, the extent from there, and guards beside."""
        last = self._nest.loops[depth].extent.constant
        offset = self._nest.offsets[axis] - self._nest.element[axis].constant
        begin = self._cut.side * Affine.counter(_BLOCK) + offset
        end = begin + self._cut.side
        low, high = {
            _BEFORE: (Affine(0), begin - 1),
            _AMONG: (begin, end - 1),
            _AFTER: (end, Affine(last)),
        }[self._at[axis]]
        blocks = ((0, self._cut.last),)
        guards = []
        start = low
        if low.range_over(blocks)[0] < 0:
            start = Affine(0)
            guards.append(Affine.counter(new_depth) - low)
        if high.range_over(blocks)[1] > last:
            guards.append(last - start - Affine.counter(new_depth))
        return start, high - start, tuple(guards)

    def _assignment(self, part: Assignment, counters: Sequence[Affine]) -> Assignment:
        target = part.target
        if isinstance(target, ElementTarget):
            target = replace(target, subscripts=tuple(_substituted(value, counters) for value in target.subscripts))
        return replace(part, target=target, leaves=tuple(self._leaf(leaf, counters) for leaf in part.leaves))

    def _leaf(self, leaf: Leaf, counters: Sequence[Affine]) -> Leaf:
        if isinstance(leaf, IndexLeaf):
            return IndexLeaf(_substituted(leaf.value, counters))
        if not isinstance(leaf, ElementLeaf):
            return leaf
        subscripts = tuple(_substituted(value, counters) for value in leaf.subscripts)
        axis = self._nest.pivot_axis(leaf)
        if axis is None or self._at[axis] == _AMONG:
            return ElementLeaf(leaf.array, subscripts)
        # Iterations before the pivot's own come before it changes its line.
        return ElementLeaf(*self._cut.line(axis, self._at[axis] == _AFTER, self._pivot, subscripts[1 - axis]))


def _on_line(axis: int, pivot: Affine, along: Affine) -> tuple[Affine, Affine]:
    """The subscripts of an element of a row (axis 0) or a column of pivots."""
    return (pivot, along) if axis == 0 else (along, pivot)


def _substituted(value: Affine, counters: Sequence[Affine]) -> Affine:
    """An affine function of other counters, each in the place of the one of its depth."""
    return sum((factor * counters[depth] for depth, factor in value.terms), Affine(value.constant))


def cut_at_pivots(program: LoopProgram) -> LoopProgram:
    """The program with those nests cut over their pivots that can be; arrays that it needs for that come last."""
    arrays = list(program.arrays)
    items = tuple(_cut_item(item, arrays) for item in program.items)
    return LoopProgram(tuple(arrays), items) if len(arrays) > len(program.arrays) else program


def _cut_item(item: ProgramItem, arrays: list[Array]) -> ProgramItem:
    nest = _nest(item, arrays)
    if nest is None:
        return item
    array = arrays[nest.array]
    side = _side(array)
    if any(length <= side for length in array.shape):
        return item
    if array.tile != (side, side):
        arrays[nest.array] = rechunk(array, (side, side))
    cut = _Cut(nest, arrays, side)
    arrays += cut.arrays
    return cut.loop()


__all__ = ["cut_at_pivots"]
