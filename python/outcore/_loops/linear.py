"""The maximum of a linear function over a polytope, in exact arithmetic: the simplex method with Bland's rule.

Chvátal, "Linear Programming" (1983), chapters 2 and 3. Programs have one variable for each loop of a nest, so that
tables are of some rows and columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

_ARTIFICIAL = -1


class Inequality(NamedTuple):
    """`coefficients · x <= bound`."""

    coefficients: tuple[int, ...]
    bound: int


class _Dictionary:
    """Basic variables by free ones: `basic[r] = rows[r][0] - Σ rows[r][1 + c] · free[c]`."""

    def __init__(self, inequalities: Sequence[Inequality], variables: int) -> None:
        self.rows = [[Fraction(row.bound), *map(Fraction, row.coefficients)] for row in inequalities]
        self.free = list(range(variables))
        self.basic = list(range(variables, variables + len(self.rows)))

    def pivot(self, row: int, column: int, objective: list[Fraction]) -> None:
        """The variables of a row and a column change places."""
        pivot_row, place = self.rows[row], column + 1
        factor = pivot_row[place]
        scaled = [part / factor for part in pivot_row]
        scaled[place] = 1 / factor
        for number, other in enumerate(self.rows):
            if number != row:
                times = other[place]
                if times:
                    self.rows[number] = [part - times * by for part, by in zip(other, scaled, strict=True)]
                    self.rows[number][place] = -times / factor
        self.rows[row] = scaled
        times = objective[place]
        if times:
            objective[0] += times * scaled[0]
            for part in range(1, len(objective)):
                objective[part] -= times * scaled[part]
            objective[place] = -times / factor
        self.basic[row], self.free[column] = self.free[column], self.basic[row]

    def climb(self, objective: list[Fraction]) -> None:
        """Pivots until no free variable raises the objective, `objective[0] + Σ objective[1 + c] · free[c]`."""
        while True:
            rising = [column for column in range(len(self.free)) if objective[column + 1] > 0]
            if not rising:
                return
            column = min(rising, key=self.free.__getitem__)
            ratios = [
                (row[0] / row[column + 1], self.basic[number], number)
                for number, row in enumerate(self.rows)
                if row[column + 1] > 0
            ]
            if not ratios:
                raise OverflowError("the linear function has no maximum")
            self.pivot(min(ratios)[2], column, objective)

    def make_feasible(self) -> bool:
        """Reaches a point of the polytope by an artificial variable; tells whether there is one."""
        worst = min(range(len(self.rows)), key=lambda number: self.rows[number][0], default=0)
        if not self.rows or self.rows[worst][0] >= 0:
            return True
        for coefficients in self.rows:
            coefficients.append(Fraction(-1))
        self.free.append(_ARTIFICIAL)
        objective = [Fraction(0)] * len(self.free) + [Fraction(-1)]
        self.pivot(worst, len(self.free) - 1, objective)
        self.climb(objective)
        if objective[0] < 0:
            return False
        if _ARTIFICIAL in self.basic:
            row = self.basic.index(_ARTIFICIAL)
            column = next(place for place in range(len(self.free)) if self.rows[row][place + 1])
            self.pivot(row, column, objective)
        column = self.free.index(_ARTIFICIAL)
        del self.free[column]
        for coefficients in self.rows:
            del coefficients[column + 1]
        return True


def maximum(objective: Sequence[int], inequalities: Sequence[Inequality]) -> Fraction | None:
    """The maximum of `objective · x` over `x >= 0` that keep the inequalities; None where there is no such x.

    Raises OverflowError where the function grows without bound.
    """
    table = _Dictionary(inequalities, len(objective))
    if not table.make_feasible():
        return None
    sums = [Fraction(0)] * (len(table.free) + 1)
    for variable, coefficient in enumerate(objective):
        if variable in table.free:
            sums[table.free.index(variable) + 1] += coefficient
        else:
            row = table.rows[table.basic.index(variable)]
            sums[0] += coefficient * row[0]
            for place in range(1, len(row)):
                sums[place] -= coefficient * row[place]
    table.climb(sums)
    return sums[0]


__all__ = ["Inequality", "maximum"]
