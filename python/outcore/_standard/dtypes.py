"""Data types and their rules: the standard's "data types" and "data type functions"."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from outcore import _core
from outcore._base.arguments import check_device
from outcore._base.element_types import DTypeLike, dtype_of
from outcore._base.types import DType
from outcore._lazy.array import Array
from outcore._lazy.node import Operand, expr_dtype, is_weak, node

bool = np.dtype(np.bool_)
int8 = np.dtype(np.int8)
int16 = np.dtype(np.int16)
int32 = np.dtype(np.int32)
int64 = np.dtype(np.int64)
uint8 = np.dtype(np.uint8)
uint16 = np.dtype(np.uint16)
uint32 = np.dtype(np.uint32)
uint64 = np.dtype(np.uint64)
float16 = np.dtype(np.float16)
float32 = np.dtype(np.float32)
float64 = np.dtype(np.float64)
complex64 = np.dtype(np.complex64)
complex128 = np.dtype(np.complex128)


def astype(x: Operand, dtype: DTypeLike, /, *, copy: builtins.bool = True, device: str | None = None) -> Array:
    """The array with its elements cast to `dtype`; `copy` has no meaning for immutable arrays.

    As NumPy casts, and integers wrap around. Where NumPy's result depends on the machine (floats beyond an integer
    type, NaN to integers), floats saturate at the type's bounds, so negative ones give 0 for unsigned types, and NaN
    gives 0. Same shape. Raises DTypeError for types outcore has no kernels for. No I/O of its own.

    >>> import outcore as oc
    >>> oc.astype(oc.asarray([1.7, -1.2, 300.0]), "uint8").compute()
    array([  1,   0, 255], dtype=uint8)
    """
    check_device(device)
    expr = node(x)
    target = dtype_of(dtype)
    return Array(expr if expr_dtype(expr) == target else _core.astype(expr, target.name))


def can_cast(from_: DTypeLike | Array, to: DTypeLike, /) -> builtins.bool:
    """Whether a cast between two types keeps every value, by NumPy's "safe" rule.

    Raises DTypeError for types outcore has no kernels for.

    >>> import outcore as oc
    >>> oc.can_cast("int32", "float64"), oc.can_cast("float64", "int32")
    (True, False)
    """
    return np.can_cast(from_.dtype if isinstance(from_, Array) else dtype_of(from_), dtype_of(to))


class FloatLimits:
    """Machine limits of a floating-point type: those of `numpy.finfo`, its numbers as Python's floats."""

    def __init__(self, info: np.finfo[Any]) -> None:
        self._info = info

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        value = getattr(self._info, name)
        return float(value) if isinstance(value, np.floating) else value

    def __repr__(self) -> str:
        return repr(self._info)


def finfo(type: DTypeLike | Array, /) -> FloatLimits:
    """Machine limits of a floating-point type, as NumPy names them, in Python's floats.

    Raises DTypeError for types outcore has no kernels for, ValueError for integers.

    >>> import outcore as oc
    >>> oc.finfo("float32").bits
    32
    """
    return FloatLimits(np.finfo(type.dtype if isinstance(type, Array) else dtype_of(type)))


def iinfo(type: DTypeLike | Array, /) -> np.iinfo[Any]:
    """Machine limits of an integer type, as NumPy gives them.

    Raises DTypeError for types outcore has no kernels for, ValueError for those that are no integers.

    >>> import outcore as oc
    >>> oc.iinfo("uint8").max
    255
    """
    return np.iinfo(type.dtype if isinstance(type, Array) else dtype_of(type))


def isdtype(dtype: DTypeLike, kind: Any) -> builtins.bool:
    """Whether a type is of a kind ("bool", "integral", "real floating", …), equals a type, or is any of a tuple.

    Raises DTypeError for types outcore has no kernels for.

    >>> import outcore as oc
    >>> oc.isdtype("int8", "integral"), oc.isdtype("int8", ("bool", "real floating"))
    (True, False)
    """
    return builtins.bool(np.isdtype(dtype_of(dtype), kind))


def result_type(*arrays_and_dtypes: Any) -> DType:
    """The type an operation on the given arrays, types and Python scalars gives, by NumPy 2's rules.

    Raises DTypeError for types outcore has no kernels for.

    >>> import outcore as oc
    >>> oc.result_type(oc.zeros(3, dtype="float32"), "int16", 1.5)
    dtype('float32')
    """
    parts = (part.dtype if isinstance(part, Array) else part for part in arrays_and_dtypes)
    return np.result_type(
        *(part if is_weak(part) or isinstance(part, np.ndarray) else dtype_of(part) for part in parts)
    )


__all__ = [
    "astype",
    "bool",
    "can_cast",
    "complex64",
    "complex128",
    "finfo",
    "float16",
    "float32",
    "float64",
    "iinfo",
    "int8",
    "int16",
    "int32",
    "int64",
    "isdtype",
    "result_type",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]
