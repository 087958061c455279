"""Files as JSON for `outcore info`: groups, arrays with their codecs and bytes, tables, sparse matrices and graphs.

Metadata alone is read: headers, documents of Zarr, footers of Parquet. Sizes of Zarr's chunks are those of their files;
filters and stored bytes of HDF5 are known to h5py, and left out where that is not installed.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np

import outcore as oc
from outcore import _core
from outcore._base.system_errors import WAY_OUT
from outcore._base.types import JSONObject
from outcore._base.urls import is_url
from outcore._opening.arrow_files import StampedFile
from outcore._opening.icechunk import repository_place
from outcore._opening.parquet_footer import CODEC, CODECS, PLAIN_BYTES, STORED_BYTES, read_footer
from outcore._opening.places import FilePlace, file_place, head_of, is_hdf5
from outcore.errors import DTypeError, FormatError, OutcoreError, UnsupportedFormatError

# Errors of a member that outcore does not read, though it is whole.
REFUSALS = (FormatError, UnsupportedFormatError, DTypeError)
_DOCUMENTS = ("zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata")
_CHUNK_FILES_MAX = 200_000
_TABLE_NOTE = "table.json"
_REPOSITORY = "icechunk"


class Limits(NamedTuple):
    """The levels of groups that are opened, and how many members, columns and attributes each has at most."""

    depth: int
    members: int


def described(path: str, limits: Limits) -> JSONObject:
    """The content of a path. Raises what `oc.open` raises. I/O: metadata."""
    if is_parquet(path):
        return _parquet(path, limits)
    if os.path.exists(os.path.join(path, _TABLE_NOTE)):
        return _columns(path, limits)
    if os.path.isfile(path) and path.endswith(".ocs"):
        return _sparse(path)
    if os.path.isfile(path) and path.endswith(".ocg"):
        return _graph(path)
    return _member(oc.open(path, decode=False), path, limits, limits.depth)


def is_parquet(path: str) -> bool:
    """Whether a path is a file that begins as Parquet does."""
    if not os.path.isfile(path):
        return False
    with suppress(OSError), open(path, "rb") as file:
        return file.read(4) == b"PAR1"
    return False


def reason_of(error: Exception, path: str) -> str:
    """The message of an error without the path in front, which its reader knows, and other ways to read the file."""
    message = str(error)
    file = _file_of(path).path
    for name in (path, file, os.path.relpath(file)):
        for prefix in (name, os.path.abspath(name), os.path.join(os.getcwd(), name)):
            message = message.removeprefix(f"{prefix}: ")
    return message.partition(WAY_OUT)[0]


def _file_of(path: str) -> FilePlace:
    """The file that a path leads to or into, and the path in it; of other paths themselves."""
    return file_place(path) or FilePlace(path, "")


def _format_of(path: str) -> str:
    """The format of a group by the first bytes of its file; by the suffix in a URL, and the files of repositories."""
    if _is_in_repository(path):
        return _REPOSITORY
    if is_url(path):
        suffixes = [Path(part).suffix for part in path.split("/")]
        return "netcdf" if ".nc" in suffixes else "hdf5" if {".h5", ".hdf5", ".h5ad"} & set(suffixes) else "zarr"
    file = _file_of(path)[0]
    if os.path.isdir(file):
        return "zarr"
    if is_hdf5(file):
        return "hdf5"
    head = head_of(file, 4)
    return "netcdf3" if head.startswith(b"CDF") else "npz" if head.startswith(b"PK") else "file"


def _is_in_repository(path: str) -> bool:
    """Whether a path leads to a member of an Icechunk repository, or to all of one."""
    is_other = os.path.isfile(path) or any(os.path.isfile(os.path.join(path, name)) for name in _DOCUMENTS)
    return not is_other and repository_place(path) is not None


def _member(item: object, path: str, limits: Limits, depth: int) -> JSONObject:
    return _group(item, path, limits, depth) if isinstance(item, oc.Group) else _array(item, path, limits)


def _group(group: oc.Group, path: str, limits: Limits, depth: int) -> JSONObject:
    content: JSONObject = {"kind": "group", "format": _format_of(path), **_attributes(group.attrs, limits)}
    names = list(group)
    shown = names[: limits.members] if depth else []
    members: JSONObject = {}
    for name in shown:
        below = f"{path}/{name}"
        try:
            members[name] = _member(group[name], below, limits, depth - 1)
        except REFUSALS as error:
            members[name] = {"kind": "refused", "reason": reason_of(error, below)}
    content["members"] = members
    if len(shown) < len(names):
        content["members_omitted"] = len(names) - len(shown)
    return content


def _attributes(attrs: Mapping[str, object], limits: Limits) -> JSONObject:
    shown = {name: plain(value) for name, value in list(attrs.items())[: limits.members]}
    omitted = len(attrs) - len(shown)
    return {"attrs": shown, **({"attrs_omitted": omitted} if omitted else {})}


def plain(value: object) -> object:
    """An attribute as JSON has it; numbers that JSON has not by their names."""
    if isinstance(value, (np.ndarray, np.generic)):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, (str, int, float)) else str(value)


def _array(array: object, path: str, limits: Limits) -> JSONObject:
    assert isinstance(array, (oc.Array, oc.Dates, oc.Text))
    if _is_in_repository(path):
        name, storage = _REPOSITORY, {}
    else:
        name, storage = Path(path).suffix.lstrip(".") or "file", _storage(path)
    content: JSONObject = {"kind": "array", "format": name}
    with suppress(OutcoreError):  # of dates, which the core has as numbers, and of several files
        content |= json.loads(_core.info(path))
    content |= {"dtype": str(array.dtype), "shape": list(array.shape)}
    content.setdefault("nbytes", math.prod(array.shape) * array.dtype.itemsize)
    if any(array.dims):
        content["dims"] = list(array.dims)
    content |= storage
    return content | _attributes(array.attrs, limits)


def _storage(path: str) -> JSONObject:
    """Codecs and stored bytes, where the file tells. Files of a volume are elsewhere, and have no bytes here."""
    if os.path.isdir(path):
        return {**_zarr_codecs(Path(path)), **_zarr_bytes(path)}
    file, inner = _file_of(path)
    if inner:
        return _hdf5_filters(file, inner)
    if not os.path.isfile(file) or _core.is_in_volume(file):
        return {}
    return {"stored_bytes": os.stat(file).st_size}


def _zarr_codecs(folder: Path) -> JSONObject:
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):  # of a document that others wrote
        if (folder / "zarr.json").exists():
            document = json.loads((folder / "zarr.json").read_bytes())
            codecs = document["codecs"]
            is_sharded = codecs[0]["name"] == "sharding_indexed"
            shards = document["chunk_grid"]["configuration"].get("chunk_shape") if is_sharded else None
            return {"codecs": codecs, **({"shards": shards} if shards else {})}
        document = json.loads((folder / ".zarray").read_bytes())
        stages = [*(document.get("filters") or []), document.get("compressor")]
        codecs = [{"name": stage["id"], "configuration": stage} for stage in stages if stage]
        return {"codecs": codecs}
    return {}


def _zarr_bytes(path: str) -> JSONObject:
    total, count, folders = 0, 0, [path]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir():
                    folders.append(entry.path)
                elif entry.name not in _DOCUMENTS:
                    if count == 0 and _core.is_in_volume(entry.path):
                        return {}
                    total, count = total + entry.stat().st_size, count + 1
                if count == _CHUNK_FILES_MAX:
                    return {"stored_bytes_least": total, "chunk_files_least": count}
    return {"stored_bytes": total, "chunk_files": count}


def _hdf5_filters(file: str, inner: str) -> JSONObject:
    try:
        import h5py
    except ImportError:
        return {}
    # h5py may refuse a file that outcore reads: filters are left out then, too.
    with suppress(OSError, KeyError, ValueError, RuntimeError), h5py.File(file, "r", locking=False) as opened:
        data = opened[inner]
        properties = data.id.get_create_plist()
        filters = [properties.get_filter(place) for place in range(properties.get_nfilters())]
        codecs = [
            {"name": FILTERS.get(number) or name.decode(errors="replace"), "configuration": {"values": list(values)}}
            for number, _, values, name in filters
        ]
        chunked: JSONObject = {"chunks_stored": data.id.get_num_chunks()} if data.chunks else {}
        return {"codecs": codecs, "stored_bytes": data.id.get_storage_size(), **chunked}
    return {}


# Names of HDF5's filters by their numbers, as docs/formats.md has them.
FILTERS = {
    1: "deflate",
    2: "shuffle",
    3: "fletcher32",
    4: "szip",
    5: "nbit",
    6: "scaleoffset",
    32000: "lzf",
    32001: "blosc",
    32004: "lz4",
    32008: "bitshuffle",
    32015: "zstd",
}


def _parquet(path: str, limits: Limits) -> JSONObject:
    footer = read_footer(path, StampedFile(path).opened())
    metadata, rows, chunks = footer.metadata, footer.rows.tolist(), footer.chunks
    schema = metadata.schema
    shown = min(metadata.num_columns, limits.members)
    columns: JSONObject = {}
    for place in range(shown):
        columns[schema.column(place).path] = {
            "dtype": _parquet_type(schema.column(place)),
            "codecs": sorted({CODECS[codec] for codec in chunks[:, place, CODEC].tolist()}),
            "nbytes": int(chunks[:, place, PLAIN_BYTES].sum()),
            "stored_bytes": int(chunks[:, place, STORED_BYTES].sum()),
        }
    content: JSONObject = {"kind": "table", "format": "parquet", "rows": metadata.num_rows, "row_groups": len(rows)}
    if rows:
        content["row_group_rows"] = [min(rows), max(rows)]
    return content | _listed(columns, metadata.num_columns, os.stat(path).st_size)


def _parquet_type(column: object) -> str:
    logical = str(getattr(column, "logical_type", "None")).split("(")[0]
    physical = str(getattr(column, "physical_type", "")).lower()
    return physical if logical == "None" else f"{physical} ({logical.lower()})"


def _listed(columns: JSONObject, count: int, stored_bytes: int) -> JSONObject:
    omitted = {"columns_omitted": count - len(columns)} if count > len(columns) else {}
    return {"stored_bytes": stored_bytes, "columns": columns, **omitted}


def _columns(path: str, limits: Limits) -> JSONObject:
    table = oc.open_table(path)
    types = table.dtypes
    columns: JSONObject = {name: {"dtype": types[name]} for name in table.columns[: limits.members]}
    stored_bytes = sum(file.stat().st_size for file in Path(path).glob("*.npy"))
    content: JSONObject = {"kind": "table", "format": "columns", "rows": len(table)}
    return content | _listed(columns, len(table.columns), stored_bytes)


def _sparse(path: str) -> JSONObject:
    matrix = oc.sparse.open(path)
    return {
        "kind": "sparse matrix",
        "format": "ocs",
        "shape": list(matrix.shape),
        "dtype": "pattern" if matrix.is_pattern else str(matrix.dtype),
        "entries": matrix.nnz,
        "stored_bytes": os.stat(path).st_size,
    }


def _graph(path: str) -> JSONObject:
    graph = oc.graph.open(path)
    return {
        "kind": "graph",
        "format": "ocg",
        "vertices": graph.number_of_vertices,
        "entries": graph.number_of_entries,
        "directed": graph.directed,
        "weights": str(graph.dtype or "none"),
        "stored_bytes": graph.file_bytes,
    }


__all__ = ["FILTERS", "REFUSALS", "Limits", "described", "is_parquet", "plain", "reason_of"]
