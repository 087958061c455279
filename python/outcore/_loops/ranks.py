"""Expressions of the source, checked without arguments: numbers known when the program is called, indices, or data."""

from __future__ import annotations

import ast
from enum import IntEnum
from typing import NamedTuple, TypeAlias

import numpy as np

from outcore._lazy.array import Array
from outcore._loops import reasons
from outcore._loops.called import is_own, parts_of
from outcore._loops.expressions import COMPARISONS, OPERATORS
from outcore._loops.functions import Manner, callee_of, is_length, taken_beside
from outcore._loops.refusal import quoted
from outcore._loops.syntax import Listed
from outcore._loops.values import is_plain


class Rank(IntEnum):
    """The earliest time at which a value is known."""

    NUMBER = 0  # when the program is called
    INDEX = 1  # an affine function of loop variables
    EXTREME = 2  # minima and maxima of such functions, which are bounds of loops
    DATA = 3  # of elements, or of loop variables in another way
    ARRAY = 4


class Elsewhere(NamedTuple):
    """The state of a number that another block has computed, or an iteration before."""


NameState: TypeAlias = "Rank | Elsewhere | str"  # a string is the reason for which a name is refused
_TYPES = (str, type, np.dtype)
_UNTAKEN: dict[type, str] = {
    ast.Lambda: "lambdas are not taken",
    ast.ListComp: "comprehensions are not taken: write a `for` loop",
    ast.SetComp: "comprehensions are not taken: write a `for` loop",
    ast.DictComp: "comprehensions are not taken: write a `for` loop",
    ast.GeneratorExp: "generators are not taken: write a `for` loop",
    ast.Yield: "generators are not taken: return arrays",
    ast.YieldFrom: "generators are not taken: return arrays",
    ast.Await: "`await` is not taken",
    ast.NamedExpr: "`:=` is not taken: write an assignment of its own",
    ast.List: "lists are not taken",
    ast.Dict: "dictionaries are not taken",
    ast.Set: "sets are not taken",
    ast.JoinedStr: "strings are not taken",
    ast.Starred: "`*` before an argument is not taken",
    ast.Tuple: "tuples are not taken here",
}


# Nodes that give names to what is not the program's.
_DEFINING = (
    *(ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.NamedExpr),
    *(ast.Yield, ast.YieldFrom, ast.Await),
)


class Ranks:
    """Ranks of expressions at one point of the program, where names have the states of `names`."""

    def __init__(self, listed: Listed) -> None:
        self.listed, self._listing = listed, listed.listing
        self.names: dict[str, NameState] = {}
        self.carried: set[ast.Name] = set()  # uses of numbers of other blocks or iterations

    def of(self, node: ast.expr) -> Rank:
        """The rank of a number. Refuses arrays, and all that bodies of loops do not take."""
        match node:
            case ast.Constant():
                return self._constant(node)
            case ast.Name():
                return self._name(node)
            case ast.Attribute():
                return self._attribute(node)
            case ast.Subscript():
                return self._subscript(node)
            case ast.BinOp():
                return self._binary(node)
            case ast.UnaryOp():
                rank = self.of(node.operand)
                return rank if isinstance(node.op, (ast.USub, ast.UAdd)) else self._computed(rank)
            case ast.BoolOp():
                return self._computed(*map(self.of, node.values))
            case ast.Compare():
                for op in node.ops:
                    if type(op) not in COMPARISONS:
                        raise self._listing.refusal(node, f"{quoted(node)}: `in` and `is` are not taken")
                return self._computed(*map(self.of, (node.left, *node.comparators)))
            case ast.IfExp():
                test, yes, no = map(self.of, (node.test, node.body, node.orelse))
                return max(yes, no) if test is Rank.NUMBER else Rank.DATA
            case ast.Call():
                return self._call(node)
        said = _UNTAKEN.get(type(node), f"{quoted(node)} is not taken in a loop program")
        raise self._listing.refusal(node, said)

    def affine(self, node: ast.expr, role: str) -> Rank:
        """The rank of an integer that follows from loop variables. Refuses data, and functions that are not affine."""
        rank = self.of(node)
        if _is_fault(rank, role):
            raise self._fault(node, role)
        if isinstance(node, ast.Constant) and not isinstance(node.value, int):
            raise self._listing.refusal(node, f"{quoted(node)} is {node.value!r}, and {role} must be an integer")
        return rank

    def known(self, node: ast.expr, role: str) -> None:
        """Refuses all but numbers that are known when the program is called, and types."""
        if isinstance(node, ast.Constant) and isinstance(node.value, (str, type(None))):
            return
        if isinstance(node, ast.Tuple):
            for part in node.elts:
                self.known(part, role)
        elif self.of(node) is not Rank.NUMBER:
            said = f"{quoted(node)} depends on loop variables or data, and {role} must be known before loops"
            raise self._listing.refusal(node, said)

    def condition(self, node: ast.expr) -> None:
        """Refuses conditions of `if` that are not affine."""
        if isinstance(node, ast.BoolOp):
            for part in node.values:
                self.condition(part)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            self.condition(node.operand)
        elif isinstance(node, ast.Compare) and self.of(node) is not Rank.NUMBER:
            for side in (node.left, *node.comparators):
                self.affine(side, reasons.CONDITION)
        elif self.of(node) is not Rank.NUMBER:
            self.affine(node, reasons.CONDITION)

    def element(self, node: ast.Subscript) -> None:
        """Refuses subscripts of an array that are no affine integers."""
        for part in node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]:
            if isinstance(part, ast.Slice):
                raise self._listing.refusal(part, reasons.untaken_slice(part))
            if isinstance(part, ast.Constant) and part.value in (None, ...):
                raise self._listing.refusal(part, f"{quoted(part)} is no subscript of an element")
            self.affine(part, reasons.SUBSCRIPT)

    def sliced(self, node: ast.Subscript) -> None:
        """Refuses subscripts of a slice that do not follow from loop variables and integers."""
        for part in node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]:
            if isinstance(part, ast.Slice):
                for end in (part.lower, part.upper):
                    if end is not None:
                        self.affine(end, reasons.SUBSCRIPT)
            elif not isinstance(part, ast.Constant):
                self.affine(part, reasons.SUBSCRIPT)

    def called(self, value: ast.expr) -> None:
        """Refuses what the right side of a statement with functions of whole slices does not take."""
        for node in ast.walk(value):
            said = _UNTAKEN.get(type(node)) if isinstance(node, _DEFINING) else None
            function = self.listed.resolved(node.func) if isinstance(node, ast.Call) else None
            if function is not None and is_own(function):
                said = reasons.lazy_function(node)
            if said is not None:
                raise self._listing.refusal(node, said)
        for part in parts_of(value, self.is_array):
            if isinstance(part, ast.Subscript):
                self.sliced(part)
            elif isinstance(part, ast.Name) and part.id not in self.listed.names:
                if isinstance(self.listed.free(part), Array):
                    raise self._listing.refusal(part, reasons.outside(part))
            elif isinstance(part, ast.Name) and not self.is_array(part):
                self._name(part)

    def is_array(self, node: ast.expr | None) -> bool:
        """Whether the expression is the name of an array."""
        return isinstance(node, ast.Name) and self.names.get(node.id) is Rank.ARRAY

    # -- by the kinds of nodes ----------------------------------------------------------------------------------

    def _computed(self, *ranks: Rank) -> Rank:
        return Rank.NUMBER if max(ranks) is Rank.NUMBER else Rank.DATA

    def _constant(self, node: ast.Constant) -> Rank:
        if not is_plain(node.value):
            raise self._listing.refusal(node, f"{quoted(node)} is no number")
        return Rank.NUMBER

    def _name(self, node: ast.Name) -> Rank:
        if node.id not in self.listed.names:
            return self._object(node, self.listed.free(node))
        state = self.names.get(node.id, f"`{node.id}` is used before it has a value")
        if isinstance(state, str):
            raise self._listing.refusal(node, state)
        if state is Rank.ARRAY:
            raise self._listing.refusal(node, reasons.unsubscripted(node.id))
        if isinstance(state, Elsewhere):
            self.carried.add(node)
            return Rank.DATA
        return state

    def _object(self, node: ast.expr, value: object) -> Rank:
        if is_plain(value) or isinstance(value, _TYPES):
            return Rank.NUMBER
        if isinstance(value, (np.ndarray, Array)):
            raise self._listing.refusal(node, reasons.outside(node))
        raise self._listing.refusal(node, f"{quoted(node)} is no number: {type(value).__name__}")

    def _attribute(self, node: ast.Attribute) -> Rank:
        if self.is_array(node.value):
            if node.attr not in ("shape", "ndim", "size", "dtype"):
                raise self._listing.refusal(node, f"{quoted(node)} is not taken: shape, ndim, size and dtype are")
            return Rank.NUMBER
        value = self.listed.resolved(node)
        if value is not None:
            return self._object(node, value)
        if node.attr not in ("real", "imag"):
            raise self._listing.refusal(node, f"{quoted(node)} is not taken in a loop program")
        return self._computed(self.of(node.value))

    def _subscript(self, node: ast.Subscript) -> Rank:
        if self.is_array(node.value):
            self.element(node)
            return Rank.DATA
        if self.of(node.value) is not Rank.NUMBER:
            raise self._listing.refusal(node, f"{quoted(node.value)} is no array")
        if isinstance(node.slice, (ast.Slice, ast.Tuple)):
            raise self._listing.refusal(node, f"{quoted(node)}: one number of a shape is taken")
        self.affine(node.slice, reasons.SUBSCRIPT)
        return Rank.NUMBER

    def _binary(self, node: ast.BinOp) -> Rank:
        if type(node.op) not in OPERATORS:
            said = f"{quoted(node)}: the operator is not taken; a product of matrices is three loops"
            raise self._listing.refusal(node, said)
        left, right = self.of(node.left), self.of(node.right)
        is_affine = isinstance(node.op, (ast.Add, ast.Sub)) or (
            isinstance(node.op, ast.Mult) and Rank.NUMBER in (left, right)
        )
        # Known by which of so many iterations it is.
        is_affine |= isinstance(node.op, (ast.Mod, ast.FloorDiv)) and (left, right) == (Rank.INDEX, Rank.NUMBER)
        return max(left, right) if is_affine else self._computed(left, right)

    def _call(self, node: ast.Call) -> Rank:
        function = self.listed.resolved(node.func)
        if is_length(function) and len(node.args) == 1 and not node.keywords:
            if not self.is_array(node.args[0]):
                self.known(node.args[0], reasons.VALUE)
            return Rank.NUMBER
        callee = callee_of(function)
        if callee is None:
            owner = self._owner(node.func)
            if owner is not None:
                raise self._listing.refusal(node, reasons.own_function(node, owner))
            raise self._listing.refusal(node, reasons.unknown_function(node, taken_beside(function)))
        if node.keywords or not node.args:
            raise self._listing.refusal(node, f"{quoted(node)}: functions take numbers by position")
        rank = max(map(self.of, node.args))
        if rank not in (Rank.INDEX, Rank.EXTREME):
            return self._computed(rank)
        if callee.manner is Manner.FOLD and len(node.args) > 1:
            return Rank.EXTREME
        return rank if callee.name == "int" else Rank.DATA

    def _owner(self, node: ast.expr) -> str | None:
        """The number or parameter by which a function is named, as `k` in `k.f`; None for other functions."""
        while isinstance(node, ast.Attribute):
            node = node.value
        is_own = isinstance(node, ast.Name) and node.id in self.listed.names and not self.is_array(node)
        return node.id if is_own and isinstance(node, ast.Name) else None

    def _fault(self, node: ast.expr, role: str) -> Exception:
        """The refusal of the smallest part that is data or not affine."""
        children = [] if isinstance(node, ast.Subscript) else ast.iter_child_nodes(node)
        parts = [child for child in children if isinstance(child, ast.expr)]
        for part in parts[1:] if isinstance(node, ast.Call) else parts:
            if _is_fault(self.of(part), role):
                return self._fault(part, role)
        if isinstance(node, ast.Name) and self.names.get(node.id) is Rank.EXTREME:
            return self._listing.refusal(node, reasons.extreme(node, role))
        if isinstance(node, (ast.Subscript, ast.Name)):
            return self._listing.refusal(node, reasons.data(node, role))
        return self._listing.refusal(node, reasons.not_affine(node, role))


def _is_fault(rank: Rank, role: str) -> bool:
    """Whether a number is none of those that a role takes: bounds alone are minima and maxima."""
    return rank > (Rank.EXTREME if role == reasons.BOUND else Rank.INDEX)


__all__ = ["Elsewhere", "NameState", "Rank", "Ranks"]
