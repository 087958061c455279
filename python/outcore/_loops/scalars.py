"""Scalars that are carried over loops, as elements of arrays that the program makes for itself.

Scalar expansion (Padua and Wolfe, "Advanced compiler optimizations for supercomputers", CACM 1986): the array has an
axis for each loop around the scalar every iteration of which assigns it before it is used, so that these iterations
stay independent; loops that carry it share one element. A loop whose iterations store to the same elements of other
arrays is in order without it, and gets no axis.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import NamedTuple

from outcore._lazy.array import Array
from outcore._loops.affine import Affine
from outcore._loops.bound import BoundArray, BoundElement
from outcore._loops.bounds import Domain
from outcore._loops.kinds import ScalarKind, joined
from outcore._loops.reaching import Definition, Facts, LoopSpan, Web, Webs
from outcore._loops.syntax import Listed
from outcore._standard.creation import zeros
from outcore._standard.manipulation import rechunk


class Coordinate(NamedTuple):
    """The place of an iteration along an axis for its loop, and the length of that axis."""

    value: Affine
    length: int


class ScalarAxis(NamedTuple):
    """An axis for a loop: by its variable and an offset, or by the number of the iteration, where there is none."""

    offset: int | None
    length: int

    def at(self, variable: Affine, iteration: Affine) -> Coordinate:
        """The place of an iteration."""
        return Coordinate(iteration if self.offset is None else variable + self.offset, self.length)


def span_of(variable: Affine, stride: int, domain: Domain) -> LoopSpan:
    """The span of the innermost loop of a domain, without its guards."""
    interval = Domain(domain.loops).range_of(variable) if stride == 1 else None
    return LoopSpan(interval, domain.box[-1][1] + 1)


def axis_of(span: LoopSpan) -> ScalarAxis:
    """The axis for a loop.

    With the variable the axis is cut where those of arrays with the same subscript are. The number of the iteration
    takes over where the variable skips values, or leaves most of them to other iterations of the loops around.
    """
    if span.interval is None:
        return ScalarAxis(None, span.iterations)
    low, high = span.interval
    length = high - low + 1
    offset = 0 if 0 <= low <= length else -low
    return ScalarAxis(offset, high + offset + 1) if length <= 2 * span.iterations else ScalarAxis(None, span.iterations)


class CarriedScalars:
    """The scalars of a program, and the kinds of their definitions as far as they are known."""

    def __init__(self, listed: Listed, carried: frozenset[ast.Name], facts: Facts | None = None) -> None:
        self.carried = carried
        self._webs, self._facts = Webs(listed, carried, facts), facts
        self._kinds: dict[Definition, dict[ScalarKind, None]] = {}
        self.has_grown = False
        self.is_settled = False
        self.mixed: set[ast.Name] = set()  # uses of numbers that are beside, and whose types change with a scalar's

    def axis(self, loop: ast.For, span: LoopSpan) -> ScalarAxis:
        """The axis for a loop, the same at all visits; the span is that of the first ones, which tell all."""
        return axis_of(self._facts.spans[loop] if self._facts else span)

    def web(self, node: ast.AST) -> Web | None:
        """The scalar that a definition or use is of."""
        return self._webs.of.get(node)

    def is_carried(self, use: ast.Name) -> bool:
        """Whether another block or iteration has assigned what the name holds."""
        return use in self.carried

    def is_unassigned(self, use: ast.Name) -> bool:
        """Whether the name may have no value there."""
        return use in self._webs.unassigned

    def is_used_beside(self, definition: Definition) -> bool:
        """Whether statements beside the definition use the number."""
        web = self._webs.of[definition]
        return any(definition in self._webs.reaching[use] for use in web.uses if use not in self.carried)

    def is_used(self, definition: Definition) -> bool:
        """Whether a definition reaches any use."""
        return any(definition in parts for parts in self._webs.reaching.values())

    def is_update(self, target: ast.Name, use: ast.Name) -> bool:
        """Whether the assignment goes to the scalar that is used."""
        return self.web(target) is not None and self.web(target) is self.web(use)

    def kinds(self, use: ast.Name) -> list[ScalarKind]:
        """The kinds that the scalar has at a use."""
        return list(dict.fromkeys(kind for part in self._webs.reaching[use] for kind in self._kinds.get(part, ())))

    def kinds_assigned(self, definition: Definition) -> list[ScalarKind]:
        """The kinds that a definition assigns."""
        return list(self._kinds.get(definition, ()))

    def held(self, web: Web) -> ScalarKind:
        """The kind in which memory holds a scalar."""
        return joined(kind for part in web.definitions for kind in self._kinds.get(part, ()))

    def tile(self, web: Web) -> tuple[int, ...] | None:
        """The tile of the arrays beside, along the loops that have an axis."""
        return self._facts.tile(web.loops) if self._facts and web.loops else None

    def add_mixed(self, definition: Definition) -> None:
        """Notes that a number beside has several kinds by turns, so that it is held in memory as well."""
        self.mixed |= {use for use, parts in self._webs.reaching.items() if definition in parts}

    def add_kind(self, definition: Definition, kind: ScalarKind) -> None:
        """Notes a kind that a definition assigns."""
        known = self._kinds.setdefault(definition, {})
        self.has_grown |= kind not in known
        known[kind] = None


class ScalarElements:
    """Elements of the scalars, in arrays that are made when one of them is first assigned."""

    def __init__(self, scalars: CarriedScalars, add_array: Callable[[str, Array], BoundArray]) -> None:
        self._scalars = scalars
        self.coordinates: dict[ast.For, Coordinate] = {}  # of the loops around
        self._add_array = add_array
        self._arrays: dict[Web, BoundArray] = {}
        self._kinds: dict[int, ScalarKind] = {}  # by the numbers of arrays

    def of(self, node: ast.AST) -> BoundElement | None:
        """The element, in this iteration, of the scalar that a definition or use is of."""
        web = self._scalars.web(node)
        return None if web is None else self._element(web)

    def is_carried(self, use: ast.Name) -> bool:
        """Whether another block or iteration has assigned what the name holds."""
        return self._scalars.is_carried(use)

    def is_unassigned(self, use: ast.Name) -> bool:
        """Whether the name may have no value there."""
        return self._scalars.is_settled and self._scalars.is_unassigned(use)

    def holds(self, array: BoundArray) -> bool:
        """Whether elements of the array are scalars."""
        return array.number in self._kinds

    def is_typed(self, array: BoundArray) -> bool:
        """Whether the type of the array is certain."""
        return self._scalars.is_settled or not self.holds(array)

    def is_weak(self, array: BoundArray) -> bool:
        """Whether elements of the array are scalars that give way to others, as Python's numbers do."""
        return self.holds(array) and self._kinds[array.number].is_weak

    def _element(self, web: Web) -> BoundElement:
        axes = [self.coordinates[loop] for loop in web.loops] or [Coordinate(Affine(0), 1)]
        if web not in self._arrays:
            shape = tuple(axis.length for axis in axes)
            kind, tile = self._scalars.held(web), self._scalars.tile(web)
            values = zeros(shape, dtype=kind.dtype)
            array = self._add_array(web.name, rechunk(values, tile) if tile else values)
            self._arrays[web], self._kinds[array.number] = array, kind
        return BoundElement(self._arrays[web], tuple(axis.value for axis in axes))


__all__ = ["CarriedScalars", "ScalarAxis", "ScalarElements", "axis_of", "span_of"]
