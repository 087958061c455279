"""Cards in notebooks of objects beside arrays: a class says the facts, and the card is drawn here."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias

from outcore._session.record import Outcome
from outcore._session.session import Session
from outcore._show.card import Fact, card, path_fact
from outcore._show.counted import outcome_card, session_card
from outcore._show.degrees import small_svg
from outcore._show.markup import Markup

# A name and a value; a path is shortened, with the whole of it on hover.
NamedFact: TypeAlias = "tuple[str, str | Path]"


class Carded:
    """An object that has a card. Facts are known when they are asked for: nothing is read or computed for them."""

    __slots__ = ()

    def _card_title(self) -> str:
        return f"outcore.{type(self).__name__}"

    def _card_facts(self) -> Iterable[NamedFact]:
        return ()

    def _card_picture(self) -> Markup | None:
        return None

    def _card_degrees(self) -> tuple[list[int], str] | None:
        """How many vertices have 0, 1, 2 to 3, 4 to 7 neighbours and so on, and which; None where it is unknown."""
        return None

    def _repr_html_(self) -> str:
        facts = [
            path_fact(name, str(value)) if isinstance(value, Path) else Fact(name, value)
            for name, value in self._card_facts()
        ]
        degrees = self._card_degrees()
        picture = self._card_picture() if degrees is None else small_svg(*degrees)
        return card(self._card_title(), facts, picture)


Session._drawn, Outcome._drawn = session_card, outcome_card

__all__ = ["Carded", "NamedFact"]
