"""The progress of a run: what the engine reports, and the figures and the rest of the time that follow from it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import outcore as oc
from outcore._session import views
from outcore._session.figures import FINISHING, Figures, LoopFigures
from outcore._session.line import time_left
from outcore._session.progress import Progress, of_loop, of_program


def reports(array: oc.Array, tmp_path: Path) -> list[tuple[Any, ...]]:
    """All that the core tells while an array is stored."""
    told: list[tuple[Any, ...]] = []
    with oc.Session(memory_limit="2GiB", threads=2, progress=False) as session:
        target: Any = {"path": str(tmp_path / "y.npy"), "overwrite": True, "chunks": None}
        session.plan([array._expr], [target]).run(lambda *report: told.append(report), None)
    return told


def test_the_last_report_is_complete(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones((20_000, 100)))
    told = reports(oc.open(tmp_path / "x.npy") + 1, tmp_path)
    bytes_done, bytes_total, tasks_done, tasks_total, fraction, left = told[-1]
    assert (bytes_done, tasks_done) == (bytes_total, tasks_total)
    assert (fraction, left) == (1.0, 0.0)


def test_reports_only_go_forward(tmp_path: Path) -> None:
    slow = oc.map_blocks(
        lambda tile: np.sort(np.sin(tile), axis=None).reshape(tile.shape), oc.ones((4_000_000,)), dtype="f8"
    )
    told = reports(slow, tmp_path)
    for before, after in pairwise(told):
        assert before[0] <= after[0]
        assert before[2] <= after[2]
    assert all(0 <= report[4] <= 1 for report in told)
    assert all(report[5] is None or report[5] >= 0 for report in told)


def staged(tmp_path: Path) -> oc.Array:
    """A sort that takes several stages under 24 MiB."""
    np.save(tmp_path / "x.npy", np.random.default_rng(0).random(2_000_000))
    return oc.sort(oc.open(tmp_path / "x.npy"))


def test_stages_are_named_and_the_share_is_that_of_all(tmp_path: Path) -> None:
    said: list[str] = []
    shares: list[tuple[str, float]] = []

    def report(*told: Any) -> None:
        shares.append((said[-1], told[4]))

    with oc.Session(memory_limit="2GiB", pool_limit="24MiB", threads=2, progress=False) as session:
        target: Any = {"path": str(tmp_path / "y.npy"), "overwrite": False}
        session.plan([staged(tmp_path)._expr], [target]).run(report, None, said.append)
    stages = [words for words in said if words.startswith("stage ")]
    running = [words.partition(", pass ")[0] for words in stages if "planning" not in words]
    labels = dict(words.removeprefix("stage ").split(": ") for words in running)
    last = max(labels)
    assert running[0] == f"stage 1 of {last[-1]}: {labels['1' + last[1:]]}"
    assert labels["1" + last[1:]] == "sample keys"
    assert labels[last] == "results"
    # Only when the last stage is over all is done.
    assert all(share < 1 for words, share in shares if words.startswith("stage 1 "))
    assert shares[-1][1] == 1
    assert all(before <= after for (_, before), (_, after) in pairwise(shares))


def test_passes_are_counted_where_there_are_several(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones((3000, 300)))
    said: list[str] = []
    with oc.Session(memory_limit="2GiB", threads=2, progress=False) as session:
        x = oc.open(tmp_path / "x.npy")
        program = session.plan([oc.tanh(oc.tanh(x @ x.T) @ x)._expr], [None])
        program.run(None, None, said.append)
    count = len(json.loads(program.explain())["passes"])
    assert count > 1
    assert said[0] == f"pass 1 of {count}"
    assert set(said) <= {f"pass {number} of {count}" for number in range(1, count + 1)}


def test_one_pass_is_told_without_words(tmp_path: Path) -> None:
    said: list[str] = []
    with oc.Session(memory_limit="2GiB", threads=2, progress=False) as session:
        session.plan([oc.ones(1000)._expr], [None]).run(None, None, said.append)
    assert said == []


def test_an_outcome_reads_in_one_line() -> None:
    outcome = oc.Outcome(bytes_read=2048, bytes_written=100, bytes_spilled=50, peak_bytes=4096, seconds=1.25)
    assert repr(outcome) == "Outcome(2.00 KiB read, 100 B written (50 B of them spilled), peak 4.00 KiB, 1.25 s)"


# Figures, without a terminal and a clock


def test_the_rate_is_that_of_the_last_seconds() -> None:
    figures = Figures()
    for second in range(11):
        figures.report(second * (100 if second <= 5 else 1000), 10_000, 0.5, None, float(second))
    assert figures.rate() == pytest.approx((10_000 - 500) / 5)


def test_bytes_of_programs_before_count_for_the_rate() -> None:
    figures = Figures()
    for program in range(3):
        figures.begin_program(float(program))
        figures.report(1000, 1000, 1.0, 0.0, program + 1.0)
    assert figures.bytes_moved == 3000
    assert figures.rate() == 1000


def test_the_rest_of_a_program_falls_between_reports() -> None:
    figures = Figures()
    figures.report(1, 10, 0.1, 9.0, now=1.0)
    assert figures.seconds_left(now=1.0) == 9
    assert figures.seconds_left(now=3.0) == 7
    assert figures.seconds_left(now=30.0) == 0


def test_a_program_of_several_tells_no_share_of_the_call() -> None:
    figures = Figures(is_one_program=False)
    figures.tasks_total = 10
    figures.report(5, 10, 0.5, 3.0, now=3.0)
    assert figures.share(now=3.0) is None
    assert time_left(figures, 3.0) == "0:03 left of this program"


def test_the_share_of_a_call_does_not_fall() -> None:
    figures = Figures(loops=[LoopFigures("", 0.0, most=4)])
    figures.loops[0].show(1, 0, 0.0)
    figures.report(1, 4, 0.5, 1.0, now=1.0)
    assert figures.share(1.0) == pytest.approx(1 / 8)
    figures.report(1, 4, 0.25, 9.0, now=1.0)
    assert figures.seconds_left(1.0) == pytest.approx(39)
    assert figures.share(1.0) == pytest.approx(1 / 8)


def test_nobody_knows_how_long_outputs_take_to_be_durable() -> None:
    figures = Figures(stage=FINISHING)
    figures.report(10, 10, 1.0, 0.0, now=1.0)
    assert figures.seconds_left(now=2.0) is None


def test_the_rest_of_a_loop_is_judged_by_its_steps_but_the_first() -> None:
    loop = LoopFigures("", 0.0, most=50)
    loop.show(1, 0, 0.0)
    assert loop.seconds_left(None, 3.0) is None
    loop.show(2, 1, 10.0)  # a first step that reads all takes ten seconds, and each of the others one
    for step in range(3, 7):
        loop.show(step, step - 1, 10.0 + step - 2)
    assert loop.seconds_left(None, 14.0) == pytest.approx(45)
    assert loop.seconds_left(None, 14.5) == pytest.approx(44.5)


def test_the_first_step_is_judged_by_its_program() -> None:
    figures = Figures(loops=[LoopFigures("", 0.0, most=10)])
    figures.loops[0].show(1, 0, 0.0)
    figures.report(1, 4, 0.25, 3.0, now=1.0)
    assert figures.seconds_left(1.0) == pytest.approx(3 + 9 * 4)
    assert figures.share(1.0) == pytest.approx(1 / 40)


def test_a_loop_that_goes_on_is_judged_by_steps_of_its_own() -> None:
    loop = LoopFigures("", 0.0, most=100)
    loop.resume(90, 5.0)
    for step in range(91, 94):
        loop.show(step, step, 5.0 + step - 90)
    assert loop.seconds_left(None, 8.0) == pytest.approx(7)


def test_steps_before_a_loop_tell_the_rest_of_it() -> None:
    loop = LoopFigures("", 0.0)
    loop.most, loop.further = 4, 10
    for step in range(1, 4):
        loop.show(step, step - 1, 2.0 * (step - 1))
    assert loop.seconds_left(None, 4.0) == pytest.approx(2 * 2 + 10 * 2)
    loop.most, loop.further = 10, 0
    loop.show(0, 0, 8.0)
    loop.show(1, 1, 9.0)
    assert loop.seconds_left(None, 9.0) == pytest.approx(9)


def test_a_loop_within_the_first_step_of_another_tells_its_rest() -> None:
    outer, inner = LoopFigures("", 0.0, most=3), LoopFigures("fit", 0.0, most=4, is_bound=True)
    figures = Figures(loops=[outer, inner])
    outer.show(1, 0, 0.0)
    for step in range(1, 4):
        inner.show(step, step - 1, 2.0 * (step - 1))
    # Two steps of two seconds are over, the third begins: 4 seconds of this step, and 8 of each other one.
    assert figures.seconds_left(4.0) == pytest.approx(4 + 2 * 8)
    assert figures.is_bound
    outer.show(2, 1, 8.0)
    outer.show(3, 2, 16.0)
    assert not figures.is_bound
    assert figures.seconds_left(16.0) == pytest.approx(8)


# Calls


class Shown:
    """A view that keeps each figure it was shown."""

    all: list[Shown]

    def __init__(self) -> None:
        self.lines: list[tuple[str, list[tuple[str, int, int | None, dict[str, Any]]], float | None]] = []
        self.endings: list[str] = []
        Shown.all.append(self)

    def update(self, figures: Figures, now: float) -> None:
        loops = [(loop.name, loop.step, loop.most, loop.values) for loop in figures.loops]
        self.lines.append((figures.call, loops, figures.share(now)))

    def close(self, figures: Figures, now: float, ending: str) -> None:
        self.endings.append(ending)


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Shown]]:
    Shown.all = []
    monkeypatch.setattr(views, "LogView", Shown)
    monkeypatch.setattr(views, "on_terminal", lambda: False)
    monkeypatch.setattr("outcore._session.progress._SHOW_SECONDS", 0.0)
    with oc.Session(memory_limit="2GiB", threads=2, progress=True):
        yield Shown.all


def test_a_call_is_named_as_the_user_called_it(shown: list[Shown], tmp_path: Path) -> None:
    x = oc.random.uniform((1000,), seed=0)
    x.sum().compute()
    float(x.max())
    oc.store({tmp_path / "x.npy": x})
    assert [view.lines[0][0] for view in shown] == ["compute", "float", "store"]
    assert [view.endings for view in shown] == [[""], [""], [""]]


def test_progress_and_profiles_name_calls_alike(shown: list[Shown], tmp_path: Path) -> None:
    from outcore.learn import KMeans

    rows = np.random.default_rng(0).random((200, 2))
    G = oc.graph.from_arrays([0, 0, 1], [1, 2, 3])
    with oc.profile() as seen:
        KMeans(2, max_iter=2, random_state=0).fit(rows)
        oc.graph.bfs(G, 0)
        oc.store({tmp_path / "x.npy": oc.ones(9)})
    assert {"KMeans.fit", "store"} <= {view.lines[0][0] for view in shown}
    text = seen._repr_html_()
    assert all(f"{name} (test_progress.py:" in text for name in ("KMeans.fit", "bfs", "store"))


def test_the_name_of_a_wrapper_is_that_of_its_function() -> None:
    from outcore._session.caller import _outer
    from outcore.graph import _live

    def method(name: str, qualified: str) -> Any:
        return (lambda: None).__code__.replace(co_name=name, co_qualname=qualified)

    assert _outer("running", oc.graph.bfs.__code__) == "bfs"
    assert oc.graph.bfs.__code__.co_filename == _live.__file__
    assert _outer("KMeans.fit", method("fit", "_naming_itself.<locals>.named")) == "KMeans.fit"
    assert _outer("KMeans.fit", method("<lambda>", "store.<locals>.<lambda>")) == "KMeans.fit"
    assert _outer("running", method("compute", "Array.compute")) == "Array.compute"


def test_a_loop_and_its_programs_share_one_view(shown: list[Shown]) -> None:
    def step(x: oc.Array) -> tuple[oc.Array, dict[str, oc.Array]]:
        return x / 2, {"loss": x.sum()}

    oc.iterate(step, oc.ones(100), max_iter=5)
    (view,) = shown
    assert {call for call, _, _ in view.lines} == {"iterate"}
    steps = [loops[0] for _, loops, _ in view.lines]
    assert steps[0] == ("", 1, 5, {})
    assert steps[-1] == ("", 5, 5, {"loss": 12.5})


def test_loops_within_loops_are_shown_together(shown: list[Shown]) -> None:
    def step(x: oc.Array) -> oc.Array:
        return oc.iterate(lambda y: y / 2, x, max_iter=3).state + 1

    oc.iterate(step, oc.ones(100), max_iter=2)
    (view,) = shown
    nested = [[(name, step, most) for name, step, most, _ in loops] for _, loops, _ in view.lines]
    assert [("", 1, 2), ("iterate", 2, 3)] in nested
    assert [("", 2, 2), ("iterate", 3, 3)] in nested
    assert nested[-1] == [("", 2, 2)]


def test_a_fit_within_a_loop_is_named(shown: list[Shown]) -> None:
    from outcore.learn import KMeans

    rows = np.random.default_rng(0).random((200, 2))

    def step(x: oc.Array) -> tuple[oc.Array, dict[str, float]]:
        return x + 1, {"inertia": KMeans(2, max_iter=4, random_state=0).fit(rows).inertia_}

    KMeans(2, max_iter=4, random_state=0).fit(rows)
    oc.iterate(step, oc.ones(1), max_iter=2)
    fit, *_, loop = shown
    assert {call for call, _, _ in fit.lines} == {"KMeans.fit"}
    assert {loops[0][0] for _, loops, _ in fit.lines} == {""}
    inner = [loops[1] for _, loops, _ in loop.lines if len(loops) > 1]
    assert {name for name, *_ in inner} == {"KMeans.fit"}
    assert any("inertia" in values and most == 4 for _, _, most, values in inner)


def test_nothing_is_looked_at_where_nobody_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr("outcore._session.progress.Progress", refuse)
    monkeypatch.setattr("outcore._session.progress.UserCall", refuse)
    monkeypatch.setattr(views, "on_terminal", lambda: True)
    with oc.Session(progress=False):
        oc.iterate(lambda x: x / 2, oc.ones(10), max_iter=2)
    monkeypatch.setattr(views, "on_terminal", lambda: False)
    with oc.Session():
        oc.ones(10).sum().compute()


@contextmanager
def at(seconds: list[float], *, is_forced: bool) -> Iterator[tuple[Progress, list[Shown]]]:
    Shown.all = []
    progress = Progress("store", is_forced=is_forced, view=Shown, clock=lambda: seconds[0])
    yield progress, Shown.all
    progress.close()


def test_a_short_call_that_nobody_asked_to_see_is_not_shown() -> None:
    now = [0.0]
    with at(now, is_forced=False) as (progress, shown):
        progress.report(1, 2, 1, 2, 0.5, 0.4)
        now[0] = 0.4
        progress.report(2, 2, 2, 2, 1.0, 0.0)
    assert shown == []
    with at(now, is_forced=True) as (progress, shown):
        progress.report(1, 2, 1, 2, 0.5, 0.4)
    assert [view.endings for view in shown] == [[""]]


def test_a_view_is_updated_ten_times_a_second_at_most() -> None:
    now = [0.0]
    with at(now, is_forced=True) as (progress, shown):
        for report in range(1000):
            now[0] = report / 500
            progress.report(report, 1000, report, 1000, report / 1000, 1.0)
    assert 15 <= len(shown[0].lines) <= 21


def test_programs_of_one_call_have_one_progress(shown: list[Shown]) -> None:
    options: Any = {"progress": True, "memory_limit": 1 << 30}
    with of_loop(options, name="sweep") as outer, of_program(options) as first:
        assert outer is first
    with of_program(options) as other:
        assert other is not outer
