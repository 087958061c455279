"""Functions of numbers compiled by numba, for arrays of any size: the optional extra `jit`."""

from __future__ import annotations

import functools
import inspect
import math
import sys
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from outcore._base.element_types import dtype_of
from outcore._base.types import DType, Keywords, NDArray
from outcore._functions.blocks import map_blocks
from outcore._functions.jit_kernels import Kernel, fold_kernel, numba_module, product_kernel
from outcore._lazy.array import Array
from outcore._lazy.node import Operand, default_dtype, expr_dtype, is_weak, node
from outcore._lazy.reduction import sum_dtype
from outcore._numpy_like.arranging import pad
from outcore._standard.creation import asarray
from outcore._standard.manipulation import concat, part_along, reshape
from outcore.errors import ArgumentError, DTypeError

Tile: TypeAlias = "NDArray"

# A run of elements that a compiled fold takes together.
_FOLD_ELEMENTS = 1 << 16
_LANES = 16
_LANE_LENGTH = 4  # fewer elements are not worth a lane
# Columns of the right matrix that a compiled product holds at a time: few enough for the processor's cache.
_HELD_BYTES = 1 << 18


# Functions of numbers, by the functions of arrays that were made of them.
_SCALARS: dict[Callable[..., Tile], Kernel] = {}


def scalar_of(call: Callable[..., Tile]) -> Kernel | None:
    """The compiled function of numbers behind a function of arrays, where `jit` made it."""
    return _SCALARS.get(call)


class _Compiled(NamedTuple):
    """The function for one combination of element types, and the type that it gives."""

    call: Callable[..., Tile]
    dtype: DType


class Jitted:
    """A compiled function of numbers, called on arrays. Made by `jit`, which says what it takes."""

    __name__: str
    __qualname__: str

    def __init__(self, function: Callable[..., object], options: Keywords) -> None:
        numba = numba_module()
        functools.update_wrapper(self, function)
        self._function, self._options = function, options
        self._taken = len(inspect.signature(function).parameters)
        self.scalar = numba.njit(function, nogil=True, error_model="numpy", **options)
        self._ufuncs: dict[tuple[DType, ...], _Compiled] = {}
        self._fold: Kernel | None = None
        self._folds: dict[int, Callable[[Tile], Tile]] = {}
        self._products: dict[str, Kernel] = {}

    def __call__(self, *operands: Operand) -> Any:
        """The function of each element: lazy where an operand is, else a NumPy array or number."""
        if len(operands) != self._taken:
            raise ArgumentError(f"jit: {self.__name__} takes {self._taken} operands, not {len(operands)}")
        kinds = _dtypes(operands)
        compiled = self._compiled(kinds)
        if not any(isinstance(operand, Array) for operand in operands):
            return compiled.call(*(np.asarray(part, kind) for part, kind in zip(operands, kinds, strict=True)))
        arrays = (asarray(part, dtype=kind) for part, kind in zip(operands, kinds, strict=True))
        return map_blocks(compiled.call, *arrays, dtype=compiled.dtype)

    def dtype_of(self, *dtypes: DType) -> DType:
        """The type that the function gives of these, for which it is compiled. Raises DTypeError where it cannot be."""
        return self._compiled(dtypes).dtype

    def _compiled(self, dtypes: tuple[DType, ...]) -> _Compiled:
        if dtypes not in self._ufuncs:
            self._ufuncs[dtypes] = self._compile(dtypes)
        return self._ufuncs[dtypes]

    def _compile(self, dtypes: tuple[DType, ...]) -> _Compiled:
        numba = numba_module()
        kinds = ", ".join(map(str, dtypes))
        if np.dtype(np.float16) in dtypes:
            raise DTypeError(f"jit: {self.__name__} does not compile for ({kinds}): numba has no float16")
        # One for each combination: a ufunc of several would cast to types it happens to have met before.
        call = numba.vectorize([], nopython=True, **self._options)(self._function)
        _SCALARS[call] = self.scalar
        try:
            return _Compiled(call, dtype_of(call(*(np.empty(0, dtype) for dtype in dtypes)).dtype))
        except (numba.core.errors.NumbaError, TypeError, ValueError) as error:
            said = " ".join(str(error).split())
            raise DTypeError(f"jit: {self.__name__} does not compile for ({kinds}): {said}") from None

    def fold_blocks(self, x: Array, axis: int) -> Array:
        """An axis made shorter: blocks of it become as many elements as there are lanes in them.

        Lanes are folded side by side, so that no step waits for the result of the one before it.
        """
        length, beside = x.shape[axis], math.prod(x.shape[axis + 1 :])
        lanes = max(1, min(_LANES // beside, length // _LANE_LENGTH))
        run = min(length // lanes, max(2, _FOLD_ELEMENTS // (lanes * beside)))
        blocks = length // (run * lanes)
        end = blocks * run * lanes
        before, behind = x.shape[:axis], x.shape[axis + 1 :]
        body = reshape(part_along(x, axis, 0, end), (*before, blocks, run, lanes, *behind))
        folded = map_blocks(self._folding(axis + 1, x.dtype), body, dtype=x.dtype, whole=axis + 1)
        folds = reshape(part_along(folded, axis + 1, 0, 1), (*before, blocks * lanes, *behind))
        return folds if end == length else concat([folds, part_along(x, axis, end, None)], axis=axis)

    def _folding(self, axis: int, dtype: DType) -> Callable[[Tile], Tile]:
        """The fold of tiles along an axis; one function object for each, so that equal nodes are one."""
        if self._fold is None:
            self._fold = fold_kernel(self.scalar)
        kernel = self._fold
        if axis not in self._folds:

            def fold(tile: Tile) -> Tile:
                shape = math.prod(tile.shape[:axis]), tile.shape[axis], math.prod(tile.shape[axis + 1 :])
                sums = np.empty_like(tile)  # a tile of the operand's shape, of which only the first place is used
                kernel(tile.reshape(shape), sums.reshape(shape))
                return sums

            self._folds[axis] = fold
        self._folds[axis](np.ones((1,) * (axis + 1), dtype))  # compiled here, so that no tile waits for it
        return self._folds[axis]

    def product(self, left: Array, right: Array, add: str) -> Array:
        """`inner` of (m, k) and (k, n): rows of `left` tile by tile, beside columns of `right` that are held."""
        pair = self.dtype_of(left.dtype, right.dtype)
        kind = np.dtype(np.bool_) if add in ("any", "all") else sum_dtype(pair) if add in ("sum", "prod") else pair
        held = right.compute()
        width = max(1, _HELD_BYTES // max(held.itemsize * held.shape[0], 1))
        parts = [held[:, first : first + width] for first in range(0, held.shape[1], width)]
        return concat([self._columns(left, part, add, kind) for part in parts], axis=1)

    def _columns(self, left: Array, held: Tile, add: str, kind: DType) -> Array:
        inner, columns = held.shape
        right = np.ascontiguousarray(held)
        if add not in self._products:
            self._products[add] = product_kernel(self.scalar, add)
        kernel = self._products[add]

        def product(tile: Tile) -> Tile:
            sums = np.empty(tile.shape, kind)  # as wide as the tile; columns beyond those of `right` are not used
            kernel(tile, right, sums)
            return sums

        product(np.ones((1, max(inner, columns)), left.dtype))  # compiled here, so that no tile waits for it
        if columns > inner:  # a tile has the shape of the result
            left = pad(left, ((0, 0), (0, columns - inner)))
        return part_along(map_blocks(product, left, dtype=kind, whole=1), 1, 0, columns)

    def __reduce__(self) -> str | tuple[object, ...]:
        # A decorated function is found by its name, as plain functions are.
        member: Any = sys.modules.get(self.__module__)
        for name in self.__qualname__.split("."):
            member = getattr(member, name, None)
        return self.__qualname__ if member is self else (Jitted, (self._function, self._options))


def _dtypes(operands: tuple[Operand, ...]) -> tuple[DType, ...]:
    """The types operands are taken in: a Python scalar has that of the arrays beside it, where there are any."""
    kinds = [None if is_weak(operand) else expr_dtype(node(operand)) for operand in operands]
    strong = [dtype for dtype in kinds if dtype is not None]
    return tuple(
        dtype or (np.result_type(*strong, operand) if strong else default_dtype(operand))  # type: ignore[arg-type]
        for dtype, operand in zip(kinds, operands, strict=True)
    )


def jit(function: Callable[..., object] | None = None, /, *, fastmath: bool = False) -> Any:
    """A function of numbers, with branches and loops of its own, compiled for arrays: `@oc.jit` above it, or a call.

    The compiled function takes lazy arrays (which broadcast; the result is lazy, and runs within the pass that reads
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


__all__ = ["Jitted", "jit", "scalar_of"]
