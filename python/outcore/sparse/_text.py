"""Files of lines, some of them at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import IO, Any

import numpy.typing as npt

from outcore import _core

Columns = list[npt.NDArray[Any]]

# Text that is read at once.
_BLOCK = 1 << 20


def blocks_of(file: IO[bytes]) -> Iterator[bytes]:
    """The file in whole lines, some at a time, each ending with a newline."""
    rest = b""
    while block := file.read(_BLOCK):
        cut = block.rfind(b"\n") + 1
        if not cut:
            rest += block
            continue
        yield rest + block[:cut]
        rest = block[cut:]
    if rest:
        yield rest + b"\n"


def parse_behind(lines: _core.TextLines, done: int, blocks: Iterable[bytes]) -> Iterator[Columns]:
    """The columns of each block but of so many that are done: of those only lines are counted, once one of them has
    told how many numbers these have. Blocks before any line with numbers do not count."""
    from outcore._session import current

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


__all__ = ["Columns", "blocks_of", "parse_behind"]
