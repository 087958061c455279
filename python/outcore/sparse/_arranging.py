"""Methods of `SparseMatrix` that choose and rearrange its rows and columns, and the Kronecker product."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Self

import numpy as np

from outcore import _core
from outcore._base.types import PathLike
from outcore._lazy.array import Array
from outcore._lazy.node import Operand
from outcore._session.session import current
from outcore._standard.manipulation import expand_dims, reshape
from outcore.errors import ArgumentError, IndexingError
from outcore.sparse._content import PassingEntries, named
from outcore.sparse._places import keys_of
from outcore.sparse._refused import refuse_foreign
from outcore.sparse._stored import Matrix, StoredMatrix
from outcore.sparse._stream import Indices, as_read, at, columns_of, kind_of, moved


class Arranging(StoredMatrix):
    """Slices and orders of a `SparseMatrix`."""

    def _to_store(self) -> _core.Expr:
        """The matrix as a result that `outcore.store` takes; a transpose is sorted."""
        return (as_read(self) if self._transposed else self)._content.node()

    def __getitem__(self, key: Any) -> Self:
        """Rows and columns by slices, lazily; see `part`."""
        if isinstance(key, tuple) and len(key) > 2:
            raise IndexingError(f"sparse: {len(key)} keys of a matrix, which has two axes")
        return self.part(*key) if isinstance(key, tuple) else self.part(key)

    def part(
        self,
        rows: slice = slice(None),
        columns: slice = slice(None),
        *,
        path: PathLike | None = None,
        overwrite: bool = False,
    ) -> Self:
        """Rows and columns by slices with steps above 0; `A[2:9, ::2]` is the same. Lazy without a path.

        Raises IndexingError for other keys. I/O when it is made: one read of the tiles that have the rows, one write.
        Memory: a tile row or two. Of rows at a distance (of columns, in a transpose) entries are stored, read twice,
        sorted and stored again.

        >>> import outcore as oc, tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.ocs"
        >>> oc.sparse.from_coo([0, 1], [1, 1], [3.0, 4.0], (2, 2), path)[1:, :].toarray()
        array([[0., 4.]])
        """
        keys = [_range(key, length) for key, length in zip((rows, columns), self.shape, strict=True)]
        shape = (len(keys[0]), len(keys[1]))
        if self._transposed:
            keys.reverse()
        by_row, by_column = keys
        content = self._content
        if by_row.step == 1:
            columns_at = (by_column.start, by_column.step, len(by_column))
            core = content.passing().part((by_row.start, len(by_row)), columns_at)
            return at(self, PassingEntries(core), path, overwrite)

        # Rows at a distance come to others, which have as many entries as these happen to have.
        def inside(r: Array, c: Array, _: Array) -> tuple[None, Array]:
            return None, _is_inside(r, by_row) & _is_inside(c, by_column)

        def to(r: Array, c: Array) -> tuple[Array, Array]:
            return (r - by_row.start) // by_row.step, (c - by_column.start) // by_column.step

        plain = type(self)(content.changed(inside, kind_of(self)))
        made = moved(plain, to, (len(by_row), len(by_column)))
        made = made.T if self._transposed else made
        assert made.shape == shape
        return at(made, made._content, path, overwrite)

    def permute(
        self,
        rows: Operand | None = None,
        columns: Operand | None = None,
        *,
        path: PathLike | None = None,
        overwrite: bool = False,
    ) -> Self:
        """Rows and columns in other orders: what NumPy's `A[rows][:, columns]` gives of two permutations.

        Permutations are NumPy or lazy arrays of integers, held in memory (16 bytes a row). Raises ArgumentError
        for what is none. Lazy without a path. I/O when it is made: two reads, one write, and between them the entries,
        8 bytes and a value each, are sorted.

        >>> import outcore as oc, tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.ocs"
        >>> oc.sparse.from_coo([0, 1], [1, 1], [3.0, 4.0], (2, 2), path).permute([1, 0], [1, 0]).toarray()
        array([[4., 0.],
               [3., 0.]])
        """
        to = [_inverse(order, length) for order, length in zip((rows, columns), self.shape, strict=True)]
        ways = (False, True) if self._transposed else (True, False)
        new = [None if order is None else _operand(order, by_row) for order, by_row in zip(to, ways, strict=True)]

        def change(r: Array, c: Array) -> tuple[Array, Array]:
            return r if new[0] is None else new[0], c if new[1] is None else new[1]

        made = moved(self, change, self.shape)
        return at(made, made._content, path, overwrite)


def kron(a: Matrix, b: Matrix, *, path: PathLike | None = None, overwrite: bool = False) -> Matrix:
    """The Kronecker product: every element of `a` times all of `b`.

    Lazy without a path; operands that are no files are made by this call, and no pickle has the result then. I/O when
    it is made: two reads of each, a sort of 8 bytes (16 where places are wide) and the value of each entry of the
    result, one write. Memory: a tile row of the result.

    >>> import outcore as oc, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.ocs"
    >>> A = oc.sparse.from_coo([0, 1], [1, 0], [3.0, 4.0], (2, 2), path)
    >>> oc.sparse.kron(A, A).toarray()
    array([[ 0.,  0.,  0.,  9.],
           [ 0.,  0., 12.,  0.],
           [ 0., 12.,  0.,  0.],
           [16.,  0.,  0.,  0.]])
    """
    for operand in (a, b):
        if not isinstance(operand, StoredMatrix):
            refuse_foreign("kron", operand)
            raise ArgumentError(f"sparse kron: {type(operand).__name__} is no sparse matrix on disk; store it first")
    if a._transposed:
        return kron(a.T, b.T, path=path, overwrite=overwrite).T
    dtype = None if a.is_pattern and b.is_pattern else np.result_type(a.dtype, b.dtype)
    first, second = columns_of(a), columns_of(b)
    length = first[0].shape[0] * second[0].shape[0]

    def each(f: Callable[[Array, Array], Array], which: int) -> Array:
        return reshape(f(expand_dims(first[which], axis=1), expand_dims(second[which], axis=0)), (length,))

    rows = each(lambda r, s: r * b.shape[0] + s, 0)
    columns = each(lambda c, d: c * b.shape[1] + d, 1)
    values = None if dtype is None else each(lambda x, y: x.astype(dtype) * y.astype(dtype), 2)
    shape = (a.shape[0] * b.shape[0], a.shape[1] * b.shape[1])
    side = a._content.side
    keys = keys_of(rows, columns, shape, side)
    parts = [part._expr for part in (*keys, *([] if values is None else [values]))]
    core = _core.keyed_sparse(parts, len(keys), shape, side, named(dtype))
    return at(a, PassingEntries(core), path, overwrite)


def _range(key: object, length: int) -> range:
    if not isinstance(key, slice):
        shown = repr(key) if isinstance(key, int) else type(key).__name__
        raise IndexingError(
            f"sparse: key {shown}; rows and columns are chosen by slices: A[i : i + 1] is one, S @ A those that S has "
            f"entries for, a row each"
        )
    try:
        positions = range(*key.indices(length))
    except (TypeError, ValueError) as error:
        raise IndexingError(f"sparse: key {key!r}: {error}") from None
    if positions.step <= 0:
        raise IndexingError(f"sparse: a step of {positions.step}; one above 0 is right")
    return positions


def _is_inside(at: Array, key: range) -> Array:
    """Whether numbers stand in a range."""
    offset = at - key.start
    return (offset >= 0) & (offset % key.step == 0) & (offset < len(key) * key.step)


def _operand(order: Indices, by_row: bool) -> Array:
    """The element of an order at the row of an entry, or at its column."""
    shape = (len(order), 1) if by_row else (1, len(order))
    return Array(_core.entry_operand(current()._core, shape, order.view(np.uint8), "uint64"))


def _inverse(order: object, length: int) -> Indices | None:
    if order is None:
        return None
    try:
        permutation = np.asarray(order.compute() if isinstance(order, Array) else order)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"sparse permute: {type(order).__name__} is no order of {length}: {error}") from None
    if permutation.shape != (length,) or permutation.dtype.kind not in "iu":
        raise ArgumentError(f"sparse permute: {permutation.shape} of {permutation.dtype} is no order of {length}")
    if length == 1 and permutation[0] == 0:
        return None
    inverse = np.full(length, length, dtype=np.uint64)
    if length and (permutation.min() < 0 or permutation.max() >= length):
        raise ArgumentError(f"sparse permute: an order of {length} has numbers from 0 to {length - 1}")
    inverse[permutation] = np.arange(length, dtype=np.uint64)
    if (inverse == length).any():
        raise ArgumentError(f"sparse permute: {operator.index((inverse == length).argmax())} is not in the order")
    return inverse


__all__ = ["Arranging", "kron"]
