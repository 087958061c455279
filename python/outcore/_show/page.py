"""The page of a profile: what the runs of a block did, as one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from outcore._base.sizes import format_size
from outcore._base.types import JSONObject
from outcore._session.record import Iterations, Outcome
from outcore._show.charts import activity
from outcore._show.markup import Markup, element, joined

# Colours are those of the page around, light or dark, but for that of bars, which can be seen on either.
_STYLE = """
.outcore { font: 14px/1.45 system-ui, sans-serif; max-width: 1000px; }
.outcore h2 { font-size: 1.15em; margin: 1.6em 0 .4em; }
.outcore .wide { overflow-x: auto; }
.outcore table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
.outcore th, .outcore td { padding: .2em .8em; text-align: right; white-space: nowrap; color: inherit; }
.outcore tr, .outcore tr:nth-child(even), .outcore tr:hover { background: none; }
.outcore thead th { border-bottom: 1px solid; font-weight: 600; }
.outcore .text { text-align: left; }
.outcore .slow { font-weight: 700; }
.outcore summary { cursor: pointer; margin: .4em 0; }
.outcore svg { display: block; width: 100%; min-width: 540px; max-width: 760px; font-size: 12px; fill: currentColor; }
.outcore svg .title { font-weight: 600; }
.outcore svg .value { text-anchor: end; opacity: .75; }
.outcore svg .number { text-anchor: middle; opacity: .75; }
.outcore svg .grid { stroke: currentColor; opacity: .15; }
.outcore svg .base { stroke: currentColor; opacity: .5; }
.outcore svg .bar { fill: #3987e5; }
.outcore svg .over { fill: currentColor; fill-opacity: 0; }
.outcore svg .over:hover { fill-opacity: .12; }
"""
# Nothing is fetched and nothing runs, whatever stands in the page.
_HEAD = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>outcore: profile</title>
<style>
:root { color-scheme: light dark; }
body { background: Canvas; color: CanvasText; margin: 2em; }
</style>
</head>
<body>
<main>
<h1>Profile</h1>
"""


class Runs(Protocol):
    """Figures of the page: runs, their sums, and disks of volumes."""

    outcomes: list[Outcome]

    @property
    def disks(self) -> list[JSONObject]: ...
    @property
    def bytes_read(self) -> int: ...
    @property
    def bytes_written(self) -> int: ...
    @property
    def bytes_spilled(self) -> int: ...
    @property
    def peak_bytes(self) -> int: ...
    @property
    def seconds(self) -> float: ...


def page(profile: Runs) -> str:
    """The page, whole."""
    return f"{_HEAD}{content(profile)}\n</main>\n</body>\n</html>\n"


def content(profile: Runs) -> Markup:
    """The content of the page, with its style: a part of any page."""
    parts = [element("style", Markup(_STYLE))]
    if not profile.outcomes:
        parts.append(element("p", "Nothing ran."))
    else:
        parts += [_sums(profile), element("h2", "Runs"), _runs(profile.outcomes)]
    if profile.disks:
        parts += [element("h2", "Disks of volumes"), _disks(profile.disks)]
    for number, outcome in enumerate(profile.outcomes, 1):
        if "graph" in outcome.other:
            parts += _of_graph(number, outcome)
    return element("div", joined(parts), class_="outcore")


def _sums(profile: Runs) -> Markup:
    rows = {
        "runs": f"{len(profile.outcomes):,}",
        "read": format_size(profile.bytes_read),
        "written": format_size(profile.bytes_written),
        "of these spilled": format_size(profile.bytes_spilled),
        "peak reserved": format_size(profile.peak_bytes),
        "seconds": _seconds(profile.seconds),
    }
    return _table(list(rows), [list(rows.values())], text=())


def _runs(outcomes: Sequence[Outcome]) -> Markup:
    head = ["run", "what", "read", "written", "spilled", "peak reserved", "seconds", "reading", "computing", "forecast"]
    rows = []
    for number, outcome in enumerate(outcomes, 1):
        sizes = (outcome.bytes_read, outcome.bytes_written, outcome.bytes_spilled, outcome.peak_bytes)
        # Threads of runs over graphs do both at once, and are not asked.
        parts = ("", "") if "graph" in outcome.other else map(_seconds, (outcome.read_seconds, outcome.compute_seconds))
        moved = [*map(format_size, sizes), _seconds(outcome.seconds), *parts]
        rows.append([f"{number:,}", _what(outcome), *moved, _forecast(outcome.other.get("stages", ()))])
    return _table(head, rows, text=("what", "forecast"))


def _what(outcome: Outcome) -> str:
    """The kind of the run: which function of graphs, or how many programs one after the other."""
    if "graph" in outcome.other:
        return run_over_graph(outcome)
    stages = len(outcome.other.get("stages", ()))
    text = "a program" if stages <= 1 else f"{stages} programs, one after the other"
    resumed = outcome.other.get("resumed_tiles", 0)
    return f"{text}; {resumed:,} tiles were there" if resumed else text


def _forecast(stages: Sequence[tuple[Sequence[int], Sequence[int]]]) -> str:
    """How what was planned compares with what was counted: bytes read, written and reserved, program by program.

    Runs over graphs have none: what they read follows from what they find.
    """
    if not stages:
        return "none"
    if all(list(forecast) == list(counted) for forecast, counted in stages):
        return "as counted"
    planned = [forecast for forecast, _ in stages]
    read, written, peak = (sum(row[0] for row in planned), sum(row[1] for row in planned), max(r[2] for r in planned))
    return f"differs: read {format_size(read)}, written {format_size(written)}, peak {format_size(peak)}"


def _disks(disks: Sequence[JSONObject]) -> Markup:
    head = ["volume", "disk", "requests", "read", "written", "seconds at work", "a second", "errors", "speed"]
    rows = []
    for row in disks:
        moved, busy = row["bytes_read"] + row["bytes_written"], row["busy_seconds"]
        counted = [f"{row['requests']:,}", format_size(row["bytes_read"]), format_size(row["bytes_written"])]
        speed = format_size(moved / busy) if busy else ""
        mark = element("span", "slow", class_="slow") if row["slow"] else ""
        rows.append([row["volume"], row["disk"], *counted, _seconds(busy), speed, f"{row['errors']:,}", mark])
    return _table(head, rows, text=("volume", "disk", "speed"))


def _of_graph(number: int, outcome: Outcome) -> list[Markup]:
    """Charts of a run over a graph, and the same as numbers."""
    name, rows = outcome.other["graph"], outcome.other["iterations"]
    parts = [element("h2", f"Run {number:,}, {run_over_graph(outcome)}")]
    if not rows:
        return parts
    head = ["iteration", "active", "lists", "read", "from the cache", "seconds"]
    figures = []
    for row in rows:
        last = row.first + row.number - 1
        at = f"{row.first:,}" if row.number == 1 else f"{row.first:,} to {last:,}"
        counts = (f"{row.active:,}", f"{row.lists:,}", format_size(row.bytes_read), f"{row.cache_hits:,}")
        figures.append([at, *counts, _seconds(row.seconds)])
    numbers = element("details", element("summary", "The numbers"), _table(head, figures, text=()))
    return [*parts, _wide(activity(name, rows), f"{name} by iteration"), numbers]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], *, text: Sequence[str]) -> Markup:
    """Columns are right-aligned but those of `text`."""
    lefts = [name in text for name in head]

    def row(kind: str, cells: Sequence[str]) -> Markup:
        aligned = zip(cells, lefts, strict=True)
        of = (element(kind, cell, class_="text") if is_text else element(kind, cell) for cell, is_text in aligned)
        return element("tr", *of)

    body = joined(row("td", cells) for cells in rows)
    table = element("table", element("thead", row("th", head)), element("tbody", body))
    return _wide(table, ", ".join(head))


def _wide(part: Markup, name: str) -> Markup:
    """A part that scrolls by itself where the page is narrow, by keys too."""
    return element("div", part, class_="wide", tabindex="0", role="group", aria_label=name)


def run_over_graph(outcome: Outcome) -> str:
    """In a line."""
    rows: Sequence[Iterations] = outcome.other["iterations"]
    total = sum(row.number for row in rows)
    parts = [f"{outcome.other['graph']}: {'1 iteration' if total == 1 else f'{total:,} iterations'}"]
    if "bytes_beside_iterations" in outcome.other:
        parts.append(f"{format_size(outcome.other['bytes_beside_iterations'])} read beside them")
    if "error" in outcome.other:
        parts.append(f"ended by {outcome.other['error']}")
    return "; ".join(parts)


def _seconds(value: float) -> str:
    return f"{value:,.3f}"


__all__ = ["content", "page", "run_over_graph"]
