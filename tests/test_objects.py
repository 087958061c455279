"""Arrays in stores of objects: as their files, with exact forecasts; failures, changes, and what is never shown."""

from __future__ import annotations

import logging
import os
import pickle
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy as np
import obstore
import pytest
import zarr
from click.testing import CliRunner
from moto.server import ThreadedMotoServer
from obstore.store import S3Store
from scipy.io import netcdf_file
from support.running import forecast, run, session
from support.web import Web, serving

import outcore as oc
from outcore._command.cli import main
from outcore._objects import mounting, uploading
from outcore._objects.mounting import mounted
from outcore._objects.secrets import secrets_of, without_secrets
from outcore.errors import (
    ArgumentError,
    FormatError,
    MissingFileError,
    SourceChangedError,
    StorageError,
    TargetExistsError,
    UnsupportedFormatError,
)

SECRET = "tops3cretSECRETKEY"
X = np.random.default_rng(7).random((130, 90))
ARRAYS = (
    "plain.zarr",
    "zstd.zarr",
    "shards.zarr",
    "v2.zarr",
    "x.npy",
    "x.h5/g/x",
    "x.nc/x",
    "old.nc/x",
    "group.zarr/x",
)
WRITER_NAME = "from outcore._objects.uploading import _process_name; print(_process_name('self'), end='')"
# A server's failures are met at once: nothing waits long before the next attempt.
QUICK = {"client_options": {"timeout": "500ms"}, "retry_config": {"max_retries": 2, "backoff": {}}}


class Bucket(NamedTuple):
    url: str
    options: dict[str, Any]
    store: S3Store


def make_files(folder: Path) -> None:
    with session():
        oc.store({folder / "plain.zarr": oc.asarray(X)}, chunks={folder / "plain.zarr": (32, 40)})
        oc.store({folder / "group.zarr": oc.group(x=oc.asarray(X), day=oc.arange(5), inner=oc.group(y=oc.arange(3)))})
    zarr.create_array(folder / "zstd.zarr", data=X, chunks=(32, 40))
    zarr.create_array(folder / "shards.zarr", data=X, chunks=(16, 20), shards=(64, 40))
    zarr.create_array(folder / "v2.zarr", data=X, chunks=(32, 40), zarr_format=2)
    holes = zarr.create_array(
        folder / "holes.zarr", shape=X.shape, chunks=(32, 40), dtype="f8", compressors=None, fill_value=3
    )
    holes[:40, :30] = X[:40, :30]
    np.save(folder / "x.npy", X)
    with h5py.File(folder / "x.h5", "w") as file:
        file.create_dataset("g/x", data=X, chunks=(32, 40), compression="gzip")
    with h5py.File(folder / "x.nc", "w") as file:
        file.create_dataset("x", data=X)
    with netcdf_file(folder / "old.nc", "w") as old:
        for name, length in zip("ij", X.shape, strict=True):
            old.createDimension(name, length)
        old.createVariable("x", "f8", ("i", "j"))[:] = X


@pytest.fixture(scope="module")
def bucket(shared: Path) -> Iterator[Bucket]:
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    make_files(shared)
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    endpoint = "http://{}:{}".format(*server.get_host_and_port())
    urllib.request.urlopen(urllib.request.Request(f"{endpoint}/bucket", method="PUT")).close()
    options = {
        "endpoint": endpoint,
        "access_key_id": "AKIATESTKEY",
        "secret_access_key": SECRET,
        "region": "us-east-1",
    }
    store = S3Store("bucket", config=options, client_options={"allow_http": True})  # type: ignore[arg-type]
    for folder, _, names in os.walk(shared):
        for name in names:
            path = Path(folder, name)
            obstore.put(store, str(path.relative_to(shared)), path.read_bytes())
    yield Bucket("s3://bucket", options, store)
    server.stop()


@pytest.fixture
def web(bucket: Bucket, shared: Path) -> Iterator[Web]:
    with serving(shared) as made:
        yield made


@pytest.mark.parametrize("name", ARRAYS)
def test_objects_are_read_as_files_are_with_exact_forecasts(name: str, bucket: Bucket, tmp_path: Path) -> None:
    with session():
        opened = oc.open(f"{bucket.url}/{name}", storage_options=bucket.options)
        targets = {str(tmp_path / "double.npy"): opened * 2, str(tmp_path / "sum.npy"): opened.sum(0)}
        told = forecast(targets)
        assert told["bytes_read"] > 0
        assert run(targets) == told
        np.testing.assert_array_equal(np.load(tmp_path / "double.npy"), X * 2)
        np.testing.assert_array_equal(opened[5:70:3, 7:].compute(), X[5:70:3, 7:])


@pytest.mark.parametrize("name", ARRAYS)
def test_web_servers_without_lists_give_the_same(name: str, web: Web, tmp_path: Path) -> None:
    with session():
        targets = {str(tmp_path / "double.npy"): oc.open(f"{web.url}/{name}") * 2}
        told = forecast(targets)
        assert run(targets) == told
        np.testing.assert_array_equal(np.load(tmp_path / "double.npy"), X * 2)


def test_repositories_of_icechunk_are_read_from_buckets(bucket: Bucket) -> None:
    folder = Path(__file__).parent / "data" / "icechunk-2"
    for path in folder.rglob("*"):
        if path.is_file():
            obstore.put(bucket.store, f"repository/{path.relative_to(folder)}", path.read_bytes())
    group = oc.open(f"{bucket.url}/repository", storage_options=bucket.options)
    stored = oc.open(folder)
    assert list(group) == list(stored)
    for name in ("t2m", "g/parts", "scalar"):
        np.testing.assert_array_equal(group[name].compute(), stored[name].compute())
    opened = oc.open(f"{bucket.url}/repository/t2m", version="v1")
    np.testing.assert_array_equal(opened.compute(), oc.open(folder / "t2m", version="v1").compute())


def test_groups_list_their_members(bucket: Bucket, web: Web, shared: Path) -> None:
    for root, options in ((bucket.url, bucket.options), (web.url, None)):
        group = oc.open(f"{root}/group.zarr", storage_options=options)
        assert (group.name, list(group), group.groups) == (f"{root}/group.zarr", ["day", "inner", "x"], ("inner",))
        assert group["inner/y"].compute().tolist() == [0, 1, 2]
    assert list(oc.open(f"{bucket.url}/x.h5", storage_options=bucket.options)["g"]) == ["x"]


def test_members_without_consolidated_metadata_are_listed_where_a_store_lists(bucket: Bucket, web: Web) -> None:
    (web.folder / "bare.zarr" / "a").mkdir(parents=True)
    document = b'{"zarr_format": 3, "node_type": "group"}'
    for name in ("bare.zarr/zarr.json", "bare.zarr/a/zarr.json"):
        (web.folder / name).write_bytes(document)
        obstore.put(bucket.store, name, document)
    assert list(oc.open(f"{bucket.url}/bare.zarr", storage_options=bucket.options)) == ["a"]
    with pytest.raises(UnsupportedFormatError, match="without consolidated metadata"):
        oc.open(f"{web.url}/bare.zarr")


def test_absent_chunks_are_fill_values(bucket: Bucket, web: Web) -> None:
    expected = np.full_like(X, 3)
    expected[:40, :30] = X[:40, :30]
    for root in (bucket.url, web.url):
        np.testing.assert_array_equal(oc.open(f"{root}/holes.zarr").compute(), expected)


def test_stores_of_google_are_listed_and_read(bucket: Bucket, shared: Path) -> None:
    with serving(shared.parent) as web:
        options = {"base_url": web.url, "skip_signature": True, "client_options": {"allow_http": True}}
        for name in ("plain.zarr", "shards.zarr", "holes.zarr"):
            opened = oc.open(f"gs://{shared.name}/{name}", storage_options=options)
            np.testing.assert_array_equal(opened.compute(), oc.open(shared / name).compute())


def test_lists_of_urls_are_joined(bucket: Bucket) -> None:
    names = [f"{bucket.url}/x.npy", f"{bucket.url}/plain.zarr"]
    np.testing.assert_array_equal(oc.open(names).compute(), np.concatenate([X, X]))


@pytest.mark.parametrize("failures", [["503"], ["503", "503"], ["cut"], ["stall"]], ids=str)
def test_passing_failures_of_a_server_are_met_by_further_requests(failures: list[str], web: Web) -> None:
    opened = oc.open(f"{web.url}/plain.zarr", storage_options=QUICK)
    web.failures += failures
    np.testing.assert_array_equal(opened.compute(), X)
    assert web.failures == []


def test_an_answer_that_is_cut_is_gone_on_with_where_a_server_gives_no_tags(web: Web) -> None:
    web.tags = False
    opened = oc.open(f"{web.url}/x.npy", storage_options=QUICK)
    web.failures += ["cut", "cut"]
    np.testing.assert_array_equal(opened.compute(), X)
    web.failures += ["cut"] * 3
    with session(), pytest.raises(StorageError, match=r"x\.npy: cannot read"):
        (opened + 1).compute()


@contextmanager
def interrupted(after_seconds: float) -> Iterator[None]:
    """An interrupt amid the block, as that of a terminal, which ends the block within about a second."""
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, after_seconds)
    begun = time.perf_counter()
    try:
        with pytest.raises(KeyboardInterrupt):
            yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert time.perf_counter() - begun < after_seconds + 1.5


def test_an_interrupt_ends_requests_that_are_stalled(bucket: Bucket, web: Web, tmp_path: Path) -> None:
    with session():
        opened = oc.open(f"{web.url}/plain.zarr")
        web.failures += ["stall"] * 20
        with interrupted(0.2):
            opened.compute()
        with interrupted(0.2):
            oc.open(f"{web.url}/shards.zarr")
        web.failures.clear()
        np.testing.assert_array_equal(opened.compute(), X)
    address = f"http://127.0.0.1:{closed_ears()}"
    options = {**bucket.options, "endpoint": address}
    transport = mounting.transport_of(mounted("s3://deaf", options))
    (tmp_path / "x").write_bytes(b"x")
    with interrupted(0.2):
        transport.put([("x", tmp_path / "x")])
    with interrupted(0.2):
        oc.open("s3://deaf/x.npy")


def closed_ears() -> int:
    """The port of a server that takes connections and answers none, until this process ends."""
    ears = socket.create_server(("127.0.0.1", 0), backlog=16)
    EARS.append(ears)
    return int(ears.getsockname()[1])


EARS: list[socket.socket] = []


def test_uploads_of_killed_processes_are_cleared_away(tmp_path: Path) -> None:
    program = f"""
import os, outcore as oc
from outcore._run import object_files
oc.config.set(scratch={str(tmp_path)!r})
object_files.check_target = lambda url, overwrite: None
object_files.upload = lambda folder, url, overwrite: os.kill(os.getpid(), 9)
oc.store({{"s3://none/x.zarr": oc.arange(10)}}, storage_options={{"region": "us-east-1", "skip_signature": True}})
"""
    assert subprocess.run([sys.executable, "-c", program], timeout=60).returncode == -signal.SIGKILL
    assert list(tmp_path.glob("*/*.upload/0/x.zarr/zarr.json"))
    with session(tmp_path):
        (oc.arange(10) + 1).compute()
        assert not list(tmp_path.glob("*/*.upload"))


def test_lasting_failures_name_the_url(web: Web) -> None:
    opened = oc.open(f"{web.url}/plain.zarr", storage_options={**QUICK, "retry_config": {"max_retries": 1}})
    web.failures += ["503"] * 200
    with pytest.raises(StorageError) as raised:
        opened.compute()
    assert f"{web.url}/plain.zarr/c/" in str(raised.value)
    assert "503" in str(raised.value)


def test_injected_faults_are_those_of_other_reads(web: Web) -> None:
    with session(faults="read:2"):
        opened = oc.open(f"{web.url}/plain.zarr")
        with pytest.raises(StorageError, match="cannot read at byte 0: Input"):
            opened.compute()
    with session(faults="short-read:2"):
        np.testing.assert_array_equal(oc.open(f"{web.url}/plain.zarr").compute(), X)


@pytest.mark.parametrize("name", ["plain.zarr", "x.npy", "x.h5/g/x", "shards.zarr"])
def test_what_was_replaced_is_refused(name: str, bucket: Bucket) -> None:
    opened = oc.open(f"{bucket.url}/{name}", storage_options=bucket.options)
    whole = opened.sum()
    key = {"plain.zarr": "plain.zarr/c/1/1", "shards.zarr": "shards.zarr/c/1/1"}.get(name, name.split("/")[0])
    before = bytes(obstore.get(bucket.store, key).bytes())
    try:
        for content in (before[:-8] + bytes(8), before[: len(before) // 2]):
            obstore.put(bucket.store, key, content)
            with pytest.raises(SourceChangedError, match=f"{bucket.url}/"):
                whole.compute()
        obstore.delete(bucket.store, key)
        with pytest.raises(SourceChangedError, match="it is gone"):
            whole.compute()
    finally:
        obstore.put(bucket.store, key, before)
    np.testing.assert_allclose(whole.compute(), X.sum())


def test_servers_without_tags_are_held_against_time_and_length(web: Web) -> None:
    web.tags = False
    path = web.folder / "changing.npy"
    np.save(path, X)
    opened = oc.open(f"{web.url}/changing.npy")
    np.testing.assert_array_equal(opened.compute(), X)
    os.utime(path, (1e9, 1e9))
    with pytest.raises(SourceChangedError):
        (opened + 1).compute()


def test_what_is_not_there_is_missing(bucket: Bucket, web: Web) -> None:
    for root in (bucket.url, web.url):
        for name in ("none.zarr", "none.npy", "none", "x.h5x/g"):
            with pytest.raises(MissingFileError, match=f"{root}/{name}"):
                oc.open(f"{root}/{name}")
    with pytest.raises(FormatError, match='no dataset "none"'):
        oc.open(f"{bucket.url}/x.h5/none")


def test_credentials_are_in_no_text_and_no_pickle(bucket: Bucket) -> None:
    opened = oc.open(f"{bucket.url}/plain.zarr", storage_options=bucket.options)
    result = opened.sum(0)
    shown = [repr(opened), str(oc.explain(result)), pickle.dumps(result).decode("latin1"), result._expr.digest]
    for wrong in ({"secret_access_key": SECRET, "nonsense": 1}, {"key": SECRET, "region": 3}):
        with pytest.raises(ArgumentError) as raised:
            oc.open(f"{bucket.url}/plain.zarr", storage_options=wrong)
        shown.append(str(raised.value))
    closed = {**bucket.options, "endpoint": "http://127.0.0.1:9", "retry_config": {"max_retries": 0}}
    with pytest.raises(StorageError) as failed:
        oc.open(f"{bucket.url}/plain.zarr", storage_options=closed)
    shown.append(str(failed.value))
    mounted(bucket.url, bucket.options)
    assert not [text for text in shown if SECRET in text or "AKIATESTKEY" in text]
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(result)).compute(), result.compute())


def test_headers_and_logins_are_secrets(web: Web, caplog: pytest.LogCaptureFixture) -> None:
    options = {
        "default_headers": {"x-api-key": "hush-1", "Authorization": "Bearer hush-2"},
        "proxy_url": "http://user:hush%2D3@127.0.0.1:9",
    }
    secrets = secrets_of({"client_options": options, "endpoint": "http://me:hush-4@host"})
    text = "hush-1 Bearer hush-2 hush-3 hush%2D3 hush-4 at http://x:hush-5@host/a?X-Amz-Signature=hush-6 (b)"
    assert "hush" not in without_secrets(text, secrets)
    assert without_secrets("https://host/a?b=c failed", ()) == "https://host/a?… failed"
    shown = []
    for wrong in ({"timeout": "hush-7"}, {"nonsense": 1}):
        for given in ({**options, **wrong}, {**options, "user_agent": 3}):
            with pytest.raises((ArgumentError, StorageError)) as raised:
                oc.open(
                    f"{web.url}/plain.zarr",
                    storage_options={"client_options": given, "retry_config": {"max_retries": 0}},
                )
            shown += [str(raised.value), repr(raised.value.__context__)]
    assert not [text for text in (*shown, caplog.text) if "hush-1" in text or "hush-2" in text or "hush%2D3" in text]
    mounted(web.url, {})


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("ftp://host/x.zarr", "ftp:// is not read"),
        ("https://user:pass@host/x.zarr", r"https://…@host: credentials"),
        ("https://host/x.npy?X-Amz-Signature=abc", r"https://host/x.npy\?…: a URL with a query"),
        ("s3:///x.zarr", "names no bucket"),
        ("s3://bucket/x*.npy", "wildcards"),
    ],
)
def test_urls_that_are_not_read_are_refused_without_their_secrets(url: str, said: str) -> None:
    with pytest.raises(ArgumentError, match=said) as raised:
        oc.open(url)
    assert "pass@" not in str(raised.value)
    assert "abc" not in str(raised.value)


def test_arrays_and_groups_are_stored_with_their_documents_last(bucket: Bucket, tmp_path: Path) -> None:
    url, made = f"{bucket.url}/out/made.zarr", []
    transport = mounting.transport_of(mounted(bucket.url, bucket.options))
    with session(tmp_path) as current, pytest.MonkeyPatch.context() as patch:
        put = transport.put

        def noting(files: Iterable[tuple[str, Path]]) -> None:
            pairs = list(files)
            made.extend(key for key, _ in pairs)
            put(pairs)

        patch.setattr(transport, "put", noting)
        y = oc.open(f"{bucket.url}/plain.zarr") + 1
        targets = {url: y, str(tmp_path / "y.npy"): y}
        codecs = {url: "gzip"}
        oc.store(targets, chunks={url: (50, 50)}, compression=codecs, storage_options=bucket.options)
        assert b'"gzip"' in bytes(obstore.get(bucket.store, "out/made.zarr/zarr.json").bytes())
        assert (len(made), made[-1]) == (7, "out/made.zarr/zarr.json")
        np.testing.assert_array_equal(oc.open(url).compute(), X + 1)
        np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), X + 1)
        with pytest.raises(TargetExistsError, match=url):
            oc.store({url: oc.arange(3)})
        oc.store({url: oc.group(a=oc.arange(3), inner=oc.group(b=oc.arange(2)))}, overwrite=True)
        assert made[-1] == "out/made.zarr/zarr.json"
        assert oc.open(url)["inner/b"].compute().tolist() == [0, 1]
        keys = [meta["path"] for page in obstore.list(bucket.store, "out") for meta in page]
        assert not [key for key in keys if key.startswith("out/made.zarr/c/")]
        patch.setattr(transport, "put", _refused)
        with pytest.raises(StorageError, match=f"{url}: cannot write: refused"):
            oc.store({url: oc.arange(3)}, overwrite=True)
        with pytest.raises(MissingFileError):
            oc.open(url)
        assert not list(tmp_path.glob("**/*.upload"))
        assert current.counters()["bytes_read"] > 0


def test_a_second_writer_to_a_url_is_refused(bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = uploading._process_name("self")
    url, claim = f"{bucket.url}/out/busy.zarr", "out/busy.zarr/.outcore-writer"
    ended = subprocess.run([sys.executable, "-c", WRITER_NAME], capture_output=True, text=True, check=True).stdout
    with session(tmp_path):
        monkeypatch.setattr(uploading, "_writers", {f"{own} 1"})
        boot, _, process = own.split(" ", 2)
        # A container on this machine has its processes in a namespace.
        for name in (f"{own} 1", f"{boot} 7 {process} 1", "another-boot 1 2 3 4", "no name", ""):
            obstore.put(bucket.store, claim, name.encode())
            with pytest.raises(StorageError, match=r"busy\.zarr: cannot write: another writer is at it"):
                oc.store({url: oc.arange(3)}, overwrite=True, storage_options=bucket.options)
            with pytest.raises(MissingFileError):
                oc.open(url)
        obstore.put(bucket.store, claim, f"{own} 2".encode())  # one of this process that could not remove it
        oc.store({url: oc.arange(2)}, storage_options=bucket.options)
        obstore.put(bucket.store, claim, f"{ended} 1".encode())
        transport, name = mounting.transport_of(url), f"{ended} 1".encode()
        assert not transport.replace(claim, b"of another", b"new")
        assert transport.replace(claim, name, name)
        oc.store({url: oc.arange(3)}, storage_options=bucket.options, overwrite=True)
        assert oc.open(url).compute().tolist() == [0, 1, 2]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("outcore._run.object_files.check_target", lambda *_: None)  # another came in between
            with pytest.raises(TargetExistsError, match=url):
                oc.store({url: oc.arange(4)})
    keys = [meta["path"] for page in obstore.list(bucket.store, "out/busy.zarr") for meta in page]
    assert claim not in keys
    assert len(keys) == 2


def test_parquet_is_read_from_stores(bucket: Bucket, web: Web, shared: Path, tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    for part in range(2):
        rows = pa.table({"x": X[part::2].ravel(), "word": ["a", "b", "a"] * (X.size // 6)})
        pq.write_table(rows, shared / f"{part}.parquet", row_group_size=2000)
        obstore.put(bucket.store, f"{part}.parquet", (shared / f"{part}.parquet").read_bytes())
    for root, options in ((bucket.url, bucket.options), (web.url, QUICK)):
        urls = [f"{root}/{part}.parquet" for part in range(2)]
        web.requests.clear()
        with session(tmp_path) as current:
            table = oc.read_parquet(urls, dtypes={"word": "category"}, storage_options=options)
            assert list(table["word"][:3].compute()) == ["a", "b", "a"]
            asked = web.requests["GET"]
            np.testing.assert_array_equal(table["x"].compute(), np.concatenate([X[::2].ravel(), X[1::2].ravel()]))
            assert web.requests["GET"] - asked == (2 if root == web.url else 0)  # row groups lie close together
            opened = oc.read_parquet(urls[0])["x"]
            current.clear()
            if root == bucket.url:
                obstore.put(bucket.store, "0.parquet", (shared / "1.parquet").read_bytes())
                with pytest.raises(SourceChangedError, match=r"0\.parquet: changed since it was opened"):
                    opened.sum().compute()
            else:
                web.failures += ["503"] * 50
                with pytest.raises(StorageError, match=r"0\.parquet: cannot read"):
                    opened.sum().compute()
                web.failures.clear()
        with pytest.raises(MissingFileError, match=r"none\.parquet"):
            oc.read_parquet(f"{root}/none.parquet")
        with pytest.raises(FormatError, match="is no whole Parquet file"):
            oc.read_parquet(f"{root}/x.npy")
    with pytest.raises(ArgumentError, match="storage_options are for URLs"):
        oc.read_parquet(shared / "0.parquet", storage_options=QUICK)


def _refused(files: Iterable[tuple[str, Path]]) -> None:
    raise OSError("refused")


def test_the_command_line_reads_urls(web: Web, tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["info", f"{web.url}/group.zarr"])
    assert result.exit_code == 0, result.output
    assert f"{web.url}/group.zarr: zarr group" in result.output
    assert "float64, 91.4 KiB" in result.output
    for source in ("x.npy", "plain.zarr"):
        target = str(tmp_path / f"{source}.npy")
        result = CliRunner().invoke(main, ["convert", f"{web.url}/{source}", target])
        assert result.exit_code == 0, result.output
        np.testing.assert_array_equal(np.load(target), X)


def test_what_is_for_files_alone_is_refused(bucket: Bucket, tmp_path: Path) -> None:
    url = f"{bucket.url}/new.zarr"
    for call in (
        lambda: oc.store({oc.region(url, np.s_[:1]): oc.arange(1)}),
        lambda: oc.append(url, np.arange(3), axis=0),
        lambda: oc.persist(oc.arange(3) + 1, directory=bucket.url),
    ):
        with pytest.raises(UnsupportedFormatError, match=r"s3://bucket.*not (in )?objects"):
            call()
    for reads, name in ((oc.sparse.open, "a.ocs"), (oc.graph.open, "g.ocg")):
        with pytest.raises(UnsupportedFormatError, match=f"s3://bucket/{name}: .* are read from files"):
            reads(f"{bucket.url}/{name}")
    for target in ("s3://bucket/new.npy", "https://host/new.zarr"):
        with pytest.raises(UnsupportedFormatError, match=target):
            oc.store({target: oc.arange(3)})
    with pytest.raises(ArgumentError, match="resume=True"):
        oc.store({url: oc.arange(3)}, resume=True)
    with pytest.raises(ArgumentError, match="are for files"):
        oc.open(f"{bucket.url}/x.npy", dtype="f8")
    with pytest.raises(ArgumentError, match="storage_options are for URLs"):
        oc.open(tmp_path / "x.npy", storage_options={})


def test_without_obstore_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore.exceptions", None)
    with pytest.raises(ImportError, match=r"s3://other/x.zarr: needs obstore: pip install outcore\[cloud\]"):
        oc.open("s3://other/x.zarr")
