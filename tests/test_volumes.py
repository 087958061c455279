"""Volumes: what is stored below one comes back as it was, wherever its disks are and whatever ends on the way."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from click.testing import CliRunner
from conftest import KILLS
from support import workloads
from support.killing import start, wait
from support.running import session
from support.volumes import Volume, assert_whole, invoke, made

import outcore as oc
from outcore import _core
from outcore._command.cli import main
from outcore._session import record
from outcore.errors import OutcoreError, StorageError, TargetExistsError
from outcore.sparse._spool import Work

# At this pool temporaries spill.
SPILLING: dict[str, Any] = {"rewrites": {"all": False}, "policy": "clean-first-lru", "pool_limit": 12 << 20}
LAYOUTS = ("striped", "rotated", "hashed")


@pytest.fixture
def volume(tmp_path: Path) -> Volume:
    return made(tmp_path, 1, 2, 1)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_arrays_matrices_and_graphs_come_back(tmp_path: Path, layout: str) -> None:
    volume = made(tmp_path, 1, 3, layout=layout)
    x = np.random.default_rng(1).standard_normal((700, 301))
    rows, columns = np.random.default_rng(2).integers(0, 5000, (2, 60_000))
    with session(tmp_path / "scratch"):
        stored = {"x.npy": x, "y.zarr": x, "small.npy": x[:3, :5], "empty.npy": x[:0], "t.npy": x.astype(np.float32)}
        oc.store({volume.home / name: oc.asarray(value) for name, value in stored.items()})
        for name, value in stored.items():
            np.testing.assert_array_equal(oc.open(volume.home / name).compute(), value)
        np.testing.assert_allclose(oc.open(volume.home / "y.zarr").sum(axis=0).compute(), x.sum(axis=0))
        A = oc.sparse.from_coo(rows, columns, None, (5000, 5000), volume.home / "a.ocs")
        np.testing.assert_array_equal(A.to_scipy().toarray() != 0, _dense(rows, columns))
        G = oc.graph.from_arrays(rows, columns, volume.home / "g.ocg")
        plain = oc.graph.from_arrays(rows, columns, tmp_path / "g.ocg")
        np.testing.assert_array_equal(oc.graph.bfs(G, 0), oc.graph.bfs(plain, 0))
        np.testing.assert_array_equal(oc.graph.connected_components(G), oc.graph.connected_components(plain))
    assert volume.parts() > 6
    assert_whole(volume)
    assert (volume.home / "x.npy").stat().st_size == x.nbytes + 4096
    for name in [*stored, "a.ocs", "g.ocg"]:
        _core.remove(str(volume.home / name))
    assert volume.parts() == 0


def _dense(rows: Any, columns: Any) -> Any:
    dense = np.zeros((5000, 5000), dtype=bool)
    dense[rows, columns] = True
    return dense


def test_scratch_lies_on_a_volume_and_goes_with_the_session(tmp_path: Path, data: Path, volume: Volume) -> None:
    work = workloads.nmf(data, 16)
    expected = work.expected()
    scratch = volume.home / "scratch"
    with session(scratch, **SPILLING), oc.profile() as seen:
        outcome = oc.store(work.targets(volume.home), overwrite=True)
        assert outcome.bytes_spilled > 0
        assert volume.parts() > 3
        for name, value in expected.items():
            np.testing.assert_allclose(oc.open(volume.home / name).compute(), value, rtol=1e-9)
    assert list(scratch.iterdir()) == []
    assert_whole(volume)
    # What the disks did is what went to the volume: scratch and outputs, but for their pages of header.
    assert {row["disk"] for row in seen.disks} == {str(disk) for disk in volume.disks}
    assert sum(row["bytes_written"] for row in seen.disks) <= seen.bytes_written
    assert sum(row["bytes_written"] for row in seen.disks) > seen.bytes_spilled
    assert seen.to_dict()["disks"] == seen.disks


def test_replaced_and_failed_outputs_leave_nothing_on_the_disks(tmp_path: Path, volume: Volume) -> None:
    x = oc.arange(300_000).reshape((1000, 300)).astype("float64")
    target, array = volume.home / "x.npy", volume.home / "x.zarr"
    oc.store({target: x, array: x})
    held = volume.parts()
    oc.store({target: x + 1, array: x + 1}, overwrite=True)
    assert volume.parts() == held
    for call, number in [
        ("write", 1),
        ("write", 2),
        ("write", 4),
        ("sync", 1),
        ("sync", 2),
        ("rename", 1),
        ("rename", 2),
    ]:
        with session(tmp_path / "scratch", faults=f"{call}:{number}"), pytest.raises(OutcoreError):
            oc.store({target: x + 2, array: x + 2}, overwrite=True)
        assert oc.open(target).max().item() == 300_000
        assert volume.parts() == held
    assert_whole(volume)


def test_work_that_is_gone_on_with(tmp_path: Path, volume: Volume) -> None:
    x = oc.random.uniform((2000, 1000), seed=3)
    for target in (volume.home / "r.zarr", volume.home / "r.npy"):
        with session(tmp_path / "s", faults="write:5"), pytest.raises(StorageError):
            oc.store({target: x * 2}, resume=True)
        with session(tmp_path / "s"):
            oc.store({target: x * 2}, resume=True)
            np.testing.assert_array_equal(oc.open(target).compute(), x.compute() * 2)
    assert_whole(volume)


@pytest.mark.parametrize("maker", ["spgemm", "from_entries", "from_arrays"])
def test_what_has_its_name_already_is_gone_on_with(
    maker: str, tmp_path: Path, volume: Volume, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if killed between the name of the file and the note that all is done."""
    rows, columns = np.random.default_rng(0).integers(0, 3000, (2, 20_000))
    np.save(tmp_path / "rows.npy", rows)
    np.save(tmp_path / "columns.npy", columns)
    entries = oc.open(tmp_path / "rows.npy"), oc.open(tmp_path / "columns.npy")
    target = volume.home / ("g.ocg" if maker == "from_arrays" else "c.ocs")
    done = Work.done
    with session(tmp_path / "s"):
        A = oc.sparse.from_coo(rows, columns, None, (3000, 3000), tmp_path / "a.ocs")

        def make() -> None:
            if maker == "spgemm":
                oc.sparse.spgemm(A, A, path=target, resume=True)
            elif maker == "from_entries":
                oc.sparse.from_entries(entries, target, shape=(3000, 3000), resume=True)
            else:
                oc.graph.from_arrays(*entries, target, resume=True)

        def killed(work: Work, *targets: Path) -> None:
            if target in targets:
                raise KeyboardInterrupt
            done(work, *targets)

        with monkeypatch.context() as patched:
            patched.setattr(Work, "done", killed)
            with pytest.raises(KeyboardInterrupt):
                make()
        before = target.stat().st_ino
        assert target.exists()
        make()
        assert target.stat().st_ino == before
        # Another's file stays in the way.
        _core.remove(str(target))
        oc.store({volume.home / "x.npy": oc.ones(10)})
        with monkeypatch.context() as patched:
            patched.setattr(Work, "done", killed)
            with pytest.raises(KeyboardInterrupt):
                make()
        _core.remove(str(target))
        (volume.home / "x.npy").rename(target)
        with pytest.raises(TargetExistsError):
            make()
    assert_whole(volume)


def test_anothers_file_under_the_name_is_not_the_result(tmp_path: Path) -> None:
    """As if killed behind the note that the file is written, and replaced by somebody."""
    rows, columns = np.random.default_rng(0).integers(0, 3000, (2, 20_000))
    np.save(tmp_path / "rows.npy", rows)
    np.save(tmp_path / "columns.npy", columns)
    entries = oc.open(tmp_path / "rows.npy"), oc.open(tmp_path / "columns.npy")
    target = tmp_path / "c.ocs"

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with session(tmp_path / "s"):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(Work, "done", killed)
            with pytest.raises(KeyboardInterrupt):
                oc.sparse.from_entries(entries, target, resume=True)
        other = oc.sparse.from_coo([1], [1], None, (10, 10), tmp_path / "other.ocs").path
        other.replace(target)
        with pytest.raises(TargetExistsError):
            oc.sparse.from_entries(entries, target, resume=True)
        target.unlink()
        assert oc.sparse.from_entries(entries, target, resume=True).shape == (3000, 3000)


def test_dates_loops_and_ingests_on_a_volume(tmp_path: Path, volume: Volume) -> None:
    days = np.arange("2000-01-01", "2040-01-01", dtype="datetime64[D]")
    words = np.array([f"word {number}" for number in range(20_000)])
    with session(volume.home / "scratch"):
        oc.store({volume.home / "days.npy": oc.asarray(days), volume.home / "words.npy": oc.asarray(words)})
        np.testing.assert_array_equal(oc.open(volume.home / "days.npy").compute(), days)
        np.testing.assert_array_equal(oc.open(volume.home / "words.npy").compute(), words)
        oc.store({volume.home / "days.npy": oc.asarray(days[::-1].copy())}, overwrite=True)
        np.testing.assert_array_equal(oc.open(volume.home / "days.npy").compute(), days[::-1])
        loop = oc.iterate(lambda v: v * 2, oc.ones((300, 200)), max_iter=5, checkpoint=2)
        np.testing.assert_array_equal(np.asarray(loop.state), np.full((300, 200), 32))
        edges = volume.home / "edges.txt"
        edges.write_text("".join(f"{number % 977} {number % 1009}\n" for number in range(40_000)))
        G = oc.graph.from_edges(edges, volume.home / "e.ocg")
        assert G.number_of_edges == 40_000
    assert_whole(volume)


def test_renamed_mount_points_and_added_disks(tmp_path: Path, volume: Volume) -> None:
    x = np.arange(500_000.0)
    oc.store({volume.home / "x.npy": oc.asarray(x)})
    volume.disks[1].rename(tmp_path / "elsewhere")
    with session(tmp_path / "scratch"):
        with pytest.warns(UserWarning, match=r"disk-1: this disk of the volume .* was found at .*elsewhere"):
            np.testing.assert_array_equal(oc.open(volume.home / "x.npy").compute(), x)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            np.testing.assert_array_equal(oc.open(volume.home / "x.npy")[::2].compute(), x[::2])
    members = invoke("volume", "info", volume.home, "--write")["members"]
    assert [member["path"] for member in members][1] == str(tmp_path / "elsewhere")
    assert invoke("volume", "info", volume.home)["members"][1]["recorded"] is None
    assert sum(member["bytes"] for member in members) == x.nbytes + 4096

    invoke("volume", "add", volume.home, tmp_path / "fourth", "--weight", "4")
    assert invoke("volume", "check", volume.home)["older"] == 1
    assert invoke("volume", "rebalance", volume.home)["files"] == 1
    np.testing.assert_array_equal(oc.open(volume.home / "x.npy").compute(), x)
    shares = [member["bytes"] / (x.nbytes + 4096) for member in invoke("volume", "info", volume.home)["members"]]
    np.testing.assert_allclose(shares, [1 / 8, 2 / 8, 1 / 8, 4 / 8], atol=0.03)
    # Emptied by a weight of 0.
    invoke("volume", "rebalance", volume.home, "--weight", f"{volume.disks[0]}=0")
    assert invoke("volume", "info", volume.home)["members"][0]["bytes"] == 0
    np.testing.assert_array_equal(oc.open(volume.home / "x.npy").compute(), x)
    assert_whole(volume)
    # And taken away.
    shutil.rmtree(volume.disks[0])
    invoke("volume", "check", volume.home, "--repair", code=1)
    assert len(invoke("volume", "remove", volume.home, volume.disks[0])["members"]) == 3
    assert invoke("volume", "remove", volume.home, volume.disks[2], code=1)["error"]["code"] == "invalid"
    invoke("volume", "check", volume.home, "--repair")
    oc.store({volume.home / "x.npy": oc.asarray(x + 1)}, overwrite=True)
    np.testing.assert_array_equal(oc.open(volume.home / "x.npy").compute(), x + 1)


def test_a_disk_that_goes_away_while_running_is_named(tmp_path: Path) -> None:
    for moment in (0.0, 0.05, 0.2):
        folder = tmp_path / str(moment)
        volume = made(folder, 1, 1, 1)
        gone = volume.disks[1]
        x = oc.random.uniform((3000, 1000), seed=1)

        def disappear(gone: Path = gone, moment: float = moment) -> None:
            time.sleep(moment)
            gone.rename(gone.with_suffix(".x"))
            (gone.with_suffix(".x") / "outcore-member.json").unlink()

        def store_on_and_on(volume: Volume = volume, x: oc.Array = x) -> None:
            for number in range(1000):
                oc.store({volume.home / f"{number}.npy": x + number})
                oc.open(volume.home / f"{number}.npy").sum().compute()

        remover = threading.Thread(target=disappear)
        with session(folder / "scratch", pool_limit=32 << 20):
            remover.start()
            with pytest.raises(StorageError) as caught:
                store_on_and_on()
            remover.join()
        assert str(gone) in str(caught.value)


def test_missing_disks_are_told_in_one_line(volume: Volume) -> None:
    oc.store({volume.home / "x.npy": oc.arange(500_000)})
    shutil.rmtree(volume.disks[2])
    with pytest.raises(StorageError, match=r"disk-2.*is gone") as caught:
        oc.open(volume.home / "x.npy").sum().compute()
    assert caught.value.details["path"].endswith("x.npy")
    found = invoke("volume", "check", volume.home, code=1)
    assert str(volume.disks[2]) in found["damaged"][0][1]
    assert invoke("volume", "info", volume.home)["members"][2]["found"] is False
    assert invoke("volume", "check", volume.home, "--repair", code=1)["error"]["code"] == "io"
    told = CliRunner().invoke(main, ["volume", "info", str(volume.home)]).output.splitlines()
    assert "rotated, blocks of 64.0 KiB" in told[0]
    assert f"{volume.disks[1]}: weight 2" in told[2]
    assert f"{volume.disks[2]}: weight 1" in told[3]
    assert "MISSING: mount it, or name where it is with `info --find DIR --write`" in told[3]


def test_what_is_refused_leaves_no_folder(tmp_path: Path, volume: Volume) -> None:
    held = sorted(tmp_path.rglob("*"))
    new = tmp_path / "new"
    refused = invoke("volume", "create", new / "home", new / "disk", volume.disks[1], code=1)
    assert "is a disk of a volume already" in refused["error"]["message"]
    assert sorted(tmp_path.rglob("*")) == held
    for verb in ("info", "check", "rebalance"):
        told = invoke("volume", verb, tmp_path, code=1)["error"]["message"]
        assert f"{tmp_path}: is no volume" in told
        assert "`outcore volume create` makes one" in told
        assert f"{new}: no such file" in invoke("volume", verb, new, code=1)["error"]["message"]


def test_killed_at_random_moments(tmp_path: Path, data: Path, volume: Volume) -> None:
    work = workloads.nmf(data, 16)
    expected = work.expected()
    out, scratch = volume.home / "out", volume.home / "scratch"
    out.mkdir()
    child = start(work, out, scratch, **SPILLING)
    began = time.perf_counter()
    assert wait(child, 60), "the undisturbed run does not end"
    assert child.returncode == 0, child.communicate()[1]
    whole = time.perf_counter() - began
    moments = random.Random(5)
    for _ in range(max(1, KILLS // 2)):
        _core.remove(str(out))
        out.mkdir()
        child = start(work, out, scratch, **SPILLING)
        if not wait(child, moments.uniform(0, 1.1 * whole)):
            child.kill()
        child.communicate()
        for name, value in expected.items():
            if (out / name).exists():
                np.testing.assert_allclose(oc.open(out / name).compute(), value, rtol=1e-9)
        with session(scratch):
            pass
        _core.clean(str(out))
        assert list(scratch.iterdir()) == []
        assert {path.name for path in out.iterdir()} <= set(expected)
        invoke("volume", "check", volume.home, "--repair")
        assert_whole(volume)


def test_a_rebalance_that_was_killed_goes_on(tmp_path: Path) -> None:
    volume = made(tmp_path, 1, 1)
    arrays = {volume.home / f"{number}.npy": oc.arange(400_000) + number for number in range(8)}
    oc.store(arrays)
    invoke("volume", "add", volume.home, tmp_path / "third")
    code = "import sys; from outcore import _core; print('ready', flush=True); _core.volume_rebalance(sys.argv[1])"
    for moment in (0.0, 0.01, 0.03, 0.06):
        child = subprocess.Popen([sys.executable, "-c", code, volume.home], stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        wait(child, moment)
        child.kill()
        child.communicate()
        for number, path in enumerate(arrays):
            assert oc.open(path)[-1].item() == 399_999 + number
    invoke("volume", "rebalance", volume.home)
    invoke("volume", "check", volume.home, "--repair")
    found = invoke("volume", "check", volume.home)
    assert (found["older"], found["damaged"], found["orphans"]) == (0, [], 0)
    for number, path in enumerate(arrays):
        assert oc.open(path)[-1].item() == 399_999 + number


def test_names_outside_of_the_volume_are_refused(tmp_path: Path, volume: Volume) -> None:
    x = oc.arange(300_000)
    oc.store({volume.home / "x.zarr": x, volume.home / "x.npy": x})
    shutil.move(volume.home / "x.npy", tmp_path / "x.npy")
    shutil.move(volume.home / "x.zarr", tmp_path / "x.zarr")
    for name in ("x.npy", "x.zarr"):
        with pytest.raises(OutcoreError, match="moved or copied out of it"):
            oc.open(tmp_path / name).sum().compute()
        shutil.move(tmp_path / name, volume.home / f"back-{name}")
        assert oc.open(volume.home / f"back-{name}").sum().item() == 300_000 * 299_999 // 2


def test_what_volumes_cannot_be_made_of(tmp_path: Path, volume: Volume) -> None:
    for arguments in (
        [tmp_path / "h", volume.disks[0]],
        [tmp_path / "h", tmp_path / "a", "--block", "1000"],
        [tmp_path / "h", f"{tmp_path / 'a'}=0"],
        [volume.home, tmp_path / "a"],
    ):
        assert invoke("volume", "create", *arguments, code=1)["error"]["code"]
        assert not (tmp_path / "a" / "outcore-member.json").exists()
    assert invoke("volume", "info", tmp_path / "h", code=1)["error"]["code"]
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "outcore-volume.json").write_text('{"outcore_volume": 9}')
    for command in ("info", "check", "rebalance"):
        assert invoke("volume", command, tmp_path / "bad", code=1)["error"]["code"] == "format"
    with pytest.raises(OutcoreError, match="version 9; 1 is known"):
        oc.store({tmp_path / "bad" / "x.npy": oc.arange(5)})


def test_a_slow_disk_is_named_in_the_profile() -> None:
    rows = [
        {"volume": "/v", "disk": f"/{disk}", "requests": 4, "bytes_read": 100 << 20, "errors": 0} for disk in "abcd"
    ]

    class Session:
        def __init__(self, *seconds: float) -> None:
            self._core = self
            self._rows = [
                row | {"bytes_written": 0, "busy_seconds": time} for row, time in zip(rows, seconds, strict=True)
            ]

        def disks(self) -> list[dict[str, Any]]:
            return self._rows

    for seconds, slow in [((1, 1, 2.5, 1), ["/c"]), ((1, 1, 1.5, 1), []), ((0.001, 0.001, 0.01, 0.001), [])]:
        with oc.profile() as seen:
            record.joined(cast(Any, Session(*seconds)))
        assert seen.slow_disks == slow
        assert [row["bytes_read"] for row in seen.to_dict()["disks"]] == [100 << 20] * 4


def test_a_copied_name_takes_nothing_from_the_original(volume: Volume) -> None:
    x = oc.arange(300_000)
    oc.store({volume.home / "a.npy": x})
    shutil.copyfile(volume.home / "a.npy", volume.home / "b.npy")
    with pytest.raises(OutcoreError, match="a copy of the name of a file of the volume"):
        oc.open(volume.home / "b.npy").compute()
    found = invoke("volume", "check", volume.home, code=1)
    assert [Path(path).name for path, _ in found["damaged"]] == ["b.npy"]
    oc.store({volume.home / "b.npy": x + 1}, overwrite=True)
    for name, first in (("a.npy", 0), ("b.npy", 1)):
        assert oc.open(volume.home / name).sum().item() == 300_000 * 299_999 // 2 + 300_000 * first
    assert_whole(volume)


def test_a_home_that_was_restored_from_a_copy_is_adopted(tmp_path: Path, volume: Volume) -> None:
    x = oc.arange(300_000)
    oc.store({volume.home / "a.npy": x, volume.home / "z.zarr": x})
    # The copy is made while the home is there: else its files may get the numbers that the system has free again.
    volume.home.rename(tmp_path / "lost")
    shutil.copytree(tmp_path / "lost", volume.home)
    shutil.rmtree(tmp_path / "lost")
    with pytest.raises(OutcoreError, match="volume check --repair"):
        oc.open(volume.home / "a.npy").compute()
    assert invoke("volume", "check", volume.home, "--repair")["adopted"] >= 2
    assert_whole(volume)
    for name in ("a.npy", "z.zarr"):
        assert oc.open(volume.home / name).sum().item() == 300_000 * 299_999 // 2


def test_dense_copies_outside_of_the_volume_are_refused(tmp_path: Path, volume: Volume) -> None:
    x = oc.arange(300_000)
    oc.store({volume.home / "x.npy": x, volume.home / "x.zarr": x})
    # As programs copy that make no holes.
    shutil.copytree(
        volume.home, tmp_path / "copy", copy_function=lambda a, b: Path(b).write_bytes(Path(a).read_bytes())
    )
    (tmp_path / "copy" / "outcore-volume.json").unlink()
    for name in ("x.npy", "x.zarr"):
        with pytest.raises(OutcoreError, match="moved or copied out of it"):
            oc.open(tmp_path / "copy" / name).compute()


def test_a_file_that_replaces_itself_stays(volume: Volume) -> None:
    path = str(volume.home / "x.npy")
    oc.store({path: oc.arange(300_000)})
    _core.replace(path, path)
    assert oc.open(path)[-1].item() == 299_999


@pytest.mark.parametrize("suffix", ["txt", "txt.gz", "bin", "mtx", "npz", "parquet"])
def test_files_of_others_are_read_from_a_volume(tmp_path: Path, volume: Volume, suffix: str) -> None:
    import gzip

    import scipy.sparse

    rows, columns = np.random.default_rng(3).integers(0, 3000, (2, 40_000), dtype=np.uint32)
    outside = tmp_path / f"edges.{suffix}"
    A = oc.sparse.from_coo(rows, columns, None, (3000, 3000), tmp_path / "a.ocs")
    lines = b"".join(b"%d %d\n" % pair for pair in zip(rows.tolist(), columns.tolist(), strict=True))
    read: dict[str, Any] = {
        "txt": oc.sparse.from_edges,
        "txt.gz": oc.sparse.from_edges,
        "bin": oc.sparse.from_binary,
        "mtx": oc.sparse.from_mtx,
        "npz": oc.sparse.from_npz,
        "parquet": lambda *paths: oc.sparse.from_table(*paths, rows="r", columns="c"),
    }
    if suffix == "bin":
        np.stack([rows, columns], axis=1).tofile(outside)
    elif suffix == "mtx":
        oc.sparse.to_mtx(A, outside)
    elif suffix == "npz":
        scipy.sparse.save_npz(outside, A.to_scipy().astype(np.float64).tocsr(), compressed=False)
    elif suffix == "parquet":
        arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        parquet.write_table(arrow.table({"r": rows, "c": columns}), outside)
    else:
        outside.write_bytes(gzip.compress(lines) if suffix == "txt.gz" else lines)
    inside = volume.home / outside.name
    _core.replace(str(outside), str(inside))
    assert volume.parts() > 1
    found = read[suffix](inside, volume.home / "b.ocs").to_scipy()
    expected = A.to_scipy().toarray() != 0
    assert (found.toarray() != 0)[: expected.shape[0], : expected.shape[1]].sum() == expected.sum()
    np.testing.assert_array_equal(found.toarray() != 0, expected[: found.shape[0], : found.shape[1]])
    if suffix == "npz":
        np.testing.assert_array_equal(oc.sparse.open(inside).to_scipy().toarray() != 0, expected)
    # Where it is no volume's, its name is refused.
    shutil.move(inside, outside)
    with pytest.raises(OutcoreError, match="moved or copied out of it"):
        read[suffix](outside, tmp_path / "c.ocs")


def test_libraries_that_open_files_themselves_are_given_none_of_a_volume(tmp_path: Path, volume: Volume) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5ad", "w") as file:
        file["x"] = np.arange(5000)
    _core.replace(str(tmp_path / "a.h5ad"), str(volume.home / "a.h5ad"))
    for read in (oc.sparse.open, lambda path: oc.sparse.from_anndata(path, tmp_path / "a.ocs")):
        with pytest.raises(OutcoreError, match="HDF5's library reads plain files only"):
            read(volume.home / "a.h5ad")


WITHOUT_DESCRIPTORS = """
import os, resource, sys
import outcore as oc
from outcore.errors import OutcoreError
home = sys.argv[1]
x = oc.arange(300_000)
for name in ("x.npy", "x.zarr"):
    oc.store({f"{home}/{name}": x}, overwrite=True)
limit = max(map(int, os.listdir("/proc/self/fd"))) + 40
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
taken, refused = [], 0
try:
    while True:
        taken.append(os.open("/dev/null", os.O_RDONLY))
except OSError:
    pass
while taken:
    os.close(taken.pop())
    for name in ("x.npy", "x.zarr"):
        try:
            oc.store({f"{home}/{name}": x + len(taken)}, overwrite=True)
        except (OutcoreError, OSError):
            refused += 1
print(refused)
"""


def test_without_descriptors_no_parts_are_left_over(volume: Volume) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_DESCRIPTORS, volume.home], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 0
    # What could not be removed has a name, by which the next one removes it.
    _core.clean(str(volume.home))
    assert_whole(volume)
    for name in ("x.npy", "x.zarr"):
        assert oc.open(volume.home / name).sum().item() == 300_000 * 299_999 // 2
