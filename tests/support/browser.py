"""Chromium without a window, and pages of ours in it: at a width, light or dark, with scripts or without."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import CDPSession, Page

# Debian's own; the builds that Playwright would download itself are not asked for.
PROGRAMS = ("chromium", "chromium-browser")
FLAGS = [
    "--no-sandbox",  # which root cannot have
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
HEIGHT = 800
WAIT_SECONDS = 30
CHECKS = Path(__file__).with_name("page_checks.js")


class Look(NamedTuple):
    """A way in which a page is looked at: pixels of width, colours, and whether its scripts run."""

    width: int
    scheme: Literal["light", "dark"]
    scripts: bool

    def __str__(self) -> str:
        return f"{self.width}-{self.scheme}-{'scripts' if self.scripts else 'still'}"


LOOKS = [Look(*look) for look in product((1280, 420), ("light", "dark"), (True, False))]


@dataclass
class Opened:
    """A page in the browser, with all that it wrote to the console and all that it asked for while it was open."""

    page: Page
    session: CDPSession
    look: Look
    path: Path
    messages: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    _has_checks: bool = False

    def ask(self, function: str, *arguments: Any) -> Any:
        """The value of a function of `page_checks.js`, which runs in a page without scripts too."""
        if not self._has_checks:
            self.page.evaluate(CHECKS.read_text())
            self._has_checks = True
        return self.page.evaluate("([name, values]) => outcoreChecks[name](...values)", [function, list(arguments)])

    def let_scripts_run(self, allowed: bool) -> None:
        """Scripts of the page, and timers and promises of those of the checks."""
        self.session.send("Emulation.setScriptExecutionDisabled", {"value": not allowed})


@contextmanager
def chromium() -> Iterator[Page]:
    """The tab of a browser until the block ends; without a browser the test is skipped, and says what is missing.

    While the block runs its thread has a running loop of asyncio, in which Playwright waits: no longer than a module.
    """
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        pytest.skip("pages are looked at in Chromium, which is not installed (apt-get install chromium)")
    reason = "pages are looked at through {}, of the extra `test`"
    for library in ("playwright", "axe_playwright_python"):
        pytest.importorskip(library, reason=reason.format(library))
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        try:
            page = browser.new_page()
            page.set_default_timeout(WAIT_SECONDS * 1000)
            yield page
        finally:
            browser.close()


@contextmanager
def opened(page: Page, path: Path, look: Look) -> Iterator[Opened]:
    """A file in the one tab of the browser, which is empty again when the block ends: a new tab takes half a second."""
    seen = Opened(page, page.context.new_cdp_session(page), look, path)
    listeners: dict[Any, Callable[[Any], None]] = {
        "console": lambda message: seen.messages.append(f"{message.type}: {message.text}"),
        "pageerror": lambda error: seen.messages.append(f"error: {error}"),
        "request": lambda request: seen.requests.append(request.url),
    }
    page.set_viewport_size({"width": look.width, "height": HEIGHT})
    page.emulate_media(color_scheme=look.scheme, reduced_motion="reduce")
    for event, listener in listeners.items():
        page.on(event, listener)
    try:
        seen.let_scripts_run(look.scripts)
        page.goto(path.as_uri(), wait_until="load")
        yield seen
    finally:
        for event, listener in listeners.items():
            page.remove_listener(event, listener)
        seen.let_scripts_run(True)
        seen.session.detach()
        page.goto("about:blank")


def around(fragment: str, title: str = "A part of a page") -> str:
    """The page of a notebook: a fragment, such as `_repr_html_` gives, in a cell under a heading."""
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>:root {{ color-scheme: light dark }} body {{ background: Canvas; color: CanvasText; margin: 8px }}
.cell {{ overflow: auto }}</style></head>
<body><main><h1>{title}</h1><div class="cell" tabindex="0" role="region" aria-label="{title}, in a cell">
{fragment}</div></main></body></html>
"""
