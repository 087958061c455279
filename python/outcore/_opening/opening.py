"""`open`: files as lazy arrays."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, overload

from outcore import _core
from outcore._base.element_types import DTypeLike
from outcore._base.files import Header
from outcore._base.types import PathLike
from outcore._base.urls import is_url, url_of
from outcore._lazy.annotated import attributes_from
from outcore._lazy.array import Array
from outcore._lazy.typed import Typed
from outcore._objects.mounting import StorageOptions, mounted
from outcore._opening.archive import archive_place, open_member
from outcore._opening.conventions import decoded
from outcore._opening.group import Group
from outcore._opening.icechunk import open_repository, repository_place
from outcore._opening.kinds import is_unknown, with_kind
from outcore._opening.multiscales import level_names, with_level_names
from outcore._opening.places import FilePlace, file_place
from outcore._opening.raw import raw_header
from outcore._opening.records import is_typed, open_part, open_placed, open_records
from outcore._opening.references import ReferencePlace, open_references, references_place
from outcore._opening.several import joined, parts_of
from outcore._opening.tiff import open_tiff, tiff_place
from outcore._session.session import current
from outcore.errors import ArgumentError, DTypeError, FormatError, MissingFileError, SourceChangedError, StorageError


@overload
def open(path: PathLike | Sequence[PathLike], *, field: str, view: DTypeLike = None, axis: int | str = 0) -> Array: ...
@overload
def open(
    path: PathLike | Sequence[PathLike],
    *,
    field: str | None = None,
    view: DTypeLike = None,
    axis: int | str = 0,
    decode: bool = True,
    dtype: DTypeLike = None,
    shape: int | Sequence[int] | None = None,
    offset: int = 0,
    order: Literal["C", "F"] = "C",
    version: str | None = None,
    storage_options: StorageOptions | None = None,
) -> Any: ...
def open(
    path: PathLike | Sequence[PathLike],
    *,
    field: str | None = None,
    view: DTypeLike = None,
    axis: int | str = 0,
    decode: bool = True,
    dtype: DTypeLike = None,
    shape: int | Sequence[int] | None = None,
    offset: int = 0,
    order: Literal["C", "F"] = "C",
    version: str | None = None,
    storage_options: StorageOptions | None = None,
) -> Any:
    """The lazy array stored at a path: a Zarr directory, a `.npy` file (C or Fortran order), HDF5's dataset, a variable
    of NetCDF, a member of `.npz`, images of TIFF, or bytes without a header; or a `Group` of arrays.

    Datasets and groups are opened by the path of the file and their own in it: `open("x.h5/group/name")`,
    `open("x.nc/t2m")`, `open("a.npz/x")`; a Zarr group's members by theirs. NetCDF-4, `.h5ad` and MATLAB 7.3 files are
    HDF5; Zarr is v3, or v2. Elements are integers, floats, complex numbers, truths (h5py's) or enumerations, which
    become their integers; filters are deflate, shuffle, fletcher32, scaleoffset, lzf, lz4, bitshuffle, zstd and blosc,
    and others are refused by name. Chunks are read and decoded on all threads, without HDF5's library.

    NetCDF-3 files are read as well, of all three kinds (classic, 64-bit offset and data): records of an unlimited
    dimension are chunks, and variables of characters are refused when they are opened. Members of `.npz` files are read
    where they lie, without a look at the archive's checksums; packed ones (`numpy.savez_compressed`) are refused when
    they are opened.

    TIFF, BigTIFF and OME-TIFF (needs tifffile) are one array, or a group of their series, with tifffile's letters for
    names of axes; `open("x.tif/1")` is a series, `open("x.tif/0/2")` a level of one. Compression is none, deflate, LZW
    or zstd, and others are refused by name. References of kerchunk, a JSON document or a folder of Parquet files, are
    the group of arrays that they describe, read from local files where its chunks lie.

    A repository of Icechunk, versions 1 and 2 of its format, is the group of its branch `main`; `version` is the name
    of another branch or of a tag, or the id of a snapshot. Arrays stay at their snapshot when more is committed.
    Virtual chunks are read from local files. Raises ArgumentError for a version that is not there, and for a name that
    a branch and a tag have.

    With `dtype` the file is an array without a header: of `shape`, from byte `offset` on, in `order` "C" or "F". One
    length may be -1, as many as the file holds; without `shape` that is the only one. Bytes behind the array are not
    read. `field` and `view` are as for `.npy` files. Raises FormatError where the file is too short, with both lengths.

    Names of axes and attributes are the array's `dims` and `attrs`, and go on to what is made of it:
    `x.mean(axis="time")`; levels of an image in OME-Zarr (0.4, 0.5) have those of its axes. With `decode`, numbers are
    what their attributes say (CF conventions): `scale_factor` and `add_offset` are applied, fill values are NaN, times
    since a date are `Dates`; without, they are as stored.

    A list of paths, or a name with wildcards (`"part-*.npy"`, `**` for folders at any depth), is one array: all of them
    joined along `axis`, a list in its order, matches in that of their names, numbers in these by their value. Groups
    are joined array by array, along the axis of a name: `open("t2m_*.nc", axis="time")`; arrays without such an axis
    are those of the first. Files are opened in threads. One whose very name has such characters is itself. Raises
    DTypeError or ShapeError, with both names, for files that do not go together, MissingFileError where nothing
    matches.

    Of a `.npy` file, a member of `.npz` or a dataset of HDF5, of records `field` names the one to read. In `.npy` files
    that is one read of the file where a record is a whole number of the field's elements (16 bytes for float64), else
    up to eight: one for each place in an element that a record may begin at; in HDF5 it is one read. `view` has
    elements of these files read as another type of their size. Raises DTypeError for no such field, or another size.

    Files and fields of datetime64 and timedelta64, or with `view` such a type, give `Dates`, which keep their unit;
    those of fixed-length strings (`S8`, `U3`) give `Text`. Dates in a Zarr array that are no numbers are read through
    zarr-python: `asarray(zarr.open(path))`.

    `s3://bucket/key`, `gs://bucket/key`, `https://host/path` and `http://` lead to Zarr, Icechunk, `.npy`, HDF5 and
    NetCDF-3 in stores of objects, through the package obstore: `pip install outcore[cloud]`. `storage_options` are
    names and values of its configuration (`region`, `access_key_id`, `secret_access_key`, `endpoint`,
    `skip_signature=True` for public data, …), with `client_options` (`timeout`, `connect_timeout`) and `retry_config`
    (`max_retries`); without, credentials are the environment's. The options hold for the bucket or host, and are in no
    message, digest or pickle. Web servers give no lists: each chunk of an array is asked for once when it is opened,
    and in any store each of Icechunk's.

    Raises MissingFileError where nothing is, PermissionDeniedError, FormatError for other kinds of files, which says
    how those are read, and for codecs outcore lacks, StorageError where the path cannot be read. I/O: its metadata
    only, counted by the session in use. Tiles are read when a result needs them, and never after the file has changed;
    no file stays open.

    >>> import numpy as np, outcore as oc, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/x.npy", np.arange(6.0).reshape(2, 3))
    ...     oc.open(f"{folder}/x.npy").sum(axis=0).compute()
    ...     np.save(f"{folder}/y.npy", np.ones((1, 3)))
    ...     oc.open(f"{folder}/*.npy").shape
    ...     np.arange(6, dtype=">f4").tofile(f"{folder}/x.bin")
    ...     oc.open(f"{folder}/x.bin", dtype=">f4", shape=(-1, 3)).sum(axis=0).compute()
    array([3., 5., 7.])
    (3, 3)
    array([3., 5., 7.], dtype=float32)
    """
    if dtype is None and (shape is not None or offset != 0 or order != "C"):
        raise ArgumentError("open: shape, offset and order are of a file without a header, and need its dtype")

    if version is not None and not dtype is field is view is None:
        raise ArgumentError("open: version is of a repository, whose arrays have no field, view or dtype")

    def one(name: str) -> Array | Typed | Group:
        if is_url(name):
            if not dtype is field is view is None:
                raise ArgumentError(f"open: {url_of(name).text}: dtype, field and view are for files, not for URLs")
            name = mounted(name, storage_options)
            return _open_one(name, None, None, decode) if version is None else _open_version(name, version, decode)
        if storage_options is not None:
            return _open_references(name, storage_options, decode)
        if version is not None:
            return _open_version(name, version, decode)
        if dtype is None:
            return _open_one(name, field, view, decode)
        header = raw_header(name, dtype, shape, offset, order)
        array: Array = open_placed(current()._core, name, header, field, view)
        return array

    names = parts_of(path)
    if names is not None:
        return joined(names, one, axis)
    return one(os.fsdecode(path))  # type: ignore[arg-type]


def _open_one(name: str, field: str | None, view: DTypeLike, decode: bool) -> Array | Typed | Group:
    if is_url(name):
        stored = _stored_at_url(name, decode)
        if isinstance(stored, _core.StoredGroup):
            return _group(name, stored, decode, ())
        if not isinstance(stored, (_core.Expr, _core.StoredRecords)):
            return stored
        return _element_array(name, stored, decode)
    if field is None and view is None:
        identity = _identity(name)
        try:
            stored = _core.find(current()._core, name)
        except (FormatError, StorageError) as error:
            elsewhere = _open_listed(name, decode)
            if elsewhere is not None:
                return elsewhere
            if not isinstance(error, FormatError):
                raise
            if not is_typed(name):
                raise with_kind(name, error) from None
        else:
            if isinstance(stored, _core.StoredGroup):
                return _group(os.fspath(stored.path), stored, decode, identity)
            return _element_array(name, stored, decode)
    place = archive_place(name)
    if place is not None:
        return _open_archive(place, field, view)
    within = file_place(name)
    if within is not None and within.member:
        return _open_field(name, field, view)
    array: Array = open_part(current()._core, name, field, view)
    return array


def _element_array(name: str, stored: _core.Expr | _core.StoredRecords, decode: bool) -> Array | Typed:
    if isinstance(stored, _core.StoredRecords):
        return open_records(name, stored, None, None)
    return decoded(Array(stored)) if decode else Array(stored)


def _open_field(name: str, field: str | None, view: DTypeLike) -> Array | Typed:
    """A field of the records of an array in a file of several."""
    stored = _core.find(current()._core, name)
    if isinstance(stored, _core.StoredRecords):
        return open_records(name, stored, field, view)
    raise DTypeError(
        f"open: {name}: field and view are for records, .npy files, members of .npz and files with a dtype"
    )


def _stored_at_url(
    name: str, decode: bool
) -> _core.Expr | _core.StoredGroup | _core.StoredRecords | Array | Typed | Group:
    """The object at a URL. Raises what `open` raises where nothing is that outcore reads."""
    try:
        return _core.find(current()._core, name)
    except (FormatError, MissingFileError) as error:
        if (references := references_place(name)) is not None:
            return _opened_references(references, decode)
        if (repository := repository_place(name)) is not None:
            return open_repository(repository, None, decode)
        if not isinstance(error, FormatError) or not is_unknown(error):
            raise
        raise FormatError(
            f"{name}: none of Zarr, Icechunk, kerchunk's references, .npy, HDF5, NetCDF-4 and NetCDF-3, which are read "
            f"from URLs by outcore.open, as Parquet is by outcore.read_parquet; other files are read where they are "
            f"copied to",
            getattr(error, "details", {}),
        ) from None


def _open_listed(name: str, decode: bool) -> Array | Typed | Group | None:
    """The object at a path, of a format whose metadata Python reads; None for other paths."""
    identity = _identity(name)
    opened: Array | Typed | Group | None = None
    if (archive := archive_place(name)) is not None:
        opened = _open_archive(archive, None, None)
    elif (images := tiff_place(name)) is not None:
        opened = open_tiff(images)
    elif (references := references_place(name)) is not None:
        opened = _opened_references(references, decode)
    elif (repository := repository_place(name)) is not None:
        opened = open_repository(repository, None, decode)
    if opened is not None and _identity(name) != identity:
        raise SourceChangedError(f"{name}: was replaced while it was opened; open it again", {"path": name})
    return opened


def _opened_references(references: ReferencePlace, decode: bool) -> Array | Typed | Group:
    stored = open_references(references, decode)
    return decoded(stored) if decode and isinstance(stored, Array) else stored


def _open_references(name: str, options: StorageOptions, decode: bool) -> Array | Typed | Group:
    """References in a file of this machine to objects of stores. Raises ArgumentError for other files."""
    references = references_place(name, options)
    if references is None:
        raise ArgumentError(f"open: {name}: storage_options are for URLs, and for references of kerchunk to some")
    return _opened_references(references, decode)


def _open_version(name: str, version: str | None, decode: bool) -> Array | Typed | Group:
    """An array or a group of a version of a repository. Raises ArgumentError for other paths, and other versions."""
    repository = repository_place(name)
    if repository is None:
        raise ArgumentError(f"open: {name}: version is of Icechunk repositories, and none is there")
    return open_repository(repository, version, decode)


def _open_archive(place: FilePlace, field: str | None, view: DTypeLike) -> Array | Typed | Group:
    opened = open_member(place)
    if isinstance(opened, Header):
        array: Array = open_placed(current()._core, place.path, opened, field, view)
        return array
    name = "/".join(part for part in place if part)
    return Group(name, {}, opened, lambda member: _open_one(f"{name}/{member}", None, None, False))


def _group(path: str, stored: _core.StoredGroup, decode: bool, identity: tuple[int, ...]) -> Group:
    attrs = attributes_from(stored.attributes)
    levels = level_names(attrs)

    def load(name: str) -> Array | Typed | Group:
        member = _open_one(f"{path}/{name}", None, None, decode)
        if _identity(path) != identity:
            raise SourceChangedError(f"{path}: was replaced since it was opened; open it again", {"path": path})
        return with_level_names(member, levels.get(name)) if isinstance(member, Array) else member

    return Group(path, attrs, dict(stored.members), load)


def _identity(name: str) -> tuple[int, ...]:
    """Device and number of a folder; of a file its size and time as well. Empty for a path that is nowhere, and for a
    URL, whose objects are known by their tags."""
    if is_url(name):
        return ()
    for place in (Path(name), *Path(name).parents):
        try:
            status = place.stat()
        except (OSError, ValueError):
            continue
        inode = (status.st_dev, status.st_ino)
        return inode if stat.S_ISDIR(status.st_mode) else (*inode, status.st_size, status.st_mtime_ns)
    return ()


__all__ = ["open"]
