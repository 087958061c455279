"""Sessions with small pools, runs with their forecast, and stored results read back by the files' own libraries."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import outcore as oc
from outcore.errors import MemoryLimitError, OutcoreError

FIGURES = ("bytes_read", "bytes_written", "peak_bytes")
POLICIES = ("next-use", "clean-first-lru", "consumer-count", "lru", "clock")
# A whole interpreter lives beside the pool, so the process's own limit is kept out of these tests' way.
ROOMY = 8 << 30


@contextmanager
def session(scratch: Path | None = None, **options: Any) -> Iterator[Any]:
    chosen = {"memory_limit": ROOMY, "threads": 2, "progress": False} | options
    if scratch is not None:
        chosen["scratch"] = [str(scratch)]
    with oc.Session(**chosen) as made:
        yield made


def forecast(targets: Any) -> dict[str, int]:
    said = oc.explain(targets, overwrite=True)
    assert said.exact, "these programs have no step that depends on data"
    return {name: getattr(said, name) for name in FIGURES}


def run(targets: Any) -> dict[str, int]:
    outcome = oc.store(targets, overwrite=True)
    return {name: getattr(outcome, name) for name in FIGURES}


def assert_nothing_but_kept(current: Any) -> None:
    """No memory is reserved but that of tiles and values which later runs may start from."""
    counted = current.counters()
    assert counted["reserved_bytes"] == counted["kept_bytes"]


def failures(fault: str, scratch: Path, work: Callable[[], Any]) -> Iterator[None]:
    """Does work again and again, of which the n-th call of a kind fails, until none does; yields after each failure."""
    failed = 0
    for n in range(1, 40):
        with session(scratch, faults=fault.format(n=n)) as current:
            try:
                work()
            except OutcoreError:
                failed += 1
                assert_nothing_but_kept(current)
                yield
            else:
                break
    assert 0 < failed < 39


def killed_at(out: Path, pattern: str, program: str, *arguments: Path) -> int:
    """Kills a program when a file appears, and gives its code of return: it may have ended before."""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout
        child.stdout.readline()
        while not list(out.glob(pattern)) and child.poll() is None:
            pass
        child.send_signal(signal.SIGKILL)
    return int(child.returncode)


def read_by(current: Any, call: Callable[[], Any]) -> int:
    """Bytes that a session reads in a call."""
    before = current.counters()["bytes_read"]
    call()
    return int(current.counters()["bytes_read"] - before)


def refusals(call: Callable[[], Any], scratch: Path) -> list[MemoryLimitError]:
    """With how little memory it is refused, and with how little of that it is again: what comes later may need more."""
    found: list[MemoryLimitError] = []
    while len(found) < 3:
        with session(scratch, pool_limit=found[-1].smallest + 1 if found else 64 << 10) as current:
            try:
                call()
            except MemoryLimitError as error:
                found.append(error)
            else:
                break
            assert_nothing_but_kept(current)
    assert found, "64 KiB are enough"
    return found


def load(path: Path | str) -> Any:
    """A stored result as NumPy and zarr-python read it: never through outcore."""
    if str(path).endswith(".npy"):
        return np.load(path)
    import zarr

    return np.asarray(zarr.open_array(str(path), mode="r")[...])


def tree_hash(folder: Path) -> dict[str, str]:
    """Every file below a folder with the hash of its bytes."""
    import hashlib  # children that measure their size do without

    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def files_below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def takes_direct_io(folder: Path) -> bool:
    """Whether the file system opens files past the page cache (tmpfs and some overlays do not)."""
    path = folder / "direct.probe"
    path.write_bytes(b"\0" * 4096)
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_DIRECT))
        return True
    except OSError:
        return False
    finally:
        path.unlink()
