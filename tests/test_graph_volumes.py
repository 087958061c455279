"""A disk of a volume goes away under graphs and cached files: it is named, nothing hangs, nothing is half there."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.running import assert_nothing_but_kept, session
from support.volumes import Volume, assert_whole, invoke, made

import outcore as oc
from outcore import _core
from outcore.errors import StorageError
from outcore.graph import Graph, VertexProgram, state

N, EDGES = 1 << 15, 1 << 20
# With less, some runs are refused; with so much, no graph stays in memory whole.
POOL = 80 << 20


@pytest.fixture(scope="module")
def ends() -> Any:
    with session():
        return [np.asarray(part.compute()) for part in oc.sparse.rmat_edges(N, EDGES, seed=1)]


@pytest.fixture
def volume(tmp_path: Path) -> Volume:
    return made(tmp_path, 1, 1, 1)


class Disk:
    """One of a volume, to be taken away and brought back."""

    def __init__(self, path: Path) -> None:
        self.path, self.away = path, path.parent / "away" / "gone"

    def begun(self) -> bool:
        """Whether there is a part of a file on it."""
        return any((self.path / "parts").iterdir())

    def take(self) -> None:
        """At once, and to where nothing looks for it: with another name beside this one it would be found."""
        self.away.parent.mkdir()
        self.path.rename(self.away)

    def bring(self) -> None:
        self.away.rename(self.path)
        self.away.parent.rmdir()


@contextmanager
def taken_when(begun: Callable[[], bool], disk: Disk) -> Iterator[None]:
    """Takes the disk away at the moment when something has begun."""
    over = threading.Event()

    def watch() -> None:
        while not begun() and not over.is_set():
            pass
        disk.take()

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def until_refused(call: Callable[[int], object]) -> tuple[int, StorageError]:
    """How often it goes well, and what is raised then: what is open already may be read to its end."""
    for number in range(1000):
        try:
            call(number)
        except StorageError as error:
            return number, error
    raise AssertionError("it goes well without a disk")


def check_error(error: StorageError, disk: Disk, volume: Volume) -> None:
    assert f"{disk.path}: this directory of the volume is gone" in str(error)
    assert "\n" not in str(error)
    assert error.details["path"].startswith(str(volume.home))
    assert error.details["offset"] >= 0


@pytest.mark.parametrize("scratch", ["beside", "within"])
def test_while_graphs_are_made(scratch: str, volume: Volume, tmp_path: Path, ends: Any) -> None:
    disk = Disk(volume.disks[1])
    place = volume.home / "scratch" if scratch == "within" else tmp_path / "scratch"

    def make(number: int) -> Graph:
        return oc.graph.from_arrays(*ends, volume.home / f"{number}.ocg", vertices=N, side=2048)

    with session(place, pool_limit=POOL) as current:
        with taken_when(disk.begun, disk):
            number, error = until_refused(make)
        assert disk.path.name in str(error)
        assert "is gone" in str(error)
        assert_nothing_but_kept(current)
        assert not (volume.home / f"{number}.ocg").exists()
        with pytest.raises(StorageError, match="is gone"):
            make(number)
        disk.bring()
        plain = oc.graph.from_arrays(*ends, tmp_path / "plain.ocg", vertices=N)
        whole = [oc.graph.open(volume.home / f"{earlier}.ocg") for earlier in range(number)]
        for found in (*whole, make(number)):
            assert np.array_equal(oc.graph.core_number(found), oc.graph.core_number(plain))
    invoke("volume", "check", volume.home, "--repair")
    assert_whole(volume)


class Counting(VertexProgram):
    """Goes around several times; `takes` is called in the midst of lists."""

    count = state("int64")

    def __init__(self, takes: Callable[[], None]) -> None:
        self.takes = takes

    def run(self, v: Any) -> None:
        self.request(v.ids)
        self.activate(v.ids)

    def on_edges(self, e: Any) -> None:
        self.takes()
        self.count[e.vertices] += np.diff(e.begins)


RUNS: dict[str, Callable[[Graph], Any]] = {
    "bfs": lambda G: oc.graph.bfs(G, 0),
    "pagerank": lambda G: oc.graph.pagerank(G, tol=0, iterations=10),
    "core_number": oc.graph.core_number,
}


@pytest.fixture
def stored(volume: Volume, tmp_path: Path, ends: Any) -> Path:
    with session(tmp_path / "scratch"):
        return oc.graph.from_arrays(*ends, volume.home / "g.ocg", vertices=N, side=2048).path


@pytest.mark.parametrize("name", RUNS)
def test_while_a_graph_is_searched(name: str, volume: Volume, stored: Path, tmp_path: Path) -> None:
    disk = Disk(volume.disks[1])
    with session(tmp_path / "scratch"):
        expected = RUNS[name](oc.graph.open(stored)).tobytes()
    with session(tmp_path / "scratch", pool_limit=POOL) as current:

        def run(_: int) -> None:
            current.clear()
            assert RUNS[name](oc.graph.open(stored)).tobytes() == expected

        with taken_when(lambda: current.counters()["bytes_read"] > 0, disk):
            _, error = until_refused(run)
        check_error(error, disk, volume)
        assert_nothing_but_kept(current)
        with pytest.raises(StorageError, match="is gone"):
            run(0)
        disk.bring()
        run(0)
    assert_whole(volume)


def test_while_a_program_has_lists(volume: Volume, stored: Path, tmp_path: Path) -> None:
    disk = Disk(volume.disks[1])

    def take() -> None:
        if disk.path.exists():
            disk.take()

    with session(tmp_path / "scratch", pool_limit=160 << 20) as current:
        degrees = oc.graph.open(stored).degrees()

        def run(takes: Callable[[], None]) -> None:
            current.clear()
            assert np.array_equal(oc.graph.open(stored).run(Counting(takes), iterations=3).count, 3 * degrees)

        _, error = until_refused(lambda _: run(take))
        check_error(error, disk, volume)
        assert_nothing_but_kept(current)
        disk.bring()
        run(lambda: None)
    assert_whole(volume)


@pytest.mark.parametrize("mode", ["r", "r+"])
def test_while_a_cached_file_is_read_and_written(mode: Any, volume: Volume, tmp_path: Path) -> None:
    """What is written is told to be lost, by `flush` at the latest, wherever its bytes went."""
    disk, count = Disk(volume.disks[1]), 1 << 20
    np.arange(count).tofile(tmp_path / "n.bin")
    _core.replace(str(tmp_path / "n.bin"), str(volume.home / "n.bin"))
    with session(tmp_path / "scratch") as current:

        def touch(number: int) -> None:
            file = oc.io.cached(volume.home / "n.bin", mode=mode, memory="1.5MiB")
            places = np.random.default_rng(number).integers(0, count, 2000)
            assert np.array_equal(file.read_at(8 * places, dtype="int64").ravel(), places)
            if mode == "r+":
                file.write_at(8 * places, places)  # the same as before
                file.flush()

        with taken_when(lambda: current.counters()["bytes_read"] > 0, disk):
            _, error = until_refused(touch)
        check_error(error, disk, volume)
        disk.bring()
        touch(0)
        found = oc.io.cached(volume.home / "n.bin").read_at(0, count, "int64")
        assert np.array_equal(found[0], np.arange(count))
    assert_whole(volume)
