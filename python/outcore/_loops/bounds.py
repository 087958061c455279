"""Ranges of affine functions over the iterations of a nest: subscripts out of bounds are refused by them.

The iterations are those integer points at which every counter lies within its extent and every guard holds. Intervals
of counters decide most subscripts. Where they do not, the maximum over the polytope of extents and guards does, in
which triangular bounds count; each inequality is divided by the common divisor of its coefficients and its bound
rounded down, so that steps count as well.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from outcore._loops.affine import Affine
from outcore._loops.linear import Inequality, maximum
from outcore._loops.refusal import Listing, quoted

_INTEGER_MAX = (1 << 63) - 1


@dataclass(frozen=True)
class Domain:
    """The iterations of a nest: extents and divisors of its loops from the outermost in, and guards, each >= 0."""

    loops: tuple[tuple[Affine, int], ...] = ()
    guards: tuple[Affine, ...] = ()

    def within(self, extent: Affine, divisor: int) -> Domain:
        """With a loop more: its counter runs from 0 to extent // divisor."""
        return Domain((*self.loops, (extent, divisor)), self.guards)

    def where(self, guards: Sequence[Affine]) -> Domain:
        """With guards more."""
        return Domain(self.loops, (*self.guards, *guards))

    @cached_property
    def box(self) -> tuple[tuple[int, int], ...]:
        """Intervals that hold the values of the counters; a loop without iterations has one of a single value."""
        box: list[tuple[int, int]] = []
        for extent, divisor in self.loops:
            box.append((0, max(0, extent.range_over(box)[1] // divisor)))
        return tuple(box)

    @cached_property
    def is_empty(self) -> bool:
        """Whether no iteration is left; True only where there is none."""
        if any(part.range_over(self.box)[1] < 0 for part in (*self.guards, *(extent for extent, _ in self.loops))):
            return True
        return self._maximum(Affine(0)) is None

    @cached_property
    def _inequalities(self) -> list[Inequality]:
        rows = [_inequality(guard, len(self.loops)) for guard in self.guards]
        for depth, (extent, divisor) in enumerate(self.loops):
            # Implied by the next; by itself it is rounded to the integers.
            rows.append(_inequality(extent, len(self.loops)))
            rows.append(_inequality(extent - divisor * Affine.counter(depth), len(self.loops)))
        return rows

    def _maximum(self, value: Affine) -> int | None:
        highest = maximum(value.coefficients(len(self.loops)), self._inequalities)
        return None if highest is None else math.floor(highest) + value.constant

    @cached_property
    def _ranges(self) -> dict[Affine, tuple[int, int] | None]:
        return {}

    def range_of(self, value: Affine) -> tuple[int, int] | None:
        """The lowest and the highest value over all iterations, or beyond them; None where there are none."""
        if value not in self._ranges:
            highest = self._maximum(value)
            lowest = self._maximum(-value)
            self._ranges[value] = None if highest is None or lowest is None else (-lowest, highest)
        return self._ranges[value]

    def is_never_zero(self, value: Affine) -> bool:
        """Whether the value is provably never 0."""
        low, high = value.range_over(self.box)
        if low > 0 or high < 0:
            return True
        exact = self.range_of(value)
        return exact is None or exact[0] > 0 or exact[1] < 0


def _inequality(value: Affine, depths: int) -> Inequality:
    """`value >= 0`, divided by the common divisor of the coefficients."""
    coefficients = value.coefficients(depths)
    divisor = math.gcd(*coefficients) or 1
    return Inequality(tuple(-part // divisor for part in coefficients), value.constant // divisor)


class BoundsCheck:
    """Refusals of subscripts and of integers that are too large, over a domain."""

    def __init__(self, listing: Listing) -> None:
        self._listing = listing

    def width(self, node: ast.AST, value: Affine, domain: Domain) -> None:
        """Refuses arithmetic beyond 63 bits."""
        if value.magnitude_over(domain.box) > _INTEGER_MAX:
            raise self._listing.refusal(node, f"{quoted(node)}: index arithmetic goes beyond 63 bits")

    def subscript(
        self, node: ast.Subscript, part: ast.expr, value: Affine, axis: int, length: int, domain: Domain
    ) -> Affine:
        """The subscript, counted from the front. Refuses values beyond the axis."""
        self.width(part, value, domain)
        of = f"subscript {quoted(part)} of {quoted(node.value)}"
        if value.is_constant:
            if -length <= value.constant < length:
                return Affine(value.constant % length)
            raise self._listing.refusal(part, f"{of} is {value.constant}, and axis {axis} has length {length}")
        low, high = value.range_over(domain.box)
        if low >= 0 and high < length:
            return value
        exact = domain.range_of(value)
        if exact is None:
            return value
        low, high = exact
        if low >= 0 and high < length:
            return value
        advice = ""
        if high < 0:
            advice = f"; a subscript that varies counts from the front: add {length}"
        elif low < 0:
            advice = "; a subscript that varies does not count from the end"
        said = f"{of} goes from {low} to {high}, and axis {axis} has length {length}{advice}"
        raise self._listing.refusal(part, said)


__all__ = ["BoundsCheck", "Domain"]
