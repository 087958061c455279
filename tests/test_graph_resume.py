"""Graphs of matrices, arrays in memory and networkx graphs, with `resume`: what goes on, begins anew, is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
from support.running import files_below, session

import outcore as oc
from outcore import _core
from outcore.errors import (
    ArgumentError,
    DTypeError,
    OutcoreError,
    ShapeError,
    SourceChangedError,
    TargetExistsError,
)
from outcore.graph import Graph, _making
from outcore.sparse import SparseMatrix, _spool

N, SIDE = 1 << 11, 64


def random_matrix(path: Path, seed: int = 0, **options: Any) -> SparseMatrix:
    """A matrix in several tiles, with weights of which some stand on both sides of the diagonal."""
    random = np.random.default_rng(seed)
    rows, columns = random.integers(0, N, (2, 20_000))
    both = np.concatenate([rows, columns[:500]]), np.concatenate([columns, rows[:500]])
    return oc.sparse.from_coo(*both, random.random(20_500), (N, N), path, side=SIDE, **options)


def of_sparse(directed: bool = True, transposed: bool = False) -> Callable[..., Graph]:
    def make(folder: Path, target: Path, **options: Any) -> Graph:
        A = oc.sparse.open(folder / "a.ocs")
        return oc.graph.from_sparse(A.T if transposed else A, target, directed=directed, **options)

    return make


def of_networkx(kind: type[Any] = nx.Graph, weight: str | None = "weight") -> Callable[..., Graph]:
    def make(folder: Path, target: Path, **options: Any) -> Graph:
        return oc.graph.from_networkx(a_graph(kind), target, weight=weight, **options)

    return make


def a_graph(kind: type[Any] = nx.Graph) -> Any:
    random = np.random.default_rng(4)
    graph = kind()
    graph.add_nodes_from(range(300, 0, -1))
    graph.add_weighted_edges_from(zip(*random.integers(1, 300, (2, 2000)).tolist(), random.random(2000), strict=True))
    return graph


def of_arrays(**given: Any) -> Callable[..., Graph]:
    def make(folder: Path, target: Path, **options: Any) -> Graph:
        sources, targets, weights = edges()
        return oc.graph.from_arrays(sources, targets, target, **{"weights": weights} | given | options)

    return make


def edges() -> tuple[Any, Any, Any]:
    """Many that are there again, either way round: their weights are added. Ends are every other of an array."""
    random = np.random.default_rng(5)
    ends = random.integers(0, 300, (4000, 2)).astype(np.int32)
    return ends[:, 0], ends[:, 1], random.random(4000)


MAKERS = {
    "arrays": of_arrays(),
    "arrays both ways": of_arrays(directed=False, vertices=400),
    "arrays, no weights": of_arrays(weights=None, directed=False, drop_loops=True),
    "arrays, last weights": of_arrays(weights=edges()[2].astype(np.float32), duplicates="last"),
    "matrix": of_sparse(),
    "view": of_sparse(transposed=True),
    "both ways": of_sparse(directed=False),
    "view both ways": of_sparse(directed=False, transposed=True),
    "networkx": of_networkx(),
    "networkx, one way": of_networkx(nx.DiGraph),
    "networkx, multiple": of_networkx(nx.MultiGraph),
    "networkx, no weights": of_networkx(nx.Graph, None),
}


@pytest.fixture(autouse=True)
def current(data: Path, scratch: Path) -> Iterator[Any]:
    with session(scratch) as current:
        random_matrix(data / "a.ocs")
        yield current


def stop(*_: Any, **__: Any) -> Any:
    raise KeyboardInterrupt


@contextmanager
def stopping(monkeypatch: pytest.MonkeyPatch, *names: str) -> Iterator[None]:
    """Ends a call that comes to one of these functions, as a kill does."""
    with monkeypatch.context() as patched:
        for name in names:
            patched.setattr(f"outcore.graph._making.{name}", stop)
        yield


def interrupted(
    monkeypatch: pytest.MonkeyPatch, make: Callable[[], object], at: str = "_build", by: Callable[..., Any] = stop
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(f"outcore.graph._making.{at}", by)
        with pytest.raises(KeyboardInterrupt):
            make()


STAGES = ("sorted_copy", "stored_entries")


# -- what is gone on with ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", MAKERS)
def test_a_stage_that_is_done_is_not_done_again(
    kind: str, data: Path, out: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = MAKERS[kind](data, data / "whole.ocg")

    def make() -> Graph:
        return MAKERS[kind](data, out / "g.ocg", resume=True)

    interrupted(monkeypatch, make)
    assert files_below(out) == []
    with stopping(monkeypatch, *STAGES):
        assert make().path.read_bytes() == whole.path.read_bytes()
    assert files_below(out) == ["g.ocg"]
    assert files_below(scratch) == []


@pytest.mark.parametrize("kind", ["matrix", "both ways", "view both ways"])
def test_tiles_that_were_read_are_not_read_again(
    kind: str, data: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = MAKERS[kind](data, data / "whole.ocg")
    tiles = oc.sparse.open(data / "a.ocs")._core.tiles
    assert tiles > 3
    monkeypatch.setattr(_spool, "_CHUNKS_NOTED", 1)
    real, read, ends = SparseMatrix._block, list[int](), [3]

    def block(self: SparseMatrix, number: int) -> Any:
        if len(read) in ends:
            raise KeyboardInterrupt
        read.append(number)
        return real(self, number)

    monkeypatch.setattr(SparseMatrix, "_block", block)
    with pytest.raises(KeyboardInterrupt):
        MAKERS[kind](data, out / "g.ocg", resume=True)
    ends.clear()
    assert MAKERS[kind](data, out / "g.ocg", resume=True).path.read_bytes() == whole.path.read_bytes()
    # Upper and lower triangle are a read each.
    assert read == list(range(tiles)) * (1 if kind == "matrix" else 2)


@pytest.mark.parametrize("directed", [False, True])
def test_a_view_is_sorted_once(directed: bool, data: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    A = oc.sparse.open(data / "a.ocs")
    copied = oc.graph.from_sparse(A.T.copy(path=data / "t.ocs"), data / "whole.ocg", directed=directed)
    real, sorts = _making.sorted_copy, []
    monkeypatch.setattr(_making, "sorted_copy", lambda *given: sorts.append(given) or real(*given))
    G = oc.graph.from_sparse(A.T, out / "g.ocg", directed=directed)
    assert G.path.read_bytes() == copied.path.read_bytes()
    assert len(sorts) == directed


@pytest.fixture
def lines(data: Path) -> Path:
    """Made once: a file that is written again is another."""
    (data / "e.txt").write_text("4 3\n1 3\n2 3\n4 0\n")
    return data / "e.txt"


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("kind", ["lines", "matrix", "view", "both ways", "networkx", "arrays"])
def test_a_graph_that_has_its_name_is_not_in_its_own_way(
    kind: str, overwrite: bool, lines: Path, data: Path, out: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make(target: Path, **options: Any) -> Graph:
        if kind == "lines":
            return oc.graph.from_edges(lines, target, relabel="degree", **options)
        return MAKERS[kind](data, target, **options)

    whole, real = make(data / "g.ocg"), _core.build_graph

    def named(*given: Any) -> None:
        real(*given)
        raise KeyboardInterrupt

    def call() -> Graph:
        return make(out / "g.ocg", resume=True, overwrite=overwrite)

    interrupted(monkeypatch, call, "_core.build_graph", named)
    names = ["g.ocg", "g.ocg.labels.npy"] if kind == "lines" else ["g.ocg"]
    assert files_below(out) == names
    assert call().path.read_bytes() == whole.path.read_bytes()
    assert [(out / name).read_bytes() for name in names] == [(data / name).read_bytes() for name in names]
    assert files_below(out) == names
    assert files_below(scratch) == []


@pytest.mark.parametrize("kind", ["matrix", "networkx"])
def test_a_file_of_another_is_in_the_way(kind: str, data: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the graph was about to have its name."""
    interrupted(monkeypatch, lambda: MAKERS[kind](data, out / "g.ocg", resume=True), "_core.build_graph")
    (out / "g.ocg").write_text("mine")
    with pytest.raises(TargetExistsError, match="overwrite=True replaces it"):
        MAKERS[kind](data, out / "g.ocg", resume=True)
    assert (out / "g.ocg").read_text() == "mine"


def test_graphs_without_edges_have_their_types(out: Path) -> None:
    for count in (0, 3):
        graph = nx.empty_graph(count)
        for weight, dtype in ((None, None), ("weight", np.float64)):
            plain = oc.graph.from_networkx(graph, out / "p.ocg", weight=weight, overwrite=True)
            G = oc.graph.from_networkx(graph, out / "g.ocg", weight=weight, overwrite=True, resume=True)
            assert (G.number_of_vertices, G.dtype) == (count, dtype)
            assert G.path.read_bytes() == plain.path.read_bytes()
    with_values = oc.sparse.from_coo([], [], np.zeros(0), (3, 3), out / "none.ocs")
    for directed in (False, True):
        G = oc.graph.from_sparse(with_values, out / "g.ocg", directed=directed, overwrite=True, resume=True)
        assert (G.number_of_edges, G.dtype) == (0, np.float64)


# -- what begins anew -------------------------------------------------------------------------------------------------


Edges = tuple[Any, Any, Any]
CHANGES: dict[str, tuple[Callable[[Edges], Edges], dict[str, Any]]] = {
    "an end": (lambda given: (given[0] ^ 1, *given[1:]), {}),
    "a weight": (lambda given: (*given[:2], given[2] + 1), {}),
    "types": (lambda given: (*given[:2], given[2].view(np.int64)), {}),
    "an edge fewer": (lambda given: tuple(part[:-1] for part in given), {}),  # type: ignore[arg-type, return-value]
    "no weights": (lambda given: (*given[:2], None), {}),
    "vertices": (lambda given: given, {"vertices": 500}),
    "an option": (lambda given: given, {"drop_loops": True}),
    "directions": (lambda given: given, {"directed": False}),
}


@pytest.mark.parametrize("what", CHANGES)
def test_changed_arrays_begin_anew(what: str, data: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def make(target: Path, given: Edges, **options: Any) -> Graph:
        return oc.graph.from_arrays(*given[:2], target, weights=given[2], **options)

    change, options = CHANGES[what]
    interrupted(monkeypatch, lambda: make(out / "g.ocg", edges(), resume=True))
    with stopping(monkeypatch, *STAGES), pytest.raises(KeyboardInterrupt):
        make(out / "g.ocg", change(edges()), resume=True, **options)
    whole = make(data / "whole.ocg", change(edges()), **options)
    assert make(out / "g.ocg", change(edges()), resume=True, **options).path.read_bytes() == whole.path.read_bytes()


def test_arrays_in_memory_are_refused_as_they_are_without_resume(out: Path) -> None:
    wrong: list[tuple[Edges, type[OutcoreError]]] = [
        (([0, -1], [1, 1], None), ArgumentError),
        (([0.5], [1.0], None), DTypeError),
        (([0, 1], [1], None), ShapeError),
        (([[0, 1]], [[1, 2]], None), ShapeError),
        (([0], [1], [1.0, 2.0]), ShapeError),
        (([0], [1], ["a"]), DTypeError),
        (([0], [1], [object()]), DTypeError),
        ((["a"], [1], None), DTypeError),
    ]
    for (sources, targets, weights), error in wrong:
        for directed in (False, True):
            for resume in (False, True):
                with pytest.raises(error):
                    oc.graph.from_arrays(
                        sources, targets, out / "g.ocg", weights=weights, directed=directed, resume=resume
                    )
    with pytest.raises(ArgumentError, match="there is no option colour"):
        oc.graph.from_arrays([0], [1], out / "g.ocg", resume=True, colour="red")
    assert files_below(out) == []


def test_no_edges_have_the_types_of_their_arrays(out: Path) -> None:
    for weights, vertices in ((None, None), ([], 3), (np.zeros(0, np.float32), 2)):
        graphs = [
            oc.graph.from_arrays([], [], out / f"{resume}.ocg", weights=weights, vertices=vertices, resume=resume)
            for resume in (False, True)
        ]
        assert graphs[0].path.read_bytes() == graphs[1].path.read_bytes()
        (out / "False.ocg").unlink()
        (out / "True.ocg").unlink()


@pytest.mark.parametrize("kind", ["matrix", "view", "both ways"])
def test_a_changed_matrix_begins_anew(kind: str, data: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupted(monkeypatch, lambda: MAKERS[kind](data, out / "g.ocg", resume=True))
    random_matrix(data / "a.ocs", seed=1, overwrite=True)
    whole = MAKERS[kind](data, data / "whole.ocg")
    assert MAKERS[kind](data, out / "g.ocg", resume=True).path.read_bytes() == whole.path.read_bytes()


def test_a_matrix_that_changes_once_it_is_open_is_refused(data: Path, out: Path) -> None:
    A = oc.sparse.open(data / "a.ocs")
    random_matrix(data / "a.ocs", seed=1, overwrite=True)
    with pytest.raises(SourceChangedError):
        oc.graph.from_sparse(A, out / "g.ocg", resume=True)
    assert files_below(out) == []


def weight_changed(graph: Any) -> None:
    u, v = next(iter(graph.edges()))
    graph[u][v]["weight"] += 1.0


def node_more(graph: Any) -> None:
    graph.add_node("alone")


def edge_moved(graph: Any) -> None:
    u, v = next(iter(graph.edges()))
    graph.remove_edge(u, v)
    graph.add_edge(300, 299, weight=1.0)


@pytest.mark.parametrize("change", [weight_changed, node_more, edge_moved])
def test_a_changed_graph_of_networkx_begins_anew(
    change: Callable[[Any], None], out: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = a_graph()
    before = oc.graph.from_networkx(graph, data / "before.ocg", weight="weight")
    interrupted(monkeypatch, lambda: oc.graph.from_networkx(graph, out / "g.ocg", weight="weight", resume=True))
    change(graph)
    whole = oc.graph.from_networkx(graph, data / "whole.ocg", weight="weight")
    G = oc.graph.from_networkx(graph, out / "g.ocg", weight="weight", resume=True)
    assert G.path.read_bytes() == whole.path.read_bytes() != before.path.read_bytes()


@pytest.mark.parametrize("kind", ["matrix", "both ways", "networkx"])
def test_other_arguments_begin_anew(kind: str, data: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupted(monkeypatch, lambda: MAKERS[kind](data, out / "g.ocg", resume=True))
    others = {"matrix": "both ways", "both ways": "view both ways", "networkx": "networkx, no weights"}
    for make, target in ((MAKERS[kind], out / "h.ocg"), (MAKERS[others[kind]], out / "g.ocg")):
        with stopping(monkeypatch, *STAGES), pytest.raises(KeyboardInterrupt):
            make(data, target, resume=True)
    assert files_below(out) == []


@pytest.mark.parametrize("kind", ["matrix", "view", "both ways", "networkx"])
def test_without_resume_it_begins_anew(kind: str, data: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = MAKERS[kind](data, data / "whole.ocg")
    interrupted(monkeypatch, lambda: MAKERS[kind](data, out / "g.ocg", resume=True))
    stages = STAGES if kind != "networkx" else ("from_arrays",)
    with stopping(monkeypatch, *stages), pytest.raises(KeyboardInterrupt):
        MAKERS[kind](data, out / "g.ocg")
    assert MAKERS[kind](data, out / "g.ocg").path.read_bytes() == whole.path.read_bytes()


@pytest.mark.parametrize("kind", ["matrix", "both ways", "networkx"])
def test_a_call_that_is_not_to_be_gone_on_with_leaves_nothing(
    kind: str, data: Path, out: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted(monkeypatch, lambda: MAKERS[kind](data, out / "g.ocg"))
    assert files_below(scratch) == files_below(out) == []


# -- what cannot be gone on with --------------------------------------------------------------------------------------


def test_matrices_that_another_process_has_not_are_refused(data: Path, out: Path, scratch: Path) -> None:
    A = oc.sparse.open(data / "a.ocs")
    for matrix in (A.copy(), A.T.copy(), A.copy().T):
        with pytest.raises(ArgumentError, match=r"the matrix is in scratch: store it by copy\(path=\) first"):
            oc.graph.from_sparse(matrix, out / "g.ocg", resume=True)
    scipy.sparse.save_npz(data / "a.npz", A.to_scipy(), compressed=False)
    rows = oc.sparse.open(data / "a.npz")
    with pytest.raises(ArgumentError, match="the matrix is stored by rows or columns"):
        oc.graph.from_sparse(rows, out / "g.ocg", resume=True)
    for matrix in (rows, rows.T):
        G = oc.graph.from_sparse(matrix, out / "g.ocg", overwrite=True)
        like = A if matrix is rows else A.T
        assert G.path.read_bytes() == oc.graph.from_sparse(like, out / "h.ocg", overwrite=True).path.read_bytes()
    del matrix, rows
    assert files_below(scratch) == []


@pytest.mark.parametrize("kind", ["matrix", "both ways", "networkx"])
def test_a_file_in_the_way_is_told_of_first(
    kind: str, data: Path, out: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (out / "g.ocg").write_text("mine")
    with stopping(monkeypatch, *STAGES), pytest.raises(TargetExistsError):
        MAKERS[kind](data, out / "g.ocg", resume=True)
    assert (out / "g.ocg").read_text() == "mine"
    whole = MAKERS[kind](data, data / "whole.ocg")
    assert MAKERS[kind](data, out / "g.ocg", resume=True, overwrite=True).path.read_bytes() == whole.path.read_bytes()
