"""Objects as Python reads them, and failed requests as outcore's errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from outcore._base.urls import url_of
from outcore._objects.mounting import transport_of
from outcore.errors import MissingFileError, PermissionDeniedError, StorageError

if TYPE_CHECKING:
    from outcore._objects.transport import ObjectFacts


@contextmanager
def asking(url: str, action: str) -> Iterator[None]:
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


def content_of(url: str, most: int) -> bytes:
    """All of an object. Raises MissingFileError, PermissionDeniedError, StorageError, as for more than `most` bytes."""
    with asking(url, "read"):
        return transport_of(url).content(url_of(url).key, most)[0]


def facts_of(url: str) -> ObjectFacts:
    """The length and the tag of an object. Raises MissingFileError, PermissionDeniedError, StorageError."""
    with asking(url, "open"):
        return transport_of(url).facts(url_of(url).key)


__all__ = ["asking", "content_of", "facts_of"]
