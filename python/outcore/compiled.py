"""Functions of numbers compiled by numba, for arrays of any size: the optional extra `jit`."""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from outcore import _core
from outcore._array import Array
from outcore._jit_kernels import fold_kernel, numba_module, product_kernel
from outcore._node import Operand, dtype_of, expr_dtype, is_weak, node, weak
from outcore._reduction import sum_dtype
from outcore.blocks import map_blocks
from outcore.creation import zeros
from outcore.errors import DTypeError
from outcore.manipulation import concat, part_along, reshape

Tile: TypeAlias = "npt.NDArray[Any]"

# A run of elements that a compiled fold takes together.
_FOLD_ELEMENTS = 1 << 16
# Columns of the right matrix that a compiled product holds at a time: few enough for the processor's cache.
_HELD_BYTES = 1 << 18


class Jitted:
    """A compiled function of numbers, called on arrays. Made by `jit`, which says what it takes."""

    __name__: str
    __qualname__: str

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        numba = numba_module()
        functools.update_wrapper(self, function)
        self._function, self._options = function, options
        self.scalar = numba.njit(function, nogil=True, error_model="numpy", **options)
        self._ufunc = numba.vectorize([], nopython=True, **options)(function)
        self._folds: dict[int, Callable[[Tile], Tile]] = {}
        self._products: dict[str, Any] = {}

    def __call__(self, *operands: Operand) -> Any:
        """The function of each element: lazy where an operand is, else a NumPy array."""
        if not any(isinstance(operand, Array) for operand in operands):
            return self._compiled(*operands)
        nodes = _nodes(operands)
        kind = self.dtype_of(*(expr_dtype(operand) for operand in nodes))
        return map_blocks(self._ufunc, *(Array(operand) for operand in nodes), dtype=kind)

    def dtype_of(self, *dtypes: np.dtype[Any]) -> np.dtype[Any]:
        """The type that the function gives of these, for which it is compiled. Raises DTypeError where it cannot be."""
        return dtype_of(self._compiled(*(np.empty(0, dtype) for dtype in dtypes)).dtype)

    def _compiled(self, *arguments: Any) -> Any:
        try:
            return self._ufunc(*arguments)
        except (numba_module().core.errors.NumbaError, TypeError, ValueError) as error:
            kinds = ", ".join(str(np.asarray(part).dtype) for part in arguments)
            said = " ".join(str(error).split())
            raise DTypeError(f"jit: {self.__name__} does not compile for ({kinds}): {said}") from None

    def fold_blocks(self, x: Array, axis: int) -> Array:
        """An axis made shorter: each run of it is one element, what the function makes of the run."""
        length, beside = x.shape[axis], math.prod(x.shape[axis + 1 :])
        run = min(length, max(2, _FOLD_ELEMENTS // max(beside, 1)))
        blocks = length // run
        before, behind = x.shape[:axis], x.shape[axis + 1 :]
        body = reshape(part_along(x, axis, 0, blocks * run), (*before, blocks, run, *behind))
        folded = map_blocks(self._folding(axis + 1), body, dtype=x.dtype, whole=axis + 1)
        runs = reshape(part_along(folded, axis + 1, 0, 1), (*before, blocks, *behind))
        return runs if blocks * run == length else concat([runs, part_along(x, axis, blocks * run, None)], axis=axis)

    def _folding(self, axis: int) -> Callable[[Tile], Tile]:
        """The fold of tiles along an axis; one function object for each, so that equal nodes are one."""
        if axis not in self._folds:
            kernel = fold_kernel(self.scalar)

            def fold(tile: Tile) -> Tile:
                shape = math.prod(tile.shape[:axis]), tile.shape[axis], math.prod(tile.shape[axis + 1 :])
                found = np.empty_like(tile)  # a tile of the operand's shape, of which only the first place is used
                kernel(tile.reshape(shape), found.reshape(shape))
                return found

            self._folds[axis] = fold
        return self._folds[axis]

    def product(self, left: Array, right: Array, add: str) -> Array:
        """`inner` of (m, k) and (k, n): rows of `left` tile by tile, beside columns of `right` that are held."""
        pair = self.dtype_of(left.dtype, right.dtype)
        kind = np.dtype(np.bool_) if add in ("any", "all") else sum_dtype(pair) if add in ("sum", "prod") else pair
        held = right.compute()
        width = max(1, _HELD_BYTES // max(held.itemsize * held.shape[0], 1))
        parts = [held[:, first : first + width] for first in range(0, held.shape[1], width)]
        return concat([self._columns(left, part, add, kind) for part in parts], axis=1)

    def _columns(self, left: Array, held: Tile, add: str, kind: np.dtype[Any]) -> Array:
        (inner, columns), rows = held.shape, left.shape[0]
        right = np.ascontiguousarray(held)
        if add not in self._products:
            self._products[add] = product_kernel(self.scalar, add)
        kernel = self._products[add]

        def product(tile: Tile) -> Tile:
            found = np.empty(tile.shape, kind)  # as wide as the tile; columns beyond those of `right` are not used
            kernel(tile, right, found)
            return found

        product(np.ones((0, max(inner, columns)), left.dtype))  # compiled here, not while others wait for the tile
        if columns > inner:  # a tile has the shape of the result
            left = concat([left, zeros((rows, columns - inner), dtype=left.dtype)], axis=1)
        return part_along(map_blocks(product, left, dtype=kind, whole=1), 1, 0, columns)

    def __reduce__(self) -> str | tuple[Any, ...]:
        # A decorated function is found by its name, as plain functions are.
        found: Any = sys.modules.get(self.__module__)
        for name in self.__qualname__.split("."):
            found = getattr(found, name, None)
        return self.__qualname__ if found is self else (Jitted, (self._function, self._options))


def _nodes(operands: tuple[Operand, ...]) -> list[_core.Expr]:
    """The nodes of operands; Python scalars take their type from the arrays beside them."""
    strong = [node(operand) for operand in operands if not is_weak(operand)]
    beside = np.result_type(*(expr_dtype(operand) for operand in strong))
    found = iter(strong)
    return [weak(operand, beside) if is_weak(operand) else next(found) for operand in operands]  # type: ignore[arg-type]


def jit(function: Callable[..., Any] | None = None, /, *, fastmath: bool = False) -> Any:
    """A function of numbers, with branches and loops of its own, compiled for arrays: `@oc.jit` above it, or a call.

    What it gives is called on lazy arrays (which broadcast; the result is lazy, and runs within the pass that reads
    them), on NumPy arrays and numbers, and goes as `multiply` into `inner` and as a function into `aggregate`. It is
    compiled for every combination of element types it meets, once in a process, in about a second; types follow
    numba's rules, in which an integer beside float32 gives float64. Threads run it at the same time: it holds no lock
    of Python's. `fastmath` lets sums be taken in another order; their bits then depend on the processor.

    Needs numba, the extra `jit`: ImportError without it. Raises DTypeError for what does not compile (float16, strings,
    objects) when the function meets the types. The result can be pickled where the function can. I/O: one read of each
    operand, fused with what comes before and after.

    >>> import outcore as oc
    >>> def collatz(n):
    ...     steps = 0
    ...     while n > 1:
    ...         n = n // 2 if n % 2 == 0 else 3 * n + 1
    ...         steps += 1
    ...     return steps
    >>> oc.jit(collatz)(oc.asarray([1, 6, 27])).compute()  # doctest: +SKIP
    array([  0,   8, 111])
    """
    options = {"fastmath": True} if fastmath else {}
    if function is None:
        return functools.partial(jit, fastmath=fastmath)
    return Jitted(function, options)


__all__ = ["Jitted", "jit"]
