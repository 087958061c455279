"""Graphs and cached files on failing disks: the n-th read, write, sync, rename and reservation fail, for every n.

Each time: an error with its code, the path, the offset and the cause; the ledger back at zero; and the same call, right
afterwards in the same session, finds what it finds on a disk that works. A call that hangs ends the test's process.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from support.graphs import circulant, directed_of, opened, weighted, write
from support.running import assert_nothing_but_kept, files_below, refusals, session, tree_hash
from support.sizes import Sweep, sized

import outcore as oc
from outcore.errors import OutcoreError
from outcore.graph import Graph, VertexProgram, state

FAULTS = {
    "read:{n}": ("io", "Input/output error"),
    "reserve:{n}": ("memory", ""),
}
WRITES = {
    "write:{n}": ("io", "Input/output error"),
    "write:{n}:enospc": ("space", "No space left on device"),
    "torn-write:{n}": ("io", "Input/output error"),
    "sync:{n}": ("io", "Input/output error"),
}
WRITING = FAULTS | WRITES | {"rename:{n}": ("io", "Input/output error")}
CALLS_MAX, QUIET = 600, 3


def refusal(call: Callable[[], Any]) -> OutcoreError | None:
    try:
        call()
    except OutcoreError as error:
        return error.with_traceback(None)  # whose frames hold arrays
    return None


def check_error(error: OutcoreError, fault: str, *paths: Path) -> None:
    code, cause = WRITING[fault]
    assert error.code == code, str(error)
    assert cause in str(error)
    assert "\n" not in str(error)
    if code == "memory":
        assert {"operator", "need", "limit"} <= set(error.details)
    else:
        assert any(str(path) in str(error) for path in paths), str(error)
        assert any(error.details["path"].startswith(str(path)) for path in paths)
        assert cause in error.details["cause"]
        assert error.details["offset"] >= 0
        assert isinstance(error, OSError)
        assert error.errno in (5, 28)


def each_fault(fault: str, call: Callable[[str], OutcoreError | None], quiet: int = QUIET) -> int:
    """Has the n-th of something fail, for every n until `quiet` more do not: how many there are. Threads do one more or
    less, and some are not missed: of leftovers that are looked for, of headers that were there a moment ago."""
    sweep = Sweep(fault, CALLS_MAX, quiet)
    for n in sweep:
        if call(fault.format(n=n)) is not None:
            sweep.failed()
    return sweep.last


# -- every read -------------------------------------------------------------------------------------------------------


class Told(VertexProgram):
    """The lowest label that is told: components of an undirected graph, by messages that are kept."""

    label = state("uint32")

    def run(self, v: Any) -> None:
        if self.iteration == 0:
            self.label[v.ids] = v.ids
        self.request(v.ids)

    def on_edges(self, e: Any) -> None:
        self.send(e.neighbours, self.label[e.ids])

    def on_message(self, m: Any) -> None:
        before = self.label[m.ids]
        np.minimum.at(self.label, m.ids, m.values)
        self.activate(m.ids[self.label[m.ids] < before])


class Combined(Told):
    """The same, of messages that are combined as they come."""

    combine = "min"


class Sums(VertexProgram):
    """Of all neighbours, with their weights."""

    total = state("float64")

    def on_edges(self, e: Any) -> None:
        np.add.at(self.total, e.ids, e.neighbours * (1 if e.weights is None else e.weights))


SMALL: dict[str, tuple[str, Callable[[Graph], Any]]] = {
    "bfs": ("way", lambda G: oc.graph.bfs(G, 0, direction="both")),
    "shortest_paths": ("way", lambda G: oc.graph.shortest_paths(G, 0)),
    "connected_components": ("both", oc.graph.connected_components),
    "strongly_connected_components": ("way", oc.graph.strongly_connected_components),
    "core_number": ("both", oc.graph.core_number),
    "scan_statistics": ("both", oc.graph.scan_statistics),
    "triangles": ("both", lambda G: oc.graph.triangles(G, each=True)),
    "clustering": ("both", oc.graph.clustering),
    "label_propagation": ("both", lambda G: oc.graph.label_propagation(G, iterations=4)),
    "louvain_communities": ("both", lambda G: np.append(*oc.graph.louvain_communities(G))),
    "betweenness_centrality": ("way", lambda G: oc.graph.betweenness_centrality(G, [0, 1])),
    "topological_sort": ("order", oc.graph.topological_sort),
    "topological_generations": ("order", lambda G: np.concatenate(list(nx.topological_generations(G)))),
    "diameter": ("both", oc.graph.diameter),
    "maximal_independent_set": ("both", oc.graph.maximal_independent_set),
    "pagerank": ("way", lambda G: oc.graph.pagerank(G, tol=0, iterations=3)),
    "lists": ("way", lambda G: G.lists(np.arange(G.number_of_vertices), "in")[1]),
    "a program": ("way", lambda G: G.run(Sums()).total),
    "a program with messages": ("both", lambda G: G.run(Told()).label),
    "a program with combined messages": ("both", lambda G: G.run(Combined()).label),
}


@pytest.fixture(scope="module")
def small(shared: Path) -> Path:
    """An R-MAT graph both ways, one way and without circles, with weights: some dozens of pages each."""
    n, count = 1 << 11, 1 << 14
    with session(shared):
        rows, columns = (np.asarray(part.compute()) for part in oc.sparse.rmat_edges(n, count, seed=1))
        weights = np.random.default_rng(0).integers(1, 9, count).astype(np.float64)
        oc.graph.from_arrays(rows, columns, shared / "way.ocg", vertices=n, weights=weights)
        oc.graph.from_arrays(rows, columns, shared / "both.ocg", vertices=n, weights=weights, directed=False)
        apart = rows != columns
        forward = np.minimum(rows, columns)[apart], np.maximum(rows, columns)[apart]
        oc.graph.from_arrays(*forward, shared / "order.ocg", vertices=n)
    return shared


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("fault", FAULTS)
def test_every_read_and_reservation_fails(fault: str, name: str, small: Path, scratch: Path) -> None:
    """In the least memory, where pages are read again and again."""
    file, of = SMALL[name]
    path = small / f"{file}.ocg"

    def call() -> bytes:
        return np.asarray(of(oc.graph.open(path))).tobytes()

    with session(scratch):
        expected = call()
    least = refusals(call, scratch)[-1].smallest + 1

    def fail(setting: str) -> OutcoreError | None:
        with session(scratch, pool_limit=least, faults=setting) as current:
            error = refusal(call)
            if error is not None:
                check_error(error, fault, path)
                assert_nothing_but_kept(current)
                assert call() == expected
            return error

    each_fault(fault, fail)


# -- in several threads -----------------------------------------------------------------------------------------------

STEPS = [1, 2, 3, *range(10, 1000, 34)]
LARGE: dict[str, Callable[[Graph], Any]] = {
    "bfs": lambda G: oc.graph.bfs(G, 0),
    "ranks": lambda G: oc.graph.pagerank(G, tol=0, iterations=2),
    "triangles": lambda G: oc.graph.triangles(G, each=True),
    "paths": lambda G: oc.graph.shortest_paths(G, 0),
    "independent": oc.graph.maximal_independent_set,
    "lists": lambda G: G.lists(np.arange(G.number_of_vertices))[1],
    "program": lambda G: G.run(Sums()).total,
}


@pytest.mark.parametrize("name", LARGE)
@pytest.mark.parametrize("fault", FAULTS)
def test_the_nth_call_of_a_search_fails(fault: str, name: str, shared: Path, scratch: Path) -> None:
    """Of several batches, so that threads are ended; the last calls of a long search stand for those in its middle."""
    path = shared / "g.ocg"
    with session(scratch):
        G = oc.graph.open(path) if path.exists() else opened(path, circulant(20_000, STEPS, weights=True))
        expected = np.asarray(LARGE[name](G)).tobytes()
    fired, n = 0, 0
    while n < CALLS_MAX:
        n += 1 if n < sized(4, 12) else sized(27, 13)
        with session(scratch, faults=fault.format(n=n)) as current:
            error = refusal(lambda: LARGE[name](oc.graph.open(path)))
            if error is None:
                break
            fired += 1
            check_error(error, fault, path)
            assert_nothing_but_kept(current)
            assert np.asarray(LARGE[name](oc.graph.open(path))).tobytes() == expected
    assert fired > 0, f"{fault} never fired"


# -- what is written --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", WRITING)
def test_the_nth_call_of_making_a_graph_fails(fault: str, out: Path, scratch: Path) -> None:
    graph = weighted(directed_of(nx.gnp_random_graph(300, 0.1, seed=1)))
    ends = np.array(list(graph.edges()))
    weights = np.array([data["weight"] for *_, data in graph.edges(data=True)])

    def make() -> Graph:
        return oc.graph.from_arrays(*ends.T, out / "g.ocg", weights=weights, vertices=300)

    with session(scratch):
        make()
    expected = tree_hash(out)
    tries = itertools.count()

    def fail(setting: str) -> OutcoreError | None:
        shutil.rmtree(out)
        out.mkdir()
        with session(scratch, faults=setting) as current:
            error = refusal(make)
            if error is not None:
                check_error(error, fault, out, scratch)
                assert_nothing_but_kept(current)
                # All that is left to do to a file with its name is to open it.
                there = tree_hash(out)
                assert there in ([{}, expected] if fault.startswith("read") else [{}])
                if not there and next(tries) % 4 == 0:
                    make()
        assert tree_hash(out) == expected or (error is not None and not files_below(out))
        assert files_below(scratch) == []
        return error

    each_fault(fault, fail)


@pytest.fixture(scope="module")
def pairs(shared: Path) -> Path:
    """Pairs of vertices held together by their weight, each with an edge to every other pair: the communities are the
    pairs, and their graph has so many edges that the least memory does not hold it."""
    count = 1440
    first, second = np.triu_indices(count, 1)
    each = np.arange(count)
    ends = np.append(2 * first + (first + second) % 2, 2 * each), np.append(2 * second, 2 * each + 1)
    weights = np.append(np.ones(len(first)), np.full(count, 1 << 15)).astype(np.uint16)
    with session(shared):
        oc.graph.from_arrays(*ends, shared / "pairs.ocg", weights=weights, directed=False)
    return shared / "pairs.ocg"


@pytest.mark.parametrize("fault", ["write:{n}", "sync:{n}", "rename:{n}", "read:{n}"])
def test_a_graph_of_communities_that_is_stored_fails(fault: str, pairs: Path, scratch: Path) -> None:
    def call() -> bytes:
        return np.append(*oc.graph.louvain_communities(oc.graph.open(pairs))).tobytes()

    with session(scratch) as current:
        expected = call()
        assert current.counters()["bytes_written"] == 0
    # So much more than the least keeps the pages that were read: there are fewer reads to fail.
    pool = refusals(call, scratch)[-1].smallest + (30 << 20)
    files, tries = set(), itertools.count()
    with session(scratch):
        left = files_below(scratch)  # of a session without a file
    with session(scratch, pool_limit=pool) as current:
        assert call() == expected
        reads = current.counters()["read_calls"]
        assert current.counters()["bytes_written"] > 0

    def fail(setting: str) -> OutcoreError | None:
        with session(scratch, pool_limit=pool, faults=setting) as current:
            error = refusal(call)
            if error is not None:
                check_error(error, fault, pairs, scratch)
                files.add(error.details["path"] == str(pairs))
                assert_nothing_but_kept(current)
                assert files_below(scratch) == left
                if next(tries) % 3 == 0:
                    assert call() == expected
        assert files_below(scratch) == []
        return error

    if fault.startswith("read"):
        # Every read of a smaller graph is tried above; here some from the first to the last: those of the graph itself
        # come first. The very last is left out, for threads do one more or less.
        for sixth in range(6):
            assert fail(fault.format(n=1 + sixth * reads // 6)) is not None
        assert files == {True, False}
    else:
        each_fault(fault, fail, quiet=1)
        assert files == {False}


@pytest.mark.parametrize("short", ["short-read:{n}", "short-write:{n}"])
def test_a_short_transfer_goes_on_where_it_stopped(short: str, out: Path, scratch: Path) -> None:
    graph = weighted(nx.gnp_random_graph(300, 0.2, seed=1))
    for n in (1, 2, 5, 9):
        with session(scratch, faults=short.format(n=n)):
            made = oc.graph.from_networkx(graph, out / "g.ocg", weight="weight", overwrite=True)
            assert made.path.read_bytes() == write(graph, out, "float64", "h.ocg").path.read_bytes()
            assert oc.graph.triangles(made) == sum(nx.triangles(graph).values()) // 3


# -- cached files -----------------------------------------------------------------------------------------------------

BYTES = 3_000_123


@pytest.fixture
def cached(out: Path) -> Path:
    """A file of twice the bytes of the cache that it is read through."""
    held = np.random.default_rng(0).integers(0, 256, BYTES, dtype=np.uint8)
    held.tofile(out / "c.bin")
    return out / "c.bin"


def test_every_read_of_a_cached_file_fails(cached: Path) -> None:
    held = np.fromfile(cached, np.uint8)
    offsets = np.random.default_rng(1).integers(0, BYTES - 5000, 40)

    def fail(setting: str) -> OutcoreError | None:
        with session(faults=setting):
            file = oc.io.cached(cached, memory="1.5MiB")
            found = []
            error = refusal(lambda: found.append(file.read_at(offsets, 5000)))
            if error is not None:
                check_error(error, "read:{n}", cached)
                found.append(file.read_at(offsets, 5000))
            assert np.array_equal(found[0], held[offsets[:, None] + np.arange(5000)])
            return error

    assert each_fault("read:{n}", fail) > 10


@pytest.mark.parametrize("fault", [*WRITES, "read:{n}"])
def test_every_write_of_a_cached_file_fails(fault: str, cached: Path) -> None:
    """Dirty pages give way to others, so that some are written before `flush`; and pages are read to be written to."""
    random = np.random.default_rng(2)
    before = np.fromfile(cached, np.uint8)
    offsets = random.integers(0, BYTES - 60_000, 30)
    rows = random.integers(0, 256, (30, 60_000), dtype=np.uint8)
    after = before.copy()
    for offset, row in zip(offsets.tolist(), rows, strict=True):
        after[offset : offset + row.size] = row

    def fail(setting: str) -> OutcoreError | None:
        before.tofile(cached)
        with session(faults=setting):
            file = oc.io.cached(cached, mode="r+", memory="1.5MiB")

            def put() -> None:
                file.write_at(offsets, rows)
                file.flush()

            error = refusal(put)
            if error is not None:
                check_error(error, fault, cached)
                put()
        assert np.array_equal(np.fromfile(cached, np.uint8), after)
        return error

    each_fault(fault, fail)
