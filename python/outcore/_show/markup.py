"""Elements of HTML and SVG as text. Content of an element is escaped, unless it is an element itself."""

from __future__ import annotations

from collections.abc import Iterable

# Characters that neither XML nor HTML may have, those that turn the direction of text around them, and parts of names
# that are no text.
_TURNING = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_CONTROLS = {
    number: "\ufffd"
    for number in (*range(32), *range(127, 160), *_TURNING, 0xFFFE, 0xFFFF)
    if chr(number) not in "\t\n\r"
} | dict.fromkeys(range(0xD800, 0xE000), "?")


class Markup(str):
    """Text that stands as it is; any other could be anything, names of users' files and functions among it."""

    __slots__ = ()


def element(name: str, /, *content: str, **attributes: str | float) -> Markup:
    """An element around its content. Underscores of attributes are dashes, but for that of `class_`."""
    attached = "".join(f' {key.rstrip("_").replace("_", "-")}="{_said(value)}"' for key, value in attributes.items())
    return Markup(f"<{name}{attached}>{joined(content, '')}</{name}>")


def drawing(*content: str, **attributes: str | float) -> Markup:
    """An image, which can stand in a file of its own."""
    return element("svg", joined(["", *content, ""]), xmlns="http://www.w3.org/2000/svg", **attributes)


def escape(text: str) -> str:
    """Text as the content of an element."""
    from html import escape as escaped  # and with it the names of all characters, which imports of outcore do without

    return escaped(text.translate(_CONTROLS))


def joined(parts: Iterable[str], between: str = "\n") -> Markup:
    """Elements and text one after the other."""
    return Markup(between.join(part if isinstance(part, Markup) else escape(part) for part in parts))


def _said(value: str | float) -> str:
    """Places are numbers of points, of which tenths are enough."""
    return escape(value) if isinstance(value, str) else f"{round(value, 1):.10g}"


__all__ = ["Markup", "drawing", "element", "escape", "joined"]
