"""Functions of neighbourhoods: `map_overlap` shows blocks their neighbours' edges, `block_reduce` reduces them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from outcore._base.element_types import DTypeLike, dtype_of
from outcore._base.types import DType, NDArray, Scalar
from outcore._functions.blocks import map_blocks
from outcore._lazy.array import Array
from outcore._lazy.node import Operand, axis_of, integers, node
from outcore._numpy_like.arranging import PadMode, pad
from outcore._numpy_like.missing import nanmax, nanmean, nanmin, nanprod, nanstd, nansum, nanvar
from outcore._numpy_like.order import median, nanmedian
from outcore._standard.creation import arange
from outcore._standard.manipulation import concat, expand_dims, part_along, reshape
from outcore._standard.statistical import max as largest
from outcore._standard.statistical import mean, prod, std, var
from outcore._standard.statistical import min as smallest
from outcore._standard.statistical import sum as total
from outcore._standard.utility import all as every
from outcore._standard.utility import any as some
from outcore.errors import ArgumentError, DTypeError, FunctionError, ShapeError

_MODES: dict[str, PadMode] = {"reflect": "symmetric", "periodic": "wrap", "nearest": "edge"}
_REDUCTIONS: dict[str, Callable[..., Array]] = {
    "mean": mean,
    "sum": total,
    "min": smallest,
    "max": largest,
    "prod": prod,
    "std": std,
    "var": var,
    "median": median,
    "any": some,
    "all": every,
    "nanmean": nanmean,
    "nansum": nansum,
    "nanmin": nanmin,
    "nanmax": nanmax,
    "nanprod": nanprod,
    "nanstd": nanstd,
    "nanvar": nanvar,
    "nanmedian": nanmedian,
}
_BLOCK_ELEMENTS = 1 << 20
_EDGE_SHARE = 8  # a block is so many times as long as the edges it is given, where the array is
_Depth = tuple[int, int]
Depth: TypeAlias = "int | tuple[int, int]"  # elements before and behind a block
Boundary: TypeAlias = "str | float"  # a kind of edge, or the number that stands there


def _for_each_axis(name: str, option: object, ndim: int, default: object) -> list[Any]:
    """One value for all axes, one for each, or those of the axes that a mapping names."""
    if isinstance(option, Mapping):
        named = {axis_of("map_overlap", axis, ndim): value for axis, value in option.items()}
        return [named.get(axis, default) for axis in range(ndim)]
    if isinstance(option, tuple):
        if len(option) != ndim:
            raise ArgumentError(f"map_overlap: {name}={option!r} must have {ndim} entries, one for each axis")
        return list(option)
    return [option] * ndim


def _depths(depth: object, shape: tuple[int, ...]) -> list[_Depth]:
    depths: list[_Depth] = []
    for axis, axis_depth in enumerate(_for_each_axis("depth", depth, len(shape), 0)):
        both = integers(axis_depth)
        before, behind = both if len(both) == 2 else (both[0], both[0])
        if len(both) > 2 or min(before, behind) < 0 or max(before, behind) > shape[axis]:
            raise ArgumentError(
                f"map_overlap: depth along axis {axis} of shape {shape} must be between 0 and {shape[axis]}, not "
                f"{axis_depth!r}"
            )
        depths.append((before, behind))
    return depths


def _padded(x: Array, depths: list[_Depth], boundaries: list[Boundary]) -> Array:
    """The array with `depth` elements beyond both ends; zeros that no block is shown where the boundary is "none"."""
    for axis, (depth, boundary) in enumerate(zip(depths, boundaries, strict=True)):
        if depth == (0, 0):
            continue
        widths = [(0, 0)] * x.ndim
        widths[axis] = depth
        if isinstance(boundary, str) and boundary != "none":
            if boundary not in _MODES:
                known = ", ".join(map(repr, (*_MODES, "none")))
                raise ArgumentError(f"map_overlap: boundary must be a number or one of {known}, not {boundary!r}")
            x = pad(x, widths, _MODES[boundary])
        else:
            x = pad(x, widths, constant_values=0 if boundary in ("none", None) else boundary)
    return x


def _block_lengths(shape: tuple[int, ...], depths: list[_Depth]) -> list[int]:
    """How long blocks are along the axes that have a depth; others are the planner's."""
    deep = [axis for axis, depth in enumerate(depths) if sum(depth)]
    beside = math.prod(max(shape[axis], 1) for axis in range(len(shape)) if axis not in deep)
    even = math.ceil((_BLOCK_ELEMENTS / beside) ** (1 / len(deep)))
    return [max(1, min(shape[axis], max(even, _EDGE_SHARE * sum(depths[axis])))) for axis in deep]


def _cut(x: Array, axis: int, length: int, count: int, edge: int) -> Array:
    """An axis as two: `count` blocks, and in each `length` elements and `edge` of those that come next."""
    if count == 1:
        return expand_dims(x, axis=axis)
    widths = [(0, 0)] * x.ndim
    widths[axis] = (0, count * length + edge - x.shape[axis])
    x = pad(x, widths, "edge")

    def from_place(start: int) -> Array:
        part = part_along(x, axis, start, start + count * length)
        return reshape(part, (*x.shape[:axis], count, length, *x.shape[axis + 1 :]))

    # The numbers of the next blocks lie at the ends of the same blocks, cut so much later.
    return concat([from_place(0), part_along(from_place(edge), axis + 1, length - edge, None)], axis=axis + 1)


class _OnBlocks:
    """The function that `map_blocks` calls: takes a tile of blocks apart, shows each to the function, and keeps its
    middle."""

    def __init__(
        self,
        function: Callable[[NDArray], NDArray],
        shape: tuple[int, ...],
        depths: list[_Depth],
        lengths: dict[int, int],
        open_ends: list[bool],
    ) -> None:
        self.function, self.shape, self.depths, self.lengths, self.open_ends = (
            function,
            shape,
            depths,
            lengths,
            open_ends,
        )
        self.__name__ = getattr(function, "__name__", "function")

    def __call__(self, tile: NDArray, *numbers: NDArray) -> NDArray:
        """`numbers` is the number of the block in C order, in each of its elements, where some boundary is open."""
        made: NDArray | None = None
        places = [axis + at for at, axis in enumerate(self.lengths)]  # the axes that count blocks
        for which in np.ndindex(*(tile.shape[place] for place in places)):
            key: list[Any] = [slice(None)] * tile.ndim
            for place, at in zip(places, which, strict=True):
                key[place] = at
            block = tile[tuple(key)]
            if not block.size:
                continue
            shown = self._shown(int(numbers[0][tuple(key)].flat[0]), block.shape) if numbers else ...
            result = np.asarray(self.function(block[shown]))
            if result.shape != block[shown].shape:
                raise FunctionError(
                    f"map_overlap: {self.__name__} must keep the shape of a block, {block[shown].shape}, not return "
                    f"{result.shape}"
                )
            made = np.zeros(tile.shape, dtype=result.dtype) if made is None else made
            made[tuple(key)][shown] = result
        return np.zeros(tile.shape) if made is None else made

    def _shown(self, number: int, shape: tuple[int, ...]) -> tuple[slice, ...]:
        """The part of a block that is of the array and its boundary, and not beyond an open end."""
        parts = [slice(None)] * len(shape)
        for axis, length in reversed(self.lengths.items()):
            number, at = divmod(number, -(-self.shape[axis] // length))
            if self.open_ends[axis]:
                start = at * length - self.depths[axis][0]
                parts[axis] = slice(max(-start, 0), min(self.shape[axis] - start, shape[axis]))
        return tuple(parts)


def map_overlap(
    function: Callable[[NDArray], NDArray],
    x: Operand,
    /,
    *,
    depth: Depth | tuple[Depth, ...] | Mapping[int, Depth],
    boundary: Boundary | tuple[Boundary, ...] | Mapping[int, Boundary] = "none",
    dtype: DTypeLike = None,
    workspace: int | str | None = None,
) -> Array:
    """A Python function applied to NumPy blocks that reach `depth` elements into their neighbours, as Dask's.

    It returns a block of the same shape, of which the middle is kept: so a value may depend on elements up to `depth`
    away. `depth` and `boundary` are one for all axes, a tuple of one for each, or a mapping of axes; a depth may be a
    pair of those before and behind. Along axes of depth 0 the function must be element-wise in effect.

    `boundary`: beyond the array lie its elements mirrored ("reflect", the outermost twice), those of the other end
    ("periodic"), the outermost ("nearest"), a number, or nothing ("none"): then blocks at the ends are shorter.
    `dtype` is the result's type, found by calling the function on a small block of ones unless given; `workspace` as
    for `map_blocks`. Raises ArgumentError for a depth beyond the array, FunctionError for a result of another shape.

    I/O: one read of `x`, and of the edges where they lie in another tile. Blocks have about a million elements.

    >>> import numpy as np, outcore as oc
    >>> smooth = lambda block: (np.roll(block, 1) + block + np.roll(block, -1)) / 3
    >>> oc.map_overlap(smooth, np.asarray([3.0, 6.0, 9.0]), depth=1, boundary="nearest").compute()
    array([4., 6., 8.])
    """
    array = Array(node(x))
    depths = _depths(depth, array.shape)
    boundaries = _for_each_axis("boundary", boundary, array.ndim, "none")
    deep = [axis for axis, both in enumerate(depths) if sum(both)]
    if not deep or not array.size:
        return map_blocks(function, array, dtype=dtype, workspace=workspace)
    kind = _probed(function, array.dtype, depths) if dtype is None else dtype_of(dtype)
    lengths = dict(zip(deep, _block_lengths(array.shape, depths), strict=True))
    cut, shape = _padded(array, depths, boundaries), list(array.shape)
    for added, (axis, length) in enumerate(lengths.items()):
        count = -(-array.shape[axis] // length)
        cut = _cut(cut, axis + added, length, count, sum(depths[axis]))
        shape[axis] = count * length
    open_ends = [isinstance(part, str) and part == "none" for part in boundaries]
    numbers = [_block_numbers(cut, list(lengths))] if any(open_ends[axis] for axis in deep) else []
    on_blocks = _OnBlocks(function, array.shape, depths, lengths, open_ends)
    inner = [axis + added + 1 for added, axis in enumerate(lengths)]
    result = map_blocks(on_blocks, cut, *numbers, dtype=kind, workspace=workspace, whole=inner)
    for (axis, length), place in zip(lengths.items(), inner, strict=True):
        result = part_along(result, place, depths[axis][0], depths[axis][0] + length)
    return reshape(result, tuple(shape))[tuple(slice(length) for length in array.shape)]


def _block_numbers(cut: Array, deep: list[int]) -> Array:
    """The blocks' numbers in C order, along the axes that count them."""
    thin = [1] * cut.ndim
    for added, axis in enumerate(deep):
        thin[axis + added] = cut.shape[axis + added]
    return reshape(arange(math.prod(thin), dtype=np.int32), tuple(thin))


def _probed(function: Callable[[NDArray], NDArray], dtype: DType, depths: Sequence[_Depth]) -> DType:
    """The type the function gives of a block of ones that has all its edges."""
    sample = np.ones([sum(depth) + 1 for depth in depths], dtype=dtype)
    name = getattr(function, "__name__", "function")
    try:
        result = np.asarray(function(sample))
    except Exception as error:
        raise DTypeError(
            f"map_overlap: {name} failed on a block of shape {sample.shape} ({error}); pass dtype="
        ) from error
    if result.shape != sample.shape:
        raise ShapeError(
            f"map_overlap: {name} must keep the shape of a block, {sample.shape}, not return {result.shape}"
        )
    return result.dtype


def _reduction(function: Callable[..., Array] | str) -> Callable[..., Array]:
    """The reduction itself, or the one of that name."""
    if not isinstance(function, str):
        return function
    if function not in _REDUCTIONS:
        known = ", ".join(map(repr, _REDUCTIONS))
        raise ArgumentError(f"block_reduce: {function!r} is none of {known}; pass a function that takes axis=")
    return _REDUCTIONS[function]


def block_reduce(
    x: Operand,
    block: int | Sequence[int],
    /,
    function: Callable[..., Array] | str = mean,
    *,
    fill: Scalar | None = None,
) -> Array:
    """The array with each block of so many elements along each axis made one by a reduction, such as `oc.mean`.

    `function` takes an array and `axis=`, and becomes nodes; or it is a name: "mean", "sum", "min", "max", "prod",
    "std", "var", "median", "any", "all", and those of NaN passed over, such as "nanmean". Where an axis is not a whole
    number of blocks, `fill` stands for the elements beyond its end; ShapeError without. Raises ArgumentError for other
    names.
    I/O: one read of `x`; of medians as of `oc.median`.

    >>> import numpy as np, outcore as oc
    >>> oc.block_reduce(np.arange(12.0).reshape(2, 6), (2, 3), oc.max).compute()
    array([[ 8., 11.]])
    >>> oc.block_reduce(np.arange(12.0).reshape(2, 6), (2, 3), "mean").compute()
    array([[4., 7.]])
    """
    reduction = _reduction(function)
    array = Array(node(x))
    sizes = integers(block)
    if len(sizes) == 1:
        sizes *= array.ndim
    if len(sizes) != array.ndim or any(size < 1 for size in sizes):
        raise ShapeError(
            f"block_reduce: block must have one size of at least 1 for each axis of shape {array.shape}, not {sizes}"
        )
    missing = [-length % size for length, size in zip(array.shape, sizes, strict=True)]
    if any(missing):
        if fill is None:
            raise ShapeError(
                f"block_reduce: shape {array.shape} must be whole blocks of {sizes}; pass fill=, or cut the array"
            )
        array = pad(array, [(0, count) for count in missing], constant_values=fill)
    apart = [part for length, size in zip(array.shape, sizes, strict=True) for part in (length // size, size)]
    reduced = Array(node(reduction(reshape(array, tuple(apart)), axis=tuple(range(1, 2 * array.ndim, 2)))))
    expected = tuple(apart[::2])
    if reduced.shape != expected:
        raise ShapeError(
            f"block_reduce: the function must reduce the axes of axis=, to shape {expected}, not {reduced.shape}"
        )
    return reduced


__all__ = ["block_reduce", "map_overlap"]
