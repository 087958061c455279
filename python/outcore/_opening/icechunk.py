"""Repositories of Icechunk: their groups and arrays, with chunks in files, in manifests, or in files of others.

After Icechunk's specification (icechunk.io), versions 1 and 2. A reference (a branch, a tag) names a snapshot, which
has the documents of all nodes as Zarr 3 has them; manifests list the chunks. Each of these files has a header, and a
FlatBuffer that Zstandard packed.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple
from urllib.parse import unquote

import numpy as np

from outcore._base.system_errors import refusing
from outcore._base.urls import is_url, url_of
from outcore._lazy.array import Array
from outcore._lazy.typed import Typed
from outcore._opening.chunk_lists import JSON, ChunkList, GridLengths, grid_of, in_memory, listed, names_of
from outcore._opening.content_files import content_file
from outcore._opening.conventions import decoded
from outcore._opening.flatbuffer import Flags, FlatBuffer, Tables
from outcore._opening.group import Group
from outcore._opening.ice_chunks import ChunkPlaces, InlineChunks
from outcore._opening.ice_files import IceFiles, ids_of
from outcore._opening.places import FilePlace
from outcore.errors import ArgumentError, FormatError

_SNAPSHOT, _REPOSITORY = 1, 6  # types of files, in their headers
_ID = re.compile(r"[0-9A-HJKMNP-TV-Z]{20}")
_MAIN = "main"
# Characters of names of references that names of files have as they are, beside letters and digits.
_PLAIN = " !$&'()+,-./:;=@_"
_TEXT_BYTES_MAX, _DOCUMENT_BYTES_MAX = 1 << 16, 64 << 20
_MEMORY_CHUNKS_MAX, _MEMORY_BYTES_MAX, _ELEMENT_BYTES_MAX = 4096, 64 << 20, 16
_NAMES_MAX = 10  # of branches, tags or arrays in a refusal
_IS_ARRAY, _IS_GROUP = 1, 2  # types of a node's data


class RepositoryPlace(NamedTuple):
    """A repository, and the path of an array or a group in it."""

    files: IceFiles
    member: str


class Snapshot(NamedTuple):
    """The nodes of a version, by their paths; of each its row."""

    files: IceFiles
    path: str
    nodes: Tables
    rows: Mapping[str, int]
    is_array: Flags


def repository_place(name: str) -> RepositoryPlace | None:
    """The repository that a path or a URL leads to or into; None where there is none. I/O: a look, at a URL a request,
    for each folder above."""
    name = name.rstrip("/") if is_url(name) else os.path.abspath(name)
    top = url_of(name).root if is_url(name) else ""
    parts = name.removeprefix(top).strip("/").split("/")
    for count in range(len(parts), -1, -1):
        files = IceFiles("/".join((top, *parts[:count])))
        if files.root and files.is_repository():
            return RepositoryPlace(files, "/".join(parts[count:]))
    return None


def open_repository(place: RepositoryPlace, version: str | None, decode: bool) -> Array | Typed | Group:
    """The array or the group at a place, of a version: the name of a branch or a tag, or the id of a snapshot.

    Raises ArgumentError for a version that the repository has not, FormatError for damaged files. I/O: the snapshot;
    of an array the manifests with its chunks.
    """
    snapshot = _snapshot(place.files, _snapshot_id(place.files, version))
    return _member(snapshot, place.member, decode)


def _snapshot_id(files: IceFiles, version: str | None) -> str:
    name = _MAIN if version is None else version
    known = _in_repository_file(files, name) if files.exists("repo") else _in_reference_files(files, name)
    ids = set(known.values())
    if len(ids) == 1:
        return ids.pop()
    if ids:
        both = ", ".join(f"the {kind} is {id}" for kind, id in known.items())
        raise ArgumentError(f"open: {files.root}: {name!r} is a branch and a tag; pass an id of a snapshot: {both}")
    if _ID.fullmatch(name) and files.exists(f"snapshots/{name}"):
        return name
    raise ArgumentError(
        f"open: {files.root}: this Icechunk repository has no branch, tag or snapshot {name!r}{_others(files)}"
    )


def _others(files: IceFiles) -> str:
    """Branches and tags for a refusal: those of version 2, and of version 1 on disks; nothing of it in a bucket."""
    names: list[str] = []
    if files.exists("repo"):
        buffer = files.buffer("repo", _REPOSITORY)
        for field in (2, 1):
            names += _texts(buffer, buffer.root().members(field), 0)
    elif not is_url(files.root):
        with refusing(files.root, "list"):
            folders = sorted(os.listdir(f"{files.root}/refs"))
        for folder in folders:
            kind, _, name = folder.partition(".")
            if kind in ("branch", "tag") and not files.exists(f"refs/{folder}/ref.json.deleted"):
                names.append(unquote(name))
    said = ", ".join(names[:_NAMES_MAX]) + (", …" if len(names) > _NAMES_MAX else "")
    return f"; branches and tags are {said}" if said else ""


def _in_repository_file(files: IceFiles, name: str) -> dict[str, str]:
    """Snapshots of references of a name, by their kind: of version 2, in one file for all."""
    buffer = files.buffer("repo", _REPOSITORY)
    root = buffer.root()
    snapshots = root.members(4)
    ids = ids_of(snapshots.structs(0, 12))
    known: dict[str, str] = {}
    for kind, field in (("tag", 1), ("branch", 2)):
        references = root.members(field)
        numbers = references.numbers(1, 4)
        for text, number in zip(_texts(buffer, references, 0), numbers.tolist(), strict=True):
            if text == name and number >= len(ids):
                raise buffer.refusal(0, f"the {kind} {name!r} is snapshot {number} of {len(ids)}")
            if text == name:
                known[kind] = ids[number]
    return known


def _in_reference_files(files: IceFiles, name: str) -> dict[str, str]:
    """Snapshots of references of a name, by their kind: of version 1, in a file each."""
    known: dict[str, str] = {}
    if not name or {"/", "\0"} & set(name):
        return known
    plain = "".join(
        letter if letter.isascii() and (letter.isalnum() or letter in _PLAIN) else _as_percent(letter)
        for letter in name
    )
    for kind in ("tag", "branch"):
        path = f"refs/{kind}.{plain}/ref.json"
        if not files.exists(path) or files.exists(f"{path}.deleted"):
            continue
        try:
            document = json.loads(files.content(path))
        except (ValueError, RecursionError):
            document = None
        id = document.get("snapshot") if isinstance(document, dict) else None
        if not isinstance(id, str) or not _ID.fullmatch(id):
            whole = f"{files.root}/{path}"
            raise FormatError(f"{whole}: is no document that names a snapshot", {"path": whole})
        known[kind] = id
    return known


def _as_percent(letter: str) -> str:
    return "".join(f"%{byte:02X}" for byte in letter.encode("utf-8", "surrogatepass"))


def _texts(buffer: FlatBuffer, tables: Tables, field: int) -> list[str]:
    starts, counts = tables.vectors(field, 1, required=True)
    buffer.check(counts > _TEXT_BYTES_MAX, starts, f"a name of more than {_TEXT_BYTES_MAX} bytes")
    buffer.check_sum(counts, 1, starts)
    return [buffer.text(start, count) for start, count in zip(starts.tolist(), counts.tolist(), strict=True)]


def _snapshot(files: IceFiles, id: str) -> Snapshot:
    path = f"snapshots/{id}"
    buffer = files.buffer(path, _SNAPSHOT)
    nodes = buffer.root().members(2)
    rows = {name.strip("/"): row for row, name in enumerate(_texts(buffer, nodes, 1))}
    kinds = nodes.numbers(3, 1)
    buffer.check((kinds != _IS_ARRAY) & (kinds != _IS_GROUP), kinds, "a node that is no array and no group")
    return Snapshot(files, f"{files.root}/{path}", nodes, rows, kinds == _IS_ARRAY)


def _member(snapshot: Snapshot, member: str, decode: bool) -> Array | Typed | Group:
    files, rows = snapshot.files, snapshot.rows
    row = rows.get(member)
    if row is not None and snapshot.is_array[row]:
        opened = _array(snapshot, member, row)
        return decoded(opened) if decode else opened
    begin = f"{member}/" if member else ""
    kinds: dict[str, bool] = {}
    for name, at in rows.items():
        if name.startswith(begin) and name != member:
            first, _, further = name[len(begin) :].partition("/")
            kinds[first] = kinds.get(first, True) and (bool(further) or not snapshot.is_array[at])
    if row is None and not kinds and member:
        arrays = [name for name, at in rows.items() if snapshot.is_array[at]]
        said = ", ".join(arrays[:_NAMES_MAX]) + (", …" if len(arrays) > _NAMES_MAX else "")
        raise FormatError(
            f"{snapshot.path}: no array or group {member!r} in this snapshot; arrays are {said or 'none'}",
            {"path": snapshot.path},
        )
    attrs = {} if row is None else _document(snapshot, member, row)[1]
    return Group(
        f"{files.root}/{member}" if member else files.root,
        attrs,
        kinds,
        lambda name: _member(snapshot, begin + name, decode),
    )


def _document(snapshot: Snapshot, member: str, row: int) -> tuple[dict[str, JSON], dict[str, JSON]]:
    """The document of a node, and its attributes. Raises FormatError for other than objects of JSON."""
    starts, counts = snapshot.nodes[row : row + 1].vectors(2, 1, required=True)
    buffer = snapshot.nodes.buffer
    start, count = int(starts[0]), int(counts[0])
    try:
        document = json.loads(buffer.content[start : start + min(count, _DOCUMENT_BYTES_MAX)])
    except (ValueError, RecursionError) as error:
        raise buffer.refusal(start, f"the document of {member!r} is not valid JSON: {error}") from None
    attrs = document.get("attributes") if isinstance(document, dict) else None
    if not isinstance(document, dict) or not isinstance(attrs, dict | None):
        raise buffer.refusal(start, f"the document or the attributes of {member!r} are no object of JSON")
    return document, dict(attrs or {})


def _array(snapshot: Snapshot, member: str, row: int) -> Array:
    document, attrs = _document(snapshot, member, row)
    place = FilePlace(snapshot.path, member)
    shape, lengths, _, _ = grid_of(snapshot.path, member, document)
    counts = tuple(-(-of // by) for of, by in zip(shape, lengths, strict=True))
    if math.prod(counts) >= 1 << 63:
        raise FormatError(f"{snapshot.path}: {member!r} has a grid of {counts} chunks", {"path": snapshot.path})
    chunks = _chunks(snapshot, row, counts)
    inline = sum(len(part.numbers) for part in chunks.inline)
    if inline and not chunks.files and _is_small(shape, inline):
        array = in_memory(place, document, (counts, lengths), _contents(chunks.inline))
    else:
        array = listed(place, _chunk_list(chunks, document))
    dims = names_of(document.get("dimension_names"), array.ndim)
    return array.annotate(dims=dims, attrs=attrs, name=member.rpartition("/")[2] or None)


def _is_small(shape: GridLengths, chunks: int) -> bool:
    """Whether an array goes into memory, where values tell it apart in every process, and files in scratch do not."""
    return chunks <= _MEMORY_CHUNKS_MAX and math.prod(shape) * _ELEMENT_BYTES_MAX <= _MEMORY_BYTES_MAX


def _chunks(snapshot: Snapshot, row: int, counts: GridLengths) -> ChunkPlaces:
    """Places of the chunks of an array, by its manifests."""
    node = snapshot.nodes[row : row + 1]
    chunks = ChunkPlaces(snapshot.files, counts)
    manifests = node.children(4).members(2)
    starts, axes = manifests.vectors(1, 8, align=4, required=True)
    manifests.buffer.check((axes != len(counts)) & (axes != 0), starts, f"extents that are not of {len(counts)} axes")
    for id, start, count in zip(ids_of(manifests.structs(0, 12)), starts.tolist(), axes.tolist(), strict=True):
        extents = manifests.buffer.read(start + 4 * np.arange(2 * count), 4).reshape(count, 2)
        chunks.add_manifest(id, node.structs(0, 8).tobytes(), extents)
    return chunks


def _contents(inline: Iterable[InlineChunks]) -> Iterator[tuple[int, bytes]]:
    for part in inline:
        for number, start, count in zip(*(column.tolist() for column in part[1:]), strict=True):
            yield number, part.buffer.content[start : start + count]


def _chunk_list(chunks: ChunkPlaces, document: JSON) -> ChunkList:
    files, rows = list(chunks.files), list(chunks.rows)
    for part in chunks.inline:
        columns = np.zeros((len(part.numbers), 5), np.uint64)
        columns[:, 0], columns[:, 1], columns[:, 2], columns[:, 3] = part.numbers, len(files), part.starts, part.counts
        files.append(content_file(part.buffer.content, part.buffer.path))
        rows.append(columns)
    return ChunkList(document, files, np.concatenate(rows) if rows else np.zeros((0, 5), np.uint64))


__all__ = ["RepositoryPlace", "open_repository", "repository_place"]
