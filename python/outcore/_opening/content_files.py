"""Files in scratch of what documents hold themselves, for chunks in that."""

from __future__ import annotations

import atexit
import os

from outcore._base.system_errors import refusing
from outcore._session.session import Session, configured

_written: dict[bytes, tuple[Session, str]] = {}


def content_file(content: bytes, document: str) -> str:
    """A file in scratch with a content, named after the document that has it; one for each content, until the process
    ends. Raises StorageError. I/O: writes the content."""
    from hashlib import blake2b  # the package loads NumPy alone

    name = blake2b(content).digest()
    if name not in _written or not os.path.exists(_written[name][1]):
        session = configured()
        path = f"{session._core.unused_path()}-{os.path.basename(document)}"  # errors of chunks name the document
        with refusing(path, "write"), open(path, "wb") as file:
            file.write(content)
        _written[name] = session, path
    return _written[name][1]


atexit.register(_written.clear)
os.register_at_fork(after_in_child=_written.clear)

__all__ = ["content_file"]
