"""The NAS benchmarks' random numbers: x ← 5¹³·x mod 2⁴⁶, uniform = x·2⁻⁴⁶ (NAS technical report RNR-94-007, 2.3).

The k-th number is s·a^k, so a rectangle of consecutive numbers is the outer product of two small tables of powers. The
product of two 46-bit numbers wraps at 2⁶⁴ and still has the right low 46 bits, so plain uint64 does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

MULTIPLIER = 5**13
BITS = 46
MASK = (1 << BITS) - 1


def powers(base: int, count: int, first: int = 1) -> Any:
    """first·base^k mod 2⁴⁶ for k = 0 … count − 1, as uint64; the table doubles step by step."""
    table, step = np.array([first & MASK], np.uint64), base & MASK
    while table.size < count:
        table = np.concatenate([table, table * np.uint64(step) & np.uint64(MASK)])
        step = step * step & MASK
    return table[:count]


def tables(seed: int, rows: int, columns: int, stride: int = 1) -> tuple[Any, Any]:
    """Columns R (rows) and C (columns) with R[h]·C[j] ≡ x at place stride·(columns·h + j) mod 2⁴⁶; place 0 is a·s."""
    step = pow(MULTIPLIER, stride, 1 << BITS)
    across = powers(step, columns, MULTIPLIER)
    return powers(pow(step, columns, 1 << BITS), rows, seed), across
