"""`Picture`: the plan as a graph, in DOT and SVG. Graphviz draws it if installed, else a small layout does."""

from __future__ import annotations

import re

from outcore._show.markup import escape

_TOKEN = r'"(?:[^"\\]|\\.)*"|[\w.:]+'
_EDGE = re.compile(rf"^\s*({_TOKEN})\s*->\s*({_TOKEN})", re.MULTILINE)
_NODE = re.compile(rf"^\s*({_TOKEN})\s*\[(.*)\]\s*;?\s*$", re.MULTILINE)
_LABEL = re.compile(r'label\s*=\s*"((?:[^"\\]|\\.)*)"')
_CHARACTER, _LINE, _GAP, _LAYER = 7.2, 16, 24, 44


class Picture:
    """A drawing of a plan: `dot` is its text for Graphviz, `svg()` the image; notebooks show it. Made by `visualize`.

    >>> import outcore as oc
    >>> "<svg" in oc.visualize(oc.arange(4).sum()).svg()
    True
    """

    def __init__(self, dot: str) -> None:
        self.dot = dot

    def __str__(self) -> str:
        return self.dot

    def _repr_svg_(self) -> str:
        return self.svg()

    def svg(self) -> str:
        """The image, drawn by Graphviz where `dot` is on the path."""
        import shutil  # by who draws, not by all who import outcore
        import subprocess

        program = shutil.which("dot")
        if program is None:
            return _layered(self.dot)
        drawn = subprocess.run([program, "-Tsvg"], input=self.dot, capture_output=True, text=True, check=True)
        return drawn.stdout


def _name(token: str) -> str:
    return token.strip('"').split(":")[0] if not token.startswith('"') else token[1:-1]


def _parse(dot: str) -> tuple[dict[str, list[str]], list[tuple[str, str]]]:
    """Nodes with the lines of their labels, and edges."""
    edges = [(_name(tail), _name(head)) for tail, head in _EDGE.findall(dot)]
    labels: dict[str, list[str]] = {}
    for token, attributes in _NODE.findall(dot):
        name = _name(token)
        if name in ("node", "edge", "graph"):
            continue
        label = _LABEL.search(attributes)
        text = label.group(1) if label else name
        labels[name] = re.split(r"\\[nlr]", text.replace('\\"', '"'))
    for edge in edges:
        for name in edge:
            labels.setdefault(name, [name])
    return labels, edges


def _layers(names: list[str], edges: list[tuple[str, str]]) -> list[list[str]]:
    """Each node one layer below its deepest input; within a layer, ordered by the mean place of its inputs."""
    inputs: dict[str, list[str]] = {name: [] for name in names}
    for tail, head in edges:
        inputs[head].append(tail)
    depth: dict[str, int] = dict.fromkeys(names, 0)
    # A plan has no cycles, so as many sweeps as there are layers settle every depth.
    for _ in names:
        moved = False
        for tail, head in edges:
            if depth[head] <= depth[tail] < len(names):
                depth[head], moved = depth[tail] + 1, True
        if not moved:
            break
    layers: list[list[str]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for name in names:
        layers[depth[name]].append(name)
    place: dict[str, float] = {}
    for layer in layers:
        layer.sort(key=lambda name: sum(place.get(i, 0) for i in inputs[name]) / max(1, len(inputs[name])))
        place.update({name: at / max(1, len(layer)) for at, name in enumerate(layer)})
    return layers


def _layered(dot: str) -> str:
    labels, edges = _parse(dot)
    layers = _layers(list(labels), edges)
    size = {n: (max(map(len, ls)) * _CHARACTER + 16, len(ls) * _LINE + 10) for n, ls in labels.items()}
    widths = [sum(size[name][0] + _GAP for name in layer) for layer in layers]
    total = max(widths, default=0) + _GAP
    box: dict[str, tuple[float, float]] = {}
    top: float = _GAP
    for layer, width in zip(layers, widths, strict=True):
        left = (total - width + _GAP) / 2
        for name in layer:
            box[name] = (left, top)
            left += size[name][0] + _GAP
        top += max(size[name][1] for name in layer) + _LAYER
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{total:.0f}" height="{top:.0f}" font-family="monospace" '
        'font-size="12"><defs><marker id="tip" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 z"/></marker></defs>'
    ]
    for tail, head in edges:
        x1, y1 = box[tail][0] + size[tail][0] / 2, box[tail][1] + size[tail][1]
        x2, y2 = box[head][0] + size[head][0] / 2, box[head][1]
        bend = (y1 + y2) / 2
        path = f"M{x1:.0f},{y1:.0f} C{x1:.0f},{bend:.0f} {x2:.0f},{bend:.0f} {x2:.0f},{y2:.0f}"
        parts.append(f'<path d="{path}" fill="none" stroke="#666" marker-end="url(#tip)"/>')
    for name, (x, y) in box.items():
        width, height = size[name]
        parts.append(
            f'<rect x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{height:.0f}" fill="#eef" stroke="#446"/>'
        )
        for line, text in enumerate(labels[name]):
            at = y + 5 + _LINE * (line + 0.75)
            parts.append(f'<text x="{x + width / 2:.0f}" y="{at:.0f}" text-anchor="middle">{escape(text)}</text>')
    return "".join([*parts, "</svg>"])
