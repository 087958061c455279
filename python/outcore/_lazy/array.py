"""`Array`: a lazy, immutable value with NumPy's shape. It holds a node of the expression and nothing else."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any, ClassVar, NamedTuple, NoReturn, Protocol, SupportsIndex

import numpy as np

from outcore import _core
from outcore._base.arguments import check_device
from outcore._base.element_types import DTypeLike
from outcore._base.types import DType, Keywords, NDArray
from outcore._lazy.absent import missing_name
from outcore._lazy.annotated import Annotated
from outcore._lazy.calling import called, tracing
from outcore._lazy.chunks import Chunks, lengths_of
from outcore._lazy.hooks import above, functions
from outcore._lazy.indexing import Assignable, Index, expanded, find_positions, index, is_flag, split_mask
from outcore._lazy.node import Axis, Operand, integers, is_weak, node
from outcore._lazy.shown import Shown
from outcore._session.session import current, leave_room
from outcore.errors import ArgumentError, DTypeError, ShapeError


class _Functions(Protocol):
    """Functions of the package, of which arrays have some as methods."""

    def __getattr__(self, name: str) -> Callable[..., Array]: ...


oc: _Functions = functions

_API_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")
_BLOCK_BYTES = 4 << 20  # of values that iteration has in memory
_MADE_BETWEEN = 1 << 13  # arrays, after which kept tiles give way to the expressions of which they are made
_MADE_BYTES = 8 << 20  # that expressions of so many arrays take at most
_made = count(1)
_DLPACK_CPU = (1, 0)  # kDLCPU, and the only one of them


def _operand(value: object) -> bool:
    return isinstance(value, (Array, np.ndarray, np.generic)) or is_weak(value)


class Array(Annotated, Shown):
    """A lazy N-dimensional array: nothing is read or computed until a result is asked for.

    Made by `open`, `asarray`, the creation functions and by operations on other arrays. Values never change: `x[i] = v`
    makes a new one behind the name. Equal expressions share one node. Follows the array API standard and NumPy 2's
    promotion rules.

    >>> import numpy as np, outcore as oc
    >>> x = oc.asarray(np.arange(6.0).reshape(2, 3))
    >>> y = (x.T @ x)[0] + 1
    >>> y.shape, y.dtype
    ((3,), dtype('float64'))
    >>> y.compute()
    array([10., 13., 16.])
    """

    __slots__ = ("_chunks", "_expr")
    _chunks: Chunks
    __hash__: ClassVar[None]  # type: ignore[assignment]  # `==` is element-wise, as in NumPy

    def __init__(self, expr: _core.Expr) -> None:
        if not isinstance(expr, _core.Expr):
            raise DTypeError(f"Array is not made from {type(expr).__name__}; use outcore.asarray() or outcore.open()")
        self._expr = expr
        function = called(sys._getframe(1))
        if function is not None:
            expr.call_as(function)
        if next(_made) % _MADE_BETWEEN == 0:
            leave_room(_MADE_BYTES)

    # -- what it is ---------------------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of each axis."""
        return tuple(self._expr.shape)

    @property
    def dtype(self) -> DType:
        """Element type, as a NumPy dtype."""
        return np.dtype(self._expr.dtype)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self._expr.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        result = 1
        for length in self._expr.shape:
            result *= length
        return result

    @property
    def nbytes(self) -> int:
        """Bytes the whole array would take in memory."""
        return self.size * self.dtype.itemsize

    @property
    def tile(self) -> tuple[int, ...]:
        """Shape of the tiles it is worked through in, as the planner sees it."""
        return tuple(self._expr.tile)

    @property
    def chunks(self) -> Chunks:
        """Lengths of the tiles along each axis, as Dask's, or what xarray's `chunk` asked for. No plan goes by them."""
        try:
            return self._chunks
        except AttributeError:  # few arrays have any
            return lengths_of(self.shape, self.tile)

    @property
    def device(self) -> str:
        """Always "cpu"."""
        return "cpu"

    @property
    def T(self) -> Array:
        """The array with its axes reversed. No I/O: transposes are folded into reads."""
        return oc.permute_dims(self, tuple(reversed(range(self.ndim))))

    @property
    def mT(self) -> Array:
        """The array with its last two axes swapped."""
        return oc.matrix_transpose(self)

    @property
    def real(self) -> Array:
        """The real part."""
        return oc.real(self) if self.dtype.kind == "c" else self

    @property
    def imag(self) -> Array:
        """The imaginary part; zeros for real arrays."""
        return oc.imag(self) if self.dtype.kind == "c" else oc.zeros_like(self)

    def __len__(self) -> int:
        if not self.shape:
            raise ShapeError("len() of an array without axes")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        """The elements along the first axis: values of a 1-D array, lazy arrays where there are further axes.

        Values are computed a block at a time, of 4 MiB and a sixteenth of the memory budget at most, and come as NumPy
        scalars, so that `sum(x)` holds one block; a block is given back before the next is computed. An array that is
        computed in stages is held in scratch first. Rows are lazy, so that formulas may take an array
        apart; each that is computed alone is a program of its own. While `map` traces, all elements are lazy.
        """
        if not self.shape:
            raise DTypeError("iteration over a 0-d array")
        if self.ndim > 1 or tracing.get() is not None:
            return (self[position] for position in range(self.shape[0]))
        return self._values()

    def _values(self) -> Iterator[Any]:
        room = min(current().counters()["budget_bytes"] // 16, _BLOCK_BYTES)
        length = max(room // self.dtype.itemsize, 1)
        array = self
        if self.shape[0] > length and len(functions.explain(self[:length]).stages) > 1:
            array = Array(above.hold(self._expr)[0])  # else every block would run all stages again
        for start in range(0, self.shape[0], length):
            yield from array[start : start + length].compute()

    def __copy__(self) -> Array:
        # Another name for the same immutable node: what is assigned behind one does not show behind the other.
        return Array(self._expr)

    def __deepcopy__(self, memo: dict[int, object]) -> Array:
        return self.__copy__()

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, ...]:
        """Pickled as files by path, with what they were when opened, and the expression; arrays in memory by value.

        Raises DTypeError for what only this process knows: functions given to `map_blocks`, other libraries' arrays,
        and what is computed by sorting, scanning, masks or factorizing.
        """
        return above.rebuilt, (above.steps_of(self._expr), _core.annotations(self._expr))

    # -- results ------------------------------------------------------------------------------------------------

    def compute(self) -> NDArray:
        """The value as a NumPy array, which must fit the memory limit. I/O: as `explain(self)` says."""
        result: NDArray = functions.compute(self)
        return result

    def to_numpy(self) -> NDArray:
        """The value as a NumPy array, as `compute` gives it: plotting libraries ask for it by this name."""
        return self._value("a NumPy array")

    def persist(self) -> Array:
        """The same array with its value computed and held in memory."""
        result: Array = functions.persist(self)
        return result

    def _value(self, asked: str) -> NDArray:
        name = tracing.get()
        if name is not None:
            raise DTypeError(f"map: {name} asks for {asked} while it is being traced; use where() instead of branching")
        return self.compute()

    def _scalar(self, asked: str) -> Any:
        if self.size != 1:
            way = "; join conditions by & and |, or take any() or all()" if asked == "bool()" else ""
            raise ShapeError(
                f"{asked} of an array with shape {self.shape} is ambiguous; it needs exactly one element{way}"
            )
        return self._value(asked).reshape(()).item()

    def item(self) -> Any:
        """The only element, as a Python scalar. Computes."""
        return self._scalar("item()")

    def __bool__(self) -> bool:
        return bool(self._scalar("bool()"))

    def __float__(self) -> float:
        return float(self._scalar("float()"))

    def __int__(self) -> int:
        return int(self._scalar("int()"))

    def __complex__(self) -> complex:
        return complex(self._scalar("complex()"))

    def __index__(self) -> int:
        if self.dtype.kind not in "iu":
            raise DTypeError(f"only integer arrays can be an index, not {self.dtype}")
        return operator.index(self._scalar("index()"))

    def __array__(self, dtype: DTypeLike = None, copy: bool | None = None) -> NDArray:
        if copy is False:
            raise ValueError("an outcore array has no NumPy array to share; it must be computed (copy=None or True)")
        result = self._value("a NumPy array")
        return result if dtype is None else result.astype(dtype, copy=False)

    def __dlpack__(
        self,
        *,
        stream: object = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """The value as a DLPack capsule. Computes; what is exported is new memory, so `copy=False` is a BufferError."""
        if stream is not None:
            raise ArgumentError(f"stream {stream!r} is not known; device 'cpu' has none")
        if dl_device is not None and tuple(dl_device) != _DLPACK_CPU:
            raise BufferError(f"an outcore array is exported to the CPU, device {_DLPACK_CPU}, not to {dl_device}")
        if copy is False:
            raise BufferError("an outcore array has no memory to share; it must be computed (copy=None or True)")
        # A copy of what was computed for the caller alone would be one too many.
        return self._value("a DLPack capsule").__dlpack__(max_version=max_version)

    def __dlpack_device__(self) -> tuple[int, int]:
        return _DLPACK_CPU

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        if api_version is not None and api_version not in _API_VERSIONS:
            known = ", ".join(_API_VERSIONS)
            raise ArgumentError(f"array API version {api_version!r} is not known; outcore follows {known}")
        return above.namespace

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: object, **options: object) -> object:
        return above.apply_ufunc(ufunc, method, inputs, options)

    def __array_function__(
        self, function: Callable[..., object], types: object, args: tuple[object, ...], options: Keywords
    ) -> Any:
        return above.apply_function(function, types, args, options)

    def to_device(self, device: str, /, *, stream: object = None) -> Array:
        """The array itself; "cpu" is the only device. Raises ArgumentError for another one, or a stream."""
        check_device(device)
        if stream is not None:
            raise ArgumentError(f"stream {stream!r} is not known; device 'cpu' has none")
        return self

    # -- parts and forms ----------------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> NoReturn:
        raise missing_name("outcore.Array", name)

    def __getitem__(self, key: Index) -> Array:
        mask, indices = split_mask(key)
        if mask is None and self.ndim == 0 and is_flag(key):
            one: Array = above.choose(_core.expand_dims(self._expr, [0]), _core.expand_dims(node(key), [0]))
            return one
        if mask is None:
            places = find_positions(key, self.ndim)
            if places:
                gathered: Array = above.taken(self, expanded(key, self.ndim), places)
                return gathered
            return Array(index(self._expr, indices))
        chosen: Array = above.choose(self._expr, node(mask))
        return Array(index(chosen._expr, (slice(None), *indices))) if indices else chosen

    def __setitem__(self, key: Assignable, value: Operand) -> None:
        """A functional update: this name stands for a new value, and what was made of the old one keeps it.

        Values broadcast to what the index names and are cast to the type of the array. Slices with any step, integers
        and `...`, or a mask of the leading axes. I/O: none of its own, but one read of a mask that is given a value for
        each element that it chooses: how many those are is counted at once.
        """
        self._expr = above.updated(Array(self._expr), key, value)._expr

    def astype(self, dtype: DTypeLike, *, copy: bool = True) -> Array:
        """The array with its elements cast to `dtype`."""
        return oc.astype(self, dtype, copy=copy)

    def reshape(self, *shape: int | Sequence[int]) -> Array:
        """The array with another shape, in C order; one length may be -1."""
        return oc.reshape(self, integers(shape[0] if len(shape) == 1 else shape))  # type: ignore[arg-type]

    def ravel(self) -> Array:
        """The elements along one axis, in C order."""
        return oc.reshape(self, (-1,))

    def transpose(self, *axes: int | str | Sequence[int | str]) -> Array:
        """The array with its axes permuted, by number or name; reversed when none are given."""
        if not axes:
            return self.T
        return oc.permute_dims(self, axes[0] if len(axes) == 1 and not isinstance(axes[0], (int, str)) else axes)

    def squeeze(self, axis: int | tuple[int, ...] | None = None) -> Array:
        """The array without the given axes of length 1; without all of them when none are given."""
        if axis is None:
            axis = tuple(place for place, length in enumerate(self.shape) if length == 1)
        return oc.squeeze(self, axis)

    def clip(self, min: Operand | None = None, max: Operand | None = None) -> Array:
        """Elements below `min` become `min`, those above `max` become `max`."""
        return oc.clip(self, min, max)

    def round(self, decimals: int = 0) -> Array:
        """Elements rounded to so many decimals, halves to even: scaled, rounded and scaled back, as NumPy does it.

        Integers stay as they are. Raises DTypeError for decimals of complex numbers.
        """
        kind = self.dtype.kind
        if (kind in "biu" and decimals < 0) or (kind == "c" and decimals):
            raise DTypeError(f"round: {decimals} decimals of {self.dtype} are not supported")
        if decimals == 0 or kind in "biu":
            return oc.round(self)
        scale = 10.0 ** abs(decimals)
        return oc.round(self * scale) / scale if decimals > 0 else oc.round(self / scale) * scale

    def conj(self) -> Array:
        """The complex conjugate."""
        return oc.conj(self)

    def dot(self, other: Operand) -> Array:
        """The matrix product, as `self @ other`."""
        return oc.matmul(self, other)

    # -- reductions; the functions of the same names say more --------------------------------------------------

    def sum(self, axis: Axis = None, dtype: DTypeLike = None, *, keepdims: bool = False) -> Array:
        """Sum over the given axes; over all when none are given."""
        return oc.sum(self, axis=axis, dtype=dtype, keepdims=keepdims)

    def prod(self, axis: Axis = None, dtype: DTypeLike = None, *, keepdims: bool = False) -> Array:
        """Product over the given axes."""
        return oc.prod(self, axis=axis, dtype=dtype, keepdims=keepdims)

    def mean(self, axis: Axis = None, *, keepdims: bool = False) -> Array:
        """Arithmetic mean over the given axes."""
        return oc.mean(self, axis=axis, keepdims=keepdims)

    def var(self, axis: Axis = None, *, ddof: float = 0.0, correction: float = 0.0, keepdims: bool = False) -> Array:
        """Variance over the given axes; the divisor is the count less `correction`, which NumPy calls `ddof`."""
        return oc.var(self, axis=axis, correction=correction or ddof, keepdims=keepdims)

    def std(self, axis: Axis = None, *, ddof: float = 0.0, correction: float = 0.0, keepdims: bool = False) -> Array:
        """Standard deviation over the given axes; `correction` or `ddof` as for `var`."""
        return oc.std(self, axis=axis, correction=correction or ddof, keepdims=keepdims)

    def min(self, axis: Axis = None, *, keepdims: bool = False) -> Array:
        """Smallest element along the given axes."""
        return oc.min(self, axis=axis, keepdims=keepdims)

    def max(self, axis: Axis = None, *, keepdims: bool = False) -> Array:
        """Largest element along the given axes."""
        return oc.max(self, axis=axis, keepdims=keepdims)

    def any(self, axis: Axis = None, *, keepdims: bool = False) -> Array:
        """Whether any element along the given axes is not zero."""
        return oc.any(self, axis=axis, keepdims=keepdims)

    def all(self, axis: Axis = None, *, keepdims: bool = False) -> Array:
        """Whether every element along the given axes is not zero."""
        return oc.all(self, axis=axis, keepdims=keepdims)

    def argmin(self, axis: int | str | None = None, *, keepdims: bool = False) -> Array:
        """Index of the first smallest element."""
        return oc.argmin(self, axis=axis, keepdims=keepdims)

    def argmax(self, axis: int | str | None = None, *, keepdims: bool = False) -> Array:
        """Index of the first largest element."""
        return oc.argmax(self, axis=axis, keepdims=keepdims)

    def ptp(self, axis: Axis = None, *, keepdims: bool = False) -> Array:
        """Largest element less the smallest, along the given axes."""
        return oc.ptp(self, axis=axis, keepdims=keepdims)

    def cumsum(self, axis: int | str | None = None, dtype: DTypeLike = None) -> Array:
        """Running sums along an axis; of all elements in C order when none is given."""
        return oc.cumulative_sum(self.ravel() if axis is None else self, axis=axis or 0, dtype=dtype)

    def cumprod(self, axis: int | str | None = None, dtype: DTypeLike = None) -> Array:
        """Running products along an axis; of all elements in C order when none is given."""
        return oc.cumulative_prod(self.ravel() if axis is None else self, axis=axis or 0, dtype=dtype)

    def nonzero(self) -> tuple[Array, ...]:
        """Where the elements are not zero: an array of positions for each axis."""
        positions: tuple[Array, ...] = functions.nonzero(self)
        return positions

    def categories(self) -> Categories:
        """Codes of the elements, and the distinct elements that these number, in order: see `outcore.categories`."""
        result: Categories = functions.categories(self)
        return result

    def argsort(self, axis: int | str = -1) -> Array:
        """The positions that put the elements in order along an axis, stable."""
        return oc.argsort(self, axis=axis)

    def take(self, indices: Operand, axis: int | str | None = None) -> Array:
        """The elements at some positions along an axis; of all elements in C order when none is given."""
        return oc.take(self.ravel() if axis is None else self, indices, axis=axis or 0)

    def repeat(self, repeats: int | Operand, axis: int | str | None = None) -> Array:
        """Each element so many times over along an axis."""
        return oc.repeat(self, repeats, axis=axis)

    def copy(self) -> Array:
        """The same value behind another name: `y[i] = v` leaves this one as it is. No I/O."""
        return self.__copy__()

    def flatten(self) -> Array:
        """The elements along one axis, in C order."""
        return self.ravel()

    def swapaxes(self, axis1: int, axis2: int) -> Array:
        """The array with two axes exchanged."""
        return oc.swapaxes(self, axis1, axis2)

    def tolist(self) -> Any:
        """The elements as nested lists of Python scalars, which must fit the memory limit. Computes."""
        return self._value("a list").tolist()

    def __round__(self, decimals: int | None = None) -> Any:
        """`round(x)` of a single number is a Python int, as everywhere; `round(x, 2)` is an array."""
        return round(self._scalar("round()")) if decimals is None else self.round(decimals)

    def __format__(self, spec: str) -> str:
        """`f"{x:.2f}"` computes the value of a single number; without a format nothing is computed."""
        return format(self._scalar(f"format {spec!r}"), spec) if spec else str(self)

    # -- operators ----------------------------------------------------------------------------------------------

    def __neg__(self) -> Array:
        return oc.negative(self)

    def __pos__(self) -> Array:
        return oc.positive(self)

    def __abs__(self) -> Array:
        return oc.abs(self)

    def __invert__(self) -> Array:
        return oc.bitwise_invert(self)

    def __add__(self, other: Operand) -> Array:
        return oc.add(self, other) if _operand(other) else NotImplemented

    def __radd__(self, other: Operand) -> Array:
        return oc.add(other, self) if _operand(other) else NotImplemented

    def __sub__(self, other: Operand) -> Array:
        return oc.subtract(self, other) if _operand(other) else NotImplemented

    def __rsub__(self, other: Operand) -> Array:
        return oc.subtract(other, self) if _operand(other) else NotImplemented

    def __mul__(self, other: Operand) -> Array:
        return oc.multiply(self, other) if _operand(other) else NotImplemented

    def __rmul__(self, other: Operand) -> Array:
        return oc.multiply(other, self) if _operand(other) else NotImplemented

    def __truediv__(self, other: Operand) -> Array:
        return oc.divide(self, other) if _operand(other) else NotImplemented

    def __rtruediv__(self, other: Operand) -> Array:
        return oc.divide(other, self) if _operand(other) else NotImplemented

    def __floordiv__(self, other: Operand) -> Array:
        return oc.floor_divide(self, other) if _operand(other) else NotImplemented

    def __rfloordiv__(self, other: Operand) -> Array:
        return oc.floor_divide(other, self) if _operand(other) else NotImplemented

    def __mod__(self, other: Operand) -> Array:
        return oc.remainder(self, other) if _operand(other) else NotImplemented

    def __rmod__(self, other: Operand) -> Array:
        return oc.remainder(other, self) if _operand(other) else NotImplemented

    def __pow__(self, other: Operand) -> Array:
        return oc.pow(self, other) if _operand(other) else NotImplemented

    def __rpow__(self, other: Operand) -> Array:
        return oc.pow(other, self) if _operand(other) else NotImplemented

    def __divmod__(self, other: Operand) -> tuple[Array, Array]:
        return (self // other, self % other) if _operand(other) else NotImplemented

    def __rdivmod__(self, other: Operand) -> tuple[Array, Array]:
        return (oc.floor_divide(other, self), oc.remainder(other, self)) if _operand(other) else NotImplemented

    def __matmul__(self, other: Operand) -> Array:
        return oc.matmul(self, other) if _operand(other) else NotImplemented

    def __rmatmul__(self, other: Operand) -> Array:
        return oc.matmul(other, self) if _operand(other) else NotImplemented

    def __and__(self, other: Operand) -> Array:
        return oc.bitwise_and(self, other) if _operand(other) else NotImplemented

    def __rand__(self, other: Operand) -> Array:
        return oc.bitwise_and(other, self) if _operand(other) else NotImplemented

    def __or__(self, other: Operand) -> Array:
        return oc.bitwise_or(self, other) if _operand(other) else NotImplemented

    def __ror__(self, other: Operand) -> Array:
        return oc.bitwise_or(other, self) if _operand(other) else NotImplemented

    def __xor__(self, other: Operand) -> Array:
        return oc.bitwise_xor(self, other) if _operand(other) else NotImplemented

    def __rxor__(self, other: Operand) -> Array:
        return oc.bitwise_xor(other, self) if _operand(other) else NotImplemented

    def __lshift__(self, other: Operand) -> Array:
        return oc.bitwise_left_shift(self, other) if _operand(other) else NotImplemented

    def __rlshift__(self, other: Operand) -> Array:
        return oc.bitwise_left_shift(other, self) if _operand(other) else NotImplemented

    def __rshift__(self, other: Operand) -> Array:
        return oc.bitwise_right_shift(self, other) if _operand(other) else NotImplemented

    def __rrshift__(self, other: Operand) -> Array:
        return oc.bitwise_right_shift(other, self) if _operand(other) else NotImplemented

    def __eq__(self, other: Operand) -> Array:  # type: ignore[override]
        return oc.equal(self, other) if _operand(other) else NotImplemented

    def __ne__(self, other: Operand) -> Array:  # type: ignore[override]
        return oc.not_equal(self, other) if _operand(other) else NotImplemented

    def __lt__(self, other: Operand) -> Array:
        return oc.less(self, other) if _operand(other) else NotImplemented

    def __le__(self, other: Operand) -> Array:
        return oc.less_equal(self, other) if _operand(other) else NotImplemented

    def __gt__(self, other: Operand) -> Array:
        return oc.greater(self, other) if _operand(other) else NotImplemented

    def __ge__(self, other: Operand) -> Array:
        return oc.greater_equal(self, other) if _operand(other) else NotImplemented


class Categories(NamedTuple):
    """The result of `categories`: for each element its place among the distinct ones (int64), and these in order."""

    codes: Array
    categories: Any
