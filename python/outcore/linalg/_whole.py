"""Whole matrices in memory: their types, and the core's factorizations of them."""

from __future__ import annotations

import numpy as np

from outcore import _core
from outcore._base.types import DType
from outcore._lazy.array import Array
from outcore._lazy.node import Operand, node
from outcore._lazy.reduction import mean_dtype
from outcore._standard.linear_algebra import matrix_transpose
from outcore.elementwise import conj
from outcore.errors import DTypeError, ShapeError

# A single matrix of more rows has its LU factor in slabs. By the rows alone, so the bits are the same at every limit.
WHOLE_ROWS = 2048


def widened(name: str, x: Operand) -> tuple[Array, DType, DType]:
    """The array in double precision, and the types of its own and of real results."""
    array = Array(node(x))
    if array.dtype == np.float16:
        raise DTypeError(f"{name}: float16 has too few digits to factorize; cast to float32")
    kind = mean_dtype(array.dtype)
    if array.ndim < 2:
        raise ShapeError(f"{name}: an array of shape {array.shape} has no rows and columns")
    wide = np.dtype(np.complex128 if kind.kind == "c" else np.float64)
    return array.astype(wide), kind, np.dtype(f"f{kind.itemsize // (2 if kind.kind == 'c' else 1)}")


def check_square(name: str, array: Array) -> None:
    if array.shape[-1] != array.shape[-2]:
        raise ShapeError(f"{name}: {array.shape} is not square along its last two axes")


def factors_of(name: str, array: Array, right: Array | None = None) -> list[Array]:
    factors = _core.factorize(name, array._expr, None if right is None else right._expr)
    return [Array(factor) for factor in factors]


def goes_by_tiles(array: Array) -> bool:
    return array.ndim == 2 and min(array.shape) > WHOLE_ROWS


def is_empty(array: Array) -> bool:
    return 0 in array.shape[-2:]


def adjoint(x: Array) -> Array:
    """The conjugate transpose of the last two axes."""
    transposed = matrix_transpose(x)
    return conj(transposed) if x.dtype.kind == "c" else transposed
