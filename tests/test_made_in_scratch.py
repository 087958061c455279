"""Matrices and graphs stored without a path: in scratch, from where they go with their last reader."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.io
import scipy.sparse
from support.running import session

import outcore as oc
from outcore.errors import ArgumentError

PLACES = np.asarray([[0, 1], [1, 2], [2, 0]])


def edges(folder: Path) -> Path:
    path = folder / "edges.txt"
    path.write_text("".join(f"{row} {column}\n" for row, column in PLACES))
    return path


def packed(folder: Path) -> Path:
    scipy.sparse.save_npz(folder / "a.npz", scipy.sparse.eye(3).tocsr())
    return folder / "a.npz"


def market(folder: Path) -> Path:
    scipy.io.mmwrite(folder / "a.mtx", scipy.sparse.eye(3))
    return folder / "a.mtx"


def binary(folder: Path) -> Path:
    PLACES.astype(np.uint32).tofile(folder / "e.bin")
    return folder / "e.bin"


ENTRIES = (PLACES[:, 0], PLACES[:, 1])
MATRICES: dict[str, Callable[[Path], Any]] = {
    "from_entries": lambda folder: oc.sparse.from_entries(ENTRIES),
    "from_entries of an iterator": lambda folder: oc.sparse.from_entries(iter([ENTRIES]), shape=(3, 3)),
    "from_edges": lambda folder: oc.sparse.from_edges(edges(folder)),
    "from_binary": lambda folder: oc.sparse.from_binary(binary(folder)),
    "from_mtx": lambda folder: oc.sparse.from_mtx(market(folder)),
    "from_npz": lambda folder: oc.sparse.from_npz(packed(folder)),
    "from_csr": lambda folder: oc.sparse.from_csr(np.arange(4), np.asarray([1, 2, 0]), None, (3, 3)),
    "from_table": lambda folder: oc.sparse.from_table([{"a": [0, 1, 2], "b": [1, 2, 0]}], rows="a", columns="b"),
    "banded": lambda folder: oc.sparse.banded(3, {0: 1.0}),
    "rmat": lambda folder: oc.sparse.rmat(4, 3, a=1, b=0, c=0, duplicates="any"),
    "to_sparse": lambda folder: oc.graph.to_sparse(oc.graph.from_arrays(*ENTRIES)),
}
GRAPHS: dict[str, Callable[[Path], Any]] = {
    "from_arrays": lambda folder: oc.graph.from_arrays(*ENTRIES),
    "from_arrays, undirected": lambda folder: oc.graph.from_arrays(*ENTRIES, directed=False),
    "from_edges": lambda folder: oc.graph.from_edges(edges(folder)),
    "from_sparse": lambda folder: oc.graph.from_sparse(oc.sparse.from_entries(ENTRIES)),
    "from_networkx": lambda folder: oc.graph.from_networkx(nx.cycle_graph(3, create_using=nx.DiGraph)),
}


@pytest.mark.parametrize("name", MATRICES)
def test_matrices(name: str, tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with session(scratch):
        A = MATRICES[name](tmp_path)
        assert scratch in Path(A.path).parents
        path, count = Path(A.path), A.nnz
        product = A @ np.ones(A.shape[1])
        del A
        gc.collect()
        assert float(product.sum().compute()) == (1 if name == "rmat" else count)  # products keep the file
        del product
        oc.clear()
        gc.collect()
        assert not path.exists()


@pytest.mark.parametrize("name", GRAPHS)
def test_graphs(name: str, tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with session(scratch):
        G = GRAPHS[name](tmp_path)
        path = G.path
        assert scratch in path.parents
        nodes = G.nodes
        assert oc.graph.bfs(G, 0).tolist() == ([0, 1, 1] if "undirected" in name else [0, 1, 2])
        del G
        gc.collect()
        assert len(nodes) == 3
        assert path.exists()  # views keep the file
        del nodes
        gc.collect()
        assert not path.exists()


@pytest.mark.parametrize("told", [{"resume": True}, {"relabel": "degree"}])
def test_what_needs_a_path_is_refused(told: dict[str, Any], tmp_path: Path) -> None:
    with session():
        calls = [lambda: oc.sparse.from_edges(edges(tmp_path), **told), lambda: oc.graph.from_arrays(*ENTRIES, **told)]
        calls.append(lambda: oc.graph.from_edges(edges(tmp_path), **told))
        if "resume" in told:
            A = oc.sparse.from_entries(ENTRIES, tmp_path / "a.ocs")
            calls.append(lambda: oc.graph.from_sparse(A, resume=True))
        for call in calls:
            with pytest.raises(ArgumentError, match="needs a path"):
                call()
