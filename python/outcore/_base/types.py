"""Types that all rooms use in annotations. `Any` stands in them once, so that it need not in their users."""

from __future__ import annotations

import os
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

NDArray: TypeAlias = npt.NDArray[Any]  # a NumPy array of any element type
DType: TypeAlias = np.dtype[Any]  # a NumPy element type, whichever
JSONObject: TypeAlias = dict[str, Any]  # parsed JSON, or what is written as JSON; its keys say what their values are
Keywords: TypeAlias = dict[str, Any]  # arguments by name that are handed on to another function
RandomState: TypeAlias = "int | np.random.RandomState | None"  # as scikit-learn takes it
Scalar: TypeAlias = bool | int | float | complex
PathLike: TypeAlias = str | os.PathLike[str]

__all__ = ["DType", "JSONObject", "Keywords", "NDArray", "PathLike", "RandomState", "Scalar"]
