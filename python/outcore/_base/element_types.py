"""The element types that there are kernels for."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from outcore._base.types import DType
from outcore.errors import DTypeError

DTypeLike: TypeAlias = npt.DTypeLike | None  # None leaves the choice to the function

NAMES = (
    "bool",
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
)
# NumPy makes the name of a type anew each time it is asked for, which took a sixth of a small expression's making.
NAME_OF = {np.dtype(name): name for name in NAMES}


def dtype_of(dtype: DTypeLike) -> DType:
    """The NumPy dtype meant, in native byte order. Raises DTypeError for one outcore has no kernels for."""
    try:
        kind = np.dtype(dtype)
    except TypeError as error:
        raise DTypeError(f"{dtype!r} is not an element type: {error}") from None
    if kind in NAME_OF:
        return kind
    try:
        native = kind.newbyteorder("=")
    except TypeError:  # types that bring their own classes, as StringDType does, have no byte order
        native = kind
    if native not in NAME_OF:
        raise DTypeError(f"element type {kind} is not supported; outcore takes {', '.join(NAMES)}")
    return native


__all__ = ["NAMES", "NAME_OF", "DTypeLike", "dtype_of"]
