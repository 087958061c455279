"""Pivots of factors with pivoting, and their meaning for the matrix."""

from __future__ import annotations

import dataclasses
from typing import Literal

import numpy as np
import numpy.typing as npt

from outcore import _core
from outcore._base.types import DType
from outcore._lazy.array import Array
from outcore.errors import LinAlgError

FactorKind = Literal["definite", "hermitian", "symmetric", "unsymmetric"]

# Beside pivots of 0 to rounding, about 1e-15 of the scaled matrix, others that are smaller have no sign that is known.
_GAP = 1e-11


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


def pivot_facts(analysis: _core.Analysis, tiles: _core.Expr, dtype: DType, kind: FactorKind) -> PivotFacts:
    """Facts of the pivots of a factor. I/O: one read of tiles with pivots."""
    facts = Array(analysis.pivot_facts(tiles, dtype.name, kind))
    return PivotFacts.of(np.asarray(facts.compute()))


def check_determined(name: str, facts: PivotFacts, row: int) -> None:
    """Raises LinAlgError where pivots are not all the matrix's own; `row` is that of the first that was replaced."""
    if facts.perturbed:
        raise LinAlgError(
            f"{name}: not determined, for {facts.perturbed} pivots, first that of row {row}, were replaced: the matrix "
            "is singular or nearly so, or another ordering would need fewer slots"
        )


def slogdet_of(facts: PivotFacts, scales: PivotScales, dtype: DType, sign: float = 1.0) -> tuple[complex, float]:
    """Sign and logarithm of the size of the determinant, by pivots, scales and the sign of the exchanges."""
    real = dtype.kind != "c"
    if facts.zero:
        return (0.0 if real else 0j), -np.inf
    both = facts.sign * sign
    return (both.real if real else both), facts.logarithm - scales.logarithm()


def inertia_of(facts: PivotFacts) -> Inertia:
    """Signs of pivots. Raises LinAlgError where they fall off to 0 without a gap."""
    if facts.zero and facts.smallest < _GAP:
        raise LinAlgError(
            f"inertia: not determined, for pivots are as small as {facts.smallest:.2g} of the scaled matrix, and "
            f"{facts.zero} are 0 to rounding"
        )
    return Inertia(facts.positive, facts.negative, facts.zero)


__all__ = ["Inertia"]
