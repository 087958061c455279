"""Files of lines, some of them at a time."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from typing import IO, Any, TypeVar

from outcore import _core
from outcore._base.threads import thread_pool
from outcore._base.types import NDArray
from outcore._session.session import current
from outcore.errors import FormatError

Columns = list[NDArray]
T = TypeVar("T")

# Text that is read at once.
_BLOCK = 1 << 20
# The byte order mark of some editors' files, in UTF-8.
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# Bytes of a line: what has no newlines is not to fill memory.
LINE_MAX = 16 << 20
_END: Any = object()


def blocks_of(path: str | os.PathLike[str], file: IO[bytes]) -> Iterator[bytes]:
    """The file in whole lines, some at a time, ending with newlines. Raises FormatError for a line above 16 MiB."""
    tail = b""
    while block := file.read(_BLOCK):
        cut = block.rfind(b"\n") + 1
        if not cut:
            tail += block
            if len(tail) > LINE_MAX:
                raise FormatError(f"{path}: a line is longer than {LINE_MAX} bytes")
            continue
        yield tail + block[:cut]
        tail = block[cut:]
    if tail:
        yield tail + b"\n"


@contextmanager
def ahead(items: Iterable[T]) -> Iterator[Iterator[T]]:
    """The same, each made by another thread while the one before is worked on; the thread ends with the context."""
    source = iter(items)
    with thread_pool(1) as other:

        def begin() -> Any:
            # The session in use is that of the context.
            return other.submit(copy_context().run, lambda: next(source, _END))

        def made() -> Iterator[T]:
            following = begin()
            while (item := following.result()) is not _END:
                following = begin()
                yield item

        yield made()


def parse_behind(lines: _core.TextLines, done: int, blocks: Iterable[bytes]) -> Iterator[Columns]:
    """The columns of each block but of so many that are done: of those only lines are counted, once one of them has
    told how many numbers these have. Blocks before any line with numbers do not count."""
    session = current()._core
    place = 0
    for block in blocks:
        if lines.is_begun and place < done:
            lines.skip(block.count(b"\n"))
        else:
            columns = lines.parse(session, block)
            if not lines.is_begun:
                continue
            if place >= done:
                yield columns
        place += 1


__all__ = ["BYTE_ORDER_MARK", "LINE_MAX", "Columns", "ahead", "blocks_of", "parse_behind"]
