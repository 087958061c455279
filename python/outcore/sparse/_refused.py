"""Methods of `SparseMatrix` by which Python and NumPy would take it for something else: each says what to do."""

from __future__ import annotations

from typing import NoReturn

from outcore.errors import DTypeError


class Refused:
    """Refusals of uses that a sparse matrix does not have: as a sequence, a truth value, a dense array."""

    def __iter__(self) -> NoReturn:
        raise TypeError(
            "a sparse matrix is not iterated over: A[i : i + 1] is a row, A.blocks() gives entries, A.sum() their sum"
        )

    def __contains__(self, value: object) -> NoReturn:
        raise TypeError(f"'in' would look at every row of a sparse matrix; (A == {value}).nnz counts such entries")

    def __len__(self) -> NoReturn:
        raise TypeError("the length of a sparse matrix may be its rows or its entries; use A.shape[0] or A.nnz")

    def __bool__(self) -> NoReturn:
        raise TypeError("a sparse matrix is neither true nor false; use A.nnz > 0, or A.count_nonzero() > 0")

    def __array__(self, *args: object, **named: object) -> NoReturn:
        raise TypeError(
            "a sparse matrix on disk does not become a NumPy array by itself: use its methods (A.sum(), A.max(), "
            "A @ x), A.toarray() where it fits into memory, or A.to_scipy(); to multiply it with a matrix of "
            "SciPy's, store that by outcore.sparse.from_scipy, or multiply A.to_scipy()"
        )


def refuse_foreign(name: str, other: object) -> None:
    """Raises DTypeError for a sparse matrix in memory, of SciPy's or the like."""
    if hasattr(other, "tocsr") and not isinstance(other, Refused):
        kind = type(other).__name__
        raise DTypeError(
            f"sparse {name}: {kind} is a sparse matrix in memory; store it with outcore.sparse.from_scipy(B), or use "
            "B.toarray() where it is small"
        )


__all__ = ["Refused", "refuse_foreign"]
