"""References of kerchunk: a JSON document or a folder of Parquet files that says where chunks of Zarr arrays lie.

After the specification of fsspec's reference file system, versions 0 and 1, and kerchunk's Parquet layout. Files that
are referred to are local; paths that are not absolute count from the folder of the document.
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
from outcore._lazy.array import Array
from outcore._opening.chunk_lists import JSON, ChunkList, grid_of, in_memory, listed, names_of
from outcore._opening.conventions import decoded
from outcore._opening.group import Group
from outcore._opening.places import FilePlace, file_place, head_of
from outcore._session.session import leave_room
from outcore.errors import FormatError, UnsupportedFormatError

Reference: TypeAlias = "str | list[JSON] | Mapping[str, JSON]"  # inline bytes, or a file, first byte and length
ChunkReference: TypeAlias = "tuple[int, Reference]"  # the number of a chunk, and where it is
_DOCUMENT_BYTES_MAX = 1 << 30
_ARRAYS = (".zarray", "zarr.json")
_CONSOLIDATED, _PARQUET_BYTES = ".zmetadata", 48 << 20
_TEMPLATE = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_DIGITS = re.compile(r"[0-9]{1,19}")  # of a number of a chunk
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*)://", re.IGNORECASE)
_LOCAL = ("file", "local")


class References(NamedTuple):
    """Documents of arrays and groups by their paths, and the chunks of an array."""

    path: str
    documents: Mapping[str, JSON]
    chunks: Callable[[str, tuple[int, ...], str, str], Iterator[ChunkReference]]


class ReferencePlace(NamedTuple):
    """References, and the path of an array or a group in them."""

    references: References
    member: str


def references_place(name: str) -> ReferencePlace | None:
    """Where a path leads to in references; None for other paths. Raises FormatError for a damaged document."""
    inner = Path(os.path.abspath(name))
    for folder in (inner, *inner.parents):
        if os.path.isfile(folder / _CONSOLIDATED):
            stored = _parquet_place(folder, "" if folder == inner else inner.relative_to(folder).as_posix())
            if stored is not None:
                return stored
    place = file_place(name)
    if place is None or not head_of(place.path, 64).lstrip().startswith(b"{"):
        return None
    with refusing(place.path, "open"):
        if os.stat(place.path).st_size > _DOCUMENT_BYTES_MAX:
            return None
        try:
            document = json.loads(Path(place.path).read_bytes())
        except (ValueError, RecursionError):
            return None
    references = _references(place.path, document)
    return None if references is None else ReferencePlace(references, place.member)


def _references(path: str, document: JSON) -> References | None:
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

    return References(path, documents, chunks)


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


def _parquet_place(folder: Path, member: str) -> ReferencePlace | None:
    """References in Parquet files, `refs.0.parq` and so on in the folder of each array; None for other folders."""
    path = os.fspath(folder)
    with refusing(path, "open"):
        try:
            document = json.loads((folder / _CONSOLIDATED).read_bytes())
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
            part = folder / name / f"refs.{first // size}.parq"
            if not part.exists():
                continue
            try:
                table = pyarrow.parquet.read_table(part, columns=["path", "offset", "size", "raw"]).to_pydict()
            except (pyarrow.ArrowException, ValueError, OSError) as error:
                raise FormatError(f"{part}: cannot be read: {error}", {"path": os.fspath(part)}) from None
            columns = (table[name] for name in ("path", "offset", "size", "raw"))
            for row, (file, offset, length, raw) in enumerate(zip(*columns, strict=True)):
                if first + row < count and raw is not None:
                    yield first + row, "base64:" + base64.b64encode(raw).decode()
                elif first + row < count and file is not None:
                    yield first + row, [file, offset, length] if length else [file]

    return ReferencePlace(References(path, documents, chunks), member)


def open_references(place: ReferencePlace, decode: bool) -> Array | Group:
    """The array or the group that references lead to.

    Raises FormatError for metadata that are damaged, UnsupportedFormatError for URLs and for codecs that outcore lacks,
    MissingFileError where a file is not there. I/O: a look at each file that is referred to.
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
    inline = [number for number, entry in chunks if isinstance(entry, str)]
    if not inline:
        array = listed(FilePlace(path, member), _listed(path, document, chunks))
    elif len(inline) == len(chunks):
        encoded = ((number, _decoded(path, member, number, str(entry))) for number, entry in chunks)
        array = in_memory(FilePlace(path, member), document, (counts, lengths), encoded)
    else:
        raise UnsupportedFormatError(
            f"{path}: {member!r} has {len(inline)} of {len(chunks)} chunks inline and the others in files, which is "
            f"not read; make the references with inline_threshold=0",
            {"path": path},
        )
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


def _listed(path: str, document: Mapping[str, JSON], chunks: list[ChunkReference]) -> ChunkList:
    files: dict[str, int] = {}
    lengths: dict[str, int] = {}
    rows = np.zeros((len(chunks), 5), np.uint64)
    for row, (number, entry) in enumerate(chunks):
        file, *numbers = entry if isinstance(entry, list) and entry else (None,)
        whole = isinstance(file, str) and not numbers
        if not isinstance(file, str) or not (whole or _is_range(numbers)):
            raise FormatError(f"{path}: {entry!r} is no file, first byte and length", {"path": path})
        file = _local(path, file)
        if whole and file not in lengths:
            with refusing(file, "open"):
                lengths[file] = os.stat(file).st_size
        first, length = (0, lengths[file]) if whole else numbers
        rows[row] = (number, files.setdefault(file, len(files)), first, length, 0)
    return ChunkList(document, list(files), rows)


def _is_range(numbers: list[JSON]) -> bool:
    return len(numbers) == 2 and all(type(one) is int and 0 <= one < 1 << 63 for one in numbers)


def _local(path: str, url: str) -> str:
    """The path of a file that references lead to. Raises UnsupportedFormatError for files elsewhere."""
    if "\0" in url:
        raise FormatError(f"{path}: {url!r} is no path of a file", {"path": path})
    scheme = _SCHEME.match(url)
    if scheme is not None and scheme[1].lower() not in _LOCAL:
        raise UnsupportedFormatError(
            f"{path}: refers to {url}, and references are read where their files are local; download those, or make "
            f"references to local copies",
            {"path": path},
        )
    local = url if scheme is None else url[scheme.end() :]
    return os.path.join(os.path.dirname(os.path.abspath(path)), local)


__all__ = ["ReferencePlace", "open_references", "references_place"]
