"""The exception tree. Every error carries a stable `code`, and derives from the builtin a Python user would catch.

The Rust side raises through `from_code`, so both languages agree on the codes and on nothing else.
"""

from __future__ import annotations

import errno
import os
from typing import Any

import numpy as np

from outcore._base.types import JSONObject


class OutcoreError(Exception):
    """The root of all errors outcore raises on purpose.

    `code` is stable across releases; `details` holds the numbers the message speaks of.
    """

    code: str = "outcore"

    def __init__(self, message: str = "", details: JSONObject | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.details: JSONObject = dict(details or {})

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[Any, ...]:
        return from_code, (self.code, self.message, self.details)


class ShapeError(OutcoreError, ValueError):
    """Shapes or axes that do not go together; the message names both sides."""

    code = "shape"


class AxisError(ShapeError, IndexError):
    """An axis that the array has not; a ValueError and an IndexError both, as NumPy's own of this name."""

    code = "axis"


class DTypeError(OutcoreError, TypeError):
    """An element type the operation does not take, or two that have no common type."""

    code = "dtype"


class IndexingError(OutcoreError, IndexError):
    """An index out of bounds, or of a kind outcore does not take."""

    code = "index"


class MemoryLimitError(OutcoreError, MemoryError):
    """A plan that cannot fit its memory limit; refused before it starts.

    `operator` needs `need` bytes where `limit` allow less; `smallest` is the least limit that works. Each is None when
    it is not known.
    """

    code = "memory"

    def of(self, function: str | None) -> MemoryLimitError:
        """The same refusal under the name of the function that was called; the operator is said beside it."""
        operator = self.operator
        if function is None or operator is None or operator == function or not str(self).startswith(f"{operator}: "):
            return self
        text = str(self).removeprefix(f"{operator}: ")
        if "(at " not in text:
            text = text.replace("(", f"(at {operator}; ", 1)
        return MemoryLimitError(f"{function}: {text}", self.details | {"operator": function})

    @property
    def operator(self) -> str | None:
        return self.details.get("operator")

    @property
    def need(self) -> int | None:
        return self.details.get("need")

    @property
    def limit(self) -> int | None:
        return self.details.get("limit")

    @property
    def smallest(self) -> int | None:
        return self.details.get("smallest")


class FormatError(OutcoreError, ValueError):
    """A file that is not what it claims to be, or uses what outcore does not read."""

    code = "format"


class UnsupportedFormatError(FormatError):
    """A file that is what it claims to be, in a way outcore does not read or write."""

    code = "unsupported"


class ArgumentError(OutcoreError, ValueError):
    """A value that the files or the machine cannot follow; the message says which."""

    code = "invalid"


class RangeError(ArgumentError, OverflowError):
    """A Python number beyond the bounds of the element type it is to have."""

    code = "range"


class _FileError(OutcoreError, OSError):
    """An error about a file: `errno`, `strerror` and `filename` are set as Python's own OSError has them."""

    usual_errno: int | None = None  # of the class, where the system named none

    def __init__(self, message: str = "", details: JSONObject | None = None) -> None:
        super().__init__(message, details)
        number = self.details.get("errno")
        self.errno = self.usual_errno if number is None else number
        self.strerror = self.details.get("cause") if self.errno is None else os.strerror(self.errno)
        self.filename = self.details.get("path")


class StorageError(_FileError):
    """A failed read or write; the message names path, offset and cause. The first one stops the run.

    `details` holds what is known of `path`, `offset` (bytes), `action`, `cause` (text) and `errno`.
    """

    code = "io"


class MissingFileError(StorageError, FileNotFoundError):
    """There is nothing at the path of an input; `filename` names it, as for Python's own error."""

    code = "missing"
    usual_errno = errno.ENOENT


class PermissionDeniedError(StorageError, PermissionError):
    """The system does not let this user read or write there; `filename` names the path."""

    code = "permission"
    usual_errno = errno.EACCES


class DiskFullError(StorageError):
    """Outputs and spills need more bytes than the file systems have free: refused before anything is written where that
    shows then, with `need` and `free` bytes in `details`, else the write that failed."""

    code = "space"
    usual_errno = errno.ENOSPC


class TargetExistsError(_FileError, FileExistsError):
    """The output path exists and `overwrite=True` was not given."""

    code = "exists"
    usual_errno = errno.EEXIST


class SourceChangedError(StorageError):
    """A source file changed after it was opened."""

    code = "changed"


class ScratchQuotaError(StorageError):
    """The plan would spill more than `scratch_quota` allows: `need`, `used` and `quota` bytes are in `details`."""

    code = "quota"


class LinAlgError(OutcoreError, np.linalg.LinAlgError):
    """A matrix that has no such factors: singular, not positive definite, or without convergence.

    It derives from NumPy's error of the same name.
    """

    code = "linalg"


class PlanError(OutcoreError, RuntimeError):
    """An expression the planner cannot turn into a program."""

    code = "plan"


class StaleProgramError(PlanError):
    """A program whose start state is gone, because another run of its session came between; planning it again helps."""

    code = "stale"


class ResumeWarning(UserWarning):
    """Work of an earlier run could not be gone on with, and begins anew."""


class InternalError(OutcoreError, RuntimeError):
    """An invariant of outcore's own does not hold. That is a bug: please report it with the message."""

    code = "internal"


class FunctionError(OutcoreError, RuntimeError):
    """A function given to `map_blocks`, or another library's array that was read in blocks, raised: what it raised,
    with its traceback, is the `__cause__`.

    KeyboardInterrupt and SystemExit are not wrapped.
    """

    code = "function"


class SessionError(OutcoreError, RuntimeError):
    """A session that cannot be used any more: it is closed, or it belongs to the process this one was forked from."""

    code = "session"


class ConfigError(OutcoreError, ValueError):
    """An unknown configuration key or a value it cannot take; the message names the nearest key."""

    code = "config"


class Cancelled(OutcoreError):  # noqa: N818 - the word the user meets; it is a state, not a fault
    """The run was stopped from outside. Nothing was left under an output's name."""

    code = "cancelled"


_CLASSES: dict[str, type[OutcoreError]] = {
    kind.code: kind
    for kind in (
        OutcoreError,
        ShapeError,
        AxisError,
        DTypeError,
        IndexingError,
        MemoryLimitError,
        FormatError,
        UnsupportedFormatError,
        ArgumentError,
        RangeError,
        StorageError,
        MissingFileError,
        PermissionDeniedError,
        DiskFullError,
        TargetExistsError,
        SourceChangedError,
        ScratchQuotaError,
        LinAlgError,
        PlanError,
        StaleProgramError,
        InternalError,
        FunctionError,
        SessionError,
        ConfigError,
        Cancelled,
    )
}


def from_code(code: str, message: str, details: JSONObject | None = None) -> OutcoreError:
    """The exception of a stable code, ready to raise; an unknown code gives an `OutcoreError` that carries it."""
    kind = _CLASSES.get(code)
    if kind is not None:
        return kind(message, details)
    error = OutcoreError(message, details)
    error.code = code
    return error


__all__ = [
    "ArgumentError",
    "AxisError",
    "Cancelled",
    "ConfigError",
    "DTypeError",
    "DiskFullError",
    "FormatError",
    "FunctionError",
    "IndexingError",
    "InternalError",
    "LinAlgError",
    "MemoryLimitError",
    "MissingFileError",
    "OutcoreError",
    "PermissionDeniedError",
    "PlanError",
    "RangeError",
    "ResumeWarning",
    "ScratchQuotaError",
    "SessionError",
    "ShapeError",
    "SourceChangedError",
    "StaleProgramError",
    "StorageError",
    "TargetExistsError",
    "UnsupportedFormatError",
    "from_code",
]
