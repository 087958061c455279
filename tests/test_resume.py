"""Runs that were killed go on: the same bits, little done twice, no journal believed that is torn or stale."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import KILLS
from support.running import files_below, session, tree_hash
from support.sizes import sized

import outcore as oc
from outcore.errors import ResumeWarning

CHILD = """
import sys, outcore.linalg._whole, outcore as oc
what, out, data, scratch, pool, threads, faults = sys.argv[1:]
options = {"memory_limit": 8 << 30, "pool_limit": int(pool) << 20, "threads": int(threads), "progress": False}
options |= {"faults": faults} if faults else {}
with oc.Session(scratch=[scratch], **options):
    if what == "sort":
        y = oc.sort(oc.open(data + "/x.npy"))
    elif what == "product":
        A = oc.open(data + "/A.npy")
        y = A @ A
    elif what == "eigh":
        outcore.linalg._whole.WHOLE_ROWS = 1500
        y = oc.linalg.eigh(oc.open(data + "/A.npy")).eigenvectors
    else:
        A = oc.open(data + "/A.npy")
        start = oc.ones((A.shape[0], 8))
        loop = oc.iterate(lambda x: A @ x / oc.linalg.vector_norm(x), start, max_iter=24, checkpoint=3)
        y = loop.state
    oc.store({out: y}, resume=what != "loop", overwrite=what == "loop")
"""


def child(
    what: str, out: Path, data: Path, scratch: Path, pool: int, threads: int, faults: str = ""
) -> subprocess.Popen[str]:
    command = [sys.executable, "-W", "error", "-c", CHILD, what, out, data, scratch, pool, threads, faults]
    return subprocess.Popen(
        [str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


# What is killed: some 30 MB each, or 300; and the memory it has, in MiB.
KEYS, SIDE, POOLS = sized((4_000_000, 1500, [44, 60, 90]), (37_500_000, 6_144, [210, 260, 400]))


def inputs(what: str, data: Path, side: int) -> None:
    random_numbers = np.random.default_rng(3)
    if what == "sort":
        np.save(data / "x.npy", random_numbers.integers(-(2**62), 2**62, KEYS))
    else:
        np.save(data / "A.npy", random_numbers.normal(size=(side, side)))


PROGRAMS = [("sort", "y.npy"), ("product", "y.npy"), ("product", "y.zarr"), ("loop", "y.npy")]


@pytest.mark.parametrize(("what", "name"), PROGRAMS)
def test_killed_runs_go_on_to_the_same_bits(what: str, name: str, data: Path, out: Path, scratch: Path) -> None:
    inputs(what, data, SIDE)
    started = time.monotonic()
    whole = child(what, out / name, data, scratch, POOLS[1], 2)
    text, _ = whole.communicate()
    assert whole.returncode == 0, text
    seconds = time.monotonic() - started
    expected = tree_hash(out)
    chance = random.Random(4)
    for _ in range(max(1, KILLS // 10)):
        shutil.rmtree(out)
        out.mkdir()
        kills = 2
        while True:
            run = child(what, out / name, data, scratch, chance.choice(POOLS), chance.choice([1, 2, 3]))
            if kills > 0:
                kills -= 1
                try:
                    text, _ = run.communicate(timeout=chance.uniform(0, seconds))
                except subprocess.TimeoutExpired:
                    run.kill()
                    run.communicate()
                    continue
            else:
                text, _ = run.communicate()
            assert run.returncode == 0, text
            break
        assert tree_hash(out) == expected
        assert files_below(scratch) == []


def square_of(data: Path) -> Any:
    a = np.load(data / "A.npy")
    return a @ a


def store_again(out: Path, data: Path, scratch: Path, expected: Any) -> Any:
    with session(scratch, pool_limit=200 << 20):
        A = oc.open(data / "A.npy")
        outcome = oc.store({str(out / "y.npy"): A @ A}, resume=True)
    np.testing.assert_allclose(np.load(out / "y.npy"), expected, rtol=1e-9, atol=1e-9)
    assert [path.name for path in out.iterdir()] == ["y.npy"]
    return outcome


def unfinished(out: Path, data: Path, scratch: Path) -> Path:
    """The folder of an output whose run was killed when the journal had some tiles."""
    inputs("product", data, sized(2400, 4000))
    folder = out / ".outcore-resume-y.npy"
    run = child("product", out / "y.npy", data, scratch, 200, 2)
    while run.poll() is None:
        if (folder / "journal").exists() and (folder / "journal").stat().st_size > 64:
            run.send_signal(signal.SIGKILL)
            break
        time.sleep(0.001)
    run.communicate()
    assert (folder / "journal").stat().st_size > 64, "killed before the output was published"
    return folder


@pytest.fixture(scope="module")
def hermitian(shared: Path) -> Path:
    """A folder of a matrix of four tiles a side, and of its eigenvectors."""
    a = np.random.default_rng(3).normal(size=(1600, 1600))
    np.save(shared / "A.npy", a + a.T)
    with session(shared), pytest.MonkeyPatch.context() as patch:
        patch.setattr("outcore.linalg._whole.WHOLE_ROWS", 1500)
        oc.store({shared / "expected.npy": oc.linalg.eigh(oc.open(shared / "A.npy")).eigenvectors})
    return shared


@pytest.mark.parametrize("length", [64, 170, 270])
def test_tiles_that_are_updated_together_are_made_together_again(
    length: int, hermitian: Path, out: Path, scratch: Path
) -> None:
    """A task of eigenvectors updates two tiles of them; one may be durable when the run is killed."""
    folder, target = out / ".outcore-resume-y.npy", out / "y.npy"
    # The name comes late, so that no kill does.
    run = child("eigh", target, hermitian, scratch, 40, 2, "delay-rename:1:60000")
    while run.poll() is None:
        if (folder / "journal").exists() and (folder / "journal").stat().st_size > length:
            run.send_signal(signal.SIGKILL)
            break
        time.sleep(0.0005)
    run.communicate()
    assert not target.exists(), "killed before the output was published"
    run = child("eigh", target, hermitian, scratch, 200, 2)
    text, _ = run.communicate()
    assert run.returncode == 0, text
    np.testing.assert_array_equal(np.load(target), np.load(hermitian / "expected.npy"))


def test_a_flipped_journal_or_tile_is_not_believed(data: Path, out: Path, scratch: Path) -> None:
    folder = unfinished(out, data, scratch)
    saved, expected = out.parent / "saved", square_of(data)
    shutil.copytree(folder, saved)
    journal = (saved / "journal").read_bytes()
    for where in (20, 70, len(journal) - 1):
        shutil.rmtree(out)
        out.mkdir()
        shutil.copytree(saved, folder)
        os.chmod(folder, 0o700)
        flipped = bytearray(journal)
        flipped[where] ^= 4
        (folder / "journal").write_bytes(bytes(flipped))
        if where < 64:
            with pytest.warns(ResumeWarning, match="begins anew"):
                store_again(out, data, scratch, expected)
        else:
            store_again(out, data, scratch, expected)
    shutil.rmtree(out)
    out.mkdir()
    shutil.copytree(saved, folder)
    with (folder / "new").open("r+b") as file:
        file.seek(4096 + 1000)
        byte = file.read(1)
        file.seek(4096 + 1000)
        file.write(bytes([byte[0] ^ 1]))
    store_again(out, data, scratch, expected)


def published_and_killed(out: Path, data: Path, scratch: Path) -> None:
    """As if the process had died between giving the output its name and removing what it would have gone on with."""
    inputs("product", data, sized(2000, 3000))
    folder, kept = out / ".outcore-resume-y.npy", out / "kept"
    run = child("product", out / "y.npy", data, scratch, 200, 2)
    while run.poll() is None and not kept.exists():
        with suppress(OSError):
            # The same file, whatever becomes of the folder.
            os.link(folder / "journal", kept)
    text, _ = run.communicate()
    assert run.returncode == 0, text
    folder.mkdir(mode=0o700)
    kept.rename(folder / "journal")


def test_an_output_that_was_published_by_a_killed_process_is_taken_as_it_is(
    data: Path, out: Path, scratch: Path
) -> None:
    published_and_killed(out, data, scratch)
    made = (out / "y.npy").read_bytes()
    outcome = store_again(out, data, scratch, square_of(data))
    assert outcome.bytes_written < 4096
    assert (out / "y.npy").read_bytes() == made


def test_an_output_that_is_not_what_the_journal_says_is_in_the_way(data: Path, out: Path, scratch: Path) -> None:
    published_and_killed(out, data, scratch)
    with open(out / "y.npy", "r+b") as file:
        file.seek(1 << 20)
        file.write(b"other")
    there = (out / "y.npy").read_bytes()
    with pytest.raises(oc.errors.TargetExistsError):
        store_again(out, data, scratch, square_of(data))
    assert (out / "y.npy").read_bytes() == there


DYING = """
import os, signal, sys, outcore as oc
from outcore._session.session import Session
run = Session.run
def dying(*arguments):
    run(*arguments)
    os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[-1] == "dies":
    Session.run = dying
what, out, data, scratch = sys.argv[1:5]
with oc.Session(scratch=[scratch], memory_limit=8 << 30, pool_limit=16 << 20, threads=2, progress=False):
    x = oc.open(data + "/x.npy")
    targets = {out: oc.sort(x) if what == "sort" else x * 2}
    if what == "two":
        targets[out + ".npy"] = x - 1
    print(oc.store(targets, resume=True).bytes_written)
"""


@pytest.mark.parametrize(
    ("what", "name"), [("sort", "y.npy"), ("double", "y.npy"), ("double", "y.zarr"), ("two", "y.zarr")]
)
def test_a_call_that_was_killed_when_all_was_done_is_done(
    what: str, name: str, data: Path, out: Path, scratch: Path
) -> None:
    np.save(data / "x.npy", np.random.default_rng(0).random(1_000_000))
    command = [sys.executable, "-W", "error", "-c", DYING, what, *map(str, (out / name, data, scratch))]
    assert subprocess.run([*command, "dies"], check=False).returncode == -signal.SIGKILL
    made = tree_hash(out)
    again = subprocess.run([*command, "lives"], capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    assert again.stdout == "0\n"
    assert tree_hash(out) == made
    assert [path.name for path in out.iterdir() if path.name.startswith(".")] == []
    assert files_below(scratch) == []


@pytest.mark.parametrize("name", ["y.npy", "y.zarr"])
def test_what_others_wrote_to_or_computed_is_in_the_way(name: str, data: Path, out: Path, scratch: Path) -> None:
    np.save(data / "x.npy", np.arange(100_000.0))
    with session(scratch):
        x = oc.open(data / "x.npy")
        target = out / name
        oc.store({str(target): x + 1}, resume=True)
        assert oc.store({str(target): x + 1}, resume=True).bytes_written == 0
        for other in (x + 2, oc.asarray(np.ones(100_000))):
            with pytest.raises(oc.errors.TargetExistsError):
                oc.store({str(target): other}, resume=True)
        with pytest.raises(oc.errors.TargetExistsError):
            oc.store({str(target): x + 1})
        part = target if target.is_file() else next(path for path in target.rglob("c/*") if path.is_file())
        with part.open("r+b") as file:
            file.seek(part.stat().st_size - 1)
            file.write(b"\1")
        with pytest.raises(oc.errors.TargetExistsError):
            oc.store({str(target): x + 1}, resume=True)


def test_a_changed_input_begins_anew_and_says_so(data: Path, out: Path, scratch: Path) -> None:
    unfinished(out, data, scratch)
    np.save(data / "A.npy", np.load(data / "A.npy") + 1)
    with pytest.warns(ResumeWarning, match="begins anew"):
        store_again(out, data, scratch, square_of(data))


def test_unfinished_work_is_listed_and_removed_on_request(data: Path, out: Path, scratch: Path) -> None:
    from click.testing import CliRunner

    from outcore._command.cli import main

    folder = unfinished(out, data, scratch)
    listed = CliRunner().invoke(main, ["clean", str(out)])
    assert str(out / "y.npy") in listed.output
    assert folder.exists()
    removed = CliRunner().invoke(main, ["clean", str(out), "--resumable"])
    assert removed.exit_code == 0
    assert not folder.exists()
