"""Files of a killed ingest that are damaged before it is gone on with: the right bytes, or an error that says so."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.running import files_below, session
from support.sizes import sized, spread

import outcore as oc
from outcore.errors import OutcoreError, TargetExistsError
from outcore.sparse._spool import Work

N = 3000


class _Killed(BaseException):
    pass


def entries() -> Any:
    return np.random.default_rng(1).integers(0, N, (6000, 2)).astype(np.uint32)


def of_text(folder: Path, out: Path, **options: Any) -> None:
    oc.sparse.from_edges(folder / "e.txt", out / "a.ocs", transpose=out / "t.ocs", **options)


def by_degree(folder: Path, out: Path, **options: Any) -> None:
    oc.sparse.from_binary(folder / "e.bin", out / "a.ocs", relabel="degree", **options)


def wide(folder: Path, out: Path, **options: Any) -> None:
    oc.sparse.from_binary(folder / "e.bin", out / "a.ocs", side=16, shape=(1 << 62, 1 << 31), **options)


def of_graph(folder: Path, out: Path, **options: Any) -> None:
    oc.graph.from_edges(folder / "e.txt", out / "g.ocg", directed=False, weights=True, relabel="degree", **options)


def of_product(folder: Path, out: Path, **options: Any) -> None:
    A = oc.sparse.open(folder / "m.ocs")
    oc.sparse.spgemm(A, A, path=out / "s.ocs", **options)


MAKERS: dict[str, Callable[..., None]] = {
    "text": of_text,
    "degree": by_degree,
    "wide": wide,
    "graph": of_graph,
    "product": of_product,
}


def write_inputs(folder: Path) -> None:
    found = entries()
    found.tofile(folder / "e.bin")
    lines = zip(*found.T.tolist(), np.arange(len(found)) % 5 + 0.5, strict=True)
    (folder / "e.txt").write_text("".join(f"{row} {column} {value}\n" for row, column, value in lines))
    oc.sparse.from_coo(*found.T, np.ones(len(found)), (N, N), folder / "m.ocs", side=256)


def damage(path: Path, chance: random.Random) -> None:
    """Flips bits of a file, or cuts it off."""
    content = bytearray(path.read_bytes())
    if chance.random() < 0.3:
        del content[chance.randrange(len(content)) :]
    else:
        for _ in range(40):
            content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    path.write_bytes(content)


def contents(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in files_below(folder)}


@pytest.mark.filterwarnings("ignore::outcore.errors.ResumeWarning")
@pytest.mark.parametrize("kind", MAKERS)
def test_a_damaged_file_is_never_believed(
    kind: str, data: Path, out: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("outcore.sparse._spool._CHUNKS_NOTED", 1)
    monkeypatch.setattr("outcore.sparse._text._BLOCK", 1 << 14)
    make, chance = MAKERS[kind], random.Random(kind)
    note, kept = Work.note, data.parent / "kept"
    with session(scratch):
        write_inputs(data)
        make(data, out)
        expected = contents(out)
        steps: list[str] = []

        def counted(work: Work, step: str, content: Any) -> None:
            steps.append(step)
            note(work, step, content)

        monkeypatch.setattr(Work, "note", counted)
        shutil.rmtree(out)
        out.mkdir()
        make(data, out, resume=True)
        assert contents(out) == expected
        looked_at = 0
        for place in spread(range(0, len(steps), 1 + len(steps) // 12), 3):
            left = iter(range(place, -1, -1))

            def die(work: Work, step: str, content: Any, left: Any = left) -> None:
                note(work, step, content)
                if next(left) == 0:
                    raise _Killed

            monkeypatch.setattr(Work, "note", die)
            shutil.rmtree(out)
            out.mkdir()
            with pytest.raises(_Killed):
                make(data, out, resume=True)
            monkeypatch.setattr(Work, "note", note)
            folders = [out, *scratch.glob("outcore-resume-*")]
            for folder in folders:
                shutil.copytree(folder, kept / folder.name)
            damaged = [name for name in files_below(scratch) if "outcore-resume-" in name]
            for name in damaged:
                for folder in folders:
                    shutil.rmtree(folder, ignore_errors=True)
                    shutil.copytree(kept / folder.name, folder)
                if not (scratch / name).stat().st_size:
                    continue
                damage(scratch / name, chance)
                looked_at += 1
                try:
                    make(data, out, resume=True)
                except TargetExistsError:
                    pass  # all is made, and the note is damaged that it is this call's
                except OutcoreError:
                    # The same call begins anew then.
                    make(data, out, resume=True)
                assert contents(out) == expected, f"{name} after {steps[place]}"
            shutil.rmtree(kept)
        assert looked_at > sized(10, len(steps))


@pytest.mark.parametrize("kind", MAKERS)
def test_a_call_that_was_killed_when_it_was_done_gives_what_is_there(
    kind: str, data: Path, out: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = Work._empty

    def die(folder: Path, *kept: str) -> None:
        if files_below(out):
            raise _Killed
        empty(folder, *kept)

    with session(scratch):
        write_inputs(data)
        with monkeypatch.context() as patched:
            patched.setattr(Work, "_empty", staticmethod(die))
            with pytest.raises(_Killed):
                MAKERS[kind](data, out, resume=True)
        made = {name: (out / name).stat().st_mtime_ns for name in files_below(out)}
        MAKERS[kind](data, out, resume=True)
        assert {name: (out / name).stat().st_mtime_ns for name in files_below(out)} == made
        # It is done once: another call finds it in the way, as one without resume does.
        with pytest.raises(OutcoreError, match="is there already"):
            MAKERS[kind](data, out, resume=True)
