"""`SparseMatrix`: a matrix on disk of which only the entries are stored, and its products with dense arrays."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from outcore import _core
from outcore._array import Array
from outcore._node import Operand, node
from outcore._reduction import sum_dtype
from outcore.creation import ones
from outcore.errors import ArgumentError, MemoryLimitError, ShapeError
from outcore.manipulation import expand_dims, squeeze
from outcore.sparse._along import Along
from outcore.sparse._arranging import Arranging
from outcore.sparse._elementwise import Elementwise
from outcore.sparse._stream import Held

# The types in which products are formed.
_WORKING: dict[str, type[Any]] = {"b": np.int64, "i": np.int64, "u": np.int64}


class SparseMatrix(Elementwise, Along, Arranging):
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

    def __init__(self, core: _core.Sparse, transposed: bool = False, held: Held | None = None) -> None:
        self._core = core
        self._transposed = transposed
        self._held = held

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        rows, columns = self._core.shape
        return (columns, rows) if self._transposed else (rows, columns)

    @property
    def ndim(self) -> int:
        """2."""
        return 2

    @property
    def nnz(self) -> int:
        """The number of entries."""
        return self._core.entries

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the values; bool for a pattern, whose entries are all true."""
        return np.dtype(bool if self.is_pattern else self._core.dtype)

    @property
    def is_pattern(self) -> bool:
        """Whether only the places of entries are stored, and no values."""
        return self._core.dtype == "pattern"

    @property
    def nbytes(self) -> int:
        """Bytes of the file."""
        return self._core.file_bytes

    @property
    def path(self) -> Path:
        """Where it is stored."""
        return Path(self._core.path)

    @property
    def T(self) -> SparseMatrix:
        """The transpose: the same file, read the other way. Nothing is moved."""
        return SparseMatrix(self._core, not self._transposed, self._held)

    def transpose(self) -> SparseMatrix:
        """As `T`."""
        return self.T

    def __repr__(self) -> str:
        rows, columns = self.shape
        kind = "pattern" if self.is_pattern else str(self.dtype)
        way = " transposed" if self._transposed else ""
        return f"<SparseMatrix {rows} x {columns}, {self.nnz} entries, {kind}{way}, {self.path}>"

    def __matmul__(self, other: Operand) -> Array:
        return self.product(other)

    def __rmatmul__(self, other: Operand) -> Array:
        x = Array(node(other))
        if x.ndim == 1:
            return self.T.product(x)
        return self.T.product(x.T).T

    def dot(self, other: Operand) -> Array:
        """As `A @ other`."""
        return self.product(other)

    def product(self, other: Operand, semiring: str = "plus_times") -> Array:
        """The product with a dense array of one or two axes, lazily, in a semiring by its GraphBLAS name.

        "plus_times" is the ordinary one; others are "min_plus", "max_plus", "min_times", "max_times", "plus_pair",
        "plus_first", "plus_second", "min_first", "min_second", "max_first", "max_second", "any_pair" and "lor_land"
        (of bool). `first` is the matrix's value, `second` that of `other`, `pair` is 1; a pattern's values are 1. What
        no entry adds to is the sum of nothing: 0, or ±inf for min and max.

        Result: the shape of `A @ other`, the type that NumPy's promotion gives (sums of integers are int64).
        Raises ShapeError for shapes that do not go together, DTypeError for types that do not make the semiring.
        I/O: one read of the matrix for as many columns of `other` as fit into memory; one read of `other`, and where
        it does not fit one more write and read (Zheng 2017, 4.3.6).

        >>> import numpy as np, outcore as oc, scipy.sparse, tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.ocs"
        >>> A = oc.sparse.from_scipy(scipy.sparse.csr_array([[0.0, 3.0], [1.0, 0.0]]), path)
        >>> A.product(np.asarray([0.0, 10.0]), "min_plus").compute()
        array([13.,  1.])
        """
        x = Array(node(other))
        if x.ndim not in (1, 2):
            raise ShapeError(f"sparse product: {self.shape} @ {x.shape}: the second has one axis or two")
        if x.shape[0] != self.shape[1]:
            raise ShapeError(
                f"sparse product: {self.shape} @ {x.shape}: inner dimensions {self.shape[1]} and {x.shape[0]} differ"
            )
        if self._held is not None:
            self._held.keep()
        working, dtype = self._types(x.dtype, semiring)
        wide = x.astype(working) if x.ndim == 2 else expand_dims(x.astype(working), axis=1)
        found = Array(self._core.product(wide._expr, self._transposed, semiring)).astype(dtype)
        return found if x.ndim == 2 else squeeze(found, axis=1)

    def _types(self, of: np.dtype[Any], semiring: str) -> tuple[np.dtype[Any], np.dtype[Any]]:
        """The type in which a product is formed, and that of the result."""
        if semiring == "lor_land":
            return np.dtype(bool), np.dtype(bool)
        dtype = of if self.is_pattern else np.result_type(self.dtype, of)
        working = np.dtype(_WORKING.get(dtype.kind, dtype))
        if working == np.float16:
            working = np.dtype(np.float32)
        # The extremes of nothing are those of int64, which a smaller type has not.
        extreme = dtype.kind in "iu" and semiring.startswith(("min_", "max_"))
        return working, (working if dtype.kind == "b" or extreme else dtype)

    def sum(self, axis: int | None = None) -> Array:
        """The sum of the entries, or of each column (`axis=0`) or row (`axis=1`), as SciPy's. I/O: one read.

        >>> import numpy as np, outcore as oc, scipy.sparse, tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.ocs"
        >>> oc.sparse.from_scipy(scipy.sparse.csr_array([[0.0, 3.0], [1.0, 0.0]]), path).sum(axis=1).compute()
        array([3., 1.])
        """
        if axis not in (None, 0, 1, -1, -2):
            raise ArgumentError(f"sparse sum: axis {axis} of a matrix")
        dtype = np.dtype(np.int64) if self.is_pattern else sum_dtype(self.dtype)
        if axis is None:
            return (self @ ones(self.shape[1], dtype=dtype)).sum()
        of = self.T if axis in (0, -2) else self
        return of @ ones(of.shape[1], dtype=dtype)

    def blocks(self) -> Iterator[tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64], npt.NDArray[Any]]]:
        """The entries, some at a time: NumPy arrays of rows, columns and values (true for a pattern).

        They come in the order in which they are stored. I/O: one read.

        >>> import numpy as np, outcore as oc, scipy.sparse, tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.ocs"
        >>> A = oc.sparse.from_scipy(scipy.sparse.csr_array([[0.0, 3.0], [1.0, 0.0]]), path)
        >>> [(rows.tolist(), columns.tolist(), values.tolist()) for rows, columns, values in A.blocks()]
        [([0, 1], [1, 0], [3.0, 1.0])]
        """
        from outcore._session import current

        for tile in range(self._core.tiles):
            rows, columns, data = self._core.read(current()._core, tile)
            values = np.ones(len(rows), dtype=bool) if self.is_pattern else data.view(self.dtype)
            yield (columns, rows, values) if self._transposed else (rows, columns, values)

    def to_scipy(self) -> Any:
        """The matrix in memory, as a `scipy.sparse.csr_array`. I/O: one read.

        Raises MemoryLimitError where it takes more than the session's memory.
        """
        import scipy.sparse

        from outcore._session import current

        need = self.nnz * (2 * (16 + self.dtype.itemsize)) + 8 * (self.shape[0] + 1)
        room = current().counters()["budget_bytes"]
        if need > room:
            raise MemoryLimitError(f"to_scipy: {self!r} takes {need} bytes in memory, there are {room}")
        parts = list(self.blocks())
        rows, columns, values = (
            np.concatenate([part[which] for part in parts]) if parts else np.zeros(0, dtype=dtype)
            for which, dtype in enumerate((np.uint64, np.uint64, self.dtype))
        )
        places = (rows.astype(np.int64), columns.astype(np.int64))
        return scipy.sparse.coo_array((values, places), shape=self.shape).tocsr()


__all__ = ["SparseMatrix"]
