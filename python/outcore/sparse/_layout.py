"""What a stored matrix takes beside other formats, and how its entries spread over the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from outcore.sparse._matrix import SparseMatrix

# Bytes of DCSC within a tile: number and pointer of a column that has entries, and the row of an entry.
_DCSC_COLUMN, _DCSC_ENTRY = 8, 2
_BAR, _WIDTH, _HEIGHT, _LINE = 40, 640, 18, 24


def layout(matrix: SparseMatrix) -> dict[str, Any]:
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
    side, stored = core.side, SparseMatrix(core)
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


def bounds(place: int) -> str:
    """The degrees that a place of the histogram counts."""
    low, high = (0, 0) if place == 0 else (1 << (place - 1), (1 << place) - 1)
    return str(low) if low == high else f"{low}-{high}"


def _parts(degrees: list[int], width: int) -> list[int]:
    """Lengths of bars, by the logarithm: the most is the longest, and one row shows."""
    found = np.log1p(np.asarray(degrees, dtype=float))
    return [int(part) for part in np.ceil(width * found / max(found.max(initial=0.0), 1e-300))]


def bars(degrees: list[int]) -> str:
    """The histogram as lines of text, its bars by the logarithm of the number of rows."""
    labels = [bounds(place) for place in range(len(degrees))]
    wide, long = max(map(len, labels)), max(len(f"{count:,}") for count in degrees)
    drawn = zip(labels, degrees, _parts(degrees, _BAR), strict=True)
    return "\n".join(f"{label:>{wide}}  {count:>{long},}  {'█' * part}" for label, count, part in drawn)


def svg(degrees: list[int], title: str) -> str:
    """The histogram as a drawing."""
    from html import escape

    height = _LINE * (len(degrees) + 2)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH + 260}" height="{height}" '
        'font-family="sans-serif" font-size="13">',
        f'<text x="8" y="18">{escape(title)}: rows by entries (bars by logarithm)</text>',
    ]
    for place, (count, part) in enumerate(zip(degrees, _parts(degrees, _WIDTH), strict=True)):
        y = _LINE * (place + 1) + 8
        lines.append(f'<text x="118" y="{y + 14}" text-anchor="end">{bounds(place)}</text>')
        lines.append(f'<rect x="128" y="{y}" width="{part}" height="{_HEIGHT}" fill="#4878a8"/>')
        lines.append(f'<text x="{134 + part}" y="{y + 14}">{count:,}</text>')
    return "\n".join([*lines, "</svg>\n"])


__all__ = ["bars", "layout", "svg"]
