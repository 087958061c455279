"""Element-wise functions of the array API standard.

Every function takes arrays, NumPy arrays or Python scalars, broadcasts shapes, promotes types by NumPy 2's rules and
costs no I/O of its own: chains of them are fused into the pass that reads their operands. Mismatched shapes raise
ShapeError naming both; a type an operation does not take raises DTypeError.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

import numpy as np

from outcore import _core
from outcore._array import Array
from outcore._node import Operand, constant, expr_dtype, is_weak, node, pair, weak


class Unary(Protocol):
    """A function of one array."""

    __name__: str

    def __call__(self, x: Operand, /) -> Array: ...


class Binary(Protocol):
    """A function of two arrays that broadcast together."""

    __name__: str

    def __call__(self, x1: Operand, x2: Operand, /) -> Array: ...


Function = TypeVar("Function", Unary, Binary)


def _unary(name: str, text: str, core: str | None = None) -> Unary:
    """A function of one array; `core` is the kernel's name where it is not the standard's."""

    def function(x: Operand, /) -> Array:
        return Array(_core.unary(core or name, node(x)))

    return _named(function, name, f"{text}\n\nSame shape as `x`.")


def _binary(name: str, text: str) -> Binary:
    def function(x1: Operand, x2: Operand, /) -> Array:
        return Array(_core.binary(name, *pair(x1, x2)))

    return _named(function, name, f"{text}\n\nShape: `x1` and `x2` broadcast together.")


def _compare(name: str, text: str, above: bool, below: bool) -> Binary:
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
    return _named(function, name, f"{text}\n\nGives bool. Shape: `x1` and `x2` broadcast together.")


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


def _named(function: Function, name: str, text: str) -> Function:
    function.__name__ = name
    function.__doc__ = text
    return function


_COMPARISONS: dict[str, Binary] = {}

abs = _unary("abs", "Absolute value; the modulus for complex numbers.", core="absolute")
acos = _unary("acos", "Inverse cosine.")
acosh = _unary("acosh", "Inverse hyperbolic cosine.")
asin = _unary("asin", "Inverse sine.")
asinh = _unary("asinh", "Inverse hyperbolic sine.")
atan = _unary("atan", "Inverse tangent.")
atanh = _unary("atanh", "Inverse hyperbolic tangent.")
bitwise_invert = _unary("bitwise_invert", "Every bit flipped; logical not for bool.")
cbrt = _unary("cbrt", "Cube root. Not in the standard, as in NumPy.")
ceil = _unary("ceil", "Smallest integer not below each element.")
conj = _unary("conj", "Complex conjugate.")
cos = _unary("cos", "Cosine.")
cosh = _unary("cosh", "Hyperbolic cosine.")
exp = _unary("exp", "e to the power of each element.")
exp2 = _unary("exp2", "2 to the power of each element. Not in the standard, as in NumPy.")
expm1 = _unary("expm1", "e to the power of each element, less 1, exact near 0.")
floor = _unary("floor", "Largest integer not above each element.")
imag = _unary("imag", "Imaginary part.")
isfinite = _unary("isfinite", "Whether each element is neither infinite nor NaN.")
isinf = _unary("isinf", "Whether each element is infinite.")
isnan = _unary("isnan", "Whether each element is NaN.")
log = _unary("log", "Natural logarithm.")
log1p = _unary("log1p", "Natural logarithm of 1 + x, exact near 0.")
log2 = _unary("log2", "Logarithm to base 2.")
log10 = _unary("log10", "Logarithm to base 10.")
logical_not = _unary("logical_not", "Whether each element is zero.")
negative = _unary("negative", "Each element with its sign changed.")
positive = _unary("positive", "Each element as it is.")
real = _unary("real", "Real part.")
reciprocal = _unary("reciprocal", "1 over each element.")
round = _unary("round", "Nearest integer, halves to even.")
sign = _unary("sign", "-1, 0 or 1 by the sign of each element; x / |x| for complex numbers.")
signbit = _unary("signbit", "Whether the sign bit of each element is set.")
sin = _unary("sin", "Sine.")
sinh = _unary("sinh", "Hyperbolic sine.")
sqrt = _unary("sqrt", "Square root.")
square = _unary("square", "Each element times itself.")
tan = _unary("tan", "Tangent.")
tanh = _unary("tanh", "Hyperbolic tangent.")
trunc = _unary("trunc", "Integer part.")

add = _binary("add", "Sum.")
atan2 = _binary("atan2", "Angle of the point (x2, x1) in radians.")
bitwise_and = _binary("bitwise_and", "Bits set in both.")
bitwise_left_shift = _binary("bitwise_left_shift", "Bits of `x1` moved left by `x2`.")
bitwise_or = _binary("bitwise_or", "Bits set in either.")
bitwise_right_shift = _binary("bitwise_right_shift", "Bits of `x1` moved right by `x2`.")
bitwise_xor = _binary("bitwise_xor", "Bits set in one but not both.")
copysign = _binary("copysign", "Magnitude of `x1` with the sign of `x2`.")
divide = _binary("divide", "Quotient; integers give floating point.")
floor_divide = _binary("floor_divide", "Quotient rounded down.")
hypot = _binary("hypot", "Square root of x1² + x2², without overflow on the way.")
logaddexp = _binary("logaddexp", "Logarithm of exp(x1) + exp(x2), without overflow on the way.")
logical_and = _binary("logical_and", "Whether both are not zero.")
logical_or = _binary("logical_or", "Whether either is not zero.")
logical_xor = _binary("logical_xor", "Whether exactly one is not zero.")
maximum = _binary("maximum", "The larger; NaN where either is NaN.")
minimum = _binary("minimum", "The smaller; NaN where either is NaN.")
multiply = _binary("multiply", "Product.")
nextafter = _binary("nextafter", "The next number after `x1` towards `x2`.")
remainder = _binary("remainder", "Remainder with the sign of `x2`.")
subtract = _binary("subtract", "Difference.")

equal = _compare("equal", "Whether x1 = x2.", above=False, below=False)
not_equal = _compare("not_equal", "Whether x1 ≠ x2.", above=True, below=True)
less = _compare("less", "Whether x1 < x2.", above=True, below=False)
less_equal = _compare("less_equal", "Whether x1 ≤ x2.", above=True, below=False)
greater = _compare("greater", "Whether x1 > x2.", above=False, below=True)
greater_equal = _compare("greater_equal", "Whether x1 ≥ x2.", above=False, below=True)


def pow(x1: Operand, x2: Operand, /) -> Array:
    """`x1` to the power of `x2`. Shape: both broadcast together. A power of 2 is a square, as in NumPy.

    An integer to a negative integer power raises ArgumentError, a ValueError, where the expression says that the power
    is negative: a scalar, or a full array. Powers that are data are not known when the node is made; there NumPy
    raises, and the result here is cut to an integer: 1 for 1, ±1 for -1, else 0, also for 0.
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

    Shape: all broadcast together. NaN stays NaN.
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
