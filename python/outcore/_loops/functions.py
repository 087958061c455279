"""Functions of numbers that bodies of loops may call, known by the objects that names mean."""

from __future__ import annotations

import ast
import builtins
import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto

import numpy as np

from outcore import elementwise
from outcore._base.element_types import NAME_OF
from outcore._base.types import DType
from outcore._functions.compiled import Jitted
from outcore._lazy.hooks import functions
from outcore._standard.creation import asarray
from outcore.errors import OutcoreError

NumberFunction = Callable[..., object]


class Manner(Enum):
    """The rules of types that a function follows."""

    ARRAY = auto()  # NumPy's promotion; the result decides types as an element does
    PYTHON = auto()  # a builtin that keeps the type of its arguments
    MATH = auto()  # of Python floats; the result is one
    WHOLE = auto()  # of Python floats; the result is a Python integer
    FOLD = auto()  # of two or more arguments, folded from the left
    CAST = auto()  # to Python's number type, which lets others decide
    DTYPE = auto()  # to an element type


@dataclass(frozen=True)
class Callee:
    """A function of numbers: `plain` of Python's and NumPy's numbers, `lazy` of arrays."""

    name: str
    manner: Manner
    plain: NumberFunction
    lazy: NumberFunction
    dtype: DType | None = None


_ALIASES = {"fabs": "abs"}
_WHOLE = frozenset({"ceil", "floor", "trunc"})
# Functions of the module `math` that the standard has under the same name, with the same meaning.
_MATH = frozenset(
    {
        *("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "copysign", "cos", "cosh", "exp"),
        *("exp2", "expm1", "fabs", "floor", "hypot", "isfinite", "isinf", "isnan", "log", "log10", "log1p", "log2"),
        *("nextafter", "pow", "sin", "sinh", "sqrt", "tan", "tanh", "trunc"),
    }
)
_NUMPY = ("clip", "imag", "real", "round", "where")  # functions of each element that are no ufuncs
_CASTS: dict[type, DType] = {
    bool: np.dtype(bool),
    int: np.dtype(np.int64),
    float: np.dtype(float),
    complex: np.dtype(complex),
}
_CREATIONS = ("empty", "zeros", "ones", "full", "empty_like", "zeros_like", "ones_like", "full_like")
_UPDATES = {"min": "minimum", "max": "maximum", "minimum": "minimum", "maximum": "maximum"}


def callee_of(value: object) -> Callee | None:
    """The function of numbers that an object is; None for what is none."""
    if isinstance(value, Jitted):
        return Callee(value.__name__, Manner.ARRAY, value, value)
    if isinstance(value, np.ufunc):
        return Callee(value.__name__, Manner.ARRAY, value, value) if _is_of_lazy_arrays(value) else None
    if isinstance(value, type):
        return _cast_of(value)
    name = getattr(value, "__name__", None)
    return _function_of(name, value) if isinstance(name, str) and callable(value) else None


@functools.cache
def _is_of_lazy_arrays(function: np.ufunc) -> bool:
    """Whether a ufunc takes lazy arrays, of some type; those of other libraries and some of NumPy's do not."""
    if function.nout != 1 or function.signature is not None:
        return False
    for dtype in (np.dtype(float), np.dtype(np.int64)):
        try:
            function(*(asarray(1, dtype=dtype) for _ in range(function.nin)))
        except (OutcoreError, TypeError):
            continue
        return True
    return False


def is_of_numbers(value: object, node: ast.Call) -> bool:
    """Whether a call of an object is one that bodies take element by element: of numbers, all by position."""
    callee = callee_of(value)
    if callee is None or isinstance(value, Jitted):
        return callee is not None
    if node.keywords or any(isinstance(part, ast.Starred) for part in node.args):
        return False
    if callee.manner is Manner.FOLD:
        return len(node.args) > 1
    if isinstance(value, np.ufunc):
        return len(node.args) == value.nin
    return value is not np.round or len(node.args) == 1


def _function_of(name: str, value: NumberFunction) -> Callee | None:
    if value in (builtins.min, builtins.max):
        return Callee(name, Manner.FOLD, value, getattr(elementwise, _UPDATES[name]))
    if value in (builtins.abs, builtins.pow):
        return Callee(name, Manner.PYTHON, value, getattr(elementwise, name))
    if value is builtins.round:
        return Callee(name, Manner.WHOLE, value, elementwise.round)
    if getattr(math, name, None) is value and name in _MATH:
        manner = Manner.WHOLE if name in _WHOLE else Manner.MATH
        return Callee(name, manner, value, getattr(elementwise, _ALIASES.get(name, name)))
    if name in _NUMPY and getattr(np, name, None) is value:
        return Callee(name, Manner.ARRAY, value, getattr(functions, name))
    if name in (*elementwise.__all__, "where") and getattr(functions, name, None) is value:
        return Callee(name, Manner.ARRAY, value, value)
    return None


def _cast_of(value: type) -> Callee | None:
    if value in _CASTS:
        return Callee(value.__name__, Manner.CAST, value, elementwise.positive, _CASTS[value])
    if issubclass(value, np.generic):
        kind = np.dtype(value)
        if kind in NAME_OF:
            return Callee(value.__name__, Manner.DTYPE, value, elementwise.positive, kind)
    return None


def creation_of(value: object) -> str | None:
    """The name of the function that makes an array, of this package's or NumPy's; None for other objects."""
    for name in _CREATIONS:
        if value is getattr(np, name) or value is getattr(functions, name):
            return name
    return None


def update_of(value: object) -> str | None:
    """ "minimum" or "maximum" for a function that gives the smaller or larger of its arguments."""
    if value in (builtins.min, builtins.max, np.minimum, np.maximum, elementwise.minimum, elementwise.maximum):
        return _UPDATES[str(getattr(value, "__name__", ""))]
    return None


def is_range(value: object) -> bool:
    """Whether the object is Python's `range`."""
    return value is builtins.range


def is_length(value: object) -> bool:
    """Whether the object is Python's `len`."""
    return value is builtins.len


def taken_beside(value: object) -> str:
    """The functions that are taken, for one that is not: of `math` by name, since others of it are none of numbers."""
    if getattr(value, "__module__", None) == math.__name__:
        return f"of the module math, {', '.join(sorted(_MATH))}"
    return "element-wise functions of numpy and outcore, most of math, min, max, abs, pow and round"


def folded(call: NumberFunction, parts: Sequence[object]) -> object:
    """A function of two, from the left."""
    total, *others = parts
    for part in others:
        total = call(total, part)
    return total


__all__ = [
    "Callee",
    "Manner",
    "NumberFunction",
    "callee_of",
    "creation_of",
    "folded",
    "is_length",
    "is_of_numbers",
    "is_range",
    "taken_beside",
    "update_of",
]
