"""Histograms of degrees: how many have none, 1, 2 and 3, 4 to 7, and so on, as text and as a drawing."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from outcore._base.system_errors import refusing
from outcore._show.axes import PlotAxis, Tick, count_axis, height
from outcore._show.markup import Markup, drawing, element
from outcore._show.plots import columns_svg
from outcore.errors import ArgumentError

_BAR, _LABELS = 40, 14
# Points of the small drawing: its bars, the line of their labels, and what a letter takes.
_SMALL, _HIGH, _LINE, _LETTER = 180.0, 80.0, 16.0, 6.6


def bounds(place: int) -> str:
    """The degrees that a place of the histogram counts."""
    low, high = (0, 0) if place == 0 else (1 << (place - 1), (1 << place) - 1)
    return str(low) if low == high else f"{low}-{high}"


def _parts(degrees: list[int], width: int) -> list[int]:
    """Lengths of bars, by the logarithm: the most is the longest, and one shows."""
    logarithms = np.log1p(np.asarray(degrees, dtype=float))
    return [int(part) for part in np.ceil(width * logarithms / max(logarithms.max(initial=0.0), 1e-300))]


def bars(degrees: list[int]) -> str:
    """The histogram as lines of text, its bars by the logarithm of the numbers."""
    labels = [bounds(place) for place in range(len(degrees))]
    wide, long = max(map(len, labels)), max(len(f"{count:,}") for count in degrees)
    drawn = zip(labels, degrees, _parts(degrees, _BAR), strict=True)
    return "\n".join(f"{label:>{wide}}  {count:>{long},}  {'█' * part}".rstrip() for label, count, part in drawn)


def svg(degrees: list[int], title: str, kind: str = "rows by entries", notes: Sequence[str] = ()) -> Markup:
    """The histogram as a drawing, both axes by logarithm."""
    end, ticks = count_axis(max(degrees), True)
    every = -(-len(degrees) // _LABELS)
    below = (Tick((place + 0.5) / len(degrees), bounds(place)) for place in range(0, len(degrees), every))
    counted, _, by = kind.partition(" by ")
    heights = [height(count, end, True) for count in degrees]
    axes = PlotAxis(f"{by} (by logarithm)", tuple(below)), PlotAxis(counted, ticks)
    return columns_svg(heights, f"{title}: {kind}", *axes, notes)


def small_svg(degrees: list[int], by: str) -> Markup:
    """The histogram for a card: bars by the logarithm, with the degrees that the first and the last of them count."""
    each, bars = _SMALL / len(degrees), []
    for place, tall in enumerate(_parts(degrees, int(_HIGH))):
        at = {"x": place * each, "y": _HIGH - tall, "width": max(each - 1, 1), "height": tall}
        bars.append(element("rect", fill="currentColor", fill_opacity="0.5", **at))
    least, most = bounds(0), bounds(len(degrees) - 1)
    wide = max(_SMALL, (len(least) + len(most) + 2) * _LETTER)
    common: dict[str, str | float] = {"y": _HIGH + _LINE - 4, "fill": "currentColor", "font_size": 11}
    labels = [element("text", least, x=0, **common), element("text", most, x=wide, text_anchor="end", **common)]
    said = f"{sum(degrees):,} vertices by {by}, up to {most}: {', '.join(f'{count:,}' for count in degrees)}"
    size = {"width": f"{wide:.4g}", "height": f"{_HIGH + _LINE:.4g}"}
    return drawing(*bars, *labels, role="img", aria_label=said, viewBox=f"0 0 {wide:.4g} {_HIGH + _LINE:.4g}", **size)


def draw(target: str, source: str, degrees: list[int], kind: str = "rows by entries") -> None:
    """Stores the drawing. Raises ArgumentError where it would replace the source itself, StorageError."""
    if os.path.exists(target) and os.path.samefile(target, source):
        raise ArgumentError(f"info: the drawing would replace {source}")
    with refusing(target, "write"):
        Path(target).write_text(svg(degrees, Path(source).name, kind) + "\n", encoding="utf-8")


__all__ = ["bars", "bounds", "draw", "small_svg", "svg"]
