"""`.npz` files: members that are stored as they are, read where they lie in the archive."""

from __future__ import annotations

from typing import TYPE_CHECKING

from outcore._base.archives import STORED, lying_in, reading_members, unzipped
from outcore._base.files import Header, reading
from outcore._base.system_errors import refusing
from outcore._opening.places import FilePlace, file_place, head_of
from outcore.errors import FormatError, UnsupportedFormatError

if TYPE_CHECKING:
    from zipfile import ZipInfo

_MAGIC = (b"PK\x03\x04", b"PK\x05\x06")
_SUFFIX = ".npy"
_ENCRYPTED = 1
_NAMED_MAX = 12


def archive_place(name: str) -> FilePlace | None:
    """Where a path leads to in a zip file of arrays, by first bytes; None for other paths."""
    place = file_place(name)
    if place is None or head_of(place.path, 4) not in _MAGIC:
        return None
    return place if place.path.endswith(".npz") or _arrays(place.path) else None


def _arrays(path: str) -> dict[str, ZipInfo]:
    """The members that are arrays, by their names."""
    with refusing(path, "open"), reading_members(path), reading(path) as file, unzipped(file) as archive:
        members = {about.filename: about for about in archive.infolist()}
    return {name.removesuffix(_SUFFIX): about for name, about in members.items() if name.endswith(_SUFFIX)}


def open_member(place: FilePlace) -> Header | dict[str, bool]:
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


def _header(path: str, member: str, about: ZipInfo) -> Header:
    if about.flag_bits & _ENCRYPTED:
        raise UnsupportedFormatError(f"{path}: {member!r} is encrypted; unpack the archive", {"path": path})
    if about.compress_type != STORED:
        raise UnsupportedFormatError(
            f"{path}: {member!r} is packed, and can only be read from its beginning on; use "
            f"oc.asarray(numpy.load({path!r})[{member!r}]), or write the archive by numpy.savez",
            {"path": path},
        )
    header = lying_in(path, about)
    if header.dtype.hasobject:
        raise UnsupportedFormatError(f"{path}: {member!r} holds Python objects", {"path": path})
    return header


__all__ = ["archive_place", "open_member"]
