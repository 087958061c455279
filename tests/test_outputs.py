"""Outputs in a world with others in it: published whole, together and where they were asked for, or not at all."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.killing import wait
from support.running import files_below, load, session

import outcore as oc
from outcore.errors import FormatError, PlanError, StorageError, TargetExistsError, UnsupportedFormatError

ROWS, COLUMNS = 64, 65536  # eight tiles
NOBODY = 65534


def rows() -> Any:
    return oc.reshape(oc.arange(ROWS * COLUMNS, dtype="f8"), (ROWS, COLUMNS))


def part_of(out: Path) -> Path:
    """Where the only output below a folder is being written."""
    (folder,) = (path for path in out.iterdir() if path.name.startswith(".outcore-partial-"))
    return folder / "new"


def disturbed(x: Any, disturb: Callable[[], None], when: Callable[[], bool]) -> Any:
    """`x` block by block, with something happening once when the first blocks have been written."""
    done = []

    def on_block(block: Any) -> Any:
        if not done and when():
            disturb()
            done.append(True)
        return block + 0

    return oc.map_blocks(on_block, x, dtype=x.dtype)


DISTURBANCES: dict[str, Callable[[Path], object]] = {
    "parent renamed": lambda out: out.rename(out.with_name("moved")),
    "parent removed": lambda out: shutil.rmtree(out),
    # At once: a chunk may be written while others are removed, also into the folder that is being removed.
    "chunks removed": lambda out: shutil.rmtree((part_of(out) / "c").rename(out.parent / "gone"), ignore_errors=True),
    "metadata removed": lambda out: (part_of(out) / "zarr.json").unlink(),
    "cut": lambda out: os.truncate(part_of(out), 5000),
}


@pytest.mark.parametrize("what", DISTURBANCES)
def test_what_another_process_disturbs_is_an_error_and_not_an_output(what: str, out: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones((ROWS, COLUMNS)))
    target = out / ("y.npy" if what == "cut" else "y.zarr")

    def some_are_written() -> bool:
        return what == "cut" or any((part_of(out) / "c").glob("*/*"))

    x = disturbed(oc.open(tmp_path / "x.npy"), lambda: DISTURBANCES[what](out), some_are_written)
    with session(threads=1, window=1), pytest.raises(StorageError, match="disturbed") as failed:
        oc.store({target: x})
    assert f"while {target} was written" in str(failed.value)
    assert not target.exists()
    left = tmp_path / "moved" if what == "parent renamed" else out
    assert not left.exists() or files_below(left) == []


@pytest.mark.parametrize("nth", [1, 2, 3])
def test_outputs_are_published_together_or_not_at_all(nth: int, out: Path) -> None:
    old, new = np.zeros(10), np.ones(10)
    np.save(out / "a.npy", old)
    targets = {out / "a.npy": oc.asarray(new), out / "b.zarr": oc.asarray(new), out / "c.npy": oc.asarray(new)}
    with session(faults=f"rename:{nth}"):
        with pytest.raises(StorageError, match="rename into place"):
            oc.store(targets, overwrite=True)
        assert [path.name for path in out.iterdir()] == ["a.npy"]
        assert np.array_equal(load(out / "a.npy"), old)
        oc.store(targets, overwrite=True)
    assert sorted(path.name for path in out.iterdir()) == ["a.npy", "b.zarr", "c.npy"]
    assert all(np.array_equal(load(path), new) for path in out.iterdir())


def test_what_cannot_be_taken_back_is_named_with_the_place_of_the_old_one(out: Path) -> None:
    np.save(out / "a.npy", np.zeros(10))
    targets = {out / "a.npy": oc.ones(10), out / "b.npy": oc.ones(10)}
    with session(faults="renames-from:2"), pytest.raises(StorageError, match="what was there before is") as failed:
        oc.store(targets, overwrite=True)
    (kept,) = out.glob("outcore-replaced-*/*")
    assert str(kept) in str(failed.value)
    assert np.array_equal(np.load(kept), np.zeros(10))
    assert np.array_equal(load(out / "a.npy"), np.ones(10))
    assert not (out / "b.npy").exists()


PUBLISHING = """
import sys
import outcore as oc
with oc.Session(threads=1, progress=False, memory_limit="8GiB", faults="delay-rename:2:100000"):
    oc.store({sys.argv[1]: oc.ones(10), sys.argv[2]: oc.ones(10)}, overwrite=True)
"""


@pytest.mark.parametrize("suffix", ["npy", "zarr"])
def test_killed_between_two_names_each_is_the_old_or_the_new(suffix: str, out: Path) -> None:
    first, second = out / f"a.{suffix}", out / f"b.{suffix}"
    oc.store({first: oc.zeros(10), second: oc.zeros(10)})
    child = subprocess.Popen([sys.executable, "-c", PUBLISHING, first, second])
    while load(first)[0] == 0:
        assert not wait(child, 0.01), "the child ended before it was killed"
    child.kill()
    child.wait()
    assert (load(first)[0], load(second)[0]) == (1, 0)
    assert len(list(out.iterdir())) == 4
    oc.store({out / "c.npy": oc.ones(1)})
    assert sorted(path.name for path in out.iterdir()) == [first.name, second.name, "c.npy"]
    assert (load(first)[0], load(second)[0]) == (1, 0)


STORING = """
import sys
import outcore as oc
name, scratch, count = sys.argv[1:]
for number in range(int(count)):
    # Each session makes scratch of its own and cleans that of the dead.
    with oc.Session(threads=1, progress=False, scratch=[scratch], memory_limit="8GiB"):
        oc.store({name: oc.full(16, number)}, overwrite=True)
"""


def test_many_processes_store_into_one_folder(out: Path) -> None:
    count, stores = 4, 60
    names = [out / f"own{number}.npy" for number in range(count)]
    children = [
        subprocess.Popen([sys.executable, "-c", STORING, name, out, str(stores)], stderr=subprocess.PIPE, text=True)
        for name in names
    ]
    said = [child.communicate()[1] for child in children]
    assert said == [""] * count
    assert sorted(out.iterdir()) == names
    assert all(load(name)[0] == stores - 1 for name in names)


MANY_FILES = """
import resource, sys
import numpy as np
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
import outcore as oc
with oc.Session(threads=1, progress=False, memory_limit="8GiB"):
    arrays = [oc.open(f"{sys.argv[1]}/{number}.npy") for number in range(200)]
    print(sum(oc.compute(*(array.sum() for array in arrays))))
"""


def test_more_files_are_opened_than_there_are_descriptors(data: Path) -> None:
    for number in range(200):
        np.save(data / f"{number}.npy", np.full(1000, number))
    run = subprocess.run([sys.executable, "-c", MANY_FILES, data], capture_output=True, text=True, check=False)
    assert (run.stdout.strip(), run.stderr) == (str(1000 * sum(range(200))), "")


@pytest.mark.parametrize("direct_io", [True, False])
def test_opening_counts_in_the_session_in_use(direct_io: bool, data: Path) -> None:
    np.save(data / "x.npy", np.ones(1000))
    with session(direct_io=direct_io) as current:
        x = oc.open(data / "x.npy")
        counters = current.counters()
        assert (counters["metadata_bytes_read"], counters["bytes_read"]) == (4096, 0)
        assert oc.compute(x.sum()) == 1000


def test_opening_meets_the_faults_of_the_session_in_use(data: Path) -> None:
    np.save(data / "x.npy", np.ones(1000))
    with session(faults="read:1"):
        with pytest.raises(StorageError, match="Input/output error"):
            oc.open(data / "x.npy")
        assert oc.compute(oc.open(data / "x.npy").sum()) == 1000


def test_what_is_neither_file_nor_directory_is_refused_at_once(data: Path) -> None:
    os.mkfifo(data / "x.npy")
    with pytest.raises(FormatError, match="neither a file nor a directory"):
        oc.open(data / "x.npy")
    oc.store({data / "x.zarr": oc.ones(10)})
    chunk = data / "x.zarr" / "c" / "0"
    chunk.unlink()
    os.mkfifo(chunk)
    with pytest.raises(oc.errors.OutcoreError):
        oc.compute(oc.open(data / "x.zarr").sum())
    (data / "x.zarr" / "zarr.json").unlink()
    os.mkfifo(data / "x.zarr" / "zarr.json")
    with pytest.raises(FormatError):
        oc.open(data / "x.zarr")


def test_a_slash_behind_a_target_names_a_directory(out: Path) -> None:
    oc.store({f"{out}/x.zarr/": oc.ones(3)})
    assert np.array_equal(load(out / "x.zarr"), np.ones(3))
    with pytest.raises(UnsupportedFormatError, match="names a directory"):
        oc.explain({f"{out}/x.npy/": oc.ones(3)})


@pytest.mark.parametrize("suffix", ["npy", "zarr"])
def test_overwriting_keeps_permissions_and_links(suffix: str, out: Path, data: Path) -> None:
    real, link = data / f"real.{suffix}", out / f"x.{suffix}"
    oc.store({real: oc.zeros(3)})
    real.chmod(0o750)
    link.symlink_to(os.path.relpath(real, out))
    with pytest.raises(TargetExistsError):
        oc.store({link: oc.ones(3)})
    oc.store({link: oc.ones(3)}, overwrite=True)
    assert link.is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o750
    assert np.array_equal(load(real), np.ones(3))
    assert [path.name for path in (*out.iterdir(), *data.iterdir())] == [link.name, real.name]


def test_every_file_of_an_array_keeps_its_permissions(out: Path) -> None:
    path = out / "x.zarr"
    for overwrite in (False, True):
        oc.store({path: oc.ones((4, 4))}, chunks={path: (2, 2)}, overwrite=overwrite)
        inside = [path, *path.rglob("*")]
        if overwrite:
            modes = {stat.S_IMODE(each.stat().st_mode) for each in inside}
            assert modes == {0o770, 0o660}
        for each in inside:
            each.chmod(0o770 if each.is_dir() else 0o660)


def test_a_link_to_nothing_yet_is_followed(out: Path, data: Path) -> None:
    (out / "x.npy").symlink_to(data / "real.npy")
    oc.store({out / "x.npy": oc.ones(3)})
    assert (out / "x.npy").is_symlink()
    assert np.array_equal(np.load(data / "real.npy"), np.ones(3))


def test_two_spellings_of_one_target_are_refused(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(out)
    (out / "here").symlink_to(out)
    (out / "b.npy").symlink_to("a.npy")
    for other in ("./a.npy", "here/a.npy", str(out / "a.npy"), "here/../out/a.npy", "b.npy"):
        with pytest.raises(PlanError, match="one place"):
            oc.explain({"a.npy": oc.ones(3), other: oc.zeros(3)})


@pytest.mark.parametrize("suffix", [".npy", ".zarr"])
def test_names_may_be_as_long_as_the_file_system_takes_them(suffix: str, out: Path) -> None:
    longest = "ü" * 60 + "x" * (255 - 120 - len(suffix)) + suffix
    for value in (0, 1):
        oc.store({out / longest: oc.full(3, value)}, overwrite=True)
        assert load(out / longest)[0] == value
    with pytest.raises(StorageError, match="too long"):
        oc.explain({out / f"x{longest}": oc.ones(3)})


def test_names_need_not_be_text(out: Path) -> None:
    for suffix in (b"npy", b"zarr"):
        path = os.fsencode(out) + b"/\xff\xfe." + suffix
        oc.store({path: rows()}, chunks={path: (8, 4096)} if suffix == b"zarr" else None)
        assert oc.compute(oc.open(path)[-1, -1]) == ROWS * COLUMNS - 1
        with pytest.raises(TargetExistsError):
            oc.store({os.fsdecode(path): rows()})


DENIED = f"""
import os, sys
import outcore as oc
what, path = sys.argv[1:]
if os.getuid() == 0:
    os.setgroups([])
    os.setgid({NOBODY})
    os.setuid({NOBODY})
os.umask(0)
try:
    with oc.Session(threads=1, progress=False, memory_limit="8GiB", scratch=["/nowhere"]):
        if what == "open":
            oc.open(path)
        else:
            oc.explain({{path: oc.ones(3)}}, overwrite=True)
except oc.errors.OutcoreError as error:
    print(error.code, error)
"""


def denied(what: str, path: Path) -> str:
    """What a user without rights is told."""
    home = os.environ | {"HOME": "/nowhere"}
    run = subprocess.run(
        [sys.executable, "-c", DENIED, what, path], capture_output=True, text=True, check=False, env=home
    )
    assert run.stderr == ""
    return run.stdout


@pytest.fixture
def public() -> Any:
    """A folder that any user reaches."""
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def test_denied_access_has_a_code_of_its_own(public: Path) -> None:
    np.save(public / "x.npy", np.ones(3))
    (public / "x.npy").chmod(0)
    try:
        assert denied("open", public / "x.npy").startswith("permission ")
        (public / "x.npy").chmod(0o644)
        assert denied("open", public / "x.npy") == ""
        assert denied("open", public / "y.npy").startswith("missing ")
    finally:
        (public / "x.npy").chmod(0o644)


@pytest.mark.parametrize("suffix", ["npy", "zarr"])
def test_what_could_not_be_replaced_in_the_end_is_refused_before_the_run(suffix: str, public: Path) -> None:
    target, link = public / f"x.{suffix}", public / "links" / f"x.{suffix}"
    oc.store({target: oc.zeros(3)})
    link.parent.mkdir()
    link.parent.chmod(0o777)
    link.symlink_to(target)
    # The folder of what the link leads to is another's; then it is a common one, where each moves only what is theirs.
    public.chmod(0o755)
    assert denied("store", link).startswith("permission ")
    public.chmod(0o1777)
    if os.getuid() == 0:
        assert denied("store", target).startswith("permission ")
        os.chown(target, NOBODY, NOBODY)
    assert denied("store", target) == ""
    if suffix == "zarr":
        target.chmod(0o555)
        assert denied("store", target).startswith("permission ")
        target.chmod(0o755)
