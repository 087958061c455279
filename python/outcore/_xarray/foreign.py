"""Names of what xarray gives and takes, which has no types here: its wrappers, groups, chunks, and users' functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

Foreign: TypeAlias = Any
Function: TypeAlias = Callable[..., Foreign]

__all__ = ["Foreign", "Function"]
