"""URLs among paths: which names are URLs, and the refusal of those where files alone will do."""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from outcore.errors import ArgumentError, UnsupportedFormatError

SCHEMES = ("s3", "gs", "https", "http")
_URL = re.compile(r"([a-z][a-z0-9+.-]*)://([^/]*)(/.*)?", re.DOTALL)


class Url(NamedTuple):
    """A bucket or a host, and the key of an object or a folder there."""

    scheme: str
    authority: str
    key: str

    @property
    def root(self) -> str:
        """The URL of the bucket or the host."""
        return f"{self.scheme}://{self.authority}"

    @property
    def text(self) -> str:
        """The URL without a slash at the end."""
        return f"{self.root}/{self.key}" if self.key else self.root


def is_url(name: object) -> bool:
    """Whether a path is a URL."""
    return isinstance(name, str) and _URL.fullmatch(name) is not None


def url_of(name: str) -> Url:
    """The parts of a URL.

    Raises ArgumentError for schemes that are not read, for URLs without a bucket or a host, and for those with
    credentials in them, which are never shown.
    """
    match = _URL.fullmatch(name)
    scheme, authority, key = match.groups(default="") if match else ("", "", "")
    if scheme not in SCHEMES:
        instead = ", and a local file by its path" if scheme == "file" else ""
        raise ArgumentError(f"open: {scheme or 'no scheme'}:// is not read; {', '.join(SCHEMES)} are{instead}")
    host = authority.rpartition("@")[2]
    if host != authority:
        raise ArgumentError(f"open: {scheme}://…@{host}: credentials in a URL; pass them as storage_options")
    if not authority:
        raise ArgumentError(f"open: {name}: names no {'bucket' if scheme in ('s3', 'gs') else 'host'}")
    if scheme in ("http", "https") and {"?", "#"} & set(key):
        shown = re.split("[?#]", name)[0]
        raise ArgumentError(f"open: {shown}?…: a URL with a query or a fragment, which is not read")
    return Url(scheme, authority, key.strip("/"))


def refuse_url(path: object, what: str) -> None:
    """Raises UnsupportedFormatError for a URL where files alone are written or read."""
    name = os.fspath(path) if isinstance(path, os.PathLike) else path
    if is_url(name):
        shown = url_of(str(name)).text
        raise UnsupportedFormatError(f"{shown}: {what}; copy it to a file first", {"path": shown})


__all__ = ["SCHEMES", "Url", "is_url", "refuse_url", "url_of"]
