"""A stored matrix: its file, shape and type, its entries in the file's order, and the core's products."""

from __future__ import annotations

import contextlib
import weakref
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
import numpy.typing as npt

from outcore import _core
from outcore._base.shortened import angle_text, short_path
from outcore._base.sizes import format_size
from outcore._base.types import DType, NDArray
from outcore._lazy.array import Array
from outcore._lazy.carded import Carded, NamedFact
from outcore._lazy.node import Operand
from outcore._session.session import Session, current
from outcore._session.whole import whole_scan
from outcore._show.markup import Markup
from outcore._show.spy import spy_picture
from outcore._standard.manipulation import expand_dims, squeeze
from outcore.errors import DTypeError, SourceChangedError
from outcore.sparse._content import Content
from outcore.sparse._refused import Refused

_Node = _core.Expr  # within the class `_core` is the matrix
# The types in which products are formed.
_WORKING: dict[str, type[np.int64]] = {"b": np.int64, "i": np.int64, "u": np.int64}
# Memory for an entry that is read: its places, and what it takes in the file.
_READ_BYTES = 24
# Memory for an entry that is worked on: its places, their copies and orders, and copies of its value.
_PLACE_BYTES, _VALUE_COPIES = 96, 4
# Memory is foretold in steps of so much, which are no smaller than those in which it is reserved.
_STEP_BYTES = 4 << 20
# Entries that are worked on together, where a block may be cut, and memory for each.
_PIECE_ENTRIES, _PIECE_BYTES = 1 << 18, 160
_TILES_DRAWN = 1 << 14  # of which the entries are looked up for a picture, 4 MiB each
_PATH = 80  # characters of a path in a terminal


class StoredMatrix(Refused, Carded, ABC):
    """The part of `SparseMatrix` that files of functions over matrices use."""

    def __init__(self, content: Content, transposed: bool = False) -> None:
        self._content = content
        self._transposed = transposed
        self._rowwise: tuple[weakref.ref[Session], Any] | None = None

    def __reduce__(self) -> tuple[type[Self], tuple[Content, bool]]:
        """The matrix for another process: its file by path and stamp, and what changes its entries."""
        return type(self), (self._content, self._transposed)

    @property
    def _core(self) -> _core.Sparse:
        """The matrix in a file, whichever way it is read."""
        return self._content.plain()

    @property
    def _is_lasting(self) -> bool:
        """Whether it is in a file that another process finds."""
        return self._content.is_plain and not self._core.is_held

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        rows, columns = self._content.shape
        return (columns, rows) if self._transposed else (rows, columns)

    @property
    def ndim(self) -> int:
        """2."""
        return 2

    @property
    def nnz(self) -> int:
        """The number of entries. I/O: none of a file; a matrix that is made of others is made, in scratch, and where a
        formula says which are kept there is one read, the first time."""
        count = self._content.count()
        if count is None:  # it is once the file is there, but where a formula says which are kept
            self._content.streamed()
            count = self._content.count()
        if count is not None:
            return count
        places = type(self)(self._content.places())
        return self._content.counted(sum(len(rows) for rows, _, _ in places.blocks()))

    @property
    def dtype(self) -> DType:
        """The type of the values; bool for a pattern, whose entries are all true."""
        return self._content.dtype or np.dtype(bool)

    @property
    def is_pattern(self) -> bool:
        """Whether only the places of entries are stored, and no values."""
        return self._content.dtype is None

    @property
    def nbytes(self) -> int:
        """Bytes of the file. A matrix that is in none is stored in scratch for it."""
        return self._core.file_bytes

    @property
    def path(self) -> Path:
        """Where it is stored. A matrix that is in no file is stored in scratch for it, and goes with this object."""
        return Path(self._core.path)

    @property
    def T(self) -> Self:
        """The transpose: the same file, read the other way. Nothing is moved."""
        return type(self)(self._content, not self._transposed)

    def transpose(self) -> Self:
        """As `T`."""
        return self.T

    @abstractmethod
    def _to_store(self) -> _Node:
        """The matrix as a result that `outcore.store` takes."""

    def __repr__(self) -> str:
        rows, columns = self.shape
        kind = "pattern" if self.is_pattern else str(self.dtype)
        way = " transposed" if self._transposed else ""
        if not self._content.is_plain:
            return f"<SparseMatrix {rows} x {columns}, {kind}{way}, lazy>"
        parts = [f"{self.nnz} entries", f"{kind}{way}", short_path(str(self.path), _PATH)]
        return angle_text(f"SparseMatrix {rows} x {columns},", parts)

    def _card_title(self) -> str:
        return "outcore.sparse.SparseMatrix"

    def _card_facts(self) -> list[NamedFact]:
        rows, columns = self.shape
        facts: list[NamedFact] = [
            ("shape", f"{rows:,} × {columns:,}" + (", transposed" if self._transposed else "")),
            ("values", "none: a pattern" if self.is_pattern else str(self.dtype)),
        ]
        if not self._content.is_plain:
            return [*facts, ("entries", "lazy: made as they pass by")]
        tiles = self._core.tiles
        each = f", {self.nnz / rows:.3g} a row" if rows else ""
        return [
            *facts,
            ("entries", f"{self.nnz:,}{each}"),
            ("bytes", format_size(self.nbytes)),
            ("stored in", "1 tile" if tiles == 1 else f"{tiles:,} tiles in the order of rows"),
            ("file", self.path),
        ]

    def _card_picture(self) -> Markup | None:
        """The entries of stored tiles by the directory, which is in memory. No I/O."""
        if not self._content.is_plain or self._core.tiles > _TILES_DRAWN:
            return None
        core = self._core
        return spy_picture(self.shape, [core.entries_of(tile) for tile in range(core.tiles)], self._transposed)

    @abstractmethod
    def product(self, other: Operand, semiring: Any = "plus_times") -> Array:
        """See `SparseMatrix.product`."""

    def _product(self, x: Array, semiring: str) -> Array:
        working, dtype = self._types(x.dtype, semiring)
        wide = x.astype(working) if x.ndim == 2 else expand_dims(x.astype(working), axis=1)
        core = self._content.passing()
        product = Array(core.product(wide._expr, self._transposed, semiring)).astype(dtype)
        return product if x.ndim == 2 else squeeze(product, axis=1)

    def _types(self, of: DType, semiring: str) -> tuple[DType, DType]:
        """The type in which a product is formed, and that of the result."""
        if semiring == "lor_land":
            return np.dtype(bool), np.dtype(bool)
        dtype = of if self.is_pattern else np.result_type(self.dtype, of)
        working = np.dtype(_WORKING.get(dtype.kind, dtype))
        if working == np.float16:
            working = np.dtype(np.float32)
        # The extremes of nothing are those of int64, which a smaller type has not.
        extreme = dtype.kind in "iu" and semiring.startswith(("min_", "max_"))
        if extreme and dtype == np.uint64:
            raise DTypeError(
                f"sparse product: uint64 does not make the semiring {semiring}, for numbers are compared as int64"
            )
        return working, (working if dtype.kind == "b" or extreme else dtype)

    def blocks(self) -> Iterator[tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64], NDArray]]:
        """The entries, some at a time: NumPy arrays of rows, columns and values (true for a pattern).

        They come in the order in which they are stored. Memory: about 32 bytes for each entry of a block, which are
        reserved. Raises MemoryLimitError where there is not so much, SourceChangedError for a
        file that is not what was opened, FormatError for bytes that do not agree with their checksum. I/O: one read.

        >>> import numpy as np, outcore as oc, scipy.sparse, tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.ocs"
        >>> A = oc.sparse.from_scipy(scipy.sparse.csr_array([[0.0, 3.0], [1.0, 0.0]]), path)
        >>> [(rows.tolist(), columns.tolist(), values.tolist()) for rows, columns, values in A.blocks()]
        [([0, 1], [1, 0], [3.0, 1.0])]
        """
        return self._blocks_within(0, _READ_BYTES + self.dtype.itemsize)

    def _blocks_from(self, first: int) -> Iterator[tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64], NDArray]]:
        """Blocks from one of a number on, in memory for them and the work on them."""
        return self._blocks_within(first, _PLACE_BYTES + _VALUE_COPIES * self.dtype.itemsize)

    def _pieces(self) -> Iterator[tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64], NDArray]]:
        """Blocks cut into pieces of few entries, in memory for them and for the work on one."""
        for rows, columns, values in self._blocks_within(0, *self._piece_bytes()):
            for start in range(0, len(rows), _PIECE_ENTRIES):
                piece = slice(start, start + _PIECE_ENTRIES)
                yield rows[piece], columns[piece], values[piece]
            del rows, columns, values  # before the next ones are read

    def _piece_bytes(self) -> tuple[int, int]:
        """Memory for each entry of a block, and of a piece."""
        item = self.dtype.itemsize
        return _READ_BYTES + item, _PIECE_BYTES + _VALUE_COPIES * item

    def _pieces_bytes(self) -> int:
        """The most memory that `_pieces` takes. A matrix that is not made yet is made for it."""
        return self._most_bytes(*self._piece_bytes())

    def _most_bytes(self, bytes_each: int, work_each: int = 0) -> int:
        """The most memory that `_blocks_within` takes, in the steps in which it is reserved."""
        core = self._content.streamed()
        most = max((_bytes_of(core, number, bytes_each, work_each) for number in range(core.tiles)), default=0)
        return -(-most // _STEP_BYTES) * _STEP_BYTES

    def _blocks_within(
        self, first: int, bytes_each: int, work_each: int = 0
    ) -> Iterator[tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64], NDArray]]:
        """Blocks from one of a number on, in reserved memory of so many bytes an entry, and for work on a piece."""
        return whole_scan("scan of a sparse matrix", self._read_blocks(first, bytes_each, work_each))

    def _read_blocks(
        self, first: int, bytes_each: int, work_each: int
    ) -> Generator[tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64], NDArray], None, None]:
        memory = _core.EntriesMemory(current()._core)
        core = self._content.streamed()
        for number in range(first, core.tiles):
            memory.cover(_bytes_of(core, number, bytes_each, work_each))
            block = [self._block(number)]
            if len(block[0][0]) > 0:  # a formula may keep none
                yield block.pop()  # to the caller alone, who may let go of it

    def _block(self, number: int) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64], NDArray]:
        """One of `blocks`, of which there are as many as the file has tiles."""
        core = self._content.streamed()
        _check_length(core)
        rows, columns, data = core.read(current()._core, number)
        values = np.ones(len(rows), dtype=bool) if self.is_pattern else data.view(self.dtype)
        return (columns, rows, values) if self._transposed else (rows, columns, values)


def _bytes_of(core: _core.Sparse, number: int, bytes_each: int, work_each: int) -> int:
    """Memory for a block, and for the work on a piece of it."""
    # An entry takes a byte at least, whatever a damaged file says.
    entries = min(core.entries_of(number), core.file_bytes)
    entries_bytes = entries * bytes_each + min(entries, _PIECE_ENTRIES) * work_each
    return entries_bytes + (0 if core.is_plain else core.reading_bytes(number))


def _check_length(core: _core.Sparse) -> None:
    if not core.is_tiled:
        return  # reading says so of arrays
    with contextlib.suppress(FileNotFoundError):  # and of a file that is gone
        now = Path(core.path).stat().st_size
        if now != core.file_bytes:
            message = (
                f"{core.path}: changed since it was opened ({core.file_bytes} bytes then, {now} now); open it again"
            )
            raise SourceChangedError(message, {"path": str(core.path)})


# A matrix of the class that is given.
Matrix = TypeVar("Matrix", bound=StoredMatrix)

__all__ = ["Matrix", "StoredMatrix"]
