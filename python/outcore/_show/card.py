"""Cards: what a notebook shows of an object, a table of facts with a picture beside it.

A card is one element that needs nothing from elsewhere. Its colours are those of the text around it, so that it is
readable in light and dark notebooks; its styles are bound to its class.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from outcore._base.shortened import short_path, short_text
from outcore._show.markup import Markup, element

_NAME, _NAME_MAX = 28, 60  # characters of a name in one line, and of one that is not shortened
_TITLE, _VALUE = 120, 400  # characters of a title, and of a value; a longer one is shortened, with the whole on hover
_STYLE = (
    ".outcore-card{font:13px/1.5 system-ui,sans-serif;color:inherit;max-width:60em;overflow-wrap:anywhere}"
    ".outcore-card .outcore-title{font-weight:600;margin:0 0 .3em}"
    ".outcore-card .outcore-body{display:flex;flex-wrap:wrap;gap:.6em 2em;align-items:flex-start}"
    ".outcore-card .outcore-facts{border-collapse:collapse;margin:0;font-size:inherit;border:0;flex:1 1 15em;"
    "min-width:0;width:auto;color:inherit;table-layout:auto}"
    ".outcore-card .outcore-facts tr{background:none;border:0}"
    ".outcore-card .outcore-facts th,.outcore-card .outcore-facts td{text-align:left;vertical-align:top;border:0;"
    "background:none;padding:.1em 0;white-space:normal;max-width:none;font-size:inherit}"
    ".outcore-card .outcore-facts th{font-weight:400;opacity:.75;padding-right:1.2em;min-width:5.5em;"
    "width:1%;white-space:nowrap}"
    ".outcore-card .outcore-facts th.outcore-long{white-space:normal;min-width:10em}"
    ".outcore-card .outcore-facts td{font-variant-numeric:tabular-nums}"
    ".outcore-card .outcore-picture{margin:0;flex:none;max-width:100%}"
    ".outcore-card .outcore-picture svg{display:block;max-width:100%;height:auto}"
    ".outcore-card .outcore-picture text{fill:currentColor;font:11px system-ui,sans-serif}"
    ".outcore-card .outcore-note{margin:.4em 0 0;opacity:.75}"
    ".outcore-card code{background:none;color:inherit;font-size:12px;padding:0}"
)


class Fact(NamedTuple):
    """A row of a card: a name, its value, and the whole of a value that is shortened."""

    name: str
    value: str
    whole: str = ""


def path_fact(name: str, path: str, *, before: str = "") -> Fact:
    """A path by its last parts, the whole of it on hover."""
    short = short_path(path)
    return Fact(name, f"{before}{short}", path if short != path else "")


def card(title: str, facts: Iterable[Fact], picture: Markup | None = None, note: Sequence[str] = ()) -> str:
    """The card of an object. Text of a `note` between two others is code."""
    rows = [_row(fact) for fact in facts]
    table = element("table", element("tbody", *rows), class_="outcore-facts") if rows else Markup()
    beside = [] if picture is None else [element("div", picture, class_="outcore-picture")]
    parts = [
        element("style", Markup(_STYLE)),
        element("div", short_text(title, _TITLE), class_="outcore-title"),
        element("div", *beside, table, class_="outcore-body"),
    ]
    if note:
        said = [element("code", part) if place % 2 else part for place, part in enumerate(note)]
        parts.append(element("div", *said, class_="outcore-note"))
    return str(element("div", *parts, class_="outcore-card"))


def _row(fact: Fact) -> Markup:
    name, value = short_text(fact.name, _NAME_MAX), short_text(fact.value, _VALUE)
    whole = fact.whole or (fact.value if value != fact.value else "")
    cell = element("td", value, title=whole) if whole else element("td", value)
    long = {"class_": "outcore-long", "title": fact.name} if len(name) > _NAME else {}
    return element("tr", element("th", name, scope="row", **long), cell)


__all__ = ["Fact", "card", "path_fact"]
