"""Numbers of a body: stand-ins of leaves combined by outcore's own functions, so that types follow NumPy's promotion.

Python's numbers are weak: loop indices, constants, and results of `float`, `int` and the module `math`, also where
they depend on elements. Beside an element they take its type, as in NumPy; among themselves they are float64, int64,
complex128 and bool.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from outcore import _core, elementwise
from outcore._base.element_types import NAME_OF
from outcore._base.types import DType
from outcore._lazy.array import Array
from outcore._lazy.hooks import functions
from outcore._lazy.node import as_numpy, constant, default_dtype
from outcore._loops.functions import Callee, Manner, folded
from outcore._loops.program import Leaf
from outcore.errors import DTypeError, RangeError

PlainNumber: TypeAlias = "bool | int | float | complex | np.generic"


class Computed(NamedTuple):
    """A number that depends on leaves; of a loop index also the interval of its values."""

    array: Array
    is_weak: bool
    interval: tuple[int, int] | None = None


NumberTerm: TypeAlias = "Computed | PlainNumber"


class Leaves:
    """The leaves of a value in the order of their first use, each with its stand-in."""

    def __init__(self) -> None:
        self.stand_ins: dict[Leaf, Array] = {}

    def stand_in(self, leaf: Leaf, dtype: DType) -> Array:
        """The array that stands for a leaf; equal leaves have one."""
        if leaf not in self.stand_ins:
            self.stand_ins[leaf] = Array(_core.loop_leaf(len(self.stand_ins), NAME_OF[dtype]))
        return self.stand_ins[leaf]


def is_plain(value: object) -> bool:
    """Whether it is a number of Python's or NumPy's."""
    return isinstance(value, (bool, int, float, complex, np.generic))


def is_strong(term: NumberTerm) -> bool:
    """Whether the type of the term decides that of a result."""
    return not term.is_weak if isinstance(term, Computed) else isinstance(term, np.generic)


def dtype_of_term(term: NumberTerm) -> DType:
    """The element type of a term by itself."""
    if isinstance(term, Computed):
        return term.array.dtype
    return term.dtype if isinstance(term, np.generic) else default_dtype(term)


def weak_zero(dtype: DType) -> bool | int | float | complex:
    """A Python number of the kind of an element type."""
    return {"b": False, "f": 0.0, "c": 0j}.get(dtype.kind, 0)


def promoted(terms: Sequence[NumberTerm]) -> DType:
    """The type that the terms promote to together."""
    strong = [dtype_of_term(term) for term in terms if is_strong(term)]
    weak = [dtype_of_term(term) for term in terms if not is_strong(term)]
    if not strong:
        return np.result_type(*weak)
    return np.result_type(*strong, *map(weak_zero, weak))


def as_dtype(term: NumberTerm, dtype: DType) -> Array:
    """The term as an array of a type that it promotes to. Raises RangeError for integers beyond the type."""
    if not isinstance(term, Computed):
        if isinstance(term, np.generic):
            return Array(constant((), term.astype(dtype).item(), dtype))
        return Array(constant((), term, dtype))
    if term.interval is not None and dtype.kind in "iu":
        limits, (low, high) = np.iinfo(dtype), term.interval
        if low < limits.min or high > limits.max:
            raise RangeError(f"integers from {low} to {high} are out of bounds for {dtype}")
    return term.array if term.array.dtype == dtype else term.array.astype(dtype)


def as_array(term: NumberTerm) -> Array:
    """The term in a type of its own."""
    return as_dtype(term, dtype_of_term(term))


def stored(term: NumberTerm, dtype: DType) -> Array:
    """The term as an element of an array of `dtype`, converted as NumPy's assignment does.

    Raises DTypeError for complex numbers as real ones, RangeError for integers that the type does not hold.
    """
    if not isinstance(term, Computed):
        plain = term.item() if isinstance(term, np.generic) else term
        if isinstance(plain, complex) and dtype.kind not in "cb":
            raise DTypeError(f"the complex number {plain} does not go into an array of {dtype}")
        return Array(constant((), as_numpy(plain, dtype).item(), dtype))
    if term.array.dtype.kind == "c" and dtype.kind not in "cb":
        raise DTypeError(f"{term.array.dtype} does not go into an array of {dtype}: take .real or .imag")
    return as_dtype(term, dtype)


def _numbers(term: NumberTerm) -> NumberTerm:
    """Python's bool as the integer that it is in arithmetic."""
    if isinstance(term, Computed) and term.is_weak and term.array.dtype.kind == "b":
        return Computed(term.array.astype(np.int64), True, (0, 1))
    return int(term) if isinstance(term, bool) else term


_BITS = frozenset({operator.and_, operator.or_, operator.xor})
ArrayOperator = Callable[[object, object], object]


def combined(call: ArrayOperator, left: NumberTerm, right: NumberTerm) -> NumberTerm:
    """The result of an operator, by NumPy's promotion."""
    if is_plain(left) and is_plain(right):
        return call(left, right)  # type: ignore[return-value]  # a number, as both are
    is_weak = not (is_strong(left) or is_strong(right))
    if call not in _BITS and is_weak:
        left, right = _numbers(left), _numbers(right)
    common = promoted((left, right))
    result = call(as_dtype(left, common), as_dtype(right, common))
    return Computed(_array(result), is_weak)


def compared(call: ArrayOperator, left: NumberTerm, right: NumberTerm) -> NumberTerm:
    """The result of a comparison."""
    if is_plain(left) and is_plain(right):
        return bool(call(left, right))
    is_weak = not (is_strong(left) or is_strong(right))
    terms = _numbers(left), _numbers(right)
    types = [dtype_of_term(term) for term in terms]
    # Integers are compared as they are: an element need not hold the other side.
    common = np.result_type(*types) if all(kind.kind in "biu" for kind in types) else promoted(terms)
    sides = [as_dtype(term, common) for term in terms]
    return Computed(_array(call(*sides)), is_weak)


def truth(term: NumberTerm) -> Array | bool:
    """Whether the term is not 0."""
    if not isinstance(term, Computed):
        return bool(term)
    return term.array if term.array.dtype.kind == "b" else _array(operator.ne(term.array, 0))


def chosen_of(test: NumberTerm, yes: NumberTerm, no: NumberTerm) -> NumberTerm:
    """One of two, by a number that is 0 or not."""
    holds = truth(test)
    if isinstance(holds, bool):
        return yes if holds else no
    common = promoted((yes, no))
    result = functions.where(holds, as_dtype(yes, common), as_dtype(no, common))
    return Computed(_array(result), not (is_strong(yes) or is_strong(no)))


def negated(term: NumberTerm) -> NumberTerm:
    """The opposite number."""
    term = _numbers(term)
    return Computed(-term.array, term.is_weak) if isinstance(term, Computed) else -term  # type: ignore[operator]


def inverted(term: NumberTerm) -> NumberTerm:
    """The bits of an integer turned over."""
    term = _numbers(term)
    return Computed(~term.array, term.is_weak) if isinstance(term, Computed) else ~term  # type: ignore[operator]


def applied(callee: Callee, terms: Sequence[NumberTerm]) -> NumberTerm:
    """The result of a function of numbers."""
    if all(map(is_plain, terms)):
        return callee.plain(*terms)  # type: ignore[return-value]  # a number, as all are
    if callee.manner is Manner.ARRAY:
        return _applied_to_arrays(callee, terms)
    if callee.manner is Manner.FOLD:
        if len(terms) < 2:
            raise TypeError(f"{callee.name} of one number: two or more are right")
        is_weak = not any(map(is_strong, terms))
        common = promoted(terms)
        return Computed(_array(folded(callee.lazy, [as_dtype(term, common) for term in terms])), is_weak)
    if callee.name == "pow" and callee.manner is Manner.PYTHON and len(terms) == 2:
        return combined(operator.pow, *terms)
    if callee.manner is Manner.MATH:
        return Computed(_array(callee.lazy(*(_real(term, np.dtype(float)) for term in terms))), True)
    if len(terms) != 1:
        raise TypeError(f"{callee.name} of {len(terms)} numbers: one is right")
    return _applied_to_one(callee, terms[0])


def _applied_to_one(callee: Callee, term: NumberTerm) -> NumberTerm:
    if callee.manner is Manner.PYTHON:
        number = _numbers(term)
        return Computed(_array(callee.lazy(as_array(number))), not is_strong(number))
    if callee.manner is Manner.WHOLE:
        is_whole = dtype_of_term(term).kind in "biu"
        rounded = as_array(term) if is_whole else _array(callee.lazy(_real(term, np.dtype(float))))
        return Computed(rounded.astype(np.int64), True)
    assert callee.dtype is not None
    if callee.dtype.kind == "c" or callee.dtype.kind == "b":
        cast = as_array(term).astype(callee.dtype)
    else:
        cast = _real(term, callee.dtype)
    return Computed(cast, callee.manner is Manner.CAST)


def _applied_to_arrays(callee: Callee, terms: Sequence[NumberTerm]) -> NumberTerm:
    if callee.name == "where":
        if len(terms) != 3:
            raise TypeError(f"where of {len(terms)} numbers: three are right")
        choice = chosen_of(*terms)
        return Computed(as_array(choice), False)
    strong = any(map(is_strong, terms))
    common = promoted(terms)
    arrays = [as_dtype(term, common) if strong and not is_strong(term) else as_array(term) for term in terms]
    return Computed(_array(callee.lazy(*arrays)), False)


def extreme_of(name: str, terms: Sequence[NumberTerm]) -> NumberTerm:
    """The smallest or largest of some numbers: `name` is "minimum" or "maximum"."""
    if len(terms) == 1:
        return terms[0]
    common = promoted(terms)
    result = folded(getattr(elementwise, name), [as_dtype(term, common) for term in terms])
    return Computed(_array(result), not any(map(is_strong, terms)))


def _real(term: NumberTerm, dtype: DType) -> Array:
    """A term that is not complex, cast."""
    array = as_array(term)
    if array.dtype.kind == "c":
        raise DTypeError(f"{array.dtype} does not become {dtype}: take .real or .imag")
    return array.astype(dtype)


def _array(value: object) -> Array:
    """The result of a function of arrays, which is one of one element."""
    if isinstance(value, Array) and value.shape in ((), (1,)):
        return value
    raise DTypeError("the function gives no number for each element")


def part_of(term: NumberTerm, name: str) -> NumberTerm:
    """The real or imaginary part."""
    if not isinstance(term, Computed):
        return getattr(term, name)  # type: ignore[no-any-return]
    return Computed(
        _array(elementwise.real(term.array) if name == "real" else elementwise.imag(term.array)), term.is_weak
    )


__all__ = [
    "ArrayOperator",
    "Computed",
    "Leaves",
    "NumberTerm",
    "applied",
    "as_array",
    "chosen_of",
    "combined",
    "compared",
    "dtype_of_term",
    "extreme_of",
    "inverted",
    "is_plain",
    "is_strong",
    "negated",
    "part_of",
    "promoted",
    "stored",
    "truth",
    "weak_zero",
]
