"""The table that notebooks show for a lazy array."""

from __future__ import annotations

import math

from outcore._base.sizes import format_size
from outcore._base.types import DType


def html_of(shape: tuple[int, ...], dtype: DType, tile: tuple[int, ...], operator: str) -> str:
    """A table of what an array is and how it is cut; nothing is computed."""
    count = math.prod(-(-length // part) if part else 0 for length, part in zip(shape, tile, strict=True))
    rows = (
        ("shape", " × ".join(map(str, shape)) or "0-d"),
        ("dtype", str(dtype)),
        ("bytes", format_size(math.prod(shape) * dtype.itemsize)),
        ("tiles", f"{count:,} of {' × '.join(map(str, tile)) or '0-d'}"),
        ("made by", operator),
    )
    body = "".join(f"<tr><th style='text-align:left'>{name}</th><td>{value}</td></tr>" for name, value in rows)
    hint = "not computed; <code>.compute()</code> gives NumPy, <code>outcore.explain(x)</code> the plan"
    return f"<table>{body}<caption style='caption-side:bottom'>{hint}</caption></table>"


__all__ = ["html_of"]
