"""The system's errors as outcore's, with their facts, where Python itself reads and writes files."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from outcore.errors import (
    DiskFullError,
    MissingFileError,
    OutcoreError,
    PermissionDeniedError,
    StorageError,
    TargetExistsError,
    from_code,
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
        cause = os.strerror(error.errno)  # libraries of C put other text into the error
        details = {"path": str(path), "action": action, "cause": cause, "errno": error.errno}
        kind = _KINDS.get(error.errno, StorageError)
        raise kind(f"{path}: cannot {action}: {cause}", details) from None


@contextmanager
def naming(names: Mapping[str, str]) -> Iterator[None]:
    """Errors of outcore with the names of outputs in place of the paths at which these are staged."""
    try:
        yield
    except OutcoreError as error:
        text, details = _named(str(error), names), error.details
        if text == str(error):
            raise
        details = {key: _named(value, names) if isinstance(value, str) else value for key, value in details.items()}
        raise from_code(error.code, text, details) from None


def _named(text: str, names: Mapping[str, str]) -> str:
    for path, name in names.items():
        text = text.replace(path, name)
    return text


__all__ = ["WAY_OUT", "naming", "refusing"]
