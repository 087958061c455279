"""Events of a timeline, in a file until the timeline is written: of long programs there are more than memory holds."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from outcore._base.types import JSONObject

_BLOCK_BYTES = 1 << 20


class EventFile:
    """A file without a name, in the folder of the timeline. Events are added by the process that began it alone; an
    error stays until the timeline is written."""

    def __init__(self, path: Path) -> None:
        self._folder, self._process = path.parent, os.getpid()
        self._file: BinaryIO | None = None
        self._error: OSError | None = None
        self._is_empty = True

    def add(self, events: Iterable[JSONObject]) -> None:
        """Adds events behind all others."""
        if self._error is not None or os.getpid() != self._process:
            return
        block, size = list[str](), 0
        try:
            for event in events:
                block.append(("" if self._is_empty else ", ") + json.dumps(event))
                self._is_empty, size = False, size + len(block[-1])
                if size >= _BLOCK_BYTES:
                    self._write("".join(block))
                    block, size = [], 0
            self._write("".join(block))
        except OSError as error:
            self._error = error

    def _write(self, text: str) -> None:
        if self._file is None:
            self._file = _nameless(self._folder)
        content = memoryview(text.encode())
        while content:
            content = content[self._file.write(content) :]

    def text(self) -> Iterator[bytes]:
        """The timeline in blocks. Raises OSError."""
        if self._error is not None:
            raise self._error
        yield b'{"traceEvents": ['
        if self._file is not None:
            at = 0
            # Without a place of the file, which forked processes share.
            while block := os.pread(self._file.fileno(), _BLOCK_BYTES, at):
                yield block
                at += len(block)
        yield b'], "displayTimeUnit": "ms"}'

    def close(self) -> None:
        """Lets go of the file."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _nameless(folder: Path) -> BinaryIO:
    """A file that goes with the process: in a folder, else where temporary files are."""
    import tempfile  # which imports of outcore do without

    try:
        return tempfile.TemporaryFile(dir=folder, buffering=0)
    except OSError:
        return tempfile.TemporaryFile(buffering=0)


def parsed(text: str) -> Iterator[JSONObject]:
    """The objects of a list in JSON, one after the other."""
    decoder = json.JSONDecoder()
    at = text.find("{")
    while at >= 0:
        event, end = decoder.raw_decode(text, at)
        yield event
        at = text.find("{", end)


__all__ = ["EventFile", "parsed"]
