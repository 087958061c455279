"""The command line of graphs: `outcore graph info`."""

from __future__ import annotations

import click

import outcore as oc
from outcore import config
from outcore._base.sizes import format_size
from outcore._command.shared import errors_in_one_line, json_option, limit_option, main, show
from outcore._show.degrees import bars, draw


@main.group()
def graph() -> None:
    """Graphs on disk."""


@graph.command()
@click.argument("path", type=click.Path())
@click.option("--direction", type=click.Choice(["out", "in", "both"]), default="both", show_default=True)
@click.option("--svg", "drawing", type=click.Path(), help="Also draw the histogram of degrees there.")
@limit_option
@json_option
@errors_in_one_line
def info(path: str, direction: str, drawing: str | None, memory_limit: int | None, as_json: bool) -> None:
    """Vertices and neighbours of the graph at PATH, its bytes on disk and in memory, and a histogram of degrees."""
    with config.set(memory_limit=memory_limit):
        G = oc.graph.open(path)
        degrees = G.degrees(direction)
    counts, most = G.degree_counts(direction), int(degrees.max(initial=0))
    content = {
        "vertices": G.number_of_vertices,
        "entries": G.number_of_entries,
        "directed": G.directed,
        "weights": str(G.dtype or "none"),
        "bytes": G.file_bytes,
        "index_bytes": G.index_bytes,
        "degree_max": most,
        "degrees": counts,
    }
    if drawing is not None:
        draw(drawing, path, counts, "vertices by neighbours")
    per = G.file_bytes / max(G.number_of_entries, 1)
    text = [
        f"vertices  {G.number_of_vertices:,}, edges lead {'one way' if G.directed else 'both ways'}",
        f"entries   {G.number_of_entries:,} neighbours in all lists, weights {content['weights']}",
        f"bytes     {format_size(G.file_bytes)}, {per:.2f} for each entry",
        f"memory    {format_size(G.index_bytes)} for the index",
        f"degrees   up to {most:,}; vertices by their neighbours, bars by logarithm:",
        bars(counts),
    ]
    show(content, as_json, "\n".join(text))


__all__ = ["graph"]
