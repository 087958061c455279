"""Variables of a stored group, as they lie in the file: names, dimensions, lazy arrays, attributes."""

from __future__ import annotations

import json
import os
from collections.abc import Container, Iterable
from typing import NamedTuple

import numpy as np

from outcore import _api as oc
from outcore import _core
from outcore._base.types import NDArray
from outcore._lazy.array import Array
from outcore._opening.places import file_place
from outcore._xarray.foreign import Foreign
from outcore.errors import DTypeError, FormatError, OutcoreError

_NETCDFS = {"CLASS", "NAME", "REFERENCE_LIST", "DIMENSION_LIST", "DIMENSION_LABELS", "_nc3_strict", "_NCProperties"}
_NETCDFS |= {"_Netcdf4Dimid", "_Netcdf4Coordinates"}
_NO_VARIABLE = "This is a netCDF dimension but not a netCDF variable"


class StoredVariable(NamedTuple):
    """A variable before any decoding."""

    dims: tuple[str, ...]
    array: Foreign  # lazy, or text in memory
    attributes: dict[str, Foreign]
    chunks: tuple[int, ...] | None


class StoredPlace(NamedTuple):
    """A path and the options with which it is opened."""

    path: str | os.PathLike[str]
    version: str | None = None
    storage_options: Foreign = None


def group_of(
    place: StoredPlace, group: str | None, dropped: Container[str] = ()
) -> tuple[dict[str, StoredVariable], dict[str, Foreign]]:
    """The variables of a group of a file by their names, without dropped ones, and the attributes of the group. No
    numbers are read.

    Raises MissingFileError, FormatError for a path that holds no group, StorageError.
    """
    opened = _opened(place, group)
    variables = {}
    for name in opened.arrays:
        if name in dropped:
            continue
        variable = _variable(opened, name)
        if not str(variable.attributes.get("NAME", "")).startswith(_NO_VARIABLE):
            kept = {key: value for key, value in variable.attributes.items() if key not in _NETCDFS}
            variables[name] = variable._replace(attributes=kept)
    return variables, {key: _scalar(value) for key, value in opened.attrs.items() if key not in _NETCDFS}


def groups_of(place: StoredPlace) -> list[str]:
    """Names of all groups of a file, from the root on: "/", "/a", "/a/b"."""
    names, due = [], [("", _opened(place, None))]
    while due:
        name, opened = due.pop(0)
        names.append(name or "/")
        due.extend((f"{name}/{inner}", opened[inner]) for inner in opened.groups)
    return names


def _opened(place: StoredPlace, group: str | None) -> oc.Group:
    parts = [part for part in (group or "").split("/") if part]
    path = "/".join([os.fsdecode(place.path).rstrip("/"), *parts])
    opened = oc.open(path, decode=False, version=place.version, storage_options=place.storage_options)
    if not isinstance(opened, oc.Group):
        raise FormatError(f"{path} is an array, no group; use outcore.open")
    return opened


def _variable(group: oc.Group, name: str) -> StoredVariable:
    try:
        member = group[name]
    except (FormatError, DTypeError) as error:
        return _unread(group.name, name, error)
    attributes = {key: _scalar(value) for key, value in member.attrs.items()}
    dims = _named(member.dims, name)
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


def _unread(folder: str, name: str, error: OutcoreError) -> StoredVariable:
    """A variable that outcore does not read, text for one, as its own library does: into memory."""
    if not any(os.path.exists(os.path.join(folder, name, document)) for document in ("zarr.json", ".zarray")):
        return _text_of_hdf5(folder, name, error)
    import zarr

    array = zarr.open_array(f"{folder}/{name}", mode="r")
    attributes: dict[str, Foreign] = dict(array.attrs)
    dims: Foreign = getattr(array.metadata, "dimension_names", None) or attributes.pop(
        "_ARRAY_DIMENSIONS", [None] * array.ndim
    )
    values: NDArray = np.asarray(array[...])
    return StoredVariable(_named(dims, name), values, attributes, None)


def _text_of_hdf5(folder: str, name: str, error: OutcoreError) -> StoredVariable:
    """Text in an HDF5 file. Raises FormatError for what is no text, and where h5py is missing."""
    refusal = FormatError(f"{error}; drop_variables={name!r} leaves this variable out")
    place = file_place(folder)
    try:
        import h5py
    except ImportError:
        raise refusal from None
    if place is None or not h5py.is_hdf5(place.path):
        raise refusal
    with h5py.File(place.path) as file:
        stored: Foreign = file.get(f"{place.member}/{name}")
        kind = h5py.check_string_dtype(stored.dtype) if isinstance(stored, h5py.Dataset) else None
        if kind is None or stored.shape is None:
            raise refusal
        is_long = kind.length is None
        values: NDArray = np.asarray(stored.asstr()[...], dtype=object) if is_long else np.asarray(stored[...])
        attributes = {key: value for key, value in stored.attrs.items() if key not in _NETCDFS}
        scales = [axis[0].name.rpartition("/")[2] if len(axis) else None for axis in stored.dims]
        if stored.is_scale and values.ndim == 1:
            scales = [name]
    return StoredVariable(_named(scales, name), values, attributes, None)


def _named(dims: Iterable[str | None], name: str) -> tuple[str, ...]:
    return tuple(dim or f"{name}_{place}" for place, dim in enumerate(dims))


def _scalar(value: Foreign) -> Foreign:
    """A number where a file keeps an array of one."""
    return value.reshape(())[()] if isinstance(value, np.ndarray) and value.size == 1 else value


__all__ = ["StoredPlace", "StoredVariable", "group_of", "groups_of"]
