"""Statements of the source, checked without arguments: the forms that are taken, and the reach of local names.

A local number that the statements beside its assignment use, of the same body, with no loop or branch between, needs
no memory. Nor does one that is the same in all iterations, or an affine function of loop variables, inside of loops and
branches, since nothing is computed for it. All other uses are carried: of what another block or iteration has assigned.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from outcore._loops import reasons
from outcore._loops.functions import creation_of, is_range
from outcore._loops.ranks import Elsewhere, NameState, Rank, Ranks
from outcore._loops.reaching import Webs
from outcore._loops.refusal import quoted
from outcore._loops.syntax import Listed, assigned_names

DEPTH_MAX = 8

_UNTAKEN: dict[type, str] = {
    ast.While: "`while` is not taken: the number of iterations must follow from integers; write a `for` over a range",
    ast.Break: "`break` is not taken: the iterations of a loop must follow from integers",
    ast.Continue: "`continue` is not taken: write an `if` around the statements",
    ast.Try: "`try` is not taken",
    ast.TryStar: "`try` is not taken",
    ast.With: "`with` is not taken",
    ast.AsyncWith: "`async` is not taken",
    ast.AsyncFor: "`async` is not taken",
    ast.AsyncFunctionDef: "`async` is not taken",
    ast.FunctionDef: "functions inside of a loop program are not taken",
    ast.ClassDef: "classes inside of a loop program are not taken",
    ast.Global: "`global` is not taken: results are the arrays that are returned",
    ast.Nonlocal: "`nonlocal` is not taken: results are the arrays that are returned",
    ast.Import: "`import` is not taken: import above the function",
    ast.ImportFrom: "`import` is not taken: import above the function",
    ast.Raise: "`raise` is not taken",
    ast.Assert: "`assert` is not taken",
    ast.Delete: "`del` is not taken",
    ast.Match: "`match` is not taken: write an `if`",
}


class _Checker:
    """The statements from the first to the last, with the states of names at each."""

    def __init__(self, listed: Listed) -> None:
        self._listed, self._listing = listed, listed.listing
        self._ranks = Ranks(listed)
        self._variables: list[str] = []  # of the loops around, from the outermost in
        self._branches = 0
        for parameter in listed.parameters:
            is_array = parameter.arg in listed.array_parameters
            self._ranks.names[parameter.arg] = Rank.ARRAY if is_array else Rank.NUMBER

    def check(self) -> None:
        definition = self._listed.definition
        for part in (definition.args.vararg, definition.args.kwarg):
            if part is not None:
                raise self._listing.refusal(part, f"`{part.arg}`: parameters are listed by name")
        *statements, last = definition.body
        self._statements(statements)
        if not isinstance(last, ast.Return):
            self._statements([last])
            said = f"`{definition.name}` has no `return` at its end: results are the arrays that are returned"
            raise self._listing.refusal(definition, said)
        parts = last.value.elts if isinstance(last.value, ast.Tuple) else [last.value]
        for result in parts:
            self._result(result, last)
        if not parts:
            raise self._listing.refusal(last, reasons.no_result(last.value))
        self._refuse_unassigned()

    @property
    def carried(self) -> frozenset[ast.Name]:
        """Uses of numbers that other blocks or iterations assign."""
        return frozenset(self._ranks.carried)

    def _result(self, result: ast.expr | None, last: ast.Return) -> None:
        if self._ranks.is_array(result):
            return
        state = self._ranks.names.get(result.id) if isinstance(result, ast.Name) else None
        if not isinstance(result, ast.Name) or not (state is Rank.DATA or isinstance(state, Elsewhere)):
            raise self._listing.refusal(result or last, reasons.no_result(result))
        self._ranks.carried.add(result)

    def _refuse_unassigned(self) -> None:
        """Refuses carried uses that come before every assignment."""
        if self.carried:
            for use in self.carried & Webs(self._listed, self.carried).never_assigned:
                raise self._listing.refusal(use, reasons.unassigned(use.id))

    def _statements(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            match statement:
                case ast.For():
                    self._loop(statement)
                case ast.If():
                    self._if(statement)
                case ast.Assign():
                    if len(statement.targets) > 1:
                        raise self._listing.refusal(statement, "several `=` in one statement: write one for each")
                    self._assign(statement.targets[0], statement.value)
                case ast.AnnAssign():
                    if statement.value is not None:
                        self._assign(statement.target, statement.value)
                case ast.AugAssign():
                    self._augment(statement)
                case ast.Expr():
                    self._expression(statement)
                case ast.Return():
                    raise self._listing.refusal(statement, "`return` is taken at the end of the function alone")
                case ast.Pass():
                    pass
                case _:
                    said = _UNTAKEN.get(type(statement), f"{quoted(statement)} is not taken in a loop program")
                    raise self._listing.refusal(statement, said)

    def _expression(self, statement: ast.Expr) -> None:
        """A docstring has no effect; all else computes for nothing, or calls for an effect."""
        if isinstance(statement.value, ast.Constant):
            return
        if isinstance(statement.value, (ast.Yield, ast.YieldFrom, ast.Await)):
            self._ranks.of(statement.value)
        raise self._listing.refusal(statement, f"{quoted(statement)}: a statement without an assignment has no effect")

    # -- loops and branches -------------------------------------------------------------------------------------

    def _loop(self, statement: ast.For) -> None:
        variable = self._variable(statement)
        self._range(statement.iter)
        if statement.orelse:
            raise self._listing.refusal(statement.orelse[0], "`else` of a loop is not taken")
        if len(self._variables) == DEPTH_MAX:
            raise self._listing.refusal(statement, f"loops are nested more than {DEPTH_MAX} deep")
        assigned = assigned_names(statement.body)
        names = self._ranks.names
        scalars = {name for name in assigned if names.get(name) is not Rank.ARRAY}
        self._ranks.names = {**self._after(names, scalars, statement.body), variable: Rank.INDEX}
        self._variables.append(variable)
        self._statements(statement.body)
        self._variables.pop()
        self._ranks.names = self._after(names, assigned | {variable}, [statement])

    def _variable(self, statement: ast.For) -> str:
        target = statement.target
        if not isinstance(target, ast.Name):
            raise self._listing.refusal(target, f"{quoted(target)}: a loop has one variable")
        if target.id in self._variables:
            raise self._listing.refusal(target, f"`{target.id}` is the variable of a loop around")
        if self._ranks.names.get(target.id) is Rank.ARRAY:
            raise self._listing.refusal(target, reasons.rebound(target.id))
        return target.id

    def _range(self, node: ast.expr) -> None:
        if not isinstance(node, ast.Call) or not is_range(self._listed.resolved(node.func)):
            raise self._listing.refusal(node, f"{quoted(node)}: loops are over `range(...)`")
        if node.keywords or not 1 <= len(node.args) <= 3:
            raise self._listing.refusal(node, f"{quoted(node)}: a range has one to three integers")
        for part in node.args[:2]:
            self._ranks.affine(part, reasons.BOUND)
        for part in node.args[2:]:
            if self._ranks.affine(part, "the step of a loop") is not Rank.NUMBER:
                said = f"the step {quoted(part)} depends on a loop variable, and must be one integer"
                raise self._listing.refusal(part, said)

    def _if(self, statement: ast.If) -> None:
        self._ranks.condition(statement.test)
        names = self._ranks.names
        self._branches += 1
        for body in (statement.body, statement.orelse):
            self._ranks.names = self._beyond(names)
            self._statements(body)
        self._branches -= 1
        bodies = [*statement.body, *statement.orelse]
        self._ranks.names = self._after(names, assigned_names(bodies), bodies)

    def _beyond(self, names: dict[str, NameState]) -> dict[str, NameState]:
        """The states of names in another block."""
        return {name: Elsewhere() if state is Rank.DATA else state for name, state in names.items()}

    def _after(
        self, names: dict[str, NameState], assigned: set[str], statements: Sequence[ast.stmt]
    ) -> dict[str, NameState]:
        """The states of names in another block, where the statements may have assigned some."""
        variables = {part.target.id for part in _loops(statements) if isinstance(part.target, ast.Name)}
        states: dict[str, NameState] = dict.fromkeys(assigned, Elsewhere())
        states |= {name: reasons.beyond(name) for name in assigned & variables}
        return {**self._beyond(names), **states}

    # -- assignments --------------------------------------------------------------------------------------------

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        creation = creation_of(self._listed.resolved(value.func)) if isinstance(value, ast.Call) else None
        if creation is not None and isinstance(value, ast.Call):
            self._create(target, value)
            return
        if self._ranks.is_array(value):
            raise self._listing.refusal(value, f"{quoted(value)} is an array, and has one name")
        if not isinstance(target, ast.Tuple):
            rank = self._ranks.of(value)
            self._target(target, rank)
            return
        if isinstance(value, ast.Tuple):
            ranks = [self._ranks.of(part) for part in value.elts]
            if len(ranks) != len(target.elts):
                said = f"{quoted(value)} has {len(ranks)} parts, and {len(target.elts)} names are assigned"
                raise self._listing.refusal(value, said)
        else:
            self._ranks.known(value, "a tuple of numbers")
            ranks = [Rank.NUMBER] * len(target.elts)
        for part, rank in zip(target.elts, ranks, strict=True):
            self._target(part, rank)

    def _target(self, target: ast.expr, rank: Rank) -> None:
        if isinstance(target, ast.Subscript):
            if not self._ranks.is_array(target.value):
                self._ranks.of(target)
                raise self._listing.refusal(target, f"{quoted(target.value)} is no array")
            self._ranks.element(target)
        elif not isinstance(target, ast.Name):
            raise self._listing.refusal(target, f"{quoted(target)} is not assigned in a loop program")
        elif self._ranks.is_array(target):
            raise self._listing.refusal(target, reasons.rebound(target.id))
        elif target.id in self._variables:
            raise self._listing.refusal(target, f"`{target.id}` is the variable of a loop, and is not assigned")
        else:
            self._ranks.names[target.id] = rank

    def _create(self, target: ast.expr, value: ast.Call) -> None:
        if not isinstance(target, ast.Name):
            raise self._listing.refusal(target, f"{quoted(target)}: a new array has one name")
        if self._variables or self._branches:
            said = f"{quoted(value)} inside of a loop or a branch: make arrays before, and set their elements here"
            raise self._listing.refusal(value, said)
        if self._ranks.is_array(target):
            raise self._listing.refusal(target, reasons.rebound(target.id))
        for part in [*value.args, *(keyword.value for keyword in value.keywords)]:
            if not self._ranks.is_array(part):
                self._ranks.known(part, reasons.VALUE)
        self._ranks.names[target.id] = Rank.ARRAY

    def _augment(self, statement: ast.AugAssign) -> None:
        target, rank = statement.target, self._ranks.of(statement.value)
        if isinstance(target, ast.Name) and not self._ranks.is_array(target):
            rank = self._ranks.of(self._listed.assignment_of(statement).value)
        elif isinstance(statement.op, ast.MatMult):
            raise self._listing.refusal(statement, f"{quoted(statement)}: the operator is not taken")
        self._target(target, rank)


def _loops(statements: Sequence[ast.stmt]) -> Iterator[ast.For]:
    """Loops among the statements and within."""
    nodes = (node for statement in statements for node in ast.walk(statement))
    return (node for node in nodes if isinstance(node, ast.For))


def check(listed: Listed) -> frozenset[ast.Name]:
    """Uses of numbers that are carried. Refuses a function that no arguments make a loop program."""
    checker = _Checker(listed)
    checker.check()
    return checker.carried


__all__ = ["DEPTH_MAX", "check"]
