"""Factors of sparse matrices with pivoting: their kinds, and how right-hand sides are scaled."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from outcore import _api as oc
from outcore._base.types import DType
from outcore._lazy.array import Array
from outcore.linalg._factor import factor_dtype, is_symmetric, mean_sizes, row_scales
from outcore.linalg._pivots import FactorKind
from outcore.sparse._matrix import SparseMatrix

Kind = Literal["auto", "spd", "sym", "her", "lu"]
SystemLetter = Literal["N", "T", "H"]

KINDS: dict[Kind, FactorKind] = {"spd": "definite", "her": "hermitian", "sym": "symmetric", "lu": "unsymmetric"}


def scaled_rows(b: Array, order: npt.NDArray[np.int64], scales: npt.NDArray[np.float64], dtype: DType) -> Array:
    """Rows of right-hand sides in an order, each multiplied by its scale."""
    return (oc.take(b, order, axis=0) * oc.asarray(scales)[:, None]).astype(dtype)


def kind_of(matrix: SparseMatrix) -> FactorKind:
    """The kind of factor that a matrix has by its values. I/O: three reads of A, of complex matrices up to four."""
    scales = row_scales(mean_sizes(matrix), matrix.shape[1])
    if is_symmetric(matrix, "hermitian", scales):
        return "definite" if bool(oc.all(oc.real(diagonal_of(matrix)) > 0).compute()) else "hermitian"
    if factor_dtype(matrix.dtype).kind == "c" and is_symmetric(matrix, "symmetric", scales):
        return "symmetric"
    return "unsymmetric"


def diagonal_of(matrix: SparseMatrix) -> Array:
    """The diagonal, in the type of a factor, lazily. I/O: one read of A."""
    dtype = factor_dtype(matrix.dtype)
    return matrix.astype(dtype).tril().triu() @ oc.ones((matrix.shape[1],), dtype=dtype)


def of_dtype(kind: FactorKind, dtype: DType) -> FactorKind:
    """The kind of a matrix of a type: real symmetric ones are Hermitian."""
    return "hermitian" if kind == "symmetric" and dtype.kind != "c" else kind


def pairing_of(kind: FactorKind) -> str:
    """How pivots are paired beforehand."""
    return {"definite": "nothing", "unsymmetric": "unsymmetric"}.get(kind, "symmetric")


__all__: list[str] = []
