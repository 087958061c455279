"""Tables of pages, which scroll by themselves where they are wide."""

from __future__ import annotations

from collections.abc import Sequence

from outcore._show.markup import Markup, element, joined


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, name: str, text: Sequence[str] = ()) -> Markup:
    """A table; columns are right-aligned but those of `text`."""
    lefts = [column in text for column in head]

    def row(kind: str, cells: Sequence[str]) -> Markup:
        aligned = zip(cells, lefts, strict=True)
        of = (element(kind, cell, class_="text") if is_text else element(kind, cell) for cell, is_text in aligned)
        return element("tr", *of)

    body = joined(row("td", cells) for cells in rows)
    return wide(element("table", element("thead", row("th", head)), element("tbody", body)), name)


def wide(content: Markup, name: str) -> Markup:
    """Content that scrolls by itself where the page is narrower, with the keyboard too."""
    return element("div", content, class_="wide", role="group", aria_label=name, tabindex="0")


def disclosure(summary: str, content: Markup) -> Markup:
    """Content behind a line, which opens it."""
    return element("details", element("summary", summary), content)


def sums(figures: Sequence[tuple[str, str]]) -> Markup:
    """Figures in a row, each above its name."""
    items = (element("div", element("dt", name), element("dd", value)) for name, value in figures)
    return element("dl", *items, class_="sums")


__all__ = ["disclosure", "sums", "table", "wide"]
