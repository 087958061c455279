"""Functions of xarray that know Dask's arrays and NumPy's alone, taught to know lazy arrays.

xarray has a chunk manager's methods for most of what it does with chunks. These it does otherwise (2026.9):

- `core/indexing.py`, `ArrayApiIndexingAdapter._vindex_get`: points, of arrays with a namespace, are refused;
- `core/duck_array_ops.py`, `_push`: ffill and bfill give all but Dask's arrays to bottleneck or numbagg, whole;
- `core/duck_array_ops.py`, `array_any`: NumPy's `np.any(variable)` in `polyfit` passes out=None to any namespace;
- `core/indexing.py`, `NumpyIndexingAdapter._vindex_get`: lazy positions, as `idxmax` has them, are refused;
- `core/dataarray.py`, `_infer_coords_and_dims`: names of axes are taken from an array's `dims`, None and all;
- `computation/apply_ufunc.py`, `apply_variable_ufunc`: axes that a function has whole must be one chunk;
- `backends/zarr.py`, `validate_grid_chunks_alignment`: chunks of a file that lie across those of an array are refused;
- `computation/fit.py`, `least_squares`: NumPy's, which has all columns in memory;
- `core/groupby.py`, `_flox_reduce`, `_flox_scan`, `reduce`: flox takes chunks of Dask and cubed, and without flox the
  rows of each group are gathered; `_first_or_last`: flox, and numba with it, are imported for a constant (80 MiB);
- `core/common.py`, `get_chunksizes`, as `core/dataset.py` and others import it: variables whose chunks differ are
  refused, and tiles of two lazy variables may;
- `backends/api.py`, `_chunk_ds`, and `core/dataset.py`, `chunk`: one chunk manager is asked, Dask's where that is
  installed and none was chosen, though what was opened or is chunked are lazy arrays.

Each is replaced by one that does for lazy arrays what is needed, and for all others what it did.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from inspect import signature
from itertools import accumulate, pairwise

from xarray import set_options
from xarray.backends import api, zarr
from xarray.computation import fit
from xarray.core import dataarray, dataset, datatree, duck_array_ops, groupby, indexing, resample
from xarray.core.utils import Frozen
from xarray.groupers import RESAMPLE_DIM

from outcore._lazy.array import Array
from outcore._lazy.chunks import Chunks
from outcore._xarray import fitting, grouped
from outcore._xarray.foreign import Foreign, Function
from outcore._xarray.packed import forward_filled
from outcore._xarray.unwrapped import points_of

_MARK = "_outcore"
NAME = "outcore"  # of the engine, and of the chunk manager


def teach() -> None:
    """Replaces the functions above, once."""
    _replace(indexing.ArrayApiIndexingAdapter, "_vindex_get", _points)
    _replace(indexing.NumpyIndexingAdapter, "_vindex_get", _computed_positions)
    _replace(dataarray, "_infer_coords_and_dims", _names_of_axes)
    _replace(duck_array_ops, "_push", _pushed)
    _replace(import_module("xarray.computation.apply_ufunc"), "apply_variable_ufunc", _whole_axes)
    _replace(api, "_chunk_ds", _opened_by_engine)
    _replace(dataset.Dataset, "chunk", _chunked_again)
    _replace(zarr, "validate_grid_chunks_alignment", _any_chunks)
    _replace(duck_array_ops, "array_any", _any_of)
    _replace(fit, "least_squares", fitting.dispatched)
    for importer in (dataarray, dataset, datatree):
        _replace(importer, "get_chunksizes", _unified_chunks)
    for groups in (groupby.GroupBy, resample.Resample):
        _replace(groups, "_flox_reduce", _without_flox)
    _replace(groupby.GroupBy, "_flox_scan", _scan_without_flox)
    _replace(groupby.GroupBy, "_first_or_last", _ends_without_flox)
    for reduced in (groupby.DataArrayGroupByBase, groupby.DatasetGroupByBase):
        _replace(reduced, "reduce", _reduced_groups)


def _replace(owner: Foreign, name: str, make: Callable[[Function], Function]) -> None:
    function = vars(owner).get(name)  # a version that has none needs none, or is listed by the tests
    if function is None or hasattr(function, _MARK):
        return
    replacement = wraps(function)(make(function))
    setattr(replacement, _MARK, True)
    setattr(owner, name, replacement)


def _points(function: Function) -> Function:
    def call(adapter: Foreign, indexer: Foreign) -> Foreign:
        if not isinstance(adapter.array, Array):
            return function(adapter, indexer)
        return points_of(adapter.array, indexer.tuple)

    return call


def _names_of_axes(function: Function) -> Function:
    def call(shape: Foreign, coords: Foreign, dims: Foreign) -> Foreign:
        if isinstance(dims, tuple) and None in dims:
            dims = None if set(dims) == {None} else [dim or f"dim_{place}" for place, dim in enumerate(dims)]
        return function(shape, coords, dims)

    return call


def _computed_positions(function: Function) -> Function:
    def call(adapter: Foreign, indexer: Foreign) -> Foreign:
        if any(isinstance(part, Array) for part in indexer.tuple):
            parts = (part.compute() if isinstance(part, Array) else part for part in indexer.tuple)
            indexer = indexing.VectorizedIndexer(tuple(parts))
        return function(adapter, indexer)

    return call


def _whole_axes(function: Function) -> Function:
    def call(applied: Foreign, *arguments: Foreign, dask: str = "forbidden", **options: Foreign) -> Foreign:
        if dask == "parallelized" and any(isinstance(getattr(part, "_data", part), Array) for part in arguments):
            options["dask_gufunc_kwargs"] = {"allow_rechunk": True, **(options.get("dask_gufunc_kwargs") or {})}
        return function(applied, *arguments, dask=dask, **options)

    return call


def _any_chunks(function: Function) -> Function:
    def call(nd_v_chunks: Foreign, **options: Foreign) -> Foreign:
        return None if isinstance(nd_v_chunks, Chunks) else function(nd_v_chunks=nd_v_chunks, **options)

    return call


def _unified_chunks(function: Function) -> Function:
    def call(variables: Foreign) -> Foreign:
        kept = list(variables)
        try:
            return function(kept)
        except ValueError:
            if not any(isinstance(part._data, Array) for part in kept):
                raise
        bounds: dict[Foreign, set[int]] = {}
        for part in kept:
            if hasattr(part._data, "chunks"):
                for dim, lengths in part.chunksizes.items():
                    bounds.setdefault(dim, set()).update(accumulate(lengths))
        cuts = {dim: [0, *sorted(ends - {0})] for dim, ends in bounds.items()}
        return Frozen({dim: tuple(end - begin for begin, end in pairwise(ends)) for dim, ends in cuts.items()})

    return call


def _opened_by_engine(function: Function) -> Function:
    signature_of = signature(function)

    def call(*arguments: Foreign, **options: Foreign) -> Foreign:
        bound = signature_of.bind(*arguments, **options)
        if bound.arguments["engine"] == NAME and bound.arguments["chunked_array_type"] is None:
            bound.arguments["chunked_array_type"] = NAME
        return function(*bound.args, **bound.kwargs)

    return call


def _chunked_again(function: Function) -> Function:
    def call(dataset: Foreign, *arguments: Foreign, chunked_array_type: Foreign = None, **options: Foreign) -> Foreign:
        if chunked_array_type is None and any(isinstance(part._data, Array) for part in dataset.variables.values()):
            chunked_array_type = NAME
        return function(dataset, *arguments, chunked_array_type=chunked_array_type, **options)

    return call


def _pushed(function: Function) -> Function:
    def call(array: Foreign, n: int | None = None, axis: int = -1) -> Foreign:
        return forward_filled(array, n, axis) if isinstance(array, Array) else function(array, n, axis)

    return call


def _any_of(function: Function) -> Function:
    def call(array: Foreign, axis: Foreign = None, keepdims: bool = False, **options: Foreign) -> Foreign:
        if isinstance(array, Array) and options.get("out", array) is None:
            options.pop("out")
        return function(array, axis=axis, keepdims=keepdims, **options)

    return call


def _without_flox(function: Function) -> Function:
    def call(groups: Foreign, dim: Foreign = None, keep_attrs: Foreign = None, **options: Foreign) -> Foreign:
        if not grouped.has_lazy(groups):
            return function(groups, dim=dim, keep_attrs=keep_attrs, **options)
        for name in ("fill_value", "engine", "method", "expected_groups"):
            options.pop(name, None)
        if not isinstance(groups, groupby.DatasetGroupByBase):
            options.pop("numeric_only", None)
        name = options.pop("func")
        dims = [groups._group_dim] if dim is None else dim
        if name == "quantile":
            kind = type(groups._obj)
            return groups.map(kind.quantile, shortcut=False, dim=dims, keep_attrs=keep_attrs, **options)
        return groups.reduce(grouped.REDUCTIONS[name], dim=dims, keep_attrs=keep_attrs, **options)

    return call


def _scan_without_flox(function: Function) -> Function:
    def call(groups: Foreign, dim: Foreign, *, func: str, keep_attrs: Foreign = None, **options: Foreign) -> Foreign:
        if not grouped.has_lazy(groups):
            return function(groups, dim, func=func, keep_attrs=keep_attrs, **options)
        if not isinstance(groups, groupby.DatasetGroupByBase):
            options.pop("numeric_only", None)
        return groups.reduce(grouped.REDUCTIONS[func], dim=dim, keep_attrs=keep_attrs, **options)

    return call


def _ends_without_flox(function: Function) -> Function:
    def call(groups: Foreign, *arguments: Foreign, **options: Foreign) -> Foreign:
        if not grouped.has_lazy(groups):
            return function(groups, *arguments, **options)
        options_of_xarray: Foreign = set_options
        with options_of_xarray(use_flox=False):
            return function(groups, *arguments, **options)

    return call


def _reduced_groups(function: Function) -> Function:
    def call(groups: Foreign, func: Function, dim: Foreign = None, **options: Foreign) -> Foreign:
        made = None
        if grouped.has_lazy(groups) and options.get("axis") is None and not groups._by_chunked:
            asked = {name: value for name, value in options.items() if name not in ("axis", "shortcut", "keepdims")}
            made = grouped.reduced(groups, func, dim, asked)
        if made is None:
            return function(groups, func, dim, **options)
        if isinstance(groups, resample.Resample):
            return made.rename({RESAMPLE_DIM: groups._group_dim})
        return made

    return call


__all__ = ["teach"]
