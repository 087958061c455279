"""kill -9 at random moments of every call with `resume` or `checkpoint`: it goes on to the same bits."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from support import killable, volumes
from support.killable import CALLS, NOT_KILLED, Server
from support.running import session
from support.sizes import sized, spread

import outcore as oc
from outcore.errors import StorageError

KILLS = sized(2, 100)
KILLS_ON_VOLUMES = sized(2, 100)
NAMES = list(CALLS)


@pytest.fixture(scope="module")
def server(shared: Path) -> Iterator[Server]:
    killable.save(shared)
    made = Server(shared)
    yield made
    made.close()


def test_every_call_that_can_be_gone_on_with_is_killed() -> None:
    killed = {name.partition(",")[0] for name in CALLS}
    assert not killed & set(NOT_KILLED)
    assert killed | set(NOT_KILLED) == killable.public_names()


def check(name: str, server: Server, home: Path, tmp_path: Path, kills: int) -> None:
    said = server.kill(name, home, tmp_path / "beside", kills)
    assert "error" not in said, said["error"]
    assert said["killed"] >= kills
    assert said["false"] == [], "something false has a final name"
    assert said["other"] == [], "it came to other bits"
    assert said["left"] == []


@pytest.mark.parametrize("name", NAMES)
def test_killed_in_a_folder_it_goes_on_to_the_same_bits(name: str, server: Server, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    check(name, server, tmp_path / "home", tmp_path, KILLS)


@pytest.mark.parametrize("name", spread(NAMES, 7))
def test_killed_on_a_volume_it_goes_on_to_the_same_bits(name: str, server: Server, tmp_path: Path) -> None:
    volume = volumes.made(tmp_path, 1, 1)
    check(name, server, volume.home, tmp_path, KILLS_ON_VOLUMES)
    volumes.invoke("volume", "check", volume.home, "--repair")
    volumes.assert_whole(volume)


# -- faults that these kills found -------------------------------------------------------------------------------------


@pytest.mark.parametrize("moment", [6, 7])
def test_an_array_that_is_durable_stays_while_another_is_computed(moment: int, out: Path, scratch: Path) -> None:
    np.save(out / "x.npy", np.arange(1.0, 60_001.0))

    def store() -> None:
        x = oc.open(out / "x.npy")
        oc.store({out / "a.npy": x * 2, out / "b.npy": x * 3}, resume=True)

    with session(scratch, threads=1, faults=f"write:{moment}"), pytest.raises(StorageError):
        store()
    with session(scratch, threads=1):
        store()
    np.testing.assert_array_equal(np.load(out / "a.npy"), np.arange(1.0, 60_001.0) * 2)
    np.testing.assert_array_equal(np.load(out / "b.npy"), np.arange(1.0, 60_001.0) * 3)


def test_forks_of_a_process_write_parts_of_their_own(tmp_path: Path) -> None:
    volume = volumes.made(tmp_path, 1, 1)

    def store(number: int) -> None:
        with session():
            oc.store({volume.home / f"{number}.npy": oc.ones((700, 4)) * number})

    for number in (1, 2):
        process = multiprocessing.get_context("fork").Process(target=store, args=(number,))
        process.start()
        process.join()
        assert process.exitcode == 0
    assert [oc.open(volume.home / f"{number}.npy")[0, 0].item() for number in (1, 2)] == [1.0, 2.0]


@pytest.mark.parametrize("kind", ["memory", "function", "sorted"])
def test_work_of_a_process_alone_is_lost_with_it(kind: str, out: Path, scratch: Path) -> None:
    """Its arrays, or the functions they are made by, are known to no other process."""
    code = f"""
import numpy as np, outcore as oc
x = np.ones((300, 300))
y = {{
    "memory": lambda: oc.asarray(x) * 2,
    "function": lambda: oc.map_blocks(lambda block: block + 1, oc.ones((300, 300))),
    "sorted": lambda: oc.sort(oc.asarray(np.arange(1_000_000.0)[::-1])),
}}[{kind!r}]()
options = {{"pool_limit": 14 << 20}} if {kind!r} == "sorted" else {{}}
with oc.Session(memory_limit=8 << 30, progress=False, scratch=[{str(scratch)!r}], faults="rename:1", **options):
    try:
        oc.store({{{str(out / "y.npy")!r}: y}}, resume=True)
    except oc.errors.StorageError:
        import pathlib
        from outcore import _core
        print(sum(len(_core.unfinished(place)) for place in ({str(out)!r}, {str(scratch)!r})))
        for place in ({str(out)!r}, {str(scratch)!r}):
            assert _core.remove_unfinished(place, True) == (0, 0), "this process can go on"
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert int(ran.stdout) >= 1
    for place in (out, scratch):
        assert volumes.invoke("clean", place)[str(place)]["resumable"] == []
        assert [path.name for path in place.iterdir() if "resume" in path.name] == []
