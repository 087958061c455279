"""Ctrl-C says which outputs and loops can be gone on with, and says only what is true."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import outcore as oc
from outcore.learn import KMeans


@pytest.fixture(autouse=True)
def _session(tmp_path: Path) -> Any:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with oc.Session(memory_limit="2GiB", threads=2, scratch=[scratch], progress=False):
        yield


def notes_of(call: Callable[[], object]) -> list[str]:
    """The notes of the KeyboardInterrupt with which a call ends."""
    with pytest.raises(KeyboardInterrupt) as raised:
        call()
    return list(getattr(raised.value, "__notes__", []))


def interrupted_run(monkeypatch: pytest.MonkeyPatch, tasks: int) -> None:
    """Has programs be interrupted when so many tasks are done."""
    run = oc.Session.run

    def interrupt(bytes_done: int, bytes_total: int, tasks_done: int, *_: Any) -> None:
        if tasks_done >= tasks:
            raise KeyboardInterrupt

    class Interrupted:
        report, say = staticmethod(interrupt), None

    monkeypatch.setattr(oc.Session, "run", lambda self, program, progress=None: run(self, program, Interrupted))


@pytest.fixture
def values(tmp_path: Path) -> oc.Array:
    """Eight mebibytes in a file of many tiles."""
    np.save(tmp_path / "x.npy", np.random.default_rng(0).random((1024, 1024)))
    return oc.open(tmp_path / "x.npy")


def test_an_output_without_resume_is_gone(values: oc.Array, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupted_run(monkeypatch, 1)
    path = tmp_path / "y.npy"
    (note,) = notes_of(lambda: oc.store({path: values + 1}))
    assert note == f"{path}: gone: nothing of it is kept; with resume=True a call can be gone on with"
    assert not path.exists()


def test_an_output_that_is_to_be_replaced_is_as_it_was(
    values: oc.Array, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "y.npy"
    np.save(path, np.arange(3))
    interrupted_run(monkeypatch, 1)
    (note,) = notes_of(lambda: oc.store({path: values + 1}, overwrite=True))
    assert "gone: nothing of it is kept; what had the name before is as it was" in note
    assert np.load(path).tolist() == [0, 1, 2]


def test_outputs_with_resume_are_kept(values: oc.Array, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [tmp_path / "y.npy", tmp_path / "z.zarr"]
    targets = {path: values + step for step, path in enumerate(paths)}
    with monkeypatch.context() as patch:
        interrupted_run(patch, 1)
        notes = notes_of(lambda: oc.store(targets, resume=True))
    assert notes == [f"{path}: kept: its complete tiles, for the same call to go on from" for path in paths]
    assert {part[1] for part in oc._core.unfinished(str(tmp_path))} == set(paths)
    oc.store(targets, resume=True)
    np.testing.assert_array_equal(np.load(paths[0]), np.load(tmp_path / "x.npy"))


def test_an_output_that_appeared_before_the_interrupt_is_complete(
    values: oc.Array, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, path = oc.Session.run, tmp_path / "y.npy"

    def late(self: oc.Session, program: Any, progress: Any = None) -> Any:
        run(self, program, progress)
        del program
        raise KeyboardInterrupt

    monkeypatch.setattr(oc.Session, "run", late)
    assert notes_of(lambda: oc.store({path: values + 1})) == [f"{path}: complete"]


def halves(interrupt_at: int) -> Callable[[oc.Array], oc.Array]:
    """A step that is interrupted when it is called for the n-th time."""
    calls = iter(range(1, 1000))

    def step(x: oc.Array) -> oc.Array:
        if next(calls) == interrupt_at:
            raise KeyboardInterrupt
        return x / 2

    return step


def test_a_loop_without_checkpoints_is_gone() -> None:
    notes = notes_of(lambda: oc.iterate(halves(4), oc.ones(10), max_iter=9))
    assert notes == ["iterate: gone: it ended at step 4, and nothing of it is kept"]


def test_a_loop_with_checkpoints_goes_on_from_the_last(tmp_path: Path) -> None:
    # The first call of the step tells which loop it is, and is that of its first step.
    notes = notes_of(lambda: oc.iterate(halves(6), oc.ones(10), max_iter=9, checkpoint=2))
    assert notes == [
        "iterate: kept: the state after step 4, for the same call to go on from; "
        "gone: the steps after it, of which 6 was the last"
    ]
    calls: list[int] = []

    def step(x: oc.Array) -> oc.Array:
        calls.append(1)
        return x / 2

    assert oc.iterate(step, oc.ones(10), max_iter=9, checkpoint=2).iterations == 9
    assert len(calls) == 1 + 5, "one call tells which loop it is, and five steps are left"


def test_a_loop_before_its_first_checkpoint_is_gone() -> None:
    notes = notes_of(lambda: oc.iterate(halves(2), oc.ones(10), max_iter=9, checkpoint=5))
    assert notes == ["iterate: gone: it ended at step 2, and no checkpoint is stored yet"]


def test_a_loop_within_another_tells_of_its_checkpoints_alone() -> None:
    def outer(x: oc.Array) -> oc.Array:
        return oc.iterate(halves(3), x, max_iter=5).state

    assert notes_of(lambda: oc.iterate(outer, oc.ones(10), max_iter=9)) == [
        "iterate: gone: it ended at step 1, and nothing of it is kept"
    ]

    def kept(x: oc.Array) -> oc.Array:
        return oc.iterate(halves(4), x, max_iter=5, checkpoint=1).state

    first, second = notes_of(lambda: oc.iterate(kept, oc.ones(10), max_iter=9))
    assert first.startswith("iterate: kept: the state after step 3")
    assert second.startswith("iterate: gone: it ended at step 1")


@pytest.mark.parametrize(
    ("checkpoint", "note"),
    [
        (None, "KMeans: gone: it ended at iteration 2, and nothing of it is kept"),
        (2, "KMeans: kept: the results of complete programs, for the same call to go on from"),
    ],
)
def test_a_fit_tells_what_its_checkpoints_keep(
    checkpoint: int | None, note: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from outcore._run.driver import Driver

    rows = np.random.default_rng(0).random((500, 3))
    tell = Driver.tell

    def interrupt(self: Driver, *args: Any, **values: float) -> None:
        tell(self, *args, **values)
        if self.step == 2:
            raise KeyboardInterrupt

    def fit() -> KMeans:
        return KMeans(4, random_state=0, tol=0, max_iter=4, checkpoint=checkpoint).fit(rows)

    with monkeypatch.context() as patch:
        patch.setattr(Driver, "tell", interrupt)
        assert notes_of(fit) == [note]
    known = KMeans(4, random_state=0, tol=0, max_iter=4).fit(rows)
    np.testing.assert_array_equal(fit().cluster_centers_, known.cluster_centers_)


def test_the_command_line_says_it_too(capsys: pytest.CaptureFixture[str]) -> None:
    from outcore._command.shared import errors_in_one_line

    @errors_in_one_line
    def convert() -> None:
        interrupt = KeyboardInterrupt()
        interrupt.add_note("y.npy: gone: nothing of it is kept; with resume=True a call can be gone on with")
        raise interrupt

    with pytest.raises(KeyboardInterrupt):
        convert()
    text = "outcore: y.npy: gone: nothing of it is kept; with --resume a call can be gone on with\n"
    assert capsys.readouterr().err == text
