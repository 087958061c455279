"""Affine functions of loop counters: an integer constant, and integer coefficients by the depths of loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Box = Sequence[tuple[int, int]]  # the lowest and highest value of the counter of each depth


@dataclass(frozen=True)
class Affine:
    """`constant + Σ coefficient · counter(depth)`; depths ascend from the outermost, 0, and no coefficient is 0."""

    constant: int
    terms: tuple[tuple[int, int], ...] = ()

    @staticmethod
    def counter(depth: int) -> Affine:
        """The counter of the loop at a depth."""
        return Affine(0, ((depth, 1),))

    @property
    def is_constant(self) -> bool:
        """Whether no counter is in it."""
        return not self.terms

    def __add__(self, other: Affine | int) -> Affine:
        if isinstance(other, int):
            return Affine(self.constant + other, self.terms)
        sums = dict(self.terms)
        for depth, coefficient in other.terms:
            sums[depth] = sums.get(depth, 0) + coefficient
        terms = tuple((depth, sums[depth]) for depth in sorted(sums) if sums[depth])
        return Affine(self.constant + other.constant, terms)

    __radd__ = __add__

    def __neg__(self) -> Affine:
        return self * -1

    def __sub__(self, other: Affine | int) -> Affine:
        return self + -other

    def __rsub__(self, other: int) -> Affine:
        return -self + other

    def __mul__(self, factor: int) -> Affine:
        if factor == 0:
            return Affine(0)
        return Affine(self.constant * factor, tuple((depth, part * factor) for depth, part in self.terms))

    __rmul__ = __mul__

    def parted(self, depth: int, period: int, place: int) -> Affine:
        """With the counter of a loop as so many times another, and a place."""
        by = dict(self.terms).get(depth, 0)
        return self + by * ((period - 1) * Affine.counter(depth) + place)

    def coefficients(self, depths: int) -> list[int]:
        """One coefficient for each of so many depths."""
        by_depth = dict(self.terms)
        return [by_depth.get(depth, 0) for depth in range(depths)]

    def range_over(self, box: Box) -> tuple[int, int]:
        """The lowest and the highest value where each counter takes any value of its interval."""
        low = high = self.constant
        for depth, coefficient in self.terms:
            ends = coefficient * box[depth][0], coefficient * box[depth][1]
            low, high = low + min(ends), high + max(ends)
        return low, high

    def magnitude_over(self, box: Box) -> int:
        """A bound on every partial sum of the terms, in whatever order they are added."""
        parts = (abs(part) * max(abs(box[depth][0]), abs(box[depth][1]), 1) for depth, part in self.terms)
        return abs(self.constant) + sum(parts)


def simplified(value: Affine) -> Affine | int:
    """The integer where no counter is left."""
    return value.constant if value.is_constant else value


__all__ = ["Affine", "Box", "simplified"]
