"""Requests to a bucket or a host, as the engine asks for them: from many threads, each until it is answered."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import obstore
from obstore.exceptions import NotFoundError, PermissionDeniedError, UnauthenticatedError

from outcore._base.threads import thread_pool
from outcore._base.types import NDArray

if TYPE_CHECKING:
    from obstore.store import ObjectStore

ObjectFacts: TypeAlias = "tuple[int, str]"  # the length of an object, and its entity tag or what stands for one
_PAGE = 1000  # keys of one answer, at most, of S3
_HEADS = 32  # requests at once, where objects are asked for one by one
_SECRET_BYTES_MIN = 4
_SECRETS = re.compile("KEY|SECRET|TOKEN|PASSWORD|CREDENTIAL")


class Transport:
    """Requests to one store.

    Errors are FileNotFoundError, PermissionError and OSError, in words without credentials.
    """

    def __init__(self, store: ObjectStore, secrets: Sequence[str] = ()) -> None:
        self._store, self._secrets = store, tuple(secrets)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({type(self._store).__name__})"

    def facts(self, key: str) -> ObjectFacts:
        """An object's length and tag."""
        with self._answered():
            return _facts_of(obstore.head(self._store, key))

    def read(self, key: str, start: int, end: int) -> tuple[NDArray, ObjectFacts]:
        """Bytes of an object, fewer where the object ends before, and what the object was then."""
        with self._answered():
            result = obstore.get(self._store, key, options={"range": (start, end)})
            return np.frombuffer(memoryview(result.bytes()), np.uint8), _facts_of(result.meta)

    def content(self, key: str, most: int) -> tuple[bytes, ObjectFacts]:
        """All of an object. Raises OSError for one of more than `most` bytes, before those are read."""
        with self._answered():
            result = obstore.get(self._store, key)
            facts = _facts_of(result.meta)
            if facts[0] > most:
                raise OSError(f"{facts[0]} bytes are too many")
            return bytes(result.bytes()), facts

    def pages(self, prefix: str) -> Callable[[], list[tuple[str, int, str]] | None]:
        """The keys below a prefix with lengths and tags, some at each call; None after the last."""
        with self._answered():
            listed = iter(obstore.list(self._store, prefix.rstrip("/") or None, chunk_size=_PAGE))

        def page() -> list[tuple[str, int, str]] | None:
            with self._answered():
                metas = next(listed, None)
            return None if metas is None else [(meta["path"], *_facts_of(meta)) for meta in metas]

        return page

    def folders(self, prefix: str) -> list[str]:
        """Names of the folders right below a prefix."""
        with self._answered():
            listed = obstore.list_with_delimiter(self._store, prefix.rstrip("/") or None)
        return [name.rstrip("/").rpartition("/")[2] for name in listed["common_prefixes"]]

    def put(self, key: str, file: Path) -> None:
        """An object of the content of a file, in parts where that is large; all of it appears or nothing."""
        with self._answered():
            obstore.put(self._store, key, file, max_concurrency=1)

    def delete(self, key: str) -> None:
        """Removes an object."""
        with self._answered():
            obstore.delete(self._store, key)

    def facts_of_many(self, keys: Sequence[str]) -> list[ObjectFacts | None]:
        """Lengths and tags of many objects, several requests at once; None for those that are not there."""
        with thread_pool(min(_HEADS, max(len(keys), 1))) as threads:
            return list(threads.map(self._facts_or_none, keys))

    def _facts_or_none(self, key: str) -> ObjectFacts | None:
        try:
            return self.facts(key)
        except FileNotFoundError:
            return None

    @contextmanager
    def _answered(self) -> Iterator[None]:
        try:
            yield
        except (NotFoundError, FileNotFoundError):
            raise FileNotFoundError("no such object") from None
        except (PermissionDeniedError, UnauthenticatedError, PermissionError) as error:
            raise PermissionError(self._shown(error)) from None
        except Exception as error:
            raise OSError(self._shown(error)) from None

    def _shown(self, error: Exception) -> str:
        """The first line of an error, without the server's document and without credentials."""
        line = re.split(r"[\n<]", str(error))[0].strip().rstrip(":")
        for secret in self._secrets + secrets_of(os.environ.items()):
            line = line.replace(secret, "…")
        return line or type(error).__name__


def secrets_of(options: Any) -> tuple[str, ...]:
    """The values of options whose names are those of credentials."""
    return tuple(
        value
        for name, value in options
        if isinstance(value, str) and len(value) >= _SECRET_BYTES_MIN and _SECRETS.search(str(name).upper())
    )


def _facts_of(meta: Any) -> ObjectFacts:
    """A weak tag, or none, is one together with the time of the last change, to the second: lists and heads agree."""
    tag: str = meta["e_tag"] or ""
    if not tag or tag.startswith("W/"):
        tag = f"{tag}@{int(meta['last_modified'].timestamp())}"
    return meta["size"], tag


__all__ = ["ObjectFacts", "Transport", "secrets_of"]
