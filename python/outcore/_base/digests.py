"""Digests of bytes, which tell arrays and work of one process from those of another."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hashlib import blake2b


def digest(content: bytes = b"", *, size: int = 64) -> blake2b:
    """BLAKE2b of content, and of what it is updated by, in `size` bytes."""
    from hashlib import blake2b  # and with it OpenSSL, which imports of outcore do without

    return blake2b(content, digest_size=size)


__all__ = ["digest"]
