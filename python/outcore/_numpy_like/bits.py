"""Bits in bytes: NumPy's `packbits` and `unpackbits`."""

from __future__ import annotations

from typing import Literal

import numpy as np

from outcore._lazy.array import Array
from outcore._lazy.node import Operand, axis_of, node
from outcore._numpy_like.arranging import pad
from outcore._standard.manipulation import expand_dims, part_along, reshape
from outcore._standard.searching import where
from outcore._standard.statistical import sum
from outcore.elementwise import bitwise_and, bitwise_right_shift
from outcore.errors import ArgumentError, DTypeError

BitOrder = Literal["big", "little"]


def _shifts(name: str, order: str, after: int) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    """How far each of eight bits lies in its byte, along an axis with `after` more behind it."""
    if order not in ("big", "little"):
        raise ArgumentError(f"{name}: bitorder {order!r} is neither 'big' nor 'little'")
    numbers = np.arange(8, dtype=np.uint8)
    return (numbers[::-1] if order == "big" else numbers).reshape((8,) + (1,) * after)


def packbits(x: Operand, /, *, axis: int | str | None = None, bitorder: BitOrder = "big") -> Array:
    """Elements that are zero or not as bits, eight to a byte along an axis (None: in C order); uint8.

    Bits missing to eight are zero. Raises DTypeError for what is neither integers nor bool. I/O: one read of `x`.

    >>> import numpy as np, outcore as oc
    >>> oc.packbits(np.asarray([1, 0, 1, 0, 0, 0, 0, 1, 1])).compute()
    array([161, 128], dtype=uint8)
    """
    array = Array(node(x))
    if array.dtype.kind not in "biu":
        raise DTypeError(f"packbits: takes integers and bool, not {array.dtype}")
    array = array.ravel() if axis is None else array
    place = axis_of("packbits", axis or 0, array)
    shifts = _shifts("packbits", bitorder, array.ndim - place - 1)
    widths = [(0, 0)] * array.ndim
    widths[place] = (0, -array.shape[place] % 8)
    flags = pad(array != 0, widths)
    eights = reshape(flags, (*flags.shape[:place], flags.shape[place] // 8, 8, *flags.shape[place + 1 :]))
    return sum(where(eights, np.left_shift(np.uint8(1), shifts), np.uint8(0)), axis=place + 1, dtype=np.uint8)


def unpackbits(
    x: Operand, /, *, axis: int | str | None = None, count: int | None = None, bitorder: BitOrder = "big"
) -> Array:
    """The bits of bytes as zeros and ones along an axis (None: in C order); uint8.

    `count`: so many of them, with zeros behind where there are fewer; all but so many of the last below zero.
    Raises DTypeError for anything but uint8. I/O: one read of `x`.

    >>> import numpy as np, outcore as oc
    >>> oc.unpackbits(np.asarray([161], dtype=np.uint8), count=4).compute()
    array([1, 0, 1, 0], dtype=uint8)
    """
    array = Array(node(x))
    if array.dtype != np.uint8:
        raise DTypeError(f"unpackbits: takes uint8, not {array.dtype}")
    array = array.ravel() if axis is None else array
    place = axis_of("unpackbits", axis or 0, array)
    shifts = _shifts("unpackbits", bitorder, array.ndim - place - 1)
    apart = bitwise_and(bitwise_right_shift(expand_dims(array, axis=place + 1), shifts), np.uint8(1))
    bits = reshape(apart, (*array.shape[:place], 8 * array.shape[place], *array.shape[place + 1 :]))
    if count is None:
        return bits
    length = bits.shape[place]
    if count < -length:
        raise ArgumentError(f"unpackbits: count={count} leaves less than nothing of {length} bits")
    if count <= length:
        return part_along(bits, place, 0, count if count >= 0 else length + count)
    widths = [(0, 0)] * bits.ndim
    widths[place] = (0, count - length)
    return pad(bits, widths)


__all__ = ["packbits", "unpackbits"]
