"""Pages that outcore writes, in a browser: wide and narrow, light and dark, with scripts and without.

A page that is new is a line of `PAGES`: how it is made, and numbers that stand on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pytest
from conftest import LARGE
from support import page_checks
from support.browser import LOOKS, Look, around, chromium, opened
from support.running import session
from support.sizes import sized

import outcore as oc
from outcore._base.sizes import format_size
from outcore._session.record import record
from outcore._session.session import Outcome

if TYPE_CHECKING:
    from playwright.sync_api import Page


class Written(NamedTuple):
    """A page, and texts that a reader of it can find."""

    html: str
    texts: list[str]


def figures(outcome: Outcome) -> list[str]:
    sizes = (outcome.bytes_read, outcome.bytes_written, outcome.peak_bytes)
    return [format_size(size) for size in sizes]


def a_profile(folder: Path) -> Written:
    """Two programs and a breadth-first search."""
    path = folder / "run.html"
    with session(folder):
        G = oc.graph.from_arrays([0, 1, 2, 3], [1, 2, 3, 4], folder / "g.ocg")
        with oc.profile(path) as seen:
            oc.store({folder / "x.npy": oc.asarray(np.ones((200, 300))) + 1})
            oc.sum(oc.open(folder / "x.npy")).compute()
            oc.graph.bfs(G, 0)
    return Written(path.read_text(), [text for outcome in seen.outcomes for text in figures(outcome)])


def a_profile_in_a_notebook(folder: Path) -> Written:
    with session(folder), oc.profile() as seen:
        oc.arange(100_000).sum().compute()
    return Written(around(seen._repr_html_(), "Profile"), figures(seen.outcomes[0]))


def an_empty_profile(folder: Path) -> Written:
    with oc.profile(folder / "run.html"):
        pass
    return Written((folder / "run.html").read_text(), ["Nothing ran."])


def of_a_plan(folder: Path) -> oc.Array:
    np.save(folder / "a.npy", np.ones((600, 400)))
    A = oc.open(folder / "a.npy")
    return (A.T @ A / oc.sum(A)).max(axis=0)


def an_explanation(folder: Path) -> Written:
    with session(folder):
        forecast = oc.explain(of_a_plan(folder))
    return Written(around(forecast._repr_html_(), "Forecast"), [format_size(forecast.peak_bytes)])


def a_picture(folder: Path) -> Written:
    with session(folder):
        picture = oc.visualize(of_a_plan(folder))
    return Written(around(picture.svg(), "Plan"), ["a.npy"])


def a_plan(folder: Path) -> Written:
    with session(folder):
        picture = oc.visualize(of_a_plan(folder))
    return Written(picture.html(), ["a.npy", "passes"])


def a_sweep(folder: Path) -> Written:
    with session(folder):
        sweep = oc.explain(of_a_plan(folder), sweep=["1GiB", "2GiB", "4GiB"]).sweep
    return Written(around(sweep._repr_html_(), "Limits"), ["2.00 GiB", "knee"])


def a_comparison(folder: Path) -> Written:
    profiles = []
    with session(folder):
        for times in (1, 2):
            with oc.profile() as seen:
                oc.sum(of_a_plan(folder) * times).compute()
            profiles.append(seen)
    return Written(oc.profile.compare(*profiles).page(), figures(profiles[1].outcomes[0]))


PAGES: dict[str, Callable[[Path], Written]] = {
    "profile": a_profile,
    "profile in a notebook": a_profile_in_a_notebook,
    "empty profile": an_empty_profile,
    "explanation": an_explanation,
    "picture": a_picture,
    "plan": a_plan,
    "sweep": a_sweep,
    "comparison": a_comparison,
}


@pytest.fixture(scope="module")
def tab() -> Iterator[Page]:
    with chromium() as page:
        yield page


@pytest.fixture(scope="module")
def pages(shared: Path) -> Callable[[str], tuple[Path, Written]]:
    """Each page once, when it is first asked for."""
    made: dict[str, tuple[Path, Written]] = {}

    def page(name: str) -> tuple[Path, Written]:
        if name not in made:
            folder = shared / name.replace(" ", "-")
            folder.mkdir()
            written = PAGES[name](folder)
            path = folder / "page.html"
            path.write_text(written.html, encoding="utf-8")
            made[name] = path, written
        return made[name]

    return page


# Some of them, in which each two of width, colours and scripts meet; all at full size.
SEEN = [look for look in LOOKS if LARGE or look.scripts == ((look.width == 1280) == (look.scheme == "light"))]


@pytest.mark.parametrize("look", SEEN, ids=str)
@pytest.mark.parametrize("name", PAGES)
def test_a_page_holds(tab: Page, pages: Callable[[str], tuple[Path, Written]], name: str, look: Look) -> None:
    path, written = pages(name)
    with opened(tab, path, look) as seen:
        page_checks.shows(seen, *written.texts)
        for check in page_checks.ALWAYS:
            # A page without scripts is one page to axe, whose rules take longer than all else.
            if look.scripts or "<script" in written.html or check is not page_checks.is_accessible:
                check(seen)


def test_a_page_of_many_runs_is_small_and_opens_in_time(tab: Page, tmp_path: Path) -> None:
    """10,000 passes at full size, where alone the time is asserted."""
    count = sized(100, 10_000)
    with oc.profile(tmp_path / "run.html"):
        for number in range(count):
            record(Outcome(bytes_read=4096 * number, bytes_written=512, peak_bytes=1 << 20, seconds=0.01))
    with opened(tab, tmp_path / "run.html", LOOKS[0]) as seen:
        page_checks.is_small(seen)
        page_checks.shows(seen, f"{count:,}")
        if LARGE:
            page_checks.opens_in_time(seen)
