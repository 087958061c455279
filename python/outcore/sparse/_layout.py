"""The size of a stored matrix beside other formats, and the spread of its entries over the rows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from outcore._base.types import JSONObject
from outcore.sparse._content import PassingEntries
from outcore.sparse._matrix import SparseMatrix

# Bytes of DCSC within a tile: number and pointer of a column that has entries, and the row of an entry.
_DCSC_COLUMN, _DCSC_ENTRY = 8, 2


def layout(matrix: SparseMatrix) -> JSONObject:
    """Sizes and degrees of a matrix as it is stored: what `outcore sparse info` shows. I/O: one read.

    `degrees` counts rows by their entries: none, 1, 2 and 3, 4 to 7, and so on. CSR is that of SciPy, with 4 bytes for
    a column and a row's beginning where numbers allow, else 8; DCSC (Buluç, Gilbert 2008) is on the same tiles, with
    the bytes that Zheng (2017, 4.3.2) gives it.

    >>> import outcore as oc, scipy.sparse, tempfile, pathlib
    >>> A = oc.sparse.from_scipy(scipy.sparse.eye(3), pathlib.Path(tempfile.mkdtemp()) / "a.ocs")
    >>> oc.sparse.layout(A)["degrees"]
    [0, 3]
    """
    core = matrix._core
    rows, columns = core.shape
    side, stored = core.side, SparseMatrix(PassingEntries(core))
    item = 0 if stored.is_pattern else stored.dtype.itemsize
    counts, reached, pairs, most = np.zeros(65, np.int64), 0, 0, 0
    for r, c, _ in stored.blocks():
        first = r.min() // np.uint64(side)
        degrees = _runs(r)
        reached += len(degrees)
        most = max(most, int(degrees.max(initial=0)))
        counts += np.bincount(np.frexp(degrees)[1], minlength=65)
        # A tile row has each column in one tile only; what is read at once are a few tile rows.
        pairs += len(_runs((r // np.uint64(side) - first) * np.uint64(columns) + c))
    counts[0] = rows - reached
    word = 4 if max(columns, stored.nnz) < 1 << 31 else 8
    last = int(np.flatnonzero(counts).max(initial=0))
    return {
        "shape": [rows, columns],
        "entries": stored.nnz,
        "values": core.dtype,
        "tile": side,
        "bytes": stored.nbytes,
        "csr_bytes": word * (rows + 1) + (word + item) * stored.nnz,
        "dcsc_bytes": _DCSC_COLUMN * pairs + (_DCSC_ENTRY + item) * stored.nnz,
        "degree_max": most,
        "degrees": counts[: last + 1].tolist(),
    }


def _runs(numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.intp]:
    """How often each of the numbers that occur does. (Sorting took a tenth of the time of NumPy's `unique`.)"""
    ordered = np.sort(numbers)
    ends = np.flatnonzero(np.concatenate([ordered[1:] != ordered[:-1], [True]]))
    return np.diff(ends, prepend=-1)


__all__ = ["layout"]
