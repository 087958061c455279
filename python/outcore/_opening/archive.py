"""`.npz` files: members that are stored as they are, read where they lie in the archive."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path
from typing import NamedTuple

from outcore._base.archives import lying_in, reading_members
from outcore._base.files import Header, reading
from outcore._base.system_errors import refusing
from outcore.errors import FormatError, OutcoreError, UnsupportedFormatError

_MAGIC = (b"PK\x03\x04", b"PK\x05\x06")
_SUFFIX = ".npy"
_ENCRYPTED = 1
_NAMED_MAX = 12


class ArchivePlace(NamedTuple):
    """A zip file of `.npy` files, and the path of an array or a folder in it; empty for all of it."""

    path: str
    member: str


def archive_place(name: str) -> ArchivePlace | None:
    """Where a path leads to in a zip file of arrays, by first bytes; None for other paths."""
    inner = Path(os.path.abspath(name))
    path = next((above for above in (inner, *inner.parents) if os.path.isfile(above)), None)
    if path is None:
        return None
    try:
        with reading(path) as file:
            is_archive = file.read(4) in _MAGIC
    except (OSError, OutcoreError):
        return None  # the engine has said why
    place = ArchivePlace(os.fspath(path), "" if path == inner else str(inner.relative_to(path)))
    return place if is_archive and (path.suffix == ".npz" or _arrays(place.path)) else None


def _arrays(path: str) -> dict[str, zipfile.ZipInfo]:
    """The members that are arrays, by their names."""
    with refusing(path, "open"), reading_members(path), reading(path) as file, zipfile.ZipFile(file) as archive:
        members = {about.filename: about for about in archive.infolist()}
    return {name.removesuffix(_SUFFIX): about for name, about in members.items() if name.endswith(_SUFFIX)}


def open_member(place: ArchivePlace) -> Header | dict[str, bool]:
    """The header of an array, which lies in the archive; of a folder its names, and whether each is a folder.

    Raises FormatError for a damaged archive and for no such member, UnsupportedFormatError for packed ones.
    """
    path, member = place
    arrays = _arrays(path)
    about = arrays.get(member)
    if about is not None and member:
        return _header(path, member, about)
    begin = f"{member}/" if member else ""
    inner = [name.removeprefix(begin) for name in arrays if name.startswith(begin)]
    if member and not inner:
        shown = ", ".join(list(arrays)[:_NAMED_MAX]) or "none"
        more = " and others" if len(arrays) > _NAMED_MAX else ""
        raise FormatError(f"{path}: no array {member!r}; its arrays are {shown}{more}", {"path": path})
    folders = {first: bool(further) for first, _, further in (name.partition("/") for name in inner)}
    return {name: name not in inner for name in folders}


def _header(path: str, member: str, about: zipfile.ZipInfo) -> Header:
    if about.flag_bits & _ENCRYPTED:
        raise UnsupportedFormatError(f"{path}: {member!r} is encrypted; unpack the archive", {"path": path})
    if about.compress_type != zipfile.ZIP_STORED:
        raise UnsupportedFormatError(
            f"{path}: {member!r} is packed, and can only be read from its beginning on; use "
            f"oc.asarray(numpy.load({path!r})[{member!r}]), or write the archive by numpy.savez",
            {"path": path},
        )
    header = lying_in(path, about)
    if header.dtype.hasobject:
        raise UnsupportedFormatError(f"{path}: {member!r} holds Python objects", {"path": path})
    return header


__all__ = ["ArchivePlace", "archive_place", "open_member"]
