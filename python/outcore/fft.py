"""The array API's `fft` extension, along axes of any length.

A lane along the axis is transformed whole where it is short (`rustfft`, `realfft`): tiles reach along the axis, the
planner cuts the others. A lane longer than `_LANE_BYTES` is laid out as a matrix and goes by the four steps of Bailey
(1990), "FFTs in external or hierarchical memory": transforms along its columns, a multiplication, transforms along its
rows, a transpose. So a transform needs no more memory than a few tiles; it moves the array a few times. Lengths with a
long prime divisor become convolutions of a power of two (Bluestein 1970).

Types: float32 and complex64 stay single, all else is computed in double precision. `norm` says what is divided by n:
"backward" (the inverse), "forward", or "ortho" (both, by √n). `n` crops an axis, or pads it with zeros at its end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from outcore import _core
from outcore._base.arguments import check_device
from outcore._base.element_types import DTypeLike
from outcore._base.types import DType
from outcore._lazy.array import Array
from outcore._lazy.node import Axis, Operand, axes_of, axis_of, integers, node, ordered_axes
from outcore._standard.creation import arange, zeros
from outcore._standard.manipulation import concat, flip, moveaxis, part_along, permute_dims, reshape, roll
from outcore.elementwise import conj, exp, real
from outcore.errors import ArgumentError, DTypeError, ShapeError

Norm = Literal["backward", "ortho", "forward"]
Transform = Callable[..., Array]

_LANE_BYTES = 16 << 20  # a longer lane goes by four steps
_SIDE = 64  # of a square tile between steps
_TILE_BYTES, _LINE_BYTES = 128 << 10, 4 << 20
_PRIME_LENGTH_MAX = 1 << 31  # the square of a place must be exact in 64 bits


def _scale(norm: Norm | None, length: int, is_inverse: bool) -> float:
    if norm not in (None, "backward", "ortho", "forward"):
        raise ArgumentError(f"fft: norm {norm!r} is not 'backward', 'ortho' or 'forward'")
    if norm == "ortho":
        return 1 / math.sqrt(length)
    return 1 / length if is_inverse == (norm in (None, "backward")) else 1.0


def _fitted(array: Array, axis: int, length: int) -> Array:
    """Cropped, or with zeros at the end of the axis."""
    if length < 1:
        raise ShapeError(f"fft: a transform of length {length}; it needs at least one element")
    before = array.shape[axis]
    if before >= length:
        return part_along(array, axis, 0, length)
    shape = (*array.shape[:axis], length - before, *array.shape[axis + 1 :])
    return concat([array, zeros(shape, dtype=array.dtype)], axis=axis)


def _complex(array: Array) -> Array:
    is_single = array.dtype in (np.float16, np.float32, np.complex64)
    return array.astype(np.complex64 if is_single else np.complex128)


def _real(array: Array) -> Array:
    if array.dtype.kind == "c":
        raise DTypeError(f"rfft: takes real numbers, not {array.dtype}; use fft()")
    return array.astype(np.float32 if array.dtype in (np.float16, np.float32) else np.float64)


def _is_long(array: Array, axis: int) -> bool:
    return array.shape[axis] * array.dtype.itemsize > _LANE_BYTES


def _lanes(name: str, array: Array, axis: int, length: int, scale: float, cut: int | None = None) -> Array:
    """The transform of lanes that are each whole in memory. Where tiles cut them, they are cut into small ones first,
    so that a line of tiles, not all that crosses it, is needed at once."""
    before = array.shape[axis]
    if cut is None and array.tile[axis] < before:
        tile = _narrow(array, axis)
        array, cut = Array(_core.copy_tiled(array._expr, tile)), tile[axis]
    return Array(_core.fourier(name, array._expr, axis, length, scale, cut))


def _narrow(array: Array, axis: int) -> list[int]:
    """A tile of `_TILE_BYTES` of which a line along the axis has `_LINE_BYTES`, or a lane if that has more."""
    tile = [1] * array.ndim
    width = max(_LINE_BYTES // (array.shape[axis] * array.dtype.itemsize), 1)
    tile[axis] = min(array.shape[axis], max(_TILE_BYTES // (width * array.dtype.itemsize), 1))
    for place in (place for place in reversed(range(array.ndim)) if place != axis):
        tile[place] = max(min(array.shape[place], width), 1)
        width //= tile[place]
    return tile


def _transform(array: Array, axis: int, is_inverse: bool, scale: float, cut: int | None = None) -> Array:
    """Σ x[j] exp(∓2πi jk/n) · scale of complex numbers along an axis of any length; `cut` is how long its tiles are."""
    if not _is_long(array, axis):
        return _lanes("backward" if is_inverse else "forward", array, axis, array.shape[axis], scale, cut)
    lanes = moveaxis(array, axis, -1)
    length = lanes.shape[-1]
    is_divisible = _largest_prime(length) * array.dtype.itemsize <= _LANE_BYTES
    made = (_four_steps if is_divisible else _by_convolution)(lanes, is_inverse, scale)
    return moveaxis(made, -1, axis)


def _largest_prime(number: int) -> int:
    """The largest prime that divides a number, by trial."""
    part, largest = 2, 1
    while part * part <= number:
        if number % part:
            part += 1
        else:
            number, largest = number // part, part
    return max(largest, number)


def _four_steps(lanes: Array, is_inverse: bool, scale: float) -> Array:
    """With n = r·c, j = c·j₁ + j₂ and k = k₁ + r·k₂: the transform of lanes of r over j₁, times exp(∓2πi j₂k₁/n), then
    of lanes of c over j₂."""
    length = lanes.shape[-1]
    rows = max(part for part in range(1, math.isqrt(length) + 1) if length % part == 0)
    columns = length // rows
    ndim = lanes.ndim + 1
    matrix = reshape(lanes, (*lanes.shape[:-1], rows, columns))
    # A row of square tiles and a column of them have few bytes both, so neither step needs all of the matrix at once.
    side = min(_SIDE, rows, columns)
    matrix = Array(_core.copy_tiled(matrix._expr, [*(1,) * (ndim - 2), side, side]))
    inner = _transform(matrix, ndim - 2, is_inverse, 1.0, side)
    places = arange(rows)[:, None] * arange(columns)[None, :]
    turned = inner * _turns(places, length, is_inverse, lanes.dtype)
    turned = Array(_core.copy_tiled(turned._expr, [*(1,) * (ndim - 2), side, side]))
    outer = _transform(turned, ndim - 1, is_inverse, scale, side)
    return reshape(permute_dims(outer, (*range(ndim - 2), ndim - 1, ndim - 2)), lanes.shape)


def _turns(places: Array, length: int, is_inverse: bool, dtype: DType) -> Array:
    """exp(∓2πi p/n) of places 0 ≤ p < n."""
    step = (2j if is_inverse else -2j) * math.pi / length
    return exp(places.astype(np.complex128) * step).astype(dtype)


def _by_convolution(lanes: Array, is_inverse: bool, scale: float) -> Array:
    """jk = (j² + k² − (k−j)²)/2: times exp(∓πi j²/n), convolved with its inverse, times exp(∓πi k²/n)."""
    length = lanes.shape[-1]
    if length > _PRIME_LENGTH_MAX:
        raise ShapeError(f"fft: length {length} has a prime divisor beyond {_PRIME_LENGTH_MAX}; pad it (n=)")
    places = arange(length)
    chirp = _turns(places * places % (2 * length), 2 * length, is_inverse, np.dtype(np.complex128))
    padded = 1 << (2 * length - 2).bit_length()
    kernel = conj(chirp)
    gap = zeros((padded - 2 * length + 1,), dtype=np.complex128)
    around = concat([kernel, gap, flip(kernel[1:])], axis=0)
    factors = _transform(around, 0, False, 1.0)
    signal = _fitted(lanes.astype(np.complex128) * chirp, lanes.ndim - 1, padded)
    product = _transform(signal, lanes.ndim - 1, False, 1.0) * factors
    convolved = _transform(product, lanes.ndim - 1, True, scale / padded)
    return (part_along(convolved, lanes.ndim - 1, 0, length) * chirp).astype(lanes.dtype)


def _along(x: Operand, axis: int | str, n: int | None, name: str) -> tuple[Array, int, int]:
    array = Array(node(x))
    place = axis_of(name, axis, array)
    return array, place, array.shape[place] if n is None else integers(n)[0]


def fft(x: Operand, /, *, n: int | None = None, axis: int | str = -1, norm: Norm = "backward") -> Array:
    """The discrete Fourier transform along an axis: complex, of the same shape (or length `n` along the axis).

    Raises ShapeError for a length below 1. I/O: one read of `x` where tiles reach along the axis, as along the last one
    of a file; across them one write and one read more of what does not fit the memory. Lanes beyond 16 MiB are moved
    about three times more. `explain` shows it.

    >>> import numpy as np, outcore as oc
    >>> oc.fft.fft(np.asarray([1.0, 0.0, 0.0, 0.0])).compute()
    array([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j])
    """
    array, place, length = _along(x, axis, n, "fft")
    return _transform(_fitted(_complex(array), place, length), place, False, _scale(norm, length, False))


def ifft(x: Operand, /, *, n: int | None = None, axis: int | str = -1, norm: Norm = "backward") -> Array:
    """The inverse of `fft`. Errors and I/O: as `fft`.

    >>> import numpy as np, outcore as oc
    >>> oc.fft.ifft(np.asarray([4.0, 0.0, 0.0, 0.0])).compute()
    array([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j])
    """
    array, place, length = _along(x, axis, n, "ifft")
    return _transform(_fitted(_complex(array), place, length), place, True, _scale(norm, length, True))


def rfft(x: Operand, /, *, n: int | None = None, axis: int | str = -1, norm: Norm = "backward") -> Array:
    """The transform of real numbers: the first n/2 + 1 coefficients, of which the others are the conjugates.

    Raises DTypeError for complex numbers. I/O: as `fft`.

    >>> import numpy as np, outcore as oc
    >>> oc.fft.rfft(np.asarray([1.0, 0.0, 0.0, 0.0])).real.compute()
    array([1., 1., 1.])
    """
    array, place, length = _along(x, axis, n, "rfft")
    fitted = _fitted(_real(array), place, length)
    scale = _scale(norm, length, False)
    if _is_long(fitted, place):
        return part_along(_transform(_complex(fitted), place, False, scale), place, 0, length // 2 + 1)
    return _lanes("from_real", fitted, place, length, scale)


def irfft(x: Operand, /, *, n: int | None = None, axis: int | str = -1, norm: Norm = "backward") -> Array:
    """The inverse of `rfft`: `n` real numbers, by default 2·(m − 1) of m coefficients. Errors and I/O: as `fft`.

    >>> import numpy as np, outcore as oc
    >>> oc.fft.irfft(np.asarray([4.0, 0.0, 0.0])).compute()
    array([1., 1., 1., 1.])
    """
    array, place, count = _along(x, axis, None, "irfft")
    length = 2 * (count - 1) if n is None else integers(n)[0]
    half = _fitted(_complex(array), place, length // 2 + 1) if length > 0 else _fitted(array, place, length)
    scale = _scale(norm, length, True)
    if not _is_long(half, place):
        return _lanes("to_real", half, place, length, scale)
    mirrored = conj(flip(part_along(half, place, 1, (length + 1) // 2), axis=place))
    ends = real(half).astype(half.dtype)
    first = part_along(ends, place, 0, 1)
    if length % 2:
        parts = [first, part_along(half, place, 1, half.shape[place]), mirrored]
    else:
        last = half.shape[place] - 1
        parts = [first, part_along(half, place, 1, last), part_along(ends, place, last, last + 1), mirrored]
    return real(_transform(concat(parts, axis=place), place, True, scale))


_SWAPPED: dict[str | None, Norm] = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}


def hfft(x: Operand, /, *, n: int | None = None, axis: int | str = -1, norm: Norm = "backward") -> Array:
    """The transform, real, of a signal with Hermitian symmetry of which one half is given. Errors and I/O: as `irfft`.

    >>> import numpy as np, outcore as oc
    >>> oc.fft.hfft(np.asarray([1.0, 0.0, 0.0])).compute()
    array([1., 1., 1., 1.])
    """
    return irfft(conj(_complex(Array(node(x)))), n=n, axis=axis, norm=_SWAPPED.get(norm, norm))


def ihfft(x: Operand, /, *, n: int | None = None, axis: int | str = -1, norm: Norm = "backward") -> Array:
    """The inverse of `hfft`. Errors and I/O: as `rfft`.

    >>> import numpy as np, outcore as oc
    >>> oc.fft.ihfft(np.asarray([4.0, 0.0, 0.0, 0.0])).real.compute()
    array([1., 1., 1.])
    """
    return conj(rfft(x, n=n, axis=axis, norm=_SWAPPED.get(norm, norm)))


def _over_axes(
    name: str, x: Operand, s: Sequence[int] | None, axes: Sequence[int | str] | None
) -> tuple[Array, list[int], list[int | None]]:
    """The array, the axes in the order they were named, and a length for each that is given one."""
    array = Array(node(x))
    if axes is None:
        count = array.ndim if s is None else len(s)
        places = list(range(array.ndim))[array.ndim - count :]
    else:
        axes_of(name, axes, array)
        places = ordered_axes(name, axes, array)
    if s is not None and len(s) != len(places):
        raise ShapeError(f"{name}: lengths {tuple(s)} for axes {tuple(places)}")
    lengths = [None] * len(places) if s is None else [None if length == -1 else length for length in integers(s)]
    return array, places, list(lengths)


def _chained(one: Transform, array: Array, places: Sequence[int], lengths: Sequence[int | None], norm: Norm) -> Array:
    for place, length in zip(reversed(places), reversed(lengths), strict=True):
        array = one(array, n=length, axis=place, norm=norm)
    return array


def fftn(
    x: Operand, /, *, s: Sequence[int] | None = None, axes: Sequence[int | str] | None = None, norm: Norm = "backward"
) -> Array:
    """`fft` along several axes, all by default; `s` gives their lengths. I/O: one read, and one move for each axis
    that is longer than memory allows to keep whole.

    >>> import numpy as np, outcore as oc
    >>> oc.fft.fftn(np.asarray([[1.0, 0.0], [0.0, 0.0]])).compute()
    array([[1.+0.j, 1.+0.j],
           [1.+0.j, 1.+0.j]])
    """
    return _chained(fft, *_over_axes("fftn", x, s, axes), norm)


def ifftn(
    x: Operand, /, *, s: Sequence[int] | None = None, axes: Sequence[int | str] | None = None, norm: Norm = "backward"
) -> Array:
    """The inverse of `fftn`. I/O: as `fftn`.

    >>> import numpy as np, outcore as oc
    >>> oc.fft.ifftn(np.asarray([[4.0, 0.0], [0.0, 0.0]])).compute()
    array([[1.+0.j, 1.+0.j],
           [1.+0.j, 1.+0.j]])
    """
    return _chained(ifft, *_over_axes("ifftn", x, s, axes), norm)


def rfftn(
    x: Operand, /, *, s: Sequence[int] | None = None, axes: Sequence[int | str] | None = None, norm: Norm = "backward"
) -> Array:
    """`rfft` along the last of several axes and `fft` along the others. I/O: as `fftn`.

    >>> import numpy as np, outcore as oc
    >>> oc.fft.rfftn(np.ones((2, 2))).compute()
    array([[4.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]])
    """
    array, places, lengths = _over_axes("rfftn", x, s, axes)
    if not places:
        raise ShapeError(f"rfftn: no axes of {array.shape} to transform along")
    half = rfft(array, n=lengths[-1], axis=places[-1], norm=norm)
    return _chained(fft, half, places[:-1], lengths[:-1], norm)


def irfftn(
    x: Operand, /, *, s: Sequence[int] | None = None, axes: Sequence[int | str] | None = None, norm: Norm = "backward"
) -> Array:
    """The inverse of `rfftn`. I/O: as `fftn`.

    >>> import numpy as np, outcore as oc
    >>> oc.fft.irfftn(np.asarray([[4.0, 0.0], [0.0, 0.0]])).compute()
    array([[1., 1.],
           [1., 1.]])
    """
    array, places, lengths = _over_axes("irfftn", x, s, axes)
    if not places:
        raise ShapeError(f"irfftn: no axes of {array.shape} to transform along")
    array = _chained(ifft, array, places[:-1], lengths[:-1], norm)
    return irfft(array, n=lengths[-1], axis=places[-1], norm=norm)


def _frequencies(n: int, d: float, dtype: DTypeLike, device: object) -> tuple[DType, float]:
    check_device(device)
    if n < 1:
        raise ShapeError(f"fftfreq: a transform of length {n}; it needs at least one element")
    kind = np.dtype(np.float64 if dtype is None else dtype)
    if kind.kind != "f":
        raise DTypeError(f"fftfreq: frequencies are floating-point numbers, not {kind}")
    return kind, 1.0 / (n * d)


def fftfreq(n: int, /, *, d: float = 1.0, dtype: DTypeLike = None, device: object = None) -> Array:
    """The frequencies of `fft`'s coefficients, in cycles per unit of the spacing `d`. No I/O.

    >>> import outcore as oc
    >>> oc.fft.fftfreq(4).compute()
    array([ 0.  ,  0.25, -0.5 , -0.25])
    """
    kind, step = _frequencies(n, d, dtype, device)
    positive = (n - 1) // 2 + 1
    places = concat([arange(positive), arange(-(n // 2), 0)], axis=0)
    return (places.astype(np.float64) * step).astype(kind)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: DTypeLike = None, device: object = None) -> Array:
    """The frequencies of `rfft`'s coefficients, in cycles per unit of the spacing `d`. No I/O.

    >>> import outcore as oc
    >>> oc.fft.rfftfreq(4).compute()
    array([0.  , 0.25, 0.5 ])
    """
    kind, step = _frequencies(n, d, dtype, device)
    return (arange(n // 2 + 1).astype(np.float64) * step).astype(kind)


def fftshift(x: Operand, /, *, axes: Axis = None) -> Array:
    """Frequency zero moved to the middle of the axes, all by default. No I/O of its own.

    >>> import outcore as oc
    >>> oc.fft.fftshift(oc.fft.fftfreq(4)).compute()
    array([-0.5 , -0.25,  0.  ,  0.25])
    """
    array = Array(node(x))
    places = axes_of("fftshift", axes, array)
    return roll(array, tuple(array.shape[place] // 2 for place in places), axis=tuple(places)) if places else array


def ifftshift(x: Operand, /, *, axes: Axis = None) -> Array:
    """The inverse of `fftshift`. No I/O of its own.

    >>> import outcore as oc
    >>> oc.fft.ifftshift(oc.fft.fftshift(oc.fft.fftfreq(3))).compute().round(3)
    array([ 0.   ,  0.333, -0.333])
    """
    array = Array(node(x))
    places = axes_of("ifftshift", axes, array)
    return roll(array, tuple(-(array.shape[place] // 2) for place in places), axis=tuple(places)) if places else array


__all__ = [
    "fft",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfftn",
    "rfft",
    "rfftfreq",
    "rfftn",
]
