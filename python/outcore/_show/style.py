"""The style of pages and of what notebooks show, for light and dark."""

from __future__ import annotations

# Colours by role, which can be told apart and read on white and on black alike.
COLORS = {
    "read": "#2f7fd6",
    "again": "#d4433b",
    "compute": "#b8730f",
    "write": "#2a9259",
    "spill": "#9a5bd0",
    "touch": "#7d7d86",
    "kept": "#2f7fd6",
    "passing": "#b8730f",
    "partial": "#9a5bd0",
    "results": "#2a9259",
    "process": "#7d7d86",
    "stored": "#2f7fd6",
    "temporary": "#9a5bd0",
    "result": "#2a9259",
    "memory": "#7d7d86",
    "limit": "#d4433b",
}

_RULES = """
.outcore { font: 14px/1.5 system-ui, sans-serif; max-width: 1080px; }
.outcore h2 { font-size: 1.25em; margin: 2em 0 .4em; overflow-wrap: anywhere; }
.outcore h3 { font-size: 1em; margin: 1.4em 0 .3em; }
.outcore p { margin: .4em 0; max-width: 75ch; overflow-wrap: anywhere; }
.outcore .lead { font-size: 1.1em; }
.outcore code { font: .92em/1.4 ui-monospace, monospace; overflow-wrap: anywhere; }
.outcore .wide { overflow-x: auto; }
.outcore .wide:focus-visible, .outcore summary:focus-visible, .outcore a:focus-visible {
  outline: 2px solid; outline-offset: 2px;
}
.outcore table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: .3em 0; }
.outcore th, .outcore td { padding: .2em .8em .2em 0; text-align: right; white-space: nowrap; color: inherit; }
.outcore tr, .outcore tr:nth-child(even), .outcore tr:hover { background: none; }
.outcore thead th { border-bottom: 1px solid; font-weight: 600; vertical-align: bottom; }
.outcore .text { text-align: left; }
.outcore td.text { white-space: normal; min-width: 12ch; max-width: 44ch; overflow-wrap: anywhere; }
.outcore .note { font-size: .87em; }
.outcore .slow { font-weight: 700; }
.outcore a { color: inherit; }
.outcore summary { cursor: pointer; margin: .6em 0; }
.outcore .sums { display: flex; flex-wrap: wrap; gap: .4em 2.2em; margin: .8em 0; }
.outcore .sums div { display: flex; flex-direction: column-reverse; }
.outcore .sums dt { font-size: .85em; }
.outcore .sums dd { margin: 0; font-size: 1.25em; font-variant-numeric: tabular-nums; }
.outcore .key {
  display: flex; flex-wrap: wrap; gap: .2em 1.2em; font-size: .87em; padding: 0; margin: .2em 0; list-style: none;
}
.outcore .key span {
  display: inline-block; width: .9em; height: .9em; margin-right: .4em; vertical-align: -.1em; border-radius: 2px;
}
.outcore .pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 420px), 1fr)); gap: 1.5em; }
.outcore svg { display: block; width: 100%; min-width: 640px; max-width: 860px; font-size: 12px; fill: currentColor; }
.outcore svg .title { font-weight: 600; }
.outcore svg .value { text-anchor: end; }
.outcore svg .number { text-anchor: middle; }
.outcore svg .grid { stroke: currentColor; opacity: .15; }
.outcore svg .base { stroke: currentColor; opacity: .5; }
.outcore svg .bar { fill: #3987e5; }
.outcore svg .over { fill: currentColor; fill-opacity: 0; }
.outcore svg .over:hover { fill-opacity: .12; }
.outcore svg .back { fill: currentColor; fill-opacity: .06; }
.outcore svg .line { fill: none; stroke-width: 1.5; }
.outcore svg .resident { fill-opacity: .75; }
.outcore svg .edge { fill: none; opacity: .45; stroke: var(--c); }
"""

_INK = """
.outcore svg .ink { fill: var(--c); }
.outcore svg .line { stroke: var(--c); }
.outcore .key span { background: var(--c); }
"""
STYLE = _RULES + "".join(f".outcore .{role} {{ --c: {color}; }}\n" for role, color in COLORS.items()) + _INK

# The same for an image that stands by itself.
INLINE = (
    """
.value { text-anchor: end; }
.number { text-anchor: middle; }
.title { font-weight: 600; }
.grid { stroke: #888; opacity: .3; }
.base { stroke: #888; }
.back { fill: #888; fill-opacity: .12; }
.resident { fill-opacity: .75; }
.edge { fill: none; opacity: .45; }
.line { fill: none; stroke-width: 1.5; }
svg text { fill: currentColor; }
"""
    + "".join(f".ink.{role} {{ fill: {color}; }}\n" for role, color in COLORS.items())
    + "".join(f".edge.{role}, .line.{role} {{ stroke: {color}; }}\n" for role, color in COLORS.items())
)

# Nothing is fetched and nothing runs, whatever stands in the page.
HEAD = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>outcore: {title}</title>
<style>
:root {{ color-scheme: light dark; }}
/* Content that goes on beyond an edge has a shadow there; covers of the page's colour scroll with its ends. */
main .wide {{
  background: linear-gradient(to right, Canvas 40%, transparent) left / 28px 100% no-repeat local,
    linear-gradient(to left, Canvas 40%, transparent) right / 28px 100% no-repeat local,
    linear-gradient(to right, rgb(128 128 128 / .6), transparent) left / 14px 100% no-repeat scroll,
    linear-gradient(to left, rgb(128 128 128 / .6), transparent) right / 14px 100% no-repeat scroll;
}}
body {{ background: Canvas; color: CanvasText; margin: clamp(.8em, 3vw, 2em); font-family: system-ui, sans-serif; }}
</style>
</head>
<body>
<main>
<h1>{title}</h1>
"""
FOOT = "\n</main>\n</body>\n</html>\n"


__all__ = ["COLORS", "FOOT", "HEAD", "INLINE", "STYLE"]
