"""Factors on disk: made by a program, opened as tiles."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from outcore import _core
from outcore._base.types import PathLike
from outcore._lazy.array import Array
from outcore._run.running import plan_and_run
from outcore._session.session import current
from outcore.errors import ArgumentError


def stored(node: _core.Expr, path: PathLike | None, overwrite: bool, resume: bool) -> _core.Factor:
    """The factor that a node is, in a file at `path` or, without one, in scratch as long as it is read; gone on with
    where `resume` and an earlier run left it."""
    if resume and path is None:
        raise ArgumentError("factorize: resume=True goes on with a file, and none is named; path='K.ocf' names one")
    core = current()._core
    name = core.unused_path() + ".ocf" if path is None else str(path)
    if not name.endswith(".ocf"):
        raise ArgumentError(f"factorize: {name!r} does not end in .ocf, as a factor's file does")
    plan_and_run([node], [{"path": name, "overwrite": overwrite, "chunks": None, "resume": resume}])
    return _core.open_factor_tiles(core, name, path is None)


def is_begun_for(node: _core.Expr, path: PathLike) -> bool | None:
    """Whether what was begun or is there at `path` is the factor that a node is; None where there is nothing."""
    return _core.is_begun_for(node, str(path))


def stored_with(node: _core.Expr, solution: Array) -> tuple[_core.Factor, Array]:
    """The factor that a node is, and a solution that is made of it, both in scratch and by one program: the first sweep
    meets tiles of the factor while they are in memory."""
    core = current()._core
    name, path = core.unused_path() + ".ocf", core.unused_path()
    targets: list[_core.Target | None] = [{"path": each, "overwrite": False, "chunks": None} for each in (name, path)]
    plan_and_run([node, solution._expr], targets)
    return _core.open_factor_tiles(core, name, True), Array(core.hold(path))


def dense_cholesky(x: _core.Expr, low_rank: float | None = None) -> tuple[_core.Analysis, _core.Expr]:
    """The factor of a dense matrix as a result, and its analysis."""
    return _core.dense_cholesky(current()._core, x, low_rank)


def dense_ldl(
    x: _core.Expr, scales: npt.NDArray[np.float64], order: npt.NDArray[np.uint32], kind: str
) -> tuple[_core.Analysis, _core.Expr]:
    """The factor with pivoting of a dense symmetric matrix as a result, and its analysis."""
    return _core.dense_ldl(current()._core, x, scales, order, kind)


def selected_inverse(
    analysis: _core.Analysis,
    tiles: _core.Expr,
    dtype: str,
    rows: npt.NDArray[np.uint32],
    columns: npt.NDArray[np.uint32],
) -> tuple[_core.Expr, npt.NDArray[np.uint32]]:
    """Elements of an inverse in an order of their own, and the number of each place in it."""
    return analysis.selected_inverse(current()._core, tiles, dtype, rows, columns)


def opened_factor(
    path: PathLike,
) -> tuple[_core.Analysis, _core.Factor, Literal["definite", "hermitian", "symmetric", "unsymmetric"]]:
    """A factor by fronts in a file, its analysis and its kind."""
    return _core.open_factor_file(current()._core, str(path))


def opened_dense(path: PathLike) -> tuple[_core.DenseLu | _core.DenseQr, _core.Factor]:
    """A factor of a dense matrix in a file, and its cut."""
    return _core.open_dense_file(current()._core, str(path))
