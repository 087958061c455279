"""Axes of drawings: round steps, ticks and their labels."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from outcore._base.types import NDArray

# The height of a single one on a logarithmic axis, where nothing has none, is that of 1 over this.
_LEAST = 0.5
_WITHIN_DAYS = ("h", "m", "s", "ms", "us", "ns", "ps", "fs", "as")
_PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


class Tick(NamedTuple):
    """A mark of an axis: its place from 0 to 1, and its label."""

    place: float
    label: str


class PlotAxis(NamedTuple):
    """The name of an axis, and its ticks in order."""

    title: str
    ticks: tuple[Tick, ...]


def round_step(least: float) -> float:
    """The least of … 0.1, 0.2, 0.5, 1, 2, 5, 10, … that is not below a number above 0."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(step for step in (power, 2 * power, 5 * power, 10 * power) if step >= least * (1 - 1e-12))


def linear_ticks(low: float, high: float, most: int, step_min: float = 0.0) -> tuple[Tick, ...]:
    """Round numbers between two bounds, about `most` of them, at least so far from each other."""
    width = high - low
    if not (math.isfinite(width) and width > 0 and width > 1e-12 * max(abs(low), abs(high))):
        return (Tick(0.0, f"{low:.15g}"), Tick(1.0, f"{high:.15g}"))
    step = max(round_step(width / most), step_min)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return tuple(Tick((number * step - low) / width, label(number * step, step)) for number in range(first, last + 1))


def label(value: float, step: float) -> str:
    """A number of an axis with the digits that its steps need."""
    if value and not 1e-4 <= abs(value) < 1e7:
        return f"{value:.{max(1, math.ceil(math.log10(abs(value) / step)) + 1)}g}"
    return f"{value:,.{max(0, -math.floor(math.log10(step) + 1e-9))}f}" if step < 1 else f"{value:,.0f}"


def count_label(count: float) -> str:
    """A round number of things in few letters."""
    size, prefix = next(((size, prefix) for size, prefix in _PREFIXES if count >= size), (1.0, ""))
    return f"{count / size:g}{prefix}"


def edge_ticks(edges: NDArray, most: int) -> tuple[Tick, ...]:
    """Ticks of the axis that bins with such edges lie along: of integers at integers. Of dates they are at edges, and
    of bins of several widths, all of which are drawn alike."""
    last = len(edges) - 1
    if edges.dtype.kind == "i":  # rows and columns, of which the last block may be shorter
        return linear_ticks(float(edges[0]), float(edges[-1]), most, 1.0)
    if edges.dtype.kind == "f" and _is_even(edges):
        is_whole = bool((np.abs(edges % 1) == 0.5).all())  # as of bins of integers, which lie in their middle
        return linear_ticks(float(edges[0]), float(edges[-1]), most, 1.0 if is_whole else 0.0)
    labels = edges.astype(_labelled(edges)) if edges.dtype.kind == "M" else edges
    texts = [f"{edge:g}" if edges.dtype.kind == "f" else str(edge) for edge in labels]
    return tuple(Tick(place / last, texts[place]) for place in range(0, last + 1, max(1, -(-last // most))))


def block_ticks(edges: NDArray, most: int) -> tuple[Tick, ...]:
    """Ticks at edges of blocks that are drawn alike, about `most` of them, the first and the last among these."""
    last = len(edges) - 1
    every = -(-last // most)
    places = [*range(0, last - every // 2, every), last]
    return tuple(Tick(place / last, f"{edges[place]:,}") for place in places)


def _is_even(edges: NDArray) -> bool:
    """Whether bins have one width, but for rounding."""
    with np.errstate(invalid="ignore", over="ignore"):
        widths = np.diff(edges)
        return bool(np.isfinite(widths).all() and widths.max() <= widths.min() + 1e-3 * abs(widths.max()))


def _labelled(edges: NDArray) -> str:
    """The type of dates with the digits that steps of an axis need: days, seconds, or those that they have."""
    if np.datetime_data(edges.dtype)[0] in _WITHIN_DAYS:
        for unit, least in (("D", np.timedelta64(10, "D")), ("s", np.timedelta64(10, "s"))):
            if edges[-1] - edges[0] >= least:
                return f"datetime64[{unit}]"
    return str(edges.dtype)


def count_axis(top: int, is_log: bool, most: int = 4) -> tuple[float, tuple[Tick, ...]]:
    """The number at the upper end of an axis for counts up to `top`, and its ticks."""
    if is_log:
        powers = range(max(math.ceil(math.log10(max(top, 1)) - 1e-9), 1) + 1)
        every = -(-len(powers) // (most + 1))
        end = 10.0 ** powers[-1]
        return end, tuple(Tick(height(10.0**power, end, True), count_label(10.0**power)) for power in powers[::every])
    step = max(round_step(max(top, 1) / most), 1.0)
    steps = max(math.ceil(top / step), 1)
    return steps * step, tuple(Tick(number / steps, count_label(number * step)) for number in range(steps + 1))


def height(count: float, end: float, is_log: bool) -> float:
    """The height of a count, from 0 to 1, on an axis that ends at `end`."""
    if not is_log:
        return count / end
    return float(np.log(count / _LEAST) / np.log(end / _LEAST)) if count else 0.0


__all__ = [
    "PlotAxis",
    "Tick",
    "block_ticks",
    "count_axis",
    "count_label",
    "edge_ticks",
    "height",
    "label",
    "linear_ticks",
    "round_step",
]
