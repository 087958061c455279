"""Graphs where memory is short, disks fail and processes die: the same answer, or an error and nothing half-done."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from glob import glob
from pathlib import Path

import numpy as np
import pytest
from benchmarks import cgroup
from support.graph_children import FEW, MAKERS, PROGRAMS, RESERVED, SEARCHES, noting
from support.graphs import circulant, opened
from support.killing import PATHS
from support.running import assert_nothing_but_kept, files_below, session, tree_hash
from support.sizes import sized

import outcore as oc
from outcore.errors import MemoryLimitError
from outcore.sparse._spool import Work

LIMIT = 224 << 20
TIMEOUT_SECONDS = 120
NEEDS_CGROUP = "no memory cgroup can be made here (it needs root), and no other limit counts resident memory"
STEPS = [1, 2, 3, *range(10, 1000, 34)]


def assert_within(outcome: cgroup.Outcome, limit: int) -> None:
    """It went well, in so much memory."""
    assert outcome.reason is None, outcome.stderr
    assert outcome.oom_kills == 0
    assert outcome.peak_rss_bytes is not None
    assert outcome.peak_rss_bytes <= limit


# -- a real limit -----------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not cgroup.is_real(), reason=NEEDS_CGROUP)
def test_searches_in_a_group_smaller_than_the_edges(data: Path, out: Path) -> None:
    n = 400_000
    with session(out):
        G = opened(data / "g.ocg", circulant(n, STEPS, weights=True))
        assert G.number_of_entries == 2 * n * len(STEPS)
        assert G.file_bytes > LIMIT
        levels = oc.graph.bfs(G, 0)
        chosen = oc.graph.maximal_independent_set(G, seed=1)
    given = {"path": str(G.path), "out": str(out), "memory_limit": LIMIT}
    outcome = cgroup.run_limited("support.graph_children:search", given, LIMIT, TIMEOUT_SECONDS)
    assert_within(outcome, LIMIT)
    found = {name: np.load(out / f"{name}.npy") for name in outcome.value}
    assert set(found) == set(SEARCHES)
    assert np.array_equal(found["bfs"], levels)
    assert np.array_equal(found["independent"], chosen)
    assert not found["components"].any()
    np.testing.assert_allclose(found["ranks"], 1 / n, rtol=1e-12)
    away = np.arange(n)
    assert np.array_equal(found["paths"], np.minimum(away, n - away))
    assert (found["cores"] == 2 * len(STEPS)).all()
    # Each pair of steps whose sum is a step makes a triangle, wherever it begins; each vertex is in three places of it.
    pairs = sum(a + b in STEPS for a in STEPS for b in STEPS)
    assert (found["triangles"] == 3 * pairs).all()
    assert found["lists"] == G.number_of_entries * (n - 1) // 2


@pytest.mark.skipif(not cgroup.is_real(), reason=NEEDS_CGROUP)
def test_a_graph_is_made_in_a_group_smaller_than_it(out: Path, scratch: Path) -> None:
    limit = 196 << 20
    given = {"bits": 18, "edges": 13 << 20, "path": str(out / "g.ocg"), "scratch": str(scratch), "memory_limit": limit}
    outcome = cgroup.run_limited("support.graph_children:make", given, limit, TIMEOUT_SECONDS)
    assert_within(outcome, limit)
    assert (out / "g.ocg").stat().st_size > limit
    with session(scratch):
        G = oc.graph.open(out / "g.ocg")
        assert G.number_of_edges == outcome.value
        assert G.degrees("out").sum() == G.degrees("in").sum() == outcome.value
        assert len(np.unique(oc.graph.connected_components(G))) > 1
    assert files_below(scratch) == []


@pytest.mark.skipif(not cgroup.is_real(), reason=NEEDS_CGROUP)
def test_programs_of_users_in_a_group_smaller_than_the_edges(data: Path, out: Path) -> None:
    """States, messages that are combined and that are not, and the lists of others, of a graph with long lists."""
    limit, n, count = 184 << 20, 1 << 18, 12 << 20
    with session(out):
        rows, columns = oc.sparse.rmat_edges(n, count, seed=4)
        weights = oc.random.uniform((count,), seed=5)
        G = oc.graph.from_arrays(rows, columns, data / "g.ocg", weights=weights, vertices=n)
        assert G.file_bytes > limit
        degrees = G.degrees()
        assert degrees.max() > 100 * degrees.mean()
        expected = {name: call(G) for name, call in PROGRAMS.items()}
        # In three iterations from a few: their lists, of their neighbours, and of those of these.
        near = np.unique(G.lists(FEW)[1])
        asked = [np.array(FEW), near, np.unique(G.lists(near)[1])]
    given = {"path": str(G.path), "out": str(out), "memory_limit": limit}
    outcome = cgroup.run_limited("support.graph_children:programs", given, limit, TIMEOUT_SECONDS)
    assert_within(outcome, limit)
    assert set(outcome.value) == set(PROGRAMS)
    for name, found in expected.items():
        assert np.load(out / f"{name}.npy").tobytes() == found.tobytes(), name
    calls = sum(np.bincount(ids, minlength=n) for ids in asked)
    assert np.array_equal(expected["beyond"], [np.where(calls > 0, degrees, 0), calls])


# -- memory -----------------------------------------------------------------------------------------------------------


def test_states_that_do_not_fit_are_refused(out: Path) -> None:
    """Fifty million vertices without an edge but one."""
    n = 50_000_000
    with session(out, memory_limit=3 << 30):
        G = oc.graph.from_arrays([0], [n - 1], out / "g.ocg", vertices=n, directed=False)
    with session(out, pool_limit=200 << 20) as current:
        G = oc.graph.open(G.path)
        for call, name in ((lambda: oc.graph.bfs(G, 0), "levels"), (lambda: oc.graph.pagerank(G), "pagerank")):
            with pytest.raises(MemoryLimitError, match=rf"graph: {name}: needs [0-9.]+ [KMG]?i?B") as refused:
                call()
            need = refused.value.details["need"]
            assert need > 5 * n
            assert need > refused.value.details["limit"]
        assert_nothing_but_kept(current)


@pytest.fixture(scope="module")
def lonely(shared: Path) -> Path:
    """Many vertices, and almost no edge."""
    n = sized(16_000_000, 32_000_000)
    with session(shared, memory_limit=3 << 30):
        return oc.graph.from_arrays([0, 1], [1, n - 1], shared / "lonely.ocg", vertices=n).path


@pytest.mark.parametrize("name", RESERVED)
def test_what_is_resident_was_reserved(name: str, lonely: Path, scratch: Path) -> None:
    given = {"name": name, "path": str(lonely), "scratch": str(scratch)}
    outcome = cgroup.run_limited("support.graph_children:grown", given, timeout_seconds=TIMEOUT_SECONDS)
    assert outcome.reason is None, outcome.stderr
    grown, reserved = outcome.value
    assert 0 < grown <= reserved


def test_ctrl_c_ends_a_search(out: Path) -> None:
    """An alarm, as Ctrl-C would come, in a search from twenty thousand vertices in turn."""
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        with session(out) as current:
            G = opened(out / "g.ocg", circulant(20_000, STEPS))
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            with pytest.raises(KeyboardInterrupt):
                oc.graph.betweenness_centrality(G)
            assert_nothing_but_kept(current)
            assert (oc.graph.bfs(G, 0) >= 0).all()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


# -- kills ------------------------------------------------------------------------------------------------------------


def child_of(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "support.graph_children", *map(str, arguments)]


def test_a_killed_call_goes_on(data: Path, out: Path, scratch: Path) -> None:
    random = np.random.default_rng(3)
    edges = np.column_stack([random.integers(0, 1 << 16, (300_000, 2)), random.integers(1, 9, 300_000)])
    np.savetxt(data / "e.txt", edges, fmt="%d")
    with session(scratch):
        whole = oc.graph.from_edges(data / "e.txt", data / "whole.ocg", directed=False, weights=True)
    command = child_of("make", "text", data / "e.txt", out / "g.ocg", scratch)
    seen = set()
    for wait_for in ("rows-parts.json", "rows-cuts.json", "edges.json", None):
        child = subprocess.Popen(
            command, env=os.environ | {"PYTHONPATH": PATHS}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        while child.poll() is None and wait_for is not None:
            notes = {Path(path).name for path in glob(f"{scratch}/**/notes/*.json", recursive=True)}
            if wait_for in notes:
                child.kill()
                seen |= notes
            time.sleep(0.001)
        text, _ = child.communicate()
        assert child.returncode == (0 if wait_for is None else -9), text
        if wait_for is not None:
            assert not (out / "g.ocg").exists(), "something has a name before it is whole"
    assert {"rows-parts.json", "rows-cuts.json", "edges.json"} <= seen
    assert (out / "g.ocg").read_bytes() == whole.path.read_bytes()
    assert files_below(scratch) == []
    assert files_below(out) == ["g.ocg"]


@pytest.mark.parametrize("kind", MAKERS)
def test_a_call_that_is_killed_at_every_step_does_each_once(
    kind: str, data: Path, out: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, steps = made_of(kind, data), list[str]()
    with session(scratch), monkeypatch.context() as patched:
        patched.setattr(Work, "note", noting(steps.append))
        whole = MAKERS[kind](str(source), out / "whole.ocg", True)
    before = tree_hash(data)
    command = child_of("steps", kind, source, out / "g.ocg", scratch)
    ran = subprocess.run(command, env=os.environ | {"PYTHONPATH": PATHS}, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    # The last step is noted when all has its name.
    expected: list[object] = [line for step in steps for line in (["whole.ocg"], step, -signal.SIGKILL)]
    assert [json.loads(line) for line in ran.stdout.splitlines()] == [*expected, ["g.ocg", "whole.ocg"], 0]
    assert (out / "g.ocg").read_bytes() == whole.path.read_bytes()
    assert files_below(scratch) == []
    assert files_below(out) == ["g.ocg", "whole.ocg"]
    assert tree_hash(data) == before
    assert len(steps) >= 4


def made_of(kind: str, folder: Path) -> Path:
    """The file that a graph of this kind is made of: lines, or a matrix in several tiles."""
    random, n = np.random.default_rng(3), 1 << 11
    edges = np.column_stack([random.integers(0, n, (20_000, 2)), random.integers(1, 9, 20_000)])
    if kind in ("text", "networkx"):
        np.savetxt(folder / "e.txt", edges, fmt="%d")
        return folder / "e.txt"
    rows, columns, values = edges.T
    with session(folder):
        return oc.sparse.from_coo(rows, columns, values * 0.5, (n, n), folder / "a.ocs", side=64).path
