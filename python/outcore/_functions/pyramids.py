"""Pyramids of images: an array and its block means or extremes by 2, 4, 8 … as a group of OME-Zarr 0.5.

Each level is made of the sums (or extremes) below it, cut into tiles that lie within each other from level to level, so
that a tile of the array goes through all levels while it is in memory. Sums are exact for integers, and divided by the
number of cells at the very end: no level is the mean of rounded means.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, overload

import numpy as np

from outcore._base.arguments import whole
from outcore._base.types import DType, PathLike
from outcore._lazy.annotated import Annotation
from outcore._lazy.array import Array
from outcore._lazy.node import Operand, axes_of, node
from outcore._numpy_like.arranging import pad
from outcore._opening.group import Group, group
from outcore._run.run import store
from outcore._session.record import Outcome
from outcore._standard.creation import arange
from outcore._standard.manipulation import rechunk
from outcore.elementwise import add, logical_and, logical_or, maximum, minimum
from outcore.errors import ArgumentError, DTypeError, ShapeError

Method = Literal["mean", "max", "min"]
Scale = Mapping[str, float | tuple[float, str]]  # by the name of an axis: the size of a cell, and its unit
Sums = list[Array]  # of one level, in two halves where elements have 64 bits

_CELLS_MAX = 1 << 30  # of the array in one of the last level: sums of 32 bits are exact in 64
_ALIGNED_LEVELS = 3  # whose tiles lie within each other; those beyond are small
_TILE_LENGTH_MIN = 64
_LOW_BITS = 32
_NDIM = range(2, 6)
_TYPES = {"t": "time", "time": "time", "c": "channel", "channel": "channel", "z": "space", "y": "space", "x": "space"}
_RANKS = {"time": 0, "channel": 1, None: 1, "space": 2}  # the order in which axes come


class _Halving(NamedTuple):
    """Axes that are halved, the array's shape, and the tiles of the lowest level."""

    axes: list[int]
    shape: tuple[int, ...]
    tile: tuple[int, ...]

    def length(self, level: int, axis: int) -> int:
        return -(-self.shape[axis] >> level) if axis in self.axes else self.shape[axis]

    def tile_of(self, level: int) -> tuple[int, ...]:
        return tuple(
            max(length >> level, min(length, _TILE_LENGTH_MIN)) if axis in self.axes else length
            for axis, length in enumerate(self.tile)
        )

    def cropped(self, part: Array, level: int) -> Array:
        """A level without the cells that were put behind the array."""
        return part[tuple(slice(0, self.length(level, axis)) for axis in range(part.ndim))]

    def halved(self, part: Array, join: Callable[[Array, Array], Array], level: int) -> Array:
        """The level above, as `join` makes it of neighbours."""
        picks = [(0, 1) if axis in self.axes else (None,) for axis in range(part.ndim)]
        pieces = [
            part[tuple(slice(None) if first is None else slice(first, None, 2) for first in places)]
            for places in itertools.product(*picks)
        ]
        result = pieces[0]
        for piece in pieces[1:]:
            result = join(result, piece)
        return rechunk(result, self._within(result.shape, self.tile_of(level)))

    def counts(self, level: int) -> Array | int:
        """How many cells of the array one of a level has: fewer behind at an edge that they do not reach."""
        factor, ndim = 1 << level, len(self.shape)
        if all(self.shape[axis] % factor == 0 for axis in self.axes):
            return 1 << (level * len(self.axes))
        result: Array | int = 1
        for axis in self.axes:
            begins = factor * arange(self.length(level, axis))
            along = minimum(self.shape[axis] - begins, factor).reshape([1] * axis + [-1] + [1] * (ndim - axis - 1))
            result = along * result
        return result

    def padded(self, array: Array, mode: Literal["constant", "edge"], levels: int) -> Array:
        """Whole cells of the last level, and never none behind: levels are then cut off apart, each in a pass."""
        most = 1 << (levels - 1)
        widths = [
            (0, (-length % most or most * (axis == self.axes[0])) if axis in self.axes else 0)
            for axis, length in enumerate(self.shape)
        ]
        result = pad(array, widths, mode)
        return rechunk(result, self._within(result.shape, self.tile))

    @staticmethod
    def _within(shape: Sequence[int], tile: Sequence[int]) -> list[int]:
        return [max(min(length, most), 1) for length, most in zip(tile, shape, strict=True)]


@overload
def pyramid(
    x: Operand,
    levels: int,
    path: None = None,
    /,
    *,
    method: Method = "mean",
    axes: int | str | Iterable[int | str] | None = None,
    scale: Scale | None = None,
    overwrite: bool = False,
) -> Group: ...
@overload
def pyramid(
    x: Operand,
    levels: int,
    path: PathLike,
    /,
    *,
    method: Method = "mean",
    axes: int | str | Iterable[int | str] | None = None,
    scale: Scale | None = None,
    overwrite: bool = False,
) -> Outcome: ...
def pyramid(
    x: Operand,
    levels: int,
    path: PathLike | None = None,
    /,
    *,
    method: Method = "mean",
    axes: int | str | Iterable[int | str] | None = None,
    scale: Scale | None = None,
    overwrite: bool = False,
) -> Group | Outcome:
    """An image and its smaller forms, each half as long along some axes, as a group of OME-Zarr 0.5, stored at `path`.

    Members are called "0" (the array itself), "1", … `levels` in number; a cell of level k is the `method` ("mean",
    "max", "min") of 2ᵏ cells along each of `axes`, and of those that remain at an end that is not so long: its length
    is that of the array over 2ᵏ, rounded up. `axes` are named or numbered; unless given, those called z, y and x, else
    the last two. Means are exact: floating ones are summed in double precision and rounded once; those of integers are
    rounded to the nearest, halves to even, without overflow up to 64 bits. NaN makes each cell NaN that it lies in.
    Levels have the type of `x`.

    Axes are named as `x.dims` says; where those have no names, by the last ones of t, c, z, y, x. The format has 2 to 5
    axes, of which 2 or 3 are of space: z, y, x and all that are halved, in the end, behind time (t, time) and channels
    (c, channel). `scale` has the size of a cell, or a pair of that and its unit, by the name of an axis: {"y": (0.5,
    "micrometer")}; 1 without. Scales of levels are 2ᵏ times as large, and a translation puts the first cell into the
    middle of those that it is made of.

    Without `path` the result is the `Group`, for `explain`, and for `store` with chunks or compression of one's own;
    with it the Outcome of storing. Raises ShapeError for other numbers of axes or none in space, and for arrays without
    elements, ArgumentError for levels below 1 or so many that 2³⁰ cells become one, for an unknown method, axis or
    scale, DTypeError for means of bool and extremes of complex numbers; else as `store`. I/O: one read of `x`, in one
    program, at some tens of tiles of memory; levels are written once.

    >>> import numpy as np, outcore as oc, tempfile
    >>> image = np.arange(15, dtype=np.uint8).reshape(3, 5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     did = oc.pyramid(image, 2, f"{folder}/ome.zarr")
    ...     oc.open(f"{folder}/ome.zarr")["1"].compute()
    array([[ 3,  5,  6],
           [10, 12, 14]], dtype=uint8)
    """
    array = Array(node(x))
    whole("pyramid", 64, levels=levels)
    if levels < 1 or method not in ("mean", "max", "min"):
        raise ArgumentError(f"pyramid: levels={levels}, method={method!r}; levels from 1, of mean, max or min")
    named, halved = _with_names(array, axes)
    if named.size == 0:
        raise ShapeError(f"pyramid: shape {named.shape} has no elements")
    if 1 << ((levels - 1) * len(halved)) >= _CELLS_MAX:
        raise ArgumentError(f"pyramid: {levels} levels along {len(halved)} axes make one cell of 2³⁰ and more")
    _check_type(named.dtype, method)
    unit = 1 << min(levels - 1, _ALIGNED_LEVELS)
    tile = [-(-length // unit) * unit if axis in halved else length for axis, length in enumerate(named.tile)]
    cut = _Halving(halved, named.shape, tuple(tile))
    first = rechunk(named, [min(length, most) for length, most in zip(tile, named.shape, strict=True)])
    made = [first, *(_means if method == "mean" else _extremes)(first, cut, levels, method)]
    members = {str(level): part.annotate(dims=named.dims) for level, part in enumerate(made)}
    result = group(members, attrs=_attributes(named, halved, levels, method, scale or {}))
    return result if path is None else store({path: result}, overwrite=overwrite)


def _check_type(dtype: DType, method: Method) -> None:
    if method == "mean" and dtype.kind == "b":
        raise DTypeError("pyramid: the mean of bool is no bool; use method='max', or x.astype('float32')")
    if method != "mean" and dtype.kind == "c":
        raise DTypeError(f"pyramid: {dtype} has no order, and no {method}")


def _with_names(array: Array, axes: int | str | Iterable[int | str] | None) -> tuple[Array, list[int]]:
    """The array with a name for each axis, and the axes that are halved."""
    if array.ndim not in _NDIM:
        raise ShapeError(f"pyramid: an array of {array.ndim} axes; OME-Zarr has 2 to 5")
    names: Sequence[str | None] = array.dims
    if not any(names):
        names = list("tczyx"[-array.ndim :])
    if not all(names):
        raise ArgumentError(f"pyramid: axes {array.dims} have no names in part; x.annotate(dims=) names all")
    named = array.annotate(dims=names)
    if axes is not None:
        halved = axes_of("pyramid", axes, named)
    else:
        halved = [axis for axis, name in enumerate(names) if name in ("z", "y", "x")]
        halved = halved or [array.ndim - 2, array.ndim - 1]
    kinds = [_type_of(str(name), axis in halved) for axis, name in enumerate(names)]
    ranks = [_RANKS[kind] for kind in kinds]
    if not 2 <= kinds.count("space") <= 3 or kinds.count("time") > 1 or ranks.count(1) > 1 or ranks != sorted(ranks):
        raise ShapeError(
            f"pyramid: axes {', '.join(map(str, names))} are {', '.join(map(str, kinds))}; OME-Zarr has one of time, "
            f"then one of channels, then two or three of space: transpose, or name axes that are z, y or x"
        )
    return named, halved


def _type_of(name: str, is_halved: bool) -> str | None:
    return _TYPES.get(name.lower(), "space" if is_halved else None)


def _extremes(array: Array, cut: _Halving, levels: int, method: Method) -> list[Array]:
    if array.dtype.kind == "b":
        join: Callable[[Array, Array], Array] = logical_or if method == "max" else logical_and
    else:
        join = maximum if method == "max" else minimum
    part, made = cut.padded(array, "edge", levels), []
    for level in range(1, levels):
        part = cut.halved(part, join, level)
        made.append(cut.cropped(part, level))
    return made


def _means(array: Array, cut: _Halving, levels: int, _method: Method) -> list[Array]:
    dtype = array.dtype
    first, made = cut.padded(array, "constant", levels), []
    if dtype.kind in "iu" and dtype.itemsize == 8:
        # Halves of 64 bits, of which sums have room.
        parts = [(first >> _LOW_BITS).astype(np.int64), (first & (2**_LOW_BITS - 1)).astype(np.int64)]
    else:
        parts = [first.astype(_sum_dtype(dtype, 1 << ((levels - 1) * len(cut.axes))))]
    for level in range(1, levels):
        parts = [cut.halved(part, add, level) for part in parts]
        sums = [cut.cropped(part, level) for part in parts]
        count = cut.counts(level)
        made.append(_rounded(sums, count, dtype) if dtype.kind in "iu" else (sums[0] / count).astype(dtype))
    return made


def _sum_dtype(dtype: DType, cells: int) -> DType:
    """The smallest type that has room for the sum of so many cells."""
    if dtype.kind in "iu":
        bounds = np.iinfo(dtype)
        for kind in (np.uint32, np.int32):
            room = np.iinfo(kind)
            if room.min <= int(bounds.min) * cells and int(bounds.max) * cells <= room.max:
                return np.dtype(kind)
        return np.dtype(np.int64)
    return np.dtype(np.complex128 if dtype.kind == "c" else np.float64)


def _rounded(sums: Sums, count: Array | int, dtype: DType) -> Array:
    """Sums over counts, to the nearest integer, halves to even: the high halves' remainders go to the low ones."""
    low = sums[-1].astype(np.int64)
    high: Array | None = None
    if len(sums) > 1:
        high = sums[0] // count
        low = low + ((sums[0] % count) << _LOW_BITS)
    quotient, remainder = low // count, low % count
    twice = 2 * remainder
    is_up = (twice > count) | ((twice == count) & (quotient % 2 == 1))
    nearest = quotient + is_up.astype(np.int64)
    if high is None:
        return nearest.astype(dtype)
    return (high.astype(dtype) << _LOW_BITS) + nearest.astype(dtype)


def _attributes(
    array: Array, halved: Sequence[int], levels: int, method: Method, scale: Scale
) -> dict[str, Annotation]:
    """`ome` of a group: one image of several scales (OME-Zarr 0.5, section 2.3)."""
    names = [str(name) for name in array.dims]
    unknown = [name for name in scale if name not in names]
    if unknown:
        raise ArgumentError(f"pyramid: scale names {', '.join(map(repr, unknown))}; axes are {', '.join(names)}")
    sizes, described = [], []
    for axis, name in enumerate(names):
        value = scale.get(name, 1.0)
        size, unit = value if isinstance(value, tuple) else (value, None)
        if not np.isfinite(size) or size <= 0:
            raise ArgumentError(f"pyramid: scale of {name!r} is {size}; sizes of cells are above 0")
        kind = _type_of(name, axis in halved)
        described.append({"name": name} | ({"type": kind} if kind else {}) | ({"unit": unit} if unit else {}))
        sizes.append(float(size))
    datasets = []
    for level in range(levels):
        factors = [1 << level if axis in halved else 1 for axis in range(len(names))]
        places: list[dict[str, Annotation]] = [
            {"type": "scale", "scale": [size * factor for size, factor in zip(sizes, factors, strict=True)]}
        ]
        if level:
            middles = [size * (factor - 1) / 2 for size, factor in zip(sizes, factors, strict=True)]
            places.append({"type": "translation", "translation": middles})
        datasets.append({"path": str(level), "coordinateTransformations": places})
    image = {
        "name": array.name or "image",
        "axes": described,
        "datasets": datasets,
        "type": method,
        "metadata": {"description": f"{method} of 2 cells along {', '.join(names[axis] for axis in halved)}"},
    }
    return {"ome": {"version": "0.5", "multiscales": [image]}}


__all__ = ["pyramid"]
