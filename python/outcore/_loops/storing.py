"""Assignments to elements, scalars among them: stores, and updates by sums, products, minima and maxima.

An update tells the core that the order of equal targets does not matter to the program beyond rounding. It takes the
value in the type of the array, so that a sum in a wider type is a store that reads its target instead; so is one whose
value may read the element that it updates.
"""

from __future__ import annotations

import ast
import operator
from typing import NamedTuple

from outcore._lazy.array import Array
from outcore._loops.bound import BoundElement, Register
from outcore._loops.expressions import OPERATORS, Expressions
from outcore._loops.functions import update_of
from outcore._loops.program import ElementLeaf, ElementTarget, RegisterLeaf, Update
from outcore._loops.refusal import quoted
from outcore._loops.values import Computed, Leaves, NumberTerm, as_array, combined, extreme_of, promoted, stored

_UPDATES: dict[type, Update] = {ast.Add: Update.ADD, ast.Sub: Update.ADD, ast.Mult: Update.MULTIPLY}
_EXTREMES = {"minimum": Update.MINIMUM, "maximum": Update.MAXIMUM}


class Stored(NamedTuple):
    """An assignment to an element: the target, the value in its type, and the leaves of the value."""

    target: ElementTarget
    value: Array
    leaves: Leaves


class Storing:
    """Assignments to elements at the point of the program where the expressions are."""

    def __init__(self, expressions: Expressions) -> None:
        self._expressions, self._listing = expressions, expressions.listing

    def assignment(self, target: ast.expr, value: ast.expr) -> Stored:
        """`a[i] = value`; `a[i] = min(a[i], value)` is an update."""
        extreme = self.extreme(target, value)
        if extreme is not None:
            return extreme
        leaves = Leaves()
        return self._store(target, self._expressions.term(value, leaves), leaves)

    def kept(self, target: ast.expr | ast.arg, value: object) -> Stored:
        """`a[i] = value` of a value that is evaluated: a number, an index or a register."""
        leaves = Leaves()
        if isinstance(value, Register):
            stand_in = leaves.stand_in(RegisterLeaf(value.number), value.dtype)
            return self._store(target, Computed(stand_in, value.is_weak), leaves)
        return self._store(target, self._expressions.as_term(target, value, leaves), leaves)

    def augmented(self, statement: ast.AugAssign) -> Stored:
        """`a[i] += value` and its like."""
        target = statement.target
        element = self._target(target)
        leaves = Leaves()
        term = self._expressions.term(statement.value, leaves)
        update = _UPDATES.get(type(statement.op))
        if update is not None and self._is_update(element, term, leaves, update):
            value = self._in_type(statement, term, element)
            if isinstance(statement.op, ast.Sub):
                value = self._expressions.tried(statement, operator.neg, value)
            return Stored(_target_of(element, update), value, leaves)
        call = OPERATORS.get(type(statement.op))
        if call is None:
            raise self._listing.refusal(statement, f"{quoted(statement)}: the operator is not taken")
        before = self._expressions.read(element, leaves)
        return self._store(target, self._expressions.tried(statement, combined, call, before, term), leaves)

    def _target(self, target: ast.expr | ast.arg) -> BoundElement:
        element = self._expressions.element(target)
        if element is None:
            assert isinstance(target, ast.Subscript)
            raise self._listing.refusal(target, f"{quoted(target.value)} is no array")
        return element

    def _store(self, target: ast.expr | ast.arg, term: NumberTerm, leaves: Leaves) -> Stored:
        element = self._target(target)
        value = self._in_type(target, term, element)
        return Stored(_target_of(element, Update.STORE), value, leaves)

    def _in_type(self, node: ast.AST, term: NumberTerm, element: BoundElement) -> Array:
        """A number in the type of the element; while that of a scalar is not known, in its own."""
        if not self._expressions.scalars.is_typed(element.array):
            return as_array(term)
        return self._expressions.tried(node, stored, term, element.array.array.dtype)

    def extreme(self, target: ast.expr, value: ast.expr) -> Stored | None:
        """The update that a smallest or largest of the target and other numbers is."""
        if not isinstance(value, ast.Call) or value.keywords or len(value.args) < 2:
            return None
        name = update_of(self._expressions.listed.resolved(value.func))
        if name is None:
            return None
        element = self._target(target)
        others = [part for part in value.args if not self._is_element(part, element)]
        if len(others) != len(value.args) - 1:
            return None
        leaves = Leaves()
        terms = [self._expressions.term(part, leaves) for part in others]
        term = self._expressions.tried(value, extreme_of, name, terms)
        if not self._is_update(element, term, leaves, _EXTREMES[name]):
            return None
        number = self._in_type(value, term, element)
        return Stored(_target_of(element, _EXTREMES[name]), number, leaves)

    def _is_element(self, node: ast.expr, element: BoundElement) -> bool:
        """Whether an expression is the element that is assigned."""
        return isinstance(node, (ast.Subscript, ast.Name)) and self._expressions.element(node) == element

    def _is_update(self, element: BoundElement, term: NumberTerm, leaves: Leaves, update: Update) -> bool:
        """Whether the update gives the bits of the operation in NumPy's types, and reads no target."""
        dtype = element.array.array.dtype
        is_sum = update in (Update.ADD, Update.MULTIPLY)
        if (is_sum and dtype.kind == "b") or (not is_sum and dtype.kind == "c"):
            return False
        common = promoted((Computed(element.array.array, False), term))
        # Sums and products of integers wrap around alike in every width.
        wraps = is_sum and dtype.kind in "iu" and common.kind in "iu" and isinstance(term, Computed)
        if common != dtype and not wraps:
            return False
        domain = self._expressions.domain
        return all(
            any(domain.is_never_zero(a - b) for a, b in zip(leaf.subscripts, element.subscripts, strict=True))
            for leaf in leaves.stand_ins
            if isinstance(leaf, ElementLeaf) and leaf.array == element.array.number
        )


def _target_of(element: BoundElement, update: Update) -> ElementTarget:
    return ElementTarget(element.array.number, update, element.subscripts)


__all__ = ["Stored", "Storing"]
