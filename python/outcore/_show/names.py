"""Names of files on pages: those of users by the end of their path, those of a session's scratch by what they hold."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence

from outcore._session.trace import ArrayStrip, ProgramTrace

_SCRATCH = re.compile(r"outcore-scratch-\d+-[0-9a-f]+")


def short(path: str) -> str:
    """The last part of a path; the word "scratch" for files of a session."""
    return "scratch" if is_scratch(path) else os.path.basename(path.rstrip(os.sep)) or path


def short_names(paths: Sequence[str]) -> dict[str, str]:
    """Each path by as many of its last parts as tell it from the others."""
    names = {}
    for path in paths:
        parts = path.split(os.sep)
        count = 1
        while count < len(parts) and any(
            other.split(os.sep)[-count:] == parts[-count:] for other in paths if other != path
        ):
            count += 1
        names[path] = os.sep.join(parts[-count:])
    return names


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


def strip_names(strips: Sequence[ArrayStrip], variables: Mapping[str, str]) -> Mapping[int, str]:
    """A name for each array by its number: of a variable, or by as many parts of its path as tell files apart; the same
    array cut in several ways by shape, by tile where the shapes are alike, else by number."""
    ends = short_names(sorted({strip.names[0] for strip in strips if strip.names}))

    def by_shape(strip: ArrayStrip, lengths: Sequence[int]) -> str:
        return f"{plain[strip.number]}, {'×'.join(map(str, lengths))}"

    plain = {strip.number: _plain(strip, variables, ends) for strip in strips}
    shapes = {strip.number: by_shape(strip, strip.shape) for strip in strips}
    tiles = {strip.number: f"{by_shape(strip, strip.tile)} tiles" for strip in strips}
    numbers = {strip.number: f"{plain[strip.number]} ({strip.number})" for strip in strips}
    return {
        strip.number: next(
            (names[strip.number] for names in (plain, shapes, tiles) if _is_only(strip, names, plain)),
            numbers[strip.number],
        )
        for strip in strips
    }


def _plain(strip: ArrayStrip, variables: Mapping[str, str], ends: Mapping[str, str]) -> str:
    name = strip.names[0] if strip.names else ""
    return variables.get(name) or ("scratch" if is_scratch(name) else ends.get(name, name))


def _is_only(strip: ArrayStrip, names: Mapping[int, str], plain: Mapping[int, str]) -> bool:
    """Whether names tell an array from all others of the same plain name."""
    alike = [names[number] for number, name in plain.items() if name == plain[strip.number]]
    return len(set(alike)) == len(alike)


def shown(path: str, names: Mapping[str, str]) -> str:
    """The name of a file in sentences and charts."""
    return names.get(path) or short(path)


__all__ = ["is_scratch", "scratch_names", "short", "short_names", "shown", "strip_names"]
