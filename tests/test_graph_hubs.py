"""A vertex with millions of neighbours: whatever is asked of its graph takes no memory for its list."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks import cgroup
from support.graph_children import AROUND, HUB, ONE_WAY
from support.running import assert_nothing_but_kept, session

import outcore as oc
from outcore.errors import MemoryLimitError
from outcore.graph import VertexProgram, state

LEAVES = 1 << 21
N = LEAVES + 1
IDS = np.arange(N)
# What the list of the hub would take whole, beside what is known of vertices: read, decoded with its weights, and told.
WHOLE_BYTES = 2 * (4 + 4 + 8 + 8) * LEAVES * 5 // 4
LIMIT = 352 << 20
TIMEOUT_SECONDS = 120


@pytest.fixture(scope="module")
def star(shared: Path) -> Path:
    """The hub and its leaves, with weights."""
    with session(shared):
        leaves = np.delete(IDS, HUB)
        weights = (leaves % 5 + 1).astype(np.float32)
        oc.graph.from_arrays(np.full(LEAVES, HUB), leaves, shared / "star.ocg", weights=weights, directed=False)
    return shared / "star.ocg"


@pytest.fixture(scope="module")
def way(shared: Path) -> Path:
    """From every even leaf to the hub, and from it to every odd one."""
    with session(shared):
        even, odd = IDS[::2], IDS[1::2][IDS[1::2] != HUB]
        hub = np.full(N, HUB)
        ends = np.concatenate([even, hub[: len(odd)]]), np.concatenate([hub[: len(even)], odd])
        oc.graph.from_arrays(*ends, shared / "way.ocg", vertices=N)
    return shared / "way.ocg"


def check(name: str, found: Any) -> None:
    """Against what it is of a star."""
    is_hub = IDS == HUB
    if name == "bfs":
        assert np.array_equal(found, np.where(is_hub, 1, np.where(IDS == 0, 0, 2)))
    elif name == "paths":
        assert np.array_equal(found, np.where(is_hub, 0.0, IDS % 5 + 1.0))
    elif name == "ranks":
        hub = leaf = 1 / N
        for _ in range(3):
            hub, leaf = 0.15 / N + 0.85 * LEAVES * leaf, 0.15 / N + 0.85 * hub / LEAVES
        np.testing.assert_allclose(found, np.where(is_hub, hub, leaf), rtol=1e-9)
    elif name == "between":
        # On the ways from 0 to all others.
        np.testing.assert_allclose(found, np.where(is_hub, found[HUB], 0))
        assert found[HUB] > 0
    elif name == "labels":
        # Whoever looks at the hub has its label; it keeps its own as long as no other is more frequent.
        assert (found == found[HUB]).mean() > 0.5
    elif name == "independent":
        assert found.tolist() == [HUB] or np.array_equal(found, IDS[~is_hub])
    elif name == "strong":
        assert np.array_equal(found, IDS)
    elif name == "order":
        place = np.empty(N, dtype=np.int64)
        place[found] = IDS
        assert (place[::2] < place[HUB]).all()
        assert (place[HUB] <= place[1::2]).all()
    else:
        values = {"diameter": 2, "cores": 1, "scan": (HUB, LEAVES), "edges": LEAVES}
        assert (found == np.asarray(values.get(name, 0))).all()


@pytest.mark.skipif(not cgroup.is_real(), reason="no memory cgroup can be made here (it needs root)")
def test_all_in_a_group_that_leaves_no_room_for_the_list(star: Path, way: Path, out: Path) -> None:
    given = {"star": str(star), "way": str(way), "out": str(out), "memory_limit": LIMIT}
    outcome = cgroup.run_limited("support.graph_children:around", given, LIMIT, TIMEOUT_SECONDS)
    assert outcome.reason is None, outcome.stderr
    assert outcome.oom_kills == 0
    assert outcome.peak_rss_bytes is not None
    assert outcome.peak_rss_bytes <= LIMIT
    assert set(outcome.value) == set(AROUND) | set(ONE_WAY)
    for name in outcome.value:
        check(name, np.load(out / f"{name}.npy"))


class Lowest(VertexProgram):
    """Components, by the lowest label that is told, and how often lists of each vertex were seen."""

    label = state("uint32")
    calls = state("uint32")
    combine = "min"

    def run(self, v: Any) -> None:
        if self.iteration == 0:
            self.label[v.ids] = v.ids
        self.request(v.ids)

    def on_edges(self, e: Any) -> None:
        self.calls[e.vertices] += 1
        self.multicast(e, self.label[e.vertices])

    def on_message(self, m: Any) -> None:
        lower = m.values < self.label[m.ids]
        self.label[m.ids[lower]] = m.values[lower]
        self.activate(m.ids[lower])


class LowestInParts(Lowest):
    takes_parts = True


def test_a_program_takes_parts_if_it_says_so(star: Path) -> None:
    with session(star.parent) as current:
        G = oc.graph.open(star)
        whole, parts = G.run(Lowest()), G.run(LowestInParts())
        for found in (whole, parts):
            assert not found.label.any()
        assert np.array_equal(np.delete(whole.calls, HUB), np.delete(parts.calls, HUB))
        assert parts.calls[HUB] == LEAVES // (1 << 18) * whole.calls[HUB]
        assert_nothing_but_kept(current)
    with session(star.parent, pool_limit=128 << 20) as current:
        G = oc.graph.open(star)
        with pytest.raises(MemoryLimitError, match="graph: lists: needs"):
            G.run(Lowest())
        assert not G.run(LowestInParts()).label.any()
        assert_nothing_but_kept(current)


def test_vertices_without_neighbours_come_around_a_long_list(shared: Path) -> None:
    """Those before, between and behind are in one call each as ever."""
    n, hub = 3 << 20, 1 << 19
    with session(shared):
        G = oc.graph.from_arrays(np.full(1 << 20, hub), np.arange(1 << 20) * 2 + 1, shared / "gaps.ocg", vertices=n)

        class Seen(VertexProgram):
            takes_parts = True
            calls = state("uint32")
            neighbours = state("int64")

            def on_edges(self, e: Any) -> None:
                self.calls[e.vertices] += 1
                self.neighbours[e.vertices] += np.diff(e.begins)

        found = G.run(Seen())
        assert np.array_equal(found.calls, np.where(np.arange(n) == hub, 4, 1))
        assert np.array_equal(found.neighbours, np.where(np.arange(n) == hub, 1 << 20, 0))


@pytest.mark.parametrize("name", ["triangles", "clustering", "scan", "labels", "independent", "edges", "bfs", "ranks"])
def test_the_list_takes_no_memory(name: str, star: Path) -> None:
    """As little as is needed does not hold the list, and what is refused says so before anything is read."""
    with session(star.parent, pool_limit=1 << 20) as current:
        G = oc.graph.open(star)
        before = current.counters()["bytes_read"]
        with pytest.raises(MemoryLimitError, match=r"graph: .* needs [0-9.]+ [KMG]?i?B") as refused:
            AROUND[name](G)
        assert current.counters()["bytes_read"] == before
        assert_nothing_but_kept(current)
    least = refused.value.smallest
    assert least < 25 * N + WHOLE_BYTES
    with session(star.parent, pool_limit=least + 1) as current:
        check(name, AROUND[name](oc.graph.open(star)))
        assert_nothing_but_kept(current)
