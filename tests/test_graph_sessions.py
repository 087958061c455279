"""Graphs in sessions that do other things as well: what a call leaves in memory, and who gives way to whom."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.running import read_by, refusals, session
from support.sizes import sized

import outcore as oc
from outcore.graph import Graph

N = 1 << 17


@pytest.fixture(scope="module")
def made(shared: Path) -> list[Path]:
    """Graphs of 2^17 vertices whose lists take some four megabytes, and one of a few kilobytes."""
    with session(shared):
        rows, columns = oc.sparse.rmat_edges(N, 2 << 20, seed=3)
        oc.graph.from_arrays(rows, columns, shared / "0.ocg", vertices=N)
        oc.graph.from_arrays([0, 1], [1, 2], shared / "small.ocg")
    for copy in ("1.ocg", "2.ocg"):
        shutil.copy(shared / "0.ocg", shared / copy)
    return [shared / name for name in ("0.ocg", "1.ocg", "2.ocg", "small.ocg")]


def components(G: Graph) -> Any:
    return oc.graph.connected_components(G)


def reads(current: Any, G: Graph, times: int = 3) -> list[int]:
    return [read_by(current, partial(components, G)) for _ in range(times)]


def test_a_call_takes_what_results_leave(made: list[Path], out: Path) -> None:
    """Memory for reading is a part of what is left, not of what there would be if nothing were held."""
    G = oc.graph.open(made[3])
    with session(out, memory_limit=8 << 30, pool_limit=360 << 20):
        held = oc.ones((40 << 20,)).compute()  # 320 MiB
        told = oc.graph.explain(oc.graph.bfs, G, 0)
        assert told.fits
        assert told.budget_bytes <= 40 << 20
        assert oc.graph.bfs(G, 0).tolist() == [0, 1, 2]
        del held


def test_unused_graphs_hold_nothing_that_another_needs(made: list[Path], out: Path) -> None:
    least = refusals(lambda: components(oc.graph.open(made[0])), out)[-1].smallest
    size = made[0].stat().st_size
    with session(out, pool_limit=least + 2 * size) as current:
        others = []
        for number in range(12):
            shutil.copy(made[0], out / f"{number}.ocg")
            others.append(oc.graph.open(out / f"{number}.ocg"))
            components(others[-1])
        first, *again = reads(current, oc.graph.open(made[1]))
        assert first > 3 << 20
        assert max(again) < first // 20
        assert current.counters()["kept_bytes"] <= 2 * size
        del others
    with session(out, pool_limit=least + 2 * size) as current:
        components(oc.graph.open(made[0]))
        assert current.counters()["kept_bytes"] < 1 << 20, "a graph that is gone keeps nothing"


def test_what_a_search_left_is_no_hole_for_what_needs_all(made: list[Path], out: Path) -> None:
    """Whatever part of it other calls left to a cache: what fits without that fits with it."""
    source = 0

    def between(G: Graph) -> Any:
        return oc.graph.betweenness_centrality(G, [source])

    with session(out):
        expected = between(oc.graph.open(made[0]))
    least = refusals(lambda: between(oc.graph.open(made[0])), out)[-1].smallest
    for more in range(0, 8 << 20, 1 << 20):
        with session(out, pool_limit=least + more):
            G = oc.graph.open(made[0])
            oc.graph.bfs(G, source)
            assert np.array_equal(between(G), expected)


def test_results_of_another_session_leave_room_for_a_cache(made: list[Path]) -> None:
    overhead = (2 << 30) - oc.Session(memory_limit=2 << 30).counters()["budget_bytes"]
    limit = overhead + (220 << 20)
    with oc.Session(memory_limit=limit, progress=False):
        held = oc.ones((12 << 20,)).compute()  # 96 MiB
        with oc.Session(memory_limit=limit, progress=False) as current:
            for path in made[:3]:
                _, *again = reads(current, oc.graph.open(path))
                assert again == [0, 0]
        del held


def test_a_graph_stays_in_each_session_that_uses_it(made: list[Path], out: Path) -> None:
    G = oc.graph.open(made[0])
    with session(out) as first, session(out) as second:
        once = []
        for current in (first, second, first, second):
            with current:
                once.append(read_by(current, partial(components, G)))
    assert once[0] == once[1] > 0
    assert once[2:] == [0, 0]


def test_tiles_of_what_was_computed_before_give_way_to_graphs_in_use(made: list[Path], out: Path) -> None:
    np.save(out / "x.npy", np.random.default_rng(0).random(6 << 20))
    with session(out, pool_limit=90 << 20) as current:
        first, second = (oc.graph.open(path) for path in made[:2])
        oc.sort(oc.open(out / "x.npy")).compute()
        oc.open(out / "x.npy").sum().compute()
        kept = current.counters()["kept_bytes"]
        assert kept > 30 << 20
        components(first), components(second)
        assert [read_by(current, partial(components, G)) for G in (first, second) * 2] == [0] * 4


def test_a_cached_file_is_as_large_as_it_was_once_there_is_room(made: list[Path], out: Path) -> None:
    np.save(out / "x.npy", np.zeros(6 << 20))
    offsets = 4096 * np.arange(7000, dtype=np.uint64)
    with session(out, pool_limit=90 << 20) as current:
        file = oc.io.cached(out / "x.npy", memory=40 << 20)

        def read() -> Any:
            return file.read_at(offsets, 8)

        once = read_by(current, read)
        assert once >= 7000 * 4096
        assert read_by(current, read) == 0
        oc.sort(oc.random.uniform((4 << 20,), seed=1)).compute()
        oc.graph.pagerank(oc.graph.open(made[0]), iterations=1, tol=0)
        read()
        assert read_by(current, read) == 0


def test_a_search_of_many_levels_names_the_memory_that_it_needs(out: Path) -> None:
    """Few levels do with less, so a search begins with that; of many it says how much they take."""
    n = sized(1 << 13, 1 << 15)
    order = np.random.default_rng(0).permutation(n)
    with session(out):
        oc.graph.from_arrays(order[:-1], order[1:], out / "path.ocg", vertices=n)

    def between() -> Any:
        return oc.graph.betweenness_centrality(oc.graph.open(out / "path.ocg"), [int(order[0])], normalized=False)

    few_levels, any_levels = (refusal.smallest for refusal in refusals(between, out))
    assert few_levels < any_levels
    found = {}
    for pool_limit in (any_levels + 1, 8 << 30):
        with session(out, memory_limit=16 << 30, pool_limit=pool_limit), oc.profile() as seen:
            found[pool_limit] = between()
        # There and back.
        assert sum(row.number for row in seen.outcomes[-1].other["iterations"]) == 2 * n - 1
    few, many = found.values()
    assert np.array_equal(few, many)
    assert few[order[n // 2]] > 0
