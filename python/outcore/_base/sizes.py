"""Sizes in bytes, as people write and read them."""

from __future__ import annotations

import operator
import re
from typing import SupportsIndex

_UNITS = {
    "": 1,
    "b": 1,
    "k": 10**3,
    "kb": 10**3,
    "m": 10**6,
    "mb": 10**6,
    "g": 10**9,
    "gb": 10**9,
    "t": 10**12,
    "tb": 10**12,
    "kib": 1 << 10,
    "mib": 1 << 20,
    "gib": 1 << 30,
    "tib": 1 << 40,
}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*")


def parse_size(text: SupportsIndex | str) -> int:
    """Bytes of `"8GiB"` (2³⁰), `"512MB"` (10⁶), `"1048576"` or an int. Raises ValueError for anything else."""
    if hasattr(text, "__index__") and not isinstance(text, bool):
        size = operator.index(text)
        if size < 0:
            raise ValueError(f"a size cannot be negative: {size}")
        return size
    match = _SIZE.fullmatch(text) if isinstance(text, str) else None
    unit = _UNITS.get(match.group(2).lower()) if match else None
    if match is None or unit is None:
        raise ValueError(f"{text!r} is not a size; write an integer or, say, '8GiB' or '512MB'")
    return int(float(match.group(1)) * unit) if "." in match.group(1) else int(match.group(1)) * unit


def format_size(size: float) -> str:
    """A size for people, in binary units with three figures or so: `"1.50 GiB"`, `"512 B"`."""
    if abs(size) < 1024:
        return f"{size:.0f} B"
    for unit in ("KiB", "MiB", "GiB", "TiB", "PiB"):
        size /= 1024
        if abs(size) < 1023.95 or unit == "PiB":
            break
    digits = 2 if abs(size) < 10 else 1
    return f"{size:.{digits}f} {unit}"
