"""Methods of `SparseMatrix` that make another matrix, entry by entry, while this one passes by.

Each writes a new file: at `path`, or in scratch, from where it goes with the last matrix that reads it. I/O of each:
one read of its operands and one write of its result, unless said. Memory: a tile row of each operand, about 100 bytes
for an entry, reserved in the session.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Literal, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from outcore._base.element_types import DTypeLike, dtype_of
from outcore._base.types import DType, NDArray, PathLike
from outcore._lazy.array import Array
from outcore._lazy.node import Operand, is_weak
from outcore.errors import ArgumentError, DTypeError, ShapeError
from outcore.sparse._refused import refuse_foreign
from outcore.sparse._stored import Matrix, StoredMatrix
from outcore.sparse._stream import Indices, Values, kind_of, merged, rewritten, sorted_as_read

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


class Elementwise(StoredMatrix):
    """Element-wise operations of a `SparseMatrix`."""

    def multiply(self, other: Other, *, path: PathLike | None = None, overwrite: bool = False) -> Self:
        """This matrix times a number, a dense row (n,) or (1, n), a column (m, 1), or a sparse matrix of its shape.

        Dense vectors may be lazy; they are held in memory. Values have the type of NumPy's promotion. Of two sparse
        matrices places that come to 0 are not stored, and infinity or NaN at a place where the other has no entry comes
        to NaN, both as by SciPy. Raises ShapeError for other shapes.
        I/O: one read of each, one write; a matrix that is read the other way (`A.multiply(B.T)`) is sorted first.

        >>> import numpy as np, outcore as oc, scipy.sparse, tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.ocs"
        >>> A = oc.sparse.from_scipy(scipy.sparse.csr_array([[0.0, 3.0], [1.0, 0.0]]), path)
        >>> A.multiply(np.asarray([10.0, 100.0])).to_scipy().toarray()
        array([[  0., 300.],
               [ 10.,   0.]])
        """
        if isinstance(other, Elementwise):
            b = _same(self, other, "multiply")
            dtype = np.result_type(self.dtype, b.dtype)
            return merged(self, b, lambda x, y: (x * y).astype(dtype), dtype, path, overwrite)
        refuse_foreign("multiply", other)
        scale, dtype = _scale(self, other)

        def change(rows: Indices, columns: Indices, values: Values) -> tuple[Indices, Indices, Values]:
            return rows, columns, (values * scale(rows, columns)).astype(dtype)

        return rewritten(self, change, dtype, path, overwrite)

    def __mul__(self, other: Other) -> Self:
        return self.multiply(other)

    __rmul__ = __mul__

    def __truediv__(self, other: Other) -> Self:
        if isinstance(other, Elementwise):
            raise ArgumentError("sparse division by a sparse matrix: what it has no entry at would come to NaN")
        refuse_foreign("division", other)
        scale, both = _scale(self, other)
        dtype = np.true_divide(np.ones(1, both), np.ones(1, both)).dtype

        def change(rows: Indices, columns: Indices, values: Values) -> tuple[Indices, Indices, Values]:
            return rows, columns, np.true_divide(values, scale(rows, columns), dtype=dtype)

        return rewritten(self, change, dtype, None, False)

    def __neg__(self) -> Self:
        if self.dtype.kind == "b":
            raise DTypeError("sparse negative: bool has no negatives; A.astype('int8') has")
        return self._valued(np.negative, self.dtype, None, False)

    def add(self, other: Other, *, path: PathLike | None = None, overwrite: bool = False) -> Self:
        """The sum with a sparse matrix of its shape; `A + B` and `A - B` are the same in scratch.

        Places that come to 0 are not stored, as by SciPy. Raises ShapeError, and ArgumentError for what is dense: the
        sum would be. I/O: one read of each, one write; a matrix that is read the other way is sorted first.

        >>> import numpy as np, outcore as oc, scipy.sparse, tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.ocs"
        >>> A = oc.sparse.from_scipy(scipy.sparse.csr_array([[0.0, 3.0], [1.0, 0.0]]), path)
        >>> (A + A.T).to_scipy().toarray()
        array([[0., 4.],
               [4., 0.]])
        """
        return self._combined(other, "+", lambda x, y: x + y, path, overwrite)

    def __add__(self, other: Other) -> Self:
        return self.add(other)

    def __sub__(self, other: Other) -> Self:
        if isinstance(other, Elementwise) and self.dtype.kind == other.dtype.kind == "b":
            raise DTypeError("sparse -: bools have no difference; A != B has the places at which they differ")
        return self._combined(other, "-", lambda x, y: x - y, None, False)

    def maximum(self, other: Other, *, path: PathLike | None = None, overwrite: bool = False) -> Self:
        """The larger of the elements of two matrices; NaN where one is. I/O: as `add`."""
        return self._combined(other, "maximum", np.maximum, path, overwrite)

    def minimum(self, other: Other, *, path: PathLike | None = None, overwrite: bool = False) -> Self:
        """The smaller of the elements of two matrices; NaN where one is. I/O: as `add`."""
        return self._combined(other, "minimum", np.minimum, path, overwrite)

    def _combined(
        self, other: Other, name: str, f: Callable[[NDArray, NDArray], NDArray], path: PathLike | None, overwrite: bool
    ) -> Self:
        if not isinstance(other, Elementwise):
            refuse_foreign(name, other)
            raise ArgumentError(f"sparse {name} of {type(other).__name__}: the result would be dense")
        a, b = self, _same(self, other, name)
        dtype = np.result_type(a.dtype, b.dtype)
        return merged(a, b, lambda x, y: f(x.astype(dtype), y.astype(dtype)), dtype, path, overwrite)

    def compare(self, how: Comparison, other: Other, *, path: PathLike | None = None, overwrite: bool = False) -> Self:
        """The places at which a comparison with a number or a sparse matrix holds, as a pattern.

        `A > 3` and its like are the same in scratch. Raises ArgumentError where the comparison holds of 0, which is
        nearly everywhere. I/O: one read of each, one write.

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
        if holds(0, 0 if is_matrix else other):
            raise ArgumentError(f"sparse: 0 {how} {'0' if is_matrix else other} holds wherever nothing is stored")
        if is_matrix:
            b = _same(a, other, how)
            return merged(a, b, lambda x, y: holds(x, y), None, path, overwrite)
        return self._where(lambda rows, columns, values: holds(values, other), path, overwrite, None)

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

        I/O: one read, one write.

        >>> import numpy as np, outcore as oc, scipy.sparse, tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.ocs"
        >>> oc.sparse.from_scipy(scipy.sparse.eye_array(2) * 3.0, path).power(2).to_scipy().data
        array([9., 9.])
        """
        if not n > 0:
            raise ArgumentError(f"sparse power: 0 to the power of {n} is not 0, so the result would be dense")
        to = np.result_type(self.dtype, n) if dtype is None else dtype_of(dtype)
        return self._valued(lambda values: np.power(values.astype(to), n), to, path, overwrite)

    def astype(self, dtype: DTypeLike, *, path: PathLike | None = None, overwrite: bool = False) -> Self:
        """The entries as another type, converted as NumPy does. I/O: one read, one write.

        >>> import numpy as np, outcore as oc, scipy.sparse, tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.ocs"
        >>> oc.sparse.from_scipy(scipy.sparse.eye_array(2), path).astype(np.int8).dtype
        dtype('int8')
        """
        to = dtype_of(dtype)
        return self._valued(lambda values: values.astype(to), to, path, overwrite)

    def __abs__(self) -> Self:
        dtype = np.abs(np.zeros(0, self.dtype)).dtype
        return self._valued(np.abs, dtype, None, False)

    def conj(self) -> Self:
        """The complex conjugates, in scratch. I/O: one read, one write."""
        return self._valued(np.conj, self.dtype, None, False)

    def eliminate_zeros(self, *, path: PathLike | None = None, overwrite: bool = False) -> Self:
        """The matrix without entries that are 0; a new one, where SciPy changes its own. I/O: one read, one write.

        >>> import numpy as np, outcore as oc, tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.ocs"
        >>> oc.sparse.from_coo([0, 1], [0, 1], [0.0, 1.0], (2, 2), path).eliminate_zeros().nnz
        1
        """
        return self._where(lambda rows, columns, values: values != 0, path, overwrite, kind_of(self))

    def tril(self, k: int = 0, *, path: PathLike | None = None, overwrite: bool = False) -> Self:
        """The entries on and below the `k`-th diagonal. I/O: one read, one write.

        >>> import numpy as np, outcore as oc, scipy.sparse, tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.ocs"
        >>> A = oc.sparse.from_scipy(scipy.sparse.csr_array([[1.0, 3.0], [1.0, 0.0]]), path)
        >>> A.tril(-1).to_scipy().toarray()
        array([[0., 0.],
               [1., 0.]])
        """
        return self._where(lambda r, c, v: _offset(r, c) <= k, path, overwrite, kind_of(self))

    def triu(self, k: int = 0, *, path: PathLike | None = None, overwrite: bool = False) -> Self:
        """The entries on and above the `k`-th diagonal. I/O: one read, one write."""
        return self._where(lambda r, c, v: _offset(r, c) >= k, path, overwrite, kind_of(self))

    def copy(self, *, path: PathLike | None = None, overwrite: bool = False) -> Self:
        """The matrix in a file of its own. Of a transpose, one that is stored the way it is read.

        I/O: one read, one write; of a transpose the entries, 8 bytes and a value each, are sorted between.

        >>> import numpy as np, outcore as oc, scipy.sparse, tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.ocs"
        >>> A = oc.sparse.from_scipy(scipy.sparse.csr_array([[0.0, 3.0], [1.0, 0.0]]), path)
        >>> list(A.T.copy().blocks())[0][2]
        array([1., 3.])
        """
        if self._transposed:
            return sorted_as_read(self, path, overwrite)
        return self._where(lambda rows, columns, values: np.ones(len(rows), dtype=bool), path, overwrite, kind_of(self))

    def _valued(self, f: Callable[[NDArray], NDArray], dtype: DType, path: PathLike | None, overwrite: bool) -> Self:
        return rewritten(self, lambda rows, columns, values: (rows, columns, f(values)), dtype, path, overwrite)

    def _where(
        self,
        holds: Callable[[Indices, Indices, Values], npt.NDArray[np.bool_]],
        path: PathLike | None,
        overwrite: bool,
        dtype: DType | None,
    ) -> Self:
        def change(rows: Indices, columns: Indices, values: Values) -> tuple[Indices, Indices, Values]:
            which = holds(rows, columns, values)
            return rows[which], columns[which], values[which]

        return rewritten(self, change, dtype, path, overwrite)


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


def _offset(rows: Indices, columns: Indices) -> npt.NDArray[np.int64]:
    """The diagonals on which entries lie."""
    return columns.astype(np.int64) - rows.astype(np.int64)


def _vector(other: Other) -> NDArray:
    return np.asarray(other.compute() if isinstance(other, Array) else other)


def _scale(a: StoredMatrix, other: Any) -> tuple[Callable[[Indices, Indices], NDArray], DType]:
    """The factors of entries at some places, and the type of the product."""
    if is_weak(other):
        # NumPy's rules for Python scalars.
        dtype = np.result_type(a.dtype, other)
        return lambda rows, columns: np.asarray(other, dtype=dtype), dtype
    if isinstance(other, Array) and other.ndim == 2 and 1 not in other.shape:
        raise ShapeError(f"sparse multiply: {a.shape} by the lazy {other.shape}; a row, a column or a number is right")
    dense = _vector(other)
    dtype = np.result_type(a.dtype, dtype_of(dense.dtype))
    if dense.ndim > 2 or any(
        extent not in (1, length) for extent, length in zip(dense.shape[::-1], a.shape[::-1], strict=False)
    ):
        raise ShapeError(f"sparse multiply: shapes {a.shape} and {dense.shape} do not go together")
    wide = dense.reshape((1,) * (2 - dense.ndim) + dense.shape)
    tall, broad = wide.shape[0] > 1, wide.shape[1] > 1

    def scale(rows: Indices, columns: Indices) -> Any:
        return wide[rows if tall else 0, columns if broad else 0]

    return scale, dtype


__all__ = ["Elementwise"]
