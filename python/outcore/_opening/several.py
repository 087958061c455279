"""Several files as one array: lists of paths, and names with wildcards, joined along an axis."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable
from contextvars import copy_context
from pathlib import Path
from typing import TypeAlias

from outcore._base.threads import thread_pool
from outcore._base.urls import is_url
from outcore._lazy.array import Array
from outcore._lazy.node import axis_of
from outcore._lazy.typed import Typed, carried
from outcore._objects.mounting import StorageOptions, mounted
from outcore._opening.group import Group
from outcore._standard.manipulation import concat
from outcore.errors import ArgumentError, DTypeError, MissingFileError, OutcoreError, ShapeError


def parts_of(path: object) -> list[str] | None:
    """The files that a list names, or a name with wildcards; None for the name of one file.

    A file whose name has the characters of wildcards is itself. Raises MissingFileError where nothing matches,
    ArgumentError for an empty list, and for what has no order of its own.
    """
    if isinstance(path, (list, tuple)):
        if not path:
            raise ArgumentError("open: the list of paths is empty; it names one file at least")
        names = [os.fsdecode(part) for part in path]
        return [match for name in names for match in (_matching(name) or [name])]
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise ArgumentError(
            f"open: takes a path or a list of paths, not {type(path).__name__}; use sorted(paths), or "
            "outcore.asarray of an array"
        )
    return _matching(os.fsdecode(path))


def places_of(path: object, options: StorageOptions | None, caller: str) -> list[str]:
    """The files and objects that a name, a list or wildcards stand for, the stores of these made known.

    Raises what `parts_of` and `mounted` raise, ArgumentError for options of a store where there is no URL.
    """
    names = parts_of(path) or [os.fsdecode(path)]  # type: ignore[arg-type]
    if options is not None and not any(map(is_url, names)):
        raise ArgumentError(f"{caller}: {names[0]}: storage_options are for URLs")
    return [mounted(name, options) if is_url(name) else name for name in names]


def _matching(name: str) -> list[str] | None:
    if is_url(name):
        if "*" in name:
            raise ArgumentError("open: wildcards in a URL are not expanded; pass a list of URLs")
        return None
    if not glob.has_magic(name) or os.path.lexists(name) or _is_in_file(name):
        return None
    matches = sorted(glob.glob(name, recursive=True), key=_in_order)
    if not matches:
        raise MissingFileError(f"{name}: no file matches", {"path": name, "action": "open", "cause": "no file matches"})
    return matches


def _is_in_file(name: str) -> bool:
    """Whether a path leads into a file, as those of datasets do."""
    return any(above.is_file() for above in Path(name).parents)


def _in_order(name: str) -> list[int | str]:
    """Numbers in names by their value: part-2 before part-10."""
    return [int(part) if place % 2 else part for place, part in enumerate(re.split(r"(\d+)", name))]


Opened: TypeAlias = "Array | Typed | Group"
# More than cores: most of the time goes by at the disk.
_THREADS = 8


def joined(names: list[str], open_one: Callable[[str], Opened], axis: int | str) -> Opened:
    """The arrays or groups of files along an axis, opened in threads.

    Raises DTypeError and ShapeError where two files do not go together, ArgumentError for groups without a name of the
    axis.
    """
    parts = _each(names, open_one)
    first = parts[0]
    for name, one in zip(names[1:], parts[1:], strict=True):
        if isinstance(one, Group) != isinstance(first, Group):
            kinds = ["a group" if isinstance(part, Group) else "an array" for part in (first, one)]
            raise ShapeError(f"open: {names[0]} is {kinds[0]}, {name} {kinds[1]}")
    if isinstance(first, Group):
        joint = _joined_groups(names, [one for one in parts if isinstance(one, Group)], axis)
        known = _axes_of(first)
        if axis not in known:
            names_known = ", ".join(repr(name) for name in known) or "without names"
            raise ArgumentError(f"open: no array of {names[0]} has an axis called {axis!r}; the axes are {names_known}")
        return joint
    return _joined_arrays(names, [one for one in parts if not isinstance(one, Group)], axis)


def _axes_of(group: Group) -> list[str]:
    """Names of the axes of all arrays in a group and its groups, each once; arrays that are not read have none."""
    known: dict[str, None] = {}
    for member in group:
        try:
            one = group[member]
        except OutcoreError:
            continue
        known.update(dict.fromkeys(_axes_of(one) if isinstance(one, Group) else filter(None, one.dims)))
    return list(known)


def _each(names: list[str], open_one: Callable[[str], Opened]) -> list[Opened]:
    contexts = [copy_context() for _ in names]  # the session in use is the caller's
    with thread_pool(min(_THREADS, len(names))) as threads:
        return list(threads.map(lambda context, name: context.run(open_one, name), contexts, names))


def _joined_groups(names: list[str], groups: list[Group], axis: int | str) -> Group:
    first = groups[0]
    if not isinstance(axis, str):
        raise ArgumentError(f"open: {names[0]} is a group; groups are joined along an axis by its name, as axis='time'")
    for name, group in zip(names[1:], groups[1:], strict=True):
        if set(group) != set(first):
            sides = (names[0], set(first) - set(group)), (name, set(group) - set(first))
            alone = "; ".join(f"only {path} has {', '.join(sorted(some))}" for path, some in sides if some)
            raise ShapeError(f"open: {names[0]} and {name} do not have the same members: {alone}")

    def load(member: str) -> Opened:
        places = [f"{name}/{member}" for name in names]
        if member in first.groups:
            return _joined_groups(places, [group[member] for group in groups], axis)
        array: Array | Typed = first[member]
        return array if axis not in array.dims else _joined_arrays(places, _members(groups, member), axis)

    name = f"{names[0]} and {len(names) - 1} more" if len(names) > 1 else names[0]
    return Group(name, first.attrs, {name: name in first.groups for name in first}, load)


def _members(groups: list[Group], member: str) -> list[Array | Typed]:
    """An array of each group."""
    by_place = {str(place): group for place, group in enumerate(groups)}
    return [one for one in _each(list(by_place), lambda place: by_place[place][member]) if not isinstance(one, Group)]


def _joined_arrays(names: list[str], arrays: list[Array | Typed], axis: int | str) -> Array | Typed:
    first = arrays[0]
    if first.ndim == 0:
        raise ShapeError(f"open: {names[0]} is a number, which has no axis to join files along")
    place = axis_of("open", axis, first)
    for name, array in zip(names[1:], arrays[1:], strict=True):
        if array.dtype != first.dtype:
            raise DTypeError(
                f"open: {names[0]} is of {first.dtype}, {name} of {array.dtype}; open each, and concat them as one type"
            )
        lengths = [(*shape[:place], *shape[place + 1 :]) for shape in (first.shape, array.shape)]
        if array.ndim != first.ndim or lengths[0] != lengths[1]:
            raise ShapeError(
                f"open: {names[0]} has shape {first.shape}, {name} {array.shape}; they differ beside axis {place}"
            )
    joint = concat([carried(array) for array in arrays], axis=place)
    return first._like(joint) if isinstance(first, Typed) else joint


__all__ = ["joined", "parts_of", "places_of"]
