"""Loops over tiles that numba compiles around a scalar function: folds, and products of rows and columns."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeAlias

from outcore._base.threads import thread_pool
from outcore._base.types import NDArray

NumbaObject: TypeAlias = Any  # numba has no types of its own
Kernel = Callable[..., NumbaObject]  # a compiled function: of tiles, or of numbers


def numba_module() -> NumbaObject:
    """numba, which nothing else in the package needs. Raises ImportError that names the extra where it is missing.

    An import that an interrupt ends halfway leaves a module without some of its parts for as long as the process lives.
    Interrupts are heard by the main thread, so a thread of its own imports numba, to the end.
    """
    importer = thread_pool(1, "outcore-import")
    try:
        return importer.submit(import_module, "numba").result()
    except ImportError as error:
        raise ImportError("outcore.jit needs numba, which is not installed: pip install outcore[jit]") from error
    finally:
        importer.shutdown(wait=False)


def _compile(function: Callable[..., object]) -> Kernel:
    compiled: Kernel = numba_module().njit(function, nogil=True, error_model="numpy")
    return compiled


def fold_kernel(function: Callable[..., float]) -> Kernel:
    """(p, n, q) folded along n into the first place of that axis of a result of the same shape."""

    def kernel(x: NDArray, result: NDArray) -> None:
        for p in range(x.shape[0]):
            for q in range(x.shape[2]):
                result[p, 0, q] = x[p, 0, q]
            for i in range(1, x.shape[1]):
                for q in range(x.shape[2]):
                    result[p, 0, q] = function(result[p, 0, q], x[p, i, q])

    return _compile(kernel)


def _sum(a: float, b: float) -> float:
    return a + b


def _product(a: float, b: float) -> float:
    return a * b


def _least(a: float, b: float) -> float:
    return a if a < b or a != a else b  # NaN wins


def _greatest(a: float, b: float) -> float:
    return a if a > b or a != a else b


def _either(a: float, b: float) -> float:
    return a or b != 0


def _both(a: float, b: float) -> float:
    return a and b != 0


_ADDERS = {"sum": _sum, "prod": _product, "min": _least, "max": _greatest, "any": _either, "all": _both}


def _same(a: float) -> float:
    return a


def _truth(a: float) -> float:
    return a != 0


def product_kernel(multiply: Callable[..., float], add: str) -> Kernel:
    """Rows of a (wide enough for the result) by columns of b, (k, n): each pair by `multiply`, k of them by `add`.

    Columns are the innermost loop, which vector instructions take several of at once; four pairs are added before a
    sum goes back to memory, in their order.
    """
    adder, first = _compile(_ADDERS[add]), _compile(_truth if add in ("any", "all") else _same)

    def kernel(a: NDArray, b: NDArray, result: NDArray) -> None:
        inner, columns = b.shape
        fours = 1 + (inner - 1) // 4 * 4
        for i in range(a.shape[0]):
            for j in range(columns):
                result[i, j] = first(multiply(a[i, 0], b[0, j]))
            for p in range(1, fours, 4):
                a0, a1, a2, a3 = a[i, p], a[i, p + 1], a[i, p + 2], a[i, p + 3]
                for j in range(columns):
                    so_far = adder(result[i, j], multiply(a0, b[p, j]))
                    so_far = adder(so_far, multiply(a1, b[p + 1, j]))
                    so_far = adder(so_far, multiply(a2, b[p + 2, j]))
                    result[i, j] = adder(so_far, multiply(a3, b[p + 3, j]))
            for p in range(fours, inner):
                value = a[i, p]
                for j in range(columns):
                    result[i, j] = adder(result[i, j], multiply(value, b[p, j]))

    return _compile(kernel)


__all__ = ["NumbaObject", "fold_kernel", "numba_module", "product_kernel"]
