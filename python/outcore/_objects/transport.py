"""Requests to a bucket or a host, as the engine makes them: from many threads, each until it is answered."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
import obstore
from obstore.exceptions import (
    AlreadyExistsError,
    NotFoundError,
    NotSupportedError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
)

from outcore._base.types import NDArray
from outcore._objects.awaiting import await_each
from outcore._objects.secrets import without_secrets

if TYPE_CHECKING:
    from obstore import GetResult, UpdateVersion
    from obstore.store import ObjectStore

ObjectFacts: TypeAlias = "tuple[int, str]"  # the length of an object, and its entity tag or what stands for one
_Answer = TypeVar("_Answer")
_PAGE = 1000  # keys of one answer, at most, of S3
_PART_BYTES = 1 << 18  # of an answer, in memory at once: lists of more are touched anew each time


def _parts_of(result: GetResult, length: int) -> Iterator[obstore.Bytes]:
    """The bytes of an answer. Of a small one at once: a stream takes as long again to begin."""
    if length <= _PART_BYTES:
        yield result.bytes()
        return
    yield from result.stream(min_chunk_size=_PART_BYTES)


class Transport:
    """Requests to one store.

    Errors are FileNotFoundError, PermissionError and OSError, in words without credentials.
    """

    def __init__(self, store: ObjectStore, secrets: Sequence[str] = (), retries: int = 0) -> None:
        self._store, self._secrets, self._retries = store, tuple(secrets), retries

    def __repr__(self) -> str:
        return f"{type(self).__name__}({type(self._store).__name__})"

    def facts(self, key: str) -> ObjectFacts:
        """An object's length and tag."""
        return self._answered(lambda: _facts_of(obstore.head(self._store, key)))

    def read(self, key: str, start: int, end: int) -> tuple[ObjectFacts, Iterator[NDArray]]:
        """Facts of an object, and its bytes in parts, fewer where the object ends before."""
        result = self._get(key, start, end)
        return _facts_of(result.meta), self._parts(key, result, end)

    def _get(self, key: str, start: int, end: int) -> GetResult:
        return self._answered(lambda: obstore.get(self._store, key, options={"range": (start, end)}))

    def _parts(self, key: str, result: GetResult, end: int) -> Iterator[NDArray]:
        """The bytes of an answer. One that is cut is gone on with: by obstore where the object has a tag, else here."""
        facts, (at, end) = _facts_of(result.meta), (result.range[0], min(end, result.range[1]))
        attempts = 0 if result.meta["e_tag"] else self._retries
        while at < end:
            parts = _parts_of(result, end - at)
            try:
                while (part := self._answered(partial(next, parts, None))) is not None:
                    yield np.frombuffer(part, np.uint8)
                    at += len(part)
                return
            except OSError:
                if attempts == 0 or at >= end:
                    raise
            attempts -= 1
            result = self._get(key, at, end)
            if _facts_of(result.meta) != facts:
                raise OSError("another object than when its first bytes were read")

    def content(self, key: str, most: int) -> tuple[bytes, ObjectFacts]:
        """All of an object. Raises OSError for one of more than `most` bytes, before those are read."""
        result = self._answered(lambda: obstore.get(self._store, key))
        facts = _facts_of(result.meta)
        if facts[0] > most:
            raise OSError(f"{facts[0]} bytes are too many")
        return b"".join(part.tobytes() for part in self._parts(key, result, facts[0])), facts

    def pages(self, prefix: str) -> Callable[[], list[tuple[str, int, str]] | None]:
        """The keys below a prefix with lengths and tags, some at each call; None after the last."""
        listed = self._answered(lambda: iter(obstore.list(self._store, prefix.rstrip("/") or None, chunk_size=_PAGE)))

        def page() -> list[tuple[str, int, str]] | None:
            metas = self._answered(lambda: next(listed, None))
            return None if metas is None else [(meta["path"], *_facts_of(meta)) for meta in metas]

        return page

    def folders(self, prefix: str) -> list[str]:
        """Names of the folders right below a prefix."""
        listed = self._answered(lambda: obstore.list_with_delimiter(self._store, prefix.rstrip("/") or None))
        return [name.rstrip("/").rpartition("/")[2] for name in listed["common_prefixes"]]

    def put(self, files: Iterable[tuple[str, Path]]) -> None:
        """Objects of the contents of files, by key, some at once; each in parts where it is large.

        All of an object appears or nothing. An interrupt, or the first failure, ends the requests under way.
        """

        async def put(pair: tuple[str, Path]) -> None:
            await obstore.put_async(self._store, pair[0], pair[1], max_concurrency=1)

        self._answered(lambda: await_each(put, files))

    def create(self, key: str, content: bytes) -> bool:
        """Makes an object where there is none; whether there was none. True of a store that cannot tell."""

        def create() -> bool:
            try:
                obstore.put(self._store, key, content, mode="create")
            except AlreadyExistsError:
                return False
            except (NotImplementedError, NotSupportedError):
                return True
            return True

        return self._answered(create)

    def replace(self, key: str, old: bytes, new: bytes) -> bool:
        """Puts other content into an object; whether that had the old one until then, and the store can tell."""

        def replace() -> bool:
            try:
                result = obstore.get(self._store, key)
                known, content = result.meta, result.bytes().to_bytes()
                if content != old:
                    return False
                version: UpdateVersion = {"e_tag": known["e_tag"]}
                if known["version"] is not None:
                    version["version"] = known["version"]
                obstore.put(self._store, key, new, mode=version, use_multipart=False)
            except (NotFoundError, PreconditionError, NotImplementedError, NotSupportedError):
                return False
            return True

        return self._answered(replace)

    def delete(self, keys: Iterable[str]) -> None:
        """Removes objects, some at once, as `put` makes them."""

        async def delete(key: str) -> None:
            await obstore.delete_async(self._store, key)

        self._answered(lambda: await_each(delete, keys))

    def _answered(self, request: Callable[[], _Answer]) -> _Answer:
        try:
            return request()
        except (NotFoundError, FileNotFoundError):
            failure: OSError = FileNotFoundError("no such object")
        except (PermissionDeniedError, UnauthenticatedError, PermissionError) as error:
            failure = PermissionError(self._shown(error))
        except Exception as error:
            failure = OSError(self._shown(error))
        # Behind the handler: the error of the transport, which may show credentials, is no context of this one.
        raise failure

    def _shown(self, error: Exception) -> str:
        """The first line of an error, without the server's document and without credentials."""
        line = re.split(r"[\n<]", str(error))[0].strip().rstrip(":")
        return without_secrets(line, self._secrets) or type(error).__name__


def _facts_of(meta: Any) -> ObjectFacts:
    """A weak tag, or none, is one together with the time of the last change, to the second: lists and heads agree."""
    tag: str = meta["e_tag"] or ""
    if not tag or tag.startswith("W/"):
        tag = f"{tag}@{int(meta['last_modified'].timestamp())}"
    return meta["size"], tag


__all__ = ["ObjectFacts", "Transport"]
