"""Functions that xarray decodes CF variables with, as element-wise expressions that are part of the read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
from xarray.coding import variables

from outcore import _api as oc
from outcore._base.element_types import DTypeLike
from outcore._base.types import DType
from outcore._lazy.array import Array
from outcore._xarray.foreign import Foreign, Function

# Private to xarray: a version that has none of them leaves its functions to `map_blocks`.
_MASK = getattr(variables, "_apply_mask", None)
_SCALE = getattr(variables, "_scale_offset_decoding", None)


def decoded(function: Function, array: Array, dtype: DTypeLike) -> Array:
    """The array with an element-wise function of xarray's applied: an expression where the function is known.

    Values have the bits that xarray's own decoding gives. Others run on NumPy tiles, in the same pass. `dtype` is the
    result's type. I/O: none of its own.
    """
    kind = np.dtype(dtype)
    if isinstance(function, partial) and not function.args:
        options: Mapping[str, Foreign] = function.keywords
        if function.func is _MASK:
            return _masked(array, kind, **options)
        if function.func is _SCALE:
            return _scaled(array, kind, **options)
        if function.func is np.asarray and set(options) == {"dtype"}:
            return oc.astype(array, options["dtype"])
    return oc.map_blocks(function, array, dtype=kind)


def _masked(
    array: Array, kind: DType, encoded_fill_values: Sequence[Foreign], decoded_fill_value: Foreign, dtype: DTypeLike
) -> Array:
    """Fill values as NaN, or as what else stands for a missing value."""
    values = oc.astype(array, np.dtype(dtype) if dtype is not None else kind)
    missing = None
    for fill in encoded_fill_values:
        is_fill = values == fill
        missing = is_fill if missing is None else missing | is_fill
    return values if missing is None else oc.where(missing, decoded_fill_value, values).astype(values.dtype)


def _scaled(array: Array, kind: DType, scale_factor: Foreign, add_offset: Foreign, dtype: DTypeLike) -> Array:
    """`array` · scale + offset, rounded to the type after each of the two, as NumPy does in place."""
    values = oc.astype(array, np.dtype(dtype) if dtype is not None else kind)
    if scale_factor is not None:
        values = (values * scale_factor).astype(values.dtype)
    if add_offset is not None:
        values = (values + add_offset).astype(values.dtype)
    return values


__all__ = ["decoded"]
