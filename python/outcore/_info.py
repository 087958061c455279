"""The standard's inspection interface."""

from __future__ import annotations

from typing import Any

import numpy as np

from outcore import dtypes

_KINDS: dict[str, tuple[str, ...]] = {
    "bool": ("bool",),
    "signed integer": ("int8", "int16", "int32", "int64"),
    "unsigned integer": ("uint8", "uint16", "uint32", "uint64"),
    "real floating": ("float16", "float32", "float64"),
    "complex floating": ("complex64", "complex128"),
}
_KINDS["integral"] = _KINDS["signed integer"] + _KINDS["unsigned integer"]
_KINDS["numeric"] = _KINDS["integral"] + _KINDS["real floating"] + _KINDS["complex floating"]


class __array_namespace_info__:  # noqa: N801 - the standard's name
    """What this implementation of the standard can do."""

    def capabilities(self) -> dict[str, Any]:
        """Boolean indexing and data-dependent shapes are absent."""
        return {"boolean indexing": False, "data-dependent shapes": False, "max dimensions": 32}

    def default_device(self) -> str:
        """The only device, "cpu"."""
        return "cpu"

    def devices(self) -> list[str]:
        """All devices: "cpu"."""
        return ["cpu"]

    def default_dtypes(self, *, device: str | None = None) -> dict[str, np.dtype[Any]]:
        """The types results have when nothing else decides."""
        return {
            "real floating": dtypes.float64,
            "complex floating": dtypes.complex128,
            "integral": dtypes.int64,
            "indexing": dtypes.int64,
        }

    def dtypes(
        self, *, device: str | None = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, np.dtype[Any]]:
        """The element types of a kind, or of several; all of them unless told."""
        kinds = ("bool", "numeric") if kind is None else (kind,) if isinstance(kind, str) else kind
        return {name: np.dtype(name) for part in kinds for name in _KINDS[part]}
