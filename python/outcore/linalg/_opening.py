"""Factors of dense matrices that are on disk already."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from outcore import _core
from outcore._base.types import PathLike
from outcore._lazy.array import Array
from outcore._lazy.node import Operand
from outcore._run.factors import opened_dense, opened_factor
from outcore.errors import DTypeError, FormatError, ShapeError
from outcore.linalg._cholesky import CholeskyFactor, dense_scales
from outcore.linalg._factor import factored_matrix
from outcore.linalg._ldl import LDLFactor
from outcore.linalg._lu import LUFactor
from outcore.linalg._mixed import Approximation, single_of
from outcore.linalg._qr import QRFactor

DenseFactor: TypeAlias = CholeskyFactor | LDLFactor | LUFactor | QRFactor


def open_factor(path: PathLike, A: Operand) -> DenseFactor:  # noqa: N803 - the matrix's name
    """The factors that `cho_factor`, `ldl_factor`, `lu_factor` or `qr_factor(A, path=path)` made, in this or another
    process, with the matrix that they are of.

    I/O: the file's directory. Raises FormatError for a file that is no such factor, or damaged, ShapeError and
    DTypeError for another matrix.

    >>> import numpy as np, outcore as oc, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.ocf"
    >>> _ = oc.linalg.lu_factor(np.eye(2) * 4.0, path=path)
    >>> oc.linalg.open_factor(path, np.eye(2) * 4.0).solve([4.0, 8.0])
    array([1., 2.])
    """
    matrix = factored_matrix("open_factor", A, is_square=False)
    try:
        cut, factor = opened_dense(path)
    except FormatError:
        by_fronts = _opened_by_fronts(path, matrix)
        if by_fronts is None:
            raise
        return by_fronts
    rows, columns = (cut.rows, cut.rows) if isinstance(cut, _core.DenseLu) else cut.shape
    _check(path, (rows, columns), factor, matrix)
    opened = LUFactor(matrix, cut, None) if isinstance(cut, _core.DenseLu) else QRFactor(matrix, cut, None)
    opened._factor, opened._is_opened = factor, True
    return opened


def _check(
    path: PathLike, shape: tuple[int, int], factor: _core.Factor, matrix: Array, is_single: bool = False
) -> None:
    if tuple(shape) != matrix.shape:
        raise ShapeError(f"open_factor: {path} is of {tuple(shape)}, the matrix of {matrix.shape}")
    if not is_single and factor.dtype != matrix.dtype.name:
        raise DTypeError(f"open_factor: {path} has {factor.dtype}, a factor of this matrix {matrix.dtype}")


def _opened_by_fronts(path: PathLike, matrix: Array) -> CholeskyFactor | LDLFactor | None:
    """The factor of a symmetric dense matrix in a file; nothing where that is of another."""
    try:
        analysis, factor, kind = opened_factor(path)
    except FormatError:
        return None
    order, _ = analysis.orders()
    if kind == "unsymmetric" or analysis.counts[0] != 1 or not np.array_equal(order, np.arange(len(order))):
        return None
    is_single = kind == "definite" and factor.dtype == single_of(matrix.dtype).name
    _check(path, (analysis.rows, analysis.rows), factor, matrix, is_single)
    opened: CholeskyFactor | LDLFactor
    if kind == "definite":
        is_approximate = is_single or analysis.low_rank is not None
        of = Approximation(dense_scales(matrix), np.dtype(factor.dtype)) if is_approximate else None
        opened = CholeskyFactor(matrix, analysis, None, of)
    else:
        opened = LDLFactor(matrix, analysis, kind, None)
    opened._factor, opened._is_opened = factor, True
    return opened


__all__ = ["open_factor"]
