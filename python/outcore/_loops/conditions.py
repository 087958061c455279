"""Conditions of `if` as disjoint conjunctions of affine inequalities, for the branch that is taken and the other."""

from __future__ import annotations

import ast
import operator
from typing import NamedTuple, TypeAlias

from outcore._loops import reasons
from outcore._loops.affine import Affine
from outcore._loops.bounds import Domain
from outcore._loops.expressions import COMPARISONS, Expressions
from outcore._loops.refusal import quoted
from outcore._loops.values import is_plain

Conjunction: TypeAlias = tuple[Affine, ...]  # each part is >= 0

_CONJUNCTIONS_MAX = 64


class Cases(NamedTuple):
    """Conjunctions of which exactly one holds in each iteration: those of the condition, and those of its opposite."""

    holds: list[Conjunction]
    fails: list[Conjunction]


_ALWAYS = Cases([()], [])
_NEVER = Cases([], [()])


class Conditions:
    """Conditions at one point of the program."""

    def __init__(self, expressions: Expressions, domain: Domain) -> None:
        self._expressions, self._domain = expressions, domain

    def cases(self, node: ast.expr) -> Cases:
        """Both sides of a condition, without conjunctions that hold in no iteration. Refuses what is not affine."""
        cases = self._cases(node)
        if max(map(len, cases)) > _CONJUNCTIONS_MAX:
            said = f"{quoted(node)} comes to more than {_CONJUNCTIONS_MAX} disjoint conjunctions"
            raise self._expressions.listing.refusal(node, said)
        return cases

    def _cases(self, node: ast.expr) -> Cases:
        if isinstance(node, ast.BoolOp):
            total = self.cases(node.values[0])
            for part in node.values[1:]:
                total = self._joined(total, self.cases(part), isinstance(node.op, ast.And))
            return total
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            holds, fails = self.cases(node.operand)
            return Cases(fails, holds)
        if isinstance(node, ast.Compare):
            return self._chain(node)
        value = self._expressions.known(node, reasons.CONDITION)
        if isinstance(value, Affine):
            return self._compared(operator.ne, value)
        if is_plain(value):
            return _ALWAYS if value else _NEVER
        raise self._expressions.listing.refusal(node, f"{quoted(node)} is no condition on integers")

    def _chain(self, node: ast.Compare) -> Cases:
        sides = [node.left, *node.comparators]
        values = [self._expressions.known(side, reasons.CONDITION) for side in sides]
        total = _ALWAYS
        for number, op in enumerate(node.ops):
            call, (left, right) = COMPARISONS[type(op)], values[number : number + 2]
            if isinstance(left, Affine) or isinstance(right, Affine):
                a, b = (self._expressions.integer(side, reasons.CONDITION) for side in sides[number : number + 2])
                self._expressions.bounds.width(node, a - b, self._domain)
                cases = self._compared(call, a - b)
            else:
                cases = _ALWAYS if self._expressions.tried(node, call, left, right) else _NEVER
            total = self._joined(total, cases, True)
        return total

    def _compared(self, call: object, value: Affine) -> Cases:
        """Comparisons of a value with 0."""
        above, below = (value - 1,), (-value - 1,)
        if call in (operator.eq, operator.ne):
            equal, other = self._possible([(value, -value)]), self._possible([above, below])
            return Cases(equal, other) if call is operator.eq else Cases(other, equal)
        kept = {
            operator.lt: (below, (value,)),
            operator.ge: ((value,), below),
            operator.gt: (above, (-value,)),
            operator.le: ((-value,), above),
        }
        holds, fails = kept[call]  # type: ignore[index]  # one of the comparisons
        return Cases(self._possible([holds]), self._possible([fails]))

    def _joined(self, first: Cases, second: Cases, is_and: bool) -> Cases:
        """`and` of two conditions, or `or`, which is the opposite of `and` of the opposites."""
        if not is_and:
            fails, holds = self._joined(Cases(*first[::-1]), Cases(*second[::-1]), True)
            return Cases(holds, fails)
        holds = [a + b for a in first.holds for b in second.holds]
        fails = first.fails + [a + b for a in first.holds for b in second.fails]
        return Cases(self._possible(holds), self._possible(fails))

    def _possible(self, conjunctions: list[Conjunction]) -> list[Conjunction]:
        """Conjunctions that hold somewhere, without the parts that hold everywhere."""
        kept = []
        for conjunction in conjunctions:
            if self._domain.where(conjunction).is_empty:
                continue
            parts = dict.fromkeys(part for part in conjunction if part.range_over(self._domain.box)[0] < 0)
            kept.append(tuple(parts))
        return kept


__all__ = ["Cases", "Conditions", "Conjunction"]
