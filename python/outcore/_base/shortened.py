"""Text that fits a terminal: paths, shapes, values and calls, shortened where they are long."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from outcore._base.types import NDArray

COLUMNS = 100
_INDENT = "    "
_LINES = 12  # of a value among others
_LENGTHS = 6  # of axes, of a shape of many


def printable_text(text: str) -> str:
    """Text in which control characters, and those that turn the direction of writing, have a mark in their place."""
    return text if text.isprintable() else "".join(letter if letter.isprintable() else "\ufffd" for letter in text)


def short_text(text: str, width: int = COLUMNS) -> str:
    """Text in one line of so many columns at most: characters of its middle are left out for it."""
    # Far more than any line takes is not gone through, however long the text is.
    if len(text) > 4 * width:
        text = text[: 2 * width] + text[-2 * width :]
        text = text[:width] + "…" + text[-width:]
    line = printable_text(" ".join(text.split()))
    if len(line) <= width:
        return line
    head = (width - 1) // 2
    return f"{line[:head]}…{line[len(line) - (width - 1 - head) :]}"


def short_path(path: str, width: int = 60) -> str:
    """A path by as many of its last parts as there is room for: `…/data/x.npy`."""
    line = short_text(path, len(path))
    if len(line) <= width:
        return line
    parts = line.split("/")
    kept = parts[-1]
    for part in reversed(parts[:-1]):
        if len(kept) + len(part) + 3 > width:
            break
        kept = f"{part}/{kept}"
    return f"…/{kept}" if len(kept) + 2 <= width else short_text(kept, width)


def short_shape(shape: Sequence[int]) -> str:
    """A shape as Python writes it, of many axes the first and the last lengths."""
    if len(shape) <= _LENGTHS:
        return str(tuple(shape))
    half = _LENGTHS // 2
    return f"({', '.join(map(str, shape[:half]))}, …, {', '.join(map(str, shape[-half:]))})"


def short_values(values: NDArray, is_all: bool, width: int = 44) -> str:
    """The first values of an array, as NumPy writes them, as many whole ones as there is room for."""
    import numpy as np  # loaded by all who have values

    line = "[]"
    for count in range(len(values), 0, -1):
        line = np.array2string(values[:count], max_line_width=1 << 20, threshold=1 << 10, precision=4)
        line = line if is_all and count == len(values) else f"{line[:-1]} …]"
        if len(" ".join(line.split())) <= width:
            break
    else:
        if values.ndim > 1 and len(values):
            return short_values(values[0], False, width)
    return short_text(line, width)


def short_names(names: Sequence[str], width: int = COLUMNS) -> str:
    """Names with commas between them, as many as there is room for, and how many more there are."""
    kept: list[str] = []
    for name in names:
        kept.append(short_text(name, 40))
        if len(", ".join(kept)) > width - 16:
            kept.pop()
            break
    more = len(names) - len(kept)
    return ", ".join(kept) + (f" and {more:,} more" if kept and more else f"{more:,}" if more else "")


def call_text(name: str, parts: Iterable[str]) -> str:
    """A call as Python writes it, in lines that fit: one, or one for as many of the parts as there is room for."""
    return _laid(f"{name}(", parts, ")")


def angle_text(name: str, parts: Iterable[str]) -> str:
    """An object that no call makes, in angle brackets, in lines that fit."""
    return _laid(f"<{name} ", parts, ">")


def _laid(opening: str, parts: Iterable[str], closing: str) -> str:
    listed = [short_text(part, COLUMNS - len(_INDENT) - 1) for part in parts]
    line = f"{opening}{', '.join(listed)}{closing}"
    if len(line) <= COLUMNS:
        return line
    lines = [""]
    for place, part in enumerate(listed):
        text = part + ("," if place < len(listed) - 1 else closing)
        if lines[-1] and len(_INDENT) + len(lines[-1]) + 1 + len(text) > COLUMNS:
            lines.append("")
        lines[-1] += f" {text}" if lines[-1] else text
    return "\n".join([opening.rstrip(), *(f"{_INDENT}{part}" for part in lines)])


def record_text(record: object, names: Sequence[str]) -> str:
    """A record by the names of its fields: in one line where that fits, else a field in each."""
    fields = [(name, repr(getattr(record, name))) for name in names]
    name = type(record).__name__
    line = f"{name}({', '.join(f'{field}={value}' for field, value in fields)})"
    if len(line) <= COLUMNS and "\n" not in line:
        return line
    lines = [f"{name}("]
    for field, value in fields:
        first, *others = value.split("\n")
        lines.append(short_text(f"{field}={first}", COLUMNS - len(_INDENT) - 1))
        lines += [part[: COLUMNS - len(_INDENT) - 1] for part in others[:_LINES]]
        lines += ["…"] if len(others) > _LINES else []
        lines[-1] += ","
    return "\n".join([lines[0], *(f"{_INDENT}{part}" for part in lines[1:]), ")"])


__all__ = [
    "COLUMNS",
    "angle_text",
    "call_text",
    "printable_text",
    "record_text",
    "short_names",
    "short_path",
    "short_shape",
    "short_text",
    "short_values",
]
