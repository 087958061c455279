"""`Picture`: the plan as passes over time, with the arrays that they read and make, and when these are in memory."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from outcore._base.shortened import printable_text
from outcore._base.sizes import format_size
from outcore._base.types import JSONObject
from outcore._session.trace import ArrayStrip, Occupancy
from outcore._show.explanation import Explanation, Pass, folded, pass_label, renamed
from outcore._show.markup import Markup, drawing, element
from outcore._show.memory import key
from outcore._show.names import strip_names
from outcore._show.strips import STRIP_KEY, drawn_strip
from outcore._show.style import FOOT, HEAD, INLINE, STYLE
from outcore._show.tables import disclosure, sums, table, wide

# Points from the left end of passes and arrays. Names stand left of these, figures right of them, and the image is as
# wide as the longest of both.
_LEFT, _WIDTH, _BESIDE, _MARGIN, _LETTER = 0, 540, 8, 16, 7.8
_HEAD, _GAP, _MIDDLE = 26, 6, 44
_BOX_MIN, _BOX_MAX, _STRIP, _EDGE_MAX = 16.0, 52.0, 22, 10.0
# Passes, arrays, edges and stages that are drawn at most: those of most bytes.
_BOXES, _STRIPS, _EDGES, _STAGES = 24, 24, 80, 12
_NAME_MAX = 28  # letters
_KEY = (("compute", "a pass; its area follows its bytes"), *STRIP_KEY)


class _Box(NamedTuple):
    """A pass, or passes that repeat, where they are drawn."""

    name: str
    passes: Sequence[Pass]
    left: float
    width: float
    top: float
    height: float


class _StageDrawing(NamedTuple):
    """A stage: its parts, its height, and the texts on the left and on the right of it."""

    parts: list[Markup]
    height: float
    names: list[str]
    figures: list[str]


class Picture:
    """A drawing of a plan; notebooks show it. Made by `visualize`.

    `svg()` is the image: passes above, each as wide as the part of the plan in which it runs, and arrays below, each as
    high as the share of it that is in memory. `html()` is a page with the passes' details, `png()` the image in pixels
    where the package cairosvg is installed, `dot` the source of the plan for Graphviz. Printed it is a line for each
    pass. None does any I/O.

    >>> import outcore as oc
    >>> "<svg" in oc.visualize(oc.arange(4).sum()).svg()
    True
    """

    def __init__(self, dot: str, forecast: JSONObject, occupancies: Sequence[str], names: Mapping[str, str]) -> None:
        self.dot = dot
        self._names = names
        self._stages = [
            (label, exact, renamed(Explanation(program), names), Occupancy.of(json.loads(text)))
            for (label, exact, program), text in zip(_programs(forecast), occupancies, strict=True)
        ]

    def __str__(self) -> str:
        lines = [f"A plan of {self._passes()}:"]
        for number, (_, _, forecast, _) in enumerate(self._stages[:_STAGES]):
            if len(self._stages) > 1:
                lines.append(self._title(number))
            rows = [
                (_pass_name(index, times, alike), _moved_text(alike)) for index, times, alike in folded(forecast.passes)
            ]
            wide = max((len(name) for name, _ in rows[:_BOXES]), default=0)
            lines += [f"  {name:<{wide}}  {moved}" for name, moved in rows[:_BOXES]]
            if len(rows) > _BOXES:
                lines.append(f"  {len(rows) - _BOXES:,} rows more")
        if len(self._stages) > _STAGES:
            lines.append(f"{len(self._stages) - _STAGES:,} stages more")
        lines.append("svg(), html() and png() draw it; dot is its source for Graphviz")
        return "\n".join(map(printable_text, lines))

    def __repr__(self) -> str:
        return f"Picture({self._passes()}; svg(), html(), png() and dot)"

    def _passes(self) -> str:
        """The numbers of stages and passes."""
        passes = sum(len(forecast.passes) for _, _, forecast, _ in self._stages)
        stages = f"{len(self._stages)} stages, " if len(self._stages) > 1 else ""
        return f"{stages}{passes:,} pass{'' if passes == 1 else 'es'}"

    def _title(self, number: int) -> str:
        label, exact, _, _ = self._stages[number]
        return f"stage {number + 1} of {len(self._stages)}: {label}{'' if exact else ' (bounds)'}"

    def _repr_html_(self) -> str:
        return element("div", element("style", Markup(STYLE)), *self._content(), class_="outcore")

    def svg(self) -> str:
        """The image, stages one below the other."""
        parts: list[Markup] = [element("style", Markup(INLINE))]
        top, begin, end = 0.0, float(_LEFT), float(_LEFT + _WIDTH)
        for number in range(min(len(self._stages), _STAGES)):
            drawn = self._stage(number, top)
            parts += drawn.parts
            top += drawn.height
            begin = min(begin, _LEFT - _room(drawn.names))
            end = max(end, _LEFT + _WIDTH + _room(drawn.figures))
        if len(self._stages) > _STAGES:
            parts.append(element("text", f"{len(self._stages) - _STAGES:,} stages more", x=_LEFT, y=top + 16))
            top += 24
        inside = element("g", *parts, class_="outcore")
        size = f"{begin:.0f} 0 {end - begin:.0f} {top:.0f}"
        attributes: dict[str, str | float] = {
            "width": round(end - begin),
            "height": round(top),
            "font-family": "system-ui, sans-serif",
            "font-size": "12",
        }
        attributes |= {"viewBox": size, "role": "img", "aria_label": f"The plan: {self!r}"}
        return drawing(inside, **attributes)

    def html(self) -> str:
        """A page with the image, and details of each pass and array; it needs nothing else, and no scripts."""
        body = element("div", element("style", Markup(STYLE)), *self._content(), class_="outcore")
        return f"{HEAD.format(title='Plan')}{body}{FOOT}"

    def png(self) -> bytes:
        """The image in pixels. Raises ImportError where the package cairosvg is not installed."""
        try:
            import cairosvg
        except ImportError:
            raise ImportError(
                "visualize: PNG needs the package cairosvg (pip install cairosvg); .svg and .html need nothing"
            ) from None
        image: bytes = cairosvg.svg2png(bytestring=self.svg().encode(), scale=2, background_color="white")
        return image

    def _content(self) -> list[Markup]:
        forecasts = [forecast for _, _, forecast, _ in self._stages]
        figures = [
            ("read", format_size(sum(forecast.bytes_read for forecast in forecasts))),
            ("written", format_size(sum(forecast.bytes_written for forecast in forecasts))),
            ("of these spilled", format_size(sum(forecast.bytes_spilled for forecast in forecasts))),
            ("peak reserved", format_size(max((forecast.peak_bytes for forecast in forecasts), default=0))),
            ("passes", f"{sum(len(forecast.passes) for forecast in forecasts):,}"),
        ]
        parts = [sums(figures), key(_KEY), wide(Markup(self.svg()), "The plan")]
        for number, (label, exact, forecast, occupancy) in enumerate(self._stages, 1):
            stage = f"stage {number}, {label}{'' if exact else ' (bounds)'}: " if len(self._stages) > 1 else ""
            parts.append(disclosure(f"{stage}passes", _pass_table(forecast)))
            parts.append(disclosure(f"{stage}arrays", _array_table(occupancy, self._names)))
        return parts

    def _stage(self, number: int, top: float) -> _StageDrawing:
        """A stage below `top`."""
        _, _, forecast, occupancy = self._stages[number]
        parts: list[Markup] = []
        height = 4.0
        if len(self._stages) > 1:
            parts.append(element("text", self._title(number), x=_LEFT, y=top + 18, class_="title"))
            height += _HEAD
        boxes, bottom = _boxes(forecast, occupancy, top + height)
        strips = _strips_shown(occupancy)
        first = bottom + _MIDDLE
        places = {strip.number: first + at * (_STRIP + _GAP) for at, strip in enumerate(strips)}
        parts += _edges(boxes, strips, places, occupancy)
        parts += [part for box in boxes for part in _box(box)]
        names = strip_names(occupancy.arrays, self._names)
        for strip in strips:
            parts += _strip(strip, places[strip.number], occupancy.columns, names[strip.number])
        left_out = len(occupancy.arrays) - len(strips) + occupancy.arrays_left_out
        height = first + len(strips) * (_STRIP + _GAP) - top + 14
        if left_out:
            more = "1 array more" if left_out == 1 else f"{left_out:,} arrays more"
            parts.append(element("text", f"{more}, of fewer bytes", x=_LEFT, y=top + height))
            height += 18
        rows = [box.name for box in boxes] + [names[strip.number] for strip in strips]
        figures = [_moved_text(box.passes) for box in boxes] + [_figure(strip) for strip in strips]
        return _StageDrawing(parts, height, [_cut(name, _NAME_MAX) for name in rows], figures)


def _programs(forecast: JSONObject) -> list[tuple[str, bool, JSONObject]]:
    """Label, exactness and program of each stage."""
    if "stages" not in forecast:
        return [("", bool(forecast["exact"]), forecast)]
    return [(stage["label"], bool(stage["exact"]), stage["program"]) for stage in forecast["stages"]]


def _room(texts: Sequence[str]) -> float:
    """The width of a column of texts, with what lies around it."""
    return _BESIDE + _LETTER * max(map(len, texts), default=0) + _MARGIN


def _x(column: float, columns: int) -> float:
    return _LEFT + _WIDTH * column / max(columns, 1)


def _boxes(forecast: Explanation, occupancy: Occupancy, top: float) -> tuple[list[_Box], float]:
    """Boxes of the passes in their order, one row each, and where they end."""
    rows = folded(forecast.passes)
    heaviest = sorted(range(len(rows)), key=lambda at: -_moved(rows[at][2]))[:_BOXES]
    most = max((_moved(rows[at][2]) for at in heaviest), default=1) or 1
    boxes = []
    for at in sorted(heaviest):
        index, times, alike = rows[at]
        spans = [span for one in alike if (span := occupancy.passes[one.index]) is not None]
        begin, end = (min(span[0] for span in spans), max(span[1] for span in spans)) if spans else (0, 1)
        left, right = _x(begin, occupancy.columns), _x(end, occupancy.columns)
        width = max(right - left, 3.0)
        # Area follows bytes: a short pass of many bytes is high.
        height = _moved(alike) / most * _BOX_MAX * min(_WIDTH / width, 8.0)
        height = min(max(height, _BOX_MIN), _BOX_MAX)
        boxes.append(_Box(_pass_name(index, times, alike), alike, left, width, top, height))
        top += height + _GAP
    if len(rows) > len(boxes):
        top += 4
    return boxes, top


def _pass_name(index: int, times: int, alike: Sequence[Pass]) -> str:
    """The number of a pass, or how often it repeats, and its operators."""
    return f"{f'{times:,} × ' if times > 1 else f'{index}: '}{pass_label(alike[0])}"


def _moved(passes: Sequence[Pass]) -> int:
    return sum(one.bytes_read + one.bytes_written for one in passes)


def _box(box: _Box) -> list[Markup]:
    read, written = (sum(getattr(one, name) for one in box.passes) for name in ("bytes_read", "bytes_written"))
    tasks = sum(one.tasks for one in box.passes)
    hint = f"{box.name}: {tasks:,} tasks, {format_size(read)} read, {format_size(written)} written"
    middle = box.top + box.height / 2 + 4
    shape = {"x": box.left, "y": box.top, "width": box.width, "height": box.height, "rx": 3}
    return [
        element("rect", element("title", hint), **shape, class_="ink compute"),
        element("text", element("title", hint), _cut(box.name, _NAME_MAX), x=_LEFT - _BESIDE, y=middle, class_="value"),
        element("text", _moved_text(box.passes), x=_LEFT + _WIDTH + _BESIDE, y=middle),
    ]


def _moved_text(passes: Sequence[Pass]) -> str:
    """The bytes that passes move, in words."""
    read, written = (sum(getattr(one, name) for one in passes) for name in ("bytes_read", "bytes_written"))
    sizes = ((read, "read"), (written, "written"))
    return ", ".join(f"{format_size(size)} {verb}" for size, verb in sizes if size) or "in memory"


def _strips_shown(occupancy: Occupancy) -> list[ArrayStrip]:
    heaviest = sorted(
        occupancy.arrays, key=lambda strip: -(strip.read + strip.written + 2 * strip.spilled + strip.peak)
    )
    shown = {strip.number for strip in heaviest[:_STRIPS]}
    return [strip for strip in occupancy.arrays if strip.number in shown]


def _strip(strip: ArrayStrip, top: float, columns: int, label: str) -> list[Markup]:
    """The share of an array in memory, and below it when it is read, read again, spilled and written."""
    whole = _STRIP - 6
    name = strip.names[0] if strip.names else ""
    shape = " × ".join(f"{length:,}" for length in strip.shape) or "one number"
    hint = f"{name}: {shape} {strip.dtype}, {strip.tiles:,} tiles, at most {format_size(strip.peak)} in memory"
    width = _WIDTH / max(columns, 1)
    places = ((_x(column, columns), width, (column,)) for column in range(columns))
    box = {"x": _LEFT, "y": top, "width": _WIDTH, "height": _STRIP}
    middle = top + whole / 2 + 4
    return [
        element("rect", element("title", hint), **box, class_="back"),
        *drawn_strip(strip, places, top, whole),
        element("text", element("title", hint), _cut(label, _NAME_MAX), x=_LEFT - _BESIDE, y=middle, class_="value"),
        element("text", _figure(strip), x=_LEFT + _WIDTH + _BESIDE, y=middle),
    ]


def _figure(strip: ArrayStrip) -> str:
    once = strip.read - strip.read_again
    if strip.spilled:
        return f"{format_size(strip.spilled)} spilled"
    if strip.role == "stored" and strip.read_again and once:
        return f"read {strip.read / once:.1f} times"
    if strip.written:
        return f"{format_size(strip.written)}"
    return format_size(strip.read or strip.bytes)


def _edges(
    boxes: Sequence[_Box], strips: Sequence[ArrayStrip], places: Mapping[int, float], occupancy: Occupancy
) -> list[Markup]:
    """Lines between passes and the arrays that they read and make, as wide as what flows."""
    box_of = {one.index: box for box in boxes for one in box.passes}
    flows: dict[tuple[int, int], list[int]] = {}
    for number, array, taken, made in occupancy.flows:
        if number in box_of and array in places:
            sizes = flows.setdefault((boxes.index(box_of[number]), array), [0, 0])
            sizes[0] += taken
            sizes[1] += made
    heaviest = sorted(flows.items(), key=lambda flow: -sum(flow[1]))[:_EDGES]
    most = max((sum(sizes) for _, sizes in heaviest), default=1) or 1
    roles = {strip.number: strip.role for strip in strips}
    # Lines of a pass stand beside each other, in the order of their arrays.
    sides = {at: sorted(array for (of, array), _ in heaviest if of == at) for (at, _), _ in heaviest}
    parts = []
    for (at, array), (taken, made) in heaviest:
        box = boxes[at]
        x = box.left + box.width * (sides[at].index(array) + 1) / (len(sides[at]) + 1)
        top, bottom = box.top + box.height, places[array]
        width = max(_EDGE_MAX * (taken + made) / most, 0.8)
        hint = element("title", f"{box.name}: {format_size(taken)} taken, {format_size(made)} made")
        line = f"M{x:.1f} {top:.1f}V{bottom:.1f}"
        parts.append(element("path", hint, d=line, class_=f"edge {roles[array]}", stroke_width=width))
    return parts


def _cut(text: str, most: int) -> str:
    """The text in the room that there is: the end of a path, the beginning of any other."""
    if os.sep in text and len(text) > most:
        return f"…{text[1 - most :]}"
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _pass_table(forecast: Explanation) -> Markup:
    head = ["pass", "operators", "over", "tasks", "read", "written", "inputs", "outputs"]
    rows = []
    for index, times, alike in folded(forecast.passes)[:200]:
        part = alike[0]
        rows.append(
            [
                str(index) if times == 1 else f"{index} × {times:,}",
                part.label,
                " × ".join(f"{length}/{tile}" for length, tile in part.domain) or "once",
                f"{sum(one.tasks for one in alike):,}",
                format_size(sum(one.bytes_read for one in alike)),
                format_size(sum(one.bytes_written for one in alike)),
                ", ".join(part.inputs),
                ", ".join(part.outputs),
            ]
        )
    return table(head, rows, name="Passes", text=("operators", "inputs", "outputs"))


def _array_table(occupancy: Occupancy, names: Mapping[str, str]) -> Markup:
    head = ["array", "role", "shape", "type", "tiles", "at most in memory", "read", "read again", "spilled", "written"]
    rows = []
    labels = strip_names(occupancy.arrays, names)
    for strip in occupancy.arrays:
        name = ", ".join([labels[strip.number], *(names.get(name, name) for name in strip.names[1:])])
        sizes = (strip.peak, strip.read, strip.read_again, strip.spilled, strip.written)
        shape = " × ".join(f"{length:,}" for length in strip.shape) or "one number"
        rows.append([name, strip.role, shape, strip.dtype, f"{strip.tiles:,}", *map(format_size, sizes)])
    return table(head, rows, name="Arrays", text=("array", "role"))


__all__ = ["Picture"]
