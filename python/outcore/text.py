"""Fixed-length strings: NumPy's `S<n>` and `U<n>`, as lazy arrays of their letters."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Self

import numpy as np

from outcore._base.element_types import DTypeLike
from outcore._base.types import DType, NDArray
from outcore._lazy.array import Array, oc
from outcore._lazy.hooks import above
from outcore._lazy.indexing import Index
from outcore._lazy.node import integers, node
from outcore._lazy.typed import Typed
from outcore.errors import DTypeError, ShapeError

# How many bits a letter takes in a word of 64: a byte, or a code point of Unicode.
_BITS = {"S": 8, "U": 21}
_FEW = 32  # strings that all elements are compared with, one by one


def _letter(dtype: DType) -> DType:
    """The type of a letter's number."""
    return np.dtype(np.uint8 if dtype.kind == "S" else np.uint32)


class Text(Typed):
    """A lazy array of strings of a fixed length, bytes (`S<n>`) or Unicode (`U<n>`), as NumPy stores them.

    Made by `open` of a file of them, or of a field of records, and by `asarray`. Comparisons take strings and other
    text, and follow the order of bytes, or of code points, as do `unique`, `sort`, `min`, `max`, `categories` and
    `groupby`. These work on numbers of 64 bits, each of 8 bytes or 3 letters of Unicode: longer text takes a sort, or a
    read, for each of its numbers. Everything else is said in `x.codes`.

    >>> import numpy as np, outcore as oc
    >>> city = oc.asarray(np.asarray([b"oslo", b"rome", b"oslo"]))
    >>> (city == "oslo").compute()
    array([ True, False,  True])
    >>> oc.groupby(city).sum(np.asarray([1, 2, 4])).compute()
    array([5, 2])
    """

    __slots__ = ()
    __array_priority__ = 1.0

    def __init__(self, codes: Array, dtype: DTypeLike) -> None:
        kind = np.dtype(dtype).newbyteorder("=")
        letter = _letter(kind)
        if (
            kind.kind not in "SU"
            or codes.dtype != letter
            or not codes.ndim
            or codes.shape[-1] * letter.itemsize != kind.itemsize
        ):
            raise DTypeError(f"Text of {codes.dtype} with shape {codes.shape} as {kind}: letters are the last axis")
        super().__init__(codes, kind)

    @property
    def codes(self) -> Array:
        """The letters along one axis more, the last: bytes as uint8, code points as uint32; 0 fills short strings."""
        return self._carrier

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of each axis."""
        return self._carrier.shape[:-1]

    def _decoded(self, numbers: NDArray) -> NDArray:
        return np.ascontiguousarray(numbers).view(self._dtype).reshape(self.shape)

    def __getitem__(self, key: Index) -> Self:
        if isinstance(key, (Array, np.ndarray, list)):
            return self._like(self._carrier[key])
        keys = key if isinstance(key, tuple) else (key,)
        whole = (*keys, slice(None)) if any(part is Ellipsis for part in keys) else (*keys, Ellipsis, slice(None))
        return self._like(self._carrier[whole])

    def reshape(self, *shape: int) -> Text:
        """The array with another shape, in C order; one length may be -1."""
        lengths = list(integers(shape[0] if len(shape) == 1 else shape))
        if -1 in lengths:
            known = -int(np.prod(lengths, dtype=object))
            lengths[lengths.index(-1)] = self.size // known if known else 0
        return self._like(oc.reshape(self._carrier, (*lengths, self._carrier.shape[-1])))

    # -- words ----------------------------------------------------------------------------------------------------

    def _words(self) -> list[Array]:
        """Numbers of 64 bits, as many letters in each as go in: compared one after another they are in text's order."""
        bits = _BITS[self._dtype.kind]
        each = 64 // bits
        shifts = np.arange(each - 1, -1, -1, dtype=np.uint64) * np.uint64(bits)
        codes = self._carrier.astype(np.uint64)
        words = []
        for start in range(0, codes.shape[-1], each):
            part = codes[..., start : start + each]
            # Every letter has bits of its own, so adding is joining.
            words.append(oc.sum(part << shifts[: part.shape[-1]], axis=-1))
        return words

    def _columns(self, descending: bool = False) -> list[Array]:
        return [~word for word in self._words()] if descending else self._words()

    def _of_columns(self, columns: list[Array], descending: bool = False) -> Self:
        bits, length = _BITS[self._dtype.kind], self._carrier.shape[-1]
        shifts = np.arange(64 // bits - 1, -1, -1, dtype=np.uint64) * np.uint64(bits)
        parts = []
        for column in columns:
            word = oc.expand_dims(~column if descending else column, axis=-1)
            parts.append((word >> shifts) & np.uint64((1 << bits) - 1))
        letters = oc.concat(parts, axis=-1)[..., :length]
        return self._like(letters.astype(self._carrier.dtype))

    def searchsorted(self, values: object, side: str = "left") -> Array:
        """Where strings belong in this row, which is in order: int64, before equal ones ("left") or behind them.

        I/O: as `outcore.searchsorted`; where some have more than 8 bytes or 3 letters, both are sorted together first.
        """
        tests = of_value(values, self._dtype.kind)
        if tests is None or tests.dtype.kind != self._dtype.kind:
            raise DTypeError(f"searchsorted: {values!r} is not of {self._dtype}; give strings of one kind")
        if self.ndim != 1:
            raise ShapeError(f"searchsorted: x1 of shape {self.shape} is not one-dimensional")
        which_side: Any = side
        ours, theirs = self._words(), tests._words()
        if len(ours) == len(theirs) == 1:
            return oc.searchsorted(ours[0], theirs[0], side=which_side)
        codes = _joined(self, tests.reshape(-1)).categories().codes
        return oc.reshape(oc.searchsorted(codes[: self.size], codes[self.size :], side=which_side), tests.shape)

    def isin(self, values: object) -> Array:
        """Which elements are among some strings.

        I/O: one read; more than 32 strings are sorted, and where some have more than 8 bytes or 3 letters the elements
        with them.
        """
        tests = of_value(values, self._dtype.kind)
        if tests is None or tests.dtype.kind != self._dtype.kind:
            raise DTypeError(f"isin: {values!r} is not of {self._dtype}; give strings of one kind")
        row = tests.reshape(-1)
        if row.size <= _FEW:
            flags = oc.zeros(self.shape, dtype=bool)
            for place in range(row.size):
                flags = flags | self._equal(row[place])
            return flags
        ours, theirs = self._words(), row._words()
        if len(ours) == len(theirs) == 1:
            return oc.isin(ours[0], theirs[0])
        codes = _joined(self.reshape(-1), row).categories().codes
        return oc.reshape(oc.isin(codes[: self.size], codes[self.size :]), self.shape)

    # -- comparisons ----------------------------------------------------------------------------------------------

    def _beside(self, other: object) -> list[tuple[Array, Array]] | None:
        """The words of both sides; None for what is no text."""
        text = of_value(other, self._dtype.kind)
        if text is None:
            return None
        if text.dtype.kind != self._dtype.kind:
            raise DTypeError(f"{self._dtype} and {text.dtype} do not compare; encode one of them")
        ours, theirs = self._words(), text._words()
        nothing = Array(node(np.uint64(0)))
        length = max(len(ours), len(theirs))
        ours += [nothing] * (length - len(ours))
        theirs += [nothing] * (length - len(theirs))
        return list(zip(ours, theirs, strict=True))

    def _equal(self, other: object) -> Any:
        words = self._beside(other)
        if words is None:
            return NotImplemented
        first, *others = (ours == theirs for ours, theirs in words)
        for equal in others:
            first = first & equal
        return first

    def _ordered(self, other: object, before: bool, or_equal: bool) -> Any:
        words = self._beside(other)
        if words is None:
            return NotImplemented
        flags: Array | None = None
        for ours, theirs in reversed(words):
            less = ours < theirs if before else ours > theirs
            if flags is not None:
                flags = less | ((ours == theirs) & flags)
            else:
                flags = (less | (ours == theirs)) if or_equal else less
        return flags

    def __eq__(self, other: object) -> Any:
        return self._equal(other)

    def __ne__(self, other: object) -> Any:
        equal = self._equal(other)
        return equal if equal is NotImplemented else oc.logical_not(equal)

    def __lt__(self, other: object) -> Any:
        return self._ordered(other, before=True, or_equal=False)

    def __le__(self, other: object) -> Any:
        return self._ordered(other, before=True, or_equal=True)

    def __gt__(self, other: object) -> Any:
        return self._ordered(other, before=False, or_equal=False)

    def __ge__(self, other: object) -> Any:
        return self._ordered(other, before=False, or_equal=True)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: object, **options: object) -> object:
        flipped = {"less": "gt", "less_equal": "ge", "greater": "lt", "greater_equal": "le"}
        names = {"equal": "eq", "not_equal": "ne", "less": "lt", "less_equal": "le", "greater": "gt"}
        names |= {"greater_equal": "ge"}
        if method != "__call__" or options or ufunc.__name__ not in names:
            raise DTypeError(f"numpy.{ufunc.__name__} of outcore's text is not supported; give it .codes")
        ours = isinstance(inputs[0], Text)
        name = names[ufunc.__name__] if ours else flipped.get(ufunc.__name__, names[ufunc.__name__])
        return getattr(inputs[0] if ours else inputs[1], f"__{name}__")(inputs[1] if ours else inputs[0])

    def __array_function__(
        self,
        function: Callable[..., object],
        types: Iterable[type],
        args: tuple[object, ...],
        options: dict[str, object],
    ) -> object:
        return above.apply_to_text(function, args, options)


def _joined(first: Text, second: Text) -> Text:
    """Two rows of strings as one, of the longer type."""
    length = max(first.codes.shape[-1], second.codes.shape[-1])
    longer = first if first.codes.shape[-1] == length else second
    rows = [oc.pad(part.codes, ((0, 0), (0, length - part.codes.shape[-1]))) for part in (first, second)]
    return longer._like(oc.concat(rows))


def of_numpy(array: NDArray) -> Text:
    """The lazy array of NumPy's strings: borrowed where they lie without gaps, else copied."""
    letter = _letter(array.dtype).newbyteorder(array.dtype.byteorder)
    if not array.dtype.itemsize:
        raise ShapeError(f"strings of {array.dtype} have no letters")
    held = np.ascontiguousarray(array) if not array.flags.c_contiguous else array
    codes = held.reshape(*array.shape, 1).view(letter)
    return Text(Array(node(codes)), array.dtype)


def of_value(value: object, kind: str) -> Text | None:
    """A string, NumPy's strings, or text, as text, in bytes or letters as `kind` asks; None for anything else."""
    if isinstance(value, Text):
        return value
    if isinstance(value, str) and kind == "S":
        value = value.encode()
    elif isinstance(value, bytes) and kind == "U":
        value = value.decode()
    if not isinstance(value, (str, bytes, np.ndarray, list, tuple)):
        return None
    array = np.asarray(value)
    # The empty string is one of nothing but fillings.
    if array.dtype.kind in "SU" and not array.dtype.itemsize:
        array = array.astype(f"{array.dtype.kind}1")
    return of_numpy(array) if array.dtype.kind in "SU" else None


__all__ = ["Text"]
