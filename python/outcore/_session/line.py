"""The line of progress as text: as much of the figures as a width has room for, the most important first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from outcore._base.sizes import format_size
from outcore._session.figures import Figures, LoopFigures, named

_METER_CELLS = (20, 10)
#: Characters that a terminal may lack, and others in their place.
_PLAIN = str.maketrans({"━": "=", "─": "-", "›": ">", "…": "~", "·": "-", "≤": "<"})


class LinePart(NamedTuple):
    """A part of the line: its texts from the longest to the shortest, and how important each is: a text gives way to
    the next before all that are more important."""

    texts: Sequence[str]
    importance: Sequence[int]


def text_width(text: str) -> int:
    """Cells that a text takes on a terminal."""
    if text.isascii():
        return len(text)
    import unicodedata  # has the names of all characters, which few need

    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)
    return len(text) + wide - sum(unicodedata.combining(letter) > 0 for letter in text)


def printable(text: str, encoding: str = "utf-8") -> str:
    """A text of one line without control characters, in letters of an encoding."""
    shown = "".join(letter if letter.isprintable() else "?" for letter in text)
    try:
        shown.encode(encoding)
    except UnicodeEncodeError:
        return shown.translate(_PLAIN).encode(encoding, "replace").decode(encoding)
    return shown


def clock(seconds: float) -> str:
    """Hours, minutes and seconds, as a clock shows them."""
    minutes, second = divmod(math.ceil(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


def time_left(figures: Figures, now: float) -> str:
    """The rest of the time, in words; nothing where it is not known."""
    left = figures.seconds_left(now)
    if left is None:
        return ""
    is_whole = figures.is_one_program and not figures.loops
    of = " of this program" if figures.is_program_alone and not is_whole else ""
    return f"at most {clock(left)} left" if figures.is_bound else f"{clock(left)} left{of}"


def loop_text(loop: LoopFigures, *, has_values: bool = True) -> str:
    """A loop, its step and its named values, in words."""
    step = f"{loop.unit} {loop.step:,}" + ("" if loop.most is None else f" of {loop.most:,}")
    name = f"{loop.name} " if loop.name else ""
    values = f", {named(loop.values)}" if has_values and loop.values else ""
    return f"{name}{step if loop.step else 'begins' if name else ''}{values}"


def amount(figures: Figures) -> str:
    """The bytes of the program that are moved, of all that will be."""
    if not figures.bytes_total:
        return ""
    return _of(figures.bytes_done, figures.bytes_total)


def memory_text(figures: Figures) -> str:
    """The memory of the process, and its limit."""
    if figures.memory is None:
        return ""
    limit = figures.memory_limit
    return f"memory {format_size(figures.memory) if limit is None else _of(figures.memory, limit)}"


def _of(part: int, whole: int) -> str:
    """A size of another, with their unit once where it is the same."""
    number, unit = format_size(part).split()
    of = format_size(whole)
    return f"{number} of {of}" if of.endswith(f" {unit}") else f"{number} {unit} of {of}"


def rate_text(figures: Figures) -> str:
    """Bytes per second over the last seconds."""
    rate = figures.rate()
    return f"{format_size(rate)}/s" if rate is not None and figures.bytes_moved else ""


def line(figures: Figures, now: float, width: int | None = None, encoding: str = "utf-8") -> str:
    """The line at a time, never wider than `width`."""
    parts = [part for part in _parts(figures, now) if part.texts[0]]
    return _fitted(parts, width, encoding)


def summary(figures: Figures, now: float, ending: str = "", width: int | None = None, encoding: str = "utf-8") -> str:
    """The last line of a call: what it was, how it ended, bytes, time, and the most memory seen."""
    seconds, moved = now - figures.began, figures.bytes_moved
    rate = f", {format_size(moved / seconds)}/s" if moved and seconds > 0 else ""
    peak = f"memory up to {format_size(figures.memory_peak)}" if figures.memory_peak else ""
    ended = [] if figures.ended is None else [figures.ended]
    steps = [loop for loop in figures.loops or ended if loop.step]
    parts = [
        LinePart((figures.call, ""), (80, 0)),
        LinePart((ending, ""), (100, 0)),
        LinePart((" › ".join(loop_text(loop) for loop in steps), _short(steps), ""), (40, 70, 0)),
        LinePart((f"{format_size(moved)}{rate}" if moved else "", format_size(moved), ""), (50, 60, 0)),
        LinePart((peak, ""), (30, 0)),
        LinePart((f"in {clock(seconds)}", ""), (90, 0)),
    ]
    return _fitted([part for part in parts if part.texts[0]], width, encoding)


def _short(loops: Sequence[LoopFigures]) -> str:
    """Loops by their steps alone."""
    steps = (f"{loop.step:,}" + ("" if loop.most is None else f"/{loop.most:,}") for loop in loops)
    return " › ".join(steps)


def _parts(figures: Figures, now: float) -> list[LinePart]:
    """The parts of the line in their order."""
    share = figures.share(now)
    loops = [loop for loop in figures.loops if loop.step or loop.name]
    outer = figures.call
    bare = " › ".join(loop_text(loop, has_values=False) for loop in loops)
    inner = " › ".join([*(loop_text(loop, has_values=False) for loop in loops[:-1]), *map(loop_text, loops[-1:])])
    named_steps = " › ".join(f"{loop.name} {_short([loop])}".strip() for loop in loops)
    number = figures.stage.partition(":")[0] if figures.stage.startswith("stage ") else ""
    meters = ["" if share is None else _meter(share, cells) for cells in _METER_CELLS]
    memory = "" if figures.memory is None else format_size(figures.memory)
    left, size = time_left(figures, now), amount(figures)
    tasks = f"{figures.tasks_done:,} of {figures.tasks_total:,} tasks" if figures.tasks_total else ""
    return [
        LinePart((outer, ""), (85, 0)),
        LinePart(
            (" › ".join(map(loop_text, loops)), inner, bare, named_steps, _short(loops), ""), (44, 60, 62, 68, 88, 0)
        ),
        LinePart((figures.stage or figures.activity, number, ""), (50, 55, 0)),
        LinePart((*meters, ""), (20, 25, 0)),
        LinePart(("" if share is None else f"{100 * share:.0f} %", ""), (90, 0)),
        LinePart((size, ""), (42 if loops else 70, 0)),
        LinePart((tasks, ""), (10, 0)),
        LinePart((rate_text(figures), ""), (40, 0)),
        LinePart((memory_text(figures), memory, ""), (30, 35, 0)),
        LinePart((left, left.partition(" left")[0].replace("at most ", "≤ "), ""), (65, 95, 0)),
    ]


def _meter(share: float, cells: int) -> str:
    full = min(int(share * cells), cells)
    return "━" * full + "─" * (cells - full)


def _fitted(parts: Sequence[LinePart], width: int | None, encoding: str) -> str:
    """The parts beside each other, the least important of them shorter or left out until they fit."""
    texts = [[printable(text, encoding) for text in part.texts] for part in parts]
    chosen = [0] * len(parts)

    def joined() -> str:
        return "  ".join(text for text in (texts[i][chosen[i]] for i in range(len(parts))) if text)

    shortened: list[int] = []
    while width is not None and text_width(joined()) > width:
        shorter = [i for i in range(len(parts)) if chosen[i] + 1 < len(texts[i])]
        if len([i for i in shorter if texts[i][chosen[i]]]) <= 1:
            break
        least = min(shorter, key=lambda i: parts[i].importance[chosen[i]])
        chosen[least] += 1
        shortened.append(least)
    for part in reversed(shortened):  # the gap that a long part left may have room for shorter ones
        chosen[part] -= 1
        if width is not None and text_width(joined()) > width:
            chosen[part] += 1
    return _cut(joined(), width, encoding)


def _cut(text: str, width: int | None, encoding: str) -> str:
    """A text that is no wider, with a mark where it is cut."""
    if width is None or text_width(text) <= width:
        return text
    mark = printable("…", encoding)
    while text and text_width(text) > width - 1:
        text = text[:-1]
    return (text + mark)[: max(width, 0)]


__all__ = ["amount", "clock", "line", "loop_text", "memory_text", "printable", "rate_text", "summary", "time_left"]
