"""What iterations over a graph do, as the bar shows it live and a profile after; the degrees of a graph as a plot."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from support.running import session

import outcore as oc
from outcore._base.sizes import format_size
from outcore._command.cli import main
from outcore._session.progress import Progress


@pytest.fixture
def current(out: Path) -> Iterator[Any]:
    with session(out) as current:
        yield current


def rows(seen: oc.Profile, run: int = 0) -> Any:
    return seen.outcomes[run].other["iterations"]


def binary_tree(path: Path, levels: int) -> oc.graph.Graph:
    child = np.arange(1, 2**levels - 1)
    return oc.graph.from_arrays((child - 1) // 2, child, path)


def test_a_search_has_a_row_for_each_level(current: Any, out: Path) -> None:
    G = binary_tree(out / "tree.ocg", 15)
    before = current.counters()["bytes_read"]
    with oc.profile() as seen:
        oc.graph.bfs(G, 0)
    found = rows(seen)
    assert [row.first for row in found] == list(range(15))
    assert [row.active for row in found] == [2**level for level in range(15)]
    # Then those that were not met are fewer, and look for a neighbour; all of them find one.
    assert [row.lists for row in found] == [2**level for level in range(13)] + [2**14, 0]
    assert sum(row.bytes_read for row in found) == seen.bytes_read == current.counters()["bytes_read"] - before > 0
    # Lists of the first levels lie in one page, which is read once.
    assert found[0].bytes_read == 4096
    assert found[1].bytes_read == 0
    assert found[1].cache_hits == 1
    assert seen.peak_bytes > 5 * G.number_of_vertices


def test_programs_within_programs_are_counted_on(current: Any, out: Path) -> None:
    ring = np.arange(50)
    G = oc.graph.from_arrays(ring, (ring + 1) % 50, out / "ring.ocg")
    with oc.profile() as seen:
        oc.graph.strongly_connected_components(G)
    found = rows(seen)
    assert [row.first for row in found] == list(range(len(found)))
    # Edges are counted both ways; the ring is gone along from one vertex, and back.
    assert [row.active for row in found] == [50, 50] + 100 * [1]


@pytest.mark.parametrize(
    ("name", "iterations"),
    [("connected_components", 1), ("label_propagation", None), ("maximal_independent_set", None), ("triangles", 2)],
)
def test_sweeps_are_iterations(current: Any, out: Path, name: str, iterations: int | None) -> None:
    ring = np.arange(50)
    G = oc.graph.from_arrays(ring, (ring + 1) % 50, out / "ring.ocg", directed=False)
    with oc.profile() as seen:
        getattr(oc.graph, name)(G)
    found = rows(seen)
    assert seen.outcomes[0].other["graph"] == name
    assert len(found) == iterations or (iterations is None and len(found) > 1)
    assert found[0].active <= 50
    assert found[0].lists > 0


def test_an_iteration_of_ranks_asks_for_all_lists(current: Any, out: Path) -> None:
    G = binary_tree(out / "tree.ocg", 8)
    with oc.profile() as seen:
        _, done = oc.graph.pagerank(G, full_output=True)
    assert [(row.active, row.lists) for row in rows(seen)] == done * [(255, 255)]


def test_a_program_of_ones_own_is_counted(current: Any, out: Path) -> None:
    class Walk(oc.graph.VertexProgram):
        def on_edges(self, e: Any) -> None:
            self.activate(e.neighbours)

    G = binary_tree(out / "tree.ocg", 6)
    with oc.profile() as seen:
        G.run(Walk(), active=[0])
    assert seen.outcomes[0].other["graph"] == "Walk"
    assert [row.active for row in rows(seen)] == [row.lists for row in rows(seen)] == [2**level for level in range(6)]
    assert seen.bytes_read > 0


class Stopping(oc.graph.VertexProgram):
    """Goes down a tree, and raises at a level."""

    def __init__(self, error: BaseException, level: int) -> None:
        self.error, self.level = error, level

    def run(self, v: Any) -> None:
        self.request(v.ids)

    def on_edges(self, e: Any) -> None:
        if self.iteration == self.level:
            raise self.error
        self.activate(e.neighbours)


def doubly(path: Path) -> oc.graph.Graph:
    """A graph with weights that takes some pages."""
    ends = np.random.default_rng(1).integers(0, 20_000, (2, 60_000))
    return oc.graph.from_arrays(*ends, path, weights=np.ones(60_000), directed=False, overwrite=True)


BESIDE: dict[str, Callable[[oc.graph.Graph], Any]] = {
    "pagerank": oc.graph.pagerank,
    "core_number": oc.graph.core_number,
    "triangles": oc.graph.triangles,
    "shortest_paths": lambda G: oc.graph.shortest_paths(G, 0),
    "louvain_communities": oc.graph.louvain_communities,
}


@pytest.mark.parametrize("name", BESIDE)
def test_a_run_has_read_what_its_session_counted(name: str, current: Any, out: Path) -> None:
    doubly(out / "g.ocg")
    G = oc.graph.open(out / "g.ocg")
    before = current.counters()["bytes_read"]
    with oc.profile() as seen:
        BESIDE[name](G)
    (outcome,) = seen.outcomes
    beside = outcome.other["bytes_beside_iterations"]
    assert seen.bytes_read == current.counters()["bytes_read"] - before
    assert seen.bytes_read - sum(row.bytes_read for row in rows(seen)) == beside > 0
    assert f"{format_size(beside)} read beside them" in seen.iterations().splitlines()[0]
    assert f"{format_size(beside)} read beside them" in seen.page()


def test_degrees_that_are_known_are_not_read_again(current: Any, out: Path) -> None:
    doubly(out / "g.ocg")
    G = oc.graph.open(out / "g.ocg")
    with oc.profile() as seen:
        oc.graph.core_number(G)
        oc.graph.core_number(G)
    assert ["bytes_beside_iterations" in outcome.other for outcome in seen.outcomes] == [True, False]


class Calling(oc.graph.VertexProgram):
    """Calls something in its first iteration, and ends."""

    def __init__(self, call: Callable[[], object]) -> None:
        self.call = call

    def run(self, v: Any) -> None:
        self.call()


def test_a_run_within_a_run_is_not_counted_twice(current: Any, out: Path) -> None:
    doubly(out / "g.ocg")
    G = oc.graph.open(out / "g.ocg")
    before = current.counters()["bytes_read"]
    with oc.profile() as seen:
        G.run(Calling(lambda: oc.graph.bfs(G, 0)), active=[0])
    inner, outer = seen.outcomes
    assert (inner.other["graph"], outer.other["graph"], outer.bytes_read) == ("bfs", "Calling", 0)
    assert seen.bytes_read == current.counters()["bytes_read"] - before > 0


def test_what_another_thread_reads_meanwhile_is_not_its_own(current: Any, out: Path) -> None:
    doubly(out / "g.ocg")
    G = oc.graph.open(out / "g.ocg")
    np.save(out / "x.npy", np.ones(10_000))

    def read() -> None:
        with current:
            oc.open(out / "x.npy").sum().compute()

    def aside() -> None:
        thread = threading.Thread(target=read)
        thread.start()
        thread.join()

    before = current.counters()["bytes_read"]
    with oc.profile() as seen:
        G.run(Calling(aside), active=[0])
    assert current.counters()["bytes_read"] - before >= 80_000
    assert (seen.bytes_read, "bytes_beside_iterations" in seen.outcomes[0].other) == (0, False)


def test_a_program_counts_its_own_reads_beside_those_of_another_thread(current: Any, out: Path) -> None:
    doubly(out / "g.ocg")
    np.save(out / "x.npy", np.ones(10_000))

    def read() -> None:
        with current:
            oc.open(out / "x.npy").sum().compute()

    counted = []
    for is_beside in (False, True):
        G = oc.graph.open(out / "g.ocg")

        def call(G: oc.graph.Graph = G, is_beside: bool = is_beside) -> None:
            thread = threading.Thread(target=read if is_beside else time.monotonic)
            thread.start()
            G.lists([1, 2, 3])
            thread.join()

        with oc.profile() as seen:
            G.run(Calling(call), active=[0])
        (outcome,) = (outcome for outcome in seen.outcomes if "graph" in outcome.other)
        counted.append((outcome.bytes_read, outcome.other["bytes_beside_iterations"]))
    assert counted[0] == counted[1]
    assert counted[0][0] > 0


@pytest.mark.parametrize("error", [KeyError("mine"), KeyboardInterrupt()])
def test_a_program_that_raises_is_there_with_what_it_did(error: BaseException, current: Any, out: Path) -> None:
    G = binary_tree(out / "tree.ocg", 6)
    with oc.profile(out / "run.html") as seen:
        with pytest.raises(type(error)):
            G.run(Stopping(error, 3), active=[0])
        oc.graph.bfs(G, 0)
    name = type(error).__name__
    assert [outcome.other.get("error") for outcome in seen.outcomes] == [name, None]
    assert [(row.active, row.lists) for row in rows(seen)] == [(2**level, 2**level) for level in range(4)]
    assert seen.outcomes[0].bytes_read > 0
    line = f"Stopping: 4 iterations; ended by {name}"
    assert seen.iterations().splitlines()[0] == line
    assert f"<p>{line}.</p>" in (out / "run.html").read_text()


def test_a_program_that_raises_is_in_the_timeline(current: Any, out: Path) -> None:
    G = binary_tree(out / "tree.ocg", 6)
    with pytest.raises(KeyError), oc.profile(out / "trace.json"):
        G.run(Stopping(KeyError("mine"), 3), active=[0])
    events = json.loads((out / "trace.json").read_text())["traceEvents"]
    assert [event["name"] for event in events if event["ph"] == "X"] == [f"Stopping {level}" for level in range(4)]


def test_a_run_that_has_no_memory_is_there_without_iterations(out: Path) -> None:
    with session(out):
        path = np.arange(100_000)
        oc.graph.from_arrays(path, (path + 1) % len(path), out / "ring.ocg")
    with session(out, pool_limit=256 << 10), oc.profile() as seen:
        G = oc.graph.open(out / "ring.ocg")
        with pytest.raises(oc.errors.MemoryLimitError):
            oc.graph.bfs(G, 0)
    assert seen.iterations().splitlines()[0] == "bfs: 0 iterations; ended by MemoryLimitError"
    assert "bfs: 0 iterations; ended by MemoryLimitError" in seen.page()


def test_what_only_tells_what_it_would_take_is_no_run(current: Any, out: Path) -> None:
    G = binary_tree(out / "tree.ocg", 6)
    with oc.profile() as seen:
        oc.graph.explain(oc.graph.bfs, G, 0)
    assert seen.outcomes == []


def test_the_table_and_the_timeline_have_them(current: Any, out: Path) -> None:
    G = binary_tree(out / "tree.ocg", 8)
    with oc.profile(out / "trace.json") as seen:
        oc.graph.bfs(G, 0)
        (oc.arange(4) + 1).compute()
        oc.graph.bfs(G, 3)
    text = seen.iterations().splitlines()
    assert [line for line in text if line.startswith("bfs")] == ["bfs: 8 iterations", "bfs: 6 iterations"]
    assert text[9].split()[:2] == ["7", "128"]
    assert text[9].endswith(40 * "█")
    events = json.loads((out / "trace.json").read_text())["traceEvents"]
    of_third = [event for event in events if event["pid"] == 3 and event["ph"] == "C" and event["name"] == "active"]
    assert [event["args"]["active"] for event in of_third] == [1, 2, 4, 8, 16, 32]
    bars = [event for event in events if event["ph"] == "X" and event["name"].startswith("bfs ")]
    assert len(bars) == 14
    assert all(event["ts"] >= 0 and event["dur"] >= 0 for event in bars)


def test_one_iteration_is_one(current: Any, out: Path) -> None:
    G = binary_tree(out / "tree.ocg", 2)
    with oc.profile() as seen:
        oc.graph.bfs(G, 1)
    assert seen.iterations().splitlines()[0] == "bfs: 1 iteration"


def test_long_runs_have_rows_of_several_iterations(current: Any, out: Path) -> None:
    path = np.arange(4999)
    G = oc.graph.from_arrays(path, path + 1, out / "path.ocg")
    with oc.profile() as seen:
        oc.graph.bfs(G, 0)
    found = rows(seen)
    assert len(found) <= 1024
    assert sum(row.number for row in found) == sum(row.active for row in found) == 5000
    assert "bfs: 5,000 iterations" in seen.iterations()
    assert "   0-7 " in seen.iterations()


def test_the_bar_is_told_while_it_runs(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[int, ...]] = []
    monkeypatch.setattr(Progress, "iteration", lambda self, *what: told.append((self.figures.call, *what)))
    path = np.arange(1_000_000)
    with session(out, progress=True):
        G = oc.graph.from_arrays(path, (path + 1) % len(path), out / "ring.ocg")
        oc.graph.bfs(G, 0)
    assert told, "a million iterations take longer than the time between two reports"
    assert {what[0] for what in told} == {"bfs"}
    numbers = [what[1] for what in told]
    assert numbers == sorted(numbers)
    assert all(0 < number < 1_000_000 for number in numbers)
    assert all(what[2] == 1 and what[3] >= what[1] for what in told)


def test_degrees_are_shown_as_bars(current: Any, out: Path) -> None:
    G = binary_tree(out / "tree.ocg", 8)
    runner = CliRunner()
    shown = runner.invoke(main, ["graph", "info", str(G.path), "--svg", str(out / "tree.svg")], catch_exceptions=False)
    assert shown.exit_code == 0
    assert "vertices  255, edges lead one way" in shown.output
    assert "degrees   up to 3;" in shown.output
    drawn = (out / "tree.svg").read_text()
    assert drawn.startswith("<svg")
    assert "vertices by neighbours" in drawn
    told = json.loads(runner.invoke(main, ["graph", "info", str(G.path), "--direction", "out", "--json"]).output)
    assert (told["vertices"], told["entries"], told["degrees"]) == (255, 254, [128, 0, 127])
    for target, text in ((str(G.path), "would replace"), (str(out / "none" / "x.svg"), "cannot write")):
        refused = runner.invoke(main, ["graph", "info", str(G.path), "--svg", target], catch_exceptions=False)
        assert (refused.exit_code, text in refused.output) == (1, True)
    assert oc.graph.open(G.path).number_of_vertices == 255
    wrong = runner.invoke(main, ["graph", "info", str(out / "none.ocg")])
    assert wrong.exit_code == 1
