"""Forecasts of factorizations."""

from __future__ import annotations

import dataclasses

from outcore._base.sizes import format_size
from outcore._show.explanation import Explanation


@dataclasses.dataclass(frozen=True)
class FactorForecast:
    """The forecast of a factorization, before anything is computed; `str()` lays it out.

    `ordering` names the ordering, of "auto" the one that was taken too: "auto: nd". `factor_entries` are those of the
    factor with the zeros that larger supernodes cost, `operations` multiplications and additions, `plan` is the
    explanation of the program under the current limit. With pivoting all are bounds, which hold.
    """

    rows: int
    entries: int
    ordering: str
    factor_entries: int
    factor_bytes: int
    operations: float
    largest_front: int
    plan: Explanation

    def __str__(self) -> str:
        lines = [
            ("rows", f"{self.rows:,}, {self.entries:,} entries"),
            ("ordering", self.ordering),
            ("factor", f"{self.factor_entries:,} entries, {format_size(self.factor_bytes)}"),
            ("operations", f"{self.operations:.4g} multiplications and additions"),
            ("largest front", f"{self.largest_front:,} rows"),
        ]
        return "\n".join(f"{name:<16}{value}" for name, value in lines) + f"\n\n{self.plan}"


@dataclasses.dataclass(frozen=True)
class LimitCost:
    """The bytes that a factorization moves under a memory limit; all numbers are bytes."""

    memory_limit: int
    bytes_read: int
    bytes_written: int
    peak_bytes: int


__all__ = ["FactorForecast", "LimitCost"]
