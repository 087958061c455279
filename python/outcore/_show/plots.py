"""Plots as SVG: columns or a grid of cells in a frame with axes, on light and on dark pages alike."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from outcore._base.types import NDArray
from outcore._show.axes import PlotAxis, Tick
from outcore._show.markup import Markup, drawing, element

# Points: the plot, and the labels on its left, below it and above it.
WIDTH, HEIGHT = 560, 320
_LEFT, _RIGHT, _TOP, _LINE = 92, 40, 40, 18
_BESIDE = 100  # a legend
_LEGEND, _SHADES, _LETTER = 120, 24, 6.6
_HALF, _BETWEEN = 3.6, 4  # of a letter of a number below, and between two numbers
_COLOR, _RGB = "#4878a8", (0x48, 0x78, 0xA8)
_GREY = (0x80, 0x80, 0x80)


class GridPlace(NamedTuple):
    """Points of a grid, and how much longer its cells are together: of those at its ends a part may be cut off."""

    width: float
    height: float
    across: float
    along: float


class Shades(NamedTuple):
    """The numbers of the lightest and the strongest shade, how strong the lightest is, and notes below."""

    least: str
    most: str
    first: float
    notes: Sequence[str]


def columns_svg(heights: Sequence[float], title: str, x: PlotAxis, y: PlotAxis, notes: Sequence[str] = ()) -> Markup:
    """A chart of columns side by side, each as high as its number from 0 to 1."""
    each = WIDTH / len(heights)
    gap = 1.0 if each > 4 else 0.0
    path = ""
    for place, part in enumerate(heights):
        if part > 0:  # which shows, however small
            tall = max(part * HEIGHT, 1.0)
            left, width = _LEFT + place * each, each - gap
            path += f"M{left:.1f} {_TOP + HEIGHT}v{-tall:.1f}h{width:.1f}v{tall:.1f}z"
    return _framed([element("path", d=path, fill=_COLOR)], title, (x, y), (WIDTH, HEIGHT), notes)


def cells_svg(levels: NDArray, title: str, axes: tuple[PlotAxis, PlotAxis], place: GridPlace, scale: Shades) -> Markup:
    """A grid of cells in one hue, the stronger the larger: `levels` from 0 to 254, 255 for no number, which is grey."""
    from base64 import b64encode  # of who looks at drawings, not of all who import outcore

    data = b64encode(_png(levels.astype(np.uint8))).decode("ascii")
    image = element(
        "image",
        width=place.width * place.across,
        height=place.height * place.along,
        preserveAspectRatio="none",
        style="image-rendering:pixelated",
        href=f"data:image/png;base64,{data}",
    )
    # Of cells at the ends that are cut off, what lies beyond them does not show.
    clipped = element("svg", image, x=_LEFT, y=_TOP, width=place.width, height=place.height)
    legend = _legend(_LEFT + place.width + 16, place.height, scale)
    return _framed([clipped, *legend], title, axes, (place.width, place.height), scale.notes, _BESIDE)


def _legend(left: float, height: float, scale: Shades) -> list[Markup]:
    """A bar of all shades, with the numbers of its ends."""
    tall = min(height, _LEGEND)
    step = tall / _SHADES
    parts = [
        element(
            "rect",
            x=left,
            y=_TOP + tall - (number + 1) * step,
            width=10,
            height=step,
            fill=_COLOR,
            fill_opacity=f"{scale.first + (1 - scale.first) * number / (_SHADES - 1):.3f}",
        )
        for number in range(_SHADES)
    ]
    ends = ((_TOP + 10, scale.most), (_TOP + tall, scale.least))
    return [*parts, *(element("text", label, x=left + 15, y=y) for y, label in ends)]


def _png(levels: NDArray) -> bytes:
    """An image of one hue, the more opaque the larger the level (PNG, third edition: palette with tRNS)."""
    import zlib  # of who looks at drawings, not of all who import outcore

    def part(name: bytes, content: bytes) -> bytes:
        return len(content).to_bytes(4) + name + content + zlib.crc32(name + content).to_bytes(4)

    height, width = levels.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), levels], axis=1)  # each row without a filter
    head = width.to_bytes(4) + height.to_bytes(4) + bytes((8, 3, 0, 0, 0))
    opacity = bytes(range(255)) + bytes((90,))
    return b"".join(
        (
            b"\x89PNG\r\n\x1a\n",
            part(b"IHDR", head),
            part(b"PLTE", bytes(_RGB) * 255 + bytes(_GREY)),
            part(b"tRNS", opacity),
            part(b"IDAT", zlib.compress(rows.tobytes(), 6)),
            part(b"IEND", b""),
        )
    )


def _framed(
    content: Sequence[Markup],
    title: str,
    axes: tuple[PlotAxis, PlotAxis],
    size: tuple[float, float],
    notes: Sequence[str],
    beside: float = _RIGHT,
) -> Markup:
    """Content with a title above it, an axis on its left and one below, and notes under that."""
    x, y = axes
    width, height = size
    right, base = _LEFT + width, _TOP + height
    parts = [element("text", title, x=8, y=20, font_weight="bold")]
    for tick in y.ticks:
        at = base - tick.place * height
        parts.append(element("line", x1=_LEFT - 5, x2=_LEFT, y1=at, y2=at, stroke="currentColor"))
        parts.append(element("text", tick.label, x=_LEFT - 8, y=at + 4, text_anchor="end"))
    for tick in _labelled(x.ticks, width):
        at = _LEFT + tick.place * width
        parts.append(element("line", x1=at, x2=at, y1=base, y2=base + 5, stroke="currentColor"))
        parts.append(element("text", tick.label, x=at, y=base + 20, text_anchor="middle"))
    parts.append(element("path", d=f"M{_LEFT} {_TOP}V{base:.1f}H{right:.1f}", fill="none", stroke="currentColor"))
    parts.append(element("text", x.title, x=_LEFT + width / 2, y=base + 38, text_anchor="middle"))
    if y.title:
        middle = _TOP + height / 2
        turned = f"rotate(-90 18 {middle:.1f})"
        parts.append(element("text", y.title, x=18, y=middle, text_anchor="middle", transform=turned))
    for number, note in enumerate(notes):
        parts.append(element("text", note, x=8, y=base + 42 + _LINE * (number + 1), opacity=0.75))
    tall = base + 50 + _LINE * len(notes)
    letters = max(len(text) for text in (title, *notes))
    wide = max(right + beside, 16 + _LETTER * letters)
    return drawing(
        *parts,
        *content,
        viewBox=f"0 0 {wide:.0f} {tall:.0f}",
        width=wide,
        style="max-width:100%;height:auto",
        role="img",
        aria_label=title,
        fill="currentColor",
        font_family="sans-serif",
        font_size=12,
    )


def _labelled(ticks: Sequence[Tick], width: float) -> Sequence[Tick]:
    """Every tick, or every second, third and so on, so that no label lies over the one before it."""
    for every in range(1, len(ticks)):
        shown = ticks[::every]
        if all(
            (after.place - before.place) * width >= _HALF * (len(before.label) + len(after.label)) + _BETWEEN
            for before, after in pairwise(shown)
        ):
            return shown
    return ticks[:1]


__all__ = ["HEIGHT", "WIDTH", "GridPlace", "Shades", "cells_svg", "columns_svg"]
