"""Ingests and scans are one run of a profile each, which has the bytes that the session counted, to the byte."""

from __future__ import annotations

import contextvars
import gc
import json
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
import pytest
import scipy.io
import scipy.sparse
from support.running import session

import outcore as oc
from outcore._session.accounts import ByteAccount, Moved, Share
from outcore.errors import OutcoreError

MATRIX, GRAPH = "ingest of a sparse matrix", "ingest of a graph"
SCAN, LISTS = "scan of a sparse matrix", "look-up of lists of a graph"
RNG = np.random.default_rng(0)
ENDS = RNG.integers(0, 3000, (2, 20_000))
WEIGHTS = RNG.random(20_000)


class Stored(NamedTuple):
    """A matrix, graphs with and without directions, and a folder for what is made of them."""

    A: oc.sparse.SparseMatrix
    G: oc.graph.Graph
    U: oc.graph.Graph
    folder: Path


@pytest.fixture
def current(out: Path) -> Iterator[Any]:
    with session(out) as current:
        yield current


@pytest.fixture
def stored(current: Any, out: Path) -> Stored:
    made = scipy.sparse.coo_array((WEIGHTS, tuple(ENDS)), shape=(3000, 3000))
    scipy.io.mmwrite(out / "m.mtx", made)
    scipy.sparse.save_npz(out / "m.npz", made.tocsr(), compressed=False)
    (out / "e.txt").write_text("".join(f"{i} {j}\n" for i, j in ENDS.T))
    ENDS.T.astype(np.uint32).tofile(out / "e.bin")
    np.save(out / "rows.npy", ENDS[0])
    oc.sparse.from_scipy(made, out / "a.ocs")
    oc.graph.from_arrays(*ENDS, out / "g.ocg", weights=WEIGHTS)
    oc.graph.from_arrays(*ENDS, out / "u.ocg", weights=WEIGHTS, directed=False)
    G, U = (oc.graph.open(out / name) for name in ("g.ocg", "u.ocg"))
    return Stored(oc.sparse.open(out / "a.ocs"), G, U, out)


class Counted(NamedTuple):
    """Bytes that a session counted during a block, which a profile saw."""

    seen: oc.Profile
    moved: tuple[int, int]


def counted(current: Any, call: Callable[[], object], path: Path | None = None) -> Counted:
    before = current.counters()
    with oc.profile(path) as seen:
        call()
    return Counted(seen, since(current, before))


def since(current: Any, before: dict[str, int]) -> tuple[int, int]:
    after = current.counters()
    return after["bytes_read"] - before["bytes_read"], after["bytes_written"] - before["bytes_written"]


def works(seen: oc.Profile) -> list[str]:
    """The runs by their names, of programs an empty one."""
    return [outcome.other.get("work", "") for outcome in seen.outcomes]


def shifted(s: Stored) -> oc.sparse.SparseMatrix:
    """A matrix that has an inverse."""
    return s.A + oc.sparse.from_scipy(scipy.sparse.eye(3000) * 100.0)


INGESTS: dict[str, tuple[str, Callable[[Stored], object]]] = {
    "from_entries": (MATRIX, lambda s: oc.sparse.from_entries((*ENDS, WEIGHTS), s.folder / "x.ocs")),
    "entries in scratch": (MATRIX, lambda s: oc.sparse.from_entries((*ENDS, WEIGHTS), symmetrize=True)),
    "an iterator": (MATRIX, lambda s: oc.sparse.from_entries(iter([tuple(ENDS)]), transpose=s.folder / "t.ocs")),
    "relabelled": (MATRIX, lambda s: oc.sparse.from_entries(tuple(ENDS), s.folder / "x.ocs", relabel="degree")),
    "from_coo": (MATRIX, lambda s: oc.sparse.from_coo(*ENDS, None, (3000, 3000))),
    "from_scipy": (MATRIX, lambda s: oc.sparse.from_scipy(scipy.sparse.eye(3000), s.folder / "x.ocs")),
    "from_csr": (MATRIX, lambda s: oc.sparse.from_csr(oc.arange(3001), oc.arange(3000), None, (3000, 3000))),
    "from_npz": (MATRIX, lambda s: oc.sparse.from_npz(s.folder / "m.npz", s.folder / "x.ocs")),
    "from_mtx": (MATRIX, lambda s: oc.sparse.from_mtx(s.folder / "m.mtx", s.folder / "x.ocs", resume=True)),
    "matrix of edges": (MATRIX, lambda s: oc.sparse.from_edges(s.folder / "e.txt", s.folder / "x.ocs")),
    "from_binary": (MATRIX, lambda s: oc.sparse.from_binary(s.folder / "e.bin", s.folder / "x.ocs")),
    "from_table": (MATRIX, lambda s: oc.sparse.from_table([{"i": [0, 1], "j": [1, 2]}], rows="i", columns="j")),
    "to_sparse": (MATRIX, lambda s: oc.graph.to_sparse(s.G, s.folder / "x.ocs")),
    "from_arrays": (GRAPH, lambda s: oc.graph.from_arrays(*ENDS, s.folder / "x.ocg")),
    "lazy arrays": (GRAPH, lambda s: oc.graph.from_arrays(oc.open(s.folder / "rows.npy"), ENDS[1], directed=False)),
    "resumed": (GRAPH, lambda s: oc.graph.from_arrays(*ENDS, s.folder / "x.ocg", weights=WEIGHTS, resume=True)),
    "graph of edges": (GRAPH, lambda s: oc.graph.from_edges(s.folder / "e.txt", s.folder / "x.ocg")),
    "from_sparse": (GRAPH, lambda s: oc.graph.from_sparse(s.A, s.folder / "x.ocg")),
    "from_sparse resumed": (GRAPH, lambda s: oc.graph.from_sparse(s.A, s.folder / "x.ocg", resume=True)),
    "a transpose": (GRAPH, lambda s: oc.graph.from_sparse(s.A.T, s.folder / "x.ocg")),
    "undirected": (GRAPH, lambda s: oc.graph.from_sparse(s.A, s.folder / "x.ocg", directed=False)),
    "from_networkx": (GRAPH, lambda s: oc.graph.from_networkx(nx.cycle_graph(100))),
}
SCANS: dict[str, tuple[str, Callable[[Stored], object]]] = {
    "degrees": ("scan of the degrees of a graph", lambda s: s.G.degrees("both")),
    "degree_counts": ("scan of the degrees of a graph", lambda s: s.G.degree_counts()),
    "show.degrees": ("scan of the degrees of a graph", lambda s: oc.show.degrees(s.G, ax=False)),
    "loops": ("scan of the loops of a graph", lambda s: s.U.number_of_loops),
    "neighbors": (LISTS, lambda s: s.G.neighbors(7, "both")),
    "lists": (LISTS, lambda s: s.G.lists([7, 9, 2000])),
    "has_edge": (LISTS, lambda s: s.G.has_edge(7, 9)),
    "all lists": ("scan of a graph", lambda s: list(s.G._parts("out", 1 << 12))),
    "opening of a graph": ("opening of a graph", lambda s: oc.graph.open(s.folder / "g.ocg")),
    "opening of a matrix": ("opening of a sparse matrix", lambda s: oc.sparse.open(s.folder / "a.ocs")),
    "opening of another's": ("opening of a sparse matrix", lambda s: oc.sparse.open(s.folder / "m.npz")),
    "show.spy": ("scan of the directory of a sparse matrix", lambda s: oc.show.spy(s.A, ax=False)),
    "blocks": (SCAN, lambda s: list(s.A.blocks())),
    "to_scipy": (SCAN, lambda s: s.A.to_scipy()),
    "toarray": (SCAN, lambda s: s.A.toarray()),
    "layout": (SCAN, lambda s: oc.sparse.layout(s.A)),
    "count_nonzero": (SCAN, lambda s: s.A.count_nonzero(axis=0)),
    "argmax": (SCAN, lambda s: s.A.argmax(axis=1)),
    "norm": (SCAN, lambda s: s.A.norm()),
    "diagonal": (SCAN, lambda s: s.A.T.diagonal()),
    "trace": (SCAN, lambda s: s.A.trace()),
    "to_edges": (SCAN, lambda s: oc.sparse.to_edges(s.A, s.folder / "x.txt")),
    "to_mtx": (SCAN, lambda s: oc.sparse.to_mtx(s.A, s.folder / "x.mtx")),
    "to_npz": ("export of a sparse matrix", lambda s: oc.sparse.to_npz(s.A, s.folder / "x.npz")),
    "spgemm": ("product of sparse matrices", lambda s: oc.sparse.spgemm(s.A, s.A, path=s.folder / "x.ocs")),
    "spgemm resumed": (
        "product of sparse matrices",
        lambda s: oc.sparse.spgemm(s.A, s.A, path=s.folder / "x.ocs", resume=True),
    ),
    "explain_spgemm": ("forecast of a product of sparse matrices", lambda s: oc.sparse.explain_spgemm(s.A, s.A)),
    "a semiring of one's own": (
        "entries of a sparse matrix by rows",
        lambda s: s.A.product(np.ones(3000), ("max", lambda value, x: abs(x - value))),
    ),
}


@pytest.mark.parametrize("kind", INGESTS | SCANS)
def test_it_is_one_run_with_the_bytes_that_the_session_counted(kind: str, current: Any, stored: Stored) -> None:
    name, call = (INGESTS | SCANS)[kind]
    current.clear()
    seen, moved = counted(current, lambda: call(stored))
    assert works(seen) == [name]
    assert (seen.bytes_read, seen.bytes_written) == moved
    assert moved[0] > 0
    (outcome,) = seen.outcomes
    assert outcome.seconds > 0
    assert outcome.other["program_seconds"] <= outcome.seconds
    assert "error" not in outcome.other
    assert f"The {name} took" in seen.page()
    assert f"{name} (test_whole_runs.py:" in seen.page()


PLANNED: dict[str, Callable[[Stored], object]] = {
    "copy": lambda s: s.A.copy(path=s.folder / "x.ocs"),
    "a transpose": lambda s: (s.A + s.A.T).copy(path=s.folder / "x.ocs"),
    "a lazy product": lambda s: (s.A @ s.A).nnz,
    "a product": lambda s: (s.A @ np.ones(3000)).compute(),
    "spy in cells": lambda s: oc.show.spy(s.A, (20, 20), ax=False),
    "pagerank": lambda s: oc.sparse.pagerank(s.A),
    "search": lambda s: oc.graph.bfs(s.G, 0),
    "communities": lambda s: oc.graph.louvain_communities(s.U),
    "diameter": lambda s: oc.graph.diameter(s.U),
    "svds": lambda s: oc.sparse.linalg.svds(s.A, k=2),
    "incomplete factors": lambda s: oc.sparse.linalg.ilu0(shifted(s)),
    "an analysis": lambda s: oc.sparse.linalg.analyze(shifted(s)).explain(),
}


@pytest.mark.parametrize("kind", PLANNED)
def test_no_byte_is_missing_where_programs_and_scans_take_turns(kind: str, current: Any, stored: Stored) -> None:
    current.clear()
    seen, moved = counted(current, lambda: PLANNED[kind](stored))
    assert (seen.bytes_read, seen.bytes_written) == moved


def test_all_but_the_result_went_to_scratch(current: Any, stored: Stored) -> None:
    seen, moved = counted(current, lambda: oc.graph.from_arrays(*ENDS, stored.folder / "x.ocg"))
    assert seen.bytes_spilled == moved[1] - (stored.folder / "x.ocg").stat().st_size > 0
    assert " of them to scratch)" in seen.page()


def test_a_scan_pauses_while_its_caller_works(current: Any, stored: Stored) -> None:
    def call() -> None:
        for rows, _, _ in stored.A.blocks():
            oc.asarray(rows).sum().compute()

    seen, moved = counted(current, call)
    assert sorted(works(seen)) == ["", SCAN]
    assert (seen.bytes_read, seen.bytes_written) == moved


def test_a_scan_that_is_left_has_what_it_read(current: Any, stored: Stored) -> None:
    def call() -> None:
        for _ in stored.G._parts("out", 1 << 12):
            break

    seen, moved = counted(current, call)
    assert works(seen) == ["scan of a graph"]
    assert (seen.bytes_read, seen.bytes_written) == moved
    assert 0 < moved[0] < stored.G.file_bytes
    assert "error" not in seen.outcomes[0].other


def test_scans_and_programs_within_an_ingest_are_parts_of_it(current: Any, stored: Stored) -> None:
    def chunks(sums: int) -> Iterator[Any]:
        stored.G.degrees()
        for rows, columns, _ in stored.A.blocks():
            for _ in range(sums):
                oc.open(stored.folder / "rows.npy").sum().compute()
            yield rows, columns

    programs = []
    for sums in (0, 2):
        seen, moved = counted(current, lambda: oc.sparse.from_entries(chunks(sums)))  # noqa: B023 - called at once
        assert works(seen) == [MATRIX]
        assert (seen.bytes_read, seen.bytes_written) == moved
        programs.append(seen.outcomes[0].other["programs"])
    assert programs[1] == programs[0] + 2


def test_another_session_within_counts_once(current: Any, stored: Stored) -> None:
    inner: list[tuple[int, int]] = []

    def chunks() -> Iterator[Any]:
        with session(stored.folder) as other:
            before = other.counters()
            oc.open(stored.folder / "rows.npy").sum().compute()
            oc.sparse.from_entries(tuple(ENDS)).count_nonzero()
            inner.append(since(other, before))
        yield tuple(ENDS)

    seen, moved = counted(current, lambda: oc.sparse.from_entries(chunks()))
    assert works(seen) == [MATRIX]
    assert (seen.bytes_read, seen.bytes_written) == (moved[0] + inner[0][0], moved[1] + inner[0][1])
    assert inner[0][0] > 0


def test_a_profile_within_an_ingest_takes_what_runs_in_it(current: Any, stored: Stored) -> None:
    inner: list[Counted] = []

    def scan() -> None:
        stored.A.count_nonzero()
        oc.open(stored.folder / "rows.npy").sum().compute()

    def chunks() -> Iterator[Any]:
        inner.append(counted(current, scan))
        yield tuple(ENDS)

    seen, moved = counted(current, lambda: oc.sparse.from_entries(chunks()))
    (within,) = inner
    assert (works(seen), works(within.seen)) == ([MATRIX], [SCAN, ""])
    assert (within.seen.bytes_read, within.seen.bytes_written) == within.moved
    assert (seen.bytes_read + within.seen.bytes_read, seen.bytes_written) == moved


def test_a_scan_that_began_before_an_ingest_is_a_run_beside_it(current: Any, stored: Stored) -> None:
    whole = stored.G.file_bytes

    def call() -> None:
        parts = stored.G._parts("out", 1 << 12)
        next(parts)
        oc.sparse.from_entries((ids, ids) for ids, *_ in parts)

    seen, moved = counted(current, call)
    assert sorted(works(seen)) == [MATRIX, "scan of a graph"]
    assert (seen.bytes_read, seen.bytes_written) == moved
    (scan,) = (outcome for outcome in seen.outcomes if outcome.other["work"] != MATRIX)
    assert 0 < scan.bytes_read < 2 * whole
    assert scan.bytes_written == 0


def test_profiles_of_ingests_stand_side_by_side(current: Any, stored: Stored) -> None:
    def call() -> None:
        oc.sparse.from_entries((*ENDS, WEIGHTS)).count_nonzero()

    before, after = counted(current, call).seen, counted(current, call).seen
    assert SCAN in oc.profile.compare(before, after).page()


def test_scans_within_a_vertex_program_count_once(current: Any, stored: Stored) -> None:
    class Reading(oc.graph.VertexProgram):
        def run(self, v: Any) -> None:
            if self.iteration == 0:
                stored.A.count_nonzero()
                oc.open(stored.folder / "rows.npy").sum().compute()
                stored.G.degrees()
            self.request(v.ids)

        def on_edges(self, e: Any) -> None:
            if self.iteration < 2:
                self.activate(e.neighbours)

    seen, moved = counted(current, lambda: stored.G.run(Reading(), active=[0]))
    assert sorted(works(seen)) == ["", "", SCAN]
    assert (seen.bytes_read, seen.bytes_written) == moved


FAILING: dict[str, tuple[str, Callable[[Path], object]]] = {
    "matrix": (MATRIX, lambda out: oc.sparse.from_entries((*ENDS, WEIGHTS), out / "x.ocs")),
    "graph": (GRAPH, lambda out: oc.graph.from_arrays(*ENDS, out / "x.ocg")),
    "blocks": (SCAN, lambda out: oc.sparse.open(out / "a.ocs").count_nonzero()),
    "degrees": ("scan of the degrees of a graph", lambda out: oc.graph.open(out / "g.ocg").degrees()),
}


@pytest.mark.parametrize("kind", FAILING)
@pytest.mark.parametrize("fault", ["read:{n}", "write:{n}"])
def test_a_failed_one_is_a_run_with_its_error_and_its_bytes(kind: str, fault: str, stored: Stored) -> None:
    name, call = FAILING[kind]
    failed = 0
    for n in range(1, 60):
        with session(stored.folder, faults=fault.format(n=n)) as current, oc.profile() as seen:
            before, error = current.counters(), ""
            try:
                call(stored.folder)
            except OutcoreError as raised:
                error = type(raised).__name__
            moved = since(current, before)
        for path in stored.folder.glob("x.*"):
            path.unlink()
        assert (seen.bytes_read, seen.bytes_written) == moved
        assert works(seen)[-1] == name or works(seen)[-1].startswith("opening")
        assert seen.failed == []
        assert seen.outcomes[-1].other.get("error", "") == error
        if not error:
            break
        failed += 1
        assert f"{error} ended it." in seen.page()
    assert failed or (fault.startswith("write") and kind in ("blocks", "degrees"))


def test_a_call_that_is_refused_before_it_begins_is_no_run(current: Any, stored: Stored) -> None:
    with oc.profile() as seen:
        with pytest.raises(OutcoreError):
            oc.graph.from_arrays([0.5], [1.0])
        with pytest.raises(OutcoreError):
            oc.graph.open(stored.folder / "a.ocs")
    assert [outcome.other["error"] for outcome in seen.outcomes if "error" in outcome.other] == [
        "DTypeError",
        "FormatError",
    ]


def test_threads_share_the_bytes_of_their_session(current: Any, stored: Stored) -> None:
    begin = threading.Barrier(4)

    def ingest() -> None:
        begin.wait()
        oc.sparse.from_entries((*ENDS, WEIGHTS))

    def scan() -> None:
        begin.wait()
        for _ in range(5):
            stored.A.count_nonzero()
            oc.open(stored.folder / "rows.npy").sum().compute()

    def search() -> None:
        begin.wait()
        oc.graph.bfs(stored.G, 0)
        stored.G.degrees()

    def call() -> None:
        threads = [
            threading.Thread(target=contextvars.copy_context().run, args=(work,))
            for work in (ingest, ingest, scan, search)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    seen, moved = counted(current, call)
    names = works(seen)
    assert (names.count(MATRIX), names.count(SCAN), names.count("")) == (2, 5, 6)
    assert (seen.bytes_read, seen.bytes_written) == moved


class Part(Share):
    """A share that says when it is complete."""

    is_complete = False

    def complete(self) -> None:
        self.is_complete = True


class Counters:
    """Counters of a session, which go up by hand, and the account of them."""

    def __init__(self) -> None:
        self.read = self.written = 0
        self.account = ByteAccount(lambda: Moved(self.read, self.written))

    def move(self, read: int, written: int = 0) -> None:
        self.read, self.written = self.read + read, self.written + written


def test_shares_that_are_open_at_a_time_have_equal_parts() -> None:
    session, first, second = Counters(), Part(), Part()
    session.move(1000)
    session.account.open(first)
    session.move(10, 1)
    session.account.open(second)
    session.move(5, 3)
    session.account.close(first)
    session.move(7)
    session.account.close(second)
    session.move(1000)
    assert (first.moved, second.moved) == (Moved(13, 3), Moved(9, 1))


def test_a_share_waits_for_the_program_of_another_thread() -> None:
    session, share, other = Counters(), Part(), Part()
    session.account.open(share)
    with session.account.program(None) as count:
        session.move(100)
        session.account.close(share)
        session.account.end(share)
        assert not share.is_complete
        count(Moved(60))
    assert share.is_complete
    assert share.moved == Moved(40)
    session.account.open(other)
    with session.account.program(other) as count:
        session.move(30, 30)
        count(Moved(20, 30))
    session.account.close(other)
    session.account.end(other)
    assert (other.moved, other.is_complete) == (Moved(30, 30), True)


def test_a_program_that_fails_leaves_its_bytes_to_the_run_around() -> None:
    session, share = Counters(), Part()
    session.account.open(share)

    def fail() -> None:
        with session.account.program(share):
            session.move(8, 4)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    session.account.close(share)
    assert share.moved == Moved(8, 4)


def test_programs_inside_are_drawn_on_the_page_and_in_the_timeline(current: Any, out: Path) -> None:
    ends = RNG.integers(0, 20_000, (2, 400_000))

    def call() -> None:
        oc.sparse.from_entries(tuple(ends))
        oc.ones(5000).sum().compute()

    seen, _ = counted(current, call)
    assert len(seen.groups[0].run.traces) > 0
    assert "inside took" in seen.page()
    assert "Memory over time" in seen.page()
    counted(current, call, out / "trace.json")
    events = json.loads((out / "trace.json").read_text())["traceEvents"]
    processes = [event["pid"] for event in events if event["name"] == "process_name"]
    assert processes == sorted(set(processes))
    (bar,) = [event for event in events if event["name"] == MATRIX]
    assert bar["pid"] == processes[-2]
    within = [event for event in events if event["ph"] == "X" and event["pid"] < bar["pid"]]
    assert all(bar["ts"] <= event["ts"] <= bar["ts"] + bar["dur"] for event in within)


def test_a_session_still_ends_with_its_last_reference(out: Path) -> None:
    made = oc.Session(memory_limit="4GiB")
    ended = weakref.ref(made)
    gc.disable()
    try:
        del made
        assert ended() is None
    finally:
        gc.enable()
