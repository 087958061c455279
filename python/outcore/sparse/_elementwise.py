"""Methods of `SparseMatrix` that make another matrix, entry by entry, while this one passes by.

Each is lazy: a number, a vector or a triangle is applied while the entries pass by, in products, streams and files, and
nothing is written. Two matrices come to a file in scratch, by a stage of the program that reads their result. With
`path` the result is stored there at once: one read of the operands and one write. Memory: some tiles, reserved in the
session.
"""

from __future__ import annotations

import numbers
import operator
from collections.abc import Callable
from typing import Any, Literal, Self, TypeAlias

import numpy as np

from outcore import _core
from outcore._base.element_types import DTypeLike, dtype_of
from outcore._base.types import DType, NDArray, PathLike
from outcore._lazy.array import Array
from outcore._lazy.node import Operand, is_weak, node
from outcore._session.session import current
from outcore.elementwise import conj, maximum, minimum
from outcore.errors import ArgumentError, DTypeError, ShapeError
from outcore.sparse._content import stored_at
from outcore.sparse._refused import refuse_foreign, whole
from outcore.sparse._stored import Matrix, StoredMatrix
from outcore.sparse._stream import File, as_read, changed, combined, kind_of

Comparison: TypeAlias = Literal["==", "!=", "<", "<=", ">", ">="]
Other: TypeAlias = "StoredMatrix | Operand"  # the second of two operands
_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
# Numbers with which 0 comes to 0.
_ZERO_KEPT: dict[str, Callable[[Any], bool]] = {
    "+": lambda number: number == 0,
    "-": lambda number: number == 0,
    "maximum": lambda number: number <= 0,
    "minimum": lambda number: number >= 0,
}


class Elementwise(StoredMatrix):
    """Element-wise operations of a `SparseMatrix`."""

    def multiply(self, other: Other, *, path: PathLike | None = None, overwrite: bool = False) -> Self:
        """This matrix times a number, a dense row (n,) or (1, n), a column (m, 1), or a sparse matrix of its shape.

        Dense vectors may be lazy; they are computed at once and held in memory, and pickled with their values.
        Values have the type of NumPy's promotion. Of two sparse matrices places that come to 0 are not stored, and
        infinity or NaN at a place where the other has no entry comes to NaN, both as by SciPy.
        Raises ShapeError for other shapes.
        I/O: none by a number or NumPy's vector, one read of a lazy one; of two matrices one read of each and one write
        when the result is made. A matrix that is read the other way (`A.multiply(B.T)`) is sorted then, too.

        >>> import numpy as np, outcore as oc, scipy.sparse, tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.ocs"
        >>> A = oc.sparse.from_scipy(scipy.sparse.csr_array([[0.0, 3.0], [1.0, 0.0]]), path)
        >>> A.multiply(np.asarray([10.0, 100.0])).to_scipy().toarray()
        array([[  0., 300.],
               [ 10.,   0.]])
        """
        if isinstance(other, Elementwise):
            b = _same(self, other, "multiply")
            return combined(self, b, operator.mul, np.result_type(self.dtype, b.dtype), path, overwrite)
        refuse_foreign("multiply", other)
        scale, dtype = _scale(self, other)
        return self._valued(lambda value: value * scale, dtype, path, overwrite)

    def __mul__(self, other: Other) -> Self:
        return self.multiply(other)

    __rmul__ = __mul__

    def __truediv__(self, other: Other) -> Self:
        if isinstance(other, Elementwise):
            raise ArgumentError("sparse division by a sparse matrix: what it has no entry at would come to NaN")
        refuse_foreign("division", other)
        scale, both = _scale(self, other)
        dtype = np.true_divide(np.ones(1, both), np.ones(1, both)).dtype
        divisor = Array(node(scale)).astype(dtype)
        return self._valued(lambda value: value.astype(dtype) / divisor, dtype)

    def __neg__(self) -> Self:
        if self.dtype.kind == "b":
            raise DTypeError("sparse negative: bool has no negatives; A.astype('int8') has")
        return self._valued(operator.neg, self.dtype)

    def add(self, other: Other, *, path: PathLike | None = None, overwrite: bool = False) -> Self:
        """The sum with a sparse matrix of its shape; `A + B` and `A - B` are the same without a path: lazy.

        Places that come to 0 are not stored, as by SciPy. Raises ShapeError, and ArgumentError for what is dense: the
        sum would be, but of the number 0. I/O: one read of each, one write, when the result is made; a matrix that is
        read the other way (`A + B.T`) is sorted then, too.

        >>> import numpy as np, outcore as oc, scipy.sparse, tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.ocs"
        >>> A = oc.sparse.from_scipy(scipy.sparse.csr_array([[0.0, 3.0], [1.0, 0.0]]), path)
        >>> (A + A.T).to_scipy().toarray()
        array([[0., 4.],
               [4., 0.]])
        """
        return self._combined(other, "+", operator.add, path, overwrite)

    def __add__(self, other: Other) -> Self:
        return self.add(other)

    __radd__ = __add__

    def __sub__(self, other: Other) -> Self:
        if isinstance(other, Elementwise) and self.dtype.kind == other.dtype.kind == "b":
            raise DTypeError("sparse -: bools have no difference; A != B has the places at which they differ")
        return self._combined(other, "-", operator.sub, None, False)

    def __rsub__(self, other: Other) -> Self:
        return (-self).add(other)

    def maximum(self, other: Other, *, path: PathLike | None = None, overwrite: bool = False) -> Self:
        """The larger of the elements of two matrices, or of each element and a number of at most 0; NaN where one is.
        I/O: as `add`; with a number none."""
        return self._combined(other, "maximum", maximum, path, overwrite)

    def minimum(self, other: Other, *, path: PathLike | None = None, overwrite: bool = False) -> Self:
        """The smaller of the elements of two matrices, or of each element and a number of at least 0; NaN where one is.
        I/O: as `add`; with a number none."""
        return self._combined(other, "minimum", minimum, path, overwrite)

    def _combined(
        self, other: Other, name: str, f: Callable[[Array, Operand], Array], path: PathLike | None, overwrite: bool
    ) -> Self:
        if not isinstance(other, Elementwise):
            refuse_foreign(name, other)
            if not isinstance(other, StoredMatrix | complex) and _is_number(other) and _ZERO_KEPT[name](other):
                dtype = _scale(self, other)[1]
                return self._valued(lambda value: f(value.astype(dtype), other), dtype, path, overwrite)
            raise ArgumentError(f"sparse {name} of {type(other).__name__}: the result would be dense")
        a, b = self, _same(self, other, name)
        dtype = np.result_type(a.dtype, b.dtype)
        return combined(a, b, lambda x, y: f(x.astype(dtype), y.astype(dtype)), dtype, path, overwrite)

    def compare(self, how: Comparison, other: Other, *, path: PathLike | None = None, overwrite: bool = False) -> Self:
        """The places at which a comparison with a number or a sparse matrix holds, as a pattern.

        `A > 3` and its like are the same without a path: lazy. Raises ArgumentError where the comparison holds of 0,
        which is nearly everywhere. I/O: with a number none, with a matrix as `add`.

        >>> import numpy as np, outcore as oc, scipy.sparse, tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.ocs"
        >>> A = oc.sparse.from_scipy(scipy.sparse.csr_array([[0.0, 3.0], [1.0, 0.0]]), path)
        >>> (A > 2).to_scipy().toarray()
        array([[False,  True],
               [False, False]])
        """
        if how not in _COMPARISONS:
            raise ArgumentError(f"sparse compare: {how!r} is none of {', '.join(_COMPARISONS)}")
        holds, a = _COMPARISONS[how], self
        is_matrix = isinstance(other, Elementwise)
        if not is_matrix:
            refuse_foreign(how, other)
            if not _is_number(other):
                raise ArgumentError(f"sparse {how}: {type(other).__name__} is no number and no sparse matrix")
        if is_matrix and how == "==":
            raise ArgumentError(
                "sparse: A == B holds wherever nothing is stored; (A != B).nnz == 0 tells whether they are equal"
            )
        if isinstance(other, complex | np.complexfloating) and how not in ("==", "!="):
            raise ArgumentError(f"sparse {how}: complex numbers have no order")
        if holds(0, 0 if is_matrix else other):
            raise ArgumentError(f"sparse: 0 {how} {'0' if is_matrix else other} holds wherever nothing is stored")
        if is_matrix:
            b = _same(a, other, how)
            return combined(a, b, holds, None, path, overwrite)
        return self._where(lambda rows, columns, value: holds(value, other), None, path, overwrite)

    def __eq__(self, other: Other) -> Self:  # type: ignore[override]  # as arrays
        return self.compare("==", other) if _is_compared(other) else NotImplemented

    def __ne__(self, other: Other) -> Self:  # type: ignore[override]
        return self.compare("!=", other) if _is_compared(other) else NotImplemented

    __hash__ = object.__hash__

    def __gt__(self, other: Other) -> Self:
        return self.compare(">", other)

    def __ge__(self, other: Other) -> Self:
        return self.compare(">=", other)

    def __lt__(self, other: Other) -> Self:
        return self.compare("<", other)

    def __le__(self, other: Other) -> Self:
        return self.compare("<=", other)

    def power(
        self, n: float, dtype: DTypeLike = None, *, path: PathLike | None = None, overwrite: bool = False
    ) -> Self:
        """Each entry to the power of `n` > 0. Raises ArgumentError for others, of which 0 gives no 0.

        I/O: none; with `path` one read, one write.

        >>> import numpy as np, outcore as oc, scipy.sparse, tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.ocs"
        >>> oc.sparse.from_scipy(scipy.sparse.eye_array(2) * 3.0, path).power(2).to_scipy().data
        array([9., 9.])
        """
        if not isinstance(n, numbers.Real):
            raise ArgumentError(f"sparse power: {type(n).__name__} is no real number")
        if not n > 0:
            raise ArgumentError(f"sparse power: 0 to the power of {n} is not 0, so the result would be dense")
        to = np.result_type(self.dtype, n) if dtype is None else dtype_of(dtype)
        return self._valued(lambda value: value.astype(to) ** n, to, path, overwrite)

    def __pow__(self, n: float) -> Self:
        return self.power(n)

    def map(self, f: Callable[[Array], Array], *, path: PathLike | None = None, overwrite: bool = False) -> Self:
        """An element-wise function of the entries' values, which gives 0 for 0: `A.map(np.log1p)`, `A.map(np.sqrt)`.

        `f` takes a lazy array and gives one of the same shape, by element-wise functions alone. Raises ArgumentError
        where it gives something else for 0, of which the result would be dense, or is not element-wise.
        I/O: none; with `path` one read, one write.

        >>> import numpy as np, outcore as oc, scipy.sparse, tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.ocs"
        >>> oc.sparse.from_scipy(scipy.sparse.eye_array(2) * 9.0, path).map(np.sqrt).to_scipy().data
        array([3., 3.])
        """
        zero = f(Array(node(np.zeros(2, self.dtype))))
        if not isinstance(zero, Array) or zero.shape != (2,):
            raise ArgumentError(f"sparse map: {_name_of(f)} gives no lazy array of the shape of its argument")
        if np.any(zero.compute() != 0):
            raise ArgumentError(f"sparse map: {_name_of(f)} of 0 is not 0, so the result would be dense")
        return self._valued(f, zero.dtype, path, overwrite)

    def astype(self, dtype: DTypeLike, *, path: PathLike | None = None, overwrite: bool = False) -> Self:
        """The entries as another type, converted as NumPy does. I/O: none; with `path` one read, one write.

        >>> import numpy as np, outcore as oc, scipy.sparse, tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.ocs"
        >>> oc.sparse.from_scipy(scipy.sparse.eye_array(2), path).astype(np.int8).dtype
        dtype('int8')
        """
        to = dtype_of(dtype)
        return self._valued(lambda value: value.astype(to), to, path, overwrite)

    def __abs__(self) -> Self:
        dtype = np.abs(np.zeros(0, self.dtype)).dtype
        return self._valued(lambda value: value if self.dtype.kind == "b" else abs(value), dtype)

    def conj(self) -> Self:
        """The complex conjugates, lazy. I/O: none."""
        return self._valued(conj, self.dtype)

    def eliminate_zeros(self, *, path: PathLike | None = None, overwrite: bool = False) -> Self:
        """The matrix without entries that are 0; a new one, where SciPy changes its own.

        I/O: none; with `path` one read, one write.

        >>> import numpy as np, outcore as oc, tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.ocs"
        >>> oc.sparse.from_coo([0, 1], [0, 1], [0.0, 1.0], (2, 2), path).eliminate_zeros().nnz
        1
        """
        return self._where(lambda rows, columns, value: value != 0, kind_of(self), path, overwrite)

    def tril(self, k: int = 0, *, path: PathLike | None = None, overwrite: bool = False) -> Self:
        """The entries on and below the `k`-th diagonal. I/O: none; with `path` one read, one write.

        >>> import numpy as np, outcore as oc, scipy.sparse, tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.ocs"
        >>> A = oc.sparse.from_scipy(scipy.sparse.csr_array([[1.0, 3.0], [1.0, 0.0]]), path)
        >>> A.tril(-1).to_scipy().toarray()
        array([[0., 0.],
               [1., 0.]])
        """
        return self._where(lambda rows, columns, _: columns - rows <= whole("tril", k), kind_of(self), path, overwrite)

    def triu(self, k: int = 0, *, path: PathLike | None = None, overwrite: bool = False) -> Self:
        """The entries on and above the `k`-th diagonal. I/O: none; with `path` one read, one write."""
        return self._where(lambda rows, columns, _: columns - rows >= whole("triu", k), kind_of(self), path, overwrite)

    def copy(self, *, path: PathLike | None = None, overwrite: bool = False) -> Self:
        """The matrix in a file of its own. Of a transpose, one that is stored the way it is read.

        I/O: one read, one write; of a transpose two reads, and the entries, 8 bytes and a value each, are sorted
        between.

        >>> import numpy as np, outcore as oc, scipy.sparse, tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.ocs"
        >>> A = oc.sparse.from_scipy(scipy.sparse.csr_array([[0.0, 3.0], [1.0, 0.0]]), path)
        >>> list(A.T.copy().blocks())[0][2]
        array([1., 3.])
        """
        whole = as_read(self) if self._transposed else self
        file = File(path)
        made: Self = file.opened(stored_at(whole._content.node(), file.path, overwrite))
        return made

    def _valued(
        self, f: Callable[[Array], Array], dtype: DType, path: PathLike | None = None, overwrite: bool = False
    ) -> Self:
        return changed(self, lambda rows, columns, value: (f(value), None), dtype, path, overwrite)

    def _where(
        self,
        holds: Callable[[Array, Array, Array], Array],
        dtype: DType | None,
        path: PathLike | None,
        overwrite: bool,
    ) -> Self:
        return changed(self, lambda rows, columns, value: (None, holds(rows, columns, value)), dtype, path, overwrite)


def _name_of(f: object) -> str:
    return str(getattr(f, "__name__", f))


def _is_number(value: object) -> bool:
    return is_weak(value) or isinstance(value, np.number | np.bool_)


def _is_compared(value: object) -> bool:
    """Whether it has elements, or is one; of all else Python says that it is another object."""
    return _is_number(value) or isinstance(value, Elementwise | Array | np.ndarray) or hasattr(value, "tocsr")


def _same(a: Matrix, b: Any, name: str) -> Matrix:
    """The second of two matrices of one shape."""
    if a.shape != b.shape:
        raise ShapeError(f"sparse {name}: shapes {a.shape} and {b.shape} differ")
    matrix: Matrix = b
    return matrix


def _vector(other: Other) -> NDArray:
    return np.asarray(other.compute() if isinstance(other, Array) else other)


def _scale(a: StoredMatrix, other: Any) -> tuple[Any, DType]:
    """The factor of entries, a number or a node, and the type of the product."""
    if is_weak(other):
        return other, np.result_type(a.dtype, other)  # NumPy's rules for Python scalars
    if isinstance(other, Array) and other.ndim == 2 and 1 not in other.shape:
        raise ShapeError(f"sparse multiply: {a.shape} by the lazy {other.shape}; a row, a column or a number is right")
    dense = _vector(other)
    kind = dtype_of(dense.dtype)
    dtype = np.result_type(a.dtype, kind)
    if dense.ndim > 2 or any(
        extent not in (1, length) for extent, length in zip(dense.shape[::-1], a.shape[::-1], strict=False)
    ):
        raise ShapeError(f"sparse multiply: shapes {a.shape} and {dense.shape} do not go together")
    wide = dense.astype(kind, copy=False).reshape((1,) * (2 - dense.ndim) + dense.shape)
    if wide.size == 1:
        return wide.reshape(())[()], dtype
    elements = np.ascontiguousarray(wide.T if a._transposed else wide)
    shape = (elements.shape[0], elements.shape[1])
    operand = _core.entry_operand(current()._core, shape, elements.reshape(-1).view(np.uint8), kind.name)
    return Array(operand), dtype


__all__ = ["Elementwise"]
