"""The limits in force, for those who build expressions."""

from __future__ import annotations

from outcore._session.session import current


def memory_limit() -> int:
    """Bytes that the session in use bounds the process by."""
    return int(current().options["memory_limit"])


__all__ = ["memory_limit"]
