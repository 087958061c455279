"""Folders of Zarr put into a store: what tells of them last, and taken away first where they are replaced."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from outcore._base.urls import url_of
from outcore._objects.mounting import transport_of
from outcore.errors import MissingFileError, PermissionDeniedError, StorageError, TargetExistsError

_DOCUMENTS = ("zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata")


def check_target(url: str, overwrite: bool) -> None:
    """Raises TargetExistsError where objects lie below a URL, unless they may be replaced. I/O: a list."""
    if not overwrite and _keys_below(url):
        raise TargetExistsError(f"{url}: already exists; pass overwrite=True to replace it", {"path": url})


def upload(folder: Path, url: str) -> None:
    """Puts the files of a folder below a URL. Old objects that are not replaced go at the end.

    Until the document of the folder is there, which comes last, nothing below the URL is an array or a group.
    """
    transport, key = transport_of(url), url_of(url).key
    before = _keys_below(url)
    names = [str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()]
    chunks = [name for name in names if _base(name) not in _DOCUMENTS]
    documents = sorted(set(names) - set(chunks), key=lambda name: -name.count("/"))  # the outermost last

    with _refusing(url, "write"):
        transport.delete(name for name in before if _base(name) in _DOCUMENTS)
        transport.put((f"{key}/{name}", folder / name) for name in chunks)
        for name in documents:
            transport.put([(f"{key}/{name}", folder / name)])
        kept = {f"{key}/{name}" for name in names}
        transport.delete(name for name in before if name not in kept and _base(name) not in _DOCUMENTS)


def _base(name: str) -> str:
    return name.rpartition("/")[2]


def _keys_below(url: str) -> list[str]:
    """The keys of all objects below a URL."""
    keys: list[str] = []
    with _refusing(url, "list"):
        page = transport_of(url).pages(f"{url_of(url).key}/")
        while (part := page()) is not None:
            keys += [name for name, _, _ in part]
    return keys


@contextmanager
def _refusing(url: str, action: str) -> Iterator[None]:
    """Failed requests as outcore's errors, with the URL."""
    try:
        yield
    except OSError as error:
        kinds: dict[type[OSError], type[StorageError]] = {
            FileNotFoundError: MissingFileError,
            PermissionError: PermissionDeniedError,
        }
        details = {"path": url, "action": action, "cause": str(error), "errno": None}
        raise kinds.get(type(error), StorageError)(f"{url}: cannot {action}: {error}", details) from None


__all__ = ["check_target", "upload"]
