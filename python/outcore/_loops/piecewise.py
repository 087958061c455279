"""Piecewise affine functions of loop counters: the largest of some, each the least of some affine functions.

Sums, multiples, minima and maxima of such functions are such functions again (Bartels, Kuntz, Scholtes, "Continuous
selections of linear functions and nonsmooth critical point theory", Nonlinear Analysis 1995).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from typing import TypeAlias, TypeVar

from outcore._loops.affine import Affine, simplified

AffineGroup: TypeAlias = "tuple[Affine, ...]"
AtMost: TypeAlias = Callable[[Affine, Affine], bool]
_Member = TypeVar("_Member")

_PIECES_MAX = 16  # affine functions in one piecewise affine function


def _is_at_most(first: Affine, second: Affine) -> bool:
    """Whether a function is at most another by its constant alone."""
    difference = second - first
    return difference.is_constant and difference.constant >= 0


def _undominated(parts: Iterable[_Member], is_dominated: Callable[[_Member, _Member], bool]) -> tuple[_Member, ...]:
    kept: list[_Member] = []
    for part in dict.fromkeys(parts):
        if not any(is_dominated(part, other) for other in kept):
            kept = [other for other in kept if not is_dominated(other, part)] + [part]
    return tuple(kept)


def essential(groups: Iterable[AffineGroup], is_at_most: AtMost = _is_at_most) -> tuple[AffineGroup, ...]:
    """Groups without the functions that never decide the largest of their minima."""
    least = [_undominated(group, lambda part, other: is_at_most(other, part)) for group in groups]
    return _undominated(least, lambda group, other: is_below(group, other, is_at_most))


def is_below(group: AffineGroup, other: AffineGroup, is_at_most: AtMost) -> bool:
    """Whether the least of a group is at most the least of another."""
    return all(any(is_at_most(part, above) for part in group) for above in other)


@dataclass(frozen=True)
class Piecewise:
    """`max(min(group) for group in groups)`."""

    groups: tuple[AffineGroup, ...]

    @staticmethod
    def of(value: Affine | Piecewise) -> Piecewise:
        """An affine function as one of one piece."""
        return value if isinstance(value, Piecewise) else Piecewise(((value,),))

    @staticmethod
    def _essential(groups: Iterable[AffineGroup]) -> Piecewise:
        kept = essential(groups)
        if sum(map(len, kept)) > _PIECES_MAX:
            raise OverflowError(f"minima and maxima come to more than {_PIECES_MAX} affine functions")
        return Piecewise(kept)

    @staticmethod
    def largest(parts: Sequence[Piecewise]) -> Piecewise:
        """The largest of some. Raises OverflowError, as all that follow do, where they are too many."""
        return Piecewise._essential(group for part in parts for group in part.groups)

    @staticmethod
    def least(parts: Sequence[Piecewise]) -> Piecewise:
        """The least of some."""

        def least_of_two(first: Piecewise, second: Piecewise) -> Piecewise:
            return Piecewise._essential(a + b for a, b in product(first.groups, second.groups))

        return reduce(least_of_two, parts)

    def __add__(self, other: Piecewise) -> Piecewise:
        pairs = product(self.groups, other.groups)
        return Piecewise._essential(tuple(a + b for a, b in product(*pair)) for pair in pairs)

    def __neg__(self) -> Piecewise:
        return Piecewise.least([Piecewise(tuple((-part,) for part in group)) for group in self.groups])

    def __sub__(self, other: Piecewise) -> Piecewise:
        return self + -other

    def __mul__(self, factor: int) -> Piecewise:
        groups = (self if factor >= 0 else -self).groups
        return Piecewise._essential(tuple(part * abs(factor) for part in group) for group in groups)

    def simplified(self) -> Piecewise | Affine | int:
        """The affine function, or the integer, where there is one piece."""
        return simplified(self.groups[0][0]) if self.groups == ((self.groups[0][0],),) else self


__all__ = ["AffineGroup", "Piecewise", "essential", "is_below"]
