"""The standard's inspection interface."""

from __future__ import annotations

import numpy as np

from outcore._base.arguments import check_device
from outcore._base.types import DType, JSONObject
from outcore._standard import dtypes
from outcore.errors import ArgumentError

_KINDS: dict[str, tuple[str, ...]] = {
    "bool": ("bool",),
    "signed integer": ("int8", "int16", "int32", "int64"),
    "unsigned integer": ("uint8", "uint16", "uint32", "uint64"),
    "real floating": ("float32", "float64"),  # float16 is ours, and not in the standard
    "complex floating": ("complex64", "complex128"),
}
_KINDS["integral"] = _KINDS["signed integer"] + _KINDS["unsigned integer"]
_KINDS["numeric"] = _KINDS["integral"] + _KINDS["real floating"] + _KINDS["complex floating"]
# Nodes have no bound of their own; results are NumPy arrays, which have this one.
_MAX_DIMENSIONS = 64


class __array_namespace_info__:  # noqa: N801 - the standard's name
    """The capabilities of this implementation of the standard.

    >>> import outcore as oc
    >>> oc.__array_namespace_info__().default_device()
    'cpu'
    """

    def capabilities(self) -> JSONObject:
        """Masks as an index, and functions whose shapes depend on data, are there: counted when something needs it."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": _MAX_DIMENSIONS}

    def default_device(self) -> str:
        """The only device, "cpu"."""
        return "cpu"

    def devices(self) -> tuple[str, ...]:
        """All devices: "cpu"."""
        return ("cpu",)

    def default_dtypes(self, *, device: str | None = None) -> dict[str, DType]:
        """The types results have when nothing else decides. Raises ArgumentError for another device than "cpu"."""
        check_device(device)
        return {
            "real floating": dtypes.float64,
            "complex floating": dtypes.complex128,
            "integral": dtypes.int64,
            "indexing": dtypes.int64,
        }

    def dtypes(self, *, device: str | None = None, kind: str | tuple[str, ...] | None = None) -> dict[str, DType]:
        """The element types of a kind, or of several; all of them unless told. Raises ArgumentError for other kinds."""
        check_device(device)
        kinds = ("bool", "numeric") if kind is None else (kind,) if isinstance(kind, str) else kind
        unknown = [part for part in kinds if part not in _KINDS]
        if unknown:
            raise ArgumentError(f"dtypes: kind {unknown[0]!r} is none of {', '.join(map(repr, _KINDS))}")
        return {name: np.dtype(name) for part in kinds for name in _KINDS[part]}
