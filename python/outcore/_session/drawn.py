"""Cards that notebooks show of what is made here. They are drawn above this room, and filled in from there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Drawings:
    """Functions that give the HTML of an object, as attributes."""

    session: Callable[[Any], str]
    outcome: Callable[[Any], str]


drawings = Drawings()

__all__ = ["drawings"]
