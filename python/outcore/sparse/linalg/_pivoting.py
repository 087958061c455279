"""Factors of sparse matrices with pivoting: how rows and columns are scaled and ordered, and what their pivots say."""

from __future__ import annotations

import dataclasses
from typing import Literal

import numpy as np
import numpy.typing as npt

from outcore import _api as oc
from outcore._base.types import DType
from outcore._lazy.array import Array
from outcore.linalg._factor import factor_dtype, is_symmetric
from outcore.sparse._matrix import SparseMatrix

Kind = Literal["auto", "spd", "sym", "her", "lu"]
FactorKind = Literal["definite", "hermitian", "symmetric", "unsymmetric"]
SystemLetter = Literal["N", "T", "H"]

KINDS: dict[Kind, FactorKind] = {"spd": "definite", "her": "hermitian", "sym": "symmetric", "lu": "unsymmetric"}


@dataclasses.dataclass(frozen=True)
class Inertia:
    """The signs of the eigenvalues of a Hermitian matrix: how many are positive, negative and, as far as pivots tell,
    zero."""

    positive: int
    negative: int
    zero: int


@dataclasses.dataclass(frozen=True)
class PivotFacts:
    """Facts of the pivots of a factor of the scaled matrix."""

    logarithm: float
    sign: complex
    positive: int
    negative: int
    perturbed: int
    delayed: int
    zero: int
    # The least size of pivots that were not replaced; the first that was, in the order of elimination and from 1.
    smallest: float
    first_weak: int

    @classmethod
    def of(cls, facts: npt.NDArray[np.float64]) -> PivotFacts:
        logarithm, real, imaginary, positive, negative, perturbed, delayed, zero, smallest, first = facts.tolist()
        return cls(
            logarithm,
            complex(real, imaginary),
            int(positive),
            int(negative),
            int(perturbed),
            int(delayed),
            int(zero),
            smallest,
            int(first),
        )


@dataclasses.dataclass(frozen=True)
class PivotScales:
    """The scales of rows and columns, and the columns, in the order of elimination."""

    rows: npt.NDArray[np.float64]
    columns: npt.NDArray[np.float64]
    order: npt.NDArray[np.int64]

    def logarithm(self) -> float:
        """The logarithm of the product of all scales."""
        return float(np.log(self.rows).sum() + np.log(self.columns).sum())

    def sign(self, order: npt.NDArray[np.int64]) -> float:
        """The sign of the permutation that takes rows in an order to the columns."""
        columns = np.empty_like(order)
        columns[order] = self.order
        seen, sign = np.zeros(len(columns), bool), 1.0
        for start in np.flatnonzero(columns != np.arange(len(columns))).tolist():
            length = 0
            while not seen[start]:
                seen[start] = True
                start, length = int(columns[start]), length + 1
            if length and length % 2 == 0:
                sign = -sign
        return sign


def scaled_rows(b: Array, order: npt.NDArray[np.int64], scales: npt.NDArray[np.float64], dtype: DType) -> Array:
    """Rows of right-hand sides in an order, each multiplied by its scale."""
    return (oc.take(b, order, axis=0) * oc.asarray(scales)[:, None]).astype(dtype)


def kind_of(matrix: SparseMatrix) -> FactorKind:
    """The kind of factor that a matrix has by its values. I/O: four reads of A, of complex matrices up to seven."""
    dtype = factor_dtype(matrix.dtype)
    if is_symmetric(matrix, dtype, is_conjugate=True):
        return "definite" if bool(oc.all(diagonal_of(matrix) > 0).compute()) else "hermitian"
    if dtype.kind == "c" and is_symmetric(matrix, dtype, is_conjugate=False):
        return "symmetric"
    return "unsymmetric"


def diagonal_of(matrix: SparseMatrix) -> Array:
    """The real parts of the diagonal, lazily. I/O: one read of A."""
    dtype = factor_dtype(matrix.dtype)
    return oc.real(matrix.astype(dtype).tril().triu() @ oc.ones((matrix.shape[1],), dtype=dtype))


def of_dtype(kind: FactorKind, dtype: DType) -> FactorKind:
    """The kind of a matrix of a type: real symmetric ones are Hermitian."""
    return "hermitian" if kind == "symmetric" and dtype.kind != "c" else kind


def pairing_of(kind: FactorKind) -> str:
    """How pivots are paired beforehand."""
    return {"definite": "nothing", "unsymmetric": "unsymmetric"}.get(kind, "symmetric")


__all__ = ["Inertia"]
