"""Names of files on pages: those of users by the end of their path, those of a session's scratch by what they hold."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping

from outcore._session.trace import ProgramTrace

_SCRATCH = re.compile(r"outcore-scratch-\d+-[0-9a-f]+")


def short(path: str) -> str:
    """The last part of a path; the word "scratch" for files of a session."""
    return "scratch" if is_scratch(path) else os.path.basename(path.rstrip(os.sep)) or path


def is_scratch(path: str) -> bool:
    """Whether a file is one of a session's own, in a scratch folder."""
    return any(_SCRATCH.fullmatch(part) for part in path.split(os.sep))


def scratch_names(traces: Iterable[ProgramTrace]) -> Mapping[str, str]:
    """Names of the scratch files of a run: the stage that has written each, or shape and type of its array."""
    names: dict[str, str] = {}
    for trace in traces:
        written = trace.counted_written()
        for strip in () if trace.occupancy is None else trace.occupancy.arrays:
            for path in filter(is_scratch, strip.names):
                shape = " × ".join(f"{length:,}" for length in strip.shape) or "one number"
                holds = trace.label if path in written else ""
                names.setdefault(path, f"scratch: {holds or f'{shape} {strip.dtype}'}")
    repeated: dict[str, int] = {}
    for path, name in names.items():
        repeated[name] = repeated.get(name, 0) + 1
        if repeated[name] > 1:
            names[path] = f"{name} ({repeated[name]})"
    return names


def shown(path: str, names: Mapping[str, str]) -> str:
    """The name of a file in sentences and charts."""
    return names.get(path) or short(path)


__all__ = ["is_scratch", "scratch_names", "short", "shown"]
