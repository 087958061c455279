"""Graphs made of edges, sparse matrices and networkx's graphs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np

from outcore import _api as oc
from outcore import _core, sparse
from outcore._base.arguments import whole
from outcore._base.digests import digest
from outcore._base.element_types import dtype_of
from outcore._base.files import same_bytes
from outcore._base.types import Keywords, NDArray, PathLike
from outcore._lazy.array import Array
from outcore.errors import ArgumentError, DTypeError, ShapeError
from outcore.graph._graph import Graph, stored
from outcore.graph._stored import session
from outcore.sparse._foreseen import check_graph, looked_at
from outcore.sparse._ingest import Options, _column, _key, named_only, of_files
from outcore.sparse._ingest import stored as stored_entries
from outcore.sparse._matrix import SparseMatrix
from outcore.sparse._readers import text_lines
from outcore.sparse._spool import Chunk, Done, Work, _check, stamp_of
from outcore.sparse._stream import File, sorted_as_read
from outcore.sparse._tiles import check_target, in_the_way, is_matrix

EdgeColumn = Array | NDArray | Sequence[float]  # sources, targets or weights of edges
# Stores a matrix at a path, and its transpose at another, if there is one.
Store = Callable[[Path, Path | None, Keywords], object]
# Blocks of entries, from that of a number on.
Blocks = Callable[[int], Iterator[Chunk]]
# Edges of arrays in memory that are written to scratch together.
_PIECE = 1 << 20
_INGEST = "ingest of a graph"


# The ways to treat an edge that is there again: of undirected ones none comes first.
_ORDERED = ("last", "any")


def _made(
    store: Store, path: PathLike | None, directed: bool, overwrite: bool, key: str | None, *, mirrored: bool = False
) -> Graph:
    """Stores the edges as matrices beside, and the graph of those.

    Where weights are added in the order in which they come, a matrix that is mirrored as it is stored is not symmetric
    to the last bit: with `mirrored` that comes after.
    """
    file = File(path, ".ocg")
    target = file.path
    with Work(None if key is None else f"{target}\n{directed}\n{key}", target, name=_INGEST) as work:
        if work.is_done(target):
            return _opened(file)
        check_target(target, overwrite, work, "graph")
        rows, columns = work.path("out.ocs"), work.path("in.ocs") if directed else None
        labels = rows.with_name(rows.name + ".labels.npy")
        matrices = [path for path in (rows, columns) if path is not None]
        note = work.noted("edges")
        if note == "labelled":
            note = work.noted("edges", labels.name)
        if note is None or not all(map(is_matrix, matrices)):
            options: Keywords = {"overwrite": True}
            if key is not None:
                options["resume"] = True
            if not directed and not mirrored:
                options["symmetrize"] = True
            store(rows, columns, options)
            work.note("edges", "labelled" if labels.exists() else True)
        matrix = sparse.open(rows)
        if mirrored and not directed:
            matrix = _mirrored(matrix, partial(_whole, matrix), work)
        names = labels if labels.exists() else None
        _build(matrix, None if columns is None else sparse.open(columns), target, overwrite, work, names)
        work.done(target)
        return _opened(file)


def _opened(file: File) -> Graph:
    return Graph(_core.open_graph(session(), str(file.path)), file.holder())


def _mirrored(A: SparseMatrix, blocks: Blocks, work: Work, **options: object) -> SparseMatrix:
    """Stores entries of a matrix, and their mirror images, where that is not done."""
    path = work.path("both.ocs")

    def chunks(done: Done) -> Iterator[Chunk]:
        # A matrix without entries has a type as well: the first chunk tells it.
        if not done.chunks:
            yield (*np.zeros((2, 0), np.uint64), np.zeros(0, A.dtype))[: 3 - A.is_pattern]
        for block in blocks(max(done.chunks - 1, 0)):
            yield block[: 3 - A.is_pattern]

    if work.noted("both") is None or not is_matrix(path):
        options |= {"shape": A.shape, "symmetrize": True, "overwrite": True, "resume": work.resumes}
        stored_entries(lambda done: nullcontext(chunks(done)), path, A._core.identity, cast(Options, options))
        work.note("both", True)
    return sparse.open(path)


def _whole(A: SparseMatrix, first: int) -> Iterator[Chunk]:
    """All entries."""
    return A._blocks_from(first)


def _halves(A: SparseMatrix, first: int) -> Iterator[Chunk]:
    """All entries in the upper triangle, those that stood there behind the others."""
    tiles = A._content.streamed().tiles
    for is_upper, begin in ((False, first), (True, max(first - tiles, 0))):
        for rows, columns, values in A._blocks_from(min(begin, tiles)):
            chosen = (rows <= columns) == is_upper
            yield np.minimum(rows, columns)[chosen], np.maximum(rows, columns)[chosen], values[chosen]


def _build(
    rows: SparseMatrix,
    columns: SparseMatrix | None,
    target: Path,
    overwrite: bool,
    work: Work,
    labels: Path | None = None,
) -> None:
    """A graph that is replaced goes with its labels. Raises DTypeError for complex weights: lists come with float64."""
    if rows.dtype.kind == "c":
        raise DTypeError(f"graph: weights must be real, not {rows.dtype}")
    transpose = None if columns is None else columns._core
    # A call that was killed may have given the graph its name: it is the same then, or another's and in the way.
    is_there = work.noted("graph-began") is not None and target.exists() and not overwrite
    if work.resumes:
        work.note("graph-began", True)
    if not is_there:
        _core.build_graph(session(), rows._core, transpose, str(target), labels, overwrite)
        return
    again = work.path("again.ocg")
    _core.build_graph(session(), rows._core, transpose, str(again), None, True)
    if not same_bytes(again, target):
        raise in_the_way(target)


def from_edges(
    source: PathLike,
    path: PathLike | None = None,
    *,
    directed: bool = True,
    weights: bool | int | None = False,
    vertices: int | None = None,
    overwrite: bool = False,
    resume: bool = False,
    **options: Any,
) -> Graph:
    """Stores the graph of a text file with an edge in each line, and opens it.

    Without a `path` the graph is in scratch, and goes with its last reader: so in every function that stores one. Edges
    that are there again are one; their weights are added. Of an undirected graph each edge may stand either way round.
    `weights` says which number of a line is the weight: True the third, which has to be there, None the third if there
    is one, False none. `vertices` is how many there are, unless given one more than the highest. `options` are those of
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
    named_only("from_edges", path, resume=resume, relabel=options.get("relabel"))
    reading = dict(options)
    description = {name: reading[name] for name in ("columns", "separators", "comments", "base") if name in reading}
    lines = looked_at(source, partial(text_lines, source, **description))
    check_graph("from_edges", lines, vertices, directed, weights is not False)

    def store(rows: Path, columns: Path | None, more: Keywords) -> object:
        return sparse.from_edges(source, rows, values=weights, transpose=columns, **reading, **more)

    key = f"{stamp_of(source)} {weights} {sorted(reading.items())}" if resume else None
    return _made(store, path, directed, overwrite, key, mirrored=weights is not False)


def from_arrays(
    sources: EdgeColumn,
    targets: EdgeColumn,
    path: PathLike | None = None,
    *,
    weights: EdgeColumn | None = None,
    vertices: int | None = None,
    directed: bool = True,
    overwrite: bool = False,
    **options: Any,
) -> Graph:
    """Stores the graph of edges whose ends are arrays, NumPy's or lazy ones that are larger than memory, and opens it.

    Edges that are there again are one; their weights are added, integers and bools as int64 or uint64.
    `vertices` is how many there are, unless given one more than the highest. `options` are those of
    `sparse.from_entries`; with `resume` a killed call goes on when it is made again, where all arrays are those of
    files that have not changed, or all are in memory and hold the same. Raises ShapeError, DTypeError, ArgumentError,
    TargetExistsError. I/O: that of `sparse.from_entries`, then one read and one write of the edges; with `resume`, of
    arrays in memory, one write and one read of them more.

    >>> import outcore as oc, tempfile, pathlib
    >>> G = oc.graph.from_arrays([0, 1], [1, 2], pathlib.Path(tempfile.mkdtemp()) / "g.ocg")
    >>> oc.graph.bfs(G, 0).tolist()
    [0, 1, 2]
    """
    _check_options("from_arrays", options, vertices)
    named_only("from_arrays", path, resume=options.get("resume"), relabel=options.get("relabel"))
    if vertices is not None:
        options["shape"] = (vertices, vertices)
    for name, ends in (("sources", sources), ("targets", targets)):
        if not hasattr(ends, "__len__"):
            raise ArgumentError(f"from_arrays: {name} must be a 1-D array of integers, not {type(ends).__name__}")
    if not directed:
        sources, targets = _ascending(sources, targets)
    weights = _wide(weights)
    entries = (sources, targets) if weights is None else (sources, targets, weights)
    key = None
    if options.pop("resume", False):
        # An array that maps a file is one of a file.
        is_of_files = of_files([_column(part) for part in entries])
        if not is_of_files and all(isinstance(part, (np.ndarray, list, tuple)) for part in entries):
            return _from_memory([_in_memory(part) for part in entries], path, directed, overwrite, options)
        key = _key(tuple(_column(part) for part in entries), None, cast(Options, options))

    def store(rows: Path, columns: Path | None, more: Keywords) -> object:
        # Without a shape this makes the matrix as wide as long.
        shape = options.pop("shape", None) or _square(sources, targets)
        return sparse.from_entries(entries, rows, transpose=columns, shape=shape, **options, **more)

    return _made(store, path, directed, overwrite, key)


def _wide(weights: EdgeColumn | None) -> EdgeColumn | None:
    """Weights in a type that has room for their sums, as NumPy's `sum` has: small integers and bools in 64 bits."""
    if weights is None:
        return None
    array = weights if isinstance(weights, oc.Array) else np.asarray(weights)
    if array.dtype.kind in "bi" and array.dtype != np.int64:
        return array.astype(np.int64)
    return array.astype(np.uint64) if array.dtype.kind == "u" and array.dtype != np.uint64 else weights


def _in_memory(part: EdgeColumn) -> NDArray:
    # As `_column` has it.
    return np.asarray(part) if len(part) else np.zeros(0, getattr(part, "dtype", np.int64))


def _from_memory(
    columns: list[NDArray], path: PathLike | None, directed: bool, overwrite: bool, options: Keywords
) -> Graph:
    """As `from_arrays`, and gone on with where it was killed: another process has the arrays again where they have the
    same digest."""
    _check(columns, None, np.dtype(np.uint32))
    known = digest(size=16)
    for column in columns:
        dtype_of(column.dtype)
        for begin in range(0, len(column), _PIECE):
            known.update(np.ascontiguousarray(column[begin : begin + _PIECE]).view(np.uint8).data)
    vertices = max((int(ends.max()) + 1 for ends in columns[:2] if len(ends)), default=0)
    options = {"shape": (vertices, vertices), **options}
    description = [(str(column.dtype), len(column)) for column in columns]
    key = _key(None, f"{description} {known.hexdigest()}", cast(Options, options))

    def chunks(done: Done) -> Iterator[Chunk]:
        # Without edges there is a chunk as well: it tells the type of weights.
        for begin in range(done.chunks * _PIECE, max(len(columns[0]), 1), _PIECE):
            yield [column[begin : begin + _PIECE] for column in columns]

    def store(rows: Path, transpose: Path | None, more: Keywords) -> object:
        entry_options = cast(Options, {**options, "transpose": transpose, **more})
        return stored_entries(lambda done: nullcontext(chunks(done)), rows, key, entry_options)

    return _made(store, path, directed, overwrite, key)


def _check_options(name: str, options: Keywords, vertices: int | None) -> None:
    if vertices is not None:
        whole(name, 2**32 - 2, vertices=vertices)
    for taken in ("symmetrize", "transpose", "shape"):
        if taken in options:
            raise ArgumentError(f"{name}: there is no option {taken}; directed= and vertices= are right")


def _ascending(sources: EdgeColumn, targets: EdgeColumn) -> tuple[EdgeColumn, EdgeColumn]:
    """The same ends, the lower one first: so weights of an edge are added in one order, whichever way it is told."""
    first, second = (end if isinstance(end, oc.Array) else np.asarray(end) for end in (sources, targets))
    if first.shape != second.shape or not len(first) or {first.dtype.kind, second.dtype.kind} - {"i", "u"}:
        return sources, targets  # which is refused, or nothing
    if first.dtype != second.dtype:
        first, second = first.astype(np.int64), second.astype(np.int64)
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
        return np.minimum(first, second), np.maximum(first, second)
    return oc.minimum(first, second), oc.maximum(first, second)


def _square(sources: EdgeColumn, targets: EdgeColumn) -> tuple[int, int]:
    ends = [oc.asarray(part) if len(part) else None for part in (sources, targets)]
    highest = [int(oc.max(part).compute()) for part in ends if part is not None]
    vertices = max(highest, default=-1) + 1
    return vertices, vertices


def from_sparse(
    A: SparseMatrix,
    path: PathLike | None = None,
    *,
    directed: bool = True,
    overwrite: bool = False,
    resume: bool = False,
) -> Graph:
    """Stores the graph of a square sparse matrix, an edge from i to j for each entry A[i, j], its value the weight.

    With `directed=False` A and its transpose are put together: of two different weights that above the diagonal counts.
    With `resume` a killed call goes on when it is made again with the same file; A is one of outcore's (`.ocs`) then.
    Raises ShapeError for a matrix that is not square, ArgumentError for what is no stored one, or cannot be gone on
    with. I/O: the matrix is sorted the other way once, read, and written; of an undirected graph it is read twice and
    sorted anew.

    >>> import outcore as oc, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> A = oc.sparse.from_coo([0, 1], [1, 2], None, (3, 3), folder / "a.ocs")
    >>> oc.graph.from_sparse(A, folder / "g.ocg").number_of_edges
    2
    """
    if not isinstance(A, SparseMatrix):
        raise ArgumentError(
            f"from_sparse: A must be a stored matrix, not {type(A).__name__}; sparse.from_scipy stores SciPy's"
        )
    if A.shape[0] != A.shape[1]:
        raise ShapeError(f"from_sparse: the matrix of a graph must be square, not of shape {A.shape}")
    if resume and (not A._is_lasting or not A._core.is_tiled):
        where = "in scratch" if not A._is_lasting else "stored by rows or columns"
        raise ArgumentError(f"from_sparse: resume=True, and the matrix is {where}: store it by copy(path=) first")
    named_only("from_sparse", path, resume=resume)
    file = File(path, ".ocg")
    target = file.path
    # The file as it was opened: one that changed begins anew.
    key = f"{target}\n{directed}\n{A._transposed}\n{A._core.identity}" if resume else None
    with Work(key, target, name=_INGEST) as work:
        if work.is_done(target):
            return _opened(file)
        check_target(target, overwrite, work, "graph")
        if not directed:
            _build(_mirrored(A, partial(_halves, A), work, duplicates="last"), None, target, overwrite, work)
        elif A._transposed:
            # The rows of its file are the columns of the view.
            _build(_turned(A, work), A.T, target, overwrite, work)
        else:
            _build(A, _turned(A.T, work), target, overwrite, work)
        work.done(target)
        return _opened(file)


def _turned(view: SparseMatrix, work: Work) -> SparseMatrix:
    """A transpose in a file of its own, where that is not there."""
    path = work.path("turned.ocs")
    if work.noted("turned") is None or not is_matrix(path):
        sorted_copy(view, path, work.resumes)
        work.note("turned", True)
    return sparse.open(path)


def sorted_copy(view: SparseMatrix, path: Path, resumes: bool) -> None:
    """Stores a transpose sorted by its rows. A call that resumes goes on with the sort."""
    if resumes:
        sorted_as_read(view, path, f"{path}\n{view._core.identity}")
    else:
        view.copy(path=path, overwrite=True)


def to_sparse(G: Graph, path: PathLike | None = None, **options: Any) -> SparseMatrix:
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

    def chunks() -> Iterator[Chunk]:
        # A graph without vertices has a type as well.
        if n == 0 and G.dtype is not None:
            yield (*np.zeros((2, 0), np.uint32), np.zeros(0, G.dtype))
        for ids, begins, neighbours, weights in G._parts("out"):
            rows = np.repeat(ids, np.diff(begins))
            yield (rows, neighbours) if G.dtype is None else (rows, neighbours, weights.astype(G.dtype))

    return sparse.from_entries(chunks(), path, shape=(n, n), **options)


def from_networkx(
    graph: Any,
    path: PathLike | None = None,
    *,
    weight: str | None = None,
    overwrite: bool = False,
    resume: bool = False,
) -> Graph:
    """Stores a graph of networkx's, whose nodes are numbered in their order, and opens it.

    `weight` names the attribute of edges that is their weight, 1 where they have none; without it there are no weights.
    Edges of a multigraph between the same nodes are one; their weights are added. With `resume` a killed call goes on
    when it is made again with a graph whose edges, weights and number of nodes are the same, in the same order. Raises
    ArgumentError for what is no graph, and where a weight is no real number. I/O: that of `from_arrays`; with `resume`
    one write and one read of the edges more.

    >>> import networkx as nx, outcore as oc, tempfile, pathlib
    >>> G = oc.graph.from_networkx(nx.path_graph(4), pathlib.Path(tempfile.mkdtemp()) / "g.ocg")
    >>> oc.graph.diameter(G)
    3
    """
    if isinstance(graph, Graph) or not hasattr(graph, "is_directed") or not hasattr(graph, "edges"):
        raise ArgumentError(f"from_networkx: graph must be one of networkx's, not {type(graph).__name__}")
    numbers = {node: number for number, node in enumerate(graph)}
    count = graph.number_of_edges()
    ends = ((numbers[u], numbers[v]) for u, v in graph.edges())
    pairs = np.fromiter(ends, np.dtype((np.int64, 2)), count)
    values = None
    if weight is not None:
        edge_weights = (_weight(weight, data.get(weight, 1)) for *_, data in graph.edges(data=True))
        values = np.fromiter(edge_weights, np.float64, count)
    sources, targets = pairs[:, 0].copy(), pairs[:, 1].copy()
    options = {"directed": graph.is_directed(), "overwrite": overwrite, "resume": resume}
    return from_arrays(sources, targets, path, weights=values, vertices=len(numbers), **options)


def _weight(name: str, value: object) -> float:
    """A weight of networkx's, which may be anything there; None stands for an edge that is hidden."""
    if isinstance(value, (str, bytes, complex, np.complexfloating)) or not hasattr(value, "__float__"):
        raise ArgumentError(f"from_networkx: {name} of an edge must be a real number, not {value!r}")
    return float(value)


__all__ = ["from_arrays", "from_edges", "from_networkx", "from_sparse", "to_sparse"]
