"""Constants of the array API standard."""

import math

e: float = math.e
inf: float = math.inf
nan: float = math.nan
newaxis: None = None
pi: float = math.pi

__all__ = ["e", "inf", "nan", "newaxis", "pi"]
