"""Graphs made of text, arrays, sparse matrices and networkx's graphs: duplicates, loops, weights, and refusals."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
from conftest import KILLS
from hypothesis import HealthCheck, given, settings
from support.graphs import KINDS, directed_of, graphs, weighted, write
from support.killing import wait
from support.running import files_below, session, tree_hash
from support.sizes import Sweep, alternating, sized

import outcore as oc
from outcore.errors import (
    ArgumentError,
    FormatError,
    MemoryLimitError,
    OutcoreError,
    ShapeError,
    TargetExistsError,
)
from outcore.graph import Graph

DRAWN = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
ROWS, COLUMNS, WEIGHTS = [2, 0, 2, 0, 4, 2, 1], [0, 1, 0, 1, 4, 4, 0], [1, 2, 4, 8, 16, 32, 64]


def dense(G: Graph) -> Any:
    """The matrix of a graph, from its lists."""
    n = G.number_of_vertices
    begins, neighbours, weights = G.lists(np.arange(n))
    found = np.zeros((n, n))
    found[np.repeat(np.arange(n), np.diff(begins)), neighbours] = 1 if weights is None else weights
    return found


def summed(directed: bool) -> Any:
    """Edges that are there again, either way round where there is none, with their weights together."""
    found = np.zeros((5, 5))
    np.add.at(found, (ROWS, COLUMNS), WEIGHTS)
    return found if directed else found + np.triu(found.T, 1) + np.tril(found.T, -1)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "bool", "int32"])
@pytest.mark.parametrize("directed", [False, True])
def test_weights_of_small_types_are_added_in_wide_ones(directed: bool, dtype: str, out: Path) -> None:
    most = 1 if dtype == "bool" else np.iinfo(dtype).max
    weights = np.array([most, 1, most], dtype)
    G = oc.graph.from_arrays([0, 0, 0], [1, 1, 1], out / "g.ocg", weights=weights, directed=directed)
    assert G.lists([0])[2].tolist() == [2.0 * most + 1]


# -- arrays and text --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("dtype", [None, "uint8", "int64", "float32", "float64"])
def test_edges_that_are_there_again_are_one(directed: bool, dtype: str | None, data: Path, out: Path) -> None:
    wanted = summed(directed)
    weights = None if dtype is None else np.array(WEIGHTS, dtype)
    lines = "".join(f"{u}\t{v}\t{w}\n" for u, v, w in zip(ROWS, COLUMNS, WEIGHTS, strict=True))
    (data / "e.txt").write_text("# from to weight\n" + lines)
    with session(out):
        ends = [np.array(ROWS), np.array(COLUMNS)]
        made = {
            "lists": oc.graph.from_arrays(ROWS, COLUMNS, out / "l.ocg", weights=weights, directed=directed),
            "arrays": oc.graph.from_arrays(*ends, out / "a.ocg", weights=weights, directed=directed, vertices=5),
            "lazy": oc.graph.from_arrays(
                *map(oc.asarray, ends),
                out / "z.ocg",
                weights=None if weights is None else oc.asarray(weights),
                directed=directed,
            ),
        }
        for G in made.values():
            assert G.directed == directed
            assert np.array_equal(dense(G), wanted if dtype else wanted > 0)
            assert (G.number_of_edges, G.number_of_loops) == (5 if directed else 4, 1)
            assert G.dtype is None if dtype is None else G.dtype is not None
        text = oc.graph.from_edges(data / "e.txt", out / "t.ocg", directed=directed, weights=dtype is not None)
        assert np.array_equal(dense(text), wanted if dtype else wanted > 0)
        wider = oc.graph.from_edges(data / "e.txt", out / "w.ocg", directed=directed, vertices=70, drop_loops=True)
        assert wider.number_of_vertices == 70
        assert wider.number_of_edges == text.number_of_edges - 1
    assert sorted(files_below(out)) == ["a.ocg", "l.ocg", "t.ocg", "w.ocg", "z.ocg"]


def test_text_of_other_shapes(data: Path, out: Path) -> None:
    (data / "e.csv").write_text("% weight,from,to\n0.5,1,2\n0.25,3,1\n")
    with session(out):
        given: dict[str, Any] = {"columns": (1, 2), "separators": ",", "comments": "%", "base": 1}
        G = oc.graph.from_edges(data / "e.csv", out / "g.ocg", weights=0, **given)
        assert np.array_equal(dense(G), [[0, 0.5, 0], [0, 0, 0], [0.25, 0, 0]])
        (data / "e.txt").write_text("0 1\n1 b\n")
        with pytest.raises(FormatError, match="line 2: '1 b'"):
            oc.graph.from_edges(data / "e.txt", out / "b.ocg")
        (data / "none.txt").write_text("# nothing\n")
        assert oc.graph.from_edges(data / "none.txt", out / "e.ocg").number_of_vertices == 0
        again = oc.graph.from_edges(data / "none.txt", out / "e.ocg", vertices=3, overwrite=True, directed=False)
        assert (again.number_of_vertices, again.number_of_edges) == (3, 0)


def test_no_vertex_and_no_edge(out: Path) -> None:
    with session(out):
        for directed in (False, True):
            G = oc.graph.from_arrays([], [], out / "g.ocg", directed=directed, overwrite=True)
            assert (G.number_of_vertices, G.number_of_edges, G.number_of_loops) == (0, 0, 0)
            assert G.lists([])[0].tolist() == [0]
            G = oc.graph.from_arrays([], [], out / "g.ocg", directed=directed, vertices=3, overwrite=True)
            assert [G.neighbors(vertex).tolist() for vertex in range(3)] == [[], [], []]


# -- there and back ---------------------------------------------------------------------------------------------------


@DRAWN
@given(graph=graphs())
def test_matrices_there_and_back(graph: Any, out: Path) -> None:
    with session(out):
        G = write(graph, out, "float64")
        A = oc.graph.to_sparse(G, out / "a.ocs", overwrite=True)
        wanted = nx.to_numpy_array(graph, nodelist=range(len(graph))) if len(graph) else np.zeros((0, 0))
        assert np.array_equal(A.to_scipy().toarray(), wanted)
        back = oc.graph.from_sparse(A, out / "b.ocg", directed=G.directed, overwrite=True)
        assert back.path.read_bytes() == G.path.read_bytes()
        turned = oc.graph.from_sparse(A.T, out / "t.ocg", overwrite=True)
        assert np.array_equal(dense(turned), wanted.T)


def test_a_matrix_of_many_vertices_without_edges_takes_little_memory(out: Path) -> None:
    n = 12_000_000
    with session(out):
        oc.graph.from_arrays([0, 1, n - 1], [1, 2, 5], out / "g.ocg", vertices=n)
    with session(out, pool_limit=160 << 20):
        G = oc.graph.open(out / "g.ocg")
        with pytest.raises(MemoryLimitError):
            G.lists(np.arange(n, dtype=np.uint32))
        A = oc.graph.to_sparse(G, out / "a.ocs")
        found = [np.concatenate(parts).tolist() for parts in zip(*A.blocks(), strict=True)][:2]
    assert found == [[0, 1, n - 1], [1, 2, 5]]


def test_a_matrix_of_one_way_made_both(out: Path) -> None:
    def stored(values: Any, dtype: str = "float64") -> oc.sparse.SparseMatrix:
        return oc.sparse.from_scipy(scipy.sparse.csr_array(np.array(values, dtype)), out / "a.ocs", overwrite=True)

    def both(A: oc.sparse.SparseMatrix) -> Graph:
        return oc.graph.from_sparse(A, out / "g.ocg", directed=False, overwrite=True)

    with session(out):
        G = both(stored([[1, -2, 0], [-5, 0, 0], [0, -7, 0]], "int16"))
        assert G.dtype == np.dtype("int16")
        assert np.array_equal(dense(G), [[1, -2, 0], [-2, 0, -7], [0, -7, 0]])
        assert np.array_equal(
            dense(both(stored([[1, 2, 0], [2, 0, 4], [0, 4, 0]]).T)), [[1, 2, 0], [2, 0, 4], [0, 4, 0]]
        )
        # An edge of the length 0 is one.
        nothing = oc.sparse.from_coo([0, 1], [1, 2], np.zeros(2), (3, 3), out / "z.ocs")
        assert both(nothing).number_of_edges == 2
        pattern = oc.sparse.from_coo([0, 2], [1, 1], None, (3, 3), out / "p.ocs")
        assert both(pattern).dtype is None
        assert both(pattern).lists([1])[1].tolist() == [0, 2]
        for ways in (True, False):
            with pytest.raises(ShapeError, match=r"shape \(3, 2\)"):
                oc.graph.from_sparse(stored([[1, 0], [0, 0], [0, 0]]), out / "h.ocg", directed=ways)


def test_an_edge_weighs_the_same_both_ways(data: Path, out: Path) -> None:
    """Sums depend on the order: an edge that is told both ways round has one."""
    rows, columns, weights = [0, 0, 1, 1], [1, 1, 0, 2], [1e16, 1.0, -1e16, 0.5]
    (data / "e.txt").write_text("".join(f"{u} {v} {w}\n" for u, v, w in zip(rows, columns, weights, strict=True)))
    with session(out):
        given: dict[str, Any] = {"directed": False, "overwrite": True}
        mixed = np.array(rows, np.int64), np.array(columns, np.uint64)
        for G in (
            oc.graph.from_arrays(rows, columns, out / "g.ocg", weights=weights, **given),
            oc.graph.from_arrays(*mixed, out / "h.ocg", weights=weights, **given),
            oc.graph.from_arrays(oc.asarray(mixed[0]), mixed[1], out / "i.ocg", weights=oc.asarray(weights), **given),
            oc.graph.from_edges(data / "e.txt", out / "j.ocg", weights=True, **given),
            oc.graph.from_arrays(rows, columns, out / "k.ocg", weights=weights, duplicates="last", **given),
        ):
            assert np.array_equal(dense(G), dense(G).T)
        assert G.lists([0])[2] == [-1e16]
        with pytest.raises(ArgumentError, match="duplicates='last' of edges without a direction"):
            oc.graph.from_edges(data / "e.txt", out / "l.ocg", weights=True, duplicates="last", directed=False)
        for option in ("symmetrize", "transpose", "shape"):
            with pytest.raises(ArgumentError, match=f"no option {option}"):
                oc.graph.from_arrays(rows, columns, out / "l.ocg", **{option: True})
            with pytest.raises(ArgumentError, match=f"no option {option}"):
                oc.graph.from_edges(data / "e.txt", out / "l.ocg", **{option: True})


@pytest.mark.parametrize("directed", [False, True])
def test_labels_of_vertices_come_beside(directed: bool, data: Path, out: Path) -> None:
    rows, columns = [4, 1, 2, 4], [3, 3, 3, 0]
    (data / "e.txt").write_text("".join(f"{u} {v}\n" for u, v in zip(rows, columns, strict=True)))
    wanted = np.zeros((5, 5))
    wanted[rows, columns] = 1
    if not directed:
        wanted = np.maximum(wanted, wanted.T)
    with session(out):
        for G in (
            oc.graph.from_edges(data / "e.txt", out / "t.ocg", directed=directed, relabel="degree"),
            oc.graph.from_arrays(rows, columns, out / "a.ocg", directed=directed, relabel="degree"),
        ):
            new = np.load(f"{G.path}.labels.npy")
            assert sorted(new) == list(range(5))
            assert np.array_equal(dense(G)[np.ix_(new, new)], wanted)
    assert files_below(out) == ["a.ocg", "a.ocg.labels.npy", "t.ocg", "t.ocg.labels.npy"]


PAIRED = """
import sys
import outcore as oc

source, path, scratch = sys.argv[1:]
with oc.Session(scratch=[scratch], memory_limit=8 << 30, pool_limit=20 << 20, threads=1, progress=False):
    print("ready", flush=True)
    for relabel in ["degree", None] * 1000:
        oc.graph.from_edges(source, path, relabel=relabel, overwrite=True)
"""


def test_a_graph_that_is_replaced_goes_with_its_labels(data: Path, out: Path) -> None:
    (data / "e.txt").write_text("4 3\n1 3\n2 3\n4 0\n")
    with session(out):
        oc.graph.from_edges(data / "e.txt", out / "g.ocg", relabel="degree")
        labels = (out / "g.ocg.labels.npy").read_bytes()
        for make in (
            lambda: oc.graph.from_edges(data / "e.txt", out / "g.ocg", overwrite=True),
            lambda: oc.graph.from_sparse(
                oc.sparse.from_edges(data / "e.txt", data / "a.ocs", overwrite=True), out / "g.ocg", overwrite=True
            ),
        ):
            with pytest.raises(TargetExistsError):
                oc.graph.from_edges(data / "e.txt", out / "g.ocg")
            assert (out / "g.ocg.labels.npy").read_bytes() == labels
            assert dense(make())[4, 0] == 1
            assert files_below(out) == ["g.ocg"]
            oc.graph.from_edges(data / "e.txt", out / "g.ocg", relabel="degree", overwrite=True)


def test_a_file_called_as_labels_is_nobody_s_where_there_is_no_graph(out: Path) -> None:
    path, beside = out / "g.ocg", out / "g.ocg.labels.npy"
    np.save(beside, np.arange(3))
    kept = beside.read_bytes()
    with session(out):
        oc.graph.from_arrays([0, 1], [1, 2], path)
        assert beside.read_bytes() == kept
        path.unlink()
        with pytest.raises(TargetExistsError, match=r"labels\.npy"):
            oc.graph.from_arrays([0, 1], [1, 2], path, relabel="degree")
        assert files_below(out) == ["g.ocg.labels.npy"]
        beside.unlink()
        beside.mkdir()
        oc.graph.from_arrays([0, 1], [1, 2], path)
        before = path.read_bytes()
        with pytest.raises(FormatError, match="is a directory"):
            oc.graph.from_arrays([1, 0], [2, 2], path, relabel="degree", overwrite=True)
        assert path.read_bytes() == before
        assert len(oc.graph.from_arrays([0], [2], path, overwrite=True).neighbors(0)) == 1


@pytest.mark.parametrize(
    ("fault", "relabel"), alternating(["write:{n}:enospc", "sync:{n}", "rename:{n}"], ["degree", None])
)
def test_what_fails_leaves_the_graph_that_was_there_and_its_labels(fault: str, relabel: str | None, out: Path) -> None:
    """With scratch on another file system: labels are copied then."""
    path, scratch = out / "g.ocg", Path(tempfile.mkdtemp(dir="/dev/shm"))
    try:
        with session(scratch):
            oc.graph.from_arrays([0, 1, 2, 2], [3, 3, 3, 1], path, relabel="degree")
            old = tree_hash(out)
            oc.graph.from_arrays([0, 0, 4], [1, 2, 0], out / "x.ocg", relabel=relabel)
            new = {
                name.replace("x.ocg", "g.ocg"): of for name, of in tree_hash(out).items() if name.startswith("x.ocg")
            }
            (out / "x.ocg").unlink()
            (out / "x.ocg.labels.npy").unlink(missing_ok=True)
        sweep = Sweep(fault, 600, quiet=sized(4, 12))
        for n in sweep:
            missed = True
            with session(scratch, faults=fault.format(n=n)):
                try:
                    oc.graph.from_arrays([0, 0, 4], [1, 2, 0], path, relabel=relabel, overwrite=True)
                except OutcoreError:
                    sweep.failed()
                    missed = False
                    assert tree_hash(out) == old
                else:
                    assert tree_hash(out) == new
            if missed:
                with session(scratch):
                    oc.graph.from_arrays([0, 1, 2, 2], [3, 3, 3, 1], path, relabel="degree", overwrite=True)
                    assert tree_hash(out) == old
        assert sweep.last > 2
    finally:
        shutil.rmtree(scratch)


def test_a_graph_has_its_own_labels_whenever_its_maker_is_killed(data: Path, out: Path, scratch: Path) -> None:
    rows, columns = [4, 1, 2, 4], [3, 3, 3, 0]
    wanted = np.zeros((5, 5))
    wanted[rows, columns] = 1
    (data / "e.txt").write_text("".join(f"{u} {v}\n" for u, v in zip(rows, columns, strict=True)))
    path, labels = out / "g.ocg", out / "g.ocg.labels.npy"
    random = np.random.default_rng(7)
    with session(scratch):
        oc.graph.from_edges(data / "e.txt", path, relabel="degree")
    seen = 0
    for _ in range(KILLS):
        command = [sys.executable, "-c", PAIRED, str(data / "e.txt"), str(path), str(scratch)]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        assert not wait(child, random.uniform(0.0, 0.4)), "it ended before it could be killed"
        child.kill()
        child.communicate()
        if path.exists():
            with session(scratch):
                found = dense(oc.graph.open(path))
                new = np.load(labels) if labels.exists() else np.arange(5)
                np.testing.assert_array_equal(found[np.ix_(new, new)], wanted)
            seen += 1
    assert seen, "the name is free for a moment only"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("directed", [False, True])
def test_graphs_of_networkx(kind: str, directed: bool, out: Path) -> None:
    graph = weighted(directed_of(KINDS[kind]()) if directed else KINDS[kind]())
    named = nx.relabel_nodes(graph, {vertex: f"node {vertex}" for vertex in graph})
    with session(out):
        G = oc.graph.from_networkx(named, out / "g.ocg", weight="weight")
        assert G.path.read_bytes() == write(graph, out, "float64", "h.ocg").path.read_bytes()
        plain = oc.graph.from_networkx(graph, out / "g.ocg", overwrite=True)
        assert (plain.dtype, plain.directed) == (None, directed)


def test_multigraphs_of_networkx(out: Path) -> None:
    graph = nx.MultiGraph([("a", "b", {"weight": 2}), ("b", "a", {"weight": 3}), ("a", "b"), ("c", "c")])
    with session(out):
        G = oc.graph.from_networkx(graph, out / "g.ocg", weight="weight")
        assert np.array_equal(dense(G), [[0, 6, 0], [6, 0, 0], [0, 0, 1]])
        with pytest.raises(ArgumentError, match="graph must be one of networkx's, not list"):
            oc.graph.from_networkx([(0, 1)], out / "h.ocg")
        for value in (None, "2.5", 1j, [1]):
            graph = nx.Graph([(0, 1, {"weight": 2}), (1, 2, {"weight": value})])
            with pytest.raises(ArgumentError, match=r"weight of an edge must be a real number"):
                oc.graph.from_networkx(graph, out / "h.ocg", weight="weight")


@pytest.mark.parametrize("directed", [False, True])
def test_a_call_with_arrays_of_files_goes_on(
    directed: bool, data: Path, out: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = np.random.default_rng(2).integers(0, 500, (2, 3000))
    for name, part in zip("st", ends, strict=True):
        np.save(data / f"{name}.npy", part)
    with session(scratch):
        whole = oc.graph.from_arrays(*ends, data / "whole.ocg", directed=directed)
        files = [oc.open(data / f"{name}.npy") for name in "st"]

        def make() -> Graph:
            return oc.graph.from_arrays(*files, out / "g.ocg", directed=directed, resume=True)

        def stop(*_: Any, **__: Any) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr("outcore.graph._making._build", stop)
            with pytest.raises(KeyboardInterrupt):
                make()
        with monkeypatch.context() as patched:
            patched.setattr("outcore.sparse.from_entries", stop)
            assert make().path.read_bytes() == whole.path.read_bytes()
        with pytest.raises(ArgumentError, match="entries or labels are in memory"):
            oc.graph.from_arrays(files[0], ends[1], out / "h.ocg", resume=True)
        with monkeypatch.context() as patched:
            patched.setattr("outcore.graph._making._from_memory", stop)
            mapped = [np.load(data / f"{name}.npy", mmap_mode="r") for name in "st"]
            if directed:
                G = oc.graph.from_arrays(*mapped, out / "g.ocg", overwrite=True, resume=True)
                assert G.path.read_bytes() == whole.path.read_bytes()
    assert files_below(scratch) == []
    assert files_below(out) == ["g.ocg"]


# -- looking at one ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["", "float64"])
def test_lists_of_vertices_in_any_order(dtype: str, out: Path) -> None:
    graph = weighted(directed_of(KINDS["isolated"]()))
    n = len(graph)
    random = np.random.default_rng(0)
    with session(out):
        G = write(graph, out, dtype)
        said = " ".join(repr(G).split())
        assert "g.ocg" in said
        assert f"{n} vertices, {graph.number_of_edges()} entries, directed" in said
        for direction, of in (("out", graph.adj), ("in", graph.pred)):
            for ids in (random.integers(0, n, 300), np.arange(n)[::-1], np.array([8]), np.zeros(5, np.uint16)):
                begins, neighbours, weights = G.lists(ids, direction)
                assert len(begins) == len(ids) + 1
                for at, vertex in enumerate(ids.tolist()):
                    around = slice(begins[at], begins[at + 1])
                    assert neighbours[around].tolist() == sorted(of[vertex])
                    if dtype:
                        assert weights is not None
                        assert weights[around].tolist() == [of[vertex][v]["weight"] for v in sorted(of[vertex])]
                assert (weights is None) == (not dtype)
        both = set(graph.successors(8)) | set(graph.predecessors(8))
        assert G.neighbors(8, "both").tolist() == sorted(both)
