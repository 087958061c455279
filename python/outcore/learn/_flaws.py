"""NaN and infinity in data: found in the sweep that is made anyway, and named by their place."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from outcore import _api as oc
from outcore._base.types import NDArray
from outcore._lazy.array import Array
from outcore.errors import ArgumentError

# Rows whose mean data is taken from before it is multiplied: sums of products then cancel little.
SHIFT_BY = 16


def first_flaw(*arrays: Array | None) -> Array:
    """The first row in which an array has an element that is not finite, as a lazy place; 0 where there is none.

    x·0 is 0 for finite rows and NaN for others. It is one product of few operations, in the sweep of the sums that it
    is asked for with: those say whether there is a flaw, and this says where.
    """
    bad = []
    for array in arrays:
        if array is not None and array.dtype.kind == "f":
            rows = array if array.ndim == 2 else oc.expand_dims(array, axis=1)
            bad.append(rows @ oc.zeros((rows.shape[1],), dtype=rows.dtype))
    if not bad:
        return oc.zeros((), dtype=np.int64)
    whole = bad[0]
    for part in bad[1:]:
        whole = whole + part
    return oc.argmax(oc.logical_not(oc.isfinite(whole)))


def refuse_flaws(
    sums: Sequence[NDArray | float], row: NDArray, *, pass_nan: bool = False, **arrays: Array | None
) -> None:
    """Raises ArgumentError where sums over the data are not finite, naming the first element that is not.

    `row` is what `first_flaw` found; NaN is none if `pass_nan`. I/O: none where they are finite, else a few rows from
    there on.
    """
    if all(np.all(np.isfinite(value)) for value in sums):
        return
    place = int(row)
    for name, array in arrays.items():
        if array is not None:
            rows = array[place : place + SHIFT_BY].compute()
            refuse_row(name, rows, np.arange(place, place + len(rows)), pass_nan=pass_nan)
    raise ArgumentError(
        f"sums over {', '.join(arrays)} overflow although every element is finite; scale the columns down"
    )


def refuse_row(name: str, rows: NDArray, places: NDArray, *, pass_nan: bool = False) -> None:
    """Raises ArgumentError naming the first element of some rows, which lie at `places`, that is not finite."""
    bad = np.argwhere(np.isinf(rows) if pass_nan else ~np.isfinite(rows))
    if not len(bad):
        return
    value = rows[tuple(bad[0])]
    what = "NaN" if np.isnan(value) else f"infinity or a value too large for {rows.dtype}"
    index = ", ".join(map(str, (int(places[bad[0][0]]), *map(int, bad[0][1:]))))
    raise ArgumentError(f"Input {name} contains {what}: {name}[{index}] is not finite")


__all__ = ["SHIFT_BY", "first_flaw", "refuse_flaws", "refuse_row"]
