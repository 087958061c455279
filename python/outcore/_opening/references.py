"""References of kerchunk: a JSON document or a folder of Parquet files that says where chunks of Zarr arrays lie.

After the specification of fsspec's reference file system, versions 0 and 1, and kerchunk's Parquet layout. The document
and the files that it refers to are local, or objects of stores; paths that are not absolute count from the folder of
the document. A document at a URL refers to nothing on this machine.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np

from outcore._base.system_errors import refusing
from outcore._base.urls import SCHEMES, is_url, url_of
from outcore._lazy.array import Array
from outcore._objects.asking import content_of
from outcore._objects.mounting import StorageOptions, mounted
from outcore._opening.chunk_lists import JSON, ChunkList, grid_of, in_memory, listed, names_of
from outcore._opening.content_files import content_file
from outcore._opening.conventions import decoded
from outcore._opening.group import Group
from outcore._opening.places import FilePlace, file_place, head_of
from outcore._session.session import leave_room
from outcore.errors import FormatError, MissingFileError, UnsupportedFormatError

Reference: TypeAlias = "str | list[JSON] | Mapping[str, JSON]"  # inline bytes, or a file, first byte and length
ChunkReference: TypeAlias = "tuple[int, Reference]"  # the number of a chunk, and where it is
_DOCUMENT_BYTES_MAX = 1 << 30
_ARRAYS = (".zarray", "zarr.json")
_CONSOLIDATED, _PARQUET_BYTES = ".zmetadata", 48 << 20
_COLUMNS = ("path", "offset", "size", "raw")
_TEMPLATE = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_DIGITS = re.compile(r"[0-9]{1,19}")  # of a number of a chunk
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*)://", re.IGNORECASE)
_LOCAL = ("file", "local")
_OTHER_NAMES = {"s3a": "s3", "gcs": "gs"}  # of schemes
_REMOTE = re.compile(r"(.*?\.(?:json|parq|parquet|zarr))(?:/(.*))?", re.DOTALL)  # a document's URL, and a member
_WHOLE = (1 << 64) - 1  # bytes of a chunk that is all of its file


class References(NamedTuple):
    """Documents of arrays and groups by their paths, and the chunks of an array."""

    path: str
    options: StorageOptions | None  # of the stores that are referred to
    documents: Mapping[str, JSON]
    chunks: Callable[[str, tuple[int, ...], str, str], Iterator[ChunkReference]]

    def place(self, member: str) -> FilePlace:
        """A member, in the file or object that stands for the references: a store has no folders."""
        is_folder = is_url(self.path) and not self.path.endswith(".json")
        return FilePlace(f"{self.path}/{_CONSOLIDATED}" if is_folder else self.path, member)


class ReferencePlace(NamedTuple):
    """References, and the path of an array or a group in them."""

    references: References
    member: str


def references_place(name: str, options: StorageOptions | None = None) -> ReferencePlace | None:
    """Where a path or a URL leads to in references; None for others. Raises FormatError for a damaged document.

    `options` are of the stores that the references lead to. URLs of documents end in `.json`, those of folders of
    Parquet files in `.parq`, `.parquet` or `.zarr`.
    """
    if is_url(name):
        return _remote_place(name, options)
    inner = Path(os.path.abspath(name))
    for folder in (inner, *inner.parents):
        if os.path.isfile(folder / _CONSOLIDATED):
            member = "" if folder == inner else inner.relative_to(folder).as_posix()
            stored = _parquet_place(os.fspath(folder), member, options)
            if stored is not None:
                return stored
    place = file_place(name)
    if place is None or not head_of(place.path, 64).lstrip().startswith(b"{"):
        return None
    with refusing(place.path, "open"):
        is_large = os.stat(place.path).st_size > _DOCUMENT_BYTES_MAX
    return None if is_large else _document_place(place, options)


def _remote_place(url: str, options: StorageOptions | None) -> ReferencePlace | None:
    root, key = url_of(url).root, url_of(url).key
    named = _REMOTE.fullmatch(key)
    if named is None:
        return None
    place = FilePlace(f"{root}/{named[1]}", named[2] or "")
    try:
        if place.path.endswith(".json"):
            return _document_place(place, options)
        return _parquet_place(place.path, place.member, options)
    except MissingFileError:
        return None


def _content(path: str) -> bytes:
    if is_url(path):
        return content_of(path, _DOCUMENT_BYTES_MAX)
    with refusing(path, "open"):
        return Path(path).read_bytes()


def _document_place(place: FilePlace, options: StorageOptions | None) -> ReferencePlace | None:
    content = _content(place.path)
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return None
    references = _references(place.path, document, options)
    return None if references is None else ReferencePlace(references, place.member)


def _references(path: str, document: JSON, options: StorageOptions | None) -> References | None:
    """The references of a document of version 0 or 1; None of another one."""
    if not isinstance(document, dict):
        return None
    entries = document.get("refs", document)
    if not isinstance(entries, dict) or not any(_leaf(key) in (*_ARRAYS, ".zgroup") for key in entries):
        return None
    if document.get("gen"):
        raise UnsupportedFormatError(f"{path}: references that are generated ('gen') are not read", {"path": path})
    templates = document.get("templates", {}) if entries is not document else {}
    arrays: dict[str, dict[str, Reference]] = {}
    documents: dict[str, JSON] = {}
    names = {_parent(key) for key in entries if _leaf(key) in _ARRAYS}
    for key, entry in entries.items():
        leaf = _leaf(key)
        if leaf.startswith(".z") or leaf == "zarr.json":
            documents[key] = _document(path, key, entry)
            continue
        # A key of a chunk may have slashes: the array is the nearest one above.
        above = _parent(key)
        while above not in names and above:
            above = _parent(above)
        arrays.setdefault(above, {})[key[len(above) :].lstrip("/")] = entry

    def filled(match: re.Match[str]) -> str:
        if not isinstance(templates, dict) or not isinstance(templates.get(match[1]), str):
            raise UnsupportedFormatError(f"{path}: no template {match[1]!r} that is plain text", {"path": path})
        return str(templates[match[1]])

    def chunks(name: str, counts: tuple[int, ...], separator: str, prefix: str) -> Iterator[ChunkReference]:
        for key, entry in arrays.get(name, {}).items():
            number = _number(key, counts, separator, prefix)
            if number is None:
                raise FormatError(f"{path}: {name}/{key} is no chunk of a grid of {counts}", {"path": path})
            if isinstance(entry, list) and entry and isinstance(entry[0], str) and "{{" in entry[0]:
                entry = [_TEMPLATE.sub(filled, entry[0]), *entry[1:]]
            yield number, entry

    return References(path, options, documents, chunks)


def _leaf(key: str) -> str:
    return key.rpartition("/")[2]


def _parent(key: str) -> str:
    return key.rpartition("/")[0]


def _document(path: str, key: str, entry: JSON) -> JSON:
    """The JSON of a member of the references."""
    try:
        return json.loads(_inline(entry)) if isinstance(entry, str) else entry
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path}: {key}: not valid JSON: {error}", {"path": path}) from None


def _inline(entry: str) -> bytes:
    """Bytes that the references themselves hold. Raises ValueError for a text that is no base64."""
    if entry.startswith("base64:"):
        try:
            return base64.b64decode(entry.removeprefix("base64:"), validate=True)
        except binascii.Error as error:
            raise ValueError(f"not valid base64: {error}") from None
    return entry.encode("utf-8")


def _decoded(path: str, member: str, number: int, entry: str) -> bytes:
    """The bytes of a chunk that the references themselves hold. Raises FormatError."""
    try:
        return _inline(entry)
    except ValueError as error:
        raise FormatError(f"{path}: chunk {number} of {member!r}: {error}", {"path": path}) from None


def _number(key: str, counts: tuple[int, ...], separator: str, prefix: str) -> int | None:
    """The number of a chunk by its key, in C order of the grid."""
    if not key.startswith(prefix):
        return None
    parts = key.removeprefix(prefix).split(separator) if counts else []
    if len(parts) != len(counts) or not all(_DIGITS.fullmatch(part) for part in parts):
        return None
    number = 0
    for part, count in zip(parts, counts, strict=True):
        if int(part) >= count:
            return None
        number = number * count + int(part)
    return number


def _parquet_place(path: str, member: str, options: StorageOptions | None) -> ReferencePlace | None:
    """References in Parquet files, `refs.0.parq` and so on in the folder of each array; None for other folders."""
    content = _content(f"{path}/{_CONSOLIDATED}")
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return None
    size = document.get("record_size") if isinstance(document, dict) else None
    documents = document.get("metadata") if isinstance(document, dict) else None
    if not isinstance(size, int) or size < 1 or not isinstance(documents, dict):
        return None

    def chunks(name: str, counts: tuple[int, ...], _separator: str, _prefix: str) -> Iterator[ChunkReference]:
        leave_room(_PARQUET_BYTES, unless="pyarrow")
        try:
            import pyarrow.parquet
        except ImportError:
            raise ImportError(f"{path}: references in Parquet need pyarrow: pip install outcore[arrow]") from None
        count = math.prod(counts)
        for first in range(0, count, size):
            part = f"{path}/{name}/refs.{first // size}.parq"
            try:
                content = pyarrow.BufferReader(_content(part))
                table = pyarrow.parquet.read_table(content, columns=list(_COLUMNS)).to_pydict()
            except MissingFileError:
                continue  # nothing of these chunks is stored
            except (pyarrow.ArrowException, ValueError) as error:
                raise FormatError(f"{part}: cannot be read: {error}", {"path": part}) from None
            columns = (table[name] for name in _COLUMNS)
            for row, (file, offset, length, raw) in enumerate(zip(*columns, strict=True)):
                if first + row < count and raw is not None:
                    yield first + row, "base64:" + base64.b64encode(raw).decode()
                elif first + row < count and file is not None:
                    yield first + row, [file, offset, length] if length else [file]

    return ReferencePlace(References(path, options, documents, chunks), member)


def open_references(place: ReferencePlace, decode: bool) -> Array | Group:
    """The array or the group that references lead to.

    Raises FormatError for metadata that are damaged, UnsupportedFormatError for files elsewhere and for codecs that
    outcore lacks, MissingFileError where a file is not there. I/O: a look at each file that is referred to.
    """
    references, member = place
    path, documents = references.path, references.documents
    begin = f"{member}/" if member else ""
    name = next((begin + leaf for leaf in _ARRAYS if _is_array(documents.get(begin + leaf))), None)
    if name is not None:
        return _array(references, member, name)
    kinds: dict[str, bool] = {}
    for key in documents:
        if key.startswith(begin) and "/" in key[len(begin) :]:
            first, _, leaf = key[len(begin) :].partition("/")
            is_array = leaf in _ARRAYS and _is_array(documents[key])
            kinds[first] = kinds.get(first, True) and not is_array
    if not kinds and member:
        raise FormatError(f"{path}: no array {member!r} in these references", {"path": path})
    attrs = _attributes(references, begin, f"{begin}zarr.json")

    def load(name: str) -> JSON:
        opened = open_references(ReferencePlace(references, begin + name), decode)
        return decoded(opened) if decode and isinstance(opened, Array) else opened

    return Group(os.path.join(path, member) if member else path, attrs, kinds, load)


def _is_array(document: JSON) -> bool:
    return isinstance(document, dict) and document.get("node_type", "array") == "array"


def _array(references: References, member: str, name: str) -> Array:
    path, document = references.path, references.documents[name]
    shape, lengths, separator, prefix = grid_of(path, name, document)
    counts = tuple(-(-of // by) for of, by in zip(shape, lengths, strict=True))
    chunks = list(references.chunks(member, counts, separator, prefix))
    inline = [(number, entry) for number, entry in chunks if isinstance(entry, str)]
    if inline and len(inline) == len(chunks):
        encoded = ((number, _decoded(path, member, number, entry)) for number, entry in inline)
        array = in_memory(references.place(member), document, (counts, lengths), encoded)
    else:
        array = listed(references.place(member), _listed(references, member, document, chunks))
    attrs = _attributes(references, f"{member}/" if member else "", name)
    dims = attrs.pop("_ARRAY_DIMENSIONS", document.get("dimension_names"))
    fill = document.get("fill_value")
    if dims is not None and fill is not None and name.endswith(".zarray"):
        attrs.setdefault("_FillValue", fill)  # of xarray: what was never written is what is missing
    return array.annotate(dims=names_of(dims, array.ndim), attrs=attrs, name=_leaf(member) or None)


def _attributes(references: References, begin: str, name: str) -> dict[str, JSON]:
    """The attributes of an array or a group: a document beside its own, or in that. Raises FormatError."""
    documents = references.documents
    attrs = documents.get(f"{begin}.zattrs")
    if attrs is None and isinstance(documents.get(name), dict):
        attrs = documents[name].get("attributes")
    if not isinstance(attrs, dict | None):
        raise FormatError(f"{references.path}: {begin}.zattrs is no object of JSON", {"path": references.path})
    return dict(attrs or {})


def _listed(references: References, member: str, document: JSON, chunks: list[ChunkReference]) -> ChunkList:
    """Chunks in files; those that the references hold are in one of scratch."""
    path, files, inline = references.path, dict[str, int](), list[bytes]()
    rows, inline_bytes = np.zeros((len(chunks), 5), np.uint64), 0
    for row, (number, entry) in enumerate(chunks):
        if isinstance(entry, str):
            inline.append(_decoded(path, member, number, entry))
            rows[row] = (number, _WHOLE, inline_bytes, len(inline[-1]), 0)
            inline_bytes += len(inline[-1])
            continue
        file, *numbers = entry if isinstance(entry, list) and entry else (None,)
        is_whole = isinstance(file, str) and not numbers
        if not isinstance(file, str) or not (is_whole or _is_range(numbers)):
            raise FormatError(f"{path}: {entry!r} is no file, first byte and length", {"path": path})
        first, length = (0, _WHOLE) if is_whole else numbers
        rows[row] = (number, files.setdefault(_located(references, file), len(files)), first, length, 0)
    names = list(files)
    if inline:
        rows[rows[:, 1] == _WHOLE, 1] = len(names)
        names.append(content_file(b"".join(inline), path))
    return ChunkList(document, names, rows)


def _is_range(numbers: list[JSON]) -> bool:
    return len(numbers) == 2 and all(type(one) is int and 0 <= one < 1 << 63 for one in numbers)


def _located(references: References, name: str) -> str:
    """The path or the URL of a file that references lead to.

    Raises UnsupportedFormatError for other schemes, and for files of this machine where the document is none.
    """
    path = references.path
    if "\0" in name:
        raise FormatError(f"{path}: {name!r} is no path of a file", {"path": path})
    scheme = _SCHEME.match(name)
    kind = None if scheme is None else scheme[1].lower()
    if scheme is not None and kind not in _LOCAL:
        kind = _OTHER_NAMES.get(str(kind), str(kind))
        if kind not in SCHEMES:
            raise UnsupportedFormatError(
                f"{path}: refers to {name}, and files of references are local, or of {', '.join(SCHEMES)}; download "
                f"those, or make references to local copies",
                {"path": path},
            )
        return mounted(f"{kind}://{name[scheme.end() :]}", references.options)
    local = name if scheme is None else name[scheme.end() :]
    if not is_url(path):
        return os.path.join(os.path.dirname(os.path.abspath(path)), local)
    if scheme is not None or local.startswith("/") or ".." in local.split("/"):
        raise UnsupportedFormatError(
            f"{path}: refers to {name}, and references at a URL lead to no files of this machine", {"path": path}
        )
    return f"{path.rpartition('/')[0]}/{local}"


__all__ = ["ReferencePlace", "open_references", "references_place"]
