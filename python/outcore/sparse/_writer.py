"""Entries in the order of their places, handed to the writer of a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from outcore import _core
from outcore._base.types import DType, NDArray
from outcore._session.session import current


class Writer:
    """A stored matrix in the making: it has its name when `finish` returns, and leaves nothing behind before.

    `dtype` is that of the values, nothing for a pattern. `duplicates` says how entries at one place combine: "sum",
    "last" or "refuse". Used as a context, whose end without `finish` leaves nothing behind.
    """

    def __init__(
        self,
        path: Path,
        shape: tuple[int, int],
        dtype: DType | None,
        side: int,
        duplicates: str,
        overwrite: bool,
    ) -> None:
        kind = "pattern" if dtype is None else dtype.name
        self._dtype = dtype
        self._core = _core.SparseWriter(current()._core, str(path), shape, kind, side, duplicates, overwrite)

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *_: object) -> None:
        # A half-written file goes at once, also where the traceback of an error keeps this.
        del self._core

    def add(self, keys: tuple[NDArray, ...], values: NDArray) -> None:
        """Writes entries behind all that are written: keys as of `keys_of`, which ascend."""
        nothing = np.zeros(0, np.uint8)
        data = nothing if self._dtype is None else np.ascontiguousarray(values, self._dtype).view(np.uint8)
        if len(keys) == 1:
            self._core.add(keys[0], data)
        else:
            self._core.add_wide(keys[0], keys[1], data)

    def finish(self) -> None:
        """Completes the file and gives it its name."""
        self._core.finish()


__all__ = ["Writer"]
