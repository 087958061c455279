"""Plans and runs of nodes: what every computation comes to."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence

from outcore import _core
from outcore._base.files import is_unfinished
from outcore._base.types import NDArray
from outcore._lazy.foreign import check_not_reading
from outcore._run.foresight import UnforeseenError, is_foreseeing
from outcore._session.progress import Progress, of_program
from outcore._session.reached import refused
from outcore._session.record import Outcome
from outcore._session.session import current
from outcore._session.slices import slices_of
from outcore.errors import OutcoreError, ResumeWarning


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
        goes_on = shown is not None and any(
            target is not None and target.get("resume") and is_unfinished(target["path"]) for target in targets
        )
        try:
            program = session.plan(exprs, targets, shown)
        except OutcoreError as error:
            refused(error)
            raise
        for note in program.notes():
            warnings.warn(note, ResumeWarning, stacklevel=3)
        if goes_on and shown is not None:
            _show_resumed(program, shown)
        try:
            with slices_of(exprs):
                return session.run(program, shown)
        finally:
            # It holds the outputs that may be gone on with, and the traceback of an error would hold it.
            del program


def _show_resumed(program: _core.Program, progress: Progress) -> None:
    """Has the progress line say how many tasks an earlier run has done; of several stages that is not known."""
    said = json.loads(program.explain())
    if "passes" not in said:
        progress.go_on("an earlier run")
        return
    total = sum(part["tasks"] for part in said["passes"])
    if total > said["tasks"]:
        progress.go_on(f"{total - said['tasks']:,} of {total:,} tasks")


__all__ = ["plan_and_run"]
