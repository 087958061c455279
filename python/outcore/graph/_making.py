"""Graphs made of edges, sparse matrices and networkx's graphs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np

from outcore import _core, sparse
from outcore._arguments import whole
from outcore.errors import ArgumentError, DTypeError, ShapeError
from outcore.graph._graph import Graph, PathLike, _session, open, stored
from outcore.sparse._ingest import Options, _column, _key
from outcore.sparse._matrix import SparseMatrix
from outcore.sparse._spool import Work, stamp_of
from outcore.sparse._tiles import check_target

# What stores a matrix at a path, and its transpose at another, if there is one.
Store = Callable[[Path, Path | None, dict[str, Any]], object]


# What becomes of an edge that is there again: of undirected ones none comes first.
_ORDERED = ("last", "any")


def _made(
    store: Store, path: PathLike, directed: bool, overwrite: bool, key: str | None, *, mirrored: bool = False
) -> Graph:
    """Stores the edges as matrices beside, and the graph of those.

    Where weights are added in the order in which they come, a matrix that is mirrored as it is stored is not symmetric
    to the last bit: with `mirrored` that comes after.
    """
    target = Path(path).absolute()
    with Work(None if key is None else f"{target}\n{directed}\n{key}", target) as work:
        check_target(target, overwrite, work, "graph")
        rows, columns = work.path("out.ocs"), work.path("in.ocs") if directed else None
        labels = rows.with_name(rows.name + ".labels.npy")
        if work.noted("edges") is None:
            options: dict[str, Any] = {"overwrite": True}
            if key is not None:
                options["resume"] = True
            if not directed and not mirrored:
                options["symmetrize"] = True
            store(rows, columns, options)
            work.note("edges", True)
        found = sparse.open(rows)
        if mirrored and not directed:
            found = _entries(found, found.blocks(), work.path("both.ocs"))
        given = labels if labels.exists() else None
        _build(found, None if columns is None else sparse.open(columns), target, overwrite, given)
    return open(target)


def _entries(A: SparseMatrix, blocks: Iterable[tuple[Any, ...]], path: Path, **options: Any) -> SparseMatrix:
    """Stores entries of a matrix, and their mirror images."""

    def chunks() -> Iterator[tuple[Any, ...]]:
        # A matrix without entries has a type as well.
        yield (*np.zeros((2, 0), np.uint64), np.zeros(0, A.dtype))[: 3 - A.is_pattern]
        for block in blocks:
            yield block[: 3 - A.is_pattern]

    return sparse.from_entries(chunks(), path, shape=A.shape, symmetrize=True, overwrite=True, **options)


def _halves(A: SparseMatrix) -> Iterator[tuple[Any, ...]]:
    """All entries in the upper triangle, those that stood there behind the others."""
    for upper in (False, True):
        for rows, columns, values in A.blocks():
            own = (rows <= columns) == upper
            yield np.minimum(rows, columns)[own], np.maximum(rows, columns)[own], values[own]


def _build(
    rows: SparseMatrix, columns: SparseMatrix | None, target: Path, overwrite: bool, labels: Path | None = None
) -> None:
    """What is replaced goes with its labels. Raises DTypeError for complex weights: lists come with float64."""
    if rows.dtype.kind == "c":
        raise DTypeError(f"graph: weights of {rows.dtype}; real ones can be stored")
    transpose = None if columns is None else columns._core
    _core.build_graph(_session(), rows._core, transpose, str(target), labels, overwrite)


def from_edges(
    source: PathLike,
    path: PathLike,
    *,
    directed: bool = True,
    weights: bool | int | None = False,
    vertices: int | None = None,
    overwrite: bool = False,
    resume: bool = False,
    **options: Any,
) -> Graph:
    """Stores the graph of a text file with an edge in each line, and opens it.

    Edges that are there again are one; their weights are added. Of an undirected graph each edge may stand either way
    round. `weights` says which number of a line is the weight: True the third, None the third if there is one, False
    none. `vertices` is how many there are, unless given one more than the highest. `options` are those of
    `sparse.from_edges`: `columns`, `separators`, `comments`, `base`, `drop_loops`, `relabel` (whose labels come beside,
    as `<path>.labels.npy`, and go with a graph that is replaced), `duplicates`. With `resume` a killed call goes on
    when it is made again.

    Raises FormatError that names the line which is not as it should be, TargetExistsError. I/O: that of
    `sparse.from_edges`, then one read and one write of the edges.

    >>> import outcore as oc, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "edges.txt").write_text("# from to\\n0 1\\n2 1\\n")
    >>> oc.graph.from_edges(folder / "edges.txt", folder / "g.ocg").number_of_edges
    2
    """
    _check_options("from_edges", options, vertices)
    if not directed and weights is not False and options.get("duplicates") in _ORDERED:
        raise ArgumentError(f"from_edges: duplicates={options['duplicates']!r} of edges without a direction")
    if vertices is not None:
        options["shape"] = (vertices, vertices)
    given = dict(options)
    values = None if weights is True else weights

    def store(rows: Path, columns: Path | None, more: dict[str, Any]) -> object:
        return sparse.from_edges(source, rows, values=values, transpose=columns, **given, **more)

    key = f"{stamp_of(source)} {weights} {sorted(given.items())}" if resume else None
    return _made(store, path, directed, overwrite, key, mirrored=weights is not False)


def from_arrays(
    sources: Any,
    targets: Any,
    path: PathLike,
    *,
    weights: Any = None,
    vertices: int | None = None,
    directed: bool = True,
    overwrite: bool = False,
    **options: Any,
) -> Graph:
    """Stores the graph of edges whose ends are arrays, NumPy's or lazy ones that are larger than memory, and opens it.

    Edges that are there again are one; their weights are added. `vertices` is how many there are, unless given one more
    than the highest. `options` are those of `sparse.from_entries`; with `resume` a killed call goes on when it is made
    again, where all arrays are those of files. Raises ShapeError, DTypeError, ArgumentError, TargetExistsError. I/O:
    that of `sparse.from_entries`, then one read and one write of the edges.

    >>> import outcore as oc, tempfile, pathlib
    >>> G = oc.graph.from_arrays([0, 1], [1, 2], pathlib.Path(tempfile.mkdtemp()) / "g.ocg")
    >>> oc.graph.bfs(G, 0).tolist()
    [0, 1, 2]
    """
    _check_options("from_arrays", options, vertices)
    if vertices is not None:
        options["shape"] = (vertices, vertices)
    for name, ends in (("sources", sources), ("targets", targets)):
        if not hasattr(ends, "__len__"):
            raise ArgumentError(f"from_arrays: {name} are {type(ends).__name__}; an array is right")
    if not directed:
        sources, targets = _ascending(sources, targets)
    entries = (sources, targets) if weights is None else (sources, targets, weights)
    key = None
    if options.pop("resume", False):
        key = _key(tuple(_column(part) for part in entries), None, cast(Options, options))

    def store(rows: Path, columns: Path | None, more: dict[str, Any]) -> object:
        # Without a shape this makes the matrix as wide as long.
        shape = options.pop("shape", None) or _square(sources, targets)
        return sparse.from_entries(entries, rows, transpose=columns, shape=shape, **options, **more)

    return _made(store, path, directed, overwrite, key)


def _check_options(name: str, options: dict[str, Any], vertices: int | None) -> None:
    if vertices is not None:
        whole(name, 2**32 - 2, vertices=vertices)
    for taken in ("symmetrize", "transpose", "shape"):
        if taken in options:
            raise ArgumentError(f"{name}: there is no option {taken}; directed= and vertices= are right")


def _ascending(sources: Any, targets: Any) -> tuple[Any, Any]:
    """The same ends, the lower one first: so weights of an edge are added in one order, whichever way it is told."""
    import outcore as oc

    first, second = (end if isinstance(end, oc.Array) else np.asarray(end) for end in (sources, targets))
    if first.shape != second.shape or not len(first) or {first.dtype.kind, second.dtype.kind} - {"i", "u"}:
        return sources, targets  # which is refused, or nothing
    if first.dtype != second.dtype:
        first, second = first.astype(np.int64), second.astype(np.int64)
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
        return np.minimum(first, second), np.maximum(first, second)
    return oc.minimum(first, second), oc.maximum(first, second)


def _square(sources: Any, targets: Any) -> tuple[int, int]:
    import outcore as oc

    ends = [oc.asarray(part) if len(part) else None for part in (sources, targets)]
    highest = [int(oc.max(part).compute()) for part in ends if part is not None]
    vertices = max(highest, default=-1) + 1
    return vertices, vertices


def from_sparse(A: SparseMatrix, path: PathLike, *, directed: bool = True, overwrite: bool = False) -> Graph:
    """Stores the graph of a square sparse matrix, an edge from i to j for each entry A[i, j], its value the weight.

    With `directed=False` A and its transpose are put together: of two different weights that above the diagonal counts.
    Raises ShapeError for a matrix that is not square, ArgumentError for what is no stored one. I/O: the matrix is
    sorted the other way once, read, and written; of an undirected graph it is read twice and sorted anew.

    >>> import outcore as oc, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> A = oc.sparse.from_coo([0, 1], [1, 2], None, (3, 3), folder / "a.ocs")
    >>> oc.graph.from_sparse(A, folder / "g.ocg").number_of_edges
    2
    """
    if not isinstance(A, SparseMatrix):
        raise ArgumentError(f"from_sparse: {type(A).__name__} is no stored matrix; sparse.from_scipy stores SciPy's")
    if A.shape[0] != A.shape[1]:
        raise ShapeError(f"from_sparse: a matrix of shape {A.shape} is no graph")
    target = Path(path).absolute()
    with Work(None, target) as work:
        check_target(target, overwrite, work, "graph")
        if directed:
            # A transposed view has no file of its own.
            first = A.copy() if A._transposed else A
            _build(first, first.T.copy(), target, overwrite)
        else:
            both = _entries(A, _halves(A), work.path("both.ocs"), duplicates="last")
            _build(both, None, target, overwrite)
    return open(target)


def to_sparse(G: Graph, path: PathLike, **options: Any) -> SparseMatrix:
    """Stores the matrix of a graph, whose entries are its edges and their weights, and opens it: A[i, j] for i to j.

    An undirected graph has a symmetric matrix. Whole weights beyond 2⁵³ are rounded. `options` are those of
    `sparse.from_entries`. I/O: one read of the lists, then that of `sparse.from_entries`.

    >>> import outcore as oc, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> G = oc.graph.from_arrays([0, 1], [1, 2], folder / "g.ocg")
    >>> oc.graph.to_sparse(G, folder / "a.ocs").nnz
    2
    """
    stored("to_sparse", G)
    n = G.number_of_vertices

    def chunks() -> Iterator[tuple[Any, ...]]:
        # A graph without vertices has a type as well.
        if n == 0 and G.dtype is not None:
            yield (*np.zeros((2, 0), np.uint32), np.zeros(0, G.dtype))
        for ids, begins, neighbours, weights in G._parts("out"):
            rows = np.repeat(ids, np.diff(begins))
            yield (rows, neighbours) if G.dtype is None else (rows, neighbours, weights.astype(G.dtype))

    return sparse.from_entries(chunks(), path, shape=(n, n), **options)


def from_networkx(graph: Any, path: PathLike, *, weight: str | None = None, overwrite: bool = False) -> Graph:
    """Stores a graph of networkx's, whose nodes are numbered in their order, and opens it.

    `weight` names the attribute of edges that is their weight, 1 where they have none; without it there are no weights.
    Edges of a multigraph between the same nodes are one; their weights are added. Raises ArgumentError for what is no
    graph, and where a weight is no real number. I/O: that of `from_arrays`.

    >>> import networkx as nx, outcore as oc, tempfile, pathlib
    >>> G = oc.graph.from_networkx(nx.path_graph(4), pathlib.Path(tempfile.mkdtemp()) / "g.ocg")
    >>> oc.graph.diameter(G)
    3
    """
    if isinstance(graph, Graph) or not hasattr(graph, "is_directed") or not hasattr(graph, "edges"):
        raise ArgumentError(f"from_networkx: {type(graph).__name__} is no graph of networkx")
    numbers = {node: number for number, node in enumerate(graph)}
    count = graph.number_of_edges()
    ends = ((numbers[u], numbers[v]) for u, v in graph.edges())
    pairs = np.fromiter(ends, np.dtype((np.int64, 2)), count)
    values = None
    if weight is not None:
        found = (_weight(weight, data.get(weight, 1)) for *_, data in graph.edges(data=True))
        values = np.fromiter(found, np.float64, count)
    return from_arrays(
        pairs[:, 0].copy(),
        pairs[:, 1].copy(),
        path,
        weights=values,
        vertices=len(numbers),
        directed=graph.is_directed(),
        overwrite=overwrite,
    )


def _weight(name: str, value: Any) -> float:
    """A weight of networkx's, which may be anything there; None stands for an edge that is hidden."""
    if isinstance(value, (str, bytes, complex, np.complexfloating)) or not hasattr(value, "__float__"):
        raise ArgumentError(f"from_networkx: {name}={value!r} of an edge is no real number")
    return float(value)


__all__ = ["from_arrays", "from_edges", "from_networkx", "from_sparse", "to_sparse"]
