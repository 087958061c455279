"""`SparseMatrix`: a matrix on disk of which only the entries are stored, and its products with dense arrays."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from outcore._base.element_types import DTypeLike, dtype_of
from outcore._lazy.array import Array
from outcore._lazy.hooks import above
from outcore._lazy.node import Operand, node
from outcore._lazy.reduction import sum_dtype
from outcore._session.session import current
from outcore._standard.creation import ones
from outcore.errors import ArgumentError, DTypeError, ShapeError
from outcore.sparse._along import Along, check_room, no_out
from outcore.sparse._arranging import Arranging
from outcore.sparse._called import Called
from outcore.sparse._elementwise import Elementwise
from outcore.sparse._refused import Refused, refuse_foreign
from outcore.sparse._rowwise import ByRow, by_row
from outcore.sparse._semirings import Multiply, by_functions, masked
from outcore.sparse._spgemm import spgemm

if TYPE_CHECKING:
    pass


class SparseMatrix(Elementwise, Along, Arranging, Called):
    """A sparse matrix on disk. Made by `outcore.sparse.open` and the functions that convert to its format.

    `A @ X`, `X @ A` and `A.T @ X` are lazy arrays: the entries pass by once for as many columns of `X` as fit into
    memory (`X` may be lazy, or larger than memory). `product` takes other semirings.

    >>> import numpy as np, outcore as oc, scipy.sparse, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.ocs"
    >>> A = oc.sparse.from_scipy(scipy.sparse.eye(3) * 2.0, path)
    >>> (A @ np.arange(3.0)).compute()
    array([0., 2., 4.])
    """

    __array_priority__ = 100.0
    __array_ufunc__ = None  # X @ A is ours

    @overload
    def __matmul__(self, other: SparseMatrix) -> SparseMatrix: ...
    @overload
    def __matmul__(self, other: Operand) -> Array: ...
    def __matmul__(self, other: Operand | SparseMatrix) -> Array | SparseMatrix:
        return spgemm(self, other) if isinstance(other, SparseMatrix) else self.product(other)

    def __rmatmul__(self, other: Operand) -> Array:
        refuse_foreign("product", other)
        x = Array(node(other))
        if x.ndim == 1:
            return self.T.product(x)
        return self.T.product(x.T).T

    @overload
    def dot(self, other: SparseMatrix) -> SparseMatrix: ...
    @overload
    def dot(self, other: Operand) -> Array: ...
    def dot(self, other: Operand | SparseMatrix) -> Array | SparseMatrix:
        """As `A @ other`."""
        return self @ other

    def product(
        self,
        other: Operand,
        semiring: str | tuple[str, Multiply] = "plus_times",
        *,
        mask: Operand | SparseMatrix | None = None,
        complement: bool = False,
    ) -> Array:
        """The product with a dense array of one or two axes, lazily, in a semiring by its GraphBLAS name or your own.

        Parameters
        ----------
        other
            What has as many rows as this matrix has columns; lazy or NumPy's.
        semiring
            "plus_times" is the ordinary one; others are "min_plus", "max_plus", "min_times", "max_times", "plus_pair",
            "plus_first", "plus_second", "min_first", "min_second", "max_first", "max_second", "any_pair" and "lor_land"
            (of bool). `first` is the matrix's value, `second` that of `other`, `pair` is 1; a pattern's values are 1.
            Elements without a term are the sum of nothing: 0, or ±inf for min and max.

            One of your own is a pair `(add, multiply)`: the name of a monoid ("plus", "times", "min", "max", "any",
            "lor", "land"), and a function of (value, x) that is traced into nodes, or an element-wise one's name, as
            `outcore.inner` takes them. Nothing comes to 0, 1, ±inf (the bounds of an integer type), 0, False and True.
        mask
            Bool, of the result's shape: where it is false the result is the sum of nothing. A sparse matrix is
            structural: it is true where it has an entry, whatever its value.
        complement
            The mask's opposite.

        Returns
        -------
        Array
            Of the shape of `A @ other` and the type that NumPy's promotion gives: sums of integers are formed in 64
            bits and wrap around at the end, those of bool and bool are counts (int64, where `oc.matmul` gives bool),
            extremes of integers are int64. With a semiring of your own sums are of the types of `oc.sum`, all others
            of that of `multiply`.

        Raises
        ------
        ShapeError
            Shapes that do not go together.
        DTypeError
            Types that do not make the semiring: extremes of complex numbers, or of uint64, which int64 does not hold;
            a mask that is not bool.
        ArgumentError
            A semiring that there is not, or `complement` without a mask.

        Notes
        -----
        I/O: one read of the matrix for as many columns of `other` as fit into memory; one read of `other`, and where it
        does not fit one more write and read (Zheng 2017, 4.3.6). A mask is read with the result, a sparse one once for
        each band of the result's columns; it saves no product.

        With functions of your own the entries are stored by rows first, when the first such product of this object is
        called for: one read of the matrix (of a transpose its `copy`, sorted), one write of 6 bytes and the value for
        each entry and each row. They are kept for the next, in scratch, while the object is used. The product reads
        them once and takes `other` at their columns (`outcore.take` says at what cost); each of entries times columns
        of `other` is a term, and those that do not stay in memory are written and read once.

        Examples
        --------
        >>> import numpy as np, outcore as oc, scipy.sparse, tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.ocs"
        >>> A = oc.sparse.from_scipy(scipy.sparse.csr_array([[0.0, 3.0], [1.0, 0.0]]), path)
        >>> A.product(np.asarray([0.0, 10.0]), "min_plus").compute()
        array([13.,  1.])
        >>> A.product(np.asarray([0.0, 10.0]), "min_plus", mask=np.asarray([True, False])).compute()
        array([13., inf])
        >>> A.product(np.asarray([0.0, 10.0]), ("max", lambda value, x: abs(x - value))).compute()
        array([7., 1.])
        """
        if isinstance(other, Refused):
            raise DTypeError("sparse product: both are sparse matrices; use A @ B, or outcore.sparse.spgemm")
        refuse_foreign("product", other)
        x = Array(node(other))
        if x.ndim not in (1, 2):
            raise ShapeError(f"sparse product: {self.shape} @ {x.shape}: the second has one axis or two")
        if x.shape[0] != self.shape[1]:
            raise ShapeError(
                f"sparse product: {self.shape} @ {x.shape}: inner dimensions {self.shape[1]} and {x.shape[0]} differ"
            )
        if isinstance(semiring, str):
            return masked(self._product(x, semiring), semiring.split("_")[0], mask, complement)
        if not isinstance(semiring, tuple) or len(semiring) != 2:
            raise ArgumentError(f"sparse product: semiring={semiring!r} is neither a name nor (add, multiply)")
        add, multiply = semiring
        return masked(by_functions(self, self._by_row, x, add, multiply), add, mask, complement)

    def _by_row(self) -> ByRow:
        """The entries by rows, stored when they are first asked for in a session."""
        if self._rowwise is None or self._rowwise[0]() is not current():
            self._rowwise = weakref.ref(current()), by_row(self)
        return self._rowwise[1]

    def sum(self, axis: int | None = None, dtype: DTypeLike = None, out: None = None) -> Array:
        """The sum of the entries, or of each column (`axis=0`) or row (`axis=1`), as SciPy's. I/O: one read.

        Sums are formed in double precision, or as 64-bit integers, and come as `dtype`, that of `oc.sum` unless given.

        >>> import numpy as np, outcore as oc, scipy.sparse, tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.ocs"
        >>> oc.sparse.from_scipy(scipy.sparse.csr_array([[0.0, 3.0], [1.0, 0.0]]), path).sum(axis=1).compute()
        array([3., 1.])
        """
        if axis not in (None, 0, 1, -1, -2):
            raise ArgumentError(f"sparse sum: axis {axis} of a matrix")
        no_out("sum", out)
        kind = np.dtype(np.int64) if self.is_pattern else sum_dtype(self.dtype)
        to = kind if dtype is None else dtype_of(dtype)
        # One after the other, thousands of small numbers would be lost in single precision.
        working = np.result_type(kind, to, np.float64) if {kind.kind, to.kind} & {"f", "c"} else kind
        of = self.T if axis in (0, -2) else self
        sums = of @ ones(of.shape[1], dtype=working)
        return (sums.sum() if axis is None else sums).astype(to)

    def mean(self, axis: int | None = None, dtype: DTypeLike = None, out: None = None) -> Array:
        """The mean of the elements, zeros and all, or of each column (`axis=0`) or row (`axis=1`). I/O: as `sum`.

        Of integers and bool it is float64. Of no elements it is NaN.

        >>> import numpy as np, outcore as oc, scipy.sparse, tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.ocs"
        >>> oc.sparse.from_scipy(scipy.sparse.csr_array([[0.0, 3.0], [1.0, 0.0]]), path).mean(axis=1).compute()
        array([1.5, 0.5])
        """
        no_out("mean", out)
        to = dtype_of(dtype) if dtype is not None else self.dtype if self.dtype.kind in "fc" else np.dtype(np.float64)
        total = self.sum(axis, np.result_type(to, np.float64))
        count = self.shape[0] * self.shape[1] if axis is None else self.shape[axis]
        return (total / float(count)).astype(to)

    def to_scipy(self) -> Any:
        """The matrix in memory, as a `scipy.sparse.csr_array`. I/O: one read.

        Raises MemoryLimitError where it takes more than the session's memory.
        """
        import scipy.sparse

        count, item = self.nnz, self.dtype.itemsize
        index = np.dtype(np.int32 if max(*self.shape, count) < 1 << 31 else np.int64)
        # Entries, and the same by rows.
        need = count * (3 * index.itemsize + 2 * item) + index.itemsize * (self.shape[0] + 1)
        need += self._most_bytes(self._piece_bytes()[0])
        check_room("to_scipy", need, f"the entries of {self!r}")
        rows, columns = np.empty(count, index), np.empty(count, index)
        values, done = np.empty(count, self.dtype), 0
        for block in self.blocks():
            place = slice(done, done + len(block[0]))
            rows[place], columns[place], values[place] = block
            done = place.stop
            del block  # before the next one is read
        return scipy.sparse.coo_array((values, (rows, columns)), shape=self.shape).tocsr()


above.fill({"SparseMatrix": SparseMatrix})

__all__ = ["SparseMatrix"]
