"""Expressions of the source, evaluated for given arguments: integers, affine functions of counters, and numbers."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Sequence
from typing import TypeVar, cast

import numpy as np

from outcore._lazy.array import Array
from outcore._loops import reasons
from outcore._loops.affine import Affine, simplified
from outcore._loops.bound import BoundArray, BoundElement, InMemory, OutOfReachError, PeriodError, Register
from outcore._loops.bounds import BoundsCheck, Domain
from outcore._loops.functions import Callee, Manner, callee_of, is_length, taken_beside
from outcore._loops.piecewise import Piecewise
from outcore._loops.program import ElementLeaf, IndexLeaf, RegisterLeaf
from outcore._loops.refusal import quoted
from outcore._loops.scalars import ScalarElements
from outcore._loops.syntax import Listed
from outcore._loops.values import (
    ArrayOperator,
    Computed,
    Leaves,
    NumberTerm,
    applied,
    chosen_of,
    combined,
    compared,
    extreme_of,
    inverted,
    is_plain,
    negated,
    part_of,
    truth,
)
from outcore.errors import OutcoreError

PERIOD_MAX = 32  # iterations of a loop in one of the program, for remainders
_LEAST_MAX = 127  # the largest integer that all types of integers hold
_Given = TypeVar("_Given")
_FAULTS = (OutcoreError, ArithmeticError, TypeError, ValueError)

OPERATORS: dict[type, ArrayOperator] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}
COMPARISONS = cast(
    dict[type, ArrayOperator],
    {
        ast.Lt: operator.lt,
        ast.LtE: operator.le,
        ast.Gt: operator.gt,
        ast.GtE: operator.ge,
        ast.Eq: operator.eq,
        ast.NotEq: operator.ne,
    },
)


class Expressions:
    """Values of names at one point of the program, and expressions of them."""

    def __init__(self, listed: Listed, scalars: ScalarElements) -> None:
        self.listed, self.listing, self.scalars = listed, listed.listing, scalars
        self.bounds = BoundsCheck(listed.listing)
        self.names: dict[str, object] = {}
        self.assumed: dict[str, NumberTerm] = {}  # instead of what memory holds of some names
        self.domain = Domain()
        self.block = 0
        self._role = reasons.SUBSCRIPT
        self.loops: list[ast.For] = []  # around, by depth
        self._is_named = False

    # -- what callers ask for -----------------------------------------------------------------------------------

    def integer(self, node: ast.expr, role: str) -> Affine:
        """An integer as an affine function of counters. Refuses all else."""
        value = self._whole(node, role)
        if isinstance(value, Piecewise):
            raise self.listing.refusal(node, reasons.not_affine(node, role))
        return value

    def bound(self, node: ast.expr) -> Piecewise:
        """A bound of a loop: an affine function, or minima and maxima of several. Refuses all else."""
        return Piecewise.of(self._whole(node, reasons.BOUND))

    def _whole(self, node: ast.expr, role: str) -> Affine | Piecewise:
        value = self.known(node, role)
        if isinstance(value, (Affine, Piecewise)):
            return value
        if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
            raise self.listing.refusal(node, f"{quoted(node)} is {value!r}, and {role} must be an integer")
        return Affine(int(value))

    def known(self, node: ast.expr, role: str) -> object:
        """A value without data: a number, an affine function, or an object that is no number."""
        before, self._role = self._role, role
        try:
            return self.evaluate(node, None)
        finally:
            self._role = before

    def named(self, node: ast.expr, leaves: Leaves) -> object:
        """A value that gets a name: remainders and quotients of loop variables too may be subscripts then."""
        self._is_named = True
        try:
            return self.evaluate(node, leaves)
        finally:
            self._is_named = False

    def term(self, node: ast.expr, leaves: Leaves) -> NumberTerm:
        """A number of a body."""
        return self.as_term(node, self.evaluate(node, leaves), leaves)

    def read(self, element: BoundElement, leaves: Leaves) -> Computed:
        """The number that an element holds."""
        array = element.array
        leaf = ElementLeaf(array.number, element.subscripts)
        is_weak = self.scalars.is_weak(array)
        return Computed(leaves.stand_in(leaf, array.array.dtype), is_weak)

    def element(self, node: ast.AST) -> BoundElement | None:
        """The element that an expression or a target is: one of an array, or that of a scalar; None for all else."""
        if isinstance(node, ast.Subscript):
            value = self.names.get(node.value.id) if isinstance(node.value, ast.Name) else None
            return BoundElement(value, self.subscripts(node, value)) if isinstance(value, BoundArray) else None
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and not self._is_in_memory(node):
            return None
        return self.scalars.of(node)

    def _is_in_memory(self, node: ast.Name) -> bool:
        return self.scalars.is_carried(node) or isinstance(self.names.get(node.id), InMemory)

    def subscripts(self, node: ast.Subscript, bound: BoundArray) -> tuple[Affine, ...]:
        """The subscripts of an element, within the array."""
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        shape = bound.array.shape
        if len(parts) != len(shape):
            said = f"{quoted(node)} has {len(parts)} subscripts, and {quoted(node.value)} has {len(shape)} axes"
            raise self.listing.refusal(node, said)
        values = [self.integer(part, reasons.SUBSCRIPT) for part in parts]
        return tuple(
            self.bounds.subscript(node, part, values[axis], axis, shape[axis], self.domain)
            for axis, part in enumerate(parts)
        )

    def tried(self, node: ast.AST, call: Callable[..., _Given], *arguments: object) -> _Given:
        """The result of a call, with errors as refusals of the node."""
        try:
            with np.errstate(all="ignore"):
                return call(*arguments)
        except _FAULTS as error:
            raise self.listing.refusal(node, f"{quoted(node)}: {' '.join(str(error).split())}") from None

    # -- by the kinds of nodes ----------------------------------------------------------------------------------

    def evaluate(self, node: ast.expr, leaves: Leaves | None) -> object:
        """The value of an expression; without `leaves` elements are refused, and all that is not affine."""
        match node:
            case ast.Constant():
                return node.value
            case ast.Name():
                return self._name(node, leaves)
            case ast.Attribute():
                return self._attribute(node, leaves)
            case ast.Subscript():
                return self._subscript(node, leaves)
            case ast.BinOp():
                return self._binary(node, leaves)
            case ast.UnaryOp():
                return self._unary(node, leaves)
            case ast.BoolOp():
                return self._junction(node, leaves)
            case ast.Compare():
                return self._comparison(node, leaves)
            case ast.IfExp():
                return self._choice(node, leaves)
            case ast.Call():
                return self._call(node, leaves)
            case ast.Tuple():
                return tuple(self.evaluate(part, leaves) for part in node.elts)
        raise self.listing.refusal(node, f"{quoted(node)} is not taken in a loop program")

    def as_term(self, node: ast.expr | ast.arg, value: object, leaves: Leaves | None) -> NumberTerm:
        """A value as a number of a body; a loop index becomes a leaf."""
        if isinstance(value, Computed) or is_plain(value):
            return value  # type: ignore[return-value]  # narrowed by is_plain
        if not isinstance(value, (Affine, Piecewise)):
            kind = type(value).__name__
            raise self.listing.refusal(node, f"{quoted(node)} is no number: {kind}")
        if leaves is None:
            raise self.listing.refusal(node, reasons.not_affine(node, self._role))
        if isinstance(value, Piecewise):
            groups = [[self.as_term(node, simplified(part), leaves) for part in group] for group in value.groups]
            least = [self.tried(node, extreme_of, "minimum", group) for group in groups]
            return self.tried(node, extreme_of, "maximum", least)
        self.bounds.width(node, value, self.domain)
        interval = value.range_over(self.domain.box)
        if interval[0] < 0 or interval[1] > _LEAST_MAX:
            interval = self.domain.range_of(value) or interval
        return Computed(leaves.stand_in(IndexLeaf(value), np.dtype(np.int64)), True, interval)

    def _name(self, node: ast.Name, leaves: Leaves | None) -> object:
        element = self.element(node)
        if element is not None:
            return self._scalar(node, element, leaves)
        if node.id not in self.names:
            if node.id in self.listed.names:
                raise self.listing.refusal(node, reasons.uncertain(node.id))
            return self._object(node, self.listed.free(node))
        value = self.names[node.id]
        if isinstance(value, BoundArray):
            raise self.listing.refusal(node, reasons.unsubscripted(node.id))
        if not isinstance(value, Register):
            return value
        if leaves is None:
            raise self.listing.refusal(node, reasons.data(node, self._role))
        if value.block != self.block:
            raise OutOfReachError(node)
        return Computed(leaves.stand_in(RegisterLeaf(value.number), value.dtype), value.is_weak)

    def _scalar(self, node: ast.Name, element: BoundElement, leaves: Leaves | None) -> NumberTerm:
        if leaves is None:
            raise self.listing.refusal(node, reasons.data(node, self._role))
        if self.scalars.is_unassigned(node):
            raise self.listing.refusal(node, reasons.uncertain(node.id))
        return self.assumed[node.id] if node.id in self.assumed else self.read(element, leaves)

    def _object(self, node: ast.expr, value: object) -> object:
        """An object from outside of the function: a number or a type."""
        if is_plain(value) or isinstance(value, (str, type, np.dtype)):
            return value
        if isinstance(value, (np.ndarray, Array)):
            raise self.listing.refusal(node, reasons.outside(node))
        raise self.listing.refusal(node, f"{quoted(node)} is no number: {type(value).__name__}")

    def _attribute(self, node: ast.Attribute, leaves: Leaves | None) -> object:
        if isinstance(node.value, ast.Name):
            owner = self.names.get(node.value.id)
            if isinstance(owner, BoundArray):
                if node.attr in ("shape", "ndim", "size", "dtype"):
                    return getattr(owner.array, node.attr)
                raise self.listing.refusal(node, f"{quoted(node)} is not taken: shape, ndim, size and dtype are")
        value = self.listed.resolved(node)
        if value is not None:
            return self._object(node, value)
        if node.attr not in ("real", "imag"):
            raise self.listing.refusal(node, f"{quoted(node)} is not taken in a loop program")
        term = self.as_term(node.value, self.evaluate(node.value, leaves), leaves)
        return self.tried(node, part_of, term, node.attr)

    def _subscript(self, node: ast.Subscript, leaves: Leaves | None) -> object:
        if isinstance(node.value, ast.Name) and isinstance(self.names.get(node.value.id), BoundArray):
            if leaves is None:
                raise self.listing.refusal(node, reasons.data(node, self._role))
            element = self.element(node)
            assert element is not None
            return self.read(element, leaves)
        owner = self.evaluate(node.value, None)
        place = self.integer(node.slice, reasons.SUBSCRIPT)
        if not isinstance(owner, tuple) or not place.is_constant:
            raise self.listing.refusal(node, f"{quoted(node.value)} is no array")
        return self.tried(node, operator.getitem, owner, place.constant)

    def _binary(self, node: ast.BinOp, leaves: Leaves | None) -> object:
        left, right = self.evaluate(node.left, leaves), self.evaluate(node.right, leaves)
        call = OPERATORS.get(type(node.op))
        if call is None:
            raise self.listing.refusal(
                node, f"{quoted(node)}: the operator is not taken; loops say products of matrices"
            )
        exact: Piecewise | Affine | int | None = _affine_result(node.op, left, right)
        if exact is None and (isinstance(left, Piecewise) or isinstance(right, Piecewise)):
            exact = self._piecewise(node, leaves, _piecewise_result, node.op, left, right)
        if (
            isinstance(node.op, (ast.Mod, ast.FloorDiv))
            and isinstance(left, Affine)
            and type(right) is int
            and right > 0
        ):
            exact = self._divided(node, left, right, leaves)
        if exact is not None:
            return exact
        if leaves is None and (isinstance(left, Affine) or isinstance(right, Affine)):
            raise self.listing.refusal(node, reasons.not_affine(node, self._role))
        terms = self.as_term(node.left, left, leaves), self.as_term(node.right, right, leaves)
        return self.tried(node, combined, call, *terms)

    def _divided(self, node: ast.BinOp, value: Affine, by: int, leaves: Leaves | None) -> Affine | int | None:
        """The quotient or the remainder of an affine function, where it is affine; None for a number of a body."""
        periods = {self.loops[depth]: by // math.gcd(part, by) for depth, part in value.terms if part % by}
        if not periods:
            is_quotient = isinstance(node.op, ast.FloorDiv)
            terms = tuple((depth, part // by) for depth, part in value.terms)
            return simplified(Affine(value.constant // by, terms)) if is_quotient else value.constant % by
        is_long = max(periods.values()) > PERIOD_MAX
        if leaves is None and is_long:
            raise self.listing.refusal(node, reasons.long_period(node, by, PERIOD_MAX))
        if leaves is None or (self._is_named and not is_long):
            raise PeriodError(node, periods)
        return None

    def _unary(self, node: ast.UnaryOp, leaves: Leaves | None) -> object:
        value = self.evaluate(node.operand, leaves)
        if isinstance(node.op, ast.USub) and isinstance(value, Affine):
            return -value
        if isinstance(node.op, ast.USub) and isinstance(value, Piecewise):
            opposite = self._piecewise(node, leaves, _piecewise_result, ast.Mult(), value, -1)
            if opposite is not None:
                return opposite
        if isinstance(node.op, ast.UAdd):
            return value
        term = self.as_term(node.operand, value, leaves)
        if isinstance(node.op, ast.Not):
            holds = truth(term)
            return not holds if isinstance(holds, bool) else Computed(~holds, True)
        return self.tried(node, negated if isinstance(node.op, ast.USub) else inverted, term)

    def _junction(self, node: ast.BoolOp, leaves: Leaves | None) -> object:
        """`and` and `or` of truths; constants among them decide or fall away."""
        is_and = isinstance(node.op, ast.And)
        total: NumberTerm = is_and
        for part in node.values:
            term = self.as_term(part, self.evaluate(part, leaves), leaves)
            if not isinstance(term, Computed) and bool(term) != is_and:
                return not is_and
            if not isinstance(term, Computed):
                continue
            if term.array.dtype.kind != "b":
                raise self.listing.refusal(
                    part, f"{quoted(part)} is no truth: write a comparison, as {quoted(part)} != 0"
                )
            call = operator.and_ if is_and else operator.or_
            total = term if isinstance(total, bool) else self.tried(node, combined, call, total, term)
        return total

    def _comparison(self, node: ast.Compare, leaves: Leaves | None) -> object:
        sides = [node.left, *node.comparators]
        values = [self.evaluate(side, leaves) for side in sides]
        total: NumberTerm = True
        for number, op in enumerate(node.ops):
            call = COMPARISONS.get(type(op))
            if call is None:
                raise self.listing.refusal(node, f"{quoted(node)}: `in` and `is` are not taken")
            left, right = values[number : number + 2]
            holds = self._compared(node, call, (sides[number], left), (sides[number + 1], right), leaves)
            if holds is False:
                return False
            if holds is not True:
                total = holds if total is True else self.tried(node, combined, operator.and_, total, holds)
        return total

    def _compared(
        self,
        node: ast.Compare,
        call: ArrayOperator,
        left: tuple[ast.expr, object],
        right: tuple[ast.expr, object],
        leaves: Leaves | None,
    ) -> NumberTerm:
        difference = _affine_result(ast.Sub(), left[1], right[1])
        if difference is not None:
            decided = self._decided(call, Affine(0) + difference)
            if decided is not None:
                return decided
            if leaves is None:
                raise self.listing.refusal(node, reasons.not_affine(node, self._role))
            zero = self.as_term(left[0], difference, leaves)
            return self.tried(node, compared, call, zero, 0)
        terms = [self.as_term(side, value, leaves) for side, value in (left, right)]
        return self.tried(node, compared, call, *terms)

    def _decided(self, call: ArrayOperator, difference: Affine) -> bool | None:
        """The truth of a comparison with 0 that is the same in all iterations."""
        if difference.is_constant:
            return bool(call(difference.constant, 0))
        interval = self.domain.range_of(difference)
        if interval is None:
            return None
        low, high = interval
        if low > 0 or high < 0 or low == high:
            return bool(call(low, 0))
        if (call is operator.ge and low == 0) or (call is operator.le and high == 0):
            return True
        if (call is operator.lt and low == 0) or (call is operator.gt and high == 0):
            return False
        return None

    def _choice(self, node: ast.IfExp, leaves: Leaves | None) -> object:
        test = self.as_term(node.test, self.evaluate(node.test, leaves), leaves)
        if not isinstance(test, Computed):
            return self.evaluate(node.body if test else node.orelse, leaves)
        yes = self.as_term(node.body, self.evaluate(node.body, leaves), leaves)
        no = self.as_term(node.orelse, self.evaluate(node.orelse, leaves), leaves)
        return self.tried(node, chosen_of, test, yes, no)

    def _call(self, node: ast.Call, leaves: Leaves | None) -> object:
        function = self.listed.resolved(node.func)
        if is_length(function):
            return self._length(node)
        callee = callee_of(function)
        if callee is None or node.keywords:
            raise self.listing.refusal(node, reasons.unknown_function(node, taken_beside(function)))
        values = [self.evaluate(part, leaves) for part in node.args]
        if callee.name == "int" and len(values) == 1 and isinstance(values[0], (Affine, Piecewise)):
            return values[0]
        if callee.manner is Manner.FOLD:
            extreme = self._piecewise(node, leaves, _extreme, callee, values, leaves is None)
            if extreme is not None:
                return extreme
        if leaves is None and any(isinstance(value, Affine) for value in values):
            raise self.listing.refusal(node, reasons.not_affine(node, self._role))
        terms = [self.as_term(part, value, leaves) for part, value in zip(node.args, values, strict=True)]
        return self.tried(node, applied, callee, terms)

    def _piecewise(
        self,
        node: ast.expr,
        leaves: Leaves | None,
        call: Callable[..., Piecewise | Affine | int | None],
        *arguments: object,
    ) -> Piecewise | Affine | int | None:
        """A piecewise affine function; in a body None where the pieces are too many, else a refusal."""
        try:
            return call(*arguments)
        except OverflowError as error:
            if leaves is None:
                raise self.listing.refusal(node, f"{quoted(node)}: {error}") from None
            return None

    def _length(self, node: ast.Call) -> int:
        owner = self.names.get(node.args[0].id) if len(node.args) == 1 and isinstance(node.args[0], ast.Name) else None
        if isinstance(owner, BoundArray):
            return owner.array.shape[0]
        if isinstance(owner, tuple):
            return len(owner)
        raise self.listing.refusal(node, f"{quoted(node)}: the length of an array is taken alone")


def _affine_of(value: object) -> Affine | None:
    """An integer or an affine function as the latter."""
    if isinstance(value, Affine):
        return value
    return Affine(int(value)) if type(value) in (bool, int) or isinstance(value, np.integer) else None  # type: ignore[call-overload]


def _affine_result(op: ast.operator, left: object, right: object) -> Affine | int | None:
    """The sum, difference or multiple of affine functions, one of them no integer; None for all else."""
    a, b = _affine_of(left), _affine_of(right)
    if a is None or b is None or not (isinstance(left, Affine) or isinstance(right, Affine)):
        return None
    if isinstance(op, ast.Add):
        return simplified(a + b)
    if isinstance(op, ast.Sub):
        return simplified(a - b)
    if isinstance(op, ast.Mult) and (a.is_constant or b.is_constant):
        return simplified(a * b.constant if b.is_constant else b * a.constant)
    return None


def _pieces_of(value: object) -> Piecewise | None:
    """An integer, an affine or a piecewise affine function as the last."""
    affine = _affine_of(value)
    return Piecewise.of(affine) if affine is not None else value if isinstance(value, Piecewise) else None


def _piecewise_result(op: ast.operator, left: object, right: object) -> Piecewise | Affine | int | None:
    """The sum, difference or multiple of piecewise affine functions; None for all else."""
    a, b = _pieces_of(left), _pieces_of(right)
    if a is None or b is None:
        return None
    if isinstance(op, ast.Add):
        return (a + b).simplified()
    if isinstance(op, ast.Sub):
        return (a - b).simplified()
    factors = [value for value in map(_affine_of, (left, right)) if value is not None and value.is_constant]
    if isinstance(op, ast.Mult) and factors:
        return ((b if _affine_of(left) is not None else a) * factors[0].constant).simplified()
    return None


def _extreme(callee: Callee, values: Sequence[object], is_bound: bool) -> Piecewise | Affine | int | None:
    """`min` or `max` of affine functions and integers; None where a value is another, or all are known.

    NumPy's integers have a type, which decides that of a number in a body.
    """
    pieces = [_pieces_of(value) for value in values if is_bound or not isinstance(value, (bool, np.integer))]
    known = [part for part in pieces if part is not None]
    if len(known) < max(len(values), 2) or all(map(is_plain, values)):
        return None
    return (Piecewise.largest if callee.name == "max" else Piecewise.least)(known).simplified()


__all__ = ["COMPARISONS", "OPERATORS", "Expressions"]
