"""Groups written as Zarr: all arrays of a group by one program, in a folder beside its name that takes the name at the
end; documents of groups last. Dates become the numbers that the CF conventions have for them.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from outcore import _core
from outcore._base import files
from outcore._base.system_errors import naming, refusing
from outcore._lazy.annotated import fill_text
from outcore._lazy.array import Array
from outcore._lazy.hooks import functions
from outcore._lazy.typed import Typed, carried
from outcore._run.chunk_shapes import ChunkShapes, shapes_by_path
from outcore._run.codecs import Compression, by_target
from outcore._run.typed_files import staging
from outcore._session.record import Outcome
from outcore.errors import ArgumentError, DTypeError, ShapeError, TargetExistsError, UnsupportedFormatError

MemberContent: TypeAlias = Any  # of a group or a document: arrays, groups, attributes, paths

_DOCUMENT, _NEW, _OLD, _NOTE = "zarr.json", "new", "old", "name"
_OF_GROUPS = (_DOCUMENT, ".zgroup", ".zarray")
_WORDS = {
    "D": "days",
    "h": "hours",
    "m": "minutes",
    "s": "seconds",
    "ms": "milliseconds",
    "us": "microseconds",
    "ns": "nanoseconds",
}
_NAT = np.iinfo(np.int64).min
Staged = dict[str, Array]


def is_group(value: object) -> bool:
    """Whether a target is stored as a group."""
    return isinstance(value, functions.Group)


def encoded(array: Array | Typed) -> Array:
    """Numbers with attributes that say what they stand for; arrays of numbers as they are.

    Raises DTypeError for text, which Zarr has no numbers for.
    """
    if not isinstance(array, Typed):
        return array
    if array.dtype.kind not in "mM":
        raise DTypeError(f"store: text of {array.dtype} goes to .npy alone; x.categories() gives codes for Zarr")
    unit, step = np.datetime_data(array.dtype)
    if unit not in _WORDS or step != 1:
        finer = "D" if unit in "YMW" else unit if unit in _WORDS else "ns"
        return encoded(array.astype(f"{array.dtype.kind}8[{finer}]"))  # type: ignore[attr-defined]
    numbers = carried(array)
    attrs = {**array.attrs, "units": _WORDS[unit], "_FillValue": _NAT}
    if array.dtype.kind == "M":
        attrs |= {"units": f"{_WORDS[unit]} since 1970-01-01", "calendar": "proleptic_gregorian"}
    else:
        attrs["dtype"] = f"timedelta64[{unit}]"
    result: Array = numbers.annotate(attrs=attrs)
    return result


def as_zarr(array: Array | Typed) -> Array:
    """The array as Zarr has it: numbers, and a fill value of floating ones in the form that xarray reads."""
    made = encoded(array)
    if made.dtype.kind != "f" or "_FillValue" not in made.attrs:
        return made
    result: Array = made.annotate(attrs={**made.attrs, "_FillValue": fill_text(made.attrs["_FillValue"])})
    return result


class _Lengths:
    """Names of axes of a group and all groups in it, with their lengths.

    xarray opens no group in which an axis has no name, or a name two lengths. Axes without a name are called dim_0,
    dim_1 and so on, those of one length alike, as h5netcdf has it; two of one array differ.
    """

    def __init__(self) -> None:
        self._of: dict[str, set[int]] = {}

    def read(self, group: Mapping[str, MemberContent]) -> None:
        """Takes down the names that members have."""
        for member in group.values():
            if is_group(member):
                self.read(member)
                continue
            for name, length in zip(member.dims, member.shape, strict=True):
                if name is not None:
                    self._of.setdefault(name, set()).add(length)

    def named(self, array: Array) -> Array:
        """The array with a name for each axis."""
        names = list(array.dims)
        if all(name is not None for name in names):
            return array
        for axis, length in enumerate(array.shape):
            if names[axis] is None:
                free = (name for name in map("dim_{}".format, count()) if name not in names)
                names[axis] = next(name for name in free if self._of.get(name, {length}) == {length})
                self._of[str(names[axis])] = {length}
        return array.annotate(dims=names)


class _Output:
    """A group in its folder, until it has its name."""

    def __init__(self, path: str, group: Mapping[str, MemberContent], prefix: str, overwrite: bool) -> None:
        self.path, self._group, self._prefix, self._overwrite = path, group, prefix, overwrite
        self._new, self._target = Path(prefix + _NEW), Path(os.path.realpath(path))
        self._old = Path(prefix + _OLD)
        self.staged: Staged = {}
        self.names: dict[str, str] = {}
        self._places: dict[str, Path] = {}
        self._documents: dict[Path, bytes] = {}  # of groups, by their folders; those above before those below
        self._lengths = _Lengths()
        self._lengths.read(group)
        self._is_exchanged = False
        self._list(group, "")

    def begin(self) -> None:
        """Makes folders and documents of groups."""
        with refusing(self.path, "make the folder of"):
            for folder, document in self._documents.items():
                folder.mkdir()
                _write(folder / _DOCUMENT, document)

    def _list(self, group: Mapping[str, MemberContent], below: str) -> None:
        self._documents[self._new / below] = _document(group.attrs, {})  # type: ignore[attr-defined]
        for name, member in group.items():
            place = f"{below}/{name}" if below else name
            if name.endswith((".npy", ".ocs")) or name == _DOCUMENT or name.startswith("."):
                raise UnsupportedFormatError(
                    f"store: {self.path}/{place}: arrays of a group are Zarr, by any other name"
                )
            if is_group(member):
                self._list(member, place)
                continue
            # The engine writes to names that end so; those of members may end in anything.
            path = f"{self._prefix}{len(self.staged)}-{name[:50]}.zarr"
            self.staged[path] = self._lengths.named(as_zarr(member))
            self.names[f"{self.path}/{place}"] = path
            self._places[path] = self._new / place

    def finish(self) -> None:
        """Writes the documents of groups anew, with those of all members: xarray reads one file for all."""
        with refusing(self.path, "write the metadata of"):
            for path, place in self._places.items():
                os.rename(path, place)
                files.sync_name(str(place))
            self._finish(self._group, self._new)

    def _finish(self, group: Mapping[str, MemberContent], folder: Path) -> dict[str, MemberContent]:
        members: dict[str, MemberContent] = {}
        for name, member in group.items():
            if is_group(member):
                below = self._finish(member, folder / name)
                members[name] = json.loads(_document(member.attrs, {}))
                members |= {f"{name}/{place}": document for place, document in below.items()}
            else:
                members[name] = json.loads((folder / name / _DOCUMENT).read_bytes())
        _write(folder / _DOCUMENT, _document(group.attrs, members))  # type: ignore[attr-defined]
        return members

    def place(self) -> None:
        """Gives the group its name. An older one takes the place of the new one, which is removed in the end.

        Where the file system cannot exchange names, it goes to `old`, with a note for the clean-up after a kill.
        """
        with refusing(self.path, "replace" if self._overwrite else "create"):
            if self._overwrite and self._target.exists():
                self._is_exchanged = _core.exchange(str(self._new), str(self._target))
                if self._is_exchanged:
                    files.sync_name(str(self._target))
                    return
                _write(Path(self._prefix + _NOTE), os.fsencode(self._target.name))
                os.rename(self._target, self._old)
            os.rename(self._new, self._target)
            files.sync_name(str(self._target))

    def take_back(self) -> None:
        """Undoes `place`, however far that came."""
        if self._is_exchanged:
            _core.exchange(str(self._new), str(self._target))
            return
        if not self._new.exists():
            os.rename(self._target, self._new)
        if self._old.exists():
            os.rename(self._old, self._target)


def _write(path: Path, content: bytes) -> None:
    with open(path, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _document(attrs: Mapping[str, MemberContent], members: Mapping[str, MemberContent]) -> bytes:
    content: dict[str, MemberContent] = {
        "zarr_format": 3,
        "node_type": "group",
        "attributes": {str(name): _attribute(value) for name, value in attrs.items()},
    }
    if members:
        content["consolidated_metadata"] = {"kind": "inline", "must_understand": False, "metadata": dict(members)}
    return json.dumps(content, indent=2).encode() + b"\n"


def _plain(value: MemberContent) -> MemberContent:
    """Attributes as JSON has them. Raises DTypeError for what it has nothing for."""
    if isinstance(value, Mapping):
        return {str(name): _finite(_plain(part)) for name, part in value.items()}
    if isinstance(value, (np.ndarray, np.generic)):
        return _plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [_finite(_plain(part)) for part in value]
    if value is None or isinstance(value, (str, int, float)):
        return value
    raise DTypeError(f"attrs: {value!r} of {type(value).__name__} is nothing that files keep")


def _finite(value: MemberContent) -> MemberContent:
    """A value within a list or a mapping. Raises DTypeError for NaN and infinities: JSON has none, and text would
    be read as text."""
    if isinstance(value, float) and not math.isfinite(value):
        raise DTypeError(f"attrs: {value} in a list or a mapping is nothing that JSON has; a NumPy array may have it")
    return value


def _attribute(value: MemberContent) -> MemberContent:
    is_number = isinstance(value, (np.ndarray, np.generic, float))
    return _words(np.asarray(value).tolist()) if is_number else _plain(value)


def _words(value: MemberContent) -> MemberContent:
    """Numbers with the words that Zarr has for fill values that are not finite."""
    if isinstance(value, list):
        return [_words(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return _plain(value)


def tell_groups_above(paths: Iterable[str]) -> None:
    """Puts new members into what the groups that they lie in have of all members, where these have such a copy."""
    for path in paths:
        place = Path(os.path.realpath(path))
        for above in place.parents:
            if not (above / _DOCUMENT).is_file():
                break
            with refusing(path, "write the metadata of the groups above"), _locked(above):
                _tell(above, place)


def _tell(above: Path, place: Path) -> None:
    document = json.loads((above / _DOCUMENT).read_bytes())
    members = (document.get("consolidated_metadata") or {}).get("metadata")
    if not isinstance(members, dict) or not (place / _DOCUMENT).is_file():
        return
    name = place.relative_to(above).as_posix()
    kept = {key: value for key, value in members.items() if key != name and not key.startswith(f"{name}/")}
    document_of_place = json.loads((place / _DOCUMENT).read_bytes())
    below = (document_of_place.pop("consolidated_metadata", None) or {}).get("metadata", {})
    kept |= {name: document_of_place, **{f"{name}/{key}": value for key, value in below.items()}}
    document["consolidated_metadata"]["metadata"] = kept
    _replace_document(above, document)


@contextmanager
def consolidated_apart(path: str) -> Iterator[None]:
    """Groups above an array without their copy of all members' documents, which comes back in the end with the array's.

    Readers look at each document meanwhile, and after a kill.
    """
    place, apart = Path(os.path.realpath(path)), []
    for above in place.parents:
        if not (above / _DOCUMENT).is_file():
            break
        with refusing(path, "write the metadata of the groups above"), _locked(above):
            document = json.loads((above / _DOCUMENT).read_bytes())
            copy = document.pop("consolidated_metadata", None) if isinstance(document, dict) else None
            if copy and place.relative_to(above).as_posix() in (copy.get("metadata") or {}):
                _replace_document(above, document)
                apart.append((above, copy))
    try:
        yield
    finally:
        for above, copy in apart:
            with refusing(path, "write the metadata of the groups above"), _locked(above):
                document = json.loads((above / _DOCUMENT).read_bytes())
                _replace_document(above, {**document, "consolidated_metadata": copy})
                _tell(above, place)


def _replace_document(above: Path, document: Mapping[str, MemberContent]) -> None:
    beside = above / f".{_DOCUMENT}.{os.getpid()}"
    _write(beside, json.dumps(document, indent=2).encode() + b"\n")
    os.replace(beside, above / _DOCUMENT)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One writer at a time of the document of a group."""
    lock = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


@contextmanager
def staged_groups(
    targets: Mapping[MemberContent, MemberContent],
    overwrite: bool,
    chunks: ChunkShapes | None,
    compression: Compression = None,
    is_planned: bool = False,
) -> Iterator[tuple[list[_Output], Staged, ChunkShapes, dict[str, Compression]]]:
    """Groups in folders beside their names, which go in the end; the arrays by their places there, their chunks, and
    their compression. Nothing is made for what is only planned.

    Raises TargetExistsError without `overwrite`, UnsupportedFormatError for names that do not end in `.zarr` and for
    arrays beside groups.
    """
    others = [os.fsdecode(path) for path, group in targets.items() if not is_group(group)]
    if others:
        raise UnsupportedFormatError(
            f"store: {', '.join(others)} beside groups; put the arrays into a group, or store twice"
        )
    if len({os.path.realpath(os.fsdecode(path)) for path in targets}) != len(targets):
        raise ArgumentError(f"store: {', '.join(map(os.fsdecode, targets))} name one folder twice")
    with ExitStack() as stack:
        outputs = []
        for key, group in targets.items():
            path = os.fsdecode(key)
            target = os.path.realpath(path)
            _check_target(path, target, overwrite)
            prefix = stack.enter_context(staging(path, target, is_planned))
            outputs.append(_Output(path, group, prefix, overwrite))
        places = {name: path for output in outputs for name, path in output.names.items()}
        asked = shapes_by_path(chunks)
        unknown = [name for name in asked if name not in places]
        if unknown:
            known = next(iter(places), "x.zarr/name")
            raise ShapeError(
                f"store: chunks name {', '.join(map(repr, unknown))}, which nothing is stored to; arrays of a group "
                f"are named as {known!r}"
            )
        staged = {path: array for output in outputs for path, array in output.staged.items()}
        codecs = {places[name]: codecs for name, codecs in by_target(compression, places).items()}
        yield outputs, staged, {places[name]: shape for name, shape in asked.items()}, codecs


def _check_target(path: str, target: str, overwrite: bool) -> None:
    if not path.rstrip("/").endswith(".zarr"):
        raise UnsupportedFormatError(
            f"store: {path}: a group is stored as Zarr, and its name ends in .zarr, or in .h5 or .nc"
        )
    if not os.path.lexists(target):
        return
    if not overwrite:
        raise TargetExistsError(f"{path} exists; pass overwrite=True to replace it", {"path": path})
    if not any(os.path.exists(os.path.join(target, name)) for name in _OF_GROUPS):
        raise TargetExistsError(f"{path} is no Zarr group or array; it is not replaced by one", {"path": path})


def store_groups(
    store: Callable[..., Outcome],
    targets: Mapping[MemberContent, MemberContent],
    overwrite: bool,
    resume: bool,
    chunks: ChunkShapes | None,
    compression: Compression,
    progress: bool | None,
) -> Outcome:
    """`store`, which is given, of groups: all appear under their names, or none."""
    if resume:
        raise ArgumentError("store: resume=True is not supported for groups; store their arrays to paths of their own")
    with staged_groups(targets, overwrite, chunks, compression) as (outputs, staged, shapes, codecs):
        for output in outputs:
            output.begin()
        with naming({place: name for output in outputs for name, place in output.names.items()}):
            outcome = store(staged, chunks=shapes, compression=codecs or None, progress=progress)
            for output in outputs:
                output.finish()
        placed: list[_Output] = []
        try:
            for output in outputs:
                placed.append(output)
                output.place()
        except BaseException:
            for output in reversed(placed):
                with suppress(OSError):  # the first error is the one to tell
                    output.take_back()
            raise
        tell_groups_above(map(os.fsdecode, targets))
    return outcome


__all__ = ["as_zarr", "consolidated_apart", "encoded", "is_group", "staged_groups", "store_groups", "tell_groups_above"]
