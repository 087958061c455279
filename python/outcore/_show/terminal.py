"""Drawings in text: columns of block characters, and grids of shades."""

from __future__ import annotations

import math
from collections.abc import Sequence

from outcore._base.shortened import short_text
from outcore._base.types import NDArray
from outcore._show.axes import PlotAxis, Tick

# Columns of a drawing beside the labels of its axis, and rows of text of a chart of columns.
COLUMNS_MAX, ROWS = 80, 12
_COLUMN_MAX, _LABEL_MAX = 8, 16
_EIGHTHS = " ▁▂▃▄▅▆▇█"
# Of a cell without a number, and of the others from the least to the most.
NO_NUMBER, SHADES = "×", " ░▒▓█"


def columns_text(heights: Sequence[float], x: PlotAxis, y: PlotAxis) -> str:
    """A chart of columns side by side, each as high as its number from 0 to 1."""
    each = max(1, min(_COLUMN_MAX, COLUMNS_MAX // len(heights)))
    # In eighths of a row; numbers above 0 show, however small.
    tall = [max(round(part * ROWS * 8), 1) if part > 0 else 0 for part in heights]
    rows = ["".join(_EIGHTHS[min(max(part - row * 8, 0), 8)] * each for part in tall) for row in reversed(range(ROWS))]
    return framed(rows, x, y)


def shades_text(levels: NDArray, x: PlotAxis, y: PlotAxis) -> str:
    """A grid of shades, two letters wide where there is room: `levels` from 0 to 4, below 0 for no number."""
    wide = 2 if 2 * levels.shape[1] <= COLUMNS_MAX else 1
    rows = ["".join((NO_NUMBER if level < 0 else SHADES[level]) * wide for level in row) for row in levels.tolist()]
    return framed(rows, x, y)


def framed(rows: Sequence[str], x: PlotAxis, y: PlotAxis) -> str:
    """Rows of one length between an axis on their left, with its title above, and one below, with its title there."""
    width, number = len(rows[0]), len(rows)
    marks: dict[int, str] = {}
    for tick in y.ticks:
        marks.setdefault(_letter(1 - tick.place, number), tick.label[:_LABEL_MAX])
    long = max((len(label) for label in marks.values()), default=0)
    lines = [f"{marks.get(place, ''):>{long}} {'┤' if place in marks else '│'}{row}" for place, row in enumerate(rows)]
    axis, labels = _below(x.ticks, width)
    lines.append(f"{marks.get(number, ''):>{long}} └{axis}")
    lines.append(f"{'':{long}}  {labels}")
    above = [short_text(y.title, COLUMNS_MAX)] if y.title else []
    below = [f"{'':{long}}  {short_text(x.title, COLUMNS_MAX):^{width}}"] if x.title else []
    return "\n".join(line.rstrip() for line in (*above, *lines, *below))


def _letter(place: float, number: int) -> int:
    """Which of so many letters beside each other has a place from 0 to 1 within; that behind them has the end."""
    return min(math.floor(place * number + 1e-9), number)


def _below(ticks: Sequence[Tick], width: int) -> tuple[str, str]:
    """A line with its ticks, and labels below those that have room."""
    line, labels, end = ["─"] * width, [" "] * (width + _LABEL_MAX), -1
    for tick in ticks:
        place = min(_letter(tick.place, width), width - 1)
        text = tick.label[: _LABEL_MAX + 4]
        begin = max(place - len(text) // 2, 0)
        if tick.place == 1 and end + len(text) < COLUMNS_MAX:  # that of the end may stand behind the picture
            begin = max(begin, end + 1)
        if begin <= end:
            continue
        line[place] = "┴"
        end = begin + len(text)
        labels[begin:end] = text
    return "".join(line), "".join(labels)


__all__ = ["COLUMNS_MAX", "NO_NUMBER", "SHADES", "columns_text", "framed", "shades_text"]
