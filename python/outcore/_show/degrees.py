"""Histograms of degrees: how many have none, 1, 2 and 3, 4 to 7, and so on, as text and as a drawing."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import numpy.typing as npt

from outcore._base.system_errors import refusing
from outcore._show.markup import drawing, element
from outcore.errors import ArgumentError

_BAR, _WIDTH, _HEIGHT, _LINE = 40, 640, 18, 24


def histogram(degrees: npt.NDArray[np.int64]) -> list[int]:
    """How many have as many as each place counts."""
    return [int(count) for count in np.bincount(np.frexp(degrees)[1], minlength=1)]


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
    return "\n".join(f"{label:>{wide}}  {count:>{long},}  {'█' * part}" for label, count, part in drawn)


def svg(degrees: list[int], title: str, what: str = "rows by entries") -> str:
    """The histogram as a drawing."""
    head = f"{title}: {what} (bars by logarithm)"
    parts = [element("text", head, x=8, y=18)]
    for place, (count, part) in enumerate(zip(degrees, _parts(degrees, _WIDTH), strict=True)):
        y = _LINE * (place + 1) + 8
        parts.append(element("text", bounds(place), x=118, y=y + 14, text_anchor="end"))
        parts.append(element("rect", x=128, y=y, width=part, height=_HEIGHT, fill="#4878a8"))
        parts.append(element("text", f"{count:,}", x=134 + part, y=y + 14))
    size = {"width": _WIDTH + 260, "height": _LINE * (len(degrees) + 2)}
    return drawing(*parts, **size, font_family="sans-serif", font_size=13) + "\n"


def draw(target: str, source: str, degrees: list[int], what: str = "rows by entries") -> None:
    """Stores the drawing. Raises ArgumentError where it would replace the source itself, StorageError."""
    if os.path.exists(target) and os.path.samefile(target, source):
        raise ArgumentError(f"info: the drawing would replace {source}")
    with refusing(target, "write"):
        Path(target).write_text(svg(degrees, Path(source).name, what), encoding="utf-8")


__all__ = ["bars", "draw", "histogram", "svg"]
