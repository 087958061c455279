"""From what users pass (arrays, NumPy arrays, Python scalars, axes) to what the Rust core takes."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Iterable, Sequence
from types import FunctionType
from typing import Any, Protocol, SupportsIndex, TypeAlias

import numpy as np
import numpy.typing as npt

from outcore import _core
from outcore._base.element_types import NAME_OF, DTypeLike, dtype_of
from outcore._base.types import DType, NDArray, Scalar
from outcore._lazy import foreign
from outcore._lazy.annotated import place_of
from outcore._lazy.indexing import Lazy
from outcore._lazy.preview import borrowed
from outcore.errors import ArgumentError, AxisError, DTypeError, OutcoreError, RangeError, ShapeError

Axis: TypeAlias = "int | str | Iterable[int | str] | None"  # text is the name of an axis
AxisName: TypeAlias = "int | str | Iterable[int | str]"
Operand: TypeAlias = "Lazy | NDArray | np.generic | Scalar"
ArrayLike: TypeAlias = "Operand | npt.ArrayLike"  # also lists, and arrays of other libraries that have `__array__`


class Shaped(Protocol):
    """An array or a node."""

    @property
    def shape(self) -> Sequence[int]:
        """Length of each axis."""


_ROOM_ASKED_FROM = 1 << 20  # less than this fits everywhere
_DEFAULTS = {bool: np.dtype(bool), int: np.dtype(np.int64), float: np.dtype(float), complex: np.dtype(complex)}
_WEAK: dict[tuple[DType, type], DType] = {}  # promotion by the kind of a Python scalar


def is_lazy(value: object) -> bool:
    """Whether it is a lazy array."""
    return isinstance(getattr(value, "_expr", None), _core.Expr)


def is_weak(value: object) -> bool:
    """Whether the other operand decides the type: a Python scalar, but not `np.float64`."""
    return isinstance(value, (bool, int, float, complex)) and not isinstance(value, np.generic)


def default_dtype(value: Scalar) -> DType:
    """The type a Python scalar has when nothing else decides."""
    return _DEFAULTS[type(value)] if type(value) in _DEFAULTS else np.asarray(value).dtype


def constant(shape: Sequence[int], value: Scalar, dtype: DType) -> _core.Expr:
    """A full array of one value, checked to be a value of its type."""
    if dtype.kind in "iu" and not isinstance(value, bool):
        if not isinstance(value, int):
            raise _no_integer(value, dtype)
        bounds = np.iinfo(dtype)
        if not bounds.min <= value <= bounds.max:
            raise RangeError(f"Python integer {value} is out of bounds for {dtype}")
    if dtype.kind == "b":
        value = bool(value)
    elif dtype.kind in "iu":
        value = operator.index(value)  # type: ignore[arg-type]  # checked above
    elif dtype.kind == "f":
        if isinstance(value, complex):
            raise DTypeError(f"full: {value!r} is complex, and the array is {dtype}")
        try:
            value = float(value)
        except OverflowError:
            raise RangeError(f"Python integer of {len(str(value))} digits is out of bounds for {dtype}") from None
    else:
        value = complex(value)
    return _core.full(list(shape), value, NAME_OF[dtype])


def _no_integer(value: float | complex, dtype: DType) -> OutcoreError:
    """The refusal of a number as an element of an array of integers: of the kind that Python's `int` has for it."""
    text = f"full: {value!r} is not an integer, and the array is {dtype}"
    if isinstance(value, complex) or np.isfinite(value):
        return DTypeError(text)
    return ArgumentError(text) if np.isnan(value) else RangeError(text)


def put_as(value: object, dtype: DType) -> _core.Expr:
    """The node of what is put into an array of `dtype`, in that type.

    Numbers, and lists of them, must be numbers that the type holds once a fraction is cut off; arrays are cast. Raises
    RangeError for numbers out of bounds and infinities as integers, ArgumentError for NaN as one, DTypeError for
    complex ones as real; complex arrays lose their imaginary part with NumPy's ComplexWarning.
    """
    if isinstance(value, np.generic) and value.dtype.kind in "biuf":
        value = value.item()
    if is_weak(value) or isinstance(value, (list, tuple)):
        return node(as_numpy(value, dtype))
    expr = node(value)
    kind = expr_dtype(expr)
    if kind == dtype:
        return expr
    if kind.kind == "c" and dtype.kind in "iuf":
        warnings.warn(
            f"the imaginary part of {kind} is lost in an array of {dtype}", np.exceptions.ComplexWarning, stacklevel=4
        )
    return _core.astype(expr, NAME_OF[dtype])


def weak(value: Scalar, dtype: DType) -> _core.Expr:
    """A Python scalar beside an array of `dtype`: NumPy 2 promotion, where only the scalar's kind counts."""
    common = _WEAK.get((dtype, type(value)))
    if common is None:
        common = np.result_type(dtype, value)
        if type(value) in _DEFAULTS:
            _WEAK[dtype, type(value)] = common
    return constant((), value, common)


def node(value: Any) -> _core.Expr:
    """The node of anything array-like. NumPy arrays are borrowed: they must not change while the node is in use.

    Arrays mapped from a file, and other libraries' arrays that are not in memory, become sources: see `asarray`.
    Bool arrays are read through once, and copied if any byte is neither 0 nor 1.
    """
    expr = getattr(value, "_expr", None)
    if isinstance(expr, _core.Expr):
        return expr
    if is_weak(value):
        return constant((), value, default_dtype(value))
    if hasattr(value, "_carrier"):
        held = next(name for name in ("integers", "codes") if hasattr(value, name))
        raise DTypeError(
            f"elements of {value.dtype} are no numbers: use a method of theirs, NumPy's function, or x.{held}"
        )
    if isinstance(value, np.generic):
        return constant((), value.item(), dtype_of(value.dtype))
    if isinstance(value, (FunctionType, np.ufunc)):
        raise DTypeError(f"{value.__name__} is a function, and an array is taken here")
    if type(value).__module__.startswith("scipy.sparse"):
        raise DTypeError("a sparse matrix of SciPy is no dense array: outcore.sparse.from_scipy(matrix) takes it")
    source = foreign.stored(value)
    if source is not None:
        return source
    array = as_numpy(value)
    source = foreign.mapped(array, dtype_of(array.dtype))
    if source is not None:
        return source
    native = array.astype(dtype_of(array.dtype), copy=False)
    return borrowed(_clean_bool(native) if native.dtype.kind == "b" else native)


def as_numpy(value: object, dtype: DTypeLike = None) -> NDArray:
    """`np.asarray`, with its refusals as ours: ArgumentError for ragged lists, RangeError, DTypeError.

    Arrays that it would load or copy into memory must fit there: MemoryLimitError.
    """
    if isinstance(value, (list, tuple)):
        if any(is_lazy(part) or foreign.is_stored(part) for part in value):
            raise DTypeError("a list of lazy arrays is not an array; use stack() or concat()")
        size = sum(part.nbytes for part in value if isinstance(part, np.ndarray))
        if size > _ROOM_ASKED_FROM:
            foreign.check_room("asarray of a list of arrays", size, "use stack() or concat()")
    elif not isinstance(value, (np.ndarray, np.generic)) and hasattr(value, "__array__"):
        size = getattr(value, "nbytes", 0)
        if isinstance(size, int) and size > _ROOM_ASKED_FROM:
            what = f"asarray of {type(value).__module__}.{type(value).__name__}"
            foreign.check_room(what, size, "store it in a file and open that with outcore.open")
    if isinstance(value, np.ndarray) and type(value) is not np.ndarray and isinstance(value, np.ma.MaskedArray):
        raise DTypeError("masked arrays are not supported, their mask would be lost; pass x.filled(value) or x.data")
    try:
        return np.asarray(value, dtype)
    except (OverflowError, TypeError, ValueError) as error:
        kinds = {OverflowError: RangeError, TypeError: DTypeError}
        kind = next((ours for theirs, ours in kinds.items() if isinstance(error, theirs)), ArgumentError)
        raise kind(" ".join(str(error).split())) from None


def _clean_bool(array: NDArray) -> NDArray:
    """The array with every byte 0 or 1, which kernels rely on: copied if it is a view of bytes that are not."""
    raw = array.view(np.uint8)
    return raw != 0 if raw.size and raw.max() > 1 else array


def expr_dtype(expr: _core.Expr) -> DType:
    return np.dtype(expr.dtype)


def pair(x: object, y: object) -> tuple[_core.Expr, _core.Expr]:
    """Both operands of a binary operation; a Python scalar takes its type from the other side."""
    if is_weak(y) and not is_weak(x):
        left = node(x)
        return left, weak(y, expr_dtype(left))  # type: ignore[arg-type]
    if is_weak(x) and not is_weak(y):
        right = node(y)
        return weak(x, expr_dtype(right)), right  # type: ignore[arg-type]
    return node(x), node(y)


def integers(value: SupportsIndex | Iterable[SupportsIndex]) -> tuple[int, ...]:
    """One integer or several as a tuple. NumPy's integers and 0-d arrays count, lazy ones are computed.

    Raises DTypeError for anything else.
    """
    one = not isinstance(value, Iterable) or getattr(value, "ndim", None) == 0
    parts: Iterable[SupportsIndex] = (value,) if one else value  # type: ignore[assignment]
    try:
        return tuple(operator.index(part) for part in parts)
    except TypeError as error:
        raise DTypeError(str(error)) from None


def _axes(of: int | Shaped) -> int:
    """The number of axes of an array or a node, or the number itself."""
    if isinstance(of, int):
        return of
    return len(of.shape)


def _dims(of: int | Shaped) -> tuple[str | None, ...]:
    expr = getattr(of, "_expr", of)
    if isinstance(expr, _core.Expr):
        return tuple(_core.annotations(expr)[1])
    return tuple(getattr(of, "dims", ()))


def shape_of(shape: SupportsIndex | Iterable[SupportsIndex]) -> tuple[int, ...]:
    """A shape as a tuple. Raises ShapeError for lengths below 0."""
    result = integers(shape)
    if any(length < 0 for length in result):
        raise ShapeError(f"shape {result}: lengths cannot be negative")
    return result


def axis_of(name: str, axis: SupportsIndex | str, of: int | Shaped) -> int:
    """A counted-from-the-front axis of an array, a node, or anything of so many axes.

    Raises AxisError when the array has no such axis, ArgumentError for a name that no axis has.
    """
    if isinstance(axis, str):
        return place_of(name, axis, _dims(of))
    ndim = _axes(of)
    axis = operator.index(axis)
    if not -ndim <= axis < ndim:
        raise AxisError(f"{name}: axis {axis} is out of bounds for an array of {ndim} dimensions")
    return axis % ndim


def ordered_axes(name: str, axes: SupportsIndex | str | Iterable[SupportsIndex | str], of: int | Shaped) -> list[int]:
    """Axes counted from the front, in the order in which they are named. Errors as `axis_of`."""
    if isinstance(axes, str) or not isinstance(axes, Iterable) or getattr(axes, "ndim", None) == 0:
        axes = [axes]  # type: ignore[list-item]
    return [axis_of(name, axis if isinstance(axis, str) else integers(axis)[0], of) for axis in axes]


def axes_of(name: str, axes: SupportsIndex | str | Iterable[SupportsIndex | str] | None, of: int | Shaped) -> list[int]:
    """Axes counted from the front, ascending; None means all. Raises ShapeError for repeats."""
    if axes is None:
        return list(range(_axes(of)))
    if isinstance(axes, str):
        return [axis_of(name, axes, of)]
    if isinstance(axes, (list, tuple, set, frozenset)) and any(isinstance(axis, str) for axis in axes):
        axes = [axis_of(name, axis, of) for axis in axes]
    listed = integers(axes)  # type: ignore[arg-type]  # names are numbers by now
    places = [axis_of(name, axis, of) for axis in listed]
    if len(set(places)) != len(places):
        raise ShapeError(f"{name}: axes {listed} name the same axis twice")
    return sorted(places)
