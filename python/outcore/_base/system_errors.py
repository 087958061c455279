"""The system's errors as outcore's, with their facts, where Python itself reads and writes files."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

from outcore.errors import (
    DiskFullError,
    MissingFileError,
    OutcoreError,
    PermissionDeniedError,
    StorageError,
    TargetExistsError,
)

_KINDS: dict[int | None, type[OutcoreError]] = {
    errno.EEXIST: TargetExistsError,
    errno.ENOENT: MissingFileError,
    errno.EACCES: PermissionDeniedError,
    errno.EPERM: PermissionDeniedError,
    errno.ENOSPC: DiskFullError,
    errno.EDQUOT: DiskFullError,
}
# Words between the reason of a refusal and the way to read the file by its own library.
WAY_OUT = "; by its own library: "


@contextmanager
def refusing(path: str | os.PathLike[str], action: str) -> Iterator[None]:
    """Failures of the system at a file ("read", "write", "create", …) as outcore's errors, which name both.

    Errors of Python's own that have no number of the system's pass as they are.
    """
    try:
        yield
    except OutcoreError:
        raise
    except OSError as error:
        if error.errno is None:
            raise
        details = {"path": str(path), "action": action, "cause": error.strerror, "errno": error.errno}
        kind = _KINDS.get(error.errno, StorageError)
        raise kind(f"{path}: cannot {action}: {error.strerror}", details) from None


__all__ = ["WAY_OUT", "refusing"]
