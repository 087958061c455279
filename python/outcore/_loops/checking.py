"""Statements of the source, checked without arguments: the forms that are taken, and the reach of local names.

A local number that the statements beside its assignment use, of the same body, with no loop or branch between, needs
no memory. Nor does one that is the same in all iterations, or an affine function of loop variables, inside of loops and
branches, since nothing is computed for it. All other uses are carried: of what another block or iteration has assigned.

Names of arrays may be exchanged. Each iteration of a loop is then to leave the arrays that had names before it with
names, so that they come back in turns.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from outcore._loops import reasons
from outcore._loops.called import Assigning, target_of
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


class CheckedNames(NamedTuple):
    """Uses of numbers that other blocks or iterations assign, and names where they take arrays of others."""

    carried: frozenset[ast.Name]
    renamed: frozenset[ast.Name]


class _Checker:
    """The statements from the first to the last, with the states of names at each."""

    def __init__(self, listed: Listed) -> None:
        self._listed, self._listing = listed, listed.listing
        self._ranks = Ranks(listed)
        self._variables: list[str] = []  # of the loops around, from the outermost in
        self._branches = 0
        self._arrays: dict[str, str] = {}  # of each name, the name that its array had first
        self._renamed: list[ast.Name] = []  # where names take arrays that others have
        for parameter in listed.parameters:
            is_array = parameter.arg in listed.array_parameters
            self._ranks.names[parameter.arg] = Rank.ARRAY if is_array else Rank.NUMBER
            self._arrays |= {parameter.arg: parameter.arg} if is_array else {}

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
    def names(self) -> CheckedNames:
        """Uses and definitions that the binding knows by their nodes."""
        return CheckedNames(frozenset(self._ranks.carried), frozenset(self._renamed))

    def _result(self, result: ast.expr | None, last: ast.Return) -> None:
        if self._ranks.is_array(result):
            return
        state = self._ranks.names.get(result.id) if isinstance(result, ast.Name) else None
        if not isinstance(result, ast.Name) or not (state is Rank.DATA or isinstance(state, Elsewhere)):
            raise self._listing.refusal(result or last, reasons.no_result(result))
        self._ranks.carried.add(result)

    def _refuse_unassigned(self) -> None:
        """Refuses carried uses that come before every assignment, and those of names that are arrays at times."""
        carried, renamed = self.names
        if not carried:
            return
        webs = Webs(self._listed, carried)
        for use in carried:
            if use in webs.never_assigned:
                raise self._listing.refusal(use, reasons.unassigned(use.id))
            if not renamed.isdisjoint(webs.reaching[use]):
                raise self._listing.refusal(use, reasons.array_at_times(use.id))

    def _statements(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            match statement:
                case ast.For():
                    self._loop(statement)
                case ast.If():
                    self._if(statement)
                case ast.Assign() | ast.AugAssign() if statement in self._listed.slices.called:
                    self._call(statement)
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
        raise self._listing.refusal(statement, reasons.no_assignment(statement.value))

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
        arrays = {name: array for name, array in self._arrays.items() if names.get(name) is Rank.ARRAY}
        self._ranks.names = {**self._after(names, scalars, statement.body), variable: Rank.INDEX}
        self._variables.append(variable)
        self._statements(statement.body)
        self._variables.pop()
        self._refuse_lost(arrays)
        lent = {name for name in scalars if self._ranks.is_array(ast.Name(name))}
        self._ranks.names = self._after(names, scalars | {variable}, [statement])
        self._ranks.names |= {name: reasons.lent(name) for name in lent}

    def _refuse_lost(self, arrays: dict[str, str]) -> None:
        """Refuses exchanges after which an array has no name any more that had one when the iteration began."""
        if sorted(self._arrays[name] for name in arrays) != sorted(arrays.values()):
            last = next(node for node in reversed(self._renamed) if node.id in arrays)
            raise self._listing.refusal(last, reasons.lost(last.id))

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

    def _call(self, statement: Assigning) -> None:
        """A statement that calls functions of whole slices."""
        target = target_of(statement)
        assert isinstance(target, ast.Subscript)
        self._refuse_no_array(target)
        self._ranks.sliced(target)
        self._ranks.called(statement.value)

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        creation = creation_of(self._listed.resolved(value.func)) if isinstance(value, ast.Call) else None
        copied = self._listed.copied(value)
        is_copy = copied is not None and self._ranks.is_array(copied)
        if (creation is not None or is_copy) and isinstance(value, ast.Call):
            self._create(target, value)
            return
        values = value.elts if isinstance(value, ast.Tuple) else [value]
        targets = target.elts if isinstance(target, ast.Tuple) else [target]
        if values and len(values) == len(targets) and all(map(self._ranks.is_array, values)):
            self._rename(targets, values)
            return
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

    def _rename(self, targets: Sequence[ast.expr], values: Sequence[ast.expr]) -> None:
        """Names take the arrays of others."""
        arrays = [self._arrays[value.id] for value in values if isinstance(value, ast.Name)]
        for target, value, array in zip(targets, values, arrays, strict=True):
            if not isinstance(target, ast.Name):
                raise self._listing.refusal(value, reasons.unsubscripted(array))
            if self._branches:
                raise self._listing.refusal(target, reasons.renamed_in_branch(target.id))
            self._refuse_variable(target)
            self._renamed.append(target)
            self._arrays[target.id] = array
            self._ranks.names[target.id] = Rank.ARRAY

    def _refuse_variable(self, target: ast.Name) -> None:
        if target.id in self._variables:
            raise self._listing.refusal(target, f"`{target.id}` is the variable of a loop, and is not assigned")

    def _target(self, target: ast.expr, rank: Rank) -> None:
        if isinstance(target, ast.Subscript):
            self._refuse_no_array(target)
            self._ranks.element(target)
        elif not isinstance(target, ast.Name):
            raise self._listing.refusal(target, f"{quoted(target)} is not assigned in a loop program")
        elif self._ranks.is_array(target):
            raise self._listing.refusal(target, reasons.rebound(target.id))
        else:
            self._refuse_variable(target)
            self._ranks.names[target.id] = rank

    def _refuse_no_array(self, target: ast.Subscript) -> None:
        if not self._ranks.is_array(target.value):
            self._ranks.of(target)
            raise self._listing.refusal(target, f"{quoted(target.value)} is no array")

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
        self._ranks.names = {**self._beyond(self._ranks.names), target.id: Rank.ARRAY}
        self._arrays[target.id] = target.id

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


def check(listed: Listed) -> CheckedNames:
    """Names that the binding knows by their nodes. Refuses a function that no arguments make a loop program."""
    checker = _Checker(listed)
    checker.check()
    return checker.names


__all__ = ["DEPTH_MAX", "CheckedNames", "check"]
