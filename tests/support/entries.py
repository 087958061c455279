"""Entries of sparse matrices for tests that store them."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from support.sizes import examples

SLOW = settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
DTYPES = ("bool", "int8", "uint16", "int64", "float32", "float64", "complex128")
SHAPES = st.tuples(st.integers(1, 40), st.integers(1, 40))


def dense(matrix: Any) -> Any:
    return matrix.to_scipy().toarray()


def drawn(seed: int, shape: tuple[int, int], count: int, dtype: str = "float64") -> tuple[Any, Any, Any]:
    """Entries with duplicates; whole numbers, whose sums are exact in any order."""
    random = np.random.default_rng(seed)
    rows, columns = (random.integers(0, length, count) for length in shape)
    values = random.integers(0, 5, count).astype(dtype)
    if dtype == "int8":
        values[30:] = 0  # that it holds the sum of all of them
    return rows, columns, values
