"""Every element-wise function at the values that are special, against NumPy: same types, values, and signs of zeros.

What differs is listed here with its reason; everything that is not listed is the same.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from support.running import session

import outcore as oc
from outcore._numpy.protocol import _UFUNC_NAMES
from outcore.errors import ArgumentError, DTypeError

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
DTYPES = ("bool", *INTEGERS, *FLOATS, *COMPLEX)
UNARY = (
    *(
        "abs",
        "acos",
        "acosh",
        "asin",
        "asinh",
        "atan",
        "atanh",
        "bitwise_invert",
        "cbrt",
        "ceil",
        "conj",
        "cos",
        "cosh",
    ),
    *("exp", "exp2", "expm1", "floor", "imag", "isfinite", "isinf", "isnan", "log", "log10", "log1p", "log2"),
    *("logical_not", "negative", "positive", "real", "reciprocal", "round", "sign", "signbit", "sin", "sinh", "sqrt"),
    *("square", "tan", "tanh", "trunc"),
)
BINARY = (
    *(
        "add",
        "atan2",
        "bitwise_and",
        "bitwise_left_shift",
        "bitwise_or",
        "bitwise_right_shift",
        "bitwise_xor",
        "copysign",
    ),
    *("divide", "equal", "floor_divide", "greater", "greater_equal", "hypot", "less", "less_equal", "logaddexp"),
    *("logical_and", "logical_or", "logical_xor", "maximum", "minimum", "multiply", "nextafter", "not_equal", "pow"),
    *("remainder", "subtract"),
)
ORDERED = ("greater", "greater_equal", "less", "less_equal")
# Where the result depends on the machine in NumPy itself, or is wrong there.
REASONS = {
    "order of complex numbers": "the standard leaves it undefined; NumPy compares lexicographically, outcore refuses",
    "zero of an integer": "1 / 0 as an integer is undefined in C; NumPy gives what the processor does, outcore 0",
    "which of two zeros": "NumPy's vector code gives the second of two equal zeros, its scalar code the first",
    "complex zeros and infinities": "signs and NaN parts that C99, Annex G leaves open, or that NumPy's library misses",
    "complex overflow": "a step between overflows in NumPy where the result does not, or in both with another NaN",
    "rounding of a product": "NumPy fuses multiplication and addition where the processor can, so underflow has signs",
    "single precision": "the C library's powers lose digits with the size of the exponent; outcore's go through double",
    "cancellation": "NumPy's complex log1p rounds 1 + z before it takes the logarithm; outcore does not",
}
NUMPY_NAMES = {ours: theirs for theirs, ours in _UFUNC_NAMES.items() if theirs not in ("fabs", "rint", "mod")}


def numpy_function(name: str) -> Any:
    return np.round if name == "round" else getattr(np, name, None) or getattr(np, NUMPY_NAMES[name])


def special(dtype: str) -> npt.NDArray[Any]:
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return np.array([False, True])
    if kind.kind in "iu":
        bounds = np.iinfo(kind)
        signed = [-1, -2, -3, bounds.min, bounds.min + 1] if kind.kind == "i" else []
        return np.array([0, 1, 2, 3, 7, bounds.max, bounds.max - 1, bounds.max // 2, *signed], kind)
    bounds = np.finfo(kind)
    edges = [float(bounds.max), float(bounds.tiny), np.inf, np.nan]
    if kind.kind == "c":
        parts = [0.0, 1.0, 0.5, 2.0, *edges]
        parts += [-part for part in parts]
        return np.array([complex(*pair) for pair in itertools.product(parts, parts)], kind)
    parts = [0.0, 1.0, 0.5, 1.5, 2.0, 2.5, 3.0, 10.0, 0.1, float(bounds.eps), float(bounds.smallest_subnormal), *edges]
    return np.array([*parts, *(-part for part in parts)], kind)


def reason(name: str, x: npt.NDArray[Any], y: npt.NDArray[Any] | None) -> npt.NDArray[Any]:
    """Where a difference is allowed: the key of its reason for each element, or nothing."""
    allowed = np.full(x.shape, "", dtype=object)
    pair = [x] if y is None else [x, y]
    common = np.result_type(*pair)
    if name == "reciprocal" and common.kind in "iu":
        allowed[x == 0] = "zero of an integer"
    if name in ("maximum", "minimum") and common.kind == "f":
        allowed[(x == 0) & (y == 0)] = "which of two zeros"
    if common.kind == "c":
        wide = [part.astype("c16") for part in pair]
        limits = np.finfo(np.finfo(common).dtype)
        sizes = [np.maximum(abs(part.real), abs(part.imag)) for part in wide]
        huge = np.logical_or.reduce([~(size < np.sqrt(float(limits.max))) for size in sizes])
        tiny = np.logical_or.reduce(
            [((abs(p) < float(limits.tiny) * 2) & (p != 0)) for part in wide for p in (part.real, part.imag)]
        )
        if name in ("acosh", "cos", "cosh", "exp", "exp2", "expm1", "sin", "sinh"):
            allowed[huge] = "complex zeros and infinities"
        if name == "expm1":
            allowed[tiny] = "rounding of a product"
        if name == "log1p":
            allowed[tiny] = "cancellation"
        if name in ("log1p", "pow", "sign", "square", "multiply"):
            allowed[huge] = "complex overflow"
        if name in ("multiply", "pow"):
            allowed[tiny & ~huge] = "rounding of a product"
    return allowed


def differs(name: str, found: npt.NDArray[Any], expected: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Where two results differ by more than a few units in the last place, or in the sign of a zero."""
    if found.dtype.kind not in "fc":
        return np.asarray(found != expected)
    units = 128 if name == "pow" and found.dtype == np.complex64 else 8  # the C library's; ours goes through double
    bound = units * np.finfo(found.dtype).eps
    least = float(np.finfo(found.dtype).smallest_subnormal)
    parts = (
        [(found, expected)] if found.dtype.kind == "f" else [(found.real, expected.real), (found.imag, expected.imag)]
    )
    size = np.abs(expected.astype("c16"))
    wrong = np.zeros(found.shape, bool)
    for a, b in parts:
        near = np.isclose(a.astype("f8"), b.astype("f8"), rtol=bound, atol=least, equal_nan=True)
        near |= np.isfinite(size) & (np.abs(a.astype("f8") - b.astype("f8")) <= bound * size)
        zeros = (b == 0) & ~np.isnan(a) & (np.signbit(a) != np.signbit(b))
        wrong |= ~near | zeros
    return wrong


def check(name: str, *operands: npt.NDArray[Any]) -> None:
    ours: Any = getattr(oc, name)
    types = [str(operand.dtype) for operand in operands]
    with np.errstate(all="ignore"):
        try:
            expected = numpy_function(name)(*operands)
        except TypeError:
            with pytest.raises(DTypeError):
                ours(*map(oc.asarray, operands))
            return
    if name in ORDERED and np.result_type(*operands).kind == "c":
        with pytest.raises(DTypeError):  # REASONS["order of complex numbers"]
            ours(*map(oc.asarray, operands))
        return
    found = oc.compute(ours(*map(oc.asarray, operands)))
    assert found.dtype == expected.dtype, types
    wrong = differs(name, found, expected)
    allowed = reason(name, operands[0], operands[1] if len(operands) > 1 else None)
    if name == "pow" and expected.dtype == np.complex64:
        allowed[abs(operands[1].astype("c16")) >= 100] = "single precision"
    if name == "pow" and expected.dtype.kind == "c":
        allowed[~np.isfinite(expected)] = "complex overflow"
        allowed[abs(expected) < np.finfo(expected.dtype).tiny] = "rounding of a product"
    assert set(allowed[wrong]) <= {"", *REASONS}
    for place in np.flatnonzero(wrong & (allowed == ""))[:3]:
        given = tuple(operand[place] for operand in operands)
        raise AssertionError(f"{name}{given} of {types} is {found[place]!r}, by NumPy {expected[place]!r}")


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_special_value(name: str) -> None:
    with session():
        for dtype in DTYPES:
            check(name, special(dtype))


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_special_values(name: str) -> None:
    with session():
        for first, second in itertools.product(DTYPES, DTYPES):
            a, b = special(first), special(second)
            x, y = np.repeat(a, len(b)), np.tile(b, len(a))
            if name == "pow" and np.result_type(first, second).kind in "iu":
                x, y = x[y >= 0], y[y >= 0]  # NumPy raises for the others
            check(name, x, y)


def test_a_power_that_a_cast_makes_positive_is_taken() -> None:
    wrapped = oc.full((4,), -1).astype("u1")
    with session():
        np.testing.assert_array_equal(oc.compute(oc.ones((4,), dtype="i4") ** wrapped), np.ones(4, "i4"))


def test_the_sweep_covers_every_element_wise_function() -> None:
    assert set(oc.elementwise.__all__) == {*UNARY, *BINARY, "clip"}


@pytest.mark.parametrize("exponent", [-1, np.int64(-2), np.int8(-1), np.array(-1), np.full(4, -1)])
def test_a_known_negative_power_of_integers_is_refused(exponent: Any) -> None:
    known = oc.full((4,), -1) if np.ndim(exponent) else exponent
    for power in (lambda: oc.arange(1, 5) ** known, lambda: np.power(oc.arange(1, 5), known)):
        with pytest.raises(ValueError, match="negative integer powers") as raised:
            power()
        assert isinstance(raised.value, ArgumentError)
    with pytest.raises(ValueError, match="negative integer powers"):
        np.arange(1, 5) ** exponent
    with session():
        np.testing.assert_array_equal(oc.compute(oc.arange(1.0, 5.0) ** known), np.arange(1.0, 5.0) ** -abs(exponent))
        np.testing.assert_array_equal(oc.compute(2.0 ** oc.arange(-3, 3)), 2.0 ** np.arange(-3, 3))


@pytest.mark.parametrize(
    "make",
    [
        lambda device: oc.zeros((3,), device=device),
        lambda device: oc.ones((3,), device=device),
        lambda device: oc.empty((3,), device=device),
        lambda device: oc.full((3,), 1, device=device),
        lambda device: oc.arange(3, device=device),
        lambda device: oc.linspace(0, 1, 3, device=device),
        lambda device: oc.eye(3, device=device),
        lambda device: oc.asarray([1, 2], device=device),
        lambda device: oc.from_dlpack(np.ones(3), device=device),
        lambda device: oc.zeros_like(oc.ones((3,)), device=device),
        lambda device: oc.ones_like(oc.ones((3,)), device=device),
        lambda device: oc.empty_like(oc.ones((3,)), device=device),
        lambda device: oc.full_like(oc.ones((3,)), 2, device=device),
    ],
)
def test_there_is_no_device_but_the_cpu(make: Any) -> None:
    assert make(None).device == make("cpu").device == "cpu"
    for device in ("cuda", "gpu:0", 0):
        with pytest.raises(ArgumentError, match="device"):
            make(device)


def test_nothing_moves_to_another_device() -> None:
    x = oc.ones((3,))
    assert x.to_device("cpu") is x
    with pytest.raises(ArgumentError, match="cuda"):
        x.to_device("cuda")
    with pytest.raises(ArgumentError, match="stream"):
        x.to_device("cpu", stream=1)
