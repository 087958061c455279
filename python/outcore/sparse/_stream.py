"""Sparse matrices made of others as these pass by: entries in, entries out, one tile row held at a time."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from outcore import _core
from outcore.sparse._places import PathLike, bits_of, places_of

if TYPE_CHECKING:
    from outcore.sparse._matrix import SparseMatrix

Indices = npt.NDArray[np.uint64]
Values = npt.NDArray[Any]
# Of entries to rows, columns and values that take their place, in any order.
Change = Callable[[Indices, Indices, Values], tuple[Indices, Indices, Values]]
# Entries of a sorted file that are read together.
_SORTED_MAX = 1 << 18


class Part(NamedTuple):
    """Some entries of a matrix; no later ones lie in rows below `until`."""

    rows: Indices
    columns: Indices
    values: Values
    until: int


class Held:
    """A file in scratch. It goes with the last matrix that reads it, or with the session once a lazy array does."""

    def __init__(self, path: Path) -> None:
        self._end = weakref.finalize(self, _remove, path)

    def keep(self) -> None:
        """Leaves the file to the session: what is lazy may ask for it at any time."""
        self._end.detach()


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):  # the session may have taken it along
        path.unlink()


def parts(a: SparseMatrix) -> Iterator[Part]:
    """The entries as the file has them, whichever way the matrix is read."""
    side = a._core.side
    for rows, columns, values in (a.T if a._transposed else a).blocks():
        yield Part(rows, columns, values, (int(rows.max()) // side + 1) * side)


class Builder:
    """Writes a matrix from parts whose rows may not be sorted, but come to an end: each tile row is written when no
    more entries of it can come. Memory: about 60 bytes for each entry of a part and of a tile row."""

    def __init__(
        self, shape: tuple[int, int], dtype: np.dtype[Any] | None, side: int, path: PathLike | None, overwrite: bool
    ) -> None:
        from outcore._session import current

        core = current()._core
        bits_of(shape, side)
        self._shape, self._side = shape, side
        self._is_temporary = path is None
        self.path = Path(core.unused_path()).with_suffix(".ocs") if path is None else Path(path).absolute()
        kind = "pattern" if dtype is None else dtype.name
        self._writer = _core.SparseWriter(core, self.path, shape, kind, side, "refuse", overwrite)
        self._has_values = dtype is not None
        self._rows = np.zeros(0, dtype=np.uint64)
        self._columns, self._values = self._rows, np.zeros(0, dtype=np.dtype(bool) if dtype is None else dtype)

    def add(self, part: Part) -> None:
        """Takes entries, and writes those of the tile rows that are complete."""
        rows = np.concatenate([self._rows, part.rows])
        columns = np.concatenate([self._columns, part.columns])
        values = np.concatenate([self._values, part.values.astype(self._values.dtype, copy=False)])
        until = part.until // self._side * self._side if part.until < self._shape[0] else self._shape[0]
        ready = rows < np.uint64(max(until, 0))
        self._rows, self._columns, self._values = rows[~ready], columns[~ready], values[~ready]
        places = places_of(rows[ready], columns[ready], self._shape, self._side)
        order = np.argsort(places)
        self.write(places[order], values[ready][order])

    def write(self, places: Indices, values: Values) -> None:
        """Writes entries in the order of their places, behind all that are written."""
        data = np.ascontiguousarray(values).view(np.uint8) if self._has_values else np.zeros(0, dtype=np.uint8)
        self._writer.add(places, data)

    def finish(self) -> SparseMatrix:
        """The matrix, from its own file."""
        from outcore._session import current
        from outcore.sparse._matrix import SparseMatrix

        nothing = np.zeros(0, dtype=np.uint64)
        self.add(Part(nothing, nothing, self._values[:0], self._shape[0]))
        self._writer.finish()
        held = Held(self.path) if self._is_temporary else None
        return SparseMatrix(_core.open_sparse(current()._core, self.path), held=held)


def kind_of(a: SparseMatrix) -> np.dtype[Any] | None:
    """The type of the values; nothing of a pattern."""
    return None if a.is_pattern else a.dtype


def rewritten(
    a: SparseMatrix, change: Change, dtype: np.dtype[Any] | None, path: PathLike | None, overwrite: bool
) -> SparseMatrix:
    """A matrix of the same shape whose entries are some of those of `a`, with other values. `change` sees rows and
    columns as the user does; what it gives stands where it stood."""

    def turned(part: Part) -> Part:
        rows, columns = (part.columns, part.rows) if a._transposed else (part.rows, part.columns)
        rows, columns, values = change(rows, columns, part.values)
        return Part(*((columns, rows) if a._transposed else (rows, columns)), values, part.until)

    shape = a.shape[::-1] if a._transposed else a.shape
    made = built(map(turned, parts(a)), shape, dtype, a._core.side, path, overwrite)
    return made.T if a._transposed else made


def built(
    stream: Iterable[Part],
    shape: tuple[int, int],
    dtype: np.dtype[Any] | None,
    side: int,
    path: PathLike | None,
    overwrite: bool,
) -> SparseMatrix:
    """A matrix of parts that come tile row by tile row."""
    builder = Builder(shape, dtype, side, path, overwrite)
    for part in stream:
        builder.add(part)
    return builder.finish()


def resorted(
    a: SparseMatrix, change: Change, shape: tuple[int, int], path: PathLike | None, overwrite: bool
) -> SparseMatrix:
    """A matrix whose entries are those of `a` at other places: `change` sees and gives the user's rows and columns.

    I/O: a read of `a`, a write of 8 bytes and the value of each entry, a sort of that (`oc.sort_by`), a read, a write.
    """
    from outcore._array import Array
    from outcore._masks import hold
    from outcore._run import compute
    from outcore.sorting import sort_by

    builder = Builder(shape, kind_of(a), a._core.side, path, overwrite)
    kinds = [np.dtype(np.uint64), *([] if a.is_pattern else [a.dtype])]
    with contextlib.ExitStack() as stack:
        files = [_Column(stack, kind, a.nnz) for kind in kinds]
        for block in a.blocks():
            rows, places, values = change(*block)
            files[0].append(places_of(rows, places, shape, a._core.side))
            for file in files[1:]:
                file.append(values)
        stack.close()
        sources = [Array(file.held()) for file in files]
    if a.nnz:
        found = sort_by(sources[0], *sources[1:])
        del sources
        sorted_columns = [Array(expr) for expr in hold(*(column._expr for column in found))]
        for first in range(0, a.nnz, _SORTED_MAX):
            read = compute(*(column[first : first + _SORTED_MAX] for column in sorted_columns))
            places, values = (read, np.zeros(0, bool)) if a.is_pattern else read
            builder.write(places, values)
    return builder.finish()


class _Column:
    """A `.npy` file in scratch, filled piece by piece."""

    def __init__(self, stack: contextlib.ExitStack, dtype: np.dtype[Any], length: int) -> None:
        from outcore._session import current

        self._core = current()._core
        self._path = self._core.unused_path()
        self._dtype = dtype
        self._file = stack.enter_context(open(self._path, "wb"))  # noqa: SIM115 - the stack closes it
        head = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": (length,)}
        np.lib.format.write_array_header_1_0(self._file, head)

    def append(self, values: Values) -> None:
        self._file.write(np.ascontiguousarray(values, dtype=self._dtype).view(np.uint8).data)

    def held(self) -> _core.Expr:
        """The array, whose file goes with its last reader."""
        return self._core.hold(self._path)


def merged(
    a: SparseMatrix,
    b: SparseMatrix,
    combine: Callable[[Values, Values, npt.NDArray[np.bool_]], Values],
    dtype: np.dtype[Any] | None,
    path: PathLike | None,
    overwrite: bool,
) -> SparseMatrix:
    """What `combine` makes of two matrices of one shape, place by place, without what comes to 0.

    It is given the values of both, 0 where there is none, and where both have an entry. A `b` that is read the other
    way than `a` is sorted first.
    """
    if a._transposed != b._transposed:
        b = resorted(b, lambda rows, columns, values: (rows, columns, values), b.shape, None, False)
        if a._transposed:
            b = resorted(b.T, lambda rows, columns, values: (rows, columns, values), b.T.shape, None, False).T
    shape = a.shape[::-1] if a._transposed else a.shape
    side = a._core.side

    def stream() -> Iterator[Part]:
        for left, right, until in _aligned(a, b, shape[0]):
            at = [places_of(part.rows, part.columns, shape, side) for part in (left, right)]
            places, which = np.unique(np.concatenate(at), return_inverse=True)
            x, y = np.zeros(len(places), left.values.dtype), np.zeros(len(places), right.values.dtype)
            count = np.bincount(which, minlength=len(places))
            first = np.zeros(len(places), dtype=np.intp)
            first[which] = np.arange(len(which))
            x[which[: len(at[0])]], y[which[len(at[0]) :]] = left.values, right.values
            values = combine(x, y, count == 2)
            kept = values != 0
            rows = np.concatenate([left.rows, right.rows])[first][kept]
            columns = np.concatenate([left.columns, right.columns])[first][kept]
            yield Part(rows, columns, values[kept], until)

    made = built(stream(), shape, dtype, side, path, overwrite)
    return made.T if a._transposed else made


def _aligned(a: SparseMatrix, b: SparseMatrix, rows: int) -> Iterator[tuple[Part, Part, int]]:
    """Entries of two matrices in the same rows of the file."""
    nothing = np.zeros(0, dtype=np.uint64)
    streams = [parts(a), parts(b)]
    held = [Part(nothing, nothing, np.zeros(0, m.dtype), 0) for m in (a, b)]
    while (until := min(part.until for part in held)) < rows:
        late = 0 if held[0].until <= held[1].until else 1
        new = next(streams[late], None)
        held[late] = held[late]._replace(until=rows) if new is None else _joined(held[late], new)
        after = min(part.until for part in held)
        if after > until:
            ready = [part.rows < np.uint64(after) for part in held]
            left, right = (_chosen(part, which) for part, which in zip(held, ready, strict=True))
            held = [_chosen(part, ~which) for part, which in zip(held, ready, strict=True)]
            yield left, right, after


def _joined(first: Part, second: Part) -> Part:
    rows, columns, values = (np.concatenate([first[which], second[which]]) for which in range(3))
    return Part(rows, columns, values, second.until)


def _chosen(part: Part, which: npt.NDArray[np.bool_]) -> Part:
    return Part(part.rows[which], part.columns[which], part.values[which], part.until)


__all__ = ["Builder", "Held", "Part", "built", "kind_of", "merged", "parts", "resorted", "rewritten"]
