"""Estimators in terminals and notebooks: parameters, and attributes that a fit has set."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from outcore._base.shortened import COLUMNS, short_text
from outcore._lazy.carded import Carded, NamedFact
from outcore._lazy.shown import Shown

_FACTS = 12  # of a fit that are shown
_VALUE = 50  # characters of a parameter, and of a list of names


class _Parametrized(Protocol):
    """An estimator, as far as its parameters go."""

    def get_params(self, deep: bool = True) -> dict[str, object]:
        """Parameters by name."""


class _EstimatorCard(Carded):
    """The card of an estimator."""

    def __init__(self, estimator: _Parametrized) -> None:
        self._estimator = estimator

    def _card_title(self) -> str:
        return f"outcore.learn.{type(self._estimator).__name__}"

    def _card_facts(self) -> list[NamedFact]:
        parameters = self._estimator.get_params(deep=False)
        state = fitted_facts(self._estimator)
        facts: list[NamedFact] = [(name, value_text(value)) for name, value in parameters.items()]
        return [*facts, *state] if state else [*facts, ("fitted", "no")]


def estimator_card(estimator: _Parametrized) -> str:
    """Parameters and fitted state as HTML."""
    return _EstimatorCard(estimator)._repr_html_()


def fitted_facts(estimator: object) -> list[tuple[str, str]]:
    """Attributes that a fit has set, by name: numbers, and shapes of arrays."""
    state = {name: value for name, value in vars(estimator).items() if name.endswith("_") and name[0] != "_"}
    said = {name: value for name, value in state.items() if not (isinstance(value, dict) and not value)}
    facts = [(name, value_text(value)) for name, value in list(said.items())[:_FACTS]]
    more = len(said) - len(facts)
    return [*facts, ("…", f"{more} more")] if more else facts


def fitted_lines(estimator: object) -> list[str]:
    """Attributes that a fit has set, in a few lines; none before the fit."""
    facts = [f"{name} {value}" for name, value in fitted_facts(estimator)]
    lines = ["    fitted: "] if facts else []
    for place, fact in enumerate(facts):
        text = fact + (", " if place < len(facts) - 1 else "")
        if len(lines[-1] + text) > COLUMNS:
            lines.append("        ")
        lines[-1] += text
    return [line.rstrip() for line in lines]


def value_text(value: object) -> str:
    """A parameter or a fitted attribute in a line. Arrays by shape and type, so that none is computed."""
    if isinstance(value, np.ndarray):
        is_single = value.size == 1 and value.dtype != object
        return short_text(str(value.item()), _VALUE) if is_single else f"{value.shape} {value.dtype}"
    if isinstance(value, Shown):
        return short_line(repr(value), _VALUE) if value._is_pending() else "{} {}, lazy".format(*value._kind())
    if isinstance(value, (float, np.floating)):
        return f"{value:.6g}"
    if isinstance(value, dict):  # a history: steps by the name of what they count
        return ", ".join(f"{len(part)} steps of {name}" for name, part in list(value.items())[:_FACTS])
    if isinstance(value, (list, tuple)) and (len(value) > 6 or (value and len(repr(value)) > _VALUE)):
        return f"{len(value)} values, the last {value_text(value[-1])}"
    return short_text(repr(value), _VALUE) if not isinstance(value, np.generic) else str(value.item())


def short_line(line: str, width: int = COLUMNS) -> str:
    """A line that keeps the spaces it begins with."""
    begin = line[: len(line) - len(line.lstrip())][: width // 2]
    return begin + short_text(line, width - len(begin))


__all__ = ["estimator_card", "fitted_facts", "fitted_lines", "short_line", "value_text"]
