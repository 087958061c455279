"""Vertex programs of users: searches, components, ranks by messages, and what goes wrong in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import networkx as nx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from support.graphs import KINDS, directed_of, graphs, weighted, write
from support.programs import Labels, Levels, Lightest, Lowest, Ranks, Shares
from support.running import assert_nothing_but_kept, session

import outcore as oc
from outcore.errors import ArgumentError, DTypeError, IndexingError, MemoryLimitError, ShapeError
from outcore.graph import Graph, VertexProgram, state
from outcore.graph._program import Edges

DRAWN = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def check(graph: Any, G: Graph) -> None:
    n = len(graph)
    for source in range(min(n, 2)):
        for direction in ("out", "in", "both"):
            found = G.run(Levels(direction), active=[source]).level
            assert found.dtype == np.int32
            assert np.array_equal(found, oc.graph.bfs(G, source, direction=direction))
    for program in (Labels(), Lowest()):
        assert np.array_equal(G.run(program).label, oc.graph.connected_components(G))
    ranks = G.run(Ranks(), iterations=6).rank
    np.testing.assert_allclose(ranks, oc.graph.pagerank(G, tol=0, iterations=6), rtol=1e-12)
    assert np.array_equal(G.run(Shares(), iterations=6).rank, ranks)
    ran = G.run(Lightest())
    assert np.array_equal(ran.degree, G.degrees())
    lightest = [min((d["weight"] for *_, d in graph.edges(v, data=True)), default=np.inf) for v in range(n)]
    assert ran.least.tolist() == (lightest if G.dtype is not None else [np.inf] * n)
    assert ran.iteration == (n > 0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("directed", [False, True])
def test_programs_find_what_algorithms_find(kind: str, directed: bool, out: Path) -> None:
    graph = weighted(directed_of(KINDS[kind]()) if directed else KINDS[kind]())
    with session(out) as current:
        check(graph, write(graph, out, "float64" if directed else ""))
        assert_nothing_but_kept(current)


@DRAWN
@given(graph=graphs())
def test_drawn_graphs(graph: Any, out: Path) -> None:
    with session(out):
        check(graph, write(graph, out, "int32"))


def test_lists_come_in_parts_and_none_is_cut(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = KINDS["star"]()
    monkeypatch.setattr("outcore.graph._program._NEIGHBOURS", 32)
    monkeypatch.setattr("outcore.graph._program._VERTICES", 100)
    calls: list[tuple[int, int]] = []

    class Counting(Lightest):
        def run(self, v: Any) -> None:
            assert (np.diff(v.ids.astype(int)) > 0).all()
            assert len(v.ids) <= 100
            self.request(v.ids[::-1])

        def on_edges(self, e: Any) -> None:
            super().on_edges(e)
            calls.append((e.vertices[0], e.begins[-1]))

    with session(out):
        G = write(graph, out)
        assert np.array_equal(G.run(Counting()).degree, G.degrees())
    assert calls[0] == (0, 400), "the center by itself"
    assert len(calls) > 12
    assert calls == sorted(calls)


def test_iterations_and_whom_they_begin_with(out: Path) -> None:
    class Walk(VertexProgram):
        seen = state(bool)

        def run(self, v: Any) -> None:
            self.seen[v.ids] = True
            self.activate((v.ids.astype(np.int64) + 1) % self.graph.number_of_vertices)

    with session(out):
        G = write(nx.path_graph(9), out)
        for iterations, wanted in ((0, []), (1, [7]), (4, [7, 8, 0, 1])):
            ran = G.run(Walk(), active=[7, 7], iterations=iterations)
            assert ran.iteration == iterations
            assert set(np.flatnonzero(ran.seen)) == set(wanted)
        for active in (3, np.int64(3), np.array([3], np.uint8), (3,), range(3, 4)):
            assert np.flatnonzero(G.run(Walk(), active=active, iterations=1).seen).tolist() == [3]
        for nobody in ([], np.zeros(0, np.uint32)):
            assert G.run(Walk(), active=nobody).iteration == 0
        again = Walk()
        G.run(again, active=[0], iterations=2)
        assert G.run(again, active=[5], iterations=1).seen.sum() == 1, "a program that runs again knows nothing"


def test_messages_come_as_they_were_sent(out: Path) -> None:
    class Sending(VertexProgram):
        def run(self, v: Any) -> None:
            self.send([4, 2], 7)
            self.send([2], np.array([[8]])[0])
            self.send(np.array([], float), [])

        def on_message(self, m: Any) -> None:
            self.got = m.ids.tolist(), m.values.tolist()

    class Pairs(Sending):
        def run(self, v: Any) -> None:
            self.send([1, 3], [[1, 2], [3, 4]])

    with session(out):
        G = write(nx.path_graph(5), out)
        assert G.run(Sending()).got == ([4, 2, 2], [7, 7, 8])  # type: ignore[attr-defined]
        assert G.run(Pairs()).got == ([1, 3], [[1, 2], [3, 4]])  # type: ignore[attr-defined]


FOLDS: dict[str, Any] = {"min": np.minimum, "max": np.maximum, "sum": np.add}


@pytest.mark.parametrize("combine", FOLDS)
@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "uint64", "float32", "float64"])
def test_messages_are_combined_in_their_order(combine: str, dtype: str, out: Path) -> None:
    random = np.random.default_rng(3)
    n = 300
    ids = random.integers(0, n // 2, 5000)
    values = (random.normal(size=5000) * 40).astype(dtype)
    wanted = np.full(n, {"min": np.inf, "max": -np.inf, "sum": 0}[combine]) if "float" in dtype else None
    if wanted is None:
        limits = np.iinfo(dtype)
        wanted = np.full(n, {"min": limits.max, "max": limits.min, "sum": 0}[combine])
    wanted = wanted.astype(dtype)
    FOLDS[combine].at(wanted, ids, values)

    class Sending(VertexProgram):
        def run(self, v: Any) -> None:
            for first in range(0, 5000, 1700):
                self.send(ids[first : first + 1700], values[first : first + 1700])

        def on_message(self, m: Any) -> None:
            assert np.array_equal(m.ids, np.unique(ids))
            assert m.values.dtype == dtype
            assert np.array_equal(m.values, wanted[m.ids])
            self.calls += 1

        def on_iteration_end(self) -> None:
            self.activate([0])

    Sending.combine, Sending.calls = combine, 0  # type: ignore[assignment,attr-defined]
    with session(out):
        G = write(nx.empty_graph(n), out)
        ran = G.run(Sending(), active=[0], iterations=3)
        assert ran.calls == 3, "messages of an iteration are not there in the next"  # type: ignore[attr-defined]


def test_what_is_sent_has_the_same_bits_with_any_threads(out: Path) -> None:
    random = np.random.default_rng(5)
    ends = random.integers(0, 3000, (2, 200_000))
    found = []
    for threads in (1, 2, 5):
        with session(out, threads=threads):
            G = oc.graph.from_arrays(*ends, out / f"{threads}.ocg")
            ranks = [G.run(program(), iterations=4).rank for program in (Ranks, Shares)]
            found.append([ran.tobytes() for ran in ranks])
    assert found[0] == found[1] == found[2]


def test_lists_for_neighbours_are_sent_without_combining(out: Path) -> None:
    class Telling(VertexProgram):
        def on_edges(self, e: Any) -> None:
            self.multicast(e, np.stack([e.vertices, e.vertices + 1], axis=1))

        def on_message(self, m: Any) -> None:
            self.got = m.ids.tolist(), m.values.tolist()

    with session(out):
        G = oc.graph.from_arrays([0, 0, 2], [1, 3, 1], out / "g.ocg")
        assert G.run(Telling()).got == ([1, 3, 1], [[0, 1], [0, 1], [2, 3]])  # type: ignore[attr-defined]


def test_a_program_may_compute_with_its_lists(out: Path) -> None:
    class Computing(VertexProgram):
        total = state("int64")

        def on_edges(self, e: Any) -> None:
            self.total[e.vertices] = oc.sum(oc.asarray(e.neighbours)).compute()
            assert np.array_equal(self.graph.lists(e.vertices)[1], e.neighbours)

    with session(out):
        G = write(nx.path_graph(70), out)
        assert (G.run(Computing()).total == 2 * sum(range(70)) - 69).all()


def test_states_and_messages_that_do_not_fit_are_refused(out: Path) -> None:
    n = 12_000_000

    class Wide(VertexProgram):
        combine = "sum"

        def run(self, v: Any) -> None:
            self.send(v.ids, 1.0)

    class Wider(VertexProgram):
        first, second = state("float64"), state("float64")

    with session(out):
        oc.graph.from_arrays([0], [1], out / "g.ocg", vertices=n)
    with session(out, memory_limit=200 << 20):
        G = oc.graph.open(out / "g.ocg")
        for program, need in ((Wide(), 8 * n + n // 8), (Wider(), 16 * n + 3 * (n // 8))):
            with pytest.raises(MemoryLimitError, match=f"graph: .* needs {need / (1 << 20):.1f} MiB"):
                G.run(program, active=[0], iterations=1)


def test_vertices_of_an_iteration_that_do_not_fit_are_refused(out: Path) -> None:
    n = 12_000_000

    class Every(VertexProgram):
        pass

    with session(out):
        oc.graph.from_arrays([0], [1], out / "g.ocg", vertices=n)
    with session(out, pool_limit=30 << 20) as current:
        G = oc.graph.open(out / "g.ocg")
        with pytest.raises(MemoryLimitError, match="graph: vertices and messages: needs"):
            G.run(Every(), iterations=1)
        assert_nothing_but_kept(current)


class OwnError(Exception):
    pass


@pytest.mark.parametrize("place", ["run", "on_edges", "on_message", "on_iteration_end"])
def test_what_a_program_raises_comes_out_as_it_is(place: str, out: Path) -> None:
    raised = OwnError(place)

    def fail(*_: Any) -> None:
        raise raised

    program = Labels()
    setattr(program, place, fail)
    with session(out) as current:
        G = write(nx.path_graph(70), out)
        with pytest.raises(OwnError) as caught:
            G.run(program)
        assert caught.value is raised
        assert_nothing_but_kept(current)
        assert G.run(Labels()).label.max() == 0


EDGES = Edges(*(np.array(part, kind) for part, kind in (([0, 1], "u4"), ([0, 1, 2], "i8"), ([1, 9], "u4"))), None)
WRONG: list[tuple[Any, type[Exception], str]] = [
    (lambda p: p.request([5]), IndexingError, "request: 5 is no vertex; there are 5"),
    (lambda p: p.request(np.array([5], np.uint32)), IndexingError, "request: 5 is no vertex"),
    (lambda p: p.activate([-1]), IndexingError, "activate: -1 is no vertex"),
    (lambda p: p.activate(np.array([5], np.uint32)), IndexingError, "activate: 5 is no vertex; there are 5"),
    (lambda p: p.send([2**40], 1), IndexingError, "send: 1099511627776 is no vertex"),
    (lambda p: p.request([0.0]), IndexingError, "request: vertices must be 1-D integers, not float64"),
    (lambda p: p.activate([True]), IndexingError, "not bool"),
    (lambda p: p.activate(3), IndexingError, r"of shape \(\)"),
    (lambda p: p.activate(np.zeros((1, 1), np.uint32)), IndexingError, r"of shape \(1, 1\)"),
    (lambda p: p.send([1, 2], [1, 2, 3]), ShapeError, r"send: 2 vertices, values of shape \(3,\)"),
    (lambda p: p.multicast(EDGES, [1]), ShapeError, r"multicast: 2 vertices, values of shape \(1,\)"),
    (lambda p: p.request([0], "up"), ArgumentError, "request: direction must be 'out', 'in' or 'both', not 'up'"),
]


@pytest.mark.parametrize("wrong", range(len(WRONG)))
def test_wrong_vertices_and_values_are_refused(wrong: int, out: Path) -> None:
    call, error, text = WRONG[wrong]

    class Wrong(VertexProgram):
        def run(self, v: Any) -> None:
            call(self)

    with session(out):
        G = write(nx.path_graph(5), out)
        with pytest.raises(error, match=text):
            G.run(Wrong())


COMBINED: list[tuple[Any, type[Exception], str]] = [
    (lambda p: p.send([1], [[1]]), ShapeError, r"send: values that are combined are numbers.* not of shape \(1, 1\)"),
    (lambda p: p.send([1], True), DTypeError, "numbers of 8 to 64 bits, not bool"),
    (lambda p: p.multicast(EDGES, [1j, 2]), DTypeError, "numbers of 8 to 64 bits, not complex128"),
    (lambda p: (p.send([1], 1), p.send([1], 1.0)), DTypeError, "send: values of float64, but those before .* int64"),
    (lambda p: p.send([5], 1), IndexingError, "send: 5 is no vertex; there are 5"),
    (lambda p: p.multicast(EDGES, [1, 2]), IndexingError, "9 is no vertex; there are 5"),
]


@pytest.mark.parametrize("wrong", range(len(COMBINED)))
def test_wrong_messages_to_combine_are_refused(wrong: int, out: Path) -> None:
    call, error, text = COMBINED[wrong]

    class Wrong(VertexProgram):
        combine = "max"

        def run(self, v: Any) -> None:
            call(self)

    with session(out):
        G = write(nx.path_graph(5), out)
        with pytest.raises(error, match=text):
            G.run(Wrong())
        Wrong.combine = "mean"  # type: ignore[assignment]
        with pytest.raises(ArgumentError, match="combine must be 'min', 'max' or 'sum', not 'mean'"):
            G.run(Wrong())


@pytest.mark.parametrize("combine", [None, "sum"])
def test_what_was_sent_or_asked_for_stays_as_it_was(combine: str | None, out: Path) -> None:
    class Reusing(VertexProgram):
        got: ClassVar[list[Any]] = []
        around: ClassVar[list[int]] = []

        def run(self, v: Any) -> None:
            ids, values = np.zeros(1, np.uint32), np.zeros(1)
            for number in (1, 3):
                ids[:], values[:] = number, number
                self.send(ids, values)
                self.request(ids)
            ids[:] = 4
            v.ids[:] = 4

        def on_edges(self, e: Any) -> None:
            self.around.extend(e.vertices.tolist())
            ids, values = e.vertices.copy(), e.vertices * 10.0
            self.send(ids, values)
            ids[:], values[:] = 0, -1

        def on_message(self, m: Any) -> None:
            self.got.append((m.ids.tolist(), m.values.tolist()))

    Reusing.combine = combine  # type: ignore[assignment]
    with session(out):
        G = write(nx.path_graph(5), out)
        G.run(Reusing(), active=[0])
    both = ([1, 3], [11.0, 33.0])
    assert Reusing.got == [both if combine else ([1, 3, 1, 3], [1.0, 3.0, 10.0, 30.0])]
    assert Reusing.around == [1, 3]


def test_messages_are_within_the_limit(out: Path) -> None:
    n = 2 << 20

    class Telling(VertexProgram):
        sent = 0

        def __init__(self, width: int) -> None:
            self.width = width

        def run(self, v: Any) -> None:
            self.send(v.ids, np.zeros((len(v.ids), self.width), np.uint8))
            self.sent += len(v.ids)

        def on_message(self, m: Any) -> None:
            assert self.width == 8, "more than there is memory for"

    with session(out):
        oc.graph.from_arrays([0], [1], out / "g.ocg", vertices=n)
    with session(out, memory_limit=8 << 30, pool_limit=500 << 20) as current:  # whatever else the process has
        G = oc.graph.open(out / "g.ocg")
        # Half of the vertices send what takes most of the memory there is, twice: as it comes, and put together.
        program = Telling(current.counters()["budget_bytes"] * 3 // 5 // n)
        with pytest.raises(MemoryLimitError, match="graph: vertices and messages: needs"):
            G.run(program)
        assert program.sent == n // 2
        assert_nothing_but_kept(current)
        few = G.run(Telling(8), active=range(1000))
        assert few.sent == 1000


class Staged(VertexProgram):
    """Vertices run by the remainder of their number; each sends its place in the order to those behind it."""

    stages = 3
    heard = state("int64", fill=-1)

    def __init__(self, stage: Any) -> None:
        self.given, self.ran, self.asked = stage, [], []

    def stage(self, v: Any) -> Any:
        self.asked.append(v.ids.tolist())
        return self.given(v.ids)

    def run(self, v: Any) -> None:
        self.ran.append((self.iteration, v.ids.tolist(), self.heard[v.ids].tolist()))
        self.request(v.ids)

    def on_edges(self, e: Any) -> None:
        self.send(e.neighbours, e.ids.astype(np.int64))

    def on_message(self, m: Any) -> None:
        self.heard[m.ids] = np.maximum(self.heard[m.ids], m.values)


def test_later_stages_meet_what_earlier_ones_found(out: Path) -> None:
    with session(out):
        G = write(nx.path_graph(7, nx.DiGraph), out)
        ran = G.run(Staged(lambda ids: ids % 3), iterations=1)
        assert ran.ran == [(0, [0, 3, 6], [-1, -1, -1]), (0, [1, 4], [0, 3]), (0, [2, 5], [1, 4])]
        assert ran.asked == [list(range(7)), [1, 2, 4, 5]]
        assert ran.heard.tolist() == [-1, 0, 1, 2, 3, 4, 5]
        # What is beyond the last stage is in it; one whose stage is over runs at once; one number is for all.
        late = G.run(Staged(lambda ids: np.where(ids < 3, 9, 0)), iterations=1).ran
        assert [ids for _, ids, _ in late] == [[3, 4, 5, 6], [0, 1, 2]]
        back = Staged(lambda ids: 2 - 2 * (len(back.asked) > 1))
        assert [ids for _, ids, _ in G.run(back, iterations=1).ran] == [list(range(7))]
        for wrong in (lambda ids: ids[1:] * 0, lambda ids: ids * 0.5, lambda _: None):
            with pytest.raises(ArgumentError, match=r"stage: .* for 7 vertices"):
                G.run(Staged(wrong))
        for stages in (0, 1.5):
            program = Staged(lambda ids: ids)
            program.stages = stages  # type: ignore[misc, assignment]
            with pytest.raises(ArgumentError, match=r"stages(=1\.5| must be at least 1)"):
                G.run(program)


@pytest.mark.parametrize("combine", [None, "max"])
def test_stages_end_where_one_does(combine: Any, out: Path) -> None:
    """Labels only fall: in which order they do makes no difference."""

    class Downward(Lowest if combine else Labels):  # type: ignore[misc]
        stages = 4
        label = state("uint32", fill=2**32 - 1)

        def stage(self, v: Any) -> Any:
            return v.ids % 4

        def run(self, v: Any) -> None:
            # Earlier stages may have told them already.
            self.label[v.ids] = np.minimum(self.label[v.ids], v.ids)
            self.request(v.ids, "both")

    with session(out):
        G = write(nx.gnp_random_graph(300, 0.005, seed=2), out)
        assert np.array_equal(G.run(Downward()).label, oc.graph.connected_components(G))


def test_a_program_runs_once_at_a_time(out: Path) -> None:
    class Within(VertexProgram):
        def run(self, v: Any) -> None:
            self.graph.run(self)

    class Named(VertexProgram):
        iteration = state("int32")

    with session(out):
        G, program = write(nx.path_graph(5), out), Levels()
        for call in (lambda: program.request([0]), lambda: program.activate([0]), lambda: program.send([0], 1)):
            with pytest.raises(ArgumentError, match="the program does not run"):
                call()
        with pytest.raises(ArgumentError, match="runs already"):
            G.run(Within())
        with pytest.raises(ArgumentError, match="iteration is no name for a state"):
            G.run(Named())
        for iterations in (-1, 1.5):
            with pytest.raises(ArgumentError, match="a whole number from 0"):
                G.run(program, [0], iterations=iterations)  # type: ignore[arg-type]
        assert np.array_equal(G.run(program, [0]).level, range(5))
    with pytest.raises(DTypeError, match="objects of Python's"):
        state("O")


def test_what_is_no_program_or_no_vertex_is_refused(out: Path) -> None:
    with session(out):
        G = write(nx.path_graph(5), out)
        with pytest.raises(ArgumentError, match="program must be a VertexProgram, not object"):
            G.run(object())  # type: ignore[arg-type]
        with pytest.raises(IndexingError, match="run: 5 is no vertex"):
            G.run(Levels(), active=[5])


class Least(VertexProgram):
    """The least number that reaches each vertex, and with weights the least distance."""

    label = state("float64", fill=np.inf)

    def __init__(self, source: int | None = None) -> None:
        self.source = source

    def run(self, v: Any) -> None:
        if self.iteration == 0:
            self.label[v.ids] = v.ids if self.source is None else 0.0
        self.request(v.ids, "both" if self.source is None else "out")

    def on_edges(self, e: Any) -> None:
        self.send(e.neighbours, self.label[e.ids] + (0.0 if self.source is None else e.weights))

    def on_message(self, m: Any) -> None:
        before = self.label[m.ids]
        np.minimum.at(self.label, m.ids, m.values)
        self.activate(m.ids[self.label[m.ids] < before])


def test_messages_at_once_come_to_the_same_end_sooner(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A list is a part: what the first one sends goes to the last one.
    monkeypatch.setattr("outcore.graph._program._NEIGHBOURS", 1)
    first = np.arange(60)
    with session(out):
        G = oc.graph.from_arrays(first, first + 1, out / "path.ocg", weights=np.ones(60))
        for program in (Least, lambda: Least(0)):
            active = None if program is Least else [0]
            waiting, at_once = (G.run(program(), active, mode=mode) for mode in ("synchronous", "asynchronous"))
            assert np.array_equal(waiting.label, at_once.label)
            assert at_once.iteration <= waiting.iteration
        labels = [G.run(Least(), mode=mode) for mode in ("synchronous", "asynchronous")]
        assert labels[1].iteration < labels[0].iteration / 2
        assert np.array_equal(labels[1].label, oc.graph.connected_components(G))
        assert np.array_equal(G.run(Least(0), [0], mode="asynchronous").label, oc.graph.shortest_paths(G, 0))
        with pytest.raises(ArgumentError, match="mode must be 'synchronous' or 'asynchronous'"):
            G.run(Least(), mode="soon")
