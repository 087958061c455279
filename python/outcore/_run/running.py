"""Plans and runs of nodes: what every computation comes to."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from outcore import _core
from outcore._base.types import NDArray
from outcore._lazy.foreign import check_not_reading
from outcore._run.foresight import UnforeseenError, is_foreseeing
from outcore._session.progress import of_program
from outcore._session.record import Outcome
from outcore._session.session import current
from outcore._session.slices import slices_of
from outcore.errors import ResumeWarning


def plan_and_run(
    exprs: list[_core.Expr],
    targets: Sequence[_core.Target | None],
    progress: bool | None = None,
) -> tuple[list[NDArray | None], Outcome]:
    """Plans and runs.

    Raises StaleProgramError where other threads take kept tiles from under the plan time after time.
    """
    if is_foreseeing():
        raise UnforeseenError
    check_not_reading()
    session = current()
    with of_program(session.options, progress) as shown:
        program = session.plan(exprs, targets, shown)
        for note in program.notes():
            warnings.warn(note, ResumeWarning, stacklevel=3)
        try:
            with slices_of(exprs):
                return session.run(program, shown)
        finally:
            # It holds the outputs that may be gone on with, and the traceback of an error would hold it.
            del program


__all__ = ["plan_and_run"]
