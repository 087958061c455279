"""Files of dates and text: written as the numbers that carry them, and named once their header says what they are.

The engine writes numbers. So it writes them to `new.npy` in a locked folder beside the name, of the kind that its own
outputs are written in; then the header is put right, and all outputs of the call are given their names, or none. Files
that they replace are kept as `old`, with the name in `name`, until all stand: a folder of a process that died is
removed by the next clean-up, as any other.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import numpy as np

from outcore import _core
from outcore._base import files
from outcore._base.system_errors import naming, refusing
from outcore._base.types import DType
from outcore._lazy.node import node
from outcore._lazy.typed import Item, Typed, carried
from outcore._session.record import Outcome
from outcore.errors import (
    ArgumentError,
    ShapeError,
    StorageError,
    TargetExistsError,
    UnsupportedFormatError,
)

_MARK = ".outcore-partial-"
_NEW, _OLD, _NAME = "new.npy", "old", "name"
_ATTEMPTS_MAX = 100
_PREFIX_BYTES = 10  # of version 1: the magic string, the version, the length of the header


def store_typed(
    store: Callable[..., Outcome],
    targets: Mapping[Any, Item],
    overwrite: bool,
    resume: bool,
    chunks: Mapping[str, Sequence[int]] | None,
    progress: bool | None,
) -> Outcome:
    """`store`, which is given, of a mapping in which some arrays are dates or text; all are `.npy` files then.

    Raises UnsupportedFormatError for another ending, ArgumentError for `resume=True`, and what `store` raises.
    """
    for path in targets:
        if isinstance(path, tuple):
            raise UnsupportedFormatError(f"store: a region of {path[0]} beside dates or text, which go to .npy only")
    arrays = {os.fsdecode(path): array for path, array in targets.items()}
    _check(arrays, resume, chunks)
    with ExitStack() as stack:
        outputs = [stack.enter_context(output(path, overwrite)) for path in arrays]
        staged = {part.new: carried(array) for part, array in zip(outputs, arrays.values(), strict=True)}
        with naming({part.new: path for part, path in zip(outputs, arrays, strict=True)}):
            outcome = store(staged, progress=progress)
        for part, array in zip(outputs, arrays.values(), strict=True):
            if isinstance(array, Typed):
                with refusing(part.path, "write the header of"):
                    _write_header(part.new, array.dtype, array.shape)
        publish(outputs)
    return outcome


def _check(arrays: Mapping[str, object], resume: bool, chunks: Mapping[str, Sequence[int]] | None) -> None:
    if resume:
        raise ArgumentError("store: resume=True is not supported for dates and text; store their numbers, x.integers")
    if chunks:
        raise ShapeError(f"store: chunks name {', '.join(map(repr, chunks))}, and beside dates and text all is .npy")
    for path, array in arrays.items():
        if not path.endswith(".npy"):
            what = (
                str(array.dtype) if isinstance(array, Typed) else f"{np.dtype(node(array).dtype)} beside dates or text"
            )
            raise UnsupportedFormatError(f"store: {path} of {what}: only .npy files say what their numbers stand for")
    places = {os.path.realpath(path) for path in arrays}
    if len(places) != len(arrays):
        raise ArgumentError(f"store: {', '.join(arrays)} name one file twice")


class PartialOutput:
    """A file in its folder, and what is needed to take it back once it has got its name."""

    def __init__(self, path: str, prefix: str, overwrite: bool) -> None:
        self.path, self.prefix = path, prefix
        self.new = prefix + _NEW
        self._target = os.path.realpath(path)  # links are followed
        self._old = prefix + _OLD
        self._note = prefix + _NAME
        self._overwrite = overwrite

    def place(self) -> None:
        """Gives the file its name. It leads to what it led to before, or to the new file, at every moment."""
        with refusing(self.path, "replace" if self._overwrite else "create"):
            if not (self._overwrite and os.path.lexists(self._target)):
                os.link(self.new, self._target)  # refuses a name that is taken
                return
            with open(self._note, "wb") as note:
                note.write(os.fsencode(os.path.basename(self._target)))
            os.chmod(self.new, os.stat(self._target).st_mode & 0o7777)
            os.link(self._target, self._old)
            os.replace(self.new, self._target)

    def take_back(self) -> None:
        """Undoes `place`, however far that came: files say it themselves."""
        if os.path.lexists(self._old):
            if not os.path.samefile(self._old, self._target):
                files.replace(self._old, self._target)
        elif os.path.samefile(self.new, self._target):
            files.remove(self._target)

    def sync_name(self) -> None:
        with refusing(self.path, "sync the folder of"):
            files.sync_name(self._target)


@contextmanager
def output(path: str, overwrite: bool, is_planned: bool = False) -> Iterator[PartialOutput]:
    """A place for an output, as `staging` has it. Raises TargetExistsError."""
    target = os.path.realpath(path)
    if os.path.lexists(target) and not (overwrite and os.path.isfile(target)):
        what = "exists; pass overwrite=True to replace it" if os.path.isfile(target) else "is no file"
        raise TargetExistsError(f"{path} {what}", {"path": path})
    with staging(path, target, is_planned) as prefix:
        yield PartialOutput(path, prefix, overwrite)


@contextmanager
def staging(path: str, target: str, is_planned: bool) -> Iterator[str]:
    """The first part of the names of staged files: a locked folder beside a target, or, for plans, which make nothing,
    the folder of the target and a name that nothing has.
    """
    if is_planned:
        yield os.path.join(os.path.dirname(target), f".outcore-planned-{os.urandom(8).hex()}-")
        return
    with partial_folder(path, target) as folder:
        yield os.path.join(folder, "")


@contextmanager
def partial_folder(path: str, target: str) -> Iterator[str]:
    """A locked folder beside a target, which goes in the end; `path` is the name that errors say.

    Work of killed processes beside the target is cleared away first, as for the outputs of the engine.
    """
    beside = os.path.dirname(target)
    with refusing(path, "write beside"):
        if os.path.isdir(beside):
            _core.clean(beside)
        folder, held = _locked_folder(beside)
    try:
        yield folder
    finally:
        files.discard(folder)
        os.close(held)


def _locked_folder(beside: str) -> tuple[str, int]:
    """A new folder, and the lock on it. Until it is locked it looks as if its process were dead, and may be cleared."""
    for _ in range(_ATTEMPTS_MAX):
        folder = os.path.join(beside, f"{_MARK}{os.getpid()}-{os.urandom(8).hex()}")
        os.mkdir(folder, 0o700)
        try:
            held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except FileNotFoundError:
            continue
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.stat(folder)
            return folder, held
        except OSError as error:
            os.close(held)
            if not isinstance(error, (BlockingIOError, FileNotFoundError)):
                raise
    raise StorageError(f"{beside}: {_ATTEMPTS_MAX} new folders were removed by others before they could be locked")


def publish(outputs: Sequence[PartialOutput]) -> None:
    """Names for all outputs, or for none."""
    try:
        for part in outputs:
            part.place()
        for part in outputs:
            part.sync_name()
    except BaseException:
        for part in reversed(outputs):
            with suppress(OSError):  # the first error is the one to tell
                part.take_back()
        raise


def _write_header(path: str, dtype: DType, shape: tuple[int, ...]) -> None:
    """The type and shape in place of those of the numbers; the length of the header, and so all else, stays."""
    said = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    length = int.from_bytes(_core.read_bytes(path, 0, _PREFIX_BYTES)[-2:], "little")
    _core.write_bytes(path, _PREFIX_BYTES, repr(said).encode("latin-1").ljust(length - 1) + b"\n")


__all__ = ["PartialOutput", "output", "partial_folder", "publish", "staging", "store_typed"]
