"""Ctrl-C says which outputs and loops can be gone on with, and says only what is true."""

from __future__ import annotations

import gc
import re
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


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The lines of progress that are shown, with each report one."""
    from outcore._session import line, views

    shown: list[str] = []
    monkeypatch.setattr(views.LogView, "update", lambda _, figures, now: shown.append(line.line(figures, now)))
    monkeypatch.setattr("outcore._session.progress._SHOW_SECONDS", 0.0)
    return shown


def test_a_call_that_goes_on_says_behind_how_many_tasks(
    values: oc.Array, lines: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "y.zarr"

    def store() -> oc.Outcome:
        return oc.store({path: values + 1}, chunks={path: (64, 1024)}, resume=True, progress=True)

    with monkeypatch.context() as patch:
        interrupted_run(patch, 3)
        notes_of(store)
    assert not any("going on" in text for text in lines)
    resumed = store().other["resumed_tiles"]
    assert resumed > 0
    behind = re.findall(r"going on behind (\d+) of (\d+) tasks", "\n".join(lines))
    assert behind[0] == (str(resumed), "16")
    np.testing.assert_array_equal(oc.open(path).compute(), np.load(tmp_path / "x.npy") + 1)


def test_a_call_of_several_stages_says_that_it_goes_on(
    values: oc.Array, lines: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def store() -> oc.Outcome:
        return oc.store({tmp_path / "y.npy": oc.sort(oc.reshape(values, (-1,)))}, resume=True, progress=True)

    with oc.Session(memory_limit="2GiB", pool_limit=13 << 20, threads=2, scratch=[tmp_path]):
        with monkeypatch.context() as patch:
            interrupted_run(patch, 3)
            notes_of(store)
        gc.collect()  # frames of the traceback hold the program, which holds its stages
        assert not any("going on" in text for text in lines)
        store()
    assert any("going on behind an earlier run" in text for text in lines)
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), np.sort(np.load(tmp_path / "x.npy").ravel()))


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


def test_groups_hdf5_files_and_dates_are_gone_and_say_how_to_go_on(
    values: oc.Array, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted_run(monkeypatch, 1)
    days = oc.asarray(np.arange(9).astype("M8[D]"))
    calls = {
        " that stores arrays, not groups": {tmp_path / f"{name}.zarr": oc.group(x=values + 1) for name in "gh"},
        " that stores to .zarr": {tmp_path / "x.h5": oc.group(x=values + 1, y=values)},
        " that stores numbers: x.integers": {tmp_path / "d.npy": days, tmp_path / "x2.npy": values + 1},
    }
    for way, targets in calls.items():
        notes = notes_of(lambda targets=targets: oc.store(targets))
        said = f"gone: nothing of it is kept; with resume=True a call can be gone on with{way}"
        assert notes == [f"{path}: {said}" for path in targets]
        assert not any(path.exists() for path in targets)
    arrays = {f"{tmp_path}/y.h5/{name}": values + 1 for name in "ab"}
    assert [note.partition(": ")[0] for note in notes_of(lambda: oc.store(arrays))] == [f"{tmp_path}/y.h5"]


def test_a_group_that_has_its_name_is_complete_and_one_that_is_taken_back_is_not(
    values: oc.Array, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from outcore._run import group_files

    path = tmp_path / "g.zarr"
    oc.store({path: oc.group(x=oc.arange(3))})
    place = group_files._Output.place

    def late(self: Any) -> None:
        place(self)
        raise KeyboardInterrupt

    def later(paths: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(group_files._Output, "place", late)
        (note,) = notes_of(lambda: oc.store({path: oc.group(x=values)}, overwrite=True))
    assert "gone: nothing of it is kept; what had the name before is as it was" in note
    assert oc.open(path)["x"].shape == (3,)
    monkeypatch.setattr(group_files, "tell_groups_above", later)
    assert notes_of(lambda: oc.store({path: oc.group(x=values)}, overwrite=True)) == [f"{path}: complete"]
    assert oc.open(path)["x"].shape == values.shape


@pytest.mark.parametrize(
    ("at", "said"), [(1, "gone: nothing of it is kept; what was"), (0, "gone: objects of it, and")]
)
def test_urls_are_gone_and_objects_may_be_left(
    at: int, said: str, values: oc.Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    from outcore._run import object_files

    def upload(folder: Path, url: str, overwrite: bool) -> None:
        if url.endswith("y.zarr"):
            raise KeyboardInterrupt

    monkeypatch.setattr(object_files, "mounted", lambda path, options: path)
    monkeypatch.setattr(object_files, "check_target", lambda url, overwrite: None)
    monkeypatch.setattr(object_files, "upload", upload)
    if at:
        interrupted_run(monkeypatch, at)
    notes = notes_of(lambda: oc.store({f"s3://bucket/{name}.zarr": values + 1 for name in "xyz"}))
    states = [note.removeprefix(f"s3://bucket/{name}.zarr: ") for name, note in zip("xyz", notes, strict=True)]
    assert states[1].startswith(said)
    assert "with resume=True a call can be gone on with that stores to files" in states[2]
    assert states[0] == ("complete" if not at else states[2])


def test_an_array_that_grows_is_as_it_was_or_complete(
    values: oc.Array, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "y.zarr"
    oc.store({path: values}, chunks={path: (100, 1024)})
    as_it_was, complete = f"{path}: as it was: nothing of the new values is kept", f"{path}: complete"
    calls = (
        lambda: oc.append(path, values + 1, axis=0),
        lambda: oc.store({oc.region(path, np.s_[5:900]): values[:895]}),
    )
    for call in calls:
        with monkeypatch.context() as patch:
            interrupted_run(patch, 1)
            assert notes_of(call) == [as_it_was]
        np.testing.assert_array_equal(oc.open(path)[:5].compute(), values[:5].compute())
    run = oc.Session.run

    def late(self: oc.Session, program: Any, progress: Any = None) -> Any:
        run(self, program, progress)
        del program
        raise KeyboardInterrupt

    monkeypatch.setattr(oc.Session, "run", late)
    for call in calls:
        assert notes_of(call) == [complete]
    monkeypatch.undo()
    assert oc.open(path).shape == (2048, 1024)


def edges(tmp_path: Path) -> list[oc.Array]:
    random = np.random.default_rng(1)
    for name in ("rows", "columns"):
        np.save(tmp_path / f"{name}.npy", random.integers(0, 900, 200_000))
    return [oc.open(tmp_path / f"{name}.npy") for name in ("rows", "columns")]


@pytest.mark.parametrize("resume", [False, True])
def test_ingests_and_graphs_say_what_is_kept(resume: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, columns = edges(tmp_path)
    text = tmp_path / "edges.txt"
    np.savetxt(text, np.stack([rows[:500].compute(), columns[:500].compute()], axis=1), fmt="%d")
    calls: dict[str, Callable[[Path], object]] = {
        "a.ocs": lambda path: oc.sparse.from_entries((rows, columns), path, resume=resume),
        "b.ocs": lambda path: oc.sparse.from_edges(text, path, resume=resume),
        "c.ocg": lambda path: oc.graph.from_arrays(rows, columns, path, resume=resume),
        "d.ocg": lambda path: oc.graph.from_edges(text, path, resume=resume),
    }
    kept = "kept: what was read and sorted of it, for the same call to go on from"
    gone = "gone: nothing of it is kept; with resume=True a call can be gone on with that reads files"
    for name, call in calls.items():
        path = tmp_path / name
        with monkeypatch.context() as patch:
            interrupted_run(patch, 1)
            assert notes_of(lambda call=call, path=path: call(path)) == [f"{path}: {kept if resume else gone}"]
        assert not path.exists()
        call(path)
        assert path.exists()


def test_ingests_in_scratch_have_no_name_to_tell_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, columns = edges(tmp_path)
    interrupted_run(monkeypatch, 1)
    assert notes_of(lambda: oc.sparse.from_entries((rows, columns))) == []


def test_a_run_over_a_graph_is_gone() -> None:
    G = oc.graph.from_arrays(np.arange(8), np.arange(1, 9))

    class Walk(oc.graph.VertexProgram):
        def run(self, v: Any) -> None:
            if self.iteration == 3:
                raise KeyboardInterrupt
            self.activate(v.ids + 1)

    assert notes_of(lambda: G.run(Walk(), [0])) == ["Walk: gone: it ended at iteration 4; the same call begins anew"]
    notes = notes_of(lambda: oc.iterate(lambda x: (G.run(Walk(), [0]), x)[1], oc.ones(3), max_iter=2))
    assert notes == ["iterate: gone: it ended at step 1, and nothing of it is kept"]


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
