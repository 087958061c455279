"""Compression as `store` takes it: names, levels and codecs in the notation of Zarr v3, for all targets or for each."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from outcore._base.types import DType, JSONObject
from outcore.errors import ArgumentError

# A name, a name with a level, a codec of Zarr, a list of them, or a mapping of paths to these.
Compression: TypeAlias = Any

_LEVELS = {"zstd": 3, "gzip": 5, "blosc": 5}


def _blosc(dtype: DType, level: int | None) -> JSONObject:
    shuffle = "bitshuffle" if dtype.itemsize == 1 else "shuffle"
    return {"typesize": dtype.itemsize, "cname": "zstd", "clevel": level, "shuffle": shuffle, "blocksize": 0}


def _codec(codec: Any, dtype: DType) -> JSONObject:
    """A codec as a document of Zarr v3 has it. Raises ArgumentError."""
    level = None
    if isinstance(codec, tuple) and len(codec) == 2 and isinstance(codec[0], str):
        codec, level = codec
        if isinstance(level, bool) or not isinstance(level, (int, np.integer)):
            raise ArgumentError(f"store: compression {(codec, level)!r}: a level is an integer")
    unset: set[str] = set()
    if hasattr(codec, "to_dict"):  # of zarr-python, which has settings that follow from the array
        unset = set(getattr(codec, "_tunable_attrs", ()))
        codec = codec.to_dict()
    if isinstance(codec, Mapping) and isinstance(codec.get("name"), str):
        settings = dict(codec.get("configuration") or {})
        if codec["name"] in ("blosc", "numcodecs.blosc"):
            chosen = {key: value for key, value in settings.items() if key not in unset and value is not None}
            settings = {**_blosc(dtype, _LEVELS["blosc"]), **chosen}
        return {"name": codec["name"], "configuration": settings} if settings else {"name": codec["name"]}
    if level is not None and codec not in _LEVELS:
        raise ArgumentError(f"store: compression {codec!r} has no level; {', '.join(_LEVELS)} have one")
    level = _LEVELS.get(codec) if level is None else int(level)
    match codec:
        case "zstd":
            return {"name": "zstd", "configuration": {"level": level, "checksum": False}}
        case "gzip":
            return {"name": "gzip", "configuration": {"level": level}}
        case "blosc":
            return {"name": "blosc", "configuration": _blosc(dtype, level)}
        case "shuffle":
            return {"name": "numcodecs.shuffle", "configuration": {"elementsize": dtype.itemsize}}
        case "crc32c":
            return {"name": "crc32c"}
    raise ArgumentError(
        f"store: compression {codec!r} is none of 'zstd', 'gzip', 'blosc', 'shuffle', 'crc32c', a pair of a name and a "
        "level, a codec of Zarr as {'name': …, 'configuration': …}, or a list of these"
    )


def codecs_of(compression: Compression, dtype: DType) -> list[JSONObject]:
    """The codecs behind "bytes" of an array of a type. Raises ArgumentError for what names none."""
    if compression is None:
        return []
    several = compression if isinstance(compression, list) else [compression]
    return [_codec(codec, np.dtype(dtype)) for codec in several]


def codecs_text(compression: Compression, dtype: DType) -> str | None:
    """The same as the engine takes it. Raises ArgumentError."""
    codecs = codecs_of(compression, dtype)
    return json.dumps(codecs) if codecs else None


def by_target(compression: Compression, names: Iterable[str]) -> dict[str, Compression]:
    """The compression of each target: the name of a group stands for all members that are not named themselves.

    Raises ArgumentError for names that nothing is stored to.
    """
    names = list(names)
    is_one = not isinstance(compression, Mapping) or isinstance(compression.get("name"), str)
    if is_one:
        return dict.fromkeys(names, compression) if compression is not None else {}
    asked = {os.fsdecode(name).rstrip("/"): codecs for name, codecs in compression.items()}
    chosen: dict[str, Compression] = {}
    used: set[str] = set()
    for name in names:
        parts: Sequence[str] = name.split("/")
        above = ("/".join(parts[:count]) for count in range(len(parts), 0, -1))
        nearest = next((place for place in above if place in asked), None)
        if nearest is not None:
            chosen[name] = asked[nearest]
            used.add(nearest)
    unknown = [name for name in asked if name not in used]
    if unknown:
        raise ArgumentError(f"store: compression names {', '.join(map(repr, unknown))}, which nothing is stored to")
    return chosen


__all__ = ["Compression", "by_target", "codecs_of", "codecs_text"]
