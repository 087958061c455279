"""Files of sparse matrices that are damaged, lie, change or fail: an error of ours, never a wrong product."""

from __future__ import annotations

import os
import re
import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from support.running import assert_nothing_but_kept, files_below, session
from support.sizes import Sweep, examples, sized
from support.sparse import random_matrix, write

import outcore as oc
from outcore.errors import (
    FormatError,
    MemoryLimitError,
    OutcoreError,
    SourceChangedError,
    StorageError,
    TargetExistsError,
)

ROOT = Path(__file__).parent.parent
HEADER, RECORD, PAGE = 80, 40, 4096
CALLS_MAX = 400
FAULTS = {
    "read:{n}": ("io", "Input/output error"),
    "write:{n}": ("io", "Input/output error"),
    "write:{n}:enospc": ("space", "No space left on device"),
    "torn-write:{n}": ("io", "Input/output error"),
    "sync:{n}": ("io", "Input/output error"),
    "rename:{n}": ("io", "Input/output error"),
    "reserve:{n}": ("memory", ""),
}


def crc(data: bytes) -> bytes:
    return struct.pack("<I", google_crc32c.value(data))


def matrix_of(seed: int = 0) -> Any:
    """Some tile rows of 64 × 64 tiles: with single entries, full rows, and rows that are not there."""
    found = random_matrix(500, 300, 2000, seed).tolil()
    found[130] = 1.5
    found[192:256] = 0
    return found.tocsr()


class Whole(bytes):
    """A file as it was written; of some length, where a test that fails says what it was given."""

    def __repr__(self) -> str:
        return f"Whole({len(self)} bytes)"


def failure(call: Callable[[], Any]) -> OutcoreError | None:
    """The error of ours that a call raises, if any."""
    try:
        call()
    except OutcoreError as error:
        return error
    return None


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    folder = tmp_path_factory.mktemp("whole")
    with session():
        return Whole(write(matrix_of(), folder, 64).path.read_bytes())


X = np.random.default_rng(7).normal(size=(300, 3))


def products(path: Path) -> tuple[Any, Any, Any]:
    """What the file gives: two products and its entries."""
    with session():
        a = oc.sparse.open(path)
        if max(a.shape) > 10_000:  # a header that says so, and nothing that contradicts it
            raise FormatError(f"{path}: not the matrix that was written")
        y = (a @ X).compute() if a.shape[1] == 300 else None
        z = (a.T @ np.ones(a.shape[0])).compute()
        return y, z, a.to_scipy().toarray()


def expect_error_or_the_same(path: Path, data: bytes, whole: bytes) -> bool:
    """Whether a changed file is refused; if it is not, it must give what the right one gives."""
    path.write_bytes(data)
    try:
        found = products(path)
    except OutcoreError:
        return True
    path.write_bytes(whole)
    for value, right in zip(found, products(path), strict=True):
        assert np.array_equal(value, right)
    return False


@settings(max_examples=examples(300), deadline=None)
@given(place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7), is_head=st.booleans())
def test_a_flipped_bit(
    whole: bytes, tmp_path_factory: pytest.TempPathFactory, place: float, bit: int, is_head: bool
) -> None:
    at = int(place * (HEADER if is_head else len(whole)))
    data = bytearray(whole)
    data[at] ^= 1 << bit
    refused = expect_error_or_the_same(tmp_path_factory.getbasetemp() / "flip.ocs", bytes(data), whole)
    assert refused or at >= HEADER, "what the header says is under its checksum"


def test_every_bit_of_the_header_and_the_directory(whole: bytes, tmp_path: Path) -> None:
    directory = struct.unpack_from("<Q", whole, 48)[0]
    for at in (*range(HEADER), *range(directory, len(whole))):
        data = bytearray(whole)
        data[at] ^= 1 << (at % 8)
        (tmp_path / "a.ocs").write_bytes(data)
        with session(), pytest.raises(FormatError, match=r"a\.ocs"):
            oc.sparse.open(tmp_path / "a.ocs")


def test_every_length_a_file_can_be_cut_to(whole: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.ocs"
    edges = {0, 1, 8, HEADER - 1, HEADER, PAGE - 1, PAGE, PAGE + 1, len(whole) - 1}
    for length in sorted(edges | set(range(0, len(whole), 997))):
        path.write_bytes(whole[:length])
        with session(), pytest.raises(FormatError, match=r"a\.ocs"):
            oc.sparse.open(path)


def test_bytes_of_anything(tmp_path: Path) -> None:
    path = tmp_path / "a.ocs"
    for data in (b"", b"OCSPARSE", b"\0" * 5000, b"\x93NUMPY" + b"\1" * 5000, os.urandom(10_000)):
        path.write_bytes(data)
        with session(), pytest.raises(FormatError):
            oc.sparse.open(path)
    with session(), pytest.raises(OutcoreError):
        oc.sparse.open(tmp_path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with session(), pytest.raises(FileNotFoundError, match=r"b\.ocs"):
        oc.sparse.open(tmp_path / "b.ocs")


class Forged:
    """A file whose checksums agree with whatever is written into it: what only a liar would make."""

    def __init__(self, data: bytes) -> None:
        self.data = bytearray(data)

    def header(self, at: int, word: int, code: str = "<Q") -> Forged:
        struct.pack_into(code, self.data, at, word)
        return self

    def records(self) -> list[list[int]]:
        count, first = struct.unpack_from("<QQ", self.data, 40)
        return [list(struct.unpack_from("<QQQQII", self.data, first + RECORD * at)) for at in range(count)]

    def record(self, number: int, field: int, word: int) -> Forged:
        record = self.records()[number]
        record[field] = word
        first = struct.unpack_from("<Q", self.data, 48)[0]
        struct.pack_into("<QQQQII", self.data, first + RECORD * number, *record)
        return self

    def in_tile_row(self, number: int, at: int, word: int, code: str) -> Forged:
        struct.pack_into(code, self.data, self.records()[number][1] + at, word)
        return self

    def signed(self) -> bytes:
        count, first = struct.unpack_from("<QQ", self.data, 40)
        if first + RECORD * count <= len(self.data):
            for number, (_, offset, length, *_) in enumerate(self.records()):
                if offset + length <= len(self.data):
                    at = first + RECORD * number + 32
                    self.data[at : at + 4] = crc(bytes(self.data[offset : offset + length]))
            self.data[72:76] = crc(bytes(self.data[first : first + RECORD * count]))
        self.data[76:80] = crc(bytes(self.data[:76]))
        return bytes(self.data)


HUGE = (2**63 - 1, 2**63, 2**64 - 1)
LIES: dict[str, Callable[[Forged], Forged]] = {
    **{f"{word} tile rows": lambda f, word=word: f.header(40, word) for word in (9, 1000, *HUGE)},
    **{f"directory at {word}": lambda f, word=word: f.header(48, word) for word in (0, PAGE, *HUGE)},
    **{f"{word} entries": lambda f, word=word: f.header(32, word) for word in (0, 1, *HUGE)},
    **{f"side {word}": lambda f, word=word: f.header(12, word, "<I") for word in (0, 3, 65536, 2**31)},
    **{f"{word} rows": lambda f, word=word: f.header(16, word) for word in (0, 1, 100, 2**63, 2**64 - 1)},
    **{f"{word} columns": lambda f, word=word: f.header(24, word) for word in (0, 1, 100, 2**63, 2**64 - 1)},
    "version 2": lambda f: f.header(8, 2, "<I"),
    "an unknown type": lambda f: f.header(56, 0x7878787878787878),
    "a wider type": lambda f: f.header(56, int.from_bytes(b"complex1", "little")).header(64, 0x3832),
    "a row twice": lambda f: f.record(1, 0, 0),
    "rows backwards": lambda f: f.record(0, 0, 5),
    "a row beyond": lambda f: f.record(6, 0, 2**40),
    "overlapping": lambda f: f.record(1, 1, f.records()[0][1]),
    "within another": lambda f: f.record(0, 2, f.records()[0][2] + f.records()[1][2]),
    "beyond the directory": lambda f: f.record(6, 2, 2**40),
    "bytes that wrap": lambda f: f.record(6, 2, 2**64 - 64),
    "an odd place": lambda f: f.record(3, 1, f.records()[3][1] + 8),
    "in the header": lambda f: f.record(0, 1, 0),
    "a record of more entries": lambda f: f.record(0, 3, 2**61).header(32, 2**61 + sum(r[3] for r in f.records()[1:])),
    "a tile row of more tiles": lambda f: f.in_tile_row(0, 0, 2**31, "<I"),
    "a tile row of no tiles": lambda f: f.in_tile_row(0, 0, 0, "<I"),
    "a tile row of more entries": lambda f: f.in_tile_row(0, 8, 2**40, "<Q"),
    "values in front": lambda f: f.in_tile_row(0, 16, 8, "<Q"),
    "values behind": lambda f: f.in_tile_row(0, 16, 2**63, "<Q"),
    "a tile beside the matrix": lambda f: f.in_tile_row(0, 24 + 16 * 4, 999, "<I"),
    "a tile twice": lambda f: f.in_tile_row(0, 24 + 16, 0, "<I"),
    "a tile of more entries": lambda f: f.in_tile_row(0, 28, 2**31, "<I"),
    "a tile of fewer entries": lambda f: f.in_tile_row(0, 28, 1, "<I"),
    "a tile of more bytes": lambda f: f.in_tile_row(0, 32, 2**31, "<I"),
    "a tile of no bytes": lambda f: f.in_tile_row(0, 32, 0, "<I"),
    "a tile of odd bytes": lambda f: f.in_tile_row(0, 32, 33, "<I"),
    "a tile of more segments": lambda f: f.in_tile_row(0, 36, 2**31, "<I"),
    "a tile of no segments": lambda f: f.in_tile_row(0, 36, 0, "<I"),
}


@pytest.mark.parametrize("lie", LIES)
def test_what_lies_with_right_checksums(lie: str, whole: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.ocs"
    path.write_bytes(LIES[lie](Forged(whole)).signed())
    with session():
        said = failure(lambda: oc.sparse.open(path))
        if said is None:
            a = oc.sparse.open(path)
            x, y = np.ones(a.shape[1]), np.ones(a.shape[0])
            for call in (lambda: (a @ x).compute(), lambda: (a.T @ y).compute(), lambda: list(a.blocks())):
                with pytest.raises(FormatError, match=r"a\.ocs"):
                    call()
        else:
            assert isinstance(said, FormatError)


@settings(max_examples=examples(400), deadline=None)
@given(row=st.integers(0, 6), place=st.floats(0, 1, exclude_max=True), byte=st.integers(0, 255))
def test_any_byte_of_a_tile_row_with_right_checksums(
    whole: bytes, tmp_path_factory: pytest.TempPathFactory, row: int, place: float, byte: int
) -> None:
    """No crash and no hang; what is given is a product of as many entries as are said, or an error of ours."""
    path = tmp_path_factory.getbasetemp() / "forged.ocs"
    forged = Forged(whole)
    length = forged.records()[row][2]
    path.write_bytes(forged.in_tile_row(row, int(place * min(length, 600)), byte, "<B").signed())
    with session():
        a = oc.sparse.open(path)
        calls: dict[str, Callable[[], Any]] = {
            "product": lambda: (a @ X).compute(),
            "transposed": lambda: (a.T @ np.ones(500)).compute(),
            "entries": a.to_scipy,
        }
        said = {name: failure(call) for name, call in calls.items()}
        assert {type(error) for error in said.values()} <= {FormatError, type(None)}, said
        assert len({error is None for error in said.values()}) == 1, (
            f"one way of reading sees what another does not: {said}"
        )
        if said["entries"] is None:
            found = a.to_scipy()
            assert sum(len(rows) for rows, _, _ in a.blocks()) == a.nnz
            places = {place for rows, columns, _ in a.blocks() for place in zip(rows, columns, strict=True)}
            assert len(places) == a.nnz, "an entry is there twice"
            np.testing.assert_allclose((a @ X).compute(), found @ X, rtol=1e-9, atol=1e-9)


def targets(path: Path, out: Path) -> dict[Path, oc.Array]:
    a = oc.sparse.open(path)
    x = oc.ones((a.shape[1], 8)) * 2
    return {out / "y.npy": a @ x, out / "z.npy": a.T @ oc.ones((a.shape[0],))}


def smallest_pool(path: Path, out: Path) -> int:
    with session(pool_limit=1 << 14), pytest.raises(MemoryLimitError) as refused:
        oc.store(targets(path, out))
    assert refused.value.smallest is not None
    return refused.value.smallest


@pytest.mark.parametrize("fault", FAULTS)
def test_the_nth_call_of_opening_and_products_fails(fault: str, data: Path, out: Path, scratch: Path) -> None:
    matrix = random_matrix(30_000, 30_000, 60_000)
    with session():
        path = write(matrix, data, 1024).path
    pool = smallest_pool(path, out)
    code, cause = FAULTS[fault]
    sweep = Sweep(fault, CALLS_MAX)
    for n in sweep:
        shutil.rmtree(out)
        out.mkdir()
        with session(scratch, pool_limit=pool, faults=fault.format(n=n)) as current:
            error = failure(lambda: oc.store(targets(path, out)))
            if error is None:
                continue
            sweep.failed()
            assert error.code == code, str(error)
            assert cause in str(error)
            assert "\n" not in str(error)
            if code == "io":
                assert any(str(place) in str(error) for place in (path, out, scratch)), str(error)
            assert_nothing_but_kept(current)
            assert files_below(out) == []
            oc.store(targets(path, out))
        check(matrix, out)
    check(matrix, out)
    assert files_below(scratch) == []


def check(matrix: Any, out: Path) -> None:
    ones = np.ones((matrix.shape[1], 8))
    np.testing.assert_allclose(np.load(out / "y.npy"), matrix @ ones * 2, atol=1e-9)
    np.testing.assert_allclose(np.load(out / "z.npy"), matrix.T @ ones[: matrix.shape[0], 0], atol=1e-9)


@pytest.mark.parametrize("fault", ["short-read:{n}", "short-write:{n}"])
def test_a_short_transfer_goes_on_where_it_stopped(fault: str, data: Path, out: Path) -> None:
    matrix = random_matrix(3000, 3000, 60_000)
    for n in (1, 2, 3):
        with session(faults=fault.format(n=n)):
            path = write(matrix, data).path
            oc.store(targets(path, out), overwrite=True)
        check(matrix, out)


@pytest.mark.parametrize("is_there", [False, True], ids=["new", "over another"])
@pytest.mark.parametrize(
    "fault", [fault for fault in FAULTS if "write" in fault or "sync" in fault or "rename" in fault]
)
def test_the_nth_call_of_writing_fails(fault: str, is_there: bool, out: Path) -> None:
    matrix = random_matrix(3000, 3000, 60_000)
    code, cause = FAULTS[fault]
    before: dict[str, bytes] = {}
    sweep = Sweep(fault, CALLS_MAX)
    for n in sweep:
        if is_there:
            with session():
                write(scipy.sparse.eye_array(3), out)
            before = {"a.ocs": (out / "a.ocs").read_bytes()}
        with session(faults=fault.format(n=n)):
            error = failure(lambda: write(matrix, out, 256))
            if error is None:
                (out / "a.ocs").unlink()
                continue
            sweep.failed()
            assert error.code == code, str(error)
            assert cause in str(error)
            assert str(out) in str(error)
            assert {name: (out / name).read_bytes() for name in files_below(out)} == before
            assert np.array_equal((write(matrix, out, 256) @ np.ones(3000)).compute(), matrix @ np.ones(3000))
            (out / "a.ocs").unlink()


def test_what_stands_is_not_replaced_unasked(tmp_path: Path) -> None:
    with session():
        write(scipy.sparse.eye_array(3), tmp_path)
        before = (tmp_path / "a.ocs").read_bytes()
        with pytest.raises(TargetExistsError, match=r"a\.ocs"):
            oc.sparse.from_scipy(scipy.sparse.eye_array(4), tmp_path / "a.ocs")
        assert (tmp_path / "a.ocs").read_bytes() == before
        assert files_below(tmp_path) == ["a.ocs"]


WRITER = """
import sys, time
import numpy as np, outcore as oc
from outcore import _core
from outcore._session.session import current
core = current()._core
n = 4_000_000
writer = _core.SparseWriter(core, sys.argv[1], (n, n), "float64", 16384, "refuse", True)
print("ready", flush=True)
i = np.arange(n)
rows, within = i // 16384, i % 16384
places = oc.sparse._places.places_of(i, i, (n, n), 16384)
for part in np.array_split(np.arange(n), 40):
    writer.add(places[part], np.ones(len(part)).view(np.uint8))
writer.finish()
print("done", flush=True)
"""


@pytest.mark.parametrize("is_there", [False, True], ids=["new", "over another"])
def test_killed_while_writing(is_there: bool, out: Path) -> None:
    path = out / "a.ocs"
    random = np.random.default_rng(20)
    whole_seconds = None
    for _ in range(sized(4, 6)):
        path.unlink(missing_ok=True)
        if is_there:
            with session():
                write(scipy.sparse.eye_array(3), out)
        before = path.read_bytes() if is_there else None
        child = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path)],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "python"), os.environ.get("PYTHONPATH", "")])},
        )
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        began = time.perf_counter()
        if whole_seconds is None:
            assert child.wait(60) == 0
            whole_seconds = time.perf_counter() - began
        else:
            try:
                child.wait(random.uniform(0, whole_seconds))
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
        child.stdout.close()
        if path.exists() and (before is None or path.read_bytes() != before):
            with session():
                assert oc.sparse.open(path).sum().compute() == 4_000_000
        else:
            assert is_there == path.exists()
    path.unlink(missing_ok=True)
    with session():
        write(scipy.sparse.eye_array(3), out)
    assert files_below(out) == ["a.ocs"], "what a dead process left is gone with the next"


def test_an_abandoned_writer_leaves_nothing(tmp_path: Path) -> None:
    from outcore import _core

    with session() as current:
        writer = _core.SparseWriter(current._core, tmp_path / "a.ocs", (3, 3), "pattern", 16, "sum", False)
        writer.add(np.asarray([1], dtype=np.uint64), np.zeros(0, np.uint8))
        for wrong in ([0], [2, 1]):
            with pytest.raises(OutcoreError, match="out of order"):
                writer.add(np.asarray(wrong, dtype=np.uint64), np.zeros(0, np.uint8))
        del writer
    assert files_below(tmp_path) == []


@pytest.mark.parametrize("change", ["bytes", "time kept", "shorter", "another", "gone"])
def test_a_file_that_changes_after_it_was_opened(change: str, tmp_path: Path) -> None:
    with session() as current:
        a = write(random_matrix(3000, 3000, 10_000), tmp_path)
        product = a @ np.ones(3000)
        product.compute()
        assert current.counters()["kept_bytes"] > 0, "there is something that must not be believed"
        status = a.path.stat()
        if change == "another":
            write(random_matrix(3000, 3000, 10_000, 1), tmp_path)
        elif change == "gone":
            a.path.unlink()
        elif change == "shorter":
            os.truncate(a.path, status.st_size - 4096)
        else:
            with a.path.open("r+b") as file:
                file.seek(6000)
                file.write(b"\x55" * 100)
            if change == "time kept":
                os.utime(a.path, ns=(status.st_atime_ns, status.st_mtime_ns))
        expected = (SourceChangedError, FileNotFoundError) if change == "gone" else SourceChangedError
        with pytest.raises(expected):
            (a @ np.full(3000, 2.0)).compute()
        with pytest.raises(expected):
            (a.T @ np.ones(3000)).compute()
        with pytest.raises((FormatError, StorageError)):
            a.to_scipy()


def test_a_file_that_may_only_be_read(tmp_path: Path) -> None:
    matrix = random_matrix(3000, 3000, 10_000)
    with session():
        a = write(matrix, tmp_path)
        a.path.chmod(0o444)
        before = a.path.read_bytes()
        np.testing.assert_allclose((oc.sparse.open(a.path) @ np.ones(3000)).compute(), matrix.sum(axis=1), atol=1e-9)
        assert a.path.read_bytes() == before


@pytest.mark.parametrize("name", ["values", "pattern"])
def test_files_of_version_1_are_read(name: str) -> None:
    """The fixtures are as the first version wrote them: whatever comes later must read them."""
    i = np.arange(120)
    expected = np.zeros((40, 50))
    if name == "values":
        np.add.at(expected, (i * 7 % 40, i * 11 % 50), i.astype(float))
    else:
        expected[i * 7 % 40, i * 11 % 50] = 1
    with session():
        found = oc.sparse.open(Path("crates/store/tests/fixtures") / f"{name}.ocs")
        np.testing.assert_array_equal((found @ np.eye(50)).compute(), expected)


@pytest.mark.parametrize("how", ["cut off", "longer", "another", "written over", "gone"])
def test_a_file_that_is_not_what_was_opened_is_said_by_name(tmp_path: Path, how: str) -> None:
    matrix = random_matrix(3000, 3000, 20_000)
    with session():
        a = write(matrix, tmp_path, 1024)
        length = a.nbytes
        if how == "cut off":
            os.truncate(a.path, length // 2)
        elif how == "longer":
            with a.path.open("ab") as file:
                file.write(b"more")
        elif how == "another":
            write(matrix * 2, tmp_path, 1024, "b.ocs").path.replace(a.path)
        elif how == "written over":
            with a.path.open("r+b") as file:
                file.seek(length // 3)
                file.write(b"\xff" * 64)
        else:
            a.path.unlink()
        for read in (lambda: list(a.blocks()), a.to_scipy, a.tril().copy, lambda: (a @ np.ones(3000)).compute()):
            with pytest.raises((FormatError, SourceChangedError), match=re.escape(str(a.path))):
                read()
