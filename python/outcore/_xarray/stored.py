"""Variables of a stored group, as they lie in the file: names, dimensions, lazy arrays, attributes."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

from outcore import _api as oc
from outcore import _core
from outcore._base.types import NDArray
from outcore._lazy.array import Array
from outcore._xarray.foreign import Foreign
from outcore.errors import DTypeError, FormatError, MissingFileError, OutcoreError

_NETCDFS = {"CLASS", "NAME", "REFERENCE_LIST", "DIMENSION_LIST", "DIMENSION_LABELS", "_nc3_strict", "_NCProperties"}
_NETCDFS |= {"_Netcdf4Dimid", "_Netcdf4Coordinates"}
_NO_VARIABLE = "This is a netCDF dimension but not a netCDF variable"


class StoredVariable(NamedTuple):
    """A variable before any decoding."""

    dims: tuple[str, ...]
    array: Foreign  # lazy, or text in memory
    attributes: dict[str, Foreign]
    chunks: tuple[int, ...] | None


def group_of(path: str | os.PathLike[str], group: str | None) -> tuple[dict[str, StoredVariable], dict[str, Foreign]]:
    """The variables of a group of a file by their names, and the attributes of the group. No numbers are read.

    Raises FormatError for a path that holds no group, StorageError.
    """
    opened = _opened(path, group)
    variables = {}
    for name in opened.arrays:
        variable = _variable(opened, name)
        if not str(variable.attributes.get("NAME", "")).startswith(_NO_VARIABLE):
            kept = {key: value for key, value in variable.attributes.items() if key not in _NETCDFS}
            variables[name] = variable._replace(attributes=kept)
    return variables, {key: _scalar(value) for key, value in opened.attrs.items() if key not in _NETCDFS}


def groups_of(path: str | os.PathLike[str]) -> list[str]:
    """Names of all groups of a file, from the root on: "/", "/a", "/a/b"."""
    names, due = [], [("", _opened(path, None))]
    while due:
        name, opened = due.pop(0)
        names.append(name or "/")
        due.extend((f"{name}/{inner}", opened[inner]) for inner in opened.groups)
    return names


def _opened(path: str | os.PathLike[str], group: str | None) -> oc.Group:
    parts = [part for part in (group or "").split("/") if part]
    place = "/".join([os.fsdecode(path).rstrip("/"), *parts])
    try:
        opened = oc.open(place, decode=False)
    except MissingFileError as error:
        raise FormatError(f"{place} is no group of a file: {error}") from None
    if not isinstance(opened, oc.Group):
        raise FormatError(f"{place} is an array, no group; use outcore.open")
    return opened


def _variable(group: oc.Group, name: str) -> StoredVariable:
    try:
        member = group[name]
    except (FormatError, DTypeError):
        return _unread(group.name, name)
    attributes = {key: _scalar(value) for key, value in member.attrs.items()}
    dims = tuple(dim or f"{name}_{place}" for place, dim in enumerate(member.dims))
    if not isinstance(member, Array):
        return StoredVariable(dims, member.compute(), attributes, None)
    return StoredVariable(dims, member, attributes, _chunk_shape(f"{group.name}/{name}") or member.tile or None)


def _chunk_shape(path: str) -> tuple[int, ...] | None:
    """The chunks that a file has an array in; None where it has none, or of several lengths."""
    try:
        chunks = json.loads(_core.info(path)).get("chunks")
    except OutcoreError:
        return None
    return tuple(chunks) if isinstance(chunks, list) and all(isinstance(part, int) for part in chunks) else None


def _unread(folder: str, name: str) -> StoredVariable:
    """A variable that outcore does not read, text for one, as its own library does: into memory."""
    if not Path(folder).is_dir():
        raise FormatError(f'{folder}/{name} is read by its own library alone: engine="netcdf4" and drop_variables=')
    import zarr

    array = zarr.open_array(f"{folder}/{name}", mode="r")
    attributes: dict[str, Foreign] = dict(array.attrs)
    dims: Foreign = getattr(array.metadata, "dimension_names", None) or attributes.pop(
        "_ARRAY_DIMENSIONS", [None] * array.ndim
    )
    named = tuple(dim or f"{name}_{place}" for place, dim in enumerate(dims))
    values: NDArray = np.asarray(array[...])
    return StoredVariable(named, values, attributes, None)


def _scalar(value: Foreign) -> Foreign:
    """A number where a file keeps an array of one."""
    return value.reshape(())[()] if isinstance(value, np.ndarray) and value.size == 1 else value


__all__ = ["StoredVariable", "group_of", "groups_of"]
