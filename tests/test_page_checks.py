"""The checks of pages: a page without faults passes each of them, and each has a page in which it sees the fault."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support import page_checks
from support.browser import Look, chromium, opened
from support.page_checks import Check

if TYPE_CHECKING:
    from playwright.sync_api import Page

PHONE, PHONE_AT_NIGHT, STILL = Look(420, "light", True), Look(420, "dark", True), Look(420, "light", False)
PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>A page</title>
<style>:root {{ color-scheme: light dark }} body {{ background: Canvas; color: CanvasText }}</style>
</head><body><main><h1>Runs</h1>
{}
</main></body></html>
"""
# All that is used, scrolls, unfolds or is drawn, as it should be.
SOUND = """
<p>Read 1.4 GiB in <a href="#runs">3 runs</a>.</p>
<details><summary>Passes</summary>
<div role="region" aria-label="passes" tabindex="0" style="overflow-x: auto">
<p style="width: 900px">a wide table</p></div></details>
<div role="radiogroup" aria-label="kind"><label><input type="radio" name="kind" checked>bytes</label>
<label><input type="radio" name="kind">seconds</label></div>
<button id="runs" style="cursor: pointer"><span>Fold</span></button>
<svg viewBox="0 0 400 40" style="width: 100%; fill: currentColor" role="img" aria-label="memory">
<rect width="80" height="40" fill="#111"/><text x="4" y="20" style="font-size: 14px" fill="#eee">kept</text>
<text x="300" y="20" style="font-size: 14px">limit</text><path d="M0 39H900" stroke="gray"/></svg>
"""
WIDE = "width: 900px"
TEXT = """<svg viewBox="0 0 400 40" width="380" role="img" aria-label="a">
<rect width="200" height="40" fill="#ddd"/>{}</svg>"""
FAULTS: dict[str, tuple[Check, str, str]] = {
    "a wide part": (page_checks.fits_its_width, f'<p style="{WIDE}">a</p>', "the page is 9"),
    "a wide part that is folded": (
        page_checks.fits_its_width,
        f'<details><summary>more</summary><p style="{WIDE}">a</p></details>',
        "unfolded",
    ),
    "a part that is cut": (
        page_checks.fits_its_width,
        f'<div style="overflow: hidden"><p style="{WIDE}">a</p></div>',
        '<p> "a" from',
    ),
    "a scrolling part that no tabindex names": (
        page_checks.fits_its_width,
        f'<div style="overflow: auto"><p style="{WIDE}">a</p></div>',
        '<p> "a" from',
    ),
    "letters that are cut": (
        page_checks.fits_its_width,
        TEXT.format('<text x="380" y="20">a long word</text>'),
        "is cut by its drawing",
    ),
    "an error": (page_checks.is_quiet, "<script>undefined.a</script>", "error: "),
    "a warning": (page_checks.is_quiet, "<script>console.warn('slow')</script>", "warning: slow"),
    "a request": (
        page_checks.asks_for_nothing,
        '<img alt="a" src="http://127.0.0.1:9/a.png">',
        "http://127.0.0.1:9/a.png",
    ),
    "a request of a script": (
        page_checks.asks_for_nothing,
        "<script>fetch('http://127.0.0.1:9/b').catch(() => 0)</script>",
        "http://127.0.0.1:9/b",
    ),
    "a click without keys": (
        page_checks.is_reached_by_keyboard,
        '<p style="cursor: pointer">fold</p>',
        '<p> "fold" is not reached',
    ),
    "a link without address": (page_checks.is_reached_by_keyboard, "<a>more</a>", '<a> "more" is not reached'),
    "a button that Tab skips": (page_checks.is_reached_by_keyboard, '<button tabindex="-1">a</button>', "not reached"),
    "a hidden focus": (
        page_checks.is_reached_by_keyboard,
        '<button style="outline: none">a</button>',
        "looks the same with the focus",
    ),
    "a picture without name": (page_checks.is_accessible, '<img src="data:,">', "image-alt"),
    "pale words": (
        page_checks.is_accessible,
        '<p style="color: #aaa; background: #fff">pale words</p>',
        "color-contrast",
    ),
    "pale letters of a drawing": (
        page_checks.has_letters_that_contrast,
        TEXT.format('<text x="9" y="20" fill="#999">a</text>'),
        '<text> "a" has 2.10 : 1',
    ),
    "letters that shrink": (
        page_checks.has_letters_of_a_size,
        TEXT.replace('width="380"', 'width="200"').format('<text x="9" y="20" font-size="14">a</text>'),
        '<text> "a"',
    ),
}


@pytest.fixture(scope="module")
def tab() -> Iterator[Page]:
    with chromium() as page:
        yield page


def written(folder: Path, content: str) -> Path:
    path = folder / "page.html"
    path.write_text(PAGE.format(content))
    return path


@pytest.mark.parametrize("look", [PHONE, PHONE_AT_NIGHT, STILL], ids=str)
def test_a_sound_page_passes_all_checks(tab: Page, look: Look, tmp_path: Path) -> None:
    with opened(tab, written(tmp_path, SOUND), look) as seen:
        for check in page_checks.ALWAYS:
            check(seen)
        page_checks.shows(seen, "1.4 GiB", "3 runs", "a wide table", "limit")


@pytest.mark.parametrize("fault", FAULTS)
def test_a_check_sees_its_fault(tab: Page, fault: str, tmp_path: Path) -> None:
    check, content, message = FAULTS[fault]
    with opened(tab, written(tmp_path, content), PHONE) as seen, pytest.raises(AssertionError) as raised:
        check(seen)
    assert message in str(raised.value)


def test_black_letters_are_seen_in_the_dark_only(tab: Page, tmp_path: Path) -> None:
    path = written(tmp_path, '<svg width="99" height="40" role="img" aria-label="a"><text y="20">a</text></svg>')
    with opened(tab, path, PHONE) as seen:
        page_checks.has_letters_that_contrast(seen)
    with (
        opened(tab, path, PHONE_AT_NIGHT) as seen,
        pytest.raises(AssertionError, match=r'<text> "a" has 1\.\d\d : 1'),
    ):
        page_checks.has_letters_that_contrast(seen)


def test_numbers_are_whole(tab: Page, tmp_path: Path) -> None:
    with opened(tab, written(tmp_path, "<p>11.4 GiB, 2,048 tasks</p>"), PHONE) as seen:
        page_checks.shows(seen, "11.4 GiB", "2,048 tasks")
        for part in ("1.4 GiB", "048", "2", "11"):
            with pytest.raises(AssertionError, match="missing"):
                page_checks.shows(seen, part)


def test_a_page_that_scripts_write_is_empty_without_them(tab: Page, tmp_path: Path) -> None:
    path = written(tmp_path, '<p id="a"></p><script>document.getElementById("a").textContent = "3 runs"</script>')
    with opened(tab, path, PHONE) as seen:
        page_checks.shows(seen, "3 runs")
    with opened(tab, path, STILL) as seen, pytest.raises(AssertionError, match="missing"):
        page_checks.shows(seen, "3 runs")


def test_a_page_has_a_size_and_a_time_until_it_is_open(tab: Page, tmp_path: Path) -> None:
    with opened(tab, written(tmp_path, SOUND), PHONE) as seen:
        page_checks.opens_in_time(seen, 60)
        with pytest.raises(AssertionError, match="opened in "):
            page_checks.opens_in_time(seen, 0)
        with pytest.raises(AssertionError, match="bytes, more than 99"):
            page_checks.is_small(seen, 99)
