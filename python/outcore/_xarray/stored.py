"""Variables of a stored group, as they lie in the file: names, dimensions, lazy arrays, attributes."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from outcore import _api as oc
from outcore._base.types import JSONObject
from outcore._lazy.array import Array
from outcore._xarray.foreign import Foreign
from outcore.errors import FormatError


class StoredVariable(NamedTuple):
    """A variable before any decoding."""

    dims: tuple[str, ...]
    array: Foreign  # lazy, or what zarr-python reads and outcore does not: text
    attributes: dict[str, Foreign]
    chunks: tuple[int, ...] | None


def group_of(path: str | os.PathLike[str], group: str | None) -> tuple[dict[str, StoredVariable], dict[str, Foreign]]:
    """The variables of a group of a file by their names, and the attributes of the group. No data is read.

    Raises FormatError for a path that holds no group.
    """
    folder = Path(os.fsdecode(path), *(group or "").strip("/").split("/"))
    metadata = _metadata(folder)
    if metadata is None or metadata.get("node_type") != "group":
        raise FormatError(f'{folder} is no Zarr group of format 3; open it with engine="zarr" and chunks={{}}')
    return dict(_variables(folder)), dict(metadata.get("attributes", {}))


def groups_of(path: str | os.PathLike[str]) -> list[str]:
    """Names of all groups of a file, from the root on: "/", "/a", "/a/b"."""
    root = Path(os.fsdecode(path))
    names: list[str] = []
    for folder in sorted((root, *(name.parent for name in root.glob("**/zarr.json")))):
        name = "/" if folder == root else f"/{folder.relative_to(root)}"
        if name not in names and (_metadata(folder) or {}).get("node_type") == "group":
            names.append(name)
    return names


def _metadata(folder: Path) -> JSONObject | None:
    try:
        text = (folder / "zarr.json").read_text()
    except (FileNotFoundError, NotADirectoryError):
        return None
    content: JSONObject = json.loads(text)
    return content


def _variables(folder: Path) -> Iterator[tuple[str, StoredVariable]]:
    import zarr

    for path in sorted(folder.iterdir()):
        metadata = _metadata(path)
        if metadata is None or metadata.get("node_type") != "array":
            continue
        attributes = dict(metadata.get("attributes", {}))
        names = metadata.get("dimension_names") or attributes.pop("_ARRAY_DIMENSIONS", None)
        shape = metadata["shape"]
        dims = tuple(name or f"{path.name}_{axis}" for axis, name in enumerate(names or [None] * len(shape)))
        grid = metadata["chunk_grid"]["configuration"].get("chunk_shape")
        try:
            array: Foreign = oc.open(path)
        except FormatError:
            array = zarr.open_array(path, mode="r")
        yield path.name, StoredVariable(dims, array, attributes, tuple(grid) if grid and shape else None)


__all__ = ["Array", "StoredVariable", "group_of", "groups_of"]
