"""The backend `engine="outcore"`: files whose variables are lazy arrays of outcore, decoded by xarray."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import ClassVar

import numpy as np
import xarray
from xarray import conventions
from xarray.backends.common import BackendEntrypoint
from xarray.backends.zarr import FillValueCoder
from xarray.core import indexing

from outcore._lazy.annotated import fill_from
from outcore._lazy.array import Array
from outcore._xarray.dispatch import teach
from outcore._xarray.foreign import Foreign
from outcore._xarray.stored import StoredPlace, StoredVariable, group_of, groups_of
from outcore._xarray.unwrapped import LazyVariable


class Backend(BackendEntrypoint):
    """`xr.open_dataset(path, engine="outcore", chunks={})`: variables are lazy arrays, decoding is part of the read.

    Without `chunks` variables are read where they are indexed, as with xarray's other engines.
    """

    description: ClassVar[str] = "Open files as lazy arrays of outcore"
    supports_groups: ClassVar[bool] = True

    def open_dataset(  # type: ignore[override]
        self,
        filename_or_obj: str | os.PathLike[str],
        *,
        mask_and_scale: Foreign = True,
        decode_times: Foreign = True,
        concat_characters: Foreign = True,
        decode_coords: Foreign = True,
        drop_variables: str | Iterable[str] | None = None,
        use_cftime: Foreign = None,
        decode_timedelta: Foreign = None,
        group: str | None = None,
        version: str | None = None,
        storage_options: Foreign = None,
    ) -> xarray.Dataset:
        """A dataset of a group; options as of xarray's other engines. I/O: metadata, and coordinates when indexed.

        `version` and `storage_options` are those of `outcore.open`, for Icechunk and for URLs. Text of HDF5 and Zarr is
        read into memory at once, other kinds of variables that outcore does not read are refused; `drop_variables`
        leaves them out. Raises MissingFileError, FormatError, StorageError.
        """
        teach()
        dropped = {drop_variables} if isinstance(drop_variables, str) else set(drop_variables or ())
        stored, attributes = group_of(StoredPlace(filename_or_obj, version, storage_options), group, dropped)
        variables, general, coordinates = conventions.decode_cf_variables(
            {name: _variable(part) for name, part in stored.items()},
            attributes,
            concat_characters=concat_characters,
            mask_and_scale=mask_and_scale,
            decode_times=decode_times,
            decode_coords=decode_coords,
            drop_variables=drop_variables,
            use_cftime=use_cftime,
            decode_timedelta=decode_timedelta,
        )
        is_coordinate = {name: name in coordinates or part.dims == (name,) for name, part in variables.items()}
        dataset = xarray.Dataset(
            {name: part for name, part in variables.items() if not is_coordinate[name]},
            coords=xarray.Coordinates(
                {name: part for name, part in variables.items() if is_coordinate[name]}, indexes={}
            ),
            attrs=general,
        )
        dataset.encoding = {"source": os.fsdecode(filename_or_obj)}
        return dataset

    def open_groups_as_dict(self, filename_or_obj: Foreign, **options: Foreign) -> dict[str, xarray.Dataset]:
        """Datasets of all groups by their names. I/O and errors as of `open_dataset`."""
        place = StoredPlace(filename_or_obj, options.get("version"), options.get("storage_options"))
        names = groups_of(place)
        return {name: self.open_dataset(filename_or_obj, group=name, **options) for name in names}

    def open_datatree(self, filename_or_obj: Foreign, **options: Foreign) -> xarray.DataTree:
        """All groups as a tree. I/O and errors as of `open_dataset`."""
        return xarray.DataTree.from_dict(self.open_groups_as_dict(filename_or_obj, **options))


def _variable(stored: StoredVariable) -> xarray.Variable:
    """A variable as it is stored, under xarray's lazy indexing."""
    attributes = dict(stored.attributes)
    array = stored.array
    if isinstance(array, Array):
        data: Foreign = indexing.LazilyIndexedArray(LazyVariable(array))
        kind = array.dtype
    else:
        data, kind = np.asarray(array), np.dtype(array.dtype)
    fill = attributes.get("_FillValue")
    if isinstance(fill, str) and kind.kind == "f":
        number = fill_from(fill)
        attributes["_FillValue"] = fill if number is None else number
    elif isinstance(fill, str) and kind.kind in "cS":
        attributes["_FillValue"] = FillValueCoder.decode(fill, kind)
    encoding: dict[str, Foreign] = {}
    if stored.chunks is not None:
        encoding = {"chunks": stored.chunks, "preferred_chunks": dict(zip(stored.dims, stored.chunks, strict=True))}
    return xarray.Variable(stored.dims, data, attributes, encoding)


__all__ = ["Backend"]
