"""What is read of a graph on disk: pages of the lists that are wanted, as docstrings promise, and nothing else."""

from __future__ import annotations

import shutil
import struct
from functools import partial
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from support.graphs import PAGE, circulant, opened, rmat, write
from support.running import ROOMY, assert_nothing_but_kept, read_by, refusals, session

import outcore as oc
from outcore.graph import Graph, VertexProgram, state

N = 100_000


def pages(G: Graph) -> list[int]:
    """Bytes of the pages of lists of each direction."""
    header = G.path.read_bytes()[: PAGE // 16]
    lists = [struct.unpack_from("<Q", header, at + 16)[0] for at in (48, 128)[: 1 + G.directed]]
    return [-(-size // PAGE) * PAGE for size in lists]


def pages_of_lists(G: Graph) -> tuple[Any, Any]:
    """The first page of the list of each vertex that edges lead from, and the one behind the last."""
    data = G.path.read_bytes()
    list_bytes, index, large = struct.unpack_from("<QQQ", data, 48 + 16)
    n = G.number_of_vertices
    lengths = np.frombuffer(data, np.uint8, n, index).astype(np.int64)
    aside = np.frombuffer(data, np.dtype([("vertex", "<u4"), ("bytes", "<u8")]), large, index + n)
    lengths[aside["vertex"]] = aside["bytes"]
    ends = np.cumsum(lengths)
    assert ends[-1] == list_bytes
    return (ends - lengths) // PAGE, np.where(lengths > 0, -(-ends // PAGE), (ends - lengths) // PAGE)


def distinct(firsts: Any, ends: Any) -> int:
    """Pages that are in one of some ranges."""
    marks = np.zeros(int(ends.max(initial=0)) + 1, np.int64)
    np.add.at(marks, firsts, 1)
    np.add.at(marks, ends, -1)
    return int((np.cumsum(marks) > 0).sum())


class Asking(VertexProgram):
    total = state("int64")

    def __init__(self, *wanted: int) -> None:
        self.wanted = np.array(wanted)

    def run(self, v: Any) -> None:
        self.request(self.wanted)


def test_a_list_is_read_by_its_page(out: Path) -> None:
    with session(out) as current:
        G = opened(out / "g.ocg", circulant(N, [1, 2]))
        assert read_by(current, lambda: G.neighbors(50_000)) == PAGE
        assert read_by(current, lambda: G.lists([60_000, 60_001, 60_000])) == PAGE
        assert read_by(current, lambda: G.lists([50_000, 60_000])) == 0  # what was read is there
        assert read_by(current, lambda: G.lists([])) == 0
        assert read_by(current, lambda: G.run(Asking(70, 99_000), active=[0])) == 2 * PAGE
        assert read_by(current, lambda: G.run(Asking(70, 99_000), active=[0])) == 0
        assert read_by(current, lambda: G.degrees()) < 2 * N


def test_a_list_with_weights_is_read_by_its_pages(out: Path) -> None:
    with session(out) as current:
        G = opened(out / "g.ocg", circulant(N, [1, 2], weights=True))
        G.neighbors(0)
        assert read_by(current, lambda: G.neighbors(50_000)) <= 3 * PAGE


def test_whole_reads_are_one_read_of_the_lists(out: Path) -> None:
    with session(out) as current:
        graph = rmat(12, 40_000)
        G, U = write(graph, out), write(nx.Graph(graph), out, name="u.ocg")
        forward, backward = pages(G)
        degrees = 2 * len(graph)
        assert read_by(current, lambda: oc.graph.connected_components(G)) == forward
        three = read_by(current, lambda: oc.graph.pagerank(G, tol=0, iterations=3))
        assert backward <= three <= 3 * backward + degrees  # few pages stay in the cache
        counted = read_by(current, lambda: oc.graph.triangles(U))
        assert pages(U)[0] <= counted <= 2 * pages(U)[0] + degrees
        U = oc.graph.open(U.path)  # of which nothing is in memory
        assert read_by(current, lambda: U.number_of_loops) == pages(U)[0]
        assert read_by(current, lambda: U.number_of_loops) == 0, "they are known"
        halves = read_by(current, lambda: oc.graph.label_propagation(U, iterations=4))
        assert halves <= 4 * pages(U)[0]


def test_a_search_reads_what_it_meets(out: Path) -> None:
    """Two circles: that of the source is read, and of others no page."""
    graph = nx.disjoint_union(nx.cycle_graph(3), nx.gnp_random_graph(3000, 0.01, seed=1))
    with session(out) as current:
        G = write(graph, out)
        assert read_by(current, lambda: oc.graph.bfs(G, 0)) <= 3 * PAGE
        assert read_by(current, lambda: oc.graph.bfs(G, [])) == 0
        # A level is some pages more than its lists, at most all.
        levels = int(oc.graph.bfs(G, 5).max()) + 1
        assert read_by(current, lambda: oc.graph.bfs(G, 5)) <= levels * pages(G)[0]


@pytest.fixture(scope="module")
def drawn(shared: Path) -> Path:
    """R-MAT, 2^18 vertices."""
    with session(shared):
        rows, columns = oc.sparse.rmat_edges(1 << 18, 4 << 20, seed=3)
        oc.graph.from_arrays(rows, columns, shared / "drawn.ocg", vertices=1 << 18)
    return shared / "drawn.ocg"


@pytest.mark.parametrize("pool_limit", [ROOMY, 48 << 20, 39 << 20])
def test_a_search_of_one_percent_reads_the_pages_of_its_lists(drawn: Path, pool_limit: int) -> None:
    """Searches from several vertices, as far as a hundredth of the vertices is asked for its list, more or less."""
    with session(drawn.parent):
        G = oc.graph.open(drawn)
        firsts, ends = pages_of_lists(G)
        degrees = G.degrees()
        sources = [
            int(np.flatnonzero(degrees == degree)[at]) for degree in (2, 3, 5, 8, 12, 20, 50, 120) for at in (0, -1)
        ]
        levels = {source: oc.graph.bfs(G, source) for source in sources}
    cases = 0
    for source, level in levels.items():
        for cutoff in range(1, 6):
            asked = (level >= 0) & (level < cutoff)
            if not 0.004 <= asked.mean() <= 0.025:
                continue
            cases += 1
            with session(drawn.parent, pool_limit=pool_limit) as current:
                G = oc.graph.open(drawn)
                moved = read_by(current, partial(oc.graph.bfs, G, source, cutoff=cutoff))
            needed = distinct(firsts[asked], ends[asked]) * PAGE
            # Where most of them were met, those that were not may look for them instead: then less is needed.
            assert 0.5 * needed <= moved <= 1.5 * needed, (source, cutoff, asked.mean(), moved / needed)
    assert cases >= 3, "no search asks for a hundredth of the lists"


def test_a_whole_search_reads_no_more_pages_than_there_are(drawn: Path) -> None:
    """Levels of few vertices and of most: what was read for one is there for the next, and for the next call."""
    with session(drawn.parent) as current:
        G = oc.graph.open(drawn)
        levels = []
        moved = read_by(current, lambda: levels.append(oc.graph.bfs(G, 0)))
        assert levels[0].max() > 3
        assert (levels[0] >= 0).mean() > 0.4
        assert moved <= sum(pages(G))
        assert read_by(current, lambda: levels.append(oc.graph.bfs(G, 0))) == 0
        assert np.array_equal(*levels)
    with session(drawn.parent) as current:
        G = oc.graph.open(drawn)
        ranks = read_by(current, lambda: oc.graph.pagerank(G, tol=0, iterations=5))
        assert ranks <= 1.01 * pages(G)[1] + 2 * G.number_of_vertices, "five iterations, one read"
        assert read_by(current, lambda: oc.graph.pagerank(G, tol=0, iterations=5)) == 0


def test_every_other_sweep_goes_backward(drawn: Path) -> None:
    """Where the cache holds half of the lists, what it has of the end of one sweep is met first in the next. If each
    went forward, whatever gives way would be wanted before what stays: all would be read every time."""
    with session(drawn.parent):
        whole = pages(oc.graph.open(drawn))[1]

    def ranks() -> Any:
        return oc.graph.pagerank(oc.graph.open(drawn), tol=0, iterations=7)

    least = refusals(ranks, drawn.parent)[-1].smallest
    with session(drawn.parent, pool_limit=least + whole * 7 // 8), oc.profile() as seen:
        ranks()
    first, *later = (row.bytes_read for row in seen.outcomes[-1].other["iterations"])
    assert len(later) == 6
    assert first > 0.95 * whole
    assert max(later) < 0.85 * whole
    assert sum(later) < 0.65 * 6 * whole


class Listening(VertexProgram):
    """Asks for all lists with their weights in each iteration."""

    total = state("float64")

    def run(self, v: Any) -> None:
        self.request(v.ids, "in")
        self.activate(v.ids)

    def on_edges(self, e: Any) -> None:
        self.total[e.vertices] += np.add.reduceat(np.append(e.weights, 0), e.begins[:-1]) * (np.diff(e.begins) > 0)


@pytest.mark.parametrize("way", ["built in", "in Python"])
def test_a_sweep_that_is_larger_than_the_cache_leaves_what_the_next_begins_with(
    drawn: Path, out: Path, way: str
) -> None:
    """The rest passes the cache by, and does not drive that out."""
    with session(out):
        rows, columns = oc.sparse.rmat_edges(1 << 18, 4 << 20, seed=3)
        weights = oc.ones(len(rows))
        oc.graph.from_arrays(rows, columns, out / "weighted.ocg", weights=weights, vertices=1 << 18)

    def find() -> Any:
        G = oc.graph.open(out / "weighted.ocg")
        if way == "in Python":
            return G.run(Listening(), iterations=5).total  # type: ignore[attr-defined]
        return oc.graph.pagerank(G, tol=0, iterations=5, weighted=True)

    with session(out):
        expected = find()
    least = refusals(find, out)[-1].smallest
    cached = 8 << 20
    # A seventh goes to what is reserved later, or half to what a program may compute.
    more = cached * 7 // 6 if way == "built in" else 3 * cached
    with session(out, pool_limit=least + more), oc.profile() as seen:
        found = find()
    first, *later = (row.bytes_read for row in seen.outcomes[-1].other["iterations"][-5:])
    assert np.array_equal(found, expected)
    assert first > 4 * cached
    assert max(later) < first - 0.6 * cached


def test_an_index_takes_some_bits_a_vertex(drawn: Path, out: Path) -> None:
    """Of skewed graphs, with what is set aside for long lists and with the checksums of all pages: sixteen neighbours a
    vertex, in each direction if edges have one, and as many as thirty-two."""
    n = 1 << 18
    with session(out):
        assert oc.graph.open(drawn).index_bytes <= 3 * n
        for neighbours in (16, 32):
            rows, columns = oc.sparse.rmat_edges(n, n * neighbours // 2, seed=3)
            both = oc.graph.from_arrays(rows, columns, out / f"{neighbours}.ocg", vertices=n, directed=False)
            assert both.number_of_entries > 0.85 * neighbours * n
            assert both.index_bytes <= 1.5 * n


def test_pages_that_stay_give_way(drawn: Path, out: Path) -> None:
    """What calls leave in memory is no obstacle to a program that needs it, or to another session."""
    limit = 64 << 20
    with session(out, pool_limit=limit) as current:
        G = oc.graph.open(drawn)
        lowest = oc.graph.connected_components(G)
        kept = current.counters()["kept_bytes"]
        assert kept > 4 << 20
        assert_nothing_but_kept(current)
        a = oc.random.uniform((1 << 22,), seed=1)
        forecast_bytes = oc.explain(oc.sort(a)).peak_bytes
        assert kept + forecast_bytes > limit, "there is not room for both"
        found = oc.sort(a).compute()
        assert (np.diff(found) >= 0).all()
        del found
        assert current.counters()["peak_bytes"] <= limit
        again = []
        assert read_by(current, lambda: again.append(oc.graph.connected_components(G))) > 0, "pages have gone"
        assert np.array_equal(again[0], lowest)
        current.clear()
        assert current.counters()["kept_bytes"] < 4 << 20
        oc.graph.connected_components(G)
        file = oc.io.cached(drawn, memory=limit - (8 << 20))
        assert file.read_at([0], 4096).shape == (1, 4096)
        del file
    with session(out) as current:
        assert np.array_equal(oc.graph.connected_components(G), lowest)
        assert_nothing_but_kept(current)


def test_a_graph_has_the_memory_that_another_one_needs_no_more(drawn: Path, out: Path) -> None:
    """Each has a cache of its own, which may take all that is left: it goes to the one that is worked on."""
    shutil.copy(drawn, out / "other.ocg")

    def components(G: Graph) -> Any:
        return oc.graph.connected_components(G)

    least = refusals(lambda: components(oc.graph.open(drawn)), out)[-1].smallest
    with session(out, pool_limit=least + drawn.stat().st_size) as current:
        first, other = oc.graph.open(drawn), oc.graph.open(out / "other.ocg")
        for G in (first, other, first):
            once = read_by(current, partial(components, G))
            # Sets of pages are not filled evenly.
            assert read_by(current, partial(components, G)) < 0.02 * once
        assert read_by(current, partial(oc.graph.bfs, other, 0)) > 0
        # Programs in Python have the same caches.
        assert read_by(current, lambda: first.lists([5, 77_000])) > 0
        assert read_by(current, lambda: first.lists([5, 77_000])) == 0


def test_a_search_along_a_path_reads_each_page_once(out: Path) -> None:
    """A hundred thousand levels."""
    with session(out) as current:
        G = opened(out / "g.ocg", circulant(2 * N, [1]))
        levels = []
        moved = read_by(current, lambda: levels.append(oc.graph.bfs(G, 0)))
        assert levels[0].max() == N
        assert moved <= 1.5 * pages(G)[0]


def test_the_index_is_read_once(out: Path) -> None:
    path = opened(out / "g.ocg", circulant(N, [1, 2])).path
    with session(out) as current:
        assert read_by(current, lambda: oc.graph.open(path)) <= PAGE + 2 * N
        G = oc.graph.open(path)
        assert G.index_bytes < 1.3 * N
        assert read_by(current, lambda: repr(G)) == 0


def test_a_chain_of_circles_is_cut_in_few_rounds(out: Path) -> None:
    graph = nx.DiGraph()
    for at in range(0, 2000, 2):
        graph.add_edges_from([(at, at + 1), (at + 1, at)] + ([(at - 1, at)] if at else []))
    with session(out) as current:
        G = write(graph, out)
        moved = read_by(current, lambda: oc.graph.strongly_connected_components(G))
        assert moved < 100_000 * PAGE
