"""Ranges of loops: begins and extents that are affine, and guards where bounds are minima and maxima.

`for j in range(max(a, b), min(c, d))` runs where `a <= j`, `b <= j`, `j < c` and `j < d`. One lower and one upper bound
make the extent, such that a loop has few iterations; the others are guards, as the conditions of an `if`.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

from outcore._loops import reasons
from outcore._loops.affine import Affine
from outcore._loops.bounds import Domain
from outcore._loops.expressions import Expressions
from outcore._loops.piecewise import AffineGroup, Piecewise, essential
from outcore._loops.refusal import quoted
from outcore._loops.slices import SliceEnd


class LoopRange(NamedTuple):
    """A range: iterations go from 0 to extent // |step|, those among them where each guard is >= 0."""

    start: Affine
    extent: Affine
    step: int
    guards: tuple[Affine, ...]  # the counter of the loop is the last
    is_never_empty: bool  # in no iteration of the loops around

    def domain(self, around: Domain) -> Domain:
        """The iterations, within those of the loops around."""
        return around.within(self.extent, abs(self.step)).where(self.guards)


class _Ends(NamedTuple):
    """Bounds of a range by the variable times the sign of its step.

    Of each group of `lowest` one function is at most that number, and of each of `highest` one is at most its opposite.
    """

    lowest: tuple[AffineGroup, ...]
    highest: tuple[AffineGroup, ...]


def loop_range(expressions: Expressions, node: ast.Call) -> LoopRange:
    """The range of a loop. Refuses bounds that are no conjunction of affine ones."""
    domain = expressions.domain
    start, stop, step = _arguments(expressions, node)
    sign = 1 if step > 0 else -1
    one = Piecewise.of(Affine(1))
    ends = expressions.tried(node, lambda: _Ends((start * sign).groups, (one - stop * sign).groups))
    lowest, highest = map(_single, _decided(ends, domain))
    if lowest is None or highest is None:
        raise expressions.listing.refusal(node, reasons.no_conjunction(node))
    if len(lowest) > 1 and abs(step) > 1:
        raise expressions.listing.refusal(node.args[0], reasons.begin_by_steps(node.args[0], step))
    least, most = _shortest(lowest, highest, domain)
    extent = -most - least
    place = least + abs(step) * Affine.counter(len(domain.loops))
    guards = [*(place - other for other in lowest if other != least)]
    guards += [-place - other for other in highest if other != most]
    for part in (extent, *guards):
        expressions.bounds.width(node, part, domain.within(extent, abs(step)))
    inner = domain.within(extent, abs(step))
    guards = [guard for guard in guards if not _is_at_least_zero(guard, inner)]
    is_never_empty = all(_is_at_least_zero(-high - low, domain) for low, high in product(lowest, highest))
    return LoopRange(sign * least, extent, step, tuple(guards), is_never_empty)


def refuse_end(expressions: Expressions, of: SliceEnd) -> None:
    """Refuses the end of a slice that NumPy counts from the end of the axis in some iteration."""
    groups = expressions.bound(of.end).groups
    ranges = [[expressions.domain.range_of(part) or (0, 0) for part in group] for group in groups]
    is_from_front = any(all(least >= 0 for least, _ in group) for group in ranges)
    if not is_from_front and expressions.integer(of.length, reasons.BOUND).constant:
        raise expressions.listing.refusal(of.end, reasons.end_from_behind(of.end))


def _arguments(expressions: Expressions, node: ast.Call) -> tuple[Piecewise, Piecewise, int]:
    """Start, stop and step."""
    bounds = [expressions.bound(part) for part in node.args[:2]]
    start = bounds[0] if len(bounds) > 1 else Piecewise.of(Affine(0))
    if len(node.args) < 3:
        return start, bounds[-1], 1
    step = expressions.integer(node.args[2], reasons.BOUND)
    if not step.is_constant:
        said = f"the step {quoted(node.args[2])} depends on a loop variable, and must be one integer"
        raise expressions.listing.refusal(node.args[2], said)
    if step.constant == 0:
        raise expressions.listing.refusal(node.args[2], f"the step {quoted(node.args[2])} is 0")
    return start, bounds[-1], step.constant


def _is_at_least_zero(value: Affine, domain: Domain) -> bool:
    if value.range_over(domain.box)[0] >= 0:
        return True
    exact = domain.range_of(value)
    return exact is None or exact[0] >= 0


def _decided(ends: _Ends, domain: Domain) -> _Ends:
    """The same bounds without the functions that never decide in the domain, or where the other bound leaves none."""

    def is_at_most(first: Affine, second: Affine) -> bool:
        return _is_at_least_zero(second - first, domain)

    def is_beyond(part: Affine, others: Sequence[AffineGroup]) -> bool:
        return any(all(_is_at_least_zero(part + other - 1, domain) for other in group) for group in others)

    def within(groups: Sequence[AffineGroup], others: Sequence[AffineGroup]) -> tuple[AffineGroup, ...]:
        kept = []
        for group in groups:
            parts = group if len(group) == 1 else tuple(part for part in group if not is_beyond(part, others))
            kept.append(parts or group[:1])
        return essential(kept, is_at_most)

    lowest, highest = (essential(groups, is_at_most) for groups in ends)
    lowest = within(lowest, highest)
    return _Ends(lowest, within(highest, lowest))


def _single(groups: tuple[AffineGroup, ...]) -> list[Affine] | None:
    """The functions of groups of one each; None where a group has several."""
    return [group[0] for group in groups] if all(len(group) == 1 for group in groups) else None


def _shortest(lowest: Sequence[Affine], highest: Sequence[Affine], domain: Domain) -> tuple[Affine, Affine]:
    """The two bounds with the fewest iterations between them, in the mean over the loops around."""
    pairs = list(product(lowest, highest))
    return min(pairs, key=lambda pair: _mean_count(-pair[0] - pair[1], domain)) if len(pairs) > 1 else pairs[0]


def _mean_count(extent: Affine, domain: Domain) -> float:
    """The mean number of iterations of a loop whose extent takes all values of its interval equally often."""
    least, most = domain.range_of(extent) or (-1, -1)
    low, high = max(least + 1, 0), max(most + 1, 0)
    return (low + high) * (high - low + 1) / 2 / (most - least + 1)


__all__ = ["LoopRange", "loop_range", "refuse_end"]
