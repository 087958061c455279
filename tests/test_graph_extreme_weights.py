"""Ranks by weights near the ends of float64: sums that no number holds, and numbers whose inverse is none."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.running import session

import outcore as oc
from outcore.graph import Graph

N, DANGLING = 60, 3
EVEN = np.full(N, 1 / N)
LEAST, MOST = 5e-324, np.finfo(np.float64).max
SCALES = {
    "too large together": [MOST],
    "subnormal": [LEAST],
    "without an inverse": [5e-309],
    "both": [MOST, LEAST, 1.0, 1e-310, 1e200, 1e-200],
}
Edges = tuple[npt.NDArray[Any], npt.NDArray[Any]]


def edges() -> Edges:
    """Edges between vertices, of which the last have none that leaves them."""
    drawn = np.random.default_rng(0).integers(0, N - DANGLING, 400), np.random.default_rng(1).integers(0, N, 400)
    places = np.unique(drawn[0] * N + drawn[1])
    return places // N, places % N


def made(path: Path, ends: Edges, weights: Any, **options: Any) -> Graph:
    return oc.graph.from_arrays(*ends, path, weights=weights, vertices=N, overwrite=True, **options)


def exact(ends: Edges, weights: npt.NDArray[Any], start: npt.NDArray[Any], damping: float = 0.85) -> npt.NDArray[Any]:
    """Ranks by shares that are rounded once: w / Σ w of whole numbers."""
    sources, targets = ends
    numbers = [Fraction(weight) for weight in weights.tolist()]
    sums = [Fraction(0)] * N
    for source, number in zip(sources.tolist(), numbers, strict=True):
        sums[source] += number
    shares = [float(number / sums[source]) for source, number in zip(sources.tolist(), numbers, strict=True)]
    ranks, lone = start, np.array([total == 0 for total in sums])
    for _ in range(300):
        along = np.zeros(N)
        np.add.at(along, targets, ranks[sources] * shares)
        ranks = damping * (along + ranks[lone].sum() * start) + (1 - damping) * start
    return ranks


@pytest.mark.parametrize("scales", SCALES.values(), ids=SCALES)
def test_ranks_are_those_of_exact_shares(scales: list[float], tmp_path: Path) -> None:
    ends = edges()
    by_source = np.resize(scales, N)[ends[0]]
    parts = np.random.default_rng(2).integers(1, 9, len(ends[0]))
    weights = by_source * np.where(by_source > 1, parts / 8, parts)
    weights[::17] = scales[-1]  # others than those of the same vertex
    taste = np.random.default_rng(3).random(N)
    taste[::5] = 0
    taste /= taste.sum()
    with session(tmp_path):
        G = made(tmp_path / "g.ocg", ends, weights)
        for start, given_parts in ((EVEN, None), (taste, taste)):
            expected = exact(ends, weights, start)
            for how in ({"tol": 1e-16, "iterations": 300}, {"threshold": 1e-18, "iterations": 10**6}):
                ranks = oc.graph.pagerank(G, weighted=True, personalization=given_parts, **how)
                np.testing.assert_allclose(ranks, expected, rtol=1e-11, atol=1e-16)
        by_node = nx.pagerank(G, tol=1e-16, max_iter=300)
        np.testing.assert_allclose(list(by_node.values()), exact(ends, weights, EVEN), rtol=1e-11)


WEIGHTS = np.random.default_rng(4).integers(1, 1 << 10, 400).astype(np.float64)
HOW = ({}, {"threshold": 1e-9})


@pytest.fixture(scope="module")
def usual(shared: Path) -> list[npt.NDArray[Any]]:
    ends = edges()
    with session(shared):
        G = made(shared / "usual.ocg", ends, WEIGHTS[: len(ends[0])])
        return [oc.graph.pagerank(G, weighted=True, **how) for how in HOW]


@settings(max_examples=10, deadline=None)
@given(exponents=st.lists(st.integers(-1060, 1010), min_size=N, max_size=N))
def test_powers_of_two_change_no_bits(exponents: list[int], usual: list[npt.NDArray[Any]], shared: Path) -> None:
    """Weights of a vertex times the same power: shares of its rank are the same."""
    ends = edges()
    with session(shared):
        G = made(shared / "scaled.ocg", ends, np.ldexp(WEIGHTS[: len(ends[0])], np.array(exponents)[ends[0]]))
        for how, ranks in zip(HOW, usual, strict=True):
            assert np.array_equal(oc.graph.pagerank(G, weighted=True, **how), ranks)
