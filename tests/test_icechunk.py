"""Repositories of Icechunk, versions 1 and 2: values, versions, refusals by name, damage, and Icechunk as the oracle.

`tests/data/write_icechunk.py` wrote the repositories of `tests/data`; Icechunk itself is needed for some tests alone.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from click.testing import CliRunner
from conftest import LARGE
from support.running import forecast, run, session
from support.web import serving

import outcore as oc
from outcore import _core
from outcore._command.cli import main
from outcore._opening.flatbuffer import FlatBuffer
from outcore._opening.ice_chunks import _unpacked_location
from outcore.errors import (
    ArgumentError,
    FormatError,
    MissingFileError,
    OutcoreError,
    SourceChangedError,
    UnsupportedFormatError,
)

DATA = Path(__file__).parent / "data"
VERSIONS = ("icechunk-1", "icechunk-2")
HEADER_BYTES, COMPRESSION = 39, 38
DAMAGE = 6_000 if LARGE else 100  # damaged bytes of each repository
PLANE = np.random.default_rng(5).random((20, 30), "f4")


@pytest.fixture(params=VERSIONS)
def repository(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return Path(shutil.copytree(DATA / request.param, tmp_path / "repository"))


def t2m(days: int) -> np.ndarray:
    """Values of the first commit, or of the second with three days."""
    values = np.full((3, 20, 30), np.nan, "f4")
    values[0], values[1, :, :16] = PLANE, 7
    values[2:days] = 280
    return values


def unpacked(path: Path) -> bytes:
    """The content of a file of Icechunk's, behind its header."""
    packed = path.read_bytes()[HEADER_BYTES:]
    return b"" if not packed else _core.Unzstd(path).unpack(packed)[1]


def write_unpacked(path: Path, content: bytes) -> None:
    header = bytearray(path.read_bytes()[:HEADER_BYTES])
    header[COMPRESSION] = 0
    path.write_bytes(bytes(header) + content)


def with_content(folder: Path, part: bytes) -> Path:
    """The file of a folder whose content has a part."""
    return next(path for path in sorted(folder.iterdir()) if part in unpacked(path))


def test_arrays_and_groups_of_a_repository(repository: Path) -> None:
    group = oc.open(repository)
    assert (group.attrs, group.groups) == ({"title": "three days"}, ("g",))
    assert set(group.arrays) == {"far", "scalar", "shards", "t2m", "text", "time"}
    stored = group["t2m"]
    assert (stored.name, stored.dims, stored.attrs) == ("t2m", ("time", "y", "x"), {"units": "K"})
    np.testing.assert_array_equal(stored.compute(), t2m(3))
    np.testing.assert_array_equal(stored[1:, 3:7, 10:20].compute(), t2m(3)[1:, 3:7, 10:20])
    days = np.arange("2001-01-01", "2001-01-04", dtype="M8[D]")
    np.testing.assert_array_equal(group["time"].compute(), days)
    assert oc.open(repository / "time", decode=False).compute().tolist() == [0, 1, 2]
    assert group["scalar"].compute() == 2.5
    # One manifest for four chunks, and an array that was longer than its manifest says.
    np.testing.assert_array_equal(group["g/parts"].compute(), np.arange(48).reshape(6, 8))
    np.testing.assert_array_equal(oc.open(repository / "g")["shrunken"].compute(), [0, 1, 2])


def test_versions_are_branches_tags_and_snapshots(repository: Path) -> None:
    second = oc.open(repository, version="main")["t2m"].compute()
    np.testing.assert_array_equal(second, t2m(3))
    for version in ("v1", "half & half"):
        np.testing.assert_array_equal(oc.open(repository / "t2m", version=version).compute(), t2m(2))
        assert oc.open(repository / "g/shrunken", version=version).shape == (10,)
    shapes = set()
    for snapshot in (repository / "snapshots").iterdir():
        opened = oc.open(repository, version=snapshot.name)
        shapes.add(opened["g/shrunken"].shape if "g" in opened else None)
    assert shapes == {None, (10,), (3,)}
    with pytest.raises(ArgumentError, match=r"'both' is a branch and a tag; pass an id .*: the tag is \w{20}, the br"):
        oc.open(repository, version="both")
    for version in ("gone", "none", "", "../main", "1CECHNKREP0F1RSTCMT1", "a/b"):
        with pytest.raises(ArgumentError, match="has no branch, tag or snapshot"):
            oc.open(repository, version=version)


def test_groups_stay_at_their_snapshot(repository: Path) -> None:
    group = oc.open(repository, version="v1")
    for path in (repository / "refs", repository / "repo"):
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    np.testing.assert_array_equal(group["t2m"].compute(), t2m(2))


def test_refusals_name_their_reason(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    group = oc.open(repository)
    with pytest.raises(FormatError, match="shards"):
        group["shards"]
    with pytest.raises(FormatError, match="string"):
        group["text"]
    with pytest.raises(FormatError, match=r"no array or group 'none' in this snapshot"):
        oc.open(repository / "none")
    assert "scalar () float64" in repr(group)
    assert "shards: not read" in repr(group)
    np.save(tmp_path / "x.npy", np.arange(3))
    with pytest.raises(ArgumentError, match=r"x\.npy: version is of Icechunk repositories, and none is there"):
        oc.open(tmp_path / "x.npy", version="main")
    with pytest.raises(ArgumentError, match="version is of a repository"):
        oc.open(repository, version="main", dtype="f8")
    # Locations of version 2 are packed with a dictionary.
    monkeypatch.setitem(sys.modules, "zstandard", None)
    is_packed = (repository / "repo").exists()
    with pytest.raises(UnsupportedFormatError, match="needs zstandard" if is_packed else "virtual chunks in s3://buck"):
        group["far"]


def test_packed_locations_are_unpacked() -> None:
    pytest.importorskip("zstandard")
    with pytest.raises(UnsupportedFormatError, match=r"virtual chunks in s3://bucket/x{160}\.bin, and those"):
        oc.open(DATA / "icechunk-2/far")


def test_locations_that_unpack_to_too_much_are_refused() -> None:
    pytest.importorskip("zstandard")
    frame = b"\x28\xb5\x2f\xfd\xe0" + (1 << 40).to_bytes(8, "little") + b"\x01\x00\x00"
    manifest = FlatBuffer("x", [bytes([8, 0, 0, 0, 4, 0, 4, 0, 4, 0, 0, 0])]).root()
    with pytest.raises(FormatError, match="x: a location of virtual chunks is too long"):
        _unpacked_location(manifest, frame)


def test_vectors_that_share_bytes_are_refused() -> None:
    """One table many times over, which would take memory of many times the file."""
    buffer = FlatBuffer("x", [bytes(64)])
    with pytest.raises(FormatError, match="byte 8 of its content: vectors that overlap"):
        buffer.check_sum(np.asarray([40, 40]), 1, np.asarray([8, 16]))
    buffer.check_sum(np.asarray([32, 32]), 1, np.asarray([8, 16]))


def test_virtual_chunks_lie_in_files_of_others(tmp_path: Path) -> None:
    repository = Path(shutil.copytree(DATA / "icechunk-1", tmp_path / "repository"))
    path = tmp_path / "a b.bin"
    np.arange(16.0).tofile(path)
    manifest = with_content(repository / "manifests", b"s3://bucket/")
    location = f"{'x' * 160}.bin"
    name = str(path).replace(" ", "%20")
    local = f"file://{name:/>{len('s3://bucket/' + location) - len('file://')}}"
    write_unpacked(manifest, unpacked(manifest).replace(f"s3://bucket/{location}".encode(), local.encode()))
    x = oc.open(repository / "far")
    np.testing.assert_array_equal(x.compute(), np.arange(16.0))
    path.write_bytes(bytes(128))
    with pytest.raises(SourceChangedError, match=r"a b\.bin"):
        x.compute()
    path.unlink()
    with pytest.raises(MissingFileError, match=r"a b\.bin"):
        oc.open(repository / "far")


def test_forecasts_hold_for_chunks_in_files_and_in_manifests(repository: Path, tmp_path: Path) -> None:
    with session():
        x = oc.open(repository / "t2m")
        targets = {tmp_path / "part.npy": x[:2, 3:9] * 2, tmp_path / "most.npy": x.max(axis="time")}
        assert forecast(targets) == run(targets)
    np.testing.assert_array_equal(np.load(tmp_path / "part.npy"), t2m(3)[:2, 3:9] * 2)
    # The array outlasts the session in which it was opened.
    np.testing.assert_array_equal(x.compute(), t2m(3))


def test_replaced_chunks_are_refused(repository: Path) -> None:
    x = oc.open(repository / "t2m")
    chunk = next((repository / "chunks").iterdir())
    chunk.write_bytes(chunk.read_bytes()[::-1])
    with pytest.raises(SourceChangedError, match=chunk.name):
        x.compute()
    chunk.unlink()
    with pytest.raises(MissingFileError, match=chunk.name):
        oc.open(repository / "t2m")


def test_info_shows_a_repository(repository: Path) -> None:
    shown = CliRunner().invoke(main, ["info", str(repository)])
    assert shown.exit_code == 0, shown.output
    assert "icechunk group" in shown.output
    assert "t2m (time: 3, y: 20, x: 30) float32" in shown.output
    told = json.loads(CliRunner().invoke(main, ["info", str(repository), "--json"]).output)
    assert told["members"]["g"]["members"]["parts"]["shape"] == [6, 8]


def test_xarray_opens_a_repository(repository: Path) -> None:
    with pytest.raises(FormatError, match="drop_variables='far' leaves this variable out"):
        xr.open_dataset(repository, engine="outcore", chunks={})
    dropped = ["far", "shards", "text"]
    dataset = xr.open_dataset(repository, engine="outcore", chunks={}, drop_variables=dropped)
    np.testing.assert_array_equal(dataset["t2m"].mean("time").values, np.nanmean(t2m(3), axis=0))
    assert dataset["time"].dtype.kind == "M"
    first = xr.open_dataset(repository, engine="outcore", chunks={}, group="g", version="v1")
    assert first["shrunken"].shape == (10,)


def read_small(group: oc.Group) -> Iterator[OutcoreError]:
    """Reads all that is small, and gives the errors of members."""
    for name in group:
        try:
            member = group[name]
            if isinstance(member, oc.Group):
                yield from read_small(member)
            elif member.nbytes < 1 << 20:
                member.compute()
        except OutcoreError as error:
            yield error


def refusals(repository: Path) -> list[str]:
    """Errors that name no file of the repository, and no bucket or manifest whose content is in scratch."""
    names = (str(repository), "s3://", *(path.name for path in (repository / "manifests").iterdir()))
    try:
        errors = [*read_small(oc.open(repository))]
    except OutcoreError as error:
        errors = [error]
    return [str(error) for error in errors if not any(name in str(error) for name in names)]


@pytest.mark.parametrize("is_packed", [True, False], ids=["packed", "unpacked"])
def test_damaged_files_are_read_or_refused(repository: Path, is_packed: bool) -> None:
    """Numbers that are others than before are no damage that a file tells; without packing each byte is one of them."""
    random = np.random.default_rng(8)
    folders = ("manifests", "snapshots")
    paths = [path for folder in folders for path in sorted((repository / folder).iterdir())]
    paths += [path for path in (repository / "repo", repository / "refs/branch.main/ref.json") if path.exists()]
    for path in paths:
        if not is_packed and path.suffix != ".json":
            write_unpacked(path, unpacked(path))
    assert refusals(repository) == []
    for _ in range(DAMAGE // 2):
        path = paths[random.integers(len(paths))]
        content = path.read_bytes()
        damaged = bytearray(content)
        at, kind = int(random.integers(len(content))), int(random.integers(3))
        if kind == 0:
            damaged[at] ^= 1 << random.integers(8)
        elif kind == 1:
            damaged[at & ~3 : (at & ~3) + 4] = random.choice([b"\0\0\0\0", b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f"])
        else:
            del damaged[at:]
        path.write_bytes(damaged)
        assert refusals(repository) == [], (path, at, kind)
        path.write_bytes(content)


def test_headers_are_checked(repository: Path) -> None:
    path = max((repository / "manifests").iterdir(), key=lambda path: path.stat().st_size)
    content = path.read_bytes()
    cases = {
        b"": "no header of Icechunk's",
        b"X" + content[1:]: "no header of Icechunk's",
        content[:36] + b"\x09" + content[37:]: "version 9 of Icechunk's format",
        content[:37] + b"\x01" + content[38:]: "no header of Icechunk's for such a file",
        content[:38] + b"\x07" + content[39:]: "compression 7",
        content[:-3]: "file ends before its content does",
        content[:HEADER_BYTES]: "no 4 bytes of a number",
    }
    for damaged, match in cases.items():
        path.write_bytes(damaged)
        group = oc.open(repository)
        reasons = [str(error) for error in read_small(group)]
        assert any(re.search(f"{path.name}: .*{match}", reason) for reason in reasons), reasons


def test_repositories_at_urls_are_read(repository: Path) -> None:
    with serving(repository.parent) as web:
        group = oc.open(f"{web.url}/repository")
        assert (group.name, group.groups) == (f"{web.url}/repository", ("g",))
        np.testing.assert_array_equal(group["t2m"].compute(), t2m(3))
        np.testing.assert_array_equal(oc.open(f"{web.url}/repository/t2m", version="half & half").compute(), t2m(2))
        with pytest.raises(ArgumentError, match=r"repository: this Icechunk repository has no branch.*'none'"):
            oc.open(f"{web.url}/repository", version="none")
        with pytest.raises(ArgumentError, match=r"other: version is of Icechunk repositories"):
            oc.open(f"{web.url}/other", version="none")
        for manifest in (repository / "manifests").iterdir():
            manifest.unlink()
        with pytest.raises(MissingFileError, match=f"{web.url}/repository/manifests/.*no such object"):
            group["g/parts"]


def write_randomly(folder: Path, random: np.random.Generator) -> dict[str, np.ndarray]:
    """A repository of Icechunk's with arrays of any chunks, in files and inline, and their values."""
    import icechunk
    import zarr

    config = icechunk.RepositoryConfig.default()
    config.inline_chunk_threshold_bytes = int(random.choice([0, 40, 512]))
    repository = icechunk.Repository.create(icechunk.local_filesystem_storage(str(folder)), config=config)
    values: dict[str, np.ndarray] = {}
    for _ in range(2):
        writing = repository.writable_session("main")
        root = zarr.open_group(writing.store) if values else zarr.group(writing.store)
        for number in range(4):
            name, shape = f"x{number}", tuple(random.integers(1, 12, random.integers(4)).tolist())
            if name not in values:
                chunks = tuple(int(random.integers(1, length + 1)) for length in shape)
                kind = str(random.choice(["f8", "i2", "u1", "c8"]))
                codecs: Any = random.choice(["auto", ""]) or None
                root.create_array(name, shape=shape, chunks=chunks, dtype=kind, fill_value=3, compressors=codecs)
                values[name] = np.full(shape, 3, kind)
            stored = values[name]
            part = tuple(slice(*sorted(random.integers(0, length + 1, 2).tolist())) for length in stored.shape)
            stored[part] = random.integers(0, 99, stored[part].shape)
            root[name][part] = stored[part]
        writing.commit("more")
    return values


@pytest.mark.parametrize("seed", range(4))
def test_repositories_of_icechunk_are_read_as_it_reads_them(seed: int, tmp_path: Path) -> None:
    pytest.importorskip("icechunk")
    values = write_randomly(tmp_path / "repository", np.random.default_rng(seed))
    group = oc.open(tmp_path / "repository")
    assert set(group) == set(values)
    for name, expected in values.items():
        np.testing.assert_array_equal(group[name].compute(), expected)


def test_virtual_chunks_of_icechunk_are_read(tmp_path: Path) -> None:
    icechunk = pytest.importorskip("icechunk")
    import zarr

    (tmp_path / "others é").mkdir()
    files = [tmp_path / "others é" / f"{at} %.bin" for at in range(3)]
    values = np.random.default_rng(2).random((3, 400))
    for file, part in zip(files, values, strict=True):
        part.tofile(file)
    config, prefix = icechunk.RepositoryConfig.default(), f"file://{tmp_path}/others é/"
    store = icechunk.local_filesystem_store(f"{tmp_path}/others é")
    config.set_virtual_chunk_container(icechunk.VirtualChunkContainer(prefix, store))
    repository = icechunk.Repository.create(icechunk.local_filesystem_storage(str(tmp_path / "r")), config=config)
    writing = repository.writable_session("main")
    zarr.group(writing.store).create_array("x", shape=(3, 400), chunks=(1, 1), dtype="f8", compressors=None)
    modified = datetime.now(UTC) + timedelta(seconds=5)
    specs = [
        icechunk.VirtualChunkSpec([row, column], f"file://{files[row]}", 8 * column, 8, None, modified)
        for row in range(3)
        for column in range(400)
    ]
    writing.store.set_virtual_refs("x", specs, validate_containers=False)
    writing.commit("virtual")
    if icechunk.__version__ >= "2":
        pytest.importorskip("zstandard")
    np.testing.assert_array_equal(oc.open(tmp_path / "r/x").compute(), values)
    os.utime(files[1], (modified.timestamp() + 9,) * 2)
    with pytest.raises(SourceChangedError, match=r"1 %\.bin: changed since .*/manifests/"):
        oc.open(tmp_path / "r/x")
