"""What cannot work says so in one line, before work starts, with a stable code; and leaves nothing behind."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from support.running import assert_nothing_but_kept, files_below, session

import outcore as oc
from outcore.errors import OutcoreError


@contextmanager
def refusal(code: str, *words: str) -> Iterator[None]:
    """The error has this code, holds these words, and is one line long."""
    with pytest.raises(OutcoreError) as raised:
        yield
    said = str(raised.value)
    assert raised.value.code == code, said
    assert "\n" not in said
    assert 0 < len(said) < 500
    for word in words:
        assert word in said


def header(text: str, version: bytes = b"\x01\x00") -> bytes:
    """An .npy of a header and no data, padded as NumPy does."""
    width = 2 if version == b"\x01\x00" else 4
    body = text.encode("latin1")
    body += b" " * (-(len(body) + 7 + width + 1) % 64) + b"\n"
    return b"\x93NUMPY" + version + len(body).to_bytes(width, "little") + body


def npy(shape: str, descr: str = "'<f8'", order: str = "False") -> bytes:
    return header(f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}")


NPY: dict[str, bytes] = {
    "nothing": b"",
    "half a magic": b"\x93NUM",
    "another magic": b"PK\x03\x04" + b"\0" * 200,
    "a version to come": b"\x93NUMPY\x09\x00" + b"\x10\x00" + b" " * 16,
    "a header cut short": npy("(3, 4)")[:40],
    "a header longer than the file": b"\x93NUMPY\x02\x00\xff\xff\xff\x7f{'descr'",
    "no data": npy("(3, 4)"),
    "half the data": npy("(3, 4)") + b"\0" * 48,
    "one byte short": npy("(3, 4)") + b"\0" * 95,
    "a product that overflows": npy("(4294967296, 4294967296, 16)"),
    "a byte count that overflows": npy("(2305843009213693952,)"),
    "a zero hides an overflow": npy("(18446744073709551615, 18446744073709551615, 0, 'x')"),
    "a negative length": npy("(-3, 4)"),
    "a length that is no integer": npy("(3.5, 4)"),
    "a length past 64 bits": npy("(99999999999999999999999, 1)"),
    "a shape that is no tuple": npy("7") + b"\0" * 56,
    "a header that is no dictionary": header("[1, 2, 3]"),
    "a header that is code": header("__import__('os').getcwd()"),
    "keys missing": header("{'descr': '<f8', 'shape': (3,), }") + b"\0" * 24,
    "nested a thousand deep": header("{'descr': " + "(" * 1000 + ")" * 1000 + "}"),
}


@pytest.mark.parametrize("case", NPY)
def test_npy_that_lie(case: str, tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    path.write_bytes(NPY[case])
    with refusal("format", "x.npy"):
        oc.open(path)


@pytest.mark.parametrize("descr", ["'|O'", "'|S0'", "'<M8'", "[('a', '<f8')]", "'<f16'", "'<q9'", "'|V8'"])
def test_npy_of_types_we_do_not_hold(descr: str, tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    path.write_bytes(npy("(4,)", descr) + b"\0" * 256)
    with pytest.raises(OutcoreError, match=r"x\.npy") as raised:
        oc.open(path)
    assert raised.value.code in ("dtype", "format")


def stored(tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    """A sound Zarr array and its metadata, to be spoilt."""
    made: Any = zarr.create_array(str(tmp_path / "x.zarr"), shape=(20, 30), dtype="float64", chunks=(8, 8))
    made[...] = 1.0
    return tmp_path / "x.zarr", json.loads((tmp_path / "x.zarr" / "zarr.json").read_text())


def _set(*keys: str, to: Any) -> Callable[[dict[str, Any]], None]:
    def change(metadata: dict[str, Any]) -> None:
        place = metadata
        for key in keys[:-1]:
            place = place[key]
        place[keys[-1]] = to

    return change


CHUNK_SHAPE = ("chunk_grid", "configuration", "chunk_shape")
ZARR: dict[str, Callable[[dict[str, Any]], Any]] = {
    "an unknown codec": _set(
        "codecs", to=[{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "marvel"}]
    ),
    "no codec": _set("codecs", to=[]),
    "codecs that are no list": _set("codecs", to="gzip"),
    "an unknown grid": _set("chunk_grid", "name", to="hexagonal"),
    "chunks of no length": _set(*CHUNK_SHAPE, to=[0, 8]),
    "chunks of another rank": _set(*CHUNK_SHAPE, to=[8]),
    "chunks past 64 bits": _set(*CHUNK_SHAPE, to=[2**63, 2**63]),
    "a negative length": _set("shape", to=[-20, 30]),
    "a product that overflows": _set("shape", to=[2**40, 2**40]),
    "a length that is no integer": _set("shape", to=["20", 30]),
    "an unknown type": _set("data_type", to="float57"),
    "a type of text": _set("data_type", to="string"),
    "a fill value of another type": _set("fill_value", to="blue"),
    "an older format": _set("zarr_format", to=2),
    "a format to come": _set("zarr_format", to=4),
    "no shape": lambda metadata: metadata.pop("shape"),
    "no type": lambda metadata: metadata.pop("data_type"),
    "an extension that must be understood": _set("weird", to={"name": "weird", "must_understand": True}),
}


@pytest.mark.parametrize("case", ZARR)
def test_zarr_metadata_that_lies(case: str, tmp_path: Path) -> None:
    path, metadata = stored(tmp_path)
    ZARR[case](metadata)
    (path / "zarr.json").write_text(json.dumps(metadata))
    with pytest.raises(OutcoreError, match=r"x\.zarr") as raised:
        oc.open(path)
    assert raised.value.code in ("format", "dtype")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"zarr_format": 3}', b"[" * 100_000])
def test_zarr_json_that_is_none(content: bytes, tmp_path: Path) -> None:
    path, _ = stored(tmp_path)
    (path / "zarr.json").write_bytes(content)
    with refusal("format", "x.zarr"):
        oc.open(path)


def test_a_missing_zarr_json_is_named(tmp_path: Path) -> None:
    path, _ = stored(tmp_path)
    (path / "zarr.json").unlink()
    with refusal("format", "x.zarr", "zarr.json"):
        oc.open(path)


@pytest.mark.parametrize("cut", [0, 10, -1])
def test_a_damaged_chunk_is_named_and_nothing_is_written(cut: int, tmp_path: Path, out: Path) -> None:
    path, _ = stored(tmp_path)
    chunk = path / "c" / "1" / "1"
    chunk.write_bytes(chunk.read_bytes()[:cut])
    with session() as current, pytest.raises(OutcoreError, match=r"c/1/1") as raised:
        oc.store({out / "y.npy": oc.open(path) + 1})
    assert raised.value.code in ("format", "io")
    assert_nothing_but_kept(current)
    assert files_below(out) == []


def test_what_is_not_there(tmp_path: Path) -> None:
    for name in ("none.npy", "none.zarr", "none"):
        with pytest.raises(OutcoreError, match=name) as raised:
            oc.open(tmp_path / name)
        assert raised.value.code == "missing"


def test_a_file_of_another_kind(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("1 2 3\n")
    with refusal("format", "x.txt"):
        oc.open(tmp_path / "x.txt")


def test_shapes_that_do_not_go_together() -> None:
    a, b = oc.zeros((4, 3)), oc.zeros((5, 6))
    with refusal("shape", "matmul", "(4, 3)", "(5, 6)"):
        a @ b
    with refusal("shape", "(4, 3)", "(5, 6)"):
        a + b
    with refusal("shape"):
        oc.concat([a, b])
    with refusal("shape", "(4, 3)"):
        a.reshape(5, 3)
    with refusal("shape"):
        oc.broadcast_to(a, (2, 2, 3))


def test_an_existing_path_is_left_alone(tmp_path: Path) -> None:
    for name in ("y.npy", "y.zarr"):
        path = tmp_path / name
        with session():
            oc.store({path: oc.asarray(np.arange(5.0))})
            before = {file: (tmp_path / file).read_bytes() for file in files_below(tmp_path)}
            with refusal("exists", name):
                oc.store({path: oc.zeros((9,))})
            assert {file: (tmp_path / file).read_bytes() for file in files_below(tmp_path)} == before
            oc.store({path: oc.zeros((9,))}, overwrite=True)
            assert oc.compute(oc.open(path)).shape == (9,)


def test_a_path_in_no_folder(tmp_path: Path) -> None:
    with session(), pytest.raises(OutcoreError, match="nowhere") as raised:
        oc.store({tmp_path / "nowhere" / "y.npy": oc.zeros((3,))})
    assert raised.value.code == "io"


def test_writing_over_a_source_that_is_read(tmp_path: Path) -> None:
    """`overwrite` of what the expression reads: either the new values or an error, never a mixture."""
    path = tmp_path / "x.npy"
    values = np.arange(1_000_000.0)
    np.save(path, values)
    with session(pool_limit=16 << 20):
        try:
            oc.store({path: oc.open(path)[::-1] + 1}, overwrite=True)
        except OutcoreError:
            np.testing.assert_array_equal(np.load(path), values)
        else:
            np.testing.assert_array_equal(np.load(path), values[::-1] + 1)


@contextmanager
def mounted(folder: Path, *options: str) -> Iterator[Path]:
    """A small tmpfs, where mounting is allowed."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", ",".join(options), "none", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"mounting a small file system is not allowed here: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        # Lazily: an array that is still open holds its file, and with it the mount.
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.mark.parametrize("name", ["y.npy", "y.zarr"])
def test_a_full_target_is_refused_or_cleaned_up(name: str, tmp_path: Path) -> None:
    with mounted(tmp_path / "small", "size=4m") as folder, session() as current:
        with pytest.raises(OutcoreError, match="small") as raised:
            oc.store({folder / name: oc.random.uniform((4_000_000,), seed=1)})
        assert raised.value.code in ("space", "io")
        assert "\n" not in str(raised.value)
        assert_nothing_but_kept(current)
        assert files_below(folder) == []
        oc.store({folder / name: oc.random.uniform((1000,), seed=1)})
        assert oc.compute(oc.open(folder / name)).shape == (1000,)


@pytest.mark.parametrize("name", ["y.npy", "y.zarr"])
def test_a_read_only_target(name: str, tmp_path: Path) -> None:
    with mounted(tmp_path / "small", "size=4m", "ro") as folder, session():
        with refusal("io", "small"):
            oc.store({folder / name: oc.zeros((1000,))})
        assert files_below(folder) == []


def test_a_folder_without_permission(tmp_path: Path, out: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write anywhere; the read-only file system is the test that holds for root")
    out.chmod(0o500)
    with session(), refusal("permission", "out"):
        oc.store({out / "y.npy": oc.zeros((3,))})


@pytest.mark.parametrize("path", ["", "\0.npy"])
def test_paths_that_are_none(path: str) -> None:
    with session(), pytest.raises((OutcoreError, ValueError)):
        oc.open(path)
