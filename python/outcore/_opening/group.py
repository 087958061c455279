"""`Group`: named arrays and groups with attributes, as HDF5, NetCDF and Zarr have them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

from outcore._base.shortened import COLUMNS, short_names, short_path, short_text
from outcore._base.system_errors import WAY_OUT
from outcore._lazy.annotated import Annotations
from outcore._lazy.array import Array
from outcore._lazy.carded import Carded, NamedFact
from outcore._lazy.node import node
from outcore._lazy.typed import typed_of
from outcore._session.session import current
from outcore.errors import ArgumentError, DTypeError, OutcoreError

GroupItem: TypeAlias = "Any"  # an Array, Dates or Text, or a Group
_SHOWN_MAX = 40
# Bytes of headers that representations of a group read: of documents of Zarr, and of files, where each member's are
# those that the group was opened by.
_DOCUMENT_BYTES, _FILE_BYTES = 4096, 64 << 10
_DOCUMENTS = ("zarr.json", ".zarray")
_NAME, _PATH = 60, 80  # characters of a name of a member, and of a path


class Group(Carded, Mapping[str, GroupItem]):
    """Arrays and further groups by name, in their order, with attributes. Made by `open` and by `group`.

    Members are opened when they are asked for, once; `group["a/b"]` is `group["a"]["b"]`. A member that outcore does
    not read is refused then, the others are not. Values never change: `{**group, "x": x}` has all of them in a dict.

    >>> import outcore as oc
    >>> g = oc.group(x=oc.arange(3), attrs={"title": "three"})
    >>> list(g), g.attrs, g["x"].sum().item()
    (['x'], {'title': 'three'}, 3)
    """

    __slots__ = ("_attrs", "_headers", "_kinds", "_load", "_members", "_name")

    def __init__(
        self, name: str, attrs: Annotations, kinds: Mapping[str, bool], load: Callable[[str], GroupItem] | None = None
    ) -> None:
        self._name, self._attrs, self._kinds, self._load = name, attrs, dict(kinds), load
        self._members: dict[str, GroupItem] = {}
        self._headers: dict[str, str] | None = None  # what representations say of members that they opened

    @property
    def attrs(self) -> Annotations:
        """The attributes of the group itself. The dict is a copy."""
        return dict(self._attrs)

    @property
    def name(self) -> str:
        """The path that the group was opened by; empty for one made by `group`."""
        return self._name

    @property
    def arrays(self) -> tuple[str, ...]:
        """Names of the arrays."""
        return tuple(name for name, is_group in self._kinds.items() if not is_group)

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of the groups."""
        return tuple(name for name, is_group in self._kinds.items() if is_group)

    def __getitem__(self, name: str) -> GroupItem:
        first, _, further = name.strip("/").partition("/") if isinstance(name, str) else (name, "", "")
        if first not in self._kinds:
            known = ", ".join(self._kinds) or "nothing"
            raise KeyError(f"{self._name or 'the group'} has no {name!r}; it has {known}")
        if first not in self._members and self._load is not None:
            self._members[first] = self._load(first)
        member = self._members[first]
        return member[further] if further else member

    def __iter__(self) -> Iterator[str]:
        return iter(self._kinds)

    def __len__(self) -> int:
        return len(self._kinds)

    def __repr__(self) -> str:
        lines = [f"outcore.Group({short_path(self._name, _PATH)!r})" if self._name else "outcore.Group"]
        lines += [f"{short_text(name, _NAME)}{kind}" for name, kind in self._members_shown()]
        if len(self) > _SHOWN_MAX:
            lines.append(f"… and {len(self) - _SHOWN_MAX} more")
        if self._attrs:
            lines.append(f"attributes: {short_names(list(self._attrs), COLUMNS - 16)}")
        return "\n    ".join(short_text(line, COLUMNS - 4) for line in lines)

    def _members_shown(self) -> Iterator[tuple[str, str]]:
        """Names of members, and what each is, of those that are open. I/O: headers of some members, the first time."""
        if self._headers is None:
            self._headers = dict(self._opened())
        for name, is_group in islice(self._kinds.items(), _SHOWN_MAX):
            said = "/" if is_group else self._headers.get(name)
            yield name, said or (self._shown(name) if name in self._members else ": not opened yet")

    def _opened(self) -> Iterator[tuple[str, str]]:
        """The first members, by name, with their types: as many are opened for it as few bytes of headers allow."""
        total = largest = 0
        for name, is_group in islice(self._kinds.items(), _SHOWN_MAX):
            if is_group or name in self._members:
                continue
            document = _document_bytes(os.path.join(self._name, name))
            if total + (document or largest) > (_DOCUMENT_BYTES if document else _FILE_BYTES):
                return
            before = _bytes_read()
            yield name, self._shown(name)
            taken = document or _bytes_read() - before
            total, largest = total + taken, max(largest, taken)

    def _card_facts(self) -> list[NamedFact]:
        facts: list[NamedFact] = [("path", Path(self._name))] if self._name else []
        facts += [(name, "group" if kind == "/" else kind.strip(" :")) for name, kind in self._members_shown()]
        if len(self) > _SHOWN_MAX:
            facts.append(("…", f"{len(self) - _SHOWN_MAX} more"))
        return [*facts, ("attributes", short_names(list(self._attrs)))] if self._attrs else facts

    def __getattr__(self, name: str) -> NoReturn:
        hint = f"; the member is group[{name!r}]" if not name.startswith("_") and name in self._kinds else ""
        raise AttributeError(f"outcore.Group has no attribute {name!r}{hint}")

    def _shown(self, name: str) -> str:
        """Names and lengths of a member's axes, and its type; why it is not read, where that is so."""
        try:
            return _line_of(self[name])
        except (OutcoreError, OSError, ImportError) as error:
            message = str(error).partition(WAY_OUT)[0]
            file, _, reason = message.partition(": ")
            is_here = self._name.startswith(file) or file.startswith(self._name)
            return f": not read: {reason if reason and is_here else message}"


def _document_bytes(path: str) -> int:
    """The length of the document of a Zarr array; 0 where there is none."""
    for name in _DOCUMENTS:
        with suppress(OSError):
            return os.stat(os.path.join(path, name)).st_size
    return 0


def _bytes_read() -> int:
    """Bytes that the session in force has read."""
    counted = current().counters()
    return int(counted["bytes_read"] + counted["metadata_bytes_read"])


def _line_of(member: GroupItem) -> str:
    named = zip(member.dims, member.shape, strict=True)
    axes = ", ".join(f"{name}: {length}" if name else str(length) for name, length in named)
    return f" ({axes}) {member.dtype}"


def group(
    members: Mapping[str, GroupItem] | None = None, /, *, attrs: Annotations | None = None, **more: GroupItem
) -> Group:
    """A group of arrays, dates and groups for `store`: as a mapping, or as keywords where names allow it.

    Annotations of the group are `attrs`; those of an array are its own, as `annotate` gives them. Raises ArgumentError
    for names that are no names of members: empty ones, and those with a slash or a dot in front. I/O: none.

    >>> import outcore as oc
    >>> list(oc.group({"t2m": oc.zeros((2, 3))}, day=oc.arange(2)))
    ['t2m', 'day']
    """
    named = {**(members or {}), **more}
    result = Group("", dict(attrs or {}), {name: isinstance(value, Group) for name, value in named.items()})
    for name, value in named.items():
        if not isinstance(name, str) or not name or {"/", "\0"} & set(name) or name.startswith("."):
            raise ArgumentError(f"group: {name!r} is no name of a member: text without slashes, not after a dot")
        if isinstance(value, Group):
            result._members[name] = value
            continue
        typed = typed_of(value)
        if typed is None and isinstance(value, Mapping):
            raise DTypeError(f"group: {name!r} is a {type(value).__name__}; use group() for a group within the group")
        result._members[name] = Array(node(value)) if typed is None else typed
    return result


__all__ = ["Group", "group"]
