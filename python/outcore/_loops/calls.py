"""Calls of functions of whole slices, bound to arguments: loops along slices, and the right side as a function."""

from __future__ import annotations

import ast
import copy
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from outcore._base.types import DType, NDArray
from outcore._loops import reasons
from outcore._loops.affine import Affine
from outcore._loops.bound import BoundArray, OutOfReachError, Register
from outcore._loops.called import Assigning, parts_of, target_of
from outcore._loops.checking import DEPTH_MAX
from outcore._loops.conditions import Conjunction
from outcore._loops.expressions import Expressions
from outcore._loops.piecewise import Piecewise
from outcore._loops.program import (
    CalledBlock,
    CountedLoop,
    ElementLeaf,
    ElementTarget,
    IndexLeaf,
    ProgramItem,
    Update,
)
from outcore._loops.ranges import LoopRange, loop_range, refuse_end
from outcore._loops.refusal import quoted
from outcore._loops.slices import SlicedAxis, ends_of, sliced_axes

_IN_PLACE: dict[type, Callable[..., object]] = {
    ast.Add: operator.iadd,
    ast.Sub: operator.isub,
    ast.Mult: operator.imul,
    ast.Div: operator.itruediv,
    ast.FloorDiv: operator.ifloordiv,
    ast.Mod: operator.imod,
    ast.Pow: operator.ipow,
    ast.MatMult: operator.imatmul,
    ast.BitAnd: operator.iand,
    ast.BitOr: operator.ior,
    ast.BitXor: operator.ixor,
    ast.LShift: operator.ilshift,
    ast.RShift: operator.irshift,
}
_FORM = "in place"  # names that no source has


class _Slice(NamedTuple):
    """A slice or an element of an array: its subscripts, as far as loops along it are known."""

    node: ast.Subscript
    array: BoundArray
    axes: list[SlicedAxis]
    ranges: dict[int, LoopRange]  # by axis


class _Argument(NamedTuple):
    """An argument of the right side: what the program hands over, and what Python makes of it."""

    leaf: ElementLeaf | IndexLeaf
    made: Callable[[NDArray], object]


class SliceCalls:
    """Statements with calls of functions of slices, at the point of the program where the expressions are."""

    def __init__(self, expressions: Expressions) -> None:
        self._expressions, self._listing = expressions, expressions.listing

    def bound(self, statement: Assigning, guards: Conjunction) -> ProgramItem:
        """The loops along the slices of a statement, with the call within."""
        expressions = self._expressions
        node = target_of(statement)
        assert isinstance(node, ast.Subscript)
        parts = list(parts_of(statement.value, self._is_array))
        target = self._slice(node)
        reads = self._reads(statement, parts)
        for part, read in reads.items():
            self._refuse_empty(part, read, target)
        loops = _SliceLoops(len(expressions.domain.loops))
        written = loops.along(target, is_target=True)
        along = {part: loops.along(read) for part, read in reads.items()}
        if not 0 < len(loops.ranges) <= DEPTH_MAX - loops.first:
            raise self._listing.refusal(statement, reasons.many_slices(statement, DEPTH_MAX))
        outer, domain = expressions.domain, expressions.domain
        for of in loops.ranges:
            domain = domain.within(of.extent, of.step)
        expressions.domain = domain
        to = ElementTarget(target.array.number, Update.STORE, self._subscripts(target, written))
        leaves = {
            part: ElementLeaf(read.array.number, self._subscripts(read, along[part])) for part, read in reads.items()
        }
        expressions.domain = outer
        call = _RightSide(expressions, statement, target, parts, leaves)
        block = CalledBlock(guards, call.function, len(loops.ranges), to, tuple(call.leaves))
        items: tuple[ProgramItem, ...] = (block,)
        for of in reversed(loops.ranges):
            items = (CountedLoop(Affine(0), of.extent, of.step, items),)
        return items[0]

    def _reads(self, statement: Assigning, parts: Sequence[ast.expr]) -> dict[ast.expr, _Slice]:
        """The slices and elements that a statement reads, by the parts that stand for them."""
        asked = [*parts, target_of(statement)] if isinstance(statement, ast.AugAssign) else parts
        reads: dict[ast.expr, _Slice] = {}
        for part in asked:
            if isinstance(part, ast.Subscript):
                reads[part] = self._slice(part)
            elif isinstance(part, ast.Name) and self._is_array(part):
                reads[part] = self._slice(_whole(part))
        return reads

    def _is_array(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and isinstance(self._expressions.names.get(node.id), BoundArray)

    def _slice(self, node: ast.Subscript) -> _Slice:
        """A slice with the ranges of its elements, over the iterations of the loops around."""
        assert isinstance(node.value, ast.Name)
        array = self._expressions.names[node.value.id]
        assert isinstance(array, BoundArray)
        axes = sliced_axes(node, len(array.array.shape))
        if axes is None:
            raise self._listing.refusal(node, reasons.no_slice(node, len(array.array.shape)))
        ranges = {}
        for end in ends_of(node):
            refuse_end(self._expressions, end)
        for at, axis in enumerate(axes):
            if axis.elements is not None:
                ranges[at] = loop_range(self._expressions, axis.elements)
                if ranges[at].guards:
                    raise self._listing.refusal(node, reasons.extreme_slice(node))
        return _Slice(node, array, axes, ranges)

    def _refuse_empty(self, node: ast.expr, read: _Slice, target: _Slice) -> None:
        """Refuses slices without elements at times, unless nothing is assigned then."""
        assigned = [of.extent for of in target.ranges.values()]
        if any(not of.is_never_empty and of.extent not in assigned for of in read.ranges.values()):
            raise self._listing.refusal(node, reasons.empty_slice(node))

    def _subscripts(self, of: _Slice, depths: Mapping[int, int]) -> tuple[Affine, ...]:
        expressions, subscripts = self._expressions, []
        for at, axis in enumerate(of.axes):
            if at in of.ranges:
                place = of.ranges[at].start + of.ranges[at].step * Affine.counter(depths[at])
            else:
                assert axis.subscript is not None
                place = expressions.integer(axis.subscript, reasons.SUBSCRIPT)
            length = of.array.array.shape[at]
            node = axis.subscript or of.node
            subscripts.append(expressions.bounds.subscript(of.node, node, place, at, length, expressions.domain))
        return tuple(subscripts)


class _SliceLoops:
    """Loops along slices: of the target each its own, of what is read one for each length."""

    def __init__(self, first: int) -> None:
        self.first = first
        self.ranges: list[LoopRange] = []
        self._shared = 0

    def along(self, of: _Slice, is_target: bool = False) -> dict[int, int]:
        """The depths of the loops along a slice, by its axes. The target comes before all others."""
        depths: dict[int, int] = {}
        for axis, part in of.ranges.items():
            depths[axis] = self._depth(part, list(depths.values()))
        self._shared = len(self.ranges) if is_target else self._shared
        return depths

    def _depth(self, part: LoopRange, taken: Sequence[int]) -> int:
        for place, known in enumerate(self.ranges[self._shared :], self._shared):
            if self.first + place not in taken and (known.extent, known.step) == (part.extent, part.step):
                return self.first + place
        self.ranges.append(part)
        return self.first + len(self.ranges) - 1


def _whole(node: ast.Name) -> ast.Subscript:
    """An array without subscripts, as all of it."""
    return ast.copy_location(ast.Subscript(node, ast.Tuple([], ast.Load()), ast.Load()), node)


def _depth_of(leaf: ElementLeaf) -> int:
    """The number of loops within which the place of an element is known."""
    return max((depth + 1 for subscript in leaf.subscripts for depth, _ in subscript.terms), default=0)


def _read_only(array: NDArray) -> NDArray:
    array.setflags(write=False)
    return array


class _RightSide:
    """The right side of a statement as a function of a shape, and of arrays and numbers of the program."""

    def __init__(
        self,
        expressions: Expressions,
        statement: Assigning,
        target: _Slice,
        parts: Sequence[ast.expr],
        slices: dict[ast.expr, ElementLeaf],
    ) -> None:
        self._expressions, self._listing = expressions, expressions.listing
        self._slices = slices
        outer = len(expressions.domain.loops)
        self._sliced = {part for part, leaf in slices.items() if _depth_of(leaf) > outer}
        self._arguments: list[_Argument] = []
        self._constants: dict[str, object] = {}
        body = self._body(statement.value, {part: self._name(part) for part in parts})
        if isinstance(statement, ast.AugAssign):
            before = self._before(target)
            form = ast.Name(_FORM, ast.Load())
            self._constants[_FORM] = _IN_PLACE[type(statement.op)]
            body = ast.copy_location(ast.Call(form, [ast.Name(before, ast.Load()), body], []), statement)
        value = self._compiled(statement, body)
        self.leaves = [argument.leaf for argument in self._arguments]
        self.function = _filling(value, [argument.made for argument in self._arguments], target.array.array.dtype)
        self.function.__name__ = quoted(statement)

    def _argument(self, leaf: ElementLeaf | IndexLeaf, made: Callable[[NDArray], object]) -> str:
        argument = _Argument(leaf, made)
        if argument not in self._arguments:
            self._arguments.append(argument)
        return f"argument {self._arguments.index(argument)}"

    def _constant(self, value: object) -> str:
        name = f"constant {len(self._constants)}"
        self._constants[name] = value
        return name

    def _before(self, target: _Slice) -> str:
        """The target as it is before, which the operator may change."""
        leaf = self._slices[target.node]
        self._arguments.append(_Argument(leaf, np.asarray if target.ranges else operator.itemgetter(())))
        return f"argument {len(self._arguments) - 1}"

    def _name(self, part: ast.expr) -> str:
        """The name of a part in the function, as an argument or a constant."""
        if part in self._slices:
            leaf = self._slices[part]
            return self._argument(leaf, _read_only if part in self._sliced else operator.itemgetter(()))
        if not isinstance(part, ast.Name):
            value = self._expressions.known(part, reasons.VALUE)
            return self._constant(value.constant if isinstance(value, Affine) else value)
        element = self._expressions.element(part)
        if element is not None:
            if self._expressions.scalars.is_unassigned(part):
                raise self._listing.refusal(part, reasons.uncertain(part.id))
            is_weak = self._expressions.scalars.is_weak(element.array)
            leaf = ElementLeaf(element.array.number, element.subscripts)
            return self._argument(leaf, np.ndarray.item if is_weak else operator.itemgetter(()))
        if part.id not in self._expressions.listed.names:
            return self._constant(self._expressions.listed.free(part))
        if part.id not in self._expressions.names:
            raise self._listing.refusal(part, reasons.uncertain(part.id))
        return self._of_value(part, self._expressions.names[part.id])

    def _of_value(self, part: ast.Name, value: object) -> str:
        match value:
            case Register():
                raise OutOfReachError(part)
            case Piecewise():
                raise self._listing.refusal(part, reasons.extreme(part, "a number beside slices"))
            case Affine(is_constant=True):
                return self._constant(value.constant)
            case Affine():
                self._expressions.bounds.width(part, value, self._expressions.domain)
                return self._argument(IndexLeaf(value), np.ndarray.item)
        return self._constant(value)

    def _body(self, value: ast.expr, names: dict[ast.expr, str]) -> ast.expr:
        """The right side with names in the place of parts."""
        copied = copy.deepcopy(value)
        places = {
            id(new): names[old] for old, new in zip(ast.walk(value), ast.walk(copied), strict=True) if old in names
        }
        replaced = _Replacing(places).visit(copied)
        assert isinstance(replaced, ast.expr)
        return replaced

    def _compiled(self, statement: Assigning, body: ast.expr) -> Callable[..., object]:
        names = [f"argument {number}" for number in range(len(self._arguments))]
        arguments = ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])
        function = ast.copy_location(ast.Lambda(arguments, body), statement)
        tree = ast.fix_missing_locations(ast.Expression(function))
        ast.increment_lineno(tree, self._listing.above)
        made: Callable[..., object] = eval(compile(tree, self._listing.file, "eval"), self._constants)
        return made


class _Replacing(ast.NodeTransformer):
    """Puts names in the place of nodes, which are known by their identities."""

    def __init__(self, places: dict[int, str]) -> None:
        self._places = places

    def visit(self, node: ast.AST) -> ast.AST:
        name = self._places.get(id(node))
        if name is None:
            return self.generic_visit(node)
        return ast.copy_location(ast.Name(name, ast.Load()), node)


def _filling(
    value: Callable[..., object], made: Sequence[Callable[[NDArray], object]], dtype: DType
) -> Callable[..., NDArray]:
    """A function that assigns a value to an array of a shape, as NumPy does."""

    def filled(shape: tuple[int, ...], *arrays: NDArray) -> NDArray:
        array = np.empty(shape or 1, dtype=dtype)
        array[... if shape else 0] = value(*(make(part) for make, part in zip(made, arrays, strict=True)))
        return array

    return filled


__all__ = ["SliceCalls"]
