"""Names of pandas, NumPy and SciPy that outcore has under another name, or not at all: what is nearest."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

import numpy as np

from outcore._lazy.hooks import above

# Names that a module or an array is asked for, and the nearest that outcore has.
_NEAREST: dict[str, str] = {
    "concatenate": "outcore.concat((x, y), axis=0)",
    "array": "outcore.asarray(x)",
    "load": 'outcore.open("x.npy")',
    "memmap": 'outcore.open("x.npy")',
    "save": 'outcore.store({"x.npy": x})',
    "savez": 'outcore.store({"x.npy": x, "y.npy": y})',
    "to_csv": "numpy.savetxt(path, block) for block after block of x; polars.DataFrame(t).write_csv(path) of a table",
    "read_hdf": 'outcore.open("x.h5/name")',
    "DataFrame": "outcore.table; outcore.open(path, field=name) for files of records",
    "Series": "outcore.asarray(values)",
    "merge": "outcore.searchsorted of sorted keys, then outcore.take",
    "join": "outcore.searchsorted of sorted keys, then outcore.take",
    "open_many": 'outcore.open("a_*.nc", axis="time")',
    "open_mfdataset": 'outcore.open("a_*.nc", axis="time"), or xarray\'s with engine="outcore"',
    "open_dataset": 'outcore.open("a.nc"), or xarray\'s with engine="outcore"',
    "open_zarr": 'outcore.open("a.zarr")',
    "read_feather": 'outcore.read_arrow("t.arrow")',
    "imread": 'outcore.open("a.tif")',
    "sel": "x[(t >= first) & (t < last)] with the coordinate t, or outcore.searchsorted of it and x[place]",
    "isel": "x[place], an index for each axis in order",
    "to_zarr": 'outcore.store({"a.zarr": x})',
    "to_netcdf": 'outcore.store({"a.nc": outcore.group(x=x)})',
    "to_hdf5": 'outcore.store({"a.h5/x": x})',
    "to_parquet": "outcore.to_parquet(outcore.table(x=x), path)",
    "resample": 'outcore.groupby(t.astype("datetime64[M]"))',
    "coarsen": "outcore.reshape, then a mean over the new axes",
    "agg": "outcore.groupby(labels).agg(x, mean='mean')",
    "apply": "outcore.map_blocks(f, x)",
    "fillna": "outcore.where(outcore.isnan(x), value, x)",
    "dropna": "x[~outcore.isnan(x)]",
    "isnull": "outcore.isnan(x)",
    "isna": "outcore.isnan(x)",
    "notna": "~outcore.isnan(x)",
    "value_counts": "outcore.unique_counts(x)",
    "unique": "outcore.unique_values(x)",
    "nunique": "outcore.unique_values(x).shape[0]",
    "sort_values": "outcore.sort(x), outcore.sort_by(keys, values)",
    "rolling": "outcore.rolling_mean(x, window)",
    "describe": "outcore.stats.summary(x)",
    "head": "x[:5].compute()",
    "tail": "x[-5:].compute()",
    "values": "x.compute()",
    "choice": "outcore.random.choice(x, size)",
    "shuffle": "outcore.random.choice(x, x.shape[0])",
    "rand": "outcore.random.uniform(shape)",
    "randn": "outcore.random.normal(shape)",
    "dot": "x @ y",
    "inv": "outcore.linalg.inv(x)",
    "solve": "outcore.linalg.solve(A, b)",
    "svd": "outcore.linalg.svd(x, full_matrices=False)",
    "eig": "outcore.linalg.eigh(x) for symmetric matrices",
    "norm": "outcore.linalg.norm(x)",
    "lstsq": "outcore.linalg.lstsq(A, b)",
    "spsolve": "outcore.sparse.linalg.spsolve of positive definite matrices; cg, gmres or minres of others",
    "expm": "scipy.linalg.expm(x.compute()) for a matrix that fits the memory",
    "logm": "scipy.linalg.logm(x.compute()) for a matrix that fits the memory",
    "sqrtm": "scipy.linalg.sqrtm(x.compute()) for a matrix that fits the memory",
    "lu": "outcore.linalg.solve(A, b), outcore.linalg.qr(A)",
    "csr_matrix": "outcore.sparse.from_scipy(matrix)",
    "csr_array": "outcore.sparse.from_scipy(matrix)",
    "coo_matrix": "outcore.sparse.from_coo(rows, columns, values, shape)",
    "load_npz": 'outcore.sparse.open("a.npz")',
    "KMeans": "from outcore.learn import KMeans",
    "DiGraph": "outcore.graph.from_networkx(G, path), outcore.graph.from_edges(text, path)",
    "read_edgelist": "outcore.graph.from_edges(text, path)",
}

# The same where a module of sparse matrices is asked.
_NEAREST_SPARSE: dict[str, str] = {
    "tril": "A.tril()",
    "triu": "A.triu()",
    "norm": "A.norm()",
    "inv": "outcore.sparse.linalg.factorized(A) of positive definite matrices; cg, gmres or minres of others",
    "lsqr": "outcore.sparse.linalg.lsmr",
    "spilu": "outcore.sparse.linalg.ilu0",
    "find": "A.blocks(), which gives rows, columns and values some at a time",
    "save_npz": "outcore.sparse.to_npz(A, path)",
    "load_npz": "outcore.sparse.from_npz(path, to), or outcore.sparse.open(path) of uncompressed rows or columns",
    "issparse": "isinstance(A, outcore.sparse.SparseMatrix)",
    "random": "outcore.sparse.rmat(vertices, edges)",
    **dict.fromkeys(("eye", "identity", "diags", "coo_array", "bsr_array", "dok_array"), "outcore.sparse.from_coo"),
    **dict.fromkeys(
        ("hstack", "vstack", "bmat", "block_diag", "block_array"),
        "outcore.sparse.from_entries of A.blocks() of each, with rows and columns moved",
    ),
}


def _of_numpy(name: str) -> str | None:
    """Outcore's name of NumPy's function, or that function itself where it takes lazy arrays."""
    ufunc = above.ufunc_of(name)
    if ufunc is not None:
        return f"outcore.{ufunc}(x)"
    function = vars(np).get(name)
    if not callable(function) or isinstance(function, type) or not above.is_numpys(function):
        return None
    return f"numpy.{name}(x), which is lazy for a lazy x"


def missing_name(owner: str, name: str) -> AttributeError:
    """The error for a name that `owner` has not, with the nearest there is, where that is known."""
    known = (_NEAREST_SPARSE.get(name) if "outcore.sparse" in owner else None) or _NEAREST.get(name)
    hint = None if name.startswith("_") else known or _of_numpy(name)
    return AttributeError(f"{owner} has no attribute {name!r}" + (f"; use {hint}" if hint else ""))


def hinted(module: str) -> Callable[[str], NoReturn]:
    """A module's `__getattr__` that knows the names above."""

    def find(name: str) -> NoReturn:
        raise missing_name(f"module {module!r}", name)

    return find


__all__ = ["hinted", "missing_name"]
