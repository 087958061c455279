"""The table of `test_field_limits.py`: one call for each public function and method of sparse matrices, graphs, cached
files and estimators."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import outcore as oc
from outcore._session.session import current
from outcore.sparse import SparseMatrix
from support.graph_children import Spread
from support.learn_children import ESTIMATORS

Call = Callable[["Inputs"], Any]
COMPONENTS = 3


def moved() -> tuple[int, int]:
    """Bytes that the session in use has read and written."""
    counted = current().counters()
    return int(counted["bytes_read"]), int(counted["bytes_written"])


class Inputs:
    """Stored inputs of calls, by name; those that the caller holds in memory are loaded before the session begins."""

    def __init__(self, folder: Path, out: Path) -> None:
        self.folder, self.out = folder, out
        self.target = out / "target"
        #: The forecast of the call, where a function gives it, and the bytes that the session had moved until then.
        self.forecast: Any = None
        self.moved = (0, 0)
        self._held: dict[str, Any] = {}

    def foresee(self, forecast: Any) -> None:
        self.forecast, self.moved = forecast, moved()

    def hold(self, names: Iterable[str]) -> None:
        for name in names:
            self._held[name] = HELD[name](self.folder)

    def held(self, name: str) -> Any:
        return self._held[name]

    def array(self, name: str) -> oc.Array:
        return oc.open(self.folder / f"{name}.npy")

    def matrix(self, name: str = "a") -> SparseMatrix:
        return oc.sparse.open(self.folder / f"{name}.ocs")

    def graph(self, name: str) -> oc.graph.Graph:
        return oc.graph.open(self.folder / f"{name}.ocg")


def _scipy(folder: Path) -> Any:
    import scipy.sparse

    return scipy.sparse.load_npz(folder / "a.npz").tocsr()


def _networkx(folder: Path) -> Any:
    import networkx as nx

    ends = np.load(folder / "rows.npy")[:2000], np.load(folder / "columns.npy")[:2000]
    return nx.Graph(list(zip(*(part.tolist() for part in ends), strict=True)))


def _array(name: str) -> Callable[[Path], Any]:
    return lambda folder: np.load(folder / f"{name}.npy")


HELD: dict[str, Callable[[Path], Any]] = {
    **{name: _array(name) for name in ("rows", "columns", "values", "vector", "places")},
    "scipy": _scipy,
    "networkx": _networkx,
    "h5py": lambda _: __import__("h5py"),
    "scipy.linalg": lambda _: __import__("scipy.sparse.linalg"),
    "scipy.sparse": lambda _: __import__("scipy.sparse"),
}


# -- sparse matrices ---------------------------------------------------------------------------------------------------


def _method(name: str, *given: Any, **options: Any) -> Call:
    """A method of a matrix whose result is a matrix in a file."""
    return lambda inputs: getattr(inputs.matrix(), name)(*given, path=inputs.target.with_suffix(".ocs"), **options)


def _of_two(name: str, *given: Any) -> Call:
    return lambda inputs: getattr(inputs.matrix(), name)(
        *given, inputs.matrix("b"), path=inputs.target.with_suffix(".ocs")
    )


def _plain(name: str, *given: Any, **options: Any) -> Call:
    return lambda inputs: getattr(inputs.matrix(), name)(*given, **options)


def _stored(name: str, *given: Any) -> Call:
    """A method of a matrix whose result is lazy, and then in a file."""
    return lambda inputs: getattr(inputs.matrix(), name)(*given).copy(path=inputs.target.with_suffix(".ocs"))


MATRIX: dict[str, Call] = {
    **{name: _of_two(name) for name in ("add", "maximum", "minimum", "multiply")},
    "compare": _of_two("compare", ">"),
    "astype": _method("astype", "float32"),
    "copy": _method("copy"),
    "eliminate_zeros": _method("eliminate_zeros"),
    "power": _method("power", 2),
    "__pow__": _stored("__pow__", 2),
    "map": _method("map", np.sqrt),
    "tril": _method("tril"),
    "triu": _method("triu"),
    "part": _method("part", slice(5, -5), slice(3, -3)),
    "permute": lambda inputs: inputs.matrix().permute(inputs.array("places"), path=inputs.target.with_suffix(".ocs")),
    **{name: _plain(name) for name in ("diagonal", "trace", "norm")},
    **{name: _stored(name) for name in ("conj", "__abs__", "__neg__")},
    **{name: _stored(name, 2.0) for name in ("__mul__", "__truediv__", "__rmul__")},
    **{
        name: lambda inputs, name=name: getattr(inputs.matrix(), name)(inputs.matrix("b")).copy(
            path=inputs.target.with_suffix(".ocs")
        )
        for name in ("__add__", "__sub__")
    },
    "__getitem__": lambda inputs: inputs.matrix()[10:-10, ::2].copy(path=inputs.target.with_suffix(".ocs")),
    **{name: _plain(name, axis=1) for name in ("sum", "mean", "max", "min", "getnnz", "count_nonzero")},
    **{name: _plain(name, 1) for name in ("argmax", "argmin")},
    "blocks": lambda inputs: sum(len(rows) for rows, _, _ in inputs.matrix().blocks()),
    "transpose": lambda inputs: inputs.matrix().transpose() @ inputs.array("x"),
    "T": lambda inputs: inputs.matrix().T.copy(path=inputs.target.with_suffix(".ocs")),
    "dot": lambda inputs: inputs.matrix().dot(inputs.array("x")),
    "product": lambda inputs: inputs.matrix().product(inputs.array("x"), "min_plus"),
    "__matmul__": lambda inputs: inputs.matrix() @ inputs.array("x"),
    "__rmatmul__": lambda inputs: inputs.array("wide") @ inputs.matrix(),
    **{
        name: lambda inputs, name=name: getattr(inputs.matrix(), name)(inputs.array("x"))
        for name in ("matmat", "rmatmat")
    },
    **{
        name: lambda inputs, name=name: getattr(inputs.matrix(), name)(inputs.array("v"))
        for name in ("matvec", "rmatvec")
    },
    **{name: lambda inputs, name=name: getattr(inputs.matrix("small"), name)() for name in ("to_dense", "toarray")},
    "to_scipy": _plain("to_scipy"),
}


def _spgemm(inputs: Inputs) -> Any:
    operands = inputs.matrix(), inputs.matrix("b")
    inputs.foresee(oc.sparse.explain_spgemm(*operands))
    return oc.sparse.spgemm(*operands, path=inputs.target.with_suffix(".ocs"))


def _read(name: str, source: str, **options: Any) -> Call:
    """A matrix of another file."""
    return lambda inputs: getattr(oc.sparse, name)(
        inputs.folder / source, inputs.target.with_suffix(".ocs"), side=1024, **options
    )


def _write(name: str, suffix: str) -> Call:
    return lambda inputs: getattr(oc.sparse, name)(inputs.matrix(), inputs.target.with_suffix(suffix))


def _entries(inputs: Inputs) -> Any:
    return oc.sparse.from_entries(
        (inputs.array("rows"), inputs.array("columns"), inputs.array("values")), inputs.target.with_suffix(".ocs")
    )


def _table(inputs: Inputs) -> Any:
    tables = [{"from": inputs.held("rows"), "to": inputs.held("columns"), "by": inputs.held("values")}]
    return oc.sparse.from_table(tables, inputs.target.with_suffix(".ocs"), rows="from", columns="to", values="by")


def _rows(inputs: Inputs) -> Any:
    parts = (inputs.array(f"csr-{name}") for name in ("starts", "columns", "values"))
    return oc.sparse.from_csr(*parts, inputs.matrix().shape, inputs.target.with_suffix(".ocs"))


SPARSE: dict[str, Call] = {
    "als": lambda inputs: oc.sparse.als(inputs.matrix(), COMPONENTS, 2),
    "banded": lambda inputs: oc.sparse.banded(1 << 15, {-1: -1.0, 0: 2.0, 1: -1.0}, inputs.target.with_suffix(".ocs")),
    "grid3d": lambda inputs: oc.sparse.grid3d(24, inputs.target.with_suffix(".ocs")),
    "nas_cg": lambda inputs: oc.sparse.nas_cg("S", inputs.target.with_suffix(".ocs")),
    "rmat": lambda inputs: oc.sparse.rmat(1 << 14, 200_000, inputs.target.with_suffix(".ocs")),
    "rmat_edges": lambda inputs: oc.sparse.rmat_edges(1 << 14, 500_000),
    "explain_spgemm": lambda inputs: oc.sparse.explain_spgemm(inputs.matrix(), inputs.matrix("b")),
    "from_anndata": _read("from_anndata", "a.h5ad"),
    "from_binsparse": _read("from_binsparse", "a.h5"),
    "from_binary": _read("from_binary", "a.bin", values=np.float64),
    "from_edges": _read("from_edges", "a.txt", values=True),
    "from_mtx": _read("from_mtx", "a.mtx"),
    "from_npz": _read("from_npz", "a.npz"),
    "from_coo": lambda inputs: oc.sparse.from_coo(
        inputs.held("rows"),
        inputs.held("columns"),
        inputs.held("values"),
        inputs.matrix().shape,
        inputs.target.with_suffix(".ocs"),
    ),
    "from_csr": _rows,
    "from_entries": _entries,
    "from_scipy": lambda inputs: oc.sparse.from_scipy(inputs.held("scipy"), inputs.target.with_suffix(".ocs")),
    "from_table": _table,
    "hits": lambda inputs: oc.sparse.hits(inputs.matrix(), 4, 0.0),
    "kron": lambda inputs: oc.sparse.kron(
        inputs.matrix("tiny"), inputs.matrix("b"), path=inputs.target.with_suffix(".ocs")
    ),
    "label_propagation": lambda inputs: oc.sparse.label_propagation(inputs.matrix(), inputs.array("labels"), 4),
    "nmf": lambda inputs: oc.sparse.nmf(inputs.matrix(), COMPONENTS, 3, 0.0),
    "open": lambda inputs: oc.sparse.open(inputs.folder / "a.npz") @ inputs.array("x"),
    "pagerank": lambda inputs: oc.sparse.pagerank(inputs.matrix(), iterations=4, tol=0.0),
    "spectral_embedding": lambda inputs: oc.sparse.spectral_embedding(inputs.matrix("s"), 2, tol=1e-2),
    "spgemm": _spgemm,
    "layout": lambda inputs: oc.sparse.layout(inputs.matrix()),
    "to_edges": _write("to_edges", ".txt"),
    "to_mtx": _write("to_mtx", ".mtx"),
    "to_npz": _write("to_npz", ".npz"),
}


def _solved(name: str, matrix: str = "s", **options: Any) -> Call:
    return lambda inputs: getattr(oc.sparse.linalg, name)(inputs.matrix(matrix), inputs.array("v"), **options)[0]


def _decomposed(name: str, matrix: str = "s", **options: Any) -> Call:
    return lambda inputs: getattr(oc.sparse.linalg, name)(inputs.matrix(matrix), **options)


def _preconditioned(name: str, *given: Any) -> Call:
    return lambda inputs: getattr(oc.sparse.linalg, name)(inputs.matrix("s"), *given) @ inputs.array("v")


def _analyzed(inputs: Inputs) -> oc.sparse.linalg.Factorization:
    return oc.sparse.linalg.analyze(inputs.matrix("grid"), "spd", ordering="nd")


def _indefinite(inputs: Inputs) -> oc.sparse.linalg.Factorization:
    return oc.sparse.linalg.analyze(inputs.matrix("grid"), "sym", ordering="nd")


def _opened_factor(inputs: Inputs) -> Any:
    path = inputs.target.with_suffix(".ocf")
    _analyzed(inputs).factorize(path)
    return oc.sparse.linalg.open_factor(path, inputs.matrix("grid")).solve(inputs.array("grid"))


LINALG: dict[str, Call] = {
    **{name: _solved(name, rtol=1e-3, maxiter=6) for name in ("bicgstab", "cg", "gmres", "minres")},
    "lsmr": _solved("lsmr", "a", maxiter=6),
    "eigsh": _decomposed("eigsh", k=2, tol=1e-2),
    "eigs": _decomposed("eigs", k=2, tol=1e-2),
    "svds": _decomposed("svds", k=2, tol=1e-2),
    "randomized_svd": _decomposed("randomized_svd", "a", k=COMPONENTS),
    "expm_multiply": lambda inputs: oc.sparse.linalg.expm_multiply(inputs.matrix("s"), inputs.array("v"), t=1e-3),
    "lobpcg": lambda inputs: oc.sparse.linalg.lobpcg(inputs.matrix("s"), inputs.array("starts"), maxiter=3),
    "aslinearoperator": lambda inputs: oc.sparse.linalg.aslinearoperator(inputs.matrix()) @ inputs.array("x"),
    **{name: _preconditioned(name) for name in ("ic0", "ilu0", "jacobi")},
    "incomplete_lu": _preconditioned("incomplete_lu", 1e-2, 2.0),
    "block_jacobi": _preconditioned("block_jacobi", 4),
    "analyze": lambda inputs: oc.sparse.linalg.analyze(inputs.matrix("grid")).order,
    "cholesky": lambda inputs: oc.sparse.linalg.cholesky(inputs.matrix("grid")).nbytes,
    "factorized": lambda inputs: oc.sparse.linalg.factorized(inputs.matrix("grid"))(inputs.array("grid")),
    "spsolve": lambda inputs: oc.sparse.linalg.spsolve(inputs.matrix("grid"), inputs.array("grid")),
    "open_factor": _opened_factor,
    "Factorization.explain": lambda inputs: str(_analyzed(inputs).explain()),
    "Factorization.curve": lambda inputs: len(_analyzed(inputs).curve()),
    "Factorization.factorize": lambda inputs: _analyzed(inputs).factorize(inputs.target.with_suffix(".ocf")).nbytes,
    "Factorization.refactorize": lambda inputs: _analyzed(inputs).refactorize(inputs.matrix("grid") * 2.0).nbytes,
    "Factorization.solve": lambda inputs: _analyzed(inputs).solve(inputs.array("grids")),
    "Factorization.inverse_diagonal": lambda inputs: _analyzed(inputs).inverse_diagonal(),
    "Factorization.inverse_entries": lambda inputs: _analyzed(inputs).inverse_entries([0, 5], [0, 5]),
    "Factorization.rcond": lambda inputs: _analyzed(inputs).rcond,
    "Factorization.null_space": lambda inputs: _indefinite(inputs).null_space(),
    "Factorization.logdet": lambda inputs: _analyzed(inputs).logdet(),
    "splu": lambda inputs: oc.sparse.linalg.splu(inputs.matrix("grid")).nbytes,
    "Factorization.inertia": lambda inputs: _indefinite(inputs).inertia,
    "Factorization.slogdet": lambda inputs: _indefinite(inputs).slogdet(),
    "Factorization.delayed": lambda inputs: _indefinite(inputs).delayed,
    "Factorization.perturbed": lambda inputs: _indefinite(inputs).perturbed,
}


# -- graphs ------------------------------------------------------------------------------------------------------------


def _algorithm(name: str, graph: str, *given: Any, **options: Any) -> Call:
    """A function whose memory and reads are forecast."""

    def call(inputs: Inputs) -> Any:
        function, G = getattr(oc.graph, name), inputs.graph(graph)
        inputs.foresee(oc.graph.explain(function, G, *given, **options))
        return function(G, *given, **options)

    return call


def _made(name: str, *sources: Call, **options: Any) -> Call:
    return lambda inputs: getattr(oc.graph, name)(
        *(source(inputs) for source in sources), inputs.target.with_suffix(".ocg"), **options
    )


ALGORITHMS: dict[str, Call] = {
    **{
        name: _algorithm(name, "both")
        for name in (
            *("average_clustering", "clustering", "connected_components", "core_number", "louvain_communities"),
            *("maximal_independent_set", "scan_statistics", "triangles"),
        )
    },
    "betweenness_centrality": _algorithm("betweenness_centrality", "way", [0, 1]),
    "bfs": _algorithm("bfs", "way", 0),
    "diameter": _algorithm("diameter", "both"),
    "label_propagation": _algorithm("label_propagation", "both", iterations=4),
    "pagerank": _algorithm("pagerank", "way", tol=0.0, iterations=4),
    "shortest_paths": _algorithm("shortest_paths", "way", 0),
    "strongly_connected_components": _algorithm("strongly_connected_components", "way"),
    "topological_sort": _algorithm("topological_sort", "order"),
}
GRAPH: dict[str, Call] = {
    **ALGORITHMS,
    "degree_histogram": lambda inputs: oc.graph.degree_histogram(inputs.graph("way")),
    "explain": lambda inputs: str(oc.graph.explain(oc.graph.bfs, inputs.graph("way"), 0)),
    "from_arrays": _made("from_arrays", lambda inputs: inputs.array("rows"), lambda inputs: inputs.array("columns")),
    "from_edges": _made("from_edges", lambda inputs: inputs.folder / "a.txt", weights=True),
    "from_networkx": _made("from_networkx", lambda inputs: inputs.held("networkx")),
    "from_sparse": _made("from_sparse", Inputs.matrix),
    "open": lambda inputs: oc.graph.open(inputs.folder / "way.ocg").neighbors(5),
    "to_sparse": lambda inputs: oc.graph.to_sparse(inputs.graph("way"), inputs.target.with_suffix(".ocs")),
    **{
        f"Graph.{name}": lambda inputs, name=name: getattr(inputs.graph("way"), name)("both")
        for name in ("degrees", "degree_counts")
    },
    "Graph.neighbors": lambda inputs: inputs.graph("way").neighbors(3),
    "Graph.lists": lambda inputs: inputs.graph("way").lists(np.arange(4000), "in")[1],
    "Graph.successors": lambda inputs: list(inputs.graph("way").successors(3)),
    "Graph.predecessors": lambda inputs: list(inputs.graph("way").predecessors(3)),
    "Graph.has_edge": lambda inputs: inputs.graph("way").has_edge(0, 1),
    "Graph.run": lambda inputs: inputs.graph("way").run(Spread(), iterations=3).amount,
    "Graph.adjacency": lambda inputs: sum(len(row) for _, row in inputs.graph("both").adjacency()),
    "Graph.edges": lambda inputs: sum(1 for _ in inputs.graph("both").edges()),
    "Graph.size": lambda inputs: inputs.graph("way").size(),
    **{
        f"Graph.{name}": lambda inputs, name=name: getattr(inputs.graph("way"), name)[3]
        for name in ("adj", "pred", "succ", "degree", "in_degree", "out_degree")
    },
}


# -- cached files ------------------------------------------------------------------------------------------------------


def _places(inputs: Inputs) -> Any:
    return 8 * np.random.default_rng(0).permutation((inputs.folder / "x.npy").stat().st_size // 8)[:5000]


def _written(inputs: Inputs) -> Any:
    """A copy that grows while it is written."""
    inputs.target.touch()
    with oc.io.cached(inputs.target, mode="r+") as file:
        for part in np.array_split(_places(inputs), 8):
            file.write_at(part, part)
        file.flush()
    return None


IO: dict[str, Call] = {
    "cached": lambda inputs: oc.io.cached(inputs.folder / "x.npy").read_at(_places(inputs)),
    "CachedFile.read_at": lambda inputs: oc.io.cached(inputs.folder / "x.npy", policy="lru").read_at(_places(inputs)),
    "CachedFile.write_at": _written,
    "CachedFile.flush": _written,
}


# -- estimators --------------------------------------------------------------------------------------------------------


def _estimator(name: str) -> Call:
    """A fit, and its predictions or transformed data, stored."""

    def call(inputs: Inputs) -> Any:
        from outcore import learn

        target, options = ESTIMATORS[name]
        model = getattr(learn, name.partition(",")[0])(**options)
        x = inputs.array("codes" if target == "codes" else "table")
        model.fit(x) if target in ("", "codes") else model.fit(x, inputs.array(target))
        return model.predict(x) if hasattr(model, "predict") else model.transform(x)

    return call


def _encoded(inputs: Inputs) -> Any:
    from outcore import learn

    return learn.LabelEncoder().fit_transform(inputs.array("y"))


def _metric(name: str, *given: str) -> Call:
    return lambda inputs: getattr(oc.learn.metrics, name)(*map(inputs.array, given))


def _folded(inputs: Inputs) -> Any:
    return [oc.sum(inputs.array("table")[train]) for train, _ in oc.learn.KFold(3).split(inputs.array("table"))]


LEARN: dict[str, Call] = {
    **{name: _estimator(name) for name in ESTIMATORS},
    "LabelEncoder": _encoded,
    "KFold": _folded,
    "train_test_split": lambda inputs: oc.learn.train_test_split(inputs.array("table"), random_state=0),
    **{f"metrics.{name}": _metric(name, "y", "y") for name in ("accuracy_score", "confusion_matrix")},
    **{f"metrics.{name}": _metric(name, "y", "p") for name in ("log_loss", "roc_auc_score")},
    **{
        f"metrics.{name}": _metric(name, "t", "p")
        for name in ("mean_absolute_error", "mean_squared_error", "r2_score", "root_mean_squared_error")
    },
}

CALLS: dict[str, Call] = {
    **{f"sparse.SparseMatrix.{name}": call for name, call in MATRIX.items()},
    **{f"sparse.{name}": call for name, call in SPARSE.items()},
    **{f"sparse.linalg.{name}": call for name, call in LINALG.items()},
    **{f"graph.{name}": call for name, call in GRAPH.items()},
    **{f"io.{name}": call for name, call in IO.items()},
    **{f"learn.{name}": call for name, call in LEARN.items()},
}
# Arrays and modules that the caller has in memory before the session begins.
HOLDS: dict[str, tuple[str, ...]] = {
    "sparse.from_coo": ("rows", "columns", "values"),
    "sparse.from_table": ("rows", "columns", "values"),
    "sparse.from_scipy": ("scipy",),
    "graph.from_networkx": ("networkx",),
}
_TELLS = "tells what the head of the file says"
MOVES_NOTHING: dict[str, str] = {
    **{
        f"sparse.SparseMatrix.{name}": _TELLS
        for name in ("dtype", "is_pattern", "nbytes", "ndim", "nnz", "path", "shape")
    },
    **{
        f"graph.Graph.{name}": _TELLS
        for name in (
            *("directed", "dtype", "file_bytes", "graph", "has_node", "index_bytes", "is_directed", "is_multigraph"),
            *("nodes", "number_of_edges", "number_of_entries", "number_of_loops", "number_of_nodes"),
            *("number_of_vertices", "order", "path"),
        )
    },
    "io.CachedFile.counters": "counts",
    **dict.fromkeys(
        (
            f"sparse.linalg.Factorization.{name}"
            for name in (
                *("column_order", "dtype", "kind", "nbytes", "order", "outcore_operator", "outcore_preconditioner"),
                *("residual", "shape"),
            )
        ),
        "tells what the analysis, or the last solution, says",
    ),
    **dict.fromkeys(
        (
            *(
                "sparse.linalg.FactorForecast",
                "sparse.linalg.Inertia",
                "sparse.linalg.LimitCost",
                "sparse.linalg.LSMRResult",
                "sparse.linalg.NotConvergedError",
            ),
            *("graph.GraphForecast", "io.CacheCounters"),
        ),
        "a record",
    ),
    "sparse.linalg.Preconditioner": "the base of those that are made",
    "graph.VertexProgram": "the base of programs, which `Graph.run` runs",
    "graph.state": "names a state of a program",
}


# Classes whose public methods and properties are rows of their own.
CLASSES = (oc.sparse.SparseMatrix, oc.sparse.linalg.Factorization, oc.graph.Graph, oc.io.CachedFile)


def public_names() -> set[str]:
    """All that the modules say is public, and the methods of the classes that stand for data on disk."""
    from outcore import learn

    modules: tuple[ModuleType, ...] = (oc.sparse, oc.sparse.linalg, oc.graph, oc.io, learn, learn.metrics)
    names = set()
    for module in modules:
        prefix = module.__name__.removeprefix("outcore.")
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isclass(value) and value in CLASSES:
                names |= {f"{prefix}.{name}.{method}" for method in dir(value) if not method.startswith("_")}
            elif not isinstance(value, ModuleType):
                names.add(f"{prefix}.{name}")
    return names
