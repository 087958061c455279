"""Folders of Zarr put into a store: what tells of them last, and taken away first where they are replaced.

One writer puts objects below a URL at a time: each makes an object that names its process and itself, which a store
refuses where there is one, and removes that at its end.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from outcore._base.urls import url_of
from outcore._objects.asking import asking
from outcore._objects.mounting import transport_of
from outcore.errors import TargetExistsError

if TYPE_CHECKING:
    from outcore._objects.transport import Transport

_NAME_BYTES_MAX, _ATTEMPTS = 4096, 3
_WRITER = ".outcore-writer"  # the object that names the process that writes below a URL
_writers: set[str] = set()  # names of those of this process
_DOCUMENTS = ("zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata")


def check_target(url: str, overwrite: bool) -> None:
    """Raises TargetExistsError where objects lie below a URL, unless they may be replaced. I/O: a list."""
    if not overwrite and _keys_below(url):
        raise TargetExistsError(f"{url}: already exists; pass overwrite=True to replace it", {"path": url})


def upload(folder: Path, url: str, overwrite: bool) -> None:
    """Puts the files of a folder below a URL. Old objects that are not replaced go at the end.

    Until the document of the folder is there, which comes last, nothing below the URL is an array or a group. Raises
    StorageError where another writer is at it, TargetExistsError where one has been meanwhile.
    """
    with _sole_writer(url):
        check_target(url, overwrite)
        _put_all(folder, url)


def _put_all(folder: Path, url: str) -> None:
    transport, key = transport_of(url), url_of(url).key
    before = _keys_below(url)
    names = [str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()]
    chunks = [name for name in names if _base(name) not in _DOCUMENTS]
    documents = sorted(set(names) - set(chunks), key=lambda name: -name.count("/"))  # the outermost last

    with asking(url, "write"):
        transport.delete(name for name in before if _base(name) in _DOCUMENTS)
        transport.put((f"{key}/{name}", folder / name) for name in chunks)
        for name in documents:
            transport.put([(f"{key}/{name}", folder / name)])
        kept = {f"{key}/{name}" for name in names}
        transport.delete(name for name in before if name not in kept and _base(name) not in _DOCUMENTS)


@contextmanager
def _sole_writer(url: str) -> Iterator[None]:
    """Raises StorageError for a second writer, unless the first was one of this machine that has ended.

    Stores that cannot make an object under the condition that there is none have writers side by side.
    """
    transport, key = transport_of(url), f"{url_of(url).key}/{_WRITER}"
    name = f"{_process_name('self')} {os.urandom(8).hex()}"
    _writers.add(name)
    try:
        with asking(url, "write"):
            _claim(transport, key, name)
        try:
            yield
        finally:
            with asking(url, "write"):
                transport.delete([key])
    finally:
        _writers.discard(name)


def _claim(transport: Transport, key: str, name: str) -> None:
    """Makes the object with the name of a writer. Raises OSError where another is at it."""
    for _ in range(_ATTEMPTS):
        if transport.create(key, name.encode()):
            return
        try:
            owner = transport.content(key, _NAME_BYTES_MAX)[0]
        except FileNotFoundError:  # that writer ended just now
            continue
        is_own = owner == name.encode()  # made by a request whose answer was lost
        if is_own or (_is_lost(owner.decode("utf-8", "replace")) and transport.replace(key, owner, name.encode())):
            return
        break
    raise OSError(f"another writer is at it, or was killed: remove the object {_WRITER} there if none is")


def _process_name(process: str) -> str:
    """The start of this boot, the namespace and the number of a process, and the clock tick at which it began; empty
    where none runs."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        space = os.stat("/proc/self/ns/pid").st_ino  # containers number their processes alike
        number, behind = Path(f"/proc/{process}/stat").read_text().split(" ", 1)
    except OSError:
        return ""
    return f"{boot} {space} {number} {behind.rpartition(')')[2].split()[19]}"


def _is_lost(owner: str) -> bool:
    """Whether a name is of a writer of this boot and namespace that has ended: its process, or it in this one."""
    process, _, _ = owner.rpartition(" ")
    mine, parts = _process_name("self"), process.split(" ")
    if not mine or len(parts) != 4 or parts[:2] != mine.split(" ")[:2] or not parts[2].isdecimal():
        return False
    return owner not in _writers if process == mine else _process_name(parts[2]) != process


def _base(name: str) -> str:
    return name.rpartition("/")[2]


def _keys_below(url: str) -> list[str]:
    """The keys of all objects below a URL."""
    keys: list[str] = []
    with asking(url, "list"):
        page = transport_of(url).pages(f"{url_of(url).key}/")
        while (part := page()) is not None:
            keys += [name for name, _, _ in part if _base(name) != _WRITER]
    return keys


__all__ = ["check_target", "upload"]
