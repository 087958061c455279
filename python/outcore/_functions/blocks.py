"""Functions of the user's own: `map_blocks` runs one on NumPy tiles, `map` traces one into nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import numpy as np

from outcore import _core
from outcore._base.element_types import DTypeLike, dtype_of
from outcore._base.sizes import parse_size
from outcore._base.types import DType, NDArray
from outcore._lazy.array import Array
from outcore._lazy.calling import tracing
from outcore._lazy.node import Operand, axes_of, node
from outcore.errors import ArgumentError, DTypeError

Result = TypeVar("Result")


_SAMPLE_LENGTH = 4
_SAMPLE_AXES = 5


def _check_mixing(function: Callable[..., object], exprs: list[_core.Expr], whole: Sequence[int]) -> None:
    """Raises ArgumentError for a function whose values depend on how its operands are cut along an axis not in `whole`.

    A sample of a few elements is given whole and in two parts. Functions that do not take the sample, or give
    other values each time, are not judged.
    """
    ndim = max(len(expr.shape) for expr in exprs)
    if not 0 < ndim <= _SAMPLE_AXES:
        return
    random = np.random.default_rng(0)
    shape = (_SAMPLE_LENGTH,) * ndim
    samples = [(7 * random.random(shape) + 1).astype(expr.dtype) for expr in exprs]

    def call(part: tuple[slice, ...]) -> NDArray:
        return np.asarray(function(*(sample[part].copy() for sample in samples)))

    half = _SAMPLE_LENGTH // 2
    try:
        with np.errstate(all="ignore"):
            once, again = call(()), call(())
            if once.shape != shape or not _alike(once, again):
                return
            for axis in (axis for axis in range(ndim) if axis not in whole):
                before = (slice(None),) * axis
                parts = [call((*before, slice(None, half))), call((*before, slice(half, None)))]
                if not _alike(np.concatenate(parts, axis=axis), once):
                    name = getattr(function, "__name__", "function")
                    asked = tuple(sorted({*whole, axis}))
                    raise ArgumentError(
                        f"map_blocks: {name} gives other values on parts than on the whole along axis {axis}, and "
                        f"tiles are the planner's choice; declare whole={asked}, or pass dtype= if that is right"
                    )
    except ArgumentError:
        raise
    except Exception:
        return


def _alike(a: NDArray, b: NDArray) -> bool:
    return a.shape == b.shape and bool(np.allclose(a, b, rtol=1e-2, atol=1e-6, equal_nan=a.dtype.kind in "fc"))


def _probed_dtype(function: Callable[..., object], exprs: list[_core.Expr]) -> DType:
    """The type the function gives, found by calling it on ones of length 1 along every axis."""
    ndim = max((len(expr.shape) for expr in exprs), default=0)
    samples = [np.ones((1,) * ndim, dtype=expr.dtype) for expr in exprs]
    try:
        return np.asarray(function(*samples)).dtype
    except Exception as error:
        name = getattr(function, "__name__", "function")
        raise DTypeError(f"map_blocks: {name} failed on one element ({error}); pass dtype=") from error


def map_blocks(
    function: Callable[..., NDArray],
    /,
    *inputs: Operand,
    dtype: DTypeLike = None,
    workspace: int | str | None = None,
    whole: int | Iterable[int] = (),
) -> Array:
    """A Python function applied to NumPy tiles: each call gets one tile per input and returns one of the same shape.

    Shape: the inputs broadcast together, and each tile arrives broadcast. Tile shapes are the planner's choice, so the
    function must be element-wise in effect along every axis that is not in `whole`: one that sorts, sums, shifts or
    normalizes along an axis gives other values for every cut, and they are silently wrong. `whole` names the axes that
    tiles reach along from end to end, such as `whole=0` for `np.sort(tile, axis=0)`; a tile is then as large as those
    axes make it, and MemoryLimitError is raised at planning where that does not fit. A result of another shape than the
    tile's raises FunctionError.

    The function must not keep or change its arguments, nor wait for another computation of outcore: programs take
    turns, so it would wait for itself until interrupted. `dtype` is the result's type; unless given, the function is
    called on one element to find it, and on 4 elements per axis, whole and in parts: ArgumentError where these differ.
    `workspace` is what one call allocates ("8MiB"), which the ledger cannot see; unless given, one tile of the widest
    type per input and one more. I/O: one read of each input; the calls are part of the pass that reads them.

    >>> import numpy as np, outcore as oc
    >>> oc.map_blocks(np.cbrt, oc.asarray([1.0, 8.0, 27.0])).compute()
    array([1., 2., 3.])
    """
    exprs = [node(value) for value in inputs]
    if not exprs:
        raise DTypeError("map_blocks: needs at least one array")
    axes = axes_of("map_blocks", whole, max(len(expr.shape) for expr in exprs))
    if dtype is None:
        kind = _probed_dtype(function, exprs)
        _check_mixing(function, exprs, axes)
    else:
        kind = np.dtype(dtype)
    room = None if workspace is None else parse_size(workspace)
    return Array(_core.map_blocks(function, exprs, dtype_of(kind).name, room, axes))


def map(function: Callable[..., Result], /, *arrays: Operand, **options: object) -> Result:
    """The function's formula as expression nodes: it is called once, on the lazy arrays themselves.

    So it runs at the speed of built-in operations, fused, without Python per tile. It must be written in operators and
    functions of outcore or NumPy; branching on a value raises DTypeError, use `where` instead. I/O: that of the nodes
    it makes; the call itself reads nothing.

    >>> import outcore as oc
    >>> oc.map(lambda x, y: (x - y) ** 2, oc.asarray([1, 5]), oc.asarray([2, 2])).compute()
    array([1, 9])
    """
    name = getattr(function, "__name__", type(function).__name__)
    token = tracing.set(name)
    try:
        return function(*(Array(node(array)) for array in arrays), **options)
    finally:
        tracing.reset(token)


__all__ = ["map", "map_blocks"]
