"""Forecasts of factorizations."""

from __future__ import annotations

import dataclasses

from outcore import _core
from outcore._base.shortened import record_text
from outcore._base.sizes import format_size
from outcore._session.session import Session, current
from outcore._show.explanation import Explanation
from outcore.errors import MemoryLimitError


@dataclasses.dataclass(frozen=True)
class FactorForecast:
    """The forecast of a factorization, before anything is computed; `str()` lays it out.

    `ordering` names the ordering, of "auto" the one that was taken too: "auto: nd". `factor_entries` are those of the
    factor with the zeros that larger supernodes cost, `operations` multiplications and additions, `plan` is the
    explanation of the program under the current limit. With pivoting and of low rank all are bounds, which hold.
    """

    rows: int
    entries: int
    ordering: str
    factor_entries: int
    factor_bytes: int
    operations: float
    largest_front: int
    plan: Explanation

    def __repr__(self) -> str:
        return record_text(self, [field.name for field in dataclasses.fields(self)])

    def __str__(self) -> str:
        most = "" if self.plan.exact else "at most "
        lines = [
            ("rows", f"{self.rows:,}, {self.entries:,} entries"),
            ("ordering", self.ordering),
            ("factor", f"{most}{self.factor_entries:,} entries, {format_size(self.factor_bytes)}"),
            ("operations", f"{most}{self.operations:.4g} multiplications and additions"),
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

    def __repr__(self) -> str:
        return record_text(self, [field.name for field in dataclasses.fields(self)])


def factor_target() -> _core.Target:
    """A file in scratch that is planned and never made."""
    path = current()._core.unused_path().removesuffix(".npy") + ".ocf"
    return {"path": path, "overwrite": False, "chunks": None}


def costs_of(node: _core.Expr) -> list[LimitCost]:
    """The costs of a factor under the smallest limit that works and each double of it, up to the first that spills
    nothing."""
    target, costs = factor_target(), []
    options = {key: value for key, value in current().options.items() if key not in ("memory_limit", "progress")}

    def planned(limit: int) -> Explanation:
        with Session(**options, memory_limit=limit, progress=False) as session:
            return Explanation.of(session.plan([node], [target]))

    try:
        limit = planned(1 << 20).memory_limit
    except MemoryLimitError as refused:
        if refused.smallest is None:
            raise
        limit = refused.smallest
    while True:
        plan = planned(limit)
        costs.append(LimitCost(limit, plan.bytes_read, plan.bytes_written, plan.peak_bytes))
        if not plan.bytes_spilled:
            return costs
        limit *= 2


__all__ = ["FactorForecast", "LimitCost"]
