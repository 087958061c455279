"""Threads beside the engine's."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor


def thread_pool(count: int, name: str = "") -> ThreadPoolExecutor:
    """So many threads, whose names begin with `name`."""
    # The import brings logging, which imports of outcore do without.
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(count, name)


__all__ = ["thread_pool"]
