"""Assignments to slices as loops over their elements: `a[i, 1:] = b[:-1]` as NumPy has it.

NumPy computes the right side before it assigns anything, so a statement is taken where no element that it assigns is
another that it reads. The slices that it reads have as many elements as those that it assigns.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterator
from typing import NamedTuple

from outcore._loops.called import Assigning
from outcore._loops.refusal import Listing, keep_written, quoted

_ALTERNATIVES = {
    "min": "write np.minimum",
    "max": "write np.maximum",
}


class EqualCounts(NamedTuple):
    """A slice that is read, and two numbers of elements that must be equal: its own, and that of what is assigned."""

    read: ast.Subscript
    elements: ast.expr
    assigned: ast.expr


class SliceEnd(NamedTuple):
    """The end of a slice, and the length of its axis: NumPy counts one below 0 from there, and loops do not."""

    end: ast.expr
    length: ast.expr


class SlicedAxis(NamedTuple):
    """The subscript of an axis, or the range of its elements that a slice takes."""

    subscript: ast.expr | None
    elements: ast.Call | None


class Slices:
    """The assignments to slices of a function, which are loops in its tree then, but for those that call functions."""

    def __init__(self, definition: ast.FunctionDef, listing: Listing, is_called: Callable[[Assigning], bool]) -> None:
        self._listing, self._is_called = listing, is_called
        self.called: set[ast.stmt] = set()  # statements that call functions of whole slices
        self._taken = {node.id for node in ast.walk(definition) if isinstance(node, ast.Name)}
        self._numbers = itertools.count()
        self.counts: dict[ast.For, list[EqualCounts]] = {}  # by the outermost loop of a statement
        self.ends: dict[ast.For, list[SliceEnd]] = {}  # likewise
        self.depths: dict[ast.stmt, int] = {}  # loops that a statement has of its slices
        definition.body = list(self._statements(definition.body))

    def _statements(self, statements: list[ast.stmt]) -> Iterator[ast.stmt]:
        for statement in statements:
            match statement:
                case ast.For():
                    statement.body = list(self._statements(statement.body))
                case ast.If():
                    statement.body = list(self._statements(statement.body))
                    statement.orelse = list(self._statements(statement.orelse))
                case ast.Assign(targets=[ast.Subscript() as target]) | ast.AugAssign(target=ast.Subscript() as target):
                    if self._is_called(statement):
                        self.called.add(statement)
                    else:
                        statement = self._loops(statement, target)
            yield statement

    def _loops(self, statement: Assigning, target: ast.Subscript) -> ast.stmt:
        """The statement within loops over its slices; the statement itself where it has none that are taken."""
        slices = _slices(target)
        if not slices:
            return statement
        self._refuse_choices(statement.value)
        variables = [self._variable() for _ in slices]
        counts = [_count(target, axis, part) for axis, part in slices]
        checks: list[EqualCounts] = []
        ends = ends_of(target)
        for read in list(ast.walk(statement.value)):
            parts = _slices(read) if isinstance(read, ast.Subscript) else []
            if not isinstance(read, ast.Subscript) or not parts or len(parts) > len(slices):
                continue
            ends += ends_of(read)
            # Axes are matched from the last on.
            first = len(slices) - len(parts)
            original = ast.copy_location(ast.Subscript(read.value, read.slice, read.ctx), read)
            for (axis, part), assigned in zip(parts, counts[first:], strict=True):
                checks.append(EqualCounts(original, _count(original, axis, part), assigned))
            _subscribe(read, variables[first:])
        _subscribe(target, variables)
        self.depths[statement] = len(variables)
        inner: ast.stmt = statement
        for variable, count in reversed(list(zip(variables, counts, strict=True))):
            call = ast.Call(ast.Name("range", ast.Load()), [count], [])
            inner = ast.For(ast.Name(variable, ast.Store()), call, [inner], [])
            ast.fix_missing_locations(ast.copy_location(inner, statement))
        assert isinstance(inner, ast.For)
        self.counts[inner], self.ends[inner] = checks, ends
        return inner

    def _variable(self) -> str:
        names = (f"element{number}" for number in self._numbers)
        return next(name for name in names if name not in self._taken)

    def _refuse_choices(self, value: ast.expr) -> None:
        """Refuses choices that NumPy refuses of arrays, since they ask for one truth of all elements."""
        for node in ast.walk(value):
            asked: ast.expr
            match node:
                case ast.IfExp(test=asked) | (ast.BoolOp() as asked) | ast.UnaryOp(op=ast.Not(), operand=asked):
                    advice = "write np.where, & and |"
                case ast.Call(func=ast.Name(id=("min" | "max") as name)) as asked:
                    advice = _ALTERNATIVES[name]
                case _:
                    continue
            if any(isinstance(part, ast.Subscript) and _slices(part) for part in ast.walk(asked)):
                raise self._listing.refusal(node, f"{quoted(node)} asks for one truth of whole slices: {advice}")


def sliced_axes(node: ast.Subscript, rank: int) -> list[SlicedAxis] | None:
    """The axes of an array as subscripts have them, and whole where none is; None for subscripts that are not taken."""
    parts = _parts(node)
    if len(parts) > rank or any(isinstance(part, ast.Constant) and part.value in (None, ...) for part in parts):
        return None
    axes = []
    for axis, part in enumerate([*parts, *(ast.Slice() for _ in range(rank - len(parts)))]):
        if not isinstance(part, ast.Slice):
            axes.append(SlicedAxis(part, None))
            continue
        step = _step(part)
        if step is None:
            return None
        begin = _begin(node.value, axis, part) or ast.Constant(0)
        end = _length(node.value, axis) if part.upper is None else _end(node.value, axis, part.upper)
        elements = ast.Call(ast.Name("range", ast.Load()), [begin, end, ast.Constant(step)], [])
        axes.append(SlicedAxis(None, ast.fix_missing_locations(ast.copy_location(elements, node))))
    return axes


def _parts(node: ast.Subscript) -> list[ast.expr]:
    return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]


def _slices(node: ast.Subscript) -> list[tuple[int, ast.Slice]]:
    """The slices of an array of that name, by axis; none where one of them is not taken."""
    slices = [(axis, part) for axis, part in enumerate(_parts(node)) if isinstance(part, ast.Slice)]
    is_taken = isinstance(node.value, ast.Name) and all(_step(part) is not None for _, part in slices)
    return slices if is_taken else []


def _step(part: ast.Slice) -> int | None:
    """The step of a slice; nothing where it is no number above 0."""
    match part.step:
        case None:
            return 1
        case ast.Constant(value=int() as step) if step > 0:
            return step
    return None


def _end(array: ast.expr, axis: int, end: ast.expr) -> ast.expr:
    """A begin or an end of a slice, from the begin of the axis."""
    match end:
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int())):
            return ast.BinOp(_length(array, axis), ast.Sub(), end.operand)
    return end


def _begin(array: ast.expr, axis: int, part: ast.Slice) -> ast.expr | None:
    """The begin of a slice; nothing where it is that of the axis."""
    match part.lower:
        case None | ast.Constant(value=0):
            return None
        case lower:
            return _end(array, axis, lower)


def _length(array: ast.expr, axis: int) -> ast.expr:
    shape = ast.Attribute(array, "shape", ast.Load())
    return ast.Subscript(shape, ast.Constant(axis), ast.Load())


def _count(node: ast.Subscript, axis: int, part: ast.Slice) -> ast.expr:
    """The number of elements of a slice."""
    step = _step(part) or 1
    count = _length(node.value, axis) if part.upper is None else _end(node.value, axis, part.upper)
    begin = _begin(node.value, axis, part)
    if begin is not None:
        count = ast.BinOp(count, ast.Sub(), begin)
    if step > 1:
        rounded = ast.BinOp(count, ast.Add(), ast.Constant(step - 1))
        count = ast.BinOp(rounded, ast.FloorDiv(), ast.Constant(step))
    return ast.fix_missing_locations(ast.copy_location(count, part))


def ends_of(node: ast.Subscript) -> list[SliceEnd]:
    """The ends of slices that are no constants."""
    ends = [(axis, part.upper) for axis, part in _slices(node)]
    return [
        SliceEnd(end, ast.fix_missing_locations(ast.copy_location(_length(node.value, axis), end)))
        for axis, end in ends
        if end is not None and _end(node.value, axis, end) is end
    ]


def _subscribe(node: ast.Subscript, variables: list[str]) -> None:
    """Puts elements in the place of slices."""
    keep_written(node)
    names = iter(variables)
    parts: list[ast.expr] = []
    for axis, part in enumerate(_parts(node)):
        if not isinstance(part, ast.Slice):
            parts.append(part)
            continue
        place: ast.expr = ast.Name(next(names), ast.Load())
        step = _step(part) or 1
        if step > 1:
            place = ast.BinOp(ast.Constant(step), ast.Mult(), place)
        begin = _begin(node.value, axis, part)
        if begin is not None:
            place = ast.BinOp(begin, ast.Add(), place)
        parts.append(ast.copy_location(place, part))
    node.slice = parts[0] if len(parts) == 1 else ast.copy_location(ast.Tuple(parts, ast.Load()), node.slice)
    ast.fix_missing_locations(node)


__all__ = ["EqualCounts", "SliceEnd", "SlicedAxis", "Slices", "ends_of", "sliced_axes"]
