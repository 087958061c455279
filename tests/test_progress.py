"""The progress of a run: bytes, tasks, and the share and rest of its time as the estimate has them."""

from __future__ import annotations

import io
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import outcore as oc
from outcore._session.progress import Bar, _clock


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


def test_the_bar_shows_share_amount_and_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    from rich.console import Console

    shown = io.StringIO()
    monkeypatch.setattr("rich.console.Console", lambda **_: Console(file=shown, width=120, force_terminal=True))
    bar = Bar()
    bar.report(0, 4 << 30, 0, 40, 0.0, None)
    bar.report(3 << 30, 4 << 30, 4, 40, 0.1, 3 * 3600 + 62.0)
    bar.close()
    text = shown.getvalue()
    assert "10%" in text
    assert "3.00 GiB of 4.00 GiB, 4 of 40 tasks" in text
    assert "3:01:02 left" in text


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
    labels = dict(words.removeprefix("stage ").split(": ") for words in stages if "planning" not in words)
    last = max(labels)
    assert stages[0] == f"stage 1 of {last[-1]}: {labels['1' + last[1:]]}"
    assert labels["1" + last[1:]] == "sample keys"
    assert labels[last] == "results"
    # Only when the last stage is over all is done.
    assert all(share < 1 for words, share in shares if words.startswith("stage 1 "))
    assert shares[-1][1] == 1
    assert all(before <= after for (_, before), (_, after) in pairwise(shares))


def test_one_program_is_told_without_words(tmp_path: Path) -> None:
    said: list[str] = []
    with oc.Session(memory_limit="2GiB", threads=2, progress=False) as session:
        session.plan([oc.ones(1000)._expr], [None]).run(None, None, said.append)
    assert said == []


def test_the_bar_names_the_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    bar = Bar()
    try:
        bar.say("stage 2 of 4: sort 3 runs")
        bar.report(3 << 20, 4 << 20, 7, 7, 0.4, None)
        task = bar._bar.tasks[0]
        assert task.description == "outcore, stage 2 of 4: sort 3 runs"
        # All tasks of this stage are done, and less than half of the work.
        assert task.completed == 0.4
        bar.say("planning")
        bar.report(0, 0, 0, 0, 0.0, None)
        assert (task.description, task.fields["amount"], task.completed) == ("outcore, planning", "", 0.4)
    finally:
        bar.close()


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0:00"), (0.2, "0:01"), (59.5, "1:00"), (3600, "1:00:00"), (171, "2:51")]
)
def test_a_clock(seconds: float, text: str) -> None:
    assert _clock(seconds) == text


def test_the_bar_of_a_graph_shows_its_iteration(monkeypatch: pytest.MonkeyPatch) -> None:
    from rich.console import Console

    shown = io.StringIO()
    monkeypatch.setattr("rich.console.Console", lambda **_: Console(file=shown, width=160, force_terminal=True))
    bar = Bar()
    bar.label = "bfs"
    bar.iteration(3, 1200, 4000, 5 << 20, 17)
    bar.close()
    assert "bfs" in shown.getvalue()
    assert "iteration 3, 1,200 active; 4,000 lists, 5.00 MiB read, 17 pages from the cache" in shown.getvalue()


def test_the_first_frame_says_that_the_run_is_planned() -> None:
    bar = Bar()
    try:
        bar.report(0, 0, 0, 0, 0.0, None)
        task = bar._bar.tasks[0]
        assert (task.completed, task.fields["amount"]) == (0, "planning")
    finally:
        bar.close()


def test_an_outcome_reads_in_one_line() -> None:
    outcome = oc.Outcome(bytes_read=2048, bytes_written=100, bytes_spilled=50, peak_bytes=4096, seconds=1.25)
    assert repr(outcome) == "Outcome(2.00 KiB read, 100 B written (50 B of them spilled), peak 4.00 KiB, 1.25 s)"
