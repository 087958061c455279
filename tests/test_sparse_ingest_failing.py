"""Ingest that is killed, confined or met by a failing disk: the same bytes in the end, and nothing false before."""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks import cgroup
from conftest import KILLS
from support.killing import invoke_clean
from support.running import assert_nothing_but_kept, files_below, session, tree_hash
from support.sizes import Sweep, alternating, sized

import outcore as oc
from outcore._core import TextLines
from outcore.errors import OutcoreError, StorageError, TargetExistsError
from outcore.sparse._spool import Work

ROOT = Path(__file__).parent.parent
VERTICES = 1 << 19
EDGES = sized(1_600_000, 12_000_000)
NEEDS_CGROUP = "no memory cgroup can be made here (it needs root), and no other limit counts resident memory"


def pairs(count: int, seed: int = 11) -> Any:
    return np.random.default_rng(seed).integers(0, VERTICES, (count, 2)).astype(np.uint32)


def write_lines(path: Path, edges: Any) -> None:
    """Numbers of nine digits, made as columns of characters."""
    powers = 10 ** np.arange(8, -1, -1)
    with path.open("wb") as file:
        for part in np.array_split(edges, max(1, len(edges) // 1_000_000)):
            text = np.full((len(part), 2, 10), ord(" "), np.uint8)
            text[:, :, :9] = part[:, :, None] // powers % 10 + ord("0")
            text[:, 1, 9] = ord("\n")
            text.tofile(file)


def write_source(kind: str, folder: Path, edges: Any) -> Path:
    path = folder / f"e.{kind}"
    edges.tofile(path) if kind == "bin" else write_lines(path, edges)
    return path


# -- killed ---------------------------------------------------------------------------------------------------------

CHILD = "import json, sys; from support.children import ingest; ingest(*sys.argv[1:4], *map(json.loads, sys.argv[4:]))"


def start(source: Path, target: Path, scratch: Path, pool: int, told: dict[str, Any]) -> subprocess.Popen[bytes]:
    """A child that has said that it begins."""
    given = [source, target, scratch, json.dumps({"pool_limit": pool}), json.dumps(told)]
    paths = os.pathsep.join([str(ROOT), str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")])
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, *map(str, given)],
        env=os.environ | {"PYTHONPATH": paths},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        bufsize=0,  # a line read ahead of the others would take some of these along
    )
    assert child.stdout is not None
    said = child.stdout.readline()
    assert said == b"ready\n", said + child.communicate()[0]
    return child


@pytest.mark.parametrize(("kind", "transposed"), alternating(["bin", "txt"], [False, True]))
def test_killed_until_it_ends(kind: str, transposed: bool, data: Path, out: Path, scratch: Path) -> None:
    source = write_source(kind, data, pairs(EDGES))
    told: dict[str, Any] = {"resume": True, "symmetrize": transposed}
    names = ["a.ocs"] + (["t.ocs"] if transposed else [])
    if transposed:
        told["transpose"] = str(out / "t.ocs")
    inputs = tree_hash(data)
    pools = [22 << 20, 26 << 20, 96 << 20]
    whole = start(source, out / "a.ocs", scratch, pools[0], told)
    began = time.monotonic()
    text = whole.communicate()[0].decode()
    seconds = time.monotonic() - began
    assert whole.returncode == 0, text
    expected = tree_hash(out)
    assert sorted(expected) == names
    chance = random.Random(f"{kind} {transposed}")
    killed = 0
    while killed < max(2, KILLS // 10):
        shutil.rmtree(out)
        out.mkdir()
        while True:
            child = start(source, out / "a.ocs", scratch, chance.choice(pools), told)
            try:
                text = child.communicate(timeout=chance.uniform(0, seconds / 2))[0].decode()
            except subprocess.TimeoutExpired:
                child.kill()
                child.communicate()
                killed += 1
                assert tree_hash(data) == inputs
                named = {name: tree_hash(out)[name] for name in names if (out / name).exists()}
                assert named.items() <= expected.items(), "something false has a final name"
                continue
            if killed and "TargetExistsError" in text:
                # Killed in its very last moment: it was done.
                invoke_clean(scratch)
            else:
                assert child.returncode == 0, text
            break
        assert tree_hash(out) == expected
        assert files_below(scratch) == []


class _Killed(BaseException):
    pass


@pytest.mark.parametrize("step", ["rows-parts", "rows-cuts", "rows-began", "rows-written"])
def test_gone_on_with_from_every_note(
    step: str, data: Path, out: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write_source("bin", data, pairs(20_000))
    with session(scratch):
        oc.sparse.from_binary(source, out / "whole.ocs")
        note = Work.note

        def die(work: Work, done: str, content: Any) -> None:
            if done == step:
                raise _Killed
            note(work, done, content)

        monkeypatch.setattr(Work, "note", die)
        with pytest.raises(_Killed):
            oc.sparse.from_binary(source, out / "a.ocs", resume=True)
        monkeypatch.undo()
        assert (out / "a.ocs").exists() == (step == "rows-written")
        oc.sparse.from_binary(source, out / "a.ocs", resume=True)
    assert (out / "a.ocs").read_bytes() == (out / "whole.ocs").read_bytes()
    assert files_below(out) == ["a.ocs", "whole.ocs"]
    assert files_below(scratch) == []


@pytest.mark.parametrize("kind", ["txt", "mtx"])
def test_text_is_not_read_again_from_its_beginning(
    kind: str, data: Path, out: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("outcore.sparse._spool._CHUNKS_NOTED", 2)
    monkeypatch.setattr("outcore.sparse._text._BLOCK", 1 << 18)
    edges = pairs(100_000) + 1
    source = data / f"e.{kind}"
    write_lines(source, edges)
    if kind == "mtx":
        head = f"%%MatrixMarket matrix coordinate pattern general\n{VERTICES} {VERTICES} {len(edges)}\n"
        source.write_bytes(head.encode() + source.read_bytes())
    store: Any = oc.sparse.from_edges if kind == "txt" else oc.sparse.from_mtx
    parsed = []

    class Dying:
        """Lines that are read by what reads lines, until the process dies."""

        def __init__(self, *given: Any, **told: Any) -> None:
            self._lines = TextLines(*given, **told)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._lines, name)

        def parse(self, current: Any, block: bytes) -> Any:
            parsed.append(len(block))
            # Short ones are looked at to foresee what the text will take.
            if len(block) > 200_000 and sum(size > 200_000 for size in parsed) == 6:
                raise _Killed
            return self._lines.parse(current, block)

    with session(scratch):
        store(source, out / "whole.ocs")
        monkeypatch.setattr("outcore._core.TextLines", Dying)
        with pytest.raises(_Killed):
            store(source, out / "a.ocs", resume=True)
        store(source, out / "a.ocs", resume=True)
    # Six of seven long blocks and a short one; then the first again, which tells what a line is, and those behind four.
    assert sum(size > 200_000 for size in parsed) == 6 + 1 + 3
    assert (out / "a.ocs").read_bytes() == (out / "whole.ocs").read_bytes()
    assert files_below(scratch) == []


def test_another_file_that_came_meanwhile_is_in_the_way(
    data: Path, out: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write_source("bin", data, pairs(20_000))

    def die(*_: Any) -> None:
        raise _Killed

    with session(scratch):
        monkeypatch.setattr("outcore._core.assemble_sparse", die)
        with pytest.raises(_Killed):
            oc.sparse.from_binary(source, out / "a.ocs", resume=True)
        monkeypatch.undo()
        (out / "a.ocs").write_bytes(b"another's")
        with pytest.raises(TargetExistsError, match=r"a\.ocs: is there already"):
            oc.sparse.from_binary(source, out / "a.ocs", resume=True)
        assert (out / "a.ocs").read_bytes() == b"another's"
        made = oc.sparse.from_binary(source, out / "a.ocs", resume=True, overwrite=True)
        assert made.nnz > 19_000


def test_a_file_in_the_way_is_told_of_before_anything_is_read(data: Path, out: Path, scratch: Path) -> None:
    (data / "e.txt").write_text("this is not even read\n")
    (out / "t.ocs").write_bytes(b"there")
    with session(scratch), pytest.raises(TargetExistsError, match=r"t\.ocs"):
        oc.sparse.from_edges(data / "e.txt", out / "a.ocs", transpose=out / "t.ocs")
    assert files_below(scratch) == []


# -- confined -------------------------------------------------------------------------------------------------------


def distinct(count: int, bits: int) -> Any:
    """Different places of a square matrix, scattered by multiplication with an odd number."""
    numbers = np.arange(count, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) % np.uint64(1 << 2 * bits)
    return np.stack([numbers >> np.uint64(bits), numbers % np.uint64(1 << bits)], axis=1).astype(np.uint32)


LONG = [("bin", *sized((44 << 20, 112 << 20), (64 << 20, 128 << 20))), ("txt", 18 << 20, 112 << 20)]


@pytest.mark.skipif(not cgroup.is_real(), reason=NEEDS_CGROUP)
@pytest.mark.parametrize(("kind", "count", "limit"), LONG)
def test_several_times_the_limit(kind: str, count: int, limit: int, data: Path, out: Path, scratch: Path) -> None:
    edges = distinct(count, 20)
    counts = np.bincount(edges[:, 0], minlength=1 << 20)
    source = write_source(kind, data, edges)
    del edges
    assert source.stat().st_size > 2.9 * limit
    shape = [1 << 20, 1 << 20]
    given = {"source": str(source), "target": str(out / "a.ocs"), "scratch": str(scratch), "told": {"shape": shape}}
    outcome = cgroup.run_limited("support.children:ingest", given | {"options": {"memory_limit": limit}}, limit, 200)
    assert outcome.reason is None, outcome.stderr
    assert outcome.oom_kills == 0
    assert outcome.peak_rss_bytes is not None
    assert outcome.peak_rss_bytes <= limit
    assert outcome.value["entries"] == count
    with session(scratch):
        made = oc.sparse.open(out / "a.ocs")
        assert np.array_equal((made @ np.ones(1 << 20)).compute(), counts)
    assert files_below(scratch) == []


# -- failing --------------------------------------------------------------------------------------------------------

FAULTS = {
    "read:{n}": ("io", "Input/output error"),
    "write:{n}": ("io", "Input/output error"),
    "write:{n}:enospc": ("space", "No space left on device"),
    "torn-write:{n}": ("io", "Input/output error"),
    "sync:{n}": ("io", "Input/output error"),
    "rename:{n}": ("io", "Input/output error"),
    "reserve:{n}": ("memory", ""),
}
CALLS_MAX, QUIET = 300, 4


# A journal whose own write fails is begun anew.
@pytest.mark.filterwarnings("ignore::outcore.errors.ResumeWarning")
@pytest.mark.parametrize(("fault", "resume"), alternating(list(FAULTS), [False, True]))
def test_the_nth_call_of_an_ingest_fails_for_every_n(
    fault: str, resume: bool, data: Path, out: Path, scratch: Path
) -> None:
    source = write_source("bin", data, pairs(1_000_000))
    target, options = out / "a.ocs", {"shape": (VERTICES, VERTICES), "resume": resume}
    with session(scratch):
        oc.sparse.from_binary(source, target, **options)
    expected = tree_hash(out)
    # Some are not missed: of leftovers that are looked for, of headers that were there a moment ago.
    sweep = Sweep(fault, CALLS_MAX, QUIET)
    for n in sweep:
        shutil.rmtree(out)
        out.mkdir()
        with session(scratch, pool_limit=14 << 20, faults=fault.format(n=n)) as current:
            error = refusal(lambda: oc.sparse.from_binary(source, target, **options))
            if error is not None:
                sweep.failed()
                check_error(error, *FAULTS[fault], [source, out, scratch])
                assert_nothing_but_kept(current)
                there = tree_hash(out)
                # All that is left to do to a file with its name is to open it.
                assert there in ([{}, expected] if fault.startswith("read") else [{}])
                if not there:
                    oc.sparse.from_binary(source, target, **options)
                oc.sparse.open(target)
        assert tree_hash(out) == expected
        assert files_below(scratch) == []


def refusal(call: Callable[[], Any]) -> OutcoreError | None:
    try:
        call()
    except OutcoreError as error:
        return error
    return None


def check_error(error: OutcoreError, code: str, cause: str, paths: list[Path]) -> None:
    assert error.code == code, str(error)
    assert cause in str(error)
    assert "\n" not in str(error)
    if code == "io":
        assert any(str(path) in str(error) for path in paths), str(error)


@contextmanager
def files_at_most(limit: int) -> Iterator[None]:
    """As if the disk were full for this process: its writes beyond so many bytes of a file fail."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_entries_that_cannot_be_set_aside(out: Path, scratch: Path) -> None:
    chunks = [tuple(pairs(50_000, seed).T) for seed in range(4)]
    with session(scratch):
        with files_at_most(300_000), pytest.raises(StorageError, match="cannot write: File too large") as failed:
            oc.sparse.from_entries(iter(chunks), out / "a.ocs", shape=(VERTICES, VERTICES))
        assert str(scratch) in str(failed.value.filename)
        assert files_below(out) == []
        made = oc.sparse.from_entries(iter(chunks), out / "a.ocs", shape=(VERTICES, VERTICES))
        assert made.nnz > 199_000
    assert files_below(scratch) == []


def test_text_that_cannot_be_read(out: Path, scratch: Path, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_lines(data / "e.txt", pairs(100_000))

    def failing(path: Path, file: Any) -> Iterator[bytes]:
        yield file.read(20 * 1000)
        raise OSError(5, os.strerror(5))

    with session(scratch):
        monkeypatch.setattr("outcore.sparse._readers.blocks_of", failing)
        for resume in (False, True):
            with pytest.raises(StorageError, match=r"e\.txt: cannot read: Input/output error"):
                oc.sparse.from_edges(data / "e.txt", out / "a.ocs", resume=resume)
            assert files_below(out) == []
        monkeypatch.undo()
        assert oc.sparse.from_edges(data / "e.txt", out / "a.ocs", resume=True).nnz > 99_000
    assert files_below(scratch) == []


class Halted:
    """A folder whose process dies when it begins to be removed."""

    def remove(self) -> None:
        pass


def test_killed_while_its_work_is_removed_it_begins_anew(tmp_path: Path, out: Path) -> None:
    with session(tmp_path):
        with Work("a call", out / "a.ocs") as work:
            work.note("sorted", ["rows-sorted-0.npy"])
            work._held = Halted()
        with Work("a call", out / "a.ocs") as again:
            assert again.folder == work.folder
            assert again.noted("sorted") is None
    assert files_below(tmp_path) == []
