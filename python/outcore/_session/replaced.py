"""Arrays that were stored over files which they were made of: later expressions read their values from there."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from threading import Lock

from outcore import _core

_REMEMBERED_MAX = 256
_lock = Lock()
# Arrays that were stored, by digest, and the arrays that they are now.
_stored: OrderedDict[str, _core.Expr] = OrderedDict()


def is_gone(stored: _core.Expr, targets: Iterable[str]) -> bool:
    """Whether one of the files that an array is made of was among the targets of its own call."""
    replaced = {os.path.realpath(path) for path in targets}
    return any(os.path.realpath(path) in replaced for path in _core.sources(stored))


def remember(stored: _core.Expr, now: _core.Expr) -> None:
    """Has an array that was stored be read from where its values are now."""
    with _lock:
        _stored[stored.digest] = now
        _stored.move_to_end(stored.digest)
        while len(_stored) > _REMEMBERED_MAX:
            _stored.popitem(last=False)


def read_back(nodes: Sequence[_core.Expr]) -> list[_core.Expr]:
    """The nodes, over what was stored where that is below them."""
    with _lock:
        known = dict(_stored)
    return _core.substituted(nodes, known) if known else list(nodes)


__all__ = ["is_gone", "read_back", "remember"]
