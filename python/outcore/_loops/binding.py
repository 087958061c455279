"""Programs bound to arguments: with shapes and integers known, statements become the tree of `program.py`."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from outcore._base.types import DType
from outcore._lazy.array import Array
from outcore._loops import reasons
from outcore._loops.affine import Affine
from outcore._loops.arguments import Arguments
from outcore._loops.bound import BoundArray, InMemory, OutOfReachError, PeriodError, Register
from outcore._loops.bounds import Domain
from outcore._loops.called import Assigning
from outcore._loops.calls import SliceCalls
from outcore._loops.checking import CheckedNames
from outcore._loops.conditions import Conditions, Conjunction
from outcore._loops.creating import created
from outcore._loops.expressions import PERIOD_MAX, Expressions
from outcore._loops.functions import creation_of
from outcore._loops.kinds import ScalarKind
from outcore._loops.program import (
    Assignment,
    CountedLoop,
    ElementLeaf,
    ElementTarget,
    GuardedBlock,
    LoopProgram,
    ProgramItem,
    RegisterTarget,
    Update,
)
from outcore._loops.ranges import LoopRange, loop_range, refuse_end
from outcore._loops.reaching import Facts, LoopRuns
from outcore._loops.refusal import quoted
from outcore._loops.scalars import CarriedScalars, ScalarAxis, ScalarElements, span_of
from outcore._loops.storing import Stored, Storing
from outcore._loops.syntax import Listed
from outcore._loops.turns import Turns
from outcore._loops.values import Computed, Leaves, NumberTerm, as_array, stored

_ORDER_MAX = 12  # iterations of a loop in one of the program

_STATEMENTS_MAX = 4096  # that the core takes


@dataclass
class _OpenBlock:
    """A block that statements are still added to."""

    guards: Conjunction
    registers: int = 0
    assignments: list[Assignment] = field(default_factory=list)


class _SourceLoop(NamedTuple):
    """A loop of the source: its variable is `start + step · iteration`."""

    statement: ast.For
    start: Affine
    step: int
    axis: ScalarAxis

    @property
    def name(self) -> str:
        """The name of the variable."""
        assert isinstance(self.statement.target, ast.Name)
        return self.statement.target.id


class _Place(NamedTuple):
    """An iteration of the source in one of the program, with the guards and the domain that are its own."""

    iteration: Affine
    guards: Conjunction
    domain: Domain


class LoopNames(NamedTuple):
    """Names as they were checked, and how many iterations of loops of the source are one of the program."""

    checked: CheckedNames
    periods: Mapping[ast.For, int]


class LoopResult(NamedTuple):
    """A result: an array of the program, or the one element of a scalar's."""

    array: BoundArray
    is_scalar: bool


class BoundProgram:
    """The tree of a program for given arguments, and the names of its results."""

    def __init__(self, listed: Listed, names: LoopNames, arguments: Arguments, scalars: CarriedScalars) -> None:
        self._listed, self._listing, self._scalars = listed, listed.listing, scalars
        self._renamed, self._periods = names.checked.renamed, names.periods
        self._elements = ScalarElements(scalars, self._add)
        self._expressions = Expressions(listed, self._elements)
        self._turns = Turns(self._expressions, scalars)
        self._storing = Storing(self._expressions)
        self._calls = SliceCalls(self._expressions)
        self._arrays: list[BoundArray] = []
        self._items: list[ProgramItem] = []
        self._open: _OpenBlock | None = None
        self._guards: Conjunction = ()
        self._loops = self._expressions.loops
        self._bound_count = 0  # statements, those that exchanges repeat as often as they do
        self.facts = Facts()
        self.results: list[LoopResult] = []
        self.gives_tuple = False
        self._bind(arguments)
        self._statements(listed.definition.body)
        self._close()
        self.program = LoopProgram(tuple(bound.array for bound in self._arrays), tuple(self._items))
        written = self.program.written()
        arguments.refuse_aliases({bound.name for bound in self._arrays if bound.number in written})

    def _bind(self, arguments: Arguments) -> None:
        for name, value in arguments.bound.items():
            if isinstance(value, Array):
                self._expressions.names[name] = self._add(name, value)
            else:
                self._expressions.names[name] = value
        for parameter in self._listed.parameters:
            if self._scalars.web(parameter) is not None:
                value = self._expressions.names[parameter.arg]
                term = self._expressions.as_term(parameter, value, None)
                self._scalars.add_kind(parameter, ScalarKind.of(term))
                self._emit(*self._storing.kept(parameter, value))

    def _add(self, name: str, array: Array) -> BoundArray:
        self._arrays.append(BoundArray(len(self._arrays), name, array))
        return self._arrays[-1]

    # -- statements ---------------------------------------------------------------------------------------------

    def _statements(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            self._bound_count += 1
            if self._bound_count > _STATEMENTS_MAX:
                raise self._listing.refusal(statement, reasons.too_many(_STATEMENTS_MAX))
            match statement:
                case ast.For():
                    self._loop(statement)
                case ast.If():
                    self._branches(statement)
                case ast.Assign() | ast.AugAssign() if statement in self._listed.slices.called:
                    self._call(statement)
                case ast.Assign():
                    self._assign(statement, statement.targets[0], statement.value)
                case ast.AnnAssign():
                    if statement.value is not None:
                        self._assign(statement, statement.target, statement.value)
                case ast.AugAssign():
                    self._augment(statement)
                case ast.Return():
                    self._return(statement)

    def _loop(self, statement: ast.For) -> None:
        assert isinstance(statement.iter, ast.Call)
        assert isinstance(statement.target, ast.Name)
        self._refuse_slices(statement)
        expressions, domain = self._expressions, self._expressions.domain
        of = loop_range(expressions, statement.iter)
        inner = of.domain(domain)
        self._close()
        if inner.is_empty:
            self.facts.add_loop(statement, LoopRuns.NEVER)
            return
        self.facts.add_loop(statement, LoopRuns.ALWAYS if of.is_never_empty else LoopRuns.SOMETIMES)
        counter = Affine.counter(len(domain.loops))
        variable = of.start + of.step * counter
        expressions.bounds.width(statement.iter, variable, inner)
        span = span_of(variable, abs(of.step), inner)
        self.facts.add_span(statement, span)
        source = _SourceLoop(statement, of.start, of.step, self._scalars.axis(statement, span))
        if not self._listed.assigned_in(statement).isdisjoint(_arrays(expressions.names)):
            self._exchanging(source, of)
            return
        guards = self._guards
        shift = of.step * of.start if abs(of.step) == 1 else Affine(0)
        period = self._periods.get(statement, 1)
        loop = CountedLoop(shift if period == 1 else Affine(0), of.extent, period * abs(of.step), ())
        domain = domain.within(loop.extent, loop.divisor)
        places = [self._place(of, counter, domain, period, place) for place in range(period)]
        self._repeated(loop, source, [place for place in places if not place.domain.is_empty])
        self._guards = guards

    def _place(self, of: LoopRange, counter: Affine, domain: Domain, period: int, place: int) -> _Place:
        """One of so many iterations that are one of the program."""
        depth, iteration = len(domain.loops) - 1, period * counter + place
        guards = [guard.parted(depth, period, place) for guard in of.guards]
        last = of.extent - abs(of.step) * iteration
        if place and (domain.range_of(last) or (0, 0))[0] < 0:
            guards.append(last)
        return _Place(iteration, (*self._guards, *guards), domain.where(guards))

    def _repeated(self, loop: CountedLoop, source: _SourceLoop, places: Sequence[_Place]) -> None:
        """A loop of the program, still empty; each of its iterations does some of those of the source."""
        self._loops.append(source.statement)
        items: list[ProgramItem] = []
        for place in places:
            self._guards = place.guards
            items += self._iteration(source, place.iteration, place.domain)
        self._loops.pop()
        if items:
            self._items.append(replace(loop, items=tuple(items)))

    def _iteration(self, source: _SourceLoop, iteration: Affine, domain: Domain) -> list[ProgramItem]:
        """One iteration of a loop of the source. Arrays keep the names that it leaves them with."""
        expressions, outer = self._expressions, self._items
        names, around = expressions.names, expressions.domain
        variable = source.start + source.step * iteration
        self._close()
        expressions.names = {**names, source.name: variable}
        expressions.domain, self._items = domain, []
        self._elements.coordinates[source.statement] = source.axis.at(variable, iteration)
        self._statements(source.statement.body)
        self._close()
        items, self._items = self._items, outer
        left = expressions.names
        expressions.names = {
            name: left[name] if isinstance(value, BoundArray) else value for name, value in names.items()
        }
        expressions.domain = around
        return items

    # -- exchanges of arrays ------------------------------------------------------------------------------------

    def _exchanging(self, source: _SourceLoop, of: LoopRange) -> None:
        """Iterations in groups after which all arrays have their names again, and those that are left."""
        if not of.extent.is_constant or of.guards:
            raise self._listing.refusal(source.statement, reasons.exchange_count(source.name))
        count = of.extent.constant // abs(source.step) + 1
        order = math.lcm(self._order(source), self._periods.get(source.statement, 1))
        groups = count // order if count >= 2 * order else 0
        if groups:
            domain, loop = self._expressions.domain, CountedLoop(Affine(0), Affine(groups - 1), 1, ())
            counter = Affine.counter(len(domain.loops))
            inner = domain.within(loop.extent, 1)
            places = [_Place(order * counter + place, self._guards, inner) for place in range(order)]
            self._repeated(loop, source, places)
        for iteration in range(groups * order, count):
            self._items += self._iteration(source, Affine(iteration), self._expressions.domain)

    def _order(self, source: _SourceLoop) -> int:
        """The number of iterations after which all arrays have their names again."""
        arrays = _arrays(self._expressions.names)
        for order in range(1, _ORDER_MAX + 1):
            self._iteration(source, Affine(0), self._expressions.domain)
            if _arrays(self._expressions.names) == arrays:
                return order
        raise self._listing.refusal(source.statement, reasons.exchange_order(source.name, _ORDER_MAX))

    def _branches(self, statement: ast.If) -> None:
        domain = self._expressions.domain
        self._close()
        cases = Conditions(self._expressions, domain).cases(statement.test)
        self.facts.add_branches(statement, bool(cases.holds), bool(cases.fails))
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
            if isinstance(part, ast.Name) and self._scalars.is_carried(part):
                self.results.append(self._scalar_result(statement, part))
            elif isinstance(bound, BoundArray):
                self.results.append(LoopResult(bound, False))
            else:
                raise self._listing.refusal(part or statement, reasons.no_result(part))

    def _scalar_result(self, statement: ast.Return, name: ast.Name) -> LoopResult:
        def alone(term: NumberTerm) -> NumberTerm:
            return Computed(as_array(term), False)

        self._expressions.term(name, Leaves())
        self._turns.check(statement, name, alone)
        element = self._expressions.element(name)
        assert element is not None
        return LoopResult(element.array, True)

    # -- assignments --------------------------------------------------------------------------------------------

    def _call(self, statement: Assigning) -> None:
        """A statement that calls functions of whole slices is a block of its own."""
        self._close()
        self._items.append(self._calls.bound(statement, self._guards))

    def _assign(self, statement: ast.stmt, target: ast.expr, value: ast.expr) -> None:
        if self._rename(target, value):
            return
        if isinstance(target, ast.Tuple):
            self._assign_tuple(statement, target, value)
            return
        if isinstance(target, ast.Subscript):
            assigned = self._storing.assignment(target, value)
            self._check(statement, value, assigned.value.dtype)
            self._refuse_overlap(statement, assigned)
            self._emit(*assigned)
            return
        assert isinstance(target, ast.Name)
        array = self._created(value) if isinstance(value, ast.Call) else None
        if array is not None:
            self._close()
            self._expressions.names[target.id] = self._add(target.id, array)
            return
        self._refuse_rebinding(target)
        if self._scalars.web(target) is not None:
            self._assign_scalar(statement, target, value)
            return
        if self._scalars.carried and self._scalars.is_used(target):
            self._turns.collect(target, value)
            self._turns.check(statement, value)
        leaves = Leaves()
        self._expressions.names[target.id] = self._local(self._expressions.named(value, leaves), leaves)

    def _created(self, value: ast.Call) -> Array | None:
        """The new array that a call makes, if it makes one."""
        creation = creation_of(self._listed.resolved(value.func))
        if creation is not None:
            return created(value, creation, self._expressions)
        copied = self._listed.copied(value)
        bound = self._expressions.names.get(copied.id) if copied is not None else None
        if not isinstance(bound, BoundArray):
            return None
        self._close()
        if bound.number in LoopProgram((), tuple(self._items)).written():
            said = f"{quoted(value)}: elements of `{bound.name}` are assigned before; copy it in loops of its own"
            raise self._listing.refusal(value, said)
        return bound.array

    def _rename(self, target: ast.expr, value: ast.expr) -> bool:
        """Gives names the arrays of others, where the values are some."""
        targets = target.elts if isinstance(target, ast.Tuple) else [target]
        values = value.elts if isinstance(value, ast.Tuple) else [value]
        names = self._expressions.names
        pairs = {
            part.id: names[of.id]
            for part, of in zip(targets, values, strict=False)
            if isinstance(part, ast.Name) and isinstance(of, ast.Name) and part in self._renamed
        }
        names |= pairs
        return bool(pairs)

    def _assign_scalar(self, statement: ast.stmt, target: ast.Name, value: ast.expr) -> None:
        """A number that is carried goes into memory; statements beside use the register where its kind is certain."""
        self._turns.collect(target, value)
        assigned = self._storing.extreme(target, value)
        if assigned is None and self._has_register(target):
            self._turns.check(statement, value)
            leaves = Leaves()
            self._keep(target, self._local(self._expressions.named(value, leaves), leaves))
            return
        assigned = assigned or self._storing.assignment(target, value)
        self._check(statement, value, assigned.value.dtype)
        self._emit(*assigned)
        self._expressions.names[target.id] = InMemory()

    def _has_register(self, target: ast.Name) -> bool:
        return self._scalars.is_used_beside(target) and len(self._scalars.kinds_assigned(target)) == 1

    def _keep(self, target: ast.Name, kept: object) -> None:
        """A name, and where the number is carried its element as well, take a value."""
        self._expressions.names[target.id] = kept
        if self._scalars.web(target) is not None:
            self._emit(*self._storing.kept(target, kept))
            if not self._has_register(target):
                self._expressions.names[target.id] = InMemory()

    def _assign_tuple(self, statement: ast.stmt, target: ast.Tuple, value: ast.expr) -> None:
        """All values before the first target."""
        if isinstance(value, ast.Tuple):
            values = [self._part(statement, *parts) for parts in zip(target.elts, value.elts, strict=False)]
            count = len(value.elts)
        else:
            known = self._expressions.known(value, reasons.VALUE)
            values = list(known) if isinstance(known, tuple) else []
            count = len(values)
            for part, number in zip(target.elts, values, strict=False):
                if isinstance(part, ast.Name) and self._scalars.web(part) is not None:
                    self._scalars.add_kind(part, ScalarKind.of(self._expressions.as_term(value, number, None)))
        if count != len(target.elts):
            said = f"{quoted(value)} has {count} parts, and {len(target.elts)} names are assigned"
            raise self._listing.refusal(value, said)
        for part, kept in zip(target.elts, values, strict=True):
            if isinstance(part, ast.Subscript):
                self._emit(*self._storing.kept(part, kept))
            else:
                assert isinstance(part, ast.Name)
                self._refuse_rebinding(part)
                self._keep(part, kept)

    def _part(self, statement: ast.stmt, target: ast.expr, value: ast.expr) -> object:
        """One of several values that are assigned together."""
        if isinstance(target, ast.Name):
            self._turns.collect(target, value)
        element = self._expressions.element(target)
        if element is None or (isinstance(target, ast.Name) and self._has_register(target)):
            self._turns.check(statement, value)
        else:
            self._check(statement, value, element.array.array.dtype)
        leaves = Leaves()
        return self._local(self._expressions.named(value, leaves), leaves)

    def _augment(self, statement: ast.AugAssign) -> None:
        target = statement.target
        if isinstance(target, ast.Name):
            self._refuse_rebinding(target)
            plain = self._listed.assignment_of(statement)
            assert isinstance(plain.value, ast.BinOp)
            assert isinstance(plain.value.left, ast.Name)
            is_update = self._scalars.is_update(target, plain.value.left)
            if not is_update or self._expressions.element(plain.value.left) is None:
                self._assign(statement, target, plain.value)
                return
            self._turns.collect(target, plain.value)
            self._expressions.names[target.id] = InMemory()
            value = plain.value
        else:
            value = ast.copy_location(ast.BinOp(target, statement.op, statement.value), statement)
        assigned = self._storing.augmented(statement)
        self._check(statement, value, assigned.value.dtype)
        self._refuse_overlap(statement, assigned)
        self._emit(*assigned)

    def _refuse_slices(self, loop: ast.For) -> None:
        """Refuses slices of unequal lengths, and ends that NumPy counts from the end of the axis in some iteration."""
        for end in self._listed.slices.ends.get(loop, ()):
            refuse_end(self._expressions, end)
        for check in self._listed.slices.counts.get(loop, ()):
            counts = [self._expressions.bound(part).simplified() for part in (check.elements, check.assigned)]
            is_empty = all(isinstance(count, int) and count <= 0 for count in counts)
            if counts[0] != counts[1] and not is_empty:
                raise self._listing.refusal(check.read, reasons.unequal_slices(check.read))

    def _refuse_overlap(self, statement: ast.stmt, assigned: Stored) -> None:
        """Refuses slices of which an iteration reads what another assigns."""
        depth = self._listed.slices.depths.get(statement)
        if depth is None:
            return
        domain, target = self._expressions.domain, assigned.target
        first = len(domain.loops) - depth

        def is_apart(place: Affine, other: Affine) -> bool:
            follows = [any(at >= first for at, _ in part.terms) for part in (place, other)]
            return not all(follows) and domain.is_never_zero(place - other)

        leaves = [leaf for leaf in assigned.leaves.stand_ins if isinstance(leaf, ElementLeaf)]
        for leaf in leaves:
            is_other = leaf.array == target.array and leaf.subscripts != target.subscripts
            pairs = zip(target.subscripts, leaf.subscripts, strict=True) if is_other else ()
            if is_other and not any(is_apart(place, other) for place, other in pairs):
                raise self._listing.refusal(statement, reasons.overlapping(self._arrays[leaf.array].name))

    def _check(self, statement: ast.stmt, value: ast.expr, dtype: DType) -> None:
        """Refuses a number that goes into memory and depends on the types that scalars have by turns."""
        self._turns.check(statement, value, lambda term: Computed(stored(term, dtype), False))

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
        for leaf in stand_ins:
            if isinstance(leaf, ElementLeaf):
                self.facts.read_tiles |= self._tile(leaf)
        if isinstance(target, ElementTarget):
            self.facts.stored_tiles |= self._tile(target)
            if target.update is Update.STORE:
                self._note_overwriting(target)
        self._block().assignments.append(Assignment(target, value, tuple(stand_ins), tuple(stand_ins.values())))

    def _tile(self, element: ElementTarget | ElementLeaf) -> dict[tuple[tuple[ast.For, int], ...], None]:
        """Lengths of a tile along loops, where the array has several tiles and the loops count its elements."""
        array = self._arrays[element.array]
        tile = array.array._expr.tile
        if self._elements.holds(array) or tile == array.array.shape:
            return {}
        counted = [
            (part.terms[0], length)
            for part, length in zip(element.subscripts, tile, strict=True)
            if len(part.terms) == 1
        ]
        return {tuple((self._loops[depth], length) for (depth, by), length in counted if abs(by) == 1): None}

    def _note_overwriting(self, target: ElementTarget) -> None:
        if not self._elements.holds(self._arrays[target.array]):
            depths = {depth for subscript in target.subscripts for depth, _ in subscript.terms}
            self.facts.overwriting |= {loop for depth, loop in enumerate(self._loops) if depth not in depths}

    def _close(self) -> None:
        """Ends the block; registers of it are out of reach."""
        if self._open is not None:
            block = self._open
            self._items.append(GuardedBlock(block.guards, block.registers, tuple(block.assignments)))
            self._open = None
        self._expressions.block += 1


def _arrays(names: Mapping[str, object]) -> dict[str, BoundArray]:
    return {name: value for name, value in names.items() if isinstance(value, BoundArray)}


def bound_program(listed: Listed, checked: CheckedNames, arguments: Arguments) -> BoundProgram:
    """The program of a call. Arguments may have more numbers carried than the source alone."""
    names = LoopNames(checked, {})
    while True:
        try:
            return _settled(listed, names, arguments)
        except OutOfReachError as out_of_reach:
            carried = names.checked.carried | {out_of_reach.use}
            names = names._replace(checked=names.checked._replace(carried=carried))
        except PeriodError as found:
            periods = dict(names.periods)
            for loop, period in found.periods.items():
                periods[loop] = periods.get(loop, 1) * period
                if periods[loop] > PERIOD_MAX:
                    said = reasons.long_period(found.node, periods[loop], PERIOD_MAX)
                    raise listed.listing.refusal(found.node, said) from None
            names = names._replace(periods=periods)


def _settled(listed: Listed, names: LoopNames, arguments: Arguments) -> BoundProgram:
    """The program with the types of carried numbers.

    Where numbers are carried a first binding tells which loops run, others the types of these numbers, until none is
    new, and the last is held against them.
    """
    carried = names.checked.carried
    bound = BoundProgram(listed, names, arguments, CarriedScalars(listed, carried))
    if not carried:
        return bound
    facts, scalars = bound.facts, CarriedScalars(listed, carried, bound.facts)
    while True:
        scalars.has_grown = False
        BoundProgram(listed, names, arguments, scalars)
        if scalars.has_grown:
            continue
        if scalars.mixed <= scalars.carried:
            break
        scalars = CarriedScalars(listed, scalars.carried | scalars.mixed, facts)
    scalars.is_settled = True
    return BoundProgram(listed, names, arguments, scalars)


__all__ = ["BoundProgram", "bound_program"]
