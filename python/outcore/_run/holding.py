"""Arrays whose values are held from one program to the next: in memory, or in files of scratch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from outcore import _core
from outcore._lazy.array import Array
from outcore._run.running import plan_and_run
from outcore._session.record import Outcome
from outcore._session.session import current


def hold(
    arrays: Sequence[Array], on_disk: Sequence[bool], beside: Sequence[Array], progress: bool | None = None
) -> tuple[list[Array], list[Any], Outcome]:
    """The arrays with their values computed, the values of others beside, all by one program, and its outcome.

    A file goes when nothing refers to its array any more.
    """
    core = current()._core
    paths = [core.unused_path() if away else None for away in on_disk]
    targets: list[_core.Target | None] = [
        None if path is None else {"path": path, "overwrite": False, "chunks": None} for path in paths
    ]
    exprs = [array._expr for array in (*arrays, *beside)]
    values, outcome = plan_and_run(exprs, targets + [None] * len(beside), progress)
    held = [
        Array(core.hold(path) if path is not None else _core.from_numpy(value))  # type: ignore[arg-type]
        for path, value in zip(paths, values, strict=False)
    ]
    return held, list(values[len(arrays) :]), outcome


__all__ = ["hold"]
