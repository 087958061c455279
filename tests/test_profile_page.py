"""The page of a profile: what stands in it, that it needs nothing else, and that names of users stay text."""

from __future__ import annotations

import contextlib
import contextvars
import json
import os
import pickle
import re
import resource
import signal
import sys
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any, cast
from xml.etree import ElementTree

import numpy as np
import pytest
from support.running import session

import outcore as oc
from outcore._base.files import write_whole
from outcore._base.sizes import format_size
from outcore._session import record as _record
from outcore._session.caller import calling
from outcore._session.session import Outcome
from outcore._session.trace import Run
from outcore._show.verdict import forecast_held

HOSTILE = """</title><script>alert("&'")</script>"""
VOID = {"meta"}
SVG = "{http://www.w3.org/2000/svg}"


class Parsed(HTMLParser):
    """A page as a browser reads it: its tags, whether they are closed in order, its text and the cells of its rows."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.open: list[str] = []
        self.text = ""
        self.rows: list[list[str]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attributes
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        if {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data


def charts(text: str) -> list[ElementTree.Element]:
    """The drawings of a page, which are XML each by itself."""
    return [ElementTree.fromstring(found) for found in re.findall(r"<svg.*?</svg>", text, re.DOTALL)]


def texts(chart: ElementTree.Element, kind: str | None = None) -> list[str]:
    found = chart.iter(f"{SVG}text")
    return [part.text or "" for part in found if kind is None or part.get("class") == kind]


def bars(chart: ElementTree.Element) -> list[int]:
    """How many bars each part of the chart has."""
    return [path.get("d", "").count("M") for path in chart.iter(f"{SVG}path")]


def told(chart: ElementTree.Element) -> list[str]:
    """What is said where a column is pointed at."""
    return [title.text or "" for title in chart.iter(f"{SVG}title")]


def page_of(*outcomes: Outcome) -> str:
    with oc.profile() as seen:
        for outcome in outcomes:
            _record.record(outcome)
    return seen.page()


def searched(rows: list[tuple[Any, ...]], name: str = "bfs") -> Outcome:
    return Outcome(other={"graph": name, "iterations": [_record.Iterations(*row) for row in rows]})


# -- what stands in it ------------------------------------------------------------------------------------------------


def test_a_page_has_sums_and_a_row_for_each_run(out: Path) -> None:
    with session(out):
        G = oc.graph.from_arrays([0, 1], [1, 2], out / "g.ocg")
        x = np.ones((200, 300))
        with oc.profile(out / "run.html") as seen:
            oc.store({out / "x.npy": oc.asarray(x) + 1})
            oc.sum(oc.open(out / "x.npy")).compute()
            oc.graph.bfs(G, 0)
    text = (out / "run.html").read_text()
    page = Parsed(text)
    assert text == seen.page()
    assert seen._repr_html_() in text
    runs = page.rows[1:4]
    assert [row[0].split(" (")[0] for row in runs] == ["store", "Array.compute", "bfs"]
    assert all("test_profile_page.py:" in row[0] for row in runs)
    assert runs[0][2] == format_size(seen.outcomes[0].bytes_written)
    assert page.text.count("were as forecast, to the byte.") == 2
    assert "bfs: 3 iterations" in page.text
    assert "Disks" not in text


def test_a_forecast_that_was_not_the_outcome_is_told() -> None:
    stages = [([4096, 0, 512], [4096, 0, 512]), ([1 << 20, 0, 2048], [512, 0, 64])]
    told = forecast_held(Outcome(bytes_read=4608, other={"stages": stages}))
    assert told == "Forecast and outcome differ, stage 2: bytes read 1,048,576 forecast, 512 counted."


def test_runs_of_one_line_are_one_row(out: Path) -> None:
    with session(out), oc.profile() as seen:
        for _ in range(7):
            oc.arange(100_000).sum().compute()
    page = Parsed(seen.page())
    assert [row[0].split(" (")[0] for row in page.rows[1:2]] == ["7 × Array.compute"]
    assert "oc.arange(100_000).sum().compute()" in page.text, "the line itself is shown"


def test_runs_of_a_line_are_told_in_words(out: Path) -> None:
    with oc.profile() as seen:
        for _ in range(3):
            oc.arange(4).sum().compute()
    (group,) = seen.groups
    assert re.fullmatch(
        r"RunGroup\( ?Array\.compute \(test_profile_page\.py:\d+\): 3 runs, 0 B read, 0 B written, peak .*B, .*s\)",
        " ".join(repr(group).split()),
    )
    long = group._replace(name="f" * 300, bytes_written=1 << 40, bytes_spilled=1 << 40, seconds=1e9)
    assert all(len(line) <= 100 for line in repr(long).splitlines())


def test_a_run_over_a_graph_has_charts_by_iteration() -> None:
    rows = [(0, 1, 1, 1, 4096, 0, 0.1), (1, 1, 40_000, 40_000, 3 << 20, 2, 0.2), (2, 1, 7, 7, 0, 9, 0.1)]
    text = page_of(Outcome(), searched(rows), searched(rows[:1], "pagerank"))
    first, second = charts(text)
    assert texts(first, "title") == ["active vertices", "bytes read", "pages from the cache"]
    assert texts(first, "value")[:4] == ["0", "20,000", "40,000", "0 B"]
    assert "2 MiB" in texts(first, "value")
    assert bars(first) == [3, 2, 2], "what is 0 has no bar"
    assert [part for part in texts(first) if part in "012"][-3:] == ["0", "1", "2"]
    assert told(first)[1].splitlines() == [
        "iteration 1:",
        "40,000 active vertices",
        "40,000 lists asked for",
        "3.00 MiB read",
        "2 pages from the cache",
    ]
    assert bars(second) == [1, 1, 0]
    assert ["1", "40,000", "40,000", "3.00 MiB", "2", "0.200"] in Parsed(text).rows


def test_bars_are_as_high_as_their_values() -> None:
    rows = [(number, 1, active, 0, 0, 0, 0.0) for number, active in enumerate([100, 50, 25])]
    (chart,) = charts(page_of(searched(rows)))
    path = next(chart.iter(f"{SVG}path")).get("d", "")
    heights = [float(height) for height in re.findall(r"v-([\d.]+)", path)]
    assert heights[0] == 2 * heights[1] == 4 * heights[2]


def test_columns_of_long_runs_stand_for_several_iterations() -> None:
    rows = [(8 * place, 8, 80, 8, 0, 16, 0.1) for place in range(1000)]
    (chart,) = charts(page_of(searched(rows)))
    columns = [part for part in chart.iter(f"{SVG}rect") if part.get("class") == "over"]
    assert len(columns) == 250
    assert bars(chart) == [250, 0, 250]
    assert told(chart)[0].splitlines()[:2] == ["iterations 0 to 31, each in the mean:", "10 active vertices"]
    assert told(chart)[-1].startswith("iterations 7,968 to 7,999,")
    assert texts(chart)[-1] == "iteration (a bar is the mean of 32)"
    places = [(float(part.get("x", "")), float(part.get("width", ""))) for part in columns]
    for (x, width), (after, _) in pairwise(places):
        assert x + width == pytest.approx(after, abs=0.2)


def test_a_run_that_ended_before_its_first_iteration_has_no_chart() -> None:
    text = page_of(searched([]))
    assert charts(text) == []
    assert "bfs: 0 iterations" in Parsed(text).text


def test_an_empty_block_says_that_nothing_ran(out: Path) -> None:
    with oc.profile(out / "run.html"):
        pass
    assert "Nothing ran." in Parsed((out / "run.html").read_text()).text


def test_slow_disks_are_marked() -> None:
    busy = {f"/{disk}{HOSTILE}": seconds for disk, seconds in zip("abc", (1.0, 1.0, 9.0), strict=True)}
    rows = [
        {"volume": "/v", "disk": disk, "requests": 1234, "bytes_read": 1 << 20, "errors": 0}
        | {"bytes_written": 0, "busy_seconds": seconds}
        for disk, seconds in busy.items()
    ]

    class Session:
        def __init__(self) -> None:
            self._core = self

        def disks(self) -> list[dict[str, Any]]:
            return rows

    with oc.profile() as seen:
        _record.joined(cast(Any, Session()))
    page = Parsed(seen.page())
    assert "script" not in page.tags
    assert [(row[1], row[2], row[-1]) for row in page.rows[-3:]] == [
        (disk, "1,234", mark) for disk, mark in zip(busy, ("", "", "slow"), strict=True)
    ]


# -- what it is -------------------------------------------------------------------------------------------------------


def test_names_of_users_stay_text(out: Path) -> None:
    walk = type(HOSTILE, (oc.graph.VertexProgram,), {"on_edges": lambda self, e: self.activate(e.neighbours)})
    with session(out):
        G = oc.graph.from_arrays([0, 1], [1, 2], out / "g.ocg")
        with oc.profile(out / "run.html") as seen:
            G.run(walk(), active=[0])
    for text in ((out / "run.html").read_text(), seen._repr_html_()):
        page = Parsed(text)
        assert "script" not in page.tags
        assert f"{HOSTILE}: 3 iterations" in page.text
        (chart,) = charts(text)
        assert chart.get("aria-label", "").startswith(HOSTILE)


def test_a_name_that_is_no_text_is_in_no_way(out: Path) -> None:
    with oc.profile(out / "run.html"):
        _record.record(searched([(0, 1, 1, 1, 0, 0, 0.0)], "disk \udcff"))
    assert "disk ?: 1 iteration" in Parsed((out / "run.html").read_text()).text


def test_a_page_needs_nothing_else() -> None:
    text = page_of(searched([(0, 1, 1, 1, 4096, 0, 0.1)]))
    page = Parsed(text)
    assert {"script", "link", "img", "iframe"}.isdisjoint(page.tags)
    assert {"src", "onload"}.isdisjoint(name for name, _ in page.attributes)
    assert all((value or "").startswith("#run-") for name, value in page.attributes if name == "href")
    assert set(re.findall(r"https?:[^\s\"']*|url\(|@import", text)) == {"http://www.w3.org/2000/svg"}
    assert ("content", "default-src 'none'; style-src 'unsafe-inline'") in page.attributes
    assert "color-scheme: light dark" in text


@pytest.mark.parametrize("name", ["trace.json", "trace", "html"])
def test_other_paths_get_the_timeline(name: str, out: Path) -> None:
    with oc.profile(out / name):
        oc.arange(4).sum().compute()
    assert json.loads((out / name).read_text())["traceEvents"]


def test_each_run_is_a_process_of_the_timeline(out: Path) -> None:
    with oc.profile(out / "trace.json") as seen:
        for _ in range(3):
            oc.arange(4).sum().compute()
            oc.clear()
    events = json.loads((out / "trace.json").read_text())["traceEvents"]
    named = [event["pid"] for event in events if event["name"] == "process_name"]
    assert named == [1, 2, 3][: len(seen.outcomes)]
    begins = [min(event["ts"] for event in events if event["pid"] == run and event["ph"] == "X") for run in named]
    assert begins == sorted(begins)
    assert [path.name for path in out.iterdir()] == ["trace.json"]


def test_a_timeline_that_cannot_be_written_ends_no_run(out: Path) -> None:
    totals = []

    def runs() -> None:
        out.rmdir()
        totals.append(oc.arange(4).sum().item())

    with pytest.raises(FileNotFoundError), oc.profile(out / "trace.json"):
        runs()
    assert totals == [6]


def fails() -> None:
    oc.arange(4).sum().compute()
    raise ZeroDivisionError


def test_a_block_that_raises_has_its_page(out: Path) -> None:
    with pytest.raises(ZeroDivisionError), oc.profile(out / "run.html") as seen:
        fails()
    assert (out / "run.html").read_text() == seen.page()
    assert seen.detail == "bins", "a page needs no timeline"


@pytest.mark.parametrize("name", ["run.HTML", "run.Html"])
def test_an_ending_in_any_case_gets_the_page(name: str, out: Path) -> None:
    with oc.profile(out / name) as seen:
        oc.arange(4).sum().compute()
    assert (out / name).read_text() == seen.page()


def in_no_folder(out: Path, name: str) -> Path:
    return out / "none" / name


def below_a_file(out: Path, name: str) -> Path:
    (out / "file").write_text("")
    return out / "file" / name


def a_folder(out: Path, name: str) -> Path:
    (out / name).mkdir()
    return out / name


def with_nul(out: Path, name: str) -> Path:
    return out / f"a\0{name}"


def of_many_letters(out: Path, name: str) -> Path:
    return out / f"{'a' * 300}{name}"


def a_circle(out: Path, name: str) -> Path:
    (out / name).symlink_to(name)
    return out / name


REFUSED: list[tuple[Callable[[Path, str], Path], type[OSError], str]] = [
    (in_no_folder, FileNotFoundError, "No such file"),
    (below_a_file, NotADirectoryError, "Not a directory"),
    (a_folder, IsADirectoryError, "Is a directory"),
    (with_nul, OSError, "Invalid argument"),
    (of_many_letters, OSError, "too long"),
    (a_circle, OSError, "Too many levels"),
]


@pytest.mark.parametrize("name", ["run.html", "trace.json"])
@pytest.mark.parametrize(("place", "kind", "why"), REFUSED)
def test_a_path_that_cannot_be_written_is_refused_before_the_block_runs(
    place: Callable[[Path, str], Path], kind: type[OSError], why: str, name: str, out: Path
) -> None:
    ran, path = [], place(out, name)
    with pytest.raises(kind, match=f"profile: .*{why}") as told, oc.profile(path):
        ran.append(name)
    assert told.value.filename == str(path)
    assert ran == []


def test_a_folder_or_a_file_without_permission_is_refused_before_the_block_runs(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (out / "run.html").write_text("the page before")
    (out / "later.html").symlink_to("linked.html")
    # The answer that the system gives to users other than root.
    monkeypatch.setattr(os, "access", lambda path, mode: not mode & os.W_OK)
    for name in ("run.html", "new.html", "later.html"):
        ran = []
        with pytest.raises(PermissionError) as told, oc.profile(out / name):
            ran.append(name)
        assert told.value.filename == str(out / name)
        assert ran == []
    assert (out / "run.html").read_text() == "the page before"


def full(out: Path, name: str) -> Path:
    (out / name).symlink_to("/dev/full")
    return out / name


@pytest.mark.parametrize("name", ["run.html", "trace.json"])
def test_a_file_that_its_disk_has_no_room_for_is_an_error(name: str, out: Path) -> None:
    with pytest.raises(OSError, match="No space left"), oc.profile(full(out, name)) as seen:
        oc.arange(4).sum().compute()
    assert len(seen.outcomes) == 1


@pytest.mark.parametrize("name", ["run.html", "trace.json"])
def test_what_the_block_raised_stays_with_a_note_of_the_file(name: str, out: Path) -> None:
    with pytest.raises(ZeroDivisionError) as told, oc.profile(full(out, name)):
        fails()
    (note,) = told.value.__notes__
    assert note.startswith(f"profile: {out / name} could not be written: ")
    assert "No space left" in note


def test_what_was_written_leaves_no_note(out: Path) -> None:
    with pytest.raises(ZeroDivisionError) as told, oc.profile(out / "run.html"):
        fails()
    assert not hasattr(told.value, "__notes__")


def test_runs_of_several_threads_are_all_in_the_rows() -> None:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with oc.profile() as seen:
            runs = [contextvars.copy_context() for _ in range(8)]
            threads = [threading.Thread(target=run.run, args=(_some_runs,)) for run in runs]
            for thread in threads:
                thread.start()
            for _ in range(20):
                seen.page()
            for thread in threads:
                thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert len(seen.outcomes) == 8 * 200
    assert sum(group.number for group in seen.groups) == 8 * 200


def _some_runs() -> None:
    for _ in range(200):
        oc.arange(10).sum().item()


def test_a_page_that_does_not_fit_its_disk_leaves_the_one_before(out: Path) -> None:
    path = out / "run.html"
    path.write_text("the page before")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large") as told, oc.profile(path):
            oc.arange(4).sum().compute()
        with pytest.raises(OSError, match="File too large"):
            oc.visualize(oc.arange(4), filename=path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert told.value.filename == str(path)
    assert path.read_text() == "the page before"
    assert [file.name for file in out.iterdir()] == ["run.html"]


def killed_while_writing(path: Path) -> None:
    """A process that is killed while it writes a file there."""
    child = os.fork()
    if child == 0:
        try:
            write_whole(path, (os.kill(os.getpid(), signal.SIGKILL) or b"" for _ in range(1)))
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def test_the_next_page_clears_what_killed_processes_were_writing(out: Path) -> None:
    (out / "run.html").write_text("the page before")
    killed_while_writing(out / "run.html")
    (unfinished,) = (file.name for file in out.iterdir() if file.name != "run.html")
    assert re.fullmatch(r"outcore-\d+-[0-9a-f]{8}\.new", unfinished)
    assert (out / "run.html").read_text() == "the page before"
    others = ["outcore-1-0123456789.new", "outcore-1-01234567.npy", "my.new"]
    for name in others:
        (out / name).write_text("of the user")
    (out / "outcore-1-01234567.new").symlink_to("my.new")
    with oc.profile(out / "run.html"):
        pass
    assert {file.name for file in out.iterdir()} == {"run.html", "outcore-1-01234567.new", *others}


def test_a_page_that_another_process_is_writing_stays(out: Path) -> None:
    def slow() -> Iterator[bytes]:
        write_whole(out / "quick.html", (b"quick",))
        yield b"slow"

    write_whole(out / "slow.html", slow())
    assert (out / "slow.html").read_bytes() == b"slow"
    assert sorted(os.listdir(out)) == ["quick.html", "slow.html"]


def test_a_page_keeps_the_mode_and_the_link_that_it_is_written_to(out: Path) -> None:
    (out / "there.html").write_text("before")
    (out / "there.html").chmod(0o600)
    (out / "run.html").symlink_to("there.html")
    with oc.profile(out / "run.html") as seen:
        oc.arange(4).sum().compute()
    assert (out / "run.html").is_symlink()
    assert (out / "there.html").read_text() == seen.page()
    assert (out / "there.html").stat().st_mode & 0o777 == 0o600


def test_a_timeline_of_many_runs_is_on_disk_and_not_in_memory(out: Path) -> None:
    with oc.profile(out / "trace.json") as seen:
        oc.arange(4).sum().compute()
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        event = {"name": "task", "ph": "X", "ts": 1.0, "dur": 1.0, "tid": 0}
        run = Run(calling(), 0, None, 1, (), events=json.dumps([event] * 1000))
        for _ in range(20):
            seen._add_events(seen.outcomes[0], run)
        grown = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
    assert grown < 1 << 20
    events = json.loads((out / "trace.json").read_text())["traceEvents"]
    assert sum(event["name"] == "task" for event in events) == 20 * 1000
    assert [file.name for file in out.iterdir()] == ["trace.json"]
    assert pickle.loads(pickle.dumps(seen)).outcomes == seen.outcomes


def test_runs_of_a_forked_child_stay_out_of_the_timeline(out: Path) -> None:
    with oc.profile(out / "trace.json"):
        oc.arange(4).sum().compute()
        child = os.fork()
        if child == 0:
            with contextlib.suppress(BaseException):
                oc.arange(5).sum().compute()
            os._exit(0)
        os.waitpid(child, 0)
    events = json.loads((out / "trace.json").read_text())["traceEvents"]
    assert {event["pid"] for event in events} == {1}


@pytest.mark.parametrize("error", [None, ZeroDivisionError])
@pytest.mark.parametrize("name", ["run.html", "trace.json"])
def test_a_forked_child_that_leaves_the_block_writes_nothing(
    name: str, error: type[Exception] | None, out: Path
) -> None:
    child, written = -1, []
    try:
        with contextlib.suppress(ZeroDivisionError), oc.profile(out / name) as seen:
            oc.arange(4).sum().compute()
            child = os.fork()
            if child:
                os.waitpid(child, 0)
                written = os.listdir(out)
            elif error is not None:
                raise error
    finally:
        if child == 0:
            os._exit(0)
    assert written == []
    assert os.listdir(out) == [name]
    assert len(seen.outcomes) == 1


def test_blocks_that_are_left_in_any_order_have_their_own_runs() -> None:
    first, second = oc.profile(), oc.profile()
    outer, inner = first.__enter__(), second.__enter__()
    first.__exit__(None, None, None)
    oc.arange(4).sum().compute()
    second.__exit__(None, None, None)
    oc.arange(4).sum().compute()
    assert (len(outer.outcomes), len(inner.outcomes)) == (0, 1)
