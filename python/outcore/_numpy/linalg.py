"""`numpy.linalg` and `numpy.fft` under their own names and arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from outcore import _api as oc
from outcore._lazy.array import Array
from outcore._lazy.node import Operand
from outcore._numpy.arguments import adapted
from outcore.errors import ArgumentError, ShapeError

_LINALG = (
    *("cholesky", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "matmul"),
    *("matrix_norm", "matrix_power", "matrix_transpose", "outer", "qr", "slogdet", "solve", "svdvals", "tensordot"),
    *("trace", "vecdot", "vector_norm"),
)
_FFT = (
    *("fft", "fftn", "hfft", "ifft", "ifftn", "ihfft", "irfft", "irfftn", "rfft", "rfftn"),
    *("fftshift", "ifftshift"),
)


def _lstsq(a: Operand, b: Operand, rcond: float | None = None) -> object:
    return oc.linalg.lstsq(a, b, rcond=rcond)


def _svd(a: Operand, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> object:
    del hermitian  # a promise that would save time
    return oc.linalg.svd(a, full_matrices=full_matrices, compute_uv=compute_uv)


def _pinv(a: Operand, rcond: Operand | None = None, hermitian: bool = False, *, rtol: Operand | None = None) -> Array:
    del hermitian
    return oc.linalg.pinv(a, rtol=rcond if rtol is None else rtol)


def _matrix_rank(
    A: Operand,  # noqa: N803
    tol: Operand | None = None,
    hermitian: bool = False,
    *,
    rtol: Operand | None = None,
) -> Array:
    del hermitian
    if tol is not None:
        raise ArgumentError("numpy.linalg.matrix_rank: of outcore arrays it takes rtol=, relative to the largest value")
    array = oc.asarray(A)
    return oc.any(array != 0).astype(np.int64) if array.ndim < 2 else oc.linalg.matrix_rank(array, rtol=rtol)


def _multi_dot(arrays: Sequence[Operand]) -> Array:
    """One chain of products, whose order the planner chooses by cost."""
    first, *others = [oc.asarray(array) for array in arrays]
    if not others:
        raise ShapeError("numpy.linalg.multi_dot: takes at least two arrays")
    for array in others:
        first = first @ array
    return first


def _of_two(name: str) -> Callable[..., object]:
    """`fft2` and its kin: over the last two axes."""

    def call(a: Operand, s: object = None, axes: object = (-2, -1), norm: object = None) -> object:
        return getattr(oc.fft, name)(a, s=s, axes=axes, norm=norm)

    return call


FUNCTIONS: dict[Callable[..., object], Callable[..., object]] = {
    **{getattr(np.linalg, name): adapted(name, getattr(oc.linalg, name), getattr(np.linalg, name)) for name in _LINALG},
    **{getattr(np.fft, name): adapted(name, getattr(oc.fft, name), getattr(np.fft, name)) for name in _FFT},
    **{getattr(np.fft, f"{name}2"): _of_two(f"{name}n") for name in ("fft", "ifft", "rfft", "irfft")},
    np.linalg.lstsq: _lstsq,
    np.linalg.svd: _svd,
    np.linalg.pinv: _pinv,
    np.linalg.matrix_rank: _matrix_rank,
    np.linalg.multi_dot: _multi_dot,
}

__all__ = ["FUNCTIONS"]
