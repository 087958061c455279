"""Strips: how much of an array is in memory over the columns of a plan or a run, and what happens to it there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from outcore._session.trace import READ, READ_AGAIN, SPILLED, WRITTEN, ArrayStrip
from outcore._show.markup import Markup, element

_MARKS = {READ: "read", READ_AGAIN: "again", SPILLED: "spill", WRITTEN: "write"}
#: Colours of strips, and what they stand for.
STRIP_KEY = (
    ("stored", "a file's tiles in memory"),
    ("temporary", "intermediate values in memory"),
    ("result", "results in memory"),
    ("read", "read"),
    ("again", "read again"),
    ("spill", "spilled"),
    ("write", "written"),
)


def drawn_strip(
    strip: ArrayStrip, columns: Iterable[tuple[float, float, Sequence[int]]], top: float, height: float
) -> list[Markup]:
    """The share in memory, and marks below it. Columns that are drawn as one have a place, a width and numbers."""
    resident: list[str] = []
    happening: dict[str, list[str]] = defaultdict(list)
    for left, width, together in columns:
        share = max(strip.resident[at] for at in together) / 100
        bits = 0
        for at in together:
            bits |= strip.happens[at]
        if share:
            high = max(share * height, 1.0)
            resident.append(f"M{left:.1f} {top + height - high:.1f}h{width:.1f}v{high:.1f}h-{width:.1f}z")
        colors = [color for bit, color in _MARKS.items() if bits & bit]
        for at, color in enumerate(colors):
            high = 5 / len(colors)
            mark = f"M{left:.1f} {top + height + 1 + at * high:.1f}h{width:.1f}v{high:.1f}h-{width:.1f}z"
            happening[color].append(mark)
    parts = [element("path", d="".join(resident), class_=f"ink resident {strip.role}")] if resident else []
    return parts + [element("path", d="".join(d), class_=f"ink {color}") for color, d in happening.items()]


__all__ = ["STRIP_KEY", "drawn_strip"]
