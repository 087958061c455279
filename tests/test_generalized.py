"""Products over other operations, against loops over rows and columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.running import session
from support.sizes import examples

import outcore as oc
from outcore.errors import ArgumentError, ShapeError

PAIRS: dict[str, Callable[[Any, Any], Any]] = {
    "multiply": np.multiply,
    "add": np.add,
    "subtract": np.subtract,
    "minimum": np.minimum,
    "not_equal": np.not_equal,
}


def operators(node: Any) -> set[str]:
    return {node.op}.union(*(operators(part) for part in node.inputs))


@settings(max_examples=examples(60), deadline=None)
@given(
    shape=st.tuples(st.integers(1, 9), st.integers(1, 12), st.sampled_from([1, 4, 9, 16, 20])),
    name=st.sampled_from(sorted(PAIRS)),
    add=st.sampled_from(["sum", "min", "max", "any"]),
    seed=st.integers(0, 99),
    tile=st.integers(1, 9),
)
def test_every_pair_of_operations(shape: Any, name: str, add: str, seed: int, tile: int) -> None:
    m, k, n = shape
    random = np.random.default_rng(seed)
    a, b = random.integers(-3, 4, (m, k)).astype(np.float64), random.integers(-3, 4, (k, n)).astype(np.float64)
    pairs = PAIRS[name](a[:, None, :], b.T[None, :, :])
    if pairs.dtype == bool and add in ("min", "max"):
        return
    with session():
        lazy = oc.rechunk(oc.asarray(a), (min(tile, m), min(tile, k)))
        found = oc.inner(lazy, oc.asarray(b), name, add)  # type: ignore[arg-type]
        np.testing.assert_array_equal(found.compute(), getattr(np, add)(pairs, axis=-1))


@pytest.mark.parametrize(
    "distance", [lambda a, b: (a - b) ** 2, lambda a, b: np.square(b - a), lambda a, b: (a - b) * (a - b)]
)
def test_squared_distances_are_products(distance: Any) -> None:
    random = np.random.default_rng(1)
    a, b = random.normal(size=(300, 7)) + 1e3, random.normal(size=(7, 5)) + 1e3
    with session():
        found = oc.inner(oc.asarray(a), oc.asarray(b), distance)
        assert "matmul" in operators(found._expr)
        np.testing.assert_allclose(found.compute(), ((a[:, None] - b.T[None]) ** 2).sum(-1), rtol=1e-9)


def test_functions_of_ones_own_are_traced() -> None:
    a, b = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    with session():
        found = oc.inner(oc.asarray(a), oc.asarray(b), lambda x, y: np.exp(-np.abs(x - y)), "max")
        expected = np.exp(-np.abs(a[:, None] - b.T[None])).max(-1)
        np.testing.assert_allclose(found.compute(), expected, rtol=1e-12)


def test_what_cannot_be_paired_is_refused() -> None:
    with session():
        x = oc.ones((2, 3))
        with pytest.raises(ShapeError, match=r"inner: \(2, 3\) and \(2, 3\) are not \(m, k\) and \(k, n\)"):
            oc.inner(x, x)
        with pytest.raises(ArgumentError, match="add='mean' is not one of sum"):
            oc.inner(x, x.T, "add", "mean")  # type: ignore[arg-type]
        with pytest.raises(ArgumentError, match="multiply='sort' is not the name"):
            oc.inner(x, x.T, "sort")
        with pytest.raises(ShapeError, match="must pair elements"):
            oc.inner(x, x.T, lambda a, b: a, "min")
