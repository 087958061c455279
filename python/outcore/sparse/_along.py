"""Methods of `SparseMatrix` that tell of its rows, columns and diagonals."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from outcore._base.sizes import format_size
from outcore._base.types import DType, NDArray
from outcore._lazy.array import Array
from outcore._lazy.reduction import sum_dtype
from outcore._session.session import current
from outcore._standard.creation import asarray, ones
from outcore._standard.searching import where
from outcore.elementwise import maximum, minimum
from outcore.errors import ArgumentError, DTypeError, MemoryLimitError, ShapeError
from outcore.sparse._refused import whole
from outcore.sparse._stored import StoredMatrix
from outcore.sparse._stream import Values

_GROWTH = 16 << 20  # of a process, between two tries


class Along(StoredMatrix):
    """Statistics of a `SparseMatrix` by row and column, and its diagonals."""

    def getnnz(self, axis: int | None = None) -> Array:
        """The number of entries, of all or of each column (`axis=0`) or row (`axis=1`): lazy, int64. I/O: one read.

        >>> import outcore as oc, tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.ocs"
        >>> oc.sparse.from_coo([0, 0], [0, 1], [1.0, 2.0], (2, 2), path).getnnz(axis=1).compute()
        array([2, 0])
        """
        if axis is None:
            return asarray(self.nnz)
        of = self.T if _axis("getnnz", axis) == 0 else self
        dtype = np.int64 if self.is_pattern or self.dtype.kind in "biu" else np.float64
        if self.dtype.kind == "c":
            return asarray(_counted(self, _axis("getnnz", axis), False))
        return of.product(ones(of.shape[1], dtype=dtype), "plus_pair").astype(np.int64)

    def count_nonzero(self, axis: int | None = None) -> Any:
        """The number of entries that are not 0, of all or along an axis. I/O: one read, now. Memory: the counts.

        >>> import outcore as oc, tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.ocs"
        >>> oc.sparse.from_coo([0, 0], [0, 1], [0.0, 2.0], (2, 2), path).count_nonzero(axis=0)
        array([0, 1])
        """
        if axis is None:
            return sum(int(np.count_nonzero(values)) for _, _, values in self._pieces())
        return _counted(self, _axis("count_nonzero", axis), True)

    def max(self, axis: int | None = None, out: None = None) -> Array:
        """The largest element, of all or of each column (`axis=0`) or row (`axis=1`), where no entry is 0; lazy.

        NaN is passed over, as by SciPy's `nanmax`. Integers come as int64. Raises DTypeError for complex and uint64,
        ShapeError where there is nothing to be largest. I/O: two reads of the matrix, or one where it fits.

        >>> import outcore as oc, tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.ocs"
        >>> oc.sparse.from_coo([0, 0, 1], [0, 1, 0], [-3.0, -2.0, -1.0], (2, 2), path).max(axis=1).compute()
        array([-2.,  0.])
        """
        no_out("max", out)
        return self._extreme("max", axis)

    def min(self, axis: int | None = None, out: None = None) -> Array:
        """The smallest element; as `max`."""
        no_out("min", out)
        return self._extreme("min", axis)

    def _extreme(self, name: Literal["max", "min"], axis: int | None) -> Array:
        if self.dtype.kind == "c" or self.dtype == np.uint64:
            raise DTypeError(f"sparse {name}: {self.dtype} has no order that products keep")
        of = self.T if axis is not None and _axis(name, axis) == 0 else self
        if 0 in (self.shape if axis is None else of.shape[1:]):
            raise ShapeError(f"sparse {name}: shape {self.shape} has no elements along the axis")
        dtype = np.dtype(np.int64) if self.dtype.kind in "biu" else self.dtype
        stored = of.product(ones(of.shape[1], dtype=dtype), f"{name}_first")
        with_zero = (maximum if name == "max" else minimum)(stored, asarray(np.zeros((), stored.dtype)))
        extreme = where(of.getnnz(axis=1) < of.shape[1], with_zero, stored)
        return extreme if axis is not None else extreme.max() if name == "max" else extreme.min()

    def argmax(self, axis: int) -> npt.NDArray[np.int64]:
        """The first place of the largest element of each column (`axis=0`) or row (`axis=1`); NaN counts as largest.

        I/O: one read, now. Memory: 33 bytes for each row or column asked for.

        >>> import outcore as oc, tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.ocs"
        >>> oc.sparse.from_coo([0, 0, 1], [0, 1, 0], [-3.0, -2.0, -1.0], (2, 2), path).argmax(axis=1)
        array([1, 1])
        """
        return _place_of_extreme(self, _axis("argmax", axis), 1)

    def argmin(self, axis: int) -> npt.NDArray[np.int64]:
        """The first place of the smallest element; as `argmax`."""
        return _place_of_extreme(self, _axis("argmin", axis), -1)

    def norm(self, ord: Literal["fro", 1] | float = "fro") -> float:
        """The norm: "fro" (Frobenius), 1 (largest column sum), inf (largest row sum), as `scipy.sparse.linalg.norm`.

        I/O: one read, now. Memory: for 1 and inf 8 bytes a column or row.

        >>> import outcore as oc, tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.ocs"
        >>> oc.sparse.from_coo([0, 1], [0, 0], [3.0, -4.0], (2, 2), path).norm()
        5.0
        """
        if ord == "fro":
            return _length(_sizes(values) for _, _, values in self._pieces())
        if ord not in (1, np.inf):
            raise ArgumentError(f"sparse norm: ord={ord!r} is none of 'fro', 1, inf")
        sums = _room(self, "norm", self.shape[1 if ord == 1 else 0], np.dtype(np.float64))
        for rows, columns, values in self._pieces():
            np.add.at(sums, columns if ord == 1 else rows, _sizes(values))
        return float(sums.max(initial=0.0))

    def diagonal(self, k: int = 0) -> NDArray:
        """The elements of the `k`-th diagonal. I/O: one read, now. Memory: the diagonal.

        >>> import outcore as oc, tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.ocs"
        >>> oc.sparse.from_coo([0, 1], [1, 1], [3.0, 4.0], (2, 2), path).diagonal()
        array([0., 4.])
        """
        k = whole("diagonal", k)
        first = (max(-k, 0), max(k, 0))
        result = _room(self, "diagonal", max(min(self.shape[0] - first[0], self.shape[1] - first[1]), 0), self.dtype)
        for rows, columns, values in self._pieces():
            r, c = rows.astype(np.int64), columns.astype(np.int64)
            result[r[c - r == k] - first[0]] = values[c - r == k]
        return result

    def trace(self, offset: int = 0) -> Any:
        """The sum of a diagonal. I/O: one read, now. Memory: a tile.

        >>> import outcore as oc, tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.ocs"
        >>> float(oc.sparse.from_coo([0, 1], [1, 1], [3.0, 4.0], (2, 2), path).trace())
        4.0
        """
        offset, dtype = whole("trace", offset), sum_dtype(self.dtype)
        total = (np.result_type(dtype, np.float64) if dtype.kind in "fc" else dtype).type(0)
        for rows, columns, values in self._pieces():
            total += values[columns.astype(np.int64) - rows.astype(np.int64) == offset].sum(dtype=total.dtype)
        return dtype.type(total)

    def toarray(self) -> NDArray:
        """The matrix as a dense NumPy array, zeros and all. I/O: one read, now. MemoryLimitError if too large.

        >>> import outcore as oc, tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.ocs"
        >>> oc.sparse.from_coo([0, 1], [1, 1], [3.0, 4.0], (2, 2), path).toarray()
        array([[0., 3.],
               [0., 4.]])
        """
        dense = _room(self, "toarray", self.shape, self.dtype)
        for rows, columns, values in self._pieces():
            dense[rows, columns] = values
        return dense

    to_dense = toarray


def _axis(name: str, axis: int) -> int:
    if axis not in (0, 1, -1, -2):
        raise ArgumentError(f"sparse {name}: axis {axis} of a matrix")
    return axis % 2


def no_out(name: str, out: None) -> None:
    """Raises ArgumentError where a result is to go to an array that is there."""
    if out is not None:
        raise ArgumentError(f"sparse {name}: out= is not taken, the result is a new array; store it with outcore.store")


def check_room(name: str, need: int, taking: str) -> None:
    """Raises MemoryLimitError, with a limit that works, where so many bytes have no room in memory."""
    session = current()
    room, pool = int(session.counters()["budget_bytes"]), session.options.get("pool_limit")
    if need <= room:
        return
    # The process itself may have grown when it is tried again.
    smallest = session._core.limit_that_leaves(need) + (0 if pool is not None and pool <= room else _GROWTH)
    raise MemoryLimitError(
        f"{name}: {taking} take {format_size(need)} in memory, the limit leaves {format_size(room)}; "
        f"a limit that works is {smallest} bytes",
        {"operator": name, "need": need, "limit": room, "smallest": smallest},
    )


def _room(a: StoredMatrix, name: str, shape: int | tuple[int, ...], dtype: DType) -> NDArray:
    """Zeros in memory, which must fit there beside a piece of a matrix."""
    need = int(np.prod(shape, dtype=object)) * dtype.itemsize
    check_room(name, need + a._pieces_bytes(), f"{shape} elements of {dtype}")
    return np.zeros(shape, dtype=dtype)


def _sizes(values: Values) -> npt.NDArray[np.float64]:
    """Absolute values, as floating numbers before they are formed: the least of an integer type has none in it."""
    wide = np.complex128 if values.dtype.kind == "c" else np.float64
    return np.abs(values.astype(wide))


def _length(blocks: Iterable[npt.NDArray[np.float64]]) -> float:
    """The root of the sum of squares. The sum is of numbers scaled by a power of two, that of the largest so far, so
    that no square overflows and those that count do not vanish (Blue 1978)."""
    exponent, total, beyond = -1074, 0.0, 0.0
    for sizes in blocks:
        largest = float(sizes.max(initial=0.0))
        if not np.isfinite(largest):
            beyond += largest
        elif largest > 0:
            power = int(np.frexp(largest)[1])
            if power > exponent:
                total, exponent = float(np.ldexp(total, 2 * (exponent - power))), power
            total += float(np.square(np.ldexp(sizes, -exponent)).sum())
    return beyond or float(np.ldexp(np.sqrt(total), exponent))


def _counted(a: StoredMatrix, axis: int, is_nonzero: bool) -> npt.NDArray[np.int64]:
    counts = _room(a, "count", a.shape[1 - axis], np.dtype(np.int64))
    for rows, columns, values in a._pieces():
        at = columns if axis == 0 else rows
        np.add.at(counts, at[values != 0] if is_nonzero else at, 1)
    return counts


def _place_of_extreme(a: StoredMatrix, axis: int, sign: int) -> npt.NDArray[np.int64]:
    """Where the extremes are; a lane's first place without an entry counts as 0.

    Entries of a lane come in the order of their places, also from block to block. So the one that stands at a place of
    its own number among them has no gap before it, and the number of such entries is the first gap.
    """
    name = "argmax" if sign > 0 else "argmin"
    of = a.T if axis == 0 else a
    lanes, length = of.shape
    if length == 0:
        raise ShapeError(f"sparse {name}: shape {a.shape} has no elements along axis {axis}")
    if of.dtype.kind == "c":
        raise DTypeError(f"sparse {name}: {of.dtype} has no order")
    check_room(name, 33 * lanes + of._pieces_bytes(), f"extremes of {lanes} lanes")
    best, at = np.zeros(lanes, of.dtype), np.full(lanes, -1)
    seen, gap = np.zeros(lanes, np.int64), np.zeros(lanes, np.int64)
    for rows, columns, values in of._pieces():
        order = np.lexsort((columns, rows))
        r, c, v = rows[order].astype(np.int64), columns[order].astype(np.int64), values[order]
        starts = np.flatnonzero(np.diff(r, prepend=-1))
        counts = np.diff(starts, append=len(r))
        number = seen[r] + np.arange(len(r)) - np.repeat(starts, counts)
        np.add.at(gap, r[number == c], 1)
        seen[r[starts]] += counts
        first = np.lexsort((c, _rank(v, sign), r))[starts]  # the best of each lane in this block
        r, c, v = r[first], c[first], v[first]
        better = (at[r] < 0) | (_rank(v, sign) < _rank(best[r], sign))
        best[r[better]], at[r[better]] = v[better], c[better]
    rank, zero = _rank(best, sign), _rank(np.zeros(1, of.dtype), sign)[0]
    is_zero = (seen < length) & ((at < 0) | (zero < rank) | ((zero == rank) & (gap < at)))
    return np.where(is_zero, gap, at).astype(np.int64)


def _rank(values: Values, sign: int) -> npt.NDArray[np.int64] | npt.NDArray[np.uint64]:
    """Integers that are smallest where values are wanted most: NaN most of all, -0 as 0."""
    if values.dtype.kind in "biu":
        return ~values if sign > 0 else values
    bits = (values.astype(np.float64) + 0.0).view(np.int64)  # in order but for those below 0, whose size goes up
    order = np.where(bits < 0, -(bits & np.iinfo(np.int64).max), bits)
    return np.where(np.isnan(values), np.iinfo(np.int64).min, -order if sign > 0 else order)


__all__ = ["Along", "check_room", "no_out"]
