"""Statements whose scalars have several types by turns: the types that they assign, and whether memory may hold one."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from itertools import product

from outcore._functions.compiled import Jitted
from outcore._loops import reasons
from outcore._loops.expressions import Expressions
from outcore._loops.kinds import ScalarKind, as_held, as_taken, is_same
from outcore._loops.program import ElementLeaf
from outcore._loops.reaching import Definition
from outcore._loops.scalars import CarriedScalars
from outcore._loops.values import Leaves, NumberTerm

_TURNS_MAX = 64  # combinations of kinds of the scalars of one statement


class Turns:
    """Values of statements for each combination of the kinds that their scalars have by turns."""

    def __init__(self, expressions: Expressions, scalars: CarriedScalars) -> None:
        self._expressions, self._scalars = expressions, scalars

    def collect(self, definition: Definition, value: ast.expr) -> None:
        """Notes the kinds that an assignment to a name gives it."""
        if not self._scalars.carried:
            return
        # Numbers that follow from the scalars themselves are without end.
        assigned = [(ScalarKind.of(term), bool(kinds)) for kinds, term, _ in self._terms(value)]
        distinct = dict.fromkeys(kind.without_number() if follows else kind for kind, follows in assigned)
        if self._scalars.web(definition) is not None:
            for kind in distinct:
                self._scalars.add_kind(definition, kind)
        elif len(distinct) > 1:
            self._scalars.add_mixed(definition)

    def check(
        self, statement: ast.AST, value: ast.expr, finish: Callable[[NumberTerm], NumberTerm] = lambda term: term
    ) -> None:
        """Refuses a statement whose number is another by the kind of a scalar than by the kind in memory."""
        if not self._scalars.is_settled:
            return
        for kinds, by_turn, held in self._terms(value):
            tried = self._expressions.tried
            use = next((use for use, kind in kinds.items() if kind != self._held(use)), None)
            if use and not is_same(tried(value, finish, by_turn), tried(value, finish, held), self._jitted(value)):
                by_turns = " and ".join(dict.fromkeys(map(str, self._scalars.kinds(use))))
                raise self._expressions.listing.refusal(use, reasons.mixed(use.id, by_turns, statement))

    def _jitted(self, value: ast.expr) -> set[str]:
        """Names of functions of `jit` that an expression calls."""
        calls = (node for node in ast.walk(value) if isinstance(node, ast.Call))
        functions = (self._expressions.listed.resolved(call.func) for call in calls)
        return {function.__name__ for function in functions if isinstance(function, Jitted)}

    def _held(self, use: ast.Name) -> ScalarKind:
        web = self._scalars.web(use)
        assert web is not None
        return self._scalars.held(web)

    def _terms(self, value: ast.expr) -> Iterator[tuple[dict[ast.Name, ScalarKind], NumberTerm, NumberTerm]]:
        """Kinds of the scalars, the value by these kinds, and the value by the kinds in memory."""
        uses: dict[str, ast.Name] = {}
        for node in ast.walk(value):
            if isinstance(node, ast.Name) and self._expressions.element(node) is not None:
                uses.setdefault(node.id, node)
        choices = list(product(*(self._scalars.kinds(use) for use in uses.values())))
        if len(choices) > _TURNS_MAX:
            raise self._expressions.listing.refusal(value, reasons.many_kinds(value))
        for choice in choices:
            kinds = dict(zip(uses.values(), choice, strict=True))
            leaves = Leaves()
            terms = {use: as_taken(self._leaf(use), kind, leaves) for use, kind in kinds.items()}
            by_turn = self._evaluated(value, leaves, terms)
            if not self._scalars.is_settled:
                yield kinds, by_turn, by_turn
                continue
            terms = {use: as_held(self._leaf(use), kind, self._held(use), leaves) for use, kind in kinds.items()}
            yield kinds, by_turn, self._evaluated(value, leaves, terms)

    def _leaf(self, use: ast.Name) -> ElementLeaf:
        element = self._expressions.element(use)
        assert element is not None
        return ElementLeaf(element.array.number, element.subscripts)

    def _evaluated(self, value: ast.expr, leaves: Leaves, terms: dict[ast.Name, NumberTerm]) -> NumberTerm:
        self._expressions.assumed = {use.id: term for use, term in terms.items()}
        try:
            return self._expressions.term(value, leaves)
        finally:
            self._expressions.assumed = {}


__all__ = ["Turns"]
