"""Programs bound to arguments: with shapes and integers known, statements become the tree of `program.py`."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from outcore._lazy.array import Array
from outcore._loops import reasons
from outcore._loops.affine import Affine
from outcore._loops.bounds import Domain
from outcore._loops.conditions import Conditions, Conjunction
from outcore._loops.creating import created
from outcore._loops.expressions import BoundArray, Expressions, Register
from outcore._loops.functions import creation_of
from outcore._loops.program import (
    Assignment,
    CountedLoop,
    ElementTarget,
    GuardedBlock,
    LoopProgram,
    ProgramItem,
    RegisterTarget,
)
from outcore._loops.refusal import quoted
from outcore._loops.storing import Storing
from outcore._loops.syntax import Listed
from outcore._loops.values import Computed, Leaves, as_array
from outcore._standard.creation import asarray
from outcore.errors import OutcoreError

_SHARING_WORK_MAX = 1000  # candidates of a common element; beyond, two views count as sharing


@dataclass
class _OpenBlock:
    """A block that statements are still added to."""

    guards: Conjunction
    registers: int = 0
    assignments: list[Assignment] = field(default_factory=list)


class BoundProgram:
    """The tree of a program for given arguments, and the names of its results."""

    def __init__(self, listed: Listed, arguments: dict[str, object]) -> None:
        self._listed, self._listing = listed, listed.listing
        self._expressions = Expressions(listed)
        self._storing = Storing(self._expressions)
        self._arrays: list[BoundArray] = []
        self._items: list[ProgramItem] = []
        self._open: _OpenBlock | None = None
        self._guards: Conjunction = ()
        self.results: list[BoundArray] = []
        self.gives_tuple = False
        self._bind(arguments)
        self._statements(listed.definition.body)
        self._close()
        self.program = LoopProgram(tuple(bound.array for bound in self._arrays), tuple(self._items))
        self._refuse_aliases(arguments)

    # -- arguments ----------------------------------------------------------------------------------------------

    def _bind(self, arguments: dict[str, object]) -> None:
        for parameter in self._listed.parameters:
            name, value = parameter.arg, arguments[parameter.arg]
            is_number = isinstance(value, (bool, int, float, complex, np.generic))
            is_option = value is None or isinstance(value, (str, type, np.dtype))
            if name in self._listed.array_parameters or not (is_number or is_option):
                self._add(name, self._array(parameter, value))
            else:
                self._expressions.names[name] = value

    def _array(self, parameter: ast.arg, value: object) -> Array:
        try:
            array = asarray(value)
        except (OutcoreError, TypeError, ValueError) as error:
            raise self._listing.refusal(parameter, f"the argument `{parameter.arg}`: {error}") from None
        if not isinstance(array, Array):
            kind = type(value).__name__
            raise self._listing.refusal(parameter, f"the argument `{parameter.arg}` is no array of numbers: {kind}")
        if array.ndim == 0:
            is_array = hasattr(value, "shape")
            reason = "has no axes: pass a number of Python's, as by `.item()`" if is_array else reasons.NO_ARRAY
            raise self._listing.refusal(parameter, f"the argument `{parameter.arg}` {reason}")
        return array

    def _add(self, name: str, array: Array) -> None:
        bound = BoundArray(len(self._arrays), name, array)
        self._arrays.append(bound)
        self._expressions.names[name] = bound

    def _refuse_aliases(self, arguments: dict[str, object]) -> None:
        """Two arguments of the same elements, one of them written, are another program than two arrays."""
        written = self.program.written()
        bound = {array.name: array.number for array in self._arrays}
        parameters = [part for part in self._listed.parameters if part.arg in bound]
        for place, later in enumerate(parameters):
            for earlier in parameters[:place]:
                numbers = bound[earlier.arg], bound[later.arg]
                if any(number in written for number in numbers) and _is_shared(
                    arguments[earlier.arg], arguments[later.arg]
                ):
                    said = f"the arguments `{earlier.arg}` and `{later.arg}` are the same array, and one is written"
                    raise self._listing.refusal(later, f"{said}: pass a copy of one")

    # -- statements ---------------------------------------------------------------------------------------------

    def _statements(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            match statement:
                case ast.For():
                    self._loop(statement)
                case ast.If():
                    self._branches(statement)
                case ast.Assign():
                    self._assign(statement.targets[0], statement.value)
                case ast.AnnAssign():
                    if statement.value is not None:
                        self._assign(statement.target, statement.value)
                case ast.AugAssign():
                    self._augment(statement)
                case ast.Return():
                    self._return(statement)

    def _loop(self, statement: ast.For) -> None:
        assert isinstance(statement.iter, ast.Call)
        assert isinstance(statement.target, ast.Name)
        start, stop, step = self._range(statement.iter)
        expressions, domain = self._expressions, self._expressions.domain
        extent = stop - start - 1 if step > 0 else start - stop - 1
        expressions.bounds.width(statement.iter, extent, domain)
        inner = domain.within(extent, abs(step))
        self._close()
        if inner.is_empty:
            return
        variable = start + step * Affine.counter(len(domain.loops))
        expressions.bounds.width(statement.iter, variable, inner)
        names, items = expressions.names, self._items
        expressions.names = {**names, statement.target.id: variable}
        expressions.domain, self._items = inner, []
        self._statements(statement.body)
        self._close()
        if self._items:
            shift = step * start if abs(step) == 1 else Affine(0)
            items.append(CountedLoop(shift, extent, abs(step), tuple(self._items)))
        expressions.names, expressions.domain, self._items = names, domain, items

    def _range(self, node: ast.Call) -> tuple[Affine, Affine, int]:
        """Start, stop and step."""
        parts = [self._expressions.integer(part, reasons.BOUND) for part in node.args]
        if len(parts) == 1:
            return Affine(0), parts[0], 1
        if len(parts) == 2:
            return parts[0], parts[1], 1
        if not parts[2].is_constant:
            said = f"the step {quoted(node.args[2])} depends on a loop variable, and must be one integer"
            raise self._listing.refusal(node.args[2], said)
        if parts[2].constant == 0:
            raise self._listing.refusal(node.args[2], f"the step {quoted(node.args[2])} is 0")
        return parts[0], parts[1], parts[2].constant

    def _branches(self, statement: ast.If) -> None:
        domain = self._expressions.domain
        self._close()
        cases = Conditions(self._expressions, domain).cases(statement.test)
        for conjunctions, body in ((cases.holds, statement.body), (cases.fails, statement.orelse)):
            for conjunction in conjunctions:
                self._branch(conjunction, body, domain)

    def _branch(self, conjunction: Conjunction, body: Sequence[ast.stmt], domain: Domain) -> None:
        guards, names = self._guards, self._expressions.names
        self._guards = (*guards, *(part for part in conjunction if part not in guards))
        self._expressions.domain, self._expressions.names = domain.where(conjunction), dict(names)
        self._statements(body)
        self._close()
        self._guards, self._expressions.domain, self._expressions.names = guards, domain, names

    def _return(self, statement: ast.Return) -> None:
        value = statement.value
        self.gives_tuple = isinstance(value, ast.Tuple)
        for part in value.elts if isinstance(value, ast.Tuple) else [value]:
            bound = self._expressions.names.get(part.id) if isinstance(part, ast.Name) else None
            if not isinstance(bound, BoundArray):
                raise self._listing.refusal(part or statement, reasons.no_result(part))
            self.results.append(bound)

    # -- assignments --------------------------------------------------------------------------------------------

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Tuple):
            self._assign_tuple(target, value)
            return
        if isinstance(target, ast.Subscript):
            self._emit(*self._storing.assignment(target, value))
            return
        assert isinstance(target, ast.Name)
        creation = creation_of(self._listed.resolved(value.func)) if isinstance(value, ast.Call) else None
        if creation is not None:
            assert isinstance(value, ast.Call)
            self._close()
            self._add(target.id, created(value, creation, self._expressions))
            return
        self._refuse_rebinding(target)
        leaves = Leaves()
        self._expressions.names[target.id] = self._local(self._expressions.evaluate(value, leaves), leaves)

    def _assign_tuple(self, target: ast.Tuple, value: ast.expr) -> None:
        """All values before the first target."""
        if isinstance(value, ast.Tuple):
            values = []
            for part in value.elts:
                leaves = Leaves()
                values.append(self._local(self._expressions.evaluate(part, leaves), leaves))
        else:
            known = self._expressions.known(value, reasons.VALUE)
            values = list(known) if isinstance(known, tuple) else []
        if len(values) != len(target.elts):
            said = f"{quoted(value)} has {len(values)} parts, and {len(target.elts)} names are assigned"
            raise self._listing.refusal(value, said)
        for part, kept in zip(target.elts, values, strict=True):
            if isinstance(part, ast.Subscript):
                self._emit(*self._storing.kept(part, kept))
            else:
                assert isinstance(part, ast.Name)
                self._refuse_rebinding(part)
                self._expressions.names[part.id] = kept

    def _augment(self, statement: ast.AugAssign) -> None:
        target = statement.target
        if isinstance(target, ast.Subscript):
            self._emit(*self._storing.augmented(statement))
            return
        assert isinstance(target, ast.Name)
        self._refuse_rebinding(target)
        name = ast.copy_location(ast.Name(target.id, ast.Load()), target)
        value = ast.copy_location(ast.BinOp(name, statement.op, statement.value), statement)
        leaves = Leaves()
        self._expressions.names[target.id] = self._local(self._expressions.evaluate(value, leaves), leaves)

    def _local(self, value: object, leaves: Leaves) -> object:
        """The value of a local name: a number that depends on leaves goes into a register."""
        if not isinstance(value, Computed):
            return value
        block = self._block()
        register = Register(block.registers, value.array.dtype, value.is_weak, self._expressions.block)
        block.registers += 1
        self._emit(RegisterTarget(register.number), as_array(value), leaves)
        return register

    def _refuse_rebinding(self, name: ast.Name) -> None:
        if isinstance(self._expressions.names.get(name.id), BoundArray):
            raise self._listing.refusal(name, reasons.rebound(name.id))

    # -- blocks -------------------------------------------------------------------------------------------------

    def _block(self) -> _OpenBlock:
        if self._open is None:
            self._open = _OpenBlock(self._guards)
        return self._open

    def _emit(self, target: RegisterTarget | ElementTarget, value: Array, leaves: Leaves) -> None:
        stand_ins = leaves.stand_ins
        self._block().assignments.append(Assignment(target, value, tuple(stand_ins), tuple(stand_ins.values())))

    def _close(self) -> None:
        """Ends the block; registers of it are out of reach."""
        if self._open is not None:
            block = self._open
            self._items.append(GuardedBlock(block.guards, block.registers, tuple(block.assignments)))
            self._open = None
        self._expressions.block += 1


def _is_shared(first: object, second: object) -> bool:
    """Whether two arguments have elements in common. Equal lazy arrays are two values, one lazy array is one."""
    if first is second:
        return True
    if not isinstance(first, np.ndarray) or not isinstance(second, np.ndarray):
        return False
    try:
        return np.shares_memory(first, second, max_work=_SHARING_WORK_MAX)  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True


__all__ = ["BoundProgram"]
