"""Pictures of sparse matrices: how many entries each stored tile has, in the order of the rows."""

from __future__ import annotations

import math
from collections.abc import Sequence

from outcore._show.markup import Markup, drawing, element

_SIDE, _SHORTEST, _MARGIN = 120.0, 40.0, 2.0
_BANDS = 40  # at most; of more tiles several are one band
_FAINTEST, _EVEN, _DARKEST = 0.08, 0.3, 0.75  # opacities; that of one tile alone stands between
_LABEL, _CHARACTER = 16.0, 6.6


def spy_picture(shape: tuple[int, int], entries: Sequence[int], is_turned: bool = False) -> Markup | None:
    """The shape of a matrix with a band for each stored tile, the darker the more entries it has.

    `entries` are those of the tiles, which lie below each other, beside each other where the matrix `is_turned`. None
    for a matrix without rows or columns.
    """
    rows, columns = shape
    if not rows or not columns:
        return None
    ratio = math.sqrt(rows / columns)
    height = _SIDE if ratio >= 1 else max(_SIDE * ratio, _SHORTEST)
    width = _SIDE if ratio < 1 else max(_SIDE / ratio, _SHORTEST)
    left = top = _MARGIN
    bands = _bands(entries)
    most = max((mean for _, mean in bands), default=0.0)
    drawn, begin = [], 0.0
    for tiles, mean in bands:
        size = (width if is_turned else height) * tiles / len(entries)
        at = {"x": left + begin, "y": top} if is_turned else {"x": left, "y": top + begin}
        begin += size
        if mean:
            sides = {"width": size, "height": height} if is_turned else {"width": width, "height": size}
            # By the logarithm: counts of tiles differ by powers of ten.
            share = math.log1p(mean) / math.log1p(most)
            opacity = f"{_FAINTEST + (_DARKEST - _FAINTEST) * share**4 if len(bands) > 1 else _EVEN:.2f}"
            drawn.append(
                element("rect", fill="currentColor", fill_opacity=opacity, shape_rendering="crispEdges", **at, **sides)
            )
    frame = element("rect", x=left, y=top, width=width, height=height, fill="none", stroke="currentColor")
    across, down = f"{columns:,}", f"{rows:,}"
    labels = [
        _text(left + width / 2, top + height + _LABEL - 3, across, "middle"),
        _text(left + width + 4, top + height / 2 + 4, down, "start"),
    ]
    start = min(0.0, left + width / 2 - len(across) * _CHARACTER / 2)
    right = max(left + width + 4 + len(down) * _CHARACTER, left + width / 2 + len(across) * _CHARACTER / 2) + _MARGIN
    tall = top + height + _LABEL + _MARGIN
    return drawing(
        *drawn,
        frame,
        *labels,
        role="img",
        aria_label=_said(shape, entries, is_turned),
        viewBox=f"{start:.4g} 0 {right - start:.4g} {tall:.4g}",
        width=f"{right - start:.4g}",
        height=f"{tall:.4g}",
    )


def _bands(entries: Sequence[int]) -> list[tuple[int, float]]:
    """Tiles of bands, as many of each but for the last, and entries that a tile of the band has on average."""
    each = -(-len(entries) // _BANDS) or 1
    bands = [entries[start : start + each] for start in range(0, len(entries), each)]
    return [(len(band), sum(band) / len(band)) for band in bands]


def _said(shape: tuple[int, int], entries: Sequence[int], is_turned: bool) -> str:
    matrix = f"{shape[0]:,} × {shape[1]:,} matrix"
    if not entries:
        return f"{matrix} without entries"
    of = "columns" if is_turned else "rows"
    counts = f"{min(entries):,} to {max(entries):,} entries"
    return f"{matrix}: {len(entries):,} stored tiles in the order of {of}, of {counts}"


def _text(x: float, y: float, text: str, anchor: str) -> Markup:
    return element("text", text, x=x, y=y, text_anchor=anchor, fill="currentColor", font_size=11)


__all__ = ["spy_picture"]
