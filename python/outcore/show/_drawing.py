"""Drawings: the numbers of a picture, and the picture in text, as SVG and by matplotlib."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from textwrap import wrap
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import numpy as np

from outcore._base.shortened import printable_text, short_text
from outcore._base.types import NDArray
from outcore._session.session import leave_room
from outcore._show.axes import PlotAxis, Tick, block_ticks, count_axis, edge_ticks, height
from outcore._show.degrees import bars, svg
from outcore._show.plots import HEIGHT, WIDTH, GridPlace, Shades, cells_svg, columns_svg
from outcore._show.terminal import COLUMNS_MAX, NO_NUMBER, columns_text, shades_text
from outcore.errors import ArgumentError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# On what is drawn: matplotlib's current Axes where there are any, or these, or a `Drawing`.
Canvas: TypeAlias = "Axes | Literal[False] | None"

# Memory of the process that matplotlib's pyplot takes when it is loaded.
_LOADED_BYTES = 64 << 20
# Rows of text of a grid, the proportions that a picture keeps, and cells of an SVG along an axis.
_ROWS_MAX, _RATIOS, _SVG_CELLS = 32, (0.25, 2.0), 1200
# Levels of shades in text and in an SVG, there the first that is not blank, and the one for no number.
_TEXT_LEVELS, _SVG_LEVELS, _SVG_FIRST, _SVG_NO_NUMBER = 5, 255, 50, 255
_TICKS = 5
# Of a title shares of the size of the figure's letters, and of the width of a subplot with its surroundings; lines that
# it and its notes have at most, each of some letters at least; width and height of a letter of size 1.
_TITLE_SIZES, _TITLE_SHARE, _TITLE_LINES, _LETTERS_MIN = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5), 0.9, 3, 16
_LETTER_WIDTH, _LINE_HEIGHT = 0.6, 1.3


class ShadeScale(NamedTuple):
    """The least and the most of cells that have a number, and whether shades go by the logarithm, 0 being blank."""

    least: float
    most: float
    is_log: bool

    def labels(self) -> tuple[str, str]:
        """The least and the most as text."""
        least, most = (f"{bound:,.0f}" if self.is_log else f"{bound:.6g}" for bound in (self.least, self.most))
        return least, most

    def levels(self, cells: NDArray, count: int, first: int = 1) -> NDArray:
        """For each cell a number from 0 to `count` − 1, by the logarithm from `first` on; −1 where it has none."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            if self.is_log:
                wide = np.log(self.most / self.least) if self.most > self.least else 0.0
                part = np.log(cells / self.least) / wide if wide else np.ones_like(cells)
                levels = first + np.clip(np.nan_to_num(part * (count - first)), 0, count - first - 1)
                levels = np.where(cells > 0, levels, 0)
            else:
                half = self.most / 2 - self.least / 2  # the whole may be more than the type holds
                part = (cells / 2 - self.least / 2) / half if half > 0 else np.full_like(cells, 0.5)
                levels = np.clip(np.nan_to_num(part * count), 0, count - 1)
        return np.where(np.isnan(cells), -1, levels.astype(np.int64))


@dataclass(frozen=True, eq=False)
class Drawing(ABC):
    """A picture of data: its numbers, without the data. Printed it is text, in a notebook an SVG.

    `title` says of what it is, `notes` what is to be known of it: elements that were left out, what a shade stands for.

    >>> import numpy as np, outcore as oc
    >>> drawing = oc.show.histogram(np.asarray([1, 2, 2, 5]), ax=False)
    >>> drawing.counts.tolist()
    [1, 2, 0, 0, 1]
    """

    title: str
    notes: tuple[str, ...]

    @abstractmethod
    def _text(self) -> str:
        """The picture in text."""

    @abstractmethod
    def _repr_svg_(self) -> str:
        """The picture as SVG."""

    @abstractmethod
    def _draw(self, ax: Axes) -> None:
        """Draws on Axes of matplotlib, without a title."""

    def __repr__(self) -> str:
        return "\n".join((printable_text(self.title), self._text(), *map(printable_text, self.notes)))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draws by matplotlib, on its current Axes unless others are passed, and returns them. Reads nothing.

        Raises ArgumentError where matplotlib is not installed.
        """
        if find_spec("matplotlib") is None:
            raise ArgumentError(
                "show: matplotlib is not installed: pip install 'outcore[show]'; ax=False draws in text"
            )
        if ax is None:
            leave_room(_LOADED_BYTES, unless="matplotlib.pyplot")
            from matplotlib import pyplot

            ax = pyplot.gca()
        self._draw(ax)
        _label(ax, self.title, self._plot_notes())
        return ax

    def _plot_notes(self) -> tuple[str, ...]:
        """The notes that Axes have no other place for."""
        return self.notes


@dataclass(frozen=True, eq=False, repr=False)
class BarDrawing(Drawing):
    """A histogram: `counts` (int64) of the bins between `edges`, of which there is one more; the last bin holds its
    right edge too.

    >>> import numpy as np, outcore as oc
    >>> drawing = oc.show.histogram(np.asarray([1.0, 2.0, 2.5, 5.0]), 2, ax=False)
    >>> drawing.counts, drawing.edges
    (array([3, 1]), array([1., 3., 5.]))
    """

    counts: NDArray
    edges: NDArray
    x_title: str
    y_title: str

    def _axes(self, counts: NDArray) -> tuple[list[float], PlotAxis, PlotAxis]:
        top, ticks = count_axis(int(counts.max()), False)
        heights = [height(int(count), top, False) for count in counts]
        return heights, PlotAxis(self.x_title, edge_ticks(self.edges, _TICKS)), PlotAxis(self.y_title, ticks)

    def _text(self) -> str:
        each = -(-len(self.counts) // COLUMNS_MAX)
        drawn = columns_text(*self._axes(np.add.reduceat(self.counts, np.arange(0, len(self.counts), each))))
        return drawn if each == 1 else f"{drawn}\na column is {each} bins, the last one those that remain"

    def _repr_svg_(self) -> str:
        heights, x, y = self._axes(self.counts)
        return columns_svg(heights, self.title, x, y, self.notes)

    def _draw(self, ax: Axes) -> None:
        edges = self.edges
        if edges.dtype.kind == "M":
            from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num

            edges = date2num(edges)
            locator = AutoDateLocator(minticks=3, maxticks=7)
            ax.xaxis.set_major_locator(locator)
            ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))
        ax.stairs(self.counts, edges.astype(np.float64), fill=True)
        ax.set_xlabel(self.x_title)
        ax.set_ylabel(self.y_title)


@dataclass(frozen=True, eq=False, repr=False)
class DegreeDrawing(BarDrawing):
    """How many vertices have 0, 1, 2 to 3, 4 to 7, … neighbours: `counts`, between `edges` 0, 1, 2, 4, 8, …

    >>> import outcore as oc
    >>> G = oc.graph.from_arrays([0, 0, 0], [1, 2, 3], directed=False)
    >>> oc.show.degrees(G, ax=False).counts.tolist()
    [0, 3, 1]
    """

    def _text(self) -> str:
        return bars(self.counts.tolist())

    def _repr_svg_(self) -> str:
        return svg(self.counts.tolist(), self.title, f"{self.y_title} by {self.x_title}", self.notes)

    def _draw(self, ax: Axes) -> None:
        ax.stairs(self.counts, self.edges, fill=True, baseline=0.5)
        # From 0 to 1 as wide as from 1 to 2: by default it is base / (base - 1) times that.
        ax.set_xscale("symlog", base=2, linthresh=1, linscale=0.5)
        ax.set_yscale("log")
        ax.set_ylim(bottom=0.5)
        ax.set_xlabel(self.x_title)
        ax.set_ylabel(self.y_title)


@dataclass(frozen=True, eq=False, repr=False)
class CellDrawing(Drawing):
    """A grid: `cells[i, j]` lies between `y_edges[i]` and `y_edges[i + 1]`, `x_edges[j]` and `x_edges[j + 1]`.

    `is_down` where the first row is on top, as of images and matrices. `is_counted` where cells are counts: shades go
    by their logarithm, and 0 is blank. `combine` is what cells that share a letter or a point come to.

    >>> import numpy as np, outcore as oc
    >>> drawing = oc.show.image(np.asarray([[1, 3, 5], [5, 7, 9]]), (2, 1), ax=False)
    >>> drawing.cells, drawing.x_edges, drawing.y_edges
    (array([[4., 7.]]), array([0, 2, 3]), array([0, 2]))
    """

    cells: NDArray
    x_edges: NDArray
    y_edges: NDArray
    x_title: str
    y_title: str
    is_down: bool
    is_counted: bool
    combine: Literal["mean", "max", "min"]

    @property
    def _ratio(self) -> float:
        """The height of the picture over its width."""
        if not self.is_down:
            return 0.6
        return float(np.clip(self.y_edges[-1] / self.x_edges[-1], *_RATIOS))

    def _together(self, columns: float, rows: float) -> tuple[int, int]:
        """How many cells along each axis, rows first, are one cell of a picture that has no more columns and rows."""
        tall, wide = (-(-length // int(most)) for length, most in zip(self.cells.shape, (rows, columns), strict=True))
        return tall, wide

    @property
    def _is_density(self) -> bool:
        """Whether shades are those of counts per area: of a matrix, whose cells at the ends may be cut off."""
        return self.is_counted and self.is_down

    @property
    def _sizes(self) -> NDArray:
        """The area of each cell."""
        return np.outer(np.diff(self.y_edges), np.diff(self.x_edges)).astype(np.float64)

    def _shaded(self) -> NDArray:
        """The numbers by which cells are shaded: those of a whole cell that is as dense, of counts in a matrix."""
        cells = np.asarray(self.cells, dtype=np.float64)
        if not self._is_density:
            return cells
        sizes = self._sizes
        whole: NDArray = cells * sizes[0, 0] / sizes  # in this order equal densities are equal numbers
        return whole

    def _of_density(self) -> list[str]:
        """A note on cells that are cut off, if there are any."""
        if not self._is_density or all((np.diff(edges, 2) == 0).all() for edges in (self.x_edges, self.y_edges)):
            return []
        return ["shades by density: of smaller cells at the ends as of whole ones"]

    def _grouped(self, tall: int, wide: int) -> NDArray:
        """The cells, so many of them taken together along each axis, the first row on top. Of counts it is their mean
        times the cells of a whole group, so that those at an edge are no lighter."""
        cells = self._shaded()
        if tall > 1 or wide > 1:
            begins = np.arange(0, cells.shape[0], tall), np.arange(0, cells.shape[1], wide)
            cells = self._combined(cells, *begins) * (tall * wide if self.is_counted else 1)
        return cells if self.is_down else cells[::-1]

    def _combined(self, cells: NDArray, rows: NDArray, columns: NDArray) -> NDArray:
        if self.combine != "mean":
            join = np.fmax if self.combine == "max" else np.fmin
            return join.reduceat(join.reduceat(cells, rows, axis=0), columns, axis=1)
        weights = np.where(np.isnan(cells), 0.0, 1.0 if self.is_counted and not self.is_down else self._sizes)

        def added(parts: NDArray) -> NDArray:
            return np.add.reduceat(np.add.reduceat(parts, rows, axis=0), columns, axis=1)

        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            return added(np.where(np.isnan(cells), 0.0, cells) * weights) / added(weights)

    def _scale(self, cells: NDArray) -> ShadeScale:
        numbers = cells[np.isfinite(cells) & (cells > 0)] if self.is_counted else cells[np.isfinite(cells)]
        if not numbers.size:
            return ShadeScale(0.0, 0.0, self.is_counted)
        return ShadeScale(float(numbers.min()), float(numbers.max()), self.is_counted)

    def _lengthened(self, columns: int, rows: int) -> tuple[float, float]:
        """How much longer than the matrix so many columns and rows of its cells are, taken together along each axis:
        the last one may be cut off by its end."""
        longer = []
        for edges, number in ((self.x_edges, columns), (self.y_edges, rows)):
            together = -(-(len(edges) - 1) // number)
            block = float(edges[1] - edges[0]) * together
            longer.append(block * number / float(edges[-1] - edges[0]) if self.is_down else 1.0)
        return longer[0], longer[1]

    def _axes(self) -> tuple[PlotAxis, PlotAxis]:
        return self._titled(edge_ticks(self.x_edges, _TICKS), edge_ticks(self.y_edges, _TICKS))

    def _text_axes(self, tall: int, wide: int) -> tuple[PlotAxis, PlotAxis]:
        """Axes of text, where so many cells are a letter. A number of a row or column can stand at the first one of a
        letter alone: round numbers may lie within."""
        if not self.is_down:
            return self._axes()
        x, y = (np.append(edges[:-1:each], edges[-1]) for edges, each in ((self.x_edges, wide), (self.y_edges, tall)))
        return self._titled(block_ticks(x, _TICKS), block_ticks(y, _TICKS))

    def _titled(self, x: tuple[Tick, ...], y: tuple[Tick, ...]) -> tuple[PlotAxis, PlotAxis]:
        if self.is_down:
            y = tuple(tick._replace(place=1 - tick.place) for tick in y)
        return PlotAxis(self.x_title, x), PlotAxis(self.y_title, y)

    def _without(self, name: str) -> list[str]:
        """How many cells have no number, by the name that such a cell has in the picture, and how many have no end."""
        absent, infinite = (int(np.count_nonzero(test(self.cells))) for test in (np.isnan, np.isinf))
        size = f"of {self.cells.size:,} cells hold"
        notes = [f"{name}: {absent:,} {size} NaN"] if absent else []
        return notes + ([f"{infinite:,} {size} infinite numbers, beyond the shades"] if infinite else [])

    def _plot_notes(self) -> tuple[str, ...]:
        return (*self._of_density(), *self._without("white"), *self.notes)

    def _text(self) -> str:
        columns = min(float(COLUMNS_MAX), 2 * _ROWS_MAX / self._ratio)
        together = self._together(columns, max(1.0, min(_ROWS_MAX, columns * self._ratio / 2)))
        cells = self._grouped(*together)
        scale = self._scale(cells)
        drawn = shades_text(scale.levels(cells, _TEXT_LEVELS), *self._text_axes(*together))
        by, blank = (" by logarithm", ", blank is 0") if scale.is_log else ("", "")
        shades = f"shades{by} from {' to '.join(scale.labels())}{blank}"
        notes = (*self._of_density(), *self._of_several(*together), *self._without(NO_NUMBER))
        return "\n".join((drawn, shades, *notes))

    def _of_several(self, tall: int, wide: int) -> list[str]:
        """The rows and columns of a shade of the picture, where it is several cells."""
        if (tall, wide) == (1, 1):
            return []
        if not self.is_down:
            return [f"a shade is {wide:,} × {tall:,} cells"]
        rows, columns = (
            int(edges[min(each, len(edges) - 1)]) for edges, each in ((self.y_edges, tall), (self.x_edges, wide))
        )
        of = "" if self.is_counted else f"the {self.combine} of "
        return [f"a shade is {of}{rows:,} × {columns:,} elements"]

    def _repr_svg_(self) -> str:
        together = self._together(_SVG_CELLS, _SVG_CELLS)
        cells = self._grouped(*together)
        scale = self._scale(cells)
        levels = scale.levels(cells, _SVG_LEVELS, _SVG_FIRST)
        tall = WIDTH * min(self._ratio, 1.0) if self.is_down else float(HEIGHT)
        width = tall / self._ratio if self.is_down and self._ratio > 1 else float(WIDTH)
        rows, columns = cells.shape
        notes = ["shades by logarithm"] if scale.is_log else []
        shades = Shades(
            *scale.labels(),
            _SVG_FIRST / _SVG_LEVELS if scale.is_log else 0.0,
            (*notes, *self._of_density(), *self._of_several(*together), *self._without("grey"), *self.notes),
        )
        place = GridPlace(width, tall, *self._lengthened(columns, rows))
        return cells_svg(np.where(levels < 0, _SVG_NO_NUMBER, levels), self.title, self._axes(), place, shades)

    def _draw(self, ax: Axes) -> None:
        from matplotlib.colors import LogNorm

        numbers = self._shaded()
        scale = self._scale(numbers)
        style: dict[str, object] = {"rasterized": True}
        cells = np.ma.masked_invalid(numbers)
        if self.is_counted:
            cells = np.ma.masked_equal(cells, 0)
            style["cmap"] = "Blues"
            if scale.most > scale.least:
                style["norm"] = LogNorm(scale.least, scale.most)
        mesh = ax.pcolormesh(self.x_edges, self.y_edges, cells, **style)
        ax.set_xlim(self.x_edges[0], self.x_edges[-1])
        ends = self.y_edges[0], self.y_edges[-1]
        ax.set_ylim(*(ends[::-1] if self.is_down else ends))
        if self.is_down and self._ratio == self.y_edges[-1] / self.x_edges[-1]:
            ax.set_aspect("equal")
        ax.set_xlabel(self.x_title)
        ax.set_ylabel(self.y_title)
        ax.figure.colorbar(mesh, ax=ax)


def _label(ax: Axes, title: str, notes: Sequence[str]) -> None:
    """A title and notes above Axes of matplotlib, as wide as there is room for, in letters so small that they end in
    the figure; titles of its axes no longer than these."""
    from matplotlib import rcParams

    ax.apply_aspect()
    place, figure, points = ax.get_window_extent(), ax.figure.bbox, 72 / ax.figure.dpi
    font = rcParams["font.size"]
    for axis, length in ((ax.xaxis, place.width), (ax.yaxis, place.height)):
        letters = max(int(length * points / (_LETTER_WIDTH * font)), _LETTERS_MIN)
        axis.set_label_text(short_text(axis.get_label_text(), letters))
    spec = ax.get_subplotspec()
    columns = 1 if spec is None else spec.get_topmost_subplotspec().get_gridspec().ncols
    middle = (place.x0 + place.x1) / 2
    width = min(_TITLE_SHARE * figure.width / columns, 2 * (middle - figure.x0), 2 * (figure.x1 - middle)) * points
    room = (figure.y1 - place.y1) * points - rcParams["axes.titlepad"]
    for share in _TITLE_SIZES:
        size = share * font
        letters = max(int(width / (_LETTER_WIDTH * size)), _LETTERS_MIN)
        texts = [short_text(text, _TITLE_LINES * letters) for text in (title, "; ".join(notes)) if text]
        lines = [line for text in texts for line in wrap(text, letters)]
        if len(lines) * _LINE_HEIGHT * size <= room:
            break
    ax.set_title("\n".join(lines), fontsize=size)


def check_axes(name: str, ax: object) -> None:
    """Raises ArgumentError for what is no Axes to draw on, before anything is read."""
    if ax is not None and ax is not False and not hasattr(ax, "pcolormesh"):
        raise ArgumentError(f"show.{name}: ax={ax!r}; it is Axes of matplotlib, None for its current ones, or False")


def shown(drawing: Drawing, ax: Canvas) -> Axes | Drawing:
    """The drawing, or Axes that it is drawn on."""
    if ax is False or (ax is None and find_spec("matplotlib") is None):
        return drawing
    return drawing.plot(ax)


__all__ = ["BarDrawing", "CellDrawing", "DegreeDrawing", "Drawing"]
