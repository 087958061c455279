"""Element-wise functions of the array API standard.

Every function takes arrays, NumPy arrays or Python scalars, broadcasts shapes, promotes types by NumPy 2's rules and
costs no I/O of its own: chains of them are fused into the pass that reads their operands. Mismatched shapes raise
ShapeError naming both; a type an operation does not take raises DTypeError.
"""

from __future__ import annotations

from types import CodeType
from typing import Protocol, TypeVar

import numpy as np

from outcore import _core
from outcore._lazy.array import Array
from outcore._lazy.node import Operand, constant, expr_dtype, is_weak, node, pair, weak


class Unary(Protocol):
    """A function of one array."""

    __name__: str
    __qualname__: str
    __code__: CodeType

    def __call__(self, x: Operand, /) -> Array: ...


class Binary(Protocol):
    """A function of two arrays that broadcast together."""

    __name__: str
    __qualname__: str
    __code__: CodeType

    def __call__(self, x1: Operand, x2: Operand, /) -> Array: ...


ElementFunction = TypeVar("ElementFunction", Unary, Binary)


# The types that a function takes and gives.
_PROMOTED = "Gives the type both promote to."
_DIFFERENCE = f"{_PROMOTED} Raises DTypeError for bool."
_REMAINDER = f"{_PROMOTED} Raises DTypeError for complex numbers."
_QUOTIENT = "Floating point: integers and bool as float64."
_FLOATS = "Floating point, of integers float16 to float64 by their size."
_REALS = f"{_FLOATS} Raises DTypeError for complex numbers."
_KEPT = "Gives the type of `x`; bool becomes a number."
_NUMBERS = "Gives the type of `x`. Raises DTypeError for bool."
_ROUNDED = "Gives the type of `x`. Raises DTypeError for complex numbers."
_REAL_PART = "Gives the type of `x`, for complex numbers that of their real part."
_BITS = "Integers and bool; raises DTypeError for other types."
_TRUTH = "Gives bool."
_ORDERED = "Gives bool. Raises DTypeError for complex numbers."
_TOGETHER = "Element-wise: `x1` and `x2` broadcast together, or ShapeError."
_FUSED = "fused with what comes before and after"


def _unary(name: str, text: str, types: str, example: str, core: str | None = None) -> Unary:
    """A function of one array; `core` is the kernel's name where it is not the standard's."""

    def function(x: Operand, /) -> Array:
        return Array(_core.unary(core or name, node(x)))

    shape = "Element-wise: the shape of `x`."
    return _named(function, name, text, f"{shape} {types}\nI/O: one read of `x`, {_FUSED}.", example)


def _binary(name: str, text: str, types: str, example: str) -> Binary:
    """A function of two arrays; the second of the example is a number."""

    def function(x1: Operand, x2: Operand, /) -> Array:
        return Array(_core.binary(name, *pair(x1, x2)))

    return _named(function, name, text, f"{_TOGETHER} {types}\nI/O: one read of each, {_FUSED}.", example)


def _compare(name: str, text: str, types: str, example: str, above: bool, below: bool) -> Binary:
    """A comparison; `above` and `below` are its answers where `x2` is a Python integer beyond all values of `x1`."""
    mirror = {"less": "greater", "greater": "less", "less_equal": "greater_equal", "greater_equal": "less_equal"}

    def function(x1: Operand, x2: Operand, /) -> Array:
        if is_weak(x1) and not is_weak(x2):
            return _COMPARISONS[mirror.get(name, name)](x2, x1)
        if isinstance(x2, int) and is_weak(x2) and not is_weak(x1):
            left = node(x1)
            dtype = np.result_type(expr_dtype(left), x2)
            if dtype.kind in "iu" and not np.iinfo(dtype).min <= x2 <= np.iinfo(dtype).max:
                return Array(constant(left.shape, above if x2 > 0 else below, np.dtype(bool)))
            return Array(_core.binary(name, left, weak(x2, expr_dtype(left))))
        left, right = pair(x1, x2)
        if {expr_dtype(left).kind, expr_dtype(right).kind} == {"i", "u"}:
            return _compare_signs(name, left, right)
        return Array(_core.binary(name, left, right))

    _COMPARISONS[name] = function
    return _named(function, name, text, f"{_TOGETHER} {types}\nI/O: one read of each, {_FUSED}.", example)


def _compare_signs(name: str, left: _core.Expr, right: _core.Expr) -> Array:
    """A comparison of signed and unsigned integers, exact where their common type would be float64."""
    if np.result_type(expr_dtype(left), expr_dtype(right)).kind != "f":
        return Array(_core.binary(name, left, right))
    # A negative number is below every unsigned one; all others are unsigned themselves.
    signed_first = expr_dtype(left).kind == "i"
    signed = left if signed_first else right
    zero = constant((), 0, expr_dtype(signed))
    sides = [_core.astype(side, "uint64") for side in (left, right)]
    beyond = {"equal": False, "not_equal": True, "less": signed_first, "less_equal": signed_first}
    answer = beyond.get(name, not signed_first)
    below = _core.binary("less", signed, zero)
    if answer:
        return Array(_core.binary("logical_or", below, _core.binary(name, *sides)))
    return Array(_core.binary("logical_and", _core.unary("logical_not", below), _core.binary(name, *sides)))


def _named(function: ElementFunction, name: str, text: str, rules: str, example: str) -> ElementFunction:
    """The function with its name and a docstring; an example is "[elements], number → [elements]"."""
    example_input, _, example_output = example.partition(" → ")
    elements, bracket, number = example_input.partition("]")
    function.__name__ = function.__qualname__ = name
    function.__code__ = function.__code__.replace(co_name=name)  # by which a refusal names it
    function.__doc__ = (
        f"{text}\n\n{rules}\n\n>>> import outcore as oc\n"
        f">>> oc.{name}(oc.asarray({elements}{bracket}){number}).compute()\narray({example_output})\n"
    )
    return function


_COMPARISONS: dict[str, Binary] = {}

abs = _unary("abs", "Absolute value; the modulus for complex numbers.", _REAL_PART, "[-3, 2] → [3, 2]", core="absolute")
acos = _unary("acos", "Inverse cosine.", _FLOATS, "[1.0, 0.5] → [0.        , 1.04719755]")
acosh = _unary("acosh", "Inverse hyperbolic cosine.", _FLOATS, "[1.0, 2.0] → [0.       , 1.3169579]")
asin = _unary("asin", "Inverse sine.", _FLOATS, "[0.0, 0.5] → [0.        , 0.52359878]")
asinh = _unary("asinh", "Inverse hyperbolic sine.", _FLOATS, "[0.0, 1.0] → [0.        , 0.88137359]")
atan = _unary("atan", "Inverse tangent.", _FLOATS, "[0.0, 1.0] → [0.        , 0.78539816]")
atanh = _unary("atanh", "Inverse hyperbolic tangent.", _FLOATS, "[0.0, 0.5] → [0.        , 0.54930614]")
bitwise_invert = _unary("bitwise_invert", "Every bit flipped; logical not for bool.", _BITS, "[0, 5] → [-1, -6]")
cbrt = _unary("cbrt", "Cube root. Not in the standard, as in NumPy.", _REALS, "[8.0, -27.0] → [ 2., -3.]")
ceil = _unary("ceil", "Smallest integer not below each element.", _ROUNDED, "[1.2, -1.7] → [ 2., -1.]")
conj = _unary("conj", "Complex conjugate.", _KEPT, "[1 + 2j, 3 - 1j] → [1.-2.j, 3.+1.j]")
cos = _unary("cos", "Cosine.", _FLOATS, "[0.0, 1.0] → [1.        , 0.54030231]")
cosh = _unary("cosh", "Hyperbolic cosine.", _FLOATS, "[0.0, 1.0] → [1.        , 1.54308063]")
exp = _unary("exp", "e to the power of each element.", _FLOATS, "[0.0, 1.0] → [1.        , 2.71828183]")
exp2 = _unary(
    "exp2", "2 to the power of each element. Not in the standard, as in NumPy.", _FLOATS, "[0.0, 3.0] → [1., 8.]"
)
expm1 = _unary(
    "expm1", "e to the power of each element, less 1, exact near 0.", _FLOATS, "[0.0, 1e-10] → [0.e+00, 1.e-10]"
)
floor = _unary("floor", "Largest integer not above each element.", _ROUNDED, "[1.7, -1.2] → [ 1., -2.]")
imag = _unary("imag", "Imaginary part.", _REAL_PART, "[1 + 2j, 3 - 1j] → [ 2., -1.]")
isfinite = _unary(
    "isfinite", "Whether each element is neither infinite nor NaN.", _TRUTH, "[1.0, oc.inf] → [ True, False]"
)
isinf = _unary("isinf", "Whether each element is infinite.", _TRUTH, "[1.0, oc.inf] → [False,  True]")
isnan = _unary("isnan", "Whether each element is NaN.", _TRUTH, "[1.0, oc.nan] → [False,  True]")
log = _unary("log", "Natural logarithm.", _FLOATS, "[1.0, 10.0] → [0.        , 2.30258509]")
log1p = _unary("log1p", "Natural logarithm of 1 + x, exact near 0.", _FLOATS, "[0.0, 1e-10] → [0.e+00, 1.e-10]")
log2 = _unary("log2", "Logarithm to base 2.", _FLOATS, "[1.0, 8.0] → [0., 3.]")
log10 = _unary("log10", "Logarithm to base 10.", _FLOATS, "[1.0, 1000.0] → [0., 3.]")
logical_not = _unary("logical_not", "Whether each element is zero.", _TRUTH, "[0, 7] → [ True, False]")
negative = _unary("negative", "Each element with its sign changed.", _NUMBERS, "[1, -2] → [-1,  2]")
positive = _unary("positive", "Each element as it is.", _NUMBERS, "[1, -2] → [ 1, -2]")
real = _unary("real", "Real part.", _REAL_PART, "[1 + 2j, 3 - 1j] → [1., 3.]")
reciprocal = _unary("reciprocal", "1 over each element.", _KEPT, "[2.0, 4.0] → [0.5 , 0.25]")
round = _unary("round", "Nearest integer, halves to even.", _KEPT, "[0.5, 1.5, 1.7] → [0., 2., 2.]")
sign = _unary(
    "sign",
    "-1, 0 or 1 by the sign of each element; x / |x| for complex numbers.",
    _NUMBERS,
    "[-3, 0, 2] → [-1,  0,  1]",
)
signbit = _unary("signbit", "Whether the sign bit of each element is set.", _ORDERED, "[-0.0, 1.0] → [ True, False]")
sin = _unary("sin", "Sine.", _FLOATS, "[0.0, 1.0] → [0.        , 0.84147098]")
sinh = _unary("sinh", "Hyperbolic sine.", _FLOATS, "[0.0, 1.0] → [0.        , 1.17520119]")
sqrt = _unary("sqrt", "Square root.", _FLOATS, "[4.0, 2.0] → [2.        , 1.41421356]")
square = _unary("square", "Each element times itself.", _KEPT, "[3, -2] → [9, 4]")
tan = _unary("tan", "Tangent.", _FLOATS, "[0.0, 1.0] → [0.        , 1.55740772]")
tanh = _unary("tanh", "Hyperbolic tangent.", _FLOATS, "[0.0, 1.0] → [0.        , 0.76159416]")
trunc = _unary("trunc", "Integer part.", _ROUNDED, "[1.7, -1.7] → [ 1., -1.]")

add = _binary("add", "Sum.", _PROMOTED, "[1, 2], 10 → [11, 12]")
atan2 = _binary(
    "atan2", "Angle of the point (x2, x1) in radians.", _REALS, "[0.0, 1.0], 1.0 → [0.        , 0.78539816]"
)
bitwise_and = _binary("bitwise_and", "Bits set in both.", _BITS, "[5, 6], 3 → [1, 2]")
bitwise_left_shift = _binary("bitwise_left_shift", "Bits of `x1` moved left by `x2`.", _BITS, "[1, 3], 2 → [ 4, 12]")
bitwise_or = _binary("bitwise_or", "Bits set in either.", _BITS, "[5, 6], 3 → [7, 7]")
bitwise_right_shift = _binary("bitwise_right_shift", "Bits of `x1` moved right by `x2`.", _BITS, "[8, 5], 2 → [2, 1]")
bitwise_xor = _binary("bitwise_xor", "Bits set in one but not both.", _BITS, "[5, 6], 3 → [6, 5]")
copysign = _binary("copysign", "Magnitude of `x1` with the sign of `x2`.", _REALS, "[1.0, -2.0], -1.0 → [-1., -2.]")
divide = _binary("divide", "Quotient; integers give floating point.", _QUOTIENT, "[1, 3], 2 → [0.5, 1.5]")
floor_divide = _binary(
    "floor_divide", "Quotient rounded down; of infinities NaN, as in NumPy.", _REMAINDER, "[7, -7], 2 → [ 3, -4]"
)
hypot = _binary("hypot", "Square root of x1² + x2², without overflow on the way.", _REALS, "[3.0, 0.0], 4.0 → [5., 4.]")
logaddexp = _binary(
    "logaddexp",
    "Logarithm of exp(x1) + exp(x2), without overflow on the way.",
    _REALS,
    "[0.0, 1.0], 0.0 → [0.69314718, 1.31326169]",
)
logical_and = _binary("logical_and", "Whether both are not zero.", _TRUTH, "[0, 7], 1 → [False,  True]")
logical_or = _binary("logical_or", "Whether either is not zero.", _TRUTH, "[0, 7], 0 → [False,  True]")
logical_xor = _binary("logical_xor", "Whether exactly one is not zero.", _TRUTH, "[0, 7], 1 → [ True, False]")
maximum = _binary("maximum", "The larger; NaN where either is NaN.", _PROMOTED, "[1, 5], 3 → [3, 5]")
minimum = _binary("minimum", "The smaller; NaN where either is NaN.", _PROMOTED, "[1, 5], 3 → [1, 3]")
multiply = _binary("multiply", "Product.", _PROMOTED, "[1, 2], 10 → [10, 20]")
nextafter = _binary(
    "nextafter", "The next number after `x1` towards `x2`.", _REALS, "[0.0, 1.0], 1.0 → [5.e-324, 1.e+000]"
)
remainder = _binary("remainder", "Remainder with the sign of `x2`.", _REMAINDER, "[7, -7], 3 → [1, 2]")
subtract = _binary("subtract", "Difference.", _DIFFERENCE, "[1, 2], 10 → [-9, -8]")

equal = _compare("equal", "Whether x1 = x2.", _TRUTH, "[1, 2], 2 → [False,  True]", above=False, below=False)
not_equal = _compare("not_equal", "Whether x1 ≠ x2.", _TRUTH, "[1, 2], 2 → [ True, False]", above=True, below=True)
less = _compare("less", "Whether x1 < x2.", _ORDERED, "[1, 2], 2 → [ True, False]", above=True, below=False)
less_equal = _compare("less_equal", "Whether x1 ≤ x2.", _ORDERED, "[2, 3], 2 → [ True, False]", above=True, below=False)
greater = _compare("greater", "Whether x1 > x2.", _ORDERED, "[2, 3], 2 → [False,  True]", above=False, below=True)
greater_equal = _compare(
    "greater_equal", "Whether x1 ≥ x2.", _ORDERED, "[1, 2], 2 → [False,  True]", above=False, below=True
)


def pow(x1: Operand, x2: Operand, /) -> Array:
    """`x1` to the power of `x2`. Shape: both broadcast together. A power of 2 is a square, as in NumPy.

    An integer to a negative integer power raises ArgumentError, a ValueError: at once where the expression says that
    the power is negative, a scalar or a full array; else in the run that meets one.

    Gives the type both promote to; bool becomes a number. I/O: one read of each, fused with what comes before and
    after.

    >>> import outcore as oc
    >>> oc.pow(oc.asarray([2.0, 3.0]), 3).compute()
    array([ 8., 27.])
    """
    if isinstance(x2, np.ndarray) and x2.ndim == 0:
        x2 = x2[()]
    if is_weak(x2) and type(x2) in (int, float) and x2 == 2 and not is_weak(x1):
        base = node(x1)
        # Only where the exponent does not change the type: bool to integer, integer to float.
        if expr_dtype(base).kind != "b" and np.result_type(expr_dtype(base), x2) == expr_dtype(base):
            return Array(_core.unary("square", base))
    return Array(_core.binary("pow", *pair(x1, x2)))


def clip(x: Operand, /, min: Operand | None = None, max: Operand | None = None) -> Array:
    """Elements below `min` become `min`, those above `max` become `max`; None is no bound.

    Shape: all broadcast together, or ShapeError; types promote together. NaN stays NaN.
    I/O: one read of each, fused with what comes before and after.

    >>> import outcore as oc
    >>> oc.clip(oc.asarray([-2, 1, 7]), 0, 5).compute()
    array([0, 1, 5])
    """
    result = Array(node(x))
    if min is not None:
        result = maximum(result, min)
    return result if max is None else minimum(result, max)


__all__ = [
    "abs",
    "acos",
    "acosh",
    "add",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "cbrt",
    "ceil",
    "clip",
    "conj",
    "copysign",
    "cos",
    "cosh",
    "divide",
    "equal",
    "exp",
    "exp2",
    "expm1",
    "floor",
    "floor_divide",
    "greater",
    "greater_equal",
    "hypot",
    "imag",
    "isfinite",
    "isinf",
    "isnan",
    "less",
    "less_equal",
    "log",
    "log10",
    "log1p",
    "log2",
    "logaddexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "multiply",
    "negative",
    "nextafter",
    "not_equal",
    "positive",
    "pow",
    "real",
    "reciprocal",
    "remainder",
    "round",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "subtract",
    "tan",
    "tanh",
    "trunc",
]
