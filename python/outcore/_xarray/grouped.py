"""Reductions of xarray's groups by outcore's: one read for all groups, with flox installed or without.

xarray reduces each group by itself and flox knows Dask, cubed and NumPy; both would gather the rows of each group.
"""

from __future__ import annotations

import math
from collections.abc import Hashable

import numpy as np
import pandas as pd
import xarray
from xarray.core import duck_array_ops
from xarray.core.options import _get_keep_attrs

from outcore import _api as oc
from outcore import _core
from outcore._lazy.array import Array
from outcore._lazy.hooks import above
from outcore._session.session import current
from outcore._xarray.foreign import Foreign, Function

# xarray's functions of arrays that groups are reduced by, by flox's names.
REDUCTIONS: dict[str, Function] = {
    **{name: getattr(duck_array_ops, name) for name in ("sum", "prod", "mean", "var", "std", "min", "max", "count")},
    **{name: getattr(duck_array_ops, name) for name in ("median", "first", "last", "cumsum", "cumprod")},
    "all": duck_array_ops.array_all,
    "any": duck_array_ops.array_any,
}
_NAMES = {function: name for name, function in REDUCTIONS.items()}
_GROUPED = ("sum", "prod", "mean", "var", "std", "min", "max", "count", "all", "any", "first", "last")
# Bytes of a table that `outcore.groupby` fills instead of sorting, and the parts that a larger one is filled in.
_TABLE_BYTES, _WIDE_BYTES, _WIDE_ROW, _PARTS_MAX = 4 << 20, 31 << 20, 32 << 10, 16
_SHARE, _LARGE_SHARE = 16, 4  # of the budget, for a table, and for all of them or that of one band
_NUMERIC_ONLY = ("sum", "prod", "mean", "var", "std")
_OPTIONS = {"skipna", "min_count", "ddof", "keep_attrs", "numeric_only"}


def has_lazy(groups: Foreign) -> bool:
    """Whether what is grouped has an array of outcore."""
    grouped = groups._obj
    variables = grouped.variables.values() if isinstance(grouped, xarray.Dataset) else [grouped.variable]
    return any(isinstance(variable._data, Array) for variable in variables)


def reduced(groups: Foreign, function: Function, dim: Foreign, options: dict[str, Foreign]) -> Foreign:
    """Groups along one axis, reduced along that axis alone; None where xarray has to do it group by group.

    A function that has no grouped form here, groups over several axes and variables that lack the axis are such.
    I/O: that of `outcore.groupby`, one read, and two for variances.
    """
    name, codes = _NAMES.get(function), groups.encoded.codes
    if name not in _GROUPED or len(groups.groupers) != 1 or codes.ndim != 1 or set(options) - _OPTIONS:
        return None
    (grouper,), (axis,) = groups.groupers, codes.dims
    index = grouper.full_index
    if (
        isinstance(codes._variable._data, Array)
        or isinstance(index, pd.MultiIndex)
        or set(groups._parse_dim(dim)) != {axis}
    ):
        return None
    source = groups._original_obj
    grouping = _Grouping(name, axis, grouper.name, np.asarray(codes.data).astype(np.int64), len(index), options)
    variables = source.data_vars.items() if isinstance(source, xarray.Dataset) else [(source.name, source)]
    results = {}
    for key, array in variables:
        if name in _NUMERIC_ONLY and isinstance(source, xarray.Dataset) and array.dtype.kind not in "biufc":
            continue
        result = grouping.reduced(array.variable)
        if result is None:
            return None
        # xarray has groups as the first axis of datasets, and where the rows were in arrays.
        results[key] = result.transpose(grouper.name, ...) if isinstance(source, xarray.Dataset) else result
    coordinates: dict[Hashable, Foreign] = {
        key: part for key, part in source.coords.items() if axis not in part.dims and key != grouper.name
    }
    if not isinstance(index, pd.RangeIndex):
        coordinates[grouper.name] = xarray.Variable(grouper.name, index, grouper.codes.attrs)
    if isinstance(source, xarray.Dataset):
        return xarray.Dataset(results, coordinates, source.attrs if grouping.keeps else None)
    return xarray.DataArray(results[source.name], coordinates, name=source.name)


class _Grouping:
    """One reduction of groups: its name, the axis of the rows and that of the groups, the number of each row's."""

    def __init__(
        self, name: str, axis: Hashable, label: Hashable, codes: Foreign, count: int, options: dict[str, Foreign]
    ) -> None:
        self.name, self.axis, self.label, self.codes, self.count = name, axis, label, codes, count
        self.rows = np.bincount(codes[codes >= 0], minlength=count)
        self.skipna, self.min_count = options.get("skipna"), options.get("min_count")
        self.ddof = options.get("ddof") or 0
        keeps = options.get("keep_attrs")
        self.keeps = _get_keep_attrs(default=True) if keeps is None else keeps

    def reduced(self, variable: xarray.Variable) -> xarray.Variable | None:
        """The variable with a row for each group; None where it has no rows, or a type that groups do not take."""
        kind = variable.dtype.kind
        is_wide = kind == "u" and variable.dtype.itemsize == 8
        if self.axis not in variable.dims or kind not in "biuf" or is_wide:
            return None
        empty = not self.rows.all()
        if empty and self.name in ("all", "any"):
            return None
        place = variable.dims.index(self.axis)
        values = oc.asarray(variable._data) if isinstance(variable._data, Array) else oc.asarray(variable.values)
        result = self._values(values, place, kind == "f" and self.skipna is not False)
        if empty:
            present = self.rows.reshape(-1, *(1,) * (result.ndim - place - 1)) > 0
            result = oc.where(present, result if result.dtype.kind == "f" else result.astype(np.float64), np.nan)
        dims = tuple(self.label if dim == self.axis else dim for dim in variable.dims)
        return xarray.Variable(dims, result, variable.attrs if self.keeps else None)

    def _values(self, values: Array, place: int, skips: bool) -> Array:
        if self.name in ("first", "last"):
            return self._ends(values, place, skips)
        if self.name in ("any", "all"):
            hits = self._folded("sum", (values != 0) if self.name == "any" else (values == 0), place)
            return hits > 0 if self.name == "any" else hits == 0
        if self.name == "count":
            return self._folded("sum", ~oc.isnan(values), place)
        if self.name in ("var", "std"):
            return self._folded(self.name, values, place, ddof=self.ddof, skipna=skips)
        result = self._folded(self.name, values, place, skipna=skips)
        if self.min_count and self.name in ("sum", "prod") and values.dtype.kind == "f":
            return oc.where(self._folded("sum", ~oc.isnan(values), place) >= self.min_count, result, np.nan)
        return result

    def _ends(self, values: Array, place: int, skips: bool) -> Array:
        """The first or last row of each group, or number where NaN is passed over."""
        if not skips:
            rows = np.zeros(self.count, np.int64)
            order = np.arange(len(self.codes))[:: 1 if self.name == "last" else -1]
            rows[self.codes[order]] = order  # the one that is put last stays
            return values[(slice(None),) * place + (rows,)]
        return self._folded(self.name, values, place, skipna=True)

    def _folded(self, fold: str, values: Array, place: int, **options: Foreign) -> Array:
        """One result of all groups, or of as many at a time as a table takes: all tables are filled by one read.

        Groups of wide rows go by one table where that of a band of columns fits. Rows in the order of their groups are
        else read part by part, and where all tables together would not fit, the results of each part are held in
        scratch at once.
        """
        groups = oc.groupby(self.codes, groups=self.count, axis=place)
        row, budget = math.prod(values.shape) // max(values.shape[place], 1) * 8, current().counters()["budget_bytes"]
        room = min(_WIDE_BYTES if row >= _WIDE_ROW else _TABLE_BYTES, budget // _SHARE)
        step = max(room // max(row, 1), 1)
        ascends = bool((np.diff(self.codes) >= 0).all()) and bool((self.codes >= 0).all())
        if step < self.count and row >= _WIDE_ROW:
            band = _core.least_table_bytes(oc.moveaxis(values, place, 0)._expr, self.count)
            step = self.count if band <= min(_WIDE_BYTES, budget // _LARGE_SHARE) else step
        if step >= self.count or (not ascends and -(-self.count // step) > _PARTS_MAX):
            return getattr(groups, fold)(values, **options)  # type: ignore[no-any-return]
        is_large = self.count * row > budget // _LARGE_SHARE
        parts = []
        for low in range(0, self.count, step):
            high = min(low + step, self.count)
            codes, part = self.codes, values
            if ascends:
                begin, end = np.searchsorted(codes, [low, high])
                codes, part = codes[begin:end], values[(slice(None),) * place + (slice(int(begin), int(end)),)]
            codes = np.where((codes >= low) & (codes < high), codes - low, -1)
            result = getattr(oc.groupby(codes, groups=high - low, axis=place), fold)(part, **options)
            parts.append(Array(above.hold(result._expr)[0]) if ascends and is_large else result)
        return oc.concat(parts, axis=place)


__all__ = ["REDUCTIONS", "has_lazy", "reduced"]
