"""One driver for all loops: its progress line, and the format of its checkpoints, whichever loop they are of."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from support.eigenproblems import digest, symmetric
from support.running import files_below, session
from support.sizes import alternating

import outcore as oc
from outcore import learn
from outcore._run.checkpoints import Checkpoints
from outcore._run.driver import Driver
from outcore._session.line import loop_text
from outcore._session.progress import Progress
from outcore.errors import ResumeWarning
from outcore.sparse import linalg


class StopError(Exception):
    """Ends a loop on its way."""


@contextmanager
def stopped_after(steps: int) -> Iterator[None]:
    """Ends the loop within at its next step when so many are in its progress line."""
    show, count = Driver.show, 0

    def counted(driver: Driver, *arguments: Any, **options: Any) -> None:
        nonlocal count
        count += driver.step > 0
        if count > steps:
            raise StopError
        show(driver, *arguments, **options)

    with pytest.MonkeyPatch.context() as patch, suppress(StopError):
        patch.setattr(Driver, "show", counted)
        yield
        raise AssertionError("the loop came to its end")


def descent(checkpoint: int | None) -> Any:
    model = learn.SGDRegressor(max_iter=6, tol=None, random_state=0, checkpoint=checkpoint)
    model.fit(np.arange(60.0).reshape(20, 3) / 60, np.arange(20.0))
    return model.coef_.tobytes(), model.history_["loss"].tobytes(), model.t_


def mixture(checkpoint: int | None) -> Any:
    x = np.random.default_rng(0).random((200, 3))
    model = learn.GaussianMixture(2, tol=0, max_iter=8, random_state=0, checkpoint=checkpoint)
    model.fit(x)
    return model.means_.tobytes(), model.history_["log_likelihood"].tobytes()


def loop(checkpoint: int | None) -> Any:
    def step(v: oc.Array) -> Any:
        return v * 0.75 + 1, {"total": v.sum()}

    result = oc.iterate(step, np.arange(5.0), max_iter=9, checkpoint=checkpoint)
    return result.state.compute().tobytes(), result.history["total"].tobytes()


def eigenvalues(checkpoint: int | None) -> Any:
    return digest(linalg.eigsh(symmetric(400), k=3, which="LA", tol=1e-9, ncv=10, checkpoint=checkpoint))


LOOPS: dict[str, Callable[[int | None], Any]] = {
    "iterate": loop,
    "a fit with results": mixture,
    "a fit with states": descent,
    "eigsh": eigenvalues,
}


@pytest.mark.parametrize(("name", "text"), alternating(list(LOOPS), [None, b"outcore checkpoints 3\n", b""]))
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_checkpoints_of_another_format_begin_anew_and_are_said(name: str, text: bytes | None, tmp_path: Path) -> None:
    run = LOOPS[name]
    with session(tmp_path):
        expected = run(None)
        with stopped_after(4):
            run(1)
        (folder,) = tmp_path.glob("outcore-resume-*")
        if text is None:
            (folder / "format").unlink()
        else:
            (folder / "format").write_bytes(text)
        with pytest.warns(ResumeWarning, match="another version of outcore, which are removed: it begins anew"):
            assert run(1) == expected
    assert files_below(tmp_path) == []


@pytest.mark.parametrize("name", ["iterate", "a fit with states", "eigsh"])
def test_no_byte_of_a_note_is_believed_that_was_changed(name: str, tmp_path: Path) -> None:
    run = LOOPS[name]
    with session(tmp_path):
        expected = run(None)
        for place in (0, 9, 150, -3):
            with stopped_after(4):
                run(1)
            (note,) = tmp_path.rglob("state-*.note")
            content = bytearray(note.read_bytes())
            content[place] ^= 1
            note.write_bytes(content)
            assert run(1) == expected
    assert files_below(tmp_path) == []


def test_results_go_on_behind_their_state_only(tmp_path: Path) -> None:
    numbers = [[np.asarray(float(number))] for number in range(5)]
    with session(tmp_path):

        def opened() -> Checkpoints:
            return Checkpoints.known_by(1, "a test", ["of results"])

        first = opened()
        first.record(numbers[0])
        first.close(is_over=False)
        (path,) = tmp_path.rglob("results")
        stale = path.read_bytes()
        del first
        second = opened()
        assert second.recall() == numbers[0]
        assert second.recall() is None
        second.save(7, [oc.arange(3)], [np.asarray(1.5)], {"loss": [1.0, 2j, 3]})
        second.record(numbers[1])
        second.record(numbers[2])
        second.close(is_over=False)
        del second
        third = opened()
        (state,) = third.states()
        assert (state.step, state.values, state.history) == (7, [np.asarray(1.5)], {"loss": [1.0, 2j, 3]})
        assert state.arrays[0].compute().tolist() == [0, 1, 2]
        third.follow(7)
        assert [third.recall(), third.recall(), third.recall()] == [numbers[1], numbers[2], None]
        third.close(is_over=False)
        del third
        # As after a kill between the two: the state is there, and results from before it.
        path.write_bytes(stale)
        fourth = opened()
        fourth.follow(7)
        assert fourth.recall() is None
        fourth.close(is_over=True)
    assert files_below(tmp_path) == []


class KilledFolder:
    """A folder whose process ends before it is removed."""

    def remove(self) -> None:
        raise StopError


def test_a_loop_that_was_killed_when_it_was_over_left_no_state(tmp_path: Path) -> None:
    with session(tmp_path), warnings.catch_warnings():
        warnings.simplefilter("error")
        checkpoints = Checkpoints.known_by(1, "a test", ["of an end"])
        checkpoints.record([np.asarray(1.0)])
        checkpoints.save(1, [oc.arange(3)], [], {})
        checkpoints.record([np.asarray(2.0)])
        folder, checkpoints._folder = checkpoints._folder, KilledFolder()  # type: ignore[assignment]
        with pytest.raises(StopError):
            checkpoints.close(is_over=True)
        del folder, checkpoints
        for path in tmp_path.rglob("format"):
            path.unlink()
        again = Checkpoints.known_by(1, "a test", ["of an end"])
        assert list(again.states()) == []
        assert again.recall() is None
        again.close(is_over=True)
    assert files_below(tmp_path) == []


@contextmanager
def shown() -> Iterator[dict[Progress, list[str]]]:
    """By progress line, its call and loops in the order of reports."""
    lines: dict[Progress, list[str]] = {}

    def report(progress: Progress, *_: Any) -> None:
        figures, labels = progress.figures, lines.setdefault(progress, [])
        label = " › ".join([figures.call, *(text for loop in figures.loops if (text := loop_text(loop)))])
        if label not in labels[-1:]:
            labels.append(label)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Progress, "report", report)
        patch.setattr(Progress, "say", lambda *_: None)
        yield lines


TABLE = np.random.default_rng(0).random((200, 3))
MATRIX = symmetric(400)
ONES = np.ones(400)
# By its name, a loop, and a part of its line on the way.
LINES: dict[str, tuple[Callable[[], Any], str]] = {
    "iterate": (lambda: loop(None), "iterate › step 3 of 9, total 12.5"),
    "KMeans": (lambda: learn.KMeans(4, tol=0, random_state=0).fit(TABLE), "KMeans.fit › iteration 2 of 300, inertia "),
    "NMF": (lambda: learn.NMF(2, tol=0, max_iter=4).fit(TABLE), "NMF.fit › step 3 of 4, error "),
    "eigsh": (lambda: linalg.eigsh(MATRIX, k=3, tol=1e-9, ncv=10), "eigsh › restart 2 of 4,000, converged "),
    "svds": (lambda: linalg.svds(MATRIX, k=3, tol=1e-9, ncv=8), "svds › restart 2 of 4,000, converged "),
    "cg": (
        lambda: linalg.cg(MATRIX + 30 * scipy.sparse.eye_array(400), ONES),
        "cg › step 2 of 4,000, residual ",
    ),
    "gmres": (lambda: linalg.gmres(MATRIX, ONES, restart=5, maxiter=3), "gmres › restart 1 of 3, residual "),
    "lobpcg": (lambda: linalg.lobpcg(MATRIX, TABLE[:, :2].repeat(2, 0), tol=1e-3, maxiter=9), "lobpcg › step 2 of 9, "),
}


@pytest.mark.parametrize("name", LINES)
@pytest.mark.filterwarnings("ignore:lobpcg")
def test_all_programs_of_a_loop_are_in_one_line(name: str) -> None:
    call, expected = LINES[name]
    with session(progress=True), shown() as lines:
        call()
    of_loops = [labels for labels in lines.values() if any(" › " in label for label in labels)]
    assert len(of_loops) == 1
    assert any(expected in label for label in of_loops[0]), of_loops[0]


def test_a_loop_that_shows_nothing_hides_its_programs() -> None:
    with session(progress=True), shown() as lines:
        oc.iterate(lambda v: v + float(v.max().compute()), np.ones(3), max_iter=3, progress=False)
    assert lines == {}
