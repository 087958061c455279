"""Functions of the user's own: `map_blocks` runs one on NumPy tiles, `map` traces one into nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from outcore import _core
from outcore._array import Array, tracing
from outcore._node import DTypeLike, Operand, dtype_of, node
from outcore._sizes import parse_size
from outcore.errors import DTypeError

Result = TypeVar("Result")


def _probed_dtype(function: Callable[..., Any], exprs: list[_core.Expr]) -> np.dtype[Any]:
    """The type the function gives, found by calling it on ones of length 1 along every axis."""
    ndim = max((len(expr.shape) for expr in exprs), default=0)
    samples = [np.ones((1,) * ndim, dtype=expr.dtype) for expr in exprs]
    try:
        return np.asarray(function(*samples)).dtype
    except Exception as error:
        name = getattr(function, "__name__", "function")
        raise DTypeError(f"map_blocks: {name} failed on one element ({error}); pass dtype=") from error


def map_blocks(
    function: Callable[..., npt.NDArray[Any]],
    /,
    *inputs: Operand,
    dtype: DTypeLike = None,
    workspace: int | str | None = None,
) -> Array:
    """A Python function applied to NumPy tiles: each call gets one tile per input and returns one of the same shape.

    Shape: the inputs broadcast together, and each tile arrives broadcast. The function must be element-wise in effect,
    since tile shapes are the planner's choice, and must not keep or change its arguments. `dtype` is the result's
    type; unless given, the function is called once on a single element to find it. `workspace` is what one call
    allocates ("8MiB"), which the ledger cannot see; unless given, one tile of the result's type per input and one more.
    """
    exprs = [node(value) for value in inputs]
    if not exprs:
        raise DTypeError("map_blocks: needs at least one array")
    kind = _probed_dtype(function, exprs) if dtype is None else np.dtype(dtype)
    if workspace is None:
        largest = max(int(np.prod(expr.tile, dtype=np.int64)) for expr in exprs)
        workspace = largest * max(kind.itemsize, *(np.dtype(expr.dtype).itemsize for expr in exprs)) * (len(exprs) + 1)
    return Array(_core.map_blocks(function, exprs, dtype_of(kind).name, parse_size(workspace)))


def map(function: Callable[..., Result], /, *arrays: Operand, **options: Any) -> Result:
    """The function's formula as expression nodes: it is called once, on the lazy arrays themselves.

    So it runs at the speed of built-in operations, fused, without Python per tile. It must be written in operators and
    functions of outcore or NumPy; branching on a value raises DTypeError, use `where` instead.
    """
    name = getattr(function, "__name__", type(function).__name__)
    token = tracing.set(name)
    try:
        return function(*(Array(node(array)) for array in arrays), **options)
    finally:
        tracing.reset(token)


__all__ = ["map", "map_blocks"]
