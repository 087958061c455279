"""HDF5 and NetCDF-4 as outputs: h5py makes the file, the engine the elements, in a folder beside the name.

Data sets without chunks get their room when the file is made, and the engine writes to their places. Chunks are staged
as Zarr, compressed in the threads of the engine, and put into the file as they are when all are there. The file takes
its name when it is complete and durable.
"""

from __future__ import annotations

import itertools
import json
import math
import mmap
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from outcore import _core
from outcore._base import files
from outcore._base.system_errors import naming, refusing
from outcore._base.types import DType, JSONObject, NDArray
from outcore._lazy.annotated import Annotations, fill_from
from outcore._lazy.array import Array
from outcore._lazy.hooks import above
from outcore._lazy.node import node
from outcore._run.chunk_shapes import ChunkShapes, ShardShape, chunk_lengths, shapes_by_path
from outcore._run.codecs import Compression, by_target, codecs_of
from outcore._run.foresight import for_all
from outcore._run.group_files import encoded, is_group
from outcore._run.running import plan_and_run
from outcore._run.typed_files import PartialOutput, output, publish
from outcore._session.record import Outcome
from outcore._session.session import current, leave_room
from outcore._show.explanation import Explanation
from outcore.errors import ArgumentError, DTypeError, OutcoreError, ShapeError, UnsupportedFormatError

_ENDINGS = (".h5", ".hdf5", ".nc", ".nc4")
_ELSEWHERE = (".npy", ".zarr", ".ocs")
_PAGE, _GZIP_LEVEL = 4096, 5
_CHUNK_BYTES_MAX = (1 << 32) - 1
# Memory that h5py takes when it is loaded.
_LOADED_BYTES = 24 << 20
# How NetCDF-4 names the scale of an axis that has no coordinates.
_NO_COORDINATES = "This is a netCDF dimension but not a netCDF variable."
_OF_SCALES = {"CLASS", "NAME", "DIMENSION_LIST", "REFERENCE_LIST", "DIMENSION_LABELS"}
_OF_SCALES |= {"_Netcdf4Dimid", "_Netcdf4Coordinates", "_NCProperties"}
Request: TypeAlias = "tuple[list[_core.Expr], list[_core.Target | None]]"
H5Object: TypeAlias = Any  # an object of h5py
Items: TypeAlias = "Mapping[Any, Any]"  # arrays and groups by path


class HDF5Place(NamedTuple):
    """A file, and a path within that is empty for all of it."""

    file: str
    member: str


def hdf5_place(path: object) -> HDF5Place | None:
    """The place that a target names in an HDF5 file; None for targets of other formats."""
    if isinstance(path, tuple):
        return None
    name = os.fsdecode(path)  # type: ignore[arg-type]  # a path
    parts = name.split("/")
    for count in range(1, len(parts) + 1):
        file = "/".join(parts[:count])
        if file.lower().endswith(_ENDINGS) and not os.path.isdir(file):
            member = "/".join(filter(None, parts[count:]))
            return None if member.endswith(_ELSEWHERE) else HDF5Place(file, member)
    return None


class _Dataset:
    """An array, where it goes, and how."""

    def __init__(self, name: str, place: str, array: Array) -> None:
        self.name, self.place, self.array = name, place, array
        self.filters: list[JSONObject] = []
        self.chunks: list[int] | None = None
        self.staged = ""

    @property
    def is_chunked(self) -> bool:
        return bool(self.filters or self.chunks) and self.array.ndim > 0 and self.array.size > 0

    @property
    def chunk_bytes_max(self) -> int:
        """The bytes of a chunk of the lengths that are asked for, without those of the planner."""
        return math.prod(map(min, self.chunks or (), self.array.shape)) * np.dtype(self.array.dtype).itemsize

    def target(self, part: PartialOutput, number: int, offset: int | None) -> _core.Target:
        """The target of the elements, beside the file."""
        if offset is not None:
            self.staged = f"{part.prefix}{number}"
            return {"path": self.staged, "overwrite": False, "chunks": None, "part": (part.new, offset)}
        self.staged = f"{part.prefix}{number}.zarr"
        target: _core.Target = {"path": self.staged, "overwrite": False, "chunks": self.chunks}
        if self.filters:
            target["codecs"] = json.dumps(self.filters)
        return target


class _File:
    """A file that is written, with its groups and data sets by their places."""

    def __init__(self, path: str, part: PartialOutput) -> None:
        self.path, self.part = path, part
        self.groups: dict[str, Annotations] = {"": {}}
        self.datasets: list[_Dataset] = []

    def add(self, place: str, item: Any) -> None:
        """Lists an array, or all members of a group. Raises DTypeError for text, ArgumentError for two of one name."""
        name = f"{self.path}/{place}" if place else self.path
        if any(part in ("", ".", "..") or "\0" in part for part in place.split("/") if place):
            raise UnsupportedFormatError(f"store: {name!r}: '', '.', '..' and names with zero bytes are none in HDF5")
        if is_group(item):
            self.groups[place] = item.attrs
            for member, value in item.items():
                self.add(f"{place}/{member}" if place else member, value)
            return
        if not place:
            raise UnsupportedFormatError(
                f"store: {name} is a file of named arrays; store to {name}/x, or store a group"
            )
        if isinstance(item, above.SparseMatrix):
            raise UnsupportedFormatError(f"store: {name} is a sparse matrix, and these are stored as .ocs")
        others = [f"{dataset.place}/" for dataset in self.datasets]
        if any(other.startswith(f"{place}/") or place.startswith(other) for other in others):
            raise ArgumentError(f"store: {name} is named twice, or as an array and as a group of others")
        array = Array(node(encoded(item))) if not isinstance(item, Array) else item
        self.datasets.append(_Dataset(name, place, array))

    def check(self) -> None:
        """Refuses what HDF5 does not keep: makes all but the elements, in memory. Raises DTypeError, StorageError."""
        import h5py

        unused = os.urandom(16).hex()  # files that are open at once have different names
        with refusing(self.path, "describe"), h5py.File(unused, "w", driver="core", backing_store=False) as file:
            for place in self.groups:
                file.require_group(f"/{place}")
            for dataset in self.datasets:
                file.create_dataset(dataset.place, shape=dataset.array.shape, dtype=dataset.array.dtype)
            self._describe(file)

    def begin(self) -> list[int | None]:
        """Makes the file with its groups, and with room for arrays without chunks; gives the offsets of that room."""
        import h5py

        offsets: list[int | None] = []
        with (
            refusing(self.path, "create"),
            h5py.File(self.part.new, "x", alignment_threshold=_PAGE, alignment_interval=_PAGE, locking=False) as file,
        ):
            for place in self.groups:
                file.require_group(f"/{place}")
            for dataset in self.datasets:
                offsets.append(None if dataset.is_chunked else _room(file, dataset))
        return offsets

    def finish(self) -> int:
        """Puts chunks, attributes and scales into the file; gives the bytes of chunks that were put."""
        import h5py

        put = 0
        with refusing(self.path, "write"), h5py.File(self.part.new, "r+", locking=False) as file:
            for dataset in self.datasets:
                if dataset.is_chunked:
                    put += _put_chunks(file, dataset)
            self._describe(file)
        with refusing(self.path, "sync"):
            files.sync(self.part.new)
        return put

    def _describe(self, file: H5Object) -> None:
        """Scales and attributes of all groups and data sets."""
        _add_scales(file, self.datasets)
        for place, attrs in self.groups.items():
            _annotate(file[f"/{place}"], attrs, f"{self.path}/{place}")
        for dataset in self.datasets:
            _annotate(file[dataset.place], dataset.array.attrs, dataset.name)


def _room(file: H5Object, dataset: _Dataset) -> int | None:
    """The offset of a data set in one piece, which is made; None without elements."""
    import h5py

    array = dataset.array
    kind = h5py.h5t.py_create(np.dtype(array.dtype), logical=True)
    creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    creation.set_layout(h5py.h5d.CONTIGUOUS)
    creation.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    creation.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    links = h5py.h5p.create(h5py.h5p.LINK_CREATE)
    links.set_create_intermediate_group(True)
    space = h5py.h5s.create_simple(array.shape) if array.ndim else h5py.h5s.create(h5py.h5s.SCALAR)
    made = h5py.h5d.create(file.id, dataset.place.encode(), kind, space, creation, links)
    offset: int | None = made.get_offset() if array.size else None
    return offset


def _put_chunks(file: H5Object, dataset: _Dataset) -> int:
    """Makes a data set of staged chunks and puts them in; each goes from the folder when it is there."""
    array, put = dataset.array, 0
    with open(os.path.join(dataset.staged, "zarr.json"), "rb") as document:
        chunk = json.load(document)["chunk_grid"]["configuration"]["chunk_shape"]
    made = file.create_dataset(
        dataset.place, shape=array.shape, dtype=array.dtype, chunks=tuple(chunk), **_filter_options(dataset.filters)
    )
    counts = [-(-length // along) for length, along in zip(array.shape, chunk, strict=True)]
    for index in itertools.product(*map(range, counts)):
        path = os.path.join(dataset.staged, "c", *map(str, index))
        place = tuple(at * along for at, along in zip(index, chunk, strict=True))
        # Pages of a mapping go when memory is short, whatever the length of a chunk is.
        with open(path, "rb") as stored, mmap.mmap(stored.fileno(), 0, access=mmap.ACCESS_READ) as content:
            made.id.write_direct_chunk(place, content)
            put += len(content)
        files.remove(path)
    return put


def _filter_options(filters: Sequence[JSONObject]) -> JSONObject:
    options: JSONObject = {"track_times": False}
    for codec in filters:
        if codec["name"] == "numcodecs.shuffle":
            options["shuffle"] = True
        else:
            options |= {"compression": "gzip", "compression_opts": codec["configuration"]["level"]}
    return options


def _filters(name: str, compression: Compression, array: Array) -> list[JSONObject]:
    """Filters of a data set, as codecs of its staged chunks. Raises ArgumentError for others than shuffle and gzip."""
    filters = codecs_of(compression, np.dtype(array.dtype))
    names = [codec["name"] for codec in filters]
    if names not in ([], ["gzip"], ["numcodecs.shuffle"], ["numcodecs.shuffle", "gzip"]):
        raise ArgumentError(
            f"store: {name} in HDF5 is compressed by 'gzip', ('gzip', 4) or ['shuffle', 'gzip'], not by {compression!r}"
        )
    size = np.dtype(array.dtype).itemsize
    made = []
    for codec in filters:
        settings = codec.get("configuration", {})
        if codec["name"] == "gzip":  # deflate stands in HDF5 without the header of a gzip file
            made.append({"name": "numcodecs.zlib", "configuration": {"level": _GZIP_LEVEL, **settings}})
            continue
        if settings.get("elementsize", size) != size:
            raise ArgumentError(f"store: {name} in HDF5 is shuffled by its elements of {size} bytes, not by {codec!r}")
        made.append({"name": "numcodecs.shuffle", "configuration": {"elementsize": size}})
    return made


def _add_scales(file: H5Object, datasets: Iterable[_Dataset]) -> None:
    """Names of axes as dimension scales, as NetCDF-4 has them: a coordinate of the name, or a scale without values.

    A scale stands in the group of the first array that has it, and serves those below it.
    """
    known: dict[tuple[str, str], H5Object] = {}
    for dataset in sorted(datasets, key=lambda dataset: dataset.place.count("/")):
        group, _, last = dataset.place.rpartition("/")
        for axis, dim in enumerate(dataset.array.dims):
            if dim is None or "/" in dim:
                continue
            length = dataset.array.shape[axis]
            scale = _scale_above(known, group, dim, length) or _new_scale(file, group, dim, length)
            if scale is None:
                continue
            if (group, dim) not in known and scale.parent.name.strip("/") == group:
                scale.attrs["_Netcdf4Dimid"] = np.int32(len(known))
                known[group, dim] = scale
            if not (last == dim and scale.name == f"/{dataset.place}"):
                file[dataset.place].dims[axis].attach_scale(scale)


def _scale_above(known: Mapping[tuple[str, str], H5Object], group: str, dim: str, length: int) -> H5Object:
    parts = group.split("/") if group else []
    for count in range(len(parts), -1, -1):
        scale = known.get(("/".join(parts[:count]), dim))
        if scale is not None:
            return scale if scale.shape == (length,) else None
    return None


def _new_scale(file: H5Object, group: str, dim: str, length: int) -> H5Object:
    place = f"{group}/{dim}" if group else dim
    if place not in file:
        scale = file.create_dataset(place, shape=(length,), dtype=">f4", track_times=False)
        scale.make_scale(f"{_NO_COORDINATES}{length:10d}")
        return scale
    scale = file[place]
    if getattr(scale, "shape", None) != (length,):
        return None
    scale.make_scale(dim)
    return scale


def _annotate(item: H5Object, attrs: Annotations, name: str) -> None:
    """Annotations as HDF5 has them. Raises DTypeError for what it has nothing for."""
    for key, value in attrs.items():

        def refused(reason: object, key: str = key, value: object = value) -> DTypeError:
            said = re.sub("(?s)^(.{200}).+", r"\1…", repr(value))
            return DTypeError(f"store: attribute {key!r} of {name}: {said} is nothing that HDF5 keeps: {reason}")

        if key in _OF_SCALES:
            raise refused("names of axes and NetCDF-4 have this attribute")
        try:
            if key == "_FillValue" and hasattr(item, "dtype"):
                value = _fill_value(value, item.dtype)
            if isinstance(value, (list, tuple)) and value and all(isinstance(part, str) for part in value):
                value = np.array(value, dtype=object)
            item.attrs[key] = value
        except OSError as error:
            if error.errno is not None:
                raise
            raise refused(error) from None
        except (OverflowError, RuntimeError, TypeError, ValueError) as error:
            raise refused(error) from None


def _fill_value(value: object, dtype: DType) -> NDArray:
    """A fill value as NetCDF-4 has it: of the type of the elements. Raises ValueError where it is none of those."""
    number = fill_from(value) if isinstance(value, str) and dtype.kind == "f" else None
    fill = np.asarray(value if number is None else number)
    with np.errstate(all="ignore"):
        cast = fill.astype(dtype)
    if fill.dtype.kind in "biufc" and dtype.kind in "biu" and not np.array_equal(cast, fill):
        raise ValueError(f"elements are {dtype}")
    return cast


def _collected(targets: Items, overwrite: bool, is_planned: bool, stack: ExitStack) -> list[_File]:
    """The files of targets. Raises UnsupportedFormatError for targets of other formats."""
    leave_room(_LOADED_BYTES, unless="h5py")
    try:
        import h5py  # noqa: F401
    except ImportError:
        raise UnsupportedFormatError("store: HDF5 is written through h5py: pip install h5py") from None
    opened: dict[str, _File] = {}  # by their places without links, of which there may be several names
    for path, item in targets.items():
        place = hdf5_place(path)
        if place is None:
            raise UnsupportedFormatError(f"store: {path} beside HDF5 files; store twice")
        if place.member and os.path.lexists(place.file):
            raise UnsupportedFormatError(
                f"store: {place.file} is there, and HDF5 files are written whole; store all members in one call, to "
                "another file; a group replaces the file, with overwrite=True"
            )
        target = os.path.realpath(place.file)
        if target not in opened:
            if not is_planned:
                with suppress(OutcoreError):  # what a killed process left
                    _core.clean(os.path.dirname(target))
            opened[target] = _File(place.file, stack.enter_context(output(place.file, overwrite, is_planned)))
        opened[target].add(place.member, item)
    return list(opened.values())


def _set_chunks(opened: Sequence[_File], chunks: ChunkShapes | None, compression: Compression) -> None:
    """The chunks and filters that are asked for. Raises ShapeError, ArgumentError."""
    datasets = {dataset.name: dataset for file in opened for dataset in file.datasets}
    for name, chosen in by_target(compression, datasets).items():
        datasets[name].filters = _filters(name, chosen, datasets[name].array)
    for path, lengths in shapes_by_path(chunks).items():
        name = re.sub("/+", "/", path)
        if name not in datasets:
            raise ShapeError(f"store: chunks name {name!r}, which nothing is stored to")
        if isinstance(lengths, ShardShape):
            raise ShapeError(f"store: shards for {name}, and HDF5 has none; store to a .zarr path")
        asked = datasets[name].chunks = chunk_lengths(name, lengths, datasets[name].array.shape)
        if datasets[name].chunk_bytes_max > _CHUNK_BYTES_MAX:
            raise ShapeError(f"store: chunks {asked} for {name} are of 4 GiB or more, which HDF5 has none of")


@contextmanager
def _asked(
    targets: Items, overwrite: bool, chunks: ChunkShapes | None, compression: Compression, is_planned: bool
) -> Iterator[tuple[list[_File], Request]]:
    """Files with their metadata and room, and nodes and targets of the engine. Nothing is made for plans."""
    with ExitStack() as stack:
        opened = _collected(targets, overwrite, is_planned, stack)
        _set_chunks(opened, chunks, compression)
        for file in opened:
            file.check()
        exprs: list[_core.Expr] = []
        asked: list[_core.Target | None] = []
        for file in opened:
            offsets = [None if data.is_chunked else 0 for data in file.datasets] if is_planned else file.begin()
            for number, (dataset, offset) in enumerate(zip(file.datasets, offsets, strict=True)):
                if dataset.array.size:
                    exprs.append(node(dataset.array))
                    asked.append(dataset.target(file.part, number, offset))
        yield opened, (exprs, asked)


def store_hdf5(
    targets: Items,
    overwrite: bool,
    resume: bool,
    chunks: ChunkShapes | None,
    compression: Compression,
    progress: bool | None,
) -> Outcome:
    """`store` of arrays and groups to HDF5 files: all of them appear under their names, or none.

    Raises ArgumentError for `resume=True`, UnsupportedFormatError without h5py and for other targets beside.
    """
    if resume:
        raise ArgumentError("store: resume=True is not supported for HDF5 files; store to .zarr, and convert")
    with _asked(targets, overwrite, chunks, compression, is_planned=False) as (opened, (exprs, asked)):
        outcome = Outcome()
        with naming({data.staged: data.name for file in opened for data in file.datasets if data.staged}):
            if exprs:
                request = for_all(lambda: (exprs, asked), lambda: current().plan(exprs, asked))
                outcome = plan_and_run(*request, progress)[1]
        put = sum(file.finish() for file in opened)
        publish([file.part for file in opened])
    read, written = outcome.bytes_read + put, outcome.bytes_written + put
    return replace(outcome, bytes_read=read, bytes_written=written)


@contextmanager
def planned_hdf5(
    targets: Items, overwrite: bool, chunks: ChunkShapes | None, compression: Compression
) -> Iterator[tuple[Request, Assembly]]:
    """Nodes and targets of `store_hdf5`, to be planned and not run, and what follows such a run. Makes nothing."""
    with _asked(targets, overwrite, chunks, compression, is_planned=True) as (opened, request):
        yield request, Assembly([dataset for file in opened for dataset in file.datasets])


class Assembly:
    """Files that are put together of what was staged."""

    def __init__(self, datasets: Sequence[_Dataset]) -> None:
        self._datasets = {dataset.staged: dataset for dataset in datasets if dataset.staged}

    def forecast(self, said: Explanation) -> Explanation:
        """A forecast of the staging with that of chunks which are read once more and put into the file."""
        names = {staged: dataset.name for staged, dataset in self._datasets.items()}
        moved = 0
        for part in said.outputs:
            dataset = self._datasets[part["path"]]
            if dataset.is_chunked:
                moved += part["bytes_written"] if dataset.filters else _plain_bytes(dataset.array, part["tile"])
        return said.followed_by("assemble", sorted(names.values()), moved, names) if names else said


def _plain_bytes(array: Array, chunk: Sequence[int]) -> int:
    """The bytes of whole chunks around an array."""
    lengths = (-(-length // along) * along for length, along in zip(array.shape, chunk, strict=True))
    return math.prod(lengths) * np.dtype(array.dtype).itemsize


__all__ = ["Assembly", "hdf5_place", "planned_hdf5", "store_hdf5"]
