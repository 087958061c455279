"""Chunks of an array in an Icechunk repository, by its manifests."""

from __future__ import annotations

import os
from typing import NamedTuple
from urllib.parse import unquote
from weakref import WeakValueDictionary

import numpy as np

from outcore._base.system_errors import refusing
from outcore._base.urls import is_url, url_of
from outcore._opening.chunk_lists import ChunkRows, GridLengths
from outcore._opening.flatbuffer import Flags, FlatBuffer, Places, Tables
from outcore._opening.ice_files import IceFiles, ids_of
from outcore.errors import FormatError, SourceChangedError, UnsupportedFormatError

_MANIFEST = 2  # the type of these files, in their headers
_INDEX, _INLINE, _OFFSET, _LENGTH, _CHUNK_ID, _LOCATION, _MODIFIED, _PACKED_LOCATION = 0, 1, 2, 3, 4, 5, 7, 8
_ARRAYS, _DICTIONARY = 1, 2
_LOCATION_BYTES_MAX = 4096
_FILE = "file://"


class InlineChunks(NamedTuple):
    """Chunks in a manifest: their numbers, first bytes in its content, and bytes."""

    buffer: FlatBuffer
    numbers: Places
    starts: Places
    counts: Places


class ChunkPlaces:
    """Chunks of an array, as they are collected from manifests: those in files by rows, and those in manifests."""

    def __init__(self, repository: IceFiles, counts: GridLengths) -> None:
        self._repository, self._counts = repository, counts
        self.files: list[str] = []
        self.rows: list[ChunkRows] = []
        self.inline: list[InlineChunks] = []
        self._manifests = WeakValueDictionary[str, FlatBuffer]()  # those in use: a manifest may be named often
        self._known = dict[str, int]()  # chunks of each

    def add_manifest(self, id: str, node: bytes, extents: Places) -> None:
        """Takes the chunks of a node, from one index up to another along each axis; of all axes where there are none.

        Chunks outside of the grid, which a shrunken array may still have, are left out. Raises FormatError.
        """
        buffer = self._manifests.get(id) or self._repository.buffer(f"manifests/{id}", _MANIFEST)
        self._manifests[id] = buffer
        arrays = buffer.root().members(_ARRAYS)
        is_node = (arrays.structs(0, 8) == np.frombuffer(node, np.uint8)).all(axis=1)
        starts, counts = arrays[is_node].vectors(1, 4, required=True)
        buffer.check_sum(counts, 4, starts)
        for start, count in zip(starts.tolist(), counts.tolist(), strict=True):
            chunks = buffer.tables(start, count)
            numbers, is_within = self._numbers(chunks, extents)
            self._known[id] = self._known.get(id, 0) + int(is_within.sum())
            if 4 * self._known[id] > buffer.size:
                raise buffer.refusal(start, "chunks that are listed twice")
            self._add(chunks[is_within], numbers[is_within], buffer.root())

    def _numbers(self, chunks: Tables, extents: Places) -> tuple[Places, Flags]:
        """Numbers of chunks in C order of the grid, and which of them are in it and within extents."""
        starts, lengths = chunks.vectors(_INDEX, 4, required=True)
        axes = len(self._counts)
        chunks.buffer.check(lengths != axes, starts, f"an index of a chunk that has not {axes} axes")
        numbers, is_within = np.zeros(len(chunks), np.int64), np.ones(len(chunks), np.bool_)
        for axis, count in enumerate(self._counts):
            index = chunks.buffer.read(starts + 4 * axis, 4)
            numbers = numbers * count + index
            is_within &= index < count
            if len(extents):
                is_within &= (index >= extents[axis, 0]) & (index < extents[axis, 1])
        return numbers, is_within

    def _add(self, chunks: Tables, numbers: Places, manifest: Tables) -> None:
        buffer = chunks.buffer
        ids, (inline, inline_counts) = chunks.places(_CHUNK_ID, 12), chunks.vectors(_INLINE, 1)
        is_inline, is_native = inline > 0, ids > 0
        is_virtual = (chunks.places(_LOCATION, 4) > 0) | (chunks.places(_PACKED_LOCATION, 4) > 0)
        is_one = is_inline.astype(np.int8) + is_native + is_virtual == 1
        buffer.check(~is_one, chunks.starts, "a chunk that is not in one place")
        files = np.zeros(len(chunks), np.int64)
        if is_inline.any():
            self.inline.append(InlineChunks(buffer, numbers[is_inline], inline[is_inline], inline_counts[is_inline]))
        if is_native.any():
            folder = f"{self._repository.root}/chunks"
            files[is_native] = np.arange(np.sum(is_native)) + len(self.files)
            self.files += [f"{folder}/{id}" for id in ids_of(buffer.gather(ids[is_native], 12))]
        if is_virtual.any():
            files[is_virtual] = self._virtual_files(chunks[is_virtual], manifest)
        columns = (numbers, files, chunks.numbers(_OFFSET, 8), chunks.numbers(_LENGTH, 8), np.zeros_like(numbers))
        self.rows.append(np.stack(columns, axis=1)[~is_inline].astype(np.uint64))

    def _virtual_files(self, chunks: Tables, manifest: Tables) -> Places:
        """The numbers of files of others that have chunks. Raises SourceChangedError for one that changed since."""
        starts, counts = chunks.vectors(_LOCATION, 1)
        packed_starts, packed_counts = chunks.vectors(_PACKED_LOCATION, 1)
        is_packed = starts == 0
        starts, counts = np.where(is_packed, packed_starts, starts), np.where(is_packed, packed_counts, counts)
        chunks.buffer.check(counts > _LOCATION_BYTES_MAX, starts, "a location that is too long")
        content, known = chunks.buffer.content, dict[tuple[bytes, bool], int]()
        places = zip(starts.tolist(), (starts + counts).tolist(), is_packed.tolist(), strict=True)
        numbers = np.fromiter(
            (known.setdefault((content[start:end], packed), len(known)) for start, end, packed in places), np.int64
        )
        modified = np.full(len(known), np.iinfo(np.int64).max)
        seconds = chunks.numbers(_MODIFIED, 4)
        np.minimum.at(modified, numbers[seconds > 0], seconds[seconds > 0])
        begin = len(self.files)
        for (location, packed), last in zip(known, modified.tolist(), strict=True):
            text = _unpacked_location(manifest, location) if packed else location
            self.files.append(self._local(chunks.buffer.path, text, last))
        return numbers + begin

    def _local(self, path: str, location: bytes, last: int) -> str:
        """The path of a file of others that was changed at `last` at the latest, in seconds since 1970."""
        url = location.decode("utf-8", "replace")
        root = self._repository.root
        if is_url(root) and url.startswith(f"{url_of(root).root}/"):
            return url
        if is_url(root) or not url.startswith(f"{_FILE}/"):
            raise UnsupportedFormatError(
                f"{path}: has virtual chunks in {url}, and those are read from files of this machine alone, or from "
                f"the bucket of the repository",
                {"path": path},
            )
        name = unquote(url.removeprefix(_FILE))
        if "\0" in name:
            raise FormatError(f"{path}: {url!r} is no path of a file", {"path": path})
        with refusing(name, "open"):
            if os.stat(name).st_mtime >= last + 1:
                raise SourceChangedError(f"{name}: changed since {path} was written, which has chunks there")
        return name


def _unpacked_location(manifest: Tables, packed: bytes) -> bytes:
    """A location that Zstandard packed, with the dictionary of its manifest. Raises FormatError."""
    path = manifest.buffer.path
    try:
        import zstandard
    except ImportError:
        raise UnsupportedFormatError(
            f"{path}: locations of virtual chunks are packed with a dictionary, which needs zstandard: pip install "
            f"zstandard",
            {"path": path},
        ) from None
    (start,), (count,) = manifest.vectors(_DICTIONARY, 1)
    dictionary = zstandard.ZstdCompressionDict(manifest.buffer.content[start : start + count])
    try:
        if zstandard.frame_content_size(packed) > _LOCATION_BYTES_MAX:  # which is allocated, whatever the maximum
            raise FormatError(f"{path}: a location of virtual chunks is too long", {"path": path})
        frames = zstandard.ZstdDecompressor(dict_data=dictionary if count else None)
        return bytes(frames.decompress(packed, max_output_size=_LOCATION_BYTES_MAX))
    except zstandard.ZstdError as error:
        raise FormatError(f"{path}: a location of virtual chunks cannot be unpacked: {error}", {"path": path}) from None


__all__ = ["ChunkPlaces", "InlineChunks"]
