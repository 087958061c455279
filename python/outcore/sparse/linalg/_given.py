"""Matrices that direct solvers are given, as they take them."""

from __future__ import annotations

import os
from typing import Any, TypeAlias

import numpy as np

from outcore import _api as oc
from outcore._lazy.array import Array
from outcore.errors import ArgumentError, DTypeError, ShapeError
from outcore.sparse._convert import from_scipy
from outcore.sparse._matrix import SparseMatrix

FactorizableMatrix: TypeAlias = Any  # a sparse matrix of outcore, stored or lazy, or one of SciPy's


def stored_matrix(matrix: FactorizableMatrix, name: str) -> SparseMatrix:
    """The matrix on disk, one of SciPy's stored in scratch."""
    stored = matrix if isinstance(matrix, SparseMatrix) else None
    if stored is None and hasattr(matrix, "tocoo"):
        stored = from_scipy(matrix)
    if stored is None:
        raise ArgumentError(f"{name}: {type(matrix).__name__} is no sparse matrix; {_nearest(matrix)}")
    if stored.shape[0] != stored.shape[1]:
        raise ShapeError(f"{name}: a matrix of shape {stored.shape} is not square; lsmr solves least squares")
    if stored.dtype.kind not in "biufc":
        raise DTypeError(f"{name}: a matrix of {stored.dtype} has no factor")
    return stored


def real_where_it_is(matrix: SparseMatrix) -> SparseMatrix:
    """The real part of a complex matrix whose imaginary part is 0: half of the bytes, a quarter of the work.

    I/O: one read of a complex A, none of others.
    """
    if matrix.dtype.kind != "c":
        return matrix
    sizes = abs(matrix.map(oc.imag)) @ oc.ones((matrix.shape[1], 1))
    return matrix if bool(oc.any(sizes != 0).compute()) else matrix.map(oc.real)


def _nearest(matrix: FactorizableMatrix) -> str:
    if isinstance(matrix, (str, os.PathLike)):
        return "outcore.sparse.open(path) opens one, outcore.sparse.from_mtx converts Matrix Market's"
    if isinstance(matrix, (np.ndarray, Array)):
        return "outcore.linalg.solve solves dense systems, scipy.sparse.csr_array(A) makes it one"
    return "outcore.sparse.from_scipy stores one of SciPy's"
