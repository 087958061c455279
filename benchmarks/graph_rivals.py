"""What the graph benchmark is held against: networkit and python-graphblas, with the graph in their memory.

Each function is called in a child of its own; loading is not in the time. python-graphblas has no algorithms: those
here are LAGraph's, in its operators. What it finds is held against what outcore found.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

Numbers = Any
ITERATIONS = 10  # of PageRank
DAMPING = 0.85


def _lists(path: str) -> tuple[Numbers, Numbers, bool]:
    """Where the list of each vertex begins, the neighbours, and whether edges have a direction."""
    import outcore as oc

    with oc.Session(progress=False, memory_limit=12 << 30):
        G = oc.graph.open(path)
        begins = np.zeros(G.number_of_vertices + 1, np.int64)
        np.cumsum(G.degrees(), out=begins[1:])
        neighbours = np.empty(G.number_of_entries, np.uint32)
        at = 0
        for _, _, around, _ in G._parts("out"):
            neighbours[at : at + len(around)] = around
            at += len(around)
        return begins, neighbours, G.directed


def _source(begins: Numbers) -> int:
    return int(np.diff(begins).argmax())


def networkit(path: str, case: str, threads: int, expected: str) -> dict[str, Any]:
    """By networkit. Its ranks and coefficients are others than ours by definition: searches alone are compared."""
    import networkit as nk

    nk.setNumberOfThreads(threads)
    begins, columns, directed = _lists(path)
    n = len(begins) - 1
    rows = np.repeat(np.arange(n, dtype=np.uint32), np.diff(begins))
    if not directed:
        rows, columns = rows[rows < columns], columns[rows < columns]
    graph = nk.GraphFromCoo((rows, columns), n=n, directed=directed)
    del rows, columns
    runs: dict[str, Callable[[], Any]] = {
        "bfs": lambda: nk.distance.BFS(graph, _source(begins), storePaths=False),
        "connected_components": lambda: nk.components.WeaklyConnectedComponents(graph),
        "pagerank": lambda: _ranks(nk, graph),
        "triangles": lambda: nk.centrality.LocalClusteringCoefficient(graph, turbo=True),
    }
    began = time.perf_counter()
    run = runs[case]()
    run.run()
    seconds = time.perf_counter() - began
    if case == "bfs":
        far = np.array(run.getDistances())
        met = far < n
        levels = np.load(expected)
        if not (np.array_equal(met, levels >= 0) and np.array_equal(far[met], levels[met])):
            return {"failed": "its distances are others than ours"}
    return {"seconds": seconds}


def _ranks(nk: Any, graph: Any) -> Any:
    ranks = nk.centrality.PageRank(graph, DAMPING, 0.0)
    ranks.maxIterations = ITERATIONS
    return ranks


def graphblas(path: str, case: str, threads: int, expected: str) -> dict[str, Any]:
    """By python-graphblas."""
    import graphblas as gb

    gb.init("suitesparse", blocking=False)
    gb.ss.config["nthreads"] = threads
    begins, neighbours, directed = _lists(path)
    n = len(begins) - 1
    if case == "triangles":
        begins, neighbours = _by_degree(begins, neighbours)
    A = gb.Matrix.from_csr(begins, neighbours, True, ncols=n)
    del neighbours
    T = A.T.new() if directed and case != "connected_components" else A
    if case == "connected_components" and directed:
        A = gb.monoid.lor(A | A.T).new()
    degrees = gb.Vector.from_dense(np.diff(begins).astype(np.float64), missing_value=0.0)
    runs: dict[str, Callable[[], Numbers]] = {
        "bfs": lambda: bfs(gb, A, T, degrees, _source(begins)),
        "connected_components": lambda: components(gb, A),
        "pagerank": lambda: pagerank(gb, T, degrees),
        "triangles": lambda: triangles(gb, A),
    }
    A.wait()
    T.wait()
    degrees.wait()
    began = time.perf_counter()
    found = runs[case]()
    seconds = time.perf_counter() - began
    ours = np.load(expected)
    same = np.allclose(found, ours, rtol=1e-9, atol=0) if case == "pagerank" else np.array_equal(found, ours)
    return {"seconds": seconds} if same else {"failed": "what it found is not what we did"}


def bfs(gb: Any, A: Any, T: Any, degrees: Any, source: int) -> Numbers:
    """Levels, told by few and asked of by many (LAGr_BreadthFirstSearch with the heuristic of Beamer, 2012)."""
    n = A.nrows
    levels = gb.Vector("int32", n)
    front = gb.Vector(bool, n)
    front[source] = True
    unexplored, asks, level, last = float(degrees.reduce().new().value or 0), False, 0, 0
    while front.nvals:
        levels(front.S)[:] = level
        count = front.nvals
        if asks:
            asks = not (count < last and count <= n / 512)
        else:
            of_front = float(degrees.dup(mask=front.S).reduce().new().value or 0)
            unexplored -= of_front
            asks = count > last and of_front > unexplored / 8
        last = count
        front.ss.config["sparsity_control"] = "bitmap" if asks else "sparse"
        if asks:
            front(~levels.S, replace=True) << gb.semiring.any_pair(T @ front)
        else:
            front(~levels.S, replace=True) << gb.semiring.any_pair(front @ A)
        level += 1
    return levels.to_dense(-1)


def components(gb: Any, A: Any) -> Numbers:
    """The lowest vertex of each component (FastSV: Zhang, Azad, Buluç 2020), with its gathers by NumPy."""
    n = A.nrows
    parents = np.arange(n, dtype=np.uint32)
    above = parents.copy()
    lowest = gb.Vector.from_dense(parents)
    while True:
        lowest(gb.binary.min) << gb.semiring.min_second(A @ gb.Vector.from_dense(above))
        low = lowest.to_dense()
        np.minimum.at(parents, parents.copy(), low)
        np.minimum(parents, low, out=parents)
        np.minimum(parents, above, out=parents)
        next_above = parents[parents]
        if np.array_equal(next_above, above):
            return parents
        above = next_above


def pagerank(gb: Any, T: Any, degrees: Any) -> Numbers:
    """Ten iterations, the rank of vertices without edges spread over all (LAGr_PageRank)."""
    n = T.nrows
    ranks = gb.Vector("FP64", n)
    ranks[:] = 1 / n
    scaled = gb.binary.truediv(degrees, DAMPING).new()
    for _ in range(ITERATIONS):
        given = gb.binary.truediv(ranks & scaled).new()
        lost = float(ranks.dup(mask=~degrees.S).reduce().new().value or 0)
        ranks = gb.Vector("FP64", n)
        ranks[:] = (1 - DAMPING + DAMPING * lost) / n
        ranks(gb.binary.plus) << gb.semiring.plus_second(T @ given)
    return ranks.to_dense(0.0)


def triangles(gb: Any, A: Any) -> int:
    """Σ (L Uᵀ) over the edges of L (LAGr_TriangleCount, Sandia_LUT); vertices are in the order of degrees."""
    lower, upper = gb.select.tril(A, -1).new(), gb.select.triu(A, 1).new()
    closed = gb.semiring.plus_pair["INT64"](lower @ upper.T).new(mask=lower.S)
    return int(closed.reduce_scalar().new().value or 0)


def _by_degree(begins: Numbers, neighbours: Numbers) -> tuple[Numbers, Numbers]:
    """The same lists with vertices numbered by ascending degree."""
    degrees = np.diff(begins)
    order = np.argsort(degrees, kind="stable")
    numbers = np.empty(len(order), np.uint32)
    numbers[order] = np.arange(len(order), dtype=np.uint32)
    found = np.empty_like(neighbours)
    new_begins = np.concatenate([[0], np.cumsum(degrees[order])])
    for first in range(0, len(order), 1 << 16):
        some = order[first : first + (1 << 16)]
        counts = degrees[some]
        rows = np.repeat(np.arange(len(some)), counts)
        at = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        around = numbers[neighbours[begins[some][rows] + at]]
        found[new_begins[first] : new_begins[first + len(some)]] = around[np.lexsort((around, rows))]
    return new_begins, found
