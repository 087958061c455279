"""Statements about a page in a browser, each a function that raises where it does not hold.

A new page needs a line in `PAGES` of `test_pages.py`; `test_page_checks.py` has a faulty page for each statement.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from support.browser import Opened

PAGE_BYTES_MAX = 5_000_000
OPENING_SECONDS_MAX = 2.0
LETTER_PIXELS_MIN = 8.0
CONTRAST_MIN = 4.5
# Pages fetch nothing, so there is nothing to fetch before.
AXE = {"resultTypes": ["violations"], "preload": False}
# Presses of Tab beyond one for each element that can have the focus: past the browser's own, and to where it began.
MORE_PRESSES = 3


def _none(faults: Iterable[str], statement: str) -> None:
    faults = list(faults)
    shown = "\n  ".join(faults[:8]) + (f"\n  … and {len(faults) - 8} more" if len(faults) > 8 else "")
    assert not faults, f"{statement}:\n  {shown}"


def fits_its_width(seen: Opened) -> None:
    """Nothing sticks out to a side or is cut, but within a part that scrolls by itself and can have the focus.

    Twice: as the page opens, and with all its details unfolded. Letters of a drawing stay within the drawing.
    """
    _none(seen.ask("stickingOut"), f"wider than {seen.look.width} pixels")
    unfold(seen)
    _none(seen.ask("stickingOut"), f"wider than {seen.look.width} pixels, unfolded")


def unfold(seen: Opened) -> None:
    seen.ask("unfold")


def is_quiet(seen: Opened) -> None:
    """No error and no warning in the console."""
    _none([text for text in seen.messages if text.startswith(("error", "warning"))], "in the console")


def asks_for_nothing(seen: Opened) -> None:
    """The browser asks for the file itself, and for nothing else."""
    own = seen.path.as_uri()
    assert own in seen.requests
    _none([url for url in seen.requests if url != own], "asked for")


def is_reached_by_keyboard(seen: Opened) -> None:
    """Tab brings the focus to each link, button, summary, field and scrolling part, and the focus can be seen there."""
    unfold(seen)
    count = seen.ask("listControls")
    for _ in range(count + MORE_PRESSES):
        seen.page.keyboard.press("Tab")
        if seen.ask("noteFocus"):
            break
    faults = seen.ask("controlFaults")
    _none(faults, f"of {count} that can be used, by keyboard")


def is_accessible(seen: Opened) -> None:
    """axe has nothing to object to, contrast included, with all details unfolded."""
    from axe_playwright_python.sync_playwright import Axe

    unfold(seen)
    if not seen.look.scripts:
        seen.let_scripts_run(True)  # axe waits by timers; scripts of the page had their chance
    faults = []
    for rule in Axe().run(seen.page, options=AXE).response["violations"]:
        for node in rule["nodes"]:
            reason = re.sub(r"\s+", " ", node["failureSummary"])
            faults.append(f"{rule['id']}: {node['html'][:120]}: {reason}")
    _none(faults, f"axe, {seen.look.scheme}")


def has_letters_that_contrast(seen: Opened) -> None:
    """Letters of drawings, which axe passes over: 4.5 : 1 against the shape or page behind (WCAG 2.2, 1.4.3)."""
    unfold(seen)
    _none(seen.ask("paleLetters", CONTRAST_MIN), f"pale, {seen.look.scheme}")


def has_letters_of_a_size(seen: Opened) -> None:
    """Letters are 8 pixels high or more, those of scaled drawings too."""
    unfold(seen)
    _none(seen.ask("smallLetters", LETTER_PIXELS_MIN), f"smaller than {LETTER_PIXELS_MIN:g} pixels")


def is_small(seen: Opened, bytes_max: int = PAGE_BYTES_MAX) -> None:
    size = seen.path.stat().st_size
    assert size < bytes_max, f"{size:,} bytes, more than {bytes_max:,}"


def shows(seen: Opened, *texts: str) -> None:
    """Each text stands on the page where a reader can see it, unfolded; numbers as a reader would find them.

    A text matches whole words and numbers: `1.4` is not found in `11.4` or `1.45`.
    """
    unfold(seen)
    # In tables a tab stands between cells.
    content = re.sub(r"\s+", " ", seen.ask("visibleText"))
    missing = [text for text in texts if not re.search(rf"(?<![\w.,]){re.escape(text)}(?![\w]|[.,]\d)", content)]
    _none(missing, f"missing from a page of {len(content):,} characters")


def opens_in_time(seen: Opened, seconds_max: float = OPENING_SECONDS_MAX) -> None:
    """From the start of the navigation until the page is laid out and painted, by the browser's own clock.

    For `make test-large` and benchmarks alone: other tests assert nothing about time.
    """
    seconds = opening_seconds(seen)
    assert seconds < seconds_max, f"opened in {seconds:.2f} s, allowed are {seconds_max:g}"


def opening_seconds(seen: Opened) -> float:
    milliseconds: float = seen.ask("openingMilliseconds")
    return milliseconds / 1000


Check = Callable[[Opened], Any]

#: All that holds for each page, in an order in which one visit can check it: the keyboard moves the focus.
ALWAYS: tuple[Check, ...] = (
    is_small,
    fits_its_width,
    has_letters_of_a_size,
    has_letters_that_contrast,
    is_accessible,
    is_reached_by_keyboard,
    is_quiet,
    asks_for_nothing,
)
