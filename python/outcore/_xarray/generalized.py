"""Functions of NumPy arrays over whole axes: generalized universal functions, one call for a tile of the others.

Inputs and outputs of a call may have axes of any lengths, and `map_blocks` gives tiles of one shape: whole axes lie one
behind the other along a last axis as long as the longer of a call's inputs and its outputs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain
from typing import NamedTuple

import numpy as np

from outcore import _api as oc
from outcore import _core
from outcore._base.element_types import DTypeLike
from outcore._base.types import DType, NDArray
from outcore._lazy.array import Array
from outcore._xarray.foreign import Foreign, Function
from outcore._xarray.interpolating import vectorized
from outcore.errors import ArgumentError, ShapeError

_GROUP = re.compile(r"\(([^)]*)\)")


class Signature(NamedTuple):
    """Names of whole axes of each input and each output: `(t),(t,k)->(k)`."""

    inputs: list[tuple[str, ...]]
    outputs: list[tuple[str, ...]]

    @classmethod
    def parsed(cls, text: str) -> Signature:
        """The signature in NumPy's notation. Raises ArgumentError where it has no arrow."""
        sides = text.replace(" ", "").split("->")
        if len(sides) != 2:
            raise ArgumentError(f"apply_gufunc: {text!r} is no signature, such as '(i),(i)->()'")
        first, second = ([tuple(filter(None, names.split(","))) for names in _GROUP.findall(side)] for side in sides)
        return cls(first, second)


class _WholeCall(NamedTuple):
    """One call's arrays: inputs that are the same for all calls, shapes of whole axes, types of outputs."""

    function: Function
    held: Sequence[NDArray | None]  # by input; None where a tile of a lazy array stands
    inputs: Sequence[tuple[int, ...]]
    outputs: Sequence[tuple[int, ...]]
    dtypes: Sequence[DType]
    options: Mapping[str, Foreign]
    unit: int = 1  # elements between the begins of two outputs, which lengths of all of them divide

    def packed(self, *tiles: NDArray) -> NDArray:
        """The outputs of a tile along the last axis, and zeros."""
        following = iter(tiles)
        arrays = []
        for value, shape in zip(self.held, self.inputs, strict=True):
            if value is None:
                tile = next(following)
                value = tile[..., : math.prod(shape)].reshape(*tile.shape[:-1], *shape)
            arrays.append(value)
        outputs = self.results(arrays)
        loops, room = tiles[0].shape[:-1], tiles[0].shape[-1]
        packed = np.zeros((*loops, room), np.result_type(*self.dtypes))
        for number, (value, shape) in enumerate(zip(outputs, self.outputs, strict=True)):
            place, count = number * self.unit, math.prod(shape)
            packed[..., place : place + count] = np.broadcast_to(value, (*loops, *shape)).reshape(*loops, count)
        return packed

    def results(self, arrays: Sequence[NDArray]) -> list[NDArray]:
        """The function's results as a list. Raises ShapeError where it is not as many arrays as outputs."""
        made = self.function(*arrays, **self.options)
        results = list(made) if isinstance(made, (tuple, list)) else [made]
        if len(results) != len(self.outputs):
            raise ShapeError(f"apply_gufunc: {len(results)} results for {len(self.outputs)} outputs")
        return [np.asarray(result) for result in results]


def apply_gufunc(
    function: Function,
    signature: str,
    *arrays: Foreign,
    output_dtypes: Sequence[DTypeLike] | DTypeLike = None,
    output_sizes: Mapping[str, int] | None = None,
    vectorize: bool | None = None,
    **options: Foreign,
) -> Foreign:
    """A generalized universal function of NumPy arrays, as Dask's of the same name: whole axes come last.

    Each call gets all of the whole axes and a tile of the others, which broadcast together. NumPy arrays that have
    whole axes only are the same in each call. Shape: the broadcast others, then the whole axes of the output.
    `output_dtypes` is found by one call on ones where it is not said. Raises ShapeError, ArgumentError for lengths that
    nothing tells, MemoryLimitError at planning where the whole axes do not fit. I/O: one read of each array; of those
    whose tiles are too wide to lie in memory along the whole axes one read and write more, into narrower ones.
    """
    parsed = Signature.parsed(signature)
    if len(parsed.inputs) != len(arrays):
        raise ArgumentError(f"apply_gufunc: {len(arrays)} arrays for the signature {signature}")
    operands = [array if isinstance(array, Array) else np.asarray(array) for array in arrays]
    sizes = _sizes(parsed, operands, dict(output_sizes or {}))
    inputs = [tuple(sizes[name] for name in names) for names in parsed.inputs]
    outputs = [tuple(sizes[name] for name in names) for names in parsed.outputs]
    if vectorize:
        function = vectorized(function, signature, _listed(output_dtypes))
    held = [
        None if isinstance(array, Array) or array.ndim > len(shape) else array
        for array, shape in zip(operands, inputs, strict=True)
    ]
    call = _WholeCall(function, held, inputs, outputs, (), options)
    dtypes = [np.dtype(kind) for kind in _listed(output_dtypes) or []] or _probed(call, operands)
    call = call._replace(dtypes=dtypes)
    call = call._replace(unit=math.lcm(*(max(math.prod(shape), 1) for shape in outputs)))
    room = -(-max(call.unit * len(outputs), *map(math.prod, inputs)) // call.unit) * call.unit
    lazy = [
        _flat(oc.asarray(array), len(shape), room)
        for array, shape, value in zip(operands, inputs, held, strict=True)
        if value is None
    ]
    loops = max(array.ndim for array in lazy) - 1
    packed = oc.map_blocks(call.packed, *lazy, dtype=np.result_type(*dtypes), whole=loops)
    results = [
        _unpacked(packed, place * call.unit, shape, dtype)
        for place, (shape, dtype) in enumerate(zip(outputs, dtypes, strict=True))
    ]
    return results[0] if len(results) == 1 else tuple(results)


def blockwise(
    function: Function,
    outer: tuple[Foreign, ...],
    pairs: Sequence[Foreign],
    dtype: DTypeLike,
    new_axes: Mapping[Foreign, int],
) -> Array:
    """A function of blocks, as Dask's: `pairs` are arrays, each with a letter for each axis, or literals with None.

    Axes that the result (`outer`) lacks are whole in each block, and the result has `new_axes` whole.
    """
    arrays, indices = pairs[::2], pairs[1::2]
    loops = [letter for letter in outer if letter not in new_axes]
    names = {
        letter: f"i{place}"
        for place, letter in enumerate(dict.fromkeys([*chain.from_iterable(index or () for index in indices), *outer]))
    }
    lazy, whole = [], []
    for array, index in zip(arrays, indices, strict=True):
        if index is None:
            continue
        core = [letter for letter in index if letter not in loops]
        order = [list(index).index(letter) for letter in [*loops, *core] if letter in index]
        absent = tuple(place for place, letter in enumerate(loops) if letter not in index)
        operand = oc.permute_dims(oc.asarray(array), tuple(order))
        lazy.append(oc.expand_dims(operand, axis=absent) if absent else operand)
        whole.append(tuple(core))
    made = tuple(letter for letter in outer if letter in new_axes)
    sides = [",".join(f"({','.join(names[letter] for letter in core)})" for core in side) for side in (whole, [made])]
    result = apply_gufunc(
        partial(_blocks_called, function, arrays, indices, outer, loops),
        "->".join(sides),
        *lazy,
        output_dtypes=None if dtype is None else [dtype],
        output_sizes={names[letter]: length for letter, length in new_axes.items()},
    )
    back = [[*loops, *made].index(letter) for letter in outer]
    return oc.permute_dims(result, tuple(back)) if back != sorted(back) else result


def _blocks_called(
    function: Function,
    arrays: Sequence[Foreign],
    indices: Sequence[Foreign],
    outer: Sequence[Foreign],
    loops: Sequence[Foreign],
    *tiles: NDArray,
) -> NDArray:
    """One call of a function of blocks: each tile has all loops before its whole axes, and each block its letters."""
    following = iter(tiles)
    blocks = []
    for value, index in zip(arrays, indices, strict=True):
        if index is None:
            blocks.append(value)
            continue
        tile = next(following)
        depth = tile.ndim - sum(letter not in loops for letter in index)
        letters = [*list(loops)[len(loops) - depth :], *(letter for letter in index if letter not in loops)]
        kept = [letter for letter in letters if letter in index]
        block = tile[tuple(slice(None) if letter in index else 0 for letter in letters)]
        blocks.append(np.transpose(block, [kept.index(letter) for letter in index]))
    result = np.asarray(function(*blocks))
    ordered = [*loops, *(letter for letter in outer if letter not in loops)]
    return np.transpose(result, [list(outer).index(letter) for letter in ordered])


def _listed(dtypes: Foreign) -> list[Foreign] | None:
    if dtypes is None:
        return None
    return list(dtypes) if isinstance(dtypes, (list, tuple)) else [dtypes]


def _sizes(signature: Signature, arrays: Sequence[Foreign], sizes: dict[str, int]) -> dict[str, int]:
    """Lengths of the whole axes by their names."""
    for names, array in zip(signature.inputs, arrays, strict=True):
        if array.ndim < len(names):
            raise ShapeError(f"apply_gufunc: an array of shape {array.shape} has no axes {names}")
        for name, length in zip(names, array.shape[array.ndim - len(names) :], strict=True):
            if sizes.setdefault(name, length) != length:
                raise ShapeError(f"apply_gufunc: {name} has the lengths {sizes[name]} and {length}")
    unknown = {name for names in signature.outputs for name in names} - set(sizes)
    if unknown:
        raise ArgumentError(f"apply_gufunc: output_sizes has no length for {', '.join(sorted(unknown))}")
    return sizes


def _probed(call: _WholeCall, arrays: Sequence[Foreign]) -> list[DType]:
    """Types of the outputs, by one call on ones."""
    samples = [
        np.ones(shape, array.dtype) if value is None else value
        for array, shape, value in zip(arrays, call.inputs, call.held, strict=True)
    ]
    return [result.dtype for result in call.results(samples)]


def _flat(array: Array, whole: int, room: int) -> Array:
    """The array with its whole axes as one of length `room`, which zeros fill up."""
    loops = array.shape[: array.ndim - whole]
    array = _uncut(array, whole) if whole else array
    flat = array if whole == 1 else oc.reshape(array, (*loops, math.prod(array.shape[array.ndim - whole :])))
    spare = room - flat.shape[-1]
    return oc.pad(flat, [(0, 0)] * len(loops) + [(0, spare)]) if spare else flat


def _uncut(array: Array, whole: int) -> Array:
    """The array in tiles that its last axes are not cut in."""
    others = array.ndim - whole
    turned = oc.permute_dims(array, (*range(others, array.ndim), *range(others)))
    uncut = Array(_core.uncut(turned._expr, whole))
    return oc.permute_dims(uncut, (*range(whole, array.ndim), *range(whole)))


def _unpacked(packed: Array, place: int, shape: tuple[int, ...], dtype: DType) -> Array:
    """One output, as a sum with what are zeros: that is planned by tiles of the loops, and a slice is not."""
    loops, room, count = packed.shape[:-1], packed.shape[-1], math.prod(shape)
    if not count:
        return oc.zeros((*loops, *shape), dtype=dtype)
    places = np.arange(room)
    inside = (places >= place) & (places < place + count)
    if room > count:
        single = oc.where(inside, packed, np.zeros((), packed.dtype))
        kind = np.int64 if packed.dtype.kind == "b" else packed.dtype
        packed = oc.sum(oc.reshape(single, (*loops, room // count, count)), axis=-2, dtype=kind)
    return oc.astype(oc.reshape(packed, (*loops, *shape)), dtype)


__all__ = ["Signature", "apply_gufunc", "blockwise"]
