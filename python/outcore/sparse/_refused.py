"""Methods of `SparseMatrix` by which Python and NumPy would take it for something else: each says what to do."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, NoReturn

from outcore.errors import ArgumentError, DTypeError

# Names of SciPy's matrices, and what outcore has for them.
_NEAREST: dict[str, str] = {
    **dict.fromkeys(("tocsr", "tocoo", "tocsc", "asformat"), "A.to_scipy(), where it fits into memory"),
    "todense": "A.toarray(), where it fits into memory",
    "H": "A.T.conj()",
    "size": "A.nnz",
    "getrow": "A[i : i + 1]",
    "getcol": "A[:, i : i + 1]",
    **{
        name: f"A.map(numpy.{name})"
        for name in ("sqrt", "log1p", "expm1", "sin", "tan", "floor", "ceil", "rint", "sign")
    },
    "setdiag": "A - D + E of matrices with the diagonals",
}


class Refused:
    """Refusals of uses that a sparse matrix does not have: as a sequence, a truth value, a dense array."""

    if not TYPE_CHECKING:  # a type checker knows the names

        def __getattr__(self, name: str) -> NoReturn:
            hint = _NEAREST.get(name)
            raise AttributeError(f"a sparse matrix has no attribute {name!r}" + (f"; use {hint}" if hint else ""))

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


def whole(name: str, k: object) -> int:
    """The number of a diagonal."""
    try:
        return operator.index(k)  # type: ignore[arg-type]  # or an error
    except TypeError:
        raise ArgumentError(f"sparse {name}: k={k!r} is no whole number") from None


__all__ = ["Refused", "refuse_foreign", "whole"]
