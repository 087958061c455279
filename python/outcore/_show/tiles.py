"""Pictures of arrays cut into tiles: a bar of one axis, a grid of two, a stack of grids of three and more."""

from __future__ import annotations

import math
from collections.abc import Sequence

from outcore._show.markup import Markup, drawing, element

_LONGEST, _SHORTEST = 120.0, 24.0  # points that an axis takes
_LINES = 16  # between tiles along an axis; of more every second, fourth and so on is drawn
_SHEETS, _STEP = 4, 7.0  # of a stack, and points that each stands behind the one before
_AXES_NAMED = 2  # behind the grid
_GAP = 5.0  # points between lines at least
_MARGIN = 2.0
_LABEL, _CHARACTER = 16.0, 6.6
_STROKE = {"stroke": "currentColor", "fill": "none"}


def tiles_picture(shape: Sequence[int], tile: Sequence[int]) -> Markup | None:
    """The picture of an array of a shape that is cut into tiles; None where there is nothing to draw.

    The last two axes are across and down, those before them behind each other. One tile is filled.
    """
    if not shape or not all(shape) or not all(tile):
        return None
    if len(shape) == 1:
        return _drawn(shape, tile, (1, shape[0]), (1, tile[0]))
    return _drawn(shape, tile, (shape[-2], shape[-1]), (tile[-2], tile[-1]))


def counted_tiles(shape: Sequence[int], tile: Sequence[int]) -> int:
    """The number of tiles."""
    return math.prod(-(-length // part) if part else 0 for length, part in zip(shape, tile, strict=True))


def _drawn(shape: Sequence[int], tile: Sequence[int], front: tuple[int, int], cut: tuple[int, int]) -> Markup:
    height, width = _sides(front, len(shape) == 1)
    sheets = 1 if len(shape) < 3 else min(_SHEETS, max(2, counted_tiles(shape[:-2], tile[:-2])))
    depth = (sheets - 1) * _STEP
    left, top = _MARGIN, _MARGIN + depth
    behind = [
        _rectangle(left + place * _STEP, top - place * _STEP, width, height, stroke_opacity=0.45)
        for place in range(sheets - 1, 0, -1)
    ]
    # A sheet hides those behind it as far as a colour of no background can: their edges alone are drawn.
    edges = [_edge(part) for part in behind]
    one = _rectangle(
        left,
        top,
        max(width * min(cut[1], front[1]) / front[1], 1.0),
        max(height * min(cut[0], front[0]) / front[0], 1.0),
        fill_opacity=0.3,
    )
    parts = [*edges, element("rect", fill="currentColor", stroke="none", **one)]
    parts += _lines(left, top, (height, width), front, cut)
    parts.append(element("rect", **_rectangle(left, top, width, height), **_STROKE))
    across = f"{shape[-1]:,}"
    labels = [_text(left + width / 2, top + height + _LABEL - 3, across, "middle")]
    right = left + width + depth + 4
    wide = [across]
    if len(shape) > 1:
        labels.append(_text(right, top + height / 2 + 4, f"{shape[-2]:,}", "start"))
    if len(shape) > 2:
        labels.append(_text(right, top - depth + 8, _behind(shape[:-2]), "start"))
    longest = max((len(_behind(shape[:-2])) if len(shape) > 2 else 0, len(f"{shape[-2]:,}") if len(shape) > 1 else 0))
    whole = max(right + longest * _CHARACTER, left + width / 2 + len(wide[0]) * _CHARACTER / 2) + _MARGIN
    # Text in the middle of a narrow picture begins left of it.
    begin = min(0.0, left + width / 2 - len(across) * _CHARACTER / 2)
    tall = top + height + _LABEL + _MARGIN
    label = f"{_times(shape)} elements in {counted_tiles(shape, tile):,} tiles of {_times(tile)}"
    return drawing(
        *parts,
        *labels,
        role="img",
        aria_label=label,
        viewBox=f"{begin:.4g} 0 {whole - begin:.4g} {tall:.4g}",
        width=f"{whole - begin:.4g}",
        height=f"{tall:.4g}",
    )


def _sides(front: tuple[int, int], is_bar: bool) -> tuple[float, float]:
    """Height and width in points. The square root of a ratio, so that long arrays stay readable."""
    if is_bar:
        return _SHORTEST, _LONGEST * 1.5
    ratio = math.sqrt(front[0] / front[1])
    if ratio >= 1:
        return _LONGEST, max(_LONGEST / ratio, _SHORTEST)
    return max(_LONGEST * ratio, _SHORTEST), _LONGEST


def _lines(
    left: float, top: float, sides: tuple[float, float], front: tuple[int, int], cut: tuple[int, int]
) -> list[Markup]:
    """Lines between tiles, thinned where they are many."""
    height, width = sides
    drawn = []
    for axis in (0, 1):
        tiles = -(-front[axis] // cut[axis])
        every = 1
        most = min(_LINES, int(sides[axis] / _GAP))
        while (tiles - 1) // every > most:
            every *= 2
        for place in range(every, tiles, every):
            at = place * cut[axis] / front[axis]
            ends = (
                {"x1": left, "x2": left + width, "y1": top + at * height, "y2": top + at * height}
                if axis == 0
                else {"x1": left + at * width, "x2": left + at * width, "y1": top, "y2": top + height}
            )
            drawn.append(element("line", stroke="currentColor", stroke_opacity=0.5, stroke_width=0.8, **ends))
    return drawn


def _edge(part: dict[str, float]) -> Markup:
    """The edges of a sheet that stand out behind the one before it: above and on the right."""
    x, y, width, height = part["x"], part["y"], part["width"], part["height"]
    points = f"M{x:.4g} {y + _STEP:.4g}V{y:.4g}H{x + width:.4g}V{y + height:.4g}H{x + width - _STEP:.4g}"
    return element("path", d=points, stroke_opacity=part["stroke_opacity"], **_STROKE)


def _rectangle(x: float, y: float, width: float, height: float, **more: float) -> dict[str, float]:
    return {"x": x, "y": y, "width": width, "height": height, **more}


def _text(x: float, y: float, text: str, anchor: str) -> Markup:
    return element("text", text, x=x, y=y, text_anchor=anchor, fill="currentColor", font_size=11)


def _behind(lengths: Sequence[int]) -> str:
    """Lengths of the axes behind the grid."""
    if len(lengths) <= _AXES_NAMED:
        return _times(lengths)
    return f"{lengths[0]:,} × … × {lengths[-1]:,}"


def _times(lengths: Sequence[int]) -> str:
    return " × ".join(f"{length:,}" for length in lengths)


__all__ = ["counted_tiles", "tiles_picture"]
