"""Memory of the session for work that pyarrow does beside programs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from outcore import _core
from outcore._session.session import check_room, current, leave_room


@contextmanager
def working(what: str, bytes: int) -> Iterator[None]:
    """So much memory is reserved meanwhile, and kept tiles give way to it. Raises MemoryLimitError, naming `what`.

    Memory that pyarrow's pool keeps is given back in the end."""
    check_room(what, bytes)
    leave_room(bytes)
    memory = _core.EntriesMemory(current()._core)
    memory.cover(bytes)
    try:
        yield
    finally:
        del memory
        import pyarrow as pa

        pa.default_memory_pool().release_unused()


__all__ = ["working"]
