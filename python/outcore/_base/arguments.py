"""Checks of arguments that several functions take."""

from __future__ import annotations

import operator
from numbers import Real

import numpy as np

from outcore.errors import ArgumentError


def whole(name: str, highest: int, **arguments: object) -> None:
    """Raises ArgumentError for what is no whole number from 0 to `highest`."""
    for argument, value in arguments.items():
        if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or not 0 <= value <= highest:
            raise ArgumentError(f"{name}: {argument}={value!r}; a whole number from 0 to {highest} is right")


def count(name: str, least: int, **arguments: object) -> None:
    """Raises ArgumentError for what is no whole number, or below `least`."""
    for argument, value in arguments.items():
        if not hasattr(value, "__index__") or isinstance(value, bool) or operator.index(value) < least:
            raise ArgumentError(f"{name}: {argument}={value!r}; a whole number from {least} on is right")


def real(name: str, right: str, **arguments: object) -> None:
    """Raises ArgumentError for what is no number, or NaN; `right` says what is."""
    for argument, value in arguments.items():
        if not isinstance(value, Real) or isinstance(value, bool) or value != value:
            raise ArgumentError(f"{name}: {argument}={value!r}; {right} is right")


def check_device(device: object) -> None:
    """Refuses every device but "cpu", and None, which leaves the choice."""
    if device is not None and device != "cpu":
        raise ArgumentError(f"device {device!r} is not known; outcore computes on 'cpu'")


__all__ = ["check_device", "count", "real", "whole"]
