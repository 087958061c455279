"""Rankings, communities and factors of graphs on disk against plain loops over dense matrices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from support.running import session
from support.sizes import sized

import outcore as oc
from outcore.errors import ArgumentError, ShapeError

ORDER = 60


@pytest.fixture(autouse=True)
def _session(scratch: Path) -> Any:
    with session(scratch) as made:
        yield made


def graph(name: str) -> Any:
    """An adjacency matrix (n, n): an entry (i, j) is an edge i → j."""
    vertices = np.arange(ORDER)
    edges = {
        "path": (vertices[:-1], vertices[1:]),
        "star": (np.zeros(ORDER - 1, dtype=int), vertices[1:]),
        "complete": np.nonzero(1 - np.eye(ORDER)),
        "empty": (vertices[:0], vertices[:0]),
        "random": np.nonzero(np.random.default_rng(1).random((ORDER, ORDER)) < 0.05),
    }[name]
    values = np.random.default_rng(2).uniform(0.5, 2, len(edges[0]))
    return scipy.sparse.coo_array((values, tuple(edges)), shape=(ORDER, ORDER))


GRAPHS = ("path", "star", "complete", "empty", "random")


def stored(matrix: Any, data: Path, pattern: bool = False) -> oc.sparse.SparseMatrix:
    values = None if pattern else matrix.data
    return oc.sparse.from_coo(matrix.row, matrix.col, values, matrix.shape, data / "g.ocs")


def plain_pagerank(dense: Any, damping: float, steps: int, p: Any) -> Any:
    sums = dense.sum(axis=1)
    r = p
    for _ in range(steps):
        share = np.where(sums == 0, 0, r / np.where(sums == 0, 1, sums))
        r = damping * dense.T @ share + (damping * r[sums == 0].sum() + 1 - damping) * p
    return r


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("pattern", [False, True])
@pytest.mark.parametrize("personal", [False, True])
def test_pagerank_is_that_of_a_plain_loop(name: str, pattern: bool, personal: bool, data: Path) -> None:
    matrix = graph(name)
    dense = (matrix.toarray() != 0).astype(float) if pattern else matrix.toarray()
    p = np.random.default_rng(0).random(ORDER) if personal else np.ones(ORDER)
    found = oc.sparse.pagerank(stored(matrix, data, pattern), 0.9, 30, 0.0, p if personal else None).compute()
    np.testing.assert_allclose(found, plain_pagerank(dense, 0.9, 30, p / p.sum()), rtol=1e-12, atol=1e-15)
    assert abs(found.sum() - 1) <= 1e-12


def test_pagerank_ends_where_nothing_changes(data: Path) -> None:
    ranks, loop = oc.sparse.pagerank(stored(graph("random"), data), tol=1e-6, full_output=True)
    assert loop.converged
    assert loop.history["change"][-1] <= 1e-6 < loop.history["change"][-2]
    assert ranks.shape == (ORDER,)


def test_what_is_no_graph_is_refused(data: Path) -> None:
    matrix = oc.sparse.from_coo([0], [1], None, (2, 3), data / "a.ocs")
    with pytest.raises(ShapeError, match="is no graph"):
        oc.sparse.pagerank(matrix)
    with pytest.raises(ArgumentError, match=r"damping=1\.5"):
        oc.sparse.pagerank(stored(graph("path"), data), damping=1.5)


@pytest.mark.parametrize("name", GRAPHS)
def test_hits_are_the_first_singular_vectors(name: str, data: Path) -> None:
    matrix = graph(name)
    hubs, authorities = (part.compute() for part in oc.sparse.hits(stored(matrix, data), 200, tol=1e-14))
    dense = matrix.toarray()
    h = np.full(ORDER, 1 / ORDER)
    for _ in range(200):
        a = dense.T @ h
        a = a / (a.sum() or 1)
        h = dense @ a
        h = h / (h.sum() or 1)
    np.testing.assert_allclose(hubs, h, atol=1e-12)
    np.testing.assert_allclose(authorities, a, atol=1e-12)


@pytest.mark.parametrize("name", GRAPHS)
def test_labels_spread_along_edges(name: str, data: Path) -> None:
    half = graph(name)
    matrix = (half + half.T).tocoo()
    labels = np.full(ORDER, -1)
    labels[[0, ORDER - 1, 7]] = [0, 1, 2]
    found, weights = oc.sparse.label_propagation(stored(matrix, data), labels, iterations=50, tol=0.0)
    dense, sums = matrix.toarray(), matrix.toarray().sum(axis=1)
    f = (labels[:, None] == np.arange(3)).astype(float)
    for _ in range(50):
        f = np.where((labels >= 0)[:, None], f, dense @ f / np.where(sums == 0, 1, sums)[:, None])
    np.testing.assert_allclose(weights.compute(), f, atol=1e-13)
    assert found.compute().tolist() == np.where(f.max(axis=1) > 0, f.argmax(axis=1), -1).tolist()


def test_an_embedding_tells_two_communities_apart(data: Path) -> None:
    inside = np.kron(np.eye(2), np.ones((60, 60)) - np.eye(60))
    inside[0, 60] = inside[60, 0] = 1
    line = oc.sparse.spectral_embedding(stored(scipy.sparse.coo_array(inside), data), 1).compute()[:, 0]
    assert len(set(np.sign(line[:60]))) == len(set(np.sign(line[60:]))) == 1
    assert np.sign(line[0]) != np.sign(line[60])


def test_nmf_finds_factors_of_low_rank(data: Path) -> None:
    draw = np.random.default_rng(0)
    exact = draw.random((50, 3)) @ draw.random((3, 40))
    matrix = scipy.sparse.coo_array(np.where(draw.random((50, 1)) < 0.8, exact, 0))
    w, h, loop = oc.sparse.nmf(stored(matrix, data), 3, sized(700, 2000), 1e-10, full_output=True)
    w, h = w.compute(), h.compute()
    assert min(w.min(), h.min()) >= 0
    assert np.linalg.norm(matrix.toarray() - w @ h) <= 0.01 * np.linalg.norm(matrix.toarray())
    assert (np.diff(loop.history["gain"]) >= -1e-9 * loop.history["gain"][-1]).all()


def test_als_is_that_of_a_plain_loop(data: Path) -> None:
    matrix = graph("random")
    u, v = oc.sparse.als(stored(matrix, data), 3, 40, 0.1)
    u, v, ridge = u.compute(), v.compute(), 0.1 * np.eye(3)
    # At the end of a step V is the best for U.
    np.testing.assert_allclose(v, np.linalg.solve(u.T @ u + ridge, u.T @ matrix.toarray()).T, atol=1e-10)


def test_a_step_of_pagerank_reads_a_streamed_matrix_once(data: Path, scratch: Path) -> None:
    order = 1 << 17
    rows, columns = np.random.default_rng(0).integers(0, order, size=(2, 1 << 23))
    matrix = oc.sparse.from_coo(rows, columns, np.ones(len(rows)), (order, order), data / "g.ocs")
    with session(scratch, pool_limit="40MiB"):
        ranks, loop = oc.sparse.pagerank(matrix, iterations=4, tol=0.0, full_output=True)
        # What is more are vectors that had no room beside it.
        assert max(part.bytes_read - part.bytes_spilled for part in loop.outcomes) <= 1.01 * matrix.nbytes
        assert max(part.bytes_read for part in loop.outcomes[1:]) > matrix.nbytes // 4
    roomy = oc.sparse.pagerank(matrix, iterations=4, tol=0.0)
    assert (ranks.compute() == roomy.compute()).all()
