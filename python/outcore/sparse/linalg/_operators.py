"""The operators of solvers: sparse and dense arrays lazily, SciPy's operators by calling them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import numpy as np

from outcore import _api as oc
from outcore._base.element_types import DTypeLike
from outcore._base.types import DType, NDArray
from outcore._lazy.array import Array
from outcore._lazy.node import Operand
from outcore.errors import DTypeError, ShapeError
from outcore.sparse._matrix import SparseMatrix


def floating_dtype(*dtypes: DTypeLike) -> DType:
    """The type that iterations run in: float64 for integers and bool, else what NumPy promotes to, from float32 up."""
    kinds = [np.dtype(dtype) for dtype in dtypes]
    return np.result_type(np.float32, *(np.float64 if kind.kind in "biu" else kind for kind in kinds))


class Operator:
    """A matrix known by its products. `A @ X` takes a lazy array of one or two axes."""

    def __init__(self, shape: tuple[int, int], dtype: DTypeLike) -> None:
        self.shape = (int(shape[0]), int(shape[1]))
        self.dtype = np.dtype(dtype)

    def __matmul__(self, x: Array) -> Array:
        raise NotImplementedError

    def adjoint(self, x: Array) -> Array:
        """The product of the conjugate transpose."""
        raise NotImplementedError

    def pair(self, x: Array) -> tuple[Array, Array]:
        """`x` and the product with it; `x` comes back computed where the product had to be."""
        return x, self @ x

    @property
    def elements(self) -> SparseMatrix | Array | None:
        """The matrix whose elements are known; None of one that is known by products."""
        return None


class _Lazy(Operator):
    """A sparse matrix on disk, or a dense array: products are nodes."""

    def __init__(self, matrix: SparseMatrix | Array) -> None:
        super().__init__((matrix.shape[0], matrix.shape[1]), matrix.dtype)
        self._matrix = matrix

    @property
    def elements(self) -> SparseMatrix | Array:
        return self._matrix

    def __matmul__(self, x: Array) -> Array:
        return self._matrix @ x

    def adjoint(self, x: Array) -> Array:
        if self.dtype.kind != "c":
            return self._matrix.T @ x
        return oc.conj(self._matrix.T @ oc.conj(x))


class _Called(Operator):
    """A SciPy operator or sparse matrix in memory: each product computes its operand, and calls."""

    def __init__(self, operator: Any) -> None:
        dtype = np.float64 if operator.dtype is None else operator.dtype
        super().__init__(operator.shape, dtype)
        self._operator = operator

    def _product(self, x: Array, adjoint: bool) -> Array:
        operator = self._operator.H if adjoint else self._operator
        return oc.asarray(np.ascontiguousarray(operator @ x.compute()))

    def __matmul__(self, x: Array) -> Array:
        return self._product(x, False)

    def adjoint(self, x: Array) -> Array:
        return self._product(x, True)

    def pair(self, x: Array) -> tuple[Array, Array]:
        held = oc.persist(x)
        return held, self @ held


class Identity(Operator):
    """The matrix that changes nothing."""

    def __matmul__(self, x: Array) -> Array:
        return x

    def adjoint(self, x: Array) -> Array:
        return x


class Inverse(Operator):
    """The inverse of a factorized matrix: products are solutions, whose residuals are held against their limit."""

    def __init__(
        self,
        shape: tuple[int, int],
        dtype: DTypeLike,
        solve: Callable[[Array], Array],
        solve_adjoint: Callable[[Array], Array],
    ) -> None:
        super().__init__(shape, dtype)
        self._solve, self._solve_adjoint = solve, solve_adjoint

    def __matmul__(self, x: Array) -> Array:
        return self._solve(x)

    def adjoint(self, x: Array) -> Array:
        return self._solve_adjoint(x)

    def pair(self, x: Array) -> tuple[Array, Array]:
        held = oc.persist(x)
        return held, self @ held


class Scaled(Operator):
    """diag(left) · A · diag(right), of vectors without zeros or with."""

    def __init__(self, left: Array, operator: Operator, right: Array) -> None:
        super().__init__(operator.shape, floating_dtype(left.dtype, operator.dtype, right.dtype))
        self._left, self._operator, self._right = left, operator, right

    @staticmethod
    def _rows(scale: Array, x: Array) -> Array:
        return scale * x if x.ndim == 1 else scale[:, None] * x

    def __matmul__(self, x: Array) -> Array:
        return self._rows(self._left, self._operator @ self._rows(self._right, x))

    def adjoint(self, x: Array) -> Array:
        inner = self._operator.adjoint(self._rows(oc.conj(self._left), x))
        return self._rows(oc.conj(self._right), inner)


class Shifted(Operator):
    """A − shift·I."""

    def __init__(self, operator: Operator, shift: complex) -> None:
        dtype = operator.dtype if np.isreal(shift) else np.result_type(operator.dtype, np.complex64)
        super().__init__(operator.shape, floating_dtype(dtype))
        self._operator, self._shift = operator, shift
        self._conjugate = shift.conjugate()

    def __matmul__(self, x: Array) -> Array:
        return self._operator @ x - self._shift * x

    def adjoint(self, x: Array) -> Array:
        return self._operator.adjoint(x) - self._conjugate * x


class Damped(Operator):
    """A with damp·I below it."""

    def __init__(self, operator: Operator, damp: float) -> None:
        rows, columns = operator.shape
        super().__init__((rows + columns, columns), floating_dtype(operator.dtype))
        self._operator, self._damp = operator, damp

    def __matmul__(self, x: Array) -> Array:
        x, product = self._operator.pair(x)
        return oc.concat([product, self._damp * x], axis=0)

    def adjoint(self, x: Array) -> Array:
        rows = self._operator.shape[0]
        return self._operator.adjoint(x[:rows]) + self._damp * x[rows:]


class Normal(Operator):
    """A*A, or AA* where that is smaller: Hermitian, with the squares of A's singular values. Two products each."""

    def __init__(self, operator: Operator) -> None:
        self.tall = operator.shape[0] >= operator.shape[1]
        order = min(operator.shape)
        super().__init__((order, order), floating_dtype(operator.dtype))
        self._operator = operator

    def __matmul__(self, x: Array) -> Array:
        if self.tall:
            return self._operator.adjoint(self._operator @ x)
        return self._operator @ self._operator.adjoint(x)

    def adjoint(self, x: Array) -> Array:
        return self @ x


class SupportsProducts(Protocol):
    """A matrix or operator of another library, as SciPy's are: products with it are NumPy arrays."""

    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def dtype(self) -> DType: ...
    def __matmul__(self, x: NDArray, /) -> NDArray: ...


MatrixLike: TypeAlias = "Operator | SparseMatrix | Operand | SupportsProducts"  # what `operator` takes


def operator(a: object, name: str) -> Operator:
    """The operator that `a` is. Raises DTypeError for an object that is no matrix, ShapeError for other than two
    axes."""
    matrix = getattr(a, "outcore_operator", a)
    if isinstance(matrix, Operator):
        return matrix
    if isinstance(matrix, np.ndarray):
        matrix = oc.asarray(matrix)
    if isinstance(matrix, (SparseMatrix, Array)):
        if matrix.ndim != 2:
            raise ShapeError(f"{name}: an array of shape {matrix.shape} is no matrix")
        return _Lazy(matrix)
    if hasattr(matrix, "shape") and hasattr(matrix, "dtype") and hasattr(matrix, "__matmul__"):
        return _Called(matrix if hasattr(matrix, "H") else _scipy_operator(matrix))
    raise DTypeError(f"{name}: {type(a).__name__} is no sparse or dense matrix and no LinearOperator")


def square(a: object, name: str) -> Operator:
    """As `operator`, of what has as many rows as columns."""
    matrix = operator(a, name)
    if matrix.shape[0] != matrix.shape[1]:
        raise ShapeError(f"{name}: a matrix of shape {matrix.shape} is not square")
    return matrix


def _scipy_operator(matrix: object) -> Any:
    from scipy.sparse.linalg import aslinearoperator as scipy_operator

    return scipy_operator(matrix)


def aslinearoperator(A: MatrixLike) -> Any:
    """A `scipy.sparse.linalg.LinearOperator` of a sparse matrix on disk or a lazy array, for SciPy's own functions.

    Its `matvec`, `matmat` and their adjoints take and give NumPy arrays, and compute. outcore's own solvers see the
    matrix through it. Needs SciPy; raises DTypeError for what is no matrix.
    I/O: each product reads the matrix once, as far as it is not in memory.

    >>> import numpy as np, outcore as oc, scipy.sparse.linalg
    >>> A = oc.asarray(np.diag([1.0, 2.0, 4.0]))
    >>> x, info = scipy.sparse.linalg.cg(oc.sparse.linalg.aslinearoperator(A), np.ones(3), rtol=1e-10)
    >>> x.round(6), info
    (array([1.  , 0.5 , 0.25]), 0)
    """
    from scipy.sparse.linalg import LinearOperator

    inner = operator(A, "aslinearoperator")

    def forward(x: NDArray) -> NDArray:
        return (inner @ oc.asarray(np.ascontiguousarray(x))).compute()

    def backward(x: NDArray) -> NDArray:
        return inner.adjoint(oc.asarray(np.ascontiguousarray(x))).compute()

    made = LinearOperator(
        inner.shape, dtype=inner.dtype, matvec=forward, matmat=forward, rmatvec=backward, rmatmat=backward
    )
    made.outcore_operator = inner
    return made


__all__ = [
    "Damped",
    "Identity",
    "Inverse",
    "Normal",
    "Operator",
    "Scaled",
    "Shifted",
    "aslinearoperator",
    "floating_dtype",
    "operator",
    "square",
]
