"""Definitions of local numbers that reach their uses, and webs of both: each web is one scalar of the program.

Reaching definitions follow from the statements by fixed points over loops. Definitions that reach a common use make a
web (Muchnick, "Advanced Compiler Design and Implementation", 1997, section 16.3), so that a name that serves twice is
two scalars. A use is exposed at a loop where what was assigned before the iteration may reach it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NamedTuple, TypeAlias

from outcore._loops.syntax import Listed


class LoopRuns(Enum):
    """Whether a loop has iterations, in those of the loops around."""

    NEVER = auto()
    SOMETIMES = auto()
    ALWAYS = auto()


class LoopSpan(NamedTuple):
    """An interval that holds the values of a loop variable, where it goes by 1, and the most iterations of the loop."""

    interval: tuple[int, int] | None
    iterations: int

    def joined(self, other: LoopSpan) -> LoopSpan:
        """The span of both."""
        parts = self.interval, other.interval
        iterations = max(self.iterations, other.iterations)
        if parts[0] is None or parts[1] is None:
            return LoopSpan(None, iterations)
        return LoopSpan((min(parts[0][0], parts[1][0]), max(parts[0][1], parts[1][1])), iterations)


@dataclass
class Facts:
    """Loops and branches of a program as its arguments decide them."""

    loops: dict[ast.For, LoopRuns] = field(default_factory=dict)
    branches: dict[ast.If, tuple[bool, bool]] = field(default_factory=dict)
    spans: dict[ast.For, LoopSpan] = field(default_factory=dict)
    # Loops each iteration of which stores to the same elements: their order is fixed without scalars.
    overwriting: set[ast.For] = field(default_factory=set)
    # Lengths of tiles along loops, by the elements that are stored and read; those that are stored come first.
    stored_tiles: dict[tuple[tuple[ast.For, int], ...], None] = field(default_factory=dict)
    read_tiles: dict[tuple[tuple[ast.For, int], ...], None] = field(default_factory=dict)

    def tile(self, loops: Sequence[ast.For]) -> tuple[int, ...] | None:
        """The tile, along these loops, of the first array whose elements they all count."""
        for lengths in map(dict, (*self.stored_tiles, *self.read_tiles)):
            if all(loop in lengths for loop in loops):
                return tuple(lengths[loop] for loop in loops)
        return None

    def add_loop(self, loop: ast.For, runs: LoopRuns) -> None:
        """Notes one visit of a loop."""
        self.loops[loop] = runs if self.loops.get(loop, runs) is runs else LoopRuns.SOMETIMES

    def add_span(self, loop: ast.For, span: LoopSpan) -> None:
        """Notes one visit of a loop that has iterations: exchanges repeat loops within, each time with other bounds."""
        self.spans[loop] = self.spans.get(loop, span).joined(span)

    def add_branches(self, branch: ast.If, holds: bool, fails: bool) -> None:
        """Notes one visit of an `if`: whether its condition may hold, and may fail."""
        before = self.branches.get(branch, (False, False))
        self.branches[branch] = before[0] or holds, before[1] or fails


class Entry(NamedTuple):
    """Stands for the value that a name has when an iteration of a loop begins."""

    loop: ast.For


class Unassigned(NamedTuple):
    """Stands for a name that has no value."""

    name: str


Definition: TypeAlias = "ast.Name | ast.arg"
_Reaching: TypeAlias = "frozenset[Definition | Entry | Unassigned]"
_NameDefinitions: TypeAlias = "dict[str, _Reaching]"


class _Definitions:
    """Definitions that reach each use; without facts each loop and branch may run, and may not."""

    def __init__(self, listed: Listed, facts: Facts | None) -> None:
        self._listed, self._facts = listed, facts
        self._loops: tuple[ast.For, ...] = ()
        self._ended: dict[ast.For, _NameDefinitions] = {}  # by iterations so far
        self.reaching: dict[ast.Name, _Reaching] = {}
        self.reaching_first: dict[ast.Name, _Reaching] = {}  # when each use is first come to
        self.loops: dict[ast.Name | ast.arg, tuple[ast.For, ...]] = {}  # around each definition and use
        state: _NameDefinitions = {name: frozenset({Unassigned(name)}) for name in listed.names}
        for parameter in listed.parameters:
            self._define(parameter.arg, parameter, state)
        self._statements(listed.definition.body, state)

    def _define(self, name: str, node: Definition, state: _NameDefinitions) -> None:
        state[name] = frozenset({node})
        self.loops[node] = self._loops

    def _uses(self, part: ast.AST | None, state: _NameDefinitions) -> None:
        for name in self._listed.uses_in(part) if part is not None else ():
            if name.id in state:
                self.reaching[name] = self.reaching.get(name, frozenset()) | state[name.id]
                self.reaching_first.setdefault(name, state[name.id])
                self.loops[name] = self._loops

    def _statements(self, statements: Sequence[ast.stmt], state: _NameDefinitions) -> None:
        for statement in statements:
            match statement:
                case ast.For():
                    self._loop(statement, state)
                case ast.If():
                    self._branches(statement, state)
                case ast.Assign():
                    self._assign(statement.value, statement.targets, state)
                case ast.AnnAssign():
                    if statement.value is not None:
                        self._assign(statement.value, [statement.target], state)
                case ast.AugAssign(target=ast.Name()):
                    plain = self._listed.assignment_of(statement)
                    self._assign(plain.value, plain.targets, state)
                case ast.AugAssign():
                    self._assign(statement.value, [statement.target], state)
                case ast.Return():
                    self._uses(statement.value, state)

    def _assign(self, value: ast.expr, targets: Sequence[ast.expr], state: _NameDefinitions) -> None:
        self._uses(value, state)
        for target in targets:
            self._uses(target, state)  # of its subscripts
        for target in targets:
            for part in target.elts if isinstance(target, ast.Tuple) else [target]:
                if isinstance(part, ast.Name):
                    self._define(part.id, part, state)

    def _loop(self, loop: ast.For, state: _NameDefinitions) -> None:
        self._uses(loop.iter, state)
        runs = self._facts.loops.get(loop, LoopRuns.NEVER) if self._facts else LoopRuns.SOMETIMES
        if runs is LoopRuns.NEVER or not isinstance(loop.target, ast.Name):
            return
        assigned = self._listed.assigned_in(loop)
        around, self._loops = self._loops, (*self._loops, loop)
        ended = self._ended.get(loop, {})
        while True:
            body = dict(state)
            body |= {name: state[name] | ended.get(name, frozenset()) | {Entry(loop)} for name in assigned}
            self._define(loop.target.id, loop.target, body)
            self._statements(loop.body, body)
            last = {name: body[name] - {Entry(loop)} for name in (*assigned, loop.target.id)}
            if last == ended:
                break
            ended = self._ended[loop] = last
        self._loops = around
        for name, reaching in ended.items():
            state[name] = reaching if runs is LoopRuns.ALWAYS else reaching | state[name]

    def _branches(self, branch: ast.If, state: _NameDefinitions) -> None:
        self._uses(branch.test, state)
        possible = self._facts.branches.get(branch, (True, True)) if self._facts else (True, True)
        ends = []
        for is_possible, body in zip(possible, (branch.body, branch.orelse), strict=True):
            if is_possible:
                ends.append(dict(state))
                self._statements(body, ends[-1])
        for name in state if ends else ():
            state[name] = frozenset().union(*(end[name] for end in ends))


@dataclass(frozen=True, eq=False)
class Web:
    """A scalar: its definitions and uses, and the loops around all of them in which no iteration needs another's."""

    name: str
    definitions: tuple[Definition, ...]
    uses: tuple[ast.Name, ...]
    loops: tuple[ast.For, ...]


class Webs:
    """Webs of the uses that are carried, by their definitions and uses."""

    def __init__(self, listed: Listed, carried: frozenset[ast.Name], facts: Facts | None = None) -> None:
        flow = _Definitions(listed, facts)
        self.reaching = {use: _definitions(parts) for use, parts in flow.reaching.items()}
        self.unassigned = {use for use, parts in flow.reaching.items() if any(map(_is_unassigned, parts))}
        self.never_assigned = {
            use for use, parts in flow.reaching_first.items() if not any(isinstance(part, ast.AST) for part in parts)
        }
        self.of: dict[ast.AST, Web] = {}
        for definitions, uses in _connected(self.reaching):
            if any(use in carried for use in uses):
                web = _web(flow, definitions, uses, facts)
                self.of |= dict.fromkeys((*definitions, *uses), web)


def _definitions(parts: _Reaching) -> tuple[Definition, ...]:
    """Definitions in the order of the text."""
    nodes = (part for part in parts if isinstance(part, (ast.Name, ast.arg)))
    return tuple(sorted(nodes, key=lambda node: (node.lineno, node.col_offset)))


def _is_unassigned(part: object) -> bool:
    return isinstance(part, Unassigned)


def _connected(
    reaching: dict[ast.Name, tuple[Definition, ...]],
) -> Iterator[tuple[list[Definition], list[ast.Name]]]:
    """Definitions that reach common uses, with those uses."""
    group: dict[Definition, tuple[list[Definition], list[ast.Name]]] = {}
    for use, definitions in reaching.items():
        together: tuple[list[Definition], list[ast.Name]] = ([], [use])
        for definition in definitions:
            parts = group.get(definition, ([definition], []))
            if definition not in together[0]:
                together[0].extend(parts[0])
                together[1].extend(parts[1])
        group |= dict.fromkeys(together[0], together)
    yield from {id(parts): parts for parts in group.values()}.values()


def _web(flow: _Definitions, definitions: Sequence[Definition], uses: Sequence[ast.Name], facts: Facts | None) -> Web:
    chains = [flow.loops[node] for node in (*definitions, *uses)]
    exposed = {part.loop for use in uses for part in flow.reaching[use] if isinstance(part, Entry)}
    if facts is not None:
        exposed |= facts.overwriting
    common = [loops[0] for loops in zip(*chains, strict=False) if len(set(loops)) == 1]
    return Web(uses[0].id, tuple(definitions), tuple(uses), tuple(loop for loop in common if loop not in exposed))


__all__ = ["Definition", "Facts", "LoopRuns", "LoopSpan", "Web", "Webs"]
